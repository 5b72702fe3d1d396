"""The mean log-likelihood of rows of data, its gradient, and bounds on it.

    log p(row) = log Z(given what the row has) - log Z

where the first term of a row without missing values is its score.  Both terms are lanes: evidence rules states out, and
inputs of a row are added to its unary potentials.  The gradient is marginals given the row minus marginals.
"""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw
from clampz.display.formatting import Bound
from clampz.errors import EvidenceError, ModelError, OptionError, shown
from clampz.learning.data_rows import Rows
from clampz.learning.parameters import tables_of
from clampz.method import Method
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.checks import LARGEST_POTENTIAL
from clampz.model.results import Estimates
from clampz.model.variables import MISSING
from clampz.numerics import EPS, ROUNDINGS, Floats, Integers, largest_size
from clampz.runtime.budget import Budget, Cancelled
from clampz.runtime.options import Options

# Entries of the tables of all lanes that are solved together, and of those whose results are kept to go on from.
LANE_ENTRIES, KEPT_ENTRIES = 2**21, 2**24


class LaneSums(NamedTuple):
    """Sums over lanes of log Z, of its lower and upper ends, and of absolute values, which bound the rounding."""

    log_z: float = 0.0
    lower: float = 0.0
    upper: float = 0.0
    size: float = 0.0


class ObjectiveValue(NamedTuple):
    """The mean log-likelihood with its bounds, before any penalty, and its derivatives by tables and input weights."""

    log_likelihood: float
    lower: float
    upper: float
    by_tables: Floats
    by_inputs: Floats | None


# The value of a run that ended before there was one: no probability is above 1.
UNKNOWN = ObjectiveValue(math.nan, -math.inf, 0.0, np.zeros(0), None)


class Inputs:
    """Inputs of each row: unary potentials (N, S) to add, or covariates (N, n, D) with shared weights (D, L)."""

    def __init__(self, model: Model, values: ArrayLike, num_rows: int) -> None:
        try:
            self.values = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError(f"inputs: expected numbers in a rectangular array, found {shown(values)}") from None
        shape, n, num_states = self.values.shape, model.num_variables, len(model.unary.flat)
        self.has_weights = len(shape) == 3
        if not (shape == (num_rows, num_states) or (self.has_weights and shape[:2] == (num_rows, n))):
            raise OptionError(
                f"inputs: expected shape ({num_rows}, {num_states}), potentials of every state for each row, or "
                f"({num_rows}, {n}, covariates), found {shape}"
            )
        if not np.isfinite(self.values).all():
            raise OptionError("inputs: expected finite numbers, found nan or inf")
        if self.has_weights and len(set(model.num_states.tolist())) > 1:
            raise OptionError("inputs: covariates need variables with the same number of states; these differ")
        self.shape = (shape[2], int(model.num_states[0])) if self.has_weights and n else (0, 0)

    def potentials(self, rows: Integers, weights: Floats | None) -> Floats:
        """Return (rows, S) what inputs add to the unary potentials of some rows."""
        values = self.values[rows]
        return values if weights is None else (values @ weights).reshape(len(rows), -1)

    def by_weights(self, rows: Integers, marginals: Floats) -> Floats:
        """Return (D, L) the derivative by the weights, from marginals (S, rows)."""
        per_variable = marginals.T.reshape(len(rows), self.values.shape[1], self.shape[1])
        derivative: Floats = np.einsum("rid,ria->da", self.values[rows], per_variable)
        return derivative


class Cases:
    """Distinct rows of data with their counts; rows with inputs stay apart.

    Attributes
    ----------
    rows, weight
        (U, n) different rows, and (U,) how often each is there.
    whole, partial
        Those without missing values, and the others.
    counts, chosen
        (E,) how often rows without missing values choose each table entry; and the entries that are chosen at all.
    """

    def __init__(self, model: Model, rows: Rows, inputs: Inputs | None, budget: Budget) -> None:
        self.num_rows, self.inputs, self.budget = len(rows), inputs, budget
        self.rows, self.weight, number = rows, np.ones(len(rows)), np.arange(len(rows))
        if inputs is None and rows.size:
            # (each row as one lump of bytes: along an axis, NumPy makes a field of every variable)
            lumps = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
            _, number, count = np.unique(lumps.ravel(), return_index=True, return_counts=True)
            self.rows, self.weight = rows[number], count.astype(np.float64)
        self.number = number
        has_missing = (self.rows == MISSING).any(axis=1)
        self.whole, self.partial = np.flatnonzero(~has_missing), np.flatnonzero(has_missing)
        self.model = model
        self.of_entry = np.repeat(np.arange(model.num_variables), model.num_states)
        self.state_of_entry = np.arange(len(self.of_entry)) - model.unary.start[self.of_entry]
        self.never_seen = bool((self.rows == MISSING).all(axis=0).any())

    @cached_property
    def counts(self) -> Floats:
        """How often rows choose each table entry; rows of probability zero are refused."""
        counts = [np.zeros(len(flat)) for flat in tables_of(self.model)]
        impossible = []
        num_tables = self.model.num_variables + self.model.num_edges + len(self.model.factors.variables)
        for block in in_blocks(self.whole, num_tables):
            self.budget.check_stop()
            impossible.append(block[self.model.scores(self.rows[block]) == -np.inf])
            add_chosen_entries(self.model, self.rows[block], self.weight[block], counts)
        if any(map(len, impossible)):
            self.refuse(np.concatenate(impossible))
        return np.concatenate(counts)

    @cached_property
    def chosen(self) -> Integers:
        return np.flatnonzero(self.counts)

    def refuse(self, cases: Integers) -> None:
        raise EvidenceError(
            f"data, row {self.number[cases].min()}: the model gives it probability zero, and hard zeros stay hard zeros"
        )

    def allowed(self, cases: Integers) -> NDArray[np.bool_]:
        """Return (S, cases) the states that rows leave possible."""
        states = self.rows[cases][:, self.of_entry]
        possible: NDArray[np.bool_] = (states == MISSING) | (states == self.state_of_entry)
        return possible.T


def add_chosen_entries(model: Model, rows: Rows, weight: Floats, counts: list[Floats]) -> None:
    """Add to `counts` how often weighted configurations (N, n) choose each entry of the tables of each kind."""
    larger, (i, j) = model.factors, model.edges.T
    x = rows.astype(np.int64)
    places = [model.unary.start[:-1] + x, model.pairwise.start[:-1] + x[:, i] * model.num_states[j] + x[:, j]]
    if larger:
        inside = np.add.reduceat(x[:, larger.variables] * larger.strides, larger.scope_start[:-1], axis=1)
        places.append(larger.start[:-1] + inside)
    for count, place in zip(counts, places, strict=False):
        if place.size:
            count += np.bincount(place.ravel(), np.repeat(weight, place.shape[1]), len(count))


def in_blocks(numbers: Integers, num_entries: int) -> Iterator[Integers]:
    """Yield blocks of numbers, each of `num_entries` table entries, that are solved together."""
    step = max(1, LANE_ENTRIES // max(1, num_entries))
    yield from (numbers[begin : begin + step] for begin in range(0, len(numbers), step))


class Objective:
    """The mean log-likelihood of some rows as a function of a model's tables and of the weights of inputs.

    The model is one without a constant, which counts for nothing.  `method` is the one for log Z; for log Z given a
    row, which counts with the other sign, it is mean field where the method is an upper bound, so that the whole is a
    certified lower one.
    """

    def __init__(self, model: Model, cases: Cases, method: Method[Any], options: Options, budget: Budget) -> None:
        self.model, self.cases, self.budget = model, cases, budget
        self.num_entries = sum(map(len, tables_of(model)))
        self.method, self.options = method, options
        self.below: Method[Any] = method
        self.below_options: Options = options
        if is_upper(method):
            self.below, self.below_options = mean_field, mean_field.options(None, {"threads": options.threads})
        self.starts: dict[tuple[str, int], Estimates] = {}

    @property
    def bound(self) -> Bound | None:
        """What the value is: "lower", "upper", "exact" or None."""
        if self.method.name == "exact":
            return "exact"
        if is_upper(self.method):
            return "lower"
        return "upper" if self.method.name == "mean_field" and not len(self.cases.partial) else None

    def at(self, model: Model, weights: Floats | None, *, gradient: bool = True, both: bool = False) -> ObjectiveValue:
        """Return the value for a model's tables and weights of inputs.

        With `both`, bounds that the method does not give are those of mean field and TRW.  Raises Cancelled where the
        budget is over before that.
        """
        cases, inputs = self.cases, self.cases.inputs
        by_tables = cases.counts.copy()
        by_inputs = np.zeros(inputs.shape) if inputs is not None and inputs.has_weights else None
        self.budget.check_stop()
        whole = self._scores(model, weights, by_inputs)
        self.budget.check_stop()
        gradients = (by_tables, by_inputs) if gradient else None
        given = self._summed("given", model, weights, gradients, both)
        all_of = self._summed("all", model, weights, gradients, both)
        size = 2 * ROUNDINGS * EPS * (whole.size + given.size + all_of.size)
        N = cases.num_rows
        return ObjectiveValue(
            (whole.log_z + given.log_z - all_of.log_z) / N,
            (whole.lower + given.lower - all_of.upper - size) / N,
            # (probabilities of states are at most 1)
            min(0.0, (whole.upper + given.upper - all_of.lower + size) / N),
            by_tables / N,
            None if by_inputs is None else by_inputs / N,
        )

    def _scores(self, model: Model, weights: Floats | None, by_inputs: Floats | None) -> LaneSums:
        """Return the sum of the scores of rows without missing values, and add their derivatives by inputs."""
        cases, inputs = self.cases, self.cases.inputs
        terms = cases.counts[cases.chosen] * np.concatenate(tables_of(model))[cases.chosen]
        total, size = float(terms.sum()), float(np.abs(terms).sum())
        if inputs is not None:
            for block in in_blocks(cases.whole, self.num_entries):
                self.budget.check_stop()
                states = cases.allowed(block)
                added = np.where(states, inputs.potentials(block, weights).T, 0.0)
                total, size = total + float(added.sum()), size + float(np.abs(added).sum())
                if by_inputs is not None:
                    by_inputs += inputs.by_weights(block, states.astype(np.float64))
        return LaneSums(total, total, total, size)

    def _lanes(self, what: str, model: Model, weights: Floats | None) -> Iterator[tuple[Integers, Floats, Batch]]:
        """Yield cases, their weights and a batch, for log Z "given" rows with missing values, or "all" of log Z."""
        cases, inputs = self.cases, self.cases.inputs
        if what == "all" and inputs is None:
            yield np.zeros(0, dtype=np.int64), np.array([float(cases.num_rows)]), Batch.of(model)
            return
        for block in in_blocks(cases.partial if what == "given" else np.arange(len(cases.rows)), self.num_entries):
            unary = np.repeat(model.unary.flat[:, None], len(block), axis=1)
            if inputs is not None:
                unary += inputs.potentials(block, weights).T
            if what == "given":
                unary[~cases.allowed(block)] = -np.inf
            yield block, cases.weight[block], Batch(model, unary)

    def _summed(
        self,
        what: str,
        model: Model,
        weights: Floats | None,
        gradients: tuple[Floats, Floats | None] | None,
        both: bool,
    ) -> LaneSums:
        """Return sums of log Z over lanes, and add or subtract their marginals in the derivatives."""
        method, options = (self.below, self.below_options) if what == "given" else (self.method, self.options)
        sums, sign = LaneSums(), 1.0 if what == "given" else -1.0
        for b, (block, weight, batch) in enumerate(self._lanes(what, model, weights)):
            found = self._solved(method, options, batch, (what, b), keep=gradients is not None)
            if (found.log_z == -np.inf).any() and block.size:
                self.cases.refuse(block[found.log_z == -np.inf])
            lower, upper = self._ends(found, batch, both)
            of_block = [float((weight * ends).sum()) for ends in (found.log_z, lower, upper, np.abs(found.log_z))]
            sums = LaneSums(*(old + new for old, new in zip(sums, of_block, strict=True)))
            if gradients is not None:
                self._add_marginals(found, sign * weight, block, *gradients)
        return sums

    def _solved(
        self, method: Method[Any], options: Options, batch: Batch, key: tuple[str, int], keep: bool
    ) -> Estimates:
        """Solve lanes by a method, from those of the evaluation before; raise Cancelled where they are not finished."""
        self.budget.check_stop()
        found = method.solve(batch, options, self.starts.get(key), within=self.budget)
        # (what a bound is worth shows at once; an estimate that has not converged may seem better than it is)
        enough = ~np.isnan(found.log_z) if is_upper(self.method) else found.converged
        if self.budget.must_stop() and not enough.all():
            raise Cancelled
        if keep and method.name != "exact" and len(self.cases.rows) * self.num_entries <= KEPT_ENTRIES:
            self.starts[key] = found
        return found

    def _ends(self, found: Estimates, batch: Batch, both: bool) -> tuple[Floats, Floats]:
        """Return certified ends of each lane; mean field and TRW give those that are missing, if there is time."""
        lower, upper = found.lower, found.upper
        limits = {"threads": self.options.threads}
        if both and (lower == -np.inf).any() and not self.budget.must_stop():
            lower = np.maximum(
                lower, mean_field.solve(batch, mean_field.options(None, limits), within=self.budget).lower
            )
        if both and (upper == np.inf).any() and not self.budget.must_stop():
            upper = np.minimum(upper, trw.solve(batch, trw.options(None, limits), within=self.budget).upper)
        return lower, upper

    def _add_marginals(
        self, found: Estimates, weight: Floats, block: Integers, by_tables: Floats, by_inputs: Floats | None
    ) -> None:
        """Add weighted marginals of lanes to the derivatives by tables and by inputs."""
        unary, pairs, factors = (len(flat) for flat in tables_of(self.model))
        by_tables[:unary] += (found.marginals_flat * weight).sum(axis=1)
        for lane, times in enumerate(weight):
            if pairs:
                by_tables[unary : unary + pairs] += times * found.pairwise_marginals[lane].flat
            if factors:
                by_tables[unary + pairs :] += times * found.factor_marginals[lane].flat
        if by_inputs is not None and self.cases.inputs is not None:
            by_inputs += self.cases.inputs.by_weights(block, found.marginals_flat * weight)


def is_upper(method: Method[Any]) -> bool:
    """Return whether a method's log Z is an upper bound."""
    return method.name in ("trw", "mini_buckets")


def checked(model: Model) -> Model:
    """Return the model, refused where its potentials are too large to compute with."""
    if not max(largest_size(flat) for flat in tables_of(model)) <= LARGEST_POTENTIAL:
        raise ModelError(
            f"parameters: potentials beyond {LARGEST_POTENTIAL:g}; features are too large, or l2 too small"
        )
    return model


def likelihood_of(objective: Objective, point: ObjectiveValue) -> dict[str, Any]:
    """Return the fields of a `Likelihood`."""
    ends = {"lower": point.lower, "upper": point.upper}
    bound = None if np.isnan(point.log_likelihood) else objective.bound
    return {
        "method": objective.method.name,
        "num_rows": objective.cases.num_rows,
        "log_likelihood": ends.get(bound or "", point.log_likelihood),
        "bound": bound,
        **ends,
    }


def without_constant(model: Model) -> Model:
    """Return a model without its constant, which counts for nothing in a likelihood."""
    return Model.from_contents(model.contents._replace(constant=0.0))
