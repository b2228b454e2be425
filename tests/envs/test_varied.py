"""Instances that are varied: what each change does, how often, and that it stays within what is said."""

from __future__ import annotations

import itertools
import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from refusals import table
from scipy import stats
from score_tables import draw

import agents
from bandit_envs import Bernoulli, Gaussian, Shared, Uniform
from bandit_envs.instances import Varied, lookup

MEANS = [0.2, 0.3, 0.5, 0.7]
ALONE = {"scale": [1, 1], "exchange": 0}  # nothing but the order varies


def test_all_orders_are_equally_likely() -> None:
    """24 orders, 24,000 episodes: a false alarm in 1e-6."""
    means, parameters = draw(Varied(Gaussian(MEANS, [1.0, 2.0, 3.0, 4.0]), centre=0, **ALONE), range(24_000))
    assert parameters[..., 0].tolist() == means.tolist()
    place = {mean: sd for mean, sd in zip(MEANS, [1.0, 2.0, 3.0, 4.0], strict=True)}
    assert np.array_equal(np.vectorize(place.get)(means), parameters[..., 1])
    found = dict.fromkeys(itertools.permutations(MEANS), 0)
    for row in means.tolist():
        found[tuple(row)] += 1
    assert stats.chisquare(list(found.values())).pvalue > 1e-6


def test_factors_are_log_uniform_and_shifts_uniform() -> None:
    """Two Kolmogorov tests of 24,000 episodes: a false alarm in 2e-6. Equal means stay equal, bit for bit."""
    sampler = Varied(Bernoulli([0.4, 0.4, 0.6, 0.5]), 0.5, [0.5, 2], 0.2, exchange=0)
    means, _ = draw(sampler, range(24_000))
    means.sort(axis=1)
    assert (means[:, 0] == means[:, 1]).all()
    shift = means[:, 2] - 0.5
    factor = np.log2((means[:, 3] - means[:, 2]) / 0.1)
    assert np.abs(shift).max() <= 0.2
    assert np.abs(factor).max() <= 1 + 1e-12
    assert stats.kstest(shift, stats.uniform(-0.2, 0.4).cdf).pvalue > 1e-6
    assert stats.kstest(factor, stats.uniform(-1, 2).cdf).pvalue > 1e-6
    assert abs(stats.spearmanr(shift, factor).statistic) < 0.032  # 4.9 standard deviations: 1e-6


def test_halved_gaps() -> None:
    for distribution in (Bernoulli, Gaussian, Uniform):
        means, _ = draw(Varied(distribution([0.25, 0.5, 1.0]), 0.5, [0.5, 0.5], exchange=0), range(9))
        assert np.sort(means, axis=1).tolist() == [[0.375, 0.5, 0.75]] * 9
    means, _ = draw(Varied(Gaussian([[0.0, 1.0], [2.0, 3.0]]), None, [0.5, 0.5], exchange=0), range(9))
    assert np.sort(means, axis=1).tolist() == [[[0.5, 1.5], [1.5, 2.5]]] * 9


def test_exchanged_arms_are_copies_of_others_but_the_best_ones_stay() -> None:
    """Of five arms the best one is fixed, and each pair of the others is as likely: lost, copied."""
    base = Uniform([0.5, 0.1, 0.9, 0.3, 0.7], [5, 1, 9, 3, 7])
    means, parameters = draw(Varied(base, 0, [1, 1], exchange=1, fixed=1), range(12_000))
    assert np.array_equal(parameters[..., 1] / 10, means)
    found: dict[Any, int] = {}
    for row in means.tolist():
        assert row.count(0.9) == 1
        (lost,) = set(base.means.tolist()) - set(row)
        (copied,) = {one for one in row if row.count(one) == 2}
        found[lost, copied] = found.get((lost, copied), 0) + 1
    assert set(found) == set(itertools.permutations([0.5, 0.1, 0.3, 0.7], 2))
    assert stats.chisquare(list(found.values())).pvalue > 1e-6  # 12 kinds, 12,000 episodes: a false alarm in 1e-6
    means, _ = draw(Varied(base, 0, [1, 1], exchange=3, fixed=1), range(500))
    assert ((means == 0.9).sum(axis=1) == 1).all()
    assert {len(set(row)) for row in means.tolist()} <= {2, 3, 4, 5}
    means, _ = draw(Varied(base, 0, [1, 1]), range(500))
    assert set((means == 0.9).sum(axis=1).tolist()) == {0, 1, 2}


def test_facts_are_those_of_the_base_and_all_forms_are_the_same() -> None:
    form = {"varied": {"instance": "tao2019-1", "centre": 0.5}}
    sampler = lookup.find(form)
    same = lookup.find(json.loads(json.dumps(sampler.to_dict())))
    assert same.to_dict() == sampler.to_dict()
    assert np.array_equal(draw(same, range(9))[1], draw(sampler, range(9))[1])
    base: Any = gym.make("bandit_envs/Threshold-v0", instance="tao2019-1", budget=50)
    for text in (form, "varied(instance='tao2019-1', centre=.5)", sampler):
        made = gym.make("bandit_envs/Threshold-v0", instance=text, budget=50)
        assert made.unwrapped.task == base.unwrapped.task  # type: ignore[attr-defined]
    again: Any = gym.make(
        EnvSpec.from_json(gym.make("bandit_envs/Threshold-v0", instance=form, budget=50).spec.to_json())
    )  # type: ignore[union-attr]
    again.reset(seed=3)
    assert again.unwrapped._core.means[0].tolist() == draw(sampler, [0], seed=3)[0][0].tolist()
    for name in ("katz-samuels2018-1", "dose-finding", "jamieson2014-ladder", "kalyanakrishnan2010"):
        varied = lookup.find({"varied": {"instance": name, "scale": [0.9, 1.1]}})
        assert varied.arms is not None
        assert (varied.arms.sigma, varied.arms.support) == (
            lookup.find(name).arms.sigma,
            lookup.find(name).arms.support,
        )


def test_the_same_episode_in_any_batch_and_any_process() -> None:
    sampler = Varied("tao2019-2", 0.5, shift=0.01, exchange=3)
    means, parameters = draw(sampler, range(30))
    for some in ([7], [29, 0, 7], range(3, 9)):
        assert np.array_equal(draw(sampler, some)[0], means[list(some)])
        assert np.array_equal(draw(sampler, some)[1], parameters[list(some)])
    settings: Any = {"episodes": 24, "env_kwargs": {"instance": sampler.to_dict(), "budget": 60}, "progress": False}
    runs = [
        agents.evaluate("apt", "bandit_envs/Threshold-v0", **settings, **more)
        for more in ({}, {"batch": 5}, {"jobs": 2})
    ]
    for run in runs[1:]:
        assert run.episodes.equals(runs[0].episodes)


def test_a_best_mean_above_0() -> None:
    assert Varied(Gaussian([1.0, 1.0, 0.0]), 0.0).positive
    assert not Varied(Gaussian([1.0, 0.0, 0.0]), 0.0).positive  # the best arm may become a copy
    assert Varied(Gaussian([1.0, 0.0, 0.0]), 0.0, fixed=1).positive
    assert not Varied(Gaussian([1.0, 0.0, 0.0]), 0.0, shift=0.9, fixed=1).positive


FLAT = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]
test_bad_values_are_named = table(
    {
        "drawn afresh": (lambda: Varied("sampler"), "instance", "Sampler"),
        "shared": (lambda: Varied(Shared(np.eye(3))), "instance", "Shared"),
        "scale of one": (lambda: Varied(Bernoulli(MEANS), scale=[1]), "scale", "[1]"),
        "scale of 0": (lambda: Varied(Bernoulli(MEANS), scale=[0, 1]), "scale", "[0, 1]"),
        "falling scale": (lambda: Varied(Bernoulli(MEANS), scale=[2, 1]), "scale", "[2, 1]"),
        "scale, text": (lambda: Varied(Bernoulli(MEANS), scale="ab"), "scale", "'ab'"),
        "centre": (lambda: Varied(Bernoulli(MEANS), centre=[0.1, 0.2]), "centre", "[0.1, 0.2]"),
        "infinite centre": (lambda: Varied(Gaussian(MEANS), centre=float("inf")), "centre", "inf"),
        "shift": (lambda: Varied(Bernoulli(MEANS), shift=-0.1), "shift", "-0.1"),
        "all exchanged": (lambda: Varied(Bernoulli(MEANS), exchange=3), "exchange", 3, 2),
        "two arms": (lambda: Varied(Bernoulli(MEANS[:2])), "exchange", 1, 0),
        "none free": (lambda: Varied(Bernoulli(MEANS), exchange=1, fixed=3), "exchange", 1, 0),
        "best of vectors": (lambda: Varied(Gaussian(FLAT), fixed=1), "fixed", 1, 0),
        "beyond 1": (lambda: Varied(Bernoulli(MEANS), 0.0, [1, 1.5]), "scale=[1.0, 1.5]", "shift=0.0", 0.2, 1.05),
        "below 0": (lambda: Varied(Bernoulli(MEANS), 0.5, [1, 1], 0.3), "shift=0.3", -0.1, 1),
    }
)


def test_means_may_reach_the_ends_of_their_range() -> None:
    means, _ = draw(Varied(Bernoulli([0.1, 0.5, 0.9]), 0.5, [1.25, 1.25], exchange=0), range(5))
    assert np.sort(means, axis=1) == pytest.approx(np.tile([0.0, 0.5, 1.0], (5, 1)), abs=1e-15)


@pytest.mark.parametrize("problem", ["Threshold", "AllGood", "TopK", "BestArm"])
def test_all_problems_take_them(problem: str) -> None:
    kwargs = {"instance": {"varied": {"instance": "garivier2016-1"}}, "budget": 40}
    result = agents.evaluate("uniform", f"bandit_envs/{problem}-v0", episodes=20, env_kwargs=kwargs, progress=False)
    assert np.isfinite(result.episodes["score"]).all()
