"""Tables of scores drawn afresh: their statistics, beside those that the docstring of `ScoreTables` states.

python tests/campaigns/score_tables.py     40 tables of each kind, as stated; the default tests draw 20
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

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


def check_normal() -> None:
    """Each alone in the logits, 1600 of them: Kolmogorov-Smirnov at 1e-6; 2.2 in place of the spread 1.5 is noticed."""
    alone = {"ability": 0.5, "spread": 1e-9, "difficulty": 0.0, "discrimination": 0.0, "noise": 0.0}
    for name, picked in (("spread", np.s_[:, :, 0]), ("difficulty", np.s_[:, 0, :]), ("noise", np.s_[:, ::4, ::10])):
        scores = draw(ScoreTables(40, 40, True, **(alone | {name: 1.5})), range(40))[1][..., :-1]
        logits = np.log(scores / (1 - scores)) - 0.5
        assert stats.kstest(logits[picked].ravel() / 1.5, "norm").pvalue > 1e-6
        assert stats.kstest(logits[picked].ravel() / 2.2, "norm").pvalue < 1e-6
        if name != "noise":  # what is the same for all rows of a candidate, or for all candidates in a row
            assert np.abs(np.diff(logits, axis=2 if name == "spread" else 1)).max() < 1e-7


def check_log_normal() -> None:
    """The logits of two candidates differ by s_n (a_1 - a_2): over rows their logarithm has the spread of log s_n."""
    sampler = ScoreTables(2, 2000, True, 0.0, 1.0, 0.0, 0.5, 0.0)
    scores = draw(sampler, [3])[1][0, :, :-1]
    a, b = np.log(scores / (1 - scores))
    log_s = np.log(np.abs(a - b))
    log_s -= log_s.mean()
    assert stats.kstest(log_s / 0.5, "norm").pvalue > 1e-6
    assert stats.kstest(log_s / 0.65, "norm").pvalue < 1e-6


def check_right_and_wrong() -> None:
    """All candidates and rows alike: 160,000 scores of which each is 1 with 1 / (1 + e), two-sided at 1e-6."""
    ones = draw(ScoreTables(40, 100, False, -1.0, 1e-9, 0.0, 0.0), range(40))[1][..., :-1].sum()
    p = 1 / (1 + np.e)
    assert stats.binomtest(int(ones), 160_000, p).pvalue > 1e-6
    assert stats.binomtest(int(ones), 160_000, p + 0.01).pvalue < 1e-6


def main() -> None:
    for check in (check_normal, check_log_normal, check_right_and_wrong):
        check()
    for marks in (True, False):
        found = measured(ScoreTables(58, 805, marks), 40)
        print("marks" if marks else "right and wrong")
        for name, row in (("means", found.mean(axis=0)), ("spreads", found.std(axis=0)), ("data", DATA[marks])):
            print(f"    {name:8}", *(f"{x:.3f}" for x in row))


if __name__ == "__main__":
    main()
