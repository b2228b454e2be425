"""An evidence routine of one's own, as in docs/own-problem.md: by brute force, and what it promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from refusals import refused
from scipy import stats

import agents
from agents.core import ALL_PROBLEMS
from agents.session.setup import suggested, task_from_facts
from bandit_envs import SetProblem
from bandit_envs.kernels import carray
from bandit_envs.stopping import Certifier, own_numbers, pair_alternative, report_pair

CONTROL, SHARE = 0, 1


def nearest(
    pulls: Any, mean: Any, variance: Any, inside: Any, K: Any, numbers: Any, size: Any, scratch: Any, out: Any
) -> None:
    told, T, m, v = carray(numbers, size), carray(pulls, K), carray(mean, K), carray(variance, K)
    answer, found, own = carray(inside, K), carray(out, 2 + 3 * K), own_numbers(told)
    if answer[0] < 0:
        for i in range(K):
            answer[i] = T[i] > 0 and T[CONTROL] > 0 and m[i] >= m[CONTROL]
    least, first, second = math.inf, 0, 0
    for i in range(K):
        if i != CONTROL:
            low, high = (i, CONTROL) if answer[i] else (CONTROL, i)
            value = pair_alternative(told, T, m, v, low, high, 1.0, -own[0])
            if value < least:
                least, first, second = value, low, high
    report_pair(told, T, m, v, first, second, 1.0, -own[0], least, (K - 1.0) * own[SHARE], found)


class AtLeastControl(SetProblem):
    """All arms that are no worse than arm 0; `share` is a factor of the number of alternatives that is paid for."""

    name, asks = "AtLeastControl", "an example"
    parameters = {"tolerance": "Of the answer.", "share": "Of the number of alternatives."}

    def __init__(self, tolerance: float = 0.05, share: float = 1.0) -> None:
        self.tolerance, self.share = float(tolerance), float(share)

    def margin(self, means: Any) -> Any:
        means = np.asarray(means, np.float64)
        return means - means[..., CONTROL, None]

    def evidence_routine(self, K: int, numbers: Any, search: str) -> Certifier:
        return Certifier.of(nearest, K, numbers, self.tolerance, self.share)


class Plain(AtLeastControl):
    name, evidence_routine = "Plain", SetProblem.evidence_routine


class FarGood(Plain):
    name, local = "FarGood", True


def test_what_is_missing_is_named_and_the_default_agent_certifies() -> None:
    """Defect: "it needs evidence_routine", which it has; and `uniform`, which never stops, was the default."""
    for kind, told, name in (
        (AtLeastControl, "its evidence_routine counts on 'gaussian'", "uniform(stop='certificate')"),
        (Plain, "it needs an evidence_routine", "uniform"),
        (FarGood, "it needs a distance_routine or an evidence_routine", None),
    ):
        with pytest.raises(ValueError, match=f"no evidence for distribution='bounded'.*: {told}"):
            kind().certifier(3, distribution="bounded")
        facts = {"problem": f"{__name__}:{kind.__name__}", "arms": 3, "range": (0, 10), "delta": 0.1}
        assert name in (None, suggested(task_from_facts(facts)[0]))


def divergence(distribution: str, m: Any, mu: Any, v: float) -> Any:
    if distribution == "gaussian":
        return (m - mu) ** 2 / (2 * v)
    if distribution == "student":
        return 0.5 * np.log1p((m - mu) ** 2 / v)
    with np.errstate(divide="ignore", invalid="ignore"):
        return m * np.log(m / mu) + (1 - m) * np.log((1 - m) / (1 - mu))


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli", "student"])
def test_the_evidence_is_that_of_brute_force(distribution: str) -> None:
    """Over a grid of the control's mean; the other arm then moves to the edge, or stays."""
    random, problem, y = np.random.default_rng(1), AtLeastControl(), np.linspace(0.0505, 0.9495, 50_001)
    for _ in range(8):
        pulls, mean, v = random.integers(1, 60, 4), random.uniform(0.1, 0.9, 4), random.uniform(0.05, 0.25, 4)
        scale = v if distribution == "student" else np.full(4, 0.49)
        answer = random.integers(0, 2, 4).astype(bool)
        wanted = math.inf
        for i in range(1, 4):
            edge = y - 0.05 if answer[i] else y + 0.05
            x = np.minimum(mean[i], edge) if answer[i] else np.maximum(mean[i], edge)
            moved = ((0, y), (i, x))
            cost = sum(pulls[n] * divergence(distribution, mean[n], at, scale[n]) for n, at in moved)
            wanted = min(wanted, float(cost.min()))
        found = problem.evidence(pulls, mean, answer, distribution=distribution, sigma=0.7, variance=v)
        assert found == pytest.approx(max(wanted, 0.0), rel=1e-6, abs=1e-6)


def test_the_certificate_pays_for_each_alternative() -> None:
    pulls, mean = np.array([900, 900, 900]), np.array([0.5, 0.2, 0.9])
    levels = [
        AtLeastControl(share=share).certified_level(pulls, mean, distribution="bernoulli", boundary=boundary)
        for boundary in ("mixture", "kaufmann-koolen")
        for share in (1.0, 10.0)
    ]
    assert all(0 < level < 1e-3 for level in levels)
    assert levels[1] == pytest.approx(10 * levels[0])
    assert levels[3] == pytest.approx(10 * levels[2])


def test_the_plug_in_answer_is_filled_in_and_the_arm_that_is_lacking_comes_first() -> None:
    problem = AtLeastControl()
    certifier = problem.certifier(3, sigma=0.5)
    inside = np.full((2, 3), -1, np.int8)
    pulls, mean = np.array([[50, 9, 80], [9, 50, 80]]), np.array([[0.5, 0.4, 0.9], [0.5, 0.4, 0.9]])
    out = certifier.alternatives(pulls, mean, np.zeros((2, 3)), inside)
    assert inside.tolist() == [[1, 0, 1]] * 2
    assert out[:, 1].tolist() == [2, 2]
    assert out[:, 2:4].tolist() == [[1, 0], [0, 1]]
    moved = out[:, 8:10]  # beside one another, but for the tolerance: arm 1 is raised, the control lowered
    assert moved[0, 0] - moved[0, 1] == pytest.approx(0.05)
    assert moved[1, 1] - moved[1, 0] == pytest.approx(0.05)


def test_the_best_proportions_are_not_known() -> None:
    """Defect: a KeyError where the name of the routine was looked up among this package's."""
    problem = AtLeastControl()
    assert math.isnan(problem.lower_bound([0.5, 0.2, 0.9], 0.1))
    for ask in (problem.characteristic_time, problem.optimal_proportions):
        with refused("AtLeastControl", "characteristic"):
            ask([0.5, 0.2, 0.9])

    class Timed(AtLeastControl):
        name = "Timed"

        def characteristic_time(self, means: Any, *, distribution: str = "gaussian", sigma: float = 1.0) -> float:
            return 100.0

    assert Timed().lower_bound([0.5, 0.2, 0.9], 0.1) == pytest.approx(100 * 0.8 * math.log(9))


def test_a_routine_that_cannot_be_compiled_is_named() -> None:
    """Defect: where results have the level of a certificate beside them, pages of Numba's own words."""

    def odd(pulls, mean, variance, inside, K, numbers, size, scratch, out):
        carray(out, 2)[0] = carray(mean, K)["x"]

    class Odd(AtLeastControl):
        name = "Odd"

        def evidence_routine(self, K: int, numbers: Any, search: str) -> Certifier:
            return Certifier.of(odd, K, numbers)

    with refused("odd", "Numba", "line"):
        Odd().evidence([1, 2], [0.1, 0.2])


class Lacking(agents.Agent):
    """Stop at once: the certificate then chooses the arms."""

    name, source, solves = "lacking", "an example", ALL_PROBLEMS

    def choose(self, observation: Any, state: Any) -> Any:
        return np.full(len(observation["pulls"]), self.task.stop)


def played(agent: Any, episodes: int, **parameters: Any) -> Any:
    instance = {"distribution": "bernoulli", "mean": [0.5, 0.35, 0.65, 0.5, 0.44]}
    kwargs = {"instance": instance, "delta": 0.1, "tolerance": 0.05, "max_pulls": 10**6, **parameters}
    problem = f"{__name__}:AtLeastControl"
    return agents.evaluate(agent, problem, episodes=episodes, env_kwargs=kwargs, progress=False).episodes


def lacking(task: Any) -> Any:
    return agents.make(Lacking, task, stop="certificate")


def test_answers_are_wrong_with_probability_delta_at_most() -> None:
    for agent in ("uniform(stop='certificate')", lacking):
        rows = played(agent, 60)
        assert not rows["truncated"].any()
        assert (~rows["correct"]).sum() <= stats.binom.isf(1e-6, 60, 0.1)
    assert (~played(lacking, 60, share=1e-6)["correct"]).sum() > stats.binom.isf(1e-6, 60, 0.1)  # it can fail


def test_what_the_certificate_lacks_takes_fewer_pulls_than_uniform_sampling() -> None:
    """Defect: of a pair the first arm was pulled again and again, whichever had more pulls."""
    lacked, uniform = played(lacking, 30), played("uniform(stop='certificate')", 30)
    assert lacked["total_pulls"].mean() < 0.7 * uniform["total_pulls"].mean()
