"""`ab_test`: variants against a control, from a table of counts, in one call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bandit_envs import Measurements, measurements
from bandit_envs.instances import Count
from bandit_envs.kernels import choice, number
from bandit_envs.stopping import RATES

from .session import Session

if TYPE_CHECKING:
    from pandas import DataFrame


def ab_test(
    table: Any,
    control: str,
    *,
    delta: float = 0.05,
    margin: float | None = None,
    lift: float | None = None,
    expected: Sequence[float] | None = None,
    rate: str = "familywise",
    sigma: float | None = None,
    **columns: Any,
) -> DataFrame:
    """Variants against a control by their counts so far: intervals, p-values, and which are better; valid at any time.

    Look as often as you like, and stop when you like: `BetterThanControl.comparison` says what is promised. It is a
    `Session` that is told the table, for who asks once.

    Args:
        table: of counts, as of `Session.tell_table`: a path or a dataframe with a row for each variant, or for each of
            them and each day: its name, `n`, and `successes`, or `mean` and `sd`. Or of single results.
        control: the name of the control in it.
        delta: of the intervals together, and of the error rate of `better`. margin, lift, expected: of
            `BetterThanControl`. rate: "familywise" or "fdr".
        sigma: of results that are not 0 or 1: their standard deviation, if it is known beforehand. None: that of the
            arm that varies most, which holds for many results (some hundred of each arm); `attrs["approximate"]` is
            True then (Waudby-Smith et al., Annals of Statistics 2024, "asymptotic confidence sequences").
        columns: the names of its columns, see `Session.tell_table`.

    Raises:
        ValueError: for a table that has no such control, or less than two variants, and as `Session.tell_table`.
    """
    found, rate = measurements(table, **columns), choice("rate", rate, RATES)
    names = found.arms
    if control not in names:
        raise ValueError(f"control must be one of {', '.join(names)}, got {control!r:.200}")
    if any(len(row.value) > 1 for row in found.rows):
        raise ValueError(f"{found.of}: a result must be one number; guardrails need a session")
    binary = all(set(row.value) <= {0, 1} if row.several is None else row.several.mean is None for row in found.rows)
    if sigma is not None and binary:
        raise ValueError(f"sigma is of results that are not 0 or 1, got sigma={sigma!r:.200} and counts of successes")
    sigma = None if sigma is None else number("sigma", sigma, 0, above=True)
    facts: dict[str, Any] = {"problem": "BetterThanControl", "arms": names, "control": control, "delta": delta}
    facts |= {"margin": margin, "lift": lift, "expected": expected}
    facts |= {"binary": True} if binary else {"sigma": _largest_sd(found) if sigma is None else sigma}
    with warnings.catch_warnings(), Session("uniform(stop='certificate')", facts, store=":memory:") as session:
        warnings.filterwarnings("ignore", ".* is ignored: counts come in the order")  # sums have no order
        session.tell_table(table, **columns)
        compared = session.comparison(rate)
    compared.attrs["approximate"] = not binary and sigma is None
    return compared


def _largest_sd(found: Measurements) -> float:
    """The standard deviation of the arm whose results vary most."""
    n, total, square = (dict.fromkeys(found.arms, 0.0) for _ in range(3))
    for row in found.rows:
        count = row.several or Count(1, mean=row.value[0])
        sd, mean = count.sd or 0.0, count.mean if count.mean is not None else count.successes / count.n
        n[row.arm] += count.n
        total[row.arm] += count.n * mean
        square[row.arm] += (count.n - 1) * sd**2 + count.n * mean**2
    spread = [(square[arm] - total[arm] ** 2 / n[arm]) / (n[arm] - 1) for arm in found.arms if n[arm] > 1]
    if not spread or not max(spread) > 0:
        raise ValueError("results that do not vary, or one of each arm alone, say nothing of their spread: give sigma")
    return math.sqrt(max(spread))
