"""Parts of a model: what clamping leaves of it, and its connected components."""

import numpy as np

from clampz.elimination import EPS
from clampz.errors import EvidenceError
from clampz.model import Model
from clampz.tables import Floats, Integers, ranges


def reduced(model: Model, unary: Floats) -> Model | None:
    """The pairwise model with these unary potentials (S,), cut down to the variables that have a choice of states; the others are worked into it.

    None where that shows that Z = 0.
    """
    start = model.unary.start
    left = np.add.reduceat(unary > -np.inf, start[:-1])
    if (left == 0).any():
        return None
    given = {int(i): int(np.argmax(unary[start[i] : start[i + 1]] > -np.inf)) for i in np.flatnonzero(left == 1)}
    whole = Model.from_flat(model.num_states, unary, model.edges, model.pairwise.flat, constant=model.constant)
    try:
        return whole.condition(given) if given else whole
    except EvidenceError:
        return None


def reduction_error(model: Model, unary: Floats) -> float:
    """Bound on what rounding may have changed in log Z when a model was reduced: an addition for every edge."""
    largest = np.abs(np.where(np.isfinite(model.pairwise.flat), model.pairwise.flat, 0.0))
    sizes = float(np.abs(unary[np.isfinite(unary)]).sum() + largest.sum() + abs(model.constant))
    return 4 * EPS * (1 + int(model.topology.degrees.max(initial=0))) * sizes


def components(model: Model) -> list[Model]:
    """The connected components of a pairwise model, each as a model of its own without the constant."""
    labels = model.topology.components
    number = int(labels.max(initial=-1)) + 1
    return [component(model, np.flatnonzero(labels == k)) for k in range(number)]


def component(model: Model, variables: Integers) -> Model:
    """The model of some variables and the edges among them, without the constant."""
    place = np.full(model.num_variables, -1, dtype=np.int64)
    place[variables] = np.arange(len(variables))
    edges = np.flatnonzero((place[model.edges] >= 0).all(axis=1))
    tables = model.pairwise.start
    return Model.from_flat(
        model.num_states[variables],
        model.unary.flat[ranges(model.unary.start[:-1][variables], model.num_states[variables])],
        place[model.edges[edges]].reshape(-1, 2),
        model.pairwise.flat[ranges(tables[edges], tables[edges + 1] - tables[edges])],
    )
