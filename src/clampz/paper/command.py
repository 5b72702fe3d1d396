"""`clampz paper`: make the runs that the chosen figures need, keep them, and write the plain table, the figures and the
report.

    results.sqlite      every run, as it is made (`clampz.paper.store`)
    results.csv.gz      the same as a plain table, once all are made
    figures/            each figure, PNG and PDF
    report.html         the figures beside what the paper says of them, and its claims with verdicts

Runs that a folder already has are not made again, so the same command goes on where it was stopped, and `--quick` is a
beginning of the whole.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from clampz.cli.exits import INTERRUPTED, OK, CommandError, need
from clampz.errors import OptionError
from clampz.paper.families import FAMILIES, Family, families
from clampz.paper.figures import PaperFigure, figures_named
from clampz.paper.running import (
    Bar,
    Display,
    Lines,
    Outcome,
    Summary,
    as_clock,
    connected,
    cost,
    in_order,
    make_runs,
    num_cores,
    on_cluster,
    on_cores,
)
from clampz.paper.runs import Task
from clampz.paper.settings import SETTINGS
from clampz.paper.store import Store, StoreError, only_one
from clampz.watch import end_at_once, on_ctrl_c

STORE, PLAIN = "results.sqlite", "results.csv.gz"
# Runs of each family; of "optimal", which tries every set, only of families that are small enough.
NUM_RUNS = {"errors": 100, "times": 5, "optimal": 10}
NUM_QUICK = {"errors": 2, "times": 1, "optimal": 1}
# Seconds, as `running.cost` has them, beyond which a quick experiment makes one run less of a family.
LONG = 10.0
MAX_OPTIMAL_SIZE = 25
# Some runs could not be made; the rest is drawn.
INCOMPLETE = 1


def paper(args: argparse.Namespace) -> int:
    """Reproduce the paper, or the part of it that was asked for."""
    need("rich", "matplotlib")
    figures = figures_named(args.figure or ())
    tasks = in_order(chosen_tasks(args, figures))
    check_folder(args.out)
    with ExitStack() as stack, on_ctrl_c(end_at_once):
        if args.out.is_dir():
            stack.enter_context(only_one(args.out))
        done = Store.check(args.out / STORE)
        missing = [task for task in tasks if task not in done]
        client = stack.enter_context(connected(args.scheduler)) if args.scheduler is not None and missing else None
        if not args.out.is_dir():
            with disk_errors():
                args.out.mkdir(parents=True, exist_ok=True)
            stack.enter_context(only_one(args.out))
        store = stack.enter_context(Store(args.out / STORE))
        store.make()
        tell_beginning(args, store, len(tasks), len(missing), client)
        try:
            summary = (
                make_runs(outcomes_of(missing, args.jobs or num_cores(), client), missing, store, display())
                if missing
                else Summary(0, [], False, 0.0)
            )
            if tell_end(args, summary, len(missing)):
                return INTERRUPTED if summary.interrupted else INCOMPLETE
            with disk_errors():
                report = write(store, args.out, [figure.name for figure in figures])
        except KeyboardInterrupt:
            tell(f"\nstopped; every finished run is kept. To go on:\n    {as_command(args)}")
            return INTERRUPTED
    print(f"Report: {report}")
    return INCOMPLETE if summary.failures else OK


def write(store: Store, folder: Path, names: Sequence[str]) -> Path:
    """The plain table, if it is older than the runs, the figures and the report; the report's path."""
    from clampz.paper.report import write_report

    plain = folder / PLAIN
    if not plain.exists() or plain.stat().st_mtime_ns < store.path.stat().st_mtime_ns:
        tell("writing the table")
        store.export(plain)
    tell("drawing")
    return write_report(store.table(), folder, names)


# -- what is asked for ------------------------------------------------------------------------------------------------------------


def chosen_tasks(args: argparse.Namespace, figures: Sequence[PaperFigure]) -> list[Task]:
    """The runs that the figures need, of the chosen families."""
    for name in ("runs", "jobs"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise CommandError(f"--{name} {value}: expected a whole number >= 1")
    if args.jobs is not None and args.scheduler is not None:
        raise CommandError("--jobs is for the cores of this machine, --scheduler for a cluster: expected one of them")
    counts = dict(NUM_QUICK if args.quick else NUM_RUNS)
    if args.runs is not None:
        counts = {part: args.runs if part == "errors" else min(count, args.runs) for part, count in counts.items()}
    needed = {(part, family) for figure in figures for part in figure.parts for family in figure.families}
    return [
        Task(settings, part, family.name, run)
        for settings in (SETTINGS if args.ours else ("paper",))
        for part in SETTINGS[settings].parts
        for family in chosen_families(args.family, args.size, args.weights)
        if (part, family) in needed and (part != "optimal" or family.size <= MAX_OPTIMAL_SIZE)
        for run in range(counts[part])
        if not args.quick or run + 1 < NUM_QUICK[part] or cost(Task(settings, part, family.name, run)) <= LONG
    ]


def chosen_families(
    graphs: Sequence[str] | None, sizes: Sequence[int] | None, weights: Sequence[str] | None
) -> list[Family]:
    """Those that are of one of the graphs, one of the sizes and one of the ranges of weights; a graph need not have
    every size."""
    found = set[Family]()
    for name in graphs or ():
        families(name)
    for size in sizes or (None,):
        for pair in [as_range(text) for text in weights or ()] or (None,):
            errors, fitting = [], list[Family]()
            for graph in graphs or (None,):
                try:
                    fitting += families(graph, size, pair)
                except OptionError as error:
                    errors.append(error)
            if not fitting:
                raise CommandError(f"--{errors[0]}")
            found.update(fitting)
    return [family for family in FAMILIES if family in found]


def as_range(text: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise CommandError(f"--weights: expected two numbers, as in --weights=-6,6, found {text!r}") from None
    return low, high


def check_folder(folder: Path) -> None:
    """Refuse, before anything is computed, a folder that could not be written to."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise CommandError(f"--out {folder}: expected a folder, found the file {there}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise CommandError(f"--out {folder}: no permission to write to {there}")


# -- running ------------------------------------------------------------------------------------------------------------------------


def outcomes_of(tasks: Sequence[Task], jobs: int, client: Any) -> Iterator[Outcome | None]:
    """Make runs on the cluster, if there is one, or here: first those whose time does not matter, then the others, one
    to two cores."""
    if client is not None:
        yield from on_cluster(client, tasks)
        return
    yield from on_cores([task for task in tasks if task.part != "times"], jobs)
    yield from on_cores([task for task in tasks if task.part == "times"], max(1, jobs // 2))


def display() -> Display:
    """A bar on a terminal, lines elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else Lines()


@contextmanager
def disk_errors() -> Iterator[None]:
    """What the disk has to say, as one line."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise CommandError(
            f"{error.filename or 'writing'}: {error.strerror or error}; every finished run is kept"
        ) from None


# -- what is said --------------------------------------------------------------------------------------------------------------------


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def tell_beginning(args: argparse.Namespace, store: Store, num_tasks: int, num_missing: int, client: Any) -> None:
    older = [version for version in store.versions() if version != store.version]
    if older:
        tell(
            f"{args.out} has runs of clampz {', '.join(older)} with the same settings: they are kept, each with its version"
        )
    if not num_missing:
        tell(f"all {counted(num_tasks)} are in {args.out}" if num_tasks else "no runs are needed")
        return
    if client is None:
        place = f"on {counted(args.jobs or num_cores(), 'core')}"
    else:
        num_workers = len(client.nthreads())
        place = f"on a cluster of {counted(num_workers, 'worker')}{'' if num_workers else ': waiting for the first'}"
    there = f", {num_tasks - num_missing} are there already" if num_missing < num_tasks else ""
    tell(f"{counted(num_missing)} to make {place}{there}; results in {args.out}")


def tell_end(args: argparse.Namespace, summary: Summary, num_missing: int) -> bool:
    """Say how it went; whether that was it."""
    for outcome in summary.failures:
        task = outcome.task
        tell(
            f"clampz paper: no run {task.run} of {task.family} ({task.part}, settings {task.settings!r}): {outcome.error}"
        )
    if summary.interrupted or summary.gave_up:
        why = "stopped" if summary.interrupted else f"given up after {len(summary.failures)} failures"
        tell(
            f"{why}; {summary.num_made} of {counted(num_missing)} made, and kept in {args.out}. To go on:\n    {as_command(args)}"
        )
        return True
    if num_missing:
        tell(f"{counted(summary.num_made)} made in {as_clock(summary.seconds)}")
    return False


def counted(number: int, what: str = "run") -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def as_command(args: argparse.Namespace) -> str:
    """The command that these arguments came from."""
    words = ["clampz", "paper", *(f"--{flag}" for flag in ("quick", "ours") if getattr(args, flag))]
    for name in ("figure", "family", "size"):
        for value in getattr(args, name) or ():
            words += [f"--{name}", str(value)]
    words += [f"--weights={value}" for value in args.weights or ()]
    for name in ("runs", "scheduler", "jobs", "out"):
        if getattr(args, name) is not None:
            words += [f"--{name}", str(getattr(args, name))]
    return shlex.join(words)
