"""The structure of weighted mini-buckets: which tables of a limited size bound log Z, whatever their values.

Variables are eliminated one after another.  The tables that have the variable (the model's, and messages) are shared
among *mini-buckets*, each with a union of scopes of at most `max_table` entries: the cliques of the variable's bucket.
Each clique sums the variable out, with a weight of its own, and sends what is left, its message, to the bucket of the
next of its variables.  A bucket with one clique is summed exactly; cliques of one bucket differ in what they say of the
variables that they share, and shifts between them make up for that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from clampz._kernels.mini_buckets import elimination as kernels
from clampz._kernels.mini_buckets import shifts
from clampz.display.formatting import counted
from clampz.errors import TooWideError
from clampz.model import Model
from clampz.model.tables import offsets
from clampz.numerics import Integers
from clampz.runtime.budget import Budget, Cancelled, run_cancellable
from clampz.runtime.options import bytes_in_words, check_option, check_whole, is_whole, memory_allowed

# Neighbours looked at to count the edges that an elimination would add, for all variables together.  On models of more
# variables than MOST_COUNTED these go by the size of their tables: that takes a third to an eighth of the time, and the
# bounds are no worse (grids and cubes of 14,400 variables: equal or lower at 2^4 to 2^8; at 2^10 and 2^13, forty
# evaluations, of both ends together: planar grids of 3,600 and 10,000 variables 5 to 11 nats better, a cube of 4,096 2
# to 5, a torus of 4,900 0 to 7 worse, random graphs and Potts grids alike).
COUNTING_WORK, MOST_COUNTED = 2**21, 2_000
# More table entries than any machine has.
ENDLESS = 2**62
# At most, and about: for each variable and function of a model, and each neighbour that may be looked at for it.
SECONDS_PER_FUNCTION, SECONDS_PER_LOOK = 1e-6, 1e-8
# Seconds that building a structure and its tables takes for each variable, about.
BUILDING_SECONDS = 3.2e-6
# Entries of all tables for each variable, about, at a limit: a number times a power of it, since larger tables are
# fewer (grids of two states, 2^3 to 2^16).
ENTRIES, POWER_OF_LIMIT = 4.0, 0.7
# Steps that L-BFGS remembers, in numbers of four bytes; and of MANY_NUMBERS shifts and weights, not optimised for
# long (upper bounds on 200 x 200 after 10 to 80 evaluations: within 0.003%).
MEMORY, MEMORY_OF_MANY, MANY_NUMBERS = 10, 5, 2**20
# Entries of all cliques up to which what lanes have in common is kept for the next lane; more are laid out anew for
# each, which takes less than an evaluation.
KEPT_ENTRIES = 2**22
# Bytes, beside the structure's own.  For all lanes: of a clique, where its tables, links and strides are, and how often
# it is rounded; of a link, what it is; of an axis of either, states or a stride.
PER_CLIQUE, PER_LINK, PER_AXIS = 40, 5, 4
# Of a lane, for an entry of its tables, and for a shift or weight where it stands, the gradient, and each step that is
# remembered.  Of one at work, for an entry beliefs and twice its message, half as large unless the variable has one
# state; for a shift or weight where it might go; and for a clique what a pass says of it.
LANE_ENTRY, LANE_NUMBER, PER_STEP, WORK_ENTRY, WORK_NUMBER, WORK_CLIQUE = 8, 16, 8, 16, 24, 48


@dataclass(frozen=True, eq=False)
class Structure:
    """The cliques of mini-buckets in order of elimination, and the shifts and messages between them.

    Attributes
    ----------
    order
        The variables in order of elimination.
    bucket_start
        The cliques of the t-th variable eliminated are `bucket_start[t] : bucket_start[t + 1]`, at least one.
    scope_start, scope
        The variables of each clique in order of elimination, the bucket's own first.  Tables are row-major, so that a
        message is contiguous, and its parent has its axes in the same order.
    table_start
        Where each clique's table begins, end to end.
    parent
        The clique that a message is added to: in the bucket of the first of its variables, and over all of them; -1
        where the message is a number.
    unary_clique, edge_clique, factor_clique
        The clique that each of the model's tables is added to.
    pair_left, pair_right
        Cliques of one bucket between which there is a shift: a table that is added to the one and subtracted from the
        other.
    pair_scope_start, pair_scope
        The variables of each shift, those that both have, in order of elimination.
    shift_start
        Where each shift's table begins, end to end.
    """

    order: Integers
    bucket_start: Integers
    scope_start: Integers
    scope: Integers
    table_start: Integers
    parent: Integers
    unary_clique: Integers
    edge_clique: Integers
    factor_clique: Integers
    pair_left: Integers
    pair_right: Integers
    pair_scope_start: Integers
    pair_scope: Integers
    shift_start: Integers

    @classmethod
    def of(
        cls,
        model: Model,
        max_table: int = 2**14,
        *,
        seed: int = 0,
        grow: bool = True,
        last: Sequence[int] = (),
        order: Sequence[int] | Integers | None = None,
        most_bytes: int | str | None = None,
        budget: Budget,
    ) -> "Structure":
        """Eliminate the variables of a model in tables of at most `max_table` entries; a larger factor is a clique of
        its own.

        The next variable is the one whose elimination would join fewest pairs of its neighbours, on the graph that the
        messages make.  Raises Cancelled where the budget is over first, TooWideError where bounds would
        take more than `most_bytes` (None: half of what is free).

        Parameters
        ----------
        seed
            Of the pair that a variable may seem to join more than it does, at random: other structures for other
            seeds.  There is no chance in the one of seed 0.
        grow
            Whether cliques that share a bucket grow by variables that their parent and others of the bucket have.
        last
            Variables that are eliminated after all others.
        order
            The order to follow, in place of all this.
        """
        check_whole("max_table", max_table, 2)
        max_table = int(max_table)
        n, allowed = model.num_variables, memory_allowed(most_bytes)
        given = np.array([] if order is None else order, dtype=np.int64)
        permuted = order is None or np.array_equal(np.sort(given), np.arange(n))
        check_option(permuted, "order", f"each of the {counted(n, 'variable')} once", order)
        late = np.zeros(n)
        inside = all(is_whole(v) and 0 <= v < n for v in last)
        check_option(inside, "last", f"variables from 0 to {n - 1}", last)
        late[list(last)] = 1.0
        chance = np.random.default_rng(seed).random(n) if seed else np.zeros(n)
        num_places = 2 * model.num_edges + len(model.factors.variables)
        _check_bytes(kernels.PER_PLACE * num_places + kernels.PER_VARIABLE * n, allowed, max_table, "at least ")
        start, variables = _scopes(model)
        states = model.num_states.astype(np.float64)
        expected = SECONDS_PER_FUNCTION * (n + len(start)) + SECONDS_PER_LOOK * min(len(variables) ** 2, 2**30)
        within, looks = float(min(max_table, ENDLESS)), max(COUNTING_WORK // max(n, 1), 1) if n <= MOST_COUNTED else 1
        arguments = (start, variables, states, chance, late, given, within, looks, float(allowed))
        found = run_cancellable(budget, expected, kernels.eliminate, *arguments)
        places, bucket_start, scope_start, scope, home, done, num_bytes = found
        _check_bytes(num_bytes, allowed, max_table, "at least ")
        if done < n:
            raise Cancelled
        num_own = len(start) - 1
        parent = home[num_own:].copy()
        layout = (places, bucket_start, scope_start, scope, parent, states, within, bool(grow))
        scope_start, scope, entries, ended = run_cancellable(budget, expected, shifts.grow, *layout)
        if not ended:
            raise Cancelled
        _check_bytes(8.0 * entries.sum(), allowed, max_table, "at least ")
        cliques = (places, bucket_start, scope_start, scope, states)
        left, right, pair_start, pair_scope, shared, ended = run_cancellable(
            budget, expected, shifts.shift_pairs, *cliques
        )
        if not ended:
            raise Cancelled
        _check_bytes(8.0 * (entries.sum() + shared.sum()), allowed, max_table, "at least ")
        unary_clique = np.empty(n, dtype=np.int64)
        unary_clique[places] = bucket_start[:-1]
        num_edges = len(model.edges)
        structure = cls(
            order=places,
            bucket_start=bucket_start,
            scope_start=scope_start,
            scope=scope,
            table_start=offsets(entries.astype(np.int64)),
            parent=parent,
            unary_clique=unary_clique,
            edge_clique=home[:num_edges].copy(),
            factor_clique=home[num_edges:num_own].copy(),
            pair_left=left,
            pair_right=right,
            pair_scope_start=pair_start,
            pair_scope=pair_scope,
            shift_start=offsets(shared.astype(np.int64)),
        )
        _check_bytes(structure.num_bytes(), allowed, max_table)
        return structure

    @property
    def num_cliques(self) -> int:
        return len(self.parent)

    @property
    def num_entries(self) -> int:
        """Count the entries of all cliques' tables."""
        return int(self.table_start[-1])

    @property
    def num_shifted(self) -> int:
        """Count the entries of all shifts."""
        return int(self.shift_start[-1])

    def num_bytes(self, lanes: int = 1, at_once: int = 1) -> int:
        """Estimate the memory of `lanes` sides of lanes with this structure, `at_once` of them at work."""
        numbers = self.num_shifted + self.num_cliques
        lane = LANE_ENTRY * self.num_entries + 8 * len(self.order)
        lane += (LANE_NUMBER + PER_STEP * num_remembered(numbers)) * numbers
        work = WORK_ENTRY * self.num_entries + WORK_NUMBER * numbers + WORK_CLIQUE * self.num_cliques
        return self._shared_bytes + lanes * lane + at_once * work

    @cached_property
    def _shared_bytes(self) -> int:
        """Estimate the memory of the structure, and of what tables add to it."""
        own = sum(array.nbytes for array in vars(self).values() if isinstance(array, np.ndarray))
        arity, linked = np.diff(self.scope_start), (self.parent[self.parent >= 0], self.pair_left, self.pair_right)
        num_links, num_strides = sum(map(len, linked)), sum(int(arity[cliques].sum()) for cliques in linked)
        tables = PER_CLIQUE * self.num_cliques + PER_LINK * num_links + PER_AXIS * (num_strides + len(self.scope))
        return own + tables + (LANE_ENTRY * self.num_entries if self.num_entries <= KEPT_ENTRIES else 0)


def _scopes(model: Model) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Lay the scopes of edges and factors end to end."""
    m, larger = len(model.edges), model.factors
    start = np.concatenate([2 * np.arange(m + 1), 2 * m + larger.scope_start[1:]])
    return start.astype(np.int32), np.concatenate([model.edges.ravel(), larger.variables]).astype(np.int32)


def _check_bytes(num_bytes: float, allowed: int, max_table: int, more: str = "") -> None:
    if num_bytes > allowed:
        raise TooWideError(
            f"tables of up to {max_table:,} entries need {more}{bytes_in_words(num_bytes)}, and "
            f"{bytes_in_words(allowed)} are allowed: lower max_table=, or allow more with memory=",
            width=max_table.bit_length() - 1,
            num_bytes=int(num_bytes),
        )


def num_remembered(numbers: int) -> int:
    """Return how many steps L-BFGS remembers for this many shifts and weights."""
    return MEMORY if numbers < MANY_NUMBERS else MEMORY_OF_MANY


def entries_per_variable(max_table: float) -> float:
    """Estimate the entries of all tables for each variable, at a limit."""
    return ENTRIES * math.pow(max_table, POWER_OF_LIMIT)


def limit_of_entries(entries: float) -> float:
    """Estimate the limit at which tables have this many entries for each variable."""
    return math.pow(max(entries, 0.0) / ENTRIES, 1.0 / POWER_OF_LIMIT)


def building_seconds(model: Model) -> float:
    """Estimate the seconds that building a structure and its tables takes; not all of it can be cancelled."""
    return BUILDING_SECONDS * model.num_variables
