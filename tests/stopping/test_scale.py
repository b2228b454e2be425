"""A scale that the results do not bear out: certificates that count on it are withheld, and somebody says why."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import agents
import bandit_envs as be
from agents.cli import main
from bandit_envs.stopping.scale import refutation

pytest.importorskip("sqlalchemy")

ZERO_ONE = np.r_[np.zeros(500), np.ones(499)]  # mean just below .5
TABLE = be.Resampled([ZERO_ONE, ZERO_ONE])
CAP = {"threshold": 0.5, "delta": 0.1, "max_pulls": 1500}
FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": 2, "delta": 0.05}


def twin(sigma: float, pulls: Any, variance: Any) -> float:
    """The mean of the e(u) as the head of the module writes it; variance (K, D)."""
    K, D = variance.shape
    found = []
    for u in 0.7 ** np.arange(1, 25):
        e = np.exp((1 - u) * pulls[:, None] * variance / (2 * sigma**2)) * u ** (pulls[:, None] / 2)
        found.append(0.5 * e.mean() + 0.5 * e.prod(axis=0).mean())
    return float(np.mean(found))


def doubtful(sigma: float, K: int, known: float = math.inf, D: int = 1) -> be.stopping.Certifier:
    problem = be.Threshold(0.0) if D == 1 else be.Feasible(A=np.eye(D), b=np.zeros(D))
    return problem.certifier(K, D, sigma=sigma).doubting(sigma, known)


def test_by_hand() -> None:
    """Two results 0 and 1, of sigma .25: N v / (2 sigma^2) = .5 / .125 = 4, so that e(.7) = exp(1.2) .7."""
    numbers, pulls, variance = doubtful(0.25, 1).numbers, np.array([2]), np.array([0.25])
    e = [math.exp(4 * (1 - 0.7**j)) * 0.7**j for j in range(1, 25)]
    assert e[0] == pytest.approx(0.7 * math.exp(1.2))
    assert refutation(numbers, pulls, variance) == pytest.approx(np.mean(e), rel=1e-12, abs=0)


@pytest.mark.parametrize("D", [1, 3])
def test_twin(D: int) -> None:
    rng = np.random.default_rng(5)
    for _ in range(30):
        K, sigma = int(rng.integers(2, 6)), rng.uniform(0.2, 2)
        pulls, variance = rng.integers(0, 30, K), rng.exponential(0.5, (K, D))
        variance[pulls < 2] = 0.0
        found = refutation(doubtful(sigma, K, D=D).numbers, pulls, variance.reshape(-1))
        assert found == pytest.approx(twin(sigma, pulls, variance), rel=1e-9, abs=0)


@pytest.mark.parametrize(("name", "sigma"), [("evidence", 0.2), ("top-two", 0.2), ("track-and-stop", 0.05)])
def test_no_answer_is_certified_by_a_scale_that_the_results_refute(name: str, sigma: float) -> None:
    """Before, more than half of the episodes of `evidence` stopped wrong; sigma=.5 may be said of samples 0 or 1."""
    result = agents.evaluate(
        [f"{name}(sigma={sigma})"], "Threshold", episodes=60, env_kwargs={"instance": TABLE, **CAP}
    )
    agents.make(f"{name}(sigma=0.5, distribution='gaussian')", be.PureExplorationEnv("Threshold", **CAP))
    stopped = ~result.episodes.truncated
    assert not (stopped & ~result.episodes.correct).any()


@pytest.mark.parametrize("name", ["evidence", "top-two", "track-and-stop"])
def test_each_arm_must_bear_a_scale_out(name: str) -> None:
    """A quiet arm says nothing of another that was measured once: `top-two` was wrong in two episodes of five.

    Of 60 episodes more than 7 are wrong at a rate of .01 with probability 1e-6, and at that of .4 nearly always.
    """
    quiet = np.random.default_rng(0).uniform(0.49, 0.55, 400)
    arms = be.Resampled([quiet, np.r_[np.zeros(550), np.ones(450)]])
    kwargs = {"instance": arms, "threshold": 0.5, "delta": 0.1, "max_pulls": 2000}
    result = agents.evaluate([f"{name}(sigma=0.05)"], "Threshold", episodes=60, env_kwargs=kwargs)
    assert (~result.episodes.truncated & ~result.episodes.correct).sum() <= binom.isf(1e-6, 60, 0.01)


def test_a_scale_beyond_all_ratios(tmp_path: Path) -> None:
    facts = {"problem": "BestArm", "arms": 2, "delta": 0.1, "sigma": 1e-90, "range": (0, 1e70)}
    with agents.Session("evidence", facts, store=tmp_path / "s.db") as session:
        with pytest.warns(UserWarning, match="refuted"):
            session.tell_all([(i % 2, 0.5 * (i % 2) + 0.1 * (i % 3)) for i in range(80)])
        assert session.certificate == 0.0


def compared(arms: be.Resampled, names: tuple[str, str], problem: str, **more: Any) -> float:
    """How many times as many pulls the first agent needs as the second; both are always right."""
    kwargs = {"instance": arms, "delta": 0.1, **more}
    result = agents.evaluate([*names], problem, episodes=100, env_kwargs=kwargs)
    assert result.episodes.correct.all()
    pulls = result.summary().set_index("agent")["total_pulls"]
    return float(pulls[names[0]] / pulls[names[1]])


def test_the_known_scale_counts_in_place_of_one_that_is_refuted() -> None:
    """Episodes end: as soon as without sigma, or little later. A true sigma makes agents certain sooner."""
    apart = be.Resampled([np.r_[np.zeros(8), np.ones(2)], np.r_[np.zeros(3), np.ones(7)]])
    names = "evidence(sigma=0.1)", "evidence(distribution='gaussian')"
    assert compared(apart, names, "Threshold", threshold=0.5) < 1.2
    rows = [np.random.default_rng(k).uniform(0.4 + 0.1 * k, 0.5 + 0.1 * k, 500) for k in range(2)]
    assert compared(be.Resampled(rows), ("evidence(sigma=0.05)", "evidence(distribution='bernoulli')"), "BestArm") < 0.1


def test_the_levels_are_those_of_the_known_scale() -> None:
    pulls, mean, variance = np.array([[20, 30]]), np.array([[1.4, -1.7]]), np.array([[1.0, 1.0]])
    inside = np.array([[1, 0]], np.int8)
    level = [one.levels(pulls, mean, variance, inside)[0] for one in (doubtful(0.2, 2, 1.5), doubtful(1.5, 2, 1.5))]
    assert level[0] == pytest.approx(level[1], rel=1e-12, abs=0)
    assert level[0] < 0.01
    assert doubtful(0.2, 2).levels(pulls, mean, variance, inside) == [1.0]
    assert doubtful(0.2, 2).levels(pulls, mean, variance * 0.03, inside)[0] < 1e-6
    for counts, waits in (([20, 13], True), ([20, 14], False), ([40, 7], True), ([40, 8], False)):
        test = doubtful(0.2, 2).trial(np.array(counts), np.array([0.03, 0.03]))
        assert test == (False, sum(counts) - 2, min(counts))
        assert test.waits == waits
        level = doubtful(0.2, 2).levels(np.array([counts]), mean, variance * 0.03, inside)[0]
        assert (level == 1.0) == waits
    assert doubtful(1.5, 2, 1.5).trial(pulls[0], variance[0]) is None


@pytest.mark.parametrize(("known", "seed"), [({"range": (0, 1)}, 0), ({}, 1)])
def test_sessions(known: dict[str, Any], seed: int, tmp_path: Path) -> None:
    """With a sigma of .05, and results 0 or 1: none ends wrong, and each says why."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with agents.Session("evidence", {**FACTS, "sigma": 0.05, **known}, store=tmp_path / "0.db") as session:
            for _ in range(40):
                if not session.done:
                    session.ask()
                    session.tell(session.pending[0].arm, int(rng.random() < 0.5 - 1e-9))
            assert not (session.done and session.answer().any())
            assert not session.certificate
            sentence = session.doubts[0]
    told = [str(one.message) for one in said if "is refuted" in str(one.message)]
    assert len(told) == 1
    for text in (told[0], sentence):
        assert text.startswith("sigma=0.05 is refuted: results of one arm vary by about 0.")
        assert "begin another session" in text
    with agents.Session(store=tmp_path / "0.db") as again:  # as the store says nothing of it
        assert again.doubts == session.doubts or again.doubts[0].startswith("sigma=0.05 is refuted")


def test_sessions_say_so_on_the_command_line_and_on_the_page(tmp_path: Path, capsys: Any) -> None:
    from agents.session.page import state

    with agents.Session("evidence", {**FACTS, "sigma": 0.05}, store=tmp_path / "s.db") as session:
        session.tell_all([(0, 0.51), (1, 0.53)])
        assert session.doubts == []
        session.tell_all([(0, 0.52), (1, 0.5)])
        assert "32 repeated ones in all, bear it out (2 and 2 so far)" in session.doubts[0]
        with pytest.warns(UserWarning, match="refuted"):
            session.tell_all([(0, 0.0), (1, 1.0)])
        assert state(session)["doubts"] == session.doubts
    for line in (["show"], ["tell"]):
        main(["session", *line, str(tmp_path / "s.db"), *(["0", "0.5"] if line == ["tell"] else [])])
        said = capsys.readouterr().err
        assert said.startswith("note: sigma=0.05 is refuted: results of one arm vary by about")


def test_little_noise_is_named_in_python_too(tmp_path: Path) -> None:
    """Beside a sigma, once that counts; a range alone is bet on, which adapts to the noise."""
    results = [(k % 2, 0.5 + 0.01 * (k // 2 % 3)) for k in range(36)]
    with agents.Session("uniform", {**FACTS, "range": (0, 1), "budget": 99}, store=tmp_path / "s.db") as session:
        session.tell_all(results)
        assert session.doubts == []
    told = {**FACTS, "range": (0, 1), "sigma": 0.4, "budget": 99}
    with agents.Session("uniform", told, store=tmp_path / "t.db") as session:
        session.tell_all(results)
        (sentence,) = session.doubts
    assert sentence.startswith("results of one arm vary by about 0.0")
    assert "counts on 0.4: where a smaller sigma is known" in sentence
