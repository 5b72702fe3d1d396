"""MessageLanes: the state of a block of lanes that pass messages, and what can be done with it.

`BinaryLanes` holds log-odds, `GeneralLanes` tables; the loops over them are the same, for their kernels have the same
names and arguments.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from clampz.approximations.iteration import NO_CONFIGURATION, Ending, Evaluation, Lanes
from clampz.approximations.layouts import PairLayout
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.model.starts import Start, check_same_graph, one_per_lane, start_marginals
from clampz.model.tables import columns
from clampz.model.topology import Indices
from clampz.numerics import Floats, Integers
from clampz.options import Options
from clampz.wording import Bound
from clampz.workers import Workers, sum_blocks

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
    """

    potentials: Any

    def __init__(self, layout: PairLayout, num_rows: int, workers: Workers) -> None:
        self.layout = layout
        self.topology = layout.topology
        self.workers = workers
        self.point = np.zeros((num_rows, layout.num_lanes))
        self.total = layout.theta.copy()
        self.keep = np.ones(layout.num_lanes)
        self.set_counting(np.ones((self.topology.num_edges, 1)))

    def take(self, lanes: Integers, workers: Workers | None = None) -> Self:
        taken = super().take(lanes, workers)
        taken.total = columns(self.total, lanes)
        taken.rho = self.rho if self.rho.shape[1] == 1 else columns(self.rho, lanes)
        taken.potentials = self._take_potentials(lanes, taken.layout)
        return taken

    def join(self, others: Sequence["MessageLanes"]) -> Self:
        """These lanes followed by those of others on the same graph."""
        parts: list[MessageLanes] = [self, *others]
        joined = copy(self)
        joined.layout = self.layout.join([part.layout for part in others])
        joined.point, joined.total = (
            np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("point", "total")
        )
        joined.keep = np.concatenate([part.keep for part in parts])
        shared = all(part.rho.shape[1] == 1 and np.array_equal(part.rho, self.rho) for part in parts)
        spread = [np.broadcast_to(part.rho, (len(part.rho), part.num_lanes)) for part in parts]
        joined.set_counting(self.rho if shared else np.concatenate(spread, axis=1))
        return joined

    @abstractmethod
    def _take_potentials(self, lanes: Integers, layout: Any) -> Any:
        """The kernels' view of the edges for some of the lanes."""

    # -- weights ------------------------------------------------------------------------------------------------------

    def set_counting(self, rho: Floats, inertia: Floats | None = None) -> None:
        """Count edges by rho (m, 1) or (m, B), and variables in Bethe's inner loop by c_i (n,); the totals follow from
        the messages anew."""
        self.rho = rho
        if inertia is None:
            self.inertia, gain = np.ones(self.topology.num_variables), None
        else:  # Bethe's total is a mean over c_i of what TRW's would be
            self.inertia = np.ascontiguousarray(inertia[self.topology.variable_of])
            gain = 1 / np.repeat(self.inertia, np.diff(self.topology.start))[:, None]
        self.potentials = self._potentials(gain)
        self._refresh(self.total, np.ones_like(self.inertia))
        self._along_pendants(self.topology.pendant_up)

    @abstractmethod
    def _potentials(self, gain: Floats | None) -> Any:
        """The kernels' view of the edges; gain (2m, 1), or rho of each message if None."""

    # -- iterations ---------------------------------------------------------------------------------------------------

    def _arrays(self) -> tuple[Any, ...]:
        return self.point, self.total, self.potentials, self.keep, self.layout.graph

    def rebase(self) -> None:
        """Bethe's outer step: beliefs move to where the inner loop's messages lead, damped by the inertia c_i."""
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

    def evaluate(self) -> Evaluation:
        """Value, slack, drift and rounding at the current messages, those away from the core brought up to date
        first."""
        self._along_pendants(self.topology.pendant_down)
        total = self.total.copy()
        self._refresh(total, np.ones_like(self.inertia))
        if (self.inertia == 1).all():
            self.total = total
        n, m = self.topology.num_variables, self.topology.num_edges
        log_norm = np.empty((n, self.num_lanes))
        arrays = (self.point, total, self.potentials, self.layout.graph, log_norm)
        nodes = self._terms(self.kernels.node_terms, n, self.layout.theta, *arrays)
        edges = self._terms(self.kernels.edge_terms, m, *arrays)
        return Evaluation.summed(nodes + edges, self.layout.constant, self.layout.magnitude)

    @abstractmethod
    def mutual_information(self) -> Floats:
        """(m, B) mutual information of the pairwise beliefs."""

    # -- starts and results -------------------------------------------------------------------------------------------

    @abstractmethod
    def messages_from(self, marginals: Floats) -> Floats:
        """The messages (rows, B) that beliefs of these marginals (S, B) would send without hearing back."""

    def start_at(self, messages: Floats) -> None:
        """Begin with these messages."""
        self.point = np.ascontiguousarray(messages)

    @abstractmethod
    def marginals(self) -> Floats:
        """(S, B) beliefs in the order of the variables."""

    @abstractmethod
    def pairwise(self, lane: int) -> Floats:
        """Pairwise beliefs of a lane, laid out as the model's pairwise tables."""

    def messages_of(self, batch: Batch, start: Start) -> Floats:
        """(rows, B) the messages of an earlier estimate; made from its marginals if it passed none, or from the
        marginals given."""
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
        ending: Ending,
        rho: Floats,
        *,
        log_z: Floats,
        bound: Bound | None = None,
    ) -> Estimates:
        """What lanes that have ended say: marginals, and the lanes kept for pairwise marginals and warm starts."""
        self.workers = Workers(1)
        self.point = ending.point
        self.set_counting(rho)
        impossible = self.layout.constant == -np.inf
        log_z = np.where(impossible, -np.inf, log_z)
        return Estimates(
            method=method,
            model=batch.model,
            log_z=log_z,
            bound=bound,
            lower=np.full(batch.num_lanes, -np.inf),
            upper=np.where(impossible, -np.inf, log_z if bound == "upper" else np.inf),
            value=np.where(impossible, -np.inf, ending.value),
            marginals_flat=np.where(impossible, np.nan, self.marginals()),
            converged=ending.converged | impossible,
            num_iter=ending.num_iter,
            residual=np.where(impossible, 0.0, ending.residual),
            stopped_by=[reason or "tol" for reason in ending.stopped_by],
            options=options,
            notes=[NO_CONFIGURATION if i else "" for i in impossible],
            state=self,
        )
