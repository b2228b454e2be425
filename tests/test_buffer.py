"""Relative advantages: in units of the error left, among siblings, on a mix."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import ERROR, FOUR, THRESHOLD
from stable_baselines3.common.buffers import RolloutBuffer

from agents.learned import make_vec_env
from agents.learned.buffer import RelativeBuffer


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_relative_advantages_are_advantages_over_the_mean_error_left(power):
    """Of SB3's own buffer, in the mean unit of all slots at the time, for values that are the same in both."""
    envs = make_vec_env(THRESHOLD, 6, observation="features", shaping=True, **FOUR)
    shape = (10, envs.observation_space, envs.action_space, "cpu", 0.9, 0.8, 6)
    own, plain = (
        RelativeBuffer(*shape[:4], shape[5], shape[4], 6, power=power),
        RolloutBuffer(*shape[:4], shape[5], shape[4], 6),
    )
    envs.seed(2)
    observation, starts = envs.reset(), np.ones(6)
    random = np.random.default_rng(0)
    units = []
    for _ in range(10):
        unit = observation.reshape(6, 4, -1)[..., ERROR].mean(1, dtype=np.float64) ** power
        values, actions = random.random(6), random.integers(0, 4, 6)
        after, rewards, dones, _ = envs.step(actions)
        for buffer, scale in ((own, unit), (plain, np.ones(6))):
            buffer.add(observation, actions[:, None], rewards, starts, torch.as_tensor(values / scale), torch.zeros(6))
        units.append(unit)
        observation, starts = after, dones.astype(float)
    last = random.random(6)
    unit = units[-1]  # that of the state before, see `after`
    own.compute_returns_and_advantage(torch.as_tensor(last / unit), dones)
    plain.compute_returns_and_advantage(torch.as_tensor(last), dones)
    relative = plain.advantages / np.stack(units).mean(1, keepdims=True)
    assert own.advantages == pytest.approx(relative / relative.std(), abs=1e-4)


def test_advantages_are_compared_among_siblings():
    """Each less the mean of its siblings', by hand; the critic's targets are what they are without siblings."""
    envs = make_vec_env(THRESHOLD, 6, observation="features", siblings=3, **FOUR)
    shape = (4, envs.observation_space, envs.action_space, "cpu", 0.9, 0.8, 6)
    own, plain = (RelativeBuffer(*shape, power=0.0, siblings=n) for n in (3, 1))
    observation, random = envs.reset(), np.random.default_rng(0)
    for t in range(4):
        values, rewards = random.random(6), random.random(6)
        for buffer in (own, plain):
            buffer.add(
                observation, np.zeros((6, 1)), rewards, np.full(6, t == 0), torch.as_tensor(values), torch.zeros(6)
            )
    for buffer in (own, plain):
        buffer.compute_returns_and_advantage(torch.zeros(6), np.ones(6))
    assert np.array_equal(own.returns, plain.returns)
    own_mean = np.zeros((4, 6))
    for t in range(4):
        for i in range(6):
            others = [plain.advantages[t, j] for j in range(i // 3 * 3, i // 3 * 3 + 3) if j != i]
            own_mean[t, i] = plain.advantages[t, i] - np.mean(others)
    assert own.advantages == pytest.approx(own_mean / own_mean.std(), abs=1e-5)


def test_no_environment_of_a_mix_drowns_the_others():
    envs = make_vec_env(THRESHOLD, 6, observation="features", **FOUR)
    buffer = RelativeBuffer(4, envs.observation_space, envs.action_space, "cpu", 0.9, 0.8, 6, power=0.0)
    buffer.parts, observation, random = [2, 4], envs.reset(), np.random.default_rng(0)
    for t in range(4):
        rewards, starts = random.random(6) * [1, 1, 1e-3, 1e-3, 1e-3, 1e-3], np.full(6, t == 0)
        buffer.add(observation, np.zeros((6, 1)), rewards, starts, torch.zeros(6), torch.zeros(6))
    buffer.compute_returns_and_advantage(torch.zeros(6), np.ones(6))
    assert buffer.returns[:, :2].std() > 100 * buffer.returns[:, 2:].std()
    assert [buffer.advantages[:, :2].std(), buffer.advantages[:, 2:].std()] == pytest.approx([1, 1], abs=1e-3)
