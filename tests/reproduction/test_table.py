"""The table of results: read from any file, cut down by conditions, and laid out as curves."""

import csv
import gzip
import sqlite3

import numpy as np
import pytest
from made_up_tables import HELD, synthetic_rows, synthetic_table

from clampz.errors import FormatError, OptionError
from reproduction.families import FAMILIES
from reproduction.table import COLUMNS, Table


@pytest.fixture(scope="module")
def few():
    """Three families of different kinds, at our settings too."""
    return synthetic_table([family for family in FAMILIES if family.name in HELD], settings=("paper", "ours"))


def same(a: Table, b: Table) -> bool:
    return all(
        np.array_equal(a.column(name), b.column(name), equal_nan=kind is float) for name, (kind, _) in COLUMNS.items()
    )


def test_a_table_is_the_same_from_every_file(tmp_path, few):
    names = ["part" if name == "experiment" else name for name in COLUMNS]  # as files have it
    rows = list(synthetic_rows([family for family in FAMILIES if family.name in HELD], settings=("paper", "ours")))
    for name, opened in (("table.csv", open), ("table.csv.gz", gzip.open)):
        with opened(tmp_path / name, "wt", newline="") as file:
            csv.writer(file).writerows([names, *([int(x) if x is True else x for x in row] for row in rows)])
    with sqlite3.connect(tmp_path / "results.sqlite") as database:
        database.execute(f"create table results (extra, {', '.join(names)})")
        database.executemany(f"insert into results values (0, {', '.join('?' * len(names))})", rows)
    database.close()
    for name in ("table.csv", "table.csv.gz", "results.sqlite"):
        assert same(Table.read(tmp_path / name), few)


def test_files_that_are_no_tables(tmp_path):
    (tmp_path / "a.csv").write_text("family,run\n")
    (tmp_path / "a.sqlite").write_text("not a database, however long this text may be")
    (tmp_path / "b.csv").write_text(",".join(COLUMNS) + "\n" + ",".join("x" * len(COLUMNS)) + "\n")
    for name in ("a.csv", "a.sqlite", "b.csv"):
        with pytest.raises(FormatError, match=name):
            Table.read(tmp_path / name)
    for name in ("none.csv", "none.sqlite"):
        with pytest.raises(FileNotFoundError):
            Table.read(tmp_path / name)
    assert not (tmp_path / "none.sqlite").exists()


def test_where(few):
    chosen = few.where(family="grid49[-6,6]", method=["mf", "trw"], clamps=range(1, 3))
    assert set(chosen.column("method")) == {"mf", "trw"} and set(chosen.column("clamps")) == {1, 2}
    assert chosen.unique("family") == ["grid49[-6,6]"]
    assert len(few.where(family="no such family")) == 0
    with pytest.raises(OptionError, match="did you mean 'family'"):
        few.where(familly="grid")


def shown(table, method, selector):
    return table.shown("grid25[-6,6]", method, selector).tolist()


def test_best_and_worst_are_of_each_run():
    names = ["family", "run", "method", "selector", "clamps", "error"]
    errors = {"trw": ([2.0, 1.0], 1.0, 2.0), "mf": ([-2.0, -1.0], -1.0, -2.0), "bethe": ([-0.5, 1.0], 0.5, 1.0)}
    for method, (found, best, worst) in errors.items():
        rows = [
            ("grid25[-6,6]", run, method, h, 1, e)
            for run in (4, 7)
            for h, e in zip(("maxW", "Mpower"), found, strict=True)
        ]
        table = Table.from_rows(names, [*rows, *(("grid25[-6,6]", run, method, "none", 0, 3.0) for run in (4, 7))])
        assert table.runs("grid25[-6,6]") == [4, 7]
        assert shown(table, method, "best") == [[3.0, best]] * 2
        assert shown(table, method, "worst") == [[3.0, worst]] * 2


def test_an_empty_table():
    table = Table()
    assert len(table) == 0 and table.unique("family") == [] and table.runs("grid25[0,2]") == []
    assert (
        table.curve("grid25[0,2]", "trw", "maxW").shape[0] == 0
        and table.shown("grid25[0,2]", "trw", "best").shape[0] == 0
    )
    assert len(table.where(method="trw")) == 0
