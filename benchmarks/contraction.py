"""Contractions alone, beside cotengra's along the best trees it finds: log Z, and what marginals add.

    python benchmarks/contraction.py [--quick]

cotengra's tree is the best of its greedy and its hyper-optimised ones (of 3 or 20 seconds), its backend NumPy.  Each
model has a process of its own, with one thread on either side: threads of NumPy's library that wait in a loop slow down
whatever runs beside them.  Models are wide ones, and those of the folder that CLAMPZ_UAI names.  Ratios are the time of
clampz over cotengra's: below 1, clampz is quicker.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import clampz as cz
from clampz.exact_inference.lanes import ExactOptions, run_exact
from clampz.exact_inference.scopes import Restriction, Scopes
from clampz.exact_inference.sums import lay_out_lanes
from clampz.exact_inference.trees import SumTree
from clampz.model.batch import Batch
from timing import Claim, alone, in_fresh_process, interleaved, peer, print_table, read_with_evidence, uai_files, worst

MODELS: dict[str, Callable[[], cz.Model]] = {
    "open 16x16": partial(cz.generators.grid, 16, 16, toroidal=False, rng=0),
    "torus 9x9": partial(cz.generators.grid, 9, 9, weights=(-6, 6), rng=0),
    "K20": partial(cz.generators.complete, 20, weights=(-6, 6), rng=0),
    "open 20x20": partial(cz.generators.grid, 20, 20, toroidal=False, rng=0),
}
# Binary digits of the largest table that cotengra may make, and of what a process has.
MOST_WIDTH, GIGABYTES = 28, 16.0


@dataclass(frozen=True)
class Network:
    """A model as cotengra takes it: the variables of each table, and its entries over the largest of them."""

    inputs: list[str]
    sizes: dict[str, int]
    arrays: list[np.ndarray[Any, Any]]
    constant: float

    @classmethod
    def of(cls, model: cz.Model) -> "Network":
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
        return cls(inputs, dict(zip(names, scopes.num_states.tolist(), strict=True)), arrays, constant)

    @property
    def shape(self) -> tuple[list[str], str, dict[str, int]]:
        return self.inputs, "", self.sizes

    def log_z(self, tree: Any) -> float:
        return self.constant + float(np.log(tree.contract(self.arrays, backend="numpy")))


def measure(model: str, repeats: int, search: float) -> dict[str, float]:
    """Seconds to plan and to sum, and bytes of the tables, on either side."""
    made = MODELS[model]() if model in MODELS else read_with_evidence(Path(model))
    batch, network, cotengra = Batch.of(made), Network.of(made), peer("cotengra")
    plans = {marginals: lay_out_lanes(batch, marginals=marginals) for marginals in (False, True)}
    runs = {
        ("both" if marginals else "ours"): partial(
            run_exact, batch, ExactOptions(marginals=marginals, threads=1), None, plan
        )
        for marginals, plan in plans.items()
    }
    optimizers = {
        "greedy": cotengra.GreedyOptimizer(),
        "hyper": cotengra.HyperOptimizer(
            max_time=search, max_repeats=10**6, minimize="combo", parallel=False, reconf_opts={}, progbar=False
        ),
    }
    planning, trees = {}, {}
    for name, optimizer in optimizers.items():
        began = time.perf_counter()
        tree = optimizer.search(*network.shape)
        planning[name] = time.perf_counter() - began
        if tree.contraction_width() <= MOST_WIDTH:
            trees[name], runs[name] = tree, partial(network.log_z, tree)
    log_z = float(runs["ours"]().log_z[0])
    for name in trees:
        assert abs(runs[name]() - log_z) < 1e-6 * (1 + abs(log_z)), f"{model}: {runs[name]()} and {log_z}"
    plan = interleaved({"plan": partial(SumTree.of, batch, marginals=False)}, 1)["plan"]
    seconds = interleaved(runs, repeats)
    nothing = float("nan")
    return {
        "ours": seconds["ours"],
        "ours planned": plan + seconds["ours"],
        "both": seconds["both"],
        "ours MB": plans[False].elimination.num_bytes(False) / 1e6,
        "theirs": min((seconds[name] for name in trees), default=nothing),
        "theirs planned": min((planning[name] + seconds[name] for name in trees), default=nothing),
        "theirs MB": min((8 * tree.peak_size() / 1e6 for tree in trees.values()), default=nothing),
    }


def main(quick: bool) -> list[Claim]:
    peer("cotengra")
    rows: list[list[Any]] = []
    found: dict[str, dict[str, float]] = {}
    for model in [*list(MODELS)[: 3 if quick else None], *map(str, uai_files("Promedus" if quick else ""))]:
        asked = json.dumps([model, *((3, 3.0) if quick else (5, 20.0))])
        name = Path(model).name
        try:
            m = in_fresh_process(__file__, "--measure", asked, seconds=300.0, gigabytes=GIGABYTES, OMP_NUM_THREADS="1")
        except RuntimeError as error:
            rows.append([name, str(error).strip().splitlines()[-1][-60:], *[""] * 8])
            continue
        found[name] = m
        times = [m["ours"], m["theirs"], m["ours"] / m["theirs"]]
        planned = [m["ours planned"], m["theirs planned"], m["ours planned"] / m["theirs planned"]]
        rows.append([name, *times, *planned, m["both"] / m["ours"], m["ours MB"], m["theirs MB"]])
        print(*rows[-1], sep=" | ", flush=True)
    header = ["model", "clampz s", "cotengra s", "ratio", "planned too: clampz", "cotengra", "ratio"]
    header += ["marginals / log Z", "MB", "cotengra's MB"]
    print_table("Contractions on one thread, quickest of cotengra's trees", header, rows)
    alone_, planned_, more = (
        {name: m[ours] / m[theirs] for name, m in found.items()}
        for ours, theirs in (("ours", "theirs"), ("ours planned", "theirs planned"), ("both", "ours"))
    )
    return [
        *worst("contraction: clampz / cotengra's best tree, planning left out", alone_, "<=", 1.0),
        *worst("contraction: clampz / cotengra, planning included", planned_, "<=", 1.0),
        *worst("contraction: marginals and log Z / log Z alone", more, "<=", 4.0),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
    else:
        alone(main)
