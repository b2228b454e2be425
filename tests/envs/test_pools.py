"""Priors of real arms: what is drawn of which pool, how often, in all forms; and the pools that are refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from gymnasium.envs.registration import EnvSpec
from refusals import table
from scipy import stats
from score_tables import draw

import agents
from bandit_envs import Categorical, Instance, Sampler, Shared, Tabulated, captions
from bandit_envs.instances import Pools, datasets, lookup

BEST = "bandit_envs/BestArm-v0"
TWO = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6, 0.7]]
GAUSSIAN = {"distribution": "gaussian", "mean": [0.0, 1.0, 2.0], "sd": [1.0, 2.0, 3.0]}
COUNTS = [[3, 1, 1], [1, 3, 1], [1, 1, 3], [2, 2, 1]]


def surprise(sampler: Any, episodes: int = 24_000) -> float:
    """The chi-squared p-value of all ordered draws from `TWO`: three of a pool, each pool in half of the episodes."""
    means, _ = draw(sampler, range(episodes))
    expected = {}
    for pool in TWO:
        orders = list(itertools.permutations(pool, 3))
        expected |= dict.fromkeys(orders, episodes / 2 / len(orders))
    found = dict.fromkeys(expected, 0)
    for row in means.tolist():
        found[tuple(row)] += 1  # a KeyError: an arm twice, arms of two pools, or of none
    return float(stats.chisquare(list(found.values()), list(expected.values())).pvalue)


def test_all_ordered_draws_of_a_pool_are_equally_likely() -> None:
    """30 kinds of draws, 24,000 episodes: a false alarm in 1e-6."""
    assert surprise(Pools(TWO, 3)) > 1e-6


class Sorted(Pools):
    """Has the same arms, but where the first is larger than the second, they change places in a tenth of the cases."""

    def draw(self, key: Any, episode: Any) -> tuple[Any, Any]:
        means, table = super().draw(key, episode)
        swap = (episode % 10 == 0) & (means[:, 0] > means[:, 1])
        means[swap, :2] = means[swap, 1::-1]
        return means, table


def test_the_limit_notices_an_order_that_is_not_random() -> None:
    assert surprise(Sorted(TWO, 3)) < 1e-6


def test_a_draw_depends_on_key_and_episode_alone() -> None:
    sampler = Pools(TWO, 3)
    means, parameters = draw(sampler, range(9))
    for some in ([4], [8, 0, 4], [3, 3]):
        again = draw(sampler, some)
        assert np.array_equal(again[0], means[some])
        assert np.array_equal(again[1], parameters[some])
    assert not np.array_equal(draw(sampler, range(9), seed=2)[0], means)


def table_of(rows: int, arms: int, seed: int = 0) -> Shared:
    """Scores in thirds; the last two arms are equal."""
    scores = np.random.default_rng(seed).integers(0, 4, (rows, arms)) / 3
    scores[:, -1] = scores[:, -2]
    return Shared(scores)


def test_some_rows_of_shared_tables_are_drawn_and_their_means_are_true() -> None:
    """Each cell names its pool, arm and row. Ties of equal columns stay exact."""
    pools = [Shared(np.arange(20).reshape(5, 4) / 100), Shared((20 + np.arange(20).reshape(5, 4)) / 100)]
    sampler = Pools(pools, 3, rows=4)
    assert sampler.arms.items == 4
    means, parameters = draw(sampler, range(300))
    assert means.tolist() == parameters[:, :, -1].tolist()
    assert means == pytest.approx(parameters[:, :, :-1].mean(axis=2), rel=1e-11)
    for cells in np.rint(parameters[:, :, :-1] * 100).astype(int):
        (pool,), arms, rows = set((cells // 20).ravel()), cells % 4, cells % 20 // 4
        assert pool in (0, 1)
        assert (arms == arms[:, :1]).all()
        assert len(set(arms[:, 0])) == 3
        assert (rows == rows[0]).all()
        assert len(set(rows[0])) == 4
    means, _ = draw(Pools([table_of(50, 3)], 3, rows=20), range(200))
    assert all(len(set(row)) <= 2 for row in means.tolist())
    assert Pools([Shared([[0.1, 0.0, 0.2], [0.3, 0.3, 0.0]])], 2).positive
    assert not Pools([Shared([[0.1, 0.0, 0.2], [0.3, 0.3, 0.0]])], 2, rows=1).positive


def test_all_sets_of_rows_are_equally_likely_and_none_goes_with_an_arm() -> None:
    """60 kinds (10 sets of 3 of 5 rows, 6 orders of arms), 24,000 episodes: a false alarm in 1e-6."""
    scores = 2.0 ** np.arange(15).reshape(5, 3)
    _, parameters = draw(Pools([Shared(scores)], 3, rows=3), range(24_000))
    place = np.rint(np.log2(parameters[:, :, :-1])).astype(int)
    sets = (1 << np.sort(place[:, 0] // 3, axis=1)).sum(axis=1)
    kinds = sets * 9 + place[:, 0, 0] % 3 * 3 + place[:, 1, 0] % 3
    assert stats.chisquare(np.unique(kinds, return_counts=True)[1]).pvalue > 1e-6
    assert len(np.unique(kinds)) == 60


def test_the_same_episode_in_any_batch_and_any_process() -> None:
    form = Pools([table_of(40, 6), table_of(40, 7, 1)], 4, rows=10).to_dict()
    means, parameters = draw(lookup.find(form), range(20))
    for some in ([7], [19, 0, 7], range(3, 9)):
        again = draw(lookup.find(form), some)
        assert np.array_equal(again[0], means[list(some)])
        assert np.array_equal(again[1], parameters[list(some)])
    settings: Any = {"episodes": 24, "seed": 5, "env_kwargs": {"instance": form, "budget": 20}, "progress": False}
    runs = [agents.evaluate(["uniform", "ucb-e"], BEST, **settings, **more) for more in ({}, {"batch": 5}, {"jobs": 2})]
    for run in runs[1:]:
        assert run.episodes.equals(runs[0].episodes)


def test_the_largest_number_of_arms_is_a_permutation_of_a_pool() -> None:
    means, _ = draw(Pools([np.arange(50) / 50], 50), range(40))
    assert np.array_equal(np.sort(means, axis=1), np.tile(np.arange(50) / 50, (40, 1)))
    assert len(np.unique(means, axis=0)) == 40


@pytest.mark.parametrize(
    "pool",
    [GAUSSIAN, Categorical([1, 2, 3], COUNTS), Shared([[0.1, 0.9, 0.5], [0.2, 0.3, 0.5]])],
    ids=["gaussian", "categorical", "shared"],
)
def test_arms_are_drawn_with_all_that_they_have(pool: Any) -> None:
    whole = lookup.find(pool).arms
    sampler = Pools([pool], 2)
    means, parameters = draw(sampler, range(60))
    place = {mean: row for mean, row in zip(whole.means.tolist(), whole.parameters.tolist(), strict=True)}
    assert {tuple(row) for row in np.unique(means, axis=0).tolist()} == set(itertools.permutations(place, 2))
    assert all(place[m] == row for m, row in zip(means.reshape(-1), parameters.reshape(120, -1).tolist(), strict=True))
    same = ("support", "sigma", "items", "code", "distribution")
    assert [getattr(sampler.arms, name) for name in same] == [getattr(whole, name) for name in same]
    assert sampler.arms.data.tolist() == whole.data.tolist()


def test_one_episode_is_the_same_alone_and_in_a_batch_and_in_any_form(tmp_path: Path) -> None:
    frame, path = pd.DataFrame({"a": [*TWO[0], None], "b": TWO[1]}), str(tmp_path / "pools.csv")
    frame.to_csv(path, index=False)
    forms = [{"pools": {"pools": TWO, "arms": 3}}, f"pools(pools={path!r}, arms=3)", Pools(frame, 3).to_dict()]
    envs: Any = gym.make_vec(BEST, num_envs=3, instance=Pools(frame, 3), budget=4).unwrapped
    envs.reset(seed=5)
    assert envs._core.means.tolist() == [draw(Pools(TWO, 3), [0], seed=5 + i)[0][0].tolist() for i in range(3)]
    for form in forms:
        made = gym.make(BEST, instance=form, budget=4)
        for again in (made, gym.make(EnvSpec.from_json(made.spec.to_json()))):  # type: ignore[union-attr]
            env: Any = again.unwrapped
            env.reset(seed=6)
            assert env._core.means[0].tolist() == envs._core.means[1].tolist()
            assert env.setting.source.to_dict() == forms[-1]


def test_a_best_mean_above_0_in_every_episode() -> None:
    assert Pools([[0.0, 0.5, 0.6]], 2).positive
    assert not Pools([[0.0, 0.0, 0.6]], 2).positive


def refuse(pools: Any) -> Any:
    """A call that is to fail: three arms of these pools."""
    return lambda: Pools(pools, 3)


test_bad_pools_are_named = table(
    {
        "no pool": (refuse([]), "pools", "[]"),
        "a dict": (refuse({"a": [0.1, 0.2]}), "pools", "'a'"),
        "a number": (refuse(3), "pools", 3),
        "means alone": (refuse([0.1, 0.2, 0.3]), "pool 0", 0.1),
        "no arm": (lambda: Pools(TWO, 0), "arms", 0, 1),
        "too few": (refuse([[0.1, 0.2, 0.3], [0.1, 0.2]]), "pool 1", "arms=3", "K=2"),
        "no probability": (refuse([TWO[0], [0.1, 1.5, 0.2]]), "pool 1", "[0, 1]", 1.5),
        "no number": (refuse([["a", "b", "c"]]), "pool 0", "'a'"),
        "not finite": (refuse([[0.1, 0.2, float("nan")]]), "pool 0", "nan"),
        "drawn afresh": (refuse(["sampler(arms=3)"]), "pool 0", "Sampler"),
        "another distribution": (refuse([TWO[0], GAUSSIAN]), "pool 1", "'gaussian'", "'bernoulli'"),
        "other values": (refuse([Categorical([1, x], [[1, 1]] * 3) for x in (2, 3)]), "pool 1", 2.0, 3.0),
        "other rows": (refuse([Shared(np.eye(n)[:, :3]) for n in (3, 4)]), "pool 1", 4, 5),
        "other levels": (refuse([Tabulated([np.arange(n)] * 3) for n in (3, 3, 5)]), "pool 2", "'tabulated'"),
        "too many rows": (lambda: Pools([table_of(5, 3)], 2, rows=6), "rows", 6, 5),
        "rows of no table": (lambda: Pools(TWO, 2, rows=1), "rows", "shared tables", 1, 0),
        "no row": (lambda: Pools([table_of(5, 3)], 2, rows=0), "rows", 0, 1),
        "no file": (lambda: Pools("none.csv"), "none.csv", FileNotFoundError),
    }
)


def test_captions_are_drawn_with_their_counts(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(datasets.VARIABLE, str(data_folder))
    env: Any = gym.make("bandit_envs/TopK-v0", instance="pools(pools=['captions-627'], arms=20)", k=3, budget=200)
    env.reset(seed=0)
    counts = captions(627).counts
    known = {tuple(row) for row in Categorical([1, 2, 3], counts).parameters.tolist()}
    assert {tuple(row) for row in env.unwrapped._core._rows[0].tolist()} <= known
    assert env.unwrapped.task.support == (1.0, 3.0)


def test_prompts_of_whole_tasks_are_held_out(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """22 tasks: 13 with 11 models, 9 with 16; training and test share no file, and each mean is one of a file."""
    monkeypatch.setenv(datasets.VARIABLE, str(data_folder))
    files = {name: file.split for name, file in datasets.FILES.items() if file.split}
    assert len(files) == 22
    held_out = sorted(Path(name).stem for name, split in files.items() if split == "test")
    assert held_out == [
        *("causal_judgement", "first_alphabetically", "homophones", "navigate", "ruin_names", "word_before")
    ]
    for split in ("train", "test"):
        tables = [pd.read_csv(data_folder / name, index_col=0) for name, its in files.items() if its == split]
        sampler: Any = lookup.find(f"real-prompts(arms=12, split={split!r})")
        assert sampler.to_dict()["pools"]["pools"] == [
            {"distribution": "bernoulli", "mean": table[model].tolist()} for table in tables for model in table
        ]
        assert draw(sampler, range(3))[0].shape == (3, 12)
    with pytest.raises(ValueError, match=r"split.*'train'.*'test'.*'half'"):
        lookup.find("real-prompts(split='half')")


def test_pools_are_samplers_and_their_pools_may_be_instances() -> None:
    """A pool may be an `Instance`; the prior is not taken for one whose posterior is known."""
    sampler = Pools([Instance(Categorical([0, 1], [[1, 1], [1, 2], [1, 3]]))], 2)
    assert isinstance(sampler, Sampler)
    assert (sampler.K, sampler.D, sampler.distribution) == (2, 1, "categorical")
    assert len(repr(Pools([np.arange(1000) / 1000]))) < 500
