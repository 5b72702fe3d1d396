r"""The UAI format: plain text, potentials themselves and not their logarithms, the last variable of a table varying
fastest.

    MARKOV
    2               variables
    2 3             states of each
    2               factors
    1 0             number of variables of the factor, and which
    2 0 1
    2  1.0 0.5      number of values of the factor, and the values
    6  1 2 3  4 5 6

Everything is split at white space: lines mean nothing and are counted only for error messages.  Variables and factors
are numbered from 0.  Factors over the same variables are multiplied, a factor over no variable is a constant, and 0 is
a hard zero.  `#` begins a comment that ends with the line: the format has none, other readers allow none or these, and
no number has a `#`.

BAYES in place of MARKOV says that the tables are conditional probabilities, one for each variable, which comes last in
the scope: then Z = 1.
"""

from array import array
from itertools import chain, pairwise

import numpy as np

from clampz.io import files, text_formats
from clampz.io.text_formats import count
from clampz.io.tokens import Tokens, are_whole
from clampz.model import Model
from clampz.model.tables import offsets, piece_of, ranges
from clampz.numerics import Floats, Integers

# Rounded probabilities may miss 1 by this much in all.
SUM_TOLERANCE = 0.02


def read(path: files.AnyPath) -> Model:
    """Read the model in a UAI file, MARKOV or BAYES, plain or compressed with gzip. Anything unexpected is a
    FormatError with the file, the line, the factor, what was expected and what was found."""
    return parse(path, files.load(path))


def write(model: Model, path: files.AnyPath) -> None:
    """Write a model as a UAI file, compressed if its name ends in `.gz`, whole or not at all; see `encode`."""
    files.replace(path, encode(model))


def encode(model: Model) -> bytes:
    """Encode a model as a UAI file. One factor per variable, edge and larger factor; the constant goes into the first
    variable's table. Values have all their digits: reading gives the same potentials up to the rounding of exp and log.
    Names are lost. A table beyond the range of floats is shifted into it, against the constant."""
    factors = text_formats.factors_of(model, "a UAI file")
    bounds = factors.scope_start.tolist()
    variables = list(map(str, factors.variables.tolist()))
    scopes = (" ".join([str(end - begin), *variables[begin:end]]) for begin, end in pairwise(bounds))
    values = text_formats.format_numbers(factors.flat)
    tables = (f"{end - begin} {' '.join(values[begin:end])}" for begin, end in pairwise(factors.start.tolist()))
    head = ["MARKOV", str(model.num_variables), " ".join(map(str, model.num_states.tolist())), str(len(bounds) - 1)]
    return "\n".join(chain(head, scopes, [""], tables, [""])).encode()


def parse(path: files.AnyPath, data: bytes) -> Model:
    """Parse a model from a UAI file's bytes; the path is for messages."""
    tokens = Tokens(path, data, num_words=1, comment=text_formats.COMMENT)
    kind = tokens.words[0] if tokens.words else ""
    if kind not in ("MARKOV", "BAYES"):
        tokens.refuse(-1, "MARKOV or BAYES")
    n = int(tokens.whole(0, 1, 0, "the number of variables")[0])
    num_states = tokens.whole(1, n, 1, "the number of states of a variable")
    num_factors = int(tokens.whole(1 + n, 1, 0, "the number of factors")[0])
    place, arity, variables = _scopes(tokens, 2 + n, num_factors, n)
    text_formats.check_states(tokens, num_states, 1)
    start = _tables(tokens, int(place[-1]), text_formats.float_sizes(num_states, arity, variables))
    values = _after_counts(tokens.numbers, start)
    if not text_formats.are_potentials(values):
        sizes = np.diff(start) - 1
        text_formats.check_values(tokens, ranges(start[:-1] + 1, sizes), values, offsets(sizes))
    constants = np.flatnonzero(arity == 0)
    zero = constants[tokens.numbers[start[constants] + 1] == 0]
    if zero.size:
        text_formats.refuse_zero(tokens, int(start[zero[0]]) + 1, int(zero[0]))
    if kind == "BAYES":
        _check_probabilities(tokens, place, arity, variables, num_states, start, values)
    return text_formats.as_model(num_states, arity, variables, values)


def _after_counts(numbers: Floats, start: Integers) -> Floats:
    """Drop the number that each piece begins with."""
    return np.delete(numbers[start[0] : start[-1]], start[:-1] - start[0])


def _scopes(tokens: Tokens, at: int, num_factors: int, n: int) -> tuple[Integers, Integers, Integers]:
    """Parse the scopes: where each begins and the last one ends, their numbers of variables, and these."""
    numbers = tokens.sequence
    place = array("q", [at])
    problem: tuple[int, str] | None = None
    for _ in range(num_factors):
        if at >= len(numbers):
            problem = at, "its number of variables"
            break
        k = numbers[at]
        if not (0 <= k <= n and k % 1 == 0):
            problem = at, f"its number of variables, at most {n}" if k > n and k % 1 == 0 else "its number of variables"
            break
        at += 1 + int(k)
        if at > len(numbers):
            problem = len(numbers), count(k, "variable")
            break
        place.append(at)
    found = np.frombuffer(place, dtype=np.int64)
    arity = np.diff(found) - 1
    variables = _after_counts(tokens.numbers, found)
    wrong = np.flatnonzero(~are_whole(variables, 0, n))
    if wrong.size:
        f = piece_of(offsets(arity), int(wrong[0]))
        tokens.refuse(int(found[f] + 1 + wrong[0] - offsets(arity)[f]), f"a variable from 0 to {n - 1}", f)
    text_formats.check_scopes(tokens, found[:-1] + 1, arity, variables)
    if problem:  # what is wrong further up has come first
        tokens.refuse(*problem, len(arity))
    return found, arity, variables.astype(np.int64)


def _tables(tokens: Tokens, at: int, sizes: Floats) -> Integers:
    """Find where the table of every factor begins, its size in front, and where the last one ends."""
    numbers = tokens.numbers
    # no table is longer than the file, and sums of larger ones might overflow
    start = offsets((np.minimum(sizes, len(numbers)) + 1).astype(np.int64))
    start += at
    there = start[:-1] < len(numbers)
    wrong = np.flatnonzero(numbers[start[:-1][there]] != sizes[there])
    if wrong.size:
        f = int(wrong[0])
        hint = f" (or factor {f - 1} has too few or too many)" if f else ""
        tokens.fail(int(start[f]), f"expected {count(sizes[f])}, found {tokens.found(int(start[f]))}{hint}", f)
    cut = np.flatnonzero(start[1:] > len(numbers))
    if cut.size:
        f = int(cut[0])
        if not there[f]:
            tokens.refuse(int(start[f]), f"its number of values, {sizes[f]:.0f}", f)
        rest = "" if tokens.complete else f" and then {tokens.found(len(numbers))}"
        tokens.fail(len(numbers), f"expected {count(sizes[f])}, found {len(numbers) - int(start[f]) - 1}{rest}", f)
    tokens.end(int(start[-1]), count(len(sizes), "factor"))
    return start


def _check_probabilities(
    tokens: Tokens,
    place: Integers,
    arity: Integers,
    variables: Integers,
    num_states: Integers,
    start: Integers,
    values: Floats,
) -> None:
    """Check that a BAYES file has a table for each variable, last in its scope, whose probabilities add up to 1 given
    the others."""
    hint = "(write MARKOV if these are no conditional probabilities)"
    scope_start = offsets(arity)
    if not arity.all():
        f = int(np.flatnonzero(arity == 0)[0])
        tokens.fail(int(place[f]), f"expected a variable to have these probabilities, found none {hint}", f)
    child = variables[scope_start[1:] - 1]
    table_of = np.full(len(num_states), -1)
    table_of[child[::-1]] = np.arange(len(child))[::-1]  # the first of several
    again = np.flatnonzero(table_of[child] != np.arange(len(child)))
    if again.size:
        f = int(again[0])
        tokens.fail(
            int(place[f + 1]) - 1,
            f"expected one table for variable {child[f]}, found another in factor {table_of[child[f]]} {hint}",
            f,
        )
    if (table_of < 0).any():
        tokens.fail(
            int(place[-1]) - 1,
            f"expected a table for each of {len(num_states)} variables, "
            f"found none for variable {table_of.argmin()} {hint}",
        )
    num_rows = ((np.diff(start) - 1) // num_states[child]).astype(np.int64)
    row_start = offsets(np.repeat(num_states[child], num_rows))
    if not len(values):
        return
    sums = np.add.reduceat(values, row_start[:-1])
    off = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE))
    if off.size:
        f = piece_of(offsets(num_rows), int(off[0]))
        at = int(start[f] + 1 + row_start[off[0]] - row_start[offsets(num_rows)[f]])
        tokens.fail(
            at, f"expected probabilities of variable {child[f]} that add up to 1, found {sums[off[0]]:g} {hint}", f
        )
