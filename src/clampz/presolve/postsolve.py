"""Postsolve: marginals, joint beliefs and states of all variables from those of the reduced model."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.presolve import pools as state
from clampz._kernels.presolve import postsolve as kernels
from clampz._kernels.presolve.pools import Pools
from clampz._kernels.presolve.postsolve import NOWHERE, Targets
from clampz.errors import OptionError
from clampz.model import Model
from clampz.model.tables import offsets, ranges
from clampz.numerics import Floats, Integers
from clampz.presolve.reduced import ReducedModel
from clampz.runtime.budget import Budget, Cancelled, run_cancellable

# Seconds that sending beliefs back takes per entry of the tables, about.
SECONDS_PER_ENTRY = 1e-7

Scope = tuple[int, ...]
einsum: Any = np.einsum  # (NumPy has no type for axes given as numbers)


class BeliefSources(NamedTuple):
    """Targets, and for each table the targets whose beliefs come from it: of_source[start[h] : start[h + 1]] for table
    h."""

    targets: Targets
    home: Integers
    start: Integers
    of_source: Integers


class Postsolve:
    """The presolve's eliminations of a model, to be undone for results on the reduced model."""

    def __init__(self, original: Model, pools: Pools, left: ReducedModel) -> None:
        self.original, self.pools, self.left = original, pools, left
        self.num_sums = int(pools.count[state.SUMS])

    def marginals(self, beliefs: Floats, budget: Budget, known: bool = False) -> Floats:
        """Return the marginals of all variables; with `known`, nan for those that a presolve for log Z alone has
        lost."""
        if not known and (self._sources_of_sums.home == NOWHERE).any():
            raise OptionError("marginals: this model was simplified for log Z alone; simplify it with marginals=True")
        marginal = self._send(self._sources_of_sums, beliefs, budget)[1]
        marginal[np.repeat(self._lost, self.original.num_states)] = np.nan
        return marginal

    def factor_marginals(self, beliefs: Floats, joint: Callable[[Scope], Floats], budget: Budget) -> Floats:
        """Return the marginals of all edges and larger factors, end to end; `joint` is asked where no reduced table
        holds them."""
        homes, num_sums = self._sources_of_all, self.num_sums
        belief, _ = self._send(homes, beliefs, budget)
        first = int(homes.targets.out[num_sums])
        for k in self._factors_split_up.tolist():
            if budget.must_stop():
                raise Cancelled
            scope = self.factor_scope(k)
            begin, end = homes.targets.out[num_sums + k : num_sums + k + 2]
            belief[begin:end] = self.joint(scope, joint(self.joint_scope(scope))).ravel()
        return belief[first:]

    @cached_property
    def scopes(self) -> list[Scope]:
        """List the scopes of the reduced model whose joint beliefs some factors' marginals need, beyond its tables."""
        return sorted({self.joint_scope(self.factor_scope(k)) for k in self._factors_split_up.tolist()})

    def factor_scope(self, k: int) -> Scope:
        """Return the variables of factor k: edges come first, then larger factors."""
        m, larger = self.original.num_edges, self.original.factors
        if k < m:
            return tuple(self.original.edges[k].tolist())
        return tuple(larger.variables[larger.scope_start[k - m] : larger.scope_start[k - m + 1]].tolist())

    # -- any scope at all ----------------------------------------------------------------------------------------------

    def joint_scope(self, scope: Sequence[int]) -> Scope:
        """Return the reduced model's variables from whose joint belief that of `scope` follows."""
        return tuple(self.left.tables.of_variable[sorted(self._eliminations(scope)[1])].tolist())

    def joint(self, scope: Sequence[int], belief: Floats) -> Floats:
        """Compute the joint belief of `scope` from that of `joint_scope`, reinserting eliminated variables one by
        one."""
        steps, last = self._eliminations(scope)
        have = sorted(last)
        table = self._over_all_states(belief, have, state.NEVER - 1)
        for v, wanted in reversed(steps):
            around, given = self.given(v)
            wanted_now = sorted(wanted)
            label = {u: k for k, u in enumerate({*have, *around})}
            table = einsum(
                table, [label[u] for u in have], given, [label[u] for u in around], [label[u] for u in wanted_now]
            )
            have = wanted_now
        return np.transpose(table, [have.index(u) for u in scope])

    def _eliminations(self, scope: Sequence[int]) -> tuple[list[tuple[int, frozenset[int]]], frozenset[int]]:
        """Return the eliminated variables that `scope` depends on, each with the variables wanted before it, and the
        reduced scope."""
        variables, wanted = self.pools.variables, frozenset(scope)
        steps = []
        while gone := [v for v in wanted if variables["fate"][v] != state.STAYS]:
            v = min(gone, key=lambda u: int(variables["left"][u]))
            steps.append((v, wanted))
            wanted = (wanted - {v}) | frozenset(self.depends_on(v))
        return steps, wanted

    def depends_on(self, v: int) -> list[int]:
        """Return the variables that P(v | others) is conditioned on: they were eliminated later, or never."""
        fate, to = (int(self.pools.variables[name][v]) for name in ("fate", "to"))
        if fate == state.SUMMED:
            begin, end = (int(self.pools.record[name][to]) for name in ("axes", "end"))
            found: list[int] = self.pools.numbers[begin:end].tolist()
            return found
        return [to] if fate == state.EQUAL else []

    def given(self, v: int) -> tuple[list[int], Floats]:
        """Return P(v | what it depends on): the variables of the table, and the table over all of their states."""
        fate, to, time = (int(self.pools.variables[name][v]) for name in ("fate", "to", "time"))
        states = int(self.original.num_states[v])
        if fate == state.SUMMED:
            axes, _, values = kernels.conditional(self.pools, to)
            kernels.forget_axes(self.pools, axes)
            return axes.tolist(), self._over_all_states(values, axes.tolist(), time)
        if fate == state.FIXED:
            return [v], np.eye(states)[to]
        begin = int(self.pools.variables["map"][v])
        image = self.pools.numbers[begin : begin + int(self.original.num_states[to])]
        return [to, v], np.eye(states)[image]

    def _over_all_states(self, values: Floats, variables: list[int], time: int) -> Floats:
        """Extend a table over the states possible at a time to all states, zero elsewhere."""
        there = [np.flatnonzero(self._possible_at(v, time)) for v in variables]
        out = np.zeros(self.original.num_states[variables])
        out[np.ix_(*there)] = np.reshape(values, [len(some) for some in there])
        return out

    # -- what may come back into a model that it was taken out of ------------------------------------------------------

    @property
    def lost(self) -> Integers:
        """Return the variables whose marginals do not follow from the reduced model's tables."""
        return np.flatnonzero(self._lost)

    def needed(self, variables: Sequence[int]) -> list[int]:
        """List `variables` and what they depend on, as far as they were eliminated with a choice of states, last one
        first."""
        fate, left = (self.pools.variables[name] for name in ("fate", "left"))
        found, waiting = set[int](), list(variables)
        while waiting:
            v = waiting.pop()
            if v not in found and fate[v] in (state.SUMMED, state.EQUAL):
                found.add(v)
                waiting.extend(self.depends_on(v))
        return sorted(found, key=lambda v: -int(left[v]))

    def states_when_left(self, v: int) -> Integers:
        """Return the states that a variable still had when it was eliminated."""
        fate, to, time = (int(self.pools.variables[name][v]) for name in ("fate", "to", "time"))
        if fate == state.FIXED:
            return np.array([to])
        return np.flatnonzero(self._possible_at(v, time))

    # -- all at once ---------------------------------------------------------------------------------------------------

    @cached_property
    def _sources_of_sums(self) -> BeliefSources:
        record = self.pools.record[: self.num_sums]
        arity = record["end"] - record["axes"]
        time = self.pools.variables["time"][record["variable"]].astype(np.int64)
        scopes = self.pools.numbers[ranges(record["axes"], arity)]
        return self._sources(Targets(offsets(arity), scopes, time, offsets(record["size"])))

    @cached_property
    def _lost(self) -> NDArray[np.bool_]:
        """(n,) True for variables summed out of what no single table holds any more, and for those that depend on them.
        A sum depends on a later sum, or on a reduced table."""
        home, lost = self._sources_of_sums.home, self._sources_of_sums.home == NOWHERE
        if not lost.any():
            return np.zeros(self.original.num_variables, dtype=np.bool_)
        for r in np.flatnonzero((home >= 0) & (home < self.num_sums))[::-1].tolist():
            lost[r] |= lost[home[r]]
        found = np.zeros(self.original.num_variables, dtype=np.bool_)
        found[self.pools.record["variable"][: self.num_sums][lost]] = True
        fate, to = (self.pools.variables[name][: self.original.num_variables] for name in ("fate", "to"))
        for v in np.flatnonzero(fate == state.EQUAL).tolist():
            u = v
            while fate[u] == state.EQUAL:
                u = int(to[u])
            found[v] = found[u]
        return found

    @cached_property
    def _sources_of_all(self) -> BeliefSources:
        """Find the sources of all sums, edges and larger factors."""
        sums, model, larger = self._sources_of_sums.targets, self.original, self.original.factors
        arity = np.concatenate([np.full(model.num_edges, 2), np.diff(larger.scope_start)])
        sizes = np.concatenate([np.diff(model.pairwise.start), np.diff(larger.start)])
        return self._sources(
            Targets(
                np.concatenate([sums.start, sums.start[-1] + np.cumsum(arity)]),
                np.concatenate([sums.variables, model.edges.ravel(), larger.variables]).astype(np.int32),
                np.concatenate([sums.time, np.full(len(arity), -1)]),
                np.concatenate([sums.out, sums.out[-1] + np.cumsum(sizes)]),
            )
        )

    @cached_property
    def _factors_split_up(self) -> Integers:
        """Return the edges and factors whose variables no single table holds any more."""
        return np.flatnonzero(self._sources_of_all.home[self.num_sums :] == NOWHERE)

    def _sources(self, targets: Targets) -> BeliefSources:
        rest = self.left.tables
        num_homes = self.num_sums + len(rest.start) - 1
        home = np.empty(len(targets.time), dtype=np.int64)
        kernels.find_sources(self.pools, targets, rest, home)
        order = np.argsort(home, kind="stable")
        found = order[np.searchsorted(home[order], 0) :]
        return BeliefSources(targets, home, offsets(np.bincount(home[found], minlength=num_homes)), found)

    def _send(self, homes: BeliefSources, beliefs: Floats, budget: Budget) -> tuple[Floats, Floats]:
        """Return the beliefs of all targets, and the marginals of all variables."""
        rest = self.left.tables
        if beliefs.shape != (rest.tables[-1],):
            raise OptionError(
                f"beliefs: expected shape ({rest.tables[-1]},), those of the rest's variables, edges and larger "
                f"factors in turn, found {beliefs.shape}"
            )
        belief = np.zeros(int(homes.targets.out[-1]))
        certain = np.flatnonzero(homes.home == kernels.CERTAIN)
        marginal = np.zeros(len(self.original.unary.flat))
        belief[homes.targets.out[certain] + self._places(homes.targets, certain)] = 1.0
        beliefs = np.ascontiguousarray(beliefs, dtype=np.float64)
        expected = SECONDS_PER_ENTRY * (len(belief) + len(marginal))
        done = run_cancellable(
            budget, expected, kernels.propagate_beliefs, self._own_pools(), rest, beliefs, homes.targets, homes.start,
            homes.of_source, belief, marginal,
        )  # fmt: skip
        if not done:
            raise Cancelled
        return belief, marginal

    def _own_pools(self) -> Pools:
        """Copy the variables' records for one call. Kernels number a sum's axes in them while they run, and several
        threads may run at once."""
        return self.pools._replace(variables=self.pools.variables.copy())

    def _places(self, targets: Targets, certain: Integers) -> Integers:
        """Return where in their tables the single possible joint state of fixed variables lies."""
        found = np.zeros(len(certain), dtype=np.int64)
        for k, t in enumerate(certain.tolist()):
            for v in targets.variables[targets.start[t] : targets.start[t + 1]].tolist():
                there = self._possible_at(v, int(targets.time[t]))
                found[k] = found[k] * np.count_nonzero(there) + np.count_nonzero(there[: self._certain_state(v)])
        return found

    def _possible_at(self, v: int, time: int) -> NDArray[np.bool_]:
        """Mask the states of a variable that were possible at a time."""
        there: NDArray[np.bool_] = self.pools.states["gone"][slice(*self.original.unary.start[v : v + 2])] > time
        return there

    def _certain_state(self, v: int) -> int:
        fate, to = (int(self.pools.variables[name][v]) for name in ("fate", "to"))
        if fate == state.FIXED:
            return to
        return int(self.pools.numbers[int(self.pools.variables["map"][v]) + self._certain_state(to)])

    # -- states --------------------------------------------------------------------------------------------------------

    def states(self, x: Integers, rng: np.random.Generator, maximum: bool, budget: Budget) -> Integers:
        """Extend configurations (N, k) of the reduced model to whole ones (N, n): drawn, or the best for a maximum."""
        left = self.left
        first = offsets(left.model.num_states)[:-1]
        out = np.zeros((len(x), self.original.num_variables), dtype=np.int64)
        out[:, left.variables] = left.states[first + x]
        seed = int(rng.integers(2**63))
        expected = SECONDS_PER_ENTRY * out.size
        if not run_cancellable(budget, expected, kernels.fill_states, self._own_pools(), out, seed, maximum):
            raise Cancelled
        return out
