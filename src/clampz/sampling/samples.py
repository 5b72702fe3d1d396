"""Samples: configurations drawn from a model, what they are worth, and what follows from them."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from clampz.approximations.mini_buckets.proposals import States
from clampz.display.formatting import counted
from clampz.display.html_repr import MOST_ROWS, HasHtml, HtmlCard, and_more
from clampz.display.plot_hooks import Drawable
from clampz.model import Model
from clampz.model.conditioning import states_left
from clampz.model.frames import configurations_frame
from clampz.model.html import configuration_rows
from clampz.model.tables import LazySequence, UnaryTables, read_only
from clampz.numerics import Floats
from clampz.runtime.budget import StoppedBy
from clampz.sampling.statistics import variance_of_shares, weights_of_states

Kind = Literal["exact", "rejection", "weighted", "gibbs"]

# What samples are, for people.
KINDS: dict[Kind, str] = {
    "exact": "exact",
    "rejection": "exact, by rejection",
    "weighted": "weighted",
    "gibbs": "of Markov chains, not exact",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Samples(Drawable, HasHtml, LazySequence[dict[Any, Any]]):
    """Configurations drawn from a model.  `samples[k]` is the k-th as `{variable: state}`, by name where there are
    names.

    Attributes
    ----------
    states
        (N, n) states by index, a configuration in a row.
    log_weights
        (N,) how much each counts, up to a constant: zeros unless they are weighted, and then log f(x) / q(x) of the
        proposal q they are drawn from.
    kind
        "exact": drawn from the model by elimination.  "rejection": so too, by accepting some draws of a proposal.
        "weighted": drawn from a proposal; averages are to be weighted.  "gibbs": along Markov chains, sample k from
        chain `k % num_chains`; they follow the model only in the long run.
    reason
        Why they are of this kind, in a sentence; and why they are fewer than asked for, if so.
    num_drawn
        Draws that were made for them, with those that were not accepted or not possible.
    log_z
        log Z given the evidence: exact (but for rounding) if they are, else log of the mean weight of all draws, an
        estimate; nan for chains.
    stopped_by
        "tol" if all samples asked for are there, else what ended the run before.
    """

    model: Model
    states: States
    log_weights: Floats
    kind: Kind
    reason: str
    num_drawn: int
    log_z: float
    num_chains: int = 1
    stopped_by: StoppedBy = "tol"

    def __len__(self) -> int:
        return len(self.states)

    def item(self, k: int) -> dict[Any, Any]:
        return self.model.named_configuration(self.states[k])

    @property
    def is_exact(self) -> bool:
        """Whether every sample follows the model itself."""
        return self.kind in ("exact", "rejection")

    @cached_property
    def weights(self) -> Floats:
        """(N,) how much each counts; they add up to 1."""
        shifted = np.exp(self.log_weights - self.log_weights.max(initial=-np.inf)) if len(self) else np.empty(0)
        return read_only(shifted / shifted.sum() if len(self) else shifted)

    @cached_property
    def effective_size(self) -> float:
        """How many independent samples of the model tell as much, about.

        (sum w)^2 / sum w^2 with weights; for chains, by how much the means of chains differ.
        """
        if not len(self):
            return 0.0
        if self.kind != "gibbs":
            return 1.0 / float((self.weights**2).sum())
        p, variance = self.marginals.flat, self._chain_errors**2
        unsure = (p > 0.0) & (p < 1.0)
        if not unsure.any() or self._num_means < 2:
            return float(self._num_means)
        return min(float(len(self)), float((p * (1.0 - p))[unsure].sum() / max(variance[unsure].sum(), 1e-300)))

    @cached_property
    def marginals(self) -> UnaryTables:
        """`marginals[i][a]`: the share of samples with state a of variable i, weighted; nan where there are none."""
        start = self.model.unary.start
        flat = weights_of_states(self.states, self.weights, start)
        if len(flat):  # nan where there are no samples
            with np.errstate(invalid="ignore"):
                flat /= np.repeat(np.add.reduceat(flat, start[:-1]), np.diff(start))
        return self.model.unary.with_flat(flat)

    @cached_property
    def standard_errors(self) -> UnaryTables:
        """Estimated standard errors of the marginals; for chains, by how much the means of chains differ.

        A state that was never seen, or always, may still have the probability of one sample more or less: that much is
        added.  What is certain has none.
        """
        start, p = self.model.unary.start, self.marginals.flat
        if not len(self):
            return self.model.unary.with_flat(np.full(len(p), np.nan))
        if self.kind == "gibbs":
            variance = self._chain_errors**2
        else:
            squares = weights_of_states(self.states, self.weights**2, start)
            variance = variance_of_shares(p, squares, float((self.weights**2).sum()))
        errors = np.sqrt(variance + (self.effective_size + 2.0) ** -2.0)
        possible = self.model.unary.flat > -np.inf
        errors[~possible | np.repeat(states_left(possible, start) == 1, np.diff(start))] = 0.0
        return self.model.unary.with_flat(errors)

    @cached_property
    def scores(self) -> Floats:
        """(N,) log potentials of the configurations."""
        return read_only(self.model.scores(self.states))

    @property
    def best(self) -> dict[Any, Any]:
        """The configuration of highest score among them."""
        return self[int(np.argmax(self.scores))]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each sample and a column for each variable, of state names if named.

        Weighted samples have a last column "log_weight".
        """
        weights = {"log_weight": self.log_weights} if self.kind == "weighted" else {}
        return configurations_frame(self.model, self.states, weights)

    def _card(self) -> HtmlCard:
        weighted, about = self.kind == "weighted", "" if self.kind == "exact" else ", about"
        weights = {"log weight": [f"{w:.4g}" for w in self.log_weights[:MOST_ROWS]]} if weighted else {}
        columns, rows = configuration_rows(self.model, self.states, weights)
        return HtmlCard(
            title=f"{counted(len(self), 'sample')}, {KINDS[self.kind]}",
            facts=[
                ("why", self.reason),
                *([("worth", f"{self.effective_size:,.4g} independent samples, about")] if weighted else []),
                *([("log Z", f"{self.log_z:.6f}{about}")] if not math.isnan(self.log_z) else []),
            ],
            columns=columns,
            rows=rows,
            more=and_more(len(self), len(rows), "sample"),
        )

    def __repr__(self) -> str:
        worth = "" if self.is_exact else f", worth about {self.effective_size:.3g}"
        return (
            f"Samples({len(self):,} of {counted(self.model.num_variables, 'variable')}, {KINDS[self.kind]}{worth}; "
            f"{self.reason})"
        )

    @property
    def _num_means(self) -> int:
        return min(self.num_chains, len(self))

    @cached_property
    def _chain_errors(self) -> Floats:
        """Standard errors of marginals from the means of chains, which are independent of each other."""
        number, start = self._num_means, self.model.unary.start
        total = square = np.zeros(len(self.model.unary.flat))
        for chain in range(number):
            own = self.states[chain :: self.num_chains]
            mean = weights_of_states(own, np.full(len(own), 1.0 / len(own)), start)
            total, square = total + mean, square + mean**2
        spread = np.maximum(square / number - (total / number) ** 2, 0.0)
        return np.sqrt(spread / (number - 1)) if number > 1 else np.full(len(total), math.inf)
