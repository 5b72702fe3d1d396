"""Exact sums by contraction beside cotengra's, on the files given and open grids: log Z and marginals.

    OMP_NUM_THREADS=1 python benchmarks/contraction.py [FILE ...] [--side 20] [--repeats 5] [--search 20]

cotengra's tree is the best of its greedy and its hyper-optimised ones (`--search` seconds), its backend NumPy.  All run
in one process, and the best times are compared; threads of NumPy's library that wait in a loop would slow down whatever
runs beside them, hence one.  Ratios are the time of clampz over
cotengra's: below 1, clampz is quicker.  A file FILE.evid beside a file is its evidence.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import cotengra
import numpy as np

import clampz as cz
from clampz.elimination.exact import ExactOptions, run_exact
from clampz.elimination.plans import ExactPlan, Restriction, Scopes
from clampz.model.batch import Batch


class Timing(NamedTuple):
    """Seconds to plan and to sum, log Z, and bytes of the tables."""

    plan: float
    total: float
    log_z: float
    num_bytes: float


def models(files: list[Path], side: int) -> Iterator[tuple[str, cz.Model]]:
    for path in files:
        evidence = path.with_name(path.name + ".evid")
        yield path.stem, cz.read(path, evidence=evidence if evidence.exists() else None)
    yield f"open {side}x{side}", cz.generators.grid(side, side, toroidal=False, rng=0)


def best_time(repeats: int, run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def clampz_timing(model: cz.Model, repeats: int, *, marginals: bool) -> Timing:
    batch, options = Batch.of(model), ExactOptions(marginals=marginals, threads=1)
    plan = ExactPlan.of(batch, marginals=marginals)
    began = time.perf_counter()
    plan = ExactPlan.of(batch, marginals=marginals)
    planning = time.perf_counter() - began
    total = best_time(repeats, lambda: run_exact(batch, options, None, plan))
    log_z = float(run_exact(batch, options, None, plan).log_z[0])
    return Timing(planning, total, log_z, plan.elimination.num_bytes(marginals))


def cotengra_timing(model: cz.Model, repeats: int, search: float) -> Timing:
    batch = Batch.of(model)
    restricted = Restriction.of(Scopes.of(model), np.logical_or.reduce(batch.possible, axis=1))
    values = np.concatenate([batch.unary[:, 0], model.pairwise.flat, model.factors.flat])[restricted.entries]
    scopes, constant = restricted.scopes, model.constant
    names = [chr(0x4E00 + i) for i in range(len(scopes.num_states))]
    inputs, arrays = [], []
    for f in range(scopes.num_factors):
        variables = scopes.variables[scopes.start[f] : scopes.start[f + 1]]
        table = values[scopes.table_start[f] : scopes.table_start[f + 1]]
        constant += table.max()
        if len(variables):
            inputs.append("".join(names[v] for v in variables))
            arrays.append(np.exp(table - table.max()).reshape(scopes.num_states[variables]))
    sizes = dict(zip(names, scopes.num_states.tolist(), strict=True))
    found = []
    greedy = cotengra.GreedyOptimizer()
    hyper = cotengra.HyperOptimizer(
        max_time=search, max_repeats=10**6, minimize="combo", parallel=False, reconf_opts={}, progbar=False
    )
    for optimizer in (greedy, hyper):
        began = time.perf_counter()
        tree = optimizer.search(inputs, "", sizes)
        planning = time.perf_counter() - began
        if tree.contraction_width() > 28:
            continue
        total = best_time(repeats, lambda tree=tree: tree.contract(arrays, backend="numpy"))
        log_z = constant + float(np.log(tree.contract(arrays, backend="numpy")))
        found.append(Timing(planning, total, log_z, 8 * tree.peak_size()))
    nothing = Timing(np.nan, np.nan, np.nan, np.nan)
    return min(found, key=lambda timing: timing.total, default=nothing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--side", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--search", type=float, default=20.0)
    options = parser.parse_args()
    print("model            log Z: clampz  cotengra  ratio | planned too: clampz  cotengra | marginals / log Z |   MB")
    for name, model in models(options.files, options.side):
        other = cotengra_timing(model, options.repeats, options.search)
        ours = clampz_timing(model, options.repeats, marginals=False)
        both = clampz_timing(model, options.repeats, marginals=True)
        assert np.isnan(other.log_z) or abs(ours.log_z - other.log_z) < 1e-6 * (1 + abs(ours.log_z))
        print(
            f"{name:16s} {ours.total:13.4f} {other.total:9.4f} {ours.total / other.total:6.2f} |"
            f" {ours.plan + ours.total:19.3f} {other.plan + other.total:9.3f} | {both.total / ours.total:17.2f} |"
            f" {ours.num_bytes / 1e6:4.0f}, {other.num_bytes / 1e6:.0f} in cotengra",
            flush=True,
        )


if __name__ == "__main__":
    main()
