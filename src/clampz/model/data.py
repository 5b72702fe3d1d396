"""ModelData: a model's arrays, and operations on them without a model around."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.compensated_sums import add_compensated
from clampz.errors import ModelError
from clampz.model.factors import Factor, FactorTables
from clampz.model.tables import PairTables, offsets, ranges
from clampz.numerics import Floats, Integers


class ModelData(NamedTuple):
    """Sound potentials: the tables of variables and of edges, end to end each, and larger factors."""

    num_states: Integers
    unary: Floats
    edges: NDArray[Any]
    pairwise: Floats
    factors: FactorTables
    constant: float = 0.0
    names: Sequence[str] | None = None
    state_names: Sequence[Sequence[str]] | None = None

    @property
    def tables(self) -> PairTables:
        """Return the tables of the edges for lookup by edge."""
        return PairTables.of(self.pairwise, self.edges, self.num_states)


def fold(factors: FactorTables) -> ModelData:
    """Sort factors of any size into constant, unary tables, edges and larger factors, adding up those over the same
    variables. Sums are as if exact and then rounded: what cancels, cancels. Factors of up to two variables are dealt
    with all at once: files have millions of them. The constant is -inf where a factor over nothing is zero."""
    num_states, variables, flat = factors.num_states, factors.variables, factors.flat
    arity, sizes = np.diff(factors.scope_start), np.diff(factors.start)
    first = np.zeros((len(arity), 2), dtype=np.int64)
    for p in range(2):
        first[arity > p, p] = variables[factors.scope_start[:-1][arity > p] + p]
    of = np.repeat(np.minimum(arity, 3).astype(np.int8), sizes)  # small: there is one for every entry
    unary_start = offsets(num_states)
    single = arity == 1
    unary = add_exactly(np.zeros(unary_start[-1]), ranges(unary_start[first[single, 0]], sizes[single]), flat[of == 1])
    constants = flat[of == 0].tolist()
    by_scope: dict[tuple[int, ...], list[Floats]] = {}
    for f in np.flatnonzero(arity > 2).tolist():
        scope, table = factors[f]
        order = np.argsort(scope)
        key = tuple(scope[i] for i in order)
        by_scope.setdefault(key, []).append(table.transpose(order))
    larger = []
    for key, (table, *others) in by_scope.items():
        if others:
            place = np.tile(np.arange(table.size), len(others))
            values = np.concatenate([other.ravel() for other in others])
            table = add_exactly(table.ravel(), place, values).reshape(table.shape)
        low = float(table.min())
        if low == float(table.max()) and low > -np.inf:
            constants.append(low)
        else:
            larger.append(Factor(key, table))
    tables = FactorTables.of(num_states, larger)
    return ModelData(num_states, unary, first[arity == 2], flat[of == 2], tables, math.fsum(constants))


def add_exactly(sums: Floats, place: Integers, values: Floats) -> Floats:
    """Add values to sums at these places, rounded once; a hard zero stays one."""
    out, lost, unsure = sums.copy(), np.zeros_like(sums), np.zeros(len(sums), dtype=np.uint8)
    add_compensated(out, lost, unsure, place, np.ascontiguousarray(values))
    out += lost
    if unsure.any():  # rarely: sizes of several kinds, and those in the middle cancel too
        terms = {p: [float(sums[p])] for p in np.flatnonzero(unsure).tolist()}
        for k in np.flatnonzero(unsure[place]).tolist():
            terms[int(place[k])].append(float(values[k]))
        for p, each in terms.items():
            out[p] = math.fsum(each)
    return out


def smaller_first(num_states: Integers, edges: NDArray[Any], flat: Floats) -> tuple[NDArray[Any], Floats]:
    """Put the smaller variable of each edge first, transposing its table."""
    i, j = edges.T
    if not (i > j).any():
        return edges, flat
    tables = PairTables.of(flat, np.sort(edges, axis=1), num_states)
    entry, edge, a, b = tables.entries(np.flatnonzero(i > j))
    transposed = flat.copy()
    transposed[entry] = flat[tables.start[edge] + b * num_states[j[edge]] + a]
    return tables.edges, transposed


def in_edge_order(num_states: Integers, edges: NDArray[Any], flat: Floats) -> tuple[NDArray[Any], Floats]:
    """Sort edges lexicographically with their tables, merging parallel ones."""
    first, second = edges.astype(np.int64).T
    loops = np.flatnonzero(first == second)
    if loops.size:
        raise ModelError(
            f"edge {tuple(edges[loops[0]].tolist())}: a variable cannot have an edge to itself; "
            "add its diagonal to the unary potentials"
        )
    keys = first * len(num_states) + second
    if (keys[1:] > keys[:-1]).all():
        return edges, flat
    sizes = num_states[first] * num_states[second]
    start = offsets(sizes)
    order = np.argsort(keys, kind="stable")
    new = np.concatenate([[True], np.diff(keys[order]) > 0])
    kept, extra = order[new], order[~new]
    merged = flat[ranges(start[kept], sizes[kept])]
    if not extra.size:
        return edges[kept], merged
    # a parallel edge adds its table to that of the first of its kind
    into = offsets(sizes[kept])[:-1][(np.cumsum(new) - 1)[~new]]
    values = flat[ranges(start[extra], sizes[extra])]
    return edges[kept], add_exactly(merged, ranges(into, sizes[extra]), values)


def scaled(contents: ModelData, beta: float) -> ModelData:
    """Multiply every log potential by beta; a hard zero stays one, whatever beta."""

    def times(table: Floats) -> Floats:
        out = np.full(table.shape, -np.inf)
        np.multiply(table, beta, out=out, where=table > -np.inf)
        return out

    return contents._replace(
        unary=times(contents.unary),
        pairwise=times(contents.pairwise),
        factors=contents.factors.with_flat(times(contents.factors.flat)),
        constant=beta * contents.constant,
    )


def restricted_to(contents: ModelData, variables: Integers) -> ModelData:
    """Restrict model data to some variables, in this order, with the edges and larger factors among them."""
    place = np.full(len(contents.num_states), -1, dtype=np.int64)
    place[variables] = np.arange(len(variables))
    edges = np.flatnonzero((place[contents.edges] >= 0).all(axis=1))
    num_states, tables = contents.num_states[variables], contents.tables.start
    larger = contents.factors.take(contents.factors.num_among(place >= 0) == np.diff(contents.factors.scope_start))
    return ModelData(
        num_states,
        contents.unary[ranges(offsets(contents.num_states)[variables], num_states)],
        place[contents.edges[edges]],
        contents.pairwise[ranges(tables[edges], tables[edges + 1] - tables[edges])],
        FactorTables(num_states, larger.scope_start, place[larger.variables], larger.flat),
        contents.constant,
        contents.names and [contents.names[v] for v in variables.tolist()],
        contents.state_names and [contents.state_names[v] for v in variables.tolist()],
    )
