"""Models made of what the rules of the presolve look for, drawn entry by entry, so that Hypothesis can shrink them."""

from math import prod
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import clampz as cz

# Joint states of a model, and entries of a table: each is visited in decimals.
MOST_CONFIGURATIONS, MOST_ENTRIES = 300, 64
# Tenths are not exact in binary: sums of them are nearly equal, up to rounding.
ENTRIES = st.integers(-30, 30).map(lambda tenths: tenths / 10)
# What an entry may be off by: nothing, a few roundings, around what is called equal, and more than that.
NUDGES = st.sampled_from([0.0, 0.0, 0.0, 2.0**-52, 1e-15, 4e-15, 3e-14, 1e-12, 1e-10, 1e-6])
SCALES = st.sampled_from([1.0, 1.0, 1.0, 1.0, 1e-3, 20.0, 1e9])


class Case(NamedTuple):
    """A model as its factors, and what is asked of the presolve; printed as it is written."""

    num_states: list
    factors: list
    constant: float = 0.0
    keep: tuple = ()
    evidence: dict | None = None
    marginals: bool = True
    pairwise: bool = False
    operation: str = "sum"

    @property
    def model(self):
        return cz.Model.from_factors(self.num_states, self.factors, constant=self.constant)

    @property
    def options(self):
        """Of `clampz.simplify`."""
        names = ("keep", "operation", "evidence", "marginals", "pairwise")
        return {name: getattr(self, name) for name in names}


# Kinds of tables.  A model is made of a few of them: with all of them in each, hardly a variable would be left after
# the first rules.
HARD_KINDS = ("zeros", "pin", "clause", "parity", "function", "permutation")
KINDS = ("free", "constant", "product", "all_but_last", "distribution", *HARD_KINDS)


@st.composite
def tables(draw, shape, kinds=KINDS):
    """A table of logarithms of one of these kinds, perhaps with an entry that is a little off."""
    size, arity = prod(shape), len(shape)
    kind = draw(st.sampled_from(kinds))

    def free(of=shape):
        count = prod(of)
        return np.reshape(draw(st.lists(ENTRIES, min_size=count, max_size=count)), of)

    if kind == "constant":
        table = np.full(shape, draw(ENTRIES))
    elif kind == "zeros":
        mask = draw(st.lists(st.booleans(), min_size=size, max_size=size))
        table = np.where(np.reshape(mask, shape), -np.inf, draw(ENTRIES) if draw(st.booleans()) else free())
    elif kind == "pin":  # one state of the first variable
        allowed = np.arange(shape[0]) == draw(st.integers(0, shape[0] - 1))
        table = np.where(allowed.reshape(-1, *[1] * (arity - 1)), 0.0, -np.inf) + np.zeros(shape)
    elif kind == "product":
        table = sum(free([k if a == b else 1 for b, k in enumerate(shape)]) for a in range(arity)) + np.zeros(shape)
    elif kind == "all_but_last":
        table = free([*shape[:-1], 1]) + np.zeros(shape)
    elif kind == "distribution":  # of the last variable given the others
        table = free()
        table = table - np.log(np.exp(table).sum(axis=-1, keepdims=True))
    elif kind == "clause":  # one configuration is ruled out
        table = np.where(np.arange(size).reshape(shape) == draw(st.integers(0, size - 1)), -np.inf, 0.0)
    elif kind == "parity":
        odd = np.indices(shape).sum(axis=0) % 2
        table = np.where(odd == draw(st.integers(0, 1)), draw(ENTRIES), -np.inf)
    elif kind in ("function", "permutation") and arity > 1:  # the second variable follows from the first
        if kind == "permutation" and shape[0] == shape[1]:
            image = draw(st.permutations(range(shape[1])))
        else:
            image = draw(st.lists(st.integers(0, shape[1] - 1), min_size=shape[0], max_size=shape[0]))
        allowed = np.arange(shape[1]) == np.array(image)[:, None]
        table = np.where(allowed.reshape(*shape[:2], *[1] * (arity - 2)), free(), -np.inf)
    else:
        table = free()
    table = table * draw(SCALES)
    table.flat[draw(st.integers(0, size - 1))] += draw(NUDGES)
    return table


@st.composite
def cases(draw, operation=None, most=6, kinds=KINDS, **asked):
    """A model of a few variables of one to seven states, its factors over up to five of them; a choice of what is kept,
    known and asked for."""
    # of each with each other of four variables of two states, no sum is small enough
    dense = draw(st.sampled_from([False, False, True]))
    binary = draw(st.booleans())
    num_states = [2] * 4 if dense else []
    for _ in range(draw(st.integers(0 if dense else 1, most - len(num_states)))):
        room = MOST_CONFIGURATIONS // prod(num_states)
        num_states.append(min(room, draw(st.sampled_from([2] if binary else [2, 3, 1, 4, 7]))))
    n = len(num_states)
    variables = st.integers(0, n - 1)
    kinds = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3, unique=True))
    pairs = [(i, j) for i in range(4) for j in range(i)] if dense else []
    factors = [(pair, draw(tables((2, 2), ["free"])).tolist()) for pair in pairs]
    fresh = st.lists(variables, min_size=1, max_size=5, unique=True)
    for _ in range(draw(st.integers(n // 2, 2 * n))):
        again = [st.sampled_from([list(scope) for scope, _ in factors])] if factors else []
        scope = draw(st.one_of(fresh, fresh, *again))
        scope = scope[: draw(st.sampled_from([2, 3, 5]))]
        while prod(num_states[v] for v in scope) > MOST_ENTRIES:
            scope = scope[1:]
        factors.append((tuple(scope), draw(tables(tuple(num_states[v] for v in scope), kinds)).tolist()))
    known = draw(st.dictionaries(variables, st.integers(0, 6), max_size=2)) if draw(st.booleans()) else {}
    chosen = {
        "keep": tuple(draw(st.lists(variables, max_size=3, unique=True))) if draw(st.booleans()) else (),
        "evidence": {v: min(a, num_states[v] - 1) for v, a in known.items()} or None,
        "marginals": draw(st.booleans()),
        "pairwise": draw(st.booleans()),
        "operation": operation or draw(st.sampled_from(["sum", "max"])),
    }
    return Case(num_states, factors, draw(ENTRIES), **chosen | asked)
