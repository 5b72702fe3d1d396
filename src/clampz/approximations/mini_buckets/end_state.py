"""The end state of mini-buckets: structures, shifts and weights of lanes, and the beliefs that follow from them on
demand."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from clampz.approximations.mini_buckets import beliefs as region_beliefs
from clampz.approximations.mini_buckets.beliefs import Beliefs
from clampz.approximations.mini_buckets.clique_tables import Tables, has_zeros
from clampz.approximations.mini_buckets.descent import BoundState, optimise
from clampz.approximations.mini_buckets.structure import KEPT_ENTRIES, Structure
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget


@dataclass(frozen=True, eq=False)
class MiniBucketsLayout:
    """The structures of the upper and the lower bound. Both are one where it is exact. There is no second one where
    hard zeros make such a lower bound worthless."""

    model: Model
    max_table: int
    above: Structure
    below: Structure | None

    @property
    def is_exact(self) -> bool:
        """Whether no variable that is summed over has its bucket split."""
        return sums_exactly(self.above, self.model)

    @property
    def structures(self) -> list[Structure]:
        """List the distinct structures."""
        return [self.above] if self.below in (None, self.above) else [self.above, self.below]

    @cached_property
    def tables_above(self) -> Tables:
        return Tables.of(self.model, self.above, UNLIMITED)

    @cached_property
    def tables_below(self) -> Tables:
        assert self.below is not None
        return self.tables_above if self.below is self.above else Tables.of(self.model, self.below, UNLIMITED)

    def lay_out(self, budget: Budget) -> None:
        """Lay out the tables of both, before threads ask for them; large ones may raise Cancelled."""
        for name, structure in zip(("tables_above", "tables_below"), self.structures, strict=False):
            if name not in vars(self) and structure.num_entries > KEPT_ENTRIES:
                vars(self)[name] = Tables.of(self.model, structure, budget)
        _ = self.tables_above, self.below and self.tables_below

    def of_model(self, model: Model) -> "MiniBucketsLayout | None":
        """Adopt the structures for a model with tables over the same variables; None if it has others, or a bound is
        missing."""
        if model is self.model and (self.below is not None or has_zeros(model)):
            return self
        arrays = [
            (each.num_states, each.edges, each.factors.scope_start, each.factors.variables)
            for each in (model, self.model)
        ]
        if not all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True)):
            return None
        if not self.is_exact and (self.below is None) != has_zeros(model):
            return None
        return MiniBucketsLayout(model, self.max_table, self.above, self.below)

    def is_like(self, other: "MiniBucketsLayout") -> bool:
        """Whether it is another copy of the same structures."""
        return len(self.structures) == len(other.structures) and all(
            np.array_equal(getattr(a, field.name), getattr(b, field.name))
            for a, b in zip(self.structures, other.structures, strict=True)
            for field in fields(Structure)
        )

    def __getstate__(self) -> dict[str, object]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # tables are laid out again


class Lane(NamedTuple):
    """A lane's unary tables, and where its upper and lower bound stand, with the main cliques; None where not begun."""

    layout: MiniBucketsLayout
    unary: Floats
    above: Floats | None = None
    below: Floats | None = None
    main: Integers | None = None


@dataclass(frozen=True, eq=False)
class MiniBucketsState:
    """The lanes of a run, in their order."""

    lanes: tuple[Lane, ...]
    rho: ClassVar[None] = None

    def __copy__(self) -> "MiniBucketsState":
        """Copy without tables: they are laid out again on demand."""
        layouts = {id(lane.layout): copy(lane.layout) for lane in self.lanes}
        return MiniBucketsState(tuple(lane._replace(layout=layouts[id(lane.layout)]) for lane in self.lanes))

    def take(self, lanes: Integers) -> "MiniBucketsState":
        return MiniBucketsState(tuple(self.lanes[b] for b in lanes))

    def join(self, others: Sequence["MiniBucketsState"]) -> "MiniBucketsState":
        layout = self.lanes[0].layout
        more = (lane for other in others for lane in other.lanes)
        return MiniBucketsState(
            self.lanes + tuple(lane._replace(layout=layout) if lane.layout.is_like(layout) else lane for lane in more)
        )

    def pairwise(self, lane: int) -> Floats:
        return self._marginals(lane)[0]

    def factors(self, lane: int) -> Floats:
        return self._marginals(lane)[1]

    def _marginals(self, lane: int) -> tuple[Floats, Floats]:
        layout, found = self.lanes[lane].layout, self._beliefs(lane)
        if found is None:
            return np.full(len(layout.model.pairwise.flat), np.nan), np.full(len(layout.model.factors.flat), np.nan)
        return layout.tables_above.marginals(found.cliques)

    def cliques(self, lane: int = 0) -> list[tuple[tuple[int, ...], Floats]]:
        """List every clique of the upper bound: its variables, in order of elimination, and their joint belief. Empty
        where there are no beliefs."""
        found = self._beliefs(lane)
        return [] if found is None else [found.clique(c) for c in range(found.structure.num_cliques)]

    def losses(self, lane: int = 0) -> Floats:
        """(n,) estimate what the upper bound loses at each variable, in nats: where it would gain most from a clamp."""
        state = self._state(lane)
        num_variables = self.lanes[lane].layout.model.num_variables
        return np.full(num_variables, np.nan) if state is None else region_beliefs.losses(state, budget=UNLIMITED)

    def _beliefs(self, lane: int) -> Beliefs | None:
        state = self._state(lane)
        return None if state is None else region_beliefs.beliefs(state, UNLIMITED)

    def _state(self, lane: int) -> BoundState | None:
        """Return the upper bound where it ended; None if it has not begun, or no configuration is possible."""
        layout, unary, above, *_ = self.lanes[lane]
        if above is None:
            return None
        state = BoundState.upper(layout.tables_above, unary, above, budget=UNLIMITED)
        optimise(state, 1, UNLIMITED)  # hard zeros are passed on between cliques
        return None if state.gradient is None else state


def sums_exactly(structure: Structure, model: Model) -> bool:
    """Whether no bucket has several cliques, but for variables of one state."""
    several = np.diff(structure.bucket_start) > 1
    return not (model.num_states[structure.order[several]] > 1).any()
