"""Pictures of models and of what methods found.

May import: everything but the command line and the paper; matplotlib only when something is drawn.
"""

from clampz.plotting.pictures import *  # noqa: F403
