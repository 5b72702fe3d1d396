"""Options of methods: frozen classes that are passed whole, or field by field as keyword arguments.

>>> import clampz as cz
>>> cz.options.TRWOptions(tol=1e-6).tol
1e-06
"""

from clampz.approximations.bethe import BetheOptions
from clampz.approximations.mean_field import MeanFieldOptions
from clampz.approximations.mini_buckets.method import MiniBucketsOptions
from clampz.approximations.trw import TRWOptions
from clampz.bounding.options import BoundOptions
from clampz.exact_inference.lanes import ExactOptions
from clampz.runtime.options import Options

__all__ = [
    "BetheOptions",
    "BoundOptions",
    "ExactOptions",
    "MeanFieldOptions",
    "MiniBucketsOptions",
    "Options",
    "TRWOptions",
]
