"""A little of `benchmarks/soundness.py`: bounds against decimal arithmetic, on models of every kind."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import clampz as cz

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "soundness.py"
MODELS_OF_A_KIND = 4


@pytest.fixture(scope="module")
def soundness():
    spec = importlib.util.spec_from_file_location("soundness", SCRIPT)
    module = sys.modules["soundness"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kinds():
    source = SCRIPT.read_text().split("KINDS:")[1].split("for make in (")[1].split(")")[0]
    return [name.strip() for name in source.split(",") if name.strip()]


@pytest.mark.parametrize("kind", kinds())
def test_every_bound_holds(soundness, kind):
    for number in range(MODELS_OF_A_KIND):
        seed = [12, number]
        drawn = soundness.KINDS[kind](np.random.default_rng(seed))
        assert soundness.first_finding(drawn, seed) is None


@pytest.mark.parametrize("kind", kinds())
def test_the_truth_is_that_of_enumeration(soundness, kind):
    drawn = soundness.KINDS[kind](np.random.default_rng(3))
    if np.prod([float(k) for k in drawn.num_states]) > 1e5 or kind in ("huge", "cancelling"):
        return
    scores = np.full(drawn.num_states, np.longdouble(drawn.constant))
    for scope, table in drawn.factors:
        shape = [k if i in scope else 1 for i, k in enumerate(drawn.num_states)]
        scores = scores + np.transpose(table, np.argsort(scope)).reshape(shape).astype(np.longdouble)
    top, truth = scores.max(), soundness.truth_of(drawn)
    if top == -np.inf:
        assert truth.log_z is None
        return
    log_z = top + np.log(np.exp(scores - top).sum())
    assert float(truth.log_z) == pytest.approx(float(log_z), rel=1e-12, abs=1e-12)


def test_a_false_bound_is_found_and_made_small(soundness, monkeypatch):
    """The harness can fail: a method that lies is caught, and the model that shows it shrinks."""
    drawn = soundness.pairwise(np.random.default_rng(1))
    honest = cz.exact

    def lying(model, **options):
        found = honest(model, **options)
        return found if not model.num_edges else type(found)(**{**vars(found), "lower": found.upper + 1.0})

    monkeypatch.setattr(soundness.cz, "exact", lying)
    assert "exact: " in soundness.first_finding(drawn, [1])
    small = soundness.shrunk(drawn, [1], seconds=60.0)
    assert len(small.factors) == 1 and len(small.num_states) == 2
    assert "cz.Model.from_factors" in small.program()
