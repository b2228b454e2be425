"""The forward and the backward pass of `policy.ArmNetwork`, in compiled code, sample by sample.

A minibatch has some thousands of samples of ten arms or so, and layers are narrow: PyTorch spends most of its time on
memory and on calls. Here all that belongs to one sample stays in the cache of the processor. The backward pass computes
the forward pass of each sample anew, so that nothing is kept between the two.

Networks in single precision are computed in single precision, those in double precision in that. Letters: K arms, F
features, H the width of the layers, P that of whole vectors (`layers.padded`).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bandit_envs import FEATURES, inlined, jit

from .layers import LANES, dense, equal, four, load, most, muladd, one, sigmoid, spread, store, total
from .networks import LOCAL, MOST, NAMES, OPENED, Weights, closed, opened_doubt, unbounded, weights_of

__all__ = ["Passes"]

Floats = NDArray[Any]
PULLS, WIDTH, DOUBT = FEATURES.index("pulls"), FEATURES.index("width"), FEATURES.index("doubt")  # kernel constants
F, NEAR = len(FEATURES), len(LOCAL)


class Layer(NamedTuple):
    """The weights of a layer for both passes, with zeros up to whole vectors."""

    ahead: Floats  # (inputs, P)
    back: Floats  # (P, inputs up to whole vectors)
    bias: Floats  # (P,)


class Layers(NamedTuple):
    """A network in the form that the passes read."""

    first: Layer
    second: Layer
    pooled: Layer
    arm: Layer
    own: Layer
    around: Layer
    logit: Floats  # (P,)
    logit_bias: Any
    slopes: Floats  # (3,)
    prior: Floats  # (2,)


class Values(NamedTuple):
    """What a forward pass finds out about one sample, flat arrays; of layers also the slopes of their SiLU."""

    inputs: Floats  # (K, F + 3)
    near: Floats  # (K, 8)
    opened: Floats  # (K, 5): evidence, its share that counts, ln(1 + n), how rich the episode is, that at most MOST
    first: Floats  # (K, P)
    first_slopes: Floats
    codes: Floats  # (K, P)
    codes_slopes: Floats
    own: Floats  # (K, P)
    own_slopes: Floats
    arms: Floats  # (K, P)
    arms_slopes: Floats
    pooled: Floats  # (2, P): means and maxima of the codes
    context: Floats  # (P,)
    context_slopes: Floats
    fixed: Floats  # (P,): what all arms get in their last layer


@jit
def _layer(weights: Any, bias: Any, parts: Any) -> Any:
    """A layer (outputs, inputs), whose inputs are so many parts, each of which gets zeros up to whole vectors.

    Args:
        parts: 0: the inputs get no zeros.
    """
    H, inputs = weights.shape
    P, each = (H + LANES - 1) // LANES * LANES, inputs // max(parts, 1)
    wide = (each + LANES - 1) // LANES * LANES
    ahead = np.zeros((parts * wide if parts else inputs, P), weights.dtype)
    back = np.zeros((P, max(parts, 1) * wide), weights.dtype)
    own = np.zeros(P, weights.dtype)
    for h in range(H):
        if len(bias):
            own[h] = bias[h]
        for i in range(inputs):
            place = i // each * wide + i % each
            ahead[place if parts else i, h] = back[h, place] = weights[h, i]
    return Layer(ahead, back, own)


@jit
def _prepared(net: Any) -> Any:
    """The layers of a network."""
    P, none = (net.second.shape[0] + LANES - 1) // LANES * LANES, net.logit_bias[:0]
    logit = np.zeros(P, net.logit.dtype)
    logit[: net.logit.shape[1]] = net.logit[0]
    return Layers(
        _layer(net.first, net.first_bias, 0),
        _layer(net.second, net.second_bias, 1),
        _layer(net.pooled, net.pooled_bias, 2),
        _layer(net.arm, net.arm_bias, 1),
        _layer(net.own, net.own_bias, 0),
        _layer(net.around, none, 1),
        logit,
        net.logit_bias[0],
        net.slopes[0],
        net.prior,
    )


@jit
def _values(K: Any, kind: Any, P: Any) -> Any:
    """Room for one sample; kind: the dtype."""
    wide = K * P
    return Values(
        np.zeros(K * (F + OPENED), kind),
        np.zeros(K * (NEAR + OPENED), kind),
        np.zeros((K, 5), kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(wide, kind),
        np.zeros(2 * P, kind),
        np.zeros(P, kind),
        np.zeros(P, kind),
        np.zeros(P, kind),
    )


@inlined
def _active(values: Any, slopes: Any, at: Any, z: Any) -> None:
    """Write SiLU of a vector, and its slope."""
    share = sigmoid(z)
    y = z * share
    store(values, at, y)
    store(slopes, at, muladd(y, 1.0 - share, share))


@inlined
def _layer_of(inputs: Any, K: Any, count: Any, weights: Any, bias: Any, values: Any, slopes: Any) -> None:
    """SiLU of a layer of all arms: inputs (K, count) to values (K, P), and the slopes of SiLU."""
    P = len(bias)
    for at in range(0, P, LANES):
        start = load(bias, at)
        for k in range(0, K - K % 4, 4):
            s0, s1, s2, s3 = four(inputs, k * count, count, weights, at, start)
            _active(values, slopes, k * P + at, s0)
            _active(values, slopes, (k + 1) * P + at, s1)
            _active(values, slopes, (k + 2) * P + at, s2)
            _active(values, slopes, (k + 3) * P + at, s3)
        for k in range(K - K % 4, K):
            _active(values, slopes, k * P + at, dense(inputs, k * count, count, weights, at, start))


@inlined
def _look(layers: Any, x: Any, i: Any, K: Any, with_context: Any, values: Any) -> None:
    """The forward pass of sample i of x (n, K F), up to what the logits are sums of."""
    P, ln_K = len(layers.logit), math.log(float(K))
    for k in range(K):
        begin, near, told = k * (F + OPENED), k * (NEAR + OPENED), values.opened[k]
        own = values.inputs
        for f in range(F):
            own[begin + f] = x[i, k * F + f]
        pulls, width, doubt = own[begin + PULLS], own[begin + WIDTH], own[begin + DOUBT]
        share, ln_n, rich = unbounded(layers.prior, ln_K, pulls, width)
        evidence, own[begin + F] = opened_doubt(doubt)
        own[begin + F + 1], own[begin + F + 2] = closed(ln_n, rich)
        told[0], told[1], told[2], told[3], told[4] = evidence, share, ln_n, rich, min(rich, MOST)
        for j in range(NEAR):
            values.near[near + j] = own[begin + LOCAL[j]]
        for j in range(OPENED):
            values.near[near + NEAR + j] = own[begin + F + j]
    first, second, pooled, arm = layers.first, layers.second, layers.pooled, layers.arm
    codes, context = values.codes, values.context
    _layer_of(values.inputs, K, F + OPENED, first.ahead, first.bias, values.first, values.first_slopes)
    _layer_of(values.first, K, P, second.ahead, second.bias, codes, values.codes_slopes)
    for at in range(0, P, LANES):
        mean = largest = load(codes, at)
        for k in range(1, K):
            code = load(codes, k * P + at)
            mean, largest = mean + code, most(largest, code)
        store(values.pooled, at, mean / K)
        store(values.pooled, P + at, largest)
    _layer_of(values.pooled, 1, 2 * P, pooled.ahead, pooled.bias, context, values.context_slopes)
    for at in range(0, P, LANES):
        s = load(arm.bias, at)
        if with_context:
            s = dense(context, 0, P, layers.around.ahead, at, s)
        store(values.fixed, at, s)
    if with_context:
        _layer_of(codes, K, P, arm.ahead, values.fixed, values.arms, values.arms_slopes)
    else:
        own_layer = layers.own
        _layer_of(values.near, K, NEAR + OPENED, own_layer.ahead, own_layer.bias, values.own, values.own_slopes)
        _layer_of(values.own, K, P, arm.ahead, values.fixed, values.arms, values.arms_slopes)


@jit
def ahead(net: Any, x: Any, steep: Any, logits: Any, latent: Any) -> None:
    """Fill the logits of the arms (n, K) and the context (n, H)."""
    layers, K = _prepared(net), logits.shape[1]
    H, P, with_context = latent.shape[1], len(layers.logit), net.around.shape[0] > 0
    values = _values(K, x.dtype, P)
    a, b, c = layers.slopes[0], layers.slopes[1], layers.slopes[2]
    for i in range(len(x)):
        _look(layers, x, i, K, with_context, values)
        for k in range(K):
            s = load(layers.logit, 0) * load(values.arms, k * P)
            for at in range(LANES, P, LANES):
                s = muladd(load(layers.logit, at), load(values.arms, k * P + at), s)
            told = values.opened[k]
            shrunk, ln_n = told[0] * (told[1] * told[1]), told[2]
            index = total(s) + layers.logit_bias + a * shrunk + b * ln_n + c * (ln_n * told[3])
            logits[i, k] = steep * (index - shrunk - ln_n)
        for h in range(H):
            latent[i, h] = values.context[h]


@inlined
def _add(inputs: Any, K: Any, count: Any, slopes: Any, weights: Any, bias: Any) -> None:
    """Add, to slopes by weights (count, P) and bias (P,), what inputs (K, count) and slopes by outputs (K, P) make."""
    P = len(bias)
    for at in range(0, P, LANES):
        for j in range(0, count - count % 4, 4):
            place = j * P + at
            s0, s1 = load(weights, place), load(weights, place + P)
            s2, s3 = load(weights, place + 2 * P), load(weights, place + 3 * P)
            for k in range(K):
                slope, i = load(slopes, k * P + at), k * count + j
                s0, s1 = muladd(one(inputs, i), slope, s0), muladd(one(inputs, i + 1), slope, s1)
                s2, s3 = muladd(one(inputs, i + 2), slope, s2), muladd(one(inputs, i + 3), slope, s3)
            store(weights, place, s0)
            store(weights, place + P, s1)
            store(weights, place + 2 * P, s2)
            store(weights, place + 3 * P, s3)
        for j in range(count - count % 4, count):
            s = load(weights, j * P + at)
            for k in range(K):
                s = muladd(one(inputs, k * count + j), load(slopes, k * P + at), s)
            store(weights, j * P + at, s)
        s = load(bias, at)
        for k in range(K):
            s = s + load(slopes, k * P + at)
        store(bias, at, s)


@inlined
def _by_inputs(slopes: Any, K: Any, back: Any, out: Any) -> None:
    """Slopes by the inputs of a layer, out (K, inputs), from those by its outputs (K, P); back: (P, inputs)."""
    P, inputs = back.shape
    zero = spread(back.dtype.type(0.0))
    for at in range(0, inputs, LANES):
        for k in range(0, K - K % 4, 4):
            s0, s1, s2, s3 = four(slopes, k * P, P, back, at, zero)
            store(out, k * inputs + at, s0)
            store(out, (k + 1) * inputs + at, s1)
            store(out, (k + 2) * inputs + at, s2)
            store(out, (k + 3) * inputs + at, s3)
        for k in range(K - K % 4, K):
            store(out, k * inputs + at, dense(slopes, k * P, P, back, at, zero))


@inlined
def _times(out: Any, slopes: Any) -> None:
    """Multiply one array by another."""
    for at in range(0, len(out), LANES):
        store(out, at, load(out, at) * load(slopes, at))


@jit
def back(net: Any, x: Any, steep: Any, by_logits: Any, by_latent: Any, out: Any) -> None:
    """Fill `out`, a `Weights`, with the slopes of a loss, from those by the logits (n, K) and by the context (n, H)."""
    layers, K, kind = _prepared(net), by_logits.shape[1], x.dtype
    H, P, with_context = by_latent.shape[1], len(layers.logit), net.around.shape[0] > 0
    values = _values(K, kind, P)
    by_arms, by_codes, by_lower = np.zeros(K * P, kind), np.zeros(K * P, kind), np.zeros(K * P, kind)
    by_around, by_context, by_pooled, codes = np.zeros(P, kind), np.zeros(P, kind), np.zeros(2 * P, kind), values.codes
    first, second, pooled, arm, own, around = (
        np.zeros_like(layers.first.ahead),
        np.zeros_like(layers.second.ahead),
        np.zeros_like(layers.pooled.ahead),
        np.zeros_like(layers.arm.ahead),
        np.zeros_like(layers.own.ahead),
        np.zeros_like(layers.around.ahead),
    )
    biases, logit, logit_bias = np.zeros((6, P), kind), np.zeros(P, kind), 0.0
    a, b, c, p, q = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(x)):
        _look(layers, x, i, K, with_context, values)
        by_around[:] = 0
        for k in range(K):
            slope, told = steep * by_logits[i, k], values.opened[k]
            evidence, share, ln_n = told[0], told[1], told[2]
            a += slope * (evidence * (share * share))
            b += slope * ln_n
            c += slope * (ln_n * told[3])
            by_prior = slope * (layers.slopes[0] - 1.0) * evidence * (2.0 * share * share * (share - 1.0))
            p += by_prior
            q += by_prior * told[4]
            logit_bias += slope
            for at in range(0, P, LANES):
                place = k * P + at
                store(logit, at, muladd(slope, load(values.arms, place), load(logit, at)))
                s = load(layers.logit, at) * slope * load(values.arms_slopes, place)
                store(by_arms, place, s)
                store(by_around, at, load(by_around, at) + s)
        if with_context:
            _add(values.codes, K, P, by_arms, arm, biases[3])
            _by_inputs(by_arms, K, layers.arm.back, by_codes)
            _add(values.context, 1, P, by_around, around, biases[5])
            _by_inputs(by_around, 1, layers.around.back, by_context)
        else:
            _add(values.own, K, P, by_arms, arm, biases[3])
            _by_inputs(by_arms, K, layers.arm.back, by_lower)
            _times(by_lower, values.own_slopes)
            _add(values.near, K, NEAR + OPENED, by_lower, own, biases[4])
            by_codes[:] = 0
            by_context[:] = 0
        for h in range(H):
            by_context[h] += by_latent[i, h]
        _times(by_context, values.context_slopes)
        _add(values.pooled, 1, 2 * P, by_context, pooled, biases[2])
        _by_inputs(by_context, 1, layers.pooled.back, by_pooled)
        for at in range(0, P, LANES):  # arms that are equal share what falls to the largest
            largest = load(values.pooled, P + at)
            count = spread(kind.type(0.0))
            for k in range(K):
                count = count + equal(load(codes, k * P + at), largest)
            by_mean, by_largest = load(by_pooled, at) / K, load(by_pooled, P + at) / count
            for k in range(K):
                place = k * P + at
                pooled_too = muladd(equal(load(codes, place), largest), by_largest, by_mean)
                store(by_codes, place, load(by_codes, place) + pooled_too)
        _times(by_codes, values.codes_slopes)
        _add(values.first, K, P, by_codes, second, biases[1])
        _by_inputs(by_codes, K, layers.second.back, by_lower)
        _times(by_lower, values.first_slopes)
        _add(values.inputs, K, F + OPENED, by_lower, first, biases[0])
    _fill(out.first, out.first_bias, first, biases[0], 0)
    _fill(out.second, out.second_bias, second, biases[1], 1)
    _fill(out.pooled, out.pooled_bias, pooled, biases[2], 2)
    _fill(out.arm, out.arm_bias, arm, biases[3], 1)
    _fill(out.own, out.own_bias, own, biases[4], 0)
    _fill(out.around, biases[5][:0], around, biases[5], 1)
    out.logit[0] = logit[: out.logit.shape[1]]
    out.logit_bias[0] = logit_bias
    out.slopes[0, 0], out.slopes[0, 1], out.slopes[0, 2], out.prior[0], out.prior[1] = a, b, c, p, q


@jit
def _fill(weights: Any, bias: Any, ahead: Any, own: Any, parts: Any) -> None:
    """The inverse of `_layer`."""
    H, inputs = weights.shape
    each = inputs // max(parts, 1)
    wide = (each + LANES - 1) // LANES * LANES
    for h in range(H):
        for i in range(inputs):
            weights[h, i] = ahead[i // each * wide + i % each if parts else i, h]
        if len(bias):
            bias[h] = own[h]


class Passes(torch.autograd.Function):
    """Features (n, K F), the factor of the logits, and the weights in the order of `names`, to logits and context.

    Returns the logits of the arms (n, K) and the context (n, H).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, steep: float, names: tuple[str, ...], *weights: Tensor) -> tuple[Tensor, Tensor]:
        """The logits and the context."""
        ctx.x, ctx.steep, ctx.names = x.detach().contiguous().numpy(), steep, names
        ctx.network = weights_of(dict(zip(names, weights, strict=True)))
        n, dtype = len(ctx.x), ctx.x.dtype
        logits = np.empty((n, ctx.x.shape[1] // F), dtype)
        latent = np.empty((n, len(ctx.network.arm)), dtype)
        ahead(ctx.network, ctx.x, dtype.type(steep), logits, latent)
        return torch.from_numpy(logits), torch.from_numpy(latent)

    @staticmethod
    def backward(ctx: Any, by_logits: Tensor, by_latent: Tensor) -> Any:
        """The slopes by the weights."""
        slopes = Weights(*(np.empty_like(one) for one in ctx.network))
        back(
            ctx.network,
            ctx.x,
            ctx.x.dtype.type(ctx.steep),
            by_logits.contiguous().numpy(),
            by_latent.contiguous().numpy(),
            slopes,
        )
        own = dict(zip(NAMES, slopes, strict=True))
        return None, None, None, *(torch.from_numpy(own[name]) for name in ctx.names)
