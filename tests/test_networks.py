"""Networks in compiled code: what PyTorch makes of the same features, and whole episodes that they play."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from learning import untrained

import agents
from agents.learned import Trained, make_vec_env
from agents.learned import network_context as context
from agents.learned.networks import alone, network_of
from agents.learned.policy import ArmNetwork
from bandit_envs import FEATURES

POLYHEDRON = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5], "budget": 90}
PRICED = {"epsilon": 0.2, "pull_cost": 1e-2, "max_pulls": 60}
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [  # environment, its keywords, those of the policy
    ("Threshold", {"budget": 90}, {"stop": False, "context": False}),
    ("Threshold", {"budget": 90, "tolerance": 0.1}, {"stop": False, "context": True}),
    ("TopK", {"k": 1, "budget": 90}, {"stop": False, "context": True}),
    ("AllGood", PRICED, {"stop": True, "context": True}),
    ("Feasible", POLYHEDRON, {"stop": False, "context": True}),  # arms of two dimensions: not played, but compiled
]


def agent_for(problem: str, K: int, kwargs: dict[str, Any], policy: dict[str, Any], hidden: int = 16) -> Trained:
    """An agent with random weights, and a task of K arms that it is to run on."""
    instance = {"sampler": {"arms": K, "dimensions": 2} if problem == "Feasible" else {"arms": K}}
    envs = make_vec_env(f"bandit_envs/{problem}-v0", 4, observation="features", instance=instance, **kwargs)
    model = untrained(envs, **policy, hidden=hidden)
    random = torch.Generator().manual_seed(K)
    with torch.no_grad():
        for weight in model.policy.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=random))
        if policy["stop"]:  # at some observations it is to stop, at others not
            random_steps, network = np.random.default_rng(0), model.policy.mlp_extractor
            observation = envs.reset()
            for _ in range(20):
                observation, *_ = envs.step(random_steps.integers(0, K, 4))
            stop = network.forward_actor(torch.as_tensor(observation))[:, -1]
            network.stop_logit.bias.sub_(stop.median() / network.steep)
    return Trained(model, {}, envs.task)


class Stepped:
    """A network that PyTorch asks for every action."""

    observation, anytime = "features", False

    def __init__(self, agent: Trained) -> None:
        self.policy, self.stops = agent.model.policy, agent.stops

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        return self.policy.predict(observation, deterministic=True)[0], None


@pytest.mark.parametrize("K", [2, 7, 50])
@pytest.mark.parametrize(("problem", "kwargs", "policy"), CASES)
def test_decisions_are_those_of_pytorch(problem, kwargs, policy, K):
    """With and without what is kept; some arms are alike, and arms never pulled are."""
    agent = agent_for(problem, K, kwargs, policy, hidden=24)
    instance = {"sampler": {"arms": K, "dimensions": 2} if problem == "Feasible" else {"arms": K}}
    envs = make_vec_env(f"bandit_envs/{problem}-v0", 64, observation="features", instance=instance, **kwargs)
    envs.seed(K)
    observation, state, random, seen = envs.reset(), None, np.random.default_rng(0), set()
    for _ in range(100):
        action, state = agent.predict(observation, state)
        assert np.array_equal(action, agent.model.policy.predict(observation, deterministic=True)[0])
        assert np.array_equal(action[:5], agent.predict(observation[:5])[0])
        seen |= set(action.tolist())
        others = random.integers(0, K, 64)  # others may act in its place
        observation, *_ = envs.step(np.where((random.random(64) < 0.3) | (action == K), others, action))
    assert len(seen) > 1
    assert policy["stop"] or K not in seen


@numba.njit(error_model="numpy")
def _logits(net: Any, f: Any, x: Any, sums: Any, share: Any, room: Any, out: Any) -> None:
    K = len(share)
    for k in range(K):
        share[k] = f[k, context.SHARE]
        for j in range(len(context.OWN)):
            x[k, j] = f[k, context.OWN[j]]
        context._take_pulls(net, math.log(K), x[k])
        context._take_in(net, x[k], sums[k])
    context._fill(net, x, sums, share, f[0, context.LEFT], f[0, context.HORIZON], room, out)


def logits(network: ArmNetwork, f: np.ndarray, kind: Any) -> np.ndarray:
    """The logits of one episode, (K + 1,), by compiled code in a precision; those of the arms less the largest."""
    net, K, out = network_of(network, kind), len(f), np.empty(len(f) + 1)
    H = len(net.arm_bias)
    _logits(net, f, np.empty((K, 12)), np.empty((K, H), kind), np.empty(K), np.empty((3, K + 1, H), kind), out)
    return out


@pytest.mark.parametrize("hidden", [5, 16, 40])
@pytest.mark.parametrize("K", [2, 5, 50])
def test_logits_are_those_of_pytorch(K, hidden):
    agent = agent_for("AllGood", K, PRICED, {"stop": True, "context": True}, hidden)
    network = agent.model.policy.mlp_extractor
    f = np.random.default_rng(K).uniform(0.05, 0.95, (K, len(FEATURES))).astype(np.float32)
    f[:, [FEATURES.index("left"), FEATURES.index("horizon")]] = 0.4, 0.7
    for kind, near in ((np.float32, 2e-3), (np.float64, 1e-10)):
        with torch.no_grad():
            wide = {name: weight.to(torch.float64) for name, weight in network.named_parameters()}
            wanted, _ = torch.func.functional_call(network, wide, torch.as_tensor(f.reshape(1, -1)).double())
        assert logits(network, f, kind) == pytest.approx(wanted[0].numpy(), abs=near, rel=near)


def test_logits_by_hand():
    """Of width 1, with plain weights; two arms that differ in their shares alone: `width` 1/2 tells of 3 pulls."""
    network = ArmNetwork(len(FEATURES), 1, True, True, 2.0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.encoder[0].weight[0, FEATURES.index("share")] = 2.0
        network.encoder[2].weight[0, 0], network.context[0].weight[0, 1] = 1.0, 3.0
        network.surroundings.weight[0, 0], network.arm.weight[0, 0] = -1.0, 4.0
        network.arm_logit.weight[0, 0], network.stop_logit.weight[0, 0], network.stop_logit.bias[0] = 5.0, 1.0, 0.5
    f = np.full((2, len(FEATURES)), 0.5, np.float32)
    f[:, FEATURES.index("share")] = 0.25, 0.75

    def silu(x: float) -> float:
        return x / (1 + math.exp(-x))

    codes = [silu(silu(2 * share)) for share in (0.25, 0.75)]
    around = silu(3 * max(codes))
    arms = [2 * 5 * silu(4 * code - around) for code in codes]  # and the same evidence and ln n of both
    wanted = [arms[0] - arms[1], 0.0, 2 * (around + 0.5)]
    assert logits(network, f, np.float64) == pytest.approx(wanted, abs=1e-12)
    assert logits(network, f, np.float32) == pytest.approx(wanted, abs=1e-5)


@numba.njit(error_model="numpy")
def _alone(net: Any, ln_K: float, f: Any) -> Any:
    return alone(net, ln_K, f[0], f[1], f[2], f[3], f[4], f[5])


def test_a_logit_without_context_by_hand():
    """Width 1/2: 3 pulls, ln 4. Doubt 4/7: evidence 3. Feature pulls 1: as many as (1 + scale) / K = 4 / 2 per arm."""
    network = ArmNetwork(len(FEATURES), 1, False, False, 2.0)
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.own[0].weight[0, 0], network.arm.bias[0], network.arm_logit.weight[0, 0] = 2.0, 1.0, 3.0
        network.arm.weight[0, 0], network.slopes.weight[0] = 1.0, torch.tensor([0.5, 0.25, 0.0])
    one = 1 / (1 + math.exp(-1.0))
    hidden = 1.0 + one  # silu(2 width) = silu(1)
    ratio = 3 / (3 + 1)  # p = q = 0: nu = 1
    wanted = 3 * hidden / (1 + math.exp(-hidden)) - 0.5 * 3 * ratio**2 - 0.75 * math.log(4)
    found = _alone(network_of(network, np.float64), math.log(2), np.array([1.0, 0.5, 0.1, 0.2, 0.3, 4 / 7]))
    assert found == pytest.approx(2 * wanted, abs=1e-12)


@pytest.mark.parametrize("K", [2, 10, 50])
@pytest.mark.parametrize(("problem", "kwargs", "policy"), CASES[:-1])
def test_whole_episodes_are_those_of_pytorch(problem, kwargs, policy, K):
    """Played by compiled code, and step by step by PyTorch: the same pulls of every arm in every episode."""
    agent = agent_for(problem, K, kwargs, policy)
    env, kwargs = f"bandit_envs/{problem}-v0", kwargs | {"instance": {"sampler": {"arms": K}}}
    assert agent.plays
    played, stepped = (
        agents.evaluate({"one": one}, env, episodes=30, env_kwargs=kwargs, seed=5, batch=batch, progress=False)
        for one, batch in ((agent, 7), (Stepped(agent), 30))
    )
    assert played.episodes.equals(stepped.episodes)
    assert played.pulls.equals(stepped.pulls)
    if policy["stop"]:
        assert played.episodes["total_pulls"].min() < 60


@pytest.mark.parametrize(
    ("problem", "kwargs"),
    [("Threshold", {"budget": 150}), ("TopK", {"k": 3, "budget": 150}), ("AllGood", PRICED | {"pull_cost": 1e-3})],
)
def test_stored_networks_play_as_pytorch_does(problem, kwargs):
    env, kwargs = f"bandit_envs/{problem}-v0", kwargs | {"instance": {"sampler": {"arms": 10}}}
    envs = make_vec_env(env, 4, observation="features", **kwargs)
    agent = agents.make("ppo", envs.task)
    assert agent.plays
    result = agents.evaluate(
        {"played": agent, "stepped": Stepped(agent)}, env, episodes=100, env_kwargs=kwargs, seed=3, progress=False
    )
    rows = [result.episodes.query(f"agent == '{name}'").drop(columns="agent") for name in ("played", "stepped")]
    assert rows[0].reset_index(drop=True).equals(rows[1].reset_index(drop=True))


def test_what_the_compiled_code_cannot_tell_is_not_played():
    assert not agent_for("Feasible", 5, POLYHEDRON, {"stop": False, "context": True}).plays
    assert not agent_for("Threshold", 5, {"budget": 90}, {"stop": True, "context": False}).plays
    assert not Trained(agent_for(*CASES[2][:1], 5, *CASES[2][1:]).model).plays  # no task
