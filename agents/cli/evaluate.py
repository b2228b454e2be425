"""`bandit-envs evaluate` and `record`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
from tyro.conf import Positional, arg

import agents

from ..core.files import try_out
from ..evaluation.environment import importable, plain
from ..evaluation.plan import OF_MODELS, check_delta
from ..evaluation.report import report
from ..registry import AGENTS, LEARNED, recipe_of
from .environment import EnvironmentCommand, Options
from .options import note, refuse_to_overwrite


class Evaluate(
    EnvironmentCommand[Options],
    of="evaluate",
    also="comparison plot",
    without="env_kwargs deterministic",
    named={"figure": "path"},
):
    r"""Run agents on the same episodes of an environment; print their results, and compare them in pairs.

    Without --agents all play that can, but no networks.

    Examples:
      bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt uniform --at 200 500 1000
      bandit-envs evaluate bandit_envs/Threshold-v0 --instance captions-651 --threshold 1.5 \
          --agents lsa "apt(tolerance=0.05)" uniform --budget 500000 --episodes 16
      bandit-envs evaluate Threshold --budget 200 --agents ppo.safetensors lsa uniform --figure ppo.png
      bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt --episodes 1000000 --rows none --jobs -1 \
          --precision score=0.001 --out results/long
    """

    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]]
    agents: Sequence[str] | None = None
    episodes: int = 1000
    precision: Annotated[str | None, arg(metavar="X|NAME=X|verdict", help_behavior_hint="")] = None
    stochastic: bool = False
    """Saved models draw their actions from their policy, instead of taking the most probable one."""
    metric: str | None = None
    reference: str | None = None
    shard: Annotated[str | None, arg(metavar="I/N", help_behavior_hint="")] = None
    figure: str | Path | None = None
    force: bool = False
    """Overwrite what is in the folder."""
    progress: bool = True

    def run(self) -> None:
        from ..evaluation import plots, storage
        from ..evaluation.rows import check_metric

        (env_id, _), kwargs = plain(self.env_id, {}), self.env_kwargs()
        first = {name: value for name, value in kwargs.items() if name not in OF_MODELS}
        first |= {"budget": min(self.budgets)} if self.budgets else {}
        first |= {"delta": self.deltas[0]} if self.deltas else {}
        env: Any = gym.make(env_id, actions="full", disable_env_checker=True, **first)
        solved, most = env.unwrapped.task.problem, env.unwrapped.task.budget
        if self.at is not None and self.budgets is None and most is not None and max(self.at) > most:
            raise ValueError(f"--at must name numbers of pulls up to the budget of {most}, got {max(self.at)}")
        if self.metric is not None:
            check_metric(solved, self.metric)
        if self.figure is not None:
            try_out(plots.check_path(self.figure))
        if self.out is not None:
            if self.force:
                storage.clear(self.out)
            elif not storage.holds(self.out):
                refuse_to_overwrite([Path(self.out)], False)
        names = _all_that_can_run(solved, env, self.deltas is not None) if self.agents is None else list(self.agents)
        if self.reference is not None and self.reference not in names:
            raise ValueError(f"--reference must be one of the agents {', '.join(names)}, got {self.reference!r}")
        how = self.handed("evaluate") | {"agents": names, "precision": _precision(self.precision)}
        result = agents.evaluate(**how, env_kwargs=kwargs, deterministic=not self.stochastic)
        if self.out is not None and (missing := storage.lacking(self.out)):
            print(f"this part is done; {missing} blocks of other parts are not in {self.out} yet")
            return
        print(report(result, self.metric, self.reference))
        written: list[object] = [] if self.out is None else [storage.add_tables(self.out, result)]
        if self.figure is not None:
            result.plot(self.metric, path=self.figure)
            written.append(self.figure)
        if written:
            print(f"\nwrote {' and '.join(map(str, written))}")


class Record(EnvironmentCommand[Options], of="record", also="evaluate", without="env_kwargs deterministic problem"):
    """Write down every pull of an agent, with the true means and the right answers.

    Examples:
      bandit-envs record lsa Threshold --instance tao2019-1 --budget 200 --episodes 20000 --out lsa.npz
    """

    agent: Positional[Annotated[str, arg(metavar="AGENT")]]
    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]]
    out: Annotated[str, arg(metavar="PATH")]
    force: bool = False
    """Overwrite the file."""

    def run(self) -> None:
        refuse_to_overwrite([Path(self.out)], self.force)
        kept = agents.record(**self.handed("record") | {"problem": self.env_id, "env_kwargs": self.env_kwargs()})
        print(f"wrote {self.out}: {self.episodes:,} episodes, mean score {kept['score'].mean():.4f}")


def _precision(text: str | None) -> object:
    """What `evaluate` takes as precision."""
    if text is None or text == "verdict":
        return text
    name, equals, width = text.rpartition("=")
    try:
        return {name: float(width)} if equals else float(width)
    except ValueError:
        raise ValueError(f"--precision must be a number, NAME=number, or verdict, got {text!r}") from None


def _all_that_can_run(problem: str, env: object, by_delta: bool) -> list[str]:
    """The agents that solve the problem and accept this environment, but no networks; a note says why."""
    able = []
    for name, _ in importable(AGENTS, note):
        recipe = recipe_of(name)
        if problem not in recipe.solves:
            continue
        if name in LEARNED:
            note(f"left out: {name} is a network and takes long; give it by name")
            continue
        try:
            agent = recipe.make(env)
            if by_delta:
                check_delta(name, agent)
        except ValueError as error:
            note(f"left out: {error}")
        else:
            able.append(name)
    if not able:
        raise ValueError(f"none of the agents that solve {problem} can run on this environment")
    return able
