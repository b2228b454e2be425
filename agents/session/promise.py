"""What is left of delta for the arms of now, where arms come and go; and what a session can hardly keep of its facts.

A certificate is wrong with probability delta at most for arms that are fixed beforehand. Who withdraws the arms that do
not certify, and adds fresh ones, looks for an error among all arms that there have ever been. So each alternative that
the truth names has a share of delta for as long as the session lasts, in the order in which the arms came:

K_0     arms that there were at the beginning. j = 1, 2, ...: the arms that were added, in order.
r       the fact `reserve`: the part of delta that is kept for arms that come later.
q       what is spent after the first change: r; where nothing was kept, delta once more.
alone   problems in which an arm counts by itself (Threshold, Feasible). Each first arm has (1 - r) / K_0, the j-th
        arm added q / (j (j + 1)), which sum to q. To withdraw an arm changes no share. So it is of all arms but the
        control, where these are compared with one.
pairs   problems that compare arms. Before the first change 1 - r is for the pairs of the first arms, as ever. To
        withdraw an arm makes others the best ones, too, so that from the first change on q is for all pairs: one half
        for the K_0 (K_0 - 1) / 2 pairs of the first arms, the other for the pairs of each added arm with earlier ones,
        1 / (j (j + 1)) of it for the j-th. Of each pair, the truth says in which direction it can be wrong.

The agent on K arms shares what it is given among K arms, or among K - 1 pairs for each arm or more. So it is given K,
or K - 1, times the least share that an arm or a pair of now has, and no share is exceeded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PROBLEMS, Task

SKIPPED = (
    "Pairs of arms are compared on the rows that both could score: if one arm is at least as good as each other one on "
    "those, the answer is within epsilon of it with probability 1 - delta"
)
SKIPPED_ALONE = "The mean of an arm is that of the rows that it could score"  # of Threshold and Feasible


class Share(NamedTuple):
    """What an agent on the arms of now is given of a session's delta."""

    ratio: float = 1.0  # in (0, 1]; 0 where the alternatives of a problem are unknown, so that nothing is certified
    owed: int = 0  # how many times delta may have been spent besides, on earlier arms: 0 or 1


def share_of(task: Task, first: int, active: NDArray[np.int64], changed: bool, ever: int, reserve: float) -> Share:
    """The share of delta of the `active` arms (K,), of `ever` many, `first` at the beginning: the head proves it."""
    if (kept := task.make_problem().control_arm) is not None:  # each other arm counts by itself
        first, ever, active = first - 1, ever - 1, np.delete(active, active == kept)
        active = active - (active > kept)
    later, K = np.sort(active[active >= first]) - first + 1.0, len(active)
    after = reserve or 1.0
    if PROBLEMS.find(task.problem).local or kept is not None:
        return Share(min(float(K * shares_alone(first, active, reserve).min()), 1.0), int(ever > first and not reserve))
    if not changed:
        return Share(1.0 - reserve)
    try:
        if task.certifier(distribution="gaussian").kind not in ("top-k", "all-good"):  # whose alternatives are pairs
            return Share(0.0)
    except ValueError:
        return Share(0.0)
    shares = 0.5 * after / (later * (later + 1.0) * (first + later - 1.0))
    shares = np.append(shares, after / (first * (first - 1.0))) if len(later) < K else shares
    return Share(float((K - 1) * shares.min()), int(reserve == 0))


def shares_alone(first: int, arms: NDArray[np.int64], reserve: float) -> NDArray[np.float64]:
    """The shares of delta of arms that count by themselves, (K,), as their intervals do in all problems."""
    later = np.maximum(arms - first + 1.0, 1.0)
    return np.where(arms < first, (1.0 - reserve) / first, (reserve or 1.0) / (later * (later + 1.0)))
