"""Evaluations as text: a table of results, and a comparison of every agent with one of them, also as LaTeX."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from .rows import Evaluated, common_budget, main_metric

MOST_ROWS = 60  # beyond, only the last row of each agent is shown
ROUNDING = 1e-12  # of sums of differences: smaller ones are shown as 0
LEAST_WIDTH = 15  # of a wrapped column


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), width: int | None = None
) -> str:
    """Text columns under their heads; those in `right` are flush right.

    The last column is wrapped so that lines are no longer than `width`, if possible; None: it is not wrapped.
    """
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    if width is not None:
        others = sum(widths[:-1]) + 2 * (len(head) - 1)
        widths[-1] = min(widths[-1], max(LEAST_WIDTH, width - others))
    lines = []
    for row in (head, ["─" * n for n in widths], *rows):
        *cells, last = (
            text.rjust(n) if i in right else text.ljust(n) for i, (text, n) in enumerate(zip(row, widths, strict=True))
        )
        start = "".join(f"{cell}  " for cell in cells)
        for part in textwrap.wrap(last, widths[-1]) or [""]:
            lines.append((start + part.rjust(widths[-1]) if len(head) - 1 in right else start + part).rstrip())
            start = " " * len(start)
    return "\n".join(lines)


def _count(x: Any) -> str:
    """A number of pulls, without decimals where it is whole."""
    return f"{x:,.0f}" if float(x).is_integer() or abs(x) >= 1e4 else f"{x:,.1f}"


def _short(x: float) -> str:
    """A number with four digits; "-" for NaN."""
    return "-" if math.isnan(x) else f"{x:,.0f}" if abs(x) >= 1e4 else f"{x:.4g}"


def interval(mean: float, low: float, high: float) -> str:
    """A mean with its interval, if it has one."""
    return f"{mean:.4f}" + (f" [{low:.4f}, {high:.4f}]" if low <= high else "")


def counted(mean: float, low: float, high: float) -> str:
    """A mean number of pulls with its interval, if it has one."""
    return _count(mean) + (f" [{low:,.0f}, {high:,.0f}]" if low <= high else "")


def p_text(p: float) -> str:
    """A p-value with three decimals."""
    return "< 0.001" if p < 1e-3 else f"{p:.3f}"


def signed(x: float) -> str:
    """A difference with four digits; a rounding error is 0."""
    return "+0" if abs(x) < ROUNDING else f"{x:+.4g}"


def signed_interval(difference: float, low: float, high: float, p: float) -> str:
    """A difference with its interval, if it has one, and p-value."""
    return f"{difference:+.4f}" + (f" [{low:+.4f}, {high:+.4f}]" if low <= high else "") + f" (p {p_text(p)})"


def headline(evaluation: Evaluated) -> str:
    """One line: the problem with its parameters, the arms, and what is the same in all rows."""
    run, settings = evaluation.runs[0], evaluation.settings
    instance = settings.get("env_kwargs", {}).get("instance")
    of = f" of {instance}" if isinstance(instance, str) else ""
    parameters = ", ".join(f"{name}={value!r:.40}" for name, value in run.task.parameters.items())
    parts = [f"{run.task.problem}({parameters})", f"{run.task.K:,} arms{of}"]
    if run.task.delta is not None and not run.by_delta:
        parts.append(f"delta {run.task.delta:g}")
    episodes = f"{run.episodes:,} episodes of seed {settings.get('seed')}"
    return " · ".join([*parts, *common_budget(evaluation.runs), episodes])


class Columns(NamedTuple):
    """The rows of `Evaluation.summary()` as text, with the columns that matter."""

    head: list[str]
    rows: list[list[str]]
    right: list[int]  # numbers of the columns that are flush right
    notes: list[str]  # sentences on the rows, without a full stop


def columns_of(
    evaluation: Evaluated, metric: str | None = None, level: float = 0.95, most: float = MOST_ROWS
) -> Columns:
    """The columns that matter of an evaluation; without a delta not the error rate, unless that is the metric.

    Beside the score there is a metric, None: the problem's first. Of more than `most` rows each agent's last is shown.
    """
    rows: list[dict[str, Any]] = evaluation.summary(level).to_dict("records")  # type: ignore[assignment]
    several = [key for key in ("budget", "at") if len({str(row[key]) for row in rows}) > 1]
    several += ["delta"] * ("delta" in rows[0])
    notes = []
    if len(rows) > most:
        notes.append(f"the last of {len(rows) // len(evaluation.agents)} rows of each agent")
        rows = list({row["agent"]: row for row in rows}.values())
    metric_names = evaluation.runs[0].names[2:]
    shown = metric if metric in metric_names else next(iter(metric_names), None)
    columns: list[tuple[str, bool, Any]] = [("agent", False, lambda row: row["agent"])]
    columns += [(key, True, lambda row, key=key: (_short if key == "delta" else _count)(row[key])) for key in several]
    per_cent = f"{100 * level:.4g} %"
    if any(row["total_pulls_low"] < row["total_pulls_high"] for row in rows):
        pulls = "total_pulls", "total_pulls_low", "total_pulls_high"
        columns.append((f"pulls [{per_cent}]", True, lambda row: counted(*(row[name] for name in pulls))))
    elif "at" not in several or any(row["at"] != row["total_pulls"] for row in rows):
        columns.append(("pulls", True, lambda row: _count(row["total_pulls"])))
    if metric in ("error_rate", "error", "correct") or "verdict" in rows[0]:
        rate = "error_rate", "error_low", "error_high"
        columns.append((f"error rate [{per_cent}]", True, lambda row: interval(*(row[name] for name in rate))))
    if "verdict" in rows[0]:
        columns.append(("verdict", False, lambda row: row["verdict"]))
    scores = "score", "score_low", "score_high"
    columns.append((f"score [{per_cent}]", True, lambda row: interval(*(row[name] for name in scores))))
    if shown is not None:
        columns.append((shown.replace("_", " "), True, lambda row: _short(row[shown])))
    if any(row["truncated"] > 0 for row in rows):
        columns.append(("truncated", True, lambda row: f"{row['truncated']:.4f}"))
    if any(row.get("certified", 0) > 0 for row in rows):
        columns.append(("certified", True, lambda row: _short(row.get("certified", math.nan))))
    if not all(math.isnan(row["lower_bound_ratio"]) for row in rows):
        columns.append(("x lower bound", True, lambda row: _short(row["lower_bound_ratio"])))
    drawn = {run.agent for run in evaluation.runs if run.deterministic is False}
    if drawn:  # models that have taken their most probable action are the usual case, of which nothing is said
        columns.append(("actions", False, lambda row: "drawn" if row["agent"] in drawn else "-"))
    columns.append(("M pulls/s", True, lambda row: _short(row["pulls_per_second"] / 1e6)))
    if evaluation.settings.get("look") is not None:
        notes.append("intervals allow for having looked more than once, and are wider for it")
    if evaluation.settings.get("rows") == "none":
        notes.append("no rows were kept: intervals of means are normal ones")
    cells = [[text(row) for _, _, text in columns] for row in rows]
    return Columns([name for name, _, _ in columns], cells, [i for i, one in enumerate(columns) if one[1]], notes)


def chosen_columns(evaluation: Evaluated, names: Sequence[str], level: float = 0.95) -> Columns:
    """Some columns of `Evaluation.summary()`, each quantity with its interval where it has one."""
    evaluation.summary(level, columns=names)  # refuses those that are not there
    rows: list[dict[str, object]] = evaluation.summary(level).to_dict("records")  # type: ignore[assignment]
    limits = {name: [f"{name.removesuffix('_rate')}_{end}" for end in ("low", "high")] for name in names}
    wide = {name for name in names if limits[name][0] in rows[0]}
    words = [name for name in names if isinstance(rows[0][name], str)]

    def text(row: dict[str, Any], name: str) -> str:
        if name in words or isinstance(row[name], bool):
            return str(row[name])
        if not isinstance(row[name], (int, float)):  # missing
            return "-"
        if name in wide:
            form = counted if name == "total_pulls" else interval
            return form(row[name], *(row[limit] for limit in limits[name]))
        return _count(row[name]) if isinstance(row[name], int) else _short(row[name])

    head = [name.replace("_", " ") + (f" [{100 * level:.4g} %]" if name in wide else "") for name in names]
    right = [i for i, name in enumerate(names) if name not in words]
    return Columns(head, [[text(row, name) for name in names] for row in rows], right, [])


def summary(evaluation: Evaluated, metric: str | None = None, level: float = 0.95) -> str:
    """The table of `columns_of` as text, below what is the same in all rows."""
    shown = columns_of(evaluation, metric, level)
    notes = "".join(f"\n({note})" for note in shown.notes)
    return f"{headline(evaluation)}\n\n{table(shown.head, shown.rows, right=shown.right)}{notes}"


def differences(
    evaluation: Evaluated, metric: str | None = None, reference: str | None = None, level: float = 0.95
) -> Columns:
    """The paired differences of all other agents to one of them, at the last row of each; without rows for one agent.

    The reference is the first, unless one is named: one that is chosen by its result would look better than it is.
    """
    first = evaluation.agents[0] if reference is None else reference
    metric = main_metric(evaluation.runs) if metric is None else metric
    rows = []
    for agent in evaluation.agents:
        if agent != first:
            d = evaluation.compare(agent, first, metric, level=level)
            limits = f"[{signed(d.low)}, {signed(d.high)}]" if d.low <= d.high else ""
            rows.append([agent, signed(d.difference), limits, p_text(d.p_value)])
    last = [run for run in evaluation.runs if run.agent == first][-1]
    budget, at = last.cells[-1]
    pulls = f" at {at:,} pulls" if at is not None else f" at budget {budget:,}" if budget is not None else ""
    pulls += f" at delta {last.task.delta:g}" if last.by_delta else ""
    head = ["agent", f"{metric.replace('_', ' ')} less that of {first}", f"[{100 * level:.4g} %]", "p"]
    return Columns(head, rows, [1, 2, 3], [f"Paired differences on the same episodes{pulls}"])


def comparison(
    evaluation: Evaluated, metric: str | None = None, reference: str | None = None, level: float = 0.95
) -> str:
    """The table of `differences` as text; empty for a single agent.

    Args:
        metric: one of error_rate, score, total_pulls and the problem's own, to show, compare and draw. None: the score,
            or where there is a delta the error rate, or the pulls of agents that stop by themselves.
        reference: the agent that the others are compared with; None: the first.
    """
    shown = differences(evaluation, metric, reference, level)
    return f"{shown.notes[0]}:\n\n{table(shown.head, shown.rows, right=shown.right)}" if shown.rows else ""


def report(evaluation: Evaluated, metric: str | None = None, reference: str | None = None, level: float = 0.95) -> str:
    """`summary` and `comparison` below each other."""
    parts = summary(evaluation, metric, level), comparison(evaluation, metric, reference, level)
    return "\n\n".join(filter(None, parts))


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
