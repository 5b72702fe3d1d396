"""The whole reproduction: make the runs that the chosen figures need, keep them, and write the plain table, the figures
and the report.

    results.sqlite      every run, as it is made (`reproduction.runs.store`)
    results.csv.gz      the same as a plain table, once all are made
    figures/            each figure, PNG and PDF
    report.html         the figures beside what the paper says of them, and its claims with verdicts
    advice.md           what a practitioner may make of it
    latex/              tables and figures for papers, if asked for

Runs that a folder already has are not made again, so the same request goes on where it was stopped, and a quick one is
a beginning of the whole.  A folder with the plain table alone, as ours is published, is continued too.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from clampz.errors import OptionError
from reproduction.pictures.figures import PaperFigure
from reproduction.reporting.report import write_report
from reproduction.request import Request, chosen_figures, chosen_tasks
from reproduction.runs.cluster import connected, on_cluster
from reproduction.runs.cores import num_cores, on_cores
from reproduction.runs.experiments import Outcome, Task
from reproduction.runs.making import Summary, in_order, make_runs
from reproduction.runs.progress import as_clock
from reproduction.runs.store import Store, StoreError, only_one
from reproduction.tools import counted, on_ctrl_c

STORE, PLAIN = "results.sqlite", "results.csv.gz"


class Reproduced(NamedTuple):
    """Say how it ended: the report, if written, whether Ctrl-C was pressed, and how many runs could not be made."""

    report: Path | None
    interrupted: bool = False
    num_failed: int = 0


def reproduce(request: Request) -> Reproduced:
    """Reproduce the paper, or as much of it as was asked for."""
    figures = chosen_figures(request)
    tasks = in_order(chosen_tasks(request, figures))
    check_folder(request.out)
    with ExitStack() as stack, on_ctrl_c(raise_interrupt):
        if request.out.is_dir():
            stack.enter_context(only_one(request.out))
        done = Store.check(request.out / STORE, request.clamps)
        if not done and (request.out / PLAIN).exists():  # as it is published
            with Store(request.out / STORE, clamps=request.clamps) as store:
                store.make()
                store.take(request.out / PLAIN)
                done = store.done()
        missing = [] if request.draw else [task for task in tasks if task not in done]
        tasks = list(done) if request.draw else tasks
        client = (
            stack.enter_context(connected(request.scheduler)) if request.scheduler is not None and missing else None
        )
        if not request.out.is_dir():
            with disk_errors():
                request.out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(only_one(request.out))
        store = stack.enter_context(Store(request.out / STORE, clamps=request.clamps))
        store.make()
        tell_beginning(request, store, len(tasks), len(missing), client)
        try:
            summary = Summary(0, [], False, 0.0)
            if missing:
                outcomes = outcomes_of(missing, request.jobs or num_cores(), client)
                summary = make_runs(outcomes, missing, store)
            if tell_end(request, summary, len(missing)):
                return Reproduced(None, summary.interrupted, len(summary.failures))
            with disk_errors():
                report = write(store, request, figures)
        except KeyboardInterrupt:
            tell(f"\nstopped; every finished run is kept. To go on:\n    {request.as_command()}")
            return Reproduced(None, interrupted=True)
    return Reproduced(report, num_failed=len(summary.failures))


def write(store: Store, request: Request, figures: Sequence[PaperFigure]) -> Path:
    """Write the plain table, if it is older than the runs, the figures and the report, and return the report's path."""
    plain = request.out / PLAIN
    if not plain.exists() or plain.stat().st_mtime_ns < store.path.stat().st_mtime_ns:
        tell("writing the table")
        store.export(plain)
    tell("drawing")
    return write_report(store.table(), request.out, figures, latex=request.latex)


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a folder that could not be written to."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise OptionError(f"--out {folder}: expected a folder, found the file {there}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise OptionError(f"--out {folder}: no permission to write to {there}")


# -- running ----------------------------------------------------------------------------------------------------------


def outcomes_of(tasks: Sequence[Task], jobs: int, client: Any) -> Iterator[Outcome | None]:
    """Make runs on the cluster, if there is one, or here: first those whose time does not matter, then the others, one
    to two cores."""
    if client is not None:
        yield from on_cluster(client, tasks)
        return
    yield from on_cores([task for task in tasks if task.experiment != "times"], jobs)
    yield from on_cores([task for task in tasks if task.experiment == "times"], max(1, jobs // 2))


@contextmanager
def disk_errors() -> Iterator[None]:
    """Raise what the disk has to say as one line."""
    try:
        yield
    except OSError as error:
        reason = f"{error.filename or 'writing'}: {error.strerror or error}"
        raise StoreError(f"{reason}; every finished run is kept") from None


# -- what is said -----------------------------------------------------------------------------------------------------


def raise_interrupt() -> None:
    """End all work: the library's methods would stop early, and return what they have."""
    raise KeyboardInterrupt


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tell_beginning(request: Request, store: Store, num_tasks: int, num_missing: int, client: Any) -> None:
    older = ", ".join(version for version in store.versions() if version != store.version)
    if older:
        tell(f"{request.out} has runs of clampz {older} with the same settings: they are kept, each with its version")
    if not num_missing:
        tell(f"all {counted(num_tasks, 'run')} are in {request.out}" if num_tasks else "no runs are needed")
        return
    if client is None:
        place = f"on {counted(request.jobs or num_cores(), 'core')}"
    else:
        num_workers = len(client.nthreads())
        place = f"on a cluster of {counted(num_workers, 'worker')}{'' if num_workers else ': waiting for the first'}"
    there = f", {num_tasks - num_missing:,} are there already" if num_missing < num_tasks else ""
    tell(f"{counted(num_missing, 'run')} to make {place}{there}; results in {request.out}")


def tell_end(request: Request, summary: Summary, num_missing: int) -> bool:
    """Say how it went, and return whether that was the end."""
    for task, _, error in summary.failures:
        which = f"{task.experiment}, settings {task.settings!r}"
        tell(f"reproduction: no run {task.run} of {task.family} ({which}): {error}")
    if summary.interrupted or summary.gave_up:
        why = "stopped" if summary.interrupted else f"given up after {len(summary.failures)} failures"
        made = f"{summary.num_made:,} of {counted(num_missing, 'run')} made, and kept in {request.out}"
        tell(f"{why}; {made}. To go on:\n    {request.as_command()}")
        return True
    if num_missing:
        tell(f"{counted(summary.num_made, 'run')} made in {as_clock(summary.seconds)}")
    return False
