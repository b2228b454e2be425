"""Random choices of an arm, which are functions of the episode's public seed and the number of pulls so far."""

from __future__ import annotations

from bandit_envs.kernels import agent_uniform, inlined, part

from ..core.algorithm import count_pulls


@inlined
def uniform(ep, own):
    """A uniform number in [0, 1) for the next pull; `own.seed` is the agent's own."""
    return agent_uniform(ep.seed, count_pulls(ep), own.seed)


@part
def draw(weight, total, u):
    """An arm with probability proportional to its weight (K,), by a uniform u; total > 0 is added up in order."""
    last, partial = len(weight) - 1, 0.0
    for i in range(last):
        partial += weight[i]
        if partial > u * total:
            return i
    return last


@part
def draw_evenly(chosen, size, u):
    """One of the `size` >= 1 arms whose number in `chosen` (K,) is not 0, each as likely, by a uniform number u."""
    last, left = len(chosen) - 1, min(int(u * size), size - 1)
    for i in range(last):
        left -= chosen[i] != 0.0
        if left < 0:
            return i
    return last
