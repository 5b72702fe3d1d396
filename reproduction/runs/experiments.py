"""Runs: the experiments of the paper and one more on one model, each a few calls of `cz.clamp`.

Without warm starts the clampings of a run share a memo: a set of clamped variables that several selectors come to is
solved once per method.  Where times are taken each selector has a memo of its own, for what choosing needs.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import clampz as cz
from reproduction.families import family_named
from reproduction.settings import (
    BY_LIMIT,
    MAX_BRANCHES,
    MAX_CLAMPS,
    MAX_FURTHER,
    MAX_GREEDY,
    MAX_OPTIMAL,
    METHODS,
    MINI_BUCKETS,
    SELECTOR,
    TIMED,
    Settings,
    settings_named,
)
from reproduction.tools import unknown_name

# Binary logarithms of the largest tables of mini-buckets, whose bounds stand beside the further clamps.
TABLE_POWERS = range(2, 17, 2)


@dataclass(frozen=True, order=True)
class Task:
    """Name one run to make: of an experiment ("errors", "times", "optimal" or "further"), on one model of a family.
    Heuristics clamp at most `clamps` variables."""

    settings: str
    experiment: str
    family: str
    run: int
    clamps: int = MAX_CLAMPS


class Row(NamedTuple):
    """Hold what one method has after some clamps chosen by one selector.

    method      "mf", "bethe" or "trw"; in the experiment "further" also `MINI_BUCKETS` and "exact"
    selector    a heuristic, "pseudo-greedy", "greedy" or "optimal"; "none" before the first clamp; "limit" of
                mini-buckets, whose `clamps` are the binary logarithm of the largest table they may have
    variable    the one clamped in this step; None before the first, and for "optimal", whose sets are chosen whole
    log_z       the raw sum over the branches: of the certified bounds of mean field and TRW, of the values of Bethe
    converged   whether every branch has
    seconds     in "times" and "further": of choosing these variables and solving the branches they make, as if for
                this row alone; with warm starts or choices per branch, which need them, of all the steps up to here
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
    """Hold a run made: the model in numbers, its exact log Z, the seconds the run took, and what was found."""

    task: Task
    seed: int
    num_variables: int
    num_edges: int
    exact: float
    seconds: float
    rows: tuple[Row, ...]


class Outcome(NamedTuple):
    """Say what has become of a task: a run, or in one line why there is none."""

    task: Task
    finished: Finished | None
    error: str = ""

    @classmethod
    def failed(cls, task: Task, error: BaseException) -> "Outcome":
        """Say that there is no run: the error, and where in the code it was raised."""
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
    model, seed = family.model(task.run), family.seed(task.run)
    settings = settings.for_model(seed, task.clamps)
    exact, exact_seconds = _exactly(model, threads)
    if task.experiment in ("times", "further"):
        rows = list(_times(model, settings, task.experiment))
    else:
        rows = list(_errors(model, settings, task.experiment, threads))
    if task.experiment == "further":
        rows += [*_mini_buckets(model), Row("exact", "none", 0, None, exact, True, 1, exact_seconds)]
    return Finished(
        task=task,
        seed=seed,
        num_variables=model.num_variables,
        num_edges=model.num_edges,
        exact=exact,
        seconds=time.perf_counter() - began,
        rows=tuple(rows),
    )


def _exactly(model: cz.Model, threads: int) -> tuple[float, float]:
    """Return the truth, and the seconds it takes."""
    began = time.thread_time()
    return cz.exact(model, marginals=False, threads=threads).log_z, time.thread_time() - began


def _mini_buckets(model: cz.Model) -> Iterator[Row]:
    """Yield bounds of mini-buckets of rising cost."""
    for power in TABLE_POWERS:
        began = time.thread_time()
        found = cz.mini_buckets(model, max_table=2**power, marginals=False, threads=1)
        yield Row(MINI_BUCKETS, BY_LIMIT, power, None, found.upper, found.converged, 1, time.thread_time() - began)


def _errors(model: cz.Model, settings: Settings, experiment: str, threads: int) -> Iterator[Row]:
    """Yield every step of every sequence of clamps."""
    memo = _memo(model, settings, threads)
    for method in settings.methods:
        for selector, k in _sequences(model, settings, experiment, method):
            result = _clamped(model, settings, method, selector, k, threads, memo)
            for count, step in enumerate(result.steps):
                if count or not k:  # before the first clamp all selectors are one
                    yield _row(settings, method, selector, step, count)


def _times(model: cz.Model, settings: Settings, experiment: str) -> Iterator[Row]:
    """Time each selector and number of clamps as if alone, with one thread: what choosing takes, and solving the
    branches in the end. What choosing needs solved is solved once: one clamp more takes what the last step takes."""
    for method in settings.methods:  # a little of everything, so that no compilation is timed
        for k in range(4):
            _clamped(cz.generators.lamp(rng=0), settings, method, SELECTOR, k)
    guides: dict[tuple[str, str], Guide] = {}
    for method in settings.methods:
        for selector, most in _sequences(model, settings, experiment, method):
            guide = None
            if (judge := _judge(selector, method, model)) is not None and _remembers(settings):
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
                        seconds += guide.seconds[k if selector.endswith("greedy") else k - 1]
                yield _row(settings, method, selector, step, k)._replace(seconds=seconds, agree="")


def may_err_both_ways(model: cz.Model) -> bool:
    """Tell whether Bethe is no bound, so that greedy selectors go by TRW."""
    return not model.is_balanced


def _judge(selector: str, method: str, model: cz.Model) -> str | None:
    """Return the method that says which variable is next; None where none has to be asked."""
    if selector.endswith("+TRE"):
        return "trw"
    if selector.endswith("greedy"):
        return "trw" if method == "bethe" and may_err_both_ways(model) else method
    return None


class Guide(NamedTuple):
    """Hold a sequence of clamps by the method that judges it: for 0, 1, ... clamps the step, the seconds of all up to
    it, and what was solved."""

    steps: tuple[cz.results.ClampStep, ...]
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
) -> tuple[float, cz.results.ClampStep]:
    """Return the last of k steps, and the seconds of computing by this thread, which other work does not disturb."""
    began = time.thread_time()
    step = _clamped(model, settings, method, selector, k, memo=memo, every_step=False).steps[-1]
    return time.thread_time() - began, step


def _sequences(model: cz.Model, settings: Settings, experiment: str, method: str) -> Iterator[tuple[str, int]]:
    """Yield what chooses the variables that a method is clamped at, and how many; first nothing, none."""
    most_states, limit = max(model.num_states.tolist(), default=2), model.num_variables
    if most_states > 2:
        limit = min(limit, int(math.log(MAX_BRANCHES, most_states)))
    selectors = {
        "errors": settings.selectors,
        "times": {name: most for name, most in settings.selectors.items() if name in TIMED},
        "optimal": {"optimal": MAX_OPTIMAL, "greedy": MAX_GREEDY},
        "further": {SELECTOR: MAX_FURTHER},
    }
    yield "none", 0
    for selector, most in selectors[experiment].items():
        if model.pair_form is None and ("Cycles" in selector or selector == "greedy"):
            continue  # more labels have no signs, and more branches than can be tried for every variable
        if "(" in selector and not (experiment == "errors" and method == "bethe" and may_err_both_ways(model)):
            continue  # what else Bethe could be guided by where it is no bound
        yield selector, min(most, limit)


def _remembers(settings: Settings) -> bool:
    """Tell whether a set of variables is solved once, whatever the way to it."""
    return not settings.warm_starts and not settings.per_branch


def _memo(model: cz.Model, settings: Settings, threads: int) -> cz.Memo | None:
    """Make a memo in which every method, guides included, has its settings."""
    if not _remembers(settings):
        return None
    return cz.Memo(model, *(settings.options(method, threads) for method in METHODS))


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
) -> cz.results.Clamped:
    """Clamp k variables; where sets are remembered every step may be solved, or the last one alone."""
    name, _, criterion = selector.removesuffix(")").partition(" (")
    return cz.clamp(
        model,
        method,
        k=k,
        select="maxW" if name == "none" else name,
        criterion=criterion or None,
        reweight=settings.reweight,
        per_branch=settings.per_branch,
        warm_starts=settings.warm_starts,
        every_step=every_step or not _remembers(settings),
        memo=_memo(model, settings, threads) if memo is None else memo,
        options=settings.options(method, threads),
    )


def _row(settings: Settings, method: str, selector: str, step: cz.results.ClampStep, clamps: int) -> Row:
    agree = step.agree if selector == "pseudo-greedy" and settings.name == "paper" else ()
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
