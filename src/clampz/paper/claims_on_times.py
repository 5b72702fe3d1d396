"""Claims about run times.  They depend on the machine and on the implementation, as the paper says of its own."""

import math
from collections.abc import Collection

import numpy as np

from clampz.model.tables import Floats
from clampz.paper.families import Family
from clampz.paper.measures import METHODS, TITLES, Mean, Measures, stratified
from clampz.paper.settings import HEURISTICS, MAX_CLAMPS
from clampz.paper.verdicts import Claim, Verdict, explained, no_data, together

SELECTOR = "maxW+TRE"
# What competes for accuracy per second.
RIVALS = (*HEURISTICS, "pseudo-greedy", "greedy")
OURS = "Times are of our implementation, in which all branches are solved at once, on one thread."


def log_seconds(m: Measures, family: Family, method: str, selector: str, clamps: int) -> Floats:
    """(runs,) the logarithm of the seconds that so many clamps take: choosing them, and solving all branches."""
    taken = m.seconds(family, method, selector)[:, clamps]
    return np.log(np.where(taken > 0, taken, math.nan))


def mf_is_fastest(m: Measures) -> Verdict:
    families = m.families("times")
    found = {
        o: stratified([log_seconds(m, f, o, "none", 0) - log_seconds(m, f, "mf", "none", 0) for f in families])
        for o in ("bethe", "trw")
    }
    if not any(mean.num_runs for mean in found.values()):
        return no_data("times")
    text = ", ".join(f"{TITLES[other]} takes {times(mean)} as long" for other, mean in found.items())
    holds = together(mean.above() for mean in found.values())
    return Verdict(
        f"without clamps, against MF: {text}",
        holds,
        explained(holds, found["trw"].num_runs, f"MF is not the fastest here. {OURS}"),
    )


def times(mean: Mean) -> str:
    """A mean of logarithms as a factor, with its range of one standard error."""
    if not math.isfinite(mean.error):
        return f"{math.exp(mean.value):.2g} times"
    return f"{math.exp(mean.value):.2g} times ({math.exp(mean.value - mean.error):.2g} to {math.exp(mean.value + mean.error):.2g})"


def over_time(m: Measures, family: Family, method: str, selector: str, grid: Floats, scale: float) -> Floats:
    """(runs,) the error that is left at a moment, on average over the logarithm of time."""
    return np.asarray(m.over_time(family, method, selector, grid).mean(axis=1) / scale)


def best_per_second(m: Measures) -> Verdict:
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
    holds = together(mean.above() for mean in rivals.values())
    shown = [name for name in order if name in (*order[:3], SELECTOR, "pseudo-greedy", "greedy")]
    text = "error left at a moment, on average over the logarithm of time: " + ", ".join(
        f"{name} {found[name].percent()}" for name in shown
    )
    firsts = {
        method: min(groups, key=lambda name: stratified(groups[name]).value)
        for method, groups in by_method.items()
        if groups[SELECTOR]
    }
    text += f"; first by method: {', '.join(f'{TITLES[method]} {name}' for method, name in firsts.items())}"
    ahead = [name for name, mean in rivals.items() if mean.below()]
    level = [name for name, mean in rivals.items() if mean.below() is None]
    if ahead:
        return Verdict(
            text,
            holds,
            f"Ahead of it: {', '.join(ahead)}. Entropies take a solve of TRW at every step, which MF and Bethe do not need otherwise. {OURS}",
        )
    return Verdict(
        text, holds, f"Cannot be told from {', '.join(level)} with {found[SELECTOR].num_runs} runs." if level else ""
    )


def mf_best_on_complete(m: Measures) -> Verdict:
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
    firsts = [min(values, key=lambda method: values[method]) for values in by_family.values()]
    text = ", ".join(f"{TITLES[other]} {mean.percent(True)}" for other, mean in found.items())
    won = [title for title, first in zip(by_family, firsts, strict=True) if first == "mf"]
    holds = together(mean.above() for mean in found.values())
    text = f"error at the same moment against MF’s, as a share of the methods’ mean error before clamping: {text}; MF is ahead on {', '.join(won) or 'none'}"
    why = f"Ahead elsewhere: {', '.join(f'{TITLES[first]} on {title}' for title, first in zip(by_family, firsts, strict=True) if first != 'mf')}. {OURS}"
    return Verdict(text, holds, explained(holds, found["trw"].num_runs, why))


def clamping_saves_time(m: Measures) -> Verdict:
    def against_none(family: Family, method: str, clamps: int) -> Mean:
        """The logarithm of what choosing by maxW and solving all branches takes, over what the model itself does."""
        return stratified([log_seconds(m, family, method, "maxW", clamps) - log_seconds(m, family, method, "none", 0)])

    families = m.families("times")
    target = next((f for f in families if f.name == "complete10[-6,6]"), None)
    if target is None:
        return no_data("times of complete10[-6,6]")
    found = [against_none(target, "trw", k) for k in range(1, MAX_CLAMPS + 1)]
    shown = ", ".join(f"{k}: {times(mean)}" for k, mean in enumerate(found, 1) if mean.num_runs)
    best = min(
        (mean for mean in found if mean.num_runs), key=lambda mean: mean.value, default=Mean(math.nan, math.inf, 0)
    )
    elsewhere = [
        f"{TITLES[method]} on {f.title}"
        for f in families
        for method in METHODS
        if any(against_none(f, method, k).below() for k in range(1, MAX_CLAMPS + 1))
    ]
    text = f"TRW on K10, [-6,6], all branches of k clamps by maxW against no clamp, k = {shown}"
    text += f"; some k takes less in {len(elsewhere)} of {3 * len(families)} pairs of method and family"
    holds = best.below()
    note = explained(holds, best.num_runs, f"The branches take longer than the model itself. {OURS}")
    if elsewhere and holds is not True:
        note += f" Less time with clamps: {', '.join(elsewhere[:4])}{' and others' if len(elsewhere) > 4 else ''}."
    return Verdict(text, holds, note)


def greedy_is_slow(m: Measures) -> Verdict:
    families = m.families("times")
    found = stratified([_mean_lead(m, f, METHODS) for f in families])
    if not found.num_runs:
        return no_data("times of greedy")
    holds = found.above()
    return Verdict(
        f"for 3 clamps greedy takes {times(found)} as long as pseudo-greedy",
        holds,
        explained(holds, found.num_runs, OURS),
    )


def _mean_lead(m: Measures, family: Family, methods: Collection[str]) -> Floats:
    return np.asarray(
        np.mean(
            [log_seconds(m, family, x, "greedy", 3) - log_seconds(m, family, x, "pseudo-greedy", 3) for x in methods],
            axis=0,
        )
    )


CLAIMS = (
    Claim("mf-fastest", "MF is the fastest method.", "Section 6.1", mf_is_fastest, ("complete-main", "times-mixed-6")),
    Claim(
        "mf-best-on-complete",
        "On complete graphs MF is the best for its time.",
        "Figure 5, appendix",
        mf_best_on_complete,
        ("times-mixed-6", "times-mixed-12", "times-attractive-2", "times-attractive-6"),
    ),
    Claim(
        "best-per-second",
        "maxW+TRE gives the best accuracy for its time.",
        "Sections 6.1 and 7",
        best_per_second,
        ("complete-main", "times-mixed-6", "times-mixed-12", "times-attractive-2", "times-attractive-6"),
    ),
    Claim(
        "clamping-saves-time",
        "Clamping sometimes lowers the total time: TRW on K10 with W in [-6,6].",
        "Section 6.1, Figure 14",
        clamping_saves_time,
        ("times-mixed-6",),
    ),
    Claim(
        "greedy-slow", "Greedy takes the longest.", "Section 6.1", greedy_is_slow, ("complete-main", "times-mixed-6")
    ),
)
