"""Presolve: the tables of the reduced model, scopes in ascending order."""

from clampz._kernels.jit import kernel
from clampz._kernels.presolve.pools import NEVER
from clampz._kernels.presolve.tables import advance


@kernel
def fill_scopes(pools, chosen, scope_start, variables):
    """Write the scopes of factors, each in ascending order."""
    for k in range(chosen.size):
        to = scope_start[k]
        for s in range(pools.factors[chosen[k]].begin, pools.factors[chosen[k]].end):
            v = pools.slots[s].variable
            if v < 0:
                continue
            place = to
            while place > scope_start[k] and variables[place - 1] > v:
                variables[place] = variables[place - 1]
                place -= 1
            variables[place] = v
            to += 1


@kernel
def fill_tables(pools, chosen, scope_start, variables, flat):
    """Write the tables of factors with their axes in the order of these scopes."""
    digit, dims, strides = pools.scratch[0], pools.scratch[1], pools.scratch[2]
    to = 0
    for k in range(chosen.size):
        factor = pools.factors[chosen[k]]
        arity = scope_start[k + 1] - scope_start[k]
        stride = 1
        for s in range(factor.end - 1, factor.begin - 1, -1):
            v = pools.slots[s].variable
            if v < 0:
                continue
            for a in range(arity):
                if variables[scope_start[k] + a] == v:
                    digit[a] = 0
                    dims[a] = pools.variables[v].states
                    strides[a] = stride
            stride *= pools.variables[v].states
        at = factor.table
        for _ in range(factor.size):
            flat[to] = pools.table[at]
            to += 1
            at = advance(digit, dims, strides, arity, at)


@kernel
def fill_unaries(pools, variables, unary, state):
    """Write the unary tables of variables, and which original states they are about."""
    to = 0
    for k in range(variables.size):
        v = variables[k]
        a = 0
        for place in range(pools.variables[v].first, pools.variables[v].last):
            if pools.states[place].gone == NEVER:
                unary[to] = pools.table[pools.variables[v].first + a]
                state[to] = place - pools.variables[v].first
                a += 1
                to += 1
