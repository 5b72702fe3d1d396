"""The store: one SQLite file that holds every run made, durable as soon as it is made.

    pandas.read_sql("select * from results", sqlite3.connect("results.sqlite"))

is everything, one row per run, method, selector and number of clamps, with the seed and the version that made it.  The
name in its column `settings` says how the methods were set: the table `settings` has the options of each name, as JSON,
once and for all.

A finished run is one transaction, so it is there whole or not at all, whenever the program is killed; its key is
unique, so it is never there twice.  The file keeps a rollback journal, not a write-ahead log: it works in network
folders too, and after each run the one file is all there is, so that it may be copied at any time but during a write.
That costs a few milliseconds per run.
"""

import contextlib
import csv
import errno
import gzip
import io
import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import clampz
from clampz.errors import ClampzError
from reproduction.runs.experiments import Finished, Task
from reproduction.settings import MAX_CLAMPS, SETTINGS
from reproduction.table import Table
from reproduction.tools import written_whole

if sys.platform != "win32":  # where there is none, two at once only do the same work twice
    import fcntl

# "CLPZ" in the header of the file says whose it is; the version of the schema is beside it.
APPLICATION = 0x434C505A
SCHEMA_VERSION = 1
SCHEMA = """
create table settings (name text primary key, options text not null);
create table runs (
    id integer primary key,
    settings text not null references settings (name),
    part text not null,
    family text not null,
    run integer not null,
    seed integer not null,
    num_variables integer not null,
    num_edges integer not null,
    exact real not null,
    seconds real not null,
    version text not null,
    unique (settings, part, family, run)
);
create table rows (
    run_id integer not null references runs (id),
    method text not null,
    selector text not null,
    clamps integer not null,
    variable integer,
    log_z real not null,
    converged integer not null,
    num_branches integer not null,
    seconds real,
    agree text not null,
    primary key (run_id, method, selector, clamps)
) without rowid;
create view results as
    select runs.settings, part, family, run, method, selector, clamps, variable, log_z, exact, log_z - exact as error,
        converged, num_branches, rows.seconds as seconds, agree, num_variables, num_edges, seed, version
    from runs join rows on rows.run_id = runs.id;
"""
# A plain table of a million rows is to stay below 10 MB: a sum, which is the exact one and its error, is left out, and
# errors, which claims are judged by, are as fine as the tolerances of the methods.
EXPORTED = (
    "settings, part, family, run, method, selector, clamps, variable, round(exact, 6) as exact, "
    "round(error, 7) + 0.0 as error, converged, num_branches, round(seconds, 6) as seconds, agree, "
    "num_variables, num_edges, seed, version"
)
# How runs come from a plain table, which does not know how long each took.
TAKEN = """
insert into runs
    select distinct null, settings, part, family, run, seed, num_variables, num_edges, exact, 0.0, version from plain;
insert into rows
    select id, method, selector, clamps, nullif(variable, ''), plain.exact + error, converged, num_branches,
        nullif(plain.seconds, ''), agree
    from plain join runs using (settings, part, family, run);
drop table plain
"""
# Selectors that came to the same set stand side by side, and the same numbers with them: that compresses best.
EXPORTED_ORDER = "settings, part, family, run, method, clamps, selector"
KEPT = "; every run finished before is kept: make room and run the same command again"
# How long to wait for somebody who reads the file in this very moment.
PATIENCE_SECONDS = 60.0


class StoreError(ClampzError, RuntimeError):
    """Refuse a store that cannot be used: of other settings or a newer version, no store at all, or on a full disk."""


class Store:
    """Keep the runs in a folder.

    Nothing is written before everything is known to fit; a folder that does not is left as it is.

    Parameters
    ----------
    path
        The SQLite file; made if there is none.
    settings
        What each name of settings stands for now: a file in which one of them stands for something else is refused.
    clamps
        At most: part of what settings stand for.
    version
        Of clampz.  A file with runs of a newer one is refused; runs of older ones are kept as long as the settings are
        the same, each with its version.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        clamps: int = MAX_CLAMPS,
        version: str = clampz.__version__,
    ) -> None:
        self.path, self.version, self.clamps = Path(path), version, clamps
        described = {name: each.described(clamps) for name, each in SETTINGS.items()} if settings is None else settings
        self._options = {name: _as_json(each) for name, each in described.items()}
        with self._errors():
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
        try:
            with self._errors():
                self._open()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def check(cls, path: str | os.PathLike[str], clamps: int = MAX_CLAMPS) -> set[Task]:
        """Return the tasks done in a file, which need not exist. It refuses what opening would refuse, and makes
        nothing."""
        path = Path(path)
        if not path.exists():
            return set()
        with cls(path, clamps=clamps) as store:
            return store.done()

    def done(self) -> set[Task]:
        """Return the tasks whose runs are there."""
        with self._errors():
            found = self._selected("settings, part, family, run")
            return {Task(settings, part, family, run, self.clamps) for settings, part, family, run in found}

    def versions(self) -> list[str]:
        """Return the versions of clampz that made the runs, the oldest first."""
        with self._errors():
            return sorted((version for (version,) in self._selected("distinct version")), key=_as_numbers)

    def add(self, finished: Finished) -> bool:
        """Keep a run for good; return False, and change nothing, if it is there already."""
        task = finished.task
        with self._errors(), self._transaction() as execute:
            options = (task.settings, self._options[task.settings])
            execute("insert into settings values (?, ?) on conflict (name) do nothing", options)
            # SQLite takes Python's own numbers, and NumPy's are not
            model = (int(finished.seed), int(finished.num_variables), int(finished.num_edges), float(finished.exact))
            key = (task.settings, task.experiment, task.family, int(task.run))
            added = execute(
                f"insert into runs values (null{10 * ', ?'}) on conflict (settings, part, family, run) do nothing",
                (*key, *model, float(finished.seconds), self.version),
            )
            if not added.rowcount:
                return False
            for row in finished.rows:
                variable = None if row.variable is None else int(row.variable)
                seconds = None if row.seconds is None else float(row.seconds)
                found = (variable, float(row.log_z), int(row.converged), int(row.num_branches), seconds, row.agree)
                values = (added.lastrowid, row.method, row.selector, int(row.clamps), *found)
                execute(f"insert into rows values (?{9 * ', ?'})", values)
        return True

    def take(self, path: Path) -> None:
        """Keep the runs of a plain table, each with its version, all or none; there must be none here.  Sums have the
        digits of the table, and settings are what their names say."""
        with self._errors(path), self._transaction() as execute:
            names = [entry[0] for entry in execute(f"select {EXPORTED} from results").description]
            execute(f"create temp table plain ({', '.join(names)})")
            try:
                with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
                    rows = csv.reader(file)
                    if next(rows, []) != names:
                        raise ValueError(f"expected the columns {', '.join(names)}")
                    self._connection.executemany(f"insert into plain values (?{', ?' * (len(names) - 1)})", rows)
            except (ValueError, EOFError, csv.Error, sqlite3.ProgrammingError) as error:
                raise StoreError(f"{path}: expected a table that the reproduction wrote: {error}") from error
            for (name,) in execute("select distinct settings from plain").fetchall():
                execute("insert into settings values (?, ?)", (name, self._options.get(name, "{}")))
            for statement in TAKEN.split(";"):
                execute(statement)
            self._check()

    def make(self) -> None:
        """Write an empty store if there is none yet."""
        if not self._is_made():
            with self._errors(), self._transaction() as execute:
                for statement in filter(str.strip, SCHEMA.split(";")):
                    execute(statement)
                execute(f"pragma application_id = {APPLICATION}")
                execute(f"pragma user_version = {SCHEMA_VERSION}")

    def table(self) -> Table:
        """Return all that was found."""
        return Table.read(self.path)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write the results as compressed CSV, whole or not at all, sorted: the same runs give the same bytes.

        Numbers are rounded to `EXPORTED_DECIMALS`; the store has every digit.
        """
        query = f"select {EXPORTED} from results order by {EXPORTED_ORDER}"
        with (
            self._errors(Path(path)),
            written_whole(Path(path)) as partial,
            partial.open("wb") as raw,
            gzip.GzipFile("", "wb", 9, raw, mtime=0) as binary,
            io.TextIOWrapper(binary, encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            cursor = self._connection.execute(query)
            writer.writerow([entry[0] for entry in cursor.description])
            writer.writerows(cursor)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        execute = self._connection.execute
        if self._is_made():
            application, schema = (execute(f"pragma {x}").fetchone()[0] for x in ("application_id", "user_version"))
            if application != APPLICATION:
                raise self._refused("expected a file made by the reproduction, found another database")
            if schema > SCHEMA_VERSION:
                raise self._refused(f"made by a newer version of clampz than this one, {self.version}")
            self._check()
        # journal_mode=delete is what SQLite does by itself unless the file says otherwise; "extra" also makes the end
        # of a journal durable
        execute("pragma synchronous = extra")
        execute("pragma foreign_keys = on")

    def _check(self) -> None:
        """Refuse runs of a newer version and of other settings."""
        newest = max(self.versions(), key=_as_numbers, default=self.version)
        if _as_numbers(newest) > _as_numbers(self.version):
            raise self._refused(f"has runs of clampz {newest}, newer than this one, {self.version}")
        for name, options in self._connection.execute("select name, options from settings"):
            if options != self._options.get(name):
                differing = _difference(options, self._options.get(name))
                raise self._refused(
                    f"has runs of other settings under the name {name!r} ({differing})", ": choose another folder"
                )

    def _refused(self, why: str, advice: str = "") -> StoreError:
        return StoreError(f"{self.path}: {why}; nothing was changed{advice}")

    def _selected(self, columns: str) -> Iterable[tuple[Any, ...]]:
        """Select columns of the runs that are there, if there are any."""
        return self._connection.execute(f"select {columns} from runs") if self._is_made() else ()

    def _is_made(self) -> bool:
        """Tell whether there is anything in the file: one that was killed while it was made is empty."""
        with self._errors():
            return bool(self._connection.execute("select count(*) from sqlite_master").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        execute = self._connection.execute
        execute("begin immediate")
        try:
            yield execute
            execute("commit")
        finally:
            if self._connection.in_transaction:
                # a full disk has rolled back by itself, or leaves a journal that does so when the file is opened next
                with contextlib.suppress(sqlite3.Error):
                    execute("rollback")

    @contextmanager
    def _errors(self, path: Path | None = None) -> Iterator[None]:
        """Raise errors of SQLite and of the disk as one line; `path` is what is being written, if not the store."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self.path}: {error}{_advice(getattr(error, 'sqlite_errorname', ''))}") from error
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise StoreError(f"{self.path}: expected a file made by the reproduction: {error}") from error
        except OSError as error:
            raise StoreError(f"{path or self.path}: {error.strerror or error}{KEPT}") from error


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold a folder for oneself: refuse it while another process holds it.  The lock ends with the process, however
    that ends, and leaves no file behind."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreError(f"{folder}: another reproduction is running in this folder") from None
            # a file system without locks
        yield
    finally:
        os.close(handle)


def _as_json(options: Mapping[str, Any]) -> str:
    return json.dumps(options, sort_keys=True, separators=(",", ":"))


def _as_numbers(version: str) -> tuple[int, ...]:
    """Return what decides which of two versions is newer.

    >>> _as_numbers("0.10.0") > _as_numbers("0.9.2")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version.split("+")[0])[:3]))


def _difference(old: str, new: str | None) -> str:
    """Say where two descriptions differ, in a few words."""
    if new is None:
        return "which this version does not have"
    was, now = (dict(_flat(json.loads(text))) for text in (old, new))
    key = next(key for key in [*was, *now] if was.get(key) != now.get(key))
    return f"{key}: {json.dumps(was.get(key))} there, {json.dumps(now.get(key))} now"


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{prefix}.{key}" if prefix else key)
    else:
        yield prefix, value


def _advice(name: str) -> str:
    """Say what to do about an error of SQLite's."""
    if name == "SQLITE_FULL":
        return KEPT
    if name.startswith("SQLITE_IOERR"):
        return f", perhaps of a full disk{KEPT}"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return ": another program holds the file; run the same command again when it has ended"
    return ""
