"""The old spelling `law` of `distribution`: it stays valid in calls, in classes and in files of earlier versions."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Collection, Mapping
from types import FunctionType
from typing import Any, TypeVar

T = TypeVar("T")
SPELLINGS = OLD, NEW = "law", "distribution"


def spelled(given: Mapping[str, Any], taken: Collection[str] = (NEW,)) -> dict[str, Any]:
    """Keywords or a JSON form, in the spelling of the names that are taken; a ValueError where both are given."""
    if OLD in given and NEW in given and not (OLD in taken and NEW in taken):
        both = f"{NEW}={given[NEW]!r:.80} and {OLD}={given[OLD]!r:.80}"
        raise ValueError(f"{both} are two spellings of one thing: leave out {OLD}, the old one")
    other = {one: two for one, two in ((OLD, NEW), (NEW, OLD)) if one not in taken and two in taken}
    return {other.get(name, name): value for name, value in given.items()}


def respelled(value: Any, word: str = NEW) -> Any:
    """A JSON form with one spelling throughout, also in texts such as "top-two(law='gaussian')", for comparisons."""
    if isinstance(value, Mapping):
        return {word if key in SPELLINGS else respelled(key, word): respelled(x, word) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [respelled(x, word) for x in value]
    return re.sub(rf"\b({OLD}|{NEW})(?=\s*=)", word, value) if isinstance(value, str) else value


def both_spellings(made: T) -> T:
    """A function, or a class, that takes a keyword of either spelling, whichever its signature has."""
    if isinstance(made, type):
        made.__init__ = both_spellings(made.__init__)  # type: ignore[misc]
        return made
    taken = inspect.signature(made).parameters  # type: ignore[arg-type]
    if (OLD in taken) == (NEW in taken):
        return made

    @functools.wraps(made)  # type: ignore[arg-type]
    def called(*arguments: Any, **keywords: Any) -> Any:
        return made(*arguments, **spelled(keywords, taken))  # type: ignore[operator]

    return called  # type: ignore[return-value]


class Spelled:
    """Base of classes whose methods, and those of their subclasses, take both spellings."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, value in list(vars(cls).items()):
            if isinstance(value, FunctionType):
                setattr(cls, name, both_spellings(value))


class _Old:
    """The attribute `distribution` of a class and of its objects, under its old name."""

    def __get__(self, one: Any, kind: type) -> Any:
        return getattr(kind if one is None else one, NEW)


class Distributed(Spelled):
    """Base of classes with the attribute `distribution`; subclasses may define it, and pickles hold it, as `law`."""

    law = _Old()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if OLD in vars(cls):
            setattr(cls, NEW, spelled({name: vars(cls)[name] for name in SPELLINGS if name in vars(cls)})[NEW])
            delattr(cls, OLD)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(spelled(state))
