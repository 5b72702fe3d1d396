"""What is asked of the reproduction, and the runs that it needs."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from clampz.errors import OptionError
from reproduction.families import EVERY, FAMILIES, Family, FromFile, families, family_named
from reproduction.pictures.figures import PaperFigure, figures_named, model_figures
from reproduction.runs.experiments import Task
from reproduction.runs.progress import cost
from reproduction.settings import (
    EXPERIMENTS,
    LABELLED_RUNS,
    MAX_CLAMPS,
    MAX_OPTIMAL_SIZE,
    OWN_RUNS,
    SETTINGS,
)

NUM_QUICK = {"errors": 2, "times": 1, "optimal": 1, "further": 1}
# Seconds, as `running.cost` has them, beyond which a quick experiment makes one run less of a family.
LONG = {"errors": 2.0, "times": 2.5, "optimal": 6.0, "further": 10.0}


@dataclass(frozen=True, kw_only=True)
class Request:
    """Hold what is asked for, by the names that the command line has for it. Figures, graphs or families, sizes and
    ranges of weights are several, None for all."""

    quick: bool = False
    figure: Sequence[str] | None = None
    family: Sequence[str] | None = None
    size: Sequence[int] | None = None
    weights: Sequence[str] | None = None
    runs: int | None = None
    models: Sequence[str] | None = None
    clamps: int = MAX_CLAMPS
    latex: bool = False
    draw: bool = False
    scheduler: str | None = None
    jobs: int | None = None
    out: Path = Path("results/paper")

    def as_command(self) -> str:
        """Return the command that asks for this."""
        words = ["python", "-m", "reproduction"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            for each in value if isinstance(value, list | tuple) else [value]:
                given = [] if each is True else [str(each)]
                words += [f"--weights={each}"] if field.name == "weights" else [f"--{field.name}", *given]
        return shlex.join(words)


def chosen_figures(request: Request) -> list[PaperFigure]:
    """Return the figures asked for: of the paper and beyond it, or of the user's files."""
    if request.models is None:
        return figures_named(request.figure or ())
    return figures_named(request.figure or (), model_figures(chosen_files(request.models)))


def chosen_files(patterns: Sequence[str]) -> list[Family]:
    """Return the files that the patterns stand for."""
    paths = [Path(pattern).expanduser().absolute() for pattern in patterns]
    found = sorted({str(each) for path in paths for each in Path(path.anchor).glob(str(path.relative_to(path.anchor)))})
    if not found:
        raise OptionError(f"--models {' '.join(patterns)}: expected files of models, found none")
    return [family_named(path) for path in found]


def chosen_tasks(request: Request, figures: Sequence[PaperFigure]) -> list[Task]:
    """Return the runs that the figures need, of the chosen families."""
    for name, value in (("runs", request.runs), ("jobs", request.jobs), ("clamps", request.clamps)):
        if value is not None and value < 1:
            raise OptionError(f"--{name} {value}: expected a whole number >= 1")
    if request.jobs is not None and request.scheduler is not None:
        raise OptionError("--jobs is for the cores of this machine, --scheduler for a cluster: expected one of them")
    given = [name for name in ("family", "size", "weights", "runs") if getattr(request, name) is not None]
    if request.models is not None and given:
        raise OptionError(f"--{given[0]} is for the paper's families, --models for files: expected one of them")
    chosen = set(chosen_families(request.family, request.size, request.weights))
    tasks = dict.fromkeys(
        Task(settings, experiment, family.name, run, request.clamps)
        for figure in figures
        for settings in figure.settings
        for experiment in figure.experiments
        for family in figure.families
        if (family in chosen or isinstance(family, FromFile))
        and (experiment != "optimal" or family.size <= MAX_OPTIMAL_SIZE)
        and family.name in (SETTINGS[settings].families or [family.name])
        for run in range(num_runs(request, settings, experiment, family))
    )
    return [
        t for t in tasks if not request.quick or t.run + 1 < NUM_QUICK[t.experiment] or cost(t) <= LONG[t.experiment]
    ]


def num_runs(request: Request, settings: str, experiment: str, family: Family) -> int:
    """Return how many runs to make: of a file one, as every other would be the same."""
    if isinstance(family, FromFile):
        return 1
    runs = OWN_RUNS if settings != "paper" else EXPERIMENTS if family in FAMILIES else LABELLED_RUNS
    if request.quick:
        return NUM_QUICK[experiment] if runs is EXPERIMENTS else int(experiment != "times")
    most = runs[experiment]
    return most if request.runs is None else request.runs if experiment == "errors" else min(most, request.runs)


def chosen_families(
    graphs: Sequence[str] | None, sizes: Sequence[int] | None, weights: Sequence[str] | None
) -> list[Family]:
    """Return the families of one of the graphs, one of the sizes and one of the ranges of weights; a graph need not
    have every size."""
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
                raise OptionError(f"--{errors[0]}")
            found.update(fitting)
    return [family for family in EVERY if family in found]


def as_range(text: str) -> tuple[float, float]:
    """Read two numbers with a comma between them."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise OptionError(f"--weights: expected two numbers, as in --weights=-6,6, found {text!r}") from None
    return low, high
