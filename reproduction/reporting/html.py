"""Pieces of the report's page, as HTML; what `text` has not escaped is HTML already."""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape


def text(value: object) -> str:
    """Return a value as escaped text, with the apostrophes of print."""
    return escape(re.sub(r"(?<=[A-Za-z])'(?=s\b| )", "’", str(value)))


def with_code(words: str) -> str:
    """Return escaped text, in which what stands between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", text(words))


def with_minus(words: str) -> str:
    """Put the minus of print before numbers, but for ranges such as [-6,6]."""
    return re.sub(r"(?<![\w\[,(])-(?=\d)", "−", words)


def sentence(words: str) -> str:
    """Return words that begin with a capital letter."""
    return words[:1].upper() + words[1:]


def section(name: str, title: str, body: str) -> str:
    """Return a section under its title, which links lead to by its name."""
    head = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{head}\n{body}\n</section>'


def facts(values: Mapping[str, object]) -> str:
    """Return boxes with a name and a value each."""
    boxes = (f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in values.items())
    return "\n".join(['<dl class="facts">', *boxes, "</dl>"])


def as_table(caption: str, label: str, head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """Return a table that can be scrolled; the first cell of a row is its name."""
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    named = f' class="{kind}"' if kind else ""
    lines = [f'<div class="scroll" tabindex="0" role="group" aria-label="{label}"><table{named}>']
    lines += [f"<caption>{caption}</caption>", f"<thead><tr>{columns}</tr></thead>", "<tbody>"]
    for name, *cells in rows:
        lines.append(f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def details(summary: str, body: str) -> str:
    """Return what is folded away until it is asked for."""
    return f"<details><summary>{summary}</summary>\n{body}</details>"


def as_source(png: bytes) -> str:
    """Return a picture as the source of an image, which needs no file."""
    return f"data:image/png;base64,{b64encode(png).decode('ascii')}"
