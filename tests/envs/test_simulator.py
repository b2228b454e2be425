"""The simulator against a literal twin: a list of samples per arm, and the documented rules of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusals import refused
from rollouts import simulator

from bandit_envs import Arms, Bernoulli, Gaussian, Uniform
from bandit_envs.kernels import rng
from bandit_envs.simulation.simulator import ENDED, LIVE, MOST_TIMES, PULLED, SKIPPED, SPENT, STOPPED

ROOT = 11


class Twin:
    """One episode of uniform arms of width 1, whose m-th sample of arm a is low_a + u(a, m): kept as lists."""

    def __init__(
        self, episode: int, low: Any, budget: int | None, max_pulls: int | None, full: bool, cost: float
    ) -> None:
        self.episode, self.low, self.K, self.D = episode, low, *low.shape
        self.budget, self.max_pulls, self.full, self.cost = budget, max_pulls, full, cost
        self.samples: list[list[Any]] = [[] for _ in range(self.K)]
        self.status = LIVE
        self.terminated = self.truncated = False

    @property
    def spent(self) -> int:
        return sum(map(len, self.samples))

    def sample(self, arm: int) -> Any:
        key, m = rng.root_key(ROOT)[:, None], np.array([len(self.samples[arm])], np.uint64)
        u = rng.uniforms(key, np.array([self.episode], np.uint64), self.K, self.D, stream=rng.SAMPLE, index=m)
        return self.low[arm] + u[0, arm]

    def step(self, arm: int, times: int) -> tuple[int, float, Any]:
        """What the episode did, its reward before any score, and the average that was seen."""
        if self.status == ENDED:
            return SKIPPED, 0.0, 0.0
        if self.status == SPENT or arm == self.K:
            self.status, self.terminated = ENDED, True
            return STOPPED, 0.0, 0.0
        for limit in (self.budget, self.max_pulls):
            if limit is not None:
                times = min(times, limit - self.spent)
        new = []
        for _ in range(times):
            new.append(self.sample(arm))
            self.samples[arm].append(new[-1])
        if self.spent == self.budget:
            self.status, self.terminated = (SPENT, False) if self.full else (ENDED, True)
        elif self.spent == self.max_pulls:
            self.status, self.truncated = ENDED, True
        return PULLED, -self.cost * times, sum(new) / times

    def statistics(self) -> tuple[Any, ...]:
        """Pulls (K,), and total, mean and variance (divisor N), (K, D) each; 0 where never pulled."""
        seen = [np.array(one).reshape(-1, self.D) for one in self.samples]
        table = [[x.sum(0), x.mean(0), x.var(0)] if len(x) else [np.zeros(self.D)] * 3 for x in seen]
        return np.array([len(x) for x in seen]), *np.array(table).transpose(1, 0, 2)


RULES = {
    "arm, budget": {"budget": 40, "max_pulls": None, "full": False, "cost": 0.0},
    "full, budget": {"budget": 40, "max_pulls": None, "full": True, "cost": 0.25},
    "arm, cap": {"budget": None, "max_pulls": 25, "full": False, "cost": 0.5},
    "full, cap below the budget": {"budget": 40, "max_pulls": 25, "full": True, "cost": 0.0},
    "full, cap equal to the budget": {"budget": 25, "max_pulls": 25, "full": True, "cost": 0.0},
    "no limit": {"budget": None, "max_pulls": None, "full": True, "cost": 0.0},
}


# With all rules single pulls or bulk pulls, of arms of one dimension or three, by turns; one batch beyond 64 episodes.
CELLS = [(rules, bulk, 1 + 2 * ((i + bulk) % 2)) for i, rules in enumerate(RULES) for bulk in (False, True)]


@pytest.mark.parametrize(("rules", "bulk", "D", "E"), [*((*cell, 9) for cell in CELLS), ("no limit", True, 1, 70)])
def test_the_twin_sees_the_same(rules: str, bulk: bool, D: int, E: int) -> None:
    own, K = RULES[rules], 4
    low = np.arange(K * D, dtype=float).reshape(K, D)
    distribution = Uniform(low + 0.5 if D > 1 else low[:, 0] + 0.5)
    sim = simulator(
        distribution, E, ROOT, **{name: own[name] for name in ("budget", "max_pulls", "full")}, pull_cost=own["cost"]
    )
    twins = [Twin(e, low, **own) for e in range(E)]
    generator = np.random.default_rng(3)
    for _ in range(20 if E > 64 else 50):
        arms = np.where(generator.random(E) < 0.02, K, generator.integers(0, K, E))
        times = generator.integers(1, 9, E) if bulk else np.ones(E, np.int64)
        before = np.array([twin.status for twin in twins])
        ended = sim.advance(arms, times)
        for e, twin in enumerate(twins):
            did, reward, sample = twin.step(int(arms[e]), int(times[e]))
            assert sim.did[e] == did
            assert sim.reward[e] == reward
            np.testing.assert_allclose(sim.sample[e], np.zeros(D) + sample if D > 1 else sample, rtol=1e-14, atol=0)
        status = np.array([twin.status for twin in twins])
        assert (sim.status == status).all()
        assert sorted(sim.ended[:ended]) == np.flatnonzero((before != ENDED) & (status == ENDED)).tolist()
    for e, twin in enumerate(twins):
        assert (sim.terminated[e], sim.truncated[e], sim.spent[e]) == (twin.terminated, twin.truncated, twin.spent)
        assert sim.remaining[e, 0] == (-1 if twin.budget is None else twin.budget - twin.spent)
        pulls, *sums = twin.statistics()
        assert (sim.pulls[e] == pulls).all()
        for ours, theirs in zip((sim.total, sim.mean, sim.variance), sums, strict=True):
            np.testing.assert_allclose(ours[e].reshape(K, D), theirs, rtol=1e-11, atol=1e-13)


def test_a_mean_is_the_rounded_quotient_of_the_rounded_sum() -> None:
    """Then equal histories give equal means, and ties are ties."""
    sim = simulator(Gaussian([0.1, 0.1], 3.0), 50)
    totals, n = np.zeros(50), 0
    for n in range(1, 200):
        sim.advance(np.zeros(50, np.int64), np.ones(50, np.int64))
        totals += sim.sample
        assert (sim.total[:, 0] == totals).all()
        assert (sim.mean[:, 0] == totals / n).all()
    assert (sim.mean[:, 1] == 0).all()  # never pulled
    assert (sim.variance[:, 1] == 0).all()


def test_the_variance_survives_a_large_mean() -> None:
    """1000 pulls around 10^8 with standard deviation 1: a sum of squares would have lost every digit."""
    sim, plain = simulator(Gaussian([1e8, 0.0], 1.0), 20), simulator(Gaussian([0.0, 0.0], 1.0), 20)
    for _ in range(1000):
        for one in (sim, plain):
            one.advance(np.zeros(20, np.int64), np.ones(20, np.int64))
    np.testing.assert_allclose(sim.variance[:, 0], plain.variance[:, 0], rtol=1e-6)
    for one in (sim, plain):
        one.advance(np.zeros(20, np.int64), np.full(20, 5000))
    np.testing.assert_allclose(sim.variance[:, 0], plain.variance[:, 0], rtol=1e-6)


@pytest.mark.parametrize("distribution", [Bernoulli([0.2, 0.5, 0.7]), Gaussian([[0.0, 1.0, 2.0]] * 3)])
def test_an_episode_does_not_depend_on_its_neighbours(distribution: Arms) -> None:
    """Batches of 1, 63, 64, 65 and 200 hold the same episodes, at any place."""
    generator = np.random.default_rng(4)
    arms = generator.integers(0, 3, (40, 200))
    times = np.where(generator.random((40, 200)) < 0.2, 7, 1)
    whole = simulator(distribution, 200)
    for t in range(40):
        whole.advance(arms[t], times[t])
    for first, E in ((0, 1), (150, 1), (1, 63), (0, 64), (70, 65)):
        part = simulator(distribution, E, first=first)
        for t in range(40):
            part.advance(arms[t, first : first + E].copy(), times[t, first : first + E].copy())
        for name in ("pulls", "total", "mean", "variance", "public_seed"):
            assert (getattr(part, name) == getattr(whole, name)[first : first + E]).all()


BAD = [(-1, 1, -1), (4, 1, 4), (2**62, 1, 2**62), (0, 0, 0), (1, -5, -5), (2, MOST_TIMES + 1, MOST_TIMES + 1)]


@pytest.mark.parametrize(("arm", "times", "told"), BAD)
def test_a_bad_action_touches_no_episode(arm: int, times: int, told: int) -> None:
    E = 80
    sim = simulator(Bernoulli([0.2, 0.5, 0.7]), E, budget=50)
    sim.advance(np.zeros(E, np.int64), np.full(E, 3))
    before = [array.copy() for array in sim.state()]
    arms, counts = np.ones(E, np.int64), np.ones(E, np.int64)
    arms[77], counts[77] = arm, times
    with refused(told, 77):
        sim.advance(arms, counts)
    assert all((old == new).all() for old, new in zip(before, sim.state(), strict=True))
    stop = np.full(E, 1)
    stop[77] = 3
    sim.advance(stop, np.ones(E, np.int64))
    sim.advance(arms, counts)  # the slot has ended: its actions are ignored
    assert sim.did[77] == SKIPPED
    assert sim.spent[76] == 5
