"""The results of a session, of all arms: a table, and a figure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .fold import State
from .statements import contradictions
from .tables import arms_table, comparison_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

LOOKS = {"in": ("#009E73", "o"), "out": ("#D55E00", "X"), "open": ("#000000", "s")}  # the colours and markers of arms
BEYOND = 0.75  # of the span of the means, so far the axis goes on beyond them at most: of longer intervals are arrows
MOST_INCHES, MOST_LETTERS = 400.0, 40  # of a figure, and of a name


def compares(state: State) -> bool:
    """Whether there is a control that arms are compared with."""
    return state.control_arm is not None and (state.run.certifier is not None or state.strata is not None)


def results_table(state: State) -> DataFrame:
    """See `Session.results`."""
    table = arms_table(state)
    if not compares(state) or not state.count:
        return table
    found = comparison_table(state, "familywise").drop(columns=["pulls", "mean"])
    both = table.merge(found.rename(columns={one: f"difference_{one}" for one in ("low", "high")}), "left", "name")
    both.attrs = table.attrs | found.attrs
    return both


def drawn(state: State, boundary: float | None) -> Figure:
    """See `Session.plot`."""
    from matplotlib.figure import Figure

    table, lower, unit = results_table(state), state.setup.own is not None, state.setup.wishes.get("unit")
    control, what, sides, problem = table.attrs.get("control"), "mean", ["low", "high"], cast("Any", state.run.problem)
    if control:
        what, own = "odds" if "odds" in table else "difference", table[table["name"] == control].filter(like="mean")
        sides, (a, b) = [f"{what}_low", f"{what}_high"], problem.spaces[0]
        boundary = 0.0 if what == "odds" else float((a - 1) * own.iloc[0, 0] + b) * (-1) ** lower
    elif state.setup.task.D > 1 or state.blocks:
        raise ValueError("a figure shows one mean of each arm: not of several dimensions, nor with blocks")
    table = table[~table["withdrawn"] & (table["name"] != control)]
    table = table.sort_values(what, ascending=not lower, na_position="first")  # from below
    scale, rows = np.log2 if what == "odds" else np.array, np.arange(len(table))
    with np.errstate(divide="ignore"):
        mean, ends = scale(table[what].to_numpy(np.float64)), scale(table[sides].to_numpy(np.float64))
    if (unknown := np.isnan(mean)).all():
        raise ValueError(f"no {what} is known yet: there is nothing to draw")
    ends[unknown] = np.nan
    core = np.append(mean[np.isfinite(mean)], [] if boundary is None else boundary)
    every = np.append(core, ends[np.isfinite(ends)])
    span = BEYOND * np.ptp(core) or np.ptp(every) or 1.0
    left, right = max(every.min(), core.min() - span), min(every.max(), core.max() + span)
    figure = Figure(figsize=(7.2, min(1.6 + 0.22 * len(table), MOST_INCHES)), layout="constrained")
    axes, claims = figure.subplots(), bool(table["claim"].all())
    kinds = table["claim"].to_numpy() if claims else np.where(table["answer"], "in", "out")
    for kind, (colour, marker) in LOOKS.items():
        if len(own := rows[kinds == kind]):
            label = kind if kind == "open" else f"{kind}{' for certain' if claims else ' as of now'}"
            axes.hlines(own, *ends[own].clip(left, right).T, color=colour, alpha=0.45, linewidth=3)
            axes.plot(mean[own], own, marker, color=colour, label=label)
            for over, end, arrow in ((ends[:, 0] < left, left, "<"), (ends[:, 1] > right, right, ">")):
                axes.plot(np.full(sum(over[own]), end), own[over[own]], arrow, color=colour)
    if boundary is not None:
        axes.axvline(boundary, color="#000000", linestyle=(0, (5, 3)), linewidth=1, label="boundary")
    of = f"{what}{f' against {control}' if control else ''}{f' ({unit})' if unit else ''}{', lower is better' * lower}"
    if what == "odds":
        axes.xaxis.set_major_formatter(lambda x, _: f"{2.0**x:.3g}")
    axes.set_xlabel(f"{of}, with {100 - 100 * table.attrs['level']:.4g} % intervals of all", parse_math=False)
    axes.set_title(textwrap.fill(" ".join(contradictions(state)), 90), fontsize=9, parse_math=False)
    names = [name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…" for name in table["name"]]
    axes.set_yticks(rows, names, parse_math=False)
    axes.set_ylim(-0.7, len(table) - 0.3)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure
