"""Strength of pairwise tables, for models of any number of labels."""

import numpy as np

from clampz._kernels.jit import kernel


@kernel
def spreads(tables):
    """(K,) of tables (K, rows, columns) the largest spread, over pairs of rows, of their difference."""
    num_tables, num_rows, num_columns = tables.shape
    out = np.zeros(num_tables)
    for k in range(num_tables):
        for a in range(num_rows):
            for c in range(a):
                low = np.inf
                high = -np.inf
                for b in range(num_columns):
                    d = tables[k, a, b] - tables[k, c, b]
                    low = min(low, d)
                    high = max(high, d)
                out[k] = max(out[k], high - low)
    return out
