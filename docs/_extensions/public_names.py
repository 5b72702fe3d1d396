"""The index of the reference, grouped as `clampz.__all__` groups its names, and names in text that link to it."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import clampz as cz

# Modules that users know beside the names of the package, and the group that each is shown in.
MODULES = {"pictures": ["plotting"]}


def groups() -> Iterator[tuple[str, list[str]]]:
    """The comments inside `__all__`, each with the names that follow it."""
    text = Path(cz.__file__).read_text(encoding="utf-8").partition("__all__ = [")[2]
    for title, block in re.findall(r"^    # (.+)\n((?:    \".+\",\n)+)", text, re.MULTILINE):
        yield title, re.findall(r'"(.+)"', block) + MODULES.get(title, [])


def write_pages(folder: Path) -> None:
    """An index, and a page for each group, from which autosummary makes a page for every name."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("clampz.*.rst"):  # names may have gone since the last time
        path.unlink()
    index = _heading("Reference", "=")
    index += "Every public name, as ``import clampz as cz`` has it.  Types are explained among :doc:`/words`.\n"
    pages = []
    for title, names in groups():
        title, page = title[0].upper() + title[1:], title.replace(" ", "-")
        listed = "   :nosignatures:\n\n" + "".join(f"   ~clampz.{name}\n" for name in names)
        _write(folder / f"{page}.rst", f"{_heading(title, '=')}.. autosummary::\n   :toctree:\n{listed}")
        index += f"\n:doc:`{title} <{page}>`\n\n.. autosummary::\n{listed}"
        pages.append(page)
    listed = "".join(f"   {page}\n" for page in pages)
    _write(folder / "index.rst", f"{index}\n.. toctree::\n   :hidden:\n\n{listed}   /words\n")


def _write(path: Path, text: str) -> None:
    """A file that says the same already is left alone, so that nothing is made again for it."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n\n"


def file_names() -> dict[str, str]:
    """Names of pages that would differ from others in capitals alone, which some file systems cannot keep apart."""
    lower = {name for name in cz.__all__ if name.islower()}
    return {f"clampz.{name}": f"clampz.{name}-class" for name in cz.__all__ if name.lower() in lower - {name}}


def target(name: str) -> str | None:
    """What a name in text stands for in the reference: a public name, or a member of a public class."""
    first, *members = name.removeprefix("clampz.").removeprefix("cz.").removesuffix("()").split(".")
    if first not in cz.__all__ or len(members) > 1 or (first == name and first in ATTRIBUTES):
        return None
    if not members:
        return f"clampz.{first}"
    member = inspect.getattr_static(getattr(cz, first), members[0], None)
    described = inspect.isroutine(member) or isinstance(member, property) or type(member).__name__ == "cached_property"
    return f"clampz.{first}.{members[0]}" if described and inspect.getdoc(member) else f"clampz.{first}"


def _attributes() -> frozenset[str]:
    """Lower-case words that are members of a public class: as `bound`, which an estimate has and the package too."""
    classes = [getattr(cz, name) for name in cz.__all__ if inspect.isclass(getattr(cz, name))]
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


def leave_out_laws(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """What a package may import is for those who change it."""
    laws = [k for k, line in enumerate(lines) if what == "module" and line.startswith("May import:")]
    for first in laws:
        del lines[first : next((k for k in range(first, len(lines)) if not lines[k]), len(lines))]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_role("name", name_role)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", leave_out_laws)
    return {"parallel_read_safe": True}
