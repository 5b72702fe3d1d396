"""How results find their pictures and reports without importing them: `clampz.plotting` says what draws what and
`clampz.reporting` what writes about what, and `result.plot()` and `result.report()` ask here."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

_DRAWN_BY: dict[type, Callable[..., Any]] = {}
_REPORTED_BY: dict[type, Callable[..., Path]] = {}


def draws(kind: type, function: Callable[..., Any]) -> None:
    """Let `function` draw results of this kind."""
    _DRAWN_BY[kind] = function


def reports(kind: type, function: Callable[..., Path]) -> None:
    """Let `function` write about results of this kind."""
    _REPORTED_BY[kind] = function


class Drawable:
    """A result that has a picture."""

    def plot(self, *args: Any, **options: Any) -> Any:
        """Draw it, on the axes `ax` or on a figure of its own; returns the axes."""
        return _DRAWN_BY[type(self)](self, *args, **options)


class Reportable:
    """A result that has a report."""

    def report(self, path: str | PathLike[str], title: str = "") -> Path:
        """Write a page about it for a browser, with pictures and tables inside, over what is there; returns its
        path."""
        return _REPORTED_BY[type(self)](self, Path(path), title)
