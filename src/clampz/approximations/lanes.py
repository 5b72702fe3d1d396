"""From a batch to lanes that pass messages, and back to estimates: what Bethe and TRW have in common around their loop."""

import numpy as np

from clampz.approximations.base import Start
from clampz.approximations.binary_lanes import BinaryLanes
from clampz.approximations.engine import Ending
from clampz.approximations.general_lanes import GeneralLanes
from clampz.approximations.message_lanes import MessageLanes
from clampz.approximations.problems import BinaryProblem, Problem
from clampz.batch import Batch
from clampz.errors import OptionError
from clampz.executors import Workers
from clampz.limits import Options
from clampz.results import Bound, Estimate, Estimates
from clampz.tables import Floats

NO_CONFIGURATION = "Z = 0: no configuration is possible"


def lanes_of(problem: Problem, workers: Workers) -> MessageLanes:
    """Lanes that begin with uniform messages."""
    return BinaryLanes(problem, workers) if isinstance(problem, BinaryProblem) else GeneralLanes(problem, workers)


def start_messages(lanes: MessageLanes, batch: Batch, start: Start) -> Floats:
    """(rows, B) the messages of an earlier estimate; made from its marginals if it passed none, or from the marginals given."""
    if isinstance(start, Estimate | Estimates) and isinstance(start.state, type(lanes)):  # messages of the same kind
        _check_same_graph(batch, start)
        messages = start.state.point if isinstance(start, Estimates) else start.state.point[:, start.lane]
        return _one_per_lane(messages, batch)
    # a lane with Z = 0 has no marginals: it starts from even odds
    return lanes.messages_from(np.nan_to_num(start_marginals(batch, start), nan=0.5))


def start_marginals(batch: Batch, start: Start) -> Floats:
    """(S, B) the marginals to start from: those of an earlier estimate, or an array with a row per state of each variable in turn."""
    if isinstance(start, Estimate | Estimates):
        _check_same_graph(batch, start)
        return _one_per_lane(start.marginals_flat if isinstance(start, Estimates) else start.marginals.flat, batch)
    num_rows = len(batch.unary)
    marginals = np.array(start, dtype=np.float64)
    if marginals.ndim > 1 and marginals.shape[:2] == (batch.model.num_variables, num_rows // max(1, batch.model.num_variables)):
        marginals = marginals.reshape(num_rows, *marginals.shape[2:])
    if marginals.shape[:1] != (num_rows,) or marginals.ndim > 2 or not (marginals >= 0).all():
        raise OptionError(f"start: expected an estimate, or probabilities of shape ({num_rows},) or ({num_rows}, lanes), found shape {marginals.shape}")
    return _one_per_lane(marginals, batch)


def _check_same_graph(batch: Batch, start: Estimate | Estimates) -> None:
    model, other = batch.model, start.model
    if not (np.array_equal(model.num_states, other.num_states) and np.array_equal(model.edges, other.edges)):
        raise OptionError(f"start: expected an estimate of a model with the same variables and edges as {model}, found one of {other}")


def _one_per_lane(array: Floats, batch: Batch) -> Floats:
    """Columns of a start, one per lane: as many as there are, or one for all."""
    columns = array[:, None] if array.ndim == 1 else array
    if columns.shape[1] not in (1, batch.num_lanes):
        raise OptionError(f"start: expected one for all lanes or one for each of {batch.num_lanes}, found {columns.shape[1]}")
    return np.repeat(columns, batch.num_lanes // columns.shape[1], axis=1)


def finished(
    method: str,
    lanes: MessageLanes,
    batch: Batch,
    options: Options,
    ending: Ending,
    rho: Floats,
    *,
    log_z: Floats,
    bound: Bound | None = None,
) -> Estimates:
    """Estimates from lanes that have ended: marginals, and the lanes kept for pairwise marginals and warm starts."""
    lanes.workers = Workers(1)
    lanes.point = ending.point
    lanes.set_counting(rho)
    impossible = lanes.problem.constant == -np.inf
    log_z = np.where(impossible, -np.inf, log_z)
    return Estimates(
        method=method,
        model=batch.model,
        log_z=log_z,
        bound=bound,
        lower=np.full(batch.num_lanes, -np.inf),
        upper=np.where(impossible, -np.inf, log_z if bound == "upper" else np.inf),
        value=np.where(impossible, -np.inf, ending.value),
        marginals_flat=np.where(impossible, np.nan, lanes.marginals()),
        converged=ending.converged | impossible,
        num_iter=ending.num_iter,
        residual=np.where(impossible, 0.0, ending.residual),
        stopped_by=[reason or "tol" for reason in ending.stopped_by],
        options=options,
        notes=[NO_CONFIGURATION if i else "" for i in impossible],
        state=lanes,
    )
