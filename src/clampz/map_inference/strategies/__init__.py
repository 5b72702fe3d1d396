"""Strategies of MAP inference: a file for each, and the registry, in the order in which they are first tried."""

from clampz.map_inference.strategies.annealing import Annealing
from clampz.map_inference.strategies.best_first import BestFirstSearch
from clampz.map_inference.strategies.local_search import LocalSearch
from clampz.map_inference.strategies.max_elimination import MaxElimination
from clampz.map_inference.strategies.mini_buckets import MiniBuckets
from clampz.map_inference.strategies.presolve import Presolve

# Where nobody gains anything the first goes on: only the search, on its way through many equal bounds, ends some time.
STRATEGIES = (Presolve, MaxElimination, BestFirstSearch, LocalSearch, Annealing, MiniBuckets)
