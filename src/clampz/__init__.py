"""clampz: log-partition functions and marginals of discrete graphical models, with bounds you can trust.

>>> import clampz as cz
>>> model = cz.generators.grid(3, 3, weights=(-6, 6), rng=0)
>>> cz.mean_field(model).lower <= cz.exact(model).log_z <= cz.trw(model).upper
True
"""

from clampz.runtime import startup as startup  # before all that takes time

# isort: split
from clampz import errors, generators, jax, options, results, torch
from clampz import reporting as reporting  # results find their reports through it
from clampz._version import __version__ as __version__
from clampz.approximations.bethe import bethe
from clampz.approximations.mean_field import mean_field
from clampz.approximations.mini_buckets.method import mini_buckets
from clampz.approximations.registry import methods
from clampz.approximations.trw import trw
from clampz.bounding.bound import bound, iter_bounds
from clampz.bounding.marginals.bound_marginals import bound_marginals
from clampz.clamping.branches import branches
from clampz.clamping.clamp import clamp
from clampz.clamping.memo import Memo
from clampz.clamping.selectors import scores, selectors
from clampz.exact_inference.method import exact
from clampz.interop import (
    from_dimod,
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_dimod,
    to_dimod_sampleset,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from clampz.io import read, write
from clampz.learning.fit import fit
from clampz.learning.parameters import tied_parameters
from clampz.map_inference.mode import mode
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.plotting import plot_clamped, plot_model
from clampz.presolve.simplify import simplify
from clampz.queries.log_ratio import log_ratio
from clampz.queries.probability import probability
from clampz.sampling.sample import sample, sample_blocks
from clampz.solving.solve import solve
from clampz.temperature_sweep.sweep import sweep

__all__ = [  # noqa: RUF022 (grouped)
    # models
    "Batch",
    "Model",
    "generators",
    "read",
    "write",
    # other libraries
    "from_dimod",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "to_dimod",
    "to_dimod_sampleset",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "jax",
    "torch",
    # approximations
    "bethe",
    "exact",
    "mean_field",
    "methods",
    "mini_buckets",
    "trw",
    # presolve
    "simplify",
    # clamping
    "Memo",
    "branches",
    "clamp",
    "scores",
    "selectors",
    # what to use when
    "solve",
    # samples
    "sample",
    "sample_blocks",
    # temperatures
    "sweep",
    # certified brackets
    "bound",
    "bound_marginals",
    "iter_bounds",
    # the best configuration
    "mode",
    # learning
    "fit",
    "tied_parameters",
    # questions
    "log_ratio",
    "probability",
    # pictures
    "plot_clamped",
    "plot_model",
    # what calls return, take and raise
    "results",
    "options",
    "errors",
]
