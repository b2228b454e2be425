"""`ab_test`: variants against a control, from a table of counts, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bandit_envs import measurements
from bandit_envs.kernels import choice
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
        sigma: of results that are not 0 or 1: their standard deviation, if it is known beforehand; None: they are taken
            to be normal, of unknown spread.
        columns: the names of its columns, see `Session.tell_table`.

    Raises:
        ValueError: for a table that has no such control, or less than two variants, and as `Session.tell_table`.
    """
    found, rate = measurements(table, **columns), choice("rate", rate, RATES)
    names = found.arms
    if control not in names:
        raise ValueError(f"control must be one of {', '.join(names)}, got {control!r:.200}")
    binary = all(set(row.value) <= {0, 1} if row.several is None else row.several.mean is None for row in found.rows)
    facts: dict[str, Any] = {"problem": "BetterThanControl", "arms": names, "control": control, "delta": delta}
    facts |= {"margin": margin, "lift": lift, "expected": expected} | (
        {"binary": True} if binary else {"sigma": sigma or 1.0}
    )
    unknown = ", distribution='student'" if not binary and sigma is None else ""
    with Session(f"uniform(stop='certificate'{unknown})", facts, store=":memory:") as session:
        session.tell_table(table, **columns)
        return session.comparison(rate)
