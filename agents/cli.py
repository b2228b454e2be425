"""The command `bandit-envs`: a thin face over the functions of the package.

A subcommand is a dataclass: its fields are the options, its docstring is the help, its method `run` does the work.
"""

from __future__ import annotations

import ast
import inspect
import json
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

try:
    import tyro
except ImportError:
    print('bandit-envs: the command line needs tyro: pip install "bandit-envs[evaluation]"', file=sys.stderr)
    raise SystemExit(2) from None

import gymnasium as gym
from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional, arg

import agents
from bandit_envs import PROBLEMS, catalogue, instances, unknown

from .catalogue import ALIASES, LEARNED, recipe_of
from .evaluation.report import report, table
from .evaluation.run import check_environment

__all__ = ["COMMANDS", "main", "parse"]

Number = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Count = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Counts = Annotated[tuple[int, ...] | None, arg(metavar="N [N ...]", help_behavior_hint="")]
Flag = Annotated[bool | None, arg(help_behavior_hint="")]
Word = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Words = Annotated[tuple[str, ...] | None, arg(metavar="NAME [NAME ...]", help_behavior_hint="")]
Json = Annotated[str | None, arg(metavar="JSON", help_behavior_hint="")]
Switch = FlagCreatePairsOff[Annotated[bool, arg(help_behavior_hint="")]]
Shown = Annotated[Literal["environments", "instances", "agents"] | None, arg(help_behavior_hint="")]
Place = Annotated[Path | None, arg(metavar="PATH", help_behavior_hint="")]


def environment_id(name: str) -> str:
    """The id of an environment: "Threshold", "threshold" or "Threshold-v0" for "bandit_envs/Threshold-v0".

    Raises:
        ValueError: for an unknown name, with the nearest ones, and for environments of another kind.
    """
    if name in gym.registry or ":" in name:  # "module:Name-v0" imports the module, which registers it
        check_environment(name)
        return name
    ids = {}
    for row in catalogue.ENVIRONMENTS.values():
        for form in (row.problem, row.id.rpartition("/")[2], row.id):
            ids[_bare(form)] = row.id
    if _bare(name) not in ids:
        raise unknown("environment", name, {*catalogue.ENVIRONMENTS, *ids.values()})
    return ids[_bare(name)]


def _bare(name: str) -> str:
    """A name without what one types differently every time: "top-k" is "TopK"."""
    return name.lower().replace("-", "").replace("_", "")


def _from_json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--{option} must be JSON, got {text!r:.200}: {error}") from None


def _note(text: str) -> None:
    """Tell something that is no result."""
    print(f"note: {text}", file=sys.stderr)


def _refuse_to_overwrite(paths: Sequence[Path], force: bool) -> None:
    """Refuse where a result is in the way.

    Raises:
        ValueError: naming it.
    """
    for path in paths:
        if not force and path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise ValueError(f"{path} is there already: give another --out, or --force to overwrite it")


@dataclass(frozen=True, kw_only=True)
class EnvironmentOptions:
    """What is not given is as the instance's source has it, else the default of the environment."""

    instance: Json = None
    """A name (see `bandit-envs list instances`), possibly with parameters as in "sampler(arms=20)", or an instance in
    JSON form."""
    budget: Count = None
    """Pulls per episode."""
    delta: Number = None
    """Allowed error probability, for agents that stop by themselves."""
    max_pulls: Count = None
    """Safety cap: episodes that reach it are truncated."""
    threshold: Number = None
    """Threshold: the arms wanted have at least this mean."""
    tolerance: Number = None
    """Threshold, Feasible: arms nearer to the boundary may be answered either way."""
    epsilon: Number = None
    """AllGood: distance from the best arm. TopK, BestArm: tolerance of the criterion."""
    multiplicative: Flag = None
    """AllGood: epsilon is a fraction of the best mean."""
    slack: Number = None
    """AllGood: arms this much worse than epsilon may be answered."""
    k: Count = None
    """TopK: size of the answer."""
    criterion: Word = None
    """TopK, BestArm: aggregate, each or exact."""
    A: Json = None
    """Feasible: matrix of the constraints A x <= b, as "[[1, 0], [0, 1]]"."""
    b: Json = None
    """Feasible: right-hand side, as "[0.5, 0.5]"."""
    normalise: Flag = None
    """Feasible: scale the rows of A to norm 1."""
    pull_cost: Number = None
    """Price of a pull, in units of the score."""
    reward: Word = None
    """What the end of an episode is worth: score or correct."""
    shuffle_arms: Flag = None
    """Put the arms in a random order in each episode."""
    pull: Word = None
    """Feasible: what a pull samples, an arm or one coordinate of it."""

    def env_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of the environment: what was given."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        for name in ("A", "b"):
            if name in given:
                given[name] = _from_json(name, given[name])
        if given.get("instance", "").lstrip().startswith("{"):
            given["instance"] = _from_json("instance", given["instance"])
        return given


@dataclass(frozen=True, kw_only=True)
class Debug:
    debug: Switch = False
    """Show where an error comes from."""


@dataclass(frozen=True)
class List(Debug):
    """Show what there is: environments, instances, agents, each with its source.

    examples:
      bandit-envs list
      bandit-envs list agents
    """

    what: Positional[Shown] = None
    """What to show; all three if left out."""

    def run(self) -> None:
        """Print the tables."""
        width = shutil.get_terminal_size((120, 24)).columns
        tables = {"environments": _environments, "instances": _instances, "agents": _agents}
        chosen = list(tables) if self.what is None else [self.what]
        print("\n\n".join(table(*tables[name](), width=width) for name in chosen))


def _environments() -> tuple[list[str], list[list[str]]]:
    rows = [
        [row.id, row.asks, ", ".join(PROBLEMS[row.problem].parameters), row.source]
        for row in catalogue.ENVIRONMENTS.values()
    ]
    return ["environment", "the answer", "parameters", "source"], rows


def _instances() -> tuple[list[str], list[list[str]]]:
    rows = []
    for name, made_for, kind in (("sampler", "any", instances.Sampler), ("polyhedra", "Feasible", instances.Polyhedra)):
        parameters = ", ".join(inspect.signature(kind).parameters)
        rows.append([name, made_for, f"fresh arms in each episode; parameters {parameters}"])
    rows += [[name, row.problem, row.source] for name, row in instances.INSTANCES.items()]
    return ["instance", "made for", "source"], rows


def _listed(problems: Collection[str]) -> str:
    """Their names, or that they are all."""
    return "all" if set(problems) == set(PROBLEMS) else ", ".join(problems)


def _agents() -> tuple[list[str], list[list[str]]]:
    rows = []
    for name in agents.names():
        row, also = recipe_of(name), [alias for alias, real in ALIASES.items() if real == name]
        needs = ["the budget or a price"] if name in LEARNED else row.needs
        rows.append([", ".join([name, *also]), _listed(row.solves), " and ".join(needs) or "-", row.source])
    return ["agent", "problems", "needs", "source"], rows


@dataclass(frozen=True)
class Evaluate(Debug):
    """Run agents on the same episodes of an environment; print their results, and compare them in pairs.

    examples:
      bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt uniform --at 200 500 1000
      bandit-envs evaluate bandit_envs/Threshold-v0 --instance captions-651 --threshold 1.5 \\
          --agents lsa "apt(tolerance=0.05)" uniform --budget 500000 --episodes 16
      bandit-envs evaluate TopK --instance "sampler(arms=20)" --k 5 --budget 400 --out results/top-k
      bandit-envs evaluate Threshold --budget 200 --agents results/ppo.zip lsa uniform --figure results/ppo.png
    """

    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]]
    """A name (see `bandit-envs list environments`), as Threshold or bandit_envs/Threshold-v0."""
    agents: Words = None
    """Names (see `bandit-envs list agents`), possibly with parameters, and paths of saved models (.zip). Left out: all
    that can run, but no networks."""
    episodes: Annotated[int, arg(metavar="N")] = 1000
    """Episodes, the same for all agents."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed: the same seed gives the same numbers."""
    at: Counts = None
    """Numbers of pulls at which the answer is scored too."""
    budgets: Counts = None
    """Several budgets: one run for each."""
    batch: Count = None
    """Episodes side by side; the result does not depend on it."""
    metric: Word = None
    """What is shown, compared and drawn: error_rate, score, total_pulls, or a metric of the problem."""
    reference: Word = None
    """The agent that the others are compared with; left out: the first."""
    out: Place = None
    """Folder for episodes.parquet, pulls.parquet, summary.csv and settings.json."""
    figure: Place = None
    """File for a figure: .png, .svg or .pdf."""
    force: Switch = False
    """Overwrite what is in the folder."""
    progress: Switch = True
    """No progress bar."""
    environment: OmitArgPrefixes[EnvironmentOptions] = field(default_factory=EnvironmentOptions)

    def run(self) -> None:
        """Check all that can be checked, run the agents, print and write the results."""
        from .evaluation import plots
        from .evaluation.result import check_metric

        env_id, kwargs = environment_id(self.env_id), self.environment.env_kwargs()
        first = kwargs | ({"budget": min(self.budgets)} if self.budgets else {})
        env = gym.make(env_id, actions="full", disable_env_checker=True, **first)
        problem: str = env.unwrapped.task.problem  # type: ignore[attr-defined]
        if self.metric is not None:
            check_metric(problem, self.metric)
        if self.figure is not None:
            plots.check_path(self.figure)
        if self.out is not None:
            _refuse_to_overwrite([self.out], self.force)
        names = _all_that_can_run(problem, env) if self.agents is None else list(self.agents)
        if self.reference is not None and self.reference not in names:
            raise ValueError(f"--reference must be one of the agents {', '.join(names)}, got {self.reference!r}")
        result = agents.evaluate(
            names,
            env_id,
            episodes=self.episodes,
            seed=self.seed,
            at=self.at,
            budgets=self.budgets,
            env_kwargs=kwargs,
            batch=self.batch,
            progress=None if self.progress else False,
        )
        print(report(result, self.metric, self.reference))
        written = [] if self.out is None else [result.save(self.out)]
        if self.figure is not None:
            result.plot(self.metric or "error_rate", path=self.figure)
            written.append(self.figure)
        if written:
            print(f"\nwrote {' and '.join(map(str, written))}")


def _all_that_can_run(problem: str, env: Any) -> list[str]:
    """The agents that solve the problem and accept this environment; a note tells why others are left out.

    Networks are, for their time: at each pull they look at all arms.

    Raises:
        ValueError: if there is none.
    """
    able = []
    for name in agents.names(problem):
        if name in LEARNED:
            _note(f"left out: {name} is a network and takes long; give it by name")
            continue
        try:
            agents.make(name, env)
        except ValueError as error:
            _note(f"left out: {error}")
        else:
            able.append(name)
    if not able:
        raise ValueError(f"none of the agents that solve {problem} can run on this environment")
    return able


@dataclass(frozen=True)
class Train(Debug):
    """Train an agent by reinforcement learning, or evolve an index; write the model and its card.

    What only one algorithm has is given by --hyperparameters: `population` of evolved, `learning_rate` of the others.

    examples:
      bandit-envs train Threshold --seconds 60 --out results/ppo
      bandit-envs train Threshold --algorithm ppo --instance "sampler(arms=20)" --budget 400 --steps 1000000 \\
          --hyperparameters learning_rate=0.001
      bandit-envs train TopK --algorithm evolved --instance "sampler(arms=20)" --k 5 --budget 1000 --seconds 120
      bandit-envs train Threshold --mix '[{"budget": 200}, {"budget": 1000, "pulls_per_action": 8}]' --resume
    """

    env_id: Positional[Annotated[str, arg(metavar="ENVIRONMENT")]] = "bandit_envs/Threshold-v0"
    """A name (see `bandit-envs list environments`), as Threshold or bandit_envs/Threshold-v0."""
    algorithm: Annotated[str, arg(metavar="NAME")] = "ppo"
    """ppo, a2c, dqn, maskable-ppo or recurrent-ppo of Stable-Baselines3, or evolved: an index tuned by CMA-ES."""
    steps: Count = None
    """Pulls to train for; of evolved, generations."""
    seconds: Number = None
    """Time to train for: on the clock, of evolved on the processor."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed."""
    num_envs: Count = None
    """Episodes side by side."""
    mix: Json = None
    """Environments to learn on side by side: a list of what each adds to the options below."""
    resume: Switch = False
    """Go on where an earlier call with this --out was killed."""
    hyperparameters: Annotated[tuple[str, ...], arg(metavar="KEY=VALUE ...", help_behavior_hint="")] = ()
    """Of the algorithm."""
    out: Place = None
    """Path of the model without its suffix: the model is OUT.zip, its card OUT.json; left out: results/ALGORITHM."""
    force: Switch = False
    """Overwrite them."""
    progress: Switch = True
    """No progress bar."""
    environment: OmitArgPrefixes[EnvironmentOptions] = field(default_factory=EnvironmentOptions)

    def run(self) -> None:
        """Train, and say where the model is."""
        env_id, kwargs = environment_id(self.env_id), self.environment.env_kwargs()
        gym.make(env_id, disable_env_checker=True, **kwargs).close()  # a bad keyword comes out at once
        out = Path("results") / self.algorithm if self.out is None else self.out
        out = out.with_suffix("") if out.suffix == ".zip" else out
        model, card = (out.with_name(out.name + suffix) for suffix in (".zip", ".json"))
        given = dict(_assignment(text) for text in self.hyperparameters)
        if self.mix is not None:
            given["mix"] = _from_json("mix", self.mix)
        common: dict[str, Any] = {
            "seconds": self.seconds,
            "seed": self.seed,
            "env_kwargs": kwargs,
            "out": out,
            "progress": None if self.progress else False,
        }
        if self.algorithm == "evolved":
            _refuse_to_overwrite([card], self.force)
            if self.resume or self.num_envs is not None:
                raise ValueError("evolved takes neither --resume nor --num-envs")
            _evolve(env_id, generations=self.steps, **common, **given)
            print(f"wrote {card}")
            return
        _refuse_to_overwrite([model, card], self.force)
        if self.num_envs is not None:
            given["num_envs"] = self.num_envs
        from .learned.training import train

        train(self.algorithm, env_id, steps=self.steps, resume=self.resume, **common, **given)
        print(f"wrote {model} and {card}")


def _evolve(env_id: str, **given: Any) -> None:
    """`agents.evolve`, for ten minutes if nothing else is said.

    Raises:
        ValueError: for a hyperparameter that it does not have.
    """
    known = set(inspect.signature(agents.evolve).parameters)
    if surplus := sorted(set(given) - known):
        raise unknown("hyperparameter of evolved", surplus[0], known)
    if given["seconds"] is None and given["generations"] is None:
        given["seconds"] = 600.0
    agents.evolve(env_id, **given)


def _assignment(text: str) -> tuple[str, Any]:
    """The name and the value of "name=value", a Python literal or else a word.

    Raises:
        ValueError: for another form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--hyperparameters takes name=value, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


@dataclass(frozen=True)
class Plot(Debug):
    """Draw what `bandit-envs evaluate --out` has written.

    examples:
      bandit-envs plot results/tao --metric misclassified --figure results/tao.svg
      bandit-envs plot results/tao --log
    """

    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]]
    """The folder."""
    metric: Annotated[str, arg(metavar="NAME")] = "error_rate"
    """error_rate, score, total_pulls, or a metric of the problem."""
    figure: Place = None
    """File for the figure: .png, .svg or .pdf; left out: METRIC.png in the folder."""
    log: Switch = False
    """Logarithmic axis of the metric."""
    title: Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")] = None
    """Title of the figure."""
    level: Annotated[float, arg(metavar="X")] = 0.95
    """Of the confidence bands."""

    def run(self) -> None:
        """Write the figure."""
        from .evaluation.plots import check_path

        path = self.folder / f"{self.metric}.png" if self.figure is None else check_path(self.figure)
        result = agents.Evaluation.load(self.folder)
        result.plot(self.metric, path=path, log=self.log, title=self.title, level=self.level)
        print(f"wrote {path}")


@dataclass(frozen=True)
class Reproduce(Debug):
    """Run a figure of a paper; print a verdict on everything that the paper claims of it.

    examples:
      bandit-envs reproduce tao2019-figure-1 --episodes 500 --panels "Setup 1"
      bandit-envs reproduce tao2019-figure-1 --out results/tao2019-figure-1
    """

    figure: Positional[Annotated[str, arg(metavar="FIGURE")]]
    """Its name, as tao2019-figure-1."""
    episodes: Count = None
    """Runs per point; left out: as many as the paper's."""
    panels: Annotated[tuple[str, ...] | None, arg(metavar="TITLE [TITLE ...]", help_behavior_hint="")] = None
    """Panels to run; left out: all."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed."""
    out: Place = None
    """Folder for the figure (.png, .svg), verdicts.csv, scorecard.csv, points.csv and settings.json."""
    force: Switch = False
    """Overwrite what is in the folder."""
    progress: Switch = True
    """No progress bar."""

    def run(self) -> None:
        """Run the panels, print the scorecard, write the results."""
        from . import figures

        if self.out is not None:
            _refuse_to_overwrite([self.out], self.force)
        result = figures.reproduce(
            self.figure,
            episodes=self.episodes,
            seed=self.seed,
            panels=self.panels,
            progress=None if self.progress else False,
        )
        for title, reason in result.skipped.items():
            print(f"skipped {title}: {reason}", file=sys.stderr)
        card = result.scorecard()
        print(f"{result.figure.source}: at how many points a claim came out, is open, did not come out")
        rows = [[str(value) for value in row] for row in card.itertuples(index=False)]
        print(table([str(name) for name in card.columns], rows))
        if self.out is not None:
            print(f"\nwrote {result.save(self.out)}")


Command = List | Evaluate | Train | Plot | Reproduce
COMMANDS: dict[str, type[Command]] = {
    "list": List,
    "evaluate": Evaluate,
    "train": Train,
    "plot": Plot,
    "reproduce": Reproduce,
}

DESCRIPTION = """Pure-exploration bandits: run the papers' algorithms and trained agents on the same episodes.

examples:
  bandit-envs list
  bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt uniform --figure results/tao.png
  bandit-envs train Threshold --seconds 60 --out results/ppo
  bandit-envs COMMAND --help"""


def parse(argv: Sequence[str] | None = None) -> Command:
    """The subcommand that a command line asks for, with its options.

    Args:
        argv: words after the command's name; None: those of this process.

    Raises:
        SystemExit: with code 2 and a message for what cannot be read, with code 0 after `--help`.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    kinds: Any = None
    kind: Any
    for name, kind in COMMANDS.items():
        text = inspect.getdoc(kind) or ""
        if words[:1] != [name]:
            text = text.partition("\n")[0]  # what the list of commands shows
        one = Annotated[kind, tyro.conf.subcommand(name, description=text)]
        kinds = one if kinds is None else kinds | one
    command: Command = tyro.cli(
        kinds,
        prog="bandit-envs",
        description=DESCRIPTION,
        args=words,
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.DisallowNone),
    )
    return command


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the code that the process should exit with: 0, or 2 after an error.

    Args:
        argv: words after the command's name; None: those of this process.
    """
    try:
        command = parse(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        command.run()
    except (ValueError, TypeError, OSError, ImportError, gym.error.Error) as error:
        if command.debug:
            raise
        text = str(error).partition(" was raised from the environment creator")[0]  # what gymnasium.make adds
        print(f"bandit-envs: {' '.join(text.split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bandit-envs: interrupted", file=sys.stderr)
        return 130
    return 0
