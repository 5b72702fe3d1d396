r"""Result files of the UAI competitions: a task on the first line, then its solution.

    PR              MAR                                        MPE
    -0.2008         3  2 0.1 0.9  2 0.3 0.7  3 0.2 0.2 0.6     3  1 0 2

PR is log10 Z.  MAR has the number of variables, and for each its number of states and their probabilities.  MPE has the
number of variables and the state of each in the best configuration; as MAP, the same of all variables.  In 2010 the
number of samples of evidence came before the solution, always 1 where it is read here; numbers never fit both ways.  Of
several solutions, each after `-BEGIN-`, the last one counts.
"""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from clampz.errors import ModelError, shown
from clampz.io import files
from clampz.io.text_formats import count
from clampz.io.tokens import Tokens
from clampz.numerics import Floats, Integers

BEGIN = b"-BEGIN-"

# Rounded probabilities may miss 1 by this much in all.
SUM_TOLERANCE = 1e-3


def write_pr(log_z: float, path: files.AnyPath) -> None:
    """Write a PR file: log Z, a natural logarithm, to base 10."""
    files.replace(path, encode_pr(log_z))


def encode_pr(log_z: float) -> bytes:
    """Encode a PR file."""
    if math.isnan(log_z) or log_z == math.inf:
        raise ModelError(f"log Z: expected a number or -inf, found {log_z}")
    return f"PR\n{float(log_z) / math.log(10)!r}\n".encode()


def read_pr(path: files.AnyPath) -> float:
    """Read log Z, as a natural logarithm, from a PR file."""
    tokens = _solution(path, "PR")
    at = 1 if len(tokens.numbers) == 2 and tokens.numbers[0] == 1 else 0
    if len(tokens.numbers) <= at:
        tokens.refuse(at, "log10 Z")
    tokens.end(at + 1, "log10 Z")
    value = float(tokens.numbers[at])
    if math.isnan(value) or value == math.inf:
        tokens.refuse(at, "log10 Z")
    return value * math.log(10)


def write_mar(marginals: Iterable[ArrayLike], path: files.AnyPath) -> None:
    """Write a MAR file: the probabilities of the states of each variable in turn."""
    files.replace(path, encode_mar(marginals))


def encode_mar(marginals: Iterable[ArrayLike]) -> bytes:
    """Encode a MAR file."""
    rows = [np.asarray(row, dtype=np.float64) for row in marginals]
    for i, row in enumerate(rows):
        if row.ndim != 1 or not row.size or not ((row >= 0) & (row <= 1 + SUM_TOLERANCE)).all():
            raise ModelError(f"marginals of variable {i}: expected a probability per state, found {shown(row)}")
    texts = (f"{len(row)} {' '.join(map(repr, row.tolist()))}" for row in rows)
    return f"MAR\n{' '.join([str(len(rows)), *texts])}\n".encode()


def read_mar(path: files.AnyPath) -> list[Floats]:
    """Read the probabilities of the states of each variable from a MAR file."""
    tokens = _solution(path, "MAR")
    dialect_2010 = (
        len(tokens.numbers) > 1 and tokens.numbers[0] == 1 and _end(tokens, 0) != len(tokens.numbers) == _end(tokens, 1)
    )
    at = 1 if dialect_2010 else 0
    num_variables = int(tokens.whole(at, 1, 0, "the number of variables")[0])
    at += 1
    rows: list[Floats] = []
    for i in range(num_variables):
        size = int(tokens.whole(at, 1, 1, f"the number of states of variable {i}")[0])
        row = tokens.numbers[at + 1 : at + 1 + size].copy()
        if len(row) < size:
            tokens.refuse(len(tokens.numbers), f"{size} probabilities of variable {i}")
        wrong = np.flatnonzero(~((row >= 0) & (row <= 1 + SUM_TOLERANCE)))
        if wrong.size:
            tokens.refuse(at + 1 + int(wrong[0]), f"a probability of variable {i}")
        if abs(row.sum() - 1) > SUM_TOLERANCE:
            tokens.fail(at + 1, f"expected probabilities of variable {i} that add up to 1, found {row.sum():g}")
        rows.append(row)
        at += 1 + size
    tokens.end(at, count(num_variables, "variable"))
    return rows


def write_mpe(states: ArrayLike, path: files.AnyPath, task: str = "MPE") -> None:
    """Write an MPE file: the state of each variable in turn; or the answer to another task of this form."""
    files.replace(path, encode_mpe(states, task))


def encode_mpe(states: ArrayLike, task: str = "MPE") -> bytes:
    """Encode an MPE file."""
    found = np.asarray(states)
    if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)) or (found < 0).any():
        raise ModelError(f"states: expected a whole number >= 0 for each variable, found {shown(found)}")
    return f"{task}\n{' '.join(map(str, [len(found), *found.tolist()]))}\n".encode()


def read_mpe(path: files.AnyPath, task: str = "MPE") -> Integers:
    """Read the state of each variable from an MPE file."""
    tokens = _solution(path, task)
    numbers = tokens.numbers
    dialect_2010 = len(numbers) > 1 and numbers[0] == 1 and len(numbers) != 2 and numbers[1] == len(numbers) - 2
    at = 1 if dialect_2010 else 0
    num_variables = int(tokens.whole(at, 1, 0, "the number of variables")[0])
    states = tokens.whole(at + 1, num_variables, 0, "a state of each variable")
    tokens.end(at + 1 + num_variables, count(num_variables, "variable"))
    return states.astype(np.int64)


def _end(tokens: Tokens, at: int) -> int:
    """Return where a MAR solution that begins at `numbers[at]` ends, by its counts; -1 if they are no counts."""
    numbers = tokens.numbers
    place, left = at + 1, numbers[at]
    while left > 0 and place < len(numbers):
        size = numbers[place]
        if not (size >= 1 and size % 1 == 0 and size < len(numbers)):
            return -1
        place += 1 + int(size)
        left -= 1
    return place if left == 0 else -1


def _solution(path: files.AnyPath, task: str) -> Tokens:
    """Read the task and the numbers of the last solution."""
    data = files.load(path)
    head, begin, last = data.rpartition(BEGIN)
    if begin:  # what is skipped leaves its line ends
        first = head.split(maxsplit=1)[:1]
        data = b"".join([*first, b"\n" * head.count(b"\n"), b" ", last])
    tokens = Tokens(path, data, num_words=1)
    if tokens.words != [task]:
        tokens.refuse(-1, task)
    return tokens
