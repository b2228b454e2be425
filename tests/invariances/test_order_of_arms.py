"""The order in which arms are listed decides nothing: by default, and of what agents choose and answer."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import scipy.stats

import agents
import bandit_envs
from agents.core import ALL_PROBLEMS
from bandit_envs import Bernoulli, Instance, SetProblem, from_table
from bandit_envs.testing import check_problem

K, E = 6, 8
FIRST = {"instance": {"distribution": "bernoulli", "mean": [0.7] + [0.5] * 9}, "budget": 30}
LAST = {"instance": {"distribution": "bernoulli", "mean": [0.5] * 9 + [0.7]}, "budget": 30}
N, LEAST = 3000, 1e-6  # episodes of each, on roots of their own; the level of a false alarm


def wrong(agent: str, seed: int, **kwargs: Any) -> int:
    rows = agents.evaluate(agent, "BestArm", episodes=N, seed=seed, env_kwargs=kwargs).episodes
    return int((~rows["correct"]).sum())


@pytest.mark.parametrize("agent", ["uniform", "top-two"])
def test_best_first_and_best_last_err_as_often(agent: str) -> None:
    """The wrong twin keeps the order of the list: its errors, .53 and .89 of 3,000, differ at any level."""
    for more, equal in (({}, True), ({"shuffle_arms": False}, False)):
        one, other = wrong(agent, 1, **FIRST, **more), wrong(agent, 2, **LAST, **more)
        assert (scipy.stats.fisher_exact([[one, N - one], [other, N - other]]).pvalue > LEAST) == equal


class Better(SetProblem):
    """Arms no worse than arm 0, a control."""

    name, asks, source = "Better", "arms no worse than a control", "a test"

    def margin(self, means: Any) -> Any:
        return np.asarray(means, float) - np.asarray(means, float)[..., :1]


class BetterRenamed(Better):
    """The same, which wrongly says that its arms may change places."""

    name, any_order = "BetterRenamed", True


class FromBest(bandit_envs.problems.AllGood):
    """A subclass with margins of its own says by itself whether its arms may change places."""

    name = "FromBest"

    def margin(self, means: Any) -> Any:
        return Better.margin(self, means)


def shuffled(problem: Any, instance: Any, **kwargs: Any) -> bool:
    name = problem if isinstance(problem, str) else f"{problem.__module__}:{problem.__qualname__}"
    setting = bandit_envs.PureExplorationEnv(name, instance=instance, budget=60, **kwargs).setting
    return bool(setting.shuffle_arms)


def test_who_keeps_the_order() -> None:
    own, table = Instance(Bernoulli([0.2, 0.9])), from_table(np.array([[0.1, 0.3], [0.2, 0.6]]))
    for problem, kwargs in (("BestArm", {}), ("TopK", {"k": 1}), ("AllGood", {})):
        assert all(shuffled(problem, one, **kwargs) for one in (own, own.to_dict(), own.arms, table))
        assert not any(shuffled(problem, one, **kwargs) for one in ("sampler(arms=3)", "tao2019-1", "mason2020-3a"))
        assert not shuffled(problem, own, shuffle_arms=False, **kwargs)
    assert not shuffled("Threshold", own)
    for problem in (Better, FromBest):
        assert not any(shuffled(problem, one) for one in (own, table))
    assert shuffled(BetterRenamed, table)
    check_problem(Better)
    with pytest.raises(AssertionError, match="check_relabelled_arms"):
        check_problem(BetterRenamed)


def test_pulls_and_traces_are_of_the_arms_that_were_listed() -> None:
    """Arm 3 is the only good one: the agent pulls it most, wherever it is shown."""
    instance = {"distribution": "gaussian", "mean": [0.0, 0.0, 0.0, 3.0, 0.0], "sd": 0.1}
    kwargs = {"instance": instance, "budget": 60}
    pulls = agents.evaluate("top-two", "BestArm", episodes=40, env_kwargs=kwargs).pulls["pulls"]
    assert pulls.argmax() == 3
    assert pulls.iloc[3] > 1.5 * pulls.drop(3).max()
    places = set()
    for episode in range(8):
        trace = agents.play("top-two", "BestArm", env_kwargs=kwargs, episode=episode, at=[30])
        assert trace.means.tolist() == instance["mean"]
        assert trace.answer.tolist() == [False, False, False, True, False]
        assert trace.answers[0, 3]
        assert trace.seen["mean"][0].argmax() == 3
        assert trace.pulls.argmax() == 3
        assert np.allclose(trace.samples[trace.arms == 3], 3.0, atol=1.0)
        env: Any = gym.make("bandit_envs/BestArm-v0", **kwargs)
        env.reset(seed=0, options={"episode": episode})
        places.add(int(env.unwrapped._core.means[0].argmax()))
    assert len(places) > 1


BUDGET = {"budget": 200, "delta": 0.1, "instance": {"sampler": {"distribution": "gaussian", "arms": K, "spread": 0.3}}}
RULES: dict[str, dict[str, Any]] = {
    "Threshold": {},
    "AllGood": {},
    "TopK": {"k": 2, "epsilon": 0.1},
    "BestArm": {"epsilon": 0.1},
    "Feasible": {"A": [[-1.0]], "b": [-0.5]},
}


def decided(agent: Any, observation: Any) -> tuple[Any, Any]:
    """The arms that are chosen next, and the answers, in episodes that have begun."""
    state = agent.begin_anew(observation)
    arms = agent.predict(observation, state)[0]["arm"]
    return arms.copy(), agent.recommend(observation, state)


def moves_along(agent: Any) -> str:
    """What an agent does otherwise where the arms of its episodes change their places: "" if nothing.

    No two arms have as many pulls, or means that are equal: there are no ties.
    """
    random, order = np.random.default_rng(3), np.array([4, 2, 5, 0, 3, 1])
    pulls = np.array([random.permutation(np.arange(4, 4 + 3 * K, 3)) for _ in range(E)])
    mean, variance = random.uniform(0.1, 0.9, (E, K)), random.uniform(0.05, 0.12, (E, K))
    rest = {"remaining": 200 - pulls.sum(axis=1, keepdims=True), "public_seed": np.arange(E)[:, None]}
    here = {"pulls": pulls, "total": pulls * mean, "mean": mean, "variance": variance}
    there = {name: np.ascontiguousarray(array[:, order]) for name, array in here.items()}
    arms, answers = decided(agent, here | rest)
    moved, others = decided(agent, there | rest)
    stop = agent.task.stop
    back = np.where(moved == stop, stop, order[np.minimum(moved, K - 1)])
    return "arms " * bool((arms != back).any()) + "answers" * bool((answers[:, order] != others).any())


# Whose next arm depends on its place: those that go through a round in the order of the arms, or draw arms at random.
IN_ORDER = {
    *("uniform", "sar", "fareast", "racing", "opt-mai", "pi1", "pi2", "pi3", "adapt", "adaptive-top-k", "direct"),
    *("batched-elimination", "tri-bbai", "opt-bbai", "kt", "fbkt", "gsp", "pass"),
    *("successive-rejects", "sequential-halving", "halving", "incremental", "improved-top-k", "median-elimination"),
}
DRAWN = {"random"}


@pytest.mark.parametrize("problem", RULES)
def test_decisions_and_answers_move_along_with_the_arms(problem: str) -> None:
    env, asked = gym.make_vec(f"bandit_envs/{problem}-v0", E, actions="full", **BUDGET, **RULES[problem]), set[str]()
    for name in agents.names(problem):
        try:
            agent = agents.make(name, env)
        except ValueError:  # an oracle, or of Bernoulli arms alone
            continue
        if isinstance(agent, agents.Agent):
            asked.add(name)
            found = moves_along(agent)
            assert found in (("", "arms ") if name in IN_ORDER | DRAWN else ("",)), name
    assert len(asked) >= 8
    assert len(asked - IN_ORDER - DRAWN) >= 5


class Prefers(agents.Agent):
    """The wrong twin: arm 0 seems a little better to it."""

    name, source, solves = "prefers", "a test", ALL_PROBLEMS
    more, most = 0.2, 0.0

    def choose(self, observation: Any, state: Any) -> Any:
        return (observation["mean"] + self.more * (np.arange(K) == 0)).argmax(axis=1)

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        return self.problem.plug_in(observation["mean"] + self.most * (np.arange(K) == 0))


class Answers(Prefers):
    more, most = 0.0, 0.2


class Fair(Prefers):
    more = 0.0


@pytest.mark.parametrize(("agent", "found"), [(Prefers, "arms "), (Answers, "answers"), (Fair, "")])
def test_a_preference_for_a_place_is_found(agent: Any, found: str) -> None:
    env = gym.make_vec("bandit_envs/BestArm-v0", E, actions="full", **BUDGET)
    assert moves_along(agents.make(agent, env)) == found
