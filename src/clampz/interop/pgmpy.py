"""pgmpy's discrete networks: Markov networks, factor graphs, junction trees and Bayesian networks, also under the names
of its older releases."""

from itertools import combinations
from typing import Any, Literal

from clampz.errors import ModelError, library
from clampz.interop.common import from_values, in_order, value_factors
from clampz.model import Evidence, Model
from clampz.model.model_checks import check_model
from clampz.runtime.options import check_option, is_one_of, knows_its_options

BAYESIAN = ("DiscreteBayesianNetwork", "BayesianNetwork", "BayesianModel")
MARKOV = ("DiscreteMarkovNetwork", "MarkovNetwork", "MarkovModel")
# Their nodes are not all variables: factors, or cliques of variables.
OF_FACTORS = ("FactorGraph", "ClusterGraph")


@knows_its_options
def from_pgmpy(network: Any, *, evidence: Evidence | None = None) -> Model:
    """Convert a discrete network: the product of its factors, or of its conditional probability tables.

    A Bayesian network has log Z = 0, and given evidence log Z is the logarithm of the evidence's probability.

    Parameters
    ----------
    network
        pgmpy's Bayesian network, Markov network, factor graph, cluster graph or junction tree.
    evidence
        `{variable: state}` in the labels and states of the network: the model is conditioned on it at once.

    Returns
    -------
    Model
        Variables and states have the network's names.

    Raises
    ------
    MissingLibraryError
        Where pgmpy is not installed.
    ModelError
        Where the network is of another kind, or factors do not fit together.
    EvidenceError
        Where evidence names a variable or a state that the model does not have, or contradicts itself.

    Examples
    --------
    Ready for any method::

        cz.exact(cz.from_pgmpy(network, evidence={"alarm": "on"})).log_z
    """
    models = library("pgmpy.models")
    bayesian, markov, of_factors = (
        isinstance(network, _classes(models, names)) for names in (BAYESIAN, MARKOV, OF_FACTORS)
    )
    if not (bayesian or markov or of_factors):
        raise ModelError(
            "expected a discrete Markov network, factor graph or Bayesian network of pgmpy, "
            f"found {type(network).__name__}"
        )
    factors = list(network.cpds if bayesian else network.factors)
    discrete = library("pgmpy.factors.discrete").DiscreteFactor
    states: dict[Any, list[Any]] = {}
    for factor in factors:
        if not isinstance(factor, discrete):
            raise ModelError(f"expected discrete factors, found {type(factor).__name__}")
        _gather_states(states, factor)
    nodes = list(network.nodes())
    covered = {factor.variable for factor in factors} if bayesian else set(states)
    missing = [] if of_factors else [node for node in nodes if node not in covered]
    if missing:
        raise ModelError(
            f"variable {missing[0]!r} has no {'CPD' if bayesian else 'factor'}, "
            "so that nothing says what its potentials are"
        )
    labels = in_order(list(dict.fromkeys([node for node in nodes if node in states] + list(states))))
    return from_values(
        labels, [states[label] for label in labels], [(factor.variables, factor.values) for factor in factors], evidence
    )


def to_pgmpy(model: Model, kind: Literal["markov", "factor graph"] = "markov") -> Any:
    """Convert to a DiscreteMarkovNetwork, or a FactorGraph, whose factors multiply to exp(score).

    Variables without names are called "0", "1", ...

    Parameters
    ----------
    model
        Of at least one variable.
    kind
        "markov", or "factor graph".

    Returns
    -------
    pgmpy.models.DiscreteMarkovNetwork or pgmpy.models.FactorGraph
        Its factors have values, where the model has logarithms.

    Raises
    ------
    MissingLibraryError
        Where pgmpy is not installed.
    ModelError
        Where a potential is too large, or too small, for a value.

    Examples
    --------
    And back::

        cz.from_pgmpy(cz.to_pgmpy(model))
    """
    check_model(model)
    check_option(is_one_of(kind, ("markov", "factor graph")), "kind", "'markov' or 'factor graph'", kind)
    models, discrete = library("pgmpy.models"), library("pgmpy.factors.discrete")
    names = model.names or [str(i) for i in range(model.num_variables)]
    factors = []
    for scope, values in value_factors(model, "pgmpy"):
        states = {names[i]: list(model.state_names[i]) for i in scope} if model.state_names else {}
        factors.append(discrete.DiscreteFactor([names[i] for i in scope], values.shape, values, state_names=states))
    if kind == "factor graph":
        network = models.FactorGraph()
        network.add_nodes_from(names)
        network.add_factors(*factors)
        network.add_nodes_from(factors)
        network.add_edges_from((name, factor) for factor in factors for name in factor.variables)
        return network
    network = _classes(models, MARKOV)[0]()
    network.add_nodes_from(names)
    network.add_edges_from(pair for factor in factors for pair in combinations(factor.variables, 2))
    network.add_factors(*factors)
    return network


def _classes(models: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return pgmpy's classes of these names, of which a release has some."""
    return tuple(getattr(models, name) for name in names if hasattr(models, name))


def _gather_states(states: dict[Any, list[Any]], factor: Any) -> None:
    """Add the states of a factor's variables; a factor that only numbers them leaves their names to the others."""
    for label, size in zip(factor.variables, factor.cardinality, strict=True):
        numbered = list(range(int(size)))
        known = list(factor.state_names.get(label, numbered))
        before = states.setdefault(label, known)
        if len(before) != size or (before != known and before != numbered and known != numbered):
            where = f"factor over {tuple(factor.variables)}"
            raise ModelError(f"{where}: variable {label!r} has states {known}, and {before} in another factor")
        if before == numbered:
            states[label] = known
