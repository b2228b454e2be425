"""dp-index and its bound: by hand, against exact arithmetic, and what they are worth."""

from __future__ import annotations

import math
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from bounds import relaxed
from twins import as_twin, by_fractions, by_index, dp_indices

import agents
from agents.thresholding.dp_index import BAND, Table, index_table

THRESHOLD = "bandit_envs/Threshold-v0"
UNIFORM = (1.0, 1.0)


def indices(horizon: int, threshold: float = 0.5) -> np.ndarray:
    """The indices themselves, in the order (0 of 0), (0 of 1), (1 of 1), (0 of 2), ..."""
    return np.exp(index_table(threshold, UNIFORM, horizon)[1])


def test_indices_by_hand() -> None:
    # One pull, horizon 1: the loss falls from 1/2 to P(Beta(2, 1) < 1/2) = 1/4.
    assert indices(1)[0] == pytest.approx(1 / 4, rel=1e-9)
    # Horizon 2, after one success: another leaves 1/8 (2/3 of the time), a failure 1/2; nothing is won.
    assert indices(2)[1:3] == pytest.approx([0, 0], abs=1e-12)
    # Horizon 3, after one success: pull, and after a failure once more, from 1/2 to P(Beta(3, 2) < 1/2) = 5/16. The
    # gain is 1/3 * 3/16 = 1/16 for 1 + 1/3 pulls: 3/64. In Beta(2, 2) itself it is 3/16.
    assert indices(3)[:3] == pytest.approx([1 / 4, 3 / 64, 3 / 64], rel=0.01)  # D2
    assert indices(3)[4] == pytest.approx(3 / 16, rel=0.01)


@pytest.mark.parametrize("threshold", [Fraction(1, 2), Fraction(3, 10)])
def test_indices_are_those_of_exact_arithmetic(threshold: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    horizon = 8
    exact = dp_indices(by_fractions(threshold), horizon)
    coarse = indices(horizon, float(threshold))
    monkeypatch.setattr("agents.thresholding.dp_index.RATIO", 1.002)
    index_table.cache_clear()
    mine = indices(horizon, float(threshold))
    index_table.cache_clear()
    for (a, b), index in exact.items():
        n = a + b - 2
        here = mine[n * (n + 1) // 2 + a - 1]
        assert here == pytest.approx(float(index), rel=1e-5 if index > 0 else 0, abs=1e-11)
        assert 0.99 * here - 1e-11 <= coarse[n * (n + 1) // 2 + a - 1] <= 1.000001 * here + 1e-11  # D2


def test_the_band_leaves_out_nothing_that_matters() -> None:
    narrow = Table.of(0.5, UNIFORM, 200)
    inside = [200 * 0.5 - BAND * math.sqrt(201), 200 * 0.5 + BAND * math.sqrt(201)]
    assert narrow.low[200] == math.floor(inside[0])
    assert narrow.losses[narrow.start[200]] < 1e-8  # outside it the loss is taken to be none
    value = relaxed(10, 200)
    assert value == pytest.approx(0.4690912, abs=1e-6)


def test_agent_is_its_exact_twin() -> None:
    """The same arms and the same answer on random instances, indices in fractions."""
    budget, K = 9, 3
    above = by_fractions(Fraction(1, 2))
    exact = dp_indices(above, budget)
    least = float(min(index for index in exact.values() if index > 0))

    def index(a: int, b: int) -> float:
        if exact.get((a, b), 0) > 0:
            return float(exact[a, b])
        return least * 1e-6 * float(min(above(a, b), 1 - above(a, b))) / (a + b - 1)  # D3

    env = gym.make(THRESHOLD, instance=f"sampler(arms={K})", budget=budget, actions="full").unwrapped
    agent = agents.make("dp-index", env)
    for episode in range(60):
        as_twin(env, agent, lambda _: by_index(K, budget, index), 6, episode)


def test_states_beyond_the_horizon_come_last() -> None:
    agent = agents.make("dp-index", gym.make(THRESHOLD, budget=400, actions="full"), horizon=50)
    value = agent.value(np.array([40.0, 51.0, 200.0, 200.0]), np.array([0.5, 0.5, 0.5, 1.0]))
    assert (np.diff(value) > 0).all()


def test_it_is_better_than_lsa_on_random_instances() -> None:
    """20,000 episodes: the ratio is 0.984 and a 95 % interval has a half width of 0.006."""
    result = agents.evaluate(
        ["lsa", "dp-index"], THRESHOLD, episodes=20_000, seed=3, env_kwargs={"instance": "tao2019-1", "budget": 200}
    )
    assert result.compare("dp-index", "lsa", "misclassified").difference < 0
