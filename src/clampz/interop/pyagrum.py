"""Converters from and to pyAgrum's MarkovRandomField and BayesNet."""

from typing import Any

import numpy as np

from clampz.display.formatting import name_of
from clampz.errors import ModelError, library
from clampz.interop.common import from_values, value_factors
from clampz.model import Evidence, Model
from clampz.model.model_checks import check_model
from clampz.runtime.options import knows_its_options


@knows_its_options
def from_pyagrum(network: Any, *, evidence: Evidence | None = None) -> Model:
    """Convert a MarkovRandomField or a BayesNet; variables and states have their names and labels.

    A BayesNet has log Z = 0, and given evidence log Z is the logarithm of the evidence's probability.

    Parameters
    ----------
    network
        pyAgrum's MarkovRandomField or BayesNet.
    evidence
        `{variable: state}` in the labels and states of the network: the model is conditioned on it at once.

    Returns
    -------
    Model
        The product of its factors, or of its conditional probability tables.

    Raises
    ------
    MissingLibraryError
        Where pyAgrum is not installed.
    ModelError
        Where it is something else.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    A network of three variables, with random tables::

        network = pyagrum.fastBN("rain->grass<-sprinkler")
        cz.exact(cz.from_pyagrum(network, evidence={"grass": "1"})).marginal("rain")
    """
    gum = library("pyagrum")
    if isinstance(network, gum.MarkovRandomField):
        tensors = [network.factor(scope) for scope in network.factors()]
    elif isinstance(network, gum.BayesNet):
        tensors = [network.cpt(node) for node in sorted(network.nodes())]
    else:
        raise ModelError(f"expected pyAgrum's MarkovRandomField or BayesNet, found {type(network).__name__}")
    variables = [network.variable(node) for node in sorted(network.nodes())]
    return from_values(
        [variable.name() for variable in variables],
        [list(variable.labels()) for variable in variables],
        # the axes of the array are the variables from the last to the first
        [(tensor.names, tensor.toarray().reshape(tensor.shape[::-1]).T) for tensor in tensors],
        evidence,
    )


def to_pyagrum(model: Model) -> Any:
    """Convert to a MarkovRandomField whose factors multiply to exp(score); unnamed variables and states are numbered.

    Parameters
    ----------
    model
        Of at least one variable.

    Returns
    -------
    pyagrum.MarkovRandomField
        Its factors have values, where the model has logarithms.

    Raises
    ------
    MissingLibraryError
        Where pyAgrum is not installed.
    ModelError
        Where a potential is too large, or too small, for a value.

    Examples
    --------
    And back::

        cz.from_pyagrum(cz.to_pyagrum(model))
    """
    check_model(model)
    gum = library("pyagrum")
    network = gum.MarkovRandomField()
    for i, size in enumerate(model.num_states.tolist()):
        states = model.state_names[i] if model.state_names else [str(a) for a in range(size)]
        network.add(gum.LabelizedVariable(name_of(model.names, i), "", list(states)))
    for scope, values in value_factors(model, "pyAgrum"):
        tensor = gum.Tensor()
        for i in scope:
            tensor.add(network.variable(i))
        tensor[:] = np.ascontiguousarray(values.T)
        network.addFactor(tensor)
    return network
