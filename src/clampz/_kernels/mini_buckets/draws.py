"""Draws of configurations from p_c(x | rest) of every clique, in reverse order of elimination, with marginals and
losses:

    q(x | later) = sum_c w_c p_c(x | rest)   over the states that are possible in every clique, made to add up to 1

so that f(x) / q(x) is at most exp(upper bound) for every configuration (inequality of the means); and what the bound
loses at each variable: Hölder's inequality at one bucket is an equality where its cliques agree, and else loses
-log sum_x prod_c p_c(x | rest)^w_c.

order     (n,)     variables as they are eliminated
scope              of the cliques' tables, an entry per axis
uniform   (n, N)   numbers from [0, 1), one for each variable, in order of elimination, and draw
states    (n, N)   the configurations drawn, zeros to begin with; of a draw that ran into no possible state, as far as
                   it came
log_q     (N,)     log q of each; inf of one that ran into no possible state
losses    (n,)     added up over the draws; empty: not asked for
"""

import math

import numpy as np

from clampz._kernels.jit import kernel, kernel_in_place
from clampz._kernels.mini_buckets.passes import fill_psi

# What a draw that runs into no possible state is taken to lose, in nats; it loses everything.
LOSS_IF_IMPOSSIBLE = 50.0
# Draws that are made together: a clique is looked up once for all of them, and what they need stays in the cache.
TOGETHER = 128
# In place of a probability: the state is impossible, and no underflow.
IMPOSSIBLE = -1.0


@kernel_in_place
def fill_proposal(layout, theta, x, lane, cancel_flag):
    """Recompute p of every clique after a forward pass, with impossible states marked; False if the flag was raised."""
    for c in range(layout.parent.size):
        if cancel_flag[0]:
            return False
        fill_psi(layout, theta, x, c, lane)
        m = lane.message[layout.message_start[c] : layout.message_start[c + 1]]
        inverse = 1.0 / lane.weight[c]
        for k in range(layout.sizes[layout.scope_start[c]]):
            at = layout.table_start[c] + k * m.size
            row = lane.table[at : at + m.size]
            for r in range(m.size):
                row[r] = math.exp(min((row[r] - m[r]) * inverse, 0.0)) if row[r] > -np.inf else IMPOSSIBLE
    return True


@kernel
def draw(layout, order, scope, lane, uniform, states, log_q, losses, most_states):
    """Draw configurations with log q of each, and add up what the bound loses at each variable."""
    num_draws = uniform.shape[1]
    share, log_product = np.empty((most_states, TOGETHER)), np.empty((most_states if losses.size else 0, TOGETHER))
    place, total = np.empty(TOGETHER, dtype=np.int64), np.empty(TOGETHER)
    log_q[:] = 0.0
    for first in range(0, num_draws, TOGETHER):
        number = min(TOGETHER, num_draws - first)
        for t in range(order.size - 1, -1, -1):
            begin, end = layout.bucket_start[t], layout.bucket_start[t + 1]
            K = layout.sizes[layout.scope_start[begin]]
            share[:K, :number] = 0.0
            if losses.size:
                log_product[:K, :number] = 0.0
            for c in range(begin, end):
                place[:number] = layout.table_start[c]
                stride, weight = 1, lane.weight[c]
                for a in range(layout.scope_start[c + 1] - 1, layout.scope_start[c], -1):
                    x = states[scope[a], first : first + number]
                    for d in range(number):
                        place[d] += x[d] * stride
                    stride *= layout.sizes[a]
                for k in range(K):
                    for d in range(number):
                        p = lane.table[place[d] + k * stride]
                        share[k, d] = share[k, d] + weight * p if p >= 0.0 and share[k, d] >= 0.0 else IMPOSSIBLE
                        if losses.size:
                            log_product[k, d] += weight * math.log(p) if p > 0.0 else -np.inf
            total[:number] = 0.0
            for k in range(K):
                for d in range(number):
                    total[d] += max(share[k, d], 0.0)
            for d in range(number):
                if not total[d] > 0.0:
                    log_q[first + d] = np.inf
                if log_q[first + d] == np.inf:
                    continue
                left = uniform[t, first + d] * total[d]
                chosen, last = -1, -1
                while chosen < K - 1 and (last < 0 or left >= 0.0):
                    chosen += 1
                    if share[chosen, d] > 0.0:
                        left -= share[chosen, d]
                        last = chosen
                states[order[t], first + d] = last
                log_q[first + d] += math.log(share[last, d] / total[d])
                if losses.size and end > begin + 1:
                    agreed = 0.0
                    for k in range(K):
                        agreed += math.exp(log_product[k, d])
                    loss = -math.log(agreed) if agreed > 0.0 else LOSS_IF_IMPOSSIBLE
                    losses[order[t]] += min(max(loss, 0.0), LOSS_IF_IMPOSSIBLE)


@kernel_in_place
def fill_marginals(layout, order, main, lane, state_start, out):
    """Average b_c(x) over the cliques of each variable's bucket by their weights; of the main one in a lower bound."""
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
