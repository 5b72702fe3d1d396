"""Bounds from parts of a model that are narrow enough to be summed exactly.

Cut some edges so that every connected part left is narrow.  Two bounds follow, both as tight as the parts are wide.

Lower: mean field over the parts.  q is a product of distributions q_P, each of them exact given its fields; the edges
between parts see means only,

    log Z >= sum_P H(q_P) + E_q[score],        q_P in proportion to exp( score inside P + fields of the cut edges ),

and updating one part after another can only raise it.  Parts of one variable make it naive mean field, one part makes
it exact.

Upper: TRW over narrow subgraphs in place of trees.  With subgraphs k whose potentials theta_k average to those of the
model, convexity gives

    log Z(theta) <= mean_k log Z(theta_k),

for any such theta_k; the gradient in theta_k is the marginals of subgraph k, and where all subgraphs agree on them the
bound is lowest.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz.bracketing.partitions import never, parts_of, with_ties
from clampz.elimination.plans import Elimination, Restriction, Scopes
from clampz.elimination.sums import Workspace, sum_out
from clampz.model import Model
from clampz.model.tables import Floats, Integers, offsets, ranges
from clampz.numerics import EPS, ROUNDINGS

# Plans that are kept, one for each set of states left.
KEPT_PLANS = 4
# Stands for a hard zero in a mean: beyond all potentials that matter.
HARD = 1e30
# An edge that a partition has cut counts so many times in the next, so that every edge is inside some subgraph soon.
CUT_AGAIN = 4.0
# Strengths are shaken by this much between partitions, as a share.
NOISE = 0.1
MIN_SUBGRAPHS, MAX_SUBGRAPHS = 3, 12
# A field as low as this is that of a hard zero, and rules its state out.
FORBIDDEN = -HARD / 1e6
# L-BFGS: steps remembered, the largest change of a potential in the first step, what share of the promised fall is
# enough, and what is not worth a step.
MEMORY, FIRST_STEP, SUFFICIENT, LEAST_SLOPE = 20, 1.0, 1e-4, 1e-9
# Sweeps over the parts of the lower bound, and what a sweep must gain, in nats.
MAX_SWEEPS, LEAST_GAIN = 60, 1e-4


# -- exact sums over a subgraph ------------------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """log Z of a subgraph with a bound on its rounding error, and its marginals laid out as its tables: those of the
    variables, then those of its edges."""

    log_z: float
    error: float
    marginals: Floats


class Subgraph:
    """Exact sums over some of a model's variables and edges, for lanes that have the same states left.

    `rows` are the entries of the model's unary tables that are its own, `pairs` those of its pairwise tables.
    """

    def __init__(self, model: Model, variables: Integers, edges: Integers, possible: NDArray[np.bool_]) -> None:
        self.variables, self.edges = variables, edges
        place = np.full(model.num_variables, -1, dtype=np.int64)
        place[variables] = np.arange(len(variables))
        num_states = model.num_states[variables]
        self.rows = ranges(model.unary.start[:-1][variables], num_states)
        start = model.pairwise.start
        self.pairs = ranges(start[edges], start[edges + 1] - start[edges])
        scopes = Scopes.of_pairwise(num_states, place[model.edges[edges]].reshape(-1, 2))
        self.restricted = Restriction.of(scopes, possible[self.rows])
        self.elimination = Elimination.of(self.restricted.scopes, None)
        self.spare: list[Workspace] = []  # working memory that no thread is using
        kept = self.restricted.scopes.table_start
        self.owner = np.repeat(np.arange(len(kept) - 1), np.diff(kept))
        self.table_start = kept[:-1]

    @property
    def num_entries(self) -> int:
        """Table entries that a sum goes through."""
        return self.elimination.num_stored

    def moments(self, unary: Floats, pairwise: Floats) -> Moments:
        """From log potentials of its own rows and pairs; threads may ask at once."""
        try:
            workspace = self.spare.pop()
        except IndexError:
            workspace = Workspace.of(self.elimination)
        try:
            return self._moments(np.concatenate([unary, pairwise]), workspace)
        finally:
            self.spare.append(workspace)

    def _moments(self, values: Floats, workspace: Workspace) -> Moments:
        entries, num_states = self.restricted.entries, len(self.restricted.states)
        states = np.empty(num_states)
        found = sum_out(self.elimination, values[entries], workspace, states)
        out = np.zeros(len(values))
        if found.log_z == -math.inf:
            return Moments(-math.inf, 0.0, out)
        beliefs = workspace.beliefs[: len(entries)].copy()
        beliefs[:num_states] = states
        total = np.add.reduceat(beliefs, self.table_start) if len(entries) else np.ones(0)
        out[entries] = beliefs / total[self.owner]
        return Moments(found.log_z, found.error, out)


# -- both bounds -----------------------------------------------------------------------------------------------------------------


@dataclass
class NarrowState:
    """Where a lane's bounds have got to.

    Attributes
    ----------
    marginals
        (S,) of the lower bound.
    beliefs
        (S,) of the upper bound, averaged over its subgraphs.
    shifts
        How far the potentials of each subgraph are from the model's.
    """

    marginals: Floats
    beliefs: Floats
    shifts: list[Floats]


class NarrowBound(NamedTuple):
    """Certified bounds of one lane, where they have got to, and the seconds they took."""

    lower: float
    upper: float
    state: NarrowState
    seconds: float


@dataclass
class Narrow:
    """Bounds on lanes of one pairwise model from a partition into narrow parts and several such partitions as
    subgraphs.

    Attributes
    ----------
    limit
        Table entries per part.
    labels
        (n,) the partition of the lower bound.
    masks
        For each subgraph of the upper bound, (m,) the edges it has.
    """

    model: Model
    limit: float
    labels: Integers
    masks: list[NDArray[np.bool_]]
    _plans: dict[bytes, "_Plans"] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, limit: float, seed: int = 0, must_stop: Callable[[], bool] = never) -> "Narrow":
        """Partition the model, several times over: until every edge has been inside a part."""
        rng = np.random.default_rng(seed)
        strength = np.tanh(model.strength / 4) + 1e-9
        labels = parts_of(model, limit, strength, must_stop)
        least = _cut(model, labels, strength)
        masks = [with_ties(model, labels, limit, strength, must_stop)]
        if masks[0].all():  # nothing is cut: one part has everything
            return cls(model, limit, np.zeros_like(labels), masks)
        emphasis = np.where(masks[0], 1.0, CUT_AGAIN)
        covered = masks[0].copy()
        while not covered.all() or 1 < len(masks) < MIN_SUBGRAPHS:
            if must_stop() or len(masks) >= MAX_SUBGRAPHS:
                if covered.all():
                    break
                masks.append(_matching(model, ~covered))  # an edge alone is narrow
                covered |= masks[-1]
                continue
            weight = strength * emphasis * np.exp(NOISE * rng.normal(size=len(strength)))
            other = parts_of(model, limit, weight, must_stop)
            if (cut := _cut(model, other, strength)) < least:
                labels, least = other, cut
            masks.append(with_ties(model, other, limit, weight, must_stop))
            covered |= masks[-1]
            emphasis = np.where(masks[-1], np.maximum(0.7 * emphasis, 1.0), CUT_AGAIN * emphasis)
        return cls(model, limit, labels, masks)

    @property
    def is_exact(self) -> bool:
        """Whether a single part has everything."""
        return len(self.masks) == 1

    def cut_weight(self) -> Floats:
        """(n,) how much of the strength of each variable's edges is cut, on average over the subgraphs: where the slack
        comes from."""
        n = self.model.num_variables
        share = np.tanh(self.model.strength / 4) * (1.0 - np.mean(self.masks, axis=0))
        i, j = self.model.edges.T
        return (np.bincount(i, share, n) + np.bincount(j, share, n)).astype(np.float64)

    def bounds(
        self,
        unary: Floats,
        start: NarrowState | None,
        starts: list[Floats],
        max_evaluations: int,
        must_stop: Callable[[], bool] = never,
    ) -> NarrowBound:
        """Bounds on the lane with these unary potentials (S,), begun at an earlier state or at the marginals in
        `starts`.

        `max_evaluations` is how often the subgraphs are summed at most.
        """
        began = time.perf_counter()
        plans = self._plans_of(unary)
        if plans.empty:
            return NarrowBound(-math.inf, -math.inf, NarrowState(np.zeros_like(unary), np.zeros_like(unary), []), 0.0)
        every = [start.marginals, *starts] if start is not None else starts
        found = [
            _lower_bound(self.model, plans, unary, marginals, must_stop)
            for marginals in every[: None if max_evaluations > 1 else 1]
        ]
        lower, marginals = max(found, key=lambda pair: pair[0])
        upper, beliefs, shifts = _upper_bound(
            self.model, plans, unary, start.shifts if start is not None else [], max_evaluations, must_stop
        )
        return NarrowBound(lower, upper, NarrowState(marginals, beliefs, shifts), time.perf_counter() - began)

    def num_entries(self, unary: Floats) -> int:
        """Table entries that summing all subgraphs once goes through."""
        return sum(subgraph.num_entries for subgraph in self._plans_of(unary).subgraphs)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_plans": {}}  # quicker to lay out again than to send

    def _plans_of(self, unary: Floats) -> "_Plans":
        possible = unary > -np.inf
        key = np.packbits(possible).tobytes()
        found = self._plans.get(key)
        if found is None:
            found = _Plans.of(self.model, self.labels, self.masks, possible)
            for old in list(self._plans)[: 1 - KEPT_PLANS]:  # lanes come in families: the last few are enough
                self._plans.pop(old, None)
            self._plans[key] = found
        return found


def _cut(model: Model, labels: Integers, strength: Floats) -> float:
    """The strength of the edges between parts."""
    i, j = model.edges.T
    return float(strength[labels[i] != labels[j]].sum())


def _matching(model: Model, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(m,) some of the wanted edges, no two of which share a variable."""
    used = np.zeros(model.num_variables, dtype=np.bool_)
    out = np.zeros(model.num_edges, dtype=np.bool_)
    for k in np.flatnonzero(wanted):
        i, j = model.edges[k]
        if not used[i] and not used[j]:
            used[i] = used[j] = out[k] = True
    return out


class _Plans(NamedTuple):
    """What is summed for lanes with the same states left: the parts of the lower bound, its cut edges, and the
    subgraphs of the upper bound."""

    parts: list[Subgraph]
    cut: Integers
    subgraphs: list[Subgraph]
    counts: Integers
    empty: bool

    @classmethod
    def of(
        cls, model: Model, labels: Integers, masks: list[NDArray[np.bool_]], possible: NDArray[np.bool_]
    ) -> "_Plans":
        i, j = model.edges.T
        inside = labels[i] == labels[j]
        parts = []
        for number in range(int(labels.max(initial=-1)) + 1):
            edges = np.flatnonzero(inside & (labels[i] == number))
            parts.append(Subgraph(model, np.flatnonzero(labels == number), edges, possible))
        every = np.arange(model.num_variables)
        subgraphs = [Subgraph(model, every, np.flatnonzero(mask), possible) for mask in masks]
        left = np.add.reduceat(possible, model.unary.start[:-1]) if model.num_variables else np.ones(1)
        return cls(parts, np.flatnonzero(~inside), subgraphs, np.sum(masks, axis=0), bool((left == 0).any()))


def _lower_bound(
    model: Model, plans: _Plans, unary: Floats, marginals: Floats, must_stop: Callable[[], bool]
) -> tuple[float, Floats]:
    """Mean field over the parts, from these marginals (S,): the bound less what rounding may have added, and the
    marginals reached."""
    start, flat = model.unary.start, np.maximum(model.pairwise.flat, -HARD)
    entry, edge, a, b = model.pairwise.entries(plans.cut)
    i, j = model.edges[edge].T
    row_i, row_j, value = start[i] + a, start[j] + b, flat[entry]
    possible = (unary[row_i] > -np.inf) & (unary[row_j] > -np.inf)
    row_i, row_j, value = row_i[possible], row_j[possible], value[possible]
    num_rows = len(unary)
    owner = np.empty(num_rows, dtype=np.int64)
    for number, part in enumerate(plans.parts):
        owner[part.rows] = number
    mine = [np.flatnonzero((owner[row_i] == number) | (owner[row_j] == number)) for number in range(len(plans.parts))]
    q = np.where(unary > -np.inf, np.nan_to_num(marginals, nan=0.5), 0.0)
    share, rounding = np.zeros(len(plans.parts)), np.zeros(len(plans.parts))
    best, best_q = -math.inf, q.copy()
    before = -math.inf
    for _ in range(MAX_SWEEPS):
        for number, part in enumerate(plans.parts):
            if must_stop() and best > -math.inf:
                return _proven(best), best_q
            chosen = mine[number]
            into_i = owner[row_i[chosen]] == number
            near = np.where(into_i, row_i[chosen], row_j[chosen])
            far = np.where(into_i, row_j[chosen], row_i[chosen])
            fields = np.bincount(near, value[chosen] * q[far], num_rows).astype(np.float64)[part.rows]
            found = part.moments(
                np.where(fields < FORBIDDEN, -np.inf, unary[part.rows] + fields), model.pairwise.flat[part.pairs]
            )
            if found.log_z > -math.inf:
                fields = np.where(fields < FORBIDDEN, 0.0, fields)  # q is 0 there
            else:
                found = part.moments(unary[part.rows] + fields, model.pairwise.flat[part.pairs])
            if found.log_z == -math.inf:
                return _proven(best), best_q
            q[part.rows] = found.marginals[: len(part.rows)]
            share[number] = found.log_z - float(fields @ q[part.rows])
            size = float(np.abs(fields * q[part.rows]).sum())
            rounding[number] = found.error + (ROUNDINGS * EPS + 4 * found.error) * (size + 1.0)
        terms = value * q[row_i] * q[row_j]
        total = float(model.constant + share.sum() + terms.sum())
        error = float(
            rounding.sum()
            + (ROUNDINGS * EPS + 8 * rounding.max(initial=0.0))
            * (np.abs(terms).sum() + np.abs(share).sum() + abs(model.constant))
        )
        if total - error > best:
            best, best_q = total - error, q.copy()
        if not total > before + LEAST_GAIN:
            break
        before = total
    return _proven(best), best_q


def _proven(bound: float) -> float:
    """A bound that has a hard zero in it proves nothing."""
    return bound if bound > -HARD / 2 else -math.inf


def _upper_bound(
    model: Model,
    plans: _Plans,
    unary: Floats,
    shifts: list[Floats],
    max_evaluations: int,
    must_stop: Callable[[], bool],
) -> tuple[float, Floats, list[Floats]]:
    """The mean over subgraphs, minimised over how the potentials are shared out; also the mean marginals and the shifts
    of the potentials reached."""
    subgraphs, num_graphs = plans.subgraphs, len(plans.subgraphs)
    num_rows, num_pairs = len(unary), len(model.pairwise.flat)
    flat = model.pairwise.flat
    count = np.repeat(plans.counts, np.diff(model.pairwise.start)).astype(np.float64)
    # each subgraph has an equal share of the unary potentials, and each edge is shared by the subgraphs that have it
    shared = flat * (num_graphs / count)
    finite = np.concatenate([np.isfinite(unary), np.isfinite(flat)])
    tables = np.concatenate(
        [np.repeat(np.arange(model.num_variables), model.num_states), model.num_variables + _edge_of_entry(model)]
    )
    sizes = [num_rows + len(graph.pairs) for graph in subgraphs]
    bounds = offsets(np.array(sizes))
    owned = [np.concatenate([np.arange(num_rows), num_rows + graph.pairs]) for graph in subgraphs]
    every = np.concatenate(owned)
    mean_over = np.bincount(every, minlength=num_rows + num_pairs)
    weights = 1.0 / np.maximum(mean_over, 1)
    best, best_beliefs = math.inf, np.zeros(num_rows)
    best_shift = (
        np.concatenate(shifts)
        if len(shifts) == num_graphs and sum(map(len, shifts)) == bounds[-1]
        else np.zeros(int(bounds[-1]))
    )

    def evaluate(x: Floats) -> tuple[float, Floats]:
        nonlocal best, best_beliefs, best_shift
        centred = x - (np.bincount(every, x, num_rows + num_pairs) * weights)[every]
        total, error, gradient = 0.0, 0.0, np.empty(len(x))
        used = np.zeros(num_rows + num_pairs)
        largest = np.zeros(num_rows + num_pairs)
        for k, graph in enumerate(subgraphs):
            shift = centred[bounds[k] : bounds[k + 1]]
            own = np.concatenate([unary, shared[graph.pairs]]) + np.where(finite[owned[k]], shift, 0.0)
            found = graph.moments(own[:num_rows], own[num_rows:])
            total += found.log_z / num_graphs
            error += found.error / num_graphs
            gradient[bounds[k] : bounds[k + 1]] = found.marginals / num_graphs
            safe = np.where(finite[owned[k]], own, 0.0)
            used[owned[k]] += safe / num_graphs
            largest[owned[k]] = np.maximum(largest[owned[k]], np.abs(safe))
        if not math.isfinite(total):
            if total == -math.inf and np.isfinite(x).all():  # no configuration is possible
                best = -math.inf
            return total, np.zeros(len(x))
        # what the shares add up to is the model only up to rounding, and that is added to the bound
        off = (
            np.abs(np.where(finite, np.concatenate([unary, flat]), 0.0) - used)
            + (ROUNDINGS + num_graphs) * EPS * largest
        )
        worst = np.zeros(model.num_variables + model.num_edges)
        np.maximum.at(worst, tables, np.where(finite, off, 0.0))
        bound = (
            total
            + model.constant
            + error
            + float(worst.sum())
            + (ROUNDINGS + num_graphs) * EPS * (abs(total) + abs(model.constant))
        )
        if bound < best or math.isinf(best):
            best, best_shift = min(best, bound), centred
            best_beliefs = np.mean([gradient[first : first + num_rows] * num_graphs for first in bounds[:-1]], axis=0)
        gradient -= (np.bincount(every, gradient, num_rows + num_pairs) * weights)[every]
        return total, np.where(finite[every], gradient, 0.0)

    descend(evaluate, best_shift, 1 if num_graphs == 1 else max_evaluations, must_stop)
    return best, best_beliefs, [best_shift[bounds[k] : bounds[k + 1]] for k in range(num_graphs)]


def descend(
    evaluate: Callable[[Floats], tuple[float, Floats]], x: Floats, max_evaluations: int, must_stop: Callable[[], bool]
) -> None:
    """Minimise a convex function, given with its gradient, by L-BFGS; the function itself keeps what it has found."""
    value, gradient = evaluate(x)
    steps: list[tuple[Floats, Floats, float]] = []
    evaluations, length = 1, FIRST_STEP / max(1e-12, float(np.abs(gradient).max(initial=0.0)))
    while evaluations < max_evaluations and math.isfinite(value) and not must_stop():
        direction = -_inverse_hessian(steps, gradient, length)
        slope = _dot(gradient, direction)
        if slope > -LEAST_SLOPE:
            return
        size = 1.0
        while evaluations < max_evaluations and not must_stop():
            moved = x + size * direction
            value_there, gradient_there = evaluate(moved)
            evaluations += 1
            if value_there <= value + SUFFICIENT * size * slope:
                break
            size /= 3
        else:
            return
        step, change = moved - x, gradient_there - gradient
        curvature = _dot(step, change)
        if curvature > 1e-14 * _dot(change, change) > 0.0:
            steps = [*steps[1 - MEMORY :], (step, change, curvature)]
        x, value, gradient = moved, value_there, gradient_there


def _inverse_hessian(steps: list[tuple[Floats, Floats, float]], gradient: Floats, length: float) -> Floats:
    """The two-loop recursion: the gradient times an inverse Hessian that fits the last steps."""
    out = gradient.copy()
    kept = []
    for step, change, curvature in reversed(steps):
        share = _dot(step, out) / curvature
        out -= share * change
        kept.append(share)
    if steps:
        _, change, curvature = steps[-1]
        out *= curvature / _dot(change, change)
    else:
        out *= length
    for (step, change, curvature), share in zip(steps, reversed(kept), strict=True):
        out += (share - _dot(change, out) / curvature) * step
    return out


def _dot(a: Floats, b: Floats) -> float:
    # not `a @ b`: the threads that BLAS starts for a few thousand numbers wait longer for each other than they compute
    return float((a * b).sum())


def _edge_of_entry(model: Model) -> Integers:
    return np.repeat(np.arange(model.num_edges), np.diff(model.pairwise.start))
