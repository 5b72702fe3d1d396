"""A lower bound from parts of a pairwise model that are narrow enough to be summed exactly: mean field over the parts.

Cut some edges so that every connected part left is narrow.  q is a product of distributions q_P, each of them exact
given its fields; the edges between parts see means only,

    log Z >= sum_P H(q_P) + E_q[score],        q_P in proportion to exp( score inside P + fields of the cut edges ),

and updating one part after another can only raise it.  Parts of one variable make it naive mean field, one part makes
it exact.  Hard zeros are no obstacle, as they are to other bounds that are as tight.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from clampz._kernels.approximations.mean_field.tables import HARD
from clampz.bounding.leaves.part_sums import PartSums
from clampz.bounding.leaves.partitions import parts_of, tie_strength
from clampz.elimination.sums import Workspace
from clampz.model import Model
from clampz.numerics import EPS, ROUNDINGS, Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget, Cancelled

# Sums that are kept, one for each set of states left.
KEPT_SUMS = 4
# A field as low as this is that of a hard zero, and rules its state out.
FORBIDDEN = -HARD / 1e6
# Sweeps over the parts, and what a sweep must gain, in nats.
MAX_SWEEPS, LEAST_GAIN = 60, 1e-4


@dataclass
class StructuredMeanField:
    """Bounds on lanes of one pairwise model from a partition into narrow parts.

    Attributes
    ----------
    max_table
        Table entries per part.
    labels
        (n,) the part of each variable.
    """

    model: Model
    max_table: float
    labels: Integers
    _sums: dict[bytes, PartSums] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, max_table: float, budget: Budget = UNLIMITED) -> "StructuredMeanField":
        """When time is up, parts are as large as they have become."""
        return cls(model, max_table, parts_of(model, max_table, tie_strength(model) + 1e-9, budget))

    def lower(self, unary: Floats, starts: list[Floats], budget: Budget = UNLIMITED) -> tuple[float, Floats]:
        """The best bound on the lane with these unary potentials (S,), from marginals (S,) of several kinds, and the
        marginals reached; -inf where time is too short for one."""
        try:
            sums = self.sums_of(unary, budget)
        except Cancelled:
            return -math.inf, starts[0]
        if sums.empty:
            return -math.inf, np.zeros_like(unary)
        with sums.workspace() as workspace:
            found = [lower_bound(self.model, sums, workspace, unary, marginals, budget) for marginals in starts]
        return max(found, key=lambda pair: pair[0])

    def num_bytes(self, unary: Floats, budget: Budget) -> int:
        """Working memory of a bound; Overdue where time is too short to know."""
        return self.sums_of(unary, budget).num_bytes

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_sums": {}}  # quicker to lay out again than to send

    def sums_of(self, unary: Floats, budget: Budget) -> PartSums:
        """Laid out for the states that are left; Overdue where time is too short for that."""
        possible = unary > -np.inf
        key = np.packbits(possible).tobytes()
        found = self._sums.get(key)
        if found is None:
            found = PartSums.of(self.model, self.labels, possible, budget)
            for old in list(self._sums)[: 1 - KEPT_SUMS]:  # lanes come in families: the last few are enough
                self._sums.pop(old, None)
            self._sums[key] = found
        return found


def lower_bound(
    model: Model, sums: PartSums, workspace: Workspace, unary: Floats, marginals: Floats, budget: Budget
) -> tuple[float, Floats]:
    """Mean field over the parts, from these marginals (S,): the bound less what rounding may have added, and the
    marginals reached; none before all parts have been updated once."""
    start, flat = model.unary.start, np.maximum(model.pairwise.flat, -HARD)
    entry, edge, a, b = model.pairwise.entries(sums.cut)
    i, j = model.edges[edge].T
    row_i, row_j, value = start[i] + a, start[j] + b, flat[entry]
    possible = (unary[row_i] > -np.inf) & (unary[row_j] > -np.inf)
    row_i, row_j, value = row_i[possible], row_j[possible], value[possible]
    num_rows = len(unary)
    owner = np.empty(num_rows, dtype=np.int64)
    place = np.empty(num_rows, dtype=np.int64)  # of a row among those of its part
    for number, part in enumerate(sums.parts):
        owner[part.rows], place[part.rows] = number, np.arange(len(part.rows))
    both = np.concatenate([owner[row_i], owner[row_j]])  # no part is at both ends of an edge that is cut
    mine = np.split(
        np.argsort(both, kind="stable") % max(len(row_i), 1),
        np.cumsum(np.bincount(both, minlength=len(sums.parts)))[:-1],
    )
    q = np.where(unary > -np.inf, np.nan_to_num(marginals, nan=0.5), 0.0)
    share, rounding = np.zeros(len(sums.parts)), np.zeros(len(sums.parts))
    best, best_q = -math.inf, q.copy()
    before = -math.inf
    with suppress(Cancelled):  # what was found before counts
        for _ in range(MAX_SWEEPS):
            for number, part in enumerate(sums.parts):
                chosen = mine[number]
                into_i = owner[row_i[chosen]] == number
                near = np.where(into_i, row_i[chosen], row_j[chosen])
                far = np.where(into_i, row_j[chosen], row_i[chosen])
                fields = np.bincount(place[near], value[chosen] * q[far], len(part.rows)).astype(np.float64)
                inner = model.pairwise.flat[part.pairs]
                found = part.moments(
                    np.where(fields < FORBIDDEN, -np.inf, unary[part.rows] + fields), inner, workspace, budget
                )
                if found.log_z > -math.inf:
                    fields = np.where(fields < FORBIDDEN, 0.0, fields)  # q is 0 there
                else:
                    found = part.moments(unary[part.rows] + fields, inner, workspace, budget)
                if found.log_z == -math.inf:
                    return _proven(best), best_q
                q[part.rows] = found.marginals[: len(part.rows)]
                share[number] = found.log_z - float(fields @ q[part.rows])
                size = float(np.abs(fields * q[part.rows]).sum())
                rounding[number] = found.error + (ROUNDINGS * EPS + 4 * found.error) * (size + 1.0)
            terms = value * q[row_i] * q[row_j]
            total = float(model.constant + share.sum() + terms.sum())
            error = float(
                rounding.sum()
                + (ROUNDINGS * EPS + 8 * rounding.max(initial=0.0))
                * (np.abs(terms).sum() + np.abs(share).sum() + abs(model.constant))
            )
            if total - error > best:
                best, best_q = total - error, q.copy()
            if not total > before + LEAST_GAIN:
                break
            before = total
    return _proven(best), best_q


def _proven(bound: float) -> float:
    """A bound that has a hard zero in it proves nothing."""
    return bound if bound > -HARD / 2 else -math.inf
