"""The descent of upper bounds: as low as SciPy's L-BFGS-B gets in as many evaluations."""

import contextlib

import numpy as np
import pytest
from scipy.optimize import minimize

import clampz as cz
from clampz.bracketing import narrow_bounds
from clampz.bracketing.descent import MEMORY, descend
from clampz.bracketing.narrow import Narrow, NarrowState
from clampz.watch import Watch


def by_scipy(evaluate, x, max_evaluations, watch):
    class Enough(Exception):  # noqa: N818
        pass

    left = max_evaluations

    def counted(x):
        nonlocal left
        if not left:
            raise Enough
        left -= 1
        return evaluate(x)

    with contextlib.suppress(Enough):
        minimize(counted, x, jac=True, method="L-BFGS-B", options={"maxfun": max_evaluations, "maxcor": MEMORY})


@pytest.mark.parametrize("max_evaluations", [8, 25])
@pytest.mark.parametrize(
    "model",
    [cz.generators.complete(14, weights=(-6, 6), rng=0), cz.generators.grid(8, 8, weights=(-6, 6), rng=0)],
    ids=["complete", "torus"],
)
def test_as_tight_as_scipy(model, max_evaluations, monkeypatch):
    narrow = Narrow.of(model, 2.0**7)
    q = cz.mean_field(model).marginals.flat
    start = NarrowState.at(q, q)
    ours = narrow.bounds(model.unary.flat, start, max_evaluations).upper
    monkeypatch.setattr(narrow_bounds, "descend", by_scipy)
    assert ours <= narrow.bounds(model.unary.flat, start, max_evaluations).upper * (1 + 1e-6)


def quadratic(scale, seen):
    """A bowl whose sides differ in steepness, with its lowest point at 1."""

    def evaluate(x):
        seen.append(x)
        return float(0.5 * (scale * (x - 1.0) ** 2).sum()), scale * (x - 1.0)

    return evaluate


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_a_bowl(scale):
    seen = []
    descend(quadratic(scale * np.array([1.0, 10.0, 100.0]), seen), np.zeros(3), 60, Watch())
    assert seen[-1] == pytest.approx(np.ones(3), abs=1e-2)


@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_more_evaluations_than_allowed(most):
    seen = []
    descend(quadratic(np.linspace(1.0, 1e4, 50), seen), np.zeros(50), most, Watch())
    assert len(seen) == most


def test_it_stops_when_told_to():
    seen = []
    descend(quadratic(np.linspace(1.0, 1e4, 50), seen), np.zeros(50), 100, Watch(stop=lambda: len(seen) >= 3))
    assert len(seen) == 3


@pytest.mark.parametrize("beyond", [np.inf, np.nan])
def test_steps_out_of_the_finite_are_taken_back(beyond):
    seen = []

    def evaluate(x):
        seen.append(x)
        if x[0] > 0.4:
            return beyond, np.zeros(1)
        return float((x[0] - 0.3) ** 2), 2 * (x - 0.3)

    descend(evaluate, np.zeros(1), 30, Watch())
    assert min(abs(x[0] - 0.3) for x in seen) < 1e-3
