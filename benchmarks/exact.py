"""Time of exact inference, log Z and all marginals, beside pyAgrum, dwave-samplers and cotengra (log Z only), whichever
can be imported.

    python benchmarks/exact.py [repeats]

Every method runs once to warm up; then all take turns, in one process, and the medians are compared.  Each call starts
from the model and includes the search for an elimination order.  Ratios are the other's time over that of clampz: above
1, clampz is quicker.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

import clampz as cz

Run = Callable[[], float | None]


@dataclass
class Problem:
    """A binary model: theta_i x_i and W_ij / 2 [x_i = x_j]."""

    name: str
    theta: np.ndarray
    W: np.ndarray
    edges: np.ndarray


def problems() -> Iterator[Problem]:
    rng = np.random.default_rng(0)

    def problem(name: str, n: int, edges: list[tuple[int, int]]) -> Problem:
        distinct = np.array(sorted({(min(e), max(e)) for e in edges}))
        return Problem(name, rng.uniform(-2, 2, n), rng.uniform(-6, 6, len(distinct)), distinct)

    for size in (5, 7, 9):
        cells = [(i, j) for i in range(size) for j in range(size)]
        right = [(i * size + j, i * size + (j + 1) % size) for i, j in cells]
        down = [(i * size + j, (i + 1) % size * size + j) for i, j in cells]
        yield problem(f"torus {size}x{size}", size * size, right + down)
    for n in (10, 15, 20):
        yield problem(f"K{n}", n, [(i, j) for i in range(n) for j in range(i)])


def clampz_run(problem: Problem, *, marginals: bool = True) -> Run:
    model = cz.Model.from_binary(problem.theta, problem.W, problem.edges)

    def run() -> float:
        estimate = cz.exact(model, marginals=marginals)
        if marginals:
            _ = estimate.pairwise_marginals
        return estimate.log_z

    return run


def pyagrum_run(problem: Problem) -> Run:
    import pyagrum

    n = len(problem.theta)
    field = pyagrum.MarkovRandomField()
    for i in range(n):
        field.add(pyagrum.LabelizedVariable(str(i), "", 2))
    for i in range(n):
        field.addFactor([str(i)])[:] = [1, np.exp(problem.theta[i])]
    for (i, j), w in zip(problem.edges, problem.W, strict=True):
        field.addFactor([str(i), str(j)])[:] = [[np.exp(w / 2), 1], [1, np.exp(w / 2)]]

    def run() -> None:
        inference = pyagrum.ShaferShenoyMRFInference(field)
        inference.makeInference()
        for i in range(n):
            inference.posterior(i)

    return run


def dwave_run(problem: Problem) -> Run:
    import dimod
    from dwave.samplers import TreeDecompositionSampler

    bqm = dimod.BinaryQuadraticModel("BINARY")
    for i, theta in enumerate(problem.theta):
        bqm.add_linear(i, -theta)
    for (i, j), w in zip(problem.edges.tolist(), problem.W, strict=True):
        bqm.add_quadratic(i, j, -w)
        bqm.add_linear(i, w / 2)
        bqm.add_linear(j, w / 2)
        bqm.offset -= w / 2
    sampler = TreeDecompositionSampler()

    def run() -> float:
        sample = sampler.sample(bqm, num_reads=1, marginals=True, beta=1.0)
        return float(sample.info["log_partition_function"])

    return run


def cotengra_run(problem: Problem) -> Run:
    import cotengra

    inputs = [(str(i),) for i in range(len(problem.theta))] + [(str(i), str(j)) for i, j in problem.edges]
    arrays = [np.array([1.0, np.exp(theta)]) for theta in problem.theta]
    arrays += [np.array([[np.exp(w / 2), 1.0], [1.0, np.exp(w / 2)]]) for w in problem.W]
    sizes = {str(i): 2 for i in range(len(problem.theta))}

    def run() -> float:
        tree = cotengra.array_contract_tree(inputs, (), sizes, optimize="greedy")
        return float(np.log(tree.contract(arrays)))

    return run


def main(repeats: int) -> None:
    makers = {
        "clampz": clampz_run, "clampz log Z": lambda p: clampz_run(p, marginals=False),
        "pyAgrum": pyagrum_run, "dwave": dwave_run, "cotengra log Z": cotengra_run,
    }  # fmt: skip
    print(f"{'ms, median':14}" + "".join(f"{name:>16}" for name in makers) + "   ratios to clampz (log Z to log Z)")
    for problem in problems():
        runs: dict[str, Run] = {}
        for name, make in makers.items():
            with suppress(ImportError):
                runs[name] = make(problem)
        answers = {name: run() for name, run in runs.items()}
        for name, log_z in answers.items():
            if log_z is not None and abs(log_z - (answers["clampz"] or 0.0)) > 1e-6:
                print(f"{problem.name}: {name} found log Z = {log_z}, clampz {answers['clampz']}")
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(repeats):
            for name, run in runs.items():
                begin = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - begin)
        medians = {name: float(np.median(t)) for name, t in times.items()}
        cells = [f"{1e3 * medians[name]:16.2f}" if name in medians else f"{'-':>16}" for name in makers]
        bases = {"pyAgrum": "clampz", "dwave": "clampz", "cotengra log Z": "clampz log Z"}
        ratios = [f"{name} {medians[name] / medians[base]:.1f}x" for name, base in bases.items() if name in medians]
        print(f"{problem.name:14}" + "".join(cells) + "   " + ", ".join(ratios), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
