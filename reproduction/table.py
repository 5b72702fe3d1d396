"""Table: of what the runs found, what claims and figures need, as NumPy columns, one row per run, method, selector and
number of clamps.

settings, experiment    how and for what it was run: "paper", "ours", ...; "errors", "times", ... (files say `part`)
family, run             which model
method, selector        "mf", "bethe" or "trw", and what chose the variables ("none" where clamps is 0)
clamps, variable        how many variables are clamped, and the last of them (-1: none)
error                   the sum over the branches less the truth
converged               whether every branch did
seconds                 of choosing the variables and solving the branches (nan but in "times" and "further")
agree                   on pseudo-greedy's rows: the heuristics that chose as it did, separated by commas
"""

import csv
import gzip
import math
import os
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz.errors import FormatError
from reproduction.families import family_named
from reproduction.settings import HEURISTICS
from reproduction.tools import unknown_name

Floats = NDArray[np.float64]

# Of each column, what its values are, and what stands for one that is missing.
COLUMNS: dict[str, tuple[type, Any]] = {
    **dict.fromkeys(("settings", "experiment", "family"), (str, "")),
    "run": (int, -1),
    **dict.fromkeys(("method", "selector"), (str, "")),
    **dict.fromkeys(("clamps", "variable"), (int, -1)),
    "error": (float, math.nan),
    "converged": (bool, False),
    "seconds": (float, math.nan),
    "agree": (str, ""),
}
DTYPES: dict[type, Any] = {str: object, int: np.int32, float: np.float64, bool: np.bool_}
# What the rows of one curve have in common.
CURVE = ("settings", "experiment", "family", "method", "selector")
# Rows that are turned into columns at once.
CHUNK = 5_000

Condition = str | float | Collection[str] | Collection[float]


class Table:
    """Hold the rows of `results`, column by column; immutable.

    >>> table = Table.from_rows(["family", "run", "method", "selector", "clamps", "error"],
    ...     [("grid25[0,2]", 0, "trw", "none", 0, 2.0), ("grid25[0,2]", 0, "trw", "maxW", 1, 1.5),
    ...      ("grid25[0,2]", 1, "trw", "none", 0, 3.0)])
    >>> table.where(clamps=0).column("error")
    array([2., 3.])
    >>> table.curve("grid25[0,2]", "trw", "maxW")
    array([[2. , 1.5],
           [3. , nan]])
    """

    def __init__(self, columns: dict[str, NDArray[Any]] | None = None) -> None:
        """Take all columns, or none: an empty table."""
        self._columns = columns or {name: np.empty(0, DTYPES[kind]) for name, (kind, _) in COLUMNS.items()}

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> "Table":
        """Make a table of rows as a database or a file gives them, None or nothing for what is missing.

        Names that are no columns are passed over; of settings and experiment, where neither is named, the paper's
        errors are meant.
        """
        texts: dict[str, str] = {}  # they repeat a lot: each is kept once
        pieces: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
        iterator = iter(rows)
        while chunk := list(islice(iterator, CHUNK)):
            given = dict(zip(names, zip(*chunk, strict=True), strict=True))
            for name, (kind, missing) in COLUMNS.items():
                values = given.get(name, (None,) * len(chunk))
                if None in values or "" in values:
                    missing = {"settings": "paper", "experiment": "errors"}.get(name, missing)
                    values = tuple(missing if value in (None, "") else value for value in values)
                if kind is str:
                    values = tuple(map(texts.setdefault, values, values))
                pieces[name].append(np.array(values, object if kind is str else np.float64).astype(DTYPES[kind]))
        return cls({name: np.concatenate(found) for name, found in pieces.items()} if pieces["run"] else None)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Table":
        """Read the view `results` of an SQLite file, or a CSV file of the same columns, also compressed (`.csv.gz`)."""
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        try:
            if path.name.endswith((".csv", ".csv.gz")):
                opened = gzip.open if path.suffix == ".gz" else open
                with opened(path, "rt", encoding="utf-8", newline="") as file:
                    rows = csv.reader(file)
                    return cls.from_rows(_checked(next(rows, [])), rows)
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            try:
                cursor = connection.execute("select * from results")
                return cls.from_rows(_checked([entry[0] for entry in cursor.description]), cursor)
            finally:
                connection.close()
        except (ValueError, OSError, EOFError, csv.Error, sqlite3.DatabaseError) as error:
            raise FormatError(f"{path}: {error}") from error

    def __len__(self) -> int:
        return len(self._columns["run"])

    def column(self, name: str) -> NDArray[Any]:
        """Return one column; texts as objects."""
        if name not in COLUMNS:
            raise unknown_name("column", name, COLUMNS)
        return self._columns[name]

    def unique(self, name: str) -> list[Any]:
        """Return the different values of a column, sorted."""
        return sorted(set(self.column(name).tolist()))

    def where(self, **conditions: Condition) -> "Table":
        """Return the rows whose columns have these values: `table.where(method="trw", clamps=[1, 2])`."""
        mask = np.ones(len(self), dtype=np.bool_)
        for name, condition in conditions.items():
            column = self.column(name)
            several = isinstance(condition, Collection) and not isinstance(condition, str)
            wanted: Collection[Any] = condition if several else [condition]  # type: ignore[assignment]
            mask &= np.logical_or.reduce([column == value for value in wanted])
        return Table({name: column[mask] for name, column in self._columns.items()})

    def runs(self, family: str, *, settings: str = "paper", experiment: str = "errors") -> list[int]:
        """Return the numbers of the runs of a family that there are, sorted: the rows of its curves."""
        return self._runs.get((settings, experiment, family), [])

    def curve(
        self,
        family: str,
        method: str,
        selector: str,
        *,
        settings: str = "paper",
        experiment: str = "errors",
        column: str = "error",
    ) -> Floats:
        """Return (runs, clamps from 0 on) a column of one selector's rows, by default the error; nan where there is no
        row.

        With 0 clamps all selectors are one.  The rows are those of `runs`, whatever the selector: curves of a family
        can be compared run by run.
        """
        common = settings, experiment, family, method
        rows = np.array([row for name in {"none", selector} for row in self._rows.get((*common, name), ())], np.int64)
        clamps, runs = self.column("clamps")[rows], self.runs(family, settings=settings, experiment=experiment)
        found = np.full((len(runs), int(clamps.max(initial=0)) + 1), math.nan)
        found[np.searchsorted(runs, self.column("run")[rows]), clamps] = self.column(column)[rows]
        return found

    def shown(
        self, family: str, method: str, selector: str, *, settings: str = "paper", experiment: str = "errors"
    ) -> Floats:
        """Return (runs, clamps from 0 on) the errors as the paper's figures have them: of Bethe on mixed models without
        the sign.

        Besides the selectors there are "best" and "worst": in each run, for each number of clamps, the best or the
        worst of the heuristics that differ.  Best is TRW's lowest, mean field's highest, and of Bethe the one nearest
        to the truth; worst is the other end.
        """
        names = distinct(family) if selector in ("best", "worst") else (selector,)
        curves = [self.curve(family, method, name, settings=settings, experiment=experiment) for name in names]
        errors = np.stack(padded(curves, max(curve.shape[1] for curve in curves)))
        badness = {"trw": errors, "mf": -errors}.get(method, np.abs(errors))
        badness = np.where(np.isnan(errors), -math.inf if selector == "worst" else math.inf, badness)
        chosen = badness.argmax(axis=0) if selector == "worst" else badness.argmin(axis=0)
        found = np.asarray(np.take_along_axis(errors, chosen[None], axis=0)[0], dtype=np.float64)
        return np.abs(found) if method == "bethe" and family_named(family).mixed else found

    @cached_property
    def _rows(self) -> dict[tuple[str, ...], list[int]]:
        """Return the rows of each curve, but for those before the first clamp, which are of the selector "none"."""
        found: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for row, key in enumerate(zip(*(self.column(name).tolist() for name in CURVE), strict=True)):
            found[key].append(row)
        return dict(found)

    @cached_property
    def _runs(self) -> dict[tuple[str, ...], list[int]]:
        """Return the runs of each family in each experiment of each settings."""
        found: dict[tuple[str, ...], set[int]] = defaultdict(set)
        for key, rows in self._rows.items():
            found[key[:3]].update(self.column("run")[rows].tolist())
        return {key: sorted(runs) for key, runs in found.items()}


def padded(curves: Iterable[Floats], width: int) -> list[Floats]:
    """Lengthen curves to a number of points, nan beyond what each has."""
    return [np.pad(curve, ((0, 0), (0, width - curve.shape[1])), constant_values=math.nan) for curve in curves]


def distinct(family: str) -> tuple[str, ...]:
    """Return the heuristics that differ in a family: where no cycle is frustrated, frustCycles scores nothing, and its
    choice falls to maxW0's."""
    return (
        HEURISTICS
        if family_named(family).mixed
        else tuple(name for name in HEURISTICS if not name.startswith("frustCycles"))
    )


def _checked(names: Sequence[str]) -> list[str]:
    """Return the column names of a file, all of which must be there."""
    found = ["experiment" if name == "part" else name for name in names]
    if absent := [name for name in COLUMNS if name not in found]:
        raise ValueError(f"expected a table of results, found no column {', '.join(absent)}")
    return found
