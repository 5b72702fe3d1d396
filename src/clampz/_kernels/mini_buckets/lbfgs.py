"""The two-loop recursion of L-BFGS: the gradient times an inverse Hessian that fits the last steps.

steps, changes  (M, X)  the last steps, and how the gradient changed; a ring, `newest` the last one written.  They are
                        rounded to half as many bytes: where a step leads to is computed, so any direction will do
curvature       (M,)    their products
"""

import numpy as np

from clampz._kernels.jit import kernel, part
from clampz._kernels.mini_buckets.passes import dot


@kernel
def fill_direction(steps, changes, curvature, newest, num_kept, gradient, length, out):
    """Downhill, into `out`; returns its product with the gradient.  `length` is the step along the gradient while no
    others are known."""
    memory = curvature.size
    shares = np.empty(memory)
    for j in range(out.size):
        out[j] = gradient[j]
    for k in range(num_kept):
        at = (newest - k) % memory
        shares[at] = dot(steps[at], out) / curvature[at]
        add(out, -shares[at], changes[at])
    scale = length
    if num_kept > 0:
        scale = curvature[newest] / dot(changes[newest], changes[newest])
    for j in range(out.size):
        out[j] *= scale
    for k in range(num_kept - 1, -1, -1):
        at = (newest - k) % memory
        add(out, shares[at] - dot(changes[at], out) / curvature[at], steps[at])
    for j in range(out.size):
        out[j] = -out[j]
    return dot(out, gradient)


@part
def add(out, factor, values):
    for j in range(out.size):
        out[j] += factor * values[j]


@kernel
def fill_step(x, moved, gradient, there, step, change):
    """A step, and how the gradient changed: their product, and that of the change with itself."""
    for j in range(step.size):
        step[j] = moved[j] - x[j]
        change[j] = there[j] - gradient[j]
    return dot(step, change), dot(change, change)


@kernel
def fill_moved(x, size, direction, out):
    """x + size * direction."""
    for j in range(out.size):
        out[j] = x[j] + size * direction[j]


@kernel
def product(a, b):
    return dot(a, b)
