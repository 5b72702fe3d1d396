"""Counting: log Z of models full of hard zeros, by programs that count weighted clauses.

May import: model, watch, options, kernels, wording, numerics and errors.
"""

from clampz.counting.choice import worth_counting
from clampz.counting.counts import MISSING, Counted, count, is_available

__all__ = ["MISSING", "Counted", "count", "is_available", "worth_counting"]
