"""Commands of the shell: what each says of itself under `--help`, as sections of a page; and cells that run some."""

import os
from unittest.mock import patch

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from clampz.cli import make_parser

MAGIC = "%%bash\n"


class CommandHelp(SphinxDirective):
    """A section for each command, with its help."""

    def run(self) -> list[nodes.Node]:
        with patch.dict(os.environ, {"COLUMNS": "88", "NO_COLOR": "1"}):
            (commands,) = (action for action in make_parser()._actions if action.dest == "command")
            return [self._section(name, parser.format_help()) for name, parser in commands.choices.items()]

    def _section(self, name: str, text: str) -> nodes.Node:
        section = nodes.section("", nodes.title("", name), ids=[f"clampz-{name}"], names=[f"clampz {name}"])
        section += nodes.literal_block(text, text, language="text")
        self.state.document.note_implicit_target(section)
        return section


def without_magic(app: Sphinx, document: nodes.document) -> None:
    """Cells of commands begin with a line for the notebook, which is not for people."""
    for block in document.findall(nodes.literal_block):
        if block.astext().startswith(MAGIC):
            text = block.astext().removeprefix(MAGIC)
            block.replace_self(nodes.literal_block(text, text, language="sh"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    app.connect("doctree-read", without_magic)
    return {"parallel_read_safe": True}
