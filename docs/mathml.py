"""Formulas as MathML, which browsers draw by themselves: the pages need no script and no network."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

# Commands that docutils does not know, by one that it knows.
SYNONYMS = {r"\dots": r"\ldots"}
# Bars that browsers would stretch to the height of a sum beside them.
BARS = "‖|∣"


def _render(node: nodes.math | nodes.math_block, as_block: bool) -> str:
    source = node.astext()
    for command, known in SYNONYMS.items():
        source = source.replace(command, known)
    try:
        drawn = str(tex2mathml(source, as_block=as_block))
    except MathError as error:
        # A warning, and so an error in `make docs`, rather than a page with a hole.
        logger.warning("cannot render the formula %r: %s", source, error, location=node)
        return ""
    for bar in BARS:
        drawn = drawn.replace(f"<mo>{bar}</mo>", f'<mo stretchy="false">{bar}</mo>')
    return drawn


def _visit_inline(translator, node):
    translator.body.append(_render(node, as_block=False))
    raise nodes.SkipNode


def _visit_block(translator, node):
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(_render(node, as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
