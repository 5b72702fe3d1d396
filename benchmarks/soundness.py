"""Soundness: does every bound hold, on models of every kind that people bring?

    python benchmarks/soundness.py --seconds 60 [--seed S] [--kind NAME] [--again KIND:NUMBER:SEED]

Models are drawn from kinds that have broken bounds before or might: many labels, hard zeros, deterministic networks,
huge and tiny potentials, equal scopes that cancel, isolated variables, long chains, larger factors, clauses,
contradictions.  Every method, start, clamp, bracket, interval of a marginal, checkpoint and number of threads is asked
about them, and every interval is compared with the truth, computed here by decimal arithmetic of sixty digits from the
factors as they were given: no code is shared with the package.  A finding is made as small as it gets and printed as a
program; `--again` draws its model again.
"""

import argparse
import itertools
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import clampz as cz

DIGITS = 60
# What the truth itself may be off by.
OWN_ERROR = Decimal(10) ** -45
MOST_STATES = 6e3
HARD = -np.inf


# -- models ----------------------------------------------------------------------------------------------------------


class Drawn(NamedTuple):
    """A model as a list of factors, in the order in which they were given."""

    num_states: tuple[int, ...]
    factors: tuple[tuple[tuple[int, ...], np.ndarray], ...]
    constant: float = 0.0

    def model(self) -> cz.Model:
        return cz.Model.from_factors(list(self.num_states), list(self.factors), constant=self.constant)

    def program(self) -> str:
        """What makes it again."""
        lines = [
            f"    ({scope}, {np.array2string(table, separator=', ', floatmode='unique').replace('inf', 'np.inf')}),"
            for scope, table in self.factors
        ]
        body = "\n".join(lines)
        return f"model = cz.Model.from_factors({list(self.num_states)}, [\n{body}\n], constant={self.constant!r})"


def tables(rng: np.random.Generator, num_states: list[int], scopes: list[tuple[int, ...]], scale: float, zeros: float):
    """Independent entries, a share of them impossible."""
    for scope in scopes:
        table = rng.normal(scale=scale, size=[num_states[i] for i in scope])
        yield scope, np.where(rng.random(table.shape) < zeros, HARD, table)


def some_states(rng: np.random.Generator, most: int, labels: int, limit: float = MOST_STATES) -> list[int]:
    n = int(rng.integers(1, most + 1))
    num_states = rng.integers(1 if rng.random() < 0.2 else 2, labels + 1, size=n).tolist()
    while np.prod([float(k) for k in num_states]) > limit:
        num_states.pop()
    return num_states


def pairs_of(rng: np.random.Generator, n: int) -> list[tuple[int, ...]]:
    density = rng.random()
    return [
        (i, j) if rng.random() < 0.5 else (j, i)
        for i, j in itertools.combinations(range(n), 2)
        if rng.random() < density
    ]


def pairwise(rng: np.random.Generator, *, scale: float | None = None, zeros: float = 0.0, labels: int = 4) -> Drawn:
    num_states = some_states(rng, 10, labels)
    scale = float(rng.choice([0.1, 1.0, 4.0, 20.0])) if scale is None else scale
    scopes = [(i,) for i in range(len(num_states))] + pairs_of(rng, len(num_states))
    return Drawn(tuple(num_states), tuple(tables(rng, num_states, scopes, scale, zeros)), float(rng.normal()))


def binary(rng: np.random.Generator) -> Drawn:
    """Grids, cycles, cliques of two states: the paper's."""
    return pairwise(rng, labels=2)


def attractive(rng: np.random.Generator) -> Drawn:
    """All edges pull together: Bethe is a lower bound."""
    drawn = binary(rng)
    pulled = []
    for scope, table in drawn.factors:
        if len(scope) == 2 and table.shape == (2, 2):
            w = float(rng.exponential(rng.choice([0.3, 2.0, 8.0])))
            table = np.array([[w, 0.0], [0.0, w]])
        pulled.append((scope, table))
    return drawn._replace(factors=tuple(pulled))


def hard_zeros(rng: np.random.Generator) -> Drawn:
    return pairwise(rng, zeros=float(rng.choice([0.05, 0.2, 0.5])))


def many_labels(rng: np.random.Generator) -> Drawn:
    """One to three variables of up to a thousand labels; integers, and equal entries."""
    n = int(rng.integers(1, 4))
    most = (1000, 70, 17)[n - 1]
    num_states = rng.integers(2, most + 1, size=n).tolist()
    size = float(rng.choice([1.0, 1e3, 1e6, 1e9, 1e12]))
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    for scope in [(i,) for i in range(n)] + list(itertools.combinations(range(n), 2)):
        shape = [num_states[i] for i in scope]
        table = rng.integers(0, 4, size=shape) * float(rng.choice([1.0, 12.0, 37.0])) + size * rng.integers(0, 2)
        factors.append((scope, table.astype(float)))
    if rng.random() < 0.3:  # one state stands out, all others are equal
        table = np.full(num_states[0], size - 37.0)
        table[0] = size
        factors[0] = ((0,), table)
    return Drawn(tuple(num_states), tuple(factors))


def deterministic(rng: np.random.Generator) -> Drawn:
    """A network whose tables are functions of the parents, or nearly so, with evidence on some."""
    num_states = some_states(rng, 9, 3)
    n = len(num_states)
    factors: list[tuple[tuple[int, ...], np.ndarray]] = []
    for i in range(n):
        parents = sorted(rng.choice(i, size=min(i, int(rng.integers(0, 4))), replace=False).tolist()) if i else []
        shape = [num_states[p] for p in parents]
        if rng.random() < 0.6 and parents:
            chosen = rng.integers(0, num_states[i], size=shape)
            table = np.where(np.arange(num_states[i]) == chosen[..., None], 0.0, HARD)
        else:
            table = np.log(rng.dirichlet(np.ones(num_states[i]), size=shape or None))
        factors.append(((*parents, i), np.asarray(table, dtype=float)))
    for i in range(n):
        if rng.random() < 0.2:
            seen = np.full(num_states[i], HARD)
            seen[rng.integers(num_states[i])] = 0.0
            factors.append(((i,), seen))
    return Drawn(tuple(num_states), tuple(factors))


def huge(rng: np.random.Generator) -> Drawn:
    return pairwise(rng, scale=float(rng.choice([1e3, 1e6, 1e9, 1e12])), zeros=float(rng.choice([0.0, 0.1])))


def tiny(rng: np.random.Generator) -> Drawn:
    return pairwise(rng, scale=float(rng.choice([1e-3, 1e-12, 1e-200, 1e-310])))


def cancelling(rng: np.random.Generator) -> Drawn:
    """Factors of one scope whose large entries cancel."""
    drawn = pairwise(rng)
    extra = []
    for scope, table in drawn.factors:
        big = float(rng.choice([1e3, 1e9, 1e15, 1e17])) * rng.normal(size=table.shape)
        extra += [(scope, big), (scope, table), (scope, -big)] if rng.random() < 0.5 else [(scope, table)]
    order = rng.permutation(len(extra)) if rng.random() < 0.5 else range(len(extra))
    return drawn._replace(factors=tuple(extra[k] for k in order))


def isolated(rng: np.random.Generator) -> Drawn:
    """Variables without factors, variables of one state, factors over nothing."""
    drawn = pairwise(rng, labels=2)
    num_states = [*drawn.num_states, *rng.integers(1, 4, size=3).tolist()]
    factors = [*drawn.factors, ((), np.array(float(rng.normal())))]
    if rng.random() < 0.1:
        factors.append(((), np.array(HARD)))
    return Drawn(tuple(num_states), tuple(factors), drawn.constant)


def chain(rng: np.random.Generator) -> Drawn:
    """Long and narrow: a tree with a few extra edges."""
    n, labels = int(rng.integers(30, 200)), int(rng.integers(2, 4))
    scopes: list[tuple[int, ...]] = [(i,) for i in range(n)] + [(i, i + 1) for i in range(n - 1)]
    scopes += [(i, i + 2) for i in range(n - 2) if rng.random() < 0.1]
    scale, zeros = float(rng.choice([0.5, 3.0, 30.0])), float(rng.choice([0.0, 0.05]))
    return Drawn((labels,) * n, tuple(tables(rng, [labels] * n, scopes, scale, zeros)))


def larger(rng: np.random.Generator) -> Drawn:
    """Factors of three to five variables beside pairs."""
    num_states = some_states(rng, 9, 3)
    n = len(num_states)
    scopes = [(i,) for i in range(n)] + pairs_of(rng, n)
    for _ in range(int(rng.integers(1, 5))):
        size = min(n, int(rng.integers(3, 6)))
        scopes.append(tuple(rng.choice(n, size=size, replace=False).tolist()))
    scale, zeros = float(rng.choice([0.3, 2.0, 10.0])), float(rng.choice([0.0, 0.2, 0.5]))
    return Drawn(tuple(num_states), tuple(tables(rng, num_states, scopes, scale, zeros)), float(rng.normal()))


def clauses(rng: np.random.Generator) -> Drawn:
    """Boolean variables, each clause forbidding one joint state of two or three of them; some have Z = 0."""
    n = int(rng.integers(2, 12))
    factors: list[tuple[tuple[int, ...], np.ndarray]] = [
        ((i,), rng.normal(size=2)) for i in range(n) if rng.random() < 0.5
    ]
    for _ in range(int(rng.integers(1, 5 * n))):
        size = min(n, int(rng.integers(1, 4)))
        table = np.zeros((2,) * size)
        table[tuple(rng.integers(0, 2, size=size))] = HARD
        factors.append((tuple(rng.choice(n, size=size, replace=False).tolist()), table))
    return Drawn((2,) * n, tuple(factors), float(rng.choice([0.0, 1e3, 1e15, -1e15])))


KINDS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    make.__name__: make
    for make in (
        binary,
        attractive,
        pairwise,
        hard_zeros,
        many_labels,
        deterministic,
        huge,
        tiny,
        cancelling,
        isolated,
        chain,
        larger,
        clauses,
    )
}


# -- the truth -------------------------------------------------------------------------------------------------------


class Truth(NamedTuple):
    """log Z, None for Z = 0; and of every variable the probability of each state."""

    log_z: Decimal | None
    marginals: list[list[Decimal]] | None


def truth_of(drawn: Drawn) -> Truth:
    """By eliminating variables from tables of decimals, each scaled to a largest entry of one."""
    with localcontext(Context(prec=DIGITS, Emin=-(10**18) + 1, Emax=10**18 - 1)):
        shift = Decimal(drawn.constant)
        weights: list[tuple[tuple[int, ...], np.ndarray]] = []
        for scope, table in drawn.factors:
            top = float(table.max())
            if top == HARD:
                return Truth(None, None)
            shift += Decimal(top)
            exp: dict[float, Decimal] = {}
            for value in np.unique(table).tolist():
                exp[value] = Decimal(0) if value == HARD else (Decimal(value) - Decimal(top)).exp()
            weights.append(
                (scope, np.array([exp[v] for v in table.ravel().tolist()], dtype=object).reshape(table.shape))
            )
        n = len(drawn.num_states)
        total = summed(drawn.num_states, weights, None)[()]
        if not total:
            return Truth(None, None)
        marginals = (
            [[value / total for value in summed(drawn.num_states, weights, i)] for i in range(n)] if n <= 12 else None
        )
        return Truth(shift + total.ln(), marginals)


def summed(num_states: tuple[int, ...], weights: list[tuple[tuple[int, ...], np.ndarray]], keep: int | None) -> Any:
    """The sum over all variables but one; always the variable next whose table is smallest."""
    left = [(scope, table) for scope, table in weights]
    variables = {i for i in range(len(num_states)) if i != keep}
    while variables:
        scopes = {i: set().union(*(scope for scope, _ in left if i in scope)) for i in variables}
        i = min(variables, key=lambda v: (math.prod(num_states[u] for u in scopes[v]), v))
        variables.remove(i)
        mine = [item for item in left if i in item[0]]
        left = [item for item in left if i not in item[0]]
        if not mine:
            left.append(((), np.array(Decimal(num_states[i]), dtype=object)))
            continue
        scope = (*sorted(scopes[i] - {i}), i)
        left.append((scope[:-1], product(num_states, mine, scope).sum(axis=-1)))
    return product(num_states, left, () if keep is None else (keep,))


def product(
    num_states: tuple[int, ...], factors: list[tuple[tuple[int, ...], Any]], scope: tuple[int, ...]
) -> np.ndarray:
    out = np.full([num_states[i] for i in scope], Decimal(1), dtype=object)
    for mine, table in factors:
        table = np.asarray(table, dtype=object)
        order = sorted(range(len(mine)), key=lambda a: scope.index(mine[a]))
        shape = [num_states[i] if i in mine else 1 for i in scope]
        out = out * table.transpose(order).reshape(shape)
    return np.asarray(out, dtype=object)


# -- what is asked ---------------------------------------------------------------------------------------------------


class Claimed(NamedTuple):
    """An interval that something says the truth is in: log Z, or the probability of a state."""

    what: str
    lower: float
    upper: float
    variable: int = -1
    state: int = -1


def asked(model: cz.Model, rng: np.random.Generator) -> Iterator[Claimed]:
    """Intervals from every method, with random limits, starts, clamps and threads."""
    limit = int(rng.choice([1, 2, 5, 50, 1000]))
    seed = int(rng.integers(100))
    exact = cz.exact(model)
    yield Claimed("exact", exact.lower, exact.upper)
    fields = cz.mean_field(model, max_iter=limit, num_starts=3, seed=seed)
    yield Claimed("mean_field", fields.lower, fields.upper)
    kinds = ["uniform", "sampled", "optimized"]
    trees = cz.trw(model, max_iter=limit, edge_weights=str(rng.choice(kinds)), num_trees=5, num_steps=2, seed=seed)
    yield Claimed("trw", trees.lower, trees.upper)
    bethe = cz.bethe(model, max_iter=limit, num_starts=1)
    yield Claimed("bethe", bethe.lower, bethe.upper)
    again = cz.mean_field(model, start=trees, num_starts=0, max_iter=limit)
    yield Claimed("mean_field from trw", again.lower, again.upper)
    again = cz.trw(model, start=fields, max_iter=limit)
    yield Claimed("trw from mean_field", again.lower, again.upper)
    if model.num_variables:
        k = int(rng.integers(1, 1 + min(3, model.num_variables)))
        for method, select in (("trw", "maxW"), ("mf", "maxW+TRE"), ("trw", "pseudo-greedy")):
            if np.sort(model.num_states)[-k:].prod() <= 64:
                clamped = cz.clamp(model, method, k=k, select=select, max_iter=min(limit, 50))
                yield Claimed(f"clamp {method} {select}", clamped.lower, clamped.upper)
    leaves, threads = int(rng.integers(1, 20)), int(rng.choice([1, 2]))
    for sums in (False, True):
        for bracket in cz.bounds(
            model, gap=1e-9, time=1.0, leaves=leaves, exact=sums, max_iter=limit, threads=threads, seed=seed
        ):
            yield Claimed(f"bound exact={sums}", bracket.lower, bracket.upper)
    bracket = cz.bound(model, time=0.0, threads=threads)
    yield Claimed("bound time=0", bracket.lower, bracket.upper)
    if rng.random() < 0.2:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                bracket = cz.bound(model, gap=1e-9, time=0.2, leaves=3, exact=False, checkpoint=Path(folder) / "c")
                yield Claimed("bound from a checkpoint", bracket.lower, bracket.upper)
    if model.num_variables and rng.random() < 0.3:
        i = int(rng.integers(model.num_variables))
        for sums in (False, True):
            found = cz.bound_marginals(model, [i], time=0.3, exact=sums, gap=0.01, threads=threads)
            for a in range(int(model.num_states[i])):
                yield Claimed(f"bound_marginals exact={sums}", float(found.lower[i][a]), float(found.upper[i][a]), i, a)
    solution = cz.solve(model, time=0.5)
    yield Claimed("solve", solution.lower, solution.upper)


def holds(claim: Claimed, truth: Truth) -> bool:
    if claim.variable >= 0:
        if truth.marginals is None:
            return True
        p = truth.marginals[claim.variable][claim.state]
        return Decimal(claim.lower) - OWN_ERROR <= p <= Decimal(claim.upper) + OWN_ERROR
    if math.isnan(claim.lower) or math.isnan(claim.upper):
        return False
    if truth.log_z is None:
        return claim.lower == -math.inf
    return Decimal(claim.lower) <= truth.log_z <= Decimal(claim.upper)


# -- findings --------------------------------------------------------------------------------------------------------


def first_finding(drawn: Drawn, seed: list[int], counts: Counter[str] | None = None) -> str | None:
    """What is wrong about a model, in a line; None if nothing is."""
    try:
        model = drawn.model()
        truth = truth_of(drawn)
        for claim in asked(model, np.random.default_rng(seed)):
            if counts is not None:
                counts[claim.what] += 1
            if not holds(claim, truth):
                return f"{claim.what}: [{claim.lower!r}, {claim.upper!r}] does not hold {_shown(claim, truth)}"
    except cz.ClampzError as error:
        return f"refused: {type(error).__name__}: {str(error)[:200]}"
    except Exception as error:
        return f"crashed: {type(error).__name__}: {str(error)[:200]}"
    return None


def _shown(claim: Claimed, truth: Truth) -> str:
    if claim.variable >= 0 and truth.marginals is not None:
        return f"P(X{claim.variable} = {claim.state}) = {truth.marginals[claim.variable][claim.state]:.25g}"
    return "log Z = -inf" if truth.log_z is None else f"log Z = {truth.log_z:.25g}"


def shrunk(drawn: Drawn, seed: list[int], seconds: float = 30.0) -> Drawn:
    """A smaller model of which the same kind of thing is wrong: factors left out, states left out, entries rounded."""
    kind = (first_finding(drawn, seed) or "").split(":")[0]
    began = time.perf_counter()
    progress = True
    while progress and time.perf_counter() - began < seconds:
        progress = False
        for candidate in smaller(drawn):
            if time.perf_counter() - began > seconds:
                break
            if (first_finding(candidate, seed) or "").split(":")[0] == kind:
                drawn, progress = candidate, True
                break
    return drawn


def smaller(drawn: Drawn) -> Iterator[Drawn]:
    for k in range(len(drawn.factors)):
        yield drawn._replace(factors=drawn.factors[:k] + drawn.factors[k + 1 :])
    for i in range(len(drawn.num_states)):
        if not any(i in scope for scope, _ in drawn.factors):
            moved = tuple((tuple(v - (v > i) for v in scope), table) for scope, table in drawn.factors)
            yield drawn._replace(num_states=drawn.num_states[:i] + drawn.num_states[i + 1 :], factors=moved)
        elif drawn.num_states[i] > 1:
            for kept in (drawn.num_states[i] // 2, drawn.num_states[i] - 1):
                cut = tuple(
                    (scope, table.take(range(kept), axis=scope.index(i)) if i in scope else table)
                    for scope, table in drawn.factors
                )
                yield drawn._replace(num_states=(*drawn.num_states[:i], kept, *drawn.num_states[i + 1 :]), factors=cut)
    if drawn.constant:
        yield drawn._replace(constant=0.0)
    for k, (scope, table) in enumerate(drawn.factors):
        rounded = np.round(table)
        if not np.array_equal(rounded, table):
            yield drawn._replace(factors=(*drawn.factors[:k], (scope, rounded), *drawn.factors[k + 1 :]))


def run(seconds: float, seed: int, kinds: list[str], models: int | None = None) -> tuple[int, Counter[str], list[str]]:
    """Draw and ask until the time is up; returns models, intervals by what claimed them, and findings."""
    began = last = time.perf_counter()
    counts: Counter[str] = Counter()
    findings: list[str] = []
    number = 0
    while time.perf_counter() - began < seconds and (models is None or number < models):
        kind = kinds[number % len(kinds)]
        drawn = KINDS[kind](np.random.default_rng([seed, number]))
        finding = first_finding(drawn, [seed, number], counts)
        if finding is not None:
            again = f"--again {kind}:{number}:{seed}"
            findings.append(f"{again}\n  {finding}")
            print(f"\n{findings[-1]}", flush=True)
        number += 1
        if time.perf_counter() - last > 30:
            last = time.perf_counter()
            print(
                f"  {number} models, {counts.total()} intervals, {len(findings)} findings, {last - began:.0f} s",
                flush=True,
            )
    return number, counts, findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", type=int, help="how many at most")
    parser.add_argument(
        "--kind", choices=KINDS, action="append", metavar="NAME", help=f"one of {', '.join(KINDS)}; may be repeated"
    )
    parser.add_argument(
        "--again", metavar="KIND:NUMBER:SEED", help="one model that was found, made as small as it gets"
    )
    arguments = parser.parse_args()
    if arguments.again:
        kind, number, own = arguments.again.split(":")
        seed = [int(own), int(number)]
        drawn = KINDS[kind](np.random.default_rng(seed))
        finding = first_finding(drawn, seed)
        print(finding or "nothing is wrong")
        if finding is not None:
            small = shrunk(drawn, seed)
            print(f"\n{small.program()}\n# {first_finding(small, seed)}")
        return 0
    models, counts, findings = run(arguments.seconds, arguments.seed, arguments.kind or list(KINDS), arguments.models)
    for what, count in counts.most_common():
        print(f"{count:10,}  {what}")
    print(f"{models:,} models, {counts.total():,} intervals, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
