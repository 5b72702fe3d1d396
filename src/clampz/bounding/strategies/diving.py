"""Dives: a lower bound where hard zeros leave none to others, from sets of configurations that are summed exactly.

A dive fixes variables to their likeliest states until the rest is narrow enough to be summed; the sum is a lower bound.
Every variable that it fixes leaves a set behind, the configurations in which that variable is in another state.  These
sets are disjoint: the next dive begins in the likeliest of them, and its sum is added.  When none waits, all of Z is
summed.

Zeros are followed after every decision (`simplify`), so that the states of many other variables follow; a dive that has
no way on turns back at its last decision.  Variables are fixed that lose least for what they take from the sum.  On
pedigrees of a thousand variables that left a quarter of the loss, in nats, of fixing what takes most from the sum.
"""

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.clique_tables import has_zeros
from clampz.bounding.conditioning import Conditioning, DisjointSums
from clampz.errors import TooWideError
from clampz.exact_inference.cuts import Cuts
from clampz.exact_inference.lanes import ExactOptions, run_exact
from clampz.exact_inference.orders import EliminationOrder, find_order, quick_order
from clampz.exact_inference.scopes import NO_LIMIT, Scopes
from clampz.exact_inference.slicing import MOST_VARIABLES
from clampz.exact_inference.sums import lay_out_lanes
from clampz.exact_inference.trees import SumTree
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.numerics import Floats, Integers
from clampz.presolve.simplified import Simplified
from clampz.presolve.simplify import simplify
from clampz.runtime.budget import Budget, Cancelled

# Table entries of one sum at most; or this many per variable, where that is more.
LARGEST_SUM, LARGEST_PER_VARIABLE = 2.0**24, 64.0
# What is planned may have this many times the entries along its order: contracted, it may take less.
MOST_GAINED = 64.0
# In nats: what fixing a variable loses at least, however sure its state is thought to be.  One that is sure and narrows
# next to nothing is not fixed before one that does.
LEAST_LOSS = 0.05
# The least belief of a state that is possible.
LEAST_BELIEF = 1e-12
# Variables that are decided between two simplifications: one in SHARE; and one in SHARE_IF_WIDE where no order comes to
# an end, so that nobody knows what narrows anything.
SHARE, SHARE_IF_WIDE = 100, 8
# Contradictions on the way to the first sum, after which all begins again; more than twice as many the next time.
PATIENCE = 8
# Share of the time of the first dive in which an order of the whole is looked for.
ORDER_TIME = 0.1
# DisjointSums of configurations that wait at most: beyond, the less likely half is forgotten.
MOST_WAITING = 2**16


class Diving(Conditioning):
    """Dives by the beliefs of the whole's mini-buckets, where there are hard zeros."""

    name = "diving"

    def choose(self, budget: Budget) -> DisjointSums | None:
        """Choose the sets as soon as there are beliefs."""
        problem, halving = self.problem, self.problem.halving
        self.is_done = not (problem.options.exact and has_zeros(problem.rest))
        if self.is_done or halving is None or halving.state is None or halving.mini_buckets is None:
            return None
        return Dives(problem.rest, halving.state.beliefs, memory=problem.worker_bytes)


class Decision(NamedTuple):
    """A variable that is in this state, or is not, and what was decided before."""

    variable: int
    state: int
    holds: bool
    before: "Decision | None"


class Waiting(NamedTuple):
    """Configurations by what is decided about them, and how many nats below log Z their sum is expected.

    `number` only tells them apart.
    """

    loss: float
    number: int
    decided: Decision | None


class Dives(DisjointSums):
    """Sums over disjoint sets of a model's configurations, found by fixing variables to their likeliest states.

    Parameters
    ----------
    model
        With any factors, reduced by presolve.
    beliefs
        (S,) of the states of its variables, from any method: the better, the more of Z is in the first sums.
    max_table
        Table entries of one sum.
    memory
        In bytes.

    Attributes
    ----------
    num_contradictions
        DisjointSums of configurations that were found to be impossible.
    """

    def __init__(
        self, model: Model, beliefs: Floats, *, max_table: float = LARGEST_SUM, memory: float = math.inf
    ) -> None:
        super().__init__()
        self.model, self.memory = model, memory
        self.num_contradictions = 0
        self._max_entries = max(max_table, LARGEST_PER_VARIABLE * model.num_variables)
        self._beliefs = np.where(beliefs > LEAST_BELIEF, beliefs, LEAST_BELIEF)
        self._begun, self._place = False, np.empty(0, dtype=np.int64)
        self._waiting = [Waiting(0.0, 0, None)]
        self._num_decisions, self._patience, self._rng = 0, PATIENCE, np.random.default_rng(0)
        self._forgotten = False
        self._has_zeros = has_zeros(model)

    def expected(self, seconds: float) -> float:
        """Return inf: nobody knows what a dive brings before it is made."""
        return math.inf

    def step(self, budget: Budget) -> float:
        """Dive once, down to a sum, and return the lower end of log Z by all of them.

        Where the budget ends first, the next dive goes on from there.
        """
        if not self._begun:
            self._begin(budget.share(ORDER_TIME))
        path = [heapq.heappop(self._waiting)] if self._waiting else []
        num_turns = 0
        while path and not budget.must_stop() and not self._dive(path, budget):
            self.num_contradictions += 1
            num_turns += 1
            if num_turns > self._patience and not self.num_sums:
                path = self._begin_again()
        for each in path:
            heapq.heappush(self._waiting, each)
        if len(self._waiting) > MOST_WAITING:
            self._waiting, self._forgotten = heapq.nsmallest(MOST_WAITING // 2, self._waiting), True
        self.is_over = not self._waiting
        self.complete = self.is_over and not self._forgotten
        return self.lower

    def _begin(self, budget: Budget) -> None:
        """Look for an order of the whole; where there is no memory for a copy of the model, nothing will be summed.

        `_place` (n,) is each variable's place in the order, or (0,) where none comes to an end.
        """
        self._begun, scopes = True, Scopes.of(self.model)
        if 2 * scopes.num_bytes > self.memory:
            self._waiting, self._forgotten = [], True
        elif len(scopes.num_states) <= MOST_VARIABLES:
            order = find_order(scopes.num_states, *scopes.neighbours(), budget)
            self._place = self._place if math.isinf(order.total) else np.argsort(order.variables)

    def _begin_again(self) -> list[Waiting]:
        """Return the path from the whole, after nothing but contradictions came of the likeliest states.

        Others are drawn in their place by the beliefs, which count less each time.
        """
        self._patience, self._waiting = 2 * self._patience + 1, []
        drawn = self._rng.gumbel(size=len(self._beliefs))
        self._beliefs = np.exp(np.log(self._beliefs) / 2 + drawn)
        return [Waiting(0.0, 0, None)]

    def _dive(self, path: list[Waiting], budget: Budget) -> bool:
        """Dive from the last set of the path, leaving sets behind on it; False where nothing in it is possible.

        Where the budget ends first, the path ends with the set that was reached.
        """
        made = [path.pop()]  # one more decision each, since zeros were followed
        most_planned, place = self._max_entries * MOST_GAINED, self._place
        while True:
            here = made[-1]
            rest = simplify(self._given(here.decided), marginals=False, budget=budget)
            if rest.infeasibility and len(made) > 2:  # one of several is wrong: half of them are made
                num_wrong = len(made) // 2
                del made[-num_wrong:], path[-num_wrong:]
                continue
            if rest.infeasibility:
                return False
            order, cuts = self._order(rest, place, budget)
            if budget.must_stop():
                break
            try:
                plan = self._plan(rest, order, budget) if order.total <= most_planned else None
                if plan is not None and plan.visits <= self._max_entries:
                    return self._sum(rest, plan, budget)
            except Cancelled:
                break
            if order.total <= most_planned:  # it is planned again when it is as much smaller as it has to be
                most_planned = order.total * min(0.5, self._max_entries / plan.visits if plan else 0.5)
            if cuts is not None:
                place = np.full(self.model.num_variables, -1)
                place[rest.variables[order.variables]] = np.arange(len(order.variables))
            made = [here]
            for variable, state, belief in self._decide(rest, order, cuts):
                self._num_decisions += 1
                others = Decision(variable, state, False, here.decided)
                path.append(Waiting(here.loss - math.log(max(1 - belief, LEAST_BELIEF)), self._num_decisions, others))
                this = Decision(variable, state, True, here.decided)
                here = Waiting(here.loss - math.log(belief), self._num_decisions, this)
                made.append(here)
        path.append(here)
        return True

    def _given(self, decided: Decision | None) -> Model:
        """Return the model with all but some states of the decided variables ruled out."""
        start, flat = self.model.unary.start, self.model.unary.flat.copy()
        while decided is not None:
            i, a = decided.variable, start[decided.variable] + decided.state
            if decided.holds:
                flat[start[i] : a] = -np.inf
                flat[a + 1 : start[i + 1]] = -np.inf
            else:
                flat[a] = -np.inf
            decided = decided.before
        return Model.from_contents(self.model.contents._replace(unary=flat, names=None, state_names=None))

    def _order(self, rest: Simplified, place: Integers, budget: Budget) -> tuple[EliminationOrder, Cuts | None]:
        """Return the best of a quick order, that of the whole and the last one of this dive, and its tables.

        There are no tables where no order comes to an end, or the model is too large for them.
        """
        model = rest.model
        n, edges = model.num_variables, _edges(model)
        order = quick_order(edges, np.log2(model.num_states), np.ones(n, dtype=np.bool_), math.inf, budget)
        if n > MOST_VARIABLES or budget.must_stop():
            return order, None
        found = [] if math.isinf(order.total) else [order.variables]
        found += [np.argsort(each[rest.variables]) for each in (self._place, place) if each.size]
        cuts = [Cuts(EliminationOrder(variables, 0.0, 0.0), model.num_states, edges) for variables in found]
        best = min(cuts, key=lambda each: each.order.total, default=None)
        return (order, None) if best is None else (best.order, best)

    def _plan(self, rest: Simplified, order: EliminationOrder, budget: Budget) -> SumTree | None:
        """Plan the sum of the rest, if there is memory for it; Cancelled where the budget ends first."""
        memory = int(min(self.memory, NO_LIMIT))
        try:
            return lay_out_lanes(Batch.of(rest.model), memory, marginals=False, order=order, budget=budget)
        except TooWideError:
            return None

    def _sum(self, rest: Simplified, plan: SumTree, budget: Budget) -> bool:
        """Add the sum of the rest; False where it is zero, Cancelled where the budget ends first."""
        found = run_exact(Batch.of(rest.model), ExactOptions(marginals=False, threads=1), budget, plan)
        if not found.converged[0]:
            raise Cancelled
        if found.log_z[0] == -math.inf:
            return False
        lower, upper = rest.bounds(float(found.lower[0]), float(found.upper[0]))
        self.add(lower, upper)
        return True

    def _decide(self, rest: Simplified, order: EliminationOrder, cuts: Cuts | None) -> Iterator[tuple[int, int, float]]:
        """Yield the variables to fix next, with their likeliest states and the beliefs of these."""
        model, start, edges = rest.model, rest.model.unary.start, _edges(rest.model)
        n = model.num_variables
        rows = np.repeat(self.model.unary.start[rest.variables], model.num_states) + rest.states_left
        beliefs = np.where(model.unary.flat > -np.inf, self._beliefs[rows], 0.0)
        beliefs /= np.repeat(np.add.reduceat(beliefs, start[:-1]), model.num_states)
        price = LEAST_LOSS - np.log(np.maximum.reduceat(beliefs, start[:-1]))
        chosen = cuts.fix_some(max(1, n // SHARE), price) if cuts is not None else []
        if not chosen:
            wide = np.delete(np.arange(n), order.variables if math.isinf(order.total) else [])
            degree = np.bincount(edges.ravel(), minlength=n)[wide]
            count = max(1, len(wide) // SHARE_IF_WIDE)
            chosen = wide[np.argsort(price[wide] / np.maximum(degree, 1), kind="stable")[:count]].tolist()
        for i in _apart(chosen, n, edges) if self._has_zeros else chosen:
            state = int(np.argmax(beliefs[start[i] : start[i + 1]]))
            row = start[i] + state
            yield int(rest.variables[i]), int(rest.states_left[row]), float(beliefs[row])


def _edges(model: Model) -> Integers:
    """(m, 2) every pair of variables that share a factor."""
    return Scopes.of(model).edges() if model.factors else model.edges.astype(np.int64)


def _apart(chosen: list[int], n: int, edges: Integers) -> list[int]:
    """Drop variables that share a factor with an earlier one: its state says most about its neighbours."""
    if len(chosen) == 1:
        return chosen
    rank = np.full(n, n)
    rank[chosen] = np.arange(len(chosen))
    pairs = rank[edges].max(axis=1)
    taken = np.ones(n + 1, dtype=np.bool_)
    taken[pairs] = False
    return [i for k, i in enumerate(chosen) if taken[k]]
