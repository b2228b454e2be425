"""The proportions w* of pulls that gather evidence for the best arm fastest, exactly.

Garivier & Kaufmann, COLT 2016, Theorem 5 and Lemma 4: Gaussian arms of equal variance, Bernoulli arms. With b the best
arm and x_a = w_a / w_b: g_a(x_a) = y for all a != b, where F(y) = sum of d(m_b, mu_a) / d(m_a, mu_a) is 1;
g_a(x) = d(m_b, mu_a) + x d(m_a, mu_a), mu_a = (m_b + x m_a) / (1 + x).
"""

import math

from bandit_envs.kernels import part
from bandit_envs.stopping import GAUSSIAN, divergence


@part
def _ratio(G, b, m, y, x):
    """x with g(x) = y in (0, G), by Newton's method from x, and d(m_b, mu) / d(m_a, mu) there; b, m: the means."""
    ratio = 0.0
    for _ in range(100):
        mu = (b + x * m) / (1.0 + x)
        best, other = divergence(1, b, 1.0, mu), divergence(1, m, 1.0, mu)
        ratio = best / other
        short = y - best - x * other
        after = max(x + short / other, 0.1 * x)  # g is concave: but for the first step, x never exceeds the root
        if abs(after - x) <= 1e-12 * x:
            break
        x = after
    return x, ratio


@part
def _excess(distribution, best, y, mean, cost, x):
    """F(y) - 1, and its derivative for Gaussian arms; fills in the ratios x."""
    total, rise = -1.0, 0.0
    for a in range(len(mean)):
        if a != best:
            if distribution == GAUSSIAN:
                left = cost[a] - y
                x[a] = y / left
                total += x[a] * x[a]
                rise += 2.0 * x[a] * cost[a] / (left * left)
            else:
                x[a], ratio = _ratio(cost[a], mean[best], mean[a], y, x[a] if x[a] > 0.0 else 1.0)
                total += ratio
    return total, rise


@part
def best_arm_proportions(distribution, epsilon, variance, mean, y, cost, x, w):
    """Fill in the optimal proportions w (K,) for the best arm of these means; returns y, a guess for the next call.

    Args:
        distribution: GAUSSIAN, or BERNOULLI with epsilon = 0. epsilon: of the problem. variance: of a sample.
        mean: (K,). y: a guess, or 0. cost, x: (K,), to work in; x is a guess, or 0.
        w: (K,).
    """
    K, best = len(mean), 0
    for a in range(1, K):
        best = a if mean[a] > mean[best] else best
    normal, least = distribution == GAUSSIAN, math.inf
    for a in range(K):
        if a != best:
            gap = mean[best] - mean[a] + epsilon
            cost[a] = gap * gap / (2.0 * variance) if normal else divergence(distribution, mean[best], 1.0, mean[a])
            least = min(least, cost[a])
    if not least > 1e-12 or least == math.inf:  # ties: only the tied arms are hard
        tied = 1.0
        for a in range(K):
            tied += a != best and cost[a] <= 1e-12
        for a in range(K):
            w[a] = 1.0 / tied if a == best or cost[a] <= 1e-12 or tied == 1.0 else 0.0
        return 0.0
    if distribution == GAUSSIAN:
        y = 0.5 * least  # F is convex, and at least 1 here: Newton's steps come down to the root
        for _ in range(60):
            f, rise = _excess(distribution, best, y, mean, cost, x)
            after = y - f / rise
            done = abs(after - y) <= 1e-14 * y
            y = after
            if done:
                break
        _excess(distribution, best, y, mean, cost, x)
    else:
        low, high = 0.0, least
        at_low, at_high = -1.0, math.inf
        y = y if 0.0 < y < least else 0.5 * least
        side = 0
        for _ in range(100):
            f, _ = _excess(distribution, best, y, mean, cost, x)
            if abs(f) <= 1e-10:
                break
            if f > 0.0:
                high, at_high = y, f
                at_low = 0.5 * at_low if side == 1 else at_low
                side = 1
            else:
                low, at_low = y, f
                at_high = 0.5 * at_high if side == -1 else at_high
                side = -1
            y = 0.5 * (low + high) if at_high == math.inf else low - at_low * (high - low) / (at_high - at_low)
            if high - low <= 1e-15 * high:
                break
    total = 1.0
    for a in range(K):
        total += x[a] if a != best else 0.0
    for a in range(K):
        w[a] = (x[a] if a != best else 1.0) / total
    return y
