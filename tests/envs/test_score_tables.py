"""Tables of scores drawn afresh: the same whatever the batch, with the statistics that are stated, in all forms."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import table
from score_tables import DATA, STATED, check_log_normal, check_normal, check_right_and_wrong, draw, measured

from bandit_envs import ScoreTables, Shared
from bandit_envs.instances import lookup

BEST = "bandit_envs/BestArm-v0"


@pytest.mark.parametrize("marks", [False, True])
def test_a_draw_depends_on_key_and_episode_alone(marks: bool) -> None:
    sampler = ScoreTables(7, 33, marks)
    means, parameters = draw(sampler, range(9))
    for some in ([4], [8, 0, 4], [3, 3]):
        again = draw(sampler, some)
        assert np.array_equal(again[0], means[some])
        assert np.array_equal(again[1], parameters[some])
    assert not np.array_equal(draw(sampler, [4], seed=2)[1], parameters[4:5])
    assert not np.array_equal(parameters[0], parameters[1])


@pytest.mark.parametrize("marks", [False, True])
def test_shapes_and_means(marks: bool) -> None:
    """Arms made of the columns that were drawn have the same parameters, means included."""
    sampler = ScoreTables(4, 50, marks)
    means, parameters = draw(sampler, range(5))
    assert means.shape == (5, 4)
    assert parameters.shape == (5, 4, 51)
    scores = parameters[..., :-1]
    assert np.isin(scores, (0, 1)).all() != marks
    assert ((scores >= 0) & (scores <= 1)).all()
    for e in range(5):
        arms = Shared(scores[e].T, (0, 1))
        assert np.array_equal(arms.parameters, parameters[e])
        assert np.array_equal(arms.means, means[e])
    assert sampler.arms.items == 50
    assert sampler.arms.parameters.shape == (4, 51)
    assert sampler.arms.support == (0.0, 1.0)
    assert sampler.positive == marks


@pytest.mark.parametrize("check", [check_normal, check_log_normal, check_right_and_wrong])
def test_what_is_drawn_has_its_distribution(check: Any) -> None:
    check()


@pytest.mark.parametrize("marks", [False, True])
def test_statistics_of_the_defaults(marks: bool) -> None:
    """Means of 20 tables lie within 6 standard errors of those stated, which are means of 40: a false alarm in 1e-7.

    The standard error of the difference is sd sqrt(1 / 20 + 1 / 40). Abilities of half the spread break this limit.
    """
    stated, sd = (np.array(part) for part in STATED[marks])
    limit = 6 * sd * np.sqrt(1 / 20 + 1 / 40) + 0.0005  # and what the docstring rounds off

    def off(sampler: ScoreTables) -> Any:
        return np.abs(measured(sampler, 20).mean(axis=0) - stated) > limit

    sampler = ScoreTables(58, 805, marks)
    assert not off(sampler).any()
    half = {"spread": sampler.ability_spread / 2}
    assert off(ScoreTables(58, 805, marks, **half)).any()
    assert (np.abs(np.array(DATA[marks]) - stated) < sd).all()  # no further from the data than tables from each other


def test_in_environments() -> None:
    """One table in single and vector environments; all rows of it bring out the means; 0/1 by name, marks by dict."""
    env: Any = gym.make(BEST, instance="score-tables(K=3, N=20)", budget=60).unwrapped
    envs: Any = gym.make_vec(BEST, 2, instance={"score-tables": {"K": 3, "N": 20}}, budget=60).unwrapped
    env.reset(seed=5)
    seen, _ = envs.reset(seed=5)
    assert seen["scores"].shape == (2, 3, 20)
    for t in range(59):
        one, *_ = env.step(t % 3)
        many, *_ = envs.step(np.full(2, t % 3))
    assert np.array_equal(one["scores"], many["scores"][0])
    means, parameters = draw(ScoreTables(3, 20), [0], seed=5)
    assert np.array_equal(np.sort(one["scores"][0]), np.sort(parameters[0, 0, :-1]))
    assert one["mean"][:2] == pytest.approx(means[0, :2])


def made(**parameters: Any) -> Any:
    return lambda: lookup.find({"score-tables": parameters})


test_bad_calls = table(
    {
        "one candidate": (made(K=1), "K", 1),
        "marks": (made(marks=2), "marks", 2),
        "ability": (made(ability=2000), "ability", 2000),
        "spread": (made(spread=0), "spread", 0),
        "difficulty": (made(difficulty=-1), "difficulty", -1),
        "discrimination": (made(discrimination=-1), "discrimination", -1),
        "noise of 0/1": (made(noise=1.0), "noise", "marks"),
        "noise": (made(marks=True, noise=-1), "noise", -1),
    }
)
