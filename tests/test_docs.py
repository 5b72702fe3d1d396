"""The site: its examples and tutorials run, and its commands; files that it links to are there."""

import doctest
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import clampz as cz
from clampz import cli

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
DOCTESTED = [ROOT / "README.md", DOCS / "index.md", DOCS / "tour.md"]
TUTORIALS = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.name != "index.md")
# Pages that need other libraries.
NEEDED = {"dimod.md": "dimod", "pgmpy.md": "pgmpy", "spin_glasses.md": "pandas"}
# What a cell may begin with that is for the page and not for Python.
SHELL = "%%bash\n"


def cells(page: Path) -> Iterator[str]:
    """The code cells of a page, without the lines that say how they are shown."""
    for cell in re.findall(r"^```\{code-cell\} python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        yield re.sub(r"\A(:.*\n)+\n", "", cell)


@pytest.mark.parametrize("page", DOCTESTED, ids=lambda page: page.name)
def test_examples_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    text = re.sub("^```.*$", "", page.read_text(encoding="utf-8"), flags=re.M)  # a fence would be taken for output
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert results.attempted > 3
    assert results.failed == 0


def walks() -> dict[str, list[list[str]]]:
    """The rows of each walk in the architecture, as cells."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8").partition("## Walks")[2].partition("\n## ")[0]
    parts = re.split(r"^(?=`cz\.)", text, flags=re.M)[1:]
    rows = {part.split("`")[1]: re.findall(r"^\| \d+ \|(.*)\|$", part, re.M) for part in parts}
    return {call: [row.split("|") for row in found] for call, found in rows.items()}


@pytest.mark.parametrize(("call", "rows"), walks().items())
def test_walks_name_what_is_there(call, rows):
    assert 3 < len(rows) <= 15
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/clampz").rglob("*.py"))
    known = set(re.findall(r"^ *(?:def|class) (\w+)", sources, re.M))
    for hop, *cells in rows:
        named = [name for code in re.findall(r"`([\w.]+)`", hop) for name in code.split(".")]
        packages = {path.name for path in (ROOT / "src/clampz").iterdir()}
        missing = [name for name in named if name not in known | packages | {"method"}]
        assert named and not missing, (call, missing)
        for place in re.findall(r"`([\w/]+/[\w.]*)`", "".join(cells)):
            assert (ROOT / "src/clampz" / place).exists(), place


@pytest.mark.filterwarnings("default")  # those of other libraries are theirs
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorials_run(page, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip(NEEDED.get(page.name, "matplotlib"))
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    scope: dict[str, Any] = {}
    found = list(cells(page))
    assert found
    for cell in found:
        exec(compile(cell, page.name, "exec"), scope)
    pytest.importorskip("matplotlib.pyplot").close("all")


def test_commands_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rich")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    lines = [line for cell in cells(DOCS / "command_line.md") for line in cell.removeprefix(SHELL).splitlines()]
    commands = [shlex.split(line) for line in lines]
    assert {"solve", "bound", "sample", "sweep", "uai"} <= {
        command[1] for command in commands if command[0] == "clampz"
    }
    for command in commands:
        match command:
            case ["clampz", *arguments]:
                assert cli.main(arguments) == 0, arguments
            case ["echo", text, ">", file]:
                Path(file).write_text(f"{text}\n")
            case ["cat", file]:
                assert Path(file).read_text()
            case ["cat", file, "|", "clampz", *arguments]:
                with Path(file).open(encoding="utf-8") as piped:
                    monkeypatch.setattr("sys.stdin", piped)
                    assert cli.main(arguments) == 0, arguments
            case _:
                raise AssertionError(f"expected clampz, echo or cat, found {command}")


def test_every_tutorial_is_in_the_index():
    listed = re.findall(r"^\w+$", (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8"), re.M)
    assert sorted(listed) == [page.stem for page in TUTORIALS]


def test_files_beside_the_pages_are_there():
    targets = {
        target
        for page in DOCS.rglob("*.md")
        for target in re.findall(r"\]\(site:([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert targets
    assert [target for target in targets if not (DOCS / "paper" / target).exists()] == []


def test_values_that_have_a_name_are_shown_as_what_they_are(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    signatures = importlib.import_module("signatures")
    for call, value in (
        (cz.mode, "gap: float=1e-09"),
        (cz.generators.from_graph, "theta: Range=(-2.0, 2.0)"),
        (cz.results.Solution.joint, "time: float=inf"),
        (cz.sample, "num_samples: int=1000"),
    ):
        shown, _ = signatures.written("method" if "." in call.__qualname__ else "function", call)
        assert value in shown
