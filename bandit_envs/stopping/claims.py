"""What is certain of pairs of arms, result by result: docs/certificates-theory.md has the claims that follow."""

from __future__ import annotations

import numpy as np

from ..kernels.structs import kernel
from .boundaries import refresh
from .distributions import Move
from .nearest import paired


@kernel
def certified_pairs(numbers, moves, needs, arms, shown, at, pulls, mean, variance, scratch, first, least):
    """Take in results (T,), and note with which of them pairs of scalar arms are certified for the first time.

    Of the numbers of a `Certifier`: moves (M, 3), a, b and the floor of each `Move`; needs (M,), what the evidence must
    reach; `arms` (T,), of the results; shown (T, 5), then the arm's pulls, mean, three central moments; `at` (T,), the
    number of each result. Kept from call to call, all 0 at first: pulls, mean (K,), variance (3 K,), the scratch; and
    first (M, K, K): the number of the result with which the mean of arm i is certainly above a times that of j plus b.
    Arms with fewer than `least` results wait.
    """
    K = len(pulls)
    for t in range(len(arms)):
        one = arms[t]
        pulls[one], mean[one] = np.int64(shown[t, 0]), shown[t, 1]
        for n in range(3):
            variance[n * K + one] = shown[t, 2 + n]
        refresh(numbers, pulls, mean, variance, scratch, one, one + 1)
        for m in range(len(moves)):
            move = Move(moves[m, 0], moves[m, 1], moves[m, 2])
            for n in range(2 * K):
                i, j = (one, n) if n < K else (n - K, one)
                is_open = i != j and min(pulls[i], pulls[j]) >= least and first[m, i, j] == 0
                is_open = is_open and mean[i] > move.a * mean[j] + move.b
                if is_open and paired(numbers, mean, scratch, i, j, move, needs[m], needs[m]) >= needs[m]:
                    first[m, i, j] = at[t]
