"""Pages of HTML that are one file, made of a template beside this module: they take nothing from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


def filled(name: str, parts: Mapping[str, str], path: Path | None) -> str:
    """A page: what all pages begin with, and the template of this name, with a part in place of each comment."""
    text = "".join(Path(__file__).with_name(part).read_text(encoding="utf-8") for part in ("head.html", name))
    for part, value in parts.items():
        text = text.replace(f"<!--{part}-->", value)
    if path is not None:
        write_alone(path, lambda place: place.write_text(text, encoding="utf-8"))
    return text


def json_text(data: object) -> str:
    """JSON that can stand inside an element of HTML."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
