"""Options of mean field, and its call as type checkers see it."""

from dataclasses import dataclass, replace
from typing import Any, Unpack, overload

from clampz.method import AnyBeta, AnySets, CallKeywords, Method, OneBeta, OneSet
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.results import Estimate, Estimates
from clampz.runtime.options import FINE, OptionKeywords, Options, check_whole

# Random starts at most: beyond, memory would be what ends a run.
MOST_STARTS = 10**6


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
