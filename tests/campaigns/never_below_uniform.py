"""Is an agent that learns, or looks ahead, ever below `uniform`? Random cells: problems x K x T / K x distributions.

    python tests/campaigns/never_below_uniform.py [CELLS] [SEED] [--part 1/2] [--rows FILE] [--minutes 12]
    python tests/campaigns/never_below_uniform.py --rows FILE --again SEED:CELL [--episodes 3000]

Each of the agents and `uniform` play the same 300 episodes of a cell. p is that of a paired t-test, or, where that is
between 1e-7 and .01, of random signs of the differences, as scores are skewed. Holm's correction is over all cells and
agents; the exit code is 1 if it refuses one at .01. A cell that would take more than `--seconds` of one core is drawn
again within its decades of K and T / K; after 20 draws T is cut, which is said. Rows are kept in the file, and a second
call goes on; `--part` plays each second cell, for two processes. `--again` plays a cell on fresh episodes.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import agents

PROBLEMS = ("Threshold", "BestArm", "TopK", "AllGood", "Feasible", "BetterThanControl")
AGENTS, EPISODES, LEVEL, SIGNS = ("look-ahead", "ppo", "evolved"), 300, 0.01, 200_000
ARMS, PULLS = (5, 14, 37, 100), (2, 10, 100, 500)  # the decades of K and of T / K
BETAS = stats.beta(2 * np.linspace(0.1, 5, 100)[:, None], 6).ppf(np.linspace(0, 1, 65)).tolist()
SKEWED = stats.beta(2, 5).ppf((np.arange(24) + 0.5) / 24).tolist()
RANGES = {"bernoulli": (0, 1), "rates": (0.02, 0.05), "near 1": (0.9, 1), "close": (0.4, 0.6), "bounded": (0.2, 0.8)}
Cell = dict[str, Any]


def log_uniform(g: np.random.Generator, low: float, high: float) -> float:
    """A number between two others, uniform in its logarithm."""
    return float(math.exp(g.uniform(math.log(low), math.log(high))))


def arms_of(g: np.random.Generator, K: int, D: int, positive: bool) -> tuple[Any, str, tuple[float, float]]:
    """An instance, its name in the table, and where its means lie."""
    kind = str(g.choice([*RANGES, "skewed", "gaussian", "gaussian", "gaussian", *["beta"] * (D == 1)]))
    form: dict[str, Any] = {"arms": K, "dimensions": D}
    if kind == "beta":
        pools = [{"distribution": "tabulated", "quantiles": BETAS}]
        return {"pools": {"pools": pools, "arms": K}}, kind, (0.1, 0.6)
    if kind == "gaussian":
        unit, noise = log_uniform(g, 0.01, 1000), log_uniform(g, 0.1, 10)
        place = unit * (g.uniform(4, 10) if positive else g.choice([0, 1, -30, 100]))
        form |= {"distribution": kind, "mean": {"uniform": [place, place + unit]}, "spread": noise * unit}
        return {"sampler": form}, f"gaussian, noise {noise:.2g} units {unit:.2g}", (place, place + unit)
    low, high = RANGES.get(kind, (0.05, 0.6))
    form["mean"] = {"choice": SKEWED} if kind == "skewed" else {"uniform": [low, high]}
    form |= {"distribution": "uniform", "spread": 0.4} if kind == "bounded" else {}
    return {"sampler": form}, kind, (low, high)


def keywords(g: np.random.Generator, problem: str, K: int) -> tuple[dict[str, Any], str]:
    """The keywords of an environment, but for its budget, and what they are in words."""
    if problem == "BetterThanControl" and g.random() < 0.5:
        kind = str(g.choice(["conversions", "revenue", "marks"]))
        return {"instance": {"ab-tests": {"arms": K, "distribution": kind}}, "control": 0}, kind
    D = int(g.choice([1, 2, 3])) if problem == "Feasible" else 1
    multiplicative = problem == "AllGood" and g.random() < 0.3
    lift = problem == "BetterThanControl" and g.random() < 0.5
    instance, said, (low, high) = arms_of(g, K, D, multiplicative or lift)
    wide, rules = high - low, {"instance": instance}
    share, least, most = g.uniform(-0.3, 0.3), low + 0.1 * wide, high - 0.1 * wide
    if problem in ("Threshold", "Feasible", "BetterThanControl") and g.random() < 0.3:
        rules["tolerance"] = wide * log_uniform(g, 0.01, 0.2)
    if problem == "Threshold":
        rules["threshold"] = g.uniform(least, most)
    elif problem == "TopK":
        rules["k"] = round(log_uniform(g, 1, K / 2))
    elif problem == "AllGood":
        rules["epsilon"] = log_uniform(g, 0.02, 0.5) * (1 - least / most if multiplicative else wide)
        rules["multiplicative"] = multiplicative
    elif problem == "Feasible":
        A = np.eye(D) * g.choice([-1, 1], (D, 1)) if g.random() < 0.5 else np.ones((1, D))
        rules |= {"A": A.tolist(), "b": (A @ g.uniform(low + 0.3 * wide, high - 0.3 * wide, D)).tolist()}
    elif problem == "BetterThanControl":
        rules["control"] = int(g.integers(K))
        rules |= {"lift": 2 * wide * share / (low + high)} if lift else {"margin": wide * share}
    shown = (name for name in ("k", "epsilon", "tolerance", "margin", "lift") if name in rules)
    return rules, said + "".join(f", {name} {rules[name]:.3g}" for name in shown)


def seconds(problem: str, K: int, T: int, kwargs: Any) -> float:
    """What the agents take on one core, about, by measurements at K of 10 and 100."""
    k, slow = kwargs.get("k", 1), 600 if kwargs.get("tolerance") else 0
    ahead = {"TopK": 400 + 80 * k, "BestArm": 500, "AllGood": 170, "BetterThanControl": 120 + slow}
    each = ahead.get(problem, 100 + slow) + 390 + 15_000 / K
    return float(EPISODES * T * K * each * 1e-9)


def cell_of(c: int, seed: int, limit: float) -> Cell:
    """Cell c: its problem, its decades of K and of T / K by turns, all else at random."""
    problem, turn, g = PROBLEMS[c % 6], c // 6, np.random.default_rng([seed, c])
    for draw in range(21):
        i, j = turn % 3, (turn + turn // 3) % 3
        K = round(log_uniform(g, ARMS[i], ARMS[i + 1]))
        kwargs, said = keywords(g, problem, K)
        T = max(round(K * log_uniform(g, PULLS[j], PULLS[j + 1])), K + 1)
        need = seconds(problem, K, T, kwargs)
        if need <= limit or draw == 20:
            break
    cut = max(math.floor(T * limit / need), 2 * K) if need > limit else T
    said += f", cut from T/K {T / K:.0f}" if cut < T else ""
    found = {"cell": f"{seed}:{c}", "problem": problem, "K": K, "T": cut, "said": said}
    return found | {"root": 1 + c, "kwargs": kwargs | {"budget": cut}}


def p_of(x: Any) -> tuple[float, float]:
    """p of "not below 0" in the mean, and the standard error of the mean, of differences x."""
    error, g, below = float(x.std(ddof=1) / math.sqrt(len(x))), np.random.default_rng(0), 1
    p = float(stats.t.cdf(x.mean() / error, len(x) - 1)) if error > 0 else float(x.mean() >= 0)
    if not 1e-7 < p < 0.01:
        return p, error
    for _ in range(SIGNS // 10_000):
        signs = g.integers(0, 2, (10_000, len(x)), np.int8) * 2 - 1
        below += int(np.sum(signs @ x <= x.sum() + 1e-12))
    return (max(p, below / (SIGNS + 1)) if below > 1 else p), error  # so many signs show nothing smaller


def played(cell: Cell, episodes: int) -> list[Cell]:
    """A row for each agent that solves the cell: by how much its score is above that of `uniform`."""
    solve, problem = [one for one in AGENTS if one in agents.names(cell["problem"])], cell["problem"]
    rules = {"episodes": episodes, "seed": cell["root"], "env_kwargs": cell["kwargs"]}
    found = agents.evaluate(["uniform", *solve], problem, progress=False, **rules)
    table, rows = found.episodes.pivot(index="episode", columns="agent", values="score"), []
    for one in solve:
        x = (table[one] - table["uniform"]).to_numpy()
        facts = dict(zip(("p", "error"), p_of(x), strict=True)) | {"agent": one, "less": float(x.mean())}
        rows.append(cell | facts | {"uniform": float(table["uniform"].mean())})
    return rows


def report(rows: list[Cell], most: int = 40) -> int:
    """Print the rows by p; returns how many Holm's correction refuses."""
    below, refused = 0, True
    for i, row in enumerate(rows := sorted(rows, key=lambda row: row["p"])):
        refused = refused and row["p"] <= LEVEL / (len(rows) - i)
        below += int(refused)
        if i < most or refused:
            half, less = 1.96 * row["error"], row["less"]
            name = (
                f"{'BELOW' if refused else '':6s}{row['p']:.1e} {row['agent']:11s}{row['cell']:6s}{row['problem']:18s}"
            )
            scores = f"uniform {row['uniform']:.4f} {less:+.4f} [{less - half:+.4f}, {less + half:+.4f}]"
            print(f"{name}K {row['K']:3d} T/K {row['T'] / row['K']:5.1f} {scores} {row['said']}")
    print(f"{below} of {len(rows)} rows below uniform (Holm, {LEVEL}), {sum(row['less'] > 0 for row in rows)} above")
    return below


def main() -> int:
    """Play what is not in the file, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", nargs="?", type=int, default=120)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    usual: dict[str, Any] = {"part": "1/1", "minutes": 12.0, "seconds": 60.0, "episodes": EPISODES}
    for name, value in usual.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--again")
    asked, begun = parser.parse_args(), time.monotonic()
    warnings.simplefilter("ignore")
    part, parts = map(int, asked.part.split("/"))
    rows = [json.loads(line) for line in asked.rows.open()] if asked.rows and asked.rows.exists() else []
    if asked.again:
        cell = next(row for row in rows if row["cell"] == asked.again)
        return int(report(played(cell | {"root": cell["root"] + 10_000}, asked.episodes)) > 0)
    for c in range(part - 1, asked.cells, parts):
        cell = cell_of(c, asked.seed, asked.seconds)
        if cell["problem"] not in asked.problems or cell["cell"] in {row["cell"] for row in rows}:
            continue
        if time.monotonic() - begun > 60 * asked.minutes:
            print(f"the time is over before cell {cell['cell']}: begin again with the same --rows")
            break
        rows += (made := played(cell, asked.episodes))
        if asked.rows:
            with asked.rows.open("a") as file:
                file.write("".join(json.dumps(row) + "\n" for row in made))
    return int(report(rows) > 0)


if __name__ == "__main__":
    sys.exit(main())
