"""The names of the forms of 0.2.0 in which agents could be written: each is an error that says what is in its place."""

from __future__ import annotations

from typing import NoReturn

NAMES = (
    *("BulkPolicy", "CertifiedPolicy", "PlanPolicy", "PlanState", "RoundPolicy", "RoundState"),
    *("Seen", "bulk", "following", "sampling_rule"),
)


def refuse(module: str, name: str) -> NoReturn:
    """What a module says of a name that it does not have; an ImportError is shown whole by `from ... import` too."""
    if name in NAMES:
        text = f"{module}.{name} was of a form of 0.2.0 and is no more"
        raise ImportError(f"{text}: derive the class from agents.Algorithm, see docs/own-agent.md")
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
