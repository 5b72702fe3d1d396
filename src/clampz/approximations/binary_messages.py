"""BinaryLanes: message passing on binary models, in log-odds."""

import numpy as np

from clampz._kernels import messages as kernels
from clampz._kernels.messages import Weights
from clampz._kernels.simd_math import EXP_LIMIT
from clampz.approximations.layouts import BinaryLayout
from clampz.approximations.messages import TINY, MessageLanes
from clampz.model.tables import Floats, Integers, columns
from clampz.workers import Workers


class BinaryLanes(MessageLanes):
    """Lanes of a binary model.  The arrays are those of `_kernels.messages`; rows are messages and slots."""

    kernels = kernels
    layout: BinaryLayout
    potentials: Weights

    def __init__(self, layout: BinaryLayout, workers: Workers) -> None:
        super().__init__(layout, 2 * layout.topology.num_edges, workers)

    def _potentials(self, gain: Floats | None) -> Weights:
        edge = self.topology.edge_of_message
        rho = np.take(self.rho, edge, axis=0)
        return Weights(self.layout.W[edge, None] / (2 * rho), rho, rho if gain is None else gain, self.layout.free)

    def _take_potentials(self, lanes: Integers, layout: BinaryLayout) -> Weights:
        w, rho, gain = (a if a.shape[1] == 1 else columns(a, lanes) for a in self.potentials[:3])
        return Weights(w, rho, gain, layout.free)

    def mutual_information(self) -> Floats:
        out = np.empty((self.topology.num_edges, self.num_lanes))
        kernels.mutual_information(self.point, self.total, self.potentials, self.layout.graph, out)
        return out

    def messages_from(self, marginals: Floats) -> Floats:
        low, high = np.clip(marginals.reshape(-1, 2, self.num_lanes)[self.topology.variable_of], TINY, 1.0).transpose(
            1, 0, 2
        )
        half = self.layout.W[self.topology.edge_of_message, None] / 2
        odds = np.log(high / low)[self.topology.tail]
        messages: Floats = np.logaddexp(half, -odds) - np.logaddexp(0.0, half - odds)
        return messages

    def start_at(self, messages: Floats) -> None:
        """Begin with these messages; what runs along an edge of a clamped variable stays uniform."""
        free = self.layout.free
        if free.size:
            head = self.topology.tail[self.topology.reverse]
            messages = messages * free[head] * free[self.topology.tail]
        super().start_at(messages)

    def marginals(self) -> Floats:
        odds = np.clip(self.total, -EXP_LIMIT, EXP_LIMIT)
        return self.layout.marginals(1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds)))

    def pairwise(self, lane: int) -> Floats:
        """Pairwise beliefs of a lane; where a variable is clamped its edges carry no message, and the belief is the
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
