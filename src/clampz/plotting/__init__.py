"""Pictures of models and of what methods found.

May import: everything but the command line and the paper; matplotlib only when something is drawn.
"""

import clampz.plotting.closing  # noqa: F401 (says what draws a bracket)
from clampz.plotting.pictures import *  # noqa: F403
