"""Records: arrays of structures whose fields kernels read and write as attributes, compiled or not."""

from typing import Any

import numpy as np


class Record(np.record):  # type: ignore[misc]  # NumPy's stubs have a base of it as final
    """A record as kernels that are not compiled see it: fields hide NumPy's own attributes, and int32s become
    int64s."""

    def __getattribute__(self, name: str) -> Any:
        own = np.void.__getattribute__
        return own(self, "__getitem__")(name).item() if name in own(self, "dtype").names else own(self, name)


def record(**names: str) -> np.dtype[Any]:
    """Make a record type from field names grouped by NumPy type.

    >>> record(i8="first last", i4="states").names
    ('first', 'last', 'states')
    """
    fields = [(name, kind) for kind, listed in names.items() for name in listed.split()]
    return np.dtype((Record, np.dtype(fields, align=True)))
