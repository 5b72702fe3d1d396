"""The pairwise model that a model with larger factors is equivalent to, exactly: for the methods that pass messages
along edges.

Each factor of three or more variables becomes an auxiliary variable, after the user's own, whose states are the rows of
its table that are not hard zeros; an edge to each variable of the scope allows the rows that agree with its state.
Edges inside a scope are folded into the factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from clampz.model.batch import Batch
from clampz.model.factors import Factor
from clampz.model.model import Model
from clampz.model.results import Estimate, Estimates
from clampz.numerics import EPS, Floats, Integers, largest_size
from clampz.watch import UNLIMITED, Watch


@dataclass(frozen=True, eq=False)
class Equivalent:
    """The pairwise model that says the same as a user's with larger factors, and the way there and back.

    The user's model is not in here: equivalents are kept by their models, and would keep them alive.

    Attributes
    ----------
    model
        The pairwise one: the same variables first, then one for each larger factor.
    edges, scopes
        The edges and the scopes of the factors of the user's model.
    rows
        For each factor, (states, arity) the states of its scope that each state of its variable stands for.
    home
        (m,) for each edge of the user's model its number in the pairwise one, or -1 - f where it is folded into factor
        f.
    rounding
        Bound on what folding has changed in log Z.
    """

    model: Model
    edges: NDArray[np.int32]
    scopes: tuple[tuple[int, ...], ...]
    rows: tuple[Integers, ...]
    home: Integers
    rounding: float

    @classmethod
    def of(cls, whole: Model, watch: Watch = UNLIMITED) -> "Equivalent":
        """Made once per model and kept as long as it.  Raises Overdue where that takes too long."""
        if whole not in _KEPT:
            _KEPT[whole] = cls._made(whole, watch)
        return _KEPT[whole]

    @classmethod
    def _made(cls, whole: Model, watch: Watch) -> "Equivalent":
        n = whole.num_variables
        edge_of = {pair: k for k, pair in enumerate(map(tuple, whole.edges.tolist()))}
        home = np.zeros(whole.num_edges, dtype=np.int64)
        unary, num_states, rows, edges, tables = [whole.unary.flat], [whole.num_states], [], [], []
        rounding = 0.0
        for f, factor in enumerate(whole.factors):
            watch.check()
            table, size = _with_edges(whole, factor, edge_of, home, f)
            rounding += EPS * size
            allowed = np.argwhere(table > -np.inf)
            if not len(allowed):  # one state, and it is impossible
                allowed = np.zeros((1, table.ndim), dtype=np.int64)
            rows.append(allowed)
            unary.append(table[tuple(allowed.T)])
            num_states.append(np.array([len(allowed)]))
            for p, i in enumerate(factor.scope):
                agrees = np.arange(whole.num_states[i])[:, None] == allowed[None, :, p]
                edges.append((i, n + f))
                tables.append(np.where(agrees, 0.0, -np.inf).ravel())
        kept = np.flatnonzero(home == 0)
        pairs = [whole.pairwise.at(int(k)).ravel() for k in kept]
        model = Model.from_flat(
            np.concatenate(num_states),
            np.concatenate(unary),
            np.concatenate([whole.edges[kept].astype(np.int64), np.array(edges, dtype=np.int64).reshape(-1, 2)]),
            np.concatenate([np.empty(0), *pairs, *tables]),
            constant=whole.constant,
        )
        number = {pair: k for k, pair in enumerate(map(tuple, model.edges.tolist()))}
        home[kept] = [number[tuple(pair)] for pair in whole.edges[kept].tolist()]
        return cls(model, whole.edges, tuple(factor.scope for factor in whole.factors), tuple(rows), home, rounding)

    # -- there ---------------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch) -> Batch:
        """The same lanes of the pairwise model."""
        own = self.model.unary.flat[len(batch.unary) :, None]
        return Batch(self.model, np.concatenate([batch.unary, np.repeat(own, batch.num_lanes, axis=1)]))

    def marginals(self, marginals: Floats) -> Floats:
        """(S', B) marginals of all variables from those (S, B) of the user's: a row of a factor has the product of its
        states, scaled to add up to one."""
        start, parts = self.model.unary.start, [marginals]
        for rows, scope in zip(self.rows, self.scopes, strict=True):
            weight = np.ones((len(rows), marginals.shape[1]))
            for p, i in enumerate(scope):
                weight *= marginals[start[i] + rows[:, p]]
            total = weight.sum(axis=0)
            parts.append(np.where(total > 0, weight / np.where(total > 0, total, 1.0), 1 / len(rows)))
        return np.concatenate(parts)

    # -- and back ------------------------------------------------------------------------------------------------------

    def back(self, whole: Model, estimates: Estimates) -> Estimates:
        """Estimates of the pairwise model as those of the user's: of its variables and edges only, bounds widened by
        what folding may have changed."""
        lower, upper = estimates.lower - self.rounding, estimates.upper + self.rounding
        log_z = {"lower": lower, "upper": upper}.get(estimates.bound or "", estimates.log_z)
        num_rows = len(whole.unary.flat)
        return replace(
            estimates,
            model=whole,
            log_z=log_z,
            lower=lower,
            upper=upper,
            marginals_flat=np.ascontiguousarray(estimates.marginals_flat[:num_rows]),
            state=EquivalentState(self, estimates),
        )


# Equivalents of models that are still in use: no value may lead to its key.
_KEPT: WeakKeyDictionary[Model, Equivalent] = WeakKeyDictionary()


def _with_edges(
    whole: Model, factor: Factor, edge_of: dict[tuple[int, ...], int], home: Integers, f: int
) -> tuple[Floats, float]:
    """A factor's table with the edges inside its scope that are in no earlier factor added; and the additions into an
    entry, times how large its terms were."""
    table, size, additions = factor.table, largest_size(factor.table), 0
    for b in range(len(factor.scope)):
        for a in range(b):
            k = edge_of.get((factor.scope[a], factor.scope[b]))
            if k is None or home[k] != 0:
                continue
            home[k] = -1 - f
            pair = whole.pairwise.at(k)
            shape = [1] * len(factor.scope)
            shape[a], shape[b] = pair.shape
            table = table + pair.reshape(shape)
            size += largest_size(pair)
            additions += 1
    return table, additions * size


@dataclass(frozen=True, eq=False)
class EquivalentState:
    """What a method ended with on the pairwise model."""

    equivalent: Equivalent
    estimates: Estimates

    def take(self, lanes: Integers) -> "EquivalentState":
        """The same for some of the lanes."""
        return EquivalentState(self.equivalent, self.estimates.take(lanes))

    def join(self, others: Sequence["EquivalentState"]) -> "EquivalentState":
        """These lanes followed by those of others."""
        return EquivalentState(self.equivalent, self.estimates.join([other.estimates for other in others]))

    @property
    def rho(self) -> Floats | None:
        """The edge weights of TRW, in the order of the pairwise model's edges."""
        return self.estimates.state.rho

    def pairwise(self, lane: int) -> Floats:
        """Pairwise marginals of the user's edges: those of the pairwise model, or sums over the rows of the factor that
        an edge was folded into."""
        equivalent, num_states = self.equivalent, self.equivalent.model.num_states
        found = self.estimates.state.pairwise(lane)
        start = equivalent.model.pairwise.start
        factors = equivalent.model.unary.start[len(num_states) - len(equivalent.scopes) :]
        out: list[NDArray[Any]] = [np.empty(0)]
        for home, (i, j) in zip(equivalent.home.tolist(), equivalent.edges.tolist(), strict=True):
            if home >= 0:
                out.append(found[start[home] : start[home + 1]])
                continue
            f = -1 - home
            scope, rows = equivalent.scopes[f], equivalent.rows[f]
            weight = self.estimates.marginals_flat[factors[f] : factors[f + 1], lane]
            pair = rows[:, scope.index(i)] * num_states[j] + rows[:, scope.index(j)]
            out.append(np.bincount(pair, weight, int(num_states[i] * num_states[j])))
        return np.concatenate(out)


def pairwise_model(model: Model) -> tuple[Model, float]:
    """The model itself, or the pairwise one it is equivalent to, and what rounding may have changed in log Z."""
    if not model.factors:
        return model, 0.0
    equivalent = Equivalent.of(model)
    return equivalent.model, equivalent.rounding


def equivalent_start(equivalent: Equivalent, start: Estimate | Estimates) -> Estimate | Estimates | Floats:
    """A start for the pairwise model from estimates of the user's: those of the pairwise model itself where a method
    ran on it, marginals otherwise."""
    if isinstance(start.state, EquivalentState) and start.state.equivalent is equivalent:
        return start.state.estimates if isinstance(start, Estimates) else start.state.estimates[start.lane]
    flat = start.marginals_flat if isinstance(start, Estimates) else start.marginals.flat[:, None]
    return equivalent.marginals(np.nan_to_num(flat, nan=0.5))
