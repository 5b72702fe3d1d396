"""A structure and a model's tables as the kernels want them; what all lanes share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clampz._kernels import mini_buckets_links, mini_buckets_setup
from clampz._kernels.mini_buckets_layout import ADDED, MESSAGE, SUBTRACTED, CliqueLayout, Pass
from clampz.mini_buckets.structure import Structure
from clampz.model.model import Model
from clampz.model.tables import offsets, ranges, read_only
from clampz.numerics import Floats, Integers
from clampz.watch import UNLIMITED, Watch

# Entries that the innermost loops run over: in the first cache with what they are added to.
BLOCK = 256
# Entries that are copied between two looks at the clock.
PIECE = 2**20
# Steps remembered by a state that is optimised.
MEMORY = 10
# Roundings of a clique's table beside one for each table that is added up in it.
MORE_ROUNDINGS = 8.0


@dataclass(frozen=True, eq=False)
class Tables:
    """Of a model in a structure: edges and factors added up in cliques, to which lanes add their unary tables.

    Attributes
    ----------
    theta
        The cliques' tables end to end, unary tables left out.
    size
        (C,) what the absolute terms of each add up to at most.
    roundings
        (C,) of each clique's table, with unary tables, messages and shifts.
    """

    model: Model
    structure: Structure
    layout: CliqueLayout
    theta: Floats
    size: Floats
    roundings: Floats

    @classmethod
    def of(cls, model: Model, structure: Structure) -> "Tables":
        layout = _layout(structure, model.num_states)
        theta, size = np.zeros(int(layout.table_start[-1])), np.zeros(len(layout.parent))
        scratch = _scratch(layout)
        for clique, scope_start, variables, start, flat in _edges_and_factors(model, structure):
            _add(structure, model, clique, scope_start, variables, start, flat, theta, size, scratch)
        added = np.concatenate([structure.unary_clique, structure.edge_clique, structure.factor_clique])
        num_tables = np.bincount(added, minlength=len(size)) + np.diff(layout.link_start)
        return cls(model, structure, layout, theta, size, num_tables.astype(np.float64) + MORE_ROUNDINGS)

    def lane(self, unary: Floats, main: Integers, watch: Watch = UNLIMITED) -> tuple[Floats, Floats]:
        """theta and size of the lane with these unary tables, its own to write into; for a lower bound with these main
        cliques, or for an upper one (-1).  Overdue where the watch is over first."""
        theta, size = _copied(self.theta, watch), self.size.copy()
        unary, n = _closed(unary), self.model.num_variables
        one, start = np.arange(n + 1), _closed(self.model.unary.start)
        clique, scratch = self.structure.unary_clique, _scratch(self.layout)
        _add(self.structure, self.model, clique, one, one[:n], start, unary, theta, size, scratch)
        structure = self.structure
        mini_buckets_setup.rule_out(
            unary, start, structure.order, structure.bucket_start, structure.table_start, main, theta
        )
        return theta, size

    def marginals(self, beliefs: Floats) -> tuple[Floats, Floats]:
        """Those of the model's edges and of its larger factors, each from the beliefs of the clique that it is in."""
        structure, found = self.structure, []
        for clique, scope_start, variables, start, flat in _edges_and_factors(self.model, structure):
            out = np.zeros_like(flat)
            mini_buckets_setup.sum_tables(
                clique,
                _closed(scope_start),
                _closed(variables),
                _closed(start),
                out,
                _closed(self.model.num_states),
                structure.scope_start,
                structure.scope,
                structure.table_start,
                beliefs,
                _scratch(self.layout),
            )
            whole = np.add.reduceat(out, start[:-1]) if len(out) else out
            found.append(out / np.repeat(whole, np.diff(start)))
        return found[0], found[1]

    @property
    def num_shift_entries(self) -> int:
        return int(self.layout.shift_start[-1])

    def new_pass(self) -> Pass:
        """Room for the passes over one lane."""
        num_cliques, num_message = len(self.layout.parent), int(self.layout.message_start[-1])
        return Pass(
            table=np.empty_like(self.theta),
            message=np.empty(num_message),
            entropy=np.empty(num_message),
            peak=np.zeros(num_cliques),
            spread=np.zeros(num_cliques),
            weight=np.ones(num_cliques),
            clique_entropy=np.zeros(num_cliques),
            scratch=_scratch(self.layout),
        )


def num_bytes(structure: Structure, num_states: Integers, num_lanes: int, num_at_once: int) -> int:
    """What so many states (sides of lanes) of a structure take, some of them at work at once, before any of it is
    taken."""
    num_cliques, num_entries = len(structure.parent), int(structure.table_start[-1])
    sizes = np.diff(structure.table_start)
    num_message = int((sizes // num_states[structure.scope[structure.scope_start[:-1]]]).sum())
    num_numbers = int(structure.shift_start[-1]) + num_cliques
    arity = np.diff(structure.scope_start)
    children = structure.parent[structure.parent >= 0]
    num_strides = int(sum(arity[of].sum() for of in (children, structure.pair_left, structure.pair_right)))
    num_links = len(children) + 2 * len(structure.pair_left)
    shared = num_entries + 2 * num_strides + 12 * num_links + len(structure.scope) + 6 * num_cliques
    lane = num_entries + (2 * MEMORY + 2) * num_numbers + num_cliques + len(structure.order)
    at_work = num_entries + 2 * num_message + 3 * num_numbers + 4 * num_cliques
    return 8 * (shared + num_lanes * lane + num_at_once * at_work)


def has_zeros(model: Model) -> bool:
    """Whether tables of edges or factors have hard zeros, which leave nothing of most lower bounds."""
    return bool((model.pairwise.flat == -np.inf).any() or (model.factors.flat == -np.inf).any())


def _edges_and_factors(
    model: Model, structure: Structure
) -> list[tuple[Integers, Integers, Integers, Integers, Floats]]:
    """Of edges, and of larger factors: the clique of each, their scopes end to end, and their tables."""
    pairs, edges = np.arange(0, 2 * model.num_edges + 1, 2), model.edges.astype(np.int64).ravel()
    factors = model.factors
    return [
        (structure.edge_clique, pairs, edges, model.pairwise.start, model.pairwise.flat),
        (structure.factor_clique, factors.scope_start, factors.variables, factors.start, factors.flat),
    ]


def _add(
    structure: Structure,
    model: Model,
    clique: Integers,
    scope_start: Integers,
    variables: Integers,
    start: Integers,
    flat: Floats,
    theta: Floats,
    size: Floats,
    scratch: mini_buckets_links.LinkScratch,
) -> None:
    mini_buckets_setup.add_tables(
        clique,
        _closed(scope_start),
        _closed(variables),
        _closed(start),
        _closed(flat),
        _closed(model.num_states),
        structure.scope_start,
        structure.scope,
        structure.table_start,
        theta,
        size,
        scratch,
    )


def _closed(array: NDArray[Any]) -> NDArray[Any]:
    """As kernels are compiled for what is a model's: contiguous, and closed to writing."""
    return read_only(np.ascontiguousarray(array).view())


def _copied(flat: Floats, watch: Watch) -> Floats:
    """A copy, piece by piece: a machine may be slow to give new memory, and what NumPy does cannot be stopped."""
    out = np.empty_like(flat)
    for begin in range(0, len(flat), PIECE):
        if begin:
            watch.check_stop()
        out[begin : begin + PIECE] = flat[begin : begin + PIECE]
    return out


def _scratch(layout: CliqueLayout) -> mini_buckets_links.LinkScratch:
    most_axes = int(np.diff(layout.scope_start).max(initial=0))
    block = max(BLOCK, int(layout.sizes.max(initial=1)))
    return mini_buckets_links.LinkScratch(
        axes=np.zeros((4, most_axes), dtype=np.int64),
        block=np.zeros(block),
        places=np.zeros(block, dtype=np.uint64),
        total=np.zeros(BLOCK),
    )


def _layout(structure: Structure, num_states: Integers) -> CliqueLayout:
    """Links of every clique, messages of its children first, then shifts in the order of their numbers."""
    num_cliques, num_pairs = len(structure.parent), len(structure.pair_left)
    arity = np.diff(structure.scope_start)
    sizes = num_states[structure.scope]
    message_size = np.diff(structure.table_start) // sizes[structure.scope_start[:-1]]
    children = np.flatnonzero(structure.parent >= 0)
    pairs = np.arange(num_pairs)
    clique = np.concatenate([structure.parent[children], structure.pair_left, structure.pair_right])
    kind = np.repeat([MESSAGE, ADDED, SUBTRACTED], [len(children), num_pairs, num_pairs])
    link_of = np.concatenate([children, pairs, pairs])
    small_begin = np.concatenate(
        [structure.scope_start[children] + 1, *[len(structure.scope) + structure.pair_scope_start[:-1]] * 2]
    )
    small_arity = np.concatenate([arity[children] - 1, *[np.diff(structure.pair_scope_start)] * 2])
    by_clique = np.argsort(clique, kind="stable")
    clique, kind, link_of = clique[by_clique], kind[by_clique], link_of[by_clique]
    small = np.concatenate([structure.scope, structure.pair_scope])
    small = small[ranges(small_begin[by_clique], small_arity[by_clique])]
    stride_start = offsets(arity[clique])
    strides = np.empty(stride_start[-1], dtype=np.int64)
    strange = mini_buckets_setup.fill_strides(
        clique,
        offsets(small_arity[by_clique]),
        small,
        num_states,
        structure.scope_start,
        structure.scope,
        stride_start,
        strides,
    )
    if strange >= 0:
        raise AssertionError(f"clique {clique[strange]} lacks a variable of what is added to it")
    pair_links = np.empty((num_pairs, 2), dtype=np.int64)
    for side, sign in enumerate((ADDED, SUBTRACTED)):
        links = np.flatnonzero(kind == sign)
        pair_links[link_of[links], side] = links
    bucket = np.repeat(np.arange(len(structure.order)), np.diff(structure.bucket_start))
    bucket_of_pair = bucket[structure.pair_left]
    return CliqueLayout(
        bucket_start=structure.bucket_start,
        pair_start=offsets(np.bincount(bucket_of_pair, minlength=len(structure.order))),
        pairs=np.argsort(bucket_of_pair, kind="stable"),
        scope_start=structure.scope_start,
        sizes=sizes,
        table_start=structure.table_start,
        message_start=offsets(message_size),
        parent=structure.parent,
        link_start=offsets(np.bincount(clique, minlength=num_cliques)),
        link_kind=kind,
        link_of=link_of,
        stride_start=stride_start,
        strides=strides,
        pair_links=pair_links,
        shift_start=structure.shift_start,
    )
