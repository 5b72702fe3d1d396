"""The reduced model: what the presolve leaves of a model, as a model."""

from typing import NamedTuple

import numpy as np

from clampz._kernels.presolve import reduced as kernels
from clampz._kernels.presolve.pools import CONSTANT, LOST, Pools
from clampz._kernels.presolve.postsolve import ReducedTables
from clampz.model import Model
from clampz.model.data import ModelData
from clampz.model.factors import FactorTables
from clampz.model.tables import offsets, read_only
from clampz.numerics import Floats, Integers


class ReducedModel(NamedTuple):
    """A reduced model, with the original variables and states (end to end) of its own, and its tables for the
    postsolve: unary ones first, then those of edges, then of larger factors."""

    model: Model
    variables: Integers
    states: Integers
    tables: ReducedTables


def reduced_model(pools: Pools, original: Model, variables: Integers) -> ReducedModel:
    """Build the model of the remaining variables from the pools."""
    n = original.num_variables
    num_states = pools.variables["states"][variables].astype(np.int64)
    unary = np.empty(num_states.sum())
    states = np.empty(len(unary), dtype=np.int64)
    kernels.fill_unaries(pools, variables, unary, states)
    number = np.full(n, -1, dtype=np.int64)
    number[variables] = np.arange(len(variables))
    alive = np.flatnonzero(pools.factors["alive"])
    arity = pools.factors["arity"][alive]
    edges, larger = alive[arity == 2], alive[arity > 2]
    start, pairs = _scopes(pools, edges)
    first, second = pairs.reshape(-1, 2).T
    order = np.argsort(first * n + second, kind="stable")  # (quick where most of them are in order)
    edges, pairs = edges[order], pairs.reshape(-1, 2)[order].ravel()
    pairwise = _tables(pools, edges, start, pairs)
    larger_start, scopes = _scopes(pools, larger)
    tables = FactorTables(num_states, larger_start, number[scopes], _tables(pools, larger, larger_start, scopes))
    names, state_names = original.names, original.state_names
    chosen = np.split(states, np.cumsum(num_states))[:-1] if state_names else []
    contents = ModelData(
        num_states,
        unary,
        number[pairs].reshape(-1, 2),
        pairwise,
        tables,
        float(pools.total[CONSTANT] + pools.total[LOST]),
        names and [names[v] for v in variables.tolist()],
        state_names and [[state_names[v][a] for a in some] for v, some in zip(variables.tolist(), chosen, strict=True)],
    )
    model = Model.from_contents(contents)
    of_factor = np.full(len(pools.factors), -1, dtype=np.int64)
    of_factor[edges] = len(variables) + np.arange(len(edges))
    of_factor[larger] = len(variables) + len(edges) + np.arange(len(larger))
    arity = np.concatenate([np.ones(len(variables), dtype=np.int64), np.diff(start), np.diff(larger_start)])
    sizes = np.concatenate([num_states, np.diff(model.pairwise.start), np.diff(tables.start)])
    where = ReducedTables(offsets(arity), np.concatenate([variables, pairs, scopes]), offsets(sizes), of_factor, number)
    return ReducedModel(model, read_only(variables), read_only(states), where)


def _scopes(pools: Pools, factors: Integers) -> tuple[Integers, Integers]:
    start = offsets(pools.factors["arity"][factors])
    variables = np.empty(start[-1], dtype=np.int64)
    kernels.fill_scopes(pools, factors, start, variables)
    return start, variables


def _tables(pools: Pools, factors: Integers, start: Integers, variables: Integers) -> Floats:
    flat = np.empty(pools.factors["size"][factors].sum())
    kernels.fill_tables(pools, factors, start, variables, flat)
    return flat
