"""A model over a range of inverse temperatures: certified ends of log Z, and its thermodynamics.

May import: bracketing and the rooms below it.
"""

from clampz.sweeping.call import sweep
from clampz.sweeping.result import Sweep

__all__ = ["Sweep", "sweep"]
