"""The store: what it keeps, what it refuses, and what a full disk does to it."""

import gzip
import math
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import made_up_runs
import numpy as np
import pytest
from made_up_runs import ROOT, TASK, finished

import clampz as cz
from reproduction.runs.experiments import Finished, Row
from reproduction.runs.store import APPLICATION, SCHEMA_VERSION, Store, StoreError, only_one
from reproduction.settings import SETTINGS
from reproduction.table import Table

DESCRIBED = {name: settings.described() for name, settings in SETTINGS.items()}


def made(path: Path, *runs: Finished, **options: object) -> Path:
    with Store(path, **options) as store:
        store.make()
        for run in runs:
            store.add(run)
    return path


def test_a_run_is_there_for_others_as_soon_as_it_is_added(tmp_path):
    with Store(tmp_path / "results.sqlite") as store:
        store.make()
        assert store.done() == set()
        assert store.add(finished())
        assert [path.name for path in tmp_path.iterdir()] == ["results.sqlite"]
        shutil.copy(store.path, tmp_path / "copy.sqlite")
        with Store(tmp_path / "copy.sqlite") as other:
            assert other.done() == store.done() == {TASK}


def test_one_query_has_everything(tmp_path):
    path = made(tmp_path / "results.sqlite", finished(), finished(replace(TASK, run=1)))
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    rows = [dict(row) for row in connection.execute("select * from results order by run, clamps")]
    (options,) = connection.execute("select options from settings where name = ?", (rows[0]["settings"],)).fetchone()
    connection.close()
    assert len(rows) == 6
    assert rows[4] == {
        **{
            "settings": "paper",
            "part": "errors",
            "family": "complete10[0,2]",
            "run": 1,
            "method": "trw",
            "selector": "maxW",
            "clamps": 1,
            "variable": 4,
        },
        **{
            "log_z": 7.5 - 1 / 3,
            "exact": 5 + 1 / 7,
            "error": 7.5 - 1 / 3 - (5 + 1 / 7),
            "converged": 0,
            "num_branches": 2,
            "seconds": None,
        },
        **{"agree": "maxW,Mpower", "num_variables": 10, "num_edges": 45, "seed": 2**47 + 1, "version": cz.__version__},
    }
    assert '"max_iter":10000' in options


def test_no_run_is_counted_twice(tmp_path):
    with Store(made(tmp_path / "results.sqlite", finished())) as store:
        before = store.path.read_bytes()
        assert not store.add(replace(finished(), exact=1.0))
        assert store.path.read_bytes() == before
        assert len(store.table()) == 3


def test_a_run_is_added_whole_or_not_at_all(tmp_path):
    bad = finished()
    bad = replace(bad, rows=(*bad.rows, Row("mf", "maxW", 1, 0, math.nan, True, 2)))
    with Store(made(tmp_path / "results.sqlite")) as store:
        with pytest.raises(sqlite3.IntegrityError, match="log_z"):
            store.add(bad)
        assert store.done() == set()
        assert store.add(finished())
        assert len(store.table()) == 3


def test_the_plain_table_is_the_same_table(tmp_path):
    path, plain = (
        made(tmp_path / "results.sqlite", finished(), finished(replace(TASK, run=1), num_rows=5)),
        tmp_path / "results.csv.gz",
    )
    with Store(path) as store:
        store.export(plain)
        first = plain.read_bytes()
        store.export(plain)
    assert plain.read_bytes() == first
    assert sorted(each.name for each in tmp_path.iterdir()) == ["results.csv.gz", "results.sqlite"]
    assert (
        gzip.decompress(first)
        .decode()
        .splitlines()[0]
        .startswith("settings,part,family,run,method,selector,clamps,variable,exact,error,converged,")
    )
    one, other = Table.read(path), Table.read(plain)
    for name in ("family", "selector", "clamps", "variable", "converged", "agree"):
        assert sorted_by_run(one, name) == sorted_by_run(other, name)
    assert sorted_by_run(other, "error") == pytest.approx(sorted_by_run(one, "error"), abs=1e-7)


def sorted_by_run(table: Table, name: str) -> list[object]:
    return table.column(name)[np.lexsort([table.column("clamps"), table.column("run")])].tolist()


def test_the_order_in_which_runs_came_does_not_matter_to_the_plain_table(tmp_path):
    runs = [finished(replace(TASK, run=run)) for run in range(3)]
    for name, order in (("one", runs), ("other", runs[::-1])):
        with Store(made(tmp_path / f"{name}.sqlite", *order)) as store:
            store.export(tmp_path / f"{name}.csv.gz")
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "other.csv.gz").read_bytes()


def test_a_plain_table_alone_is_gone_on_with(tmp_path):
    timed = finished(replace(TASK, experiment="times"))
    timed = replace(timed, rows=tuple(row._replace(seconds=0.25, variable=None) for row in timed.rows))
    with Store(made(tmp_path / "one.sqlite", finished(), timed, version="0.0.9"), version="0.0.10") as store:
        store.add(finished(replace(TASK, run=1), num_rows=5))
        store.export(tmp_path / "one.csv.gz")
    with Store(made(tmp_path / "other.sqlite"), version="0.0.10") as store:
        store.take(tmp_path / "one.csv.gz")
        assert store.done() == {TASK, timed.task, replace(TASK, run=1)} and store.versions() == ["0.0.9", "0.0.10"]
        assert not store.add(finished())
        store.export(tmp_path / "other.csv.gz")
    assert (tmp_path / "other.csv.gz").read_bytes() == (tmp_path / "one.csv.gz").read_bytes()
    one, other = (Table.read(tmp_path / f"{name}.sqlite") for name in ("one", "other"))
    for name in ("selector", "variable", "agree"):
        assert sorted(one.column(name).tolist()) == sorted(other.column(name).tolist())
    assert np.nanmax(other.column("seconds")) == 0.25


@pytest.mark.parametrize("change", ["columns", "cut", "settings", "version", "short"])
def test_a_plain_table_that_does_not_fit_is_refused_and_nothing_taken(change, tmp_path):
    with Store(made(tmp_path / "one.sqlite", finished())) as store:
        store.export(tmp_path / "plain.csv.gz")
    text = gzip.decompress((tmp_path / "plain.csv.gz").read_bytes()).decode()
    changed = {
        "columns": text.replace("variable,", "", 1),
        "settings": text.replace("paper,", "theirs,"),
        "version": text.replace(f",{cz.__version__}\n", ",999.0\n"),
        "short": text.replace(f",{cz.__version__}\n", "\n"),
    }.get(change, text)
    data = gzip.compress(changed.encode())
    (tmp_path / "plain.csv.gz").write_bytes(data[:-20] if change == "cut" else data)
    with Store(made(tmp_path / "other.sqlite")) as store:
        with pytest.raises(StoreError):
            store.take(tmp_path / "plain.csv.gz")
        assert store.done() == set() and store.versions() == []
        assert store.add(finished())


# -- what is refused --------------------------------------------------------------------------------------------------


def other_settings(path: Path) -> None:
    made(
        path,
        finished(),
        settings=DESCRIBED | {"paper": DESCRIBED["paper"] | {"mf": DESCRIBED["paper"]["mf"] | {"tol": 0.5}}},
    )


def unknown_settings(path: Path) -> None:
    made(path, finished(replace(TASK, settings="theirs")), settings={"theirs": {}})


def newer_version(path: Path) -> None:
    made(path, finished(), version="999.0")


def newer_schema(path: Path) -> None:
    made(path)
    connection = sqlite3.connect(path)
    connection.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")
    connection.close()


def another_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("create table runs (a)")
    connection.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"settings,part,family\n" * 100)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (other_settings, r"other settings under the name 'paper' \(mf.tol: 0.5 there, 1e-07 now\)"),
        (unknown_settings, "'theirs' .which this version does not have"),
        (newer_version, "runs of clampz 999.0, newer than this one"),
        (newer_schema, "made by a newer version of clampz"),
        (another_database, "found another database"),
        (no_database, "not a database"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_and_left_alone(make: Callable[[Path], None], message, tmp_path):
    path = tmp_path / "results.sqlite"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message):
        Store(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_runs_of_an_older_version_are_kept_each_with_its_own(tmp_path):
    path = made(tmp_path / "results.sqlite", finished(), version="0.0.9")
    with Store(path, version="0.0.10") as store:
        assert not store.add(finished())
        assert store.add(finished(replace(TASK, run=1)))
        assert store.versions() == ["0.0.9", "0.0.10"]


def test_a_file_that_was_killed_before_it_was_made_is_a_new_one(tmp_path):
    (tmp_path / "results.sqlite").touch()
    with Store(tmp_path / "results.sqlite") as store:
        assert store.done() == set()
        assert store.versions() == []
        store.make()
        store.make()
        assert store.add(finished())


def test_checking_makes_nothing(tmp_path):
    assert Store.check(tmp_path / "results.sqlite") == set()
    assert not any(tmp_path.iterdir())
    made(tmp_path / "results.sqlite", finished())
    assert Store.check(tmp_path / "results.sqlite") == {TASK}


def test_the_file_says_whose_it_is(tmp_path):
    header = made(tmp_path / "results.sqlite").read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION
    assert b"CLPZ" in header


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_a_folder_is_for_one_at_a_time(tmp_path):
    with only_one(tmp_path), pytest.raises(StoreError, match="another reproduction is running"), only_one(tmp_path):
        pass
    with only_one(tmp_path):
        assert not any(tmp_path.iterdir())


# No file may become larger than this in the process below, as on a disk that is full.
LIMIT = 100_000
FILL = """
import dataclasses, resource, sys
sys.path.insert(0, {support!r})
from made_up_runs import TASK, finished
from reproduction.runs.store import Store, StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
store, count = Store({path!r}), 0
store.make()
try:
    while True:
        store.add(finished(dataclasses.replace(TASK, run=count), num_rows=100))
        count += 1
except StoreError as error:
    print(count)
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path):
    path = tmp_path / "results.sqlite"
    code = FILL.format(support=os.fspath(Path(made_up_runs.__file__).parent), limit=LIMIT, path=str(path))
    count, message = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert int(count) > 3
    assert message.startswith(f"{path}: ")
    assert "full" in message
    assert message.endswith("; every run finished before is kept: make room and run the same command again")
    with Store(path) as store:
        assert len(store.done()) == int(count)
        assert len(store.table()) == 100 * int(count)
        assert store.add(finished(replace(TASK, run=int(count))))


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_a_plain_table_that_does_not_fit_leaves_the_old_one(tmp_path):
    path, plain = (
        made(tmp_path / "results.sqlite", *(finished(replace(TASK, run=run), num_rows=50) for run in range(20))),
        tmp_path / "results.csv.gz",
    )
    plain.write_text("old")
    code = f"""
import resource
from reproduction.runs.store import Store, StoreError
store = Store({str(path)!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    store.export({str(plain)!r})
except StoreError as error:
    print(error)
"""
    message = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert message.startswith(f"{plain}: File too large; every run finished before is kept")
    assert plain.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["results.csv.gz", "results.sqlite"]
