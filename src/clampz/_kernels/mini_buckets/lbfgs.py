"""L-BFGS: the two-loop recursion, which multiplies the gradient by an inverse Hessian that fits the last steps.

steps, changes  (M, X)  the last steps, and how the gradient changed; a ring, `newest` the last one written.  They are
                        rounded to half as many bytes: where a step leads to is computed, so any direction will do
curvature       (M,)    their products
"""

import numpy as np

from clampz._kernels.jit import kernel, part
from clampz._kernels.mini_buckets.passes import dot


@kernel
def fill_direction(steps, changes, curvature, newest, num_kept, gradient, length, out):
    """Write the descent direction into `out`; returns its product with the gradient. `length` is the step along the
    gradient while no steps are known."""
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
    """Add factor * values to `out`."""
    for j in range(out.size):
        out[j] += factor * values[j]


@kernel
def fill_step(x, moved, gradient, there, step, change):
    """Write a step and the change of the gradient; returns their product, and the change's with itself."""
    for j in range(step.size):
        step[j] = moved[j] - x[j]
        change[j] = there[j] - gradient[j]
    return dot(step, change), dot(change, change)


@kernel
def fill_moved(x, size, direction, out):
    """Write x + size * direction."""
    for j in range(out.size):
        out[j] = x[j] + size * direction[j]


@kernel
def product(a, b):
    """Return the dot product."""
    return dot(a, b)
