"""`simplify`: the presolve, which makes a smaller model with the same log Z or the same maximum."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.presolve import pools as state
from clampz._kernels.presolve.pools import Pools
from clampz._kernels.presolve.tables import NEARLY
from clampz._kernels.presolve.worklist import FULL, apply_rules
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.model.problem import KEPT_BYTES
from clampz.model.variables import Variable
from clampz.presolve.pools import build_pools, grow_pools, num_bytes
from clampz.presolve.reduced import ReducedModel, reduced_model
from clampz.presolve.simplified import Operation, Simplified, simplified_by, unchanged
from clampz.runtime.budget import LOOK, Budget, Flag, run_cancellable
from clampz.runtime.options import check_flag, check_option, fits_into, is_number, is_one_of, knows_its_options

# Entries touched, per entry of the model's tables and for every model, after which no more rules are tried: so that
# the presolve is never what takes the time.
WORK_PER_ENTRY, LEAST_WORK = 256, 1_000_000
# Table entries of a large model, and the share of its variables and edges that must be seen to go at once: for fewer,
# a copy of all of it is not worth its time.
LARGE_MODEL, LEAST_SHARE = 1_000_000, 1e-3
# Seconds that it takes per table and per entry to lay a model out and to make one of what is left, about.
SECONDS_PER_TABLE, SECONDS_PER_ENTRY = 1e-6, 6e-8


@knows_its_options
def simplify(
    model: Model,
    keep: Iterable[Variable] = (),
    operation: Operation = "sum",
    *,
    evidence: Evidence | None = None,
    marginals: bool = True,
    pairwise: bool = False,
    time: float = math.inf,
    memory: int | str | None = None,
    budget: Budget | None = None,
) -> Simplified:
    """Presolve a model: a smaller one with the same log Z (or the same maximum), what was done, and the postsolve.

    Impossible states go, and with them variables that have one state left or are functions of others. Factors lose axes
    that they do not depend on, or only by a factor of their own, and are multiplied into larger ones around them.
    Variables are summed out where the new table is no larger than those it replaces. Each of these is exact, or its
    error is charged.

    Parameters
    ----------
    model
        What to simplify; it stays as it is.
    keep
        Variables that stay, with all of their states, by index or name: for evidence to come, clamps, joint queries.
    operation
        "sum" keeps log Z, "max" the largest score.
    evidence
        `{variable: state}`, as `Model.condition` takes it: variables that are certain go, unless they are kept.
    marginals
        Whether marginals of all variables will be asked for.  Then the scope of what a sum leaves stays in one table of
        the rest, even where that is constant; without, more can go.
    pairwise
        For methods on pairwise models: sums leave tables of at most two variables, unless they make one smaller.
    time
        Seconds at most: the rules end then, wherever they are.  They know no chance, and one thread follows them.
    memory
        What it may use, in bytes or as text such as "2GB"; None for half of what is free.  A model for which that is
        not enough stays as it is.
    budget
        The clock of the run that this is a part of, in place of `time`.

    Returns
    -------
    Simplified
        The smaller model, what was done in words, and the postsolve for bounds, marginals and states.

    Raises
    ------
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.

    Examples
    --------
    >>> model = Model.from_binary([0.5, 0.0, 1.0], [1.0, 1.0], [(0, 1), (1, 2)])
    >>> simplify(model).model.num_variables
    0
    """
    check_option(is_one_of(operation, ("sum", "max")), "operation", '"sum" or "max"', operation)
    check_flag("marginals", marginals)
    check_flag("pairwise", pairwise)
    check_option(is_number(time) and time >= 0, "time", "seconds >= 0", time)
    budget = Budget(time) if budget is None else budget
    model = given(model, evidence)
    kept = np.zeros(model.num_variables, dtype=np.bool_)
    kept[model.variable_indices(keep, "keep")] = True
    maximum = operation == "max"
    num_tables = model.num_variables + model.num_edges + len(model.factors)
    around = SECONDS_PER_TABLE * num_tables + SECONDS_PER_ENTRY * model.num_entries
    hurried = around > LOOK and budget.left() < 2 * around
    too_large = model.num_entries > LARGE_MODEL and not _promising(model)
    if hurried or too_large or not fits_into(memory, num_bytes(model)):
        return unchanged(model, operation, is_complete=not hurried)
    pools = build_pools(model, kept, pairwise=pairwise, pins=marginals and not maximum, maximum=maximum)
    within = Budget(max(0.0, budget.left() - around), within=budget)
    pools = run_cancellable(within, around, _apply, pools, WORK_PER_ENTRY * model.num_entries + LEAST_WORK)
    done = [state.LEFT, state.STATES_GONE, state.AXES_GONE, state.CONSTANTS, state.CONTAINED, state.CLOCK]
    changed = pools.count[state.IMPOSSIBLE] >= 0 or pools.count[done].any()
    interrupted = around > LOOK and budget.must_stop()
    if interrupted or not changed:
        return unchanged(model, operation, is_complete=not interrupted)
    is_complete = not within.must_stop()
    return simplified_by(model, operation, pools, _reduced(pools, model, kept), is_complete=is_complete)


def simplify_once(
    model: Model, *, marginals: bool, pairwise: bool = False, memory: int | str | None, budget: Budget | None
) -> Simplified:
    """Simplify a model with nothing kept, once: a later call gets what the first one found, if it came to its end."""

    def find() -> Simplified:
        return simplify(model, marginals=marginals, pairwise=pairwise, memory=memory, budget=budget)

    size = num_bytes(model)
    if size > KEPT_BYTES or not fits_into(memory, size):
        return find()
    return model.problem.once(("presolved", marginals, pairwise), find, lambda found: found.is_complete)


def _promising(model: Model) -> bool:
    """Whether a large model is worth a presolve: some variable has fewer than three edges, or some edge no weight.
    Models with hard zeros or more labels always are."""
    if model.binary is None:
        return True
    degrees = np.bincount(model.edges.ravel(), minlength=model.num_variables)
    seen = np.count_nonzero(degrees < 3) + np.count_nonzero(np.abs(model.binary.W) < NEARLY)
    return bool(seen >= LEAST_SHARE * model.num_variables)


def _apply(pools: Pools, most_work: int, cancel_flag: Flag) -> Pools:
    state.begin(pools, cancel_flag)
    while apply_rules(pools, most_work, cancel_flag) == FULL:
        pools = grow_pools(pools)
    return pools


def _reduced(pools: Pools, model: Model, kept: NDArray[np.bool_]) -> ReducedModel:
    """Build the reduced model; where Z = 0, one impossible variable and those that are kept."""
    impossible = int(pools.count[state.IMPOSSIBLE])
    if impossible >= 0:  # Z = 0: no factor is needed to say so, and no variable but one
        pools.variables["fate"][:] = state.FIXED
        pools.variables["fate"][kept] = state.STAYS
        pools.variables["fate"][impossible] = state.STAYS
        pools.variables["states"][impossible] = model.num_states[impossible]
        begin, end = model.unary.start[impossible], model.unary.start[impossible + 1]
        pools.table[begin:end] = -np.inf
        pools.states["gone"][begin:end] = state.NEVER
        pools.factors["alive"][:] = 0
    return reduced_model(pools, model, np.flatnonzero(pools.variables["fate"] == state.STAYS))
