"""Table: what the runs found, as NumPy columns, one row per run, method, selector and number of clamps.

settings, part      how and for what it was run: "paper" or "ours"; "errors", "times" or "optimal"
family, run         which model
method, selector    "mf", "bethe" or "trw", and what chose the variables ("none" where clamps is 0)
clamps, variable    how many variables are clamped, and the last of them (-1: none)
log_z, exact        the sum over the branches, and the truth; error = log_z - exact
converged           whether every branch did
num_branches        that were summed
seconds             from 0 clamps to here, selection and solves (nan but in "times")
agree               on pseudo-greedy's rows: the heuristics that chose as it did, separated by commas
num_variables, num_edges    of the model

Texts repeat a lot: they are kept as codes into a short list of names, and a million rows are a few ten megabytes.
"""

import csv
import gzip
import io
import math
import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.clamping.selectors import selectors
from clampz.errors import FormatError, OptionError, unknown_name
from clampz.model.tables import Floats, Integers

TEXTS = ("settings", "part", "family", "method", "selector", "agree")
COLUMNS: dict[str, type] = {
    "settings": str,
    "part": str,
    "family": str,
    "run": int,
    "method": str,
    "selector": str,
    "clamps": int,
    "variable": int,
    "log_z": float,
    "exact": float,
    "error": float,
    "converged": bool,
    "num_branches": int,
    "seconds": float,
    "agree": str,
    "num_variables": int,
    "num_edges": int,
}
DTYPES: dict[type, Any] = {int: np.int32, float: np.float64, bool: np.bool_}
MISSING: dict[type, Any] = {str: "", int: -1, float: math.nan, bool: False}
HEURISTICS = tuple(selectors())
# Rows that are turned into columns at once.
CHUNK = 50_000
# Of numbers in a file: far finer than any tolerance, and half the size of all there are.
DECIMALS = 9

Condition = str | float | Collection[str] | Collection[float]


class Texts(NamedTuple):
    """A column of texts: names[codes]."""

    codes: NDArray[np.int32]
    names: tuple[str, ...]


class Table:
    """The rows of `results`, column by column; immutable.

    >>> table = Table.from_rows(["family", "run", "method", "selector", "clamps", "error"],
    ...     [("grid25[0,2]", 0, "trw", "none", 0, 2.0), ("grid25[0,2]", 0, "trw", "maxW", 1, 1.5), ("grid25[0,2]", 1, "trw", "none", 0, 3.0)])
    >>> table
    Table(3 rows, 1 family, 2 runs)
    >>> table.where(clamps=0).column("error")
    array([2., 3.])
    >>> table.curve("grid25[0,2]", "trw", "maxW")
    array([[2. , 1.5],
           [3. , nan]])
    """

    def __init__(self, columns: Mapping[str, ArrayLike] | None = None) -> None:
        """Columns by name; those that are not given are empty texts, -1 or nan ("paper" and "errors" for settings and
        part)."""
        given = {} if columns is None else dict(columns)
        for name in given:
            if name not in COLUMNS:
                raise unknown_name("column", name, COLUMNS)
        sizes = {len(values) for values in map(np.asarray, given.values())}
        if len(sizes) > 1:
            raise OptionError(f"columns: expected one length, found {', '.join(map(str, sorted(sizes)))}")
        builder = _Builder(list(given))
        builder.add([np.asarray(values).tolist() for values in given.values()])
        self._columns: dict[str, NDArray[Any] | Texts] = builder.columns()

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
        """Rows as a database or a file gives them, None for what is missing; columns that the table does not have are
        passed over."""
        builder = _Builder(names)
        iterator = iter(rows)
        while chunk := list(islice(iterator, CHUNK)):
            builder.add(list(zip(*chunk, strict=True)))
        return cls._of(builder.columns())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Table":
        """The view `results` of an SQLite file, or a CSV file of the same columns, also compressed (`.csv.gz`)."""
        path = Path(path)
        if path.name.endswith((".csv", ".csv.gz")):
            with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
                try:
                    rows = csv.reader(file)
                    return cls.from_rows(_checked(next(rows, []), path), rows)
                except (ValueError, OSError, EOFError, csv.Error) as error:
                    raise FormatError(f"{path}: {error}") from error
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            cursor = connection.execute("select * from results")
            return cls.from_rows(_checked([entry[0] for entry in cursor.description], path), cursor)
        except sqlite3.DatabaseError as error:
            raise FormatError(f"{path}: {error}") from error
        finally:
            connection.close()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file, compressed if its name ends in .gz, to DECIMALS decimals.

        The same table gives the same bytes, and a file that is there already is replaced whole or not at all.
        """
        path = Path(path)
        part = path.with_name(f"{path.name}.part")
        columns = [self._printed(name) for name in COLUMNS]
        try:
            with part.open("wb") as raw:
                binary = gzip.GzipFile("", "wb", 9, raw, mtime=0) if path.suffix == ".gz" else raw
                with io.TextIOWrapper(binary, newline="") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    writer.writerow(COLUMNS)
                    writer.writerows(zip(*columns, strict=True))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def __len__(self) -> int:
        return len(self._array("run"))

    def __repr__(self) -> str:
        families = self.unique("family")
        runs = sum(len(rows.runs) for rows in self._groups.values())
        return f"Table({len(self)} rows, {len(families)} famil{'y' if len(families) == 1 else 'ies'}, {runs} run{'' if runs == 1 else 's'})"

    def column(self, name: str) -> NDArray[Any]:
        """One column; texts as objects."""
        if name not in COLUMNS:
            raise unknown_name("column", name, COLUMNS)
        column = self._columns[name]
        return np.array(column.names, dtype=object)[column.codes] if isinstance(column, Texts) else column

    def unique(self, name: str) -> list[Any]:
        """The different values of a column, sorted."""
        if name in TEXTS:
            codes, names = self._texts(name)
            return sorted(names[code] for code in np.unique(codes).tolist())
        return list(np.unique(self.column(name)).tolist())

    def where(self, **conditions: Condition) -> "Table":
        """The rows whose columns have these values: `table.where(method="trw", clamps=[1, 2])`."""
        mask = np.ones(len(self), dtype=np.bool_)
        for name, condition in conditions.items():
            wanted: list[Any] = (
                [condition] if isinstance(condition, str) or not isinstance(condition, Collection) else list(condition)
            )
            if name not in COLUMNS:
                raise unknown_name("column", name, COLUMNS)
            if name in TEXTS:
                codes, names = self._texts(name)
                mask &= np.isin(codes, [names.index(value) for value in wanted if value in names])
            else:
                mask &= np.isin(self._array(name), wanted)
        return self.take(np.flatnonzero(mask))

    def take(self, rows: Integers) -> "Table":
        """These rows."""
        return Table._of(
            {
                name: Texts(c.codes[rows], c.names) if isinstance(c, Texts) else c[rows]
                for name, c in self._columns.items()
            }
        )

    def runs(self, family: str, *, settings: str = "paper", part: str = "errors") -> list[int]:
        """The numbers of the runs of a family that there are, sorted: the rows of its curves."""
        rows = self._groups.get((settings, part, family))
        return [] if rows is None else rows.runs.tolist()

    def curve(
        self,
        family: str,
        method: str,
        selector: str,
        *,
        settings: str = "paper",
        part: str = "errors",
        column: str = "error",
    ) -> Floats:
        """(runs, clamps from 0 on) a column of one selector's rows, by default the error; nan where there is no row.

        With 0 clamps all selectors are one.  The rows are those of `runs`, whatever the selector: curves of a family
        can be compared run by run.
        """
        group = self._groups.get((settings, part, family))
        if group is None:
            return np.empty((0, 1))
        chosen = group.rows[
            self._is(group.rows, "method", method)
            & (self._is(group.rows, "selector", selector) | self._is(group.rows, "selector", "none"))
        ]
        clamps = self._array("clamps")[chosen]
        found = np.full((len(group.runs), int(clamps.max(initial=0)) + 1), math.nan)
        found[np.searchsorted(group.runs, self._array("run")[chosen]), clamps] = self._array(column)[chosen]
        return found

    def shown(
        self, family: str, method: str, selector: str, *, settings: str = "paper", part: str = "errors"
    ) -> Floats:
        """(runs, clamps from 0 on) the errors as the paper's figures have them: of Bethe on mixed models without the
        sign.

        Besides the selectors there are "best" and "worst", see `extreme`.
        """
        errors = (
            self.extreme(family, method, selector, settings=settings, part=part)  # type: ignore[arg-type]
            if selector in ("best", "worst")
            else self.curve(family, method, selector, settings=settings, part=part)
        )
        return np.abs(errors) if method == "bethe" and is_mixed(family) else errors

    def extreme(
        self,
        family: str,
        method: str,
        which: Literal["best", "worst"],
        *,
        settings: str = "paper",
        part: str = "errors",
    ) -> Floats:
        """(runs, clamps from 0 on) in each run, for each number of clamps, the signed error of the best or the worst of
        the ten heuristics.

        Best is TRW's lowest, mean field's highest, and of Bethe the one nearest to the truth; worst is the other end.
        """
        found = [self.curve(family, method, name, settings=settings, part=part) for name in HEURISTICS]
        width = max(errors.shape[1] for errors in found)
        errors = np.stack(
            [np.pad(errors, ((0, 0), (0, width - errors.shape[1])), constant_values=math.nan) for errors in found]
        )
        badness = {"trw": errors, "mf": -errors}.get(method, np.abs(errors))
        badness = np.where(np.isnan(errors), math.inf if which == "best" else -math.inf, badness)
        chosen = badness.argmin(axis=0) if which == "best" else badness.argmax(axis=0)
        return np.asarray(np.take_along_axis(errors, chosen[None], axis=0)[0], dtype=np.float64)

    @classmethod
    def _of(cls, columns: dict[str, NDArray[Any] | Texts]) -> "Table":
        table = cls.__new__(cls)
        table._columns = columns
        return table

    def _array(self, name: str) -> NDArray[Any]:
        column = self._columns[name]
        assert not isinstance(column, Texts)
        return column

    def _texts(self, name: str) -> Texts:
        column = self._columns[name]
        assert isinstance(column, Texts)
        return column

    def _is(self, rows: Integers, name: str, value: str) -> NDArray[np.bool_]:
        codes, names = self._texts(name)
        return np.asarray(codes[rows] == (names.index(value) if value in names else -1))

    def _printed(self, name: str) -> Iterable[object]:
        """A column as it is written to a file; what is missing as nothing."""
        if name in TEXTS:
            return list(self.column(name))
        values: list[Any] = self._array(name).tolist()
        if COLUMNS[name] is float:
            return [None if math.isnan(value) else round(value, DECIMALS) for value in values]
        return map(int, values) if COLUMNS[name] is bool else [None if value == -1 else value for value in values]

    @cached_property
    def _groups(self) -> dict[tuple[str, str, str], "_Group"]:
        """The rows of each family in each part of each settings."""
        if not len(self):
            return {}
        columns = [self._texts(name) for name in ("settings", "part", "family")]
        key = np.zeros(len(self), dtype=np.int64)
        for codes, names in columns:
            key = key * len(names) + codes
        order = np.argsort(key, kind="stable")
        begin = np.flatnonzero(np.diff(key[order], prepend=-1))
        groups = {}
        for rows in np.split(order, begin[1:]):
            settings, part, family = (names[codes[rows[0]]] for codes, names in columns)
            groups[settings, part, family] = _Group(rows, np.unique(self._array("run")[rows]))
        return groups


class _Group(NamedTuple):
    rows: Integers
    runs: NDArray[np.int32]


class _Builder:
    """Columns from chunks of rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self.places = {name: k for k, name in enumerate(names) if name in COLUMNS}
        self.codes: dict[str, dict[str, int]] = {name: {} for name in TEXTS}
        self.parts: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}

    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        """A chunk, column by column; None, and in a file nothing, is what is missing."""
        size = len(columns[0]) if columns else 0
        for name, kind in COLUMNS.items():
            place = self.places.get(name)
            missing: Any = {"settings": "paper", "part": "errors"}.get(name, MISSING[kind])
            if place is None:
                values: list[Any] = [missing] * size
            else:
                values = [
                    missing if value is None or (value == "" and kind is not str) else value for value in columns[place]
                ]
            if kind is str:
                codes = self.codes[name]
                self.parts[name].append(
                    np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int32)
                )
            else:
                as_numbers = [int(value) for value in values] if kind is bool else values
                self.parts[name].append(np.array(as_numbers, dtype=np.float64).astype(DTYPES[kind]))

    def columns(self) -> dict[str, NDArray[Any] | Texts]:
        found: dict[str, NDArray[Any] | Texts] = {}
        for name, kind in COLUMNS.items():
            array = np.concatenate([np.empty(0, dtype=DTYPES.get(kind, np.int32)), *self.parts[name]])
            array.flags.writeable = False
            found[name] = Texts(array, tuple(self.codes[name])) if kind is str else array
        return found


def is_mixed(family: str) -> bool:
    """Whether a family of this name has weights of both signs.

    >>> is_mixed("grid49[-6,6]"), is_mixed("er25[0,2]")
    (True, False)
    """
    return "[-" in family


def _checked(names: Sequence[str], path: Path) -> Sequence[str]:
    """The column names of a file, all of which must be there."""
    absent = [name for name in COLUMNS if name not in names]
    if absent:
        raise FormatError(f"{path}: expected a table of results, found no column {', '.join(absent)}")
    return names
