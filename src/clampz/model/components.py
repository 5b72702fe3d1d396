"""Connected components of a model, along edges and larger factors, and each as a model of its own."""

import numpy as np

from clampz._kernels import graph
from clampz.model.data import restricted_to
from clampz.model.model import Model
from clampz.model.tables import read_only
from clampz.numerics import Integers


def component_labels(model: Model) -> Integers:
    """(n,) label the connected component of each variable, along edges and larger factors."""
    factors = model.factors
    if not factors:
        return model.topology.components
    along = np.ones(len(factors.variables), dtype=np.bool_)  # from each variable of a scope to the next
    along[factors.scope_start[1:] - 1] = False
    ties = np.stack([factors.variables, np.roll(factors.variables, -1)], axis=1)[along]
    edges = read_only(np.concatenate([model.edges, ties]).astype(np.int32))
    labels: Integers = graph.component_labels(model.num_variables, edges)
    return labels


def num_components(model: Model) -> int:
    return int(component_labels(model).max(initial=-1)) + 1


def components(model: Model, *, small: float = 0.0, most: int | None = None) -> list[Model]:
    """Split a model into its connected components, each a model of its own without the constant. Components of at most
    2^small joint states are one model together, unless that were all of it. Beyond `most` models several are one, about
    as many in each."""
    labels = component_labels(model)
    if not labels.size:
        return []
    size = np.bincount(labels, np.log2(model.num_states))
    bundled = size <= small
    if bundled.all() and len(size) > 1:
        bundled[:] = False
    # the numbers of the models: of the large components first, largest first, then one of all small ones
    number = np.empty(len(size), dtype=np.int64)
    large = np.flatnonzero(~bundled)
    number[large[np.argsort(-size[large], kind="stable")]] = np.arange(len(large))
    number[bundled] = len(large)
    if most is not None:
        number %= most
    of_variable = number[labels]
    order = np.argsort(of_variable, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(of_variable))[:-1])
    return [component(model, variables) for variables in members]


def component(model: Model, variables: Integers) -> Model:
    """Restrict a model to some variables and the tables over them alone, without the constant."""
    return Model.from_contents(
        restricted_to(model.contents._replace(constant=0.0, names=None, state_names=None), variables)
    )
