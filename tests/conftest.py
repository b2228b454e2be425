"""Fixtures that several test files share."""

import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import settings

from bandit_envs import DISTRIBUTIONS, INSTANCES, PROBLEMS
from bandit_envs.instances import datasets

settings.register_profile("same", derandomize=True)  # the same examples each time
settings.load_profile("same")
BY_DEFAULT = pytest.approx


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test that takes longest comes first, so that no process is left with it at the end."""
    items.sort(key=lambda item: item.name != "test_plain_mode_plays_ten_golden_cells")


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
