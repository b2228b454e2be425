"""The facts of a session as a store keeps them, JSON-able: whether they are whole, and are those that are described."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["FORMAT", "refuse_damaged", "refuse_others"]

FORMAT = 1
# What each fact is, as JSON is read.
KINDS: dict[str, tuple[type, ...]] = {
    "agent": (str, type(None)),
    "parameters": (dict, type(None)),
    "task": (str,),
    "names": (list,),
    "public_seed": (int,),
}


def refuse_damaged(facts: Mapping[str, Any]) -> None:
    """Refuse facts that are not whole, or of another version.

    Raises:
        ValueError: naming the fact that is missing or something else.
    """
    if facts.get("format") != FORMAT:
        raise ValueError(f"this session is of the format {facts.get('format')!r:.80}, this version reads {FORMAT}")
    for name, kinds in KINDS.items():
        if name not in facts:
            raise ValueError(f"the store is damaged: the fact {name!r} is missing, it has {', '.join(facts)}")
        if not isinstance(facts[name], kinds):
            raise ValueError(f"the store is damaged: the fact {name!r} is {facts[name]!r:.80}")


def refuse_others(known: Mapping[str, Any], new: Mapping[str, Any], names: bool, seed: bool) -> None:
    """Refuse to go on with a session of another agent or task.

    Args:
        known: the facts in the store. new: those that are described.
        names, seed: whether the names of the arms, and the public seed, are described too.

    Raises:
        ValueError: naming what differs.
    """
    asked = [
        "agent",
        "parameters",
        "task",
        *(["names"] if names else []),
        *(["public_seed"] if seed else []),
        "reserve",
    ]
    told = list[str]()
    for name in asked:
        there, wanted = known.get(name), new.get(name)
        if name == "task":
            there, wanted = json.loads(known[name]), json.loads(new[name])
            if there.get("D", 1) > 1:  # as `known_task` reads what an earlier version wrote
                there.setdefault("dependent", True)
        told += _differing(name, there, wanted)
    if told:
        raise ValueError(
            f"the store holds another session: {'; '.join(told)}. Choose another store, or leave out the agent and the "
            "task to go on with this one"
        )


def _differing(name: str, there: Any, wanted: Any) -> list[str]:
    """What differs between two facts, in words; of objects, entry by entry."""
    if there == wanted:
        return []
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        keys = dict.fromkeys([*there, *wanted])
        return [told for key in keys for told in _differing(key, there.get(key), wanted.get(key))]
    return [f"{name} is {there!r:.80} there, {wanted!r:.80} asked for"]
