"""Rounds of conditioning beside a branch and bound, as long as they pay.

Dives where hard zeros leave no other lower bound worth having; joint states of a cutset where there are no zeros.
"""

import math
from functools import cached_property

from clampz.approximations.mini_buckets.clique_tables import has_zeros
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies.conditioning import Conditioning, sum_sets
from clampz.bounding.strategies.cutset import CutsetSums
from clampz.bounding.strategies.diving import Diving
from clampz.bounding.strategies.proposal_source import ProposalSource
from clampz.bounding.strategies.successive_halving import SuccessiveHalving
from clampz.model import Model
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew, Job

# The share of the time left that a round has, and seconds at least, but of the first; seconds at most in which a
# cutset is chosen; and rounds in a row that may come to nothing.
SHARE, SECONDS, CHOOSING, MOST_IDLE = 0.2, 1.0, 4.0, 3
# Seconds of a run in which a cutset is worth looking for: in less, mini-buckets make more of the time it takes.
LEAST_RUN = 5.0
# The share of the time left that sums over a cutset are expected to have.
CUTSET_SHARE = 0.35
# Nats that the lower end must be expected to gain in all the time there is.
LEAST_GAIN = 0.01
# Without exact sums of the whole: the share of a cutset's joint states that may be summed.
PART = 0.5

Ends = tuple[float, float]


class ConditioningRounds:
    """The rounds of a search.

    The first finds out what to sum.  Another is begun where it is expected to close as much of the gap as the rest of
    the search has in as long; otherwise it waits for as long, and is asked again.
    """

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.model, self.options = model, options
        self._sets: Conditioning | None = None
        self._is_busy, self._is_over = False, options.in_order
        self._num_rounds = 0
        self._num_idle = 0  # rounds in a row that the lower end is not better for
        self._since, self._ends = 0.0, (-math.inf, math.inf)  # when the last round or pause began, and with which ends
        self._until = 0.0  # of the pause
        self._rate = 0.0  # nats per second, by all else

    @cached_property
    def _has_zeros(self) -> bool:
        return has_zeros(self.model)

    @property
    def complete(self) -> bool:
        """Whether all of Z is summed."""
        return self._sets is not None and self._sets.complete

    def next(
        self, halving: SuccessiveHalving | None, ends: Ends, crew: Crew, budget: Budget, *, whole_is_summed: bool
    ) -> Job[Ends] | None:
        """Begin a round if it is time for one; sets are chosen by the beliefs of the whole's mini-buckets.

        Where the model is being summed in slices of its own, a cutset would do the same again.
        """
        if self._is_busy or self._is_over or budget.used < self._until or (whole_is_summed and not self._has_zeros):
            return None
        sets = self._sets = self._sets or self._chosen(halving, budget)
        if sets is None:
            return None
        # before mini-buckets are as large as time allows, whatever takes time from these costs more
        if self._num_rounds and halving is not None and not (self._has_zeros or halving.finished):
            return None
        if self._until > 0.0:
            self._measure_the_others(ends, budget)
        seconds = max(budget.left(SHARE), min(SECONDS, budget.left()))
        if not self._pays(sets, ends, seconds, budget):
            return None
        if not self._num_rounds:
            seconds = min(budget.left(SHARE), math.inf if self._has_zeros else CHOOSING)
        self._is_busy, self._since, self._ends = True, budget.used, ends
        self._num_rounds += 1
        return crew.beside(sum_sets, sets, seconds, budget)

    def take(self, found: Ends, ends: Ends, crew: Crew, budget: Budget) -> None:
        """Take what came of a round; `ends` are those of the search without it."""
        assert self._sets is not None
        self._is_busy = False
        self._num_idle = 0 if found[0] > ends[0] or self._num_rounds == 1 else self._num_idle + 1
        self._is_over = self._sets.is_over or self._num_idle >= MOST_IDLE
        if self._num_rounds > 1:
            self._measure_the_others(ends, budget)
        if crew.num_threads == 1:  # the others have waited
            self._pause(budget.used - self._since, ends, budget)

    def _chosen(self, halving: SuccessiveHalving | None, budget: Budget) -> Conditioning | None:
        """Choose the kind of sets, as soon as there are beliefs of an upper bound to go by."""
        if halving is None or halving.state is None or halving.mini_buckets is None:
            return None
        options, memory = self.options, self.options.worker_bytes
        if self._has_zeros:
            self._is_over = not options.exact
            return Diving(self.model, halving.state.beliefs, memory=memory) if options.exact else None
        if halving.upper == math.inf:
            return None
        self._is_over = budget.used + budget.left() < LEAST_RUN
        if self._is_over:
            return None
        return CutsetSums(
            self.model,
            ProposalSource(halving.mini_buckets, halving.state.above),
            seconds=budget.left(CUTSET_SHARE),
            seed=options.seed,
            most_share=1.0 if options.exact else PART,
            memory=memory,
        )

    def _pays(self, sets: Conditioning, ends: Ends, seconds: float, budget: Budget) -> bool:
        """Whether a round is worth what it takes from the others."""
        gain, most = sets.expected(seconds) - ends[0], sets.expected(budget.left()) - ends[0]
        self._is_over = most < LEAST_GAIN
        if not self._is_over and gain < self._rate * seconds and most < self._rate * budget.left():
            self._pause(seconds, ends, budget)
            return False
        return not self._is_over

    def _pause(self, seconds: float, ends: Ends, budget: Budget) -> None:
        self._since, self._ends, self._until = budget.used, ends, budget.used + seconds

    def _measure_the_others(self, ends: Ends, budget: Budget) -> None:
        """Measure the nats per second that they have closed since the round or the pause began."""
        closed = (ends[0] - self._ends[0]) + (self._ends[1] - ends[1])
        passed = budget.used - self._since
        self._rate = closed / passed if math.isfinite(closed) and passed > 0 else 0.0
