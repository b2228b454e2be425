"""Certificates near their limit, see `delta_limits`: what they spend of delta; a wrong constant would spend more."""

from __future__ import annotations

import delta_limits
import pytest
from delta_limits import DELTA

from bandit_envs import Threshold


def test_delta_is_all_but_spent() -> None:
    delta_limits.check("1 arm")


@pytest.mark.parametrize("case", delta_limits.CASES)
def test_delta_is_all_but_spent_everywhere(case: str) -> None:
    delta_limits.check(case)


def test_the_mixture_of_all_scales_leaves_half_of_delta() -> None:
    """One term of its sum is taken: a rate of .045 at delta = .1, which a wrong weight or constant would raise."""
    p, error = delta_limits.wrong(Threshold(0.0), 3, DELTA, None)
    assert abs(p - 0.0453) < 5 * error < 0.005


def test_a_pair_leaves_half_of_delta() -> None:
    """The rate is .044 at delta = .1, standard error .002: a limit at delta would bear a constant too small by 2.

    That of .056, five standard errors above the rate, is broken by 1.5.
    """
    rate, larger, error = delta_limits.two_arms()
    assert error < 0.0025
    assert 0.033 < rate < 0.056 < larger
