"""Both ends of a model's lanes by mini-buckets under one table size: what leaves are bounded with."""

import math
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.batched import TOGETHER, bytes_together, is_faster_batched, optimise_together
from clampz.approximations.mini_buckets.beliefs import beliefs_and_losses
from clampz.approximations.mini_buckets.clique_tables import Tables, has_zeros
from clampz.approximations.mini_buckets.descent import BoundSide, BoundState
from clampz.approximations.mini_buckets.structure import Structure
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled

Ends = Literal["both", "upper", "lower"]

# What a variable loses at which cliques rule out all of each other's states.
LARGEST_LOSS = 1e6


def _none() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The point that a lane's bounds have got to.

    Attributes
    ----------
    beliefs, loss
        (S,) of the upper bound, and (n,) what it loses at each variable, about; empty where that is not known.
    above, below
        Shifts and weights of the upper and of the lower bound; empty where there are none.
    """

    beliefs: Floats
    loss: Floats = field(default_factory=_none)
    above: Floats = field(default_factory=_none)
    below: Floats = field(default_factory=_none)

    @property
    def arrays(self) -> tuple[Floats, ...]:
        return self.beliefs, self.loss, self.above, self.below

    @property
    def num_bytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    @classmethod
    def at(cls, beliefs: Floats) -> "WarmStart":
        """Start at the beliefs of another method; at even ones where it found none."""
        return cls(np.nan_to_num(beliefs, nan=0.5))

    @classmethod
    def even(cls, model: Model) -> "WarmStart":
        """Start where nothing is known."""
        return cls(np.full(len(model.unary.flat), 0.5))


class Shape(NamedTuple):
    """What a structure is made by: table entries of a clique at most, and the chance in its order."""

    max_table: int
    seed: int = 0


class LeafBound(NamedTuple):
    """Certified bounds of one lane, and where they have got to."""

    lower: float
    upper: float
    state: WarmStart


class Descended(NamedTuple):
    """A descent of one lane, and where it got to: the next one from there continues it."""

    unary: Floats
    x: Floats
    state: BoundState


@dataclass(eq=False)
class MiniBucketBounds:
    """Bounds on lanes of one model, by structures that are laid out where they are first needed.

    With hard zeros there is no lower bound.

    Attributes
    ----------
    above, below
        The structures of the upper and of the lower bound.
    most_bytes
        What the bounds of one lane may take.
    main
        (n,) the cliques of the lower bound's structure whose weights are positive; empty before there was one.
    keeps_descents
        Whether a descent of a single lane is kept for the next one from where it got to: with the steps that it
        remembers it converges several times as fast as from its shifts alone.
    """

    model: Model
    above: Shape
    below: Shape
    most_bytes: float
    main: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    keeps_descents: bool = False
    _above: Tables | None = field(default=None, repr=False)
    _below: Tables | None = field(default=None, repr=False)
    _descents: dict[BoundSide, Descended] = field(default_factory=dict, repr=False)

    def bounds(
        self, unary: Floats, start: WarmStart, num_evaluations: int, ends: Ends = "both", budget: Budget = UNLIMITED
    ) -> LeafBound:
        """Bound the lane with these unary potentials (S,) from a warm start; infinite where time is too short.

        Cancelled and TooWideError are those of the structures.
        """
        (found,) = self._bounds([unary], start, num_evaluations, ends, budget, beliefs=True)
        return found

    def bounds_of_lanes(
        self,
        unary: Floats,
        start: WarmStart,
        num_evaluations: int,
        ends: Ends = "both",
        budget: Budget = UNLIMITED,
        *,
        beliefs: bool = True,
    ) -> Iterator[LeafBound]:
        """Bound every lane (S, B), one after another or together, whichever is quicker; fewer where time is over.

        Beliefs and losses are left as they are unless they are asked for.
        """
        lanes = [np.ascontiguousarray(lane) for lane in unary.T]
        size = self._together(len(lanes), ends, budget)
        for begin in range(0, len(lanes), size):
            if budget.must_stop():
                return
            yield from self._bounds(lanes[begin : begin + size], start, num_evaluations, ends, budget, beliefs=beliefs)

    def _together(self, num_lanes: int, ends: Ends, budget: Budget) -> int:
        """Return how many lanes at once are quicker than one after another, and have room."""
        if num_lanes == 1:
            return 1
        structures = [] if ends == "lower" else [self.tables_above(budget).structure]
        if ends != "upper" and not has_zeros(self.model):
            structures.append(self.tables_below(budget).structure)
        size = min(num_lanes, TOGETHER)
        while size > 1 and not (
            all(is_faster_batched(structure, size) for structure in structures)
            and sum(bytes_together(structure, 1, size) for structure in structures) <= self.most_bytes
        ):
            size //= 2
        return size

    def _bounds(
        self,
        lanes: list[Floats],
        start: WarmStart,
        num_evaluations: int,
        ends: Ends,
        budget: Budget,
        *,
        beliefs: bool,
    ) -> list[LeafBound]:
        above = [(math.inf, start)] * len(lanes)
        if ends != "lower":
            above = self._upper(lanes, start, num_evaluations, budget, beliefs=beliefs)
        possible = [k for k, (upper, _) in enumerate(above) if upper > -math.inf]
        below = dict.fromkeys(range(len(lanes)), -math.inf)
        states = dict(enumerate(state for _, state in above))
        if ends != "upper" and possible:
            with suppress(Cancelled) if ends == "both" else nullcontext():  # an upper bound alone is better than none
                found = self._lower(
                    [lanes[k] for k in possible], [states[k] for k in possible], num_evaluations, budget
                )
                for k, (lower, state) in zip(possible, found, strict=True):
                    below[k], states[k] = lower, state
        return [LeafBound(below[k], upper, states[k]) for k, (upper, _) in enumerate(above)]

    def _upper(
        self, lanes: list[Floats], start: WarmStart, num_evaluations: int, budget: Budget, *, beliefs: bool
    ) -> list[tuple[float, WarmStart]]:
        tables = self.tables_above(budget)
        before = self._descended("upper", lanes, start.above)
        states = before or [
            BoundState.upper(tables, unary, _fitting(start.above, tables), budget=budget) for unary in lanes
        ]
        optimise_together(states, num_evaluations, budget)
        found = [(state.bound, _got_to(state, start, budget, beliefs=beliefs)) for state in states]
        self._keep("upper", lanes, states, found[0][1].above)
        return found

    def _lower(
        self, lanes: list[Floats], starts: list[WarmStart], num_evaluations: int, budget: Budget
    ) -> list[tuple[float, WarmStart]]:
        if has_zeros(self.model):
            return [(-math.inf, start) for start in starts]
        tables = self.tables_below(budget)
        x, begin = _fitting(starts[0].below, tables), tables.structure.bucket_start
        before = self._descended("lower", lanes, starts[0].below)
        if before:
            states = before
        elif x is None or len(self.main) != len(begin) - 1 or not _within(self.main, begin):
            above = [BoundState.upper(tables, unary, budget=budget) for unary in lanes]
            optimise_together(above, num_evaluations, budget)
            states = [
                BoundState.lower(tables, unary, state.x, budget=budget)
                for unary, state in zip(lanes, above, strict=True)
            ]
            self.main = states[-1].main
        else:
            states = [BoundState.lower(tables, unary, x, self.main, budget=budget) for unary in lanes]
        optimise_together(states, num_evaluations, budget)
        found = [
            (state.bound, start if state.gradient is None else replace(start, below=state.x.copy()))
            for state, start in zip(states, starts, strict=True)
        ]
        self._keep("lower", lanes, states, found[0][1].below)
        return found

    def _descended(self, side: BoundSide, lanes: list[Floats], x: Floats) -> list[BoundState]:
        """Return the descent of a single lane that got to x, with all that it remembers, if it was kept."""
        kept = self._descents.pop(side, None)
        is_same = kept is not None and len(lanes) == 1 and kept.x is x and np.array_equal(kept.unary, lanes[0])
        return [kept.state] if kept is not None and is_same else []

    def _keep(self, side: BoundSide, lanes: list[Floats], states: list[BoundState], x: Floats) -> None:
        if self.keeps_descents and len(lanes) == 1:
            self._descents[side] = Descended(lanes[0], x, states[0])

    def tables_above(self, budget: Budget) -> Tables:
        """The upper bound's tables, laid out once."""
        if self._above is None:
            self._above = self._tables(self.above, budget, grow=True)
        return self._above

    def tables_below(self, budget: Budget) -> Tables:
        """The lower bound's tables, laid out once."""
        if self._below is None:
            self._below = self._tables(self.below, budget, grow=False)
        return self._below

    def _tables(self, shape: Shape, budget: Budget, *, grow: bool) -> Tables:
        most = int(self.most_bytes)
        structure = Structure.of(
            self.model, shape.max_table, seed=shape.seed, grow=grow, most_bytes=most, budget=budget
        )
        return Tables.of(self.model, structure, budget)

    def with_below(self, other: "MiniBucketBounds") -> "MiniBucketBounds":
        """Return these with the lower bound of others."""
        return replace(
            self, below=other.below, main=other.main, keeps_descents=False, _below=other._below, _descents={}
        )

    def __getstate__(self) -> dict[str, object]:
        # quicker to lay out again than to send
        return vars(self) | {"_above": None, "_below": None, "_descents": {}}


def _got_to(found: BoundState, start: WarmStart, budget: Budget, *, beliefs: bool) -> WarmStart:
    """Return where an upper bound has got to, with its beliefs and losses if they are asked for."""
    if found.gradient is None:
        return start
    if not beliefs:
        return replace(start, above=found.x.copy())
    try:
        believed, loss = beliefs_and_losses(found, budget)
    except Cancelled:
        return replace(start, above=found.x.copy())
    loss = np.nan_to_num(loss, nan=0.0, posinf=LARGEST_LOSS)
    return replace(start, beliefs=believed.marginals, loss=loss, above=found.x.copy())


def _fitting(x: Floats, tables: Tables) -> Floats | None:
    """Return shifts and weights if they are those of this structure."""
    structure = tables.structure
    return x if len(x) == structure.num_shifted + structure.num_cliques else None


def _within(main: Integers, begin: Integers) -> bool:
    return bool(((main >= begin[:-1]) & (main < begin[1:])).all())
