"""A search taken up from the arrays of a checkpoint, all of which are checked before they are used.

The arrays may be anybody's: sizes, indices, states and bounds are held against the model and against each other, and
what they would take against the memory allowed.
"""

import itertools
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from clampz.bounding.bracket import Point
from clampz.bounding.checkpoints.file import CorruptFileError
from clampz.bounding.checkpoints.schema import SavedSearch, digest
from clampz.bounding.leaves.mini_bucket_bounds import MiniBucketBounds, Shape, WarmStart
from clampz.bounding.options import LARGEST_LIMIT, BoundOptions
from clampz.bounding.tree.branch_and_bound import BranchAndBound
from clampz.bounding.tree.frontier import NODE_BYTES
from clampz.bounding.tree.nodes import Node, Submodel
from clampz.model import Model
from clampz.model.checks import LARGEST_POTENTIAL, as_log_potentials
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers
from clampz.runtime.seeds import LARGEST_SEED

# Bytes that a tree may take beyond `memory`, and those of a submodel beside its arrays.
SPARE_BYTES, SUBMODEL_BYTES = 50_000_000, 10_000
# Rounding may take a probability so far beyond 1.
ROUNDING = 1e-6

Number = TypeVar("Number", bound=np.generic)


def restore(model: Model, options: BoundOptions, kept: SavedSearch) -> BranchAndBound:
    """The search of this model that is kept; `CorruptFileError` or `ModelError` if there cannot be such a one."""
    if kept.model.tobytes() != digest(model):
        raise CorruptFileError(f"expected one of this model, {model}, found one of another")
    most = options.num_bytes + SPARE_BYTES
    needed = sum(each.nbytes for each in kept) + NODE_BYTES * len(kept.parent) + SUBMODEL_BYTES * len(kept.max_table)
    if needed > most:
        raise CorruptFileError(f"expected a tree of at most {most:,} bytes, as memory= allows, found one of {needed:,}")
    _expect(kept.simplified.tolist() in ([0], [1]), "to be told whether the model was simplified")
    search = BranchAndBound(model, options, simplified=bool(kept.simplified[0]))
    submodels = _submodels(kept, search.frontier.root.submodel, options.worker_bytes)
    nodes = _nodes(kept, submodels, _states(kept, submodels))
    _check_trace(kept)
    columns = kept.trace_seconds, kept.trace_lower, kept.trace_upper, kept.trace_leaves
    search.trace = [Point(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]
    search.seconds_before = search.trace[-1].seconds
    search.frontier.go_on_from(nodes)
    return search


def _expect(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise CorruptFileError(f"expected {what}, found a file that bound() has not left so")


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


def _submodels(kept: SavedSearch, root: Submodel, most_bytes: float) -> list[Submodel]:
    """All submodels, the root's first, whose model is there already."""
    numbers = kept.first_limit, kept.max_table, kept.seed, kept.below_limit, kept.below_seed, kept.too_wide
    _same_length(*numbers, kept.num_main, kept.num_labels)
    _expect(len(kept.max_table) == len(kept.num_variables) + 1, "a model for every submodel but the first")
    for limits in (kept.first_limit, kept.max_table, kept.below_limit):
        _expect(((limits == 0) | ((limits >= 2) & (limits <= LARGEST_LIMIT))).all(), "limits of regions")
    _expect(((kept.max_table == 0) == (kept.below_limit == 0)).all(), "regions of both ends")
    for seeds in (kept.seed, kept.below_seed):
        _expect(((seeds >= 0) & (seeds <= LARGEST_SEED)).all(), "seeds of at most 62 bits")
    _expect((kept.too_wide >= -3).all(), "clamps that are not negative")
    models = list(_models(kept))
    out = [
        root,
        *(Submodel(model, int(max_table)) for model, max_table in zip(models, kept.first_limit[1:], strict=True)),
    ]
    main, labels = _Pieces(kept.main, "main cliques"), _Pieces(kept.labels, "labels")
    for k, submodel in enumerate(out):
        submodel.too_wide, n = int(kept.too_wide[k]), submodel.model.num_variables
        sizes = int(kept.num_main[k]), int(kept.num_labels[k])
        _expect(set(sizes) <= {0, n} and (kept.max_table[k] > 0 or sizes == (0, 0)), "regions of all variables")
        if kept.max_table[k]:
            above = Shape(int(kept.max_table[k]), int(kept.seed[k]))
            below = Shape(int(kept.below_limit[k]), int(kept.below_seed[k]))
            own = main.take(sizes[0]), labels.take(sizes[1])
            _expect((own[0] >= 0).all(), "main cliques that are there")
            _expect(((own[1] >= 0) & (own[1] < n)).all(), "labels of parts that are there")
            _expect(np.bincount(own[1]).all(), "parts that have variables")
            submodel.ladder.end_with(MiniBucketBounds(submodel.model, above, below, most_bytes, *own))
    main.end()
    labels.end()
    return out


def _models(kept: SavedSearch) -> Iterator[Model]:
    _same_length(kept.num_variables, kept.num_edges, kept.num_factors, kept.constant)
    _expect((np.abs(kept.constant) <= LARGEST_POTENTIAL).all(), "constants in the range of potentials")
    num_states, unary = _Pieces(kept.num_states, "variables"), _Pieces(kept.unary, "unary potentials")
    edges, pairwise = _Pieces(kept.edges, "edges"), _Pieces(kept.pairwise, "pairwise potentials")
    num_scope, scopes, larger = (
        _Pieces(kept.num_scope, "factors"),
        _Pieces(kept.scopes, "scopes"),
        _Pieces(kept.tables, "potentials of factors"),
    )
    counts = kept.num_variables.tolist(), kept.num_edges.tolist(), kept.num_factors.tolist(), kept.constant
    for n, m, f, constant in zip(*counts, strict=True):
        _expect(n >= 1, "a variable in every submodel")
        states, pairs = num_states.take(n), edges.take(2 * m).reshape(-1, 2)
        _expect(((pairs >= 0) & (pairs < n)).all(), "edges between variables that are there")
        sizes = states.astype(np.float64)  # a product of forged sizes does not overflow
        tables = unary.take(sizes.sum()), pairwise.take(sizes[pairs].prod(axis=1).sum())
        model = Model.from_flat(states, tables[0], pairs, tables[1], constant=constant)
        _expect(np.array_equal(model.edges, pairs), "edges in order, each once")
        arity = num_scope.take(f)
        _expect((arity >= 3).all(), "larger factors of three variables and more")
        inside, begin = scopes.take(arity.sum(dtype=np.float64)), offsets(arity)
        _expect(((inside >= 0) & (inside < n)).all(), "factors of variables that are there")
        rising = np.diff(inside) > 0
        rising[begin[1:-1] - 1] = True
        _expect(rising.all(), "the variables of a factor in order, each once")
        flat = larger.take(np.multiply.reduceat(sizes[inside], begin[:-1]).sum() if f else 0)
        factors = FactorTables(model.num_states, begin, inside, as_log_potentials(flat, "factors"))
        yield Model.from_contents(model.contents._replace(factors=factors))
    for pieces in (num_states, unary, edges, pairwise, num_scope, scopes, larger):
        pieces.end()


def _states(kept: SavedSearch, submodels: list[Submodel]) -> list[WarmStart]:
    """Where bounds have got to: probabilities, losses, and finite shifts and weights."""
    _expect(len(kept.sizes) == 5 * len(kept.state_submodel), "five arrays of every state")
    _indices(kept.state_submodel, len(submodels), "submodels")
    values = _Pieces(kept.values, "marginals")
    out = []
    for submodel, sizes in zip(kept.state_submodel.tolist(), kept.sizes.reshape(-1, 5).tolist(), strict=True):
        model = submodels[submodel].model
        rows, n = len(model.unary.flat), model.num_variables
        _expect(sizes[:2] == [rows, rows] and sizes[2] in (0, n), "numbers for every variable")
        state = WarmStart(*(values.take(size) for size in sizes))
        for each in (state.marginals, state.beliefs):
            _expect(((each >= 0) & (each <= 1 + ROUNDING)).all(), "marginals between 0 and 1")
        for each in (state.loss, state.above, state.below):
            _expect(np.isfinite(each).all(), "finite shifts")  # whatever they are, bounds hold
        out.append(state)
    values.end()
    return out


def _nodes(kept: SavedSearch, submodels: list[Submodel], states: list[WarmStart]) -> list[Node]:
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


def _clamps(kept: SavedSearch, submodels: list[Submodel]) -> Iterator[tuple[tuple[int, tuple[int, ...]], ...]]:
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


def _check_trace(kept: SavedSearch) -> None:
    """Brackets, each within the one before, and none that what is kept contradicts."""
    seconds, lower, upper = kept.trace_seconds, kept.trace_lower, kept.trace_upper
    _same_length(seconds, lower, upper, kept.trace_leaves)
    _expect(len(seconds) >= 1 and (kept.trace_leaves >= 1).all(), "brackets with leaves")
    _expect(np.isfinite(seconds).all() and seconds[0] >= 0 and (np.diff(seconds) >= 0).all(), "seconds in order")
    _check_bounds(lower, upper)
    _expect((lower[1:] >= lower[:-1]).all() and (upper[1:] <= upper[:-1]).all(), "brackets within each other")
    _expect(max(lower[-1], kept.lower[0]) <= min(upper[-1], kept.upper[0]), "bounds that do not contradict each other")


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
