"""What all libraries' converters share: labels as names, evidence in their labels, values as logarithms."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clampz.display.formatting import some
from clampz.errors import EvidenceError, ModelError, did_you_mean
from clampz.model import Evidence, Model
from clampz.model.evidence import as_mapping
from clampz.numerics import LARGEST_LOG, Floats
from clampz.runtime.options import is_whole


def is_numbering(labels: Sequence[Hashable]) -> bool:
    """Whether labels are the whole numbers from 0 on, in any order."""
    return all(map(is_whole, labels)) and set(labels) == set(range(len(labels)))


def in_order(labels: Sequence[Hashable]) -> list[Any]:
    """Order labelled variables: as they come, or by number where the labels are numbers from 0 on."""
    return list(range(len(labels))) if is_numbering(labels) else list(labels)


def as_names(labels: Sequence[Hashable], what: str = "variables") -> list[str] | None:
    """Name each label by a string, or None where the labels are the indices."""
    if list(labels) == list(range(len(labels))) and is_numbering(labels):
        return None
    names = [str(label) for label in labels]
    label_of: dict[str, Hashable] = {}
    for name, label in zip(names, labels, strict=True):
        if name in label_of:
            raise ModelError(
                f"{what} {label_of[name]!r} and {label!r} would both be called {name!r}; relabel one of them"
            )
        label_of[name] = label
    return names


def as_state_names(states: Sequence[Sequence[Hashable]], labels: Sequence[Hashable]) -> list[list[str]] | None:
    """Name each state of each variable by a string, or None where all of them are indices."""
    names = [as_names(known, f"states of variable {label!r},") for known, label in zip(states, labels, strict=True)]
    if all(known is None for known in names):
        return None
    return [[str(a) for a in range(len(states[i]))] if known is None else known for i, known in enumerate(names)]


def conditioned(
    model: Model, evidence: Evidence | None, labels: Sequence[Any], states: Sequence[Sequence[Any]]
) -> Model:
    """Condition on evidence, or likelihoods, in the other library's labels of variables and states; all variables
    stay."""
    if evidence is None:
        return model
    index_of = {label: i for i, label in enumerate(labels)}
    given: dict[int, Any] = {}
    for label, state in as_mapping(evidence).items():
        if label not in index_of:
            near = did_you_mean(str(label), map(str, labels))
            raise EvidenceError(f"evidence: unknown variable {label!r}; there are {some(labels)}{near}")
        i, known = index_of[label], list(states[index_of[label]])
        if isinstance(state, Hashable) and state in known:
            a = known.index(state)
            given[i] = model.state_names[i][a] if model.state_names is not None else a
        elif isinstance(state, list | np.ndarray):
            given[i] = state
        else:
            near = did_you_mean(str(state), map(str, known))
            raise EvidenceError(f"evidence: unknown state {state!r} of variable {label!r}; it has {some(known)}{near}")
    return model.condition(given)


def from_values(
    labels: Sequence[Any],
    states: Sequence[list[Any]],
    factors: Iterable[tuple[Sequence[Any], ArrayLike]],
    evidence: Evidence | None,
) -> Model:
    """Build a model of labelled variables and states from pairs (labels, values), given evidence in these labels."""
    index_of = {label: i for i, label in enumerate(labels)}
    model = Model.from_factors(
        [len(known) for known in states],
        [
            (tuple(index_of[label] for label in scope), as_logs(values, f"factor over {tuple(scope)}"))
            for scope, values in factors
        ],
        names=as_names(labels),
        state_names=as_state_names(states, labels),
    )
    return conditioned(model, evidence, labels, states)


def as_logs(values: ArrayLike, where: str) -> Floats:
    """Take logarithms of potentials given as values."""
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= 0) & (array < np.inf))  # (nan fails both)
    if bad.any():
        raise ModelError(f"{where}: expected finite values >= 0, found {array[bad][0]}")
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(array)
    return logs


def value_factors(model: Model, package: str) -> list[tuple[tuple[int, ...], Floats]]:
    """List factors (scope, values) whose product is exp(score). At least one per variable, one per scope, the constant
    spread evenly over them."""
    if not model.num_variables:
        raise ModelError(f"a model without variables has no factors for {package} to keep its constant in")
    pairs = [((i, j), model.pairwise[i, j]) for i, j in model.pairwise]
    covered = {i for scope, _ in [*pairs, *model.factors] for i in scope}
    single = [((i,), table) for i, table in enumerate(model.unary) if table.any() or i not in covered]
    factors: list[tuple[tuple[int, ...], Floats]] = [*single, *pairs, *model.factors]
    share = model.constant / len(factors)
    found = []
    for scope, table in factors:
        logs = table + share
        extreme = logs[np.isfinite(logs) & (np.abs(logs) > LARGEST_LOG)]
        if extreme.size:
            where = tuple(model.names[i] for i in scope) if model.names else scope
            raise ModelError(
                f"factor over {where}: {package} keeps values, and exp({extreme[0]:g}) is none a float can hold"
            )
        found.append((scope, np.exp(logs)))
    return found
