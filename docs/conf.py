"""Sphinx configuration: `pip install ".[docs]" && sphinx-build -W docs docs/_build`."""

project = "bandit-envs"
author = "The bandit-envs developers"
copyright = "2026, the bandit-envs developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "bandit-envs"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False


def _plain(app, what, name, obj, options, lines):
    """Docstrings are plain text with Google sections: |x| is an absolute value, a module's head is for its readers."""
    lines[:] = [] if what == "module" else [line.replace("|", r"\|").replace("*", r"\*") for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", _plain, priority=900)
