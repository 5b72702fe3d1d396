"""Mini-buckets of all of the model, by successive halving: both ends, and what branches are bounded with."""

from typing import Any

from clampz.bounding.leaves.evaluate import solve_leaves
from clampz.bounding.leaves.successive_halving import may_begin
from clampz.bounding.problem import Problem
from clampz.bounding.tree.branching import refine_by_halving
from clampz.model.components import num_components
from clampz.portfolio.strategy import Quantum, Strategy
from clampz.runtime.budget import Budget


class MiniBuckets(Strategy[Problem]):
    """Runs the trials of the root's successive halving; the tree has the root when these have ended."""

    name = "mini-buckets"
    is_parallel = True

    def next(self, seconds: float, budget: Budget, num_workers: int) -> Quantum | None:
        """Ask for the next trial."""
        problem, frontier = self.problem, self.problem.frontier
        root, options = frontier.root, problem.options
        halving = root.submodel.halving
        comes_apart = num_components(problem.rest) > 1 and frontier.may_split(problem.rest)
        begins = bool(halving.max_table) or may_begin(problem.rest, options, budget.left())
        asked = None
        if begins and not (comes_apart or root.children):
            asked = refine_by_halving(root, options, budget, num_workers)
        if asked is None:
            # where there is not memory enough, a plan that is none may leave some
            if comes_apart or root.children or halving.finished or (not begins and problem.facts.is_planned):
                self.end()
            return None
        self.is_midway = True
        return Quantum(solve_leaves, (asked.work,), budget.share(), "anywhere", asked)

    def take(self, quantum: Quantum, found: Any) -> None:
        """Take the bounds of a trial; one that was cut short is made anew."""
        frontier = self.problem.frontier
        halving = frontier.root.submodel.halving
        if quantum.is_cut_short and found.states[0] is None:
            halving.put_back(quantum.label.step)
        else:
            frontier.take(quantum.label, found)
        self.is_midway = halving.has_more or halving.is_busy

    def end(self) -> None:
        """Leave the root to the tree."""
        super().end()
        halving = self.problem.frontier.root.submodel.halving
        halving.finished |= halving.is_busy  # with a trial that failed, and does not come back
        self.problem.facts.is_bounded = True
        self.problem.frontier.push(self.problem.frontier.root)
