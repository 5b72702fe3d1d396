"""Candidate variables to clamp, their branches as one batch, and the criteria by which the best is kept."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from clampz.clamping.branches import split
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.numerics import Floats, Integers, log_sum_exp

VariableSet = tuple[int, ...]  # variables clamped together


# The methods that judge candidates by each criterion, and those whose sums over the branches are better when lower.
CRITERIA = {
    "trw": ("trw",),
    "mf": ("mean_field",),
    "bethe": ("bethe",),
    "mini_buckets": ("mini_buckets",),
    "gap": ("trw", "mean_field"),
}
BOUNDS_FROM_ABOVE = ("trw", "mini_buckets")


def default_criterion(model: Model, method: str) -> str:
    """Return the criterion of greedy selectors that fits a method.

    For Bethe higher is better on attractive and balanced models alone; on others the criterion is TRW's.
    """
    if method == "bethe" and model.is_balanced:
        return "bethe"
    return {"mean_field": "mf", "mini_buckets": "mini_buckets"}.get(method, "trw")


def criterion_values(estimates: Estimates) -> Floats:
    """Return (B,) what a criterion sums: the bounds of mean field, TRW and mini-buckets, the values of Bethe."""
    ends = {"trw": estimates.upper, "mini_buckets": estimates.upper, "mean_field": estimates.lower}
    return ends.get(estimates.method, estimates.value)


class Candidate(NamedTuple):
    """Variables that may be clamped in a group of branches, with the selector and its score."""

    variables: VariableSet
    selector: str
    score: float = math.nan
    note: str = ""
    agree: tuple[str, ...] = ()


class CandidateBatch(NamedTuple):
    """The branches of several candidates as one batch; the lanes of a candidate follow each other as a piece.

    origin      (B,) the branch of the step before that each lane comes from
    piece       (B,) the piece of each lane
    sets        of each piece: the variables clamped in it
    """

    batch: Batch
    origin: Integers
    piece: Integers
    sets: Sequence[VariableSet]

    @classmethod
    def stack(cls, base: Batch, groups: Sequence[Integers], sets: Sequence[VariableSet]) -> "CandidateBatch":
        """Return a piece for each group of lanes of a batch, with a set of variables clamped in all of its lanes."""
        origin = np.concatenate(groups)
        piece = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        batch = base.take(origin)
        for depth in range(max(len(variables) for variables in sets)):
            at = np.array([variables[depth] if depth < len(variables) else -1 for variables in sets])
            batch, parent = split(batch, at[piece])
            origin, piece = origin[parent], piece[parent]
        return cls(batch, origin, piece, sets)

    def take(self, pieces: Integers) -> tuple["CandidateBatch", Integers]:
        """Return some of the pieces, in increasing order, and the lanes that they have in this batch."""
        lanes = np.flatnonzero(np.isin(self.piece, pieces))
        batch = self.batch.take(lanes) if len(lanes) < self.batch.num_lanes else self.batch
        piece = np.searchsorted(pieces, self.piece[lanes])
        return CandidateBatch(batch, self.origin[lanes], piece, [self.sets[p] for p in pieces]), lanes

    def merits(self, criterion: str, tried: Mapping[str, Estimates]) -> Floats:
        """Return (pieces,) the merit of each piece by a criterion, from the estimates of the methods that judge: higher
        is better."""
        lanes = [self.piece == p for p in range(len(self.sets))]
        senses = [(criterion_values(tried[m]), -1.0 if m in BOUNDS_FROM_ABOVE else 1.0) for m in CRITERIA[criterion]]
        return np.array([sum(sense * log_sum_exp(ends[mine]) for ends, sense in senses) for mine in lanes])
