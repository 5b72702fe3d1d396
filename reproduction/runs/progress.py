"""How far the runs are, and how long the rest will take."""

import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from reproduction.families import family_named
from reproduction.runs.experiments import Outcome, Task

# How much longer a method takes, by the largest weight of a sparse family.
SWEEPS = {2.0: 0.3, 6.0: 1.0, 12.0: 4.0}


class Pace:
    """Tell how quickly runs are made, and how long the rest will take.

    A family's runs take about the time of those before; of families not yet seen, what their costs say.  Seconds of
    work are made into seconds of waiting by how many of the former have come per second of the latter, so that it does
    not matter who works.
    """

    def __init__(self, tasks: Sequence[Task], now: Callable[[], float] = time.monotonic) -> None:
        self.num_tasks, self.num_done, self._now = len(tasks), 0, now
        self._first = 0.0
        self._left = Counter(map(_kind, tasks))
        self._seconds: dict[Task, list[float]] = defaultdict(list)
        self._work = 0.0

    def add(self, outcome: Outcome) -> None:
        self.num_done += 1
        self._left[_kind(outcome.task)] -= 1
        if self.num_done == 1:  # it may have compiled the kernels
            self._first = self._now()
        elif outcome.finished is not None:
            self._seconds[_kind(outcome.task)].append(outcome.finished.seconds)
            self._work += outcome.finished.seconds

    def rate(self) -> str:
        """Write runs per second or minute; nothing as long as there are too few."""
        waited = self._now() - self._first
        if self.num_done < 4 or waited <= 0:
            return ""
        rate = (self.num_done - 1) / waited
        return f"{rate:.1f} runs/s" if rate >= 1 else f"{60 * rate:.1f} runs/min"

    def left(self) -> str:
        """Write the time left; nothing as long as there is too little to tell it from."""
        waited = self._now() - self._first
        if self.num_done < 4 or waited <= 0 or self._work <= 0:
            return ""
        usual = {kind: statistics.median(seconds) for kind, seconds in self._seconds.items()}
        unit = sum(usual.values()) / sum(map(cost, usual))
        work = sum(count * usual.get(kind, unit * cost(kind)) for kind, count in self._left.items())
        return f"{as_clock(work * waited / self._work)} left"

    def __str__(self) -> str:
        """Return how far the runs are, in one line."""
        done = f"{self.num_done} of {self.num_tasks} runs"
        return " · ".join(filter(None, ("making runs", done, self.rate(), self.left())))


def _kind(task: Task) -> Task:
    return replace(task, run=0)


def as_clock(seconds: float) -> str:
    """Write seconds as hours, minutes and seconds.

    >>> as_clock(4000.2), as_clock(7)
    ('1:06:40', '0:07')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def cost(task: Task) -> float:
    """Estimate the seconds a run takes on one core, fitted to measured ones; they differ by a factor of three within a
    family."""
    family = family_named(task.family)
    if family.weights[1] not in SWEEPS or task.settings != "paper" or task.experiment == "further" or family.labels > 2:
        return {"further": 8.0, "times": 4.0}.get(task.experiment, 3.0 if task.settings == "paper" else 1.0)
    dense = family.graph == "complete"
    size = 0.4 * math.pow(family.size / 10, 6.5) if dense else 3.0 * math.pow(family.size / 81, 2.5)
    if task.experiment == "optimal":  # on attractive models Bethe judges by itself, whatever their weights
        strong = 1.5 if dense else 4.0
        return size * 1.4 * family.size * (strong if family.weights[1] > 6 else 1.0 if family.mixed else 1.3)
    return 0.8 + size * (1.5 if dense and family.weights[1] > 6 else SWEEPS[family.weights[1]])
