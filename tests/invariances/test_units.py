"""Decisions do not depend on units: where the range of samples lies, how wide it is, and what means are counted from.

Samples y of a range are played against (y - low) / width, of the same doubles, on [0, 1]: with the same random numbers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from bandit_envs import AllGood, Instance, Resampled, Shared, Tabulated, Threshold, from_table

STOPPING = ["uniform(stop='certificate')", "top-two", "evidence"]
VALUES = np.array([0, 0.04, 0.137, 0.22, 0.31, 0.46, 0.52, 0.67, 0.74, 0.83, 0.91, 1])
SHARES = [[1.0 + 40.0 * (1 - abs(v - top)) ** 6 for v in VALUES] for top in (0.9, 0.6, 0.35, 0.0)]
ROWS = np.random.default_rng(0).beta([[9], [3], [2]], [[2], [3], [9]], (40, 3, 2)).transpose(1, 0, 2)
GRADES = np.random.default_rng(1).beta([5, 4, 2], [3, 4, 6], (50, 3))
PROBLEMS: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.45, "tolerance": 0.02},
    "BestArm": {"epsilon": 0.1},
    "TopK": {"k": 2, "epsilon": 0.1},
    "AllGood": {"epsilon": 0.2, "slack": 0.1},
    "Feasible": {"A": [[1.0, 0.0], [0.0, -1.0]], "b": [0.93, -0.45]},
}
NEAR = [(0.0, 1e-12), (0.0, 1e9), (1e3, 1.0), (1e3, 1e9), (999999.3, 1.0), (-1e6, 1.0), (1e9, 1e9), (-0.3, 1.0)]
RANGES = [(offset, offset + width) for offset, width in NEAR]  # |offset| / width is 1e6 at most
FAR = [(1e9, 1e9 + 1.0), (-1e9, -1e9 + 1.0), (1e6, 1e6 + 1e-3)]


def asked(problem: str, low: float, width: float) -> dict[str, Any]:
    """The numbers of a problem in other units."""
    found = {name: x * width if name in ("tolerance", "epsilon", "slack") else x for name, x in PROBLEMS[problem].items()}
    found |= {"threshold": low + width * found["threshold"]} if "threshold" in found else {}
    return found | ({"b": list(width * np.array(found["b"]) + low * np.sum(found["A"], axis=1))} if "b" in found else {})


def back(problem: str, given: dict[str, Any], low: float, width: float) -> dict[str, Any]:
    """The numbers of a problem in units of [0, 1], from those in other units."""
    sums = np.sum(given.get("A", [[0.0]]), axis=1)
    shown = {"threshold": lambda x: (x - low) / width, "b": lambda b: list((np.array(b) - low * sums) / width)}
    return {name: shown.get(name, (lambda x: x) if name in ("k", "A") else lambda x: x / width)(x) for name, x in given.items()}


def arms_of(problem: str, scale: Any) -> Any:
    """An instance whose samples are what `scale` makes of samples in [0, 1]."""
    if problem != "Feasible":
        return {"distribution": "categorical", "values": scale(VALUES).tolist(), "probabilities": SHARES}
    return {"distribution": "resampled", "rows": [*scale(np.clip(ROWS, 0, 1))[:2].tolist(), scale(np.eye(2)).tolist()]}


def played(problem: str, instance: Any, numbers: dict[str, Any], players: list[str], **rules: Any) -> list[Any]:
    """What agents do in five episodes."""
    kwargs = {"instance": instance, **numbers, **rules}
    found = agents.evaluate(players, f"bandit_envs/{problem}-v0", episodes=5, seed=0, env_kwargs=kwargs)
    rows = found.episodes[["agent", "total_pulls", "correct", "score", "truncated"]]
    return [*rows.to_numpy().tolist(), found.pulls.to_numpy().tolist()]


def scaled_to(low: float, high: float) -> tuple[Any, Any]:
    """Samples in [0, 1] in other units, and what these are of the width, from the low end on."""
    there = lambda x: np.clip(low + (high - low) * np.asarray(x), low, high)  # noqa: E731
    return there, lambda x: (there(x) - low) / (high - low)


@pytest.mark.parametrize(("low", "high"), RANGES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_range_decides_nothing(problem: str, low: float, high: float) -> None:
    numbers, (there, here) = asked(problem, low, high - low), scaled_to(low, high)
    certified = STOPPING if problem != "Feasible" else STOPPING[::2]
    for players, rules in ((certified, {"delta": 0.1, "max_pulls": 3000}), (["uniform"], {"budget": 50})):
        shown = played(problem, arms_of(problem, there), numbers, players, **rules)
        unit = arms_of(problem, here), back(problem, numbers, low, high - low)
        assert shown == played(problem, *unit, players, **rules)
    moved = numbers | {"threshold": numbers["threshold"] + 0.05 * (high - low)} if problem == "Threshold" else {}
    assert not moved or shown != played(problem, arms_of(problem, there), moved, ["uniform"], budget=50)


@pytest.mark.parametrize(("low", "high"), [RANGES[0], RANGES[3], RANGES[4], (1e7, 1e7 + 1)])
@pytest.mark.parametrize("problem", ["Threshold", "BestArm", "TopK", "AllGood"])
def test_the_range_of_a_table_decides_nothing(problem: str, low: float, high: float) -> None:
    numbers, (there, here) = asked(problem, low, high - low), scaled_to(low, high)
    play = functools.partial(played, problem, players=["paired-elimination", STOPPING[0]], delta=0.1)
    shown = play(Instance(Shared(there(GRADES), (low, high))), numbers)
    assert shown == play(Instance(Shared(here(GRADES), (0, 1))), back(problem, numbers, low, high - low))


def session_of(problem: str, low: float, high: float, numbers: dict[str, Any], samples: Any, **more: Any) -> list[Any]:
    """What a session asks of arms whose t-th result is in samples[t], its answer and its certificate."""
    facts, course = {"problem": problem, "arms": 3, "range": [low, high], "delta": 0.1, **numbers, **more}, list[int]()
    player = STOPPING[0] if problem == "Feasible" or more else "top-two"
    with agents.Session(player, facts, store="sqlite://", public_seed=3) as session:
        for row in samples:
            if session.done:
                break
            course.append(int(session.ask()[0]))
            session.tell(course[-1], row[course[-1]].tolist())
        return [course, session.answer().tolist(), session.certificate]


@pytest.mark.parametrize(("low", "high"), [RANGES[0], RANGES[4]])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_range_of_a_session_decides_nothing(problem: str, low: float, high: float) -> None:
    numbers, (there, here) = asked(problem, low, high - low), scaled_to(low, high)
    samples = np.clip(ROWS if problem == "Feasible" else GRADES, 0, 1)
    samples = samples.transpose(1, 0, 2) if problem == "Feasible" else samples
    unit, tables = back(problem, numbers, low, high - low), [{}] if problem == "Feasible" else [{}, {"items": 16}]
    for more in tables:
        found = session_of(problem, low, high, numbers, there(samples), **more)
        *decided, certificate = session_of(problem, 0.0, 1.0, unit, here(samples), **more)
        assert found == [*decided, pytest.approx(certificate, abs=1e-4)]


# --- no wrong certificate ---------------------------------------------------------------------------------------------

ENDS = [(999999.3, 1000000.3), *FAR, (1000.0, 1001.0), (-0.3, 0.7)]


def hostile(low: float, high: float) -> list[tuple[Any, float]]:
    """Weights of low, x, the next number and high for two arms, and a threshold near their means."""
    x = low + 0.375 * (high - low)
    after = math.nextafter(x, math.inf)
    near = [([[0, 0, 0, 1]] * 2, high), ([[1, 0, 0, 0]] * 2, math.nextafter(low, math.inf))]
    cases = [*near, ([[0, 0, 1, 0]] * 2, after), ([[0, 1, 0, 0]] * 2, after), ([[0, 1, 1, 0], [0, 1, 3, 0]], after)]
    return [({"distribution": "categorical", "values": [low, x, after, high], "probabilities": p}, theta) for p, theta in cases]


def wrong(low: float, high: float, pulls: int = 4000) -> int:
    """Episodes on hostile arms that end with a certificate of a wrong answer."""
    count, rules = 0, {"delta": 0.05, "max_pulls": pulls}
    for arms, theta in hostile(low, high):
        kwargs = {"instance": arms, "threshold": theta, **rules}
        found = agents.evaluate(STOPPING[:3:2], "bandit_envs/Threshold-v0", episodes=2, seed=0, env_kwargs=kwargs).episodes
        count += int((~found["correct"] & ~found["truncated"]).sum())
    return count


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_no_range_makes_a_wrong_certificate(low: float, high: float) -> None:
    assert wrong(low, high) == 0
    env = gym.make("bandit_envs/Threshold-v0", instance=hostile(low, high)[0][0], threshold=high, delta=0.05, actions="full")
    env.reset(seed=0)
    found, *_ = env.step({"arm": 0, "times": 10**7, "answer": np.zeros(2, np.int8)})
    assert found["mean"][0] == high
    certifier, none, n = env.unwrapped.task.certifier(), np.zeros((1, 2)), 2 * 10**6
    told = functools.partial(certifier.levels, variance=none, inside=np.zeros((1, 2), np.int8), moments=np.zeros((1, 2, 2)))
    assert told(np.full((1, 2), 10**7), found["mean"][[[0, 0]]])[0] == 1.0
    assert told(np.zeros((1, 2), np.int64), none)[0] == 1.0
    given = {"distribution": "bounded", "support": (low, high), "variance": [0.0, 0.0], "moments": np.zeros((2, 2))}
    for added in (np.cumsum(np.full(n, high))[-1] / n, np.nextafter(high, low) - 2**-55 * n * abs(high)):
        assert Threshold(high).certified_level([n, n], [added, added], [False, False], **given) == 1.0
    assert told(np.full((1, 2), n), np.full((1, 2), added))[0] < 1e-6 or abs(high) < 2  # the twin: sums as they are


def test_sums_of_samples_as_they_are_make_wrong_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: what the checks above are for."""
    monkeypatch.setattr("bandit_envs.simulation.simulator.ends_of", lambda arms: (0.0, math.inf))
    assert wrong(999999.3, 1000000.3) > 0


@pytest.mark.parametrize("low", [1e6, -1e6])
def test_a_mean_of_equal_scores_is_that_score(low: float) -> None:
    rows = np.full((49, 2), math.nextafter(low + 1.0, low))
    assert Shared(rows, (low, low + 1.0)).means.tolist() == Resampled([*rows.T, [low]]).means[:2].tolist() == rows[0].tolist()


@pytest.mark.parametrize("ends", [(1e6, 1e6 + 1e-8), (-1.0, np.nextafter(-1.0, 0))])
def test_ranges_too_narrow_for_their_place_are_refused(ends: tuple[float, float]) -> None:
    facts = {"problem": "Threshold", "threshold": ends[0], "arms": 2, "range": ends}
    for made in (
        lambda: from_table(np.array([ends, ends])),
        lambda: from_table(np.array([ends, ends]), shared=True),
        lambda: Instance(Tabulated([ends, ends])),
        lambda: agents.Session("uniform", facts, store="sqlite://"),
        lambda: Threshold().certifier(2, distribution="bounded", support=ends),
    ):
        with pytest.raises(ValueError, match="1024 times the distance"):
            made()


# --- arms without a range ---------------------------------------------------------------------------------------------

MEANS = np.array([58, 45, 33, 19, 3]) / 64
SUMS = {"Threshold": {"threshold": 29 / 64, "tolerance": 1 / 32}, "BestArm": {"epsilon": 3 / 32}}
SUMS |= {"TopK": {"k": 2, "epsilon": 3 / 32}, "AllGood": {"epsilon": 14 / 64, "slack": 7 / 64}}
PLACED = {"look-ahead", "ppo"}  # they have a prior, or were trained, around 0
SCALED = {"lsa", "fareast"}  # constants of the papers have units
RATIO = {"epsilon": 0.25, "slack": 0.125, "multiplicative": True}


def changed(problem: str, shift: float, scale: float, players: list[str], numbers: dict[str, Any]) -> set[str]:
    """The agents that decide differently on Gaussian arms in other units, both powers of two."""
    found = []
    for off, unit in ((0.0, 1.0), (shift, scale)):
        arms = {"distribution": "gaussian", "mean": (MEANS * unit + off).tolist(), "sd": 0.5 * unit}
        given = numbers if numbers is RATIO else {k: x if k == "k" else x * unit + off * (k == "threshold") for k, x in numbers.items()}
        found.append({one: played(problem, arms, given, [one], budget=120, delta=0.2) for one in players})
    return {one for one in players if found[0][one] != found[1][one]}


@pytest.mark.parametrize("problem", SUMS)
def test_units_of_gaussian_arms_decide_nothing(problem: str) -> None:
    players = [one for one in agents.names(problem) if one not in ("opt-kg", "dp-index", "evolved")]  # Bernoulli, or no model
    assert changed(problem, 8.0, 1.0, players, SUMS[problem]) <= PLACED
    assert changed(problem, 0.0, 4.0, players, SUMS[problem]) <= SCALED
    if problem == "AllGood":
        assert changed(problem, 0.0, 4.0, players, RATIO) <= SCALED | PLACED
    fixed = ["evidence(sigma=0.5)"]  # the twin: a number of its own, which does not move along
    assert changed(problem, 0.0, 4.0, fixed, SUMS[problem]) == set(fixed)


# --- answers that can never be certified ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("means", "numbers"),
    [
        *[([0.6, 0.3, 0], {"epsilon": 0.8, "slack": slack, "multiplicative": True}) for slack in (0.39, 0.4, 3.0)],
        ([1.0, 0.0], {"epsilon": 1.0}),
        ([1.0, 0.5, 0.0], {"epsilon": 0.6, "slack": 0.4}),
        ([0.5, 0.0], {"threshold": 0.0}),
    ],
)
def test_no_answer_waits_for_a_certificate_for_ever(
    means: list[float], numbers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, unit = "Threshold" if "threshold" in numbers else "AllGood", {"distribution": "bernoulli", "mean": means}
    range_ = {"distribution": "categorical", "values": [0.0, 1.0], "probabilities": [[1 - p, p] for p in means]}
    play = functools.partial(played, problem, players=STOPPING, delta=0.1, max_pulls=2000)
    for arms in (unit, range_):
        *rows, _ = play(arms, numbers)
        assert all(correct and not truncated for _, _, correct, _, truncated in rows)
    if numbers.get("slack", 0) > 0.39 and "multiplicative" in numbers:
        monkeypatch.setattr(AllGood, "_kept", property(lambda self: self.epsilon + self.slack / 2))
        assert all(truncated for *_, truncated in play(unit, numbers)[:-1])
