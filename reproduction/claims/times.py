"""Claims about run times.  They depend on the machine and on the implementation, as the paper says of its own."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from reproduction.claims.measures import Mean, Measures, stratified
from reproduction.claims.verdicts import Verdict, claim, claims_in, in_parts, judged, listed, no_data, together
from reproduction.families import Family
from reproduction.settings import MAX_CLAMPS, MAX_GREEDY, METHODS, SELECTOR, TIMED, TITLES
from reproduction.table import Floats

# The two readings of what clamps take: the last step's branches alone, or those of all steps before it too.
READINGS = {"the last step alone": False, "all steps": True}
TIMES = ("times-mixed-6", "times-mixed-12", "times-attractive-2", "times-attractive-6")
OURS = "Times are of our implementation, in which all branches are solved at once, on one thread."


def log_seconds(m: Measures, family: Family, method: str, selector: str, clamps: int) -> Floats:
    """Return (runs,) the logarithm of the seconds that clamps take: choosing them, and solving all branches."""
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
    """Write a mean of logarithms as a factor, with its range of one standard error."""
    middle = f"{math.exp(mean.value):.2g} times"
    if not math.isfinite(mean.error):
        return middle
    return f"{middle} ({math.exp(mean.value - mean.error):.2g} to {math.exp(mean.value + mean.error):.2g})"


def left_over_time(
    m: Measures, families: Sequence[Family], methods: Sequence[str], selectors: Sequence[str], all_steps: bool
) -> dict[tuple[str, str], list[Floats]]:
    """Return, by method and selector, for each family (runs,) the error left at a moment: on average over the logarithm
    of time, as a share of the methods' mean error before clamping."""
    found: dict[tuple[str, str], list[Floats]] = {(o, name): [] for o in methods for name in selectors}
    for family in families:
        grid = m.times(family, methods, selectors, all_steps)
        scale = float(np.mean([m.scale(family, method, "times") for method in methods]))
        if len(grid) and math.isfinite(scale):
            for method, name in found:
                left = m.over_time(family, method, name, grid, all_steps)
                found[method, name].append(left.mean(axis=1) / scale)
    return found


@claim("Sections 6.1 and 7", "complete-main", *TIMES)
def best_per_second(m: Measures) -> Verdict:
    """maxW+TRE gives the best accuracy for its time."""
    parts: dict[str, bool | None] = {}
    texts, num_runs = [], 0
    for (reading, all_steps), method in product(READINGS.items(), METHODS):
        groups = left_over_time(m, m.families("times"), [method], TIMED, all_steps)
        found = {name: stratified(left) for (_, name), left in groups.items()}
        order = [name for name in sorted(TIMED, key=lambda name: found[name].value) if found[name].num_runs]
        if SELECTOR not in order or len(order) < 2:
            return no_data("times of the heuristics")
        ours = groups[method, SELECTOR]
        parts[f"{TITLES[method]} ({reading})"] = together(
            stratified([a - b for a, b in zip(groups[method, name], ours, strict=True)]).above()
            for name in order
            if name != SELECTOR
        )
        num_runs = max(num_runs, found[SELECTOR].num_runs)
        shown = listed({name: found[name] for name in order if name in (*order[:2], SELECTOR, "greedy")})
        texts.append(f"{TITLES[method]}, {reading}: {shown}")
    text = f"error left at a moment, on average over the logarithm of time; {'; '.join(texts)}"
    why = f"Entropies take a solve of TRW at every step, which MF and Bethe do not need otherwise. {OURS}"
    return in_parts(text, parts, num_runs, why)


@claim("Figure 5, appendix", *TIMES)
def mf_best_on_complete(m: Measures) -> Verdict:
    """On complete graphs MF is the best for its time."""
    parts: dict[str, bool | None] = {}
    texts, num_runs = [], 0
    for reading, all_steps in READINGS.items():
        groups = left_over_time(m, m.families("times", graphs=["complete"]), METHODS, [SELECTOR], all_steps)
        found = {
            o: stratified([a - b for a, b in zip(groups[o, SELECTOR], groups["mf", SELECTOR], strict=True)])
            for o in ("bethe", "trw")
        }
        if not any(mean.num_runs for mean in found.values()):
            return no_data("times on complete graphs")
        parts[reading] = together(mean.above() for mean in found.values())
        num_runs = found["trw"].num_runs
        texts.append(f"{reading}: {listed(found, sign=True)}")
    text = "error at the same moment against MF’s, as a share of the methods’ mean error before clamping; "
    return in_parts(f"{text}{'; '.join(texts)}", parts, num_runs, OURS)


@claim("Section 6.1, Figure 14", "times-mixed-6")
def clamping_saves_time(m: Measures) -> Verdict:
    """Clamping sometimes lowers the total time: TRW on K10 with W in [-6,6]."""

    def against_none(family: Family, method: str, clamps: int) -> Mean:
        """Compare choosing by maxW and solving all branches with solving the model itself: the logarithm of their
        ratio."""
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

    found = {
        method: stratified(
            [
                log_seconds(m, f, method, "greedy", MAX_GREEDY) - log_seconds(m, f, method, "pseudo-greedy", MAX_GREEDY)
                for f in m.families("times")
            ]
        )
        for method in METHODS
    }
    if not any(mean.num_runs for mean in found.values()):
        return no_data("times of greedy")
    text = f"for {MAX_GREEDY} clamps greedy takes, as long as pseudo-greedy: "
    text += ", ".join(f"{TITLES[method]} {times(mean)}" for method, mean in found.items())
    why = f"Pseudo-greedy needs TRW's entropies, which take longer than all of MF's tries. {OURS}"
    return in_parts(text, {o: mean.above() for o, mean in found.items()}, found["trw"].num_runs, why)


CLAIMS = claims_in(vars())
