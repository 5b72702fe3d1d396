"""Batch: B lanes over one topology.

Clamping, evidence, restarts and candidates are all the same thing: one model's graph and pairwise potentials under many
unary tables, perhaps each at an inverse temperature of its own. -inf rules a state out: a clamped variable has one
state left and keeps its place in the topology. Solvers return value, bounds and marginals of the model without it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.display.formatting import counted
from clampz.errors import EvidenceError, ModelError, OptionError
from clampz.model.checks import LARGEST_POTENTIAL, as_floats
from clampz.model.conditioned_data import log_of
from clampz.model.conditioning import keep_only, states_left
from clampz.model.data import scaled
from clampz.model.evidence import Evidence, as_sets
from clampz.model.model import Model
from clampz.model.model_checks import check_model
from clampz.model.tables import piece_of, read_only, take_lanes
from clampz.model.temperatures import Sizes, as_betas
from clampz.numerics import Floats, Integers


@dataclass(frozen=True, eq=False)
class Batch:
    """Unary tables of B lanes over one model.

    Parameters
    ----------
    model
        Gives the topology, the pairwise potentials and the constant.
    unary
        (S, B) log potentials with the states of all variables one after another, S in all; or (n, L, B) where all have
        L states.

    Attributes
    ----------
    beta
        (B,) the inverse temperature of each lane, which all of its potentials are to be multiplied by; None for 1: see
        `at`.
    """

    model: Model
    unary: Floats
    beta: Floats | None = None

    def __init__(self, model: Model, unary: ArrayLike) -> None:
        check_model(model)
        array = as_floats(unary, "unary of a batch")
        n, num_rows = model.num_variables, int(model.unary.start[-1])
        if array.ndim == 3 and array.shape[0] == n and (model.num_states == array.shape[1]).all():
            array = array.reshape(num_rows, array.shape[2])
        if array.ndim != 2 or array.shape[0] != num_rows or array.shape[1] == 0:
            raise ModelError(
                f"unary of a batch: expected shape ({num_rows}, lanes), a row per state of each variable in turn, "
                f"found {array.shape}"
            )
        bad = np.argwhere(~((np.abs(array) <= LARGEST_POTENTIAL) | np.isneginf(array)))
        if bad.size:
            row, lane = bad[0]
            i = piece_of(model.unary.start, row)
            place = f"variable {i}, state {row - model.unary.start[i]}, lane {lane}"
            raise ModelError(
                f"unary of a batch, {place}: expected a finite number, at most {LARGEST_POTENTIAL:g} in size, or -inf, "
                f"found {array[row, lane]}"
            )
        self.__dict__.update(model=model, unary=read_only(array), beta=None)

    @classmethod
    def of(cls, model: Model) -> "Batch":
        """Wrap a model as a batch of one lane.

        >>> Batch.of(Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])).num_lanes
        1
        """
        check_model(model)
        return cls(model, model.unary.flat[:, None])

    @classmethod
    def from_evidence(cls, model: Model, evidence: Iterable[Evidence]) -> "Batch":
        """Make one lane per evidence set: other states of certain variables are ruled out, likelihoods multiply.

        >>> Batch.from_evidence(Model.from_binary([0.0, 0.0], [1.0], [(0, 1)]), [{0: 0}, {0: 1}, {}]).num_lanes
        3
        """
        check_model(model)
        evidence = as_sets(evidence)
        unary = np.repeat(model.unary.flat[:, None], len(evidence), axis=1)
        impossible = np.flatnonzero(model.pairwise.flat == -np.inf)
        hard = np.unique(np.searchsorted(model.pairwise.start, impossible, side="right") - 1)
        for lane, given in enumerate(evidence):
            where = f"evidence set {lane}: " if len(evidence) > 1 else ""
            try:
                found, likelihoods = model.findings(given)
            except EvidenceError as error:
                raise EvidenceError(f"{where}{error}") from None
            for i, a in found.items():
                if unary[model.unary.start[i] + a, lane] == -np.inf:
                    raise EvidenceError(
                        f"{where}variable {i} cannot be in state {a}: "
                        "the model gives that state probability zero, so Z = 0"
                    )
                keep_only(unary[:, lane], model.unary.start, i, [a])
            for i, likelihood in likelihoods.items():
                own = unary[model.unary.start[i] : model.unary.start[i + 1], lane]
                own += log_of(likelihood)
                if own.max() == -np.inf:
                    raise EvidenceError(
                        f"{where}variable {i} is left no state by its likelihoods: "
                        "the model gives those of them that are not 0 probability zero, so Z = 0"
                    )
            _refuse_forbidden_pairs(model, hard, found, where)
        return cls(model, unary)

    @property
    def num_lanes(self) -> int:
        return int(self.unary.shape[1])

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """(S, B) True for the states that the unary potentials do not rule out."""
        return self.unary > -np.inf

    @cached_property
    def num_possible(self) -> NDArray[np.int64]:
        """(n, B) the states left of each variable; 1: clamped, 0: the lane has Z = 0."""
        return states_left(self.possible, self.model.unary.start)

    def take(self, lanes: Integers) -> "Batch":
        """Select lanes, in this order; a lane may be selected several times."""
        beta = None if self.beta is None else self.beta[lanes]
        return self._with(self.model, take_lanes(self.unary, lanes), beta)

    def join(self, others: Sequence["Batch"]) -> "Batch":
        """Append the lanes of other batches of the same model."""
        parts = [self, *others]
        betas = [part.beta for part in parts if part.beta is not None]
        unary = np.concatenate([part.unary for part in parts], axis=1)
        return self._with(self.model, unary, np.concatenate(betas) if len(betas) == len(parts) else None)

    def at(self, beta: ArrayLike) -> "Batch":
        """Put the lanes at inverse temperatures: one for all or one for each; a single lane may be repeated for many.

        >>> Batch.of(Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])).at([0.0, 0.5, 1.0]).num_lanes
        3
        """
        betas = np.atleast_1d(as_betas(beta, self.sizes))
        num_lanes = max(self.num_lanes, len(betas))
        if not {self.num_lanes, len(betas)} <= {1, num_lanes}:
            raise OptionError(
                f"beta: expected one inverse temperature, or one for each of {self.num_lanes} lanes, found {len(betas)}"
            )
        unary = self.unary if self.num_lanes == num_lanes else np.repeat(self.unary, num_lanes, axis=1)
        return self._with(self.model, unary, read_only(np.repeat(betas, num_lanes // len(betas))))

    @cached_property
    def sizes(self) -> Sizes:
        """Return how large the potentials are, in the lane where they are largest."""
        return self.model.sizes.with_unary(self.unary, self.model.num_states)

    def scaled(self) -> "Batch":
        """Multiply lanes of one inverse temperature by it: those of the model at that temperature."""
        assert self.beta is not None
        beta = float(self.beta[0])
        unary = scaled(self.model.contents._replace(unary=self.unary), beta).unary
        return self._with(self.model.at(beta), unary, None)

    @classmethod
    def _with(cls, model: Model, unary: Floats, beta: Floats | None) -> "Batch":
        """Make a batch of arrays that are known to be sound."""
        batch = object.__new__(cls)
        batch.__dict__.update(model=model, unary=read_only(unary), beta=beta)
        return batch

    def lane(self, b: int) -> Model:
        """Return the model of one lane, clamped variables and all."""
        model = Model.from_contents(self.model.contents._replace(unary=self.unary[:, b]))
        return model if self.beta is None else model.at(float(self.beta[b]))

    def __repr__(self) -> str:
        return f"Batch({counted(self.num_lanes, 'lane')} of {self.model!r})"


def _refuse_forbidden_pairs(model: Model, hard: Integers, evidence: dict[int, int], where: str) -> None:
    """Refuse evidence that a hard zero of an edge forbids."""
    if not hard.size or len(evidence) < 2:
        return
    state = np.full(model.num_variables, -1, dtype=np.int64)
    state[list(evidence)] = list(evidence.values())
    chosen = hard[(state[model.edges[hard]] >= 0).all(axis=1)]
    i, j = model.edges[chosen].T
    forbidden = np.flatnonzero(
        model.pairwise.flat[model.pairwise.start[chosen] + state[i] * model.num_states[j] + state[j]] == -np.inf
    )
    if forbidden.size:
        u, v = i[forbidden[0]], j[forbidden[0]]
        raise EvidenceError(
            f"{where}variables {u} and {v} cannot be in states {state[u]} and {state[v]} together: "
            "the model forbids it, so Z = 0"
        )
