"""Statistics, answers and means of callers in Python: checked, and in the shapes that a `Certifier` takes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.checks import Floats, mask

MOST_PULLS = 2**62  # of an arm


class Statistics(NamedTuple):
    """Statistics of n episodes."""

    pulls: NDArray[np.int64]  # (n, K)
    mean: Floats  # (n, K) or (n, K, D); 0 for arms never pulled
    variance: Floats  # as mean
    lead: tuple[int, ...]  # the caller's batch axes, n in all
    D: int

    @property
    def K(self) -> int:
        """Number of arms."""
        return int(self.pulls.shape[1])

    @property
    def seen(self) -> Floats:
        """The means, NaN for arms never pulled."""
        return np.where(_beside(self.pulls, self.mean) > 0, self.mean, np.nan)


def _beside(pulls: NDArray[np.int64], mean: Floats) -> NDArray[np.int64]:
    """Pulls (n, K) with a last axis where means (n, K, D) have one."""
    return pulls if mean.ndim == 2 else pulls[..., None]


def _check_range(means: Floats, distribution: str) -> None:
    """Refuse means that arms of a distribution cannot have."""
    if distribution == "bernoulli" and not ((means >= 0) & (means <= 1)).all():
        raise ValueError(f"means of distribution='bernoulli' lie in [0, 1], got {means[(means < 0) | (means > 1)][0]}")


def statistics(pulls: ArrayLike, mean: ArrayLike, variance: ArrayLike | None, distribution: str) -> Statistics:
    """Check statistics with any batch axes: pulls (..., K), mean and variance (..., K) or (..., K, D).

    Means may be NaN for arms never pulled; the variance is None where the distribution needs none.
    """
    m, T = _real("mean", mean), np.asarray(pulls)
    D = m.shape[-1] if m.ndim == T.ndim + 1 else 1
    if T.ndim < 1 or m.shape not in (T.shape, (*T.shape, D)) or T.dtype.kind not in "iuf":
        raise ValueError(f"pulls must be counts (..., K) and mean (..., K) or (..., K, D), got {T.shape}, {m.shape}")
    counts = (T >= 0) & (T <= MOST_PULLS) & (np.floor(T) == T)
    if not counts.all():
        raise ValueError(f"pulls must be counts from 0 to {MOST_PULLS}, got {T[~counts][0]}")
    if T.size and (spent := T.sum(axis=-1, dtype=np.float64)).max() > MOST_PULLS:
        raise ValueError(f"pulls of one episode must sum to {MOST_PULLS} at most, got {spent.max():g}")
    if distribution in ("student", "bounded") and variance is None:
        raise ValueError(f"distribution={distribution!r} needs variance=, the empirical variances with divisor N")
    v = np.zeros(m.shape) if variance is None else _real("variance", variance)
    if v.shape != m.shape:
        raise ValueError(f"variance must have the shape of mean, {m.shape}, got {v.shape}")
    lead, K = T.shape[:-1], T.shape[-1]
    rows = (math.prod(lead), K) if D == 1 else (math.prod(lead), K, D)
    T = np.ascontiguousarray(T, np.int64).reshape(rows[:2])
    m, v = m.reshape(rows), v.reshape(rows)
    pulled = np.broadcast_to(_beside(T, m) > 0, rows)
    m, v = np.where(pulled, m, 0.0), np.where(pulled, v, 0.0)
    if not np.isfinite(m).all():
        raise ValueError(f"mean must be finite where an arm has been pulled, got {m[~np.isfinite(m)][0]}")
    possible = np.isfinite(v) & (v >= 0)
    if not possible.all():
        raise ValueError(f"variance must be finite and >= 0 where an arm has been pulled, got {v[~possible][0]}")
    _check_range(m, distribution)
    return Statistics(T, np.ascontiguousarray(m), np.ascontiguousarray(v), lead, D)


def moments_like(moments: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Third and fourth central moments, checked and brought into the shape of the variances with 2 behind it."""
    given = _real("moments", moments)
    if given.size != 2 * math.prod(shape) or given.shape[-1:] != (2,):
        raise ValueError(f"moments must have the shape of mean with 2 behind it, {(*shape, 2)}, got {given.shape}")
    if np.isinf(given).any() or (given[..., 1] < 0).any():
        odd = given[np.isinf(given) | (np.arange(2) * given < 0)][0]
        raise ValueError(f"moments must be finite, fourth ones >= 0, or NaN where they are not known, got {odd}")
    return given.reshape(*shape, 2)


def check_support(seen: Statistics, support: tuple[float, float]) -> None:
    """Refuse means of samples that lie in a range, beyond the range by more than rounding."""
    low, high = support
    reach = 2.0**-52 * (_beside(seen.pulls, seen.mean) + 8.0) * max(abs(low), abs(high))  # of a sum of samples
    outside = (_beside(seen.pulls, seen.mean) > 0) & ((seen.mean < low - reach) | (seen.mean > high + reach))
    if outside.any():
        raise ValueError(f"means must lie in the support [{low:g}, {high:g}], got {seen.mean[outside][0]}")


def _real(name: str, values: ArrayLike) -> Floats:
    """An array of floats."""
    try:
        if np.asarray(values).dtype.kind in "biufO":
            return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{name} must be real numbers, got {values!r:.200}")


def answers(answer: ArrayLike, shape: tuple[int, ...], size: int | None, name: str) -> NDArray[np.int8]:
    """Check answers: masks that broadcast to `shape`, (..., K), of `size` arms (None: any). Returns them as (n, K)."""
    given = np.asarray(answer)
    try:
        whole = np.broadcast_to(given, shape)
    except ValueError:
        raise ValueError(f"answer must be a mask of shape {shape}, got shape {given.shape}") from None
    taken = mask("answer", np.ascontiguousarray(whole), shape)
    sizes = taken.sum(axis=-1)
    if size is not None and (sizes != size).any():
        raise ValueError(f"an answer of {name} holds {size} arms, got {sizes[sizes != size].flat[0]}")
    return np.array(taken, np.int8, order="C").reshape(-1, shape[-1])


class Arms(NamedTuple):
    """What a problem's `check` is asked about: arms of which nothing else is known."""

    K: int
    D: int
    support: None = None


def one_instance(means: ArrayLike, distribution: str) -> Floats:
    """Check the true means of one instance, (K,) or (K, D) with D > 1, of arms of a distribution."""
    m = np.array(_real("means", means), order="C")
    if m.ndim not in (1, 2):
        raise ValueError(f"means must be those of one instance, (K,) or (K, D), got shape {m.shape}: {m!r:.200}")
    if not np.isfinite(m).all():
        raise ValueError(f"means must be finite, got {m[~np.isfinite(m)][0]}")
    _check_range(m, distribution)
    return m[:, 0].copy() if m.ndim == 2 and m.shape[1] == 1 else m
