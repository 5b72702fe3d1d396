"""Partitions into narrow subgraphs, for structured mean field."""

import math

import numpy as np
import pytest

import clampz as cz
from clampz.bounding.leaves.partitions import parts_of, tie_strength
from clampz.elimination.orders import elimination_entries
from clampz.runtime.budget import Budget


@pytest.mark.parametrize("max_table", [8.0, 64.0, 1024.0])
def test_parts_keep_to_the_limit(max_table):
    model = cz.generators.grid(6, 6, rng=2)
    labels = parts_of(model, max_table, tie_strength(model), Budget())
    edges = model.edges.astype(np.int64)
    for number in range(labels.max() + 1):
        inside = edges[(labels[edges] == number).all(axis=1)]
        assert (
            len(np.flatnonzero(labels == number)) == 1
            or elimination_entries(inside, np.ones(36), np.flatnonzero(labels == number), math.inf) < max_table
        )
