"""Both ends of a model's lanes by regions under one limit of table entries: what leaves are bounded with."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from clampz.bracketing.parts import Parts
from clampz.mini_buckets.beliefs import beliefs_and_losses
from clampz.mini_buckets.descent import State, optimise
from clampz.mini_buckets.structure import Structure
from clampz.mini_buckets.tables import Tables, has_zeros
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.watch import UNLIMITED, Overdue, Watch

Ends = Literal["both", "upper", "lower"]

# What a variable loses at which cliques rule out all of each other's states.
LARGEST_LOSS = 1e6
# Edges of a pairwise model beyond which its parts take longer than they are worth.
MOST_EDGES = 20_000


def _none() -> Floats:
    return np.empty(0)


def _no_variables() -> Integers:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LeafState:
    """Where a lane's bounds have got to.

    Attributes
    ----------
    marginals
        (S,) of the lower bound.
    beliefs, loss
        (S,) of the upper bound, and (n,) what it loses at each variable, about; empty where that is not known.
    above, below
        Shifts and weights of the upper and of the lower bound; empty where there are none.
    """

    marginals: Floats
    beliefs: Floats
    loss: Floats = field(default_factory=_none)
    above: Floats = field(default_factory=_none)
    below: Floats = field(default_factory=_none)

    @property
    def arrays(self) -> tuple[Floats, ...]:
        return self.marginals, self.beliefs, self.loss, self.above, self.below

    @property
    def num_bytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    @classmethod
    def at(cls, marginals: Floats, beliefs: Floats) -> "LeafState":
        """Where methods have got to that know nothing of regions; even where they found nothing."""
        return cls(np.nan_to_num(marginals, nan=0.5), np.nan_to_num(beliefs, nan=0.5))

    @classmethod
    def even(cls, model: Model) -> "LeafState":
        """Where nothing is known."""
        half = np.full(len(model.unary.flat), 0.5)
        return cls(half, half)


class Shape(NamedTuple):
    """What a structure is made by: table entries of a clique at most, and the chance in its order."""

    limit: int
    seed: int = 0


class LeafBound(NamedTuple):
    """Certified bounds of one lane, and where they have got to."""

    lower: float
    upper: float
    state: LeafState


@dataclass(eq=False)
class Regions:
    """Bounds on lanes of one model, by structures that are laid out where they are first needed.

    Attributes
    ----------
    above, below
        The structures of the upper and of the lower bound.
    most_bytes
        What the bounds of one lane may take.
    main
        (n,) the cliques of the lower bound's structure whose weights are positive; empty before there was one.
    labels
        (n,) the parts of a pairwise model with hard zeros, which leave that lower bound alone; empty before these
        were looked for.
    """

    model: Model
    above: Shape
    below: Shape
    most_bytes: float
    main: Integers = field(default_factory=_no_variables)
    labels: Integers = field(default_factory=_no_variables)
    _above: Tables | None = field(default=None, repr=False)
    _below: Tables | None = field(default=None, repr=False)
    _parts: Parts | None = field(default=None, repr=False)

    def bounds(
        self, unary: Floats, start: LeafState, num_evaluations: int, ends: Ends = "both", watch: Watch = UNLIMITED
    ) -> LeafBound:
        """Bounds on the lane with these unary potentials (S,), from where others have got to; infinite where time was
        too short for one.  Overdue and TooWideError are those of the structures."""
        lower, upper, state = -math.inf, math.inf, start
        if ends != "lower":
            upper, state = self._upper(unary, state, num_evaluations, watch)
        if ends != "upper" and upper > -math.inf:
            lower, state = self._lower(unary, state, num_evaluations, watch)
        return LeafBound(lower, upper, state)

    def _upper(self, unary: Floats, start: LeafState, num_evaluations: int, watch: Watch) -> tuple[float, LeafState]:
        tables = self.tables_above(watch)
        found = State.upper(tables, unary, _fitting(start.above, tables))
        optimise(found, num_evaluations, watch)
        if found.gradient is None:
            return found.bound, start
        try:
            believed, loss = beliefs_and_losses(found, watch)
        except Overdue:
            return found.bound, replace(start, above=found.x)
        loss = np.nan_to_num(loss, nan=0.0, posinf=LARGEST_LOSS)
        return found.bound, replace(start, beliefs=believed.marginals, loss=loss, above=found.x)

    def _lower(self, unary: Floats, start: LeafState, num_evaluations: int, watch: Watch) -> tuple[float, LeafState]:
        if may_have_parts(self.model):
            starts = [start.marginals, start.beliefs] if num_evaluations > 1 else [start.marginals]
            parts = self.parts(watch)
            if parts.num_bytes(unary, watch) > self.most_bytes:
                return -math.inf, start
            lower, marginals = parts.lower(unary, starts, watch)
            return lower, replace(start, marginals=marginals)
        if has_zeros(self.model):
            return -math.inf, start
        tables = self.tables_below(watch)
        x, begin = _fitting(start.below, tables), tables.structure.bucket_start
        if x is None or len(self.main) != len(begin) - 1 or not _within(self.main, begin):
            above = State.upper(tables, unary)
            optimise(above, num_evaluations, watch)
            found = State.lower(tables, unary, above.x)
            self.main = found.main
        else:
            found = State.lower(tables, unary, x, self.main)
        optimise(found, num_evaluations, watch)
        return found.bound, start if found.gradient is None else replace(start, below=found.x)

    def tables_above(self, watch: Watch) -> Tables:
        """The upper bound's."""
        if self._above is None:
            self._above = self._tables(self.above, watch, grow=True)
        return self._above

    def tables_below(self, watch: Watch) -> Tables:
        """The lower bound's."""
        if self._below is None:
            self._below = self._tables(self.below, watch, grow=False)
        return self._below

    def _tables(self, shape: Shape, watch: Watch, *, grow: bool) -> Tables:
        most = int(self.most_bytes)
        structure = Structure.of(self.model, shape.limit, seed=shape.seed, grow=grow, most_bytes=most, watch=watch)
        return Tables.of(self.model, structure, watch)

    def parts(self, watch: Watch) -> Parts:
        """Those of a pairwise model with hard zeros."""
        if self._parts is None:
            known = len(self.labels) == self.model.num_variables
            self._parts = (
                Parts(self.model, float(self.below.limit), self.labels)
                if known
                else Parts.of(self.model, float(self.below.limit), watch)
            )
            self.labels = self._parts.labels
        return self._parts

    def with_below(self, other: "Regions") -> "Regions":
        """With another's lower bound."""
        return replace(
            self, below=other.below, main=other.main, labels=other.labels, _below=other._below, _parts=other._parts
        )

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_above": None, "_below": None, "_parts": None}  # quicker to lay out again than to send


def may_have_parts(model: Model) -> bool:
    return not model.factors and model.num_edges <= MOST_EDGES and has_zeros(model)


def _fitting(x: Floats, tables: Tables) -> Floats | None:
    """Shifts and weights, if they are those of this structure."""
    structure = tables.structure
    return x if len(x) == structure.num_shifted + structure.num_cliques else None


def _within(main: Integers, begin: Integers) -> bool:
    return bool(((main >= begin[:-1]) & (main < begin[1:])).all())
