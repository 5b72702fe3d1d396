"""Counts by Ganak (`pyganak`): the best counter there is, and right with high probability only.

Ganak knows parts of a formula again by a hash of them and does not compare them, and its Python package has no switch
for that; two parts of the same hash would make the count wrong.  It computes with 128 bits but gives a float, which has
an end on either side: where the count is 0 or inf, all is scaled, and it counts again.
"""

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec

import numpy as np

from clampz.model_counting.encoding import Clauses
from clampz.model_counting.subprocesses import Failed, Program, wait_for
from clampz.numerics import Floats
from clampz.runtime.budget import Budget, Cancelled

# A float between 2 to minus this and 2 to this has all its digits, with room to spare.
MOST_BITS = 960
LOG_2 = math.log(2.0)


def is_there() -> bool:
    """Whether the package is installed."""
    return find_spec("pyganak") is not None


def log_count(clauses: Clauses, budget: Budget, memory: int) -> float:
    """The log of the count; raises Failed where there is none, Cancelled where the budget ends before."""
    if not is_there():
        raise Failed("Ganak is not installed")
    window = Window(clauses)
    while True:
        budget.check_stop()
        with start(clauses, window.center, memory) as program:
            if not wait_for([program], budget):
                raise Cancelled
            (count,) = counts(program, 1).tolist()
        if window.holds(count):
            return math.log(count) + window.center * LOG_2
        if not window.move(up=count > 1.0):
            return -math.inf


def log_counts(clauses: Clauses, about: float, literals: Sequence[int], budget: Budget, memory: int) -> Floats:
    """The logs of the counts under each of some literals, none of which is above `about`."""
    # the largest near the upper end of the window: what is too small for floats at its lower end is nothing beside it
    center = round(about / LOG_2) - MOST_BITS
    num_programs = min(os.cpu_count() or 1, len(literals))
    parts = [literals[k::num_programs] for k in range(num_programs)]
    found = np.empty(len(literals))
    with ExitStack() as ends:
        programs = [ends.enter_context(start(clauses, center, memory // num_programs, part)) for part in parts]
        left = dict(zip(programs, range(num_programs), strict=True))
        while left:
            done = wait_for(list(left), budget)
            if not done:
                raise Cancelled
            for program in done:
                k = left.pop(program)
                found[k::num_programs] = counts(program, len(parts[k]))
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(found) + center * LOG_2
    return logs


class Window:
    """Where the count is looked for: logs to base two that a float holds after scaling, first where the count is
    likely to be, then below or above."""

    def __init__(self, clauses: Clauses) -> None:
        self._lowest, self._highest = math.floor(clauses.lowest / LOG_2), math.ceil(clauses.highest / LOG_2)
        self.center = min(max(round(clauses.about / LOG_2), self._lowest), self._highest)

    def holds(self, count: float) -> bool:
        """Whether a scaled count has all its digits."""
        return 2.0**-MOST_BITS <= count <= 2.0**MOST_BITS

    def move(self, *, up: bool) -> bool:
        """Go on beside this window, which does not hold the count; False if no count is there: it is 0."""
        if up:
            self._lowest = self.center + MOST_BITS
        else:
            self._highest = self.center - MOST_BITS
        self.center += 2 * MOST_BITS if up else -2 * MOST_BITS
        return self._lowest <= self._highest


def start(clauses: Clauses, center: int, memory: int, literals: Sequence[int] = (0,)) -> Program:
    """Begin to count under each of some literals (0: none of them), everything divided by two to the power `center`."""
    # booleans that hold, with weights whose product is the scale
    powers = np.diff(np.linspace(0, -center, abs(center) // MOST_BITS + 2).astype(np.int64))
    weights = np.vstack([clauses.weights, np.column_stack([np.ldexp(1.0, powers), np.ones(len(powers))])])
    held = np.zeros((len(powers), 2), dtype=np.int32)
    held[:, 0] = len(clauses.weights) + 1 + np.arange(len(powers))
    arrays = {"literals": np.concatenate([clauses.literals, held.ravel()]), "weights": weights}
    return Program("Ganak", {"work": "count", "seed": 0, "literals": list(literals)}, arrays, memory)


def counts(program: Program, expected: int) -> Floats:
    """What it has counted."""
    try:
        found = np.array([float.fromhex(word) for word in program.answer().decode().split()])
    except ValueError:
        raise Failed("Ganak gave no numbers") from None
    if len(found) != expected or np.isnan(found).any() or (found < 0.0).any():
        raise Failed(f"Ganak gave {found[:3].tolist()}, which is no count")
    return found
