"""Parse variables and their states from the command line: `a=yes,b=0|1`."""

from clampz.cli.exit_codes import CommandError
from clampz.display.formatting import name_of
from clampz.errors import EvidenceError
from clampz.model import Model, State


def parse_assignments(model: Model, text: str, option: str) -> dict[int, list[State]]:
    """Parse the states of variables, by number or name: commas between variables, strokes between states."""
    found: dict[int, list[State]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        variable, equals, states = (word.strip() for word in part.partition("="))
        if not equals or not variable or not states:
            raise CommandError(f"{option} {text}: expected variable=state or variable=state|state, found {part!r}")
        i = parse_variable(model, variable, f"{option} {text}")
        if i in found:
            raise CommandError(f"{option} {text}: expected each variable once, found {variable!r} again")
        found[i] = [_parse_state(model, i, word.strip(), f"{option} {text}") for word in states.split("|")]
    return found


def parse_evidence(model: Model, text: str, option: str) -> dict[int, State]:
    """Parse evidence: one state for each variable."""
    found = parse_assignments(model, text, option)
    for i, states in found.items():
        if len(states) > 1:
            known = name_of(model.names, i)
            raise CommandError(f"{option} {text}: expected one state of variable {known}, found {len(states)}")
    return {i: states[0] for i, states in found.items()}


def parse_variable(model: Model, word: str, where: str) -> int:
    """Return the index of a variable that is given by name or number."""
    is_name = model.names is not None and word in model.names
    try:
        return model.variable_index(int(word) if word.isdecimal() and not is_name else word)
    except EvidenceError as error:
        raise CommandError(f"{where}: {error}") from None


def _parse_state(model: Model, i: int, word: str, where: str) -> State:
    """Return a state of variable i as a name or a number; where states are named by numbers, a number is a name."""
    is_name = model.state_names is not None and (word in model.state_names[i] or model.numbers_of(i) is not None)
    state = int(word) if word.isdecimal() and not is_name else word
    try:
        model.state_index(i, state)
    except EvidenceError as error:
        raise CommandError(f"{where}: {error}") from None
    return state
