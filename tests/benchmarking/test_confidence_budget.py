"""The arithmetic of `campaigns/real_tables.py`, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from real_tables import Cell, Table, budget_between, confidence_budget, over_tables

SHARES = [1, 2, 5, 10]


@pytest.mark.parametrize(
    ("accuracy", "wanted"),
    [
        ([0.5, 0.9, 0.95, 1.0], 2),  # exactly at the level counts
        ([0.95, 0.8, 0.95, 1.0], 5),  # it was there before, but fell below again
        ([0.9, 0.9, 0.9, 0.9], 1),
        ([1.0, 1.0, 1.0, 0.89], math.inf),  # not at the last share
        ([0.0, 0.0, 0.0, 0.9], 10),
    ],
)
def test_the_confidence_budget_is_the_least_share_from_which_on_the_accuracy_stays(
    accuracy: list[float], wanted: float
) -> None:
    assert confidence_budget(SHARES, accuracy, 0.9) == wanted


def test_its_limits_are_those_of_the_limits_of_the_accuracy() -> None:
    """Of 20 episodes 10, 17, 19, 20 are right; upper limits .728, .968, .999, 1, lower ones .272, .621, .751, .832."""
    right = [10, 17, 19, 20]
    assert budget_between(SHARES, right, 20, 0.8) == (2, 2, 10)
    assert budget_between(SHARES, right, 20, 0.7) == (2, 1, 5)
    assert budget_between(SHARES, right, 20, 0.95) == (5, 2, math.inf)


def cell(*right: int) -> Cell:
    """Episodes, right or wrong; a wrong answer loses .01 of the range."""
    answers = np.array(right, bool)
    return Cell(answers, np.where(answers, 0.0, 0.01))


def test_cells_have_rates_losses_and_differences_to_uniform() -> None:
    base, one = cell(*[0] * 15, *[1] * 5), cell(*[1] * 20)
    assert base.text(base).startswith("25 (9 to 49); 7.5 (")
    # All 20 right: the lower limit of Clopper & Pearson is .025 ** (1 / 20) = .832.
    assert one.text(base).startswith("100 (83 to 100); 0.0 (0.0 to 0.0); +75 (")
    low, mean, high = one.less(base)
    assert low < mean == 0.75 < high
    assert cell(*[0] * 10).less(base)[1] == 0  # an agent with fewer episodes has the first of them


def test_over_tables_counts_those_above_and_below() -> None:
    """Rates .5, .9 and .25 of 20 episodes: mean .55, half width 1.96 sqrt(.25 + .09 + .1875) / sqrt(20) / 3 = .106."""
    cells = [cell(*[1, 0] * 10), cell(*[1] * 18, 0, 0), cell(*[1] * 5, *[0] * 15)]
    base = [cell(*[0] * 20), cell(*[1] * 18, 0, 0), cell(*[1] * 20)]
    assert over_tables(cells, base) == "55 (44 to 66); 1 above, 1 below"
    assert over_tables(base, base) == "63 (59 to 68)"
    assert over_tables([cells[0], None], base[:2]) == "–"


def test_tables_have_agents_in_units_of_their_scores() -> None:
    wide = Table("maize")
    vars(wide)["width"] = 20.0
    assert wide.spelled("ucb-e") == "ucb-e(a=400)"  # a bonus 20 times as large
    assert wide.spelled("sysrs") == "sysrs"
    vars(wide)["width"] = 1.0
    assert wide.spelled("ucb-e") == "ucb-e"
