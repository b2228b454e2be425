"""Models that draw their actions: by a stream of their own, the same whatever the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import agents
from agents.evaluation.drawing import Drawing
from agents.evaluation.result import Evaluation

pytest.importorskip("stable_baselines3")
from stable_baselines3 import DQN, PPO

from agents.learned import EquivariantPolicy, Trained, make_vec_env

THRESHOLD = "bandit_envs/Threshold-v0"
KWARGS = {"instance": "tao2019-1", "budget": 60}


def model(kind: Any = PPO, policy: Any = "MlpPolicy", **options: Any) -> Any:
    envs = make_vec_env(THRESHOLD, 2, observation="features", **{**KWARGS, **options})
    return kind(policy, envs, seed=3, device="cpu")


def rows(who: Any, episodes: int = 30, **given: Any) -> Any:
    arguments = {"env_kwargs": KWARGS, "progress": False, "deterministic": False} | given
    return agents.evaluate({"it": who}, THRESHOLD, episodes=episodes, **arguments)


def same(a: Evaluation, b: Evaluation) -> bool:
    return a.episodes.equals(b.episodes) and a.pulls.equals(b.pulls)


@pytest.fixture(scope="module")
def ppo() -> Any:
    return model()


@pytest.mark.parametrize("policy", ["MlpPolicy", EquivariantPolicy])
def test_rows_do_not_depend_on_the_batch(policy: Any) -> None:
    one = model(policy=policy)
    wanted = rows(one, episodes=30, batch=1)
    for batch in (7, 30):
        assert same(rows(one, episodes=30, batch=batch), wanted)
    assert same(rows(Trained(one), episodes=30, batch=11), wanted)


def test_near_a_step_of_the_distribution_function_the_batch_does_not_matter(
    ppo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uniform numbers on the steps, where the rounding of a batch, here made larger, could change the action."""
    random = np.random.default_rng(0)
    observation = random.uniform(-1, 1, ppo.observation_space.shape * 1).astype(np.float32)
    one = Drawing("it", ppo)
    torch = pytest.importorskip("torch")
    steps, _ = one._steps(torch, observation[None], None, np.ones(1, bool), None)
    exact = Drawing._steps

    def rounded(self: Drawing, torch: Any, observation: Any, *rest: Any) -> Any:
        found, state = exact(self, torch, observation, *rest)
        return found + 1e-6 * (len(found) > 1) * (-1) ** len(found), state

    monkeypatch.setattr(Drawing, "_steps", rounded)
    for action, u in enumerate(steps[0]):
        for shift, drawn in ((-1e-15, action), (1e-15, action + 1)):
            for E in (1, 64):
                others = random.uniform(-1, 1, (E, len(observation))).astype(np.float32)
                others[E // 2] = observation
                found, _ = one.drawn(others, None, np.ones(E, bool), np.full(E, u + shift), lambda: None)  # type: ignore[arg-type,return-value]
                assert found[E // 2] == drawn


def test_drawn_actions_are_not_the_most_probable_ones_and_follow_the_seed(ppo: Any) -> None:
    drawn, again, largest = rows(ppo), rows(ppo), rows(ppo, deterministic=True)
    assert same(drawn, again)
    assert not drawn.pulls.equals(largest.pulls)
    assert (largest.pulls["pulls"] > 0).sum() < (drawn.pulls["pulls"] > 0).sum()
    assert not same(rows(ppo, seed=1), drawn)
    pulls = drawn.pulls["pulls"].to_numpy() * 30
    assert pulls.min() > 0


def test_actions_have_the_frequencies_of_the_policy(ppo: Any) -> None:
    """First decisions: all episodes see the same, and their uniform numbers differ."""
    torch = pytest.importorskip("torch")
    env = make_vec_env(THRESHOLD, 1, observation="features", **KWARGS)
    first = np.repeat(env.reset(), 4000, axis=0)
    u = (np.arange(4000) + 0.5) / 4000
    found, _ = Drawing("it", ppo).drawn(first, None, np.ones(4000, bool), u, lambda: None)  # type: ignore[arg-type,return-value]
    with torch.no_grad():
        wanted = ppo.policy.get_distribution(torch.as_tensor(first[:1])).distribution.probs[0].numpy()
    assert np.abs(np.bincount(found, minlength=len(wanted)) / 4000 - wanted).max() < 1e-3


def test_masked_actions_are_not_drawn() -> None:
    contrib = pytest.importorskip("sb3_contrib")
    one = model(contrib.MaskablePPO)
    found = rows(one, episodes=20)  # with a budget alone, stopping is masked
    assert (found.episodes["total_pulls"] == 60).all()
    assert (rows(model(), episodes=20).episodes["total_pulls"] < 60).all()  # it knows no masks, and stops at random


def test_the_table_and_the_settings_tell(ppo: Any, tmp_path: Any) -> None:
    result = agents.evaluate(
        {"it": ppo, "lsa": "lsa"}, THRESHOLD, episodes=5, env_kwargs=KWARGS, deterministic=False, progress=False
    )
    plain = agents.evaluate("lsa", THRESHOLD, episodes=5, env_kwargs=KWARGS, progress=False)
    assert result.episodes[lambda rows: rows["agent"] == "lsa"]["score"].tolist() == plain.episodes["score"].tolist()
    assert result.settings["deterministic"] is False
    assert plain.settings["deterministic"] is True
    told = result.summary().set_index("agent")["deterministic"]
    assert told["it"] is np.False_
    assert told.isna()["lsa"]
    assert rows(ppo, episodes=5, deterministic=True).summary()["deterministic"].tolist() == [True]
    loaded = Evaluation.load(result.save(tmp_path / "here"))
    assert loaded.summary().equals(result.summary())
    assert loaded.settings["deterministic"] is False


def test_what_has_no_distribution_is_refused(ppo: Any) -> None:
    with pytest.raises(ValueError, match=r"it \(DQN\) has no distribution of actions to draw from"):
        rows(model(DQN))
    with pytest.raises(ValueError, match="deterministic must be True or False, got 'no'"):
        rows(ppo, deterministic="no")
