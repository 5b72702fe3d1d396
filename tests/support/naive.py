"""Slow twins: what the library computes, written as directly as possible and with no regard for time."""

import decimal
import itertools
import math
from fractions import Fraction

import numpy as np


def enumerate_factors(num_states, factors, constant=0.0):
    """log Z, marginals of the variables, and marginals of each factor's scope, by visiting every configuration.

    `factors` are pairs (scope, log table).  Where Z = 0 the marginals are nan.  Extended precision, so that log Z is
    right to the last bit or two.
    """
    num_states = [int(k) for k in num_states]
    scores = np.zeros(num_states, dtype=np.longdouble)
    for scope, table in factors:
        # bring the table's axes into the order of the variables, with axes of length one for the others
        order = np.argsort(scope)
        shape = [num_states[i] if i in set(scope) else 1 for i in range(len(num_states))]
        scores = scores + np.transpose(np.asarray(table, dtype=np.longdouble), order).reshape(shape)
    top = scores.max(initial=-np.inf)
    log_z = -np.inf if top == -np.inf else top + np.log(np.exp(scores - top).sum())
    with np.errstate(invalid="ignore"):
        p = np.exp(scores - log_z)

    def marginal(scope):
        summed = p.sum(axis=tuple(i for i in range(len(num_states)) if i not in set(scope)))
        return np.transpose(summed, np.argsort(np.argsort(scope))).astype(float)

    return (
        float(log_z + constant),
        [marginal([i]) for i in range(len(num_states))],
        [marginal(list(scope)) for scope, _ in factors],
    )


def enumerate_model(model):
    """log Z, unary marginals (a list) and pairwise marginals (a dict by edge) of a small model, by visiting every
    configuration."""
    pairs = list(model.pairwise)
    factors = [((i,), model.unary[i]) for i in range(model.num_variables)] + [
        (pair, model.pairwise[pair]) for pair in pairs
    ]
    log_z, unary, marginals = enumerate_factors(model.num_states, factors, model.constant)
    return log_z, unary, dict(zip(pairs, marginals[model.num_variables :], strict=True))


def all_configurations(num_states):
    """Every joint state, the last variable fastest."""
    return itertools.product(*(range(int(k)) for k in num_states))


# -- message passing ---------------------------------------------------------------------------------------------------


def log_sum_exp(values):
    """log sum exp of a list; -inf of an empty one."""
    top = max(values, default=-np.inf)
    return -np.inf if top == -np.inf else top + np.log(sum(np.exp(v - top) for v in values))


def surviving_states(model):
    """The states of each variable that have a partner in every neighbour: arc consistency, by repetition."""
    alive = [[a for a in range(len(table)) if table[a] > -np.inf] for table in model.unary]
    while True:
        before = [list(states) for states in alive]
        for i, j in model.pairwise:
            table = model.pairwise[i, j]
            alive[i] = [a for a in alive[i] if any(table[a, b] > -np.inf for b in alive[j])]
            alive[j] = [b for b in alive[j] if any(table[a, b] > -np.inf for a in alive[i])]
        if alive == before:
            return alive


class NaiveMessages:
    """Messages as dicts: `log_m[j, i][a]` is log M_ji(a), for the states a of i that survive.

    `rho` is a dict by edge (smaller variable first); `inertia` has c_i by variable, 1 for TRW.
    """

    def __init__(self, model, rho, inertia=None):
        self.model = model
        self.alive = surviving_states(model)
        self.rho = {pair: r for (i, j), r in rho.items() for pair in ((i, j), (j, i))}
        self.neighbours = [
            [j for j in range(model.num_variables) if (i, j) in self.rho] for i in range(model.num_variables)
        ]
        self.log_m = {(j, i): dict.fromkeys(self.alive[i], 0.0) for j, i in self.rho}
        self.inertia = inertia if inertia is not None else [1.0] * model.num_variables
        self.before = [self.settled(i) for i in range(model.num_variables)]

    def settled(self, i):
        """log belief_i(a) = theta_i(a) + sum_k rho_ki log M_ki(a)."""
        return {
            a: self.model.unary[i][a] + sum(self.rho[k, i] * self.log_m[k, i][a] for k in self.neighbours[i])
            for a in self.alive[i]
        }

    def belief(self, i):
        """The settled belief, held back by the one at the start of the outer step."""
        c, now = self.inertia[i], self.settled(i)
        return {a: (now[a] + (c - 1) * self.before[i][a]) / c for a in now}

    def send(self, j, i):
        """log M_ji(a) = log sum_b exp(theta_ij(a, b) / rho_ij) belief_j(b) / M_ij(b), scaled to a largest entry of
        1."""
        belief, table = self.belief(j), self.model.pairwise[i, j]
        new = {
            a: log_sum_exp([table[a, b] / self.rho[i, j] + belief[b] - self.log_m[i, j][b] for b in self.alive[j]])
            for a in self.alive[i]
        }
        return {a: new[a] - max(new.values()) for a in new}

    def update(self, i):
        """Recompute all messages into i."""
        for j in self.neighbours[i]:
            self.log_m[j, i] = self.send(j, i)

    def outer_step(self):
        """Bethe's outer step: beliefs are from now on held back by those of this moment."""
        self.before = [self.belief(i) for i in range(self.model.num_variables)]

    def evaluate(self):
        """The value C, the certified bound U, and the largest disagreement of marginals; beliefs as they are without
        inertia."""
        model, num = self.model, range(self.model.num_variables)
        belief = [self.settled(i) for i in num]
        norm = [log_sum_exp(list(belief[i].values())) for i in num]
        value, slack, drift = model.constant + sum(norm), 0.0, 0.0
        for i, j in model.pairwise:
            rho = self.rho[i, j]
            pair = {}
            for a in self.alive[i]:
                for b in self.alive[j]:
                    score = model.pairwise[i, j][a, b] / rho
                    pair[a, b] = score + belief[i][a] - self.log_m[j, i][a] + belief[j][b] - self.log_m[i, j][b]
            pair_norm = log_sum_exp(list(pair.values()))
            of_i = {a: log_sum_exp([pair[a, b] for b in self.alive[j]]) - pair_norm for a in self.alive[i]}
            of_j = {b: log_sum_exp([pair[a, b] for a in self.alive[i]]) - pair_norm for b in self.alive[j]}
            own_i = {a: belief[i][a] - norm[i] for a in self.alive[i]}
            own_j = {b: belief[j][b] - norm[j] for b in self.alive[j]}
            ratios = [of_i[a] - own_i[a] for a in of_i] + [of_j[b] - own_j[b] for b in of_j]
            differences = [np.exp(of_i[a]) - np.exp(own_i[a]) for a in of_i] + [
                np.exp(of_j[b]) - np.exp(own_j[b]) for b in of_j
            ]
            value += rho * (pair_norm - norm[i] - norm[j])
            slack += rho * max(0.0, *ratios)
            drift = max(drift, *map(abs, differences))
        return float(value), float(value + slack), float(drift)


def sweep_order(topology):
    """Core variables as the kernels sweep them, one colour class after another, and the directed pendant messages
    towards the core."""
    core = [int(i) for i in topology.variable_of[: topology.num_core]]
    towards_core = [(topology.tail[e], topology.tail[topology.reverse[e]]) for e in topology.pendant_up]
    return core, [(int(topology.variable_of[j]), int(topology.variable_of[i])) for j, i in towards_core]


def naive_trw(model, rho, num_sweeps):
    """(C, U, drift) after 1, 2, ..., num_sweeps sweeps from uniform messages; `rho` in the order of model.edges."""
    messages = NaiveMessages(model, dict(zip(model.pairwise, rho, strict=True)))
    core, pendant = sweep_order(model.topology)
    for j, i in pendant:
        messages.log_m[j, i] = messages.send(j, i)
    looks = []
    for _ in range(num_sweeps):
        for i in core:
            messages.update(i)
        for i, j in reversed(pendant):
            messages.log_m[j, i] = messages.send(j, i)
        looks.append(messages.evaluate())
    return looks


def naive_bethe(model, inertia, num_outer, inner):
    """(C, U, drift) after each outer step of `inner` sweeps, beliefs held back by c_i = inertia[i] (by variable)."""
    messages = NaiveMessages(model, dict.fromkeys(model.pairwise, 1.0), inertia)
    core, pendant = sweep_order(model.topology)
    for j, i in pendant:
        messages.log_m[j, i] = messages.send(j, i)
    messages.before = [messages.settled(i) for i in range(model.num_variables)]
    looks = []
    for _ in range(num_outer):
        for _ in range(inner):
            for i in core:
                messages.update(i)
        messages.outer_step()
        for i, j in reversed(pendant):
            messages.log_m[j, i] = messages.send(j, i)
        looks.append(messages.evaluate())
    return looks


# -- objectives --------------------------------------------------------------------------------------------------------


def expected(probabilities, scores):
    """sum p s with 0 times -inf taken as 0."""
    p, s = np.ravel(probabilities), np.ravel(scores)
    return float(sum(a * b for a, b in zip(p, s, strict=True) if a > 0))


def entropy(probabilities):
    return -expected(probabilities, np.log(np.maximum(probabilities, 1e-320)))


def naive_objective(model, unary, pairwise, rho=None):
    """What Bethe (rho = 1) and TRW maximise: <score> + sum H_i - sum rho_ij I_ij, at consistent pseudo-marginals."""
    value = model.constant
    for i in range(model.num_variables):
        value += expected(unary[i], model.unary[i]) + entropy(unary[i])
    for k, (i, j) in enumerate(model.pairwise):
        information = entropy(unary[i]) + entropy(unary[j]) - entropy(pairwise[i, j])
        value += expected(pairwise[i, j], model.pairwise[i, j]) - (1.0 if rho is None else rho[k]) * information
    return float(value)


def naive_mean_field_objective(model, q):
    """<score> under the product of q, plus its entropy."""
    return naive_objective(model, q, {(i, j): np.outer(q[i], q[j]) for i, j in model.pairwise})


def naive_mean_field(model, q, num_sweeps):
    """Coordinate ascent from q, and the objective after each sweep; returns (q, objectives)."""
    q = [np.array(row, dtype=float) for row in q]
    core = [int(i) for i in model.topology.variable_of[: model.topology.num_core]]
    pendant = [int(i) for i in model.topology.variable_of[model.topology.num_core :]]
    objectives = []
    for _ in range(num_sweeps):
        for i in core + pendant[::-1] + pendant:
            field = model.unary[i].copy()
            for j in range(model.num_variables):
                if (i, j) in model.pairwise:
                    field += [expected(q[j], model.pairwise[i, j][a]) for a in range(len(field))]
            weight = np.exp(field - field.max())
            q[i] = weight / weight.sum()
        objectives.append(naive_mean_field_objective(model, q))
    return q, objectives


# -- spanning trees ----------------------------------------------------------------------------------------------------


def spanning_trees(num_variables, edges):
    """Every spanning tree of a small connected graph, as tuples of edge numbers."""
    trees = []
    for chosen in itertools.combinations(range(len(edges)), num_variables - 1):
        group = list(range(num_variables))
        for k in chosen:
            a, b = group[edges[k][0]], group[edges[k][1]]
            group = [b if g == a else g for g in group]
        if len(set(group)) == 1:
            trees.append(chosen)
    return trees


def naive_forest_excess(num_variables, edges, rho):
    """The largest sum of rho inside a set of variables less its size less one, over all sets; 0 if none is positive."""
    worst = 0.0
    for size in range(2, num_variables + 1):
        for chosen in itertools.combinations(range(num_variables), size):
            inside = sum(r for (i, j), r in zip(edges, rho, strict=True) if i in chosen and j in chosen)
            worst = max(worst, inside - (size - 1))
    return worst


# -- selectors ---------------------------------------------------------------------------------------------------------


def naive_remaining(model, clamped=(), core=True):
    """{variable: {neighbour: strength}} of the unclamped variables; edges of strength 0 dropped, variables of degree <=
    1 removed one at a time."""
    graph = {i: {} for i in range(model.num_variables) if i not in clamped}
    for (i, j), strength in zip(model.pairwise, model.strength, strict=True):
        if i in graph and j in graph and strength != 0:
            graph[i][j] = graph[j][i] = float(strength)
    while core and any(len(neighbours) <= 1 for neighbours in graph.values()):
        leaf = next(i for i, neighbours in graph.items() if len(neighbours) <= 1)
        for j in graph.pop(leaf):
            del graph[j][leaf]
    return graph


def naive_max_w(model, clamped=(), core=True):
    graph = naive_remaining(model, clamped, core)
    return [sum(graph[i].values()) if i in graph else 0.0 for i in range(model.num_variables)]


def naive_m_power(model, clamped=(), max_tanh=1.0):
    """diag((I - M)^-1 - I) - s / (1 - s) as it is defined, in fractions: without any rounding but that of tanh."""
    graph = naive_remaining(model, clamped)
    variables, n = list(graph), len(graph)
    M = [[Fraction(min(math.tanh(graph[i].get(j, 0.0) / 4), max_tanh)) / (n - 1) for j in variables] for i in variables]
    rows = [[(a == b) - M[a][b] for b in range(n)] + [Fraction(a == b) for b in range(n)] for a in range(n)]
    for a in range(n):  # Gauss and Jordan; diagonally dominant, so no pivot is zero
        rows[a] = [value / rows[a][a] for value in rows[a]]
        for b in range(n):
            if b != a and rows[b][a]:
                rows[b] = [x - rows[b][a] * y for x, y in zip(rows[b], rows[a], strict=True)]
    scores = [0.0] * model.num_variables
    for a, i in enumerate(variables):
        s = sum(x * x for x in M[a])
        scores[i] = float(rows[a][n + a] - 1 - s / (1 - s))
    return scores


def naive_cycle_scores(model, clamped=(), digits=60):
    """The scores of frustCycles and of strongCycles, and the sum of |cycScore| at each variable; cycle by cycle, with
    as many digits as asked for."""
    graph = naive_remaining(model, clamped)
    edges = [
        (pair, W)
        for pair, W in zip(model.pairwise, model.pair_form.W, strict=True)
        if pair[0] in graph and pair[1] in graph and W != 0
    ]
    tree = {i: {} for i in graph}

    def path(i, j, seen=()):
        """The variables from i to j in the tree, or None."""
        if i == j:
            return [i]
        tails = (path(k, j, (*seen, i)) for k in tree[i] if k not in seen)
        return next(([i, *tail] for tail in tails if tail), None)

    closing = []
    for (i, j), W in sorted(edges, key=lambda edge: -abs(edge[1])):  # stable: equal ones in the model's order
        if path(i, j):
            closing.append(((i, j), W))
        else:
            tree[i][j] = tree[j][i] = W
    frustrated, signed, absolute = ([decimal.Decimal(0)] * model.num_variables for _ in range(3))
    with decimal.localcontext(prec=digits):
        for (i, j), W in closing:
            cycle = path(i, j)
            product = naive_tanh(W)
            for a, b in itertools.pairwise(cycle):
                product *= naive_tanh(tree[a][b])
            score = (1 + product).ln()
            for k in cycle:
                frustrated[k] += min(score, 0)
                signed[k] += score
                absolute[k] += abs(score)
        return [[float(abs(x)) for x in column] for column in (frustrated, signed, absolute)]


def naive_tanh(W):
    """tanh(W / 4) in decimal arithmetic."""
    q = (-abs(decimal.Decimal(float(W))) / 2).exp()
    return (1 - q) / (1 + q) * (1 if W > 0 else -1)
