"""`agents.record`: every pull with its truth, the same as in a loop of Gymnasium and as in `evaluate`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from agents.cli import main
from agents.evaluation import trace
from bandit_envs import Task

GAUSSIAN = {"sampler": {"distribution": "gaussian", "arms": 4, "spread": 0.3, "mean": {"uniform": [0, 1]}}}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Gaussian arms, shuffled": ("lsa", "Threshold", {"instance": GAUSSIAN, "budget": 20, "shuffle_arms": True}),
    "an instance, shuffled, in bulk": (
        "successive-rejects",
        "BestArm",
        {"instance": {"distribution": "bernoulli", "mean": [0.2, 0.5, 0.9]}, "budget": 30, "shuffle_arms": True},
    ),
    "two dimensions": ("md-apt", "Feasible", {"budget": 25}),
    "coordinates": ("uniform", "Feasible", {"budget": 25, "pull": "coordinate"}),
    "ends at different times": ("top-two", "BestArm", {"instance": "sampler(arms=3)", "delta": 0.2, "max_pulls": 90}),
}
SEED, EPISODES = 5, 12


def recorded(case: str, **given: Any) -> dict[str, Any]:
    agent, problem, kwargs = CASES[case]
    return agents.record(agent, problem, episodes=EPISODES, seed=SEED, env_kwargs=kwargs, **given)


def looped(case: str, episode: int) -> tuple[list[int], list[int], list[Any], Any, dict[str, Any]]:
    """Arms, pulls, samples, answer and the last info of an episode, one step after another."""
    name, problem, kwargs = CASES[case]
    env: Any = gym.make(f"bandit_envs/{problem}-v0", actions="full", **kwargs)
    agent = agents.make(name, env)
    observation, info = env.reset(seed=SEED, options={"episode": episode})
    state, over, truncated = None, False, False
    arms, times, samples = [], [], []
    while not over:
        before = env.unwrapped.task.budget
        left = observation["remaining"][0]
        action, state = agent.predict(observation, state, np.array([not arms]), deterministic=True)
        observation, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        if "sample" in info:
            arms.append(int(action["arm"]))
            times.append(int(action["times"] if before is None else left - observation["remaining"][0]))
            samples.append(info["sample"])
    answer = agent.recommend(observation, state) if truncated else info["answer"]
    return arms, times, samples, answer, info


@pytest.mark.parametrize("case", CASES)
def test_what_is_recorded_is_what_a_loop_of_gymnasium_sees(case: str) -> None:
    kept = recorded(case)
    task = Task.from_json(str(kept["task"]))
    problem, most = task.make_problem(), task.entries
    for episode in range(EPISODES):
        arms, times, samples, answer, info = looped(case, episode)
        n = len(arms)
        assert kept["length"][episode] == [n]
        assert kept["arms"][episode].tolist() == arms + [-1] * (most - n)
        assert kept["times"][episode].tolist() == times + [0] * (most - n)
        assert np.array_equal(kept["samples"][episode][:n], np.array(samples, np.float32))
        assert not kept["samples"][episode][n:].any()
        assert np.array_equal(kept["answer"][episode], answer)
        assert kept["total_pulls"][episode] == info["total_pulls"]
        means = kept["means"][episode]
        assert np.array_equal(kept["right_answer"][episode], problem.right_answer(means))
        verdict = problem.verdict(kept["answer"][episode], problem.truth(means))
        assert (kept["score"][episode], kept["correct"][episode]) == (verdict["score"], verdict["correct"])
        if "answer" in info and np.array_equal(info["answer"], answer):
            assert kept["score"][episode] == info["score"]
    if case == "ends at different times":
        assert kept["truncated"].any()
        assert not kept["truncated"].all()
    if case == "an instance, shuffled, in bulk":
        assert len({tuple(means) for means in kept["means"].tolist()}) > 1
        assert kept["times"].max() > 1


@pytest.mark.parametrize("case", CASES)
def test_the_episodes_are_those_of_evaluate(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches of any size: a slot whose episode has ended takes the next one."""
    agent, problem, kwargs = CASES[case]
    whole = recorded(case)
    rows = agents.evaluate(agent, problem, episodes=EPISODES, seed=SEED, env_kwargs=kwargs).episodes
    for name in ("score", "correct", "total_pulls", "truncated"):
        assert rows[name].tolist() == whole[name].tolist()
    monkeypatch.setattr(trace, "BATCH", 1)  # one slot
    single = recorded(case)
    assert all(np.array_equal(array, single[name]) for name, array in whole.items())


class LeastSure:
    """A model that was trained on ranked arms, and pulls the first of them."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> Any:
        return np.zeros(len(observation), np.int64), state


def test_models_are_recorded_by_the_arms_behind_their_ranks() -> None:
    kwargs = {"instance": "sampler(arms=4)", "budget": 12, "ranked": True, "stop": False, "observation": "relative"}
    kept = agents.record(LeastSure(), "BestArm", episodes=3, env_kwargs=kwargs)
    for episode in range(3):
        env: Any = gym.make("bandit_envs/BestArm-v0", **kwargs)
        _, info = env.reset(seed=0, options={"episode": episode})
        arms, samples = [], []
        for _ in range(12):
            arms.append(info["order"][0])
            *_, info = env.step(0)
            samples.append(info["sample"])
        assert arms == kept["arms"][episode].tolist()
        assert samples == kept["samples"][episode].tolist()
    assert len(set(arms)) > 1


def test_a_model_draws_as_in_evaluate() -> None:
    how: dict[str, Any] = {"episodes": 6, "env_kwargs": {"instance": "sampler(arms=4)", "budget": 12}}
    drawn = agents.record("ppo", "BestArm", deterministic=False, **how)
    rows = agents.evaluate("ppo", "BestArm", deterministic=False, **how).episodes
    assert drawn["score"].tolist() == rows["score"].tolist()
    assert not np.array_equal(drawn["arms"], agents.record("ppo", "BestArm", **how)["arms"])


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Read without pickles, and the same from the command line."""
    kwargs = {"instance": "sampler(arms=4)", "budget": 12}
    kept = agents.record("lsa", "Threshold", episodes=5, seed=3, env_kwargs=kwargs, out=tmp_path / "a.npz")
    line = f"record lsa Threshold --instance sampler(arms=4) --budget 12 --episodes 5 --seed 3 --out {tmp_path}/b.npz"
    assert main(line.split()) == 0
    assert "5 episodes, mean score" in capsys.readouterr().out
    for file in ("a.npz", "b.npz"):
        with np.load(tmp_path / file, allow_pickle=False) as read:
            assert set(read) == set(kept)
            assert all(np.array_equal(read[name], array) for name, array in kept.items())
    assert (kept["seed"], kept["agent"], kept["episode"].tolist()) == (3, "lsa", [0, 1, 2, 3, 4])
    assert main(line.split()) == 2
    assert "--force" in capsys.readouterr().err
    assert main([*line.split(), "--force"]) == 0


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"episodes": 0}, "episodes must be an integer in [1, 4294967296], got 0"),
        ({"seed": -1}, "seed must be"),
        ({"out": "pulls.csv"}, "out must be a file .npz, 'minari:NAME', or None, got 'pulls.csv'"),
        ({"out": 3}, "out must be"),
        ({"agent": "lsaa"}, "lsa"),
        ({"episodes": 10**8}, "100,000,000 episodes of 200 pulls"),
        ({"agent": "top-two", "problem": "BestArm", "env_kwargs": {"delta": 0.2}}, "budget or max_pulls"),
        ({"deterministic": 2}, "deterministic"),
    ],
)
def test_what_is_refused(given: dict[str, Any], says: str) -> None:
    given = {"agent": "uniform", "problem": "Threshold", "episodes": 2, **given}
    with pytest.raises(ValueError, match=re.escape(says)):
        agents.record(given.pop("agent"), given.pop("problem"), **given)


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        agents.record("uniform", "Threshold", episodes=1, out=tmp_path / "none" / "a.npz")


@pytest.mark.filterwarnings("ignore")
def test_minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    pytest.importorskip("jax")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    kwargs = {"instance": "sampler(arms=3)", "delta": 0.2, "max_pulls": 60, "observation": "features"}
    kept = agents.record("top-two", "BestArm", episodes=4, env_kwargs=kwargs, out="minari:best/top-two-v0")
    made = minari.load_dataset("best/top-two-v0")
    assert made.total_episodes == 4
    for i, episode in enumerate(made.iterate_episodes()):
        n = int(kept["length"][i, 0])
        assert episode.actions.tolist() == [*kept["arms"][i, :n].tolist(), *([] if kept["truncated"][i] else [3])]
        assert len(episode.observations) == len(episode.actions) + 1
        assert (episode.terminations[-1], episode.truncations[-1]) == (not kept["truncated"][i], kept["truncated"][i])
    metadata = list(made.storage.get_episode_metadata(range(4)))
    assert [one["right_answer"].tolist() for one in metadata] == kept["right_answer"].tolist()
    assert made.recover_environment().observation_space == made.observation_space
    with pytest.raises(ValueError, match="pulls in bulk"):
        agents.record("successive-rejects", "BestArm", episodes=1, env_kwargs={"budget": 99}, out="minari:bulk-v0")
