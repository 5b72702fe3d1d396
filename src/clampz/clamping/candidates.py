"""Candidates: what may be clamped next, laid out as one batch, and the criteria by which the best of them is kept."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from clampz.clamping.branches import split
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimates
from clampz.numerics import Floats, Integers, log_sum_exp

Set = tuple[int, ...]  # variables clamped together


class Criterion(NamedTuple):
    """The methods that judge, and what is best by the sums of theirs over the branches: higher is better."""

    needed: tuple[str, ...]
    merit: Callable[..., float]


CRITERIA = {
    "trw": Criterion(("trw",), lambda upper: -upper),
    "mf": Criterion(("mean_field",), lambda lower: lower),
    "bethe": Criterion(("bethe",), lambda value: value),
    "mini_buckets": Criterion(("mini_buckets",), lambda upper: -upper),
    "gap": Criterion(("trw", "mean_field"), lambda upper, lower: lower - upper),
}


def own_criterion(model: Model, method: str) -> str:
    """The criterion of greedy selectors that fits a method: for Bethe, where higher is better only on attractive and
    balanced models, TRW's on the others."""
    if method == "mean_field":
        return "mf"
    if method == "mini_buckets":
        return "mini_buckets"
    if method == "bethe" and model.is_balanced:
        return "bethe"
    return "trw"


def end_of(estimates: Estimates) -> Floats:
    """(B,) what a criterion looks at: the bound of mean field, TRW and regions, the value of others."""
    ends = {"trw": estimates.upper, "mini_buckets": estimates.upper, "mean_field": estimates.lower}
    return ends.get(estimates.method, estimates.value)


class Candidate(NamedTuple):
    """Variables that may be clamped in one group of branches, and why."""

    variables: Set
    selector: str
    score: float = math.nan
    note: str = ""
    agree: tuple[str, ...] = ()


class Pieces(NamedTuple):
    """Branches laid out as one batch, piece by piece.

    origin      (B,) the branch of the step before that each lane comes from
    piece       (B,) the piece of each lane
    sets        of each piece: the variables clamped in it
    """

    batch: Batch
    origin: Integers
    piece: Integers
    sets: Sequence[Set]

    @classmethod
    def laid_out(cls, base: Batch, groups: Sequence[Integers], sets: Sequence[Set]) -> "Pieces":
        """For each group of lanes of a batch, a piece in which these variables are clamped in all of them."""
        origin = np.concatenate(groups)
        piece = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        batch = base.take(origin)
        for depth in range(max(len(variables) for variables in sets)):
            at = np.array([variables[depth] if depth < len(variables) else -1 for variables in sets])
            batch, parent = split(batch, at[piece])
            origin, piece = origin[parent], piece[parent]
        return cls(batch, origin, piece, sets)

    def take(self, pieces: Integers) -> tuple["Pieces", Integers]:
        """Some of the pieces, in increasing order, and the lanes they have here."""
        lanes = np.flatnonzero(np.isin(self.piece, pieces))
        batch = self.batch.take(lanes) if len(lanes) < self.batch.num_lanes else self.batch
        piece = np.searchsorted(pieces, self.piece[lanes])
        return Pieces(batch, self.origin[lanes], piece, [self.sets[p] for p in pieces]), lanes

    def merits(self, criterion: str, tried: Mapping[str, Estimates]) -> Floats:
        """(pieces,) how good each piece is, by what the judging methods say of the lanes."""
        needed, merit = CRITERIA[criterion]
        ends = [end_of(tried[name]) for name in needed]
        lanes = [self.piece == p for p in range(len(self.sets))]
        return np.array([merit(*(log_sum_exp(end[mine]) for end in ends)) for mine in lanes])
