"""log Z and its gradient for automatic differentiation: what the torch and JAX functions have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from clampz.approximations.registry import method_named
from clampz.errors import ModelError
from clampz.method import Method
from clampz.model import Model
from clampz.model.batch import Batch
from clampz.model.checks import as_log_potentials
from clampz.model.model_checks import check_model
from clampz.model.results import Estimates
from clampz.numerics import Floats
from clampz.runtime.options import Options

# The tables of a model, and the marginals that are the derivatives of log Z by them.
MARGINALS = {"unary": "marginals", "pairwise": "pairwise_marginals", "factors": "factor_marginals"}


class LogZFunction(NamedTuple):
    """log Z as a function of tables in place of the model's own.

    Attributes
    ----------
    given
        Of these tables, by name, the shapes that they are laid out in: (entries,) or (B, entries).
    """

    model: Model
    approximation: Method[Any]
    options: Options
    given: dict[str, tuple[int, ...]]

    @classmethod
    def of(
        cls, model: Model, method: str, options: Mapping[str, Any], shapes: dict[str, tuple[int, ...]]
    ) -> "LogZFunction":
        """Check the shapes of arrays of potentials for a model and a method."""
        check_model(model)
        approximation = method_named(method)
        chosen = approximation.options(None, options)
        if not shapes:
            raise ModelError("log_z: expected a tensor of potentials, found none: unary, pairwise and factors are None")
        given = {name: _flat_shape(model, name, shape) for name, shape in shapes.items()}
        sizes = {shape[0] for shape in given.values() if len(shape) == 2}
        if len(sizes) > 1:
            raise ModelError(f"log_z: expected batches of one size, found {' and '.join(map(str, sorted(sizes)))}")
        return cls(model, approximation, chosen, given)

    @property
    def is_batch(self) -> bool:
        return any(len(shape) == 2 for shape in self.given.values())

    def at(self, tables: Sequence[Floats]) -> "LogZAt":
        """Evaluate at tables (entries,), which all models of a batch share, or (B, entries)."""
        of_name = dict(zip(self.given, tables, strict=True))
        rows = [
            np.atleast_2d(as_log_potentials(of_name[name], name) if name in of_name else getattr(self.model, name).flat)
            for name in MARGINALS
        ]
        return LogZAt(self._solved(rows))

    def _solved(self, tables: list[Floats]) -> list[Estimates]:
        """Solve the lanes of one batch, if all models share their pairwise potentials; else a batch of one for each."""
        num_lanes = max(len(flat) for flat in tables)
        unary, pairwise, factors = tables
        model, solve = self.model, self.approximation.solve
        if len(pairwise) == len(factors) == 1:
            shared = model.with_tables(model.unary.flat, pairwise[0], factors[0])
            return [solve(Batch(shared, unary.T), self.options)]
        each = [np.broadcast_to(flat, (num_lanes, flat.shape[1])) for flat in tables]
        return [
            solve(Batch.of(model.with_tables(*(flat[b].copy() for flat in each))), self.options)
            for b in range(num_lanes)
        ]


class LogZAt(NamedTuple):
    """log Z of B models, and its gradients."""

    found: list[Estimates]

    @property
    def log_z(self) -> Floats:
        """(B,) log Z of each model."""
        values: Floats = np.concatenate([found.log_z for found in self.found])
        return values

    def gradients(self, name: str, weights: Floats) -> Floats:
        """(B, entries) compute the gradient of each model's weighted log Z by the tables of this name. Weight 0 gives
        0, even where marginals are nan."""
        lanes = (lane for found in self.found for lane in getattr(found, MARGINALS[name]))
        return np.stack(
            [w * lane.flat if w else np.zeros(len(lane.flat)) for w, lane in zip(weights, lanes, strict=True)]
        )


def _flat_shape(model: Model, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return what an array of potentials is laid out as: (entries,) or (B, entries)."""
    size, states = len(getattr(model, name).flat), set(model.num_states.tolist())
    L = states.pop() if len(states) == 1 else None
    tables = {"unary": (model.num_variables, L), "pairwise": (model.num_edges, L, L)}.get(name, (size,))
    for inner in ((size,), tables):
        outer = shape[: len(shape) - len(inner)]
        if None not in inner and shape[len(outer) :] == inner and len(outer) <= 1 and 0 not in outer:
            return (*outer, size)
    also = f" or {tables}" if None not in tables and tables != (size,) else ""
    raise ModelError(f"{name}: expected shape ({size},){also}, or a batch of these, found {shape}")
