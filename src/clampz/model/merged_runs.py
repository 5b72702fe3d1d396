"""Estimates merged from several runs, as those at different temperatures are."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from clampz.model.results import EndState, Estimates
from clampz.numerics import Floats, Integers


@dataclass(frozen=True, eq=False)
class GroupedRuns:
    """End states of lanes from several runs: of each lane, the run's state and its number there."""

    lanes: tuple[tuple[EndState, int], ...]

    @classmethod
    def of(cls, state: EndState, num_lanes: int) -> "GroupedRuns":
        """Take the lanes of one run, with a copy of its state. The copy leaves behind what can be laid out again: runs
        are many, and their tables would be more than any of them was allowed."""
        kept = copy(state)
        return cls(tuple((kept, lane) for lane in range(num_lanes)))

    @property
    def rho(self) -> Floats | None:
        known = [(state.rho, lane) for state, lane in self.lanes if state.rho is not None]
        if len(known) < len(self.lanes):
            return None
        return np.stack([rho[:, 0 if rho.shape[1] == 1 else lane] for rho, lane in known], axis=1)

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
        """Return the run's own state if all lanes are from one run."""
        first = self.lanes[0][0]
        if any(state is not first for state, _ in self.lanes):
            return self
        return first.take(np.array([lane for _, lane in self.lanes]))


def merge_runs(parts: Sequence[Estimates], lanes: Sequence[Integers]) -> Estimates:
    """Merge runs of one method: lane k of part p becomes number `lanes[p][k]`. log Z is a bound where it is one in
    every run."""
    kinds = {part.bound for part in parts if not np.isnan(part.log_z).all()}
    first, *others = (
        replace(part, state=GroupedRuns.of(part.state, len(part)), bound=next(iter(kinds)) if len(kinds) == 1 else None)
        for part in parts
    )
    return first.join(others).take(np.argsort(np.concatenate(lanes)))
