"""Facts of a session that change neither the task nor its certificate: how it is shown, and how it is carried out.

Each is a fact beside those of the task, `title="Which dye?"`; a store keeps them under `wishes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bandit_envs.kernels import choice, flag

from .design import count, people, wells

MOST_LETTERS = 200


def line(name: str, value: Any) -> str:
    """A text in one line."""
    if not isinstance(value, str) or not value.strip().isprintable() or not 0 < len(value.strip()) <= MOST_LETTERS:
        raise ValueError(f"{name} must be text in one line, of {MOST_LETTERS} letters at most, got {value!r:.200}")
    return value.strip()


# What checks each of them, and returns it as JSON can hold it.
WISHES: dict[str, Callable[[str, Any], Any]] = {
    "title": line,  # what the experiment is about
    "unit": line,  # of a measurement, "mg / l"
    "noun": line,  # what an arm is, "compound"
    "plate": count,  # wells of a plate; see `design`
    "per_plate": count,  # wells that an arm may have of a plate
    "controls": wells,  # wells that an arm has of each plate
    "raters": people,  # who may ask
    "repeats": count,  # how often a person may measure an arm
    "blocks": lambda name, value: choice(name, value, ("plate", "day", "rater")),  # in which all arms are measured
    "blind": flag,  # whether questions have codes
    "common": flag,  # of `sigma="common"`
}


def wishes_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The wishes among facts, checked; those that are None are not there."""
    found = {name: check(name, facts[name]) for name, check in WISHES.items() if facts.get(name) is not None}
    return found | {"common": True} if facts.get("sigma") == "common" else found
