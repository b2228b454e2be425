"""Mistakes of who writes an algorithm are refused where the class is made, by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import agents
from agents import pull


def fair(ep: Any, own: Any) -> None:
    pull(ep, np.argmin(ep.pulls))


def sometimes(ep: Any, own: Any) -> Any:
    if ep.pulls[0] > 3:
        return True


def late(ep: Any, own: Any) -> Any:
    for i in range(len(ep.pulls)):
        if ep.pulls[i] > 3:
            return True


def computed(ep: Any, own: Any) -> None:
    ep.pulls[0] > 3  # noqa: B015


def arm(ep: Any, own: Any) -> Any:
    return np.argmin(ep.pulls)


def arm_or_none(ep: Any, own: Any) -> Any:
    if ep.pulls[0] > 3:
        return None
    return 0


WRONG = {
    "computed, not returned": ({"stops": computed}, "stops of A must return whether"),
    "returned on one way": ({"stops": sometimes}, "stops of A must return whether"),
    "returned in a loop": ({"stops": late}, "stops of A must return whether"),
    "an arm": ({"sample": arm}, r"sample of A returns a value.*pull\(ep, arm\)"),
    "an arm or None": ({"sample": arm_or_none}, "sample of A returns a value"),
    "of observe": ({"observe": arm}, "observe of A returns a value"),
    "of begin": ({"begin": arm}, "begin of A returns a value"),
}


@pytest.mark.parametrize("title", WRONG)
def test_what_a_rule_returns_is_looked_at_where_the_class_is_made(title: str) -> None:
    rules, message = WRONG[title]
    with pytest.raises(TypeError, match=message):
        type(agents.Algorithm)("A", (agents.Algorithm,), {"sample": fair, **rules})


def test_rules_may_return_early() -> None:
    def stops(ep: Any, own: Any) -> bool:
        while True:
            if ep.pulls[0] > 3:
                return True
            if ep.pulls[1] > 3:
                return False

    def sample(ep: Any, own: Any) -> None:
        if ep.pulls[0] > 3:
            return
        pull(ep, 0)

    type(agents.Algorithm)("A", (agents.Algorithm,), {"sample": sample, "stops": stops, "observe": sample})
