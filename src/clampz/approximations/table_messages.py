"""GeneralLanes: message passing for any number of labels and with hard zeros, over tables; and `lanes_of`, for which
they are the ones that take all.

A clamped variable needs no mask here: it has one state left, and its messages are what its edges say of that state.
"""

import numpy as np

from clampz._kernels import messages_general as kernels
from clampz._kernels.pair_beliefs import mutual_information, pair_beliefs
from clampz._kernels.tables import Potentials, fill_factors
from clampz.approximations.binary_messages import BinaryLanes
from clampz.approximations.layouts import BinaryLayout, PairLayout, TableLayout
from clampz.approximations.messages import TINY, MessageLanes
from clampz.model.tables import Floats, Integers
from clampz.workers import Workers


class GeneralLanes(MessageLanes):
    """Lanes of any model.  The arrays are those of `_kernels.messages_general`; rows are states of messages' heads and
    of slots.

    Edge weights of a lane's own need tables of its own, so a block that passes messages shares them; lanes that have
    ended may differ.
    """

    kernels = kernels
    layout: TableLayout
    potentials: Potentials

    def __init__(self, layout: TableLayout, workers: Workers) -> None:
        super().__init__(layout, int(layout.graph.entry_start[-1]), workers)

    def set_counting(self, rho: Floats, inertia: Floats | None = None) -> None:
        if rho.shape[1] == 1:
            super().set_counting(rho, inertia)
            return
        self.rho = rho
        self.total = np.concatenate([self._lane(b).total for b in range(self.num_lanes)], axis=1)

    def _lane(self, b: int) -> "GeneralLanes":
        """One lane with its own edge weights."""
        lane = self.take(np.array([b]))
        lane.set_counting(lane.rho)
        return lane

    def _potentials(self, gain: Floats | None) -> Potentials:
        rho = np.take(self.rho, self.topology.edge_of_message, axis=0)
        table = self.layout.table
        factor, shift = np.empty_like(table), np.empty(len(rho))
        fill_factors(rho, self.layout.graph, table, factor, shift)
        return Potentials(table, factor, shift, rho, rho if gain is None else gain)

    def _take_potentials(self, lanes: Integers, layout: TableLayout) -> Potentials:
        return self.potentials

    def mutual_information(self) -> Floats:
        model = self.layout.model
        out = np.empty((self.topology.num_edges, self.num_lanes))
        beliefs, column = np.empty(len(model.pairwise.flat)), np.empty(self.topology.num_edges)
        for b in range(self.num_lanes):
            mutual_information(
                b, self.point, self.total, self.potentials, self.layout.graph, model.pairwise.start, beliefs, column
            )
            out[:, b] = column
        return out

    def messages_from(self, marginals: Floats) -> Floats:
        beliefs = np.where(
            self.layout.theta > -np.inf, np.log(np.clip(marginals[self.layout.rows], TINY, 1.0)), -np.inf
        )
        messages: Floats = kernels.send_all(beliefs, np.zeros_like(self.point), self.potentials, self.layout.graph)
        return messages

    def marginals(self) -> Floats:
        begin, sizes = self.layout.graph.state_start[:-1], np.diff(self.layout.graph.state_start)
        if not len(begin):
            return self.total
        with np.errstate(invalid="ignore"):  # lanes with Z = 0 have no beliefs
            weight = np.exp(self.total - np.repeat(np.maximum.reduceat(self.total, begin, axis=0), sizes, axis=0))
            return self.layout.in_variable_order(
                weight / np.repeat(np.add.reduceat(weight, begin, axis=0), sizes, axis=0)
            )

    def pairwise(self, lane: int) -> Floats:
        block, tables = self._lane(lane), self.layout.model.pairwise
        out = np.full(len(tables.flat), np.nan)
        if self.layout.constant[lane] == -np.inf:  # Z = 0: there are none
            return out
        pair_beliefs(0, block.point, block.total, block.potentials, self.layout.graph, tables.start, out)
        return out


def lanes_of(layout: PairLayout, workers: Workers) -> MessageLanes:
    """Lanes that begin with uniform messages."""
    return BinaryLanes(layout, workers) if isinstance(layout, BinaryLayout) else GeneralLanes(layout, workers)
