"""`bandit-envs evaluate` and `record`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
from tyro.conf import Positional, arg

import agents

from ..core.files import try_out
from ..evaluation.environment import environment_id, importable
from ..evaluation.plan import OF_MODELS, check_delta
from ..evaluation.report import report
from ..registry import AGENTS, LEARNED, recipe_of
from .environment import EnvironmentCommand, Options
from .options import Address, Count, Counts, Numbers, Place, Switch, Word, Words, note, refuse_to_overwrite


@dataclass(frozen=True)
class Evaluate(EnvironmentCommand[Options]):
    r"""Run agents on the same episodes of an environment; print their results, and compare them in pairs.

    Examples:
      bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt uniform --at 200 500 1000
      bandit-envs evaluate bandit_envs/Threshold-v0 --instance captions-651 --threshold 1.5 \
          --agents lsa "apt(tolerance=0.05)" uniform --budget 500000 --episodes 16
      bandit-envs evaluate Threshold --budget 200 --agents ppo.safetensors lsa uniform --figure ppo.png
      bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt --episodes 1000000 --rows none --jobs -1 \
          --precision score=0.001 --out results/long
    """

    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]]
    """A name (see `bandit-envs list environments`), as Threshold, or module:Class."""
    agents: Words = None
    """Names (see `bandit-envs list agents`), "module:Class(alpha=2)", and paths of saved models. Left
    out: all that can run, but no networks."""
    episodes: Annotated[int, arg(metavar="N")] = 1000
    """Episodes, the same for all agents."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed: the same seed gives the same numbers."""
    at: Counts = None
    """Numbers of pulls at which the answer is scored too; not together with --budgets."""
    budgets: Counts = None
    """Several budgets, one run for each; not together with --at."""
    deltas: Numbers = None
    """Several deltas, one run for each, of agents that stop by themselves; without --delta, --at and --budgets."""
    batch: Count = None
    """Episodes side by side; the result does not depend on it."""
    jobs: Annotated[int, arg(metavar="N")] = 1
    """Blocks of episodes at the same time, -1 for as many as there are cores; the result does not depend on it."""
    rows: Annotated[str, arg(metavar="all|none")] = "all"
    """none: keep counts, sums and histograms only, whose size does not grow with the number of episodes."""
    precision: Annotated[str | None, arg(metavar="X|NAME=X|verdict", help_behavior_hint="")] = None
    """End before --episodes once all agents have it: half of the width of the interval of the error rate, or of the
    metric NAME; or a verdict on delta."""
    stochastic: Switch = False
    """Saved models draw their actions from their policy, instead of taking the most probable one."""
    metric: Word = None
    """What is shown, compared and drawn: error_rate, score, total_pulls, or a metric of the problem. Left out: the
    score; where there is a delta, the error rate, or the pulls of agents that stop by themselves."""
    reference: Word = None
    """The agent that the others are compared with; left out: the first."""
    out: Address = None
    """Folder, or address as s3://bucket/folder, for blocks of episodes and tables. The same command goes on where it
    was killed."""
    shard: Annotated[str | None, arg(metavar="I/N", help_behavior_hint="")] = None
    """Make only part I of N of the blocks, for --out; slurm: the part of this task of a job array of SLURM."""
    figure: Place = None
    """File for a figure: .png, .svg or .pdf."""
    force: Switch = False
    """Overwrite what is in the folder."""
    trust: Switch = False
    """Load models (.zip) that others than this package have written, too: loading one runs the code of its maker."""
    progress: Switch = True
    """Nothing on how far the run is, and no note that kernels are compiled."""

    def run(self) -> None:
        """Check all that can be checked, run the agents, print and write the results."""
        from ..evaluation import plots, storage
        from ..evaluation.rows import check_metric

        env_id, kwargs = environment_id(self.env_id), self.env_kwargs()
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
        how = {name: x for name, x in vars(self).items() if name in inspect.signature(agents.evaluate).parameters}
        how |= {"agents": names, "precision": _precision(self.precision), "deterministic": not self.stochastic}
        result = agents.evaluate(**how, env_kwargs=kwargs)
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


@dataclass(frozen=True, kw_only=True)
class Record(EnvironmentCommand[Options]):
    """Write down every pull of an agent, with the true means and the right answers.

    Examples:
      bandit-envs record lsa Threshold --instance tao2019-1 --budget 200 --episodes 20000 --out lsa.npz
    """

    agent: Positional[Annotated[str, arg(metavar="AGENT")]]
    """Its name (see `bandit-envs list agents`), "module:Class(alpha=2)", or the path of a saved model."""
    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]]
    """A name (see `bandit-envs list environments`), as Threshold, or module:Class."""
    episodes: Annotated[int, arg(metavar="N")]
    """How many; they are those of `evaluate`."""
    out: Annotated[str, arg(metavar="PATH")]
    """File, .npz; or minari:NAME, a dataset of Minari, as minari:lsa-v0."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed: the same seed gives the same numbers."""
    force: Switch = False
    """Overwrite the file."""
    trust: Switch = False
    """Load a model (.zip) that others than this package have written, too: loading one runs the code of its maker."""

    def run(self) -> None:
        """Write the file."""
        refuse_to_overwrite([Path(self.out)], self.force)
        how: dict[str, Any] = {name: getattr(self, name) for name in ("episodes", "out", "seed", "trust")}
        kept = agents.record(self.agent, self.env_id, env_kwargs=self.env_kwargs(), **how)
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
