"""The ids for learners, `bandit_envs/<problem>-learn-v0`, and the warning where a learner begins without them."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.envs.registration import EnvSpec
from rollouts import same

import agents
from agents.cli import main
from agents.evaluation.environment import environment_id
from bandit_envs import ENVIRONMENTS, PureExplorationEnv, SetProblem, benchmark_tasks, register_problem
from bandit_envs.envs import LEARN, LearnerWarning

FOUR = {"observation": "relative", "stop": False, "reward": "gain", "ranked": True}
BEST, LEARNED = "bandit_envs/BestArm-v0", "bandit_envs/BestArm-learn-v0"
SMALL = {"instance": "sampler(arms=4)", "budget": 12}
problems = pytest.mark.parametrize("problem", [*ENVIRONMENTS])


def rollout(env: Any, actions: list[Any]) -> list[Any]:
    return [env.reset(seed=3), *(env.step(action) for action in actions)]


# --- what they make ---------------------------------------------------------------------------------------------------


@problems
def test_an_id_is_the_plain_environment_with_four_keywords(problem: str) -> None:
    row = ENVIRONMENTS[problem]
    assert (row.learn_id, LEARN) == (f"bandit_envs/{problem}-learn-v0", FOUR)
    one, other = gym.make(row.learn_id), gym.make(row.id, **FOUR)
    assert one.unwrapped.task == other.unwrapped.task
    assert one.unwrapped.setting.ranked
    actions = [0, 1, 9, 0, 0, 2, 1]
    assert same(rollout(one, actions), rollout(other, actions))
    many: list[Any] = [gym.make_vec(name, num_envs=2, **how) for name, how in ((row.learn_id, {}), (row.id, FOUR))]
    vectors = [np.array([a, b]) for a, b in zip(actions, actions[::-1], strict=True)]
    assert same(rollout(many[0], vectors), rollout(many[1], vectors))


def test_keywords_overrule_the_id_and_specs_can_be_written() -> None:
    env: Any = gym.make(LEARNED, ranked=False, **SMALL)
    assert env.unwrapped.task.budget == 12
    assert not env.unwrapped.setting.ranked
    assert env.unwrapped.setting.reward == "gain"
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    before = rollout(env, [0, 1])
    assert same(before, rollout(again, [0, 1]))
    copied = pickle.loads(pickle.dumps(env.unwrapped))
    assert same(copied.step(2), env.step(2))


@pytest.mark.parametrize(
    ("how", "said"),
    [({"delta": 0.1}, "stop=False .*needs a budget"), ({"actions": "full"}, "needs actions='arm', got actions='full'")],
)
def test_what_does_not_go_with_an_id_is_refused_by_name(how: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gym.make(LEARNED, **how)


def test_short_names_are_known() -> None:
    for name in ("BestArm-learn", "best-arm-learn", "BestArm-learn-v0", LEARNED, f"bandit_envs:{LEARNED}"):
        assert environment_id(name) == LEARNED
    with pytest.raises(ValueError, match="did you mean .*BestArm-learn"):
        environment_id("BestArm-lern")


class Odd(SetProblem):
    """Arms with a mean above 1/2, a problem of one's own."""

    name, asks, source, parameters = "Odd", "arms above 1/2", "this test", {}

    def margin(self, means: Any) -> Any:
        return np.asarray(means) - 0.5


def test_a_problem_of_ones_own_has_its_id() -> None:
    """Unless its margins never change: then there is nothing to learn from."""
    register_problem(Odd)
    assert gym.make("bandit_envs/Odd-v0", budget=9).unwrapped.task.budget == 9
    assert gym.make("bandit_envs/Odd-learn-v0", budget=9).observation_space.shape == (64,)
    register_problem(type("Flat", (Odd,), {"name": "Flat", "margin": lambda self, means: 0.0 * np.asarray(means)}))
    with pytest.raises(ValueError, match="needs a problem with margins that change with the means.*Flat"):
        gym.make("bandit_envs/Flat-learn-v0", budget=9)


def test_no_problem_takes_the_name_of_an_id_for_learners() -> None:
    """Else the two would be one id."""
    with pytest.raises(ValueError, match="must not end with '-learn', .* got 'Odd-learn'"):
        register_problem(type("Odder", (Odd,), {"name": "Odd-learn"}))


def test_tasks_of_the_benchmark_have_their_ids() -> None:
    task = next(task for task in benchmark_tasks("quick-v2") if not task.fixed_confidence)
    env: Any = gym.make(task.learn_id, **task.kwargs)
    assert env.unwrapped.task == task.env(**FOUR).unwrapped.task


# --- evaluate, play, record, train ------------------------------------------------------------------------------------


def test_handcrafted_agents_play_the_same_episodes_to_the_digit() -> None:
    names, how = ["lucb", "uniform", "evolved"], {"episodes": 30, "seed": 3, "env_kwargs": {"budget": 40}}
    plain = agents.evaluate(names, BEST, **how)
    for name in (LEARNED, "BestArm-learn", f"bandit_envs:{LEARNED}"):
        found = agents.evaluate(names, name, **how)
        pd.testing.assert_frame_equal(found.episodes, plain.episodes, check_exact=True)
        assert found.settings["env_kwargs"] == {"budget": 40}
    traces = [agents.play("lucb", name, env_kwargs=SMALL, episode=2) for name in (BEST, LEARNED)]
    assert same(traces[0].arms, traces[1].arms)
    assert same(traces[0].samples, traces[1].samples)
    assert same(*(agents.record("lucb", name, episodes=5, env_kwargs=SMALL) for name in (BEST, LEARNED)))


def test_an_id_says_how_a_model_without_its_environment_was_trained(tmp_path: Path) -> None:
    """On the plain id it is unknown whether its arms were ranked, and a warning asks."""
    ppo = pytest.importorskip("stable_baselines3").PPO
    model = ppo("MlpPolicy", gym.make(LEARNED, **SMALL), n_steps=12, batch_size=12, seed=0, device="cpu").learn(12)
    model.save(tmp_path / "model.zip")
    loaded, how = ppo.load(tmp_path / "model.zip"), {"episodes": 40, "env_kwargs": SMALL}
    before = agents.evaluate({"PPO": model}, BEST, **how)
    found = agents.evaluate({"PPO": loaded}, LEARNED, **how)
    pd.testing.assert_frame_equal(found.episodes, before.episodes, check_exact=True)
    with pytest.warns(UserWarning, match="does not know whether its arms were ranked"):
        unranked = agents.evaluate({"PPO": loaded}, BEST, **how)
    assert not unranked.episodes.equals(before.episodes)


def test_train_takes_the_keywords_of_the_id(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    short = {"steps": 512, "num_envs": 8, "held_out": 10, "checkpoints": 1, "progress": False, "n_steps": 32}
    trained = agents.train("ppo", "BestArm-learn", env_kwargs=SMALL, out=tmp_path / "one", **short)
    assert trained.card["env_id"] == BEST
    assert trained.card["env_kwargs"] == {**SMALL, **FOUR}
    more = agents.train("ppo", LEARNED, resume=tmp_path / "one", **short)
    assert more.card["env_kwargs"] == trained.card["env_kwargs"]
    result = agents.evaluate({"mine": trained, "lucb": "lucb"}, LEARNED, episodes=20, env_kwargs=SMALL)
    plain = agents.evaluate({"mine": trained, "lucb": "lucb"}, BEST, episodes=20, env_kwargs=SMALL)
    pd.testing.assert_frame_equal(result.episodes, plain.episodes, check_exact=True)


def test_the_command_line_lists_and_plays_them(capsys: pytest.CaptureFixture[str]) -> None:
    main(["list", "environments"])
    listed = capsys.readouterr().out
    assert "to train: -learn-v0" in listed
    assert all(row.id in listed and row.learn_id == row.id.replace("-v0", "-learn-v0") for row in ENVIRONMENTS.values())
    words = ["--budget", "30", "--episodes", "20", "--agents", "lucb", "uniform"]
    shown = []
    for name in ("BestArm", "BestArm-learn"):
        main(["evaluate", name, *words])
        shown.append([line for line in capsys.readouterr().out.splitlines() if "lucb" in line or "uniform" in line])
    cut = [[" ".join(line.split()[:4]) for line in lines] for lines in shown]  # less the speed
    assert cut[0] == cut[1]


# --- the warning ------------------------------------------------------------------------------------------------------


@pytest.fixture
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LearnerWarning, "given", False)


def said(action: Callable[[], Any]) -> list[str]:
    """What is said to learners in the course of an action, of which another error may come out."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            action()
        except ValueError as error:
            assert "MultiInputPolicy" in str(error)  # noqa: PT017 (SB3: no MlpPolicy on dicts)
    return [str(one.message) for one in caught if issubclass(one.category, LearnerWarning)]


def learn(policy: str, env: Any) -> None:
    sb3: Any = pytest.importorskip("stable_baselines3")
    sb3.PPO(policy, env, n_steps=4, batch_size=4, n_epochs=1, seed=0, device="cpu").learn(4)


def dummy(**how: Any) -> Any:
    vec_env: Any = pytest.importorskip("stable_baselines3.common.vec_env")
    return vec_env.DummyVecEnv([lambda: gym.make(BEST, **how)] * 2)


def monitored() -> Any:
    """An environment that its user has looked at before."""
    env = gym.make(BEST)
    env.reset(seed=0)
    return pytest.importorskip("stable_baselines3.common.monitor").Monitor(env)


def step_of(envs: Any) -> None:
    envs.reset()
    envs.step(np.zeros(2, np.int64))


def ours(**how: Any) -> Any:
    return pytest.importorskip("agents.learned").make_vec_env("BestArm", 2, **how)


BEGINS: dict[str, Callable[[], Any]] = {
    "an id": lambda: learn("MlpPolicy", BEST),
    "an id, statistics": lambda: learn("MultiInputPolicy", BEST),
    "features": lambda: learn("MlpPolicy", gym.make(BEST, observation="features")),
    "Monitor": lambda: learn("MultiInputPolicy", monitored()),
    "DummyVecEnv": lambda: learn("MultiInputPolicy", dummy()),
    "our VecEnv": lambda: learn("MultiInputPolicy", ours()),
    "make_vec": lambda: step_of(gym.make_vec(BEST, num_envs=2)),
    "make_vec, sync": lambda: step_of(gym.make_vec(BEST, num_envs=2, vectorization_mode="sync")),
}


@pytest.mark.usefixtures("unwarned")
@pytest.mark.parametrize("how", BEGINS)
def test_a_learner_on_the_defaults_is_warned_once(how: str) -> None:
    first = said(BEGINS[how])
    assert len(first) == 1
    assert LEARNED in first[0]
    assert all(f"{name}={value!r}" in first[0] for name, value in FOUR.items())
    assert said(BEGINS[how]) == []


def loop(env: Any, agent: Any = None) -> None:
    seen, _ = env.reset(seed=0)
    state, over = None, False
    while not over:
        action, state = (env.action_space.sample(), None) if agent is None else agent.predict(seen, state)
        seen, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated


def many_by_hand() -> None:
    envs = gym.make_vec(BEST, num_envs=2, **SMALL)
    agent = agents.make("lucb", envs)
    seen, _ = envs.reset(seed=0)
    for _ in range(5):
        seen, *_ = envs.step(agent.predict(seen)[0])


def by_evaluate_policy(vector: bool) -> None:
    evaluation: Any = pytest.importorskip("stable_baselines3.common.evaluation")
    env = dummy(**SMALL) if vector else gym.make(BEST, **SMALL)
    evaluation.evaluate_policy(agents.make("lucb", env), env, n_eval_episodes=2, warn=False)


QUIET: dict[str, Callable[[], Any]] = {
    "a loop": lambda: loop(gym.make(BEST, **SMALL)),
    "a loop of an agent": lambda: loop(env := gym.make(BEST, **SMALL), agents.make("lucb", env)),
    "a vector of an agent": many_by_hand,
    "evaluate": lambda: agents.evaluate(["lucb", "uniform"], BEST, episodes=4, env_kwargs=SMALL),
    "evaluate_policy": lambda: by_evaluate_policy(vector=False),
    "evaluate_policy, DummyVecEnv": lambda: by_evaluate_policy(vector=True),
    "the id for learners": lambda: learn("MlpPolicy", LEARNED),
    "its vector": lambda: step_of(gym.make_vec(LEARNED, num_envs=2)),
    "our VecEnv of it": lambda: learn("MlpPolicy", pytest.importorskip("agents.learned").make_vec_env(LEARNED, 2)),
    "a price": lambda: learn("MultiInputPolicy", ours(pull_cost=0.01)),
    "a delta": lambda: step_of(gym.make_vec(BEST, num_envs=2, delta=0.1)),
    "no stop": lambda: learn("MultiInputPolicy", ours(stop=False)),
    "full actions": lambda: loop(gym.make(BEST, actions="full")),
}


@pytest.mark.usefixtures("unwarned")
@pytest.mark.parametrize("how", QUIET)
def test_others_are_not(how: str) -> None:
    assert said(QUIET[how]) == []


@pytest.mark.usefixtures("unwarned")
def test_a_model_trained_on_the_defaults_is_evaluated_without_it() -> None:
    """`evaluate` has a warning of its own, of models that stop early."""
    sb3: Any = pytest.importorskip("stable_baselines3")
    model = sb3.PPO("MultiInputPolicy", ours(**SMALL), n_steps=4, batch_size=4, seed=0, device="cpu")
    with pytest.warns(UserWarning, match="though pulls are free: to train, make bandit_envs/BestArm-learn-v0"):
        agents.evaluate({"PPO": model}, BEST, episodes=4, env_kwargs=SMALL)
    assert not LearnerWarning.given


@pytest.mark.parametrize(
    "module", ["ray.rllib.env.env_runner", "skrl.envs.wrappers", "tianshou.env.venvs", "torchrl.envs.libs.gym"]
)
@pytest.mark.usefixtures("unwarned")
def test_libraries_that_make_single_environments_begin_so(module: str) -> None:
    """Where a library is not installed: by a function of a module of this name."""
    names: dict[str, Any] = {"__name__": module}
    exec("def made(kind, problem): return kind(problem).reset()", names)
    assert len(said(lambda: names["made"](PureExplorationEnv, "BestArm"))) == 1
    assert said(lambda: names["made"](PureExplorationEnv, "BestArm")) == []


class Pipe:
    """The end of a worker of SB3, which is asked to reset twice and to close."""

    def __init__(self) -> None:
        self.asked, self.sent = [("reset", (0, None)), ("reset", (None, None)), ("close", None)], list[Any]()

    def recv(self) -> Any:
        return self.asked.pop(0)

    def send(self, answer: Any) -> None:
        self.sent.append(answer)

    def close(self) -> None:
        pass


@pytest.mark.usefixtures("unwarned")
def test_a_worker_of_subproc_vec_env_says_it() -> None:
    worker: Any = pytest.importorskip("stable_baselines3.common.vec_env.subproc_vec_env")
    base: Any = pytest.importorskip("stable_baselines3.common.vec_env.base_vec_env")
    pipe, made = Pipe(), base.CloudpickleWrapper(lambda: gym.make(BEST))
    assert len(said(lambda: worker._worker(pipe, Pipe(), made))) == 1
    assert len(pipe.sent) == 2
