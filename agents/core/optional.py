"""Optional packages, imported where they are needed."""

from __future__ import annotations

from typing import Any

from bandit_envs.kernels import require

__all__ = ["pandas", "require"]


def pandas() -> Any:
    """The module pandas, for tables."""
    return require("pandas", "a table")
