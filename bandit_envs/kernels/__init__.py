"""Compiled code and its arguments, random numbers, and checks of users' input."""

from __future__ import annotations

from .addresses import by_address
from .ahead import expect
from .belief import beta_below
from .checks import (
    choice,
    errors_of,
    flag,
    install_hint,
    integer,
    integers,
    interval,
    mask,
    number,
    numbers,
    require,
    unzipped,
    within_ends,
)
from .compiled import inlined, jit, lean, part, view
from .geometry import Polyhedron
from .kept import WATCHERS
from .naming import json_of, parse_call, unknown
from .rng import (
    EPISODES_LIMIT,
    PULLS_LIMIT,
    agent_uniform,
    agent_uniforms,
    normal_quantiles,
    orders,
    root_key,
    root_number,
)
from .routines import call_routine, carray, decided, last_fields, pointer, routine
from .spellings import SPELLINGS, respelled, spelled
from .structs import Kernel, assemble, certain, episode_kernel, fleeting, kernel

__all__ = [
    "EPISODES_LIMIT", "Kernel", "PULLS_LIMIT", "Polyhedron", "SPELLINGS", "WATCHERS", "agent_uniform",
    "agent_uniforms", "assemble", "beta_below", "by_address", "call_routine", "carray", "certain", "choice", "decided",
    "episode_kernel", "errors_of", "expect",
    "flag", "fleeting", "inlined", "install_hint", "integer", "integers", "interval", "jit", "json_of", "kernel",
    "last_fields",
    "lean", "mask", "normal_quantiles", "number", "numbers", "orders", "parse_call", "part", "pointer", "require",
    "respelled",
    "root_key", "root_number", "routine", "spelled", "unknown", "unzipped", "view", "within_ends",
]  # fmt: skip
