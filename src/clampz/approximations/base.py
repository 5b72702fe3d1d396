"""Approximation: the one signature that exact, mean field, Bethe and TRW share.

Each of them is written as a function of a batch; `approximation` turns it into what users call, on a model or on a batch.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from clampz.batch import Batch
from clampz.errors import OptionError
from clampz.limits import Options, Progress, Watch, check_option
from clampz.model import Evidence, Model
from clampz.results import Estimate, Estimates

OptionsT = TypeVar("OptionsT", bound=Options)
Start = Estimate | Estimates | NDArray[np.float64]


class Approximation(Generic[OptionsT]):
    """A method from models to estimates.

    Call it with a `Model` for an `Estimate`, or with a `Batch` (or a list of evidence sets) for `Estimates`, one per lane.

    Parameters of the call
    ----------------------
    model
        A Model or a Batch.
    evidence
        `{variable: state}`, or a list of such sets: then all of them are solved as one batch.
    start
        Where to start from, one per lane or one for all: an earlier estimate of the same graph, by whatever method, or marginals, as an array with
        a row per state of each variable in turn.
    progress
        Called now and then with a `Progress`; it may raise StopIteration to stop the run.
    options
        The method's options, whole; single ones are given by name: `trw(model, tol=1e-3)`.
    """

    def __init__(self, name: str, options_type: type[OptionsT], solve: Callable[..., Estimates]) -> None:
        self.name = name
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
        watch = Watch(chosen, progress)
        with watch.interruptible():
            estimates = self._solve(batch, chosen, start, watch)
        return estimates[0] if single else estimates

    def options(self, options: OptionsT | None, changes: dict[str, Any]) -> OptionsT:
        """The options of a call: those given, or the defaults, with some of them changed."""
        chosen = self.options_type() if options is None else options
        check_option(isinstance(chosen, self.options_type), "options", f"{self.options_type.__name__}, which {self.name} takes", chosen)
        return chosen.with_changes(changes)

    def __repr__(self) -> str:
        return f"<approximation {self.name}>"


def approximation(name: str, options_type: type[OptionsT]) -> Callable[[Callable[..., Estimates]], Approximation[OptionsT]]:
    """Make a function (batch, options, start, watch) -> Estimates into an `Approximation`."""

    def wrap(solve: Callable[..., Estimates]) -> Approximation[OptionsT]:
        return Approximation(name, options_type, solve)

    return wrap
