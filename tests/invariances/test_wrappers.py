"""What lies around an environment is applied to what a model sees, or refused by name; no agent writes into it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecCheckNan, VecFrameStack, VecNormalize

import agents
from agents.learned import make_vec_env

ENV = "bandit_envs/TopK-v0"
KWARGS: dict[str, Any] = {"instance": "sampler(arms=5)", "k": 2, "budget": 40, "stop": False}
N = 12


class Turned(gym.ObservationWrapper):
    def observation(self, observation: Any) -> Any:
        observation *= -1.0  # in place: what it is given is its own
        return observation


class Counts(Turned):
    n = 0

    def observation(self, observation: Any) -> Any:
        self.n += 1
        return observation + self.n


class Skips(gym.Wrapper):
    def step(self, action: Any) -> Any:
        return self.env.step(action)


class Paid(gym.RewardWrapper):
    def reward(self, reward: Any) -> Any:
        return 2 * reward


class Other(gym.ActionWrapper):
    def action(self, action: Any) -> Any:
        return (action + 1) % 5


def single(*layers: Callable[[Any], Any], kind: Any = DummyVecEnv, observation: str = "features") -> Any:
    def made() -> Any:
        env = gym.make(ENV, observation=observation, **KWARGS)
        for layer in layers:
            env = layer(env)
        return env

    return kind([made])


def native(slots: int = 1) -> Any:
    return make_vec_env(ENV, slots, observation="features", **KWARGS)


def filtered(env: Any) -> Any:  # as docs/environments.md has it
    return gym.wrappers.FilterObservation(env, ["pulls", "mean", "variance", "remaining"])


WRAPPED: dict[str, Callable[[], Any]] = {
    "VecNormalize": lambda: VecCheckNan(VecNormalize(native(4), clip_obs=1.5)),
    "VecNormalize, DummyVecEnv": lambda: VecNormalize(single(Monitor)),
    "ObservationWrapper": lambda: single(Monitor, Turned, Paid),
    "TransformObservation": lambda: single(
        lambda env: gym.wrappers.TransformObservation(env, lambda x: np.cos(9 * x), env.observation_space)
    ),
    "FilterObservation": lambda: single(filtered, observation="statistics"),
    "FlattenObservation": lambda: single(filtered, gym.wrappers.FlattenObservation, observation="statistics"),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads of a network this small only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("wrapped", WRAPPED)
def test_a_model_is_judged_on_what_it_saw(wrapped: str, tmp_path: Path) -> None:
    """By SB3's loop through the wrappers themselves, and by `evaluate` and `play`; the wrong twin sees raw numbers."""
    envs = WRAPPED[wrapped]()
    policy = "MultiInputPolicy" if isinstance(envs.observation_space, gym.spaces.Dict) else "MlpPolicy"
    model = PPO(policy, envs, n_steps=64, seed=1, device="cpu", learning_rate=1e-5, n_epochs=1).learn(64)
    if isinstance(layer := model.get_vec_normalize_env(), VecNormalize):
        layer.training = False
    envs.seed(0)
    seen, scores, first = envs.reset(), dict[int, float](), list[int]()
    while len(scores) < N:
        numbers = getattr(envs.unwrapped, "episodes", [len(scores)])
        action, _ = model.predict(seen, deterministic=True)
        first += [int(action[0])] if 0 not in scores else []
        seen, _, done, infos = envs.step(action)
        scores |= {int(numbers[i]): infos[i]["score"] for i in np.flatnonzero(done)}
    wanted = np.array([scores[e] for e in range(N)])

    def found(agent: Any) -> Any:
        return agents.evaluate(agent, ENV, episodes=N, env_kwargs=KWARGS).episodes["score"].to_numpy()

    assert (found(model) == wanted).all()
    assert agents.play(model, ENV, env_kwargs=KWARGS).arms.tolist() == first
    model.save(tmp_path / "model")
    again, bare = (PPO.load(tmp_path / "model", env=one, device="cpu") for one in (envs, None))
    assert (found(again) == wanted).all()
    if wrapped in ("FilterObservation", "FlattenObservation"):  # nothing tells what the numbers were
        with pytest.raises(ValueError, match=r"its environment shows .*if a wrapper lay between them"):
            found(bare)
        with pytest.raises(ValueError, match=r"was trained on other observations.*load\(file, env=env\)"):
            agents.evaluate(str(tmp_path / "model.zip"), ENV, episodes=2, env_kwargs=KWARGS, trust=True)
        return
    model.set_env(native(envs.num_envs))
    for one in (model, bare, str(tmp_path / "model.zip")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            rows = agents.evaluate(one, ENV, episodes=N, env_kwargs=KWARGS, trust=True).episodes
        assert (rows["score"].to_numpy() != wanted).any()
        assert any("VecNormalize" in str(one.message) for one in said) == ("VecNormalize" in wrapped)


REFUSED: dict[str, Callable[[], Any]] = {
    "behind VecFrameStack": lambda: VecFrameStack(native(), 1),
    "behind NormalizeObservation": lambda: single(gym.wrappers.NormalizeObservation),
    "behind Other": lambda: single(Other),
    "behind Skips": lambda: single(Turned, Skips),
    "behind Counts": lambda: single(Counts),
    "behind Turned": lambda: single(Turned, kind=SubprocVecEnv),
    "different wrappers": lambda: DummyVecEnv([lambda: single().envs[0], lambda: single(Other).envs[0]]),
}


@pytest.mark.parametrize("said", REFUSED)
def test_others_are_refused_by_name(said: str) -> None:
    model = PPO("MlpPolicy", REFUSED[said](), n_steps=2, batch_size=2, device="cpu")
    for door in (agents.evaluate, agents.play):
        with pytest.raises(ValueError, match=said):
            door(model, ENV, **({"episodes": 2} if door is agents.evaluate else {}), env_kwargs=KWARGS)


def test_the_environment_of_an_agent_is_looked_through() -> None:
    env = gym.make(ENV, instance="sampler(arms=5)")
    plain = (Paid, gym.wrappers.RecordEpisodeStatistics, lambda env: gym.wrappers.TimeLimit(env, 9))
    for layer in plain:
        agents.make("uniform", layer(env))
    for layer in (Turned, Skips, Other):
        with pytest.raises(ValueError, match=f"{layer.__name__} changes them"):
            agents.make("uniform", Paid(layer(env)))


class Writes(agents.Agent):
    """Writes into what it is shown."""

    name, source, solves = "writes", "a test", ("TopK",)
    part = "pulls"

    def choose(self, observation: Any, state: Any) -> Any:
        if self.part:
            observation[self.part][:] = 0
        return observation["pulls"].argmin(axis=1)


class Answers(Writes):
    """The same, where it is asked for its answer."""

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        observation["mean"] += 1.0
        return super().recommend(observation, state, slots)

    part = ""


class Reads(Writes):
    part = ""


class Plain:
    """No `Agent`: any object with a method `predict`."""

    observation, stops = "features", False

    def predict(self, observation: Any, state: Any = None, *others: Any, **more: Any) -> Any:
        observation[:] = 0.0
        return np.zeros(len(observation), np.int64), state


@pytest.mark.parametrize("agent", [Writes, Answers, Plain()], ids=["choose", "recommend", "predict"])
def test_nobody_writes_into_an_episode(agent: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A user's agent may write into what it is shown: the episode goes on as it was."""
    kwargs = {"instance": "sampler(arms=5)", "budget": 40}

    def is_kept() -> bool:
        found = agents.evaluate({"one": agent}, ENV, episodes=4, at=[10, 40], env_kwargs=kwargs)
        parts = agents.evaluate({"one": agent}, ENV, episodes=4, at=[10, 40], jobs=2, env_kwargs=kwargs)
        score, read = found.episodes.query("at == 40").score, agents.evaluate(Reads, ENV, episodes=4, env_kwargs=kwargs)
        return (
            found.pulls.groupby("at")["pulls"].sum().tolist() == [10, 40]
            and (agent is not Answers or score.tolist() == read.episodes.score.tolist())
            and found.episodes.equals(parts.episodes)
        )

    assert is_kept()
    facts = {"problem": "TopK", "k": 2, "arms": 3, "binary": True, "budget": 9}
    with agents.Session(agent, facts, store=tmp_path / "one") as one:
        for _ in range(9):
            one.tell(one.ask()[0].arm, 1)
        assert one.done
        assert one.arms()["pulls"].sum() == 9
    if agent is Writes:  # a wrong twin: the arrays of the episode themselves
        monkeypatch.setattr("agents.core.agent.shown_to", lambda agent, method, observation: observation)
        assert not is_kept()
