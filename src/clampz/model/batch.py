"""Batch: B lanes over one topology.

Clamping, evidence, restarts and candidates are all the same thing: one model's graph and pairwise potentials under many
unary tables.  A lane is one such table.  -inf in it rules a state out, so a clamped variable is one with a single state
left: it keeps its place in the topology, and the solvers see to it that value, bounds and marginals are those of the
model without it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz.errors import EvidenceError, ModelError
from clampz.model.checks import LARGEST_POTENTIAL, as_floats
from clampz.model.fixing import keep_only, states_left
from clampz.model.model import Model
from clampz.model.tables import columns, piece_of, read_only
from clampz.model.variables import Evidence
from clampz.numerics import Floats, Integers
from clampz.wording import counted


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
    """

    model: Model
    unary: Floats

    def __init__(self, model: Model, unary: ArrayLike) -> None:
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
        self.__dict__.update(model=model, unary=read_only(array))

    @classmethod
    def of(cls, model: Model) -> "Batch":
        """A model as a batch of one lane.

        >>> Batch.of(Model.from_binary([0.0, 0.0], [1.0], [(0, 1)])).num_lanes
        1
        """
        return cls(model, model.unary.flat[:, None])

    @classmethod
    def from_evidence(cls, model: Model, evidence: Iterable[Evidence]) -> "Batch":
        """One lane per evidence set `{variable: state}`: everything else of the named variables is ruled out.

        >>> Batch.from_evidence(Model.from_binary([0.0, 0.0], [1.0], [(0, 1)]), [{0: 0}, {0: 1}, {}]).num_lanes
        3
        """
        if isinstance(evidence, Mapping):
            raise EvidenceError("evidence: expected a list of evidence sets {variable: state}, found one set")
        evidence = list(evidence)
        if not evidence:
            raise EvidenceError("evidence: expected at least one evidence set, found none")
        unary = np.repeat(model.unary.flat[:, None], len(evidence), axis=1)
        hard = _edges_with_hard_zeros(model)
        for lane, given in enumerate(evidence):
            where = f"evidence set {lane}: " if len(evidence) > 1 else ""
            try:
                found = model.as_evidence(given)
            except EvidenceError as error:
                raise EvidenceError(f"{where}{error}") from None
            for i, a in found.items():
                if unary[model.unary.start[i] + a, lane] == -np.inf:
                    raise EvidenceError(
                        f"{where}variable {i} cannot be in state {a}: "
                        "the model gives that state probability zero, so Z = 0"
                    )
                keep_only(unary[:, lane], model.unary.start, i, [a])
            _refuse_forbidden_pairs(model, hard, found, where)
        return cls(model, unary)

    @property
    def num_lanes(self) -> int:
        return int(self.unary.shape[1])

    @cached_property
    def possible(self) -> NDArray[np.bool_]:
        """(S, B) the states not ruled out by the unary potentials."""
        return self.unary > -np.inf

    @cached_property
    def num_possible(self) -> NDArray[np.int64]:
        """(n, B) how many states of each variable are left; 1: clamped, 0: the lane has Z = 0."""
        return states_left(self.possible, self.model.unary.start)

    def take(self, lanes: Integers) -> "Batch":
        """Some of the lanes, in this order; a lane may be taken several times."""
        taken = object.__new__(Batch)
        taken.__dict__.update(model=self.model, unary=read_only(columns(self.unary, lanes)))
        return taken

    def lane(self, b: int) -> Model:
        """The model of one lane, clamped variables and all."""
        return Model.from_contents(self.model.contents._replace(unary=self.unary[:, b]))

    def __repr__(self) -> str:
        return f"Batch({counted(self.num_lanes, 'lane')} of {self.model!r})"


def _edges_with_hard_zeros(model: Model) -> Integers:
    impossible = np.flatnonzero(model.pairwise.flat == -np.inf)
    return np.unique(np.searchsorted(model.pairwise.start, impossible, side="right") - 1)


def _refuse_forbidden_pairs(model: Model, hard: Integers, evidence: dict[int, int], where: str) -> None:
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
