"""Records: arrays of structures whose fields kernels read and write as attributes, compiled or not."""

from typing import Any

import numpy as np


class Record(np.record):  # type: ignore[misc]  # NumPy's stubs have a base of it as final
    """What a kernel that is not compiled sees of one: fields go before NumPy's own `size`, `shape` and `base`, and are
    numbers of any size, as in compiled kernels, where int32s become int64s."""

    def __getattribute__(self, name: str) -> Any:
        own = np.void.__getattribute__
        return own(self, "__getitem__")(name).item() if name in own(self, "dtype").names else own(self, name)


def record(**names: str) -> np.dtype[Any]:
    """A type of records: for each type of NumPy the fields that are of it.

    >>> record(i8="first last", i4="states").names
    ('first', 'last', 'states')
    """
    fields = [(name, kind) for kind, listed in names.items() for name in listed.split()]
    return np.dtype((Record, np.dtype(fields, align=True)))
