"""Evidence files of the UAI competitions.

    2  1 0  2 1     how many variables are known (since 2014, and until 2008), and of each its number and its state
    1               how many samples of evidence there are (2010), then each as above
    2  1 0  2 1

The count tells them apart: k variables are 2k + 1 numbers, an odd one, and a single sample has one more.  What can be
read as one set is one set; it could also be several samples only if half of them are empty.  A file without a number,
and one of a single 0, is no evidence.
"""

import numpy as np

from clampz.errors import EvidenceError
from clampz.io import files
from clampz.io.text_formats import COMMENT, count
from clampz.io.tokens import Tokens, are_whole
from clampz.model import Model
from clampz.model.conditioning import given


def read(path: files.AnyPath, model: Model) -> dict[int, int]:
    """Read the evidence `{variable: state}` in a file, checked against the model. Variables go by their numbers in the
    model's file: labels where a `.fg` file has labels of its own, which are then the model's names."""
    return parse(path, files.load(path), model)


def under(model: Model, path: files.AnyPath, data: bytes | None = None) -> Model:
    """Condition the model on the evidence in a file, or in its bytes."""
    known = parse(path, files.load(path) if data is None else files.decompressed(path, data), model)
    try:
        return given(model, known)
    except EvidenceError as error:
        raise EvidenceError(f"{path}: {error}") from None


def parse(path: files.AnyPath, data: bytes, model: Model) -> dict[int, int]:
    """Parse evidence from a file's bytes; the path is for messages."""
    tokens = Tokens(path, data, comment=COMMENT)
    numbers = tokens.numbers
    if not tokens.complete:
        tokens.refuse(len(numbers), "numbers only")
    wrong = np.flatnonzero(~are_whole(numbers, 0))
    if wrong.size:
        tokens.refuse(int(wrong[0]), "whole numbers")
    place = _one_set(tokens)
    label = None
    if model.names and all(map(str.isdecimal, model.names)):
        label = {int(name): i for i, name in enumerate(model.names)}
    found: dict[int, int] = {}
    for at in range(place + 1, len(numbers), 2):
        number, state = int(numbers[at]), int(numbers[at + 1])
        variable = number if label is None else label.get(number, model.num_variables)
        if variable >= model.num_variables:
            known = f"from 0 to {model.num_variables - 1}" if label is None else "of the model"
            tokens.fail(at, f"expected a variable {known}, found {number}")
        if state >= model.num_states[variable]:
            known = f"from 0 to {model.num_states[variable] - 1}"
            tokens.fail(at + 1, f"expected a state of variable {number} {known}, found {state}")
        if found.setdefault(variable, state) != state:
            tokens.fail(at, f"expected one state of variable {number}, found {found[variable]} and {state}")
    return found


def _one_set(tokens: Tokens) -> int:
    """Return where the one set of evidence begins, in either dialect."""
    numbers = tokens.numbers
    total = len(numbers)
    if total == 0 or total == 1 + 2 * numbers[0]:
        return 0
    if numbers[0] == 1 and total > 1 and total == 2 + 2 * numbers[1]:
        return 1
    at, samples = 1.0, 0
    while at < total:
        at += 1 + 2 * numbers[int(at)]
        samples += 1
    if at == total and samples == numbers[0]:
        tokens.fail(0, f"expected one sample of evidence, found {samples}")
    wanted = f"{count(numbers[0], 'variable')} with a state each, {2 * numbers[0]:.0f} numbers"
    tokens.fail(0, f"expected {wanted}, found {total - 1} to follow")
