"""How many cells of real tables `paired-elimination` takes: BestArm, delta .05, tolerances of .02 and .05 of the range.

    python tests/campaigns/fewer_cells.py [--orders 30] [--picture FILE] [--hints] [--prices]

All columns, random orders of rows and columns. `b45bbb7` is what it took at that revision, in the same orders: so it
shows what the statistic has gained. --hints: halves of the rows, 20 columns; the other half is the hint, as it is,
turned round, and shuffled. --prices: 8 columns, two of them twenty times dearer, 100 draws; what is paid. It needs the
files of the public data in the folder that BANDIT_ENVS_DATA names, or a network.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from bandit_envs import BestArm, Shared, Task
from bandit_envs.instances.lookup import find
from bandit_envs.kernels import jit
from bandit_envs.stopping import nearest_alternative

DELTA, TOLERANCES = 0.05, (0.02, 0.05)
NAMES = ("gsm", "legalbench", "musr", "wmt", "code")
TABLES = (*(f"models-{name}" for name in NAMES), "translators-ende", "translators-zhen")


@jit
def before(x, e, delta, hope):
    """How many cells it took at b45bbb7: one bet on the leader, which hopes for 1.5 epsilon more; all are asked on."""
    N, K = x.shape
    sums, asked, against, enough = np.zeros(K), np.ones(K, np.bool_), np.ones(K), np.ones((K, K))
    squares, cells = 0.0, 0
    for n in range(N):
        left, first, second = N - n, -1, -1
        for i in range(K):
            if asked[i] and (first < 0 or sums[i] > sums[first]):
                first, second = i, first
            elif asked[i] and (second < 0 or sums[i] > sums[second]):
                second = i
        for b in range(K):
            if n > 0 and asked[b] and second >= 0:
                c, v, extra = first if b != first else second, (1.0 + squares) / (5.0 + n), e * N / left
                S = sums[c] - sums[b]
                m = min(max(-S / left, -1.0), 1.0)
                hoped = S / (n + 5.0) - m + hope * extra if -left < S else 0.0
                bet = min(hoped / (v + hoped * hoped), 0.98 / (1.0 + m + 1e-12)) if hoped > 0.0 else 0.0
                factor = 1.0 + bet * (x[n, c] - x[n, b] - m)
                against[b] = min(against[b] * factor, 1e200)
                enough[c, b] = min(enough[c, b] * (1.0 + bet * extra / factor), 1e200)
        count, total, square, leader, least = 0.0, 0.0, 0.0, -1, math.inf
        for i in range(K):
            if asked[i]:
                sums[i], count, total, square = sums[i] + x[n, i], count + 1.0, total + x[n, i], square + x[n, i] ** 2
                cells += 1
                leader = i if leader < 0 or sums[i] > sums[leader] else leader
        squares += 2.0 * max(count * square - total * total, 0.0) / (count * (count - 1.0))
        for b in range(K):
            if asked[b] and b != leader:
                lead, rest = sums[leader] - sums[b], N - n - 1 + 1e-11 * N
                least = min(least, against[b] * enough[leader, b]) if lead + e * N <= rest else least
                asked[b] = against[b] < 1.0 / delta and lead <= rest
        asked[leader] = asked[leader] and (least >= 1.0 / delta or against[leader] < 1.0 / delta)
        if least >= 1.0 / delta or asked.sum() <= 1:
            break
    return cells


@jit
def play(address, numbers, scores, K, N, scratch, inside, out, pulls, mean, need):
    """Pull what the certificate asks for until it holds."""
    while True:
        inside[0] = -1
        nearest_alternative(address, pulls, mean, scores, inside, numbers, scratch, out)
        if out[0] >= need:
            return
        i = int(out[2])
        mean[i] = (mean[i] * pulls[i] + scores[i * N + pulls[i]]) / (pulls[i] + 1)
        pulls[i] += 1


def pulled(x: Any, epsilon: float, hint: Any = None) -> tuple[Any, bool]:
    """The pulls of each column of scores x (N, K) in [0, 1], in this order, and whether the answer is right."""
    (N, K), problem = x.shape, BestArm(epsilon)
    arms = Shared(x, (0.0, 1.0))
    known: dict[str, Any] = {"distribution": "shared", "support": (0.0, 1.0), "sigma": arms.sigma, "items": N}
    task = Task(problem.name, problem.settings, K, delta=DELTA, hint=None if hint is None else tuple(hint), **known)
    one = task.certifier().decider(DELTA)
    pulls, inside, scores = np.zeros(K, np.int64), np.zeros(K, np.int8), np.ascontiguousarray(x.T).ravel()
    scratch, out, need = np.zeros(one.scratch), np.zeros(2 + 3 * K), math.log(1 / DELTA)
    play(one.address, one.numbers, scores, K, N, scratch, inside, out, pulls, np.zeros(K), need)
    means = x.mean(axis=0)
    return pulls, bool(means[np.flatnonzero(inside)[0]] >= means.max() - epsilon - 1e-12)


def table_of(name: str) -> Any:
    """The scores of a table, (N, K), scaled to [0, 1]."""
    arms: Any = find(name).arms
    low, high = arms.support
    return (arms.parameters[:, : arms.items].T - low) / (high - low)


def drawn(x: Any, g: Any, columns: int) -> Any:
    """Some columns in a random order, in rows in a random order."""
    return np.ascontiguousarray(x[g.permutation(len(x))][:, g.permutation(x.shape[1])[:columns]])


def mean_and_error(values: Any) -> str:
    """A mean, and its standard error."""
    return f"{np.mean(values):.3f} (se {np.std(values) / math.sqrt(len(values)):.3f})"


def picture(path: str, shares: dict[tuple[str, float], float]) -> None:
    """Bars of the shares, by table and tolerance."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2))
    places, names = np.arange(len(TABLES)), TABLES[::-1]
    for j, (epsilon, colour) in enumerate(zip(TOLERANCES[::-1], ("#9ecae1", "#3182bd"), strict=True)):
        widths = [100 * shares[name, epsilon] for name in names]
        axes.barh(places + (j - 0.5) * 0.38, widths, 0.36, label=f"ε = {epsilon:g}", color=colour)
    axes.set_yticks(places, names)
    axes.set_xlabel("share of the cells (%)")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def of_cells(orders: int, path: str | None) -> None:
    """Shares of the cells."""
    ratios, found = [], dict[tuple[str, float], float]()
    for name in TABLES:
        x, g = table_of(name), np.random.default_rng(1)
        for epsilon in TOLERANCES:
            tables = [drawn(x, g, x.shape[1]) for _ in range(orders)]
            runs = [pulled(one, epsilon) for one in tables]
            shares = [pulls.sum() / x.size for pulls, _ in runs]
            earlier = [before(one, epsilon, DELTA, 1.5) / x.size for one in tables]
            wrong = sum(not right for _, right in runs)
            ratios.append(float(np.mean(shares) / np.mean(earlier)))
            found[name, epsilon] = float(np.mean(shares))
            print(
                f"{name}, {epsilon}: {mean_and_error(shares)}, b45bbb7 {mean_and_error(earlier)}, "
                f"ratio {ratios[-1]:.2f}, {wrong} of {orders} wrong",
                flush=True,
            )
    print(f"ratios: geometric mean {math.exp(np.mean(np.log(ratios))):.3f}, largest {max(ratios):.2f}")
    if path:
        picture(path, found)


def of_hints(orders: int) -> None:
    """Cells with a hint, in shares of those without."""
    found: dict[str, list[float]] = {"as it is": [], "turned round": [], "shuffled": []}
    wrong = dict.fromkeys(found, 0)
    for name in TABLES:
        x, g = table_of(name), np.random.default_rng(2)
        for epsilon in TOLERANCES:
            for _ in range(orders):
                both, half = drawn(x, g, 20), len(x) // 2
                here, old = np.ascontiguousarray(both[:half]), both[half:].mean(axis=0)
                plain = pulled(here, epsilon)[0].sum()
                for word, hint in zip(found, (old, old.max() + old.min() - old, g.permutation(old)), strict=True):
                    pulls, right = pulled(here, epsilon, hint)
                    found[word].append(pulls.sum() / plain)
                    wrong[word] += not right
    for word, ratios in found.items():
        print(f"hint {word}: {mean_and_error(ratios)}, {wrong[word]} of {len(ratios)} wrong")


def of_prices(draws: int) -> None:
    """What the dear columns cost, of all that is paid; the arms that are pulled are the same without prices."""
    g, paid = np.random.default_rng(3), []
    for _ in range(draws):
        x = drawn(table_of(str(g.choice(TABLES))), g, 8)
        pulls, _ = pulled(x, TOLERANCES[1])
        price = np.where(np.arange(8) < 2, 20.0, 1.0)
        paid.append(float(pulls @ price / (price.sum() * len(x))))
    print(f"two of 8 columns twenty times dearer: {mean_and_error(paid)} of the price of the table")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=30)
    parser.add_argument("--picture")
    parser.add_argument("--hints", action="store_true")
    parser.add_argument("--prices", action="store_true")
    given = parser.parse_args()
    if given.hints:
        of_hints(max(given.orders // 2, 1))
    elif given.prices:
        of_prices(100)
    else:
        of_cells(given.orders, given.picture)


if __name__ == "__main__":
    main()
