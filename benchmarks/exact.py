"""Exact inference beside pyAgrum and dwave-samplers (log Z and all marginals) and cotengra (log Z), as users call them.

    python benchmarks/exact.py [--quick]

Every call starts from the model, and the search for an order is part of it (`contraction.py` leaves it out, and gives
cotengra time to find its best trees).  A peer and clampz take turns in a process of their own for each model, small,
wide, and of the folder that CLAMPZ_UAI names.  What a peer cannot do in the seconds and the memory of that process says
so, and has no ratio.  Ratios are the peer's time over that of clampz: above 1, clampz is quicker.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import clampz as cz
from contraction import Network
from timing import (
    Claim,
    MissingError,
    alone,
    in_fresh_process,
    interleaved,
    peer,
    print_table,
    read_with_evidence,
    uai_files,
    worst,
)

MODELS: dict[str, Callable[[], cz.Model]] = {
    **{f"torus {n}x{n}": partial(cz.generators.grid, n, n, weights=(-6, 6), rng=0) for n in (5, 7, 9)},
    **{f"K{n}": partial(cz.generators.complete, n, weights=(-6, 6), rng=0) for n in (10, 15, 20)},
    **{f"open {n}x{n}": partial(cz.generators.grid, n, n, toroidal=False, rng=0) for n in (12, 16, 20)},
}
QUICK = ("torus 7x7", "K10", "open 12x12")
# What a process has for all its turns, and the seconds that turns of one run may take in all.
SECONDS, GIGABYTES, TURNS = 60.0, 8.0, 5.0
# How far two answers may be apart, times the value where that is larger.
SAME = 1e-6

Answer = tuple[float | None, np.ndarray[Any, Any] | None]


def by_clampz(model: cz.Model, *, marginals: bool) -> Answer:
    found = cz.exact(model, marginals=marginals)
    return found.log_z, found.marginals.flat if marginals else None


def by_pyagrum(model: cz.Model) -> Callable[[], Answer]:
    field, inference = cz.to_pyagrum(model), peer("pyagrum.markov_random_field", "pyagrum").ShaferShenoyMRFInference

    def run() -> Answer:
        found = inference(field)
        found.makeInference()
        return None, np.concatenate([found.posterior(i).toarray() for i in range(model.num_variables)])

    return run


def by_dwave(model: cz.Model) -> Callable[[], Answer]:
    quadratic = cz.to_dimod(model)
    sampler = peer("dwave.samplers", "dwave-samplers").TreeDecompositionSampler()

    def run() -> Answer:
        found = sampler.sample(quadratic, num_reads=1, marginals=True, beta=1.0)
        ones = np.array([found.info["variable_marginals"][i] for i in range(model.num_variables)])
        return float(found.info["log_partition_function"]), np.stack([1 - ones, ones], axis=1).ravel()

    return run


def by_cotengra(model: cz.Model) -> Callable[[], Answer]:
    network, cotengra = Network.of(model), peer("cotengra")

    def run() -> Answer:
        return network.log_z(cotengra.array_contract_tree(*network.shape, optimize="greedy")), None

    return run


class Peer(NamedTuple):
    """Another library: how it is called, and whether marginals are part of what it does."""

    run: Callable[[cz.Model], Callable[[], Answer]]
    marginals: bool


PEERS = {"pyAgrum": Peer(by_pyagrum, True), "dwave": Peer(by_dwave, True), "cotengra": Peer(by_cotengra, False)}


def measure(model: str, name: str, repeats: int) -> dict[str, float]:
    """Seconds of both, in this process, and by how much their answers differ."""
    made, other = MODELS[model]() if model in MODELS else read_with_evidence(Path(model)), PEERS[name]
    runs = {"clampz": partial(by_clampz, made, marginals=other.marginals), "peer": other.run(made)}
    (log_z, marginals), (theirs, their_marginals) = (run() for run in runs.values())
    began = time.perf_counter()
    runs["peer"]()
    repeats = max(1, min(repeats, int(TURNS / (time.perf_counter() - began))))
    differs = [0.0 if theirs is None else abs(log_z - theirs) / max(1.0, abs(log_z))]
    if marginals is not None and their_marginals is not None:
        differs.append(float(abs(marginals - their_marginals).max()))
    return interleaved(runs, repeats) | {"differs": max(differs)}


def models(quick: bool) -> Iterator[str]:
    yield from QUICK if quick else MODELS
    yield from map(str, uai_files("Promedus" if quick else ""))


def main(quick: bool) -> list[Claim]:
    missing = []
    for name, other in list(PEERS.items()):
        try:
            other.run(cz.Model([[0.0, 0.0]]))()
        except MissingError as reason:
            missing.append(f"{name}: {reason}")
    present = [name for name in PEERS if not any(said.startswith(name) for said in missing)]
    if not present:
        raise MissingError("; ".join(missing))
    print(*missing, sep="\n")
    rows: list[list[Any]] = []
    ratios: dict[str, dict[str, float]] = {name: {} for name in present}
    wrong = 0
    for model in models(quick):
        row: list[Any] = [Path(model).name]
        for name in present:
            asked = json.dumps([model, name, 3 if quick else 7])
            try:
                found = in_fresh_process(__file__, "--measure", asked, seconds=SECONDS, gigabytes=GIGABYTES)
            except RuntimeError as error:
                row += ["", "", str(error).strip().splitlines()[-1][-40:]]
                continue
            ratios[name][row[0]] = found["peer"] / found["clampz"]
            wrong += found["differs"] > SAME
            row += [1e3 * found["clampz"], 1e3 * found["peer"], ratios[name][row[0]]]
        rows.append(row)
        print(*row, sep=" | ", flush=True)
    header = ["model"] + [text for name in present for text in ("clampz ms", f"{name} ms", "ratio")]
    print_table("Exact sums from the model on, default options; with marginals but for cotengra", header, rows)
    claims = [Claim("exact: answers that differ from a peer's", float(wrong), "<=", 0.0)]
    for name in present:
        what = f"exact: {name}'s time / clampz's, {'with marginals' if PEERS[name].marginals else 'log Z'}"
        claims += worst(what, ratios[name], ">=", 1.0)
    return claims


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
    else:
        alone(main)
