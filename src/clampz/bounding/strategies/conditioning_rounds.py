"""Sums over disjoint sets of configurations beside a search, in rounds, as long as they pay: dives where hard zeros
leave no other lower bound worth having, joint states of a separator where there are none."""

import math
from functools import cached_property

from clampz.approximations.mini_buckets.clique_tables import has_zeros
from clampz.bounding.options import BoundOptions
from clampz.bounding.strategies.conditioning import DisjointSets, sum_sets
from clampz.bounding.strategies.cutset import CutsetSums
from clampz.bounding.strategies.diving import Diving
from clampz.bounding.strategies.proposal_source import ProposalSource
from clampz.bounding.strategies.successive_halving import SuccessiveHalving
from clampz.model import Model
from clampz.runtime.budget import Budget
from clampz.runtime.workers import Crew, Job

# The share of the time left that a round has, and seconds at least, but of the first; seconds at most in which a
# separator is chosen; and rounds in a row that may come to nothing.
SHARE, SECONDS, CHOOSING, MOST_IDLE = 0.2, 1.0, 4.0, 3
# Seconds of a run in which a separator is worth looking for: in less, regions make more of the time it takes.
LEAST_RUN = 5.0
# The share of the time left that sums over a separator are expected to have.
SEPARATOR_SHARE = 0.35
# Nats that the lower end must be expected to gain in all the time there is.
LEAST_GAIN = 0.01
# Without exact sums of the whole: the share of a separator's joint states that may be summed.
PART = 0.5

Ends = tuple[float, float]


class ConditioningRounds:
    """The rounds of a search.

    The first round finds out what to sum.  Another is begun where it promises to close as much of the gap as the rest
    of the search has in as long; otherwise it waits for as long, and is asked again.
    """

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.model, self.options = model, options
        self._sets: DisjointSets | None = None
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
        self, ladder: SuccessiveHalving | None, ends: Ends, crew: Crew, budget: Budget, *, whole_is_summed: bool
    ) -> Job[Ends] | None:
        """A round, begun, if it is time for one; the ladder is that of the whole, by whose beliefs sets are chosen.
        Where all of the model is being summed, by slices of its own, a separator would do the same again."""
        if self._is_busy or self._is_over or budget.used < self._until:
            return None
        if whole_is_summed and not self._has_zeros:
            return None
        if self._sets is None and not self._begin(ladder, budget):
            return None
        assert self._sets is not None
        seconds = max(budget.left(SHARE), min(SECONDS, budget.left()))
        # before regions are as large as time allows, whatever takes time from these costs more
        if self._num_rounds and ladder is not None and not (self._has_zeros or ladder.finished):
            return None
        if self._until > 0.0:
            self._look_at_the_others(ends, budget)
        if not self._pays(ends, seconds, budget):
            return None
        if not self._num_rounds:
            seconds = min(budget.left(SHARE), math.inf if self._has_zeros else CHOOSING)
        self._is_busy, self._since, self._ends = True, budget.used, ends
        self._num_rounds += 1
        return crew.beside(sum_sets, self._sets, seconds, budget)

    def take(self, found: Ends, ends: Ends, crew: Crew, budget: Budget) -> None:
        """What came of a round, and the ends of the search without it."""
        assert self._sets is not None
        self._is_busy = False
        self._num_idle = 0 if found[0] > ends[0] or self._num_rounds == 1 else self._num_idle + 1
        self._is_over = self._sets.is_over or self._num_idle >= MOST_IDLE
        if self._num_rounds > 1:
            self._look_at_the_others(ends, budget)
        if crew.num_threads == 1:  # the others have waited
            self._pause(budget.used - self._since, ends, budget)

    def _begin(self, ladder: SuccessiveHalving | None, budget: Budget) -> bool:
        """As soon as there are beliefs to go by, those of an upper bound."""
        if ladder is None or ladder.state is None or ladder.mini_buckets is None:
            return False
        if not self._has_zeros and ladder.upper == math.inf:
            return False
        if not self._has_zeros and budget.used + budget.left() < LEAST_RUN:
            self._is_over = True
            return False
        options, memory = self.options, self.options.worker_bytes
        if not self._has_zeros:
            self._sets = CutsetSums(
                self.model,
                ProposalSource(ladder.mini_buckets, ladder.state.above),
                seconds=budget.left(SEPARATOR_SHARE),
                seed=options.seed,
                most_share=1.0 if options.exact else PART,
                memory=memory,
            )
        elif options.exact:
            self._sets = Diving(self.model, ladder.state.beliefs, memory=memory)
        else:
            self._is_over = True
        return not self._is_over

    def _pays(self, ends: Ends, seconds: float, budget: Budget) -> bool:
        """Whether a round is worth what it takes from the others."""
        assert self._sets is not None
        if self._sets.expected(budget.left()) < ends[0] + LEAST_GAIN:
            self._is_over = True
            return False
        gain = self._sets.expected(seconds) - ends[0]
        if gain < self._rate * seconds and self._sets.expected(budget.left()) - ends[0] < self._rate * budget.left():
            self._pause(seconds, ends, budget)
            return False
        return True

    def _pause(self, seconds: float, ends: Ends, budget: Budget) -> None:
        self._since, self._ends, self._until = budget.used, ends, budget.used + seconds

    def _look_at_the_others(self, ends: Ends, budget: Budget) -> None:
        """What they have closed since the round or the pause began."""
        closed = (ends[0] - self._ends[0]) + (self._ends[1] - ends[1])
        passed = budget.used - self._since
        self._rate = closed / passed if math.isfinite(closed) and passed > 0 else 0.0
