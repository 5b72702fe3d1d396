"""HTML of results in notebooks: facts, a small picture and the first rows of a table, as a card.

A result says what its card has, from what it already knows: nothing is computed for it.  All text is escaped, and
colours are those of the notebook's theme, but for one that can be seen on any.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from clampz.display.formatting import counted

# Rows of a table, states of a variable and columns of variables that are shown.
MOST_ROWS, MOST_STATES, MOST_COLUMNS = 8, 4, 8
ACCENT = "#3f83d1"
STYLE = (
    "<style>div.clampz table{border-collapse:collapse;margin:.3em 0;font-size:90%}"
    "div.clampz th,div.clampz td{padding:.15em .7em .15em 0;text-align:right;border:0;white-space:nowrap;"
    "vertical-align:baseline}"
    "div.clampz th{font-weight:normal;opacity:.65;border-bottom:1px solid rgba(128,128,128,.4)}"
    "div.clampz th.l,div.clampz td.l{text-align:left}div.clampz td.w{white-space:normal;max-width:50em}"
    "div.clampz .m{opacity:.65}</style>"
)


class Html(str):
    """Text that is HTML already; all other text is escaped."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class HtmlCard:
    """The contents of the card that a notebook shows of a result.

    Attributes
    ----------
    title
        What it is, in a few words.
    facts
        A name, and what it is: words, or a picture.
    columns, rows
        The head of a table, and those of its rows that are shown.
    more
        What is left out, as in "and 9,992 more variables".
    """

    title: str
    facts: Sequence[tuple[str, str]] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more: str = ""


class HasHtml:
    """A result that a notebook shows as a card."""

    def _card(self) -> HtmlCard:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return as_html(self._card())


def as_html(card: HtmlCard) -> str:
    """Return a card as HTML.

    >>> "<td class='l m'>a &lt; b</td>" in as_html(HtmlCard(title="one", facts=[("a < b", "no")]))
    True
    """
    facts = "".join(
        f"<tr><td class='l m'>{_text(name)}</td><td class='l w'>{_text(words)}</td></tr>" for name, words in card.facts
    )
    parts = [STYLE, f"<b>{_text(card.title)}</b>", f"<table>{facts}</table>" if facts else ""]
    if card.rows:
        # columns of numbers are to the right, all else is to the left; a word among numbers is to the right with them
        numbers = [[_is_number(row[k]) for row in card.rows if row[k] or k == 0] for k in range(len(card.columns))]
        left = [not (any(column) if k else all(column)) for k, column in enumerate(numbers)]
        head = "".join(map(_cell, itertools.repeat("th"), card.columns, left))
        rows = "".join(f"<tr>{''.join(map(_cell, itertools.repeat('td'), row, left))}</tr>" for row in card.rows)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    if card.more:
        parts.append(f"<span class='m'>{_text(card.more)}</span>")
    return f"<div class='clampz'>{''.join(parts)}</div>"


def and_more(total: int, shown: int, one: str, several: str | None = None) -> str:
    """Return a note on how many of `total` things are not shown.

    >>> and_more(10_000, 8, "variable"), and_more(8, 8, "variable")
    ('… and 9,992 more variables', '')
    """
    if total <= shown:
        return ""
    number, _, word = counted(total - shown, one, several).partition(" ")
    return f"… and {number} more {word}"


def between(
    outer: tuple[float, float],
    inner: tuple[float, float],
    mark: float | None = None,
    *,
    words: str = "",
    width: int = 220,
) -> Html:
    """Draw an interval inside another one, with a mark for the estimate; nothing where an end is infinite.

    `words` describe the picture; there is none without an outer interval.
    """
    low, high = outer
    ends = [low, high, *inner, *([] if mark is None else [mark])]
    if not all(map(math.isfinite, ends)) or not low < high:
        return Html("")
    x0, x1 = (_place(end, outer, width) for end in inner)
    drawn = (
        f"<line x1='0' y1='7' x2='{width}' y2='7' stroke='currentColor' stroke-opacity='.35'/>"
        f"<rect x='{x0:.1f}' y='3' width='{max(x1 - x0, 2.0):.1f}' height='8' rx='1' fill='{ACCENT}'/>"
    )
    if mark is not None:
        x = _place(mark, outer, width)
        drawn += f"<line x1='{x:.1f}' y1='0' x2='{x:.1f}' y2='14' stroke='currentColor' stroke-width='1.5'/>"
    if words:
        drawn += f"<title>{escape(words)}</title>"
    return _picture(drawn, width)


def shares(parts: Sequence[float], width: int = 90) -> Html:
    """Draw parts of a whole, one after another, paler and paler; nothing where one is not known."""
    if not all(map(math.isfinite, parts)):
        return Html("")
    drawn, begin = "", 0.0
    for k, part in enumerate(parts):
        opacity = max(1.0 - 0.3 * k, 0.15)
        drawn += (
            f"<rect x='{width * begin:.1f}' y='3' width='{width * part:.1f}' height='8' fill='{ACCENT}' "
            f"fill-opacity='{opacity:.2f}'/>"
        )
        begin += part
    return _picture(drawn, width)


def _place(value: float, outer: tuple[float, float], width: int) -> float:
    low, high = outer
    return width * min(max((value - low) / (high - low), 0.0), 1.0)


def _picture(drawn: str, width: int) -> Html:
    return Html(f"<svg width='{width}' height='14' style='vertical-align:-2px;overflow:visible'>{drawn}</svg>")


def _cell(tag: str, text: str, left: bool) -> str:
    begin = f"<{tag} class='l'>" if left else f"<{tag}>"
    return f"{begin}{_text(text)}</{tag}>"


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "") or "nan")
    except ValueError:
        return False
    return True


def _text(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)
