"""Tables and texts on stdout."""

import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

from clampz.cli.outputs import called
from clampz.model import Model

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Columns of what goes to a pipe or a file: more than any line has.
PIPE_WIDTH = 10_000


def show(*what: Any) -> None:
    """Print tables and texts: in colours on a terminal, without the columns that it has no place for; plain and without
    line breaks or blanks at the end of lines elsewhere."""
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
    """Columns that a line may have."""
    return get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH


def new_table(*columns: str, left: Sequence[str] = (), wrapped: Sequence[str] = ()) -> "Table":
    """A table with a line under its head, numbers to the right."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns):
        to_the_left = number == 0 or column in left
        table.add_column(column, justify="left" if to_the_left else "right", no_wrap=column not in wrapped)
    return table


def facts(rows: Sequence[tuple[str, str]]) -> "Table":
    """A table of names and what they are."""
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in rows:
        table.add_row(name, escape(text))
    return table


def model_fact(path: Path, model: Model) -> tuple[str, str]:
    """The row that says which model, and how large it is."""
    return "model", f"{called(path)}: {model.size_in_words}"
