"""What exact sums cost: the one model of their time, for all who have to choose.

Time goes by the table entries that the pass forwards visits (`SumTree.visits`; a contraction is expected to take as
long as a sweep over its visits, and is better known).  Measured with one thread on a machine
that others used too, on binary tori of 81 and 144 variables, complete graphs, and tori of three and five labels:
forwards an entry takes 0.5 to 4 ns, and both passes together 2 to 15 ns, mostly 2.4 to 4 times as long as the one.
Earlier, both passes took 1.1 to 1.4 ns a byte on binary grids and 2.9 with five labels, which is about 10 ns an entry
for either: entries tell more than bytes.  The rates have room to spare, so that what is promised in some seconds is
done in them.  They are where a process begins; from then on the sums that it takes tell how fast this machine is now.
No result depends on them, only what is tried in the time that there is.
"""

import threading

from clampz.exact_inference.contraction_trees import SECONDS_PER_VISIT
from clampz.exact_inference.trees import SumTree

# Table entries of a sum that stays in a processor's cache, and seconds per entry there and beyond twice as many.
CACHED_ENTRIES = 2.0**20
SECONDS_PER_ENTRY, SECONDS_BEYOND = 6e-9, 10e-9
# How many times as long both passes take as the one forwards.
WITH_MARGINALS = 3.0
# Of a sum of whatever size, and of each variable however small its tables.
SECONDS_PER_SUM, SECONDS_PER_VARIABLE = 1e-4, 2e-7
# Entries of sums that teach, some milliseconds of work, and entries for each of their variables, or these would be
# what they spend their time on.
TELLING_ENTRIES, TELLING_PER_VARIABLE = 2.0**20, 256
# Share of a sum in the rate that it leaves, and how far rates go from where they began: not so far that nothing is
# tried any more, from which nothing would be learned.
NEWS = 0.3
LOWEST, HIGHEST = 1 / 3, 10.0


# Contractions take what they are planned to, which is one and a half times what they took.
RATES = (SECONDS_PER_ENTRY, SECONDS_BEYOND, SECONDS_PER_VISIT)


class Speed:
    """Seconds per entry on the machine at hand, in and out of its cache and by contractions: as a running mean of what
    sums took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rates = list(RATES)

    def rate(self, at_once: float, *, contracted: bool = False) -> float:
        """Return seconds per entry of a sum with this number of entries: no less for more."""
        cached, beyond, by_contraction = self._rates
        if contracted:
            return by_contraction
        return cached if at_once <= 2 * CACHED_ENTRIES else max(cached, beyond)

    def learn(self, entries: float, variables: int, took: float, *, marginals: bool, contracted: bool = False) -> None:
        """Take in what a sum took."""
        if entries < max(TELLING_ENTRIES, TELLING_PER_VARIABLE * variables):
            return
        which = 2 if contracted else int(entries > 2 * CACHED_ENTRIES)
        begun = RATES[which]
        seen = took / entries / (WITH_MARGINALS if marginals else 1.0)
        with self._lock:
            rate = (1 - NEWS) * self._rates[which] + NEWS * seen
            self._rates[which] = min(max(rate, LOWEST * begun), HIGHEST * begun)


SPEED = Speed()


def seconds(
    entries: float,
    *,
    marginals: bool = False,
    at_once: float | None = None,
    variables: int = 0,
    contracted: bool = False,
    speed: Speed = SPEED,
) -> float:
    """Predict what a sum takes that visits this number of table entries forwards, or several of `at_once` entries."""
    visits = entries * speed.rate(at_once or entries, contracted=contracted) + variables * SECONDS_PER_VARIABLE
    return SECONDS_PER_SUM + visits * (WITH_MARGINALS if marginals else 1.0)


def tree_seconds(tree: SumTree, *, marginals: bool) -> float:
    """What a sum takes that is laid out."""
    variables = len(tree.order.variables)
    return seconds(tree.visits, marginals=marginals, variables=variables, contracted=tree.is_contracted)
