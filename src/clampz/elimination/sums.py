"""Running a plan: log Z of one set of tables and, where wanted, all marginals.  The loops are in
`_kernels.elimination_forwards` and `_kernels.elimination_backwards`."""

import math
from time import perf_counter
from typing import NamedTuple

import numpy as np

from clampz._kernels.contraction.passes import Arena
from clampz._kernels.elimination import steps
from clampz._kernels.elimination.backward_pass import backwards
from clampz._kernels.elimination.forward_pass import (
    DONE,
    EMPTY,
    OUT_OF_RANGE,
    ROUNDINGS_PER_TERM,
    STOPPED,
    forwards,
)
from clampz._kernels.elimination.plan import Scratch, make_scratch
from clampz._kernels.jit import compiling
from clampz.elimination.contraction import Contraction, Room
from clampz.elimination.cost import SPEED, elimination_seconds
from clampz.elimination.plans import Elimination
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import Budget, Flag, run_cancellable


class LogSum(NamedTuple):
    """log Z, and a bound on the rounding error in it."""

    log_z: float
    error: float


# Of a sum that was stopped.
STOPPED_SUM = LogSum(math.nan, math.inf)


class Workspace(NamedTuple):
    """Working memory for one sum at a time, to be used again for the next lane, with a room for each of the threads
    that share its long steps; after a run `beliefs` begins with the marginals of the factors, laid out as their
    tables."""

    store: Floats
    beliefs: Floats
    spread: Floats
    scale: Floats
    scratch: Scratch
    rooms: tuple[Room, ...]

    @classmethod
    def of(cls, *eliminations: Elimination, marginals: bool = True, num_threads: int = 1) -> "Workspace":
        """What any of these plans needs, with or without marginals."""
        stored = beliefs = num_tables = num_contracted = 0
        for elimination in eliminations:
            scopes, plan = elimination.scopes, elimination.plan
            size = elimination.num_stored(marginals)
            stored = max(stored, size)
            if isinstance(plan, Contraction):
                num_contracted = max(num_contracted, len(scopes.num_states))
                beliefs = max(beliefs, int(scopes.table_start[-1]))
                num_tables = max(num_tables, plan.num_tables)
            else:
                beliefs = max(beliefs, size)
                num_tables = max(num_tables, scopes.num_factors + len(scopes.num_states))
        scratch = make_scratch(np.max([plan.sizes for plan in eliminations], axis=0))
        rooms = tuple(Room.of(num_contracted) for _ in range(num_threads if num_contracted else 1))
        beliefs = beliefs if marginals else 0
        return cls(np.empty(stored), np.empty(beliefs), np.empty(num_tables), np.empty(num_tables), scratch, rooms)


def sum_out(
    elimination: Elimination,
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
    `STOPPED_SUM`, and nothing of use in either, where the watch was over first.
    """
    logs = steps.LOGARITHMS if log_domain else steps.SCALED
    wanted = marginals.size > 0
    expected = elimination_seconds(elimination, marginals=wanted)
    began, compiled = perf_counter(), compiling.seconds
    found = run_cancellable(budget, expected, _passes, elimination, values, workspace, marginals, logs)
    if math.isfinite(found.log_z) and compiling.seconds == compiled:
        took, variables = perf_counter() - began, len(elimination.order.variables)
        took *= elimination.speed_up(wanted, len(workspace.rooms))
        SPEED.learn(elimination.visits, variables, took, marginals=wanted, contracted=elimination.is_contracted)
    return found


def _passes(
    elimination: Elimination,
    values: Floats,
    workspace: Workspace,
    marginals: Floats,
    logs: bool | None,
    cancel_flag: Flag,
) -> LogSum:
    """Forwards, with logarithms if need be, and back if wanted."""
    store, beliefs, spread, scale, scratch, rooms = workspace
    plan = elimination.plan
    if isinstance(plan, Contraction):
        arena = Arena(store, scale[: plan.num_tables], spread[: plan.num_tables], np.empty(plan.num_tables))
        status, log_z, terms = plan.run(values, arena, rooms, beliefs, marginals, logs is not None, cancel_flag)
        return _log_sum(status, log_z, terms)
    status, log_z, terms = forwards(plan, values, store, spread, scale, scratch, logs, cancel_flag)
    if status == OUT_OF_RANGE:
        logs = steps.LOGARITHMS
        status, log_z, terms = forwards(plan, values, store, spread, scale, scratch, logs, cancel_flag)
    if status == DONE and marginals.size:
        beliefs = beliefs[: elimination.num_stored()]
        status = backwards(plan, store, beliefs, scale, scratch, logs, elimination.state_start, marginals, cancel_flag)
    return _log_sum(status, log_z, terms)


def _log_sum(status: int, log_z: float, terms: float) -> LogSum:
    if status == EMPTY:
        return LogSum(-math.inf, 0.0)
    return STOPPED_SUM if status == STOPPED else LogSum(log_z, ROUNDINGS_PER_TERM * EPS * (terms + abs(log_z)))
