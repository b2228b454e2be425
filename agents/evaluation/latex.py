"""Evaluations as tables of LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .report import chosen_columns, columns_of
from .rows import Evaluated

# What LaTeX takes as a command, or would print as something else. A bracket behind a line's end would be an argument.
MEANT = {
    "\\": r"\textbackslash{}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "[": "{[}",
    "]": "{]}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\N{MINUS SIGN}": "$-$",
}
MATH = re.compile(r"\$(?=[^$]*[\\^_])[^$\s](?:[^$]*[^$\s])?\$(?!\d)")  # as $\varepsilon$, but no prices
UNSEEN = ("M pulls/s",)  # columns that depend on the machine


def escaped(text: str) -> str:
    """Text as LaTeX prints it; what is math already, as "$k^2$", stays."""
    return re.sub("|".join([MATH.pattern, *map(re.escape, MEANT)]), lambda found: MEANT.get(found[0], found[0]), text)


def latex(
    evaluation: Evaluated,
    metric: str | None,
    level: float,
    columns: Sequence[str] | None,
    caption: str | None,
    label: str | None,
) -> str:
    """The table that the command line prints, or some columns of `summary()`, as LaTeX; see `Evaluation.to_latex`."""
    if columns is None:
        shown = columns_of(evaluation, metric, level, most=math.inf)
    elif not columns:
        raise ValueError(f"columns must name one column of summary() or more, got {columns!r}")
    else:
        shown = chosen_columns(evaluation, columns, level)
    kept = [i for i, name in enumerate(shown.head) if name not in UNSEEN]
    form = "".join("r" if i in shown.right else "l" for i in kept)
    rows = [" & ".join(escaped(row[i]) for i in kept) + r" \\" for row in (shown.head, *shown.rows)]
    begin, end = rf"\begin{{tabular}}{{{form}}}", r"\end{tabular}"
    lines = [begin, r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule", end]
    if caption is not None or label is not None:
        captions = [rf"\caption{{{escaped(caption)}}}"] if caption is not None else []
        captions += [rf"\label{{{label}}}"] if label is not None else []
        lines = [r"\begin{table}", r"\centering", *lines, *captions, r"\end{table}"]
    return "\n".join(lines) + "\n"
