"""Naive mean field: a lower bound on log Z by coordinate ascent from several starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, Unpack, overload

import numpy as np

from clampz._kernels.approximations.mean_field import binary as binary_kernels
from clampz._kernels.approximations.mean_field import factors as factor_kernels
from clampz._kernels.approximations.mean_field import tables as table_kernels
from clampz._kernels.approximations.mean_field.feasible_start import feasible_configuration
from clampz._kernels.approximations.mean_field.tables import HARD
from clampz.approximations.iteration import NO_CONFIGURATION, Endings, iterate
from clampz.approximations.lanes import PART, Evaluation, Lanes, in_classes
from clampz.approximations.layouts import BinaryLayout, FactorLayout, TableLayout, layout_of
from clampz.approximations.restarts import best_of_starts, solve_in_blocks
from clampz.method import AnyBeta, AnySets, CallKeywords, Method, OneBeta, OneSet, approximation
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.pairwise_equivalent import FactorRows
from clampz.model.results import NO_RESULT, Estimate, Estimates
from clampz.model.tables import has_hard_zeros, lane_sums, take_lanes
from clampz.model.warm_starts import Start, start_marginals
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import Budget
from clampz.runtime.options import FINE, OptionKeywords, Options, check_option, check_whole
from clampz.runtime.workers import Workers, cut

# Steps of the search for a configuration that no hard zero forbids, before mean field gives up on a lane.
MAX_SEARCH = 200_000
FieldLayout = BinaryLayout | TableLayout | FactorLayout

# Stands for a probability of 0 in logarithms: it is 0 again beside any other, and all are even where it is alone.
LEAST = 1e-323

# Random starts at most: beyond, memory would be what ends a run.
MOST_STARTS = 10**6

# Lanes per block at most: a lane is four times smaller than one of messages, and its sweeps are short.
MAX_BLOCK = 256


class MeanFieldKeywords(OptionKeywords, total=False):
    """The fields of `MeanFieldOptions`, as a call takes them by name."""

    num_starts: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class MeanFieldOptions(Options):
    """Options of mean field.

    Attributes
    ----------
    tol
        In nats: what the bound gained since it was last looked at (1 to 50 sweeps earlier).
    num_starts
        Random starts, solved as lanes; the best one counts.  A `start` given to the call comes on top of them.
    seed
        Of the random starts: every lane has the same ones.
    """

    num_starts: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("num_starts", self.num_starts, 0, most=MOST_STARTS)
        check_whole("seed", self.seed, 0)

    def finely(self) -> "MeanFieldOptions":
        """Return options with a tolerance for derivatives: the bound's gain is of second order in the marginals'
        change."""
        return replace(self, tol=min(self.tol, FINE**2))


class MeanFieldCall(MeanFieldKeywords, CallKeywords, total=False):
    """What a call of `mean_field` takes by name, beside evidence and beta."""

    options: MeanFieldOptions | None


class MeanFieldMethod(Method[MeanFieldOptions]):
    """The method `mean_field`, with its options typed."""

    @overload  # type: ignore[override]
    def __call__(  # type: ignore[overload-overlap]
        self, model: Model, *, evidence: OneSet = None, beta: OneBeta = None, **given: Unpack[MeanFieldCall]
    ) -> Estimate: ...
    @overload
    def __call__(
        self, model: Model | Batch, *, evidence: AnySets = None, beta: AnyBeta = None, **given: Unpack[MeanFieldCall]
    ) -> Estimates: ...
    def __call__(self, *unnamed: Any, **given: Any) -> Any:
        return super().__call__(*unnamed, **given)


@approximation(MeanFieldMethod, MeanFieldOptions, takes_factors=True)
def mean_field(batch: Batch, options: MeanFieldOptions, start: Start | None, budget: Budget) -> Estimates:
    """Naive mean field: `log_z` is a lower bound on log Z, at every iteration.

    Coordinate ascent from `num_starts` random points and from `start` if one is given; the best counts. With hard zeros
    a configuration that none of them forbids is searched for, and is a start too. Where none is found `lower` is -inf,
    and the note says so. Options: see `MeanFieldOptions`.

    >>> from clampz import generators, mean_field
    >>> mean_field(generators.cycle(3, theta=0, weights=-4.0)).bound
    'lower'
    """
    layout = FactorLayout.from_batch(batch, budget) if batch.model.factors else layout_of(batch, budget)
    starts = _starts(layout, batch, options, start, budget)

    def run(block: MeanFieldLanes, numbers: Integers) -> Endings:
        return iterate(block, options, budget, method="mean_field", residual_of=lambda look: look.slack)

    with Workers(options.num_threads) as pool:

        def solve(points: Floats) -> Endings:
            return solve_in_blocks(FIELDS[type(layout)](layout, points, pool), run, budget, MAX_BLOCK)

        best = best_of_starts(starts, batch.num_lanes, len(layout.theta), solve, _merit, budget)
    return _estimates(batch, options, layout, best)


def _merit(ending: Endings) -> Floats:
    return np.where(np.isfinite(ending.value), ending.value, -np.inf)


class MeanFieldLanes(Lanes):
    """Mean-field probabilities of a block of lanes. `constant` (B,) is what the kernels leave out, `weight` the
    pairwise potentials as they want them."""

    def __init__(self, layout: FieldLayout, point: Floats, workers: Workers) -> None:
        """Hold `point`, with a multiple of the layout's lanes: the starts of lane 0, then those of lane 1, and so
        on."""
        self.point = np.ascontiguousarray(point)
        self.layout = layout.take(np.repeat(np.arange(layout.num_lanes), point.shape[1] // layout.num_lanes))
        self.workers = workers
        self.last_value = np.full(point.shape[1], -np.inf)
        self.keep = np.ones(point.shape[1])
        self.weight = self._weight()
        self.constant = self._constant()

    def take(self, lanes: Integers, workers: Workers | None = None) -> Self:
        taken = super().take(lanes, workers)
        taken.last_value, taken.constant = self.last_value[lanes], self.constant[lanes]
        return taken

    def _weight(self) -> Floats:
        weight: Floats = np.maximum(self.layout.table, -HARD)
        return weight

    def _constant(self) -> Floats:
        constant: Floats = self.layout.constant
        return constant

    def _arrays(self) -> tuple[Any, ...]:
        return self.point, self.layout.theta, self.weight, self.layout.graph

    @cached_property
    def ranges(self) -> Integers:
        """(k, 3) return the colour classes of the core, then the pendant trees."""
        topology = self.layout.topology
        return np.concatenate(
            [in_classes(topology.class_start), _out_and_back([(topology.num_core, topology.num_variables)])]
        )

    def _sweep_pendants(self, budget: Budget) -> None:
        topology, arrays = self.layout.topology, self._arrays()
        for way in _out_and_back(self._stretches(topology.num_core, topology.num_variables)):
            if budget.must_stop():
                return
            self.kernels.sweep(way[None], 1, *arrays)

    def evaluate(self, budget: Budget) -> Evaluation:
        """Evaluate the bound at the current point; `slack` is its gain since the last evaluation."""
        size = self.layout.topology.num_variables
        entries = self.table_entries // max(1, size)
        terms = self._terms(self.kernels.value_terms, size, *self._arrays(), budget=budget, entries=entries)
        return self._gained(terms)

    def _gained(self, parts: list[Floats]) -> Evaluation:
        look = Evaluation.summed(parts, self.constant, self.layout.magnitude)
        gained = np.maximum(look.value - self.last_value, 0.0)
        self.last_value = look.value
        return look._replace(slack=gained, drift=gained)


def _out_and_back(stretches: list[tuple[int, int]]) -> Integers:
    """(k, 3) list pendant slots one by one, outwards from the core and back."""
    outwards = [(last - 1, first - 1, -1) for first, last in reversed(stretches)]
    return np.array(outwards + [(first, last, 1) for first, last in stretches], dtype=np.int64).reshape(-1, 3)


class BinaryField(MeanFieldLanes):
    """Mean-field lanes of a binary model; the arrays are those of `_kernels.approximations.mean_field.binary`."""

    kernels = binary_kernels
    layout: BinaryLayout

    def _weight(self) -> Floats:
        return self.layout.W[self.layout.topology.edge_of_message]

    def _constant(self) -> Floats:
        """Add W_ij / 4 for every edge between free variables to the layout's constant."""
        layout = self.layout
        if not layout.free.size:
            return layout.constant + float(layout.W.sum()) / 4
        i, j = layout.topology.slot_of[layout.topology.edges].T
        return layout.constant + lane_sums(layout.W[:, None] * layout.free[i] * layout.free[j]) / 4

    def _arrays(self) -> tuple[Any, ...]:
        return self.point, self.layout.theta, self.weight, self.layout.free, self.layout.graph


class TableField(MeanFieldLanes):
    """Mean-field lanes of any number of labels; the arrays are those of `_kernels.approximations.mean_field.tables`."""

    kernels = table_kernels
    layout: TableLayout | FactorLayout

    @property
    def table_entries(self) -> int:
        return len(self.layout.table)


class FactorField(TableField):
    """Mean-field lanes of factors of any size; the arrays are those of `_kernels.approximations.mean_field.factors`."""

    layout: FactorLayout

    @property
    def table_entries(self) -> int:
        """Count every factor's table for each of its variables, with a product of as many terms."""
        graph = self.layout.graph
        return int(np.diff(graph.table_start) @ np.diff(graph.scope_start) ** 2)

    def sweep(self, num_sweeps: int, budget: Budget) -> None:
        """Update every variable, one after another, `num_sweeps` times."""
        parts = cut(0, len(self.layout.graph.at) - 1, 1 + self.work // PART)
        for _ in range(num_sweeps):
            for part in parts:
                if len(parts) > 1 and budget.must_stop():
                    return
                factor_kernels.update_variables(*part, *self._arrays())

    def evaluate(self, budget: Budget) -> Evaluation:
        """Evaluate the bound at the current point."""
        graph, variables = self.layout.graph, np.zeros((6, self.num_lanes))
        factor_kernels.variable_terms(self.point, self.layout.theta, variables)
        size, arrays = len(graph.scope_start) - 1, (self.point, self.weight, graph)
        entries = self.table_entries // max(1, size)
        factors = self._terms(factor_kernels.factor_terms, size, *arrays, budget=budget, entries=entries)
        return self._gained([variables, *factors])


FIELDS: dict[type, type[MeanFieldLanes]] = {
    BinaryLayout: BinaryField,
    TableLayout: TableField,
    FactorLayout: FactorField,
}


@dataclass(frozen=True, eq=False)
class ProductMarginals:
    """Marginals of edges and factors of a product distribution."""

    model: Model
    marginals_flat: Floats
    rho: ClassVar[None] = None

    def take(self, lanes: Integers) -> "ProductMarginals":
        """Select lanes."""
        return ProductMarginals(self.model, take_lanes(self.marginals_flat, lanes))

    def join(self, others: Sequence["ProductMarginals"]) -> "ProductMarginals":
        """Append the lanes of others."""
        return ProductMarginals(self.model, np.concatenate([part.marginals_flat for part in (self, *others)], axis=1))

    def pairwise(self, lane: int) -> Floats:
        """Compute q_i(a) q_j(b), laid out as the model's pairwise tables."""
        tables, start = self.model.pairwise, self.model.unary.start
        _, edge, a, b = tables.entries(np.arange(len(tables)))
        i, j = tables.edges[edge].T
        q = self.marginals_flat[:, lane]
        product: Floats = q[start[i] + a] * q[start[j] + b]
        return product

    def factors(self, lane: int) -> Floats:
        """Compute the products of marginals, laid out as the larger factors."""
        factors = self.model.factors
        rows = FactorRows.of(factors, np.zeros(len(factors.flat)))  # all of them, hard zeros too
        product: Floats = rows.products(self.marginals_flat[:, [lane]], self.model.unary.start)[:, 0]
        return product


def _starts(
    layout: FieldLayout, batch: Batch, options: MeanFieldOptions, start: Start | None, budget: Budget
) -> list[Callable[[], Floats]]:
    """List functions that make points (rows, lanes) to start from: the caller's, a feasible one, random ones."""
    starts: list[Callable[[], Floats]] = []
    if start is not None:
        given = start_marginals(batch, start)
        starts.append(lambda: _as_point(layout, given))
    tables = layout.pairwise if isinstance(layout, FactorLayout) else layout
    if isinstance(tables, TableLayout) and has_hard_zeros(tables.table):
        starts.append(lambda: _as_point(layout, _feasible_starts(tables, budget)[: len(batch.unary)]))
    rng = np.random.default_rng(options.seed)
    begin, sizes = batch.model.unary.start[:-1], batch.model.num_states

    def random() -> Floats:
        weight = rng.exponential(size=len(batch.unary))  # uniform over the simplex once normalised
        weight /= np.repeat(np.add.reduceat(weight, begin), sizes) if len(sizes) else 1.0
        return _as_point(layout, weight[:, None])

    starts += [random] * options.num_starts
    check_option(bool(starts), "num_starts", "at least 1 where no `start` is given", options.num_starts)
    return starts


def _as_point(layout: FieldLayout, marginals: Floats) -> Floats:
    """Turn marginals (S, lanes) into a point of the kernels; even odds where they are nan, 0 where a state is out. What
    is left of a variable's states adds up to 1: a sweep may be stopped before it comes to them all, and no point but a
    distribution has a value that is a bound."""
    marginals = np.nan_to_num(marginals, nan=0.5)
    if not isinstance(layout, BinaryLayout):
        possible = layout.theta > -np.inf
        point = np.where(possible, np.log(np.maximum(marginals[layout.rows], LEAST)), -np.inf)
        table_kernels.softmax_all(point, layout.graph.state_start.copy())  # as kernels are compiled: open to writing
        return point
    point = marginals[1::2][layout.topology.variable_of] - 0.5
    return point * layout.free if layout.free.size else point


def _feasible_starts(layout: TableLayout, budget: Budget) -> Floats:
    """(S, B) find a configuration without hard zeros per lane, as probabilities of 0 and 1 in variable order. Even odds
    where none was found, or not in time."""
    out = np.full_like(layout.theta, 0.5)
    table = np.maximum(layout.table, -HARD)
    for b in range(layout.num_lanes):
        if budget.is_cancelled():
            break
        theta = np.ascontiguousarray(layout.theta[:, b])
        found = budget.run(feasible_configuration, theta > -np.inf, theta, layout.graph, table, MAX_SEARCH)
        if len(found):
            out[:, b] = 0.0
            out[layout.graph.state_start[:-1] + found, b] = 1.0
    return layout.in_variable_order(out)


def _estimates(batch: Batch, options: MeanFieldOptions, layout: FieldLayout, ending: Endings) -> Estimates:
    """Make the estimates of lanes that have ended."""
    point = ending.point
    marginals = (
        layout.marginals(0.5 + point, 0.5 - point)
        if isinstance(layout, BinaryLayout)
        else layout.in_variable_order(point)
    )
    empty = layout.constant == -np.inf
    unseen = ending.unseen & ~empty
    value = np.where(np.isfinite(ending.value), ending.value, -np.inf)
    stuck = (value < -HARD / 2) | empty
    note = "no configuration without a hard zero was found to start from, so nothing is proven: lower is -inf"
    notes = [
        NO_CONFIGURATION if e else NO_RESULT if u else note if s else ""
        for e, u, s in zip(empty, unseen, stuck, strict=True)
    ]
    value = np.where(stuck, -np.inf, value)
    marginals[:, stuck] = np.nan
    lower = np.where(stuck, -np.inf, value - ending.rounding)
    return Estimates(
        method="mean_field",
        model=batch.model,
        log_z=np.where(unseen, np.nan, lower),
        bound="lower",
        lower=lower,
        upper=np.where(empty, -np.inf, np.inf),
        value=np.where(unseen, np.nan, value),
        marginals_flat=marginals,
        converged=ending.converged & ~stuck | empty,
        num_iter=ending.num_iter,
        residual=np.where(empty, 0.0, ending.residual),
        stopped_by=[reason or "tol" for reason in ending.stopped_by],
        options=options,
        notes=notes,
        state=ProductMarginals(batch.model, marginals),
    )
