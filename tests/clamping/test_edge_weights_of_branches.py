"""Edge weights of TRW in clampings: optimized on from the parent's by default, restricted or chosen anew as asked."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from naive import enumerate_model
from random_models import random_binary, random_edges, random_tables

import clampz as cz
from clampz import generators
from clampz.clamping import clamping
from clampz.clamping.branches import split
from clampz.clamping.clamp import TRW_DEFAULTS, clamp_on
from clampz.method import ForestWeights
from clampz.numerics import log_sum_exp

DATA = Path(__file__).parent.parent / "data" / "reference"
# Of TRW, in nats, where values are compared; sums over branches that converge so far differ by as much.
TOL = 1e-7
CLOSE = 10 * TOL
# Of TRW by default: a branch's bound may be so much above its limit.
TRW_TOL = cz.options.TRWOptions().tol
# Equal but for rounding.
EXACT = 1e-9
# A branch's start and its batch decide where mean field and Bethe stop, within their own tolerance of 1e-6 per branch.
STOPPED = 1e-5

METHODS = ("trw", "bethe", "mf")
UNIFORM = {"edge_weights": "uniform", "tol": TOL}
OPTIONS = {"trw": UNIFORM, "bethe": {}, "mf": {}}


def grid(rng=0):
    return generators.grid(3, 3, rng=rng, weights=(-4, 4))


def labelled(rng=0):
    return generators.grid(3, 3, labels=3, potentials="table", rng=rng)


def random_model(rng, kind):
    """Of five variables, weak to strong."""
    scale = float(rng.choice([0.5, 2.0, 8.0]))
    edges = random_edges(rng, 5, float(rng.choice([0.6, 1.0])))
    if kind == "binary":
        return random_binary(rng, 5, edges, scale=scale)
    return random_tables(rng, rng.integers(2, 4, 5), edges, scale=scale / 2, zeros=0.15 if kind == "zeros" else 0.0)


# -- the default -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", json.loads((DATA / "clamping.json").read_text()))
def test_never_above_libdai(name):
    """Which computes its edge weights anew in every branch; restricted uniform ones are 0.3 to 1.6 nats above it."""
    libdai = json.loads((DATA / "clamping.json").read_text())[name]
    result = cz.clamp(cz.read(DATA / f"{name}.uai"), "trw", k=5, select="maxW")
    assert list(result.variables) == libdai["variables"] and result.converged
    assert all(step.upper < theirs for step, theirs in zip(result.steps, libdai["TRWBP"]["log_z"], strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["binary", "labels", "zeros"])
def test_bounds_hold_and_clamping_never_loosens_them(kind, seed):
    """In the raw sums, step by step: Theorem 2 with weights that are optimized on the way, to within the tolerance."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        model = random_model(rng, kind)
        log_z, _, _ = enumerate_model(model)
        order = rng.permutation(5)[:3].tolist()
        raw = np.array([step.raw_log_z for step in cz.clamp(model, "trw", variables=order).steps])
        assert (raw >= log_z - EXACT * (1 + abs(log_z))).all()
        assert (raw[1:] <= raw[:-1] + TRW_TOL).all()


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.large) for seed in range(3, 10))])
def test_thousands_of_models(seed):
    """A hundred of every graph, that differ in their fields: clamp by clamp no branch is looser than under the weights
    of its parent, no sum than the one before, and all are above log Z."""
    rng, count = np.random.default_rng(seed), 100
    options = cz.options.TRWOptions(**TRW_DEFAULTS)
    for scale in (0.5, 2.0, 8.0):
        model = random_binary(rng, 5, random_edges(rng, 5, 0.8), scale=scale)
        batch = cz.Batch(model, rng.uniform(-2, 2, (10, count)))
        log_z = cz.exact(batch).log_z
        for lane in range(3):  # the oracle, against one that shares no code with it
            alone = cz.Model(batch.unary[:, lane].reshape(5, 2), dict(model.pairwise.items()), constant=model.constant)
            assert log_z[lane] == pytest.approx(enumerate_model(alone)[0], abs=EXACT)
        owner, found = np.arange(count), cz.trw.solve(batch, options)
        before = found.upper
        for variable in rng.permutation(5)[:3]:
            batch, parent = split(batch, np.full(batch.num_lanes, variable))
            owner, start = owner[parent], found.take(parent)
            found, restricted = (
                cz.trw.solve(batch, options, start, weights=ForestWeights.of(start.state, optimize))
                for optimize in (True, False)
            )
            assert (found.upper <= restricted.upper + TRW_TOL).all()
            sums = np.array([log_sum_exp(found.upper[owner == lane]) for lane in range(count)])
            assert (sums <= before + TRW_TOL).all() and (sums >= log_z - EXACT).all()
            before = sums


def test_the_default_is_tighter_than_both_ways_of_the_paper():
    for model in (grid(), generators.complete(7, weights=(-6, 6), rng=0)):
        tight, restricted, anew = (
            cz.clamp(model, "trw", k=3, select="maxW", **weights)
            for weights in ({}, {"edge_weights": "uniform"}, {"edge_weights": "uniform", "reweight": True})
        )
        assert tight.upper < min(restricted.upper, anew.upper) - 0.01
        assert tight.upper >= cz.exact(model).log_z


def test_what_was_asked_for_is_in_the_result():
    model = grid()
    options = cz.clamp(model, "trw", k=1).options
    assert (options.edge_weights, options.num_steps) == ("optimized", 10)
    assert cz.clamp(model, "trw", k=1, edge_weights="optimized").upper == cz.clamp(model, "trw", k=1).upper
    assert cz.clamp(model, "trw", k=1, edge_weights="uniform").options.edge_weights == "uniform"
    assert cz.clamp(model, "trw", k=1, num_steps=2).options.num_steps == 2
    whole = cz.options.TRWOptions(tol=1e-4)
    assert cz.clamp(model, "trw", k=1, options=whole).options == whole
    assert cz.clamp(model, "trw", k=1, warm_starts=False).options == cz.options.TRWOptions()


def optimized_lanes(monkeypatch, model, **arguments):
    """How many lanes have their weights optimized in each solve of a clamping, and how many are solved in all."""
    seen = []
    run = clamping.Clamping._run

    def spy(self, method, batch, options, parents=None, weights=None):
        anew = options.is_optimized if weights is None else weights.optimize
        seen.append((batch.num_lanes if anew else 0, batch.num_lanes))
        return run(self, method, batch, options, parents, weights)

    with monkeypatch.context() as patch:
        patch.setattr(clamping.Clamping, "_run", spy)
        cz.clamp(model, "trw", **arguments)
    return tuple(map(list, zip(*seen, strict=True)))


@pytest.mark.parametrize(("select", "k"), [("greedy", 2), ("optimal", 1), ("pseudo-greedy", 2)])
def test_candidates_are_compared_under_the_weights_of_their_parents(monkeypatch, select, k):
    """So that choosing stays cheap: only the branches that stay have weights of their own."""
    anew, solved = optimized_lanes(monkeypatch, grid(), k=k, select=select)
    assert [count for count in anew if count] == [2**step for step in range(k + 1)]
    assert sum(solved) > sum(anew)
    anew, solved = optimized_lanes(monkeypatch, grid(), k=k, select=select, reweight=True)
    assert anew == solved
    anew, _ = optimized_lanes(monkeypatch, grid(), k=k, select=select, reweight=False)
    assert sum(anew) == 1


def test_branches_that_stay_go_on_from_what_was_tried():
    for model in (grid(), generators.complete(6, weights=(-6, 6), rng=2)):
        result = cz.clamp(model, "trw", k=2, select="greedy")
        restricted = cz.clamp(model, "trw", variables=result.variables, reweight=False)
        assert result.upper < restricted.upper - 0.01
        assert result.upper == pytest.approx(cz.clamp(model, "trw", variables=result.variables).upper, abs=0.05)


def test_weights_of_tables_are_those_of_the_root():
    """Optimized, restricted: each branch's own would need tables of its own.  They can be asked for."""
    model = labelled()
    root = cz.trw(model, **TRW_DEFAULTS)
    result = cz.clamp(model, "trw", k=2, select="maxW")
    np.testing.assert_array_equal(result.branches.state.rho, root.state.rho)
    assert result.steps[0].raw_log_z == root.upper < cz.trw(model).upper - 0.1
    anew = cz.clamp(model, "trw", variables=result.variables, reweight=True)
    assert cz.exact(model).log_z <= anew.upper < result.upper - 0.01


def test_an_estimate_is_gone_on_from():
    model = grid()
    known = cz.trw(model, edge_weights="optimized")
    result, restricted = (
        clamp_on(known, k=2, select="maxW", **weights) for weights in ({}, {"edge_weights": "uniform"})
    )
    assert result.steps[0].upper <= known.upper + TRW_TOL
    assert cz.exact(model).log_z <= result.upper < restricted.upper - 0.01


def test_stopped_in_the_middle():
    """Whenever it is: what there is holds, and does not claim to have converged."""
    model = generators.complete(8, weights=(-6, 6), rng=0)
    log_z = cz.exact(model).log_z
    whole = cz.clamp(model, "trw", k=2, select="maxW")
    for most in (0, 3, 30, 60):
        count = itertools.count()

        def stop(_, count=count, most=most):
            if next(count) >= most:
                raise StopIteration

        result = cz.clamp(model, "trw", k=2, select="maxW", progress=stop)
        assert not result.converged and len(result.steps) < 3 and whole.upper < result.upper
        assert result.upper >= log_z


# -- restricted, given, or chosen anew -------------------------------------------------------------------------------


def test_weights_optimized_anew_are_never_looser_than_the_parents():
    """At no step: they go on from those of the parents, restricted, and are taken where they are tighter."""
    options = {"edge_weights": "optimized", "num_steps": 3, "tol": 1e-5}
    for seed in range(4):
        model = generators.complete(6, rng=seed) if seed % 2 else grid(seed)
        order = cz.clamp(model, "mf", k=3, select="maxW").variables
        for k in range(1, 4):
            before, after = (
                cz.clamp(model, "trw", variables=order[:size], reweight=True, **options) for size in (k - 1, k)
            )
            batch, parent = split(before.batch, np.full(before.batch.num_lanes, order[k - 1]))
            inherited = ForestWeights(before.branches.take(parent).state.rho)
            restricted = log_sum_exp(cz.trw.solve(batch, cz.options.TRWOptions(tol=1e-5), weights=inherited).upper)
            assert after.upper <= restricted + 1e-4
        assert after.upper >= cz.exact(model).log_z - EXACT


@pytest.mark.parametrize("method", METHODS)
def test_an_estimate_to_start_from(method):
    model = grid()
    known = getattr(cz, {"mf": "mean_field"}.get(method, method))(model, **OPTIONS[method])
    result = clamp_on(known, k=2, select="maxW", **OPTIONS[method])
    assert result.steps[0].log_z == pytest.approx(known.log_z, abs=STOPPED)
    afresh = cz.clamp(model, method, k=2, select="maxW", **OPTIONS[method])
    assert result.log_z == pytest.approx(afresh.log_z, abs=STOPPED)


def test_the_weights_of_a_start_are_kept():
    model = grid()
    known = cz.trw(model, edge_weights="optimized")
    for lane in (known, cz.trw(model, evidence=[{0: 1}, {}], edge_weights="optimized")[1]):
        result = clamp_on(lane, k=2, select="maxW", edge_weights="uniform")
        np.testing.assert_array_equal(result.branches.state.rho[:, 0], lane.state.rho[:, lane.lane])
        assert result.steps[0].log_z < cz.trw(model).log_z
    short = cz.trw(model, edge_weights="optimized", num_steps=1)
    further = clamp_on(short, k=0, select="maxW", edge_weights="optimized")
    assert further.log_z < short.log_z - 0.01


def test_new_weights_are_those_of_the_branches():
    model = grid()
    result = cz.clamp(model, "trw", variables=[4], reweight=True, **UNIFORM)
    np.testing.assert_allclose(result.branches.upper, cz.trw(cz.branches(model, [4]), tol=TOL).upper, atol=CLOSE)
    assert result.upper < cz.clamp(model, "trw", variables=[4], **UNIFORM).upper - 0.01


@pytest.mark.parametrize("per_branch", [False, True])
def test_reweighted_greedy_keeps_its_bounds(per_branch):
    model = generators.complete(6, rng=1)
    result = cz.clamp(model, "trw", k=3, select="greedy", reweight=True, per_branch=per_branch)
    uppers = [step.upper for step in result.steps]
    assert (np.diff(uppers) <= 0).all() and uppers[-1] >= cz.exact(model).log_z


def test_given_weights_are_restricted():
    model = grid()
    rho = cz.trw(model).state.rho[:, 0]
    result = cz.clamp(model, "trw", variables=[0], edge_weights=0.9 * rho, tol=TOL)
    tighter = cz.clamp(model, "trw", variables=[0], **UNIFORM)
    assert result.upper > tighter.upper
    np.testing.assert_allclose(result.branches.state.rho[:, 0], 0.9 * rho, rtol=1e-6)
