"""Networks without context in compiled code: the logit of an arm depends on that arm alone, so they are index policies.

Only arms whose features have changed are computed anew, in double precision, and whole episodes are played by it.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task, arm_features, assemble, inlined, jit

from ..core.agent import ALL_PROBLEMS, Floats, Ints, Observation
from ..core.index_kernels import ArmRule
from ..core.index_policy import IndexMemory, IndexPolicy
from .networks import OWN, Known, Network, alone, network_of, numbers_of, single

__all__ = ["LogitMemory", "NetworkIndex"]


# What the index of an arm is computed from: a network, ln K, how features are made (`numbers_of`), and indices of
# Bernoulli arms that have been computed before, by pulls n < KEPT and ones: number n (n + 1) / 2 + ones, 0 if unknown.
_named: Any = namedtuple  # of which a type checker wants the fields one by one
Own = _named("Own", (*Network._fields, "ln_K", "unit", "sigma", "theta", "tolerance", "kept"))
KEPT = 1024  # kernel constants


@inlined
def _index_of(own: Any, n: Any, margin: Any, variance: Any) -> Any:
    """Minus the logit of an arm with n pulls, from features in single precision, as the environment gives them."""
    a, b, c, d, e, f = arm_features(n, margin, variance, own.unit, own.sigma, own.theta, own.tolerance)
    return -alone(own, own.ln_K, single(a), single(b), single(c), single(d), single(e), single(f))


def arm_index(own: Any, n: Any, margin: Any, variance: Any) -> Any:
    """The index of an arm. Where Bernoulli arms have a known boundary, it follows from pulls and ones: it is kept."""
    ones = math.floor((margin + own.theta) * n + 0.5)
    if not (1.0 <= n < KEPT and 0.0 <= ones <= n):  # theta is NaN of other arms
        return _index_of(own, n, margin, variance)
    at = np.int64(n) * (np.int64(n) + 1) // 2 + np.int64(ones)
    if own.kept[at] == 0.0:
        mean = ones / n
        own.kept[at] = _index_of(own, n, mean - own.theta, mean * (1.0 - mean))
    return own.kept[at]


def _changed_logits(net: Any, x: Any, seen: Any, logits: Any) -> None:
    """Bring the logits (E, K) of arms whose features x (E, K, F) are no longer those seen (E, K, 6) up to date."""
    E, K, _ = x.shape
    ln_K = math.log(K)
    for e in range(E):
        for k in range(K):
            f, own, differs = x[e, k], seen[e, k], False
            for j in range(len(OWN)):
                differs |= own[j] != f[OWN[j]]
                own[j] = f[OWN[j]]
            if differs:
                logits[e, k] = alone(net, ln_K, own[0], own[1], own[2], own[3], own[4], own[5])


changed_logits = jit(
    assemble(
        _changed_logits,
        "batch",
        {"net": Network, "x": None, "seen": None, "logits": None},
        "    one(net, x, seen, logits)\n",
    )
)


class LogitMemory(Known):
    """The logits of a network without context on E episodes, computed anew only where the features of an arm change.

    Decisions are those of `deterministic=True`.

    Args:
        network: the `policy.ArmNetwork`. E, K: numbers of episodes and of arms.
    """

    def __init__(self, network: Any, E: int, K: int) -> None:
        super().__init__(network)
        self.network, self.logits = network_of(network, np.float64), np.zeros((E, K))
        self._seen = np.full((E, K, len(OWN)), np.nan)

    @property
    def shape(self) -> tuple[int, ...]:
        """E and K."""
        return self.logits.shape

    def choose(self, x: NDArray[np.float32]) -> Ints:
        """The next arm of each episode, (E,), for features x (E, K, F)."""
        changed_logits(*self.network, x, self._seen, self.logits)
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
        made = numbers_of(task, self.problem)
        kept = np.zeros(1 if math.isnan(made[2]) else KEPT * (KEPT + 1) // 2)
        self._own = Own(*network_of(network, np.float64), math.log(task.K), *made, kept)
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
