"""The law of triangular arms, and an instance of it."""

import numpy as np

from bandit_envs import Instance, Tabulated


class Triangular(Tabulated):
    """Arms on [0, 1] whose density rises linearly up to the mode and falls linearly after it.

    Args:
        mode: (K,) modes, in [0, 1]. The mean of an arm is (1 + mode) / 3.
    """

    law = "triangular"

    def __init__(self, mode):
        self.mode, u = np.asarray(mode, np.float64), np.linspace(0, 1, 513)
        c = self.mode[:, None]
        super().__init__(np.where(u < c, np.sqrt(u * c), 1 - np.sqrt((1 - u) * (1 - c))))

    def to_dict(self):
        return {"law": self.law, "mode": self.mode.tolist()}


def pyramids(arms: int = 8) -> Instance:
    """Triangular arms with modes from 0 to 1 at equal steps."""
    defaults = {"FarGood": {"threshold": 0.5, "epsilon": 0.1, "budget": 400}}
    return Instance(Triangular(np.linspace(0, 1, arms)), f"pyramids(arms={arms})", defaults)
