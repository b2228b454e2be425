"""`bandit-envs watch`, `race`, `report` and `plot`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

import agents
from bandit_envs import INSTANCES
from bandit_envs.kernels import parse_call

from ..evaluation.environment import environment_id
from .environment import EnvironmentCommand, Options
from .options import Command, Count, Place, Switch, Word

Where = Positional[Annotated[str, arg(metavar="INSTANCE")]]


@dataclass(frozen=True, kw_only=True)
class EpisodeCommand(EnvironmentCommand[Options]):
    """A subcommand that plays one episode."""

    instance_name: Where
    """The name of an instance, as tao2019-1, for the problem that it was made for; or of an environment, as
    Threshold, whose --instance may be given then."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed."""
    episode: Annotated[int, arg(metavar="N")] = 0
    """Number of the episode of this root: the one that `evaluate` plays."""
    frames: Count = None
    """Frames at most, spread evenly over the pulls."""
    trust: Switch = False
    """Load models (.zip) that others than this package have written, too: loading one runs the code of its maker."""

    def played(self) -> dict[str, Any]:
        """The environment and the episode, as `agents.race` and `agents.watch` take them."""
        env_id, kwargs = self.instance_name, self.env_kwargs()
        name = parse_call(env_id)[0] if "(" in env_id else env_id
        if name in INSTANCES:
            if "instance" in kwargs:
                raise ValueError(f"give the environment with --instance, or the instance {env_id!r} alone")
            problem = INSTANCES.find(name).problem
            if not problem:
                text = f"the instance {name!r} was made for no problem:"
                raise ValueError(f"{text} name the environment, with --instance {env_id!r}")
            env_id, kwargs = problem, kwargs | {"instance": env_id}
        rest = {name: getattr(self, name) for name in ("seed", "episode", "frames", "trust")}
        return {"env_id": environment_id(env_id), "env_kwargs": kwargs, **rest}


@dataclass(frozen=True, kw_only=True)
class Watch(EpisodeCommand[Options]):
    """Show an agent in one episode, in the terminal or as an animated GIF.

    Examples:
      bandit-envs watch tao2019-1 lsa
      bandit-envs watch TopK lucb --instance "sampler(arms=20)" --k 5 --delta 0.1 --seed 3
      bandit-envs watch tao2019-1 apt --gif apt.gif
    """

    agent: Positional[Annotated[str, arg(metavar="AGENT")]]
    """Its name (see `bandit-envs list agents`), "module:Class(alpha=2)", or the path of a saved model."""
    gif: Place = None
    """Write the moving picture into this file, .gif, instead of showing it."""
    speed: Annotated[float, arg(metavar="X")] = 10.0
    """Frames in a second."""
    color: Switch = True
    """Without colours; so it is too where the variable NO_COLOR is set."""

    def run(self) -> None:
        """Show it, or write the file."""
        agents.watch(self.agent, **self.played(), gif=self.gif, speed=self.speed, color=None if self.color else False)
        if self.gif is not None:
            print(f"wrote {self.gif}")


@dataclass(frozen=True, kw_only=True)
class Race(EpisodeCommand[Options]):
    """Let agents play the same episode, and write a page that plays it in the browser: one HTML file.

    Examples:
      bandit-envs race tao2019-1 --agents lsa uniform --out race.html
    """

    agents: Annotated[tuple[str, ...], arg(metavar="NAME [NAME ...]")]
    """Names (see `bandit-envs list agents`), "module:Class(alpha=2)", and paths of saved models."""
    out: Annotated[Path, arg(metavar="PATH")]
    """File for the page, .html."""
    title: Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")] = None
    """Of the page."""
    force: Switch = False
    """Overwrite a file that is no page of this program."""

    def run(self) -> None:
        """Write the page."""
        agents.race(list(self.agents), **self.played(), out=self.out, title=self.title, force=self.force)
        print(f"wrote {self.out}")


@dataclass(frozen=True)
class Report(Command):
    """Write a page of an evaluation, or of a figure that was reproduced: one HTML file.

    Examples:
      bandit-envs report results/tao
      bandit-envs report results/tao2019-figure-1 --out figure.html
    """

    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]]
    """What `bandit-envs evaluate --out` or `bandit-envs reproduce --out` has written."""
    out: Place = None
    """File for the page, .html; left out: report.html in the folder."""
    force: Switch = False
    """Overwrite a file that is no page of this program."""
    trust: Switch = False
    """Import the module of a problem that the folder names, which runs its code."""

    def run(self) -> None:
        """Write the page."""
        print(f"wrote {agents.report(self.folder, self.out, force=self.force, trust=self.trust)}")


@dataclass(frozen=True)
class Plot(Command):
    """Draw what `bandit-envs evaluate --out` has written.

    Examples:
      bandit-envs plot results/tao --metric misclassified --figure tao.svg
      bandit-envs plot results/tao --size column --figure column.pdf
    """

    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]]
    metric: Word = None
    """error_rate, score, total_pulls, or a metric of the problem; left out: what `evaluate` compares."""
    figure: Place = None
    """File for the figure: .png, .svg or .pdf; left out: METRIC.png in the folder."""
    log: Switch = False
    """Logarithmic axis of the metric."""
    title: Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")] = None
    """Title of the figure."""
    level: Annotated[float, arg(metavar="X")] = 0.95
    """Of the confidence bands."""
    size: Annotated[str, arg(metavar="screen|column|page")] = "screen"
    """For a paper, what the figure is to fill: a column or a page."""
    trust: Switch = False
    """Import the module of a problem that the folder names, which runs its code."""

    def run(self) -> None:
        """Write the figure."""
        from ..evaluation.plots import check_path
        from ..evaluation.rows import main_metric

        given = None if self.figure is None else check_path(self.figure)
        result = agents.results(self.folder, trust=self.trust)
        metric = self.metric or main_metric(result.runs)
        path = given or self.folder / f"{metric}.png"
        result.plot(metric, path=path, log=self.log, title=self.title, level=self.level, size=self.size)
        print(f"wrote {path}")
