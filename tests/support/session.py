"""A session that uses every problem, distribution, form and face of the environments, and a report on the kernels.

Of each kernel of `bandit_envs`: {module.kernel: [signatures, read, compiled]}. Run by test_compiled.py.
"""

from __future__ import annotations

import pickle

import gymnasium as gym
import numpy as np
from compilations import Compilations
from rollouts import FORMS, batch, some_action

import bandit_envs
from bandit_envs.envs.catalogue import ENVIRONMENTS
from bandit_envs.kernels.geometry import Polyhedron
from bandit_envs.kernels.rng import agent_uniforms
from bandit_envs.stopping import Stratified

COUNTED = Compilations()
DISTRIBUTIONS = [
    {"distribution": "bernoulli", "mean": [0.25, 0.5, 0.75]},
    {"distribution": "gaussian", "mean": [0.25, 0.5, 0.75]},
    {"distribution": "uniform", "mean": [0.25, 0.5, 0.75]},
    {"distribution": "categorical", "values": [1, 2, 3], "probabilities": [[1, 1, 1], [0, 1, 2], [5, 0, 1]]},
    {"distribution": "resampled", "rows": [[0, 1], [2, 3, 4], [1]]},
    {"distribution": "tabulated", "quantiles": [[0, 0.5, 1], [0.2, 0.3, 0.9], [1, 1, 2]]},
    {
        "distribution": "flow-line",
        "lines": [[1, 1, 18, 1, 19, 2 / 3], [1, 1, 18, 2, 18, 0.75], [7, 7, 6, 8, 12, 5.776]],
    },
    *({"sampler": {"distribution": distribution, "arms": 3}} for distribution in ("bernoulli", "gaussian", "uniform")),
    {"sampler": {"distribution": "gaussian", "arms": 3, "mean": {"normal": [1.0, 1.0]}}},
]
WIDE = [
    {"distribution": "bernoulli", "mean": [[0.1, 0.9], [0.5, 0.5]]},
    {"distribution": "gaussian", "mean": [[0.1, 0.9], [0.5, 0.5]]},
    {"distribution": "resampled", "rows": [[[0, 1]], [[2, 3], [4, 5]]]},
    {"distribution": "tabulated", "quantiles": [[[0, 1], [2, 3]], [[0, 0], [1, 1]]]},
    {"sampler": {"distribution": "uniform", "arms": 3, "dimensions": 2}},
]
SHAPES = [  # a half-line, and in two dimensions a box, a half-plane, a simplex, a wedge
    ([[1.0]], [0.5]),
    ([[1, 0], [-1, 0], [0, 1], [0, -1]], [1, 0, 1, 0]),
    ([[1, 1]], [1]),
    ([[-1, 0], [0, -1], [1, 1]], [0, 0, 1]),
    ([[1, 2], [-3, 1]], [1, 2]),
]


def run(env_id: str, **settings: object) -> None:
    """Some steps of the single environment and of the vector environment, with ends."""
    generator = np.random.default_rng(0)
    single, many = gym.make(env_id, **settings), gym.make_vec(env_id, 3, **settings)
    frozen = gym.make_vec(env_id, 3, autoreset_mode="Disabled", copy=False, **settings)
    single.reset(seed=0, options={"episode": 1})
    for env in (many, frozen):
        env.unwrapped.advises = False  # no learner begins here
        env.reset(seed=[0, 1, 2], options={"episode": [3, 4, 5]})
        env.reset(seed=1)
    task = single.unwrapped.task
    for _ in range(8):
        *_, over, cut, _ = single.step(some_action(task, generator, 0.1))
        if over or cut:
            single.reset()
        action = batch([some_action(task, generator, 0.1) for _ in range(3)])
        if isinstance(action, np.ndarray):
            action.setflags(write=False)  # and other layouts: they must not make further signatures
            many.step(np.repeat(action, 2)[::2])
        many.step(action)
        *_, over, cut, _ = frozen.step(action)
        if (over | cut).any():
            frozen.reset(options={"reset_mask": over | cut})
    many.unwrapped.assess(np.arange(3))
    many.unwrapped.certify(np.arange(3))
    if task.D == 1:
        many.unwrapped.problem.distances(many.unwrapped.pulls, many.unwrapped._core.mean)
    many.unwrapped.assess(np.array([1]), many.unwrapped._core.problem.plug_in(many.unwrapped._core.seen(np.array([1]))))
    pickle.loads(pickle.dumps(single)).reset()


def everything() -> None:
    evidence()
    for actions, observation in FORMS:  # in the full form every distribution, and every shape of sets
        form = {"actions": actions, "observation": observation, "budget": 6}
        for row in ENVIRONMENTS.values():
            run(row.id, **form)
    for instance in DISTRIBUTIONS:
        run("bandit_envs/Threshold-v0", instance=instance, threshold=1.0 if "values" in instance else 0.5, **form)
        run("bandit_envs/AllGood-v0", instance=instance, shuffle_arms=True, pull_cost=0.1, **form)
        run("bandit_envs/TopK-v0", instance=instance, k=2, reward="correct", max_pulls=4, **form)
    for A, b in SHAPES:
        for instance in (WIDE if len(A[0]) == 2 else DISTRIBUTIONS)[::2]:
            run("bandit_envs/Feasible-v0", instance=instance, A=A, b=b, tolerance=0.1, **form)
    for instance in WIDE:
        run("bandit_envs/Feasible-v0", instance=instance, A=A, b=b, pull="coordinate", shuffle_arms=True, **form)
    run("bandit_envs/Feasible-v0", instance="polyhedra(arms=3)", **form)
    for A, b in SHAPES:
        shape, points = Polyhedron(A, b), np.zeros((4, len(A[0])))
        shape.contains(points), shape.project(points), shape.margin(points[0])
    late = {"actions": "arm", "budget": 6, "batch": 3, "delay": "exponential(2)"}
    run("bandit_envs/Threshold-v0", **late)
    run("bandit_envs/TopK-v0", k=2, observation="relative", reward="gain", **late)
    guarded = {"instance": WIDE[0], "guardrails": [0.1]}  # has no potential
    run("bandit_envs/BetterThanControl-v0", observation="relative", reward="gain", **guarded, **late)
    agent_uniforms(np.zeros(3, np.int64), np.zeros(3, np.int64), 2)


def evidence() -> None:
    """Every problem's evidence and certificate, by every distribution and search, and the game."""
    generator = np.random.default_rng(0)
    pulls, mean = generator.integers(1, 99, (2, 5)), generator.random((2, 5))
    problems = [
        bandit_envs.Threshold(0.5), bandit_envs.TopK(2, 0.1), bandit_envs.TopK(2, 0.1, "each"), bandit_envs.BestArm(),
        bandit_envs.AllGood(0.2), bandit_envs.BetterThanControl(tolerance=0.1),
    ]  # fmt: skip
    for problem in problems:
        for distribution in ("gaussian", "bernoulli"):
            problem.evidence(pulls, mean, distribution=distribution)
            problem.characteristic_time(mean[0], distribution=distribution)
        problem.certified_level(pulls, mean, distribution="student", variance=mean)
    problems[-1].comparison(pulls[0], mean[0], distribution="bernoulli")
    Stratified.odds(pulls, pulls // 2, 0).interval(0.05)
    bandit_envs.Feasible([[-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5]).evidence(pulls, generator.random((2, 5, 2)))


def report() -> dict[str, list[int]]:
    return {name: [sum(counts), *counts] for name, counts in COUNTED.found.items()}
