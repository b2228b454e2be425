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

__all__ = ["FINE", "HAIR", "INSTANCES", "SCALAR", "Instance", "Law", "Rules", "most_pulls"]

Rules = dict[str, Any]

HAIR, FINE = 1e-7, 1e-9  # how far arms are from where an answer would be right


@dataclass(frozen=True)
class Instance:
    """Arms and a question.

    Attributes:
        problem, name, rules: the problem, the instance in words, and the parameters of the problem.
        arms: in JSON form, or `Arms`. law: of these, in words.
        most: pulls of an episode.
    """

    problem: str
    name: str
    rules: Rules = field(hash=False)
    arms: Any = field(hash=False)
    law: str
    most: int

    @property
    def K(self) -> int:
        if isinstance(self.arms, Arms):
            return self.arms.K
        return len(next(self.arms[key] for key in ("mean", "probabilities", "rows") if key in self.arms))


# --- laws of scalar arms ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
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
    return {"law": "bernoulli", "mean": mean}


def _gaussian(*sds: float) -> Callable[[list[float]], dict[str, Any]]:
    return lambda mean: {"law": "gaussian", "mean": mean, "sd": [sds[i % len(sds)] for i in range(len(mean))]}


def _two_points(low: float, high: float) -> Callable[[list[float]], dict[str, Any]]:
    """Samples are one of two values in [0, 1]."""

    def make(mean: list[float]) -> dict[str, Any]:
        share = [(m - low) / (high - low) for m in mean]
        return {"law": "categorical", "values": [low, high], "probabilities": [[1 - p, p] for p in share]}

    return make


def _two_rows(low: float, high: float) -> Callable[[list[float]], dict[str, Any]]:
    """Samples are rows of which each is one of two values in [0, 1], that differ between arms by 1/1000 at most."""

    def rows(mean: float) -> list[float]:
        ones = round(400 * (mean - low) / (high - low))
        data = np.repeat([low, high], [400 - ones, ones])
        return list((data + (mean - data.mean())).tolist())

    return lambda mean: {"law": "resampled", "rows": [rows(m) for m in mean]}


LAWS = (
    Law("Bernoulli", 0.5, 0.25, 0.4, 0.4, _bernoulli),
    Law("Gaussian", 0.0, 0.5, 2.0, 2.0, _gaussian(1.0)),
    Law("Bernoulli near 0", 0.02, 0.015, 0.5, 0.0, _bernoulli),
    Law("Gaussian, sds 1, .3, .1", 0.0, 0.5, 2.0, 2.0, _gaussian(1.0, 0.3, 0.1)),
    Law("two points 0, .6", 0.3, 0.15, 0.29, 0.29, _two_points(0.0, 0.6)),
    Law("Bernoulli near 1", 0.98, 0.015, 0.0, 0.5, _bernoulli),
    Law("rows .05, .95", 0.4, 0.2, 0.5, 0.33, _two_rows(0.05, 0.95)),
    Law("Gaussian, sd .1", 0.5, 0.05, 0.2, 0.2, _gaussian(0.1)),
    Law("two points .3, 1", 0.8, 0.15, 0.0, 0.45, _two_points(0.3, 1.0)),
    Law("uniform", 0.0, 0.5, 2.0, 2.0, lambda mean: {"law": "uniform", "mean": mean, "width": 2.0}),
)
SCALAR = {law.name: law for law in LAWS}


# --- shapes of scalar instances ---------------------------------------------------------------------------------------
# A shape is what it is called, and a function of a law: the means and the rules; None where the law has no such means.
# Where every arm must be known, one alone is at the boundary and the others are far from it; many are where a tolerance
# lets the right answer be certified soon.

Shape = tuple[str, Callable[[Law], "tuple[list[float], Rules] | None"]]


def _far(law: Law, n: int) -> list[float]:
    """Means of n arms that are far from the centre, above and below where there are such."""
    sides = [off for off in (law.up, -law.down) if off]
    return [law.centre + sides[i % len(sides)] for i in range(n)]


def _threshold_shapes() -> Iterator[Shape]:
    for K in (2, 20):
        yield f"{K} arms below by 1e-7", lambda law, K=K: ([law.centre - HAIR] * K, {"threshold": law.centre})
    for K, side in ((2, -1), (2, 1), (6, -1), (20, 1), (60, -1)):
        yield (
            f"1 of {K} arms {'above' if side > 0 else 'below'} by 1e-7, others far",
            lambda law, K=K, side=side: (
                [law.centre + side * HAIR, *_far(law, K - 1)],
                {"threshold": law.centre},
            ),
        )
    for K, side in ((2, -1), (8, 1), (8, -1), (30, -1)):
        yield (
            f"{K} arms miss the tolerance by 1e-9, {'above' if side > 0 else 'below'}",
            lambda law, K=K, side=side: (
                [law.centre + side * (law.unit / 2 + FINE)] * K,
                {"threshold": law.centre, "tolerance": law.unit / 2},
            ),
        )
    yield (
        "6 arms meet the tolerance or miss it by 1e-9",
        lambda law: (
            [law.centre - law.unit / 2 - FINE, law.centre - law.unit / 2, law.centre + law.unit / 2] * 2,
            {"threshold": law.centre, "tolerance": law.unit / 2},
        ),
    )


def _best_arm_shapes() -> Iterator[Shape]:
    for K in (2, 3, 6, 20, 60):
        yield (
            f"1 of {K} arms better by 1e-9, {K - 2} far below",
            lambda law, K=K: (
                ([law.centre, *[law.centre - law.down] * (K - 2), law.centre + FINE], {})
                if K == 2 or law.down
                else None
            ),
        )
    yield "1 of 5 arms better by 1e-9", lambda law: ([law.centre] * 4 + [law.centre + FINE], {})
    yield "1 of 3 arms worse by 1e-9", lambda law: ([law.centre - FINE] + [law.centre] * 2, {})
    for K in (2, 4, 12):
        yield (
            f"{K} arms, epsilon missed by 1e-9",
            lambda law, K=K: ([law.centre] * (K - 1) + [law.centre + law.unit + FINE], {"epsilon": law.unit}),
        )
    for K in (2, 4):
        yield (
            f"{K} arms, a wide epsilon missed by 1e-9",
            lambda law, K=K: (
                ([law.centre - law.down] * (K - 1) + [law.centre + FINE], {"epsilon": law.down}) if law.down else None
            ),
        )
    yield (
        "4 arms, epsilon met and missed by 1e-9",
        lambda law: (
            [*[law.centre - law.unit - FINE] * 2, law.centre - law.unit, law.centre],
            {"epsilon": law.unit, "criterion": "each"},
        ),
    )
    yield (
        "2 arms, 1 better by 1e-9, an epsilon that does not count",
        lambda law: ([law.centre, law.centre + FINE], {"epsilon": law.unit, "criterion": "exact"}),
    )


def _top_k_shapes() -> Iterator[Shape]:
    for k, K, criterion in (
        (1, 4, "aggregate"),
        (2, 3, "exact"),
        (2, 4, "each"),
        (11, 12, "aggregate"),
        (3, 10, "exact"),
        (10, 20, "each"),
        (5, 60, "aggregate"),
    ):
        yield (
            f"1 of the {k} best of {K} arms better by 1e-9, others far, {criterion}",
            lambda law, k=k, K=K, criterion=criterion: (
                (
                    [law.centre, *[law.centre + law.up] * (k - 1), *[law.centre - law.down] * (K - k - 1)]
                    + [law.centre + FINE],
                    {"k": k, "criterion": criterion},
                )
                if (law.up or k == 1) and (law.down or k == K - 1)
                else None
            ),
        )
    yield "2 of 4 arms better by 1e-9", lambda law: ([law.centre] * 2 + [law.centre + FINE] * 2, {"k": 2})
    yield (
        "1 of 5 arms worse by 1e-9, k = 4",
        lambda law: ([law.centre - FINE] + [law.centre] * 4, {"k": 4, "criterion": "exact"}),
    )
    for k, K in ((1, 3), (2, 5), (4, 6), (6, 12)):
        yield (
            f"{k} of {K} arms, epsilon missed by 1e-9, each",
            lambda law, k=k, K=K: (
                (
                    [law.centre] * (K - k) + [law.centre + law.unit + FINE] + [law.centre + law.up] * (k - 1),
                    {"k": k, "epsilon": law.unit, "criterion": "each"},
                )
                if law.up or k == 1
                else None
            ),
        )
    for k, K, criterion in ((1, 3, "each"), (2, 4, "aggregate"), (3, 4, "aggregate"), (2, 6, "each")):
        yield (
            f"{k} of {K} arms, a wide epsilon missed by 1e-9, {criterion}",
            lambda law, k=k, K=K, criterion=criterion: (
                (
                    [law.centre - law.down] * (K - k) + [law.centre + FINE] * k,
                    {
                        "k": k,
                        "epsilon": law.down * (min(k, K - k) / k if criterion == "aggregate" else 1.0),
                        "criterion": criterion,
                    },
                )
                if law.down
                else None
            ),
        )
    yield (
        "3 of 7 arms, epsilon met and missed by 1e-9, each",
        lambda law: (
            (
                [*[law.centre - FINE, law.centre] * 2, law.centre + law.unit, *[law.centre + law.up] * 2],
                {"k": 3, "epsilon": law.unit, "criterion": "each"},
            )
            if law.up
            else None
        ),
    )
    for k, K, s in ((2, 4, 1), (2, 3, 1), (2, 4, 2), (3, 6, 2), (3, 6, 3), (5, 10, 5), (8, 16, 4)):
        # Answers that hold s wrong arms lose more than k epsilon by 1e-9, and those with fewer do not.
        yield (
            f"{k} of {K} arms, epsilon missed by 1e-9 with {s} wrong, aggregate",
            lambda law, k=k, K=K, s=s: (
                (
                    [law.centre] * (K - k)
                    + [law.centre + law.unit / 2 + FINE / s] * s
                    + [law.centre + law.up] * (k - s),
                    {"k": k, "epsilon": s * law.unit / 2 / k, "criterion": "aggregate"},
                )
                if law.up or k == s
                else None
            ),
        )


def _good(law: Law) -> tuple[float, float]:
    """The best mean, and a mean that is just good enough, far below it."""
    return (law.centre + law.up, law.centre) if law.up else (law.centre, law.centre - law.down)


def _all_good_shapes() -> Iterator[Shape]:
    for K, side in ((2, -1), (2, 1), (6, -1), (6, 1), (20, -1), (40, 1)):
        yield (
            f"1 of {K} arms {'good' if side > 0 else 'bad'} by 1e-9, {K - 2} far below",
            lambda law, K=K, side=side: (
                (
                    [law.centre + side * FINE, *[law.centre - law.down] * (K - 2), law.centre + law.up],
                    {"epsilon": law.up},
                )
                if law.up and (law.down or K == 2)
                else None
            ),
        )
    yield (
        "4 of 5 arms bad by 1e-9",
        lambda law: ([law.centre - FINE] * 4 + [law.centre + law.unit], {"epsilon": law.unit}),
    )
    yield (
        "2 arms, 1 good by 1e-9, a small epsilon",
        lambda law: ([law.centre + FINE, law.centre + law.unit], {"epsilon": law.unit}),
    )
    for K in (2, 4, 7):
        yield (
            f"1 arm bad by 1e-9, {K - 1} best",
            lambda law, K=K: (
                [_good(law)[1] - FINE] + [_good(law)[0]] * (K - 1),
                {"epsilon": _good(law)[0] - _good(law)[1]},
            ),
        )
    yield (
        "1 arm bad by 1e-9, 1 met, 1 best",
        lambda law: (
            [_good(law)[1] - FINE, _good(law)[1], _good(law)[0]],
            {"epsilon": _good(law)[0] - _good(law)[1]},
        ),
    )
    yield (
        "1 of 3 arms bad by 1e-9, epsilon 1e-9",
        lambda law: ([law.centre - 2 * FINE, *[law.centre] * 2], {"epsilon": FINE}),
    )
    for K in (3, 8):
        yield (
            f"{K} arms, slack missed by 1e-9",
            lambda law, K=K: (
                [_good(law)[1] - FINE] * (K - 1) + [_good(law)[0]],
                {"epsilon": 0.5 * (_good(law)[0] - _good(law)[1]), "slack": 0.5 * (_good(law)[0] - _good(law)[1])},
            ),
        )
    # The best mean is b > 0.
    for K, side in ((2, -1), (2, 1), (6, 1)):
        yield (
            f"1 of {K} arms {'good' if side > 0 else 'bad'} by 1e-9, {K - 2} far below, multiplicative",
            lambda law, K=K, side=side: (
                (
                    [0.5 * _best(law) + side * FINE] + [0.1 * _best(law)] * (K - 2) + [_best(law)],
                    {"epsilon": 0.5, "multiplicative": True},
                )
                if _best(law) < 2 or K == 2
                else None
            ),
        )
    yield (
        "2 arms, 1 bad by 1e-9, multiplicative, small means",
        lambda law: (
            ([0.5 * law.unit / 8 - FINE, law.unit / 8], {"epsilon": 0.5, "multiplicative": True})
            if law.name in ("Bernoulli", "Gaussian", "uniform", "Gaussian, sd .1")
            else None
        ),
    )
    for K in (3, 7):
        yield (
            f"{K} arms, slack missed by 1e-9, multiplicative",
            lambda law, K=K: (
                (
                    [0.4 * _best(law) - FINE] * (K - 1) + [_best(law)],
                    {"epsilon": 0.2, "slack": 0.4, "multiplicative": True},
                )
                if law.name not in ("two points .3, 1", "Bernoulli near 0")
                else None
            ),
        )


def _best(law: Law) -> float:
    """A best mean from which half of it is told apart soon, if the law has such."""
    return min(law.centre + (law.up or law.unit), 0.95) if law.centre > 0 else 2.0


def _scalar_instances(problem: str, shapes: Iterator[Shape], turn: int) -> Iterator[Instance]:
    """Each shape with two laws that can have it, which go round."""
    for i, (name, shape) in enumerate(shapes):
        laws = [LAWS[(3 * i + turn + step) % len(LAWS)] for step in range(len(LAWS))]
        for law in [law for law in laws if shape(law) is not None][:2]:
            means, rules = shape(law) or ([], {})
            yield Instance(problem, name, rules, law.make(means), law.name, most_pulls(len(means)))


def most_pulls(K: int, D: int = 1) -> int:
    """Pulls of an episode: many where they are cheap."""
    return int(np.clip(20_000 / (K * D) ** 0.75, 1000, 3600))


INSTANCES: dict[str, tuple[Instance, ...]] = {
    "Threshold": tuple(_scalar_instances("Threshold", _threshold_shapes(), 0)),
    "BestArm": tuple(_scalar_instances("BestArm", _best_arm_shapes(), 1)),
    "TopK": tuple(_scalar_instances("TopK", _top_k_shapes(), 0)),
    "AllGood": tuple(_scalar_instances("AllGood", _all_good_shapes(), 1)),
}
