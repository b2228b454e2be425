"""Index rules where a pull samples one coordinate of one arm, which Katz-Samuels & Scott (2018) leave open.

symbols     x empirical mean of an arm, n_d pulls of its coordinate d, A x <= b the polyhedron, a_j row j
            T(u) = |u|^2 / sum_d (u_d^2 / n_d) effective pulls in direction u: with noise of equal size in all
            coordinates, u'x varies as much as after T(u) pulls of the whole arm; T = n where all n_d = n
            I(T, D) the index of the rule, of an arm with T pulls and margin D: APT's, UCBE's, LSA's

The arm inside is judged by the constraint of which it is least sure: its index is the least I(T(a_j), b_j - a_j'x). The
arm outside is judged along the line to the polyhedron: u = x - Proj(x), I(T(u), -|u|). The arm with the least index is
pulled, in the coordinate whose pull takes most off the variance along that direction: the largest u_d^2 / (n_d (n_d +
1)). Every coordinate is pulled once first, in order. Ties go to the lowest arm, row, coordinate. Where all coordinates
of the arms have equally many pulls, the indices are those of the rule with whole arms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandit_envs import Polyhedron

from .agent import Floats, Ints


def decide(
    rule: Callable[[Floats, Floats], Floats], P: Polyhedron, pulls: Ints, x: Floats, first: float
) -> tuple[Floats, Ints]:
    """Index by `rule`, I(T, D), or `first`, and coordinate to pull next, (n,) each, of pulls and means (n, D)."""
    n, y, rows = np.maximum(pulls, 1).astype(np.float64), P.project(x), np.arange(len(x))
    outside, faces = (x != y).any(axis=1), np.broadcast_to(P.A, (len(x), *np.shape(P.A)))
    u = np.concatenate([faces, (x - y)[:, None]], axis=1)  # (n, M + 1, D), the last one points at the polyhedron
    judged = outside[:, None] == (np.arange(u.shape[1]) == len(P.b))
    square, spread, slack = np.zeros(u.shape[:2]), np.zeros(u.shape[:2]), np.tile(np.append(P.b, 0.0), (len(x), 1))
    for d in range(x.shape[1]):  # added up in order
        square += u[..., d] * u[..., d]
        spread += u[..., d] * u[..., d] / n[:, None, d]
        slack[:, :-1] -= u[:, :-1, d] * x[:, None, d]
    slack[:, -1] = -np.sqrt(square[:, -1])
    T = np.divide(square, spread, out=np.ones_like(square), where=judged)
    value = rule(T.reshape(-1), np.where(judged, slack, np.nan).reshape(-1)).reshape(T.shape)
    best = np.where(outside, len(P.b), value[:, :-1].argmin(axis=1))
    turn = (u[rows, best] ** 2 / (n * (n + 1.0))).argmax(axis=1)
    unseen = (pulls == 0).any(axis=1)
    return np.where(unseen, first, value[rows, best]), np.where(unseen, (pulls == 0).argmax(axis=1), turn)
