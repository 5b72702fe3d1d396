"""Bracket: certified bounds on log Z with the way they closed; and the options of a search for them."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from clampz.clamping.selectors import selectors
from clampz.errors import unknown_name
from clampz.model import Model
from clampz.options import Changeable, Options, check_option, is_number, is_whole, memory_allowed
from clampz.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BracketStop = Literal["gap", "exact", "time", "leaves", "memory", "interrupt", "callback", "left"]

# The selector of its own that a search has.
CUTS = "cuts"
CRITERIA = ("gap", "upper", "lower")
# Sweeps of mean field and TRW at a leaf.
SWEEPS = 300


class Point(NamedTuple):
    """The bracket at a moment."""

    seconds: float
    lower: float
    upper: float
    num_leaves: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Bracket:
    """Certified: lower <= log Z <= upper.

    Attributes
    ----------
    estimate
        The Bethe value of the branches, held inside the bracket.
    trace
        How the bracket closed.
    stopped_by
        "gap" (narrow enough), "exact" (nothing is left to do), "time", "leaves", "memory", "interrupt", "callback";
        "left" while it runs.
    """

    model: Model
    lower: float
    upper: float
    estimate: float
    trace: tuple[Point, ...]
    stopped_by: BracketStop
    num_leaves: int
    seconds: float

    @property
    def gap(self) -> float:
        return 0.0 if self.lower == self.upper else self.upper - self.lower

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw both bounds over time, with the estimate between them."""
        from clampz.plotting.closing import plot_closing

        return plot_closing(self, ax)

    def __repr__(self) -> str:
        return (
            f"Bracket({self.lower:.10g} <= log Z <= {self.upper:.10g}, gap {self.gap:.3g}, estimate {self.estimate:.10g}; "
            f"{counted(self.num_leaves, 'leaf', 'leaves')}, {self.seconds:.2g} s, stopped by {self.stopped_by})"
        )


@dataclass(frozen=True, kw_only=True)
class BoundOptions(Changeable):
    """Options of `bound` and `bounds`.

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
    exact
        Whether parts that are narrow enough are summed exactly.
    select
        Which variable a branch is clamped at: "cuts" (its edges are cut where parts are made narrow, and it is
        undecided), or one of `selectors()`.
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
    exact: bool = True
    select: str = CUTS
    criterion: str = "gap"
    max_iter: int = SWEEPS
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_option(is_number(self.gap) and self.gap >= 0, "gap", "a number of nats >= 0", self.gap)
        check_option(is_number(self.time) and self.time >= 0, "time", "seconds >= 0", self.time)
        check_option(
            self.leaves is None or (is_whole(self.leaves) and self.leaves >= 1),
            "leaves",
            "None or a whole number >= 1",
            self.leaves,
        )
        check_option(is_whole(self.max_iter) and self.max_iter >= 1, "max_iter", "a whole number >= 1", self.max_iter)
        Options(threads=self.threads)  # refuses what is no number of threads
        if self.select not in (known := [CUTS, *selectors()]):
            raise unknown_name("selector", self.select, known)
        check_option(self.criterion in CRITERIA, "criterion", f"one of {', '.join(CRITERIA)}", self.criterion)
        self.num_bytes  # noqa: B018 (refuses what it cannot read)

    @cached_property
    def num_bytes(self) -> int:
        return memory_allowed(self.memory)
