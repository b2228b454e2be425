"""Sphinx configuration: `pip install ".[docs]" && sphinx-build -W docs docs/_build`."""

import re

from docutils import nodes
from latex2mathml.converter import convert

project = "bandit-envs"
author = "The bandit-envs developers"
copyright = "2026, the bandit-envs developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = [
    "_build",
    "figures/claims.md",
    "figures/*/*.md",
    "front/*.md",
    "learned-results/*.md",
    "model-selection/*.md",
    "real-tables/*.md",
    "which-agent/*.md",
]  # parts of pages
html_extra_path = ["races"]  # pages of their own, which docs/pictures.md shows
html_theme = "furo"
html_title = "bandit-envs"
html_static_path = ["_static"]
html_css_files = ["front.css"]
html_math_renderer = "mathml"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False

# The name of a function, without an index, that is followed by a letter or a number rather than by a bracket.
FUNCTION = re.compile(r"(?<!<msub>)(?<!<munder>)(?<!<msup>)(<m[io]>(?:ln|log|max|min|exp)</m[io]>)(?=<m(?!o[ >]))")


def mathml(formula, displayed):
    """A formula as MathML, which browsers draw themselves, without a script or the network."""
    made = convert(formula, display="block" if displayed else "inline")
    return FUNCTION.sub(r'\1<mspace width="0.17em"/>', made)


def _inline(self, node):
    self.body.append(mathml(node.astext(), False))
    raise nodes.SkipNode


def _displayed(self, node):
    self.body.append(f'<div class="math">{mathml(node.astext(), True)}</div>')
    raise nodes.SkipNode


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text with Google sections: |x| is an absolute value, a module's head is for its readers.

    What Napoleon has escaped already, as the stars of **parameters, is left as it is.
    """
    lines[:] = [] if what == "module" else [re.sub(r"(?<!\\)([*|])", r"\\\1", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _plain, priority=900)
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
