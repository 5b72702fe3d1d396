"""exp, log and their relatives against extended precision."""

import numpy as np
import pytest
from numba import njit

from clampz._kernels import simd_math

# Promised by the module, and what `engine.ROUNDINGS` counts on.
RELATIVE = 5e-16


@njit
def apply_exp(x, out):
    for k in range(x.size):
        out[k] = simd_math.exp(x[k])


@njit
def apply_log(x, out):
    for k in range(x.size):
        out[k] = simd_math.log(x[k])


@njit
def apply_sigmoid(x, out):
    for k in range(x.size):
        out[k] = simd_math.sigmoid(x[k])


@njit
def apply_softplus(x, out):
    for k in range(x.size):
        out[k] = simd_math.softplus(x[k])


@njit
def apply_clip(x, out):
    for k in range(x.size):
        out[k] = simd_math.clip(x[k])


@njit
def apply_twice_atanh(x, out):
    for k in range(x.size):
        out[k] = simd_math.twice_atanh(x[k])


@njit
def apply_log_ratio(a, b, out):
    for k in range(a.size):
        out[k] = simd_math.log_ratio(a[k], b[k])


def applied(function, *values):
    arrays = [np.ascontiguousarray(v, dtype=np.float64) for v in values]
    out = np.empty_like(arrays[0])
    function(*arrays, out)
    return out


def assert_relative(found, wanted, tolerance):
    error = np.abs(found.astype(np.longdouble) - wanted) / np.abs(wanted)
    assert error.max() <= tolerance


def wide(rng, low, high, size=20_000):
    """Numbers of every size from 10**low to 10**high."""
    return 10.0 ** rng.uniform(low, high, size)


def test_exp_over_its_range():
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-700, 700, 50_000), rng.uniform(-1, 1, 20_000), wide(rng, -300, 0), -wide(rng, -300, 0)]
    )
    assert_relative(applied(apply_exp, x), np.exp(x.astype(np.longdouble)), RELATIVE)


def test_exp_at_its_limits():
    x = np.array(
        [-simd_math.EXP_LIMIT, simd_math.EXP_LIMIT, 0.0, -0.0, 1.0, -1.0, np.log(2.0), 0.5 * np.log(2.0), 5e-324]
    )
    found = applied(apply_exp, x)
    assert np.isfinite(found).all() and (found > np.finfo(float).tiny).all()
    assert found[2] == found[3] == found[8] == 1.0
    assert_relative(found, np.exp(x.astype(np.longdouble)), RELATIVE)


def test_log_over_all_normal_numbers():
    rng = np.random.default_rng(1)
    x = np.concatenate([wide(rng, -307, 308, 50_000), rng.uniform(0.3, 3, 50_000)])
    wanted = np.log(x.astype(np.longdouble))
    found = applied(apply_log, x)
    # beside 1 the logarithm is small and the error is that of the argument's last place at most
    assert (np.abs(found - wanted) <= RELATIVE * np.maximum(np.abs(wanted), np.abs(x - 1))).all()


def test_log_of_the_extremes():
    # up to half the largest double: the sum of the ratio's two sides must not overflow
    x = np.array([np.finfo(float).tiny, np.finfo(float).max / 2, 2.0, 0.5, np.e, 1 + 2**-52, 1 - 2**-53])
    assert_relative(applied(apply_log, x), np.log(x.astype(np.longdouble)), RELATIVE)
    assert applied(apply_log, [1.0]).tolist() == [0.0]


def test_twice_atanh():
    z = np.concatenate([np.linspace(-0.1716, 0.1716, 2000), np.geomspace(1e-12, 0.17, 200)])
    assert_relative(applied(apply_twice_atanh, z), 2 * np.arctanh(z.astype(np.longdouble)), RELATIVE)


def test_log_ratio_needs_no_quotient():
    rng = np.random.default_rng(2)
    a, b = wide(rng, -300, 300, 50_000), wide(rng, -300, 300, 50_000)  # a / b would overflow or vanish
    wanted = np.log(a.astype(np.longdouble)) - np.log(b.astype(np.longdouble))
    far = np.abs(wanted) > 1  # nearer the difference of two logarithms is no reference
    assert_relative(applied(apply_log_ratio, a, b)[far], wanted[far], RELATIVE)


def test_log_ratio_of_neighbours():
    rng = np.random.default_rng(3)
    a = wide(rng, -100, 100)
    b = a * (1 + wide(rng, -15, -1))
    difference = b.astype(np.longdouble) - a.astype(np.longdouble)
    kept = difference != 0
    wanted = -np.log1p(difference[kept] / a[kept])
    assert_relative(applied(apply_log_ratio, a[kept], b[kept]), wanted, RELATIVE)
    assert (applied(apply_log_ratio, a, a) == 0).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1000.0, 1e300])
def test_sigmoid(scale):
    x = np.random.default_rng(4).uniform(-scale, scale, 20_000)
    found = applied(apply_sigmoid, x)
    assert (found > 0).all() and (found <= 1).all()
    clipped = np.clip(x, -simd_math.EXP_LIMIT, simd_math.EXP_LIMIT).astype(np.longdouble)
    assert_relative(found, 1 / (1 + np.exp(-clipped)), 2 * RELATIVE)
    np.testing.assert_allclose(found + applied(apply_sigmoid, -x), 1.0, rtol=2 * RELATIVE)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1000.0, 1e300])
def test_softplus(scale):
    x = np.random.default_rng(5).uniform(-scale, scale, 20_000)
    exact = x.astype(np.longdouble)
    wanted = np.maximum(exact, 0) + np.log1p(np.exp(-np.abs(exact)))
    found = applied(apply_softplus, x)
    # for x << 0 the sum 1 + e^x is rounded first: the error is of 1's last place, not of the result's
    assert (np.abs(found - wanted) <= RELATIVE * (1 + np.abs(wanted))).all()
    assert (found >= np.maximum(x, 0)).all()


def test_clip_leaves_what_is_safe_alone():
    x = np.array([-1e308, -700.5, -700.0, -1.0, 0.0, 1.0, 700.0, 700.5, 1e308])
    assert applied(apply_clip, x).tolist() == [-700.0, -700.0, -700.0, -1.0, 0.0, 1.0, 700.0, 700.0, 700.0]
