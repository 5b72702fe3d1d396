"""`clampz generate`: the models of `generators`."""

import numpy as np
import pytest
from running import run

import clampz as cz


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ("grid --size 4 --weights -6,6 --theta -2,2", lambda: cz.generators.grid(4, 4, rng=1)),
        (
            "grid --size=3x5 --planar --weights=-1,2",
            lambda: cz.generators.grid(3, 5, toroidal=False, weights=(-1, 2), rng=1),
        ),
        ("er --size 12 --degree 3", lambda: cz.generators.erdos_renyi(12, 3, rng=1)),
        ("regular --size 10 --degree 3", lambda: cz.generators.regular(10, 3, rng=1)),
        (
            "complete --size 5 --labels 3 --potentials table",
            lambda: cz.generators.complete(5, labels=3, potentials="table", rng=1),
        ),
        ("cycle --size 5 --weights -3 --theta 0", lambda: cz.generators.cycle(5, theta=0, weights=-3.0, rng=1)),
        ("lamp", lambda: cz.generators.lamp(rng=1)),
        ("barbell --weights 4", lambda: cz.generators.barbell(4.0, rng=1)),
    ],
)
def test_generate(arguments, made, folder):
    assert run("generate", *arguments.split(), "--seed", "1", "-o", "made.uai") == 0
    np.testing.assert_array_equal(cz.read("made.uai").edges, made().edges)
    assert cz.exact(cz.read("made.uai")).log_z == pytest.approx(cz.exact(made()).log_z)
