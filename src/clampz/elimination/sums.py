"""Running a plan: log Z of one set of tables and, where wanted, all marginals.  The loops are in
`_kernels.elimination_forwards` and `_kernels.elimination_backwards`."""

import math
from typing import NamedTuple

import numpy as np

from clampz._kernels import elimination_steps as steps
from clampz._kernels.elimination_backwards import backwards
from clampz._kernels.elimination_forwards import EMPTY, OUT_OF_RANGE, ROUNDINGS_PER_TERM, forwards
from clampz._kernels.elimination_plan import Scratch, make_scratch
from clampz.elimination.plans import Elimination
from clampz.numerics import EPS, Floats


class LogSum(NamedTuple):
    """log Z, and a bound on the rounding error in it."""

    log_z: float
    error: float


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
    elimination: Elimination, values: Floats, workspace: Workspace, marginals: Floats, *, log_domain: bool = False
) -> LogSum:
    """Sum over all variables, the log tables being `values`, end to end.

    Fills `marginals` (one entry per state of each variable) unless it is empty, and then `workspace.beliefs` with the
    factors' marginals.  Tables are scaled; with `log_domain`, or where that might underflow, they are logarithms.
    """
    store, beliefs, spread, scale, scratch = workspace
    beliefs = beliefs[: elimination.num_stored]
    logs = steps.LOGARITHMS if log_domain else steps.SCALED
    status, log_z, terms = forwards(elimination.plan, values, store, spread, scale, scratch, logs)
    if status == OUT_OF_RANGE:
        logs = steps.LOGARITHMS
        status, log_z, terms = forwards(elimination.plan, values, store, spread, scale, scratch, logs)
    if status == EMPTY:
        return LogSum(-math.inf, 0.0)
    if marginals.size:
        backwards(elimination.plan, store, beliefs, scale, scratch, logs, elimination.state_start, marginals)
    return LogSum(log_z, ROUNDINGS_PER_TERM * EPS * (terms + abs(log_z)))
