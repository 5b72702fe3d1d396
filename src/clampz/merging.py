"""Merging blocks of variables: one variable per block, whose states are the block's joint states.

    theta_A(x_A) = all potentials inside block A,    theta_AB(x_A, x_B) = all potentials between blocks A and B

makes a model of the same distribution with fewer variables and more states, so that every method and every theorem holds for it: mean field over blocks is
structured mean field, a lower bound that is never looser than mean field if it starts there; TRW over blocks is an upper bound and mostly a lower one (not
always: merging can make a cycle out of a chain).  Clamping a variable inside a block rules out the joint states that have it in another state.
"""

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from clampz._checks import LARGEST_POTENTIAL
from clampz.approximations.base import Approximation
from clampz.approximations.registry import method_named
from clampz.approximations.starts import Start
from clampz.batch import Batch
from clampz.elimination import EPS, memory_allowed
from clampz.errors import EvidenceError, ModelError, OptionError
from clampz.factors import Factor, FactorTables, fold
from clampz.limits import Options, Progress, check_option, is_whole
from clampz.model import Evidence, Model, Variable
from clampz.results import PER_LANE, Estimate, Estimates
from clampz.tables import Floats, Integers, UnaryTables, offsets, read_only

MAX_JOINT_STATES = 2**16
# Of the table of a larger factor, while a model is made of it.
COPIES = 4

_Terms = list[tuple[tuple[int, ...], Floats]]
Blocks = Sequence[Sequence[Variable]] | Sequence[int] | NDArray[np.integer[Any]]


def merge(model: Model, blocks: Blocks, *, max_states: int = MAX_JOINT_STATES, memory: int | None = None) -> "Merged":
    """Merge blocks of variables into one variable each; log Z and the distribution stay the same.

    Parameters
    ----------
    blocks
        Lists of variables, by index or name, connected or not; variables in none of them stay alone.  Or a number for each variable, the same for those of
        one block.  `partition` finds blocks.
    max_states
        Joint states of a block at most.
    memory
        Bytes that its tables may take; None for a share of what is free.

    >>> import clampz as cz
    >>> model = cz.generators.grid(4, 4, weights=(-6, 6), rng=0)
    >>> merged = cz.merge(model, [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]])
    >>> merged
    Merged(16 variables in 4 blocks of 16 joint states)
    >>> merged.solve(cz.trw).upper < cz.trw(model).upper
    True
    """
    check_option(is_whole(max_states) and max_states >= 1, "max_states", "a whole number >= 1", max_states)
    members = _as_blocks(model, blocks)
    _check_joint_states(model, members, max_states, memory_allowed(memory))
    home = np.empty(model.num_variables, dtype=np.int64)
    for number, block in enumerate(members):
        home[list(block)] = number
    terms = _terms_by_blocks(model, home)
    inside = [terms.pop((number,), []) for number in range(len(members))]
    _check_potentials(model, members, inside, list(terms.values()))
    states, potentials = _joint_states(model, members, inside)
    num_states = np.array([len(rows) for rows in states], dtype=np.int64)
    _check_tables(num_states, list(terms), memory_allowed(memory))
    pairs, flat, larger = _tables_between(members, terms, states, num_states)
    tables = FactorTables.of(num_states, larger)
    folded = fold(num_states, tables.scope_start, tables.variables, tables.flat)  # what is constant is no factor
    additions = np.array([len(block) + len(own) - 1 for block, own in zip(members, inside, strict=True)], dtype=np.float64)
    sizes = [(count, _size(own)) for count, own in zip(additions, inside, strict=True)] + [(len(own) - 1, _size(own)) for own in terms.values()]
    constant = model.constant + folded.constant
    return Merged(
        whole=model,
        blocks=members,
        states=states,
        model=Model._from_checked(
            num_states,
            _joint_unary(model.unary, members, states, potentials, model.unary.flat[:, None])[:, 0],
            pairs,
            flat,
            constant,
            _joint_names(model, members),
            _joint_state_names(model, members, states),
            folded.factors,
        ),
        inside=potentials,
        additions=additions[home],
        rounding_of_tables=EPS * (sum(count * size for count, size in sizes) + (abs(constant) if folded.constant else 0.0)),
    )


def partition(model: Model, max_states: int = 64) -> list[list[int]]:
    """Blocks of at most `max_states` joint states, each connected, strongly tied inside and weakly to the others: for `merge`.

    Blocks are joined two at a time, those tied most strongly first, as long as the limit allows it.  The same model always has the same blocks.

    >>> import clampz as cz
    >>> cz.partition(cz.Model.from_binary([0.0] * 4, [1.0, 5.0, 1.0], [(0, 1), (1, 2), (2, 3)]), max_states=4)
    [[0], [1, 2], [3]]
    """
    check_option(is_whole(max_states) and max_states >= 1, "max_states", "a whole number >= 1", max_states)
    pairs, strength = model.couplings
    size = [max(1, int(k)) for k in _num_possible(model)]
    members: list[list[int]] = [[i] for i in range(model.num_variables)]
    ties: list[dict[int, float]] = [{} for _ in members]
    for (i, j), weight in zip(pairs.tolist(), np.tanh(strength / 4).tolist(), strict=True):
        if weight > 0:
            ties[i][j] = ties[j][i] = weight
    heap = [(-weight, i, j) for i, of_i in enumerate(ties) for j, weight in of_i.items() if i < j]
    heapq.heapify(heap)
    while heap:
        key, a, b = heapq.heappop(heap)
        if ties[a].get(b) != -key or size[a] * size[b] > max_states:  # tied otherwise by now, or too large together
            continue
        members[a], size[a] = members[a] + members[b], size[a] * size[b]
        members[b] = []
        others, ties[b] = ties[b], {}
        del ties[a][b]
        for c, weight in others.items():
            if c == a:
                continue
            del ties[c][b]
            ties[a][c] = ties[c][a] = ties[a].get(c, 0.0) + weight
            heapq.heappush(heap, (-ties[a][c], min(a, c), max(a, c)))
    return sorted(sorted(block) for block in members if block)


@dataclass(frozen=True, eq=False, kw_only=True)
class Merged:
    """A model whose variables have been merged in blocks, with the way there and back.

    `merged.solve(cz.trw)` is all that is mostly needed: it takes evidence, starts and lanes in terms of the user's variables and gives estimates of these.
    `batch` and `start` make the same of one's own for `merged.model`, and `back` maps what a method finds there.

    Attributes
    ----------
    whole
        The user's model.
    model
        The merged one: a variable per block, in the order of `blocks`.
    blocks
        The variables of each block, smallest first; blocks in the order of their first variables.
    states
        For each block, (joint states, variables) the states of its variables that each joint state stands for; those that hard zeros inside the block rule
        out are left out.
    inside
        Potentials of all joint states, one block after another, without those of single variables.
    additions, rounding_of_tables
        For each variable how many additions its potentials have gone through, and a bound on what adding up the others may have changed in log Z.
    """

    whole: Model
    model: Model
    blocks: tuple[tuple[int, ...], ...]
    states: tuple[Integers, ...] = field(repr=False)
    inside: Floats = field(repr=False)
    additions: Floats = field(repr=False)
    rounding_of_tables: float

    @cached_property
    def rounding(self) -> float:
        """Bound on what merging has changed in log Z."""
        return float(self._rounding(self.whole.unary.flat[:, None])[0])

    def __repr__(self) -> str:
        sizes = self.model.num_states
        low, high = int(sizes.min(initial=2**62)), int(sizes.max(initial=0))
        number = f"{len(self.blocks)} block{'' if len(self.blocks) == 1 else 's'}"
        return f"Merged({self.whole.num_variables} variables in {number} of {high if low >= high else f'{low} to {high}'} joint states)"

    # -- there ----------------------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch) -> Batch:
        """The same lanes of the merged model: a state ruled out rules out the joint states that have it."""
        if batch.model is not self.whole and batch.model != self.whole:
            raise OptionError(f"batch: expected lanes of the model that was merged, {self.whole}, found those of {batch.model}")
        revived = np.argwhere(batch.possible & (self.whole.unary.flat == -np.inf)[:, None])
        if revived.size:
            row, lane = revived[0]
            i = int(np.searchsorted(self.whole.unary.start, row, side="right")) - 1
            where = f"lane {lane} allows state {row - self.whole.unary.start[i]} of variable {i}"
            raise ModelError(f"{where}, which the model that was merged rules out: its joint states were left out")
        return Batch(self.model, _joint_unary(self.whole.unary, self.blocks, self.states, self.inside, batch.unary))

    def start(self, start: Start) -> Estimate | Estimates | Floats:
        """A start for methods on the merged model, from an estimate of the user's model or its marginals, (S,) or (S, lanes).

        A joint state has the product of its states' probabilities, so that mean field over blocks begins where mean field ended.  An estimate that came
        back from this merged model starts where it ended there.
        """
        if isinstance(start, Estimate | Estimates):
            if isinstance(start.state, MergedState) and start.state.merged is self:
                return start.state.estimates if isinstance(start, Estimates) else start.state.estimates[start.lane]
            if start.model is self.model:
                return start
            if not (np.array_equal(start.model.num_states, self.whole.num_states) and np.array_equal(start.model.edges, self.whole.edges)):
                raise OptionError(f"start: expected an estimate of the model that was merged, {self.whole}, found one of {start.model}")
            marginals = start.marginals_flat if isinstance(start, Estimates) else start.marginals.flat
        else:
            marginals = np.asarray(start, dtype=np.float64)
        num_rows = len(self.whole.unary.flat)
        if marginals.ndim not in (1, 2) or len(marginals) != num_rows or (marginals < 0).any():
            raise OptionError(f"start: expected an estimate, or probabilities of shape ({num_rows},) or ({num_rows}, lanes), found shape {marginals.shape}")
        marginals = np.nan_to_num(marginals.reshape(num_rows, -1), nan=0.5)
        out = np.empty((len(self.inside), marginals.shape[1]))
        for block, states, joint in zip(self.blocks, self.states, _slices(self.states), strict=True):
            weight = out[joint]
            weight[:] = 1.0
            for p, i in enumerate(block):
                weight *= marginals[self.whole.unary.start[i] + states[:, p]]
            total = weight.sum(axis=0)
            weight[:, total == 0] = 1.0
            weight /= np.where(total > 0, total, len(states))
        return out

    @overload
    def solve(
        self,
        method: Approximation[Any] | str,
        batch: None = None,
        *,
        evidence: Evidence | None = None,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: Options | None = None,
        **changes: Any,
    ) -> Estimate: ...
    @overload
    def solve(
        self,
        method: Approximation[Any] | str,
        batch: Batch | None = None,
        *,
        evidence: Sequence[Evidence] | None = None,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: Options | None = None,
        **changes: Any,
    ) -> Estimates: ...
    def solve(
        self,
        method: Approximation[Any] | str,
        batch: Batch | None = None,
        *,
        evidence: Evidence | Sequence[Evidence] | None = None,
        start: Start | None = None,
        progress: Callable[[Progress], object] | None = None,
        options: Options | None = None,
        **changes: Any,
    ) -> Estimate | Estimates:
        """Run a method over the blocks, called as the method itself is: all that goes in and comes out is about the user's variables.

        >>> import clampz as cz
        >>> model = cz.Model.from_binary([0.2, 0.0, 0.1], [3.0, -3.0, 3.0], [(0, 1), (1, 2), (0, 2)], names=["a", "b", "c"])
        >>> merged = cz.merge(model, [["a", "b"]])
        >>> before = cz.mean_field(model)
        >>> merged.solve(cz.mean_field, start=before).lower > before.lower
        True
        >>> merged.solve("trw", evidence={"b": 1}).marginal("b").tolist()
        [0.0, 1.0]
        """
        chosen = method_named(method) if isinstance(method, str) else method
        single = batch is None and not isinstance(evidence, Sequence)
        if batch is None:
            batch = Batch.from_evidence(self.whole, [evidence or {}] if not isinstance(evidence, Sequence) else evidence)
        elif evidence is not None:
            raise OptionError("evidence goes with a model; a batch has its evidence in its lanes")
        begin = None if start is None else self.start(start)
        found = self.back(chosen(self.batch(batch), start=begin, progress=progress, options=options, **changes), batch)
        return found[0] if single else found

    # -- and back -------------------------------------------------------------------------------------------------------------

    @overload
    def back(self, estimate: Estimate, batch: Batch | None = None) -> Estimate: ...
    @overload
    def back(self, estimate: Estimates, batch: Batch | None = None) -> Estimates: ...
    def back(self, estimate: Estimate | Estimates, batch: Batch | None = None) -> Estimate | Estimates:
        """An estimate of the merged model as one of the user's, bounds widened by what merging may have changed.

        Give the user's `batch` where its lanes have unary potentials of their own and not only states ruled out: rounding depends on their size.
        """
        if estimate.model is not self.model and estimate.model != self.model:
            raise OptionError(f"estimate: expected one of the merged model, {self.model}, found one of {estimate.model}")
        if isinstance(estimate, Estimate):
            return self.back(_as_estimates(estimate), batch)[0]
        rounding = self.rounding if batch is None else self._rounding(batch.unary)
        lower, upper = estimate.lower - rounding, estimate.upper + rounding
        return replace(
            estimate,
            model=self.whole,
            log_z={"lower": lower, "upper": upper}.get(estimate.bound or "", estimate.log_z),
            lower=lower,
            upper=upper,
            marginals_flat=self._marginals(estimate.marginals_flat),
            state=MergedState(self, estimate),
        )

    def _rounding(self, unary: Floats) -> Floats:
        """(B,) bound on what merging has changed in log Z, of lanes with these unary potentials (S, B)."""
        if not self.blocks:
            return np.full(unary.shape[1], self.rounding_of_tables)
        largest = np.maximum.reduceat(np.where(np.isfinite(unary), np.abs(unary), 0.0), self.whole.unary.start[:-1], axis=0)
        bound: Floats = self.rounding_of_tables + EPS * (self.additions[:, None] * largest).sum(axis=0)
        return bound

    def _marginals(self, joint: Floats) -> Floats:
        """(S, B) marginals of the user's variables from those of the blocks: sums over joint states."""
        start = self.whole.unary.start
        out = np.empty((len(self.whole.unary.flat), joint.shape[1]))
        for block, states, own in zip(self.blocks, self.states, _slices(self.states), strict=True):
            for p, i in enumerate(block):
                out[start[i] : start[i + 1]] = _one_hot(states[:, p], int(self.whole.num_states[i])).T @ joint[own]
        return out


@dataclass(frozen=True, eq=False)
class MergedState:
    """What a method ended with on the merged model."""

    merged: Merged
    estimates: Estimates

    def take(self, lanes: Integers) -> "MergedState":
        """The same for some of the lanes."""
        return MergedState(self.merged, self.estimates.take(lanes))

    def join(self, others: Sequence["MergedState"]) -> "MergedState":
        """These lanes followed by those of others."""
        return MergedState(self.merged, self.estimates.join([other.estimates for other in others]))

    @property
    def rho(self) -> Floats:
        """The edge weights of TRW, in the order of the merged model's edges."""
        weights: Floats = self.estimates.state.rho
        return weights

    def pairwise(self, lane: int) -> Floats:
        """Pairwise marginals of the user's edges: sums over the joint states of the block that an edge is inside of, or of the two that it is between."""
        merged, whole = self.merged, self.merged.whole
        place = {i: (number, p) for number, block in enumerate(merged.blocks) for p, i in enumerate(block)}
        marginals = UnaryTables(np.ascontiguousarray(self.estimates.marginals_flat[:, lane]), merged.model.unary.start)
        found, start = self.estimates.state.pairwise(lane), merged.model.pairwise.start
        number_of = {pair: k for k, pair in enumerate(map(tuple, merged.model.edges.tolist()))}
        out = []
        for i, j in whole.edges.tolist():
            (a, p), (b, q) = place[i], place[j]
            if a == b:
                pair = merged.states[a][:, p] * whole.num_states[j] + merged.states[a][:, q]
                out.append(np.bincount(pair, marginals[a], int(whole.num_states[i] * whole.num_states[j])))
                continue
            k = number_of[min(a, b), max(a, b)]
            joint = found[start[k] : start[k + 1]].reshape(merged.model.num_states[[min(a, b), max(a, b)]])
            rows, columns = _one_hot(merged.states[a][:, p], int(whole.num_states[i])), _one_hot(merged.states[b][:, q], int(whole.num_states[j]))
            out.append((rows.T @ (joint if a < b else joint.T) @ columns).ravel())
        return np.concatenate([np.empty(0), *out])


# -- blocks ------------------------------------------------------------------------------------------------------------------------


def _as_blocks(model: Model, blocks: Blocks) -> tuple[tuple[int, ...], ...]:
    """What a user gives as blocks: known variables, each in one block, and those in none alone."""
    expected = f"lists of variables, or a whole number for each of {model.num_variables} variables"
    if isinstance(blocks, str | Mapping) or not hasattr(blocks, "__len__"):
        raise OptionError(f"blocks: expected {expected}, found {blocks!r:.80}")
    given = list(blocks.tolist() if isinstance(blocks, np.ndarray) else blocks)
    members: dict[int, list[int]] = {}
    if given and all(is_whole(label) for label in given):
        if len(given) != model.num_variables:
            raise OptionError(f"blocks: expected {expected}, found {len(given)} numbers")
        for i, label in enumerate(given):
            members.setdefault(int(label), []).append(i)
        return tuple(map(tuple, members.values()))
    home: dict[int, int] = {}
    for number, block in enumerate(given):
        if isinstance(block, str) or not hasattr(block, "__iter__"):
            raise OptionError(f"blocks[{number}]: expected a list of variables, found {block!r:.80}")
        for variable in block:
            try:
                i = model.variable_index(variable)
            except EvidenceError as error:
                raise OptionError(f"blocks[{number}]: {error}") from None
            if i in home:
                raise OptionError(f"blocks[{number}]: variable {variable!r} is in blocks[{home[i]}] already")
            home[i] = number
    for i in range(model.num_variables):
        members.setdefault(home.get(i, len(given) + i), []).append(i)
    return tuple(map(tuple, members.values()))


def _num_possible(model: Model) -> Integers:
    """(n,) how many states of each variable are not ruled out."""
    if not model.num_variables:
        return np.zeros(0, dtype=np.int64)
    counts: Integers = np.add.reduceat(model.unary.flat > -np.inf, model.unary.start[:-1], dtype=np.int64)
    return counts


def _check_joint_states(model: Model, blocks: Sequence[tuple[int, ...]], max_states: int, allowed: int) -> None:
    """Refuse blocks of too many joint states, before they are listed."""
    possible, needed = _num_possible(model), 0
    for block in blocks:
        size = math.prod(int(possible[i]) for i in block)
        if len(block) > 1 and size > max_states:
            shown = f"{', '.join(map(str, block[:6]))}{', ...' if len(block) > 6 else ''}"
            raise OptionError(
                f"the block of {len(block)} variables ({shown}) has {size:,} joint states, and {max_states:,} are allowed: "
                "merge fewer variables (`partition` finds blocks under a limit), or allow more with max_states="
            )
        needed += 8 * size * (len(block) + 3)
    _check_bytes(needed, allowed, "the joint states")


def _check_tables(num_states: Integers, scopes: Sequence[tuple[int, ...]], allowed: int) -> None:
    """Refuse tables between blocks that do not fit in memory, before they are made."""
    entries = [math.prod(int(num_states[a]) for a in scope) for scope in scopes]
    needed = 8 * (sum(size * (COPIES if len(scope) > 2 else 1) for size, scope in zip(entries, scopes, strict=True)) + max(entries, default=0))
    _check_bytes(needed, allowed, f"the {len(scopes):,} tables between blocks, of up to {max(entries, default=0):,} entries,")


def _check_potentials(model: Model, blocks: Sequence[tuple[int, ...]], inside: Sequence[_Terms], between: Sequence[_Terms]) -> None:
    """Refuse potentials that add up to more than a model may have."""
    every = [own + [((i,), model.unary[i]) for i in block] for block, own in zip(blocks, inside, strict=True)]
    largest = max(map(_size, [*every, *between]), default=0.0)
    if largest > LARGEST_POTENTIAL:
        raise ModelError(f"the potentials of a block add up to {largest:g} in size, and at most {LARGEST_POTENTIAL:g} is expected: scale them down")


def _check_bytes(needed: int, allowed: int, what: str) -> None:
    if needed > allowed:
        raise OptionError(f"{what} need {needed:,} bytes, and {allowed:,} are allowed: merge fewer variables into a block, or allow more with memory=")


# -- joint states and their potentials ---------------------------------------------------------------------------------------------


def _terms_by_blocks(model: Model, home: Integers) -> dict[tuple[int, ...], _Terms]:
    """The edges and larger factors of a model, by the blocks that they touch."""
    terms: dict[tuple[int, ...], _Terms] = {}
    for k, (i, j) in enumerate(model.edges.tolist()):
        terms.setdefault(tuple(sorted({int(home[i]), int(home[j])})), []).append(((i, j), model.pairwise.at(k)))
    for scope, table in model.factors:
        terms.setdefault(tuple(sorted({int(home[i]) for i in scope})), []).append((scope, table))
    return terms


def _joint_states(model: Model, blocks: Sequence[tuple[int, ...]], inside: Sequence[_Terms]) -> tuple[tuple[Integers, ...], Floats]:
    """The joint states of each block that are possible, and the potentials inside the blocks of all of them."""
    every, potentials = [], []
    for block, terms in zip(blocks, inside, strict=True):
        possible = [np.flatnonzero(model.unary[i] > -np.inf) for i in block]
        states = np.stack(np.meshgrid(*possible, indexing="ij"), axis=-1).reshape(-1, len(block))
        value = np.zeros(len(states))
        for scope, table in terms:
            value += table[tuple(states[:, block.index(i)] for i in scope)]
        kept = value > -np.inf
        if not kept.any():  # nothing is possible: one state, and it is ruled out
            states, value, kept = np.zeros((1, len(block)), dtype=np.int64), np.full(1, -np.inf), np.ones(1, dtype=np.bool_)
        every.append(read_only(np.ascontiguousarray(states[kept])))
        potentials.append(value[kept])
    return tuple(every), read_only(np.concatenate([np.empty(0), *potentials]))


def _joint_unary(unary: UnaryTables, blocks: Sequence[tuple[int, ...]], states: Sequence[Integers], inside: Floats, lanes: Floats) -> Floats:
    """(S', B) potentials of the joint states: those inside the blocks, and those (S, B) of their variables in each lane."""
    out = np.repeat(inside[:, None], lanes.shape[1], axis=1)
    for block, rows, joint in zip(blocks, states, _slices(states), strict=True):
        for p, i in enumerate(block):
            out[joint] += lanes[unary.start[i] + rows[:, p]]
    return out


def _tables_between(
    blocks: Sequence[tuple[int, ...]], terms: Mapping[tuple[int, ...], _Terms], states: Sequence[Integers], num_states: Integers
) -> tuple[Integers, Floats, list[Factor]]:
    """The pairs of blocks that have potentials between them, in order, their tables end to end, and the factors over more than two blocks."""
    place = {i: (number, p) for number, block in enumerate(blocks) for p, i in enumerate(block)}
    pairs = np.array(sorted(scope for scope in terms if len(scope) == 2), dtype=np.int64).reshape(-1, 2)
    start = offsets(num_states[pairs].prod(axis=1))
    flat = np.zeros(start[-1])
    for k, (a, b) in enumerate(pairs.tolist()):
        _fill_table(flat[start[k] : start[k + 1]].reshape(num_states[a], num_states[b]), (a, b), terms[a, b], states, place)
    larger = [Factor(scope, np.zeros([int(num_states[a]) for a in scope])) for scope in sorted(terms) if len(scope) > 2]
    for scope, table in larger:
        _fill_table(table, scope, terms[scope], states, place)
    return pairs, flat, larger


def _fill_table(out: Floats, scope: tuple[int, ...], terms: _Terms, states: Sequence[Integers], place: Mapping[int, tuple[int, int]]) -> None:
    """Add the potentials between some blocks up, in a table with an axis for each."""
    for variables, table in terms:
        index = []
        for i in variables:
            block, p = place[i]
            shape = [1] * len(scope)
            shape[scope.index(block)] = -1
            index.append(states[block][:, p].reshape(shape))
        out += table[tuple(index)]


def _size(terms: _Terms) -> float:
    """The largest sum of absolute values that these tables can add up to."""
    return sum(float(np.abs(table[np.isfinite(table)]).max(initial=0.0)) for _, table in terms)


def _slices(states: Sequence[Integers]) -> list[slice]:
    """Where the joint states of each block are among those of all."""
    start = offsets(np.array([len(rows) for rows in states], dtype=np.int64)).tolist()
    return [slice(first, last) for first, last in pairwise(start)]


def _one_hot(states: Integers, num_states: int) -> Floats:
    hot: Floats = (states[:, None] == np.arange(num_states)).astype(np.float64)
    return hot


# -- names -------------------------------------------------------------------------------------------------------------------------


def _joint_names(model: Model, blocks: Sequence[tuple[int, ...]]) -> list[str] | None:
    """Names joined by "+", unless that makes two the same."""
    if model.names is None:
        return None
    names = ["+".join(model.names[i] for i in block) for block in blocks]
    return names if len(set(names)) == len(names) else None


def _joint_state_names(model: Model, blocks: Sequence[tuple[int, ...]], states: Sequence[Integers]) -> list[list[str]] | None:
    """Names of states joined by ",", unless that makes two of a block the same."""
    if model.state_names is None:
        return None
    named = model.state_names
    names = [[",".join(named[i][a] for i, a in zip(block, row, strict=True)) for row in rows.tolist()] for block, rows in zip(blocks, states, strict=True)]
    return names if all(len(set(own)) == len(own) for own in names) else None


def _as_estimates(estimate: Estimate) -> Estimates:
    """An estimate as that of a batch of one lane."""
    arrays: dict[str, Any] = {name: np.array([getattr(estimate, name)]) for name in PER_LANE}
    return Estimates(
        method=estimate.method,
        model=estimate.model,
        bound=estimate.bound,
        marginals_flat=estimate.marginals.flat[:, None],
        stopped_by=[estimate.stopped_by],
        options=estimate.options,
        notes=[estimate.note],
        state=estimate.state.take(np.array([estimate.lane])),
        **arrays,
    )
