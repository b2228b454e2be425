"""What tests of the documentation share."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["of_pages", "programs", "write_files"]

ROOT = Path(__file__).parents[2]

WRITTEN = re.compile(r"say\s`([\w/]+\.(py|csv|jsonl))`.*?^```(?:python)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def write_files(page: Path, folder: Path) -> None:
    """The files that a page tells its reader to write: its next block, where the text before names one."""
    for name, _, content in WRITTEN.findall(page.read_text()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def programs(*places: str) -> list[str]:
    """The Python files below these folders."""
    return [path.read_text() for place in places for path in (ROOT / place).rglob("*.py")]


def of_pages() -> list[str]:
    """The Python blocks of the documentation."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    return [code for page in pages for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]
