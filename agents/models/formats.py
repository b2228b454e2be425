"""The format of saved models: a number in every card and model file, so that a file that cannot be read says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["FORMAT", "check_format", "train_again"]

# Raise this number when a model saved before could not be read any more, or would decide otherwise: when classes that
# its file names move, when the network changes, or the features that it reads. Files without a number are of format 1.
FORMAT = 1


def train_again(card: Mapping[str, Any]) -> str:
    """What to do about a model that cannot be read, in words; `card` is its card, or empty."""
    return f"train it again: {card['call']}" if "call" in card else "train it again"


def check_format(file: Any, found: Any, card: Mapping[str, Any]) -> None:
    """Refuse a file of another format.

    Args:
        file: its path, for the message.
        found: the number in the file, or None.
        card: the model's card, or empty.

    Raises:
        ValueError: naming the file and both formats, and telling what to do.
    """
    if (1 if found is None else found) != FORMAT:
        raise ValueError(f"{file} has format {found}; this version reads format {FORMAT}: {train_again(card)}")
