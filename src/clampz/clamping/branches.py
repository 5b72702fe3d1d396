"""Branches of a model, with variables fixed to each joint state, and `Clamped`, the result of summing over them.

    log Z = log sum over branches of exp(log Z of the branch),

exactly; with TRW sub-estimates the sum can only fall (Theorem 2 of [WD16]), with mean field only rise (Theorem 4), so
each stays a bound and tightens. A branch is a lane: one call solves all of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from clampz.display.formatting import DIGITS, KINDS, Bound, counted, name_of, proven, round_outward, title, valued
from clampz.display.html_repr import MOST_ROWS, HasHtml, HtmlCard
from clampz.display.plot_hooks import Drawable
from clampz.errors import EvidenceError, OptionError
from clampz.model import Model, Variable
from clampz.model.batch import Batch
from clampz.model.conditioning import keep_only
from clampz.model.factors import FactorTables
from clampz.model.frames import named_variables, records_frame
from clampz.model.lane_memory import bytes_of_lanes, lanes_that_fit
from clampz.model.marginals import HasMarginals
from clampz.model.model_checks import check_model
from clampz.model.results import Estimates
from clampz.model.tables import PairTables, UnaryTables, take_lanes
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import StoppedBy
from clampz.runtime.options import Options, memory_allowed


def branches(model: Model, variables: Sequence[Variable]) -> Batch:
    """Fix `variables` to each joint state: one lane per state, all on one topology.

    The state of the last variable changes fastest.  log Z(model) = logsumexp over lanes, exactly; with TRW
    sub-estimates the sum can only fall (Theorem 2 of [WD16]), with mean field only rise (Theorem 4), so each stays a
    bound and tightens.

    Parameters
    ----------
    model
        What to clamp.
    variables
        Which ones, by index or name, each once.

    Returns
    -------
    Batch
        A lane for each joint state of the variables.

    Raises
    ------
    EvidenceError
        Where a variable is unknown, or there twice.
    OptionError
        Where the lanes do not fit into memory.

    Examples
    --------
    >>> branches(Model.from_binary([0.0, 0.0], [1.0], [(0, 1)]), [0]).num_lanes
    2
    """
    chosen = checked_variables(model, variables)
    check_memory(model, math.prod(int(model.num_states[i]) for i in chosen), f"{len(chosen)} clamped variables")
    batch = Batch.of(model)
    for i in chosen:
        batch, _ = split(batch, np.full(batch.num_lanes, i))
    return batch


def split(batch: Batch, variables: Integers) -> tuple[Batch, Integers]:
    """Clamp lane b at `variables[b]` (-1: none) to each possible state; return the new lanes, and the parent of each.

    The lanes of one parent follow each other, in the order of its states.
    """
    start, states = batch.model.unary.start, []
    for b, i in enumerate(variables):
        left = np.flatnonzero(batch.possible[start[i] : start[i + 1], b]) if i >= 0 else np.empty(0, dtype=np.int64)
        states.append(left if left.size else np.zeros(1, dtype=np.int64))
    parent = np.repeat(np.arange(len(states)), [len(left) for left in states])
    unary = take_lanes(batch.unary, parent)
    for lane, (i, state) in enumerate(zip(variables[parent], np.concatenate(states), strict=True)):
        if i >= 0:
            keep_only(unary[:, lane], start, i, [state])
    return Batch(batch.model, unary), parent


def checked_variables(model: Model, variables: Sequence[Variable]) -> list[int]:
    """Return the indices of variables to clamp, refused where one is unknown or there twice."""
    check_model(model)
    chosen = model.variable_indices(variables)
    seen: set[int] = set()
    for i in chosen:
        if i in seen:
            raise EvidenceError(f"variable {repr(model.names[i]) if model.names else i} is to be clamped twice")
        seen.add(i)
    return chosen


def clamps_that_fit(model: Model, most: int, *, tries: int = 1, limit: int | str | None = None) -> int:
    """Return how many variables can be clamped in memory, whichever they are; -1 if the model itself does not fit."""
    room = lanes_that_fit(model, memory_allowed(limit)) // tries
    branches = np.cumprod(np.append(1.0, np.sort(model.num_states)[::-1][:most]))
    return int(np.count_nonzero(branches <= room)) - 1


def check_memory(model: Model, num_lanes: int, what: str, limit: int | str | None = None) -> None:
    """Refuse more lanes than fit in memory, before any work; `what` says where they come from."""
    needed, allowed = bytes_of_lanes(model, num_lanes), memory_allowed(limit)
    if needed > allowed:
        raise OptionError(
            f"{what} make {num_lanes:,} branches, which need about {needed:,} bytes, and {allowed:,} are allowed: "
            "clamp fewer variables, or condition on some of them instead"
        )


@dataclass(frozen=True, kw_only=True)
class ClampStep:
    """One step of clamping: the variable, the selector that chose it, and the sum over the branches after it.

    Attributes
    ----------
    variable, variables
        The new one (None where branches chose differently), and all that are clamped by now.
    selector, score
        Who chose it, and the score it had.
    log_z, lower, upper
        Of the sum over the branches.  A bound in `log_z` is never looser than before.
    raw_log_z
        The sum over the branches as it is, of bounds of mean field, TRW and mini-buckets and of values of Bethe.
    num_branches, converged, seconds
        How many branches there are, whether all of them converged, and what the step took, choice included.
    agree
        For pseudo-greedy, the heuristics that chose the same variable.
    """

    variable: int | None
    variables: tuple[int, ...]
    selector: str
    score: float
    log_z: float
    raw_log_z: float
    lower: float
    upper: float
    num_branches: int
    seconds: float
    converged: bool
    note: str = ""
    agree: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Clamped(HasMarginals, Drawable, HasHtml):
    """The sum over the branches of clamped variables: an estimate of log Z, with the steps that led to it.

    `plot()` draws log Z against the number of clamps, as `plot_clamped` does for several results.

    Attributes
    ----------
    log_z, bound, lower, upper
        Sums over the branches, and what they are.
    variables
        The variables clamped, in order; with `per_branch` those of any branch, in the order in which they first came
        up.
    steps
        For 0, 1, ... clamps: what was chosen, by which selector, and what it brought.
    branches
        The estimates of the branches, one per lane.
    batch
        The branches themselves.
    select, options
        The selector asked for ("given" for the caller's variables), and the method's options.
    stopped_by
        "tol" if all variables that were asked for are clamped; else what stopped the next step, which was not made.
    """

    method: str
    model: Model
    bound: Bound | None
    variables: tuple[int, ...]
    steps: tuple[ClampStep, ...]
    branches: Estimates
    batch: Batch
    select: str
    options: Options
    stopped_by: StoppedBy = "tol"

    @property
    def log_z(self) -> float:
        return self.steps[-1].log_z

    @property
    def lower(self) -> float:
        return self.steps[-1].lower

    @property
    def upper(self) -> float:
        return self.steps[-1].upper

    @property
    def converged(self) -> bool:
        """Whether every branch has converged."""
        return bool(self.branches.converged.all())

    @property
    def solved(self) -> Model:
        """The model that was clamped, with its evidence in it."""
        return self.model

    @cached_property
    def weights(self) -> Floats:
        """(branches,) the share of each branch in the sum: its estimated probability."""
        return branch_weights(self.branches)

    @cached_property
    def marginals(self) -> UnaryTables:
        """`marginals[i]`: the branches' marginals mixed with their weights; for a clamped variable that is its states'
        share of Z.  Branches with Z = 0 have none and count for nothing."""
        some = self.weights > 0
        mixed = self.branches.marginals_flat[:, some] @ self.weights[some]
        return self.model.unary.with_flat(mixed)

    @cached_property
    def pairwise_marginals(self) -> PairTables:
        """`pairwise_marginals[i, j][a, b]`: the branches' mixed with their weights, computed when first asked for."""
        return self.model.pairwise.with_flat(self._mixed(self.branches.state.pairwise))

    @cached_property
    def factor_marginals(self) -> FactorTables:
        """`factor_marginals[f].table`: the branches' tables mixed with their weights, computed when first asked for."""
        return self.model.factors.with_flat(self._mixed(self.branches.state.factors))

    def _card(self) -> HtmlCard:
        first = max(0, len(self.steps) - MOST_ROWS)
        rows = [
            (
                str(k),
                "" if step.variable is None else name_of(self.model.names, step.variable),
                round_outward(step.log_z, self.bound, DIGITS),
                f"{step.num_branches:,}",
                f"{step.seconds:.2g}",
            )
            for k, step in enumerate(self.steps)
            if k >= first
        ]
        return HtmlCard(
            title=f"Clamped: {title(self.method)}",
            facts=[
                ("log Z", valued(self.log_z, self.bound)),
                ("proven", proven(self.lower, self.upper)),
                ("clamped", f"{counted(len(self.variables), 'variable')}, by {self.select}"),
            ],
            columns=("clamps", "variable", "log Z", "branches", "seconds"),
            rows=rows,
            more=f"{counted(first, 'step')} before these" if first else "",
        )

    def to_frame(self, of: str = "steps") -> Any:
        """A pandas DataFrame of the "steps", a row for 0, 1, ... clamps, or of marginals, of "variables" or "edges"."""
        if of != "steps":
            return super().to_frame(of)
        frame = records_frame([each.name for each in fields(ClampStep) if each.name != "variables"], self.steps)
        frame["variable"] = named_variables(self.model, [step.variable for step in self.steps])
        return frame.rename_axis("clamps")

    def _mixed(self, of_branch: Callable[[int], Floats]) -> Floats:
        """Return the tables of the branches mixed with their weights."""
        some = np.flatnonzero(self.weights > 0).tolist()
        mixed: Floats = self.weights[some[0]] * of_branch(some[0])
        for b in some[1:]:
            mixed += self.weights[b] * of_branch(b)
        return mixed

    def __repr__(self) -> str:
        kind = KINDS[self.bound] if self.bound else "no bound"
        done = "all converged" if self.converged else f"{int(np.count_nonzero(~self.branches.converged))} not converged"
        first = self.steps[0].log_z
        before = "" if math.isnan(first) else f", {first:.10g} before"
        stop = "" if self.stopped_by == "tol" else f"; stopped by {self.stopped_by}"
        return (
            f"Clamped({self.method}: log Z = {self.log_z:.10g} ({kind}){before}; "
            f"{counted(len(self.variables), 'variable')} clamped, "
            f"{counted(len(self.branches), 'branch', 'branches')}, {done}{stop})"
        )


def branch_weights(estimates: Estimates) -> Floats:
    """Return (B,) the share of each branch in the sum over branches; even shares if Z = 0."""
    possible = estimates.log_z > -np.inf
    if not possible.any():
        return np.full(len(estimates), 1 / len(estimates))
    shares = np.zeros(len(estimates))
    weights = np.exp(estimates.log_z[possible] - estimates.log_z.max())
    shares[possible] = weights / weights.sum()
    return shares
