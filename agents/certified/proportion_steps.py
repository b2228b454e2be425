"""Steps towards the proportions w* of pulls that gather evidence fastest, for any pairs of arms.

At the optimum, w_a is the sum over the closest alternatives c of lambda_c w_a d_a / (sum over the arms of c of w d),
for some lambda (You, Qin, Wang & Yang, COLT 2023). So a step adds to the weights of the two arms of the closest
alternative in the proportion of w d. Later steps weigh more, so that the means of long ago are forgotten.
"""

from __future__ import annotations

import math

from bandit_envs.kernels import part

from .alternatives import cheapest, grow, moved

FORGET = 2.0  # the weights after n steps grow like n^FORGET


@part
def step(sides, book, n):
    """The n-th step: add to the weights of the arms of the closest alternative."""
    mass = book.weight.sum() * FORGET / (n + len(book.weight))
    i = cheapest(sides, book)
    if i < 0:
        return
    alternative = moved(sides, book, i, book.partner[i])
    lowered, raised = alternative.lowered, alternative.raised
    share = 1.0
    if lowered != raised:
        down, up = book.weight[lowered] * alternative.down, book.weight[raised] * alternative.up
        share = down / (down + up) if 0.0 < down + up < math.inf else 0.5
    if share > 0.0:
        grow(sides, book, lowered, book.weight[lowered] + share * mass)
    if share < 1.0:
        grow(sides, book, raised, book.weight[raised] + (1.0 - share) * mass)
