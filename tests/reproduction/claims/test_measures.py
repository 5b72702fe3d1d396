"""What the claims are judged by: means, their standard errors, ratios, and errors over time."""

import math
from itertools import product

import numpy as np
import pytest
from made_up_tables import Fiction

from reproduction.claims.measures import Mean, Measures, combination, ratio, stratified
from reproduction.families import families
from reproduction.settings import METHODS, TIMED


def test_stratified_means():
    rng = np.random.default_rng(0)
    groups = [rng.normal(level, 0.1, size) for level, size in ((0.0, 50), (10.0, 200))]
    found = stratified([*groups, np.array([math.nan])])
    assert found.value == pytest.approx(5, abs=0.05) and found.num_runs == 250
    # the distance between the groups is no noise
    assert found.error == pytest.approx(math.hypot(0.1 / math.sqrt(50), 0.1 / math.sqrt(200)) / 2, rel=0.2)
    # of single runs it has to stand in
    assert stratified([np.array([float(k)]) for k in range(10)]).error == pytest.approx(
        np.std(range(10), ddof=1) / math.sqrt(10)
    )
    assert stratified([np.array([1.0]), np.array([2.0])]).error == math.inf
    assert stratified([]).num_runs == 0


def test_standard_errors_are_honest():
    """Of two thousand differences of nothing, about one in twenty looks like something."""
    rng = np.random.default_rng(1)
    found = [stratified([rng.normal(0, 1, 20), rng.normal(0, 3, 10)]).above() for _ in range(2000)]
    assert 0.03 < np.mean([verdict is not None for verdict in found]) < 0.09


def test_ratio():
    rng = np.random.default_rng(2)
    wholes = [rng.uniform(1, 3, 100) for _ in range(3)]
    found = ratio([0.25 * whole for whole in wholes], wholes)
    assert found.value == pytest.approx(0.25) and found.error == pytest.approx(0, abs=1e-12)
    estimates = [ratio([rng.normal(0.5, 0.2, 40)], [rng.normal(2.0, 0.2, 40)]) for _ in range(300)]
    assert np.std([e.value for e in estimates]) == pytest.approx(np.mean([e.error for e in estimates]), rel=0.15)


def test_combinations_of_means():
    rng = np.random.default_rng(3)
    groups = [rng.normal(level, 0.1, 100) for level in (5.0, 1.0, 2.0)]
    found = combination(groups, [1.0, -0.5, -0.5])
    assert found.value == pytest.approx(3.5, abs=0.05) and found.error == pytest.approx(0.01 * math.sqrt(1.5), rel=0.2)
    assert combination([groups[0], np.empty(0)], [1.0, -1.0]).num_runs == 0


@pytest.mark.parametrize(
    ("mean", "text"),
    [
        (Mean(0.1234, 0.0056, 100), "0.123 ± 0.006"),
        (Mean(-0.3, 1.4, 9), "-0.3 ± 1.4"),
        (Mean(12345.6, 78.0, 9), "12346 ± 78"),
        (Mean(1.0, 0.0, 9), "1.00 ± 0.00"),
        (Mean(0.0, 0.0, 9), "0 ± 0"),
        (Mean(2.5, math.inf, 2), "2.5 (too few runs for a standard error)"),
        (Mean(math.nan, math.inf, 0), "no data"),
    ],
)
def test_means_in_print(mean, text):
    assert str(mean) == text


def test_means_beyond_noise():
    assert (
        Mean(1.0, 0.4, 10).above() is True
        and Mean(1.0, 0.6, 10).above() is None
        and Mean(-1.0, 0.1, 10).above() is False
    )
    assert Mean(1.0, math.inf, 10).above() is None and Mean(1.0, 0.4, 10).below(2.0) is True


def test_errors_over_time():
    fiction = Fiction(families=families("grid", 25, (-6, 6)), experiments=["times"], num_runs=4, noise=0.0)
    measured = Measures(fiction.table())
    family = fiction.families[0]
    seconds = measured.seconds(family, "mf", "maxW").mean(axis=0)
    found = measured.over_time(
        family, "mf", "maxW", np.array([seconds[0] / 2, seconds[0], seconds[2] * 0.999, seconds[5] * 10])
    )
    errors = measured.error(family, "mf", "maxW", "times")[0]
    np.testing.assert_allclose(found[0], [errors[0], errors[0], errors[1], errors[5]])


def test_no_family_is_lost_by_rounding():
    """Points in time begin and end at means that are taken of several arrays: with all runs alike but for the last
    digits of their times, whoever is there first and last has to be."""
    fiction = Fiction(families=families(weights=(-6, 6), size=25), experiments=["times"], num_runs=37, noise=0.3)
    measured = Measures(fiction.table())
    for family, method, all_steps in product(measured.families("times"), METHODS, (False, True)):
        times = measured.times(family, [method], TIMED, all_steps)
        for selector in TIMED:
            found = measured.over_time(family, method, selector, times, all_steps)
            errors = measured.error(family, method, selector, "times")
            assert (found[:, 0] == errors[:, 0]).all()
        slowest = max(TIMED, key=lambda name: np.nanmax(measured.seconds(family, method, name, all_steps).mean(axis=0)))
        errors = measured.error(family, method, slowest, "times")
        last = measured.over_time(family, method, slowest, times, all_steps)[:, -1]
        assert (last == errors[:, 3 if slowest == "greedy" else 5]).all()


def test_agreement_is_read_from_the_table():
    fiction = Fiction(
        families=families("grid", 25, (-6, 6)),
        experiments=["errors"],
        num_runs=4,
        agreement=lambda selector, k: float(selector == "maxW" or k == 2),
    )
    measured = Measures(fiction.table())
    assert (measured.agreement(fiction.families[0], "trw", "maxW") == 1).all()
    assert (measured.agreement(fiction.families[0], "trw", "Mpower") == [0, 1, 0, 0, 0]).all()
