"""Verdicts on claims."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from reproduction.claims.measures import Mean, Measures
from reproduction.settings import TITLES
from reproduction.tools import counted


@dataclass(frozen=True)
class Verdict:
    """Say what was measured, whether the claim holds (None: these runs cannot tell), and why, where that is not plain;
    `only` names what it holds for, where that is a part."""

    numbers: str
    holds: bool | None
    note: str = ""
    only: str = ""


def word_for(verdict: Verdict) -> tuple[str, str]:
    """Return the verdict in words, and the class that colours them."""
    if verdict.only:
        return f"holds for {verdict.only}", "open"
    if verdict.holds is None:
        return ("not run", "none") if verdict.note.startswith("Not in this table") else ("cannot tell", "open")
    return ("holds", "yes") if verdict.holds else ("does not hold", "no")


@dataclass(frozen=True)
class Claim:
    """Hold what the paper says, in our words; where it says so; and how it is judged.

    `name` is short and fit for a link; `figures` are those that show it.
    """

    name: str
    text: str
    where: str
    judge: Callable[[Measures], Verdict]
    figures: tuple[str, ...] = ()


def claim(where: str, *figures: str) -> Callable[[Callable[[Measures], Verdict]], Claim]:
    """Make a claim of the function that judges it: its name is the claim's, its docstring what the paper says."""

    def made(judge: Callable[[Measures], Verdict]) -> Claim:
        return Claim(judge.__name__.replace("_", "-"), " ".join((judge.__doc__ or "").split()), where, judge, figures)

    return made


def claims_in(module: Mapping[str, object]) -> tuple[Claim, ...]:
    """Return the claims that a module has made, in its order: `claims_in(vars())` at its end."""
    return tuple(each for each in module.values() if isinstance(each, Claim))


def no_data(what: str) -> Verdict:
    """Return the verdict on a table that lacks what the claim is about."""
    return Verdict("–", None, f"Not in this table: {what}.")


def together(found: Iterable[bool | None]) -> bool | None:
    """Tell whether all hold: not if one fails, and undecided if one is.

    >>> together([True, None]), together([None, False]), together([True, True])
    (None, False, True)
    """
    found = list(found)
    return False if False in found else None if None in found or not found else True


def judged(numbers: str, holds: bool | None, num_runs: int, why_not: str) -> Verdict:
    """Return a verdict that says why where the claim fails, or that the runs are too few to tell."""
    few = f"Cannot tell with {counted(num_runs, 'run')}: within two standard errors, or too few runs for one."
    return Verdict(numbers, holds, few if holds is None else "" if holds else why_not)


def in_parts(numbers: str, parts: Mapping[str, bool | None], num_runs: int, why_not: str = "") -> Verdict:
    """Judge a claim by its parts, such as the methods: whether all agree, else for which it holds."""
    holds = together(parts.values())
    against = [TITLES.get(name, name) for name, held in parts.items() if held is False]
    note = f"Not so for {' and '.join(against)}. {why_not}".strip() if against else why_not
    only = ", ".join(TITLES.get(name, name) for name, held in parts.items() if held) if holds is not True else ""
    return replace(judged(numbers, holds, num_runs, note), only=only)


def listed(found: Mapping[str, Mean], *, percent: bool = True, sign: bool = False) -> str:
    """Write the means of methods, or of other names, one after the other."""
    return ", ".join(
        f"{TITLES.get(name, name)} {mean.percent(sign) if percent else mean.text(sign=sign)}"
        for name, mean in found.items()
    )
