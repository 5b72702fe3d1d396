"""Strength of pairwise tables, for models of any number of labels."""

import numpy as np

from clampz._kernels.jit import kernel


@kernel
def spreads(tables):
    """(K,) compute for tables (K, rows, columns) the largest |t(a,b) - t(c,b) - t(a,d) + t(c,d)| of each."""
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
