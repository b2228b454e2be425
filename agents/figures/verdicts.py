"""The verdicts on all claims of a figure, corrected for their number, and overall verdicts.

One principle for all kinds of claims: every claim has an interval at every point, and with m of them in a figure, each
is widened from the level 1 - a to the level 1 - a / m, so that all m hold together with probability 1 - a (Bonferroni,
for dependent ones too). A verdict is decided where the wide interval decides it. An interval is widened as the normal
one is: its limits move away from the estimate by the ratio of the normal quantiles. The verdict by the interval alone
is kept beside it. What tests several sentences is counted once; numbers without chance, and a paper's own tests, are
not counted. Where a paper's test finds what the paper says is not there, with a p-value that one of m tests may well
have by chance (p m of at least .05), the verdict is "open".

Where there is no interval the verdict is "open", and in a single episode also that of claims which have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.optional import pandas
from .claims import AnyClaim, Row
from .declared import Figure
from .panels import Result, Swept

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("yes", "open", "no")
COLUMNS = (
    *("quote", "panel", "claim", "x", "episodes", "trials"),
    *("estimate", "low", "high", "p_value", "alone", "low_together", "high_together", "verdict"),
)
KEYS = ("quote", "panel", "claim")


def verdicts(figure: Figure, results: Mapping[str, Result], level: float = 0.95) -> pd.DataFrame:
    """One row per claim and point, in the order of the figure; `results` by the titles of all of its panels.

    Columns: quote (its name), panel, claim, x, episodes, trials (of the paper), estimate, its interval low to high at
    this level, p_value (NaN: does not apply), the verdict by them `alone`; low_together to high_together, the interval
    that holds together with all others of the figure at this level, and the `verdict` by it.
    """
    from scipy.special import ndtri

    panels: dict[str, object] = {panel.title: panel for panel in figure.panels}
    found: list[tuple[AnyClaim, dict[str, Any]]] = []
    tested: dict[AnyClaim, list[Row]] = {}  # what tests several sentences is measured once
    for quote in figure.quotes:
        for claim in quote.claims:
            panel, result = panels[claim.panel], results[claim.panel]
            head: dict[str, Any] = {"quote": quote.name, "panel": claim.panel, "claim": claim.text}
            trials = getattr(panel, "trials", None)  # None: as many as the panel's own episodes, where it has some
            one: Any = next(iter(result.evaluations.values())) if isinstance(result, Swept) else result
            head |= {"episodes": float(one.settings.get("episodes", math.nan))}  # NaN: there is no chance in them
            head |= {"trials": getattr(panel, "episodes", math.nan) if trials is None else trials}
            blind = {"verdict": "open"} if head["episodes"] < 2 and not claim.widened else {}
            if claim not in tested:
                tested[claim] = claim.test(panel, result, level)
            found += [(claim, head | row | blind) for row in tested[claim]]
    tail, table = (1 - level) / 2, pandas().DataFrame([row for _, row in found], columns=list(COLUMNS))
    m = max(1, compared(figure, table))
    factor = float(ndtri(tail / m) / ndtri(tail))
    for claim, row in found:
        row["alone"] = row["verdict"]
        low, high, estimate = row["low"], row["high"], row["estimate"]
        if claim.widened:
            low, high = (x if math.isinf(x) else estimate + factor * (x - estimate) for x in (low, high))
        if claim.widened or row["verdict"] == "no":  # the others stay as they are: "open" in a single episode
            row["verdict"] = claim.judge_among(row | {"low": low, "high": high}, m)
        row |= {"low_together": low, "high_together": high}
    judged: pd.DataFrame = pandas().DataFrame([row for _, row in found], columns=list(COLUMNS))
    return judged


def compared(figure: Figure, table: pd.DataFrame) -> int:
    """The number of comparisons of a figure: claims by intervals at their points, each counted once."""
    widened = {(one.panel, one.text) for quote in figure.quotes for one in quote.claims if one.widened}
    keys = table[["panel", "claim", "x"]].drop_duplicates().itertuples(index=False, name=None)
    return sum((panel, claim) in widened for panel, claim, _ in keys)


def counted(counts: Sequence[int]) -> str:
    """At how many points a claim has which verdict, in words."""
    return ", ".join(f"{n} {name}" for name, n in zip(VERDICTS, counts, strict=True) if n)


def overall(parts: Sequence[Sequence[int]]) -> str:
    """What the verdicts at all points of all claims of a sentence add up to: it is worth what its weakest claim is.

    "holds": no point refutes a claim, and at least half of the points of each confirm it. "open": no point refutes a
    claim, and of one fewer confirm it. "mixed": some points confirm a claim, and others refute one. "does not hold":
    some refute a claim, and none confirms any.

    Args:
        parts: of each claim, its points with the verdicts "yes", "open" and "no".
    """
    if any(no for _, _, no in parts):
        return "mixed" if any(yes for yes, _, _ in parts) else "does not hold"
    return "holds" if all(yes > 0 and yes >= open_ for yes, open_, _ in parts) else "open"


def scorecard(table: pd.DataFrame, by: Sequence[str] = KEYS) -> pd.DataFrame:
    """Per claim: at how many points it holds (yes), is open, does not hold (no), and what they add up to.

    The verdict is by the intervals that hold together, that in the column `alone` by each interval on its own. `table`
    is what `verdicts` has returned; `by` are the columns that name a claim, ["quote"] for quotations.
    """
    rows = []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        claims = [claim for _, claim in group.groupby(["panel", "claim"], sort=False)]
        parts = {how: [_counts(claim[how]) for claim in claims] for how in ("verdict", "alone")}
        row = dict(zip(by, key, strict=True)) | dict(zip(VERDICTS, _counts(group["verdict"]), strict=True))
        row |= {how: overall(counts) for how, counts in parts.items()}
        row |= {"episodes": group["episodes"].min(), "trials": group["trials"].max()}
        row |= {"least": group["estimate"].min(), "most": group["estimate"].max()}
        row |= {"low": group["low_together"].min(), "high": group["high_together"].max(), "points": len(group)}
        rows.append(row)
    columns = [*by, *VERDICTS, "verdict", "alone", "episodes", "trials", "least", "most", "low", "high", "points"]
    card: pd.DataFrame = pandas().DataFrame(rows, columns=columns)
    return card


def _counts(verdicts: pd.Series) -> list[int]:
    return [int((verdicts == name).sum()) for name in VERDICTS]
