"""Runs: the experiments of the paper on one model.

All selectors advance together, one clamp at a time: what they need solved at a step is one batch for each method, and a
set of clamped variables that several selectors come to is solved once.  Only where times are taken does each selector
run alone.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from clampz import generators
from clampz.approximations.registry import METHODS
from clampz.clamping.growth import CRITERIA, Growth
from clampz.clamping.selectors.registry import TRE
from clampz.elimination.exact import exact
from clampz.errors import unknown_name
from clampz.model import Model
from clampz.numerics import log_sum_exp
from clampz.paper.families import family_named
from clampz.paper.settings import HEURISTICS, MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL, Settings, settings_named
from clampz.paper.solving import Recorded, Set, Solver, Sum, clock

# What rows call the methods.
LABELS = {"mean_field": "mf", "bethe": "bethe", "trw": "trw"}


@dataclass(frozen=True, order=True)
class Task:
    """One run to make: of a part ("errors", "times" or "optimal") of the experiments, on one model of a family."""

    settings: str
    part: str
    family: str
    run: int


class Row(NamedTuple):
    """What one method has after so many clamps chosen by one selector.

    method      "mf", "bethe" or "trw" selector    a heuristic, "pseudo-greedy", "greedy" or "optimal"; "none" before
    the first clamp variable    the one clamped in this step; None before the first, and for "optimal", whose sets are
    chosen whole log_z       the raw sum over the branches: of the certified bounds of mean field and TRW, of the values
    of Bethe converged   whether every branch has seconds     in the part "times": of choosing so many variables and
    solving the branches they make, as if for this row alone; with warm starts, which need
                them, of all the steps up to here
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


def perform(task: Task, threads: int = 1) -> Finished:
    """Make a run: the same numbers with any number of threads and in any process, but for the seconds.

    >>> finished = perform(Task("paper", "errors", "complete10[0,2]", 0))
    >>> {row.method for row in finished.rows if row.selector == "greedy"} == {"mf", "bethe", "trw"}
    True
    """
    began = time.perf_counter()
    family, settings = family_named(task.family), settings_named(task.settings)
    if task.part not in settings.parts:
        raise unknown_name("part", task.part, settings.parts)
    model = family.model(task.run)
    if task.part == "optimal":
        rows = _optimal(model, settings, family.mixed, threads)
    elif settings.warm_starts:
        rows = _with_warm_starts(
            model, settings, family.mixed, 1 if task.part == "times" else threads, timed=task.part == "times"
        )
    elif task.part == "times":
        rows = _times(model, settings, family.mixed)
    else:
        rows = _errors(model, settings, family.mixed, threads)
    return Finished(
        task=task,
        seed=family.seed(task.run),
        num_variables=model.num_variables,
        num_edges=model.num_edges,
        exact=exact(model, marginals=False, threads=threads).log_z,
        seconds=time.perf_counter() - began,
        rows=tuple(rows),
    )


# -- paths -------------------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A variable more: which, all that are clamped by now, and who agrees with the choice."""

    variable: int
    clamped: Set
    agree: tuple[str, ...]


@dataclass
class Path:
    """A sequence of clamps under way.

    Attributes
    ----------
    selector
        As rows call it.
    heuristics
        Whose choices it tries; none: every variable.
    criterion
        By which it takes the best of several: see `clamping.CRITERIA`.
    methods
        Those that are asked about it.
    max_clamps
        Where it ends.
    report_all
        Whether the methods are asked about every step, or only about the last.
    """

    selector: str
    heuristics: tuple[str, ...]
    criterion: str
    methods: tuple[str, ...]
    max_clamps: int
    report_all: bool = True
    steps: list[Step] = field(default_factory=list)
    waiting: dict[int, tuple[str, ...]] = field(
        default_factory=dict
    )  # the variables to be tried in this step, with the heuristics that chose them

    @property
    def clamped(self) -> Set:
        return self.steps[-1].clamped if self.steps else ()

    @property
    def uses_entropy(self) -> bool:
        return any(name.endswith(TRE) for name in self.heuristics)

    def begin(self, solver: Solver) -> None:
        """Find out what is to be tried in the next step; a single choice is taken as it is."""
        if self.heuristics:
            if self.uses_entropy:
                solver.solve("trw", [self.clamped])
            choices = solver.choices(self.heuristics, self.clamped)
            self.waiting = {
                variable: tuple(name for name in choices if choices[name] == variable) for variable in choices.values()
            }
        else:
            self.waiting = {
                variable: () for variable in range(solver.model.num_variables) if variable not in self.clamped
            }
        if len(self.waiting) == 1:
            self._clamp(*self.waiting)

    def asks(self, method: str, *, ending: bool) -> list[Set]:
        """The sets that a method is to solve now: those to be tried, if it has a say in the choice; else where the path
        has come to, if it reports on that."""
        if self.waiting:
            return self._tried() if method in CRITERIA[self.criterion][0] else []
        entropy_next = method == "trw" and self.uses_entropy and not ending
        reported = method in self.methods and (ending or self.report_all)
        return [self.clamped] if reported or entropy_next else []

    def decide(self, solver: Solver, asked: Sequence[str]) -> None:
        """Take the best of what is tried, the first of those that tie, as soon as the methods that judge have all been
        asked."""
        needed, merit = CRITERIA[self.criterion]
        if self.waiting and set(needed) <= set(asked):
            merits = [merit(*(solver.sum(method, clamped).log_z for method in needed)) for clamped in self._tried()]
            self._clamp(list(self.waiting)[merits.index(max(merits))])

    def _tried(self) -> list[Set]:
        return [_with(self.clamped, variable) for variable in self.waiting]

    def _clamp(self, variable: int) -> None:
        self.steps.append(Step(variable, _with(self.clamped, variable), self.waiting[variable]))
        self.waiting = {}


def _with(clamped: Set, variable: int) -> Set:
    return tuple(sorted((*clamped, variable)))


def own_criterion(method: str, mixed: bool) -> str:
    """What greedy selectors make best for a method: its own sum, but for Bethe on mixed models, where higher is not
    better, TRW's."""
    return "trw" if mixed and method == "bethe" else LABELS[method]


def all_paths(settings: Settings, mixed: bool) -> list[Path]:
    """Every sequence of clamps that the part "errors" reports on."""
    every = tuple(LABELS)
    paths = [Path(name, (name,), "trw", every, MAX_CLAMPS) for name in settings.heuristics]
    guided: dict[str, list[str]] = {}
    for method in every:
        guided.setdefault(own_criterion(method, mixed), []).append(method)
    for criterion, methods in guided.items():
        paths.append(Path("pseudo-greedy", HEURISTICS, criterion, tuple(methods), MAX_CLAMPS))
        paths.append(Path("greedy", (), criterion, tuple(methods), MAX_GREEDY))
    if mixed:
        paths += [
            Path(f"pseudo-greedy ({criterion})", HEURISTICS, criterion, ("bethe",), MAX_CLAMPS)
            for criterion in ("mf", "gap")
        ]
    return paths


def grow(solver: Solver, paths: list[Path], order: Sequence[str]) -> None:
    """Bring paths to their end, a step of all of them at a time; at each, the methods are asked in this order, and each
    once."""
    for count in range(1, 1 + max(path.max_clamps for path in paths)):
        live = [path for path in paths if path.max_clamps >= count]
        for path in live:
            path.begin(solver)
        for position, method in enumerate(order, start=1):
            solver.solve(
                method, [clamped for path in live for clamped in path.asks(method, ending=path.max_clamps == count)]
            )
            for path in live:
                path.decide(solver, order[:position])


def _order(mixed: bool) -> tuple[str, ...]:
    """Mean field guides only itself; on mixed models TRW guides Bethe, on others its entropies wait for what Bethe
    chooses."""
    return ("mean_field", "trw", "bethe") if mixed else ("mean_field", "bethe", "trw")


# -- parts -------------------------------------------------------------------------------------------------------------------


def _errors(model: Model, settings: Settings, mixed: bool, threads: int) -> list[Row]:
    solver = Solver(model, settings, threads)
    for method in LABELS:
        solver.solve(method, [()])
    paths = all_paths(settings, mixed)
    grow(solver, paths, _order(mixed))
    rows = [_row(method, "none", (), None, solver.sum(method, ())) for method in LABELS]
    for path in paths:
        rows += [row for method in path.methods for row in _rows(solver, path, method)]
    return rows


def _times(model: Model, settings: Settings, mixed: bool) -> list[Row]:
    """Each selector and number of clamps alone, with one thread: what choosing takes, and solving the branches that it
    ends with.

    Only the seconds of the very same batch are taken over from one to the next.
    """
    _warm_up(settings)
    recorded: Recorded = {}
    rows = []
    for method in LABELS:
        none = Solver(model, settings, 1, recorded)
        none.solve(method, [()])
        rows.append(_row(method, "none", (), None, none.sum(method, ()), seconds=none.seconds))
        for path in all_paths(settings, mixed):
            if method not in path.methods or "(" in path.selector:
                continue
            for count in range(1, path.max_clamps + 1):
                alone = Solver(model, settings, 1, recorded)
                timed = Path(path.selector, path.heuristics, path.criterion, (method,), count, report_all=False)
                grow(alone, [timed], _order(mixed))
                last = timed.steps[-1]
                rows.append(
                    _row(
                        method,
                        path.selector,
                        last.clamped,
                        last.variable,
                        alone.sum(method, last.clamped),
                        seconds=alone.seconds,
                    )
                )
    return rows


def _optimal(model: Model, settings: Settings, mixed: bool, threads: int) -> list[Row]:
    """Every set of up to MAX_OPTIMAL variables, and greedy's."""
    solver = Solver(model, settings, threads)
    for method in LABELS:
        solver.solve(method, [()])
    rows = [_row(method, "none", (), None, solver.sum(method, ())) for method in LABELS]
    for count in range(1, MAX_OPTIMAL + 1):
        sets = list(combinations(range(model.num_variables), count))
        for method in LABELS:
            (judge,), merit = CRITERIA[own_criterion(method, mixed)]
            solver.solve(judge, sets)
            best = max(sets, key=lambda clamped: merit(solver.sum(judge, clamped).log_z))
            solver.solve(method, [best])
            rows.append(_row(method, "optimal", best, None, solver.sum(method, best)))
    paths = [path for path in all_paths(settings, mixed) if path.selector == "greedy"]
    grow(solver, paths, _order(mixed))
    for path in paths:
        rows += [row for method in path.methods for row in _rows(solver, path, method)]
    return rows


def _with_warm_starts(model: Model, settings: Settings, mixed: bool, threads: int, *, timed: bool) -> list[Row]:
    """As `clamp` does it, a method and a selector at a time."""
    if timed:
        _warm_up(settings)
    rows = []
    for method in LABELS:
        for selector in (*settings.heuristics, "pseudo-greedy"):
            began = clock()
            growth = Growth(
                model,
                METHODS[method],
                settings.options(method, threads),
                own_criterion(method, mixed),
                settings.reweight,
                None,
                None,
            )
            for count in range(MAX_CLAMPS + 1):
                if count:
                    growth.clamp_next(selector, None, False)
                seconds = clock() - began
                found, step = growth.result(selector).branches, growth.steps[-1]
                total = Sum(
                    log_sum_exp(found.value if method == "bethe" else found.log_z),
                    int(np.count_nonzero(~found.converged)),
                    len(found),
                )
                if count or selector == settings.heuristics[0]:
                    rows.append(
                        _row(
                            method,
                            selector if count else "none",
                            step.variables,
                            step.variable,
                            total,
                            seconds=seconds if timed else None,
                        )
                    )
    return rows


def _warm_up(settings: Settings) -> None:
    """Do a little of everything, so that no compilation is timed."""
    model = generators.lamp(rng=0)
    solver = Solver(model, settings)
    for method in LABELS:
        for clamped in ((), (0,), (0, 1), (0, 1, 2)):
            solver.solve(method, [clamped])
    solver.choices(HEURISTICS, (0,))


# -- rows --------------------------------------------------------------------------------------------------------------------


def _rows(solver: Solver, path: Path, method: str) -> Iterable[Row]:
    for step in path.steps:
        agree = step.agree if path.selector == "pseudo-greedy" else ()
        yield _row(method, path.selector, step.clamped, step.variable, solver.sum(method, step.clamped), agree)


def _row(
    method: str,
    selector: str,
    clamped: Sequence[int],
    variable: int | None,
    found: Sum,
    agree: tuple[str, ...] = (),
    *,
    seconds: float | None = None,
) -> Row:
    return Row(
        method=LABELS[method],
        selector=selector,
        clamps=len(clamped),
        variable=variable,
        log_z=found.log_z,
        converged=found.num_left == 0,
        num_branches=found.num_branches,
        seconds=seconds,
        agree=",".join(agree),
    )
