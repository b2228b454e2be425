"""The release: one version everywhere, a short changelog, and a distribution that holds every file of the packages."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from datetime import date
from pathlib import Path

import pytest

import bandit_envs

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
BUILD = """
import os, sys
from setuptools import build_meta
os.chdir(sys.argv[1])
getattr(build_meta, f"build_{sys.argv[2]}")(sys.argv[3])
"""


def sections() -> list[tuple[str, str]]:
    """Head and text of each section of the changelog."""
    _, *parts = re.split(r"^## (.*)\n", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    return list(zip(parts[::2], parts[1::2], strict=True))


def test_the_version_is_the_same_everywhere() -> None:
    citation = dict(re.findall(r"^(\S+): (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert bandit_envs.__version__ == VERSION == citation["version"]
    assert f"version = {{{VERSION}}}" in (ROOT / "docs" / "cite.md").read_text()
    newest = next(head for head, _ in sections() if head != "Unreleased")
    assert newest == f"{VERSION} - {citation['date-released']}"
    assert date.fromisoformat(citation["date-released"])


def test_the_changelog_of_a_release_is_read_in_some_minutes() -> None:
    for head, text in sections()[:2]:
        assert len(text.split()) <= 600, head


def build(source: Path, kind: str, into: Path) -> Path:
    done = subprocess.run([sys.executable, "-c", BUILD, source, kind, into], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = into.iterdir()
    return made


def test_the_wheel_of_the_sdist_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    """Not what it does: `.ci/wheel` installs it in a fresh environment."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools builds the distribution, and is not here")
    source, unpacked = tmp_path / "source", tmp_path / "unpacked"
    for top in ("bandit_envs", "agents"):
        shutil.copytree(
            ROOT / top, source / top, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nb[ic]")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    there = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file() and path.parent != source}
    for kind in ("sdist", "wheel"):
        (tmp_path / kind).mkdir()
    with tarfile.open(build(source, "sdist", tmp_path / "sdist")) as packed:
        packed.extractall(unpacked, filter="data")
    made = build(unpacked / f"bandit_envs-{VERSION}", "wheel", tmp_path / "wheel")
    assert made.name == f"bandit_envs-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(made) as wheel:
        held = {name for name in wheel.namelist() if not name.startswith("bandit_envs-")}
        assert (
            "bandit-envs = agents.cli:main" in wheel.read(f"bandit_envs-{VERSION}.dist-info/entry_points.txt").decode()
        )
    assert held == there
