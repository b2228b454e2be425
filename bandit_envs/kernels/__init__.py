"""Compiled code and its arguments, random numbers, and checks of users' input."""

from .addresses import StructKind, address_of, by_address, kind_of
from .ahead import expect
from .belief import beta_below
from .checks import (
    Bools,
    Floats,
    Ints,
    as_array,
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
from .floor import CHECKS_BOUNDS
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
from .routines import call_routine, carray, decided, pointer, record_at, routine
from .spellings import SPELLINGS, respelled, spelled
from .structs import Kernel, annotated, assemble, certain, episode_kernel, fleeting, kernel

__all__ = [
    "address_of", "agent_uniform", "agent_uniforms", "annotated", "as_array", "assemble", "beta_below", "Bools",
    "by_address", "call_routine", "carray", "certain", "CHECKS_BOUNDS", "choice", "decided", "episode_kernel",
    "EPISODES_LIMIT", "errors_of", "expect", "flag", "fleeting", "Floats", "inlined", "install_hint", "integer",
    "integers", "interval", "Ints", "jit", "json_of", "kernel", "Kernel", "kind_of", "lean", "mask",
    "normal_quantiles", "number", "numbers", "orders", "parse_call", "part", "pointer", "Polyhedron", "PULLS_LIMIT",
    "record_at", "require", "respelled", "root_key", "root_number", "routine", "spelled", "SPELLINGS", "StructKind",
    "unknown", "unzipped", "view", "WATCHERS", "within_ends",
]  # fmt: skip
