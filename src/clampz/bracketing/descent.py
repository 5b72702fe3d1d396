"""L-BFGS for bounds that are sums over subgraphs: an evaluation costs far more than all else, and few are allowed.

It takes the steps of SciPy's L-BFGS-B, which is not used itself: beyond ten thousand numbers the BLAS below it starts
threads that wait longer for each other than they compute (twenty times slower on two cores, where leaves are solved
side by side already), and it takes half a second to import.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from clampz.numerics import Floats
from clampz.watch import Watch

# Steps remembered.
MEMORY = 20
# Wolfe's conditions on a step: the share of the promised fall that is enough, and the share of the slope that may be
# left.
SUFFICIENT, FLAT = 1e-3, 0.9
# A step that falls short grows at most so many times; one that was too far is cut within this share of its bracket.
GROWTH, MARGIN = 4.0, 0.1
# A slope, in nats, that is not worth a step.
LEAST_SLOPE = 1e-9


class _Trial(NamedTuple):
    """A step of some size in a direction, the value it leads to, and the slope there."""

    size: float
    value: float
    slope: float


def descend(evaluate: Callable[[Floats], tuple[float, Floats]], x: Floats, max_evaluations: int, watch: Watch) -> None:
    """Minimise a convex function, given with its gradient; the function itself keeps what it has found."""
    value, gradient = evaluate(x)
    left = max_evaluations - 1
    steps: list[tuple[Floats, Floats, float]] = []
    length = 1.0 / max(1e-12, math.sqrt(_dot(gradient, gradient)))
    while math.isfinite(value):
        direction = -_inverse_hessian(steps, gradient, length)
        start = _Trial(0.0, value, _dot(gradient, direction))
        if start.slope > -LEAST_SLOPE:
            return
        low, high, size = start, None, 1.0  # the lowest point is beyond `low`, and before `high`
        while left and not watch.must_stop():
            moved = x + size * direction
            value, gradient_there = evaluate(moved)
            left -= 1
            trial = _Trial(size, value, _dot(gradient_there, direction))
            enough = value <= start.value + SUFFICIENT * size * start.slope
            if enough and abs(trial.slope) <= -FLAT * start.slope:
                break
            if enough and trial.slope < 0.0:
                low, before = trial, low
            else:
                high = trial
            size = _between(low, high) if high is not None else _beyond(before, low)
        else:
            return
        step, change = moved - x, gradient_there - gradient
        curvature = _dot(step, change)
        if curvature > 1e-14 * _dot(change, change) > 0.0:
            steps = [*steps[1 - MEMORY :], (step, change, curvature)]
        x, gradient = moved, gradient_there


def _beyond(before: _Trial, low: _Trial) -> float:
    """A longer step, to where the cubic through the last two has its minimum."""
    found = _lowest(before, low)
    return min(max(found, 1.1 * low.size), GROWTH * low.size) if found > low.size else GROWTH * low.size


def _between(low: _Trial, high: _Trial) -> float:
    """A step within a bracket, to where the cubic through its ends has its minimum."""
    width = high.size - low.size
    found = _lowest(low, high)
    return min(max(found, low.size + MARGIN * width), high.size - MARGIN * width) if found > 0 else low.size + width / 2


def _lowest(a: _Trial, b: _Trial) -> float:
    """The minimum of the cubic with the values and slopes of both; not a number where it has none."""
    mean = a.slope + b.slope - 3 * (a.value - b.value) / (a.size - b.size)
    under_root = mean * mean - a.slope * b.slope
    root = math.copysign(math.sqrt(under_root), b.size - a.size) if under_root >= 0 else math.nan
    curvature = b.slope - a.slope + 2 * root
    return b.size - (b.size - a.size) * (b.slope + root - mean) / curvature if curvature else math.nan


def _inverse_hessian(steps: list[tuple[Floats, Floats, float]], gradient: Floats, length: float) -> Floats:
    """The two-loop recursion: the gradient times an inverse Hessian that fits the last steps."""
    out = gradient.copy()
    kept = []
    for step, change, curvature in reversed(steps):
        share = _dot(step, out) / curvature
        out -= share * change
        kept.append(share)
    if steps:
        _, change, curvature = steps[-1]
        out *= curvature / _dot(change, change)
    else:
        out *= length
    for (step, change, curvature), share in zip(steps, reversed(kept), strict=True):
        out += (share - _dot(change, out) / curvature) * step
    return out


def _dot(a: Floats, b: Floats) -> float:
    # not `a @ b`: the threads that BLAS starts for a few thousand numbers wait longer for each other than they compute
    return float((a * b).sum())
