"""The equivariant policy: symmetries, ties, stopping, index policies, masks, decay."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import ERROR, THRESHOLD, observations, untrained
from stable_baselines3 import PPO
from stable_baselines3.common.policies import ActorCriticPolicy

from agents.learned import EquivariantPolicy, Trained, make_vec_env
from agents.learned.policy import ArmNetwork
from bandit_envs import FEATURES


@pytest.fixture(scope="module")
def ten() -> PPO:
    """An untrained policy for 10 arms."""
    return untrained(make_vec_env(THRESHOLD, 4, observation="features"))


def test_logits_by_hand():
    """Two arms, 3 and 0 pulls, errors of 1/(2 e^2) and 1/2, layers of zeros but for the last bias, .5.

    Of 9 pulls, so that ln((1 + scale) / K) = ln 5 and nu = e^(ln 5 - ln 100) = 1/20 where p = 0 and q = 1: the evidence
    2 counts with (3 / 3.05)^2. The logits are 4 (.5 - 2 (3 / 3.05)^2 - ln 4), and 4 (.5) of the arm without pulls.
    """
    made = ArmNetwork(len(FEATURES), 4, False, True, 4.0).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.zero_()
        made.arm_logit.bias.fill_(0.5)
        made.prior[1] = 1.0
    x = torch.zeros(1, 2, len(FEATURES), dtype=torch.float64)
    x[..., FEATURES.index("pulls")] = torch.tensor([math.log(4) / math.log(10), 0.0])
    x[..., FEATURES.index("width")] = torch.tensor([0.5, 1.0], dtype=torch.float64)
    x[..., FEATURES.index("doubt")] = torch.tensor([4 / 6, 1.0], dtype=torch.float64)
    logits, latent = made(x.flatten(1))
    assert logits.tolist()[0] == pytest.approx([4 * (0.5 - 2 * (3 / 3.05) ** 2 - math.log(4)), 2.0, -1e8], rel=1e-6)
    assert latent.tolist() == [[0.0] * 4]  # SiLU of 0


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
    assert logits[:, :-1].std() > 1e-3  # it does tell the arms apart


def test_decisions_follow_the_arms(ten):
    x = observations(10)
    arms, slots = x.reshape(32, 10, -1), np.arange(32)
    order = np.random.default_rng(0).permutation(10)
    model = untrained(make_vec_env(THRESHOLD, 4, observation="features"), stop=False)
    action, _ = model.predict(x, deterministic=True)
    moved, _ = model.predict(arms[:, order].reshape(32, -1), deterministic=True)
    assert len(set(action)) > 1
    assert np.array_equal(arms[slots, order[moved]], arms[slots, action])  # the same arm, or one that looks the same


def test_equal_arms_tie_and_the_lowest_wins():
    envs = make_vec_env(THRESHOLD, 4, observation="features")
    model, start = untrained(envs, stop=False), envs.reset()[:1]
    for count in (1, 3, 64, 1000):
        assert (model.predict(np.repeat(start, count, 0), deterministic=True)[0] == 0).all()


def test_stopping_is_out_of_the_question_where_nobody_wants_it():
    envs = make_vec_env(THRESHOLD, 4, observation="features")
    model = untrained(envs, stop=False)
    x = torch.as_tensor(np.repeat(envs.reset(), 500, 0))
    with torch.no_grad():
        actions, _, _ = model.policy(x)
        _, logarithm, entropy = model.policy.evaluate_actions(x, actions)
    assert (actions < 10).all()
    assert torch.isfinite(logarithm).all()
    assert entropy.max() <= math.log(10) + 1e-5
    wants = untrained(envs, stop=True)
    with torch.no_grad():
        assert (wants.policy(x)[0] == 10).any()


@pytest.mark.parametrize("stop", [False, True])
def test_the_law_of_the_actions_is_that_of_sb3(stop):
    model = untrained(make_vec_env(THRESHOLD, 4, observation="features"), stop=stop)
    x = torch.as_tensor(observations(10))
    actions = torch.arange(len(x)) % 10
    told, usual = (kind.evaluate_actions(model.policy, x, actions) for kind in (EquivariantPolicy, ActorCriticPolicy))
    for one, other in zip(told, usual, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    chances = chances_of(model, x[:1])[0].detach()
    torch.manual_seed(0)
    drawn, _, logarithms = model.policy(x[:1].repeat(20_000, 1))
    counts = torch.bincount(drawn, minlength=11)
    expected = 20_000 * chances
    often = expected > 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert statistic < 40  # chi-squared with at most 10 degrees of freedom: one seed in 50,000 would fail
    assert torch.allclose(logarithms.exp(), chances[drawn], atol=1e-5)
    assert torch.equal(model.policy(x, deterministic=True)[0], chances_of(model, x).argmax(1))


def chances_of(model: PPO, x: torch.Tensor) -> torch.Tensor:
    """The probabilities of the actions (n, K + 1), as SB3 tells them."""
    return model.policy.get_distribution(x).distribution.probs


def indexed(K: int, stop: bool = False) -> Trained:
    """An untrained network without context for K arms."""
    return Trained(
        untrained(
            make_vec_env(THRESHOLD, 4, observation="features", instance=f"sampler(arms={K})"), stop=stop, context=False
        )
    )


def test_without_context_a_logit_depends_on_its_arm_alone():
    x = torch.as_tensor(observations(10)).reshape(32, 10, -1)
    changed = x.clone()
    changed[:, 1:] = x[:, :-1]
    own, other = indexed(10).model.policy.mlp_extractor, untrained(make_vec_env(THRESHOLD, 4, observation="features"))
    with torch.no_grad():
        assert torch.allclose(own.forward_actor(x)[:, 0], own.forward_actor(changed)[:, 0], atol=1e-4)
        network = other.policy.mlp_extractor
        assert (network.forward_actor(x)[:, 0] - network.forward_actor(changed)[:, 0]).abs().max() > 1e-4


def test_an_untrained_network_pulls_by_error_and_pulls():
    """Its logits are -4 (-ln(2 error) (n / (n + nu))^2 + ln(1 + n)), but for a network whose last layer is small.

    200 pulls for 10 arms, a fifth of 100 per arm: nu = (201 / 1000)^1.5.
    """
    x = observations(10)
    network = indexed(10).model.policy.mlp_extractor
    with torch.no_grad():
        network.arm_logit.weight.zero_()
        network.arm_logit.bias.zero_()
        logits = network.forward_actor(torch.as_tensor(x))[:, :-1].numpy()
    features = x.reshape(32, 10, -1).astype(np.float64)
    pulls = features[..., FEATURES.index("width")] ** -2 - 1
    shrunk = np.log(2 * features[..., ERROR]) * (pulls / (pulls + 0.201**1.5)) ** 2
    assert logits == pytest.approx(4 * shrunk - 4 * np.log1p(pulls), abs=1e-2)


def test_without_context_only_the_budget_per_arm_counts():
    """The same arms beside as many others, with twice the budget: the same logits, though not the same features."""
    few = torch.as_tensor(observations(10)).reshape(32, 10, -1)
    many = torch.cat([few, few], 1)
    many[..., FEATURES.index("pulls")] *= math.log(201) / math.log(402)  # 1 + 200 pulls for 10 arms, 1 + 401 for 20
    network = indexed(10).model.policy.mlp_extractor
    with torch.no_grad():
        network.slopes.weight.copy_(torch.tensor([[0.1, -0.2, 0.3]]))
        assert torch.allclose(network.forward_actor(many)[:, :10], network.forward_actor(few)[:, :10], atol=1e-3)
        assert not torch.allclose(network.forward_actor(few), network.forward_actor(few * 0.99), atol=1e-1)


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (THRESHOLD, {"instance": {"sampler": {"arms": 7}}, "budget": 90}),
        ("bandit_envs/TopK-v0", {"instance": {"sampler": {"arms": 7}}, "k": 2, "budget": 90}),
        ("bandit_envs/Feasible-v0", {"instance": "dose-finding", "budget": 90}),
    ],
)
def test_arms_that_have_not_changed_need_not_be_looked_at_again(env_id, kwargs):
    """A network without context remembers logits; with `state=None` it computes all of them."""
    envs = make_vec_env(env_id, 16, observation="features", **kwargs)
    agent, random = indexed(envs.task.K), np.random.default_rng(0)
    envs.seed(1)
    observation, state, counts = envs.reset(), None, []
    for _ in range(250):  # episodes begin anew on the way
        actions, state = agent.predict(observation, state)
        assert np.array_equal(actions, agent.predict(observation)[0])
        assert np.array_equal(actions, agent.model.policy.predict(observation, deterministic=True)[0])
        counts.append(len(np.unique(actions)))
        if random.random() < 0.1:  # others may act in its place
            actions = random.integers(0, envs.task.K, 16)
        observation, *_ = envs.step(actions)
    assert max(counts) > 1


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


def test_what_the_network_adds_to_its_start_fades_and_nothing_else():
    """One step of AdamW without any gradient: weights of the way to the logits lose lr * decay = 0.2 of themselves."""
    envs = make_vec_env(THRESHOLD, 4, observation="features", budget=20)
    for context, parts in ((False, {"own", "arm", "arm_logit"}), (True, {"arm", "surroundings", "arm_logit"})):
        kwargs = {"hidden": 8, "stop": False, "context": context, "decay": 2.0}
        policy = PPO(EquivariantPolicy, envs, learning_rate=0.1, seed=0, policy_kwargs=kwargs, device="cpu").policy
        before = {name: weight.clone() for name, weight in policy.named_parameters()}
        for weight in policy.parameters():
            weight.grad = torch.zeros_like(weight)
        policy.optimizer.step()
        for name, weight in policy.named_parameters():
            left = 0.8 if name.split(".")[1] in parts else 1.0
            assert torch.allclose(weight, left * before[name], atol=0), name
