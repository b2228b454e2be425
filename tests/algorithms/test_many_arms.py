"""Many arms: classes of arms that weigh the same find what rows find, to the bit; arms that are alike are marked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import agents
from agents.certified import policy
from agents.core.stopping import for_many, next_look
from bandit_envs.stopping.nearest import TWIN, mark_twins

GAUSSIAN, BERNOULLI = ("gaussian", 0.5), ("bernoulli", 0.2)
CELLS = {
    "BestArm, top-two": ("BestArm", {}, "top-two", GAUSSIAN),
    "AllGood, evidence": ("AllGood", {"slack": 0.2}, "evidence", GAUSSIAN),
}
MORE = {
    f"{problem}, {agent}, {distribution[0]}": (problem, given, agent, distribution)
    for problem, given in (("BestArm", {}), ("TopK", {"k": 4}), ("AllGood", {"slack": 0.1}))
    for agent in ("top-two", "top-two(rule='eb-tc', race=0.5)", "evidence", "evidence(boundary='kaufmann-koolen')")
    for distribution in (GAUSSIAN, BERNOULLI)
}


def pulls_of(problem: str, given: dict[str, Any], agent: str, distribution: tuple[str, float], K: int) -> Any:
    """The pulls of all arms in two episodes."""
    name, epsilon = distribution
    generator = np.random.default_rng(K)
    means = generator.normal(size=K) if name == "gaussian" else generator.uniform(0.1, 0.9, K).round(2)
    instance = {"distribution": name, "mean": means.tolist()} | ({"sd": 1.0} if name == "gaussian" else {})
    kwargs = {"instance": instance, "delta": 0.05, "epsilon": epsilon, **given}
    result = agents.evaluate([agent], f"bandit_envs/{problem}-v0", env_kwargs=kwargs, episodes=2, seed=3)
    return result.episodes["total_pulls"].tolist(), result.pulls["pulls"].tolist()


def check(monkeypatch: pytest.MonkeyPatch, cell: tuple[Any, ...], K: int) -> None:
    found = []
    for few, many in ((1, 1), (1, 10**6)):  # classes, rows
        monkeypatch.setattr(policy, "MANY", many)
        monkeypatch.setattr(policy, "FEW", few)
        found.append(pulls_of(*cell, K))
    assert found[0] == found[1]


@pytest.mark.parametrize("cell", CELLS)
def test_classes_find_what_rows_find(monkeypatch: pytest.MonkeyPatch, cell: str) -> None:
    check(monkeypatch, CELLS[cell], 60)


@pytest.mark.parametrize("K", [3, 30, 200])
@pytest.mark.parametrize("cell", MORE)
def test_classes_find_what_rows_find_everywhere(monkeypatch: pytest.MonkeyPatch, cell: str, K: int) -> None:
    check(monkeypatch, MORE[cell], max(K, 6) if "TopK" in cell else K)


def test_arms_that_are_alike_are_marked() -> None:
    generator = np.random.default_rng(0)
    K = 300
    for scale in (1.0, 1e-9, 1e9):
        pulls = generator.integers(0, 3, K)
        mean = scale * generator.integers(0, 40, K) / np.maximum(pulls, 1)
        scratch = np.zeros(5 * K)
        scratch[:K] = pulls
        inside = generator.integers(0, 2, K).astype(np.int8)
        seen, expected = set[Any](), inside.copy()
        for i, key in enumerate(zip(pulls.tolist(), mean.tolist(), inside.tolist(), strict=True)):
            expected[i] += TWIN * (key in seen)
            seen.add(key)
        mark_twins(pulls, mean, scratch, inside, np.zeros(3 * K))
        np.testing.assert_array_equal(inside, expected)
        assert (inside >= TWIN).sum() > K / 3


def test_looks_at_many_arms_are_a_share_of_them_apart() -> None:
    assert [for_many(K) for K in (10, 127, 128, 1000, 1024, 10_000, 10**6)] == [0, 0, 1, 61, 64, 625, 62_500]
    assert next_look(10**6, 10**6) == 1_062_500


def test_classes_find_the_same_far_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that forgot the rounding of far means skipped the closest pair: seven times the pulls at 1e8."""
    monkeypatch.setattr(policy, "MANY", 1)
    means, found = np.random.default_rng(0).normal(size=60), []
    for offset in (0.0, 1e8):
        instance = {"distribution": "gaussian", "mean": (offset + means).tolist(), "sd": 1.0}
        kwargs = {"instance": instance, "delta": 0.05, "epsilon": 0.1, "max_pulls": 50_000}
        result = agents.evaluate(["top-two"], "BestArm", env_kwargs=kwargs, episodes=3, seed=3)
        found.append(result.episodes["total_pulls"].tolist())
    assert found[0] == found[1]


def test_a_budget_is_spent_where_no_instance_makes_the_answer_wrong() -> None:
    """Its alternative was read beyond an episode's end: some stopped early, and answers depended on the batch."""
    kwargs = {"instance": {"distribution": "bernoulli", "mean": [0.1, 0.3, 0.6, 0.85]}, "budget": 40}
    given, found = kwargs | {"epsilon": 0.3, "slack": 0.9}, []
    for batch in (None, 1):
        result = agents.evaluate(["top-two"], "AllGood", env_kwargs=given, episodes=20, seed=5, batch=batch)
        assert result.episodes["total_pulls"].eq(40).all()
        found.append((result.pulls["pulls"].tolist(), result.episodes["score"].tolist()))
    assert found[0] == found[1]
