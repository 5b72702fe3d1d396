"""Clamping: fix variables to each of their states, approximate every sub-model, sum the sub-partition functions.

A step chooses a variable for every *group* of branches: for all of them together (one shared sequence, the paper's way)
or for each on its own.  Selectors that try candidates solve those of all groups as one batch, and the winners' branches
are solved with that.
"""

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from clampz.approximations.edge_weights import ForestWeights
from clampz.approximations.registry import METHODS, method_named
from clampz.approximations.trw import TRWOptions
from clampz.clamping.branches import Clamped, Step, check_memory, checked_variables, split
from clampz.clamping.selectors import choose, scores, selectors, singleton_entropies
from clampz.errors import OptionError, unknown_name
from clampz.model import Model, Variable
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.model.tables import Floats, Integers
from clampz.numerics import EPS, log_sum_exp
from clampz.options import Options, is_whole
from clampz.signature import Approximation
from clampz.watch import Progress
from clampz.workers import lane_blocks, map_on

META_SELECTORS = {
    "greedy": "every variable is tried, and the best one kept",
    "pseudo-greedy": "the choices of all heuristics are tried, and the best one kept",
    "optimal": "every set of variables is tried, and the best one kept: for study",
}
# What each criterion needs solved; higher merit is better.
CRITERIA: dict[str, tuple[tuple[str, ...], Callable[..., float]]] = {
    "trw": (("trw",), lambda upper: -upper),
    "mf": (("mean_field",), lambda lower: lower),
    "bethe": (("bethe",), lambda value: value),
    "gap": (("trw", "mean_field"), lambda upper, lower: lower - upper),
}
# Lanes in a block that is handed to an executor.
BLOCK = 16


def clamp(
    model: Model,
    method: str = "trw",
    *,
    variables: Sequence[Variable] | None = None,
    k: int | None = None,
    select: str = "maxW+TRE",
    per_branch: bool = False,
    criterion: str | None = None,
    reweight: bool = False,
    executor: Executor | None = None,
    progress: Callable[[Progress], object] | None = None,
    options: Options | None = None,
    **changes: Any,
) -> Clamped:
    """Clamp these variables, or k that a selector chooses, and sum the method's estimates of the branches.

    Parameters
    ----------
    method
        "trw", "bethe", "mf" or "exact".
    variables
        What to clamp, in this order; or else
    k, select
        how many, and by which selector: one of `selectors()`, or "greedy", "pseudo-greedy" or "optimal".
    per_branch
        Let every branch choose its own next variable, in place of one sequence for all (the paper's).
    criterion
        What greedy selectors make best: "trw" (its bound as low as can be), "mf" (its bound as high), "bethe" (its
        value as high) or "gap" (between the first two).  By default the method's own; for Bethe on mixed models, where
        higher is not better, TRW's.
    reweight
        Choose TRW's edge weights anew in every branch, in place of restricting the parent's: "optimized" ones go on
        from the parent's and are never looser than them; others may be.
    executor
        Where to solve blocks of branches: any concurrent.futures.Executor, of threads, processes or a cluster.  By
        default threads of this process; the result does not depend on it.
    options, changes
        Of the method.

    >>> from clampz import generators
    >>> result = clamp(generators.barbell(), "trw", k=2, select="frustCycles")
    >>> result.log_z < result.steps[0].log_z
    True
    """
    approximation = method_named(method)
    chosen = approximation.options(options, changes)
    if (variables is None) == (k is None):
        raise OptionError("expected either variables= or k=: what to clamp, or how many to choose")
    if variables is not None:
        fixed = checked_variables(model, variables)
        check_memory(model, math.prod(int(model.num_states[i]) for i in fixed), f"{len(fixed)} clamped variables")
        select, k = "given", len(fixed)
    else:
        fixed = []
        if select not in (known := [*selectors(), *META_SELECTORS]):
            raise unknown_name("selector", select, known)
        if select in selectors():
            scores(model, select.removesuffix("+TRE"))  # refuses a model that it is not defined for, before any work
        if not is_whole(k) or not 0 <= k <= model.num_variables:  # type: ignore[operator]
            raise OptionError(
                f"k: expected a whole number from 0 to {model.num_variables}, the number of variables, found {k!r}"
            )
        k = int(k)  # type: ignore[arg-type]
        # what is tried in the last step is the most that is ever laid out
        tries = {
            "greedy": model.num_variables - k + 1,
            "pseudo-greedy": len(selectors()),
            "optimal": math.comb(model.num_variables, k),
        }.get(select, 1)
        widest = math.prod(np.sort(model.num_states)[model.num_variables - k :].tolist())
        check_memory(model, (tries if k else 1) * widest, f"{k} variables to be clamped by {select}")
    if criterion is not None and criterion not in CRITERIA:
        raise OptionError(f"criterion: expected one of {', '.join(CRITERIA)}, found {criterion!r}")
    growth = Growth(
        model, approximation, chosen, criterion or _own_criterion(model, approximation), reweight, executor, progress
    )
    for step in range(k):
        if growth.stopped():
            break
        if select == "optimal":
            growth.clamp_best_set(step + 1)
        else:
            growth.clamp_next(select, fixed[step] if fixed else None, per_branch)
    return growth.result(select)


def _own_criterion(model: Model, method: Approximation[Any]) -> str:
    """The criterion of greedy selectors that fits a method: for Bethe, where higher is better only on attractive and
    balanced models, TRW's on the others."""
    if method.name == "mean_field":
        return "mf"
    if method.name == "bethe" and model.pair_form is not None and model.kind != "mixed":
        return "bethe"
    return "trw"


class Choice(NamedTuple):
    """Variables to clamp in one group of branches, and why."""

    variables: tuple[int, ...]
    selector: str
    score: float = math.nan
    note: str = ""


class Growth:
    """A clamping under way: the branches so far, what each method says of them, and the steps that led there."""

    def __init__(
        self,
        model: Model,
        method: Approximation[Any],
        options: Options,
        criterion: str,
        reweight: bool,
        executor: Executor | None,
        progress: Callable[[Progress], object] | None,
    ) -> None:
        self.model = model
        self.method = method
        self.options = options
        self.criterion = criterion
        self.reweight = reweight
        self.executor = executor
        self.progress = progress
        self.began = time.perf_counter()
        self.deadline = self.began + options.time
        self.steps: list[Step] = []
        self.batch = Batch(model, model.unary.flat[:, None])
        self.solved = {method.name: self._solve(method.name, self.batch, None)}
        self.behind: dict[str, Estimates] = {}  # of guides, the estimates of the branches' parents
        self.root = self.batch, self.solved
        self._record(Choice((), ""))

    def clamp_next(self, select: str, fixed: int | None, per_branch: bool) -> None:
        """Clamp one more variable in every group of branches."""
        self.began = time.perf_counter()
        # guides of the step before, which may be asked for again
        self.solved |= {name: self._solve(name, self.batch, parents) for name, parents in self.behind.items()}
        every = np.arange(self.batch.num_lanes)
        groups = np.split(every, len(every)) if per_branch else [every]
        choices = [
            [Choice((fixed,), "given")] if fixed is not None else self._choices(select, group) for group in groups
        ]
        self._branch(groups, choices)

    def clamp_best_set(self, size: int) -> None:
        """Clamp the best of all sets of `size` variables, from the start."""
        self.began = time.perf_counter()
        self.batch, self.solved = self.root
        free = np.flatnonzero(self.batch.num_possible[:, 0] > 1)
        sets = [Choice(tuple(map(int, chosen)), "optimal") for chosen in combinations(free, min(size, len(free)))]
        self._branch([np.zeros(1, dtype=np.int64)], [sets])

    def stopped(self) -> bool:
        """Whether a limit, the caller or Ctrl-C has ended the run: then no further variable is clamped."""
        reasons = set(self.solved[self.method.name].stopped_by)
        return bool(reasons & {"time", "interrupt", "callback"}) or time.perf_counter() > self.deadline

    def result(self, select: str) -> Clamped:
        """What has been reached."""
        estimates = self.solved[self.method.name]
        return Clamped(
            method=self.method.name,
            model=self.model,
            bound=estimates.bound,
            variables=self.steps[-1].variables,
            steps=tuple(self.steps),
            branches=estimates,
            batch=self.batch,
            select=select,
            options=self.options,
        )

    # -- choosing -------------------------------------------------------------------------------------------------------------

    def _choices(self, select: str, group: Integers) -> list[Choice]:
        """What a selector offers for a group of branches: one choice, or several to try."""
        free = (self.batch.num_possible[:, group] > 1).any(axis=1)
        if not free.any():
            return []
        if select == "greedy":
            return [Choice((int(i),), "greedy") for i in np.flatnonzero(free)]
        names = list(selectors()) if select == "pseudo-greedy" else [select]
        if select == "pseudo-greedy" and self.model.pair_form is None:
            names = [name for name in names if "Cycles" not in name]  # defined for binary models only
        found: dict[int, Choice] = {}
        clamped = np.flatnonzero(~free).tolist()
        # TRW's entropies, averaged over the branches with TRW's weights, whichever method is being clamped
        entropies = (
            singleton_entropies(self._guide("trw").take(group))
            if any(name.endswith("+TRE") for name in names)
            else None
        )
        for name in names:
            entropy = entropies if name.endswith("+TRE") else None
            found_scores = scores(self.model, name, clamped=clamped, entropy=entropy)
            variable, score, note = choose(self.model, found_scores, clamped=clamped, entropy=entropy)
            found.setdefault(variable, Choice((variable,), name, score, note))
        return list(found.values())

    # -- branching --------------------------------------------------------------------------------------------------------------

    def _branch(self, groups: list[Integers], choices: list[list[Choice]]) -> None:
        """Split every group at the best of its choices.

        All choices of all groups are laid out as one batch, each a stretch of lanes; where there is a choice, that
        batch is solved and the best stretches stay.
        """
        pieces = [
            (group, choice)
            for group, some in zip(groups, choices, strict=True)
            for choice in (some or [Choice((), "")])
        ]
        owner = np.repeat(np.arange(len(groups)), [max(1, len(some)) for some in choices])
        batch, origin, piece = self._laid_out(pieces)
        tried: dict[str, Estimates] = {}
        winners = np.arange(len(pieces))
        if len(pieces) > len(groups):
            needed, merit_of = CRITERIA[self.criterion]
            tried = {name: self._solve(name, batch, self._guide(name).take(origin)) for name in needed}
            sums = [[log_sum_exp(_end(tried[name])[piece == p]) for name in needed] for p in range(len(pieces))]
            merits = np.array([merit_of(*values) for values in sums])
            winners = np.array([np.flatnonzero(owner == g)[np.argmax(merits[owner == g])] for g in range(len(groups))])
        kept = np.flatnonzero(np.isin(piece, winners))
        before = self.solved
        self.batch = batch.take(kept) if len(kept) < batch.num_lanes else batch
        self.solved = {name: estimates.take(kept) for name, estimates in tried.items()}
        if self.method.name not in self.solved:
            self.solved[self.method.name] = self._solve(
                self.method.name, self.batch, before[self.method.name].take(origin[kept])
            )
        self.behind = {name: before[name].take(origin[kept]) for name in before.keys() - self.solved.keys()}
        self._record(*(pieces[w][1] for w in winners))

    def _laid_out(self, pieces: list[tuple[Integers, Choice]]) -> tuple[Batch, Integers, Integers]:
        """One batch with the branches of all pieces; for each lane the branch it comes from, and its piece."""
        origin = np.concatenate([group for group, _ in pieces])
        piece = np.repeat(np.arange(len(pieces)), [len(group) for group, _ in pieces])
        batch = self.batch.take(origin)
        for depth in range(max(len(choice.variables) for _, choice in pieces)):
            at = np.array([choice.variables[depth] if depth < len(choice.variables) else -1 for _, choice in pieces])
            batch, parent = split(batch, at[piece])
            origin, piece = origin[parent], piece[parent]
        return batch, origin, piece

    # -- solving ------------------------------------------------------------------------------------------------------------

    def _guide(self, name: str) -> Estimates:
        """What a method says of the branches so far."""
        if name not in self.solved:
            self.solved[name] = self._solve(name, self.batch, None)
        return self.solved[name]

    def _solve(self, name: str, batch: Batch, parents: Estimates | None) -> Estimates:
        """A method's estimates of a batch, started from those of the parents (one per lane)."""
        method = METHODS[name]
        own = name == self.method.name
        options = self.options if own else method.options_type(threads=self.options.threads)
        options = options.with_changes({"time": max(0.0, self.deadline - time.perf_counter())})
        if parents is not None:
            options = options.in_branches()
            if isinstance(options, TRWOptions):
                optimize = isinstance(options.edge_weights, str) and options.edge_weights == "optimized"
                anew = own and self.reweight
                if optimize or not anew:
                    options = replace(options, edge_weights=ForestWeights(parents.state.rho, optimize and anew))
        return self._run(method, batch, parents, options)

    def _run(self, method: Approximation[Any], batch: Batch, parents: Estimates | None, options: Options) -> Estimates:
        """Solve a batch here, or in blocks wherever the executor has its workers."""
        if self.executor is None:
            progress = self.progress if method is self.method else None
            return method(batch, start=parents, options=options, progress=progress)
        alone = options.with_changes({"threads": 1})
        blocks = lane_blocks(batch.num_lanes, 1, BLOCK)
        items = [
            (method.name, batch.take(block), parents and parents.take(block), _options_of(alone, block))
            for block in blocks
        ]
        first, *others = map_on(self.executor, options.num_threads, _solve_block, items)
        return first.join(others)

    def _record(self, *choices: Choice) -> None:
        """Add a step: the sums over the branches, never looser than before."""
        estimates = self.solved[self.method.name]
        lower, upper, log_z = (log_sum_exp(values) for values in (estimates.lower, estimates.upper, estimates.log_z))
        rounding = 4 * EPS * (len(estimates) + abs(log_z) if math.isfinite(log_z) else 0.0)
        before = self.steps[-1] if self.steps else None
        lower = max(lower - rounding, before.lower if before else -math.inf)
        upper = min(upper + rounding, before.upper if before else math.inf)
        chosen = [v for choice in choices for v in choice.variables]
        one = choices[0] if len({choice.variables for choice in choices}) == 1 else None
        clamped = dict.fromkeys(
            chosen if one and one.selector == "optimal" else [*(before.variables if before else ()), *chosen]
        )
        self.steps.append(
            Step(
                variable=one.variables[-1] if one and one.variables else None,
                variables=tuple(clamped),
                selector=choices[0].selector if one or len({c.selector for c in choices}) == 1 else "several",
                score=one.score if one else math.nan,
                log_z={"lower": lower, "upper": upper}.get(estimates.bound or "", log_z),
                lower=lower,
                upper=upper,
                num_branches=len(estimates),
                seconds=time.perf_counter() - self.began,
                converged=bool(estimates.converged.all()),
                note="; ".join(dict.fromkeys(choice.note for choice in choices if choice.note)),
            )
        )


def _end(estimates: Estimates) -> Floats:
    """What a criterion looks at: the bound, or the value where there is none."""
    return (
        estimates.upper
        if estimates.method == "trw"
        else estimates.lower
        if estimates.method == "mean_field"
        else estimates.value
    )


def _solve_block(name: str, batch: Batch, parents: Estimates | None, options: Options) -> Estimates:
    """What an executor is given to do."""
    return METHODS[name](batch, start=parents, options=options)


def _options_of(options: Options, block: Integers) -> Options:
    """Options for a block of lanes: edge weights of lanes' own are cut down to theirs."""
    weights = getattr(options, "edge_weights", None)
    return (
        options.with_changes({"edge_weights": weights.take(block)}) if isinstance(weights, ForestWeights) else options
    )
