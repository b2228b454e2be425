"""Tournament trees against a plain scan: after every step the whole tree, and all that it answers."""

from __future__ import annotations

import numpy as np
import pytest
from forests import Pair, _extremes, _leaf, begin, check_best, check_boundary, check_growth

from agents.core.trees import (
    NEG_LOWER_IN,
    UPPER,
    UPPER_OUT,
    Tree,
    build,
    extreme,
    levels_of,
    refresh,
    settle,
)

# About the ends of blocks of 8 and 64 leaves, where a tree has another level.
SIZES = [2, 3, 8, 9, 65]


def test_levels() -> None:
    assert levels_of(2).tolist() == [0, 8, 9]  # a block of leaves, the root
    assert levels_of(8).tolist() == [0, 8, 9]
    assert levels_of(9).tolist() == [0, 16, 24, 25]  # 2 blocks, 1 block, the root
    assert levels_of(65).tolist() == [0, 72, 88, 96, 97]  # 9 blocks, 2, 1, the root
    assert Tree.of(3, 9).nodes.shape == (3 * 25 * 8,)


def test_by_hand() -> None:
    pair = Pair(3)
    # estimate, bounds: arm 0 in [0, 2], arm 1 in [0, 4], arm 2 in [1, 2]
    for i, (m, low, high) in enumerate([(1.0, 0.0, 2.0), (2.0, 0.0, 4.0), (1.5, 1.0, 2.0)]):
        pair.set(i, m, low, high, False)
    build(pair.tree)
    tree = pair.tree
    assert _extremes(tree) == (4.0, 1.0, 2.0)
    assert extreme(tree, NEG_LOWER_IN) == -1  # nobody is inside
    settle(tree, 1.5)
    assert [bool(_leaf(pair.tree, i)[2]) for i in range(3)] == [False, True, True]  # 1.5 >= 1.5 is inside
    assert (extreme(tree, NEG_LOWER_IN), extreme(tree, UPPER_OUT), extreme(tree, UPPER)) == (1, 0, 1)
    settle(tree, 0.0)
    assert extreme(tree, NEG_LOWER_IN) == 0  # arms 0 and 1 tie at 0
    assert extreme(tree, UPPER_OUT) == -1


@pytest.mark.parametrize("K", SIZES)
@pytest.mark.parametrize("ties", [True, False])
def test_moving_boundary(K: int, ties: bool) -> None:
    check_boundary(K, ties)


@pytest.mark.parametrize("K", SIZES)
@pytest.mark.parametrize("ties", [True, False])
def test_the_best_k(K: int, ties: bool) -> None:
    check_best(K, ties)


def test_the_check_has_teeth() -> None:
    """A leaf that nobody refreshed, and an arm on the wrong side, are found."""
    pair = Pair(20)
    begin(pair, np.random.default_rng(0), np.random.default_rng(1).normal)
    pair.set(11, 9.0, 8.0, 10.0, True)
    with pytest.raises(AssertionError):
        pair.check()
    refresh(pair.tree, 11)
    pair.check()
    pair.plain.inside[4] ^= True
    with pytest.raises(AssertionError):
        pair.check()


@pytest.mark.parametrize("K", [2, 9, 65, 300, 512, 513, 600])  # leaders are kept of more than 512
def test_extremes_under_growth(K: int) -> None:
    check_growth(K, 40)
