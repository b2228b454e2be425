"""Tournament trees of many sizes against a plain scan: after every step the whole tree, and all that it answers.

python tests/campaigns/forests.py     up to 3000 arms; the default tests have at most 65
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.core.trees import (
    ESTIMATE,
    FEW,
    LOWER,
    NEG_LOWER_IN,
    ONE,
    OTHER,
    UPPER,
    UPPER_OUT,
    Tree,
    build,
    by_line,
    extreme,
    grow,
    is_inside,
    lead,
    leader,
    lower,
    overtaken_by_line,
    put,
    refresh,
    root,
    settle,
    settle_best,
    upper,
)
from bandit_envs.kernels.compiled import jit

Floats = NDArray[np.float64]


@jit
def _put(tree: Any, i: Any, estimate: Any, low: Any, high: Any, inside: Any) -> Any:
    put(tree, i, estimate, low, high, inside)


@jit
def _leaf(tree: Any, i: Any) -> Any:
    return lower(tree, i), upper(tree, i), is_inside(tree, i)


@jit
def _extremes(tree: Any) -> Any:
    return root(tree, UPPER), root(tree, LOWER), root(tree, ESTIMATE)


@jit
def _line(tree: Any, i: Any, a: Any, s: Any, inside: Any) -> Any:
    o = np.uint64(8 * i)
    for side, here in ((ONE, not inside), (OTHER, inside)):
        tree.nodes[o + side], tree.nodes[o + side + np.uint64(1)] = (a, s) if here else (-np.inf, -np.inf)


@jit
def _lead(tree: Any, i: Any, x: Any, last: Any) -> Any:
    lead(tree, i, by_line, overtaken_by_line, x, last)


@jit
def _leaders(tree: Any, x: Any, last: Any) -> Any:
    grow(tree, by_line, overtaken_by_line, x, last)
    return leader(tree, ONE, by_line, x, False, 0), leader(tree, OTHER, by_line, x, last, 0)


class Plain:
    """What a tree should be: columns of the arms, all extremes by a scan."""

    def __init__(self, K: int) -> None:
        self.m, self.low, self.high = np.zeros(K), np.full(K, -np.inf), np.full(K, np.inf)
        self.inside = np.zeros(K, np.bool_)

    def leaves(self) -> Floats:
        """The leaves (K, 8)."""
        into = np.where(self.inside[:, None], np.stack([-self.low, -self.m], axis=1), -np.inf)
        out = np.where(self.inside[:, None], -np.inf, np.stack([self.high, self.m], axis=1))
        last = np.full((len(self.m), 1), -np.inf)
        return np.concatenate([np.stack([self.high, self.low, self.m], axis=1), into, out, last], axis=1)

    def nodes(self) -> Floats:
        """The whole tree (nodes, 8), level by level."""
        levels, level = [], self.leaves()
        while len(level) > 1:
            level = np.concatenate([level, np.full((-len(level) % 8, 8), -np.inf)])
            levels.append(level)
            level = level.reshape(-1, 8, 8).max(axis=1)
        return np.concatenate([*levels, level])

    def best(self, k: int) -> NDArray[np.bool_]:
        """The k largest estimates, ties to the lowest arm."""
        inside = np.zeros(len(self.m), np.bool_)
        inside[np.argsort(-self.m, kind="stable")[:k]] = True
        return inside


class Pair:
    """A tree and its plain form, the second of three in one array."""

    def __init__(self, K: int) -> None:
        self.K, self.plain, forest = K, Plain(K), Tree.of(3, K)
        self.trees = forest.nodes.reshape(3, -1, 8)
        self.tree = Tree(self.trees[1].reshape(-1), forest.levels)

    def set(self, i: int, m: float, low: float, high: float, inside: bool) -> None:
        _put(self.tree, i, m, low, high, inside)
        p = self.plain
        p.m[i], p.low[i], p.high[i], p.inside[i] = m, low, high, inside

    def check(self) -> None:
        """The same nodes, and the same answers."""
        p, tree = self.plain, self.tree
        assert np.array_equal(self.trees[1], p.nodes())
        assert (self.trees[[0, 2]] == -np.inf).all()  # the neighbours are not touched
        assert _extremes(tree) == (p.high.max(), p.low.max(), p.m.max())
        assert extreme(tree, UPPER) == np.argmax(p.high)
        inside, outside = np.flatnonzero(p.inside), np.flatnonzero(~p.inside)
        assert extreme(tree, NEG_LOWER_IN) == (inside[np.argmin(p.low[inside])] if len(inside) else -1)
        assert extreme(tree, UPPER_OUT) == (outside[np.argmax(p.high[outside])] if len(outside) else -1)


def drawn(g: np.random.Generator, ties: bool) -> Callable[[], float]:
    """Random values: a few, so that many are equal, or all different."""
    return (lambda: float(g.integers(-3, 4)) / 2) if ties else (lambda: float(g.normal()))


def begin(pair: Pair, g: np.random.Generator, values: Callable[[], float]) -> None:
    """All arms outside, with values drawn by `values`."""
    for i in range(pair.K):
        m, width = values(), abs(values())
        pair.set(i, m, m - width, m + width, bool(g.random() < 0.5))
    build(pair.tree)
    pair.check()


def check_boundary(K: int, ties: bool) -> None:
    g, pair = np.random.default_rng(K + ties), Pair(K)
    values = drawn(g, ties)
    begin(pair, g, values)
    p, tree = pair.plain, pair.tree
    moved = empty = 0
    for step in range(60):
        for _ in range(3):  # arms pulled
            i, m, width = int(g.integers(K)), values(), abs(values())
            pair.set(i, m, m - width, m + width, bool(g.random() < 0.5) if step % 2 else bool(p.inside[i]))
            refresh(tree, i)
            pair.check()
        boundary = [p.m.max() - 1.0, values(), p.m.min() - 1, p.m.max() + 1][g.choice(4, p=[0.5, 0.3, 0.1, 0.1])]
        before = p.inside
        settle(tree, boundary)
        p.inside = p.m >= boundary
        moved += int((before != p.inside).sum())
        empty += int(p.inside.all() or not p.inside.any())
        pair.check()
    assert moved > 30
    assert empty > 1


def check_best(K: int, ties: bool) -> None:
    g, pair = np.random.default_rng(K + ties), Pair(K)
    values = drawn(g, ties)
    begin(pair, g, values)
    p, tree = pair.plain, pair.tree
    for k in (int(g.integers(1, K)), 1, K - 1, 0, K):
        for i in range(K):  # any k arms; `settle_best` swaps
            pair.set(i, p.m[i], p.low[i], p.high[i], i >= K - k)
        build(tree)
        moved = 0
        for _ in range(8):
            before = p.inside
            settle_best(tree)
            p.inside = p.best(k)
            moved += int((before != p.inside).sum())
            pair.check()
            for _ in range(2):
                i, m, width = int(g.integers(K)), values(), abs(values())
                pair.set(i, m, m - width, m + width, bool(p.inside[i]))
                refresh(tree, i)
        assert moved > 0 or k in (0, K) or K < 4


def check_growth(K: int, trials: int) -> int:
    """Leaders of both sides as x grows and arms change, as a scan finds them, ties to the lowest arm or to the last.

    Returns how often the leader of a side has changed while no arm has: overtaken, as x grew.
    """
    g, overtaken = np.random.default_rng(K), 0
    for trial in range(trials):
        tree, coarse, last = Tree.of(1, K), trial % 2 == 0, bool(g.random() < 0.5)  # coarse: many ties
        a, s = np.zeros(K), np.zeros(K)
        inside, x = g.random(K) < g.choice([0.1, 0.5, 0.9]), 0.5
        for i in range(K):
            a[i], s[i] = (g.integers(0, 4) / 4, 1 / np.sqrt(g.integers(1, 4))) if coarse else (g.random(), g.normal())
            _line(tree, i, a[i], s[i], bool(inside[i]))
        for i in range(0, K, 8):
            _lead(tree, i, x, last)
        before = None
        for step in range(30):
            if step % 3 == 0:
                i, before = int(g.integers(K)), None
                a[i], inside[i] = g.integers(0, 4) / 4 if coarse else g.random(), g.random() < 0.5
                _line(tree, i, a[i], s[i], bool(inside[i]))
                _lead(tree, i, x, last)
            x += float(g.choice([0.0, 0.01, 0.3]))
            found, values = _leaders(tree, x, last), a + x * s
            for (arm, most, rest), side, of_last in zip(found, (~inside, inside), (False, last), strict=True):
                arms = np.flatnonzero(side & (values == np.where(side, values, -np.inf).max()))
                assert arm == (arms[-1 if of_last else 0] if len(arms) else -1)
                assert not len(arms) or most == values[arm]
                others = np.delete(np.where(side, values, -np.inf), arm) if len(arms) else values
                assert rest == (np.max(others, initial=-np.inf) if len(arms) and K <= FEW else np.inf)
            overtaken += before is not None and before != [arm for arm, *_ in found]
            before = [arm for arm, *_ in found]
    return overtaken


def main() -> None:
    for K in (7, 16, 63, 64, 200, 3000):
        for ties in (True, False):
            check_boundary(K, ties)
            check_best(K, ties)
        assert check_growth(K, 100) > 20


if __name__ == "__main__":
    main()
