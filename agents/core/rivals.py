"""The two arms that decide which arms are the k best, by confidence bounds that a tree holds.

Bounds whose widths change with the number of pulls alone are put in after each pull. Where all widths grow with time,
m +- s / sqrt(N) with a scale s common to all arms, the tree holds those of an earlier scale, and a search by branch and
bound allows for what they have grown since; after .3 % all are put in again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from bandit_envs.kernels import inlined, part

from . import trees
from .trees import is_inside, lower, upper

MOST_GROWTH = 0.003  # of the scale, since bounds were last put into the tree


class Rivals(NamedTuple):
    """h, inside with the least lower bound; l, outside with the largest upper bound; -1 where there is none."""

    h: int
    l: int  # noqa: E741
    gap: float  # U_l - L_h


@part
def put_running(tree, i, m, C):
    """Put the mean m of arm i into the tree, and bounds by the width C, which never widen again."""
    trees.put(tree, i, m, max(m - C, lower(tree, i)), min(m + C, upper(tree, i)), is_inside(tree, i))


@part
def put_scaled(tree, i, m, N, scale):
    """Put the mean m of N samples of arm i into the tree, and bounds by the width scale / sqrt(N)."""
    spread = 1.0 / math.sqrt(float(N))
    trees.put(tree, i, m, m - scale * spread, m + scale * spread, is_inside(tree, i))
    trees.put_spread(tree, i, spread)


@part
def rivals(tree):
    """The two arms that decide, by the bounds in the tree; inside are the best by estimate."""
    trees.settle_best(tree)
    h, l = trees.argmin_lower_inside(tree), trees.argmax_upper_outside(tree)  # noqa: E741
    return Rivals(h, l, upper(tree, l) - lower(tree, h))


@inlined
def scaled_rivals(ep, tree, scale):
    """The same by bounds of this scale, which does not fall; `ep.now.scale` is the one of those in the tree."""
    growth = scale - ep.now.scale
    if growth > MOST_GROWTH * ep.now.scale:
        ep.now.scale, growth = scale, 0.0
        for i in range(len(ep.pulls)):
            put_scaled(tree, i, ep.mean[i], ep.pulls[i], scale)
        trees.build(tree)
    trees.settle_best(tree)
    h, low = trees.grown_lower_inside(tree, growth)
    l, high = trees.grown_upper_outside(tree, growth)  # noqa: E741
    return Rivals(h, l, high + low)
