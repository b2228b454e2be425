"""The habits of `evidence` that can be learned: which arm of the cheapest way to be wrong is pulled, and how often.

`evidence` pulls an arm that has far too few pulls (R2), else of the cheapest way the arm with the larger divergence
(R3), a few times in a row (R5). Learned habits scale R2 by `force` and R5 by `hold`, and in R3 multiply the divergence
of the arm that the way lowers by e^l,

    l = lean + crowd c + sum over h of out_h f(sum over j of in_jh x_j),    f(x) = x / (1 + |x|)                     (1)

With force = hold = 1 and all others 0 the pulls are those of `evidence`. When to stop is not learned.

symbols     N_i, N_j pulls of the arm that is lowered and of the one that is raised; t pulls so far; K arms; need: what
            the value of a way must exceed
            c the crowd: an arm that many ways share is worth more pulls than one of its ways says. In the optimal
               proportions of Gaussian arms the best has N_i^2 = sum over all others of N_j^2, where crowd = 1 leads
               TopK: ln(sum over the arms outside of N^2 / N_j^2) - ln(sum over those inside of N^2 / N_i^2)
               AllGood: the arm that the row's is compared with is shared: ln(sum over all others of N^2 / N_row^2),
                  times -1 where the shared arm is the one that is raised
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bandit_envs import part

from .ways import TOP_K

__all__ = ["FORCE", "GENES", "HIDDEN", "HOLD", "PLAIN", "WEIGHTS", "Habits", "lean"]

Floats = NDArray[np.float64]
GENES = ("force", "hold", "lean", "crowd")
FORCE, HOLD, LEAN, CROWD = range(4)  # their places
HIDDEN = 8
INPUTS = (
    "bias",  # 1
    "level",  # the value of the way as a share of `need`, -1 to 0
    "need",  # (need - 6) / 3
    "ratio",  # ln(N_i / N_j) / 2
    "share",  # ln(N_j K / t) / 2
    "crowd",  # c / 2
    "side",  # 1 where the arm that is lowered is in the answer, else -1
)
LAYERS = len(INPUTS) + 1  # the last holds `out`
WEIGHTS = tuple(f"{layer}_{h}" for layer in (*INPUTS, "out") for h in range(HIDDEN))
PLAIN = (1.0, 1.0, 0.0, 0.0, *[0.0] * len(WEIGHTS))  # the genes of `evidence`


class Habits(NamedTuple):
    """The habits of candidates, each for as many episodes in a row."""

    own: Floats  # (P, 4)
    nets: Floats  # (P, LAYERS, HIDDEN), or (0, 0, 0) where none changes anything
    per_row: int  # how many episodes in a row have the same habits

    @classmethod
    def of(cls, genes: Any, E: int) -> Self:
        """Of genes (G,) or (P, G), for E episodes."""
        table = np.atleast_2d(np.array(genes, np.float64))
        own, nets = np.split(table, [len(GENES)], axis=1)
        nets = nets.reshape(len(table), LAYERS, HIDDEN)
        return cls(own, nets if nets[:, -1].any() else np.zeros((0, 0, 0)), max(E // len(table), 1))


@part
def _crowd(way, i, pulls, sides, book):
    """c of the way of the row of arm i."""
    lowered, raised = float(pulls[way.lowered]), float(pulls[way.raised])
    inside, outside = 1e-9, 1e-9
    if sides.kind == TOP_K:
        for a in range(len(pulls)):
            N = float(pulls[a])
            inside, outside = (inside + N * N, outside) if book.inside[a] else (inside, outside + N * N)
        return math.log(outside / (raised * raised)) - math.log(inside / (lowered * lowered))
    for a in range(len(pulls)):
        N = float(pulls[a])
        outside += N * N if a != book.partner[i] else 0.0
    if book.partner[i] == way.lowered:
        return math.log(outside / (raised * raised))
    return -math.log(outside / (lowered * lowered))


@part
def lean(way, i, pulls, t, sides, book, habits, row):
    """l [1] for the way of the row of arm i."""
    own, nets = habits.own, habits.nets
    if way.lowered == way.raised or (own[row, CROWD] == 0.0 and len(nets) == 0):
        return own[row, LEAN]
    crowd = _crowd(way, i, pulls, sides, book)
    total = own[row, LEAN] + own[row, CROWD] * crowd
    if len(nets) > 0:
        lowered, raised = math.log(float(pulls[way.lowered])), math.log(float(pulls[way.raised]))
        level = min(max(book.value[i] / sides.need_in, -1.0), 0.0)
        side = 1.0 if book.inside[way.lowered] else -1.0
        share = 0.5 * (raised + math.log(len(pulls) / float(t)))
        for h in range(HIDDEN):
            x = nets[row, 0, h] + level * nets[row, 1, h] + (sides.need_in - 6.0) / 3.0 * nets[row, 2, h]
            x += 0.5 * (lowered - raised) * nets[row, 3, h] + share * nets[row, 4, h]
            x += 0.5 * crowd * nets[row, 5, h] + side * nets[row, 6, h]
            total += nets[row, LAYERS - 1, h] * x / (1.0 + abs(x))
    return total
