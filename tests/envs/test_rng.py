"""Random numbers: known answers, an independent twin, the distributions drawn, and independence along each coordinate.

Statistical tests fail a right generator with probability at most LEVEL in all (Bonferroni over the file's tests), were
their seeds new; the seeds are fixed, so that the outcome is the same in every run.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from randomness import (
    AXES,
    COUNTS,
    LEVEL,
    TIMES,
    WORD,
    N,
    binomial_fit,
    bulk,
    gaussian_fits,
    lattice,
    not_independent,
    not_uniform,
    twin,
)
from rollouts import simulator
from scipy import stats

from bandit_envs import Bernoulli, Gaussian, Uniform
from bandit_envs.kernels import rng
from bandit_envs.simulation.simulator import Simulator


def twin_uniform(root: int, episode: int, arm: int, index: int, stream: int, draw: int = 0) -> float:
    """The draw-th number of an arm's pull, from the counter's layout and whole-number arithmetic."""
    key = np.random.SeedSequence(root).generate_state(2).tolist()
    words = twin((index & WORD, arm | index >> 32 << 24, episode, stream | draw // 2 << 4), key)
    high, low = words[2 * (draw % 2) :][:2]
    return ((high >> 5) * 2**26 + (low >> 6)) / 2**53


def ours(counter: Any, key: Any) -> list[int]:
    return [int(word) for word in rng.philox(*map(np.uint64, counter), *map(np.uint64, key))]


# --- the generator ----------------------------------------------------------------------------------------------------

KNOWN = [  # Random123, kat_vectors, philox4x32 10
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_known_answers(counter: str, key: str, words: str) -> None:
    numbers, k, expected = ([int(word, 16) for word in text.split()] for text in (counter, key, words))
    assert ours(numbers, k) == expected
    assert list(twin(numbers, k)) == expected


words32 = st.integers(0, WORD)


@given(st.tuples(*[words32] * 4), st.tuples(words32, words32))
@settings(deadline=None)
def test_philox_is_its_twin(counter: tuple[int, ...], key: tuple[int, ...]) -> None:
    assert ours(counter, key) == list(twin(counter, key))


@given(
    st.integers(0, 2**130), st.integers(0, 2**32 - 1), st.integers(0, 2**40 - 1), st.integers(0, 5), st.integers(0, 9)
)
@settings(deadline=None)
def test_uniforms_are_those_of_the_twin(root: int, episode: int, index: int, stream: int, draw: int) -> None:
    key, where = rng.root_key(root)[:, None], np.array([episode], np.uint64)
    u = rng.uniforms(key, where, 4, draw + 1, stream=stream, index=np.array([index], np.uint64))
    for arm in range(4):
        assert u[0, arm, draw] == twin_uniform(root, episode, arm, index, stream, draw)


@pytest.mark.parametrize("D", [1, 5])
@pytest.mark.parametrize("index", [0, 1, 2**32 - 1, 2**32, 2**39 + 7])
def test_a_pull_is_its_uniform_number(index: int, D: int) -> None:
    sim = simulator(Uniform(np.full((3, D), 0.5)), episodes=70, root=5)  # samples are the uniform numbers themselves
    sim.pulls[:] = index
    for arm in (0, 2):
        sim.advance(np.full(70, arm), np.ones(70, np.int64))
        for e in (0, 63, 64, 69):
            expected = [twin_uniform(5, e, arm, index, rng.SAMPLE, d) for d in range(D)]
            assert np.atleast_1d(sim.sample[e]).tolist() == expected


# --- no two purposes share a number -----------------------------------------------------------------------------------


def test_indices_above_2_to_the_32_are_new() -> None:
    """256 high bytes x 64 arms x 4 low words: 65 536 numbers of 53 bits, all different but with probability 2.4e-7."""
    index = (np.arange(256, dtype=np.uint64)[:, None] * 2**32 + np.array([0, 1, 2**24, WORD], np.uint64)).reshape(-1)
    key = np.repeat(rng.root_key(3)[:, None], len(index), axis=1)
    u = rng.uniforms(key, np.zeros(len(index), np.uint64), 64, stream=rng.SAMPLE, index=index)
    assert len(np.unique(u)) == u.size


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**130), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_public_seeds_are_those_of_the_twin(salt: int, root: int, episode: int) -> None:
    sim = Simulator(Bernoulli([0.1, 0.2]), 1, budget=None, max_pulls=None, full=True, pull_cost=0.0, salt=salt)
    sim.begin(np.zeros(1, np.int64), rng.root_key(root)[:, None], np.array([episode], np.uint64))
    high, low, _, _ = twin((salt & WORD, salt >> 32, episode, rng.PUBLIC), rng.root_key(root).tolist())
    assert sim.public_seed.item() == (high << 32 | low) >> 1


def test_agents_draw_from_a_stream_of_their_own() -> None:
    seeds = np.array([5, 6, 2**62], np.int64)
    first = rng.agent_uniforms(seeds, np.zeros(3, np.int64), 4, seed=1)
    assert first.shape == (3, 4)
    again = rng.agent_uniforms(seeds[1:2], np.zeros(1, np.int64), 4, seed=1)
    assert again.tolist() == first[1:2].tolist()  # a function of (public seed, seed, draw): not of the batch
    others = [rng.agent_uniforms(seeds, np.full(3, t), 4, seed=s) for t, s in ((0, 1), (1, 1), (0, 2), (2**32, 1))]
    assert len(np.unique(others)) == 4 * first.size


# --- uniform and independent ------------------------------------------------------------------------------------------


def test_uniform_and_independent_along_every_coordinate() -> None:
    u = lattice()
    assert not_uniform(u) == []
    assert not_independent(u) == []


def test_the_tests_of_independence_have_teeth() -> None:
    full = lattice(10)
    assert (full == lattice()).all()
    weak = lattice(2)  # two rounds mix too little: seen along every coordinate but the root, whose words are hashed
    assert {name.split()[0] for name in not_independent(weak)} >= {"episode", "arm", "index", "stream"}
    for axis, name in enumerate(AXES):  # one value of a coordinate that repeats its neighbour
        twice = full.copy()
        twice[(slice(None),) * axis + (1,)] = full.take(2, axis)
        assert not_independent(twice) == [f"{name} + 1"]
    assert not_uniform(full**1.2)


# --- distributions
# -------------------------------------------------------------------------------------------------------------


def test_normal_quantile() -> None:
    """Against SciPy's at u + 2^-54, taken in the lower tail where that sum is exact."""
    powers, least = 2.0 ** -np.arange(1, 54), 2.0**-53
    ends = [0.0, 0.075, 0.925], np.arange(9) * least, 0.5 + np.arange(-4, 5) * least
    u = np.concatenate([np.arange(1, 2**12) / 2**12, powers, 1 - powers, *ends])
    tail = np.where(u < 0.5, u + 2.0**-54, (1 - u) - 2.0**-54)
    expected = np.where(u < 0.5, 1, -1) * stats.norm.ppf(tail)
    np.testing.assert_allclose(rng.normal_quantiles(u), expected, rtol=4e-15, atol=3e-16)
    assert rng.normal_quantiles(np.array([[0.5, 0.25]])).shape == (1, 2)
    assert np.abs(rng.normal_quantiles(np.array([0.0, 1 - 2.0**-53]))).max() < 8.3  # the ends are finite


@pytest.mark.parametrize(("n", "p"), COUNTS)
def test_binomial(n: int, p: float) -> None:
    hits, _ = bulk(Bernoulli([p, 0.5]), n)
    assert hits.min() >= 0
    assert hits.max() <= n
    assert (hits == np.rint(hits)).all()
    assert binomial_fit(hits, n, p) >= LEVEL / len(COUNTS)


@pytest.mark.parametrize(("n", "p", "wrong"), [(1000, 0.5, 0.501), (30, 0.3, 0.306), (10**6, 0.3, 0.30003)])
def test_the_binomial_test_has_teeth(n: int, p: float, wrong: float) -> None:
    generator = np.random.default_rng(1)
    limit = LEVEL / len(COUNTS)
    assert binomial_fit(generator.binomial(n, p, N).astype(float), n, p) >= limit
    assert binomial_fit(generator.binomial(n, wrong, N).astype(float), n, p) < limit
    rounded_normal = np.rint(generator.normal(n * p, np.sqrt(n * p * (1 - p)), N))
    assert binomial_fit(rounded_normal.clip(0, n), n, p) < limit or n > 100  # an approximation is seen at n = 30


@pytest.mark.parametrize("n", TIMES)
def test_gaussian_sums_and_gamma_spreads(n: int) -> None:
    assert min(gaussian_fits(*bulk(Gaussian([0.7, 0.0], 2.0), n), n)) >= LEVEL / (4 * len(TIMES))


def test_the_gaussian_tests_have_teeth() -> None:
    limit = LEVEL / (4 * len(TIMES))
    total, variance = bulk(Gaussian([0.7, 0.0], 2.0), 10)
    assert gaussian_fits(total * 1.03, variance, 10)[0] < limit
    assert gaussian_fits(total, variance * 10 / 9, 10)[1] < limit  # the other divisor
    assert gaussian_fits(total, variance + 0.05 * total, 10)[2] < limit
    assert gaussian_fits(total, variance + 0.05 * np.abs(total - 7), 10)[3] < limit


def test_the_variance_of_a_bulk_pull_does_not_cancel() -> None:
    """Values far from the first one, which has no mass: around it the spread of the others is lost in rounding."""
    distribution = {"distribution": "categorical", "values": [0, 1e8, 1e8 + 1], "probabilities": [[0, 1, 1], [0, 1, 3]]}
    env: Any = gym.make("bandit_envs/Threshold-v0", instance=distribution, threshold=1e8, budget=10**7, actions="full")
    env.reset(seed=0)
    for arm in (0, 1):
        action = {"arm": arm, "times": 10**6, "answer": np.zeros(2, np.int8)}
        observation, *_ = env.step(action)
        ones = observation["mean"][arm] - 1e8
        assert observation["variance"][arm] == pytest.approx(ones * (1 - ones), rel=1e-6)


def test_root_seeds_of_any_size() -> None:
    assert rng.root_key(np.int64(7)).tolist() == rng.root_key(7).tolist()
    assert len({tuple(rng.root_key(seed).tolist()) for seed in (0, 1, 2**32, 2**32 + 1, 2**64, 2**130)}) == 6


def test_two_roots_share_no_episode() -> None:
    """3000 roots, 20 episodes each: 60 000 words of 63 bits, two equal with probability 60 000^2 / 2^64 = 2e-10."""
    roots = [*range(2000), *(2**32 + i for i in range(500)), *(2**64 + i for i in range(500))]
    keys = np.stack([rng.root_key(root) for root in roots], axis=1)
    assert len(np.unique(keys, axis=1).T) == len(roots)
    episodes, E = 20, len(roots)
    seeds = set()
    for e in range(episodes):
        sim = Simulator(Bernoulli([0.1, 0.2]), E, budget=None, max_pulls=None, full=True, pull_cost=0.0)
        sim.begin(np.arange(E), keys, np.full(E, e, np.uint64))
        seeds.update(sim.public_seed[:, 0].tolist())
    assert len(seeds) == episodes * E
