"""Environments for learners: no stop action, gains for rewards, beliefs for observations, ranked arms."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from environments import agree, twins
from refusals import refused
from rollouts import same
from test_vector import DISABLED, NEXT, SAME

from bandit_envs import PureExplorationEnv, PureExplorationVectorEnv
from bandit_envs.envs import NUMBERS
from bandit_envs.problems import KEPT
from bandit_envs.problems.lookahead import TIED

ALL = ["Threshold", "BestArm", "TopK", "AllGood", "Feasible", "BetterThanControl"]
problems = pytest.mark.parametrize("problem", ALL)
CELLS = [(problem, (NEXT, SAME, DISABLED)[i % 3]) for i, problem in enumerate(ALL)]


def settings_of(problem: str, **more: Any) -> dict[str, Any]:
    if problem == "Feasible":
        more |= {"A": [[-1, 0], [1, 1]], "b": [-0.3, 1.2]}
    arms = "sampler(arms=4, dimensions=2)" if problem == "Feasible" else "sampler(arms=4)"
    return {"instance": arms, "budget": 12, **more}


def alike(problem: str, mode: Any, steps: int, **settings: Any) -> int:
    """Assert that three single environments and the native form agree bit for bit; how many episodes ended."""
    return agree(*twins(problem, 3, mode, **settings), steps)[0]


# --- no stop action ---------------------------------------------------------------------------------------------------


def test_without_stop_arms_alone_are_actions() -> None:
    env = PureExplorationEnv("Threshold", stop=False, budget=5)
    assert env.action_space == gym.spaces.Discrete(10)
    assert not env.task.can_stop
    assert env.action_masks().tolist() == [True] * 10
    env.reset(seed=0)
    envs = PureExplorationVectorEnv(3, problem="Threshold", stop=False, budget=5)
    envs.reset(seed=0)
    assert envs.action_masks().shape == (3, 10)
    with pytest.raises(ValueError, match="stop=False.*got 10.*slot 1"):
        envs.step(np.array([0, 10, 3]))


# --- gains ------------------------------------------------------------------------------------------------------------


@problems
def test_gains_are_those_of_the_state(problem: str) -> None:
    """Each pull pays its gain less its price; the score is told and not paid; a stop pays what is lost by it."""
    settings = settings_of(problem, pull_cost=0.25, delta=0.1, reward="gain")
    env, g = PureExplorationEnv(problem, **settings), np.random.default_rng(0)
    look, before = env.task.lookahead(), np.empty(1)
    for episode in range(6):
        seen, _ = env.reset(seed=episode)
        while True:
            action = 4 if episode % 2 and g.random() < 0.1 else int(g.integers(4))
            pulls, total = seen["pulls"][None], seen["total"][None]
            look.gain(pulls, total, np.array([action]), np.zeros(1, np.uint8), before)
            if action == 4:
                wanted = look.value(pulls, total, np.zeros(1)) - look.value(pulls, total)
                np.testing.assert_allclose(before, wanted, atol=1e-12)
            seen, reward, terminated, truncated, info = env.step(action)
            assert reward == before[0] - (0.25 if action < 4 else 0.0)
            if terminated or truncated:
                break
        assert 0 <= info["score"] <= 1
        assert "answer" in info


def test_gains_up_to_max_pulls_and_at_resets() -> None:
    envs = PureExplorationVectorEnv(2, problem="Threshold", reward="gain", max_pulls=3, delta=0.1)
    envs.reset(seed=0)
    rewards = [envs.step(np.array([0, 1]))[1:4] for _ in range(4)]
    assert rewards[2][2].all()
    assert not rewards[2][1].any()
    assert (rewards[3][0] == 0).all()  # NEXT_STEP: the step that resets
    look = envs.task.lookahead()
    assert look.horizon == 3
    none = np.zeros((1, 10), np.int64)
    assert rewards[0][0][0] == look.gains(none, none + 0.0)[0, 0]


def test_the_native_form_of_sb3_pays_gains() -> None:
    pytest.importorskip("stable_baselines3")
    from agents.learned import make_vec_env

    envs = make_vec_env("Threshold", 3, reward="gain", stop=False, budget=12, reward_scale=100.0)
    plain = PureExplorationVectorEnv(3, problem="Threshold", reward="gain", stop=False, budget=12)
    envs.seed(4)
    envs.reset()
    plain.reset(seed=4, options={"episode": np.arange(3)})
    for step in range(12):
        arms = np.array([0, 1, step % 10])
        _, reward, done, infos = envs.step(arms)
        wanted = plain.step(arms)[1]
        np.testing.assert_allclose(reward, 100 * wanted, rtol=1e-6)
    assert done.all()
    assert all(0 <= info["score"] <= 1 for info in infos)


def test_scores_of_ones_own_have_gains_by_worlds(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_problem.py").write_text(
        "from bandit_envs import Threshold\nclass Odd(Threshold):\n    name = 'Odd'\n"
        "    def _score(self, verdict, K):\n        return 1.0 * verdict['correct']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    look = PureExplorationEnv("odd_problem:Odd", budget=20, reward="gain").task.lookahead()
    assert type(look) is not type(PureExplorationEnv("Threshold", budget=20).task.lookahead())


# --- beliefs and ranks ------------------------------------------------------------------------------------------------

SHOWN = ["statistics", "features", "relative"]
shown = pytest.mark.parametrize("observation", SHOWN)


def test_the_beliefs_of_before_are_refused() -> None:
    with refused("observation='belief'", "observation='relative'", "models"):
        PureExplorationEnv("Threshold", budget=10, observation="belief")


@pytest.mark.parametrize(("problem", "mode", "observation"), [(*c, SHOWN[-1 - i // 2]) for i, c in enumerate(CELLS)])
def test_native_is_sync_with_ranks(problem: str, mode: Any, observation: str) -> None:
    settings = settings_of(problem, observation=observation, ranked=True, reward="gain", stop=observation != "features")
    assert alike(problem, mode, 30, **settings) >= 6


def unranked(seen: Any, order: np.ndarray) -> Any:
    """Observations (N, ...) with the arms by index again."""
    back = np.argsort(order, axis=1)
    if isinstance(seen, dict):
        return {
            name: np.take_along_axis(x, back if x.ndim == 2 else back[..., None], axis=1) if x.shape[1] > 1 else x
            for name, x in seen.items()
        }
    K = order.shape[1]
    more = next(more for each, more, _ in NUMBERS.values() if each * K + more == seen.shape[1])
    last = seen[:, seen.shape[1] - more :]
    rows = seen[:, : seen.shape[1] - last.shape[1]].reshape(len(seen), K, -1)
    return np.concatenate([np.take_along_axis(rows, back[..., None], axis=1).reshape(len(seen), -1), last], axis=1)


@shown
@problems
def test_ranks_undone_are_the_plain_environment(problem: str, observation: str) -> None:
    """Bit for bit; the first rank is the arm that is least sure, ties by index, and info is by index."""
    settings = settings_of(problem, observation=observation, reward="gain", budget=9)
    settings = {"problem": problem, "autoreset_mode": SAME, **settings}
    plain, ranked = PureExplorationVectorEnv(5, **settings), PureExplorationVectorEnv(5, ranked=True, **settings)
    (seen, _), (other, told) = plain.reset(seed=3), ranked.reset(seed=3)
    # Of all good arms the first one is taken for the best, whose own distance is the surest.
    assert told["order"].tolist() == [[1, 2, 3, 0] if problem == "AllGood" else [0, 1, 2, 3]] * 5
    g, rows, moved = np.random.default_rng(5), np.arange(5), 0
    for _ in range(25):
        assert same(unranked(other, told["order"]), seen)
        moved += int((told["order"] != np.arange(4)).sum())
        ranks = g.integers(0, 4, 5)
        seen, *outcome, info = plain.step(told["order"][rows, ranks])
        other, *outcomes, told = ranked.step(ranks)
        assert same(outcome, outcomes)
        if "final_info" in told:
            last = np.stack(told["final_obs"]) if observation != "statistics" else None
            orders = told["final_info"].pop("order")
            assert told["final_info"].pop("_order").all()
            if last is not None:
                assert same(unranked(last, orders), np.stack(info["final_obs"]))
            told = {**told, "final_obs": None}
            info["final_obs"] = None
        assert same({name: x for name, x in told.items() if name not in ("order", "_order")}, info)
    assert moved > 50


def test_actions_name_ranks_of_what_was_shown_last() -> None:
    """With several pulls for an action, all of the same arm."""
    pytest.importorskip("stable_baselines3")
    from agents.learned import make_vec_env

    envs = make_vec_env("TopK", 3, k=3, budget=40, stop=False, ranked=True, observation="relative", pulls_per_action=4)
    envs.seed(0)
    envs.reset()
    for _ in range(9):
        before = envs.envs.pulls.copy()
        envs.step(np.array([0, 3, 9]))
        assert (np.sort(envs.envs.pulls - before, axis=1)[:, -1] == 4).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("observation", SHOWN[1:])  # statistics have no bounds, which is warned of
@problems
def test_checkers_find_nothing(problem: str, observation: str) -> None:
    from gymnasium.utils.env_checker import check_env
    from stable_baselines3.common.env_checker import check_env as check_for_sb3

    settings = settings_of(problem, observation=observation, stop=False, ranked=True, reward="gain")
    env = gym.make(f"bandit_envs/{problem}-v0", **settings)
    assert gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).spec == env.spec
    check_env(env.unwrapped, skip_render_check=True)
    check_for_sb3(env.unwrapped)


# --- what steps keep from each other ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "mode"), CELLS)
@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian"])
def test_what_steps_keep_changes_no_bit(problem: str, mode: Any, distribution: str) -> None:
    """Gains, beliefs and ranks are those of the statistics alone, after resets, copies and restored states too."""
    more = {"arms": 4, "dimensions": 2} if problem == "Feasible" else {"arms": 4}
    instance = {"sampler": {"distribution": distribution, **more}}
    settings = settings_of(problem, observation="relative", ranked=True, stop=False, reward="gain")
    envs = PureExplorationVectorEnv(3, problem=problem, autoreset_mode=mode, **settings | {"instance": instance})
    seen, info = envs.reset(seed=1)
    generator, ends = np.random.default_rng(0), 0
    for step in range(40):
        if step == 20:
            envs = pickle.loads(pickle.dumps(envs))
        if step in (7, 25):
            seen, info = envs.reset(seed=step, options={"reset_mask": np.array([True, False, True])})
            if step == 25:
                seen, info = envs.reset(seed=3, options={"episode": 8})
        core, ranks, wanted = envs._core, generator.integers(0, 4, 3), np.empty(3)
        sim, look = core.simulator, envs.task.lookahead()
        arms = core.order[np.arange(3), ranks]
        look.gain(sim.pulls, sim.total, arms, sim.status, wanted)
        seen, reward, terminated, truncated, info = envs.step(ranks)
        over = terminated | truncated
        ends += int(over.sum())
        np.testing.assert_array_equal(reward, wanted)
        if mode == DISABLED and over.any():
            seen, info = envs.reset(options={"reset_mask": over})
        shown, order = look.view(sim.pulls, sim.total, ranked=True)
        np.testing.assert_array_equal(seen, shown)
        np.testing.assert_array_equal(core.order, order)
        np.testing.assert_array_equal(info["order"][info["_order"]], order[info["_order"]])
    assert ends >= 6


def numpy_order(beliefs: np.ndarray) -> np.ndarray:
    """The arms in the order of |d| / sd, ties by index, a control before all, as NumPy sorts."""
    certainty = np.where(beliefs[..., 2] < 0, -1.0, np.abs(beliefs[..., 0]) / beliefs[..., 1])
    order = np.argsort(certainty, axis=1, kind="stable")
    sorted_ones = np.take_along_axis(certainty, order, axis=1)
    group = (np.diff(sorted_ones, axis=1, prepend=sorted_ones[:, :1]) > TIED).cumsum(axis=1)
    return np.take_along_axis(order, np.lexsort((order, group)), axis=1)


@problems
def test_ranks_are_those_of_numpy(problem: str) -> None:
    """Of many ties, and of ties that rounding has split; from any order on."""
    generator, parameters = np.random.default_rng(2), {"control": 3} if problem == "BetterThanControl" else {}
    arms = "sampler(arms=12, dimensions=2)" if problem == "Feasible" else "sampler(arms=12)"
    more = settings_of(problem, observation="relative", ranked=True) | {"instance": arms, **parameters}
    look = PureExplorationEnv(problem, **more | {"budget": 200}).task.lookahead()
    pulls, kept = generator.integers(0, 3, (300, 12)), np.full((300, 12, KEPT), np.nan)
    total = (pulls * 0.1 + 0.2) - 0.2 if look.D == 1 else np.stack([pulls * 0.3, 0.6 * pulls], axis=-1)
    total = total + 1e-13 * generator.integers(0, 2, total.shape)
    order = numpy_order(look.beliefs(pulls, total))
    np.testing.assert_array_equal(look.view(pulls, total, ranked=True)[1], order)
    found = generator.permuted(np.tile(np.arange(12), (300, 1)), axis=1)
    look.viewer(pulls, total, kept, True, found, np.empty((300, 76), np.float32))()
    np.testing.assert_array_equal(found, order)
