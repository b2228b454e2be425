"""The documentation of a figure, as Markdown that its pages include. It is made from the tables alone.

The tables are taken as their files hold them, so that the same files give the same text.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.files import write_alone
from ..core.optional import pandas
from ..evaluation.report import table as text_table
from .catalogue import PAPERS
from .claims import Quote
from .declared import Figure, Values
from .verdicts import VERDICTS, compared, counted, overall, scorecard

if TYPE_CHECKING:
    import pandas as pd

CLAIMS, VALUES, OVERVIEW = "claims.md", "values.md", "claims.md"  # the last one stands beside the folders of figures
POINTS = "points.csv"
FEWEST = 20  # episodes below which resampled intervals are too short
OPPOSED = ("mixed", "does not hold")  # verdicts of which a page says more


def read_table(file: object) -> pd.DataFrame:
    """A table of verdicts or points, from its file."""
    table: pd.DataFrame = pandas().read_csv(file, dtype={"quote": str})
    return table


def as_kept(table: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """The text of a table's file, with ten digits, and what is read from it."""
    text: str = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text, read_table(io.StringIO(text))


def number(x: float) -> str:
    """A number with three digits, or whole from a thousand on; "" for NaN."""
    if math.isnan(x):
        return ""
    return f"{x:,.0f}" if 1000 <= abs(x) < math.inf else f"{x:.3g}"


def span(row: Any) -> str:
    """The estimates of a claim, from the least to the most, and the range of their intervals."""
    least, most, low, high = (number(x) for x in (row.least, row.most, row.low, row.high))
    estimates = least if least == most else f"{least} to {most}"
    return estimates if not low or low == high == least else f"{estimates} [{low}, {high}]"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def quoted(quote: Quote) -> str:
    """A quotation, and how it is read; of a claim without words of the paper what it says."""
    if not quote.words:
        return f"{quote.claims[0].panel}: {quote.claims[0].text}"
    return f"“{quote.words}”" + (f" ({quote.reading})" if quote.reading else "")


def by_quote(figure: Figure, table: pd.DataFrame) -> Iterator[tuple[Quote, Any, list[Any]]]:
    """Per quotation of which there are verdicts: itself, its row of the scorecard, and those of its claims."""
    words = {quote.name: quote for quote in figure.quotes}
    claims = list(scorecard(table).itertuples())
    for row in scorecard(table, ["quote"]).itertuples():
        yield words[str(row.quote)], row, [claim for claim in claims if str(claim.quote) == str(row.quote)]


def counts_of(row: object) -> list[int]:
    """At how many points the verdict is yes, open, and no."""
    return [getattr(row, name) for name in VERDICTS]


def claims_text(figure: Figure, table: pd.DataFrame) -> str:
    """Every quotation of a figure with its verdict, and the claims that test it."""
    lines = [f"(claims-{figure.name})=", ""]
    if table.empty:
        return "\n".join([*lines, "The paper claims nothing of this figure that could be tested.", ""])
    lines += [_row(("the paper; what is tested", "holds / open / not", "verdict", "estimate [range of intervals]"))]
    lines += ["|---|---|---|---|"]
    for quote, row, claims in by_quote(figure, table):
        verdict = _verdict(quote, row)
        verdict += "" if row.alone == row.verdict else f"; without correction {row.alone}"
        lines.append(_row((f"**{quoted(quote)}**", " / ".join(map(str, counts_of(row))), verdict, "")))
        for one in claims:
            counts = " / ".join(map(str, counts_of(one)))
            lines.append(_row((f"{one.panel}: {one.claim}", counts, str(one.verdict), span(one))))
    text, m = _episodes_text(table), compared(figure, table)
    together = f"; {m} intervals, widened so that all of them hold together at 95 %" if m > 1 else ""
    lines += ["", f"{text[0].upper()}{text[1:]}{together}.", ""]
    return "\n".join(lines)


def _episodes_text(table: pd.DataFrame) -> str:
    """How many episodes there are, of how many trials of the paper."""
    pairs = table[["episodes", "trials"]].dropna(subset=["episodes"]).drop_duplicates()
    parts = [
        f"{episodes:,.0f} episodes"
        + ("" if episodes == trials else f" (the paper: {_trials(trials)})")
        + (", too few for their intervals to be trusted" if episodes < FEWEST else "")
        for episodes, trials in pairs.itertuples(index=False)
    ]
    return " and ".join(parts) if parts else "no episodes, as nothing here is due to chance"


def values_text(tables: Sequence[Values], points: pd.DataFrame) -> str:
    """The tables of numbers of a figure."""
    made = (values_table(one, points) for one in tables)
    lines = ([_row(head), "|" + "---|" * len(head), *map(_row, body)] for head, body in made)
    return "\n".join("\n".join(some) + "\n" for some in lines)


def values_table(values: Values, points: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """The heads of the columns, and the rows, of a table of numbers."""
    shown = points[points["panel"].isin(list(values.at))]
    agents = list(values.agents) or list(dict.fromkeys(shown["agent"]))
    column = "drawn" if values.drawn else "mean"
    cells: dict[tuple[str, str], dict[float, float]] = {}
    for row in shown.to_dict("records"):
        cells.setdefault((row["panel"], row["agent"]), {})[float(row["x"])] = float(row[column])

    def cell(panel: str, agent: str, x: float | None) -> str:
        found = cells.get((panel, agent), {})
        value = found.get(float(x), math.nan) if x is not None else next(iter(found.values()), math.nan)
        return "" if math.isnan(value) else format(value, values.form)

    sets = {tuple(xs) for xs in values.at.values()}
    several = len(values.at) > 1
    if several and len(sets) == 1 and len(next(iter(sets))) > 1:  # below each other
        (xs,) = sets
        head = [values.head, *(f"{x:,g}" if x < 1e6 else f"{x:,.0f}" for x in xs)]
        body = [[f"{panel}: {agent}", *(cell(panel, agent, x) for x in xs)] for panel in values.at for agent in agents]
        body = [row for row in body if any(row[1:])]
    else:
        places = [(panel, x) for panel, xs in values.at.items() for x in (xs or (None,))]
        heads = []
        for panel, x in places:
            at = "" if x is None else f"{x:,.0f}" if x >= 1000 else f"{x:g}"
            alone = len(values.at[panel]) <= 1
            heads.append(f"{panel}" if several and alone else f"{panel}, {at}" if several else at or panel)
        head = [values.head, *heads]
        body = [[agent, *(cell(panel, agent, x) for panel, x in places)] for agent in agents]
    return head, body


def claims_for_terminal(parts: Sequence[tuple[Figure, pd.DataFrame]]) -> str:
    """One table of all claims of one or several figures, each under the sentence of the paper that it tests."""
    rows: list[list[str]] = []
    before: dict[int, list[str]] = {}  # what stands before each row
    for figure, table in parts:
        heads = [f"\n{figure.source}"]
        for quote, row, claims in by_quote(figure, table):
            before[len(rows)] = [*heads, f"  {quoted(quote)}: {row.verdict} ({counted(counts_of(row))})"]
            heads = []
            for one in claims:
                counts = [str(n) for n in counts_of(one)]
                rows.append([str(one.panel), str(one.claim), *counts, str(one.verdict), span(one)])
    head = ["panel", "claim", *VERDICTS, "verdict", "estimate [range of intervals]"]
    if not rows:
        return "the paper claims nothing of it that could be tested"
    first, second, *lines = text_table(head, rows).split("\n")
    return "\n".join([first, second, *(one for i, line in enumerate(lines) for one in (*before.get(i, ()), line))])


SENTENCES = "sentences.csv"  # all sentences of the papers on their experiments, and the quotations that answer them
SUMMARY = "sentences.md"
SCORES = ("holds", "open", "mixed", "does not hold")


def summary(tables: Mapping[str, pd.DataFrame], sentences: pd.DataFrame) -> str:
    """How many sentences of each paper hold, are open, and so on; each counts once.

    Args:
        tables: the verdicts of each figure, by its name, as their files hold them.
        sentences: of the papers: paper, sentence, kind ("claim", "not testable", "set-up"), and `answer`: of a claim
            the quotations, as "figure/name figure/name"; of one that is not testable the reason.
    """
    found = _by_name(tables)
    lines = [_row(("paper", "sentences", *SCORES, "not testable")), "|---" * 7 + "|"]
    for paper, own in sentences.groupby("paper", sort=False):
        verdicts = [_of_sentence(str(answer), found) for answer in own.loc[own["kind"] == "claim", "answer"]]
        left = int((own["kind"] == "not testable").sum())
        counts = [_counted([caveat for verdict, caveat in verdicts if verdict == name]) for name in SCORES]
        lines.append(_row((_paper(PAPERS[str(paper)][0]), str(len(verdicts) + left), *counts, str(left))))
    return "\n".join([*lines, ""])


def overview(tables: Mapping[str, pd.DataFrame], sentences: pd.DataFrame) -> str:
    """What reproduces: every quotation with its verdict, what is not testable, then what no paper says."""
    found, lines, beside = _by_name(tables), [], []
    head = _row(("figure", "the paper", "verdict", "without correction", "episodes / trials")), "|---" * 5 + "|"
    for paper, figures in PAPERS.items():
        rows = [(figure, *row) for figure in figures for row in found.get(figure.name, ())]
        beside += [_overview_row(figure, quote, row) for figure, quote, row, _ in rows if not quote.words]
        if any(quote.words for _, quote, _, _ in rows):
            lines += [f"## {_paper(figures[0])}", "", *head]
            lines += [_overview_row(figure, quote, row) for figure, quote, row, _ in rows if quote.words]
        left = sentences[(sentences["paper"] == paper) & (sentences["kind"] == "not testable")]
        if len(left):
            lines += ["", _row(("not testable", "why")), "|---|---|"]
            lines += [_row((f"“{row.sentence}”", str(row.answer))) for row in left.itertuples()]
        lines += [""] * bool(lines and lines[-1])
    return "\n".join([*lines, "## Beside the papers: no sentence of theirs", "", *head, *beside, ""])


def _by_name(tables: Mapping[str, pd.DataFrame]) -> dict[str, list[tuple[Quote, object, list[object]]]]:
    """What `by_quote` gives of each figure that has verdicts."""
    figures = [figure for some in PAPERS.values() for figure in some if len(tables.get(figure.name, ()))]
    return {figure.name: list(by_quote(figure, tables[figure.name])) for figure in figures}


def _of_sentence(answer: str, found: Mapping[str, Sequence[tuple[Quote, object, list[object]]]]) -> tuple[str, str]:
    """The verdict on a sentence, of all claims of the quotations that answer it but those beside the paper; caveats."""
    places = [place.rpartition("/")[::2] for place in answer.split()]
    chosen = [
        (quote, own)
        for figure, name in places
        for quote, _, own in found.get(figure, ())
        if quote.name == name and not quote.beside
    ]
    claims = [counts_of(one) for _, own in chosen for one in own]
    caveats = sorted({quote.caveat for quote, _ in chosen if quote.caveat})
    return overall(claims) if claims else "open", " ".join(caveats)


def _counted(caveats: Sequence[str]) -> str:
    """How many there are, and how many of them with each caveat."""
    parts = [f"{caveats.count(caveat)} {caveat}" for caveat in dict.fromkeys(caveats) if caveat]
    return f"{len(caveats)}" + (f" ({', '.join(parts)})" if parts else "")


def _paper(figure: Figure) -> str:
    """The authors, the conference and the year."""
    return figure.source.rpartition(", ")[0]


def _overview_row(figure: Figure, quote: Quote, row: Any) -> str:
    anchor = f"{figure.name}-{quote.name}" if row.verdict in OPPOSED else f"claims-{figure.name}"
    count = "exact" if math.isnan(row.episodes) else f"{row.episodes:,.0f} / {_trials(row.trials)}"
    count += ": too few" if row.episodes < FEWEST else ""
    verdict = f"{_verdict(quote, row)} ({counted(counts_of(row))})"
    source = f"[{figure.source.rpartition(', ')[2]}](#{anchor})"
    return _row((source, quoted(quote), verdict, row.alone, count))


def _verdict(quote: Quote, row: Any) -> str:
    return f"**{row.verdict}**" + (f", {quote.caveat}" if quote.caveat else "")


def _trials(number: float) -> str:
    """Of the paper; NaN: it does not say."""
    return "not stated" if math.isnan(number) else f"{number:,.0f}"


def check_docs(docs: Path) -> Path:
    """The folder of the documentation."""
    if not (docs / "figures").is_dir() or not (docs / "conf.py").is_file():
        raise ValueError(f"{docs} is not the folder of the documentation, which has conf.py and figures/")
    return docs


def update_overview(docs: Path) -> Path:
    """Write the overview of all figures whose verdicts the documentation holds; returns its path."""
    known = [figure.name for figures in PAPERS.values() for figure in figures]
    files = {name: docs / "figures" / name / "verdicts.csv" for name in known}
    tables = {name: read_table(file) for name, file in files.items() if file.is_file()}
    path = docs / "figures" / OVERVIEW
    sentences = pandas().read_csv(docs / "figures" / SENTENCES)
    for name, text in ((SUMMARY, summary(tables, sentences)), (OVERVIEW, overview(tables, sentences))):
        write_alone(path.with_name(name), partial(Path.write_text, data=text, encoding="utf-8"))
    return path
