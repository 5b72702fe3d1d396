"""Rates: seconds that a unit of each kind of work takes, from a prior on to what this machine has shown.

Each kind of work has one rate, registered here by name.  A rate learns from measured work as a running mean; long work
counts more than short, which the clock hardly sees.  No lock is taken: an update that another thread overwrites is a
measurement lost, nothing worse.  Plans ask a rate only where there is a time limit; without one priors decide, so that
a run at a seed is the same on every machine.
"""

from dataclasses import dataclass, field

# Seconds of work that count in full: the rate is then what they took.
TELLING_SECONDS = 5e-3


@dataclass(eq=False)
class Rate:
    """Seconds per unit of one kind of work.

    Attributes
    ----------
    name
        What the work is, and its unit.
    prior
        Seconds per unit before anything was measured.
    lowest, highest
        How far the rate may move from the prior, as factors: plans that are never tried would teach nothing.
    """

    name: str
    prior: float
    lowest: float = 1 / 3
    highest: float = 10.0
    learned: float = field(init=False)

    def __post_init__(self) -> None:
        self.learned = self.prior
        RATES[self.name] = self

    def learn(self, units: float, seconds: float) -> None:
        """Move the rate towards what was measured; work that a coarse clock has not seen teaches nothing."""
        if units > 0 and seconds > 0:
            seen = min(max(seconds / units, self.lowest * self.prior), self.highest * self.prior)
            self.learned += min(1.0, seconds / TELLING_SECONDS) * (seen - self.learned)


RATES: dict[str, Rate] = {}

# Others may be at work on this machine: how much longer work takes than the processor is at it.
ELAPSED = Rate("elapsed seconds per second of a thread's own", 1.0, lowest=1.0)
