"""Simplified: the reduced model, what the presolve did, and the postsolve."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from clampz._kernels.presolve import pools as state
from clampz._kernels.presolve.pools import Pools
from clampz.display.formatting import counted
from clampz.display.html_repr import HasHtml, HtmlCard
from clampz.errors import EvidenceError, OptionError
from clampz.model import Model
from clampz.model.checks import as_floats
from clampz.model.tables import read_only
from clampz.model.variables import Variable, as_indices
from clampz.numerics import EPS, Floats, Integers
from clampz.presolve.infeasibility import explain_infeasibility
from clampz.presolve.postsolve import Postsolve, Scope
from clampz.presolve.reduced import ReducedModel
from clampz.runtime.budget import UNLIMITED, Budget

Operation = Literal["sum", "max"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Simplified(HasHtml):
    """The reduced model that `simplify` has made, what it did, and the postsolve.

    Attributes
    ----------
    original, model
        The model as it was, and the reduced one: `original` itself where nothing could be done.
    operation
        What stays the same: "sum" log Z, "max" the largest score.
    error
        log Z (or the maximum) of the reduced model is that of the original up to this: rounding, and entries that are
        only nearly equal.  -inf is -inf exactly.
    variables, states_left
        The original variables and states that those of the reduced model are, end to end.
    words
        What was done, a phrase for each rule.
    infeasibility
        Where Z = 0 was found: which factors contradict each other; else empty.
    is_complete
        Whether the rules came to their end; False where the budget was over first: another run may get further.
    """

    original: Model
    model: Model
    operation: Operation
    error: float
    variables: Integers
    states_left: Integers
    words: tuple[str, ...] = ()
    infeasibility: str = ""
    is_complete: bool = True
    _postsolve: Postsolve | None = field(default=None)

    @property
    def is_trivial(self) -> bool:
        """Whether the presolve changed nothing."""
        return self._postsolve is None

    def bounds(self, lower: float, upper: float) -> tuple[float, float]:
        """Return bounds on the original's log Z (or maximum) from bounds on the reduced model's."""
        if self.infeasibility:
            return -math.inf, -math.inf
        return _below(lower - self.error, lower, self.error), -_below(-upper - self.error, upper, self.error)

    @property
    def scopes(self) -> Sequence[Scope]:
        """List the reduced scopes whose joint beliefs `factor_marginals` asks for, beyond the reduced model's tables.
        They belong to factors that were split up. Marginals of variables need none."""
        return self._postsolve.scopes if self._postsolve is not None else ()

    def marginals(self, beliefs: Floats, budget: Budget = UNLIMITED, *, known: bool = False) -> Floats:
        """Compute the marginals of all variables of the original, laid out as `original.unary.flat`. `beliefs` are the
        marginals of the reduced model's variables, edges and larger factors, end to end. Raises Cancelled where the
        budget is over first. A presolve for log Z alone has lost some marginals: with `known` these are nan."""
        if self._postsolve is None:
            return self._beliefs(beliefs)[: len(self.original.unary.flat)]
        return self._checked().marginals(self._beliefs(beliefs), budget, known)

    def factor_marginals(
        self, beliefs: Floats, joint: Callable[[Scope], Floats], budget: Budget = UNLIMITED
    ) -> tuple[Floats, Floats]:
        """The marginals of all edges and of all larger factors, laid out as `original.pairwise.flat` and
        `original.factors.flat`. `joint` is asked for the joint belief of each of `scopes`, a table with an axis per
        variable."""
        num_pairs = len(self.original.pairwise.flat)
        if self._postsolve is None:
            flat = self._beliefs(beliefs)[len(self.original.unary.flat) :]
        else:
            flat = self._checked().factor_marginals(self._beliefs(beliefs), joint, budget)
        return flat[:num_pairs], flat[num_pairs:]

    def joint_scope(self, variables: Sequence[Variable]) -> Scope:
        """Return the reduced variables from whose joint belief that of some original variables follows."""
        scope = self.original.variable_indices(variables)
        return tuple(scope) if self._postsolve is None else self._checked().joint_scope(scope)

    def joint(self, variables: Sequence[Variable], belief: Floats) -> Floats:
        """Compute the joint marginal of original variables, an axis for each, from the joint belief of
        `joint_scope(variables)`."""
        scope = self.original.variable_indices(variables)
        return belief if self._postsolve is None else self._checked().joint(scope, belief)

    def states(
        self, x: ArrayLike, rng: np.random.Generator | int | None = None, budget: Budget = UNLIMITED
    ) -> Integers:
        """Extend configurations (N, k) of the reduced model to whole ones (N, n): eliminated states are drawn, or for a
        maximum the best."""
        rest = as_indices(x).astype(np.int64)
        if rest.ndim != 2 or rest.shape[1] != self.model.num_variables:
            raise EvidenceError(
                f"configurations: expected shape (N, {self.model.num_variables}), a state for each variable of the "
                f"rest, found {rest.shape}"
            )
        if self._postsolve is None:
            return rest
        return self._checked().states(rest, np.random.default_rng(rng), self.operation == "max", budget)

    def _beliefs(self, beliefs: Floats) -> Floats:
        """Check marginals of the reduced model: an entry for each of its table entries, or of its unary ones alone."""
        found = as_floats(beliefs, "beliefs")
        tables = self.model.unary, self.model.pairwise, self.model.factors
        sizes = np.cumsum([len(each.flat) for each in tables])
        if found.ndim != 1 or len(found) not in sizes:
            raise OptionError(
                f"beliefs: expected shape ({sizes[-1]},), marginals of the rest laid out as its tables, found "
                f"{found.shape}"
            )
        return found

    def _checked(self) -> Postsolve:
        assert self._postsolve is not None
        if self.infeasibility:
            raise OptionError(f"Z = 0, so there are neither marginals nor states: {self.infeasibility}")
        return self._postsolve

    def _card(self) -> HtmlCard:
        """Make a card of what was removed."""
        before, after = self.original, self.model
        tables = (("variables", "num_variables"), ("edges", "num_edges"))
        facts = [(what, f"{getattr(before, name):,} → {getattr(after, name):,}") for what, name in tables]
        if before.factors or after.factors:
            facts.append(("larger factors", f"{len(before.factors):,} → {len(after.factors):,}"))
        what = "the largest score" if self.operation == "max" else "log Z"
        return HtmlCard(
            title="Simplified",
            facts=[
                *facts,
                ("done", "; ".join(self.words) or "nothing to simplify"),
                ("the same", f"{what}, up to {self.error:.2g}"),
                *([("infeasible", self.infeasibility)] if self.infeasibility else []),
            ],
        )

    def __repr__(self) -> str:
        done = "; ".join(self.words) or "nothing to simplify"
        return f"Simplified({self.original!r} to {self.model!r}: {done})"


def postsolve(found: Simplified) -> Postsolve:
    """Return the postsolve of a model that the presolve has changed."""
    return found._checked()


def unchanged(model: Model, operation: Operation, *, is_complete: bool = True) -> Simplified:
    """Wrap a model that the presolve left as it is; `is_complete` is False where there was no time for it."""
    n = model.num_variables
    states = np.arange(len(model.unary.flat)) - np.repeat(model.unary.start[:-1], model.num_states)
    return Simplified(
        original=model,
        model=model,
        operation=operation,
        error=0.0,
        variables=read_only(np.arange(n)),
        states_left=read_only(states),
        is_complete=is_complete,
    )


def simplified_by(
    model: Model, operation: Operation, pools: Pools, left: ReducedModel, *, is_complete: bool
) -> Simplified:
    """Wrap a model and the reduced model that the rules left of it."""
    return Simplified(
        original=model,
        model=left.model,
        operation=operation,
        error=float(pools.total[state.ERROR]) + 2 * EPS * abs(left.model.constant),
        variables=left.variables,
        states_left=left.states,
        words=_rules_in_words(pools),
        infeasibility=explain_infeasibility(model, pools),
        is_complete=is_complete,
        _postsolve=Postsolve(model, pools, left),
    )


def _rules_in_words(pools: Pools) -> tuple[str, ...]:
    """Say how often each rule was applied."""
    fates = np.bincount(pools.variables["fate"], minlength=4)
    count = pools.count
    if count[state.IMPOSSIBLE] >= 0:
        return ("found to be impossible: Z = 0",)
    summed = "maximised over" if count[state.MAXIMUM] else "summed out"
    kinds = [
        (count[state.STATES_GONE], "state", "without support removed"),
        (fates[state.FIXED], "variable", "with one state left"),
        (fates[state.EQUAL], "variable", "determined by others"),
        (count[state.AXES_GONE], "axis", "split off a factor"),
        (count[state.CONSTANTS], "constant factor", "removed"),
        (count[state.CONTAINED], "factor", "multiplied into larger ones"),
        (fates[state.SUMMED], "variable", summed),
    ]
    plural = {"axis": "axes"}
    return tuple(f"{counted(int(k), what, plural.get(what))} {done}" for k, what, done in kinds if k)


def _below(value: float, around: float, error: float) -> float:
    """Lower a bound slightly, where the subtraction may have been rounded up."""
    return value - EPS * (abs(around) + error) if error and math.isfinite(value) else value
