"""The distribution of triangular arms, and an instance of it."""

import numpy as np

from bandit_envs import Instance, Tabulated


def quantiles(mode):
    """The quantiles of arms with these modes, a row for each."""
    u, c = np.linspace(0, 1, 513), mode[..., None]
    return np.where(u < c, np.sqrt(u * c), 1 - np.sqrt((1 - u) * (1 - c)))


class Triangular(Tabulated):
    """Arms on [0, 1] whose density rises linearly up to the mode and falls linearly after it.

    Args:
        mode: (K,) modes, in [0, 1]. The mean of an arm is (1 + mode) / 3.
    """

    distribution, mean_range = "triangular", (1 / 3, 2 / 3)

    def __init__(self, mode):
        self.mode = np.asarray(mode, np.float64)
        super().__init__(quantiles(self.mode))

    def to_dict(self):
        return {"distribution": self.distribution, "mode": self.mode.tolist()}

    @classmethod
    def with_means(cls, means, spread):
        """Arms with these means (K,), for samplers."""
        return cls(3 * means - 1)

    @staticmethod
    def pack(means, spread):
        """The tables (..., K, 513) of arms with means (..., K, 1), for samplers."""
        return quantiles(3 * means[..., 0] - 1)


def pyramids(arms: int = 8) -> Instance:
    """Triangular arms with modes from 0 to 1 at equal steps."""
    defaults = {"FarGood": {"threshold": 0.5, "epsilon": 0.1, "budget": 400}}
    return Instance(Triangular(np.linspace(0, 1, arms)), f"pyramids(arms={arms})", defaults)
