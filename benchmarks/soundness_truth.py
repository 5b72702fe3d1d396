"""The truth that `soundness.py` compares with, from the factors as they were given; nothing here is from the package.

Potentials are whole numbers of 2^-1074, the smallest float.  The model is the sums of the factors over the same
variables, each rounded once; everything after that is done without rounding that matters: weights and sums of them are
decimals of sixty digits.
"""

import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from soundness_models import HARD, Drawn, Scope

DIGITS = 60
CONTEXT = Context(prec=DIGITS, Emin=-(10**18) + 1, Emax=10**18 - 1)
# What the truth itself may be off by, as a share.
OWN_ERROR = Decimal(10) ** -45
# Bits after the point of a potential.
BITS = 1074
ONE = 1 << BITS
# Potentials beyond this leave the range of exponents that decimals have: then all joint states are added up, less the
# largest.
LARGE = int(1e17) << BITS
# exp of less is nothing beside 1.
NOTHING = -200 << BITS
# What floats of at most 1e20 are off by at most, for each that is added up.
ROUGH = 1e5

Weights = list[tuple[Scope, Any]]
Factors = list[tuple[Scope, list[int | None]]]


def fixed(value: float) -> int | None:
    """A potential in units of 2^-1074; None for a hard zero."""
    if value == HARD:
        return None
    numerator, denominator = float(value).as_integer_ratio()
    return numerator * (ONE // denominator)


class Truth:
    """log Z and the probabilities of states, computed when asked for."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.log_z = cache(self._log_z)
        self._states = cache(self._summed)

    def _log_z(self, *evidence: tuple[int, int]) -> Decimal | None:
        """With some variables in their states; None for Z = 0."""
        if evidence and (self._is_large or self.drawn.alike):  # what is nothing beside the rest may be all that is left
            return Truth(self.drawn.given(dict(evidence))).log_z()
        if len(evidence) == 1:
            (i, a) = evidence[0]
            total = self._states(i)[a]
        else:
            total = self._summed(None, dict(evidence))[()]
        with localcontext(CONTEXT):
            return as_decimal(self._scaled[0]) + total.ln() if total else None

    def marginal(self, variable: int) -> list[Decimal]:
        with localcontext(CONTEXT):
            if self.drawn.alike:
                logs = [self.log_z((variable, a)) for a in range(2)]
                return [Decimal(0) if log_z is None else (log_z - self.log_z()).exp() for log_z in logs]
            table = self._states(variable)
            total = table.sum()
            return [value / total for value in table.tolist()]

    def largest(self) -> Decimal | None:
        """The largest score; None for Z = 0."""
        states = self._table_sizes
        scores = [
            (
                scope,
                np.array([NEVER if v is None else v for v in values], dtype=object).reshape([states[i] for i in scope]),
            )
            for scope, values in self._factors
        ]
        top = int(summed(states, scores, None, MAXIMA)[()])
        with localcontext(CONTEXT):
            return None if top < NEVER // 2 else as_decimal(top + (fixed(self.drawn.constant) or 0))

    def _summed(self, keep: int | None, evidence: dict[int, int] | None = None) -> Any:
        states, (_, weights) = list(self._table_sizes), self._scaled
        for i, a in (evidence or {}).items():
            states[i] = 1
            weights = [
                (scope, table.take([a], axis=scope.index(i)) if i in scope else table) for scope, table in weights
            ]
        with localcontext(CONTEXT):
            return summed(tuple(states), weights, keep)

    @cached_property
    def _groups(self) -> list[list[int]]:
        """Variables that may be exchanged, together: what counts is how many of them are in state 1."""
        alike = self.drawn.alike
        return [[i for i, other in enumerate(alike) if other == group] for group in sorted(set(alike))]

    @cached_property
    def _table_sizes(self) -> tuple[int, ...]:
        return tuple(len(group) + 1 for group in self._groups) or self.drawn.num_states

    @cached_property
    def _factors(self) -> Factors:
        found = merged(self.drawn)
        return counted(found, self._groups) if self._groups else found

    @cached_property
    def _is_large(self) -> bool:
        return not self.drawn.alike and any(
            value is not None and abs(value) > LARGE for _, values in self._factors for value in values
        )

    @cached_property
    def _scaled(self) -> tuple[int, Weights]:
        """What all scores have in common, and tables of what is left of them, as weights of at most 1 (of groups: times
        the number of choices)."""
        states = self._table_sizes
        factors = [near_the_top(states, self._factors)] if self._is_large else self._factors
        shift, weights = fixed(self.drawn.constant) or 0, []
        for scope, values in factors:
            top = max((value for value in values if value is not None), default=0)
            shift += top
            exp = {None: Decimal(0)} | {v: exponential(v - top) for v in set(values) if v is not None}
            table = np.array([exp[v] for v in values], dtype=object)
            weights.append((scope, table.reshape([states[i] for i in scope])))
        for g, group in enumerate(self._groups):
            choices = [Decimal(math.comb(len(group), k)) for k in range(len(group) + 1)]
            weights.append(((g,), np.array(choices, dtype=object)))
        return shift, weights


def merged(drawn: Drawn) -> Factors:
    """The factors with their variables in order, those of one scope added up and rounded."""
    found: dict[Scope, list[int | None]] = {}
    for scope, table in drawn.factors:
        order = np.argsort(scope, kind="stable")
        key = tuple(scope[i] for i in order)
        values = [fixed(v) for v in np.transpose(table, order).ravel().tolist()]
        found[key] = [*map(both, found[key], values)] if key in found else values
    return [(scope, [rounded(value) for value in values]) for scope, values in found.items()]


def rounded(value: int | None) -> int | None:
    """To the nearest float."""
    return None if value is None else fixed(value / ONE)


def both(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def counted(factors: Factors, groups: list[list[int]]) -> Factors:
    """The same over the numbers of variables in state 1 in each group."""
    of, out = dict(factors), []
    for g, group in enumerate(groups):
        size, own = len(group), of.get((group[0],), [0, 0])
        pair = of.get((group[0], group[1]), [0] * 4) if size > 1 else [0] * 4
        scores = []
        for k in range(size + 1):
            pairs = [math.comb(size - k, 2), 0, k * (size - k), math.comb(k, 2)]
            scores.append(weighted([size - k, k, *pairs], [*own, *pair]))
        out.append(((g,), scores))
        for h, other in enumerate(groups[:g]):
            i, j = other[0], group[0]
            pair = of.get((i, j), [0] * 4) if i < j else [of.get((j, i), [0] * 4)[p] for p in (0, 2, 1, 3)]
            ends = [(len(other) - a, a, size - b, b) for a in range(len(other) + 1) for b in range(size + 1)]
            out.append(((h, g), [weighted([x * y for x in e[:2] for y in e[2:]], pair) for e in ends]))
    return out


def weighted(counts: list[int], values: list[int | None]) -> int | None:
    """Return the sum of all values, each as often as its count says; None where one of them is not known."""
    if any(value is None and count for count, value in zip(counts, values, strict=True)):
        return None
    return sum(count * value for count, value in zip(counts, values, strict=True) if value is not None)


def near_the_top(states: tuple[int, ...], factors: Factors) -> tuple[Scope, list[int | None]]:
    """The scores of the joint states that are something beside the largest; None for the others."""
    rough = np.zeros(states)
    for scope, values in factors:
        table = np.array([HARD if value is None else value / ONE for value in values])
        rough = rough + table.reshape([k if i in scope else 1 for i, k in enumerate(states)])
    scores: list[int | None] = [None] * rough.size
    for number in np.flatnonzero(rough >= rough.max() - ROUGH * len(factors)).tolist():
        joint = np.unravel_index(number, states)
        score: int | None = 0
        for scope, values in factors:
            place = 0
            for i in scope:
                place = place * states[i] + int(joint[i])
            score = both(score, values[place])
        scores[number] = score
    top = max((score for score in scores if score is not None), default=0)
    return tuple(range(len(states))), [None if s is None or s < top + NOTHING else s for s in scores]


# -- sums ------------------------------------------------------------------------------------------------------------


class Algebra(NamedTuple):
    """What tables are combined by: the one that changes nothing, how two are, and all entries along an axis."""

    one: Any
    both: Callable[[Any, Any], Any]
    along: Callable[..., Any]


SUMS, MAXIMA = Algebra(Decimal(1), operator.mul, np.sum), Algebra(0, operator.add, np.max)
# A hard zero among whole numbers: less than any that are not.
NEVER = -(1 << 4000)


def summed(num_states: tuple[int, ...], weights: Weights, keep: int | None, algebra: Algebra = SUMS) -> Any:
    """The sum over all variables but one; always the variable next whose table is smallest."""
    left = list(weights)
    variables = {i for i in range(len(num_states)) if i != keep}
    around = {i: {i}.union(*(scope for scope, _ in left if i in scope)) for i in range(len(num_states))}
    while variables:
        i = min(variables, key=lambda v: (math.prod(num_states[u] for u in around[v]), v))
        variables.remove(i)
        mine = [item for item in left if i in item[0]]
        left = [item for item in left if i not in item[0]]
        others = around.pop(i) - {i}
        for u in others:
            around[u] = (around[u] | others) - {i}
        scope = (*sorted(others), i)
        left.append((scope[:-1], algebra.along(product(num_states, mine, scope, algebra), axis=-1)))
    return product(num_states, left, () if keep is None else (keep,), algebra)


def product(num_states: tuple[int, ...], factors: Weights, scope: Scope, algebra: Algebra) -> Any:
    """The product of tables over these variables, smaller ones first: they are multiplied with fewer entries."""
    out: Any = np.full([1] * len(scope), algebra.one, dtype=object)
    for mine, table in sorted(factors, key=lambda item: len(item[0])):
        shape = [num_states[i] if i in mine else 1 for i in scope]
        order = sorted(range(len(mine)), key=lambda a: scope.index(mine[a]))
        out = algebra.both(out, np.asarray(table, dtype=object).transpose(order).reshape(shape))
    return np.broadcast_to(np.asarray(out, dtype=object), [num_states[i] for i in scope])


# -- exponentials ----------------------------------------------------------------------------------------------------

# exp by decimals takes 50 microseconds, and is most of the time of all: e^x = 10^k e^r with 0 <= r < log 10, and of r
# three digits at a time are looked up, until a few terms of the series are enough.
PLACES, GROUP = 72, 1000
SCALE = 10**PLACES
with localcontext(Context(prec=500)):
    LOG_10 = int(Decimal(10).ln() * ONE)


@cache
def looked_up(group: int, digits: int) -> int:
    """e^(digits / 1000^group) with PLACES after the point."""
    with localcontext(Context(prec=PLACES + 10)):
        return int((Decimal(digits) / GROUP**group).exp() * SCALE)


def exponential(x: int) -> Decimal:
    """e^x of a number <= 0 in units of 2^-1074, to some seventy digits."""
    if x == 0:
        return Decimal(1)
    k, r = divmod(x, LOG_10)
    rest = (r * SCALE) >> BITS
    out = SCALE
    for group in (1, 2, 3):
        digits, rest = divmod(rest, SCALE // GROUP**group)
        out = out * looked_up(group, digits) // SCALE
    term = series = SCALE
    for n in range(1, 8):  # rest < 10^-9
        term = term * rest // (n * SCALE)
        series += term
    return Decimal(out * series // SCALE).scaleb(k - PLACES, CONTEXT)


def as_decimal(x: int) -> Decimal:
    """A number in units of 2^-1074."""
    exact = Fraction(x, ONE)
    return Decimal(exact.numerator) / Decimal(exact.denominator)


def difference(first: Decimal, second: Decimal) -> Decimal:
    """Of two logarithms; none where it is no more than what both may be off by."""
    between = first - second
    return between if abs(between) > OWN_ERROR * (abs(first) + abs(second) + 1) else Decimal(0)
