"""Solve a model by the method that suits it: the practical recommendations of [WD16], and the reasons for each choice.

Narrow models are solved exactly.  On all others `bound` brackets log Z, and an estimate is held inside the bracket:
Bethe as a rule, mean field where a mixed model is dense and strong.  Clamping improves both, by pseudo-greedy if there
is time for it and by maxW+TRE if not.  Where a number of clamps is asked for, mean field and TRW with these clamps are
the bracket.
"""

import math
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.registry import method_named
from clampz.approximations.trw import trw
from clampz.bracketing import Bracket, bound
from clampz.clamping.branches import Clamped, check_memory
from clampz.clamping.growth import clamp
from clampz.clamping.selectors import selectors
from clampz.elimination.exact import exact
from clampz.elimination.plans import Elimination, Restriction, Scopes
from clampz.errors import OptionError, TooWideError
from clampz.io.evidence import given
from clampz.model import Evidence, Model, Variable
from clampz.model.equivalent import Equivalent
from clampz.model.results import Bound, Estimate
from clampz.model.tables import Floats, UnaryTables
from clampz.options import bytes_in_words, check_option, is_number, is_whole, memory_allowed
from clampz.watch import Progress
from clampz.wording import counted

# Seconds for what is not exact, of which for the bracket, and for what is exact, where the caller sets no limit.
DEFAULT_TIME, BRACKET_TIME, EXACT_TIME = 10.0, 4.0, 60.0
# Shares of the time left for mean field, for Bethe without clamps, for the bracket, and for TRW where that is needed;
# Bethe with clamps has the rest.
MEAN_FIELD_SHARE, BETHE_SHARE, BRACKET_SHARE, TRW_SHARE = 0.1, 0.3, 0.8, 0.5
# Brackets of a search that got nowhere beyond its first bounds.
FIRST_BRACKETS = 2
# Exact elimination takes so many nanoseconds for a byte that it needs (1.1 to 1.4 on binary grids, 2.9 with five
# labels).
NANOSECONDS_PER_BYTE = 3.0
# A sweep takes so many nanoseconds for an entry of the pairwise tables (5 ns for a message of four, in many lanes;
# several times that in one).
NANOSECONDS_PER_ENTRY = 2.0
# Typical sweeps, for estimates made before any run, and from how many starts.
TYPICAL_SWEEPS = {"mean_field": 50, "bethe": 300, "trw": 300}
STARTS = {"mean_field": 16, "bethe": 4, "trw": 1}
# Sweeps of all starts of a branch for one sweep that the whole model took: Bethe has two starts there, and TRW does not
# optimize its edge weights again.
BRANCH_SWEEPS = {"mean_field": 17.0, "bethe": 2.0, "trw": 1 / 3}
# From this pull on a variable, as `dense_and_strong` measures it, mean field is the better estimate of a mixed model of
# two labels.
STRONG_PULL = 8.0
# With more labels Bethe was the better one on all sparse graphs: neighbours of a variable, on average, from which a
# graph counts as dense.
DENSE_DEGREE = 6.0
# Clamps that pseudo-greedy should be able to afford to be worth its tries, and the most that are made unasked.
PATIENT_CLAMPS, MAX_CLAMPS = 3, 8
QUICK, PATIENT, GIVEN = "maxW+TRE", "pseudo-greedy", "given"
# Nats: a bracket this narrow needs no clamps, and one this narrow with nothing left to do is log Z but for rounding.
NARROW, ROUNDING = 1e-3, 1e-6
# Bethe's tolerance, and the residual from which its value counts: on a 100 x 100 grid log Z was then within 0.002 nats
# of its limit.
BETHE_TOL, SETTLED = 1e-4, 1e-3

TITLES = {"exact": "Exact", "mean_field": "Mean field", "bethe": "Bethe", "trw": "TRW"}

Found = Estimate | Clamped
FoundT = TypeVar("FoundT", Estimate, Clamped)
Listener = Callable[[Progress | Bracket], object]


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What `solve` found, by which method, and why that one.

    Attributes
    ----------
    log_z, bound
        The answer, inside the bounds, and what it is: "lower", "upper", "exact" or None for an estimate.
    lower, upper
        Certified: lower <= log Z <= upper, the best of all methods that were run.
    marginals
        `marginals[i][a]`, by `method`.
    method, reason
        The method that `log_z` and `marginals` come from, and why it was chosen, in a sentence or two.  Where clamping
        closes the bracket, `log_z` is its.
    variables, select
        The variables clamped for it, in order, and the selector that chose them ("" without clamps).
    converged, interrupted
        Whether that method converged, and whether Ctrl-C or the caller's callback ended the run.
    seconds
        What all of it took.
    estimate
        What the method returned, with everything else that it knows.
    bracket
        The bracket of `cz.bound`, with the way it closed, if that was used.
    """

    model: Model
    log_z: float
    bound: Bound | None
    lower: float
    upper: float
    marginals: UnaryTables
    method: str
    reason: str
    variables: tuple[int, ...]
    select: str
    converged: bool
    interrupted: bool
    seconds: float
    estimate: Found = field(repr=False)
    bracket: Bracket | None = field(default=None, repr=False)

    def marginal(self, variable: Variable) -> Floats:
        """Marginal of one variable, by index or name."""
        return self.marginals[self.model.variable_index(variable)]

    def __repr__(self) -> str:
        clamps = f", {len(self.variables)} clamped by {self.select}" if self.variables else ""
        return f"Solution({self.method}: log Z = {self.log_z:.10g} in [{self.lower:.10g}, {self.upper:.10g}]{clamps}, {self.seconds:.2g} s)"


def solve(
    model: Model,
    *,
    evidence: Evidence | None = None,
    method: str = "auto",
    k: int | None = None,
    select: str | None = None,
    time: float | None = None,
    memory: int | None = None,
    marginals: bool = True,
    threads: int | None = None,
    progress: Listener | None = None,
) -> Solution:
    """log Z, bounds on it, and marginals, by a method that suits the model, and the reason for the choice.

    Parameters
    ----------
    evidence
        `{variable: state}`.
    method
        "auto", or "exact", "mf", "bethe" or "trw" for one method alone: then the bounds are only what it proves itself.
    k, select
        How many variables to clamp, and by which selector.  By default "auto" clamps as many as time allows, the others
        none.
    time
        Seconds at most: what there is of them goes to the bracket until it is closed.  By default 10, of which the
        bracket has 4, or 60 where the model can be solved exactly in that.
    memory
        Bytes that exact sums may use; None for half of what is free.
    marginals
        False if only log Z matters: exact inference is quicker without.
    progress
        Called now and then with a `Progress`, or with the `Bracket` as it closes; StopIteration from it ends the run
        with what there is.

    >>> from clampz import generators
    >>> solve(generators.grid(4, 4, rng=0)).reason
    'The model is narrow enough to be solved exactly: width 6, 0.013 MB.'
    """
    if k is not None:
        check_option(
            is_whole(k) and 0 <= k <= model.num_variables,
            "k",
            f"a whole number from 0 to {model.num_variables}, the number of variables",
            k,
        )
    check_option(time is None or (is_number(time) and time >= 0), "time", "None or seconds >= 0", time)
    if evidence is not None:
        model = given(model, evidence)
    if str(method).lower() != "auto":
        return _by_one(model, method, _Run(time, threads, progress), k, select or QUICK, memory, marginals)
    narrow, why = _exactly(model, time, memory, marginals, threads, progress) if not k else (None, "")
    if narrow is not None:
        return narrow
    run = _Run(DEFAULT_TIME if time is None else time, threads, progress)
    if k is not None:
        return _clamped_as_asked(model, why, run, k, select)
    return _bracketed(model, why, run, select, memory, BRACKET_TIME if time is None else math.inf)


# -- exact ------------------------------------------------------------------------------------------------------------------------


class ExactCost(NamedTuple):
    """What exact inference on a model takes; where no order was completed, `at_least` that."""

    width: int
    num_bytes: int
    seconds: float
    at_least: bool


def exact_cost(model: Model, *, marginals: bool = True) -> ExactCost:
    """The width of the best elimination order found, and the memory and time that it takes; nothing is run.

    >>> from clampz import generators
    >>> exact_cost(generators.cycle(100, rng=0)).width
    2
    """
    larger = model.factors
    scopes = Scopes.of_pairwise(model.num_states, model.edges).followed_by(
        larger.scope_start, larger.variables, np.diff(larger.start)
    )
    try:
        found = Elimination.of(Restriction.of(scopes, model.unary.flat > -np.inf).scopes, 2**62, marginals=marginals)
    except TooWideError as error:
        return ExactCost(error.width, error.num_bytes, error.num_bytes * NANOSECONDS_PER_BYTE / 1e9, True)
    num_bytes = found.num_bytes(marginals)
    return ExactCost(found.width, num_bytes, num_bytes * NANOSECONDS_PER_BYTE / 1e9, False)


def _exactly(
    model: Model,
    time: float | None,
    memory: int | None,
    marginals: bool,
    threads: int | None,
    progress: Listener | None,
) -> tuple[Solution | None, str]:
    """The exact solution, if memory and time allow it; otherwise why not.  Time is proportional to memory, so one limit
    holds it to both."""
    began = clock.perf_counter()
    quick = int((EXACT_TIME if time is None else time / 2) * 1e9 / NANOSECONDS_PER_BYTE)
    allowed = memory_allowed(memory)
    try:
        found = exact(model, memory=min(quick, allowed), marginals=marginals, threads=threads, progress=progress)
    except TooWideError as error:
        limit = "there is memory for" if error.num_bytes > allowed else "there is time for"
        more = "at least " if "at least" in str(error) else ""
        return (
            None,
            f"Exact inference needs {more}{bytes_in_words(error.num_bytes)} (width {more}{error.width}), more than {limit}",
        )
    cost = exact_cost(model, marginals=marginals)
    return _solution(
        found,
        f"The model is narrow enough to be solved exactly: width {cost.width}, {bytes_in_words(cost.num_bytes)}.",
        began,
    ), ""


# -- one method ---------------------------------------------------------------------------------------------------------------------


class _Run:
    """The limits of a run that goes through several methods: once it is stopped, what follows is cut short."""

    def __init__(self, time: float | None, threads: int | None, progress: Listener | None) -> None:
        self.began = clock.perf_counter()
        self.deadline = self.began + (math.inf if time is None else time)
        self.threads = threads
        self.interrupted = False
        self.progress = progress

    def left(self, share: float = 1.0) -> float:
        """Seconds, or a share of what is left of them."""
        return 0.0 if self.interrupted else max(0.0, self.deadline - clock.perf_counter()) * share

    def heard(self, found: FoundT) -> FoundT:
        """The same result; if somebody stopped it, the rest stops too."""
        reasons = set(found.branches.stopped_by) if isinstance(found, Clamped) else {found.stopped_by}
        self.interrupted |= bool(reasons & {"interrupt", "callback"})
        return found

    def options(self, share: float = 1.0) -> dict[str, Any]:
        return {"time": self.left(share), "threads": self.threads, "progress": self.progress}


def _by_one(
    model: Model, name: str, run: _Run, k: int | None, select: str, memory: int | None, marginals: bool
) -> Solution:
    """One method alone, as asked for."""
    method = method_named(name)
    own: dict[str, Any] = {"memory": memory, "marginals": marginals} if method is exact else {}
    if k:
        found: Found = run.heard(clamp(model, name, k=k, select=select, **run.options(), **own))
    else:
        found = run.heard(method(model, **run.options(), **own))
    return _solution(found, f"{TITLES[method.name]} was asked for.", run.began, interrupted=run.interrupted)


def _solution(
    found: Found,
    reason: str,
    began: float,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    interrupted: bool = False,
) -> Solution:
    """A method's result, its estimate held inside the bounds."""
    lower, upper = max(lower, found.lower), min(upper, found.upper)
    log_z = found.log_z if found.bound == "exact" else min(max(found.log_z, lower), upper)
    bound: Bound | None = "lower" if log_z == lower else "upper" if log_z == upper else None
    if upper == -math.inf:
        bound = "exact"
    elif log_z == found.log_z and found.bound is not None:
        bound = found.bound
    variables, select = (found.variables, found.select) if isinstance(found, Clamped) else ((), "")
    return Solution(
        model=found.model,
        log_z=log_z,
        bound=bound,
        lower=lower,
        upper=upper,
        marginals=found.marginals,
        method=found.method,
        reason=reason,
        variables=variables,
        select=select if variables else "",
        converged=found.converged,
        interrupted=interrupted,
        seconds=clock.perf_counter() - began,
        estimate=found,
    )


# -- bracket and estimate -------------------------------------------------------------------------------------------------------------


def _bracketed(model: Model, why: str, run: _Run, select: str | None, memory: int | None, most: float) -> Solution:
    """The bracket, and an estimate inside it; what is quick comes first, so that a run that is stopped has an
    estimate."""
    strong = dense_and_strong(model)
    below = run.heard(mean_field(model, **run.options(MEAN_FIELD_SHARE)))
    first = None if strong else run.heard(bethe(model, tol=BETHE_TOL, **run.options(BETHE_SHARE)))
    bracket = closing(model, run, memory, min(run.left(BRACKET_SHARE), most))
    lower, upper = max(below.lower, bracket.lower), bracket.upper
    above = None
    if -math.inf in (below.lower, upper) or (len(bracket.trace) <= FIRST_BRACKETS and upper - lower > NARROW):
        # a model too large to be clamped in this time: optimized edge weights are the better upper bound
        above = run.heard(trw(model, edge_weights="optimized", **run.options(TRW_SHARE)))
        upper = min(upper, above.upper)
    if first is not None and not _settled(first) and run.left():
        first = run.heard(
            bethe(model, start=first, tol=BETHE_TOL, num_starts=0, from_mean_field=False, **run.options())
        )
    found, choice = _estimate(upper, below, above, first, strong)
    if upper - lower > NARROW and found.method != "trw":
        found = _clamped(found, run, 1.0, None, select, None, **({"tol": BETHE_TOL} if found.method == "bethe" else {}))
        choice = _unless_outside(found, choice, lower, upper)
    leaves = f"clamping brackets log Z ({counted(bracket.num_leaves, 'leaf', 'leaves')})"
    closed = bracket.stopped_by == "exact" and -math.inf < upper <= lower + ROUNDING
    if closed:
        leaves = f"clamping closes the bracket ({counted(bracket.num_leaves, 'leaf', 'leaves')})"
        choice = f"log Z is exact but for rounding, and {TITLES[found.method]} is for the marginals"
    reason = f"{why}, so {leaves}; {choice}.{_clamps_in_words(found, select)}"
    solution = _solution(found, reason, run.began, lower=lower, upper=upper, interrupted=run.interrupted)
    if closed:
        solution = replace(solution, log_z=min(max(bracket.estimate, lower), upper), bound="exact")
    return replace(solution, bracket=bracket)


def closing(model: Model, run: _Run, memory: int | None, seconds: float) -> Bracket:
    """The bracket that `bound` reaches in this time; without exact sums where memory is too short for any."""
    options: dict[str, Any] = {"gap": NARROW, "time": seconds, "threads": run.threads, "progress": run.progress}
    try:
        found = bound(model, memory=memory, **options)
    except OptionError:  # there was not memory enough to begin
        if memory is None:
            raise
        found = bound(model, exact=False, **options)
    run.interrupted |= found.stopped_by in ("interrupt", "callback")
    return found


class Ends(NamedTuple):
    """Bounds on log Z, and the results that prove them."""

    lower: float
    upper: float
    below: Found
    above: Found


def clamped_ends(model: Model, run: _Run, k: int, select: str | None) -> Ends:
    """Bounds on log Z by mean field below and TRW with optimized edge weights above, both with k variables clamped."""
    below = run.heard(mean_field(model, **run.options(0.25)))
    above = run.heard(trw(model, edge_weights="optimized", **run.options(0.5)))
    if below.lower < above.upper - NARROW:
        upper = _clamped(above, run, 0.6, k, select, start=above)
        lower = _clamped(below, run, 1.0, k, select, upper)
        return Ends(lower.lower, upper.upper, lower, upper)
    return Ends(below.lower, above.upper, below, above)


def _clamped_as_asked(model: Model, why: str, run: _Run, k: int, select: str | None) -> Solution:
    """Mean field, TRW and the estimate between with k variables clamped; the estimate without clamps comes first, so
    that a run that is stopped has one."""
    strong = dense_and_strong(model)
    first = None if strong else run.heard(bethe(model, tol=BETHE_TOL, **run.options(0.4)))
    whole, run.deadline = run.deadline, run.deadline - (0.0 if strong else run.left(0.4))
    lower, upper, below, above = clamped_ends(model, run, k, select)
    run.deadline = whole
    if first is not None and not _settled(first) and run.left():
        first = run.heard(
            bethe(model, start=first, tol=BETHE_TOL, num_starts=0, from_mean_field=False, **run.options())
        )
    found, choice = _estimate(upper, below, above, first, strong)
    if found is first:
        found = _clamped(first, run, 1.0, k, select, above, tol=BETHE_TOL)
        choice = _unless_outside(found, choice, lower, upper)
    start = (
        f"{why}, so mean field and TRW bracket log Z"
        if why
        else "Mean field and TRW bracket log Z, as clamps were asked for"
    )
    return _solution(
        found,
        f"{start}; {choice}.{_clamps_in_words(found, select)}",
        run.began,
        lower=lower,
        upper=upper,
        interrupted=run.interrupted,
    )


def _estimate(upper: float, below: Found, above: Found | None, first: Estimate | None, strong: bool) -> tuple[Any, str]:
    """The result that the estimate is from, and why; TRW's is there whenever it could be that."""
    if upper > -math.inf:
        if first is not None and _settled(first):
            return first, "Bethe is the estimate between, as a rule the nearest"
        if strong:
            return (
                below,
                "the lower bound is also the estimate, as the model is dense, mixed and strong, where Bethe is far off",
            )
        if below.lower > -math.inf or above is None:
            return below, "the lower bound is also the estimate, as Bethe did not converge in time"
    if upper == -math.inf:
        return above or below, "that proves that Z = 0"
    return (
        above,
        "the upper bound is also the estimate, as Bethe did not converge in time and mean field found no possible configuration",
    )


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


def dense_and_strong(model: Model) -> bool:
    """Whether mean field is likely to be nearer to log Z than Bethe: on mixed binary models whose variables are tied to
    many others, or strongly.

    What counts is the pull of its neighbours on a variable, the root of sum_j W_ij^2 (1 - 1/degree_i), on average over
    the core: weights of random sign add up like that, and one neighbour would be there on a tree as well.  Measured
    against exact inference on grids, regular, random and complete graphs of 10 to 49 variables and weights up to [-16,
    16], both are equally near at a pull of 7.5 to 10.  K15 has 12 for W in [-6, 6] and 25 for [-12, 12], where mean
    field wins by far, as in the paper.  With L labels it takes L / 2 times as much, on dense graphs (K10 of 3 and 4
    labels); whether such a model is attractive is not known, but dense and strong attractive models are all the same to
    both.

    >>> from clampz import generators
    >>> dense_and_strong(generators.complete(15, weights=(-12, 12), rng=0)), dense_and_strong(generators.grid(7, 7, rng=0))
    (True, False)
    """
    core, degrees = model.topology.core, model.topology.degrees
    if not core.any() or model.factors or not np.isfinite(model.pairwise.flat).all():
        return False
    if model.pair_form is not None and model.kind != "mixed":
        return False
    if model.pair_form is None and degrees[core].mean() < DENSE_DEGREE:
        return False
    squares = np.bincount(model.edges.ravel(), np.repeat(model.strength**2, 2), model.num_variables)
    pull = np.sqrt(squares[core] * (1 - 1 / degrees[core])).mean()
    return bool(pull >= STRONG_PULL * model.num_states[core].mean() / 2)


# -- clamps ---------------------------------------------------------------------------------------------------------------------------


def _clamped(
    found: Estimate, run: _Run, share: float, k: int | None, select: str | None, guide: Found | None = None, **own: Any
) -> Found:
    """A method's result after clamping k variables, or as many as a share of the time left allows; the same result
    where that is none or did not converge.

    `guide` is TRW's result: the variables that were clamped for it serve the others too where time is short, where the
    selector is the same whatever is clamped, and for Bethe on mixed models.
    """
    seconds = run.left(share)
    patient = _affordable(found, seconds, PATIENT)
    enough = patient >= (PATIENT_CLAMPS if k is None else k)
    chosen = select or (PATIENT if enough else QUICK)
    count = (patient if chosen == PATIENT else _affordable(found, seconds, QUICK)) if k is None else k
    variables = None
    if isinstance(guide, Clamped) and guide.variables:
        mixed = found.method == "bethe" and (found.model.pair_form is None or found.model.kind == "mixed")
        if guide.select in selectors() or mixed or not (enough or select):
            chosen = guide.select
            count = min(_affordable(found, seconds, GIVEN) if k is None else k, len(guide.variables))
            variables = guide.variables[:count]
    if not count or run.interrupted:
        return found
    what: dict[str, Any] = {"k": count, "select": chosen} if variables is None else {"variables": variables}
    result = replace(run.heard(clamp(found.model, found.method, **what, **run.options(share), **own)), select=chosen)
    return found if found.bound is None and not _settled(result) else result


def _settled(found: Found) -> bool:
    """Whether what Bethe says counts, if not to all digits."""
    return bool(found.branches.residual.max() <= SETTLED) if isinstance(found, Clamped) else found.residual <= SETTLED


def _affordable(found: Estimate, seconds: float, select: str) -> int:
    """How many variables can be clamped in this time and in memory, going by the sweeps that the whole model took."""
    model = found.model
    states = float(np.median(model.num_states)) if model.num_variables else 2.0
    tries = len(selectors()) if select == PATIENT else 1
    sweeps = max(found.num_iter, 1) * BRANCH_SWEEPS[found.method]
    if found.method != "trw" and select != GIVEN:  # TRW is run for its entropies, to choose variables by
        sweeps += TYPICAL_SWEEPS["trw"]
    per_lane = sweeps * max(seconds_per_sweep(model), 1e-9)
    # every step solves `tries` times as many branches as there will be, and the last step as many as all before
    lanes = seconds / per_lane / tries / 2
    most = min(MAX_CLAMPS, model.num_variables if model.factors else model.topology.num_core)
    count = min(most, int(math.log(max(lanes, 1.0)) / math.log(max(states, 2.0))))
    while count:
        try:
            check_memory(model, tries * int(model.num_states.max()) ** count, "clamps")
            return count
        except OptionError:
            count -= 1
    return 0


def seconds_per_sweep(model: Model) -> float:
    """About what a lane takes for one sweep over the model, or over the pairwise model that stands for it."""
    solved = Equivalent.of(model).model if model.factors else model
    return (2 * len(solved.pairwise.flat) + len(solved.unary.flat)) * NANOSECONDS_PER_ENTRY / 1e9
