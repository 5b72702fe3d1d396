"""Which variables to fix so that a sum falls into slices: those that make its tables smaller along a given order, or in
a given tree of contractions.

A variable that is in all large tables costs nothing: its slices together have as many entries as the whole.  Of one
that is in a share q of the entries, fixing its s states leaves 1 - q (1 - 1/s) of them in each slice, which is s times
that in all.
"""

import numpy as np

from clampz._kernels import graph
from clampz._kernels.contraction import tree as trees
from clampz._kernels.elimination import greedy_order
from clampz.exact_inference.orders import EliminationOrder
from clampz.model.tables import distinct, ranges
from clampz.numerics import Floats, Integers

# Variables of all tables together beyond which nobody looks.
MOST_MEMBERS = 4_000_000
# Of the entries of the whole: what variables have to be in to be worth fixing.
LEAST_SHARE = 1e-3


class Cuts:
    """The tables of a complete order, as more and more variables are fixed; `edges` are the pairs of variables that
    share a factor.

    Attributes
    ----------
    order
        Of what is left, with what it costs.
    fixed
        The variables that were.
    """

    def __init__(self, order: EliminationOrder, num_states: Integers, edges: Integers) -> None:
        self.fixed: list[int] = []
        self._num_states, self._edges = num_states.copy(), edges
        self._lay_out(order.variables)

    def _lay_out(self, variables: Integers) -> None:
        """The tables that the order has now: for every variable of every table, which table, and which variable, both
        by their place in the order."""
        n = len(variables)
        self._edges = self._edges[(self._num_states[self._edges] > 1).all(axis=1)]
        start, neighbour, _ = graph.neighbour_lists(n, self._edges.astype(np.int32))
        begin, scope, _, _ = greedy_order.bucket_scopes(variables, start, neighbour)
        own = np.arange(n)
        self._table = np.concatenate([own, np.repeat(own, np.diff(begin))])
        self._member = np.concatenate([own, scope])
        log_states = np.log2(self._num_states[variables])
        log_size = np.bincount(self._table, log_states[self._member], minlength=n)
        self._size = np.exp2(log_size)
        self.order = EliminationOrder(variables, float(self._size.sum()), float(log_size.max(initial=0.0)))

    def fix_one(self) -> int | None:
        """Fix the variable that adds least to the sum of all slices for what it takes from each; None where none is in
        enough of the tables, or these are too many to look at."""
        return next(iter(self.fix_some(1)), None)

    def fix_some(self, count: int, price: Floats | None = None) -> list[int]:
        """Fix `count` variables at once, those of the lowest price for what they take from each slice: (n,) what fixing
        each costs, or else what it adds to the sum of all slices.  Fewer, or none, where no more are in enough of the
        tables, or these are too many to look at."""
        variables, total = self.order.variables, self.order.total
        if len(self._member) > MOST_MEMBERS:
            return []
        inside = np.bincount(self._member, self._size[self._table], minlength=len(variables)) / total
        places = np.flatnonzero((self._num_states[variables] > 1) & (inside > LEAST_SHARE))
        if not places.size:
            return []
        states = self._num_states[variables[places]]
        smaller = -np.log(1 - inside[places] * (1 - 1 / states))
        added = np.log(states) - smaller if price is None else price[variables[places]]
        rank = added / smaller
        best = [np.argmin(rank)] if count == 1 else np.argsort(rank, kind="stable")[:count]
        chosen: list[int] = variables[places[best]].tolist()
        self._num_states[chosen] = 1
        self.fixed += chosen
        self._lay_out(variables)
        return chosen


class TreeCuts:
    """A tree of contractions, as more and more variables are fixed.

    Attributes
    ----------
    num_states
        Those that are left, one of each that was fixed.
    fixed
        The variables that were.
    seconds
        What each slice is expected to take.
    """

    def __init__(self, tree: trees.Tree, num_states: Integers) -> None:
        self.tree, self.num_states, self.fixed = tree, num_states.copy(), list[int]()
        made = np.flatnonzero(tree.left >= 0)
        both = [(made, tree.left[made]), (made[tree.right[made] >= 0], tree.right[made[tree.right[made] >= 0]])]
        nodes = np.concatenate([np.repeat(node, tree.count[part]) for node, part in both])
        variables = np.concatenate([self._variables(part) for _, part in both])
        # a contraction goes over what either of its tables has
        self._visits = np.divmod(distinct(nodes * len(num_states) + variables), len(num_states))
        of_tables = np.arange(len(tree.left))
        self._members = np.repeat(of_tables, tree.count), self._variables(of_tables)
        self._measure()

    def _variables(self, nodes: Integers) -> Integers:
        variables: Integers = self.tree.pool[ranges(self.tree.begin[nodes], self.tree.count[nodes])]
        return variables

    def _measure(self) -> None:
        self._size, self._own = trees.measure(self.tree, np.log2(self.num_states), np.inf)
        self.seconds = float(self._own.sum())

    def _shares(self, of_nodes: Floats, pairs: tuple[Integers, Integers]) -> Floats:
        """(n,) of what the nodes have together, what those have that a variable is in."""
        nodes, variables = pairs
        shares: Floats = np.bincount(variables, of_nodes[nodes], minlength=len(self.num_states)) / of_nodes.sum()
        return shares

    def fix_one(self) -> int | None:
        """Fix the variable that adds least to the time of all slices for what it takes from the largest tables of each;
        None where there is none."""
        states = self.num_states
        time, room = self._shares(self._own, self._visits), self._shares(self._size**2, self._members)
        some = np.flatnonzero((states > 1) & (room > LEAST_SHARE))
        if not some.size:
            return None
        less = 1 - 1 / states[some]
        added = np.log(states[some]) + np.log1p(-np.minimum(time[some], 1.0) * less)
        best = int(some[np.argmin(np.maximum(added, 0.0) / -np.log1p(-np.minimum(room[some], 1.0) * less))])
        self.num_states[best] = 1
        self.fixed.append(best)
        self._measure()
        return best
