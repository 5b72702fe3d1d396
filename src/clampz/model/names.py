"""Names: variables found by name wherever an index may stand."""

from collections.abc import Sequence

from clampz.display.formatting import some
from clampz.errors import EvidenceError, did_you_mean
from clampz.runtime.options import is_whole


class Names:
    """The names of variables, or None, with a dictionary made at the first lookup; a model and its tables share it.

    >>> Names(3, ["a", "b", "c"]).index("b"), Names(3).index(2)
    (1, 2)
    """

    __slots__ = ("_places", "names", "num_variables")

    def __init__(self, num_variables: int, names: Sequence[str] | None = None) -> None:
        self.num_variables, self.names = num_variables, names
        self._places: dict[str, int] | None = None

    def index(self, variable: object) -> int:
        """Return the index of a variable given by index or name."""
        if isinstance(variable, str):
            return self._named(variable)
        if not is_whole(variable) or not 0 <= variable < self.num_variables:
            there = f"expected an index from 0 to {self.num_variables - 1}" if self.num_variables else "there are none"
            raise EvidenceError(f"unknown variable {variable!r}: {there}")
        return int(variable)

    def _named(self, name: str) -> int:
        """Look a variable up by its name."""
        if self.names is None:
            raise EvidenceError(
                f"variable {name!r}: this model's variables have no names; "
                f"use an index from 0 to {self.num_variables - 1}"
            )
        if self._places is None:
            self._places = {known: i for i, known in enumerate(self.names)}
        try:
            return self._places[name]
        except KeyError:
            near = did_you_mean(name, self.names)
            raise EvidenceError(f"unknown variable {name!r}; this model has {some(self.names)}{near}") from None
