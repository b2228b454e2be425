"""Chances of normal distributions for kernels, by tables: Phi, Owen's T (Owen 1956), and what is classified right.

A model that kernels are given has the tables: `normal` and `owen` of `tables`, `legendre` with `unit_points`.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..kernels.checks import Floats
from ..kernels.compiled import inlined, part

POINTS = 16  # of an integral
FAR = 6.5  # standard deviations beyond which a normal distribution has nothing
FINE, STEPS, COLUMNS = 64, 32, 38  # the tables of Phi and of T: steps in 1
ROOT_2PI = math.sqrt(2.0 * math.pi)


@inlined
def below(normal, u):
    """Phi(u), by cubic interpolation: error 2e-10."""
    x = (max(u, -FAR) + FAR if u < FAR else 2.0 * FAR) * FINE  # also of NaN, which is no index
    i = np.uint64(np.int64(x))  # indices that may be negative take longer
    f = x - np.int64(x)
    return normal[i, 0] + f * (normal[i, 1] + f * (normal[i, 2] + f * normal[i, 3]))


@part
def fill_below(normal, m, inverse, x, places, q):
    """Fill q with below(normal, (m - x) inverse), in two loops, of which the first is vectorised."""
    for g in range(2 * POINTS):
        u = (m - x[g]) * inverse
        u = (max(u, -FAR) + FAR if u < FAR else 2.0 * FAR) * FINE
        places[g], q[g] = np.int64(u), u - np.int64(u)
    for g in range(2 * POINTS):
        i, f = np.uint64(places[g]), q[g]
        q[g] = normal[i, 0] + f * (normal[i, 1] + f * (normal[i, 2] + f * normal[i, 3]))


@inlined
def part_above(normal, d, s):
    """E (X)^+ of X ~ N(d, s^2)."""
    if s <= 0.0:
        return max(d, 0.0)
    u = d / s
    return d * below(normal, u) + s * math.exp(-0.5 * u * u) / ROOT_2PI


@inlined
def _owen(owen, h, a):
    """T(h, a) for h >= 0 and a in [0, 1], by linear interpolation: error 2e-5."""
    u, v, one = min(h * STEPS, 160.0), a * COLUMNS, np.uint64(1)
    i, j = np.uint64(min(np.int64(u), np.int64(159))), np.uint64(min(np.int64(v), np.int64(COLUMNS - 1)))
    u, v = u - np.int64(i), v - np.int64(j)
    low = (1.0 - v) * owen[i, j] + v * owen[i, j + one]
    high = (1.0 - v) * owen[i + one, j] + v * owen[i + one, j + one]
    return (1.0 - u) * low + u * high


@inlined
def resolved(model, z, r):
    """G(z, r)."""
    z = abs(z)
    if r <= 0.0:
        return below(model.normal, z)
    if r >= 0.5:
        return 1.0 - 2.0 * _owen(model.owen, z, math.sqrt(max(1.0 - r, 0.0) / r))
    a = math.sqrt(r / (1.0 - r))  # T(h, a) + T(h a, 1 / a) has a closed form
    P, Q = below(model.normal, z), below(model.normal, z / a)
    return 1.0 - P - Q + 2.0 * P * Q + 2.0 * _owen(model.owen, z / a, a)


@part
def tolerated(model, z, r, t):
    """The same where arms within t sds of the boundary may be classified either way; Plackett's integral (1954)."""
    z, normal = abs(z), model.normal
    if r <= 0.0:
        return below(normal, z + t)
    rho, h, right = math.sqrt(r), -z / math.sqrt(r), 1.0 - below(normal, -(z + t))
    alpha = math.asin(rho)
    right -= below(normal, h)
    for k in (-(z + t), t - z):
        right += below(normal, h) * below(normal, k)
        for i in range(POINTS):
            theta = alpha * model.legendre[0, i]
            sin, cos = math.sin(theta), math.cos(theta)
            inside = math.exp(-0.5 * (h * h + k * k - 2.0 * h * k * sin) / (cos * cos))
            right += alpha * model.legendre[1, i] * inside / (2.0 * math.pi)
    return right


@functools.cache
def tables() -> tuple[Floats, Floats, Floats]:
    """Phi as cubics with its values and slopes, Owen's T, and ln(n) of n = 1, 2, ..."""
    x = np.arange(-FAR * FINE, FAR * FINE + 2) / FINE
    below = np.array([0.5 * math.erfc(-u / math.sqrt(2.0)) for u in x])
    h, (points, weights) = np.arange(5 * STEPS + 1) / STEPS, np.polynomial.legendre.leggauss(24)
    a = (np.arange(COLUMNS + 1) / COLUMNS)[:, None] * (points + 1) / 2  # (COLUMNS + 1, 24)
    inside = np.exp(-0.5 * h[:, None, None] ** 2 * (1 + a * a)) / (1 + a * a)
    owen = (inside * weights).sum(-1) * np.arange(COLUMNS + 1) / COLUMNS / (4 * math.pi)
    slope, rise = np.exp(-0.5 * x * x) / ROOT_2PI / FINE, np.diff(below)
    up, down = slope[:-1], slope[1:]
    cubics = np.stack([below[:-1], up, 3 * rise - 2 * up - down, up + down - 2 * rise], axis=-1)
    return cubics, owen, np.array([*map(math.log, range(1, 1024))])


def unit_points(count: int) -> Floats:
    """Gauss-Legendre points and weights on [0, 1], (2, count)."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return np.stack([(points + 1) / 2, weights / 2])
