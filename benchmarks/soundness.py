"""Soundness: does every bound hold, on models of every kind that people bring?

    python benchmarks/soundness.py --seconds 60 [--seed S or S:T] [--models N] [--kind NAME] [--question NAME]
    python benchmarks/soundness.py --again KIND:NUMBER:SEED

Models are drawn from kinds that have broken bounds before or might (`soundness_models`): many labels, hard zeros,
deterministic networks, huge and tiny potentials, equal scopes that cancel, isolated variables, long chains, larger
factors, clauses, contradictions.  Each is asked a few questions (`soundness_questions`): every method, start, clamp,
bracket, interval of a marginal, checkpoint and number of threads has its turn.  Every interval is compared with the
truth (`soundness_truth`), which shares no code with the package.

A seed draws the same models again, and seeds S to T - 1 follow each other with N models each: runs of other seeds may
go on beside it, or later.  A finding is printed with what draws its model again, made as small as it gets, as a
program; the exit code is then 1.
"""

import argparse
import math
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, localcontext

import numpy as np

import clampz as cz
from soundness_models import KINDS, Drawn
from soundness_questions import QUESTIONS, Claimed
from soundness_truth import CONTEXT, OWN_ERROR, Truth

# Questions that a model is asked.
NUM_QUESTIONS = 4
# Seconds between two lines about how far it has got.
BETWEEN_LINES = 30.0


def holds(claim: Claimed, truth: Truth) -> bool:
    with localcontext(CONTEXT):
        if claim.variable >= 0:
            if truth.log_z() is None:
                return True
            p = truth.marginal(claim.variable)[claim.state]
            return Decimal(claim.lower) - OWN_ERROR <= p <= Decimal(claim.upper) + OWN_ERROR
        if math.isnan(claim.lower) or math.isnan(claim.upper):
            return False
        log_z = truth.log_z(*claim.evidence) if claim.value is None else claim.value(truth)
        if log_z is None:
            return claim.lower == -math.inf
        off = OWN_ERROR * (abs(log_z) + OWN_ERROR)
        return Decimal(claim.lower) - off <= log_z <= Decimal(claim.upper) + off


def asked_of(seed: list[int]) -> list[str]:
    """The questions that a model is asked."""
    weights = np.array([weight for _, weight in QUESTIONS.values()])
    rng = np.random.default_rng([*seed, 1])
    return rng.choice(list(QUESTIONS), size=NUM_QUESTIONS, replace=False, p=weights / weights.sum()).tolist()


@dataclass(frozen=True)
class Finding:
    """What is wrong about a model, and which question showed it."""

    question: str
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.question}: {self.text}"


def first_finding(
    drawn: Drawn, seed: list[int], questions: list[str] | None = None, counts: Counter[str] | None = None
) -> Finding | None:
    """What is wrong about a model, None if nothing is: what is claimed does not hold, or there is an error."""
    question = "model"
    try:
        model, truth = drawn.model(), Truth(drawn)
        for question in asked_of(seed) if questions is None else questions:
            number = list(QUESTIONS).index(question)
            for claim in QUESTIONS[question][0](drawn, model, np.random.default_rng([*seed, 2, number])):
                if (claim.lower, claim.upper) == (-math.inf, math.inf):
                    continue  # nothing is claimed
                if counts is not None:
                    counts[claim.what] += 1
                if not holds(claim, truth):
                    shown = f"[{claim.lower!r}, {claim.upper!r}] does not hold {_shown(claim, truth)}"
                    return Finding(question, claim.what, f"{claim.what}: {shown}")
    except cz.errors.ClampzError as error:
        return Finding(question, "refused", f"refused: {type(error).__name__}: {str(error)[:200]}")
    except Exception as error:
        return Finding(question, "crashed", f"crashed: {type(error).__name__}: {str(error)[:200]}")
    return None


def _shown(claim: Claimed, truth: Truth) -> str:
    with localcontext(CONTEXT):
        if claim.variable >= 0:
            return f"P(X{claim.variable} = {claim.state}) = {truth.marginal(claim.variable)[claim.state]:.25g}"
        if claim.value is not None:
            value = claim.value(truth)
            return "-inf" if value is None else f"{value:.25g}"
        log_z = truth.log_z(*claim.evidence)
        given = f" given {dict(claim.evidence)}" if claim.evidence else ""
        return f"log Z = {'-inf' if log_z is None else f'{log_z:.25g}'}{given}"


def shrunk(drawn: Drawn, seed: list[int], finding: Finding, seconds: float = 30.0) -> Drawn:
    """A smaller model of which the same kind of thing is wrong: factors left out, states left out, entries rounded."""
    began = time.perf_counter()
    progress = True
    while progress:
        progress = False
        for candidate in drawn.smaller():
            if time.perf_counter() - began > seconds:
                return drawn
            found = first_finding(candidate, seed, [finding.question])
            if found is not None and found.kind == finding.kind:
                drawn, progress = candidate, True
                break
    return drawn


@dataclass
class Tally:
    """What a run has done so far."""

    models: Counter[str] = field(default_factory=Counter)
    intervals: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        models, intervals = self.models.total(), self.intervals.total()
        return f"{models:,} models, {intervals:,} intervals, {len(self.findings)} findings"

    def print(self) -> None:
        for counts in (self.models, self.intervals):
            for what, count in counts.most_common():
                print(f"{count:10,}  {what}")
            print()
        print(self)


def run(
    tally: Tally,
    seed: int,
    kinds: list[str],
    *,
    models: int | None = None,
    questions: list[str] | None = None,
    until: float = math.inf,
) -> None:
    """Draw and ask, as many models as told or until a time of `time.perf_counter`."""
    last, number = time.perf_counter(), 0
    while time.perf_counter() < until and (models is None or number < models):
        kind, own = kinds[number % len(kinds)], [seed, number]
        finding = first_finding(KINDS[kind](np.random.default_rng(own)), own, questions, tally.intervals)
        tally.models[kind] += 1
        if finding is not None:
            tally.findings.append(f"--again {kind}:{number}:{seed}\n  {finding}")
            print(f"\n{tally.findings[-1]}", flush=True)
        number += 1
        if time.perf_counter() - last > BETWEEN_LINES:
            last = time.perf_counter()
            print(f"  seed {seed}: {tally}", flush=True)


def again(what: str, questions: list[str] | None) -> int:
    """One model once more, made small where something is wrong about it."""
    kind, number, seed = what.split(":")
    own = [int(seed), int(number)]
    drawn = KINDS[kind](np.random.default_rng(own))
    finding = first_finding(drawn, own, questions)
    print(finding or "nothing is wrong")
    if finding is None:
        return 0
    small = shrunk(drawn, own, finding)
    print(f"\n{small.program()}\n# {first_finding(small, own, [finding.question])}")
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="how long (default: 60, or as long as the models take)")
    parser.add_argument("--seed", default="0", metavar="S or S:T", help="seeds S to T - 1 (default: %(default)s)")
    parser.add_argument("--models", type=int, help="how many of each seed")
    for name, known in (("kind", KINDS), ("question", QUESTIONS)):
        parser.add_argument(f"--{name}", choices=known, action="append", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--again", metavar="KIND:NUMBER:SEED", help="one model that was found")
    arguments = parser.parse_args()
    if arguments.again:
        return again(arguments.again, arguments.question)
    first, _, last = arguments.seed.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    if len(seeds) > 1 and arguments.models is None:
        parser.error("several seeds: expected --models, how many of each")
    seconds = arguments.seconds or (60.0 if arguments.models is None else math.inf)
    warnings.simplefilter("error")  # what a user would see is a finding too
    until, tally = time.perf_counter() + seconds, Tally()
    try:
        for seed in seeds:
            kinds = arguments.kind or list(KINDS)
            run(tally, seed, kinds, models=arguments.models, questions=arguments.question, until=until)
            if len(seeds) > 1:
                print(f"seed {seed} is done: {tally}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    tally.print()
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
