"""The stopping rule of all agents that stop with a certificate: when it is looked at, and what a look finds.

A certificate holds at all times at once, so that looking at it less often is always valid.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs.kernels import fleeting, inlined, part, view
from bandit_envs.stopping import BOUNDED, DISTRIBUTION, PAIRED, Certifier, nearest_alternative

from .agent import Bools, Floats, Ints, Observation

LOOKS = 200  # between two looks, the pulls grow by 1 / LOOKS ..
MANY = 128  # .. or by (K / MANY)^2, as a look takes O(K), of many arms K / FEWER; or by 1
MANY_SQUARED = MANY * MANY
FEWER = 16


@fleeting
class Certifiable(NamedTuple):
    """What episodes have shown, as certificates read it."""

    pulls: Any  # (E, K)
    mean: Floats  # (E, K * D)
    variance: Floats  # (E, K * D)
    moments: Floats  # (E, 2 * K * D), third and fourth, where they are kept; of tables scores (E, K N); else (E, 0)


class Certificate(NamedTuple):
    """The certifier of the problem, one that only decides where that is quicker, and its scratch."""

    address: int
    numbers: Floats
    scratch: Annotated[Floats, 2]  # (1, S), or of tables (E, S), where it is what their rows have shown
    inside: NDArray[np.int8]  # (K,), the answer
    out: Floats  # (2 + 3 K,)
    need: float  # ln(1 / delta); inf: it does not stop
    nominal: bool  # stop where the evidence exceeds ln((1 + ln t) / delta)
    quick: bool  # it only decides


@inlined
def for_many(K):
    """How many pulls a step of O(K) is worth: of few arms none."""
    return min(K * K // MANY_SQUARED, K // FEWER)


@inlined
def next_look(t, K):
    """The pulls at the first look after one at t pulls."""
    return t + max(1, for_many(K), t // LOOKS)


def moments_of(observation: Observation) -> Floats:
    """The moments, or the scores of a table, as `Certifiable` has them; a ValueError names another shape."""
    shape = np.shape(observation["mean"])
    if "scores" in observation:
        return np.ascontiguousarray(observation["scores"], np.float64).reshape(len(observation["scores"]), -1)
    moments = np.ascontiguousarray(observation.get("moments", np.empty((*shape, 0))), np.float64)
    if moments.shape not in ((*shape, 2), (*shape, 0)):
        raise ValueError(f"moments must have the shape {(*shape, 2)}, got {moments.shape}")
    return moments.reshape(len(moments), math.prod(moments.shape[1:]))


def certificate_of(certifier: Certifier, scratch: Floats, K: int, need: float, quick: bool = False) -> Certificate:
    """The `Certificate` of K arms; `scratch` as of `scratch_for`."""
    inside, out = np.empty(K, np.int8), np.zeros(2 + 3 * K)
    return Certificate(certifier.address, certifier.numbers, scratch, inside, out, need, False, quick)


def scratch_for(certifier: Certifier, E: int) -> Floats:
    """The scratch of a `Certificate` of E episodes."""
    return np.zeros((E if certifier.numbers[DISTRIBUTION] == PAIRED else 1, certifier.scratch))


@inlined
def forget(certificate, e):
    """Forget what the rows of a table have shown: episode e begins."""
    if certificate.numbers[DISTRIBUTION] == PAIRED:
        certificate.scratch[e, 0] = 0.0


def paired_answer(certifier: Certifier, observation: Observation, slots: Ints | None) -> Bools:
    """The answers of a certificate of a table, in the given rows of an observation (None: all)."""
    rows = slice(None) if slots is None else slots
    pulls, mean = (np.ascontiguousarray(observation[name])[rows] for name in ("pulls", "mean"))
    inside = np.full(pulls.shape, -1, np.int8)
    certifier.alternatives(pulls, mean, mean, inside, observation["scores"][rows])
    answer: Bools = inside != 0
    return answer


@view
def spread_of(numbers, shown, e, low, high, scratch):
    """The variances of entries low .. high - 1 of episode e; of bounded samples with their moments, in the scratch."""
    spread = shown.variance[e, low:high]
    if numbers[DISTRIBUTION] == PAIRED:
        return shown.moments[e]
    if numbers[DISTRIBUTION] == BOUNDED:
        size, kept = high - low, shown.moments.shape[1] > 0
        spread = scratch[len(scratch) - 3 * size :]
        for i in range(size):
            spread[i] = shown.variance[e, low + i]
            for power in range(2):
                moment = shown.moments[e, 2 * (low + i) + power] if kept else math.nan
                spread[(1 + power) * size + i] = moment
    return spread


@part
def is_certified(shown, e, t, state, certificate, is_answered=False):
    """Whether the plug-in answer of episode e, of t pulls, is right with probability 1 - delta.

    Args:
        shown: what the episodes have shown, a `Certifiable` or a struct with its fields.
        state: of the episode, a record. `first` and `second` are the alternative that is looked at first; `arm`
            becomes the arm of the alternative that was found, the one with fewer pulls.
        is_answered: whether `certificate.inside` is the plug-in answer.
    """
    need, out = certificate.need, certificate.out
    scratch = certificate.scratch[min(np.int64(e), len(certificate.scratch) - 1)]
    if need == math.inf:
        return False
    if certificate.nominal:
        need += math.log1p(math.log(t))
    if not is_answered:
        certificate.inside[0] = -1
    out[1], out[3] = state.first, state.second
    pulls, mean, numbers = shown.pulls[e], shown.mean[e], certificate.numbers
    spread = spread_of(numbers, shown, e, 0, shown.mean.shape[1], scratch)
    nearest_alternative(certificate.address, pulls, mean, spread, certificate.inside, numbers, scratch, out)
    if certificate.quick:
        state.first, state.second, state.arm = out[1], out[3], np.int64(out[2])
    else:  # the number of the arms that move, and then these
        last = shown.pulls.shape[1] - 1  # a routine of a user's own may name any
        arm, other = min(max(np.int64(out[2]), 0), last), min(max(np.int64(out[2 + (out[1] > 1.0)]), 0), last)
        state.arm = arm if shown.pulls[e, arm] <= shown.pulls[e, other] else other
    return out[0] >= need


@part
def rarest(pulls):
    """The arm with the fewest pulls (K,), the lowest of those."""
    rare = 0
    for i in range(len(pulls)):
        rare = i if pulls[i] < pulls[rare] else rare
    return rare


@view
def lacking(pulls, state, t, force, least):
    """The arm with the fewest pulls, where they are fewer than sqrt(t) - K / 2, or than this times `force`; else -1.

    [Garivier & Kaufmann 2016]

    Args:
        pulls: of one episode, (K,). state: a record; `fewest`: of an arm, when this was looked up last. t: all pulls.
        force: see above. least: an arm with fewer pulls than this is lacking too.
    """
    wanted = max(force * (math.sqrt(float(t)) - 0.5 * len(pulls)), least)
    if state.fewest >= wanted:
        return -1
    rare = rarest(pulls)
    state.fewest = float(pulls[rare])
    return rare if state.fewest < wanted else -1
