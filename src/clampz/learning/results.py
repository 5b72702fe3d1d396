"""Results of learning: `Likelihood`, a bracket on the likelihood of data, and `FitStep`, the progress of a fit."""

from dataclasses import dataclass

from clampz.display.formatting import Bound, counted, proven, title, valued
from clampz.display.html_repr import HasHtml, HtmlCard


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood(HasHtml):
    """The mean log-likelihood of rows of data, in nats per row.

    Attributes
    ----------
    log_likelihood
        By the method's log Z; where that is a bound, the certified one.
    bound
        What `log_likelihood` is: "lower", "upper", "exact" or None.
    lower, upper
        Certified: lower <= mean log-likelihood <= upper.
    """

    method: str
    num_rows: int
    log_likelihood: float
    bound: Bound | None
    lower: float
    upper: float

    def _card(self) -> HtmlCard:
        return HtmlCard(
            title=f"{type(self).__name__}: {title(self.method)}",
            facts=[
                ("log-likelihood", f"{valued(self.log_likelihood, self.bound)}, nats per row"),
                ("proven", proven(self.lower, self.upper, "log-likelihood")),
                ("rows", f"{self.num_rows:,}"),
            ],
        )

    def __repr__(self) -> str:
        ends = f"from {self.lower:.6g} to {self.upper:.6g}"
        return (
            f"{type(self).__name__}({self.method}: log-likelihood {self.log_likelihood:.6g} per row "
            f"of {counted(self.num_rows, 'row')}, certified {ends})"
        )


@dataclass(frozen=True, kw_only=True)
class FitStep:
    """The progress of a fit, which its callback is given after each step.

    Attributes
    ----------
    num_iter
        Steps of L-BFGS so far.
    log_likelihood
        Mean over the rows, in nats, without the penalty.
    residual
        The largest entry of the gradient, the penalty's included.
    seconds
        Since the run began.
    """

    num_iter: int
    log_likelihood: float
    residual: float
    seconds: float

    @property
    def progress_words(self) -> list[str]:
        """The progress in a few words each."""
        likelihood = f"log-likelihood {self.log_likelihood:.6g} per row"
        return [counted(self.num_iter, "step"), likelihood, f"gradient {self.residual:.2g}"]
