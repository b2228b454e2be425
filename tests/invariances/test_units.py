"""Decisions do not depend on units: on where a range of samples lies, how wide it is, and what means are counted from.

Samples y of a range are played against (y - low) / width on [0, 1], of the same doubles, with the same random numbers.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from bandit_envs import AllGood, Instance, Resampled, Shared, Threshold, from_table

CERTIFIED = ["uniform(stop='certificate')", "evidence"]
VALUES = np.array([0, 0.04, 0.137, 0.22, 0.31, 0.46, 0.52, 0.67, 0.74, 0.83, 0.91, 1])  # an arm soon shows three
SHARES = [[1.0 + 40.0 * (1 - abs(v - top)) ** 6 for v in VALUES] for top in (0.9, 0.6, 0.0)]
GRADES = np.random.default_rng(1).beta([[5, 6], [4, 3], [2, 3]], [[3, 1], [4, 4], [6, 6]], (50, 3, 2))
PROBLEMS: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.453125, "tolerance": 0.03125},
    "BestArm": {"epsilon": 0.09375},
    "TopK": {"k": 2, "epsilon": 0.09375},
    "AllGood": {"epsilon": 0.21875, "slack": 0.109375},
    "Feasible": {"A": [[1.0, 0.0], [0.0, -1.0]], "b": [0.93, -0.45]},
}
RANGES = [(-1e6, 1.0), (0.0, 1e-12), (1e3, 1e9), (999999.3, 1.0), (1e9, 1e9)]  # low, width
PATIENT = {"delta": 0.1, "max_pulls": 3000}


def moved(problem: str, low: float, width: float) -> dict[str, Any]:
    """The numbers of a problem in other units."""
    found = {
        name: x * width if name in ("tolerance", "epsilon", "slack") else x for name, x in PROBLEMS[problem].items()
    }
    found |= {"threshold": low + width * found["threshold"]} if "threshold" in found else {}
    return found | ({"b": [width * 0.93 + low, width * -0.45 - low]} if "b" in found else {})


def both(low: float, width: float, x: Any) -> list[Any]:
    """Samples x in [0, 1] in other units, and how much of the width these lie above the low end."""
    there = np.clip(low + width * np.asarray(x), low, low + width)
    return [there, (there - low) / (low + width - low)]


def play(problem: str, arms: Any, numbers: dict[str, Any], players: list[str], rules: dict[str, Any]) -> list[Any]:
    """What agents do in five episodes."""
    kwargs = {"instance": arms, **numbers, **rules}
    found = agents.evaluate(players, f"bandit_envs/{problem}-v0", episodes=5, env_kwargs=kwargs)
    rows = found.episodes[["correct", "truncated", "total_pulls", "agent"]]
    return [*rows.to_numpy().tolist(), found.pulls.to_numpy().tolist()]


def on(kind: str, x: Any, low: float, width: float) -> Any:
    """Arms whose samples are x: of so many values, of rows of two coordinates, or the columns of a table."""
    if kind == "values":
        return {"distribution": "categorical", "values": x.tolist(), "probabilities": SHARES}
    return Instance(Resampled([*x.transpose(1, 0, 2)]) if kind == "rows" else Shared(x[:-2, :, 0], (low, low + width)))


@pytest.mark.parametrize(("low", "width"), RANGES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_range_decides_nothing(problem: str, low: float, width: float) -> None:
    numbers, kinds = moved(problem, low, width), ["rows"] if problem == "Feasible" else ["values", "table"]
    for kind in kinds:
        there, here = both(low, width, VALUES if kind == "values" else GRADES)
        players = ["paired-elimination", *CERTIFIED[:1]] if kind == "table" else CERTIFIED
        for names, rules in ((["uniform"], {"budget": 50}), (players, PATIENT)):
            shown = play(problem, on(kind, there, low, width), numbers, names, rules)
            assert shown == play(problem, on(kind, here, 0.0, 1.0), PROBLEMS[problem], names, rules)
    if problem == "Threshold":  # the twin
        assert shown != play(
            problem, on(kind, there, low, width), numbers | {"threshold": low + 0.4 * width}, names, rules
        )


def session(problem: str, low: float, width: float, numbers: dict[str, Any], samples: Any, **more: Any) -> list[Any]:
    """What a session asks, its answer and its certificate; samples[t] are of its t-th result."""
    facts, course = {"problem": problem, "arms": 3, "range": [low, low + width], "delta": 0.1, **more}, list[int]()
    with agents.Session(CERTIFIED[0], facts | numbers, store="sqlite://", public_seed=3) as one:
        for row in samples[:25]:
            if not one.done:
                course.append(int(one.ask()[0]))
                one.tell(course[-1], row[course[-1]].tolist())
        return [course, one.answer().tolist(), one.certificate]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_range_of_a_session_decides_nothing(problem: str) -> None:
    (low, width), tables = RANGES[3], [{}] if problem == "Feasible" else [{}, {"items": 14}]
    there, here = both(low, width, GRADES if problem == "Feasible" else GRADES[:, :, 0])
    for more in tables:
        *decided, level = session(problem, 0.0, 1.0, PROBLEMS[problem], here, **more)
        found = session(problem, low, width, moved(problem, low, width), there, **more)
        assert found == [*decided, pytest.approx(level, abs=1e-4)]


def wrong(low: float, width: float) -> int:
    """Certified wrong answers on arms at an end of their range, or of two values that are next to each other."""
    high, x, count = low + width, low + 0.375 * width, 0
    after, first = math.nextafter(x, math.inf), math.nextafter(low, math.inf)
    at_ends = [([0, 0, 0, 1], high), ([1, 0, 0, 0], first)]
    beside = [(weights, after) for weights in ([0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 3, 0])]
    for weights, theta in at_ends + beside:
        arms = {"distribution": "categorical", "values": [low, x, after, high], "probabilities": [weights] * 2}
        rows = play("Threshold", arms, {"threshold": theta}, CERTIFIED, PATIENT)[:-1]
        count += sum(not correct and not truncated for correct, truncated, *_ in rows)
    return count


@pytest.mark.parametrize(("low", "width"), [RANGES[3], (1e9, 1.0), (-1e9, 1.0), (1e6, 1e-3), (1e3, 1.0)])
def test_no_range_makes_a_wrong_certificate(low: float, width: float) -> None:
    high, n = low + width, 2 * 10**6
    assert wrong(low, width) == 0
    arms = {"distribution": "categorical", "values": [low, high], "probabilities": [[0, 1], [0, 1]]}
    env = gym.make("bandit_envs/Threshold-v0", instance=arms, threshold=high, delta=0.1, actions="full")
    env.reset(seed=0)
    assert env.step({"arm": 0, "times": 10**7, "answer": np.zeros(2, np.int8)})[0]["mean"][0] == high
    certifier, none, shape = env.unwrapped.task.certifier(), np.zeros((1, 2)), {"moments": np.zeros((1, 2, 2))}
    for added in (
        np.cumsum(np.full(n, high))[-1] / n,
        high - 2.0**-55 * n * abs(high),
    ):  # samples as they are, added up
        given = {"distribution": "bounded", "support": (low, high), "variance": none[0], "moments": shape["moments"][0]}
        assert Threshold(high).certified_level([n, n], [added] * 2, [False] * 2, **given) == 1
        theta, mirrored = math.nextafter(-high, -low), given | {"support": (-high, -low)}
        assert Threshold(theta).certified_level([n, n], [-added] * 2, [True] * 2, **mirrored) == 1
    outside = np.zeros((1, 2), np.int8)
    assert certifier.levels(np.full((1, 2), n), np.full((1, 2), added), none, outside, **shape)[0] < 1e-6  # the twin
    assert certifier.levels(np.zeros((1, 2), np.int64), none, none, outside, **shape)[0] == 1


def test_samples_added_up_as_they_are_would_make_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the test above."""
    monkeypatch.setattr("bandit_envs.simulation.simulator.ends_of", lambda arms: (0.0, math.inf))
    assert wrong(*RANGES[3]) > 0


@pytest.mark.parametrize("low", [1e6, -1e6])
def test_a_mean_of_equal_scores_is_that_score(low: float) -> None:
    rows = np.full((49, 2), math.nextafter(low + 1.0, low))
    for means in (Shared(rows, (low, low + 1.0)).means, Resampled([*rows.T, [low]]).means[:2]):
        assert means.tolist() == rows[0].tolist()


def test_the_moments_of_bulk_pulls_count_from_the_low_end() -> None:
    def moments(low: float) -> Any:
        arms = {"distribution": "categorical", "probabilities": [[5, 2, 1], [1, 1, 4]]}
        arms |= {"values": [low, low + 1, low + 3]}
        rules: dict[str, Any] = {"threshold": low + 1, "delta": 0.1, "max_pulls": 999, "actions": "full"}
        env = gym.make("bandit_envs/Threshold-v0", instance=arms, **rules)
        env.reset(seed=3)
        for times in (40, 60):
            seen = env.step({"arm": 0, "times": times, "answer": np.zeros(2, np.int8)})[0]
        return seen["moments"][0].tolist()

    assert moments(1024.0) == pytest.approx(moments(0.0), rel=1e-9)


@pytest.mark.parametrize("ends", [(1e6, 1e6 + 1e-8), (-1.0, np.nextafter(-1.0, 0))])
def test_ranges_too_narrow_for_their_place_are_refused(ends: tuple[float, float]) -> None:
    facts = {"problem": "Threshold", "threshold": ends[0], "arms": 2, "range": ends}
    for made in (
        lambda: from_table(np.array([ends, ends])),
        lambda: from_table(np.array([ends, ends]), shared=True),
        lambda: agents.Session("uniform", facts, store="sqlite://"),
        lambda: Threshold().certifier(2, distribution="bounded", support=ends),
    ):
        with pytest.raises(ValueError, match="1024 times the distance"):
            made()


@pytest.mark.parametrize(
    ("means", "numbers"),
    [
        *(([0.6, 0.3, 0], {"epsilon": 0.8, "slack": slack, "multiplicative": True}) for slack in (0.4, 3.0)),
        ([1.0, 0.0], {"epsilon": 1.0}),
        ([1.0, 0.5, 0.0], {"epsilon": 0.6, "slack": 0.4}),
        ([0.5, 0.0], {"threshold": 0.0}),
    ],
)
def test_no_answer_waits_for_a_certificate_for_ever(
    means: list[float], numbers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, shares = "Threshold" if "threshold" in numbers else "AllGood", [[1 - p, p] for p in means]
    arms = {"distribution": "bernoulli", "mean": means}
    for one in (arms, {"distribution": "categorical", "values": [0.0, 1.0], "probabilities": shares}):
        rows = play(problem, one, numbers, CERTIFIED, PATIENT)[:-1]
        assert all(correct and not truncated for correct, truncated, *_ in rows)
    if "multiplicative" in numbers:  # the twin
        monkeypatch.setattr(AllGood, "_kept", property(lambda self: self.epsilon + self.slack / 2))
        assert all(truncated for _, truncated, *_ in play(problem, arms, numbers, CERTIFIED, PATIENT)[:-1])
