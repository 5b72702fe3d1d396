"""A bracket as a table, as data of JSON, and live on the terminal while it closes."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clampz._kernels.jit import compiling
from clampz.bounding.bracket import GAIN_COLUMNS, Bracket, gain_rows
from clampz.bounding.options import BoundOptions
from clampz.cli.live_progress import ProgressListener
from clampz.cli.outputs import as_number
from clampz.cli.tables import facts, model_fact, new_table, show
from clampz.runtime.progress import Show, compiling_in_words, is_interactive
from clampz.solving.solution import Solution

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

# Seconds before the bracket is shown live, times a second that it is drawn, and columns of the bar at most, and of the
# names before it.
PATIENCE, REFRESH, BAR, NAMES = 0.3, 8, 40, 14
# A gap that counts as none where none is asked for.
CLOSED = 1e-9
REASONS = {
    "gap": "gap: as narrow as asked for",
    "exact": "exact: nothing is left to do",
    "time": "time",
    "leaves": "leaves",
    "memory": "memory",
    "interrupt": "Ctrl-C: this is what there was",
    "error": "error: strategies have failed, as warnings say",
}


def print_bracket(bracket: Bracket, path: Path) -> None:
    """Print the bracket as a table, and who closed the gap as another."""
    from rich.markup import escape

    rows = [
        model_fact(path, bracket.model),
        *bracket.facts,
        ("leaves", f"{bracket.num_leaves:,}"),
        ("seconds", f"{bracket.seconds:.2f}"),
        ("stopped by", REASONS[bracket.stopped_by] + ("; Z = 0" if bracket.upper == -math.inf else "")),
    ]
    show(facts(rows))
    if bracket.gains:
        table = new_table(*GAIN_COLUMNS)
        for row in gain_rows(bracket.gains):
            table.add_row(*map(escape, row))
        show(table)  # it begins with an empty line


def statistical_data(found: Bracket | Solution) -> dict[str, Any]:
    """Return the standard error and the 95% interval of an estimate by sampling, null where there is none."""
    interval = None if found.standard_error is None else [as_number(end) for end in found.interval()]
    return {"standard_error": as_number(found.standard_error), "statistical_interval_95": interval}


def ending_data(found: Any) -> dict[str, Any]:
    """Return how long a run took and why it ended, as JSON has them."""
    return {
        "seconds": round(found.seconds, 6),
        "stopped_by": found.stopped_by,
        "interrupted": found.stopped_by == "interrupt",
    }


class LiveBracket(ProgressListener):
    """The latest bracket of a run, which rich draws on the terminal again and again."""

    def __init__(self, options: BoundOptions) -> None:
        super().__init__()
        self._began = time.perf_counter() - compiling.seconds  # that takes no time on the clock
        self._options = options

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Table | str]":
        from rich.markup import escape
        from rich.progress_bar import ProgressBar

        taken = time.perf_counter() - compiling.seconds - self._began
        notes = compiling_in_words()
        if taken < PATIENCE and not notes:
            yield ""
            return
        table = facts([])
        bracket = self.latest
        if isinstance(bracket, Bracket):
            for name, text in bracket.facts:
                table.add_row(name, escape(text))
            width = max(1, min(BAR, options.max_width - NAMES))
            table.add_row("closed", ProgressBar(total=1.0, completed=self.share_closed(bracket), width=width))
            table.add_row("leaves", f"{bracket.num_leaves:,}")
        for text in notes:
            table.add_row("", text)
        ending = "stopping" if self.stop else "Ctrl-C stops"
        table.add_row("seconds", f"{taken:.0f} of {self._options.time:g}, {ending}")
        yield table

    def share_closed(self, bracket: Bracket) -> float:
        """Return how far the gap has come from the first one to the one asked for, on a log scale."""
        gaps = (point.upper - point.lower for point in bracket.trace)
        widest = next(filter(math.isfinite, gaps), math.inf)
        target = max(self._options.gap, CLOSED)
        if bracket.gap <= target:
            return 1.0
        return math.log(widest / bracket.gap) / math.log(widest / target) if widest < math.inf else 0.0


@contextmanager
def live_on_terminal(bracket: LiveBracket) -> Iterator[Show]:
    """Show the bracket on the terminal while it closes, and remove it in the end."""
    if not is_interactive():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.live import Live

    settings: dict[str, Any] = {"transient": True, "redirect_stdout": False, "redirect_stderr": False}
    console = Console(stderr=True, highlight=False)
    with Live(get_renderable=lambda: bracket, console=console, refresh_per_second=REFRESH, **settings):
        yield lambda text: None
