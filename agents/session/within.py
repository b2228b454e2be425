"""Arms against a control within strata that are over: the evidence, and the table, of A/B tests and of sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bandit_envs.instances import Strata
from bandit_envs.kernels import require
from bandit_envs.stopping import Stratified, averages, discoveries

from ..core.optional import pandas

if TYPE_CHECKING:
    from pandas import DataFrame

REFUTED = 1e-3  # p of the spread within strata, from which on a sigma is refuted


def refutation(n: Any, squares: Any, sigma: float, kind: str) -> str:
    """Why results within strata, (S, K), vary too much for a sigma; "" where they do not."""
    spare, noise = max(np.maximum(n - 1.0, 0.0).sum(), 1.0), squares.sum()
    p = require("scipy.special", "a test of sigma").chdtrc(spare, noise / sigma**2)
    noisy = f"results of one arm vary by about {math.sqrt(noise / spare):.3g} within one {kind}"
    return f"sigma={sigma:g} is refuted: {noisy}. Nothing is claimed" if p <= REFUTED else ""


def within_strata(n: Any, mean: Any, squares: Any, problem: Any, sigma: Any, near: float = 0.0) -> Stratified:
    """The evidence within strata, of cells (S, K); `sigma` None: results are 0 or 1; `near`: a tolerance."""
    c, b, hoped = problem.control, problem.spaces[0][1], 0.0
    if problem.expected is not None:
        low, high = np.array(problem.expected) if sigma is not None else np.clip(problem.expected, 1e-9, 1 - 1e-9)
        hoped = high - low - b if sigma is not None else math.log(high / (1 - high)) - math.log(low / (1 - low))
        if not hoped > 0 or sigma is None and not 0 <= min(problem.expected) <= max(problem.expected) <= 1:
            raise ValueError(f"expected must be the control's mean and one beyond the margin, got {problem.expected}")
    if sigma is None:
        return Stratified.odds(n, np.rint(n * mean), c, hoped)
    if sigma == "common":
        return Stratified.common(n, mean, squares, c, (b - near, b + near))
    return Stratified.means(n, mean, c, sigma or 1.0, (b - near, b + near), hoped)


def compared_within(names: Sequence[str], cells: Any, cut: Strata, problem: Any, sigma: Any, **how: Any) -> DataFrame:
    """The comparison with a control within strata that are over, by their cells (3, S, K); see `ab_test`.

    Args:
        sigma: see `within_strata`. how: level and rate; shares: planned ones, (K,); averaged: by these alone.
    """
    (a, b), c, delta, rate, binary = problem.spaces[0], problem.control, how["level"], how["rate"], sigma is None
    shares, averaged = how.get("shares"), how.get("averaged", False)
    n, mean, squares = (one if len(one) else np.zeros((1, len(names))) for one in cells)
    every_n, n = n, np.where(n[:, [c]] > 0, n, 0.0)
    one, K = within_strata(every_n, mean, squares, problem, sigma), np.arange(len(names))
    there, every = (n > 0) & (n[:, [c]] > 0) & (c != K), n.sum(axis=0)
    w = there / (1 / np.maximum(n, 1) + 1 / np.maximum(n[:, [c]], 1))
    ours, base = (w * mean).sum(axis=0), (w * mean[:, [c]]).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap, total = (ours - base) / w.sum(axis=0), np.where(every > 0, (n * mean).sum(axis=0) / every, np.nan)
        lift = np.where((ours >= 0) & (base > 0), ours / base - 1, np.nan)

    def claimed(evidence: Any) -> tuple[Any, Any, Any]:
        """The largest evidence at the end of a day, of averages that of now; and which arms are better, and worse."""
        seen = evidence[cut.ends or [-1]] if evidence is one.evidence else evidence[-1:]
        now, top = seen[-1] if rate == "fdr" else seen.max(axis=0), seen.max(axis=0)
        return top, discoveries(now[:, 0], delta, rate), discoveries(top[:, 1], delta)

    def cut_off(ends: Any, edge: float, over: Any, under: Any) -> list[Any]:
        """The ends of intervals of which those of what is found lie on its side."""
        sure, (low, high) = rate == "familywise", ends.T
        return [np.where(over & sure, np.fmax(low, edge), low), np.where(under & sure, np.fmin(high, edge), high)]

    (top, *once), ends, none = claimed(one.evidence), one.interval(delta), np.zeros(len(K), np.bool_)
    once = [none, none] if averaged else once
    steady = (one.same > delta) & ~(once[0] & ((ends[:, 1] <= b) | once[1]) | once[1] & (ends[:, 0] >= b))
    found_so, average = [side & steady for side in once], [none, none]
    ends = np.array(cut_off(ends, b, *found_so))
    spans = dict.fromkeys(("low", "high", "lift_low", "lift_high"), np.full(len(K), np.nan))
    if not binary:
        spans |= {"low": ends[0], "high": ends[1]}
    elif shares is not None:
        every_x = np.rint(every_n * mean)
        of_average, *average = claimed(averages(every_n, every_x, c, shares, a, b))
        top, found_so = (of_average, average) if averaged else (top, found_so)
        for name, effect, most, edge, of in (
            ("", gap, 1.0, b if a == 1 else np.nan, lambda z: (1.0, z)),
            ("lift_", lift, 10.0, a - 1 if b == 0 else np.nan, lambda z: (np.maximum(1 + z, 0.0), 0.0)),
        ):
            nats = lambda z, sign, _, of=of: averages(every_n, every_x, c, shares, *of(z))[..., int(sign < 0)]
            span = replace(one, effect=effect, _reach=most, _nats=nats).interval(delta).clip(-1.0)
            spans[f"{name}low"], spans[f"{name}high"] = cut_off(span, edge, *average)
    odds = zip(("odds", "odds_low", "odds_high"), np.exp([one.effect, *ends]) if binary else (), strict=False)
    numbers = {"mean": total, "difference": gap, "lift": lift, **spans, **dict(odds), "same": one.same}
    numbers |= {name: np.exp(-np.maximum(side, 0.0)) for name, side in zip(("p", "p_worse"), top.T, strict=True)}
    numbers = {name: np.where((c == K) & (name != "mean"), np.nan, value) for name, value in numbers.items()}
    flags = dict(zip(("better", "worse", "better_once", "worse_once"), (*found_so, *once), strict=True))
    flags |= {"on_average": average[0], "worse_on_average": average[1]}
    counts = np.where(c == K, there.any(axis=1).sum(), there.sum(axis=0))
    known = {"name": names, "pulls": every.astype(np.int64), "strata": counts}
    table: DataFrame = pandas().DataFrame(known | numbers | flags)
    table.attrs |= {"level": delta, "rate": rate, "rate_level": delta, "by": problem.beyond, "doubts": []}
    table.attrs |= {"control": names[c], "minimize": False, "noun": cut.noun, "averaged": averaged}
    table.attrs |= {"unlike": one.unlike, "spread": one.spread, "strata": cut.said}
    table.attrs |= {"at": f"{'on' if cut.noun == 'day' else 'in'} at least one {cut.noun}"}
    return table
