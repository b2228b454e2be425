"""Fixtures that several test files share."""

import os
import re
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import settings
from spent import *  # noqa: F403  # CPU seconds by folder

from bandit_envs import DISTRIBUTIONS, INSTANCES, PROBLEMS
from bandit_envs.instances import datasets

os.environ.setdefault("BANDIT_ENVS_HELPERS", "0")  # tests use all cores
settings.register_profile("same", derandomize=True)  # the same examples each time
settings.load_profile("same")
BY_DEFAULT = pytest.approx
SLOW = {path.parent: tomllib.loads(path.read_text()) for path in Path(__file__).parent.glob("*/slow.toml")}


def approx(expected: Any, rel: Any = None, abs: Any = None, nan_ok: bool = False) -> Any:
    """`pytest.approx` without its absolute tolerance of 1e-12, within which 0 would pass for anything that small."""
    if abs is None:
        rel, abs = 1e-6 if rel is None else rel, 0.0
    return BY_DEFAULT(expected, rel, abs, nan_ok)


pytest.approx = approx


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the public data files, which the variable BANDIT_ENVS_DATA names."""
    folder = datasets.local_folder()
    if folder is None or not folder.is_dir():
        pytest.skip(f"the public data files are not here: set {datasets.VARIABLE} to a folder that has them")
    return folder


def pytest_itemcollected(item: pytest.Function) -> None:
    """Mark what the `slow.toml` of a folder names: {file: {a test, or in brackets those of its ids that look so: why}}.

    Why is the kind of fault that the test finds; and after ";" the tests that find such a fault by default.
    """
    for row in SLOW.get(item.path.parent, {}).get(item.path.name, ()):
        name, _, like = row.partition("[")
        given = item.callspec.id if hasattr(item, "callspec") else ""
        if name == item.originalname and fnmatchcase(given, like.removesuffix("]") or "*"):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip what needs PyTorch where it is not installed; everywhere else the missing import is a failure."""
    try:
        return (yield)
    except ImportError as error:
        if find_spec("torch") or not re.search("torch|stable_baselines3|sb3_contrib|skrl", f"{error}", re.I):
            raise
        pytest.skip(f"PyTorch is not installed: {error}")


@pytest.fixture(autouse=True)
def _long_runs_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are compiled first, or a busy machine, must not add lines to what a command prints."""
    if (progress := sys.modules.get("agents.evaluation.progress")) is not None:
        monkeypatch.setattr(progress, "FIRST_LINE", 1e6)


@pytest.fixture(autouse=True)
def _registrations_are_undone() -> Iterator[None]:
    """What a test registers is unknown to all others."""
    registries = (PROBLEMS, DISTRIBUTIONS, INSTANCES)
    rows, ids = [dict(one._rows) for one in registries], dict(gym.registry)
    yield
    for one, before in zip(registries, rows, strict=True):
        if one._rows != before:
            one._rows = before
            one._found.clear()
    for name in set(gym.registry) - set(ids):
        del gym.registry[name]
