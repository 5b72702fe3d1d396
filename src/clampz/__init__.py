"""clampz: log-partition functions and marginals of discrete graphical models, with bounds you can trust.

>>> import clampz as cz
>>> model = cz.generators.grid(3, 3, weights=(-6, 6), rng=0)
>>> cz.mean_field(model).lower <= cz.exact(model).log_z <= cz.trw(model).upper
True
"""

from clampz import _starting as _starting  # before all that takes time
from clampz import generators, jax, torch
from clampz import reporting as reporting  # results find their reports through it
from clampz._version import __version__ as __version__
from clampz.approximations.bethe import BetheOptions, bethe
from clampz.approximations.mean_field import MeanFieldOptions, mean_field
from clampz.approximations.regions import RegionsOptions, regions
from clampz.approximations.registry import methods
from clampz.approximations.trw import TRWOptions, trw
from clampz.asking import LogRatio, Probability, log_ratio, probability
from clampz.bracketing import BoundOptions, Bracket, MarginalBounds, bound, bound_marginals, bounds
from clampz.choosing import solve
from clampz.clamping.branches import Clamped, Step, branches
from clampz.clamping.call import clamp
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
from clampz.learning import Fit, FitStep, Likelihood, fit, tie
from clampz.maximising import Mode, Moment, mode
from clampz.model import BinaryForm, Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.topology import Topology
from clampz.options import Options
from clampz.plotting import plot_clamped, plot_model
from clampz.sampling import Samples, sample, sample_blocks
from clampz.simplifying import Simplified, simplify
from clampz.solution import Solution
from clampz.summing.exact import exact
from clampz.sweeping import Sweep, sweep
from clampz.watch import Progress

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
    "regions",
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
    "Moment",
    "Probability",
    "Progress",
    "Samples",
    "Scores",
    "Simplified",
    "Solution",
    "Step",
    "Sweep",
    # options
    "BetheOptions",
    "BoundOptions",
    "ExactOptions",
    "MeanFieldOptions",
    "Options",
    "RegionsOptions",
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
