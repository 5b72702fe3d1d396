"""`clamp`: check the arguments, and clamp variables step by step."""

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from clampz.approximations.registry import METHODS, MethodKeywords, method_named
from clampz.clamping.branches import Clamped, check_memory, checked_variables
from clampz.clamping.candidates import CRITERIA, default_criterion
from clampz.clamping.clamping import Clamping
from clampz.clamping.memo import Memo
from clampz.clamping.selectors import selectors
from clampz.clamping.selectors.scoring import check_defined
from clampz.errors import OptionError, shown
from clampz.model import Evidence, Model, Variable
from clampz.model.conditioning import given
from clampz.model.model_checks import check_model
from clampz.model.results import Estimate
from clampz.runtime.budget import UNLIMITED, Budget, Progress
from clampz.runtime.options import Options, check_flag, check_name, check_option, is_one_of, is_whole, takes_names
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed
from clampz.runtime.workers import AnyExecutor

META_SELECTORS = {
    "greedy": "every variable is tried, and the best one kept",
    "pseudo-greedy": "the choices of all heuristics are tried, and the best one kept",
    "optimal": "every set of variables is tried, and the best one kept: for study",
}
# Options of TRW that differ from its defaults.  On the four reference models ten steps from the parent's
# weights end below libDAI's bound after every clamp, which two, three and five do not; thirty gain 0.1 nats more and
# take twice as long.
TRW_DEFAULTS = {"edge_weights": "optimized", "num_steps": 10}
DEFAULTS: dict[str, dict[str, Any]] = {"trw": TRW_DEFAULTS}


@takes_names
def clamp(
    model: Model,
    method: str = "trw",
    *,
    evidence: Evidence | None = None,
    variables: Sequence[Variable] | None = None,
    k: int | None = None,
    select: str = "maxW+TRE",
    per_branch: bool = False,
    criterion: str | None = None,
    reweight: bool | None = None,
    warm_starts: bool = True,
    every_step: bool = True,
    memo: Memo | None = None,
    executor: AnyExecutor | None = None,
    rng: Seed = None,
    progress: Listener[Progress] = None,
    options: Options | None = None,
    **changes: Unpack[MethodKeywords],
) -> Clamped:
    """Clamp these variables, or k that a selector chooses, and sum the method's estimates of the branches.

    Parameters
    ----------
    model
        What to clamp.
    method
        "trw", "bethe", "mf", "mini_buckets" or "exact".
    evidence
        `{variable: state}`, as `Model.condition` takes it: then Z is that of the evidence.
    variables
        What to clamp, in this order; None for variables that a selector chooses.
    k, select
        How many of these, and by which selector: one of `selectors()`, or "greedy", "pseudo-greedy" or "optimal".
    per_branch
        Let every branch choose its own next variable, in place of one sequence for all (the paper's).
    criterion
        What greedy selectors make best: "trw" (its bound as low as can be), "mf" (its bound as high), "bethe" (its
        value as high), "mini_buckets" (its bound as low) or "gap" (between the first two).  By default the method's
        own; for Bethe on mixed models, where higher is not better, TRW's.
    reweight
        True: choose TRW's edge weights anew in every branch, in place of restricting the parent's.  "optimized" ones go
        on from the parent's and are never looser than them; others may be.  By default "optimized" ones do, once a
        variable has been chosen (greedy selectors compare under the parent's), and where edges are log-odds: weights of
        a branch's own take tables of its own with more labels or hard zeros, which is slow.
    warm_starts
        Start every branch at its parent's solution.  False: each is solved as any model is, with the method's options
        and defaults as they are and edge weights of its own; branches are then in the order of their variables'
        numbers, whatever the order of the clamps.
    every_step
        False, with cold starts only: solve the method after the last clamp alone, which is all that heuristics need.
        Steps before it have a `log_z` of nan and are not converged, unless a selector needed the method there.
    memo
        Solved sets of clamped variables, shared by calls on one model with cold starts: each set is solved once per
        method.
    executor
        Where to solve blocks of branches: any concurrent.futures.Executor, of threads, processes or a cluster, or a
        Dask Client.  By default threads of this process; the result does not depend on it.
    rng
        A whole number, or a numpy Generator whose next number is taken: the method's option `seed` by another name,
        where it has one.
    progress
        True for a live line; or called now and then with a `Progress`, and may raise StopIteration to stop.
    options, changes
        Of the method: whole ones, which are taken as they are, or single ones by name.  TRW has defaults of its own
        here, `edge_weights="optimized"` and `num_steps=10`; `edge_weights="uniform"` is the paper's way, the uniform
        weights of the model restricted to each branch (Theorem 2 of [WD16]).

    Returns
    -------
    Clamped
        The sum over the branches after the last clamp, with every step on the way.

    Raises
    ------
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.
    TooWideError
        With "exact" and "mini_buckets", where a branch does not fit into memory.

    Examples
    --------
    >>> from clampz import generators
    >>> result = clamp(generators.barbell(), "trw", k=2, select="frustCycles")
    >>> result.log_z < result.steps[0].log_z
    True
    """
    approximation = method_named(method)
    check_model(model)
    for name, flag in (("per_branch", per_branch), ("warm_starts", warm_starts), ("every_step", every_step)):
        check_flag(name, flag)
    if reweight is not None:
        check_flag("reweight", reweight)
    if evidence is not None and memo is not None:
        raise OptionError("memo: expected no evidence beside it; clamp model.condition(evidence), with a memo of that")
    _check_starts(model, warm_starts, every_step, memo, per_branch)
    if options is None and memo is not None:
        options = memo.options(approximation.name)
    own = DEFAULTS.get(approximation.name, {}) if options is None and warm_starts else {}
    chosen = approximation.options(options, own | approximation.with_rng(changes, rng))
    budget = Budget(chosen.time)
    with as_callback(progress, "clamping") as listener, budget.interruptible():
        model = given(model, evidence)
        fixed, num_clamps = _checked_choice(model, variables, k, select, chosen.memory)
        known = criterion is None or is_one_of(criterion, CRITERIA)
        check_option(known, "criterion", f"one of {', '.join(CRITERIA)}", criterion)
        if not warm_starts and not per_branch and memo is None:
            memo = Memo(model)
        clamping = Clamping(
            model=model,
            method=approximation,
            options=chosen,
            criterion=criterion or default_criterion(model, approximation.name),
            budget=budget,
            reweight=reweight,
            executor=executor,
            progress=listener,
            warm_starts=warm_starts,
            every_step=every_step,
            memo=memo,
        )
        return _driven(clamping, fixed, num_clamps, select if variables is None else "given", per_branch)


def clamp_on(
    found: Estimate,
    *,
    variables: Sequence[Variable] | None = None,
    k: int | None = None,
    select: str,
    within: Budget = UNLIMITED,
    **own: Any,
) -> Clamped:
    """Clamp variables, starting from an estimate of the model *without evidence* by the same method.

    The model itself starts at the estimate, as a branch would, and TRW takes its edge weights, optimized further if the
    options say so.  With `within` it is a part of another run, and stops with it.  Edge weights of an estimate with
    evidence are those of a smaller graph, and would prove nothing.
    """
    method = METHODS[found.method]
    progress, own = own.pop("progress", None), method.with_rng(own, own.pop("rng", None))
    options = method.options(None, DEFAULTS.get(method.name, {}) | own)
    budget = Budget(options.time, within=within)
    with budget.interruptible():
        fixed, num_clamps = _checked_choice(found.model, variables, k, select, options.memory)
        clamping = Clamping(
            model=found.model,
            method=method,
            options=options,
            criterion=default_criterion(found.model, method.name),
            budget=budget,
            progress=progress,
            start=found,
        )
        return _driven(clamping, fixed, num_clamps, select if variables is None else "given")


def _driven(clamping: Clamping, fixed: list[int], num_clamps: int, select: str, per_branch: bool = False) -> Clamped:
    """Clamp variables step by step, those that are fixed or as the selector chooses, and return the result."""
    for step in range(num_clamps):
        if clamping.stopped():
            break
        if select == "optimal":
            clamping.clamp_best_set(step + 1)
        else:
            clamping.clamp_next(select, fixed[step] if fixed else None, per_branch)
    return clamping.result(select)


def _checked_choice(
    model: Model, variables: Sequence[Variable] | None, k: int | None, select: str, memory: int | str | None
) -> tuple[list[int], int]:
    """Return the variables given, or none, and how many to clamp.

    A selector that is unknown or not defined for the model is refused, and more branches than fit in memory.
    """
    if (variables is None) == (k is None):
        raise OptionError("expected either variables= or k=: what to clamp, or how many to choose")
    if variables is not None:
        fixed = checked_variables(model, variables)
        num_lanes = math.prod(int(model.num_states[i]) for i in fixed)
        check_memory(model, num_lanes, f"{len(fixed)} clamped variables", memory)
        return fixed, len(fixed)
    check_name("selector", select, [*selectors(), *META_SELECTORS])
    if select in selectors():
        check_defined(model, select)
    if not is_whole(k) or not 0 <= k <= model.num_variables:
        raise OptionError(
            f"k: expected a whole number from 0 to {model.num_variables}, the number of variables, found {shown(k)}"
        )
    # what is tried in the last step is the most that is ever laid out
    tries = {
        "greedy": model.num_variables - k + 1,
        "pseudo-greedy": len(selectors()),
        "optimal": math.comb(model.num_variables, k),
    }.get(select, 1)
    widest = math.prod(np.sort(model.num_states)[model.num_variables - k :].tolist())
    check_memory(model, (tries if k else 1) * widest, f"{k} variables to be clamped by {select}", memory)
    return [], int(k)


def _check_starts(model: Model, warm_starts: bool, every_step: bool, memo: Memo | None, per_branch: bool) -> None:
    """Refuse options that contradict warm or cold starts, and a memo of another model."""
    if warm_starts and not every_step:
        raise OptionError("every_step=False: expected warm_starts=False, as warm starts need every step's solution")
    if memo is None:
        return
    check_option(isinstance(memo, Memo), "memo", "a Memo", memo)
    if warm_starts or per_branch:
        raise OptionError(
            "memo: expected warm_starts=False and one sequence for all branches, so that what is found at a set of "
            f"variables does not depend on the way to it, found {warm_starts=}, {per_branch=}"
        )
    if memo.model is not model:
        raise OptionError(f"memo: expected one of this model, {model!r}, found one of {memo.model!r}")
