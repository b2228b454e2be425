"""Tournament trees over arms: extremes of K arms, kept up to date at the cost of a few nodes per pull.

A tree answers, for arms with an estimate and confidence bounds, what algorithms for all good arms and for the best k
ask each round: the largest estimate and bounds of all arms, the least lower bound among the arms "inside" (say, whose
estimate reaches a moving boundary), the largest upper bound among the others. A pull refreshes one leaf and its path;
when the boundary moves, the arms that it crosses change sides. Ties go to the lowest arm.

A node is 8 numbers, the maxima over the arms below it of: upper bound, lower bound, estimate; of the arms inside minus
the lower bound and minus the estimate (their minima, negated); of the arms outside upper bound and estimate; and the
spread, by which an arm's bounds widen per unit of a growth common to all arms: `grown_lower_inside` and
`grown_upper_outside` find the extremes under a growth without touching the tree, by branch and bound. A leaf is the
same of one arm, so that a node is one vector maximum of its 8 children, which lie together. The trees of a batch are
one flat float64 array; a kernel says where the tree of its episode begins (`t`), and where in it each level does
(`levels`: leaves first, the root last). Tests hold the tree to a plain scan.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bandit_envs.compiled import inlined, jit

__all__ = [
    "argmax_upper",
    "argmax_upper_outside",
    "argmin_lower_inside",
    "build",
    "forest",
    "grown_lower_inside",
    "grown_upper_outside",
    "levels_of",
    "lower",
    "max_estimate",
    "max_lower",
    "max_upper",
    "next_unpulled",
    "put",
    "put_spread",
    "refresh",
    "settle",
    "settle_best",
    "upper",
]

WIDTH = 8
_1, _3, _8 = np.uint64(1), np.uint64(3), np.uint64(8)
_INF = math.inf

UPPER, LOWER, ESTIMATE, NEG_LOWER_IN, NEG_ESTIMATE_IN, UPPER_OUT, ESTIMATE_OUT, SPREAD = (
    np.uint64(q) for q in range(8)
)


def levels_of(K: int, width: int = WIDTH) -> NDArray[np.uint64]:
    """Where each level of a tree over K leaves begins, in nodes (whole blocks of `width`, the root alone); the end."""
    starts, count = [0], K
    while count > 1:
        count = math.ceil(count / width)
        starts.append(starts[-1] + count * width)
    return np.array([*starts, starts[-1] + 1], np.uint64)


def forest(E: int, K: int) -> NDArray[np.float64]:
    """Trees of E episodes over K arms, (E, nodes, 8), with no arm in them."""
    return np.full((E, int(levels_of(K)[-1]), 8), -_INF)


def _maxima(typing: Any, tree: Any, block: Any, o: Any) -> Any:
    """Set the node at o to the maxima of the 8 nodes from `block` on: 8 vectors, which Numba makes of no plain loop."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers, block, o = context.make_array(tree)(context, builder, values[0]).data, values[1], values[2]
        node = ir.VectorType(ir.DoubleType(), 8)

        def at(index: Any) -> Any:
            return builder.bitcast(builder.gep(numbers, [index]), node.as_pointer())

        best = builder.load(at(block), align=8)
        for j in range(1, WIDTH):
            other = builder.load(at(builder.add(block, block.type(8 * j))), align=8)
            best = builder.select(builder.fcmp_ordered(">", other, best), other, best)
        builder.store(best, at(o), align=8)
        return context.get_dummy_value()

    return types.void(tree, block, o), write


_largest: Any = intrinsic(_maxima)


@inlined
def put(tree: Any, t: Any, i: Any, estimate: Any, lower: Any, upper: Any, inside: Any) -> Any:
    """Set the leaf of arm i; `refresh` takes it over."""
    o = t + np.uint64(i) * _8
    tree[o], tree[o + LOWER], tree[o + ESTIMATE] = upper, lower, estimate
    tree[o + NEG_LOWER_IN], tree[o + NEG_ESTIMATE_IN] = (-lower, -estimate) if inside else (-_INF, -_INF)
    tree[o + UPPER_OUT], tree[o + ESTIMATE_OUT] = (-_INF, -_INF) if inside else (upper, estimate)


@inlined
def put_spread(tree: Any, t: Any, i: Any, spread: Any) -> Any:
    """Set the spread of the leaf of arm i, >= 0; `refresh` takes it over."""
    tree[t + np.uint64(i) * _8 + SPREAD] = spread


@inlined
def next_unpulled(pulls: Any, e: Any, start: Any) -> Any:
    """The first arm from `start` on that episode e has never pulled; K if there is none."""
    i = np.uint64(start)
    while i < np.uint64(pulls.shape[1]) and pulls[e, i] > 0:
        i += _1
    return i


@inlined
def upper(tree: Any, t: Any, i: Any) -> Any:
    """Upper bound of arm i."""
    return tree[t + np.uint64(i) * _8]


@inlined
def lower(tree: Any, t: Any, i: Any) -> Any:
    """Lower bound of arm i."""
    return tree[t + np.uint64(i) * _8 + LOWER]


@inlined
def is_inside(tree: Any, t: Any, i: Any) -> Any:
    """Whether arm i is inside."""
    return tree[t + np.uint64(i) * _8 + NEG_ESTIMATE_IN] > -_INF


@jit
def refresh(tree: Any, t: Any, levels: Any, i: Any) -> Any:
    """Take over what has changed in the leaf of arm i."""
    j = np.uint64(i)
    for level in range(len(levels) - 2):
        j = j // _8
        block = t + (levels[level] + j * _8) * _8
        _largest(tree, block, t + (levels[level + 1] + j) * _8)


@jit
def build(tree: Any, t: Any, levels: Any) -> Any:
    """All nodes from the leaves."""
    for level in range(len(levels) - 2):
        for j in range((levels[level + 1] - levels[level]) // _8):
            block = t + (levels[level] + j * _8) * _8
            _largest(tree, block, t + (levels[level + 1] + j) * _8)


@inlined
def _root(tree: Any, t: Any, levels: Any, what: Any) -> Any:
    return tree[t + levels[len(levels) - 2] * _8 + what]


@inlined
def _first(tree: Any, t: Any, levels: Any, what: Any) -> Any:
    """The lowest arm that attains an extreme of the root, which must be finite."""
    target, j = _root(tree, t, levels, what), np.uint64(0)
    for level in range(len(levels) - 3, -1, -1):
        j = j * _8
        while tree[t + (levels[level] + j) * _8 + what] != target:
            j += _1
    return np.int64(j)


@inlined
def _last(tree: Any, t: Any, levels: Any, what: Any) -> Any:
    """The highest arm that attains an extreme of the root, which must be finite."""
    target, j = _root(tree, t, levels, what), np.uint64(0)
    for level in range(len(levels) - 3, -1, -1):
        j = j * _8 + np.uint64(7)
        while tree[t + (levels[level] + j) * _8 + what] != target:
            j -= _1
    return np.int64(j)


@inlined
def _put_on_side(tree: Any, t: Any, i: Any, boundary: Any) -> Any:
    """Put arm i on the side where the boundary has it."""
    o = t + np.uint64(i) * _8
    put(tree, t, i, tree[o + ESTIMATE], tree[o + LOWER], tree[o], tree[o + ESTIMATE] >= boundary)


@inlined
def _move(tree: Any, t: Any, levels: Any, i: Any, inside: Any) -> Any:
    """Put arm i on a side."""
    o = t + np.uint64(i) * _8
    put(tree, t, i, tree[o + ESTIMATE], tree[o + LOWER], tree[o], inside)
    refresh(tree, t, levels, i)


@inlined
def _crossed(tree: Any, o: Any, boundary: Any) -> Any:
    """Whether any arm below the node at o is on the wrong side."""
    return -tree[o + NEG_ESTIMATE_IN] < boundary or tree[o + ESTIMATE_OUT] >= boundary


@jit
def settle(tree: Any, t: Any, levels: Any, boundary: Any) -> Any:
    """Move the arms that a finite boundary has crossed to their side: inside are those with estimate >= boundary.

    Visits only nodes with such arms below, each once: thousands may cross at a time while arms have few pulls.
    """
    top, level, j = len(levels) - 2, len(levels) - 2, np.uint64(0)
    if not _crossed(tree, t + levels[top] * _8, boundary):
        return
    if top == 0:
        _put_on_side(tree, t, j, boundary)
        return
    while True:
        deeper = False
        for i in range(j * _8, j * _8 + _8):
            o = t + (levels[level - 1] + np.uint64(i)) * _8
            if _crossed(tree, o, boundary):
                if level > 1:
                    level, j, deeper = level - 1, np.uint64(i), True
                    break
                _put_on_side(tree, t, np.uint64(i), boundary)
        if deeper:
            continue
        _largest(tree, t + (levels[level - 1] + j * _8) * _8, t + (levels[level] + j) * _8)
        if level == top:
            return
        level, j = level + 1, j // _8


@jit
def settle_best(tree: Any, t: Any, levels: Any) -> Any:
    """Swap arms until those inside are the best by estimate, ties to the lowest; how many are inside stays."""
    while True:
        worst, best = -_root(tree, t, levels, NEG_ESTIMATE_IN), _root(tree, t, levels, ESTIMATE_OUT)
        if best < worst:
            return
        out, into = _last(tree, t, levels, NEG_ESTIMATE_IN), _first(tree, t, levels, ESTIMATE_OUT)
        if best == worst and into > out:
            return
        _move(tree, t, levels, out, False)
        _move(tree, t, levels, into, True)


@inlined
def max_upper(tree: Any, t: Any, levels: Any) -> Any:
    """The largest upper bound."""
    return _root(tree, t, levels, UPPER)


@inlined
def max_lower(tree: Any, t: Any, levels: Any) -> Any:
    """The largest lower bound."""
    return _root(tree, t, levels, LOWER)


@inlined
def max_estimate(tree: Any, t: Any, levels: Any) -> Any:
    """The largest estimate."""
    return _root(tree, t, levels, ESTIMATE)


@jit
def argmax_upper(tree: Any, t: Any, levels: Any) -> Any:
    """The arm with the largest upper bound."""
    return _first(tree, t, levels, UPPER)


@jit
def argmin_lower_inside(tree: Any, t: Any, levels: Any) -> Any:
    """The arm inside with the least lower bound; -1 if none is inside."""
    return -1 if _root(tree, t, levels, NEG_LOWER_IN) == -_INF else _first(tree, t, levels, NEG_LOWER_IN)


@jit
def argmax_upper_outside(tree: Any, t: Any, levels: Any) -> Any:
    """The arm outside with the largest upper bound; -1 if none is outside."""
    return -1 if _root(tree, t, levels, UPPER_OUT) == -_INF else _first(tree, t, levels, UPPER_OUT)


@jit
def _grown(tree: Any, t: Any, levels: Any, what: Any, growth: Any) -> Any:
    """The lowest arm that maximises a number + growth * its spread, and the maximum; -1 if no arm has one.

    A node's maxima bound those of the arms below it, so that only nodes that could hold a better arm are visited; the
    search begins from the arm that is extreme without growth.
    """
    if _root(tree, t, levels, what) == -_INF:
        return np.int64(-1), -_INF
    top = len(levels) - 2
    which = _first(tree, t, levels, what)
    o = t + np.uint64(which) * _8
    best = tree[o + what] + growth * tree[o + SPREAD]
    level, j = top, np.uint64(0)
    while True:
        o = t + (levels[level] + j) * _8
        value = tree[o + what] + growth * tree[o + SPREAD]
        if value > best or (value == best and j << (_3 * np.uint64(level)) < np.uint64(which)):
            if level > 0:
                level, j = level - 1, j * _8
                continue
            best, which = value, np.int64(j)
        while level < top and j % _8 == np.uint64(7):
            level, j = level + 1, j // _8
        if level == top:
            return which, best
        j += _1


@inlined
def grown_lower_inside(tree: Any, t: Any, levels: Any, growth: Any) -> Any:
    """The arm inside with the least lower bound - growth * spread, and that, negated; -1 if none is inside."""
    return _grown(tree, t, levels, NEG_LOWER_IN, growth)


@inlined
def grown_upper_outside(tree: Any, t: Any, levels: Any, growth: Any) -> Any:
    """The arm outside with the largest upper bound + growth * spread, and that; -1 if none is outside."""
    return _grown(tree, t, levels, UPPER_OUT, growth)
