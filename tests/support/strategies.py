"""Hypothesis strategies for small graphs and models, and the plain enumeration they are checked against."""

import itertools

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from clampz.model import Model

EXACT = 1e-10

finite = st.floats(-4, 4)
finite_or_hard = finite | st.just(-np.inf)


@st.composite
def graphs(draw, max_variables=9):
    """(n, edges): sorted, distinct, without self-loops."""
    n = draw(st.integers(1, max_variables))
    pairs = list(itertools.combinations(range(n), 2))
    chosen = draw(st.sets(st.sampled_from(pairs), max_size=2 * n)) if pairs else set()
    return n, np.array(sorted(chosen), dtype=np.int32).reshape(-1, 2)


@st.composite
def binary_models(draw, max_variables=6, weights=finite):
    """Models in the paper's binary form."""
    n, edges = draw(graphs(max_variables))
    theta = draw(arrays.arrays(np.float64, n, elements=finite))
    W = draw(arrays.arrays(np.float64, len(edges), elements=weights))
    return Model.from_binary(theta, W, edges, constant=draw(finite))


@st.composite
def parts(draw, max_variables=4, max_states=3, elements=finite, min_states=1):
    """Unary tables, and pairs ((i, j), table) in both directions, some of them on the same edge."""
    num_states = draw(st.lists(st.integers(min_states, max_states), min_size=1, max_size=max_variables))
    unary = [draw(arrays.arrays(np.float64, size, elements=elements)) for size in num_states]
    pairs = list(itertools.permutations(range(len(num_states)), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=6)) if pairs else []
    return unary, [
        ((i, j), draw(arrays.arrays(np.float64, (num_states[i], num_states[j]), elements=elements))) for i, j in chosen
    ]


@st.composite
def models(draw, max_variables=4, max_states=3, elements=finite, min_states=1):
    """Models of any numbers of states."""
    unary, pairwise = draw(parts(max_variables, max_states, elements, min_states))
    return Model(unary, pairwise, constant=draw(finite))


def configurations(model):
    """All configurations of a small model."""
    return itertools.product(*map(range, model.num_states.tolist()))


def score(unary, pairwise, constant, x):
    """The definition, term by term."""
    return constant + sum(unary[i][a] for i, a in enumerate(x)) + sum(table[x[i]][x[j]] for (i, j), table in pairwise)


def model_score(model, x):
    return score(model.unary, model.pairwise.items(), model.constant, x)


def close(a, b):
    """Equal up to rounding, infinities included."""
    return a == b or abs(a - b) <= EXACT
