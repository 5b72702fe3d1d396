"""Data, no algorithms: models, their tables and graphs, batches of lanes, what is fixed in them, and what was found
about them.

May import: errors, numerics, options, watch and kernels of graphs.
"""

from clampz.model.model import BinaryForm, Evidence, Kind, Model, State, Variable

__all__ = ["BinaryForm", "Evidence", "Kind", "Model", "State", "Variable"]
