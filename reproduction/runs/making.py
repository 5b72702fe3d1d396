"""Make runs, and keep each as soon as it is made.

Runs are independent of each other, so the places where they are made are generators of outcomes: `cores.on_cores` and
`cluster.on_cluster` hand out tasks and yield what comes back, and None whenever nothing did for a moment.  `make_runs`
takes what they yield, and is the only one that writes.  A run that fails is reported, and the others follow.
"""

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from reproduction.runs.experiments import Outcome, Task
from reproduction.runs.progress import Pace, cost
from reproduction.runs.store import Store
from reproduction.tools import live_line, on_ctrl_c

# Failed runs after which no more are tried.
MAX_FAILURES = 10


class Summary(NamedTuple):
    """Say how making runs has ended."""

    num_made: int
    failures: list[Outcome]
    interrupted: bool
    seconds: float

    @property
    def gave_up(self) -> bool:
        return len(self.failures) >= MAX_FAILURES


def make_runs(outcomes: Iterator[Outcome | None], tasks: Sequence[Task], store: Store) -> Summary:
    """Keep each run that comes, until all have, Ctrl-C is pressed, or too many have failed."""
    started, num_made, failures = time.monotonic(), 0, list[Outcome]()
    asked, pace = threading.Event(), Pace(tasks)
    with live_line(str(pace)) as show, on_ctrl_c(asked.set):  # nothing that is being written is cut short
        try:
            for outcome in outcomes:
                if outcome is not None and outcome.finished is not None:
                    try:
                        num_made += store.add(outcome.finished)
                    except sqlite3.IntegrityError as error:  # a value that is not a number
                        outcome = Outcome(outcome.task, None, str(error))
                if outcome is not None:
                    failures += [outcome] if outcome.finished is None else []
                    pace.add(outcome)
                show(str(pace))
                if asked.is_set() or len(failures) >= MAX_FAILURES:
                    break
        finally:
            outcomes.close()  # type: ignore[attr-defined]  # ends the workers
        return Summary(num_made, failures, asked.is_set(), time.monotonic() - started)


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Put first a short run, which compiles the kernels if they are not, then round by round, in each the long ones
    first.

    So every family has about as many runs as any other at any time, and the last runs are short: the cores end
    together.  Times come last, by themselves.
    """
    rounds = sorted(tasks, key=lambda task: (task.experiment == "times", task.run, -cost(task), task))
    others = [task for task in rounds if task.experiment != "times"] or rounds
    if others:
        shortest = min(others, key=lambda task: (cost(task), task))
        rounds.remove(shortest)
        rounds.insert(0, shortest)
    return rounds
