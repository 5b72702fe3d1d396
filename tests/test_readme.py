"""The README: its commands are there for .ci/run to find, its links lead somewhere.  `test_docs` runs its examples."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
MAIN_COMMAND = "python3 -m venv .venv && .venv/bin/python -m pip install --quiet '.[cli]' && .venv/bin/clampz demo"
TEST_COMMAND = (
    "python3 -m venv .venv && .venv/bin/python -m pip install --quiet --editable '.[dev]' && .venv/bin/python -m pytest"
)


def test_both_commands_are_one_line_each():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("python3 -m venv .venv && ")] == [MAIN_COMMAND, TEST_COMMAND]


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if "://" not in target and not (README.parent / target).exists()] == []
