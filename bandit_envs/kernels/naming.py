"""Names with parameters, as in "apt(tolerance=0.05)", and errors that name the nearest known names."""

from __future__ import annotations

import ast
import contextlib
import difflib
import json
from collections.abc import Iterable
from typing import Any

DEEPEST = 100  # objects and lists within each other, in JSON


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """Split "name(key=value, ...)" into the name and its parameters; values are Python literals."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return text.strip(), {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise SyntaxError
        values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
        if len(values) != len(call.keywords):
            raise SyntaxError
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        allowed = "values are numbers, text, lists, True, False or None, as Python writes them"
        raise ValueError(f"{text!r:.200} is not of the form 'name' or 'name(key=value, ...)': {allowed}") from None
    return name.strip(), values


def json_of(text: str | bytes) -> Any:
    """What JSON text holds; a ValueError where it is none, or nests so deeply that what reads it would overflow."""
    with contextlib.suppress(RecursionError):
        found = json.loads(text)
        level = [found]
        for _ in range(DEEPEST):
            lists = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
            if not (level := [part for one in lists for part in one]):
                return found
    raise ValueError(f"objects and lists must nest {DEEPEST} deep at most")


def unknown(kind: str, name: Any, known: Iterable[str]) -> ValueError:
    """The error for a name that is not known, with the nearest names and all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) if isinstance(name, str) else []
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
    return ValueError(f"unknown {kind} {name!r:.200}{hint} Known: {', '.join(names)}")
