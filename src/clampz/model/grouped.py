"""Estimates whose lanes come from several runs, as those at different temperatures do."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from clampz.model.results import EndState, Estimates
from clampz.numerics import Floats, Integers


@dataclass(frozen=True, eq=False)
class GroupedRuns:
    """What lanes ended with that come from several runs: of each lane, the run's state and its number there."""

    lanes: tuple[tuple[EndState, int], ...]

    @classmethod
    def of(cls, state: EndState, num_lanes: int) -> "GroupedRuns":
        """The lanes of one run, in a copy, which leaves behind what can be laid out again: runs are many, and their
        tables would be more than any of them was allowed."""
        kept = copy(state)
        return cls(tuple((kept, lane) for lane in range(num_lanes)))

    @property
    def rho(self) -> Floats | None:
        found = []
        for state, lane in self.lanes:
            if state.rho is None:
                return None
            found.append(state.rho[:, 0 if state.rho.shape[1] == 1 else lane])
        return np.stack(found, axis=1)

    def pairwise(self, lane: int) -> Floats:
        state, own = self.lanes[lane]
        return copy(state).pairwise(own)

    def factors(self, lane: int) -> Floats:
        state, own = self.lanes[lane]
        return copy(state).factors(own)

    def take(self, lanes: Integers) -> "GroupedRuns":
        return GroupedRuns(tuple(self.lanes[b] for b in lanes))

    def join(self, others: Sequence["GroupedRuns"]) -> "GroupedRuns":
        return GroupedRuns(self.lanes + tuple(lane for other in others for lane in other.lanes))

    def single_run(self) -> EndState:
        """The state of the run that all these lanes are from, if they are from one."""
        first = self.lanes[0][0]
        if any(state is not first for state, _ in self.lanes):
            return self
        return first.take(np.array([lane for _, lane in self.lanes]))


def merge_runs(parts: Sequence[Estimates], lanes: Sequence[Integers]) -> Estimates:
    """Lanes of several runs by one method as one result: lane k of part p is number `lanes[p][k]`.  What log Z is of
    all of them, each is."""
    kinds = {part.bound for part in parts if not np.isnan(part.log_z).all()}
    first, *others = (
        replace(part, state=GroupedRuns.of(part.state, len(part)), bound=next(iter(kinds)) if len(kinds) == 1 else None)
        for part in parts
    )
    return first.join(others).take(np.argsort(np.concatenate(lanes)))
