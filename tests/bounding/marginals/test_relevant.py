"""What the presolve leaves around variables, and what exact inference says of them."""

import numpy as np
import pytest
from simplifiable import Enumerated, gates, random_model

import clampz as cz
from clampz.bounding.marginals.relevant import Known, RelevantModel, known_exactly
from clampz.exact_inference import plans, running
from clampz.model_counting.count import is_available
from clampz.runtime.budget import Budget


@pytest.mark.parametrize("seed", range(60))
def test_intervals_of_some_variables_are_those_of_the_whole(seed, monkeypatch):
    """Whatever the presolve leaves around them."""
    monkeypatch.setattr(plans, "_is_quick", lambda *asked: False)
    model, rng = random_model(seed), np.random.default_rng(seed)
    truth = Enumerated(model)
    asked = rng.permutation(model.num_variables)[: int(rng.integers(1, 4))].tolist()
    found = cz.bound_marginals(model, asked)
    assert list(found.lower) == asked and found.stopped_by == "exact"
    for i in asked:
        if truth.log_z == -np.inf:
            assert np.isnan(found.interval(i)).all()
        else:
            low, high = found.interval(i).T
            assert (low <= truth.unary[i] + 1e-12).all() and (truth.unary[i] <= high + 1e-12).all()
            assert (high - low < 1e-6).all()


def test_no_more_is_looked_at_than_what_is_asked_for_depends_on():
    model, _ = gates(np.random.default_rng(1), 40, 60)
    asked = np.array([0, 50])
    rest = RelevantModel.of(model, asked, cz.options.BoundOptions(), Budget())
    assert rest.rest.num_variables < 20
    as_it_is = RelevantModel.of(model, asked, cz.options.BoundOptions(exact=False), Budget())
    assert as_it_is.rest is model and as_it_is.within.tolist() == [0, 50]


def test_intervals_of_all_variables_at_once_too_wide():
    """But not a few at a time."""
    model, _ = gates(np.random.default_rng(1), 40, 60)
    found, truth = cz.bound_marginals(model, memory="200MB"), cz.exact(model)
    assert found.stopped_by == "exact"
    assert (found.lower.flat <= truth.marginals.flat).all() and (truth.marginals.flat <= found.upper.flat).all()


def test_intervals_on_a_planar_graph_too_wide_to_eliminate():
    model = cz.generators.grid(40, 40, toroidal=False, theta=0.0, weights=(-3, 3), rng=0)
    found = cz.bound_marginals(model)
    assert found.stopped_by == "exact"
    assert (found.lower.flat <= 0.5).all() and (found.upper.flat >= 0.5).all() and found.widest < 1e-6


@pytest.mark.skipif(not is_available(), reason="no program that counts")
def test_intervals_of_clauses_are_counted(monkeypatch):
    rng = np.random.default_rng(0)
    clauses = []
    for _ in range(30):
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(2, size=3))] = -np.inf
        clauses.append((tuple(rng.choice(12, 3, replace=False).tolist()), table))
    model = cz.Model.from_factors([2] * 12, clauses)
    truth = cz.exact(model)
    monkeypatch.setattr(running, "worth_counting", lambda *asked, first: True)
    monkeypatch.setattr(running, "plan_if_it_fits", lambda *asked: (None, "nothing else was tried"))
    found = cz.bound_marginals(model)
    assert found.stopped_by == "exact"
    assert (found.lower.flat <= truth.marginals.flat).all() and (truth.marginals.flat <= found.upper.flat).all()


def test_what_is_known_stays_and_the_others_are_bounded(monkeypatch):
    model = cz.generators.grid(4, 4, labels=3, rng=0)
    truth = cz.exact(model)

    def half(*asked):
        known = known_exactly(*asked)
        missing = np.arange(len(known.lower)) < 12
        return Known(np.where(missing, np.nan, known.lower), np.where(missing, np.nan, known.upper), False)

    monkeypatch.setattr("clampz.bounding.marginals.bound_marginals.known_exactly", half)
    seen = []
    found = cz.bound_marginals(model, time=20, gap=1e-3, progress=seen.append)
    assert found.stopped_by == "gap" and found.widest <= 1e-3
    for each in (seen[0], found):
        assert (each.lower.flat <= truth.marginals.flat).all() and (truth.marginals.flat <= each.upper.flat).all()
        assert (each.upper.flat - each.lower.flat)[12:].max() < 1e-6


def test_a_contradiction_is_found_before_anything_is_bounded(monkeypatch):
    monkeypatch.setattr("clampz.bounding.marginals.bound_marginals.known_exactly", None)  # nobody asks it
    never = np.full((2, 2), -np.inf)
    model = cz.Model(np.zeros((3, 2)), {(0, 1): never, (1, 2): np.eye(2)})
    found = cz.bound_marginals(model)
    assert np.isnan(found.lower.flat).all() and found.stopped_by == "exact"
