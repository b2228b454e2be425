"""`EquivariantPolicy`: one small network shared by all arms, so that permuting the arms permutes the decisions.

The observation (K * F,) is read as K rows of F features. Each row is encoded by the same layers; the mean and the
maximum of the codes over the arms are the context. An arm's logit comes from its code and the context, the logit of
stopping and the value from the context alone (deep sets: Zaheer et al., NeurIPS 2017). No weight depends on K, and the
policy reads observations of any number of arms.

`deterministic=True` takes the arm with the largest logit. Where others come close, as arms with equal features do, the
logits are computed again in double precision, and the lowest arm within `TIE` of the best is taken: single precision
rounds differently in batches of different sizes, and an episode must not depend on the batch it is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn

__all__ = ["ArmNetwork", "Equivariant", "EquivariantPolicy"]

NEVER = -1e8  # the logit of an action that is not to be taken: its probability is 0, its share of the entropy too
CLOSE, TIE = 1e-3, 1e-9  # far above the rounding errors of single and of double precision


class ArmNetwork(nn.Module):
    """From features (n, K * F) to logits (n, K + 1), the last one of stopping, and the latent of the value (n, hidden).

    Args:
        features: F. hidden: width of the layers. stop: whether stopping is ever wanted; False: its logit is `NEVER`.
    """

    def __init__(self, features: int, hidden: int, stop: bool) -> None:
        super().__init__()
        self.features, self.stop = features, stop
        self.latent_dim_pi, self.latent_dim_vf = 1, hidden  # what SB3 asks for to build its heads
        self.encoder = nn.Sequential(nn.Linear(features, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.context = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.SiLU())
        self.arm, self.surroundings = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden, bias=False)
        self.arm_logit, self.stop_logit = nn.Linear(hidden, 1), nn.Linear(hidden, 1)
        self.value = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU())

    def _read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The codes of the arms (n, K, hidden) and the context (n, hidden)."""
        codes = self.encoder(x.reshape(len(x), -1, self.features))
        return codes, self.context(torch.cat([codes.mean(1), codes.amax(1)], 1))

    def _logits(self, codes: Tensor, context: Tensor) -> Tensor:
        arms = self.arm_logit(nn.functional.silu(self.arm(codes) + self.surroundings(context)[:, None]))[..., 0]
        stop = self.stop_logit(context) if self.stop else arms.new_full((len(arms), 1), NEVER)
        return torch.cat([arms, stop], 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, K + 1) and the latent of the value (n, hidden)."""
        codes, context = self._read(x)
        return self._logits(codes, context), self.value(context)

    def forward_actor(self, x: Tensor) -> Tensor:
        """Logits alone."""
        return self._logits(*self._read(x))

    def forward_critic(self, x: Tensor) -> Tensor:
        """The latent of the value alone."""
        latent: Tensor = self.value(self._read(x)[1])
        return latent


if TYPE_CHECKING:
    _Base = ActorCriticPolicy
else:
    _Base = object


class Equivariant(_Base):
    """Puts `ArmNetwork` into SB3's ActorCriticPolicy; a mixin that fits sb3-contrib's MaskableActorCriticPolicy too.

    Args:
        hidden: width of the layers. stop: whether stopping is ever wanted.
        *args, **kwargs: of the policy class.
    """

    def __init__(self, *args: Any, hidden: int = 32, stop: bool = True, **kwargs: Any) -> None:
        self.hidden, self.stop = hidden, stop
        super().__init__(*args, **{"ortho_init": False, **kwargs})

    def _build_mlp_extractor(self) -> None:
        space: Any = self.action_space
        network: Any = ArmNetwork(self.features_dim // (int(space.n) - 1), self.hidden, self.stop)
        self.mlp_extractor = network

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)
        self.action_net = nn.Identity()  # the network has given the logits
        optimizer: Any = self.optimizer_class
        self.optimizer = optimizer(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        own = {"hidden": self.hidden, "stop": self.stop}
        return dict(super()._get_constructor_parameters(), **own)

    def obs_to_tensor(self, observation: Any) -> Any:
        """As SB3's, for any number of arms: the spaces follow the observation (..., K * F)."""
        shape, features = getattr(observation, "shape", ()), self.mlp_extractor.features
        if shape and shape[-1:] != self.observation_space.shape and shape[-1] % features == 0:
            self.observation_space = spaces.Box(-1.0, 1.0, shape[-1:], np.float32)
            self.action_space = spaces.Discrete(shape[-1] // features + 1)
        return super().obs_to_tensor(observation)

    def _predict(self, observation: Any, deterministic: bool = False, **masks: Any) -> Tensor:
        if not deterministic:
            return super()._predict(observation, deterministic, **masks)
        allowed = masks.get("action_masks")
        if allowed is not None:
            allowed = torch.as_tensor(allowed, dtype=torch.bool).reshape(len(observation), -1)
        x = observation.flatten(1)
        action: Tensor
        action, close = _best(self.mlp_extractor.forward_actor(x), allowed, CLOSE)
        if close.any():
            weights = {name: weight.double() for name, weight in self.mlp_extractor.named_parameters()}
            logits, _ = torch.func.functional_call(self.mlp_extractor, weights, x[close].double())
            action[close], _ = _best(logits, None if allowed is None else allowed[close], TIE)
        return action


def _best(logits: Tensor, allowed: Tensor | None, slack: float) -> tuple[Tensor, Tensor]:
    """The first action (n,) within `slack` of the best, and where there are others."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, NEVER)
    good = logits >= logits.amax(1, keepdim=True) - slack
    return good.to(torch.uint8).argmax(1), good.sum(1) > 1


class EquivariantPolicy(Equivariant, ActorCriticPolicy):
    """For PPO and A2C: `PPO(EquivariantPolicy, env, policy_kwargs={"hidden": 64})`, observations in `features` form."""
