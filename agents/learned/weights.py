"""Networks as plain numbers: weights in an `.npz` file beside the card, so that loading one runs no code of its maker.

The networks that come with the package are stored in this form, in `agents/models`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.envs import NUMBERS, box_of

from ..core.files import reading, write_together
from ..core.forms import forms_of
from ..models.cards import FORMAT, card_path, stored_card
from .model import Trained
from .plain import check_finite, check_network
from .policy import Equivariant, EquivariantPolicy


class PolicyOnly:
    """A policy without the algorithm that trained it; it has what `Trained` needs of a model of SB3."""

    def __init__(self, policy: EquivariantPolicy, name: str) -> None:
        self.policy, self.name = policy, name

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The actions (E,), and None, as SB3's `predict`."""
        return self.policy.predict(observation, state, episode_start, deterministic)


def load_stored(name: str, task: Task) -> Trained:
    """The network of this name that comes with the package for a task; it runs on any number of arms."""
    card, path = stored_card(name, task), card_path(name, task)
    with reading(file := path.with_suffix(".npz")), np.load(file, allow_pickle=False) as archive:
        check_finite(weights := dict(archive))
    with reading(path):
        network = check_network(card["network"], weights)
        forms = forms_of(None, card["env_kwargs"])
        read = weights["mlp_extractor.codes.encoder.0.weight"].shape[1]
        pending = read > sum(NUMBERS[forms.observation][:2])  # whether it reads these
        box, actions = box_of(task.stop, forms.observation, pending), spaces.Discrete(task.stop + forms.stop)
        policy = EquivariantPolicy(box, actions, lambda _: 0.0, **network)
        policy.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    return Trained(PolicyOnly(policy, name), card, task)


def store(trained: Trained, path: str | Path) -> Path:
    """Write the weights `<path>.npz`, and the card with the arguments of the network `<path>.json`."""
    policy = trained.model.policy
    if not isinstance(policy, Equivariant):
        raise ValueError(f"only equivariant policies are stored, got {type(policy).__name__}")
    out = Path(str(path).removesuffix(".npz"))
    weights: dict[str, NDArray[np.float32]] = {
        key: value.detach().cpu().numpy() for key, value in policy.state_dict().items()
    }
    card = {"format": FORMAT, **trained.card, "network": {"hidden": policy.hidden}}
    file = out.with_name(out.name + ".npz")
    files = {file.name: lambda place: np.savez_compressed(place, **weights)}  # type: ignore[arg-type]
    write_together(out.with_name(out.name + ".json"), card, files)
    return file
