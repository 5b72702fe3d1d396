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
from clampz.results import Bound, Estimates
from clampz.tables import Floats

NO_CONFIGURATION = "Z = 0: no configuration is possible"


def lanes_of(problem: Problem, workers: Workers) -> MessageLanes:
    """Lanes that begin with uniform messages."""
    return BinaryLanes(problem, workers) if isinstance(problem, BinaryProblem) else GeneralLanes(problem, workers)


def start_messages(lanes: MessageLanes, batch: Batch, start: Start) -> Floats:
    """The messages of an earlier estimate, one column per lane; made from its marginals if it passed none."""
    check_start(batch, start)
    if isinstance(start.state, type(lanes)):  # the same graph and states, so the same layout
        return for_lanes(start, start.state.point, batch.num_lanes)
    return lanes.messages_from(start_marginals(start, batch.num_lanes))


def check_start(batch: Batch, start: Start) -> None:
    """Refuse a start that is of another model, or of another number of lanes."""
    model, other = batch.model, start.model
    if not (np.array_equal(model.num_states, other.num_states) and np.array_equal(model.edges, other.edges)):
        raise OptionError(f"start: expected an estimate of a model with the same variables and edges as {model}, found one of {other}")
    num_lanes = len(start) if isinstance(start, Estimates) else 1
    if num_lanes not in (1, batch.num_lanes):
        raise OptionError(f"start: expected one estimate or {batch.num_lanes}, one per lane, found {num_lanes}")


def for_lanes(start: Start, array: Floats, num_lanes: int) -> Floats:
    """An array (rows, lanes) of a start, one column per lane of the new run."""
    column = array if isinstance(start, Estimates) else array[:, start.lane : start.lane + 1]
    return np.repeat(column, num_lanes // column.shape[1], axis=1)


def start_marginals(start: Start, num_lanes: int) -> Floats:
    """(S, B) the marginals of a start, one column per lane of the new run."""
    flat = start.marginals_flat if isinstance(start, Estimates) else start.marginals.flat[:, None]
    return np.repeat(flat, num_lanes // flat.shape[1], axis=1)


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
