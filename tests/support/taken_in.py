"""What a certificate of a table keeps after each of some pulls."""

from __future__ import annotations

from bandit_envs.kernels import jit
from bandit_envs.stopping import nearest_alternative

__all__ = ["take_in"]


@jit
def take_in(address, numbers, tables, pulls, mean, scratch, inside, out):
    """Ask the routine after each of the pulls (T, K), tables (E, K N D); scratch (E, T, S) is what it then keeps."""
    for e in range(len(tables)):
        for t in range(len(pulls)):
            if t > 0:
                scratch[e, t] = scratch[e, t - 1]
            inside[e, t, 0] = -1
            nearest_alternative(
                address, pulls[t], mean[e, t], tables[e], inside[e, t], numbers, scratch[e, t], out[e, t]
            )
