"""Data, no algorithms: models, their tables and graphs, batches of lanes, evidence, and estimates."""

from clampz.model.binary import BinaryForm, Kind
from clampz.model.evidence import Evidence
from clampz.model.model import Model
from clampz.model.variables import State, Variable

__all__ = ["BinaryForm", "Evidence", "Kind", "Model", "State", "Variable"]
