"""`solve` chooses as the paper recommends, says why, and holds its estimate inside what is proven."""

import itertools
import math
import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import clampz as cz
from clampz import generators
from clampz.exact_inference import marginal_queries, running
from clampz.exact_inference.lanes import ExactOptions, not_reached, run_exact
from clampz.exact_inference.plans import ExactPlan
from clampz.exact_inference.running import ExactCost, exact_cost
from clampz.model.batch import Batch
from clampz.model.conditioning import without_known
from clampz.model_counting.count import Counted
from clampz.runtime.budget import Budget
from clampz.runtime.options import bytes_in_words
from clampz.solving import clamps, problem
from clampz.solving.problem import SolveProblem
from clampz.solving.run import Run
from clampz.solving.solve import solve
from clampz.solving.strategies import exact_marginals, first_marginals

EXACT = 1e-9
# Seconds for the runs here that are not exact, and memory that rules exact inference out.
SHORT, NO_MEMORY = 0.5, 0
SEEDS = range(200, 204)


def frustrated(num_variables: int = 12) -> cz.Model:
    return generators.complete(num_variables, weights=(-12, 12), rng=0)


def with_larger_factors() -> cz.Model:
    rng = np.random.default_rng(0)
    scopes = [tuple(sorted(rng.choice(8, 3, replace=False).tolist())) for _ in range(8)]
    return cz.Model.from_factors([2] * 8, [(scope, rng.normal(size=(2, 2, 2))) for scope in scopes])


def with_zeros() -> cz.Model:
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    return cz.Model([np.zeros(3)] * 8, {(i, (i + 1) % 8): differ for i in range(8)})


MODELS = {
    "grid": generators.grid(4, 4, rng=0),
    "attractive": generators.grid(4, 4, weights=(0, 2), rng=0),
    "dense and strong": frustrated(),
    "labels": generators.cycle(6, labels=4, potentials="table", rng=0),
    "tree": generators.from_graph(4, [(0, 1), (1, 2), (1, 3)], rng=0),
    "larger factors": with_larger_factors(),
    "zeros": with_zeros(),
    "one variable": cz.Model([[0.0, 1.0]]),
    "none": cz.Model([]),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_narrow_model_is_solved_exactly(name):
    found, exact = solve(MODELS[name]), cz.exact(MODELS[name])
    assert (found.method, found.bound, found.log_z) == ("exact", "exact", exact.log_z)
    assert "narrow enough" in found.reason
    assert found.lower <= found.log_z <= found.upper
    assert found.converged
    assert not found.interrupted


@pytest.mark.parametrize("clamps", [None, 0, 1])
@pytest.mark.parametrize("name", MODELS)
def test_a_wide_model_has_an_estimate_inside_a_bracket_that_holds(name, clamps):
    model = MODELS[name]
    truth = cz.exact(model).log_z
    found = solve(model, memory=NO_MEMORY, k=min(clamps, model.num_variables) if clamps else clamps, time=SHORT)
    assert found.lower <= truth + EXACT
    assert truth - EXACT <= found.upper
    assert found.lower <= found.log_z <= found.upper
    assert found.method != "exact"
    assert len(found.marginals) == model.num_variables
    assert (found.select == "") == (not found.variables)
    assert found.reason.endswith(".")


@pytest.mark.parametrize(
    ("name", "method"), [("grid", "bethe"), ("attractive", "bethe"), ("dense and strong", "mean_field")]
)
def test_bethe_is_the_rule_and_mean_field_for_dense_and_strong_models(name, method):
    found = solve(MODELS[name], memory=NO_MEMORY, k=0)
    assert found.method == method
    assert ("dense" in found.reason) == (method == "mean_field")


@pytest.mark.parametrize("size", [10, 15])
@pytest.mark.parametrize("weights", [(-6, 6), (-12, 12)])
def test_it_beats_bethe_where_the_paper_says_that_mean_field_does(size, weights):
    models = [generators.complete(size, weights=weights, rng=seed) for seed in SEEDS]
    truth = np.array([cz.exact(model).log_z for model in models])
    ours = np.array([solve(model, memory=NO_MEMORY, k=0).log_z for model in models])
    bethe = np.array([cz.bethe(model).log_z for model in models])
    assert np.abs(ours - truth).mean() < 0.5 * np.abs(bethe - truth).mean()


@pytest.mark.parametrize(("k", "method"), [(3, "mean_field"), (4, "bethe")])
def test_bethe_is_nearer_again_once_a_third_of_a_dense_model_is_clamped(k, method):
    found = [solve(frustrated(), k=k), *(solve(generators.complete(12, weights=(-12, 12), rng=s), k=k) for s in SEEDS)]
    assert {each.method for each in found} == {method} and {len(each.variables) for each in found} == {k}
    truth = np.array([cz.exact(each.model).log_z for each in found])
    others = [cz.clamp(each.model, "mf", variables=each.variables).log_z for each in found]
    ours = np.abs([each.log_z for each in found] - truth).mean()
    assert ours < 0.5 * np.abs(others - truth).mean() if method == "bethe" else "dense" in found[0].reason


def test_bethe_that_was_not_clamped_says_nothing_of_a_dense_model(monkeypatch):
    real = clamps.clamped
    monkeypatch.setattr(
        clamps, "clamped", lambda found, *args, **own: found if found.method == "bethe" else real(found, *args, **own)
    )
    found = solve(frustrated(), k=4)
    assert found.method == "mean_field" and "dense" in found.reason


def test_an_estimate_outside_the_bracket_is_held_inside(monkeypatch):
    real = Run.by

    def far_off(run: Any, method: Any, model: cz.Model, *args: Any, **own: Any) -> cz.results.Estimate:
        found = real(run, method, model, *args, **own)
        return replace(found, log_z=1e6, bound=None, lower=-math.inf) if method is cz.bethe else found

    monkeypatch.setattr(Run, "by", far_off)
    found = solve(MODELS["grid"], memory=NO_MEMORY, k=0)
    assert (found.log_z, found.bound) == (found.upper, "upper")
    assert "outside the bracket" in found.reason


def test_with_a_time_limit_the_answer_is_a_bracket_and_an_estimate_inside_it():
    model = generators.grid(14, 14, weights=(-6, 6), rng=0)
    without, found = solve(model, k=0, time=2), solve(model, time=2)
    assert found.bracket is not None
    assert without.bracket is None
    assert found.lower >= found.bracket.lower > without.lower
    assert found.upper <= found.bracket.upper < without.upper
    assert found.lower <= found.log_z <= found.upper
    assert found.method == "bethe"
    assert "clamping brackets log Z" in found.reason


@pytest.fixture
def no_sum(monkeypatch):
    """No sum with marginals is planned at first: what bounds log Z closes the bracket."""

    def say(rounds: float = math.inf, cost: Any = None) -> None:
        asked = itertools.count()
        real = exact_marginals.plan_if_it_fits

        def refused(cost: ExactCost, *args: Any) -> Any:
            return (None, "Nothing was tried") if next(asked) < rounds else real(cost, *args)

        nothing = ExactCost(0, 0, math.inf, None)
        monkeypatch.setattr(exact_marginals.ExactMarginals, "begin", lambda *args: None)
        monkeypatch.setattr(exact_marginals, "plan_if_it_fits", refused)
        if rounds:
            return
        costs = itertools.chain([nothing], itertools.repeat(None))
        price = exact_marginals.exact_cost
        monkeypatch.setattr(exact_marginals, "exact_cost", lambda *args, **own: next(costs) or price(*args, **own))

    return say


@pytest.mark.parametrize("name", ["grid", "dense and strong"])
def test_a_bracket_that_closes_is_exact(name, no_sum):
    no_sum()
    found, exact = solve(MODELS[name], time=5), cz.exact(MODELS[name])
    assert (found.bound, found.bracket is None) == ("exact", False)
    assert "clamping closes the bracket" in found.reason
    assert found.log_z == pytest.approx(exact.log_z, abs=1e-6)
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    # log Z is exact, and the marginals say that they are not
    assert found.marginals_by == "sampling" and found.marginal_errors is not None
    assert found.marginals_are in repr(found)
    assert "Solution(clamping: " in repr(found)


def test_a_closed_bracket_has_exact_marginals_where_time_is_left_for_them(no_sum):
    no_sum(rounds=1)
    found, exact = solve(MODELS["grid"], time=20), cz.exact(MODELS["grid"])
    assert (found.bound, found.marginals_by) == ("exact", "exact") and found.bracket is not None
    assert "time left for exact marginals" in found.reason
    assert np.abs(found.marginals.flat - exact.marginals.flat).max() < EXACT
    assert found.lower <= found.log_z <= found.upper


def test_a_closed_bracket_has_exact_marginals_by_a_plan_that_there_was_no_time_for_before(no_sum):
    no_sum(rounds=0)
    found, exact = solve(MODELS["grid"], time=20), cz.exact(MODELS["grid"])
    assert (found.bound, found.marginals_by) == ("exact", "exact") and found.bracket is not None
    assert np.allclose(found.marginals.flat, exact.marginals.flat, atol=EXACT)


def test_a_closed_bracket_has_marginals_of_bethe_where_draws_are_worth_too_few(no_sum, monkeypatch):
    no_sum()
    monkeypatch.setattr(SolveProblem, "drawn", None)
    found = solve(MODELS["grid"], time=SHORT)
    assert (found.bound, found.marginals_by) == ("exact", "bethe")


def test_marginals_by_draws_follow_rng(no_sum):
    no_sum()
    one, other = (solve(MODELS["grid"], time=5, rng=rng) for rng in (1, 2))
    assert one.marginals_by == other.marginals_by == "sampling"
    assert not np.array_equal(one.marginals.flat, other.marginals.flat)


@pytest.mark.parametrize("name", ["grid", "labels", "larger factors", "zeros"])
def test_marginals_by_draws_are_as_near_as_they_say(name, no_sum):
    no_sum()
    found, exact = solve(MODELS[name], time=5), cz.exact(MODELS[name])
    assert found.marginals_by == "sampling"
    off = np.abs(found.marginals.flat - exact.marginals.flat)
    assert (off <= 5.0 * found.marginal_errors.flat + 1e-9).all()
    assert found.marginal_errors.flat.max() < 0.01


def test_exact_inference_that_does_not_end_in_its_share_of_the_time_leaves_a_bracket(no_sum, monkeypatch):
    def stopped(plan: ExactPlan, options: Any, *args: Any) -> cz.results.Estimates:
        found = run_exact(plan.batch, options)
        return replace(
            found,
            log_z=np.full(1, np.nan),
            lower=np.full(1, -np.inf),
            upper=np.full(1, np.inf),
            bound=None,
            converged=np.array([False]),
            stopped_by=["time"],
        )

    monkeypatch.setattr(exact_marginals, "run_plan", stopped)
    found = solve(MODELS["dense and strong"], time=SHORT)
    assert found.reason.startswith("Exact inference took longer than expected, so ")
    assert found.bracket is not None
    assert found.lower <= cz.exact(MODELS["dense and strong"]).log_z <= found.upper


def test_what_the_marginals_are():
    model = MODELS["grid"]
    for options, by, are in [
        ({}, "exact", "exact"),
        ({"method": "exact", "k": 1}, "exact", "exact"),
        ({"marginals": False}, "", "none: log Z alone was asked for"),
        ({"method": "mf"}, "mean_field", "mean field's, converged"),
        ({"method": "bethe", "k": 2}, "bethe", "Bethe's with 2 variables clamped, converged"),
        ({"method": "trw", "time": 0.0}, "trw", "TRW's, not converged"),
    ]:
        found = solve(model, **options)
        assert (found.marginals_by, found.marginals_are) == (by, are)
        assert f"marginals: {are}; " in repr(found)


def test_progress_is_told_of_the_bracket():
    heard: list[object] = []
    found = solve(frustrated(), memory=NO_MEMORY, time=SHORT, progress=heard.append)
    assert cz.results.Bracket in {type(each) for each in heard}
    assert found.bracket is not None


def test_a_callback_that_stops_a_clamping_in_the_midst_of_a_step_is_heard():
    told: list[object] = []

    def stop(progress: cz.results.Progress | cz.results.Bracket) -> None:
        told.append(progress)
        if isinstance(progress, cz.results.Progress) and progress.num_lanes > 1:
            raise StopIteration

    found = solve(frustrated(), method="trw", k=2, select="maxW", progress=stop)
    assert found.interrupted and told


def test_a_bracket_that_is_stopped_is_kept():
    def stop(progress: cz.results.Progress | cz.results.Bracket) -> None:
        if isinstance(progress, cz.results.Bracket):
            raise StopIteration

    found = solve(frustrated(), memory=NO_MEMORY, time=5, progress=stop)
    assert found.interrupted
    assert found.bracket is not None
    assert found.bracket.stopped_by == "callback"


def test_clamps_only_tighten():
    model = generators.grid(6, 6, rng=1)
    without, some = solve(model, memory=NO_MEMORY, k=0), solve(model, memory=NO_MEMORY, k=3)
    assert without.lower <= some.lower
    assert some.upper <= without.upper
    assert len(some.variables) == 3
    assert "3 variables were clamped by " in some.reason


def test_the_selector_asked_for_is_used():
    found = solve(MODELS["grid"], k=2, select="maxW")
    assert (found.select, len(found.variables)) == ("maxW", 2)
    assert "as clamps were asked for" in found.reason


@pytest.mark.parametrize(("method", "bound"), [("exact", "exact"), ("mf", "lower"), ("bethe", None), ("trw", "upper")])
def test_one_method_alone(method, bound):
    found = solve(MODELS["grid"], method=method)
    assert found.bound == bound
    assert "asked for" in found.reason
    clamped = solve(MODELS["grid"], method=method, k=2, select="maxW")
    assert clamped.variables
    assert clamped.log_z == pytest.approx(cz.clamp(MODELS["grid"], method, k=2, select="maxW").log_z, abs=1e-9)


def test_evidence_and_names():
    model = cz.Model([[0.0, 0.0], [0.0, 1.0]], {(0, 1): [[2.0, 0.0], [0.0, 2.0]]}, names=["a", "b"])
    found = solve(model, evidence={"a": 1})
    assert found.marginal("a").tolist() == [0.0, 1.0]
    assert found.log_z == pytest.approx(cz.exact(model, evidence={"a": 1}).log_z)


def test_a_run_that_is_stopped_returns_what_it_has():
    def stop(progress: cz.results.Progress) -> None:
        raise StopIteration

    model = generators.grid(8, 8, rng=0)
    found = solve(model, memory=NO_MEMORY, progress=stop)
    assert found.interrupted
    assert found.lower <= cz.exact(model).log_z <= found.upper


def test_a_method_that_is_stopped_in_its_share_of_the_time_stops_the_rest():
    heard: list[str] = []

    def stop(progress: cz.results.Progress) -> None:
        heard.append(progress.method)
        if progress.method == "mean_field":
            raise StopIteration

    model = generators.grid(8, 8, rng=0)
    found = solve(model, k=3, progress=stop)
    assert found.interrupted
    assert not found.variables  # nothing was clamped after that
    assert found.lower <= cz.exact(model).log_z <= found.upper
    assert "mean_field" in heard


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (exact_marginals.ExactMarginals, "begin"),
        (first_marginals.FirstMarginals, "next"),
        (SolveProblem, "look"),
    ],
)
def test_ctrl_c_at_any_time_is_heard(place, name, monkeypatch):
    real, presses = getattr(place, name), [signal.SIGINT]

    def pressed(*args: Any, **options: Any) -> Any:
        if presses:
            signal.raise_signal(presses.pop())
        return real(*args, **options)

    monkeypatch.setattr(place, name, pressed)
    model = generators.grid(8, 8, rng=0)
    found = solve(model, memory=NO_MEMORY, time=60)
    assert found.interrupted
    assert found.lower <= cz.exact(model).log_z <= found.upper
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_time_to_plan_it_says_so(monkeypatch):
    monkeypatch.setattr(exact_marginals, "exact_cost", lambda *args, **options: ExactCost(0, 0, math.inf, None))
    found = solve(MODELS["grid"], time=SHORT)
    assert "no time to see what exact inference needs" in found.reason


def test_no_time_still_gives_bounds():
    model = generators.grid(8, 8, rng=0)
    found = solve(model, memory=NO_MEMORY, time=0)
    assert -math.inf < found.lower <= cz.exact(model).log_z <= found.upper < math.inf


def test_z_of_zero():
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    model = cz.Model([np.zeros(2)] * 3, {(0, 1): differ, (1, 2): differ, (0, 2): differ})
    for memory in (None, NO_MEMORY):
        found = solve(model, memory=memory)
        assert (found.log_z, found.bound) == (-math.inf, "exact")
        assert (found.marginals_by, found.marginals_are) == ("", "none: Z = 0")


@pytest.mark.parametrize(
    "options",
    [
        {"k": -1},
        {"k": 17},
        {"k": 1.5},
        {"time": -1},
        {"time": "1"},
        {"time": math.nan},
        {"threads": 0},
        {"threads": 0, "method": "exact"},
        {"memory": -1},
        {"memory": "much"},
        {"memory": "much", "k": 1},
        {"method": "nope"},
        {"select": "nope", "k": 1},
    ],
)
def test_bad_options_are_refused(options):
    with pytest.raises(cz.errors.OptionError):
        solve(MODELS["grid"], **options)


def test_memory_is_bytes_or_text():
    model = MODELS["grid"]
    for memory in ("1GB", 10**9, 1e9):
        for method in ("auto", "exact"):
            assert solve(model, memory=memory, method=method).method == "exact"
    narrow = solve(model, memory="1KB", time=SHORT)
    assert "more than there is memory for" in narrow.reason
    with pytest.raises(cz.errors.TooWideError):
        solve(model, memory="1KB", method="exact")


def test_what_there_is_no_time_for_says_so():
    found = solve(generators.grid(12, 12, rng=0), memory="8GB", time=0.1)
    assert "more than there is time for" in found.reason


def test_bytes_for_people():
    assert [bytes_in_words(number) for number in (0, 5e5, 2.5e6, 4.4e7, 1.2e9, 3e13)] == [
        "0 MB",
        "0.5 MB",
        "2.5 MB",
        "44 MB",
        "1.2 GB",
        "30 TB",
    ]


def test_repr_says_what_was_found():
    assert repr(solve(MODELS["grid"])).startswith("Solution(exact: log Z = ")


def test_evidence_is_worked_in_without_rounding_twice():
    """What evidence leaves of tables is added up as factors are: 1e17 + 1 - 1e17 is 1."""
    nearly = np.full((2, 2), 0.25)
    factors = [
        ((1,), [1e17, 1e17]),
        ((0, 1), [[1.0, 1.5], [0.0, 0.0]]),
        ((1, 2), [[-1e17, 0.0], [-1e17 + 16, 0.0]]),
        ((0,), [1e17, 0.0]),
        ((0, 2), [[-1e17, 0.0], [0.0, 0.0]]),
        ((0, 1, 3), [[[0.0, 1e17], [0.0, 1e17]], [[0.0, 1.0], [2.0, 3.0]]]),
        ((1, 3), [[0.0, -1e17], [0.0, -1e17]]),
        ((2, 1, 3), [nearly, [[0.0, 1.0], [2.0, 3.0]]]),
    ]
    model = cz.Model.from_factors([2, 2, 2, 2], factors)
    evidence = {0: 0, 2: 0}
    want = math.log(2 * (math.exp(1.0) + math.exp(17.5))) + 0.25
    for found in (cz.solve(model, evidence=evidence), cz.exact(without_known(model, evidence))):
        assert found.bound == "exact" and found.lower - 1e-9 <= want <= found.upper + 1e-9


def test_what_does_not_fit_in_memory_at_once_is_solved_in_slices(monkeypatch):
    monkeypatch.setattr("clampz.exact_inference.cost.CACHED_ENTRIES", 2.0**12)
    model = generators.grid(8, 8, weights=(-2, 2), rng=0)
    whole = cz.exact(model)
    needed = exact_cost(model).num_bytes
    found = solve(model, memory=needed // 2, threads=2, time=60)
    assert found.bound == "exact" and "in" in found.reason and "slices" in found.reason
    assert found.lower <= whole.upper and whole.lower <= found.upper
    np.testing.assert_allclose(found.marginals.flat, whole.marginals.flat, atol=1e-9)
    np.testing.assert_allclose(found.pairwise_marginals.flat, whole.pairwise_marginals.flat, atol=1e-9)
    assert solve(model, memory=needed // 2, threads=1, time=60, marginals=False).bound == "exact"


# -- exact log Z, and marginals that take longer, or that are counted --------------------------------------------------


def wide_network() -> cz.Model:
    """Gates of three inputs each: log Z is 0, and all marginals together are too wide."""
    rng = np.random.default_rng(1)
    factors: list[Any] = [([i], np.log(rng.dirichlet([2.0, 2.0]))) for i in range(60)]
    for gate in range(60, 260):
        table = rng.dirichlet([1.0, 1.0], size=(2, 2, 2))
        factors.append(([*rng.choice(60, size=3, replace=False).tolist(), gate], np.log(table)))
    return cz.Model.from_factors([2] * 260, factors)


def test_marginals_are_exact_where_only_all_of_them_together_are_too_wide():
    model = wide_network()
    found = solve(model, time=60, memory="500MB")
    assert (found.method, found.marginals_by, found.bracket) == ("exact", "exact", None)
    assert found.log_z == pytest.approx(0.0, abs=EXACT)
    assert np.allclose([row.sum() for row in found.marginals], 1.0)
    assert found.reason.endswith("Marginals are summed a few at a time, as all at once are too wide.")


def test_log_z_stays_exact_without_time_for_all_exact_marginals(monkeypatch):
    model = wide_network()
    monkeypatch.setattr(marginal_queries.Block, "fill", lambda *args: None)
    found = solve(model, time=60, memory="500MB")
    assert (found.bound, found.method, found.marginals_by) == ("exact", "bethe", "sampling")
    assert found.log_z == pytest.approx(0.0, abs=EXACT) and found.lower <= 0.0 <= found.upper
    assert "Draws are for the other marginals" in found.reason and repr(found).startswith("Solution(exact: ")
    alone = solve(model, method="exact", time=60, memory="500MB")
    assert (alone.bound, alone.marginals_are) == ("exact", "some: exact was stopped before there were all")


@pytest.mark.parametrize("by", ["sampling", "bethe", ""])
def test_exact_marginals_that_are_there_stay(by, monkeypatch):
    """Others have those that are missing, or nobody."""
    model = generators.grid(4, 4, weights=(-2, 2), rng=0)
    exact = cz.exact(model)
    missing = np.arange(len(model.unary.flat)) >= 20
    real = exact_marginals.run_plan

    def some(*args: Any) -> cz.results.Estimates:
        found = real(*args)
        return replace(found, marginals_flat=np.where(missing[:, None], np.nan, found.marginals_flat))

    monkeypatch.setattr(exact_marginals, "run_plan", some)
    if by != "sampling":
        monkeypatch.setattr(SolveProblem, "drawn", None)
    if not by:
        nothing = not_reached(Batch.of(model), ExactOptions(), Budget())[0]
        monkeypatch.setattr(SolveProblem, "estimate_from", lambda problem: (nothing, ""))
    found = solve(model, time=2 * SHORT)
    assert (found.bound, found.log_z, found.marginals_by) == ("exact", exact.log_z, by)
    assert (found.marginals.flat[~missing] == exact.marginals.flat[~missing]).all()
    assert np.isnan(found.marginals.flat[missing]).all() == (not by)
    if by:
        assert found.reason.endswith("for the other marginals, as there was no time for exact ones.")
    else:
        assert found.reason.endswith("There was no time for the other marginals.")
        assert found.marginals_are == "some: exact was stopped before there were all"
    if by == "sampling":
        errors = found.marginal_errors.flat
        assert (errors[~missing] == 0.0).all() and (errors[missing] > 0.0).all()


def constraints(num_variables: int = 60) -> cz.Model:
    """Wide, and all tables are clauses."""
    rng = np.random.default_rng(0)
    clause = np.zeros((2, 2, 2))
    clause[0, 0, 0] = -np.inf
    scopes = [rng.choice(num_variables, size=3, replace=False).tolist() for _ in range(4 * num_variables)]
    return cz.Model.from_factors([2] * num_variables, [(scope, clause) for scope in scopes])


@pytest.fixture
def counts(monkeypatch):
    """Programs that count are there, and say this."""

    def say(**counted: Any) -> None:
        for place in (exact_marginals, problem):
            monkeypatch.setattr(place, "is_available", lambda: True)
        monkeypatch.setattr(running, "is_available", lambda: True)
        monkeypatch.setattr(running, "count", lambda model, **limits: Counted(**counted))

    return say


@pytest.mark.parametrize("share", [1.0, None])
def test_a_proven_count_comes_before_anything_else(counts, share):
    model = constraints()
    marginals = None if share is None else np.full(len(model.unary.flat), 0.5)
    counts(log_z=20.0, error=1e-9, is_proven=True, lower=20.0 - 1e-9, marginals=marginals)
    found = solve(model, time=3, memory="1MB")
    assert (found.log_z, found.bound, found.bracket) == (20.0, "exact", None)
    assert (found.marginals_by == "exact") == (share is not None)
    assert "the count is proven" in found.reason


def test_a_count_that_is_not_proven_is_the_estimate(counts):
    model = constraints()
    counts(log_z=20.0, error=1e-9, lower=5.0)
    found = solve(model, time=1, memory="1MB")
    assert (found.log_z, found.kind) == (20.0, "counted")
    assert found.lower <= 20.0 <= found.upper and found.marginals_by != "exact"


def test_methods_that_do_not_fit_into_the_memory_are_left_out(monkeypatch):
    """Mean field takes larger factors as they are, which Bethe and TRW do not."""
    rng = np.random.default_rng(0)
    scopes = (sorted(rng.choice(900, size=7, replace=False).tolist()) for _ in range(900))
    model = cz.Model.from_factors([2] * 900, [(tuple(scope), rng.normal(size=(2,) * 7)) for scope in scopes])
    monkeypatch.setattr("clampz.model.pairwise_equivalent.Equivalent.of", lambda *_: pytest.fail("work"))
    found = solve(model, time=1.0, memory="15MB")
    assert found.method == "mean_field" and "there was not memory enough for Bethe" in found.reason
    assert -math.inf < found.lower < found.upper < math.inf
    assert solve(model, method="mf", time=1.0, memory="15MB").lower > -math.inf
    with pytest.raises(cz.errors.OptionError, match="memory: expected at least"):
        solve(model, method="bethe", time=1.0, memory="15MB")
    with pytest.raises(cz.errors.OptionError, match="branches, which need about"):
        solve(model, k=2, time=1.0, memory="15MB")


def test_where_no_method_fits_the_ends_at_sight_are_the_answer():
    model = generators.grid(170, 170, rng=0)
    found = solve(model, time=1.0, memory="20MB")
    assert "the lower bound is also the estimate, as there was not memory enough for Bethe" in found.reason
    assert -math.inf < found.lower == found.log_z < found.upper < math.inf and found.bound == "lower"
    with pytest.raises(cz.errors.OptionError, match=r"memory: expected at least 11,560,000 bytes .* found 1,000,000"):
        solve(model, time=1.0, memory="1MB")
