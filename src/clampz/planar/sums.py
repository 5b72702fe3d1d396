"""Planar sums: log Z of binary models on planar graphs, with a certified error, and marginals.

**What rounding may have done.**  Elimination gives L P L^T = A + E exactly, with a bound on every row of |E|
(`_kernels.planar_pairs`).  H = i A is Hermitian, and so is i E; if no singular value of A is below sigma > ||E||, then

    |log |det(A + E)| - log |det A||  =  |integral over t in [0, 1] of tr((H + t i E)^-1 i E)|
                                      <=  ||E||_* / (sigma - ||E||),

where the nuclear norm ||E||_* is at most the sum of the norms of the rows, and ||E|| at most the largest sum along one.

**The smallest singular value** is bounded by Sylvester's law of inertia.  H - shift = L P L* - E' is eliminated too, in
pairs; every P has one negative eigenvalue and one positive, so half of the eigenvalues of H - shift + E' are negative.
Hence half of those of H are at least shift - ||E'||, and as H's come in pairs +-, none is nearer to 0.

A itself is in twice the precision, so that ||E|| is some 10^-25, while the shift has to be beyond plain rounding only:
either the check fails, and there is no sum, or the error is that of adding up.  It fails where couplings are so strong,
and so frustrated, that A is singular to within plain rounding.
"""

import math
from typing import NamedTuple

import numpy as np

from clampz._kernels.planar.front_elimination import OUT_OF_MEMORY, UNIT
from clampz._kernels.planar.fronts import KeptColumns, factorise, inverse_of_pairs
from clampz._kernels.statuses import DONE
from clampz.model import Model
from clampz.numerics import EPS, Floats
from clampz.planar.ising import Unfit
from clampz.planar.plans import BYTES_PER_EDGE, TOO_STRONG, PlanarPlan, on
from clampz.runtime.budget import Budget
from clampz.runtime.options import memory_allowed

# The shift over what rounding may come to, and how often it is raised until it is.
SHIFT, SHIFTS = 8.0, 3

NO_ROOM = "the fronts of the planar sum do not fit into the memory"


class PlanarSum(NamedTuple):
    """log Z is within `error` of `log_z`; marginals as the model's tables lie, empty where they were not wanted."""

    log_z: float
    error: float
    unary: Floats
    pairwise: Floats


def sum_by_plan(
    model: Model,
    plan: PlanarPlan,
    *,
    marginals: bool = False,
    budget: Budget | None = None,
    memory: int | str | None = None,
) -> PlanarSum | Unfit:
    """The sum of a model by its plan, or why there is none."""
    most = max(memory_allowed(memory) - BYTES_PER_EDGE * plan.num_edges, 0) // 8
    determinant = _certified(plan, marginals, budget, most)
    if isinstance(determinant, Unfit):
        return determinant
    ising, finite = plan.ising, np.isfinite(plan.J)
    scale = math.fsum(plan.log_scale[np.isfinite(plan.log_scale)].tolist())
    terms = [
        ising.constant,
        -math.fsum(plan.J[finite].tolist()),  # the product of c: of infinite couplings the larger weight is 1
        (plan.num_components - ising.has_fields) * math.log(2),
        determinant.log_pfaffian,
        -scale * math.log(2),
    ]
    log_z = math.fsum(terms)
    error = ising.error + plan.input_error + determinant.error + 2 * EPS * math.fsum(map(abs, terms))
    if not math.isfinite(log_z) or not math.isfinite(error):
        return Unfit(TOO_STRONG)
    unary = pairwise = np.empty(0)
    if marginals:
        work = inverse_of_pairs, plan.tree, len(plan.log_scale), determinant.kept
        unary, pairwise = _marginals(model, plan, on(budget, plan.seconds(), *work))
    return PlanarSum(log_z, error, unary, pairwise)


class _Determinant(NamedTuple):
    """log |Pf A| within an error, and what A's inverse is made of."""

    log_pfaffian: float
    error: float
    kept: KeptColumns


def _certified(plan: PlanarPlan, keep: bool, budget: Budget | None, most: int) -> _Determinant | Unfit:
    """The sum itself, and the bound on its rounding."""
    seconds = plan.seconds()

    def eliminated(shift: float, keep: bool) -> tuple[int, float, float, Floats, KeptColumns]:
        found: tuple[int, float, float, Floats, KeptColumns]
        found = on(budget, seconds, factorise, plan.tree, plan.matrix, shift, most, keep)
        return found

    status, log_det, rounding, rows, kept = eliminated(0.0, keep)
    if status != DONE:
        return Unfit(NO_ROOM if status == OUT_OF_MEMORY else TOO_STRONG)
    largest = float(rows.max(initial=0.0))
    shift = SHIFT * largest / UNIT
    for _ in range(SHIFTS):
        if largest == 0.0:  # no rows
            return _Determinant(log_det / 2, rounding / 2, kept)
        status, _, _, shifted_rows, _ = eliminated(shift, False)
        if status != DONE:
            return Unfit(NO_ROOM if status == OUT_OF_MEMORY else TOO_STRONG)
        sigma = shift - float(shifted_rows.max())
        if sigma > 2 * largest:
            return _Determinant(log_det / 2, float(rows.sum()) / (sigma - largest) / 2 + rounding / 2, kept)
        shift *= SHIFT
    return Unfit(TOO_STRONG)


def _marginals(model: Model, plan: PlanarPlan, inverse: Floats) -> tuple[Floats, Floats]:
    """Return the marginals of variables and edges, as tables.

    An edge is not cut with probability A_e A^-1_e, the derivative of log Pf by the logarithm of its weight.  Variables
    without fields are 0 or 1 alike; others agree with the fields' spin with the probability of being 1.
    """
    ising, num_edges = plan.ising, len(plan.J)
    kept = np.clip((plan.matrix.weight * inverse)[:num_edges], 0.0, 1.0)
    i, j = ising.edges.T
    agree = np.where(plan.flip[i] != plan.flip[j], 1 - kept, kept)
    one = np.full(model.num_variables, 0.5)
    one[ising.field_of] = agree[len(ising.edge_of) :]
    i, j = model.edges.T
    both = np.clip((one[i] + one[j] - (1 - agree[: len(ising.edge_of)])) / 2, 0.0, np.minimum(one[i], one[j]))
    pairs = np.stack([1 - one[i] - one[j] + both, one[j] - both, one[i] - both, both], axis=1)
    return np.stack([1 - one, one], axis=1).ravel(), np.clip(pairs, 0.0, 1.0).ravel()
