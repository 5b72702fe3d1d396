"""Warm starts: an earlier estimate of the same graph by whatever method, or marginals."""

import numpy as np
from numpy.typing import NDArray

from clampz.errors import OptionError, shown
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.numerics import Floats

# Probabilities that were computed may be above 1 by rounding.
MOST = 1.0 + 1e-6

Start = Estimate | Estimates | NDArray[np.float64]


def start_marginals(batch: Batch, start: Start) -> Floats:
    """(S, B) return the marginals to start from: of an earlier estimate, or an array with a row per state."""
    if isinstance(start, Estimate | Estimates):
        check_same_graph(batch, start)
        return one_per_lane(start.marginals_flat if isinstance(start, Estimates) else start.marginals.flat, batch)
    n, num_rows = batch.model.num_variables, len(batch.unary)
    try:
        marginals = np.array(start, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"start: expected an estimate, or an array of probabilities, found {shown(start)}") from None
    if marginals.ndim > 1 and marginals.shape[:2] == (n, num_rows // max(1, n)):
        marginals = marginals.reshape(num_rows, *marginals.shape[2:])
    if marginals.shape[:1] != (num_rows,) or marginals.ndim > 2:
        raise OptionError(
            f"start: expected an estimate, or probabilities of shape ({num_rows},) or ({num_rows}, lanes), "
            f"found shape {marginals.shape}"
        )
    bad = np.argwhere(~((marginals >= 0.0) & (marginals <= MOST)))
    if bad.size:
        place = tuple(bad[0].tolist())
        raise OptionError(f"start{list(place)}: expected a probability from 0 to 1, found {marginals[place]}")
    return one_per_lane(marginals, batch)


def check_same_graph(batch: Batch, start: Estimate | Estimates) -> None:
    """Refuse a start from a model with other variables or edges."""
    model, other = batch.model, start.model
    if not (np.array_equal(model.num_states, other.num_states) and np.array_equal(model.edges, other.edges)):
        raise OptionError(
            f"start: expected an estimate of a model with the same variables and edges as {model}, found one of {other}"
        )


def one_per_lane(array: Floats, batch: Batch) -> Floats:
    """Repeat the columns of a start, one per lane."""
    columns = array[:, None] if array.ndim == 1 else array
    if columns.shape[1] not in (1, batch.num_lanes):
        raise OptionError(
            f"start: expected one for all lanes or one for each of {batch.num_lanes}, found {columns.shape[1]}"
        )
    return np.repeat(columns, batch.num_lanes // columns.shape[1], axis=1)
