"""Message passing for binary models, shared by Bethe and TRW: arrays in, arrays out.

B lanes, n slots, 2m messages, in the layout of `Topology`.  R is 1 (weights shared by all lanes) or B (weights of each
lane).

u        (2m, B)  log message ratios log M(1)/M(0), updated in place
total    (n, B)   log-odds of the beliefs, kept in step with u
theta    (n, B)   log-odds of the unary potentials; 0 where clamped
keep     (B,)     1 - damping
and in `Weights`:
w        (2m, R)  W / (2 rho) of each message's edge
rho      (2m, R)  counting number of each message's edge
gain     (2m, R)  how much of a message's change its head's total takes: rho for TRW, 1 / c_i in Bethe's inner loop
free     (n, B)   1, or 0 where the lane has the variable clamped; (0, 0) where no lane has any
ranges   (k, 3)   slots that are updated one range after another: first, first + step, ... before last, |step| at a
                  time, which must not be neighbours of each other

One update, with h = total_j - u_ij the log-odds of the cavity belief of j:

    u_ji = log( (e^w + e^-h) / (1 + e^(w-h)) )
         = max(w, -h) - max(0, w - h) + log( (1 + e^-|w+h|) / (1 + e^-|w-h|) )
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.simd_math import EXP_LIMIT, clip, exp, log_ratio, lost_in_sum, sigmoid, softplus

# From this many lanes on, a loop over lanes fills the vector registers by itself.
FULL_LANES = 8
# Values gathered before a vectorised pass over them: long enough to pay, short enough to stay in the first-level cache.
CHUNK = 256
# Below this |w| the short form of the update neither overflows nor loses precision once h is clipped; above it the long
# form is used.
SHORT_FORM_LIMIT = 600.0
# Additions in a row that the rounding charged per term covers.
ADDITIONS_COVERED = 8.0


class MessageGraph(NamedTuple):
    """The index arrays of a `Topology` that the kernels read."""

    start: NDArray[np.int64]
    tail: NDArray[np.int32]
    reverse: NDArray[np.int32]
    message_of_edge: NDArray[np.int32]


class Weights(NamedTuple):
    """The edges' weights, counting numbers and gains, and the masks of lanes."""

    w: NDArray[np.float64]
    rho: NDArray[np.float64]
    gain: NDArray[np.float64]
    free: NDArray[np.float64]


@inline
def message(h, w):
    """Compute the new message for any finite h and w."""
    ratio = log_ratio(1.0 + exp(-min(abs(w + h), EXP_LIMIT)), 1.0 + exp(-min(abs(w - h), EXP_LIMIT)))
    return max(w, -h) - max(0.0, w - h) + ratio


@inline
def message_short(h, s, c):
    """Compute the new message for |w| <= SHORT_FORM_LIMIT, with s = sigmoid(w), c = sigmoid(-w): one exp, log and
    division."""
    e = exp(-clip(h))
    return log_ratio(s + c * e, c + s * e)


@inline
def piece_end(at, last, step):
    """Return where the piece of a range that begins at a slot ends."""
    return min(at + step, last) if step > 0 else at + 1


@kernel
def sweep(ranges, num_sweeps, u, total, weights, keep, graph):
    """Recompute all messages into the slots of all ranges, `num_sweeps` times. One kernel for all sweeps: what calls
    another is compiled with all of that again."""
    for _ in range(num_sweeps):
        for k in range(ranges.shape[0]):
            last, step = ranges[k, 1], ranges[k, 2]
            for first in range(ranges[k, 0], last, step):
                end = piece_end(first, last, step)
                if u.shape[1] >= FULL_LANES:
                    _update_full_lanes(first, end, u, total, weights, keep, graph)
                elif u.shape[1] == 1:
                    _update_single(
                        first,
                        end,
                        u.ravel(),
                        total.ravel(),
                        weights.w.ravel(),
                        weights.gain.ravel(),
                        weights.free.ravel(),
                        keep[0],
                        graph,
                    )
                else:
                    _update_gathered(first, end, u, total, weights, keep, graph)


@part
def _update_full_lanes(first, last, u, total, weights, keep, graph):
    """Recompute messages into slots first..last-1, for enough lanes to fill the vector registers."""
    w, _, gain, free = weights
    start, tail, reverse, _ = graph
    num_lanes = u.shape[1]
    shared = w.shape[1] == 1
    masked = free.size > 0
    for i in range(first, last):
        for e in range(start[i], start[i + 1]):
            j = tail[e]
            r = reverse[e]
            if shared and abs(w[e, 0]) <= SHORT_FORM_LIMIT:
                s = sigmoid(w[e, 0])
                c = sigmoid(-w[e, 0])
                g = gain[e, 0]
                if masked:
                    for b in range(num_lanes):
                        d = keep[b] * (free[i, b] * free[j, b] * message_short(total[j, b] - u[r, b], s, c) - u[e, b])
                        u[e, b] += d
                        total[i, b] += g * d
                else:
                    for b in range(num_lanes):
                        d = keep[b] * (message_short(total[j, b] - u[r, b], s, c) - u[e, b])
                        u[e, b] += d
                        total[i, b] += g * d
            elif shared:  # extreme weights: not worth a vectorised loop of their own
                for b in range(num_lanes):
                    new = message(total[j, b] - u[r, b], w[e, 0])
                    d = keep[b] * ((free[i, b] * free[j, b] if masked else 1.0) * new - u[e, b])
                    u[e, b] += d
                    total[i, b] += gain[e, 0] * d
            elif masked:
                for b in range(num_lanes):
                    d = keep[b] * (free[i, b] * free[j, b] * message(total[j, b] - u[r, b], w[e, b]) - u[e, b])
                    u[e, b] += d
                    total[i, b] += gain[e, b] * d
            else:
                for b in range(num_lanes):
                    d = keep[b] * (message(total[j, b] - u[r, b], w[e, b]) - u[e, b])
                    u[e, b] += d
                    total[i, b] += gain[e, b] * d


@part
def _update_single(first, last, u, total, w, gain, free, keep, graph):
    """Recompute messages of a single lane: the loop over a chunk of messages replaces the loop over lanes."""
    start, tail, reverse, _ = graph
    new = np.empty(CHUNK)
    i = first
    for begin in range(start[first], start[last], CHUNK):
        end = min(begin + CHUNK, start[last])
        for k in range(end - begin):
            new[k] = total[tail[begin + k]] - u[reverse[begin + k]]
        for k in range(end - begin):
            new[k] = message(new[k], w[begin + k])
        for e in range(begin, end):
            while e >= start[i + 1]:
                i += 1
            if free.size > 0:
                new[e - begin] *= free[i] * free[tail[e]]
            d = keep * (new[e - begin] - u[e])
            u[e] += d
            total[i] += gain[e] * d


@part
def _update_gathered(first, last, u, total, weights, keep, graph):
    """Recompute messages of a few lanes: gather a chunk of messages, then one flat pass."""
    w, _, gain, free = weights
    start, tail, reverse, _ = graph
    num_lanes = u.shape[1]
    shared = w.shape[1] == 1
    per_chunk = max(1, CHUNK // num_lanes)
    h = np.empty(per_chunk * num_lanes)
    x = np.empty(per_chunk * num_lanes)
    i = first
    for begin in range(start[first], start[last], per_chunk):
        end = min(begin + per_chunk, start[last])
        for e in range(begin, end):
            j = tail[e]
            r = reverse[e]
            k = (e - begin) * num_lanes
            for b in range(num_lanes):
                h[k + b] = total[j, b] - u[r, b]
            if shared:
                for b in range(num_lanes):
                    x[k + b] = w[e, 0]
            else:
                for b in range(num_lanes):
                    x[k + b] = w[e, b]
        for k in range((end - begin) * num_lanes):
            h[k] = message(h[k], x[k])
        for e in range(begin, end):
            while e >= start[i + 1]:
                i += 1
            k = (e - begin) * num_lanes
            if free.size > 0:
                j = tail[e]
                for b in range(num_lanes):
                    h[k + b] *= free[i, b] * free[j, b]
            for b in range(num_lanes):
                d = keep[b] * (h[k + b] - u[e, b])
                u[e, b] += d
                total[i, b] += gain[e, 0 if shared else b] * d


@kernel
def update_in_order(messages, heads, u, total, weights, graph):
    """Recompute the given messages one after another, undamped, as along pendant trees."""
    w, _, gain, free = weights
    _, tail, reverse, _ = graph
    num_lanes = u.shape[1]
    shared = w.shape[1] == 1
    for p in range(messages.size):
        e = messages[p]
        i = heads[p]
        j = tail[e]
        r = reverse[e]
        for b in range(num_lanes):
            new = message(total[j, b] - u[r, b], w[e, 0 if shared else b])
            if free.size > 0:
                new *= free[i, b] * free[j, b]
            total[i, b] += gain[e, 0 if shared else b] * (new - u[e, b])
            u[e, b] = new


@kernel
def send_all(odds, W, graph, u):
    """Compute the messages that beliefs with these log-odds (n, B) would send without hearing back, edges counted
    once."""
    for k in range(graph.message_of_edge.shape[0]):
        w = W[k] / 2
        for way in range(2):
            e = graph.message_of_edge[k, way]
            j = graph.tail[e]
            for b in range(u.shape[1]):
                u[e, b] = message(odds[j, b], w)


@kernel
def refresh_totals(first, last, theta, u, total, weights, inertia, graph):
    """total_i <- (theta_i + sum rho u + (c_i - 1) total_i) / c_i: rounding drift removed, and Bethe's outer step.
    inertia (n,) holds c_i: 1 for TRW."""
    start, rho = graph.start, weights.rho
    num_lanes = u.shape[1]
    shared = rho.shape[1] == 1
    row = np.empty(num_lanes)
    for i in range(first, last):
        for b in range(num_lanes):
            row[b] = theta[i, b]
        for e in range(start[i], start[i + 1]):
            if shared:
                r = rho[e, 0]
                for b in range(num_lanes):
                    row[b] += r * u[e, b]
            else:
                for b in range(num_lanes):
                    row[b] += rho[e, b] * u[e, b]
        c = inertia[i]
        for b in range(num_lanes):
            total[i, b] = (row[b] + (c - 1.0) * total[i, b]) / c


@kernel
def node_terms(first, last, theta, u, total, weights, graph, log_norm, out):
    """Write log Z_i = log(1 + e^total_i) into log_norm, and add sum and magnitude to out (6, B), as in `edge_terms`."""
    _, rho, _, free = weights
    start = graph.start
    num_lanes = u.shape[1]
    shared = rho.shape[1] == 1
    for i in range(first, last):
        for b in range(num_lanes):
            z = softplus(total[i, b])
            if free.size > 0:
                z *= free[i, b]
            log_norm[i, b] = z
            out[4, b] += lost_in_sum(out[0, b], z)
            out[0, b] += z
            out[3, b] += z + abs(theta[i, b])
        # rounding of a sum made one term after another
        additions = 1.0 + (start[i + 1] - start[i]) / ADDITIONS_COVERED
        for e in range(start[i], start[i + 1]):
            for b in range(num_lanes):
                out[3, b] += additions * rho[e, 0 if shared else b] * abs(u[e, b])
        for b in range(num_lanes):
            out[3, b] += (additions - 1.0) * abs(theta[i, b])


@kernel
def edge_terms(first, last, u, total, weights, graph, log_norm, out):
    """Add the edges' share of the approximation's value and of its certificate to `out` (6, B).

    out[0] += rho (log Z_ij - log Z_i - log Z_j)         the value C
    out[1] += rho log max(1, R_ij)                       the slack of the bound U = C + slack
    out[2]  = max |T_ij's marginal of i - T_i|           how far the beliefs are from consistent
    out[3] += the absolute terms                         what the rounding error is proportional to
    out[4], out[5] += what the first two lose to rounding

    With delta_i = (new u_ji) - u_ji, the marginal of i under T_ij has log-odds total_i + delta_i, and the largest ratio
    of it to T_i is log R = max(0, delta) - (softplus(total_i + delta) - softplus(total_i)).
    """
    w, rho, _, free = weights
    _, tail, _, message_of_edge = graph
    num_lanes = u.shape[1]
    shared = w.shape[1] == 1
    per_chunk = max(1, CHUNK // num_lanes)
    size = per_chunk * num_lanes
    total_i = np.empty(size)
    total_j = np.empty(size)
    into_i = np.empty(size)
    into_j = np.empty(size)
    norm_i = np.empty(size)
    norm_j = np.empty(size)
    weight = np.empty(size)
    count = np.empty(size)
    value = np.empty(size)
    slack = np.empty(size)
    drift = np.empty(size)
    magnitude = np.empty(size)
    for begin in range(first, last, per_chunk):
        end = min(begin + per_chunk, last)
        for edge in range(begin, end):
            e = message_of_edge[edge, 1]  # into i
            r = message_of_edge[edge, 0]  # into j
            j = tail[e]
            i = tail[r]
            k = (edge - begin) * num_lanes
            for b in range(num_lanes):
                total_i[k + b] = total[i, b]
                total_j[k + b] = total[j, b]
                into_i[k + b] = u[e, b]
                into_j[k + b] = u[r, b]
                norm_i[k + b] = log_norm[i, b]
                norm_j[k + b] = log_norm[j, b]
                weight[k + b] = w[e, 0 if shared else b]
                count[k + b] = rho[e, 0 if shared else b]
            if free.size > 0:
                for b in range(num_lanes):
                    count[k + b] *= free[i, b] * free[j, b]
        for k in range((end - begin) * num_lanes):
            x = weight[k]
            a = total_i[k] - into_i[k]
            c = total_j[k] - into_j[k]
            new_i = message(c, x)
            delta_i = new_i - into_i[k]
            delta_j = message(a, x) - into_j[k]
            # Z_ij = (e^w + e^c) (1 + e^(a + new_i))
            log_z = max(x, c) + softplus(-abs(x - c)) + softplus(a + new_i)
            ratio_i = max(0.0, delta_i) - (softplus(total_i[k] + delta_i) - softplus(total_i[k]))
            ratio_j = max(0.0, delta_j) - (softplus(total_j[k] + delta_j) - softplus(total_j[k]))
            value[k] = count[k] * (log_z - norm_i[k] - norm_j[k])
            slack[k] = count[k] * max(0.0, max(ratio_i, ratio_j))
            moved_i = abs(sigmoid(total_i[k] + delta_i) - sigmoid(total_i[k]))
            moved_j = abs(sigmoid(total_j[k] + delta_j) - sigmoid(total_j[k]))
            drift[k] = max(moved_i, moved_j) if count[k] > 0.0 else 0.0
            magnitude[k] = count[k] * (abs(log_z) + norm_i[k] + norm_j[k] + abs(a) + abs(c) + abs(x))
        for edge in range(begin, end):
            k = (edge - begin) * num_lanes
            for b in range(num_lanes):
                out[4, b] += lost_in_sum(out[0, b], value[k + b])
                out[0, b] += value[k + b]
                out[5, b] += lost_in_sum(out[1, b], slack[k + b])
                out[1, b] += slack[k + b]
                out[2, b] = max(out[2, b], drift[k + b])
                out[3, b] += magnitude[k + b]
