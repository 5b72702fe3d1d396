"""The plan of a planar sum: the graph embedded, its faces as cities, a nested dissection of them, and what it costs.

**The sum over cuts.**  Flipping all spins changes nothing, and the edges between unequal spins are a cut; in the plane
cuts are the sets of dual edges that meet every face an even number of times.  So with u = e^J for an edge that is not
cut, c = e^-J for one that is, Z = 2^components * sum over such sets of the product of u and c.

**The matrix** (Kasteleyn's cities).  Give every face with d edges d rows, one for each half-edge in turn, and join each
to all later ones by 1: every even subset of them has Pfaffian 1.  Join the two half-edges of an edge by +-u / c: an
edge whose two rows are matched with one another is not cut.  For the right signs
(`_kernels.planar_cities.kasteleyn_signs`) all terms of the Pfaffian have the same sign, so that prod c * |Pf A| = prod
c * |det A|^1/2 is the sum.  It needs no drawing, and since no term is negative, a relative change of entries by at most
delta changes log Z by at most the sum of the deltas.

**Gauge and scale.**  Flipping variables exchanges u and c: along a strongest spanning forest no edge repels, which
leaves fewest ways for large entries to cancel.  Then rows and columns are scaled by powers of two, exactly, so that the
largest terms are products of ones (`_kernels.planar_scales`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import graph
from clampz._kernels.planar import cities
from clampz._kernels.planar.dissection import count_updates, dissect
from clampz._kernels.planar.fronts import Dissection, Matrix
from clampz._kernels.planar.planarity import PLANAR, embed
from clampz._kernels.planar.scaling import scales
from clampz.model import Model
from clampz.model.tables import read_only
from clampz.numerics import EPS, Floats
from clampz.planar.ising import NOT_PLANAR, Ising, Unfit, as_ising
from clampz.runtime.budget import LOOK, Budget, Cancelled, run_cancellable
from clampz.runtime.options import memory_allowed

T = TypeVar("T")

TOO_STRONG = "couplings are so strong and so frustrated that rounding cannot be bounded"
FIELDS_OFF_FACE = "the variables with singleton potentials are not all on one face of a planar graph"
MARGINALS_OFF_FACE = (
    "marginals of a planar model with singleton potentials need all of its variables on one face, which they are not"
)

# Seconds per edge until there is a plan, and per updated entry of a front, for the sum in twice the precision, the
# check of its rounding, and marginals; measured with one thread on a machine that others used too, with room to spare.
SECONDS_PER_EDGE, SECONDS_PER_UPDATE, SECONDS_FOR_INVERSE = 1e-5, 3e-8, 1e-8
# Bytes per edge of plan and sum, but for the fronts.
BYTES_PER_EDGE = 800


@dataclass(frozen=True)
class PlanarPlan:
    """Everything that is known before entries are added up.

    Attributes
    ----------
    flip
        (n,) the spins that are flipped in the gauge.
    J
        The couplings in it.
    log_scale
        (2M,) log2 of the factor of each row; -inf where a coupling is infinite.
    num_updates
        Entries that are updated, unless pairs are delayed: what the time goes by.
    """

    ising: Ising
    num_components: int
    flip: NDArray[np.bool_]
    J: Floats
    log_scale: Floats
    tree: Dissection
    matrix: Matrix
    num_updates: float

    @classmethod
    def of(
        cls, model: Model, *, marginals: bool = False, budget: Budget | None = None, memory: int | str | None = None
    ) -> Self | Unfit:
        """Plan, or say why not: counts are looked at first, fields second, the graph last; Cancelled where it is
        stopped."""
        least = SECONDS_PER_EDGE * (model.num_variables + model.num_edges) / 2
        if budget is not None and budget.left() < least:  # not even for the plan
            raise Cancelled
        ising = as_ising(model, marginals=marginals)
        if isinstance(ising, Unfit):
            return ising
        if BYTES_PER_EDGE * len(ising.edges) > memory_allowed(memory):
            return Unfit(f"the plan of {len(ising.edges)} couplings does not fit into the memory")
        return cls._of_ising(ising, marginals, budget)

    @classmethod
    def _of_ising(cls, ising: Ising, marginals: bool, budget: Budget | None) -> Self | Unfit:
        n, edges = ising.num_spins, ising.edges
        each = SECONDS_PER_EDGE * (n + len(edges))  # more than any step takes
        unfit = Unfit(NOT_PLANAR if not ising.has_fields else MARGINALS_OFF_FACE if marginals else FIELDS_OFF_FACE)
        if len(edges) > max(3 * n - 6, 1):  # more than any planar graph has: no kernel is needed for that
            return unfit
        status, follows = on(budget, each, embed, n, edges)
        if status != PLANAR:
            return unfit
        flip, num_components = _gauge(ising, budget, each)
        J = np.where(flip[edges[:, 0]] != flip[edges[:, 1]], -ising.J, ising.J)
        tails, city_start, city_half = on(budget, each, cities.cities, edges, follows)
        sign, _ = on(budget, each, cities.kasteleyn_signs, n, tails, city_start, city_half)
        log_weight = np.zeros(len(sign))
        log_weight[: len(J)] = 2 * J / np.log(2)
        num_cities = len(city_start) - 1
        city_of = np.empty(len(city_half), dtype=np.int64)
        city_of[city_half] = np.repeat(np.arange(num_cities), np.diff(city_start))
        log_scale = on(budget, each, scales, log_weight, city_start, city_half, city_of)
        hard = np.isposinf(log_weight)
        with np.errstate(invalid="ignore", over="ignore"):
            weight = sign * np.where(hard, 1.0, np.exp2(log_weight + log_scale[::2] + log_scale[1::2]))
            scale = np.exp2(log_scale)
        if not (np.isfinite(weight).all() and np.isfinite(scale).all()):
            return Unfit(TOO_STRONG)
        order, low, high, children = on(budget, each, dissect, city_start, city_half, city_of)
        place = np.empty(num_cities, dtype=np.int64)
        place[order] = np.arange(num_cities)
        num_updates = on(budget, each, count_updates, city_start, city_of, place, low, high, children)
        return cls(
            ising,
            num_components,
            flip,
            J,
            log_scale,
            Dissection(low, high, children, order, place),
            Matrix(city_start, city_half, city_of, scale, weight),
            num_updates,
        )

    @property
    def num_edges(self) -> int:
        """Chords included."""
        return len(self.matrix.weight)

    def seconds(self, *, marginals: bool = False) -> float:
        """What its sum takes."""
        per_update = SECONDS_PER_UPDATE + (SECONDS_FOR_INVERSE if marginals else 0.0)
        return SECONDS_PER_EDGE * self.num_edges + per_update * self.num_updates

    @property
    def input_error(self) -> float:
        """What rounded weights may do to log Z."""
        finite = np.isfinite(self.J)
        arguments = 2 * np.abs(self.J[finite]) * 1.5 + sum(
            np.abs(self.log_scale[side : 2 * len(self.J) : 2][finite]) for side in (0, 1)
        )
        return float(EPS * (2 * arguments.sum() + 4 * len(arguments)))


def on(budget: Budget | None, expected: float, work: Callable[..., T], *args: object) -> T:
    """`run_cancellable`; Cancelled where it was stopped."""
    found = run_cancellable(budget, expected, work, *args)
    if budget is not None and expected >= LOOK and budget.must_stop():
        raise Cancelled
    return found


def _gauge(ising: Ising, budget: Budget | None, expected: float) -> tuple[NDArray[np.bool_], int]:
    """The spins to flip, and the number of connected components."""
    ranking = np.argsort(-np.abs(ising.J), kind="stable")
    edges = read_only(ising.edges.copy())  # as all callers have them
    forest = on(budget, expected, graph.spanning_forest, ising.num_spins, edges, ranking).astype(np.bool_)
    lists = graph.neighbour_lists(ising.num_spins, ising.edges[forest])
    flip, _ = graph.balance(*lists, (ising.J[forest] < 0).astype(np.int8))
    return flip.astype(np.bool_), ising.num_spins - int(np.count_nonzero(forest))
