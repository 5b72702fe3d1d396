"""Variables and their states as words: `a=yes,b=0|1`."""

from collections.abc import Iterable, Iterator

from clampz.cli.exit_codes import CommandError
from clampz.display.formatting import name_of
from clampz.errors import EvidenceError
from clampz.model import Model, State


def state_rows(model: Model, variables: Iterable[int]) -> Iterator[list[object]]:
    """Each state of some variables: the variable and the state, by name where there are names."""
    for i in variables:
        for state in model.state_names[i] if model.state_names else range(model.num_states[i]):
            yield [name_of(model.names, i), state]


def states_in(model: Model, text: str, option: str) -> dict[int, list[State]]:
    """States of variables, each by number or name: with commas between variables, and strokes between states."""
    found: dict[int, list[State]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        variable, equals, states = (word.strip() for word in part.partition("="))
        if not equals or not variable or not states:
            raise CommandError(f"{option} {text}: expected variable=state or variable=state|state, found {part!r}")
        i = variable_in(model, variable, f"{option} {text}")
        if i in found:
            raise CommandError(f"{option} {text}: expected each variable once, found {variable!r} again")
        found[i] = [_state_in(model, i, word.strip(), f"{option} {text}") for word in states.split("|")]
    return found


def variable_in(model: Model, word: str, where: str) -> int:
    """A variable by name or number."""
    is_name = model.names is not None and word in model.names
    try:
        return model.variable_index(int(word) if word.isdecimal() and not is_name else word)
    except EvidenceError as error:
        raise CommandError(f"{where}: {error}") from None


def _state_in(model: Model, i: int, word: str, where: str) -> State:
    """A state by name or number; where names are numbers, a number is a name."""
    is_name = model.state_names is not None and (word in model.state_names[i] or model.numbers_of(i) is not None)
    state = int(word) if word.isdecimal() and not is_name else word
    try:
        model.state_index(i, state)
    except EvidenceError as error:
        raise CommandError(f"{where}: {error}") from None
    return state


def one_state_each(model: Model, text: str, option: str) -> dict[int, State]:
    """Evidence in words: a state for each variable."""
    found = states_in(model, text, option)
    for i, states in found.items():
        if len(states) > 1:
            known = name_of(model.names, i)
            raise CommandError(f"{option} {text}: expected one state of variable {known}, found {len(states)}")
    return {i: states[0] for i, states in found.items()}
