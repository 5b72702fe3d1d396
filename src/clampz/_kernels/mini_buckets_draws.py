"""Configurations drawn from what a pass forwards has left, p_c(x | rest) of every clique, in reverse order of
elimination:

    q(x | later) = sum_c w_c p_c(x | rest)

and what the bound loses at each variable there: Hölder's inequality at one bucket is an equality where its cliques
agree, and else loses -log sum_x prod_c p_c(x | rest)^w_c.

order     (n,)   variables as they are eliminated
scope, strides   of the cliques' tables, an entry per axis
uniform   (n,)   numbers from [0, 1), one for each variable
states    (n,)   the configuration drawn
losses    (n,)   added up
"""

import math

import numpy as np

from clampz._kernels.jit import kernel

# What a draw that runs into no possible state is taken to lose, in nats; it loses everything.
LOSS_IF_IMPOSSIBLE = 50.0


@kernel
def draw(layout, order, scope, lane, uniform, states, losses, most_states):
    share, log_product = np.empty(most_states), np.empty(most_states)
    for t in range(order.size - 1, -1, -1):
        begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
        K = layout.sizes[layout.scope_start[begin]]
        share[:K] = 0.0
        log_product[:K] = 0.0
        for c in range(begin, end):
            place, stride = 0, 1
            for a in range(layout.scope_start[c + 1] - 1, layout.scope_start[c], -1):
                place += states[scope[a]] * stride
                stride *= layout.sizes[a]
            for k in range(K):
                p = lane.table[layout.table_start[c] + k * stride + place]
                share[k] += lane.weight[c] * p
                log_product[k] += lane.weight[c] * math.log(p) if p > 0.0 else -np.inf
        total, agreed = 0.0, 0.0
        for k in range(K):
            total += share[k]
            agreed += math.exp(log_product[k])
        left = uniform[t] * total
        chosen = 0
        while chosen < K - 1 and left >= share[chosen]:
            left -= share[chosen]
            chosen += 1
        states[order[t]] = chosen
        if end > begin + 1:
            loss = -math.log(agreed) if agreed > 0.0 else LOSS_IF_IMPOSSIBLE
            losses[order[t]] += min(max(loss, 0.0), LOSS_IF_IMPOSSIBLE)


@kernel
def fill_marginals(layout, order, main, lane, state_start, out):
    """b_c(x) of the cliques of each variable's bucket, averaged by their weights; of the main one in a lower bound."""
    for t in range(order.size):
        at = state_start[order[t]]
        for c in range(layout.bucket_start[t], layout.bucket_start[t + 1]):
            if main[t] < 0 or main[t] == c:
                R = layout.message_start[c + 1] - layout.message_start[c]
                for k in range(layout.sizes[layout.scope_start[c]]):
                    place = layout.table_start[c] + k * R
                    belief = 0.0
                    for r in range(R):
                        belief += lane.table[place + r]
                    out[at + k] += abs(lane.weight[c]) * belief
        total = 0.0
        num_states = layout.sizes[layout.scope_start[layout.bucket_start[t]]]
        for k in range(num_states):
            total += out[at + k]
        for k in range(num_states):
            out[at + k] /= total
