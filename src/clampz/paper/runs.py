"""Runs: the experiments of the paper on one model, each a few calls of `cz.clamp`.

Without warm starts the clampings of a run share a memo: a set of clamped variables that several selectors come to is
solved once per method.  Where times are taken each selector has a memo of its own, for what choosing needs.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import clampz as cz
from clampz.errors import unknown_name
from clampz.paper.families import family_named
from clampz.paper.settings import MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL, METHODS, Settings, settings_named


@dataclass(frozen=True, order=True)
class Task:
    """One run to make: of an experiment ("errors", "times" or "optimal"), on one model of a family."""

    settings: str
    experiment: str
    family: str
    run: int


class Row(NamedTuple):
    """What one method has after so many clamps chosen by one selector.

    method      "mf", "bethe" or "trw"
    selector    a heuristic, "pseudo-greedy", "greedy" or "optimal"; "none" before the first clamp
    variable    the one clamped in this step; None before the first, and for "optimal", whose sets are chosen whole
    log_z       the raw sum over the branches: of the certified bounds of mean field and TRW, of the values of Bethe
    converged   whether every branch has
    seconds     in the experiment "times": of choosing so many variables and solving the branches they make, as if for
                this row alone; with warm starts, which need them, of all the steps up to here
    agree       for "pseudo-greedy" at the paper's settings: the heuristics that choose the same variable at its state,
                separated by commas
    """

    method: str
    selector: str
    clamps: int
    variable: int | None
    log_z: float
    converged: bool
    num_branches: int
    seconds: float | None = None
    agree: str = ""


@dataclass(frozen=True)
class Finished:
    """A run made: the model in numbers, its exact log Z, the seconds the run took, and what was found."""

    task: Task
    seed: int
    num_variables: int
    num_edges: int
    exact: float
    seconds: float
    rows: tuple[Row, ...]


class Outcome(NamedTuple):
    """What has become of a task: a run, or in one line why there is none."""

    task: Task
    finished: Finished | None
    error: str = ""

    @classmethod
    def failed(cls, task: Task, error: BaseException) -> "Outcome":
        """No run: the error, and where in the code it was raised."""
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        place = "" if frame is None else f" ({Path(frame.tb_frame.f_code.co_filename).name}, line {frame.tb_lineno})"
        return cls(task, None, " ".join(f"{type(error).__name__}: {error}".split()) + place)


def perform(task: Task, threads: int = 1) -> Finished:
    """Make a run: the same numbers with any number of threads and in any process, but for the seconds.

    >>> finished = perform(Task("paper", "errors", "complete10[0,2]", 0))
    >>> {row.method for row in finished.rows if row.selector == "greedy"} == {"mf", "bethe", "trw"}
    True
    """
    began = time.perf_counter()
    family, settings = family_named(task.family), settings_named(task.settings)
    if task.experiment not in settings.experiments:
        raise unknown_name("experiment", task.experiment, settings.experiments)
    model = family.model(task.run)
    if task.experiment == "times":
        rows = tuple(_times(model, settings, family.mixed))
    else:
        rows = tuple(_errors(model, settings, task.experiment, family.mixed, threads))
    return Finished(
        task=task,
        seed=family.seed(task.run),
        num_variables=model.num_variables,
        num_edges=model.num_edges,
        exact=cz.exact(model, marginals=False, threads=threads).log_z,
        seconds=time.perf_counter() - began,
        rows=rows,
    )


def _errors(model: cz.Model, settings: Settings, experiment: str, mixed: bool, threads: int) -> Iterator[Row]:
    """Every step of every sequence of clamps."""
    memo = _memo(model, settings, threads)
    for method in METHODS:
        for selector, k in _sequences(settings, experiment, method, mixed):
            result = _clamped(model, settings, method, selector, k, threads, memo)
            for count, step in enumerate(result.steps):
                if count or not k:  # before the first clamp all selectors are one
                    yield _row(settings, method, selector, step, count)


def _times(model: cz.Model, settings: Settings, mixed: bool) -> Iterator[Row]:
    """Each selector and number of clamps as if alone, with one thread: what choosing takes, and solving the branches
    that it ends with.  What choosing needs solved is solved once: one clamp more takes what the last step takes."""
    for method in METHODS:  # a little of everything, so that no compilation is timed
        for k in range(4):
            _clamped(cz.generators.lamp(rng=0), settings, method, "pseudo-greedy", k)
    guides: dict[tuple[str, str], Guide] = {}
    for method in METHODS:
        for selector, most in _sequences(settings, "times", method, mixed):
            guide = None
            if (judge := _judge(selector, method, mixed)) is not None and not settings.warm_starts:
                if (selector, judge) not in guides:
                    guides[selector, judge] = Guide.followed(model, settings, judge, selector, most)
                guide = guides[selector, judge]
            for k in range(min(1, most), most + 1):
                if guide is not None and judge == method:
                    seconds, step = guide.seconds[k], guide.steps[k]
                else:
                    memo = None if guide is None else guide.memo
                    seconds, step = _timed(model, settings, method, selector, k, memo)
                    if guide is not None:  # a heuristic chooses by what is known before the step, others try it out
                        seconds += guide.seconds[k - 1 if selector in settings.heuristics else k]
                yield _row(settings, method, selector, step, k)._replace(seconds=seconds, agree="")


def _judge(selector: str, method: str, mixed: bool) -> str | None:
    """The method that says which variable is next; None where none has to be asked."""
    if selector.endswith("+TRE"):
        return "trw"
    if selector.endswith("greedy"):
        return "trw" if method == "bethe" and mixed else method
    return None


class Guide(NamedTuple):
    """A sequence of clamps by the method that judges it: the step and the seconds of all up to it for 0, 1, ... clamps;
    and what was solved for it."""

    steps: tuple[cz.Step, ...]
    seconds: tuple[float, ...]
    memo: cz.Memo | None

    @classmethod
    def followed(cls, model: cz.Model, settings: Settings, judge: str, selector: str, most: int) -> "Guide":
        """Clamp one variable more at a time."""
        memo = _memo(model, settings, 1)
        seconds, steps = zip(*(_timed(model, settings, judge, selector, k, memo) for k in range(most + 1)), strict=True)
        return cls(steps, tuple(accumulate(seconds)), memo)


def _timed(
    model: cz.Model, settings: Settings, method: str, selector: str, k: int, memo: cz.Memo | None
) -> tuple[float, cz.Step]:
    """The last of k steps, and the seconds of computing by this thread, which other work does not disturb."""
    began = time.thread_time()
    step = _clamped(model, settings, method, selector, k, memo=memo, every_step=False).steps[-1]
    return time.thread_time() - began, step


def _sequences(settings: Settings, experiment: str, method: str, mixed: bool) -> Iterator[tuple[str, int]]:
    """What chooses the variables that a method is clamped at, and how many; first nothing, none.

    What tries most comes first: it solves many sets at once, and the others find them in the memo.
    """
    yield "none", 0
    if experiment == "optimal":
        yield "optimal", MAX_OPTIMAL
    if not settings.warm_starts:
        yield "greedy", MAX_GREEDY
    if experiment == "optimal":
        return
    yield "pseudo-greedy", MAX_CLAMPS
    if experiment == "errors" and method == "bethe" and mixed and not settings.warm_starts:
        yield "pseudo-greedy (mf)", MAX_CLAMPS  # by what else it could be guided there
        yield "pseudo-greedy (gap)", MAX_CLAMPS
    for heuristic in settings.heuristics:
        yield heuristic, MAX_CLAMPS


def _memo(model: cz.Model, settings: Settings, threads: int) -> cz.Memo | None:
    """A memo in which every method, guides included, has its settings."""
    return None if settings.warm_starts else cz.Memo(model, *(settings.options(method, threads) for method in METHODS))


def _clamped(
    model: cz.Model,
    settings: Settings,
    method: str,
    selector: str,
    k: int,
    threads: int = 1,
    memo: cz.Memo | None = None,
    *,
    every_step: bool = True,
) -> cz.Clamped:
    """Clamp k variables; with cold starts every step may be solved, or the last one alone."""
    name, _, criterion = selector.removesuffix(")").partition(" (")
    return cz.clamp(
        model,
        method,
        k=k,
        select="maxW" if name == "none" else name,
        criterion=criterion or None,
        reweight=settings.reweight,
        warm_starts=settings.warm_starts,
        every_step=settings.warm_starts or every_step,
        memo=_memo(model, settings, threads) if memo is None else memo,
        options=settings.options(method, threads),
    )


def _row(settings: Settings, method: str, selector: str, step: cz.Step, clamps: int) -> Row:
    agree = step.agree if selector == "pseudo-greedy" and not settings.warm_starts else ()
    return Row(
        method=method,
        selector=selector,
        clamps=clamps,
        variable=None if selector == "optimal" else step.variable,
        log_z=step.raw_log_z,
        converged=step.converged,
        num_branches=step.num_branches,
        agree=",".join(agree),
    )
