"""What is left of a model where variables are fixed, and its components."""

import numpy as np
import pytest

import clampz as cz
from clampz.model.fixing import components, reduced
from random_models import frustrated


def test_reduced_models_have_the_same_sum():
    model = frustrated(1)
    unary = model.unary.flat.copy()
    unary[[0, 5]] = -np.inf
    smaller = reduced(model, unary)
    assert smaller.num_variables == 5 and cz.exact(smaller).log_z == pytest.approx(
        cz.exact(model, evidence={0: 1, 2: 0}).log_z, abs=1e-9
    )
    assert sum(part.num_variables for part in components(cz.Model([[0.0, 1.0]] * 4, {(0, 2): np.eye(2)}))) == 4
