"""HasMarginals: the marginals and joint marginals that results can be asked for."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from clampz.display.formatting import title
from clampz.errors import EvidenceError, OptionError
from clampz.model.factors import FactorTables
from clampz.model.frames import edges_frame, states_frame
from clampz.model.model import Model
from clampz.model.tables import PairTables, UnaryTables
from clampz.model.variables import Variable
from clampz.numerics import Floats
from clampz.runtime.budget import Budget
from clampz.runtime.options import Options, check_option

# How the joint marginal of some variables of a model is found, in limited memory and time, by the name of the method
# whose results have it: each puts itself here.
JOINTS_BY: dict[str, Callable[[Model, Sequence[int], int | str | None, Budget], Floats]] = {}


class _OfModel(Protocol):
    """The attributes that `HasMarginals` needs to be mixed into a class."""

    @property
    def method(self) -> str: ...
    @property
    def model(self) -> Model: ...
    @property
    def solved(self) -> Model: ...
    @property
    def marginals(self) -> UnaryTables: ...
    @property
    def pairwise_marginals(self) -> PairTables: ...
    @property
    def factor_marginals(self) -> FactorTables: ...
    @property
    def marginal_errors(self) -> UnaryTables | None: ...


class HasMarginals:
    """A result with marginals of variables, edges and larger factors, and standard errors where they are sampled."""

    marginal_errors: UnaryTables | None = None

    def marginal(self: _OfModel, variables: Variable | Iterable[Variable]) -> Floats:
        """Return the marginal of one variable, or the joint one of several in one factor or edge, an axis for each.
        Variables that the model leaves one state only may be among them."""
        if isinstance(variables, str) or not isinstance(variables, Iterable):
            return self.marginals[self.model.variable_index(variables)]
        asked = _distinct(self.model, variables, "marginal")
        # what is certain is in no table of a model that was read with evidence, and independent of all else
        known = [i for i in asked if np.count_nonzero(self.model.unary[i] > -np.inf) == 1]
        free = sorted(set(asked).difference(known))
        table = _joint(self, free)
        for i in known:
            table = np.multiply.outer(table, self.marginals[i])
        return table.transpose([(free + known).index(i) for i in asked])

    def joint(
        self: _OfModel, variables: Iterable[Variable], *, memory: int | str | None = None, time: float = math.inf
    ) -> Floats:
        """Compute the joint marginal of any variables of an exact result, an axis for each in the order given.

        It is summed now, under the result's evidence and at its temperature.

        `memory` is in bytes or as text such as "2GB", None for half of what is free: TooWideError where that is not
        enough. `time` is in seconds: all of it is nan where these are over first, as it is where Z = 0.

        >>> from clampz import exact, generators
        >>> table = exact(generators.grid(5, 5, rng=0), evidence={12: 1}).joint([0, 24, 4])
        >>> table.shape, round(float(table.sum()), 12)
        ((2, 2, 2), 1.0)
        """
        if isinstance(variables, str) or not isinstance(variables, Iterable):
            raise EvidenceError(f"joint: expected a list of variables, found {variables!r}")
        asked, limits = _distinct(self.model, variables, "joint"), Options(memory=memory, time=time)
        if self.method not in JOINTS_BY:
            raise OptionError(
                f"joint: this result has the marginals of {title(self.method)}, which are known of variables, edges "
                "and factors alone: marginal(variables). Those of any variables are exact: cz.exact(model).joint(...)"
            )
        return JOINTS_BY[self.method](self.solved, asked, memory, Budget(limits.time))

    def to_frame(self: _OfModel, of: str = "variables") -> Any:
        """Make a pandas DataFrame of the marginals of "variables" or "edges". Variables have a row for each state, with
        "variable", "state" and "probability", and a "standard_error" where they are sampled. Edges have a row for each
        entry of their tables, with "variable", "other", "state", "other_state" and "probability"."""
        if of == "edges":
            return edges_frame(self.model, self.pairwise_marginals)
        check_option(of == "variables", "of", '"variables" or "edges"', of)
        errors = {} if self.marginal_errors is None else {"standard_error": self.marginal_errors.flat}
        return states_frame(self.model, {"probability": self.marginals.flat, **errors})


def _distinct(model: Model, variables: Iterable[Variable], what: str) -> list[int]:
    """Return indices of distinct variables."""
    asked = model.variable_indices(variables, what)
    if len(set(asked)) < len(asked):
        raise EvidenceError(f"{what}: expected distinct variables, found {tuple(asked)}")
    return asked


def _joint(result: _OfModel, variables: list[int]) -> Floats:
    """Return the joint marginal of variables, smallest first, from the smallest table that holds them."""
    if len(variables) < 2:
        return result.marginals[variables[0]] if variables else np.ones(())
    if len(variables) == 2 and (pair := (variables[0], variables[1])) in result.pairwise_marginals:
        return result.pairwise_marginals[pair]
    found = result.model.factors.holding(variables)
    if not found.size:
        raise EvidenceError(
            f"marginal: no edge or factor of the model holds variables {tuple(variables)} together; of an exact "
            f"result, joint({variables}) has the joint marginal of any"
        )
    scope, table = result.factor_marginals[int(found[0])]
    summed: Floats = table.sum(axis=tuple(k for k, i in enumerate(scope) if i not in variables))
    return summed
