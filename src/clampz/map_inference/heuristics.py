"""An upper bound on the largest score by mini-buckets at zero weights, which a search takes as its heuristic.

Shifts come from upper bounds on log Z at inverse temperatures beta: log Z(beta) / beta falls to the maximum as beta
grows, and the shifts of such a bound, divided by beta, are shifts for the maximum.
"""

import math
from dataclasses import dataclass

import numpy as np

from clampz._kernels.mini_buckets import maxima
from clampz._kernels.mini_buckets.layout import AS_THEY_ARE, DONE, MATCHED, STOPPED, ZEROS, Pass
from clampz.approximations.mini_buckets.clique_tables import Tables
from clampz.approximations.mini_buckets.descent import SECONDS_PER_ENTRY, BoundState, optimise
from clampz.approximations.mini_buckets.structure import Structure
from clampz.model import Model
from clampz.model.tables import has_hard_zeros
from clampz.numerics import EPS, Floats, largest_size
from clampz.runtime.budget import Budget, Cancelled, run_cancellable

# What beta makes of the mean range of a table, one after another, and evaluations at each.
STRENGTHS, EVALUATIONS = (2.0, 8.0, 32.0, 128.0), 20
# Seconds that tables take for each entry where no bucket is split, and else before any evaluation.
ELIMINATION_SECONDS = 1e-7
# The share of the time left that all these may take.
OPTIMISING_SHARE = 0.5
# Potentials times beta are no larger.
LARGEST_SCALED = 1e30


@dataclass(frozen=True, eq=False)
class Heuristic:
    """A bound on the largest score, and on what can become of every choice of the variables eliminated last.

    Attributes
    ----------
    value, error
        The bound but for the constant, and what rounding may have changed, in it or in any that follows from it.
    upper
        Certified: no configuration scores more; -inf where none is possible.
    is_exact
        No bucket is split: the bound is the maximum but for rounding.
    """

    tables: Tables
    work: Pass
    value: float
    error: float
    upper: float

    @property
    def is_exact(self) -> bool:
        return self.tables.structure.num_cliques == self.tables.model.num_variables


def heuristic(model: Model, budget: Budget, share: float, structure: Structure) -> Heuristic:
    """Return the best bound that a structure gives in a share of the usual evaluations.

    Cancelled where the budget ends before there is one.
    """
    tables = Tables.of(model, structure, budget)
    main = np.full(model.num_variables, -1, dtype=np.int64)
    theta, size = tables.lane(model.unary.flat, main, budget)
    num_shifts, work = structure.num_shifted, tables.new_pass()
    shifts = best_shifts = np.zeros(num_shifts)
    best = math.inf
    if structure.num_cliques > model.num_variables:
        optimising = budget.share(OPTIMISING_SHARE)
        x, matching, before = np.zeros(num_shifts + structure.num_cliques), MATCHED, 1.0
        for beta in _betas(model):
            x[:num_shifts] *= beta / before
            state = BoundState(tables, "upper", beta * theta, beta * size, x, main, matching, math.inf)
            optimise(state, max(1, round(share * EVALUATIONS)), optimising)
            theta[state.theta == -np.inf] = -np.inf
            x, before, shifts = state.x, beta, state.x[:num_shifts] / beta
            matching = ZEROS if has_hard_zeros(theta) else AS_THEY_ARE
            found = _bound(tables, theta, size, shifts, work, budget)
            if found.upper < best:
                best, best_shifts = found.upper, shifts
            if optimising.must_stop() or best == -math.inf:
                break
    return _bound(tables, theta, size, best_shifts, work, budget)


def bound_seconds(structure: Structure) -> float:
    """Return the seconds that the bound of a structure takes, about."""
    num_passes = len(STRENGTHS) * EVALUATIONS
    return structure.num_entries * (ELIMINATION_SECONDS + SECONDS_PER_ENTRY * num_passes)


def _bound(tables: Tables, theta: Floats, size: Floats, shifts: Floats, work: Pass, budget: Budget) -> Heuristic:
    expected = SECONDS_PER_ENTRY * len(theta)
    arguments = (tables.layout, theta, size, tables.roundings, shifts, work)
    status, value, error = run_cancellable(budget, expected, maxima.fill_maxima, *arguments)
    if status == STOPPED:
        raise Cancelled
    if status != DONE:
        return Heuristic(tables, work, value, error, -math.inf)
    if not math.isfinite(error):
        return Heuristic(tables, work, value, error, math.inf)
    upper = value + tables.model.constant
    return Heuristic(tables, work, value, error, upper + error + 2 * EPS * (abs(upper) + abs(tables.model.constant)))


def _betas(model: Model) -> list[float]:
    """Return inverse temperatures from weak to strong, measured by the mean range of the tables."""
    ranges = []
    for each in (model.unary, model.pairwise, model.factors):
        if len(each.flat):
            finite = np.where(each.flat > -np.inf, each.flat, np.nan)
            with np.errstate(invalid="ignore"):
                found = np.fmax.reduceat(finite, each.start[:-1]) - np.fmin.reduceat(finite, each.start[:-1])
            ranges.append(found[found > 0])
    some = np.concatenate([np.empty(0), *ranges])
    mean = float(some.mean()) if len(some) else 1.0
    most = LARGEST_SCALED / max(*(largest_size(t.flat) for t in (model.unary, model.pairwise, model.factors)), 1e-300)
    return sorted({min(strength / mean, most) for strength in STRENGTHS})
