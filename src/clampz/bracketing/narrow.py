"""Bounds from parts of a model that are narrow enough to be summed exactly.

Cut some edges so that every connected part left is narrow.  Two bounds follow, both as tight as the parts are wide: see
`narrow_bounds`.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.bracketing.narrow_bounds import lower_bound, upper_bound
from clampz.bracketing.partitions import parts_of, tie_strength, with_ties
from clampz.bracketing.subgraphs import NarrowSums
from clampz.clamping.selectors.strength import at_variables
from clampz.model import Model
from clampz.numerics import Floats, Integers
from clampz.watch import UNLIMITED, Watch

# Sums that are kept, one for each set of states left.
KEPT_SUMS = 4
# An edge that a partition has cut counts so many times in the next, so that every edge is inside some subgraph soon.
CUT_AGAIN = 4.0
# Strengths are shaken by this much between partitions, as a share.
NOISE = 0.1
MIN_SUBGRAPHS, MAX_SUBGRAPHS = 3, 12


@dataclass
class NarrowState:
    """Where a lane's bounds have got to.

    Attributes
    ----------
    marginals
        (S,) of the lower bound.
    beliefs
        (S,) of the upper bound, averaged over its subgraphs.
    shifts
        How far the potentials of each subgraph are from the model's.
    """

    marginals: Floats
    beliefs: Floats
    shifts: list[Floats]

    @property
    def num_bytes(self) -> int:
        return self.marginals.nbytes + self.beliefs.nbytes + sum(shift.nbytes for shift in self.shifts)

    @classmethod
    def at(cls, marginals: Floats, beliefs: Floats) -> "NarrowState":
        """Where methods have got to that know nothing of subgraphs; even where they found nothing."""
        return cls(np.nan_to_num(marginals, nan=0.5), np.nan_to_num(beliefs, nan=0.5), [])


class NarrowBound(NamedTuple):
    """Certified bounds of one lane, and where they have got to."""

    lower: float
    upper: float
    state: NarrowState


@dataclass
class Narrow:
    """Bounds on lanes of one pairwise model from a partition into narrow parts and several such partitions as
    subgraphs.

    Attributes
    ----------
    limit
        Table entries per part.
    labels
        (n,) the partition of the lower bound.
    masks
        For each subgraph of the upper bound, (m,) the edges it has.
    """

    model: Model
    limit: float
    labels: Integers
    masks: list[NDArray[np.bool_]]
    _sums: dict[bytes, NarrowSums] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, limit: float, seed: int = 0, watch: Watch = UNLIMITED) -> "Narrow":
        """Partition the model, several times over: until every edge has been inside a part.  When time is up, parts are
        as large as they have become."""
        rng = np.random.default_rng(seed)
        strength = tie_strength(model) + 1e-9
        labels = parts_of(model, limit, strength, watch)
        least = _cut(model, labels, strength)
        masks = [with_ties(model, labels, limit, strength, watch)]
        if masks[0].all():  # nothing is cut: one part has everything
            return cls(model, limit, np.zeros_like(labels), masks)
        emphasis = np.where(masks[0], 1.0, CUT_AGAIN)
        covered = masks[0].copy()
        while not covered.all() or 1 < len(masks) < MIN_SUBGRAPHS:
            if watch.must_stop() or len(masks) >= MAX_SUBGRAPHS:
                if covered.all():
                    break
                masks.append(_matching(model, ~covered))  # an edge alone is narrow
                covered |= masks[-1]
                continue
            weight = strength * emphasis * np.exp(NOISE * rng.normal(size=len(strength)))
            other = parts_of(model, limit, weight, watch)
            if (cut := _cut(model, other, strength)) < least:
                labels, least = other, cut
            masks.append(with_ties(model, other, limit, weight, watch))
            covered |= masks[-1]
            emphasis = np.where(masks[-1], np.maximum(0.7 * emphasis, 1.0), CUT_AGAIN * emphasis)
        return cls(model, limit, labels, masks)

    @property
    def is_exact(self) -> bool:
        """Whether a single part has everything."""
        return len(self.masks) == 1

    def cut_weight(self) -> Floats:
        """(n,) how much of the strength of each variable's edges is cut, on average over the subgraphs: where the slack
        comes from."""
        model = self.model
        cut = tie_strength(model) * (1.0 - np.mean(self.masks, axis=0))
        return at_variables(model.num_variables, model.edges, cut)

    def bounds(self, unary: Floats, start: NarrowState, max_evaluations: int, watch: Watch = UNLIMITED) -> NarrowBound:
        """Bounds on the lane with these unary potentials (S,), from where others have got to; `max_evaluations` is how
        often the subgraphs are summed at most.  The lower bound is also begun at the upper one's beliefs, unless time
        is short.  Bounds that time was too short for are infinite.
        """
        sums = self.sums_of(unary, watch)
        if sums.empty:
            return NarrowBound(-math.inf, -math.inf, NarrowState(np.zeros_like(unary), np.zeros_like(unary), []))
        begin = [start.marginals, start.beliefs] if max_evaluations > 1 else [start.marginals]
        with sums.workspace() as workspace:
            found = [lower_bound(self.model, sums, workspace, unary, marginals, watch) for marginals in begin]
            lower, marginals = max(found, key=lambda pair: pair[0])
            upper, beliefs, shifts = upper_bound(
                self.model, sums, workspace, unary, start.shifts, max_evaluations, watch
            )
        return NarrowBound(lower, upper, NarrowState(marginals, beliefs, shifts))

    def num_entries(self, unary: Floats) -> int:
        """Table entries that summing all subgraphs once goes through."""
        return sum(subgraph.num_entries for subgraph in self.sums_of(unary, UNLIMITED).subgraphs)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_sums": {}}  # quicker to lay out again than to send

    def sums_of(self, unary: Floats, watch: Watch) -> NarrowSums:
        """Laid out for the states that are left; Overdue where time is too short for that."""
        possible = unary > -np.inf
        key = np.packbits(possible).tobytes()
        found = self._sums.get(key)
        if found is None:
            found = NarrowSums.of(self.model, self.labels, self.masks, possible, watch)
            for old in list(self._sums)[: 1 - KEPT_SUMS]:  # lanes come in families: the last few are enough
                self._sums.pop(old, None)
            self._sums[key] = found
        return found


def _cut(model: Model, labels: Integers, strength: Floats) -> float:
    """The strength of the edges between parts."""
    i, j = model.edges.T
    return float(strength[labels[i] != labels[j]].sum())


def _matching(model: Model, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(m,) some of the wanted edges, no two of which share a variable."""
    used = np.zeros(model.num_variables, dtype=np.bool_)
    out = np.zeros(model.num_edges, dtype=np.bool_)
    for k in np.flatnonzero(wanted):
        i, j = model.edges[k]
        if not used[i] and not used[j]:
            used[i] = used[j] = out[k] = True
    return out
