"""Claims about which variables to clamp: the heuristics, pseudo-greedy, greedy and optimal sequences."""

import math
from collections.abc import Collection

import numpy as np

from clampz.model.tables import Floats
from clampz.paper.families import Family
from clampz.paper.measures import METHODS, TITLES, Mean, Measures, ratio, stratified
from clampz.paper.settings import HEURISTICS, MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL
from clampz.paper.verdicts import Claim, Verdict, explained, no_data, together

# "Almost as good": at most this share of the gain is lost.  "As good": at most this share of the error before clamping
# is added.
ALMOST, AS_GOOD = 0.05, 0.01
ABOUT_HALF = (0.4, 0.6)
# A heuristic that is among the best in this share of all runs would dominate.
DOMINATES = 0.9
# Values closer than this, in nats, are ties.
TIE = 1e-6


def losses(
    m: Measures,
    method: str,
    worse: str,
    better: str,
    clamps: int,
    part: str = "errors",
    families: Collection[Family] | None = None,
) -> Mean:
    """What share of the better selector's gain the worse one loses."""
    lost, gained = [], []
    for family in m.families(part) if families is None else families:
        reference, other = m.share(family, method, better, part), m.share(family, method, worse, part)
        lost.append(other[:, clamps] - reference[:, clamps])
        gained.append(reference[:, 0] - reference[:, clamps])
    return ratio(lost, gained) if lost else Mean(math.nan, math.inf, 0)


def pseudo_greedy_is_enough(m: Measures) -> Verdict:
    found = {method: losses(m, method, "pseudo-greedy", "greedy", MAX_GREEDY) for method in METHODS}
    if not any(mean.num_runs for mean in found.values()):
        return no_data("runs of greedy")
    text = ", ".join(f"{TITLES[method]} {mean.percent()}" for method, mean in found.items())
    almost, more = [found[method].below(ALMOST) for method in ("bethe", "trw")], found["mf"].above(ALMOST)
    holds = together([*almost, more])
    why = [
        f"For {TITLES[method]} pseudo-greedy loses more than {ALMOST:.0%} of the gain."
        for method in ("bethe", "trw")
        if found[method].above(ALMOST)
    ]
    if found["mf"].below(ALMOST):
        why.append("For MF it is almost as good, too.")
    return Verdict(
        f"of greedy's gain after {MAX_GREEDY} clamps pseudo-greedy loses: {text}",
        holds,
        explained(holds, found["trw"].num_runs, " ".join(why)),
    )


def average_share(m: Measures, family: Family, selector: str, methods: Collection[str] = METHODS) -> Floats:
    """(runs,) the share of error left, on average over the methods and over 1 to 5 clamps."""
    shares = [
        m.share(family, method, selector)[:, 1:].mean(axis=1)
        for method in methods
        if math.isfinite(m.scale(family, method))
    ]
    return np.mean(shares, axis=0) if shares else np.full(len(m.signed(family, "trw", selector)), math.nan)


def compared(
    m: Measures, first: str, second: str, methods: Collection[str] = METHODS, families: Collection[Family] | None = None
) -> Mean:
    """By how much more error the first selector leaves than the second, as a share of that before clamping."""
    chosen = m.families() if families is None else families
    return stratified([average_share(m, f, first, methods) - average_share(m, f, second, methods) for f in chosen])


def ranking(found: dict[str, Mean]) -> list[str]:
    """Names, the lowest mean first."""
    return sorted((name for name, mean in found.items() if mean.num_runs), key=lambda name: found[name].value)


def best_single(m: Measures) -> Verdict:
    left = {name: stratified([average_share(m, family, name) for family in m.families()]) for name in HEURISTICS}
    order = ranking(left)
    if "maxW+TRE" not in order or len(order) < 2:
        return no_data("runs of the ten heuristics")
    rivals = {name: compared(m, name, "maxW+TRE") for name in order if name != "maxW+TRE"}
    holds = together(mean.above() for mean in rivals.values())
    text = "error left, on average over methods and 1 to 5 clamps: " + ", ".join(
        f"{name} {left[name].percent()}" for name in [*order[:4], order[-1]]
    )
    ahead = [f"{name} ({-100 * mean.value:.2f} points)" for name, mean in rivals.items() if mean.below()]
    level = [name for name, mean in rivals.items() if mean.below() is None]
    note = (
        f"Ahead of it: {', '.join(ahead)}."
        if ahead
        else f"Cannot be told from {', '.join(level)} with {left['maxW+TRE'].num_runs} runs."
        if level
        else ""
    )
    by_method = ", ".join(
        f"{TITLES[method]} {ranking({name: stratified([average_share(m, f, name, [method]) for f in m.families()]) for name in HEURISTICS})[0]}"
        for method in METHODS
    )
    return Verdict(f"{text}; first by method: {by_method}", holds, note)


def agreements(
    m: Measures, methods: Collection[str] = METHODS, mixed: bool | None = None, steps: slice = slice(None)
) -> dict[str, Mean]:
    """How often each heuristic chooses what pseudo-greedy does, at its own state."""
    families = m.families(mixed=mixed)
    return {
        name: stratified([_agreement(m, family, name, methods, steps) for family in families]) for name in HEURISTICS
    }


def _agreement(m: Measures, family: Family, name: str, methods: Collection[str], steps: slice) -> Floats:
    return np.asarray(np.mean([m.agreement(family, method, name)[:, steps].mean(axis=1) for method in methods], axis=0))


def agrees_half_the_time(m: Measures) -> Verdict:
    found = agreements(m)
    order = ranking(found)[::-1]
    if not order or sum(mean.value for mean in found.values() if mean.num_runs) == 0:
        return no_data("choices of the heuristics at pseudo-greedy's states")
    ours = found["maxW+TRE"]
    panels = [agreements(m, [method], mixed)["maxW+TRE"] for mixed in (True, False) for method in METHODS]
    values = [100 * mean.value for mean in panels if mean.num_runs]
    second = next(name for name in order if name != "maxW+TRE")
    lead = stratified(
        [
            _agreement(m, f, "maxW+TRE", METHODS, slice(None)) - _agreement(m, f, second, METHODS, slice(None))
            for f in m.families()
        ]
    )
    holds = together([ABOUT_HALF[0] <= ours.value <= ABOUT_HALF[1], lead.above()])
    text = f"maxW+TRE agrees in {ours.percent()} of all steps (from {min(values):.0f}% to {max(values):.0f}% by method and kind of model)"
    text += f"; next best: {second} {found[second].percent()}"
    why = (
        f"{second} agrees more often."
        if lead.above() is False
        else f"That is not “about half” ({ABOUT_HALF[0]:.0%} to {ABOUT_HALF[1]:.0%})."
    )
    return Verdict(text, holds, explained(holds, ours.num_runs, why))


def entropies_help_later(m: Measures) -> Verdict:
    families = m.families()
    if not any(np.isfinite(m.agreement(f, "trw", "maxW")).any() for f in families):
        return no_data("choices of the heuristics at pseudo-greedy's states")

    def lead(family: Family, steps: slice) -> Floats:
        return _agreement(m, family, "maxW+TRE", METHODS, steps) - _agreement(m, family, "maxW", METHODS, steps)

    first, later = (stratified([lead(f, s) for f in families]) for s in (slice(0, 1), slice(1, None)))
    growth = stratified([lead(f, slice(1, None)) - lead(f, slice(0, 1)) for f in families])
    gained = [
        stratified(
            [
                np.mean(
                    [m.share(f, method, "maxW")[:, k] - m.share(f, method, "maxW+TRE")[:, k] for method in METHODS],
                    axis=0,
                )
                for f in families
            ]
        )
        for k in (1, MAX_CLAMPS)
    ]
    holds = together([growth.above(), later.above()])
    text = (
        f"maxW+TRE agrees with pseudo-greedy more often than maxW does by {first.percent(True)} at the first clamp and {later.percent(True)} at later ones;"
        f" it leaves less error by {gained[0].percent(True)} of that before clamping after 1 clamp, {gained[1].percent(True)} after {MAX_CLAMPS}"
    )
    return Verdict(
        text, holds, explained(holds, growth.num_runs, "Entropies help no more at later clamps than at the first.")
    )


def trw_guides_best(m: Measures) -> Verdict:
    families = m.families(mixed=True)
    found = {
        other: compared(m, other, "pseudo-greedy", ["bethe"], families)
        for other in ("pseudo-greedy (mf)", "pseudo-greedy (gap)")
    }
    if not any(mean.num_runs for mean in found.values()):
        return no_data("runs of pseudo-greedy guided by MF and by the gap")
    names = {"pseudo-greedy (mf)": "MF’s rise", "pseudo-greedy (gap)": "the gap"}
    left = stratified([average_share(m, f, "pseudo-greedy", ["bethe"]) for f in families])
    text = ", ".join(f"{names[other]} {mean.percent(True)}" for other, mean in found.items())
    holds = together(mean.above() for mean in found.values())
    against = [names[other] for other, mean in found.items() if mean.below()]
    note = explained(holds, left.num_runs, f"{' and '.join(against).capitalize()} guides better.")
    return Verdict(
        f"error left, on average over 1 to 5 clamps: TRW’s fall {left.percent()}; more than that: {text}", holds, note
    )


def core_is_enough(m: Measures) -> Verdict:
    families = m.families()
    random = [f for f in families if f.graph == "er"]
    behind = compared(m, "maxW", "Mpower", families=families)
    if not behind.num_runs:
        return no_data("runs of maxW and Mpower")
    by_core = compared(m, "maxW0", "maxW", families=random)
    against_mpower = [compared(m, name, "Mpower", families=random) for name in ("maxW0", "maxW")]
    text = f"error left by maxW more than by Mpower: {behind.percent(True)} of that before clamping"
    if by_core.num_runs:
        text += f"; on random graphs {against_mpower[1].percent(True)}, and {against_mpower[0].percent(True)} without the core"
    holds = behind.below(AS_GOOD)
    return Verdict(
        text,
        holds,
        explained(holds, behind.num_runs, f"Mpower is better by more than {AS_GOOD:.0%} of the error before clamping."),
    )


def none_dominates(m: Measures) -> Verdict:
    best: dict[str, list[Floats]] = {name: [] for name in HEURISTICS}
    for family in m.families():
        wins = []
        for method in METHODS:
            errors = np.stack([m.error(family, method, name)[:, MAX_CLAMPS] for name in HEURISTICS])
            wins.append(np.where(np.isfinite(errors).all(axis=0), errors <= errors.min(axis=0) + TIE, math.nan))
        for name, won in zip(HEURISTICS, np.mean(wins, axis=0), strict=True):
            best[name].append(won)
    found = {name: stratified(groups) for name, groups in best.items()}
    order = ranking(found)[::-1]
    if not order:
        return no_data(f"runs of the ten heuristics with {MAX_CLAMPS} clamps")
    holds = found[order[0]].below(DOMINATES)
    text = f"most often among the best after {MAX_CLAMPS} clamps: " + ", ".join(
        f"{name} {found[name].percent()}" for name in order[:3]
    )
    text += f"; least often: {order[-1]} {found[order[-1]].percent()}"
    return Verdict(
        text, holds, explained(holds, found[order[0]].num_runs, f"{order[0]} is among the best in nearly all runs.")
    )


def greedy_is_nearly_optimal(m: Measures) -> Verdict:
    found = {}
    for method in METHODS:
        # Bethe on mixed models is guided by TRW: no sequence is optimal for it
        families = [f for f in m.families("optimal") if method != "bethe" or not f.mixed]
        found[method] = [
            losses(m, method, "greedy", "optimal", k, "optimal", families) for k in range(2, MAX_OPTIMAL + 1)
        ]
    if not any(mean.num_runs for means in found.values() for mean in means):
        return no_data("optimal sequences")
    present = {method: means for method, means in found.items() if means[-1].num_runs}
    text = "; ".join(
        f"{TITLES[method]} {', '.join(f'{mean.percent()} (k = {k})' for k, mean in enumerate(means, 2))}"
        for method, means in present.items()
    )
    nearly = [means[-1].below(ALMOST) for means in present.values()]
    # not optimal: something is lost in some method
    lost = any(mean.above() for means in present.values() for mean in means)
    holds = together([*nearly, True if lost else None])
    far = [TITLES[method] for method, means in present.items() if means[-1].above(ALMOST)]
    why = f"For {' and '.join(far)} greedy loses more than {ALMOST:.0%} of what optimal sequences gain."
    return Verdict(
        f"of optimal sequences’ gain greedy loses: {text}",
        holds,
        explained(holds, max(means[-1].num_runs for means in present.values()), why),
    )


CLAIMS = (
    Claim(
        "pseudo-greedy",
        "Pseudo-greedy is almost as good as greedy, except for MF.",
        "Section 6.1",
        pseudo_greedy_is_enough,
        ("errors-main",),
    ),
    Claim(
        "best-single", "maxW+TRE is the best single heuristic.", "Section 6.1", best_single, ("errors-main", "success")
    ),
    Claim(
        "half-the-time",
        "maxW+TRE agrees with pseudo-greedy most often, about half the time.",
        "Section 6.1, Figure 19",
        agrees_half_the_time,
        ("success",),
    ),
    Claim(
        "none-dominates",
        "No heuristic dominates.",
        "Section 6.1",
        none_dominates,
        ("success", "zoom-mixed-6", "zoom-mixed-12"),
    ),
    Claim(
        "tre-after-first",
        "Entropies (TRE) help most after the first clamp.",
        "Section 6.1, Figure 19",
        entropies_help_later,
        ("success",),
    ),
    Claim("core", "Stripping to the core makes maxW as good as Mpower.", "Section 5.1", core_is_enough),
    Claim(
        "trw-guides",
        "For Bethe on mixed models TRW’s fall guides better than MF’s rise or the gap.",
        "Sections 6 and 8.2.4 (appendix)",
        trw_guides_best,
        ("zoom-mixed-6", "zoom-mixed-12"),
    ),
    Claim(
        "greedy-optimal",
        "Greedy sequences are not optimal, but nearly so.",
        "Appendix, section 10",
        greedy_is_nearly_optimal,
        ("optimal",),
    ),
)
