"""What is done next: which leaf, and which variable of it."""

import pytest
from random_models import frustrated

import clampz as cz


@pytest.mark.parametrize("select", ["maxW", "frustCycles+TRE"])
@pytest.mark.parametrize("criterion", ["gap", "upper", "lower"])
def test_selectors_and_criteria(select, criterion):
    model = frustrated(2)
    bracket = cz.bound(model, gap=0.1, time=60, exact=False, select=select, criterion=criterion)
    assert bracket.gap <= 0.1 and bracket.lower <= cz.exact(model).log_z <= bracket.upper
