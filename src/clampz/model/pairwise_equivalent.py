"""The pairwise model that a model with larger factors is equivalent to, exactly: for the methods that pass messages
along edges.

Each factor of three or more variables becomes an auxiliary variable, after the user's own, whose states are the rows of
its table that are not hard zeros; an edge to each variable of the scope allows the rows that agree with its state.
Edges inside a scope are folded into the factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clampz.model.batch import Batch
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.data import ModelData
from clampz.model.factors import FactorTables, table_sizes
from clampz.model.model import Model
from clampz.model.results import Estimate, Estimates
from clampz.model.tables import offsets, ranges
from clampz.numerics import EPS, Floats, Integers, largest_size
from clampz.runtime.budget import Budget

# Pairs of a variable's states and a factor's rows that are laid out at once.
PAIRS_AT_ONCE = 2**18
# Seconds, at least, that a method needs per entry of the tables until it has begun.
SECONDS_PER_ENTRY = 2e-8


class FactorRows(NamedTuple):
    """Rows of factors' tables that are no hard zeros: entries `entry[start[f] : start[f + 1]]` of factor f's table.
    Scopes and strides are as in `FactorTables`, and `num_states` those of the scopes' variables."""

    scope_start: Integers
    variables: Integers
    num_states: Integers
    strides: Integers
    start: Integers
    entry: Integers

    @classmethod
    def of(cls, factors: FactorTables, flat: Floats) -> "FactorRows":
        """List the possible rows of tables end to end; the first entry of a factor that has none."""
        factor = np.repeat(np.arange(len(factors)), np.diff(factors.start))
        possible = flat > -np.inf
        none = np.bincount(factor[possible], minlength=len(factors)) == 0
        possible[factors.start[:-1][none]] = True
        entries = np.flatnonzero(possible)
        counts = np.bincount(factor[entries], minlength=len(factors))
        own = entries - factors.start[factor[entries]]
        num_states = factors.num_states[factors.variables]
        return cls(factors.scope_start, factors.variables, num_states, factors.strides, offsets(counts), own)

    def states(self, place: Integers, rows: Integers) -> Integers:
        """Return the states that rows stand for, each of the variable at a place in the scopes."""
        found: Integers = self.entry[rows] // self.strides[place] % self.num_states[place]
        return found

    @property
    def sizes(self) -> Integers:
        """(places,) count the entries of a table between each scope's variable and the rows of its factor."""
        found: Integers = self.num_states * np.repeat(np.diff(self.start), np.diff(self.scope_start))
        return found

    def fill(self, out: Floats, begin: Integers, budget: Budget) -> None:
        """Write 0 into (states, rows) tables, from `begin` of each place on, where a row agrees with a state."""
        factor = np.repeat(np.arange(len(self.start) - 1), np.diff(self.scope_start))
        num_rows, first = np.diff(self.start)[factor], self.start[factor]
        ends = np.cumsum(num_rows)
        at = 0
        while at < len(factor):
            budget.check_cancelled()
            done = ends[at - 1] if at else 0
            last = max(at + 1, int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")))
            rows = ranges(first[at:last], num_rows[at:last])
            place = np.repeat(np.arange(at, last), num_rows[at:last])
            out[begin[place] + self.states(place, rows) * num_rows[place] + rows - first[place]] = 0.0
            at = last

    def products(self, marginals: Floats, state_start: Integers) -> Floats:
        """(rows, B) multiply the marginals (S, B) of each row's states."""
        arity, factor = np.diff(self.scope_start), self._factor
        weight = np.ones((len(self.entry), marginals.shape[1]))
        for p in range(int(arity.max(initial=0))):
            rows = np.flatnonzero(arity[factor] > p)
            place = self.scope_start[factor[rows]] + p
            weight[rows] *= marginals[state_start[self.variables[place]] + self.states(place, rows)]
        return weight

    def shares(self, marginals: Floats, state_start: Integers) -> Floats:
        """(rows, B) normalise those products in each factor; evenly where they are all zero."""
        weight, counts, factor = self.products(marginals, state_start), np.diff(self.start), self._factor
        total = np.add.reduceat(weight, self.start[:-1], axis=0)[factor]
        even = 1.0 / counts[factor][:, None]
        scaled: Floats = np.where(total > 0, weight / np.where(total > 0, total, 1.0), even)
        return scaled

    @property
    def _factor(self) -> Integers:
        """Return the factor of each row."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))


@dataclass(frozen=True, eq=False)
class Equivalent:
    """The pairwise model equivalent to a user's with larger factors, and the maps between them.

    The user's model is not in here: equivalents are kept by their models, and would keep them alive.

    Attributes
    ----------
    model
        The pairwise one: the same variables first, then one for each larger factor.
    edges
        Of the user's model.
    rows
        What the states of each factor's variable stand for.
    home
        (m,) for each edge of the user's model its number in the pairwise one, or -1 - f where it is folded into factor
        f.
    rounding
        Bound on what folding has changed in log Z.
    """

    model: Model
    edges: NDArray[np.int32]
    rows: FactorRows
    home: Integers
    rounding: float

    @classmethod
    def of(cls, whole: Model, budget: Budget) -> "Equivalent":
        """Make the equivalent once per model, and keep it as long; raises Cancelled where that takes too long."""
        if whole not in _KEPT:
            _KEPT[whole] = cls._build(whole, budget)
        return _KEPT[whole]

    @classmethod
    def _build(cls, whole: Model, budget: Budget) -> "Equivalent":
        """Fold edges into factors, and build the pairwise model."""
        larger = whole.factors
        flat, home, rounding = _fold_edges(whole)
        budget.check_cancelled()
        rows = FactorRows.of(larger, flat)
        kept = np.flatnonzero(home == 0)
        of_rows = np.repeat(larger.start[:-1], np.diff(rows.start)) + rows.entry
        states = np.concatenate([whole.num_states, np.diff(rows.start)])
        edges, tables = _pairwise_tables(whole, kept, rows, budget)
        unary = np.concatenate([whole.unary.flat, flat[of_rows]])
        model = Model.from_contents(ModelData(states, unary, edges, tables, FactorTables.of(states), whole.constant))
        budget.check_cancelled()
        home[kept] = np.searchsorted(_keys(model.edges, model), _keys(whole.edges[kept], model))
        return cls(model, whole.edges, rows, home, rounding)

    # -- there ---------------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch) -> Batch:
        """Return the lanes of a batch on the pairwise model."""
        own = self.model.unary.flat[len(batch.unary) :, None]
        return Batch(self.model, np.concatenate([batch.unary, np.repeat(own, batch.num_lanes, axis=1)]))

    def marginals(self, marginals: Floats) -> Floats:
        """(S', B) extend marginals (S, B) of the user's variables: a factor's row has the normalised product of its
        states."""
        return np.concatenate([marginals, self.rows.shares(marginals, self.model.unary.start)])

    # -- and back ------------------------------------------------------------------------------------------------------

    def to_original(self, whole: Model, estimates: Estimates) -> Estimates:
        """Restrict estimates of the pairwise model to the user's, with bounds widened by the rounding of folding."""
        num_rows = len(whole.unary.flat)
        return replace(
            estimates.widened(self.rounding),
            model=whole,
            marginals_flat=np.ascontiguousarray(estimates.marginals_flat[:num_rows]),
            state=EquivalentState(self, estimates),
        )


# Equivalents of models that are still in use: no value may lead to its key.
_KEPT: WeakKeyDictionary[Model, Equivalent] = WeakKeyDictionary()


def _pairwise_tables(whole: Model, kept: Integers, rows: FactorRows, budget: Budget) -> tuple[Integers, Floats]:
    """Lay out the kept edges and those between variables and factors, in lexicographic order, with their tables. In
    place, as a model has them: together they may be many times as large as the model."""
    pairwise, larger, num_kept = whole.pairwise, whole.factors, len(kept)
    factor = np.repeat(np.arange(len(larger)), np.diff(larger.scope_start))
    between = np.stack([larger.variables, whole.num_variables + factor], axis=1)
    edges = np.concatenate([whole.edges[kept].astype(np.int64), between])
    sizes = np.concatenate([pairwise.start[kept + 1] - pairwise.start[kept], rows.sizes])
    budget.check_cancelled(SECONDS_PER_ENTRY * int(sizes.sum()))
    order, begin = np.lexsort((edges[:, 1], edges[:, 0])), np.empty(len(edges), dtype=np.int64)
    ends = offsets(sizes[order])
    begin[order] = ends[:-1]
    tables = np.full(ends[-1], -np.inf)
    tables[ranges(begin[:num_kept], sizes[:num_kept])] = pairwise.flat[ranges(pairwise.start[kept], sizes[:num_kept])]
    rows.fill(tables, begin[num_kept:], budget)
    return edges[order], tables


def _fold_edges(whole: Model) -> tuple[Floats, Integers, float]:
    """Add each edge to the first factor whose scope contains it. Returns the factors' tables end to end; (m,) -1 - f
    for edges in factor f, else 0; and a bound on the rounding: additions into an entry times the size of its terms."""
    factors, flat = whole.factors, whole.factors.flat.copy()
    home = np.zeros(whole.num_edges, dtype=np.int64)
    additions, size = np.zeros(len(factors)), np.zeros(len(factors))
    for f, b, a, k in _edges_inside(whole):
        if home[k] != 0:
            continue
        scope = factors.variables[factors.scope_start[f] : factors.scope_start[f + 1]]
        table = flat[factors.start[f] : factors.start[f + 1]].reshape(whole.num_states[scope])  # a view
        pair = whole.pairwise.at(k)
        if not additions[f]:
            size[f] = largest_size(table)
        if size[f] + largest_size(pair) > LARGEST_POTENTIAL:
            continue  # it stays an edge
        home[k] = -1 - f
        shape = [1] * len(scope)
        shape[a], shape[b] = pair.shape
        table += pair.reshape(shape)
        size[f] += largest_size(pair)
        additions[f] += 1
    return flat, home, EPS * float((additions * size).sum())


def _edges_inside(whole: Model) -> list[tuple[int, int, int, int]]:
    """List (factor, b, a, edge) for each edge between places a < b of a factor's scope, in this order."""
    factors, keys = whole.factors, _keys(whole.edges, whole)
    found: list[tuple[int, int, int, int]] = []
    arity = np.diff(factors.scope_start)
    for size in np.unique(arity).tolist() if len(keys) else ():
        some = np.flatnonzero(arity == size)
        members = factors.variables[factors.scope_start[some][:, None] + np.arange(size)]
        for b in range(size):
            for a in range(b):
                wanted = _keys(members[:, [a, b]], whole)
                edge = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
                inside = np.flatnonzero(keys[edge] == wanted)
                found += [(int(some[f]), b, a, int(edge[f])) for f in inside]
    return sorted(found)


def _keys(edges: NDArray[np.integer], model: Model) -> Integers:
    """Number pairs of a model's variables, in the order of its edges."""
    pairs = edges.astype(np.int64).reshape(-1, 2)
    keys: Integers = pairs[:, 0] * max(model.num_variables, 1) + pairs[:, 1]
    return keys


@dataclass(frozen=True, eq=False)
class EquivalentState:
    """The end state of a method on the pairwise model, read as results on the user's."""

    equivalent: Equivalent
    estimates: Estimates

    def take(self, lanes: Integers) -> "EquivalentState":
        """Select lanes."""
        return EquivalentState(self.equivalent, self.estimates.take(lanes))

    def join(self, others: Sequence["EquivalentState"]) -> "EquivalentState":
        """Append the lanes of others."""
        return EquivalentState(self.equivalent, self.estimates.join([other.estimates for other in others]))

    @property
    def rho(self) -> Floats | None:
        """Return TRW's edge weights, in the order of the pairwise model's edges."""
        return self.estimates.state.rho

    def pairwise(self, lane: int) -> Floats:
        """Compute pairwise marginals of the user's edges; of a folded edge, sums over its factor's rows."""
        equivalent, num_states = self.equivalent, self.equivalent.model.num_states
        found = self.estimates.state.pairwise(lane)
        start = equivalent.model.pairwise.start
        rows = equivalent.rows
        factors = equivalent.model.unary.start[len(num_states) + 1 - len(rows.start) :]
        out: list[NDArray[Any]] = [np.empty(0)]
        for home, (i, j) in zip(equivalent.home.tolist(), equivalent.edges.tolist(), strict=True):
            if home >= 0:
                out.append(found[start[home] : start[home + 1]])
                continue
            f = -1 - home
            scope = rows.variables[rows.scope_start[f] : rows.scope_start[f + 1]].tolist()
            weight = self.estimates.marginals_flat[factors[f] : factors[f + 1], lane]
            own = np.arange(rows.start[f], rows.start[f + 1])
            at_i, at_j = (np.full(len(own), rows.scope_start[f] + scope.index(v)) for v in (i, j))
            pair = rows.states(at_i, own) * num_states[j] + rows.states(at_j, own)
            out.append(np.bincount(pair, weight, int(num_states[i] * num_states[j])))
        return np.concatenate(out)

    def factors(self, lane: int) -> Floats:
        """Compute marginals of the user's larger factors from those of their rows; hard zeros have none."""
        rows, num_states = self.equivalent.rows, self.equivalent.model.num_states
        weight = self.estimates.marginals_flat[-len(rows.entry) :, lane]
        start = offsets(table_sizes(num_states, rows.scope_start, rows.variables))
        out = np.full(start[-1], np.nan if np.isnan(weight).any() else 0.0)
        out[np.repeat(start[:-1], np.diff(rows.start)) + rows.entry] = weight
        return out


def equivalent_start(equivalent: Equivalent, start: Estimate | Estimates) -> Estimate | Estimates | Floats:
    """Turn estimates of the user's model into a warm start for the pairwise one; marginals where a method ran on
    another."""
    if isinstance(start.state, EquivalentState) and start.state.equivalent is equivalent:
        return start.state.estimates if isinstance(start, Estimates) else start.state.estimates[start.lane]
    flat = start.marginals_flat if isinstance(start, Estimates) else start.marginals.flat[:, None]
    return equivalent.marginals(np.nan_to_num(flat, nan=0.5))
