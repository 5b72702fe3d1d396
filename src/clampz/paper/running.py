"""Make runs, and keep each as soon as it is made.

Runs are independent of each other, so the places where they are made are generators of outcomes: `cores.on_cores` and
`cluster.on_cluster` hand out tasks and yield what comes back, and None whenever nothing did for a moment.  `make_runs`
takes what they yield, and is the only one that writes.  A run that fails is reported, and the others go on.
"""

import math
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from clampz.paper.families import family_named
from clampz.paper.runs import Outcome, Task
from clampz.paper.store import Store
from clampz.watch import on_ctrl_c

# Failed runs after which it is no use to go on.
MAX_FAILURES = 10
# How much longer a method takes, by the largest weight of a sparse family.
SWEEPS = {2.0: 0.3, 6.0: 1.0, 12.0: 4.0}


class Summary(NamedTuple):
    """How making runs has ended."""

    num_made: int
    failures: list[Outcome]
    interrupted: bool
    seconds: float

    @property
    def gave_up(self) -> bool:
        return len(self.failures) >= MAX_FAILURES


class Display(Protocol):
    """Shows how far the runs are."""

    def begin(self, tasks: Sequence[Task]) -> None: ...
    def show(self, outcome: Outcome | None) -> None: ...
    def end(self) -> None: ...


def make_runs(outcomes: Iterator[Outcome | None], tasks: Sequence[Task], store: Store, display: Display) -> Summary:
    """Keep each run that comes, until all have, Ctrl-C is pressed, or too many have failed."""
    started, num_made, failures = time.monotonic(), 0, list[Outcome]()
    asked = threading.Event()
    with on_ctrl_c(asked.set):  # nothing that is being written is cut short
        display.begin(tasks)
        try:
            for outcome in outcomes:
                if outcome is not None and outcome.finished is not None:
                    try:
                        num_made += store.add(outcome.finished)
                    except sqlite3.IntegrityError as error:  # a value that is not a number
                        outcome = Outcome(outcome.task, None, str(error))
                if outcome is not None and outcome.finished is None:
                    failures.append(outcome)
                display.show(outcome)
                if asked.is_set() or len(failures) >= MAX_FAILURES:
                    break
        finally:
            display.end()
            outcomes.close()  # type: ignore[attr-defined]  # ends the workers
        return Summary(num_made, failures, asked.is_set(), time.monotonic() - started)


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """First a short one, which compiles the kernels if they are not; then round by round, in each the long ones first.

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


def cost(task: Task) -> float:
    """About how many seconds a run takes on one core, fitted to measured ones; they differ by a factor of three within
    a family."""
    family = family_named(task.family)
    if family.weights[1] not in SWEEPS or task.settings != "paper" or task.experiment == "further" or family.labels > 2:
        return {"further": 8.0, "times": 4.0}.get(task.experiment, 3.0 if task.settings == "paper" else 1.0)
    dense = family.graph == "complete"
    size = 0.4 * math.pow(family.size / 10, 6.5) if dense else 3.0 * math.pow(family.size / 81, 2.5)
    if task.experiment == "optimal":  # on attractive models Bethe judges by itself, whatever their weights
        strong = 1.5 if dense else 4.0
        return size * 1.4 * family.size * (strong if family.weights[1] > 6 else 1.0 if family.mixed else 1.3)
    return 0.8 + size * (1.5 if dense and family.weights[1] > 6 else SWEEPS[family.weights[1]])
