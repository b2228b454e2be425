"""Processes of tests."""

from __future__ import annotations

import os
from pathlib import Path


def with_path(*places: Path, **more: str) -> dict[str, str]:
    """The environment variables of this process, which import from these places first; `more` of them, set."""
    found = [*map(str, places), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, found)), **more}
