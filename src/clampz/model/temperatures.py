"""Inverse temperatures beta, one per lane: p(x) = exp(beta score(x)) / Z(beta), with hard zeros whatever beta."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import OptionError, shown
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.data import ModelData
from clampz.model.tables import offsets
from clampz.numerics import EPS, Floats, Integers


class Sizes(NamedTuple):
    """Sizes of finite potentials: the largest of all, and the largest score that they may add up to."""

    largest: float
    total: float

    @classmethod
    def of(cls, table: Floats, start: Integers) -> "Sizes":
        """Measure tables end to end."""
        if len(start) < 2:
            return cls(0.0, 0.0)
        each = np.maximum.reduceat(np.where(table > -np.inf, np.abs(table), 0.0), start[:-1])
        return cls(float(each.max()), float(each.sum()))

    @classmethod
    def of_contents(cls, contents: ModelData) -> "Sizes":
        """Measure all tables but the unary ones, in which lanes differ."""
        parts = [
            cls.of(contents.pairwise, contents.tables.start),
            cls.of(contents.factors.flat, contents.factors.start),
            cls(abs(contents.constant), abs(contents.constant)),
        ]
        return cls(max(part.largest for part in parts), math.fsum(part.total for part in parts))

    def with_unary(self, unary: Floats, num_states: Integers) -> "Sizes":
        """Add unary tables (S, B) of lanes: those of the largest."""
        most = np.where(unary > -np.inf, np.abs(unary), 0.0).max(axis=1)
        own = Sizes.of(most, offsets(num_states))
        return Sizes(max(self.largest, own.largest), self.total + own.total)

    def rounding(self, beta: float) -> float:
        """Bound the rounding in any score when potentials are multiplied by beta. Half a unit in the last place of
        each, and as much again for this sum; nothing where beta is a power of two."""
        return 0.0 if beta == 0.0 or math.frexp(beta)[0] == 0.5 else EPS * beta * self.total


def as_betas(beta: ArrayLike, sizes: Sizes) -> Floats:
    """Coerce inverse temperatures, refusing what is not finite or >= 0, or makes a potential too large."""
    try:
        betas = np.asarray(beta, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"beta: expected a number >= 0 or several, found {shown(beta)}") from None
    if betas.ndim > 1 or not betas.size:
        raise OptionError(f"beta: expected a number or a list of numbers, found shape {betas.shape}")
    bad = np.flatnonzero(~((betas >= 0.0) & (betas < np.inf)))
    if bad.size:
        place = f"[{bad[0]}]" if betas.ndim else ""
        raise OptionError(f"beta{place}: expected a finite number >= 0, found {betas.flat[bad[0]]}")
    if sizes.largest * betas.max() > LARGEST_POTENTIAL:
        raise OptionError(
            f"beta: expected at most {LARGEST_POTENTIAL / sizes.largest:g} for potentials of up to {sizes.largest:g} "
            f"in size, found {betas.max():g}"
        )
    return betas


def mean_score(contents: ModelData, *beliefs: Floats) -> float:
    """Compute the mean score under beliefs of variables, edges and larger factors; hard zeros count for nothing."""
    terms = [contents.constant]
    for table, belief in zip((contents.unary, contents.pairwise, contents.factors.flat), beliefs, strict=True):
        possible = table > -np.inf
        terms.append(float(table[possible] @ belief[possible]))
    return math.fsum(terms)
