"""Versions of functions for one distribution: the same numbers, and nothing that others need."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numba.core.errors import NumbaError

from bandit_envs.kernels import inlined, part, view
from bandit_envs.kernels.stamps import stamp_of
from bandit_envs.stopping import Arm, Move, common, divergence, pair_value, the_distribution, the_kind, version
from bandit_envs.stopping.distributions import CODES


@part
def broken(x):
    return x.nothing


@inlined
def half(distribution, x):
    return broken(x) if the_distribution(distribution) == 2 else 0.5 * x


@view
def one_of(kind, x):
    return broken(x) if the_kind(kind) == 1 else x


@part
def whole(distribution, kind, x):
    if the_distribution(distribution) == 3:
        return broken(x)
    return one_of(kind, half(distribution, x)) + 1.0


def test_what_a_version_never_calls_is_not_compiled() -> None:
    """The branches of others hold what Numba cannot compile: it is refused as soon as one of them may be taken."""
    assert version(whole, distribution=1, kind=0)(3, 1, 4.0) == 3.0  # what it is given makes no difference
    for known in ({}, {"distribution": 1}, {"kind": 0}, {"distribution": 2, "kind": 0}, {"distribution": 1, "kind": 1}):
        with pytest.raises(NumbaError):
            version(whole, **known)(1, 0, 4.0)


def test_versions_are_shared_and_told_apart() -> None:
    """One for each set of answers that make a difference; the caches on disk tell them apart by name and by stamp."""
    made = [version(whole, distribution=d, kind=k) for d, k in itertools.product(range(2), range(2))]
    assert version(whole, kind=1, distribution=1) is made[3]
    assert version(half, distribution=1, kind=0) is version(half, distribution=1, kind=1) is not half
    assert version(broken, distribution=1) is broken
    assert version(made[3], distribution=0) is made[3]
    functions = [one.py_func for one in [whole, *made]]
    assert len({one.__qualname__ for one in functions}) == len({stamp_of(one) for one in functions}) == 5


@pytest.mark.parametrize("distribution", list(CODES))
def test_a_version_computes_the_same(distribution: str) -> None:
    """Values of 200 pairs and divergences, bit for bit; those of another distribution's version differ."""
    rng, code = np.random.default_rng(1), CODES[distribution]
    numbers = common(distribution, boundary="none" if distribution == "bounded" else "mixture")
    other = version(divergence, distribution=(code + 1) % 3)
    apart = 0
    for _ in range(200):
        (m, n), (x, w), (u, v), (p, q), mu = rng.random(2), rng.integers(0, 50, 2), *rng.random((2, 2)), rng.random()
        arms: Any = Arm(m, float(x), u, p), Arm(n, float(w), v, q)
        for move in (Move(1.0, -0.1, -np.inf), Move(0.9, 0.0, 0.5)):
            known = version(pair_value, distribution=code)(numbers, *arms, move)
            assert known == pair_value(numbers, *arms, move)
        found = divergence(code, m, u, mu)
        assert version(divergence, distribution=code)(code, m, u, mu) == found
        apart += other(code, m, u, mu) != found
    assert apart > 190
