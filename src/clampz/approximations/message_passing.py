"""Message passing: blocks of lanes that pass messages, for Bethe and TRW.

`BinaryLanes` holds log-odds, `GeneralLanes` tables, for any number of labels and with hard zeros; the loops over them
are the same, for their kernels have the same names and arguments.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from clampz._kernels.approximations.message_passing import binary as binary_kernels
from clampz._kernels.approximations.message_passing import tables as general_kernels
from clampz._kernels.approximations.message_passing.binary import Weights
from clampz._kernels.approximations.message_passing.mutual_information import (
    mutual_information_binary,
    mutual_information_of_lane,
)
from clampz._kernels.approximations.message_passing.pair_beliefs import pair_beliefs
from clampz._kernels.approximations.state_tables import Potentials, fill_factors
from clampz._kernels.simd_math import EXP_LIMIT
from clampz.approximations.iteration import NO_CONFIGURATION, Endings
from clampz.approximations.lanes import Evaluation, Lanes
from clampz.approximations.layouts import PIECE, BinaryLayout, PairLayout, TableLayout
from clampz.display.formatting import Bound
from clampz.model.batch import Batch
from clampz.model.results import NO_RESULT, Estimate, Estimates
from clampz.model.tables import take_lanes
from clampz.model.topology import Indices
from clampz.model.warm_starts import Start, check_same_graph, one_per_lane, start_marginals
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget
from clampz.runtime.options import Options
from clampz.runtime.workers import Workers, cut, sum_blocks

# Probabilities are taken to be at least this when messages are made from them, so that their logarithms are finite.
TINY = 1e-12


class MessageLanes(Lanes):
    """Messages of a block of lanes.

    Attributes
    ----------
    point
        (rows, B) the messages.
    total
        (rows, B) the beliefs they lead to, kept in step with them.
    rho
        (m, 1) or (m, B) the edge counting numbers.
    inertia
        (n,) c_i of Bethe's inner loop by slot; 1 for TRW.
    potentials
        The kernels' view of the edges under these counting numbers.
    counted
        The counting numbers that the potentials are of: rho, or others where lanes of tables differ in theirs.
    """

    potentials: Any

    def __init__(self, layout: PairLayout, num_rows: int, workers: Workers, rho: Floats | None, budget: Budget) -> None:
        """Begin with uniform messages; raises Cancelled where the budget is over before the potentials are laid out."""
        self.layout, self.topology, self.workers = layout, layout.topology, workers
        self.point = np.zeros((num_rows, layout.num_lanes))
        self.total = layout.theta.copy()
        self.keep = np.ones(layout.num_lanes)
        self.counted: Floats | None = None
        self.set_counting(np.ones((self.topology.num_edges, 1)) if rho is None else rho, budget=budget)

    def take(self, lanes: Integers, workers: Workers | None = None) -> Self:
        taken = super().take(lanes, workers)
        taken.total = take_lanes(self.total, lanes)
        taken.rho = self.rho if self.rho.shape[1] == 1 else take_lanes(self.rho, lanes)
        taken.potentials = self._take_potentials(lanes, taken.layout)
        taken.counted = taken.rho if self.counted is self.rho else self.counted
        return taken

    def join(self, others: Sequence["MessageLanes"]) -> Self:
        """Append the lanes of others on the same graph."""
        parts: list[MessageLanes] = [self, *others]
        joined = copy(self)
        joined.layout = self.layout.join([part.layout for part in others])
        joined.point = np.concatenate([part.point for part in parts], axis=1)
        joined.total = np.concatenate([part.total for part in parts], axis=1)
        joined.keep, joined.counted = np.concatenate([part.keep for part in parts]), None
        shared = all(part.rho.shape[1] == 1 and np.array_equal(part.rho, self.rho) for part in parts)
        spread = [np.broadcast_to(part.rho, (len(part.rho), part.num_lanes)) for part in parts]
        joined.set_counting(self.rho if shared else np.concatenate(spread, axis=1), budget=UNLIMITED)
        return joined

    def _take_potentials(self, lanes: Integers, layout: Any) -> Any:
        """Select the kernels' view of the edges for some lanes: the one that all share, or their own."""
        return self.potentials

    # -- weights ------------------------------------------------------------------------------------------------------

    def set_counting(self, rho: Floats, inertia: Floats | None = None, *, budget: Budget) -> None:
        """Count edges by rho (m, 1) or (m, B), and variables in Bethe's inner loop by c_i (n,). The totals follow from
        the messages anew."""
        if rho is not self.counted:
            self.potentials = self._potentials(rho, budget)
        self.rho = self.counted = rho
        if inertia is None:
            self.inertia, gain = np.ones(self.topology.num_variables), self.potentials.rho
        else:  # Bethe's total is a mean over c_i of what TRW's would be
            self.inertia = np.ascontiguousarray(inertia[self.topology.variable_of])
            gain = 1 / np.repeat(self.inertia, np.diff(self.topology.start))[:, None]
        self.potentials = self.potentials._replace(gain=gain)
        self._refresh(self.total, np.ones_like(self.inertia))
        self._along_pendants(self.topology.pendant_up)

    @abstractmethod
    def _potentials(self, rho: Floats, budget: Budget) -> Any:
        """Make the kernels' view of the edges, counted by rho (m, 1) or (m, B)."""

    # -- iterations ---------------------------------------------------------------------------------------------------

    def _arrays(self) -> tuple[Any, ...]:
        return self.point, self.total, self.potentials, self.keep, self.layout.graph

    def rebase(self) -> None:
        """Make Bethe's outer step: beliefs move to where the inner loop's messages lead, damped by the inertia c_i."""
        self._refresh(self.total, self.inertia)

    def _refresh(self, total: Floats, inertia: Floats) -> None:
        def run(part: tuple[int, int]) -> None:
            self.kernels.refresh_totals(
                *part, self.layout.theta, self.point, total, self.potentials, inertia, self.layout.graph
            )

        self.workers.map(run, sum_blocks(self.topology.num_variables))

    def _along_pendants(self, messages: Indices) -> None:
        if len(messages):
            heads = self.topology.tail[self.topology.reverse[messages]]
            self.kernels.update_in_order(messages, heads, self.point, self.total, self.potentials, self.layout.graph)

    def evaluate(self, budget: Budget) -> Evaluation:
        """Evaluate value, slack, drift and rounding at the current messages, with those away from the core updated
        first."""
        self._along_pendants(self.topology.pendant_down)
        total = self.total.copy()
        self._refresh(total, np.ones_like(self.inertia))
        if (self.inertia == 1).all():
            self.total = total
        n, m = self.topology.num_variables, self.topology.num_edges
        log_norm = np.empty((n, self.num_lanes))
        arrays = (self.point, total, self.potentials, self.layout.graph, log_norm)
        entries = self.table_entries // max(1, 2 * m)
        nodes = self._terms(self.kernels.node_terms, n, self.layout.theta, *arrays, budget=budget)
        edges = self._terms(self.kernels.edge_terms, m, *arrays, budget=budget, entries=entries)
        return Evaluation.summed(nodes + edges, self.layout.constant, self.layout.magnitude)

    @abstractmethod
    def mutual_information(self) -> Floats:
        """(m, B) compute the mutual information of the pairwise beliefs."""

    # -- starts and results -------------------------------------------------------------------------------------------

    @abstractmethod
    def messages_from(self, marginals: Floats) -> Floats:
        """Make the messages (rows, B) that beliefs of these marginals (S, B) would send without hearing back."""

    def start_at(self, messages: Floats) -> None:
        """Replace the messages by these."""
        self.point = np.ascontiguousarray(messages)

    @abstractmethod
    def marginals(self) -> Floats:
        """(S, B) compute the beliefs in the order of the variables."""

    def beliefs_at(self, messages: Floats, rho: Floats) -> Floats:
        """(S, B) compute the marginals that other messages lead to."""
        there = self.take(np.arange(self.num_lanes))
        there.point = messages
        there.set_counting(rho, budget=UNLIMITED)
        return there.marginals()

    @abstractmethod
    def pairwise(self, lane: int) -> Floats:
        """Compute the pairwise beliefs of a lane, laid out as the model's pairwise tables."""

    def factors(self, lane: int) -> Floats:
        """Return nothing: messages run along edges, and there are no larger factors."""
        return np.empty(0)

    def messages_of(self, batch: Batch, start: Start) -> Floats:
        """(rows, B) make the messages of a warm start. Those of an earlier estimate where it passed messages of this
        kind, else made from its marginals or from the marginals given."""
        if isinstance(start, Estimate | Estimates) and isinstance(start.state, type(self)):  # messages of the same kind
            check_same_graph(batch, start)
            messages = start.state.point if isinstance(start, Estimates) else start.state.point[:, start.lane]
            return one_per_lane(messages, batch)
        # a lane with Z = 0 has no marginals: it starts from even odds
        return self.messages_from(np.nan_to_num(start_marginals(batch, start), nan=0.5))

    def estimates(
        self,
        method: str,
        batch: Batch,
        options: Options,
        ending: Endings,
        rho: Floats,
        *,
        log_z: Floats,
        bound: Bound | None = None,
    ) -> Estimates:
        """Make the estimates of lanes that have ended, keeping the lanes for pairwise marginals and warm starts."""
        self.workers = Workers(1)
        self.point = ending.point
        self.set_counting(rho, budget=UNLIMITED)
        impossible = self.layout.constant == -np.inf
        unseen = ending.unseen & ~impossible
        log_z = np.where(impossible, -np.inf, np.where(unseen, np.nan, log_z))
        marginals = self.marginals()
        marginals[:, impossible | unseen] = np.nan
        return Estimates(
            method=method,
            model=batch.model,
            log_z=log_z,
            bound=bound,
            lower=np.full(batch.num_lanes, -np.inf),
            upper=np.where(impossible, -np.inf, np.where(unseen | (bound != "upper"), np.inf, log_z)),
            value=np.where(impossible, -np.inf, ending.value),
            marginals_flat=marginals,
            converged=ending.converged | impossible,
            num_iter=ending.num_iter,
            residual=np.where(impossible, 0.0, ending.residual),
            stopped_by=[reason or "tol" for reason in ending.stopped_by],
            options=options,
            notes=[NO_CONFIGURATION if i else NO_RESULT if u else "" for i, u in zip(impossible, unseen, strict=True)],
            state=self,
        )


class BinaryLanes(MessageLanes):
    """Lanes of a binary model: rows are messages and slots, as in `_kernels.approximations.message_passing.binary`."""

    kernels = binary_kernels
    layout: BinaryLayout
    potentials: Weights

    def __init__(self, layout: BinaryLayout, workers: Workers, rho: Floats | None = None, *, budget: Budget) -> None:
        super().__init__(layout, 2 * layout.topology.num_edges, workers, rho, budget)

    def _potentials(self, rho: Floats, budget: Budget) -> Weights:
        edge = self.topology.edge_of_message
        rho = np.take(rho, edge, axis=0)
        return Weights(self.layout.W[edge, None] / (2 * rho), rho, rho, self.layout.free)

    def _take_potentials(self, lanes: Integers, layout: BinaryLayout) -> Weights:
        w, rho, gain = (a if a.shape[1] == 1 else take_lanes(a, lanes) for a in self.potentials[:3])
        return Weights(w, rho, gain, layout.free)

    def mutual_information(self) -> Floats:
        out = np.empty((self.topology.num_edges, self.num_lanes))
        mutual_information_binary(self.point, self.total, self.potentials, self.layout.graph, out)
        return out

    def messages_from(self, marginals: Floats) -> Floats:
        pairs = marginals.reshape(-1, 2, self.num_lanes)[self.topology.variable_of]
        low, high = np.clip(pairs, TINY, 1.0).transpose(1, 0, 2)
        messages = np.empty_like(self.point)
        binary_kernels.send_all(np.log(high / low), self.layout.W, self.layout.graph, messages)
        return messages

    def start_at(self, messages: Floats) -> None:
        """Replace the messages by these; what runs along an edge of a clamped variable stays uniform."""
        free = self.layout.free
        if free.size:
            head = self.topology.tail[self.topology.reverse]
            messages = messages * free[head] * free[self.topology.tail]
        super().start_at(messages)

    def marginals(self) -> Floats:
        odds = np.clip(self.total, -EXP_LIMIT, EXP_LIMIT)
        return self.layout.marginals(1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds)))

    def pairwise(self, lane: int) -> Floats:
        """Compute the pairwise beliefs of a lane. Edges of a clamped variable carry no message, and their belief is the
        product of the two."""
        topology, free = self.topology, self.layout.free
        if self.layout.constant[lane] == -np.inf:  # Z = 0: there are none
            return np.full(4 * topology.num_edges, np.nan)
        i, j = topology.slot_of[topology.edges].T
        into_j, into_i = topology.message_of_edge.T
        a = self.total[i, lane] - self.point[into_i, lane]
        b = self.total[j, lane] - self.point[into_j, lane]
        w = self.potentials.w[into_i, 0 if self.potentials.w.shape[1] == 1 else lane]
        logs = np.stack([w, b, a, a + b + w], axis=1)
        beliefs = np.exp(logs - logs.max(axis=1, keepdims=True))
        beliefs /= beliefs.sum(axis=1, keepdims=True)
        if free.size:
            rows = self.marginals()[:, lane].reshape(-1, 2)
            product = rows[topology.edges[:, 0], :, None] * rows[topology.edges[:, 1], None, :]
            beliefs = np.where((free[i, lane] * free[j, lane] > 0)[:, None], beliefs, product.reshape(-1, 4))
        return np.ravel(beliefs)


class GeneralLanes(MessageLanes):
    """Lanes of any model: rows are states of messages' heads and of slots. The arrays are those of
    `_kernels.approximations.message_passing.tables`. A clamped variable needs no mask: it has one state left, and its
    messages are what its edges say of that. Edge weights of a lane's own need tables of its own, so a block that passes
    messages shares them; lanes that have ended may differ."""

    kernels = general_kernels
    layout: TableLayout
    potentials: Potentials

    def __init__(self, layout: TableLayout, workers: Workers, rho: Floats | None = None, *, budget: Budget) -> None:
        super().__init__(layout, int(layout.graph.entry_start[-1]), workers, rho, budget)

    @property
    def table_entries(self) -> int:
        return len(self.layout.table)

    def set_counting(self, rho: Floats, inertia: Floats | None = None, *, budget: Budget) -> None:
        if rho.shape[1] == 1:
            super().set_counting(rho, inertia, budget=budget)
            return
        self.rho = rho
        self.total = np.concatenate([self._lane(b, budget).total for b in range(self.num_lanes)], axis=1)

    def _lane(self, b: int, budget: Budget) -> "GeneralLanes":
        """Return one lane with its own edge weights."""
        lane = self.take(np.array([b]))
        lane.set_counting(lane.rho, budget=budget)
        return lane

    def _potentials(self, rho: Floats, budget: Budget) -> Potentials:
        rho = np.take(rho, self.topology.edge_of_message, axis=0)
        table, graph = self.layout.table, self.layout.graph
        factor, shift = np.empty_like(table), np.empty(len(rho))
        for first, last in cut(0, len(rho), 1 + len(table) // PIECE):
            budget.check_cancelled()
            some = graph._replace(table_start=graph.table_start[first : last + 1])
            fill_factors(rho[first:last], some, table, factor, shift[first:last])
        return Potentials(table, factor, shift, rho, rho)

    def mutual_information(self) -> Floats:
        model = self.layout.model
        out = np.empty((self.topology.num_edges, self.num_lanes))
        beliefs, column = np.empty(len(model.pairwise.flat)), np.empty(self.topology.num_edges)
        for b in range(self.num_lanes):
            mutual_information_of_lane(
                b, self.point, self.total, self.potentials, self.layout.graph, model.pairwise.start, beliefs, column
            )
            out[:, b] = column
        return out

    def messages_from(self, marginals: Floats) -> Floats:
        layout, logs = self.layout, np.log(np.clip(marginals[self.layout.rows], TINY, 1.0))
        beliefs = np.where(layout.theta > -np.inf, logs, -np.inf)
        messages: Floats = general_kernels.send_all(beliefs, np.zeros_like(self.point), self.potentials, layout.graph)
        return messages

    def marginals(self) -> Floats:
        begin, sizes = self.layout.graph.state_start[:-1], np.diff(self.layout.graph.state_start)
        if not len(begin):
            return self.total
        with np.errstate(invalid="ignore"):  # lanes with Z = 0 have no beliefs
            weight = np.exp(self.total - np.repeat(np.maximum.reduceat(self.total, begin, axis=0), sizes, axis=0))
            weight /= np.repeat(np.add.reduceat(weight, begin, axis=0), sizes, axis=0)
            return self.layout.in_variable_order(weight)

    def pairwise(self, lane: int) -> Floats:
        block, tables = self._lane(lane, UNLIMITED), self.layout.model.pairwise
        out = np.full(len(tables.flat), np.nan)
        if self.layout.constant[lane] == -np.inf:  # Z = 0: there are none
            return out
        pair_beliefs(0, block.point, block.total, block.potentials, self.layout.graph, tables.start, out)
        return out


def lanes_of(layout: PairLayout, workers: Workers, rho: Floats | None = None, *, budget: Budget) -> MessageLanes:
    """Make lanes with uniform messages, and edges that count rho (m, 1) each, or once. Raises Cancelled where the
    budget is over before they are laid out."""
    if isinstance(layout, BinaryLayout):
        return BinaryLanes(layout, workers, rho, budget=budget)
    return GeneralLanes(layout, workers, rho, budget=budget)
