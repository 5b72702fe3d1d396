"""What is true of every structure of mini-buckets, said in sets and loops; the same built in plain Python; and the
bound that it stands for, with equal weights and no shifts."""

import itertools
import math

import numpy as np
from naive import all_configurations, log_sum_exp

from clampz._kernels.mini_buckets.shifts import ALL_PAIRS, JOINED


def pieces(start, flat):
    return [tuple(flat[a:b].tolist()) for a, b in itertools.pairwise(start)]


def scopes_of(model):
    """Of edges, then factors."""
    return [tuple(edge) for edge in model.edges.tolist()] + [factor.scope for factor in model.factors]


def entries(model, scope):
    return math.prod(int(model.num_states[i]) for i in scope)


def counted(model, scope):
    """The same for a limit, where one state counts as two."""
    return math.prod(max(int(model.num_states[i]), 2) for i in scope)


def cliques_of(structure):
    return pieces(structure.scope_start, structure.scope)


def buckets_of(structure):
    return [range(a, b) for a, b in itertools.pairwise(structure.bucket_start)]


def check(structure, model, max_table):
    """All that the layout promises."""
    n, s = model.num_variables, structure
    assert all(array.dtype == np.int64 for array in vars(s).values() if isinstance(array, np.ndarray))
    assert sorted(s.order.tolist()) == list(range(n))
    position = {v: t for t, v in enumerate(s.order.tolist())}
    cliques, buckets = cliques_of(s), buckets_of(s)
    assert len(buckets) == n and s.bucket_start[0] == 0 and s.bucket_start[-1] == len(cliques) == s.num_cliques
    assert len(s.parent) == len(cliques)
    bucket_of = {c: t for t, bucket in enumerate(buckets) for c in bucket}
    own = [tuple(sorted(scope)) for scope in scopes_of(model)]
    for c, scope in enumerate(cliques):
        assert scope[0] == s.order[bucket_of[c]]
        assert [position[v] for v in scope] == sorted({position[v] for v in scope})
        assert s.table_start[c + 1] - s.table_start[c] == entries(model, scope)
        # larger than the limit only as a variable or factor of the model, or what is left of one
        several = {v for v in scope if model.num_states[v] > 1}
        assert entries(model, scope) <= max_table or len(several) == 1 or any(several <= set(one) for one in own)
        if len(scope) == 1:
            assert s.parent[c] == -1
        else:
            p = s.parent[c]
            assert p > c and set(scope[1:]) <= set(cliques[p])
            assert bucket_of[p] == min(position[v] for v in scope[1:])
    assert all(len(bucket) > 0 for bucket in buckets)
    assert s.table_start[0] == 0 and s.table_start[-1] == s.num_entries
    for v in range(n):
        assert s.unary_clique[v] in buckets[position[v]]
    homes = [*s.edge_clique.tolist(), *s.factor_clique.tolist()]
    assert len(homes) == len(own)
    for scope, home in zip(own, homes, strict=True):
        assert set(scope) <= set(cliques[home])
        assert bucket_of[home] == min(position[v] for v in scope)
    check_shifts(structure, model, cliques, buckets, position)


def check_shifts(s, model, cliques, buckets, position):
    """Pairs are of one bucket, over all that both have; what is not a pair is implied or beyond the tree."""
    shifts = pieces(s.pair_scope_start, s.pair_scope)
    pairs = list(zip(s.pair_left.tolist(), s.pair_right.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) == len(shifts)
    for (a, b), shift, size in zip(pairs, shifts, np.diff(s.shift_start), strict=True):
        common = set(cliques[a]) & set(cliques[b])
        assert a < b and list(shift) == sorted(common, key=position.get) and size == entries(model, shift)
    for t, bucket in enumerate(buckets):
        mine = [pair for pair in pairs if pair[0] in bucket]
        assert all(b in bucket for _, b in mine)
        if model.num_states[s.order[t]] == 1:
            assert not mine
            continue
        others = {(a, b): set(cliques[a]) & set(cliques[b]) for a, b in itertools.combinations(bucket, 2)}
        if len(bucket) <= ALL_PAIRS:
            for pair, common in others.items():
                leading = [one for one in mine if one != pair and common <= others[one]]
                # a pair is there, or others lead from one end to the other: never both
                assert (pair in mine) != connected(leading, *pair)
        else:
            assert len(mine) == len(bucket) - 1
            assert len(component(mine, bucket[0])) == len(bucket)
            if len(bucket) > JOINED:
                continue
            weight = sorted(math.log(entries(model, others[pair])) for pair in mine)
            np.testing.assert_allclose(weight, heaviest_tree(model, bucket, others))


def connected(pairs, a, b):
    return b in component(pairs, a)


def component(pairs, a):
    reached, before = {a}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {end for pair in pairs if reached & set(pair) for end in pair}
    return reached


def heaviest_tree(model, bucket, common):
    """Kruskal: log entries of the pairs of a maximum spanning tree, in order."""
    taken = []
    for pair in sorted(common, key=lambda pair: -entries(model, common[pair])):
        if not connected(taken, *pair):
            taken.append(pair)
    return sorted(math.log(entries(model, common[pair])) for pair in taken)


def naive_key(model, functions, v):
    """Pairs of neighbours of v that no function has together, weighted by their states, and then the size."""
    if model.num_states[v] == 1:
        return -1.0
    bits = [math.log2(k) for k in model.num_states]
    around = set().union(*(f for f in functions if v in f)) - {v}
    pairs = itertools.combinations(sorted(around), 2)
    fill = sum(bits[a] * bits[b] for a, b in pairs if not any(a in f and b in f for f in functions))
    return fill + 1e-3 * sum(bits[u] for u in around | {v}) - 1e-6 * bits[v]


def naive_structure(model, max_table, order=None, follow=None):
    """The cliques of each variable eliminated (sets of variables), the place that each function went to, and the order:
    the given one, or the one that the rules make, `follow` where that is as good."""
    functions = {k: set(scope) for k, scope in enumerate(scopes_of(model))}
    waiting = dict(functions)
    left = set(range(model.num_variables))
    keys = {v: naive_key(model, list(waiting.values()), v) for v in left}
    buckets, homes, taken = [], {}, []
    num_cliques = 0
    for t in range(model.num_variables):
        if order is not None:
            v = order[t]
        else:
            v = min(left, key=lambda v: (keys[v], v))
            if follow is not None and keys[follow[t]] <= keys[v] + 1e-9:
                v = follow[t]
        left.remove(v)
        taken.append(v)
        mine = sorted((k for k in waiting if v in waiting[k]), key=lambda k: (-counted(model, waiting[k]), -k))
        cliques = []
        for k in mine:
            for b, clique in enumerate(cliques):  # noqa: B007 (where it ends is where the function goes)
                union = clique | waiting[k]
                if (counted(model, union) <= max_table and model.num_states[v] > 1) or union == clique:
                    break
            else:
                b, union = len(cliques), set(waiting[k])
                cliques.append(union)
            cliques[b] = union
            homes[k] = num_cliques + b
        cliques = cliques or [{v}]
        around = set().union(*cliques) - {v}
        for k in mine:
            del waiting[k]
        for b, clique in enumerate(cliques):
            if len(clique) > 1:
                waiting[len(functions) + num_cliques + b] = clique - {v}
        num_cliques += len(cliques)
        buckets.append(cliques)
        keys |= {u: naive_key(model, list(waiting.values()), u) for u in around}
    return buckets, homes, taken


def naive_log_z(model):
    """By visiting every configuration."""
    terms = [((v,), model.unary[v]) for v in range(model.num_variables)]
    terms += [*model.pairwise.items(), *model.factors]
    scores = [
        sum(table[tuple(x[v] for v in scope)] for scope, table in terms) for x in all_configurations(model.num_states)
    ]
    return model.constant + log_sum_exp(scores)


def naive_bound(structure, model):
    """The bound of weighted mini-buckets with equal weights in each bucket and no shifts, by tables of NumPy."""
    cliques, buckets = cliques_of(structure), buckets_of(structure)
    values = [np.zeros(model.num_states[list(scope)]) for scope in cliques]

    def add(clique, scope, table):
        target = cliques[clique]
        order = sorted(range(len(scope)), key=lambda k: target.index(scope[k]))
        shape = [model.num_states[v] if v in scope else 1 for v in target]
        values[clique] = values[clique] + np.transpose(table, order).reshape(shape)

    for v in range(model.num_variables):
        add(structure.unary_clique[v], (v,), model.unary[v])
    for home, edge in zip(structure.edge_clique, model.pairwise, strict=True):
        add(home, edge, model.pairwise[edge])
    for home, factor in zip(structure.factor_clique, model.factors, strict=True):
        add(home, factor.scope, factor.table)
    total = model.constant
    for bucket in buckets:
        for c in bucket:
            w = 1 / len(bucket)
            message = w * np.logaddexp.reduce(values[c] / w, axis=0)
            if structure.parent[c] < 0:
                total += float(message)
            else:
                add(structure.parent[c], cliques[c][1:], message)
    return total
