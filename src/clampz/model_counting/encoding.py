"""A model as weighted clauses: what a model counter counts.

Booleans are numbered from 1, and a literal is a boolean or, negated, minus its number.

- A variable of two states is one boolean; one of more has a boolean per state, exactly one of which holds.
- A hard zero is a clause: not these states together.  Zeros of a table are merged into few clauses (`covers`).
- Potentials of single variables are weights of their literals.  Of larger tables, entries of the same value v share a
  boolean p with weights v (p) and 1 - v (not p), and clauses say that p holds wherever such an entry does: there the
  weight is v, elsewhere p is free and the two weights add up to 1.  Tables are scaled so that their largest value is 1,
  which needs no boolean; zeros may be inside of the cubes of other values, where they make them wider.

    log Z = scale + log sum over the satisfying assignments of the product of the weights of their literals
"""

import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clampz.model import Model
from clampz.model_counting.covers import Cube, cover
from clampz.numerics import EPS, LARGEST_LOG, Floats, Integers
from clampz.runtime.budget import Budget

# States up to which any two of a variable exclude each other by a clause; beyond, a chain of booleans does it with a
# number of clauses that is linear in the states.
MOST_IN_PAIRS = 6
# Literals in all clauses; a counter does not come to an end on more.  (Four bytes each here, some twenty there.)
MOST_LITERALS = 20_000_000
# Tables between two looks at the clock.
LOOK_AFTER = 64


class TooMuch(Exception):  # noqa: N818 (no error, and seen by nobody outside)
    """Says why a model cannot be written as clauses."""


@dataclass(frozen=True, kw_only=True)
class Clauses:
    """Weighted clauses.

    Attributes
    ----------
    literals
        The clauses in turn, each ended by a zero.
    weights
        (booleans, 2) of each boolean, and of its negation.
    scale, error
        What is to be added to the log of the count, and how far off rounding may leave the sum: the weights are floats.
    literal_of_state
        A literal per state of each variable in turn, 0 where a variable has one state only.
    about, lowest, highest
        The log of the count as if all tables were independent of each other; no count but 0 is outside of the others.
    """

    literals: NDArray[np.int32]
    weights: Floats
    scale: float
    error: float
    literal_of_state: Integers
    about: float
    lowest: float
    highest: float

    @property
    def num_booleans(self) -> int:
        return len(self.weights)

    @property
    def num_clauses(self) -> int:
        return int(np.count_nonzero(self.literals == 0))

    @property
    def has_empty(self) -> bool:
        """Whether there is a clause that plainly nothing satisfies."""
        ends = np.concatenate([[True], self.literals == 0])
        return bool((ends[1:] & ends[:-1]).any())


def encode(model: Model, budget: Budget | None = None) -> Clauses:
    """The clauses of a model; raises TooMuch where they would be too many, and Cancelled when the budget ends."""
    return _Encoder(model, budget).encode()


class _Encoder:
    """Clauses as they are written."""

    def __init__(self, model: Model, budget: Budget | None) -> None:
        self._model = model
        self._watch = budget
        self._literals = array("i")
        self._positive: list[float] = []
        self._negative: list[float] = []
        self._covers: dict[tuple[tuple[int, ...], bytes, bytes], list[Cube]] = {}
        self._scale = model.constant
        self._error = EPS * abs(model.constant)
        self._about = self._lowest = self._highest = 0.0
        self._num_tables = 0

    def encode(self) -> Clauses:
        start, num_states = self._model.unary.start, self._model.num_states
        literals = np.zeros(start[-1], dtype=np.int64)
        for i, size in enumerate(num_states.tolist()):
            self._look()
            table = self._scaled(self._model.unary[i])
            literals[start[i] : start[i + 1]] = self._variable(table, size)
        for scope, table in self._tables():
            self._look()
            places = [literals[start[i] : start[i + 1]].tolist() for i in scope]
            self._table(self._scaled(table), places)
        weights = np.column_stack([self._positive, self._negative]) if self._positive else np.zeros((0, 2))
        return Clauses(
            literals=np.array(self._literals, dtype=np.int32),
            weights=weights,
            scale=self._scale,
            error=self._error,
            literal_of_state=literals,
            about=self._about,
            lowest=self._lowest,
            highest=self._highest,
        )

    def _tables(self) -> Iterator[tuple[list[int], Floats]]:
        """Yield the scopes and tables over two and more variables."""
        for k, scope in enumerate(self._model.edges.tolist()):
            yield scope, self._model.pairwise.at(k)
        for variables, table in self._model.factors:
            yield list(variables), table

    def _look(self) -> None:
        if self._watch is not None and self._num_tables % LOOK_AFTER == 0:
            self._watch.check_stop()
        if len(self._literals) > MOST_LITERALS:
            raise TooMuch(f"as clauses it has more than {MOST_LITERALS:,} literals")
        self._num_tables += 1

    def _scaled(self, table: Floats) -> Floats:
        """A table whose largest entry is 0; what it was goes into the scale, and what is known of the count."""
        top = float(table.max())
        if top == -math.inf:
            self._clause([])
            return table
        self._scale += top
        scaled = table - top
        finite = scaled[scaled > -math.inf]
        least = float(finite.min())
        if least < -LARGEST_LOG:
            raise TooMuch(f"entries of a table differ by {-least:.3g} nats, and weights by at most {LARGEST_LOG:.0f}")
        # the difference, the exponential and 1 - v are each rounded, and so are additions to the scale
        self._error += EPS * (4 - least + abs(top) + abs(self._scale))
        self._lowest += least
        self._about += math.log(float(np.exp(finite).sum()) / table.size)
        return scaled

    def _variable(self, table: Floats, size: int) -> list[int]:
        """The literals of its states."""
        self._highest += math.log(size)
        self._about += math.log(size)
        if size == 1:
            return [0]
        weights = np.exp(table).tolist()
        if size == 2:
            x = self._boolean(weights[1] or 1.0, weights[0] or 1.0)
            literals = [-x, x]
        else:
            literals = [self._boolean(weight or 1.0) for weight in weights]
            self._exactly_one(literals)
        for literal, weight in zip(literals, weights, strict=True):
            if weight == 0.0:
                self._clause([-literal])
        return literals

    def _exactly_one(self, literals: list[int]) -> None:
        self._clause(literals)
        if len(literals) <= MOST_IN_PAIRS:
            for a, first in enumerate(literals):
                for second in literals[:a]:
                    self._clause([-first, -second])
            return
        # at[a]: one of the states up to a holds
        at = literals[0]
        for literal in literals[1:-1]:
            upto = self._boolean(1.0)
            self._clause([-at, -literal])
            self._clause([-at, upto])
            self._clause([-literal, upto])
            self._clause([at, literal, -upto])
            at = upto
        self._clause([-at, -literals[-1]])

    def _table(self, table: Floats, places: list[list[int]]) -> None:
        """Clauses of a scaled table; places[axis][a] is the literal of state a of that axis."""
        zero = table == -math.inf
        num_zeros = np.count_nonzero(zero)
        if num_zeros == table.size:
            return
        for cube in self._cover(zero, zero) if num_zeros else ():
            self._clause(_beyond(cube, places))
        if num_zeros + np.count_nonzero(table == 0.0) == table.size:
            return
        values = np.unique(table)
        for value in values[(values > -math.inf) & (values < 0.0)].tolist():
            weight = math.exp(value)
            shared = self._boolean(weight, 1.0 - weight)
            must = table == value
            for cube in self._cover(must, must | zero):
                self._clause([*_beyond(cube, places), shared])

    def _cover(self, must: np.ndarray, may: np.ndarray) -> list[Cube]:
        key = must.shape, np.packbits(must).tobytes(), np.packbits(may).tobytes()
        if key not in self._covers:
            self._covers[key] = cover(must, may)
        return self._covers[key]

    def _boolean(self, weight: float, negated: float = 1.0) -> int:
        self._positive.append(weight)
        self._negative.append(negated)
        return len(self._positive)

    def _clause(self, literals: list[int]) -> None:
        self._literals.extend(literals)
        self._literals.append(0)


def _beyond(cube: Cube, places: list[list[int]]) -> list[int]:
    """The clause that keeps an assignment out of a cube."""
    return [
        -states[side] if side >= 0 else states[~side]
        for side, states in zip(cube, places, strict=True)
        if side is not None and states[0] != 0
    ]
