"""Formulas as MathML, which browsers draw themselves: the pages need no script and no network."""

from docutils.nodes import SkipNode
from latex2mathml.converter import convert


def inline(translator, node):
    translator.body.append(convert(node.astext()))
    raise SkipNode


def display(translator, node):
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def setup(app):
    """Offer this renderer of formulas to HTML."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True}
