r"""The UAI format: plain text, potentials themselves and not their logarithms, the last variable of a table varying fastest.

    MARKOV
    2               variables
    2 3             states of each
    2               factors
    1 0             number of variables of the factor, and which
    2 0 1
    2  1.0 0.5      number of values of the factor, and the values
    6  1 2 3  4 5 6

Everything is split at white space: lines mean nothing and are counted only for error messages.  Variables and factors are numbered from 0.
Factors over the same variables are multiplied, a factor over no variable is a constant, and 0 is a hard zero.  BAYES networks and factors of three or
more variables are refused.
"""

import gzip
import os
import zlib
from itertools import chain, pairwise, takewhile
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from clampz.errors import FormatError, ModelError
from clampz.model import Model
from clampz.tables import Floats, Integers, offsets, ranges

GZIP_MAGIC = b"\x1f\x8b"

# exp() of anything between -this and this is a normal float, with all its digits.
MAX_LOG = 700.0


def read(path: str | os.PathLike[str]) -> Model:
    """The model in a UAI file, plain or compressed with gzip.

    Anything unexpected is a FormatError that names the file, the line, the factor, what was expected and what was found.
    """
    data = Path(path).read_bytes()
    if data.startswith(GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FormatError(f"{path}: expected a whole gzip file, found a broken one ({error})") from None
    return _Parser(os.fspath(path), data).model()


def write(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model as a UAI file, compressed if its name ends in `.gz`.

    One factor per variable, one per edge, and one over no variables for the constant unless that is 0.  Values have all their digits: reading the
    file gives the same potentials up to the rounding of exp and log.  Names are lost, as the format has none.  A table beyond the range of floats is
    shifted into it, against the constant.  The file appears whole or not at all.
    """
    shift_unary, unary = _shifted(model.unary.flat, model.unary.start, np.arange(model.num_variables))
    shift_pairs, pairs = _shifted(model.pairwise.flat, model.pairwise.start, model.edges)
    constant = model.constant + shift_unary + shift_pairs
    num_constants = int(np.ceil(abs(constant) / MAX_LOG))
    states = model.num_states.tolist()
    scopes = chain((f"1 {i}" for i in range(model.num_variables)), (f"2 {i} {j}" for i, j in model.edges.tolist()), ("0" for _ in range(num_constants)))
    values = list(map(repr, np.concatenate([unary, pairs, np.exp(np.full(num_constants, constant / max(num_constants, 1)))]).tolist()))
    bounds = offsets(np.concatenate([np.diff(model.unary.start), np.diff(model.pairwise.start), np.ones(num_constants, dtype=np.int64)])).tolist()
    tables = (f"{end - begin} {' '.join(values[begin:end])}" for begin, end in pairwise(bounds))
    lines = chain(["MARKOV", str(len(states)), " ".join(map(str, states)), str(len(bounds) - 1)], scopes, [""], tables, [""])
    _replace(Path(path), "\n".join(lines).encode())


class _Parser:
    """The tokens of one file, with the errors that point into them."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.tokens = data.split()
        # Numbers up to the first token that is none: what is behind it counts as missing, and the error finds it there.
        self.numbers = np.empty(0)
        numbers = self.tokens[1:]
        if b"_" in data:  # float() would read 1_000 as a number
            numbers = numbers[: next((k for k, token in enumerate(numbers) if b"_" in token), None)]
        try:
            self.numbers = np.fromiter(map(float, numbers), dtype=np.float64, count=len(numbers))
        except ValueError:
            self.numbers = np.array(list(takewhile(lambda number: number is not None, map(_as_number, numbers))), dtype=np.float64)

    def model(self) -> Model:
        if not self.tokens or self.tokens[0] != b"MARKOV":
            if self.tokens and self.tokens[0] == b"BAYES":
                self.fail(0, "not supported yet: BAYES networks; expected MARKOV, found BAYES")
            self.fail(0, f"expected MARKOV, found {self.found(0)}")
        n = int(self.whole(0, 1, 0, "the number of variables")[0])
        num_states = self.whole(1, n, 1, "the number of states of a variable").astype(np.int64)
        num_factors = int(self.whole(1 + n, 1, 0, "the number of factors")[0])
        arity, i, j, after = self.scopes(2 + n, num_factors, n)
        sizes = np.where(arity > 0, num_states[i], 1) * np.where(arity > 1, num_states[j], 1) if n else np.ones(num_factors, dtype=np.int64)
        place = self.tables(after, sizes)
        logs = self.logs(place, sizes)

        unary_start = offsets(num_states)
        unary = np.zeros(unary_start[-1])
        single, double = arity == 1, arity == 2
        of = np.repeat(arity, sizes)
        np.add.at(unary, ranges(unary_start[i[single]], sizes[single]), logs[of == 1])
        constants = np.flatnonzero(arity == 0)
        impossible = constants[logs[of == 0] == -np.inf]
        if impossible.size:
            f = impossible[0]
            self.fail(int(place[f]), "expected a constant above 0, found 0: every configuration would have probability zero", f)
        return Model.from_flat(num_states, unary, np.stack([i, j], axis=1)[double], logs[of == 2], constant=float(logs[of == 0].sum()))

    def scopes(self, at: int, num_factors: int, n: int) -> tuple[Integers, Integers, Integers, int]:
        """Of every factor how many variables it has, and which (0 where it has fewer); and where the scopes end."""
        tokens = self.numbers[at:].tolist()
        scope = np.zeros((min(num_factors, len(tokens)), 3), dtype=np.int64)
        p = 0
        for f in range(num_factors):
            if p >= len(tokens):
                self.missing(at + p, "its number of variables", f)
            k = tokens[p]
            if k not in (0.0, 1.0, 2.0):
                if k > 2 and k % 1 == 0:
                    self.fail(at + p + 1, f"not supported yet: factors of three or more variables; expected at most 2, found {k:g}", f)
                self.fail(at + p + 1, f"expected its number of variables, found {self.found(at + p + 1)}", f)
            size = int(k)
            if p + size >= len(tokens):
                self.missing(at + len(tokens), f"{size} variable{'' if size == 1 else 's'}", f)
            for q in range(1, size + 1):
                v = tokens[p + q]
                if not 0 <= v < n or v != int(v):
                    self.fail(at + p + q + 1, f"expected a variable from 0 to {n - 1}, found {self.found(at + p + q + 1)}", f)
                scope[f, q] = v
            if size == 2 and tokens[p + 1] == tokens[p + 2]:
                self.fail(at + p + 2, f"expected two different variables, found {scope[f, 1]} twice", f)
            scope[f, 0] = size
            p += size + 1
        return scope[:, 0], scope[:, 1], scope[:, 2], at + p

    def tables(self, at: int, sizes: Integers) -> Integers:
        """Where the values of every factor begin, as a token number."""
        start = at + offsets(1 + np.minimum(sizes, len(self.numbers)))  # no table is longer than the file, and sums of larger ones might overflow
        there = start[:-1] < len(self.numbers)
        wrong = np.flatnonzero(self.numbers[start[:-1][there]] != sizes[there])
        if wrong.size:
            f = int(wrong[0])
            hint = f" (or factor {f - 1} has too few or too many)" if f else ""
            self.fail(int(start[f]) + 1, f"expected {_count(sizes[f])}, found {self.found(int(start[f]) + 1)}{hint}", f)
        cut = np.flatnonzero(start[1:] > len(self.numbers))
        if cut.size:
            f = int(cut[0])
            if not there[f]:
                self.missing(int(start[f]), f"its number of values, {sizes[f]}", f)
            self.missing(len(self.numbers), _count(sizes[f]), f, len(self.numbers) - int(start[f]) - 1)
        if start[-1] + 1 < len(self.tokens):
            self.fail(int(start[-1]) + 1, f"expected the end of the file after {len(sizes)} factors, found {self.found(int(start[-1]) + 1)}")
        return start[:-1] + 2

    def logs(self, place: Integers, sizes: Integers) -> Floats:
        """Logarithms of all values, factor by factor."""
        token = ranges(place, sizes)
        values = self.numbers[token - 1]
        wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))
        if wrong.size:
            f = int(np.searchsorted(offsets(sizes), wrong[0], side="right")) - 1
            self.fail(int(token[wrong[0]]), f"expected a potential, finite and not negative, found {self.found(int(token[wrong[0]]))}", f)
        with np.errstate(divide="ignore"):
            return np.log(values)

    def whole(self, at: int, count: int, least: int, what: str) -> Floats:
        """`count` whole numbers from `numbers[at]` on."""
        values = self.numbers[at : at + count]
        wrong = np.flatnonzero(~((values >= least) & (values == np.floor(values)) & (values < 2.0**31)))
        if wrong.size:
            self.fail(at + int(wrong[0]) + 1, f"expected {what}, found {self.found(at + int(wrong[0]) + 1)}")
        if len(values) < count:
            self.missing(len(self.numbers), what)
        return values

    def missing(self, at: int, what: str, factor: int | None = None, num_found: int | None = None) -> NoReturn:
        """`numbers[at]` is needed and not there: the file ends, or has something else than a number."""
        found = self.found(at + 1)
        if num_found is not None:
            found = f"{num_found} and then {found}" if at + 1 < len(self.tokens) else str(num_found)
        self.fail(at + 1, f"expected {what}, found {found}", factor)

    def found(self, token: int) -> str:
        if token >= len(self.tokens):
            return "the end of the file"
        text = self.tokens[token][:40].decode("utf-8", errors="replace")
        return text if token - 1 < len(self.numbers) and token else repr(text)

    def fail(self, token: int, message: str, factor: int | None = None) -> NoReturn:
        """Raise with the line of a token; only now are lines counted."""
        line, seen = 1, 0
        for number, text in enumerate(self.data.splitlines(), start=1):
            seen += len(text.split())
            line = number
            if seen > token:
                break
        raise FormatError(f"{self.path}, line {line}{'' if factor is None else f', factor {factor}'}: {message}")


def _as_number(token: bytes) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None


def _count(size: int) -> str:
    return f"{size} value{'' if size == 1 else 's'}"


def _shifted(flat: Floats, start: Integers, variables: NDArray[np.integer]) -> tuple[float, Floats]:
    """exp of the tables, those beyond the range of floats shifted into it, and by how much in all."""
    finite = np.isfinite(flat)
    if not flat.size or np.abs(flat[finite]).max(initial=0.0) <= MAX_LOG:
        return 0.0, np.exp(flat)
    high = np.maximum.reduceat(flat, start[:-1])
    low = np.minimum.reduceat(np.where(finite, flat, np.inf), start[:-1])
    wide = np.flatnonzero(high - low > 2 * MAX_LOG)
    if wide.size:
        k = wide[0]
        raise ModelError(f"potentials of {variables[k].tolist()}: expected a spread of at most {2 * MAX_LOG:g} nats in a UAI file, found {high[k] - low[k]:g}")
    with np.errstate(invalid="ignore"):  # a table of hard zeros alone has no middle, and needs none
        shift = np.where((high > MAX_LOG) | (low < -MAX_LOG), (high + low) / 2, 0.0)
    return float(shift.sum()), np.exp(flat - np.repeat(shift, np.diff(start)))


def _replace(path: Path, data: bytes) -> None:
    """Write beside the file, then move over it: readers see the old file or the new one, and never a part."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(gzip.compress(data, mtime=0) if path.name.endswith(".gz") else data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
