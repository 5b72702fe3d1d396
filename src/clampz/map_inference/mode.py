"""`mode`: the best configuration of a model, with a bound on how much better another could be."""

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from clampz.display.formatting import counted
from clampz.errors import TooWideError
from clampz.map_inference.components import Component, Limits
from clampz.map_inference.local_search import States, folding_error, rounded_sum, score_of
from clampz.map_inference.results import Mode, ModeStop, ModeTrace, Scored
from clampz.model import Evidence, Model
from clampz.model.components import component, component_labels
from clampz.model.conditioning import given
from clampz.presolve.simplified import Simplified, unchanged
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.runtime.options import (
    Options,
    bytes_in_words,
    check_option,
    check_whole,
    is_number,
    knows_its_options,
    memory_allowed,
)
from clampz.runtime.progress import Listener, as_callback, says_stop
from clampz.runtime.seeds import Seed, as_generator
from clampz.runtime.workers import Workers

# Seconds where the caller sets no limit.
DEFAULT_TIME = 10.0
# Nats between the ends that are as good as none.
GAP = 1e-9
# The share of the time left that simplifying may take.
SIMPLIFYING_SHARE = 0.4
# Components that are parts of their own at most; beyond, several are one.
MOST_PARTS = 256
# Kicks for each variable of the whole before anything else, and at most.
FIRST_KICKS, MOST_FIRST_KICKS = 4, 2_000

# Bytes that scores take for each table of a model, and that nobody counts.
BYTES_PER_TABLE, SPARE_BYTES = 64, 50_000_000
# Bytes for each table entry of components, which are models of their own.
BYTES_PER_ENTRY = 12
# Seconds between two words to the callback.
BETWEEN_WORDS = 0.1


@knows_its_options
def mode(
    model: Model,
    *,
    evidence: Evidence | None = None,
    num_best: int = 1,
    gap: float = GAP,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[ModeTrace] = None,
) -> Mode:
    """Find the configuration of largest score, or the best that time allows, and bound how much better another is.

    Max-elimination where the model is narrow enough.  Else mini-buckets bound the largest score from above, local
    search and the dives of a branch and bound find configurations from below, and the search closes the gap.

    Parameters
    ----------
    model
        What to find the best configuration of.
    evidence
        `{variable: state}`.
    num_best
        How many configurations, the best ones.
    gap
        In nats: a configuration that is better by no more is not looked for.
    time
        Seconds at most; None for 10.
    memory
        Bytes, or text such as "2GB"; None for half of what is free.
    threads
        Threads to use; None for all cores.  No result depends on it.
    rng
        A seed or a Generator; the same seed gives the same result, unless time ends it.
    progress
        True for a live line; or called with each `ModeTrace`, in any thread, and StopIteration from it ends the run
        with what there is.

    Returns
    -------
    Mode
        The best configurations found, and what no configuration exceeds.

    Raises
    ------
    TooWideError
        Where not even the least answer fits into the memory given.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> found = mode(Model.from_binary([0.5, -1.0], [3.0], [(0, 1)], names=["a", "b"]))
    >>> found.configuration, found.score, found.is_optimal
    ({'a': 0, 'b': 0}, 1.5, True)
    """
    check_whole("num_best", num_best, 1)
    check_option(is_number(gap) and gap >= 0, "gap", "a number of nats >= 0", gap)
    options = Options(time=DEFAULT_TIME if time is None else time, threads=threads)
    num_bytes = memory_allowed(memory)
    seed = int(as_generator(0 if rng is None else rng).integers(1, 2**31))
    before, model = model, given(model, evidence)
    _check_memory(model, num_best, num_bytes)
    with as_callback(progress, "maximising") as listener, Workers(options.num_threads) as workers:
        teller = Teller(listener)
        teller.budget = budget = Budget(options.time, stop=teller.tells_to_stop)
        with budget.interruptible():
            run = Ascent(model, Limits(gap, num_best, num_bytes, seed), budget, teller)
            if evidence is not None:
                run.unfolded = before.condition(before.findings(evidence).likelihoods)
                run.folding_error = folding_error(model)
            run.go(workers)
    return run.result()


def best_found(model: Model, num_bytes: float, seed: int, budget: Budget) -> Mode:
    """Return what `mode` finds within a budget and memory, on one thread.

    TooWideError where these do not suffice for any answer.
    """
    _check_memory(model, 1, int(num_bytes))
    run = Ascent(model, Limits(GAP, 1, num_bytes, seed), budget, Teller(None))
    with Workers(1) as workers:
        run.go(workers)
    return run.result()


def _check_memory(model: Model, num_best: int, num_bytes: int) -> None:
    """Refuse what even the least answer would take too much for."""
    num_tables = model.num_variables + model.num_edges + len(model.factors)
    least = BYTES_PER_TABLE * num_tables + 8 * num_best * (model.num_variables + 8)
    if least > max(num_bytes, SPARE_BYTES):
        several = f"the best {num_best:,} configurations" if num_best > 1 else "the best configuration"
        raise TooWideError(
            f"{several} of {counted(model.num_variables, 'variable')} need at least {bytes_in_words(least)}, and "
            f"{bytes_in_words(num_bytes)} are allowed: {'lower num_best=, or ' if num_best > 1 else ''}allow more with "
            "memory=",
            width=0,
            num_bytes=least,
        )


class Teller:
    """Tells the callback what is known, and the budget if the callback wants to stop.

    It does so when something has changed, and several times a second whatever happens.
    """

    def __init__(self, progress: Callable[[ModeTrace], object] | None) -> None:
        self.budget: Budget = UNLIMITED
        self.moment = ModeTrace(0.0, -math.inf, math.inf)
        self._progress = progress
        self._stopped = False
        self._told = 0.0
        self._lock = threading.Lock()

    def tell(self, moment: ModeTrace) -> None:
        with self._lock:
            self.moment = moment
            self._tell()

    def tells_to_stop(self) -> bool:
        """Tell the callback if it was long ago; the budget asks this again and again, in any thread."""
        if perf_counter() > self._told + BETWEEN_WORDS and self._lock.acquire(blocking=False):
            try:
                self._tell()
            finally:
                self._lock.release()
        return False

    def _tell(self) -> None:
        self._told = perf_counter()
        if not self._stopped and says_stop(self._progress, self.moment):
            self._stopped = True
            self.budget.stop("callback")


@dataclass(eq=False)
class Ascent:
    """A model on its way to its maximum: what presolve leaves of it, in components.

    Attributes
    ----------
    unfolded
        The model before states that are known were folded into its tables, which rounds; what is found is scored by it.
    folding_error
        How much that may have changed a score.
    """

    model: Model
    limits: Limits
    budget: Budget
    teller: Teller
    unfolded: Model | None = None
    folding_error: float = 0.0
    simplified: Simplified = field(init=False)
    parts: list[Component] = field(default_factory=list)
    is_split: bool = False
    trace: list[ModeTrace] = field(default_factory=list)

    def go(self, workers: Workers) -> None:
        """Work to the end, or as far as the budget allows."""
        if self.limits.num_best == 1:
            share = self.budget.share(SIMPLIFYING_SHARE)
            memory = int(self.limits.num_bytes)
            self.simplified = simplify(self.model, operation="max", memory=memory, budget=share)
        else:  # what goes may take some of several configurations along
            self.simplified = unchanged(self.model, "max")
        if self.simplified.infeasibility:
            return
        rest, budget = self.simplified.model, self.budget
        whole = Component.of(rest, np.arange(rest.num_variables), self.limits)
        self.parts = [whole]
        self.tell()
        whole.try_exactly(budget)
        if not whole.is_done:
            whole.climb(budget, min(FIRST_KICKS * rest.num_variables, MOST_FIRST_KICKS))
            self.tell()
            if self.limits.num_best == 1 and not budget.must_stop():
                self._split(whole)
        del whole
        for k, part in enumerate(self.parts):
            left = sum(each.model.num_variables for each in self.parts[k:])
            own = budget.share(part.model.num_variables / max(left, 1))
            if len(self.parts) > 1:
                part.try_exactly(own)
            part.bound(own, workers, self.tell)
        num_turns = 0
        waiting = [part for part in self.parts if not part.is_done]
        while waiting and not budget.must_stop():
            num_turns += 1
            part = max(waiting, key=lambda each: each.gap)
            goes_on = part.step(budget, num_turns) and not part.is_done
            waiting = [each for each in waiting if each is not part or goes_on]
            self.tell()

    def _split(self, whole: Component) -> None:
        """Split into components if there are time and memory for that, with what was found of the whole."""
        model = whole.model
        if BYTES_PER_ENTRY * (len(model.pairwise.flat) + len(model.factors.flat)) > self.limits.num_bytes:
            return
        labels = component_labels(model)
        num_labels = int(labels.max(initial=-1)) + 1
        if num_labels < 2:
            return
        sizes = np.bincount(labels)
        number = np.empty(num_labels, dtype=np.int64)
        number[np.argsort(-sizes, kind="stable")] = np.arange(num_labels) % MOST_PARTS
        of = number[labels]
        members = [np.flatnonzero(of == k) for k in range(int(of.max()) + 1)]
        parts = []
        for variables in members:
            if self.budget.must_stop():
                return
            limits = self.limits._replace(num_bytes=self.limits.num_bytes * len(variables) / model.num_variables)
            part = Component.of(component(model, variables), variables, limits)
            if whole.found:
                part.take(whole.found[0][1][variables])
            parts.append(part)
        self.parts, self.is_split = parts, True

    def ends(self) -> tuple[float, float]:
        """Return bounds on the largest score, from all components."""
        if self.simplified.infeasibility:
            return -math.inf, -math.inf
        lower, upper = self.parts[0].lower, self.parts[0].upper
        if self.is_split:
            constant = self.simplified.model.constant
            lower = rounded_sum([constant, *(part.lower for part in self.parts)], -1.0)
            upper = rounded_sum([constant, *(part.upper for part in self.parts)], 1.0)
        lower, upper = self.simplified.bounds(lower, upper)
        return lower - self.folding_error, upper + self.folding_error

    def tell(self) -> None:
        """Add a moment to the trace where something has changed, and tell the callback."""
        moment = ModeTrace(self.budget.seconds, *self.ends())
        if not self.trace or moment[1:] != self.trace[-1][1:]:
            self.trace.append(moment)
        self.teller.tell(moment)

    def result(self) -> Mode:
        lower, upper = self.ends()
        found = self._found()
        if found and upper > -math.inf:
            upper = max(upper, found[0].score)
        is_optimal = all(part.is_done for part in self.parts)
        reason = self.budget.stopped_by
        stopped_by: ModeStop = "memory" if any(part.lacks_memory for part in self.parts) else "time"
        if is_optimal:
            stopped_by = "optimal"
        elif reason == "time" or reason == "interrupt" or reason == "callback":
            stopped_by = reason
        self.trace.append(ModeTrace(self.budget.seconds, found[0].score if found else lower, upper))
        return Mode(
            model=self.model,
            best=tuple(found),
            upper=upper,
            is_optimal=is_optimal,
            trace=tuple(self.trace),
            stopped_by=stopped_by,
            seconds=self.budget.seconds,
        )

    def _found(self) -> list[Scored]:
        """Return the best configurations of the original model, each scored with one rounding."""
        if self.simplified.infeasibility or not all(part.found for part in self.parts):
            return []
        scored_by = self.model if self.unfolded is None else self.unfolded
        is_whole = self.simplified.is_trivial and not self.is_split and scored_by is self.model
        if is_whole and self.limits.num_best == 1:
            score, states = self.parts[0].found[0]
            return [Scored(states, score)]
        num = min(len(part.found) for part in self.parts)
        rest = np.zeros((num, self.simplified.model.num_variables), dtype=np.int64)
        for part in self.parts:
            for k in range(num):
                rest[k, part.variables] = part.found[k][1]
        whole: States = self.simplified.states(rest, rng=0).astype(np.int32)
        scored = [Scored(states, score_of(scored_by, states)) for states in whole]
        return sorted((each for each in scored if each.score > -math.inf), key=lambda each: -each.score)
