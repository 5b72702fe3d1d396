"""Search for contraction trees: subtrees of a few leaves are put together anew, for a share of what the sum takes."""

import itertools
from typing import NamedTuple

import numpy as np

from clampz._kernels.contraction import tree as trees
from clampz._kernels.contraction.reconfiguration import from_leaves, reconfigure
from clampz.numerics import Floats
from clampz.runtime.budget import Budget, run_cancellable

# A tree is made better for this share of the time that the sum is expected to take, a subtree taking these seconds; a
# few are looked at whatever that is, and none of a node that takes less than a share of the whole.
TREE_SHARE, SECONDS_PER_LOOK, FIRST_LOOKS, NEGLIGIBLE = 0.5, 1e-5, 30, 1e-4
# Then tables of this share of the largest and more are made dear for a while.
TIGHTER = (1 / 2, 1 / 4, 1 / 16, 1 / 64)


def best_tree(
    tree: trees.Tree, log_states: Floats, limit: float, budget: Budget | None, num_sums: int = 1
) -> tuple[trees.Tree, float]:
    """Return the best tree found in the time that `num_sums` sums by it are worth, and the seconds that each of
    them is expected to take.

    Where nothing gets better any more, large tables are made dear for a while, which leads to other trees: from the
    best one, and from the first.  On pedigrees these took a sixth of the time.
    """
    search = _Search(log_states, budget, num_sums)
    best = search.best(_copy(tree), limit)
    again = True
    while again:
        again = False
        for factor, start in itertools.product(TIGHTER, (best.tree, tree)):
            if search.over(best.seconds):
                break
            other = search.best(_copy(start), min(limit, factor * best.largest))
            other = search.best(other.tree, limit)
            if other.cost < best.cost:
                best, again = other, True
                break
    return best.tree, best.seconds


def _copy(tree: trees.Tree) -> trees.Tree:
    return trees.Tree(*(each.copy() for each in tree))


class FoundTree(NamedTuple):
    """A tree, what it costs with tables beyond the limit made dear, the seconds that it is expected to take, and the
    entries of its largest table."""

    tree: trees.Tree
    cost: float
    seconds: float
    largest: float


class _Search:
    """Puts subtrees of trees together anew, and counts how many it looked at."""

    def __init__(self, log_states: Floats, budget: Budget | None, num_sums: int) -> None:
        self.log_states, self.budget, self.looked = log_states, budget, 0
        self.share = TREE_SHARE * num_sums

    def over(self, seconds: float) -> bool:
        """Whether no more time is to be spent on a sum that takes this long."""
        stopped = self.budget is not None and self.budget.must_stop()
        return stopped or self.looked * SECONDS_PER_LOOK > self.share * seconds

    def best(self, tree: trees.Tree, limit: float) -> FoundTree:
        """Round after round until nothing gets better or the time for it is over.

        From the leaves to the root where there is time for all, which found trees of half the cost of any other order
        (of nodes by cost, and at random); else those of the costliest nodes.
        """
        size, own = trees.measure(tree, self.log_states, limit)
        better = True
        while better and not (self.budget is not None and self.budget.must_stop()):
            allowed = max(FIRST_LOOKS, self.share * own.sum() / SECONDS_PER_LOOK) - self.looked
            if len(own) <= allowed:
                nodes = from_leaves(tree.left, tree.right, tree.parent)
            else:
                nodes = np.argsort(-own)[: max(0, int(allowed))]
                nodes = nodes[own[nodes] > NEGLIGIBLE * own.sum()]
            self.looked += len(nodes)
            fixed = (tree, size, own, nodes, self.log_states, limit)
            better, pool = run_cancellable(self.budget, len(nodes) * SECONDS_PER_LOOK, reconfigure, *fixed)
            tree = tree._replace(pool=pool)
        seconds = float(trees.measure(tree, self.log_states, np.inf)[1].sum())
        return FoundTree(tree, float(own.sum()), seconds, float(size.max(initial=1.0)))
