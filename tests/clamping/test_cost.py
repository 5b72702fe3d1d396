"""How many clamps there is time and memory for."""

import pytest

import clampz as cz
from clampz.approximations.cost import BRANCH_SWEEPS, STARTS, TYPICAL_SWEEPS, seconds_per_sweep
from clampz.clamping.cost import MAX_CLAMPS, affordable

MODEL = cz.generators.grid(6, 6, rng=0)


def test_larger_models_take_longer_for_a_sweep():
    assert 0 < seconds_per_sweep(MODEL) < seconds_per_sweep(cz.generators.grid(9, 9, rng=0))
    assert seconds_per_sweep(cz.generators.grid(6, 6, labels=4, rng=0)) > seconds_per_sweep(MODEL)
    assert set(TYPICAL_SWEEPS) == set(STARTS) == set(BRANCH_SWEEPS)


@pytest.mark.parametrize("method", [cz.mean_field, cz.bethe, cz.trw])
def test_more_time_is_more_clamps(method):
    found = method(MODEL)
    counts = [affordable(found, seconds) for seconds in (0.0, 1e-3, 0.03, 1.0, 1e3)]
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1] == MAX_CLAMPS
    assert affordable(found, 0.03, tries=8) <= affordable(found, 0.03) <= affordable(found, 0.03, given=True)


def test_no_more_clamps_than_variables_on_cycles():
    assert affordable(cz.bethe(cz.generators.cycle(4, rng=0)), 1e3) == 4
    assert affordable(cz.bethe(cz.generators.from_graph(3, [(0, 1), (1, 2)], rng=0)), 1e3) == 0


def test_clamps_fit_in_memory(monkeypatch):
    found = cz.bethe(MODEL)
    monkeypatch.setattr("clampz.clamping.branches.memory_allowed", lambda max_table: 0)
    assert affordable(found, 1e3) == 0


def test_what_a_sweep_takes_is_not_asked_where_no_clamp_fits(monkeypatch):
    """With larger factors it is asked of an equivalent that is many times as large as the model."""
    found = cz.mean_field(MODEL)
    monkeypatch.setattr("clampz.clamping.cost.seconds_per_sweep", lambda _: pytest.fail("work"))
    assert affordable(found, 1e3, memory=100) == affordable(found, 1e3, "1KB", tries=8) == 0
