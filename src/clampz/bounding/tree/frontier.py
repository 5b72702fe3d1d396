"""The tree of a branch and bound and its frontier: the leaves that wait, widest share of the gap first.

What workers find is taken into the tree here: leaves become branches or components, bounds pass up to the root, and
what does not fit in memory is let go.
"""

import heapq
import math
from typing import NamedTuple

import numpy as np

from clampz.bounding.leaves.evaluate import LeafWork, Solved
from clampz.bounding.leaves.successive_halving import Trial
from clampz.bounding.options import TREE_MEMORY, BoundOptions
from clampz.bounding.tree.nodes import Node, Submodel
from clampz.errors import OptionError
from clampz.model import Model
from clampz.model.components import components, num_components
from clampz.model.conditioning import may_overflow, rounding_of_sums, without_fixed
from clampz.numerics import EPS
from clampz.runtime.budget import Budget

# Clamps after which a branch is cut out of its model and partitioned anew.
CLAMPS_BEFORE_CUT = 4
# Variables beyond which a branch of fewer clamps is not looked through for components.
MANY_VARIABLES = 10_000
# Components of at most 2^SMALL_COMPONENT joint states are summed together; a model is split into MOST_COMPONENTS at a
# time.
SMALL_COMPONENT, MOST_COMPONENTS = 16.0, 8
# Bytes of a node, and for each table entry of a model that is cut out.
NODE_BYTES, BYTES_PER_ENTRY = 1200, 20


class Refine(NamedTuple):
    """Better bounds are asked for on a leaf, perhaps as a trial of its submodel."""

    node: Node
    work: LeafWork
    step: Trial | None = None

    @property
    def num_more(self) -> int:
        """Leaves that the tree will have more."""
        return 0


class Expand(NamedTuple):
    """Bounds are asked for on the branches of a leaf."""

    node: Node
    work: LeafWork
    children: list[Node]

    @property
    def num_more(self) -> int:
        return len(self.children) - 1


def work_on(leaves: list[Node], options: BoundOptions, budget: Budget) -> LeafWork:
    """Return work on leaves of one submodel for the time that is left; callers change what else they ask for."""
    submodel, unary = leaves[0].submodel, np.stack([leaf.unary() for leaf in leaves], axis=1)
    return LeafWork(model=submodel.model, unary=unary, options=options, seconds=budget.left())


class Frontier:
    """The tree, and the leaves that wait."""

    def __init__(self, model: Model, options: BoundOptions) -> None:
        self.options = options
        self.root = Node(None, Submodel(model), (), -math.inf, math.inf)
        self.num_nodes, self.num_leaves = 1, 1
        self.promised = 0  # leaves more that work under way will make
        self.pruned = False
        self._num_states, self._state_bytes = 0, 1  # that leaves keep, about, and the largest of them
        self._submodel_bytes = 0  # of all that was cut out
        self._heap: list[tuple[float, int, Node]] = []
        self._counter = 0

    def restore(self, nodes: list[Node]) -> None:
        """Take a tree of these nodes, the root first, in place of the one there is."""
        self.root, self.num_nodes = nodes[0], len(nodes)
        constants = sum(node.is_and for node in nodes)  # what is constant beside components is no leaf
        self.num_leaves = sum(not node.children for node in nodes) - constants
        sizes = [node.state.num_bytes for node in nodes if node.state is not None]
        self._num_states, self._state_bytes = len(sizes), max(sizes, default=1)
        cut_out = {id(node.submodel): node.submodel.model for node in nodes if node.submodel is not nodes[0].submodel}
        self._submodel_bytes = BYTES_PER_ENTRY * sum(each.num_entries for each in cut_out.values())
        for node in nodes:
            self.push(node)

    def push(self, node: Node) -> None:
        if node.closed or node.children or node.queued:
            return
        if node.parent is not None and node.parent.is_and:
            beside = (child.upper for child in node.parent.children if child is not node)
            node.other = node.parent.other + sum(upper for upper in beside if math.isfinite(upper))
        key = node.key(self.options.criterion)
        if key == -math.inf:
            node.closed = True
            return
        self._counter += 1
        node.queued = True
        heapq.heappush(self._heap, (-key, self._counter, node))

    @property
    def has_waiting(self) -> bool:
        """Whether a leaf waits."""
        return bool(self._heap)

    def pop(self) -> Node | None:
        while self._heap:
            _, _, node = heapq.heappop(self._heap)
            node.queued = False
            if not node.closed and not node.children and node.upper > node.lower:
                return node
        return None

    def close(self, lower: float, upper: float) -> None:
        """Close the tree with these as the root's ends."""
        self.root.lower, self.root.upper, self.root.closed = lower, upper, True
        self._heap.clear()

    def take(self, asked: Refine | Expand, solved: Solved) -> None:
        """Take what came of work into the tree."""
        if isinstance(asked, Refine):
            self._refine(asked, solved)
        else:
            self._expand(asked.node, asked.children, solved)

    def _refine(self, asked: Refine, solved: Solved) -> None:
        node = asked.node
        node.tighten(solved.lower[0], solved.upper[0])
        node.closed = solved.exact[0] or node.upper == -math.inf
        if asked.step is not None:
            halving = node.submodel.halving
            ends = float(solved.lower[0]), float(solved.upper[0])
            halving.take(asked.step, ends, solved.states[0], solved.mini_buckets, solved.seconds)
            node.state = halving.state or node.state
        else:
            node.state = node.state or solved.states[0]
        (node.parent or node).refresh()
        self.push(node)

    def _expand(self, node: Node, children: list[Node], solved: Solved) -> None:
        for k, child in enumerate(children):
            child.tighten(solved.lower[k], solved.upper[k])
            child.closed, child.state = solved.exact[k] or child.upper == -math.inf, solved.states[k] or node.state
            if child.state is not None:
                self._num_states += 1
                self._state_bytes = max(self._state_bytes, child.state.num_bytes)
        node.children, node.state = children, None
        self.num_nodes += len(children)
        self.num_leaves += len(children) - 1
        for child in children:
            if not child.closed:
                self._admit(child)
        node.refresh()
        self._keep_memory()

    def _admit(self, child: Node) -> None:
        """Cut a new leaf out and split it into components where it has come apart or far enough; else let it wait."""
        whole = child.submodel.model
        far = len(child.clamps) >= CLAMPS_BEFORE_CUT
        not_yet = not far and (len(child.clamps) % 2 or whole.num_variables > MANY_VARIABLES)
        if not_yet or may_overflow(whole) or not self._has_room(whole):
            self.push(child)
            return
        model, error = self._cut_out(child)
        if model is None:
            child.lower = child.upper = -math.inf
            child.closed = True
        elif self.may_split(model) and (far or num_components(model) != 1):
            self.split(child, model, error)
        else:
            self.push(child)

    def finish(self, node: Node) -> None:
        """Close a leaf of which no variable has a choice of states left: one configuration at most."""
        node.closed = True
        if not may_overflow(node.submodel.model):
            model, error = self._cut_out(node)
            if model is not None:
                self.split(node, model, error)
                return
            node.lower = node.upper = -math.inf
        (node.parent or node).refresh()

    def _cut_out(self, node: Node) -> tuple[Model | None, float]:
        """Return a node's model without the variables that are fixed (None where Z = 0), and its rounding error."""
        whole, unary = node.submodel.model, node.unary()
        return without_fixed(whole, unary), rounding_of_sums(whole, unary)

    def may_split(self, model: Model) -> bool:
        """Whether the components of a model are not too many leaves, and there is memory for them."""
        more = min(num_components(model), MOST_COMPONENTS + 1) - 1
        return self._has_room(model) and self.num_leaves + self.promised + more <= (self.options.leaves or math.inf)

    def _has_room(self, model: Model) -> bool:
        """Whether there is memory to cut this model out."""
        return self._submodel_bytes + BYTES_PER_ENTRY * model.num_entries <= TREE_MEMORY * self.options.num_bytes

    def split(self, node: Node, model: Model, error: float) -> None:
        """Make a node the sum of the components of a model that equals it but for an error, and of what is constant.

        Nothing is known of the components yet, unless there is only one.
        """
        error += EPS * abs(model.constant)
        rest = Node(node, node.submodel, (), model.constant - error, model.constant + error)
        rest.closed = True
        if not model.num_variables:
            node.tighten(rest.lower, rest.upper)
            node.closed = True
            (node.parent or node).refresh()
            return
        first_max_table = node.submodel.halving.max_table if node.clamps else 0
        node.is_and = True
        children = [
            Node(node, Submodel(component, first_max_table), (), -math.inf, math.inf)
            for component in components(model, small=SMALL_COMPONENT, most=MOST_COMPONENTS)
        ]
        self.num_nodes += len(children) + 1
        self.num_leaves += len(children) - 1
        self._submodel_bytes += BYTES_PER_ENTRY * model.num_entries
        if len(children) == 1:
            children[0].lower, children[0].upper = node.lower - rest.upper, node.upper - rest.lower
        node.children = [*children, rest]
        for child in children:
            self.push(child)
        node.refresh()

    def _keep_memory(self) -> None:
        """Let go of what leaves keep for their children, least important first, and then of whole branches."""
        allowed = TREE_MEMORY * self.options.num_bytes / 2  # for what leaves keep, and for the nodes themselves
        if self._num_states * self._state_bytes > allowed:
            self._num_states = int(allowed / 2 / self._state_bytes)
            for _, _, node in sorted(self._heap)[max(1, self._num_states) :]:
                node.state = None
        if self.num_nodes * NODE_BYTES <= allowed:
            return
        ordered = sorted(self._heap)
        for _, _, node in ordered[len(ordered) // 2 :]:
            parent = node.parent
            if parent is None or parent.is_and or not parent.children:
                continue
            if any(child.children for child in parent.children):
                continue
            # the parent's bounds have what its children found: they stay, and that is all that is done about it
            self.num_nodes -= len(parent.children)
            self.num_leaves -= len(parent.children) - 1
            for child in parent.children:
                child.closed = True
            parent.children = []
            self.pruned = True


def check_room(model: Model, allowed: int) -> None:
    """Refuse a model that no search fits into the memory for."""
    needed = bytes_needed(model)
    if allowed < needed:
        raise OptionError(f"memory: expected at least {needed:,} bytes for a model of this size, found {allowed:,}")


def bytes_needed(model: Model) -> int:
    """Return the least memory that a search over a model takes."""
    return 40 * model.num_entries
