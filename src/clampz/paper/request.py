"""What is asked of the reproduction, and the runs that it needs."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from clampz.errors import OptionError
from clampz.paper.families import FAMILIES, Family, families
from clampz.paper.figures import PaperFigure
from clampz.paper.running import cost
from clampz.paper.runs import Task
from clampz.paper.settings import MAX_OPTIMAL_SIZE, SETTINGS

# Runs of each family; of "optimal", which tries every set, only of families that are small enough.
NUM_RUNS = {"errors": 100, "times": 5, "optimal": 10}
NUM_QUICK = {"errors": 2, "times": 1, "optimal": 1}
# Seconds, as `running.cost` has them, beyond which a quick experiment makes one run less of a family.
LONG = 10.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for, by the names that the command line has for it: several figures, graphs or families, sizes and
    ranges of weights, None for all; runs of each family; where to compute; and the folder."""

    quick: bool = False
    ours: bool = False
    figure: Sequence[str] | None = None
    family: Sequence[str] | None = None
    size: Sequence[int] | None = None
    weights: Sequence[str] | None = None
    runs: int | None = None
    scheduler: str | None = None
    jobs: int | None = None
    out: Path = Path("results/paper")

    def as_command(self) -> str:
        """The command that asks for this."""
        words = ["clampz", "paper"]
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            for each in value if isinstance(value, list | tuple) else [value]:
                given = [] if each is True else [str(each)]
                words += [f"--weights={each}"] if field.name == "weights" else [f"--{field.name}", *given]
        return shlex.join(words)


def chosen_tasks(request: Request, figures: Sequence[PaperFigure]) -> list[Task]:
    """The runs that the figures need, of the chosen families."""
    for name, value in (("runs", request.runs), ("jobs", request.jobs)):
        if value is not None and value < 1:
            raise OptionError(f"--{name} {value}: expected a whole number >= 1")
    if request.jobs is not None and request.scheduler is not None:
        raise OptionError("--jobs is for the cores of this machine, --scheduler for a cluster: expected one of them")
    counts = dict(NUM_QUICK if request.quick else NUM_RUNS)
    if request.runs is not None:
        counts = {name: request.runs if name == "errors" else min(n, request.runs) for name, n in counts.items()}
    needed = {
        (experiment, family) for figure in figures for experiment in figure.experiments for family in figure.families
    }
    tasks = [
        Task(settings, experiment, family.name, run)
        for settings in (SETTINGS if request.ours else ("paper",))
        for experiment in SETTINGS[settings].experiments
        for family in chosen_families(request.family, request.size, request.weights)
        if (experiment, family) in needed and (experiment != "optimal" or family.size <= MAX_OPTIMAL_SIZE)
        for run in range(counts[experiment])
    ]
    return [t for t in tasks if not request.quick or t.run + 1 < NUM_QUICK[t.experiment] or cost(t) <= LONG]


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
                raise OptionError(f"--{errors[0]}")
            found.update(fitting)
    return [family for family in FAMILIES if family in found]


def as_range(text: str) -> tuple[float, float]:
    """Two numbers with a comma between them."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise OptionError(f"--weights: expected two numbers, as in --weights=-6,6, found {text!r}") from None
    return low, high
