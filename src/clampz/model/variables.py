"""Variables: how many states each has, and names that may stand wherever an index may."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clampz.errors import EvidenceError, ModelError
from clampz.model.tables import read_only
from clampz.numerics import Integers
from clampz.options import is_whole
from clampz.wording import some

Variable = int | str
State = int | str
Evidence = Mapping[Any, Any]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Variables:
    """What a model is about.

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
        """The index of a variable given by index or name."""
        if isinstance(variable, str):
            if self.names is None:
                raise EvidenceError(
                    f"variable {variable!r}: this model's variables have no names; "
                    f"use an index from 0 to {self.num_variables - 1}"
                )
            try:
                return self._index_of_name[variable]
            except KeyError:
                raise EvidenceError(f"unknown variable {variable!r}; this model has {some(self.names)}") from None
        if not is_whole(variable) or not 0 <= variable < self.num_variables:
            raise EvidenceError(f"unknown variable {variable!r}: expected an index from 0 to {self.num_variables - 1}")
        return int(variable)

    def state_index(self, variable: Variable, state: State) -> int:
        """The index of a state given by index or name."""
        i = self.variable_index(variable)
        if isinstance(state, str):
            known = self.state_names[i] if self.state_names is not None else ()
            if state not in known:
                there = some(known) if known else "no state names"
                raise EvidenceError(f"unknown state {state!r} of variable {variable!r}; it has {there}")
            return known.index(state)
        if not isinstance(state, int | np.integer | np.bool_) or not 0 <= state < self.num_states[i]:
            raise EvidenceError(
                f"unknown state {state!r} of variable {variable!r}: "
                f"expected an index from 0 to {self.num_states[i] - 1}"
            )
        return int(state)

    @cached_property
    def _index_of_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names or ())}

    def as_evidence(self, evidence: Evidence) -> dict[int, int]:
        """Evidence by index: `{variable: state}` with every name looked up, contradictions refused."""
        if not isinstance(evidence, Mapping):
            raise EvidenceError(f"evidence: expected a mapping {{variable: state}}, found {type(evidence).__name__}")
        found: dict[int, int] = {}
        for variable, state in evidence.items():
            i, a = self.variable_index(variable), self.state_index(variable, state)
            if found.setdefault(i, a) != a:
                raise EvidenceError(f"evidence gives variable {variable!r} two states, {found[i]} and {a}")
        return found


def _as_names(num_states: Integers, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """As many distinct strings as there are variables, or None."""
    if names is None:
        return None
    found, n = tuple(names), len(num_states)
    other = next((name for name in found if not isinstance(name, str)), None)
    if other is not None:
        raise ModelError(f"names: expected strings, found {other!r}")
    if len(found) != n or len(set(found)) != n:
        raise ModelError(
            f"names: expected {n} distinct strings, one per variable, "
            f"found {len(found)} with {len(set(found))} distinct"
        )
    return found


def _as_state_names(
    num_states: Integers, state_names: Sequence[Sequence[str]] | None
) -> tuple[tuple[str, ...], ...] | None:
    """Of every variable as many distinct strings as it has states, or None."""
    if state_names is None:
        return None
    found, n = tuple(tuple(states) for states in state_names), len(num_states)
    if len(found) != n:
        raise ModelError(f"state_names: expected one list per variable, {n} in all, found {len(found)}")
    for i, states in enumerate(found):
        distinct = len(states) == num_states[i] == len(set(states))
        if not distinct or not all(isinstance(state, str) for state in states):
            raise ModelError(
                f"state_names of variable {i}: expected {num_states[i]} distinct strings, found {list(states)}"
            )
    return found
