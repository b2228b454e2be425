"""Samples that are drawn ahead, many of one arm at once: bit for bit those that are drawn one at a time.

The twin draws each sample alone, from its own counter, and finds the statistics and indices in plain Python.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rollouts import simulator

from agents import IndexPolicy
from bandit_envs import Arms, Bernoulli, Categorical, Gaussian, Resampled, Tabulated, Uniform
from bandit_envs.kernels import episode_kernel, rng
from bandit_envs.simulation import AHEAD, Playing, Quiet, player
from bandit_envs.simulation.simulator import Simulator

E, STEPS = 3, 400
MEANS = [0.1, 0.45, 0.6, 0.9, 0.3]
VALUES, WEIGHTS = [-0.5, 0.0, 0.25, 1.0], [[1, 2, 3, 4], [3, 1, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1], [4, 3, 2, 1]]
ROWS: list[list[float]] = [[0.1, 0.2, 0.9], [0.5], [0.3, 0.8, 0.7, 0.1], [0.2, 0.4], [0.6, 0.1]]
ARMS: dict[str, Arms] = {
    "bernoulli": Bernoulli(MEANS),
    "gaussian": Gaussian(MEANS, [0.5, 1.0, 2.0, 0.1, 1.0]),
    "categorical": Categorical(VALUES, WEIGHTS),
    "uniform": Uniform(MEANS, 1.5),
    "resampled": Resampled(ROWS),
    "tabulated": Tabulated([[0.0, 0.1, 0.4, 1.0]] * 4 + [[0.2, 0.3, 0.4, 0.9]]),
}
SHOWN = ("pulls", "excess", "total", "mean", "variance", "moments", "spent", "sample")


@episode_kernel
def in_script(e: int, spent, script):
    """The arm that a script names next."""
    return script[e, spent[e]]


def play(sim: Simulator, script: Any, steps: int) -> None:
    """Pull the next arms of a script in every episode, in compiled code, one episode after another."""
    out, most = np.zeros(sim.E, np.int64), np.full(sim.E, 10**12)
    player(in_script)(sim.arrays.spent, script, out, Playing(sim.arrays, Quiet(most, steps)))


def step(sim: Simulator, script: Any, steps: int) -> None:
    """The same, one step after another."""
    slots = np.arange(sim.E)
    for _ in range(steps):
        sim.advance(script[slots, sim.spent], np.ones(sim.E, np.int64))


def agree(a: Simulator, b: Simulator) -> None:
    for name in SHOWN:
        np.testing.assert_array_equal(getattr(a.arrays, name), getattr(b.arrays, name), err_msg=name)


@pytest.mark.parametrize("moments", [False, True])
@pytest.mark.parametrize("name", ARMS)
def test_pulls_of_every_kind_follow_each_other(name: str, moments: bool) -> None:
    """Runs of one arm across all borders; single steps, bulk pulls, other episodes and earlier states between."""
    a, b = (simulator(ARMS[name], E, keeps_moments=moments) for _ in range(2))
    generator, K = np.random.default_rng(1), len(MEANS)
    script = generator.integers(0, K, (E, 10 * STEPS)).repeat(generator.integers(1, 30, 10 * STEPS), axis=1)
    kept: Any = None
    for turn, steps in enumerate([1, 2, 7, 9, 31, 33, 64, 200, 3, 100, 5, 300]):
        play(a, script, steps)
        step(b, script, steps)
        agree(a, b)
        for sim in (a, b):
            if turn % 3 == 1:  # a bulk pull moves the counter of an arm
                sim.advance(script[:, 0].copy(), np.array([2, 1, 40]))
            if turn % 3 == 2:
                step(sim, script, turn)
            if turn in (4, 8):  # a slot gets another episode
                sim.begin(np.array([turn % E]), sim.arrays.key.copy(), np.full(E, turn, np.uint64))
        if turn == 5:
            kept = [array.copy() for array in a.state()]
        if turn == 9:
            for sim in (a, b):
                for mine, theirs in zip(sim.state(), kept, strict=True):
                    mine[...] = theirs
        agree(a, b)


@pytest.mark.parametrize("K", [4096, 5000])
def test_many_arms_share_lines(K: int) -> None:
    """More arms than lines: those that meet on a line are drawn alone, or ahead once more."""
    a, b = (simulator(Gaussian(np.linspace(0, 1, K)), 2) for _ in range(2))
    script = np.random.default_rng(2).choice([1, 1 + 4096 % K, 7, K - 1], (2, 400))
    for steps in (300, 100):
        play(a, script, steps)
        step(b, script, steps)
        agree(a, b)


def test_what_is_kept_is_bounded() -> None:
    """However many arms there are."""
    few, many = (simulator(Bernoulli(np.full(K, 0.5)), 1).arrays.work for K in (4096, 100_000))
    assert sum(array.nbytes for array in many) == sum(array.nbytes for array in few) < 3 * 2**20


def test_counters_pass_2_to_the_32() -> None:
    """In the middle of samples that are drawn at once, where another word of the counter changes."""
    a, b = (simulator(Uniform(MEANS, 1.0), 1) for _ in range(2))
    for sim in (a, b):
        sim.pulls[:] = 2**32 - 1 - np.arange(5) * 7
    script = np.random.default_rng(3).integers(0, 5, (1, STEPS))
    play(a, script, STEPS)
    step(b, script, STEPS)
    agree(a, b)
    assert (a.pulls > 2**32).all()


# --- the twin ---------------------------------------------------------------------------------------------------------


def of_bernoulli(u: float, arm: int) -> float:
    return 1.0 if u < MEANS[arm] else 0.0


def of_gaussian(u: float, arm: int) -> float:
    return MEANS[arm] + [0.5, 1.0, 2.0, 0.1, 1.0][arm] * float(rng.normal_quantiles(np.array([u]))[0])


def of_categorical(u: float, arm: int) -> float:
    """The first value up to which there is more than u."""
    table = ARMS["categorical"].parameters[arm]
    return next((x for x, p in zip(VALUES[:-1], table[:-1], strict=False) if u < p), VALUES[-1])


LITERAL: dict[str, Callable[[float, int], float]] = {
    "bernoulli": of_bernoulli,
    "gaussian": of_gaussian,
    "categorical": of_categorical,
}


class Twin:
    """An episode whose samples are drawn one at a time, and its statistics by the formulas of the module's head."""

    def __init__(self, name: str, episode: int, low: float, high: float) -> None:
        self.of, self.low, self.high = LITERAL[name], low, high
        self.key, self.episode = rng.root_key(0)[:, None], np.array([episode], np.uint64)
        self.n, self.excess, self.mean, self.variance = ([0.0] * 5 for _ in range(4))

    def pull(self, arm: int) -> None:
        n = self.n[arm]
        index = np.array([int(n)], np.uint64)
        u = rng.uniforms(self.key, self.episode, 5, stream=rng.SAMPLE, index=index)[0, arm, 0]
        x = self.of(float(u), arm) - self.low
        before = self.mean[arm] - self.low
        self.excess[arm] += x
        now = self.excess[arm] / (n + 1.0)
        self.variance[arm] = max((self.variance[arm] * n + (x - before) * (x - now)) / (n + 1.0), 0.0)
        self.mean[arm] = min(self.low + now, self.high)
        self.n[arm] = n + 1.0


@pytest.mark.parametrize("name", LITERAL)
def test_samples_are_those_of_the_twin(name: str) -> None:
    sim = simulator(ARMS[name], E)
    script = np.random.default_rng(4).integers(0, 5, (E, STEPS))
    script[:, ::2] = 1  # 200 pulls of one arm: 1, 8, 16, 32, 32, ..
    play(sim, script, STEPS)
    for e in range(E):
        twin = Twin(name, e, sim.arrays.rules.low, sim.arrays.rules.high)
        for arm in script[e].tolist():
            twin.pull(arm)
        assert sim.mean[e].tolist() == twin.mean
        assert sim.variance[e].tolist() == twin.variance
        assert sim.pulls[e].tolist() == twin.n


class Falls(IndexPolicy):
    """An index that may fall."""

    name, source = "falls", "a test"

    def index(self, T: Any, D: Any) -> Any:
        return np.sqrt(T) * np.abs(D)


class Rises(Falls):
    """The same, which never falls."""

    name, running = "rises", True


THRESHOLD = {
    "bernoulli": {"distribution": "bernoulli", "mean": MEANS},
    "gaussian": {"distribution": "gaussian", "mean": MEANS, "sd": [0.5, 1.0, 2.0, 0.1, 1.0]},
    "categorical": {"distribution": "categorical", "values": VALUES, "probabilities": WEIGHTS},
}


@pytest.mark.parametrize("kind", [Falls, Rises])
@pytest.mark.parametrize("name", THRESHOLD)
def test_an_index_policy_is_its_twin(name: str, kind: type[Falls]) -> None:
    """Indices are found ahead as well; in parts that end anywhere, of which some are too short for it."""
    kwargs: dict[str, Any] = {"instance": THRESHOLD[name], "budget": 10**6}
    envs: Any = gym.make_vec("bandit_envs/Threshold-v0", E, actions="full", copy=False, **kwargs)
    agent, (observation, _), state = kind(envs), envs.reset(seed=0, options={"episode": np.arange(E)}), None
    rules, twins = envs.simulation.rules, list[tuple[Twin, list[float]]]()
    for steps in (5 * AHEAD + 3, 20, 5 * AHEAD, 331):
        _, state = agent.play(envs.simulation, Quiet(np.full(E, 10**6), steps), observation, state)
        for e in range(E):
            if len(twins) == e:
                twins.append((Twin(name, e, rules.low, rules.high), [-math.inf] * 5))
            twin, index = twins[e]
            for _ in range(steps):
                arm = index.index(min(index))
                twin.pull(arm)
                value = math.sqrt(twin.n[arm]) * abs(twin.mean[arm] - 0.5)
                index[arm] = max(value, index[arm]) if kind.running else value
            assert envs.pulls[e].tolist() == twin.n
            assert observation["mean"][e].tolist() == twin.mean
            assert observation["variance"][e].tolist() == twin.variance


class Late(Falls):
    """Arms in turn; no number after 40 pulls of one."""

    name = "late"

    def index(self, T: Any, D: Any) -> Any:
        return np.where(T > 40.0, np.nan, T + 0.0 * D)


def test_only_indices_that_are_reached_count() -> None:
    """Those found ahead may be no numbers where no pull leads."""
    kwargs: dict[str, Any] = {"instance": {"distribution": "gaussian", "mean": [0.5] * 5}, "budget": 10**6}
    envs: Any = gym.make_vec("bandit_envs/Threshold-v0", 1, actions="full", copy=False, **kwargs)
    agent, (observation, _) = Late(envs), envs.reset(seed=0)
    assert agent.plays
    quiet = Quiet(np.array([10**6]), 5 * AHEAD)
    _, state = agent.play(envs.simulation, quiet, observation, None)
    assert (envs.pulls == AHEAD).all()  # and the next 24 are foreseen
    with pytest.raises(ValueError, match="the index of late must be a number, got NaN"):
        agent.play(envs.simulation, quiet, observation, state)


# --- bulk pulls -------------------------------------------------------------------------------------------------------


def twin_gamma(counter: Any, shape: float) -> float:
    """Marsaglia and Tsang's method without its squeeze, which only spares logarithms."""
    boost = 1.0
    if shape < 1.0:
        boost = (rng.next_uniform(counter) + 2.0**-54) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = float(rng.normal_quantile(rng.next_uniform(counter)))
        v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x)
        u = rng.next_uniform(counter) + 2.0**-54
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v
        if v <= 0.0:
            counter[5] -= 16  # that number has not been asked for


@pytest.mark.parametrize("shape", [0.5, 1.0, 1.5, 49.5, 1e4, 1e9])
def test_a_gamma_draw_is_that_without_a_squeeze(shape: float) -> None:
    """So that the spread of bulk pulls of Gaussian arms is what it was; and no number more is drawn for it."""
    one, two = np.zeros(6, np.uint64), np.zeros(6, np.uint64)
    for index in range(200):
        for counter in (one, two):
            rng.open_counter(counter, 1, 2, 3, 4, index)
        np.testing.assert_allclose(rng.gamma(one, shape), twin_gamma(two, shape), rtol=1e-14)
        assert one.tolist() == two.tolist()
