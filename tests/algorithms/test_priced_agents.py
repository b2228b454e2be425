"""`evidence` and `top-two` weigh pulls by their prices."""

from __future__ import annotations

import numpy as np
import pytest

import agents
from bandit_envs import Gaussian

MEANS = [0.9, 0.3, -0.2, 0.5, -0.6, 0.0, -1.0, 0.1]
COST = [1, 1, 1, 20, 1, 1, 20, 1]


@pytest.mark.parametrize("name", ["evidence", "top-two"])
def test_equal_prices_change_nothing_and_dear_arms_are_pulled_less(name: str) -> None:
    """The seeds are fixed, so that this is no statistical test; money is lower by a tenth at least."""
    kwargs = {"instance": Gaussian(MEANS), "delta": 0.1, "shuffle_arms": False}
    plain, equal, priced = (
        agents.evaluate([name], "BestArm", episodes=40, seed=0, env_kwargs=kwargs | more)
        for more in ({}, {"cost": [7] * 8}, {"cost": COST})
    )
    assert (plain.episodes["total_pulls"] == equal.episodes["total_pulls"]).all()
    assert (equal.episodes["money"] == 7 * equal.episodes["total_pulls"]).all()
    ignoring, weighing = (float((run.runs[0].pulls[0] * COST).sum()) for run in (plain, priced))
    assert weighing == pytest.approx(priced.episodes["money"].sum())
    assert weighing < 0.9 * ignoring
    assert priced.episodes["correct"].mean() >= 0.9
    assert np.isclose(priced.summary()["money"].item(), weighing / 40, atol=0)
