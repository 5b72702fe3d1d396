"""A component of a model on its way to its maximum: a configuration below, a bound above, and a search between."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.descent import SECONDS_PER_ENTRY
from clampz.approximations.mini_buckets.structure import ENDLESS, Structure, building_seconds
from clampz.errors import TooWideError
from clampz.map_inference.branch_and_bound import BestFirst
from clampz.map_inference.heuristics import EVALUATIONS, STRENGTHS, Heuristic, heuristic
from clampz.map_inference.local_search import States, Terms, first_states, largest_sum, num_bytes, score_of
from clampz.model import Model
from clampz.numerics import Integers
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.workers import Workers

# Entries of the first tables, how many times more the next ones have, and at most.
FIRST_TABLE, GROWTH, LARGEST_TABLE = 2**8, 8, 2**26
# Structures of each table size.
NUM_STRUCTURES = 2
# Seconds that tables take for each entry, and terms for each number; the shares of the time left that structures and
# terms may take, the bounds of one table size, and an exact maximum at first.
TABLE_SECONDS, TERM_SECONDS = 1e-7, 1.5e-8
BUILDING_SHARE, TERMS_SHARE, BOUNDS_SHARE, EXACT_SHARE = 0.25, 0.5, 0.3, 0.05
# Shares of the memory: of terms at most, and of what they leave, of structures with their tables and of open nodes.
TERMS_MEMORY, TABLES_MEMORY, NODES_MEMORY = 0.5, 0.5, 0.25
# Seconds of a node of a search; nodes after each table size at least, and at a time.
NODE_SECONDS, LEAST_NODES, NODES_AT_A_TIME = 5e-7, 2**12, 2**15
# Sweeps of the first annealing, which double for each after it NUM_DOUBLINGS times; and the share of the time left that
# one may take.
FIRST_SWEEPS, NUM_DOUBLINGS, ANNEALING_SHARE = 100, 5, 0.1
# Kicks for each variable after a table size, and at most; those of one turn beside a search, and how many turns apart.
KICKS_PER_VARIABLE, MOST_KICKS, KICKS_OF_A_TURN, CLIMBS_EVERY = 20, 10_000, 1_000, 4


class Limits(NamedTuple):
    """The limits of a run: nats between the ends that are as good as none, configurations wanted, bytes, and a seed."""

    gap: float
    num_best: int
    num_bytes: float
    seed: int


@dataclass(eq=False)
class Component:
    """A component, without the model's constant unless it is all of the model.

    Attributes
    ----------
    variables
        Which variables of the whole its own are.
    found
        The best configurations so far with their scores, best first: none where none was possible.
    upper
        Certified: no configuration scores more.
    is_done
        Nothing is left that is better by more than the gap, but for rounding.
    lacks_memory
        More could be done about it with more memory.
    """

    model: Model
    variables: Integers
    limits: Limits
    found: list[tuple[float, States]]
    upper: float
    is_done: bool = False
    lacks_memory: bool = False
    _terms: Terms | None = None
    _search: BestFirst | None = None
    _num_climbs: int = 0

    @classmethod
    def of(cls, model: Model, variables: Integers, limits: Limits) -> "Component":
        part = cls(model, variables, limits, [], largest_sum(model))
        part.take(first_states(model))
        part._bound_by(part.upper)
        part.is_done = part.is_done or not model.num_variables
        return part

    @property
    def lower(self) -> float:
        return self.found[0][0] if self.found else -math.inf

    @property
    def gap(self) -> float:
        return 0.0 if self.is_done or self.upper <= self.lower else self.upper - self.lower

    def try_exactly(self, budget: Budget) -> None:
        """The maximum, or the best few, where no bucket need be split."""
        if self._too_late(budget):
            return
        try:
            structure = self._structure(ENDLESS, 0, 1, budget.share(BUILDING_SHARE))
            if TABLE_SECONDS * structure.num_entries < budget.left(EXACT_SHARE):
                self.search_by(heuristic(self.model, budget, 1.0, structure))
                self.search(budget, NODES_AT_A_TIME + 2 * self.model.num_variables)
        except (TooWideError, Cancelled):
            pass  # buckets will be split

    def climb(self, budget: Budget, num_kicks: int) -> None:
        """Search locally from the best so far, and from where annealing leads."""
        if self.is_done or not self._has_terms(budget):
            return
        terms = self._terms
        assert terms is not None
        begin = self.found[0][1] if self.found else first_states(self.model)
        rng = np.random.default_rng([self.limits.seed, self._num_climbs])
        num_sweeps = FIRST_SWEEPS * 2 ** min(self._num_climbs, NUM_DOUBLINGS)
        num_sweeps = int(min(num_sweeps, budget.left(ANNEALING_SHARE) / terms.sweep_seconds))
        self._num_climbs += 1
        self.take(terms.climb(begin, num_kicks, rng, budget))
        if num_sweeps >= FIRST_SWEEPS and not budget.must_stop():
            self.take(terms.anneal(begin, num_sweeps, rng, budget))

    def bound(self, budget: Budget, workers: Workers, tell: Callable[[], object]) -> None:
        """Bound from above with growing tables, each time with a search of about as long, as time and memory allow.

        There is nothing to do where a bound is exact.
        """
        max_table, best = FIRST_TABLE, self._search.heuristic if self._search is not None else None
        if best is not None and best.is_exact:
            return
        while not self.is_done and max_table <= LARGEST_TABLE and not self._too_late(budget):
            self._search = None
            try:
                structures = [self._structure(max_table, k, NUM_STRUCTURES, budget) for k in range(NUM_STRUCTURES)]
                seconds = sum(self._seconds(each) for each in structures)
                share = min(1.0, budget.left(BOUNDS_SHARE) / seconds)
                if max_table > FIRST_TABLE and share < 1.0:
                    break
                bounds = workers.map(partial(heuristic, self.model, budget, share), structures)
            except (TooWideError, Cancelled) as error:
                self.lacks_memory = self.lacks_memory or isinstance(error, TooWideError)
                break
            newest = min(bounds, key=lambda each: each.upper)
            if best is None or newest.upper < best.upper:
                best = newest
            self.search_by(best)
            tell()
            num_nodes = max(LEAST_NODES, int(seconds / NODE_SECONDS)) + 2 * self.model.num_variables
            self.search(budget, num_nodes, tell)
            self.climb(budget, min(KICKS_PER_VARIABLE * self.model.num_variables, MOST_KICKS))
            tell()
            if newest.is_exact:
                return
            max_table *= GROWTH
        if self._search is None and best is not None:
            self.search_by(best)

    def search(self, budget: Budget, num_nodes: int, tell: Callable[[], object] = lambda: None) -> None:
        """Look at `num_nodes` more of the search that is under way."""
        search = self._search
        while search is not None and not self.is_done and num_nodes > 0 and not budget.must_stop():
            some = min(num_nodes, NODES_AT_A_TIME)
            lower = self.lower if self.limits.num_best == 1 else -math.inf
            search.step(some, self.limits.gap, budget, lower=lower)
            num_nodes -= some
            self.take(*search.found)
            self._bound_by(search.upper)
            self.is_done |= search.is_done
            tell()

    def step(self, budget: Budget, num_turns: int) -> bool:
        """Do a little more of what can be done without end, mostly search; False where there is nothing."""
        if self._search is not None and num_turns % CLIMBS_EVERY:
            self.search(budget, NODES_AT_A_TIME)
            return True
        self.climb(budget, KICKS_OF_A_TURN)
        return self._search is not None or self._terms is not None

    def _bound_by(self, upper: float) -> None:
        """Lower the upper end, as no configuration that was not found scores more."""
        self.upper = min(self.upper, max(upper, self.lower))
        closed = self.limits.num_best == 1 and self.upper - self.lower <= self.limits.gap
        self.is_done = self.is_done or closed or self.upper == -math.inf

    def search_by(self, bound: Heuristic) -> None:
        """Begin a search that goes by a bound."""
        self._bound_by(bound.upper)
        if math.isfinite(bound.error) and not self.is_done:
            self._search = BestFirst.of(bound, self.limits.num_best, NODES_MEMORY * self._room)

    def _structure(self, max_table: int, number: int, of: int, budget: Budget) -> Structure:
        seed = self.limits.seed + number if number else 0
        most_bytes = int(TABLES_MEMORY * self._room / of)
        return Structure.of(self.model, max_table, seed=seed, most_bytes=most_bytes, budget=budget)

    def _seconds(self, structure: Structure) -> float:
        """Return the seconds that the bound of a structure takes, about."""
        passes = 1 if structure.num_cliques == self.model.num_variables else len(STRENGTHS) * EVALUATIONS
        return structure.num_entries * (TABLE_SECONDS + SECONDS_PER_ENTRY * passes)

    def _too_late(self, budget: Budget) -> bool:
        return building_seconds(self.model) > budget.left(BUILDING_SHARE) or budget.must_stop()

    def _has_terms(self, budget: Budget) -> bool:
        """Whether there is memory and time for local search."""
        if self._terms is None:
            size = num_bytes(self.model)
            self.lacks_memory = self.lacks_memory or size > TERMS_MEMORY * self.limits.num_bytes
            if not self.lacks_memory and TERM_SECONDS * size / 8 <= budget.left(TERMS_SHARE):
                with suppress(Cancelled):
                    self._terms = Terms.of(self.model, budget)
        return self._terms is not None

    @property
    def _room(self) -> float:
        """Bytes for tables and nodes."""
        return self.limits.num_bytes - (0 if self._terms is None else num_bytes(self.model))

    def take(self, *configurations: States) -> None:
        """Keep configurations that are possible and among the best so far."""
        found = {states.tobytes(): (score, states) for score, states in self.found}
        for states in configurations:
            if (key := states.tobytes()) not in found and (score := score_of(self.model, states)) > -math.inf:
                found[key] = score, states.copy()
        self.found = sorted(found.values(), key=lambda each: -each[0])[: self.limits.num_best]
        self._bound_by(self.upper)
