"""Plans that grow: tables come into the tree of a sum where they cost least, as many as are worth their time."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.contraction import insertion as growth
from clampz._kernels.contraction import tree as trees
from clampz._kernels.contraction.passes import Factors
from clampz.elimination.contraction import TABLE_SHARE, Contraction, improved
from clampz.elimination.plans import NO_SIZES, Elimination, Scopes
from clampz.model.tables import offsets, ranges
from clampz.numerics import Integers
from clampz.runtime.budget import Budget, run_cancellable
from clampz.runtime.options import memory_allowed

# Seconds that a wanted table may add to a sum, with what it needs: so many in any case, or times what the sum takes.
# A sum that has grown by so many times as much is left as it is.
LEAST_MORE, TIMES_MORE, ENOUGH = 1e-3, 1.0, 3.0
# What it takes to find a place for one, or that it has none, about.
SECONDS_PER_TABLE = 3e-4


class Grown(NamedTuple):
    """A plan with more tables, and which of all these are; memory need not suffice for it."""

    elimination: Elimination
    there: Integers


def tree_of(elimination: Elimination) -> trees.Tree:
    """The tree of a plan; where it is swept, that of its order."""
    if isinstance(elimination.plan, Contraction):
        return elimination.plan.tree
    return elimination.scopes.tree(elimination.order)


def grown(
    base: Elimination,
    scopes: Scopes,
    need_start: Integers,
    needs: Integers,
    wanted: NDArray[np.bool_],
    memory: int | str | None,
    budget: Budget | None = None,
    *,
    all_marginals: bool = True,
) -> Grown:
    """The plan of a sum over tables of which the first are those of another one: with as many of those that are
    `wanted`, and with what these need, as add to it no more than it takes.

    Tables needs[need_start[f] : need_start[f + 1]] have to be there with table f.  One wanted table comes in at least.
    Unless `all_marginals` are asked for, there are those of wanted tables only.
    """
    log_states = np.log2(scopes.num_states)
    tree, there = tree_of(base), np.arange(base.scopes.num_factors)
    limit = max(1.0, TABLE_SHARE * (memory_allowed(memory) - scopes.num_bytes) / 8)
    at_first = float(trees.measure(tree, log_states, np.inf)[1].sum())
    more, is_first = max(LEAST_MORE, TIMES_MORE * at_first), True
    while True:
        others = np.setdiff1d(np.arange(scopes.num_factors), there, assume_unique=True)
        chosen = np.concatenate([there, others])
        number = np.argsort(chosen)
        sizes = np.diff(need_start)[chosen]
        own = _chosen(scopes, chosen)
        tree, found = run_cancellable(
            budget,
            SECONDS_PER_TABLE * len(others),
            growth.grow,
            tree,
            own.start,
            own.variables,
            len(there),
            offsets(sizes),
            number[needs[ranges(need_start[chosen], sizes)]],
            wanted[chosen],
            log_states,
            more,
            limit,
            is_first,
        )
        is_first, before, there = False, len(there), chosen[found]
        tree, seconds = improved(tree, log_states, limit, budget)
        if len(there) == before or seconds > at_first + ENOUGH * more:
            break
    tables = _chosen(scopes, there)
    left = max(0, memory_allowed(memory) - tables.num_bytes)
    plan = Contraction(Factors(*tables), tree, seconds, left, None if all_marginals else wanted[there])
    return Grown(replace(base, scopes=tables, plan=plan, sizes=NO_SIZES), there)


def _chosen(scopes: Scopes, there: Integers) -> Scopes:
    """Some of the tables."""
    arity, size = np.diff(scopes.start)[there], np.diff(scopes.table_start)[there]
    variables = scopes.variables[ranges(scopes.start[there], arity)]
    return Scopes(scopes.num_states, offsets(arity), variables, offsets(size))
