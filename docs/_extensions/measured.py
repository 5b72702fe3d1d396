"""What benchmarks printed: a section of a page for each file of a folder, whose first line says when and where."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Measured(SphinxDirective):
    """A section for each `.txt` file of the folder named."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir, self.arguments[0])
        self.env.note_dependency(str(folder))
        return [self._section(path) for path in sorted(folder.glob("*.txt"))]

    def _section(self, path: Path) -> nodes.Node:
        self.env.note_dependency(str(path))
        when, _, text = path.read_text(encoding="utf-8").partition("\n")
        section = nodes.section("", nodes.title("", path.stem), ids=[f"measured-{path.stem}"], names=[path.name])
        section += nodes.paragraph("", when)
        section += nodes.literal_block(text, text.strip("\n"), language="text")
        self.state.document.note_implicit_target(section)
        return section


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("measured", Measured)
    return {"parallel_read_safe": True}
