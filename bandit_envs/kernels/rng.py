"""Counter-based random numbers: a draw is a pure function of (root, episode, arm, index).

Philox4x32-10 (Salmon, Moraes, Dror & Shaw, SC 2011, "Parallel random numbers: as easy as 1, 2, 3") turns a key of two
and a counter of four 32-bit words into four random words. Here the key is the root seed's word, and the counter is

    word 0   index of the draw: the low 32 bits of the number of earlier pulls of the arm
    word 1   arm (24 bits) and, above it, the next 8 bits of the index; words 0 and 1 of public seeds are the salt
    word 2   episode
    word 3   stream (what the draw is for, 4 bits) and, above it, the block within the draw

so that nothing depends on the order, the batch or the process in which draws are made. A kernel that needs an unknown
number of uniforms for one draw keeps its key and counter in a small array (`counter`, six words) and takes block after
block (`next_uniform`). All words are kept in 64-bit lanes, since LLVM then vectorises the rounds over a batch.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import integer
from .compiled import inlined, jit, part

# Streams: what a draw is for. No two purposes ever share a counter.
SAMPLE, BULK, INSTANCE, SHUFFLE, PUBLIC, AGENT, ORDER, DELAY = range(8)

ARMS_LIMIT = 2**24  # arms of an instance
EPISODES_LIMIT = 2**32  # episodes of one root seed
PULLS_LIMIT = 2**40  # pulls of one arm

_LOW = np.uint64(0xFFFFFFFF)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_5, _6, _8, _24, _26, _32 = (np.uint64(x) for x in (5, 6, 8, 24, 26, 32))
_BULK, _AGENT, _ORDER = np.uint64(BULK), np.uint64(AGENT), np.uint64(ORDER)
_BLOCK = np.uint64(16)  # one block of random words further, above the 4 bits of the stream
_2_32 = np.uint64(2**32)
_UNIT = 2.0**-53
_HALF = 2.0**-54
CENTRAL = 0.425  # distance from 1/2 up to which a quantile needs no logarithm
_NOTHING = 2.0**-64  # an inversion reaches a mass as small as this by rounding errors only


def root_number(seed: Any) -> int:
    """A root seed, checked."""
    try:
        value = -1 if isinstance(seed, (bool, np.bool_)) else operator.index(seed)
    except TypeError:
        value = -1
    if value < 0:
        raise ValueError(f"a seed is an integer >= 0, got {seed!r:.200}")
    return value


def root_key(seed: int) -> NDArray[np.uint64]:
    """The key of a root seed: two 32-bit words in 64-bit lanes, shape (2,)."""
    return np.random.SeedSequence(root_number(seed)).generate_state(2, np.uint32).astype(np.uint64)


@inlined
def philox(c0, c1, c2, c3, k0, k1):
    """Four random words, each 32 bits in a 64-bit lane, of a counter and a key given likewise."""
    for _ in range(10):
        p0, p1 = _M0 * (c0 & _LOW), _M1 * (c2 & _LOW)
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@inlined
def to_uniform(w0, w1):
    """A number in [0, 1), from 53 bits of two words."""
    return np.float64(np.int64(((w0 >> _5) << _26) | (w1 >> _6))) * _UNIT


@inlined
def arm_word(arm, index):
    """Word 1 of the counter: the arm, and the bits of the index above the lowest 32."""
    return np.uint64(arm) | ((np.uint64(index) >> _32) << _24)


@inlined
def _centre(u):
    """u + 2^-54 - 1/2, in (-1/2, 1/2)."""
    return (u - 0.5) + _HALF


# As AS 241 has them: numerators and denominators near 1/2, farther off and in the tails, from the highest power on.
_A, _B, _C, _D, _E, _F = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867, 5394.1960214247511077,
     687.1870074920579083, 42.313330701600911252, 1.0),
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


@inlined
def _polynomial(coefficients, r):
    """By Horner's rule."""
    a, b, c, d, e, f, g, h = coefficients
    return ((((((a * r + b) * r + c) * r + d) * r + e) * r + f) * r + g) * r + h


@inlined
def _central_quantile(q):
    """Quantile of the standard normal distribution at 1/2 + q, for |q| <= CENTRAL."""
    r = 0.180625 - q * q
    return q * _polynomial(_A, r) / _polynomial(_B, r)


@jit
def normal_quantile(u):
    """Standard normal quantile at u + 2^-54 for u in [0, 1) (Wichura 1988, AS 241, PPND16; error 1e-16)."""
    q = _centre(u)
    if abs(q) <= CENTRAL:
        return _central_quantile(q)
    r = math.sqrt(-math.log(0.5 - abs(q)))
    if r <= 5.0:
        x = _polynomial(_C, r - 1.6) / _polynomial(_D, r - 1.6)
    else:
        x = _polynomial(_E, r - 5.0) / _polynomial(_F, r - 5.0)
    return x if q > 0.0 else -x


@inlined
def block_of_quantiles(u, n, tail, out):
    """Fill out[:n] with `normal_quantile` of u[:n]; tail (n,) int64 is scratch: the places that are not central.

    All are computed as if they were central, in a loop that LLVM vectorises; then those that are not, once more.
    """
    tails = 0
    for i in range(n):
        out[i] = _central_quantile(_centre(u[i]))
    for i in range(n):
        tail[tails] = i
        tails += abs(_centre(u[i])) > CENTRAL
    for j in range(tails):
        out[tail[j]] = normal_quantile(u[tail[j]])


@jit
def _normal_quantiles(u, out):
    """Fill out (n,) with the quantiles of u (n,)."""
    block_of_quantiles(u, len(u), np.empty(len(u), np.int64), out)


def normal_quantiles(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """`normal_quantile` of every number of an array of any shape."""
    out = np.empty(u.size)
    # A copy: the kernel would be compiled a second time for read-only arrays.
    _normal_quantiles(np.array(u, np.float64).reshape(-1), out)
    return out.reshape(u.shape)


# --- one draw after another: for bulk pulls, whose methods need an unknown number of uniforms ------------------------


@part
def open_counter(counter, k0, k1, episode, arm, index):
    """Set `counter` (6,) uint64 to the bulk stream of (episode, arm, first index)."""
    counter[0], counter[1] = k0, k1
    counter[2], counter[3], counter[4] = np.uint64(index) & _LOW, arm_word(arm, index), episode
    counter[5] = _BULK


@part
def next_uniform(counter):
    """The next uniform number in [0, 1) of an opened counter."""
    w0, w1, _, _ = philox(counter[2], counter[3], counter[4], counter[5], counter[0], counter[1])
    counter[5] += _BLOCK
    return to_uniform(w0, w1)


@part
def _stirling_tail(k):
    """ln k! minus Stirling's (k + 1/2) ln(k + 1) - (k + 1) + ln sqrt(2 pi), for real k >= 0."""
    if k < 10.0:
        return (math.lgamma(k + 1.0) - (k + 0.5) * math.log(k + 1.0)) + (k + 1.0) - 0.9189385332046727
    x = k + 1.0
    s = 1.0 / (x * x)
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - (1.0 / 1680) * s) * s) * s) / x


@part
def binomial(counter, n, p):
    """A Binomial(n, p) draw: inversion for n min(p, 1-p) < 10, else Hoermann's BTRS (JSCS 1993). Exact."""
    if n <= 0 or p <= 0.0:
        return 0
    if p >= 1.0:
        return n
    flip = p > 0.5
    if flip:
        p = 1.0 - p
    q, N = 1.0 - p, float(n)
    k: Any = 0
    if N * p < 10.0:
        mass = math.exp(N * math.log1p(-p))
        u = next_uniform(counter)
        while u >= mass and k < n and mass > _NOTHING:
            u -= mass
            k += 1
            mass *= (p / q) * ((N - k + 1.0) / k)
    else:
        sd = math.sqrt(N * p * q)
        b = 1.15 + 2.53 * sd
        a = -0.0873 + 0.0248 * b + 0.01 * p
        c = N * p + 0.5
        v_r = 0.92 - 4.2 / b
        alpha = (2.83 + 5.1 / b) * sd
        r = p / q
        m = float(math.floor((N + 1.0) * p))
        while True:
            u = next_uniform(counter) - 0.5
            v = next_uniform(counter) + _HALF
            us = 0.5 - abs(u) + _HALF
            x = float(math.floor((2.0 * a / us + b) * u + c))
            if x < 0.0 or x > N:
                continue
            if us >= 0.07 and v <= v_r:
                k = np.int64(x)
                break
            bound = (
                (m + 0.5) * math.log((m + 1.0) / (r * (N - m + 1.0)))
                + (N + 1.0) * math.log((N - m + 1.0) / (N - x + 1.0))
                + (x + 0.5) * math.log(r * (N - x + 1.0) / (x + 1.0))
                + _stirling_tail(m)
                + _stirling_tail(N - m)
                - _stirling_tail(x)
                - _stirling_tail(N - x)
            )
            if math.log(v * alpha / (a / (us * us) + b)) <= bound:
                k = np.int64(x)
                break
    return n - k if flip else k


@part
def gamma(counter, shape):
    """A Gamma(shape, 1) draw for shape > 0 (Marsaglia & Tsang, ACM TOMS 2000). Exact in distribution."""
    boost = 1.0
    if shape < 1.0:
        boost = (next_uniform(counter) + _HALF) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal_quantile(next_uniform(counter))
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v, u, sure = v * v * v, next_uniform(counter) + _HALF, 1.0 - 0.0331 * (x * x) * (x * x)
        # The authors' squeeze, by more than the rounding errors of what it stands for, needs no logarithms.
        if u < sure - 1e-14 * d * (1.0 + v) or math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


# --- whole batches of uniforms ---------------------------------------------------------------------------------------


@inlined
def agent_uniform(public_seed, draw, seed):
    """`agent_uniforms` of one episode, inside a kernel."""
    word, t = np.uint64(public_seed), np.uint64(draw)
    w0, w1, _, _ = philox(t & _LOW, (t >> _32) << _24, np.uint64(seed), _AGENT, word & _LOW, word >> _32)
    return to_uniform(w0, w1)


@jit
def _fill_uniforms(out, arms, draws, k0, k1, episode, index, stream):
    """Fill out[i, a, j], flat, for arm a of episode[i] at draw index[i]; a block of random words yields two numbers."""
    arms, draws, stream = np.uint64(arms), np.uint64(draws), np.uint64(stream)
    for i in range(len(episode)):
        low, high = index[i] & _LOW, (index[i] >> _32) << _24
        start, e, q0, q1 = np.uint64(i) * arms * draws, episode[i], k0[i], k1[i]
        for block in range((draws + np.uint64(1)) // np.uint64(2)):
            c3, j = stream | (block * _BLOCK), block * np.uint64(2)
            for a in range(arms):
                w0, w1, w2, w3 = philox(low, a | high, e, c3, q0, q1)
                out[start + a * draws + j] = to_uniform(w0, w1)
                if j + np.uint64(1) < draws:
                    out[start + a * draws + j + np.uint64(1)] = to_uniform(w2, w3)


def uniforms(
    key: NDArray[np.uint64],
    episode: NDArray[np.uint64],
    arms: int,
    draws: int = 1,
    *,
    stream: int,
    index: NDArray[np.uint64] | None = None,
) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1), shape (episodes, arms, draws), of the keys (2, episodes) and episodes (episodes,)."""
    # The kernel would be compiled a second time for strided arrays.
    out, key = np.empty((len(episode), arms, draws)), np.ascontiguousarray(key)
    index = np.zeros(len(episode), np.uint64) if index is None else index
    _fill_uniforms(out.reshape(-1), arms, draws, key[0], key[1], episode, index, stream)
    return out


@jit
def _deal(out, k0, k1, episode):
    """Fill out (n, N) with a permutation for each episode: Fisher and Yates, numbers by Lemire's rejection."""
    words, N = np.empty(4, np.uint64), np.uint64(out.shape[1])
    for i in range(len(episode)):
        block, used = np.uint64(0), 4
        for j in range(N):
            out[np.uint64(i), j] = j
        for j in range(N - np.uint64(1)):
            left = N - j
            product, reject = np.uint64(0), True
            while reject:
                if used == 4:
                    words[0], words[1], words[2], words[3] = philox(
                        block & _LOW, (block >> _32) << _24, episode[i], _ORDER, k0[i], k1[i]
                    )
                    block, used = block + np.uint64(1), 0
                product = words[used] * left
                used += 1
                # Of the 2^32 words, each number below `left` has as many that are not rejected.
                reject = (product & _LOW) < left and (product & _LOW) < (_2_32 % left)
            other = j + (product >> _32)
            out[np.uint64(i), j], out[np.uint64(i), other] = out[np.uint64(i), other], out[np.uint64(i), j]


def orders(key: NDArray[np.uint64], episode: NDArray[np.uint64], N: int) -> NDArray[np.int64]:
    """A permutation of 0 .. N - 1, all equally likely, for each of the keys (2, n) and episodes (n,): (n, N)."""
    out, key = np.empty((len(episode), N), np.int64), np.ascontiguousarray(key)
    _deal(out, key[0], key[1], episode)
    return out


def agent_uniforms(
    public_seed: NDArray[np.int64], draw: NDArray[np.int64], count: int = 1, *, seed: int = 0
) -> NDArray[np.float64]:
    """An agent's own uniforms in [0, 1), (E, count): a function of (public seed, its `seed`, its draw number).

    Args:
        public_seed: (E,), of the observation. draw: (E,), how many times the agent has drawn in each episode.
        count: numbers per draw. seed: the agent's own, in 0 .. 2^32 - 1.
    """
    seed = integer("an agent's seed", seed, 0, 2**32 - 1)
    word = public_seed.astype(np.uint64)
    key = np.stack([word & _LOW, word >> _32])
    own = np.full(len(word), seed, np.uint64)
    return uniforms(key, own, 1, count, stream=AGENT, index=draw.astype(np.uint64))[:, 0]
