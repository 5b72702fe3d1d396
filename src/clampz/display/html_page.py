"""Pages that need nothing but themselves: pictures and style are inside, there is no script, and nothing is fetched.

Texts are escaped by `text`; what takes HTML says so.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
# Kinds of picture, by how their bytes begin.
KINDS = {b"\x89PNG": "png", b"<?xml": "svg+xml"}


def page(title: str, intro: str, sections: Mapping[str, str], main: str, footer: str, style: str = "") -> str:
    """All of a page: `title` is text, and the others are HTML; `sections` are titles by the names of their sections,
    and `style` comes after what all pages have."""
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
    """Escaped, with the apostrophes of print."""
    return escape(re.sub(r"(?<=[A-Za-z])'(?=s\b| )", "’", str(value)))


def with_minus(value: str) -> str:
    """With the minus of print before numbers; not within ranges such as [-6,6]."""
    return re.sub(r"(?<![\w\[,(])-(?=\d)", "−", value)


def sentence(value: str) -> str:
    """With a capital letter."""
    return value[:1].upper() + value[1:]


def section(name: str, title: str, body: str) -> str:
    """Of HTML."""
    return f"""<section id="{name}" aria-labelledby="{name}-title">
<h2 id="{name}-title">{title}</h2>
{body}
</section>"""


def facts(values: Mapping[str, object]) -> str:
    """Boxes with a name and a value each."""
    boxes = "\n".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in values.items())
    return f'<dl class="facts">\n{boxes}\n</dl>'


def table(caption: str, label: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table of HTML that can be scrolled; a row begins with its name."""
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
    """HTML that is folded away."""
    return f"<details><summary>{summary}</summary>\n{body}</details>"


def as_source(picture: bytes) -> str:
    """A picture as the source of an image."""
    kind = next(kind for begin, kind in KINDS.items() if picture.startswith(begin))
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"
