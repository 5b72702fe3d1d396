"""Beliefs of what presolve took out of a model, where all of it at once is too wide.

log Z of a Bayesian network is known as soon as its barren nodes are summed out, but the marginals of all of them at
once need the joint beliefs of all their parents.  Each of them is P(it | what it depends on), and with these tables as
many come back into the sum as hardly make it longer, at the places in its tree where they cost least.  Those that are
left have a sum of their own, round after round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.contraction import insertion
from clampz._kernels.contraction import tree as trees
from clampz.exact_inference.contraction_trees import TABLE_SHARE, ContractionTree
from clampz.exact_inference.cost import tree_seconds
from clampz.exact_inference.lanes import PlannedLanes
from clampz.exact_inference.presolved import PresolvedBatch
from clampz.exact_inference.scopes import Scopes
from clampz.exact_inference.sums import sum_out
from clampz.exact_inference.tree_search import best_tree
from clampz.exact_inference.trees import SumTree, Workspace
from clampz.model.tables import offsets, ranges
from clampz.numerics import Floats, Integers
from clampz.presolve.postsolve import Scope
from clampz.presolve.simplified import postsolve
from clampz.runtime.budget import Budget, Cancelled, run_cancellable
from clampz.runtime.options import fits_into, memory_allowed
from clampz.runtime.workers import Workers

# Share of the time in which rounds are planned: the rest is for the sums of those that are.
ROUNDS_SHARE = 0.4
# Seconds that a wanted table may add to a sum, with what it needs: at least, and times what the sum takes.  A sum that
# has grown by this many times as much is left as it is.
LEAST_MORE, TIMES_MORE, ENOUGH = 1e-3, 1.0, 3.0
# What it takes to find a place for one, or that it has none, about.
SECONDS_PER_TABLE = 3e-4
OUT_OF_TIME = "the run was stopped before all marginals were there"
TOO_WIDE = "some marginals would take more memory than is allowed: allow more with memory="


class InsertionRound(NamedTuple):
    """A sum with some of what is asked for.

    Attributes
    ----------
    tree
        Over the tables of the rest, and then over those that came back.
    values
        The logarithms of the latter, end to end.
    found
        Which of the scopes that were asked for it has, and the table of each, counted from the first that came back.
    """

    tree: ContractionTree
    values: Floats
    found: list[tuple[int, int]]

    @property
    def seconds(self) -> float:
        return tree_seconds(self.tree, marginals=True)

    def fits_into(self, memory: int | str | None) -> bool:
        return not self.tree.is_beyond_all and fits_into(memory, self.tree.num_bytes())


class Insertion:
    """What was summed for log Z alone, and what can come back into it.

    Attributes
    ----------
    asked
        Scopes of the original's variables whose joint beliefs are wanted.
    rounds
        Sums that have them, one after another.
    why_none
        Why some are in none, if any.
    """

    def __init__(
        self, presolved: PresolvedBatch, tree: SumTree, asked: Sequence[Scope], memory: int | str | None, budget: Budget
    ) -> None:
        self.presolved, self.tree, self.asked, self.memory = presolved, tree, asked, memory
        self._back = postsolve(presolved.simplified)
        self._num_states = presolved.original.model.num_states
        self._number = {int(v): i for i, v in enumerate(presolved.simplified.variables)}
        rows, start = tree.restriction.states, presolved.batch.model.unary.start
        left, ends = presolved.simplified.states_left[rows], np.searchsorted(rows, start)
        self._kept = {v: left[ends[i] : ends[i + 1]] for v, i in self._number.items()}
        self._tables: dict[int, tuple[list[int], Floats]] = {}
        base, self._fill = tree, np.empty(0)
        if not base.scopes.num_factors:  # a tree begins with one table
            nothing = np.empty(0, dtype=np.int64)
            one = Scopes(base.scopes.num_states, np.zeros(2, dtype=np.int64), nothing, np.arange(2))
            base, self._fill = replace(base, restriction=tree.restriction._replace(scopes=one)), np.zeros(1)
        self._base = base
        self.why_none = ""
        self.rounds = list(self._rounds(budget.share(ROUNDS_SHARE)))

    @property
    def seconds(self) -> float:
        """What all rounds take together."""
        return sum(each.seconds for each in self.rounds)

    def _states(self, v: int) -> Integers:
        """The states of a variable of the original that are still possible, as far as that is known."""
        if v not in self._kept:
            self._kept[v] = self._back.states_when_left(v)
        return self._kept[v]

    def _table(self, v: int) -> tuple[list[int], Floats]:
        """P(v | what it depends on), over variables that have a choice."""
        if v not in self._tables:
            variables, table = self._back.given(v)
            table = table[np.ix_(*(self._states(u) for u in variables))]
            several = [u for u in variables if len(self._states(u)) > 1]
            with np.errstate(divide="ignore"):
                self._tables[v] = several, np.log(table).ravel()
        return self._tables[v]

    def _rounds(self, budget: Budget) -> Iterator[InsertionRound]:
        pending = list(range(len(self.asked)))
        begun = False
        while pending or not begun:
            try:
                found = self._next(pending, budget, all_marginals=not begun)
            except Cancelled:
                self.why_none = OUT_OF_TIME
                return
            begun, gone = True, {k for k, _ in found.found}
            if found.fits_into(self.memory):
                yield found
            else:  # the first of a round comes in whatever it takes
                self.why_none = TOO_WIDE
            pending = [k for k in pending if k not in gone]

    def _next(self, pending: Sequence[int], budget: Budget, *, all_marginals: bool) -> InsertionRound:
        """Plan a round with as many of those pending as are worth it; Cancelled where the budget ends first."""
        budget.check_stop()
        base = self._base
        first, num_rest = base.scopes.num_factors, len(base.scopes.num_states)
        back = self._back.needed(sorted({v for k in pending for v in self.asked[k]}))
        number = self._number | {v: num_rest + i for i, v in enumerate(back)}
        table_of = {v: first + i for i, v in enumerate(back)}
        scopes, values, needs = list[list[int]](), list[Floats](), list[list[int]]()
        for v in back:
            budget.check_stop()
            variables, table = self._table(v)
            scopes.append([number[u] for u in variables])
            values.append(table)
            needs.append([table_of[u] for u in self._back.depends_on(v) if u in table_of])
        targets, wanted = list[tuple[int, int]](), np.zeros(first + len(back) + len(pending), dtype=np.bool_)
        for k in pending:
            asked = self.asked[k]
            if len(asked) == 1 and asked[0] in table_of:
                targets.append((k, table_of[asked[0]] - first))
            else:  # a table that says nothing
                several = [v for v in asked if len(self._states(v)) > 1]
                targets.append((k, len(scopes)))
                scopes.append([number[v] for v in several])
                values.append(np.zeros(int(np.prod([len(self._states(v)) for v in several]))))
                needs.append([table_of[v] for v in asked if v in table_of])
            wanted[first + targets[-1][1]] = True
        states = np.concatenate(
            [base.scopes.num_states, np.array([len(self._states(v)) for v in back], dtype=np.int64)]
        )
        arity, sizes = [len(scope) for scope in scopes], [len(table) for table in values]
        whole = Scopes(
            states,
            np.concatenate([base.scopes.start, base.scopes.start[-1] + np.cumsum(arity, dtype=np.int64)]),
            np.concatenate([base.scopes.variables, np.array([u for scope in scopes for u in scope], dtype=np.int64)]),
            np.concatenate([base.scopes.table_start, base.scopes.table_start[-1] + np.cumsum(sizes, dtype=np.int64)]),
        )
        need_start = np.concatenate([np.zeros(first, dtype=np.int64), offsets(np.array([len(each) for each in needs]))])
        flat = np.array([f for each in needs for f in each], dtype=np.int64)
        tree, there = insert_tables(
            base, whole, need_start, flat, wanted[: whole.num_factors], self.memory, budget, all_marginals=all_marginals
        )
        came = there[there >= first] - first
        place = {int(f): at for at, f in enumerate(came)}
        found = [(k, place[f]) for k, f in targets if f in place]
        return InsertionRound(tree, np.concatenate([np.empty(0), *(values[f] for f in came)]), found)

    def run(self, lane: int, num_threads: int, budget: Budget) -> tuple[Floats, list[Floats | None]]:
        """(S,) the marginals that follow from what was summed for log Z, nan where none does; and the beliefs that were
        asked for, None where time or memory did not suffice."""
        lanes = PlannedLanes(self.presolved.batch, self.tree, marginals=True)
        tables = list[Floats | None]([None] * len(self.asked))
        known = list[Floats]()
        needed = max(each.tree.thread_bytes() for each in self.rounds) if self.rounds else 1
        threads = max(1, min(num_threads, len(self.rounds), memory_allowed(self.memory) // needed))

        def work(number: int) -> None:
            if number > 0 and budget.must_stop():
                return
            once, tree = self.rounds[number], self.rounds[number].tree
            entries, values = lanes.values_of(lane)
            workspace = Workspace.of(tree, num_threads=num_threads // threads)
            marginals = np.empty(int(tree.scopes.num_states.sum()))
            values = np.concatenate([values, self._fill, once.values])
            if np.isnan(sum_out(tree, values, workspace, marginals, budget=budget).log_z):
                return
            start = tree.scopes.table_start[self._base.scopes.num_factors :]
            for k, at in once.found:
                tables[k] = self._read(k, workspace.beliefs[start[at] : start[at + 1]])
            if number == 0:
                rest = lanes.beliefs(entries, marginals, workspace.beliefs)
                known.append(self.presolved.simplified.marginals(np.concatenate(rest), known=True))

        with Workers(threads) as pool:
            pool.map(work, list(range(len(self.rounds))))
        flat = known[0] if known else np.full(len(self.presolved.original.unary), np.nan)
        return flat, tables

    def _read(self, k: int, belief: Floats) -> Floats:
        """What was asked for, an axis for each variable with all of its states, from the belief of its table."""
        asked = self.asked[k]
        if len(asked) == 1 and asked[0] in self._tables:
            variables = self._tables[asked[0]][0]
        else:
            variables = [v for v in asked if len(self._states(v)) > 1]
        table = belief.reshape([len(self._states(v)) for v in variables]) if variables else np.ones(())
        others = tuple(i for i, v in enumerate(variables) if v not in asked)
        table = table.sum(axis=others) / table.sum()
        whole = np.zeros(self._num_states[list(asked)])
        whole[np.ix_(*(self._states(v) for v in asked))] = table.reshape([len(self._states(v)) for v in asked])
        return whole


def insert_tables(
    base: SumTree,
    scopes: Scopes,
    need_start: Integers,
    needs: Integers,
    wanted: NDArray[np.bool_],
    memory: int | str | None,
    budget: Budget | None = None,
    *,
    all_marginals: bool = True,
) -> tuple[ContractionTree, Integers]:
    """Insert further tables into the tree of a sum, whose own are the first of these `scopes`.

    As many of those that are `wanted`, with what these need, come in as add to it no more than it takes.

    Tables needs[need_start[f] : need_start[f + 1]] have to be there with table f.  One wanted table comes in at least.
    Unless `all_marginals` are asked for, there are those of wanted tables only.
    """
    log_states = np.log2(scopes.num_states)
    tree, there = base.contractions, np.arange(base.scopes.num_factors)
    limit = max(1.0, TABLE_SHARE * (memory_allowed(memory) - scopes.num_bytes) / 8)
    at_first = float(trees.measure(tree, log_states, np.inf)[1].sum())
    more, is_first = max(LEAST_MORE, TIMES_MORE * at_first), True
    while True:
        others = np.setdiff1d(np.arange(scopes.num_factors), there, assume_unique=True)
        chosen = np.concatenate([there, others])
        number = np.argsort(chosen)
        sizes = np.diff(need_start)[chosen]
        own = _chosen(scopes, chosen)
        tree, came = run_cancellable(
            budget,
            SECONDS_PER_TABLE * len(others),
            insertion.grow,
            tree,
            own.start,
            own.variables,
            len(there),
            offsets(sizes),
            number[needs[ranges(need_start[chosen], sizes)]],
            wanted[chosen],
            log_states,
            more,
            limit,
            is_first,
        )
        is_first, before, there = False, len(there), chosen[came]
        tree, seconds = best_tree(tree, log_states, limit, budget)
        if len(there) == before or seconds > at_first + ENOUGH * more:
            break
    tables = _chosen(scopes, there)
    found = ContractionTree(
        restriction=base.restriction._replace(scopes=tables),
        order=base.order,
        width=base.width,
        tree=tree,
        seconds=seconds,
        memory=max(0, memory_allowed(memory) - tables.num_bytes),
        wanted=None if all_marginals else wanted[there],
    )
    return found, there


def _chosen(scopes: Scopes, there: Integers) -> Scopes:
    """Some of the tables."""
    arity, size = np.diff(scopes.start)[there], np.diff(scopes.table_start)[there]
    variables = scopes.variables[ranges(scopes.start[there], arity)]
    return Scopes(scopes.num_states, offsets(arity), variables, offsets(size))
