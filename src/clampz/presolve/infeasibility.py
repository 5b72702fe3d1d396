"""Infeasibility: which factors contradict each other where the presolve finds Z = 0."""

import numpy as np

from clampz._kernels.presolve import pools as state
from clampz._kernels.presolve.pools import Pools
from clampz.display.formatting import name_of
from clampz.model import Model

# Factors that are named.
SHOWN = 6


def explain_infeasibility(model: Model, pools: Pools) -> str:
    """Say in words which factors leave a variable without a state; empty where Z = 0 was not found."""
    impossible = int(pools.count[state.IMPOSSIBLE])
    if impossible < 0:
        return ""
    variables, factors = _involved(model, pools, impossible)
    scopes = [f"({', '.join(name_of(model.names, v) for v in scope)})" for scope in sorted(factors)]
    scopes += [f"({name_of(model.names, v)})" for v in sorted(variables)]
    shown = ", ".join(scopes[:SHOWN]) + (f" and {len(scopes) - SHOWN} more" if len(scopes) > SHOWN else "")
    state_of = f"no state of variable {name_of(model.names, impossible)} is possible"
    if len(scopes) == 1:
        return f"{state_of}: the factor over {shown} rules all of them out"
    return f"{state_of}: the factors over {shown} contradict each other"


def _involved(model: Model, pools: Pools, impossible: int) -> tuple[set[int], set[tuple[int, ...]]]:
    """Return the variables whose unary tables, and the scopes of factors, that the infeasibility follows from. A factor
    rules out a state that it has no support for, given what was ruled out before. The chain has all factors that ruled
    out states of variables mentioned in it, and no others."""
    m, num_original = model.num_edges, model.num_edges + len(model.factors)
    into, larger = pools.factors["into"], model.factors
    made_of: dict[int, list[int]] = {}
    for f in np.flatnonzero(into >= 0).tolist():
        made_of.setdefault(int(into[f]), []).append(f)
    waiting_variables, waiting_factors = [impossible], [int(pools.count[state.BY])]
    own: set[int] = set()
    scopes: set[tuple[int, ...]] = set()
    seen_variables, seen_factors = {impossible}, {-1}
    while waiting_variables or waiting_factors:
        if waiting_factors:
            f = waiting_factors.pop()
            if f in seen_factors:
                continue
            seen_factors.add(f)
            waiting_factors += made_of.get(f, [])
            if f >= num_original:
                continue
            if f < m:
                scope = tuple(model.edges[f].tolist())
            else:
                scope = tuple(larger.variables[larger.scope_start[f - m] : larger.scope_start[f - m + 1]].tolist())
            scopes.add(scope)
            waiting_variables += [v for v in scope if v not in seen_variables]
            seen_variables.update(scope)
        else:
            v = waiting_variables.pop()
            begin, end = model.unary.start[v : v + 2]
            if np.isneginf(model.unary.flat[begin:end]).any():
                own.add(v)
            waiting_factors += np.unique(pools.states["reason"][begin:end]).tolist()
            if pools.variables["by"][v] >= 0:  # a function of another
                waiting_factors.append(int(pools.variables["by"][v]))
    return own, scopes
