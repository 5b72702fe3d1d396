r"""libDAI's factor graphs: plain text, potentials themselves, the first variable of a table varying fastest, and only
entries that are not 0.

    2               factors

    1               number of variables of the factor
    0               their labels
    2               their numbers of states
    2               number of entries that follow
    0 1.0           entry, and value
    1 0.5

    2
    0 1
    2 3
    1
    5 6.0           the first variable in state 1 and the second in state 2: 1 + 2 * 2

Everything is split at white space, and `#` begins a comment that ends with the line.  Labels are any whole numbers:
variables are numbered in their order, and have their labels as names unless these are 0, 1, 2 and so on.
"""

from array import array
from itertools import pairwise

import numpy as np

from clampz.io import files, text_formats
from clampz.io.text_formats import count
from clampz.io.tokens import LARGEST_WHOLE, Tokens, are_whole
from clampz.model import Model
from clampz.model.tables import offsets, piece_of, ranges
from clampz.numerics import Integers

# Entries that are not listed take memory all the same: allowed beyond one per byte of the file.
FREE_ENTRIES = 2**20


def read(path: files.AnyPath) -> Model:
    """Read the model in a `.fg` file, plain or compressed with gzip. Anything unexpected is a FormatError with the
    file, the line, the factor, what was expected and what was found."""
    return parse(path, files.load(path))


def parse(path: files.AnyPath, data: bytes) -> Model:
    """Parse a model from a `.fg` file's bytes; the path is for messages."""
    model, labels = _model_and_labels(Tokens(path, data, comment=text_formats.COMMENT))
    if np.array_equal(labels, np.arange(len(labels))):
        return model
    return Model.from_contents(model.contents._replace(names=list(map(str, labels.tolist()))))


def write(model: Model, path: files.AnyPath) -> None:
    """Write a model as a `.fg` file, compressed if its name ends in `.gz`, whole or not at all; see `encode`."""
    files.replace(path, encode(model))


def encode(model: Model) -> bytes:
    """Encode a model as a `.fg` file. One factor per variable, edge and larger factor, with all digits; the constant
    goes into the first variable's table. Names are lost, but for whole numbers in ascending order, which become
    labels."""
    factors = text_formats.factors_of(model, "a .fg file")
    bounds, starts = factors.scope_start.tolist(), factors.start.tolist()
    labels = np.array(_labels(model), dtype=object)[factors.variables].tolist()
    states = factors.num_states[factors.variables].tolist()
    # With the variables in order, last one fastest, and entries first one fastest: an entry's place is that of the
    # table turned round.
    values = factors.flat.copy()
    for scope, (begin, end) in zip(pairwise(bounds), pairwise(starts), strict=True):
        if scope[1] - scope[0] > 1:
            values[begin:end] = values[begin:end].reshape(states[slice(*scope)]).ravel(order="F")
    texts = text_formats.format_numbers(values)
    listed = [np.flatnonzero(values[begin:end]).tolist() for begin, end in pairwise(starts)]
    lines = [str(len(bounds) - 1)]
    for (first, last), begin, entries in zip(pairwise(bounds), starts, listed, strict=False):
        known = [" ".join(map(str, said[first:last])) for said in (labels, states)]
        lines += ["", str(last - first), *known, str(len(entries))]
        lines += [f"{k} {texts[begin + k]}" for k in entries]
    return ("\n".join(lines) + "\n").encode()


def _labels(model: Model) -> list[int]:
    """Return the names where they are whole numbers in ascending order, else the variables' numbers."""
    names = model.names or ()
    if names and all(
        name.isdecimal() and name.isascii() and len(name) <= 15 and str(int(name)) == name for name in names
    ):
        labels = list(map(int, names))
        if all(a < b for a, b in pairwise(labels)):
            return labels
    return list(range(model.num_variables))


def _model_and_labels(tokens: Tokens) -> tuple[Model, Integers]:
    """Build the model from tokens, with the labels of its variables."""
    num_factors = int(tokens.whole(0, 1, 0, "the number of factors")[0])
    place, arity, listed = _walk(tokens, num_factors)
    numbers = tokens.numbers
    scope_start = offsets(arity)
    found, states = numbers[ranges(place + 1, arity)], numbers[ranges(place + 1 + arity, arity)]
    labels, variables = np.unique(found.astype(np.int64), return_inverse=True)
    text_formats.check_scopes(tokens, place + 1, arity, found)
    num_states = np.zeros(len(labels), dtype=np.int64)
    num_states[variables[::-1]] = states[::-1]  # the first that is said
    other = np.flatnonzero(num_states[variables] != states)
    if other.size:
        k = int(other[0])
        f = piece_of(scope_start, k)
        before = f"{count(num_states[variables[k]], 'state')} of variable {found[k]:.0f} as before"
        tokens.refuse(int(place[f] + 1 + arity[f] + k - scope_start[f]), before, f)
    text_formats.check_states(tokens, num_states)
    sizes = text_formats.float_sizes(num_states, arity, variables)
    limit = len(tokens.data) + FREE_ENTRIES
    if sizes.sum() > limit:
        f = int(sizes.argmax())
        most = f"tables of at most {limit} entries in all in a file of this size"
        tokens.fail(int(place[f]), f"expected {most}, found {sizes.sum():.0f} ({sizes[f]:.0f} here)", f)
    start = offsets(sizes.astype(np.int64))
    pair = ranges(place + 2 + 2 * arity, 2 * listed)
    entries, at = numbers[pair[::2]], pair[1::2]
    listed_start = offsets(listed)
    size_here = np.repeat(sizes, listed)
    wrong = np.flatnonzero(~(are_whole(entries, 0) & (entries < size_here)))
    if wrong.size:
        k = int(wrong[0])
        f = piece_of(listed_start, k)
        tokens.refuse(int(at[k]) - 1, f"an entry from 0 to {sizes[f] - 1:.0f}", f)
    if not text_formats.are_potentials(numbers[at]):
        text_formats.check_values(tokens, at, numbers[at], listed_start)
    spot = np.repeat(start[:-1], listed) + entries.astype(np.int64)
    values = np.zeros(start[-1])
    values[spot] = np.arange(len(spot))
    twice = np.flatnonzero(values[spot] != np.arange(len(spot)))
    if twice.size:
        k = int(twice[0])
        said = f"expected every entry once, found {entries[k]:.0f} twice"
        tokens.fail(int(at[k]) - 1, said, piece_of(listed_start, k))
    values[spot] = numbers[at]
    zero = np.flatnonzero((arity == 0) & (values[start[:-1]] == 0))
    if zero.size:
        text_formats.refuse_zero(tokens, int(place[zero[0]]), int(zero[0]))
    # a table with its first variable fastest is one of the variables in reverse with the last fastest
    backwards = np.repeat(scope_start[1:] + scope_start[:-1] - 1, arity) - np.arange(len(variables))
    return text_formats.as_model(num_states, arity, variables[backwards], values), labels


def _walk(tokens: Tokens, num_factors: int) -> tuple[Integers, Integers, Integers]:
    """Find where every factor begins, its number of variables, and how many entries are listed."""
    numbers = tokens.sequence
    total = len(numbers)
    place, arity, listed = array("q"), array("q"), array("q")
    at = 1
    for f in range(num_factors):
        k = numbers[at] if at < total else -1.0
        if not (0 <= k < LARGEST_WHOLE and k % 1 == 0):
            tokens.refuse(at, "its number of variables", f)
        if at + 2 * k + 1 >= total:
            tokens.refuse(total, f"{count(k, 'variable')}, their numbers of states and the number of entries", f)
        begin, num_variables = at, int(k)
        for first, what, least, beyond in (
            (1, "the label", 0, LARGEST_WHOLE),
            (1 + num_variables, "the number of states", 1, 2.0**31),
        ):
            for p in range(begin + first, begin + first + num_variables):
                if not (least <= numbers[p] < beyond and numbers[p] % 1 == 0):
                    tokens.refuse(p, f"{what} of a variable", f)
        at = begin + 1 + 2 * num_variables
        entries = numbers[at]
        if not (0 <= entries < LARGEST_WHOLE and entries % 1 == 0):
            tokens.refuse(at, "its number of entries", f)
        if at + 2 * entries >= total:
            tokens.refuse(total, f"{count(entries, 'entry', 'entries')} with a value each", f)
        place.append(begin)
        arity.append(num_variables)
        listed.append(int(entries))
        at += 1 + 2 * int(entries)
    tokens.end(at, count(num_factors, "factor"))
    return np.array(place, dtype=np.int64), np.array(arity, dtype=np.int64), np.array(listed, dtype=np.int64)
