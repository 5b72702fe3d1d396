"""How much memory a method takes for the lanes of a model, told from the model's sizes before any work."""

import numpy as np

from clampz.model.model import Model
from clampz.model.tables import has_hard_zeros

# Table entries of a small model.
SMALL_MODEL = 50_000
# Numbers that a run takes for each state of a variable and each entry of a message, in every lane, and for each entry
# of the pairwise tables, where these are not log-odds.  Peaks of resident memory on grids, cubes, stars and complete
# graphs of 10^5 edges, two to fifty labels, are 60% to 105% of what they come to, the copies on the way included; those
# of pairwise equivalents half to three quarters.
PER_STATE, PER_MESSAGE, PER_ENTRY = 36, 12, 9
# The same for each entry of the tables of larger factors, where a method takes those as they are.
PER_FACTOR_ENTRY = 4


def bytes_of_lanes(model: Model, num_lanes: int = 1, *, as_factors: bool = False) -> int:
    """Estimate the memory that solving `num_lanes` lanes of a model takes, beyond the model itself."""
    once, each = _bytes_of_lanes(model, as_factors)
    return once + num_lanes * each


def lanes_that_fit(model: Model, num_bytes: float) -> int:
    """Estimate how many lanes of a model any method can solve in this memory."""
    once, each = _bytes_of_lanes(model, as_factors=False)
    return max(0, int((num_bytes - once) / max(1, each)))


def _bytes_of_lanes(model: Model, as_factors: bool) -> tuple[int, int]:
    """Estimate what all lanes share, and what each of them takes. Larger factors count as their pairwise equivalent
    without hard zeros. A method that takes factors as they are passes no messages in it, and needs none without hard
    zeros."""
    pairwise, larger, num_states = model.pairwise, model.factors, model.num_states
    states, messages = PER_STATE * len(model.unary.flat), int(num_states[model.edges].sum())
    has_zeros = has_hard_zeros(pairwise.flat) or has_hard_zeros(larger.flat)
    if larger and as_factors and not has_zeros:
        return 8 * PER_FACTOR_ENTRY * (len(pairwise.flat) + len(larger.flat)), 8 * states
    entries = 0 if not (larger or has_zeros or (num_states != 2).any()) else len(pairwise.flat)
    rows, arity = np.diff(larger.start), np.diff(larger.scope_start)
    messages += int(num_states[larger.variables].sum()) + int((arity * rows).sum())
    entries += int(np.repeat(rows, arity) @ num_states[larger.variables])
    messages = 0 if larger and as_factors else messages
    return 8 * PER_ENTRY * entries, 8 * (states + PER_MESSAGE * (int(rows.sum()) + messages))


def is_small(model: Model) -> bool:
    """Whether a first sweep over a model takes a few milliseconds at most."""
    return model.num_entries <= SMALL_MODEL
