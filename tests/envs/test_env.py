"""The single environment: conformance of every row of the catalogue, and the contract of actions, rewards and infos."""

from __future__ import annotations

import copy
import functools
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from environments import RULES, check_copies, check_same, lawful
from features import check_posterior, check_tail
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from instances import APART, SAMPLERS, SURE, check_apart, check_means, check_order
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rollouts import FORMS, IDS, batch, full, mask, rollout, same

from bandit_envs import Bernoulli, Instance, PureExplorationEnv, PureExplorationVectorEnv, Task
from bandit_envs.envs import LearnerWarning, Viewer, drawing
from bandit_envs.envs.catalogue import ENVIRONMENTS, NAMESPACE
from bandit_envs.envs.observations import FEATURES

INFINITE = {  # what Gymnasium's checker says of boxes without finite bounds: true, and wanted
    "A Box observation space minimum value is -infinity. This is probably too low.",
    "A Box observation space maximum value is infinity. This is probably too high.",
}

catalogue = pytest.mark.parametrize("env_id", IDS)
# Each problem in both forms of actions and in two or three of observations, each form for two problems or more.
KEPT = [(env_id, *form) for i, env_id in enumerate(IDS) for j, form in enumerate(FORMS) if (j + i) % 6 in (0, 4)]
forms = pytest.mark.parametrize(("env_id", "actions", "observation"), KEPT)


def made(env_id: str = "bandit_envs/Threshold-v0", **settings: Any) -> Any:
    return gym.make(env_id, **settings)


def warned(check: Callable[[], Any]) -> set[str]:
    """What a check warns of, without Gymnasium's colours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check()
    return {re.sub(r"\x1b\[\d+m|^WARN: ", "", re.sub(r"\x1b\[\d+m", "", str(one.message))).strip() for one in caught}


def sb3_check(env: Any) -> None:
    pytest.importorskip("stable_baselines3.common.env_checker").check_env(env)


# --- conformance over the catalogue -----------------------------------------------------------------------------------


@forms
def test_gymnasium_checker(env_id: str, actions: str, observation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LearnerWarning, "given", False)
    env = made(env_id, actions=actions, observation=observation, render_mode="ansi").unwrapped
    said = warned(lambda: check_env(env))
    advice = {text for text in said if "-learn-v0" in text}
    assert len(advice) == (actions == "arm" and observation != "history")
    assert said - advice <= (INFINITE if observation != "features" else set())


@catalogue
@pytest.mark.parametrize("observation", ["features", "statistics", "history"])
def test_stable_baselines_checker(env_id: str, observation: str) -> None:
    settings: dict[str, Any] = {}
    if "Feasible" in env_id and observation != "features":  # SB3 warns of means that are a matrix: scalar arms
        settings = {"instance": "sampler", "A": [[1.0]], "b": [0.5], "budget": 50}
    env = made(env_id, observation=observation, **settings).unwrapped
    assert warned(lambda: sb3_check(env)) == set()


def test_every_row_of_the_catalogue_is_registered_and_tested() -> None:
    registered = [name for name in gym.registry if name.startswith(f"{NAMESPACE}/")]
    assert sorted(registered) == sorted([*IDS, *(row.learn_id for row in ENVIRONMENTS.values())])
    assert len(IDS) == len(set(IDS)) == len(ENVIRONMENTS) == 6
    assert {cell[0] for cell in KEPT} == set(IDS)
    assert {cell[1:] for cell in KEPT} == set(FORMS)


class OutOfSpace(PureExplorationEnv):
    """Wrong: an observation that its space does not hold, from the first step on."""

    def _observe(self) -> Any:
        seen = super()._observe()
        if self._core.simulator.spent[0] > 0 or self._over:  # the checker may stop at once
            seen["pulls"] -= 2
        return seen


class Forgetful(PureExplorationEnv):
    """Wrong: an episode that depends on those before it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.calls = getattr(self, "calls", 0) + 1
        return super().reset(seed=self.calls, options=options)


class Talkative(PureExplorationEnv):
    """Wrong: an info that tells the truth before the end; rewards without end; truncation for a spent budget."""

    def step(self, action: Any) -> Any:
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, False, terminated or truncated, info | {"means": self._core.means[0]}


@forms
def test_every_step_is_lawful(env_id: str, actions: str, observation: str) -> None:
    for rules in RULES:
        lawful(made(env_id, actions=actions, observation=observation, **rules), 70)


@pytest.mark.parametrize("wrong", [OutOfSpace, Talkative])
def test_the_lawfulness_test_has_teeth(wrong: type[PureExplorationEnv]) -> None:
    with pytest.raises(AssertionError):
        lawful(wrong("Threshold", budget=40))


@forms
def test_environments_do_the_same_and_so_do_their_copies(env_id: str, actions: str, observation: str) -> None:
    check_same(env_id, actions, observation)
    check_copies(env_id, actions, observation)


def test_the_twin_test_has_teeth() -> None:
    one, other = (Forgetful("Threshold", budget=30) for _ in range(2))
    other.reset()
    assert not same(rollout(one, 100, seed=5), rollout(other, 100, seed=5))
    assert not same({"x": np.zeros(2)}, {"x": np.zeros(2, np.float32)})
    assert not same((1, 2.0), (1, 2))
    assert not same([np.array([np.nan, 0.0])], [np.array([np.nan, 1.0])])


@catalogue
def test_tasks_are_json_and_hold_no_truth(env_id: str) -> None:
    task = made(env_id, delta=0.1).unwrapped.task
    assert Task.from_json(task.to_json()) == task
    assert task.make_problem() == made(env_id).unwrapped.problem
    assert task.replace(budget=7).budget == 7
    with pytest.raises(AttributeError):
        task.budget = 7
    hidden = Bernoulli([0.123456789, 0.987654321])
    if "Feasible" not in env_id:
        settings = {"k": 1} if "TopK" in env_id else {}
        assert "123456" not in made(env_id, instance=hidden, **settings).unwrapped.task.to_json()


# --- features ---------------------------------------------------------------------------------------------------------


def named(row: Any) -> dict[str, float]:
    return dict(zip(FEATURES, row.tolist(), strict=True))


def approx(values: dict[str, float]) -> Any:
    return pytest.approx(values, rel=1e-6, abs=1e-9)


def test_features_by_hand() -> None:
    """Two pulls of 1, 0 of arm 1 (Bernoulli, threshold 1/2, sigma 1/2), budget 3."""
    env = made(instance={"distribution": "bernoulli", "mean": [0.0, 0.5]}, budget=3, observation="features")
    for episode in range(100):  # until the two pulls differ
        env.reset(seed=0, options={"episode": episode})
        pulls = [env.step(1) for _ in range(2)]
        if pulls[0][4]["sample"] + pulls[1][4]["sample"] == 1:
            break
    idle, both = (named(row) for row in pulls[1][0].reshape(2, len(FEATURES)))
    left = {"left": 1 / 3, "horizon": np.log(1.5) / np.log(4)}  # 1 pull of 3, half a pull per arm
    middle = {"margin": 0, "score": 0, "error": 0.5, "doubt": 1}
    assert idle == approx({"pulls": 0, "share": 0, "width": 1} | middle | left)  # Beta(1, 1) is symmetric around 1/2
    assert both == approx({"pulls": np.log(3) / np.log(4), "share": 1, "width": 3**-0.5} | middle | left)  # Beta(2, 2)
    env.reset(seed=0)
    one = named(env.step(0)[0].reshape(2, -1)[0])  # arm 0 yields 0: margin -.5, z = -.5 sqrt(1 * 2 / .25) = -sqrt 2
    right = {"pulls": 0.5, "share": 1, "width": 2**-0.5, "margin": -0.5, "score": -(2**0.5) / (1 + 2**0.5)}
    right |= {"error": 0.25, "doubt": 4 / (4 - np.log(0.5))}  # P(Beta(1, 2) >= 1/2) = (1 / 2)^2
    assert one == approx(right | {"left": 2 / 3, "horizon": np.log(2) / np.log(4)})


@pytest.mark.parametrize(("threshold", "tolerance"), [(0.5, 0.0), (0.3, 0.05), (0.9, 0.2), (0.001, 0.0), (1.0, 0.0)])
def test_the_error_of_a_bernoulli_arm_is_its_posterior(threshold: float, tolerance: float) -> None:
    check_posterior(threshold, tolerance)


@pytest.mark.parametrize("problem", ["Threshold", "Feasible"])
def test_the_error_of_other_arms_is_the_normal_tail_beyond_the_tolerance(problem: str) -> None:
    check_tail(problem)


@pytest.mark.parametrize(
    "instance",
    [
        {"distribution": "gaussian", "mean": [1e100, -1e100, 0.0], "sd": 1e-100},
        {"distribution": "gaussian", "mean": [0.0, 1e-300, 0.5], "sd": 1e100},
        {"distribution": "resampled", "rows": [[0.0], [1e-200], [0.0, 1e-200]]},
        {"distribution": "bernoulli", "mean": [0.0, 1.0, 1.0]},
    ],
)
@pytest.mark.parametrize("threshold", [0.0, 1.0, 1e308])
def test_features_stay_within_1_at_extremes(instance: dict[str, Any], threshold: float) -> None:
    if instance["distribution"] != "gaussian":
        threshold = min(threshold, 0.0)
    env = made(instance=instance, threshold=threshold, observation="features", actions="full")
    seen, _ = env.reset(seed=1)
    for times in (1, 1, 5, 2**31 - 1):
        for arm in range(3):
            assert np.isfinite(seen).all()
            assert np.abs(seen).max() <= 1
            seen = env.step(full(arm, times, K=3))[0]


@pytest.mark.parametrize("k", [1, 3, 9])
def test_random_full_actions_of_top_k_answer_k_arms(k: int) -> None:
    """Samples of the action space, of the single and of either vector environment, are what `step` takes."""
    kwargs: dict[str, Any] = {"k": k, "budget": 5, "actions": "full"}
    env = gym.make("bandit_envs/TopK-v0", **kwargs)
    sync, native = (
        gym.make_vec("bandit_envs/TopK-v0", 3, vectorization_mode=how, **kwargs)
        for how in ("sync", "vector_entry_point")
    )
    assert native.action_space == sync.action_space
    space = env.action_space["answer"]
    space.seed(1)
    drawn = np.array([space.sample() for _ in range(1000)])
    assert np.abs(drawn.mean(axis=0) - k / 10).max() < 0.09  # 5.6 standard errors at most: no arm is preferred
    assert same(pickle.loads(pickle.dumps(space)).sample(), space.sample())
    assert np.zeros(10, np.int8) in space  # for actions that end nothing
    for one in (env, sync, native):
        one.reset(seed=0)
        one.action_space.seed(0)
    for _ in range(30):
        action = env.action_space.sample()
        assert action["answer"].sum() == k
        _, _, over, _, _ = env.step(action)
        if over:
            env.reset()
        for many in (sync, native):
            action = many.action_space.sample()
            assert (action["answer"].shape, action["answer"].dtype) == ((3, 10), np.int8)
            assert action["answer"].sum(axis=1).tolist() == [k] * 3
            assert action in many.action_space
            many.step(action)


def test_means_stay_in_the_space_although_sums_round() -> None:
    """0.1 + 0.1 + 0.1 > 0.3: the mean of equal samples may lie beyond the support by its rounding error."""
    env = made(instance={"distribution": "resampled", "rows": [[0.1], [0.05, 0.1]]}, threshold=0.07).unwrapped
    env.reset(seed=0)
    seen = [env.step(0)[0] for _ in range(30)]
    assert max(one["mean"][0] for one in seen) == 0.1  # and no mean of samples in a range does
    assert all(env.observation_space.contains(one) for one in seen)


# --- actions ----------------------------------------------------------------------------------------------------------


def answer_of(*arms: int) -> list[bool]:
    return [k in arms for k in range(4)]


def test_arm_actions_end_with_the_plug_in_answer() -> None:
    env = made(instance=SURE)
    env.reset(seed=0)
    env.step(0)
    env.step(np.int64(3))
    _, reward, terminated, truncated, info = env.step(4)
    assert (terminated, truncated) == (True, False)
    assert info["answer"].tolist() == answer_of(3)  # of the arms pulled, those above .5; 2 was never pulled
    assert (reward, info["score"], info["misclassified"], info["correct"]) == (0.75, 0.75, 1, False)
    assert info["total_pulls"] == 2
    assert "sample" not in info


def test_a_spent_budget_ends_an_arm_episode_at_once() -> None:
    env = made(instance=SURE, budget=4)
    env.reset(seed=0)
    for arm in range(3):
        assert not env.step(arm)[2]
    seen, reward, terminated, _, info = env.step(3)
    assert (reward, terminated, info["correct"]) == (1.0, True, True)
    assert info["sample"] == pytest.approx(0.9, abs=1e-7)
    assert seen["remaining"].tolist() == [0]


@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, np.array])
def test_integers_of_any_kind_are_actions(kind: Any) -> None:
    env = made(instance=SURE).unwrapped
    env.reset(seed=0)
    assert env.step(kind(2))[0]["pulls"].tolist() == [0, 0, 1, 0]
    assert env.step(kind(4))[2]


def test_full_actions_answer_when_they_stop() -> None:
    env = made(instance=SURE, actions="full")
    env.reset(seed=0)
    seen, reward, terminated, _, info = env.step(full(2, 7, mask(4, 0, 1, 2), K=4))  # answer: not read
    assert (seen["pulls"].tolist(), reward, terminated) == ([0, 0, 7, 0], 0.0, False)
    assert info["sample"] == pytest.approx(0.6, abs=1e-7)
    _, reward, terminated, _, info = env.step(full(4, -3, mask(4, 2, 3), K=4))  # times: not read
    assert (reward, terminated, info["correct"], info["total_pulls"]) == (1.0, True, True, 7)
    assert info["answer"].tolist() == answer_of(2, 3)


@pytest.mark.parametrize("last", [0, 3, 4])
def test_a_spent_budget_leaves_a_full_episode_open_for_its_answer(last: int) -> None:
    env = made(instance=SURE, actions="full", budget=10)
    env.reset(seed=0)
    assert env.step(full(0, 6, K=4))[0]["remaining"].tolist() == [4]
    seen, _, terminated, truncated, info = env.step(full(1, 2**31 - 1, mask(4, 0, 1), K=4))  # clipped to 4
    assert (seen["pulls"].tolist(), seen["remaining"].tolist()) == ([6, 4, 0, 0], [0])
    assert (terminated, truncated, set(info)) == (False, False, {"sample"})
    before = seen
    seen, reward, terminated, _, info = env.step(full(last, 5, mask(4, 3), K=4))  # whatever its arm
    assert (reward, terminated, set(info) & {"sample"}) == (0.75, True, set())
    assert info["answer"].tolist() == answer_of(3)
    assert same(seen, before)


def test_max_pulls_clips_and_truncates() -> None:
    for actions, act in (("arm", lambda: 2), ("full", lambda: full(2, 9, mask(4, 0), K=4))):
        env = made(instance=SURE, actions=actions, max_pulls=5)
        env.reset(seed=0)
        truncated = False
        while not truncated:
            seen, reward, terminated, truncated, info = env.step(act())
            assert not terminated
        assert seen["pulls"].tolist() == [0, 0, 5, 0]
        assert info["answer"].tolist() == answer_of(2)  # the plug-in answer: the agent gave none
        assert reward == 0
        assert info["score"] == 0.75
        assert seen["remaining"].tolist() == [-1]


def test_top_k_answers_have_k_arms_where_they_are_read() -> None:
    env = made("bandit_envs/TopK-v0", instance=SURE, k=2, actions="full", budget=5, shuffle_arms=False)
    env.reset(seed=0)
    env.step(full(0, 2, mask(4, 1), K=4))  # a wrong size is not read here
    for bad in (mask(4), mask(4, 1), mask(4, 0, 1, 2)):
        before = copy.deepcopy(env.unwrapped._observe())
        with pytest.raises(ValueError, match=f"TopK holds 2 arms, got {bad.sum()}"):
            env.step(full(4, 1, bad, K=4))
        assert same(env.unwrapped._observe(), before)
    env.step(full(0, 9, mask(4), K=4))
    with pytest.raises(ValueError, match="TopK holds 2 arms, got 3"):
        env.step(full(0, 1, mask(4, 0, 1, 2), K=4))
    _, reward, terminated, _, info = env.step(full(0, 1, mask(4, 1, 3), K=4))
    assert (terminated, info["misidentified"]) == (True, 1)
    assert reward == pytest.approx((1.1 - 0.3) / (1.5 - 0.3))  # (.2 + .9 - worst) / (best - worst)


def test_answers_are_only_read_at_the_end() -> None:
    """Whatever their values, in whatever integer type; then they must be 0 or 1."""
    env = made(instance=SURE, actions="full")
    for dtype in (np.int8, np.int64, np.uint8):
        env.reset(seed=0)
        junk = np.full(4, 7, dtype)
        env.unwrapped.step(full(0, 1, junk))
        with pytest.raises(ValueError, match=r"mask of 0 and 1, got values 7 .. 7"):
            env.unwrapped.step(full(4, 1, junk))
    for answer in ([0, 0, 1, 1], (False, False, True, True), np.array([0, 0, 1, 1], np.int64)):
        env.reset(seed=0)
        assert env.unwrapped.step(full(4, 1, answer))[1] == 1


def test_stepping_before_a_reset_or_after_the_end_is_an_error() -> None:
    for actions, act in (("arm", 4), ("full", full(4, 1, mask(4), K=4))):
        with pytest.raises(ResetNeeded):
            PureExplorationVectorEnv(2, problem="Threshold", actions=actions).step(batch([act, act]))
        env = PureExplorationEnv("Threshold", instance=SURE, actions=actions)
        for _ in range(2):
            with pytest.raises(ResetNeeded):
                env.step(act)
            env.reset()
            assert env.step(act)[2]


# --- samples ----------------------------------------------------------------------------------------------------------


def test_seeds_and_episodes() -> None:
    env, other = made(), made()
    first = rollout(env, 250, seed=8, stop=0.0)  # 200 pulls, then some of episode 1
    env.reset(seed=8)
    second, _ = env.reset()
    named, _ = other.reset(seed=8, options={"episode": 1})
    assert same(second, named)
    assert same(first[201][0], named)
    after, _ = other.reset()
    assert same(after, env.reset()[0])  # episode 2
    back, _ = other.reset(options={"episode": 1})
    assert same(back, named)  # of the root that it has
    other.reset(seed=9, options={"episode": 0})
    assert same(other.reset(seed=9)[0], other.reset(seed=9, options={})[0])
    assert same(other.reset(seed=np.int64(9))[0], other.reset(seed=9)[0])
    assert not same(made().reset()[0], made().reset()[0])  # without a seed, the system's entropy
    far, _ = env.reset(options={"episode": 2**32 - 1})
    assert not same(far, env.reset(options={"episode": 0})[0])


def test_a_rejected_reset_changes_nothing() -> None:
    env, twin = (made().unwrapped for _ in range(2))
    for one in (env, twin):
        one.reset(seed=3)
        one.step(1)
    episodes = [{"options": {"episode": bad}} for bad in (2**32, 1.0)]
    seeds = [{"seed": bad} for bad in (-1, True, "a")]
    for bad in ({"seed": 4, "options": {"episode": -1}}, {"options": [1]}, *seeds, *episodes):
        with pytest.raises((ValueError, gym.error.Error)):
            env.reset(**bad)
    assert same(env.step(1), twin.step(1))
    assert same(env.reset(), twin.reset())


def test_shuffled_arms_are_a_permutation_and_the_answer_follows() -> None:
    env = made(instance=SURE, shuffle_arms=True, budget=4)
    orders = set()
    for episode in range(200):
        env.reset(seed=0, options={"episode": episode})
        *_, last = (env.step(arm) for arm in range(4))
        means = last[0]["mean"]
        orders.add(tuple(np.argsort(means)))
        np.testing.assert_allclose(np.sort(means), SURE["mean"], atol=1e-7)
        assert (last[1], last[4]["correct"]) == (1.0, True)
        assert last[4]["answer"].tolist() == (means > 0.5).tolist()
    assert len(orders) == 24  # one of 24 orders is missed by 200 with probability below 24 (23 / 24)^200 = 0.005


def test_every_arm_is_shuffled_to_every_place_equally_often() -> None:
    check_order(6000)


@pytest.mark.parametrize(("distribution", "mean", "low", "high"), SAMPLERS)
def test_samplers_draw_their_means_from_the_distribution_asked_for(
    distribution: str, mean: Any, low: float, high: float
) -> None:
    check_means(distribution, mean, low, high, 2000)


@pytest.mark.parametrize("instance", APART)
def test_means_orders_and_samples_are_drawn_apart(instance: Any) -> None:
    check_apart(instance, 5000)


# --- rewards, masks, pictures -----------------------------------------------------------------------------------------


def test_pulls_cost_and_the_answer_pays() -> None:
    env = made(instance=SURE, pull_cost=0.125, actions="full", budget=9)
    env.reset(seed=0)
    assert env.step(full(2, 3, K=4))[1] == -0.375
    assert env.step(full(2, 1, K=4))[1] == -0.125
    assert env.step(full(2, 100, K=4))[1] == -0.625  # 5 were left
    assert env.step(full(2, 1, mask(4, 2, 3), K=4))[1] == 1.0
    env = made(instance=SURE, pull_cost=0.125, budget=2)
    env.reset(seed=0)
    assert env.step(2)[1] == -0.125
    assert env.step(3)[1] == 1.0 - 0.125
    env = made(instance=SURE, pull_cost=0.125, max_pulls=1)
    env.reset(seed=0)
    assert env.step(2)[1] == -0.125  # truncated: no prize
    zero = made(instance=SURE)
    zero.reset(seed=0)
    assert str(zero.step(0)[1]) == "0.0"  # not -0.0


def test_the_reward_may_be_correctness() -> None:
    for answer, score, correct in ((mask(4, 2, 3), 1.0, True), (mask(4, 2), 0.75, False)):
        for reward, paid in (("score", score), ("correct", float(correct))):
            env = made(instance=SURE, reward=reward, actions="full")
            env.reset(seed=0)
            _, got, _, _, info = env.step(full(4, 1, answer, K=4))
            assert (got, info["score"], info["correct"]) == (paid, score, correct)


def test_action_masks_forbid_stopping_where_nothing_asks_for_it() -> None:
    for rules, stop in (({}, False), ({"budget": 5}, False), ({"delta": 0.1}, True), ({"pull_cost": 0.1}, True)):
        env = made(instance=SURE, **rules)
        masks: NDArray[np.bool_] = env.unwrapped.action_masks()
        assert masks.dtype == np.bool_
        assert masks.tolist() == [True] * 4 + [stop]
        many = gym.make_vec("bandit_envs/Threshold-v0", 3, instance=SURE, **rules)
        assert many.unwrapped.action_masks().tolist() == [masks.tolist()] * 3  # type: ignore[attr-defined]


def test_pictures() -> None:
    env = made(instance="tao2019-1", render_mode="ansi")
    assert "(ended)" in env.unwrapped.render()  # not begun
    env.reset(seed=0)
    env.step(7)
    lines = env.render().splitlines()
    assert "tao2019-1" in lines[0]
    assert "remaining 999" in lines[0]
    assert re.match(r" +7 +1 ", lines[2])  # arms never pulled come last
    assert len(lines) == 2 + 10
    assert made().unwrapped.render() is None


def rows_of(text: str) -> tuple[list[str], list[list[str]]]:
    """The words of the heading of a table, and of its rows."""
    _, heading, *rows = text.splitlines()
    return heading.split(), [row.split() for row in rows if "not shown" not in row]


def test_the_table_shows_the_arms_that_matter() -> None:
    """Of 60 arms: the most pulled ones, those nearest to the boundary, and the best of the answer."""
    pulls, mean = np.full(60, 3), np.linspace(0.9, 0.0, 60)  # the boundary, 0.5, is between 26 and 27
    pulls[45], pulls[50], mean[59], pulls[59] = 61, 40, 0.0, 0
    setting = made(instance="sampler(arms=60)").unwrapped.setting
    shown = drawing.text(setting, pulls, mean, -1, False)
    heading, rows = rows_of(shown)
    assert heading == ["arm", "pulls", "margin", "answer", "mean", "bar:", "a", "#", "for", "each", "4", "pulls"]
    arms = [int(row[0]) for row in rows]
    assert len(arms) == 20
    assert {0, 1, 2, 24, 25, 26, 27, 28, 45, 50} <= set(arms)
    assert arms == sorted(arms)  # in the order of the margins
    for row in rows:
        k = int(row[0])
        assert row[1:4] == [str(pulls[k]), f"{mean[k] - 0.5:.4f}", "in" if k <= 26 else "out"]
        assert row[5] == "#" * -(-pulls[k] // 4)
    inside = 27 - sum(k <= 26 for k in arms)
    assert shown.splitlines()[-1] == f"40 of 60 arms are not shown: {inside} in the answer, 1 never pulled"
    few = drawing.text(made(instance="sampler(arms=20)").unwrapped.setting, pulls[:20], mean[:20], -1, False)
    assert len(rows_of(few)[1]) == 20
    assert "not shown" not in few


def pictured(setting: Any, *statistics: NDArray[Any]) -> list[Any]:
    """The axes of the picture of arms with these pulls, means and variances."""
    viewer, figure = Viewer(setting.task, setting.problem), Figure()
    drawing.draw(figure, viewer, viewer.view(*statistics), "")
    return figure.axes


def test_the_picture_has_an_interval_for_every_arm_that_was_pulled() -> None:
    """Samples that are all alike, as of an arm pulled once, tell nothing of their spread: sigma does, dashed."""
    setting = made(instance="sampler(arms=5)").unwrapped.setting
    assert setting.task.sigma == 0.5
    pulls, mean = np.array([1, 4, 4, 0, 100]), np.array([1.0, 0.5, 1.0, 0.0, 0.5])
    variance = np.array([0.0, 0.25, 0.0, 0.0, 0.25])
    top, bottom = pictured(setting, pulls, mean, variance)
    intervals = {part.get_label(): [s[:, 1].tolist() for s in part.get_segments()] for part in top.collections[:2]}
    assert intervals == {"solid": [[0.0, 1.0], [0.4, 0.6]], "dashed": [[0.0, 2.0], [0.5, 1.5]]}
    assert [part.get_linestyle()[0][1] is None for part in top.collections[:2]] == [True, False]
    for most in (0, 1, 2, 7, 100):
        top, bottom = pictured(setting, np.full(5, most), mean, variance)
        for ticks in (bottom.get_xticks(), bottom.get_yticks()):
            assert (ticks == np.round(ticks)).all(), (most, ticks)


# --- named instances and defaults -------------------------------------------------------------------------------------


@catalogue
def test_every_environment_makes_without_arguments(env_id: str) -> None:
    env = made(env_id).unwrapped
    assert (env.task.K, env.task.budget, env.task.delta, env.instance) == (10, 200, None, None)
    assert made(env_id, budget=7).unwrapped.task.budget == 7
    assert made(env_id, delta=0.1).unwrapped.task.budget is None
    assert (made(env_id, delta=0.1, budget=7).unwrapped.task.budget) == 7


@pytest.mark.parametrize(("number", "K", "budget"), [(1, 10, 1_000), (2, 20, 40_000), (3, 10, 100_000)])
def test_named_instances_bring_the_values_of_their_paper(number: int, K: int, budget: int) -> None:
    env = made(instance=f"tao2019-{number}").unwrapped
    assert (env.task.K, env.task.budget, env.task.parameters) == (K, budget, {"threshold": 0.5, "tolerance": 0.0})
    assert env.instance.name == f"tao2019-{number}"
    changed = made(instance=f"tao2019-{number}", threshold=0.4, delta=0.1).unwrapped.task
    assert (changed.budget, changed.delta, changed.parameters["threshold"]) == (None, 0.1, 0.4)
    assert made("bandit_envs/BestArm-v0", instance=f"tao2019-{number}").unwrapped.task.budget is None


def test_banners_bring_their_threshold_and_budget() -> None:
    for name, arms in (("banners", 20), ("banners(arms=30)", 30)):
        envs = gym.make_vec("bandit_envs/Threshold-v0", 300, instance=name)
        envs.reset(seed=0)
        task, means = envs.unwrapped.task, envs.unwrapped._core.means
        assert (task.K, task.budget, task.delta, task.parameters["threshold"]) == (arms, 50 * arms, None, 0.05)
        assert means.shape == (300, arms)
        assert 0 <= means.min() < 0.001 < 0.099 < means.max() <= 0.1
    assert made("bandit_envs/Threshold-v0", instance="banners", budget=7).unwrapped.task.budget == 7


@pytest.mark.parametrize("problem", ["TopK", "BestArm"])
def test_instances_whose_order_tells_the_best_are_shuffled(problem: str) -> None:
    """By default the arms of chen2017-* and of own lists come in a random order; with shuffle_arms=False, as listed."""
    env_id, name = f"bandit_envs/{problem}-v0", "chen2017-two-group(n=40, K=10)"

    def means(instance: Any, **kwargs: Any) -> NDArray[np.float64]:
        """True means of 200 episodes, (200, K)."""
        envs = gym.make_vec(env_id, 200, instance=instance, budget=40, **kwargs)
        envs.reset(seed=0)
        return np.broadcast_to(envs.unwrapped._core.means, (200, 40)).copy()

    listed = np.repeat([0.7, 0.3], [10, 30])
    assert (means(name, shuffle_arms=False) == listed).all()
    shuffled = means(name)
    assert (means(Bernoulli(listed)) == shuffled).all()
    assert (shuffled == means(name, shuffle_arms=True)).all()
    assert (np.sort(shuffled, axis=1) == np.sort(listed)).all()
    # the first arm is one of the best in 50 +- 6 of 200 episodes: outside 5.5 standard deviations once in 10^7 runs
    assert abs((shuffled[:, 0] == 0.7).sum() - 50) <= 33
    single = made(env_id, instance=name, budget=40).unwrapped
    assert single.setting.shuffle_arms
    own = Instance(Bernoulli(listed), "own", {problem: {"shuffle_arms": False}})
    assert (means(own) == listed).all()
    assert (means(own, shuffle_arms=True) == shuffled).all()


# --- Gymnasium's tools around it --------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [IDS[0], "bandit_envs/Feasible-v0"])
def test_image_of_an_episode(env_id):
    env = made(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    empty, _, image = env.render(), env.step(0), env.render()
    assert (image.shape, image.dtype) == ((480, 640, 3), np.uint8)
    assert (image != empty).any()


def test_episodes_that_never_end_are_told() -> None:
    arms = {"distribution": "bernoulli", "mean": [0.2, 0.7]}
    for make in (gym.make, functools.partial(gym.make_vec, num_envs=2)):
        with pytest.warns(UserWarning, match="no episode of this Threshold ever ends: it has neither budget, delta"):
            make("bandit_envs/Threshold-v0", instance=arms)
        for rule in ({"budget": 10}, {"delta": 0.1}, {"max_pulls": 10}, {"pull_cost": 0.1}, {"instance": "tao2019-1"}):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                make("bandit_envs/Threshold-v0", **{"instance": arms} | rule)
