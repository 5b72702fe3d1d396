"""The methods by name: a new one is one file and one line here."""

from typing import Any

from clampz.approximations.bethe import BetheKeywords, bethe
from clampz.approximations.mean_field import MeanFieldKeywords, mean_field
from clampz.approximations.mini_buckets.method import MiniBucketsKeywords, mini_buckets
from clampz.approximations.trw import TRWKeywords, trw
from clampz.errors import unknown_name
from clampz.exact_inference.lanes import ExactKeywords
from clampz.exact_inference.method import exact
from clampz.method import Method

METHODS: dict[str, Method[Any]] = {method.name: method for method in (exact, mean_field, bethe, trw, mini_buckets)}
# What people also call them.
ALIASES = {"mf": "mean_field", "mean field": "mean_field", "meanfield": "mean_field", "bp": "bethe"}


class MethodKeywords(ExactKeywords, MeanFieldKeywords, BetheKeywords, TRWKeywords, MiniBucketsKeywords, total=False):
    """The options of all methods, as a call takes them by name that runs one of them."""


def method_named(name: str, *others: str) -> Method[Any]:
    """Look a method up by name; an unknown one is refused with the nearest, `others` among them."""
    known = ALIASES.get(str(name).lower(), str(name).lower())
    if known not in METHODS:
        raise unknown_name("method", name, (*others, *METHODS))
    return METHODS[known]


def methods() -> dict[str, Method[Any]]:
    """Return every method by name.

    Returns
    -------
    dict
        `{name: method}`: the names are what `clamp`, `solve` and `fit` take as `method`; "mf" is mean field too.

    Examples
    --------
    >>> list(methods())
    ['exact', 'mean_field', 'bethe', 'trw', 'mini_buckets']
    """
    return dict(METHODS)
