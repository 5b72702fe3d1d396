"""The two ways a kernel is compiled, so that every kernel says only which of them it is."""

from typing import Any

from numba import njit

# Full `fastmath` would break the polynomial exp and log of simd_math (reassociation cancels their rounding trick)
# and turn infinities into garbage; these three flags change neither.
SAFE_MATH = {"contract", "nsz", "arcp"}


def kernel(function: Any) -> Any:
    """Compile a kernel: cached on disk, without the GIL, and with C's division.

    Python's division raises on zero, and the branch for it keeps LLVM from vectorising the loop around it.
    """
    return njit(cache=True, nogil=True, error_model="numpy", fastmath=SAFE_MATH)(function)


def inline(function: Any) -> Any:
    """Compile a scalar function that disappears into the loops of the kernels that call it."""
    return njit(inline="always", error_model="numpy", fastmath={"contract"})(function)
