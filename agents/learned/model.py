"""`Trained`, a learned agent, and `load`, which reads one from its file.

What this package has written is read as plain numbers, see `plain`. Any other model file holds pickles: loading one
runs the code of its maker, and is done only where a user says that its maker is trusted.
"""

from __future__ import annotations

import functools
import random
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from bandit_envs import FEATURES, Task
from bandit_envs.envs import NUMBERS, box_of, numbers_of, shows_pending
from bandit_envs.kernels import flag

from ..core.agent import task_of
from ..core.files import finish, reading, require_folder, write_together
from ..core.forms import forms_of
from ..models.cards import FORMAT, card_path, check_format, read_card, stored_card, train_again
from ..registry import MODELS, recipe_of
from . import plain
from .plain import Facts, NotPlainError
from .policy import Equivariant, EquivariantPolicy

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


@contextmanager
def _untouched_generators() -> Iterator[None]:
    """Leave the random number generators that SB3 seeds as they were: of PyTorch, NumPy and Python."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002 (SB3 uses this generator)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])


def _numbers_of(observation: object) -> NDArray[np.float32]:
    """An observation as an array."""
    try:
        x = np.asarray(observation, np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the observation must be an array of numbers, got {observation!r:.200}") from error
    if not np.isfinite(x).all():
        raise ValueError(f"observations must be finite numbers, got {x[~np.isfinite(x)][0]}")
    return x


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

    anytime: ClassVar[bool] = False

    @functools.cached_property
    def observation(self) -> str:
        """The form of observations that it reads."""
        return forms_of(self.model, self.card.get("env_kwargs")).observation

    @property
    def name(self) -> str:
        """The algorithm that trained it."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(self.model).__name__)  # MaskablePPO: maskable-ppo
        return str(getattr(self.model, "name", words.lower()))

    @property
    def stops(self) -> bool:
        """Whether it was trained where stopping is wanted."""
        return bool(getattr(self.model.policy, "stop", True))

    def for_task(self, task: Task) -> Trained:
        """The same agent, which is to run on this task."""
        return replace(self, task=task)

    def predict(
        self, observation: object, state: object = None, episode_start: object = None, deterministic: bool = True
    ) -> tuple[NDArray[np.int64], object]:
        """The next action of each episode, as SB3's `predict`.

        Args:
            observation: in the form `observation` of this agent, float32 (E, numbers), see `NUMBERS` in
                `bandit_envs.envs`, or one row of a single episode. An equivariant policy takes any K.
            state: what the last call returned, None at first; read by recurrent policies only.
            episode_start: whether each episode begins, (E,); read by recurrent policies only.
            deterministic: take the action with the largest logit; False: draw one.

        Returns:
            The arms (E,), or (), K to stop; and the state, None but of recurrent policies.

        Raises:
            ValueError: for an observation in another form, or of a number of arms that the policy does not take.
        """
        x = observation if isinstance(observation, Mapping) else _numbers_of(observation)
        try:
            with one_thread():
                action, state = self.model.predict(x, state, episode_start, deterministic)
        except Exception as error:  # of SB3 or PyTorch
            said = f"{self.name} reads observation={self.observation!r}, and not this one, or this state: {error}"
            raise ValueError(" ".join(said.split())) from error
        return action, state

    def __repr__(self) -> str:
        return f"Trained({self.name}, {self.card.get('env_id', 'without a card')})"

    def save(self, out: str | Path) -> Path:
        """Write the model `<out>.safetensors` and its card `<out>.json`, both or neither; returns the model's path.

        A model of classes that neither this package nor SB3 knows is written in SB3's format, `<out>.zip`, which needs
        `trust` when it is loaded.

        Args:
            out: the path, with one of these suffixes or without.

        Raises:
            ValueError: for a network that came with the package, which is no model of SB3; and where out names no file.
        """
        file, card = paths_of(out)
        if not hasattr(self.model, "save"):
            text = f"{self!r} is a network without the algorithm that trained it, and no model of Stable-Baselines3:"
            raise ValueError(f"{text} pickle keeps it")
        require_folder(card)
        if (facts := plain.facts_of(self.model)) is None:
            file = file.with_suffix(".zip")
            write: Any = functools.partial(self.model.save, exclude=_PASSING)
        else:
            content = plain.written({"format": FORMAT, **facts}, self.model)
            write = lambda path: path.write_bytes(content)
        write_together(card, self.card, {file.name: write})
        for suffix in {*MODELS} - {file.suffix}:  # a model that was here before
            file.with_suffix(suffix).unlink(missing_ok=True)
        return file


def load_stored(name: str, task: Task) -> Trained:
    """The network of this name that comes with the package for a task; it runs on any number of arms."""
    card, path = stored_card(name, task), card_path(name, task)
    if task.K == 1:
        raise ValueError(f"{name} compares arms: it needs 2 or more, got 1")
    with reading(file := path.with_suffix(".safetensors")):
        facts, (weights, _) = plain.facts_in(file), plain.weights_in(file)
        policy = EquivariantPolicy(*plain.spaces_of(facts), lambda _: 0.0, **plain.network_of(facts, weights))
        policy.load_state_dict(weights)
    # What `Trained` needs of a model of SB3: this is a policy without the algorithm that trained it.
    return Trained(SimpleNamespace(policy=policy, name=name, predict=policy.predict), card, task)


def paths_of(out: str | Path) -> tuple[Path, Path]:
    """Where the model and the card are; `out` may or may not have a suffix of a model."""
    path = Path(out)
    stem = path.stem if path.suffix in MODELS else path.name
    if stem in ("", *MODELS):
        raise ValueError(f"out must name a file, got {str(out)!r:.200}")
    return path.with_name(f"{stem}.safetensors"), path.with_name(f"{stem}.json")


def load(path: str | Path, env_or_task: object = None, *, trust: bool = False) -> Any:
    """A model that `train` has written, or, with `trust`, SB3's own `save`: PPO, A2C or DQN on features or beliefs.

    It is a `Trained`; of `evolved` an agent, or what makes it. A file of this package, or with a policy of this
    package, is read as plain weights, which runs no code of its maker. Any other file holds pickles, which do.

    Args:
        path: of the file, `.safetensors`, or `.zip` as SB3 and earlier versions write it; the suffix may be left out.
            The card is read from the `.json` file beside it, if any. Of `evolved`, the `.json` file.
        env_or_task: what the model is to run on; an equivariant policy takes any K. None: as trained, or, for an
            equivariant policy, as the observations come.
        trust: load files that are not plain too: their makers may run any code.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no such model; if it is not plain and `trust` is not set; if another version has written
            it in a format that this one does not read; if the model does not fit the environment.
    """
    trust = flag("trust", trust)
    file, card_file = paths_of(path)
    if Path(path).suffix == ".json" and not file.exists():
        recipe = recipe_of(str(path))
        return recipe.target if env_or_task is None else recipe.make(env_or_task)
    finish(card_file)
    zipped = file.with_suffix(".zip")
    file = zipped if Path(path).suffix == ".zip" or zipped.is_file() and not file.exists() else file
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder, not a saved model")
    if not file.is_file():
        raise FileNotFoundError(f"there is no saved model {file}")
    card = read_card(card_file) if card_file.exists() else {}
    with _named(file, card):
        facts = plain.facts_in(file)
    check_format(file, facts.get("format"), card)
    with _named(file, card), _untouched_generators():  # SB3 seeds them where a model is made
        if card.get("features", list(FEATURES)) != list(FEATURES):
            raise OtherVersionError(f"it reads the features {', '.join(card['features'])}")
        if (card.get("env_kwargs") or {}).get("observation") == "belief":
            raise OtherVersionError("it reads observation='belief', for which there is 'relative' since 0.3.0")
        model = _read(file, facts, bool(card), trust)
    forms = forms_of(model, card.get("env_kwargs"))
    arms = int(getattr(model.action_space, "n", 1)) - forms.stop
    form = forms.observation if forms.observation in NUMBERS else "features"
    pending = shows_pending(model.observation_space)
    each, more, _ = numbers_of(form, pending)
    if model.observation_space.shape != (each * arms + more,):
        sizes = ", ".join(f"{name!r} {each} for each and {more} more" for name, (each, more, _) in NUMBERS.items())
        raise ValueError(
            f"{file} was trained on other observations: shape {model.observation_space.shape} for {arms} arms, where "
            f"numbers are, by observation: {sizes}: give a model in place of the file, which SB3's own "
            "load(file, env=env) reads, with an environment as in its training"
        )
    if env_or_task is not None and (K := task_of(env_or_task).K) != arms:
        if not isinstance(model.policy, Equivariant):
            raise ValueError(
                f"{file} holds a policy for {arms} arms, which cannot run on {K}: its {type(model.policy).__name__} "
                f"has weights for each arm. Train it with {K} arms; or train agents.learned.EquivariantPolicy, as "
                "`bandit-envs train` does, which takes any number of arms"
            )
        weights = model.get_parameters()
        box, actions = box_of(K, model.policy.observation, pending), spaces.Discrete(K + model.policy.stop)
        model.observation_space, model.action_space = box, actions
        with _untouched_generators():
            model._setup_model()
        model.set_parameters(weights, device="cpu")
    return Trained(model, card, None if env_or_task is None else task_of(env_or_task))


def _read(file: Path, facts: Facts, known: bool, trust: bool) -> Any:
    """The model in a file with these facts, as plain numbers, or with `trust`; `known`: there is a card of it."""
    kind, foreign = plain.kind_of(facts), ""
    if file.suffix == ".zip":
        ours = known or facts["format"] is not None or facts["policy"].startswith("agents.learned.")
        foreign = plain.only_in_pickles(facts) if ours else "this package has not written it"
        if foreign and not trust:
            raise NotPlainError(foreign)
    if not foreign:
        try:
            return plain.made(facts, *plain.weights_in(file))
        except NotPlainError:
            if not trust:
                raise
    with warnings.catch_warnings(record=True) as caught:  # SB3 only warns of classes that have lost a name
        warnings.simplefilter("always")
        try:
            model = kind.load(file, device="cpu")
        except Exception as error:
            lost = [str(one.message) for one in caught if "Could not deserialize" in str(one.message)]
            if lost or isinstance(error, (ImportError, AttributeError)):
                raise OtherVersionError(" ".join([*lost, str(error)])) from error
            raise
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return model


class OtherVersionError(ValueError):
    """Of a model of an earlier version, which this one does not read any more."""


@contextmanager
def _named(file: Path, card: Mapping[str, object]) -> Iterator[None]:
    """Around all that makes a model of a file: an error names the file, and what is wrong with it."""
    try:
        yield
    except Exception as error:
        # An OSError without a name comes from seeking where there is nothing.
        if isinstance(error, ImportError) or isinstance(error, OSError) and error.filename is not None:
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, NotPlainError):
            said = f"holds pickles, which can run any code when they are loaded ({text:.300}): if you trust its maker, "
            said += "say trust=True, or --trust on the command line"
        elif isinstance(error, OtherVersionError) or "state_dict" in text or "unexpected keyword" in text:
            said = f"was saved by another version of this package, or of one that it needs ({text:.500}): "
            said += train_again(card)
        else:
            said = f"holds no model of Stable-Baselines3 ({', '.join(plain.KINDS)}): {text:.500}"
        raise ValueError(f"{file} {said}") from error
