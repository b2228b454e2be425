"""How often a study ends within the interval that was forecast for it, from a pilot of three results of each arm.

python tests/campaigns/forecasts.py [MINUTES [KINDS]]     a random sample of studies; needs BANDIT_ENVS_DATA

The studies are drawn at random: contests of captions, marks of language models, and arms of samplers; four problems; 4
to 20 arms. Half are forecast before they begin, the others from their own first results on. Each is then played once.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from agents.session.rehearsal import _Clock, _played, rehearse, studies_of
from agents.session.session import Session
from bandit_envs.instances import Bernoulli, Categorical, Gaussian, Instance, Resampled
from bandit_envs.instances import captions as contest

DATA = Path(os.environ.get("BANDIT_ENVS_DATA", ""))
LEVELS = (0.05, 0.95)
PILOT = 3  # results of each arm
OTHERS = 20  # arms, from whose means a threshold is chosen: not from those of the study, which would be too near


def captions(random: np.random.Generator, K: int) -> tuple[Any, dict[str, Any], float]:
    """Captions of a contest, which raters mark from 1 to 3."""
    counts = contest(int(random.choice([627, 651]))).counts
    return Categorical([1.0, 2.0, 3.0], counts[random.choice(len(counts), K, replace=False)]), {"range": (1, 3)}, 0.6


def marks(random: np.random.Generator, K: int) -> tuple[Any, dict[str, Any], float]:
    """Language models, whose answers have marks in [0, 1]; or marks from 1 to 10."""
    if random.random() < 0.5:
        table = np.genfromtxt(DATA / "alpaca_eval_2_scores.csv", delimiter=",", skip_header=1)
        table = table[:, ~np.isnan(table).any(axis=0)]
        table = table[:, (table.min(axis=0) >= 0) & (table.max(axis=0) <= 1)]
        return (
            Resampled(list(table[:, random.choice(table.shape[1], K, replace=False)].T), (0, 1)),
            {"range": (0, 1)},
            0.3,
        )
    values, sd = np.arange(1, 11.0), random.uniform(0.8, 2.0)
    centres = random.normal(random.uniform(4, 7), random.uniform(0.5, 1.5), K)
    return Categorical(values, np.exp(-0.5 * ((values - centres[:, None]) / sd) ** 2)), {"range": (1, 10)}, sd


def samplers(random: np.random.Generator, K: int) -> tuple[Any, dict[str, Any], float]:
    """Binary, normal and beta arms."""
    which = random.integers(4)
    if which == 0:
        return Bernoulli(random.beta(*random.uniform(0.7, 5, 2), K)), {"binary": True}, 0.4
    noise = float(np.exp(random.uniform(-1, 1)))
    means = random.uniform(-1, 1, K) * noise * random.uniform(0.5, 4)
    if which == 1:
        means = random.normal(0, noise * random.uniform(0.5, 2), K)
    if which < 3:
        return Gaussian(means, noise), {"sigma": noise * random.uniform(1.0, 1.3)}, noise
    low, high = means.min() - 4 * noise, means.max() + 4 * noise
    m, width = (means - low) / (high - low), high - low
    c = m * (1 - m) * (width / noise) ** 2 - 1
    levels = (np.arange(400) + 0.5) / 400
    rows = low + width * stats.beta.ppf(levels, (m * c)[:, None], ((1 - m) * c)[:, None])
    return Resampled(list(rows), (low, high)), {"range": (low, high)}, noise


def first(arms: Any, K: int) -> Any:
    """The first arms."""
    if arms.distribution == "resampled":
        return Resampled(arms._rows[:K], arms.support)
    given = {name: value[:K] if name != "values" else value for name, value in arms._given.items()}
    return type(arms)(*given.values())


KINDS = {"captions": captions, "marks": marks, "samplers": samplers}


def study(number: int, kinds: list[str]) -> dict[str, Any]:
    """A study: its forecast, and what it came to."""
    random = np.random.default_rng([7, number])
    kind, K = kinds[number % len(kinds)], int(random.integers(4, 21))
    many, facts, noise = KINDS[kind](random, K + OTHERS)
    arms = first(many, K)
    problem = str(random.choice(["Threshold", "TopK", "BestArm", "AllGood"]))
    apart = float(noise * random.uniform(0.15, 0.6))
    own: dict[str, Any] = {"epsilon": apart}
    if problem == "Threshold":
        own = {"threshold": float(np.quantile(many.means[K:], random.uniform(0.2, 0.9))), "tolerance": apart / 2}
    if problem == "TopK":
        own["k"] = int(random.integers(1, 1 + K // 2))
    if problem == "AllGood":
        own = {"epsilon": float(noise * random.uniform(0.3, 1)), "slack": apart}
    facts = {"problem": problem, "arms": K, "delta": float(random.choice([0.05, 0.1])), **own, **facts}
    agent = str(random.choice(["evidence", "uniform(stop='certificate')"]))
    session = Session(agent, facts, store=":memory:")
    samples = draws(arms, random)
    session.tell_all([(k, next(samples[k])) for _ in range(PILOT) for k in range(K)])
    if session.done:
        return {"kind": kind, "inside": None}
    goes_on = bool(random.integers(2))
    started = time.perf_counter()
    if goes_on:
        found = session.forecast(episodes=200, seconds=20)
    else:
        found = rehearse(facts, agent, prior=session, episodes=200, advise=False, seconds=20)
    seconds = time.perf_counter() - started
    (outcome,) = found.outcomes.values()
    low, middle, high = (outcome.quantile(level) for level in (LEVELS[0], 0.5, LEVELS[1]))
    low = min(low, float(outcome.pulls.max()))  # where fewer have ended, it says "more than" so many
    came, ended = played(agent, facts, arms, number, session if goes_on else None)
    inside = low <= came <= high if ended else high >= came
    return {
        "kind": kind,
        "problem": problem,
        "K": K,
        "agent": agent,
        "goes_on": goes_on,
        "low": low,
        "middle": middle,
        "high": high,
        "came": came,
        "ended": ended,
        "inside": inside,
        "seconds": seconds,
        "above": came > high,
        "below": ended and came < low,
    }


def draws(arms: Any, random: np.random.Generator) -> list[Any]:
    """Of each arm an endless source of results."""

    def one(k: int) -> Any:
        while True:
            if arms.distribution == "bernoulli":
                yield float(random.random() < arms.means[k])
            elif arms.distribution == "gaussian":
                yield random.normal(arms.means[k], math.sqrt(arms.variances[k]))
            elif arms.distribution == "resampled":
                yield float(random.choice(arms._rows[k]))
            else:
                p = arms._given["probabilities"][k]
                yield float(random.choice(arms._given["values"], p=p / p.sum()))

    return [one(k) for k in range(arms.K)]


def played(agent: str, facts: Any, arms: Any, seed: int, session: Any) -> tuple[int, bool]:
    """How many measurements it takes in truth, and whether it has ended by then."""
    if session is None:
        (one,) = studies_of(facts, agent)
    else:
        (one,) = session._look(studies_of)
    out = _played(one, Instance(arms), 2, _Clock(20.0), seed)
    return int(out.pulls[0]), bool(out.ended[0])


if __name__ == "__main__":
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    kinds = sys.argv[2].split(",") if len(sys.argv) > 2 else list(KINDS)
    found, started = [], time.perf_counter()
    while time.perf_counter() - started < 60 * minutes:
        found.append(study(len(found), kinds))
    done = [row for row in found if row["inside"] is not None]
    for name in ("kind", "problem", "agent", "goes_on"):
        for value in dict.fromkeys(row[name] for row in done):
            some = [row for row in done if row[name] == value]
            shares = {what: np.mean([row[what] for row in some]) for what in ("inside", "above", "below", "ended")}
            print(f"{value!s:30} {len(some):4}", *(f"{what} {share:.3f}" for what, share in shares.items()))
    hits = sum(row["inside"] for row in done)
    ends = stats.binomtest(hits, len(done)).proportion_ci(method="exact")
    over = f"{len(found) - len(done)} were over after the pilot"
    print(f"{len(done)} studies ({over}): {hits / len(done):.3f} inside, {ends.low:.3f} to {ends.high:.3f}")
