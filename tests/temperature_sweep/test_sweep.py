"""Sweeps over inverse temperatures: exact where narrow, certified everywhere, and what Kaufman knew of the torus."""

import math
import signal
import sys

import numpy as np
import pytest
from naive import enumerate_factors
from random_factors import random_factors
from thermodynamics import thermodynamics

import clampz as cz
from clampz.errors import EvidenceError, OptionError, TooWideError
from clampz.runtime.budget import Budget
from clampz.temperature_sweep import sweep

EXACT = 1e-10
BETAS = np.array([1.0, 0.0, 2.0, 0.4])


def torus(rows, columns, K):
    """Spins with coupling K: beta = 1 is exp(K sum s s), with no other constant."""
    place = np.arange(rows * columns).reshape(rows, columns)
    edges = np.concatenate([np.stack([place, np.roll(place, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)])
    return cz.Model.from_binary(np.zeros(rows * columns), np.full(len(edges), 4 * K), edges, constant=-K * len(edges))


def kaufman(rows, columns, K):
    """log Z of that torus (Kaufman 1949), which is a sum of four products over the modes of a row."""
    n, m = columns, rows

    def gamma(r):
        if r == 0:
            return 2 * K + math.log(math.tanh(K))
        cosh = math.cosh(2 * K) / math.tanh(2 * K) - math.cos(math.pi * r / n)
        return math.acosh(cosh)

    odd, even = [gamma(2 * r + 1) for r in range(n)], [gamma(2 * r) for r in range(n)]
    terms = [
        sum(math.log(2 * math.cosh(m / 2 * g)) for g in odd),
        sum(math.log(2 * abs(math.sinh(m / 2 * g))) for g in odd),
        sum(math.log(2 * math.cosh(m / 2 * g)) for g in even),
        sum(math.log(2 * abs(math.sinh(m / 2 * g))) for g in even),
    ]
    signs = [1.0, 1.0, 1.0, math.copysign(1.0, even[0])]
    top = max(terms)
    total = math.log(sum(sign * math.exp(term - top) for sign, term in zip(signs, terms, strict=True)))
    return top + total - math.log(2) + rows * columns / 2 * math.log(2 * math.sinh(2 * K))


def derivatives(log_z, beta):
    """First and second, by differences of fourth order."""
    h = 1e-3 * beta
    a, b, c, d, e = (log_z(beta + k * h) for k in (-2, -1, 0, 1, 2))
    return (a - 8 * b + 8 * d - e) / (12 * h), (-a + 16 * b - 30 * c + 16 * d - e) / (12 * h * h)


def test_kaufman_s_formula_is_what_enumeration_says():
    model = torus(3, 4, 0.3)
    scopes = [((i,), model.unary[i]) for i in range(12)] + [(pair, model.pairwise[pair]) for pair in model.pairwise]
    assert abs(enumerate_factors(model.num_states, scopes, model.constant)[0] - kaufman(3, 4, 0.3)) < 1e-9


@pytest.mark.parametrize("size", [8, 9])
def test_a_torus_of_spins_is_what_kaufman_says(size):
    K, betas = 0.44, np.array([0.5, 1.0, 1.5])
    found = cz.sweep(torus(size, size, K), betas)
    assert found.by == ("exact",) * 3
    for k, beta in enumerate(betas):
        truth = kaufman(size, size, K * beta)
        first, second = derivatives(lambda b: kaufman(size, size, K * b), beta)
        assert found.lower[k] - 1e-9 <= truth <= found.upper[k] + 1e-9
        assert abs(found.log_z[k] - truth) < 1e-9
        assert abs(found.energy[k] + first) < 1e-6 * abs(first)
        assert abs(found.entropy[k] - (truth - beta * first)) < 1e-5 * abs(first)
        assert abs(found.heat_capacity[k] - beta**2 * second) < 1e-4 * beta**2 * second


@pytest.mark.parametrize("method", ["auto", "exact", "mf", "bethe", "trw", "mini_buckets"])
def test_every_method_against_enumeration(method):
    model = random_factors(np.random.default_rng(8), zeros=0.15)
    found = cz.sweep(model, BETAS, method=method, rng=3)
    assert found.beta.tolist() == BETAS.tolist()
    for k, beta in enumerate(BETAS):
        log_z, energy, entropy, heat = thermodynamics(model, beta)
        assert found.lower[k] - EXACT <= log_z <= found.upper[k] + EXACT
        if found.by[k] == "exact":
            assert np.allclose([found.log_z[k], found.energy[k], found.entropy[k]], [log_z, energy, entropy], atol=1e-9)
            assert abs(found.heat_capacity[k] - heat) < 1e-6 * (1 + heat)
    assert set(found.by) == {{"auto": "exact", "mf": "mean_field"}.get(method, method)}
    assert found.stopped_by == "tol"


def test_where_exact_sums_do_not_fit_log_z_is_bracketed(monkeypatch):
    model = torus(6, 6, 0.44)
    monkeypatch.setattr(sweep, "EXACT_TIME", 0.0)
    monkeypatch.setattr(sweep, "DEFAULT_TIME", 6.0)
    found = cz.sweep(model, [0.0, 0.3, 0.8])
    assert found.by == ("bracket",) * 3
    assert "bracketed" in found.reason
    truth = np.array([36 * math.log(2), kaufman(6, 6, 0.44 * 0.3), kaufman(6, 6, 0.44 * 0.8)])
    assert (found.lower <= truth + 1e-9).all() and (truth <= found.upper + 1e-9).all()
    assert (found.gap < 20.0).all()
    assert (found.gap[0] < 1e-6) and abs(found.log_z[0] - truth[0]) < 1e-6
    # where mini-buckets do not pay, or there is time, a search says the ends
    for name, value in (("LEAST_LIMIT", 2**20), ("SEARCH_SECONDS", 0.0)):
        with monkeypatch.context() as patch:
            patch.setattr(sweep, name, value)
            other = cz.sweep(model, [0.3], time=2.0)
        assert other.lower[0] - 1e-9 <= truth[1] <= other.upper[0] + 1e-9
        assert other.gap[0] < 1.0


def test_models_too_large_for_regions_have_the_bound_of_trees(monkeypatch):
    """Beside what `bound` finds in what time is left."""
    model = torus(6, 6, 0.44)
    for name, value in (("EXACT_SHARE", 0.0), ("LEAST_LIMIT", 2**20)):
        monkeypatch.setattr(sweep, name, value)
    monkeypatch.setattr(sweep, "bound", lambda model, **_: cz.mean_field(model))
    found = cz.sweep(model, [0.3], time=20.0)
    assert found.upper[0] == pytest.approx(cz.trw(model, beta=0.3).upper, abs=1e-6)
    assert found.lower[0] <= kaufman(6, 6, 0.44 * 0.3) <= found.upper[0]


def test_where_memory_is_too_short_for_methods_there_are_ends_alone(monkeypatch):
    model = torus(6, 6, 0.44)
    monkeypatch.setattr(sweep, "EXACT_SHARE", 0.0)
    monkeypatch.setattr(sweep.bethe, "fits", lambda *_: False)
    for least in (sweep.LEAST_LIMIT, 2**20):
        monkeypatch.setattr(sweep, "LEAST_LIMIT", least)
        found = cz.sweep(model, [0.3], time=5.0)
        assert found.lower[0] <= kaufman(6, 6, 0.44 * 0.3) <= found.upper[0] and found.gap[0] < 1.0
        assert np.isnan([found.log_z[0], found.energy[0], found.heat_capacity[0]]).all() and found.by == ("bracket",)


def test_what_the_ends_refute_is_not_shown(monkeypatch):
    """On a frustrated complete graph Bethe's mean score is far above the largest one."""
    model = cz.generators.complete(16, weights=(-8, 8), rng=0)
    monkeypatch.setattr(sweep, "EXACT_TIME", 0.0)
    monkeypatch.setattr(sweep, "DEFAULT_TIME", 4.0)
    solved = sweep._Sweeping._solved

    def settled(self, method, beta, budget, **own):
        """Bethe as it is when it settles: what it says before depends on how quick it is."""
        return solved(self, method, beta, Budget() if method is sweep.bethe else budget, **own)

    monkeypatch.setattr(sweep._Sweeping, "_solved", settled)
    found = cz.sweep(model, [0.0, 0.3, 1.0, 2.0])
    assert found.by == ("bracket",) * 4
    shown = ~np.isnan(found.energy)
    assert shown[0] and not shown[-1]
    assert (found.entropy[shown] >= -1.0).all()
    assert (np.isnan(found.heat_capacity) | shown).all()
    assert -cz.bethe(model, beta=2.0).energy > cz.mode(model).upper


def test_evidence_and_one_beta():
    model = cz.Model([[0.0, 1.0], [0.0, 0.0, 2.0]], {(0, 1): [[0, 0, 1], [1, 0, -np.inf]]}, names=["a", "b"])
    found = cz.sweep(model, 0.5, evidence={"a": 1})
    truth = thermodynamics(model, 0.5, {0: 1})
    assert np.allclose([found.log_z[0], found.energy[0], found.entropy[0]], truth[:3], atol=EXACT)
    assert abs(found.heat_capacity[0] - truth[3]) < 1e-7
    with pytest.raises(EvidenceError):
        cz.sweep(model, 0.5, evidence={"c": 1})


def test_the_same_on_any_number_of_threads():
    model = cz.generators.grid(4, 4, weights=(-3, 3), rng=0)
    for method in ("auto", "mf"):
        one, two = (cz.sweep(model, [0.5, 1.0], method=method, threads=threads, rng=7) for threads in (1, 2))
        assert one.log_z.tolist() == two.log_z.tolist()
        assert one.heat_capacity.tolist() == two.heat_capacity.tolist()


def test_models_with_nothing_to_sweep():
    empty = cz.sweep(cz.Model([], constant=2.0), [0.0, 1.0])
    assert np.allclose(empty.log_z, [0.0, 2.0])
    none = cz.sweep(cz.Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): np.full((2, 2), -np.inf)}), [0.0, 1.0])
    assert none.log_z.tolist() == [-np.inf, -np.inf]
    assert none.gap.tolist() == [0.0, 0.0]


def test_bad_input_is_refused_before_work_begins():
    model = cz.generators.cycle(3, rng=0)
    for beta in (-1.0, [0.5, math.nan], []):
        with pytest.raises(OptionError, match="beta"):
            cz.sweep(model, beta)
    with pytest.raises(OptionError, match="unknown method"):
        cz.sweep(model, 1.0, method="magic")
    with pytest.raises(OptionError, match="time"):
        cz.sweep(model, 1.0, time=-1)
    with pytest.raises(OptionError, match="rng"):
        cz.sweep(model, 1.0, rng="luck")
    with pytest.raises(TooWideError, match="a copy of the model"):
        cz.sweep(model, 1.0, memory=10)


def test_a_callback_sees_the_betas_and_ends_the_run():
    model, seen = cz.generators.grid(3, 3, rng=0), []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 2:
            raise StopIteration

    found = cz.sweep(model, [0.5, 1.0, 2.0], method="trw", progress=stop)
    assert all(progress.num_lanes == 3 for progress in seen)
    assert len(seen) == 2
    assert found.stopped_by == "callback"
    assert found.by[-1] == ""
    assert np.isinf(found.upper[-1])


def test_ctrl_c_ends_it_with_what_there_is():
    model = cz.generators.grid(3, 3, rng=0)

    def interrupt(progress):
        signal.raise_signal(signal.SIGINT)

    found = cz.sweep(model, [0.5, 1.0, 2.0], method="trw", progress=interrupt)
    assert found.stopped_by == "interrupt"
    assert np.isfinite(found.upper[0])
    assert found.by[-1] == ""


def test_what_it_says_of_itself():
    found = cz.sweep(cz.generators.cycle(3, rng=0), [0.0, 1.0])
    assert repr(found).startswith("Sweep(2 inverse temperatures from 0 to 1, gap ")
    assert list(found.columns) == [
        "beta", "lower", "upper", "log_z", "energy", "entropy", "heat_capacity", "by",
    ]  # fmt: skip
    assert len(found) == 2


def test_a_frame_has_a_row_for_each_beta():
    pytest.importorskip("pandas")
    frame = cz.sweep(cz.generators.cycle(3, rng=0), [0.0, 1.0]).to_frame()
    assert frame.shape == (2, 8)
    assert frame["by"].tolist() == ["exact", "exact"]


def test_without_pandas_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(cz.errors.MissingLibraryError, match="pip install pandas"):
        cz.sweep(cz.generators.cycle(3, rng=0), [0.0]).to_frame()


def test_what_there_is_no_time_to_begin_is_not_begun(monkeypatch):
    def begun(*args, **options):
        raise AssertionError("begun")

    monkeypatch.setattr(sweep, "SECONDS_TO_PLAN", 1e6)
    monkeypatch.setattr(sweep, "LEAST_SECONDS", 1e6)
    monkeypatch.setattr(sweep, "bound", begun)
    monkeypatch.setattr(sweep._Sweeping, "_solved", begun)
    found = cz.sweep(cz.generators.grid(3, 3, rng=0), [0.5, 1.0], time=5.0)
    assert np.isnan(found.log_z).all()
    assert (found.lower == -np.inf).all() and (found.upper == np.inf).all()


def test_ctrl_c_is_heard_from_the_first_line_on(monkeypatch):
    real = sweep.given

    def pressed(*args):
        signal.raise_signal(signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(sweep, "given", pressed)
    assert cz.sweep(cz.generators.grid(3, 3, rng=0), [0.5, 1.0]).stopped_by == "interrupt"
