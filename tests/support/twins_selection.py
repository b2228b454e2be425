"""Literal twins of the procedures of ranking and selection: KT, FBKT, GSP, PASS.

A twin yields (arm, times), is sent the average of these samples, and returns its answer, a set of arms. GSP and PASS,
which need variances, pull one by one.
"""

from __future__ import annotations

import math
from statistics import fmean, variance

from plays import Twin


def kt(K: int, delta: float, z: float, n0: int, g: int) -> Twin:
    """The head of agents/top_k/knockout.py: KN in groups of g, at delta / 2^r in round r."""
    alive, r = list(range(K)), 0
    while len(alive) > 1:
        r, G = r + 1, math.ceil(len(alive) / g)
        h2 = (n0 - 1) * ((2 * delta / 2**r / (g - 1)) ** (-2 / (n0 - 1)) - 1)
        groups, x = [alive[q::G] for q in range(G)], {i: list[float]() for i in alive}
        while any(len(group) > 1 for group in groups):
            for group in groups:
                for i in group if len(group) > 1 else ():
                    x[i].append((yield i, 1))
            groups = [
                [i for i in group if not any(loses(x[i], x[j], i > j, h2, z, n0) for j in group if j != i)]
                for group in groups
            ]
        alive = sorted(i for group in groups for i in group)
    return set(alive)


def loses(x: list[float], y: list[float], later: bool, h2: float, z: float, n0: int) -> bool:
    """Whether the arm with the samples x is out because of the one with y."""
    n = len(x)
    if n < n0:
        return False
    bar = max(h2 * (variance(x[:n0]) + variance(y[:n0])) / (2 * z) - z * n / 2, 0.0)
    ahead = round(math.fsum(x) - math.fsum(y), 9)
    return ahead < -bar or (bar == 0 and ahead == 0 and later)


def fbkt(K: int, T: int, n0: int, phi: float) -> Twin:
    """The head of agents/top_k/knockout.py: in each round the best seed meets the worst."""
    S, total, N, R = list(range(K)), [0.0] * K, [n0] * K, math.ceil(math.log2(K))
    w = [r * ((phi - 1) / phi) ** r for r in range(1, R + 1)]
    for i in S:
        total[i] = round(n0 * (yield i, n0), 9)
    for r in range(R):
        S.sort(key=lambda i: (-total[i] / N[i], i))
        t, won = int(w[r] / (len(S) * math.fsum(w)) * (T - n0 * K)), {}
        bye = S[: len(S) % 2]
        playing = S[len(bye) :]
        for i in playing:
            won[i] = round(t * (yield i, t), 9) if t else 0.0
            total[i], N[i] = round(total[i] + won[i], 9), N[i] + t
        pairs = zip(playing, reversed(playing), strict=True)
        S = bye + [i if won[i] >= won[j] else j for i, j in list(pairs)[: len(playing) // 2]]
    return set(S)


def gsp(K: int, z: float, n1: int, beta: float, rounds: int, G: int, eta: float, h: float) -> Twin:
    """The head of agents/top_k/survivors.py, with its constants."""
    x: list[list[float]] = [[] for _ in range(K)]
    S = list(range(K))
    for i in S:
        for _ in range(n1):
            x[i].append((yield i, 1))
    V = [variance(one) for one in x]
    average = fmean(math.sqrt(one) for one in V)
    b = [max(math.ceil(beta * math.sqrt(one) / average), 1) if average else 1 for one in V]

    def out(i: int, j: int) -> bool:
        c, e = (V[i] / n[i] + V[j] / n[j] for n in ([len(one) for one in x], [n1 + rounds * one for one in b]))
        return fmean(x[i]) - fmean(x[j]) < -(eta * c * math.sqrt((n1 - 1) / e) if e else 0.0)

    for r in range(rounds + 1):
        best = max(S, key=lambda i: (fmean(x[i]), -i))
        S = [i for i in S if not any(out(i, j) for j in S if j == best or j % G == i % G)]
        for i in S if r < rounds and len(S) > 1 else ():
            for _ in range(b[i]):
                x[i].append((yield i, 1))
    for i in S if len(S) > 1 else ():
        for _ in range(math.ceil(h * h * V[i] / (z * z)) - len(x[i])):
            x[i].append((yield i, 1))
    return {max(S, key=lambda i: (fmean(x[i]), -i))}


def pass_(K: int, epsilon: float, n1: int, step: int, most: int | None, c: float, s: float = 1.0) -> Twin:
    """The head of agents/top_k/survivors.py: what is below the average of the survivors is out."""
    x: list[list[float]] = [[] for _ in range(K)]
    S, times = list(range(K)), n1
    while True:
        for i in S:
            for _ in range(times):
                x[i].append((yield i, 1))
        V, standard, times = [variance(one[:n1]) for one in x], fmean(fmean(x[i]) for i in S), step

        def width(i: int, V: list[float] = V) -> float:
            t = len(x[i]) * s * s / V[i] if V[i] else math.inf
            return s * math.sqrt((c + math.log(t + 1)) * (t + 1)) / t if V[i] else 0.0

        S = [i for i in S if fmean(x[i]) - standard >= -width(i)]
        done = all(len(x[i]) >= most if most else width(i) <= epsilon for i in S)
        if done or len(S) == 1:
            return {max(S, key=lambda i: (fmean(x[i]), -i))}
