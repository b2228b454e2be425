"""A/B tests by simulation: how long certificates take, how often they are wrong, and what error rates promise.

python tests/campaigns/control.py visitors     against mixture SPRTs that are tuned to the effect
python tests/campaigns/control.py alike        A/A tests that are looked at 100 times
python tests/campaigns/control.py rates        false discoveries of adaptive samplers, and power
python tests/campaigns/control.py variants     six variants and a control: designs and agents
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from bandit_envs import BetterThanControl, Threshold
from bandit_envs.stopping import discoveries

DELTA = 0.05
BASE, BETTER = 0.03, 0.037


# --- visitors of one variant and a control ----------------------------------------------------------------------------


def mixture_sprt(n: Any, s: Any, effect: float, a: float, two_sided: bool) -> Any:
    """The logarithm of the mixture SPRT of p_1 - a p_0 with a normal prior of this scale, (..., looks).

    Normal approximation with the pooled rate (Johari, Pekelis & Walsh 2022); one-sided: the half-normal prior.
    """
    n, p = np.asarray(n, np.float64), (s[0] + s[1]) / (2 * n)
    variance, tau = np.maximum(p * (1 - p), 1e-12) * (1 + a * a) / n, effect
    gap = s[1] / n - a * s[0] / n
    value = 0.5 * np.log(variance / (variance + tau**2)) + tau**2 * gap**2 / (2 * variance * (variance + tau**2))
    if not two_sided:
        value = value + np.log(2) + stats.norm.logcdf(gap * tau / np.sqrt(variance * (variance + tau**2)))
    return value


def visitors(episodes: int = 1000, step: int = 100, most: int = 90_000) -> None:
    """Visitors of each arm until variant B is found better, at delta / 6, with equal traffic."""
    random, level = np.random.default_rng(0), DELTA / 6
    n = np.arange(step, most + 1, step)
    for lift in (None, 0.05):
        a = 1.0 + (lift or 0.0)
        hoped = [BASE, BETTER]
        problems = {"plain": BetterThanControl(lift=lift), "expected": BetterThanControl(lift=lift, expected=hoped)}
        taken: dict[str, list[int]] = {name: [] for name in (*problems, "one-sided", "two-sided")}
        for _ in range(episodes):
            s = [np.cumsum(random.binomial(step, p, len(n))) for p in (BASE, BETTER)]
            for name in ("one-sided", "two-sided"):
                value = mixture_sprt(n, s, BETTER - a * BASE, a, name == "two-sided")
                over = (value >= math.log(1 / level)) & (s[1] > a * s[0])
                taken[name].append(int(n[np.argmax(over)] if over.any() else most))
            for name, problem in problems.items():
                places, low, high = np.arange(len(n)), 0, len(n)
                reach = np.flatnonzero(mixture_sprt(n, s, BETTER - a * BASE, a, False) > 1.0)  # none is found before
                low = int(reach[0]) if len(reach) else len(n)
                found = most
                for start in range(low, high, 40):
                    rows = places[start : start + 40]
                    pulls = np.stack([n[rows], n[rows]], axis=1)
                    mean = np.stack([s[0][rows], s[1][rows]], axis=1) / pulls
                    over = problem.arm_evidence(pulls, mean, distribution="bernoulli")[:, 1, 0] >= math.log(1 / level)
                    if over.any():
                        found = int(n[rows[np.argmax(over)]])
                        break
                taken[name].append(found)
        print(f"{'margin 0' if lift is None else f'lift {lift:g}'}: visitors of an arm, {episodes} episodes")
        for name, values in taken.items():
            row = [f"{np.mean(values) / np.mean(taken[by]):.3f} of {by}" for by in ("one-sided", "two-sided")]
            print(f"  {name:10} mean {np.mean(values):8.0f}  median {np.median(values):8.0f}  {', '.join(row)}")


# --- A/A --------------------------------------------------------------------------------------------------------------


def alike(tests: int = 300, peeks: int = 100, visitors_a_day: int = 600, variants: int = 6) -> None:
    """Tests of variants that are all like the control, looked at after each of `peeks` days."""
    random, days = np.random.default_rng(1), np.arange(1, peeks + 1)
    problem, won, z = BetterThanControl(), 0, 0
    for _ in range(tests):
        n = np.outer(days, np.full(variants + 1, visitors_a_day))
        s = np.cumsum(random.binomial(visitors_a_day, BASE, n.shape), axis=0)
        evidence = problem.arm_evidence(n, s / n, distribution="bernoulli")[..., 0]
        won += bool(discoveries(evidence, DELTA).any())
        p = (s[:, 1:] + s[:, :1]) / (n[:, 1:] * 2)
        gap = (s[:, 1:] - s[:, :1]) / n[:, 1:] / np.sqrt(np.maximum(p * (1 - p), 1e-12) * 2 / n[:, 1:])
        z += bool((gap > stats.norm.isf(DELTA / variants)).any())
    high = stats.beta.ppf(0.99, won + 1, tests - won) if won < tests else 1.0
    print(f"A/A, {variants} variants, {peeks} peeks: {won} of {tests} with a false winner, at most {high:.3f} (99 %)")
    print(f"  one-sided z tests with Bonferroni: {z} of {tests}")


# --- rates ------------------------------------------------------------------------------------------------------------


def _bernoulli(random: Any, n: Any, mean: Any) -> Any:
    s = random.binomial(n, mean)
    return np.stack([s, s], axis=-1).astype(np.float64)


def _gaussian(random: Any, n: Any, mean: Any) -> Any:
    s = random.normal(mean * n, np.sqrt(n))
    return np.stack([s, np.zeros_like(s)], axis=-1)


LAWS: dict[str, tuple[float, float, Callable[..., Any], dict[str, Any]]] = {
    "conversions of 3 %": (0.03, 0.012, _bernoulli, {"distribution": "bernoulli"}),
    "conversions of 40 %": (0.4, 0.06, _bernoulli, {"distribution": "bernoulli"}),
    "Gaussian, sd 1": (0.0, 0.12, _gaussian, {"distribution": "gaussian", "sigma": 1.0}),
}


def rates(episodes: int = 10_000, K: int = 20, level: float = 0.1) -> None:
    """An adaptive sampler that stops when its naive tests find most, then e-BH: false discoveries and power."""
    for name, (base, gap, draw, options) in LAWS.items():
        for share in (0.05, 0.5, 0.95):
            for against in ("control", "threshold"):
                random = np.random.default_rng(2)
                good = np.zeros(K + 1, np.bool_)
                good[1 : 1 + max(round(share * K), 1)] = True
                means = np.where(good, base + gap, base)
                n, s = np.zeros((episodes, K + 1), np.int64), np.zeros((episodes, K + 1, 2))
                over, stopped = np.zeros(episodes, np.bool_), random.integers(5, 30, episodes)
                for step in range(30):
                    each = np.full((episodes, K + 1), 200)
                    if step > 1:  # more for what looks better than it is, and as little for the rest
                        m = s[..., 0] / n
                        rank = (-m[:, 1:]).argsort(axis=1).argsort(axis=1)
                        each[:, 1:] = np.where(rank < K // 4, 600, 100)
                        each[:, 0] = 800
                        scale = np.sqrt(
                            np.maximum(m * (1 - m), 1e-9) if options["distribution"] == "bernoulli" else 1.0
                        )
                        z = (m[:, 1:] - m[:, :1]) / (np.max(scale) * np.sqrt(1 / n[:, 1:] + 1 / n[:, :1]))
                        lucky = (z[:, ~good[1:]] > 2.5).any(axis=1) if (~good[1:]).any() else z.min(axis=1) > 3
                        over |= lucky | (step > stopped)  # it knows which finds would be false
                    more = np.where(over[:, None], 0, each)
                    n += more
                    s += draw(random, more, means)
                m = s[..., 0] / n
                if against == "control":
                    evidence = BetterThanControl().arm_evidence(n, m, **options)[..., 1:, 0]
                else:
                    evidence = Threshold(base).arm_evidence(n, m, **options)[..., 1:, 0]
                line = []
                for rate in ("familywise", "fdr"):
                    found = discoveries(evidence, level, rate)
                    false = found & ~good[1:]
                    fdp = false.sum(axis=1) / np.maximum(found.sum(axis=1), 1)
                    power = (found & good[1:]).sum(axis=1) / good.sum()
                    error = fdp.mean() if rate == "fdr" else false.any(axis=1).mean()
                    sd = fdp.std() if rate == "fdr" else false.any(axis=1).std()
                    line.append(
                        f"{rate}: wrong {error:.4f} +- {2.6 * sd / math.sqrt(episodes):.4f}, power {power.mean():.3f}"
                    )
                print(f"{name:20} {share:4.0%} true, against a {against:9}  {'   '.join(line)}", flush=True)


# --- designs ----------------------------------------------------------------------------------------------------------


def variants(episodes: int = 100) -> None:
    """Six variants, one of them better: scores at several budgets, and pulls until the certificate is there."""
    import agents

    arms = {"distribution": "bernoulli", "mean": [BASE, *[BASE] * 5, BETTER]}
    names = ["uniform", "lsa", "apt", "evidence", "top-two", "dunnett", "holm", "bonferroni", "jamieson-jain"]
    known = {"instance": arms, "delta": DELTA}
    found = agents.evaluate(
        names, "BetterThanControl", episodes=episodes, budgets=[21_000, 42_000, 84_000, 140_000], env_kwargs=known
    ).summary()
    print(found[[c for c in ("agent", "budget", "score", "f1", "error_rate") if c in found]].to_string())
    with_tolerance = known | {"tolerance": 0.0035}
    stops = ["uniform(stop='certificate')", "apt(stop='certificate')", "evidence", "top-two"]
    sure = agents.evaluate(stops, "BetterThanControl", episodes=min(episodes, 40), env_kwargs=with_tolerance).summary()
    print(sure[["agent", "total_pulls", "error_rate", "certified"]].to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["visitors", "alike", "rates", "variants"])
    parser.add_argument("--episodes", type=int, help="of each cell, in place of the default")
    asked, begun = parser.parse_args(), time.time()
    globals()[asked.what](*([] if asked.episodes is None else [asked.episodes]))
    print(f"{time.time() - begun:.0f} s")
