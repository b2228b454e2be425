"""How the work of a decision grows with the number of arms: nodes of a tree, counted, and a sample of the campaign."""

from __future__ import annotations

import math

import numpy as np
import pytest
from forests import _lead, _leaders, _line
from slopes import REASONS, STEEP, Row, measured

from agents.core.trees import UNTIL, Tree
from agents.registry import AGENTS


def looked_at(K: int, pulls: int) -> float:
    """Nodes that a UCB rule looks at again for a pull, on average, beside those above the arm that was pulled."""
    g, tree, again = np.random.default_rng(0), Tree.of(1, K), 0
    means, sums, N, x = g.random(K), np.zeros(K), np.zeros(K), 1.0

    def pull(i: int) -> None:
        sums[i], N[i] = sums[i] + g.normal(means[i], 0.5), N[i] + 1
        _line(tree, i, sums[i] / N[i], 1 / math.sqrt(N[i]), False)
        _lead(tree, i, x, False)

    for i in range(K):
        pull(i)
    for t in range(pulls):
        x = 1.0 + t / pulls
        until = -tree.nodes.reshape(-1, 8)[int(tree.levels[1]) :, int(UNTIL)]
        again += int((until < x).sum())
        (arm, most, _), _ = _leaders(tree, x, False)
        values = sums / N + x * (1 / np.sqrt(N))
        assert (arm, most) == (int(values.argmax()), values.max())
        pull(int(arm))
    return again / pulls


def test_few_nodes_are_looked_at_again() -> None:
    """Of 140 and 1,140 nodes above the arms; a scan would look at all arms."""
    assert 0 < looked_at(1000, 2000) < 4
    assert looked_at(8000, 4000) < 4


def test_a_sample_of_the_campaign() -> None:
    row = measured("uniform", "BestArm", (100, 1000), 5, 1.0)
    assert len(row.seconds) == 2
    assert all(x > 0 for x in row.seconds)
    assert np.isnan(measured("apt", "BestArm", (100,), 5, 1.0).seconds[0])  # which it does not play


@pytest.mark.parametrize("agent", ["adapt", "clucb"])
def test_a_steep_slope_has_a_reason_or_none(agent: str) -> None:
    """The campaign fails where there is none, as for `clucb`."""
    row = Row("TopK", agent, (0.1, 10.0), 2.0)
    assert row.reason == REASONS.get(agent, "no reason is known")
    assert (agent in REASONS) == (agent == "adapt")
    assert row._replace(slope=STEEP).reason == ""


def test_reasons_are_of_agents() -> None:
    assert REASONS.keys() <= {*AGENTS}
