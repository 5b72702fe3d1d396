"""Regions of a submodel as a whole, limit by limit: several structures of each, of which the best is gone on with.

Structures differ by chance, and a few evaluations show which are worth more: many are begun, some gone on with, and one
to the end.  Then the limit grows, as long as the next one takes its share of the time at most.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clampz.bracketing.options import LARGEST_LIMIT, BoundOptions
from clampz.bracketing.regions import Ends, LeafState, Regions, lower_limit
from clampz.model import Model

# Seconds that an evaluation takes, about: for each variable, and for each of its table entries, of which there are so
# many for each that the limit allows.
SECONDS_PER_VARIABLE, SECONDS_PER_ENTRY, ENTRIES_PER_LIMIT = 1.5e-6, 1e-8, 0.25
# Those that building a structure and its tables takes for each variable, and the share of the time left that it may
# take: it cannot be stopped half way.
BUILDING_SECONDS, BUILDING_SHARE = 1.5e-5, 0.25
# Structures that are begun, gone on with, and gone on with to the end, and evaluations of each; those of the first
# limit, which shows how fast all this is, and those of the branches that were cut out, which are many.
ROUNDS = ((6, 15), (3, 30), (1, 60))
FIRST_ROUNDS = ((2, 20),)
OF_A_BRANCH = ((1, 30),)
# Evaluations of the lower bound, in the first round of a limit, and in the last.
BELOW = 40
# Shares of the time that is left: of the first limit, and of each after it, which is larger by this factor at least.
FIRST_SHARE, SHARE, LEAST_GROWTH = 0.1, 0.45, 2.0
# Table entries of the first limit, at least and at most.
SMALLEST_LIMIT, FIRST_LIMIT = 2**3, 2**12


class Try(NamedTuple):
    """What a worker is asked for: so many evaluations, on from where another try ended or with regions of its own."""

    regions: Regions
    state: LeafState
    num_evaluations: int
    ends: Ends
    upper: float = math.inf


class Ladder:
    """Which regions a submodel has, and which it will have.

    Attributes
    ----------
    first_limit
        Of a branch that was cut out, the limit where it was; 0 for a choice by the time there is.
    regions, state
        The best so far, and where the bounds of the submodel as a whole have got to with them.
    limit
        Table entries that are tried now, or were last; 0 before any.
    finished
        As far as the time allows.
    """

    def __init__(self, first_limit: int = 0) -> None:
        self.first_limit = first_limit
        self.regions: Regions | None = None
        self.state: LeafState | None = None
        self.limit = 0
        self.finished = False
        self._best = math.inf
        self._rounds: tuple[tuple[int, int], ...] = OF_A_BRANCH if first_limit else FIRST_ROUNDS
        self._round = 0
        self._seconds, self._num_evaluations = 0.0, 0  # that this limit has taken
        self._num_under_way = 0
        self._waiting: list[Try] = []
        self._done: list[Try] = []  # of this round
        self._below: Try | None = None  # where the lower bound has got to

    def end_with(self, regions: Regions) -> None:
        """As one that has come to its end with these."""
        self.regions, self.limit, self.finished = regions, regions.limit, True

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return self._num_under_way > 0

    @property
    def has_more(self) -> bool:
        """Whether more can be begun at once."""
        return bool(self._waiting)

    def next(self, model: Model, options: BoundOptions, seconds: float) -> Try | None:
        """What to try next, with so many seconds of all threads left; None where there is nothing but what is under
        way."""
        if not self._waiting and not self.is_busy and not self.finished:
            self._advance(model, options, seconds)
        if not self._waiting:
            return None
        self._num_under_way += 1
        return self._waiting.pop(0)

    def take(self, asked: Try, upper: float, state: LeafState | None, regions: Regions | None, seconds: float) -> None:
        """What came of a try, and how long it took; no state: nothing."""
        self._num_under_way -= 1
        self._seconds += seconds
        self._num_evaluations += asked.num_evaluations
        if state is None or regions is None:
            return
        done = asked._replace(regions=regions, state=state, upper=min(upper, asked.upper))
        if asked.ends == "lower":
            self._below = done
        else:
            self._done.append(done)
        self._keep()

    def _keep(self) -> None:
        """What is best of what is there."""
        best = min(self._done, key=lambda done: done.upper, default=None)
        if best is not None and best.upper < self._best:
            self._best, self.regions, self.state = best.upper, best.regions, best.state
        if self._below is not None and self.regions is not None and self.state is not None:
            below = self._below.state
            self.regions = self.regions.with_below(self._below.regions)
            self.state = replace(self.state, marginals=below.marginals, below=below.below)

    def _advance(self, model: Model, options: BoundOptions, seconds: float) -> None:
        """To the next round, or to the next limit."""
        done, self._done = sorted(self._done, key=lambda done: done.upper), []
        self._round += 1
        if self.limit and not done:
            self.finished = True  # there was not time or memory enough
        elif self.limit and self._round < len(self._rounds):
            number, num_evaluations = self._rounds[self._round]
            self._waiting = [each._replace(num_evaluations=num_evaluations) for each in done[:number]]
            if self._below is not None and self._round == len(self._rounds) - 1:
                self._waiting.append(self._below)
        else:
            limit = self._next_limit(model, options, seconds)
            too_late = BUILDING_SECONDS * model.num_variables > BUILDING_SHARE * seconds / options.num_threads
            if too_late or limit < LEAST_GROWTH * self.limit:
                self.finished = True
            else:
                self._begin(model, limit, options)

    def _begin(self, model: Model, limit: int, options: BoundOptions) -> None:
        """A new limit."""
        same_below = self._below is not None and lower_limit(limit) == lower_limit(self.limit)
        if options.limit is not None or self.limit:
            self._rounds = OF_A_BRANCH if self.first_limit else ROUNDS
        self.limit, self._round, self._seconds, self._num_evaluations = limit, 0, 0.0, 0
        state, (number, num_evaluations) = self.state or LeafState.even(model), self._rounds[0]
        new = [Regions(model, limit, options.seed + k, options.worker_bytes) for k in range(number)]
        self._waiting = [Try(regions, state, num_evaluations, "upper") for regions in new]
        if not same_below:
            self._waiting.insert(1, Try(new[0], state, BELOW, "lower"))

    def _next_limit(self, model: Model, options: BoundOptions, seconds: float) -> int:
        """As large as its share of the time allows, by what the limit before has taken."""
        if self.first_limit:
            return self.limit or self.first_limit
        if not self.limit:
            evaluations = BELOW + _num_evaluations(FIRST_ROUNDS)
            return fitting_limit(model, options, FIRST_SHARE * seconds / evaluations, FIRST_LIMIT)
        expected = self._num_evaluations * evaluation_seconds(model, self.limit)
        pace = max(self._seconds, 1e-3) / expected
        evaluations = 2 * BELOW + _num_evaluations(ROUNDS)
        return fitting_limit(model, options, SHARE * seconds / evaluations / pace, LARGEST_LIMIT)


def _num_evaluations(rounds: tuple[tuple[int, int], ...]) -> int:
    return sum(number * each for number, each in rounds)


def evaluation_seconds(model: Model, limit: int) -> float:
    """What an evaluation takes, about."""
    return max(model.num_variables, 1) * (SECONDS_PER_VARIABLE + SECONDS_PER_ENTRY * ENTRIES_PER_LIMIT * limit)


def fitting_limit(model: Model, options: BoundOptions, seconds: float, most: int) -> int:
    """The largest limit at which an evaluation takes so many seconds, about; or the one that was asked for."""
    if options.limit is not None:
        return options.limit
    entries = (seconds / max(model.num_variables, 1) - SECONDS_PER_VARIABLE) / (SECONDS_PER_ENTRY * ENTRIES_PER_LIMIT)
    return allowed(model, 2 ** int(math.log2(min(max(entries, SMALLEST_LIMIT), most))), options)


def allowed(model: Model, limit: int, options: BoundOptions) -> int:
    """No larger than any, and without exact sums no clique may have all of a model."""
    if options.exact:
        return min(limit, LARGEST_LIMIT)
    several = model.num_states[model.num_states > 1].astype(np.float64)
    joint = float(np.prod(np.sort(several)[:60]))
    return int(min(limit, LARGEST_LIMIT, max(SMALLEST_LIMIT, joint / 4)))
