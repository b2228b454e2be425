"""Instances of `hostile` for Feasible: polyhedra, and arms whose coordinates depend on each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from hostile_instances import Instance, most_pulls
from numpy.typing import NDArray

__all__ = ["FEASIBLE"]

Floats = NDArray[np.float64]

COARSE = 1e-3  # how far arms are from where an answer would be right


def _rows(kind: str, D: int) -> Floats:
    """Rows of an arm, (n, D), whose coordinates depend on each other."""
    coin = np.repeat([0.0, 1.0], 50)[:, None]
    if kind == "equal":
        return np.tile(coin, D)
    if kind == "opposite":
        return np.where(np.arange(D) % 2, 1.0 - coin, coin)
    if kind == "rare":  # one in twenty
        return np.tile(np.repeat([0.0, 1.0], [95, 5])[:, None], D)
    if kind == "wide":
        return np.tile(10.0 * coin - 3.0, D)
    if kind == "graded":
        return coin * 2.0 ** -np.arange(D)
    if kind == "thirds":
        return np.tile(np.repeat([0.0, 0.5, 1.0], [20, 60, 20])[:, None], D)
    if kind == "one of all":  # one coordinate is 1, and the others 0
        return np.eye(D)
    raise ValueError(f"kind must be one of equal, opposite, rare, wide, graded, thirds, one of all, got {kind!r}")


def _normals(kind: str, D: int) -> Floats:
    """Rows of norm 1, (M, D)."""
    if kind == "diagonal":
        return np.full((1, D), D**-0.5)
    if kind == "alternating":
        return ((-1.0) ** np.arange(D) * D**-0.5)[None]
    if kind == "corner":
        return np.eye(D)
    if kind == "cube":
        return np.concatenate([np.eye(D), -np.eye(D)])
    fan = np.abs(np.random.default_rng(3).normal(size=(30, D)))
    return fan / np.linalg.norm(fan, axis=1, keepdims=True)


def _feasible(rows: str, D: int, kind: str, side: str, K: int, tolerance: float = 0.0) -> Instance:
    """An arm outside by 1e-3 in one row or in all, or inside of all by as much, and K - 1 arms deep inside.

    With a tolerance all K arms miss it by 1e-3.
    """
    A, off = _normals(kind, D), tolerance + COARSE
    data = np.full((1, D), 0.5) if rows in ("Bernoulli", "Gaussian") else _rows(rows, D)
    mean, width = data.mean(axis=0), 1.0 if len(data) == 1 else np.ptp(data)
    b = A @ mean + (off if side == "inside" else -off)
    if side == "outside of one":
        b[1:] += 0.3 * width
    ahead = A[0] if kind == "cube" else A.sum(axis=0)
    deep = mean - 0.3 * width * ahead / (np.linalg.norm(ahead) if kind == "cube" else np.abs(ahead).max())
    far = 0 if tolerance else K - 1
    sd = (0.3 * 2.0 ** -np.arange(D)).clip(0.01).tolist()
    arms: dict[str, Any]
    if len(data) == 1:
        means = [mean.tolist()] * (K - far) + [deep.tolist()] * far
        arms = {"distribution": rows.lower(), "mean": means} | ({"sd": [sd] * K} if rows == "Gaussian" else {})
    else:
        arms = {"distribution": "resampled", "rows": [data.tolist()] * (K - far) + [[deep.tolist()]] * far}
    limit = f", tolerance {tolerance:g}" if tolerance else ""
    rules = {"A": A.tolist(), "b": b.tolist()} | ({"tolerance": tolerance} if tolerance else {})
    name = f"{K - far} of {K} arms {side}, {kind} M={len(A)} D={D}{limit}"
    return Instance("Feasible", name, rules, arms, f"rows {rows}" if rows[0].islower() else rows, most_pulls(K, D))


FEASIBLE = (
    _feasible("equal", 1, "diagonal", "outside", 2),
    _feasible("equal", 2, "diagonal", "outside", 2),
    _feasible("equal", 3, "diagonal", "outside", 5),
    _feasible("equal", 5, "diagonal", "inside", 3),
    _feasible("equal", 10, "diagonal", "outside", 2),
    _feasible("equal", 20, "diagonal", "outside", 2),
    _feasible("equal", 20, "diagonal", "inside", 4),
    _feasible("equal", 10, "diagonal", "outside", 3, 0.1),
    _feasible("equal", 10, "diagonal", "inside", 6, 0.1),
    _feasible("opposite", 2, "alternating", "outside", 2),
    _feasible("opposite", 10, "alternating", "outside", 4),
    _feasible("opposite", 6, "alternating", "inside", 4, 0.1),
    _feasible("opposite", 10, "diagonal", "outside", 2),
    _feasible("rare", 5, "diagonal", "outside", 3),
    _feasible("rare", 20, "diagonal", "inside", 2),
    _feasible("wide", 4, "diagonal", "outside", 2),
    _feasible("wide", 3, "cube", "outside of one", 3),
    _feasible("graded", 8, "diagonal", "outside", 2),
    _feasible("thirds", 10, "diagonal", "outside", 2),
    _feasible("one of all", 5, "alternating", "outside", 2),
    _feasible("one of all", 10, "corner", "inside", 3),
    _feasible("equal", 2, "corner", "outside", 4),
    _feasible("equal", 5, "corner", "outside", 2),
    _feasible("equal", 5, "corner", "inside", 2),
    _feasible("equal", 10, "corner", "outside of one", 2, 0.1),
    _feasible("equal", 3, "cube", "outside of one", 3),
    _feasible("equal", 15, "cube", "outside of one", 2),
    _feasible("opposite", 4, "corner", "outside", 3),
    _feasible("equal", 4, "fan", "outside", 3),
    _feasible("equal", 4, "fan", "inside", 3),
    _feasible("thirds", 10, "fan", "inside", 2),
    _feasible("equal", 3, "fan", "inside", 2, 0.1),
    _feasible("Bernoulli", 2, "diagonal", "outside", 4),
    _feasible("Bernoulli", 10, "corner", "inside", 3),
    _feasible("Bernoulli", 5, "cube", "outside of one", 3),
    _feasible("Gaussian", 2, "corner", "outside", 10),
    _feasible("Gaussian", 5, "diagonal", "outside", 6, 0.1),
    _feasible("Gaussian", 3, "fan", "inside", 3, 0.05),
    _feasible("Gaussian", 1, "diagonal", "outside", 20),
)
