"""What tests of the documentation share."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["write_files"]

WRITTEN = re.compile(r"say\s`([\w/]+\.(py|csv))`.*?^```(?:python)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def write_files(page: Path, folder: Path) -> None:
    """The files that a page tells its reader to write: its next block, where the text before names one."""
    for name, _, content in WRITTEN.findall(page.read_text()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
