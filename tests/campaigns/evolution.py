"""The evolved index: its network against a literal twin, and losses that are expected against those that happen.

python tests/campaigns/evolution.py     200 instances and 100,000 episodes of each problem; in tests 8 and 4,000
"""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import pytest

from agents.evolved.agent import Evolved
from agents.evolved.evolution import CommonEpisodes
from agents.evolved.formula import LSA
from agents.evolved.network import HIDDEN, LAYERS

THRESHOLD, CONTROL = "bandit_envs/Threshold-v0", "bandit_envs/BetterThanControl-v0"
CONTROLS: list[dict[str, Any]] = [{"margin": 0.05}, {"control": 2, "lift": 0.3}]
VALUES = (0.6, 0.5, 0.5, 5.0, 0.3, 0.2, 0.1, 0.5, 0.4, 1.0, -1.0, 0.5, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0)
GENERATOR = np.random.default_rng(3)
NET = GENERATOR.standard_normal((LAYERS, HIDDEN)) * 0.7
NET_VALUES = [*VALUES, *NET.ravel().tolist()]


def network_twin(
    pulls: np.ndarray, mean: np.ndarray, distances: np.ndarray, T: int, local: bool, problem: Any = None
) -> int:
    """The arm with the least corrected index, Bernoulli arms, as the heads of `formula` and `network` tell it.

    problem: where there is a control, as that of `coupled` does.
    """
    K, fair = len(pulls), math.log(T / len(pulls))
    alpha, beta, rho, kappa, gamma, delta, eta, mu, c, p, q, r, s = VALUES[:13]
    nu = kappa * math.exp(mu * (fair - math.log(100)))
    w, index, joined = [], [], []
    control = getattr(problem, "control_arm", None)

    def formula(n: int, w: float) -> float:
        x = p * math.log(1 + w) + q * math.log(n) + r * (math.log(n) - fair) + s
        found = alpha * w + (beta + eta * (fair - math.log(100))) * math.log(n)
        return found + gamma * (math.log(n * w + delta + 0.001) - math.log(n)) + c * x / (1 + abs(x))

    for k, (n, m, distance) in enumerate(zip(pulls.tolist(), mean.tolist(), distances.tolist(), strict=True)):
        own = n
        if control is not None and k != control:
            n = 1 / (1 / n + problem.spaces[0][0] ** 2 / pulls[control])
        d, side = abs(distance) * n / (n + nu), 1 if distance >= 0 else -1
        near, shrunk = min(max(m - distance, 0.001), 0.999), min(max(m - distance + side * d, 0), 1)
        kl = sum(a * math.log(a / b) for a, b in ((shrunk, near), (1 - shrunk, 1 - near)) if a > 0)
        w.append(2 * n * d * d + rho * (n * max(kl, 0) - 2 * n * d * d))
        index.append(formula(own, w[-1]))
        joined += [formula(pulls[control], w[-1])] if control not in (None, k) else []
    if control is not None:
        power = 2 / (beta + eta * (fair - math.log(100)))
        index[control] = -math.log(sum(math.exp(-power * one) for one in joined)) / power
    share = [(math.log(n) - fair) / 2 for n in pulls]
    sides = {s: [k for k in range(K) if (distances[k] >= 0) == (s == 1) and k != control] for s in (1, -1)}
    border = {s: min(arms, key=lambda k: abs(distances[k]), default=None) for s, arms in sides.items()}
    leader = int(np.argmax(mean)) if control is None else control
    for k in range(K):
        n, m, side = pulls[k], (pulls[k] * mean[k] + 0.5) / (pulls[k] + 1), 1 if distances[k] >= 0 else -1
        inputs = [math.log(1 + w[k]) / 3, w[k] / (1 + w[k]), share[k], math.log(4 * m * (1 - m)) / 2]
        inputs += [0.0 if local else float(k == leader), 1.0, side, (fair - math.log(100)) / 2]
        if not local:
            inputs += [0.5 - pulls.sum() / T, sum(1 / (1 + v) for v in w) / K]
            inputs += [0.0 if one is None else share[one] for one in (border[-side], border[side], leader)]
        x = np.array(inputs) @ NET[: len(inputs)]
        index[k] += float((NET[-1] * x / (1 + abs(x))).sum())
    return int(np.argmin(index))


def check_network(env_id: str, instances: int, **rules: Any) -> None:
    """The same arms as the twin's; mirror images, between which rounding decides, are not asked for."""
    for episode in range(instances):
        K = 4 + episode % 5
        env = gym.make(env_id, actions="full", instance=f"sampler(arms={K})", budget=15 * K, **rules)
        agent, problem = Evolved(env, NET_VALUES), env.unwrapped.problem  # type: ignore[attr-defined]
        observation, _ = env.reset(seed=4, options={"episode": episode})
        state, over = None, False
        while not over:
            action, state = agent.predict(observation, state)
            pulls, mean = observation["pulls"], observation["mean"]
            if observation["remaining"][0] > 0 and (pulls == 0).any():
                assert action["arm"] == (pulls == 0).argmax()
            elif observation["remaining"][0] > 0:
                distances = problem.distances(pulls[None], mean[None])[0]
                wanted = network_twin(pulls, mean, distances, 15 * K, problem.local, problem)
                alike = (pulls[wanted] == pulls[action["arm"]]) and abs(distances[wanted]) == pytest.approx(
                    abs(distances[action["arm"]])
                )
                assert action["arm"] == wanted or alike
            observation, _, over, _, _ = env.step(action)


CORNER = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}
PLANE = {"sampler": {"distribution": "gaussian", "arms": 4, "dimensions": 2}}
FIVE = {"sampler": {"distribution": "gaussian", "arms": 5}}
DRAWN: dict[str, Any] = {
    "TopK": {"instance": "sampler(arms=6)", "k": 2, "budget": 60},
    "Feasible": {"instance": PLANE, "budget": 40} | CORNER,
    "AllGood": {"instance": FIVE, "pull_cost": 0.01, "max_pulls": 9000},
}
MEANS: list[Any] = [{"uniform": [0.3, 0.6]}, {"around": [0.5, 0.05, 0.2]}, {"choice": [0.3, 0.55]}]


def check_losses(env_id: str, kwargs: Any, episodes: int, replaced: tuple[str, ...], most: float) -> None:
    """Losses agree with those that happen where functions are replaced, and vary less; |z| > 5 has probability 6e-7."""
    parameters = [*LSA, *((0.0, 0.5) if "AllGood" in env_id else ())]
    found = CommonEpisodes(env_id, kwargs, episodes).losses([parameters], 3, 0)[0]
    no: Any = {name: lambda _: False for name in replaced}
    with mock.patch.multiple("agents.evaluation.expected_loss", **no):
        happened = CommonEpisodes(env_id, kwargs, episodes).losses([parameters], 3, 0)[0]
    difference = found - happened
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(episodes), kwargs
    assert found.std() < most * happened.std()


def check_drawn(problem: str, episodes: int) -> None:
    check_losses(f"bandit_envs/{problem}-v0", DRAWN[problem], episodes, ("drawable",), 1.0)


def check_expected(mean: Any, episodes: int) -> None:
    kwargs = {"instance": {"sampler": {"arms": 4, "mean": mean}}, "budget": 40}
    check_losses(THRESHOLD, kwargs, episodes, ("expectable", "drawable"), 0.85)


def main() -> None:
    for env_id in (THRESHOLD, "bandit_envs/TopK-v0", "bandit_envs/AllGood-v0"):
        check_network(env_id, 200)
    for rules in CONTROLS:
        check_network(CONTROL, 200, **rules)
    for problem in DRAWN:
        check_drawn(problem, 100_000)
    for mean in MEANS:
        check_expected(mean, 100_000)


if __name__ == "__main__":
    main()
