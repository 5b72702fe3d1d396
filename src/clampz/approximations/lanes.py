"""From a batch to lanes that pass messages, and back to estimates: what Bethe and TRW have in common around their loop."""

from collections.abc import Callable
from typing import Any

import numpy as np

from clampz.approximations.base import Start
from clampz.approximations.binary_lanes import BinaryLanes
from clampz.approximations.engine import Ending
from clampz.approximations.general_lanes import GeneralLanes
from clampz.approximations.message_lanes import MessageLanes
from clampz.approximations.problems import BinaryProblem, Problem
from clampz.batch import Batch
from clampz.errors import OptionError
from clampz.executors import Workers, lane_blocks
from clampz.limits import Options
from clampz.results import Bound, Estimates
from clampz.tables import Floats, Integers, columns


def lanes_of(problem: Problem, workers: Workers) -> MessageLanes:
    """Lanes that begin with uniform messages."""
    return BinaryLanes(problem, workers) if isinstance(problem, BinaryProblem) else GeneralLanes(problem, workers)


def start_messages(lanes: MessageLanes, batch: Batch, start: Start) -> Floats:
    """The messages of an earlier estimate, one column per lane; made from its marginals if it passed none."""
    check_start(batch, start)
    if isinstance(start.state, MessageLanes):
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


def run_blocks(lanes: MessageLanes, rho: Floats, workers: Workers, solve: Callable[[MessageLanes, Floats], tuple[Ending, Floats]]) -> tuple[Ending, Floats]:
    """Solve blocks of lanes side by side; `solve` takes a block and its edge weights (m, 1) or (m, B) and returns them with the ending.

    A single block has all threads to itself.
    """
    shared = rho.shape[1] == 1
    possible = np.flatnonzero(lanes.problem.constant > -np.inf)
    blocks = [possible[block] for block in lane_blocks(len(possible), workers.num_threads)]
    if not shared and isinstance(lanes, GeneralLanes):
        blocks = [possible[b : b + 1] for b in range(len(possible))]  # weights of a lane's own need tables of its own
    alone = workers if len(blocks) == 1 else Workers(1)

    def run(block: Integers) -> tuple[Ending, Floats]:
        return solve(lanes.take(block, alone), rho if shared else columns(rho, block))

    parts = [run(blocks[0])] if len(blocks) == 1 else workers.map(run, blocks)
    ending = Ending.empty(lanes)
    if all(part_rho is rho for _, part_rho in parts):
        merged = rho
    else:
        merged = np.repeat(rho, lanes.num_lanes // rho.shape[1], axis=1)
    for block, (part, part_rho) in zip(blocks, parts, strict=True):
        ending.put(block, part, np.arange(len(block)))
        if merged is not rho:
            merged[:, block] = part_rho
    return ending, merged


def finished(method: str, lanes: MessageLanes, batch: Batch, options: Options, ending: Ending, rho: Floats, **bounds: Any) -> Estimates:
    """Estimates from lanes that have ended: marginals, and the messages kept for pairwise marginals and warm starts."""
    lanes.point = ending.point
    lanes.workers = Workers(1)
    lanes.set_counting(rho)
    impossible = lanes.problem.constant == -np.inf
    never = np.full(batch.num_lanes, -np.inf)
    always = np.full(batch.num_lanes, np.inf)
    fields: dict[str, Floats | Bound | None] = {"log_z": ending.value, "lower": never, "upper": always, "bound": None} | bounds
    for name in ("log_z", "upper"):
        fields[name] = np.where(impossible, -np.inf, fields[name])  # type: ignore[arg-type]
    return Estimates(
        method=method,
        model=batch.model,
        value=np.where(impossible, -np.inf, ending.value),
        marginals_flat=np.where(impossible, np.nan, lanes.marginals()),
        converged=ending.converged | impossible,
        num_iter=ending.num_iter,
        residual=np.where(impossible, 0.0, ending.residual),
        stopped_by=[reason or "max_iter" for reason in ending.stopped_by],
        options=options,
        notes=["Z = 0: no configuration is possible" if i else "" for i in impossible],
        state=lanes,
        **fields,  # type: ignore[arg-type]
    )
