"""Mean field on factors of any number of variables: arrays in, arrays out.

q        (S, B)      probabilities, states of all variables one after another, updated in place
theta    (S, B)      log unary potentials; -inf where a state is out
table    (entries,)  log tables of the factors end to end, the last variable of a scope varying fastest, hard zeros
                     replaced by -HARD
factors  FactorGraph which variables each factor has, and which factors each variable

    q_i(x) in proportion to exp( theta_i(x) + sum_f E[ theta_f | x_i = x ] )
    F = constant + sum E[theta_i] + sum E[theta_f] + sum H(q_i)

A configuration is a row of digits: the states of a scope's variables.
"""

from typing import NamedTuple

import numpy as np

from clampz._kernels.approximations.mean_field.binary import entropy_term
from clampz._kernels.approximations.mean_field.tables import softmax
from clampz._kernels.approximations.message_passing.binary import ADDITIONS_COVERED
from clampz._kernels.jit import kernel, part
from clampz._kernels.simd_math import lost_in_sum
from clampz.numerics import Integers


class FactorGraph(NamedTuple):
    """Scopes both ways: factor f has `variables[scope_start[f] : scope_start[f + 1]]`. Variable i is in `factor[at[i] :
    at[i + 1]]`, at these places."""

    state_start: Integers
    scope_start: Integers
    variables: Integers
    table_start: Integers
    at: Integers
    factor: Integers
    place: Integers


@kernel
def update_variables(first, last, q, theta, table, graph):
    """Update variables first..last-1 by coordinate ascent, one after another."""
    num_lanes = q.shape[1]
    weight = np.empty(num_lanes)
    for i in range(first, last):
        begin = graph.state_start[i]
        num_i = graph.state_start[i + 1] - begin
        for x in range(num_i):
            for b in range(num_lanes):
                q[begin + x, b] = theta[begin + x, b]
        for e in range(graph.at[i], graph.at[i + 1]):
            _add_expectations(graph.factor[e], graph.place[e], begin, q, table, graph, weight)
        for b in range(num_lanes):
            softmax(q, begin, num_i, b)


@part
def _add_expectations(f, place, begin, q, table, graph, weight):
    """Add to q[begin + x] the expectation of factor f given that its variable at `place` is in state x. That variable's
    own q is not read."""
    first, last = graph.scope_start[f], graph.scope_start[f + 1]
    digits = np.zeros(last - first, dtype=np.int64)
    for entry in range(graph.table_start[f], graph.table_start[f + 1]):
        t = table[entry]
        weight[:] = t
        for p in range(last - first):
            if p != place:
                s = graph.state_start[graph.variables[first + p]] + digits[p]
                for b in range(weight.size):
                    weight[b] *= q[s, b]
        for b in range(weight.size):
            q[begin + digits[place], b] += weight[b]
        _next(digits, first, graph)


@part
def _next(digits, first, graph):
    """Step to the next configuration of a scope."""
    for p in range(digits.size - 1, -1, -1):
        i = graph.variables[first + p]
        digits[p] += 1
        if digits[p] < graph.state_start[i + 1] - graph.state_start[i]:
            return
        digits[p] = 0


@kernel
def variable_terms(q, theta, out):
    """Add the variables' share of F to out[0], its magnitude to out[3], what out[0] loses to rounding to out[4]."""
    for s in range(q.shape[0]):
        for b in range(q.shape[1]):
            p = q[s, b]
            if p != 0.0:  # nan makes the value nan, which is no bound
                value = p * theta[s, b] + entropy_term(p)
                out[4, b] += lost_in_sum(out[0, b], value)
                out[0, b] += value
                out[3, b] += p * abs(theta[s, b]) + 1.0


@kernel
def factor_terms(begin, end, q, table, graph, out):
    """Add the share of factors begin..end-1 in F to `out`, laid out as in `variable_terms`."""
    num_lanes = q.shape[1]
    weight = np.empty(num_lanes)
    for f in range(begin, end):
        first, last = graph.scope_start[f], graph.scope_start[f + 1]
        digits = np.zeros(last - first, dtype=np.int64)
        charge = 1.0 + (last - first) / ADDITIONS_COVERED
        for entry in range(graph.table_start[f], graph.table_start[f + 1]):
            weight[:] = table[entry]
            for p in range(last - first):
                s = graph.state_start[graph.variables[first + p]] + digits[p]
                for b in range(num_lanes):
                    weight[b] *= q[s, b]
            for b in range(num_lanes):
                out[4, b] += lost_in_sum(out[0, b], weight[b])
                out[0, b] += weight[b]
                out[3, b] += abs(weight[b]) * charge
            _next(digits, first, graph)
