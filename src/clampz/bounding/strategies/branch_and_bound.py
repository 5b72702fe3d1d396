"""Branch and bound, best first: leaves are refined, clamped or summed where the root's gap comes from."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clampz.bounding.leaves.evaluate import LeafWork, Solved, solve_leaves
from clampz.bounding.options import CUTS
from clampz.bounding.problem import Problem
from clampz.bounding.tree.branching import choose_branching
from clampz.bounding.tree.frontier import Expand, Refine
from clampz.clamping.selectors.scoring import check_defined
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


@dataclass(eq=False)
class Asked:
    """What is asked about a leaf, in one piece of work or several, and what has come of each."""

    about: Refine | Expand
    works: list[LeafWork]
    found: list[Solved | None]
    is_withdrawn: bool = False

    @classmethod
    def of(cls, about: Refine | Expand, *, apart: bool) -> "Asked":
        """Ask about all branches at once, or about each `apart`, for several workers."""
        work, num_lanes = about.work, about.work.unary.shape[1]
        works = [replace(work, unary=work.unary[:, k : k + 1]) for k in range(num_lanes)] if apart else [work]
        return cls(about, works, [None] * len(works))

    @property
    def solved(self) -> Solved | None:
        """What came of all pieces; None as long as one is missing."""
        found = [each for each in self.found if each is not None]
        if len(found) < len(self.works):
            return None
        return Solved(
            np.concatenate([each.lower for each in found]),
            np.concatenate([each.upper for each in found]),
            [exact for each in found for exact in each.exact],
            [state for each in found for state in each.states],
            found[0].mini_buckets,
            sum(each.seconds for each in found),
        )


class BranchAndBound(Strategy[Problem]):
    """Works on the tree, once mini-buckets have left the root to it."""

    name = "branch and bound"
    is_parallel = True

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._waiting: list[tuple[Asked, int]] = []  # pieces that nobody has begun

    def begin(self, budget: Budget, num_workers: int) -> None:
        """Refuse a selector that is not defined on the model."""
        if self.problem.options.select != CUTS:
            check_defined(self.problem.rest, self.problem.options.select)

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for bounds on the branches of the leaf that matters most, or better ones on itself."""
        problem = self.problem
        if not self._waiting and (problem.facts.is_bounded or problem.frontier.root.children):
            self._choose(budget, num_workers)
        if not self._waiting:
            return None
        asked, piece = self._waiting.pop(0)
        return Quantum(solve_leaves, (asked.works[piece],), budget.share(), "anywhere", (asked, piece))

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take bounds into the tree; a leaf whose work was cut short is put back."""
        asked, piece = quantum.label
        if quantum.is_cut_short:
            self.withdraw(quantum)
        asked.found[piece] = found
        if asked.is_withdrawn or (solved := asked.solved) is None:
            return
        self.problem.frontier.promised -= asked.about.num_more
        self.problem.frontier.take(asked.about, solved)

    def withdraw(self, quantum: Quantum) -> bool:
        """Put the leaf back; one that is refined by half is better for it, branches by half are worth nothing."""
        asked, _ = quantum.label
        frontier = self.problem.frontier
        frontier.push(asked.about.node)
        if isinstance(asked.about, Refine):
            return True
        if not asked.is_withdrawn:
            asked.is_withdrawn = True
            frontier.promised -= asked.about.num_more
            self._waiting = [each for each in self._waiting if each[0] is not asked]
        return False

    def _choose(self, budget: Budget, num_workers: int) -> None:
        """Choose what to ask next, or say why there is nothing."""
        problem, frontier = self.problem, self.problem.frontier
        if problem.over == "leaves":
            return
        about = choose_branching(frontier, budget, num_workers)
        if about is None:
            problem.over = "memory" if frontier.pruned else "exact"
            return
        most = problem.options.leaves or math.inf
        if about.num_more and frontier.num_leaves + frontier.promised + about.num_more > most:
            frontier.push(about.node)
            problem.over = "leaves"
            return
        problem.over = None
        frontier.promised += about.num_more
        # where no other leaf waits, other workers have the other branches
        apart = isinstance(about, Expand) and not (problem.options.in_order or frontier.has_waiting)
        asked = Asked.of(about, apart=apart)
        self._waiting = [(asked, piece) for piece in range(len(asked.works))]
