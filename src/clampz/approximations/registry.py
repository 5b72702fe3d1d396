"""The approximations by name: a new one is one file and one line here."""

from typing import Any

from clampz.approximations.base import Approximation
from clampz.approximations.bethe import bethe
from clampz.approximations.exact import exact
from clampz.approximations.mean_field import mean_field
from clampz.approximations.trw import trw

METHODS: dict[str, Approximation[Any]] = {method.name: method for method in (exact, mean_field, bethe, trw)}


def methods() -> dict[str, Approximation[Any]]:
    """Every approximation by name.

    >>> list(methods())
    ['exact', 'mean_field', 'bethe', 'trw']
    """
    return dict(METHODS)
