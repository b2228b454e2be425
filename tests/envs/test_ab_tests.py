"""The sampler `ab-tests`: what it draws, how often, in which forms, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused
from scipy import stats
from score_tables import draw

import bandit_envs  # noqa: F401
from bandit_envs import Categorical
from bandit_envs.instances import ABTests, lookup

COUNT = 4000


def test_what_it_draws_is_as_often_as_said() -> None:
    """The control's rate, the shares of arms that are equal, worse, better, and by how much; false alarm 1e-6 each."""
    means, table = draw(ABTests(6, base=[0.02, 0.1], nulls=0.4, lift=0.25, worse=0.1), range(COUNT))
    assert (table[..., 0] == means).all()
    control, ratio = means[:, 0], means[:, 1:] / means[:, :1]
    assert stats.kstest(np.log(control / 0.02) / np.log(5), "uniform").pvalue > 1e-6
    equal, worse, better = (means[:, 1:] == means[:, :1]).ravel(), ratio.ravel() < 1, ratio.ravel() > 1
    for found, share in ((equal, 0.2), (worse, 0.2), (better, 0.6)):
        assert stats.binomtest(int(found.sum()), 5 * COUNT, share).pvalue > 1e-6
    assert stats.kstest(ratio.ravel()[better] - 1, stats.expon(scale=0.25).cdf).pvalue > 1e-6
    assert stats.kstest(1 / ratio.ravel()[worse] - 1, stats.expon(scale=0.1).cdf).pvalue > 1e-6
    assert abs(stats.spearmanr(control, ratio[:, 0]).statistic) < 4.9 / np.sqrt(COUNT)


def test_nulls_may_be_all_or_none() -> None:
    none, _ = draw(ABTests(4, nulls=0), range(200))
    assert (none[:, 1:] > none[:, :1]).all()
    every, _ = draw(ABTests(4, nulls=1), range(200))
    assert (every[:, 1:] <= every[:, :1]).all()
    assert (every[:, 1:] == every[:, :1]).any()
    rates, _ = draw(ABTests(4, base=[1.0, 1.0], nulls=0, lift=9.0), range(20))
    assert (rates == 1).all()  # no rate is higher


@pytest.mark.parametrize("distribution", ["conversions", "revenue", "marks"])
def test_tables_are_those_of_arms_with_these_means(distribution: str) -> None:
    """Arms alike stay alike to the bit, so that a null equals the control."""
    sampler = ABTests(5, distribution, spread=0.7)
    means, table = draw(sampler, range(50))
    for e in range(50):
        if distribution == "revenue":
            chances = np.diff(np.minimum(table[e], 1), prepend=0.0)
            arms: Any = Categorical(sampler.arms.data[:, 0], chances)
        else:
            arms = type(sampler.arms)(means[e], *([0.7] if distribution == "marks" else []))
        np.testing.assert_allclose(arms.means, means[e], rtol=1e-12)
        np.testing.assert_allclose(arms.parameters, table[e], rtol=1e-12)
    one = np.concatenate([draw(sampler, range(e, e + 1))[1] for e in range(50)])
    np.testing.assert_array_equal(one, table)  # whatever the batch
    same = means[:, 1:] == means[:, :1]
    assert 0 < same.sum() < same.size
    assert (table[:, 1:][same] == np.broadcast_to(table[:, :1], table[:, 1:].shape)[same]).all()
    assert sampler.arms.support == {"conversions": (0, 1), "revenue": (0, 1), "marks": None}[distribution]


def test_buyers_are_few_and_prices_skewed() -> None:
    """Of 20,000 visitors, shares and means within 5 standard errors (false alarm 6e-7 each)."""
    source = {"ab-tests": {"arms": 2, "distribution": "revenue", "base": [0.1, 0.1], "nulls": 1.0}}
    env: Any = gym.make("bandit_envs/BetterThanControl-v0", instance=source, budget=20_000).unwrapped
    env.reset(seed=1)
    paid = np.array([env.step(0)[4]["sample"] for _ in range(20_000)])
    sold = paid[paid > 0]
    assert abs(len(sold) / 20_000 - 0.1) < 5 * np.sqrt(0.09 / 20_000)
    assert abs(paid.mean() - 0.1 * env.setting.source._prices.mean()) < 5 * paid.std() / np.sqrt(20_000)
    assert len(set(sold.tolist())) == 20
    assert sold.max() == 1
    assert stats.skew(sold) > 1


def test_forms() -> None:
    for form in ("ab-tests", "ab-tests(arms=5, distribution='revenue')", {"ab-tests": {"law": "marks", "lift": 0.3}}):
        one: Any = lookup.find(form)
        again = lookup.find(json.loads(json.dumps(one.to_dict())))
        assert again.to_dict() == one.to_dict()
        assert (draw(again, range(9))[0] == draw(one, range(9))[0]).all()
        env: Any = gym.make("bandit_envs/BetterThanControl-v0", instance=form, lift=0.05)
        assert env.unwrapped.task.budget == one.budget == (20 if one.kind == "marks" else 2000) * one.K
        assert (
            gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json())).unwrapped.task == env.unwrapped.task
        )


BAD: dict[str, tuple[dict[str, Any], list[object]]] = {
    "one arm": ({"arms": 1}, ["arms", 1]),
    "distribution": ({"distribution": "poisson"}, ["'poisson'", "revenue"]),
    "base": ({"base": [0.0, 0.1]}, ["base", "[0.0, 0.1]"]),
    "one base": ({"base": 0.1}, ["base", 0.1]),
    "order of base": ({"base": [0.2, 0.1]}, ["base", "[0.2, 0.1]"]),
    "rates above 1": ({"base": [0.5, 1.5]}, ["base", "[0.5, 1.5]"]),
    "nulls": ({"nulls": 1.5}, ["nulls", 1.5]),
    "lift": ({"lift": 0}, ["lift", 0]),
    "worse": ({"worse": -1}, ["worse", -1]),
    "spread": ({"spread": 11}, ["spread", 11]),
    "budget": ({"budget": 0}, ["budget", 0]),
}


@pytest.mark.parametrize("title", BAD)
def test_bad_input(title: str) -> None:
    given, words = BAD[title]
    with refused(*words):
        lookup.find({"ab-tests": given})
