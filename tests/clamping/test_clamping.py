"""clamp: its steps, its selectors, and its two ways to grow."""

import itertools
import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from random_models import random_edges, random_tables

import clampz as cz
from clampz import generators
from clampz.clamping.clamp import TRW_DEFAULTS
from clampz.method import ForestWeights
from clampz.numerics import log_sum_exp

# Of TRW, in nats, where values are compared; sums over branches that converge so far differ by as much.
TOL = 1e-7
CLOSE = 10 * TOL
# Equal but for rounding.
EXACT = 1e-9
# A branch's start and its batch decide where mean field and Bethe stop, within their own tolerance of 1e-6 per branch.
STOPPED = 1e-5

METHODS = ("trw", "bethe", "mf")
# The weights of the model restricted to its branches: sums then depend on what is clamped and on nothing else.
UNIFORM = {"edge_weights": "uniform", "tol": TOL}
OPTIONS = {"trw": UNIFORM, "bethe": {}, "mf": {}}
HEURISTICS = tuple(cz.selectors())
SIGN = {"upper": 1.0, "lower": -1.0}


def grid(rng=0, **drawing):
    return generators.grid(3, 3, rng=rng, **{"weights": (-4, 4), **drawing})


def mixed_labels(rng=0, zeros=0.0):
    generator = np.random.default_rng(rng)
    return random_tables(generator, [3, 2, 4, 2, 3], random_edges(generator, 5, 0.8), scale=2.0, zeros=zeros)


MODELS = {
    "mixed": lambda: grid(),
    "attractive": lambda: grid(weights=(0, 4)),
    "balanced": lambda: grid(weights=(0, 4)).flip([0, 3, 4]),
    "labels": lambda: mixed_labels(),
    "zeros": lambda: mixed_labels(1, zeros=0.2),
}


# -- steps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*METHODS, "exact"])
@pytest.mark.parametrize("kind", MODELS)
def test_steps(kind, method):
    model = MODELS[kind]()
    log_z = cz.exact(model).log_z
    result = cz.clamp(model, method, k=3, select="maxW", **OPTIONS.get(method, {}))
    assert [len(step.variables) for step in result.steps] == [0, 1, 2, 3]
    assert result.variables == result.steps[-1].variables == tuple(step.variable for step in result.steps[1:])
    sizes = [math.prod(model.num_states[list(step.variables)].tolist()) for step in result.steps]
    assert [step.num_branches for step in result.steps] == sizes
    assert result.batch.num_lanes == len(result.branches) == len(result.weights) == sizes[-1]
    assert result.steps[0].variable is None and result.steps[0].selector == "" and math.isnan(result.steps[0].score)
    for before, step in itertools.pairwise(result.steps):
        assert step.selector == "maxW"
        if not step.note:  # the scores decided
            assert step.score == cz.scores(model, "maxW", clamped=before.variables).max() > 0
        assert step.variables[:-1] == before.variables
        assert step.lower >= before.lower and step.upper <= before.upper
        assert step.seconds >= 0
    assert all(step.lower <= log_z + EXACT and log_z - EXACT <= step.upper for step in result.steps)
    assert all(step.converged for step in result.steps) and result.converged
    assert (result.log_z, result.lower, result.upper) == (
        result.steps[-1].log_z,
        result.steps[-1].lower,
        result.steps[-1].upper,
    )
    assert result.method == {"mf": "mean_field"}.get(method, method)
    if result.bound in ("upper", "lower"):
        assert result.log_z == getattr(result, result.bound)
    if method == "exact":
        assert all(step.log_z == pytest.approx(log_z, abs=EXACT) for step in result.steps)
    assert "Clamped(" in repr(result) and "3 variables clamped" in repr(result)


def test_the_first_step_is_the_method_itself():
    model = grid()
    for method, solve in (("trw", cz.trw), ("bethe", cz.bethe), ("mf", cz.mean_field), ("exact", cz.exact)):
        known = solve(model, **(TRW_DEFAULTS if method == "trw" else {}))
        for result in (cz.clamp(model, method, k=0), cz.clamp(model, method, variables=[])):
            assert len(result.steps) == 1
            assert result.log_z == pytest.approx(known.log_z, abs=EXACT)
            assert result.variables == ()
            np.testing.assert_allclose(
                np.concatenate(list(result.marginals)), np.concatenate(list(known.marginals)), atol=EXACT
            )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("select", ["maxW+TRE", "greedy"])
@pytest.mark.parametrize("labels", [2, 4])
def test_all_variables_clamped_is_exact(labels, select, method):
    model = (
        generators.complete(4, weights=(-4, 4), rng=1)
        if labels == 2
        else generators.complete(4, labels=3, potentials="table", rng=1)
    )
    exact = cz.exact(model)
    result = cz.clamp(model, method, k=4, select=select)
    assert result.log_z == pytest.approx(exact.log_z, abs=EXACT)
    np.testing.assert_allclose(
        np.concatenate(list(result.marginals)), np.concatenate(list(exact.marginals)), atol=EXACT
    )


@pytest.mark.parametrize("method", METHODS)
def test_given_variables_in_their_order(method):
    model = generators.barbell(3.0)
    result = cz.clamp(model, method, variables=["X6", 0], **OPTIONS[method])
    assert result.variables == (5, 0)
    assert [step.selector for step in result.steps] == ["", "given", "given"]
    again = cz.clamp(model, method, variables=[0, 5], **OPTIONS[method])
    assert again.log_z == pytest.approx(result.log_z, abs=STOPPED)
    assert again.steps[1].log_z != result.steps[1].log_z


def test_trw_restricts_the_weights_of_the_root():
    model = grid()
    result = cz.clamp(model, "trw", variables=[4, 0], **UNIFORM)
    rho = cz.trw(model).state.rho
    np.testing.assert_array_equal(result.branches.state.rho, np.broadcast_to(rho, result.branches.state.rho.shape))
    direct = cz.trw.solve(cz.branches(model, [4, 0]), cz.options.TRWOptions(tol=TOL), weights=ForestWeights(rho))
    np.testing.assert_allclose(result.branches.upper, direct.upper, atol=CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_options_reach_the_method(method):
    options = {"trw": cz.options.TRWOptions, "bethe": cz.options.BetheOptions, "mf": cz.options.MeanFieldOptions}[
        method
    ](max_iter=2, tol=0)
    result = cz.clamp(grid(), method, variables=[0], options=options)
    assert not result.converged and not result.steps[1].converged
    assert "not converged" in repr(result)
    assert (result.branches.num_iter <= 2).all()
    same = cz.clamp(grid(), method, variables=[0], max_iter=2, **{**OPTIONS[method], "tol": 0})
    assert same.log_z == result.log_z


def test_progress_is_told():
    seen = []
    cz.clamp(grid(), "trw", variables=[0], progress=seen.append)
    assert {report.num_lanes for report in seen} == {1, 2}
    assert {report.method for report in seen} == {"trw"}


def test_a_callback_stops_all_of_it():
    """Not only the step that is being solved: what there is by then is returned, and holds."""
    model, seen = grid(), []

    def stop(report):
        seen.append(report)
        raise StopIteration

    cz.trw(model, tol=0, progress=stop)
    once = len(seen)
    result = cz.clamp(model, "trw", k=3, select="maxW", tol=0, progress=stop)
    assert result.upper >= cz.exact(model).log_z - EXACT
    assert not result.converged
    assert len(seen) == 2 * once


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("select", ["maxW+TRE", "pseudo-greedy", "greedy"])
def test_threads_change_nothing(method, select):
    model = generators.grid(4, 4, rng=2)
    one, two = (cz.clamp(model, method, k=3, select=select, threads=threads) for threads in (1, 2))
    assert one.variables == two.variables
    assert [(s.log_z, s.selector, s.score, s.num_branches) for s in one.steps[1:]] == [
        (s.log_z, s.selector, s.score, s.num_branches) for s in two.steps[1:]
    ]
    np.testing.assert_array_equal(one.branches.log_z, two.branches.log_z)
    np.testing.assert_array_equal(one.branches.marginals_flat, two.branches.marginals_flat)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("per_branch", [False, True])
def test_an_executor_changes_nothing(method, per_branch):
    """Lanes go to it in blocks, with whatever weights and starts of their own."""
    model = generators.grid(4, 4, rng=2)
    with ThreadPoolExecutor(2) as pool:
        plain, elsewhere = (
            cz.clamp(model, method, k=6, select="maxW+TRE", per_branch=per_branch, executor=where)
            for where in (None, pool)
        )
    assert plain.variables == elsewhere.variables
    np.testing.assert_array_equal(plain.branches.log_z, elsewhere.branches.log_z)
    np.testing.assert_array_equal(plain.branches.marginals_flat, elsewhere.branches.marginals_flat)
    assert [step.log_z for step in plain.steps] == [step.log_z for step in elsewhere.steps]


def test_an_executor_of_processes():
    model = grid()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        elsewhere = cz.clamp(model, "trw", k=2, select="maxW", executor=pool)
    assert elsewhere.log_z == cz.clamp(model, "trw", k=2, select="maxW").log_z


# -- selectors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("select", HEURISTICS)
def test_every_heuristic_is_followed(select):
    model = grid(1)
    result = cz.clamp(model, "mf", k=2, select=select)
    assert [step.selector for step in result.steps[1:]] == [select, select]
    plain = select.removesuffix("+TRE")
    if plain == select:
        clamped = []
        for step in result.steps[1:]:
            values = cz.scores(model, select, clamped=clamped)
            if not step.note:
                assert step.variable == int(np.argmax(values)) and step.score == values.max()
            clamped.append(step.variable)


def merit(result, criterion, step=1):
    """What a criterion makes of a clamping: higher is better."""
    return {"trw": -result.steps[step].upper, "mf": result.steps[step].lower, "bethe": result.steps[step].log_z}[
        criterion
    ]


def default_criterion(method, kind):
    return "trw" if method == "bethe" and kind not in ("attractive", "balanced") else method


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["mixed", "attractive", "balanced", "labels"])
def test_greedy_is_at_least_as_good_as_any_heuristic(kind, method):
    """At the first step and by its own criterion; pseudo-greedy too."""
    model = MODELS[kind]()
    criterion = default_criterion(method, kind)
    names = [name for name in HEURISTICS if kind != "labels" or "Cycles" not in name]
    options = OPTIONS[criterion]
    found = {}
    for select in ("greedy", "pseudo-greedy", *names):
        chosen = cz.clamp(model, method, k=1, select=select, **OPTIONS[method])
        # compared by the criterion itself, solved alike for all
        found[select] = merit(cz.clamp(model, criterion, variables=chosen.variables, **options), criterion)
    slack = 2e-3 if method != criterion else STOPPED  # a criterion other than the method is solved roughly
    assert all(found["greedy"] >= value - slack for value in found.values())
    assert all(found["pseudo-greedy"] >= found[name] - slack for name in names)


@pytest.mark.parametrize("method", METHODS)
def test_greedy_tries_every_variable(method):
    """Its candidates are worth what clamping them directly is worth, so it finds the best of those."""
    for kind in ("mixed", "attractive", "labels"):
        model = MODELS[kind]()
        criterion = default_criterion(method, kind)
        if criterion != method:
            continue
        greedy = cz.clamp(model, method, k=2, select="greedy", **OPTIONS[method])
        first = [
            merit(cz.clamp(model, method, variables=[i], **OPTIONS[method]), method) for i in range(model.num_variables)
        ]
        assert merit(greedy, method) == pytest.approx(max(first), abs=STOPPED)
        assert first[greedy.variables[0]] == pytest.approx(max(first), abs=STOPPED)
        others = [i for i in range(model.num_variables) if i != greedy.variables[0]]
        second = [
            merit(cz.clamp(model, method, variables=[greedy.variables[0], i], **OPTIONS[method]), method, 2)
            for i in others
        ]
        assert merit(greedy, method, 2) == pytest.approx(max(second), abs=STOPPED)
        assert [step.selector for step in greedy.steps[1:]] == ["greedy", "greedy"]


def test_pseudo_greedy_names_the_heuristic():
    result = cz.clamp(grid(), "trw", k=3, select="pseudo-greedy")
    for step in result.steps[1:]:
        assert step.selector in HEURISTICS
        assert step.score > 0


@pytest.mark.parametrize("method", ["trw", "mf"])
def test_optimal_tries_every_set(method):
    model = generators.complete(5, weights=(-4, 4), rng=3)
    optimal, greedy = (
        cz.clamp(model, method, k=2, select=select, **OPTIONS[method]) for select in ("optimal", "greedy")
    )
    assert merit(optimal, method, 2) >= merit(greedy, method, 2) - STOPPED
    assert merit(optimal, method, 1) == pytest.approx(merit(greedy, method, 1), abs=STOPPED)
    pairs = [
        merit(cz.clamp(model, method, variables=pair, **OPTIONS[method]), method, 2)
        for pair in itertools.combinations(range(5), 2)
    ]
    assert merit(optimal, method, 2) == pytest.approx(max(pairs), abs=STOPPED)
    assert [step.num_branches for step in optimal.steps] == [1, 2, 4]
    assert [len(step.variables) for step in optimal.steps] == [0, 1, 2]
    assert optimal.steps[2].selector == "optimal"


@pytest.mark.parametrize("criterion", ["trw", "mf", "bethe", "gap"])
@pytest.mark.parametrize("method", METHODS)
def test_criteria(method, criterion):
    """Any criterion goes with any method, and rules the choice."""
    model = grid(4)
    result = cz.clamp(model, method, k=1, select="greedy", criterion=criterion, **OPTIONS[method])

    def worth(i):
        upper, lower, value = (
            cz.clamp(model, name, variables=[i], **OPTIONS[name]).steps[1] for name in ("trw", "mf", "bethe")
        )
        return {"trw": -upper.upper, "mf": lower.lower, "bethe": value.log_z, "gap": lower.lower - upper.upper}[
            criterion
        ]

    found = [worth(i) for i in range(model.num_variables)]
    assert found[result.variables[0]] >= max(found) - 3e-3  # guides are solved to 1e-3
    log_z = cz.exact(model).log_z
    assert result.lower - EXACT <= log_z <= result.upper + EXACT


def test_bethe_on_mixed_models_follows_trw():
    model = grid(4)
    plain, by_trw = (cz.clamp(model, "bethe", k=2, select="greedy", criterion=criterion) for criterion in (None, "trw"))
    assert plain.variables == by_trw.variables
    attractive = grid(weights=(0, 4))
    plain, by_value = (
        cz.clamp(attractive, "bethe", k=2, select="greedy", criterion=criterion) for criterion in (None, "bethe")
    )
    assert plain.variables == by_value.variables


def test_flipping_changes_no_choice():
    rng = np.random.default_rng(5)
    for seed in range(3):
        model = grid(seed)
        flipped = model.flip(rng.random(9) < 0.5)
        for select in ("pseudo-greedy", "greedy", "Mpower+TRE", "frustCycles"):
            one, other = (cz.clamp(each, "trw", k=2, select=select, tol=TOL) for each in (model, flipped))
            assert one.variables == other.variables
            np.testing.assert_allclose([s.log_z for s in one.steps], [s.log_z for s in other.steps], atol=CLOSE)


def test_trees_fall_back_and_say_so():
    model = generators.from_graph(5, [(0, 1), (1, 2), (2, 3), (3, 4)], rng=0)
    result = cz.clamp(model, "trw", k=2, select="maxW")
    assert all("no variable scores above zero" in step.note for step in result.steps[1:])
    assert result.log_z == pytest.approx(cz.exact(model).log_z, abs=1e-3)


def test_the_fallback_of_tre_looks_at_the_entropy():
    """No cycle, so no heuristic decides.  Variable 1 has the largest weights and hardly any entropy; 3 and 4 have all
    of it."""
    model = generators.from_graph(5, [(0, 1), (1, 2), (3, 4)], theta=0, weights=2.0, rng=0)
    settled = cz.Model(
        [np.array([0.0, 12.0]) if i < 3 else np.array(table) for i, table in enumerate(model.unary)],
        dict(model.pairwise.items()),
    )
    assert cz.clamp(settled, "trw", k=1, select="maxW").variables == (1,)
    assert cz.clamp(settled, "trw", k=1, select="maxW+TRE").variables[0] in (3, 4)


# -- growth ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("select", ["maxW+TRE", "pseudo-greedy", "greedy", "maxW"])
def test_branches_may_choose_for_themselves(method, select):
    model = generators.complete(6, rng=7)
    log_z = cz.exact(model).log_z
    result = cz.clamp(model, method, k=3, select=select, per_branch=True, **OPTIONS[method])
    assert [step.num_branches for step in result.steps] == [1, 2, 4, 8]
    assert log_sum_exp(cz.exact(result.batch).log_z) == pytest.approx(log_z, abs=EXACT)
    assert ((result.batch.num_possible == 1).sum(axis=0) == 3).all()
    for before, step in itertools.pairwise(result.steps):
        assert before.lower <= step.lower <= log_z + EXACT
        assert log_z - EXACT <= step.upper <= before.upper
    clamped = set(np.flatnonzero((result.batch.num_possible == 1).any(axis=1)).tolist())
    assert set(result.variables) == clamped
    if any(step.variable is None for step in result.steps[1:]):
        assert len(clamped) > 3
    if select == "maxW":  # looks at the weights alone
        assert result.variables == cz.clamp(model, method, k=3, select=select).variables


def test_branches_of_their_own_do_differ():
    found = [
        cz.clamp(generators.complete(6, rng=seed), "trw", k=3, select="greedy", per_branch=True) for seed in range(4)
    ]
    assert any(step.variable is None for result in found for step in result.steps[1:])


def test_per_branch_greedy_is_at_least_as_good_at_the_step_where_it_parts():
    """Up to the second clamp both have the same branches; then each branch picks what is best for it."""
    for seed in range(4):
        model = generators.complete(6, rng=seed)
        shared, own = (cz.clamp(model, "trw", k=2, select="greedy", per_branch=own, tol=TOL) for own in (False, True))
        assert own.steps[1].upper == pytest.approx(shared.steps[1].upper, abs=CLOSE)
        assert own.upper <= shared.upper + CLOSE


def test_per_branch_skips_branches_that_are_done():
    """More clamps than variables with a choice: the branches stay as they are, and the sum is exact."""
    model = cz.Model(
        [[0.0, 1.0], [0.0, -np.inf], [0.3, 0.0]],
        {(0, 1): [[1.0, 0.0], [0.0, 1.0]], (0, 2): [[2.0, 0.0], [0.0, 1.0]], (1, 2): np.eye(2)},
    )
    for per_branch in (False, True):
        for select in ("maxW", "greedy", "pseudo-greedy", "maxW+TRE"):
            result = cz.clamp(model, "trw", k=3, select=select, per_branch=per_branch)
            assert len(result.steps) == 4 and result.steps[-1].num_branches == 4
            assert result.log_z == pytest.approx(cz.exact(model).log_z, abs=EXACT)
            assert set(result.variables) == {0, 2}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("select", ["maxW", "maxW+TRE", "greedy", "pseudo-greedy"])
def test_evidence_and_hard_zeros(method, select):
    """Variables that are fixed already are not chosen, and forbidden pairs do no harm."""
    model = mixed_labels(2, zeros=0.25)
    tables = [np.array(table) for table in model.unary]
    tables[0][1:] = -np.inf
    model = cz.Model(tables, dict(model.pairwise.items()), constant=model.constant)
    log_z = cz.exact(model).log_z
    result = cz.clamp(model, method, k=3, select=select)
    assert 0 not in result.variables
    assert result.lower - EXACT <= log_z <= result.upper + EXACT
    for i, table in enumerate(cz.exact(model).marginals):
        assert result.marginals[i].sum() == pytest.approx(1, abs=1e-5)
        assert (result.marginals[i][table == 0] <= EXACT).all()


def test_a_settled_variable_may_be_given():
    model = grid()
    tables = [np.array(table) for table in model.unary]
    tables[3][0] = -np.inf
    settled = cz.Model(tables, dict(model.pairwise.items()))
    result = cz.clamp(settled, "trw", variables=[3, 0], tol=TOL)
    assert [step.num_branches for step in result.steps] == [1, 1, 2]
    assert result.log_z == pytest.approx(cz.clamp(settled, "trw", variables=[0], tol=TOL).log_z, abs=CLOSE)


@pytest.mark.parametrize("method", METHODS)
def test_an_impossible_model(method):
    model = cz.Model([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], {(0, 1): np.full((2, 2), -np.inf), (1, 2): np.zeros((2, 2))})
    result = cz.clamp(model, method, k=3, select="maxW0")
    assert result.log_z == -np.inf


def test_more_labels():
    model = mixed_labels()
    for method in METHODS:
        result = cz.clamp(model, method, k=2, select="pseudo-greedy")
        assert all(step.selector.removesuffix("+TRE") in ("maxW0", "maxW", "Mpower") for step in result.steps[1:])
        assert result.steps[-1].num_branches == math.prod(model.num_states[list(result.variables)].tolist())
    for select in ("frustCycles", "strongCycles+TRE"):
        with pytest.raises(cz.errors.ClampzError, match=r"binary"):
            cz.clamp(model, "trw", k=1, select=select)


def test_a_model_without_edges():
    model = cz.Model([[0.0, 1.0], [0.5, 0.0, 0.2]], {})
    for method in METHODS:
        result = cz.clamp(model, method, k=2, select="maxW")
        assert result.steps[0].log_z == pytest.approx(cz.exact(model).log_z, abs=EXACT)
        assert result.log_z == pytest.approx(cz.exact(model).log_z, abs=EXACT)


@pytest.mark.parametrize("method", [*METHODS, "exact"])
def test_the_smallest_models(method):
    single = cz.clamp(cz.Model([[0.0, 1.0]], {}), method, k=1, select="pseudo-greedy")
    assert single.log_z == pytest.approx(np.log1p(np.e), abs=EXACT) and single.variables == (0,)
    nothing = cz.clamp(cz.Model([], {}), method, k=0)
    assert nothing.log_z == pytest.approx(0, abs=EXACT) and len(nothing.steps) == 1
