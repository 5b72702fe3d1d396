"""Plans and sums of factors of any arity: against enumeration, in both domains; what is cut out; what is too wide."""

import pickle
import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
from engines import contracted, laid_out, swept
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import enumerate_factors

import clampz as cz
from clampz._kernels.elimination import greedy_order
from clampz.errors import ModelError, TooWideError
from clampz.exact_inference import sums
from clampz.exact_inference.orders import find_order
from clampz.exact_inference.running import exact_cost
from clampz.exact_inference.scopes import Restriction, Scopes
from clampz.exact_inference.sums import lay_out_lanes, sum_out
from clampz.exact_inference.trees import Workspace
from clampz.model.batch import Batch
from clampz.model.tables import offsets
from clampz.runtime.options import memory_allowed

EXACT = 1e-10


class Summed(NamedTuple):
    """A sum over a list of factors: log Z between its ends, and the marginals of variables and of factors."""

    log_z: float
    lower: float
    upper: float
    marginals: list
    factor_marginals: list


ENGINES = pytest.mark.parametrize("engine", [swept, contracted])


def eliminate(num_states, factors, *, log_domain=False, engine=swept):
    """The sum over factors (scope, log table); states that a factor of one variable rules out are cut first."""
    states = np.asarray(num_states, dtype=np.int64)
    tables = [np.asarray(table, dtype=np.float64) for _, table in factors]
    variables = np.array([i for scope, _ in factors for i in scope], dtype=np.int64)
    table_start = offsets(np.array([table.size for table in tables], dtype=np.int64))
    scopes = Scopes(states, offsets(np.array([len(scope) for scope, _ in factors])), variables, table_start)
    values = np.concatenate([np.empty(0), *(table.ravel() for table in tables)])
    start = offsets(states)
    possible = np.ones(start[-1], dtype=np.bool_)
    for (scope, _), table in zip(factors, tables, strict=True):
        if len(scope) == 1:
            possible[start[scope[0]] : start[scope[0] + 1]] &= table > -np.inf
    restricted = Restriction.of(scopes, possible)
    elimination = engine(laid_out(restricted.scopes))
    workspace = Workspace.of(elimination)
    unary, flat = np.zeros(len(possible)), np.zeros(len(values))
    marginals = np.empty(len(restricted.states))
    found = sum_out(elimination, values[restricted.entries], workspace, marginals, log_domain=log_domain)
    unary[restricted.states] = marginals
    flat[restricted.entries] = workspace.beliefs[: len(restricted.entries)]
    if found.log_z == -np.inf:  # nothing was written
        unary[:] = flat[:] = np.nan
    return Summed(
        found.log_z,
        found.log_z - found.error,
        found.log_z + found.error,
        np.split(unary, start[1:-1]) if len(states) else [],
        [flat[a:b].reshape(table.shape) for a, b, table in zip(table_start, table_start[1:], tables, strict=False)],
    )


def random_factors(rng, *, max_variables=7, max_states=4, max_arity=4, scale=1.0, zeros=0.0):
    n = int(rng.integers(1, max_variables + 1))
    num_states = rng.integers(1, max_states + 1, n)
    factors = []
    for _ in range(int(rng.integers(0, 2 * n + 2))):
        scope = rng.permutation(n)[: int(rng.integers(0, min(n, max_arity) + 1))].tolist()
        table = scale * rng.normal(size=tuple(num_states[scope]))
        factors.append((scope, np.where(rng.random(table.shape) < zeros, -np.inf, table)))
    return num_states, factors


def assert_same(found, num_states, factors):
    log_z, marginals, factor_marginals = enumerate_factors(num_states, factors)
    if log_z == -np.inf:
        assert found.log_z == found.lower == found.upper == -np.inf
        assert all(np.isnan(table).all() for table in found.marginals + found.factor_marginals)
        return
    assert found.log_z == pytest.approx(log_z, rel=EXACT, abs=EXACT)
    assert found.lower <= log_z <= found.upper
    for a, b in zip(found.marginals + found.factor_marginals, marginals + factor_marginals, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@ENGINES
@pytest.mark.parametrize("log_domain", [False, True])
@pytest.mark.parametrize(("scale", "zeros"), [(1.0, 0.0), (1.0, 0.3), (30.0, 0.1), (1000.0, 0.0), (1000.0, 0.3)])
def test_factor_lists_equal_enumeration(scale, zeros, log_domain, engine):
    rng = np.random.default_rng(int(scale) + int(10 * zeros))
    for _ in range(60):
        num_states, factors = random_factors(rng, scale=scale, zeros=zeros)
        assert_same(eliminate(num_states, factors, log_domain=log_domain, engine=engine), num_states, factors)


@ENGINES
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.1, 3.0, 100.0, 5000.0]), zeros=st.sampled_from([0.0, 0.5])
)
def test_any_factor_list(seed, scale, zeros, engine):
    num_states, factors = random_factors(np.random.default_rng(seed), scale=scale, zeros=zeros)
    found = eliminate(num_states, factors, engine=engine)
    assert_same(found, num_states, factors)
    again = eliminate(num_states, factors, log_domain=True, engine=engine)
    assert again.log_z == pytest.approx(found.log_z, rel=EXACT, abs=EXACT)


@ENGINES
def test_wide_steps_have_both_parts(engine):
    # larger than a block, with operands that miss axes on both sides of the split, in both domains
    rng = np.random.default_rng(5)
    num_states = rng.integers(2, 4, 14)
    factors = [
        (scope, rng.normal(size=tuple(num_states[scope])))
        for scope in (rng.permutation(14)[:3].tolist() for _ in range(24))
    ]
    factors += [([i, j], rng.normal(size=(num_states[i], num_states[j]))) for i in range(14) for j in range(i)]
    for log_domain in (False, True):
        assert_same(eliminate(num_states, factors, log_domain=log_domain, engine=engine), num_states, factors)


@ENGINES
def test_falls_back_to_logarithms_where_scaled_tables_would_underflow(engine):
    # each factor alone is harmless; only their product spans more than doubles do
    n = 12
    chain = [((i, i + 1), [[0.0, -150.0], [-150.0, -1.0]]) for i in range(n - 1)]
    fields = [((i,), [0.0, -100.0 * (-1) ** i]) for i in range(n)]
    clique = [((i, j), [[0.0, -90.0], [-90.0, 0.0]]) for i in range(n) for j in range(i)]
    factors = chain + fields + clique
    assert_same(eliminate([2] * n, factors, engine=engine), [2] * n, factors)


@ENGINES
def test_nothing_to_sum(engine):
    assert eliminate([], [], engine=engine).log_z == 0.0
    assert eliminate([3, 1], [], engine=engine).log_z == pytest.approx(np.log(3))
    assert eliminate([], [((), 2.5)], engine=engine).log_z == 2.5


@pytest.mark.parametrize(
    "factor",
    [((0, 0), np.zeros((2, 2))), ((0, 5), np.zeros((2, 2))), ((0, 1), np.zeros((2, 3))), ((0,), [0.0, np.nan])],
)
def test_refuses_factors_that_do_not_fit(factor):
    with pytest.raises(ModelError, match="factor"):
        cz.exact(cz.Model.from_factors([2, 2], [factor]))


def test_restriction_narrows():
    scopes = Scopes.of_pairwise(np.full(6, 2), np.array([(i, j) for i in range(6) for j in range(i + 1, 6)]))
    possible = np.ones(12, dtype=bool)
    possible[[0, 3, 4]] = False  # variables 0, 1 and 2 are left with one state
    assert laid_out(scopes).width == 5
    assert laid_out(Restriction.of(scopes, possible).scopes).width == 2


def test_too_wide_says_so_before_allocating():
    n = 200
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    with pytest.raises(TooWideError, match="at least") as caught:
        laid_out(Scopes.of_pairwise(np.full(n, 2), edges))
    assert caught.value.width >= greedy_order.HOPELESS - 1
    n = 45
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    with pytest.raises(TooWideError, match="width 44") as caught:
        laid_out(Scopes.of_pairwise(np.full(n, 2), edges))
    assert caught.value.num_bytes > 8 * 2**30  # two thirds of the variables: products of matrices


def test_large_sparse_graphs():
    rng = np.random.default_rng(0)
    n = 100_000
    parents = np.array([rng.integers(0, i) for i in range(1, n)])
    edges = np.stack([parents, np.arange(1, n)], axis=1)
    found = laid_out(Scopes.of_pairwise(np.full(n, 3), edges))
    assert found.width == 1
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    ladder = np.concatenate([np.sort(ring, axis=1), np.stack([np.arange(n - 7), np.arange(7, n)], axis=1)])
    assert laid_out(Scopes.of_pairwise(np.full(n, 2), ladder)).width < 16


def test_a_model_has_the_scopes_of_all_its_factors():
    rng = np.random.default_rng(0)
    factors = [((0, 1), rng.normal(size=(2, 3))), ((1, 2, 3), rng.normal(size=(3, 2, 2)))]
    model = cz.Model.from_factors([2, 3, 2, 2], factors)
    scopes = Scopes.of(model)
    assert scopes.variables.tolist() == [0, 1, 2, 3, 0, 1, 1, 2, 3]
    assert np.diff(scopes.table_start).tolist() == [2, 3, 2, 2, 6, 12]
    assert scopes.edges().tolist() == [[0, 1], [1, 2], [1, 3], [2, 3]]


def test_an_order_found_before_makes_the_same_plan(monkeypatch):
    scopes = Scopes.of(cz.generators.grid(6, 6, rng=0))
    order = pickle.loads(pickle.dumps(find_order(scopes.num_states, *scopes.neighbours())))
    found = laid_out(scopes)
    monkeypatch.setattr(sums, "find_order", lambda *args: pytest.fail("an order was looked for"))
    again = laid_out(scopes, order=order)
    assert (again.width, again.num_bytes()) == (found.width, found.num_bytes())
    for one, other in zip(found.plan, again.plan, strict=True):
        np.testing.assert_array_equal(one, other)


def test_memory_is_text_or_bytes():
    batch = Batch.of(cz.generators.grid(7, 7, rng=0))
    needed = lay_out_lanes(batch).num_bytes()
    assert lay_out_lanes(batch, f"{needed}B").num_bytes() == needed
    with pytest.raises(TooWideError, match="1,000 are allowed"):
        lay_out_lanes(batch, "1KB")
    assert lay_out_lanes(batch, needed - 1, marginals=False).num_bytes(False) < needed


def test_memory_allowed_is_what_was_asked_for():
    assert memory_allowed(123) == 123
    assert memory_allowed(None) > 0


def test_what_a_long_chain_takes_is_counted_and_refused_before_it_is_planned(monkeypatch):
    """Its messages are a sixth of it: the rest is the plan, the values and the results."""
    model = cz.generators.cycle(20_000, rng=0)
    cz.exact(model)  # all is compiled
    claimed = exact_cost(model).num_bytes
    tracemalloc.start()
    try:
        cz.exact(model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.8 * peak < claimed and peak < 1.1 * claimed
    cz.exact(model, memory=claimed)
    monkeypatch.setattr(sums, "find_order", lambda *args: pytest.fail("an order was looked for"))
    with pytest.raises(TooWideError, match="at least") as caught:
        cz.exact(model, memory=claimed // 2)
    assert claimed // 2 < caught.value.num_bytes < claimed and caught.value.width == 1
