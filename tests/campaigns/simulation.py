"""The simulator against a literal twin: a list of samples per arm, and the documented rules of an episode.

PYTHONPATH=tests/support python tests/campaigns/simulation.py     2000 steps of every cell; the default tests have 50
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from rollouts import simulator

from bandit_envs import Arms, Bernoulli, Gaussian, Uniform
from bandit_envs.kernels import rng
from bandit_envs.simulation.simulator import ENDED, LIVE, PULLED, SKIPPED, SPENT, STOPPED

ROOT = 11


ALONE: list[Arms] = [Bernoulli([0.2, 0.5, 0.7]), Gaussian([[0.0, 1.0, 2.0]] * 3)]


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


def check_twin(rules: str, bulk: bool, D: int, E: int, steps: int) -> None:
    """The twin of each of `E` episodes with arms of `D` dimensions, pulled singly or in bulk, sees the same."""
    own, K = RULES[rules], 4
    low = np.arange(K * D, dtype=float).reshape(K, D)
    distribution = Uniform(low + 0.5 if D > 1 else low[:, 0] + 0.5)
    sim = simulator(
        distribution, E, ROOT, **{name: own[name] for name in ("budget", "max_pulls", "full")}, pull_cost=own["cost"]
    )
    twins = [Twin(e, low, **own) for e in range(E)]
    generator = np.random.default_rng(3)
    for _ in range(steps):
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


def check_neighbours(distribution: Arms, steps: int) -> None:
    """Batches of 1, 63, 64, 65 and 200 hold the same episodes, at any place."""
    generator = np.random.default_rng(4)
    arms = generator.integers(0, 3, (steps, 200))
    times = np.where(generator.random((steps, 200)) < 0.2, 7, 1)
    whole = simulator(distribution, 200)
    for t in range(steps):
        whole.advance(arms[t], times[t])
    for first, E in ((0, 1), (150, 1), (1, 63), (0, 64), (70, 65)):
        part = simulator(distribution, E, first=first)
        for t in range(steps):
            part.advance(arms[t, first : first + E].copy(), times[t, first : first + E].copy())
        for name in ("pulls", "total", "mean", "variance", "public_seed"):
            assert (getattr(part, name) == getattr(whole, name)[first : first + E]).all()


def main() -> None:
    for distribution in ALONE:
        check_neighbours(distribution, 1000)
    for rules, bulk, D, E in itertools.product(RULES, (False, True), (1, 3), (9, 70)):
        check_twin(rules, bulk, D, E, 2000)


if __name__ == "__main__":
    main()
