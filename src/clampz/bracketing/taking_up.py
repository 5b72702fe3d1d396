"""A search taken up from the arrays of a checkpoint, all of which are checked before they are used.

The arrays may be anybody's: sizes, indices, states and bounds are held against the model and against each other, and
what they would take, narrow parts included, against the memory allowed.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from clampz.bracketing.bracket import Point
from clampz.bracketing.frontier import NODE_BYTES
from clampz.bracketing.kept import Kept, digest
from clampz.bracketing.narrow import MAX_SUBGRAPHS, Narrow, NarrowState
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.sealed import UnsoundError
from clampz.bracketing.search import Search
from clampz.bracketing.tree import Node, Submodel
from clampz.elimination.plans import Scopes
from clampz.model import Model
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers

# Bytes that a tree may take beyond `memory`, and those of a submodel beside its arrays.
SPARE_BYTES, SUBMODEL_BYTES = 50_000_000, 10_000
# Rounding may take a probability so far beyond 1.
ROUNDING = 1e-6

Number = TypeVar("Number", bound=np.generic)


def take_up(model: Model, options: BoundOptions, kept: Kept) -> Search:
    """The search of this model that is kept; `UnsoundError` or `ModelError` if there cannot be such a one."""
    if kept.model.tobytes() != digest(model):
        raise UnsoundError(f"expected one of this model, {model}, found one of another")
    most = options.num_bytes + SPARE_BYTES
    needed = sum(each.nbytes for each in kept) + NODE_BYTES * len(kept.parent) + SUBMODEL_BYTES * len(kept.gap)
    if needed > most:
        raise UnsoundError(f"expected a tree of at most {most:,} bytes, as memory= allows, found one of {needed:,}")
    _expect(kept.simplified.tolist() in ([0], [1]), "to be told whether the model was simplified")
    search = Search(model, options, simplified=bool(kept.simplified[0]))
    submodels = _submodels(kept, search.frontier.root.submodel, most / 8)
    nodes = _nodes(kept, submodels, _states(kept, submodels))
    _check_trace(kept)
    columns = kept.trace_seconds, kept.trace_lower, kept.trace_upper, kept.trace_leaves
    search.trace = [Point(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]
    search.seconds_before = search.trace[-1].seconds
    search.slack = float(kept.slack[0])
    search.frontier.go_on_from(nodes)
    return search


def _expect(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise UnsoundError(f"expected {what}, found a file that bound() has not left so")


class _Pieces(Generic[Number]):
    """An array that is taken piece by piece, to the end."""

    def __init__(self, array: NDArray[Number], what: str) -> None:
        self.array, self.what, self.begin = array, what, 0

    def take(self, size: float) -> NDArray[Number]:
        """The next so many, as an array of their own."""
        _expect(0 <= size <= len(self.array) - self.begin, f"as many {self.what} as there should be")
        piece: NDArray[Number] = self.array[self.begin : self.begin + int(size)].copy()
        self.begin += len(piece)
        return piece

    def end(self) -> None:
        _expect(self.begin == len(self.array), f"no more {self.what} than there should be")


def _submodels(kept: Kept, root: Submodel, most_entries: float) -> list[Submodel]:
    """All submodels, the root's first, whose model is there already; no narrow parts of theirs have more entries."""
    numbers = kept.first_limit, kept.gap, kept.tried, kept.narrow_limit
    _same_length(*numbers, kept.refined, kept.too_wide, kept.num_masks)
    _expect(len(kept.gap) == len(kept.num_variables) + 1, "a model for every submodel but the first")
    _expect(((kept.first_limit > 0) & (kept.first_limit <= most_entries)).all(), "narrow parts that fit in memory")
    _expect(((kept.narrow_limit >= 0) & (kept.narrow_limit <= most_entries)).all(), "narrow parts that fit in memory")
    _expect((np.isfinite(kept.tried) & (kept.tried >= kept.narrow_limit)).all(), "no limit beyond those tried")
    _expect((kept.gap >= 0).all() and (kept.too_wide >= -3).all(), "gaps and clamps that are not negative")
    out = [root, *map(Submodel, _models(kept))]
    labels, masks = _Pieces(kept.labels, "labels"), _Pieces(kept.masks, "masks")
    flags = _flags(kept.refined).tolist()
    for k, submodel in enumerate(out):
        submodel.first_limit, submodel.gap = float(kept.first_limit[k]), float(kept.gap[k])
        submodel.tried, submodel.refined = float(kept.tried[k]), flags[k]
        submodel.too_wide = int(kept.too_wide[k])
        if num_masks := int(kept.num_masks[k]):
            model = submodel.model
            _expect(0 < num_masks <= MAX_SUBGRAPHS + model.num_edges, "no more subgraphs than there are")
            chosen = [_flags(masks.take(model.num_edges)) for _ in range(num_masks)]
            submodel.narrow = Narrow(model, float(kept.narrow_limit[k]), labels.take(model.num_variables), chosen)
            _check_narrow(submodel.narrow, most_entries)
    labels.end()
    masks.end()
    return out


def _models(kept: Kept) -> Iterator[Model]:
    _same_length(kept.num_variables, kept.num_edges, kept.constant)
    _expect((np.abs(kept.constant) <= LARGEST_POTENTIAL).all(), "constants in the range of potentials")
    num_states, unary = _Pieces(kept.num_states, "variables"), _Pieces(kept.unary, "unary potentials")
    edges, pairwise = _Pieces(kept.edges, "edges"), _Pieces(kept.pairwise, "pairwise potentials")
    for n, m, constant in zip(kept.num_variables.tolist(), kept.num_edges.tolist(), kept.constant, strict=True):
        _expect(n >= 1, "a variable in every submodel")
        states, pairs = num_states.take(n), edges.take(2 * m).reshape(-1, 2)
        _expect(((pairs >= 0) & (pairs < n)).all(), "edges between variables that are there")
        sizes = states.astype(np.float64)  # a product of forged sizes does not overflow
        tables = unary.take(sizes.sum()), pairwise.take(sizes[pairs].prod(axis=1).sum())
        model = Model.from_flat(states, tables[0], pairs, tables[1], constant=constant)
        _expect(np.array_equal(model.edges, pairs), "edges in order, each once")
        yield model
    for pieces in (num_states, unary, edges, pairwise):
        pieces.end()


def _check_narrow(narrow: Narrow, most_entries: float) -> None:
    """Every part has a variable, every edge is in a subgraph, and all of them can be summed in memory."""
    model, labels = narrow.model, narrow.labels
    _expect(((labels >= 0) & (labels < model.num_variables)).all(), "labels of parts that are there")
    _expect(np.bincount(labels).all(), "parts that have variables")
    _expect(np.logical_or.reduce(narrow.masks).all(), "every edge in a subgraph")
    i, j = model.edges.T
    entries = 0.0
    for inside in (labels[i] == labels[j], *narrow.masks):
        entries += Scopes.of_pairwise(model.num_states, model.edges[inside]).order().total
        _expect(entries <= most_entries, "narrow parts that fit in memory")


def _states(kept: Kept, submodels: list[Submodel]) -> list[NarrowState]:
    """Where bounds have got to: probabilities, and finite shifts."""
    _same_length(kept.state_submodel, kept.num_shifts)
    _indices(kept.state_submodel, len(submodels), "submodels")
    values, sizes = _Pieces(kept.values, "marginals"), _Pieces(kept.shift_size, "shifts")
    out = []
    for submodel, num_shifts in zip(kept.state_submodel.tolist(), kept.num_shifts.tolist(), strict=True):
        rows = len(submodels[submodel].model.unary.flat)
        marginals, beliefs = values.take(rows), values.take(rows)
        for each in (marginals, beliefs):
            _expect(((each >= 0) & (each <= 1 + ROUNDING)).all(), "marginals between 0 and 1")
        shifts = [values.take(size) for size in sizes.take(num_shifts).tolist()]
        _expect(all(np.isfinite(shift).all() for shift in shifts), "finite shifts")
        out.append(NarrowState(marginals, beliefs, shifts))
    values.end()
    sizes.end()
    return out


def _nodes(kept: Kept, submodels: list[Submodel], states: list[NarrowState]) -> list[Node]:
    """The tree: node by node, parents first."""
    parent, submodel, state = kept.parent, kept.submodel, kept.state
    is_and, settled = _flags(kept.is_and), _flags(kept.settled)
    _same_length(parent, submodel, state, kept.lower, kept.upper, kept.other, is_and, settled, kept.num_clamps)
    _expect(len(parent) >= 1 and parent[0] == -1, "a tree with a root")
    above = parent[1:]
    _expect(((above >= 0) & (above <= np.arange(len(above)))).all(), "parents before their children")
    _expect((np.diff(above) >= 0).all(), "children side by side")
    _expect(np.bincount(above, minlength=len(parent))[is_and].all(), "components below what is split")
    _indices(submodel, len(submodels), "submodels")
    _expect(submodel[0] == 0, "the whole model at the root")
    _expect((is_and[above] | (submodel[1:] == submodel[above])).all(), "branches of the submodel of their parent")
    _expect(((state >= -1) & (state < len(states))).all(), "states that are there")
    has = state >= 0
    _expect((kept.state_submodel[state[has]] == submodel[has]).all(), "states of the submodel of their node")
    _check_bounds(kept.lower, kept.upper)
    _expect(np.isfinite(kept.other).all(), "finite bounds on what a node is multiplied with")
    columns = parent, submodel, state, kept.lower, kept.upper, kept.other, is_and, settled
    out: list[Node] = []
    rows = zip(*(column.tolist() for column in columns), _clamps(kept, submodels), strict=True)
    for up, of, at, lower, upper, other, split, done, clamps in rows:
        node = Node(out[up] if out else None, submodels[of], clamps, lower, upper)
        node.other, node.is_and, node.settled = other, split, done
        node.state = states[at] if at >= 0 else None
        if node.parent is not None:
            node.parent.children.append(node)
        out.append(node)
    return out


def _clamps(kept: Kept, submodels: list[Submodel]) -> Iterator[tuple[tuple[int, tuple[int, ...]], ...]]:
    """Those of each node in turn: states, smallest first, that its variables have.  Equal ones are one object."""
    variable, size, states = kept.clamp_variable, kept.clamp_size, kept.clamp_states
    _lengths(kept.num_clamps, len(variable), "clamps")
    _same_length(variable, size)
    _lengths(size, len(states), "states of clamps")
    owner = np.repeat(kept.submodel, kept.num_clamps)
    num_variables = np.array([submodel.model.num_variables for submodel in submodels])
    _expect(((variable >= 0) & (variable < num_variables[owner])).all(), "clamps of variables that are there")
    num_states = np.concatenate([submodel.model.num_states for submodel in submodels])
    most = num_states[offsets(num_variables)[owner] + variable]
    of = np.repeat(np.arange(len(size)), size)
    _expect((size >= 1).all() and ((states >= 0) & (states < most[of])).all(), "clamps to states that are there")
    _expect(((np.diff(states) > 0) | (np.diff(of) > 0)).all(), "the states of a clamp in order")
    shared: dict[tuple[int, tuple[int, ...]], tuple[int, tuple[int, ...]]] = {}
    flat, begin = states.tolist(), offsets(size).tolist()
    pairs = [(i, tuple(flat[begin[k] : begin[k + 1]])) for k, i in enumerate(variable.tolist())]
    start = offsets(kept.num_clamps).tolist()
    for first, last in itertools.pairwise(start):
        yield tuple(shared.setdefault(pair, pair) for pair in pairs[first:last])


def _check_trace(kept: Kept) -> None:
    """Brackets, each within the one before, and none that what is kept contradicts."""
    seconds, lower, upper = kept.trace_seconds, kept.trace_lower, kept.trace_upper
    _same_length(seconds, lower, upper, kept.trace_leaves)
    _expect(len(seconds) >= 1 and (kept.trace_leaves >= 1).all(), "brackets with leaves")
    _expect(np.isfinite(seconds).all() and seconds[0] >= 0 and (np.diff(seconds) >= 0).all(), "seconds in order")
    _check_bounds(lower, upper)
    _expect((lower[1:] >= lower[:-1]).all() and (upper[1:] <= upper[:-1]).all(), "brackets within each other")
    _expect(len(kept.slack) == 1 and 0 <= kept.slack[0] < math.inf, "what rounding may have changed")
    slack = kept.slack[0]
    low, high = max(lower[-1], kept.lower[0] - slack), min(upper[-1], kept.upper[0] + slack)
    _expect(low <= high, "bounds that do not contradict each other")


def _check_bounds(lower: Floats, upper: Floats) -> None:
    _expect(((lower <= upper) & (lower < np.inf)).all(), "lower bounds that are not above the upper ones")


def _same_length(*arrays: NDArray[Any]) -> None:
    _expect(len({len(array) for array in arrays}) == 1, "arrays of the same length")


def _indices(array: Integers, size: int, what: str) -> None:
    _expect(((array >= 0) & (array < size)).all(), f"{what} that are there")


def _lengths(sizes: Integers, total: int, what: str) -> None:
    """Sizes of pieces that make up all of so many."""
    _expect((sizes >= 0).all() and sizes.sum(dtype=np.float64) == total, f"as many {what} as there should be")


def _flags(values: NDArray[np.uint8]) -> NDArray[np.bool_]:
    _expect((values <= 1).all(), "what is true or false")
    return values.astype(np.bool_)
