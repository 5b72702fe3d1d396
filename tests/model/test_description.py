"""What a model is like, in numbers and in words."""

import numpy as np

import clampz as cz
from clampz.model.description import describe, in_words


def test_sizes_graph_and_zeros_are_counted():
    rng = np.random.default_rng(0)
    zeros = [[0, -np.inf], [0, 0]]
    model = cz.Model.from_factors([2, 2, 3, 2, 2], [((0, 1, 2), rng.normal(size=(2, 2, 3))), ((3, 4), zeros)])
    found = describe(model.condition({0: 1}))
    assert (found["variables"], found["fixed"], found["labels"], found["larger_factors"]) == (5, 1, [2, 3], {})
    found = describe(model)
    assert (found["edges"], found["larger_factors"], found["zeros"], found["kind"]) == (1, {"3": 1}, 1, None)
    assert (found["components"], found["largest_component"], found["core"]) == (2, 3, 3)
    assert found["table_entries"] == model.num_entries == 11 + 4 + 12


def test_in_words():
    words = in_words(describe(cz.generators.grid(3, 3, weights=(2, 2), rng=0)))
    assert words["variables"] == "9"
    assert words["labels"] == "2"
    assert words["factors"] == "9 unary, 18 edges; 90 table entries"
    assert words["zeros"] == "none"
    assert words["kind"] == "attractive"
    assert words["strength"] == "|W| 2 in the middle, 2 at most"
    assert "0 variables" in in_words(describe(cz.Model([])))["core"]
