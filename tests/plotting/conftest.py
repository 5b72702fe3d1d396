"""A model, and what every method says of it."""

import pytest

import clampz as cz


@pytest.fixture(scope="module")
def model() -> cz.Model:
    return cz.generators.grid(4, 4, toroidal=False, rng=1)


@pytest.fixture(scope="module")
def estimates(model: cz.Model) -> dict[str, cz.Estimate]:
    return {"mean field": cz.mean_field(model), "Bethe": cz.bethe(model), "TRW": cz.trw(model)}


@pytest.fixture(scope="module")
def exact(model: cz.Model) -> cz.Estimate:
    return cz.exact(model)


@pytest.fixture(scope="module")
def clampings(model: cz.Model) -> list[cz.Clamped]:
    return [cz.clamp(model, method, k=3) for method in ("trw", "bethe", "mf")]
