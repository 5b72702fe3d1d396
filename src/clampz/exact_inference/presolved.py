"""What is left to sum of the lanes of a batch when all that they share has been presolved, and the postsolve."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clampz.exact_inference.lanes import ExactOptions, run_exact
from clampz.exact_inference.scopes import too_large
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.factors import Factor, FactorTables
from clampz.model.results import Estimates
from clampz.numerics import EPS, Floats, largest_size
from clampz.presolve.pools import num_bytes
from clampz.presolve.postsolve import Scope
from clampz.presolve.simplified import Simplified, unchanged
from clampz.presolve.simplify import simplify, simplify_once
from clampz.runtime.budget import Budget
from clampz.runtime.options import fits_into


@dataclass(frozen=True, eq=False)
class PresolvedBatch:
    """Lanes of a simpler model.

    Attributes
    ----------
    original, batch
        The lanes as they were, and those of what is left.
    simplified
        What became of the model that they share; variables whose potentials are not the same in all lanes stay.
    error
        (B,) what log Z of a lane may be off by.
    """

    original: Batch
    batch: Batch
    simplified: Simplified
    error: Floats

    @classmethod
    def of(
        cls, batch: Batch, *, marginals: bool, memory: int | str | None = None, budget: Budget | None = None
    ) -> "PresolvedBatch":
        """Presolve what the lanes share, within `memory` bytes; the lanes stay as they are where that is too little."""
        model, start = batch.model, batch.model.unary.start
        same = (batch.unary == batch.unary[:, :1]).all(axis=1)
        stays = np.logical_or.reduceat(~same, start[:-1]) if model.num_variables else np.zeros(0, dtype=np.bool_)
        rows = np.repeat(stays, model.num_states)
        shared = np.where(rows, 0.0, batch.unary[:, 0])
        base = model
        if not np.array_equal(shared, model.unary.flat):
            base = Model.from_contents(model.contents._replace(unary=shared))
        kept = np.flatnonzero(stays).tolist()
        if kept:
            simplified = simplify(base, kept, marginals=marginals, memory=memory, budget=budget)
        else:
            simplified = simplify_once(base, marginals=marginals, memory=memory, budget=budget)
        rest = simplified.model
        left = np.repeat(start[simplified.variables], rest.num_states) + simplified.states_left
        unary = rest.unary.flat[:, None] + np.where(rows[left, None], batch.unary[left], 0.0)
        if largest_size(unary) > LARGEST_POTENTIAL:  # models have no larger ones: they are summed as they are
            return cls(batch, batch, unchanged(model, "sum"), np.zeros(batch.num_lanes))
        error = EPS * np.abs(np.where(np.isfinite(unary) & rows[left, None], unary, 0.0)).sum(axis=0)
        return cls(batch, Batch(rest, unary), simplified, error + simplified.error)

    def marginals(self, found: Estimates, lane: int, *, known: bool = False) -> Floats:
        """(S,) those of the original's variables in a lane, from those of the rest; or all that are known."""
        return self.simplified.marginals(_beliefs(found, lane), known=known)

    def tables(self, found: Estimates, lane: int, memory: int | str | None = None) -> Floats:
        """Marginals of the original's edges and then of its larger factors in a lane, from those of the rest; what fell
        apart in presolve is summed once more, held together.  TooWideError where that does not fit."""
        simplified, again = self.simplified, found[lane]
        if simplified.scopes:
            held = holding(simplified.model, simplified.scopes)
            again = run_exact(Batch(held, self.batch.unary[:, [lane]]), ExactOptions(memory=memory))[0]
        return np.concatenate(simplified.factor_marginals(_beliefs(found, lane), again.marginal))


def _beliefs(found: Estimates, lane: int) -> Floats:
    state = found.state
    return np.concatenate([found.marginals_flat[:, lane], state.pairwise(lane), state.factors(lane)])


def holding(model: Model, scopes: Sequence[Scope]) -> Model:
    """Add tables that say nothing over some scopes to a model."""
    contents, have = model.contents, {tuple(edge) for edge in model.edges.tolist()}
    pairs = [scope for scope in scopes if len(scope) == 2 and scope not in have]
    num_states = contents.num_states
    factors = [Factor(scope, np.zeros(num_states[list(scope)])) for scope in scopes if len(scope) > 2]
    return Model.from_contents(
        contents._replace(
            edges=np.concatenate([contents.edges, np.array(pairs, dtype=np.int64).reshape(-1, 2)]),
            pairwise=np.concatenate([contents.pairwise, *(np.zeros(num_states[list(p)].prod()) for p in pairs)]),
            factors=FactorTables.joined(num_states, [contents.factors, FactorTables.of(num_states, factors)]),
        )
    )


def check_room(batch: Batch, memory: int | str | None) -> None:
    """Refuse, before anything is laid out, what can neither be summed as it is nor simplified in this memory."""
    too_wide = None if fits_into(memory, num_bytes(batch.model)) else too_large(batch, memory)
    if too_wide is not None:
        raise too_wide
