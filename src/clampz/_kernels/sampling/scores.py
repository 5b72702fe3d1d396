"""Scores of configurations of a model, its constant left out.

states   (N, n)   configurations
scope_start, variables   the scopes of larger factors, end to end
start             where tables begin: of variables, of edges, of factors
"""

from clampz._kernels.jit import kernel


@kernel
def fill_scores(
    states, num_states, unary_start, unary, edges, pair_start, pairwise, scope_start, variables, start, factors, out
):
    """Sum up the log potentials of every configuration."""
    for d in range(states.shape[0]):
        x = states[d]
        total = 0.0
        for i in range(num_states.size):
            total += unary[unary_start[i] + x[i]]
        for e in range(edges.shape[0]):
            i, j = edges[e, 0], edges[e, 1]
            total += pairwise[pair_start[e] + x[i] * num_states[j] + x[j]]
        for f in range(start.size - 1):
            place = 0
            for a in range(scope_start[f], scope_start[f + 1]):
                place = place * num_states[variables[a]] + x[variables[a]]
            total += factors[start[f] + place]
        out[d] = total
