"""Uses all that the package `stranger` brings, once it is installed. Run by test_stranger.py: checks.py NAME ..."""

from __future__ import annotations

import logging
import sys
from collections.abc import Generator
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import SyncVectorEnv

import agents
import bandit_envs

FAR_GOOD = "bandit_envs/FarGood-v0"
PYRAMIDS = {"instance": "pyramids", "budget": 120}
SETTINGS: list[dict[str, Any]] = [{}, PYRAMIDS, {"instance": "pyramids(arms=4)", "epsilon": 0.05}]


def rows(who: Any, env_id: str = FAR_GOOD, **arguments: Any) -> Any:
    """The rows of an evaluation, without labels."""
    result = agents.evaluate(who, env_id, **{"episodes": 5, "env_kwargs": PYRAMIDS, "progress": False} | arguments)
    return result.episodes.drop(columns="agent")


def same(a: Any, b: Any) -> bool:
    """Whether observations, rewards or infos are equal, element by element."""
    if isinstance(a, dict):
        return all(same(a[name], b[name]) for name in a.keys() & b.keys())
    return np.array_equal(a, b)


def environments() -> None:
    """The problem is made by gym.make and make_vec, and the native vector form is that of Gymnasium."""
    assert "FarGood" in bandit_envs.PROBLEMS
    problem = gym.make(FAR_GOOD, threshold=0.4, epsilon=0.1).unwrapped.problem
    assert problem.plug_in([0.1, 0.35, 0.45, 0.52, np.nan]).tolist() == [True, False, False, True, False]
    for settings in SETTINGS:
        for observation in ("statistics", "features"):
            kwargs = settings | {"observation": observation}
            native = gym.make_vec(FAR_GOOD, num_envs=3, **kwargs)
            sync = SyncVectorEnv([lambda kwargs=kwargs: gym.make(FAR_GOOD, **kwargs)] * 3)
            assert same(native.reset(seed=7)[0], sync.reset(seed=7)[0])
            arms = np.random.default_rng(0).integers(0, native.unwrapped.task.K, (130, 3))
            for t, action in enumerate(arms):
                seen, told = native.step(action), sync.step(action)
                assert all(same(a, b) for a, b in zip(seen[:4], told[:4], strict=True)), (settings, t)
                for name in seen[4].keys() & {"answer", "score", "misclassified", "total_pulls"}:
                    assert same(np.array(seen[4][name].tolist()), np.array(told[4][name].tolist()))
            assert observation != "features" or native.single_observation_space.contains(seen[0][0])


def laws() -> None:
    """The law is known by its name, and its samples have the means and variances that it tells."""
    modes = [0.0, 0.3, 1.0]
    for instance in ({"law": "triangular", "mode": modes}, {"law": "stranger.triangular:Triangular", "mode": modes}):
        env: Any = gym.make(FAR_GOOD, instance=instance, actions="full", budget=90_000)
        env.reset(seed=0)
        for arm in range(3):
            seen, *_ = env.step({"arm": arm, "times": 30_000, "answer": np.zeros(3, np.int8)})
        c = np.array(modes)
        assert np.abs(seen["mean"] - (1 + c) / 3).max() < 0.008  # 6 standard errors
        assert np.abs(seen["variance"] - (1 - c + c**2) / 18).max() < 0.003
        assert env.unwrapped.task.distribution == "triangular"
        assert env.unwrapped.task.support == (0.0, 1.0)
    from stranger.triangular import Triangular

    means = np.random.default_rng(1).uniform(1 / 3, 2 / 3, (6, 5))
    sampler = bandit_envs.Sampler("triangular", 5, {"uniform": [1 / 3, 2 / 3]})
    tables = sampler.pack(means[..., None])
    assert all(
        np.array_equal(one, Triangular(3 * mean - 1).parameters) for one, mean in zip(tables, means, strict=True)
    )
    drawn: Any = {"sampler": {"law": "triangular", "arms": 5, "mean": {"uniform": [0.4, 0.6]}}}
    envs: Any = gym.make_vec(FAR_GOOD, 20, instance=drawn, actions="full", budget=30_000)
    envs.reset(seed=0)
    action = {name: np.full(20, value) for name, value in {"arm": 3, "times": 30_000}.items()}
    seen, *_ = envs.step(action | {"answer": np.zeros((20, 5), np.int8)})
    assert 0.39 < seen["mean"][:, 3].min() < 0.45 < 0.55 < seen["mean"][:, 3].max() < 0.61
    refused = ""
    try:
        bandit_envs.Sampler("triangular", 5, {"uniform": [0.2, 0.6]})
    except ValueError as error:
        refused = str(error)
    assert "the means of Triangular arms lie in [0.333333, 0.666667]" in refused
    for name in ("pyramids(arms=3)", "stranger.triangular:pyramids(arms=3)"):
        again: Any = gym.make(FAR_GOOD, instance=name).unwrapped
        assert again.task.K == 3
        assert again.task.budget == 400
        assert again.instance.to_dict() == {"distribution": "triangular", "mode": [0.0, 0.5, 1.0]}


def twin(K: int, threshold: float, epsilon: float) -> Generator[int, float, None]:
    """The algorithm of `BothSides`, transcribed slowly and plainly."""
    samples: list[list[float]] = [[] for _ in range(K)]
    for i in range(K):
        samples[i].append((yield i))
    while True:
        margins = [abs(np.cumsum(x)[-1] / len(x) - threshold) - epsilon for x in samples]
        sure = [len(x) * margin**2 for x, margin in zip(samples, margins, strict=True)]
        sides = [[i for i in range(K) if (margins[i] >= 0) == inside] for inside in (True, False)]
        for side in sides:
            if side:
                i = min(side, key=sure.__getitem__)
                samples[i].append((yield i))


def decisions() -> None:
    """The agents decide as they should, by whatever name they are called."""
    from stranger.agents import BothSides, NearestFirst

    solvers = ["uniform", "random", "lsa", "apt", "ucbe", "sar", "static", "both-sides", "nearest-first"]
    assert sorted(agents.names("FarGood")) == sorted(solvers)
    assert "nearest-first" in agents.names("Threshold")
    assert "both-sides" not in agents.names("Threshold")
    env = gym.make(FAR_GOOD, **PYRAMIDS)
    assert type(agents.make("both-sides", env)) is BothSides
    assert agents.make("nearest-first(power=2)", env).power == 2.0
    unnamed = bandit_envs.PureExplorationEnv("stranger.far_good:FarGood", budget=30)
    assert agents.make("lsa", unnamed).predict(unnamed.reset(seed=0)[0])[0] == 0
    assert rows("nearest-first").equals(rows("apt"))
    assert rows("nearest-first", "bandit_envs/Threshold-v0", env_kwargs={}).equals(
        rows("apt", "bandit_envs/Threshold-v0", env_kwargs={})
    )
    text = "stranger.agents:NearestFirst(power=1)"
    for arguments in ({}, {"at": [50, 100]}, {"budgets": [50, 100]}):
        wanted = rows("nearest-first(power=1)", **arguments)
        for form in (text, [text], {"it": text}, lambda task: NearestFirst(task, power=1), NearestFirst(env, 1)):
            assert rows(form, **arguments).equals(wanted)
        assert rows(NearestFirst, **arguments).equals(rows("nearest-first", **arguments))
        assert rows(BothSides, **arguments).equals(rows("both-sides", **arguments))
    for e in range(2):
        observation, _ = env.reset(seed=2, options={"episode": e})
        agent, state, over = agents.make("both-sides", env), None, False
        slow = twin(8, 0.5, 0.1)
        wanted, t = next(slow), 0
        while not over:
            arm, state = agent.predict(observation, state)
            assert arm == wanted, (e, t)
            observation, _, over, _, info = env.step(arm)
            wanted, t = slow.send(info["sample"]), t + 1
        assert t == 120

    assert agents.evaluate(solvers, FAR_GOOD, episodes=5, env_kwargs=PYRAMIDS, progress=False).agents == solvers
    some, kwargs = ["uniform", "both-sides", "apt", "nearest-first(power=1)"], PYRAMIDS | {"budget": 400}
    result = agents.evaluate(some, FAR_GOOD, episodes=400, env_kwargs=kwargs, progress=False)
    for better in some[1:]:
        assert result.compare(better, "uniform", "score").low > 0, better
    assert result.compare("nearest-first(power=1)", "apt", "score").low > 0


def training() -> None:
    """A network learns on the problem."""
    kwargs = {"instance": "sampler(arms=5)", "budget": 40}
    trained = agents.train(
        "ppo", FAR_GOOD, steps=512, num_envs=16, held_out=20, checkpoints=1, env_kwargs=kwargs, progress=False
    )
    assert trained.card["env_id"] == FAR_GOOD
    assert {"ppo", "uniform"} <= set(trained.card["result"]["agents"])
    assert len(rows(trained, env_kwargs=kwargs)) == 5


def kernels() -> None:
    """Prints how often the rules of the free algorithm were taken from the disk, and how often they were compiled."""
    from stranger.agents import BothSides

    said = list[str]()
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("bandit_envs.kernels.compiled")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    BothSides.form._routines.clear()  # what it has read before
    rows("both-sides")
    said = [text.split()[0] for text in said if text.endswith("BothSides.sample.decide")]
    print(said.count("read"), said.count("compiling"))


if __name__ == "__main__":
    for check in sys.argv[1:]:
        globals()[check]()
