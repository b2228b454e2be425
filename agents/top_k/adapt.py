"""ADAPT (pi_4) and the policies pi_1, pi_2, pi_3 that lead to it: Kalyanakrishnan & Stone, ICML 2010, section 4.

symbols     High the m arms with the largest empirical means (m is the problem's k), Low the rest; d_i a bound on the
            probability that arm i is on the wrong side of the cutoff c; delta^c = 1 - prod(1 - d_i); W the range of a
            sample (2 sigma; 6 sigma for Gaussian arms, as in the paper)
departures  D1 pi_1 and pi_2 pull each arm once first, pi_3 and pi_4 twice, for a variance
            D2 ties go to the lowest arm
            D3 cap: no arm is pulled more often than DIRECT would, ceil(2 W^2 ln(n/delta) / epsilon^2) times (the paper:
               "a worst case bound can be easily enforced"); it stops where only capped arms are left
            D4 with a budget none stops because of delta; pi_1 and pi_2 stop where no arm is left to pull

The promise of pi_3 and pi_4 is nominal: delta^c is looked at after every pull without a union over time, and the
smaller of two bounds is taken without a union over the two.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import agent_uniform, deviations, integer, jit

from ..core.agent import Ints, Observation
from ..core.confidence import delta_of, width_of
from .selection import SelectionMemory, TopKAgent, open_round

__all__ = ["Adapt", "Pi1", "Pi2", "Pi3", "direct_pulls"]

UNLIMITED = 2**62  # pulls that no arm reaches
NEGLIGIBLE = 60.0  # a bound below exp(-60) times another changes no draw


def direct_pulls(n: int, epsilon: float, delta: float, W: float) -> int:
    """Pulls of each arm that make all widths at delta/n at most epsilon/2: ceil(2 W^2 ln(n/delta) / epsilon^2)."""
    return math.ceil(2.0 * W**2 / epsilon**2 * math.log(n / delta)) if epsilon > 0 else UNLIMITED


@jit
def _pi1(
    pulls: Any,
    mean: Any,
    public: Any,
    seed: Any,
    k: Any,
    epsilon: Any,
    cap: Any,
    inside: Any,
    between: Any,
    place: Any,
    made: Any,
    last: Any,
    out: Any,
) -> Any:
    """A random arm among those with fewer than `cap` pulls."""
    K = np.uint64(mean.shape[1])
    for episode in range(len(out)):
        e = np.uint64(episode)
        out[e] = open_round(pulls, mean, e, k, 1, inside, between, place, made, last)
        if out[e] < K:
            continue
        n = 0
        for i in range(K):
            n += pulls[e, i] < cap
        if n == 0:
            continue  # every bound is narrower than epsilon / 2
        left = min(np.int64(agent_uniform(public[e], made[e], seed) * n), n - 1)
        for i in range(K):
            left -= pulls[e, i] < cap
            if left < 0:
                out[e] = last[e] = i
                break
        made[e] += 1


@jit
def _pi2(
    pulls: Any,
    mean: Any,
    public: Any,
    seed: Any,
    k: Any,
    epsilon: Any,
    cap: Any,
    factor: Any,
    inside: Any,
    between: Any,
    place: Any,
    made: Any,
    last: Any,
    out: Any,
) -> Any:
    """A random arm among those that collide under Hoeffding's widths sqrt(factor / N)."""
    K = np.uint64(mean.shape[1])
    bound, collides = np.empty(K), np.empty(K, np.int64)
    for episode in range(len(out)):
        e = np.uint64(episode)
        out[e] = open_round(pulls, mean, e, k, 1, inside, between, place, made, last)
        if out[e] < K:
            continue
        for i in range(K):
            C = math.sqrt(factor / float(pulls[e, i]))
            bound[i] = (mean[e, i] - C) + epsilon if inside[e, i] else mean[e, i] + C
        lowest, highest = math.inf, -math.inf
        for i in range(K):
            if inside[e, i]:
                lowest = bound[i] if bound[i] < lowest else lowest
            else:
                highest = bound[i] if bound[i] > highest else highest
        n = 0
        for i in range(K):
            hit = bound[i] < highest if inside[e, i] else bound[i] > lowest
            collides[i] = hit and pulls[e, i] < cap
            n += collides[i]
        if n == 0:
            continue  # High and Low are apart
        left = min(np.int64(agent_uniform(public[e], made[e], seed) * n), n - 1)
        for i in range(K):
            left -= collides[i]
            if left < 0:
                out[e] = last[e] = i
                break
        made[e] += 1


@jit
def _adapt(
    pulls: Any,
    mean: Any,
    public: Any,
    seed: Any,
    k: Any,
    epsilon: Any,
    cap: Any,
    variance: Any,
    W: Any,
    tightest: Any,
    delta: Any,
    inside: Any,
    between: Any,
    place: Any,
    made: Any,
    last: Any,
    out: Any,
) -> Any:
    """An arm drawn with probability proportional to d_i, until delta^c <= delta."""
    K = np.uint64(mean.shape[1])
    d = np.empty(K)
    reach = NEGLIGIBLE if cap == UNLIMITED else math.inf
    for episode in range(len(out)):
        e = np.uint64(episode)
        out[e] = open_round(pulls, mean, e, k, 2, inside, between, place, made, last)  # line 1
        if out[e] < K:
            continue
        D = deviations(pulls, mean, variance, e, inside, epsilon, W, tightest, reach, d)  # lines 2-4
        if delta >= D:  # line 5
            continue
        total = 0.0
        for i in range(K):
            if pulls[e, i] >= cap:
                d[i] = 0.0
            total += d[i]
        if total == 0.0:
            continue  # D3
        u, partial = agent_uniform(public[e], made[e], seed) * total, 0.0  # line 6
        for i in range(K):
            partial += d[i]
            if partial > u:
                out[e] = last[e] = i
                break
        made[e] += 1


class _Policy(TopKAgent):
    """What the four policies share."""

    source, stops = "Kalyanakrishnan & Stone, ICML 2010, section 4", True
    cap: int

    def __init__(self, task: Any, width: float | None, seed: int) -> None:
        super().__init__(task)
        self.W, self.seed = width_of(self.task, width), integer("seed", seed, 0, 2**32 - 1)

    def cap_of(self, cap: Any, delta: float | None) -> int:
        """Most pulls of an arm; delta is that of the bounds."""
        if not isinstance(cap, (bool, np.bool_)):
            raise ValueError(f"cap must be True or False, got {cap!r:.200}")
        if cap and self.epsilon == 0:
            raise ValueError("cap=True needs a problem with epsilon > 0, got epsilon=0")
        level = delta_of(self.name, self.task, delta) if cap else 0.5
        return direct_pulls(self.task.K, self.epsilon, level, self.W) if cap else UNLIMITED

    def ask(self, kernel: Any, observation: Observation, state: SelectionMemory, *settings: Any) -> Ints:
        """The arms that a policy's kernel chooses."""
        m, (pulls, mean) = state, self.read(observation, state)
        public, out = np.ascontiguousarray(observation["public_seed"][:, 0], np.int64), np.empty(len(pulls), np.int64)
        kernel(
            pulls,
            mean,
            public,
            self.seed,
            self.k,
            self.epsilon,
            self.cap,
            *settings,
            m.inside,
            m.between,
            m.place,
            m.made,
            m.last,
            out,
        )
        return out


class Pi1(_Policy):
    """pi_1, UNIFORM: a random arm among those whose bounds are wider than epsilon / 2 at delta / n.

    Args:
        task: a task or an environment. delta: None takes the task's. width: range of a sample; None takes the task's.
        seed: the agent's own seed, an integer in 0 .. 2^32 - 1.
    """

    name = "pi1"

    def __init__(self, task: Any, delta: float | None = None, width: float | None = None, seed: int = 0) -> None:
        super().__init__(task, width, seed)
        self.cap = direct_pulls(self.task.K, self.epsilon, delta_of(self.name, self.task, delta), self.W)

    def choose(self, observation: Observation, state: SelectionMemory) -> Ints:
        return self.ask(_pi1, observation, state)


class Pi2(_Policy):
    """pi_2: a random arm among those whose bounds at delta / n collide with the other side, until none does.

    Args:
        task: a task or an environment. delta: None takes the task's. cap: pull no arm more often than DIRECT would.
        width: range of a sample; None takes the task's. seed: the agent's own seed, an integer in 0 .. 2^32 - 1.
    """

    name = "pi2"

    def __init__(
        self, task: Any, delta: float | None = None, cap: bool = False, width: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(task, width, seed)
        self.factor = self.W**2 * math.log(self.task.K / delta_of(self.name, self.task, delta)) / 2.0
        self.cap = self.cap_of(cap, delta)

    def choose(self, observation: Observation, state: SelectionMemory) -> Ints:
        return self.ask(_pi2, observation, state, self.factor)


class Pi3(_Policy):
    """pi_3: an arm drawn with probability proportional to d_i by Hoeffding's bound, until delta^c <= delta.

    Args:
        task: a task or an environment. delta: None takes the task's; needed only to stop, and for the cap.
        cap: pull no arm more often than DIRECT would. width: range of a sample; None takes the task's.
        seed: the agent's own seed, an integer in 0 .. 2^32 - 1.
    """

    name = "pi3"
    tightest = False

    def __init__(
        self, task: Any, delta: float | None = None, cap: bool = False, width: float | None = None, seed: int = 0
    ) -> None:
        super().__init__(task, width, seed)
        self.delta, self.cap = self.stopping_level(delta), self.cap_of(cap, delta)

    def choose(self, observation: Observation, state: SelectionMemory) -> Ints:
        delta = -1.0 if self.delta is None or self.budgeted else self.delta
        variance = np.ascontiguousarray(observation["variance"], np.float64)
        return self.ask(_adapt, observation, state, variance, self.W, self.tightest, delta)


class Adapt(Pi3):
    """ADAPT, pi_4: pi_3 with the tightest of Hoeffding's and the empirical Bernstein bound.

    Args:
        task: a task or an environment. delta: None takes the task's; needed only to stop, and for the cap.
        cap: pull no arm more often than DIRECT would. width: range of a sample; None takes the task's.
        seed: the agent's own seed, an integer in 0 .. 2^32 - 1.
    """

    name = "adapt"
    tightest = True
