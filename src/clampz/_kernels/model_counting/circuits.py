"""Compiled circuits (d-DNNF) of a set of clauses: read, checked, summed.

text      (bytes,) of the file, whose lines are  L literal | A number children... | O boolean number children...
tokens    (t,)     the same as numbers, with LITERAL, AND and OR in place of the letters
kind      (n,)     of each node LITERAL, AND or OR; children stand before their parents, and the root is the last
label     (n,)     the literal, or the boolean that an OR decides; of an AND 0
start     (n + 1,) the children of node k are child[start[k] : start[k + 1]]
reached   (n,)     whether it is part of the circuit, that is, below the root

Literals are a boolean's number or minus that, and their place in arrays over literals is 2 boolean + (literal < 0).
"""

import math

import numpy as np

from clampz._kernels.jit import inline, kernel, part
from clampz._kernels.statuses import DONE, LOOK_EVERY, STOPPED

LITERAL, AND, OR = 0, 1, 2
OVERLAPPING, AMBIGUOUS = 2, 3
# Roundings of a sum of logs: of the exponential, the sum and the logarithm, each of numbers up to 2.
ROUNDINGS_PER_OR = 8.0


LETTERS = (ord("L"), ord("A"), ord("O"))
MINUS, ZERO, NINE, SPACE, NEWLINE = ord("-"), ord("0"), ord("9"), ord(" "), ord("\n")
# Numbers in a file have fewer digits than would overflow.
MOST_DIGITS = 17


@inline
def _place(literal):
    """Return the place of a literal in arrays over literals."""
    return 2 * abs(literal) + (literal < 0)


@kernel
def read_tokens(text):
    """Tokenise a circuit file; no tokens if it has anything else in it."""
    tokens = np.empty(text.size // 2 + 1, dtype=np.int64)
    num = 0
    at = 0
    while at < text.size:
        byte = text[at]
        if byte in (SPACE, NEWLINE):
            at += 1
            continue
        token = -1
        for kind in range(3):
            if byte == LETTERS[kind]:
                token = kind
        at += 1
        if token < 0:
            token = 0
            begin = at
            if byte != MINUS:
                begin = at = at - 1
            while at < text.size and ZERO <= text[at] <= NINE and at - begin < MOST_DIGITS:
                token = 10 * token + (text[at] - ZERO)
                at += 1
            if at == begin:
                return tokens[:0]
            if byte == MINUS:
                token = -token
        if at < text.size and text[at] not in (SPACE, NEWLINE):
            return tokens[:0]
        tokens[num] = token
        num += 1
    return tokens[:num]


@kernel
def lay_out(tokens, num_booleans):
    """Lay out the nodes of a file (kind, label, start, child, reached); none if it is no circuit over these
    booleans."""
    size = tokens.size
    kind = np.empty(size, dtype=np.uint8)
    label = np.zeros(size, dtype=np.int64)
    start = np.zeros(size + 1, dtype=np.int64)
    child = np.empty(size, dtype=np.int64)
    num_nodes = 0
    num_children = 0
    at = 0
    sound = True
    while sound and at < size:
        what = tokens[at]
        header = 3 if what == OR else 2
        if what < 0 or what > OR or at + header > size:
            sound = False
            break
        kind[num_nodes] = what
        more = 0
        if what == LITERAL:
            label[num_nodes] = tokens[at + 1]
            sound = 1 <= abs(tokens[at + 1]) <= num_booleans
        else:
            more = tokens[at + header - 1]
            sound = 0 <= more <= size - at - header
        if sound and what == OR:
            label[num_nodes] = tokens[at + 1]
            sound = 0 <= tokens[at + 1] <= num_booleans
        at += header
        if sound:
            for p in range(more):
                child[num_children] = tokens[at + p]
                num_children += 1
                sound = sound and 0 <= tokens[at + p] < num_nodes
            at += more
        num_nodes += 1
        start[num_nodes] = num_children
    if not sound:
        num_nodes = 0
    reached = np.zeros(num_nodes, dtype=np.bool_)
    if num_nodes:
        reached[num_nodes - 1] = True
    for k in range(num_nodes - 1, -1, -1):
        if reached[k]:
            for p in range(start[k], start[k + 1]):
                reached[child[p]] = True
    return kind[:num_nodes], label[:num_nodes], start[: num_nodes + 1], child[: start[num_nodes]], reached


@part
def _implies_literal(k, literal, kind, label, start, child):
    """Whether a node visibly holds only where the literal does."""
    if kind[k] == LITERAL:
        return label[k] == literal
    if kind[k] == AND:
        for p in range(start[k], start[k + 1]):
            if kind[child[p]] == LITERAL and label[child[p]] == literal:
                return True
    return False


@kernel
def check_shape(kind, label, start, child, reached, below, cancel_flag):
    """Check decomposability and determinism: products of independent parts, sums of parts that exclude each other.

    Then what `log_values` computes is the sum over the assignments that satisfy the circuit.

    below  (n, words)  the set of booleans of each node, filled here
    """
    for k in range(kind.size):
        if k % LOOK_EVERY == 0 and cancel_flag[0] != 0:
            return STOPPED
        if not reached[k]:
            continue
        if kind[k] == LITERAL:
            boolean = abs(label[k])
            below[k, boolean >> 6] |= np.uint64(1) << np.uint64(boolean & 63)
        for p in range(start[k], start[k + 1]):
            shared = np.uint64(0)
            for w in range(below.shape[1]):
                shared |= below[k, w] & below[child[p], w]
                below[k, w] |= below[child[p], w]
            if kind[k] == AND and shared != 0:
                return OVERLAPPING
        if kind[k] == OR and start[k + 1] - start[k] > 1:
            if start[k + 1] - start[k] > 2:
                return AMBIGUOUS
            first, second = child[start[k]], child[start[k] + 1]
            holds, v = False, label[k]
            if _implies_literal(first, v, kind, label, start, child):
                holds = _implies_literal(second, -v, kind, label, start, child)
            elif _implies_literal(first, -v, kind, label, start, child):
                holds = _implies_literal(second, v, kind, label, start, child)
            if not holds:
                return AMBIGUOUS
    return DONE


@kernel
def first_not_implied(literals, kind, label, start, child, reached, num_booleans, cancel_flag):
    """Find the first clause that the circuit does not imply, or return their number; -1 if the flag was raised.

    literals  (l,)  the clauses in turn, each ended by a zero
    A clause is implied if the circuit cannot hold with all literals of the clause false; where products are of
    independent parts, it can if it does when every other literal is taken as true.  64 clauses at a time, a bit each.
    """
    ruled_out = np.zeros(2 * num_booleans + 2, dtype=np.uint64)
    can = np.zeros(kind.size, dtype=np.uint64)
    at = 0
    done = 0
    while at < literals.size:
        ruled_out[:] = 0
        begin = at
        num = 0
        while num < 64 and at < literals.size:
            if literals[at] == 0:
                num += 1
            else:
                ruled_out[_place(literals[at])] |= np.uint64(1) << np.uint64(num)
            at += 1
        for k in range(kind.size):
            if k % LOOK_EVERY == 0 and cancel_flag[0] != 0:
                return -1
            if not reached[k]:
                continue
            if kind[k] == LITERAL:
                can[k] = ~ruled_out[_place(label[k])]
                continue
            value = ~np.uint64(0) if kind[k] == AND else np.uint64(0)
            for p in range(start[k], start[k + 1]):
                value = value & can[child[p]] if kind[k] == AND else value | can[child[p]]
            can[k] = value
        for j in range(num):
            if (can[kind.size - 1] >> np.uint64(j)) & np.uint64(1):
                return done + j
        done += num
        if at == begin:
            break
    return done


@kernel
def log_values(log_weight, kind, label, start, child, reached, value, error):
    """Compute the log of the weighted count below each node, and a bound on its rounding.

    log_weight  (2 booleans + 2,)  of each literal, at most 0
    """
    eps = 2.220446049250313e-16
    for k in range(kind.size):
        if not reached[k]:
            continue
        total = 0.0
        off = 0.0
        if kind[k] == LITERAL:
            total = log_weight[_place(label[k])]
            off = 4 * eps * (1.0 - total) if total > -math.inf else 0.0
        elif kind[k] == AND:
            for p in range(start[k], start[k + 1]):
                total += value[child[p]]
                off += error[child[p]]
            if total > -math.inf:
                off -= eps * (start[k + 1] - start[k]) * total
        else:
            top = -math.inf
            for p in range(start[k], start[k + 1]):
                top = max(top, value[child[p]])
            total = top
            if top > -math.inf:
                mass = 0.0
                for p in range(start[k], start[k + 1]):
                    mass += math.exp(value[child[p]] - top)
                    off = max(off, error[child[p]])
                total = top + math.log(mass)
                off += eps * (ROUNDINGS_PER_OR - top)
        value[k] = total
        error[k] = off if total > -math.inf else 0.0


@kernel
def literal_flows(kind, label, start, child, value, num_booleans):
    """Compute for each literal the share of the whole in assignments that reach it."""
    flow = np.zeros(kind.size)
    share = np.zeros(2 * num_booleans + 2)
    flow[kind.size - 1] = 1.0
    for k in range(kind.size - 1, -1, -1):
        if flow[k] == 0.0:
            continue
        if kind[k] == LITERAL:
            share[_place(label[k])] += flow[k]
        for p in range(start[k], start[k + 1]):
            flow[child[p]] += flow[k] * (1.0 if kind[k] == AND else math.exp(value[child[p]] - value[k]))
    return share


@kernel
def negation(kind, label, start, child, reached, num_booleans):
    """Write the circuit's negation as clauses, each ended by a zero (Tseitin). With other clauses they are refuted if
    and only if the circuit holds wherever those do. Node k is boolean num_booleans + 1 + k or its own literal, a node
    holds if its parts say so, and the root does not."""
    num_nodes = kind.size
    literal = np.empty(num_nodes, dtype=np.int32)
    for k in range(num_nodes):
        literal[k] = label[k] if kind[k] == LITERAL else num_booleans + 1 + k
    out = np.empty(3 * child.size + 2 * num_nodes + 2, dtype=np.int32)
    at = 0
    for k in range(num_nodes):
        if not reached[k] or kind[k] == LITERAL:
            continue
        if kind[k] == AND:
            out[at] = literal[k]
            at += 1
            for p in range(start[k], start[k + 1]):
                out[at] = -literal[child[p]]
                at += 1
            out[at] = 0
            at += 1
            continue
        for p in range(start[k], start[k + 1]):
            out[at] = literal[k]
            out[at + 1] = -literal[child[p]]
            out[at + 2] = 0
            at += 3
    out[at] = -literal[num_nodes - 1]
    out[at + 1] = 0
    return out[: at + 2]
