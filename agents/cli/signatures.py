"""Options that are parameters of functions: names, types, defaults and help are read from signatures and docstrings.

They are read in the source of a function, whose module is not imported: that of `train` needs PyTorch.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import Field, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from tyro.conf import FlagCreatePairsOff, Suppress, arg

# The functions and classes behind, and their modules.
SOURCES = {
    "PureExplorationEnv": "bandit_envs.envs.env",
    "resolve": "bandit_envs.envs.setting",
    "benchmark_tasks": "bandit_envs.envs.benchmark",
    "from_table": "bandit_envs.instances.instance",
    "measurements": "bandit_envs.instances.tables",
    "BetterThanControl": "bandit_envs.problems.control",
    "benchmark": "agents.benchmarking.run",
    "comparison": "agents.evaluation.report",
    "evaluate": "agents.evaluation.run",
    "play": "agents.evaluation.trace",
    "plot": "agents.evaluation.plots",
    "record": "agents.evaluation.trace",
    "results": "agents.evaluation.result",
    "reproduce": "agents.figures.reproduction",
    "gate": "agents.gating",
    "train": "agents.learned.training",
    "compare_logs": "agents.logs",
    "logs_table": "agents.logs",
    "race": "agents.pictures.race_page",
    "game": "agents.pictures.play_page",
    "report": "agents.pictures.report_page",
    "watch": "agents.pictures.watching",
    "ab_test": "agents.session.ab_test",
    "ab_test_plan": "agents.session.ab_test",
    "serve": "agents.session.page",
    "Rehearsal": "agents.session.rehearsal",
    "rehearse": "agents.session.rehearsal",
    "Session": "agents.session.session",
    "task_from_facts": "agents.session.setup",
}
# By the annotations of parameters the types of options, and how values are shown.
SHOWN: dict[str, tuple[Any, str | None]] = {
    "bool": (bool, None),
    "int": (int, "N"),
    "float": (float, "X"),
    **dict.fromkeys(["str", "str | int", "int | str", "float | str"], (str, "NAME")),
    "str | Path": (str, "PATH"),
    "Sequence[int]": (tuple[int, ...], "N [N ...]"),
    "Sequence[float]": (tuple[float, ...], "X [X ...]"),
    "Sequence[str]": (tuple[str, ...], "NAME [NAME ...]"),
    "Sequence[Mapping[str, Any]]": (str, "JSON"),
}
# Parameters, at the beginning of an entry of a docstring or of a sentence in it; and one that another function has.
HEADS, AS_FOR = re.compile(r"(?:^|(?<=\. ))((?:[a-z]\w*, )*[a-z]\w*(?: \(\w+\))?): "), re.compile(r"as for `(\w+)`")
SPELLED = {"; None: ": "; left out: ", "(None: ": "(left out: ", "None: ": "Left out: ", ", or None": ""}


def _head(name: str) -> Any:
    """The signature and the docstring of a function, a class or a method, "Class.method", parsed."""
    parts = name.split(".")
    top, *rest = SOURCES[parts[0]].split(".")
    text = Path(str(sys.modules[top].__file__)).parent.joinpath(*rest).with_suffix(".py").read_text(encoding="utf-8")
    for part in parts:
        text = re.split(rf"^(?= *(?:def|class) {part}\b)", text, maxsplit=1, flags=re.M)[1]
    return ast.parse(textwrap.dedent('"""'.join([*text.split('"""', 2)[:2], "\n"]))).body[0]


@functools.cache
def parameters(name: str) -> Mapping[str, tuple[str, ast.expr | None]]:
    """The parameters of a function by their names: annotation, and default, if there is one.

    So are facts, of which the docstring says the type, as "budget (int): ..".
    """
    own = (head := _head(name)).args
    defaults = [*[None] * (len(own.args) - len(own.defaults)), *own.defaults, *own.kw_defaults]
    pairs = zip([*own.args, *own.kwonlyargs], defaults, strict=True)
    facts = re.findall(r"^ {4}(\w+) \((\w+)\): ", ast.get_docstring(head) or "", re.M)
    return {one.arg: (ast.unparse(one.annotation), default) for one, default in pairs if one.annotation} | {
        fact: (f"{form} | None" if form != "bool" else form, ast.Constant(False if form == "bool" else None))
        for fact, form in facts
    }


@functools.cache
def documented(name: str) -> Mapping[str, str]:
    """What a docstring says of each parameter, or fact, as the help of an option."""
    found, text = dict[str, str](), ast.get_docstring(_head(name)) or ""
    for section in re.findall(r"^(?:Args|Keyword Args):\n((?:(?: .*)?(?:\n|$))+)", text, re.M):
        for entry in re.split(r"^    (?=\S)", section, flags=re.M):
            _, *parts = HEADS.split(" ".join(entry.split()))
            for names, text in zip(parts[::2], parts[1::2], strict=True):
                for python, shell in SPELLED.items():
                    text = text.replace(python, shell)
                for one in names.split(", "):
                    other = AS_FOR.match(text)
                    here = text[0].upper() + text[1:].rstrip()
                    found[one.partition(" ")[0]] = documented(other[1])[one] if other else here
    return found


def option(name: str) -> str:
    """How a parameter is written on the command line."""
    return f"--{name.replace('_', '-')}"


def kind(annotation: str, optional: bool = False) -> Any:
    """The type of an option for a parameter with this annotation; what is no annotation of one is left as it is."""
    one = annotation.removesuffix(" | None")
    if one not in SHOWN:
        return annotation
    form, shown = SHOWN[one]
    if optional or one != annotation:  # the help has no "(default: None)"
        return Annotated[form | None, arg(metavar=shown, help_behavior_hint="")]
    switch: Any = FlagCreatePairsOff[Annotated[bool, arg(help_behavior_hint="")]]
    return switch if form is bool else Annotated[form, arg(metavar=shown)]


class Documented:
    """A dataclass of options.

    Args:
        of: names of functions, whose parameters are options, but those in `without`. The class itself writes options
            whose type or default is another one, and those that no function has.
        hidden: inherited options that are none here.
        also: names of what is only read for its docstring.
        named: the parameters of options with names of their own.
        optional: no option has a default.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    named: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(
        cls,
        of: str = "",
        without: str = "",
        also: str = "",
        named: Mapping[str, str] = {},
        optional: bool = False,
        hidden: str = "",
    ) -> None:
        super().__init_subclass__()
        cls.named = {**cls.named, **named}
        kinds = {name: kind(annotation) for name, annotation in inspect.get_annotations(cls).items()}
        skipped = {"self", *without.split(), *cls.named.values()}
        for name, (annotation, default) in (pair for one in of.split() for pair in parameters(one).items()):
            if name not in skipped and name not in kinds:
                kinds[name] = kind(annotation, optional)
                if default is not None:
                    setattr(cls, name, None if optional else ast.literal_eval(default))
        for name in hidden.split():
            kinds[name] = Annotated[Any, Suppress]
            setattr(cls, name, None)
        texts = dict(pair for one in f"{of} {also}".split()[::-1] for pair in documented(one).items())
        options = {*getattr(cls, "__dataclass_fields__", ()), *kinds}
        for name in kinds:
            if (text := texts.get(cls.named.get(name, name))) is not None:
                text = re.sub(r"`(\w+)`", lambda word: option(word[1]) if word[1] in options else word[0], text)
                kinds[name] = Annotated[kinds[name], arg(help=text)]
        cls.__annotations__ = kinds
        dataclass(frozen=True, kw_only=True)(cls)

    def handed(self, *functions: str) -> dict[str, Any]:
        """The options that are parameters of these functions, by the names of these."""
        options = {self.named.get(name, name): name for name in self.__dataclass_fields__}
        names = dict.fromkeys(name for function in functions for name in parameters(function) if name in options)
        return {name: getattr(self, options[name]) for name in names}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
