"""Mathematics as MathML, which browsers show by themselves: no script, and nothing to fetch."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOG = logging.getLogger(__name__)


def visit_math(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_shown(node, as_block=False))
    raise nodes.SkipNode


def visit_math_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_shown(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _shown(node: nodes.Node, as_block: bool) -> str:
    try:
        shown: str = tex2mathml(node.astext(), as_block=as_block)
        # browsers leave no room where a function is applied
        return re.sub(r"(<mi>log</mi>\s*)<mo>&ApplyFunction;</mo>", r'\1<mspace width="0.17em"/>', shown)
    except MathError as error:
        LOG.warning("%s: %s", error, node.astext(), location=node)
        return ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True}
