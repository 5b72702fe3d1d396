"""`solve`: one method as asked for, or those that suit the model, exact ones before all others."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack, overload

from clampz.approximations.mini_buckets.method import mini_buckets
from clampz.approximations.registry import method_named
from clampz.bounding.bracket import Bracket
from clampz.bounding.options import BoundOptions
from clampz.bounding.tree.frontier import bytes_needed, check_room
from clampz.clamping.clamp import META_SELECTORS, clamp
from clampz.clamping.selectors import selectors
from clampz.errors import EvidenceError
from clampz.exact_inference.lanes import ExactOptions
from clampz.exact_inference.method import exact
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.model.evidence import as_sets, several_sets
from clampz.model.model_checks import check_model
from clampz.portfolio.scheduler import Scheduler
from clampz.portfolio.strategy import Strategy
from clampz.runtime.budget import Budget, Progress
from clampz.runtime.options import (
    Options,
    check_flag,
    check_name,
    check_option,
    is_whole,
    knows_its_options,
    memory_allowed,
)
from clampz.runtime.progress import Listener, as_callback, says_stop
from clampz.runtime.seeds import Seed, as_seed
from clampz.runtime.workers import Crew
from clampz.solving.clamps import NARROW, QUICK, clamped_as_asked
from clampz.solving.estimates import named
from clampz.solving.problem import SolveProblem
from clampz.solving.run import DEFAULT_TIME, EXACT_TIME, Run
from clampz.solving.solution import Found, Solution
from clampz.solving.strategies import STRATEGIES
from clampz.solving.strategies.exact_marginals import ExactMarginals


class SolveKeywords(TypedDict, total=False):
    """What a call of `solve` takes by name, beside evidence."""

    method: str
    k: int | None
    select: str | None
    marginals: bool
    time: float | None
    memory: int | str | None
    threads: int | None
    rng: Seed
    progress: Listener[Progress | Bracket]


@overload
def solve(model: Model, *, evidence: Evidence | None = None, **named: Unpack[SolveKeywords]) -> Solution: ...
@overload
def solve(model: Model, *, evidence: Sequence[Evidence], **named: Unpack[SolveKeywords]) -> list[Solution]: ...
@knows_its_options
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
    progress: Listener[Progress | Bracket] = None,
) -> Solution | list[Solution]:
    """Find log Z, bounds on it, and marginals, by a method that suits the model, and say why that one.

    Parameters
    ----------
    model
        What to solve.
    evidence
        `{variable: state}`, as `Model.condition` takes it; or a list of such sets (a frame of pandas, or an array, has
        one in each row), which are solved one after another, each in its share of the time: then a list of solutions is
        returned.
    method
        "auto", or "exact", "mf", "bethe", "trw" or "mini_buckets" for one method alone: then the bounds are only what
        it proves itself.
    k, select
        How many variables to clamp, and by which selector.  By default "auto" clamps as many as time allows, the others
        none.
    time
        Seconds at most: what there is of them goes to the bracket until it is closed.  By default 10, or 60 where
        the model can be solved exactly in that.
    memory
        Bytes that it may use beyond the model itself, or text such as "2GB"; None for half of what is free.  A method
        for which that is not enough is left out.
    marginals
        False if only log Z matters: exact inference is quicker without.  Otherwise they are exact where there is time
        for that, and `Solution.marginals_by` says whose they are.
    threads
        To work with; None for all cores.
    rng
        A whole number, or a numpy Generator whose next number is taken, for what has chance in it.  Without it the same
        is done every time.
    progress
        True for a live line; or called now and then with a `Progress`, or with the `Bracket` as it closes, and
        StopIteration from it ends the run with what there is.

    Returns
    -------
    Solution or list of Solution
        One for each set of evidence where a list of these is given.

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
    >>> solve(generators.grid(4, 4, rng=0)).reason
    'The model is narrow enough to be solved exactly: width 6, 0.03 MB.'
    """
    check_model(model)
    check_flag("marginals", marginals)
    if select is not None:
        check_name("selector", select, [*selectors(), *META_SELECTORS])
    if k is not None:
        expected = f"a whole number from 0 to {model.num_variables}, the number of variables"
        check_option(is_whole(k) and 0 <= k <= model.num_variables, "k", expected, k)
    limits = Options(time=math.inf if time is None else time, threads=threads)
    memory_allowed(memory)  # refuses what it cannot read
    seed, whole = as_seed(rng), Budget(limits.time)

    def solved(known: Evidence | None, seconds: float | None) -> Solution:
        budget = Budget(math.inf if seconds is None else seconds, within=whole)
        run = Run(budget, budget, threads, memory, marginals, listener, seed)
        under = given(model, known)
        if str(method).lower() != "auto":
            return _by_one(under, method, run, k, select or QUICK)
        return _by_what_suits(under, run, seconds, k, select)

    with as_callback(progress, "solving") as listener, whole.interruptible():
        if several_sets(evidence) is None:
            return solved(evidence, time)  # type: ignore[arg-type]
        sets = as_sets(evidence)
        for number, known in enumerate(
            sets
        ):  # what is no evidence, or seen to be impossible, is refused before any work
            try:
                given(model, known)
            except EvidenceError as error:
                raise EvidenceError(f"evidence set {number}: {error}") from None
        shares = range(len(sets), 0, -1)
        return [solved(each, time if time is None else whole.left(1 / n)) for each, n in zip(sets, shares, strict=True)]


def solve_in_a_moment(model: Model, seconds: float, memory: int | str | None = None, rng: Seed = None) -> Solution:
    """Solve by mean field, TRW and Bethe as they are, after an interrupt: nothing that may take longer."""
    budget = Budget(seconds)
    with budget.interruptible():
        return clamped_as_asked(model, "", Run(budget, budget, None, memory, True, None, as_seed(rng)), 0, None)


def _by_what_suits(model: Model, run: Run, time: float | None, k: int | None, select: str | None) -> Solution:
    """Solve exactly if there is time and memory for that; else by a bracket and an estimate."""
    rest = DEFAULT_TIME if time is None else math.inf
    if k:
        return clamped_as_asked(model, "", run.limited(rest), k, select)
    problem = _problem(model, run, select, may_take_longer=time is None)
    strategies = STRATEGIES if k is None else (ExactMarginals,)
    with Crew(None, problem.options.num_threads) as crew:
        bracket = _run(problem, strategies, crew, run.limited(rest))
        if problem.is_longer:
            problem.may_take_longer = False
            bracket = _run(problem, strategies, crew, run.limited(EXACT_TIME))
    if k is not None and problem.exact is None:
        return clamped_as_asked(model, problem.why, run.limited(rest), k, select)
    return problem.solution(bracket)


def _problem(model: Model, run: Run, select: str | None, *, may_take_longer: bool) -> SolveProblem:
    """Make the problem; where memory is too short for exact sums, with what the kernels take anyway."""
    allowed = memory_allowed(run.memory)
    if bytes_needed(model) > run.room:
        check_room(model, allowed)
    fits = bytes_needed(model) <= allowed
    options = BoundOptions(
        gap=NARROW, exact=fits, memory=allowed if fits else run.room, threads=run.threads, seed=run.seed
    )
    exact_options = ExactOptions(memory=allowed, marginals=run.marginals, threads=run.threads)
    return SolveProblem(model, options, exact_options, run, select, may_take_longer=may_take_longer)


def _run(problem: SolveProblem, strategies: Sequence[type[Strategy[Any]]], crew: Crew, run: Run) -> Bracket:
    """Have strategies work on the problem as long as the run lasts, and tell its callback of every bracket."""
    bracket = None
    for bracket in Scheduler(problem, strategies).run(crew, run.budget):
        if not run.interrupted and says_stop(run.progress, bracket):
            run.budget.stop("callback")
    assert bracket is not None
    return replace(bracket, stopped_by="callback") if run.whole.stopped_by == "callback" else bracket


def _by_one(model: Model, name: str, run: Run, k: int | None, select: str) -> Solution:
    """Solve by one method alone, as asked for."""
    method = method_named(name, "auto")
    own: dict[str, Any] = {"memory": run.memory, "marginals": run.marginals} if method in (exact, mini_buckets) else {}
    found: Found = (
        run.as_callback(clamp(model, name, k=k, select=select, **run.options() | own))
        if k
        else run.by(method, model, **own)
    )
    return run.solution(found, f"{named(method.name)} was asked for.")
