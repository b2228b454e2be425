"""The native vector environment: bit for bit what single environments give, whatever the size, mode and form."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from beyond_arrays import play
from environments import COLUMNS, SETTINGS, THREE, agree, check_modes, check_sizes, twins
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from rollouts import FORMS, IDS, batch, mask, same, some_action

from bandit_envs import PureExplorationEnv, PureExplorationVectorEnv, Shared, from_table
from bandit_envs.envs.catalogue import ENVIRONMENTS

NEXT, SAME, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
modes = pytest.mark.parametrize("mode", [NEXT, SAME, DISABLED])
forms = pytest.mark.parametrize(("actions", "observation"), FORMS)


def made(num_envs: int = 3, env_id: str = "bandit_envs/Threshold-v0", **settings: Any) -> Any:
    return gym.make_vec(env_id, num_envs, **settings)


def single(problem: str, **settings: Any) -> PureExplorationEnv:
    return PureExplorationEnv(problem, **ENVIRONMENTS[problem].defaults | settings)


# --- the same as single environments ----------------------------------------------------------------------------------


# Every problem in both forms of actions; every pair of a form and a mode.
@pytest.mark.parametrize(
    ("problem", "actions", "observation", "mode"),
    [
        (problem, *form, mode)
        for i, problem in enumerate(ENVIRONMENTS)
        for j, form in enumerate(FORMS)
        for k, mode in enumerate((NEXT, SAME, DISABLED))
        if (i + 2 * j + k) % 5 == 0
    ],
)
def test_native_is_sync(problem: str, actions: str, observation: str, mode: AutoresetMode) -> None:
    check_modes(problem, actions, observation, mode)


# One of two sizes by the kinds of arms in turn.
@pytest.mark.parametrize(
    ("title", "size"),
    [*((title, (1, 3)[i % 2]) for i, title in enumerate(SETTINGS)), ("shuffled vectors", 70), ("gaussian sampler", 70)],
)
def test_native_is_sync_at_every_size(title: str, size: int) -> None:
    check_sizes(title, size)


def test_the_comparison_has_teeth() -> None:
    settings = {"instance": THREE, "budget": 10}
    other = {"instance": THREE | {"mean": [0.0, 0.5, 1.0 + 1e-15]}, "budget": 10}
    with pytest.raises(AssertionError):
        agree(twins("Threshold", 3, **settings)[0], twins("Threshold", 3, **other)[1], 80)
    one, native = twins("Threshold", 3, **settings)
    one.step = lambda action: SyncVectorEnv.step(one, action)[:4] + ({},)  # type: ignore[method-assign, assignment]
    with pytest.raises(AssertionError):
        agree(one, native, 80)


# --- seeds and episodes -----------------------------------------------------------------------------------------------


def public(env: Any, **rules: Any) -> list[int]:
    """The word that names each slot's episode."""
    found: list[int] = env.reset(**rules)[0]["public_seed"][:, 0].tolist()
    return found


SALTS = ({"salt": 0}, {"salt": 1}, {"salt": 2**63 - 1})


def word(root: int, episode: int) -> int:
    seen, _ = PureExplorationEnv("Threshold").reset(seed=root, options={"episode": episode})
    return int(seen["public_seed"][0])


def test_a_salt_changes_public_seeds_alone() -> None:
    """Instances, samples, orders of arms and rows stay; a copy keeps its salt; 0 is none."""
    table = from_table(np.random.default_rng(0).random((60, 4)), shared=True)
    for instance in (table, {"sampler": {"arms": 4}}, {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0, 2.0]}):
        rules = {
            "problem": "BestArm",
            "instance": instance,
            "budget": 60,
            "shuffle_arms": True,
            "observation": "history",
        }
        plain, none, one, other = (PureExplorationVectorEnv(50, **rules, **of) for of in ({}, *SALTS))
        seeds = [public(env, seed=3) for env in (plain, none, one, other)]
        assert seeds[0] == seeds[1]
        assert len({*seeds[1], *seeds[2], *seeds[3]}) == 150
        single = PureExplorationEnv(**rules, **SALTS[1])
        assert public(copy.deepcopy(one), seed=3) == public(pickle.loads(pickle.dumps(one)), seed=3) == seeds[2]
        assert single.reset(seed=3)[0]["public_seed"].item() == seeds[2][0]
        bits = np.unpackbits(np.bitwise_xor(*np.array(seeds[1:3])).view(np.uint8))
        assert abs(bits.sum() - 50 * 31.5) < 5 * (50 * 63 / 4) ** 0.5
        for t in range(60):
            arms = np.arange(50) * 7 % 4 if t % 3 else np.full(50, t % 4)
            ends = [env.step(arms) for env in (plain, one, other)]
        for end in ends[1:]:
            assert (end[0]["samples"] == ends[0][0]["samples"]).all()
            assert (end[4]["score"] == ends[0][4]["score"]).all()


def test_seeds() -> None:
    env = made(3)
    assert public(env, seed=5) == [word(5, 0), word(6, 0), word(7, 0)]
    assert public(env) == [word(5, 1), word(6, 1), word(7, 1)]  # the next episode
    assert public(env, seed=[9, 1, 9]) == [word(9, 0), word(1, 0), word(9, 0)]
    assert public(env, seed=[None, 4, None]) == [word(9, 1), word(4, 0), word(9, 1)]  # None: the next of its own
    assert public(env, options={"episode": np.array([3, 0, 7])}) == [word(9, 3), word(4, 0), word(9, 7)]
    far = np.array([3, 0, 2**32 - 1])
    assert public(env, seed=8, options={"episode": far}) == [word(8, 3), word(8, 0), word(8, 2**32 - 1)]
    assert public(env, seed=8, options={"episode": 6}) == [word(8, 6)] * 3
    assert public(env) == [word(8, 7)] * 3
    assert public(env, seed=[1, 2, 3], options={"episode": [4, 5, 6]}) == [word(1, 4), word(2, 5), word(3, 6)]
    for number in (np.int64(5), np.array(5), np.uint8(5)):
        assert public(env, seed=number) == [word(5, 0), word(6, 0), word(7, 0)]
    assert public(env, seed=np.array([5, 6, 7])) == public(env, seed=(5, 6, 7))
    assert public(env, seed=2**70)[0] == word(2**70, 0)


def test_autoreset_goes_to_the_next_episode() -> None:
    env = made(2, instance=THREE)
    assert public(env, seed=5, options={"episode": np.array([10, 20])}) == [word(5, 10), word(5, 20)]
    _, _, terminated, _, _ = env.step(np.array([3, 0]))  # slot 0 stops
    assert terminated.tolist() == [True, False]
    seen, reward, terminated, _, info = env.step(np.array([1, 1]))
    assert seen["public_seed"][:, 0].tolist() == [word(5, 11), word(5, 20)]
    assert (seen["pulls"][0].tolist(), seen["pulls"][1].tolist()) == ([0, 0, 0], [1, 1, 0])  # the action is ignored
    assert (reward.tolist(), terminated.tolist()) == ([0, 0], [False, False])
    assert info["_sample"].tolist() == [False, True]
    env.step(np.array([3, 3]))
    assert public(env) == [word(5, 12), word(5, 21)]  # a reset in the place of an autoreset: the next as well
    assert env.step(np.array([0, 0]))[4]["_sample"].all()


# --- the two modes ----------------------------------------------------------------------------------------------------


def test_a_mask_restarts_its_slots_only_and_may_come_with_seeds_and_episodes() -> None:
    env = made(3, autoreset_mode=DISABLED)
    assert public(env, seed=5) == [word(5, 0), word(6, 0), word(7, 0)]
    some = np.array([True, False, True])
    given = {"reset_mask": some, "episode": np.array([4, 9, 6])}
    asked = {name: value.copy() for name, value in given.items()}
    assert public(env, options=given) == [word(5, 4), word(6, 0), word(7, 6)]
    assert same(given, asked)
    assert public(env, seed=8, options={"reset_mask": some}) == [word(8, 0), word(6, 0), word(10, 0)]
    assert public(env) == [word(8, 1), word(6, 1), word(10, 1)]
    assert public(env, seed=[None, 3, 2], options={"reset_mask": some}) == [word(8, 2), word(6, 1), word(2, 0)]


def test_the_step_that_ends_an_episode_starts_the_next() -> None:
    """SAME_STEP, by hand: of three slots the middle one stops, and the last one is truncated."""
    env = made(3, instance=THREE, autoreset_mode=SAME, max_pulls=2)
    env.reset(seed=5)
    env.step(np.array([0, 1, 2]))
    env.reset(options={"reset_mask": np.array([True, False, False])})
    seen, reward, terminated, truncated, info = env.step(np.array([0, 3, 1]))
    assert (terminated.tolist(), truncated.tolist()) == ([False, True, False], [False, False, True])
    assert reward.tolist() == pytest.approx([0, info["final_info"]["score"][1], 0])
    assert seen["pulls"].tolist() == [[1, 0, 0], [0] * 3, [0] * 3]  # the ended slots have begun anew
    assert seen["public_seed"][:, 0].tolist() == [word(5, 1), word(6, 1), word(7, 1)]
    ended = [False, True, True]
    assert set(info) == {"sample", "_sample", "final_obs", "_final_obs", "final_info", "_final_info"}
    assert (info["_sample"].tolist(), info["sample"][1:].tolist()) == ([True, False, False], [0, 0])
    assert info["_final_obs"].tolist() == info["_final_info"].tolist() == ended
    none, stopped, cut = info["final_obs"]
    assert none is None
    assert (stopped["pulls"].tolist(), cut["pulls"].tolist()) == ([0, 1, 0], [0, 1, 1])
    assert stopped["public_seed"].tolist() == [word(6, 0)]
    last = info["final_info"]
    assert (last["_sample"].tolist(), last["_answer"].tolist()) == ([False, False, True], ended)
    assert last["sample"].tolist() == pytest.approx([0, 0, cut["total"][1]])
    assert last["total_pulls"].tolist() == [0, 1, 2]
    *_, info = env.step(np.array([0, 0, 0]))  # every slot pulls: no step is lost
    assert (info["_sample"] | info["final_info"]["_sample"]).all()
    assert info["_final_info"].tolist() == [True, False, False]  # its second pull


def test_a_last_observation_is_no_view() -> None:
    for observation in ("statistics", "features", "history"):
        env = made(2, instance=THREE, budget=9, autoreset_mode=SAME, observation=observation, copy=False)
        env.reset(seed=0)
        env.step(np.array([0, 1]))
        last = env.step(np.array([3, 3]))[4]["final_obs"]
        kept = copy.deepcopy(last)
        env.step(np.array([2, 2]))
        assert same(last, kept)


def test_how_make_vec_takes_the_mode() -> None:
    """By its name as a keyword; `vector_kwargs` are for Gymnasium's own vector environments, says Gymnasium."""
    for mode in AutoresetMode:
        env = made(2, vectorization_mode="vector_entry_point", autoreset_mode=mode)
        assert isinstance(env.unwrapped, PureExplorationVectorEnv)
        assert env.metadata["autoreset_mode"] is mode
        sync = made(2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode})
        assert isinstance(sync, SyncVectorEnv)
        assert sync.metadata["autoreset_mode"] is mode
        again = gym.make_vec(env.spec)
        assert (again.num_envs, again.metadata["autoreset_mode"]) == (2, mode)
    with pytest.raises(gym.error.Error, match="only through kwargs"):
        made(2, vector_kwargs={"autoreset_mode": SAME})


# --- copies and views -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", ["statistics", "features", "history"])
def test_copies_are_independent_and_views_are_live(observation: str) -> None:
    def arrays(seen: Any) -> list[Any]:
        return list(seen.values()) if isinstance(seen, dict) else [seen]

    for copies in (True, False):
        env = made(5, observation=observation, copy=copies)
        outputs = [arrays(env.reset(seed=0)[0])]
        outputs += [arrays(env.step(np.full(5, arm))[0]) for arm in (0, 1, 2)]
        kept = [[array.copy() for array in arrays] for arrays in outputs]
        env.step(np.full(5, 3))
        shared = [np.shares_memory(a, b) for a, b in zip(outputs[1], outputs[3], strict=True)]
        assert not any(shared) if copies else all(shared)
        assert same(outputs, kept) == copies


@pytest.mark.parametrize("last", [2, 3])
def test_rewards_flags_and_infos_are_never_views(last: int) -> None:
    """Of a step in which every slot pulls, and of one in which one of them stops."""
    env = made(3, instance=THREE, copy=False)
    env.reset(seed=0)
    first = env.step(np.array([0, 1, last]))
    kept = copy.deepcopy(first[1:])
    env.step(np.array([3, 3, 3]))
    assert same(first[1:], kept)


@pytest.mark.parametrize(
    ("actions", "observation", "mode", "instance"),
    [
        *[("arm", "features", NEXT, "sampler(arms=10)"), ("full", "history", SAME, "sampler(arms=10)")],
        *[("full", "statistics", DISABLED, "sampler(arms=10)"), ("arm", "statistics", NEXT, Shared(COLUMNS))],
    ],
)
def test_pickles_and_copies_go_on_alike(actions: str, observation: str, mode: AutoresetMode, instance: Any) -> None:
    form = {"actions": actions, "observation": observation, "budget": 20, "shuffle_arms": True}
    env = made(5, instance=instance, autoreset_mode=mode, **form)
    generator, twins = np.random.default_rng(0), [env]
    env.reset(seed=3)
    for t in range(60):
        if t in (20, 30):  # in the middle of episodes
            twins += [pickle.loads(pickle.dumps(twins[-1])), copy.deepcopy(twins[-1])]
        action = batch([some_action(env.unwrapped.task, generator) for _ in range(5)])
        first, *others = (twin.step(action) for twin in twins)
        assert all(same(first, other) for other in others)
    with pytest.raises(ResetNeeded):
        pickle.loads(pickle.dumps(made(2))).step(np.zeros(2, np.int64))


# --- infos, scores without an end, tools ------------------------------------------------------------------------------


def test_answers_can_be_assessed_without_an_end() -> None:
    env = made(4, instance=THREE, actions="full", budget=50)
    env.reset(seed=0)
    for _ in range(3):
        env.step({"arm": np.array([0, 1, 2, 0]), "times": np.full(4, 5), "answer": np.zeros((4, 3), np.int8)})
    slots, given = np.array([0, 2]), np.array([mask(3, 1), mask(3, 1, 2)]) != 0
    before, found = copy.deepcopy(env.unwrapped._core.state()), env.unwrapped.assess(slots, given)
    plug = env.unwrapped.assess(np.arange(4))
    assert same(env.unwrapped._core.state(), before)
    assert found["correct"].tolist() == [False, True]
    assert found["score"].tolist() == pytest.approx([2 / 3, 1])
    stop = {"arm": np.full(4, 3), "times": np.ones(4, np.int64)}
    pulled, mean = env.unwrapped.pulls, env.unwrapped._sim.mean
    *_, info = env.step(stop | {"answer": ((pulled > 0) & (mean >= 0.5)).astype(np.int8)})
    assert same({name: info[name] for name in plug}, plug)
    assert env.unwrapped.remaining.tolist() == [35] * 4


# --- agents in slots that have ended ----------------------------------------------------------------------------------


def test_an_agent_survives_slots_whose_statistics_no_longer_move() -> None:
    kwargs = {"delta": 0.2, "epsilon": 0.3, "max_pulls": 400, "instance": "sampler(arms=7)"}
    total = play("fareast(finder='lucb')", "bandit_envs/AllGood-v0", kwargs, 3000)
    assert total.tolist() == [400] * 5


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_last_episode_of_a_root_is_followed_by_none(mode):
    envs = gym.make_vec("bandit_envs/Threshold-v0", 1, instance="sampler(arms=3)", budget=3, autoreset_mode=mode)
    envs.reset(seed=1, options={"episode": 2**32 - 1})
    for _ in range(3 if mode is AutoresetMode.NEXT_STEP else 2):
        envs.step(np.array([0]))
    with pytest.raises(ValueError, match="episode 4294967295 is the last of its root: reset with another seed"):
        envs.step(np.array([0]))
    with pytest.raises(ValueError, match="the last of its root"):
        envs.reset()
    one = gym.make("bandit_envs/Threshold-v0")
    one.reset(seed=1, options={"episode": 2**32 - 1})
    with pytest.raises(ValueError, match="episode 4294967295 is the last of its root"):
        one.reset()


def test_pulls_of_an_arm_never_come_again():
    """Without any limit of its own an episode is cut before pull 2^40 of an arm, whose number is that of pull 0."""
    for make in (gym.make, functools.partial(gym.make_vec, num_envs=1)):
        env = make("bandit_envs/Threshold-v0", instance="sampler(arms=2)", delta=0.1, actions="full")
        env.reset(seed=0)
        shape = () if make is gym.make else (1,)
        action = {"arm": np.zeros(shape, np.int64), "times": np.full(shape, 2**31 - 1), "answer": np.zeros((*shape, 2))}
        action["answer"] = action["answer"].astype(np.int8)
        for step in range(513):
            _, _, _, truncated, info = env.step(action)
            assert bool(np.all(truncated)) == (step == 512)
        assert int(np.ravel(info["total_pulls"])[0]) == 2**40 - 1


@pytest.mark.parametrize("env_id", IDS)
def test_a_slot_is_the_single_environment(env_id: str) -> None:
    """Slot i of root s is gym.make(...).reset(seed=s + i), in a loop of one's own."""
    native, generator = made(70, env_id), np.random.default_rng(3)
    assert isinstance(native.unwrapped, PureExplorationVectorEnv)
    watched = {i: gym.make(env_id) for i in (0, 63, 64, 69)}
    seen, _ = native.reset(seed=40)
    for i, env in watched.items():
        assert same({name: value[i] for name, value in seen.items()}, env.reset(seed=40 + i)[0])
    for _ in range(30):
        action = generator.integers(0, 10, 70)
        seen, reward, terminated, truncated, info = native.step(action)
        for i, env in watched.items():
            one, paid, ended, cut, extra = env.step(int(action[i]))
            assert same({name: value[i] for name, value in seen.items()}, one)
            assert (reward[i], terminated[i], truncated[i]) == (paid, ended, cut)
            assert np.array_equal(info["sample"][i], extra["sample"])


def test_without_a_seed_every_slot_has_a_root_of_its_own() -> None:
    words = [*public(made(50)), *public(made(50)), *public(made(50), options={"episode": 3})]
    assert len(set(words)) == 150
    env = made(3)
    found = public(env, seed=[None, 5, None])
    assert found[1] == word(5, 0)
    assert len(set(found)) == 3


@forms
def test_disabled_leaves_finished_slots_alone(actions: str, observation: str) -> None:
    env = made(4, instance=THREE, budget=50, autoreset_mode=DISABLED, actions=actions, observation=observation)

    def act(*arms: int) -> Any:
        if actions == "arm":
            return np.array(arms)
        return {"arm": np.array(arms), "times": np.full(4, 2), "answer": np.zeros((4, 3), np.int8)}

    env.reset(seed=1)
    env.step(act(0, 1, 2, 0))
    frozen, _, terminated, _, _ = env.step(act(1, 3, 1, 3))
    assert terminated.tolist() == [False, True, False, True]
    for bad in (0, 3, -7, 99):  # whatever their actions are
        seen, reward, terminated, truncated, info = env.step(act(1, bad, 1, bad))
        assert terminated.tolist() == [False, True, False, True]
        assert not truncated.any()
        assert (reward == 0).all()
        assert info["_sample"].tolist() == [True, False, True, False]
        assert set(info) == {"sample", "_sample"}
        for name in frozen if observation != "features" else [slice(None)]:
            assert (seen[name][[1, 3]] == frozen[name][[1, 3]]).all()
            assert not (seen[name][[0, 2]] == frozen[name][[0, 2]]).all() or name in ("remaining", "public_seed")
    before = seen
    seen, _ = env.reset(options={"reset_mask": np.array([False, True, False, False])})
    for name in frozen if observation != "features" else [slice(None)]:
        assert (seen[name][[0, 2, 3]] == before[name][[0, 2, 3]]).all()
    _, _, terminated, _, info = env.step(act(1, 1, 1, 1))
    assert terminated.tolist() == [False, False, False, True]
    assert info["_sample"].tolist() == [True, True, True, False]


def test_a_first_reset_of_some_slots_leaves_the_others_ended() -> None:
    env = made(3, autoreset_mode=DISABLED)
    env.reset(seed=5, options={"reset_mask": np.array([True, False, False])})
    assert env.step(np.array([0, 0, 0]))[4]["_sample"].tolist() == [True, False, False]
    found = public(env, options={"reset_mask": np.array([False, True, True])})
    assert found[0] == word(5, 0)
    assert len(set(found)) == 3


def test_infos_name_their_slots() -> None:
    env = made(3, instance=THREE, actions="full")
    env.reset(seed=0)
    answers = np.array([mask(3, 1, 2), mask(3, 0), mask(3)])
    action = {"arm": np.array([3, 0, 3]), "times": np.array([1, 4, 1]), "answer": answers}
    seen, reward, terminated, _, info = env.step(action)
    assert terminated.tolist() == [True, False, True]
    assert reward.tolist() == pytest.approx([1, 0, 1 / 3])
    for name in ("answer", "correct", "is_success", "score", "total_pulls", "misclassified", "f1"):
        assert info[f"_{name}"].tolist() == [True, False, True]
        assert len(info[name]) == 3
        assert not np.any(info[name][1])
    assert info["_sample"].tolist() == [False, True, False]
    assert info["sample"].tolist() == pytest.approx([0, seen["mean"][1, 0], 0])
    assert info["answer"].tolist() == [[False, True, True], [False] * 3, [False] * 3]
    assert (info["correct"].dtype, info["total_pulls"].dtype) == (np.bool_, np.int64)


@pytest.mark.parametrize("mode", [NEXT, SAME])
def test_gymnasium_statistics_are_recorded(mode: AutoresetMode) -> None:
    env = RecordEpisodeStatistics(made(2, instance=THREE, pull_cost=0.25, autoreset_mode=mode))
    env.reset(seed=0)
    env.step(np.array([0, 1]))
    *_, info = env.step(np.array([3, 0]))
    assert info["episode"]["l"].tolist() == [2, 0]
    assert info["episode"]["r"][0] == pytest.approx(1 / 3 - 0.25)  # nothing above .5 was pulled: 1 of 3 labels right
