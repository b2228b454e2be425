"""The models that come with the package: for each kind of task a card, and beside it the weights of a network."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from bandit_envs import PROBLEMS, Task
from bandit_envs.kernels import number

from ..core.agent import Problems, by_certificate, task_of
from ..core.files import reading
from .formats import read_card

FOLDER, LOADER = Path(__file__).parent, "agents.learned.weights"  # the module that makes agents of networks


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
    """The card of the stored model."""
    path = card_path(name, task)
    if not path.is_file():
        kind = PROBLEMS.find(task.problem)
        own = f"{kind.__module__}:{kind.__qualname__}"  # the command can import it by this, whether registered or not
        problem = kind.name if own.startswith("bandit_envs.") else own
        known = ", ".join(sorted(one.stem for one in FOLDER.glob(f"{name}-*.json"))) or "nothing"
        raise ValueError(
            f"{name} has no stored model {path.stem} for {kind.name}, only {known}; {_instead(name, problem, task)}"
        )
    return read_card(path)


def _instead(name: str, problem: str, task: Task) -> str:
    """What to do where no model of this name is stored: the training that loses least, which is that of `evolved`."""
    if by_certificate(task):
        return "the agent evidence needs none"
    if name != "evolved" and card_path("evolved", task).is_file():
        return "the agent evolved has one"
    limits = {"budget": task.budget, "pull-cost": task.pull_cost or None}
    [limit, value] = next(((one, x) for one, x in limits.items() if x is not None), ("budget", 200))
    command = f"bandit-envs train {problem} --algorithm evolved --{limit} {value:g} --out evolved"
    less = "" if name == "evolved" else f"; where both have been trained, it has lost less than {name}"
    return f"make one: {command}, which makes the agent evolved.json{less}"


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


@dataclass(frozen=True)
class Network:
    """A learned agent whose networks come with the package: called with a task or an environment, it makes the agent.

    PyTorch is imported when an agent is made.

    Attributes:
        name, source: as of an `Agent`.
    """

    name: str
    source: str

    observation: ClassVar[str] = "belief"
    anytime: ClassVar[bool] = False
    needs: ClassVar[str] = "the budget"
    coordinates: ClassVar[bool] = False
    oracles: ClassVar[dict[str, object]] = {}

    @property
    def solves(self) -> Problems:
        """The problems for which there is a network."""
        return stored_for(self.name)

    def __call__(self, task: object) -> object:
        """The agent for a task or an environment.

        Raises:
            ValueError: if no network is stored for it, saying how to train one. ImportError: without PyTorch.
        """
        task = task_of(task)
        stored_card(self.name, task)  # a clear error comes before the import of PyTorch
        return importlib.import_module(LOADER).load_stored(self.name, task)


PPO = Network("ppo", "this package: a network for each arm, trained by PPO on random instances")
