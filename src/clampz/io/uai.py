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
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from clampz.errors import ModelError
from clampz.io import files
from clampz.io.tokens import Tokens, is_whole
from clampz.model import Model
from clampz.model.tables import Floats, Integers, offsets, ranges

COMMENT = rb"#"

# exp() of anything between -this and this is a normal float, with all its digits.
MAX_LOG = 700.0
# Values are written without an exponent in this range: not every reader knows 1e-05.
SMALLEST_PLAIN, LARGEST_PLAIN = 1e-30, 1e30
# Rounded probabilities may miss 1 by so much in all.
SUM_TOLERANCE = 0.02
# Beyond a state per token, a file may have so many states: without a table to show for them, 20 bytes could ask for all
# memory.
FREE_STATES = 2**16
SMALLEST_NORMAL = np.finfo(np.float64).tiny
# A constant of so many times MAX_LOG is still written, as that many factors.
MAX_CONSTANTS = 10**5
# NumPy 1 has no arrays of more axes.  Variables of one state are left out of larger scopes; others cannot be so many in
# a table that is there.
MAX_AXES = 32


class FlatFactors(NamedTuple):
    """Factors of any size laid end to end: numbers of states, scopes, and the tables, last variable fastest."""

    num_states: Integers
    scope_start: Integers
    variables: Integers
    values: Floats


def read(path: files.AnyPath) -> Model:
    """The model in a UAI file, MARKOV or BAYES, plain or compressed with gzip.

    Anything unexpected is a FormatError that names the file, the line, the factor, what was expected and what was
    found.
    """
    return as_model(_parse(Tokens(path, files.load(path), num_words=1, comment=COMMENT)))


def write(model: Model, path: files.AnyPath) -> None:
    """Write a model as a UAI file, compressed if its name ends in `.gz`.

    One factor per variable, one per edge and one per larger factor; the constant goes into the table of the first
    variable.  Values have all their digits: reading the file gives the same potentials up to the rounding of exp and
    log.  Names are lost, as the format has none.  A table beyond the range of floats is shifted into it, against the
    constant.  The file appears whole or not at all.
    """
    factors = potentials(model, "a UAI file")
    bounds = factors.scope_start.tolist()
    variables = list(map(str, factors.variables.tolist()))
    scopes = (" ".join([str(end - begin), *variables[begin:end]]) for begin, end in pairwise(bounds))
    values = plain(factors.values)
    tables = (
        f"{end - begin} {' '.join(values[begin:end])}" for begin, end in pairwise(offsets(sizes_of(factors)).tolist())
    )
    head = ["MARKOV", str(model.num_variables), " ".join(map(str, model.num_states.tolist())), str(len(bounds) - 1)]
    files.replace(path, "\n".join(chain(head, scopes, [""], tables, [""])).encode())


# -- shared with the .fg format ----------------------------------------------------------------------------------------


def as_model(factors: FlatFactors) -> Model:
    """The model of factors that are known to be sound."""
    num_states, scope_start, variables, values = factors
    with np.errstate(divide="ignore"):
        logs = np.log(values, out=values)
    arity = np.diff(scope_start)
    if arity.max(initial=0) > MAX_AXES:
        kept = (num_states[variables] > 1) | (np.repeat(arity, arity) <= MAX_AXES)
        scope_start = offsets(np.bincount(np.repeat(np.arange(len(arity)), arity)[kept], minlength=len(arity)))
        variables = variables[kept]
    return Model.from_flat_factors(num_states, scope_start, variables, logs)


def potentials(model: Model, where: str) -> FlatFactors:
    """All factors of a model in the order in which they are written: variables, edges, larger factors.

    The constant is in the table of the first variable: hardly a reader takes factors over no variables, and not all
    take two over the same ones.  What does not fit there is left to further factors of that variable.
    """
    n, larger = model.num_variables, model.factors
    scopes = [larger.variables[begin:end] for begin, end in pairwise(larger.scope_start.tolist())]
    parts = [
        _shifted(model.unary.flat, model.unary.start, np.arange(n), where),
        _shifted(model.pairwise.flat, model.pairwise.start, model.edges, where),
        _shifted(larger.flat, larger.start, scopes, where),
    ]
    constant = model.constant + sum(shift for shift, _ in parts)
    if abs(constant) > MAX_CONSTANTS * MAX_LOG:
        raise ModelError(
            f"constant: expected at most {MAX_CONSTANTS * MAX_LOG:g} in size in {where}, found {constant:g}"
        )
    if n and 0 < abs(constant) <= MAX_LOG:
        first = parts[0][1][: model.num_states[0]]
        with np.errstate(over="ignore"):
            product = first * np.exp(constant)
        if (((product >= SMALLEST_NORMAL) & (product < np.inf)) | (first == 0)).all():
            first[:], constant = product, 0.0
    over = min(n, 1)
    num_constants = int(np.ceil(abs(constant) / MAX_LOG))
    arity = np.concatenate(
        [
            np.ones(n, dtype=np.int64),
            np.full(model.num_edges, 2),
            np.diff(larger.scope_start),
            np.full(num_constants, over),
        ]
    )
    variables = np.concatenate(
        [np.arange(n), model.edges.ravel(), larger.variables, np.zeros(over * num_constants, dtype=np.int64)]
    )
    num_values = num_constants * (int(model.num_states[0]) if n else 1)
    values = np.concatenate(
        [*(table for _, table in parts), np.exp(np.full(num_values, constant / max(num_constants, 1)))]
    )
    return FlatFactors(model.num_states, offsets(arity), variables, values)


def sizes_of(factors: FlatFactors) -> Integers:
    """How many values each table has."""
    return float_sizes(factors.num_states, np.diff(factors.scope_start), factors.variables).astype(np.int64)


def float_sizes(num_states: Integers, arity: Integers, variables: Integers) -> Floats:
    """How many values the table of each factor has, as floats: what a file claims may be beyond any whole number."""
    sizes = np.ones(len(arity))
    with np.errstate(over="ignore"):
        np.multiply.at(sizes, np.repeat(np.arange(len(arity)), arity), num_states[variables].astype(np.float64))
    return sizes


def plain(values: Floats) -> list[str]:
    """Numbers with all their digits, and without an exponent unless they are very large or small."""
    texts = list(map(repr, values.tolist()))
    for k in np.flatnonzero(
        ((values < 1e-4) | (values >= 1e16)) & (values >= SMALLEST_PLAIN) & (values <= LARGEST_PLAIN)
    ):
        texts[k] = np.format_float_positional(values[k], trim="0")
    return texts


def count(size: float, what: str = "value") -> str:
    """A number of things, for a message."""
    return f"{size:{'.0f' if size < 1e15 else '.3g'}} {what}{'' if size == 1 else 's'}"


def check_scopes(tokens: Tokens, place: Integers, arity: Integers, variables: Floats) -> None:
    """No variable may be twice in a scope; `place` is where the scopes begin."""
    if arity.max(initial=0) < 2:
        return
    factor = np.repeat(np.arange(len(arity), dtype=np.int32 if len(arity) < 2**31 else np.int64), arity)
    order = np.lexsort((variables, factor))
    twice = np.flatnonzero(
        (factor[1:] == factor[:-1]) & (np.diff(variables[order]) == 0)
    )  # (sorted by factor as it was)
    if twice.size:
        first = order[twice + 1].min()
        f = int(factor[first])
        at = int(place[f] + first - offsets(arity)[f])
        wanted = {2: "two", 3: "three"}.get(int(arity[f]), str(arity[f]))
        tokens.fail(at, f"expected {wanted} different variables, found {variables[first]:.0f} twice", f)


def are_potentials(values: Floats) -> bool:
    """Whether all are finite and none is negative."""
    return bool(values.min(initial=0.0) >= 0 and values.max(initial=0.0) < np.inf)


def check_values(tokens: Tokens, place: Integers, values: Floats, start: Integers) -> None:
    """Values must be potentials; `place` is where they stand, and the tables begin at `start`."""
    wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if wrong.size:
        k = int(wrong[0])
        factor = int(np.searchsorted(start, k, side="right")) - 1
        tokens.fail(
            int(place[k]), f"expected a potential, finite and not negative, found {tokens.found(int(place[k]))}", factor
        )


def refuse_zero(tokens: Tokens, at: int, factor: int) -> NoReturn:
    """A factor over no variables, at `numbers[at]`, is 0."""
    tokens.fail(at, "expected a constant above 0, found 0: every configuration would have probability zero", factor)


def check_states(tokens: Tokens, num_states: Integers, at: int | None = None) -> None:
    """Not more states than a file of this size can have a use for."""
    limit = len(tokens.numbers) + FREE_STATES
    total = num_states.sum(dtype=np.float64)
    if total > limit:
        i = int(num_states.argmax())
        largest = f"variable {i} has {num_states[i]}"
        tokens.fail(
            0 if at is None else at + i,
            f"expected at most {limit} states in all in a file of this size, found {total:.0f} ({largest})",
        )


# -- reading -----------------------------------------------------------------------------------------------------------


def _parse(tokens: Tokens) -> FlatFactors:
    kind = tokens.words[0] if tokens.words else ""
    if kind not in ("MARKOV", "BAYES"):
        tokens.fail(-1, f"expected MARKOV or BAYES, found {tokens.found(-1)}")
    n = int(tokens.whole(0, 1, 0, "the number of variables")[0])
    num_states = tokens.whole(1, n, 1, "the number of states of a variable")
    num_factors = int(tokens.whole(1 + n, 1, 0, "the number of factors")[0])
    place, arity, variables = _scopes(tokens, 2 + n, num_factors, n)
    check_states(tokens, num_states, 1)
    start = _tables(tokens, int(place[-1]), float_sizes(num_states, arity, variables))
    kept = np.ones(start[-1] - start[0], dtype=np.bool_)
    kept[start[:-1] - start[0]] = False
    values = tokens.numbers[start[0] : start[-1]][kept]
    if not are_potentials(values):
        sizes = np.diff(start) - 1
        check_values(tokens, ranges(start[:-1] + 1, sizes), values, offsets(sizes))
    constants = np.flatnonzero(arity == 0)
    zero = constants[tokens.numbers[start[constants] + 1] == 0]
    if zero.size:
        refuse_zero(tokens, int(start[zero[0]]) + 1, int(zero[0]))
    if kind == "BAYES":
        _check_probabilities(tokens, place, arity, variables, num_states, start, values)
    return FlatFactors(num_states, offsets(arity), variables, values)


def _scopes(tokens: Tokens, at: int, num_factors: int, n: int) -> tuple[Integers, Integers, Integers]:
    """Where the scope of every factor begins, and where the last one ends; of every factor how many variables it has;
    and which."""
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
    kept = np.ones(found[-1] - found[0], dtype=np.bool_)
    kept[found[:-1] - found[0]] = False
    variables = tokens.numbers[found[0] : found[-1]][kept]
    wrong = np.flatnonzero(~is_whole(variables, 0, n))
    if wrong.size:
        f = int(np.searchsorted(offsets(arity), wrong[0], side="right")) - 1
        token = int(found[f] + 1 + wrong[0] - offsets(arity)[f])
        tokens.fail(token, f"expected a variable from 0 to {n - 1}, found {tokens.found(token)}", f)
    check_scopes(tokens, found[:-1] + 1, arity, variables)
    if problem:  # what is wrong further up has come first
        tokens.fail(problem[0], f"expected {problem[1]}, found {tokens.found(problem[0])}", len(arity))
    return found, arity, variables.astype(np.int64)


def _tables(tokens: Tokens, at: int, sizes: Floats) -> Integers:
    """Where the table of every factor begins, its size in front, and where the last one ends."""
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
            tokens.missing(int(start[f]), f"its number of values, {sizes[f]:.0f}", f)
        tokens.missing(len(numbers), count(sizes[f]), f, len(numbers) - int(start[f]) - 1)
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
    """A BAYES file has a table for each variable, the last one of its scope, and its probabilities add up to 1 given
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
            f"expected a table for each of {len(num_states)} variables, found none for variable {table_of.argmin()} {hint}",
        )
    num_rows = ((np.diff(start) - 1) // num_states[child]).astype(np.int64)
    row_start = offsets(np.repeat(num_states[child], num_rows))
    if not len(values):
        return
    sums = np.add.reduceat(values, row_start[:-1])
    off = np.flatnonzero(~(np.abs(sums - 1) <= SUM_TOLERANCE))
    if off.size:
        f = int(np.searchsorted(offsets(num_rows), off[0], side="right")) - 1
        at = int(start[f] + 1 + row_start[off[0]] - row_start[offsets(num_rows)[f]])
        tokens.fail(
            at, f"expected probabilities of variable {child[f]} that add up to 1, found {sums[off[0]]:g} {hint}", f
        )


# -- writing -----------------------------------------------------------------------------------------------------------


def _shifted(
    flat: Floats, start: Integers, variables: NDArray[np.integer] | list[Integers], where: str
) -> tuple[float, Floats]:
    """exp of the tables, those beyond the range of floats shifted into it, and by how much in all."""
    finite = np.isfinite(flat)
    if not flat.size or np.abs(flat[finite]).max(initial=0.0) <= MAX_LOG:
        return 0.0, np.exp(flat)
    high = np.maximum.reduceat(flat, start[:-1])
    low = np.minimum.reduceat(np.where(finite, flat, np.inf), start[:-1])
    wide = np.flatnonzero(high - low > 2 * MAX_LOG)
    if wide.size:
        k = wide[0]
        raise ModelError(
            f"potentials of {variables[k].tolist()}: expected a spread of at most {2 * MAX_LOG:g} nats in {where}, found {high[k] - low[k]:g}"
        )
    with np.errstate(invalid="ignore"):  # a table of hard zeros alone has no middle, and needs none
        shift = np.where((high > MAX_LOG) | (low < -MAX_LOG), (high + low) / 2, 0.0)
    return float(shift.sum()), np.exp(flat - np.repeat(shift, np.diff(start)))
