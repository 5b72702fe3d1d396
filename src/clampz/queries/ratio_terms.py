"""Two log Z whose difference is the answer: a portfolio for each, and one more way for lanes of one model."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from clampz.bounding.bracket import NEAR, Bracket
from clampz.bounding.exact_answer import ExactAnswer
from clampz.bounding.options import TREE_MEMORY, BoundOptions
from clampz.bounding.problem import Problem as LogZ
from clampz.bounding.strategies import STRATEGIES
from clampz.bounding.tree.frontier import check_room
from clampz.exact_inference.lanes import ExactOptions
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.model.results import Estimates
from clampz.model.tables import has_hard_zeros
from clampz.numerics import EPS
from clampz.portfolio.nested import Nested
from clampz.portfolio.problem import Problem, Stop
from clampz.portfolio.scheduler import run_to_end
from clampz.portfolio.strategy import Strategy
from clampz.runtime.budget import Budget
from clampz.runtime.progress import ProgressText


class HasGap(ProgressText, Protocol):
    """An answer that says how wide it is."""

    @property
    def gap(self) -> float: ...


AnswerT = TypeVar("AnswerT", bound=HasGap)
# Nats: stands for what is infinite where gains are measured.
FAR = 1e9


@dataclass
class RatioTerm:
    """One of two log Z that an answer is made of, as far as it is known."""

    model: Model
    lower: float = -math.inf
    upper: float = math.inf
    point: float | None = None
    is_closed: bool = False

    @classmethod
    def of(cls, model: Model) -> "RatioTerm":
        """Begin with nothing known, unless Z = 0 is plain to see."""
        seen = (states_left(model.unary.flat > -np.inf, model.unary.start) == 0).any()
        return cls.impossible(model) if seen else cls(model)

    @classmethod
    def impossible(cls, model: Model) -> "RatioTerm":
        """Begin with Z = 0."""
        return cls(model, upper=-math.inf, is_closed=True)

    @property
    def is_impossible(self) -> bool:
        """Whether Z = 0 is certain."""
        return self.upper == -math.inf

    @property
    def is_possible(self) -> bool:
        """Whether Z > 0 is certain: by what is known of it, or because nothing but states is ruled out."""
        return self.lower > -math.inf or (not self.is_impossible and self._has_no_hard_zeros)

    @cached_property
    def _has_no_hard_zeros(self) -> bool:
        return not (has_hard_zeros(self.model.pairwise.flat) or has_hard_zeros(self.model.factors.flat))

    def tighten(self, lower: float, upper: float) -> None:
        self.lower, self.upper = max(self.lower, lower), min(self.upper, upper)
        self.is_closed = self.is_closed or self.lower == self.upper or self.is_impossible

    def close(self, lower: float, upper: float) -> None:
        """Take ends after which nothing is left to do."""
        self.tighten(lower, upper)
        self.is_closed = True

    def learn(self, bracket: Bracket) -> None:
        """Take a bracket."""
        self.tighten(bracket.lower, bracket.upper)
        self.point = self.point if bracket.estimate is None else bracket.estimate
        self.is_closed = self.is_closed or bracket.stopped_by == "exact"

    @property
    def measured(self) -> tuple[float, float]:
        """Finite ends, by which gains are measured."""
        if self.is_impossible:
            return 0.0, 0.0
        return max(self.lower, -FAR), min(self.upper, FAR)

    @property
    def values(self) -> tuple[float, float, float, float]:
        """What log Z may be taken for, best first and nan or infinite where there is none.

        The estimate, unless the ends have refuted it since, or the middle of closed ends; the middle; the ends.
        """
        middle = self.lower + (self.upper - self.lower) / 2
        estimate = middle if self.is_closed else math.nan
        if self.point is not None and self.lower - NEAR <= self.point <= self.upper + NEAR:
            estimate = min(max(self.point, self.lower), self.upper)
        return estimate, middle, self.lower, self.upper


class Interval(NamedTuple):
    """Ends of a number, rounded outwards, and an estimate inside; nan where nothing is known."""

    lower: float
    upper: float
    estimate: float

    @classmethod
    def of_difference(cls, one: RatioTerm, other: RatioTerm) -> "Interval":
        """Return one log Z less another; -inf where the first is impossible, inf where the other is."""
        if one.is_impossible or other.is_impossible:
            end = -math.inf if one.is_impossible else math.inf
            return cls(end, end, end)
        lower = _less(one.lower, other.upper, -1.0)
        upper = _less(one.upper, other.lower, 1.0)
        # of the same kind: the estimate of one and an end of the other say nothing together
        differences = (a - b for a, b in zip(one.values, other.values, strict=True))
        estimate = next((value for value in differences if math.isfinite(value)), math.nan)
        return cls(lower, upper, min(max(estimate, lower), upper))


def _less(a: float, b: float, sense: float) -> float:
    """Return a - b, moved by what rounding may have changed: up (sense 1) or down."""
    difference = a - b
    return difference + sense * 2 * EPS * abs(difference) if math.isfinite(difference) else sense * math.inf


class Ratio(Problem[AnswerT]):
    """The difference of two log Z.

    Attributes
    ----------
    terms
        Both log Z.
    answer
        Says what is known, and why the run has stopped.
    """

    def __init__(
        self, terms: tuple[RatioTerm, RatioTerm], options: BoundOptions, answer: Callable[[Stop, float], AnswerT]
    ) -> None:
        super().__init__((1.0 - TREE_MEMORY) * options.num_bytes, enough=options.gap)
        self.terms, self.options, self.answer = terms, options, answer
        self._bounds: list[Nested[Any]] = []
        self._exact_answer: ExactAnswer | None = None

    def run(self, budget: Budget, listener: Callable[[AnswerT], object] | None) -> AnswerT:
        """Tighten both terms as far as the limits allow, until the answer is narrow enough."""
        options, terms = self.options, self.terms
        for term in terms:
            check_room(term.model, options.num_bytes)
        ways: list[Callable[[Any], Strategy[Any]]] = [
            partial(self._bounds_of, term) for term in terms if not term.is_closed
        ]
        if len(ways) == len(terms) and options.exact and differ_in_unary(terms[0].model, terms[1].model):
            ways.append(self._joint_sum)
        return run_to_end(self, ways, None, options.num_threads, budget, listener)

    def _bounds_of(self, term: RatioTerm, _: Problem[Any]) -> Strategy[Any]:
        """Return the portfolio of a term, which has half of the memory and an even share of the time."""
        options = replace(self.options, gap=self.options.gap / 2, memory=self.options.num_bytes // 2)

        def share() -> float:
            return 0.0 if term.is_closed else 1.0 / sum(not each.is_closed for each in self.terms)

        nested = Nested(self, LogZ(term.model, options), STRATEGIES, share, term.learn)
        self._bounds.append(nested)
        return nested

    def _joint_sum(self, _: Problem[Any]) -> Strategy[Any]:
        """Return the sum of both terms by one plan, as lanes of one model."""
        one, other = (term.model for term in self.terms)
        limits = ExactOptions(memory=self.options.num_bytes // 2, marginals=False, threads=self.options.threads)
        batch = Batch(one, np.stack([one.unary.flat, other.unary.flat], axis=1))
        self._exact_answer = ExactAnswer(self, batch, limits, self._close)
        return self._exact_answer

    def _close(self, sums: Estimates) -> None:
        """Take sums of both terms, as far as they came."""
        ends = zip(self.terms, sums.lower.tolist(), sums.upper.tolist(), sums.converged.tolist(), strict=True)
        for term, lower, upper, is_summed in ends:
            if is_summed and sums.bound == "exact":
                term.close(lower, upper)

    @property
    def ends(self) -> tuple[float, float]:
        """The difference in nats, as gains are measured."""
        (one_lower, one_upper), (other_lower, other_upper) = (term.measured for term in self.terms)
        return one_lower - other_upper, one_upper - other_lower

    @property
    def news(self) -> Hashable:
        """All that is known of both terms."""
        return tuple((term.lower, term.upper, term.point, term.is_closed) for term in self.terms)

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do about either term."""
        return all(term.is_closed for term in self.terms)

    @property
    def worker_bytes(self) -> float:
        """Bytes that one worker may take."""
        return self.options.worker_bytes

    def narrow(self) -> Stop | None:
        """Return why the answer is narrow enough; None if it is not, or might be exact in a moment."""
        if self.closed:
            return "exact"
        is_near = self._exact_answer is not None and self._exact_answer.is_near
        if is_near or not all(each.has_begun for each in self._bounds):
            return None
        return "gap" if self.answer("left", 0.0).gap <= self.enough else None

    def result(self, reason: Stop, seconds: float) -> AnswerT:
        """Return what is known at this moment."""
        return self.answer(reason, seconds)


def differ_in_unary(one: Model, other: Model) -> bool:
    """Whether two models are lanes of one."""
    a, b = one.contents, other.contents
    same = np.array_equal(a.num_states, b.num_states) and np.array_equal(a.edges, b.edges)
    return same and np.array_equal(a.pairwise, b.pairwise) and a.factors == b.factors and a.constant == b.constant
