"""A search restored from the arrays of a checkpoint, all of which are checked before they are used.

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
from clampz.bounding.options import LARGEST_TABLE, BoundOptions
from clampz.bounding.problem import Problem
from clampz.bounding.tree.frontier import NODE_BYTES
from clampz.bounding.tree.nodes import Node, Submodel
from clampz.model import Model
from clampz.model.checks import LARGEST_POTENTIAL, as_log_potentials
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets
from clampz.numerics import Floats, Integers
from clampz.portfolio.problem import ENDS, Gain
from clampz.runtime.seeds import LARGEST_SEED

# Bytes that a tree may take beyond `memory`, and those of a submodel beside its arrays.
SPARE_BYTES, SUBMODEL_BYTES = 50_000_000, 10_000
# Characters of the name of a strategy.
LONGEST_NAME = 100
# What rounding may take a probability beyond 1.
ROUNDING = 1e-6

Number = TypeVar("Number", bound=np.generic)


def restore(model: Model, options: BoundOptions, saved: SavedSearch) -> Problem:
    """Restore the search of this model; `CorruptFileError` or `ModelError` if there cannot be such a one."""
    if saved.model.tobytes() != digest(model):
        raise CorruptFileError(f"expected one of this model, {model}, found one of another")
    most = options.num_bytes + SPARE_BYTES
    needed = sum(each.nbytes for each in saved) + NODE_BYTES * len(saved.parent) + SUBMODEL_BYTES * len(saved.max_table)
    if needed > most:
        raise CorruptFileError(f"expected a tree of at most {most:,} bytes, as memory= allows, found one of {needed:,}")
    _expect(saved.simplified.tolist() in ([0], [1]), "to be told whether the model was simplified")
    problem = Problem(model, options, simplified=bool(saved.simplified[0]))
    submodels = _submodels(saved, problem.frontier.root.submodel, options.worker_bytes)
    nodes = _nodes(saved, submodels, _states(saved, submodels))
    _check_trace(saved)
    columns = saved.trace_seconds, saved.trace_lower, saved.trace_upper, saved.trace_leaves
    problem.trace = [Point(*point) for point in zip(*(column.tolist() for column in columns), strict=True)]
    problem.gains = _gains(saved)
    problem.seconds_before, problem.is_resumed = problem.trace[-1].seconds, True
    problem.frontier.restore(nodes)
    problem.tighten(problem.trace[-1].lower - problem.error, problem.trace[-1].upper + problem.error)
    return problem


def _expect(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise CorruptFileError(f"expected {what}, found a file that bound() has not left so")


class _Pieces(Generic[Number]):
    """An array that is taken piece by piece, to the end."""

    def __init__(self, array: NDArray[Number], what: str) -> None:
        self.array, self.what, self.begin = array, what, 0

    def take(self, size: float) -> NDArray[Number]:
        """Take the next `size` entries, as an array of their own."""
        _expect(0 <= size <= len(self.array) - self.begin, f"as many {self.what} as there should be")
        piece: NDArray[Number] = self.array[self.begin : self.begin + int(size)].copy()
        self.begin += len(piece)
        return piece

    def end(self) -> None:
        _expect(self.begin == len(self.array), f"no more {self.what} than there should be")


def _submodels(saved: SavedSearch, root: Submodel, most_bytes: float) -> list[Submodel]:
    """Restore all submodels, the root's first, whose model is there already."""
    numbers = (
        saved.first_max_table,
        saved.max_table,
        saved.seed,
        saved.below_max_table,
        saved.below_seed,
        saved.too_wide,
    )
    _same_length(*numbers, saved.num_main)
    _expect(len(saved.max_table) == len(saved.num_variables) + 1, "a model for every submodel but the first")
    for limits in (saved.first_max_table, saved.max_table, saved.below_max_table):
        _expect(((limits == 0) | ((limits >= 2) & (limits <= LARGEST_TABLE))).all(), "sizes of tables")
    _expect(((saved.max_table == 0) == (saved.below_max_table == 0)).all(), "mini-buckets of both ends")
    for seeds in (saved.seed, saved.below_seed):
        _expect(((seeds >= 0) & (seeds <= LARGEST_SEED)).all(), "seeds of at most 62 bits")
    _expect((saved.too_wide >= -3).all(), "clamps that are not negative")
    models = list(_models(saved))
    out = [
        root,
        *(Submodel(model, int(max_table)) for model, max_table in zip(models, saved.first_max_table[1:], strict=True)),
    ]
    main = _Pieces(saved.main, "main cliques")
    for k, submodel in enumerate(out):
        submodel.too_wide, size = int(saved.too_wide[k]), int(saved.num_main[k])
        expected = (0, submodel.model.num_variables) if saved.max_table[k] else (0,)
        _expect(size in expected, "mini-buckets of all variables")
        if saved.max_table[k]:
            above = Shape(int(saved.max_table[k]), int(saved.seed[k]))
            below = Shape(int(saved.below_max_table[k]), int(saved.below_seed[k]))
            own = main.take(size)
            _expect((own >= 0).all(), "main cliques that are there")
            submodel.halving.end_with(MiniBucketBounds(submodel.model, above, below, most_bytes, own))
    main.end()
    return out


def _models(saved: SavedSearch) -> Iterator[Model]:
    _same_length(saved.num_variables, saved.num_edges, saved.num_factors, saved.constant)
    _expect((np.abs(saved.constant) <= LARGEST_POTENTIAL).all(), "constants in the range of potentials")
    num_states, unary = _Pieces(saved.num_states, "variables"), _Pieces(saved.unary, "unary potentials")
    edges, pairwise = _Pieces(saved.edges, "edges"), _Pieces(saved.pairwise, "pairwise potentials")
    num_scope, scopes, larger = (
        _Pieces(saved.num_scope, "factors"),
        _Pieces(saved.scopes, "scopes"),
        _Pieces(saved.tables, "potentials of factors"),
    )
    counts = saved.num_variables.tolist(), saved.num_edges.tolist(), saved.num_factors.tolist(), saved.constant
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


def _states(saved: SavedSearch, submodels: list[Submodel]) -> list[WarmStart]:
    """Restore warm starts: probabilities, losses, and finite shifts and weights."""
    _expect(len(saved.sizes) == 4 * len(saved.state_submodel), "four arrays of every state")
    _indices(saved.state_submodel, len(submodels), "submodels")
    values = _Pieces(saved.values, "marginals")
    out = []
    for submodel, sizes in zip(saved.state_submodel.tolist(), saved.sizes.reshape(-1, 4).tolist(), strict=True):
        model = submodels[submodel].model
        fits = sizes[0] == len(model.unary.flat) and sizes[1] in (0, model.num_variables)
        _expect(fits, "numbers for every variable")
        state = WarmStart(*(values.take(size) for size in sizes))
        _expect(((state.beliefs >= 0) & (state.beliefs <= 1 + ROUNDING)).all(), "marginals between 0 and 1")
        for each in state.arrays[1:]:
            _expect(np.isfinite(each).all(), "finite shifts")  # whatever they are, bounds hold
        out.append(state)
    values.end()
    return out


def _nodes(saved: SavedSearch, submodels: list[Submodel], states: list[WarmStart]) -> list[Node]:
    """Restore the tree, node by node, parents first."""
    parent, submodel, state = saved.parent, saved.submodel, saved.state
    is_and, closed = _flags(saved.is_and), _flags(saved.closed)
    _same_length(parent, submodel, state, saved.lower, saved.upper, saved.other, is_and, closed, saved.num_clamps)
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
    _expect((saved.state_submodel[state[has]] == submodel[has]).all(), "states of the submodel of their node")
    _check_bounds(saved.lower, saved.upper)
    _expect(np.isfinite(saved.other).all(), "finite bounds on what a node is multiplied with")
    columns = parent, submodel, state, saved.lower, saved.upper, saved.other, is_and, closed
    out: list[Node] = []
    rows = zip(*(column.tolist() for column in columns), _clamps(saved, submodels), strict=True)
    for up, of, at, lower, upper, other, split, done, clamps in rows:
        node = Node(out[up] if out else None, submodels[of], clamps, lower, upper)
        node.other, node.is_and, node.closed = other, split, done
        node.state = states[at] if at >= 0 else None
        if node.parent is not None:
            node.parent.children.append(node)
        out.append(node)
    return out


def _clamps(saved: SavedSearch, submodels: list[Submodel]) -> Iterator[tuple[tuple[int, tuple[int, ...]], ...]]:
    """Yield the clamps of each node: states, smallest first, that its variables have.  Equal ones are one object."""
    variable, size, states = saved.clamp_variable, saved.clamp_size, saved.clamp_states
    _lengths(saved.num_clamps, len(variable), "clamps")
    _same_length(variable, size)
    _lengths(size, len(states), "states of clamps")
    owner = np.repeat(saved.submodel, saved.num_clamps)
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
    start = offsets(saved.num_clamps).tolist()
    for first, last in itertools.pairwise(start):
        yield tuple(shared.setdefault(pair, pair) for pair in pairs[first:last])


def _check_trace(saved: SavedSearch) -> None:
    """Refuse brackets that are not each within the one before, or that the tree contradicts."""
    seconds, lower, upper = saved.trace_seconds, saved.trace_lower, saved.trace_upper
    _same_length(seconds, lower, upper, saved.trace_leaves)
    _expect(len(seconds) >= 1 and (saved.trace_leaves >= 1).all(), "brackets with leaves")
    _expect(np.isfinite(seconds).all() and seconds[0] >= 0 and (np.diff(seconds) >= 0).all(), "seconds in order")
    _check_bounds(lower, upper)
    _expect((lower[1:] >= lower[:-1]).all() and (upper[1:] <= upper[:-1]).all(), "brackets within each other")
    _expect(max(lower[-1], saved.lower[0]) <= min(upper[-1], saved.upper[0]), "bounds that contradict nothing")


def _gains(saved: SavedSearch) -> list[Gain]:
    """Restore who moved which end when: ends that only ever came closer, no further than the brackets say."""
    seconds, before, after, is_upper = saved.gain_seconds, saved.gain_before, saved.gain_after, _flags(saved.gain_end)
    _same_length(seconds, saved.gain_strategy, is_upper, before, after)
    try:
        text = saved.strategies.tobytes().decode()
    except UnicodeDecodeError:
        raise CorruptFileError("expected names of strategies in UTF-8, found something else") from None
    names = text.split("\n")[:-1]
    _expect(text == "".join(f"{name}\n" for name in names), "a line for each strategy")
    _expect(all(name.isprintable() and len(name) <= LONGEST_NAME for name in names), "names of strategies")
    _indices(saved.gain_strategy, len(names), "strategies")
    _expect(np.isfinite(seconds).all() and (np.diff(seconds) >= 0).all(), "gains in order")
    _expect((seconds[:1] >= 0).all() and (seconds[-1:] <= saved.trace_seconds[-1]).all(), "gains within the run")
    _expect(np.where(is_upper, after < before, before < after).all(), "ends that came closer")
    _expect(((after >= saved.trace_lower[-1]) | ~is_upper).all(), "upper ends above the lower one")
    _expect(((after <= saved.trace_upper[-1]) | is_upper).all(), "lower ends below the upper one")
    columns = seconds, saved.gain_strategy, is_upper, before, after
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Gain(moment, names[strategy], ENDS[upper], old, new) for moment, strategy, upper, old, new in rows]


def _check_bounds(lower: Floats, upper: Floats) -> None:
    _expect(((lower <= upper) & (lower < np.inf)).all(), "lower bounds that are not above the upper ones")


def _same_length(*arrays: NDArray[Any]) -> None:
    _expect(len({len(array) for array in arrays}) == 1, "arrays of the same length")


def _indices(array: Integers, size: int, what: str) -> None:
    _expect(((array >= 0) & (array < size)).all(), f"{what} that are there")


def _lengths(sizes: Integers, total: int, what: str) -> None:
    """Refuse sizes of pieces that do not add up to the total."""
    _expect((sizes >= 0).all() and sizes.sum(dtype=np.float64) == total, f"as many {what} as there should be")


def _flags(values: NDArray[np.uint8]) -> NDArray[np.bool_]:
    _expect((values <= 1).all(), "what is true or false")
    return values.astype(np.bool_)
