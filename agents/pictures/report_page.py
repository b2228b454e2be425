"""The report of an evaluation, or of a figure that was reproduced: one page with figures, tables and commands."""

from __future__ import annotations

import html
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import bandit_envs

from ..core.files import REPRODUCTION, SETTINGS, json_form, read_json
from ..core.optional import require
from ..evaluation import Evaluation, plots, results
from ..evaluation.report import Columns, columns_of, differences, headline
from ..figures import FIGURES
from ..figures.pages import POINTS, by_quote, counts_of, quoted, read_table, span, values_table
from ..figures.verdicts import VERDICTS
from .template import check_page, filled, table

NAME = "report.html"  # of the page in the folder
MOST_ROWS = 400  # of a table


def report(folder: str | Path, out: str | Path | None = None, *, force: bool = False, trust: bool = False) -> Path:
    """Write a page of what a folder holds; returns its path.

    Args:
        folder: what `Evaluation.save`, or `evaluate` or `reproduce` with `out`, has written.
        out: the file of the page, .html; None: report.html in the folder.
        force: overwrite a file that is no page of this package.
        trust: import the modules of problems "module:Class" that the folder names, which runs their code.

    Raises:
        FileNotFoundError: where the folder holds no evaluation.
        ValueError: for a damaged one, and for a file that must not be overwritten.
        OSError: where the page cannot be written.
        ImportError: where Matplotlib or pandas is missing.
    """
    require("matplotlib", "a report")
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder: a report is of what `bandit-envs evaluate --out` has written")
    path = check_page(folder / NAME if out is None else out, force)
    index = folder / SETTINGS
    kept = read_json(index) if index.is_file() else {}
    if REPRODUCTION in kept:
        title, facts, parts = _of_reproduction(folder, kept)
    else:
        title, facts, parts = _of_evaluation(results(folder, trust=trust), folder)
    texts = {"TITLE": html.escape(title), "FACTS": html.escape(facts), "PARTS": "\n".join(parts)}
    filled("report", texts, path)
    return path


# --- an evaluation ----------------------------------------------------------------------------------------------------


def _of_evaluation(evaluation: Evaluation, folder: Path) -> tuple[str, str, list[str]]:
    """Title, facts, and the parts of the page."""
    settings, first = evaluation.settings, evaluation.runs[0]
    instance = settings.get("env_kwargs", {}).get("instance")
    named = instance if isinstance(instance, str) else f"{first.task.K:,} arms"
    drawn = [_svg(plots.plot(evaluation, metric, size="column", title=""), metric) for metric in _metrics(evaluation)]
    shown, compared = columns_of(evaluation, most=MOST_ROWS), differences(evaluation)
    numbers = evaluation.summary()
    parts = [_part("Figures", '<div class="figures">', *drawn, "</div>"), _part("Results", _columns(shown))]
    if compared.rows:
        parts.append(_part("Comparison", _columns(compared)))
    parts.append(_part("All numbers", _all(numbers, f"the table of summary(), {len(numbers):,} rows")))
    made = [_code(command_of(evaluation, folder))]
    if settings.get("precision") is not None:
        made.append(f"<p>It was to end with the precision {html.escape(str(settings['precision']))}.</p>")
    parts.append(_part("How it was made", *made, _versions(settings), _settings(settings)))
    return f"{first.task.problem}: {named}", headline(evaluation), parts


def _metrics(evaluation: Evaluation) -> list[str]:
    """What is drawn: scores, the problem's first metric, and, where there is a delta, errors before them and pulls."""
    run = evaluation.runs[0]
    names = ["score", *run.names[2:3]]
    return names if run.task.delta is None else ["error_rate", *names, "total_pulls"]


def command_of(evaluation: Evaluation, folder: Path) -> str:
    """The command line by which an evaluation can be run again, as far as its settings say."""
    settings = evaluation.settings
    words = ["bandit-envs", "evaluate", str(settings.get("env_id"))]
    for name, value in settings.get("env_kwargs", {}).items():
        words += _option(name.replace("_", "-"), value)
    words += ["--agents", *evaluation.agents]
    words += ["--episodes", str(settings.get("episodes")), "--seed", str(settings.get("seed", 0))]
    for name in ("at", "budgets", "deltas"):
        if settings.get(name):
            words += [f"--{name}", *map(str, settings[name])]
    words += ["--rows", "none"] * (settings.get("rows") == "none")
    words += ["--stochastic"] * (settings.get("deterministic") is False)
    return shlex.join([*words, "--out", str(folder)])


def _option(name: str, value: object) -> list[str]:
    """An option and its value, as a command line has them."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}", str(value) if isinstance(value, (str, int, float)) else json.dumps(value, default=json_form)]


# --- a figure that was reproduced -------------------------------------------------------------------------------------


def _of_reproduction(folder: Path, kept: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    """Title, facts, and the parts of the page."""
    asked = kept[REPRODUCTION]
    figure = FIGURES.get(asked.get("figure", "")) if isinstance(asked, dict) else None
    missing = [name for name in ("verdicts.csv", POINTS, "figure.svg") if not (folder / name).is_file()]
    if figure is None or missing:
        what = f"{' and '.join(missing)} missing" if missing else f"no figure {asked!r:.80} is known"
        raise ValueError(f"{folder} holds no complete reproduction: {what}")
    verdicts, points = (read_table(folder / name) for name in ("verdicts.csv", POINTS))
    picture = _inline((folder / "figure.svg").read_text(encoding="utf-8"), "figure")
    parts = [_part("Figure", f'<figure role="img" aria-label="{html.escape(figure.source)}">{picture}</figure>')]
    head = ["panel", "what is tested", *VERDICTS, "verdict", "estimate [range of intervals]"]
    claims = []
    for quote, row, found in by_quote(figure, verdicts):
        verdict = f'<span class="verdict" data-verdict="{row.verdict}">{row.verdict}</span>'
        rows = [[one.panel, one.claim, *counts_of(one), one.verdict, (span(one), one.least)] for one in found]
        claims.append(f"<h3>{html.escape(quoted(quote))} {verdict}</h3>{table(head, rows)}")
    if claims:
        parts.append(_part("Claims", *claims))
    if figure.values:
        parts.append(_part("Values", *(_values(*values_table(one, points)) for one in figure.values)))
    parts.append(_part("All points", _all(points, f"{len(points):,} points")))
    words = ["bandit-envs", "reproduce", figure.name]
    words += ["--episodes", str(asked["episodes"])] if asked.get("episodes") is not None else []
    command = shlex.join([*words, "--seed", str(asked.get("seed", 0)), "--out", str(folder)])
    skipped = [f"<p>{html.escape(f'Not run: {name}, {why}')}</p>" for name, why in kept.get("skipped", {}).items()]
    parts.append(_part("How it was made", _code(command), *skipped, _versions(kept), _settings(kept)))
    return figure.name, figure.source, parts


def _values(head: list[str], rows: list[list[str]]) -> str:
    """A table of the values of a figure, without the columns of panels that were not run."""
    kept = [i for i in range(1, len(head)) if any(row[i] for row in rows)]
    cells = [[row[0], *((row[i], _leading(row[i])) for i in kept)] for row in rows]
    return table([head[0], *(head[i] for i in kept)], cells)


# --- HTML -------------------------------------------------------------------------------------------------------------


def _part(title: str, *content: str) -> str:
    name = title.lower().replace(" ", "-")
    return f'<section id="{name}"><h2>{title}</h2>\n' + "\n".join(content) + "\n</section>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{html.escape(title)}</summary>{content}</details>"


def _code(text: str) -> str:
    return f"<pre><code>{html.escape(text)}</code></pre>"


def _leading(text: str) -> float | str:
    """The number that a text begins with, or the text itself."""
    found = re.match(r"[\[<\s]*([+-]?[\d.,]+(?:e[+-]?\d+)?)", text)
    return float(found[1].replace(",", "")) if found else text


def _columns(shown: Columns) -> str:
    """A table of texts; what begins with a number is sorted by it."""
    notes = "".join(f'<p class="soft">{html.escape(note)}.</p>' for note in shown.notes)
    rows = [[(text, _leading(text) if i in shown.right else text) for i, text in enumerate(row)] for row in shown.rows]
    return table(shown.head, rows, right=shown.right) + notes


def _all(numbers: Any, title: str) -> str:
    """The first rows of a data frame, folded."""
    rows = list(numbers.head(MOST_ROWS).itertuples(index=False, name=None))
    return _folded(title, table([str(name) for name in numbers.columns], rows, kind="sortable numbers"))


def _svg(figure: Any, name: str) -> str:
    """A Matplotlib figure as an element of HTML."""
    import matplotlib

    written = io.StringIO()
    with matplotlib.rc_context(plots.SAVED):
        figure.savefig(written, format="svg", metadata={"Date": None})
    label = html.escape(plots.metric_label(name))
    return f'<figure role="img" aria-label="{label} of each agent">{_inline(written.getvalue(), name)}</figure>'


def _inline(text: str, name: str) -> str:
    """The element <svg> of a file, with names of its own, without the metadata of its maker."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)


def _found(settings: object) -> Iterator[Mapping[str, str]]:
    """The versions that are named anywhere in some settings."""
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            if name == "versions" and isinstance(value, Mapping):
                yield value
            else:
                yield from _found(value)


def _versions(settings: Mapping[str, object]) -> str:
    """The versions that made the rows, and the one that made the page."""
    named = {", ".join(f"{name} {version}" for name, version in found.items()) for found in _found(settings)}
    rows = f"<p>Made with {html.escape('; '.join(sorted(named)))}.</p>" if named else ""
    return f'{rows}<p class="soft">Page written by bandit-envs {bandit_envs.__version__}.</p>'


def _settings(settings: Mapping[str, object]) -> str:
    return _folded("all settings", _code(json.dumps(settings, indent=1, default=json_form)))
