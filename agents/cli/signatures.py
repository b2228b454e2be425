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

from tyro.conf import FlagCreatePairsOff, arg

# How values are written. Options that may be left out have `help_behavior_hint=""`: no "(default: None)" in the help.
Whole = Annotated[int, arg(metavar="N")]
Count = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Counts = Annotated[tuple[int, ...] | None, arg(metavar="N [N ...]", help_behavior_hint="")]
Number = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Numbers = Annotated[tuple[float, ...] | None, arg(metavar="X [X ...]", help_behavior_hint="")]
Word = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Words = Annotated[tuple[str, ...] | None, arg(metavar="NAME [NAME ...]", help_behavior_hint="")]
Json = Annotated[str | None, arg(metavar="JSON", help_behavior_hint="")]
Place = Annotated[str | None, arg(metavar="PATH", help_behavior_hint="")]
Flag = Annotated[bool | None, arg(help_behavior_hint="")]
Switch = FlagCreatePairsOff[Annotated[bool, arg(help_behavior_hint="")]]
KINDS: dict[str, Any] = {  # by the annotations of parameters
    "int": Whole,
    "float": Annotated[float, arg(metavar="X")],
    "str": Annotated[str, arg(metavar="NAME")],
    "bool": Switch,
    "int | None": Count,
    "float | None": Number,
    "str | None": Word,
    "bool | None": Flag,
    **dict.fromkeys(["str | int | None", "int | str | None", "float | str | None"], Word),
    "str | Path | None": Place,
    "Sequence[int] | None": Counts,
    "Sequence[float] | None": Numbers,
    "Sequence[str] | None": Words,
    "Sequence[Mapping[str, Any]] | None": Json,
}
AS_FOR = "as for `"  # begins what another function documents
SPELLED = {"; None: ": "; left out: ", "(None: ": "(left out: ", "None: ": "Left out: ", ", or None": ""}
# Parameters, at the beginning of an entry of a docstring or of a sentence in it.
HEADS = re.compile(r"(?:^|(?<=\. ))((?:[a-z]\w*, )*[a-z]\w*): ")


def _head(where: str) -> Any:
    """The signature and the docstring of "module:function" or "module:Class.method", parsed."""
    module, _, path = where.partition(":")
    top, *rest = module.split(".")
    text = Path(str(sys.modules[top].__file__)).parent.joinpath(*rest).with_suffix(".py").read_text(encoding="utf-8")
    for name in path.split("."):
        text = re.split(rf"^(?= *(?:def|class) {name}\b)", text, maxsplit=1, flags=re.M)[1]
    return ast.parse(textwrap.dedent('"""'.join([*text.split('"""', 2)[:2], "\n"]))).body[0]


@functools.cache
def parameters(where: str) -> Mapping[str, tuple[str, ast.expr | None]]:
    """The parameters of a function by their names: annotation, and default, if there is one. A class has none here."""
    if not isinstance(head := _head(where), ast.FunctionDef):
        return {}
    own = [*head.args.posonlyargs, *head.args.args]
    defaults = [*[None] * (len(own) - len(head.args.defaults)), *head.args.defaults, *head.args.kw_defaults]
    pairs = zip([*own, *head.args.kwonlyargs], defaults, strict=True)
    return {one.arg: (ast.unparse(one.annotation), default) for one, default in pairs if one.annotation}


@functools.cache
def documented(where: str) -> Mapping[str, str]:
    """What a docstring says of each parameter, or fact, as the help of an option."""
    found = dict[str, str]()
    for section in re.findall(
        r"^(?:Args|Facts):\n((?:(?: .*)?(?:\n|$))+)", ast.get_docstring(_head(where)) or "", re.M
    ):
        for entry in re.split(r"^    (?=\S)", section, flags=re.M):
            _, *parts = HEADS.split(" ".join(entry.split()))
            for names, text in zip(parts[::2], parts[1::2], strict=True):
                for python, shell in SPELLED.items():
                    text = text.replace(python, shell)
                if not text.startswith(AS_FOR):
                    found |= dict.fromkeys(names.split(", "), text[0].upper() + text[1:].rstrip())
    return found


def _option(name: str) -> str:
    """How a parameter is written on the command line."""
    return f"--{name.replace('_', '-')}"


class Documented:
    """A dataclass of options.

    Args:
        of: functions, and classes, "module:name": those parameters are options that `without` does not name. The class
            itself writes options whose type or default is another one, and those that no function has.
        also: functions and classes of which the docstrings alone are read.
        named: the parameters of options with names of their own.
        optional: no option has a default.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    named: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(
        cls,
        of: tuple[str, ...] = (),
        without: str = "",
        also: tuple[str, ...] = (),
        named: Mapping[str, str] | None = None,
        optional: bool = False,
        **rest: Any,
    ) -> None:
        super().__init_subclass__(**rest)
        cls.named = {**cls.named, **(named or {})}
        texts, own, kinds = dict[str, str](), inspect.get_annotations(cls), dict[str, Any]()
        skipped = {*without.split(), *own, *cls.named.values()}
        for where in (*of, *also):
            texts = {**documented(where), **texts}
        for where in of:
            for name, (annotation, default) in parameters(where).items():
                if name in skipped or name in kinds:
                    continue
                kinds[name] = KINDS[f"{annotation.removesuffix(' | None')} | None" if optional else annotation]
                if default is not None:
                    setattr(cls, name, None if optional else ast.literal_eval(default))
        kinds = {**own, **kinds}
        options = {*getattr(cls, "__dataclass_fields__", ()), *kinds}
        for option in kinds:
            if (text := texts.get(cls.named.get(option, option))) is not None:
                text = re.sub(r"`(\w+)`", lambda word: _option(word[1]) if word[1] in options else word[0], text)
                kinds[option] = Annotated[kinds[option], arg(help=text)]
        cls.__annotations__ = kinds
        dataclass(frozen=True, kw_only=True)(cls)

    def handed(self, *functions: str) -> dict[str, Any]:
        """The options that are parameters of these functions, by the names of these."""
        options = {self.named.get(option, option): option for option in self.__dataclass_fields__}
        names = dict.fromkeys(name for where in functions for name in parameters(where) if name in options)
        return {name: getattr(self, options[name]) for name in names}

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
