"""Names of earlier versions: the hook `remember`, which is `initial_state`, and the classes of states, `...Memory`."""

from __future__ import annotations

import sys
from typing import Any

HOOKS = NEW, OLD = "initial_state", "remember"


def hook_in_both_spellings(kind: type) -> None:
    """Give a class of agents the hook under both names, whichever the class or a base of it defines."""
    owner = next(one for one in kind.__mro__ if not vars(one).keys().isdisjoint(HOOKS))
    hooks = {hook: vars(owner)[hook] for hook in HOOKS if hook in vars(owner)}
    if len({id(hook) for hook in hooks.values()}) > 1:
        both = f"the class {owner.__name__} defines both {NEW} and {OLD}"
        raise ValueError(f"{both}, two spellings of one hook: leave out {OLD}, the old one")
    if len(hooks) == 1:
        for hook in HOOKS:
            if hook not in vars(kind):
                setattr(kind, hook, *hooks.values())


class AgentState:
    """Base of the states of agents. A class `RoundState` is also found as `RoundMemory`, so that old pickles load."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__module__.startswith("agents."):
            setattr(sys.modules[cls.__module__], cls.__name__.replace("State", "Memory"), cls)
