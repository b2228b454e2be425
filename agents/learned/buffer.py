"""`RelativeBuffer`: advantages in units of the error that is left, compared among episodes that share their samples.

Units. With shaped rewards the first pulls of an episode bring most of what can be won, and the last ones, where
policies differ, hardly anything: the noise of the first advantages would drown the last ones. Let
e(s) be the mean of the feature `error` over the arms in state s, raised to a power. The critic predicts not the value
V(s) but U(s) = V(s) / e(s). From V(s) = r + gamma V(s') follows

    U(s) = r / e(s) + gamma (e(s') / e(s)) U(s'),

so that the generalised advantages are those of SB3 with rewards r / e(s) and with a discount gamma e(s') / e(s) that
depends on the states. They are then multiplied by e(s) over the mean of e of all slots at the same time. So the first
and the last decisions of an episode count alike, but an episode counts by how much is at stake in it: an index policy,
which looks at one arm at a time, cannot tell the few episodes that make most of the loss from the many that make none,
and must serve the few.

Siblings. Most of the noise of an advantage is the luck of the instance and of its samples. Slots that play the same
episode share it, since the m-th sample of an arm is the same for all of them, whenever they pull it. From the advantage
of an action the mean advantage of the other siblings at the same time is subtracted. This baseline does not depend on
the action, so that the expected policy gradient stays what it is (Mao et al., ICLR 2019).

Mixes. The advantages of each environment of a mix are divided by their standard deviation, so that the noise of one
environment does not drown the others.

Saved models name the class of this module: it must stay here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer

from bandit_envs import FEATURES

__all__ = ["RelativeBuffer"]

_ERROR = FEATURES.index("error")
LEAST = 1e-5  # a mean error below this is replaced by it


class RelativeBuffer(RolloutBuffer):
    """SB3's rollout buffer with relative advantages, for `NativeVecEnv` with `observation="features"`.

    Args:
        *args, **kwargs: of SB3's RolloutBuffer.
        power: e(s) is the mean error to this power. 0 leaves out the units. A power other than 0 is for rewards that
            are shaped with gamma = 1.
        siblings: so many slots in a row play the same episode; this divides the number of slots. 1: no siblings.

    Attributes:
        parts: how many slots in a row belong to each environment of a mix; [N] unless it is set.
    """

    def __init__(self, *args: Any, power: float = 1.0, siblings: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.power, self.siblings, self.parts = power, siblings, [self.n_envs]

    def compute_returns_and_advantage(self, last_values: Any, dones: NDArray[Any]) -> None:
        """Fill `advantages` and `returns`, the critic's targets, after a rollout; both are (steps, N).

        Args:
            last_values: U of the states after the last step, a tensor of N.
            dones: whether these begin episodes, (N,).
        """
        last: NDArray[np.float32] = last_values.clone().cpu().numpy().flatten()
        steps, n = self.rewards.shape
        error = self.observations.reshape(steps, n, -1, len(FEATURES))[..., _ERROR].mean(2, dtype=np.float64)
        unit = np.maximum(error, LEAST) ** self.power
        after = np.append(unit[1:], unit[-1:], axis=0)  # the state after the last step is not in the buffer
        running = np.zeros(n)
        for step in reversed(range(steps)):
            final = step == steps - 1
            goes_on = 1.0 - (dones if final else self.episode_starts[step + 1])
            value = last if final else self.values[step + 1]
            discount = self.gamma * goes_on * after[step] / unit[step]
            delta = self.rewards[step] / unit[step] + discount * value - self.values[step]
            running = delta + discount * self.gae_lambda * running
            self.advantages[step] = running
        self.returns = self.advantages + self.values
        ends = np.cumsum(self.parts)[:-1]  # slots of the same environment are at the same time of their episodes
        for part, own in zip(np.split(self.advantages, ends, 1), np.split(unit, ends, 1), strict=True):
            part *= own / own.mean(1, keepdims=True)
        if self.siblings > 1:
            families = self.advantages.reshape(steps, -1, self.siblings)
            families -= families.mean(2, keepdims=True)
            families *= self.siblings / (self.siblings - 1)  # so it is the mean of the others that is subtracted
        for part in np.split(self.advantages, ends, 1):
            part /= max(float(part.std()), 1e-8)
