"""Learning: potentials that make data likely, by exact likelihoods or certified bounds on them.

`rows` reads data, `parameters` says which potentials are learned and which of them are one, `likelihood` has the
objective and its gradient, `fitting` maximises it.  May import: approximations and everything below them.
"""

from clampz.learning.fitting import Fit, fit
from clampz.learning.parameters import tie
from clampz.learning.results import FitStep, Likelihood

__all__ = ["Fit", "FitStep", "Likelihood", "fit", "tie"]
