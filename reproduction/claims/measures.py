"""What the claims are judged by: errors and times of a table as arrays, and means with their standard errors.

Runs are random, families are not: a mean over several families is the mean of theirs, and its standard error comes from
the spread of the runs within each. Differences are taken run by run where both sides come from the same models.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product

import numpy as np

from reproduction.families import FAMILIES, Family
from reproduction.settings import MAX_CLAMPS, MAX_GREEDY, settings_named
from reproduction.table import Floats, Table, padded

# A difference counts from this many standard errors on, and a standard error from this many degrees of freedom.
BEYOND, MIN_FREEDOM = 2.0, 4
# Errors below this, in nats, are none: no share of them is taken.
NOTHING = 1e-6
# Points in time, equally far apart in its logarithm, at which methods and selectors are compared.
NUM_TIMES = 60


@dataclass(frozen=True)
class Mean:
    """Hold a mean, its standard error (inf where there are too few runs to tell) and the number of runs behind it.

    >>> print(Mean(0.1234, 0.0056, 100))
    0.123 ± 0.006
    """

    value: float
    error: float
    num_runs: int

    def above(self, limit: float = 0.0) -> bool | None:
        """Tell whether the mean is above the limit; None if noise could have put it on either side."""
        if self.num_runs == 0 or not math.isfinite(self.error) or abs(self.value - limit) <= BEYOND * self.error:
            return None
        return self.value > limit

    def below(self, limit: float = 0.0) -> bool | None:
        """Tell whether the mean is below the limit; None if noise could have put it on either side."""
        found = self.above(limit)
        return None if found is None else not found

    def text(self, scale: float = 1.0, unit: str = "", sign: bool = False) -> str:
        """Write the value and its standard error."""
        value, error = scale * self.value, scale * self.error
        if self.num_runs == 0:
            return "no data"
        if not math.isfinite(error):
            return f"{value:{'+' if sign else ''}.3g}{unit} (too few runs for a standard error)"
        # to the first digit of the error, to two if that is small, but no more than three digits of the value
        places = [-math.floor(math.log10(size)) + more for size, more in ((error / 3, 0), (abs(value), 2)) if size > 0]
        digits = max(0, min([*places, 6]) if places else 0)
        return f"{value:{'+' if sign else ''}.{digits}f}{unit} ± {error:.{digits}f}"

    def percent(self, sign: bool = False) -> str:
        return self.text(100, "%", sign)

    def __str__(self) -> str:
        return self.text()


def stratified(groups: Sequence[Floats]) -> Mean:
    """Return the mean over groups of the mean over their runs; nan and groups without runs are left out."""
    kept = [group for group in map(_finite, groups) if len(group)]
    found = combination(kept, [1 / len(kept)] * len(kept)) if kept else Mean(math.nan, math.inf, 0)
    if not math.isfinite(found.error) and len(kept) > MIN_FREEDOM:
        # one or two runs each: if there are many groups, their own spread, which is wider, stands in
        means = np.array([group.mean() for group in kept])
        return Mean(found.value, float(means.std(ddof=1)) / math.sqrt(len(kept)), found.num_runs)
    return found


def combination(groups: Sequence[Floats], weights: Sequence[float]) -> Mean:
    """Return the weighted sum of the groups' means; no number if a group has no runs."""
    kept = [_finite(group) for group in groups]
    if not kept or not all(len(group) for group in kept):
        return Mean(math.nan, math.inf, 0)
    value = sum(w * float(group.mean()) for w, group in zip(weights, kept, strict=True))
    num_runs = sum(map(len, kept))
    if num_runs - len(kept) < MIN_FREEDOM:
        return Mean(value, math.inf, num_runs)
    spreads = [float(group.var(ddof=1)) for group in kept if len(group) > 1]
    # a group of one run has no spread of its own: it gets the others'
    variances = [float(group.var(ddof=1)) / len(group) if len(group) > 1 else float(np.mean(spreads)) for group in kept]
    return Mean(
        value, math.sqrt(sum(w * w * variance for w, variance in zip(weights, variances, strict=True))), num_runs
    )


def _finite(group: Floats) -> Floats:
    return group[np.isfinite(group)]


def ratio(parts: Sequence[Floats], wholes: Sequence[Floats]) -> Mean:
    """Return the mean of the parts over that of the wholes, paired run by run, both as `stratified` has them."""
    paired = [
        (np.where(np.isfinite(b), a, math.nan), np.where(np.isfinite(a), b, math.nan))
        for a, b in zip(parts, wholes, strict=True)
    ]
    above, below = stratified([a for a, _ in paired]), stratified([b for _, b in paired])
    if above.num_runs == 0 or below.value == 0:
        return Mean(math.nan, math.inf, 0)
    found = above.value / below.value
    return Mean(found, stratified([a - found * b for a, b in paired]).error / abs(below.value), above.num_runs)


class Measures:
    """Measure errors and times of one table's runs under one settings: (runs, clamps from 0 on), nan where there is no
    row."""

    def __init__(self, table: Table, settings: str = "paper", known: Sequence[Family] = FAMILIES) -> None:
        self.table, self.settings, self.known = table, settings, known
        self.under = cache(lambda name: Measures(table, name, known))
        self.signed = cache(self._signed)
        self.converged = cache(self._converged)
        self.seconds = cache(self._seconds)
        self.agreement = cache(self._agreement)

    @property
    def tolerance(self) -> dict[str, float]:
        """Return by how many nats a sum over branches may be off its optimum without anything being amiss."""
        return {"mf": NOTHING, "bethe": NOTHING, "trw": max(NOTHING, settings_named(self.settings).trw.tol)}

    def families(
        self, experiment: str = "errors", *, mixed: bool | None = None, graphs: Collection[str] | None = None
    ) -> list[Family]:
        """Return the families of which there are runs."""
        found = [f for f in self.known if self.table.runs(f.name, settings=self.settings, experiment=experiment)]
        return [f for f in found if mixed in (None, f.mixed) and (graphs is None or f.graph in graphs)]

    def error(self, family: Family, method: str, selector: str, experiment: str = "errors") -> Floats:
        """Return |log Z of the method - log Z|."""
        return np.abs(self.signed(family, method, selector, experiment))

    def scale(self, family: Family, method: str, experiment: str = "errors") -> float:
        """Return the family's mean error before clamping; nan where there is none to speak of."""
        errors = self.error(family, method, "none", experiment)[:, 0]
        found = float(np.mean(errors[np.isfinite(errors)])) if np.isfinite(errors).any() else math.nan
        return found if found > NOTHING else math.nan

    def share(self, family: Family, method: str, selector: str, experiment: str = "errors") -> Floats:
        """Return errors as shares of the family's mean error before clamping."""
        return self.error(family, method, selector, experiment) / self.scale(family, method, experiment)

    def gain(self, family: Family, method: str, selector: str, clamps: int) -> Floats:
        """Return by how many nats the clamps have made the error smaller."""
        errors = self.error(family, method, selector)
        return np.asarray(errors[:, 0] - errors[:, clamps])

    def _agreement(self, family: Family, method: str, heuristic: str) -> Floats:
        """Return (runs, steps 1 to 5) 1 where the heuristic, asked at pseudo-greedy's own state, chooses what that
        does, else 0."""
        runs = self.table.runs(family.name, settings=self.settings)
        found = np.full((len(runs), MAX_CLAMPS + 1), math.nan)
        for run, clamps, agreeing in self._agreeing.get((family.name, method), ()):
            found[np.searchsorted(runs, run), clamps] = heuristic in agreeing
        return found[:, 1:]

    @cached_property
    def _agreeing(self) -> dict[tuple[str, str], list[tuple[int, int, frozenset[str]]]]:
        chosen = self.table.where(settings=self.settings, experiment="errors", selector="pseudo-greedy")
        names = {text: frozenset(filter(None, text.split(","))) for text in chosen.unique("agree")}
        found: dict[tuple[str, str], list[tuple[int, int, frozenset[str]]]] = {}
        columns = (chosen.column(name).tolist() for name in ("family", "method", "run", "clamps", "agree"))
        for family, method, run, clamps, text in zip(*columns, strict=True):
            if 1 <= clamps <= MAX_CLAMPS:
                found.setdefault((family, method), []).append((run, clamps, names[text]))
        return found

    def over_time(self, family: Family, method: str, selector: str, times: Floats, all_steps: bool = False) -> Floats:
        """Return (runs, times) the error that each run has by then: that of the most clamps reached, or of none."""
        reached = self._reached(family, method, selector, all_steps)
        clamps = np.where(reached[None, :] <= times[:, None], np.arange(len(reached)), 0).max(axis=1)
        return np.asarray(self.error(family, method, selector, "times")[:, clamps])

    def times(
        self, family: Family, methods: Sequence[str], selectors: Sequence[str], all_steps: bool = False
    ) -> Floats:
        """Return points in time from every method's first value to the last clamp of the last selector."""
        first = [float(self._reached(family, method, "none")[0]) for method in methods]
        pairs = [(o, name) for o, name in product(methods, selectors) if self._timed(family, o, name)]
        reached = [self._reached(family, *pair, all_steps) for pair in pairs]
        last = [float(each[np.isfinite(each)].max()) for each in reached]
        known = last and min(first) > 0 and max(first) < math.inf
        return np.geomspace(max(first), max(last), NUM_TIMES) if known else np.empty(0)

    def _reached(self, family: Family, method: str, selector: str, all_steps: bool = False) -> Floats:
        """Return (clamps from 0 on,) the mean seconds up to each; inf where there are none. Points in time begin and
        end at such means: the same numbers must have the same mean in every array, which NumPy's does not promise."""
        columns = self.seconds(family, method, selector, all_steps).T
        known = [column[np.isfinite(column)] for column in columns]
        return np.array([math.fsum(column) / len(column) if len(column) else math.inf for column in known])

    def _timed(self, family: Family, method: str, selector: str) -> bool:
        return bool(np.isfinite(self.seconds(family, method, selector)[:, : MAX_GREEDY + 1]).all())

    def _signed(self, family: Family, method: str, selector: str, experiment: str = "errors") -> Floats:
        return self._curve(family, method, selector, experiment, "error")

    def _converged(self, family: Family, method: str, selector: str) -> Floats:
        return self._curve(family, method, selector, "errors", "converged")

    def _seconds(self, family: Family, method: str, selector: str, all_steps: bool = False) -> Floats:
        """Return the seconds of choosing clamps and solving the branches of the last step, or of all of them."""
        found = self._curve(family, method, selector, "times", "seconds")
        greedy, entropies = selector.endswith("greedy"), selector.endswith("+TRE")
        judge = "trw" if entropies or (greedy and method == "bethe" and family.mixed) else method if greedy else None
        if not all_steps or judge == method or self.settings != "paper":
            return found  # the judge solves every step anyway
        guide = np.zeros_like(found)
        if judge is not None:
            steps = self._curve(family, judge, selector, "times", "seconds")
            guide[:, 1:] = steps[:, 1:] if greedy else steps[:, :-1]
        return np.asarray(guide + np.cumsum(found - guide, axis=1))

    def _curve(self, family: Family, method: str, selector: str, experiment: str, column: str) -> Floats:
        found = self.table.curve(
            family.name, method, selector, settings=self.settings, experiment=experiment, column=column
        )
        return padded([found], max(MAX_CLAMPS + 1, found.shape[1]))[0]
