"""Successive halving: mini-buckets of a submodel as a whole, for one table size after another.

Structures differ by chance, and a few evaluations show which are worth more: many are begun, some kept, and one goes to
the end.  Then tables grow, as long as the next size takes its share of the time at most.  On a large model the best
structures are optimised further, as long as that gains more than clamping a variable would.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clampz.approximations.method_choice import bethe_leads
from clampz.approximations.mini_buckets.clique_tables import has_zeros
from clampz.approximations.mini_buckets.descent import SECONDS_PER_ENTRY
from clampz.approximations.mini_buckets.structure import building_seconds, entries_per_variable, limit_of_entries
from clampz.bounding.leaves.mini_bucket_bounds import Ends, MiniBucketBounds, Shape, WarmStart
from clampz.bounding.options import LARGEST_TABLE, BoundOptions
from clampz.model import Model

# Seconds that an evaluation takes, about, for each variable, beside those for its table entries.
SECONDS_PER_VARIABLE = 5e-7
# The share of the time left until there is a bound, and its evaluations: shifts are matched in the first.  In half of
# that share, tables are as large as larger ones still pay by their first bound.
BEGINNING_SHARE, FIRST_EVALUATIONS, TABLE_FOR_LITTLE = 0.8, 3, 2**7
# Shares of the time that is left: of the first table size, of each after it, which is larger by this factor at least,
# and of one without a choice between structures.
FIRST_SHARE, SHARE, LEAST_GROWTH, SHARE_WITHOUT_CHOICE = 0.1, 0.45, 2.0, 0.7
# Tables that have had many evaluations are followed by others with few only where these are much larger: they would
# gain less than more evaluations do.
LEAST_GROWTH_TO_FEW = 8.0
# Table entries of the first size, at least and at most; up to TABLE_FOR_NOTHING larger tables take no longer, as there
# are fewer of them.
SMALLEST_TABLE, FIRST_TABLE, TABLE_FOR_NOTHING = 2**3, 2**12, 2**5
# Bytes for each entry, and for each variable beside them, about: shifts, and what a descent remembers of its steps.
BYTES_PER_ENTRY, BYTES_PER_VARIABLE = 32, 700


class Round(NamedTuple):
    """Structures that are tried for the upper and for the lower bound, and evaluations of each."""

    above: int
    below: int
    evaluations: int


# Structures that are begun, kept once, and kept to the end; those of the first size, which shows how fast all this is;
# and those of the branches that were cut out, which are many.
ROUNDS = (Round(6, 2, 15), Round(3, 1, 30), Round(1, 1, 60))
FIRST_ROUNDS = (Round(1, 1, 20),)
OF_A_BRANCH = (Round(1, 1, 30),)
# Where there is no time for a choice: one of each; where there is hardly any, larger tables with few evaluations are
# worth as much as smaller ones with many.
WITHOUT_CHOICE, HARDLY_ANY = (Round(1, 1, 40),), (Round(1, 1, 10),)
# Further evaluations of the best of each, of whichever size, on models of this many variables; on smaller ones what
# comes after successive halving is worth more.
ONWARDS_EVALUATIONS, LARGE_MODEL = 40, 2_000


class Trial(NamedTuple):
    """Work asked for: evaluations of one structure, on from where another trial of it ended.

    `slack` is what its bound has come to, the less the better: an upper bound, or a lower one negated.
    """

    mini_buckets: MiniBucketBounds
    state: WarmStart
    num_evaluations: int
    ends: Ends
    slack: float = math.inf

    @property
    def max_table(self) -> int:
        return (self.mini_buckets.above if self.ends == "upper" else self.mini_buckets.below).max_table


class SuccessiveHalving:
    """The choice of a submodel's mini-buckets by trials.

    Attributes
    ----------
    first_max_table
        Of a branch that was cut out, the table size where it was; 0 for a choice by the time there is.
    mini_buckets, state
        The best so far, and where the bounds of the submodel as a whole have got to with them.
    max_table
        Table entries that are tried now, or were last; 0 before any.
    finished
        Whether it is as far as the time allows.
    """

    def __init__(self, first_max_table: int = 0) -> None:
        self.first_max_table = first_max_table
        self.mini_buckets: MiniBucketBounds | None = None
        self.state: WarmStart | None = None
        self.max_table = 0
        self.finished = False
        self._best: dict[Ends, Trial] = {}
        self._before: dict[Ends, float] = {}  # slacks of the best before this round
        self._rounds: tuple[Round, ...] = ()
        self._round = 0
        self._seconds, self._num_evaluations = 0.0, 0  # that this table size has taken
        self._num_under_way = 0
        self._waiting: list[Trial] = []
        self._done: list[Trial] = []  # of this round
        self._goes_on = False

    def end_with(self, mini_buckets: MiniBucketBounds) -> None:
        """Finish with these mini-buckets, as one that was saved."""
        self.mini_buckets, self.max_table, self.finished = mini_buckets, mini_buckets.above.max_table, True

    @property
    def upper(self) -> float:
        """What the best upper bound has come to; infinite before there is one."""
        return self._slack("upper")

    def _slack(self, ends: Ends) -> float:
        return self._best[ends].slack if ends in self._best else math.inf

    @property
    def is_busy(self) -> bool:
        """Whether a trial is under way."""
        return self._num_under_way > 0

    @property
    def has_more(self) -> bool:
        """Whether more can be begun at once."""
        return bool(self._waiting)

    def next(self, model: Model, options: BoundOptions, seconds: float) -> Trial | None:
        """Return the next trial, with `seconds` of all threads left; None where the others must end first."""
        if not self._waiting and not self.is_busy and not self.finished:
            self._advance(model, options, seconds)
        if not self._waiting:
            return None
        self._num_under_way += 1
        return self._waiting.pop(0)

    def put_back(self, asked: Trial) -> None:
        """Have a trial wait again."""
        self._num_under_way -= 1
        self._waiting.insert(0, asked)

    def take(
        self,
        asked: Trial,
        ends: tuple[float, float],
        state: WarmStart | None,
        mini_buckets: MiniBucketBounds | None,
        seconds: float,
    ) -> None:
        """Take what came of a trial, and how long it took; without a state it found nothing."""
        self._num_under_way -= 1
        if asked.max_table == self.max_table:
            self._seconds += seconds
            self._num_evaluations += asked.num_evaluations
        if state is None or mini_buckets is None:
            return
        slack = min(asked.slack, ends[1] if asked.ends == "upper" else -ends[0])
        done = asked._replace(mini_buckets=mini_buckets, state=state, slack=slack)
        self._done.append(done)
        if self.mini_buckets is None or self.state is None:
            self.mini_buckets, self.state = mini_buckets, state
        if slack >= self._slack(done.ends):
            return
        self._best[done.ends] = done
        if done.ends == "upper":
            self.mini_buckets = mini_buckets.with_below(self.mini_buckets)
            self.state = replace(state, below=self.state.below)
        else:
            self.mini_buckets = self.mini_buckets.with_below(mini_buckets)
            self.state = replace(self.state, below=state.below)

    def _advance(self, model: Model, options: BoundOptions, seconds: float) -> None:
        """Go on to the next round, or to the next table size."""
        done, self._done = sorted(self._done, key=lambda done: done.slack), []
        gained = sum(self._before.get(ends, math.inf) - best.slack for ends, best in self._best.items())
        self._before = {ends: best.slack for ends, best in self._best.items()}
        self._round += 1
        if self.max_table and not any(each.ends == "upper" for each in done):
            self.finished = True  # there was not time or memory enough
            return
        if self.max_table and self._round < len(self._rounds):
            now = self._rounds[self._round]
            above = [each for each in done if each.ends == "upper"][: now.above]
            below = [each for each in done if each.ends == "lower"][: now.below]
            kept = above + [each for each in below if each.slack < math.inf]
            self._waiting = [each._replace(num_evaluations=now.evaluations) for each in kept]
            return
        max_table, rounds = self._next(model, options, seconds)
        # what comes instead of the first size is worth less than a trial: time is asked for beyond it
        begins = may_begin(model, options, seconds / options.num_threads if self.max_table else math.inf)
        if begins and max_table >= LEAST_GROWTH * self.max_table:
            self._begin(model, max_table, rounds, options)
        elif model.num_variables >= LARGE_MODEL and (gained > self._gained_by_a_clamp() or not self._goes_on):
            self._goes_on = True
            self._waiting = [best._replace(num_evaluations=ONWARDS_EVALUATIONS) for best in self._best.values()]
            self.finished = not self._waiting
        else:
            self.finished = True

    def _gained_by_a_clamp(self) -> float:
        """Return about the most nats that a clamp gains; infinite where that is not known."""
        loss = self.state.loss if self.state is not None else np.empty(0)
        return float(loss.max(initial=0.0)) if len(loss) else math.inf

    def _begin(self, model: Model, max_table: int, rounds: tuple[Round, ...], options: BoundOptions) -> None:
        """Begin trials of a new table size."""
        self._rounds = rounds
        self.max_table, self._round, self._seconds, self._num_evaluations = max_table, 0, 0.0, 0
        state, now, plain = self.state or WarmStart.even(model), rounds[0], Shape(max_table)
        shapes = [Shape(max_table, options.seed + k) for k in range(max(now.above, now.below))]

        def trial(above: Shape, below: Shape, ends: Ends) -> Trial:
            keeps = not options.in_order
            mini_buckets = MiniBucketBounds(model, above, below, options.worker_bytes, keeps_descents=keeps)
            return Trial(mini_buckets, state, now.evaluations, ends)

        self._waiting = [trial(shape, plain, "upper") for shape in shapes[: now.above]]
        # there is always one whose order has no chance in it, which most lower bounds are best with
        below = [plain, *shapes[1:]][: 0 if bethe_leads(model) or has_zeros(model) else now.below]
        self._waiting[1:1] = [trial(plain, shape, "lower") for shape in below]

    def _next(self, model: Model, options: BoundOptions, seconds: float) -> tuple[int, tuple[Round, ...]]:
        """Return the table size that its share of the time allows, by what the last one took, and its rounds."""
        if self.first_max_table:
            return self.max_table or self.first_max_table, OF_A_BRANCH
        if options.max_table is not None:
            return options.max_table, ROUNDS
        if not self.max_table:
            beginning = BEGINNING_SHARE / 2 * seconds / options.num_threads - building_seconds(model)
            least = max_table_in_time(model, options, beginning / FIRST_EVALUATIONS, TABLE_FOR_LITTLE)
            seconds *= FIRST_SHARE / _num_evaluations(FIRST_ROUNDS)
            max_table = max(least, max_table_in_time(model, options, seconds, FIRST_TABLE))
            (first,) = FIRST_ROUNDS
            fitting = int(first.evaluations * seconds / evaluation_seconds(model, max_table))
            return max_table, (first._replace(evaluations=max(1, min(fitting, first.evaluations))),)
        expected = self._num_evaluations * evaluation_seconds(model, self.max_table)
        pace = max(self._seconds, 1e-3) / expected
        # tables that are larger by less than the labels of any variable are the same
        num_labels = float(model.num_states.min(where=model.num_states > 1, initial=LARGEST_TABLE))
        had_few = not self._goes_on and self._rounds[-1].evaluations <= FIRST_ROUNDS[-1].evaluations
        for rounds, share in ((ROUNDS, SHARE), *((few, SHARE_WITHOUT_CHOICE) for few in (WITHOUT_CHOICE, HARDLY_ANY))):
            each = share * seconds / _num_evaluations(rounds) / pace
            max_table = max_table_in_time(model, options, each, LARGEST_TABLE)
            growth = max(LEAST_GROWTH if rounds is not HARDLY_ANY or had_few else LEAST_GROWTH_TO_FEW, num_labels)
            if max_table >= growth * self.max_table:
                return max_table, rounds
        return self.max_table, rounds


def may_begin(model: Model, options: BoundOptions, seconds: float) -> bool:
    """Whether there are time and memory for mini-buckets."""
    beginning = building_seconds(model) + FIRST_EVALUATIONS * evaluation_seconds(model, SMALLEST_TABLE)
    return beginning <= BEGINNING_SHARE * seconds and _max_table_in_memory(model, options) >= SMALLEST_TABLE


def _num_evaluations(rounds: tuple[Round, ...]) -> int:
    """Count the evaluations of all structures; a lower bound begins with those of an upper one."""
    first = rounds[0].below * rounds[0].evaluations
    return first + sum((each.above + each.below) * each.evaluations for each in rounds)


def evaluation_seconds(model: Model, max_table: int) -> float:
    """Return the seconds that an evaluation takes, about."""
    return max(model.num_variables, 1) * (SECONDS_PER_VARIABLE + SECONDS_PER_ENTRY * entries_per_variable(max_table))


def _max_table_in_memory(model: Model, options: BoundOptions) -> float:
    each = options.worker_bytes / max(model.num_variables, 1) - BYTES_PER_VARIABLE
    return limit_of_entries(each / BYTES_PER_ENTRY)


def max_table_in_time(model: Model, options: BoundOptions, seconds: float, largest: int) -> int:
    """Return the table size at which an evaluation takes about this long, at most `largest`; or the one asked for.

    Without exact sums, no clique may have all of a model.
    """
    if options.max_table is not None:
        return options.max_table
    entries = (seconds / max(model.num_variables, 1) - SECONDS_PER_VARIABLE) / SECONDS_PER_ENTRY
    fitting = min(max(limit_of_entries(entries), TABLE_FOR_NOTHING), _max_table_in_memory(model, options), largest)
    max_table = min(1 << int(math.log2(max(fitting, SMALLEST_TABLE))), LARGEST_TABLE)
    if options.exact:
        return max_table
    several = model.num_states[model.num_states > 1].astype(np.float64)
    joint = float(np.prod(np.sort(several)[:60]))
    return int(min(max_table, max(SMALLEST_TABLE, joint / 4)))
