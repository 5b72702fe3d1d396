"""Cutset conditioning: a lower bound from exact sums over the likeliest joint states of a few variables.

Without the cutset the rest of the model is narrow.  Its joint states are disjoint sets of configurations, and lanes of
one plan.  Draws from an upper bound tell which are likely: the weights of the draws that have a joint state add up to
its share of Z.  Which variables to take decides: of the lines of a torus, the twenty likeliest states of the best hold
two thirds of Z, those of the worst an eighth.  So variables are fixed along several orders, each time that which says
least for what it narrows.  The draws then tell how much of Z as many sums would have as there is time for.
"""

import heapq
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from clampz.approximations.mini_buckets.clique_tables import has_zeros
from clampz.approximations.mini_buckets.proposals import Draws, States
from clampz.bounding.conditioning import Conditioning, DisjointSums
from clampz.bounding.leaves.proposal_source import SEED_BITS, ProposalSource
from clampz.errors import TooWideError
from clampz.exact_inference.cuts import Cuts
from clampz.exact_inference.lanes import ExactOptions, run_exact
from clampz.exact_inference.orders import EliminationOrder, find_order, quick_order
from clampz.exact_inference.scopes import NO_LIMIT, Scopes, least_bytes
from clampz.exact_inference.slicing import MOST_VARIABLES
from clampz.exact_inference.sums import lay_out_lanes
from clampz.exact_inference.trees import SumTree
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled

# Shares of the first round: until the draws end, until orders and what to fix along them do, and until plans do.
DRAWS_SHARE, ORDERS_SHARE, PLANS_SHARE = 0.25, 0.7, 0.8
MOST_ORDERS, MOST_PLANS = 16, 6
# Draws that cutsets are chosen by, at most.
MOST_DRAWS = 2**15
# Variables are fixed one at a time where sums have at most this many entries; beyond, one in SHARE of all at once.
FEW_ENTRIES, SHARE = 2.0**32, 50
# Sums of fewer entries take no less, about.
LEAST_ENTRIES = 2.0**14
# Seconds per entry of an order that a sum takes where none has been timed: contracted, a tenth of what a sweep would;
# sums that show how long they take; and seconds of a sum of no entries.
PACE, NUM_TIMED, SECONDS_PER_SUM = 1e-9, 2, 2e-4
# No share of Z is less.
LEAST_WEIGHT = 1e-300
# In nats: what a variable says at least, however sure its state is thought to be.
LEAST_ENTROPY = 0.02
# The share of the sums' time that draws may take, and sums that are done at a time at most: each time there is memory
# to be had first.
DRAWING_SHARE, MOST_AT_ONCE = 0.15, 256
# Blocks of draws in a row that bring no new state, after which there is nothing left to sum.
MOST_IDLE = 8
# Joint states that wait at most: beyond, the less likely half is forgotten.
MOST_WAITING = 2**17
# Seconds of a run in which a cutset is worth looking for: in less, mini-buckets make more of the time it takes; and the
# share of the time left that its sums are expected to have.
LEAST_RUN, CUTSET_SHARE = 5.0, 0.35
# Without exact sums of the whole: the share of a cutset's joint states that may be summed.
PART = 0.5
# Which of the numbers beyond the caller's seed are drawn here.
NUMBER = 3


class Cutset(Conditioning):
    """Sums the joint states of a cutset, where there are no hard zeros and mini-buckets are as good as they get."""

    name = "cutset"

    def choose(self, budget: Budget) -> DisjointSums | None:
        """Choose the sets once there is a bound to draw from; a model that is summed in slices needs no cutset."""
        problem, options = self.problem, self.problem.options
        halving, facts = problem.halving, problem.facts
        self.is_done = has_zeros(problem.rest) or budget.used + budget.left() < LEAST_RUN
        if self.is_done or not facts.is_bounded or not facts.is_planned or facts.is_summing:
            return None
        if halving is None or halving.state is None or halving.mini_buckets is None or halving.upper == math.inf:
            self.is_done = True
            return None
        return CutsetSums(
            problem.rest,
            ProposalSource(halving.mini_buckets, halving.state.above),
            seconds=budget.left(CUTSET_SHARE),
            seed=options.seed,
            most_share=1.0 if options.exact else PART,
            memory=problem.worker_bytes,
        )


class Chosen(NamedTuple):
    """Variables to fix, so that sums of the rest are narrow.

    Attributes
    ----------
    fixed
        The variables.
    entries
        Table entries of the sum of the rest along its order.
    shares
        The share of Z in the likeliest joint state, in the two likeliest and so on, as far as draws know.
    """

    fixed: tuple[int, ...]
    entries: float
    shares: Floats

    def share(self, pace: float, seconds: float) -> float:
        """Return the share of Z that sums would have in this time, at `pace` seconds per entry."""
        count = min(int(seconds / (SECONDS_PER_SUM + pace * self.entries)), len(self.shares))
        return float(self.shares[count - 1]) if count else 0.0


class Planned(NamedTuple):
    """A cutset, the plan of its sums, and the seconds that one takes."""

    cutset: Chosen
    plan: SumTree
    seconds: float


class CutsetSums(DisjointSums):
    """Sums over the joint states of a cutset, likeliest first.

    Parameters
    ----------
    model
        With any factors.
    source
        Of the proposal that states are drawn from.
    seconds
        That sums will have in all, about: the cutset is chosen by it.
    most_share
        The share of all joint states that may be summed.
    memory
        In bytes.

    Attributes
    ----------
    planned
        The cutset; None before it is chosen, and where there is none.
    """

    def __init__(
        self,
        model: Model,
        source: ProposalSource,
        *,
        seconds: float,
        seed: int = 0,
        most_share: float = 1.0,
        memory: float = math.inf,
    ) -> None:
        super().__init__()
        self.model, self.memory = model, memory
        self.planned: Planned | None = None
        self._source, self._seconds, self._most_share = source, seconds, most_share
        self._seed, self._num_blocks = seed | NUMBER << SEED_BITS, 0
        self._begun = False
        self._waiting: dict[bytes, float] = {}  # of each joint state, the weights of its draws, added up
        self._done: set[bytes] = set()
        self._shift, self._num_draws, self._idle = 0.0, 0, 0
        self._drawing, self._summing = 0.0, 0.0  # seconds

    def expected(self, seconds: float) -> float:
        """Return the lower end that sums of the states that wait are expected to bring in this time."""
        if self.planned is None:
            return math.inf
        count = int(seconds * (1 - DRAWING_SHARE) / self.planned.seconds)
        likely = sum(heapq.nlargest(count, self._waiting.values()))
        more = math.log(likely / self._num_draws) + self._shift if likely > 0 else -math.inf
        return float(np.logaddexp(self.lower, more))

    def step(self, budget: Budget) -> float:
        """Choose the cutset, draw joint states of it, or sum the likeliest; return the lower end of log Z."""
        try:
            if not self._begun:
                self._begun = True
                self._begin(budget)
            elif not self._waiting or self._drawing < DRAWING_SHARE * (self._drawing + self._summing):
                self._draw(budget)
            else:
                self._sum(budget)
        except (Cancelled, TooWideError):
            self.is_over = self.is_over or self.planned is None
        return self.lower

    def _begin(self, budget: Budget) -> None:
        """Make the proposal, and choose the cutset by what is drawn from it."""
        drawing = budget.share(DRAWS_SHARE)
        proposal = self._source.proposal(budget, budget, self.memory)
        too_large = self.model.num_variables > MOST_VARIABLES or 2 * least_bytes(self.model) > self.memory
        if proposal is None or too_large:
            self.is_over = True
            return
        self._proposal = proposal
        blocks: list[Draws] = []
        while not blocks or (not drawing.must_stop() and sum(len(each.states) for each in blocks) < MOST_DRAWS):
            blocks.append(self._block())
        drawn = Draws(*(np.concatenate(each) for each in zip(*blocks, strict=True)))
        self.planned = _Choice(self.model, drawn, self._seconds, self.memory).best(budget)
        if self.planned is None:
            self.is_over = True
            return
        self._take(drawn)

    def _block(self) -> Draws:
        self._num_blocks += 1
        return self._proposal.draw(self._seed, self._num_blocks)

    def _draw(self, budget: Budget) -> None:
        """Draw a block, and end where none has brought a new state for long."""
        began = budget.used
        known = len(self._waiting)
        self._take(self._block())
        self._idle = self._idle + 1 if len(self._waiting) == known else 0
        self.is_over = not self._waiting and self._idle >= MOST_IDLE
        self._drawing += budget.used - began

    def _take(self, drawn: Draws) -> None:
        """Add the weights of draws to those of their joint states."""
        assert self.planned is not None
        possible = np.flatnonzero(drawn.log_weights > -np.inf)
        self._num_draws += len(drawn.log_weights)
        if not possible.size:
            return
        log_weights = drawn.log_weights[possible]
        highest = float(log_weights.max())
        if highest > self._shift or not self._waiting:
            by = math.exp(min(self._shift - highest, 700.0)) if self._waiting else 0.0
            self._waiting = {state: by * weight for state, weight in self._waiting.items()}
            self._shift = highest
        joint, number = np.unique(drawn.states[possible][:, self.planned.cutset.fixed], axis=0, return_inverse=True)
        weights = np.bincount(number.ravel(), np.exp(log_weights - self._shift))
        for state, weight in zip(joint.astype(np.int32), weights.tolist(), strict=True):
            key = state.tobytes()
            if key not in self._done:
                self._waiting[key] = self._waiting.get(key, 0.0) + weight
        if len(self._waiting) > MOST_WAITING:
            kept = heapq.nlargest(MOST_WAITING // 2, self._waiting, key=self._waiting.__getitem__)
            self._waiting = {key: self._waiting[key] for key in kept}

    def _sum(self, budget: Budget) -> None:
        """Sum the likeliest states that wait."""
        assert self.planned is not None
        began, fixed = budget.used, self.planned.cutset.fixed
        left = states_left(self.model.unary.flat > -np.inf, self.model.unary.start)
        num_joint = float(np.prod(left[list(fixed)].astype(np.float64)))
        count = max(1, int(min(budget.left() / self.planned.seconds, MOST_AT_ONCE)))
        count = int(min(count, self._most_share * num_joint - len(self._done)))
        keys = heapq.nlargest(count, self._waiting, key=self._waiting.__getitem__)
        if not keys:
            self.is_over = True
            return
        lanes = _lanes(self.model, fixed, np.stack([np.frombuffer(key, dtype=np.int32) for key in keys]))
        options = ExactOptions(marginals=False, threads=1)
        found = run_exact(Batch(self.model, lanes), options, budget, self.planned.plan)
        for lane in np.flatnonzero(found.converged).tolist():
            if found.log_z[lane] > -np.inf:
                self.add(float(found.lower[lane]), float(found.upper[lane]))
            self._done.add(keys[lane])
            del self._waiting[keys[lane]]
        self._summing += budget.used - began
        if self._done:
            self.planned = self.planned._replace(seconds=self._summing / len(self._done))
        self.is_over = self.complete = len(self._done) == num_joint


class _Choice:
    """The choice of a cutset by draws."""

    def __init__(self, model: Model, drawn: Draws, seconds: float, memory: float) -> None:
        self.model, self.seconds, self.memory = model, seconds, memory
        self.states: States = drawn.states
        highest = drawn.log_weights.max()
        self.weights = np.exp(drawn.log_weights - highest) if highest > -np.inf else np.zeros(len(drawn.states))
        self.scopes = Scopes.of(model)
        self.edges = self.scopes.edges() if model.factors else model.edges.astype(np.int64)

    def best(self, budget: Budget) -> Planned | None:
        """Return the cutset by which most of Z is expected to be summed, with the plan of its sums."""
        if not self.weights.any():
            return None
        found, looking = list[Chosen](), budget.share(ORDERS_SHARE)
        price = self._entropies() + LEAST_ENTROPY
        for order in self._orders(looking):
            found.extend(self._along(order, price, looking))
        best: Planned | None = None
        planning, most, pace = budget.share(PLANS_SHARE), 0.0, PACE
        for _ in range(MOST_PLANS):
            first = max(found, key=lambda each: each.share(pace, self.seconds), default=None)
            if first is None or first.share(pace, self.seconds) <= most or (best and planning.must_stop()):
                break
            found.remove(first)
            try:
                plan = self._plan(first, budget)
            except TooWideError:
                continue
            seconds = self._timed(first, plan, budget)
            pace = seconds / first.entries
            if (share := first.share(pace, self.seconds)) > most:
                best, most = Planned(first, plan, seconds), share
        return best

    def _orders(self, budget: Budget) -> Iterator[EliminationOrder]:
        n, log_states = self.model.num_variables, np.log2(self.model.num_states)
        for seed in range(MOST_ORDERS):
            if budget.must_stop():
                return
            order = quick_order(self.edges, log_states, np.ones(n, dtype=np.bool_), math.inf, budget, seed)
            if order.total < math.inf:
                yield order
            if seed == 0 and not budget.must_stop():
                order = find_order(self.scopes.num_states, *self.scopes.neighbours(), budget)
                if order.total < math.inf:
                    yield order

    def _along(self, order: EliminationOrder, price: Floats, budget: Budget) -> Iterator[Chosen]:
        """Yield cutsets along an order, one variable more each time, whose sums there is time for."""
        cuts = Cuts(order, self.model.num_states, self.edges)
        group = np.zeros(len(self.states), dtype=np.int64)
        while cuts.order.total > LEAST_ENTRIES and not budget.must_stop():
            count = 1 if cuts.order.total <= FEW_ENTRIES else max(1, len(price) // SHARE)
            chosen = cuts.fix_some(count, price)
            if not chosen:
                return
            for i in chosen:
                group = np.unique(group * self.model.num_states[i] + self.states[:, i], return_inverse=True)[1]
            entries = cuts.order.total
            if PACE * entries <= self.seconds:
                yield Chosen(tuple(cuts.fixed), entries, self._shares(group))

    def _shares(self, group: Integers) -> Floats:
        """Return the shares of Z of the likeliest groups, chosen by one half of the draws and weighed by the other."""
        half = len(group) // 2
        first = np.bincount(group[:half], self.weights[:half], minlength=int(group.max()) + 1)
        second = np.bincount(group[half:], self.weights[half:], minlength=len(first))
        likeliest = np.argsort(-first, kind="stable")[: np.count_nonzero(first)]
        shares: Floats = np.cumsum(second[likeliest]) / max(second.sum(), LEAST_WEIGHT)
        return shares

    def _timed(self, cutset: Chosen, plan: SumTree, budget: Budget) -> float:
        """Time a sum beside all else that is under way; Cancelled where the budget ends first."""
        began, states = budget.used, self.states[:NUM_TIMED, cutset.fixed]
        batch = Batch(self.model, _lanes(self.model, cutset.fixed, states))
        found = run_exact(batch, ExactOptions(marginals=False, threads=1), budget, plan)
        if not found.converged[0]:
            raise Cancelled
        return max((budget.used - began) / int(np.count_nonzero(found.converged)), SECONDS_PER_SUM)

    def _plan(self, cutset: Chosen, budget: Budget) -> SumTree:
        """Plan the sums of a cutset; Cancelled where the budget ends first."""
        lanes = _lanes(self.model, cutset.fixed, self.states[:1, cutset.fixed])
        return lay_out_lanes(
            Batch(self.model, lanes),
            int(min(self.memory, NO_LIMIT)),
            marginals=False,
            fixed=cutset.fixed,
            budget=budget,
        )

    def _entropies(self) -> Floats:
        """(n,) the entropy of each variable, by the draws."""
        start, rows = self.model.unary.start, self.model.unary.start[:-1] + self.states
        weights = np.repeat(self.weights / self.weights.sum(), rows.shape[1])
        share = np.bincount(rows.ravel(), weights, minlength=int(start[-1]))
        return np.add.reduceat(-share * np.log(np.maximum(share, LEAST_WEIGHT)), start[:-1])


def _lanes(model: Model, fixed: tuple[int, ...], states: Integers | States) -> Floats:
    """(S, B) the unary potentials of joint states (B, K) of variables."""
    lanes = np.repeat(model.unary.flat[:, None], len(states), axis=1)
    for i, row in zip(fixed, states.T, strict=True):
        begin, end = model.unary.start[i : i + 2]
        own = model.unary.flat[begin + row]
        lanes[begin:end] = -np.inf
        lanes[begin + row, np.arange(len(states))] = own
    return lanes
