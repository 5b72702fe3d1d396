"""UAI files: what bound and solve say of every model of a folder, and how far that is from what is known.

    python benchmarks/uai.py FOLDER [--times 1,10,60] [--out table.csv] [--only PATTERN] [--calls bound,solve]
                                    [--threads N] [--values FILE.json]

Beside a file `model.uai` (or `model.uai.gz`) may stand `model.uai.evid` with evidence, `model.uai.PR` with log10 Z and
`model.uai.MAR` with marginals; `--values` is a JSON file of `{"model": {"logZ": ...}}`, natural logarithms, by default
`FOLDER.json` if there is one.  Each call is made in a process of its own, at each of the times, with kernels compiled
before: a crash is a row, and the memory is that of the call, beyond what the process held with the model.

Every row goes into the CSV file as soon as it is there; rows that are in it are not run again.
"""

import argparse
import csv
import fnmatch
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from timing import (
    UAI_FOLDER,
    Claim,
    MissingError,
    forget_peak,
    in_fresh_process,
    peak_megabytes,
    print_claims,
    print_table,
)

# Nats, times the value where that is larger, up to which a published log Z may be wrong by its digits.
VALUE_DIGITS = 1e-6
PRINTED_DIGITS = 6
# Nats between two bounds that are log Z but for rounding, times the value where that is larger.
CLOSED = 1e-6
# Seconds that a process has for starting, compiling and reading, and times that its call may take what it was given.
SECONDS_BEFORE, TIMES_OVER = 300.0, 3.0
# What a call may take beyond its time.
MORE_TIME, MORE_SECONDS = 1.1, 0.2
CALLS = ("bound", "solve")
# Columns of the printed table after bracket and estimate.
SHOWN = ("error", "marginals_by", "largest", "mean", "seconds", "megabytes")


class Known(NamedTuple):
    """A model's files, and log Z where that is known."""

    name: str
    model: Path
    evidence: Path | None
    marginals: Path | None
    log_z: float | None


@dataclass(kw_only=True)
class Row:
    """What a call said, and what it took; None where there is nothing to say.

    `error` is the estimate's, `outside` how far the known log Z is outside the bracket; `marginals_by` says whose the
    marginals are, `largest` and `mean` how far they are from those known; `fault` is what went wrong.
    """

    name: str
    call: str
    time: float
    threads: int | None = None
    lower: float | None = None
    upper: float | None = None
    gap: float | None = None
    estimate: float | None = None
    log_z: float | None = None
    error: float | None = None
    outside: float | None = None
    marginals_by: str | None = None
    largest: float | None = None
    mean: float | None = None
    stopped_by: str | None = None
    seconds: float | None = None
    megabytes: float | None = None
    fault: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return self.name, self.call, self.time, self.threads

    @property
    def exact(self) -> bool:
        return self.gap is not None and self.gap <= CLOSED * _size(self.lower)

    @property
    def excludes(self) -> bool:
        """Whether the bracket excludes the known log Z, by more than that may be wrong."""
        return self.outside is not None and self.log_z is not None and self.outside > value_error(self.log_z)

    @property
    def late(self) -> bool:
        return self.seconds is not None and self.seconds > MORE_TIME * self.time + MORE_SECONDS

    @property
    def verdict(self) -> str:
        said = {"exact": self.exact, "EXCLUDED": self.excludes, "LATE": self.late, self.fault: self.fault}
        return ", ".join(str(word) for word, holds in said.items() if holds)


def value_error(log_z: float) -> float:
    """What a known log Z may be off by: half of the last of its digits, where log10 Z has no more than those that
    programs print unless they are asked for more."""
    log10 = log_z / math.log(10)
    printed = float(f"{log10:.{PRINTED_DIGITS}g}")
    if printed and abs(log10 - printed) < 1e-12 * abs(printed):
        last = 10.0 ** (math.floor(math.log10(abs(printed))) + 1 - PRINTED_DIGITS)
        return 0.5 * last * math.log(10)
    return VALUE_DIGITS * _size(log_z)


def _size(value: float | None) -> float:
    """How large a number is, at least 1."""
    return 1.0 if value is None or math.isinf(value) else max(1.0, abs(value))


# -- files -----------------------------------------------------------------------------------------------------------


def known_models(folder: Path, values: Path | None = None, only: str = "*") -> list[Known]:
    """The models of a folder whose names, without the suffix, match a pattern."""
    from clampz.io.results import read_pr

    beside = folder.resolve().with_suffix(".json")
    values = beside if values is None and beside.exists() else values
    listed: dict[str, Any] = {} if values is None else json.loads(values.read_text())
    found = []
    for path in sorted([*folder.glob("*.uai"), *folder.glob("*.uai.gz")]):
        whole = path.name.removesuffix(".gz")
        name = whole.removesuffix(".uai")
        if not fnmatch.fnmatch(name, only):
            continue
        evidence, pr, mar = (path.with_name(whole + suffix) for suffix in (".evid", ".PR", ".MAR"))
        log_z = listed.get(name, {}).get("logZ")
        if log_z is None and pr.exists():
            log_z = read_pr(pr)
        found.append(Known(name, path, evidence if evidence.exists() else None, mar if mar.exists() else None, log_z))
    return found


def read_rows(path: Path) -> list[Row]:
    """The whole rows of a CSV file; one that was cut short is none."""
    if not path.exists():
        return []
    rows = []
    with path.open(newline="") as file:
        for texts in csv.DictReader(file, restval=None):
            if list(texts) != [field.name for field in fields(Row)]:
                raise SystemExit(f"{path}: expected the columns {', '.join(field.name for field in fields(Row))}")
            if None not in texts.values():
                rows.append(Row(**{field.name: _value(field.type, texts[field.name]) for field in fields(Row)}))
    return rows


def _value(kind: Any, text: str) -> Any:
    """A cell as the type of its column; an empty one is None."""
    if text == "":
        return None
    return text if kind in (str, str | None) else int(text) if kind == int | None else float(text)


def write_rows(path: Path, rows: list[Row], mode: str = "w") -> None:
    with path.open(mode, newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        if mode == "w":
            writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


# -- a call, in a process of its own ---------------------------------------------------------------------------------


def measure(call: str, seconds: float, threads: int | None, paths: list[str | None]) -> dict[str, Any]:
    """One call on one model: the columns of its row that it fills."""
    import clampz as cz
    from clampz._kernels.jit import compiling

    for toy in _toys():
        _called(call, toy, 1.0, threads)
        if call == "bound":
            cz.bound(toy, exact=False, time=1.0, threads=threads)
    path, evidence, mar = paths
    assert path is not None
    model = cz.read(path, evidence=evidence)
    forget_peak()
    held, began, compiled = peak_megabytes(), time.perf_counter(), compiling.seconds
    found = _called(call, model, seconds, threads)
    took = time.perf_counter() - began - (compiling.seconds - compiled)  # kernels that no toy has called
    columns = {"lower": found.lower, "upper": found.upper, "seconds": took, "megabytes": peak_megabytes() - held}
    if isinstance(found, cz.results.Bracket):
        return columns | {"estimate": found.estimate, "stopped_by": found.stopped_by}
    columns |= {"estimate": found.log_z, "marginals_by": found.marginals_by or "none", "stopped_by": found.method}
    return columns | ({} if mar is None else marginal_errors(found.marginals, mar))


def _called(call: str, model: Any, seconds: float, threads: int | None) -> Any:
    import clampz as cz

    if call == "bound":
        return cz.bound(model, gap=CLOSED, time=seconds, threads=threads)
    return cz.solve(model, time=seconds, threads=threads)


def _toys() -> Iterator[Any]:
    """Small models of each kind that has kernels of its own."""
    import numpy as np

    import clampz as cz

    rng = np.random.default_rng(0)
    yield cz.generators.grid(4, 4, rng=0)
    yield cz.generators.grid(3, 3, labels=3, rng=0)
    scopes = [(0, 1, 2), (2, 3, 4), (1, 4, 5), (0, 5), (3, 5)]
    tables = [np.where(rng.random((2,) * len(scope)) < 0.1, -np.inf, 1.0) for scope in scopes]
    yield cz.Model.from_factors([2] * 6, [*zip(scopes, tables, strict=True), ((0, 3, 5), rng.normal(size=(2, 2, 2)))])


def marginal_errors(marginals: Any, path: str) -> dict[str, Any]:
    """The largest and the mean difference of marginals from those in a file."""
    import numpy as np

    from clampz.io.results import read_mar

    truth = read_mar(path)
    if [len(row) for row in truth] != [len(row) for row in marginals]:
        return {"fault": "the MAR file is of a model with other variables"}
    if not truth or np.isnan(marginals.flat).any():
        return {}
    errors = np.abs(np.concatenate(truth) - marginals.flat)
    return {"largest": float(errors.max()), "mean": float(errors.mean())}


# -- all of them -----------------------------------------------------------------------------------------------------


def run(known: Known, call: str, seconds: float, threads: int | None) -> Row:
    """A call in a process of its own, beside what is known."""
    paths = [None if path is None else str(path) for path in (known.model, known.evidence, known.marginals)]
    row = Row(name=known.name, call=call, time=seconds, threads=threads, log_z=known.log_z)
    asked = json.dumps([call, seconds, threads, paths])
    try:
        columns = in_fresh_process(__file__, "--measure", asked, seconds=SECONDS_BEFORE + TIMES_OVER * seconds)
    except RuntimeError as error:
        columns = {"fault": f"CRASH: {str(error).strip().splitlines()[-1][-100:]}"}
    for name, value in columns.items():
        setattr(row, name, value)
    return judged(row)


def judged(row: Row) -> Row:
    """The row with what follows from its bounds, its estimate and the known log Z."""
    if row.lower is None or row.upper is None:
        return row
    row.gap = 0.0 if row.lower == row.upper else row.upper - row.lower
    if row.log_z is not None:
        row.outside = max(0.0, row.lower - row.log_z, row.log_z - row.upper)
        if row.estimate is not None and math.isfinite(row.estimate):
            row.error = row.estimate - row.log_z
    return row


def print_rows(rows: list[Row]) -> None:
    """A table for each call."""
    for call in CALLS:
        cells = [
            [
                row.name,
                row.time,
                *map(_digits, (row.lower, row.upper)),
                "" if row.gap is None else row.gap,
                _digits(row.estimate),
                *("" if getattr(row, name) is None else getattr(row, name) for name in SHOWN),
                row.verdict,
            ]
            for row in rows
            if row.call == call
        ]
        header = ["model", "asked s", "lower", "upper", "gap", "estimate", *SHOWN, ""]
        if cells:
            print_table(f"{call}: bracket, estimate's error, marginals' errors, time and memory", header, cells)


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def claims(rows: list[Row]) -> list[Claim]:
    """What must hold of all, and how many are exact."""
    for what in ("excludes", "late", "fault"):
        if names := [f"{row.name} ({row.call}, {row.time:g} s)" for row in rows if getattr(row, what)]:
            print(f"  {what}: {', '.join(names)}")
    found = [
        Claim("uai: brackets that exclude the known log Z", float(sum(row.excludes for row in rows)), "<=", 0.0),
        Claim("uai: calls that broke or did not end", float(sum(bool(row.fault) for row in rows)), "<=", 0.0),
        Claim("uai: calls that took longer than they may", float(sum(row.late for row in rows)), "<=", 0.0),
    ]
    for call, seconds in sorted({(row.call, row.time) for row in rows}):
        some = [row for row in rows if (row.call, row.time) == (call, seconds)]
        what = f"uai: {call} exact at {seconds:g} s, of {len(some)}"
        found.append(Claim(what, float(sum(row.exact for row in some))))
        if call == "solve":
            by_exact = sum(row.marginals_by == "exact" for row in some)
            found.append(Claim(f"uai: marginals exact at {seconds:g} s, of {len(some)}", float(by_exact)))
    return found


def main(quick: bool) -> list[Claim]:
    """The folder that CLAMPZ_UAI names, one second for each call; or one, ten and sixty."""
    folder = os.environ.get(UAI_FOLDER)
    if folder is None:
        raise MissingError(f"no folder of UAI files: {UAI_FOLDER}, or `run.py --uai FOLDER`")
    return table(_parser().parse_args([folder, *(["--times", "1"] if quick else [])]))


def table(arguments: argparse.Namespace) -> list[Claim]:
    rows = [] if arguments.out is None else read_rows(arguments.out)
    if arguments.out is not None:
        write_rows(arguments.out, rows)
    done, asked = {row.key for row in rows}, set()
    models = known_models(arguments.folder, arguments.values, arguments.only)
    if not models:
        raise SystemExit(f"{arguments.folder}: no .uai files that match {arguments.only!r}")
    for seconds in arguments.times:
        for known in models:
            for call in arguments.calls:
                key = (known.name, call, seconds, arguments.threads)
                asked.add(key)
                if key in done:
                    continue
                rows.append(row := run(known, call, seconds, arguments.threads))
                if arguments.out is not None:
                    write_rows(arguments.out, [row], "a")
                bracket = f"[{_digits(row.lower)}, {_digits(row.upper)}]"
                print(f"{row.name}, {call}, {seconds:g} s: {bracket} {row.verdict}", flush=True)
    rows = sorted((row for row in rows if row.key in asked), key=lambda row: (row.name.lower(), row.call, row.time))
    print_rows(rows)
    return claims(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the files are")
    parser.add_argument(
        "--times", type=lambda text: [float(part) for part in text.split(",")], default=[1.0, 10.0, 60.0]
    )
    parser.add_argument("--out", type=Path, help="the CSV file to write, and to go on with")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of models, such as 'linkage_*'")
    parser.add_argument("--calls", type=lambda text: text.split(","), default=list(CALLS), help="bound, solve or both")
    parser.add_argument("--threads", type=int, help="of each call; by default what it takes by itself")
    parser.add_argument("--values", type=Path, metavar="FILE.json", help="log Z by name; by default FOLDER.json")
    return parser


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
    else:
        print_claims(table(_parser().parse_args()))
