"""Tournament trees over arms: extremes of K arms, kept up to date at the cost of a few nodes per pull.

A tree answers, for arms with an estimate and confidence bounds, what algorithms for all good arms and for the best k
ask each round: the largest estimate and bounds of all arms, the least lower bound among the arms "inside" (say, whose
estimate reaches a moving boundary), the largest upper bound among the others. A pull refreshes one leaf and its path;
when the boundary moves, the arms that it crosses change sides. Ties go to the lowest arm.

A node is 8 numbers, the maxima over the arms below it of: upper bound, lower bound, estimate; of the arms inside minus
the lower bound and minus the estimate (their minima, negated); of the arms outside upper bound and estimate; and one
that is free. A leaf is the same of one arm, so that a node is one vector maximum of its 8 children, which lie together.
The trees of a batch are one flat float64 array; `levels` say where in a tree each level begins (leaves first, the root
last). Where bounds grow with a number that is common to all arms, the 8 numbers are others, see `lead`. Tests hold the
tree to a plain scan.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from bandit_envs.kernels import inlined, part

WIDTH = 8
_1, _8 = np.uint64(1), np.uint64(8)
_INF = math.inf

UPPER, LOWER, ESTIMATE, NEG_LOWER_IN, NEG_ESTIMATE_IN, UPPER_OUT, ESTIMATE_OUT = (np.uint64(q) for q in range(7))


class Tree(NamedTuple):
    """The tree of an episode, or those of a batch one after the other."""

    nodes: NDArray[np.float64]  # (E * nodes * 8,)
    levels: NDArray[np.uint64]  # where in a tree each level begins, in nodes; the end

    @classmethod
    def of(cls, E: int, K: int) -> Tree:
        """Trees of E episodes over K arms, with no arm in them."""
        levels = levels_of(K)
        return cls(np.full(E * int(levels[-1]) * WIDTH, -_INF), levels)


def levels_of(K: int, width: int = WIDTH) -> NDArray[np.uint64]:
    """Where each level of a tree over K leaves begins, in nodes (whole blocks of `width`, the root alone); the end."""
    starts, count = [0], K
    while count > 1:
        count = math.ceil(count / width)
        starts.append(starts[-1] + count * width)
    return np.array([*starts, starts[-1] + 1], np.uint64)


def _write_maxima(typing: Any, numbers: Any, block: Any, o: Any) -> Any:
    """Set the node at o to the maxima of the 8 nodes from `block` on: 8 vectors, which Numba makes of no plain loop."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        node = ir.VectorType(ir.DoubleType(), 8).as_pointer()
        numbers, block, o = builder.inttoptr(values[0], ir.DoubleType().as_pointer()), values[1], values[2]

        def at(index: Any) -> Any:
            return builder.bitcast(builder.gep(numbers, [index]), node)

        best = builder.load(at(block), align=8)
        for j in range(1, WIDTH):
            other = builder.load(at(builder.add(block, block.type(8 * j))), align=8)
            best = builder.select(builder.fcmp_ordered(">", other, best), other, best)
        builder.store(best, at(o), align=8)
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(numbers, block, o), write


_maxima: Any = intrinsic(_write_maxima)


@inlined
def put(tree: Tree, i, estimate, lower, upper, inside):
    """Set the leaf of arm i; `refresh` takes it over."""
    o = np.uint64(i) * _8
    tree.nodes[o], tree.nodes[o + LOWER], tree.nodes[o + ESTIMATE] = upper, lower, estimate
    tree.nodes[o + NEG_LOWER_IN], tree.nodes[o + NEG_ESTIMATE_IN] = (-lower, -estimate) if inside else (-_INF, -_INF)
    tree.nodes[o + UPPER_OUT], tree.nodes[o + ESTIMATE_OUT] = (-_INF, -_INF) if inside else (upper, estimate)


@inlined
def leave_out(tree: Tree, i):
    """Arm i is not in the tree, as in a new one; `refresh` takes it over."""
    put(tree, i, -_INF, -_INF, -_INF, False)


@inlined
def upper(tree: Tree, i):
    """Upper bound of arm i."""
    return tree.nodes[np.uint64(i) * _8]


@inlined
def lower(tree: Tree, i):
    """Lower bound of arm i."""
    return tree.nodes[np.uint64(i) * _8 + LOWER]


@inlined
def is_inside(tree: Tree, i):
    """Whether arm i is inside."""
    return tree.nodes[np.uint64(i) * _8 + NEG_ESTIMATE_IN] > -_INF


@inlined
def _take_over(tree: Tree, level, j):
    """Set node j of a level to the maxima of its 8 children."""
    block = (tree.levels[level - 1] + j * _8) * _8
    _maxima(tree.nodes.ctypes.data, block, (tree.levels[level] + j) * _8)


@part
def refresh(tree: Tree, i):
    """Take over what has changed in the leaf of arm i."""
    j = np.uint64(i)
    for level in range(1, len(tree.levels) - 1):
        j = j // _8
        _take_over(tree, level, j)


@part
def build(tree: Tree):
    """All nodes from the leaves."""
    for level in range(1, len(tree.levels) - 1):
        for j in range((tree.levels[level] - tree.levels[level - 1]) // _8):
            _take_over(tree, level, j)


@inlined
def root(tree: Tree, what):
    """The maximum over all arms."""
    return tree.nodes[tree.levels[len(tree.levels) - 2] * _8 + what]


@inlined
def _first(tree: Tree, what, last=False):
    """The lowest arm, or the last one, that attains an extreme of the root, which must be finite."""
    target, j, end = root(tree, what), np.uint64(0), np.uint64(0 if last else 7)
    for level in range(len(tree.levels) - 3, -1, -1):
        j = j * _8 + np.uint64(7 if last else 0)
        while tree.nodes[(tree.levels[level] + j) * _8 + what] != target:
            if j % _8 == end:  # a NaN equals nothing: any arm that there is
                return np.int64(0)
            j = j - _1 if last else j + _1
    return np.int64(j)


@inlined
def _move(tree: Tree, i, inside):
    """Put arm i on a side; `refresh` takes it over."""
    o = np.uint64(i) * _8
    put(tree, i, tree.nodes[o + ESTIMATE], tree.nodes[o + LOWER], tree.nodes[o], inside)


@inlined
def _crossed(tree: Tree, o, boundary):
    """Whether any arm below the node at o is on the wrong side."""
    return -tree.nodes[o + NEG_ESTIMATE_IN] < boundary or tree.nodes[o + ESTIMATE_OUT] >= boundary


@part
def settle(tree: Tree, boundary):
    """Move the arms that a finite boundary has crossed to their side: inside are those with estimate >= boundary."""
    top, level, j = len(tree.levels) - 2, len(tree.levels) - 2, np.uint64(0)
    if not _crossed(tree, tree.levels[top] * _8, boundary):
        return
    if top == 0:
        _move(tree, j, tree.nodes[ESTIMATE] >= boundary)
        return
    while True:
        deeper = False
        for i in range(j * _8, j * _8 + _8):
            o = (tree.levels[level - 1] + np.uint64(i)) * _8
            if _crossed(tree, o, boundary):
                if level > 1:
                    level, j, deeper = level - 1, np.uint64(i), True
                    break
                _move(tree, i, tree.nodes[o + ESTIMATE] >= boundary)
        if deeper:
            continue
        _take_over(tree, level, j)
        if level == top:
            return
        level, j = level + 1, j // _8


@inlined
def misplaced(tree: Tree):
    """The worst arm inside and the best outside by estimate, of equal ones the lowest being best; in order: -1, -1."""
    worst, best = -root(tree, NEG_ESTIMATE_IN), root(tree, ESTIMATE_OUT)
    if best >= worst:  # and none of them is a NaN
        out, into = _first(tree, NEG_ESTIMATE_IN, True), _first(tree, ESTIMATE_OUT)
        if best > worst or into < out:
            return out, into
    return np.int64(-1), np.int64(-1)


@part
def settle_best(tree: Tree):
    """Swap arms until those inside are the best by estimate, ties to the lowest; how many are inside stays."""
    out, into = misplaced(tree)
    while out >= 0:
        _move(tree, out, False)
        refresh(tree, out)
        _move(tree, into, True)
        refresh(tree, into)
        out, into = misplaced(tree)


@part
def extreme(tree: Tree, what):
    """The lowest arm with the largest of these numbers; -1 if no arm has one."""
    return -1 if root(tree, what) == -_INF else _first(tree, what)


@part
def after(tree: Tree, what, i):
    """The next arm after arm i, or the first one for i = -1, that has such a number; -1 if none has."""
    top, level, j, looks = len(tree.levels) - 2, 0, np.uint64(max(i, 0)), i < 0
    if looks:
        level = top
    while True:
        if looks and tree.nodes[(tree.levels[level] + j) * _8 + what] > -_INF:
            if level == 0:
                return np.int64(j)
            level, j = level - 1, j * _8
            continue
        while level < top and j % _8 == np.uint64(7):
            level, j = level + 1, j // _8
        if level == top:
            return np.int64(-1)
        j, looks = j + _1, True


# --- bounds that all grow with one number: the highest arm of each of two sides ---------------------------------------

# The bound of an arm is height(a, s, x), of two numbers of its own and an x that never falls. A node has a and s of the
# highest arm below it, on either side (of equal ones the lowest, or the last), and the x up to which both stay so for
# certain: where another one overtakes, by `overtaken`, or one of the children is no longer certain. So nodes are looked
# at again only where arms have changed places (a kinetic tournament).
# Trees of few arms hold a and s alone: a scan of them takes less time.
FEW = 512
# The estimates inside and outside are where other trees have them, for `misplaced`; one number is free.
ONE, OTHER, UNTIL = np.uint64(0), np.uint64(2), np.uint64(5)  # where a and s of a side are; minus that x


@inlined
def put_bound(tree: Tree, i, a, s, other, estimate, inside):
    """Set the leaf of arm i: its bound, of one side or the other, and its estimate; `lead` takes it over."""
    o, nodes = np.uint64(i) * _8, tree.nodes
    nodes[o + ONE], nodes[o + ONE + _1] = (-_INF, -_INF) if other else (a, s)
    nodes[o + OTHER], nodes[o + OTHER + _1] = (a, s) if other else (-_INF, -_INF)
    nodes[o + NEG_ESTIMATE_IN], nodes[o + ESTIMATE_OUT] = (-estimate, -_INF) if inside else (-_INF, estimate)


@part
def _lead(tree: Tree, level, j, height, overtaken, x, last):
    """Set node j of a level from its children; `last`: of equal arms of the other side."""
    nodes, o, until = tree.nodes, (tree.levels[level] + j) * _8, _INF
    for side in (ONE, OTHER):
        low, most = (tree.levels[level - 1] + j * _8) * _8 + side, -_INF
        best, high = low, low + _8 * _8
        for c in range(low, high, _8):
            if nodes[c] > -_INF:
                value = height(nodes[c], nodes[c + _1], x, most)
                best, most = (c, value) if value > most or (last and side and value == most) else (best, most)
        nodes[o + side], nodes[o + side + _1] = a, s = nodes[best], nodes[best + _1]
        for c in range(low, high, _8):
            until = min(until, -nodes[c - side + UNTIL]) if level > 1 else until
            if nodes[c] > -_INF and (nodes[c] != a or nodes[c + _1] != s):
                later = overtaken(most, a, s, nodes[c], nodes[c + _1], x, c < best)
                until = max(later, x) if later < until else until
    nodes[o + UNTIL] = -until


@inlined
def by_line(a, s, x, least):
    """The bound a + x s."""
    return a + x * s


@inlined
def overtaken_by_line(most, a, s, other_a, other, x, first):
    """The x at which such a bound may come to this one, which is `most` at x: now where rounding may decide.

    first: whether the other arm comes first where the two are equal, which is not read here.
    """
    less = most - by_line(other_a, other, x, 0.0) - 1e-13 * (abs(a) + abs(other_a) + x)
    if not less > 0.0:
        return x
    return x + less / (other - s) if other > s else _INF


@inlined
def by_root(a, N, x, least):
    """The bound a + sqrt(x / -N), or a alone where N is 0."""
    return a + math.sqrt(x / -N) if N < 0.0 else a


@inlined
def overtaken_by_root(most, a, N, other_a, other, x, first):
    """The x at which such a bound may come to this one, as above."""
    if other == 0.0:
        return x if other_a > most else _INF
    less = most - by_root(other_a, other, x, 0.0) - 1e-13 * (abs(a) + abs(other_a) + math.sqrt(x))
    if not less > 0.0:
        return x
    y = math.sqrt(x) + less / (1.0 / math.sqrt(-other) - 1.0 / math.sqrt(-N))
    return y * y if other > N else _INF


@inlined
def is_small(tree: Tree):
    """Whether it has so few arms that no leaders are kept: its nodes are maxima, also of these bounds."""
    return tree.levels[1] <= FEW


@part
def _lead_above(tree: Tree, i, height, overtaken, x, last):
    """Set the nodes above arm i."""
    j = np.uint64(i)
    for level in range(1, len(tree.levels) - 1):
        j = j // _8
        _lead(tree, level, j, height, overtaken, x, last)


@inlined
def lead(tree: Tree, i, height, overtaken, x, last):
    """`refresh` of a tree with such bounds at x."""
    refresh(tree, i)
    if not is_small(tree):
        _lead_above(tree, i, height, overtaken, x, last)


@part
def build_leads(tree: Tree, height, overtaken, x, last):
    """`build` of a tree with such bounds at x."""
    build(tree)
    for level in range(1, 1 if is_small(tree) else len(tree.levels) - 1):
        for j in range((tree.levels[level] - tree.levels[level - 1]) // _8):
            _lead(tree, level, np.uint64(j), height, overtaken, x, last)


@part
def _grow(tree: Tree, height, overtaken, x, last):
    """Set the nodes that are no longer certain."""
    top, level, j = len(tree.levels) - 2, len(tree.levels) - 2, np.uint64(0)
    while -tree.nodes[tree.levels[top] * _8 + UNTIL] < x:
        child, end = j * _8, j * _8 + _8 if level > 1 else j * _8
        while child < end and not -tree.nodes[(tree.levels[level - 1] + child) * _8 + UNTIL] < x:
            child += _1
        if child < end:
            level, j = level - 1, child
        else:
            _lead(tree, level, j, height, overtaken, x, last)
            level, j = min(level + 1, top), j // _8


@inlined
def grow(tree: Tree, height, overtaken, x, last):
    """Go on to a larger x."""
    if not is_small(tree):
        _grow(tree, height, overtaken, x, last)


@inlined
def _scanned(tree: Tree, side, height, x, last, first):
    """`leader` of a small tree."""
    which: Any = np.uint64(first)
    nodes, best, second, arms = tree.nodes, -_INF, -_INF, tree.levels[1]
    if nodes[which * _8 + side] > -_INF:
        best = height(nodes[which * _8 + side], nodes[which * _8 + side + _1], x, -_INF)
    for block in range(np.uint64(0), arms, _8):
        if nodes[(arms + block // _8) * _8 + side] > -_INF:  # it has an arm on this side
            for i in range(block, block + _8):
                o = i * _8 + side
                if nodes[o] > -_INF and i != np.uint64(first):
                    value = height(nodes[o], nodes[o + _1], x, best)
                    if value >= best and (value > best or (i > which if last else i < which)):
                        best, which, second = value, i, best
                    else:
                        second = max(second, value)
    return np.int64(which), best, second


@inlined
def leader(tree: Tree, side, height, x, last, first):
    """The highest arm of a side, -1 if there is none; its bound; no less than the bounds of the others.

    `first`: the arm to look at first, where there are few.
    """
    o, j = tree.levels[len(tree.levels) - 2] * _8 + side, np.uint64(0)
    a, s = tree.nodes[o], tree.nodes[o + _1]
    if not a > -_INF:
        return np.int64(-1), -_INF, _INF
    if is_small(tree):
        return _scanned(tree, side, height, x, last, first)
    for level in range(len(tree.levels) - 3, -1, -1):
        j, end = j * _8 + np.uint64(7 if last else 0), j * _8 + np.uint64(0 if last else 7)
        o = (tree.levels[level] + j) * _8 + side
        while j != end and (tree.nodes[o] != a or tree.nodes[o + _1] != s):
            j, o = (j - _1, o - _8) if last else (j + _1, o + _8)
    return np.int64(j), height(a, s, x, -_INF), _INF


# --- the two arms that decide which arms are the k best ---------------------------------------------------------------


class Rivals(NamedTuple):
    """h, inside with the least lower bound; l, outside with the largest upper bound; -1 where there is none."""

    h: int
    l: int  # noqa: E741
    gap: float  # U_l - L_h


@part
def put_running(tree, i, m, C):
    """Put the mean m of arm i into the tree, and bounds by the width C, which never widen again."""
    put(tree, i, m, max(m - C, lower(tree, i)), min(m + C, upper(tree, i)), is_inside(tree, i))


@part
def rivals(tree):
    """The two arms that decide, by the bounds in the tree; inside are the best by estimate."""
    settle_best(tree)
    h, l = extreme(tree, NEG_LOWER_IN), extreme(tree, UPPER_OUT)  # noqa: E741
    return Rivals(h, l, upper(tree, l) - lower(tree, h))
