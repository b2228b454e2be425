"""Tables of scores drawn afresh: their statistics, beside those that the docstring of `ScoreTables` states.

python tests/campaigns/score_tables.py     40 tables of each kind, as stated; the default tests draw 20
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs import ScoreTables
from bandit_envs.kernels.rng import root_key


def draw(sampler: ScoreTables, episodes: Any, seed: int = 1) -> tuple[Any, Any]:
    """Means (E, K) and scores (E, K, N) of these episodes."""
    number = np.array(episodes, np.uint64)
    means, parameters = sampler.draw(np.repeat(root_key(seed)[:, None], len(number), axis=1), number)
    return means, parameters


# Of the docstring: mean, sd of column means, shares of columns, rows and within, correlation; and their sd over tables.
STATED = {
    True: ([0.122, 0.170, 0.343, 0.219, 0.437, 0.366], [0.023, 0.027, 0.062, 0.035, 0.036, 0.034]),
    False: ([0.132, 0.202, 0.363, 0.173, 0.464, 0.319], [0.027, 0.030, 0.058, 0.029, 0.038, 0.043]),
}


DATA = {True: [0.128, 0.179, 0.366, 0.201, 0.433, 0.361], False: [0.137, 0.213, 0.385, 0.164, 0.452, 0.311]}


def statistics(x: Any) -> list[float]:
    """The statistics of a table (N, K)."""
    total, columns, rows = x.var(), x.mean(axis=0).var() / x.var(), x.mean(axis=1).var() / x.var()
    varied = x[:, x.std(axis=0) > 0]
    k = varied.shape[1]
    correlation = (np.corrcoef(varied.T).sum() - k) / (k * (k - 1))
    return [x.mean(), np.sqrt(columns * total), columns, rows, 1 - columns - rows, correlation]


def measured(sampler: ScoreTables, tables: int, seed: int = 7) -> Any:
    """The statistics of each of so many tables, (tables, 6)."""
    return np.array([statistics(one.T) for one in draw(sampler, range(tables), seed)[1][..., :-1]])


def main() -> None:
    for marks in (True, False):
        found = measured(ScoreTables(58, 805, marks), 40)
        print("marks" if marks else "right and wrong")
        for name, row in (("means", found.mean(axis=0)), ("spreads", found.std(axis=0)), ("data", DATA[marks])):
            print(f"    {name:8}", *(f"{x:.3f}" for x in row))


if __name__ == "__main__":
    main()
