"""Self-contained HTML pages and their elements: style and pictures are inside, without scripts or requests.

Texts are escaped by `text`; other arguments are HTML where a docstring says so.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
# Kinds of pictures, by their first bytes.
KINDS = {b"\x89PNG": "png", b"<?xml": "svg+xml"}


def page(title: str, intro: str, sections: Mapping[str, str], main: str, footer: str, style: str = "") -> str:
    """Return a page: `title` is text, the others are HTML, and `sections` are titles by the names of sections.

    `style` comes after the style of all pages.
    """
    shared = (resources.files("clampz") / "pages.css").read_text(encoding="utf-8")
    links = "\n".join(f'<li><a href="#{name}">{short}</a></li>' for name, short in sections.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<link rel="icon" href="data:,">
<title>{text(title)}</title>
<style>
{shared}{style}</style>
</head>
<body>
<header>
<h1>{text(title)}</h1>
{intro}
<nav aria-label="Sections"><ul>
{links}
</ul></nav>
</header>
<main>
{main}
</main>
<footer>{footer}</footer>
</body>
</html>
"""


def text(value: object) -> str:
    """Escape a text for HTML, with typographic apostrophes."""
    return escape(re.sub(r"(?<=[A-Za-z])'(?=s\b| )", "’", str(value)))


def with_minus(value: str) -> str:
    """Put a typographic minus before numbers, but not within ranges such as [-6,6]."""
    return re.sub(r"(?<![\w\[,(])-(?=\d)", "−", value)


def sentence(value: str) -> str:
    """Return a text with a capital letter."""
    return value[:1].upper() + value[1:]


def section(name: str, title: str, body: str) -> str:
    """Return a section of a page from HTML."""
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{title}</h2>
{body}
</section>"""


def facts(values: Mapping[str, object]) -> str:
    """Return boxes with a name and a value each, both texts."""
    boxes = "\n".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in values.items())
    return f'<dl class="facts">\n{boxes}\n</dl>'


def table(caption: str, label: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table that can be scrolled, from cells of HTML; a row begins with its name."""
    columns = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>' for name, *cells in rows
    )
    above = f"<caption>{caption}</caption>\n" if caption else ""
    return f"""<div class="scroll" tabindex="0" role="group" aria-label="{label}"><table{kind and f' class="{kind}"'}>
{above}<thead><tr>{columns}</tr></thead>
<tbody>
{body}
</tbody></table></div>"""


def details(summary: str, body: str) -> str:
    """Return HTML that is folded away under a summary."""
    return f"<details><summary>{summary}</summary>\n{body}</details>"


def data_url(picture: bytes) -> str:
    """Return the bytes of a picture as the source of an image."""
    kind = next(kind for begin, kind in KINDS.items() if picture.startswith(begin))
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"
