"""`sweep`: one inverse temperature after another, each with an even share of the time that is left."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clampz.approximations.bethe import bethe
from clampz.approximations.method_choice import BETHE_TOL
from clampz.approximations.mini_buckets.method import mini_buckets
from clampz.approximations.registry import method_named
from clampz.approximations.trw import trw
from clampz.bounding.bound import bound
from clampz.bounding.bracket import NEAR, Bracket
from clampz.errors import TooWideError
from clampz.exact_inference.method import exact
from clampz.exact_inference.running import EXACT_SHARE, PLANNING_SHARE, ExactCost, exact_cost
from clampz.method import Method
from clampz.model import Evidence, Model
from clampz.model.batch import Batch
from clampz.model.conditioning import given
from clampz.model.results import Estimate, heat_capacities
from clampz.model.temperatures import as_betas
from clampz.numerics import Floats
from clampz.runtime.budget import GRACE, Budget, Progress
from clampz.runtime.options import Options, bytes_in_words, knows_its_options, memory_allowed
from clampz.runtime.progress import Listener, as_callback, says_stop
from clampz.runtime.seeds import Seed, as_seed
from clampz.temperature_sweep.result import Sweep

# Seconds where the caller sets no limit: for what is not exact, and for what is.
DEFAULT_TIME, EXACT_TIME = 30.0, 60.0
# The share of the time that is left for all that is left: what overruns its own is taken from the others, but not all
# from the last.
EVEN_SHARE = 0.95
# Shares of what a beta has: of Bethe, of the bracket after it, of mini-buckets in that, and of a method alone, before
# its heat capacity, which is two runs more.
BETHE_SHARE, BRACKET_SHARE, REGIONS_SHARE, METHOD_SHARE = 0.2, 0.7, 0.6, 0.5
# Mini-buckets: what an entry of a table takes, how many evaluations they should be able to afford, the exponent of two
# of the largest tables and the smallest tables worth the while; and seconds from which a search comes to anything.
SECONDS_PER_REGION_ENTRY, EVALUATIONS, LARGEST_EXPONENT, LEAST_LIMIT, SEARCH_SECONDS = 1e-8, 80, 14, 16, 4.0
# Runs of a method for one beta: itself, and two for its heat capacity.
NUM_RUNS = 3
# Seconds per table entry that the mean of the score takes, and that it takes at the least to see what an exact sum
# needs, about.
SECONDS_PER_ENTRY, SECONDS_TO_PLAN = 5e-7, 1e-7
# Seconds per table entry that Bethe, or a bracket, takes at the least.
LEAST_SECONDS = 1.5e-7


class _Point(NamedTuple):
    """What is known at one beta."""

    lower: float = -math.inf
    upper: float = math.inf
    log_z: float = math.nan
    energy: float = math.nan
    heat_capacity: float = math.nan
    by: str = ""


@knows_its_options
def sweep(
    model: Model,
    beta: ArrayLike,
    *,
    method: str = "auto",
    evidence: Evidence | None = None,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[Progress | Bracket] = None,
) -> Sweep:
    """Bound log Z over inverse temperatures from both sides, certified, with energy, entropy and heat capacity.

    Parameters
    ----------
    model
        At inverse temperature 1.
    beta
        Inverse temperatures >= 0, in any order: the whole score is multiplied by each, hard zeros staying what they
        are.  At 0 log Z is the logarithm of the number of possible configurations.
    method
        "auto": exact where there is time and memory for it, otherwise a bracket at each beta, by mini-buckets or
        `bound`, around Bethe's log Z, energy and heat capacity.  Or "exact", "mf", "bethe", "trw" or "mini_buckets" for
        one method alone: then the ends are what it proves itself.
    evidence
        `{variable: state}`.
    time
        Seconds at most, in even shares.  By default 30, or 60 where all of it can be solved exactly in that.
    memory
        Bytes, or text such as "2GB"; None for half of what is free.
    threads
        To work with; None for all cores.
    rng
        Of the chance in starts and structures; with None it is the same every time.
    progress
        True for a live line; or called now and then with a `Progress`, whose lanes are the inverse temperatures, or
        with a `Bracket` as it closes, and StopIteration from it ends the run with what there is.

    Returns
    -------
    Sweep
        An entry of each of its arrays for each beta, in the order given.

    Raises
    ------
    TooWideError
        With `method="exact"` or "mini_buckets", where the model does not fit into memory.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    >>> from clampz import generators
    >>> found = sweep(generators.grid(3, 3, rng=0), [0.0, 0.5, 1.0])
    >>> print(found.by, f"{found.entropy[0]:.6f}")
    ('exact', 'exact', 'exact') 6.238325
    """
    limits = Options(time=math.inf if time is None else time, threads=threads)
    budget = Budget(limits.time)
    chosen = None if str(method).lower() == "auto" else method_named(method, "auto")
    seed = as_seed(rng)
    with as_callback(progress, "sweeping") as listener, budget.interruptible():
        model = given(model, evidence)
        betas = np.atleast_1d(as_betas(beta, Batch.of(model).sizes))
        own = 8 * model.num_entries
        allowed = memory_allowed(memory) - own
        if allowed <= 0:
            raise TooWideError(
                f"memory: a copy of the model takes {bytes_in_words(own)}, more than is allowed: allow more with "
                "memory=",
                width=0,
                num_bytes=own,
            )
        run = _Sweeping(model, budget, allowed, threads, seed, listener, len(betas))
        if chosen is None:
            return run.by_what_suits(betas, time)
        return run.over(betas, lambda beta: run.by_method(chosen, beta), f"{chosen.name} was asked for.")


@dataclass
class _Sweeping:
    """The limits that every beta of a run shares."""

    model: Model
    budget: Budget
    memory: int
    threads: int | None
    seed: int
    progress: Callable[[Progress | Bracket], object] | None
    num_betas: int
    num_done: int = 0

    def __post_init__(self) -> None:
        self.batch = Batch.of(self.model)

    def by_what_suits(self, betas: Floats, time: float | None) -> Sweep:
        """Exactly if there is time and memory for that at every beta; else a bracket at each."""
        cost = ExactCost(0, 0, math.inf, None)
        if self.budget.left(PLANNING_SHARE) > SECONDS_TO_PLAN * self.model.num_entries:
            cost = exact_cost(self.model, memory=self.memory, budget=self.budget.share(PLANNING_SHARE))
        most = EXACT_TIME if time is None else self.budget.left(EXACT_SHARE)
        if cost.num_bytes <= self.memory and NUM_RUNS * self.num_betas * cost.seconds <= most and cost.plan is not None:
            return self.over(betas, self.exactly_or_bracketed, cost.plan.words())
        if time is None:
            self.budget = Budget(DEFAULT_TIME, within=self.budget)
        needs = f"{bytes_in_words(cost.num_bytes)} (width {cost.width})"
        why = "Exact sums take longer than there is time for, or more memory"
        if math.isfinite(cost.seconds):
            why = f"Exact sums need {needs} at each beta, more than there is time or memory for"
        return self.over(betas, self.bracketed, f"{why}, so log Z is bracketed.")

    def over(self, betas: Floats, at: Callable[[float], _Point], reason: str) -> Sweep:
        """Solve one beta after another."""
        points = []
        whole = self.budget
        for k, beta in enumerate(betas.tolist()):
            self.budget = whole.share(EVEN_SHARE / (len(betas) - k))
            points.append(at(beta) if k == 0 or not whole.must_stop() else _Point())
            self.num_done += 1
        self.budget = whole
        columns = {name: np.array([getattr(p, name) for p in points]) for name in _Point._fields[:-1]}
        ended = whole.stopped_by if whole.must_stop() else None
        return Sweep(
            model=self.model,
            beta=betas,
            entropy=columns["log_z"] + betas * columns["energy"],
            by=tuple(point.by for point in points),
            reason=reason,
            seconds=whole.seconds,
            stopped_by=ended or "tol",
            **columns,
        )

    # -- one beta ------------------------------------------------------------------------------------------------------

    def by_method(self, method: Method[Any], beta: float) -> _Point:
        """Solve by one method alone."""
        share = self.budget.share(METHOD_SHARE)
        own = {"max_table": max(LEAST_LIMIT, self._limit(share.left()))} if method is mini_buckets else {}
        found = self._solved(method, beta, share, **own)
        energy, heat = self._thermodynamics(found)
        return _Point(found.lower, found.upper, found.log_z, energy, heat, method.name)

    def exactly_or_bracketed(self, beta: float) -> _Point:
        """Exactly, or, where that takes longer than it was expected to, by a bracket."""
        point = self.by_method(exact, beta)
        return self.bracketed(beta) if math.isnan(point.log_z) and not self.budget.must_stop() else point

    def bracketed(self, beta: float) -> _Point:
        """Bracket log Z by mini-buckets or TRW, and by `bound` where there is time for a search; the rest is Bethe's.

        Nothing comes back where there is no time even to begin, and ends alone where memory is too short for methods on
        the whole.
        """
        if self._too_late(self.budget):
            return _Point()
        share, found, lower, upper = self.budget.share(BRACKET_SHARE), None, -math.inf, math.inf
        has_room = bethe.fits(self.model, self.memory)
        if has_room:
            found = self._solved(bethe, beta, self.budget.share(BETHE_SHARE), tol=BETHE_TOL)
            lower, upper = found.lower, found.upper
        max_table = self._limit(share.left(REGIONS_SHARE))
        part = share.share(REGIONS_SHARE)
        if max_table >= LEAST_LIMIT:
            with suppress(TooWideError):
                closer = self._solved(mini_buckets, beta, part, max_table=max_table, marginals=False)
                lower, upper = max(lower, closer.lower), min(upper, closer.upper)
        elif has_room and not self._too_late(part):
            upper = min(upper, self._solved(trw, beta, part).upper)
        if (max_table < LEAST_LIMIT or share.left() > SEARCH_SECONDS) and not self._too_late(share):
            charged = self.batch.sizes.rounding(beta)
            bracket = bound(
                self.model.at(beta),
                time=share.left(),
                memory=self.memory,
                threads=self.threads,
                seed=self.seed,
                stop=self.budget.must_stop,
                progress=self.tell,
            )
            lower, upper = max(lower, bracket.lower - charged), min(upper, bracket.upper + charged)
        if found is None or not lower - NEAR <= found.log_z <= upper + NEAR:  # so much for Bethe's beliefs
            return _Point(lower, upper, by="bracket")
        log_z = min(max(found.log_z, lower), upper)
        energy, heat = self._thermodynamics(found)
        if log_z + beta * energy < -NEAR:  # no distribution has an entropy below zero
            energy, heat = math.nan, math.nan
        return _Point(lower, upper, log_z, energy, heat, "bracket")

    def _too_late(self, budget: Budget) -> bool:
        """Whether the time left is too little for the least that can be done, and that takes long."""
        return LEAST_SECONDS * self.model.num_entries > max(budget.left(), GRACE)

    def _limit(self, seconds: float) -> int:
        """Return the table size that there is time for, or 0."""
        most = seconds / (EVALUATIONS * SECONDS_PER_REGION_ENTRY * max(1, self.model.num_variables))
        return 2 ** int(min(math.log2(most), LARGEST_EXPONENT)) if most >= 1.0 else 0

    def _solved(self, method: Method[Any], beta: float, budget: Budget, **own: Any) -> Estimate:
        offered = {"threads": self.threads, "memory": self.memory, "seed": self.seed, "time": budget.left(), **own}
        known = {name: value for name, value in offered.items() if hasattr(method.options_type, name)}
        return method.solve(self.batch.at(beta), method.options(None, known), progress=self.tell, within=budget)[0]

    def _thermodynamics(self, found: Estimate) -> tuple[float, float]:
        """Compute energy and heat capacity, as far as there is time."""
        seconds = SECONDS_PER_ENTRY * self.model.num_entries
        if not math.isfinite(found.log_z) or self.budget.left() < seconds:
            return math.nan, math.nan
        energy = found.energy
        if found.beta and self.budget.left() < NUM_RUNS * seconds:
            return energy, math.nan
        limited = replace(found, options=replace(found.options, time=self.budget.left(0.5)))
        return energy, float(heat_capacities(limited, self.budget)[0])

    def tell(self, progress: Progress | Bracket) -> None:
        """Tell the callback; StopIteration stops the method once the run is interrupted."""
        if self.budget.must_stop():
            raise StopIteration
        if self.progress is None:
            return
        if isinstance(progress, Progress):
            progress = replace(progress, num_lanes=self.num_betas, num_finished=self.num_done)
        if says_stop(self.progress, progress):
            self.budget.stop("callback")
            raise StopIteration
