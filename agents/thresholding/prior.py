"""The prior of the Bayesian rules, checked."""

from __future__ import annotations

from typing import Any

from bandit_envs.kernels import number

MOST = 1e9  # beyond it logarithms of a posterior lose their digits


def prior_of(prior: Any) -> tuple[float, float]:
    """The parameters (a0, b0) of a Beta prior."""
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        raise ValueError(f"prior must be a pair (a, b) of numbers > 0, got {prior!r:.200}")
    a, b = (number("prior", part, 0, above=True) for part in prior)
    if max(a, b) > MOST:
        raise ValueError(f"prior must be two numbers of at most {MOST:g}, got {prior!r:.200}")
    return a, b
