"""The facts of a new session, as options and answers of a user tell them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bandit_envs import PROBLEMS

from .environment import import_problems, problem_options
from .options import from_json, note

__all__ = ["TOLD", "arms_of", "complete"]

# Parameters of problems that have defaults, which an experiment nearly always wants otherwise.
TOLD = {"Threshold": ("threshold",), "TopK": ("k",), "AllGood": ("epsilon",)}


def arms_of(words: tuple[str, ...]) -> int | list[str] | None:
    """How many arms, or their names, as the words of an option, or the lines of a file, tell."""
    if len(words) != 1:
        return list(words) or None
    if words[0].isdecimal():
        return int(words[0])
    path = Path(words[0])
    if not path.is_file():
        raise ValueError(
            f"--arms must be a number, two names or more, or a file with a name in each line, got {words[0]!r}"
        )
    return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]


def complete(facts: dict[str, Any], asked: Callable[[str], str]) -> None:
    """Ask for the facts that are missing, each until it is right.

    Args:
        facts: those there are; the others are added.
        asked: puts a question and returns what is typed.
    """

    def fill(name: str, question: str, read: Callable[[str], Any]) -> None:
        while name not in facts:
            text = asked(f"{question}: ").strip()
            try:
                facts[name] = read(text)
            except (ValueError, TypeError) as error:
                note(" ".join(str(error).split()))

    def problem(text: str) -> str:
        import_problems([text])
        PROBLEMS.find(text)
        return text

    if "problem" not in facts:
        print("\n".join(f"  {name:10} {PROBLEMS[name].asks}" for name in PROBLEMS))
        fill("problem", "which problem", problem)
    kind, options = PROBLEMS.find(facts["problem"]), problem_options()
    for name, sentence in kind.parameters.items():
        if name not in facts and _needed(kind, name):
            reader = options[name].kind or (lambda text, name=name: from_json(name, text))
            fill(name, f"{name}, {sentence.rstrip('.')}", reader)
    fill("arms", "arms (how many, or their names with commas, or a file)", lambda text: arms_of(_words(text)))
    if not {"range", "sigma", "binary"} & set(facts):
        told = "0 or 1", "a range, as 0 10", "noise, as sd 1.5"
        fill("measured", f"a measurement is ({'; '.join(told)})", _measured)
        facts |= facts.pop("measured")
    if "budget" not in facts and "delta" not in facts:
        fill("budget", "budget of measurements (empty: none)", lambda text: int(text) if text else None)
        fill("delta", "allowed error probability, as 0.05 (empty: none)", lambda text: float(text) if text else None)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _needed(kind: Any, name: str) -> bool:
    """Whether a problem cannot be made without this parameter, or nearly always wants it told."""
    empty = inspect.signature(kind).parameters[name].default is inspect.Parameter.empty
    return empty or name in TOLD.get(kind.name, ())


def _measured(text: str) -> dict[str, Any]:
    """What a line tells of a measurement.

    Raises:
        ValueError: naming the forms that it may have.
    """
    words = text.replace(",", " ").replace("..", " ").split()
    if text.strip() == "0 or 1" or words in (["binary"], ["0/1"]):
        return {"binary": True}
    try:
        if words[:1] == ["sd"] and len(words) == 2:
            return {"sigma": float(words[1])}
        low, high = map(float, words)
    except ValueError:
        raise ValueError(f"a measurement is '0 or 1', a range as '0 10', or noise as 'sd 1.5', not {text!r}") from None
    return {"range": (low, high)}
