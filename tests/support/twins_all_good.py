"""Literal twins of (ST)^2, its rivals and LUCB1: the papers' pseudo-code, as plainly as possible.

A twin yields the arm it pulls, is sent the sample, and returns its answer, a set of arms; `as_twin` lets an agent and a
twin play the same episode, which may be cut short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from twins_top_k import Seen

Twin = Generator[int, float, "set[int]"]
INF = math.inf


def lil(T: int, n: int, delta: float, c: float, sigma: float) -> float:
    """C_{delta/n}(T)"""
    return math.sqrt(c * sigma**2 * math.log(math.log2(2 * T) * n / delta) / T)


class Bounds(Seen):
    """Also bounds of width C_{delta/n}(T), of now or the best so far."""

    def __init__(self, K: int, delta: float, c: float, sigma: float, running: bool) -> None:
        super().__init__(K)
        self.low, self.high, self.running = [-INF] * K, [INF] * K, running
        self.width = lambda T: lil(T, K, delta, c, sigma)

    def look(self, pulled: list[int]) -> None:
        for i in pulled:
            low, high = self.m[i] - self.width(self.N[i]), self.m[i] + self.width(self.N[i])
            self.low[i] = max(self.low[i], low) if self.running else low
            self.high[i] = min(self.high[i], high) if self.running else high

    def around(self, inside: list[int], outside: list[int]) -> list[int]:
        """The one with the least lower bound inside, the one with the largest upper bound outside."""
        sides = (inside, self.low), (outside, [-u for u in self.high])
        return [first(arms, value) for arms, value in sides if arms]


def first(candidates: list[int], value: list[float]) -> int:
    """The candidate with the least value, ties to the lowest arm."""
    return min(candidates, key=lambda i: (value[i], i))


def good(m: list[float], epsilon: float, multiplicative: bool) -> set[int]:
    """Ghat; where the best mean is negative, the best arms."""
    best = max(m)
    boundary = min((1 - epsilon) * best, best) if multiplicative else best - epsilon
    return {i for i in range(len(m)) if m[i] >= boundary}


def st2(
    K: int, epsilon: float, multiplicative: bool, slack: float, delta: float, c: float, sigma: float, running: bool
) -> Twin:
    """Mason et al. 2020, Algorithm 1."""
    arms = Bounds(K, delta, c, sigma, running)
    low, high, every = arms.low, arms.high, list(range(K))
    pulled = every
    for i in every:
        arms.add(i, (yield i))
    while True:
        arms.look(pulled)
        if multiplicative:
            U, L = (1 - epsilon - slack) * max(high), (1 - epsilon) * max(low)
        else:
            U, L = max(high) - epsilon - slack, max(low) - epsilon
        known = {i for i in every if high[i] < L or low[i] > U}
        if len(known) == K:
            return {i for i in every if low[i] > U}
        ghat = good(arms.m, epsilon, multiplicative)
        unknown = [i for i in every if i not in known]
        pulled = arms.around([i for i in unknown if i in ghat], [i for i in unknown if i not in ghat])
        pulled.append(first(every, [-u for u in high]))
        for i in pulled:
            arms.add(i, (yield i))


def two_step(
    K: int, epsilon: float, multiplicative: bool, slack: float, delta: float, c: float, sigma: float, running: bool
) -> Twin:
    """Mason et al. 2020, section 1.3: the best arm at delta / 2, then the arms above the threshold at delta / 2."""
    arms = Bounds(K, delta / 2, c, sigma, running)
    low, high, every = arms.low, arms.high, list(range(K))

    def threshold(best: float, gamma: float) -> float:
        return (1 - epsilon - gamma) * best if multiplicative else best - epsilon - gamma

    for i in every:
        arms.add(i, (yield i))
    arms.look(every)
    while True:  # the best arm
        h = first(every, [-m for m in arms.m])
        rival = first([i for i in every if i != h], [-u for u in high])
        if low[h] > high[rival]:
            break
        for i in (h, rival):
            arms.add(i, (yield i))
        arms.look([h, rival])
    others = [i for i in every if i != h]
    while True:  # the others, by its bounds
        U, L = threshold(high[h], slack), threshold(low[h], 0.0)
        unknown = [i for i in others if low[i] <= U and high[i] >= L]
        if not unknown:
            return {h} | {i for i in others if low[i] > U}
        boundary = min(threshold(arms.m[h], 0.0), arms.m[h])
        inside = [i for i in unknown if arms.m[i] >= boundary]
        pulled = arms.around(inside, [i for i in unknown if arms.m[i] < boundary])
        pulled.append(h)
        for i in pulled:
            arms.add(i, (yield i))
        arms.look(pulled)


def ucb(
    K: int, budget: int, epsilon: float, multiplicative: bool, delta: float, c: float, sigma: float, running: bool
) -> Twin:
    """Argmax of the upper bound; answers the arms with m > max m - epsilon, or m > (1 - epsilon) max m."""
    arms, high = Seen(K), [INF] * K
    for _ in range(budget):
        i = first(list(range(K)), [-u for u in high])
        arms.add(i, (yield i))
        bound = arms.m[i] + lil(arms.N[i], K, delta, c, sigma)
        high[i] = min(high[i], bound) if running else bound
    best = max(arms.m[i] for i in range(K) if arms.N[i])
    boundary = min((1 - epsilon) * best, best) if multiplicative else best - epsilon
    return {i for i in range(K) if arms.N[i] and arms.m[i] > boundary}


def apt_oracle(K: int, budget: int, threshold: float) -> Twin:
    """Locatelli et al. 2016 with tolerance 0 at the true threshold; answers the arms with m > threshold."""
    arms = Seen(K)
    for t in range(budget):
        index = [math.sqrt(arms.N[i]) * abs(arms.m[i] - threshold) for i in range(K)]
        i = t if t < K else first(list(range(K)), index)
        arms.add(i, (yield i))
    return {i for i in range(K) if arms.N[i] and arms.m[i] > threshold}


def lucb(
    K: int,
    k: int,
    epsilon: float,
    delta: float,
    sigma: float,
    stops: bool,
    c: float | None = None,
    arms: Seen | None = None,
) -> Twin:
    """Kalyanakrishnan et al. 2012; with c: the widths and running bounds of Mason et al. 2020."""
    arms, low, high = arms or Seen(K), [-INF] * K, [INF] * K
    every, t = list(range(K)), 1
    for i in every:
        arms.add(i, (yield i))
    while True:
        for i in every:
            if c is None:
                C = 2 * sigma * math.sqrt(math.log(1.25 * K * t**4 / delta) / (2 * arms.N[i]))
                low[i], high[i] = arms.m[i] - C, arms.m[i] + C
            else:
                C = lil(arms.N[i], K, delta, c, sigma)
                low[i], high[i] = max(low[i], arms.m[i] - C), min(high[i], arms.m[i] + C)
        order = sorted(every, key=lambda i: (-arms.m[i], i))
        h, challenger = first(order[:k], low), first(order[k:], [-u for u in high])
        if stops and high[challenger] - low[h] < epsilon:
            return set(order[:k])
        arms.add(h, (yield h))
        arms.add(challenger, (yield challenger))
        t += 1


# --- episodes -------------------------------------------------------------------------------------------------------


def follow(env: Any, twin: Twin, spent: Callable[[], set[int]] | None = None) -> tuple[list[int], set[int] | None]:
    """The arms that the twin pulls in the episode that has begun, and its answer; None where it was cut short.

    spent: the answer of a twin that does not know of a budget, at its end.
    """
    arms: list[int] = []
    unread = np.zeros(env.unwrapped.task.K, np.int8)
    try:
        arm = next(twin)
        while spent is None or len(arms) != env.task.budget:
            arms.append(arm)
            *_, truncated, info = env.step({"arm": arm, "times": 1, "answer": unread})
            if truncated:
                return arms, None
            arm = twin.send(info["sample"])
        return arms, spent()
    except StopIteration as stop:
        return arms, stop.value


def play(env: Any, agent: Any, observation: Any) -> tuple[list[int], set[int] | None]:
    """The arms that the agent pulls in the episode that has begun, and its answer; None where it was cut short."""
    arms: list[int] = []
    state = None
    while True:
        action, state = agent.predict(observation, state)
        observation, _, terminated, truncated, info = env.step(action)
        if terminated:
            return arms, set(np.flatnonzero(info["answer"]).tolist())
        arms.append(action["arm"])
        if truncated:
            return arms, None


def as_twin(
    env: Any, agent: Any, twin_of: Callable[[int], Twin], seed: int, episode: int, spent: Any = None
) -> tuple[list[int], set[int] | None]:
    """The agent pulls what its twin pulls, which is made of the public seed, and answers the same: these."""
    start: dict[str, Any] = {"seed": seed, "options": {"episode": episode}}
    observation, _ = env.reset(**start)
    mine = play(env, agent, observation)
    env.reset(**start)
    assert mine == follow(env, twin_of(int(observation["public_seed"][0])), spent), (agent, episode, agent.task)
    return mine
