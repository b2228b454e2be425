"""The simulator against a literal twin: a list of samples per arm, and the documented rules of an episode."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from rollouts import simulator
from simulation import ALONE, RULES, check_neighbours, check_twin

from bandit_envs import Arms, Bernoulli, Gaussian
from bandit_envs.simulation.simulator import MOST_TIMES, SKIPPED

# With all rules single pulls or bulk pulls, of arms of one dimension or three, by turns; one batch beyond 64 episodes.
CELLS = [(rules, bulk, 1 + 2 * ((i + bulk) % 2), 9, 50) for i, rules in enumerate(RULES) for bulk in (False, True)]


@pytest.mark.parametrize(("rules", "bulk", "D", "E", "steps"), [*CELLS, ("no limit", True, 1, 70, 20)])
def test_the_twin_sees_the_same(rules: str, bulk: bool, D: int, E: int, steps: int) -> None:
    check_twin(rules, bulk, D, E, steps)


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


@pytest.mark.parametrize("distribution", ALONE)
def test_an_episode_does_not_depend_on_its_neighbours(distribution: Arms) -> None:
    check_neighbours(distribution, 40)


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
