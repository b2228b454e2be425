"""One tiny trained model per run: those who alter it take a copy from the file."""

from pathlib import Path
from typing import Any

import pytest


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


@pytest.fixture(scope="module")
def ten() -> Any:
    """An untrained policy for 10 arms."""
    pytest.importorskip("stable_baselines3")
    from learning import THRESHOLD, untrained

    from agents.learned import make_vec_env

    return untrained(make_vec_env(THRESHOLD, 4, observation="features"))
