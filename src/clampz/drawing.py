"""How results find their pictures without importing them: `clampz.plotting` says what draws what, and `result.plot()`
asks here."""

from collections.abc import Callable
from typing import Any

_DRAWN_BY: dict[type, Callable[..., Any]] = {}


def draws(kind: type, function: Callable[..., Any]) -> None:
    """Let `function` draw results of this kind."""
    _DRAWN_BY[kind] = function


class Drawable:
    """A result that has a picture."""

    def plot(self, *args: Any, **options: Any) -> Any:
        """Draw it; returns the axes."""
        return _DRAWN_BY[type(self)](self, *args, **options)
