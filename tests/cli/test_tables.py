"""Tables on terminals of any width."""

import re
import sys

import pytest

from clampz.cli.tables import new_table, show


@pytest.mark.parametrize(("width", "columns"), [(80, 4), (30, 3), (22, 2), (5, 2)])
def test_columns_without_a_place_are_left_out(monkeypatch, capsys, width, columns):
    """The others stay whole: numbers that are cut say nothing."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    table = new_table("method", "log Z", "is", "error", left=("is",))
    table.add_row("exact", "83.4502", "exact", "+0.0000")
    show(table)
    out = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert len(table.columns) == columns
    if width > 5:
        assert "83.4502" in out and "…" not in out and max(map(len, out.splitlines())) <= width


def test_a_pipe_has_all_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "10")
    table = new_table("method", "log Z", "is", "error", left=("is",))
    table.add_row("exact", "83.4502", "exact", "+0.0000")
    show(table)
    assert "+0.0000" in capsys.readouterr().out
