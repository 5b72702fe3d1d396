"""Model: a frozen Markov random field over discrete variables, pairwise unless it has factors of more.

The sign convention, stated once: potentials are *log* potentials and higher is likelier,

    p(x) = exp(score(x)) / Z,    score(x) = constant + sum_i theta_i(x_i) + sum_ij theta_ij(x_i, x_j) + sum_f
    theta_f(x_f).

-inf is a hard zero; +inf and NaN are refused.  The paper's binary form writes theta_i x_i and W_ij / 2 [x_i = x_j], x
in {0, 1}.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz._kernels import graph
from clampz.errors import EvidenceError, ModelError
from clampz.model.checks import as_constant, as_edges, as_log_potentials, as_num_states, as_pairs, as_rows, some, two
from clampz.model.factors import Factor, FactorTables, Folded, as_factors, coupling, fold, reduced
from clampz.model.tables import Floats, Integers, PairTables, UnaryTables, offsets, ranges, read_only
from clampz.model.topology import Topology

Variable = int | str
State = int | str
Evidence = Mapping[Any, Any]
Kind = Literal["attractive", "balanced", "mixed"]

# Strength of an edge with hard zeros: beyond any finite weight that matters, yet safe to add up and to compare.
HARD_STRENGTH = 1e4


class BinaryForm(NamedTuple):
    """score(x) = constant + sum theta_i x_i + sum W_ij / 2 [x_i = x_j], with W in the order of the model's edges."""

    theta: Floats
    W: Floats
    constant: float


class Model:
    """A model: any number of labels per variable, log potentials, hard zeros as -inf.

    Parameters
    ----------
    unary
        One array of log potentials per variable, or an (n, L) array.
    pairwise
        `{(i, j): table}` with `table[a, b] = theta_ij(a, b)`, or pairs `((i, j), table)`; tables on the same edge, in
        either direction, are added up.
    factors
        Pairs (variables, table) over any number of variables, a table having an axis for each; those over one or two
        variables are added to the above.
    constant
        Added to every score.
    names, state_names
        Optional names of the variables, and of the states of each variable; they may be used wherever an index may.

    >>> model = Model(unary=[[0.0, 1.0], [0.0, 0.0, 2.0]], pairwise={(0, 1): [[0, 0, 1], [1, 0, 0]]})
    >>> model
    Model(2 variables of 2 to 3 states, 1 edge)
    >>> model.score([1, 0])
    2.0
    """

    def __init__(
        self,
        unary: Sequence[ArrayLike] | ArrayLike,
        pairwise: Mapping[tuple[Any, Any], ArrayLike] | Iterable[tuple[tuple[Any, Any], ArrayLike]] = (),
        *,
        factors: Iterable[tuple[Sequence[Any], ArrayLike]] = (),
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        columns = [
            as_log_potentials(table, f"unary potentials of variable {i}") for i, table in enumerate(as_rows(unary))
        ]
        for i, column in enumerate(columns):
            if column.ndim != 1 or column.size == 0:
                raise ModelError(
                    f"unary potentials of variable {i}: expected a list with one number per state, found shape {column.shape}"
                )
        num_states = np.array([len(t) for t in columns], dtype=np.int64)
        self._set_variables(num_states, names, state_names)
        pairs, tables = as_pairs(pairwise)
        ends = [(self._checked_index(i, (i, j)), self._checked_index(j, (i, j))) for i, j in pairs]
        flat = []
        for (i, j), pair, table in zip(ends, pairs, tables, strict=True):
            where = f"pairwise potentials of {pair}"
            array = as_log_potentials(table, where)
            if array.shape != (num_states[i], num_states[j]):
                raise ModelError(
                    f"{where}: expected shape {(int(num_states[i]), int(num_states[j]))}, found {array.shape}"
                )
            flat.append((array if i < j else array.T).ravel())
        edges = np.sort(np.array(ends, dtype=np.int64).reshape(-1, 2), axis=1)
        folded = self._folded(factors)
        turned, tables_of_pairs = _smaller_first(num_states, folded.edges, folded.pairwise)
        self._set(
            np.concatenate([*columns, []]) + folded.unary,
            np.concatenate([edges, turned]),
            np.concatenate([*flat, tables_of_pairs]),
            as_constant(constant) + folded.constant,
            folded.factors,
        )

    def _folded(self, factors: Iterable[tuple[Sequence[Any], ArrayLike]]) -> Folded:
        """Factors as a user gives them, by size."""
        given = []
        for item in factors:
            scope, table = two(item, "factor", "a pair (variables, table)")
            given.append((tuple(self._checked_index(i, scope, "factor over") for i in scope), table))
        known = as_factors(self._num_states, given)
        flat = np.concatenate([np.empty(0), *(factor.table.ravel() for factor in known)])
        variables = np.array([i for factor in known for i in factor.scope], dtype=np.int64)
        return fold(
            self._num_states,
            offsets(np.array([len(factor.scope) for factor in known], dtype=np.int64)),
            variables,
            flat,
        )

    @classmethod
    def from_factors(
        cls,
        num_states: ArrayLike,
        factors: Iterable[tuple[Sequence[Any], ArrayLike]],
        *,
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> Self:
        """A model given by factors alone, pairs (variables, table) over any number of variables.

        >>> Model.from_factors([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)) + [0, 1]), ((0,), [0, 3])]).score([1, 0, 1])
        4.0
        """
        states = as_num_states(num_states)
        return cls(
            [np.zeros(size) for size in states],
            factors=factors,
            constant=constant,
            names=names,
            state_names=state_names,
        )

    @classmethod
    def from_flat_factors(
        cls, num_states: Integers, scope_start: Integers, variables: Integers, flat: Floats, *, constant: float = 0.0
    ) -> Self:
        """From factors of any size laid end to end, as a file has them; scopes and values are known to be sound."""
        folded = fold(num_states, scope_start, variables, flat)
        edges, pairwise = _smaller_first(num_states, folded.edges, folded.pairwise)
        return cls._from_checked(
            num_states, folded.unary, edges, pairwise, constant + folded.constant, None, None, folded.factors
        )

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
        """A model whose variables all have L states: unary (n, L), edges (m, 2), pairwise (m, L, L).  No Python loop:
        use it for large models."""
        unary_array = as_log_potentials(unary, "unary")
        if unary_array.ndim != 2 or unary_array.shape[1] == 0:
            raise ModelError(f"unary: expected shape (variables, states), found {unary_array.shape}")
        n, num_labels = unary_array.shape
        edge_array = as_edges(edges, n)
        tables = as_log_potentials(pairwise, "pairwise")
        wanted = (len(edge_array), num_labels, num_labels)
        if tables.shape != wanted and (tables.size or len(edge_array)):
            raise ModelError(
                f"pairwise: expected shape {wanted} for {len(edge_array)} edges of {num_labels} states, found {tables.shape}"
            )
        swap = edge_array[:, 0] > edge_array[:, 1]
        if swap.any():
            tables = np.where(swap[:, None, None], tables.transpose(0, 2, 1), tables)
            edge_array = np.sort(edge_array, axis=1)
        return cls._from_checked(
            np.full(n, num_labels), unary_array.ravel(), edge_array, tables.ravel(), constant, names, state_names
        )

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
        """A model whose variables differ in their states, from tables laid end to end, the second variable of an edge
        varying fastest.  No Python loop.

        >>> Model.from_flat([2, 3], np.zeros(5), [(1, 0)], [0, 1, 2, 3, 4, 5]).pairwise[1, 0].tolist()
        [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        """
        states = as_num_states(num_states)
        unary_array = as_log_potentials(unary, "unary")
        if unary_array.shape != (states.sum(),):
            raise ModelError(
                f"unary: expected shape ({states.sum()},), a number per state of each variable in turn, found {unary_array.shape}"
            )
        edge_array = as_edges(edges, len(states))
        i, j = edge_array.T
        flat = as_log_potentials(pairwise, "pairwise")
        start = offsets(states[i] * states[j])
        if flat.shape != (start[-1],):
            raise ModelError(
                f"pairwise: expected shape ({start[-1]},), the tables of {len(edge_array)} edges in turn, found {flat.shape}"
            )
        edge_array, flat = _smaller_first(states, edge_array, flat)
        return cls._from_checked(states, unary_array, edge_array, flat, constant, names, state_names)

    @classmethod
    def _from_checked(
        cls,
        num_states: Integers,
        unary: Floats,
        edges: Integers,
        flat: Floats,
        constant: float,
        names: Sequence[str] | None,
        state_names: Sequence[Sequence[str]] | None,
        factors: Sequence[Factor] = (),
    ) -> Self:
        """From flat tables that are known to be sound, with the smaller variable of each edge first."""
        model = cls.__new__(cls)
        model._set_variables(num_states, names, state_names)
        model._set(unary, edges, flat, constant, factors)
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
        """The paper's binary form: theta (n,) and W, either (m,) with `edges` (m, 2) or a symmetric (n, n) matrix.

        Attractive edges have W > 0.

        >>> Model.from_binary([0.5, -0.5], [2.0], [(0, 1)]).score([1, 1])
        1.0
        """
        theta_array = as_log_potentials(theta, "theta", finite=True)
        weights = as_log_potentials(W, "W", finite=True)
        if theta_array.ndim != 1:
            raise ModelError(f"theta: expected shape (variables,), found {theta_array.shape}")
        n = len(theta_array)
        if edges is None:
            if weights.shape != (n, n):
                raise ModelError(
                    f"W without edges: expected a symmetric ({n}, {n}) matrix, found shape {weights.shape}"
                )
            if not np.array_equal(weights, weights.T) or np.diagonal(weights).any():
                i, j = np.argwhere((weights != weights.T) | np.diag(np.diagonal(weights) != 0))[0]
                wanted = f"W[{j}, {i}] = {weights[j, i]}" if i != j else "0 on the diagonal"
                raise ModelError(
                    f"W[{i}, {j}] = {weights[i, j]}: expected a symmetric matrix with a zero diagonal, here {wanted}"
                )
            edge_array = np.argwhere(np.triu(weights))
            weights = weights[edge_array[:, 0], edge_array[:, 1]]
        else:
            edge_array = as_edges(edges, n)
            if weights.shape != (len(edge_array),):
                raise ModelError(f"W: expected one weight per edge, shape ({len(edge_array)},), found {weights.shape}")
        unary = np.stack([np.zeros(n), theta_array], axis=1)
        pairwise = np.zeros((len(edge_array), 2, 2))
        pairwise[:, 0, 0] = pairwise[:, 1, 1] = weights / 2
        return cls.from_arrays(unary, edge_array, pairwise, constant=constant, names=names)

    def _set_variables(
        self, num_states: Integers, names: Sequence[str] | None, state_names: Sequence[Sequence[str]] | None
    ) -> None:
        n = len(num_states)
        if names is not None:
            names = tuple(names)
            other = next((name for name in names if not isinstance(name, str)), None)
            if other is not None:
                raise ModelError(f"names: expected strings, found {other!r}")
            if len(names) != n or len(set(names)) != n:
                raise ModelError(
                    f"names: expected {n} distinct strings, one per variable, found {len(names)} with {len(set(names))} distinct"
                )
        if state_names is not None:
            state_names = tuple(tuple(states) for states in state_names)
            if len(state_names) != n:
                raise ModelError(f"state_names: expected one list per variable, {n} in all, found {len(state_names)}")
            for i, states in enumerate(state_names):
                if (
                    len(states) != num_states[i]
                    or len(set(states)) != len(states)
                    or not all(isinstance(state, str) for state in states)
                ):
                    raise ModelError(
                        f"state_names of variable {i}: expected {num_states[i]} distinct strings, found {list(states)}"
                    )
        self._num_states = read_only(num_states)
        self._names = names
        self._state_names = state_names

    def _set(
        self, unary: Floats, edges: Integers, flat: Floats, constant: float, factors: Sequence[Factor] = ()
    ) -> None:
        """Sort the edges, merge parallel ones, and freeze the arrays."""
        constant = as_constant(constant)
        loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
        if loops.size:
            raise ModelError(
                f"edge {tuple(edges[loops[0]].tolist())}: a variable cannot have an edge to itself; add its diagonal to the unary potentials"
            )
        num_states = self._num_states
        keys = edges[:, 0] * len(num_states) + edges[:, 1]
        sizes = num_states[edges[:, 0]] * num_states[edges[:, 1]]
        start = offsets(sizes)
        if not (keys[1:] > keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            first = np.concatenate([[True], np.diff(keys[order]) > 0])
            kept, extra = order[first], order[~first]
            merged_start = offsets(sizes[kept])
            merged = flat[ranges(start[kept], sizes[kept])]
            # a parallel edge adds its table to that of the first of its kind
            into = merged_start[:-1][(np.cumsum(first) - 1)[~first]]
            np.add.at(merged, ranges(into, sizes[extra]), flat[ranges(start[extra], sizes[extra])])
            edges, flat, start = edges[kept], merged, merged_start
        self._edges = read_only(np.ascontiguousarray(edges, dtype=np.int32))
        self._unary = UnaryTables(read_only(np.ascontiguousarray(unary)), read_only(offsets(num_states)))
        self._pairwise = PairTables(
            read_only(np.ascontiguousarray(flat)), read_only(start), self._edges, self._num_states
        )
        self._factors = FactorTables.of(num_states, factors)
        self._constant = constant

    # -- data ---------------------------------------------------------------------------------------------------------------

    @property
    def num_variables(self) -> int:
        return len(self._num_states)

    @property
    def num_edges(self) -> int:
        return len(self._edges)

    @property
    def num_states(self) -> Integers:
        """(n,) number of states of each variable."""
        return self._num_states

    @property
    def unary(self) -> UnaryTables:
        """`unary[i]`: the log potentials of variable i."""
        return self._unary

    @property
    def pairwise(self) -> PairTables:
        """`pairwise[i, j]`: the log potentials of an edge; iterates over the edges in order."""
        return self._pairwise

    @property
    def edges(self) -> NDArray[np.int32]:
        """(m, 2) the edges, smaller variable first, in lexicographic order."""
        return self._edges

    @property
    def factors(self) -> FactorTables:
        """The factors of three or more variables, `(scope, table)` each; empty for a pairwise model."""
        return self._factors

    @cached_property
    def couplings(self) -> tuple[NDArray[np.int32], Floats]:
        """(c, 2) every pair of variables that share an edge or a factor, in lexicographic order, and (c,) how strongly
        they are tied: see `strength`."""
        if not self._factors:
            return self._edges, self.strength
        tied: dict[tuple[int, int], float] = dict(
            zip(map(tuple, self._edges.tolist()), self.strength.tolist(), strict=True)
        )
        for scope, table in self._factors:
            for b in range(len(scope)):
                for a in range(b):
                    pair = scope[a], scope[b]
                    tied[pair] = min(tied.get(pair, 0.0) + coupling(table, a, b, HARD_STRENGTH), HARD_STRENGTH)
        pairs = sorted(tied)
        return read_only(np.array(pairs, dtype=np.int32).reshape(-1, 2)), read_only(
            np.array([tied[pair] for pair in pairs])
        )

    @property
    def constant(self) -> float:
        return self._constant

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._names

    @property
    def state_names(self) -> tuple[tuple[str, ...], ...] | None:
        return self._state_names

    @cached_property
    def topology(self) -> Topology:
        """The graph as index arrays, with its core, colours and components."""
        return Topology.from_edges(self.num_variables, self._edges)

    def __repr__(self) -> str:
        low, high = (int(self._num_states.min()), int(self._num_states.max())) if self.num_variables else (0, 0)
        states = f"{low} state{'' if low == 1 else 's'}" if low == high else f"{low} to {high} states"
        edges = f"{self.num_edges} edge{'' if self.num_edges == 1 else 's'}"
        if self._factors:
            edges += f", {len(self._factors)} larger factor{'' if len(self._factors) == 1 else 's'}"
        kind = f", {self.kind}" if self.binary is not None and self.num_edges else ""
        return (
            f"Model({self.num_variables} variable{'' if self.num_variables == 1 else 's'} of {states}, {edges}{kind})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return (
            self._constant == other._constant
            and self._names == other._names
            and self._state_names == other._state_names
            and self._factors == other._factors
            and all(
                np.array_equal(a, b)
                for a, b in [
                    (self._num_states, other._num_states),
                    (self._edges, other._edges),
                    (self._unary.flat, other._unary.flat),
                    (self._pairwise.flat, other._pairwise.flat),
                ]
            )
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.num_variables, self._edges.tobytes(), self._constant))

    def __reduce__(self) -> tuple[Any, ...]:
        # what is derived is quicker to compute again than to send, and a copy stays closed to writing
        return Model._from_checked, (
            self._num_states, self._unary.flat, self._edges.astype(np.int64), self._pairwise.flat, self._constant, self._names, self._state_names,
            list(self._factors),
        )  # fmt: skip

    # -- names --------------------------------------------------------------------------------------------------------------

    def variable_index(self, variable: Variable) -> int:
        """The index of a variable given by index or name."""
        if isinstance(variable, str):
            if self._names is None:
                raise EvidenceError(
                    f"variable {variable!r}: this model's variables have no names; use an index from 0 to {self.num_variables - 1}"
                )
            try:
                return self._index_of_name[variable]
            except KeyError:
                raise EvidenceError(f"unknown variable {variable!r}; this model has {some(self._names)}") from None
        if (
            not isinstance(variable, int | np.integer)
            or isinstance(variable, bool)
            or not 0 <= variable < self.num_variables
        ):
            raise EvidenceError(f"unknown variable {variable!r}: expected an index from 0 to {self.num_variables - 1}")
        return int(variable)

    def state_index(self, variable: Variable, state: State) -> int:
        """The index of a state given by index or name."""
        i = self.variable_index(variable)
        if isinstance(state, str):
            known = self._state_names[i] if self._state_names is not None else ()
            if state not in known:
                raise EvidenceError(
                    f"unknown state {state!r} of variable {variable!r}; it has {some(known) if known else 'no state names'}"
                )
            return known.index(state)
        if not isinstance(state, int | np.integer | np.bool_) or not 0 <= state < self._num_states[i]:
            raise EvidenceError(
                f"unknown state {state!r} of variable {variable!r}: expected an index from 0 to {self._num_states[i] - 1}"
            )
        return int(state)

    @cached_property
    def _index_of_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._names or ())}

    def _checked_index(self, variable: Any, scope: object, what: str = "edge") -> int:
        try:
            return self.variable_index(variable)
        except EvidenceError as error:
            raise ModelError(f"{what} {scope!r}: {error}") from None

    # -- the binary form ----------------------------------------------------------------------------------------------------

    @cached_property
    def binary(self) -> BinaryForm | None:
        """The paper's binary form, or None where there is none: other than two states somewhere, a hard zero, or a
        factor of more than two variables."""
        if self.pair_form is None or not np.isfinite(self._unary.flat).all():
            return None
        shift, W, constant = self.pair_form
        low, high = self._unary.flat.reshape(-1, 2).T
        return BinaryForm(read_only(high - low + shift), W, float(self._constant + low.sum() + constant))

    @cached_property
    def pair_form(self) -> BinaryForm | None:
        """The binary form of the pairwise potentials alone, or None unless they are finite and over two states each.

        A table [[a, b], [c, d]] has W = a + d - b - c, and adds (c - b + d - a)/2 to theta_i, (b - c + d - a)/2 to
        theta_j, (a + b + c - d)/2 to the constant.
        """
        if (self._num_states != 2).any() or not np.isfinite(self._pairwise.flat).all() or self._factors:
            return None
        a, b, c, d = self._pairwise.flat.reshape(-1, 4).T
        i, j = self._edges.T
        n = self.num_variables
        theta = np.bincount(i, (c - b + d - a) / 2, n) + np.bincount(j, (b - c + d - a) / 2, n)
        return BinaryForm(read_only(theta), read_only(a + d - b - c), float(((a + b + c - d) / 2).sum()))

    @cached_property
    def strength(self) -> Floats:
        """(m,) the largest |t(a,b) + t(c,d) - t(a,d) - t(c,b)| of each edge: |W| for binary models, for any number of
        labels."""
        if self.pair_form is not None:
            return read_only(np.abs(self.pair_form.W))
        return read_only(_strengths(self._pairwise))

    @cached_property
    def _balance(self) -> tuple[NDArray[np.bool_], bool]:
        form = self.pair_form
        if form is None:
            raise ModelError(
                "attractive, balanced and mixed are defined for binary models with finite pairwise potentials; this is none"
            )
        kept = form.W != 0  # an edge without weight couples nothing
        start, neighbour, edge_of = graph.neighbour_lists(self.num_variables, self._edges[kept])
        flip, balanced = graph.balance(start, neighbour, edge_of, (form.W[kept] < 0).astype(np.int8))
        return read_only(flip.astype(np.bool_)), bool(balanced)

    @property
    def kind(self) -> Kind:
        """Of a binary model: "attractive" (every W >= 0), "balanced" (attractive after flipping some variables) or
        "mixed"."""
        if self.pair_form is not None and (self.pair_form.W >= 0).all():
            return "attractive"
        return "balanced" if self._balance[1] else "mixed"

    def balancing_flip(self) -> NDArray[np.bool_]:
        """(n,) the variables whose flip makes a balanced model attractive."""
        flip, balanced = self._balance
        if not balanced:
            raise ModelError(
                "this model is mixed: a cycle has an odd number of repulsive edges, and no flip makes it attractive"
            )
        return flip

    def flip(self, variables: ArrayLike) -> "Model":
        """The same distribution with the two states of some binary variables exchanged (a mask, or variables by index
        or name)."""
        chosen = np.asarray(variables)
        if chosen.dtype == np.bool_ and chosen.shape != (self.num_variables,):
            raise ModelError(f"mask of variables: expected shape ({self.num_variables},), found {chosen.shape}")
        mask = np.zeros(self.num_variables, dtype=np.bool_)
        mask[
            chosen if chosen.dtype == np.bool_ else [self.variable_index(v) for v in np.atleast_1d(chosen).tolist()]
        ] = True
        wrong = np.flatnonzero(mask & (self._num_states != 2))
        if wrong.size:
            raise ModelError(
                f"only variables of two states can be flipped; variable {wrong[0]} has {self._num_states[wrong[0]]}"
            )
        first = self._unary.start[:-1][mask]
        unary, flat = self._unary.flat.copy(), self._pairwise.flat.copy()
        unary[first], unary[first + 1] = self._unary.flat[first + 1], self._unary.flat[first]
        i, j = self._edges.T
        entry, edge, a, b = self._pairwise.entries(np.flatnonzero(mask[i] | mask[j]))
        a, b = np.where(mask[i[edge]], 1 - a, a), np.where(mask[j[edge]], 1 - b, b)
        flat[entry] = self._pairwise.flat[self._pairwise.start[edge] + a * self._num_states[j[edge]] + b]
        states = self._state_names and tuple(s[::-1] if mask[i] else s for i, s in enumerate(self._state_names))
        factors = [
            Factor(scope, np.flip(table, tuple(a for a, i in enumerate(scope) if mask[i])))
            for scope, table in self._factors
        ]
        return Model._from_checked(
            self._num_states, unary, self._edges.astype(np.int64), flat, self._constant, self._names, states, factors
        )

    # -- configurations and evidence ------------------------------------------------------------------------------------------

    def score(self, configuration: Sequence[State] | Evidence | ArrayLike) -> float:
        """Log potential of one configuration: a state for every variable, in order or as `{variable: state}`."""
        if isinstance(configuration, Mapping):
            given = self.as_evidence(configuration)
            missing = next((i for i in range(self.num_variables) if i not in given), None)
            if missing is not None:
                raise EvidenceError(
                    f"configuration: expected a state for each of {self.num_variables} variables, found none for variable {missing}"
                )
            configuration = [given[i] for i in range(self.num_variables)]
        states = np.asarray(configuration)
        if states.shape != (self.num_variables,):
            raise EvidenceError(
                f"configuration: expected a state for each of {self.num_variables} variables, found shape {states.shape}"
            )
        if not np.issubdtype(states.dtype, np.integer) or ((states < 0) | (states >= self._num_states)).any():
            states = np.array([self.state_index(i, s) for i, s in enumerate(configuration)])  # type: ignore[arg-type]
        x = states.astype(np.int64)
        i, j = self._edges.T
        pair_entries = self._pairwise.start[:-1] + x[i] * self._num_states[j] + x[j]
        larger = sum(float(table[tuple(x[list(scope)])]) for scope, table in self._factors)
        return (
            float(
                self._constant
                + self._unary.flat[self._unary.start[:-1] + x].sum()
                + self._pairwise.flat[pair_entries].sum()
            )
            + larger
        )

    def as_evidence(self, evidence: Evidence) -> dict[int, int]:
        """Evidence by index: `{variable: state}` with every name looked up, contradictions refused."""
        if not isinstance(evidence, Mapping):
            raise EvidenceError(f"evidence: expected a mapping {{variable: state}}, found {type(evidence).__name__}")
        found: dict[int, int] = {}
        for variable, state in evidence.items():
            i, a = self.variable_index(variable), self.state_index(variable, state)
            if found.setdefault(i, a) != a:
                raise EvidenceError(f"evidence gives variable {variable!r} two states, {found[i]} and {a}")
        return found

    def condition(self, evidence: Evidence) -> "Model":
        """The model of the other variables, given evidence `{variable: state}`; its Z is the probability of the
        evidence times Z.

        >>> Model.from_binary([0.0, 0.0], [2.0], [(0, 1)], names=["a", "b"]).condition({"a": 1}).unary[0].tolist()
        [0.0, 1.0]
        """
        given = self.as_evidence(evidence)
        clamped = np.full(self.num_variables, -1, dtype=np.int64)
        clamped[list(given)] = list(given.values())
        free = clamped < 0
        i, j = self._edges.T
        kept = np.flatnonzero(free[i] & free[j])
        entry, edge, a, b = self._pairwise.entries(np.flatnonzero(~(free[i] & free[j])))
        state_i, state_j, value = clamped[i[edge]], clamped[j[edge]], self._pairwise.flat[entry]
        unary = self._unary.flat.copy()
        for onto, variable, state in [((state_i == a) & (state_j < 0), j, b), ((state_j == b) & (state_i < 0), i, a)]:
            np.add.at(unary, self._unary.start[variable[edge[onto]]] + state[onto], value[onto])
        constant = (
            self._constant
            + unary[self._unary.start[:-1][~free] + clamped[~free]].sum()
            + value[(state_i == a) & (state_j == b)].sum()
        )
        smaller = FactorTables.of(self._num_states, [reduced(factor, given) for factor in self._factors])
        folded = fold(self._num_states, smaller.scope_start, smaller.variables, smaller.flat)
        unary, constant = unary + folded.unary, constant + folded.constant
        if constant == -np.inf:
            raise EvidenceError(
                f"evidence {dict(evidence)!r:.200} is impossible: the model gives it probability zero, so Z = 0 under it"
            )
        table_start, position = self._pairwise.start, np.cumsum(free) - 1
        return Model._from_checked(
            self._num_states[free],
            unary[np.repeat(free, self._num_states)],
            position[np.concatenate([self._edges[kept], folded.edges])],
            np.concatenate(
                [
                    self._pairwise.flat[ranges(table_start[kept], table_start[kept + 1] - table_start[kept])],
                    folded.pairwise,
                ]
            ),
            constant,
            self._names and [self._names[v] for v in np.flatnonzero(free)],
            self._state_names and [self._state_names[v] for v in np.flatnonzero(free)],
            [Factor(tuple(int(position[i]) for i in scope), table) for scope, table in folded.factors],
        )


def _smaller_first(num_states: Integers, edges: Integers, flat: Floats) -> tuple[Integers, Floats]:
    """Edges with the smaller variable first, and their tables turned accordingly."""
    i, j = edges.T
    if not (i > j).any():
        return edges, flat
    start = offsets(num_states[i] * num_states[j])
    tables = PairTables(flat, start, np.sort(edges, axis=1).astype(np.int32), num_states)
    entry, edge, a, b = tables.entries(np.flatnonzero(i > j))
    transposed = flat.copy()
    transposed[entry] = flat[start[edge] + b * num_states[j[edge]] + a]
    return tables.edges.astype(np.int64), transposed


def _strengths(tables: PairTables) -> Floats:
    """Of every table, the largest spread, over pairs of rows, of their difference."""
    strength = np.full(len(tables), HARD_STRENGTH)
    shapes, kind = np.unique(tables.num_states[tables.edges], axis=0, return_inverse=True)
    order, bounds = np.argsort(kind.ravel(), kind="stable"), offsets(np.bincount(kind.ravel(), minlength=len(shapes)))
    for k, (num_rows, num_columns) in enumerate(shapes):
        chosen = order[bounds[k] : bounds[k + 1]]
        cut = tables.flat[ranges(tables.start[chosen], np.full(len(chosen), num_rows * num_columns))].reshape(
            -1, num_rows, num_columns
        )
        finite = np.isfinite(cut).all(axis=(1, 2))
        cut = cut[finite]
        spread = np.zeros(len(cut))
        for r in range(num_rows):
            np.maximum(spread, np.ptp(cut - cut[:, r : r + 1], axis=2).max(axis=1), out=spread)
        strength[chosen[finite]] = np.minimum(spread, HARD_STRENGTH)
    return strength
