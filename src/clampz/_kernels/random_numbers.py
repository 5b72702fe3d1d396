"""Random numbers from 64-bit words.  Products of words overflow here on purpose."""

import numpy as np

from clampz._kernels.jit import inline, part


@inline
def next_random(x):
    """Step Knuth's linear congruential generator."""
    return x * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@inline
def uniform(x):
    """Map the upper bits of a word to [0, 1)."""
    return np.float64(x >> np.uint64(11)) * 2.0**-53


@part
def uniform_of(seed, number):
    """Return a number in [0, 1) that depends on seed and counter alone (SplitMix64)."""
    z = np.uint64(seed) + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return uniform(z ^ (z >> np.uint64(31)))
