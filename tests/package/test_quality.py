"""What machines can judge: lint, format, types, the packages of the distribution, and the versions that it takes."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import agents
import bandit_envs

ROOT = Path(__file__).parents[2]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLS = ["ruff check .", "ruff format --check .", "mypy"]


def test_pre_commit_and_ci_run_the_same_tools():
    hooks, ci = (ROOT / ".pre-commit-config.yaml").read_text(), (ROOT / ".ci" / "run").read_text()
    assert re.findall(r"entry: python -m (.*)", hooks) == re.findall(r"^\.venv/bin/python -m (.*)$", ci, re.M) == TOOLS


def test_distribution_holds_every_package():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    there = [
        path.parent.relative_to(ROOT) for top in ("bandit_envs", "agents") for path in (ROOT / top).rglob("__init__.py")
    ]
    assert sorted(listed) == sorted(".".join(path.parts) for path in there)


def test_distribution_holds_every_file_that_is_no_module() -> None:
    """As `.ci/wheel` and a slow test of its build find out."""
    held = {
        path
        for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    there = {path for top in ("bandit_envs", "agents") for path in (ROOT / top).rglob("*") if path.is_file()}
    assert sorted(path for path in there - held if path.suffix not in (".py", ".pyc")) == []


def test_the_oldest_versions_are_those_that_the_project_allows():
    """Of the packages that the tests run on; not of the tools that judge the source."""
    optional = PROJECT["project"]["optional-dependencies"]
    rows = [
        row for name in ("evaluation", "cluster", "training", "session", "excel", "tests") for row in optional[name]
    ]
    allowed = dict(
        re.match(r"([\w-]+)>=([\d.]+)", row).groups()
        for row in PROJECT["project"]["dependencies"] + rows
        if not row.startswith(("bandit-envs", "mypy", "pandas-stubs", "ruff", "scipy-stubs"))
    )
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / ".ci" / "oldest.txt").read_text(), re.MULTILINE))

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

    class Bare:
        def speak(self) -> None: ...

    assert undocumented(Bare) == ["speak"]


def articles(source: str) -> list[str]:
    """Texts in which an article, "a" or "an", stands before a value that is not known: one of them may be wrong."""
    if not re.search(r"""\b[Aa]n? [{"']""", source):
        return []
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
    wrong = 'f"the name of a {kind}"; f"the {kind} a"; f"extra {kind}"; f"an {one} or a {two}"'
    assert articles(wrong) == ["the name of a ", "an ", " or a "]


LOOSE = ("allclose", "isclose", "assert_frame_equal", "assert_series_equal")  # of NumPy, torch and pandas: 1e-8


def loose(source: str) -> list[int]:
    """Lines that compare within an absolute tolerance which they do not name, so that 0 passes for a small number."""
    if not re.search("|".join(LOOSE), source):
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] in LOOSE
        and not ast.unparse(call.func).startswith("math.")
        and not {"atol", "check_exact"} & {keyword.arg for keyword in call.keywords}
    ]


def test_no_absolute_tolerance_is_hidden() -> None:
    found = {str(path): lines for path in (ROOT / "tests").rglob("*.py") if (lines := loose(path.read_text()))}
    assert found == {}
    wrong = "np.allclose(a, b)\nmath.isclose(a, b)\nnp.allclose(a, b, atol=0)\nassert_frame_equal(a, b, rtol=1)"
    assert loose(wrong) == [1, 4]


def test_small_numbers_differ_from_zero_and_from_each_other() -> None:
    """As `conftest` has it: a tolerance is relative, unless an absolute one is named."""
    for small in (6.5e-20, np.array([6.5e-20]), [6.5e-20], {"a": 6.5e-20}):
        zero = {"a": 0.0} if isinstance(small, dict) else np.zeros(1) if isinstance(small, np.ndarray) else [0.0]
        for how in ({}, {"rel": 1e-12}):
            assert (0.0 if isinstance(small, float) else zero) != pytest.approx(small, **how)
            assert small == pytest.approx(small, **how)
    assert pytest.approx(1e-20) != 2e-20
    assert pytest.approx(1.0 + 1e-7) == 1.0
    assert pytest.approx(1.0 + 1e-5) != 1.0
    assert pytest.approx(6.5e-20, abs=1e-12) == 0.0
    assert pytest.approx(1.0 + 1e-7, abs=1e-12) != 1.0  # as it was: no relative tolerance beside one that is named
