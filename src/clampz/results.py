"""Classes of results: estimates, brackets, solutions, samples and whatever else calls return.

>>> import clampz as cz
>>> isinstance(cz.bound(cz.generators.grid(3, 3, rng=0)), cz.results.Bracket)
True
"""

from clampz.bounding.bracket import Bracket
from clampz.bounding.marginals.marginal_bounds import MarginalBounds
from clampz.clamping.branches import Clamped, ClampStep
from clampz.clamping.selectors import Scores
from clampz.learning.fit import Fit
from clampz.learning.results import FitStep, Likelihood
from clampz.map_inference.results import Mode, ModeTrace
from clampz.method import Method
from clampz.model import BinaryForm
from clampz.model.results import Estimate, Estimates
from clampz.model.topology import Topology
from clampz.portfolio.problem import Gain, Gains
from clampz.presolve.simplified import Simplified
from clampz.queries.log_ratio import LogRatio
from clampz.queries.probability import Probability
from clampz.runtime.budget import Progress
from clampz.sampling.samples import Samples
from clampz.solving.solution import Solution
from clampz.temperature_sweep.result import Sweep

__all__ = [
    "BinaryForm",
    "Bracket",
    "ClampStep",
    "Clamped",
    "Estimate",
    "Estimates",
    "Fit",
    "FitStep",
    "Gain",
    "Gains",
    "Likelihood",
    "LogRatio",
    "MarginalBounds",
    "Method",
    "Mode",
    "ModeTrace",
    "Probability",
    "Progress",
    "Samples",
    "Scores",
    "Simplified",
    "Solution",
    "Sweep",
    "Topology",
]
