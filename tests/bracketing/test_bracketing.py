"""The anytime bracket: always right, never wider than before, and held to its limits."""

import itertools
import math
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import clampz as cz
from clampz.bracketing.marginals import _interval
from clampz.bracketing.narrow import Narrow
from clampz.bracketing.partitions import parts_of, with_ties
from clampz.bracketing.tree import Node, Part
from clampz.elimination.orders import elimination_entries
from clampz.model.fixing import components, without_fixed
from clampz.options import as_bytes

NUM_MODELS = 60


def random_model(seed, most=9):
    """2 to 4 labels, weak to strong, some with hard zeros, some in several components."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most))
    num_states = rng.integers(2, 5 if n < 7 else 3, size=n)
    density, strength = rng.random(), rng.choice([0.3, 1.0, 3.0, 10.0, 50.0])
    pairwise = {}
    for i, j in itertools.combinations(range(n), 2):
        if rng.random() < density:
            table = rng.uniform(-strength, strength, size=(num_states[i], num_states[j]))
            if seed % 4 == 3:
                table[rng.random(table.shape) < 0.2] = -np.inf
            pairwise[i, j] = table
    return cz.Model([rng.uniform(-2, 2, size=k) for k in num_states], pairwise)


def frustrated(seed=0, n=7):
    return cz.generators.complete(n, weights=(-8, 8), rng=seed)


# -- the bracket ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_every_bracket_holds_and_lies_within_the_one_before(seed, exact):
    model = random_model(seed)
    truth = cz.exact(model)
    rng = np.random.default_rng(seed)
    before = None
    for bracket in cz.bounds(
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
        assert bracket.lower <= bracket.estimate <= bracket.upper
        before = bracket
    if exact:
        assert bracket.stopped_by in ("exact", "gap") and (bracket.gap < 1e-6 or truth.log_z == -np.inf)


@pytest.mark.parametrize("seed", range(4))
def test_clamping_closes_the_bracket_without_exact_sums(seed):
    model = frustrated(seed)
    bracket = cz.bound(model, gap=1e-3, time=60, exact=False)
    assert bracket.stopped_by in ("gap", "exact") and bracket.gap <= 1e-3 and bracket.num_leaves > 1
    assert bracket.lower <= cz.exact(model).log_z <= bracket.upper


@pytest.mark.parametrize("select", ["maxW", "frustCycles+TRE"])
@pytest.mark.parametrize("criterion", ["gap", "upper", "lower"])
def test_selectors_and_criteria(select, criterion):
    model = frustrated(2)
    bracket = cz.bound(model, gap=0.1, time=60, exact=False, select=select, criterion=criterion)
    assert bracket.gap <= 0.1 and bracket.lower <= cz.exact(model).log_z <= bracket.upper


def test_the_trace_is_monotone():
    trace = cz.bound(frustrated(1, 9), gap=1e-6, exact=False, leaves=60, time=30).trace
    assert (
        len(trace) > 3
        and (np.diff([p.lower for p in trace]) >= 0).all()
        and (np.diff([p.upper for p in trace]) <= 0).all()
    )
    assert (np.diff([p.seconds for p in trace]) >= 0).all()


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


# -- limits -----------------------------------------------------------------------------------------------------------------------------


def test_a_million_leaves_are_not_needed_to_stop():
    bracket = cz.bound(frustrated(4, 12), gap=0.0, exact=False, leaves=20, time=60)
    assert bracket.stopped_by == "leaves" and bracket.num_leaves >= 20


def test_time_stops_it():
    bracket = cz.bound(cz.generators.complete(40, weights=(-6, 6), rng=0), gap=0.0, time=0.5)
    assert bracket.stopped_by == "time" and bracket.lower < bracket.upper


def test_memory_prunes_the_frontier_and_loses_nothing():
    model = frustrated(5, 12)
    needed = 40 * (len(model.unary.flat) + len(model.pairwise.flat))
    bracket = cz.bound(model, gap=0.0, exact=False, leaves=60, time=20, memory=needed + 40_000)
    assert bracket.lower <= cz.exact(model).log_z <= bracket.upper
    assert (np.diff([p.lower for p in bracket.trace]) >= 0).all()


def test_progress_may_stop_it():
    seen = []

    def enough(bracket):
        seen.append(bracket)
        if len(seen) == 2:
            raise StopIteration

    assert (
        cz.bound(frustrated(6, 10), gap=0.0, exact=False, progress=enough, time=20).stopped_by == "callback"
        and len(seen) == 2
    )


def test_ctrl_c_returns_what_there_is():
    threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
    began = time.perf_counter()
    bracket = cz.bound(cz.generators.complete(40, weights=(-6, 6), rng=0), gap=0.0, time=60)
    assert bracket.stopped_by == "interrupt" and bracket.lower < bracket.upper and time.perf_counter() - began < 30


def test_a_loop_may_be_left():
    for bracket in cz.bounds(frustrated(7, 10), exact=False, time=20):
        if bracket.gap < 20:
            break
    assert bracket.stopped_by == "left"


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_executors(pool):
    model = frustrated(8, 9)
    with pool(2) as executor:
        bracket = cz.bound(model, gap=0.5, exact=False, executor=executor, time=60)
    assert bracket.gap <= 0.5 and bracket.lower <= cz.exact(model).log_z <= bracket.upper


def test_a_lost_worker_loses_only_work():
    """A process of the pool is killed on the way: the pool is broken, and the rest is done here."""
    model = frustrated(8, 10)
    with ProcessPoolExecutor(2) as executor:
        killed = []

        def kill(bracket):
            if not killed and executor._processes:
                killed.append(next(iter(executor._processes)))
                os.kill(killed[0], signal.SIGKILL)

        bracket = cz.bound(model, gap=0.5, exact=False, executor=executor, progress=kill, time=60)
    assert killed and bracket.gap <= 0.5 and bracket.lower <= cz.exact(model).log_z <= bracket.upper


# -- checkpoints ---------------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_goes_on(tmp_path):
    model, path = frustrated(9, 10), tmp_path / "tree"
    first = cz.bound(model, gap=0.0, exact=False, leaves=10, time=30, checkpoint=path)
    again = cz.bound(model, gap=0.0, exact=False, leaves=30, time=30, checkpoint=path)
    assert again.lower >= first.lower and again.upper <= first.upper and again.gap < first.gap
    assert again.trace[: len(first.trace)] == first.trace and again.lower <= cz.exact(model).log_z <= again.upper


def test_refused_checkpoints(tmp_path):
    path = tmp_path / "tree"
    cz.bound(frustrated(9), exact=False, leaves=3, checkpoint=path)
    with pytest.raises(cz.OptionError, match=r"checkpoint .*tree: expected one of this model"):
        cz.bound(frustrated(8), checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(cz.OptionError, match=r"expected a file that bound\(\) left"):
        cz.bound(frustrated(8), checkpoint=path)
    with pytest.raises(cz.OptionError, match=r"expected a folder that exists"):
        cz.bound(frustrated(8), checkpoint=tmp_path / "no" / "tree")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gap": -1}, "gap: expected a number of nats >= 0"),
        ({"time": -1}, "time: expected seconds >= 0"),
        ({"memory": "many"}, "memory: expected bytes, or text such as"),
        ({"memory": 10}, "memory: expected at least [0-9,]+ bytes"),
        ({"leaves": 0}, "leaves: expected None or a whole number >= 1"),
        ({"gaps": 1}, "unknown option 'gaps'; did you mean 'gap'"),
        ({"select": "maxw"}, "unknown selector 'maxw'; did you mean 'maxW'"),
        ({"criterion": "height"}, "criterion: expected one of gap, upper, lower"),
    ],
)
def test_refused_options(changes, message):
    with pytest.raises(cz.OptionError, match=message):
        cz.bound(frustrated(), **changes)


def test_bytes():
    assert (
        as_bytes("2GB") == 2 * 10**9
        and as_bytes("1.5 MiB") == 1.5 * 2**20
        and as_bytes(7) == 7
        and as_bytes("12") == 12
    )


# -- narrow parts --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(NUM_MODELS))
def test_bounds_from_narrow_parts_hold(seed):
    model = random_model(seed)
    truth = cz.exact(model)
    start = cz.mean_field(model)
    rng = np.random.default_rng(seed)
    for limit in (4.5, 40.0, 1e6):
        narrow = Narrow.of(model, limit)
        assert np.any(narrow.masks, axis=0).all()
        found = narrow.bounds(
            model.unary.flat, None, [np.nan_to_num(start.marginals.flat, nan=0.5)], int(rng.integers(1, 30))
        )
        assert found.lower <= truth.upper and truth.lower <= found.upper
        if narrow.is_exact and truth.log_z > -np.inf:
            assert found.upper - found.lower < 1e-6


def test_nothing_is_proven_where_nothing_is_possible():
    """K4 in three colours has no solution: whenever it is stopped, the lower bound is minus infinity."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((4, 3)), {(i, j): table for i, j in itertools.combinations(range(4), 2)})
    for stop in (True, False):
        found = Narrow.of(model, 1.0).bounds(model.unary.flat, None, [np.full(12, 1 / 3)], 5, lambda stop=stop: stop)
        assert found.lower == -np.inf


def test_hard_zeros_between_parts():
    """A ring in three colours: states that a neighbouring part forbids are left out of q, and a bound worth having
    remains."""
    table = np.where(np.eye(3) > 0, -np.inf, 0.0)
    model = cz.Model(np.zeros((8, 3)), {(i, (i + 1) % 8): table for i in range(8)})
    start = cz.mean_field(model).marginals.flat
    for limit in (70.0, 300.0):
        found = Narrow.of(model, limit).bounds(model.unary.flat, None, [start], 5)
        assert -1e-6 < found.lower <= cz.exact(model).log_z <= found.upper


def test_a_subgraph_serves_many_threads():
    """Each has working memory of its own."""
    model = cz.generators.grid(5, 5, weights=(-6, 6), rng=0)
    narrow = Narrow.of(model, 1e9)
    subgraph = narrow._plans_of(model.unary.flat).subgraphs[0]
    lanes = [model.unary.flat + shift for shift in np.linspace(0, 1, 8)]
    wanted = [subgraph.moments(lane, model.pairwise.flat).log_z for lane in lanes]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert list(pool.map(lambda lane: subgraph.moments(lane, model.pairwise.flat).log_z, lanes)) == wanted


def test_rounding_of_ends_far_from_zero():
    """A lower end of -1e9 is charged for its own size, whatever the upper one is."""
    part = Part(cz.Model([[0.0, 0.0]]))
    rng = np.random.default_rng(0)
    for _ in range(100):
        node = Node(None, part, (), -np.inf, np.inf)
        ends = -1e9 + rng.normal(size=2)
        node.children = [Node(node, part, (), float(end), np.inf) for end in ends]
        node.refresh()
        assert Fraction(node.lower) <= Fraction(float(ends.max())) + Fraction(
            float(np.log1p(np.exp(-abs(ends[0] - ends[1]))))
        ) + Fraction(1e-12)


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


def test_wider_parts_are_tighter():
    model = cz.generators.grid(6, 6, weights=(-6, 6), rng=0)
    start = [cz.mean_field(model).marginals.flat]
    gaps = []
    for limit in (2.0, 2.0**7, 2.0**14):
        found = Narrow.of(model, limit).bounds(model.unary.flat, None, start, 60)
        gaps.append(found.upper - found.lower)
    assert gaps[0] > gaps[1] > gaps[2]


def test_parts_of_one_variable_are_mean_field():
    model = cz.generators.grid(4, 4, rng=1)
    q = cz.mean_field(model, tol=1e-10)
    found = Narrow.of(model, 2.0).bounds(model.unary.flat, None, [q.marginals.flat], 2)
    assert found.lower == pytest.approx(q.lower, abs=1e-4)


@pytest.mark.parametrize("limit", [8.0, 64.0, 1024.0])
def test_parts_keep_to_the_limit(limit):
    model = cz.generators.grid(6, 6, rng=2)
    labels = parts_of(model, limit)
    edges = model.edges.astype(np.int64)
    for number in range(labels.max() + 1):
        inside = edges[(labels[edges] == number).all(axis=1)]
        assert (
            len(np.flatnonzero(labels == number)) == 1
            or elimination_entries(inside, np.ones(36), np.flatnonzero(labels == number), math.inf) < limit
        )
    mask = with_ties(model, labels, limit, np.ones(model.num_edges))
    assert mask[labels[edges[:, 0]] == labels[edges[:, 1]]].all()
    assert elimination_entries(edges[mask], np.ones(36), np.arange(36), math.inf) < 36 * limit


# -- finishing, parts ------------------------------------------------------------------------------------------------------------------


def test_reduced_models_have_the_same_sum():
    model = frustrated(1)
    unary = model.unary.flat.copy()
    unary[[0, 5]] = -np.inf
    smaller = without_fixed(model, unary)
    assert smaller.num_variables == 5 and cz.exact(smaller).log_z == pytest.approx(
        cz.exact(model, evidence={0: 1, 2: 0}).log_z, abs=1e-9
    )
    assert sum(part.num_variables for part in components(cz.Model([[0.0, 1.0]] * 4, {(0, 2): np.eye(2)}))) == 4


# -- marginals ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_marginals_lie_in_their_intervals(seed, exact):
    model = random_model(seed, 7)
    truth = cz.exact(model)
    if truth.log_z == -np.inf:
        return
    found = cz.bound_marginals(model, exact=exact, time=0.3, gap=1e-3)
    for i in range(model.num_variables):
        assert (found.lower[i] <= truth.marginals[i] + 1e-9).all() and (
            truth.marginals[i] <= found.upper[i] + 1e-9
        ).all()


def test_marginals_of_some_variables_by_name():
    model = cz.generators.barbell(2.0)
    found = cz.bound_marginals(model, ["X3", 0], gap=1e-6)
    assert set(found.lower) == {2, 0} and found.stopped_by == "exact" and found.widest < 1e-6
    low, high = found.interval("X3").T
    assert (low <= cz.exact(model).marginals[2]).all() and (cz.exact(model).marginals[2] <= high).all()


def test_intervals_where_bounds_are_far_apart():
    """Neither underflow nor cancellation makes an interval too small."""
    low, high = _interval(np.array([-np.inf, -np.inf]), np.array([0.0, -800.0]))
    assert (low == 0).all() and (high == 1).all()
    low, high = _interval(np.array([-46.0, -41.0]), np.array([0.0, -40.0]))
    assert low[0] == pytest.approx(1 / (1 + np.exp(6.0)), rel=1e-6) and high[0] == 1


def test_strong_potentials_have_honest_marginals():
    rng = np.random.default_rng(3)
    model = cz.Model(
        3000 * rng.normal(size=(4, 2)), {(i, j): 3000 * rng.normal(size=(2, 2)) for i in range(4) for j in range(i)}
    )
    truth = cz.exact(model)
    found = cz.bound_marginals(model, exact=False, max_iter=1, time=0, threads=1)
    for i in range(4):
        assert (found.lower[i] <= truth.marginals[i] + 1e-9).all() and (
            truth.marginals[i] <= found.upper[i] + 1e-9
        ).all()


def test_intervals_of_wide_bounds():
    low, high = _interval(np.array([-np.inf, 0.0]), np.array([np.inf, 1.0]))
    assert (low == 0).all() and (high == 1).all()
    low, high = _interval(np.array([0.0, 0.0]), np.array([0.0, 0.0]))
    assert low == pytest.approx([0.5, 0.5]) and high == pytest.approx([0.5, 0.5])


def test_the_picture():
    bracket = cz.bound(frustrated(3, 9), gap=0.1, exact=False, time=20)
    ax = bracket.plot()
    texts = [text.get_text() for text in ax.texts]
    assert (
        any(t.startswith("upper") for t in texts)
        and any(t.startswith("lower") for t in texts)
        and ax.get_xlabel() == "seconds"
    )
