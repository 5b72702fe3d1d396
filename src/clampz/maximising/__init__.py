"""The best configuration: found from below, bounded from above, and what is between searched through.

May import: sampling, and what is below it.
"""

from clampz.maximising.call import best_found, mode
from clampz.maximising.results import Mode, Moment

__all__ = ["Mode", "Moment", "best_found", "mode"]
