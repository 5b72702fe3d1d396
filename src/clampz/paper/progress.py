"""How far the runs are, and how long the rest will take: as lines in a log, or a bar on a terminal."""

import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from clampz.paper.running import cost
from clampz.paper.runs import Outcome, Task


class Pace:
    """How quickly runs are made, and how long the rest will take.

    A family's runs take about the time of those before; of families not yet seen, what their costs say.  Seconds of
    work are made into seconds of waiting by how many of the former have come per second of the latter, so that it does
    not matter who works.
    """

    def __init__(self, tasks: Sequence[Task], now: Callable[[], float] = time.monotonic) -> None:
        self.num_tasks, self.num_done, self._now = len(tasks), 0, now
        self.started, self._first = now(), 0.0
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
        """Runs per second or minute; nothing as long as there are too few."""
        waited = self._now() - self._first
        if self.num_done < 4 or waited <= 0:
            return ""
        rate = (self.num_done - 1) / waited
        return f"{rate:.1f} runs/s" if rate >= 1 else f"{60 * rate:.1f} runs/min"

    def left(self) -> str:
        """Time left; nothing as long as there is too little to tell it from."""
        waited = self._now() - self._first
        if self.num_done < 4 or waited <= 0 or self._work <= 0:
            return ""
        usual = {kind: statistics.median(seconds) for kind, seconds in self._seconds.items()}
        unit = sum(usual.values()) / sum(map(cost, usual))
        work = sum(count * usual.get(kind, unit * cost(kind)) for kind, count in self._left.items())
        return f"{as_clock(work * waited / self._work)} left"

    def elapsed(self) -> float:
        return self._now() - self.started


def _kind(task: Task) -> Task:
    return replace(task, run=0)


def as_clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> as_clock(4000.2), as_clock(7)
    ('1:06:40', '0:07')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


class Lines:
    """Progress as lines on stderr, at the beginning and every now and then: for logs."""

    SECONDS = 30.0

    def begin(self, tasks: Sequence[Task]) -> None:
        self.pace, self.last = Pace(tasks), time.monotonic()

    def show(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.pace.add(outcome)
        if time.monotonic() - self.last >= self.SECONDS:
            self.last = time.monotonic()
            parts = (f"{self.pace.num_done} of {self.pace.num_tasks} runs", self.pace.rate(), self.pace.left())
            print(", ".join(filter(None, parts)), file=sys.stderr, flush=True)

    def end(self) -> None:
        pass


class Bar:
    """Progress as a bar on the terminal."""

    def __init__(self, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed}/{task.total} runs"),
            TextColumn("[dim]{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
            console=console,
            expand=True,
            transient=True,
            refresh_per_second=4,
        )

    def begin(self, tasks: Sequence[Task]) -> None:
        self.pace = Pace(tasks)
        self.bar = self.progress.add_task("starting", total=len(tasks), rate="", left="")
        self.progress.start()

    def show(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            self.pace.add(outcome)
        self.progress.update(
            self.bar,
            completed=self.pace.num_done,
            description=as_clock(self.pace.elapsed()) if self.pace.num_done else "starting, compiling kernels once",
            rate=self.pace.rate(),
            left=self.pace.left(),
        )

    def end(self) -> None:
        self.progress.stop()
