"""Every kernel with every index looked at: run with NUMBA_BOUNDSCHECK=1, as `.ci/run` does."""

import numpy as np
import pytest
from numba import config
from walk import KERNELS, walk

from clampz._kernels.graph import find_root

pytestmark = [
    pytest.mark.checked,
    pytest.mark.skipif(not config.BOUNDSCHECK, reason="without NUMBA_BOUNDSCHECK=1 kernels look at no index"),
]


@pytest.mark.parametrize("index", [-1, 3])
def test_an_index_outside_is_an_error(index):
    with pytest.raises(IndexError):
        find_root(np.arange(3), index)


def test_every_kernel_keeps_inside_its_arrays():
    walk()
    unreached = sorted(KERNELS.keys() - reached())
    assert not unreached


def reached() -> set[str]:
    """The kernels that were called, and what they call: one that comes from the cache does not compile that again."""
    name_of = {value: name for name, value in KERNELS.items()}
    found = {name for name, value in KERNELS.items() if value.signatures}
    waiting = list(found)
    while waiting:
        function = KERNELS[waiting.pop()].py_func
        for called in (function.__globals__.get(name) for name in function.__code__.co_names):
            name = name_of.get(called) if hasattr(called, "py_func") else None
            if name is not None and name not in found:
                found.add(name)
                waiting.append(name)
    return found
