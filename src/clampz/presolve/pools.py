"""Lay a model out in the flat pools that the presolve's rules work on: see `_kernels.presolve.pools`."""

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.presolve import pools as kernels
from clampz._kernels.presolve.pools import Pools
from clampz.model import Model

# Bytes that the presolve takes per variable, factor, variable of a factor and table entry, with copies.  Peaks of
# resident memory are 75% to 99% of that on grids, trees, clauses, networks of noisy-or and factors of four to eight
# variables.
BYTES = np.array([400, 120, 24, 24])
# Places for what sums leave that everything has from the beginning: many large models need few.
SPARE = 256


def num_bytes(model: Model) -> int:
    """Estimate the memory that the presolve takes."""
    slots = 2 * model.num_edges + len(model.factors.variables)
    return int(BYTES @ [model.num_variables, model.num_edges + len(model.factors), slots, model.num_entries])


def build_pools(model: Model, keep: NDArray[np.bool_], *, pairwise: bool, pins: bool, maximum: bool) -> Pools:
    """Lay a model out in pools, with every variable and factor waiting for every rule."""
    n, m, larger = model.num_variables, model.num_edges, model.factors
    num_factors, num_slots = m + len(larger), 2 * m + len(larger.variables)
    flat = np.concatenate([model.unary.flat, model.pairwise.flat, larger.flat, np.zeros(SPARE)])
    variables = np.zeros(n, kernels.VARIABLE)
    variables["first"], variables["last"] = model.unary.start[:-1], model.unary.start[1:]
    variables["states"], variables["keep"] = model.num_states, keep
    variables["edges"] = variables["larger"] = variables["axis"] = variables["by"] = -1
    all_factors, all_slots = np.zeros(num_factors + SPARE, kernels.FACTOR), np.zeros(num_slots + SPARE, kernels.SLOT)
    factors, slots = all_factors[:num_factors], all_slots[:num_slots]
    before = len(model.unary.flat), len(model.unary.flat) + len(model.pairwise.flat)
    factors["table"] = np.concatenate([before[0] + model.pairwise.start[:-1], before[1] + larger.start[:-1]])
    factors["size"] = np.concatenate([np.diff(model.pairwise.start), np.diff(larger.start)])
    factors["begin"] = np.concatenate([2 * np.arange(m), 2 * m + larger.scope_start[:-1]])
    factors["arity"] = np.concatenate([np.full(m, 2), np.diff(larger.scope_start)])
    factors["end"] = factors["begin"] + factors["arity"]
    factors["into"], factors["alive"] = -1, 1
    states = np.zeros(before[0], kernels.STATE)
    states["gone"], states["reason"] = kernels.NEVER, -1
    slots["variable"] = np.concatenate([model.edges.ravel(), larger.variables])
    slots["factor"] = np.repeat(np.arange(num_factors), factors["arity"])
    count = np.zeros(kernels.NUM_COUNTS, dtype=np.int64)
    count[[kernels.FACTORS, kernels.SLOTS, kernels.ENTRIES]] = num_factors, num_slots, len(flat) - SPARE
    count[[kernels.PAIRWISE, kernels.PINS, kernels.MAXIMUM]] = pairwise, pins, maximum
    count[[kernels.IMPOSSIBLE, kernels.BY]] = -1
    most_states = int(model.num_states.max(initial=1))
    widest = max(most_states, int(factors["arity"].max(initial=0)), kernels.MOST_AXES, kernels.MOST_PARTS) + 1
    total = np.zeros(kernels.ROW + most_states)
    total[kernels.CONSTANT] = model.constant
    return Pools(
        variables=variables,
        factors=all_factors,
        slots=all_slots,
        states=states,
        table=flat,
        record=np.zeros(n, kernels.SUM),
        numbers=np.zeros(SPARE, dtype=np.int32),
        scratch=np.zeros((6, widest), dtype=np.int64),
        count=count,
        total=total,
    )


def grow_pools(pools: Pools) -> Pools:
    """Return the pools with room for what the next sum or substitution may add, and for many more."""
    count, n = pools.count, len(pools.variables)
    needs = {
        "factors": (count[kernels.FACTORS], 1),
        "slots": (count[kernels.SLOTS], kernels.MOST_AXES),
        "table": (count[kernels.ENTRIES], 1 + int(count[kernels.WIDEST])),
        "numbers": (count[kernels.NUMBERS], kernels.MOST_AXES + kernels.MOST_PARTS + len(pools.total)),
    }
    longer = {}
    for name, (used, most) in needs.items():
        array = getattr(pools, name)
        if used + most > len(array):
            longer[name] = np.zeros(used + used // 4 + n // 16 + 4 * most, array.dtype)
            longer[name][:used] = array[:used]
    if "factors" in longer:  # a list that goes round begins at the front again
        place = (count[kernels.FIRST_SHAPE] + np.arange(count[kernels.SHAPES])) % len(pools.factors)
        longer["factors"]["shape"][: len(place)] = pools.factors["shape"][place]
        count[kernels.FIRST_SHAPE] = 0
    return pools._replace(**longer)
