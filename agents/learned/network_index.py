"""Networks without context in compiled code: the logit of an arm depends on that arm alone, so they are index policies.

What `policy.ArmNetwork` computes for one arm is written here once more, in double precision, so that only arms whose
features have changed are computed anew, and so that whole episodes can be played by it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import FEATURES, Task, arm_features, assemble, jit

from ..core.agent import ALL_PROBLEMS, Floats, Ints, Observation
from ..core.index_kernels import ArmRule
from ..core.index_policy import IndexMemory, IndexPolicy

__all__ = ["LOCAL", "LogitMemory", "NetworkIndex", "Weights", "weights_of"]

# The features that tell of an arm alone, not of the others or of the time.
LOCAL = np.array([FEATURES.index(name) for name in ("width", "margin", "score", "error", "doubt")])
PULLS = FEATURES.index("pulls")
LN_100, MOST = math.log(100.0), 3.0  # from e^MOST * 100 pulls per arm on, nu grows no more
HALF_EVIDENCE, HALF_PULLS, HALF_FAIR = 15.0, 8.0, 5.0  # x / (x + HALF) brings features without upper bounds into [0, 1)


class Weights(NamedTuple):
    """A network without context, in double precision; the weights of a layer are (inputs, outputs)."""

    own: Floats  # (8, hidden), and its bias
    own_bias: Floats
    arm: Floats  # (hidden, hidden), and its bias
    arm_bias: Floats
    logit: Floats  # (hidden,), and its bias
    logit_bias: float
    slopes: Floats  # (3,)
    prior: Floats  # (2,): p and q
    steep: float


def weights_of(network: Any) -> Weights:
    """The weights of a `policy.ArmNetwork` without context."""
    told = {name: np.array(value.detach().numpy(), np.float64) for name, value in network.named_parameters()}
    return Weights(
        np.ascontiguousarray(told["own.0.weight"].T),
        told["own.0.bias"],
        np.ascontiguousarray(told["arm.weight"].T),
        told["arm.bias"],
        told["arm_logit.weight"][0],
        float(told["arm_logit.bias"][0]),
        told["slopes.weight"][0],
        told["prior"],
        float(network.steep),
    )


@jit
def logit(net: Any, K: Any, pulls: Any, width: Any, margin: Any, score: Any, error: Any, doubt: Any) -> Any:
    """The logit of an arm of K, from its features: `ArmNetwork.forward_arms`.

    Args:
        net: `Weights`.
        pulls, ..., doubt: the features, in single precision.
    """
    pulls, width, margin = np.float64(pulls), np.float64(width), np.float64(margin)
    score, error, doubt = np.float64(score), np.float64(error), np.float64(doubt)
    ln_n = -2.0 * math.log(width)
    fair = max(ln_n / max(pulls, 1e-6) - math.log(K), 0.0)
    evidence = 4.0 / doubt - 4.0
    first, second = np.empty(len(net.own_bias)), np.empty(len(net.own_bias))
    for h in range(len(first)):
        first[h] = (
            net.own_bias[h]
            + width * net.own[0, h]
            + margin * net.own[1, h]
            + score * net.own[2, h]
            + error * net.own[3, h]
            + doubt * net.own[4, h]
            + evidence / (evidence + HALF_EVIDENCE) * net.own[5, h]
            + ln_n / (ln_n + HALF_PULLS) * net.own[6, h]
            + fair / (fair + HALF_FAIR) * net.own[7, h]
        )
        second[h] = net.arm_bias[h]
    for j in range(len(first)):
        x = first[j] / (1.0 + math.exp(-first[j]))
        for h in range(len(first)):
            second[h] += x * net.arm[j, h]
    n, rich = math.expm1(ln_n), fair - LN_100
    ratio = n / (n + math.exp(net.prior[0] + net.prior[1] * min(rich, MOST)))
    shrunk = evidence * (ratio * ratio)
    index = net.logit_bias + net.slopes[0] * shrunk + net.slopes[1] * ln_n + net.slopes[2] * (ln_n * rich)
    for h in range(len(first)):
        index += second[h] / (1.0 + math.exp(-second[h])) * net.logit[h]
    return net.steep * (index - shrunk - ln_n)


class Own(NamedTuple):
    """What the index of an arm is computed from: a network, then how features are made."""

    own: Floats
    own_bias: Floats
    arm: Floats
    arm_bias: Floats
    logit: Floats
    logit_bias: float
    slopes: Floats
    prior: Floats
    steep: float
    K: int
    unit: float  # 1 / ln(1 + scale)
    sigma: float
    theta: float
    tolerance: float


def arm_index(own: Any, n: Any, margin: Any, variance: Any) -> Any:
    """Minus the logit of an arm with n pulls, from features in single precision, as the environment gives them."""
    found = arm_features(n, margin, variance, own.unit, own.sigma, own.theta, own.tolerance)
    pulls, width, side, score, error, doubt = found
    return -logit(
        own,
        own.K,
        np.float32(pulls),
        np.float32(width),
        np.float32(side),
        np.float32(score),
        np.float32(error),
        np.float32(doubt),
    )


def _changed_logits(net: Any, x: Any, seen: Any, logits: Any) -> None:
    """Bring the logits (E, K) of arms whose features x (E, K, F) are no longer those seen (E, K, L) up to date."""
    E, K, _ = x.shape
    for e in range(E):
        for k in range(K):
            f, differs = x[e, k], False
            for j in range(len(LOCAL)):
                differs |= seen[e, k, j] != f[LOCAL[j]]
            if differs:
                for j in range(len(LOCAL)):
                    seen[e, k, j] = f[LOCAL[j]]
                near = f[LOCAL[0]], f[LOCAL[1]], f[LOCAL[2]], f[LOCAL[3]], f[LOCAL[4]]
                logits[e, k] = logit(net, K, f[PULLS], *near)


changed_logits = jit(
    assemble(
        _changed_logits,
        "batch",
        {"net": Weights, "x": None, "seen": None, "logits": None},
        "    one(net, x, seen, logits)\n",
    )
)


class LogitMemory:
    """The logits of a network without context on E episodes, computed anew only where the features of an arm change.

    Decisions are those of `deterministic=True`.

    Args:
        network: the `policy.ArmNetwork`. E, K: numbers of episodes and of arms.
    """

    def __init__(self, network: Any, E: int, K: int) -> None:
        self.weights, self.logits = weights_of(network), np.zeros((E, K))
        self._seen = np.full((E, K, len(LOCAL)), np.nan, np.float32)

    def choose(self, x: NDArray[np.float32]) -> Ints:
        """The next arm of each episode, (E,), for features x (E, K, F)."""
        changed_logits(*self.weights, x, self._seen, self.logits)
        arms: Ints = self.logits.argmax(1)
        return arms


class NetworkIndex(IndexPolicy):
    """A network without context as an index policy, for whole episodes in compiled code.

    Args:
        task: of a problem in which each arm has a margin of its own that compiled code can tell.
        network: the `policy.ArmNetwork`.
    """

    name, solves = "network", ALL_PROBLEMS

    def __init__(self, task: Task, network: Any) -> None:
        super().__init__(task)
        known = task.law == "bernoulli" and task.D == 1 and self.problem.boundary is not None
        theta = self.problem.boundary if known else float("nan")
        made = 1.0 / math.log1p(task.scale), float(task.sigma), float(theta), float(self.problem.tolerance)  # type: ignore[arg-type]
        self._own = Own(*weights_of(network), task.K, *made)
        compiled: Any = self.compiled
        self.first = float(compiled.values(np.zeros(1), np.full(1, compiled.rule.centre), np.zeros(1))[0])

    def index(self, T: Floats, D: Floats) -> Floats:
        raise TypeError("the index of a network needs variances: it is compiled, see arm_rule")

    def arm_rule(self) -> ArmRule | None:
        return self.by_margin(arm_index, self._own)

    def remember(self, observation: Observation) -> IndexMemory:
        """The memory of episodes that have seen nothing."""
        if observation["pulls"].any():
            raise ValueError("the memory of a network is made at the beginning of episodes")
        return super().remember(observation)
