"""The models of `soundness.py`: kinds that have broken bounds before, or might."""

import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

import clampz as cz

MOST_STATES = 3e3
HARD = -np.inf

Scope = tuple[int, ...]


class Drawn(NamedTuple):
    """A model as a list of factors, in the order in which they were given.

    `alike`, if any, has a number for each variable: those of the same number, of two states each, may be exchanged.
    """

    num_states: tuple[int, ...]
    factors: tuple[tuple[Scope, np.ndarray], ...]
    constant: float = 0.0
    named: bool = False
    alike: tuple[int, ...] = ()

    def model(self) -> cz.Model:
        names = [f"v{i}" for i in range(len(self.num_states))] if self.named else None
        return cz.Model.from_factors(list(self.num_states), list(self.factors), constant=self.constant, names=names)

    def given(self, evidence: Mapping[int, int | list[int]]) -> "Drawn":
        """With one state left of some variables, or a few."""
        seen = []
        for i, states in evidence.items():
            table = np.full(self.num_states[i], HARD)
            table[states] = 0.0
            seen.append(((i,), table))
        alike = tuple(-1 - i if i in evidence else group for i, group in enumerate(self.alike))
        return self._replace(factors=(*self.factors, *seen), alike=alike)

    def at(self, beta: float) -> "Drawn":
        """At an inverse temperature, 0 or a power of two: no number is rounded."""
        hot = [
            (scope, np.where(table > HARD, beta * np.where(table > HARD, table, 0.0), HARD))
            for scope, table in self.factors
        ]
        return self._replace(factors=tuple(hot), constant=beta * self.constant)

    def program(self) -> str:
        """What makes it again."""
        lines = [
            f"    ({scope}, np.array({table.tolist()!r})),".replace("inf", "np.inf") for scope, table in self.factors
        ]
        body = "\n".join(lines)
        names = f", names={[f'v{i}' for i in range(len(self.num_states))]}" if self.named else ""
        return (
            f"model = cz.Model.from_factors({list(self.num_states)}, [\n{body}\n], constant={self.constant!r}{names})"
        )

    def smaller(self) -> "list[Drawn]":
        """Models with a factor, a variable or a state less, or rounder numbers."""
        if self.alike:
            return [self._without(i) for i in range(len(self.num_states))]
        out = [self._replace(factors=self.factors[:k] + self.factors[k + 1 :]) for k in range(len(self.factors))]
        for i, states in enumerate(self.num_states):
            if not any(i in scope for scope, _ in self.factors):
                out.append(self._without(i))
            for kept in {states // 2, states - 1} - {0}:
                cut = tuple(
                    (scope, table.take(range(kept), axis=scope.index(i)) if i in scope else table)
                    for scope, table in self.factors
                )
                out.append(
                    self._replace(num_states=(*self.num_states[:i], kept, *self.num_states[i + 1 :]), factors=cut)
                )
        if self.constant:
            out.append(self._replace(constant=0.0))
        for k, (scope, table) in enumerate(self.factors):
            if not np.array_equal(rounded := np.round(table), table):
                out.append(self._replace(factors=(*self.factors[:k], (scope, rounded), *self.factors[k + 1 :])))
        return out

    def _without(self, i: int) -> "Drawn":
        """A variable less, and all of its factors."""
        moved = [(tuple(v - (v > i) for v in scope), table) for scope, table in self.factors if i not in scope]
        return self._replace(
            num_states=self.num_states[:i] + self.num_states[i + 1 :],
            factors=tuple(moved),
            alike=self.alike[:i] + self.alike[i + 1 :],
        )


def tables(
    rng: np.random.Generator, num_states: list[int], scopes: list[Scope], scale: float, zeros: float
) -> tuple[tuple[Scope, np.ndarray], ...]:
    """Independent entries, a share of them impossible."""
    out = []
    for scope in scopes:
        table = rng.normal(scale=scale, size=[num_states[i] for i in scope])
        out.append((scope, np.where(rng.random(table.shape) < zeros, HARD, table)))
    return tuple(out)


def some_states(rng: np.random.Generator, most: int, labels: int) -> list[int]:
    n = int(rng.integers(1, most + 1))
    num_states = rng.integers(1 if rng.random() < 0.2 else 2, labels + 1, size=n).tolist()
    while np.prod([float(k) for k in num_states]) > MOST_STATES:
        num_states.pop()
    return num_states


def pairs_of(rng: np.random.Generator, n: int) -> list[Scope]:
    density = rng.random()
    return [
        (i, j) if rng.random() < 0.5 else (j, i)
        for i, j in itertools.combinations(range(n), 2)
        if rng.random() < density
    ]


def picked(rng: np.random.Generator, n: int, size: int) -> Scope:
    return tuple(rng.choice(n, size=min(n, size), replace=False).tolist())


def pairwise(rng: np.random.Generator, *, scale: float | None = None, zeros: float = 0.0, labels: int = 4) -> Drawn:
    num_states = some_states(rng, 10, labels)
    scale = float(rng.choice([0.1, 1.0, 4.0, 20.0])) if scale is None else scale
    scopes = [(i,) for i in range(len(num_states))] + pairs_of(rng, len(num_states))
    factors = tables(rng, num_states, scopes, scale, zeros)
    return Drawn(tuple(num_states), factors, float(rng.normal()), bool(rng.random() < 0.1))


def binary(rng: np.random.Generator) -> Drawn:
    """Two states and any graph, up to cliques: the paper's."""
    return pairwise(rng, labels=2)


def attractive(rng: np.random.Generator) -> Drawn:
    """All edges pull together, or do when some variables are turned over: Bethe is a lower bound."""
    drawn = binary(rng)
    turned = rng.random(len(drawn.num_states)) < rng.choice([0.0, 0.5])
    pulled = []
    for scope, table in drawn.factors:
        if table.shape == (2, 2):
            w = float(rng.exponential(rng.choice([1e-9, 0.3, 2.0, 8.0, 300.0])))
            table = w * np.eye(2)[:, :: -1 if turned[scope[0]] != turned[scope[1]] else 1]
        pulled.append((scope, table))
    return drawn._replace(factors=tuple(pulled))


def hard_zeros(rng: np.random.Generator) -> Drawn:
    return pairwise(rng, zeros=float(rng.choice([0.05, 0.2, 0.5])))


def many_labels(rng: np.random.Generator) -> Drawn:
    """One to three variables of up to a thousand labels; integers, and equal entries."""
    n = int(rng.integers(1, 4))
    num_states = rng.integers(2, (1000, 70, 15)[n - 1] + 1, size=n).tolist()
    size = float(rng.choice([1.0, 1e3, 1e6, 1e9, 1e12]))
    factors: list[tuple[Scope, np.ndarray]] = []
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
    factors: list[tuple[Scope, np.ndarray]] = []
    for i in range(n):
        parents = sorted(picked(rng, i, int(rng.integers(0, 4)))) if i else []
        shape = [num_states[p] for p in parents]
        if rng.random() < 0.6 and parents:
            chosen = rng.integers(0, num_states[i], size=shape)
            table = np.where(np.arange(num_states[i]) == chosen[..., None], 0.0, HARD)
        else:
            table = np.log(rng.dirichlet(np.ones(num_states[i]), size=shape or None))
        factors.append(((*parents, i), np.asarray(table, dtype=float)))
    drawn = Drawn(tuple(num_states), tuple(factors), named=bool(rng.random() < 0.3))
    return drawn.given({i: int(rng.integers(num_states[i])) for i in range(n) if rng.random() < 0.2})


def huge(rng: np.random.Generator) -> Drawn:
    return pairwise(rng, scale=float(rng.choice([1e3, 1e6, 1e9, 1e12, 1e17])), zeros=float(rng.choice([0.0, 0.1])))


def tiny(rng: np.random.Generator) -> Drawn:
    return pairwise(rng, scale=float(rng.choice([1e-3, 1e-12, 1e-200, 1e-310])))


def every_size(rng: np.random.Generator) -> Drawn:
    """Entries of 1e-300 to 1e19 side by side."""
    drawn = pairwise(rng, zeros=float(rng.choice([0.0, 0.1])))
    most = float(rng.choice([0.0, 3.0, 15.0, 19.0]))
    spread = [
        (
            scope,
            np.sign(table)
            * np.where(
                np.isfinite(table), 10 ** rng.uniform(-300 if rng.random() < 0.3 else -15, most, table.shape), np.inf
            ),
        )
        for scope, table in drawn.factors
    ]
    return drawn._replace(factors=tuple(spread), constant=float(rng.choice([0.0, 1e19, -1e19, 1e-300])))


def cancelling(rng: np.random.Generator) -> Drawn:
    """Factors of one scope whose large entries cancel, and those of variables with those of their edges."""
    drawn = pairwise(rng, labels=3)
    extra = []
    for scope, table in drawn.factors:
        extra.append((scope, table))
        for _ in range(int(rng.integers(0, 3))):
            big = float(rng.choice([1e3, 1e9, 1e15, 1e17])) * rng.normal(size=table.shape)
            extra += [(scope, big), (scope, -big)]
        if len(scope) == 2 and rng.random() < 0.3:
            big = float(rng.choice([1e3, 1e9, 1e15])) * rng.normal(size=table.shape[:1])
            extra += [(scope[:1], big), (scope, np.repeat(-big[:, None], table.shape[1], axis=1))]
    order = rng.permutation(len(extra)) if rng.random() < 0.5 else range(len(extra))
    return drawn._replace(factors=tuple(extra[k] for k in order))


def isolated(rng: np.random.Generator) -> Drawn:
    """Variables without factors, variables of one state, factors over nothing, several components; perhaps nothing at
    all."""
    if rng.random() < 0.15:
        num_states = [1] * int(rng.integers(0, 3))
        scopes: list[Scope] = [(i,) for i in range(len(num_states))] + [()] * int(rng.integers(0, 3))
        return Drawn(tuple(num_states), tables(rng, num_states, scopes, 1.0, 0.1), float(rng.choice([0.0, 1e20, -3.5])))
    parts = [pairwise(rng, labels=2, zeros=float(rng.choice([0.0, 0.3]))) for _ in range(int(rng.integers(1, 3)))]
    num_states, factors = rng.integers(1, 4, size=2).tolist(), [((), np.array(float(rng.normal())))]
    for part in parts:
        if len(num_states) + len(part.num_states) > 13:
            continue
        factors += [(tuple(len(num_states) + i for i in scope), table) for scope, table in part.factors]
        num_states += part.num_states
    if rng.random() < 0.1:
        factors.append(((), np.array(HARD)))
    return Drawn(tuple(num_states), tuple(factors), parts[0].constant)


def chain(rng: np.random.Generator) -> Drawn:
    """Long and narrow: a tree with a few extra edges."""
    n, labels = int(rng.integers(20, 80)), int(rng.integers(2, 4))
    scopes: list[Scope] = [(i,) for i in range(n)] + [(i, i + 1) for i in range(n - 1)]
    scopes += [(i, i + 2) for i in range(n - 2) if rng.random() < 0.1]
    scale, zeros = float(rng.choice([0.5, 3.0, 30.0])), float(rng.choice([0.0, 0.02]))
    return Drawn((labels,) * n, tables(rng, [labels] * n, scopes, scale, zeros))


def strip(rng: np.random.Generator) -> Drawn:
    """A grid of a few rows, where clamps leave components and no narrow part holds all."""
    rows, columns, labels = int(rng.integers(2, 4)), int(rng.integers(6, 15)), 2
    place = np.arange(rows * columns).reshape(columns, rows)
    scopes: list[Scope] = [(i,) for i in range(place.size)]
    scopes += [*zip(place[:-1].ravel().tolist(), place[1:].ravel().tolist(), strict=True)]
    scopes += [*zip(place[:, :-1].ravel().tolist(), place[:, 1:].ravel().tolist(), strict=True)]
    scale, zeros = float(rng.choice([0.5, 3.0, 1e5])), float(rng.choice([0.0, 0.02]))
    return Drawn((labels,) * place.size, tables(rng, [labels] * place.size, scopes, scale, zeros))


def alike(rng: np.random.Generator) -> Drawn:
    """Wide: up to thirty variables, most of them tied to each other, of a few sorts that can be counted."""
    sizes = rng.integers(2, 11, size=int(rng.integers(1, 4)))
    sort = rng.permutation(np.repeat(np.arange(len(sizes)), sizes)).tolist()
    scale = float(rng.choice([0.05, 0.3, 1.0, 5.0, 1e4, 1e10]))
    own = rng.normal(size=(len(sizes), 2)) * scale * rng.choice([0.1, 1.0, 5.0])
    ties = rng.normal(size=(len(sizes), len(sizes), 2, 2)) * scale * (rng.random((len(sizes), len(sizes), 1, 1)) < 0.8)
    ties = ties + ties.transpose(1, 0, 3, 2)
    factors = [((i,), own[a]) for i, a in enumerate(sort)]
    factors += [((i, j), ties[sort[i], sort[j]]) for i, j in itertools.combinations(range(len(sort)), 2)]
    return Drawn((2,) * len(sort), tuple(factors), alike=tuple(sort))


def larger(rng: np.random.Generator) -> Drawn:
    """Factors of three to five variables beside pairs, some of them with few entries that are possible, some twice."""
    num_states = some_states(rng, 9, 3)
    n = len(num_states)
    scopes = [(i,) for i in range(n)] + pairs_of(rng, n)
    for _ in range(int(rng.integers(1, 5))):
        scopes.append(picked(rng, n, int(rng.integers(3, 6))))
        if rng.random() < 0.2:
            scopes.append(tuple(rng.permutation(scopes[-1]).tolist()))
    scale, zeros = float(rng.choice([0.3, 2.0, 10.0, 1e9])), float(rng.choice([0.0, 0.2, 0.5, 0.8]))
    return Drawn(tuple(num_states), tables(rng, num_states, scopes, scale, zeros), float(rng.normal()))


def clauses(rng: np.random.Generator) -> Drawn:
    """Boolean variables, each clause forbidding one joint state of two or three of them; some have Z = 0."""
    n = int(rng.integers(2, 11))
    factors: list[tuple[Scope, np.ndarray]] = [((i,), rng.normal(size=2)) for i in range(n) if rng.random() < 0.5]
    for _ in range(int(rng.integers(1, 5 * n))):
        scope = picked(rng, n, int(rng.integers(1, 4)))
        table = np.zeros((2,) * len(scope))
        table[tuple(rng.integers(0, 2, size=len(scope)))] = HARD
        factors.append((scope, table))
    return Drawn((2,) * n, tuple(factors), float(rng.choice([0.0, 1e3, 1e15, -1e15])))


def contradictory(rng: np.random.Generator) -> Drawn:
    """Parities and colourings that are hard to satisfy, or just not: Z = 0 that arc consistency does not see."""
    n, labels = int(rng.integers(3, 7)), int(rng.integers(2, 4))
    cycle = [(i, (i + 1) % n) for i in range(n)] + (pairs_of(rng, n) if rng.random() < 0.5 else [])
    differ = np.where(np.eye(labels, dtype=bool), HARD, 0.0)
    size = float(rng.choice([0.0, 1.0, 1e6]))
    factors = [(scope, differ + size * rng.normal(size=differ.shape)) for scope in cycle]
    if rng.random() < 0.3:
        parity = np.where(np.indices((labels,) * 3).sum(axis=0) % 2 == int(rng.integers(2)), HARD, 0.0)
        factors += [(picked(rng, n, 3), parity) for _ in range(3)]
    return Drawn((labels,) * n, tuple(factors), float(rng.choice([0.0, 1e20, -1e20, 6e19, 3.25])))


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
        every_size,
        cancelling,
        isolated,
        chain,
        strip,
        alike,
        larger,
        clauses,
        contradictory,
    )
}
