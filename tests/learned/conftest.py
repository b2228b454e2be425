"""One tiny trained model per run: those who alter it take a copy from the file."""

import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Networks are small: threads of PyTorch would only wait for each other, which on a busy machine takes longest."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny() -> Any:
    """A policy after a short training."""
    pytest.importorskip("stable_baselines3")
    from learning import TINY

    import agents

    return agents.train(**TINY)


@pytest.fixture(scope="session")
def tiny_file(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of that policy."""
    return tiny.save(tmp_path_factory.mktemp("tiny") / "tiny")


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT interrupts, also in a run in the background, which may have begun with a shell that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def ten() -> Any:
    """An untrained policy for 10 arms."""
    pytest.importorskip("stable_baselines3")
    from learning import THRESHOLD, untrained

    from agents.learned import make_vec_env

    return untrained(make_vec_env(THRESHOLD, 4, observation="features"))
