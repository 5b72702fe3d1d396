"""Claims about bounds and errors: what clamping never does, which method is the most accurate, where clamping gains
most."""

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.claims.measures import NOTHING, Mean, Measures, combination, stratified
from reproduction.claims.verdicts import Verdict, claim, claims_in, in_parts, judged, listed, no_data, together
from reproduction.families import Family
from reproduction.settings import HEURISTICS, MAX_CLAMPS, METHODS, SELECTOR, TITLES
from reproduction.table import Floats
from reproduction.tools import counted

PATHS = (*HEURISTICS, "pseudo-greedy", "greedy", "pseudo-greedy (mf)", "pseudo-greedy (gap)")
# "Typically": in this share of the families that can be told apart.  "Much more accurate": so much of the error
# is gone.  A step that loosens is one to speak of from this many nats on.
TYPICALLY, MUCH, SPEAK_OF = 0.75, 0.5, 0.1
# In which direction each method's error worsens.
WORSE = {"mf": -1.0, "bethe": -1.0, "trw": 1.0}
WHY_LOOSER = {
    "mf": "Not even at the parent’s solution, from which each branch can only rise: that must not be.",
    "trw": "Theorem 2 keeps the parent's edge weights. As in the paper's software, every branch gets the uniform "
    "weights of the graph that is left, which are not always better; keeping the better of the two rules this out.",
    "bethe": "The theorem is about the best Bethe solution. As in the paper, every branch is solved from a uniform "
    "start alone and may end in another optimum; the paper warns of this too.",
}


class Steps(NamedTuple):
    """Hold the different clamping steps of a method.

    worsening       by how much each made its value worse (negative: better), in nats
    settled         whether both its ends had converged
    models          of which run of all each is
    num_crossed     how many values are on the wrong side of log Z
    """

    worsening: Floats
    settled: NDArray[np.bool_]
    models: Floats
    num_values: int
    num_crossed: int


def steps(m: Measures, method: str, families: Collection[Family], *, signed: bool = True) -> Steps:
    """Collect every step of every selector; one that several selectors took together counts once."""
    found: list[Floats] = [np.empty((0, 4))]
    num_values, num_crossed, num_models = 0, 0, 0
    for family in families:
        paths = WORSE[method] * np.stack([m.signed(family, method, selector) for selector in PATHS])
        paths = paths if signed else np.abs(paths)
        before, after = paths[:, :, :-1], paths[:, :, 1:]
        runs = np.broadcast_to(np.arange(paths.shape[1])[None, :, None], before.shape)
        settled = np.stack([m.converged(family, method, selector) for selector in PATHS])
        taken = np.stack(
            [runs.ravel(), before.ravel(), after.ravel(), (settled[:, :, :-1] * settled[:, :, 1:]).ravel()], axis=1
        )
        taken = np.unique(taken[np.isfinite(taken).all(axis=1)], axis=0)
        found.append(taken + np.array([num_models, 0.0, 0.0, 0.0]))
        num_models += paths.shape[1]
        values = np.unique(np.concatenate([taken[:, [0, 1]], taken[:, [0, 2]]]), axis=0)[:, 1]
        num_values += len(values)
        # worse is further from log Z on the method's own side
        num_crossed += int((values < -NOTHING).sum())
    every = np.concatenate(found)
    return Steps(every[:, 2] - every[:, 1], every[:, 3] > 0, every[:, 0], num_values, num_crossed)


def never_worse(m: Measures, method: str, mixed: bool | None = None) -> Verdict:
    """Judge whether clamping ever worsens a method where it is a bound."""
    found = steps(m, method, m.families(mixed=mixed))
    if not len(found.worsening):
        return no_data(f"clamping steps of {TITLES[method]}")
    change = f"{WORSE[method] * found.worsening.mean():+.3g}".replace("-", "−")
    text = f"{_counted(found, m.tolerance[method])}; mean change {change} nats"
    text += f"; on the wrong side of log Z: {found.num_crossed} of {found.num_values:,} values"
    worse = bool((found.worsening > m.tolerance[method]).any())
    crossed = "A bound is on the wrong side of log Z: that must not be. " if found.num_crossed else ""
    return Verdict(text, not worse and not crossed, f"{crossed}{WHY_LOOSER[method] if worse else ''}".strip())


@claim("Theorem 2, section 3", "errors-main", "complete-main")
def trw_never_loosens(m: Measures) -> Verdict:
    """Clamping never loosens TRW's upper bound."""
    return never_worse(m, "trw")


@claim("Theorem 4, section 4; section 9", "ours")
def mf_never_loosens(m: Measures) -> Verdict:
    """Clamping never loosens MF’s lower bound where the branches start at the parent’s solution."""
    return never_worse(m.under("parents"), "mf")


@claim("Section 9 (appendix)", "errors-main", "complete-main", "ours")
def mf_same_seed(m: Measures) -> Verdict:
    """For MF the same random seed in the model and its branches appeared sufficient."""
    families = m.families()
    found = steps(m, "mf", families)
    if not len(found.worsening):
        return no_data("clamping steps of MF")
    bad, num_models = found.worsening > m.tolerance["mf"], sum(len(m.signed(f, "mf", "none")) for f in families)
    large = int((found.worsening > SPEAK_OF).sum())
    text = f"{len(np.unique(found.models[bad])):,} of {num_models:,} models have a step that loosens; {_counted(found)}"
    text += f"; {large:,} steps by more than {SPEAK_OF} nats"
    rises = [stratified([np.diff(m.signed(f, "mf", SELECTOR), axis=1)[:, k]]) for f in families for k in range(5)]
    means = not any(mean.below() for mean in rises)
    text += f"; steps by {SELECTOR} that loosen the mean of a family: {sum(bool(mean.below()) for mean in rises)}"
    one, many = (
        stratified([at.error(f, "mf", "none")[:, 0] for f in m.under("restarts").families()])
        for at in (m, m.under("restarts"))
    )
    if many.num_runs:
        text += f"; mean error before clamping from one start {one.text()}, the best of 16 {many.text()} nats"
    parents = steps(m.under("parents"), "mf", m.under("parents").families())
    if len(parents.worsening):
        text += f"; started at the parent’s solution {_counted(parents)}"
    note = "The theorem speaks of the best solution. One random start is what most of MF’s error comes from."
    return in_parts(text, {"the means of families": means, "single models": not large}, num_models, note)


@claim("Section 2.1", "errors-main", "zoom-attractive-2", "zoom-attractive-6")
def bethe_never_falls(m: Measures) -> Verdict:
    """On attractive models clamping never lowers Bethe, a lower bound there."""
    return never_worse(m, "bethe", mixed=False)


@claim("Sections 1 and 2.1", "errors-mixed-6", "errors-mixed-12")
def bethe_can_worsen(m: Measures) -> Verdict:
    """On mixed models clamping can make Bethe worse."""
    found = steps(m, "bethe", m.families(mixed=True), signed=False)
    if not len(found.worsening):
        return no_data("clamping steps of Bethe on mixed models")
    large, change = found.worsening > SPEAK_OF, found.worsening.mean()
    text = f"{_counted(found)}; {int(large.sum()):,} by more than {SPEAK_OF} nats; mean change of |error| {change:.3g}"
    holds = bool((large & found.settled).any())
    return Verdict(text, holds, "" if holds else f"No step that converged made it worse by {SPEAK_OF} nats.")


def _counted(found: Steps, tolerance: float = NOTHING) -> str:
    chosen = found.worsening > tolerance
    worse, num_steps = found.worsening[chosen], len(found.worsening)
    text = f"{len(worse):,} of {num_steps:,} steps ({100 * len(worse) / num_steps:.2g}%) worsen"
    if len(worse):
        text += f", by at most {worse.max():.2g} and {np.median(worse):.2g} in the median"
        if loose := int((~found.settled[chosen]).sum()):
            text += f", {loose:,} of them where a branch did not converge"
    return text


@claim("Equation (1), section 2", "errors-main", "complete-main")
def sandwich(m: Measures) -> Verdict:
    """MF is below log Z and below Bethe, TRW above both."""
    num = {"MF above log Z": 0, "TRW below log Z": 0, "Bethe below MF": 0, "Bethe above TRW": 0}
    total = 0
    for family in m.families():
        for selector in ("none", SELECTOR):
            mf, bethe, trw = (
                m.signed(family, method, selector)[:, slice(0, 1) if selector == "none" else slice(1, None)]
                for method in METHODS
            )
            there, slack = np.isfinite(mf + bethe + trw), m.tolerance["trw"]
            wrong = mf > NOTHING, trw < -NOTHING, bethe < mf - slack, bethe > trw + slack
            for name, where in zip(num, wrong, strict=True):
                num[name] += int((where & there).sum())
            total += int(there.sum())
    if not total:
        return no_data("runs of all three methods")
    counts = ", ".join(f"{name} {count:,}" for name, count in num.items())
    text = f"of {total:,} models with 0 to {MAX_CLAMPS} clamps by {SELECTOR}: {counts}"
    bounds = num["MF above log Z"] + num["TRW below log Z"] == 0
    note = (
        "The bounds on log Z hold. Bethe's place between them is proved for its best solution only: from a uniform"
        " start it finds other optima, as the paper says of values below MF's."
    )
    return Verdict(text, not any(num.values()), note if bounds and any(num.values()) else "")


@claim("Section 6.1", "errors-main", "complete-main")
def clamping_helps(m: Measures) -> Verdict:
    """Clamping makes every method much more accurate."""
    found = {
        method: stratified([1 - m.share(f, method, "pseudo-greedy")[:, MAX_CLAMPS] for f in m.families()])
        for method in METHODS
    }
    if not any(mean.num_runs for mean in found.values()):
        return no_data(f"runs of pseudo-greedy with {MAX_CLAMPS} clamps")
    parts = {method: mean.above(MUCH) for method, mean in found.items()}
    text = f"{MAX_CLAMPS} clamps by pseudo-greedy remove of the error: {listed(found)}; “much” is more than {MUCH:.0%}"
    return in_parts(text, parts, min(mean.num_runs for mean in found.values()))


def leads(m: Measures, family: Family, method: str) -> list[Mean]:
    """Return by how much less a method errs than each of the others, before clamping."""
    ours = m.error(family, method, "none")[:, 0]
    return [stratified([m.error(family, other, "none")[:, 0] - ours]) for other in METHODS if other != method]


def is_dense_mixed(family: Family) -> bool:
    """Tell whether a family is one where the paper sees mean field overtake Bethe."""
    return family.mixed and family.graph == "complete"


@claim("Sections 6.1 and 7", "errors-main", "errors-mixed-6", "errors-attractive-2", "errors-attractive-6")
def bethe_is_best(m: Measures) -> Verdict:
    """Bethe is typically the most accurate method."""
    best, beaten = list[Family](), list[Family]()
    families = [f for f in m.families() if not is_dense_mixed(f)]
    lowest = 0
    for family in families:
        others = leads(m, family, "bethe")
        lowest += all(mean.value > 0 for mean in others)
        holds = together(mean.above() for mean in others)
        if holds is not None:
            (best if holds else beaten).append(family)
    if not families:
        return no_data("sparse or attractive families")
    decided = len(best) + len(beaten)
    text = f"before clamping, dense mixed models aside, Bethe has the lowest mean error in {lowest} of {len(families)}"
    text += f" families, beyond noise in {len(best)}; beaten beyond noise in {len(beaten)}"
    holds = len(best) >= TYPICALLY * decided if 2 * decided > len(families) else None
    beaten_on = f"Beaten on {', '.join(f.title for f in beaten)}." if beaten else ""
    return Verdict(text, holds, "Cannot tell: most families have too few runs." if holds is None else beaten_on)


@claim("Section 6.1, Figure 5 (c)", "complete-main", "errors-mixed-12")
def mf_wins_when_dense(m: Measures) -> Verdict:
    """On dense, strongly mixed models MF is the most accurate: K15 with W in [-12,12]."""
    target = next((f for f in m.families() if f.name == "complete15[-12,12]"), None)
    if target is None:
        return no_data("runs of complete15[-12,12]")
    texts = []
    for family in sorted((f for f in m.families() if is_dense_mixed(f)), key=lambda f: f != target):
        errors = {
            method: [stratified([m.error(family, method, SELECTOR)[:, k]]) for k in (0, MAX_CLAMPS)]
            for method in METHODS
        }
        shown = ", ".join(
            f"{TITLES[method]} {before.value:.2g} → {after.value:.2g}" for method, (before, after) in errors.items()
        )
        texts.append(f"{family.title}: {shown}")
    over_bethe, over_trw = leads(m, target, "mf")
    after = stratified(
        [m.error(target, "bethe", SELECTOR)[:, MAX_CLAMPS] - m.error(target, "mf", SELECTOR)[:, MAX_CLAMPS]]
    )
    before = together([over_bethe.above(), over_trw.above()])
    parts = {"errors before clamping": before, "errors after five clamps": after.above()}
    text = f"mean |error| in nats without clamps → with {MAX_CLAMPS}; {'; '.join(texts)}"
    text += f"; on K15, [-12,12] MF leads Bethe by {over_bethe} before clamping, {after} after {MAX_CLAMPS} clamps"
    return in_parts(text, parts, over_bethe.num_runs, "Clamps break frustrated cycles, which is what Bethe errs by.")


@claim("Appendix, Figure 18", "histogram")
def bethe_too_high(m: Measures) -> Verdict:
    """On mixed models Bethe is mostly too high, most of all before clamping."""
    families = m.families(mixed=True)
    signed = [m.signed(f, "bethe", SELECTOR)[:, :3] for f in families]
    if not any(np.isfinite(errors).all(axis=1).any() for errors in signed):
        return no_data("runs of Bethe on mixed models")
    high = [stratified([np.where(np.isfinite(e[:, k]), e[:, k] > 0, math.nan) for e in signed]) for k in range(3)]
    mean = [stratified([e[:, k] for e in signed]) for k in range(3)]
    fall = stratified([e[:, 0] - e[:, 2] for e in signed])
    text = "; ".join(
        f"{counted(k, 'clamp')}: too high in {high[k].percent()} of runs, mean error {mean[k].text(sign=True)}"
        for k in range(3)
    )
    holds = together([high[0].above(0.5), mean[0].above(), fall.above()])
    return judged(text, holds, fall.num_runs, "The error is not mostly too high, or not most of all before clamping.")


def share_gained(m: Measures, family: Family, method: str, gain: Floats) -> Floats:
    """Return (runs,) numbers with the mean and the spread of a ratio: the family's mean gain over its mean error before
    clamping."""
    scale = m.scale(family, method)
    share = float(gain[np.isfinite(gain)].mean()) / scale if np.isfinite(gain).any() else math.nan
    return np.asarray(share + (gain - share * m.error(family, method, "none")[:, 0]) / scale)


def contrast(
    m: Measures, pairs: Collection[tuple[Collection[Family], Collection[Family]]], what: str, why_not: str
) -> Verdict:
    """Judge whether five clamps gain more in the first families of each pair than in the second, for every method."""
    pairs = [(more, less) for more, less in pairs if more and less]
    if not pairs:
        return no_data(what)
    weights: dict[Family, float] = {}
    for side, sign in ((0, 1.0), (1, -1.0)):
        for pair in pairs:
            for family in pair[side]:
                weights[family] = weights.get(family, 0.0) + sign / len(pair[side]) / len(pairs)
    found, shares = {}, {}
    for method in METHODS:
        gains = [m.gain(family, method, SELECTOR, MAX_CLAMPS) for family in weights]
        found[method] = combination(gains, list(weights.values()))
        shares[method] = combination(
            [share_gained(m, family, method, gain) for family, gain in zip(weights, gains, strict=True)],
            list(weights.values()),
        )
    if not all(mean.num_runs for mean in found.values()):
        return no_data(f"{MAX_CLAMPS} clamps by {SELECTOR}")
    # a method speaks for the claim if it does so in nats or as a share of its error, and neither of them against it
    verdicts = {method: {found[method].above(), shares[method].above()} - {None} for method in METHODS}
    divided = [TITLES[method] for method, votes in verdicts.items() if len(votes) == 2]
    against = [TITLES[method] for method, votes in verdicts.items() if votes == {False}]
    holds = together(True if votes == {True} else False if votes == {False} else None for votes in verdicts.values())
    nats = listed(found, percent=False, sign=True)
    text = f"{what}, by how much more {MAX_CLAMPS} clamps by {SELECTOR} gain: in nats {nats}"
    text += f"; of the error before clamping {listed(shares, sign=True)}"
    if divided and holds is None:
        differ = "the gain in nats and as a share of the error before clamping do not say the same."
        return Verdict(text, holds, f"It depends for {' and '.join(divided)}: {differ}")
    return judged(text, holds, found["trw"].num_runs, f"Not so for {' and '.join(against)}. {why_not}")


@claim("Section 6.1", "errors-main", "errors-mixed-6", "errors-attractive-6")
def random_gains_more(m: Measures) -> Verdict:
    """Clamping gains more on random graphs than where all variables have the same degree."""
    random, fixed = m.families(graphs=["er"]), m.families(graphs=["grid", "regular"])
    pairs = [([f], [g for g in fixed if (g.size, g.weights) == (f.size, f.weights)]) for f in random]
    what = "Erdős–Rényi against grids and 4-regular graphs of the same size"
    return contrast(m, pairs, what, "Variables of high degree do not make up for it there.")


@claim("Sections 6.1 and 7", "errors-mixed-12", "errors-attractive-6")
def stronger_gains_more(m: Measures) -> Verdict:
    """Clamping gains more, the stronger the weights."""
    families = {(f.graph, f.size, f.weights): f for f in m.families()}
    stronger = {(0.0, 2.0): (0.0, 6.0), (-6.0, 6.0): (-12.0, 12.0)}
    pairs = [
        ([families[g, n, stronger[w]]], [f])
        for (g, n, w), f in families.items()
        if w in stronger and (g, n, stronger[w]) in families
    ]
    what = "[0,6] against [0,2] and [-12,12] against [-6,6]"
    return contrast(m, pairs, what, "Stronger weights do not leave more to gain there.")


@claim("Section 7", "complete-main")
def denser_gains_more(m: Measures) -> Verdict:
    """Clamping gains more, the denser the model."""
    # about as many edges on more variables: 45 against 50, 105 against 98
    sparse, size = m.families(graphs=["grid", "regular", "er"]), {10: 25, 15: 49}
    dense = m.families(graphs=["complete"])
    pairs = [([f], [g for g in sparse if (g.size, g.weights) == (size[f.size], f.weights)]) for f in dense]
    what = "Complete graphs against sparse ones of as many edges"
    return contrast(m, pairs, what, "Density does not leave more to gain there.")


CLAIMS = claims_in(vars())
