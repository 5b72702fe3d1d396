"""Claims about which variables to clamp: the heuristics, pseudo-greedy, greedy and optimal sequences."""

import math
from collections.abc import Collection

import numpy as np

from reproduction.claims.measures import Mean, Measures, combination, ratio, stratified
from reproduction.claims.verdicts import Verdict, claim, claims_in, in_parts, judged, listed, no_data, together
from reproduction.families import Family
from reproduction.settings import HEURISTICS, MAX_CLAMPS, MAX_GREEDY, MAX_OPTIMAL, METHODS, TITLES
from reproduction.table import Floats

# "Almost as good": at most this share of the gain is lost.  "As good": at most this share of the error before clamping
# is added.
ALMOST, AS_GOOD = 0.05, 0.01
ABOUT_HALF = (0.4, 0.6)
# Values closer than this, in nats, are ties.  Standard errors that count where a thousand differences are looked at.
TIE, SURELY = 1e-6, 4.0
# “Effectively”: more than this share of a lead is gone.
EFFECTIVELY = 0.5


def losses(
    m: Measures,
    method: str,
    worse: str,
    better: str,
    clamps: int,
    experiment: str = "errors",
    families: Collection[Family] | None = None,
) -> Mean:
    """Return the share of the better selector's gain that the worse one loses."""
    lost, gained = [], []
    for family in m.families(experiment) if families is None else families:
        reference, other = m.share(family, method, better, experiment), m.share(family, method, worse, experiment)
        lost.append(other[:, clamps] - reference[:, clamps])
        gained.append(reference[:, 0] - reference[:, clamps])
    return ratio(lost, gained) if lost else Mean(math.nan, math.inf, 0)


@claim("Section 6.1", "errors-main")
def pseudo_greedy(m: Measures) -> Verdict:
    """Pseudo-greedy is almost as good as greedy, except for MF."""
    found = {method: losses(m, method, "pseudo-greedy", "greedy", MAX_GREEDY) for method in METHODS}
    if not any(mean.num_runs for mean in found.values()):
        return no_data("runs of greedy")
    holds = together([found["bethe"].below(ALMOST), found["trw"].below(ALMOST), found["mf"].above(ALMOST)])
    why = [
        f"For {TITLES[method]} pseudo-greedy loses more than {ALMOST:.0%} of the gain."
        for method in ("bethe", "trw")
        if found[method].above(ALMOST)
    ]
    if found["mf"].below(ALMOST):
        why.append("For MF it is almost as good, too.")
    text = f"of greedy's gain after {MAX_GREEDY} clamps pseudo-greedy loses: {listed(found)}"
    return judged(text, holds, found["trw"].num_runs, " ".join(why))


def average_share(m: Measures, family: Family, selector: str, methods: Collection[str] = METHODS) -> Floats:
    """Return (runs,) the share of error left, on average over the methods and over 1 to 5 clamps."""
    shares = [
        m.share(family, method, selector)[:, 1:].mean(axis=1)
        for method in methods
        if math.isfinite(m.scale(family, method))
    ]
    return np.mean(shares, axis=0) if shares else np.full(len(m.signed(family, "trw", selector)), math.nan)


def compared(
    m: Measures, first: str, second: str, methods: Collection[str] = METHODS, families: Collection[Family] | None = None
) -> Mean:
    """Return by how much more error the first selector leaves than the second, as a share of that before clamping."""
    chosen = m.families() if families is None else families
    return stratified([average_share(m, f, first, methods) - average_share(m, f, second, methods) for f in chosen])


def ranking(found: dict[str, Mean]) -> list[str]:
    """Return the names, the lowest mean first."""
    return sorted((name for name, mean in found.items() if mean.num_runs), key=lambda name: found[name].value)


@claim("Section 6.1", "errors-main", "ours")
def greedy_restarts(m: Measures) -> Verdict:
    """Greedy is better for MF as it effectively gets the benefit of many random starts."""
    many = m.under("restarts")
    families = many.families()
    one, all_16 = (stratified([greedy_lead(at, f) for f in families]) for at in (m, many))
    if not one.num_runs or not all_16.num_runs:
        return no_data("runs with restarts")
    text = f"by how much less MF errs with greedy than with pseudo-greedy after {MAX_GREEDY} clamps, on the "
    text += f"{len(families)} families run so: {one.text(sign=True)} nats from one start, {all_16.text(sign=True)} "
    text += "where every branch takes the best of 16"
    leads = [greedy_lead(at, f) for at in (m, many) for f in families]
    smaller = combination(leads, [weight for weight in (EFFECTIVELY, -1.0) for _ in families])
    return judged(text, smaller.above(), all_16.num_runs, "With as many starts for all, greedy stays ahead.")


def greedy_lead(m: Measures, family: Family) -> Floats:
    """Return (runs,) by how many nats less MF errs with greedy than with pseudo-greedy."""
    errors = (m.error(family, "mf", name)[:, MAX_GREEDY] for name in ("pseudo-greedy", "greedy"))
    return np.asarray(np.subtract(*errors))


@claim("Section 6.1", "errors-main", "success")
def best_single(m: Measures) -> Verdict:
    """maxW+TRE is the best single heuristic."""

    def left_by(methods: Collection[str]) -> dict[str, Mean]:
        return {name: stratified([average_share(m, f, name, methods) for f in m.families()]) for name in HEURISTICS}

    parts: dict[str, bool | None] = {}
    texts = []
    for method in METHODS:
        left = left_by([method])
        order = ranking(left)
        if "maxW+TRE" not in order or len(order) < 2:
            return no_data("runs of the ten heuristics")
        others = [name for name in order if name != "maxW+TRE"]
        parts[method] = together(compared(m, name, "maxW+TRE", [method]).above() for name in others)
        first = listed({name: left[name] for name in order[:3]})
        place = order.index("maxW+TRE") + 1
        texts.append(f"{TITLES[method]} {first}{'' if place < 4 else f'; maxW+TRE is {place}th'}")
    every = left_by(METHODS)
    text = f"error left, on average over 1 to {MAX_CLAMPS} clamps: {'; '.join(texts)}; over all methods "
    text += listed({name: every[name] for name in ranking(every)[:3]})
    note = "Where it is not the first, or not beyond noise, others are; over all methods together it leads."
    return in_parts(text, parts, every["maxW+TRE"].num_runs, note if ranking(every)[0] == "maxW+TRE" else "")


def agreement(
    m: Measures, family: Family, name: str, methods: Collection[str] = METHODS, steps: slice = slice(None)
) -> Floats:
    """Return (runs,) how often a heuristic chooses what pseudo-greedy does, at its own state."""
    return np.asarray(np.mean([m.agreement(family, method, name)[:, steps].mean(axis=1) for method in methods], axis=0))


@claim("Section 6.1, Figure 19", "success")
def half_the_time(m: Measures) -> Verdict:
    """maxW+TRE agrees with pseudo-greedy most often, about half the time."""
    found = {name: stratified([agreement(m, f, name) for f in m.families()]) for name in HEURISTICS}
    order = ranking(found)[::-1]
    if not order or sum(mean.value for mean in found.values() if mean.num_runs) == 0:
        return no_data("choices of the heuristics at pseudo-greedy's states")
    ours = found["maxW+TRE"]
    panels = [
        stratified([agreement(m, f, "maxW+TRE", [method]) for f in m.families(mixed=mixed)])
        for mixed in (True, False)
        for method in METHODS
    ]
    values = [100 * mean.value for mean in panels if mean.num_runs]
    second = next(name for name in order if name != "maxW+TRE")
    lead = stratified([agreement(m, f, "maxW+TRE") - agreement(m, f, second) for f in m.families()])
    holds = together([ABOUT_HALF[0] <= ours.value <= ABOUT_HALF[1], lead.above()])
    text = f"maxW+TRE agrees in {ours.percent()} of all steps (from {min(values):.0f}% to {max(values):.0f}% by method"
    text += f" and kind of model); next best: {second} {found[second].percent()}"
    far = f"That is not “about half” ({ABOUT_HALF[0]:.0%} to {ABOUT_HALF[1]:.0%})."
    return judged(text, holds, ours.num_runs, f"{second} agrees more often." if lead.above() is False else far)


@claim("Section 6.1, Figure 19", "success")
def tre_after_first(m: Measures) -> Verdict:
    """Entropies (TRE) help most after the first clamp."""
    families = m.families()
    if not any(np.isfinite(m.agreement(f, "trw", "maxW")).any() for f in families):
        return no_data("choices of the heuristics at pseudo-greedy's states")

    def lead(family: Family, steps: slice) -> Floats:
        return agreement(m, family, "maxW+TRE", steps=steps) - agreement(m, family, "maxW", steps=steps)

    def gain(family: Family, k: int) -> Floats:
        shares = [m.share(family, x, "maxW")[:, k] - m.share(family, x, "maxW+TRE")[:, k] for x in METHODS]
        return np.asarray(np.mean(shares, axis=0))

    first, later = (stratified([lead(f, s) for f in families]) for s in (slice(0, 1), slice(1, None)))
    growth = stratified([lead(f, slice(1, None)) - lead(f, slice(0, 1)) for f in families])
    gained = [stratified([gain(f, k) for f in families]) for k in (1, MAX_CLAMPS)]
    holds = together([growth.above(), later.above()])
    text = (
        f"maxW+TRE agrees with pseudo-greedy more often than maxW does by {first.percent(True)} at the first clamp and"
        f" {later.percent(True)} at later ones; it leaves less error by {gained[0].percent(True)} of that before"
        f" clamping after 1 clamp, {gained[1].percent(True)} after {MAX_CLAMPS}"
    )
    return judged(text, holds, growth.num_runs, "Entropies help no more at later clamps than at the first.")


@claim("Sections 6 and 8.2.4 (appendix)", "zoom-mixed-6", "zoom-mixed-12")
def trw_guides(m: Measures) -> Verdict:
    """For Bethe on mixed models TRW’s fall guides better than MF’s rise or the gap."""
    families = m.families(mixed=True)
    guides = {"MF’s rise": "pseudo-greedy (mf)", "the gap": "pseudo-greedy (gap)"}
    found = {name: compared(m, other, "pseudo-greedy", ["bethe"], families) for name, other in guides.items()}
    if not any(mean.num_runs for mean in found.values()):
        return no_data("runs of pseudo-greedy guided by MF and by the gap")
    left = stratified([average_share(m, f, "pseudo-greedy", ["bethe"]) for f in families])
    text = f"error left, on average over 1 to 5 clamps: TRW’s fall {left.percent()}"
    text += f"; more than that: {listed(found, sign=True)}"
    holds = together(mean.above() for mean in found.values())
    against = " and ".join(name for name, mean in found.items() if mean.below())
    return judged(text, holds, left.num_runs, f"{against.capitalize()} guides better.")


@claim("Section 5.1")
def core(m: Measures) -> Verdict:
    """Where maxW was challenged, stripping to the core makes it as good as Mpower, in many cases."""
    behind, closed, level = list[Floats](), list[Floats](), list[Floats]()
    families = m.families(graphs=["er"])
    for family in families:
        for method in METHODS:
            plain, stripped, power = (m.share(family, method, x)[:, MAX_CLAMPS] for x in ("maxW0", "maxW", "Mpower"))
            challenged = (plain > power + TIE) & np.isfinite(stripped)
            behind.append(np.where(challenged, plain - power, math.nan))
            closed.append(np.where(challenged, stripped - power, math.nan))
            level.append(np.where(challenged, stripped <= power + TIE, math.nan))
    left, before, often = stratified(closed), stratified(behind), stratified(level)
    if not left.num_runs:
        return no_data("runs of maxW0, maxW and Mpower on random graphs")
    ahead = compared(m, "maxW0", "Mpower")
    text = f"on random graphs, where maxW without the core leaves more error than Mpower after {MAX_CLAMPS} clamps ("
    text += f"{left.num_runs:,} runs and methods): more by {before.percent()} of that before clamping, with the core "
    text += f"by {left.percent()}; no more than Mpower in {often.percent()}; over all families maxW without the core "
    text += f"leaves {ahead.percent(True)} against Mpower"
    why = "The core closes little of the gap where there is one; elsewhere there is none to close."
    return judged(text, left.below(AS_GOOD), left.num_runs, why)


@claim("Section 6.1", "success", "zoom-mixed-6", "zoom-mixed-12")
def none_dominates(m: Measures) -> Verdict:
    """No heuristic dominates."""
    beaten = dict.fromkeys(HEURISTICS, 0)
    pairs = [(family, method) for family in m.families() for method in METHODS]
    best: dict[str, list[Floats]] = {name: [] for name in HEURISTICS}
    for family, method in pairs:
        errors = {name: m.error(family, method, name)[:, MAX_CLAMPS] for name in HEURISTICS}
        least = np.min(list(errors.values()), axis=0)
        for name, mine in errors.items():
            best[name].append(np.where(np.isfinite(least), mine <= least + TIE, math.nan))
            behind = [stratified([mine - other]) for other in errors.values()]
            beaten[name] += any(mean.value > SURELY * mean.error for mean in behind)
    found = {name: stratified(groups) for name, groups in best.items()}
    order = sorted(HEURISTICS, key=lambda name: beaten[name])
    if not found[order[0]].num_runs:
        return no_data(f"runs of the ten heuristics with {MAX_CLAMPS} clamps")
    text = f"beaten by {SURELY:g} standard errors after {MAX_CLAMPS} clamps, of {len(pairs)} pairs of family and "
    text += f"method: {', '.join(f'{name} in {beaten[name]}' for name in order[:3])}; "
    text += "most often among the best of a run: " + listed({name: found[name] for name in ranking(found)[::-1][:3]})
    holds = True if beaten[order[0]] else False if beaten[order[1]] else None  # nobody beats the first
    return judged(text, holds, found[order[0]].num_runs, f"{order[0]} is never beaten.")


@claim("Appendix, section 10", "optimal")
def greedy_optimal(m: Measures) -> Verdict:
    """Greedy sequences are not optimal, but nearly so."""
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
    num_runs = max(means[-1].num_runs for means in present.values())
    return judged(f"of optimal sequences’ gain greedy loses: {text}", holds, num_runs, why)


CLAIMS = claims_in(vars())
