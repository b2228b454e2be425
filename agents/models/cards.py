"""Models that are saved, with a card each, and those that come with the package, for each kind of task."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bandit_envs import PROBLEMS, Task
from bandit_envs.kernels import number

from ..core.agent import Problems, by_certificate, task_of
from ..core.confidence import refuse_guardrails
from ..core.files import read_together, reading

FOLDER, LOADER = Path(__file__).parent, "agents.learned.model"  # the module that makes agents of networks

# Raise this number when a model saved before could not be read any more, or would decide otherwise: when classes that
# its file names move, when the network changes, or the features that it reads. Files without a number are of format 1.
FORMAT = 1

# What is read of a card, where it is there: its name, its type, and the type in words.
ENTRIES: dict[str, tuple[Any, str]] = {
    "call": (str, "text"),
    **dict.fromkeys(("network", "roots", "hyperparameters"), (dict, "an object")),
    "mix": ((list, type(None)), "a list"),
    "env_kwargs": ((dict, type(None)), "an object"),
    **dict.fromkeys(("features", "names", "genes", "parameters"), (list, "a list")),
}


def _serving(kind: Any) -> list[str]:
    """The problems whose models serve one, as in the names of their files: first itself, then its family."""
    return [kind.name.lower(), (kind.family or kind.name).lower()]


def stored_for(name: str) -> Problems:
    """The problems for which models of this name are stored."""
    return Problems(lambda kind: any(any(FOLDER.glob(f"{name}-{one}-*.json")) for one in _serving(kind)))


def card_path(name: str, task: Task) -> Path:
    """Where the card of the stored model is, if there is one; that for a price of pulls serves tasks with a delta."""
    end = "budget" if task.budget is not None else "cost"
    *own, last = (FOLDER / f"{name}-{one}-{end}.json" for one in _serving(PROBLEMS.find(task.problem)))
    return next((path for path in own if path.is_file()), last)


def stored_card(name: str, task: Task) -> dict[str, Any]:
    """The card of the stored model; where there is none, an error says what to do."""
    if (path := card_path(name, task)).is_file():
        return read_card(path)
    limits = {"budget": task.budget, "pull-cost": task.pull_cost or None, "delta": task.delta}
    limit = next((f"{one} {x:g}" for one, x in limits.items() if x is not None), "no budget")
    kind = PROBLEMS.find(task.problem)
    own = f"{kind.__module__}:{kind.__qualname__}"  # the command can import it by this, whether registered or not
    problem = kind.name if own.startswith("bandit_envs.") else own
    if by_certificate(task):
        instead = "the agent evidence needs none"
    elif name != "evolved" and card_path("evolved", task).is_file():
        instead = "the agent evolved has one"
    else:
        command = f"bandit-envs train {problem} --algorithm evolved --{limit.replace('no budget', 'budget 200')}"
        instead = f"make one: {command} --out evolved, which makes the agent evolved.json"
        instead += "; where both have been trained, it has lost less than ppo" * (name == "ppo")
    there = ", ".join(sorted(one.stem.removeprefix(f"{name}-") for one in FOLDER.glob(f"{name}-*.json")))
    text = f"{name} has no stored model for {kind.name} with {limit}, only for {there or 'nothing'};"
    raise ValueError(f"{text} {instead}")


def train_again(card: Mapping[str, object]) -> str:
    """What to do about a model that cannot be read, in words; `card` is its card, or empty."""
    return f"train it again: {card['call']}" if "call" in card else "train it again"


def read_card(path: Path) -> dict[str, Any]:
    """The card of a model; a ValueError where it is none, or of another format, or the model beside it is another."""
    card = read_together(path)
    for name, (kind, wanted) in ENTRIES.items():
        if name in card and not isinstance(card[name], kind):
            raise ValueError(f"{path} is no card of a model: its {name} must be {wanted}, got {card[name]!r:.80}")
    features = card.get("features", [])
    if not all(isinstance(one, str) for one in features):
        raise ValueError(f"{path} is no card of a model: its features must be words, got {features!r:.80}")
    check_format(path, card.get("format"), card)
    return card


def check_format(file: object, found: object, card: Mapping[str, object]) -> None:
    """Refuse a file, described by its card, whose format is of another number; None: it has none."""
    if (1 if found is None else found) != FORMAT:
        raise ValueError(f"{file} has format {found!s:.80}; this version reads format {FORMAT}: {train_again(card)}")


def trained_on(agent: Any, task: Task) -> str:
    """What a learned agent was trained on: the call on its card; "" where there is none."""
    card = getattr(agent, "card", None) or {}
    if getattr(agent, "name", "") == "evolved" and (path := card_path("evolved", task)).is_file():
        card = read_card(path)
    return str(card.get("call", ""))


def parameters_on(card: Mapping[str, Any]) -> dict[str, float]:
    """The parameters of `evolved` on a card, by name; a ValueError or KeyError if they are not there, or no numbers."""
    key = "parameters" if "parameters" in card else "genes"  # that of earlier versions
    pairs = zip(card["names"], card[key], strict=True)
    return {name: number(f"the parameter {name!r:.80}", parameter) for name, parameter in pairs}


def stored_parameters(task: Task, names: Sequence[str]) -> list[float]:
    """The parameters of `evolved` of these names for a task; 0, which changes nothing, where a card has none."""
    card = stored_card("evolved", task)
    with reading(card_path("evolved", task)):
        parameters = parameters_on(card)
    return [parameters.get(name, 0.0) for name in names]


class Network:
    """A learned agent whose networks come with the package; called with a task or an environment, it makes the agent.

    PyTorch is imported then. The attributes are as of an `Agent`.
    """

    name, source = "ppo", "this package: a network for each arm, trained by PPO on random instances"
    observation, anytime, needs, coordinates = "relative", False, "the budget", False
    oracles: ClassVar[dict[str, object]] = {}

    @property
    def solves(self) -> Problems:
        """The problems for which there is a network."""
        return stored_for(self.name)

    def __call__(self, task: object) -> object:
        """The agent for a task or an environment; a ValueError says how to train one where no network is stored."""
        task = task_of(task)
        refuse_guardrails(self.name, task)
        stored_card(self.name, task)  # a clear error comes before the import of PyTorch
        return importlib.import_module(LOADER).load_stored(self.name, task)


PPO = Network()
