"""Contractions: each step against einsum, trees and places against what they must be, marginals in little memory, and
the rounding error against many digits."""

import decimal
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from engines import contracted, laid_out

import clampz as cz
from clampz._kernels.contraction import step_list as plans
from clampz._kernels.contraction import steps
from clampz._kernels.contraction.blocked_products import make_blocks
from clampz._kernels.contraction.passes import WHOLE, Arena
from clampz._kernels.contraction.tree import measure
from clampz._kernels.elimination.forward_pass import EMPTY, OUT_OF_RANGE
from clampz._kernels.elimination.steps import LOGARITHMS, SCALED
from clampz._kernels.statuses import STOPPED
from clampz.exact_inference import contraction_trees
from clampz.exact_inference.orders import CONTRACTED_ENTRIES
from clampz.exact_inference.running import exact_cost
from clampz.exact_inference.scopes import NO_LIMIT, Scopes
from clampz.exact_inference.sums import STOPPED_SUM, lay_out_lanes, sum_out
from clampz.exact_inference.trees import Workspace
from clampz.model.batch import Batch
from clampz.runtime.budget import NEVER, Budget

EXACT = 1e-10


def one_step(rng, num_states, scopes, logs):
    """The table that a step makes of two, all three laid out at random, and the same by einsum."""
    out, first, second = scopes
    sizes = [math.prod(num_states[list(scope)]) for scope in (first, second, out)]
    axes = [rng.permutation(scope).astype(np.int64) for scope in (first, second, out)]
    start = np.cumsum([0, *(len(each) for each in axes)])
    step = np.zeros(1, plans.STEP)
    step["out"], step["first"], step["second"] = 2, 0, 1
    step["second_at"], step["out_at"] = sizes[0], sizes[0] + sizes[1]
    plan = plans.StepList(step, start, np.concatenate([*axes, np.empty(0, dtype=np.int64)]).astype(np.int64), 3, 2)
    arena = rng.random(sum(sizes))
    tables = [
        arena[a : a + size].reshape(num_states[each]).copy()
        for a, size, each in zip((0, sizes[0]), sizes, axes, strict=False)
    ]
    scale = np.array([1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    if logs is not None:
        arena[:] = np.log(arena)
        scale[1] = 1.0
    in_shares = arena.copy()
    room = steps.make_lists(len(num_states)), make_blocks()
    steps.step(plan, 0, num_states, arena, scale, *room, WHOLE, logs, NEVER)
    for share in (2, 0, 1):  # in any order
        steps.step(plan, 0, num_states, in_shares, scale, *room, (share, 3), logs, NEVER)
    np.testing.assert_array_equal(in_shares, arena)
    found = arena[-sizes[2] :].reshape(num_states[axes[2]])
    wanted = np.einsum(tables[0], axes[0].tolist(), tables[1], axes[1].tolist(), axes[2].tolist(), optimize=False)
    return (np.exp(found) if logs is not None else found), wanted * scale[1]


# states of the axes in all three tables, in out and first, in out and second, in first and second, in first only
SHAPES = [
    ([], [], [], [], []),
    ([2, 2], [2], [2], [2], []),
    ([2], [2] * 7, [2] * 3, [2] * 4, []),
    ([3], [5, 4, 3], [2, 7], [3, 3], [2]),
    ([2], [2] * 3, [2] * 8, [5], []),
    ([2, 3], [70], [67], [3], []),  # rows and columns beyond a block
    ([2], [5], [3], [300, 2], []),  # as many to be summed
    ([], [2, 2], [2], [1100], []),  # one axis longer than a list
    ([1500], [4], [4], [4], []),
    ([2] * 11, [], [2], [2], []),  # all batch
    ([], [2] * 9, [], [2], []),
    ([2] * 3, [], [], [], [2] * 3),
    ([], [], [], [7, 9, 11], []),
    ([1], [1, 6], [1], [1, 2], [1]),
]


@pytest.mark.checked
@pytest.mark.parametrize("shape", SHAPES)
def test_a_step_equals_einsum_however_its_tables_are_laid_out(shape):
    rng = np.random.default_rng(0)
    groups, n = [], 0
    for states in shape:
        groups.append(list(range(n, n + len(states))))
        n += len(states)
    num_states = np.array([k for states in shape for k in states], dtype=np.int64)
    batch, rows, columns, summed, alone = groups
    scopes = (batch + rows + columns, batch + rows + summed + alone, batch + columns + summed)
    for _ in range(4):
        for logs in (SCALED, LOGARITHMS):
            found, wanted = one_step(rng, num_states, scopes, logs)
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def grid(rows, cols, **drawing):
    model = cz.generators.grid(rows, cols, toroidal=False, **{"rng": 0, **drawing})
    scopes = Scopes.of(model)
    values = np.concatenate([model.unary.flat, model.pairwise.flat, model.factors.flat])
    return scopes, values


def scope_sets(tree):
    return [set(tree.pool[b : b + c].tolist()) for b, c in zip(tree.begin, tree.count, strict=True)]


def test_trees_contract_every_table_once_and_sum_what_no_other_has():
    scopes, _ = grid(5, 6)
    plan = contracted(laid_out(scopes))
    tree, sets = plan.tree, scope_sets(plan.tree)
    tables = set(range(scopes.num_factors))
    for a in plan.nodes:
        made_of = {c for c in (tree.left[a], tree.right[a]) if c >= 0}
        assert made_of <= tables and all(tree.parent[c] == a for c in made_of)
        tables -= made_of
        others = set().union(*(sets[t] for t in tables)) if tables else set()
        assert sets[a] == set().union(*(sets[c] for c in made_of)) & others
        tables.add(a)
    assert [sets[t] for t in tables] == [set()]


def test_a_tree_is_no_worse_than_the_order_that_it_began_with(monkeypatch):
    for model in (cz.generators.grid(9, 9, rng=0), cz.generators.complete(18, rng=0)):
        elimination = laid_out(Scopes.of(model))
        with monkeypatch.context() as patch:
            patch.setattr("clampz.exact_inference.tree_search.best_tree", first_tree)
            first = contracted(elimination).seconds
        assert contracted(elimination).seconds < 0.7 * first


def first_tree(tree, log_states, max_table, budget):
    return tree, float(measure(tree, log_states, max_table)[1].sum())


@pytest.mark.parametrize("marginals", [False, True])
@pytest.mark.parametrize("memory", [0, 2**40])
def test_places_in_the_arena_are_nobody_elses_while_they_are_used(marginals, memory):
    scopes, _ = grid(6, 6)
    plan = contracted(laid_out(scopes), memory)
    program = plan.program(marginals)
    todo = program.steps.steps
    size = {t: plan.sizes[t % len(plan.sizes)] for t in range(2 * len(plan.sizes))}
    fixed = int(scopes.table_start[-1]) + 1
    where = {f: int(scopes.table_start[f]) for f in range(scopes.num_factors)} | {2 * len(plan.sizes): fixed - 1}
    owner = np.full(program.entries, -1)
    for step in todo:
        for table, at in ((step["first"], step["first_at"]), (step["second"], step["second_at"])):
            assert where[table] == at
            if at >= fixed:
                assert (owner[at : at + size[table]] == table).all()
        at, table = step["out_at"], step["out"]
        for read in (step["first"], step["second"]):
            begin = where[read]
            end = begin + size.get(read, 1)
            assert at >= end or at + size[table] <= begin
        where[table] = at
        owner[at : at + size[table]] = table
    assert (owner[fixed:] >= 0).all()  # and none is wasted


def test_marginals_in_little_memory_are_the_same():
    scopes, values = grid(4, 60)
    elimination = laid_out(scopes)
    plenty = contracted(elimination)
    little = replace(plenty, memory=0)
    again = [np.count_nonzero(each.program(True).steps.steps["again"]) for each in (plenty, little)]
    assert again[0] == 0 < again[1] < len(little.nodes)
    assert little.num_stored(True) - len(values) < 0.5 * (plenty.num_stored(True) - len(values))
    found = []
    for plan in (plenty, little):
        workspace, marginals = Workspace.of(plan), np.empty(scopes.num_states.sum())
        log_sum = sum_out(plan, values, workspace, marginals)
        found.append((log_sum, marginals, workspace.beliefs[: len(values)].copy()))
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_exact_inference_takes_is_what_it_takes_in_the_memory_there_is():
    model = cz.generators.grid(12, 60, toroidal=False, rng=0)
    much, little = (exact_cost(model, memory=memory) for memory in ("1GB", "1MB"))
    assert little.num_bytes < 0.7 * much.num_bytes
    assert little.plan.how.num_bytes() == little.num_bytes


def test_log_z_frees_what_was_used():
    plan = lay_out_lanes(Batch.of(cz.generators.grid(22, 22, toroidal=False, rng=0)), NO_LIMIT)
    assert plan.num_bytes(False) < 1e9
    assert plan.num_bytes(True) < 4e9


def test_error_bounds_hold_to_many_digits():
    rng = np.random.default_rng(3)
    for scale in (0.3, 5.0, 200.0):
        model = cz.generators.grid(3, 3, weights=(-scale, scale), rng=rng)
        scopes = Scopes.of(model)
        values = np.concatenate([model.unary.flat, model.pairwise.flat])
        for log_domain in (False, True):
            plan = contracted(laid_out(scopes))
            found = sum_out(plan, values, Workspace.of(plan), np.empty(0), log_domain=log_domain)
            wanted = log_z_to_many_digits(model)
            assert abs(decimal.Decimal(found.log_z) - wanted) <= decimal.Decimal(found.error)
            assert found.error < 1e-12 * (1 + scale)


def strained(rng):
    """A model whose tables each fit into the range of numbers, and products of which do not; some have hard zeros."""
    scale, shape = rng.choice([40.0, 150.0, 280.0]), rng.integers(2, 5, size=2).tolist()
    drawn = {"theta": (-scale, scale), "weights": (-scale, scale), "rng": rng}
    model = cz.generators.grid(*shape, **drawn) if rng.random() < 0.5 else cz.generators.complete(2 * shape[0], **drawn)
    values = np.concatenate([model.unary.flat, model.pairwise.flat])
    values[rng.random(len(values)) < rng.choice([0.0, 0.1])] = -np.inf
    return Scopes.of(model), values


def test_what_is_lost_to_underflow_is_no_more_than_is_allowed():
    rng = np.random.default_rng(8)
    seen = dict.fromkeys(("lost nothing", "lost little", "too much", "impossible"), 0)
    for _ in range(1000):
        scopes, values = strained(rng)
        plan = contracted(laid_out(scopes))
        space, tree = Workspace.of(plan), plan
        arena = Arena(space.store, *np.zeros((3, tree.needs(True).tables)))
        wanted, found = np.empty((2, 2 * len(scopes.num_states)))
        exact = sum_out(plan, values, space, wanted, log_domain=True)
        tables = space.beliefs[: len(values)].copy()
        status, *_ = tree.attempt(values, arena, space.rooms, space.beliefs[: len(values)], SCALED, NEVER)
        if status == OUT_OF_RANGE:
            seen["too much"] += 1
            continue
        again = sum_out(plan, values, Workspace.of(plan), found)
        if status == EMPTY:
            seen["impossible"] += 1
            assert exact.log_z == again.log_z == -math.inf
            continue
        seen["lost little" if arena.lost.max() > 0 else "lost nothing"] += 1
        assert abs(again.log_z - exact.log_z) <= again.error + exact.error
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=0)  # zeros where there are zeros, and nowhere else
        np.testing.assert_allclose(space.beliefs[: len(values)], tables, rtol=1e-9, atol=0)
    assert min(seen.values()) >= 10, seen


def log_z_to_many_digits(model):
    with decimal.localcontext() as context:
        context.prec = 50
        total = decimal.Decimal(0)
        for x in itertools.product(*(range(int(k)) for k in model.num_states)):
            score = sum((decimal.Decimal(float(model.unary[i][s])) for i, s in enumerate(x)), decimal.Decimal(0))
            for i, j in model.pairwise:
                score += decimal.Decimal(float(model.pairwise[i, j][x[i], x[j]]))
            total += score.exp()
        return total.ln()


@pytest.mark.parametrize("log_domain", [False, True])
def test_a_flag_that_is_raised_stops_it(log_domain):
    scopes, values = grid(5, 5)
    plan = contracted(laid_out(scopes))
    over = Budget(0.0)
    assert over.must_stop()
    long = replace(plan, seconds=10.0)  # what is expected to be short is not held to a watch
    assert sum_out(long, values, Workspace.of(plan), np.empty(0), log_domain=log_domain, budget=over) == STOPPED_SUM
    assert math.isfinite(sum_out(plan, values, Workspace.of(plan), np.empty(0), log_domain=log_domain).log_z)


@pytest.mark.parametrize("log_domain", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_threads_that_share_steps_find_the_same(monkeypatch, seed, log_domain):
    """To the last bit, whatever is shared: all steps, some, the first or none."""
    scopes, values = grid(4, 5, rng=seed) if seed else strained(np.random.default_rng(3))
    plan = contracted(laid_out(scopes))
    seconds = np.sort(plan._step_seconds(True))
    alone, wanted = Workspace.of(plan), np.empty(scopes.num_states.sum())
    sum_alone = sum_out(plan, values, alone, wanted, log_domain=log_domain)
    for least, num_threads in itertools.product((0.0, seconds[len(seconds) // 2], seconds[-1], math.inf), (2, 5)):
        monkeypatch.setattr(contraction_trees, "SHARED_SECONDS", least)
        monkeypatch.setattr(contraction_trees, "LITTLE", math.inf)
        workspace, found = Workspace.of(plan, num_threads=num_threads), np.empty_like(wanted)
        assert len(plan.shared_steps(True)) == np.count_nonzero(seconds >= least)
        assert sum_out(plan, values, workspace, found, log_domain=log_domain) == sum_alone
        np.testing.assert_array_equal(found, wanted)
        assert sum_out(plan, values, workspace, np.empty(0), log_domain=log_domain).log_z == pytest.approx(
            sum_alone.log_z, rel=EXACT
        )
        assert 1.0 <= plan.speed_up(True, num_threads) <= num_threads * (1 + EXACT)


def test_shared_steps_stop_with_the_flag(monkeypatch):
    monkeypatch.setattr(contraction_trees, "SHARED_SECONDS", 0.0)
    monkeypatch.setattr(contraction_trees, "LITTLE", math.inf)
    scopes, values = grid(5, 5)
    plan = contracted(laid_out(scopes))
    arena, raised = Arena(*Workspace.of(plan)[:1], *np.zeros((3, plan.needs(True).tables))), np.ones(1, dtype=np.uint8)
    rooms = Workspace.of(plan, num_threads=2).rooms
    assert plan.attempt(values, arena, rooms, np.empty(0), SCALED, raised)[0] == STOPPED


def test_threads_with_little_to_do_are_not_given_memory():
    """Where variables are many and tables small, what each thread needs for itself would be more than the sum takes."""
    plan = contracted(laid_out(grid(2, 3000)[0]))
    assert not len(plan.shared_steps(False))


def test_long_sums_are_contracted_and_short_ones_swept():
    short, long = (laid_out(Scopes.of(cz.generators.grid(k, k, rng=0))) for k in (5, 9))
    assert type(short) is not type(long) is type(contracted(short))
    assert long.visits < long.order.total and long.num_bytes() < 8 * long.order.total


def test_no_tree_is_planned_of_many_small_tables(monkeypatch):
    monkeypatch.setattr("clampz.exact_inference.sums.best_tree", lambda *args: pytest.fail("a tree was planned"))
    strip = laid_out(Scopes.of(cz.generators.grid(3, 40_000, toroidal=False, rng=0)))
    assert strip.order.total > CONTRACTED_ENTRIES


def test_tables_beyond_all_memory_are_refused_without_being_placed(monkeypatch):
    monkeypatch.setattr("clampz.exact_inference.contraction_trees.BEYOND_ALL", 2.0**10)
    with pytest.raises(cz.errors.TooWideError, match="at least") as caught:
        laid_out(Scopes.of(cz.generators.grid(9, 9, rng=0)))
    assert caught.value.num_bytes > 8 * 2**10


def test_workspaces_serve_sweeps_and_contractions():
    eliminations = [laid_out(grid(k, k)[0]) for k in (3, 5)]
    both = [eliminations[0], contracted(eliminations[1])]
    workspace = Workspace.of(*both)
    for k, plan in zip((3, 5, 3), (*both, both[0]), strict=True):
        scopes, values = grid(k, k)
        marginals = np.empty(scopes.num_states.sum())
        found = sum_out(plan, values, workspace, marginals)
        alone = sum_out(plan, values, Workspace.of(plan), np.empty(0))
        assert found.log_z == alone.log_z
        assert cz.exact(cz.generators.grid(k, k, toroidal=False, rng=0)).log_z == pytest.approx(found.log_z, rel=EXACT)
