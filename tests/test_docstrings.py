"""Docstrings of public names: functions describe the parameters of their signatures, and what comes of them."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clampz as cz

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def sections(thing: Callable[..., Any]) -> dict[str, str]:
    """The sections of a docstring that have a heading."""
    _, *found = SECTION.split(inspect.getdoc(thing) or "")
    return dict(zip(found[::2], found[1::2], strict=True))


def described(text: str) -> list[str]:
    """Names in a section of parameters: lines that begin at the margin, until there is one of something else."""
    names: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            if not re.fullmatch(r"\*{0,2}\w+(, \*{0,2}\w+)*", line):
                break
            names += [name.lstrip("*") for name in line.split(", ")]
    return names


def functions() -> dict[str, Any]:
    """Public functions by name, those of the modules among public names included."""
    found = {name: getattr(cz, name) for name in cz.__all__}
    found |= {f"generators.{name}": getattr(cz.generators, name) for name in cz.generators.__all__}
    found |= {f"{name}.log_z": getattr(cz, name).log_z for name in ("jax", "torch")}
    return {name: each for name, each in found.items() if callable(each) and not inspect.isclass(each)}


FUNCTIONS = functions()
CLASSES = [name for name in cz.__all__ if inspect.isclass(getattr(cz, name))]


def test_names_are_found():
    assert described("a, *b\n    What it is.\n**c\n\n    More of it.\n\n>>> 1\nd\n") == ["a", "b", "c"]
    assert len(FUNCTIONS) >= 40


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_described_in_full(name):
    call = FUNCTIONS[name]
    written = inspect.unwrap(call) if inspect.isfunction(call) else call  # options by name are described by their class
    found, signature = sections(call), inspect.signature(written)
    names = described(found.get("Parameters", ""))
    assert len(names) == len(set(names))
    assert set(names) == set(signature.parameters)
    assert "Examples" in found
    assert "Returns" in found or signature.return_annotation is None


@pytest.mark.parametrize("name", CLASSES)
def test_classes_say_what_they_are(name):
    kind = getattr(cz, name)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{name}(")  # which is all that a dataclass says of itself
    methods = [member for member, value in vars(kind).items() if inspect.isfunction(value) and not value.__doc__]
    assert [member for member in methods if not member.startswith("_")] in ([], ["item"])  # of a sequence


# -- docstrings of all functions ---------------------------------------------------------------------------------------

# What an editor shows without its neighbours begins with a capital: of a verb, or a noun; or with a shape or a formula.
CONTINUES = re.compile(r"(The same|As above|Of|Those)\b")
FORMULA = re.compile(r"[^a-zA-Z]|(log2?|exp|max|sum|psi|theta|[a-z]) |\w* = |\S*[_^*(\[=<]")
ENDS = re.compile(r"[.!?](?=[\s)\"']|$)")


def stands_alone(text: str) -> bool:
    """Whether a docstring begins as a sentence of its own, which has an end."""
    begins = text[0].isupper() or FORMULA.match(text) is not None
    return begins and not CONTINUES.match(text) and ENDS.search(text) is not None


def test_what_stands_alone():
    some = (
        "Return it.",
        "(n,) the states.",
        "log Z of it.",
        "The same for one.",
        "of v.",
        "Those that do.",
        "Return it",
    )
    assert [stands_alone(text) for text in some] == [True] * 3 + [False] * 4


def test_docstrings_stand_alone():
    root = Path(cz.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                text = ast.get_docstring(node)
                if text and not stands_alone(text):
                    found.append(f"{path.relative_to(root)}:{node.lineno}: {text.splitlines()[0]}")
    assert not found, "\n".join(found)
