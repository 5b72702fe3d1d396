"""Marginals block by block, where all variables together are too wide and a few at a time are not.

log Z of a Bayesian network is known as soon as its barren nodes are summed out, but the marginals of all of them at
once need the joint beliefs of all their parents.  Those of one variable need what it depends on, and no more.  So the
scopes that are asked for are halved until what presolve leaves around a half is soon summed.

The joint marginal of any few variables is summed around them, with one table over all of them.  Where that is too wide,
log Z is summed for each of their joint states: as many sums, each as wide as what is left without them.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clampz.display.formatting import counted
from clampz.errors import TooWideError
from clampz.exact_inference.lanes import ExactOptions, run_exact
from clampz.exact_inference.orders import quick_order
from clampz.exact_inference.presolved import holding
from clampz.exact_inference.scopes import Restriction, Scopes
from clampz.exact_inference.slicing import MOST_AT_ONCE
from clampz.exact_inference.sums import lay_out_lanes
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import keep_only
from clampz.model.marginals import JOINTS_BY
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers, log_sum_exp
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import bytes_in_words, fits_into, memory_allowed

# Entries that a sum visits while a model is simplified, of any model and for each entry of its tables, about.
QUICK_ENTRIES, QUICK_PER_ENTRY = 2.0**18, 64
OUT_OF_TIME = "the run was stopped before all marginals were there"
TOO_WIDE = "there are not all marginals"
# A quick order may be far from the best: blocks may seem this many times as wide as the sum for log Z alone
# seems, of which it is known that it can be done.
MORE_THAN_ALONE = 4.0
# Halves of halves that are looked at where no half is narrower than the whole.
PATIENCE = 3


class Asked(NamedTuple):
    """Scopes variables[start[k] : start[k + 1]] whose joint beliefs are asked for, the table of each to be written from
    place[k] on."""

    start: Integers
    variables: Integers
    place: Integers

    @classmethod
    def of_variables(cls, model: Model, variables: Integers) -> "Asked":
        """Some variables of a model, their marginals end to end."""
        return cls(np.arange(len(variables) + 1), variables, offsets(model.num_states[variables])[:-1])

    @classmethod
    def tables_of(cls, model: Model) -> "Asked":
        """The edges and then the larger factors of a model."""
        m, larger = model.num_edges, model.factors
        return cls(
            np.concatenate([2 * np.arange(m), 2 * m + larger.scope_start]),
            np.concatenate([model.edges.ravel(), larger.variables]),
            np.concatenate([model.pairwise.start[:-1], len(model.pairwise.flat) + larger.start[:-1]]),
        )

    def halves(self) -> tuple["Asked", "Asked"]:
        """The first and the last of them: in files and by the hands of people what belongs together stands together."""
        half = len(self.place) // 2
        at = self.start[half]
        return (
            Asked(self.start[: half + 1], self.variables[:at], self.place[:half]),
            Asked(self.start[half:] - at, self.variables[at:], self.place[half:]),
        )

    def num_entries(self, model: Model) -> int:
        """Return the number of entries of all tables together."""
        return (
            int(np.multiply.reduceat(model.num_states[self.variables], self.start[:-1]).sum()) if len(self.place) else 0
        )

    @property
    def scopes(self) -> list[tuple[int, ...]]:
        variables, start = self.variables.tolist(), self.start.tolist()
        return [tuple(variables[a:b]) for a, b in itertools.pairwise(start)]


@dataclass(frozen=True, eq=False)
class Block:
    """Scopes that are asked for together.

    Attributes
    ----------
    model
        What presolve leaves around them.
    asked
        The scopes, as the variables of that have their numbers.
    entries, quick
        Those of tables that a sum visits, inf beyond a limit; and a number that it takes no longer than to look for
        something simpler.
    """

    model: Model
    asked: Asked
    entries: float
    quick: float = 0.0

    @classmethod
    def of(cls, model: Model, asked: Asked, most: float, budget: Budget) -> "Block":
        rest = simplify(model, np.unique(asked.variables).tolist(), marginals=False, budget=budget)
        number = np.full(model.num_variables, -1, dtype=np.int64)
        number[rest.variables] = np.arange(len(rest.variables))
        asked = asked._replace(variables=number[asked.variables])
        held = holding(rest.model, [scope for scope in asked.scopes if len(scope) > 1])
        scopes = Restriction.of_lanes(Batch.of(held)).scopes
        return cls(held, asked, sum_entries(scopes, most, budget), quick_entries(int(scopes.table_start[-1])))

    def halves(self, most: float, budget: Budget) -> list["Block"]:
        budget.check_stop()
        return [Block.of(self.model, half, most, budget) for half in self.asked.halves()]

    def fill(self, out: Floats, memory: int | str | None, budget: Budget) -> None:
        """Write the beliefs; TooWideError where the memory does not suffice for that."""
        found = run_exact(Batch.of(self.model), ExactOptions(memory=memory), budget)[0]
        if not found.converged:
            raise Cancelled
        for scope, place in zip(self.asked.scopes, self.asked.place.tolist(), strict=True):
            table = found.marginal(scope).ravel()
            out[place : place + len(table)] = table


class BlockBeliefs(NamedTuple):
    """Joint beliefs as they were asked for, end to end, nan where there are none, and why that is."""

    flat: Floats
    why_none: str


def beliefs_in_blocks(
    model: Model,
    asked: Asked,
    memory: int | str | None,
    budget: Budget,
    joint: float = math.inf,
    alone: float = 0.0,
) -> BlockBeliefs | None:
    """The joint beliefs that are asked for; None if it is quicker to sum the model as a whole, which visits `joint`
    table entries.  A sum for log Z alone, along an order that is soon found, visits `alone` of them."""
    most = max(memory_allowed(memory) / 8, MORE_THAN_ALONE * alone)  # entries of the tables that fit, as it seems
    flat, why = np.full(asked.num_entries(model), np.nan), ""
    try:
        known = math.isfinite(joint)
        whole = Block(model, asked, joint) if known else Block.of(model, asked, most, budget)
        for part in _parts(whole, most, budget):
            if part is whole and known:
                return None
            why = _fill(part, flat, memory, most, budget) or why
    except Cancelled:
        why = OUT_OF_TIME
    return BlockBeliefs(flat, why)


def _fill(block: Block, flat: Floats, memory: int | str | None, most: float, budget: Budget) -> str:
    """Write the beliefs of a block, or of its halves where it is wider than it seemed; why some are missing, if any."""
    budget.check_stop()
    try:
        block.fill(flat, memory, budget)
        return ""
    except TooWideError as error:
        if len(block.asked.place) == 1:
            return f"{TOO_WIDE}: {error}"
    first, second = (_fill(half, flat, memory, most, budget) for half in block.halves(most, budget))
    return first or second


def _parts(whole: Block, most: float, budget: Budget) -> Iterator[Block]:
    """Halves of halves, as far as that is needed or quicker."""
    waiting = [whole]
    while waiting:
        block = waiting.pop()
        if math.isinf(block.entries) and len(block.asked.place) > 1:
            waiting.extend(block.halves(most, budget))
        else:
            yield from _quickest(block, most, budget, PATIENCE)[1]


def _quickest(block: Block, most: float, budget: Budget, patience: int) -> tuple[float, list[Block]]:
    """Table entries that sums over a block or over parts of it visit, and the parts for which these are fewest."""
    if len(block.asked.place) == 1 or block.entries < block.quick or patience == 0:
        return block.entries, [block]
    entries, blocks = 0.0, list[Block]()
    for half in block.halves(most, budget):
        narrower = half.entries < block.entries / 2
        more, parts = _quickest(half, most, budget, PATIENCE if narrower else patience - 1)
        entries += more
        blocks.extend(parts)
        if entries >= block.entries:
            return block.entries, [block]
    return entries, blocks


def sum_entries(scopes: Scopes, most: float, budget: Budget | None) -> float:
    """Table entries that a sum visits, by an order that is soon found; inf from `most` on, or where the budget ended
    first."""
    free = scopes.num_states > 1
    return quick_order(scopes.edges(), np.log2(scopes.num_states), free, most, budget).total


def quick_entries(table_entries: int) -> float:
    """Entries that a sum visits while a model with `table_entries` of its own is presolved, about."""
    return QUICK_ENTRIES + QUICK_PER_ENTRY * table_entries


def joint_marginal(model: Model, variables: Sequence[int], memory: int | str | None, budget: Budget) -> Floats:
    """P(x_i, x_j, ...) with an axis for each of some distinct variables, in this order; nan where Z = 0, and where the
    budget ends first.  TooWideError where the memory does not suffice, in either way."""
    scope = np.sort(np.array(variables, dtype=np.int64))
    shape = model.num_states[scope]
    num_bytes = 8 * math.prod(shape.tolist())
    if not fits_into(memory, 4 * num_bytes):
        raise TooWideError(
            f"the joint marginal of {counted(len(scope), 'variable')} takes {bytes_in_words(num_bytes)} and three "
            f"times that on the way, and {bytes_in_words(memory_allowed(memory))} are allowed: ask for fewer "
            "variables, or allow more with memory=",
            width=len(scope),
            num_bytes=num_bytes,
        )
    table = np.empty(math.prod(shape.tolist()))
    try:
        try:
            asked = Asked(np.array([0, len(scope)]), scope, np.zeros(1, dtype=np.int64))
            Block.of(model, asked, memory_allowed(memory) / 8, budget).fill(table, memory, budget)
        except TooWideError:
            table = _state_by_state(model, scope, memory, budget)
    except Cancelled:
        table[:] = np.nan
    return table.reshape(shape).transpose([int(np.searchsorted(scope, i)) for i in variables])


def _state_by_state(model: Model, scope: Integers, memory: int | str | None, budget: Budget) -> Floats:
    """From log Z with the variables fixed to each of their joint states that are possible."""
    simpler = simplify(model, scope.tolist(), marginals=False, memory=memory, budget=budget)
    rest = simpler.model
    start, fixed = rest.unary.start, np.searchsorted(simpler.variables, scope)
    states = [np.flatnonzero(rest.unary[i] > -np.inf) for i in fixed.tolist()]
    places = np.ravel_multi_index(np.ix_(*states), tuple(rest.num_states[fixed].tolist())).ravel()
    log_z = np.full(math.prod(rest.num_states[fixed].tolist()), -np.inf)
    options, plan = ExactOptions(memory=memory, marginals=False), None
    for begin in range(0, len(places), MOST_AT_ONCE):
        some = places[begin : begin + MOST_AT_ONCE]
        unary = np.repeat(rest.unary.flat[:, None], len(some), axis=1)
        for lane, chosen in enumerate(np.transpose(np.unravel_index(some, tuple(rest.num_states[fixed].tolist())))):
            for i, a in zip(fixed.tolist(), chosen.tolist(), strict=True):
                keep_only(unary[:, lane], start, i, [a])
        batch = Batch(rest, unary)
        plan = plan or lay_out_lanes(batch, memory, marginals=False, fixed=fixed.tolist(), budget=budget)
        found = run_exact(batch, options, budget, plan)
        if not found.converged.all():
            raise Cancelled
        log_z[some] = found.log_z
    total = log_sum_exp(log_z)
    return np.full(len(log_z), np.nan) if total == -np.inf else np.exp(log_z - total)


JOINTS_BY["exact"] = joint_marginal
