"""The paper's claims, each a small function from what was measured to a verdict.

A claim holds or fails only where the numbers are further apart than `BEYOND` standard errors; otherwise the runs cannot
tell.  Unless a claim is about nats, errors are shares of a family's mean error before clamping, so that large families
do not drown small ones.  Where the paper speaks of several methods at once, all of them must agree.
"""

from collections.abc import Sequence

from reproduction.claims import accuracy, choice, examples, times
from reproduction.claims.measures import Measures
from reproduction.claims.verdicts import Claim, Verdict
from reproduction.families import FAMILIES, Family
from reproduction.table import Table

CLAIMS = (*accuracy.CLAIMS, *choice.CLAIMS, *times.CLAIMS, *examples.CLAIMS)


def check_claims(table: Table, families: Sequence[Family] = FAMILIES) -> list[tuple[Claim, Verdict]]:
    """Return every claim with its verdict on this table's runs of these families."""
    measured = Measures(table, known=families)
    return [(claim, claim.judge(measured)) for claim in CLAIMS]


__all__ = ["CLAIMS", "Claim", "Verdict", "check_claims"]
