"""Bounds that pass up the tree."""

from fractions import Fraction

import numpy as np

import clampz as cz
from clampz.bounding.tree.nodes import Node, Submodel


def test_rounding_of_ends_far_from_zero():
    """A lower end of -1e9 is charged for its own size, whatever the upper one is."""
    submodel = Submodel(cz.Model([[0.0, 0.0]]))
    rng = np.random.default_rng(0)
    for _ in range(100):
        node = Node(None, submodel, (), -np.inf, np.inf)
        ends = -1e9 + rng.normal(size=2)
        node.children = [Node(node, submodel, (), float(end), np.inf) for end in ends]
        node.refresh()
        assert Fraction(node.lower) <= Fraction(float(ends.max())) + Fraction(
            float(np.log1p(np.exp(-abs(ends[0] - ends[1]))))
        ) + Fraction(1e-12)
