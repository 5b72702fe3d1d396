"""Made-up tables of results, in which every claim of the paper that is checked on a table holds unless a test has it
otherwise."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reproduction.families import FAMILIES, Family
from reproduction.settings import HEURISTICS, MAX_CLAMPS
from reproduction.table import COLUMNS, Table

MIXED_ONLY = ("pseudo-greedy (mf)", "pseudo-greedy (gap)")
LENGTHS = {"greedy": 3, "optimal": 3}
NAMES = [
    "settings",
    "experiment",
    "family",
    "run",
    "method",
    "selector",
    "clamps",
    "error",
    "converged",
    "seconds",
    "agree",
]
# Families of different kinds.
HELD = {"grid49[-6,6]", "er25[0,6]", "complete15[-12,12]"}
SMALL = tuple(f for f in FAMILIES if f.size in (10, 15, 25, 49))


def strength(family: Family) -> float:
    return {(0.0, 2.0): 1.0, (0.0, 6.0): 2.0, (-6.0, 6.0): 3.0, (-12.0, 12.0): 6.0}[family.weights]


def first_error(family: Family, method: str) -> float:
    """Before clamping."""
    dense = family.graph == "complete"
    if method == "bethe":
        return strength(family) * ((6.0 if dense else 1.0) if family.mixed else -0.9)
    return strength(family) * {"mf": -2.0, "trw": 14.0 if dense else 4.0}[method]


def rate(family: Family, method: str, selector: str, step: int) -> float:
    """The share of the error that the step-th clamp removes."""
    base = {"grid": 0.1, "regular": 0.1, "er": 0.15, "complete": 0.25}[family.graph]
    skill = {"maxW0": 0.8, "maxW": 0.9, "Mpower": 0.9, "frustCycles": 0.7, "strongCycles": 0.75}
    if selector in MIXED_ONLY:
        return base * 0.95
    if (method, selector, step, family.graph) == ("bethe", "strongCycles", 5, "grid") and family.mixed:
        return -0.3  # Bethe can get worse there
    if (method, selector, family.graph) == ("bethe", "strongCycles+TRE", "complete"):
        return base * 1.3  # where maxW+TRE is not the best
    if selector in LENGTHS or selector == "pseudo-greedy":
        best = {"pseudo-greedy": 1.2, "greedy": 1.22, "optimal": 1.24}[selector]
        return base * (best * 1.3 if method == "mf" and selector != "pseudo-greedy" else best)
    plain = selector.removesuffix("+TRE")
    return base * skill[plain] * (1.0 if selector == plain else 1.25 if plain == "maxW" else 1.15)


def agreement(selector: str, step: int) -> float:
    """How often a heuristic chooses what pseudo-greedy does."""
    return {"maxW+TRE": 0.5, "maxW": 0.45 if step == 1 else 0.2}.get(selector, 0.15)


def step_seconds(family: Family, method: str, selector: str, step: int) -> float:
    """Of choosing so many variables and solving the branches; step 0 is the model itself."""
    first = {"mf": 0.01, "bethe": 0.03, "trw": 0.05}[method]
    if family.name == "complete10[-6,6]" and method == "trw" and step == 1:
        return 0.6 * first
    return first * {"greedy": 100.0, "pseudo-greedy": 10.0}.get(selector, 1.0) * 1.5**step


@dataclass
class Fiction:
    """What a table is made of; each rule can be replaced."""

    families: Sequence[Family] = SMALL
    num_runs: int = 8
    experiments: Sequence[str] = ("errors", "times", "optimal")
    settings: str = "paper"
    noise: float = 0.06
    first_error: Callable[[Family, str], float] = first_error
    rate: Callable[[Family, str, str, int], float] = rate
    agreement: Callable[[str, int], float] = agreement
    step_seconds: Callable[[Family, str, str, int], float] = step_seconds
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    guides: dict[str, list[float]] = field(default_factory=dict)

    def with_own(self, **changes: Any) -> "Fiction":
        """Some runs at our settings beside the paper's, where greedy has nothing over pseudo-greedy for MF."""
        common = {"families": [f for f in self.families if f.size in (10, 25)], "experiments": ["errors"]}
        for settings in ("parents", "restarts"):
            even = {"rate": lambda f, m, s, k: self.rate(f, m, "pseudo-greedy" if (m, s) == ("mf", "greedy") else s, k)}
            Fiction(settings=settings, num_runs=self.num_runs, rows=self.rows, **common, **even | changes).table()
        return self

    def table(self) -> Table:
        rng = np.random.default_rng(0)
        for experiment in self.experiments:
            for family in (f for f in self.families if experiment != "optimal" or f.size <= 25):
                for run in range(self.num_runs):
                    self._add(experiment, family, run, rng)
        return Table.from_rows(NAMES, self.rows)

    def _add(self, experiment: str, family: Family, run: int, rng: np.random.Generator) -> None:
        size = 1 + self.noise * rng.standard_normal()
        selectors = {
            "errors": [*HEURISTICS, "pseudo-greedy", "greedy", *MIXED_ONLY],
            "times": [*HEURISTICS, "pseudo-greedy", "greedy"],
        }.get(experiment, ["greedy", "optimal"])
        self.guides = {}
        for method in ("trw", "mf", "bethe"):
            begin = size * self.first_error(family, method)
            slowness = 1 + self.noise * abs(rng.standard_normal())
            begun = slowness * self.step_seconds(family, method, "none", 0)
            self._row(
                experiment,
                family,
                run,
                method,
                "none",
                0,
                begin,
                begun,
            )
            for selector in selectors:
                if selector in MIXED_ONLY and not (family.mixed and method == "bethe"):
                    continue
                # greedy and optimal are what they are whatever the luck of a run
                luck = 1.0 if selector in LENGTHS else 1 + self.noise * rng.standard_normal()
                error = begin
                for k in range(1, LENGTHS.get(selector, MAX_CLAMPS) + 1):
                    error *= 1 - luck * self.rate(family, method, selector, k)
                    seconds = slowness * self.step_seconds(family, method, selector, k)
                    if selector.endswith("+TRE") and method != "trw":  # whose entropies these are
                        seconds += self.guides[selector][k - 1]
                    if selector.endswith("greedy") and method == "bethe" and family.mixed:
                        seconds += self.guides[selector][k]
                    if method == "trw":
                        self.guides.setdefault(selector, [begun])[k:] = [seconds]
                    agree = ",".join(
                        h for h in HEURISTICS if selector == "pseudo-greedy" and rng.random() < self.agreement(h, k)
                    )
                    self._row(experiment, family, run, method, selector, k, error, seconds, agree)

    def _row(
        self,
        experiment: str,
        family: Family,
        run: int,
        method: str,
        selector: str,
        clamps: int,
        error: float,
        seconds: float,
        agree: str = "",
    ) -> None:
        timed = seconds if experiment == "times" else None
        self.rows.append(
            (
                self.settings,
                experiment,
                family.name,
                run,
                method,
                selector,
                clamps,
                error,
                True,
                timed,
                agree,
            )
        )


def synthetic_rows(families, runs=3, experiments=("errors", "times", "optimal"), settings=("paper",), seed=0):
    """Runs that look like real ones: errors that fall with clamps, fastest for greedy, of the sign that each method
    has."""
    rng = np.random.default_rng(seed)
    for setting, experiment, family, run in itertools.product(settings, experiments, families, range(runs)):
        if experiment == "optimal" and (family.size > 25 or setting != "paper"):
            continue
        common = (setting, experiment, family.name, run)
        for method, scale in (("mf", -3.0), ("bethe", 1.0 if family.mixed else -0.5), ("trw", 8.0)):
            begin = scale * family.weights[1] / 6 * rng.uniform(0.5, 1.5) * (0.6 if setting != "paper" else 1.0)
            taken = rng.uniform(0.01, 0.03)

            def row(
                selector,
                clamps,
                error,
                seconds,
                agree="",
                *,
                method=method,
                common=common,
            ):
                variable = None if clamps == 0 else clamps
                seconds = seconds if common[1] == "times" else None
                return (
                    *common,
                    method,
                    selector,
                    clamps,
                    variable,
                    error,
                    True,
                    seconds,
                    agree,
                )

            yield row("none", 0, begin, taken)
            names = {"errors": (*HEURISTICS, "pseudo-greedy", "greedy"), "optimal": ("greedy", "optimal")}.get(
                experiment, (*HEURISTICS, "pseudo-greedy", "greedy")
            )
            for selector in ("maxW+TRE", "pseudo-greedy") if setting != "paper" else names:
                gain = {"greedy": 0.35, "optimal": 0.36, "pseudo-greedy": 0.33, "maxW+TRE": 0.3}.get(
                    selector, 0.2
                ) * rng.uniform(0.9, 1.1)
                cost = {"greedy": 20.0, "pseudo-greedy": 6.0}.get(selector, 1.0)
                for clamps in range(1, 4 if selector in ("greedy", "optimal") else 6):
                    agree = (
                        ",".join(h for h in HEURISTICS if rng.random() < 0.4)
                        if selector == "pseudo-greedy" and setting == "paper"
                        else ""
                    )
                    yield row(selector, clamps, begin * np.exp(-gain * clamps), taken * cost * 2**clamps, agree)


def synthetic_table(*args, **kwargs):
    return Table.from_rows(list(COLUMNS), synthetic_rows(*args, **kwargs))
