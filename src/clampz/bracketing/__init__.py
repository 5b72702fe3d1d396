"""Anytime bounds: a bracket on log Z that tightens while it runs, and holds whenever it is stopped.

An AND/OR tree of clamps and components (`tree`, `frontier`) is searched best first (`search`, `next_work`); leaves are
bounded from narrow parts, or summed exactly (`leaves`).  Every bound that is ever computed holds, so the root's can
only tighten.  May import: clamping and everything below it.
"""

from clampz.bracketing.bracket import Bracket, Point
from clampz.bracketing.intervals import MarginalBounds
from clampz.bracketing.marginals import bound_marginals
from clampz.bracketing.options import BoundOptions
from clampz.bracketing.running import bound, bounds

__all__ = ["BoundOptions", "Bracket", "MarginalBounds", "Point", "bound", "bound_marginals", "bounds"]
