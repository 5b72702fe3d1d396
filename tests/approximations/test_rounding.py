"""`lower` and `upper` hold to the last digit: against closed forms in sixty digits, where sums are long or cancel."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import clampz as cz

getcontext().prec = 60
NO_EDGES = np.zeros((0, 2), dtype=np.int64)
METHODS = (cz.exact, cz.mean_field, cz.bethe, cz.trw)


def log_sum_exp(terms):
    top = max(terms)
    return top + sum((term - top).exp() for term in terms).ln()


def true_log_z(model):
    """By enumeration, every number taken for what it is."""
    scores = []
    for x in product(*(range(k) for k in model.num_states)):
        score = Decimal(model.constant) + sum(Decimal(float(model.unary[i][a])) for i, a in enumerate(x))
        scores.append(score + sum(Decimal(float(table[x[i], x[j]])) for (i, j), table in model.pairwise.items()))
    return log_sum_exp(scores)


def assert_encloses(estimate, truth):
    assert estimate.lower == -np.inf or Decimal(estimate.lower) <= truth
    assert estimate.upper == np.inf or truth <= Decimal(estimate.upper)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize(
    ("num_variables", "theta"),
    [(100, 3.276858517813132), (400, 0.9499463834226021), (200, 4.419901188615983), (100_000, 0.1)],
)
def test_many_equal_terms(method, num_variables, theta):
    model = cz.Model.from_binary(np.full(num_variables, theta), [], NO_EDGES)
    assert_encloses(method(model), num_variables * log_sum_exp([Decimal(0), Decimal(theta)]))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_many_equal_terms_with_an_offset(method):
    offset = 1000.1
    model = cz.Model.from_arrays(np.full((20_000, 2), offset), NO_EDGES, np.zeros((0, 2, 2)))
    assert_encloses(method(model), 20_000 * (Decimal(offset) + Decimal(2).ln()))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_many_equal_terms_in_several_lanes(method):
    """Lanes are columns, and columns must be added up as carefully as a single one."""
    rng = np.random.default_rng(0)
    for n in (500, 5000):
        low, high, W = 10 * rng.random(3)
        pairs = np.arange(n).reshape(-1, 2)
        model = cz.Model.from_binary(np.zeros(n), np.full(n // 2, W), pairs)
        batch = cz.Batch(model, np.tile([[low], [high]], (n, 9)))
        x, y, half = Decimal(float(low)), Decimal(float(high)), Decimal(float(W / 2))
        free = log_sum_exp([2 * x + half, x + y, x + y, 2 * y + half])
        for estimate in method(batch):
            assert_encloses(estimate, n // 2 * free)
        # half of every pair clamped to state 1, in every second lane
        unary = np.array(batch.unary)
        unary[::4, ::2] = -np.inf
        clamped = log_sum_exp([y + x, 2 * y + half])
        for b, estimate in enumerate(method(cz.Batch(model, unary))):
            assert_encloses(estimate, n // 2 * (free if b % 2 else clamped))


@pytest.mark.parametrize("num_leaves", [50, 2000])
def test_a_hub_adds_up_many_messages(num_leaves):
    pull, W = 0.3, 1.7
    star = cz.Model.from_binary(
        np.full(num_leaves + 1, pull), np.full(num_leaves, W), [(0, i) for i in range(1, num_leaves + 1)]
    )
    half, theta = Decimal(W / 2), Decimal(pull)
    ends = [num_leaves * log_sum_exp([half, theta]), theta + num_leaves * log_sum_exp([Decimal(0), theta + half])]
    for method in METHODS:
        assert_encloses(method(star), log_sum_exp(ends))


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12])
def test_parts_that_cancel(size):
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = size * rng.random(), rng.normal(size=(2, 2))
        tables = size + rng.normal(size=(2, 2)), -size + rng.normal(size=(2, 2))
        models = [
            cz.Model([[-a + b[0, 0], -a + b[0, 1]], b[1]], {(0, 1): np.eye(2)}, constant=a),
            cz.Model([a + b[0], -a + b[1]], {(0, 1): np.eye(2)}),
            cz.Model(np.zeros((3, 2)), {(0, 1): tables[0], (1, 2): tables[1]}),
            cz.Model(
                np.zeros((3, 3)), {(0, 1): size + rng.normal(size=(3, 3)), (1, 2): -size + rng.normal(size=(3, 3))}
            ),
        ]
        for model in models:
            truth = true_log_z(model)
            for method in METHODS:
                assert_encloses(method(model), truth)


def test_marginals_add_up_whatever_the_potentials():
    rng = np.random.default_rng(1)
    for _ in range(50):
        model = cz.Model(
            1e8 * rng.normal(size=(3, 2)), {(i, j): 1e8 * rng.normal(size=(2, 2)) for i, j in [(0, 1), (0, 2), (1, 2)]}
        )
        estimate = cz.exact(model)
        np.testing.assert_allclose([t.sum() for t in estimate.marginals], 1.0, rtol=1e-12)
        np.testing.assert_allclose([t.sum() for t in estimate.pairwise_marginals.values()], 1.0, rtol=1e-12)


def test_potentials_beyond_all_reason_are_refused():
    with pytest.raises(
        cz.errors.ModelError, match=r"theta\[1\]: expected finite numbers, at most 1e\+20 in size, found 1e\+200"
    ):
        cz.Model.from_binary([0.0, 1e200], [1.0], [(0, 1)])
    with pytest.raises(cz.errors.ModelError, match="lane 0"):
        cz.Batch(cz.Model([[0.0, 1.0]]), [[0.0], [1e30]])


def test_vanishing_edge_weights_are_refused():
    with pytest.raises(cz.errors.OptionError, match="1e-09 <= rho <= 1"):
        cz.trw(cz.generators.cycle(3, rng=0), edge_weights=np.full(3, 1e-300))


@pytest.mark.parametrize(("labels", "size"), [(50, 1e3), (200, 1e6), (1000, 1e12)])
def test_mean_field_of_many_labels_is_no_more_than_log_z(labels, size):
    """Probabilities that add up to more than 1 would weigh large potentials with what is too much."""
    theta = np.full(labels, size - 37.0)
    theta[0] = size
    found = cz.mean_field(cz.Model([theta]), num_starts=2)
    assert Fraction(found.lower) <= Fraction(size) + Fraction(math.log1p((labels - 1) * math.exp(-37.0)))


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e308, 1.5, -0.1])
@pytest.mark.parametrize("method", [cz.mean_field, cz.bethe, cz.trw])
def test_a_start_has_probabilities(method, bad):
    model = cz.generators.cycle(3, rng=0)
    start = np.full(6, 0.5)
    start[2] = bad
    with pytest.raises(cz.errors.OptionError, match=r"start\[2\]: expected a probability from 0 to 1, found"):
        method(model, start=start)
    with pytest.raises(cz.errors.OptionError, match=r"start: expected an estimate, or an array of probabilities"):
        method(model, start="uniform")
