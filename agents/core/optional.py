"""Optional packages, imported where they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from bandit_envs.kernels import install_hint


def require(module: str, purpose: str, extra: str = "evaluation") -> Any:
    """The module of this name; an ImportError names the extra that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        top = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {top}: {install_hint(extra)}") from None


def pandas() -> Any:
    """The module pandas, for tables."""
    return require("pandas", "a table")
