"""Planar sums against enumeration and elimination: log Z within its error, marginals, what is refused and why."""

import math

import numpy as np
import pytest
from budgets import Asked
from naive import enumerate_model
from planar_models import of_couplings, planar_sum, random_planar

import clampz as cz
from clampz._kernels.planar.fronts import factorise
from clampz._kernels.statuses import DONE, STOPPED
from clampz.model import Model
from clampz.planar import ising, plans, sums
from clampz.planar.ising import Unfit, as_ising
from clampz.planar.plans import PlanarPlan
from clampz.planar.sums import sum_by_plan
from clampz.runtime.budget import NEVER, Budget, Cancelled

EXACT = 1e-9
# Of extended precision rounded to a float, on both sides.
LAST_BIT = 2**-52


def grid(rows, columns, J, **given):
    number = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    edges = np.concatenate([across, down]).tolist()
    return of_couplings(rows * columns, edges, np.broadcast_to(J, len(edges)), **given)


def found_or_why(model, *, marginals=False):
    plan = PlanarPlan.of(model, marginals=marginals)
    return plan if isinstance(plan, Unfit) else sum_by_plan(model, plan, marginals=marginals)


def compared(model, *, marginals=False):
    """log Z within its error, and marginals to a few bits; whether there was a sum."""
    found = found_or_why(model, marginals=marginals)
    log_z, unary, pairs = enumerate_model(model)
    if isinstance(found, Unfit):
        assert found.reason == sums.TOO_STRONG or ising.NOT_PLANAR in found.reason or "one face" in found.reason
        return False
    assert abs(found.log_z - log_z) <= found.error + LAST_BIT * abs(log_z)
    assert found.error < 1e-13 * (
        10 + sum(np.abs(table[np.isfinite(table)]).sum() for table in model.pairwise.values())
    )
    if marginals:
        np.testing.assert_allclose(found.unary, np.ravel(unary), atol=EXACT)
        np.testing.assert_allclose(
            found.pairwise, np.concatenate([np.empty(0), *map(np.ravel, pairs.values())]), atol=EXACT
        )
    return True


MANY = [150, pytest.param(5000, marks=pytest.mark.large)]


@pytest.mark.parametrize("num", MANY)
@pytest.mark.parametrize("marginals", [False, True])
def test_random_planar_models(marginals, num):
    rng = np.random.default_rng(0)
    done = [compared(random_planar(rng), marginals=marginals) for _ in range(num)]
    assert sum(done) > 0.97 * num  # the others are strong triangulations that repel


@pytest.mark.parametrize("num", MANY)
@pytest.mark.parametrize("marginals", [False, True])
def test_fields(marginals, num):
    rng = np.random.default_rng(1)
    done = [compared(random_planar(rng, fields=0.3), marginals=marginals) for _ in range(num)]
    assert sum(done) > num / 2


@pytest.mark.parametrize("num", MANY)
@pytest.mark.parametrize("fields", [0.0, 0.3])
def test_hard_zeros(fields, num):
    rng = np.random.default_rng(2)
    done = [compared(random_planar(rng, fields=fields, hard=0.2), marginals=fields == 0) for _ in range(num)]
    assert sum(done) > num / 2


def test_fields_on_the_border_of_a_grid():
    rng = np.random.default_rng(3)
    inside = np.zeros((6, 6), dtype=bool)
    inside[1:-1, 1:-1] = True
    for J in (0.3, 2.0, 10.0):
        fields = np.where(inside.ravel(), 0.0, rng.normal(size=36))
        model = grid(6, 6, J * rng.normal(size=60), fields=fields)
        found, exact = planar_sum(model), cz.exact(model)
        assert found is not None and exact.lower - found.error <= found.log_z <= exact.upper + found.error
        assert found_or_why(model, marginals=True) == Unfit(plans.MARGINALS_OFF_FACE)
        fields[14] = 1.0
        assert found_or_why(grid(6, 6, J, fields=fields)) == Unfit(plans.FIELDS_OFF_FACE)


@pytest.mark.parametrize("strength", [0.1, 5.0, 200.0])
def test_against_elimination(strength):
    """Spin glasses of 8 x 8 variables, delayed pairs included; strong ones are right, or refused."""
    rng, done = np.random.default_rng(4), 0
    for number in range(4):
        J = strength * (rng.choice([-1.0, 1.0], 112) if number % 2 else rng.normal(size=112))
        model = grid(8, 8, J)
        found, exact = found_or_why(model, marginals=True), cz.exact(model)
        if isinstance(found, Unfit):
            assert found.reason == sums.TOO_STRONG and strength > 10
            continue
        done += 1
        assert found.error < 1e-9 * max(1.0, strength)
        assert exact.lower - found.error <= found.log_z <= exact.upper + found.error
        wanted = [exact.pairwise_marginals[edge] for edge in model.pairwise]
        np.testing.assert_allclose(found.pairwise, np.ravel(wanted), atol=1e-8)
    assert done == 4 or strength > 10


def strip(L, J):
    """log Z of an open strip of two rows and L columns, by its transfer matrix."""
    states = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    step = np.array([[J * (a * c + b * d) + J * c * d for c, d in states] for a, b in states])
    logs = np.array([J * a * b for a, b in states])
    for _ in range(L - 1):
        logs = np.logaddexp.reduce(logs[:, None] + step, axis=0)
    return float(np.logaddexp.reduce(logs))


@pytest.mark.parametrize("J", [0.3, -0.4406867935, 40.0])
def test_long_strips(J):
    found = planar_sum(grid(2, 1000, J), marginals=True)
    assert found is not None
    assert abs(found.log_z - strip(1000, J)) <= found.error + 1e-12 * found.log_z
    assert ((found.pairwise >= 0) & (found.pairwise <= 1)).all()


def test_long_cycles():
    """One face inside and one outside, both with many sides; frustrated by one edge."""
    for n in (3, 4, 5, 50, 2000):
        for J in (0.5, 3.0):
            couplings = np.full(n, J)
            couplings[0] = -J
            model = of_couplings(n, [sorted((i, (i + 1) % n)) for i in range(n)], couplings)
            found = planar_sum(model)
            log_z = n * math.log(2 * math.cosh(J)) + math.log1p(-(math.tanh(J) ** n))
            assert found is not None and abs(found.log_z - log_z) <= found.error + 4 * n * LAST_BIT


def test_wide_reference_value():
    """A grid far too wide to eliminate agrees with itself turned, and with all couplings' signs gauged away."""
    rng = np.random.default_rng(5)
    J, flip = rng.uniform(-1.5, 1.5, 2 * 40 * 39), rng.choice([-1.0, 1.0], 1600)
    model = grid(40, 40, J)
    number = np.arange(1600).reshape(40, 40)[::-1].T.ravel()
    new = np.argsort(number)
    edges = [(int(i), int(j)) for i, j in model.pairwise]
    values = [float(model.pairwise[edge][0, 0]) for edge in edges]
    turned = of_couplings(1600, [sorted((int(new[i]), int(new[j]))) for i, j in edges], values)
    gauged = of_couplings(1600, edges, [v * flip[i] * flip[j] for v, (i, j) in zip(values, edges, strict=True)])
    found = [planar_sum(one) for one in (model, turned, gauged)]
    assert all(one is not None and abs(one.log_z - found[0].log_z) <= one.error + found[0].error for one in found)
    assert found[0].error < 1e-9


def test_what_is_refused():
    rng = np.random.default_rng(6)
    triangle = [(0, 1), (0, 2), (1, 2)]
    refused = {
        ising.NOT_BINARY: Model(np.zeros((3, 3))),
        ising.LARGER_FACTORS: Model(np.zeros((3, 2)), factors=[((0, 1, 2), rng.normal(size=(2, 2, 2)))]),
        ising.NOT_PLANAR: of_couplings(5, [(i, j) for i in range(5) for j in range(i + 1, 5)], np.ones(10)),
        ising.HARD_ZEROS: Model(np.zeros((2, 2)), {(0, 1): [[0.0, -np.inf], [0.0, 0.0]]}),
        sums.TOO_STRONG: Model(np.zeros((3, 2)), {edge: [[-np.inf, 0.0], [0.0, -np.inf]] for edge in triangle}),
    }
    for reason, model in refused.items():
        assert found_or_why(model) == Unfit(reason) and planar_sum(model) is None
    six = of_couplings(6, [(i, j) for i in range(3) for j in range(3, 6)], np.ones(9))
    assert found_or_why(six) == Unfit(ising.NOT_PLANAR)  # few enough edges


def test_edges_that_do_not_couple_are_not_there():
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    model = of_couplings(5, pairs, [0.0] + [1.0] * 9)
    assert compared(model) and found_or_why(model, marginals=True) == Unfit(ising.NOT_PLANAR)


def test_fields_that_cancel_but_for_rounding_are_charged():
    table = np.array([[0.1, 0.2], [0.3, 0.4]])
    model = Model([[0.3, 0.1 + 1e-16], [0.2, 0.1]], {(0, 1): table})
    spins = as_ising(model)
    assert not isinstance(spins, Unfit) and not spins.has_fields and 0 < spins.error < 1e-14
    assert compared(model)


def test_huge_potentials():
    found = planar_sum(grid(3, 3, 1e15))
    assert found is not None and abs(found.log_z - 12e15) <= found.error < 1e3


@pytest.mark.parametrize("n", [0, 1, 3])
def test_no_edges(n):
    found = planar_sum(Model(np.zeros((n, 2))), marginals=True)
    assert found is not None and abs(found.log_z - n * math.log(2)) <= found.error < 1e-14
    assert (found.unary == 0.5).all() and len(found.unary) == 2 * n


def test_memory_is_asked_for_first():
    model = grid(40, 40, 0.4)
    assert "memory" in PlanarPlan.of(model, memory="1MB").reason
    plan = PlanarPlan.of(model)
    assert sum_by_plan(model, plan, memory=plan.num_edges * plans.BYTES_PER_EDGE) == Unfit(sums.NO_ROOM)
    assert isinstance(sum_by_plan(model, plan, memory="100MB"), sums.PlanarSum)


def test_nothing_is_begun_that_even_a_plan_has_no_time_for(monkeypatch):
    monkeypatch.setattr(plans, "as_ising", None)
    with pytest.raises(Cancelled):
        planar_sum(grid(60, 60, 0.4), budget=Budget(0.01))


@pytest.mark.parametrize("most", [1, 3, 6, 9])
def test_a_stopped_run_leaves(most):
    with pytest.raises(Cancelled):
        planar_sum(grid(40, 40, 0.4), budget=Asked(most))


def test_fronts_hear_the_flag():
    plan = PlanarPlan.of(grid(60, 60, 0.4))
    assert not isinstance(plan, Unfit)
    raised = np.ones(1, dtype=np.uint8)
    for shift in (0.0, 1e-9):
        statuses = [
            factorise(plan.tree, plan.matrix, shift, 2**40, False, cancel_flag)[0] for cancel_flag in (NEVER, raised)
        ]
        assert statuses == [DONE, STOPPED]


def test_what_is_predicted_grows_with_the_work():
    small, large = (PlanarPlan.of(grid(k, k, 0.4)) for k in (10, 40))
    assert 4**2.5 < large.num_updates / small.num_updates < 4**3.5
    assert small.seconds() < small.seconds(marginals=True) < large.seconds()
