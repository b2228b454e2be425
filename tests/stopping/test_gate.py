"""One mean against a number: `agents.gate`, and problems of one arm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gates as campaign
import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import agents
from agents.cli import main

GAMES = {0.0: 379, 0.25: 10170, 0.5: 21828, 0.75: 10640, 1.0: 343}  # scores of pairs of games, and how often each came


def test_by_hand() -> None:
    """9 of 9 against .5: of the rates above it (.1 - .1 / 2^10) / .5^10 = 102.3; of all .7 * .1 / .5^9 = 35.84."""
    found = agents.gate([1] * 9, at_least=0.5)
    assert found.p == pytest.approx(1 / (0.6 * 102.3 + 0.4 * 35.84))
    assert (found.verdict, found.p_fail, found.n, found.mean) == ("pass", 1.0, 9, 1.0)
    assert (found.low, found.high) == (pytest.approx(0.5, abs=0.2), 1.0)
    assert agents.gate([1] * 9, at_most=0.5).verdict == "fail"
    assert agents.gate([1] * 3, at_least=0.5).verdict == "open"


def test_as_few_results_as_it_takes() -> None:
    """A pass rate of .9 without a failure: 48 results in a row at .05, where a test for one look takes 29."""
    found = [agents.gate(n=n, successes=n, at_least=0.9).verdict for n in range(1, 60)]
    assert found.index("pass") + 1 == 48
    assert set(found[47:]) == {"pass"}


def test_all_forms_of_results_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = pd.DataFrame({"score": GAMES.keys(), "games": GAMES.values()})
    rows.to_csv(tmp_path / "games.csv", index=False, sep=";", decimal=",")
    single = np.repeat(list(GAMES), list(GAMES.values()))
    how: dict[str, Any] = {"at_least": 0.495, "range": (0, 1)}
    named = {"value": "score", "n": "games"}
    found = agents.gate(GAMES, **how)
    assert found == agents.gate(single, **how) == agents.gate(single[::-1].tolist(), **how)
    assert found == agents.gate(rows, **how, **named) == agents.gate(tmp_path / "games.csv", **how, **named)
    assert found.verdict == "pass"
    assert agents.gate(GAMES, at_least=0.5, range=(0, 1)).high - found.low <= 0.0062
    words = ["gate", str(tmp_path / "games.csv"), "--at-least", "0.495", "--range", "0", "1"]
    assert main([*words, "--value", "score", "--n", "games"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{found}\n"
    assert "values in 'score', n in 'games'; 43360 measurements" in err
    assert main(["gate", "--n", "100", "--successes", "10", "--at-least", "0.5"]) == 1
    assert main(["gate", "--n", "3", "--successes", "2", "--at-least", "0.5"]) == 3
    assert main(words) == 2


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_units_and_sides_change_nothing(scale: float) -> None:
    values = np.random.default_rng(1).beta(5, 1, 400)
    one = agents.gate(values, at_least=0.7, range=(0, 1))
    other = agents.gate(scale * values - scale, at_least=scale * (0.7 - 1), range=(-scale, 0))
    mirrored = agents.gate(1 - values, at_most=0.3, range=(0, 1))
    for found in (other, mirrored):
        assert (found.verdict, found.n) == (one.verdict, one.n)
        assert found.p == pytest.approx(one.p, rel=1e-6)
    assert [1 - mirrored.high, 1 - mirrored.low] == pytest.approx([one.low, one.high])


def test_a_stream_is_read_until_its_verdict() -> None:
    stream = iter(np.random.default_rng(0).random(10_000) < 0.95)
    found = agents.gate(stream, at_least=0.8)
    assert found.verdict == "pass"
    assert found.n < 400
    assert next(stream) in (True, False)  # the rest is not read


@pytest.mark.parametrize(("rate", "wrong"), [(0.9, "fail"), (0.8999, "pass")])
def test_the_level_holds_whenever_one_looks(rate: float, wrong: str) -> None:
    """A look after each of 1,000 results, exactly, and of 10^4 streams: fails by chance once in 10^6."""
    bounds = campaign.bounds(0.9, wrong, 1000)
    exactly, _ = campaign.ever(rate, wrong, bounds)
    assert 0.015 < exactly <= 0.05
    low, high = stats.binom.interval(1 - 1e-6, 10_000, exactly)
    assert low <= campaign.streams(rate, wrong, bounds, 10_000) <= high
    n = np.arange(1, 1001)
    few = n * (0.1 if wrong == "pass" else 0.9) - 1.645 * np.sqrt(n * 0.09)  # a test for one look
    assert campaign.ever(rate, wrong, np.where(n > 50, np.floor(few).astype(int), -1))[0] > 0.2


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"results": [1, 0, 0.5], "at_least": 0.9}, "a result is 0 or 1, got 0.5"),
        ({"results": [], "at_least": 0.9}, "there is no result"),
        ({"results": [1], "at_least": 1.5}, "from 0 to 1 is never 1.5"),
        ({"results": [2.0], "at_least": 0.5, "range": (0, 1)}, r"a result must be a number in \[0, 1\], got 2.0"),
        ({"n": 3, "successes": 4, "at_least": 0.9}, r"successes must be an integer in \[0, 3\], got 4"),
        ({"results": [1]}, "give one of at_least and at_most, got None and None"),
        ({"results": [1], "at_least": 0.9, "range": (0, 1), "sigma": 1.0}, "give range or sigma"),
        ({"results": {0.0: 1.5}, "at_least": 0.9}, "how often 0.0 came must be an integer"),
        ({"results": pd.DataFrame({"a": [1], "b": [1]}), "at_least": 0.9}, "value may be any of the columns"),
        ({"at_least": 0.9}, "give results, or n and successes"),
        ({"results": [1, 0], "n": 5, "at_least": 0.9}, "columns are of a table, got n=5 beside list"),
        (
            {"results": {1: 5}, "value": "score", "at_least": 0.9},
            "columns are of a table, got value='score' beside dict",
        ),
        ({"results": pd.DataFrame({"value": [1]}), "n": 5, "at_least": 0.9}, "has no column '5'"),
    ],
)
def test_bad_input_is_named(how: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        agents.gate(**how)


@pytest.mark.parametrize("mean", [0.95, 0.8])
def test_one_arm_is_played_and_asked_about_in_a_session(mean: float) -> None:
    arms: dict[str, Any] = {"distribution": "bernoulli", "mean": [mean]}
    env = {"instance": arms, "threshold": 0.9, "delta": 0.05}
    names = ["uniform(stop='certificate')", "evidence", "hdoc", "top-two"]
    rows = agents.evaluate(names, "Threshold", episodes=20, env_kwargs=env).summary()
    assert rows["error_rate"].max() <= 0.3  # 7 of 20 at .05: once in 10^5
    assert (rows["lower_bound_ratio"] > 1).all()
    facts = {"problem": "Threshold", "threshold": 0.9, "arms": ["new"], "binary": True, "delta": 0.05}
    with agents.Session("uniform(stop='certificate')", facts, store=":memory:") as session:
        session.tell("new", n=1000, successes=int(1000 * mean))
        assert session.done
        assert session.answer().tolist() == [mean > 0.9]


def test_problems_that_compare_arms_refuse_one() -> None:
    arms = {"distribution": "bernoulli", "mean": [0.5]}
    for problem in ("BestArm", "TopK", "AllGood", "BetterThanControl"):
        with pytest.raises(ValueError, match="needs 2 arms or more, got 1|1 arms are too few"):
            gym.make(f"bandit_envs/{problem}-v0", instance=arms, budget=20)
    env = gym.make("bandit_envs/Threshold-v0", instance=arms, budget=20)
    for name in ("sar", "ppo"):
        with pytest.raises(ValueError, match="needs? 2 (arms )?or more, got 1"):
            agents.make(name, env)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_exactly_with_all_orders_of_few_results(q: float) -> None:
    """The probability of a "pass" at any of 60 looks where the rate is q, over all 2^60 orders, and of a "fail"."""
    for verdict, rate in (("pass", q - 1e-9), ("fail", q)):
        open_, wrong = np.array([1.0]), 0.0  # the probability of each number of successes, while no verdict was given
        for n in range(1, 61):
            open_ = np.append(open_ * (1 - rate), 0.0) + np.append(0.0, open_ * rate)
            over = np.array([agents.gate(n=n, successes=s, at_least=q).verdict == verdict for s in range(n + 1)])
            wrong += open_[over].sum()
            open_[over] = 0.0
        assert 0.0 < wrong <= 0.05
        assert campaign.ever(rate, verdict, campaign.bounds(q, verdict, 60))[0] == pytest.approx(wrong, rel=1e-6)
