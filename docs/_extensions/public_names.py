"""The index of the reference, grouped as `clampz.__all__` groups its names, and names in text that link to it."""

import inspect
import re
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import clampz as cz

# Modules that users know beside the names of the package, and the group that each is shown in.
MODULES = {"pictures": ["plotting"]}
# Modules whose names are public too, a group and a page each.
NAMESPACES = ("results", "options", "errors")


def _members(module: str) -> dict[str, str]:
    return {name: f"{module}.{name}" for name in getattr(cz, module).__all__}


# Every public name, as text has it, and its place in the package.
PUBLIC = {name: name for name in cz.__all__} | {k: v for module in NAMESPACES for k, v in _members(module).items()}
OBJECTS = {place: attrgetter(place)(cz) for place in PUBLIC.values()}


def groups() -> Iterator[tuple[str, list[str]]]:
    """Yield the comments inside `__all__` with the names that follow, and modules of names with theirs."""
    text = Path(cz.__file__).read_text(encoding="utf-8").partition("__all__ = [")[2]
    for title, block in re.findall(r"^    # (.+)\n((?:    \".+\",\n)+)", text, re.MULTILINE):
        names = [name for name in re.findall(r'"(.+)"', block) if name not in NAMESPACES]
        if names:
            yield title, names + MODULES.get(title, [])
    yield from ((module, list(_members(module).values())) for module in NAMESPACES)


def write_pages(folder: Path) -> None:
    """Write an index, and a page for each group, from which autosummary makes a page for every name."""
    folder.mkdir(exist_ok=True)
    index = _heading("Reference", "=")
    index += "Every public name, as ``import clampz as cz`` has it.  Types are explained among :doc:`/words`.\n"
    pages = []
    for title, names in groups():
        title, page = title[0].upper() + title[1:], title.replace(" ", "-")
        module = page if page in NAMESPACES else ""
        about = f".. module:: clampz.{module}\n\n{inspect.getdoc(getattr(cz, module))}\n\n" if module else ""
        short = "".join(f"   {name.removeprefix(f'{module}.') if module else f'~clampz.{name}'}\n" for name in names)
        head, kind = f"{_heading(title, '=')}{about}", "   :nosignatures:\n\n"
        _write(folder / f"{page}.rst", f"{head}.. autosummary::\n   :toctree:\n{kind}{short}")
        listed = "".join(f"   ~clampz.{name}\n" for name in names)
        index += f"\n:doc:`{title} <{page}>`\n\n.. autosummary::\n{kind}{listed}"
        pages.append(page)
    listed = "".join(f"   {page}\n" for page in pages)
    _write(folder / "index.rst", f"{index}\n.. toctree::\n   :hidden:\n\n{listed}   /words\n")
    for path in folder.glob("*.rst"):  # names and groups may have gone since the last time
        if path.stem not in {"index", *pages}:
            path.unlink()


def _write(path: Path, text: str) -> None:
    """Write a file, unless it has this text already: then nothing is built again for it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def target(name: str) -> str | None:
    """Return the target of a name in text: a public name, or a member of a public class; None for other names."""
    path = name.removeprefix("clampz.").removeprefix("cz.").removesuffix("()")
    first, *members = re.sub(rf"^({'|'.join(NAMESPACES)})\.", "", path).split(".")
    if first not in PUBLIC or len(members) > 1 or (first == name and first in ATTRIBUTES):
        return None
    place = PUBLIC[first]
    if not members:
        return f"clampz.{place}"
    member = inspect.getattr_static(OBJECTS[place], members[0], None)
    described = inspect.isroutine(member) or isinstance(member, property) or type(member).__name__ == "cached_property"
    return f"clampz.{place}.{members[0]}" if described and inspect.getdoc(member) else f"clampz.{place}"


def _attributes() -> frozenset[str]:
    """Return the members of public classes: `bound` is one of an estimate, and a name of the package too."""
    classes = [found for found in OBJECTS.values() if inspect.isclass(found)]
    return frozenset(word for each in classes for word in (*dir(each), *getattr(each, "__annotations__", ())))


ATTRIBUTES = _attributes()


def name_role(
    role: str, source: str, text: str, line: int, inliner: Inliner, options: object = None, content: object = ()
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Code, and a link where it is a public name."""
    code = nodes.literal(source, text, classes=["xref", "py"])
    if (found := target(text)) is None:
        return [nodes.literal(source, text)], []
    reference = pending_xref(
        source, code, refdomain="py", reftype="obj", reftarget=found, refdoc=inliner.document.settings.env.docname
    )
    return [reference], []


def skip(app: Sphinx, what: str, name: str, member: object, skipped: bool, options: object) -> bool | None:
    """Fields of named tuples: all that Python has to say of them is their number."""
    return True if type(member).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("name", name_role)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
