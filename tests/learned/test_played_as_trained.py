"""A model is played as it was trained: with or without an action that stops, by ranks or by arms, on what it read."""

from __future__ import annotations

import functools
import json
import re
import warnings
from copy import copy
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env as sb3_make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import agents
from agents.cli import main
from agents.core.forms import Forms, forms_of
from agents.evaluation.lockstep import DRAWS
from agents.learned import Trained, make_vec_env
from bandit_envs import agent_uniforms

ID, EPISODES = "bandit_envs/Threshold-v0", 12
PLAIN = {"instance": {"sampler": {"arms": 4}}, "budget": 20}
LEARNER = {**PLAIN, "stop": False, "reward": "gain"}
MODES = [(False, "features"), (True, "relative")]


def settings(ranked: bool, observation: str, **more: Any) -> dict[str, Any]:
    return {**LEARNER, "ranked": ranked, "observation": observation, **more}


@functools.cache
def model_of(ranked: bool, observation: str, stop: bool = False) -> Any:
    """One model of each setting for all tests."""
    return learned(**settings(ranked, observation, stop=stop))


def learned(kind: Any = PPO, env: Any = None, **given: Any) -> Any:
    """A model after a short training, whose logits are spread so that its actions vary."""
    env = make_vec_env(ID, 4, **given) if env is None else env
    short = {"n_steps": 16, "batch_size": 32, "n_epochs": 1} if kind is PPO else {"learning_starts": 20}
    policy = "MlpPolicy" if given.get("observation") != "statistics" else "MultiInputPolicy"
    seed = 3 if given.get("observation") == "features" else 1
    model = kind(policy, env, seed=seed, device="cpu", **short)
    model.learn(200)
    if kind is PPO:
        with torch.no_grad():
            for layer in model.policy.mlp_extractor.policy_net[::2]:
                layer.weight *= 3
                layer.bias *= 0
            model.policy.action_net.weight *= 60
    return model


def looped(model: Any, deterministic: bool = True, **given: Any) -> tuple[Any, ...]:
    """Answers, scores and pulls of episodes 0, 1, ... of root 3 by a plain loop over an environment."""
    envs = make_vec_env(ID, EPISODES, **given)
    envs.seed(3)
    seen, done, pulls = envs.reset(), np.zeros(EPISODES, bool), []
    while not done.any():
        actions = model.predict(seen, deterministic=True)[0]
        if not deterministic:
            u = agent_uniforms(envs.envs.public_seeds, envs.envs.total_pulls, seed=DRAWS)[:, 0]
            chances = model.policy.get_distribution(torch.as_tensor(seen)).distribution.probs.detach().numpy()
            actions = (chances.cumsum(axis=1) <= u[:, None]).sum(axis=1)
        pulls.append(envs.envs.pulls.copy())
        seen, _, done, infos = envs.step(actions)
    assert done.all()
    return np.array([i["answer"] for i in infos]), np.array([i["score"] for i in infos]), np.array(pulls[-1])


def scores(agent: Any, env_kwargs: Any = LEARNER, **more: Any) -> Any:
    rows = agents.evaluate({"it": agent}, ID, episodes=EPISODES, seed=3, env_kwargs=env_kwargs, progress=False, **more)
    return rows.episodes["score"].to_numpy()


@pytest.mark.parametrize(("ranked", "observation"), MODES)
def test_evaluate_is_a_plain_loop_over_the_models_own_environment(ranked: bool, observation: str) -> None:
    given = settings(ranked, observation)
    model = model_of(ranked, observation)
    answers, wanted, pulls = looped(model, **given)
    assert forms_of(model) == Forms("arm", observation, False, ranked)
    others = {**PLAIN, "ranked": not ranked, "stop": True}
    for kwargs in (PLAIN, {**LEARNER, "reward_scale": 100}, others):  # its own environment comes first
        for one in (model, Trained(model)):
            assert np.array_equal(scores(one, kwargs), wanted)
    for e in range(3):
        trace = agents.play(model, ID, env_kwargs=PLAIN, seed=3, episode=e)
        assert np.array_equal(trace.answer, answers[e])
        assert (trace.pulls - pulls[e]).sum() == 1  # the last one
        assert (trace.pulls >= pulls[e]).all()
    drawn = looped(model, False, **given)[1]
    assert np.array_equal(scores(model, deterministic=False), drawn)
    assert not np.array_equal(drawn, wanted)


@pytest.mark.parametrize(("ranked", "observation"), [(True, "relative"), (True, "features")])
def test_a_model_without_environment_is_told_by_env_kwargs(tmp_path: Path, ranked: bool, observation: str) -> None:
    given = settings(ranked, observation)
    model = model_of(ranked, observation)
    wanted = looped(model, **given)[1]
    model.save(tmp_path / "model")
    bare = PPO.load(tmp_path / "model", device="cpu")
    assert np.array_equal(scores(bare, {**LEARNER, "ranked": True}), wanted)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert forms_of(bare) == Forms("arm", observation, False, False)  # by its spaces
        assert not np.array_equal(scores(bare, PLAIN), wanted)
    assert any("ranked" in str(one.message) for one in said) == (observation == "relative")
    if observation == "relative":  # nor does the file say so
        with pytest.warns(UserWarning, match="ranked"):
            agents.evaluate(str(tmp_path / "model.zip"), ID, episodes=2, env_kwargs=PLAIN, trust=True)


def test_a_learner_of_the_defaults_is_advised(tmp_path: Path) -> None:
    """One sentence where a model was trained with the defaults or stops early; none where pulls or errors count."""
    free = {**PLAIN, "observation": "statistics"}

    def said(agent: Any, env_kwargs: Any, **more: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            scores(agent, env_kwargs, **more)
        return [str(one.message) for one in caught if "-learn-v0" in str(one.message)]

    class Stopping:
        """Stops at once, as an object with a method `predict` that has not learned."""

        observation = "statistics"

        def predict(self, observation: Any, *_: Any, **__: Any) -> Any:
            return np.full(len(observation["pulls"]), 4), None

    model = learned(**free)
    (text,) = said(model, PLAIN)
    assert "agents.train" in text
    model.save(tmp_path / "model")
    assert len(said(PPO.load(tmp_path / "model", device="cpu"), PLAIN)) == 1
    with torch.no_grad():
        model.policy.action_net.bias[4] += 1e4
    (text,) = said(model, PLAIN)
    assert text.startswith("it stopped after 0 of 20 pulls on average")
    assert not said(model, {**PLAIN, "delta": 0.1})
    assert not said(learned(**free, pull_cost=0.01), PLAIN)
    for agent in (Stopping(), "uniform", model_of(False, "features")):
        assert not said(agent, PLAIN)


@pytest.mark.parametrize("source", ["live", "card", "space"])
def test_what_is_left_to_defaults_is_named_where_it_was_not_so_in_the_training(source: str, tmp_path: Path) -> None:
    more, place = {"threshold": 0.4, "pull_cost": 0.001}, tmp_path / "one"
    agent: Any = None
    arms = {"instance": PLAIN["instance"]} if source == "card" else {}
    if source == "card":
        short = {"steps": 64, "num_envs": 4, "held_out": 4, "checkpoints": 1, "n_steps": 8, "progress": False}
        agents.train("ppo", ID, out=place, env_kwargs={**PLAIN, **more}, **short)
    else:
        agent = learned(budget=20, **more, observation="statistics")
        agent.save(place)
    made: Any = {"live": agent, "card": f"{place}.safetensors"}.get(source) or PPO.load(place, device="cpu")

    def said(**env_kwargs: Any) -> str:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            scores(made, env_kwargs)
        return " ".join(str(one.message) for one in found)

    assert re.search(r"trained with .*budget=20.*plays with .*budget=200", said(**more))
    assert said(**arms, budget=30, **more) == ""  # as it was said
    named = "" if source == "space" else said(**arms, budget=20)
    assert ("pull_cost=0.001, threshold=0.4, and plays with pull_cost=0.0, threshold=0.5" in named) == (
        source != "space"
    )
    assert "budget" not in named
    if source == "card":
        assert re.search(r"instance=\{.*\}, K=4, and plays with instance=None, K=10", said(budget=20, **more))


@pytest.mark.parametrize(
    "given", [{"observation": "relative"}, {"render_mode": "ansi", "num_envs": 4, "actions": "arm"}]
)
def test_the_keywords_of_a_learner_are_taken(given: Any) -> None:
    """As they are: what says nothing of the episodes changes nothing. What is neither is refused."""
    model = model_of(True, "relative")
    entrants = {"it": model, "uniform": "uniform"}
    two = [agents.evaluate(entrants, ID, episodes=4, env_kwargs=LEARNER | more).episodes for more in (given, {})]
    assert two[0].equals(two[1])
    assert agents.play(model, ID, env_kwargs=LEARNER | given).score == agents.play(model, ID, env_kwargs=LEARNER).score
    for wrong, error in (({"observation": "all"}, "observation must be one of"), ({"wrappers": []}, "chooses 'wrap")):
        with pytest.raises(ValueError, match=error):
            agents.evaluate(entrants, ID, episodes=4, env_kwargs=LEARNER | wrong)


@pytest.mark.parametrize("observation", ["statistics", "relative"])
def test_models_of_sb3s_own_wrappers_and_of_other_kinds(observation: str) -> None:
    given = settings(True, observation)
    env = sb3_make_vec_env(ID, 2, env_kwargs=given)
    model = learned(DQN if observation == "relative" else PPO, env, observation=observation)
    assert forms_of(model) == Forms("arm", observation, False, True)
    if observation == "relative":
        assert np.array_equal(scores(model), looped(model, **given)[1])
    else:
        assert len(scores(model)) == EPISODES
    own = gym.make(ID, **given)
    for one in (model, Trained(model)):
        reward, _ = evaluate_policy(one, own, n_eval_episodes=2, warn=False)
        assert np.isfinite(reward)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A saved model with a card, and what a plain loop says of it."""
    given = settings(True, "relative")
    model = model_of(True, "relative")
    card = {"env_id": ID, "env_kwargs": {**LEARNER, "ranked": True}}
    return Trained(model, card).save(tmp_path_factory.mktemp("saved") / "model"), looped(model, **given)


def test_a_saved_model_is_played_by_its_card(saved: tuple[Path, Any], tmp_path: Path) -> None:
    path, (_, wanted, _) = saved
    loaded = agents.load(path)
    assert loaded.observation == "relative"
    for one in (loaded, str(path)):
        assert np.array_equal(scores(one, PLAIN), wanted)
        assert np.array_equal(scores(one, {**PLAIN, "ranked": False}), wanted)
    with pytest.raises(
        ValueError, match=r"ppo reads observation='relative', and not this one.*\(1, 17\).* use \(28,\)"
    ):
        loaded.predict(np.zeros((1, 17), np.float32))
    with pytest.raises(ValueError, match="reads observation='relative', and not this one.*is a dict but"):
        loaded.predict({"pulls": np.zeros((1, 4), int)})
    with pytest.raises(ValueError, match="was trained with K = 4 arms, and the task has K = 5"):
        scores(str(path), {"instance": {"sampler": {"arms": 5}}, "budget": 20})
    card = path.with_suffix(".json")
    (tmp_path / "model.json").write_text(json.dumps({**json.loads(card.read_text()), "env_kwargs": {"ranked": "no"}}))
    (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match="ranked must be True or False"):
        scores(str(tmp_path / path.name), PLAIN)


class Beliefs(gym.Env[Any, Any]):
    """Shows as many numbers as observation="belief" of 0.2.0 had."""

    observation_space = gym.spaces.Box(-8.0, 8.0, (17,), np.float32)
    action_space: Any = gym.spaces.Discrete(4)


def test_a_model_that_reads_beliefs_of_before_is_refused(tmp_path: Path) -> None:
    model = PPO("MlpPolicy", Beliefs(), n_steps=16, batch_size=16, device="cpu")
    card = {"env_id": ID, "env_kwargs": {**LEARNER, "observation": "belief"}}
    path = Trained(model, card).save(tmp_path / "model")
    with pytest.raises(ValueError, match="reads observation='belief', for which there is 'relative' .*train it again"):
        scores(str(path), PLAIN)
    with pytest.raises(ValueError, match="'belief' is no more .*'relative', and train models that read beliefs again"):
        scores(Trained(model, card), PLAIN)


def test_the_command_line_plays_it_so_too(saved: tuple[Path, Any], tmp_path: Path) -> None:
    path, (_, wanted, _) = saved
    line = f"evaluate Threshold --instance sampler(arms=4) --budget 20 --episodes {EPISODES} --seed 3 --agents"
    assert main([*line.split(), str(path), "lsa", "--out", str(tmp_path / "out")]) == 0
    rows = agents.results(tmp_path / "out").episodes
    assert np.array_equal(rows[rows["agent"] == str(path)]["score"].to_numpy(), wanted)


@pytest.mark.parametrize(("ranked", "observation"), MODES)
def test_a_session_shows_what_the_environment_shows(ranked: bool, observation: str, tmp_path: Path) -> None:
    """It asks for the arms of the simulated episode, one by one, and ends with its answer."""
    model = model_of(ranked, observation)
    trace = agents.play(model, ID, env_kwargs=PLAIN, seed=3)
    session = agents.Session(model, gym.make(ID, **PLAIN), store=tmp_path / "session.db")
    for arm, sample in zip(trace.arms, trace.samples, strict=True):
        assert session.ask() == [arm]
        session.tell(arm, sample)
    assert len(set(trace.arms.tolist())) > 1
    assert session.done
    assert np.array_equal(session.answer(), trace.answer)


@pytest.mark.parametrize(("ranked", "observation"), MODES)
def test_certified_it_pulls_the_same_arms(ranked: bool, observation: str) -> None:
    model = model_of(ranked, observation)
    wanted = agents.play(model, ID, env_kwargs=PLAIN, seed=3).arms

    def strict(task: Any) -> Any:
        return agents.make(model, task, stop="certificate", delta=1e-9)

    assert np.array_equal(agents.play(strict, ID, env_kwargs={**PLAIN, "ranked": True}, seed=3).arms, wanted)


def test_handcrafted_agents_never_see_these_keywords() -> None:
    names = ["lsa", "uniform", "evidence"]
    common = {**PLAIN, "delta": 0.1}
    plain = agents.evaluate(names, ID, episodes=EPISODES, env_kwargs=common, progress=False)
    model = model_of(True, "relative")
    asked = {**common, "stop": False, "ranked": True, "reward": "gain"}
    beside = agents.evaluate([*names, model], ID, episodes=EPISODES, env_kwargs=asked, progress=False).episodes
    beside["agent"] = beside["agent"].astype(str)  # one more category
    rows = plain.episodes.assign(agent=plain.episodes["agent"].astype(str))
    assert beside[beside["agent"].isin(names)].reset_index(drop=True).equals(rows)
    for wrong in ({"stop": 1}, {"ranked": "yes"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be True or False"):
            agents.evaluate("lsa", ID, episodes=1, env_kwargs={**PLAIN, **wrong})


def test_models_with_and_without_an_action_that_stops_side_by_side() -> None:
    """The spaces tell which is which, whatever `env_kwargs` say."""
    stops, never = copy(model_of(False, "features", stop=True)), copy(model_of(False, "features"))
    for model in (stops, never):
        model.env = None
    assert [forms_of(model, {"stop": False}).stop for model in (stops, never)] == [True, False]
    result = agents.evaluate({"a": stops, "b": never}, ID, episodes=4, env_kwargs=LEARNER, progress=False)
    assert (result.episodes["total_pulls"][result.episodes["agent"] == "b"] == 20).all()
