"""The format of saved models: a number in every card and model file, so that a file that cannot be read says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.files import read_together

# Raise this number when a model saved before could not be read any more, or would decide otherwise: when classes that
# its file names move, when the network changes, or the features that it reads. Files without a number are of format 1.
FORMAT = 1

# What is read of a card, where it is there: its name, its type, and the type in words.
ENTRIES = (
    ("call", str, "text"),
    ("features", list, "a list"),
    ("network", dict, "an object"),
    ("env_kwargs", (dict, type(None)), "an object"),
    ("names", list, "a list"),
    ("genes", list, "a list"),
    ("parameters", list, "a list"),
)


def train_again(card: Mapping[str, object]) -> str:
    """What to do about a model that cannot be read, in words; `card` is its card, or empty."""
    return f"train it again: {card['call']}" if "call" in card else "train it again"


def read_card(path: Path) -> dict[str, Any]:
    """The card of a model, once the model beside it has been found to be the one that was written with it.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is no card, if the model is another, or if it is of another format.
    """
    card = read_together(path)
    for name, kind, wanted in ENTRIES:
        if name in card and not isinstance(card[name], kind):
            raise ValueError(f"{path} is no card of a model: its {name} must be {wanted}, got {card[name]!r:.80}")
    features = card.get("features", [])
    if not all(isinstance(one, str) for one in features):
        raise ValueError(f"{path} is no card of a model: its features must be words, got {features!r:.80}")
    check_format(path, card.get("format"), card)
    return card


def check_format(file: object, found: object, card: Mapping[str, object]) -> None:
    """Refuse a file, described by its card, whose format is of another number; None: it has none."""
    if (1 if found is None else found) != FORMAT:
        raise ValueError(f"{file} has format {found!s:.80}; this version reads format {FORMAT}: {train_again(card)}")
