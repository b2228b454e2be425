"""Checks of `hostile` itself, which take minutes: a sample of its cells has power, and its estimates are right.

PYTHONPATH=tests/support python tests/campaigns/hostile_checks.py
"""

from __future__ import annotations

from typing import Any

import hostile
import numpy as np
from hostile_cells import CELLS, OUTSIDE, Cell
from hostile_instances import Instance
from hostile_tilted import SETTINGS, TiltedCell, estimate
from scipy import stats

import agents
from agents.core.certified import Certified

EPISODES = 200


SAMPLE = np.random.default_rng(0).permutation([i for i, cell in enumerate(CELLS) if cell.promise != OUTSIDE])[:9]


def has_power(sample: Any) -> None:
    """Some of the cells have none by themselves. What stands for one is a cell of its own, of its agent and delta."""
    cells = [CELLS[i] for i in sample]
    rows = hostile.run_all(cells, EPISODES, None)
    assert [row.cell for row in rows] == [cell.key for cell in cells]
    assert sum(row.verdict == "within" for row in rows) >= len(cells) - 1
    moved = [row for row in rows if row.played != row.cell]
    assert len(moved) >= 2
    assert len({row.played for row in rows}) == len(rows)
    for row in moved:
        assert row.played not in {cell.key for cell in CELLS}
        assert [row.played.split(" | ")[i] for i in (0, 2)] == [row.cell.split(" | ")[i] for i in (0, 2)]


class Weakened(Certified):
    """Certified by half of the boundary: samples are taken to have half of their variance."""

    def __init__(self, task: Any, agent: Any, **options: Any) -> None:
        super().__init__(task, agent, **options)
        self.certifier.numbers[1] *= 0.5


def sees_a_weakened_certificate(setting: Any) -> None:
    """At a small delta."""
    cell = TiltedCell("uniform(stop='certificate')", setting, 1e-6)

    def weakened(task: Any) -> Any:
        return Weakened(task, agents.make("uniform", task))

    found = estimate(cell, 1000, 0, 1e-6, weakened)
    assert found.low > cell.delta
    assert hostile.run(cell, EPISODES, weakened).verdict != "within"


def estimates_what_is_counted(setting: Any) -> None:
    """At a delta at which errors can be counted; and weights are 1 on average, as they must be."""
    distribution = {"gaussian": {"distribution": "gaussian", "sd": 1.0}, "bernoulli": {"distribution": "bernoulli"}}[
        setting.distribution
    ]
    arms, delta, n, N = distribution | {"mean": list(setting.means)}, 0.3, 4000, 1500
    plain = Cell(
        "evidence", Instance(setting.problem, "counted", setting.rules, arms, setting.distribution, 1000), delta
    )
    wrong = int(hostile.run(plain, n).wrong)
    again = type(setting)(**{**vars(setting), "most": 1000})
    found = estimate(TiltedCell("evidence", again, delta), N, 1, 1e-6)
    assert found.low <= stats.beta.isf(1e-6, wrong + 1, n - wrong)
    assert found.high >= stats.beta.ppf(1e-6, wrong, n - wrong + 1)
    assert 0.5 * wrong / n < found.wrong < 2 * wrong / n  # of some 80 errors
    J = 1 + 8 * len(setting.tilts)  # at least; no weight exceeds the number of tilts
    assert abs(found.weight - 1.0) <= 6 * (J / N) ** 0.5


if __name__ == "__main__":
    has_power(SAMPLE)
    for one in SETTINGS[0], SETTINGS[4]:
        sees_a_weakened_certificate(one)
    for one in SETTINGS[3:5]:
        estimates_what_is_counted(one)
    print("all is well")
