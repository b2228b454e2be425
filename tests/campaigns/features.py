"""The chance of an error that features show, against SciPy's distributions.

python tests/campaigns/features.py     100 random rules of each kind; the default tests have five and two
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from scipy import stats

from bandit_envs.envs.observations import FEATURES


def check_posterior(threshold: float, tolerance: float, seed: int = 0) -> None:
    """The mass of Beta(1 + ones, 1 + zeros) on the other side of the threshold, beyond the tolerance."""
    rule = {"threshold": threshold, "tolerance": tolerance, "observation": "features", "actions": "full"}
    envs: Any = gym.make_vec("bandit_envs/Threshold-v0", 40, instance="sampler(arms=6)", **rule)
    envs.reset(seed=seed)
    counts = np.random.default_rng(seed).integers(1, 40, (6, 40)) ** 2
    answer, sim = np.zeros((40, 6), np.int8), envs.unwrapped._sim
    for arm in range(5):  # the last is never pulled
        seen = envs.step({"arm": np.full(40, arm), "times": counts[arm], "answer": answer})[0]
    ones, zeros = sim.total, sim.pulls - sim.total
    distribution = stats.beta(1 + ones, 1 + zeros)
    inside = (ones >= threshold * sim.pulls) & (sim.pulls > 0)
    expected = np.where(inside, distribution.cdf(threshold - tolerance), distribution.sf(threshold + tolerance))
    found = seen.reshape(40, 6, len(FEATURES))[..., FEATURES.index("error")]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)


def check_tail(problem: str, seed: int = 3) -> None:
    """Phi(-(d + tolerance) / s), s^2 the empirical variance with a sample of the prior, by n + 1."""
    distribution = {"distribution": "gaussian", "mean": [0.1, 0.5, 0.9], "sd": 2.0}
    rule: dict[str, Any] = {"threshold": 0.4}
    if problem == "Feasible":
        distribution, rule = {**distribution, "mean": [[0.1], [0.5], [0.9]]}, {"A": [[-1.0]], "b": [-0.4]}
    errors = {}
    for tolerance in (0.0, 0.3):
        env: Any = gym.make_vec(
            f"bandit_envs/{problem}-v0", 1, instance=distribution, observation="features", tolerance=tolerance, **rule
        )
        env.reset(seed=seed)
        for arm in (0, 1, 1, 1, 1):
            seen = env.step(np.array([arm]))[0]
        errors[tolerance] = seen.reshape(3, len(FEATURES))[:, FEATURES.index("error")]
        sim = env.unwrapped._sim
        n, mean = sim.pulls.ravel()[:2], sim.mean.ravel()[:2]
        scale = np.sqrt((n * sim.variance.ravel()[:2] + 4.0) / (n * (n + 1)))  # the prior is worth one sample
        expected = stats.norm.sf((np.abs(mean - 0.4) + tolerance) / scale)
        np.testing.assert_allclose(errors[tolerance][:2], expected, rtol=1e-6)
        assert errors[tolerance][2] == 0.5
    assert (errors[0.3][:2] < errors[0.0][:2]).all()


def main() -> None:
    generator = np.random.default_rng(0)
    for seed in range(100):
        threshold = float(generator.random())
        check_posterior(threshold, float(generator.random() * min(threshold, 1 - threshold)), seed)
        for problem in ("Threshold", "Feasible"):
            check_tail(problem, seed)


if __name__ == "__main__":
    main()
