"""Parts of a model: what clamping leaves of it, and its connected components."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clampz.errors import EvidenceError
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.model import Model
from clampz.model.tables import Floats, Integers, ranges
from clampz.numerics import EPS


def states_left(possible: NDArray[np.bool_], start: Integers) -> Integers:
    """(n,) or (n, B) how many states of each variable are left, of a mask (S,) or (S, B) of states that are possible.

    `start` is where each variable's states begin.  1: the variable is fixed; 0: Z = 0.

    >>> states_left(np.array([True, False, True, True, True]), np.array([0, 2, 5])).tolist()
    [1, 3]
    """
    if len(start) == 1:
        return np.zeros((0, *possible.shape[1:]), dtype=np.int64)
    left: Integers = np.add.reduceat(possible, start[:-1], axis=0, dtype=np.int64)
    return left


def reduced(model: Model, unary: Floats) -> Model | None:
    """The pairwise model with these unary potentials (S,), cut down to the variables that have a choice of states; the
    others are worked into it.

    None where that shows that Z = 0.
    """
    start = model.unary.start
    left = np.add.reduceat(unary > -np.inf, start[:-1])
    if (left == 0).any():
        return None
    given = {int(i): int(np.argmax(unary[start[i] : start[i + 1]] > -np.inf)) for i in np.flatnonzero(left == 1)}
    whole = Model._from_checked(
        model.num_states, unary, model.edges.astype(np.int64), model.pairwise.flat, model.constant, None, None
    )
    try:
        return whole.condition(given) if given else whole
    except EvidenceError:
        return None


def keep_only(unary: Floats, start: Integers, variable: int, states: Sequence[int]) -> None:
    """Rule out, in unary potentials (S,), all other states of a variable."""
    rows = start[variable] + np.array(states)
    kept = unary[rows]
    unary[start[variable] : start[variable + 1]] = -np.inf
    unary[rows] = kept


def too_large(model: Model) -> bool:
    """Whether potentials added up along the edges of a variable might leave the range that models have."""
    sizes = [np.abs(flat[np.isfinite(flat)]).max(initial=0.0) for flat in (model.unary.flat, model.pairwise.flat)]
    return float(sizes[0] + sizes[1] * model.topology.degrees.max(initial=0)) > LARGEST_POTENTIAL


def reduction_error(model: Model, unary: Floats) -> float:
    """Bound on what rounding may have changed in log Z when a model was reduced: an addition for every edge."""
    largest = np.abs(np.where(np.isfinite(model.pairwise.flat), model.pairwise.flat, 0.0))
    sizes = float(np.abs(unary[np.isfinite(unary)]).sum() + largest.sum() + abs(model.constant))
    return 4 * EPS * (1 + int(model.topology.degrees.max(initial=0))) * sizes


def components(model: Model, *, small: float = 0.0) -> list[Model]:
    """The connected components of a pairwise model, each as a model of its own without the constant; those of at most
    2^small joint states together as one."""
    labels = model.topology.components
    if not labels.size:
        return []
    size = np.bincount(labels, np.log2(model.num_states))
    bundled = size <= small
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    chosen = [variables for variables, is_small in zip(members, bundled, strict=True) if not is_small]
    if bundled.any():
        chosen.append(np.flatnonzero(bundled[labels]))
    return [component(model, variables) for variables in chosen]


def component(model: Model, variables: Integers) -> Model:
    """The model of some variables and the edges among them, without the constant."""
    place = np.full(model.num_variables, -1, dtype=np.int64)
    place[variables] = np.arange(len(variables))
    edges = np.flatnonzero((place[model.edges] >= 0).all(axis=1))
    tables = model.pairwise.start
    return Model._from_checked(
        model.num_states[variables],
        model.unary.flat[ranges(model.unary.start[:-1][variables], model.num_states[variables])],
        place[model.edges[edges]].reshape(-1, 2),
        model.pairwise.flat[ranges(tables[edges], tables[edges + 1] - tables[edges])],
        0.0,
        None,
        None,
    )
