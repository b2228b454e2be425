"""The random number generators that Stable-Baselines3 uses and seeds: those of PyTorch, NumPy and Python."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

__all__ = ["generator_states", "set_generators", "untouched_generators"]


def generator_states() -> dict[str, Any]:
    """What they are at."""
    return {
        "torch": torch.get_rng_state(),
        "numpy": np.random.get_state(),  # noqa: NPY002 (SB3 uses this generator)
        "python": random.getstate(),
    }


def set_generators(states: Mapping[str, Any]) -> None:
    """Bring them to what `generator_states` has told."""
    torch.set_rng_state(states["torch"])
    np.random.set_state(states["numpy"])  # noqa: NPY002
    random.setstate(states["python"])


@contextmanager
def untouched_generators() -> Iterator[None]:
    """Leave them as they were before."""
    states = generator_states()
    try:
        yield
    finally:
        set_generators(states)
