"""The anytime bracket: always right, never wider than before, and held to its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from random_models import frustrated, random_of_any_kind

import clampz as cz
from clampz.bounding.leaves.evaluate import solve_leaves
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies import initial_bounds
from clampz.bounding.leaves.successive_halving import SuccessiveHalving
from clampz.bounding.tree import branch_and_bound
from clampz.bounding.tree.branch_and_bound import BranchAndBound
from clampz.bounding.tree.frontier import Refine, work_on
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_every_bracket_holds_and_lies_within_the_one_before(seed, exact):
    model = random_of_any_kind(seed)
    truth = cz.exact(model)
    rng = np.random.default_rng(seed)
    before = None
    for bracket in cz.iter_bounds(
        model,
        gap=1e-9,
        time=5,
        leaves=int(rng.integers(1, 25)),
        exact=exact,
        max_iter=int(rng.choice([1, 2, 5, 300])),
        threads=1,
    ):
        assert bracket.lower <= truth.upper and truth.lower <= bracket.upper
        assert before is None or (before.lower <= bracket.lower and bracket.upper <= before.upper)
        assert bracket.estimate is None or bracket.lower <= bracket.estimate <= bracket.upper
        assert (bracket.estimate is None) == bool(bracket.why_no_estimate)
        before = bracket
    if exact:
        assert bracket.stopped_by in ("exact", "gap") and (bracket.gap < 1e-6 or truth.log_z == -np.inf)
        assert bracket.estimate == pytest.approx(truth.log_z, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_clamping_closes_the_bracket_without_exact_sums(seed):
    model = frustrated(seed)
    bracket = cz.bound(model, gap=1e-3, time=60, exact=False)
    assert bracket.stopped_by in ("gap", "exact") and bracket.gap <= 1e-3 and bracket.num_leaves > 1
    assert bracket.lower <= cz.exact(model).log_z <= bracket.upper


def test_components_add_up():
    one, two = frustrated(2, 6), frustrated(3, 5)
    tables = [((i, j), one.pairwise[i, j]) for i, j in one.pairwise] + [
        ((6 + i, 6 + j), two.pairwise[i, j]) for i, j in two.pairwise
    ]
    model = cz.Model([*one.unary, *two.unary], tables, constant=1.5)
    bracket = cz.bound(model, gap=1e-3, exact=False, time=60)
    assert bracket.lower <= 1.5 + cz.exact(one).log_z + cz.exact(two).log_z <= bracket.upper and bracket.gap <= 1e-3


def test_larger_factors():
    rng = np.random.default_rng(0)
    scopes = [(0, 1, 2), (1, 3, 4), (2, 4, 5), (0, 5, 6), (3, 6)]
    model = cz.Model.from_factors([2] * 7, [(scope, 3 * rng.normal(size=[2] * len(scope))) for scope in scopes])
    truth = cz.exact(model).log_z
    for exact in (True, False):
        bracket = cz.bound(model, gap=1e-2, exact=exact, time=20, leaves=200)
        assert bracket.lower <= truth + 1e-9 and truth - 1e-9 <= bracket.upper


def test_impossible_models():
    model = cz.Model(np.zeros((2, 2)), {(0, 1): np.full((2, 2), -np.inf)})
    for exact in (True, False):
        assert cz.bound(model, exact=exact).upper == -np.inf


@pytest.mark.parametrize(
    "model",
    [
        cz.Model([]),
        cz.Model([[0.0, 1.0]]),
        cz.Model([[0.0], [1.0]], {(0, 1): [[2.0]]}),
        cz.Model([[1.0, 2.0, 3.0]] * 3),
    ],
)
def test_the_smallest_models(model):
    truth = cz.exact(model).log_z
    for exact in (True, False):
        bracket = cz.bound(model, exact=exact, time=5)
        assert bracket.lower <= truth <= bracket.upper and bracket.gap < 0.02


def test_strong_weights():
    model = cz.generators.complete(8, weights=(-1000, 1000), rng=0)
    for exact in (True, False):
        bracket = cz.bound(model, gap=1e-3, exact=exact, time=10, leaves=100)
        truth = cz.exact(model)
        assert bracket.lower <= truth.upper and truth.lower <= bracket.upper


def test_many_states_and_many_components():
    wide = cz.Model(np.zeros((12, 30)), {(i, i + 1): np.zeros((30, 30)) + np.eye(30) for i in range(11)})
    assert cz.bound(wide, exact=False, time=1, leaves=3).upper >= cz.exact(wide).log_z
    apart = cz.Model([[0.0, 1.0]] * 300, {(3 * k, 3 * k + 1): np.eye(2) for k in range(100)})
    bracket = cz.bound(apart, gap=1e-6)
    assert bracket.gap < 1e-6 and bracket.lower <= cz.exact(apart).upper and cz.exact(apart).lower <= bracket.upper


def test_the_largest_potentials():
    model = cz.generators.complete(6, weights=(-1e20, 1e20), rng=0)
    truth, bracket = cz.exact(model), cz.bound(model, exact=False, leaves=100, time=20)
    assert bracket.lower <= truth.upper and truth.lower <= bracket.upper


def test_a_million_leaves_are_not_needed_to_stop():
    bracket = cz.bound(frustrated(4, 12), gap=0.0, exact=False, leaves=20, time=60)
    assert bracket.stopped_by == "leaves" and bracket.num_leaves >= 20


def test_time_stops_it():
    bracket = cz.bound(cz.generators.complete(40, weights=(-6, 6), rng=0), gap=0.0, time=0.5)
    assert bracket.stopped_by == "time" and bracket.lower < bracket.upper


def test_an_estimate_with_clamps_is_not_owed_where_memory_is_short():
    """Nobody asked for clamps, and bounds are there to be given."""
    model = cz.generators.grid(20, 20, labels=4, rng=0)
    for memory in ("1MB", "2MB"):
        bracket = cz.bound(model, time=1.0, leaves=1, memory=memory)
        assert bracket.lower < bracket.upper
        assert memory == "2MB" or "memory" in bracket.why_no_estimate  # for not even one lane


@pytest.mark.parametrize(("labels", "leaves"), [(2, 2), (2, 5), (3, 2), (3, 4), (7, 3)])
def test_there_are_no_more_leaves_than_allowed(labels, leaves):
    model = cz.generators.complete(12, weights=(-6, 6), labels=labels, rng=0)
    bracket = cz.bound(model, gap=0.0, exact=False, leaves=leaves, max_table=64, time=20.0, threads=4)
    assert bracket.num_leaves <= leaves and bracket.stopped_by == "leaves"


def test_a_leaf_that_comes_after_the_sum_of_the_whole_changes_nothing():
    """Potentials of 1e15 that cancel: the pairwise equivalent is off by what folding rounds, and the sum is not."""
    rng = np.random.default_rng(0)
    large = 1e15 + rng.integers(0, 8, (2, 2, 2)) / 8
    edges = {(0, 1): 0.3 * rng.normal(size=(2, 2)), (1, 2): rng.normal(size=(2, 2)) - 1e15}
    model = cz.Model([[0, 0]] * 3, edges, factors=[((0, 1, 2), large)])
    late = BranchAndBound(model, BoundOptions())
    late.budget = Budget()
    asked = Refine(late.frontier.root, work_on([late.frontier.root], late.options, late.budget))
    leaf = solve_leaves(asked.work, late.budget)
    crew = Crew(None, 1)
    assert late._plan_of_whole(crew) is None and late.closed
    ends = late._ends()
    late._take(asked, leaf, crew)
    truth = cz.exact(model)
    assert late._ends() == ends and late._reason() == "exact"
    assert ends[0] <= truth.upper and truth.lower <= ends[1]


def bethe_says(monkeypatch: pytest.MonkeyPatch, log_z: float | None, time: float = 5.0) -> cz.results.Bracket:
    """The bracket of a wide model of which Bethe says this, or does not settle."""

    def said(first: cz.results.Estimate, **options: object) -> cz.results.Clamped:
        found = cz.clamp(first.model, "bethe", k=0, max_iter=2)
        value = math.nan if log_z is None else log_z
        return replace(found, steps=(replace(found.steps[-1], log_z=value, converged=log_z is not None),))

    monkeypatch.setattr(initial_bounds, "clamp_on", said)
    monkeypatch.setattr(branch_and_bound.Estimator, "estimate", lambda *args: None)  # draws would be better
    return cz.bound(frustrated(4, 12), gap=0.0, exact=False, leaves=2, max_table=8, time=time)


def test_the_estimate_is_what_bethe_says_and_not_the_middle_or_an_end(monkeypatch):
    wide = bethe_says(monkeypatch, None)
    assert wide.gap > 0.01
    inside = wide.lower + 0.3 * wide.gap
    assert bethe_says(monkeypatch, inside).estimate == inside
    assert bethe_says(monkeypatch, wide.upper + 0.5).estimate == wide.upper  # near, and held inside


@pytest.mark.parametrize(("value", "time", "why"), [(None, 5.0, "converge"), (1e5, 5.0, "outside"), (3.0, 0.0, "time")])
def test_without_an_estimate_the_bracket_says_why(monkeypatch, value, time, why):
    bracket = bethe_says(monkeypatch, value, time)
    assert bracket.estimate is None and why in bracket.why_no_estimate
    assert "no estimate" in repr(bracket)


def test_a_bracket_gone_on_with_has_an_estimate_too(monkeypatch, tmp_path):
    monkeypatch.setattr(branch_and_bound.Estimator, "estimate", lambda *args: None)  # what Bethe says
    model, path = cz.generators.grid(12, 12, weights=(-2, 2), rng=0), tmp_path / "tree"
    options = {"gap": 0.0, "exact": False, "max_iter": 20, "max_table": 8, "time": 30.0, "checkpoint": path}
    first, again = (cz.bound(model, leaves=leaves, **options) for leaves in (1, 2))
    assert again.gap > 0.1
    assert first.estimate is not None and again.estimate == pytest.approx(first.estimate, abs=1e-6)


def test_what_was_simplified_in_part_is_not_searched(monkeypatch):
    """A search that is resumed is presolved again, without a limit, and its tree is about what that leaves."""
    model = cz.generators.from_graph(12, [(i, (i + 1) % 10) for i in range(10)] + [(0, 10), (5, 11)], rng=0)
    for complete in (True, False):
        part = replace(cz.simplify(model, marginals=False, pairwise=True), is_complete=complete)
        monkeypatch.setattr(branch_and_bound, "simplify_once", lambda *args, part=part, **options: part)
        asked = BranchAndBound(model, BoundOptions())
        asked._simplify(Budget(1.0))
        assert asked.simplified == complete


def test_a_model_is_simplified_if_there_is_memory_for_that():
    """A resumed search is about what it was about before, whatever memory it has now."""
    model = cz.generators.cycle(12, rng=0)
    for memory, num_left in ((100, 12), ("1MB", 0)):
        begun = BranchAndBound(model, BoundOptions(memory=memory))
        begun._simplify(Budget())
        assert begun.rest.num_variables == num_left
    assert BranchAndBound(model, BoundOptions(memory=100), simplified=True).rest.num_variables == 0


def test_a_tree_that_is_clamped_to_its_end_is_closed():
    """Also where hard zeros in larger factors leave mini-buckets no lower bound."""
    table = np.log([[[1.0, 2.0], [1.0, 3.0]], [[4.0, 1.0], [5.0, 6.0]]])
    table[0, 1, 0] = table[1, 0, 1] = -np.inf
    model = cz.Model(np.zeros((3, 2)), factors=[((0, 1, 2), table)])
    bracket = cz.bound(model, exact=False, gap=0.0, max_table=2, time=20.0)
    assert bracket.gap < 1e-9 and bracket.lower <= np.log(21.0) <= bracket.upper


def test_small_components_do_not_keep_the_large_one_waiting():
    grid = cz.generators.grid(12, 12, weights=(-4, 4), rng=0)
    unary = np.concatenate([grid.unary.flat.reshape(-1, 2), np.random.default_rng(0).normal(size=(300, 2))])
    model = cz.Model.from_arrays(unary, grid.edges, grid.pairwise.flat.reshape(-1, 2, 2))
    both = [
        cz.bound(each, exact=False, gap=0.0, max_table=16, leaves=4, time=60.0, threads=1) for each in (grid, model)
    ]
    assert both[1].gap < 1.5 * both[0].gap


@pytest.mark.parametrize("summed", [False, True])
def test_workers_have_the_memory_of_a_sum_that_is_not_made(summed):
    """Enough for mini-buckets that did not fit into their own share: a plan that runs is waited for."""
    model, options = cz.generators.grid(100, 100, rng=0), BoundOptions(memory="60MB", threads=2, gap=0.5)
    work = BranchAndBound(model, options)
    work.budget = Budget(100.0)
    with Crew(None, 2) as crew:
        planned = crew.beside(lambda: "a plan" if summed else None)
        found = work._give_memory_to_workers(planned)
    assert found is work.frontier.options
    assert found.worker_bytes == pytest.approx((0.3 if summed else 0.8) * 60e6 / 2)
    assert branch_and_bound.may_begin(model, found, 100.0) != summed
    assert found.num_bytes == options.num_bytes and found.gap == options.gap
    assert work._give_memory_to_workers(None).worker_bytes == pytest.approx(0.8 * 60e6 / 2)


def test_regions_leave_the_lower_bound_to_bethe_where_that_leads(monkeypatch):
    model = cz.generators.grid(5, 5, weights=(0, 2), rng=0)
    mixed = cz.generators.grid(5, 5, weights=(-2, 2), rng=0)
    assert not initial_bounds.bethe_leads(model)
    monkeypatch.setattr(initial_bounds, "MANY_EDGES", 10)
    assert initial_bounds.bethe_leads(model) and not initial_bounds.bethe_leads(mixed)
    for each, ends in ((model, {"upper"}), (mixed, {"upper", "lower"})):
        halving, asked = SuccessiveHalving(), set()
        while (step := halving.next(each, BoundOptions(max_table=8), 1.0)) is not None:
            asked.add(step.ends)
            halving.take(step, (0.0, 1.0), step.state, step.mini_buckets, 1e-3)
        assert asked == ends


@pytest.mark.parametrize("exact", [False, True])
def test_a_bracket_is_not_below_the_best_configuration(exact):
    """Of which there is next to nothing but one, where mean field finds another; parity checks have hard zeros."""
    rng = np.random.default_rng(0)
    n, parity = 48, np.where(np.indices([2] * 6).sum(axis=0) % 2, -np.inf, 0.0)
    checks = [(tuple(rng.choice(n, 6, replace=False).tolist()), parity) for _ in range(24)]
    code = cz.Model.from_factors([2] * n, [*checks, *(((i,), [0.0, -3.0 + 5.0 * (i % 8 == 0)]) for i in range(n))])
    glass = cz.generators.grid(9, 9, theta=0.0, weights=(-60, 60), rng=0)
    for model in (code, glass):
        best = cz.mode(model, time=20)
        found = cz.bound(model, exact=exact, time=2, gap=0.0, max_table=8)
        assert best.is_optimal and found.lower >= best.score - 1e-9 * abs(best.score)


def test_bethe_is_not_asked_where_its_tables_take_longer_than_it_has():
    """However few edges there are."""
    model = cz.generators.grid(12, 12, labels=60, rng=0)
    estimate, lower = initial_bounds.bethe_estimate(model, cz.options.BoundOptions(), Budget(0.5), math.inf, math.inf)
    assert estimate.value is None and estimate.why_none == "There was no time for Bethe." and lower == -np.inf


def test_there_are_no_quick_bounds_where_the_first_sweep_takes_longer_than_they_have():
    model = cz.generators.grid(12, 12, labels=60, rng=0)
    assert initial_bounds.initial_bounds(model, cz.options.BoundOptions(), Budget(0.1), math.inf, math.inf) is None
    found = cz.bound(model, time=1)
    assert -math.inf < found.lower <= found.upper < math.inf
