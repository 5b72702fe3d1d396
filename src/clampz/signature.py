"""Approximation: the one signature that exact, mean field, Bethe and TRW share.

Each of them is written as a function of a batch; `approximation` turns it into what users call, on a model or on a
batch.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

from clampz.errors import OptionError
from clampz.model import Evidence, Model
from clampz.model.batch import Batch
from clampz.model.equivalent import Equivalent, equivalent_start
from clampz.model.results import Estimate, Estimates
from clampz.model.starts import Start, start_marginals
from clampz.options import Options, check_option
from clampz.watch import Progress, Watch

OptionsT = TypeVar("OptionsT", bound=Options)


class Approximation(Generic[OptionsT]):
    """A method from models to estimates.

    Call it with a `Model` for an `Estimate`, or with a `Batch` (or a list of evidence sets) for `Estimates`, one per
    lane.

    Parameters of the call
    ----------------------
    model
        A Model or a Batch.
    evidence
        `{variable: state}`, or a list of such sets: then all of them are solved as one batch.
    start
        Where to start from, one per lane or one for all: an earlier estimate of the same graph, by whatever method, or
        marginals, as an array with a row per state of each variable in turn.
    progress
        Called now and then with a `Progress`; it may raise StopIteration to stop the run.
    options
        The method's options, whole; single ones are given by name: `trw(model, tol=1e-3)`.
    """

    def __init__(
        self, name: str, options_type: type[OptionsT], solve: Callable[..., Estimates], takes_factors: bool
    ) -> None:
        self.name = name
        self.takes_factors = takes_factors
        self.options_type = options_type
        self._solve = solve
        self.__doc__ = solve.__doc__
        self.__name__ = self.__qualname__ = solve.__name__
        self.__module__ = solve.__module__
        self.__wrapped__ = solve

    @overload
    def __call__(
        self,
        model: Model,
        *,
        evidence: Evidence | None = None,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: OptionsT | None = None,
        **changes: Any,
    ) -> Estimate: ...
    @overload
    def __call__(
        self,
        model: Batch,
        *,
        evidence: None = None,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: OptionsT | None = None,
        **changes: Any,
    ) -> Estimates: ...
    @overload
    def __call__(
        self,
        model: Model,
        *,
        evidence: Sequence[Evidence],
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: OptionsT | None = None,
        **changes: Any,
    ) -> Estimates: ...
    def __call__(
        self,
        model: Model | Batch,
        *,
        evidence: Evidence | Sequence[Evidence] | None = None,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: OptionsT | None = None,
        **changes: Any,
    ) -> Estimate | Estimates:
        chosen = self.options(options, changes)
        if isinstance(model, Batch):
            if evidence is not None:
                raise OptionError("evidence goes with a model; a batch has its evidence in its lanes")
            batch, single = model, False
        else:
            single = evidence is None or not isinstance(evidence, Sequence)
            sets = [evidence or {}] if single else evidence
            batch = Batch.from_evidence(model, sets)  # type: ignore[arg-type]
        watch = Watch(chosen.time, progress)
        with watch.interruptible():
            run = self._solve if self.takes_factors or not batch.model.factors else self._solve_equivalent
            estimates = run(batch, chosen, start, watch)
        return estimates[0] if single else estimates

    def _solve_equivalent(self, batch: Batch, options: OptionsT, start: Start | None, watch: Watch) -> Estimates:
        """Solve the pairwise model that a model with larger factors is equivalent to."""
        equivalent = Equivalent.of(batch.model)
        if start is not None:
            given = isinstance(start, Estimate | Estimates)
            start = (
                equivalent_start(equivalent, start) if given else equivalent.marginals(start_marginals(batch, start))
            )  # type: ignore[arg-type]
        return equivalent.back(batch.model, self._solve(equivalent.batch(batch), options, start, watch))

    def options(self, options: OptionsT | None, changes: dict[str, Any]) -> OptionsT:
        """The options of a call: those given, or the defaults, with some of them changed."""
        chosen = self.options_type() if options is None else options
        check_option(
            isinstance(chosen, self.options_type),
            "options",
            f"{self.options_type.__name__}, which {self.name} takes",
            chosen,
        )
        return chosen.with_changes(changes)

    def __repr__(self) -> str:
        return f"<approximation {self.name}>"


def approximation(
    name: str, options_type: type[OptionsT], *, takes_factors: bool = False
) -> Callable[[Callable[..., Estimates]], Approximation[OptionsT]]:
    """Make a function (batch, options, start, watch) -> Estimates into an `Approximation`; with `takes_factors` it
    works on factors of any size itself."""

    def wrap(solve: Callable[..., Estimates]) -> Approximation[OptionsT]:
        return Approximation(name, options_type, solve, takes_factors)

    return wrap
