"""A model laid out for the rules of simplifying: see `_kernels.simplifying_pools`."""

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import simplifying_pools as kernels
from clampz._kernels.simplifying_pools import Pools
from clampz.model import Model
from clampz.numerics import Integers

# Bytes that simplifying takes per variable, factor, variable of a factor and table entry, the rest included: records,
# lists and two copies of the tables.
BYTES = np.array([160, 64, 24, 24])


def num_bytes(model: Model) -> int:
    """About how much memory simplifying takes."""
    tables = len(model.unary.flat) + len(model.pairwise.flat) + len(model.factors.flat)
    slots = 2 * model.num_edges + len(model.factors.variables)
    return int(BYTES @ [model.num_variables, model.num_edges + len(model.factors), slots, tables])


def laid_out(model: Model, keep: NDArray[np.bool_], *, pairwise: bool, pins: bool, maximum: bool) -> Pools:
    """Everything waits for every rule."""
    n, m, larger = model.num_variables, model.num_edges, model.factors
    num_factors, num_slots = m + len(larger), 2 * m + len(larger.variables)
    flat = np.concatenate([model.unary.flat, model.pairwise.flat, larger.flat])
    variables = np.zeros(n, kernels.VARIABLE)
    variables["states"], variables["keep"] = model.num_states, keep
    variables["edges"] = variables["larger"] = variables["axis"] = -1
    factors = np.zeros(num_factors, kernels.FACTOR)
    before = len(model.unary.flat), len(model.unary.flat) + len(model.pairwise.flat)
    factors["table"] = np.concatenate([before[0] + model.pairwise.start[:-1], before[1] + larger.start[:-1]])
    factors["size"] = np.concatenate([np.diff(model.pairwise.start), np.diff(larger.start)])
    factors["begin"] = np.concatenate([2 * np.arange(m), 2 * m + larger.scope_start[:-1]])
    factors["arity"] = np.concatenate([np.full(m, 2), np.diff(larger.scope_start)])
    factors["end"] = factors["begin"] + factors["arity"]
    factors["into"], factors["alive"] = -1, 1
    slots = np.zeros(num_slots, kernels.SLOT)
    slots["variable"] = np.concatenate([model.edges.ravel(), larger.variables])
    slots["factor"] = np.repeat(np.arange(num_factors), factors["arity"])
    count = np.zeros(kernels.NUM_COUNTS, dtype=np.int64)
    count[[kernels.FACTORS, kernels.SLOTS, kernels.ENTRIES]] = num_factors, num_slots, len(flat)
    count[[kernels.PAIRWISE, kernels.PINS, kernels.MAXIMUM]] = pairwise, pins, maximum
    count[[kernels.IMPOSSIBLE, kernels.BY]] = -1
    most_states = int(model.num_states.max(initial=1))
    widest = max(int(factors["arity"].max(initial=0)), kernels.MOST_AXES, kernels.MOST_PARTS) + 1
    pools = Pools(
        variables=variables,
        factors=factors,
        slots=slots,
        table=flat,
        first=np.array(model.unary.start),
        gone=np.full(before[0], kernels.NEVER, dtype=np.int32),
        reason=np.full(before[0], -1, dtype=np.int32),
        order=np.empty(n, dtype=np.int32),
        record=np.zeros(n + 1, kernels.RECORD),
        parts=np.empty(0, dtype=np.int32),
        axes=np.empty(0, dtype=np.int32),
        maps=np.empty(0, dtype=np.int32),
        support=np.empty(num_factors, dtype=np.int32),
        shape=np.empty(num_factors, dtype=np.int32),
        shrink=np.empty(n, dtype=np.int32),
        ring=np.empty(n, dtype=np.int32),
        scratch=np.zeros((5, widest), dtype=np.int64),
        strides=np.zeros((kernels.MOST_PARTS, kernels.MOST_AXES), dtype=np.int64),
        image=np.empty(most_states, dtype=np.int64),
        row=np.empty(most_states),
        count=count,
        total=np.array([model.constant, 0.0, 0.0]),
    )
    return pools


def with_room(pools: Pools) -> Pools:
    """The same with more room for what sums leave: an eighth more, and at least what the next one may need."""
    largest = int(pools.count[kernels.LARGEST_TABLE])
    more = {
        "factors": 64,
        "support": 64,
        "shape": 64,
        "slots": 4 * kernels.MOST_AXES,
        "table": 4 * largest + 64,
        "parts": 4 * kernels.MOST_PARTS,
        "axes": 4 * kernels.MOST_AXES,
        "maps": 4 * len(pools.row),
    }
    return pools._replace(**{name: _longer(getattr(pools, name), least) for name, least in more.items()})


def _longer(array: NDArray[np.generic], least: int) -> NDArray[np.generic]:
    longer = np.zeros(len(array) + len(array) // 8 + least, array.dtype)
    longer[: len(array)] = array
    return longer


def left_over(pools: Pools) -> Integers:
    """The variables that are still there."""
    return np.flatnonzero(pools.variables["fate"] == kernels.STAYS)
