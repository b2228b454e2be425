"""What any policy can reach: by hand, against plain recursion in fractions, and against simulation."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from bounds import best, reached, relaxed
from bounds.answers import answers_of
from bounds.states import Level
from twins import by_fractions

import agents

State = tuple[tuple[int, int], ...]  # (a, b) of each arm: its posterior is Beta(a, b)


def env(problem: str, K: int, budget: int, **kwargs: Any) -> Any:
    return gym.make(f"bandit_envs/{problem}-v0", instance=f"sampler(arms={K})", budget=budget, **kwargs)


def by_brute_force(end: Callable[[State], Fraction], K: int, budget: int) -> Fraction:
    """The least expected loss of any policy under uniform priors, by plain recursion in fractions.

    Args:
        end: what the best answer loses in a state. K: number of arms. budget: pulls.
    """

    @functools.cache
    def value(state: State, left: int) -> Fraction:
        if left == 0:
            return end(state)
        options = []
        for i, (a, b) in enumerate(state):
            others, p = state[:i] + state[i + 1 :], Fraction(a, a + b)
            hit, miss = (tuple(sorted((*others, after))) for after in ((a + 1, b), (a, b + 1)))
            options.append(p * value(hit, left - 1) + (1 - p) * value(miss, left - 1))
        return min(options)

    return value(((1, 1),) * K, budget)


def misclassified(state: State) -> Fraction:
    above = by_fractions(Fraction(1, 2))
    return sum((min(above(a, b), 1 - above(a, b)) for a, b in state), Fraction(0))


def wrong_of_two(state: State) -> Fraction:
    """The probability that the better looking of two arms is not the better one, by the sum over its binomial terms."""
    (a, b), (c, d) = state

    def beta(x: int, y: int) -> Fraction:
        return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))

    first = sum((beta(c + i, b + d) / ((b + i) * beta(1 + i, b) * beta(c, d)) for i in range(a)), Fraction(0))
    return min(first, 1 - first)  # P(second arm > first arm), Beta(a, b) being a sum of binomial terms


def regret_less_ideal(k: int) -> Callable[[State], Fraction]:
    """Minus the mean of the k largest posterior means: the aggregate regret, but for the mean of the best k arms."""
    return lambda state: -sum(sorted(Fraction(a, a + b) for a, b in state)[-k:], Fraction(0)) / k


def test_the_best_policy_by_hand() -> None:
    # Threshold: one pull of one of two arms: its loss falls from 1/2 to 1/4.
    assert best(env("Threshold", 2, 1), loss="misclassified") == pytest.approx(3 / 4)
    assert best(env("Threshold", 2, 2)) == pytest.approx(1 / 4)
    # BestArm: after a one, that arm is the better of two with probability 2/3.
    assert best(env("BestArm", 2, 1), loss="error") == pytest.approx(1 / 3)
    # The better of two has the mean 2/3. After a one, so has the arm; after a zero, the other one has 1/2.
    assert best(env("BestArm", 2, 1), loss="aggregate_regret") == pytest.approx(2 / 3 - (2 / 3 + 1 / 2) / 2)


@pytest.mark.parametrize(("K", "budget"), [(2, 6), (3, 5), (4, 3)])
def test_the_best_policy_for_threshold_is_that_of_brute_force(K: int, budget: int) -> None:
    exact = float(by_brute_force(misclassified, K, budget))
    assert best(env("Threshold", K, budget), loss="misclassified") == pytest.approx(exact, rel=1e-12)
    assert best(env("Threshold", K, budget)) == pytest.approx(exact / K, rel=1e-12)


@pytest.mark.parametrize("budget", [2, 5])
def test_the_best_policy_for_two_arms_is_that_of_brute_force(budget: int) -> None:
    exact = float(by_brute_force(wrong_of_two, 2, budget))
    for loss in ("error", "score", "misidentified"):  # of two arms the answer is the best or the worst
        assert best(env("BestArm", 2, budget), loss=loss) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(("K", "k", "budget"), [(3, 1, 5), (3, 2, 5), (4, 2, 4), (5, 3, 2)])
def test_the_least_regret_is_that_of_brute_force(K: int, k: int, budget: int) -> None:
    ideal = Fraction(
        sum(range(K - k + 1, K + 1)), (K + 1) * k
    )  # the j-th of K uniform numbers has the mean j / (K + 1)
    exact = float(ideal + by_brute_force(regret_less_ideal(k), K, budget))
    assert best(env("TopK", K, budget, k=k), loss="aggregate_regret") == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("loss", ["score", "error", "misidentified"])
def test_expected_losses_are_those_of_drawn_means(loss: str) -> None:
    """40,000 means drawn from the posteriors of one state, all six answers; 5 standard errors: false alarms 3e-6.

    A loss that is wrong by .02 is found out.
    """
    task = env("TopK", 4, 5, k=2).unwrapped.task
    level, problem = Level.of(4, 5, False), task.make_problem()
    block = level.places[2, 0, 2, 1]
    state = level.first[block] + np.ravel_multi_index((2, 0, 1, 1), (3, 1, 3, 2))
    means = np.random.default_rng(0).beta([3, 1, 2, 2], [1, 1, 2, 1], (40_000, 4))
    expected = answers_of(problem, 4, loss, (1.0, 1.0), 5)
    for chosen in ([0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]):
        answers = np.zeros((len(level), 4), bool)
        answers[:, chosen] = True
        verdict = problem.verdict(np.broadcast_to(answers[0], means.shape), means)
        lost = verdict[loss] if loss == "misidentified" else 1.0 - verdict["correct" if loss == "error" else loss]
        assert abs(lost.mean() - expected.of(level, answers)[state]) < 5 * lost.std() / math.sqrt(len(lost))


def test_the_answer_of_least_loss_is_one_of_them() -> None:
    """In each state the best answer loses as much as the best of all answers, in whatever order the arms come."""
    problem = env("TopK", 3, 5, k=2).unwrapped.task.make_problem()
    expected, level, alike = answers_of(problem, 3, "score", (1.0, 1.0), 5), Level.of(3, 5, False), Level.of(3, 5, True)
    losses = []
    for left_out in range(3):
        answers = np.ones((len(level), 3), bool)
        answers[:, left_out] = False
        losses.append(expected.of(level, answers))
    at, _ = level.ordered(alike)
    assert np.min(losses, axis=0) == pytest.approx(expected.least(alike)[at], rel=1e-12)


@pytest.mark.parametrize(
    ("problem", "K", "budget", "kwargs", "loss"),
    [("Threshold", 3, 12, {}, "score"), ("BestArm", 3, 12, {}, "score"), ("TopK", 3, 8, {"k": 2}, "error")],
)
def test_agents_reach_what_they_reach_when_they_are_played(
    problem: str, K: int, budget: int, kwargs: dict[str, Any], loss: str
) -> None:
    """5,000 episodes and 5 standard errors: false alarms 6e-7 each; a loss that is wrong by .05 is found out."""
    made = env(problem, K, budget, **kwargs)
    least = best(made, loss=loss)
    settings = {"instance": f"sampler(arms={K})", "budget": budget, **kwargs}
    result = agents.evaluate(["evolved", "uniform"], problem, episodes=5_000, seed=0, env_kwargs=settings)
    for run in result.runs:
        lost = 1.0 - run.values("correct" if loss == "error" else loss)
        agent = agents.make(run.agent, made)
        exact = reached(agent, loss=loss)
        assert least * (1 - 1e-12) <= reached(agent, loss=loss, best_answer=True) <= exact * (1 + 1e-12)
        assert abs(lost.mean() - exact) < 5 * lost.std() / math.sqrt(lost.size)


@pytest.mark.parametrize(("K", "budget"), [(2, 12), (3, 12)])
def test_the_relaxation_is_a_bound_and_policies_stay_above(K: int, budget: int) -> None:
    made = env("Threshold", K, budget)
    least = best(made, loss="misclassified")
    assert relaxed(K, budget) <= least <= reached(agents.make("lsa", made), loss="misclassified")
    assert least <= reached(agents.make("dp-index", made), loss="misclassified") < 1.03 * least


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="bounds are for Threshold without tolerance"):
        best(gym.make("bandit_envs/AllGood-v0", instance="sampler(arms=3)", budget=4))
    with pytest.raises(ValueError, match="loss must be one of score, error, aggregate_regret"):
        best(env("BestArm", 2, 4), loss="regret")
    with pytest.raises(ValueError, match="bounds need a budget and scalar Bernoulli arms"):
        best(
            gym.make("bandit_envs/BestArm-v0", instance={"sampler": {"arms": 2, "distribution": "gaussian"}}, budget=4)
        )
    with pytest.raises(ValueError, match="too many to look at"):
        best(env("Threshold", 8, 100))
    with pytest.raises(ValueError, match="whole numbers"):
        best(env("BestArm", 2, 4), prior=(0.5, 0.5))
