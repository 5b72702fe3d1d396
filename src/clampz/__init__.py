"""clampz: log-partition functions and marginals of discrete graphical models, with bounds you can trust.

>>> import clampz as cz
>>> model = cz.generators.grid(3, 3, weights=(-6, 6), rng=0)
>>> cz.mean_field(model).lower <= cz.exact(model).log_z <= cz.trw(model).upper
True
"""

from clampz import generators, jax, torch
from clampz import reporting as reporting  # results find their reports through it
from clampz._version import __version__ as __version__
from clampz.approximations.bethe import BetheOptions, bethe
from clampz.approximations.mean_field import MeanFieldOptions, mean_field
from clampz.approximations.mini_buckets.method import MiniBucketsOptions, mini_buckets
from clampz.approximations.registry import methods
from clampz.approximations.trw import TRWOptions, trw
from clampz.bounding.bound import bound, bounds
from clampz.bounding.bracket import Bracket
from clampz.bounding.marginals.bound_marginals import bound_marginals
from clampz.bounding.marginals.marginal_bounds import MarginalBounds
from clampz.bounding.options import BoundOptions
from clampz.clamping.branches import Clamped, ClampStep, branches
from clampz.clamping.clamp import clamp
from clampz.clamping.memo import Memo
from clampz.clamping.selectors import Scores, scores, selectors
from clampz.elimination.exact import ExactOptions
from clampz.errors import ClampzError, EdgeError, EvidenceError, FormatError, ModelError, OptionError, TooWideError
from clampz.interop import (
    MissingLibraryError,
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
from clampz.learning.fit import Fit, fit
from clampz.learning.parameters import tied_parameters
from clampz.learning.results import FitStep, Likelihood
from clampz.map_inference.mode import mode
from clampz.map_inference.results import Mode, ModeTrace
from clampz.model import BinaryForm, Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.topology import Topology
from clampz.plotting import plot_clamped, plot_model
from clampz.presolve.simplified import Simplified
from clampz.presolve.simplify import simplify
from clampz.queries.log_ratio import LogRatio, log_ratio
from clampz.queries.probability import Probability, probability
from clampz.runtime import startup  # before all that takes time
from clampz.runtime.budget import Progress
from clampz.runtime.options import Options
from clampz.sampling.sample import sample, sample_blocks
from clampz.sampling.samples import Samples
from clampz.solving.solution import Solution
from clampz.solving.solve import solve
from clampz.summing.exact import exact
from clampz.temperature_sweep.result import Sweep
from clampz.temperature_sweep.sweep import sweep

__all__ = [  # noqa: RUF022 (grouped)
    # models
    "Batch",
    "BinaryForm",
    "Model",
    "Topology",
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
    # simplifying
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
    "bounds",
    # the best configuration
    "mode",
    # learning
    "fit",
    "tie",
    # questions
    "log_ratio",
    "probability",
    # pictures
    "plot_clamped",
    "plot_model",
    # results
    "Bracket",
    "Clamped",
    "Estimate",
    "Estimates",
    "Fit",
    "FitStep",
    "Likelihood",
    "LogRatio",
    "MarginalBounds",
    "Mode",
    "ModeTrace",
    "Probability",
    "Progress",
    "Samples",
    "Scores",
    "Simplified",
    "Solution",
    "ClampStep",
    "Sweep",
    # options
    "BetheOptions",
    "BoundOptions",
    "ExactOptions",
    "MeanFieldOptions",
    "Options",
    "MiniBucketsOptions",
    "TRWOptions",
    # errors
    "ClampzError",
    "EdgeError",
    "EvidenceError",
    "FormatError",
    "MissingLibraryError",
    "ModelError",
    "OptionError",
    "TooWideError",
]
