"""Index rules where a pull samples one coordinate of one arm, which Katz-Samuels & Scott (2018) leave open.

symbols     x empirical mean of an arm, n_d pulls of its coordinate d, A x <= b the polyhedron, a_j row j
            T(u) = |u|^2 / sum_d (u_d^2 / n_d) effective pulls in direction u: with noise of equal size in all
            coordinates, u'x varies as much as after T(u) pulls of the whole arm; T = n where all n_d = n
            I(T, D) the index of the rule, of an arm with T pulls and margin D: APT's, UCBE's, LSA's

The arm inside is judged by the constraint of which it is least sure: its index is the least I(T(a_j), b_j - a_j'x). The
arm outside is judged along the way to the polyhedron: u = x - Proj(x), I(T(u), -|u|). The arm with the least index is
pulled, in the coordinate whose pull takes most off the variance along that direction: the largest u_d^2 / (n_d (n_d +
1)). Every coordinate is pulled once first, in order. Ties go to the lowest arm, row, coordinate. Where all coordinates
of the arms have equally many pulls, the indices are those of the rule with whole arms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bandit_envs import Polyhedron
from bandit_envs.kernels import jit

from .agent import Floats, Ints


@dataclass
class CoordinateState:
    """State of an index policy beside its table of arms where it pulls coordinates, for E episodes."""

    turn: Ints  # (E, K) the coordinate of each arm to pull next
    spot: Ints  # (E,) the coordinate chosen last


@jit
def _directions(x, y, n, A, b, T, D):
    """T(u) and margin along each row of A, and along x - y in the last column; NaN where the arm is not judged so."""
    M, width = A.shape
    for e in range(len(x)):
        outside = False
        for d in range(width):
            outside |= x[e, d] != y[e, d]
        for j in range(M + 1):
            square = spread = 0.0
            slack = b[j] if j < M else 0.0
            for d in range(width):
                u = A[j, d] if j < M else x[e, d] - y[e, d]
                square += u * u
                spread += u * u / n[e, d]
                if j < M:
                    slack -= u * x[e, d]
            judged = outside == (j == M)
            T[e, j] = square / spread if judged else 1.0
            if judged:
                D[e, j] = slack if j < M else -np.sqrt(square)
            else:
                D[e, j] = np.nan


@jit
def _decide(value, x, y, n, A, index, turn):
    """The least of the values (E, M + 1) as index, and the coordinate to pull next, by its direction."""
    M, width = A.shape
    for e in range(len(x)):
        best = -1
        for j in range(M + 1):
            if not np.isnan(value[e, j]) and (best < 0 or value[e, j] < value[e, best]):
                best = j
        index[e], most = value[e, best], -1.0
        for d in range(width):
            u = A[best, d] if best < M else x[e, d] - y[e, d]
            gain = u * u / (n[e, d] * (n[e, d] + 1.0))
            if gain > most:
                turn[e], most = d, gain


def judge(
    rule: Callable[[Floats, Floats], Floats], P: Polyhedron, pulls: Ints, x: Floats, first: float
) -> tuple[Floats, Ints]:
    """Index by `rule`, I(T, D), or `first`, and coordinate to pull next, (n,) each, of pulls and means (n, D)."""
    n = np.maximum(pulls, 1).astype(np.float64)
    A, b = np.array(P.A), np.array(P.b)  # writable, as all arrays that kernels take
    y = P.project(x)
    T, D = np.empty((2, len(x), len(b) + 1))
    _directions(x, y, n, A, b, T, D)
    value = rule(T.reshape(-1), D.reshape(-1)).reshape(T.shape)
    index, turn = np.empty(len(x)), np.empty(len(x), np.int64)
    _decide(value, x, y, n, A, index, turn)
    unseen = (pulls == 0).any(axis=1)
    return np.where(unseen, first, index), np.where(unseen, (pulls == 0).argmax(axis=1), turn)
