"""`solve`: one method as asked for, or those that suit the model, exact ones before all others."""

import math
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, overload

from clampz.approximations.mini_buckets.method import mini_buckets
from clampz.approximations.registry import method_named
from clampz.bounding.bracket import Bracket
from clampz.clamping.clamp import META_SELECTORS, clamp
from clampz.clamping.selectors import selectors
from clampz.errors import EvidenceError
from clampz.exact_inference.method import exact
from clampz.exact_inference.running import EXACT_SHARE, PLANNING_SHARE, PROVEN, exact_cost
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.model.evidence import as_sets, several_sets
from clampz.model.model_checks import check_model
from clampz.model_counting.choice import worth_counting
from clampz.model_counting.count import is_available
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
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, as_seed
from clampz.solving.bracket import bracketed
from clampz.solving.clamps import QUICK, clamped_as_asked
from clampz.solving.estimates import named, with_other_marginals
from clampz.solving.exact import exactly, has_all
from clampz.solving.run import BRACKET_TIME, DEFAULT_TIME, EXACT_TIME, Run
from clampz.solving.solution import Found, Solution


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
        Seconds at most: what there is of them goes to the bracket until it is closed.  By default 10, of which the
        bracket has 4, or 60 where the model can be solved exactly in that.
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
    cost = exact_cost(model, marginals=run.marginals, memory=run.memory, budget=run.budget.share(PLANNING_SHARE))
    count = None
    if worth_counting(model, cost.seconds, first=True) and is_available():
        own = {"engine": "counting", "memory": run.memory, "marginals": run.marginals}
        count = run.limited(rest).by(exact, model, EXACT_SHARE, **own)
        if count.bound == "exact":
            solution = run.solution(count, PROVEN)
            return solution if has_all(count, run) else with_other_marginals(solution, run.limited(rest))
    most = EXACT_TIME if time is None else run.budget.left(EXACT_SHARE)
    found, why = exactly(cost, run, cost.seconds, most)
    if found is not None:
        solution = run.solution(found, why)
        return solution if has_all(found, run) else with_other_marginals(solution, run.limited(rest))
    run = run.limited(rest)
    if k is not None:
        return clamped_as_asked(model, why, run, k, select)
    return bracketed(model, cost, why, run, select, BRACKET_TIME if time is None else math.inf, count)


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
