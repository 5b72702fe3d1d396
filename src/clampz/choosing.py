"""Solve a model by the method that suits it: the practical recommendations of [WD16], and the reasons for each choice.

Narrow models are solved exactly.  On all others `bound` brackets log Z, and an estimate is held inside the bracket: by
draws from its upper bound where these have a small error by their own account, and else Bethe as a rule, mean field
where a mixed model is dense and strong.  Clamping improves both, by pseudo-greedy if there is time for it and by
maxW+TRE if not.  Where a number of clamps is asked for, mean field and TRW with these clamps are the bracket.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

import numpy as np

from clampz.approximations.accuracy import BETHE_TOL, SETTLED, dense_and_strong
from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.regions import regions
from clampz.approximations.registry import method_named
from clampz.approximations.trw import trw
from clampz.bracketing import BoundOptions, Bracket, bound
from clampz.bracketing.bracket import ROUNDING
from clampz.bracketing.drawn_marginals import DrawnMarginals, draw_marginals
from clampz.clamping.branches import Clamped
from clampz.clamping.call import clamp, clamp_on
from clampz.clamping.cost import affordable
from clampz.clamping.selectors import selectors
from clampz.counting import MISSING, is_available, worth_counting
from clampz.elimination.cost import WITH_MARGINALS
from clampz.elimination.exact import ExactOptions
from clampz.elimination.plans import ExactPlan
from clampz.elimination.slice_plans import SlicedPlan, Slicer
from clampz.errors import EvidenceError, OptionError
from clampz.generators import Seed, as_seed
from clampz.model import Evidence, Model
from clampz.model.batch import Batch
from clampz.model.fixing import given
from clampz.model.results import Estimate
from clampz.options import Options, bytes_in_words, check_option, is_whole, memory_allowed
from clampz.signature import Approximation
from clampz.solution import Found, Solution
from clampz.summing.exact import exact
from clampz.summing.plans import ExactCost, exact_cost
from clampz.watch import Progress, Watch
from clampz.wording import counted, title

# Seconds for what is not exact, of which for the bracket, and for what is exact, where the caller sets no limit.
DEFAULT_TIME, BRACKET_TIME, EXACT_TIME = 10.0, 4.0, 60.0
# Shares of the time that looking for an order of exact inference may take, and of what is then left, exact inference:
# the rest is for bounds, should it not end in that.
PLANNING_SHARE, EXACT_SHARE = 0.15, 0.75
# Shares of the time left for mean field, for Bethe without clamps, for the bracket, and for TRW where that is needed;
# Bethe with clamps has the rest.
MEAN_FIELD_SHARE, BETHE_SHARE, BRACKET_SHARE, TRW_SHARE = 0.1, 0.3, 0.8, 0.5
# And for marginals by draws, of what the bracket leaves.
DRAWS_SHARE = 0.8
# And for a count of what is nearly all constraints, before anything else.
COUNTING_SHARE = 0.4
# Seconds beyond which exact inference is done in slices, on all threads, if that is quicker.
LONG_SECONDS = 1.0
# Clamps that pseudo-greedy should be able to afford to be worth its tries.
PATIENT_CLAMPS = 3
QUICK, PATIENT = "maxW+TRE", "pseudo-greedy"
# Nats: a bracket this narrow needs no clamps.
NARROW = 1e-3

FoundT = TypeVar("FoundT", Estimate, Clamped)
Listener = Callable[[Progress | Bracket], object]


@overload
def solve(
    model: Model,
    *,
    evidence: Evidence | None = None,
    method: str = "auto",
    k: int | None = None,
    select: str | None = None,
    marginals: bool = True,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener | None = None,
) -> Solution: ...
@overload
def solve(
    model: Model,
    *,
    evidence: Sequence[Evidence],
    method: str = "auto",
    k: int | None = None,
    select: str | None = None,
    marginals: bool = True,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener | None = None,
) -> list[Solution]: ...
def solve(
    model: Model,
    *,
    evidence: Evidence | Sequence[Evidence] | None = None,
    method: str = "auto",
    k: int | None = None,
    select: str | None = None,
    marginals: bool = True,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener | None = None,
) -> Solution | list[Solution]:
    """log Z, bounds on it, and marginals, by a method that suits the model, and the reason for the choice.

    Parameters
    ----------
    evidence
        `{variable: state}`, as `Model.condition` takes it; or a list of such sets, which are solved one after another,
        each in its share of the time: then a list of solutions is returned.
    method
        "auto", or "exact", "mf", "bethe", "trw" or "regions" for one method alone: then the bounds are only what it
        proves itself.
    k, select
        How many variables to clamp, and by which selector.  By default "auto" clamps as many as time allows, the others
        none.
    time
        Seconds at most: what there is of them goes to the bracket until it is closed.  By default 10, of which the
        bracket has 4, or 60 where the model can be solved exactly in that.
    memory
        Bytes that exact sums may use, or text such as "2GB"; None for half of what is free.
    marginals
        False if only log Z matters: exact inference is quicker without.  Otherwise they are exact where there is time
        for that, and `Solution.marginals_by` says whose they are.
    threads
        To work with; None for all cores.
    rng
        A whole number, or a numpy Generator whose next number is taken, for what has chance in it.  Without it the same
        is done every time.
    progress
        Called now and then with a `Progress`, or with the `Bracket` as it closes; StopIteration from it ends the run
        with what there is.

    >>> from clampz import generators
    >>> solve(generators.grid(4, 4, rng=0)).reason
    'The model is narrow enough to be solved exactly: width 6, 0.029 MB.'
    """
    if k is not None:
        expected = f"a whole number from 0 to {model.num_variables}, the number of variables"
        check_option(is_whole(k) and 0 <= k <= model.num_variables, "k", expected, k)
    limits = Options(time=math.inf if time is None else time, threads=threads)
    memory_allowed(memory)  # refuses what it cannot read
    seed, whole = as_seed(rng), Watch(limits.time)

    def solved(known: Evidence | None, seconds: float | None) -> Solution:
        watch = Watch(math.inf if seconds is None else seconds, within=whole)
        run = _Run(watch, watch, threads, memory, marginals, progress, seed)
        under = given(model, known)
        if str(method).lower() != "auto":
            return _by_one(under, method, run, k, select or QUICK)
        return _by_what_suits(under, run, seconds, k, select)

    with whole.interruptible():
        if not isinstance(evidence, Sequence):
            return solved(evidence, time)
        _check_sets(model, evidence)
        shares = range(len(evidence), 0, -1)
        return [
            solved(known, None if time is None else whole.left(1 / share))
            for known, share in zip(evidence, shares, strict=True)
        ]


def _check_sets(model: Model, sets: Sequence[Evidence]) -> None:
    """Refuse what is no evidence, or seen to be impossible, before any of it is solved."""
    if not sets:
        raise EvidenceError("evidence: expected at least one evidence set, found none")
    for number, known in enumerate(sets):
        try:
            given(model, known)
        except EvidenceError as error:
            raise EvidenceError(f"evidence set {number}: {error}") from None


def _by_what_suits(model: Model, run: "_Run", time: float | None, k: int | None, select: str | None) -> Solution:
    """Exactly if there is time and memory for that; else a bracket and an estimate."""
    rest = DEFAULT_TIME if time is None else math.inf
    if k:
        return _clamped_as_asked(model, "", run.limited(rest), k, select)
    cost = exact_cost(model, marginals=run.marginals, memory=run.memory, watch=run.watch.share(PLANNING_SHARE))
    count = None
    if worth_counting(model, cost.seconds, first=True) and is_available():
        own = {"engine": "counting", "memory": run.memory, "marginals": run.marginals}
        count = run.limited(rest).by(exact, model, COUNTING_SHARE, **own)
        if count.bound == "exact":
            solution = run.solution(count, "Nearly all tables have zeros, so it was counted, and the count is proven.")
            return solution if _has_all(count, run) else _with_other_marginals(solution, run.limited(rest))
    most = EXACT_TIME if time is None else run.watch.left(EXACT_SHARE)
    found, why = _exactly(model, cost, run, cost.seconds, most)
    if found is not None and cost.plan is not None:
        solution = run.solution(found, cost.plan.words(why))
        return solution if _has_all(found, run) else _with_other_marginals(solution, run.limited(rest))
    run = run.limited(rest)
    if k is not None:
        return _clamped_as_asked(model, why, run, k, select)
    return _bracketed(model, cost, why, run, select, BRACKET_TIME if time is None else math.inf, count)


@dataclass(frozen=True)
class _Run:
    """What all methods of a run are held to: one clock, of the whole and of a share of it, threads, memory, whether
    marginals are wanted, and the caller's callback."""

    whole: Watch
    watch: Watch
    threads: int | None
    memory: int | str | None
    marginals: bool
    progress: Listener | None
    seed: int

    def share(self, share: float) -> "_Run":
        """The same with a share of the time left."""
        return replace(self, watch=self.watch.share(share))

    def limited(self, seconds: float) -> "_Run":
        """The same with so many seconds at most."""
        return replace(self, watch=Watch(min(seconds, self.watch.left()), within=self.watch))

    def options(self, share: float = 1.0) -> dict[str, Any]:
        return {"time": self.watch.left(share), "threads": self.threads, "progress": self.tell, "rng": self.seed}

    def tell(self, progress: Progress | Bracket) -> None:
        """Tell the callback, and whoever is at work whether to stop: Ctrl-C is heard by the run as a whole."""
        if self.interrupted:
            raise StopIteration
        if self.progress is not None:
            self.progress(progress)

    def by(self, method: Approximation[Any], model: Model, share: float = 1.0, **own: Any) -> Estimate:
        """What a method makes of a model in a share of the time left."""
        start, limits = own.pop("start", None), self.options(share)
        progress, rng = limits.pop("progress"), limits.pop("rng")
        options = method.options(None, method.with_rng(limits | own, rng))
        found = method.solve(Batch.of(model), options, start, progress, within=self.watch)
        return self.heard(found[0])

    def heard(self, found: FoundT) -> FoundT:
        """The same result; if somebody stopped it, the rest stops too."""
        if found.stopped_by in ("interrupt", "callback"):
            self.watch.stop(found.stopped_by)
        return found

    @property
    def interrupted(self) -> bool:
        self.watch.must_stop()
        return self.watch.stopped_by in ("interrupt", "callback")

    def solution(self, found: Found, reason: str, **more: Any) -> Solution:
        """A method's result as that of the run."""
        return Solution.of(found, reason, seconds=self.whole.seconds, interrupted=self.interrupted, **more)


def _exactly(model: Model, cost: ExactCost, run: _Run, expected: float, most: float) -> tuple[Estimate | None, str]:
    """What exact inference finds, if memory allows it, in slices if not at once, it is expected to take so many seconds
    at most, and does, and how in words; else None, and why."""
    allowed = memory_allowed(run.memory)
    if math.isinf(cost.seconds):
        return None, "There was no time to see what exact inference needs"
    options = ExactOptions(memory=allowed, marginals=run.marginals, threads=run.threads)
    watch = Watch(most, run.tell, within=run.watch)
    fits = cost.plan is not None and cost.num_bytes <= allowed and expected <= most
    sliced = None if fits and expected <= LONG_SECONDS else _slices(cost, options, watch)
    if cost.plan is None or (not fits and (sliced is None or not sliced.fixed)):
        more, limit = "at least " if cost.at_least else "", "memory" if cost.num_bytes > allowed else "time"
        needs = f"{more}{bytes_in_words(cost.num_bytes)} (width {more}{cost.width})"
        return None, f"Exact inference needs {needs}, more than there is {limit} for"
    if sliced is not None and sliced.fixed:
        found, how = cost.plan.run(options, watch, sliced)[0], f" in {sliced.num_sums} slices"
    else:
        found, how = cost.plan.run(options, watch)[0], ""
    if found.converged:
        return found, how
    run.heard(found)
    return None, "Exact inference took longer than expected"


def _has_all(found: Estimate, run: _Run) -> bool:
    """Whether an exact result has the marginals that are wanted, or there are none to be had."""
    return not (run.marginals and math.isfinite(found.log_z) and np.isnan(found.marginals.flat).any())


def _with_other_marginals(solution: Solution, run: _Run) -> Solution:
    """The same log Z, with marginals by draws, or else of the method that suits the model: there was no time for exact
    ones."""
    model = solution.model
    drawn, strong = _drawn(model, run), dense_and_strong(model)
    below = run.by(mean_field, model, MEAN_FIELD_SHARE)
    first = None if strong else run.by(bethe, model, tol=BETHE_TOL)
    found, _ = _estimate(solution.upper, below, None, first, strong)
    whose = f"{_named(found.method)} is" if drawn is None else "Draws are"
    reason = f"{solution.reason} {whose} for the marginals, as there was no time for exact ones."
    other = run.solution(found, reason, lower=solution.lower, upper=solution.upper, drawn=drawn)
    return replace(other, log_z=solution.log_z, bound=solution.bound)


def _drawn(model: Model, run: _Run) -> DrawnMarginals | None:
    """Marginals by draws, if they are wanted and there is time for enough of them."""
    if not run.marginals:
        return None
    return draw_marginals(model, BoundOptions(memory=run.memory, threads=run.threads), run.watch.share(DRAWS_SHARE))


def _slices(cost: ExactCost, options: ExactOptions, watch: Watch) -> SlicedPlan | None:
    """How to solve a model exactly in slices, on all threads, if time and memory allow that."""
    if cost.plan is None or not isinstance(cost.plan.how, ExactPlan):
        return None
    lanes = cost.plan.summed
    return Slicer(lanes.model).plan(
        lanes.unary[:, 0],
        watch.left(),
        memory_allowed(options.memory),
        how=cost.plan.how,
        marginals=options.marginals,
        num_workers=options.num_threads,
        watch=watch.share(PLANNING_SHARE),
    )


def _by_one(model: Model, name: str, run: _Run, k: int | None, select: str) -> Solution:
    """One method alone, as asked for."""
    method = method_named(name)
    own: dict[str, Any] = {"memory": run.memory, "marginals": run.marginals} if method in (exact, regions) else {}
    found: Found = (
        run.heard(clamp(model, name, k=k, select=select, **run.options(), **own)) if k else run.by(method, model, **own)
    )
    return run.solution(found, f"{_named(method.name)} was asked for.")


# -- bracket and estimate ----------------------------------------------------------------------------------------------


def _bracketed(
    model: Model, cost: ExactCost, why: str, run: _Run, select: str | None, most: float, count: Estimate | None
) -> Solution:
    """The bracket, and an estimate inside it, the count if there is one; what is quick comes first, so that a run that
    is stopped has an estimate."""
    strong = dense_and_strong(model)
    below = run.by(mean_field, model, MEAN_FIELD_SHARE)
    first = None if strong else run.by(bethe, model, BETHE_SHARE, tol=BETHE_TOL)
    bracket = _closing(model, run, min(run.watch.left(BRACKET_SHARE), most))
    lower, upper = max(below.lower, bracket.lower), bracket.upper
    if count is not None and lower <= count.log_z <= upper:
        lower = max(lower, count.lower)
        if bracket.stopped_by != "exact":
            bracket = replace(bracket, estimate=count.log_z, estimate_by="counting", why_no_estimate="")
    leaves = counted(bracket.num_leaves, "leaf", "leaves")
    if bracket.stopped_by == "exact" and -math.inf < upper <= lower + ROUNDING:
        return _closed(model, cost, f"{why}, so clamping closes the bracket ({leaves})", run, below, first, bracket)
    above = None
    if -math.inf in (below.lower, upper) or (bracket.num_leaves == 1 and upper - lower > NARROW):
        # a model too large to be clamped in this time: optimized edge weights are the better upper bound
        above = run.by(trw, model, TRW_SHARE, edge_weights="optimized")
        upper = min(upper, above.upper)
    found, choice = _estimate(upper, below, above, _gone_on(first, run), strong)
    estimate = bracket.estimate if bracket.standard_error is not None else None
    drawn = None if estimate is None else _drawn(model, run)
    is_done = drawn is not None or (estimate is not None and not run.marginals)
    if upper - lower > NARROW and found.method != "trw" and not is_done:
        found = _clamped(found, run, 1.0, None, select, None, **({"tol": BETHE_TOL} if found.method == "bethe" else {}))
        choice = _unless_outside(found, choice, lower, upper)
    if bracket.estimate_by == "counting" and bracket.estimate is not None:
        reason = f"{why}, so clamping brackets log Z ({leaves}); it was counted, which is right with high probability."
        solution = run.solution(found, reason, lower=lower, upper=upper, bracket=bracket)
        return replace(solution, log_z=min(max(bracket.estimate, lower), upper), bound=None)
    if estimate is not None:
        how = f"draws from the upper bound estimate it, ± {bracket.standard_error:.2g} (standard error)"
        reason = f"{why}, so clamping brackets log Z ({leaves}); {how}.{_clamps_in_words(found, select)}"
        solution = run.solution(found, reason, lower=lower, upper=upper, bracket=bracket, drawn=drawn)
        return replace(solution, log_z=min(max(estimate, lower), upper), bound=None)
    if worth_counting(model, math.inf) and not is_available():
        choice = f"{choice}; {MISSING}"
    reason = f"{why}, so clamping brackets log Z ({leaves}); {choice}.{_clamps_in_words(found, select)}"
    return run.solution(found, reason, lower=lower, upper=upper, bracket=bracket)


def _closed(
    model: Model, cost: ExactCost, start: str, run: _Run, below: Estimate, first: Estimate | None, bracket: Bracket
) -> Solution:
    """A bracket that is log Z but for rounding, with exact marginals if there is time left for them, and else those of
    the method that suits the model."""
    # a bracket of one leaf is one sum, and how long that took on this machine is known
    expected = min(cost.seconds, WITH_MARGINALS * bracket.seconds) if bracket.num_leaves == 1 else cost.seconds
    found = _exactly(model, cost, run, expected, run.watch.left())[0] if run.marginals else None
    drawn = None
    if found is not None and _has_all(found, run):
        choice = "there was time left for exact marginals"
    else:
        drawn = _drawn(model, run)
        found, _ = _estimate(bracket.upper, below, None, _gone_on(first, run), first is None)
        whose = f"{_named(found.method)} is" if drawn is None else "draws are"
        choice = f"log Z is exact but for rounding, and {whose} for the marginals"
    lower, upper = max(below.lower, bracket.lower), bracket.upper
    solution = run.solution(found, f"{start}; {choice}.", lower=lower, upper=upper, bracket=bracket, drawn=drawn)
    return replace(solution, log_z=solution.lower + (solution.upper - solution.lower) / 2, bound="exact")


def _closing(model: Model, run: _Run, seconds: float) -> Bracket:
    """The bracket that `bound` reaches in this time; without exact sums where memory is too short for any."""
    options: dict[str, Any] = {"gap": NARROW, **run.options(), "time": seconds}
    options["stop"] = lambda: run.interrupted
    try:
        found = bound(model, memory=run.memory, **options)
    except OptionError:  # there was not memory enough to begin
        if run.memory is None:
            raise
        found = bound(model, exact=False, **options)
    if found.stopped_by in ("interrupt", "callback"):
        run.watch.stop(found.stopped_by)
    return found


def _clamped_as_asked(model: Model, why: str, run: _Run, k: int, select: str | None) -> Solution:
    """Mean field below, TRW with optimized edge weights above and the estimate between, with k variables clamped; the
    estimate without clamps comes first, so that a run that is stopped has one."""
    strong = dense_and_strong(model)
    first = None if strong else run.by(bethe, model, 0.4, tol=BETHE_TOL)
    ends = run if strong else run.share(0.6)
    fields, trees = ends.by(mean_field, model, 0.25), ends.by(trw, model, 0.5, edge_weights="optimized")
    below: Found = fields
    above: Found = trees
    if fields.lower < trees.upper - NARROW:
        above = _clamped(trees, ends, 0.6, k, select)
        below = _clamped(fields, ends, 1.0, k, select, above)
    lower, upper = below.lower, above.upper
    first = _gone_on(first, run)
    found, choice = _estimate(upper, below, above, first, strong)
    if found is first:
        found = _clamped(first, run, 1.0, k, select, above, tol=BETHE_TOL)
        choice = _unless_outside(found, choice, lower, upper)
    start = f"{why}, so mean field and TRW bracket log Z"
    if not why:
        start = "Mean field and TRW bracket log Z, as clamps were asked for"
    reason = f"{start}; {choice}.{_clamps_in_words(found, select)}"
    return run.solution(found, reason, lower=lower, upper=upper)


def _gone_on(first: Estimate | None, run: _Run) -> Estimate | None:
    """Bethe's result, gone on with where it has not settled and there is time."""
    if first is None or _settled(first) or not run.watch.left():
        return first
    return run.by(bethe, first.model, start=first, tol=BETHE_TOL, num_starts=0, from_mean_field=False)


def _estimate(upper: float, below: Found, above: Found | None, first: Estimate | None, strong: bool) -> tuple[Any, str]:
    """The result that the estimate is from, and why; TRW's is there whenever it could be that."""
    if upper == -math.inf:
        return above or below, "that proves that Z = 0"
    if first is not None and _settled(first):
        return first, "Bethe is the estimate between, as a rule the nearest"
    also = "bound is also the estimate, as"
    if strong:
        return below, f"the lower {also} the model is dense, mixed and strong, where Bethe is far off"
    if below.lower > -math.inf or above is None:
        return below, f"the lower {also} Bethe did not converge in time"
    return above, f"the upper {also} Bethe did not converge in time and mean field found no possible configuration"


def _unless_outside(found: Found, choice: str, lower: float, upper: float) -> str:
    """The same words, or others for a Bethe value outside the bracket."""
    if found.method != "bethe" or lower <= found.log_z <= upper:
        return choice
    return f"Bethe says {found.log_z:.6g}, outside the bracket, and the bound next to that is given"


def _clamps_in_words(found: Found, select: str | None) -> str:
    if not isinstance(found, Clamped) or not found.variables:
        return ""
    how = "" if select else {QUICK: ", as time is short", PATIENT: ", for which there was time"}[found.select]
    were = "variable was" if len(found.variables) == 1 else "variables were"
    return f" {len(found.variables)} {were} clamped by {found.select}{how}."


def _named(method: str) -> str:
    """A method as a sentence begins with it."""
    return title(method)[0].upper() + title(method)[1:]


def _settled(found: Found) -> bool:
    """Whether what Bethe says counts, if not to all digits."""
    return bool(found.branches.residual.max() <= SETTLED) if isinstance(found, Clamped) else found.residual <= SETTLED


# -- clamps ------------------------------------------------------------------------------------------------------------


def _clamped(
    found: Estimate, run: _Run, share: float, k: int | None, select: str | None, guide: Found | None = None, **own: Any
) -> Found:
    """A method's result after clamping k variables, or as many as a share of the time left allows; the same result
    where that is none or did not converge.

    `guide` is TRW's result: the variables that were clamped for it serve the others too where time is short, where the
    selector is the same whatever is clamped, and for Bethe on mixed models.
    """
    seconds = run.watch.left(share)
    patient = affordable(found, seconds, tries=len(selectors()))
    enough = patient >= (PATIENT_CLAMPS if k is None else k)
    chosen = select or (PATIENT if enough else QUICK)
    count = (patient if chosen == PATIENT else affordable(found, seconds)) if k is None else k
    variables = None
    if isinstance(guide, Clamped) and guide.variables:
        mixed = found.method == "bethe" and (found.model.pair_form is None or found.model.kind == "mixed")
        if guide.select in selectors() or mixed or not (enough or select):
            chosen = guide.select
            count = min(affordable(found, seconds, given=True) if k is None else k, len(guide.variables))
            variables = guide.variables[:count]
    if not count or run.interrupted:
        return found
    what: dict[str, Any] = {"k": count} if variables is None else {"variables": variables}
    options = {"select": chosen, **run.options(share), **own}
    if found.method == "trw":
        result = clamp_on(found, within=run.watch, **what, **options)
    else:
        result = clamp(found.model, found.method, **what, **options)
    result = replace(run.heard(result), select=chosen)
    return found if found.bound is None and not _settled(result) else result
