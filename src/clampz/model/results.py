"""Estimate: what a method found about one lane.  Estimates: about a batch of them.

`bound` speaks of `log_z`: "lower" or "upper" where it is a proven bound, "exact", or None where it is only an
estimate.  `lower` and `upper` always hold, widened by the rounding error made in computing them; they are -inf and inf
where the method proves nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from clampz.display.formatting import KINDS, Bound, counted
from clampz.display.html_repr import HasHtml, HtmlCard
from clampz.errors import OptionError, library
from clampz.model.batch import Batch
from clampz.model.factors import FactorTables
from clampz.model.frames import lanes_dataset
from clampz.model.html import estimate_card, estimates_card
from clampz.model.marginals import HasMarginals
from clampz.model.model import Model
from clampz.model.tables import LazySequence, PairTables, UnaryTables, take_lanes
from clampz.model.temperatures import mean_score
from clampz.numerics import Floats, Integers
from clampz.runtime.budget import UNLIMITED, Budget, StoppedBy
from clampz.runtime.options import Options

TablesT = TypeVar("TablesT")

# The note of a lane that a run had no time for.
NO_RESULT = "stopped before there was anything to say: no bound, no marginals"
# The arrays of `Estimates` with one entry per lane.
PER_LANE = ("log_z", "lower", "upper", "value", "converged", "num_iter", "residual")


class EndState(Protocol):
    """The end state of a method, from which marginals of a lane's edges and factors are computed on demand."""

    @property
    def rho(self) -> Floats | None:
        """(m, 1) or (m, B) TRW's edge weights; None for methods without."""

    def pairwise(self, lane: int) -> Floats:
        """Compute pairwise marginals of a lane, laid out as `model.pairwise.flat`."""

    def factors(self, lane: int) -> Floats:
        """Compute marginals of a lane's larger factors, laid out as `model.factors.flat`."""

    def take(self, lanes: Integers) -> Self:
        """Select lanes."""

    def join(self, others: Sequence[Self]) -> Self:
        """Append the lanes of others."""


@dataclass(frozen=True, eq=False)
class NoState:
    """The end state of a run that was stopped before its first result."""

    model: Model
    rho: ClassVar[None] = None

    def pairwise(self, lane: int) -> Floats:
        return np.full(len(self.model.pairwise.flat), np.nan)

    def factors(self, lane: int) -> Floats:
        return np.full(len(self.model.factors.flat), np.nan)

    def take(self, lanes: Integers) -> "NoState":
        return self

    def join(self, others: Sequence["NoState"]) -> "NoState":
        return self


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate(HasMarginals, HasHtml):
    """A method's log Z with its marginals.

    Attributes
    ----------
    log_z
        The method's answer; for TRW the certified bound.
    bound
        What `log_z` is: "lower", "upper", "exact" or None.
    lower, upper
        Certified: lower <= log Z <= upper.
    value
        The method's own objective at the point reached (for TRW what its fixed point would have, no bound before
        convergence).
    marginals, pairwise_marginals, factor_marginals
        `marginals[i][a]`, `pairwise_marginals[i, j][a, b]`, and of larger factors `factor_marginals[f].table`, as in
        `model.factors`; `marginal(variables)` finds any of them, and of exact results `joint(variables)` any other.
    converged, num_iter, residual, stopped_by
        Whether the tolerance was met, after how many sweeps, what is left of it in nats, and why the run ended.
    batch
        Of a run that was asked for an inverse temperature, and of an exact one, the lane: all of the above is about
        `batch.lane(0)`, and `energy`, `entropy` and `heat_capacity` are known.
    """

    method: str
    model: Model
    log_z: float
    bound: Bound | None
    lower: float
    upper: float
    value: float
    marginals: UnaryTables
    converged: bool
    num_iter: int
    residual: float
    stopped_by: StoppedBy
    options: Options
    note: str = ""
    state: EndState = field(repr=False)
    lane: int = field(default=0, repr=False)
    batch: Batch | None = field(default=None, repr=False)

    @cached_property
    def pairwise_marginals(self) -> PairTables:
        """`pairwise_marginals[i, j][a, b]`: computed when first asked for."""
        return self.model.pairwise.with_flat(self.state.pairwise(self.lane))

    @cached_property
    def factor_marginals(self) -> FactorTables:
        """`factor_marginals[f].table[a, b, c]`, over `factor_marginals[f].scope`: computed when first asked for."""
        return self.model.factors.with_flat(self.state.factors(self.lane))

    @property
    def solved(self) -> Model:
        """Return the model that the estimate is about, with its evidence and at its inverse temperature."""
        if self.batch is None:
            raise OptionError("this result does not know its evidence any more: that of exact runs does")
        return self.batch.lane(0)

    @property
    def beta(self) -> float:
        """Return the inverse temperature."""
        return 1.0 if self.batch is None or self.batch.beta is None else float(self.batch.beta[0])

    @cached_property
    def energy(self) -> float:
        """Compute minus the mean score, constant and all: -d log Z / d beta where the marginals are the method's own
        optimum."""
        contents = _batch_of(self).model.contents._replace(unary=_batch_of(self).unary[:, 0])
        return -mean_score(contents, self.marginals.flat, self.pairwise_marginals.flat, self.factor_marginals.flat)

    @property
    def entropy(self) -> float:
        """Compute log Z + beta energy, with the method's own log Z."""
        return self.log_z + self.beta * self.energy

    @cached_property
    def heat_capacity(self) -> float:
        """Compute beta^2 times the variance of the score, from the energy's change with beta; it solves twice more. nan
        where that did not converge."""
        return float(heat_capacities(self)[0])

    def _card(self) -> HtmlCard:
        return estimate_card(self)

    def __repr__(self) -> str:
        kind = KINDS[self.bound] if self.bound else "no bound"
        stop = "" if self.stopped_by == "tol" else f" (stopped by {self.stopped_by}), residual {self.residual:.2g}"
        ending = "converged" if self.converged else f"not converged{stop}"
        sweeps = "" if self.bound == "exact" else f", {counted(self.num_iter, 'sweep')}, {ending}"
        note = f"; {self.note}" if self.note else ""
        return f"Estimate({self.method}: log Z = {self.log_z:.10g} ({kind}){sweeps}{note})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates(LazySequence[Estimate], HasHtml):
    """Estimates of a batch, one per lane: `estimates[b]` is the Estimate of lane b, arrays have one entry per lane.

    Attributes
    ----------
    log_z, lower, upper, value, converged, num_iter, residual
        (B,) as in `Estimate`.
    bound
        That of every lane with a log Z; where that is nan, because the run ended before, the lane has none.
    stopped_by, notes
        Why the run of each lane ended, and what there is to say of it.
    marginals, pairwise_marginals, factor_marginals
        Lane by lane: `marginals[b][i][a]`.
    """

    method: str
    model: Model
    log_z: Floats
    bound: Bound | None
    lower: Floats
    upper: Floats
    value: Floats
    marginals_flat: Floats
    converged: NDArray[np.bool_]
    num_iter: Integers
    residual: Floats
    stopped_by: Sequence[StoppedBy]
    options: Options
    notes: Sequence[str] = ()
    state: EndState = field(repr=False)
    batch: Batch | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.log_z)

    @property
    def marginals(self) -> "PerLane[UnaryTables]":
        """Return `marginals[b]` of each lane, as those of its Estimate."""
        return PerLane(len(self), lambda k: self.item(k).marginals)

    @property
    def pairwise_marginals(self) -> "PerLane[PairTables]":
        """Return `pairwise_marginals[b]` of each lane, computed on demand."""
        return PerLane(len(self), lambda k: self.item(k).pairwise_marginals)

    @property
    def factor_marginals(self) -> "PerLane[FactorTables]":
        """Return `factor_marginals[b]` of each lane, computed on demand."""
        return PerLane(len(self), lambda k: self.item(k).factor_marginals)

    def item(self, k: int) -> Estimate:
        numbers: dict[str, Any] = {name: getattr(self, name)[k].item() for name in PER_LANE}
        return Estimate(
            method=self.method,
            model=self.model,
            bound=None if np.isnan(self.log_z[k]) else self.bound,
            marginals=self.model.unary.with_flat(np.ascontiguousarray(self.marginals_flat[:, k])),
            stopped_by=self.stopped_by[k],
            options=self.options,
            note=self.notes[k] if self.notes else "",
            state=self.state,
            lane=k,
            batch=None if self.batch is None else self.batch.take(np.array([k])),
            **numbers,
        )

    @property
    def beta(self) -> Floats:
        """(B,) return the inverse temperatures."""
        return np.ones(len(self)) if self.batch is None or self.batch.beta is None else self.batch.beta

    @cached_property
    def energy(self) -> Floats:
        """(B,) compute minus the mean score of each lane: see `Estimate.energy`."""
        return np.array([lane.energy for lane in self])

    @property
    def entropy(self) -> Floats:
        """(B,) compute log Z + beta energy."""
        return self.log_z + self.beta * self.energy

    @cached_property
    def heat_capacity(self) -> Floats:
        """(B,) compute beta^2 times the variance of the score: see `Estimate.heat_capacity`."""
        return heat_capacities(self)

    @property
    def columns(self) -> dict[str, Any]:
        """Return all values with one entry per lane, by name; marginals apart."""
        beta = {} if self.batch is None or self.batch.beta is None else {"beta": self.beta}
        notes = {"note": list(self.notes)} if any(self.notes) else {}
        arrays = {name: getattr(self, name) for name in PER_LANE}
        return {**beta, **arrays, "stopped_by": list(self.stopped_by), **notes}

    def to_frame(self) -> Any:
        """Make a pandas DataFrame with a row for each lane; `estimates[b].to_frame()` has the marginals of one."""
        return library("pandas").DataFrame(self.columns).rename_axis("lane")

    def to_xarray(self) -> Any:
        """Make an xarray Dataset over the dimension "lane", with the marginals of all lanes over "entry".
        `sel(variable=..., state=...)` finds an entry by name."""
        columns = self.columns
        known = {"beta": columns.pop("beta")} if "beta" in columns else {}
        found = lanes_dataset(self.model, columns, self.marginals_flat, known)
        return found.assign_attrs(method=self.method, bound=self.bound or "none")

    def take(self, lanes: Integers) -> "Estimates":
        """Select the estimates of lanes, in this order; a lane may be selected several times."""
        arrays: dict[str, Any] = {name: getattr(self, name)[lanes] for name in PER_LANE}
        return replace(
            self,
            marginals_flat=take_lanes(self.marginals_flat, lanes),
            stopped_by=[self.stopped_by[b] for b in lanes],
            notes=[self.notes[b] for b in lanes] if self.notes else (),
            state=self.state.take(lanes),
            batch=None if self.batch is None else self.batch.take(lanes),
            **arrays,
        )

    def join(self, others: Sequence["Estimates"]) -> "Estimates":
        """Append other estimates of the same model, method and options."""
        parts = [self, *others]
        arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in PER_LANE}
        none = any(isinstance(part.state, NoState) for part in parts)
        batches = [part.batch for part in parts if part.batch is not None]
        return replace(
            self,
            marginals_flat=np.concatenate([part.marginals_flat for part in parts], axis=1),
            stopped_by=[reason for part in parts for reason in part.stopped_by],
            notes=[note for part in parts for note in (part.notes or [""] * len(part))],
            state=NoState(self.model) if none else self.state.join([part.state for part in others]),
            batch=batches[0].join(batches[1:]) if len(batches) == len(parts) else None,
            **arrays,
        )

    def widened(self, rounding: float) -> "Estimates":
        """Widen the bounds for potentials that rounding has changed, by `rounding` in any score at most."""
        lower, upper = self.lower - rounding, self.upper + rounding
        log_z = {"lower": lower, "upper": upper}.get(self.bound or "", self.log_z)
        return replace(self, log_z=np.where(np.isnan(self.log_z), np.nan, log_z), lower=lower, upper=upper)

    def _card(self) -> HtmlCard:
        return estimates_card(self)

    def __repr__(self) -> str:
        done = int(np.count_nonzero(self.converged))
        values = f"log Z {self.log_z.min():.6g} to {self.log_z.max():.6g}"
        return f"Estimates({self.method}: {len(self)} lanes, {values}, {done} converged)"


class PerLane(LazySequence[TablesT]):
    """A sequence of tables for each lane, each made on demand."""

    __slots__ = ("_num_lanes", "_of_lane")

    def __init__(self, num_lanes: int, of_lane: Callable[[int], TablesT]) -> None:
        self._num_lanes = num_lanes
        self._of_lane = of_lane

    def __len__(self) -> int:
        return self._num_lanes

    def item(self, k: int) -> TablesT:
        return self._of_lane(k)

    def __repr__(self) -> str:
        return f"PerLane({counted(len(self), 'lane')})"


def stopped_estimates(method: str, model: Model, num_lanes: int, options: Options, stopped_by: StoppedBy) -> Estimates:
    """Make the estimates of a run that was stopped before its first result."""
    nan, inf = np.full(num_lanes, np.nan), np.full(num_lanes, np.inf)
    return Estimates(
        method=method,
        model=model,
        log_z=nan,
        bound=None,
        lower=-inf,
        upper=inf,
        value=nan,
        marginals_flat=np.full((len(model.unary.flat), num_lanes), np.nan),
        converged=np.zeros(num_lanes, dtype=np.bool_),
        num_iter=np.zeros(num_lanes, dtype=np.int64),
        residual=inf,
        stopped_by=[stopped_by] * num_lanes,
        options=options,
        notes=[NO_RESULT] * num_lanes,
        state=NoState(model),
    )


# -- temperatures ------------------------------------------------------------------------------------------------------

# How lanes are solved again, by the name of the method: each puts itself here.
SOLVED_BY: dict[str, Callable[..., Estimates]] = {}
# Steps up and down in beta, relative to it, for the difference of two energies: those of exact sums are good to a dozen
# digits, those of other methods to as many as they converge to.
EXACT_STEP, STEP = 1e-4, 3e-3


def heat_capacities(found: Estimate | Estimates, within: Budget = UNLIMITED) -> Floats:
    """(B,) compute beta^2 d <score> / d beta by a central difference, solving the lanes at two neighbouring betas. 0
    where beta is, and nan where a run does not converge."""
    batch = _batch_of(found)
    beta = np.ones(batch.num_lanes) if batch.beta is None else batch.beta
    if not beta.any():
        return np.zeros(len(beta))
    step = EXACT_STEP if found.bound == "exact" else STEP
    solve, options = SOLVED_BY[found.method], found.options.finely()
    low, high = (solve(batch.at(beta * (1.0 + way * step)), options, found, within=within) for way in (-1, 1))
    out: Floats = np.where(low.converged & high.converged, beta * (low.energy - high.energy) / (2 * step), np.nan)
    return np.where(beta == 0.0, 0.0, out)


def _batch_of(found: Estimate | Estimates) -> Batch:
    if found.batch is None:
        raise OptionError("energy, entropy and heat capacity: solve at an inverse temperature, such as beta=1.0")
    return found.batch
