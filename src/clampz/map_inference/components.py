"""A component of a model on its way to its maximum: configurations below, a bound above, and a search between."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.structure import ENDLESS, Structure, building_seconds
from clampz.errors import TooWideError
from clampz.map_inference.branch_and_bound import BestFirst
from clampz.map_inference.heuristics import ELIMINATION_SECONDS, Heuristic, heuristic
from clampz.map_inference.local_search import States, Terms, first_states, largest_sum, num_bytes, score_of
from clampz.model import Model
from clampz.model.components import component, component_labels
from clampz.numerics import Integers
from clampz.runtime.budget import Budget, Cancelled

# The share of the time left that a structure may take, that tables may take, and those of an exact maximum.
BUILDING_SHARE, TABLES_SHARE, EXACT_SHARE = 0.25, 0.3, 0.05
# Shares of the memory: of terms of local search, and of what they leave, of structures with their tables and of nodes.
TERMS_MEMORY, TABLES_MEMORY, NODES_MEMORY = 0.5, 0.5, 0.25
# Components that are parts of their own at most; beyond, several are one.
MOST_PARTS = 256
# Bytes for each table entry of components, which are models of their own.
BYTES_PER_ENTRY = 12


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
    search
        The branch and bound that goes by the best bound so far.
    terms, num_anneals
        What local search goes by once it has begun, and how many annealings have begun.
    max_table
        Entries of the tables of the last bound.
    """

    model: Model
    variables: Integers
    limits: Limits
    found: list[tuple[float, States]]
    upper: float
    is_done: bool = False
    search: BestFirst | None = None
    terms: Terms | None = None
    num_anneals: int = 0
    max_table: int = 0

    @classmethod
    def of(cls, model: Model, variables: Integers, limits: Limits) -> "Component":
        """Begin with the configuration and the bound that one pass over the tables gives."""
        part = cls(model, variables, limits, [], largest_sum(model))
        part.take(first_states(model))
        part.is_done = part.is_done or not model.num_variables
        return part

    @property
    def lower(self) -> float:
        return self.found[0][0] if self.found else -math.inf

    @property
    def gap(self) -> float:
        return 0.0 if self.is_done or self.upper <= self.lower else self.upper - self.lower

    @property
    def is_exact(self) -> bool:
        """Whether the search goes by a bound that is the maximum, so that no better one is wanted."""
        return self.search is not None and self.search.heuristic.is_exact

    @property
    def has_room(self) -> bool:
        """Whether there is memory for local search."""
        return num_bytes(self.model) <= TERMS_MEMORY * self.limits.num_bytes

    @property
    def begin(self) -> States:
        """The configuration to search from."""
        return self.found[0][1] if self.found else first_states(self.model)

    def take(self, *configurations: States) -> None:
        """Keep configurations that are possible and among the best so far."""
        found = {states.tobytes(): (score, states) for score, states in self.found}
        for states in configurations:
            if (key := states.tobytes()) not in found and (score := score_of(self.model, states)) > -math.inf:
                found[key] = score, states.copy()
        self.found = sorted(found.values(), key=lambda each: -each[0])[: self.limits.num_best]
        self.bound_by(self.upper)

    def bound_by(self, upper: float) -> None:
        """Lower the upper end, as no configuration that was not found scores more."""
        self.upper = min(self.upper, max(upper, self.lower))
        closed = self.limits.num_best == 1 and self.upper - self.lower <= self.limits.gap
        self.is_done = self.is_done or closed or self.upper == -math.inf

    def search_by(self, bound: Heuristic) -> None:
        """Begin a search that goes by a bound."""
        self.bound_by(bound.upper)
        if math.isfinite(bound.error) and not self.is_done:
            self.search = BestFirst.of(bound, self.limits.num_best, NODES_MEMORY * self.room)

    def search_on(self, num_nodes: int, budget: Budget) -> None:
        """Look at this many more nodes of the search."""
        assert self.search is not None
        lower = self.lower if self.limits.num_best == 1 else -math.inf
        self.search.step(num_nodes, self.limits.gap, budget, lower=lower)

    def take_search(self) -> None:
        """Take what the search has found and proven."""
        assert self.search is not None
        self.take(*self.search.found)
        self.bound_by(self.search.upper)
        self.is_done |= self.search.is_done

    @property
    def room(self) -> float:
        """Bytes for tables and nodes."""
        return self.limits.num_bytes - (0 if self.terms is None else num_bytes(self.model))

    def structure(self, max_table: int, number: int, of: int, budget: Budget) -> Structure:
        """Return one `of` several structures; TooWideError or Cancelled where memory or time do not suffice."""
        if building_seconds(self.model) > budget.left(BUILDING_SHARE):  # not all of which could be cancelled
            raise Cancelled
        seed, within = self.limits.seed + number if number else 0, budget.share(BUILDING_SHARE)
        most_bytes = int(TABLES_MEMORY * self.room / of)
        return Structure.of(self.model, max_table, seed=seed, most_bytes=most_bytes, budget=within)

    def eliminate(self, budget: Budget) -> Heuristic | None:
        """Return the bound that is the maximum, where no bucket need be split; None where that does not fit."""
        with suppress(TooWideError, Cancelled):  # buckets will be split
            structure = self.structure(ENDLESS, 0, 1, budget)
            if ELIMINATION_SECONDS * structure.num_entries < budget.left(EXACT_SHARE):
                return heuristic(self.model, budget, 1.0, structure)
        return None

    def split(self, budget: Budget) -> "list[Component] | None":
        """Split into components with what was found of the whole; None where that does not fit, or there is but one."""
        model, limits = self.model, self.limits
        if BYTES_PER_ENTRY * (len(model.pairwise.flat) + len(model.factors.flat)) > limits.num_bytes:
            return None
        labels = component_labels(model)
        sizes = np.bincount(labels)
        if len(sizes) < 2:
            return None
        number = np.empty(len(sizes), dtype=np.int64)
        number[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes)) % MOST_PARTS
        of = number[labels]
        parts = []
        for k in range(int(of.max()) + 1):
            if budget.must_stop():
                return None
            variables = np.flatnonzero(of == k)
            share = len(variables) / model.num_variables
            own = limits._replace(gap=limits.gap * share, num_bytes=limits.num_bytes * share)
            part = Component.of(component(model, variables), variables, own)
            if self.found:
                part.take(self.found[0][1][variables])
            parts.append(part)
        return parts
