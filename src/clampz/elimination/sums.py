"""Running a plan: log Z of one set of tables and, where wanted, all marginals.  The loops are in
`_kernels.elimination_forwards` and `_kernels.elimination_backwards`."""

import math
from time import perf_counter
from typing import NamedTuple

import numpy as np

from clampz._kernels import elimination_steps as steps
from clampz._kernels.elimination_backwards import backwards
from clampz._kernels.elimination_forwards import (
    DONE,
    EMPTY,
    OUT_OF_RANGE,
    ROUNDINGS_PER_TERM,
    STOPPED,
    forwards,
)
from clampz._kernels.elimination_plan import Scratch, make_scratch
from clampz._kernels.jit import compiling
from clampz.elimination.cost import SPEED, elimination_seconds
from clampz.elimination.plans import Elimination
from clampz.numerics import EPS, Floats
from clampz.watch import Flag, Watch, run_on


class LogSum(NamedTuple):
    """log Z, and a bound on the rounding error in it."""

    log_z: float
    error: float


# Of a sum that was stopped.
STOPPED_SUM = LogSum(math.nan, math.inf)


class Workspace(NamedTuple):
    """Working memory for one thread at a time, to be used again for the next lane; after a run `beliefs` begins with
    the marginals of the factors, laid out as their tables."""

    store: Floats
    beliefs: Floats
    spread: Floats
    scale: Floats
    scratch: Scratch

    @classmethod
    def of(cls, *eliminations: Elimination, marginals: bool = True) -> "Workspace":
        """What any of these plans needs, with or without marginals."""
        size = max(plan.num_stored for plan in eliminations)
        num_steps = max(len(plan.scopes.num_states) for plan in eliminations)
        num_tables = max(plan.scopes.num_factors + len(plan.scopes.num_states) for plan in eliminations)
        scratch = make_scratch(np.max([plan.sizes for plan in eliminations], axis=0))
        return cls(
            np.empty(size), np.empty(size if marginals else 0), np.empty(num_tables), np.empty(num_steps), scratch
        )


def sum_out(
    elimination: Elimination,
    values: Floats,
    workspace: Workspace,
    marginals: Floats,
    *,
    log_domain: bool = False,
    watch: Watch | None = None,
) -> LogSum:
    """Sum over all variables, the log tables being `values`, end to end.

    Fills `marginals` (one entry per state of each variable) unless it is empty, and then `workspace.beliefs` with the
    factors' marginals.  Tables are scaled; with `log_domain`, or where that might underflow, they are logarithms.
    `STOPPED_SUM`, and nothing of use in either, where the watch was over first.
    """
    logs = steps.LOGARITHMS if log_domain else steps.SCALED
    order, wanted = elimination.order, marginals.size > 0
    expected = elimination_seconds(elimination, marginals=wanted)
    began, compiled = perf_counter(), compiling.seconds
    found = run_on(watch, expected, _passes, elimination, values, workspace, marginals, logs)
    if math.isfinite(found.log_z) and compiling.seconds == compiled:
        SPEED.learn(order.total, len(order.variables), perf_counter() - began, marginals=wanted)
    return found


def _passes(
    elimination: Elimination, values: Floats, workspace: Workspace, marginals: Floats, logs: bool | None, flag: Flag
) -> LogSum:
    """Forwards, with logarithms if need be, and back if wanted."""
    store, beliefs, spread, scale, scratch = workspace
    beliefs = beliefs[: elimination.num_stored]
    status, log_z, terms = forwards(elimination.plan, values, store, spread, scale, scratch, logs, flag)
    if status == OUT_OF_RANGE:
        logs = steps.LOGARITHMS
        status, log_z, terms = forwards(elimination.plan, values, store, spread, scale, scratch, logs, flag)
    if status == EMPTY:
        return LogSum(-math.inf, 0.0)
    if status == DONE and marginals.size:
        start = elimination.state_start
        status = backwards(elimination.plan, store, beliefs, scale, scratch, logs, start, marginals, flag)
    return STOPPED_SUM if status == STOPPED else LogSum(log_z, ROUNDINGS_PER_TERM * EPS * (terms + abs(log_z)))
