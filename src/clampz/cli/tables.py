"""Tables and texts on standard output, drawn by rich."""

import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from clampz.cli.outputs import display_name
from clampz.model import Model

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Columns of what goes to a pipe or a file: more than any line has.
PIPE_WIDTH = 10_000
CTRL_C = "stopped by Ctrl-C: this is what there was"


def show(*what: Any) -> None:
    """Print tables and texts.

    On a terminal they have colours, and tables lose the columns that do not fit.  Elsewhere they are plain, without
    line breaks, nor blanks at the end of lines.
    """
    from rich.console import Console

    if sys.stdout.isatty():
        console = Console(highlight=False)
        for item in what:
            _drop_columns(item, console)
        console.print(*what)
        return
    text = StringIO()
    Console(file=text, highlight=False, width=PIPE_WIDTH).print(*what)
    print("\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").split("\n")))


def _drop_columns(table: Any, console: "Console") -> None:
    """Leave out the last columns of a table that is too wide: cut to a digit each, all of them would say nothing."""
    columns = getattr(table, "columns", [])
    unlimited = console.options.update(width=PIPE_WIDTH)
    while len(columns) > 2 and all(column.no_wrap for column in columns):
        if console.measure(table, options=unlimited).maximum <= console.width:
            break
        columns.pop()


def terminal_width() -> int:
    """Return how many columns a line may have."""
    return get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def num_shown(model: Model, most: int) -> int:
    """Return how many variables to list: on a terminal at most this many, elsewhere all."""
    return min(model.num_variables, most) if sys.stdout.isatty() else model.num_variables


def new_table(*columns: str, left: Sequence[str] = (), wrapped: Sequence[str] = ()) -> "Table":
    """Return an empty table with a line under its head, numbers aligned to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        to_the_left = number == 0 or column in left
        table.add_column(column, justify="left" if to_the_left else "right", no_wrap=column not in wrapped)
    return table


def facts(rows: Sequence[tuple[str, str]]) -> "Table":
    """Return a table of names and values."""
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(name, escape(text))
    return table


def model_fact(path: Path, model: Model) -> tuple[str, str]:
    """Return the row that names the model and its size."""
    return "model", f"{display_name(path)}: {model.size_in_words}"
