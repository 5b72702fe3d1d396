"""`Clamping`: clamp variables step by step, approximate every branch, and sum their partition functions.

A step chooses a variable for every *group* of branches: for all of them together (one shared sequence, the paper's way)
or for each on its own.  Selectors that try candidates solve those of all groups as one batch, and the winners' branches
are solved with that.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from clampz.approximations.registry import METHODS
from clampz.approximations.trw import TRWOptions
from clampz.clamping.branches import Clamped, ClampStep
from clampz.clamping.candidates import CRITERIA, Candidate, CandidateBatch, VariableSet, criterion_values
from clampz.clamping.memo import STOPPED, Memo
from clampz.clamping.selectors import choose, scores_of_all, selectors, singleton_entropies
from clampz.clamping.selectors.scoring import TRE
from clampz.method import ForestWeights, Method
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.numerics import EPS, Integers, log_sum_exp
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled, Progress, StoppedBy
from clampz.runtime.options import Options
from clampz.runtime.workers import AnyExecutor, Crew, Job, lane_blocks, run_jobs

# Lanes in a block that is handed to an executor.
BLOCK = 16


@dataclass(kw_only=True, eq=False)
class Clamping:
    """The state of a clamping: the branches so far, each method's estimates of them, and the steps that led there.

    The fields are arguments of `clamp`.  All steps share one budget; a step that is cancelled is undone, so that the
    state is that of the last whole step.  With a memo, branches are in the order of their variables, so that a set has
    the same branches in whatever order it was clamped.
    """

    model: Model
    method: Method[Any]
    options: Options
    criterion: str
    budget: Budget
    reweight: bool | None = None
    executor: AnyExecutor | None = None
    progress: Callable[[Progress], object] | None = None
    warm_starts: bool = True
    every_step: bool = True
    memo: Memo | None = None
    start: InitVar[Estimate | None] = None

    def __post_init__(self, start: Estimate | None) -> None:
        self.began = 0.0  # seconds of the budget at which the step began
        self.stopped_by: StoppedBy | None = None
        self.steps: list[ClampStep] = []
        one = np.zeros(1, dtype=np.int64)
        self.root = self.at = CandidateBatch(Batch.of(self.model), one, one, [()])
        self.solved: dict[str, Estimates] = {}
        self.parents: dict[str, Estimates] = {}  # estimates of the branches' parents by methods that guide the choice
        own = self.method.name
        if start is not None:
            weights = None
            if isinstance(self.options, TRWOptions):
                weights = ForestWeights.of(start.state, self.options.is_optimized)
                weights = weights and weights.take(np.array([start.lane]))
            options = self._options(own).in_branches()
            self.solved[own] = self._run(self.method, self.at.batch, options, start, weights)
        elif self.every_step:
            self._estimates(own)
        self.solved_root = self.solved
        self._record(Candidate((), ""))

    def clamp_next(self, select: str, fixed: int | None, per_branch: bool) -> None:
        """Clamp one more variable in every group of branches."""
        with self._step():
            # guides of the step before, which may be asked for again
            self.solved |= {name: self._solve(name, self.at, parents) for name, parents in self.parents.items()}
            every = np.arange(self.at.batch.num_lanes)
            groups = np.split(every, len(every)) if per_branch else [every]
            choices = [
                [Candidate((fixed,), "given")] if fixed is not None else self._choices(select, group)
                for group in groups
            ]
            self._branch(groups, choices)

    def clamp_best_set(self, size: int) -> None:
        """Clamp the best of all sets of `size` variables, from the start."""
        with self._step():
            self.at, self.solved = self.root, self.solved_root
            free = np.flatnonzero(self.at.batch.num_possible[:, 0] > 1)
            chosen = combinations(free, min(size, len(free)))
            sets = [Candidate(tuple(map(int, some)), "optimal") for some in chosen]
            self._branch([np.zeros(1, dtype=np.int64)], [sets])

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Make a step, or restore the state before it where it is cancelled."""
        self.began = self.budget.seconds
        before = self.at, self.solved, self.parents
        try:
            yield
        except Cancelled:
            self.at, self.solved, self.parents = before
            self.stopped()

    def stopped(self) -> bool:
        """Return whether a limit, the caller or Ctrl-C has ended the run: then no further variable is clamped."""
        if self.stopped_by is None and self.budget.must_stop():
            self.stopped_by = self.budget.stopped_by
        return self.stopped_by is not None

    def result(self, select: str) -> Clamped:
        """Return the result; the method is run on the last branches if it has not been yet."""
        if self.method.name not in self.solved:
            self._estimates(self.method.name)
            self._record(*self.chosen, again=True)
        estimates = self.solved[self.method.name]
        return Clamped(
            method=self.method.name,
            model=self.model,
            bound=None if math.isnan(self.steps[-1].log_z) else estimates.bound,
            variables=self.steps[-1].variables,
            steps=tuple(self.steps),
            branches=estimates,
            batch=self.at.batch,
            select=select,
            options=self.options,
            stopped_by=self.stopped_by or "tol",
        )

    # -- choosing ------------------------------------------------------------------------------------------------------

    def _choices(self, select: str, group: Integers) -> list[Candidate]:
        """Return the candidates of a selector for a group of branches: one, or several to try."""
        free = (self.at.batch.num_possible[:, group] > 1).any(axis=1)
        if not free.any():
            return []
        if select == "greedy":
            return [Candidate((int(i),), "greedy") for i in np.flatnonzero(free)]
        names = list(selectors()) if select == "pseudo-greedy" else [select]
        if select == "pseudo-greedy" and self.model.pair_form is None:
            names = [name for name in names if "Cycles" not in name]  # defined for binary models only
        clamped = np.flatnonzero(~free).tolist()
        # TRW's entropies, averaged over the branches with TRW's weights, whichever method is being clamped
        needed = any(name.endswith(TRE) for name in names)
        entropies = singleton_entropies(self._estimates("trw").take(group)) if needed else None
        found: dict[int, Candidate] = {}
        values_of = scores_of_all(self.model, names, clamped=clamped, entropy=entropies, budget=self.budget)
        for name, values in values_of.items():
            entropy = entropies if name.endswith(TRE) else None
            variable, score, note = choose(self.model, values, clamped=clamped, entropy=entropy)
            choice = found.setdefault(variable, Candidate((variable,), name, score, note))
            if select == "pseudo-greedy":
                found[variable] = choice._replace(agree=(*choice.agree, name))
        return list(found.values())

    # -- branching -----------------------------------------------------------------------------------------------------

    def _branch(self, groups: list[Integers], choices: list[list[Candidate]]) -> None:
        """Split every group of branches at its best candidate.

        The branches of all candidates of all groups are one batch, a piece each.  Where a group has several candidates
        the batch is solved, and the best pieces stay.
        """
        pieces = [
            (group, choice)
            for group, some in zip(groups, choices, strict=True)
            for choice in (some or [Candidate((), "")])
        ]
        owner = np.repeat(np.arange(len(groups)), [max(1, len(some)) for some in choices])
        laid = self._stack([group for group, _ in pieces], [choice.variables for _, choice in pieces])
        tried: dict[str, Estimates] = {}
        winners = np.arange(len(pieces))
        if len(pieces) > len(groups):
            for name in CRITERIA[self.criterion]:
                parents = self._estimates(name).take(laid.origin) if self.warm_starts else None
                tried[name] = self._solve(name, laid, parents, self._reweights(name, trying=True))
            merits = laid.merits(self.criterion, tried)
            winners = np.array([np.flatnonzero(owner == g)[np.argmax(merits[owner == g])] for g in range(len(groups))])
        before = self.solved
        self.at, kept = laid.take(winners)
        self.solved = {name: estimates.take(kept) for name, estimates in tried.items()}
        own = self.method.name
        if own in self.solved:
            if self.warm_starts and self._reweights(own) and not self._reweights(own, trying=True):
                self.solved[own] = self._solve(own, self.at, self.solved[own], True)
        elif self.every_step:
            parents = before[own].take(self.at.origin) if self.warm_starts else None
            self.solved[own] = self._solve(own, self.at, parents, self._reweights(own))
        if self.warm_starts:
            self.parents = {name: before[name].take(self.at.origin) for name in before.keys() - self.solved.keys()}
        self._record(*(pieces[w][1] for w in winners))

    def _stack(self, groups: list[Integers], clamped: list[VariableSet]) -> CandidateBatch:
        """Return a piece for each group of branches with more variables clamped.

        With a memo, each piece is the whole model with these and all earlier variables clamped.
        """
        if self.memo is None:
            return CandidateBatch.stack(self.at.batch, groups, clamped)
        sets = [tuple(sorted({*self.at.sets[0], *variables})) for variables in clamped]
        return CandidateBatch.stack(self.root.batch, [np.zeros(1, dtype=np.int64)] * len(sets), sets)

    # -- solving -------------------------------------------------------------------------------------------------------

    def _estimates(self, name: str) -> Estimates:
        """Return a method's estimates of the branches so far, solved once."""
        if name not in self.solved:
            self.solved[name] = self._solve(name, self.at, None)
        return self.solved[name]

    def _reweights(self, name: str, *, trying: bool = False) -> bool:
        """Return whether a method chooses its edge weights anew in branches, or in those that are being tried.

        By default optimized weights are optimized further in branches that stay, where that takes no tables of their
        own.
        """
        if name != self.method.name or not isinstance(self.options, TRWOptions):
            return False
        if self.reweight is not None:
            return self.reweight
        return self.options.is_optimized and self.model.pair_form is not None and not trying

    def _solve(self, name: str, laid: CandidateBatch, parents: Estimates | None, reweight: bool = False) -> Estimates:
        """Return a method's estimates of branches, warm-started from those of their parents (one per lane), if any.

        Branches have their parents' edge weights unless these are to be chosen anew.
        """
        method = METHODS[name]
        options = self._options(name)
        if self.memo is not None:
            self.memo.set_options(name, options)
            return self.memo.estimates(
                name, laid.sets, laid.piece, lambda lanes: self._run(method, laid.batch.take(lanes), options)
            )
        if parents is None:
            return self._run(method, laid.batch, options)
        options = options.in_branches()
        weights = None
        if isinstance(options, TRWOptions) and (options.is_optimized or not reweight):
            weights = ForestWeights.of(parents.state, reweight)
        return self._run(method, laid.batch, options, parents, weights)

    def _options(self, name: str) -> Options:
        """Return the options of the method, or of one that guides the choice, for the time that is left."""
        options = self.options
        if name != self.method.name:
            known = self.memo.options(name) if self.memo is not None else None
            options = (known or METHODS[name].options_type()).with_changes({"threads": self.options.threads})
        return options.with_changes({"time": max(0.0, self.budget.left())})

    def _run(
        self,
        method: Method[Any],
        batch: Batch,
        options: Options,
        parents: Estimate | Estimates | None = None,
        weights: ForestWeights | None = None,
    ) -> Estimates:
        """Solve a batch in this process, or in blocks by the executor; raise Cancelled if it stops during a step."""
        found = None
        if self.executor is not None and not isinstance(parents, Estimate):
            found = self._run_by_executor(method, batch, options, parents, weights)
        if found is None:
            progress = self.progress if method is self.method else None
            found = method.solve(batch, options, parents, progress, weights=weights, within=self.budget)
        self.stopped_by = next((reason for reason in found.stopped_by if reason in STOPPED), None)
        if self.stopped() and self.steps and self.every_step:
            raise Cancelled
        return found

    def _run_by_executor(
        self,
        method: Method[Any],
        batch: Batch,
        options: Options,
        parents: Estimates | None,
        weights: ForestWeights | None,
    ) -> Estimates | None:
        """Solve a batch in blocks by the executor; None if the run is over before they come back."""
        alone = options.with_changes({"threads": 1})
        blocks = lane_blocks(batch.num_lanes, 1, BLOCK)
        with Crew(self.executor, options.num_threads) as crew:

            def submitted() -> Iterator[tuple[int, Job[Estimates]]]:
                for number, block in enumerate(blocks):
                    given = parents and parents.take(block), weights and weights.take(block)
                    work = method.name, batch.take(block), alone, *given
                    yield number, crew.submit(_solve_block, *work, local_args=(self.budget,))

            found = dict(run_jobs(submitted(), self.budget, math.inf))
        if len(found) < len(blocks):
            return None
        return found[0].join([found[number] for number in range(1, len(blocks))])

    def _record(self, *choices: Candidate, again: bool = False) -> None:
        """Add or replace the last step: sums over the branches, whose bounds are never looser than before."""
        if again:
            self.steps.pop()
        self.chosen = choices
        estimates = self.solved.get(self.method.name)
        lower, upper, log_z, raw = -math.inf, math.inf, math.nan, math.nan
        if estimates is not None:
            lower, upper, log_z, raw = (
                log_sum_exp(values)
                for values in (estimates.lower, estimates.upper, estimates.log_z, criterion_values(estimates))
            )
            size = sum(abs(each) for each in (lower, upper, log_z) if math.isfinite(each))
            rounding = 4 * EPS * (len(estimates) + size)
            lower, upper = lower - rounding, upper + rounding
        before = self.steps[-1] if self.steps else None
        if before is not None:
            lower, upper = max(lower, before.lower), min(upper, before.upper)
        if estimates is not None:
            log_z = {"lower": lower, "upper": upper}.get(estimates.bound or "", log_z)
        chosen = [v for choice in choices for v in choice.variables]
        one = choices[0] if len({choice.variables for choice in choices}) == 1 else None
        clamped = dict.fromkeys(
            chosen if one and one.selector == "optimal" else [*(before.variables if before else ()), *chosen]
        )
        self.steps.append(
            ClampStep(
                variable=one.variables[-1] if one and one.variables else None,
                variables=tuple(clamped),
                selector=choices[0].selector if one or len({c.selector for c in choices}) == 1 else "several",
                score=one.score if one else math.nan,
                log_z=log_z,
                raw_log_z=raw,
                lower=lower,
                upper=upper,
                num_branches=self.at.batch.num_lanes,
                seconds=self.budget.seconds - self.began,
                converged=estimates is not None and bool(estimates.converged.all()),
                note="; ".join(dict.fromkeys(choice.note for choice in choices if choice.note)),
                agree=one.agree if one else (),
            )
        )


def _solve_block(
    name: str,
    batch: Batch,
    options: Options,
    parents: Estimates | None,
    weights: ForestWeights | None,
    within: Budget = UNLIMITED,
) -> Estimates:
    """Solve a block of branches, in a worker of the executor."""
    return METHODS[name].solve(batch, options, parents, weights=weights, within=within)
