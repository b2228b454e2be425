"""Reductions of rows of numbers, inside kernels: in four chains, as each step of a single one would wait for the last.

A row has 4 n numbers; one that is shorter is filled up with what does not count, see `padded`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import inlined, view

from .algorithm import parts_of

_1, _2, _3, _4 = (np.uint64(i) for i in range(1, 5))


@view
def whole(x, e):
    """The same row for all episodes."""
    return x


def padded(fill: float) -> Any:
    """A row over the arms for a computation on one episode, filled up with this number."""
    return parts_of(lambda E, K: np.full((K + 3) // 4 * 4, fill), whole)


@inlined
def largest(x):
    """The largest number of a row."""
    a, b, c, d = x[0], x[1], x[2], x[3]
    for i in range(_4, np.uint64(len(x)), _4):
        a = x[i] if x[i] > a else a
        b = x[i + _1] if x[i + _1] > b else b
        c = x[i + _2] if x[i + _2] > c else c
        d = x[i + _3] if x[i + _3] > d else d
    a, c = a if a > b else b, c if c > d else d
    return a if a > c else c


@inlined
def sum_of(x):
    """The sum of a row."""
    a = b = c = d = 0.0
    for i in range(np.uint64(0), np.uint64(len(x)), _4):
        a += x[i]
        b += x[i + _1]
        c += x[i + _2]
        d += x[i + _3]
    return (a + b) + (c + d)
