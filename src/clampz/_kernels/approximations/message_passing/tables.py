"""Message passing for any number of labels, shared by Bethe and TRW: the twin of `messages` with tables instead of
log-odds.  The arrays that they share are those of `tables`.

messages  (entries, B)  log M, finite, largest entry about 0; meaningless where the head's state is ruled out
total     (S, B)        log beliefs, not normalised, kept in step with the messages; -inf where the lane rules the
                        state out
theta     (S, B)        log unary potentials

    log M_ji(x_i) = log sum_xj exp( theta_ij(x_i, x_j) / rho + total_j(x_j) - log M_ij(x_j) )

The sum is a matrix product of `factor` with the exponentials of the cavity; where it underflows (extreme potentials) it
is done again in the log domain.
"""

import numpy as np

from clampz._kernels.approximations.message_passing.binary import ADDITIONS_COVERED, piece_end
from clampz._kernels.jit import kernel, part
from clampz._kernels.simd_math import EXP_LIMIT, exp, log, lost_in_sum

# A sum below this may have lost terms to underflow, and is done again in the log domain.
SMALLEST_SUM = 1e-250


@part
def _send(e, i, messages, total, potentials, graph, scratch, out):
    """Compute log sum_xj factor cavity into out (states of head, B), less shift[e]; 0 where the state is ruled out."""
    j = graph.tail[e]
    num_lanes = messages.shape[1]
    first_j = graph.state_start[j]
    num_j = graph.state_start[j + 1] - first_j
    first_i = graph.state_start[i]
    num_i = graph.state_start[i + 1] - first_i
    back = graph.entry_start[graph.reverse[e]]
    begin = graph.table_start[e]
    cavity, top, lost = scratch
    for b in range(num_lanes):
        top[b] = -np.inf
        lost[b] = False
    for y in range(num_j):
        for b in range(num_lanes):
            top[b] = max(top[b], total[first_j + y, b] - messages[back + y, b])
    for y in range(num_j):
        for b in range(num_lanes):
            h = total[first_j + y, b] - messages[back + y, b] - top[b]
            c = exp(max(h, -EXP_LIMIT))
            cavity[y, b] = c if h >= -EXP_LIMIT else 0.0
    for x in range(num_i):
        for b in range(num_lanes):
            out[x, b] = 0.0
    for x in range(num_i):
        for y in range(num_j):
            f = potentials.factor[begin + y * num_i + x]
            for b in range(num_lanes):
                out[x, b] += f * cavity[y, b]
    for x in range(num_i):
        for b in range(num_lanes):
            alive = total[first_i + x, b] > -np.inf
            lost[b] |= alive and out[x, b] < SMALLEST_SUM
            out[x, b] = log(max(out[x, b], SMALLEST_SUM)) + top[b] if alive else 0.0
    for b in range(num_lanes):
        if lost[b]:
            _send_in_logs(e, i, np.int64(b), messages, total, potentials, graph, out)


@part
def _send_in_logs(e, i, b, messages, total, potentials, graph, out):
    """Compute the sum for lane b in the log domain: slow, and right for any finite potentials."""
    j = graph.tail[e]
    first_j = graph.state_start[j]
    num_j = graph.state_start[j + 1] - first_j
    first_i = graph.state_start[i]
    num_i = graph.state_start[i + 1] - first_i
    back = graph.entry_start[graph.reverse[e]]
    begin = graph.table_start[e]
    for x in range(num_i):
        if not total[first_i + x, b] > -np.inf:
            continue
        top = -np.inf
        for y in range(num_j):
            term = (
                potentials.table[begin + y * num_i + x] / potentials.rho[e, 0]
                + total[first_j + y, b]
                - messages[back + y, b]
            )
            top = max(top, term)
        s = 0.0
        for y in range(num_j):
            term = (
                potentials.table[begin + y * num_i + x] / potentials.rho[e, 0]
                + total[first_j + y, b]
                - messages[back + y, b]
            )
            if term - top >= -EXP_LIMIT:
                s += exp(term - top)
        out[x, b] = top + log(s) - potentials.shift[e]


@part
def _take_up(e, i, messages, total, potentials, keep, graph, scratch, out):
    """Move message e towards `out`, normalised to a largest entry of 0, and its head's total with it."""
    num_lanes = messages.shape[1]
    first_i = graph.state_start[i]
    num_i = graph.state_start[i + 1] - first_i
    entry = graph.entry_start[e]
    gain = potentials.gain[e, 0]
    _, top, _ = scratch
    for b in range(num_lanes):
        top[b] = -np.inf
    for x in range(num_i):
        for b in range(num_lanes):
            if total[first_i + x, b] > -np.inf:
                top[b] = max(top[b], out[x, b])
    for x in range(num_i):
        for b in range(num_lanes):
            new = out[x, b] - top[b] if total[first_i + x, b] > -np.inf else 0.0
            d = keep[b] * (new - messages[entry + x, b])
            messages[entry + x, b] += d
            total[first_i + x, b] += gain * d


@part
def _scratch(graph, num_lanes):
    """Allocate the working memory of `_send`, and a place for what it sends."""
    most = 0
    for i in range(graph.state_start.size - 1):
        most = max(most, graph.state_start[i + 1] - graph.state_start[i])
    cavity = np.empty((most, num_lanes))
    out = np.empty((most, num_lanes))
    return (cavity, np.empty(num_lanes), np.empty(num_lanes, dtype=np.bool_)), out


@kernel
def sweep(ranges, num_sweeps, messages, total, potentials, keep, graph):
    """Recompute all messages into the slots of all ranges, `num_sweeps` times."""
    scratch, out = _scratch(graph, messages.shape[1])
    for _ in range(num_sweeps):
        for k in range(ranges.shape[0]):
            last, step = ranges[k, 1], ranges[k, 2]
            for first in range(ranges[k, 0], last, step):
                end = piece_end(first, last, step)
                if messages.shape[1] == 1:
                    _update_single(
                        first,
                        end,
                        messages.ravel(),
                        total.ravel(),
                        potentials,
                        keep[0],
                        graph,
                        scratch[0].ravel(),
                        out.ravel(),
                    )
                else:
                    _update_lanes(first, end, messages, total, potentials, keep, graph, scratch, out)


@part
def _update_lanes(first, last, messages, total, potentials, keep, graph, scratch, out):
    """Recompute the messages into slots first..last-1, for several lanes."""
    for i in range(first, last):
        for e in range(graph.start[i], graph.start[i + 1]):
            _send(e, i, messages, total, potentials, graph, scratch, out)
            _take_up(e, i, messages, total, potentials, keep, graph, scratch, out)


@part
def _update_single(first, last, messages, total, potentials, keep, graph, cavity, out):
    """Recompute messages of a single lane on flat arrays: loops over states replace the loop over lanes."""
    for i in range(first, last):
        first_i = graph.state_start[i]
        num_i = graph.state_start[i + 1] - first_i
        for e in range(graph.start[i], graph.start[i + 1]):
            j = graph.tail[e]
            first_j = graph.state_start[j]
            num_j = graph.state_start[j + 1] - first_j
            back = graph.entry_start[graph.reverse[e]]
            begin = graph.table_start[e]
            top = -np.inf
            for y in range(num_j):
                cavity[y] = total[first_j + y] - messages[back + y]
                top = max(top, cavity[y])
            for y in range(num_j):
                h = cavity[y] - top
                c = exp(max(h, -EXP_LIMIT))
                cavity[y] = c if h >= -EXP_LIMIT else 0.0
            for x in range(num_i):
                out[x] = 0.0
            for y in range(num_j):
                c = cavity[y]
                row = begin + y * num_i
                for x in range(num_i):
                    out[x] += potentials.factor[row + x] * c
            lost = False
            for x in range(num_i):
                alive = total[first_i + x] > -np.inf
                lost |= alive and out[x] < SMALLEST_SUM
                out[x] = log(max(out[x], SMALLEST_SUM)) + top
            if lost:
                _send_in_logs(
                    e,
                    i,
                    np.int64(0),
                    messages.reshape(-1, 1),
                    total.reshape(-1, 1),
                    potentials,
                    graph,
                    out.reshape(-1, 1),
                )
            top = -np.inf
            for x in range(num_i):
                top = max(top, out[x] if total[first_i + x] > -np.inf else -np.inf)
            entry = graph.entry_start[e]
            gain = potentials.gain[e, 0]
            for x in range(num_i):
                new = out[x] - top if total[first_i + x] > -np.inf else 0.0
                d = keep * (new - messages[entry + x])
                messages[entry + x] += d
                total[first_i + x] += gain * d


@kernel
def update_in_order(order, heads, messages, total, potentials, graph):
    """Recompute the given messages one after another, undamped, as along pendant trees."""
    scratch, out = _scratch(graph, messages.shape[1])
    keep = np.ones(messages.shape[1])
    for p in range(order.size):
        e = np.int64(order[p])
        i = np.int64(heads[p])
        _send(e, i, messages, total, potentials, graph, scratch, out)
        _take_up(e, i, messages, total, potentials, keep, graph, scratch, out)


@kernel
def send_all(beliefs, messages, potentials, graph):
    """Compute the messages that log beliefs (S, B) would send if `messages` had come in, normalised to a largest entry
    of 0."""
    scratch, out = _scratch(graph, messages.shape[1])
    sent = np.zeros_like(messages)
    for i in range(graph.start.size - 1):
        num_i = graph.state_start[i + 1] - graph.state_start[i]
        for e in range(graph.start[i], graph.start[i + 1]):
            _send(e, i, messages, beliefs, potentials, graph, scratch, out)
            for b in range(messages.shape[1]):
                top = -np.inf
                for x in range(num_i):
                    top = max(top, out[x, b])
                for x in range(num_i):
                    sent[graph.entry_start[e] + x, b] = out[x, b] - top
    return sent


@kernel
def refresh_totals(first, last, theta, messages, total, potentials, inertia, graph):
    """Compute total_i <- (theta_i + sum rho log M + (c_i - 1) total_i) / c_i: Bethe's outer step, and no rounding
    drift."""
    rho = potentials.rho
    num_lanes = messages.shape[1]
    row = np.empty(num_lanes)
    for i in range(first, last):
        c = inertia[i]
        num_i = graph.state_start[i + 1] - graph.state_start[i]
        for x in range(num_i):
            s = graph.state_start[i] + x
            for b in range(num_lanes):
                row[b] = theta[s, b]
            for e in range(graph.start[i], graph.start[i + 1]):
                for b in range(num_lanes):
                    row[b] += rho[e, 0] * messages[graph.entry_start[e] + x, b]
            for b in range(num_lanes):
                # a state that is ruled out stays so; (c - 1) times -inf would be nan for c = 1
                total[s, b] = (row[b] + (c - 1.0) * total[s, b]) / c if row[b] > -np.inf else -np.inf


@kernel
def node_terms(first, last, theta, messages, total, potentials, graph, log_norm, out):
    """Write log Z_i into log_norm (n, B), and add sum and magnitude to out (6, B), as in `binary.edge_terms`."""
    for i in range(first, last):
        begin = graph.state_start[i]
        end = graph.state_start[i + 1]
        for b in range(messages.shape[1]):
            z = _log_sum(total, begin, end, b)
            log_norm[i, b] = z
            out[4, b] += lost_in_sum(out[0, b], z)
            out[0, b] += z
            largest = 0.0
            for s in range(begin, end):
                if total[s, b] > -np.inf:
                    term = abs(theta[s, b])
                    for e in range(graph.start[i], graph.start[i + 1]):
                        term += potentials.rho[e, 0] * abs(messages[graph.entry_start[e] + s - begin, b])
                    largest = max(largest, term)
            out[3, b] += (
                abs(z) + largest * (1.0 + (graph.start[i + 1] - graph.start[i]) / ADDITIONS_COVERED) + (end - begin)
            )


@part
def _log_sum(values, begin, end, b):
    """Compute the log-sum-exp of values[begin:end, b]."""
    top = -np.inf
    for s in range(begin, end):
        top = max(top, values[s, b])
    total = 0.0
    for s in range(begin, end):
        if values[s, b] - top >= -EXP_LIMIT:
            total += exp(values[s, b] - top)
    return top + log(total)


@kernel
def edge_terms(first, last, messages, total, potentials, graph, log_norm, out):
    """Add value, slack, drift and magnitude of the edges to `out`, as in `binary.edge_terms`.

    With log N_i = log sum_xj exp(theta/rho + cavity_j), the pair's marginal of i is proportional to exp(cavity_i + log
    N_i), its normaliser is Z_ij, and its ratio to T_i is exp(log N_i - log M_ji) Z_i / Z_ij.
    """
    num_lanes = messages.shape[1]
    scratch, sent_i = _scratch(graph, num_lanes)
    _, sent_j = _scratch(graph, num_lanes)
    for k in range(first, last):
        e = np.int64(graph.message_of_edge[k, 1])
        r = np.int64(graph.message_of_edge[k, 0])
        j = np.int64(graph.tail[e])
        i = np.int64(graph.tail[r])
        _send(e, i, messages, total, potentials, graph, scratch, sent_i)
        _send(r, j, messages, total, potentials, graph, scratch, sent_j)
        count = potentials.rho[e, 0]
        shift = potentials.shift[e]
        for b in range(num_lanes):
            begin = graph.state_start[i]
            entry = graph.entry_start[e]
            num_i = graph.state_start[i + 1] - begin
            top = -np.inf
            largest = 0.0
            for x in range(num_i):
                if total[begin + x, b] > -np.inf:
                    cavity_x = total[begin + x, b] - messages[entry + x, b]
                    top = max(top, cavity_x + sent_i[x, b])
                    largest = max(largest, abs(cavity_x) + abs(sent_i[x, b]))
            s = 0.0
            for x in range(num_i):
                term = total[begin + x, b] - messages[entry + x, b] + sent_i[x, b] - top
                if term >= -EXP_LIMIT:
                    s += exp(term)
            log_z = top + log(s)
            ratio_i, drift_i = _disagreement(sent_i, messages, total, entry, begin, num_i, log_z, log_norm[i, b], b)
            begin = graph.state_start[j]
            num_j = graph.state_start[j + 1] - begin
            ratio_j, drift_j = _disagreement(
                sent_j, messages, total, graph.entry_start[r], begin, num_j, log_z, log_norm[j, b], b
            )
            value = count * (log_z + shift - log_norm[i, b] - log_norm[j, b])
            slack = count * max(0.0, max(ratio_i, ratio_j))
            out[4, b] += lost_in_sum(out[0, b], value)
            out[0, b] += value
            out[5, b] += lost_in_sum(out[1, b], slack)
            out[1, b] += slack
            out[2, b] = max(out[2, b], max(drift_i, drift_j))
            out[3, b] += count * (
                abs(log_z) + 2 * abs(shift) + abs(log_norm[i, b]) + abs(log_norm[j, b]) + 2 * largest + num_i + num_j
            )


@part
def _disagreement(sent, messages, total, entry, begin, num_states, log_z, log_norm, b):
    """Compute the largest log ratio of a pair's marginal to the belief, and their largest difference in probability."""
    ratio = 0.0
    drift = 0.0
    for x in range(num_states):
        t = total[begin + x, b]
        if t > -np.inf:
            delta = sent[x, b] - messages[entry + x, b]
            ratio = max(ratio, delta + log_norm - log_z)
            moved = exp(min(0.0, max(t + delta - log_z, -EXP_LIMIT))) - exp(max(t - log_norm, -EXP_LIMIT))
            drift = max(drift, abs(moved))
    return ratio, drift
