"""The ratio of two partition functions, as a certified interval of its logarithm."""

from dataclasses import dataclass

from clampz.bounding.bracket import BracketStop
from clampz.bounding.options import BoundOptions
from clampz.display.formatting import proven, ran, rounded_up, within
from clampz.display.html_repr import HasHtml, HtmlCard
from clampz.errors import EvidenceError
from clampz.model import Evidence, Model
from clampz.model.conditioning import given
from clampz.queries.ratio_terms import Interval, Ratio, RatioTerm
from clampz.runtime.budget import Budget
from clampz.runtime.options import knows_its_options
from clampz.runtime.progress import Listener, as_callback
from clampz.runtime.seeds import Seed, with_rng


@dataclass(frozen=True, kw_only=True, eq=False)
class LogRatio(HasHtml):
    """Certified: lower <= log Z_a - log Z_b <= upper.

    Attributes
    ----------
    lower, upper, estimate
        The interval, and a value inside it, or nan where neither is known.  All are -inf where Z_a = 0 is proven, and
        inf where Z_b = 0 is.
    stopped_by
        "exact" (but for rounding), "gap" (narrow enough), "time", "memory", "interrupt" or "callback"; "left" while it
        runs.
    """

    lower: float
    upper: float
    estimate: float
    stopped_by: BracketStop
    seconds: float

    @property
    def gap(self) -> float:
        """Upper end less lower end."""
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    @property
    def progress_words(self) -> list[str]:
        """What a live line shows while it runs."""
        return [within("log Z_a - log Z_b", self.lower, self.upper)]

    def _card(self) -> HtmlCard:
        return HtmlCard(
            title="log Z_a - log Z_b",
            facts=[
                ("proven", proven(self.lower, self.upper, "log Z_a - log Z_b")),
                ("estimate", f"{self.estimate:.6f}"),
                ("gap", f"{rounded_up(self.gap)} nats"),
                ("run", ran(self.seconds, self.stopped_by)),
            ],
        )

    def __repr__(self) -> str:
        return (
            f"LogRatio({self.lower:.10g} <= log Z_a - log Z_b <= {self.upper:.10g}, estimate {self.estimate:.10g}; "
            f"{self.seconds:.2g} s, stopped by {self.stopped_by})"
        )


@knows_its_options
def log_ratio(
    model_a: Model,
    model_b: Model,
    *,
    evidence: Evidence | None = None,
    gap: float = 0.01,
    time: float = 60.0,
    memory: int | str | None = None,
    threads: int | None = None,
    rng: Seed = None,
    progress: Listener[LogRatio] = None,
) -> LogRatio:
    """Bound log Z_a - log Z_b of two models from both sides, certified.

    It tells how much likelier one makes the evidence, say, or what a change of temperature costs.  Both are summed
    exactly where they are narrow enough, by one plan where they differ in their unary potentials alone.

    Parameters
    ----------
    model_a, model_b
        Whose log Z is taken, and whose is taken off it.
    evidence
        `{variable: state}` of both models, as `Model.condition` takes it.
    gap
        The width of the interval in nats that is narrow enough.
    time, memory, threads, rng, progress
        As for `probability`.

    Returns
    -------
    LogRatio
        The interval, and a value inside it.

    Raises
    ------
    EvidenceError
        Where both models have Z = 0, or evidence does not fit either.
    OptionError
        Where an option is unknown, out of range, or of another kind than the call takes.

    Examples
    --------
    >>> model = Model.from_binary([1.0, 0.0], [2.0], [(0, 1)], names=["a", "b"])
    >>> print(f"{log_ratio(model.condition({'a': 1}), model).estimate:.6f}")
    -0.313262
    """
    options = BoundOptions(**with_rng({"gap": gap, "time": time, "memory": memory, "threads": threads}, rng))
    budget = Budget(options.time)
    with as_callback(progress, "asking") as listener, budget.interruptible():
        one, other = _side(model_a, evidence), _side(model_b, evidence)

        def answer(stopped_by: BracketStop, seconds: float) -> LogRatio:
            lower, upper, estimate = Interval.of_difference(one, other)
            return LogRatio(lower=lower, upper=upper, estimate=estimate, stopped_by=stopped_by, seconds=seconds)

        found = Ratio((one, other), options, answer).run(budget, listener)
        if one.is_impossible and other.is_impossible:
            raise EvidenceError("both models have Z = 0, every configuration being impossible: there is no ratio")
        return found


def _side(model: Model, evidence: Evidence | None) -> RatioTerm:
    """Return a model under evidence, which may be evidence that only the other model allows."""
    if evidence is not None:
        model.findings(evidence)  # refuses what is no evidence
    try:
        return RatioTerm.of(given(model, evidence))
    except EvidenceError:
        return RatioTerm.impossible(model)
