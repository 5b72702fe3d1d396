"""The best configuration: against all of them, by sums that are rounded once."""

import itertools
import math
import os
import signal
import threading

import numpy as np
import pytest
from budgets import Asked
from random_factors import random_factors

import clampz as cz
from clampz.map_inference import branch_and_bound, components, mode
from clampz.map_inference.strategies import (
    STRATEGIES,
    best_first,
    local_search,
    max_elimination,
    mini_buckets,
    presolve,
)
from clampz.presolve.simplified import unchanged
from clampz.runtime.budget import Budget

EXACT = 1e-9


@pytest.fixture
def small_tables(monkeypatch):
    """Buckets are split, and what is between the bounds is left to the search, with room for few open nodes."""

    def limited(rng):
        monkeypatch.setattr(mini_buckets, "FIRST_TABLE", max_table := int(rng.choice([2, 4, 16])))
        monkeypatch.setattr(mini_buckets, "LARGEST_TABLE", max_table)
        monkeypatch.setattr(components, "EXACT_SHARE", 0.0)
        monkeypatch.setattr(branch_and_bound, "MOST_NODES", int(rng.choice([1, 12, 1000])))
        monkeypatch.setattr(branch_and_bound, "MOST_BACKTRACKS", int(rng.choice([1, 2, 8])))

    return limited


def terms(model, x):
    """The terms of a score, one by one."""
    yield model.constant
    for i, a in enumerate(x):
        yield float(model.unary[i][a])
    for i, j in model.edges.tolist():
        yield float(model.pairwise[i, j][x[i], x[j]])
    for scope, table in model.factors:
        yield float(table[tuple(x[i] for i in scope)])


def ranked(model, known=None):
    """All possible configurations, best first, with their scores."""
    states = [[known[i]] if known and i in known else range(k) for i, k in enumerate(model.num_states.tolist())]
    all_of_them = ((math.fsum(terms(model, x)), x) for x in itertools.product(*states))
    return sorted((each for each in all_of_them if each[0] > -math.inf), reverse=True)


def check(model, found, wanted, num_best=1):
    """A finished result against all configurations."""
    assert found.is_optimal and found.stopped_by == "optimal"
    if not wanted:
        assert found.states is None and found.configuration is None and found.upper == found.score == -math.inf
        assert "Z = 0" in repr(found)
        return
    best = wanted[0][0]
    assert found.lower <= best <= found.upper <= found.lower + EXACT * max(1.0, abs(best))
    assert len(found.best) == min(num_best, len(wanted))
    assert len({tuple(each.states.tolist()) for each in found.best}) == len(found.best)
    for each, (score, _) in zip(found.best, wanted, strict=False):
        assert each.score == math.fsum(terms(model, each.states.tolist()))
        assert abs(each.score - score) <= EXACT * max(1.0, abs(score))
    for before, after in itertools.pairwise(found.trace):
        assert before.upper + EXACT >= after.upper
        assert before.lower - EXACT * max(1.0, abs(best)) <= best


@pytest.mark.parametrize("first", range(0, 240, 40))
def test_the_best_configuration_is_found(first):
    for seed in range(first, first + 40):
        model = random_factors(np.random.default_rng(seed))
        check(model, cz.mode(model, rng=seed, threads=1), ranked(model))


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_the_best_few_are_found(first):
    for seed in range(first, first + 40):
        rng = np.random.default_rng(1000 + seed)
        model, num_best = random_factors(rng), int(rng.choice([2, 3, 10]))
        check(model, cz.mode(model, num_best=num_best, threads=1), ranked(model), num_best)


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_buckets_that_are_split_are_searched_through(first, small_tables, monkeypatch):
    monkeypatch.setattr(presolve, "simplify", lambda model, **_: unchanged(model, "max"))
    for seed in range(first, first + 40):
        rng = np.random.default_rng(2000 + seed)
        model, num_best = random_factors(rng), int(rng.choice([1, 1, 3, 10]))
        small_tables(rng)
        check(model, cz.mode(model, num_best=num_best, rng=seed, threads=1), ranked(model), num_best)


def frustrated(n=11, labels=2, rng=3):
    return cz.generators.complete(n, weights=(-6, 6), labels=labels, rng=rng)


def test_bounds_hold_wherever_a_run_is_stopped(monkeypatch, small_tables):
    small_tables(np.random.default_rng(0))
    model = frustrated(9)
    best = ranked(model)[0][0]
    closed = False
    for most in (*range(1, 60), 10_000):
        budgets = []

        def asked(time, most=most, budgets=budgets):
            budgets.append(Asked(most))
            return budgets[-1]

        monkeypatch.setattr(mode, "Budget", asked)
        found = cz.mode(model, threads=1)
        assert found.lower <= best <= found.upper
        assert found.states is not None and found.score == math.fsum(terms(model, found.states.tolist()))
        assert found.stopped_by == ("optimal" if found.is_optimal else "interrupt")
        for moment in found.trace:
            assert moment.lower <= best + EXACT and best - EXACT <= moment.upper
        closed = found.is_optimal
    assert closed and abs(found.score - best) <= EXACT


def test_evidence_stays_in_its_place_and_names_are_used():
    model = cz.Model(
        np.zeros((3, 2)),
        {("rain", "sprinkler"): [[0.0, 1.0], [2.0, -1.0]], ("sprinkler", "wet"): [[1.0, 0.0], [0.0, 3.0]]},
        names=["rain", "sprinkler", "wet"],
        state_names=[["no", "yes"]] * 3,
    )
    assert cz.mode(model).configuration == {"rain": "no", "sprinkler": "yes", "wet": "yes"}
    found = cz.mode(model, evidence={"rain": "yes"})
    assert found.configuration == {"rain": "yes", "sprinkler": "no", "wet": "no"} and found.score == 3.0
    several = cz.mode(model, evidence={"rain": "yes"}, num_best=10)
    assert [each.score for each in several.best] == [3.0, 2.0, 2.0, -1.0]
    assert {each.states[0] for each in several.best} == {1}
    with pytest.raises(cz.errors.EvidenceError, match="snow"):
        cz.mode(model, evidence={"snow": "yes"})


@pytest.mark.parametrize("seed", range(20))
def test_evidence_of_random_models(seed):
    rng = np.random.default_rng(3000 + seed)
    model = random_factors(rng, zeros=0.0)
    known = {i: int(rng.integers(k)) for i, k in enumerate(model.num_states.tolist()) if rng.random() < 0.4}
    found, wanted = cz.mode(model, evidence=known), ranked(model, known)
    assert found.is_optimal and abs(found.score - wanted[0][0]) <= EXACT * max(1.0, abs(wanted[0][0]))
    assert all(found.states[i] == a for i, a in known.items())


@pytest.mark.parametrize("num_best", [1, 3])
def test_ends_hold_to_the_last_digit(num_best):
    """Those of the model as it was given: with evidence, tables are added up, which rounds what then cancels."""
    for seed in range(60):
        rng = np.random.default_rng(3100 + seed)
        size = [1.0, 1e15][seed % 2]
        pairs = rng.normal(size=(4, 2, 2)) + size * np.array([1.0, -1.0, 1.0, -1.0])[:, None, None]
        scopes = [(0, 1), (1, 2), (2, 3), (0, 3)]
        unary = [((i,), rng.normal(size=2)) for i in range(4)]
        model = cz.Model.from_factors([2] * 4, [*zip(scopes, pairs, strict=True), *unary])
        known = {0: 1} if seed % 3 else None
        found, wanted = cz.mode(model, evidence=known, num_best=num_best), ranked(model, known)
        for each in found.best:
            assert each.score == math.fsum(terms(model, each.states.tolist()))
        for moment in (found, *found.trace):
            assert moment.lower <= wanted[0][0] <= moment.upper


def test_components_are_maximised_one_by_one(monkeypatch, small_tables):
    small_tables(np.random.default_rng(0))
    K = [frustrated(9, rng=seed) for seed in range(3)]
    unary = np.concatenate([each.unary.flat for each in K]).reshape(27, 2)
    pairs = {(i + 9 * k, j + 9 * k): each.pairwise[i, j] for k, each in enumerate(K) for i, j in each.pairwise}
    model = cz.Model(unary, pairs, constant=0.5)
    best = 0.5 + sum(ranked(each)[0][0] for each in K)
    for most in (1, 2, 256):
        monkeypatch.setattr(components, "MOST_PARTS", most)
        found = cz.mode(model)
        assert found.is_optimal and abs(found.score - best) <= EXACT
        assert best - EXACT <= found.upper <= best + EXACT


def test_ends_of_components_that_cancel_hold(monkeypatch):
    """What is rounded in each of them is larger than what their sum is rounded by."""
    monkeypatch.setattr(components, "EXACT_SHARE", 0.0)
    monkeypatch.setattr(presolve, "simplify", lambda model, **_: unchanged(model, "max"))
    for seed in range(20):
        rng = np.random.default_rng(3200 + seed)
        pairs = {
            (i + first, j + first): size + rng.normal(size=(2, 2))
            for first, size in ((0, 1e3), (3, -1e3))
            for i, j in ((0, 1), (1, 2), (0, 2))
        }
        model = cz.Model(np.zeros((6, 2)), pairs)
        found, (best, _) = cz.mode(model, threads=1), ranked(model)[0]
        for moment in (found, *found.trace):
            assert moment.lower <= best <= moment.upper


@pytest.mark.parametrize(
    ("model", "best"),
    [
        (cz.Model([]), 0.0),
        (cz.Model([], constant=2.5), 2.5),
        (cz.Model([[0.5]]), 0.5),
        (cz.Model([[0.0, 0.0], [1.0]], {(0, 1): [[0.0], [0.0]]}), 1.0),
        (cz.Model(np.zeros((20, 3))), 0.0),  # 3^20 of them are best
        (cz.Model(np.full((3, 2), 1e15), {(0, 1): [[1e15, -1e15], [3.0, -1e15]]}), 4e15),
        (cz.Model(np.zeros((2, 500)), {(0, 1): np.eye(500)}), 1.0),
    ],
)
def test_models_of_any_kind(model, best):
    found = cz.mode(model)
    assert found.is_optimal and found.score == best and len(found.states) == model.num_variables
    assert found.lower <= best <= found.upper <= best + max(EXACT, 1e-14 * abs(best))
    assert cz.mode(model, num_best=3).score == best


def test_no_configuration_is_possible():
    differ = np.where(np.eye(2) > 0, -np.inf, 0.0)
    odd = cz.Model(np.zeros((3, 2)), {(0, 1): differ, (1, 2): differ, (0, 2): differ})
    for num_best in (1, 2):
        check(odd, cz.mode(odd, num_best=num_best), [], num_best)


def test_the_same_on_any_number_of_threads_and_for_a_seed(small_tables):
    small_tables(np.random.default_rng(0))
    model = frustrated(14, rng=5)
    found = [cz.mode(model, threads=threads, rng=7) for threads in (1, 2)]
    assert [each.is_optimal for each in found] == [True, True]
    assert found[0].states.tolist() == found[1].states.tolist() and found[0].upper == found[1].upper
    again = cz.mode(model, rng=np.random.default_rng(7))
    assert again.states.tolist() == found[0].states.tolist()


def test_a_wide_gap_ends_the_search_early(small_tables):
    small_tables(np.random.default_rng(0))
    model = frustrated(14, rng=5)
    best = cz.mode(model).score
    found = cz.mode(model, gap=20.0)
    assert found.is_optimal and found.score <= best <= found.upper <= found.score + 20.0 + EXACT


def test_progress_is_told_and_may_stop_the_run(small_tables):
    small_tables(np.random.default_rng(0))
    moments = []

    def stop(moment):
        moments.append(moment)
        if len(moments) == 3:
            raise StopIteration

    found = cz.mode(frustrated(14, rng=5), progress=stop)
    assert found.stopped_by == "callback" and not found.is_optimal and len(moments) == 3
    assert found.lower <= found.upper and "gap" in repr(found)


def test_too_little_memory_leaves_what_takes_none():
    model = frustrated(8)
    found = cz.mode(model, memory=1000)
    assert found.stopped_by == "memory" and not found.is_optimal and found.lower <= ranked(model)[0][0] <= found.upper


@pytest.mark.parametrize("num_best", [1, 5])
def test_there_is_a_configuration_where_there_is_no_time_for_bounds(num_best, monkeypatch):
    """Of several that are asked for, the one that local search finds is better than none."""
    monkeypatch.setattr(components, "BUILDING_SHARE", 0.0)
    model = frustrated()
    found = cz.mode(model, num_best=num_best, time=0.2)
    assert 1 <= len(found.best) <= num_best and not found.is_optimal and found.stopped_by == "time"
    assert found.score == math.fsum(terms(model, found.states.tolist())) <= ranked(model)[0][0] <= found.upper


def test_an_exact_bound_is_searched_by_to_the_end(monkeypatch):
    """Many configurations take more nodes than a turn of the search has; no other bound is looked for meanwhile."""
    monkeypatch.setattr(best_first, "NODES_AT_A_TIME", 8)
    monkeypatch.setattr(mini_buckets, "heuristic", lambda *_: pytest.fail("another bound"))
    model = frustrated()
    check(model, cz.mode(model, num_best=400, threads=1), ranked(model), 400)


def test_more_configurations_than_memory_holds_are_refused():
    with pytest.raises(
        cz.errors.TooWideError, match=r"the best 10,000,000 configurations of 11 variables need .* num_best="
    ):
        cz.mode(frustrated(), num_best=10**7, memory="100MB")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_best": 0}, "num_best: expected a whole number >= 1, found 0"),
        ({"num_best": 1.5}, "num_best"),
        ({"gap": -1.0}, "gap: expected a number of nats >= 0"),
        ({"time": -1.0}, "time: expected seconds >= 0"),
        ({"threads": 0}, "threads"),
        ({"memory": "much"}, "memory"),
        ({"rng": "x"}, "rng"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(cz.errors.OptionError, match=message):
        cz.mode(cz.Model(np.zeros((2, 2))), **options)


def test_ctrl_c_ends_a_run_with_what_it_has():
    model = frustrated(60)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    cz.mode(frustrated(20), time=0.2)  # compiled
    timer.start()
    found = cz.mode(model, time=60.0)
    timer.join()
    assert found.stopped_by == "interrupt" and found.lower < found.upper and found.states is not None


def test_all_of_the_best_have_names():
    model = cz.Model([[0.0, 1.0], [0.5, 0.0]], names=["a", "b"], state_names=[["no", "yes"], ["off", "on"]])
    found = cz.mode(model, num_best=2)
    assert found.configurations == [{"a": "yes", "b": "off"}, {"a": "yes", "b": "on"}]
    assert found.configurations[0] == found.configuration


def test_components_are_not_taken_apart_where_time_or_memory_are_over(monkeypatch, small_tables):
    model = cz.Model.from_binary(np.ones(40), np.full(20, -1.0), np.arange(40).reshape(20, 2))
    monkeypatch.setattr(components.Component, "eliminate", lambda *_: None)
    monkeypatch.setattr(presolve, "simplify", lambda model, **_: unchanged(model, "max"))
    real, made = components.component, []

    def component(whole, variables):
        made.append(variables)
        monkeypatch.setattr(Budget, "must_stop", lambda _: True)
        return real(whole, variables)

    monkeypatch.setattr(components, "component", component)
    best = cz.mode(model, time=20.0)
    assert len(made) == 1 and best.score <= best.upper
    monkeypatch.undo()
    monkeypatch.setattr(components, "BYTES_PER_ENTRY", 1e15)
    monkeypatch.setattr(components, "component", lambda *_: pytest.fail("work"))
    assert cz.mode(model, time=20.0).is_optimal


def random_kinds(seed):
    """Models of every kind, small enough to be enumerated: pairs, factors, hard zeros, many labels."""
    rng = np.random.default_rng(5000 + seed)
    if seed % 4 == 0:
        return frustrated(8, rng=seed)
    if seed % 4 == 1:
        labels = int(rng.integers(6, 10))
        pairs = {(i, j): rng.normal(size=(labels, labels)) * 3.0 for i in range(3) for j in range(i)}
        return cz.Model(rng.normal(size=(3, labels)), pairs)
    return random_factors(rng, zeros=[0.0, 0.3][seed % 4 - 2])


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_ends_hold_whatever_is_told(first, small_tables, monkeypatch):
    """Every strategy is at work: nothing is simplified, or only that, and tables are small."""
    for seed in range(first, first + 40):
        model, moments = random_kinds(seed), []
        if seed % 3:
            monkeypatch.setattr(presolve, "simplify", lambda model, **_: unchanged(model, "max"))
        small_tables(np.random.default_rng(seed))
        wanted = ranked(model)
        best = wanted[0][0] if wanted else -math.inf
        found = cz.mode(model, rng=seed, progress=moments.append)
        monkeypatch.undo()
        assert moments and found.is_optimal
        for moment in (*moments, *found.trace):
            assert moment.lower <= best <= moment.upper
        for before, after in itertools.pairwise(moments):
            assert before.seconds <= after.seconds and before.lower <= after.lower and before.upper >= after.upper


def test_there_is_an_answer_at_any_time_and_time_never_makes_it_worse():
    model = frustrated(70, rng=2)
    cz.mode(frustrated(20), time=0.2)  # compiled
    runs = [cz.mode(model, time=time, threads=1) for time in (0.0, 1e-4, 0.01, 0.3, 1.2)]
    for found in runs:  # how far a run gets in a moment is a matter of load; none falls behind the first pass
        assert found.score >= runs[0].score and found.upper <= runs[0].upper
        assert found.states is not None and found.score <= found.upper < math.inf
        assert found.score == math.fsum(terms(model, found.states.tolist())) and found.stopped_by == "time"
    assert runs[-1].gap < runs[0].gap


def test_the_first_configuration_is_kept_where_presolve_leaves_no_time(monkeypatch):
    """What presolve leaves may begin with a worse one."""
    model = cz.Model.from_binary(np.ones(6), np.full(6, 0.1), [(i, (i + 1) % 6) for i in range(6)])
    first, real = cz.mode(model, time=0.0), presolve.simplify

    def simplify(model, **options):
        found = real(model, **options)
        monkeypatch.setattr(Budget, "must_stop", lambda _: True)
        return found

    monkeypatch.setattr(presolve, "simplify", simplify)
    monkeypatch.setattr(components, "first_states", lambda model: np.zeros(model.num_variables, dtype=np.int32))
    found = cz.mode(model)
    assert found.score >= cz.mode(model, time=0.0).score and found.score <= first.upper


def test_a_strategy_that_fails_ends_alone(monkeypatch, small_tables):
    def fails(*_):
        raise MemoryError("too much")

    monkeypatch.setattr(local_search.LocalSearch, "search", fails)
    small_tables(np.random.default_rng(0))
    model = frustrated(9)
    with pytest.warns(RuntimeWarning, match="local search ended: MemoryError"):
        found = cz.mode(model)
    assert found.is_optimal and abs(found.score - ranked(model)[0][0]) <= EXACT


@pytest.mark.parametrize("strategy", [each for each in STRATEGIES if each is not max_elimination.MaxElimination])
def test_the_answer_is_the_same_without_any_strategy(strategy, monkeypatch, small_tables):
    """As long as branch and bound has a bound to go by, or the maximum is found by elimination."""
    model = frustrated(9)
    monkeypatch.setattr(mode, "STRATEGIES", tuple(each for each in STRATEGIES if each is not strategy))
    if strategy not in (mini_buckets.MiniBuckets, best_first.BestFirstSearch):
        small_tables(np.random.default_rng(0))
    found, (best, _) = cz.mode(model, time=2.0), ranked(model)[0]
    assert found.lower <= best + EXACT and best <= found.upper + EXACT
    assert found.is_optimal or strategy is best_first.BestFirstSearch
