"""Advice: which method, which selector, how many clamps, each sentence of `advice.toml` with numbers from the table.

A sentence whose runs are not there is left out.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from reproduction.claims.accuracy import is_dense_mixed, leads
from reproduction.claims.choice import average_share, losses, ranking
from reproduction.claims.measures import BEYOND, NOTHING, Mean, Measures, stratified
from reproduction.claims.times import left_over_time, log_seconds
from reproduction.claims.verdicts import listed
from reproduction.families import LABELLED, WEIGHTS, Family, family_named
from reproduction.settings import (
    BY_LIMIT,
    FURTHER_FAMILIES,
    HEURISTICS,
    MAX_CLAMPS,
    MAX_GREEDY,
    METHODS,
    MINI_BUCKETS,
    OWN,
    SELECTOR,
    SETTINGS,
    TIMED,
    TITLES,
)
from reproduction.table import Floats, Table
from reproduction.tools import counted, texts_of

# A sentence by its name, and its numbers.
Numbers = Iterator[tuple[str, dict[str, object]]]


class Advice(NamedTuple):
    """Say what to do, the numbers that say so, and where the paper says otherwise, what it says and why."""

    do: str
    because: str
    paper: str = ""


def advice(table: Table) -> dict[str, list[Advice]]:
    """Return what is advised, by what it is about."""
    texts = texts_of("reproduction.reporting", "advice.toml")
    m = Measures(table)
    parts = (_methods, _settings, _selectors, _clock, _greedy, _clamps, _further, _labels)
    numbers = [found for part in parts for found in part(m)]
    return {
        chapter: given
        for chapter, sentences in texts.items()
        if (
            given := [
                Advice(**{part: said.format(**values) for part, said in sentences[name].items()})
                for name, values in numbers
                if name in sentences
            ]
        )
    }


def as_markdown(found: dict[str, list[Advice]]) -> str:
    """Write the chapters as a page of the documentation has them."""
    lines = []
    for title, given in found.items():
        items = (f"- **{do}**  {because}{f'  *{paper}*' if paper else ''}" for do, because, paper in given)
        lines += [f"## {title}", "", *items, ""]
    return "\n".join(lines)


def _bethe_first(m: Measures, families: Sequence[Family]) -> dict[str, object]:
    """Count the families in which Bethe has the lowest error before clamping."""
    first = sum(all(mean.value > 0 for mean in leads(m, family, "bethe")) for family in families)
    return {"first": first, "of": len(families)}


def _gone(m: Measures, families: Sequence[Family], clamps: int = MAX_CLAMPS) -> str:
    """Write the shares of the error that clamps remove."""
    return listed({o: stratified([1 - m.share(f, o, SELECTOR)[:, clamps] for f in families]) for o in METHODS})


def _methods(m: Measures) -> Numbers:
    families = [family for family in m.families() if not is_dense_mixed(family)]
    if families:
        ends = {o: [stratified([m.error(f, o, SELECTOR)[:, k] for f in families]) for k in (0, 5)] for o in METHODS}
        errors = ", ".join(
            f"{TITLES[o]} {before.value:.2g} and {after.value:.2g}" for o, (before, after) in ends.items()
        )
        yield "estimate", {"errors": errors, **_bethe_first(m, families)}
    for family in (f for f in m.families() if f.name == "complete15[-12,12]"):
        mf, bethe = (np.nanmean(m.error(family, method, SELECTOR), axis=0) for method in ("mf", "bethe"))
        if (turn := int(np.argmax(bethe < mf))) and bethe[turn] < mf[turn]:
            now = {"mf": f"{mf[0]:.2g}", "bethe": f"{bethe[0]:.2g}"}
            yield "dense", {"turn": turn, **now, "mf_then": f"{mf[turn]:.2g}", "bethe_then": f"{bethe[turn]:.2g}"}


def _settings(m: Measures) -> Numbers:
    """Yield what each of our settings buys with as many clamps, in nats and in seconds."""
    for settings in OWN:
        own, texts = m.under(settings.name), []
        for method in settings.methods:
            nats = [_bought(m, own, family, method) for family in own.families()]
            factors = [_slower(m, own, f, method) for f in own.families("times") if f in m.families("times")]
            longer = f" in {math.exp(float(np.mean(factors))):.2g} times the time" if factors else ""
            texts += [f"{TITLES[method]} {stratified(nats).text(sign=True)}{longer}"] if nats else []
        if texts:
            yield settings.name, {"bought": ", ".join(texts)}


def _bought(m: Measures, own: Measures, family: Family, method: str) -> Floats:
    """Return (runs,) nats by which the error is smaller."""
    return _fallen([at.error(family, method, SELECTOR) for at in (m, own)])


def _fallen(curves: Sequence[Floats]) -> Floats:
    """Return (runs,) by how much less the second has with all clamps, over the first runs, which both have."""
    both = min(map(len, curves))
    return np.asarray(np.subtract(*(curve[:both, MAX_CLAMPS] for curve in curves)))


def _slower(m: Measures, own: Measures, family: Family, method: str) -> float:
    """Return the logarithm of how many times as long it takes, all steps counted where ours need them all."""
    needed = SETTINGS[own.settings].warm_starts or SETTINGS[own.settings].per_branch
    seconds = own.seconds(family, method, SELECTOR), m.seconds(family, method, SELECTOR, needed)
    return float(_fallen([np.log(each) for each in seconds]).mean())


def _selectors(m: Measures) -> Numbers:
    lost = {o: losses(m, o, SELECTOR, "pseudo-greedy", MAX_CLAMPS) for o in METHODS}

    def slower(family: Family, method: str) -> Floats:
        long, short = (log_seconds(m, family, method, name, MAX_CLAMPS) for name in ("pseudo-greedy", SELECTOR))
        return long - short

    longer = {o: stratified([slower(f, o) for f in m.families("times")]) for o in METHODS}
    if all(mean.num_runs for mean in (*lost.values(), *longer.values())):
        factors = ", ".join(f"{TITLES[o]} {math.exp(mean.value):.2g}" for o, mean in longer.items())
        yield "hurry", {"lost": listed(lost), "longer": factors}
    left = {name: stratified([average_share(m, f, name, ["bethe"]) for f in m.families()]) for name in HEURISTICS}
    yield from _better("bethe", left)


def _better(name: str, left: dict[str, Mean], **more: object) -> Numbers:
    """Yield a sentence where another selector leaves less error than maxW+TRE."""
    apart = left[SELECTOR].value - BEYOND * left[SELECTOR].error
    if left[SELECTOR].num_runs and left[best := ranking(left)[0]].value < apart:
        yield name, {"best": best, "ours": left[best].percent(), "theirs": left[SELECTOR].percent(), **more}


def _clock(m: Measures) -> Numbers:
    for method in METHODS:
        groups = left_over_time(m, m.families("times"), [method], TIMED, True)
        yield from _better("clock", {n: stratified(found) for (_, n), found in groups.items()}, method=TITLES[method])


def _greedy(m: Measures) -> Numbers:
    lost = {o: losses(m, o, "pseudo-greedy", "greedy", MAX_GREEDY) for o in ("bethe", "trw")}
    many = m.under("restarts")
    ours, theirs = (
        stratified([at.error(f, "mf", name)[:, MAX_GREEDY] for f in many.families()])
        for at, name in ((many, "pseudo-greedy"), (m, "greedy"))
    )
    if all(mean.num_runs for mean in (*lost.values(), ours, theirs)):
        yield "greedy", {"lost": listed(lost), "ours": ours.text(), "theirs": theirs.text()}


def _clamps(m: Measures) -> Numbers:
    ranges = {"[{:g},{:g}]".format(*W): [f for f in m.families() if f.weights == W] for W in WEIGHTS}
    if all(ranges.values()):
        yield "strong", {"gone": "; ".join(f"{name} {_gone(m, families)}" for name, families in ranges.items())}


def _further(m: Measures) -> Numbers:
    for name in FURTHER_FAMILIES:
        if not m.table.runs(name, experiment="further"):
            continue

        def mean(method: str, selector: str, column: str, of: str = name) -> Floats:
            found = m.table.curve(of, method, selector, experiment="further", column=column)
            return np.asarray(found.mean(axis=0)[np.isfinite(found).all(axis=0)])

        exact = float(mean("exact", "none", "seconds")[0])
        seconds, errors = (mean("trw", SELECTOR, column) for column in ("seconds", "error"))
        cost, bounds = (mean(MINI_BUCKETS, BY_LIMIT, column) for column in ("seconds", "error"))
        longer = int(np.argmax(seconds > exact)) if (seconds > exact).any() else len(seconds) - 1
        same = np.array([bounds[cost <= taken].min(initial=math.inf) for taken in seconds])
        tighter = int(np.argmax(same < errors))
        off = f"by {same[tighter]:.2g}" if same[tighter] > NOTHING else "by nothing"
        beside = f"Bounds of mini-buckets of the same cost are tighter from {counted(tighter, 'clamp')} on: off {off}, "
        beside += f"not {errors[tighter]:.2g} nats. "
        beside = beside if (same < errors).any() else "Bounds of mini-buckets stay behind. "
        values = {"exact": exact, "then": seconds[longer], "last": errors[-1], "seconds": seconds[-1]}
        texts = {key: f"{value:.2g}" for key, value in values.items()} | {"mini_buckets": beside}
        yield "further", {"family": family_named(name).title, "longer": counted(longer, "clamp"), **texts}


def _labels(m: Measures) -> Numbers:
    more = Measures(m.table, known=LABELLED)
    for labels in sorted({family.labels for family in more.families()}):
        of = [family for family in more.families() if family.labels == labels]
        k = more.table.curve(of[0].name, "trw", SELECTOR).shape[1] - 1
        yield "labels", {"labels": labels, "k": k, "gone": _gone(more, of, k), **_bethe_first(more, of)}
