"""Pages of HTML that are one file, made of a template beside this module: they take nothing from elsewhere."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.files import try_out, write_alone

OURS = b'<meta name="generator" content="bandit-envs">'  # what all pages have near their beginning
BEGINNING = 2000  # bytes


def check_page(out: str | Path, force: bool = False) -> Path:
    """The path of a page, which can be written to.

    Args:
        out: the path. force: whether it may take the place of a file that is no page of this package.

    Raises:
        ValueError: for another suffix than .html, and for a file that must not be overwritten.
        OSError: where it cannot be written.
    """
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"the suffix of a page must be .html, got {str(path)!r}")
    if path.is_file() and not force:
        with path.open("rb") as file:
            if OURS not in file.read(BEGINNING):
                raise ValueError(f"{path} is there already, and no page of bandit-envs: give another --out, or --force")
    try_out(path)
    return path


def filled(names: str, parts: Mapping[str, str], path: Path | None) -> str:
    """A page: what all pages begin with, and templates one after another, with a part in place of each comment."""
    files = (Path(__file__).with_name(f"{name}.html") for name in ("head", *names.split()))
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    for part, value in parts.items():
        text = text.replace(f"<!--{part}-->", value)
    if path is not None:
        write_alone(path, lambda place: place.write_text(text, encoding="utf-8"))
    return text


def json_text(data: object) -> str:
    """JSON that can stand inside an element of HTML."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def table(
    head: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] | None = None, kind: str = "sortable"
) -> str:
    """A table that is sorted by a click on the head of a column, where scripts run.

    A value may be a pair of a text and what it is sorted by. right=None: columns with numbers are flush right.
    """
    pairs = [[_cell(cell) for cell in row] for row in rows]
    numeric = {i for row in pairs for i, (_, key) in enumerate(row) if isinstance(key, (int, float))}
    sides = [' class="right"' if i in (numeric if right is None else right) else "" for i in range(len(head))]

    def cell(text: str, key: object, side: str) -> str:
        value = repr(key) if isinstance(key, float) and math.isfinite(key) else str(key)
        return f'<td{side} data-value="{html.escape(value)}">{html.escape(text)}</td>'

    heads = "".join(f'<th scope="col"{side}>{html.escape(name)}</th>' for name, side in zip(head, sides, strict=True))
    body = ("".join(cell(*pair, side) for pair, side in zip(row, sides, strict=True)) for row in pairs)
    lines = "\n".join(f"<tr>{cells}</tr>" for cells in body)
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{heads}</tr></thead>\n<tbody>{lines}</tbody></table></div>'
    )


def _cell(value: object) -> tuple[str, object]:
    """A value of a table: its text, and what it is sorted by; a pair is both."""
    if isinstance(value, tuple):
        return value
    value = value.item() if hasattr(value, "item") else value
    if value is None or str(value) in ("nan", "NaT", "<NA>"):
        return "", ""
    if isinstance(value, float):
        return (f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.6g}"), value
    return (f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)), value
