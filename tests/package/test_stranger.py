"""A stranger's package, installed beside ours: two agents, a problem, a distribution, an instance, and their pages."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from processes import with_path

ROOT = Path(__file__).parents[2]
STRANGER = ROOT / "tests" / "package" / "stranger"
CHECKS = ["-P", str(STRANGER / "checks.py")]  # -P: the package's source beside the script is not on the path
PAGES = {"own-agent": "agents.py", "own-problem": "far_good.py", "own-distribution": "triangular.py"}


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return found


def lines_of_code(source: str) -> int:
    """Lines that are neither empty, nor comments, nor docstrings."""
    kept = set(range(1, source.count("\n") + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            first = node.body[0]
            kept -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = source.splitlines()
    return sum(1 for i in kept if lines[i - 1].strip() and not lines[i - 1].strip().startswith("#"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the package is installed."""
    for module in ("pip", "setuptools"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is needed to install the package, and is not here")
    place = tmp_path_factory.mktemp("stranger")
    shutil.copytree(STRANGER, place / "source", ignore=shutil.ignore_patterns("__pycache__"))
    words = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *words, "--target", str(place / "site"), str(place / "source")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return place / "site"


def run(site: Path, *words: str) -> str:
    """What a Python process prints that finds the installed package."""
    environment = with_path(site, ROOT)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, cwd=site)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_file_that_is_installed(page: str) -> None:
    assert blocks(page, "python")[:1] == [(STRANGER / "stranger" / PAGES[page]).read_text()]
    assert lines_of_code(blocks(page, "python")[0]) <= 30
    pyproject = (STRANGER / "pyproject.toml").read_text()
    entries = blocks(page, "toml")
    assert len(entries) == 1
    assert all(part in pyproject for part in entries[0].split("\n\n"))


def test_lines_of_code_are_counted() -> None:
    assert (
        lines_of_code('"""Head."""\n\nx = 1  # one\n# none\ndef f():\n    """Two\n    lines."""\n    return x\n') == 3
    )


def test_no_file_is_without_a_page() -> None:
    files = {path.name for path in (STRANGER / "stranger").glob("*.py")} - {"__init__.py"}
    assert files == set(PAGES.values())


@pytest.fixture(scope="module")
def used(site: Path) -> Path:
    """The folder, after all of the package has been used like our own."""
    more = ["training"] if importlib.util.find_spec("stable_baselines3") else []
    run(site, *CHECKS, "environments", "laws", "decisions", *more)
    return site


COMMANDS = """
import json, sys
from agents.cli import main
codes = [main(words) for words in json.loads(sys.argv[1])]
sys.path.insert(0, sys.argv[2])
import checks
checks.kernels()
sys.exit(max(codes))
"""


def test_the_command_line_lists_and_runs_it_with_kernels_from_the_cache(used: Path) -> None:
    lines = [line for page in PAGES for block in blocks(page, "bash") for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines]
    assert {command[0] for command in commands} == {"bandit-envs"}
    quick = [words[1:] + (["--episodes", "5"] if words[1] == "evaluate" else []) for words in commands]
    *printed, last = run(used, "-P", "-c", COMMANDS, json.dumps([["list"], *quick]), str(STRANGER)).splitlines()
    names = ["bandit_envs/FarGood-v0", "pyramids", "nearest-first", "both-sides"]
    for name in [*names, "stranger.agents:NearestFirst(power=1)"]:
        assert any(line.startswith(f"{name} ") for line in printed), name
    assert last.split() == ["1", "0"]
