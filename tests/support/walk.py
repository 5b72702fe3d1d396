"""A walk through the package by its public calls that reaches every kernel: models of every kind, each small."""

import importlib
import itertools
import pkgutil
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
from planar_models import planar_sum

import clampz as cz
from clampz import _kernels
from clampz.approximations.mini_buckets.batched import optimise_together
from clampz.approximations.mini_buckets.beliefs import beliefs, losses
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.proposals import Proposal
from clampz.approximations.mini_buckets.structure import Structure
from clampz.exact_inference.insertion import Insertion
from clampz.exact_inference.presolved import PresolvedBatch
from clampz.exact_inference.sums import lay_out_lanes
from clampz.map_inference.components import Component, Limits
from clampz.map_inference.heuristics import heuristic
from clampz.map_inference.local_search import Terms
from clampz.model_counting import circuits
from clampz.model_counting.encoding import encode
from clampz.presolve.simplified import postsolve
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import UNLIMITED, Budget

# By their paths below the kernels: several folders have a module of one name.
MODULES = {
    info.name.removeprefix(f"{_kernels.__name__}."): importlib.import_module(info.name)
    for info in pkgutil.walk_packages(_kernels.__path__, f"{_kernels.__name__}.")
}
EXACT = 1e-9
# Kernels and what is inlined into them, each under the module that it is written in.
KERNELS: dict[str, Any] = {
    f"{home}.{name}": value
    for home, module in MODULES.items()
    for name, value in vars(module).items()
    if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__
}


def models() -> dict[str, cz.Model]:
    """Of every kind that kernels tell apart: shapes, labels, hard zeros, strengths, larger factors."""
    rng = np.random.default_rng(0)
    triangle = ((0, 1), (1, 2), (0, 2))
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    edges = {"cycle": [(i, (i + 1) % 4) for i in range(4)], "wheel": [(0, i) for i in range(1, 6)] + [(1, 2), (4, 5)]}
    return {
        "one state": cz.Model([[0.5]]),
        "one variable": cz.Model([[0.0, 1.0]]),
        "no edges": cz.Model(rng.normal(size=(5, 2))),
        "a path": cz.generators.from_graph(7, [(i, i + 1) for i in range(6)], rng=0),
        "a star of labels": cz.Model(
            [rng.normal(size=k) for k in (5, 1, 2, 3, 9)],
            {(0, i): rng.normal(size=(5, k)) for i, k in enumerate((1, 2, 3, 9), 1)},
        ),
        "a grid": cz.generators.grid(3, 3, rng=0),
        "attractive": cz.generators.lamp(weights=(0, 3), rng=0),
        "strong": cz.generators.complete(7, weights=(-3000, 3000), rng=0),
        "labels": cz.generators.cycle(5, labels=3, potentials="table", rng=0),
        "many labels": cz.generators.cycle(3, labels=20, potentials="table", rng=0),
        "strong labels": cz.Model(np.zeros((3, 4)), {e: 2000 * rng.normal(size=(4, 4)) for e in triangle}),
        "hard": cz.Model(np.zeros((4, 2)), {e: [[0.0, -np.inf], [0.5, 0.0]] for e in edges["cycle"]}),
        "colouring": cz.Model(np.zeros((6, 3)), dict.fromkeys(edges["wheel"], differ)),
        "impossible": cz.Model(np.zeros((4, 3)), {(i, j): differ for i in range(4) for j in range(i)}),
        "equal": cz.Model(
            rng.normal(size=(6, 2)),
            {(0, 1): np.where(np.eye(2) > 0, 0.5, -np.inf)}
            | {e: rng.normal(size=(2, 2)) for e in [(1, 2), (2, 3), (0, 3)]},
            factors=[((0, 1, 4), rng.normal(size=(2, 2, 2))), ((1, 3, 5), rng.normal(size=(2, 2, 2)))],
        ),
        "factors": cz.Model(
            rng.normal(size=(6, 2)),
            {(0, 1): rng.normal(size=(2, 2))},
            factors=[((i, i + 1, i + 2), rng.normal(size=(2, 2, 2))) for i in range(4)],
        ),
    }


def unreached(called: set[str]) -> list[str]:
    """The kernels that are neither called nor called by these: one that comes from the cache compiles nothing that it
    calls."""
    name_of = {value: name for name, value in KERNELS.items()}
    found, waiting = set(called), list(called)
    while waiting:
        function = KERNELS[waiting.pop()].py_func
        # by name, or as part of a module
        names, scope = function.__code__.co_names, function.__globals__
        spaces = [scope, *(vars(scope[name]) for name in names if isinstance(scope.get(name), ModuleType))]
        for value in (space[name] for space in spaces for name in names if name in space):
            name = name_of.get(value) if hasattr(value, "py_func") else None
            if name is not None and name not in found:
                found.add(name)
                waiting.append(name)
    return sorted(KERNELS.keys() - found)


def walk() -> None:
    """Every method on every model, alone and in batches, from starts and under evidence; clamps by every selector;
    brackets and intervals.  What is a bound is held against exact inference."""
    for name, model in models().items():
        walk_methods(name, model)
        walk_clamps(model)
        walk_brackets(name, model)
        walk_simplifications(name, model)
        walk_planar(name, model)
        walk_regions(name, model)
        walk_samples(model)
        for num_best in (1, 3):
            found = cz.mode(model, num_best=num_best)
            assert found.is_optimal and found.lower <= found.upper, name
    walk_regions("K9", cz.generators.complete(9, rng=0))
    walk_modes()
    walk_circuits()
    cz.scores(cz.generators.grid(23, 23, rng=0), "Mpower")  # walks are counted, not inverted
    with suppress(cz.errors.TooWideError):  # of a graph as large a part is looked at first
        cz.exact(cz.generators.grid(260, 260, rng=0))
    with suppress(cz.errors.TooWideError):  # orders by the shape of the graph are tried where a sum is worth it
        cz.exact(cz.generators.grid(12, 12, rng=0), memory="1MB")
    for weights in ((-2, 2), (-900, 900)):  # long enough to be contracted, as numbers and as logarithms
        cz.exact(cz.generators.grid(9, 9, weights=weights, rng=0))
    large = cz.generators.grid(120, 120, rng=0)  # ranges of slots, a thread for each
    for method in (cz.mean_field, cz.bethe, cz.trw):
        method(large, max_iter=2, threads=2)


def walk_modes() -> None:
    """Where buckets are split: a search that has open nodes, and configurations that climb."""
    model = cz.generators.complete(9, weights=(-6, 6), rng=0)
    whole = Component.of(model, np.arange(9), Limits(gap=1e-9, num_best=1, num_bytes=1e8, seed=1))
    terms, rng = Terms.of(model, UNLIMITED), np.random.default_rng(0)
    whole.take(terms.anneal(terms.climb(whole.begin, 20, rng, UNLIMITED), 20, rng, UNLIMITED))
    whole.search_by(heuristic(model, Budget(), 1.0, Structure.of(model, 4, budget=UNLIMITED)))
    whole.search_on(10**6, Budget())
    whole.take_search()
    assert whole.is_done and whole.lower <= whole.upper


def walk_circuits() -> None:
    """A circuit of two variables, the first of which implies the second."""
    clauses = encode(cz.Model(np.zeros((2, 2)), {(0, 1): [[0.0, 0.0], [-np.inf, 0.0]]}))
    circuit = circuits.checked(b"nnf 5 4 2\nL 1\nL 2\nA 2 0 1\nL -1\nO 1 2 2 3\n", clauses, Budget(), 10**8)
    assert abs(circuit.log_count - np.log(3.0)) < EXACT
    assert abs(circuit.probabilities()[4] - 2 / 3) < EXACT
    assert circuits.completed(circuit, clauses, Budget(), 10**9).is_complete


def walk_methods(name: str, model: cz.Model) -> None:
    rng = np.random.default_rng(0)
    log_z = cz.exact(model).log_z
    batch = cz.Batch(model, rng.normal(size=(len(model.unary.flat), 9)))
    settings: list[tuple[Any, dict[str, Any]]] = [(method, {}) for method in cz.methods().values()]
    settings += [(cz.trw, {"edge_weights": kind, "num_steps": 2}) for kind in ("sampled", "optimized")]
    sums = cz.exact(batch).log_z
    for method, options in settings:
        options = {**options, "max_iter": 20}
        estimate = method(model, **options)
        assert estimate.lower <= log_z <= estimate.upper, (name, method)
        estimates = method(batch, threads=2, **options)
        assert (estimates.lower <= sums + EXACT).all(), (name, method)
        assert (estimates.upper >= sums - EXACT).all(), (name, method)
        if log_z > -np.inf:
            estimate.pairwise_marginals  # noqa: B018 (computed when asked for)
            estimates[3].pairwise_marginals  # noqa: B018
        if method is not cz.exact:
            starts = [estimate] if log_z > -np.inf else []
            for start in starts:
                assert method(model, start=start, **options).lower <= log_z
            for start in (estimates, cz.mean_field(batch, max_iter=2)):
                assert (method(batch, start=start, **options).lower <= sums + EXACT).all()
        method(model, evidence=[{0: 0}, {0: len(model.unary[0]) - 1}, {}], **options)


def walk_clamps(model: cz.Model) -> None:
    log_z = cz.exact(model).log_z
    selectors = [name for name in cz.selectors() if model.pair_form is not None or "Cycles" not in name]
    selectors += ["pseudo-greedy", "greedy"]
    for name in cz.methods():
        for select in selectors if name == "mean_field" else ["pseudo-greedy"]:
            found = cz.clamp(model, name, k=1, select=select, max_iter=20)
            assert found.lower <= log_z <= found.upper
        anew: dict[str, Any] = {"reweight": True, "edge_weights": "optimized"} if name == "trw" else {}
        cz.clamp(model, name, variables=[0], max_iter=20, **anew)


def walk_simplifications(name: str, model: cz.Model) -> None:
    """With every setting, and the postsolve; beliefs need not be true for that."""
    log_z = cz.exact(model).log_z
    for keep, options in itertools.product(((), (0,)), ({}, {"marginals": False}, {"pairwise": True})):
        found = simplify(model, keep, **options)
        log_rest = cz.exact(found.model).log_z
        assert log_rest == log_z or abs(log_rest - log_z) <= EXACT * max(1, abs(log_z)), (name, keep, options)
        if log_z > -np.inf and options != {"marginals": False}:
            rest = found.model
            beliefs = np.concatenate([rest.unary.flat, rest.pairwise.flat, rest.factors.flat])
            found.marginals(np.ones_like(beliefs))
            found.factor_marginals(np.ones_like(beliefs), lambda scope, rest=rest: np.ones(rest.num_states[[*scope]]))
    for operation in ("sum", "max"):
        found = simplify(model, operation=operation)
        if not found.infeasibility:
            found.states(np.zeros((2, found.model.num_variables), dtype=np.int64), rng=0)
    simpler = PresolvedBatch.of(cz.Batch.of(model), marginals=False)
    if log_z > -np.inf and not simpler.simplified.is_trivial:
        asked = [(v,) for v in postsolve(simpler.simplified).lost.tolist()] + [
            tuple(range(min(2, model.num_variables)))
        ]
        inserted = Insertion(simpler, lay_out_lanes(simpler.batch, marginals=False), asked, None, Budget())
        for scope, table in zip(asked, inserted.run(0, 1, Budget())[1], strict=True):
            assert np.allclose(table, cz.exact(model).joint(scope), atol=EXACT), (name, scope)


def walk_samples(model: cz.Model) -> None:
    """Of every kind; a model without configurations has none."""
    for method in ("auto", "weighted", "gibbs"):
        with suppress(cz.errors.ModelError):
            assert np.isfinite(cz.sample(model, 20, method=method, max_table=4, threads=1).scores).all()


def walk_brackets(name: str, model: cz.Model) -> None:
    log_z = cz.exact(model).log_z
    for options in ({}, {"exact": False, "gap": 1.0}, {"exact": False, "time": 0.0}, {"memory": "1MB"}):
        found = cz.bound(model, **{"time": 0.3, "threads": 1, **options})
        assert found.lower <= log_z <= found.upper, (name, options)
    if log_z > -np.inf:
        for exactly in (True, False):
            intervals = cz.bound_marginals(model, time=0.3, threads=1, exact=exactly)
            for i, marginal in enumerate(cz.exact(model).marginals):
                assert (intervals.lower[i] <= marginal + EXACT).all() and (intervals.upper[i] >= marginal - EXACT).all()


def walk_regions(name: str, model: cz.Model) -> None:
    log_z = cz.exact(model).log_z
    for options in ({}, {"grow": False, "last": [0]}, {"order": range(model.num_variables)}):
        tables = Tables.of(model, Structure.of(model, 4, budget=UNLIMITED, **options), budget=UNLIMITED)
        upper = BoundState.upper(tables, model.unary.flat, budget=UNLIMITED)
        optimise(upper, 12, budget=UNLIMITED)
        lower = BoundState.lower(tables, model.unary.flat, upper.x, budget=UNLIMITED)
        optimise(lower, 12, budget=UNLIMITED)
        assert lower.bound <= log_z <= upper.bound, name
        for side in (BoundState.upper, BoundState.lower):
            beside = [side(tables, model.unary.flat, upper.x, budget=UNLIMITED) for _ in range(3)]
            beside += (
                [BoundState.upper(tables, model.unary.flat, budget=UNLIMITED) for _ in range(3)]
                if side == BoundState.upper
                else []
            )
            optimise_together(beside, 4, budget=UNLIMITED)
            assert all(state.sign * (state.bound - log_z) >= 0.0 or state.bound == log_z for state in beside), name
        if upper.bound > -np.inf:
            beliefs(upper, budget=UNLIMITED)
            losses(upper, budget=UNLIMITED)
            proposal = Proposal.of(upper, model.unary.flat, budget=UNLIMITED)
            assert proposal is not None and (proposal.draw(0, 0).log_weights <= proposal.bound).all(), name


def walk_planar(name: str, model: cz.Model) -> None:
    """Without their singleton potentials some are planar, and repel."""
    if model.pair_form is None:
        assert planar_sum(model) is None
        return
    W = model.pair_form.W
    model = cz.Model(
        np.zeros((model.num_variables, 2)), {edge: -w * np.eye(2) for edge, w in zip(model.pairwise, W, strict=True)}
    )
    found, log_z = planar_sum(model, marginals=True), cz.exact(model).log_z
    assert found is None or abs(found.log_z - log_z) <= found.error + EXACT, name
