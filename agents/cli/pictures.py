"""`bandit-envs watch`, `race`, `play`, `report`, `plot` and `reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, Positional, arg

import agents
from bandit_envs import INSTANCES
from bandit_envs.kernels import parse_call

from ..evaluation.environment import environment_id
from .environment import EnvironmentCommand, EnvironmentOptions, Options
from .options import Command, note

Folder = Positional[Annotated[Path, arg(metavar="FOLDER")]]


class EpisodeCommand(EnvironmentCommand[Options], of="play", without="agent env_id env_kwargs at"):
    """A subcommand that plays one episode."""

    instance_name: Positional[Annotated[str, arg(metavar="INSTANCE")]]
    """The name of an instance, as tao2019-1, for the problem that it was made for; or of an environment, as
    Threshold, whose --instance may be given then."""

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
        return {"env_id": environment_id(env_id), "env_kwargs": kwargs}


class Watch(EpisodeCommand[Options], of="watch", without="env_id env_kwargs out"):
    """Show an agent in one episode, in the terminal or as an animated GIF.

    Examples:
      bandit-envs watch tao2019-1 lsa
      bandit-envs watch TopK lucb --instance "sampler(arms=20)" --k 5 --delta 0.1 --seed 3
      bandit-envs watch tao2019-1 apt --gif apt.gif
    """

    agent: Positional[Annotated[str, arg(metavar="AGENT")]]
    color: bool = True

    def run(self) -> None:
        agents.watch(**self.handed("watch") | self.played() | {"color": None if self.color else False})
        if self.gif is not None:
            print(f"wrote {self.gif}")


class Race(EpisodeCommand[Options], of="race", without="env_id env_kwargs"):
    """Let agents play the same episode, and write a page that plays it in the browser: one HTML file.

    Examples:
      bandit-envs race tao2019-1 --agents lsa uniform --out race.html
    """

    agents: Annotated[tuple[str, ...], arg(metavar="NAME [NAME ...]")]
    out: Annotated[Path, arg(metavar="PATH")]

    def run(self) -> None:
        agents.race(**self.handed("race") | self.played() | {"agents": list(self.agents)})
        print(f"wrote {self.out}")


class GameOptions(EnvironmentOptions, hidden="batch cost delay delta max_pulls pull pull_cost stop"):
    """What is not given is as the instance has it, one of `bandit-envs list instances`; the budget is 100 pulls."""


class Play(EnvironmentCommand[Options], of="game", without="env_id env_kwargs", named={"html": "out", "id": "env_id"}):
    """Write a page on which a person plays a problem, and is scored beside agents on the same samples: one HTML file.

    Examples:
      bandit-envs play --problem TopK --html play.html
    """

    id: Annotated[str, arg(name="problem", metavar="PROBLEM")]
    html: Annotated[Path, arg(metavar="PATH")]
    agent: Annotated[str | None, arg(metavar="AGENT", help_behavior_hint="")] = None
    environment: OmitArgPrefixes[GameOptions] = GameOptions()

    def run(self) -> None:
        agents.game(**self.handed("game") | {"env_kwargs": self.env_kwargs()})
        print(f"wrote {self.html}")


class Report(Command, of="report"):
    """Write a page of an evaluation, or of a figure that was reproduced: one HTML file.

    Examples:
      bandit-envs report results/tao
      bandit-envs report results/tao2019-figure-1 --out figure.html
    """

    folder: Folder

    def run(self) -> None:
        print(f"wrote {agents.report(**self.handed('report'))}")


class Plot(
    Command, of="plot results", without="evaluation transform label ax", named={"figure": "path", "folder": "out"}
):
    """Draw what `bandit-envs evaluate --out` has written.

    Without --figure the picture is METRIC.png in the folder.

    Examples:
      bandit-envs plot results/tao --metric misclassified --figure tao.svg
      bandit-envs plot results/tao --size column --figure column.pdf
    """

    folder: Folder
    figure: str | Path | None = None

    def run(self) -> None:
        from ..evaluation.plots import check_path
        from ..evaluation.rows import main_metric

        given = None if self.figure is None else check_path(self.figure)
        result = agents.results(self.folder, trust=self.trust)
        metric = self.metric or main_metric(result.runs)
        path = given or self.folder / f"{metric}.png"
        result.plot(**self.handed("plot") | {"metric": metric, "path": path})
        print(f"wrote {path}")


class Reproduce(Command, of="reproduce"):
    """Run a figure of a paper, or all of a paper's; print a verdict on everything that the paper claims of it.

    With --out each block of episodes is kept in the folder, and not run again: a run that was killed goes on where it
    was, and tables and pictures are made again from what is there.

    Examples:
      bandit-envs reproduce tao2019-figure-1 --episodes 500 --panels "Setup 1"
      bandit-envs reproduce tao2019-figure-1 --out results/tao2019-figure-1
      bandit-envs reproduce mason2020 --out results/mason2020
    """

    figure: Positional[Annotated[str, arg(metavar="FIGURE")]]
    docs: str | Path | None = None
    """Folder of the documentation, whose pages of the figure are written again."""
    progress: bool = True

    def run(self) -> None:
        from .. import figures
        from ..figures.pages import check_docs, claims_for_terminal

        if self.docs is not None:
            check_docs(Path(self.docs))
            if self.panels is not None:
                raise ValueError("--docs shows whole figures: leave out --panels")
        how = {name: value for name, value in self.handed("reproduce").items() if name not in ("figure", "panels")}
        if self.figure in figures.PAPERS:
            if self.panels is not None:
                raise ValueError(f"{self.figure} has several figures: name one of them to choose its --panels")
            done = figures.reproduce_paper(self.figure, **how)
        else:
            done = [figures.reproduce(figures.named(self.figure), panels=self.panels, **how)]
        for result in done:
            for title, reason in result.skipped.items():
                note(f"skipped {title}: {reason}")
        print(claims_for_terminal([(result.figure, result.verdicts) for result in done]))
        if self.out is not None:
            print(f"\nwrote {self.out}")
        if self.docs is not None:
            for result in done:
                print(f"wrote {result.save_docs(Path(self.docs))}")
