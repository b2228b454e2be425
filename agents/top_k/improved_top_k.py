"""IMPROVEDTOPK (reconstructed), after Theorem 2 of Chen, Chen, Zhang & Zhou, ICML 2017.

The paper states that (ln 1/epsilon + ln 1/delta) H^(t, epsilon) pulls suffice, without the ln n of ADAPTIVETOPK, and
defers the algorithm to its full version; its pseudo-code and constants are not those here. This is a reconstruction of
ours with the same guarantee: k arms of aggregate regret <= epsilon, with probability 1 - delta. It lets a few arms be
misjudged in every round and pays for them with an eighth of epsilon, so that the confidence of an arm does not have to
hold for all n of them.

symbols     n arms, K = k wanted, S the undecided arms, A the accepted ones, K' = K - |A|; R the number of rounds,
            q = delta epsilon K / (16 n R) the failure of an arm in a round, p_r = ceil(4^r / 2 ln(2 / q)) its pulls
guarantee   Call an arm unlucky in a round whose mean is off by more than 2^-r. On average there are at most q n R such
            cases, so with probability 1 - delta at most epsilon K / 16 (Markov). A wrong decision is an unlucky arm, or
            is paid for by another unlucky one: the best total that can still be reached falls by no more than twice
            their number, the last choice loses 2 2^-r K' <= (7/8) epsilon K more.
cost        2^(2r) ln(n R / (delta epsilon K)) per arm: the form of Theorem 2 where K is a fixed part of n; for K much
            smaller than n, ln(n / K) is the price of this simple version. Half of the gain over ADAPTIVETOPK is another
            matter: the latter takes twice the samples that Hoeffding's inequality needs.
departures  D1 samples of sub-Gaussian scale sigma count as rewards in an interval of width W = 2 sigma

Without its state it refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import flag

from ..core.confidence import delta_of, positive_tolerance_of, scale_of
from .adaptive_top_k import AcceptReject
from .elimination import affordable


def schedule(n: int, K: int, epsilon: float, delta: float) -> list[int]:
    """p_1 .. p_R."""
    R = max(math.ceil(math.log2(16 / (7 * epsilon))), 1)
    q = delta * epsilon * K / (16 * n * R)
    return [math.ceil(4**r / 2 * math.log(2 / q)) for r in range(1, R + 1)]


class ImprovedTopK(AcceptReject):
    """A reconstruction of IMPROVEDTOPK (Chen et al. 2017), not the authors' algorithm.

    It returns k arms of aggregate regret <= epsilon, which is > 0, with probability 1 - delta.

    Args:
        reuse: pool the samples of all rounds, so that a round only tops an arm up, instead of taking fresh ones.
    """

    name = "improved-top-k"
    source = "a reconstruction after Theorem 2 of Chen, Chen, Zhang & Zhou, ICML 2017"
    needs = "delta"
    promises = ("aggregate",)

    def __init__(self, task: Any, delta: float | None = None, reuse: bool = False, sigma: float | None = None) -> None:
        super().__init__(task)
        delta, epsilon = delta_of(self.name, self.task, delta), positive_tolerance_of(self)
        width = 2 * scale_of(self.task, sigma)
        times = [0, *schedule(self.task.K, self.k, epsilon / width, delta)]
        self.times = affordable(self.name, epsilon, times)
        self.margin = np.ldexp(2 * width, -np.arange(len(self.times)))
        self.tolerance, self.reuse = 7 / 8 * epsilon, flag("reuse", reuse)
