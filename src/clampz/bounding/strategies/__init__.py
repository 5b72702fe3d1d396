"""Strategies: a file for each, and the registry, in the order in which they are first tried."""

from clampz.bounding.strategies.best_configuration import BestConfiguration
from clampz.bounding.strategies.bethe import Bethe
from clampz.bounding.strategies.branch_and_bound import BranchAndBound
from clampz.bounding.strategies.counting import Counting
from clampz.bounding.strategies.cutset import Cutset
from clampz.bounding.strategies.diving import Diving
from clampz.bounding.strategies.draws import Draws
from clampz.bounding.strategies.exact_sum import ExactSum
from clampz.bounding.strategies.mean_field import MeanField
from clampz.bounding.strategies.mini_buckets import MiniBuckets
from clampz.bounding.strategies.planar import Planar
from clampz.bounding.strategies.trivial_bounds import TrivialBounds
from clampz.bounding.strategies.trw import Trw

STRATEGIES = (
    TrivialBounds,
    ExactSum,
    Planar,
    Counting,
    MeanField,
    Trw,
    MiniBuckets,
    BestConfiguration,
    Bethe,
    BranchAndBound,
    Diving,
    Cutset,
    Draws,
)
