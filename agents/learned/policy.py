"""`EquivariantPolicy`: one small network for all arms, so that permuting the arms permutes the decisions.

The observation (K * F,) is read as K rows of F features. The same layers turn each row into a code. The mean and the
maximum of the codes over the arms are the context. The logit of an arm is computed from its code and the context, the
logit of stopping and the value from the context alone (deep sets: Zaheer et al., NeurIPS 2017). No weight depends on K,
so that a policy reads observations of any number of arms.

With `context=False` the logit of an arm depends on what is known of that arm alone: the policy is an index policy. That
is enough where the arms are independent but for the budget (Whittle, 1988). Such a policy carries over from one K and
budget to others, and it plays quickly, since only arms whose features have changed are computed anew.

In both cases the logit of an arm is `steep` times

    a ln(2 error) (n / (n + nu))^2 - (b + c ln(scale / 100 K)) ln(1 + n) + the output of the network,
    nu = exp(p + q ln(scale / 100 K)),

with n the pulls of the arm, error the posterior probability that the answer is wrong about it, and scale the budget, or
what stands for it in the feature `pulls`. The five numbers a, b, c, p, q are learned; they begin at 1, 1, 0, 0 and 1.5.
So an untrained policy pulls the arm with the largest posterior error per pull made, and it learns by how much that is
wrong. The posterior errors are those of a flat prior; the true prior is worth nu more samples on the boundary. Where
there are many pulls per arm, they are spent on small gaps, and a large distance from the boundary after a few samples
is most likely luck: so nu grows with the pulls per arm. It begins at 1 for 100 pulls per arm, and grows with their
power 1.5. Of the budget, the policy knows only the pulls per arm.

`deterministic=True` takes the arm with the largest logit. Where the logits of others come close, as those of arms with
equal features do, all logits are computed again in double precision, and the arm with the lowest number within `TIE`
of the best is taken. For single precision rounds differently in batches of different sizes, and the decisions in an
episode must not depend on the batch that it is in.

With `observation="belief"` the same policy has a `BeliefNetwork`: its inputs are made for learning, and it begins from
no index.

Saved models name the classes of this module: they must stay here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from bandit_envs import FEATURES, flag, integer, number

from .networks import CLOSE, HALF_EVIDENCE, HALF_FAIR, HALF_PULLS, LN_100, LOCAL, MOST, NEVER, OPENED, TIE

__all__ = ["ArmExtractor", "ArmNetwork", "BeliefNetwork", "Equivariant", "EquivariantPolicy"]

# The layers whose weights `decay` makes smaller: those that serve the logits of the arms alone, and not the value. The
# numbers a, b, c, p and q are not among them.
FADING = tuple(f"mlp_extractor.{part}." for part in ("own", "arm", "surroundings", "arm_logit"))
PULLS, WIDTH, DOUBT = FEATURES.index("pulls"), FEATURES.index("width"), FEATURES.index("doubt")


class ArmNetwork(nn.Module):
    """From features (n, K * F) to logits (n, K + 1), the last one of stopping, and inputs of the value (n, hidden).

    Args:
        features: F, the number of features of an arm. hidden: width of the layers.
        stop: whether stopping is ever wanted; False: its logit is `NEVER`.
        context: whether the logit of an arm depends on the other arms and on the time; False: an index policy.
        steep: factor of all logits. The larger it is, the more often is the action that is drawn that with the largest
            logit.
    """

    def __init__(self, features: int, hidden: int, stop: bool, context: bool, steep: float) -> None:
        super().__init__()
        self.features, self.stop, self.steep = features, stop, steep
        self.local = [*LOCAL, *range(features, features + OPENED)]  # the inputs of a network without context
        self.latent_dim_pi, self.latent_dim_vf = 1, hidden  # what SB3 asks for to build its heads
        inputs = features + OPENED
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.context = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.SiLU())
        if not context:
            self.own = nn.Sequential(nn.Linear(len(LOCAL) + OPENED, hidden), nn.SiLU())
        self.arm = nn.Linear(hidden, hidden)
        self.surroundings = nn.Linear(hidden, hidden, bias=False) if context else None
        self.arm_logit, self.stop_logit = nn.Linear(hidden, 1), nn.Linear(hidden, 1)
        self.slopes = nn.Linear(3, 1, bias=False)
        nn.init.zeros_(self.slopes.weight)
        self.prior = nn.Parameter(torch.tensor([0.0, 1.5]))  # p and q
        self.value = nn.Sequential(nn.Linear(hidden, hidden), nn.SiLU())

    def _arms(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the arms (n, K), and the context (n, hidden)."""
        x = x.reshape(len(x), -1, self.features)
        width, evidence = x[..., WIDTH], 4 / x[..., DOUBT] - 4
        ln_n = -2 * width.log()  # ln(1 + n)
        fair = (ln_n / x[..., PULLS].clamp_min(1e-6) - math.log(x.shape[1])).clamp_min(0)  # ln((1 + scale) / K)
        opened = (evidence / (evidence + HALF_EVIDENCE), ln_n / (ln_n + HALF_PULLS), fair / (fair + HALF_FAIR))
        seen = torch.cat([x, torch.stack(opened, -1)], -1)
        codes = self.encoder(seen)
        context = self.context(torch.cat([codes.mean(1), codes.amax(1)], 1))
        if self.surroundings is None:
            hidden = self.arm(self.own(seen[..., self.local]))
        else:
            hidden = self.arm(codes) + self.surroundings(context)[:, None]
        n, rich = 1 / width.square() - 1, fair - LN_100
        p, q = self.prior
        shrunk = evidence * (n / (n + torch.exp(p + q * rich.clamp_max(MOST)))).square()
        a, b, c = self.slopes.weight[0]
        index = self.arm_logit(nn.functional.silu(hidden))[..., 0] + (a - 1) * shrunk + (b - 1 + c * rich) * ln_n
        return self.steep * index, context

    def _logits(self, arms: Tensor, context: Tensor) -> Tensor:
        """Logits of the arms and of stopping (n, K + 1)."""
        if not self.stop:
            return torch.cat([arms, arms.new_full((len(arms), 1), NEVER)], 1)
        return torch.cat([arms - arms.amax(1, keepdim=True), self.steep * self.stop_logit(context)], 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n, K + 1), and the inputs of SB3's value (n, hidden)."""
        arms, context = self._arms(x)
        return self._logits(arms, context), self.value(context)

    def forward_actor(self, x: Tensor) -> Tensor:
        """The logits alone, (n, K + 1)."""
        return self._logits(*self._arms(x))

    def forward_critic(self, x: Tensor) -> Tensor:
        """The inputs of SB3's value alone, (n, hidden)."""
        latent: Tensor = self.value(self._arms(x)[1])
        return latent


class BeliefNetwork(nn.Module):
    """From beliefs (n, 4 K + 1) to logits (n, K), or (n, K + 1) where an action stops, and inputs of the value.

    A code is made of each arm's four numbers and of the time; the mean and the maximum of the codes over the arms are
    the context. The logit of an arm is made of its code and the context.

    Args:
        hidden: width of the layers. stop: whether the last action stops.
    """

    features = 4

    def __init__(self, hidden: int, stop: bool) -> None:
        super().__init__()
        self.stop, self.latent_dim_pi, self.latent_dim_vf = stop, 1, hidden
        self.encoder = nn.Sequential(nn.Linear(self.features + 1, hidden), nn.Tanh())
        self.arm, self.context = nn.Linear(hidden, hidden), nn.Linear(2 * hidden, hidden, bias=False)
        self.arm_logit, self.stop_logit = nn.Linear(hidden, 1), nn.Linear(hidden, 1)
        self.value = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.Tanh())

    def _codes(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The codes of the arms (n, K, hidden), and their mean and maximum (n, 2 hidden)."""
        arms = x[:, :-1].reshape(len(x), -1, self.features)
        codes = self.encoder(torch.cat([arms, x[:, -1:, None].expand(-1, arms.shape[1], 1)], -1))
        return codes, torch.cat([codes.mean(1), codes.amax(1)], 1)

    def _logits(self, codes: Tensor, pooled: Tensor) -> Tensor:
        context = self.context(pooled)
        arms = self.arm_logit(torch.tanh(self.arm(codes) + context[:, None]))[..., 0]
        return torch.cat([arms, self.stop_logit(torch.tanh(context))], 1) if self.stop else arms

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the inputs of SB3's value (n, hidden)."""
        codes, pooled = self._codes(x)
        return self._logits(codes, pooled), self.value(pooled)

    def forward_actor(self, x: Tensor) -> Tensor:
        """The logits alone."""
        return self._logits(*self._codes(x))

    def forward_critic(self, x: Tensor) -> Tensor:
        """The inputs of SB3's value alone, (n, hidden)."""
        latent: Tensor = self.value(self._codes(x)[1])
        return latent


class ArmExtractor(BaseFeaturesExtractor):
    """A code of each arm, in their order: for algorithms with policies of SB3's own, as DQN and RecurrentPPO.

    It is used as `DQN("MlpPolicy", env, policy_kwargs={"features_extractor_class": ArmExtractor})`, with
    `observation="belief"`. One encoder serves all arms; the layers behind it are SB3's, for one K.

    Args:
        observation_space: of beliefs, (4 K + 1,). hidden: width of a code, of the context too.
    """

    def __init__(self, observation_space: spaces.Box, hidden: int = 16) -> None:
        K = (int(observation_space.shape[0]) - 1) // BeliefNetwork.features
        super().__init__(observation_space, (K + 2) * hidden)
        self.network = BeliefNetwork(integer("hidden", hidden, 1, 2**12), stop=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Codes of the arms, their mean and their maximum, (n, (K + 2) hidden)."""
        codes, pooled = self.network._codes(observations)
        return torch.cat([codes.flatten(1), pooled], 1)


if TYPE_CHECKING:
    _Base = ActorCriticPolicy
else:
    _Base = object


class Equivariant(_Base):
    """A mixin that puts `ArmNetwork` into SB3's ActorCriticPolicy, or into sb3-contrib's MaskableActorCriticPolicy.

    Args:
        *args, **kwargs: of the policy class.
        hidden: width of the layers. stop: whether stopping is ever wanted. context: see `ArmNetwork`.
            With beliefs, `stop` follows from the actions, and `context` and `steep` have no effect.
        steep: factor of all logits. What training improves is the policy that draws its actions, and what is deployed
            takes the one with the largest logit: the steeper the logits, the nearer are the two.
        decay: weight decay of the layers `FADING`, times the learning rate at each step (AdamW). What they have learned
            fades, and the policy returns to the untrained one, except where gradients keep pointing the same way.

    Raises:
        ValueError: naming the value and what is allowed.
    """

    any_arms = True  # it runs with any number of arms

    def __init__(
        self,
        *args: Any,
        hidden: int = 32,
        stop: bool = True,
        context: bool = True,
        steep: float = 4.0,
        decay: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self.hidden, self.stop, self.context = (
            integer("hidden", hidden, 1, 2**12),
            flag("stop", stop),
            flag("context", context),
        )
        self.steep, self.decay = number("steep", steep, 0, 1e6, above=True), number("decay", decay, 0, 1e6)
        super().__init__(*args, **{"ortho_init": False, **kwargs})

    def _build_mlp_extractor(self) -> None:
        """Make the network; SB3 calls this and uses `forward`, `forward_actor` and `forward_critic`."""
        space: Any = self.action_space
        actions, inputs = int(space.n), self.features_dim
        self.mlp_extractor: Any
        if inputs in (4 * actions + 1, 4 * actions - 3):
            self.stop = inputs == 4 * actions - 3
            self.mlp_extractor = BeliefNetwork(self.hidden, self.stop)
        elif inputs % (actions - 1):
            raise ValueError(f"features need an action that stops, got {actions} actions: leave out stop=False")
        else:
            self.mlp_extractor = ArmNetwork(inputs // (actions - 1), self.hidden, self.stop, self.context, self.steep)

    def _build(self, lr_schedule: Any) -> None:
        """Make the network and the optimizer, with weight decay for the layers `FADING` alone."""
        super()._build(lr_schedule)
        self.action_net = nn.Identity()  # the network gives the logits themselves
        kinds: Any = torch.optim.AdamW if self.decay else self.optimizer_class
        groups: dict[bool, list[nn.Parameter]] = {False: [], True: []}
        for name, weight in self.named_parameters():
            groups[name.startswith(FADING)].append(weight)
        rows = [
            {"params": own, **({"weight_decay": self.decay * fades} if self.decay else {})}
            for fades, own in groups.items()
        ]
        fused = {"fused": True} if issubclass(kinds, (torch.optim.Adam, torch.optim.AdamW)) else {}
        self.optimizer = kinds(rows, lr=lr_schedule(1), **fused | self.optimizer_kwargs)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        """What SB3 stores to make the policy again."""
        own = ("hidden", "stop", "context", "steep", "decay")
        return dict(super()._get_constructor_parameters(), **{name: getattr(self, name) for name in own})

    def obs_to_tensor(self, observation: Any) -> Any:
        """As SB3's; the spaces of the policy are changed to the number of arms in the observation (..., K * F)."""
        shape, features = getattr(observation, "shape", ()), self.mlp_extractor.features
        believes = isinstance(self.mlp_extractor, BeliefNetwork)
        if shape and shape[-1:] != self.observation_space.shape and shape[-1] % features == believes:
            reach = 8.0 if believes else 1.0
            self.observation_space = spaces.Box(-reach, reach, shape[-1:], np.float32)
            self.action_space = spaces.Discrete(shape[-1] // features + (not believes or self.mlp_extractor.stop))
        return super().obs_to_tensor(observation)

    def _predict(self, observation: Any, deterministic: bool = False, **masks: Any) -> Tensor:
        """The actions (n,) for features (n, K * F); `action_masks` (n, K + 1): those that are allowed."""
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
    """The first of the actions within `slack` of the best (n,), and whether there are others (n,).

    Args:
        logits: (n, K + 1).
        allowed: which actions may be taken, (n, K + 1), or None for all.
    """
    if allowed is not None:
        logits = logits.masked_fill(~allowed, NEVER)
    good = logits >= logits.amax(1, keepdim=True) - slack
    return good.to(torch.uint8).argmax(1), good.sum(1) > 1


class EquivariantPolicy(Equivariant, ActorCriticPolicy):
    """The equivariant policy for PPO and A2C, which reads `observation="features"`.

    It is used as `PPO(EquivariantPolicy, env, policy_kwargs={"hidden": 64})`; see `Equivariant` for its arguments.

    The two methods that a training spends its time in are SB3's without its objects: the law of the actions is a tensor
    of log probabilities.
    """

    def _read(self, obs: Any) -> tuple[Tensor, Tensor]:
        """Log probabilities of the actions (n, K + 1), and values (n, 1), for features (n, K * F)."""
        logits, latent = self.mlp_extractor(self.extract_features(obs))
        return torch.log_softmax(logits.t().contiguous(), 0).t(), self.value_net(latent)

    def forward(self, obs: Tensor, deterministic: bool = False) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (n,), values (n, 1) and log probabilities of the actions (n,), for features (n, K * F)."""
        chances, values = self._read(obs)
        noise = 0.0 if deterministic else torch.empty_like(chances).exponential_().log_()
        actions = (chances - noise).argmax(1)  # with Gumbel's noise the largest one is drawn by the chances
        return actions, values, chances.gather(1, actions[:, None])[:, 0]

    def evaluate_actions(self, obs: Any, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values (n, 1), log probabilities of the actions (n,) and entropies (n,), for features (n, K * F)."""
        chances, values = self._read(obs)
        entropy = -(chances.exp() * chances).sum(1)
        return values, chances.gather(1, actions[:, None])[:, 0], entropy
