"""The README: its examples run, its commands are there for .ci/run to find, and its links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
MAIN_COMMAND = "python3 -m venv .venv && .venv/bin/python -m pip install --quiet '.[cli]' && .venv/bin/clampz demo"
TEST_COMMAND = (
    "python3 -m venv .venv && .venv/bin/python -m pip install --quiet --editable '.[dev]' && .venv/bin/python -m pytest"
)


def test_examples_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    text = re.sub(
        "^```.*$", "", README.read_text(encoding="utf-8"), flags=re.MULTILINE
    )  # a fence would be taken for output
    examples = doctest.DocTestParser().get_doctest(text, {}, "README", str(README), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert results.attempted > 20
    assert results.failed == 0


def test_both_commands_are_one_line_each():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("python3 -m venv .venv && ")] == [MAIN_COMMAND, TEST_COMMAND]


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if "://" not in target and not (README.parent / target).exists()] == []
