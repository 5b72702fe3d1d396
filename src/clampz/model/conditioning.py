"""What is left of a model when variables are fixed, or some of their states ruled out.

Fixed variables either go (`without_known`, `without_fixed`) or keep their place (`Model.condition`, `keep_only`), as
they do in all that users see.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clampz.errors import EvidenceError
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.conditioned_data import with_fixed_states
from clampz.model.data import restricted_to
from clampz.model.evidence import Evidence
from clampz.model.model import Model
from clampz.model.model_checks import check_model
from clampz.numerics import EPS, Floats, Integers, largest_size


def states_left(possible: NDArray[np.bool_], start: Integers) -> Integers:
    """(n,) or (n, B) count the possible states of each variable, in a mask (S,) or (S, B).

    `start` is where each variable's states begin.  1: the variable is fixed; 0: Z = 0.

    >>> states_left(np.array([True, False, True, True, True]), np.array([0, 2, 5])).tolist()
    [1, 3]
    """
    if len(start) == 1:
        return np.zeros((0, *possible.shape[1:]), dtype=np.int64)
    left: Integers = np.add.reduceat(possible, start[:-1], axis=0, dtype=np.int64)
    return left


def keep_only(unary: Floats, start: Integers, variable: int, states: Sequence[int] | Integers) -> None:
    """Rule out all other states of a variable, in unary potentials (S,) or in each lane of (S, k).

    >>> unary = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> keep_only(unary, np.array([0, 2, 5]), 1, [1, 2])
    >>> unary.tolist()
    [1.0, 2.0, -inf, 4.0, 5.0]
    """
    rows = start[variable] + np.asarray(states, dtype=np.int64)
    kept = unary[rows]
    unary[start[variable] : start[variable + 1]] = -np.inf
    unary[rows] = kept


def given(model: Model, evidence: Evidence | None) -> Model:
    """Condition a model on the evidence of a call, if there is any: see `Model.condition`."""
    check_model(model)
    return model if evidence is None else model.condition(evidence)


def without_known(model: Model, evidence: Evidence) -> Model:
    """Remove variables whose states are known; Z of the rest is the probability of the evidence times Z."""
    known = model.as_evidence(evidence)
    others = np.delete(np.arange(model.num_variables), list(known))
    return Model.from_contents(restricted_to(with_fixed_states(model.contents, known, evidence), others))


def without_fixed(model: Model, unary: Floats) -> Model | None:
    """Remove the variables that unary potentials (S,) leave one state; names are dropped.

    None where that shows that Z = 0.
    """
    start, possible = model.unary.start, unary > -np.inf
    left = states_left(possible, start)
    if (left == 0).any():
        return None
    known = {int(i): int(np.argmax(possible[start[i] : start[i + 1]])) for i in np.flatnonzero(left == 1)}
    whole = Model.from_contents(model.contents._replace(unary=unary, names=None, state_names=None))
    try:
        return without_known(whole, known) if known else whole
    except EvidenceError:
        return None


def max_tables_per_variable(model: Model) -> int:
    """Count the tables of edges and larger factors that share a variable, at the most."""
    factors = np.bincount(model.factors.variables, minlength=model.num_variables)
    return int((model.topology.degrees + factors).max(initial=0))


def may_overflow(model: Model) -> bool:
    """Whether potentials summed over the tables of a variable might leave the range that models have."""
    larger = max(largest_size(model.pairwise.flat), largest_size(model.factors.flat))
    return largest_size(model.unary.flat) + larger * max_tables_per_variable(model) > LARGEST_POTENTIAL


def rounding_of_sums(model: Model, unary: Floats) -> float:
    """Bound the rounding error in log Z of a model with unary potentials (S,) where potentials were added because
    variables are fixed."""
    tables = unary, model.pairwise.flat, model.factors.flat
    sizes = [float(np.abs(flat[np.isfinite(flat)]).sum()) for flat in tables]
    return 4 * EPS * (1 + max_tables_per_variable(model)) * (sum(sizes) + abs(model.constant))
