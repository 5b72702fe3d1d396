"""Problem: what was found about a model, kept with it, so that nobody need look again."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

# Bytes that a single finding may take to be kept: looking again costs little beside sums over larger models.
KEPT_BYTES = 2**26


class Problem:
    """Findings about a model that are never changed: presolved forms, planarity, orders, trees of tables.

    They are lost when the model is, and are not pickled with it.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}

    def once(self, what: Hashable, find: Callable[[], T], keeps: Callable[[T], bool]) -> T:
        """Return what was found before; else find it, and keep it if it would be the same whenever it is looked for."""
        known: T | None = self._found.get(what)
        if known is not None:
            return known
        found = find()
        if keeps(found):
            self._found[what] = found
        return found
