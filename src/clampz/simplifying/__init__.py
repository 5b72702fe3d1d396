"""Simplify first: a smaller model with the same log Z, what was done, and the way back.

May import: model, options, watch, and the tools below them.
"""

from clampz.simplifying.call import simplify
from clampz.simplifying.simplified import Simplified

__all__ = ["Simplified", "simplify"]
