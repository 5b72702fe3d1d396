"""Seeds: what `rng` may be, and the number or the Generator that it means to a run."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from clampz.errors import OptionError, shown
from clampz.runtime.options import is_whole

Seed = int | np.random.Generator | None

# Seeds of a run are below this: checkpoints keep them.
LARGEST_SEED = 2**62


def as_generator(rng: Seed) -> np.random.Generator:
    """A numpy Generator from a seed; a Generator is used as it is."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise OptionError(f"rng: expected a whole number >= 0, a numpy Generator or None, found {shown(rng)}") from None


def as_seed(rng: Seed) -> int:
    """The seed that `rng` means to a run: the same every time for None, a number as it is, and of a Generator its next
    one.

    >>> as_seed(None), as_seed(7)
    (0, 7)
    """
    if rng is None:
        return 0
    drawn = int(as_generator(rng).integers(LARGEST_SEED))  # refuses what is neither
    return rng if is_whole(rng) and rng < LARGEST_SEED else drawn


def with_rng(changes: Mapping[str, Any], rng: Seed) -> dict[str, Any]:
    """Options of a call with the seed that its `rng` means, if it is given one."""
    if rng is None:
        return dict(changes)
    if "seed" in changes:
        raise OptionError(f"rng: expected either rng or the option seed, found both: {shown(rng)}, {changes['seed']!r}")
    return {**changes, "seed": as_seed(rng)}
