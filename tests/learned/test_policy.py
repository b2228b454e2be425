"""The equivariant policy with features: by hand, symmetries, ties, the distribution of its actions, masks."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import THRESHOLD, observations, untrained
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from agents.learned import EquivariantPolicy, make_vec_env
from agents.learned.policy import ArmNetwork
from bandit_envs.envs import NUMBERS, box_of


def test_logits_by_hand():
    """Two arms with one number each, 1 and 3, at time 2; width 1, all weights 1 but for biases of 0.

    The codes are tanh(1 + 2) and tanh(3 + 2), and with their mean and maximum the context is their sum.
    """
    made = ArmNetwork(1, True, 1, True).double()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            weight.fill_(0.0 if "bias" in name else 1.0)
    logits, latent = made(torch.tensor([[1.0, 3.0, 2.0]], dtype=torch.float64))
    first, second = math.tanh(3), math.tanh(5)
    context = (first + second) / 2 + second
    assert logits[0].tolist() == pytest.approx(
        [math.tanh(first + context), math.tanh(second + context), math.tanh(context)]
    )
    assert latent[0].tolist() == pytest.approx([math.tanh(context)])


@pytest.mark.parametrize("form", NUMBERS)
@pytest.mark.parametrize("stop", [False, True])
def test_the_spaces_tell_the_form(form, stop):
    kwargs = {"observation": form, "stop": stop, "budget": 20}
    policy = untrained(make_vec_env(THRESHOLD, 4, **kwargs)).policy
    assert (policy.observation, policy.stop) == (form, stop)
    assert policy.observation_space == box_of(10, form)
    policy.predict(np.zeros((3, *box_of(7, form).shape), np.float32))
    assert policy.action_space.n == 7 + stop
    with pytest.raises(ValueError, match=r"'features' \(9 K . 0\), 'relative' \(6 K . 4\) with K or"):
        PPO(EquivariantPolicy, "CartPole-v1", device="cpu")


def test_the_start_pulls_the_arm_with_the_largest_gain():
    envs = make_vec_env("TopK", 16, k=2, budget=40, observation="relative", stop=False)
    model = PPO(EquivariantPolicy, envs, seed=0, device="cpu")
    envs.seed(1)
    seen, moved = envs.reset(), 0
    for _ in range(39):
        gain = seen[:, :60].reshape(16, 10, 6)[..., 1]
        arms, _ = model.predict(seen, deterministic=True)
        assert (gain[np.arange(16), arms] == 0).all()  # ties by index, see `_best`
        moved += len(set(arms))
        seen = envs.step(arms)[0]
    assert moved > 100


@pytest.mark.parametrize("arms", [10, 7, 100])
def test_permuting_the_arms_permutes_the_logits(ten, arms):
    x = torch.as_tensor(observations(arms)).reshape(32, arms, -1)
    order = torch.randperm(arms, generator=torch.Generator().manual_seed(0))
    network = ten.policy.mlp_extractor
    with torch.no_grad():
        (logits, value), (moved, again) = network(x.flatten(1)), network(x[:, order].flatten(1))
    assert logits.shape == (32, arms + 1)
    assert torch.allclose(logits[:, :-1][:, order], moved[:, :-1], atol=1e-5)
    assert torch.allclose(logits[:, -1], moved[:, -1], atol=1e-5)
    assert torch.allclose(value, again, atol=1e-5)
    assert torch.equal(network.forward_actor(x.flatten(1)), logits)
    assert torch.equal(network.forward_critic(x.flatten(1)), value)
    assert logits[:, :-1].std() > 1e-3  # it does tell the arms apart


def test_decisions_follow_the_arms(ten):
    x = observations(10)
    arms, slots = x.reshape(32, 10, -1), np.arange(32)
    order = np.random.default_rng(0).permutation(10)
    model = untrained(make_vec_env(THRESHOLD, 4, observation="features", budget=200, stop=False))
    action, _ = model.predict(x, deterministic=True)
    moved, _ = model.predict(arms[:, order].reshape(32, -1), deterministic=True)
    assert len(set(action)) > 1
    assert np.array_equal(arms[slots, order[moved]], arms[slots, action])  # the same arm, or one that looks the same


def test_equal_arms_tie_and_the_lowest_wins():
    envs = make_vec_env(THRESHOLD, 4, observation="features", budget=200, stop=False)
    model, start = untrained(envs), envs.reset()[:1]
    for count in (1, 3, 64, 1000):
        assert (model.predict(np.repeat(start, count, 0), deterministic=True)[0] == 0).all()


@pytest.mark.parametrize("stop", [False, True])
def test_the_distribution_of_the_actions_is_that_of_sb3(stop):
    model = untrained(make_vec_env(THRESHOLD, 4, observation="features", budget=200, stop=stop))
    x = torch.as_tensor(observations(10))
    actions = torch.arange(len(x)) % 10
    told, usual = (kind.evaluate_actions(model.policy, x, actions) for kind in (EquivariantPolicy, ActorCriticPolicy))
    for one, other in zip(told, usual, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    chances = chances_of(model, x[:1])[0].detach()
    torch.manual_seed(0)
    drawn, _, logarithms = model.policy(x[:1].repeat(20_000, 1))
    counts = torch.bincount(drawn, minlength=10 + stop)
    expected = 20_000 * chances
    often = expected > 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert statistic < 40  # chi-squared with at most 10 degrees of freedom: one seed in 50,000 would fail
    assert torch.allclose(logarithms.exp(), chances[drawn], atol=1e-5)
    assert torch.equal(model.policy(x, deterministic=True)[0], chances_of(model, x).argmax(1))


def chances_of(model: PPO, x: torch.Tensor) -> torch.Tensor:
    """The probabilities of the actions (n, K + 1), as SB3 tells them."""
    return model.policy.get_distribution(x).distribution.probs


def test_a_mask_keeps_actions_away(ten):
    x = torch.as_tensor(observations(10))
    best = ten.policy._predict(x, deterministic=True)
    mask = np.ones((32, 11), bool)
    mask[np.arange(32), best] = False
    second = ten.policy._predict(x, deterministic=True, action_masks=mask)
    assert (second != best).all()


def test_an_update_reaches_every_weight():
    model = untrained(make_vec_env(THRESHOLD, 8, observation="features", delta=0.1, budget=20))
    before = {name: weight.clone() for name, weight in model.policy.named_parameters()}
    model.learn(64)
    unmoved = [name for name, weight in model.policy.named_parameters() if torch.equal(weight, before[name])]
    assert unmoved == []
