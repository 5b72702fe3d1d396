"""`Memo`: estimates of sets of clamped variables, so that each set is solved once per method.

The sum over the joint states of a set does not depend on the order in which its variables were clamped, nor, with cold
starts, on the way to it.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np

from clampz.approximations.registry import METHODS
from clampz.clamping.candidates import VariableSet
from clampz.errors import OptionError
from clampz.model import Model
from clampz.model.model_checks import check_model
from clampz.model.results import Estimates
from clampz.numerics import Integers
from clampz.runtime.options import Options, check_option

# Options that change no number, unless they stop a run: and what was stopped is not kept.
LIMITS = ("time", "threads")
STOPPED = {"time", "interrupt", "callback"}


class Memo:
    """Estimates of clamped sets of one model, shared by calls of `clamp` with `warm_starts=False`.

    Every set that was solved is kept with the estimates of its branches, 2^k of them for k binary variables.  Results
    are those without a memo but for rounding: kernels round differently where a batch has fewer than eight lanes.

    Parameters
    ----------
    model
        The only one it is good for.
    options
        Of methods, as those that guide a selector have them too; methods without any get those of the first call, or
        their defaults if they guide.  Calls with others are refused.

    Examples
    --------
    >>> from clampz import clamp, generators
    >>> model = generators.grid(3, 3, rng=0)
    >>> memo = Memo(model)
    >>> for select in ("maxW", "frustCycles"):
    ...     found = clamp(model, "trw", k=2, select=select, warm_starts=False, memo=memo)
    >>> len(memo) <= 5  # the model itself, and a set for each step of each selector
    True
    """

    def __init__(self, model: Model, *options: Options) -> None:
        check_model(model)
        self.model = model
        self._options: dict[str, Options] = {}
        self._found: dict[tuple[str, VariableSet], Estimates] = {}
        for given in options:
            names = [name for name, method in METHODS.items() if type(given) is method.options_type]
            check_option(bool(names), "options of a memo", "options of a method", given)
            self.set_options(names[0], given)

    def __len__(self) -> int:
        """The number of sets that have been solved, counted once for every method."""
        return len(self._found)

    def __bool__(self) -> bool:
        return True  # also while it is empty

    def __repr__(self) -> str:
        return f"Memo({len(self)} sets of clamped variables solved of {self.model!r})"

    def options(self, method: str) -> Options | None:
        """Return the options of a method, None where none are known."""
        return self._options.get(method)

    def set_options(self, method: str, options: Options) -> None:
        """Set the options of a method; refused if it has others."""
        known = self._options.setdefault(method, options)
        differing = [
            field.name
            for field in fields(known)
            if field.name not in LIMITS and not np.array_equal(getattr(known, field.name), getattr(options, field.name))
        ]
        if differing:
            name = differing[0]
            raise OptionError(
                f"memo: expected the options with which it has {method}, {name}={getattr(known, name)!r}, "
                f"found {getattr(options, name)!r}; make a new memo, with the options of all methods: "
                f"Memo(model, {type(options).__name__}(...))"
            )

    def estimates(
        self, method: str, sets: Sequence[VariableSet], piece: Integers, solve: Callable[[Integers], Estimates]
    ) -> Estimates:
        """Return a method's estimates of lanes, piece by piece with a set each; `solve` is called for new sets."""
        new = np.array([(method, clamped) not in self._found for clamped in sets])
        found: dict[VariableSet, Estimates] = {}
        if new.any():
            lanes = np.flatnonzero(new[piece])
            solved = solve(lanes)
            found = {sets[p]: solved.take(np.flatnonzero(piece[lanes] == p)) for p in np.flatnonzero(new).tolist()}
            self._found |= {(method, s): e for s, e in found.items() if not STOPPED & set(e.stopped_by)}
            if new.all():
                return solved
        first, *others = [found.get(clamped) or self._found[method, clamped] for clamped in sets]
        return first.join(others) if others else first
