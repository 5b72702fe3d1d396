"""Model: a frozen Markov random field over discrete variables, pairwise unless it has factors of more.

The sign convention, stated once: potentials are *log* potentials and higher is likelier,

    p(x) = exp(score(x)) / Z
    score(x) = constant + sum_i theta_i(x_i) + sum_ij theta_ij(x_i, x_j) + sum_f theta_f(x_f)

-inf is a hard zero; +inf and NaN are refused.  The paper's binary form, x in {0, 1}, writes theta_i x_i and
W_ij / 2 [x_i = x_j].
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz._kernels.sampling.scores import fill_scores
from clampz.display.formatting import counted
from clampz.display.html_repr import HasHtml, HtmlCard
from clampz.errors import EvidenceError, ModelError, shown
from clampz.model import checks
from clampz.model.binary import BinaryForm, Kind, balancing, flipped, pair_form
from clampz.model.conditioned_data import conditioned
from clampz.model.constructors import of_arrays, of_binary, of_flat
from clampz.model.couplings import couplings, strengths
from clampz.model.data import ModelData, fold, in_edge_order, scaled, smaller_first
from clampz.model.evidence import Evidence
from clampz.model.factors import Factor, FactorTables
from clampz.model.html import model_card
from clampz.model.problem import Problem
from clampz.model.tables import PairTables, UnaryTables, offsets, read_only
from clampz.model.temperatures import Sizes, as_betas
from clampz.model.topology import Topology
from clampz.model.variables import State, Variables
from clampz.numerics import Floats
from clampz.runtime.options import check_option


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Model(Variables, HasHtml):
    """A model: any number of labels per variable, log potentials, hard zeros as `-inf`.

    Parameters
    ----------
    unary
        One array of log potentials per variable, or an (n, L) array.
    pairwise
        `{(i, j): table}` with `table[a, b] = theta_ij(a, b)`, or pairs `((i, j), table)`; tables on the same edge, in
        either direction, are added up.
    factors
        `{variables: table}`, or pairs `(variables, table)`, over any number of variables, a table having an axis for
        each; those over one or two variables are added to the above.
    constant
        Added to every score.
    names, state_names
        Optional names of the variables, and of the states of each variable; they may be used wherever an index may.

    Attributes
    ----------
    unary, pairwise
        `unary[i]`: the log potentials of variable i; `pairwise[i, j]`: those of an edge, iterating over the edges in
        order.
    edges
        (m, 2) the edges, smaller variable first, in lexicographic order.
    factors
        Those of three or more variables, `(scope, table)` each; empty for a pairwise model.

    Examples
    --------
    >>> model = Model(unary=[[0.0, 1.0], [0.0, 0.0, 2.0]], pairwise={(0, 1): [[0, 0, 1], [1, 0, 0]]})
    >>> model
    Model(2 variables of 2 to 3 states, 1 edge)
    >>> model.score([1, 0])
    2.0
    """

    unary: UnaryTables
    pairwise: PairTables
    edges: NDArray[np.int32]
    factors: FactorTables
    constant: float

    def __init__(
        self,
        unary: Sequence[ArrayLike] | ArrayLike,
        pairwise: Mapping[tuple[Any, Any], ArrayLike] | Iterable[tuple[tuple[Any, Any], ArrayLike]] = (),
        *,
        factors: Mapping[tuple[Any, ...], ArrayLike] | Iterable[tuple[Sequence[Any], ArrayLike]] = (),
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        columns = checks.as_columns(unary)
        num_states = np.array([len(column) for column in columns], dtype=np.int64)
        super().__init__(num_states, names, state_names)
        found = [Factor((), np.array(checks.as_constant(constant)))]
        found += [Factor((i,), column) for i, column in enumerate(columns)]
        for pair, table in checks.as_pairs(pairwise):
            scope, where = self._scope(pair, "edge"), f"pairwise potentials of {pair}"
            found.append(Factor(scope, checks.as_table(table, num_states[list(scope)], where)))
        for f, item in enumerate(checks.as_tables(factors, "factors", "{variables: table}")):
            variables, table = checks.as_pair(item, "factor", "a pair (variables, table)")
            scope = self._scope(variables, "factor over")
            where = f"factor {f} over {scope}"
            if len(set(scope)) != len(scope):
                raise ModelError(f"{where}: expected distinct variables from 0 to {len(num_states) - 1}")
            found.append(Factor(scope, checks.as_table(table, num_states[list(scope)], where, "a table of ")))
        self._set(fold(FactorTables.of(num_states, found)))

    def _scope(self, variables: Sequence[Any], what: str) -> tuple[int, ...]:
        try:
            return tuple(self.variable_indices(variables, "variables"))
        except EvidenceError as error:
            raise ModelError(f"{what} {shown(variables)}: {error}") from None

    @classmethod
    def from_factors(
        cls,
        num_states: ArrayLike,
        factors: Mapping[tuple[Any, ...], ArrayLike] | Iterable[tuple[Sequence[Any], ArrayLike]],
        *,
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Make a model of factors alone, `{variables: table}` or pairs, over any number of variables.

        >>> Model.from_factors([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)) + [0, 1]), ((0,), [0, 3])]).score([1, 0, 1])
        4.0
        """
        unary = [np.zeros(size) for size in checks.as_num_states(num_states)]
        return cls(unary, factors=factors, constant=constant, names=names, state_names=state_names)

    @classmethod
    def from_arrays(
        cls,
        unary: ArrayLike,
        edges: ArrayLike,
        pairwise: ArrayLike,
        *,
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Make a model whose variables all have L states from unary (n, L), edges (m, 2), pairwise (m, L, L), without a
        Python loop."""
        return cls.from_contents(of_arrays(unary, edges, pairwise, constant, names, state_names))

    @classmethod
    def from_flat(
        cls,
        num_states: ArrayLike,
        unary: ArrayLike,
        edges: ArrayLike,
        pairwise: ArrayLike,
        *,
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """Make a model whose variables differ in their states from tables end to end, without a Python loop.

        >>> Model.from_flat([2, 3], np.zeros(5), [(1, 0)], [0, 1, 2, 3, 4, 5]).pairwise[1, 0].tolist()
        [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        """
        return cls.from_contents(of_flat(num_states, unary, edges, pairwise, constant, names, state_names))

    @classmethod
    def from_contents(cls, contents: ModelData) -> Self:
        """Make a model of data that is known to be sound."""
        model = cls.__new__(cls)
        Variables.__init__(model, contents.num_states, contents.names, contents.state_names)
        model._set(contents)
        return model

    @classmethod
    def from_binary(
        cls,
        theta: ArrayLike,
        W: ArrayLike,
        edges: ArrayLike | None = None,
        *,
        constant: float = 0.0,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Make a model in the paper's binary form: theta (n,), and W as (m,) with `edges` (m, 2) or as a symmetric (n,
        n) matrix.

        Attractive edges have W > 0.

        >>> Model.from_binary([0.5, -0.5], [2.0], [(0, 1)]).score([1, 1])
        1.0
        """
        return cls.from_contents(of_binary(theta, W, edges, constant, names))

    def with_tables(self, unary: Floats, pairwise: Floats, factors: Floats) -> "Model":
        """Replace all potentials by others that are known to be sound, sharing this model's topology. They are laid out
        as `unary.flat`, `pairwise.flat` and `factors.flat`."""
        tables = self.factors.with_flat(factors)
        return self._with(self.contents._replace(unary=unary, pairwise=pairwise, factors=tables))

    def _with(self, contents: ModelData) -> "Model":
        """Make a model of data with the same edges, which shares this model's topology."""
        model = Model.from_contents(contents)
        model.__dict__["_graph_of"] = self
        return model

    def _set(self, contents: ModelData) -> None:
        """Sort the edges, merge parallel ones, and freeze the arrays."""
        num_states, unary, edges, flat, factors, constant, *_ = contents
        checks.check_counts(len(num_states), len(edges))
        if constant == -np.inf and len(num_states):  # Z = 0: no state of the first variable is possible
            unary, constant = np.where(np.arange(len(unary)) < num_states[0], -np.inf, unary), 0.0
        edges, flat = in_edge_order(num_states, *smaller_first(num_states, edges, flat))
        edges, flat = read_only(np.ascontiguousarray(edges, dtype=np.int32)), read_only(np.ascontiguousarray(flat))
        self.__dict__.update(
            unary=UnaryTables(read_only(np.ascontiguousarray(unary)), read_only(offsets(num_states)), self._lookup),
            edges=edges,
            pairwise=PairTables.of(flat, edges, num_states, self._lookup),
            factors=factors,
            constant=float(constant),
        )

    @property
    def contents(self) -> ModelData:
        """Return all data that makes up the model; what is derived from it is quicker to compute again than to send."""
        tables = self.unary.flat, self.edges, self.pairwise.flat, self.factors
        return ModelData(self.num_states, *tables, self.constant, self.names, self.state_names)

    @property
    def num_edges(self) -> int:
        return len(self.edges)

    @property
    def num_entries(self) -> int:
        """Count the entries of all tables."""
        return len(self.unary.flat) + len(self.pairwise.flat) + len(self.factors.flat)

    @cached_property
    def couplings(self) -> tuple[NDArray[np.int32], Floats]:
        """(c, 2) list the pairs of variables that share an edge or a factor, in order, and (c,) how strongly: see
        `strength`."""
        return couplings(self.edges, self.strength, self.factors)

    @cached_property
    def topology(self) -> Topology:
        """Return the graph as index arrays, with its core, colours and components."""
        other = self.__dict__.get("_graph_of")
        return Topology.from_edges(self.num_variables, self.edges) if other is None else other.topology

    @cached_property
    def sizes(self) -> Sizes:
        """Return how large the potentials of edges and factors and the constant are."""
        return Sizes.of_contents(self.contents)

    def at(self, beta: float) -> "Model":
        """Multiply the whole score by an inverse temperature beta >= 0, hard zeros as they are; the topology is shared.

        >>> Model.from_binary([0.5, -0.5], [2.0], [(0, 1)], constant=1.0).at(0.5).score([1, 1])
        1.0
        """
        check_option(np.ndim(beta) == 0, "beta", "one number", beta)
        as_betas(beta, self.sizes.with_unary(self.unary.flat[:, None], self.num_states))
        return self._with(scaled(self.contents, float(beta)))

    @property
    def size_in_words(self) -> str:
        """Say how many variables, states, edges and larger factors there are, and a binary model's kind."""
        low, high = (int(self.num_states.min()), int(self.num_states.max())) if self.num_variables else (0, 0)
        states = counted(low, "state") if low == high else f"{low} to {high} states"
        larger = f", {counted(len(self.factors), 'larger factor')}" if self.factors else ""
        kind = f", {self.kind}" if self.binary is not None and self.num_edges else ""
        return f"{counted(self.num_variables, 'variable')} of {states}, {counted(self.num_edges, 'edge')}{larger}{kind}"

    def __repr__(self) -> str:
        return f"Model({self.size_in_words})"

    def _card(self) -> HtmlCard:
        return model_card(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        pairs: Iterable[tuple[Any, Any]] = zip(self.contents, other.contents, strict=True)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.num_variables, self.edges.tobytes(), self.constant))

    @cached_property
    def problem(self) -> Problem:
        """Return what was found about this model so far: its presolved forms, planarity, order and tree."""
        return Problem()

    def __reduce__(self) -> tuple[Any, ...]:
        return Model.from_contents, (self.contents,)  # (a copy stays closed to writing)

    # -- the binary form -----------------------------------------------------------------------------------------------

    @cached_property
    def binary(self) -> BinaryForm | None:
        """Return the paper's binary form, or None where there is none. It needs two states everywhere, no hard zero and
        no factor of more than two variables."""
        if self.pair_form is None or not np.isfinite(self.unary.flat).all():
            return None
        shift, W, constant = self.pair_form
        low, high = self.unary.flat.reshape(-1, 2).T
        return BinaryForm(read_only(high - low + shift), W, float(self.constant + low.sum() + constant))

    @cached_property
    def pair_form(self) -> BinaryForm | None:
        """Return the binary form of pairwise potentials alone, or None unless they are finite and over two states
        each."""
        return None if self.factors else pair_form(self.pairwise)

    @cached_property
    def strength(self) -> Floats:
        """(m,) return the largest `|t(a,b) + t(c,d) - t(a,d) - t(c,b)|` of each edge: `|W|` for binary models."""
        return read_only(strengths(self.pairwise) if self.pair_form is None else np.abs(self.pair_form.W))

    @cached_property
    def _balance(self) -> tuple[NDArray[np.bool_], bool]:
        if self.pair_form is None:
            raise ModelError(
                "attractive, balanced and mixed are defined for binary models with finite pairwise potentials; "
                "this is none"
            )
        return balancing(self.num_variables, self.edges, self.pair_form.W)

    @property
    def kind(self) -> Kind:
        """Return "attractive" (every W >= 0), "balanced" (attractive after flips) or "mixed", of a binary model."""
        if self.pair_form is not None and (self.pair_form.W >= 0).all():
            return "attractive"
        return "balanced" if self._balance[1] else "mixed"

    @property
    def is_balanced(self) -> bool:
        """Whether a binary model is attractive or balanced: Bethe's value is a lower bound there."""
        return self.pair_form is not None and self.kind != "mixed"

    def balancing_flip(self) -> NDArray[np.bool_]:
        """(n,) return the variables whose flip makes a balanced model attractive."""
        flip, balanced = self._balance
        if not balanced:
            raise ModelError("this model is mixed: a cycle has an odd number of repulsive edges; no flip helps")
        return flip

    def flip(self, variables: ArrayLike) -> "Model":
        """Exchange the two states of binary variables, given by a mask, index or name; the distribution stays."""
        chosen = np.asarray(variables)
        if chosen.dtype == np.bool_ and chosen.shape != (self.num_variables,):
            raise ModelError(f"mask of variables: expected shape ({self.num_variables},), found {chosen.shape}")
        mask = np.zeros(self.num_variables, dtype=np.bool_)
        mask[chosen if chosen.dtype == np.bool_ else self.variable_indices(np.atleast_1d(chosen).tolist())] = True
        wrong = np.flatnonzero(mask & (self.num_states != 2))
        if wrong.size:
            raise ModelError(
                f"only variables of two states can be flipped; variable {wrong[0]} has {self.num_states[wrong[0]]}"
            )
        return Model.from_contents(flipped(self.contents, mask))

    # -- configurations and evidence -----------------------------------------------------------------------------------

    def score(self, configuration: Sequence[State] | Evidence | ArrayLike) -> float:
        """Compute the log potential of a configuration: `{variable: state}`, or states in order, numbers as indices."""
        return float(self.scores(self.as_configuration(configuration)[None])[0])

    def scores(self, configurations: NDArray[np.integer[Any]]) -> Floats:
        """(N,) compute log potentials of many configurations (N, n), states by index."""
        states, factors = self.as_configurations(configurations), self.factors
        tables = self.unary.start, self.unary.flat, self.edges, self.pairwise.start, self.pairwise.flat
        larger = factors.scope_start, factors.variables, factors.start, factors.flat
        out = np.empty(len(states))
        fill_scores(states, self.num_states, *tables, *larger, out)
        return out + self.constant

    def condition(self, evidence: Evidence) -> "Model":
        """Condition on evidence `{variable: state}`, or a likelihood for each state in place of a state.

        The result's Z is the probability of the evidence times Z. Every variable keeps its place and its states.
        One whose state is certain is in no edge and no larger factor: tables over it shrink.

        >>> model = Model.from_binary([0.0, 0.0], [2.0], [(0, 1)], names=["a", "b"])
        >>> [table.tolist() for table in model.condition({"a": 1}).unary]
        [[-inf, 0.0], [0.0, 1.0]]
        >>> model.condition({"a": [1.0, 0.5]}).num_edges
        1
        """
        said = self.as_mapping(evidence)
        found = self.findings(said)
        return Model.from_contents(conditioned(self.contents, found, said)) if any(found) else self
