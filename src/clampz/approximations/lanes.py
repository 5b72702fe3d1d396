"""From a batch to lanes that pass messages, and back to estimates: what Bethe and TRW have in common around their
loop."""

import numpy as np

from clampz.approximations.binary_messages import BinaryLanes
from clampz.approximations.iteration import Ending
from clampz.approximations.layouts import BinaryProblem, Problem
from clampz.approximations.messages import MessageLanes
from clampz.approximations.table_messages import GeneralLanes
from clampz.model.batch import Batch
from clampz.model.results import Bound, Estimate, Estimates
from clampz.model.starts import Start, check_same_graph, one_per_lane, start_marginals
from clampz.model.tables import Floats
from clampz.options import Options
from clampz.workers import Workers

NO_CONFIGURATION = "Z = 0: no configuration is possible"


def lanes_of(problem: Problem, workers: Workers) -> MessageLanes:
    """Lanes that begin with uniform messages."""
    return BinaryLanes(problem, workers) if isinstance(problem, BinaryProblem) else GeneralLanes(problem, workers)


def start_messages(lanes: MessageLanes, batch: Batch, start: Start) -> Floats:
    """(rows, B) the messages of an earlier estimate; made from its marginals if it passed none, or from the marginals
    given."""
    if isinstance(start, Estimate | Estimates) and isinstance(start.state, type(lanes)):  # messages of the same kind
        check_same_graph(batch, start)
        messages = start.state.point if isinstance(start, Estimates) else start.state.point[:, start.lane]
        return one_per_lane(messages, batch)
    # a lane with Z = 0 has no marginals: it starts from even odds
    return lanes.messages_from(np.nan_to_num(start_marginals(batch, start), nan=0.5))


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
