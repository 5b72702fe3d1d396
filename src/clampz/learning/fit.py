"""`fit`: maximise the mean log-likelihood of data over potentials, by L-BFGS."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from clampz.approximations.registry import method_named
from clampz.approximations.trw import TRWOptions
from clampz.display.formatting import counted
from clampz.display.html_repr import MOST_ROWS, HtmlCard
from clampz.errors import OptionError, TooWideError, shown
from clampz.learning.data_rows import as_rows
from clampz.learning.likelihood import (
    UNKNOWN,
    Cases,
    Inputs,
    Objective,
    ObjectiveValue,
    checked,
    likelihood_of,
    without_constant,
)
from clampz.learning.parameters import Features, tables_of
from clampz.learning.results import FitStep, Likelihood
from clampz.method import Method
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.frames import records_frame
from clampz.model.model_checks import check_model
from clampz.model.tables import read_only
from clampz.numerics import EPS, Floats
from clampz.runtime.budget import Budget, Cancelled, StoppedBy
from clampz.runtime.options import (
    Options,
    as_bytes,
    bytes_in_words,
    check_option,
    check_whole,
    fits_into,
    is_number,
    knows_its_options,
    memory_allowed,
)
from clampz.runtime.progress import Listener, as_callback, says_stop
from clampz.runtime.seeds import Seed, as_generator

# Noise of the parameters at the start, where a variable is never seen: at zero its states are alike, and stay so.
NOISE = 0.1
# Nats to which TRW converges at every step: its usual tolerance is more than steps gain.
TRW_TOL = 1e-6
# Steps that L-BFGS remembers, if there is room for twice as many vectors, and at least; and further vectors as long as
# the parameters and the tables.
NUM_REMEMBERED, LEAST_REMEMBERED, NUM_VECTORS = 20, 3, 16
NOTHING = "stopped before the likelihood was computed once"
STUCK = "the method's own accuracy left L-BFGS no better point; a smaller tol in its options may"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Fit(Likelihood):
    """A model that was learned, with the mean log-likelihood of its data, in nats per row.

    Attributes
    ----------
    model
        With the potentials that were learned.
    parameters
        (K,) by what the potentials of the model given were changed, along the features.
    input_weights
        (D, L) the weights of covariates, shared by all variables; None where there are none.
    log_likelihood, bound, lower, upper
        As in `Likelihood`; no penalty is in them.
    converged, num_iter, residual, stopped_by
        Whether the largest entry of the gradient is below `tol`, after how many steps, how large it is; why it ended.
    trace
        A `FitStep` for each step.
    """

    base: Model = field(repr=False)
    features: Features = field(repr=False)
    parameters: Floats
    input_weights: Floats | None
    converged: bool
    num_iter: int
    residual: float
    stopped_by: StoppedBy
    trace: tuple[FitStep, ...]
    options: Options
    note: str = ""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; {self._ending})"

    @property
    def _ending(self) -> str:
        ended = "converged" if self.converged else f"not converged, stopped by {self.stopped_by}"
        return f"{counted(self.num_iter, 'step')}, {ended}"

    def _card(self) -> HtmlCard:
        card, first = super()._card(), max(0, len(self.trace) - MOST_ROWS)
        rows = [
            (f"{step.num_iter:,}", f"{step.log_likelihood:.6f}", f"{step.residual:.2g}", f"{step.seconds:.2g}")
            for step in self.trace[first:]
        ]
        return replace(
            card,
            facts=[*card.facts, ("run", self._ending)],
            columns=("step", "log-likelihood", "residual", "seconds"),
            rows=rows,
            more=f"{counted(first, 'step')} before these" if first else "",
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each step: "num_iter", "log_likelihood", "residual", "seconds"."""
        return records_frame([each.name for each in fields(FitStep)], self.trace)

    @cached_property
    def model(self) -> Model:
        """With the potentials that were learned."""
        return self.features.learned(self.base, self.parameters)

    def batch(self, inputs: ArrayLike) -> Batch:
        """Return a batch with a lane for each row of inputs: the model conditioned on them, for any method."""
        found = Inputs(self.model, inputs, len(np.atleast_1d(np.asarray(inputs))))
        self._check_weights(found)
        added = found.potentials(np.arange(len(found.values)), self.input_weights)
        return Batch(self.model, (self.model.unary.flat + added).T)

    def evaluate(
        self,
        data: Any,
        *,
        inputs: ArrayLike | None = None,
        method: str | None = None,
        options: Options | None = None,
        time: float | None = None,
        memory: int | str | None = None,
        threads: int | None = None,
    ) -> Likelihood:
        """Return the mean log-likelihood of other rows, such as were held out, with a certified bracket.

        Parameters are as in `fit`; the method, and its options, are by default those of the fit.
        """
        approximation = method_named(self.method if method is None else method)
        same = method is None and options is None
        chosen = _options(approximation, self.options if same else options, memory, threads)
        if hasattr(chosen, "marginals"):  # none are needed
            chosen = replace(chosen, marginals=False)  # type: ignore[call-arg]
        budget = Budget(Options(time=math.inf if time is None else time).time)
        with budget.interruptible():
            model = without_constant(self.model)
            rows = as_rows(model, data)
            found = None if inputs is None else Inputs(model, inputs, len(rows))
            self._check_weights(found)
            cases = Cases(model, rows, found, budget)
            objective = Objective(model, cases, approximation, chosen, budget)
            try:
                point = objective.at(model, self.input_weights, gradient=False, both=True)
            except Cancelled:
                point = UNKNOWN
            return Likelihood(**likelihood_of(objective, point))

    def _check_weights(self, inputs: Inputs | None) -> None:
        weights = self.input_weights
        found = inputs.shape if inputs is not None and inputs.has_weights else None
        if found != (None if weights is None else weights.shape):
            wanted = "no covariates" if weights is None else f"{len(weights)} covariates per variable"
            raise OptionError(f"inputs: expected {wanted}, as in the fit")


@knows_its_options
def fit(
    model: Model,
    data: Any,
    *,
    method: str = "exact",
    parameters: Any = None,
    inputs: ArrayLike | None = None,
    l2: float = 0.0,
    start: ArrayLike | None = None,
    tol: float = 1e-5,
    max_iter: int = 500,
    options: Options | None = None,
    time: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[FitStep] = None,
) -> Fit:
    """Learn the potentials under which data is likeliest, on the graph of a model, with bounds on the likelihood.

    With "exact" this is maximum likelihood.  With "trw" or "mini_buckets" log Z is an upper bound, so that what is
    maximised is a certified lower bound on the likelihood.  Rows with missing or hidden values count with the
    probability of what they have: a second log Z given the row, exact, or mean field's lower bound beside these two.

    Parameters
    ----------
    model
        The graph, the potentials to begin at, and the hard zeros.
    data
        (N, n) states by index or name, with -1, nan or None where they are missing; a DataFrame with a column per
        variable, those without one being hidden; or a list of evidence sets, one per row, or `Samples`.  Spins, and
        other states that are named by numbers, are given by these: there -1 is a state.
    method, options
        How log Z is computed: any of `clampz.methods()`, and its options, whole.
    parameters
        What is learned: None for every potential by itself, the result of `tied_parameters` where tables share theirs,
        or any features (K, E), an array or a sparse one, over the entries of `unary.flat`, `pairwise.flat` and
        `factors.flat` in turn.  The model's own potentials are where it begins, and its hard zeros stay.
    inputs
        For conditional random fields: covariates (N, n, D), whose weights (D, L) are learned and shared by all
        variables; or potentials (N, S) that are added to the unary ones of each row as they are.
    l2
        A penalty of l2 / 2 times the sum of the squares of all parameters, in nats per row.
    start
        (K,) parameters to begin at; by default 0, that is at the model given, with some noise where a variable is never
        seen.
    tol, max_iter
        The largest entry of the gradient at the end; and steps of L-BFGS at most.
    time, memory, threads
        Seconds, bytes and threads at most; what is best so far is returned.
    rng
        Of the noise at the start.
    progress
        True for a live line; or called with a `FitStep` after each step, and StopIteration from it ends the run with
        what there is.

    Returns
    -------
    Fit
        The model learned, the likelihood of the data under it with certified bounds, and how the run ended.

    Raises
    ------
    EvidenceError
        Where data names an unknown variable or state, or a row is impossible under the hard zeros; it says which row.
    OptionError
        Where an option, the parameters or the inputs do not fit the model.
    TooWideError
        Where the method does not fit into memory.

    Examples
    --------
    >>> from clampz import Model
    >>> found = fit(Model([[0.0, 0.0], [0.0, 0.0]], {(0, 1): [[0, 0], [0, 0]]}), [[0, 0], [1, 1], [1, 1], [0, 1]])
    >>> found.converged, [f"{p:.3f}" for p in (found.log_likelihood, 0.25 * np.log(0.25) * 2 + 0.5 * np.log(0.5))]
    (True, ['-1.040', '-1.040'])
    """
    check_model(model)
    approximation = method_named(method)
    check_option(is_number(l2) and 0 <= l2 < math.inf, "l2", "a number >= 0", l2)
    check_option(is_number(tol) and tol >= 0, "tol", "a number >= 0", tol)
    check_whole("max_iter", max_iter, 1)
    budget = Budget(Options(time=math.inf if time is None else time).time)
    with as_callback(progress, "learning") as listener, budget.interruptible():
        features = Features(model, parameters)
        remembered, left = _steps_in_memory(features.num_parameters + sum(map(len, tables_of(model))), memory)
        chosen = _options(approximation, options, left, threads)
        rows = as_rows(model, data)
        bare = without_constant(model)
        cases = Cases(bare, rows, None if inputs is None else Inputs(model, inputs, len(rows)), budget)
        objective = Objective(bare, cases, approximation, chosen, budget)
        optimizer = _Optimizer(objective, features, float(l2), tol, listener)
        note = optimizer.run(_start(start, optimizer, cases.never_seen, rng), max_iter, remembered)
        point = optimizer.best_value()
        return Fit(
            **likelihood_of(objective, point),
            base=model,
            features=features,
            parameters=read_only(optimizer.split(optimizer.best)[0]),
            input_weights=optimizer.split(optimizer.best)[1],
            converged=optimizer.residual <= tol,
            num_iter=len(optimizer.trace),
            residual=optimizer.residual,
            stopped_by=budget.stopped_by or ("max_iter" if len(optimizer.trace) >= max_iter else "tol"),
            trace=tuple(optimizer.trace),
            options=chosen,
            note=note,
        )


class _Optimizer:
    """L-BFGS on the penalised mean log-likelihood, over parameters of the tables and weights of inputs."""

    def __init__(
        self,
        objective: Objective,
        features: Features,
        l2: float,
        tol: float,
        progress: Callable[[FitStep], object] | None,
    ) -> None:
        self.objective, self.features, self.l2, self.tol, self.progress = objective, features, l2, tol, progress
        inputs = objective.cases.inputs
        self.shape = inputs.shape if inputs is not None and inputs.has_weights else None
        self.num_tables = features.num_parameters
        self.num_parameters = self.num_tables + (math.prod(self.shape) if self.shape else 0)
        self.trace: list[FitStep] = []
        self.best = np.zeros(self.num_parameters)
        self.point, self.cost, self.residual = UNKNOWN, math.inf, math.inf

    def split(self, x: Floats) -> tuple[Floats, Floats | None]:
        """Split a point into parameters of the tables and weights of inputs."""
        return x[: self.num_tables], x[self.num_tables :].reshape(self.shape) if self.shape else None

    def model_at(self, x: Floats) -> Model:
        return checked(self.features.learned(self.objective.model, self.split(x)[0]))

    def cost_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        """Return the cost that L-BFGS minimises, and its gradient; the best point so far is kept."""
        self.objective.budget.check_stop()
        point = self.objective.at(self.model_at(x), self.split(x)[1])
        by_inputs = [] if point.by_inputs is None else [point.by_inputs.ravel()]
        gradient = self.l2 * x - np.concatenate([self.features.by_parameters(point.by_tables), *by_inputs])
        cost = 0.5 * self.l2 * float(x @ x) - point.log_likelihood
        if cost < self.cost:
            self.best, self.point, self.cost = x.copy(), point, cost
            self.residual = float(np.abs(gradient).max(initial=0.0))
        return cost, gradient

    def run(self, start: Floats, max_iter: int, remembered: int) -> str:
        """Minimise until the gradient is small enough or the budget is over; return a note on how it ended."""
        from scipy.optimize import minimize  # slow to import, and few who solve models also learn them

        self.best = start
        try:
            self.objective.budget.check_stop()
            if not self.num_parameters:
                self.cost_and_gradient(start)
                return ""
            limits = {"maxiter": max_iter, "gtol": self.tol, "ftol": EPS, "maxcor": remembered, "maxfun": 20 * max_iter}
            minimize(self.cost_and_gradient, start, jac=True, method="L-BFGS-B", callback=self._step, options=limits)
        except Cancelled:
            return NOTHING if math.isinf(self.cost) else ""
        return "" if self.residual <= self.tol or len(self.trace) >= max_iter else STUCK

    def _step(self, x: Floats) -> None:
        """Record a step of L-BFGS, and report it to the callback."""
        budget, point = self.objective.budget, {"log_likelihood": self.point.log_likelihood, "residual": self.residual}
        step = FitStep(num_iter=len(self.trace) + 1, seconds=budget.seconds, **point)
        self.trace.append(step)
        if says_stop(self.progress, step):
            budget.stop("callback")
        budget.check_stop()

    def best_value(self) -> ObjectiveValue:
        """Return the value at the best point, with bounds that the method itself does not give, if there is time."""
        if self.objective.bound == "exact" or math.isinf(self.cost):
            return self.point
        try:
            again = self.objective.at(self.model_at(self.best), self.split(self.best)[1], gradient=False, both=True)
        except Cancelled:
            return self.point
        return self.point._replace(lower=max(self.point.lower, again.lower), upper=min(self.point.upper, again.upper))


def _options(
    approximation: Method[Any], options: Options | None, memory: int | str | None, threads: int | None
) -> Options:
    """Return the method's options for every step, without a time of their own: the budget is the run's."""
    if options is None and approximation.name == "trw":
        options = TRWOptions(tol=TRW_TOL)
    changes: dict[str, Any] = {"time": math.inf} | ({} if threads is None else {"threads": threads})
    if memory is not None and hasattr(approximation.options_type, "memory"):
        changes["memory"] = memory
    chosen: Options = approximation.options(options, changes)
    return chosen


def _steps_in_memory(size: int, memory: int | str | None) -> tuple[int, int | None]:
    """Return how many steps L-BFGS may remember, in half of the memory, and the bytes left for the method."""
    least = 8 * size * (2 * LEAST_REMEMBERED + NUM_VECTORS)
    if not fits_into(memory, 2 * least):
        raise TooWideError(
            f"learning {size} parameters and potentials needs about {bytes_in_words(2 * least)}, "
            f"and {bytes_in_words(memory_allowed(memory))} are allowed",
            width=0,
            num_bytes=2 * least,
        )
    most = (memory_allowed(memory) // (16 * max(1, size)) - NUM_VECTORS) // 2
    remembered = min(max(most, LEAST_REMEMBERED), NUM_REMEMBERED)
    return remembered, None if memory is None else as_bytes(memory) - 8 * size * (2 * remembered + NUM_VECTORS)


def _start(start: ArrayLike | None, optimizer: _Optimizer, noisy: bool, rng: Seed) -> Floats:
    """Return a caller's parameters to start at, checked; else zeros, or noise."""
    generator, size = as_generator(0 if rng is None else rng), optimizer.num_parameters
    if start is None:
        return NOISE * generator.normal(size=size) if noisy else np.zeros(size)
    try:
        found = np.array(start, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"start: expected numbers, found {shown(start)}") from None
    if found.shape != (size,) or not np.isfinite(found).all():
        raise OptionError(f"start: expected {size} finite numbers, one per parameter, found shape {found.shape}")
    return found
