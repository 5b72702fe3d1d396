"""Variables: how many states each has, names that may stand wherever an index may, and what evidence may be.

Evidence is `{variable: state}`, or a row or an array (see `model.evidence`), in which -1 says nothing either where no
state is named so.  A state is given

- by its name;
- by its index; where a variable's states are named by whole numbers other than 0, 1, ... in this order (spins: "-1" and
  "1"), a number is a name and never an index;
- by True or False, of a variable of two states without names, or named by a pair such as "no" and "yes";

and in place of a state there may be a likelihood for each: soft evidence, which multiplies the variable's potentials.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.display.formatting import name_of, some
from clampz.errors import EvidenceError, ModelError, did_you_mean, shown
from clampz.model.checks import as_iterable
from clampz.model.evidence import Evidence, RowEvidence, as_mapping, is_missing_value
from clampz.model.names import Names
from clampz.model.tables import read_only
from clampz.numerics import Floats, Integers
from clampz.runtime.options import is_whole

Variable = int | str
State = int | str

# Names of two states, in lower case, that say which of them is False and which is True.
FALSE_AND_TRUE = ("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("off", "on"), ("0", "1")
# What stands for a value that is missing among whole numbers.
MISSING = -1


class Findings(NamedTuple):
    """Evidence by index: states that are certain, and likelihoods (K,) of the states of other variables."""

    states: dict[int, int]
    likelihoods: dict[int, Floats]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Variables:
    """Variables of a model: numbers of states, names, and lookup of variables, states and evidence.

    Attributes
    ----------
    num_states
        (n,) number of states of each variable.
    names, state_names
        Of the variables, and of the states of each; or None.
    """

    num_states: Integers
    names: tuple[str, ...] | None
    state_names: tuple[tuple[str, ...], ...] | None

    def __init__(
        self, num_states: Integers, names: Sequence[str] | None, state_names: Sequence[Sequence[str]] | None
    ) -> None:
        self.__dict__.update(
            num_states=read_only(num_states),
            names=_as_names(num_states, names),
            state_names=_as_state_names(num_states, state_names),
        )

    @property
    def num_variables(self) -> int:
        return len(self.num_states)

    def variable_index(self, variable: Variable) -> int:
        """Return the index of a variable given by index or name."""
        return self._lookup.index(variable)

    def variable_indices(self, variables: Iterable[Variable], name: str = "variables") -> list[int]:
        """Return the indices of several variables, each given by index or name."""
        try:
            listed = None if isinstance(variables, str) else list(variables)
        except TypeError:
            listed = None
        if listed is None:
            raise EvidenceError(f"{name}: expected a list of variables, by index or name, found {shown(variables)}")
        return [self.variable_index(variable) for variable in listed]

    def state_index(self, variable: Variable, state: State) -> int:
        """Return the index of a state given by index or name, or by True or False where that is clear."""
        i = self.variable_index(variable)
        known = self.state_names[i] if self.state_names is not None else ()
        if isinstance(state, str):
            if state not in known:
                there = some(known) if known else "no state names"
                near = did_you_mean(state, known)
                raise EvidenceError(f"unknown state {state!r} of variable {variable!r}; it has {there}{near}")
            return known.index(state)
        if isinstance(state, bool | np.bool_):
            return self._state_of_truth(variable, i, bool(state))
        numbers = self.numbers_of(i)
        if numbers is not None:
            if not is_whole(state) or state not in numbers:
                raise EvidenceError(
                    f"unknown state {state!r} of variable {variable!r}: its states are named by numbers, "
                    f"{some(known)}, so a number is a name, not an index"
                )
            return numbers.index(state)
        return self._checked_index(variable, i, state)

    def state_name(self, i: int, a: int) -> str:
        """Return a state by its name where there are names, otherwise by its number."""
        return name_of(None if self.state_names is None else self.state_names[i], a)

    def numbers_of(self, i: int) -> list[int] | None:
        """Return the whole numbers that a variable's states are named by, where these are not their indices. A number
        is then a name, -1 included, and never an index."""
        return None if self.state_names is None else _numbers(self.state_names[i])

    def _checked_index(self, variable: Variable, i: int, state: object) -> int:
        if not is_whole(state) or not 0 <= state < self.num_states[i]:
            missing = state is None or state != state
            raise EvidenceError(
                f"unknown state {state!r} of variable {variable!r}: expected an index from 0 to "
                f"{self.num_states[i] - 1}{'; leave out what is not known' if missing else ''}"
            )
        return int(state)

    def _state_of_truth(self, variable: Variable, i: int, truth: bool) -> int:
        """Return the state that a truth value means."""
        known = self.state_names[i] if self.state_names is not None else ("0", "1")
        named = tuple(name.lower() for name in known)
        pair = next((pair for pair in FALSE_AND_TRUE if set(pair) == set(named)), None)
        if self.num_states[i] != 2 or pair is None:
            names = f", which are {some(known)}" if self.state_names is not None else ""
            raise EvidenceError(
                f"{truth} does not say which of the {self.num_states[i]} states of variable {variable!r} is "
                f"meant{names}: give a name or an index"
            )
        return named.index(pair[truth])

    @cached_property
    def _lookup(self) -> Names:
        return Names(self.num_variables, self.names)

    def is_missing(self, variable: Variable, value: object) -> bool:
        """Whether a value in a row or an array says nothing of a variable; nor does -1, unless a state is named so."""
        if is_missing_value(value):
            return True
        is_minus_one = isinstance(value, int | float | np.integer | np.floating) and value == MISSING
        return is_minus_one and MISSING not in (self.numbers_of(self.variable_index(variable)) or ())

    def as_mapping(self, evidence: Evidence) -> Evidence:
        """Coerce one evidence set, in any of its forms, to `{variable: state}`."""
        said = as_mapping(evidence, self.num_variables)
        if not isinstance(said, RowEvidence):
            return said
        return {variable: value for variable, value in said.items() if not self.is_missing(variable, value)}

    def as_evidence(self, evidence: Evidence) -> dict[int, int]:
        """Look up evidence whose states are all certain, by index; contradictions and likelihoods are refused."""
        found = self.findings(evidence)
        if found.likelihoods:
            i = next(iter(found.likelihoods))
            raise EvidenceError(f"variable {i}: expected a state, found likelihoods of {self.num_states[i]}")
        return found.states

    def as_configuration(self, configuration: Sequence[State] | Evidence | ArrayLike) -> NDArray[np.int32]:
        """(n,) look up the states of a configuration: `{variable: state}`, or states in order, whole numbers being
        indices."""
        expected = f"configuration: expected a state for each of {self.num_variables} variables"
        if isinstance(configuration, Mapping):
            given = self.as_evidence(configuration)
            missing = next((i for i in range(self.num_variables) if i not in given), None)
            if missing is not None:
                named = missing if self.names is None else self.names[missing]
                raise EvidenceError(f"{expected}, found none for variable {named!r}")
            configuration = [given[i] for i in range(self.num_variables)]
        try:
            states = np.asarray(configuration)
        except ValueError:
            raise EvidenceError(f"{expected}, found {shown(configuration)}") from None
        if states.shape != (self.num_variables,):
            raise EvidenceError(f"{expected}, found shape {states.shape}")
        if not np.issubdtype(states.dtype, np.integer):
            states = np.array([self.state_index(i, s) for i, s in enumerate(configuration)])  # type: ignore[arg-type]
        elif (wrong := np.flatnonzero((states < 0) | (states >= self.num_states))).size:
            self._checked_index(int(wrong[0]), int(wrong[0]), states.tolist()[wrong[0]])
        return states.astype(np.int32)

    def named_configuration(self, states: NDArray[np.integer[Any]]) -> dict[Variable, State]:
        """Return a configuration (n,) by the names of variables and states, or by index where there are none."""
        found: Sequence[State] = states.tolist()
        if self.state_names is not None:
            found = [known[a] for known, a in zip(self.state_names, states.tolist(), strict=True)]
        return dict(zip(self.names or range(self.num_variables), found, strict=True))

    def as_configurations(self, configurations: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """(N, n) check configurations, states by index."""
        states = np.ascontiguousarray(as_indices(configurations), dtype=np.int32)
        if states.ndim != 2 or states.shape[1] != self.num_variables:
            raise EvidenceError(
                f"configurations: expected shape (number, {self.num_variables}), a state of each variable in a row, "
                f"found {states.shape}"
            )
        wrong = (states < 0) | (states >= self.num_states)
        if wrong.any():
            d, i = np.argwhere(wrong)[0]
            raise EvidenceError(f"configuration {d}, variable {i}: there is no state {states[d, i]}")
        return states

    def findings(self, evidence: Evidence) -> Findings:
        """Look up evidence by index, in any of its forms; contradictions are refused.

        >>> spins = Variables(np.array([2, 2]), ["a", "b"], [["-1", "1"]] * 2)
        >>> spins.findings({"a": -1, "b": [0.2, 0.8]})
        Findings(states={0: 0}, likelihoods={1: array([0.2, 0.8])})
        """
        evidence = self.as_mapping(evidence)
        if self._are_indices(evidence):
            return Findings(dict(evidence), {})
        found = Findings({}, {})
        for variable, said in evidence.items():
            i = self.variable_index(variable)
            if i in found.likelihoods or (i in found.states and _is_soft(said)):
                raise EvidenceError(f"evidence is about variable {variable!r} twice, with likelihoods: give them once")
            if _is_soft(said):
                found.likelihoods[i] = self._as_likelihoods(variable, i, said)
                continue
            a = self.state_index(variable, said)
            if found.states.setdefault(i, a) != a:
                raise EvidenceError(f"evidence gives variable {variable!r} two states, {found.states[i]} and {a}")
        return found

    def _are_indices(self, evidence: Evidence) -> bool:
        """Whether evidence is plainly of indices alone, checked all at once: there may be millions."""
        if self.state_names is not None or set(map(type, evidence)) | set(map(type, evidence.values())) != {int}:
            return False
        try:
            variables, states = (np.fromiter(each, np.int64, len(evidence)) for each in (evidence, evidence.values()))
        except OverflowError:
            return False
        if variables.min() < 0 or variables.max() >= self.num_variables:
            return False
        return bool(((states >= 0) & (states < self.num_states[variables])).all())

    def _as_likelihoods(self, variable: Variable, i: int, said: Sequence[Any]) -> Floats:
        try:
            array = np.array(said, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != (self.num_states[i],) or not ((array >= 0) & (array < np.inf)).all() or not array.any():
            raise EvidenceError(
                f"likelihoods of variable {variable!r}: expected {self.num_states[i]} finite numbers >= 0, "
                f"one per state and not all 0, found {shown(said)}"
            )
        return array


def as_indices(configurations: object) -> NDArray[Any]:
    """Coerce configurations to an array of whole numbers."""
    try:
        states = np.asarray(configurations)
    except ValueError:
        states = np.empty(0, dtype=object)
    if states.dtype.kind not in "iub" and states.size:
        raise EvidenceError(f"configurations: expected states by index, found {shown(configurations)}")
    return states


def _is_soft(said: object) -> bool:
    """Whether evidence is a likelihood for each state, in place of a state."""
    return isinstance(said, list | tuple) or (not isinstance(said, str) and getattr(said, "ndim", 0) > 0)


def _numbers(names: tuple[str, ...]) -> list[int] | None:
    """Return the whole numbers that states are named by, where these are not their indices."""
    if not names or not all(re.fullmatch(r"[+-]?\d+", name, re.ASCII) for name in names):
        return None
    numbers = [int(name) for name in names]
    return None if numbers == list(range(len(names))) or len(set(numbers)) < len(numbers) else numbers


def _as_names(num_states: Integers, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Check distinct names, one for each variable, or None."""
    if names is None:
        return None
    found, n = tuple(as_iterable(names, "names", "a string for each variable")), len(num_states)
    other = next((name for name in found if not isinstance(name, str)), None)  # type: ignore[redundant-expr]
    if other is not None:
        raise ModelError(f"names: expected strings, found {shown(other)}")
    if len(found) != n or len(set(found)) != n:
        raise ModelError(
            f"names: expected {n} distinct strings, one per variable, "
            f"found {len(found)} with {len(set(found))} distinct"
        )
    return found


def _as_state_names(
    num_states: Integers, state_names: Sequence[Sequence[str]] | None
) -> tuple[tuple[str, ...], ...] | None:
    """Check distinct state names of every variable, one for each state, or None."""
    if state_names is None:
        return None
    listed, n = as_iterable(state_names, "state_names", "a list of strings for each variable"), len(num_states)
    found = tuple(
        (states,)
        if isinstance(states, str)  # one name, not one for each of its letters
        else tuple(as_iterable(states, f"state_names of variable {i}", "a list of strings"))
        for i, states in enumerate(listed)
    )
    if len(found) != n:
        raise ModelError(f"state_names: expected one list per variable, {n} in all, found {len(found)}")
    for i, states in enumerate(found):
        distinct = len(states) == num_states[i] == len(set(states))
        if not distinct or not all(isinstance(state, str) for state in states):
            raise ModelError(
                f"state_names of variable {i}: expected {num_states[i]} distinct strings, found {list(states)}"
            )
    return found
