"""Clique tables: a structure with a model's tables added up, as the kernels want them; what all lanes share."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.mini_buckets import clique_tables as setup
from clampz._kernels.mini_buckets import links as mini_buckets_links
from clampz._kernels.mini_buckets.layout import CliqueLayout, Pass, Places
from clampz.approximations.layouts import PIECE
from clampz.approximations.mini_buckets.structure import KEPT_ENTRIES, Structure
from clampz.model.model import Model
from clampz.model.tables import has_hard_zeros, offsets, read_only
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget, Cancelled, run_cancellable

# Entries that the innermost loops run over: in the first cache with what they are added to.
BLOCK = 256
# Seconds that adding a table of the model's takes, or a link; and an entry of the cliques' tables, in memory that is
# touched for the first time.
SECONDS_PER_TABLE, SECONDS_PER_ENTRY = 1e-7, 1e-9
TableGroup = tuple[Integers, Integers, Integers, Integers, Floats]

# Roundings of a clique's table beside one for each table that is added up in it.
MORE_ROUNDINGS = 8.0


@dataclass(frozen=True, eq=False)
class Tables:
    """The clique tables of a model: edges and factors added up in cliques, to which lanes add their unary tables.

    Attributes
    ----------
    roundings
        (C,) of each clique's table, with unary tables, messages and shifts.
    """

    model: Model
    structure: Structure
    layout: CliqueLayout
    roundings: Floats
    _kept: tuple[Floats, Floats] | None = None

    @classmethod
    def of(cls, model: Model, structure: Structure, budget: Budget) -> "Tables":
        """Lay out the tables; raises Cancelled where the budget is over first."""
        layout = _layout(structure, model.num_states, budget)
        num_tables = np.diff(layout.link_start)
        for cliques in (structure.unary_clique, structure.edge_clique, structure.factor_clique):
            num_tables += np.bincount(cliques, minlength=len(num_tables))
        tables = cls(model, structure, layout, num_tables + MORE_ROUNDINGS)
        if structure.num_entries > KEPT_ENTRIES:
            return tables
        return replace(tables, _kept=tables._of_edges_and_factors(budget))

    def lane(self, unary: Floats, main: Integers, budget: Budget) -> tuple[Floats, Floats]:
        """Make the tables of the lane with these unary ones, its own to write into. Returns theta, the cliques' tables
        end to end, and (C,) the sizes of their absolute terms; for a lower bound with these main cliques, or an upper
        one (-1). Raises Cancelled where the budget is over first."""
        if self._kept is None:
            theta, size = self._of_edges_and_factors(budget)
        else:
            theta, size = _copied(self._kept[0], budget), self._kept[1].copy()
        structure, one = self.structure, np.arange(self.model.num_variables + 1)
        tables = _group(structure.unary_clique, one, one[:-1], self.model.unary.start, unary)
        self._add(tables, theta, size, budget)
        *_, start, unary = tables
        setup.rule_out(unary, start, structure.order, structure.bucket_start, structure.table_start, main, theta)
        return theta, size

    def _of_edges_and_factors(self, budget: Budget) -> tuple[Floats, Floats]:
        """Make theta and sizes, unary tables left out."""
        theta, size = np.zeros(self.structure.num_entries), np.zeros(self.structure.num_cliques)
        for tables in _edges_and_factors(self.model, self.structure):
            self._add(tables, theta, size, budget)
        return theta, size

    def _add(self, tables: TableGroup, theta: Floats, size: Floats, budget: Budget) -> None:
        """Add tables of the model to those of the cliques."""
        expected = SECONDS_PER_TABLE * len(tables[0]) + SECONDS_PER_ENTRY * len(theta)
        arguments = (*tables, *self._cliques, theta, size, _scratch(self.layout))
        if not run_cancellable(budget, expected, setup.add_tables, *arguments):
            raise Cancelled

    def marginals(self, beliefs: Floats) -> tuple[Floats, Floats]:
        """Sum the beliefs of cliques to marginals of the model's edges and larger factors."""
        found = []
        for *scopes, start, flat in _edges_and_factors(self.model, self.structure):
            out = np.zeros_like(flat)
            setup.sum_tables(*scopes, start, out, *self._cliques, beliefs, _scratch(self.layout))
            whole = np.add.reduceat(out, start[:-1]) if len(out) else out
            found.append(out / np.repeat(whole, np.diff(start)))
        return found[0], found[1]

    @property
    def _cliques(self) -> tuple[Integers, ...]:
        """Return where the variables and the table of each clique are, as kernels take them."""
        structure = self.structure
        return _closed(self.model.num_states), structure.scope_start, structure.scope, structure.table_start

    def new_pass(self, num_lanes: int = 1) -> Pass:
        """Allocate the arrays of passes over one lane, or several side by side."""
        structure, layout = self.structure, self.layout

        def room(size: int) -> Floats:
            return np.zeros(size * num_lanes)

        def later(size: int) -> Floats:
            return np.empty(size * num_lanes)  # large, and written before it is read

        num_cliques, num_message = structure.num_cliques, int(layout.message_start[-1])
        return Pass(
            each=(0.0,) if num_lanes == 1 else room(1),
            table=later(structure.num_entries),
            message=later(num_message),
            entropy=later(num_message),
            peak=room(num_cliques),
            spread=room(num_cliques),
            weight=np.ones(num_cliques * num_lanes),
            clique_entropy=room(num_cliques),
            shift_size=room(len(layout.shift_start) - 1),
            value=room(1),
            error=room(1),
            lost=room(1),
            sizes=room(1),
            largest=room(1),
            spare=np.zeros((2, num_lanes)),
            scratch=_scratch(layout, num_lanes),
        )


def has_zeros(model: Model) -> bool:
    """Whether tables of edges or factors have hard zeros, which leave nothing of most lower bounds."""
    return has_hard_zeros(model.pairwise.flat) or has_hard_zeros(model.factors.flat)


def _group(clique: Integers, *arrays: NDArray[Any]) -> TableGroup:
    """Return tables of the model: the clique of each, where its scope begins, scopes, where it begins, and tables."""
    scope_start, variables, start, flat = map(_closed, arrays)
    return clique, scope_start, variables, start, flat


def _edges_and_factors(model: Model, structure: Structure) -> list[TableGroup]:
    """Return the tables of edges, and those of larger factors."""
    pairs, edges = np.arange(0, 2 * model.num_edges + 1, 2), model.edges.astype(np.int64).ravel()
    factors = model.factors
    return [
        _group(structure.edge_clique, pairs, edges, model.pairwise.start, model.pairwise.flat),
        _group(structure.factor_clique, factors.scope_start, factors.variables, factors.start, factors.flat),
    ]


def _closed(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array contiguous and read-only, as kernels are compiled for what is a model's."""
    return read_only(np.ascontiguousarray(array).view())


def _copied(flat: Floats, budget: Budget) -> Floats:
    """Copy piece by piece: a machine may be slow to give new memory, and what NumPy does cannot be stopped."""
    out = np.empty_like(flat)
    for begin in range(0, len(flat), PIECE):
        if begin:
            budget.check_stop()
        out[begin : begin + PIECE] = flat[begin : begin + PIECE]
    return out


def _scratch(layout: CliqueLayout, num_lanes: int = 1) -> mini_buckets_links.LinkScratch:
    """Allocate the working memory of links, blocks and matching."""
    most_axes = int(np.diff(layout.scope_start).max(initial=0))
    block, whole = max(BLOCK, int(layout.sizes.max(initial=1))), max(1, BLOCK // num_lanes) * num_lanes
    return mini_buckets_links.LinkScratch(
        axes=np.zeros((4, most_axes), dtype=np.int64),
        block=np.zeros(block * num_lanes),
        places=np.zeros(block, dtype=np.uint64),
        total=np.zeros(whole),
        tile=np.zeros((2, whole)),
        zeros=np.zeros(num_lanes),
        own=np.zeros((2, most_axes), dtype=layout.sizes.dtype),
        shift=np.zeros((3, int(np.diff(layout.shift_start).max(initial=0)) * num_lanes)),
    )


def _layout(structure: Structure, num_states: Integers, budget: Budget) -> CliqueLayout:
    """Lay out the links of every clique: messages of its children first, then shifts in the order of their numbers."""
    num_cliques, parent = len(structure.parent), structure.parent
    small = _places(structure)
    sizes: Places = num_states[structure.scope].astype(small)
    start = np.zeros(num_cliques + 1, dtype=np.int64)
    for cliques in (parent[parent >= 0], structure.pair_left, structure.pair_right):
        start[1:] += np.bincount(cliques, minlength=num_cliques)
    stride_start = offsets(start[1:] * np.diff(structure.scope_start))
    np.cumsum(start, out=start)
    budget.check_stop()
    links = setup.Links(
        start[:-1].copy(),
        start,
        np.empty(start[-1], dtype=np.int8),
        np.empty(start[-1], dtype=small),
        stride_start,
        np.empty(stride_start[-1], dtype=small),
    )
    pairs = structure.pair_left, structure.pair_right, structure.pair_scope_start, structure.pair_scope
    scopes, expected = (structure.scope_start, structure.scope), SECONDS_PER_TABLE * len(links.of)
    strange = run_cancellable(budget, expected, setup.fill_links, parent, *pairs, _closed(num_states), *scopes, links)
    if strange < -1:
        raise Cancelled
    if strange >= 0:
        raise AssertionError(f"clique {strange} lacks a variable of what is added to it")
    return CliqueLayout(
        bucket_start=structure.bucket_start,
        pair_start=np.searchsorted(structure.pair_left, structure.bucket_start),
        scope_start=structure.scope_start,
        sizes=sizes,
        table_start=structure.table_start,
        message_start=offsets(np.diff(structure.table_start) // sizes[structure.scope_start[:-1]]),
        parent=parent,
        link_start=start,
        link_kind=links.kind,
        link_of=links.of,
        stride_start=stride_start,
        strides=links.strides,
        pair_left=structure.pair_left,
        pair_right=structure.pair_right,
        shift_start=structure.shift_start,
    )


def _places(structure: Structure) -> Any:
    """Choose the integer type that places in one table, cliques and shifts fit in."""
    largest = max(int(np.diff(structure.table_start).max(initial=0)), len(structure.parent), len(structure.pair_left))
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64
