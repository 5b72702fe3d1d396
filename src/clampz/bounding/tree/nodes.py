"""The nodes of an AND/OR tree, with bounds that pass from the leaves to the root.

A clamp is an OR node: its bounds are the better of its own and the log-sum-exp of its children's, on each side.  A
split into connected components is an AND node: bounds add up.
"""

import math

import numpy as np

from clampz.bounding.leaves.mini_bucket_bounds import WarmStart
from clampz.bounding.leaves.successive_halving import SuccessiveHalving
from clampz.exact_inference.slicing import Slicer
from clampz.model import Model
from clampz.model.conditioning import keep_only
from clampz.numerics import EPS, Floats, log_sum_exp

# Stands for a lower bound of minus infinity where leaves are put in order.
LOWEST = 1e30
# States of a variable up to which it is clamped to each; beyond, its states are halved.
MOST_STATES = 3


class Submodel:
    """A model of its own (the whole, a component, or a branch cut out), and what its leaves share.

    `first_max_table` is the table size where a branch was cut out; 0 for what was not.
    """

    def __init__(self, model: Model, first_max_table: int = 0) -> None:
        self.model = model
        self.halving = SuccessiveHalving(first_max_table)
        self.begun = False  # whether there was an attempt at all
        self.slicer = Slicer(model)
        self.too_wide = -3  # clamps of the last leaf that could not be summed exactly in the time left


class Node:
    """A leaf, an OR node (branches) or an AND node (components).

    `clamps` are the states left of variables of its submodel; `other` is the upper bound on what its log Z is
    multiplied with further up.
    """

    __slots__ = (
        "children",
        "clamps",
        "closed",
        "is_and",
        "lower",
        "other",
        "parent",
        "queued",
        "state",
        "submodel",
        "upper",
    )

    def __init__(
        self,
        parent: "Node | None",
        submodel: Submodel,
        clamps: tuple[tuple[int, tuple[int, ...]], ...],
        lower: float,
        upper: float,
    ) -> None:
        self.parent = parent
        self.submodel = submodel
        self.clamps = clamps
        self.lower = lower
        self.upper = upper
        self.children: list[Node] = []
        self.is_and = False
        self.other: float = parent.other if parent is not None else 0.0
        self.closed = False  # nothing is left to be done below
        self.queued = False  # it waits to be taken up
        self.state: WarmStart | None = None

    def unary(self) -> Floats:
        """(S,) the submodel's unary potentials, clamped."""
        start = self.submodel.model.unary.start
        out = self.submodel.model.unary.flat.copy()
        for i, states in self.clamps:
            keep_only(out, start, i, states)
        return out

    def tighten(self, lower: float, upper: float) -> None:
        """Take these bounds where they are tighter."""
        self.lower, self.upper = max(self.lower, float(lower)), min(self.upper, float(upper))

    def refresh(self) -> None:
        """Take bounds from the children's where these are tighter, and so on up to the root."""
        node: Node | None = self
        while node is not None:
            if node.children:
                lowers = np.array([child.lower for child in node.children])
                uppers = np.array([child.upper for child in node.children])
                if node.is_and:
                    lower = float(lowers.sum())
                    upper = -math.inf if (uppers == -math.inf).any() else float(uppers.sum())
                    sizes = (np.abs(ends[np.isfinite(ends)]).sum() for ends in (lowers, uppers))
                    rounding = EPS * (len(lowers) + 1) * float(sum(sizes))
                else:
                    lower, upper = log_sum_exp(lowers), log_sum_exp(uppers)
                    rounding = 4 * EPS * (len(lowers) + sum(abs(end) for end in (lower, upper) if math.isfinite(end)))
                lower, upper = max(node.lower, lower - rounding), min(node.upper, upper + rounding)
                if lower == node.lower and upper == node.upper and not all(child.closed for child in node.children):
                    return
                node.lower, node.upper = lower, upper
                node.closed = all(child.closed for child in node.children)
            node = node.parent

    def key(self, criterion: str = "gap") -> float:
        """Return how much of the root's gap comes from here: log(exp(upper) - exp(lower)) or one end, plus `other`."""
        if self.upper == -math.inf or self.lower >= self.upper:
            return -math.inf
        if self.upper == math.inf:
            return math.inf  # nothing is known of it yet
        if criterion != "gap":
            return (self.upper if criterion == "upper" else max(self.lower, -LOWEST)) + self.other
        width = self.upper - self.lower
        return self.upper + self.other + (math.log(-math.expm1(-width)) if width < 700 else 0.0)


def groups(node: Node, variable: int, *, apart: bool = False) -> list[tuple[int, ...]]:
    """Return the states left of a variable, apart where they are few or all `apart`, else in two halves by belief."""
    start = node.submodel.model.unary.start
    unary = node.unary()[start[variable] : start[variable + 1]]
    states = np.flatnonzero(unary > -np.inf)
    if apart or len(states) <= MOST_STATES:
        return [(int(a),) for a in states]
    weight = node.state.beliefs[start[variable] + states] if node.state is not None else np.ones(len(states))
    order = states[np.argsort(-weight, kind="stable")]
    return [tuple(sorted(order[0::2].tolist())), tuple(sorted(order[1::2].tolist()))]
