"""Structures built by hand, slowly: any order, first fit into mini-buckets, a shift for each pair in a chain or all."""

import itertools
import math

import numpy as np

from clampz.approximations.mini_buckets.structure import Structure
from clampz.model.tables import offsets


def slow_structure(model, max_table, order=None):
    """Mini-buckets under a limit of entries; variables by least fill unless the order is given."""
    K = model.num_states
    n = model.num_variables
    functions = {}  # name: scope
    for i in range(n):
        functions["unary", i] = {i}
    for e, (i, j) in enumerate(model.edges.tolist()):
        functions["edge", e] = {i, j}
    for f in range(len(model.factors)):
        functions["factor", f] = set(model.factors[f].scope)
    left = set(range(n))
    cliques, buckets, home = [], [], {}
    chosen = []
    while left:
        i = order[len(chosen)] if order is not None else min(left, key=lambda i: (fill_of(i, functions), i))
        chosen.append(i)
        left.discard(i)
        mine = sorted(
            (name for name in functions if i in functions[name]), key=lambda name: -entries(functions[name], K)
        )
        bins = []
        for name in mine:
            scope = functions.pop(name)
            for members, union in bins:
                if entries(union | scope, K) <= max_table or scope <= union:
                    members.append(name)
                    union |= scope
                    break
            else:
                bins.append(([name], set(scope)))
        buckets.append([])
        for members, union in bins:
            c = len(cliques)
            cliques.append(union)
            buckets[-1].append(c)
            for name in members:
                home[name] = c
            functions["message", c] = union - {i}
            if not union - {i}:
                functions.pop(("message", c))
    position = np.argsort(chosen)
    scopes = [sorted(scope, key=lambda i: position[i]) for scope in cliques]
    parents = [home.get(("message", c), -1) for c in range(len(cliques))]
    pairs = []
    for bucket in buckets:
        for a, b in itertools.pairwise(bucket):
            pairs.append((a, b, [i for i in scopes[a] if i in cliques[b]]))

    def flat(lists):
        return np.array([i for each in lists for i in each], dtype=np.int64)

    def starts(lists):
        return offsets(np.array([len(each) for each in lists], dtype=np.int64))

    def homes(kind, num):
        return np.array([home[kind, k] for k in range(num)], dtype=np.int64)

    return Structure(
        order=np.array(chosen, dtype=np.int64),
        bucket_start=starts(buckets),
        scope_start=starts(scopes),
        scope=flat(scopes),
        table_start=offsets(np.array([entries(scope, K) for scope in scopes], dtype=np.int64)),
        parent=np.array(parents, dtype=np.int64),
        unary_clique=homes("unary", n),
        edge_clique=homes("edge", model.num_edges),
        factor_clique=homes("factor", len(model.factors)),
        pair_left=np.array([a for a, _, _ in pairs], dtype=np.int64),
        pair_right=np.array([b for _, b, _ in pairs], dtype=np.int64),
        pair_scope_start=starts([scope for *_, scope in pairs]),
        pair_scope=flat([scope for *_, scope in pairs]),
        shift_start=offsets(np.array([entries(scope, K) for *_, scope in pairs], dtype=np.int64)),
    )


def entries(scope, num_states):
    return math.prod(int(num_states[i]) for i in scope)


def fill_of(i, functions):
    """Pairs of i's neighbours that are no neighbours yet."""
    around = [scope - {i} for scope in functions.values() if i in scope]
    near = sorted(set().union(*around))
    return sum(not any(a in scope and b in scope for scope in functions.values()) for a in near for b in near if a < b)
