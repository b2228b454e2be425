"""Words of earlier versions that their files have, and texts such as "top-two(law='gaussian')": they are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

SPELLINGS = OLD, NEW = "law", "distribution"
NAMES = {OLD: NEW, "genes": "parameters"}


def spelled(given: Mapping[str, Any], taken: Collection[str] = (NEW,)) -> dict[str, Any]:
    """A JSON form, or parameters in a text, in the spelling of the names that are taken; one in both is refused."""
    old = {one: now for one, now in NAMES.items() if one in given and one not in taken and now in taken}
    for one, now in old.items():
        if now in given:
            both = f"{now}={given[now]!r:.80} and {one}={given[one]!r:.80}"
            raise ValueError(f"{both} are two spellings of one thing: leave out {one}, the old one")
    return {old.get(name, name): value for name, value in given.items()}


def respelled(value: Any, word: str = NEW) -> Any:
    """A JSON form with one spelling throughout, also in texts such as "top-two(law='gaussian')", for comparisons."""
    if isinstance(value, Mapping):
        return {word if key in SPELLINGS else respelled(key, word): respelled(x, word) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return [respelled(x, word) for x in value]
    return re.sub(rf"\b({OLD}|{NEW})(?=\s*=)", word, value) if isinstance(value, str) else value
