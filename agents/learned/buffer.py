"""`RelativeBuffer`: advantages in units of the error that is left, compared among episodes that share their samples.

With shaped rewards the first pulls of an episode bring most of what can be won, and the last ones, where policies
differ, hardly anything: on their scale the noise of the first would drown the last. Let e(s) be the mean posterior
error of the arms in state s, to some power. The critic predicts U(s) = V(s) / e(s); with V(s) = r + gamma V(s'), it is
U(s) = r / e(s) + gamma (e(s') / e(s)) U(s'), and generalised advantages likewise. An advantage that is handed to the
algorithm is in units of the mean of e over all slots at the same time, so that early and late decisions count alike,
but an episode by how much is at stake in it: an index, which sees one arm at a time, cannot tell the few episodes that
make most of the loss from the many that make none, and must serve the few.

Most of the noise of an advantage is the luck of the instance and of its samples. Siblings, slots that play the same
episode, share it: the m-th sample of an arm is the same for all of them, whenever they pull it. The mean advantage of
its siblings at the same time is therefore a good baseline for an action. It has been taken without knowledge of the
action, so that the policy gradient keeps its mean (a baseline that depends on the input: Mao et al., ICLR 2019).

On a mix, the advantages of each environment are divided by their standard deviation, so that none drowns the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.buffers import RolloutBuffer

from bandit_envs import FEATURES

__all__ = ["RelativeBuffer"]

_ERROR = FEATURES.index("error")
LEAST = 1e-5  # errors below this are taken for it


class RelativeBuffer(RolloutBuffer):
    """SB3's rollout buffer, for `NativeVecEnv` with features; a power is for shaped rewards with gamma = 1.

    Args:
        *args, **kwargs: of SB3's. power: e(s) is the mean error to this power; 0: no units, as in SB3's own buffer.
        siblings: so many slots in a row play the same episode; their number divides that of the slots.

    Attributes:
        parts: how many slots in a row belong to each environment of a mix.
    """

    def __init__(self, *args: Any, power: float = 1.0, siblings: int = 1, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.power, self.siblings, self.parts = power, siblings, [self.n_envs]

    def compute_returns_and_advantage(self, last_values: Any, dones: NDArray[Any]) -> None:
        """As in SB3, with a discount that depends on the states."""
        last: NDArray[np.float32] = last_values.clone().cpu().numpy().flatten()
        steps, n = self.rewards.shape
        error = self.observations.reshape(steps, n, -1, len(FEATURES))[..., _ERROR].mean(2, dtype=np.float64)
        unit = np.maximum(error, LEAST) ** self.power
        after = np.append(unit[1:], unit[-1:], axis=0)  # of the observation after the last nothing is known here
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
        ends = np.cumsum(self.parts)[:-1]  # slots of a part are at the same time of their episodes
        for part, own in zip(np.split(self.advantages, ends, 1), np.split(unit, ends, 1), strict=True):
            part *= own / own.mean(1, keepdims=True)
        if self.siblings > 1:
            families = self.advantages.reshape(steps, -1, self.siblings)
            families -= families.mean(2, keepdims=True)
            families *= self.siblings / (self.siblings - 1)
        for part in np.split(self.advantages, ends, 1):
            part /= max(float(part.std()), 1e-8)
