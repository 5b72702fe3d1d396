"""Verdicts on claims."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clampz.paper.measures import Measures
from clampz.paper.table import Table


@dataclass(frozen=True)
class Verdict:
    """What was measured, whether the claim holds (None: these runs cannot tell), and why, where that is not plain."""

    numbers: str
    holds: bool | None
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """What the paper says, in our words; where it says so; and how it is judged.

    `name` is short and fit for a link; `figures` are those that show it.
    """

    name: str
    text: str
    where: str
    judge: Callable[[Measures], Verdict]
    figures: tuple[str, ...] = ()

    def check(self, table: Table, settings: str = "paper") -> Verdict:
        """The verdict of one table's runs."""
        return self.judge(Measures(table, settings))


def no_data(what: str) -> Verdict:
    """Of a table that lacks what the claim is about."""
    return Verdict("–", None, f"Not in this table: {what}.")


def together(found: Iterable[bool | None]) -> bool | None:
    """Whether all hold: not if one fails, and undecided if one is.

    >>> together([True, None]), together([None, False]), together([True, True])
    (None, False, True)
    """
    found = list(found)
    return False if False in found else None if None in found or not found else True


def explained(holds: bool | None, num_runs: int, why_not: str, so: str = "") -> str:
    """The note of a verdict: `so` where the claim holds, `why_not` where it fails, or that the runs are too few."""
    if holds is None:
        return f"Cannot tell with {num_runs} run{'' if num_runs == 1 else 's'}: within two standard errors, or too few runs for one."
    return so if holds else why_not
