"""`ab_test`: variants against a control, from a table of counts, in one call."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from bandit_envs import Measurements, measurements
from bandit_envs.instances import Count, repeated, uneven
from bandit_envs.kernels import choice, number
from bandit_envs.stopping import RATES

from .session import Session
from .words import against

if TYPE_CHECKING:
    from pandas import DataFrame

ALIKE = 4.0  # standard errors by which the logarithms of variances of normal results may differ
EFFECTIVE, FEWEST = 12, 500  # results that bear a variance out: so many in effect, of so many
NOISY = "the spread of its results, or the control's, is not borne out yet: give sigma"


def ab_test(
    table: Any,
    control: Any,
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
        control: the name of the control in it; a number or a truth value is the name that it writes.
        delta: of the intervals together, and of the error rate of `better`.
        margin, lift, expected: as for `BetterThanControl`.
        rate: "familywise": no variant is wrongly found; "fdr": few of those that are found, on average.
        sigma: of results that are not 0 or 1: their standard deviation, if it is known beforehand. None: that of the
            arm that varies most (Waudby-Smith et al., Annals of Statistics 2024, "asymptotic confidence sequences").
        columns: the names of its columns, see `Session.tell_table`.

    Returns:
        The table of `Session.comparison`, and `verdict`, in words. It is "open: .." where the table bears none out, and
        neither `better` nor `worse` is True: where, by another column, as of days or countries, the arm's share of
        traffic beside the control changes (its numbers are NaN then); and, without sigma, where the spread of results
        that are not 0 or 1 is not borne out, of the arm or the control, with `attrs["approximate"]` True. Borne out it
        is from 500 results on, if they tell the standard deviation as well as 12 buyers do whose purchases are equal,
        or if those of all arms agree as near as those of normal results would. `attrs["open"]` has the reasons by name,
        `attrs["read"]` what was read of the table, `attrs["sigma"]` the standard deviation.

    Raises:
        ValueError: for a table that has no such control, or less than two variants, and as `Session.tell_table`.
    """
    found, rate = measurements(table, **columns), choice("rate", rate, RATES)
    names, text = found.arms, normalize("NFC", str(control)).strip()  # names of tables are texts, as "0.0" of a column
    if not (known := [one for one in names if text == one] or [one for one in names if text == one.removesuffix(".0")]):
        raise ValueError(f"control must be one of {', '.join(names)}, got {control!r:.200}")
    control = known[0]
    if any(len(row.value) > 1 for row in found.rows):
        raise ValueError(f"{found.of}: a result must be one number; guardrails need a session")
    binary = all(set(row.value) <= {0, 1} if row.several is None else row.several.mean is None for row in found.rows)
    if sigma is not None and binary:
        raise ValueError(f"sigma is of results that are not 0 or 1, got sigma={sigma!r:.200} and counts of successes")
    if binary and margin is not None and not -1 < number("margin", margin) < 1:
        raise ValueError(f"margin is a difference of rates, above -1 and below 1, as 0.01, got {margin!r:.200}")
    for head in repeated(found):
        text = f"{found.of}: several rows of an arm have the same {head!r}: results of one person are not independent"
        warnings.warn(f"{text}: one result of each, or a table of people, is what the promise is of", stacklevel=2)
    counts, errors = _summed(found, binary)
    noisy = [] if binary or sigma is not None else _not_borne_out(counts, errors)
    if not binary and sigma is None:
        sigma = max((count.sd or 0.0 for count in counts.values()), default=0.0)
        if not sigma > 0:
            how = "results that do not vary, or one of each arm alone, say nothing of their spread: give sigma"
            raise ValueError(f"{found.of}: {how}")
    sigma = None if binary else number("sigma", sigma, 0, above=True)
    facts: dict[str, Any] = {"problem": "BetterThanControl", "arms": names, "control": control, "delta": delta}
    facts |= {"margin": margin, "lift": lift, "expected": expected}
    facts |= {"binary": True} if binary else {"sigma": sigma}
    with warnings.catch_warnings(), Session("uniform(stop='certificate')", facts, store=":memory:") as session:
        session.tell_all(counts.items())
        compared = session.comparison(rate)
    moved = uneven(found, control)
    why = dict.fromkeys(names if control in noisy else noisy, NOISY) | moved
    why.pop(control, None)
    there = compared["name"].isin(list(why))
    compared.loc[there, ["better", "worse"]] = False
    pooled = [name for name in compared.columns if compared[name].dtype.kind == "f" and name != "mean"]
    compared.loc[compared["name"].isin(moved), pooled] = math.nan
    compared.attrs |= {"open": why, "approximate": bool(noisy), "sigma": sigma, "read": found.read}
    compared["verdict"] = [row[-1] for row in against(compared)[1].values()]
    return compared


def _summed(found: Measurements, binary: bool) -> tuple[dict[str, Count], dict[str, float]]:
    """Of each arm all its results together; and the square of the relative error of its variance, as far as known.

    Of n, mean and sd alone it is at most that of results of which so few are not 0 that they still have this mean and
    sd, if all are positive: n mean^2 / (mean^2 + sd^2).
    """
    rows, counts, errors = dict[str, list[Count]](), dict[str, Count](), dict[str, float]()
    for row in found.rows:
        rows.setdefault(row.arm, []).append(row.several or Count(1, mean=row.value[0]))
    for name, parts in rows.items():
        n = sum(part.n for part in parts)
        if binary:
            counts[name] = Count(n, sum(int(part.mean) if part.successes is None else part.successes for part in parts))
            continue
        sizes, first = np.array([part.n for part in parts], np.float64), parts[0].mean or 0.0
        means = np.array([part.successes / part.n if part.mean is None else part.mean for part in parts])
        inner = [
            part.n * x * (1 - x) if part.mean is None else (part.n - 1) * (part.sd or 0.0) ** 2
            for part, x in zip(parts, means.tolist(), strict=True)
        ]
        mean = first + float(sizes @ (means - first)) / n
        off = means - mean
        square = float(np.sum(inner) + sizes @ off**2)
        counts[name] = Count(n, None, mean, math.sqrt(square / (n - 1)) if n > 1 else None)
        if len(parts) == n and square > 0:
            errors[name] = float(np.sum((off / math.sqrt(square)) ** 4)) - 1 / n  # (kurtosis - 1) / n
    return counts, errors


def _not_borne_out(counts: Mapping[str, Count], errors: Mapping[str, float]) -> list[str]:
    """The arms whose standard deviation their results do not tell."""
    logs = {name: 2 * math.log(count.sd) for name, count in counts.items() if count.sd}
    alike = {
        name: all(
            abs(x - y) <= ALIKE * math.sqrt(2 / counts[name].n + 2 / counts[other].n) for other, y in logs.items()
        )
        for name, x in logs.items()
    }
    found = []
    for name, (n, _, mean, sd) in counts.items():
        error = errors.get(name, (1 + (sd / mean) * (sd / mean)) / n if sd and mean else math.inf)
        borne_out = error <= 1 / EFFECTIVE or name not in errors and alike.get(name) and len(logs) == len(counts)
        found += [] if sd and n >= FEWEST and borne_out else [name]
    return found
