"""`Trained`, a learned agent, and `load`, which reads one from SB3's own file format.

A model file holds pickles: loading one runs whatever code its maker put there.
"""

from __future__ import annotations

import functools
import json
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, DQN, PPO

from bandit_envs import FEATURES, Quiet, Simulation, Task

from ..core.agent import task_of
from ..core.files import finish, read_together, write_together
from ..core.optional import require
from ..models.formats import FORMAT, check_format, train_again
from .network_index import LogitMemory, NetworkIndex
from .policy import Equivariant

__all__ = ["Repeated", "Trained", "load", "one_thread", "paths_of"]

# A file is of the first of these classes whose attribute it stores.
_MARKS: dict[str, Any] = {"clip_range": PPO, "exploration_fraction": DQN, "gae_lambda": A2C}
# Of sb3-contrib's classes, which have `clip_range` too, the module of the policy has this word in its name.
_CONTRIB = {"maskable": "MaskablePPO", "recurrent": "RecurrentPPO"}
_FORMAT_NAME = "bandit_envs_format"  # the attribute of a saved model that holds the number of the format
# Attributes that belong to a run, not to the model.
_PASSING = ("_last_obs", "_last_episode_starts", "_last_original_obs", "ep_info_buffer", "ep_success_buffer")


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch on one thread: the fastest for networks as small as these, and every sum has one order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def as_features(name: str, observation: Any) -> None:
    """Refuse observations in the form of statistics.

    Args:
        name: of the agent that is to read the observation.

    Raises:
        ValueError: for a dict, telling which form is wanted.
    """
    if isinstance(observation, Mapping):
        F = len(FEATURES)
        raise ValueError(
            f"{name} reads observation='features', an array, got a dict of statistics; the array is (E, K * {F}), or "
            f"(K * {F},) for a single episode"
        )


@dataclass(eq=False, repr=False)
class Trained:
    """A learned agent, usable in `evaluate`, in SB3's `evaluate_policy` and in a plain Gymnasium loop.

    Attributes:
        model: the SB3 model. card: how it came about and what it reached; empty for a model stored without one.
        task: what it is to run on, where that is known.
    """

    model: Any
    card: dict[str, Any] = field(default_factory=dict)
    task: Task | None = None

    observation: ClassVar[str] = "features"  # the form that it reads
    anytime: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The algorithm that trained it."""
        return str(getattr(self.model, "name", type(self.model).__name__.lower()))

    @property
    def stops(self) -> bool:
        """Whether it was trained where stopping is wanted."""
        return bool(getattr(self.model.policy, "stop", True))

    @property
    def by_index(self) -> bool:
        """Whether it is an index policy: the logit of an arm depends on that arm alone, and it never stops."""
        policy = self.model.policy
        return isinstance(policy, Equivariant) and not policy.context and not policy.stop

    def for_task(self, task: Task) -> Trained:
        """The same agent, which is to run on this task."""
        return replace(self, task=task)

    @functools.cached_property
    def _index(self) -> NetworkIndex | None:
        """The same as an index policy for compiled code, where it is one and the task's arms have a margin each."""
        task = self.task
        if task is None or task.pull != "arm" or not self.by_index:
            return None
        problem = task.make_problem()
        if not problem.local or (task.D > 1 or problem.boundary is None) and problem.measure is None:
            return None
        return NetworkIndex(task.replace(observation="statistics", actions="full"), self.model.policy.mlp_extractor)

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: the weights may have changed since the index was made."""
        return {name: value for name, value in vars(self).items() if name != "_index"}

    @property
    def plays(self) -> bool:
        """Whether it plays whole episodes in compiled code, see `play`."""
        return self._index is not None

    def play(self, simulation: Simulation, quiet: Quiet, observation: Any, state: Any) -> tuple[Any, Any]:
        """The next action of each episode, as `Agent.play` tells it; the first call is at the beginning of episodes.

        Args:
            simulation, quiet, observation: as for `Agent.play`.
            state: what the last call has returned, None at first; it is not that of `predict`.
        """
        index: Any = self._index
        if state is None:
            E, K, D = len(observation), index.task.K, index.task.D
            mean = simulation.statistics[1].reshape((E, K) if D == 1 else (E, K, D))
            state = index.remember({"pulls": simulation.pulls.reshape(E, K), "mean": mean})
        return index.played(simulation, quiet, observation, state), state

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The next action of each episode, as SB3's `predict`.

        Args:
            observation: features (E, K * F) float32, or (K * F,) of a single episode; F is the number of features. An
                equivariant policy takes any K.
            state: what the last call returned, None at first; it is not for single episodes.
            episode_start: whether each episode begins, (E,); read by recurrent policies only.
            deterministic: take the action with the largest logit; False: draw one.

        Returns:
            The arms (E,), or (), K to stop; and the state. It is None, or for a network without context the logits of
            all arms, so that only those of arms whose features change are computed anew.

        Raises:
            ValueError: for a dict of statistics, and for an observation of another shape.
        """
        as_features(self.name, observation)
        with one_thread():
            if deterministic and self.by_index and np.ndim(observation) == 2:
                x = np.ascontiguousarray(observation, np.float32).reshape(len(observation), -1, len(FEATURES))
                memory = LogitMemory(self.model.policy.mlp_extractor, *x.shape[:2]) if state is None else state
                return memory.choose(x), memory
            action, state = self.model.predict(observation, state, episode_start, deterministic)
        return action, state

    def __repr__(self) -> str:
        return f"Trained({self.name}, {self.card.get('env_id', 'without a card')})"

    def save(self, out: str | Path) -> Path:
        """Write the model `<out>.zip` in SB3's format and its card `<out>.json`.

        Args:
            out: the path without its suffix, or with `.zip`; folders that are missing are made.

        What a kill or a full disk leaves is the model and the card that were there before, or the new ones.

        Returns:
            The path of the model.
        """
        model, card = paths_of(out)
        setattr(self.model, _FORMAT_NAME, FORMAT)
        write_together(card, self.card, {model.name: lambda path: self.model.save(path, exclude=_PASSING)})
        return model


class Repeated:
    """A learned agent that repeats each of its actions so many times, as it did while it was trained.

    Args:
        agent: the learned agent. times: pulls per action, >= 1.
    """

    observation, anytime = "features", False

    def __init__(self, agent: Any, times: int) -> None:
        self.agent, self.times, self.stops = agent, times, getattr(agent, "stops", True)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """The next action of each episode, for features (E, K * F).

        Returns:
            The arms (E,); and the state: the arms (E,) and how often each is still to be pulled (E,).

        Raises:
            ValueError: for a dict of statistics, and for an observation of another shape.
        """
        as_features("a learned agent", observation)
        arms, left = (
            (np.zeros(len(observation), np.int64), np.zeros(len(observation), np.int64)) if state is None else state
        )
        if episode_start is not None:
            left[episode_start] = 0
        if (new := np.flatnonzero(left == 0)).size:
            arms[new], left[new] = self.agent.predict(observation[new], deterministic=deterministic)[0], self.times
        left -= 1
        return arms.copy(), (arms, left)


def paths_of(out: str | Path) -> tuple[Path, Path]:
    """Where the model and the card are; `out` may or may not have the suffix of the model."""
    path = Path(out)
    stem = path.name.removesuffix(".zip")
    return path.with_name(f"{stem}.zip"), path.with_name(f"{stem}.json")


def _class_of(data: Mapping[str, Any]) -> Any:
    """The class of SB3 or sb3-contrib that has written these data, or None."""
    module = str(data.get("policy_class", {}).get("__module__", ""))
    for word, name in _CONTRIB.items():
        if word in module and "clip_range" in data:
            return getattr(require("sb3_contrib", f"a model of {name}", "training"), name)
    return next((kind for mark, kind in _MARKS.items() if mark in data), None)


def load(path: str | Path, env_or_task: Any = None) -> Trained:
    """A model that `train`, or SB3's own `save`, has written: PPO, A2C or DQN on `observation="features"`.

    The file holds pickles: load it only if you trust its maker, for loading runs its code.

    Args:
        path: of the `.zip` file; the suffix may be left out. The card is read from the `.json` file beside it, if any.
        env_or_task: what the model is to run on; its K may differ from that of the training if the policy is
            equivariant. None: as trained, or, for an equivariant policy, as the observations come.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no such model; if another version of this package has written it in a format that this
            one does not read; if the model does not fit the environment.
    """
    file, card_file = paths_of(path)
    finish(card_file)
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {file}")
    card = read_together(card_file) if card_file.is_file() else {}
    check_format(card_file, card.get("format"), card)
    try:
        with zipfile.ZipFile(file) as archive:
            data = json.loads(archive.read("data"))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise _no_model(file, error) from error
    check_format(file, data.get(_FORMAT_NAME), card)
    if card.get("features", list(FEATURES)) != list(FEATURES):
        raise _other_version(file, f"it reads the features {', '.join(card['features'])}", card)
    kind = _class_of(data)
    if kind is None:
        raise _no_model(file, "nothing in it tells its class")
    model = _read(file, kind, card)
    arms, F = int(getattr(model.action_space, "n", 1)) - 1, len(FEATURES)
    if model.observation_space.shape != (arms * F,):
        raise ValueError(
            f"{file} was trained on other observations: shape {model.observation_space.shape} for {arms} arms, where "
            f"observation='features' gives {F} numbers for each"
        )
    if env_or_task is not None and (K := task_of(env_or_task).K) != arms:
        if not isinstance(model.policy, Equivariant):
            raise ValueError(f"{file} holds a policy for {arms} arms, which cannot run on {K}")
        box = spaces.Box(-1.0, 1.0, (K * F,), np.float32)
        model = _read(file, kind, card, {"observation_space": box, "action_space": spaces.Discrete(K + 1)})
    return Trained(model, card, None if env_or_task is None else task_of(env_or_task))


def _read(file: Path, kind: Any, card: Mapping[str, Any], spaces_of: dict[str, Any] | None = None) -> Any:
    """The model in a file.

    Args:
        file: its path.
        kind: its class.
        card: its card, or empty.
        spaces_of: spaces that replace those in the file.

    Raises:
        ValueError: if it holds no model of this class, or if the classes that it names are not there.
    """
    with warnings.catch_warnings(record=True) as caught:  # SB3 only warns of classes that have lost a name
        warnings.simplefilter("always")
        try:
            model = kind.load(file, device="cpu", custom_objects=spaces_of)
        except (ImportError, AttributeError) as error:
            raise _other_version(file, error, card) from error
        except (KeyError, ValueError, AssertionError, TypeError, RuntimeError) as error:
            lost = [str(one.message) for one in caught if "Could not deserialize" in str(one.message)]
            if lost or "state_dict" in str(error):  # a class has lost a name, or a network has other weights
                raise _other_version(file, " ".join([*lost, str(error)]), card) from error
            raise _no_model(file, error) from error
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return model


def _no_model(file: Path, reason: Any) -> ValueError:
    """The error for a file that is no model."""
    known = ", ".join([*(kind.__name__ for kind in _MARKS.values()), *_CONTRIB.values()])
    return ValueError(f"{file} holds no model of Stable-Baselines3 ({known}): {reason}")


def _other_version(file: Path, reason: Any, card: Mapping[str, Any]) -> ValueError:
    """The error for a model whose classes, network or features are not what they were."""
    told = " ".join(str(reason).split())
    return ValueError(
        f"{file} was saved by another version of this package, or of one that it needs ({told:.500}): "
        f"{train_again(card)}"
    )
