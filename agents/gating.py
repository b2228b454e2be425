"""`gate`: is one mean at least, or at most, a number? A verdict that is valid whenever you look."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bandit_envs import Threshold, stopping
from bandit_envs.instances import weighted
from bandit_envs.kernels import integer, interval, number, within_ends

from .core.optional import require

ONE_SIDED = 0.6  # of rates: the weight of the likelihood of rates on one side alone, beside the certificate's e-value


@dataclass(frozen=True)
class Gate:
    """A verdict on a mean.

    Attributes:
        verdict: "pass", "fail", or "open" where the results bear neither out.
        p: of the hypothesis that the mean does not pass; p_fail: that it does. Both are valid whenever you look.
        low, high: the interval of the mean, right at all times with probability 1 - delta. A verdict cuts it at the
            number that was asked about, which is right as long as the verdict is: again with probability 1 - delta.
        mean, n: of the results. bound: the number. above: whether a mean at least as large passes. delta: the level.
    """

    verdict: str
    p: float
    p_fail: float
    low: float
    high: float
    mean: float
    n: int
    bound: float
    above: bool
    delta: float

    def __str__(self) -> str:
        side, p = "at least" if self.above else "at most", self.p_fail if self.verdict == "fail" else self.p
        found = f"{self.verdict}: is the mean {side} {self.bound:g}? {self.mean:.4g} of {self.n:,} results, p {p:.2g}"
        ends = f"{100 * (1 - self.delta):g} % interval {self.low:.4g} to {self.high:.4g}"
        return f"{found}; {ends}, valid whenever you look"


def gate(
    results: Any = None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    delta: float = 0.05,
    n: int | str | None = None,
    successes: int | None = None,
    range: tuple[float, float] | None = None,
    sigma: float | None = None,
    value: str | None = None,
    **columns: Any,
) -> Gate:
    """Whether one mean is at least, or at most, a number: a pass rate of .9, half of all games. Valid at any time.

    Look after each result, and stop when you like: with probability 1 - delta no look ever says "pass" of a mean that
    does not, nor "fail" of one that does. A mean that is the number passes.

    Args:
        results: a table, a path or a dataframe, with a column of values, and one of how often each came, if it is not
            once; or numbers; a dict {value: how often}; an iterator, which is read until the first verdict. None: `n`
            and `successes`.
        at_least, at_most: the number; one of the two.
        delta: the level of the verdict, and that of the interval.
        n, successes: how many results, and how many of them were 1; n beside a table: its column of counts.
        range: the lowest and the highest result there can be. None, and no sigma: results are 0 or 1.
        sigma: a sub-Gaussian scale of a result, as the standard deviation of normal ones, known beforehand.
        value: of a table, the column of values. columns: `sep`, `decimal` and `sheet`, as for `measurements`.

    Raises:
        ValueError: for a result that cannot be, naming it, no results, and a number that no mean can be.
    """
    if (at_least is None) == (at_most is None):
        raise ValueError(f"give one of at_least and at_most, got {at_least!r} and {at_most!r}")
    above, bound = at_most is None, number("at_least", at_least) if at_most is None else number("at_most", at_most)
    delta = number("delta", delta, 0, 1, above=True, below=True)
    if range is not None and sigma is not None:
        raise ValueError(f"give range or sigma, got {range!r} and {sigma!r}")
    ends = interval("range", range) if range is not None else (0.0, 1.0) if sigma is None else (-math.inf, math.inf)
    sigma = None if sigma is None else number("sigma", sigma, 0, above=True)
    if not ends[0] <= bound <= ends[1]:
        raise ValueError(f"a mean of results from {ends[0]:g} to {ends[1]:g} is never {bound:g}")
    if (results is None) != (successes is not None):
        raise ValueError("give results, or n and successes")
    tabled = isinstance(results, (str, Path)) or hasattr(results, "columns") or hasattr(results, "__dataframe__")
    named = {"n": n if successes is None else None, "value": value, **columns}
    if not tabled and (odd := [f"{name}={given!r:.80}" for name, given in named.items() if given is not None]):
        beside = "counts" if results is None else type(results).__name__
        raise ValueError(f"columns are of a table, got {', '.join(odd)} beside {beside}")
    seen = Counter[float]()
    one = _Question(bound, above, delta, ends, sigma, range is None and sigma is None)
    if successes is not None:
        count = integer("n", n, 1, 10**15)
        ones = integer("successes", successes, 0, count)
        seen.update({1.0: ones, 0.0: count - ones})
    elif tabled:
        for x, many in zip(*weighted(results, value, None if n is None else str(n), **columns), strict=True):
            seen[one.checked(x)] += many
    elif isinstance(results, Mapping):
        for x, many in results.items():
            seen[one.checked(x)] += integer(f"how often {x!r:.80} came", many, 0)
    elif isinstance(results, Iterator):
        for x in results:
            seen[one.checked(x)] += 1
            if max(one.evidence(*moments_of(seen))) >= -math.log(delta):
                break
    elif isinstance(results, Iterable):
        seen.update(map(one.checked, results))
    else:
        raise TypeError(f"results are numbers, a dict, a table or an iterator, got {results!r:.200}")
    if not seen.total():
        raise ValueError("there is no result")
    return one.answer(seen)


@dataclass(frozen=True)
class _Question:
    """What is asked of a mean, and how its results are."""

    bound: float
    above: bool
    delta: float
    ends: tuple[float, float]
    sigma: float | None
    binary: bool

    def checked(self, x: Any) -> float:
        """A result, a few spacings beyond an end at it."""
        found = within_ends(float(x) if isinstance(x, (bool, np.bool_)) else number("a result", x), *self.ends)
        if self.binary and found not in (0.0, 1.0):
            raise ValueError(f"without range= or sigma= a result is 0 or 1, got {x!r:.80}")
        return number("a result", found, *self.ends)

    @property
    def known(self) -> dict[str, Any]:
        """What is known of results, whether they are 0 or 1 or not, as `stopping.common` has it."""
        of, value = ("support", self.ends) if self.sigma is None else ("sigma", self.sigma)
        return {"distribution": "bounded" if self.sigma is None else "gaussian", of: value}

    def evidence(self, n: int, mean: float, variance: float, *higher: float) -> tuple[float, float]:
        """That the mean is the number at least, and that it is below."""
        given = {"distribution": "bernoulli"} if self.binary else self.known
        given |= {"moments": [higher]} if given["distribution"] == "bounded" else {}
        found = Threshold(self.bound).arm_evidence([n], [mean], variance=[variance], **given)
        inside, outside = found[0].tolist()
        if self.binary and 0.0 < self.bound < 1.0:
            inside = _joined(inside, _one_sided(n * mean, n * (1 - mean), self.bound))
            outside = _joined(outside, _one_sided(n * (1 - mean), n * mean, 1 - self.bound))
        return inside, outside

    def answer(self, seen: Counter[float]) -> Gate:
        """The verdict on what has been seen."""
        n, mean, *spread = moments_of(seen)
        inside, outside = self.evidence(n, mean, *spread)
        numbers, of_mean, need = stopping.common(**self.known), np.array([mean]), -math.log(self.delta)
        spread = spread if self.sigma is None else spread[:1]
        ends = stopping.arm_intervals(numbers, np.array([n]), of_mean, np.array(spread), self.delta)
        (low, high), side = ends[0].tolist(), 1 if inside >= need else -1 if outside >= need else 0
        low, high = max(low, self.bound) if side > 0 else low, min(high, self.bound) if side < 0 else high
        verdict = ("open", "pass", "fail")[side if self.above else -side]
        p, p_fail = (inside, outside) if self.above else (outside, inside)
        return Gate(verdict, math.exp(-p), math.exp(-p_fail), low, high, mean, n, self.bound, self.above, self.delta)


def moments_of(seen: Counter[float]) -> tuple[Any, ...]:
    """How many results there are, of {value: how often}, their mean, and the second to fourth central moments."""
    values = np.array(sorted(seen))
    counts = np.array([seen[x] for x in values.tolist()], np.float64)
    share = counts / counts.sum()
    mean = float(share @ values)
    return seen.total(), mean, *(float(share @ (values - mean) ** power) for power in (2, 3, 4))


def _one_sided(hits: float, misses: float, q: float) -> float:
    """The logarithm of the likelihood, mixed over all rates above q, over that of q, the hardest rate that is not."""
    special = require("scipy.special", "a gate of rates", "evaluation")
    mass = special.betainc(misses + 1, hits + 1, 1 - q)  # of the rates above q, given the results
    if not mass > 0.0:
        return -math.inf
    likelihood = special.betaln(hits + 1, misses + 1) + math.log(mass)
    return float(likelihood - hits * math.log(q) - (misses + 1) * math.log1p(-q))


def _joined(evidence: float, one_sided: float) -> float:
    """The logarithm of the mean of two e-values, `ONE_SIDED` the weight of the second; not below 0.

    Evidence of 0 stands for any e-value of 1 at most, so that it counts as none here.
    """
    kept = evidence if evidence > 0.0 else -math.inf
    found = np.logaddexp(math.log(1 - ONE_SIDED) + kept, math.log(ONE_SIDED) + one_sided)
    return max(float(found), 0.0)
