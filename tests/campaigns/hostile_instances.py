"""Scalar instances of `hostile`: arms so near to the boundary that what is seen can hardly tell which answer is right.

An arm lies at the boundary of its problem by a hair, so that half of all stops, or more, are errors: who has stopped
has taken luck for evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandit_envs import Arms

__all__ = ["CONTROL", "FINE", "HAIR", "INSTANCES", "SCALAR", "Instance", "Distribution", "Rules", "most_pulls"]

Rules = dict[str, Any]

HAIR, FINE = 1e-7, 1e-9  # how far arms are from where an answer would be right


@dataclass(frozen=True)
class Instance:
    """Arms and a question.

    Attributes:
        problem, name, rules: the problem, the instance in words, and the parameters of the problem.
        arms: in JSON form, or `Arms`. distribution: of these, in words.
        most: pulls of an episode.
    """

    problem: str
    name: str
    rules: Rules = field(hash=False)
    arms: Any = field(hash=False)
    distribution: str
    most: int

    @property
    def K(self) -> int:
        if isinstance(self.arms, Arms):
            return self.arms.K
        return len(next(self.arms[key] for key in ("mean", "probabilities", "rows") if key in self.arms))


# --- distributions of scalar arms
# ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Distribution:
    """How arms of given means are made.

    Attributes:
        centre, unit: where an instance lies, and how wide its tolerances are.
        up, down: so far from the centre an arm is told apart from it by a few dozen pulls; 0 where no mean is.
    """

    name: str
    centre: float
    unit: float
    up: float
    down: float
    make: Callable[[list[float]], dict[str, Any]]


def _bernoulli(mean: list[float]) -> dict[str, Any]:
    return {"distribution": "bernoulli", "mean": mean}


def _gaussian(*sds: float) -> Callable[[list[float]], dict[str, Any]]:
    return lambda mean: {"distribution": "gaussian", "mean": mean, "sd": [sds[i % len(sds)] for i in range(len(mean))]}


def _two_points(low: float, high: float) -> Callable[[list[float]], dict[str, Any]]:
    """Samples are one of two values in [0, 1]."""

    def make(mean: list[float]) -> dict[str, Any]:
        share = [(m - low) / (high - low) for m in mean]
        return {"distribution": "categorical", "values": [low, high], "probabilities": [[1 - p, p] for p in share]}

    return make


def _two_rows(low: float, high: float) -> Callable[[list[float]], dict[str, Any]]:
    """Samples are rows of which each is one of two values in [0, 1], that differ between arms by 1/1000 at most."""

    def rows(mean: float) -> list[float]:
        ones = round(400 * (mean - low) / (high - low))
        data = np.repeat([low, high], [400 - ones, ones])
        return list((data + (mean - data.mean())).tolist())

    return lambda mean: {"distribution": "resampled", "rows": [rows(m) for m in mean]}


DISTRIBUTIONS = (
    Distribution("Bernoulli", 0.5, 0.25, 0.4, 0.4, _bernoulli),
    Distribution("Gaussian", 0.0, 0.5, 2.0, 2.0, _gaussian(1.0)),
    Distribution("Bernoulli near 0", 0.02, 0.015, 0.5, 0.0, _bernoulli),
    Distribution("Gaussian, sds 1, .3, .1", 0.0, 0.5, 2.0, 2.0, _gaussian(1.0, 0.3, 0.1)),
    Distribution("two points 0, .6", 0.3, 0.15, 0.29, 0.29, _two_points(0.0, 0.6)),
    Distribution("Bernoulli near 1", 0.98, 0.015, 0.0, 0.5, _bernoulli),
    Distribution("rows .05, .95", 0.4, 0.2, 0.5, 0.33, _two_rows(0.05, 0.95)),
    Distribution("Gaussian, sd .1", 0.5, 0.05, 0.2, 0.2, _gaussian(0.1)),
    Distribution("two points .3, 1", 0.8, 0.15, 0.0, 0.45, _two_points(0.3, 1.0)),
    Distribution("uniform", 0.0, 0.5, 2.0, 2.0, lambda mean: {"distribution": "uniform", "mean": mean, "width": 2.0}),
)
SCALAR = {distribution.name: distribution for distribution in DISTRIBUTIONS}


# --- shapes of scalar instances ---------------------------------------------------------------------------------------
# The shapes of a problem are those of a distribution: what each is called, the means and the rules; no means where the
# distribution has none for it. Where every arm must be known, one alone is at the boundary and the others are far from
# it; many are where a tolerance lets the right answer be certified soon.

Shapes = Iterator[tuple[str, list[float] | None, Rules]]


def _threshold_shapes(distribution: Distribution) -> Shapes:
    c, band = distribution.centre, distribution.unit / 2
    sides = [off for off in (distribution.up, -distribution.down) if off]
    plain, wide = {"threshold": c}, {"threshold": c, "tolerance": band}
    for K in (2, 20):
        yield f"{K} arms below by 1e-7", [c - HAIR] * K, plain
    for K, side in ((2, -1), (2, 1), (6, -1), (20, 1), (60, -1)):
        far = [c + sides[i % len(sides)] for i in range(K - 1)]  # above and below where there are such
        yield f"1 of {K} arms {'above' if side > 0 else 'below'} by 1e-7, others far", [c + side * HAIR, *far], plain
    for K, side in ((2, -1), (8, 1), (8, -1), (30, -1)):
        name = f"{K} arms miss the tolerance by 1e-9, {'above' if side > 0 else 'below'}"
        yield name, [c + side * (band + FINE)] * K, wide
    yield "6 arms meet the tolerance or miss it by 1e-9", [c - band - FINE, c - band, c + band] * 2, wide


def _best_arm_shapes(distribution: Distribution) -> Shapes:
    c, unit, down = distribution.centre, distribution.unit, distribution.down
    for K in (2, 3, 6, 20, 60):
        means = [c, *[c - down] * (K - 2), c + FINE]
        yield f"1 of {K} arms better by 1e-9, {K - 2} far below", means if K == 2 or down else None, {}
    yield "1 of 5 arms better by 1e-9", [c] * 4 + [c + FINE], {}
    yield "1 of 3 arms worse by 1e-9", [c - FINE] + [c] * 2, {}
    for K in (2, 4, 12):
        yield f"{K} arms, epsilon missed by 1e-9", [c] * (K - 1) + [c + unit + FINE], {"epsilon": unit}
    for K in (2, 4):
        means = [c - down] * (K - 1) + [c + FINE]
        yield f"{K} arms, a wide epsilon missed by 1e-9", means if down else None, {"epsilon": down}
    rules = {"epsilon": unit, "criterion": "each"}
    yield "4 arms, epsilon met and missed by 1e-9", [*[c - unit - FINE] * 2, c - unit, c], rules
    rules = {"epsilon": unit, "criterion": "exact"}
    yield "2 arms, 1 better by 1e-9, an epsilon that does not count", [c, c + FINE], rules


def _top_k_shapes(distribution: Distribution) -> Shapes:
    c, unit, up, down = distribution.centre, distribution.unit, distribution.up, distribution.down
    exact = [(1, 4, "aggregate"), (2, 3, "exact"), (2, 4, "each"), (11, 12, "aggregate"), (3, 10, "exact")]
    for k, K, criterion in [*exact, (10, 20, "each"), (5, 60, "aggregate")]:
        means = [c, *[c + up] * (k - 1), *[c - down] * (K - k - 1), c + FINE]
        has = (up or k == 1) and (down or k == K - 1)
        name = f"1 of the {k} best of {K} arms better by 1e-9, others far, {criterion}"
        yield name, means if has else None, {"k": k, "criterion": criterion}
    yield "2 of 4 arms better by 1e-9", [c] * 2 + [c + FINE] * 2, {"k": 2}
    yield "1 of 5 arms worse by 1e-9, k = 4", [c - FINE] + [c] * 4, {"k": 4, "criterion": "exact"}
    for k, K in ((1, 3), (2, 5), (4, 6), (6, 12)):
        means = [c] * (K - k) + [c + unit + FINE] + [c + up] * (k - 1)
        rules = {"k": k, "epsilon": unit, "criterion": "each"}
        yield f"{k} of {K} arms, epsilon missed by 1e-9, each", means if up or k == 1 else None, rules
    for k, K, criterion in ((1, 3, "each"), (2, 4, "aggregate"), (3, 4, "aggregate"), (2, 6, "each")):
        means = [c - down] * (K - k) + [c + FINE] * k
        epsilon = down * (min(k, K - k) / k if criterion == "aggregate" else 1.0)
        name = f"{k} of {K} arms, a wide epsilon missed by 1e-9, {criterion}"
        yield name, means if down else None, {"k": k, "epsilon": epsilon, "criterion": criterion}
    means = [*[c - FINE, c] * 2, c + unit, *[c + up] * 2]
    rules = {"k": 3, "epsilon": unit, "criterion": "each"}
    yield "3 of 7 arms, epsilon met and missed by 1e-9, each", means if up else None, rules
    for k, K, s in ((2, 4, 1), (2, 3, 1), (2, 4, 2), (3, 6, 2), (3, 6, 3), (5, 10, 5), (8, 16, 4)):
        # Answers that hold s wrong arms lose more than k epsilon by 1e-9, and those with fewer do not.
        means = [c] * (K - k) + [c + unit / 2 + FINE / s] * s + [c + up] * (k - s)
        rules = {"k": k, "epsilon": s * unit / 2 / k, "criterion": "aggregate"}
        name = f"{k} of {K} arms, epsilon missed by 1e-9 with {s} wrong, aggregate"
        yield name, means if up or k == s else None, rules


def _all_good_shapes(distribution: Distribution) -> Shapes:
    c, unit, up, down = distribution.centre, distribution.unit, distribution.up, distribution.down
    best, good = (c + up, c) if up else (c, c - down)  # a mean that is just good enough, far below the best one
    share = min(c + (up or unit), 0.95) if c > 0 else 2.0  # a best mean > 0 from which half of it is told apart soon
    for K, side in ((2, -1), (2, 1), (6, -1), (6, 1), (20, -1), (40, 1)):
        means = [c + side * FINE, *[c - down] * (K - 2), c + up]
        name = f"1 of {K} arms {'good' if side > 0 else 'bad'} by 1e-9, {K - 2} far below"
        yield name, means if up and (down or K == 2) else None, {"epsilon": up}
    yield "4 of 5 arms bad by 1e-9", [c - FINE] * 4 + [c + unit], {"epsilon": unit}
    yield "2 arms, 1 good by 1e-9, a small epsilon", [c + FINE, c + unit], {"epsilon": unit}
    for K in (2, 4, 7):
        yield f"1 arm bad by 1e-9, {K - 1} best", [good - FINE] + [best] * (K - 1), {"epsilon": best - good}
    yield "1 arm bad by 1e-9, 1 met, 1 best", [good - FINE, good, best], {"epsilon": best - good}
    yield "1 of 3 arms bad by 1e-9, epsilon 1e-9", [c - 2 * FINE, *[c] * 2], {"epsilon": FINE}
    half = 0.5 * (best - good)
    for K in (3, 8):
        yield f"{K} arms, slack missed by 1e-9", [good - FINE] * (K - 1) + [best], {"epsilon": half, "slack": half}
    for K, side in ((2, -1), (2, 1), (6, 1)):
        means = [0.5 * share + side * FINE] + [0.1 * share] * (K - 2) + [share]
        name = f"1 of {K} arms {'good' if side > 0 else 'bad'} by 1e-9, {K - 2} far below, multiplicative"
        yield name, means if share < 2 or K == 2 else None, {"epsilon": 0.5, "multiplicative": True}
    has = distribution.name in ("Bernoulli", "Gaussian", "uniform", "Gaussian, sd .1")
    means, rules = [0.5 * unit / 8 - FINE, unit / 8], {"epsilon": 0.5, "multiplicative": True}
    yield "2 arms, 1 bad by 1e-9, multiplicative, small means", means if has else None, rules
    has, rules = distribution.name not in ("two points .3, 1", "Bernoulli near 0"), {"epsilon": 0.2, "slack": 0.4}
    for K in (3, 7):
        means = [0.4 * share - FINE] * (K - 1) + [share]
        name = f"{K} arms, slack missed by 1e-9, multiplicative"
        yield name, means if has else None, rules | {"multiplicative": True}


def _control_shapes(distribution: Distribution) -> Shapes:
    c, unit, up, down = distribution.centre, distribution.unit, distribution.up, distribution.down
    sides = [off for off in (up, -down) if off]
    for K, side in ((2, -1), (2, 1), (4, -1), (4, 1), (12, 1)):
        far = [c + sides[i % len(sides)] for i in range(K - 2)]
        name = f"1 of {K - 1} arms {'better' if side > 0 else 'worse'} by 1e-7 than the control, others far"
        yield name, [c, c + side * HAIR, *far], {}
    share = c if c > 0 else 0.0
    for K, side in ((3, -1), (6, 1), (20, -1)):
        has = (up if side > 0 else down) or distribution.name.startswith("Bernoulli near")
        name = f"{K - 1} arms miss the tolerance by 1e-9, {'above' if side > 0 else 'below'}"
        means = [c, *[c + side * (unit / 2 + FINE)] * (K - 1)]
        yield name, means if has else None, {"tolerance": unit / 2}
    for lift, name in ((0.05, "a lift of 5 %"), (-0.1, "no worse by 10 %")):
        means = [share, share * (1 + lift) - FINE, share * (1 + lift) - FINE]
        yield (
            f"2 arms miss {name} by 1e-9",
            means if share and means[1] < 1 else None,
            {"lift": lift, "tolerance": FINE / 2},
        )
    means = [c, c + unit / 2 - FINE, *([c - down] if down else [])]
    yield "1 arm misses a margin by 1e-9", means, {"margin": unit / 2}


def _scalar_instances(problem: str, shapes: Callable[[Distribution], Shapes], turn: int) -> Iterator[Instance]:
    """Each shape with two distributions that can have it, which go round."""
    for i, row in enumerate(zip(*map(shapes, DISTRIBUTIONS), strict=True)):
        distributions = [(3 * i + turn + step) % len(DISTRIBUTIONS) for step in range(len(DISTRIBUTIONS))]
        for distribution in [distribution for distribution in distributions if row[distribution][1] is not None][:2]:
            name, means, rules = row[distribution]
            assert means is not None
            yield Instance(
                problem,
                name,
                rules,
                DISTRIBUTIONS[distribution].make(means),
                DISTRIBUTIONS[distribution].name,
                most_pulls(len(means)),
            )


def most_pulls(K: int, D: int = 1) -> int:
    """Pulls of an episode: many where they are cheap."""
    return int(np.clip(20_000 / (K * D) ** 0.75, 1000, 3600))


INSTANCES: dict[str, tuple[Instance, ...]] = {
    "Threshold": tuple(_scalar_instances("Threshold", _threshold_shapes, 0)),
    "BestArm": tuple(_scalar_instances("BestArm", _best_arm_shapes, 1)),
    "TopK": tuple(_scalar_instances("TopK", _top_k_shapes, 0)),
    "AllGood": tuple(_scalar_instances("AllGood", _all_good_shapes, 1)),
}
CONTROL = tuple(_scalar_instances("BetterThanControl", _control_shapes, 1))
