"""Shared parts of the subcommands: types of options, their base class, and checks of options."""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import UseAppendAction, arg

from bandit_envs.instances import SAID, number_in

from .signatures import Documented

PLAIN = re.compile(r"[+-]?(\d+\.|\.\d+)([eE][+-]?\d+)?")  # numbers that JSON does not know
Prices = UseAppendAction[Annotated[tuple[str, ...], arg(metavar="PRICE | NAME=PRICE | row", help_behavior_hint="")]]


def prices_in(words: Sequence[str]) -> Any:
    """Prices of an option that is given once for each: a list, a dict by names, "row", or None where there are none."""
    if not words or tuple(words) == ("row",):
        return words[0] if words else None
    pairs = [word.rpartition("=") for word in words]
    found = {name or place: number_in(price) for place, (name, _, price) in enumerate(pairs)}
    return found if pairs[0][1] else [*found.values()]


class Command(Documented, ABC):
    """A subcommand."""

    debug: bool = False
    """Show the traceback of an error."""

    @abstractmethod
    def run(self) -> int | None:
        """Do the work and print the result; returns the code to exit with, None: 0."""


class TableOptions(Documented, of="measurements", without="table arm value binary metric"):
    """How a table in a file is read, where that is not recognised."""


TABLE = tuple(one.name for one in fields(TableOptions))


def from_json(option: str, text: str) -> object:
    """The value of an option that is given as JSON, or as a number such as .05."""
    try:
        return float(text) if PLAIN.fullmatch(text) else json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--{option} must be JSON, got {text!r:.200}: {error}") from None


def note(text: str) -> None:
    """Print a remark that is no result, on standard error."""
    print(f"note: {text}", file=sys.stderr)


class _Notes(logging.Handler):
    """Prints what is logged as notes, each once."""

    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        if (text := record.getMessage()) not in self.said:
            self.said += f"{text}\n"
            note(text)


@contextmanager
def readings_noted() -> Iterator[None]:
    """Print what is read of tables as notes."""
    handler = _Notes(logging.INFO)
    SAID.addHandler(handler)
    SAID.setLevel(logging.INFO)
    try:
        yield
    finally:
        SAID.removeHandler(handler)


@contextmanager
def noted() -> Iterator[None]:
    """Print warnings as notes, at the end."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        yield
    for one in said:
        note(str(one.message))


def refuse_to_overwrite(paths: Sequence[Path], force: bool, another: str = "--out") -> None:
    """Refuse to write where there is something already, unless `force` is set; an empty folder is nothing."""
    for path in paths:
        if not force and path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise ValueError(f"{path} is there already: give another {another}, or --force to overwrite it")
