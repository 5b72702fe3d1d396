"""The forms that evidence may have, turned into mappings.

One evidence set is `{variable: state}`; a row of a pandas frame, or a frame of one; or an array with a state of each
variable in turn.  Several are a list of these; or a frame, or an array, with a set in each row.  In rows and arrays
None, nan and what pandas has for a value that is missing say nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from clampz.display.formatting import some
from clampz.errors import EvidenceError, shown

Evidence = Mapping[Any, Any]


class RowEvidence(dict[Any, Any]):
    """The states that a row or an array gives; a whole number below zero may still mean a missing value."""


def several_sets(evidence: object) -> Sequence[Evidence] | None:
    """Return the evidence sets, where their form says that there are several; None where there is one at most.

    >>> several_sets(np.array([[0, 1], [1, 1]])), several_sets({0: 1})
    ([array([0, 1]), array([1, 1])], None)
    """
    if _is_frame(evidence):
        return _rows(evidence)
    if _num_axes(evidence) == 2:
        rows: Any = evidence
        return list(rows)
    return evidence if isinstance(evidence, Sequence) and not isinstance(evidence, str | bytes) else None


def as_sets(evidence: object) -> Sequence[Evidence]:
    """Coerce evidence to a list of at least one set, also from an iterator."""
    sets = several_sets(evidence)
    if sets is None:
        is_one = isinstance(evidence, Mapping | str | bytes) or hasattr(evidence, "iloc") or _num_axes(evidence)
        if is_one or not isinstance(evidence, Iterable):
            raise EvidenceError(
                "evidence: expected a list of evidence sets {variable: state}, or a frame or an array with a set in "
                f"each row, found {'one set' if isinstance(evidence, Mapping) else _in_words(evidence)}"
            )
        sets = list(evidence)
    if not len(sets):
        raise EvidenceError("evidence: expected at least one evidence set, found none")
    return sets


def as_mapping(evidence: object, num_variables: int | None = None) -> Evidence:
    """Coerce one evidence set to a mapping; an array may have a state of each of `num_variables`.

    >>> as_mapping(np.array([1, np.nan, 0]), 3)
    {0: 1, 2: 0}
    """
    if isinstance(evidence, Mapping):
        return evidence
    said: Any = evidence
    if _is_frame(said):
        if len(said) != 1:
            raise EvidenceError(
                f"evidence: expected a row, or a frame of one, found a frame of {len(said)}: a set in each row is for "
                "calls that take several, which are the methods (cz.exact, cz.trw, ...) and cz.solve"
            )
        return _rows(said)[0]
    if hasattr(said, "iloc"):
        return _of_row(said.items())
    if num_variables is not None and _num_axes(said) == 1 and len(said) == num_variables:
        return _of_row(enumerate(said.tolist()))
    states = "" if num_variables is None else f" or an array of {num_variables} states (nan for what is not known)"
    raise EvidenceError(f"evidence: expected {{variable: state}}, a pandas row{states}, found {_in_words(said)}")


def is_missing_value(value: object) -> bool:
    """Whether a value stands for a missing one: None, nan, and what pandas has for it."""
    missing = value is None or type(value).__name__ in ("NAType", "NaTType")
    return missing or (isinstance(value, float | np.floating) and bool(np.isnan(value)))


def _of_row(items: Any) -> RowEvidence:
    """Keep what is there of a row, whole numbers again where others in the row are missing."""
    return RowEvidence((label, _as_whole(value)) for label, value in items if not is_missing_value(value))


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, float | np.floating) and value == np.floor(value) < np.inf else value


def _rows(frame: Any) -> list[RowEvidence]:
    """List the evidence sets in the rows of a frame."""
    labels = list(frame.columns)
    twice = [label for k, label in enumerate(labels) if label in labels[:k]]
    if twice:
        raise EvidenceError(f"evidence: expected each variable in one column, found several of {some(twice)}")
    columns = [frame.iloc[:, k].tolist() for k in range(len(labels))]
    return [_of_row(zip(labels, row, strict=True)) for row in zip(*columns, strict=True)] or [RowEvidence()] * len(
        frame
    )


def _is_frame(evidence: object) -> bool:
    return hasattr(evidence, "iloc") and hasattr(evidence, "columns")


def _num_axes(evidence: object) -> int:
    """Count the axes of an array; 0 of all else."""
    is_array = hasattr(evidence, "tolist") and not hasattr(evidence, "iloc")
    return int(getattr(evidence, "ndim", 0)) if is_array else 0


def _in_words(evidence: Any) -> str:
    """Say what came in place of an evidence set, and what may have been meant."""
    if isinstance(evidence, str | PathLike):
        return f"{str(evidence)!r:.80}: evidence in a file is read with its model, cz.read(model_file, evidence_file)"
    if _num_axes(evidence):
        several = ": a set in each row is for calls that take several" if _num_axes(evidence) == 2 else ""
        return f"an array of shape {tuple(evidence.shape)}{several}"
    if isinstance(evidence, list | tuple):
        sets = any(isinstance(each, Mapping) or hasattr(each, "iloc") for each in evidence)
        return (
            f"a {type(evidence).__name__}: several sets are for the methods and cz.solve" if sets else shown(evidence)
        )
    return "None" if evidence is None else type(evidence).__name__
