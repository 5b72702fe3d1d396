"""Sweep: what is known of a model at each of several inverse temperatures."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from clampz.display.formatting import DIGITS, counted, ran, round_outward
from clampz.display.html_repr import MOST_ROWS, HasHtml, HtmlCard, and_more
from clampz.display.plot_hooks import Drawable
from clampz.errors import library
from clampz.model import Model
from clampz.numerics import Floats
from clampz.runtime.budget import StoppedBy


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep(Drawable, HasHtml):
    """A model at inverse temperatures beta: p(x) = exp(beta score(x)) / Z(beta), an entry of each array per beta.

    Drawn, it shows log Z per variable with its bracket, and the heat capacity.

    Attributes
    ----------
    lower, upper
        Certified: lower <= log Z(beta) <= upper.
    log_z
        A single value inside them: exact, or a method's own; nan where there is none, or it is far outside.
    energy
        Minus the mean score, constant and all; nan where there was no time for it, and where the ends refute it:
        Bethe's log Z is far outside them, or its energy would leave no entropy.
    entropy
        log Z + beta energy.
    heat_capacity
        beta^2 times the variance of the score; nan where the method did not settle or its energy is refuted, or there
        was no time for it.
    by
        Who says so, for each beta: "exact", "bracket" (certified ends by mini-buckets or `bound`, all else Bethe's) or
        the method that was asked for; "" where time ended first.
    """

    model: Model
    beta: Floats
    lower: Floats
    upper: Floats
    log_z: Floats
    energy: Floats
    entropy: Floats
    heat_capacity: Floats
    by: Sequence[str]
    reason: str
    seconds: float
    stopped_by: StoppedBy

    def __len__(self) -> int:
        return len(self.beta)

    @property
    def gap(self) -> Floats:
        """What is left between the certified ends."""
        return np.array([0.0 if a == b else b - a for a, b in zip(self.lower, self.upper, strict=True)])

    @property
    def columns(self) -> dict[str, Any]:
        """Return all that there is for each beta, by name."""
        names = [field.name for field in fields(self) if field.name not in ("model", "reason", "seconds", "stopped_by")]
        return {name: getattr(self, name) for name in names}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each beta."""
        return library("pandas").DataFrame({name: list(values) for name, values in self.columns.items()})

    def to_xarray(self) -> Any:
        """Return an xarray Dataset over the dimension "beta"."""
        data = {name: ("beta", np.asarray(values)) for name, values in self.columns.items() if name != "beta"}
        return library("xarray").Dataset(data, coords={"beta": self.beta}, attrs={"reason": self.reason})

    def _card(self) -> HtmlCard:
        rows = [
            (
                f"{self.beta[k]:g}",
                round_outward(float(self.lower[k]), "lower", DIGITS),
                round_outward(float(self.upper[k]), "upper", DIGITS),
                *(f"{values[k]:.6g}" for values in (self.log_z, self.energy, self.entropy, self.heat_capacity)),
                self.by[k] or "-",
            )
            for k in range(min(len(self), MOST_ROWS))
        ]
        return HtmlCard(
            title=f"Sweep over {counted(len(self), 'inverse temperature')}",
            facts=[("why", self.reason), ("run", ran(self.seconds, self.stopped_by))],
            columns=("beta", "lower", "upper", "log Z", "energy", "entropy", "heat capacity", "by"),
            rows=rows,
            more=and_more(len(self), len(rows), "inverse temperature"),
        )

    def __repr__(self) -> str:
        return (
            f"Sweep({counted(len(self), 'inverse temperature')} from {self.beta.min():g} to {self.beta.max():g}, "
            f"gap {self.gap.max():.3g} nats at most; {self.reason} {self.seconds:.2g} s)"
        )
