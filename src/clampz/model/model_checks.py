"""The check of models that public calls are given."""

from os import PathLike

from clampz.errors import ModelError, another_library
from clampz.model.model import Model


def check_model(found: object, name: str = "model") -> None:
    """Refuse what is no model, and say what makes one of it."""
    if not isinstance(found, Model):
        raise ModelError(f"{name}: expected a Model, found {_in_words(found)}")


def _in_words(found: object) -> str:
    """Say what came in place of a model, and what may have been meant."""
    kind = type(found)
    if isinstance(found, str | PathLike):
        return f"{str(found)!r:.80}: a file is read first, by cz.read"
    if theirs := another_library(found):
        return theirs
    if hasattr(found, "lane") and hasattr(found, "num_lanes"):
        return "a Batch: batch.lane(b) is the model of lane b, and methods (cz.exact, cz.trw, ...) take the whole"
    if isinstance(getattr(found, "model", None), Model):
        return f"{kind.__name__}: the model that it is about is its attribute model"
    return "None" if found is None else kind.__name__
