"""Intervals and claims of sessions at their limits: how often they are ever wrong, and how wide intervals are.

python tests/campaigns/anytime.py coverage | claims | widths | winner     the tables of docs/certificates-theory.md

Sessions are simulated by the statistics that a `Session` keeps, with the same routines; tests/session/test_claims.py
compares them with whole sessions.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy import stats

import agents
from agents.session.claims import Claims, numbers_of
from bandit_envs import stopping
from bandit_envs.kernels.structs import kernel
from bandit_envs.stopping.boundaries import refresh
from bandit_envs.stopping.intervals import against

Array = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]

DELTA = 0.05
ARMS = 4


def numbers(gaussian: bool) -> Array:
    found = stopping.common("gaussian" if gaussian else "bounded")[: stopping.COMMON].copy()
    found[stopping.D_AT] = 1
    return found


def interval(x: Array, level: float, gaussian: bool = False) -> Array:
    """The interval of the mean of samples in [0, 1], or Gaussian ones with sigma = 1."""
    off = x - x.mean()
    moments = np.array([(off**n).mean() for n in (2, 3, 4)])
    return stopping.arm_intervals(numbers(gaussian), np.array([len(x)]), x.mean(keepdims=True), moments, level)[0]


# --- coverage ---------------------------------------------------------------------------------------------------------

# Samples of one arm, and their mean.
HOSTILE: dict[str, tuple[Draw, float]] = {
    "Gaussian": (lambda r, n: r.normal(size=n), 0.0),
    "Bernoulli(.5)": (lambda r, n: (r.random(n) < 0.5) * 1.0, 0.5),
    "Bernoulli(.01)": (lambda r, n: (r.random(n) < 0.01) * 1.0, 0.01),
    "two points near the ends": (lambda r, n: np.where(r.random(n) < 0.9, 0.98, 0.02), 0.9 * 0.98 + 0.1 * 0.02),
    "skewed": (lambda r, n: r.beta(0.1, 0.9, n), 0.1),
    "marks, one rare": (lambda r, n: np.where(r.random(n) < 0.02, 0.0, 8 / 9), 0.98 * 8 / 9),
    "uniform": (lambda r, n: r.random(n), 0.5),
}
RULES = ("uniform", "chasing")  # chasing: the arm whose interval is nearest to excluding its mean


@kernel
def evidence(numbers, pulls, mean, variance, truth, scratch, found):
    """Fill found (n,) with the evidence against the true mean, by which `arm_intervals` finds the ends."""
    refresh(numbers, pulls, mean, variance, scratch, 0, len(pulls))
    for i in range(len(pulls)):
        found[i] = against(numbers, mean, scratch, i, truth)


def misses(name: str, rule: str, sessions: int, pulls: int, level: float = DELTA, seed: int = 1) -> int:
    """How many sessions of `ARMS` arms ever have an interval that leaves a mean out, looking after each pull."""
    draw, mean = HOSTILE[name]
    random, given = np.random.default_rng(seed), numbers(name == "Gaussian")
    sums, (counts, near) = np.zeros((4, sessions, ARMS)), np.zeros((2, sessions, ARMS))
    wrong, rows, found = np.zeros(sessions, bool), np.arange(sessions), np.empty(sessions)
    need = np.log((1 if name == "Gaussian" else 2) * ARMS / level)
    for t in range(pulls):
        arm = near.argmin(axis=1) if rule == "chasing" and t >= ARMS else np.full(sessions, t % ARMS)
        x = draw(random, sessions)
        counts[rows, arm] += 1
        sums[:, rows, arm] += x ** np.arange(1, 5)[:, None]
        n = counts[rows, arm]
        m, *raw = sums[:, rows, arm] / n
        second = np.maximum(raw[0] - m**2, 0.0)
        third, fourth = raw[1] - 3 * m * raw[0] + 2 * m**3, raw[2] - 4 * m * raw[1] + 6 * m**2 * raw[0] - 3 * m**4
        variance = np.concatenate([second, third, np.maximum(fourth, second**2)])
        evidence(given, n.astype(np.int64), m, variance, mean, np.zeros(5 * sessions + 100), found)
        wrong |= found >= need
        near[rows, arm] = -found
    return int(wrong.sum())


# --- claims -----------------------------------------------------------------------------------------------------------

HAIR = 1e-9
TWELVE = [f"arm {i}" for i in range(12)]


def at_the_limit(problem: str, **facts: object) -> dict[str, object]:
    criterion = {"criterion": "each"} if problem in ("BestArm", "TopK") else {}
    return {"problem": problem, "arms": TWELVE, "delta": DELTA} | criterion | facts


# Facts, the means of the arms, and whether each may be claimed in, or out: all lie at the limit of one of both.
NORMAL: dict[str, object] = {"sigma": 1.0}
BINARY: dict[str, object] = {"binary": True}
low, high = np.zeros(12, bool), np.arange(12) < 3
first = np.arange(12) < 1
LIMITS: dict[str, tuple[dict[str, object], Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]] = {
    "Threshold, all below": (at_the_limit("Threshold", threshold=0.5, **NORMAL), 0.5 - HAIR + 0.0 * low, low, ~low),
    "Threshold, binary": (at_the_limit("Threshold", threshold=0.3, **BINARY), 0.3 - HAIR + 0.0 * low, low, ~low),
    "BestArm, all alike": (at_the_limit("BestArm", **NORMAL), HAIR * first, first, ~first),
    "BestArm, binary": (at_the_limit("BestArm", **BINARY), 0.5 + HAIR * first, first, ~first),
    "BestArm, epsilon": (at_the_limit("BestArm", epsilon=0.3, **NORMAL), (0.3 + HAIR) * first, first, ~first),
    "TopK, all alike": (at_the_limit("TopK", k=3, **NORMAL), HAIR * high, high, ~high),
    "TopK, one apart": (at_the_limit("TopK", k=3, **NORMAL), HAIR * high + 2.0 * first, high, ~high),
    "TopK, epsilon": (at_the_limit("TopK", k=3, epsilon=0.3, **NORMAL), (0.3 + HAIR) * high, high, ~high),
    "AllGood, all bad": (at_the_limit("AllGood", epsilon=0.3, **NORMAL), (0.3 + HAIR) * first, first, ~first),
    "AllGood, all good": (at_the_limit("AllGood", epsilon=0.3, **NORMAL), (0.3 - HAIR) * first, ~low, low),
}


def courses(name: str, rule: str, sessions: int, results: int, weak: float = 0.0) -> Iterator[Claims]:
    """The claims of simulated sessions; `weak`: they need so much less evidence than they should."""
    facts, means, *_ = LIMITS[name]
    random, K = np.random.default_rng(7), len(means)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with agents.Session("uniform", facts, store=":memory:", public_seed=1) as session:
            run = session._state.run
    certifier = run.certifier._replace(numbers=numbers_of(run.certifier, run.seen, False))
    for _ in range(sessions):
        claims, sums, counts = Claims(run.task, certifier, DELTA * np.exp(weak)), np.zeros(K), np.zeros(K)
        noise, told = random.random(results), []
        x = noise < 0.0 if "binary" in facts else random.normal(size=results)
        for t in range(results):
            arm = t % K
            if (
                rule == "chasing" and t >= K and t % 2
            ):  # an arm that looks better than it is, or the best if it looks bad
                arm = int((sums / counts - means + (random.random(K) < 0.3)).argmax())
            value = float(noise[t] < means[arm]) if "binary" in facts else means[arm] + x[t]
            sums[arm], counts[arm] = sums[arm] + value, counts[arm] + 1
            told.append((arm, np.array([value])))
        claims.take_in(told, TWELVE)
        yield claims


def false_claims(name: str, rule: str, sessions: int, results: int, weak: float = 0.0) -> int:
    """In how many sessions a claim is ever false."""
    *_, inside, outside = LIMITS[name]
    sides = np.array([[claim.side for claim in one.found] for one in courses(name, rule, sessions, results, weak)])
    return int((((sides > 0) & ~inside) | ((sides < 0) & ~outside)).any(axis=1).sum())


# --- widths, and a clear winner ---------------------------------------------------------------------------------------

SAMPLES: dict[str, Draw] = {
    "Bernoulli .5": HOSTILE["Bernoulli(.5)"][0],
    "Bernoulli .1": lambda r, n: (r.random(n) < 0.1) * 1.0,
    "Bernoulli .02": lambda r, n: (r.random(n) < 0.02) * 1.0,
    "Gaussian, sd known": HOSTILE["Gaussian"][0],
    "Gaussian, sd 1/8 of the range": lambda r, n: np.clip(0.5 + r.normal(size=n) / 8, 0, 1),
    "marks 1 to 10, sd 2": lambda r, n: (np.clip(np.round(6 + 2 * r.normal(size=n)), 1, 10) - 1) / 9,
    "uniform": lambda r, n: r.random(n),
}


def ratio(name: str, n: int, arms: int, repeats: int = 30) -> float:
    """Median width over that of Clopper and Pearson's, a z or Student's interval, with Bonferroni's part of .05."""
    random, level, found = np.random.default_rng(3), DELTA / arms, []
    for _ in range(repeats):
        x = SAMPLES[name](random, n)
        if name.startswith("Bernoulli"):
            fixed = stats.binomtest(int(x.sum()), n).proportion_ci(1 - level)
            known = fixed.high - fixed.low
        elif name.endswith("known"):
            known = 2 * stats.norm.isf(level / 2) / n**0.5
        else:
            known = 2 * stats.t.isf(level / 2, n - 1) * x.std(ddof=1) / n**0.5
        low, high = interval(x, level, name.endswith("known"))
        found.append((high - low) / known)
    return float(np.median(found))


AB = {"problem": "Threshold", "threshold": 0.1, "tolerance": 0.05, "binary": True, "delta": DELTA, "arms": 7}
RATES = np.array([0.3, 0.11, 0.1, 0.09, 0.08, 0.12, 0.1])


def winner(seed: int, agent: str = "evidence") -> tuple[int, int]:
    """With how many results the clear winner of `RATES` is certain, and the whole answer."""
    random = np.random.default_rng(seed)
    with agents.Session(agent, AB, store=":memory:", public_seed=seed) as session:
        while not session.done:
            session.tell_all([(arm, float(random.random() < RATES[arm])) for arm in session.ask(100)])
        return int(session.claims()["since"][0]), len(session)


def main(what: str) -> None:
    if what == "coverage":
        for name in HOSTILE:
            print(f"{name:26}", *(f"{rule} {misses(name, rule, 2000, 2000)}" for rule in RULES), "of 2000", flush=True)
    elif what == "claims":
        for name in LIMITS:
            print(f"{name:22}", *(f"{rule} {false_claims(name, rule, 2000, 360)}" for rule in RULES), flush=True)
    elif what == "widths":
        for name in SAMPLES:
            cells = [f"{ratio(name, n, arms):.2f}" for arms in (1, 12) for n in (20, 50, 200, 1000)]
            print(f"| {name} |", " | ".join(cells), "|", flush=True)
    else:
        for agent in ("evidence", "uniform(stop='certificate')"):
            found = np.array([winner(seed, agent) for seed in range(8)])
            print(agent, np.median(found, axis=0), "median share", np.median(found[:, 0] / found[:, 1]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
