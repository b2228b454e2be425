"""The environment of `evaluate` and `train`: its options.

The options of the problems are not written here: they are made from the parameters of the problems that are registered
when the command line is read, so that an installed package's problem, or one's own, brings its options along.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field
from typing import Annotated, Any, Generic, NamedTuple, TypedDict, TypeVar

from tyro.conf import OmitArgPrefixes, arg

from bandit_envs import PROBLEMS, Problem
from bandit_envs.instances import number_in

from ..evaluation.environment import DOTTED, environment_id, importable
from .options import TABLE, Command, Prices, TableOptions, from_json, prices_in
from .signatures import SHOWN

Options = TypeVar("Options", bound=Mapping[str, Any])

NAMED = re.compile(rf"{DOTTED}:[\w./-]+")  # "module:Class", or "module:id" with an id of Gymnasium
OF_DATA = {"shared": "shared", "range": "support", "value": "values", "arm": "arm", **{name: name for name in TABLE}}


def import_problems(words: Iterable[str]) -> None:
    """Register the problems that a command line names as "module:Class" or "module:id", so that it has their options.

    Errors are left: if the word is the environment, `environment_id` raises them again.
    """
    for word in words:
        if NAMED.fullmatch(word):
            with contextlib.suppress(Exception):
                environment_id(word)


class EnvironmentOptions(
    TableOptions,
    of="resolve",
    also="PureExplorationEnv from_table",
    without="problem actions observation",
    named={"range": "support", "value": "values"},
    optional=True,
):
    """What is not given is as the instance's source has it, else the default of the environment.

    `bandit-envs list instances` shows the names of instances. --cost is given once for each price.
    """

    data: Annotated[str | None, arg(metavar="FILE")] = None
    """A table of measurements, as CSV or Excel, in place of an instance. With columns name (or arm) and value it is
    long: a measurement in each row. With neither it is wide: a column for each arm, whose name is the head. With one
    of them alone it is refused. For other columns --arm and --value, or --instance "table(path='FILE', wide=True)"."""
    shared: bool | None = None
    range: Annotated[tuple[float, float] | None, arg(metavar="LOW HIGH", help_behavior_hint="")] = None
    arm: str | None = None
    value: Sequence[str] | None = None
    instance: Annotated[str | None, arg(metavar="JSON", help_behavior_hint="")] = None
    cost: Prices = ()
    batch: Annotated[int | None, arg(name="results-batch", metavar="N", help_behavior_hint="")] = None

    def env_kwargs(self) -> dict[str, object]:
        """Keyword arguments of the environment: those that were given."""
        given = {k: value for k, value in {**asdict(self), "cost": prices_in(self.cost)}.items() if value is not None}
        with contextlib.suppress(ValueError):
            given |= {"delay": number_in(given["delay"])} if "delay" in given else {}
        if "data" in given:
            if "instance" in given:
                raise ValueError(f"--data names the arms, and so does --instance {given['instance']}: give one of them")
            given["instance"] = {"table": {"path": given.pop("data")}}
            table = {OF_DATA[name]: given.pop(name) for name in OF_DATA if name in given}
            given["instance"]["table"] |= table
            return given
        for name in OF_DATA:
            if name in given:
                raise ValueError(f"--{name} is of the table that --data names; else write table(path=..)")
        if given.get("instance", "").lstrip().startswith("{"):
            given["instance"] = from_json("instance", given["instance"])
        return given


class ProblemOption(NamedTuple):
    """The option for a parameter that one or several problems have, and its help."""

    kind: type | None  # float, int, str or bool; None for other types, which are given as JSON
    text: str


def problem_options() -> dict[str, ProblemOption]:
    """The options for the parameters of all problems, by the name of the parameter."""
    kinds: dict[str, set[type | None]] = {}
    sentences: dict[str, dict[str, list[str]]] = {}  # who means what by a parameter
    for problem, row in importable(PROBLEMS):
        for name, sentence in row.parameters.items():
            kinds.setdefault(name, set()).add(_kind(row, name))
            sentences.setdefault(name, {}).setdefault(sentence, []).append(problem)
    options = {}
    for name, own in kinds.items():
        text = " ".join(f"{', '.join(problems)}: {sentence}" for sentence, problems in sentences[name].items())
        options[name] = ProblemOption(own.pop() if len(own) == 1 else None, text)
    return options


def _kind(problem: type[Problem], parameter: str) -> type | None:
    """The type of a parameter by its annotation, if it is a plain one."""
    annotation = inspect.signature(problem).parameters[parameter].annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    name = "str" if "str" in name.split(" | ") else name  # "int | str": the problem reads numbers by itself
    return next((kind for kind in (float, int, str, bool) if kind.__name__ == name), None)


def parameters_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that these options give, some of them as JSON."""
    known = problem_options()
    return {name: from_json(name, value) if known[name].kind is None else value for name, value in given.items()}


def problem_options_type(taken: Iterable[str]) -> object:
    """The type of a dict of the options that problems bring; one whose name is `taken` becomes `--problem-<name>`."""
    fields: dict[str, object] = {}
    for name, (kind, text) in problem_options().items():
        metavar, shown = SHOWN[kind.__name__][1] if kind else "JSON", f"problem-{name}" if name in taken else None
        fields[name] = Annotated[kind or str, arg(name=shown, metavar=metavar, help=text, help_behavior_hint="")]
    make: Any = TypedDict
    return make("ProblemOptions", fields, total=False)


class EnvironmentCommand(Command, Generic[Options]):
    """A subcommand that takes an environment."""

    environment: OmitArgPrefixes[EnvironmentOptions] = field(default_factory=EnvironmentOptions)
    problem: OmitArgPrefixes[Options] = field(default_factory=dict)  # type: ignore[assignment]
    """Each problem takes its own options and refuses others."""

    def env_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of the environment: those that were given."""
        return self.environment.env_kwargs() | parameters_of(self.problem)
