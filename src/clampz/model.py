"""Model: a frozen pairwise Markov random field over discrete variables.

The sign convention, stated once: potentials are *log* potentials and higher is likelier,

    p(x) = exp(score(x)) / Z,    score(x) = constant + sum_i theta_i(x_i) + sum_ij theta_ij(x_i, x_j).

-inf is a hard zero; +inf and NaN are refused.  The paper's binary form writes theta_i x_i and W_ij / 2 [x_i = x_j], x in {0, 1}.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clampz._kernels import graph
from clampz.errors import EvidenceError, ModelError
from clampz.tables import Floats, Integers, PairTables, UnaryTables, offsets, read_only
from clampz.topology import Topology

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
    """A pairwise model: any number of labels per variable, log potentials, hard zeros as -inf.

    Parameters
    ----------
    unary
        One array of log potentials per variable, or an (n, L) array.
    pairwise
        `{(i, j): table}` with `table[a, b] = theta_ij(a, b)`, or pairs `((i, j), table)`; tables on the same edge, in either direction, are added up.
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
        constant: float = 0.0,
        names: Sequence[str] | None = None,
        state_names: Sequence[Sequence[str]] | None = None,
    ) -> None:
        columns = [_as_log_potentials(table, f"unary potentials of variable {i}") for i, table in enumerate(_rows(unary))]
        for i, table in enumerate(columns):
            if table.ndim != 1 or table.size == 0:
                raise ModelError(f"unary potentials of variable {i}: expected a list with one number per state, found shape {table.shape}")
        num_states = np.array([len(t) for t in columns], dtype=np.int64)
        self._set_names(len(columns), num_states, names, state_names)
        pairs = list(pairwise.items() if isinstance(pairwise, Mapping) else pairwise)
        ends = [(self._checked_index(i, pair), self._checked_index(j, pair)) for pair in (p for p, _ in pairs) for i, j in [_two(pair)]]
        tables = []
        for (i, j), (pair, table) in zip(ends, pairs, strict=True):
            where = f"pairwise potentials of {pair}"
            array = _as_log_potentials(table, where)
            if array.shape != (num_states[i], num_states[j]):
                raise ModelError(f"{where}: expected shape {(int(num_states[i]), int(num_states[j]))}, found {array.shape}")
            tables.append((array if i < j else array.T).ravel())
        edges = np.sort(np.array(ends, dtype=np.int64).reshape(-1, 2), axis=1)
        flat = np.concatenate(tables) if tables else np.empty(0)
        unary_flat = np.concatenate(columns) if columns else np.empty(0)
        self._set(num_states, unary_flat, edges, flat, constant)

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
        """A model whose variables all have L states: unary (n, L), edges (m, 2), pairwise (m, L, L).  No Python loop: use it for large models."""
        unary_array = _as_log_potentials(unary, "unary")
        if unary_array.ndim != 2 or unary_array.shape[1] == 0:
            raise ModelError(f"unary: expected shape (variables, states), found {unary_array.shape}")
        n, num_labels = unary_array.shape
        edge_array = _as_edges(edges, n)
        tables = _as_log_potentials(pairwise, "pairwise")
        wanted = (len(edge_array), num_labels, num_labels)
        if tables.shape != wanted:
            raise ModelError(f"pairwise: expected shape {wanted} for {len(edge_array)} edges of {num_labels} states, found {tables.shape}")
        swap = edge_array[:, 0] > edge_array[:, 1]
        if swap.any():
            tables = np.where(swap[:, None, None], tables.transpose(0, 2, 1), tables)
            edge_array = np.sort(edge_array, axis=1)
        model = cls.__new__(cls)
        num_states = np.full(n, num_labels, dtype=np.int64)
        model._set_names(n, num_states, names, state_names)
        model._set(num_states, unary_array.ravel(), edge_array, tables.ravel(), constant)
        return model

    @classmethod
    def from_binary(
        cls, theta: ArrayLike, W: ArrayLike, edges: ArrayLike | None = None, *, constant: float = 0.0, names: Sequence[str] | None = None
    ) -> Self:
        """The paper's binary form: theta (n,) and W, either (m,) with `edges` (m, 2) or a symmetric (n, n) matrix.

        Attractive edges have W > 0.

        >>> Model.from_binary([0.5, -0.5], [2.0], [(0, 1)]).score([1, 1])
        1.0
        """
        theta_array = _as_log_potentials(theta, "theta", finite=True)
        weights = _as_log_potentials(W, "W", finite=True)
        if theta_array.ndim != 1:
            raise ModelError(f"theta: expected shape (variables,), found {theta_array.shape}")
        n = len(theta_array)
        if edges is None:
            if weights.shape != (n, n) or not np.array_equal(weights, weights.T) or np.diagonal(weights).any():
                raise ModelError(f"W without edges: expected a symmetric ({n}, {n}) matrix with a zero diagonal, found shape {weights.shape}")
            edge_array = np.argwhere(np.triu(weights))
            weights = weights[edge_array[:, 0], edge_array[:, 1]]
        else:
            edge_array = _as_edges(edges, n)
            if weights.shape != (len(edge_array),):
                raise ModelError(f"W: expected one weight per edge, shape ({len(edge_array)},), found {weights.shape}")
        unary = np.stack([np.zeros(n), theta_array], axis=1)
        pairwise = np.zeros((len(edge_array), 2, 2))
        pairwise[:, 0, 0] = pairwise[:, 1, 1] = weights / 2
        return cls.from_arrays(unary, edge_array, pairwise, constant=constant, names=names)

    def _set_names(self, n: int, num_states: Integers, names: Sequence[str] | None, state_names: Sequence[Sequence[str]] | None) -> None:
        if names is not None:
            names = tuple(names)
            if len(names) != n or len(set(names)) != n or not all(isinstance(name, str) for name in names):
                raise ModelError(f"names: expected {n} distinct strings, one per variable, found {len(names)} with {len(set(names))} distinct")
        if state_names is not None:
            state_names = tuple(tuple(states) for states in state_names)
            if len(state_names) != n:
                raise ModelError(f"state_names: expected one list per variable, {n} in all, found {len(state_names)}")
            for i, states in enumerate(state_names):
                if len(states) != num_states[i] or len(set(states)) != len(states):
                    raise ModelError(f"state_names of variable {i}: expected {num_states[i]} distinct names, found {list(states)}")
        self._num_variables = n
        self._names = names
        self._state_names = state_names

    def _set(self, num_states: Integers, unary: Floats, edges: Integers, flat: Floats, constant: float) -> None:
        """Sort the edges, merge parallel ones, and freeze the arrays."""
        if not np.isfinite(constant):
            raise ModelError(f"constant: expected a finite number, found {constant}")
        loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
        if loops.size:
            raise ModelError(f"edge {tuple(edges[loops[0]].tolist())}: a variable cannot have an edge to itself; add its diagonal to the unary potentials")
        n = len(num_states)
        keys = edges[:, 0] * n + edges[:, 1]
        sizes = num_states[edges[:, 0]] * num_states[edges[:, 1]]
        start = offsets(sizes)
        if not (keys[1:] > keys[:-1]).all():
            order = np.argsort(keys, kind="stable")
            first = np.concatenate([[True], keys[order][1:] != keys[order][:-1]])
            kept = order[first]
            merged_start = offsets(sizes[kept])
            merged = np.zeros(merged_start[-1])
            target = np.cumsum(first) - 1
            # entries of edge order[r] go to the table of edge target[r]
            into = np.repeat(merged_start[target] - start[order], sizes[order]) + _ranges(start[order], sizes[order])
            np.add.at(merged, into, flat[_ranges(start[order], sizes[order])])
            edges, flat, start = edges[kept], merged, merged_start
        self._num_states = read_only(num_states)
        self._edges = read_only(np.ascontiguousarray(edges, dtype=np.int32))
        self._unary = UnaryTables(read_only(np.ascontiguousarray(unary)), read_only(offsets(num_states)))
        self._pairwise = PairTables(read_only(np.ascontiguousarray(flat)), read_only(start), self._edges, self._num_states)
        self._constant = float(constant)

    # -- data ---------------------------------------------------------------------------------------------------------------

    @property
    def num_variables(self) -> int:
        return self._num_variables

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
        states = f"{low}" if low == high else f"{low} to {high}"
        edges = f"{self.num_edges} edge{'' if self.num_edges == 1 else 's'}"
        kind = f", {self.kind}" if self.binary is not None and self.num_edges else ""
        return f"Model({self.num_variables} variable{'' if self.num_variables == 1 else 's'} of {states} states, {edges}{kind})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return (
            self._constant == other._constant
            and self._names == other._names
            and self._state_names == other._state_names
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

    __hash__ = object.__hash__

    # -- names --------------------------------------------------------------------------------------------------------------

    def variable_index(self, variable: Variable) -> int:
        """The index of a variable given by index or name."""
        if isinstance(variable, str):
            if self._names is None:
                raise EvidenceError(f"variable {variable!r}: this model's variables have no names; use an index from 0 to {self.num_variables - 1}")
            try:
                return self._index_of_name[variable]
            except KeyError:
                raise EvidenceError(f"unknown variable {variable!r}; this model has {_some(self._names)}") from None
        if not isinstance(variable, int | np.integer) or isinstance(variable, bool) or not 0 <= variable < self.num_variables:
            raise EvidenceError(f"unknown variable {variable!r}: expected an index from 0 to {self.num_variables - 1}")
        return int(variable)

    def state_index(self, variable: Variable, state: State) -> int:
        """The index of a state given by index or name."""
        i = self.variable_index(variable)
        if isinstance(state, str):
            known = self._state_names[i] if self._state_names is not None else ()
            if state not in known:
                raise EvidenceError(f"unknown state {state!r} of variable {variable!r}; it has {_some(known) if known else 'no state names'}")
            return known.index(state)
        if not isinstance(state, int | np.integer) or not 0 <= state < self._num_states[i]:
            raise EvidenceError(f"unknown state {state!r} of variable {variable!r}: expected an index from 0 to {self._num_states[i] - 1}")
        return int(state)

    @cached_property
    def _index_of_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self._names or ())}

    def _checked_index(self, variable: Any, pair: object) -> int:
        try:
            return self.variable_index(variable)
        except EvidenceError as error:
            raise ModelError(f"edge {pair!r}: {error}") from None

    # -- the binary form ----------------------------------------------------------------------------------------------------

    @cached_property
    def binary(self) -> BinaryForm | None:
        """The paper's binary form, or None where there is none: other than two states somewhere, or a hard zero.

        A table [[a, b], [c, d]] has W = a + d - b - c, and adds (c - b + d - a)/2 to theta_i, (b - c + d - a)/2 to theta_j,
        (a + b + c - d)/2 to the constant.
        """
        return self._binary_form if self._binary_form is not None and np.isfinite(self._unary.flat).all() else None

    @cached_property
    def _binary_form(self) -> BinaryForm | None:
        """The binary form with hard zeros allowed in the unary potentials: theta is then +-inf (nan where both states are out)."""
        if (self._num_states != 2).any() or not np.isfinite(self._pairwise.flat).all():
            return None
        tables = self._pairwise.flat.reshape(-1, 4)
        a, b, c, d = tables.T
        unary = self._unary.flat.reshape(-1, 2)
        with np.errstate(invalid="ignore"):
            theta = unary[:, 1] - unary[:, 0]
        i, j = self._edges.T
        n = self.num_variables
        shift = np.bincount(i, (c - b + d - a) / 2, n) + np.bincount(j, (b - c + d - a) / 2, n)
        low = np.where(np.isfinite(unary[:, 0]), unary[:, 0], 0.0)
        constant = self._constant + low.sum() + ((a + b + c - d) / 2).sum()
        return BinaryForm(read_only(theta + shift), read_only(a + d - b - c), float(constant))

    @cached_property
    def strength(self) -> Floats:
        """(m,) the largest |t(a,b) + t(c,d) - t(a,d) - t(c,b)| of each edge: |W| for binary models, for any number of labels."""
        if self._binary_form is not None:
            return read_only(np.abs(self._binary_form.W))
        return read_only(np.array([_strength(self._pairwise.at(k)) for k in range(self.num_edges)]))

    @cached_property
    def _balance(self) -> tuple[NDArray[np.bool_], bool]:
        form = self._binary_form
        if form is None:
            raise ModelError("attractive, balanced and mixed are defined for binary models with finite pairwise potentials; this is none")
        kept = form.W != 0  # an edge without weight couples nothing
        start, neighbour, edge_of = graph.neighbour_lists(self.num_variables, self._edges[kept])
        flip, balanced = graph.balance(start, neighbour, edge_of, (form.W[kept] < 0).astype(np.int8))
        return flip.astype(np.bool_), bool(balanced)

    @property
    def kind(self) -> Kind:
        """"attractive" (every W >= 0), "balanced" (attractive after flipping some variables) or "mixed"."""
        balanced = self._balance[1]
        form = self._binary_form
        assert form is not None
        return "attractive" if (form.W >= 0).all() else "balanced" if balanced else "mixed"

    def balancing_flip(self) -> NDArray[np.bool_]:
        """(n,) the variables whose flip makes a balanced model attractive."""
        flip, balanced = self._balance
        if not balanced:
            raise ModelError("this model is mixed: a cycle has an odd number of repulsive edges, and no flip makes it attractive")
        return flip

    def flip(self, variables: ArrayLike) -> "Model":
        """The same distribution with the two states of some binary variables exchanged (a mask, or indices)."""
        chosen = np.asarray(variables)
        mask = np.zeros(self.num_variables, dtype=np.bool_)
        mask[chosen if chosen.size else chosen.astype(np.int64)] = True
        if (self._num_states[mask] != 2).any():
            raise ModelError("only variables of two states can be flipped")
        unary = [t[::-1] if mask[i] else t for i, t in enumerate(self._unary)]
        pairs = {(i, j): t[:: -1 if mask[i] else 1, :: -1 if mask[j] else 1] for (i, j), t in self._pairwise.items()}
        states = self._state_names and tuple(s[::-1] if mask[i] else s for i, s in enumerate(self._state_names))
        return Model(unary, pairs, constant=self._constant, names=self._names, state_names=states)

    # -- configurations and evidence ------------------------------------------------------------------------------------------

    def score(self, configuration: Sequence[State] | ArrayLike) -> float:
        """Log potential of one configuration: a state for every variable."""
        states = list(configuration)  # type: ignore[arg-type]
        if len(states) != self.num_variables:
            raise EvidenceError(f"configuration: expected a state for each of {self.num_variables} variables, found {len(states)}")
        x = np.array([self.state_index(i, s) for i, s in enumerate(states)], dtype=np.int64)
        i, j = self._edges.T
        pair_entries = self._pairwise.start[:-1] + x[i] * self._num_states[j] + x[j]
        return float(self._constant + self._unary.flat[self._unary.start[:-1] + x].sum() + self._pairwise.flat[pair_entries].sum())

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
        """The model of the other variables, given evidence `{variable: state}`; its Z is the probability of the evidence times Z.

        >>> Model.from_binary([0.0, 0.0], [2.0], [(0, 1)], names=["a", "b"]).condition({"a": 1}).unary[0].tolist()
        [0.0, 1.0]
        """
        given = self.as_evidence(evidence)
        free = [i for i in range(self.num_variables) if i not in given]
        position = {i: p for p, i in enumerate(free)}
        unary = [self._unary[i].copy() for i in free]
        constant = self._constant + sum(float(self._unary[i][a]) for i, a in given.items())
        pairs: list[tuple[tuple[int, int], Floats]] = []
        for (i, j), table in self._pairwise.items():
            if i in given and j in given:
                constant += float(table[given[i], given[j]])
            elif i in given:
                unary[position[j]] += table[given[i]]
            elif j in given:
                unary[position[i]] += table[:, given[j]]
            else:
                pairs.append(((position[i], position[j]), table))
        if constant == -np.inf:
            raise EvidenceError(f"evidence {dict(evidence)!r} is impossible: the model gives it probability zero, so Z = 0 under it")
        names = None if self._names is None else [self._names[i] for i in free]
        states = None if self._state_names is None else [self._state_names[i] for i in free]
        return Model(unary, pairs, constant=constant, names=names, state_names=states)


def _rows(unary: Sequence[ArrayLike] | ArrayLike) -> Sequence[ArrayLike]:
    if isinstance(unary, np.ndarray) and unary.ndim != 2 and unary.dtype != object:
        raise ModelError(f"unary: expected one list of numbers per variable, found an array of shape {unary.shape}")
    if isinstance(unary, Mapping) or not hasattr(unary, "__len__"):
        raise ModelError(f"unary: expected one list of numbers per variable, found {type(unary).__name__}")
    return unary  # type: ignore[return-value]


def _two(pair: Any) -> tuple[Any, Any]:
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise ModelError(f"edge {pair!r}: expected a pair of variables")
    return pair[0], pair[1]


def _as_log_potentials(values: ArrayLike, where: str, *, finite: bool = False) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: expected numbers in a rectangular array, found {values!r:.80}") from None
    bad = ~np.isfinite(array) if finite else np.isnan(array) | (array == np.inf)
    if bad.any():
        place = tuple(int(k) for k in np.argwhere(bad)[0])
        wanted = "finite numbers" if finite else "log potentials, finite or -inf (a hard zero)"
        raise ModelError(f"{where}{list(place) if place else ''}: expected {wanted}, found {array[place]}")
    return array


def _as_edges(edges: ArrayLike, num_variables: int) -> Integers:
    array = np.asarray(edges)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ModelError(f"edges: expected integers of shape (edges, 2), found {array.dtype} of shape {array.shape}")
    bad = np.flatnonzero(((array < 0) | (array >= num_variables)).any(axis=1))
    if bad.size:
        raise ModelError(f"edges[{bad[0]}] = {tuple(array[bad[0]].tolist())}: expected variables from 0 to {num_variables - 1}")
    return array.astype(np.int64)


def _ranges(start: Integers, sizes: Integers) -> Integers:
    """start[0], start[0] + 1, ... sizes[0] of them, then the same from start[1], and so on."""
    begin = offsets(sizes)
    return np.repeat(start - begin[:-1], sizes) + np.arange(begin[-1])


def _strength(table: Floats) -> float:
    if not np.isfinite(table).all():
        return HARD_STRENGTH
    # the largest spread, over pairs of rows, of their difference
    return min(max((float(np.ptp(table - row, axis=1).max()) for row in table), default=0.0), HARD_STRENGTH)


def _some(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(map(repr, names[:limit]))
    return shown + (f" and {len(names) - limit} more" if len(names) > limit else "")
