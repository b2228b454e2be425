"""Networks with context in compiled code: the logits of all arms, and of stopping, at every pull.

Logits are computed in single precision. Where others come as close to the best one as `CLOSE`, all are computed again
in double precision, and the first action within `TIE` of the best is taken: as `deterministic=True` of the policy does,
so that decisions do not depend on how numbers are rounded.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import (
    Measure,
    Quiet,
    Simulation,
    call_routine,
    episode_kernel,
    features_by_margin,
    features_by_pulls,
    inlined,
    player,
)

from ..core.agent import Floats, Ints
from .layers import LANES, dense, dense_pair, load, most, muladd, silu, store, total, zeros
from .networks import (
    CLOSE,
    COMMON,
    INPUTS,
    NEVER,
    OWN,
    TIE,
    Known,
    Network,
    first_sums,
    network_of,
    opened_doubt,
    opened_pulls,
    single,
)

__all__ = ["ContextMemory"]

SHARE, LEFT, HORIZON = COMMON


class Arms(NamedTuple):
    """What is kept of the arms of E episodes."""

    known: Floats  # (E, K, 3): pulls and margin at which the following was computed, and 1 / standard error
    x: Floats  # (E, K, 12): what the first layer reads of an arm by itself; then head, trust and rest of its logit
    sums: NDArray[np.float32]  # (E, K, H): what the first layer makes of it


class Room(NamedTuple):
    """Room for a decision."""

    margin: Floats  # (K,)
    share: Floats  # (K,)
    logits: Floats  # (K + 1,)
    single: NDArray[np.float32]  # (3, K + 1, H): the first layer, the codes, and what of them is pooled
    double: Floats  # (4, K + 1, H): the same, and the sums of the first layer


class Shown(NamedTuple):
    """Statistics of E episodes, live, and how features are made of them."""

    pulls: Ints  # (E, K)
    mean: Floats  # (E, K)
    variance: Floats  # (E, K)
    remaining: Ints  # (E,)
    measure: int  # the address of the problem's routine of margins
    told: Floats  # what it is told of the problem
    unit: float  # 1 / ln(1 + scale)
    sigma: float
    theta: float
    tolerance: float


@inlined
def _take_pulls(net: Any, ln_K: Any, x: Any) -> None:
    """Bring what follows from the pulls of an arm up to date."""
    x[7], x[8], x[10], x[11] = opened_pulls(net, ln_K, x[0], x[1])


@inlined
def _take_in(net: Any, x: Any, sums: Any) -> None:
    """Bring all else that is kept of an arm up to date, whose own features, the first six of x, have changed."""
    evidence, x[6] = opened_doubt(x[5])
    x[9] = x[10] * evidence + x[11]
    for at in range(0, len(net.first_bias), LANES):
        store(sums, at, first_sums(net, x, at))


@inlined
def _fill(net: Any, x: Any, sums: Any, share: Any, left: Any, horizon: Any, room: Any, logits: Any) -> None:
    """Fill in the logits of an episode: `ArmNetwork.forward_actor`, those of the arms less the largest of them.

    Args:
        net: a `Network` in the precision of sums and room.
        x: (K, 12). sums: (K, H), see `Arms`.
        share: (K,). left, horizon: features.
        room: (3, K + 1, H).
        logits: (K + 1,).
    """
    K, H = len(share), len(net.arm_bias)
    first, codes, pooled = room[0], room[1], room[2]
    for at in range(0, H, LANES):
        common = muladd(left, load(net.common, H + at), horizon * load(net.common, 2 * H + at))
        weight = load(net.common, at)
        for k in range(K):
            store(first, k * H + at, silu(muladd(share[k], weight, load(sums, k * H + at) + common)))
    for at in range(0, H, LANES):
        bias = load(net.second_bias, at)
        mean, largest = zeros(bias), zeros(bias) - math.inf
        for k in range(0, K, 2):
            after = min(k + 1, K - 1)  # of an odd number of arms the last one is computed twice
            s, t = dense_pair(first, k * H, after * H, net.second, at, bias)
            s, t = silu(s), silu(t)
            store(codes, k * H + at, s)
            store(codes, after * H + at, t)
            mean, largest = mean + s, most(largest, most(s, t))
            if after > k:
                mean = mean + t
        store(pooled, at, mean / K)
        store(pooled, H + at, largest)
    for at in range(0, H, LANES):
        s, t = load(net.context_bias, at), zeros(load(net.context_bias, at))
        s, t = dense(pooled, 0, H, net.mean, at, s), dense(pooled, H, H, net.largest, at, t)
        store(first, at, silu(s + t))
    for at in range(0, H, LANES):
        store(pooled, at, dense(first, 0, H, net.around, at, load(net.arm_bias, at)))
    best = -math.inf
    for k in range(0, K, 2):
        after, one, two = min(k + 1, K - 1), zeros(load(net.logit, 0)), zeros(load(net.logit, 0))
        for at in range(0, H, LANES):
            s, t = dense_pair(codes, k * H, after * H, net.arm, at, load(pooled, at))
            weight = load(net.logit, at)
            one, two = muladd(silu(s), weight, one), muladd(silu(t), weight, two)
        logits[k] = net.steep * (np.float64(total(one)) + x[k, INPUTS])
        logits[after] = net.steep * (np.float64(total(two)) + x[after, INPUTS])
        best = max(best, logits[k], logits[after])
    for k in range(K):
        logits[k] -= best
    logits[K] = NEVER
    if net.stops:
        sums_k = zeros(load(net.stop, 0))
        for at in range(0, H, LANES):
            sums_k = muladd(load(first, at), load(net.stop, at), sums_k)
        logits[K] = net.steep * (np.float64(total(sums_k)) + net.stop_bias)


@inlined
def _first_within(logits: Any, slack: Any) -> Any:
    """The first action within the slack of the best."""
    best, action = logits[0], 0
    for k in range(1, len(logits)):
        best = max(best, logits[k])
    while action < len(logits) - 1 and not logits[action] >= best - slack:
        action += 1
    return action


@inlined
def _rival(logits: Any, slack: Any, x: Any, share: Any, action: Any) -> Any:
    """Whether another action than this one, the first within the slack of the best, is so too.

    Arms with the same features have the same logits, and the first of them is taken: they are no rivals.
    """
    K, best, rival = len(share), logits[action], False
    for k in range(action + 1, len(logits)):
        best = max(best, logits[k])
    for k in range(action + 1, len(logits)):
        if logits[k] >= best - slack:
            same = k < K and share[k] == share[action]
            for j in range(len(OWN)):
                same = same and x[k, j] == x[action, j]
            rival |= not same
    return rival


@inlined
def _decide(net: Any, exact: Any, x: Any, sums: Any, left: Any, horizon: Any, room: Any) -> Any:
    """The next action of an episode whose arms are up to date."""
    _fill(net, x, sums, room.share, left, horizon, room.single, room.logits)
    action = _first_within(room.logits, CLOSE)
    if _rival(room.logits, CLOSE, x, room.share, action):
        action = _decide_again(exact, x, left, horizon, room)
    return action


@inlined
def _decide_again(exact: Any, x: Any, left: Any, horizon: Any, room: Any) -> Any:
    """The same in double precision, without what is kept."""
    K = len(room.share)
    for k in range(K):
        _take_in(exact, x[k], room.double[3, k])
    _fill(exact, x, room.double[3, :K], room.share, left, horizon, room.double[:3], room.logits)
    return _first_within(room.logits, TIE)


@episode_kernel
def next_action(e: int, shown: Shown, net: Network, exact: Network, arms: Arms, room: Room) -> Any:
    """The next action of an episode, by its statistics."""
    K, spent, ln_K = len(room.share), 0, math.log(len(room.share))
    for k in range(K):
        spent += shown.pulls[e, k]
    left = max(float(shown.remaining[e]), 0.0)
    call_routine(shown.measure, shown.pulls[e], shown.mean[e], K, shown.told, room.margin)
    known, x, sums = arms.known[e], arms.x[e], arms.sums[e]
    for k in range(K):
        n, m = float(shown.pulls[e, k]), room.margin[k]
        room.share[k] = np.float32(n / max(spent, 1))
        m = 0.0 if n == 0.0 or math.isnan(m) else m
        if known[k, 0] != n:
            pulls, width, precision = features_by_pulls(n, shown.variance[e, k], shown.unit, shown.sigma)
            x[k, 0], x[k, 1] = single(pulls), single(width)
            _take_pulls(net, ln_K, x[k])
            known[k, 0], known[k, 1], known[k, 2] = n, math.nan, precision
        if known[k, 1] != m:
            known[k, 1] = m
            found = features_by_margin(n, m, known[k, 2], shown.sigma, shown.theta, shown.tolerance)
            x[k, 2], x[k, 3], x[k, 4], x[k, 5] = single(found[0]), single(found[1]), single(found[2]), single(found[3])
            _take_in(net, x[k], sums[k])
    share_left = np.float32(left / max(left + spent, 1.0))
    horizon = np.float32(min(math.log1p(left / K) * shown.unit, 1.0))
    return _decide(net, exact, x, sums, share_left, horizon, room)


@episode_kernel
def next_of_features(e: int, f: Any, net: Network, exact: Network, arms: Arms, room: Room) -> Any:
    """The next action of an episode, by features f (E, K, F)."""
    K, x, sums = len(room.share), arms.x[e], arms.sums[e]
    ln_K = math.log(K)
    for k in range(K):
        room.share[k] = f[e, k, SHARE]
        pulled = x[k, 0] != f[e, k, OWN[0]] or x[k, 1] != f[e, k, OWN[1]]
        differs = pulled
        for j in range(len(OWN)):
            differs |= x[k, j] != f[e, k, OWN[j]]
            x[k, j] = f[e, k, OWN[j]]
        if pulled:
            _take_pulls(net, ln_K, x[k])
        if differs:
            _take_in(net, x[k], sums[k])
    return _decide(net, exact, x, sums, f[e, 0, LEFT], f[e, 0, HORIZON], room)


class ContextMemory(Known):
    """What is kept of E episodes of K arms, so that only arms whose features change are computed anew.

    Decisions are those of `deterministic=True`.

    Args:
        network: the `policy.ArmNetwork`. E, K: numbers of episodes and of arms.
    """

    def __init__(self, network: Any, E: int, K: int) -> None:
        super().__init__(network)
        self.single, self.double = network_of(network, np.float32), network_of(network, np.float64)
        self.arms = Arms(
            np.full((E, K, 3), -1.0),
            np.full((E, K, INPUTS + 3), math.nan),
            np.empty((E, K, len(self.single.arm_bias)), np.float32),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """E and K."""
        E, K, _ = self.arms.known.shape
        return E, K

    def _given(self) -> tuple[Any, ...]:
        """The arguments of kernels, from the networks on."""
        (_, K), H = self.shape, len(self.single.arm_bias)
        room = Room(
            np.empty(K), np.empty(K), np.empty(K + 1), np.empty((3, K + 1, H), np.float32), np.empty((4, K + 1, H))
        )
        return (*self.single, *self.double, *self.arms, *room)

    def choose(self, x: NDArray[np.float32]) -> Ints:
        """The next action of each episode, (E,), for features x (E, K, F)."""
        out = np.empty(len(x), np.int64)
        next_of_features(x, *self._given(), out)
        return out

    def play(self, simulation: Simulation, quiet: Quiet, margins: Measure, numbers: Any) -> Ints:
        """The next action of each episode, (E,), after the pulls that `Agent.play` may make.

        Args:
            simulation, quiet: as for `Agent.play`.
            margins: the problem's routine of margins. numbers: of `numbers_of`.
        """
        out = np.empty(self.shape[0], np.int64)
        _, mean, variance = (part.reshape(self.shape) for part in simulation.statistics)
        told = margins.routine.address, margins.numbers
        shown = Shown(simulation.pulls.reshape(self.shape), mean, variance, simulation.counts[1], *told, *numbers)
        player(next_action)(*shown, *self._given(), out, *simulation, *quiet)
        return out
