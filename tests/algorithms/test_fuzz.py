"""Nothing that a caller hands to an agent ends the interpreter, hangs, or raises anything but clear errors."""

from __future__ import annotations

import pytest
from fuzzing import fuzz, names

AGENTS = names()
GROUPS = 12


def report(found: dict[int, str]) -> str:
    return f"{len(found)} cases:\n" + "\n".join(f"{case}: {said}" for case, said in sorted(found.items())[:20])


def test_odd_input_to_every_agent() -> None:
    """Every third agent on one of the problems that it solves; all of them in the slow test."""
    chosen = {name: (i, name, actions) for i, name, actions in reversed(AGENTS) if i < 5}
    found = fuzz(list(chosen.values())[::3], 0, 300)
    assert not found, report(found)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_input_to_every_agent_often(group: int) -> None:
    found = fuzz(AGENTS[group::GROUPS], 10**6 * (group + 1), 10**6 * (group + 1) + 9000)
    assert not found, report(found)
