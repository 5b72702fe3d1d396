"""Claims about run times.  They depend on the machine and on the implementation, as the paper says of its own."""

import math
from dataclasses import replace

import numpy as np

from clampz.paper.families import Family
from clampz.paper.measures import Mean, Measures, stratified
from clampz.paper.settings import HEURISTICS, MAX_CLAMPS, METHODS, TITLES
from clampz.paper.table import Floats
from clampz.paper.verdicts import Verdict, best_of, claim, claims_in, judged, listed, no_data, together

SELECTOR = "maxW+TRE"
# What competes for accuracy per second.
RIVALS = (*HEURISTICS, "pseudo-greedy", "greedy")
TIMES = ("times-mixed-6", "times-mixed-12", "times-attractive-2", "times-attractive-6")
OURS = "Times are of our implementation, in which all branches are solved at once, on one thread."


def log_seconds(m: Measures, family: Family, method: str, selector: str, clamps: int) -> Floats:
    """(runs,) the logarithm of the seconds that so many clamps take: choosing them, and solving all branches."""
    taken = m.seconds(family, method, selector)[:, clamps]
    return np.log(np.where(taken > 0, taken, math.nan))


@claim("Section 6.1", "complete-main", "times-mixed-6")
def mf_fastest(m: Measures) -> Verdict:
    """MF is the fastest method."""
    families = m.families("times")
    found = {
        o: stratified([log_seconds(m, f, o, "none", 0) - log_seconds(m, f, "mf", "none", 0) for f in families])
        for o in ("bethe", "trw")
    }
    if not any(mean.num_runs for mean in found.values()):
        return no_data("times")
    taken = ", ".join(f"{TITLES[other]} takes {times(mean)} as long" for other, mean in found.items())
    holds, text = together(mean.above() for mean in found.values()), f"without clamps, against MF: {taken}"
    return judged(text, holds, found["trw"].num_runs, f"MF is not the fastest here. {OURS}")


def times(mean: Mean) -> str:
    """A mean of logarithms as a factor, with its range of one standard error."""
    middle = f"{math.exp(mean.value):.2g} times"
    if not math.isfinite(mean.error):
        return middle
    return f"{middle} ({math.exp(mean.value - mean.error):.2g} to {math.exp(mean.value + mean.error):.2g})"


def over_time(m: Measures, family: Family, method: str, selector: str, grid: Floats, scale: float) -> Floats:
    """(runs,) the error that is left at a moment, on average over the logarithm of time."""
    return np.asarray(m.over_time(family, method, selector, grid).mean(axis=1) / scale)


@claim("Sections 6.1 and 7", "complete-main", *TIMES)
def best_per_second(m: Measures) -> Verdict:
    """maxW+TRE gives the best accuracy for its time."""
    left: dict[str, list[Floats]] = {name: [] for name in RIVALS}
    by_method: dict[str, dict[str, list[Floats]]] = {method: {name: [] for name in RIVALS} for method in METHODS}
    for family in m.families("times"):
        methods = []
        for method in METHODS:
            grid, scale = m.times(family, [method], RIVALS), m.scale(family, method, "times")
            if len(grid) and math.isfinite(scale):
                methods.append(method)
                for name in RIVALS:
                    by_method[method][name].append(over_time(m, family, method, name, grid, scale))
        if methods:
            for name in RIVALS:
                left[name].append(np.mean([by_method[method][name][-1] for method in methods], axis=0))
    found = {name: stratified(groups) for name, groups in left.items()}
    order = sorted((name for name in RIVALS if found[name].num_runs), key=lambda name: found[name].value)
    if SELECTOR not in order or len(order) < 2:
        return no_data("times of the heuristics")
    rivals = {
        name: stratified([a - b for a, b in zip(left[name], left[SELECTOR], strict=True)])
        for name in order
        if name != SELECTOR
    }
    shown = {name: found[name] for name in order if name in (*order[:3], SELECTOR, "pseudo-greedy", "greedy")}
    text = f"error left at a moment, on average over the logarithm of time: {listed(shown)}"
    firsts = {
        method: min(groups, key=lambda name: stratified(groups[name]).value)
        for method, groups in by_method.items()
        if groups[SELECTOR]
    }
    text += f"; first by method: {', '.join(f'{TITLES[method]} {name}' for method, name in firsts.items())}"
    why = f"Entropies take a solve of TRW at every step, which MF and Bethe do not need otherwise. {OURS}"
    return best_of(text, rivals, found[SELECTOR].num_runs, why)


@claim("Figure 5, appendix", *TIMES)
def mf_best_on_complete(m: Measures) -> Verdict:
    """On complete graphs MF is the best for its time."""
    families = m.families("times", graphs=["complete"])
    left: dict[str, list[Floats]] = {method: [] for method in METHODS}
    by_family: dict[str, dict[str, float]] = {}
    for family in families:
        grid = m.times(family, METHODS, [SELECTOR])
        scale = float(np.mean([m.scale(family, method, "times") for method in METHODS]))
        if not len(grid) or not math.isfinite(scale):
            continue
        for method in METHODS:
            left[method].append(over_time(m, family, method, SELECTOR, grid, scale))
        by_family[family.title] = {method: float(left[method][-1].mean()) for method in METHODS}
    found = {o: stratified([a - b for a, b in zip(left[o], left["mf"], strict=True)]) for o in ("bethe", "trw")}
    if not any(mean.num_runs for mean in found.values()):
        return no_data("times on complete graphs")
    firsts = {title: min(values, key=lambda method: values[method]) for title, values in by_family.items()}
    won = [title for title, first in firsts.items() if first == "mf"]
    lost = [f"{TITLES[first]} on {title}" for title, first in firsts.items() if first != "mf"]
    holds = together(mean.above() for mean in found.values())
    text = "error at the same moment against MF’s, as a share of the methods’ mean error before clamping: "
    text += f"{listed(found, sign=True)}; MF is ahead on {', '.join(won) or 'none'}"
    return judged(text, holds, found["trw"].num_runs, f"Ahead elsewhere: {', '.join(lost)}. {OURS}")


@claim("Section 6.1, Figure 14", "times-mixed-6")
def clamping_saves_time(m: Measures) -> Verdict:
    """Clamping sometimes lowers the total time: TRW on K10 with W in [-6,6]."""

    def against_none(family: Family, method: str, clamps: int) -> Mean:
        """The logarithm of what choosing by maxW and solving all branches takes, over what the model itself does."""
        return stratified([log_seconds(m, family, method, "maxW", clamps) - log_seconds(m, family, method, "none", 0)])

    families = m.families("times")
    target = next((f for f in families if f.name == "complete10[-6,6]"), None)
    if target is None:
        return no_data("times of complete10[-6,6]")
    found = [against_none(target, "trw", k) for k in range(1, MAX_CLAMPS + 1)]
    shown = ", ".join(f"{k}: {times(mean)}" for k, mean in enumerate(found, 1) if mean.num_runs)
    best = min((mean for mean in found if mean.num_runs), key=lambda mean: mean.value, default=found[0])
    elsewhere = [
        f"{TITLES[method]} on {f.title}"
        for f in families
        for method in METHODS
        if any(against_none(f, method, k).below() for k in range(1, MAX_CLAMPS + 1))
    ]
    text = f"TRW on K10, [-6,6], all branches of k clamps by maxW against no clamp, k = {shown}"
    text += f"; some k takes less in {len(elsewhere)} of {3 * len(families)} pairs of method and family"
    found_so = judged(text, best.below(), best.num_runs, f"The branches take longer than the model itself. {OURS}")
    if not elsewhere or found_so.holds:
        return found_so
    some = f"{', '.join(elsewhere[:4])}{' and others' if len(elsewhere) > 4 else ''}"
    return replace(found_so, note=f"{found_so.note} Less time with clamps: {some}.")


@claim("Section 6.1", "complete-main", "times-mixed-6")
def greedy_slow(m: Measures) -> Verdict:
    """Greedy takes the longest."""

    def lead(family: Family, method: str) -> Floats:
        return log_seconds(m, family, method, "greedy", 3) - log_seconds(m, family, method, "pseudo-greedy", 3)

    found = stratified([np.mean([lead(f, method) for method in METHODS], axis=0) for f in m.families("times")])
    if not found.num_runs:
        return no_data("times of greedy")
    text = f"for 3 clamps greedy takes {times(found)} as long as pseudo-greedy"
    return judged(text, found.above(), found.num_runs, OURS)


CLAIMS = claims_in(vars())
