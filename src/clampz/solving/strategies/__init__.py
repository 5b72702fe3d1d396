"""The strategies of `solve`: those that find marginals, with those of `bound`, in the order in which they are tried."""

from clampz.bounding.strategies import STRATEGIES as BOUNDS
from clampz.solving.strategies.clamped_estimate import ClampedEstimate
from clampz.solving.strategies.exact_marginals import ExactMarginals
from clampz.solving.strategies.first_marginals import FirstMarginals

# the bounds that are there at once come before all else
STRATEGIES = (BOUNDS[0], ExactMarginals, FirstMarginals, *BOUNDS[1:], ClampedEstimate)
