"""Questions with certified answers: the probability of an event, the ratio of two partition functions.

May import: bracketing and all that it may.
"""

from clampz.asking.probability import Probability, probability
from clampz.asking.ratio import LogRatio, log_ratio

__all__ = ["LogRatio", "Probability", "log_ratio", "probability"]
