"""Limits: does every call keep the time and the memory it was given, and hear Ctrl-C, on models of every shape?

    python benchmarks/limits.py [--quick] [--only WORD] [--time SECONDS]

Every call on every shape, each in a process of its own: kernels are compiled first on a small model of the same kind,
then the call is made, and what it took is set beside what it was given.  Allowed are a tenth and 0.2 seconds more of
time, a tenth and 50 MB more of memory beyond what the process held with the model, and 0.3 seconds from Ctrl-C to an
answer.  All of it takes about an hour; `--quick` two minutes.
"""

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from timing import Claim, forget_peak, in_fresh_process, peak_megabytes, print_claims, print_table

MORE_TIME, MORE_SECONDS = 1.1, 0.2
MORE_MEMORY, MORE_MEGABYTES = 1.1, 50.0
ANSWER_SECONDS = 0.3


# -- shapes ----------------------------------------------------------------------------------------------------------


def grid(side: int) -> Any:
    import clampz as cz

    return cz.generators.grid(side, side, toroidal=False, weights=(-4, 4), rng=0)


def torus(side: int) -> Any:
    """A spin glass of +-J on a torus."""
    import numpy as np

    import clampz as cz

    edges = cz.generators.grid(side, side, rng=0).edges
    weights = np.random.default_rng(0).choice([-2.0, 2.0], size=len(edges))
    return cz.Model.from_binary(np.zeros(side * side), weights, edges)


def cube(side: int) -> Any:
    import numpy as np

    import clampz as cz

    number = np.arange(side**3).reshape(side, side, side)
    pairs = [(number.take(range(side - 1), a).ravel(), number.take(range(1, side), a).ravel()) for a in range(3)]
    edges = np.concatenate([np.stack(pair, axis=1) for pair in pairs])
    weights = np.random.default_rng(0).choice([-2.0, 2.0], size=len(edges))
    return cz.Model.from_binary(np.zeros(side**3), weights, edges)


def tree(n: int, parent: Callable[[Any], Any]) -> Any:
    """Each variable but the first has one before it as its parent."""
    import numpy as np

    import clampz as cz

    rng, child = np.random.default_rng(0), np.arange(1, n)
    edges = np.stack([parent(child), child], axis=1)
    return cz.Model.from_binary(rng.normal(size=n), rng.normal(size=n - 1), edges)


def complete(n: int) -> Any:
    import clampz as cz

    return cz.generators.complete(n, weights=(-6, 6), rng=0)


def components(count: int, size: int) -> Any:
    import numpy as np

    import clampz as cz

    rng = np.random.default_rng(0)
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    edges = (pairs[None] + size * np.arange(count)[:, None, None]).reshape(-1, 2)
    return cz.Model.from_binary(rng.normal(size=count * size), rng.normal(size=len(edges)), edges)


def factors(count: int, size: int) -> Any:
    import numpy as np

    import clampz as cz

    rng, n = np.random.default_rng(0), count * 3
    scopes = [tuple(sorted(rng.choice(n, size=size, replace=False).tolist())) for _ in range(count)]
    return cz.Model.from_factors([2] * n, [(scope, rng.normal(size=(2,) * size)) for scope in scopes])


def potts(side: int, labels: int) -> Any:
    import numpy as np

    import clampz as cz

    rng = np.random.default_rng(0)
    edges = cz.generators.grid(side, side, toroidal=False, rng=0).edges
    return cz.Model.from_arrays(
        rng.normal(size=(side * side, labels)), edges, np.eye(labels) * rng.normal(size=(len(edges), 1, 1))
    )


def clauses(n: int) -> Any:
    """Clauses of three, each with one joint state that is impossible."""
    import numpy as np

    import clampz as cz

    rng = np.random.default_rng(0)
    found = []
    for _ in range(3 * n):
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(0, 2, size=3))] = -np.inf
        found.append((tuple(rng.choice(n, size=3, replace=False).tolist()), table))
    return cz.Model.from_factors([2] * n, found)


class Shape(NamedTuple):
    """A model, and a small one of its kind to compile the kernels with."""

    large: Callable[[], Any]
    small: Callable[[], Any]


SHAPES: dict[str, Shape] = {
    "grid 3x3": Shape(lambda: grid(3), lambda: grid(4)),
    "grid 20x20": Shape(lambda: grid(20), lambda: grid(4)),
    "torus 100x100": Shape(lambda: torus(100), lambda: grid(4)),
    "grid 316x316": Shape(lambda: grid(316), lambda: grid(4)),
    "grid 1000x1000": Shape(lambda: grid(1000), lambda: grid(4)),
    "cube 46x46x46": Shape(lambda: cube(46), lambda: cube(3)),
    "chain of 10^5": Shape(lambda: tree(100_000, lambda i: i - 1), lambda: tree(10, lambda i: i - 1)),
    "chain of 10^6": Shape(lambda: tree(1_000_000, lambda i: i - 1), lambda: tree(10, lambda i: i - 1)),
    "star of 10^5": Shape(lambda: tree(100_000, lambda i: 0 * i), lambda: tree(10, lambda i: 0 * i)),
    "binary tree of 10^6": Shape(lambda: tree(1_000_000, lambda i: i // 2), lambda: tree(10, lambda i: i // 2)),
    "K30": Shape(lambda: complete(30), lambda: complete(6)),
    "K300": Shape(lambda: complete(300), lambda: complete(6)),
    "3,000 components of 18": Shape(lambda: components(3000, 18), lambda: components(3, 5)),
    "30,000 factors of 7": Shape(lambda: factors(30_000, 7), lambda: factors(2, 4)),
    "7 factors of 20": Shape(lambda: factors(7, 20), lambda: factors(2, 4)),
    "40 factors of 12": Shape(lambda: factors(40, 12), lambda: factors(2, 4)),
    "4,000 clauses' variables": Shape(lambda: clauses(4000), lambda: clauses(8)),
    "8x8, 200 labels": Shape(lambda: potts(8, 200), lambda: potts(3, 4)),
    "30x30, 50 labels": Shape(lambda: potts(30, 50), lambda: potts(3, 4)),
    "256x256, 4 labels": Shape(lambda: potts(256, 4), lambda: potts(3, 4)),
}

# -- calls -----------------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    "mean_field": lambda cz, model, **limits: cz.mean_field(model, **limits),
    "bethe": lambda cz, model, **limits: cz.bethe(model, **limits),
    "trw": lambda cz, model, **limits: cz.trw(model, **limits),
    "trw optimized": lambda cz, model, **limits: cz.trw(model, edge_weights="optimized", **limits),
    "exact": lambda cz, model, **limits: cz.exact(model, **limits),
    "mini_buckets": lambda cz, model, **limits: cz.mini_buckets(model, **limits),
    "clamp": lambda cz, model, **limits: cz.clamp(model, "trw", k=2, **limits),
    "clamp greedy": lambda cz, model, **limits: cz.clamp(model, "mf", k=1, select="greedy", **limits),
    "bound": lambda cz, model, **limits: cz.bound(model, **limits),
    "bound_marginals": lambda cz, model, **limits: cz.bound_marginals(model, **limits),
    "solve": lambda cz, model, **limits: cz.solve(model, **limits),
    "sample": lambda cz, model, **limits: cz.sample(model, 1000, **limits),
    "sample gibbs": lambda cz, model, **limits: cz.sample(model, 100, method="gibbs", **limits),
    "mode": lambda cz, model, **limits: cz.mode(model, **limits),
    "mode of five": lambda cz, model, **limits: cz.mode(model, num_best=5, **limits),
    "probability": lambda cz, model, **limits: cz.probability(model, {0: 0, 1: 0}, **limits),
    "log_ratio": lambda cz, model, **limits: cz.log_ratio(model, model.condition({0: 0}), **limits),
    "sweep": lambda cz, model, **limits: cz.sweep(model, [0.5, 1.0], **limits),
    "fit": lambda cz, model, **limits: cz.fit(model, half_hidden(model), l2=0.1, **limits),
}


def half_hidden(model: Any) -> Any:
    """Rows of data for a model, in each of which half of the variables are not seen."""
    import numpy as np

    rows = np.zeros((4, model.num_variables), dtype=np.int64)
    rows[::2, ::2] = rows[1::2, 1::2] = -1
    return rows


class Case(NamedTuple):
    """A call on a shape with its limits; with `interrupt`, Ctrl-C comes after that many seconds."""

    call: str
    shape: str
    limits: dict[str, Any]
    interrupt: float | None = None


def measure(case: Case) -> dict[str, Any]:
    """One call, in this process."""
    import clampz as cz

    signal.signal(signal.SIGINT, signal.default_int_handler)
    call, shape = CALLS[case.call], SHAPES[case.shape]
    toy = shape.small()
    for more in ({}, {"exact": False}) if case.call.startswith("bound") else ({},):
        with suppress(cz.errors.ClampzError):  # data that the toy has no configuration for, say
            call(cz, toy, time=5.0, **more)
    model = shape.large()
    forget_peak()
    held = peak_megabytes()
    rung: list[float] = []

    def ring() -> None:
        rung.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    alarm = threading.Timer(case.interrupt or 0.0, ring)
    alarm.daemon = True
    if case.interrupt is not None:
        alarm.start()
    began, cpu = time.perf_counter(), time.process_time()
    try:
        answer = repr(call(cz, model, **case.limits))
    except (Exception, KeyboardInterrupt) as error:
        answer = f"{type(error).__name__}: {error}"
    ended = time.perf_counter()
    alarm.cancel()
    return {
        "seconds": ended - began,
        "cpu": time.process_time() - cpu,
        "megabytes": peak_megabytes() - held,
        "heard": ended - rung[0] if rung else None,
        "answer": answer[:200],
    }


def cases(seconds: float, quick: bool) -> Iterator[Case]:
    """All that is tried: a limit of time alone, one of memory too, and Ctrl-C at some moment."""
    moment = random.Random(0)
    for shape in SHAPES:
        for call in CALLS:
            if quick and (call not in ("mean_field", "exact", "bound") or "10^6" in shape or "1000x" in shape):
                continue
            yield Case(call, shape, {"time": seconds, "threads": 1})
            if quick:
                continue
            for memory in ("50MB", "500MB"):
                yield Case(call, shape, {"time": seconds, "threads": 1, "memory": memory})
            yield Case(call, shape, {"time": 20.0, "threads": 1}, round(moment.uniform(0.0, 1.5), 2))


def main(quick: bool, only: str = "", seconds: float = 2.0) -> list[Claim]:
    rows, missed, tried = [], 0, 0
    for case in cases(seconds, quick):
        if only not in f"{case.call} on {case.shape} {'memory' if 'memory' in case.limits else ''}":
            continue
        try:
            found = in_fresh_process(__file__, "--measure", json.dumps(case))
        except RuntimeError as error:
            found = {"seconds": 0.0, "cpu": 0.0, "megabytes": 0.0, "heard": None, "answer": f"CRASH {error}"[-200:]}
        memory = float(case.limits.get("memory", "0MB")[:-2])
        faults = []
        if case.interrupt is None and found["seconds"] > MORE_TIME * case.limits["time"] + MORE_SECONDS:
            faults.append("LATE")
        if memory and found["megabytes"] > MORE_MEMORY * memory + MORE_MEGABYTES:
            faults.append("LARGE")
        if found["heard"] is not None and (found["heard"] > ANSWER_SECONDS or "KeyboardInterrupt" in found["answer"]):
            faults.append("DEAF")
        if found["answer"].startswith(("CRASH", "MemoryError")):
            faults.append("CRASH")
        tried, missed = tried + 1, missed + bool(faults)
        heard = "" if found["heard"] is None else f"{found['heard']:.2f} at {case.interrupt}"
        took = (found["seconds"], found["cpu"], memory or "", found["megabytes"], heard)
        name = f"{case.call}, {case.shape}"
        rows.append([name, case.limits["time"], *took, " ".join(faults), found["answer"][:70]])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["call", "asked s", "took", "cpu", "asked MB", "took", "Ctrl-C heard after", "", "answer"]
    print_table("Limits: what was asked for, and what it took", header, rows)
    return [Claim(f"limits not kept, of {tried}", float(missed), "<=", 0.0)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Case(*json.loads(sys.argv[2])))))
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--quick", action="store_true", help="three calls, no more than 10^5 variables, time alone")
        parser.add_argument("--only", default="", metavar="WORD", help="calls and shapes that have it in their names")
        parser.add_argument("--time", type=float, default=2.0, help="seconds that every call is given")
        chosen = parser.parse_args()
        print_claims(main(chosen.quick, chosen.only, chosen.time))
