"""`EquivariantPolicy`: one small network for all arms, so that permuting the arms permutes the decisions.

The same layers turn what is known of each arm into a code. The mean and the maximum of the codes over the arms are the
context. The logit of an arm is computed from its code and the context, the logit of stopping and the value from the
context alone (deep sets: Zaheer et al., NeurIPS 2017). No weight depends on K, so that a policy reads observations of
any number of arms.

`deterministic=True` takes the arm with the largest logit. Where others come close, as for arms with equal observations,
all logits are computed again in double precision, and the first arm within `TIE` of the best is taken. For single
precision rounds differently in batches of different sizes, and decisions must not depend on the batch.

Saved models name the classes of this module: they must stay here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from bandit_envs.envs import NUMBERS, box_of, numbers_of, shown_by, shows_pending
from bandit_envs.kernels import integer

NEVER = -1e8  # the logit of an action that is not allowed
GAIN, FACTOR = 1, 3.0  # the number of an arm that is the gain of a pull in observation="relative"; factor at first
CLOSE, TIE = 1e-2, 1e-9  # differences of logits, far above the rounding errors of single and of double precision


class ArmNetwork(nn.Module):
    """From observations to logits (n, K), or (n, K + 1) where an action stops, and to inputs of the value (n, hidden).

    An observation has so many `numbers` of each arm, and then so many that are `common` to all. The logits are the
    number `first` of each arm times a factor that is learned, and what the layers add, at first 0. None: these alone.
    """

    def __init__(self, numbers: int, common: int, hidden: int, stop: bool, first: int | None = None) -> None:
        super().__init__()
        self.first = first
        self.stop = stop
        self.latent_dim_pi, self.latent_dim_vf = 1, hidden  # what SB3 asks for to build its heads
        self.codes = ArmCodes(numbers, common, hidden)
        self.arm, self.context = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden, bias=False)
        self.arm_logit, self.stop_logit = nn.Linear(hidden, 1), nn.Linear(hidden, 1)
        if first is not None:
            self.factor = nn.Parameter(torch.full((1,), FACTOR))
            nn.init.zeros_(self.arm_logit.weight)
            nn.init.zeros_(self.arm_logit.bias)
        self.value = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh())

    def _logits(self, x: Tensor, codes: Tensor, pooled: Tensor) -> Tensor:
        context = self.context(pooled)
        arms = self.arm_logit(torch.tanh(self.arm(codes) + context[:, None]))[..., 0]
        if self.first is not None:
            arms = arms + self.factor * self.codes.arms(x)[..., self.first]
        return torch.cat([arms, self.stop_logit(torch.tanh(context))], 1) if self.stop else arms

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the inputs of SB3's value (n, hidden)."""
        codes, pooled = self.codes(x)
        return self._logits(x, codes, pooled), self.value(pooled)

    def forward_actor(self, x: Tensor) -> Tensor:
        """The logits alone."""
        return self._logits(x, *self.codes(x))

    def forward_critic(self, x: Tensor) -> Tensor:
        """The inputs of SB3's value alone, (n, hidden)."""
        latent: Tensor = self.value(self.codes(x)[1])
        return latent


class ArmCodes(nn.Module):
    """From observations to a code of each arm (n, K, hidden), and to the codes' mean and maximum (n, 2 hidden)."""

    def __init__(self, numbers: int, common: int, hidden: int) -> None:
        super().__init__()
        self.numbers, self.common = numbers, common
        self.encoder = nn.Sequential(nn.Linear(numbers + common, hidden), nn.Tanh())

    def arms(self, x: Tensor) -> Tensor:
        """The numbers of each arm, (n, K, numbers)."""
        return x[:, : x.shape[1] - self.common].reshape(len(x), -1, self.numbers)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The codes, and their mean and maximum."""
        arms = self.arms(x)
        if self.common:
            arms = torch.cat([arms, x[:, None, -self.common :].expand(-1, arms.shape[1], -1)], -1)
        codes = self.encoder(arms)
        return codes, torch.cat([codes.mean(1), codes.amax(1)], 1)


class ArmExtractor(BaseFeaturesExtractor):
    """A code of each arm, in their order: for algorithms with policies of SB3's own, as DQN and RecurrentPPO.

    It is used as `DQN("MlpPolicy", env, policy_kwargs={"features_extractor_class": ArmExtractor})`, with
    `observation="relative"`. One encoder serves all arms; the layers behind it are SB3's, for one K.

    Args:
        observation_space: of relative beliefs, (6 K + 4,). hidden: width of a code.
    """

    def __init__(self, observation_space: spaces.Box, hidden: int = 16) -> None:
        largest = float(observation_space.high.max())
        form = next((name for name, one in NUMBERS.items() if one[2] == largest), None)
        if form is None:
            raise ValueError(f"ArmExtractor reads observation='relative', got numbers up to {largest:g}")
        each, more, _ = numbers_of(form, shows_pending(observation_space))
        super().__init__(observation_space, ((int(observation_space.shape[0]) - more) // each + 2) * hidden)
        self.codes = ArmCodes(each, more, integer("hidden", hidden, 1, 2**12))

    def forward(self, observations: Tensor) -> Tensor:
        """Codes of the arms, their mean and their maximum, (n, (K + 2) hidden)."""
        codes, pooled = self.codes(observations)
        return torch.cat([codes.flatten(1), pooled], 1)


if TYPE_CHECKING:
    _Base = ActorCriticPolicy
else:
    _Base = object


class Equivariant(_Base):
    """A mixin that puts `ArmNetwork` into SB3's ActorCriticPolicy, or into sb3-contrib's MaskableActorCriticPolicy.

    It reads `observation="relative"` or "features". Which, and whether an action stops, the spaces say. `hidden`: width
    of the layers, from 1 to 4096; the other arguments are of the policy class.
    """

    any_arms = True  # it runs with any number of arms
    stop: bool  # whether an action stops
    observation: str  # the form that it reads
    pending: bool  # whether that shows pending pulls, as environments with batch or delay do

    def __init__(self, *args: Any, hidden: int = 32, **kwargs: Any) -> None:
        self.hidden = integer("hidden", hidden, 1, 2**12)
        super().__init__(*args, **{"ortho_init": False, **kwargs})

    @property
    def _numbers(self) -> tuple[int, int]:
        """How many numbers of each arm it reads, and how many that are common to all."""
        return numbers_of(self.observation, self.pending)[:2]

    def _build_mlp_extractor(self) -> None:
        """Make the network; SB3 calls this and uses `forward`, `forward_actor` and `forward_critic`."""
        space: Any = self.action_space
        if (form := shown_by(self.features_dim, int(space.n), shows_pending(self.observation_space) or None)) is None:
            sizes = ", ".join(f"{name!r} ({each} K + {more})" for name, (each, more, _) in NUMBERS.items())
            text = f"an equivariant policy reads observation={sizes} with K or K + 1 actions;"
            raise ValueError(f"{text} got {self.features_dim} numbers and {space.n} actions")
        self.observation, self.stop, self.pending = form
        first = GAIN if self.observation == "relative" and not self.stop else None
        self.mlp_extractor: Any = ArmNetwork(*self._numbers, self.hidden, self.stop, first)

    def _build(self, lr_schedule: Any) -> None:
        """Make the network and the optimizer."""
        super()._build(lr_schedule)
        self.action_net = nn.Identity()  # the network gives the logits themselves
        fused = {"fused": True} if issubclass(self.optimizer_class, (torch.optim.Adam, torch.optim.AdamW)) else {}
        kind: Any = self.optimizer_class
        self.optimizer = kind(self.parameters(), lr=lr_schedule(1), **fused | self.optimizer_kwargs)

    def _get_constructor_parameters(self) -> dict[str, object]:
        """What SB3 stores to make the policy again."""
        return dict(super()._get_constructor_parameters(), hidden=self.hidden)

    def obs_to_tensor(self, observation: Any) -> Any:
        """As SB3's; the spaces of the policy are changed to the number of arms in the observation."""
        shape = getattr(observation, "shape", ())
        if shape and shape[-1:] != self.observation_space.shape:
            each, more = self._numbers
            K = (shape[-1] - more) // each
            if (box := box_of(K, self.observation, self.pending)).shape == shape[-1:]:
                self.observation_space, self.action_space = box, spaces.Discrete(K + self.stop)
        return super().obs_to_tensor(observation)

    def _predict(self, observation: Any, deterministic: bool = False, **masks: object) -> Tensor:
        """The actions (n,) for observations (n, ...); `action_masks` (n, actions): those that are allowed."""
        if not deterministic:
            return super()._predict(observation, deterministic, **masks)
        allowed = masks.get("action_masks")
        x = observation.flatten(1)
        if allowed is not None:
            allowed = torch.as_tensor(allowed, dtype=torch.bool, device=x.device).reshape(len(x), -1)
        action: Tensor
        action, close = _best(self.mlp_extractor.forward_actor(x), allowed, CLOSE)
        if close.any():
            weights = {name: weight.double() for name, weight in self.mlp_extractor.named_parameters()}
            logits, _ = torch.func.functional_call(self.mlp_extractor, weights, x[close].double())
            action[close], _ = _best(logits, None if allowed is None else allowed[close], TIE)
        return action


def _best(logits: Tensor, allowed: Tensor | None, slack: float) -> tuple[Tensor, Tensor]:
    """The first of the actions, allowed ones, within `slack` of the best (n,), and whether there are others (n,)."""
    if allowed is not None:
        logits = logits.masked_fill(~allowed, NEVER)
    good = logits >= logits.amax(1, keepdim=True) - slack
    return good.to(torch.uint8).argmax(1), good.sum(1) > 1


class EquivariantPolicy(Equivariant, ActorCriticPolicy):
    """The equivariant policy for PPO and A2C: `PPO(EquivariantPolicy, env, policy_kwargs={"hidden": 64})`.

    The two methods that a training spends its time in are SB3's without its objects: the distribution of the actions is
    a tensor of log probabilities.
    """

    def _read(self, obs: Any) -> tuple[Tensor, Tensor]:
        """Log probabilities of the actions (n, actions), and values (n, 1)."""
        logits, latent = self.mlp_extractor(self.extract_features(obs))
        return torch.log_softmax(logits.t().contiguous(), 0).t(), self.value_net(latent)

    def forward(self, obs: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (n,), values (n, 1) and log probabilities of the actions (n,)."""
        chances, values = self._read(obs)
        noise = 0.0 if deterministic else torch.empty_like(chances).exponential_().log_()
        actions = (chances - noise).argmax(1)  # with Gumbel's noise the largest one is drawn by the chances
        return actions, values, chances.gather(1, actions[:, None])[:, 0]

    def evaluate_actions(self, obs: object, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values (n, 1), log probabilities of the actions (n,) and entropies (n,)."""
        chances, values = self._read(obs)
        entropy = -(chances.exp() * chances).sum(1)
        return values, chances.gather(1, actions[:, None])[:, 0], entropy
