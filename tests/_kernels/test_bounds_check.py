"""Every kernel with every index looked at: run with NUMBA_BOUNDSCHECK=1, as `.ci/run` does."""

import numpy as np
import pytest
from numba import config
from walk import KERNELS, unreached, walk

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
    assert not unreached({name for name, value in KERNELS.items() if value.signatures})
