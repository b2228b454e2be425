"""What machines can judge: lint, format, types, and that the distribution holds every package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=lambda c: " ".join(c)
)
def test_tools_find_nothing(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_distribution_holds_every_package():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = [
        path.parent.relative_to(ROOT) for top in ("bandit_envs", "agents") for path in (ROOT / top).rglob("__init__.py")
    ]
    assert sorted(listed) == sorted(".".join(path.parts) for path in there)
