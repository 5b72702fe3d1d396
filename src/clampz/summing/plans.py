"""SumPlan: how to sum over the lanes of a batch, what that takes, and the sum."""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from clampz.elimination.cost import CACHED_ENTRIES, elimination_seconds
from clampz.elimination.exact import ExactOptions, ExactState, run_exact
from clampz.elimination.orders import elimination_entries
from clampz.elimination.plans import NO_LIMIT, ExactPlan, Restriction, Scopes
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.summing.lanes import SimplerLanes
from clampz.watch import Watch

# Share of the time that simplifying may take.
SIMPLIFYING_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class SumPlan:
    """How to sum over the lanes of a batch.

    Attributes
    ----------
    simpler
        The lanes of what simplifying leaves, which are summed; None for those of the batch itself.
    how
        The plan of the sum.
    """

    batch: Batch
    simpler: SimplerLanes | None
    how: ExactPlan
    marginals: bool

    @classmethod
    def of(
        cls,
        batch: Batch,
        memory: int | str | None = NO_LIMIT,
        *,
        marginals: bool = True,
        simplified: bool | None = None,
        watch: Watch | None = None,
    ) -> "SumPlan":
        """A sum of a moment is planned as the batch is; otherwise it is simplified first (or as asked for).  Raises
        what `ExactPlan.of` does."""
        if simplified is None:
            simplified = not _is_quick(batch, watch)
        simpler = None
        if simplified:
            share = None if watch is None else watch.share(SIMPLIFYING_SHARE)
            simpler = SimplerLanes.of(batch, marginals=marginals, watch=share)
        left = batch if simpler is None else simpler.batch
        how = ExactPlan.of(left, memory, marginals=marginals, watch=watch)
        return cls(batch, simpler, how, marginals)

    @property
    def seconds(self) -> float:
        return self.batch.num_lanes * elimination_seconds(self.how.elimination, marginals=self.marginals)

    @property
    def num_bytes(self) -> int:
        return self.how.elimination.num_bytes(self.marginals)

    @property
    def width(self) -> int:
        return self.how.elimination.width

    def run(self, options: ExactOptions, watch: Watch) -> Estimates:
        """The sums, with marginals if these were planned for."""
        if self.simpler is None:
            return run_exact(self.batch, options, watch, self.how)
        return _back(self.simpler, run_exact(self.simpler.batch, options, watch, self.how), self.marginals)


def _is_quick(batch: Batch, watch: Watch | None) -> bool:
    """Whether the sums take no longer than it takes to look for something simpler."""
    restricted = Restriction.of(Scopes.of(batch.model), np.logical_or.reduce(batch.possible, axis=1)).scopes
    most = CACHED_ENTRIES / batch.num_lanes
    free = np.flatnonzero(restricted.num_states > 1)
    return elimination_entries(restricted.edges(), np.log2(restricted.num_states), free, most, watch) < math.inf


def _back(simpler: SimplerLanes, found: Estimates, marginals: bool) -> Estimates:
    """Of the original's lanes, from those of the rest."""
    batch = simpler.original
    model, log_z = batch.model, found.log_z
    possible = log_z > -np.inf
    flat = np.full(batch.unary.shape, np.nan)
    if marginals:
        for lane in np.flatnonzero(np.isfinite(log_z)).tolist():
            flat[:, lane] = simpler.marginals(found, lane)
    state = ExactState(None, partial(simpler.tables, found) if marginals else None, len(model.pairwise.flat))
    return replace(
        found,
        model=model,
        lower=np.where(possible, found.lower - simpler.error, found.lower),
        upper=np.where(possible, found.upper + simpler.error, found.upper),
        marginals_flat=flat,
        state=state,
    )
