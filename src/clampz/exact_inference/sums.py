"""Laying sums out, and running them: log Z of one set of tables and, where wanted, all marginals."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.contraction.tree import SECONDS_PER_STEP, Tree
from clampz._kernels.elimination.forward_pass import EMPTY, ROUNDINGS_PER_TERM
from clampz._kernels.elimination.greedy_order import bucket_scopes
from clampz._kernels.elimination.plan import make_plan
from clampz._kernels.elimination.steps import LOGARITHMS, SCALED
from clampz._kernels.jit import compiling
from clampz._kernels.statuses import STOPPED
from clampz.exact_inference.contraction_trees import SECONDS_PER_VISIT, TABLE_SHARE, ContractionTree
from clampz.exact_inference.cost import SPEED, tree_seconds
from clampz.exact_inference.orders import CONTRACTED_ENTRIES, EliminationOrder, find_order
from clampz.exact_inference.scopes import Moves, Restriction, Scopes, check_memory, too_wide
from clampz.exact_inference.tree_search import best_tree
from clampz.exact_inference.trees import BucketTree, SumTree, Workspace
from clampz.model.batch import Batch
from clampz.model.problem import KEPT_BYTES, Problem
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import Budget, run_cancellable
from clampz.runtime.options import SMALL_BYTES, memory_allowed

# log2 of the entries up to which a table that fits no machine is counted: more digits help nobody, and fit no float.
MOST_COUNTED = 100
# A limit of tables this many times the largest one along an order leaves the search for trees alone.
AMPLE = 64.0


class LogSum(NamedTuple):
    """log Z, and a bound on the rounding error in it."""

    log_z: float
    error: float


# Of a sum that was stopped.
STOPPED_SUM = LogSum(math.nan, math.inf)


def lay_out_lanes(
    batch: Batch,
    memory: int | str | None = None,
    *,
    fixed: Sequence[int] = (),
    restriction: Restriction | None = None,
    budget: Budget | None = None,
    **more: Any,
) -> SumTree:
    """Lay out the sum over the lanes of a batch, without the states that no lane allows; see `lay_out` for `more`.

    Every lane has one state of each variable that is `fixed`; where there is none, what is left may be known.
    """
    moves = None
    if fixed:
        scopes, possible = Scopes.of(batch.model), np.logical_or.reduce(batch.possible, axis=1)
        start, states = batch.model.unary.start, []
        for i in fixed:
            own = possible[start[i] : start[i + 1]]
            states.append(int(np.argmax(own)))
            own[states[-1] + 1 :] = False
        moves, restriction = Moves.of(scopes, np.array(fixed), np.array(states)), Restriction.of(scopes, possible)
    restriction = restriction or Restriction.of_lanes(batch)
    if budget is not None:
        budget.check_cancelled()
    return lay_out(restriction, memory, moves=moves, problem=batch.model.problem, budget=budget, **more)


def order_of(
    restriction: Restriction, problem: Problem, budget: Budget | None, neighbours: Any = None
) -> EliminationOrder:
    """Find the best elimination order for the states that are left, unless it was found before."""
    scopes = restriction.scopes

    start, neighbour = neighbours or scopes.neighbours()
    find = partial(find_order, scopes.num_states, start, neighbour, budget)
    return problem.once(("order", restriction.states.tobytes()), find, _keeps(scopes, budget))


def _tree_of(
    restriction: Restriction,
    order: EliminationOrder,
    limit: float,
    num_sums: int,
    problem: Problem,
    budget: Budget | None,
) -> tuple[Tree, float]:
    """Find the best tree along an order, unless it was found before, and what a sum by it takes."""
    scopes = restriction.scopes

    def find() -> tuple[Tree, float]:
        return best_tree(scopes.tree(order), np.log2(scopes.num_states), limit, budget, num_sums)

    # a table of many times the order's largest is in no tree that is better than the order
    most = math.inf if limit > AMPLE * 2.0**order.log2_largest else limit
    what = "tree", restriction.states.tobytes(), order.variables.tobytes(), most, num_sums
    return problem.once(what, find, _keeps(scopes, budget))


def _keeps(scopes: Scopes, budget: Budget | None) -> Callable[[object], bool]:
    """Return whether what was found may be kept: if it is small, and nothing cut the search short."""
    return lambda found: scopes.num_bytes <= KEPT_BYTES and (budget is None or not budget.must_stop())


def lay_out(
    restriction: Restriction,
    memory: int | str | None = None,
    *,
    marginals: bool = True,
    order: EliminationOrder | None = None,
    tree: Tree | None = None,
    num_sums: int = 1,
    moves: Moves | None = None,
    problem: Problem | None = None,
    budget: Budget | None = None,
) -> SumTree:
    """Lay out a sum that is taken `num_sums` times, along an order or a tree found before, or the best found now.

    What is found is kept with the `problem`.

    TooWideError where a run would need more than `memory` bytes (None: half of what is free), Cancelled where the
    budget ends before there is an order, or a large plan of it.
    """
    scopes, problem = restriction.scopes, problem or Problem()
    check_memory(int(np.diff(scopes.start).max(initial=1)) - 1, scopes.num_bytes, memory, "at least ")
    neighbours = scopes.neighbours()
    order = order_of(restriction, problem, budget, neighbours) if order is None else order
    if budget is not None and (math.isinf(order.total) or scopes.num_bytes > SMALL_BYTES):
        budget.check_stop()
    if math.isinf(order.total):
        width = math.ceil(order.log2_largest / float(np.log2(scopes.num_states.max()))) - 1
        raise too_wide(width, 8 * 2 ** min(int(order.log2_largest), MOST_COUNTED), memory, "at least ")
    buckets = bucket_scopes(order.variables, *neighbours)
    laid_out: dict[str, Any] = {
        "restriction": restriction, "order": order, "width": int(np.diff(buckets[0]).max(initial=0)), "moves": moves
    }  # fmt: skip
    to_sweep = SECONDS_PER_VISIT * order.total if tree is None else math.inf
    found: SumTree | None = None
    if tree is not None or (order.total >= CONTRACTED_ENTRIES and scopes.num_factors * SECONDS_PER_STEP <= to_sweep):
        allowed = min(memory_allowed(None), memory_allowed(memory))
        left = max(0, allowed - scopes.num_bytes)
        limit = TABLE_SHARE * left / 8
        if tree is None:
            tree, seconds = _tree_of(restriction, order, limit, num_sums, problem, budget)
        else:
            tree, seconds = best_tree(tree, np.log2(scopes.num_states), limit, budget, num_sums)
        if seconds < to_sweep:
            found = ContractionTree(**laid_out, tree=tree, seconds=seconds, memory=left)
            if found.is_beyond_all:
                raise too_wide(found.width, int(8 * found.largest), memory, "at least ")
    if found is None:
        plan, scratch = make_plan(order.variables, buckets, *scopes)
        found = BucketTree(**laid_out, plan=plan, scratch=scratch)
    check_memory(found.width, found.num_bytes(marginals), memory)
    return found


def sum_out(
    tree: SumTree,
    values: Floats,
    workspace: Workspace,
    marginals: Floats,
    *,
    log_domain: bool = False,
    budget: Budget | None = None,
) -> LogSum:
    """Sum over all variables, the log tables being `values`, end to end.

    Fills `marginals` (one entry per state of each variable) unless it is empty, and then `workspace.beliefs` with the
    factors' marginals.  Tables are scaled; with `log_domain`, or where that might underflow, they are logarithms.
    `STOPPED_SUM`, and nothing of use in either, where the budget ended first.
    """
    logs = LOGARITHMS if log_domain else SCALED
    wanted = marginals.size > 0
    expected = tree_seconds(tree, marginals=wanted)
    began, compiled = perf_counter(), compiling.seconds
    status, log_z, terms = run_cancellable(budget, expected, tree.passes, values, workspace, marginals, logs)
    if status == STOPPED:
        return STOPPED_SUM
    if status == EMPTY:
        return LogSum(-math.inf, 0.0)
    if compiling.seconds == compiled:
        took = (perf_counter() - began) * tree.speed_up(wanted, len(workspace.rooms))
        SPEED.learn(tree.visits, len(tree.order.variables), took, marginals=wanted, contracted=tree.is_contracted)
    return LogSum(log_z, ROUNDINGS_PER_TERM * EPS * (terms + abs(log_z)))
