"""Sums over disjoint sets of configurations beside a search, in rounds, as long as they pay: dives where hard zeros
leave no other lower bound worth having, joint states of a separator where there are none."""

import math
from functools import cached_property

from clampz.bracketing.disjoint import Sets, sum_sets
from clampz.bracketing.dives import Dives
from clampz.bracketing.ladder import Ladder
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.origins import Origin
from clampz.bracketing.separators import Separated
from clampz.mini_buckets.tables import has_zeros
from clampz.model import Model
from clampz.watch import Watch
from clampz.workers import Crew, Job

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


class SetSums:
    """The rounds of a search.

    The first round finds out what to sum.  Another is begun where it promises to close as much of the gap as the rest
    of the search has in as long; otherwise it waits for as long, and is asked again.
    """

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.model, self.options = model, options
        self._sets: Sets | None = None
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
        self, ladder: Ladder | None, ends: Ends, crew: Crew, watch: Watch, *, whole_is_summed: bool
    ) -> Job[Ends] | None:
        """A round, begun, if it is time for one; the ladder is that of the whole, by whose beliefs sets are chosen.
        Where all of the model is being summed, by slices of its own, a separator would do the same again."""
        if self._is_busy or self._is_over or watch.used < self._until:
            return None
        if whole_is_summed and not self._has_zeros:
            return None
        if self._sets is None and not self._begin(ladder, watch):
            return None
        assert self._sets is not None
        seconds = max(watch.left(SHARE), min(SECONDS, watch.left()))
        # before regions are as large as time allows, whatever takes time from these costs more
        if self._num_rounds and ladder is not None and not (self._has_zeros or ladder.finished):
            return None
        if self._until > 0.0:
            self._look_at_the_others(ends, watch)
        if not self._pays(ends, seconds, watch):
            return None
        if not self._num_rounds:
            seconds = min(watch.left(SHARE), math.inf if self._has_zeros else CHOOSING)
        self._is_busy, self._since, self._ends = True, watch.used, ends
        self._num_rounds += 1
        return crew.beside(sum_sets, self._sets, seconds, watch)

    def take(self, found: Ends, ends: Ends, crew: Crew, watch: Watch) -> None:
        """What came of a round, and the ends of the search without it."""
        assert self._sets is not None
        self._is_busy = False
        self._num_idle = 0 if found[0] > ends[0] or self._num_rounds == 1 else self._num_idle + 1
        self._is_over = self._sets.is_over or self._num_idle >= MOST_IDLE
        if self._num_rounds > 1:
            self._look_at_the_others(ends, watch)
        if crew.num_threads == 1:  # the others have waited
            self._pause(watch.used - self._since, ends, watch)

    def _begin(self, ladder: Ladder | None, watch: Watch) -> bool:
        """As soon as there are beliefs to go by, those of an upper bound."""
        if ladder is None or ladder.state is None or ladder.regions is None:
            return False
        if not self._has_zeros and ladder.upper == math.inf:
            return False
        if not self._has_zeros and watch.used + watch.left() < LEAST_RUN:
            self._is_over = True
            return False
        options, memory = self.options, self.options.worker_bytes
        if not self._has_zeros:
            self._sets = Separated(
                self.model,
                Origin(ladder.regions, ladder.state.above),
                seconds=watch.left(SEPARATOR_SHARE),
                seed=options.seed,
                most_share=1.0 if options.exact else PART,
                memory=memory,
            )
        elif options.exact:
            self._sets = Dives(self.model, ladder.state.beliefs, memory=memory)
        else:
            self._is_over = True
        return not self._is_over

    def _pays(self, ends: Ends, seconds: float, watch: Watch) -> bool:
        """Whether a round is worth what it takes from the others."""
        assert self._sets is not None
        if self._sets.promise(watch.left()) < ends[0] + LEAST_GAIN:
            self._is_over = True
            return False
        gain = self._sets.promise(seconds) - ends[0]
        if gain < self._rate * seconds and self._sets.promise(watch.left()) - ends[0] < self._rate * watch.left():
            self._pause(seconds, ends, watch)
            return False
        return True

    def _pause(self, seconds: float, ends: Ends, watch: Watch) -> None:
        self._since, self._ends, self._until = watch.used, ends, watch.used + seconds

    def _look_at_the_others(self, ends: Ends, watch: Watch) -> None:
        """What they have closed since the round or the pause began."""
        closed = (ends[0] - self._ends[0]) + (self._ends[1] - ends[1])
        passed = watch.used - self._since
        self._rate = closed / passed if math.isfinite(closed) and passed > 0 else 0.0
