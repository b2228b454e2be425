"""What machines can judge: lint, format, types, the packages of the distribution, and the versions that it takes."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import agents
import bandit_envs

ROOT = Path(__file__).parent.parent


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLS = ["ruff check .", "ruff format --check .", "mypy"]


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_find_nothing(tool):
    done = subprocess.run([sys.executable, "-m", *tool.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pre_commit_runs_the_same_tools():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"entry: python -m (.*)", hooks) == TOOLS


def test_distribution_holds_every_package():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    there = [
        path.parent.relative_to(ROOT) for top in ("bandit_envs", "agents") for path in (ROOT / top).rglob("__init__.py")
    ]
    assert sorted(listed) == sorted(".".join(path.parts) for path in there)


def test_the_oldest_versions_are_those_that_the_project_allows():
    """Of the packages that the tests run on; not of the tools that judge the source."""
    optional = PROJECT["project"]["optional-dependencies"]
    allowed = dict(
        re.match(r"([\w-]+)>=([\d.]+)", row).groups()
        for row in [
            *PROJECT["project"]["dependencies"],
            *optional["evaluation"],
            *optional["cluster"],
            *optional["training"],
            *optional["session"],
            *optional["tests"],
        ]
        if not row.startswith(("bandit-envs", "mypy", "pandas-stubs", "ruff", "scipy-stubs"))
    )
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / ".github" / "oldest.txt").read_text(), re.MULTILINE))

    def numbers(versions):
        return {name: [int(part) for part in f"{version}.0.0".split(".")[:3]] for name, version in versions.items()}

    assert numbers(pinned) == numbers(allowed)


def undocumented(kind: type) -> list[str]:
    """The public methods of a class that have no docstring, of their own or of the method that they override."""
    written = [name for name, one in vars(kind).items() if inspect.isfunction(one) and one.__name__ == name]
    return [name for name in written if name[0] != "_" and not inspect.getdoc(getattr(kind, name))]


def test_every_public_method_is_documented() -> None:
    bare = []
    for top in (agents, bandit_envs):
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if module.name.rpartition(".")[2] != "__main__":
                for name, kind in vars(importlib.import_module(module.name)).items():
                    if isinstance(kind, type) and kind.__module__ == module.name and name[0] != "_":
                        bare += [f"{module.name}.{name}.{method}" for method in undocumented(kind)]
    assert bare == []


def test_a_method_without_docstring_is_found() -> None:
    class Bare:
        def speak(self) -> None: ...

    assert undocumented(Bare) == ["speak"]


def articles(source: str) -> list[str]:
    """Texts in which an article, "a" or "an", stands before a value that is not known: one of them may be wrong."""
    texts = [node.values for node in ast.walk(ast.parse(source)) if isinstance(node, ast.JoinedStr)]
    pairs = [pair for values in texts for pair in itertools.pairwise(values)]
    return [
        str(text.value)
        for text, value in pairs
        if isinstance(text, ast.Constant)
        and isinstance(value, ast.FormattedValue)
        and re.search(r"\b[Aa]n? $", str(text.value))
    ]


def test_no_message_has_an_article_before_a_name_that_may_begin_with_a_vowel() -> None:
    found = {
        str(path): texts
        for top in ("bandit_envs", "agents")
        for path in (ROOT / top).rglob("*.py")
        if (texts := articles(path.read_text()))
    }
    assert found == {}


def test_an_article_before_a_name_is_found() -> None:
    assert articles('f"the name of a {kind}"; f"the {kind} a"; f"extra {kind}"; f"an {one} or a {two}"') == [
        "the name of a ",
        "an ",
        " or a ",
    ]
