"""Docstrings of public functions: the parameters they describe are those of the signature."""

import inspect
import re
from collections.abc import Callable
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


FUNCTIONS = [name for name in cz.__all__ if callable(getattr(cz, name)) and "Parameters" in sections(getattr(cz, name))]


def test_names_are_found():
    assert described("a, *b\n    What it is.\n**c\n\n    More of it.\n\n>>> 1\nd\n") == ["a", "b", "c"]
    assert len(FUNCTIONS) >= 15


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_are_those_of_the_signature(name):
    function = getattr(cz, name)
    found = sections(function)
    names, signature = described(found["Parameters"]), set(inspect.signature(function).parameters)
    assert len(names) == len(set(names))
    assert set(names) <= signature
    if "Returns" in found:  # a docstring with every section leaves nothing out
        assert set(names) == signature
