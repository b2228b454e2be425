"""Literal twins of the algorithms for tables: their steps, as plainly as possible.

A twin yields (arm, times) and returns its answer, a set of arms. It is sent the average of these samples, but for that
of UCB-E-LRF, which is sent the scores themselves, a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from fractions import Fraction
from statistics import NormalDist, fmean, stdev
from typing import Any

import numpy as np
from plays import Twin

Scores = Generator["tuple[int, int]", "list[float]", "set[int]"]


def sysrs(K: int, N: int, T: int) -> Twin:
    """Lyu et al. 2026: common items, and what the items of a phase cannot take goes to the phases before."""
    Lbar = Fraction(1, 2) + sum(Fraction(1, j) for j in range(2, K + 1))
    n = [0] + [math.ceil((T - K) / (Lbar * (K + 1 - k))) for k in range(1, K)]
    capped: set[int] = set()
    while new := {k for k in range(1, K) if n[k] > N}:
        capped |= new
        s = min(capped)
        cells = sum((n[k] - n[k - 1]) * (K - k + 1) for k in range(1, s)) - n[s - 1] * (K - s + 1)
        alpha = Fraction(T - N * (K - s + 1), cells) if cells else Fraction(0)
        n = [math.floor(alpha * x) for x in n[:s]] + [N] * (K - s)
    left, total = list(range(K)), [0.0] * K
    for k in range(1, K):
        for i in left if n[k] > n[k - 1] else []:
            x = yield i, n[k] - n[k - 1]
            total[i] += x * (n[k] - n[k - 1])
        left.remove(min(left, key=lambda i: (float(f"{total[i]:.9g}"), -i)))
    return set(left)


def ucb_e(K: int, N: int, T: int, a: float, batch: int) -> Twin:
    """Zhou et al. 2025, UCB-E."""
    n, total = [0] * K, [0.0] * K

    def bound(i: int) -> float:
        if n[i] == 0:
            return math.inf
        return -math.inf if n[i] == N else total[i] / n[i] + math.sqrt(a / n[i])

    while sum(n) < T:
        i = max(range(K), key=lambda i: (bound(i), -i))
        times = min(batch, N - n[i])
        total[i] += (yield i, times) * min(times, T - sum(n))
        n[i] += min(times, T - sum(n))
    return {max(range(K), key=lambda i: (total[i] / n[i] if n[i] else -math.inf, -i))}


def fitted(x: Any, u: Any, kept: Any, ridge: float, sweeps: int) -> Any:
    """The predictions of one member: x[i][j] its scores, None where unseen; kept[i][j]; u[i] its start."""
    K, P, r = len(x), len(x[0]), len(u[0])

    def factor(f: Any, cells: Any) -> Any:
        A, b = ridge * np.eye(r), np.zeros(r)
        for place, value in cells:
            A, b = A + np.outer(f[place], f[place]), b + np.array(f[place]) * value
        return np.linalg.solve(A, b)

    here = [[(i, j) for j in range(P) if x[i][j] is not None and kept[i][j]] for i in range(K)]
    for _ in range(sweeps):
        v = [factor(u, [(i, x[i][j]) for i in range(K) if (i, j) in here[i]]) for j in range(P)]
        u = [factor(v, [(j, x[i][j]) for _, j in here[i]]) for i in range(K)]
    return [[float(u[i] @ v[j]) for j in range(P)] for i in range(K)]


def ucb_e_lrf(K: int, N: int, T: int, agent: Any, uniforms: Callable[[int, int], Any]) -> Scores:
    """Zhou et al. 2025, UCB-E-LRF; uniforms(t, n): n numbers for the fit after t pulls."""
    seen: list[list[float]] = [[] for _ in range(K)]
    M, r, normal = agent.ensemble, agent.rank, NormalDist()

    def sums(eta: float) -> list[float]:
        P = max(map(len, seen))
        x = [[row[j] if j < len(row) else None for j in range(P)] for row in seen]
        numbers = uniforms(sum(map(len, seen)), M * K * (r + P)).tolist()
        starts, masks = numbers[: M * K * r], numbers[M * K * r :]
        predicted = []
        for m in range(M):
            u = [[normal.inv_cdf(starts[(m * K + i) * r + s] + 2**-54) for s in range(r)] for i in range(K)]
            kept = [[masks[(m * K + i) * P + j] >= agent.drop for j in range(P)] for i in range(K)]
            predicted.append(fitted(x, u, kept, agent.ridge, agent.sweeps))
        out = []
        for i in range(K):
            out.append(float(sum(seen[i])))
            for j in range(len(seen[i]), P):
                cell = [member[i][j] for member in predicted]
                out[i] += sum(cell) / M + eta * stdev(cell)
        return out

    spent = 0
    first = min(math.ceil(round(agent.warm_up * N, 9)), T // K)
    for i in range(K):
        seen[i] += yield i, first
        spent += first
    while spent < T and any(len(row) < N for row in seen):
        value = sums(agent.eta)
        i = max((i for i in range(K) if len(seen[i]) < N), key=lambda i: (value[i], -i))
        scores = yield i, min(agent.batch, N - len(seen[i]))
        seen[i] += scores
        spent += len(scores)
    value = sums(0.0)
    return {max(range(K), key=lambda i: (value[i], -i))}


def agentopt(K: int, N: int, agent: Any) -> Scores:
    """AgentOpt: arm elimination where the agent has a growth, else epsilon-LUCB."""
    seen: list[list[float]] = [[] for _ in range(K)]

    def radius(i: int) -> float:
        s = stdev(seen[i]) if len(seen[i]) > 1 else 0.5
        return agent.c * s / math.sqrt(len(seen[i]))  # type: ignore[no-any-return]

    for _ in range(agent.first):
        for i in range(K):
            seen[i] += yield i, 1
    if hasattr(agent, "growth"):
        alive, batch, rows = list(range(K)), agent.first, agent.first
        while True:
            bounds = {i: (fmean(seen[i]) - radius(i), fmean(seen[i]) + radius(i)) for i in alive}
            alive = [i for i in alive if all(bounds[i][1] >= bounds[j][0] for j in alive)]
            if len(alive) == 1 or rows == N:
                break
            batch = math.floor(batch * agent.growth)
            times = min(batch, N - rows)
            for i in alive:
                seen[i] += yield i, times
            rows += times
    else:
        for _ in range(N - agent.first):
            h = max(range(K), key=lambda i: (fmean(seen[i]), -i))
            rival = max((i for i in range(K) if i != h), key=lambda i: (fmean(seen[i]) + radius(i), -i))
            if fmean(seen[rival]) + radius(rival) - (fmean(seen[h]) - radius(h)) <= agent.epsilon:
                break
            for i in (h, rival):
                seen[i] += yield i, 1
    return {max(range(K), key=lambda i: (fmean(seen[i]), -i))}
