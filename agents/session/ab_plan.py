"""`ab_test_plan`: how many visitors an A/B test takes, by simulation of its very statistic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bandit_envs import BetterThanControl
from bandit_envs.kernels import integer, number
from bandit_envs.stopping import averages

from ..core.optional import pandas
from .within import within_strata

if TYPE_CHECKING:
    from pandas import DataFrame

SPANS = (1.0, 2.0, 4.0, 8.0)  # as parts of the visitors after which a test is found on average, nearly


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
    ends, taken = [math.ceil(part * usual / day) for part in SPANS], np.full((2, runs), math.inf)
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
