"""The options of a search for a bracket."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypedDict

from clampz.clamping.selectors import selectors
from clampz.runtime.options import (
    Options,
    OptionsBase,
    check_flag,
    check_name,
    check_option,
    check_whole,
    is_number,
    is_one_of,
    is_whole,
    memory_allowed,
)
from clampz.runtime.seeds import LARGEST_SEED

# The selector of its own that a search has.
CUTS = "cuts"
CRITERIA = ("gap", "upper", "lower")
# Table entries of a mini-bucket at most.
LARGEST_TABLE = 2**24
# Sweeps of mean field and TRW at a leaf.
SWEEPS = 300
# Shares of the memory: of the sum of a whole model, of all that workers do beside it, and of what the tree keeps.
WHOLE_MEMORY, WORKERS_MEMORY, TREE_MEMORY = 0.5, 0.3, 0.2


class BoundKeywords(TypedDict, total=False):
    """The fields of `BoundOptions`, as a call takes them by name."""

    gap: float
    time: float
    memory: int | str | None
    leaves: int | None
    max_table: int | None
    exact: bool
    select: str
    criterion: str
    max_iter: int
    threads: int | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class BoundOptions(OptionsBase):
    """Options of `bound` and `iter_bounds`.

    Attributes
    ----------
    gap
        In nats: stop when the bracket is as narrow.
    time
        Seconds at most.
    memory
        Bytes, or text such as "2GB"; None for half of what is free.
    leaves
        Leaves of the tree at most.
    max_table
        Table entries of a mini-bucket at most; None for as many as there is time for.  With this, `leaves` and without
        exact sums, a bracket that time does not stop is the same on all executors with as many workers.
    exact
        Whether branches that are narrow enough are summed exactly.
    select
        Which variable a branch is clamped at: "cuts" (where the upper bound loses most by cutting mini-buckets apart),
        or one of `selectors()`.
    criterion
        Which branch is next: that with most of the "gap", or of the "upper" or "lower" bound.
    max_iter
        Sweeps of mean field and of TRW at a leaf.
    threads
        To work with; None for all cores.
    seed
        Of partitions and starts.
    """

    gap: float = 0.01
    time: float = 60.0
    memory: int | str | None = None
    leaves: int | None = None
    max_table: int | None = None
    exact: bool = True
    select: str = CUTS
    criterion: str = "gap"
    max_iter: int = SWEEPS
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_option(is_number(self.gap) and self.gap >= 0, "gap", "a number of nats >= 0", self.gap)
        check_whole("leaves", self.leaves, 1, or_none=True)
        fits = self.max_table is None or (is_whole(self.max_table) and 2 <= self.max_table <= LARGEST_TABLE)
        check_option(fits, "max_table", f"None or a whole number from 2 to {LARGEST_TABLE:,}", self.max_table)
        fits = is_whole(self.seed) and 0 <= self.seed < LARGEST_SEED
        check_option(fits, "seed", "a whole number >= 0 of at most 62 bits", self.seed)
        Options(max_iter=self.max_iter, time=self.time, threads=self.threads)  # refuses what no method takes
        check_flag("exact", self.exact)
        check_name("selector", self.select, [CUTS, *selectors()])
        known = is_one_of(self.criterion, CRITERIA)
        check_option(known, "criterion", f"one of {', '.join(CRITERIA)}", self.criterion)
        self.num_bytes  # noqa: B018 (refuses what it cannot read)

    @property
    def num_threads(self) -> int:
        return Options(threads=self.threads).num_threads

    @cached_property
    def num_bytes(self) -> int:
        return memory_allowed(self.memory)

    @property
    def in_order(self) -> bool:
        """Whether the plan is fixed, so that the tree depends neither on who works on it nor on how fast."""
        return self.max_table is not None and self.leaves is not None

    @cached_property
    def worker_bytes(self) -> float:
        """Bytes that one worker may take."""
        return WORKERS_MEMORY * self.num_bytes / self.num_threads

    def without_whole(self) -> Self:
        """Return these options with the memory of a sum of the whole for the workers."""
        own = copy(self)
        own.__dict__["worker_bytes"] = (WHOLE_MEMORY + WORKERS_MEMORY) * self.num_bytes / self.num_threads
        return own
