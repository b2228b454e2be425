"""Evidence within strata by simulation: what it costs, how often it is wrong at its limits, and a laboratory.

python tests/campaigns/strata.py visitors      3.0 against 3.7 %: daily strata, and the pooled contrast at their looks
python tests/campaigns/strata.py drift         A/A tests whose rate and traffic move from day to day
python tests/campaigns/strata.py edges         a common spread: samplers that chase it, with the null at its edge
python tests/campaigns/strata.py ends          intervals of a common effect, looked at after each stratum
python tests/campaigns/strata.py same          "one effect", "unlike spreads" and "planned shares" where they are true
python tests/campaigns/strata.py laboratory    60 compounds against DMSO + 20 +- 4 on plates of 24 + 8 wells
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
from scipy import stats

from bandit_envs import BetterThanControl
from bandit_envs.stopping.strata import Stratified, averages, mismatch

BASE, BETTER, DELTA = 0.03, 0.037, 0.05
NEED = math.log(1 / DELTA)


def share(hits: int, of: int) -> str:
    """A count, and the ends of its probability (Clopper and Pearson, 99 %)."""
    low = stats.beta.ppf(0.005, hits, of - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.995, hits + 1, of - hits) if hits < of else 1.0
    return f"{hits} of {of}, {low:.4f} to {high:.4f}"


# --- visitors ---------------------------------------------------------------------------------------------------------


def visitors(runs: int = 400, most: int = 60_000) -> None:
    """Visitors of each arm until the better one is found, with equal traffic and no drift."""
    expected = [BASE, BETTER]
    hoped = math.log(BETTER / (1 - BETTER) / (BASE / (1 - BASE)))
    for day in (100, 500, 1500):
        random, n = np.random.default_rng(0), np.arange(day, most + 1, day)
        taken: dict[str, list[int]] = {}
        for _ in range(runs):
            x = random.binomial(day, [BASE, BETTER], (len(n), 2))
            pulls, mean = np.stack([n, n], axis=1), np.cumsum(x, axis=0) / np.stack([n, n], axis=1)
            for hope in (False, True):
                found = Stratified.odds(np.full((len(n), 2), day), x, 0, hoped if hope else 0.0).evidence[:, 1, 0]
                problem = BetterThanControl(expected=expected if hope else None)
                pooled, name = np.zeros(len(n)), "hoped" if hope else "plain"
                for start in range(0, len(n), 20):
                    rows = slice(start, start + 20)
                    pooled[rows] = problem.arm_evidence(pulls[rows], mean[rows], distribution="bernoulli")[:, 1, 0]
                    if pooled[rows].max() >= NEED:
                        break
                sums = averages(np.full((len(n), 2), day), x, 0, [0.5, 0.5])[:, 1, 0]
                for kind, value in (("strata", found), ("pooled", pooled), ("averages", sums)):
                    over = value >= NEED
                    taken.setdefault(f"{kind}, {name}", []).append(int(n[np.argmax(over)] if over.any() else most))
        for name in ("plain", "hoped"):
            strata, pooled, sums = (np.mean(taken[f"{kind}, {name}"]) for kind in ("strata", "pooled", "averages"))
            ratio = f"{strata / pooled:.3f} of the pooled {pooled:.0f}; known shares {sums / pooled:.3f}"
            print(f"{day} + {day} a day, {name}: {strata:.0f} visitors of each arm, {ratio}", flush=True)


def drift(runs: int = 400, days: int = 60, a_day: int = 2000) -> None:
    """A/A: the rate moves from day to day, and traffic at random, or with the rate; effects of either sign."""
    for name in ("traffic at random", "traffic follows the rate", "effects of either sign, known shares"):
        random, hits = np.random.default_rng(1), {"strata": 0, "pooled": 0, "averages": 0}
        for _ in range(runs):
            level = random.uniform(0.7, 1.4, days)
            part = random.uniform(0.2, 0.8, days) if "random" in name else np.clip(0.5 + level - 1.05, 0.1, 0.9)
            rate, effect = BASE * level, np.zeros(days)
            if "sign" in name:
                effect, part = np.where(np.arange(days) % 2, 0.01, -0.01), np.full(days, 0.5)
            n_i = random.binomial(a_day, part)
            n = np.stack([a_day - n_i, n_i], axis=1)
            x = random.binomial(n, np.stack([rate, rate + effect], axis=1))
            hits["strata"] += bool((Stratified.odds(n, x, 0).evidence[:, 1, 0] >= NEED).any())
            some = np.cumsum(n, axis=0)[9::10]
            pooled = BetterThanControl().arm_evidence(
                some, np.cumsum(x, axis=0)[9::10] / some, distribution="bernoulli"
            )
            hits["pooled"] += bool((pooled[:, 1, 0] >= NEED).any())
            so_far = np.cumsum(n.sum(axis=1) * effect) <= 0
            if "sign" in name:
                hits["averages"] += bool((averages(n, x, 0, [0.5, 0.5])[so_far, 1, 0] >= NEED).any())
        print(f"A/A, {name}: " + "; ".join(f"{kind} {share(k, runs)}" for kind, k in hits.items()), flush=True)


# --- a common spread --------------------------------------------------------------------------------------------------

DESIGNS = (
    "8 + 1 wells",
    "1 degree of freedom",
    "2 degrees of freedom",
    "one control well",
    "chases sigma",
    "chases effect and sigma",
)


def chased(random: Any, design: str, strata: int, sigma: float = 1.0) -> tuple[Any, Any, Any]:
    """n, means and squares (S, 3) of a control, an arm at the edge 0 and one for squares alone, chosen by looking."""
    n, mean, squares = (np.zeros((strata, 3)) for _ in range(3))
    W = Z = off = 0.0
    free = 0
    for s in range(strata):
        small = free > 0 and off < free * sigma**2  # the spread looks smaller than it is
        lucky = Z > 0
        wells = {"8 + 1 wells": (8, 1, 0), "one control well": (1, 3, 0)}.get(design, (1, 1, 0))
        if s == 0 and design not in ("8 + 1 wells", "one control well"):
            wells = (2 if design == "1 degree of freedom" else 3, 1, 0)
        elif design == "chases sigma":
            wells = (1, 1, 0) if small else (1, 1, 8)
        elif design == "chases effect and sigma":
            wells = ((1, 1, 0) if small else (1, 1, 8)) if lucky else (6, 6, 0)
        for i, k in enumerate(wells):
            if k:
                y = random.normal(0.0, sigma, k)
                n[s, i], mean[s, i], squares[s, i] = k, y.mean(), ((y - y.mean()) ** 2).sum()
                free, off = free + k - 1, off + squares[s, i]
        w = 1 / (1 / wells[0] + 1 / wells[1])
        W, Z = W + w, Z + w * (mean[s, 1] - mean[s, 0])
    return n, mean, squares


def edges(runs: int = 20_000, strata: int = 12) -> None:
    for design in DESIGNS:
        random, hits, stopped = np.random.default_rng(2), np.zeros(2, int), np.zeros((runs, 2))
        for run in range(runs):
            found = Stratified.common(*chased(random, design, strata), 0).evidence[:, 1]
            hits += (found >= NEED).any(axis=0)
            for side in range(2):
                at = np.flatnonzero(found[:, side] >= 1.0)
                stopped[run, side] = math.exp(found[at[0] if len(at) else -1, side])
        means = "; ".join(
            f"{x:.3f} +- {2.6 * s / math.sqrt(runs):.3f}"
            for x, s in zip(stopped.mean(axis=0), stopped.std(axis=0), strict=True)
        )
        rates = "; ".join(share(int(k), runs) for k in hits)
        print(f"{design}: ever 20 {rates}; mean of the value where it first is e, or last: {means}", flush=True)


def ends(runs: int = 1000, strata: int = 8) -> None:
    """Intervals that leave out the effect at any look; it is 0, or a log odds ratio of .3."""
    for design in DESIGNS:
        random, wrong, width = np.random.default_rng(3), 0, []
        for _ in range(runs):
            n, mean, squares = chased(random, design, strata)
            looks = [Stratified.common(n[:s], mean[:s], squares[:s], 0).interval(DELTA)[1] for s in (1, 2, 3, strata)]
            wrong += any(low > 0 or high < 0 for low, high in looks)
            width.append(looks[-1][1] - looks[-1][0])
        print(f"common, {design}: {share(wrong, runs)}; width at the end {np.median(width):.2f} sigma", flush=True)
    for n, p in ((40, 0.03), (400, 0.03), (4000, 0.3)):
        random, wrong, width = np.random.default_rng(4), 0, []
        for _ in range(runs // 2):
            rate = p * random.uniform(0.7, 1.4, 20)
            odds = rate / (1 - rate) * math.exp(0.3)
            x = random.binomial(n, np.stack([rate, odds / (1 + odds)], axis=1))
            looks = [Stratified.odds(np.full((s, 2), n), x[:s], 0).interval(DELTA)[1] for s in (1, 3, 10, 20)]
            wrong += any(low > 0.3 or high < 0.3 for low, high in looks)
            width.append(looks[-1][1] - looks[-1][0])
        print(f"odds, {n} + {n} of {p:g}, 20 days: {share(wrong, runs // 2)}; width {np.median(width):.2f}", flush=True)


def same(tables: int = 20) -> None:
    """False alarms after any stratum: of one effect (60 arms a table), unlike spreads and planned shares."""
    for strata, n, p in ((2, 130, 0.03), (10, 130, 0.03), (30, 130, 0.03), (30, 40, 0.03), (30, 2000, 0.03)):
        random, least = np.random.default_rng(5), []
        for _ in range(tables):
            sizes = np.full((strata, 61), n)
            sizes[:, 0] *= 100
            x = random.binomial(sizes, p)
            looks = [Stratified.odds(sizes[:s], x[:s], 0).same[1:] for s in range(2, strata + 1)]
            least.append(np.min(looks, axis=0))
        small = np.concatenate(least)
        rates = " ".join(f"<= {level:g}: {share(int((small <= level).sum()), len(small))};" for level in (0.05, 0.01))
        print(f"one odds ratio, {strata} strata, expected successes {n * p:g}: p {rates}", flush=True)
    for arms, wells in ((2, (8, 1)), (8, (8, 1)), (60, (8, 1)), (8, (8, 2)), (8, (1, 4)), (2, (1, 4))):
        random, ever, now, low = np.random.default_rng(6), 0, 0, 0
        n = np.tile([wells[0], *[wells[1]] * arms], (12, 1))
        for _ in range(50 * tables):
            mean = random.normal(size=n.shape) / np.sqrt(n)
            squares = np.where(n > 1, random.chisquare(np.maximum(n - 1, 1)), 0.0)
            looks = [Stratified.common(n[:s], mean[:s], squares[:s], 0) for s in range(1, 13)]
            now, ever = now + looks[-1].unlike, ever + any(one.unlike for one in looks)
            low += min(one.same[1] for one in looks) <= DELTA
        rates = f"{share(now, 50 * tables)} after 12 plates; ever {share(ever, 50 * tables)}"
        print(f"unlike spreads, {arms} arms, {wells[0]} + {wells[1]} wells: {rates}; one effect {low}", flush=True)
    for name, split, planned in (("50/50", 0.5, [1, 1]), ("90/10", 0.1, [9, 1]), ("50.5/49.5", 0.505, [1, 1])):
        for a_day in (3, 200, 2000):
            random, seen = np.random.default_rng(7), 0
            for _ in range(10 * tables):
                n = random.binomial(a_day, split, 50)
                counts = np.stack([a_day - n, n], axis=1)
                seen += any(mismatch(counts[:s], planned) <= DELTA for s in range(1, 51))
            print(f"{name} for {planned}, 50 days of {a_day}: {share(seen, 10 * tables)} with p <= .05", flush=True)


# --- a laboratory -----------------------------------------------------------------------------------------------------

COMPOUNDS, CONTROLS, WELLS, NOISE, PLATE = 60, 8, 24, 6.0, 5.0
IN, OUT = 16.0, 24.0  # of DMSO + 20 +- 4
LEVEL = math.log(COMPOUNDS / DELTA)


def compounds(kind: str, random: Any) -> Any:
    """The true differences of compounds from DMSO."""
    if kind == "screen":  # the same in all runs
        fixed = np.random.default_rng(5)
        means = np.concatenate([fixed.uniform(0, 14, 44), fixed.uniform(26, 60, 16)])
        fixed.shuffle(means)
        return means.round(1) - 5.0
    return random.normal(20, 15, COMPOUNDS) if kind == "normal" else np.full(COMPOUNDS, float(kind))


def screened(kind: str, seed: int, rule: str, repeats: int = 1, ratio: float = 1.0, plates: int = 20) -> list[float]:
    """Compounds decided after 240, 480 and 640 wells, wrong ones, and whether spreads were ever found unlike.

    rule: which open compounds come next, "fewest" wells, "quick" decisions, or "chases": those nearest to an error.
    ratio: the largest spread over the least. Above 1 the run ends where spreads look unlike.
    """
    random = np.random.default_rng(seed)
    truth = compounds(kind, random)
    spreads = NOISE * np.exp(random.uniform(0, math.log(ratio), COMPOUNDS + 1))
    n, mean, squares = (np.zeros((plates, COMPOUNDS + 1)) for _ in range(3))
    verdicts, most, decided = np.zeros(COMPOUNDS, int), np.zeros(COMPOUNDS), np.zeros(plates + 1)
    found, unlike = None, False
    for p in range(plates):
        is_open = np.flatnonzero(verdicts == 0)
        if not len(is_open) or unlike and ratio > 1.0:
            decided[p + 1 :] = decided[p]
            break
        wells, keys = n[:p, 1:].sum(axis=0), np.zeros(COMPOUNDS)
        if found is None or rule == "fewest":
            keys = wells
        else:
            effect = np.where(found.counts[1:] > 0, found.effect[1:], 20.0)
            if rule == "quick":
                far = np.maximum(np.abs(effect - 20) + 4, 1.0) / found.spread
                keys = np.where(wells > 0, np.maximum(LEVEL + 1 - most, 0.3) / (far**2 / 2), 0.0)
            else:  # the evidence for what is wrong of each
                keys = -np.where(truth <= 20, found.evidence[-1, 1:, 0], found.evidence[-1, 1:, 1])
        order = is_open[np.lexsort((random.random(len(is_open)), keys[is_open]))][: WELLS // repeats]
        drawn = np.zeros(COMPOUNDS, int)
        for well in range(WELLS):
            drawn[order[well % len(order)]] += 1
        here = PLATE * random.normal()
        for i, k in enumerate([CONTROLS, *drawn]):
            if k:
                y = (truth[i - 1] if i else 0.0) + here + spreads[i] * random.normal(size=k)
                n[p, i], mean[p, i], squares[p, i] = k, y.mean(), ((y - y.mean()) ** 2).sum()
        found = Stratified.common(n[: p + 1], mean[: p + 1], squares[: p + 1], 0, (IN, OUT))
        unlike |= found.unlike
        up, down = found.evidence[-1, 1:].T
        most = np.maximum(up, down)
        fresh = (verdicts == 0) & (most >= LEVEL)
        verdicts[fresh] = np.where(up > down, 1, -1)[fresh]
        decided[p + 1] = (verdicts != 0).sum()
    wrong = ((verdicts == 1) & (truth <= IN) | (verdicts == -1) & (truth >= OUT)).sum()
    at = [decided[wells // (CONTROLS + WELLS)] for wells in (224, 480, 640)]
    return [*at, float(wrong), float(unlike)]


def laboratory(runs: int = 300) -> None:
    cells: list[tuple[str, str, dict[str, Any]]] = [
        (kind, rule, more)
        for kind in ("screen", "normal")
        for rule, more in (("quick", {}), ("fewest", {}), ("quick", {"repeats": 2}), ("quick", {"ratio": 3.0}))
    ]
    cells += [(kind, rule, {}) for kind in ("16", "24") for rule in ("chases", "quick")]
    cells += [(kind, "chases", {"ratio": 3.0}) for kind in ("16", "24")]
    for kind, rule, more in cells:
        rows = np.array([screened(kind, seed, rule, **more) for seed in range(runs)])
        what = f"{kind} {rule} {more or ''}: decided {rows[:, :3].mean(axis=0).round(1)} after 224, 480, 640 wells"
        errors, stand = (int(((rows[:, 3] > 0) & there).sum()) for there in (True, rows[:, 4] == 0))
        print(f"{what}; 40 after 480: {(rows[:, 1] >= 40).mean():.2f}; unlike {rows[:, 4].mean():.2f}; ", end="")
        print(f"runs with an error {share(errors, runs)}; that stands {stand}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["visitors", "drift", "edges", "ends", "same", "laboratory"])
    parser.add_argument("--runs", type=int, help="of each cell, in place of the default")
    asked, begun = parser.parse_args(), time.time()
    globals()[asked.what](*([] if asked.runs is None else [asked.runs]))
    print(f"{time.time() - begun:.0f} s")
