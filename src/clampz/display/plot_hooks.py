"""Hooks by which `result.plot()` and `result.report()` find their functions without importing them.

`clampz.plotting` and `clampz.reporting` register the functions by the class of results.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

_DRAWN_BY: dict[type, Callable[..., Any]] = {}
_REPORTED_BY: dict[type, Callable[..., Path]] = {}


def draws(kind: type, function: Callable[..., Any]) -> None:
    """Register the function that draws results of a class."""
    _DRAWN_BY[kind] = function


def reports(kind: type, function: Callable[..., Path]) -> None:
    """Register the function that writes the report of results of a class."""
    _REPORTED_BY[kind] = function


class Drawable:
    """A result that has a picture."""

    def plot(self, *args: Any, **options: Any) -> Any:
        """Draw the result on the axes `ax`, or on a new figure, and return the axes."""
        return _DRAWN_BY[type(self)](self, *args, **options)


class Reportable:
    """A result that has a report."""

    def report(self, path: str | PathLike[str], title: str = "") -> Path:
        """Write a page about the result for a browser, pictures and tables inside, and return its path."""
        return _REPORTED_BY[type(self)](self, Path(path), title)
