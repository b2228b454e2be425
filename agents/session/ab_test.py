"""`ab_test`: variants against a control, from a table of counts, in one call; `ab_test_plan`: how long that takes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from bandit_envs import BetterThanControl, Measurements, measurements
from bandit_envs.instances import DAYS, SAID, SPANS, Count, Measurement, number_in, repeated, strata_of, uneven
from bandit_envs.kernels import choice, flag, integer, number
from bandit_envs.stopping import RATES, averages, discoveries, mismatch

from ..core.optional import pandas
from .session import Session
from .within import compared_within, refutation, within_strata
from .words import against, shipped

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame

ALIKE = 4.0  # standard errors by which the logarithms of variances of normal results may differ
EFFECTIVE, FEWEST = 12, 500  # results that bear a variance out: so many in effect, of so many
WITHIN = "within strata; or say strata=False (--pooled)"
UNPLANNED = 1e-3  # p of the planned shares
UNLIKE = "the spreads of arms or strata differ: leave sigma out"
NOISY = "the spread of its results, or the control's, is not borne out yet: give sigma"
PARTS = (1.0, 2.0, 4.0, 8.0)  # of the visitors after which a test of a plan is found on average, nearly


def ab_test(
    table: Any,
    control: Any,
    *,
    delta: float = 0.05,
    margin: float | None = None,
    lift: float | None = None,
    expected: Sequence[float] | None = None,
    rate: str = "familywise",
    sigma: float | str | None = None,
    strata: str | Sequence[str] | bool | None = None,
    closed: bool | None = None,
    shares: Mapping[Any, float] | str | None = None,
    metric: str | None = None,
    guardrails: Mapping[str, float | str] | None = None,
    lower: Sequence[str] = (),
    **columns: Any,
) -> DataFrame:
    """Variants against a control by their counts so far: intervals, p-values, and which are better; valid at any time.

    Look as often as you like, and stop when you like. A table with days is compared within days: rates may change from
    day to day, and so may traffic (`bandit_envs.stopping.strata`). One without is a `Session` that is told the table,
    and `BetterThanControl.comparison` says what is promised.

    Args:
        table: of counts, as of `Session.tell_table`: a path or a dataframe with a row for each variant, or for each of
            them and each day: its name, `n`, and `successes`, or `mean` and `sd`. Or of single results.
        control: the name of the control in it; a number or a truth value is the name that it writes.
        delta: of the intervals together, and of the error rate of `better`.
        margin, lift, expected: as for `BetterThanControl`.
        rate: "familywise": no variant is wrongly found; "fdr": few of those that are found, on average.
        sigma: of results that are not 0 or 1: their standard deviation, if it is known beforehand. None: that of the
            arm that varies most (Waudby-Smith et al., Annals of Statistics 2024, "asymptotic confidence sequences").
            "common", of strata: one of all arms that nobody knows, exactly, of normal results.
        strata: columns within whose cells arms are compared, crossed. None: those of days; False: none, all rows are
            pooled, and rates must not change. Say it before the test.
        closed: whether all strata are over; one that is not counts nothing. None: a day that is a date is over when it
            is over everywhere on earth, and all others are. False: the last day, or else the last stratum, still grows.
        shares: of traffic, as planned, by the names of the arms; or the column with that of each row, where it changes.
            Where visitors are not split so (p at most .001, at any time) every verdict is open. With them `on_average`
            is said.
        metric: the column that is to be better, where there are several, see `measurements`.
        guardrails: columns of other metrics, and by how much each may be worse than the control: in its own unit, as
            .01, or as a share of the control's mean, "1%". Then the result is a verdict for each variant: to ship, it
            passes each test at the whole of `delta` (Berger, Technometrics 1982).
        lower: those of these metrics whose lower values are better.
        columns: the names of its columns, see `Session.tell_table`.

    Returns:
        The table of `Session.comparison`, and `verdict`, in words. It is "open: .." where the table bears none out, and
        neither `better` nor `worse` is True: where, by another column, the arm's share of traffic beside the control
        changes (its numbers are NaN then); and, without sigma, where the spread of results that are not 0 or 1 is not
        borne out, of the arm or the control, with `attrs["approximate"]` True. Borne out it is from 500 results on, if
        they tell the standard deviation as well as 12 buyers do whose purchases are equal, or if those of all arms
        agree as near as those of normal results would. `attrs["open"]` has the reasons by name, `attrs["read"]` what
        was read of the table, `attrs["sigma"]` the standard deviation, `attrs["mismatch"]` p of the planned shares.
        Within strata `better_once` is what is found: better in one of them at least. `better` adds that the test of one
        effect in all (`same`) does not speak against it; `on_average`: over all visitors. `difference` and `lift` are
        of Mantel and Haenszel; rates have a ratio of odds, `odds`, with its interval. `strata`: how many count.
        With guardrails: `ship`, `drop` and `verdict`; `attrs["metrics"]` are the tables by metric.

    Raises:
        ValueError: for a table that has no such control, or less than two variants, and as `Session.tell_table`; for a
            margin or lift of rates within strata without shares, and a lift of other results there.
    """
    if isinstance(lower, str) or not isinstance(lower, Collection) or not isinstance(guardrails or {}, Mapping):
        text = "lower is a list of names, and guardrails are by names"
        raise ValueError(f"{text}, got {lower!r:.80} and {guardrails!r:.80}")
    if not (metric is None or np.isscalar(metric)):
        raise ValueError(f"metric is the name of a column, got {metric!r:.80}")
    if metric in [*(guardrails or {})] or len(lower) and guardrails is None:
        raise ValueError(f"lower needs guardrails, of other columns than metric={metric!r:.80}, got {guardrails!r:.80}")
    less = -1 if metric in lower else 1
    asked: dict[Any, Any] = {metric: tuple(one and less * number("margin or lift", one) for one in (margin, lift))}
    if guardrails is not None and (metric is None or isinstance(sigma, float | int)):
        raise ValueError(f"guardrails need metric=, and no number as sigma, got {metric!r:.80} and {sigma!r:.80}")
    asked |= {name: _allowed(name, by, -1 if name in lower else 1) for name, by in (guardrails or {}).items()}
    if unknown := [name for name in lower if name not in [*asked]]:
        raise ValueError(f"lower must be among metric and guardrails, got {unknown[0]!r:.80}")
    tables, others = dict[Any, Any](), [str(name).lower() for name in asked if name is not None]
    delta = number("delta", delta, 0, 1, above=True, below=True)
    closed = closed if closed is None else flag("closed", closed)
    if not (strata is None or strata is False or isinstance(strata, str | Sequence)):
        raise ValueError(f"strata are the names of columns, or False, got {strata!r:.200}")
    given = {"delta": delta, "expected": expected, "rate": choice("rate", rate, RATES), "several": bool(guardrails)}
    for name, (by, share) in asked.items():
        found = measurements(table, metric=name, **columns)
        rest = [head for head in found.rest if head in found.days or not any(one in head.lower() for one in others)]
        found = replace(found, rest={head: found.rest[head] for head in rest})
        expects = {"expected": expected if name == metric else None, "margin": by, "lift": share, "sigma": sigma}
        tables[name] = _compared(found, control, strata, closed, shares, **given | expects)
        tables[name].attrs["allowed"] = (guardrails or {}).get(name, "")
    return tables[metric] if guardrails is None else _shipped(tables, lower)


def today_everywhere() -> date:
    """The day that is not over everywhere on earth."""
    return datetime.now(timezone(timedelta(hours=-12))).date()


def _allowed(name: str, by: float | str, sign: int) -> tuple[float | None, float | None]:
    """The margin, or else the lift, of a guardrail; `sign` -1: lower values are better."""
    text = str(by).strip()
    most = -sign * number(f"guardrails[{name!r:.80}]", number_in(text.removesuffix("%")), 0)
    return (None, most / 100) if text.endswith("%") else (most, None)


def _compared(
    found: Measurements, control: Any, strata: Any, closed: bool | None, shares: Any, several: bool, **given: Any
) -> DataFrame:
    """The comparison in one metric, of `several`."""
    names, text = found.arms, normalize("NFC", str(control)).strip()  # names of tables are texts, as "0.0" of a column
    if not (known := [one for one in names if text == one] or [one for one in names if text == one.removesuffix(".0")]):
        raise ValueError(f"control must be one of {', '.join(names)}, got {control!r:.200}")
    control, margin, sigma = known[0], given["margin"], given.pop("sigma")
    if len(names) < 2:
        raise ValueError(f"{found.of}: it has no variant beside the control, {control!r}")
    if any(len(row.value) > 1 for row in found.rows):
        raise ValueError(f"{found.of}: a result must be one number; name the others by guardrails=")
    binary = all(set(row.value) <= {0, 1} if row.several is None else row.several.mean is None for row in found.rows)
    sigma = None if binary and several else sigma
    if sigma is not None and binary:
        raise ValueError(f"sigma is of results that are not 0 or 1, got sigma={sigma!r:.200} and counts of successes")
    if binary and margin is not None and not -1 < number("margin", margin) < 1:
        raise ValueError(f"margin is a difference of rates, above -1 and below 1, as 0.01, got {margin!r:.200}")
    for head in repeated(found):
        text = f"{found.of}: several rows of an arm have the same {head!r}: results of one person are not independent"
        warnings.warn(f"{text}: one result of each, or a table of people, is what the promise is of", stacklevel=3)
    days = sorted(found.days, key=lambda head: (head.lower() in SPANS, head.lower() not in DAYS))[:1]
    named = days if strata is None else [strata] if isinstance(strata, str) else [*(strata or ())]
    cut = strata_of(found, named or (days if shares else []), closed, control, today_everywhere())
    n, mean, squares = _cells(found.rows, cut.of, len(cut.over), names, binary)
    planned = None if shares is None else _planned(shares, found, cut.of, len(cut.over))
    uneven_p = 1.0 if planned is None else mismatch(n, planned)
    rows = [row for row, s in zip(found.rows, cut.of, strict=True) if cut.over[s]] if named else found.rows
    counts, errors = _summed(rows, binary)
    if named:
        n, mean, squares = n[cut.over], mean[cut.over], squares[cut.over]
        within = np.sqrt(squares.sum(axis=0) / np.maximum((n - (n > 0)).sum(axis=0), 1))
        counts = {name: one._replace(sd=within[names.index(name)] or None) for name, one in counts.items()}
        SAID.info(cut.said)
    noisy = [] if binary or sigma is not None else _not_borne_out(counts, errors)
    is_known = sigma not in (None, "common")
    if not binary and sigma is None:
        sigma = max((count.sd or 0.0 for count in counts.values()), default=0.0)
        if counts and not sigma > 0:
            how = "results that do not vary, or one of each arm alone, say nothing of their spread: give sigma"
            raise ValueError(f"{found.of}: {how}")
    if not binary and not (sigma == "common" and named) and counts:
        sigma = number("sigma", sigma, 0, above=True)
    if named:
        problem = BetterThanControl(names.index(control), margin, given["lift"], expected=given["expected"])
        if (averaged := binary and (several or problem.spaces[0] != (1.0, 0.0))) and planned is None:
            what = "a guardrail" if several else "a margin or lift"
            raise ValueError(f"{found.of}: {what} of rates needs the planned shares= (--shares) {WITHIN}")
        if not binary and problem.lift is not None:
            raise ValueError(f"{found.of}: a lift of results that are not 0 or 1 has no test {WITHIN}")
        by = {"level": given["delta"], "rate": given["rate"], "averaged": averaged}
        counted = None if planned is None else planned[cut.over] if cut.over.any() else np.ones((1, len(names)))
        by |= {"shares": counted}
        compared = compared_within(names, (n, mean, squares), cut, problem, sigma, **by)
    else:
        facts: dict[str, Any] = {"problem": "BetterThanControl", "arms": names, "control": control}
        facts |= {name: value for name, value in given.items() if name != "rate"}
        facts |= {"binary": True} if binary else {"sigma": sigma}
        with warnings.catch_warnings(), Session("uniform(stop='certificate')", facts, store=":memory:") as session:
            session.tell_all(counts.items())
            compared = session.comparison(given["rate"])
    rest = {head: cells for head, cells in found.rest.items() if head not in (*named, shares)}
    moved = uneven(replace(found, rest=rest), control, cut.of if named else ())
    why = dict.fromkeys(names if control in noisy else noisy, NOISY) | moved
    why |= dict.fromkeys(names if compared.attrs.get("unlike") else (), UNLIKE)
    if named and sigma == "common" and math.isnan(compared.attrs["spread"]):
        why |= dict.fromkeys(names, "results of one arm in a stratum do not vary: nothing shows their spread")
    if is_known and named and (text := refutation(n, squares, sigma, cut.noun)):
        why |= dict.fromkeys(names, text)
    if uneven_p <= UNPLANNED:
        why = dict.fromkeys(names, f"traffic is not split as planned (p {uneven_p:.2g})")
    why.pop(control, None)
    flags = [name for name in compared.columns if compared[name].dtype == bool]
    compared.loc[compared["name"].isin(list(why)), flags] = False
    pooled = [name for name in compared.columns if compared[name].dtype.kind == "f" and name != "mean"]
    compared.loc[compared["name"].isin([*moved] if uneven_p > UNPLANNED else []), pooled] = math.nan
    compared.attrs |= {"open": why, "approximate": bool(noisy), "sigma": sigma}
    compared.attrs |= {"read": f"{found.read}; {cut.said}" if named else found.read}
    compared.attrs |= {"mismatch": None if planned is None else uneven_p}
    compared["verdict"] = [row[-1] for row in against(compared)[1].values()]
    return compared


def _planned(shares: Any, found: Measurements, of: Sequence[int], S: int) -> NDArray[np.float64]:
    """The planned shares, (S, K), of a mapping or a column of the table; 0 of arms that a stratum lacks."""
    names, planned = found.arms, np.zeros((S, len(found.arms)))
    if isinstance(shares, Mapping):
        known = {normalize("NFC", str(name)).strip(): number("shares", x, 0, above=True) for name, x in shares.items()}
        if lost := [name for name in names if name not in known]:
            raise ValueError(f"shares must be of all arms, got {shares!r:.200} without {lost[0]!r:.80}")
        return planned + [known[name] for name in names]
    if not isinstance(shares, str) or shares not in found.rest:
        columns = f"or one of the columns {[*found.rest][:10]}"
        raise ValueError(f"shares are by the names of arms, as A=0.5, {columns}, got {shares!r:.200}")
    for row, s, cell in zip(found.rows, of, found.rest[shares], strict=True):
        share = number(f"{found.of}, {row.place}: {shares!r:.80}", number_in(str(cell)), 0, above=True)
        if planned[s, names.index(row.arm)] not in (0.0, share):
            raise ValueError(f"{found.of}, {row.place}: {row.arm!r:.80} has two planned shares in one stratum")
        planned[s, names.index(row.arm)] = share
    return planned


def _cells(
    rows: Sequence[Measurement], of: Sequence[int], S: int, names: Sequence[str], binary: bool
) -> NDArray[np.float64]:
    """n, the mean and the squares about it of each arm in each stratum, (3, S, K)."""
    parts, found = dict[int, list[Measurement]](), np.zeros((3, S, len(names)))
    for row, s in zip(rows, of, strict=True):
        parts.setdefault(s, []).append(row)
    for s, part in parts.items():
        for name, (n, ones, mean, sd) in _summed(part, binary)[0].items():
            found[:, s, names.index(name)] = n, ones / n if binary else mean, (n - 1) * (sd or 0.0) ** 2
    return found


def _shipped(tables: Mapping[Any, Any], lower: Sequence[str]) -> DataFrame:
    """A verdict for each variant, by the tables of all metrics, of which the first is to be better."""
    first = next(iter(tables.values()))
    names, level, control = first["name"].tolist(), first.attrs["rate_level"], first.attrs["control"]
    p, why = np.ones((len(tables), len(names), 2)), list[dict[str, str]]()
    for d, (metric, one) in enumerate(tables.items()):
        rows = one.set_index("name").loc[names]
        why.append(dict(one.attrs["open"]))
        if not one.attrs.get("averaged", True):
            changes = zip(names, rows["same"].fillna(1.0), strict=True)
            why[d] = {name: f"its effect changes (p {x:.2g})" for name, x in changes if x <= level} | why[d]
        known = ~rows.index.isin([*why[d], control])
        p[d, known] = rows.loc[known, ["p_worse", "p"] if metric in lower else ["p", "p_worse"]]
    evidence = -np.log(np.stack([p[..., 0].max(axis=0), np.minimum(len(p) * p[..., 1].min(axis=0), 1.0)]))
    evidence[:, names.index(control)] = -math.inf
    ship, drop = discoveries(evidence[0], level, first.attrs["rate"]), discoveries(evidence[1], level)
    table: DataFrame = pandas().DataFrame({"name": names, "pulls": first["pulls"], "ship": ship & ~drop, "drop": drop})
    table["verdict"] = shipped(table, tables, p, why)
    table.attrs |= first.attrs | {"metrics": tables, "read": [one.attrs["read"] for one in tables.values()]}
    return table


def _summed(found: Sequence[Measurement], binary: bool) -> tuple[dict[str, Count], dict[str, float]]:
    """Of each arm all its results together; and the square of the relative error of its variance, as far as known.

    Of n, mean and sd alone it is at most that of results of which so few are not 0 that they still have this mean and
    sd, if all are positive: n mean^2 / (mean^2 + sd^2).
    """
    rows, counts, errors = dict[str, list[Count]](), dict[str, Count](), dict[str, float]()
    for row in found:
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


def ab_test_plan(
    expected: Sequence[float],
    *,
    variants: int = 1,
    delta: float = 0.05,
    power: float = 0.8,
    visitors: int | None = None,
    margin: float | None = None,
    lift: float | None = None,
    sigma: float | None = None,
    runs: int = 300,
    seed: int = 0,
) -> DataFrame:
    """How long `ab_test` takes to find a variant, by simulated tests with equal traffic.

    Args:
        expected: the control's mean, and the one of a variant that matters, as 0.030 0.037.
        variants: how many there are beside the control; a find takes `delta` / variants.
        delta: of all finds together. power: the share of tests in which the variant is to be found.
        visitors: a day, of all arms together. Then days are compared within themselves, at a look after each; None: all
            is pooled, at a hundred looks.
        margin, lift, sigma: as for `ab_test`.
        runs: tests that are simulated. seed: of their random numbers.

    Returns:
        A row for each share of tests: 0.1, 0.5, 0.9 and `power`. `visitors` of each arm until the variant is found in
        this share, and `days`; `sharp_visitors` and `sharp_days`, where `ab_test` is given `expected`.
        `attrs["taken"]` has the visitors of all tests, (2, runs); infinity: more than 8 times the usual.

    Raises:
        ValueError: for a variant that is not better by the margin or lift, and other arguments of `ab_test`.
    """
    ask, power = BetterThanControl(margin=margin, lift=lift, expected=expected), number("power", power, 0, 1)
    (low, high), (a, b), runs = ask.expected or (0.0, 0.0), ask.spaces[0], integer("runs", runs, 1)
    sigma = None if sigma is None else number("sigma", sigma, 0, above=True)
    if not high - a * low - b > 0 or sigma is None and not 0 < low < high < 1:
        raise ValueError(f"expected must be the control's mean and one beyond the margin, got {expected!r:.200}")
    need = math.log(integer("variants", variants, 1) / number("delta", delta, 0, 1, above=True, below=True))
    spread = sigma**2 * (1 + a * a) if sigma else high * (1 - high) + a * a * low * (1 - low)
    usual = 2 * need * spread / (high - a * low - b) ** 2
    day = max(integer("visitors", visitors, 1) // (variants + 1), 1) if visitors is not None else math.ceil(usual / 100)
    ends, taken = [math.ceil(part * usual / day) for part in PARTS], np.full((2, runs), math.inf)
    for run in range(runs):
        random, n = np.random.default_rng([seed, run]), np.full((ends[-1], 2), day)
        x = random.binomial(n, (low, high)) if sigma is None else random.normal(n * (low, high), sigma * np.sqrt(n))
        for k, one in enumerate((BetterThanControl(margin=margin, lift=lift), ask)):
            for S in ends:
                if visitors is None:
                    T, kind = np.cumsum(n[:S], axis=0), "bernoulli" if sigma is None else "gaussian"
                    found = one.arm_evidence(T, np.cumsum(x[:S], axis=0) / T, distribution=kind, sigma=sigma)
                elif sigma is None and (a, b) != (1.0, 0.0):
                    found = averages(n[:S], x[:S], 0, (1.0, 1.0), a, b)
                else:
                    found = within_strata(n[:S], x[:S] / n[:S], np.zeros((S, 2)), one, sigma).evidence
                if (over := found[:, 1, 0] >= need).any():
                    taken[k, run] = day * (1 + int(np.argmax(over)))
                    break
    shares = sorted({0.1, 0.5, 0.9, power})
    table: DataFrame = pandas().DataFrame({"share": shares})
    for name, values in zip(("", "sharp_"), taken, strict=True):
        table[f"{name}visitors"] = np.sort(values)[[math.ceil(share * runs) - 1 for share in shares]]
        if visitors is not None:
            table[f"{name}days"] = table[f"{name}visitors"] / day
    table.attrs |= {"taken": taken}
    return table
