"""Parses a command line into a subcommand, and runs it."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import inspect
import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypedDict

import gymnasium as gym
import tyro

import bandit_envs

from ..evaluation.progress import compilation_noted
from .benchmark import Benchmark
from .environment import EnvironmentCommand, EnvironmentOptions, import_problems, problem_options_type
from .evaluate import Evaluate, Record
from .list import List
from .options import Command, readings_noted
from .pictures import Play, Plot, Race, Report, Reproduce, Watch
from .session import New, Session
from .train import Train
from .verdicts import ABPlan, ABTest, Compare, Gate

_NAMED = List, Evaluate, Benchmark, Train, Record, Plot, Report, Watch, Race, Play, Reproduce, Session  # by class
COMMANDS: dict[str, type[Command]] = {kind.__name__.lower(): kind for kind in _NAMED}
COMMANDS |= {"ab-test": ABTest, "ab-plan": ABPlan, "gate": Gate, "compare": Compare}

DESCRIPTION = """Pure-exploration bandits: run the papers' algorithms and trained agents on the same episodes.

Examples:
  bandit-envs list
  bandit-envs evaluate Threshold --instance tao2019-1 --agents lsa apt uniform --figure tao.png
  bandit-envs train Threshold --seconds 60 --out ppo
  bandit-envs COMMAND --help
  bandit-envs --version"""


def parse(argv: Sequence[str] | None = None) -> Command:
    """The subcommand that the words `argv` ask for, by default of this process, with its options.

    Raises:
        SystemExit: with code 2 and a message for what cannot be read, with code 0 after `--help` and `--version`.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--version"]:
        print(f"bandit-envs {bandit_envs.__version__}")
        raise SystemExit(0)
    kinds: Any = None
    for name, kind in COMMANDS.items():
        form: Any = kind
        chosen, text = words[:1] == [name], inspect.getdoc(kind) or ""
        if issubclass(kind, (EnvironmentCommand, Session)):
            form = _with_problem_options(kind, words[1:]) if chosen else form[NoOptions]
        if not chosen:
            text = text.partition("\n")[0]  # the list of commands shows the first line of each
        one = Annotated[form, tyro.conf.subcommand(name, description=text)]
        kinds = one if kinds is None else kinds | one
    config = tyro.conf.OmitSubcommandPrefixes, tyro.conf.DisallowNone
    command: Command = tyro.cli(kinds, prog="bandit-envs", description=DESCRIPTION, args=words, config=config)
    return command


class NoOptions(TypedDict):
    """The problems' options in a command that is not run."""


def _with_problem_options(kind: Any, words: Sequence[str]) -> object:
    """A command on an environment, with the options of all problems, those included that the words name."""
    import_problems(words)
    owners = (New,) if kind is Session else (kind, EnvironmentOptions)
    taken = {one.name for owner in owners for one in dataclasses.fields(owner)}
    return kind[problem_options_type({*taken, "help"})]


@contextlib.contextmanager
def _current_folder() -> Iterator[None]:
    """Let modules of the current folder be imported, after those that are installed."""
    path, folder = sys.path.copy(), os.getcwd()
    if folder not in path and "" not in path:
        sys.path.append(folder)
    try:
        yield
    finally:
        sys.path[:] = path


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the code to exit with: that of the command, 2 after an error, 130 after Ctrl-C.

    Modules of the current folder can be named: "mine:Mine" is the class `Mine` of `mine.py`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":  # locale C
            stream.reconfigure(encoding="utf-8")
    try:
        with _current_folder():
            code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        return 0
    return code


def _run(argv: Sequence[str] | None) -> int:
    """Run a command line, and print its errors; returns the code that the process should exit with."""
    try:
        command = parse(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        with compilation_noted(getattr(command, "progress", True)), readings_noted():
            code = command.run()
    except BrokenPipeError:
        raise
    except Exception as error:
        if command.debug:
            raise
        text = str(error).partition(" was raised from the environment creator")[0]  # what gymnasium.make adds
        if not isinstance(error, (ValueError, TypeError, OSError, ImportError, gym.error.Error)):  # of a user's code
            text = f"{type(error).__name__}: {error} (--debug shows where it comes from)"
        text = "; ".join([text, *getattr(error, "__notes__", ())])
        print(f"bandit-envs: {' '.join(text.split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(": ".join(["bandit-envs: interrupted", *map(str, error.args)]), file=sys.stderr)
        return 130
    return code or 0
