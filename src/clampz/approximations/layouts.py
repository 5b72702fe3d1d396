"""Layouts: a batch as the kernels want it, rows in slot order, clamped variables worked into the others' potentials.

`BinaryLayout` holds log-odds and weights, for models of two states each with finite pairwise potentials. `TableLayout`
holds tables, for all others, `FactorLayout` larger factors too. Mean field and message passing start from the same
layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from clampz._kernels.approximations.arc_consistency import remove_unsupported
from clampz._kernels.approximations.mean_field.factors import FactorGraph
from clampz._kernels.approximations.message_passing.binary import ADDITIONS_COVERED, MessageGraph
from clampz._kernels.approximations.state_tables import StateGraph, fill_tables
from clampz.model import BinaryForm, Model
from clampz.model.batch import Batch
from clampz.model.conditioning import states_left
from clampz.model.pairwise_equivalent import Equivalent
from clampz.model.tables import has_hard_zeros, lane_sums, offsets, ranges
from clampz.model.topology import Topology
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget
from clampz.runtime.workers import cut

# Seconds, at least, that it takes to write an entry of a table to where a message finds it.
SECONDS_PER_ENTRY = 1e-8
# Entries that are written between two looks at the clock.
PIECE = 2**22


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchLayout:
    """Unary potentials and constants of lanes, which all layouts have.

    Attributes
    ----------
    theta
        (rows, B) unary potentials.
    constant
        (B,) everything that depends on no free variable; -inf where the lane has Z = 0.
    """

    theta: Floats
    constant: Floats
    # The arrays whose last axis is the lanes; some have none where no lane needs them.
    per_lane: ClassVar[tuple[str, ...]] = ("theta", "constant")

    @property
    def num_lanes(self) -> int:
        return len(self.constant)

    @property
    def magnitude(self) -> Floats:
        """(B,) sum the absolute terms that went into the constant, to which its rounding error is proportional. Tables
        are used as they are."""
        return np.where(np.isfinite(self.constant), np.abs(self.constant), 0.0)

    def take(self, lanes: Integers) -> Self:
        """Select lanes."""
        arrays = {name: getattr(self, name) for name in self.per_lane}
        return replace(self, **{k: np.take(a, lanes, axis=-1) if a.shape[-1] else a for k, a in arrays.items()})

    def join(self, others: Sequence[Self]) -> Self:
        """Append the lanes of others on the same graph."""
        arrays = {k: np.concatenate([getattr(part, k) for part in (self, *others)], axis=-1) for k in self.per_lane}
        return replace(self, **arrays)


@dataclass(frozen=True, eq=False, kw_only=True)
class BinaryLayout(BatchLayout):
    """Lanes of a binary model.

    Attributes
    ----------
    W
        (m,) edge weights.
    theta
        (n, B) log-odds of the unary potentials by slot; 0 where clamped.
    free
        (n, B) 1 where free and 0 where clamped, by slot; (0, 0) if no lane has a clamped variable.
    clamped_to
        (n, B) the state of the clamped variables, by slot; empty like `free`.
    added
        (B,) the absolute terms that went into the log-odds and the constant, some of which cancel.
    """

    topology: Topology
    graph: MessageGraph
    W: Floats
    free: Floats
    clamped_to: Floats
    added: Floats
    per_lane = (*BatchLayout.per_lane, "free", "clamped_to", "added")

    @classmethod
    def from_batch(cls, batch: Batch, form: BinaryForm, budget: Budget) -> Self:
        """Lay out log-odds, with clamped variables worked into the others. A variable clamped to a leaves W/2 [x_j = a]
        to each neighbour j: that goes to theta and to the constant, and the edge is masked."""
        model, topology = batch.model, batch.model.topology
        budget.check_cancelled()
        low, high = np.moveaxis(batch.unary.reshape(-1, 2, batch.num_lanes), 1, 0)
        shift = form.theta[:, None]
        clamped = batch.num_possible <= 1
        state = (high > -np.inf) & clamped
        own = np.where(state, high + shift, low)  # what each adds to the constant: its clamped state, or state 0
        constant = model.constant + form.constant + lane_sums(own)
        with np.errstate(invalid="ignore"):
            theta = np.where(clamped, 0.0, high - low + shift)
        free = clamped_to = np.empty((0, 0))
        if clamped.any():
            half = form.W[:, None] / 2
            for i, j in (model.edges.T, model.edges.T[::-1]):
                fixed = clamped[i] & ~clamped[j]
                np.add.at(theta, j, np.where(fixed, np.where(state[i], half, -half), 0.0))
                constant += lane_sums(np.where(fixed & ~state[i], half, 0.0))
            i, j = model.edges.T
            agree = clamped[i] & clamped[j] & (state[i] == state[j])
            constant += lane_sums(np.where(agree, half, 0.0))
            free = np.ascontiguousarray(~clamped[topology.variable_of], dtype=np.float64)
            clamped_to = np.ascontiguousarray(state[topology.variable_of], dtype=np.float64)
        # theta and the constant are sums over as many tables as a variable has neighbours, one after another
        additions = 1.0 + float(topology.degrees.max(initial=0)) / ADDITIONS_COVERED
        unary = np.where(np.isfinite(batch.unary), np.abs(batch.unary), 0.0).sum(axis=0)
        added = abs(model.constant) + unary + additions * float(np.abs(model.pairwise.flat).sum())
        graph = MessageGraph(topology.start, topology.tail, topology.reverse, topology.message_of_edge)
        return cls(
            topology=topology,
            graph=graph,
            W=form.W,
            theta=np.ascontiguousarray(theta[topology.variable_of]),
            constant=constant,
            free=free,
            clamped_to=clamped_to,
            added=added,
        )

    @property
    def magnitude(self) -> Floats:
        return self.added

    def join(self, others: Sequence[Self]) -> Self:
        parts = [self, *others]
        if any(part.free.size for part in parts):
            parts = [part if part.free.size else part._with_masks() for part in parts]
        return super(BinaryLayout, parts[0]).join(parts[1:])

    def _with_masks(self) -> Self:
        return replace(self, free=np.ones_like(self.theta), clamped_to=np.zeros_like(self.theta))

    def marginals(self, high: Floats, low: Floats) -> Floats:
        """(S, B) return marginals in variable order, given those of both states by slot; clamped variables have their
        state."""
        if self.free.size:
            high = np.where(self.free > 0, high, self.clamped_to)
            low = np.where(self.free > 0, low, 1.0 - self.clamped_to)
        return np.stack([low, high], axis=1)[self.topology.slot_of].reshape(-1, high.shape[1])


@dataclass(frozen=True, eq=False, kw_only=True)
class TableLayout(BatchLayout):
    """Lanes of a model of any number of labels, arc-consistent.

    Attributes
    ----------
    rows
        (S,) the row of the model's unary potentials that each row here comes from.
    table
        (tables,) log pairwise potentials, once per message.
    theta
        (S, B) log unary potentials, states in slot order; -inf where the state is ruled out or has no partner in some
        neighbour.
    """

    model: Model
    graph: StateGraph
    rows: Integers
    table: Floats

    @classmethod
    def from_batch(cls, batch: Batch, budget: Budget) -> Self:
        """Lay out the tables once per message, and remove states without support."""
        model, topology = batch.model, batch.model.topology
        budget.check_cancelled()
        num_states = model.num_states[topology.variable_of]
        heads = topology.tail[topology.reverse]
        graph = StateGraph(
            start=topology.start,
            tail=topology.tail,
            reverse=topology.reverse,
            message_of_edge=topology.message_of_edge,
            state_start=offsets(num_states),
            entry_start=offsets(num_states[heads]),
            table_start=offsets(num_states[heads] * num_states[topology.tail]),
        )
        rows = ranges(model.unary.start[:-1][topology.variable_of], num_states)
        budget.check_cancelled(SECONDS_PER_ENTRY * int(graph.table_start[-1]))
        table = np.empty(graph.table_start[-1])
        for first, last in cut(0, model.num_edges, 1 + len(table) // PIECE):
            budget.check_cancelled()
            some = graph._replace(message_of_edge=graph.message_of_edge[first:last])
            fill_tables(model.pairwise.flat, model.pairwise.start[first:last], some, table)
        theta = batch.unary[rows]
        possible = theta > -np.inf
        budget.check_cancelled()
        hard, forwards = has_hard_zeros(table), True
        while hard and remove_unsupported(possible, graph, table, forwards):
            budget.check_cancelled()
            forwards = not forwards  # what follows from what along a path takes two passes, whichever way it runs
        empty = (states_left(possible, graph.state_start) == 0).any(axis=0)
        budget.check_cancelled()
        return cls(
            model=model,
            graph=graph,
            rows=rows,
            table=table,
            theta=np.where(possible, theta, -np.inf),
            constant=np.where(empty, -np.inf, model.constant),
        )

    @property
    def topology(self) -> Topology:
        return self.model.topology

    def in_variable_order(self, rows: Floats) -> Floats:
        """(S, B) reorder rows from slot order to the order of the variables."""
        out = np.empty_like(rows)
        out[self.rows] = rows
        return out


@dataclass(frozen=True, eq=False, kw_only=True)
class FactorLayout(BatchLayout):
    """Lanes of a model with factors of any size, for mean field.

    States that cannot be are ruled out as in the pairwise equivalent.

    Attributes
    ----------
    pairwise
        The equivalent, of all lanes that there were; None without hard zeros, from which alone more states follow that
        cannot be: it is many times as large as the model.
    graph, table
        Edges and larger factors alike, as `_kernels.approximations.mean_field.factors` has them.
    theta
        (S, B) log unary potentials in variable order; -inf where the state is ruled out.
    """

    pairwise: TableLayout | None
    graph: FactorGraph
    table: Floats

    @classmethod
    def from_batch(cls, batch: Batch, budget: Budget) -> Self:
        """Lay out edges and larger factors alike, and rule out states as in the pairwise equivalent."""
        model, larger = batch.model, batch.model.factors
        budget.check_cancelled()
        pairwise, theta, table = None, batch.unary, np.concatenate([model.pairwise.flat, larger.flat])
        constant = np.where((batch.num_possible == 0).any(axis=0), -np.inf, model.constant)
        if has_hard_zeros(table):
            pairwise = TableLayout.from_batch(Equivalent.of(model, budget).batch(batch), budget)
            theta, constant = pairwise.in_variable_order(pairwise.theta)[: len(theta)], pairwise.constant
        budget.check_cancelled()
        m = model.num_edges
        variables = np.concatenate([model.edges.ravel(), larger.variables]).astype(np.int64)
        scope_start = np.concatenate([2 * np.arange(m), 2 * m + larger.scope_start])
        factor = np.repeat(np.arange(m + len(larger)), np.diff(scope_start))
        order = np.argsort(variables, kind="stable")
        graph = FactorGraph(
            state_start=model.unary.start,
            scope_start=scope_start,
            variables=variables,
            table_start=np.concatenate([model.pairwise.start[:-1], len(model.pairwise.flat) + larger.start]),
            at=offsets(np.bincount(variables, minlength=model.num_variables)),
            factor=factor[order],
            place=(np.arange(len(variables)) - scope_start[factor])[order],
        )
        return cls(pairwise=pairwise, graph=graph, table=table, theta=theta, constant=constant)

    @property
    def rows(self) -> Integers:
        """(S,) return the row of the model's unary potentials that each row here comes from."""
        return np.arange(len(self.theta))

    def in_variable_order(self, rows: Floats) -> Floats:
        return rows


PairLayout = BinaryLayout | TableLayout


def layout_of(batch: Batch, budget: Budget) -> PairLayout:
    """Lay a batch out in log-odds where its model allows it, else in tables; raises Cancelled where that takes too
    long."""
    form = batch.model.pair_form
    budget.check_cancelled()
    if form is None:
        return TableLayout.from_batch(batch, budget)
    return BinaryLayout.from_batch(batch, form, budget)
