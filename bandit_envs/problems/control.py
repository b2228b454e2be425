"""Better than a control: all arms that beat the one that there is, by more than a margin, and harm nothing else.

The comparison of treatments with a control: Dunnett, JASA 1955; as an adaptive design: Locatelli, Gutzeit & Carpentier
2016 with a threshold that is itself an arm. Guardrails: all of several tests must hold, Berger, Technometrics 1982.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..instances.instance import Instance, Sampler
from ..kernels.checks import Floats, array, integer, number
from ..kernels.routines import carray
from ..stopping import BERNOULLI, DISTRIBUTION, VARIANCE, Certifier, control_intervals, discoveries, with_moments
from ..stopping.boundaries import range_of
from .base import Measure, Pointer, SetProblem, TaskLike
from .potential import CONTROL, Potential


def _measure(pulls: Pointer, mean: Pointer, K: int, numbers: Pointer, out: Pointer) -> None:
    """The distances of one episode, of arms of one dimension, as a routine; numbers: the control, a and b."""
    n, m, found, given = carray(pulls, K), carray(mean, K), carray(out, K), carray(numbers, 3)
    c, nearest = np.int64(given[0]), np.inf
    for i in range(K):
        if n[i] == 0:
            found[:] = 0.0
            return
        off = m[i] - (given[1] * m[c] + given[2])
        found[i] = off if off != 0.0 else -5e-324
        nearest = min(nearest, abs(found[i])) if i != c else nearest
    found[c] = -nearest / given[1]


class BetterThanControl(SetProblem):
    """All arms whose mean is above that of a control: mean > control + margin, or mean > (1 + lift) control.

    Args:
        control: number of the control, or its name where the arms have names. It is in no answer.
        margin: by how much arms must be better, in the unit of a sample; it may be negative ("no worse than").
        lift: the same as a share of the control's mean, above -1; means must be positive then. Not beside a margin.
        tolerance: arms nearer to the boundary than this, in the unit of a sample, may be answered either way, >= 0.
        guardrails: of arms of D dimensions, D - 1 numbers g: the first dimension is what is to be better; in the others
            an arm must also be above control - g. (Turn the sign of what is to be small.)
        expected: the means of the control and of an arm better than it that one hopes for. Certificates of samples that
            are 0 or 1, or of a known sigma, are sharpest there; all hold whatever the means are.

    The score is 1 - misclassified / K; `f1` is among the metrics. An arm equal to the boundary is not better.
    """

    name, asks = "BetterThanControl", "all arms better than a control"
    source = "Dunnett 1955; Locatelli, Gutzeit & Carpentier 2016"
    parameters = {
        "control": "The arm that the others are compared with, by number or name.",
        "margin": "Arms wanted are better than the control by more than this.",
        "lift": "Arms wanted are better than the control by more than this share of its mean.",
        "tolerance": "Arms nearer to the boundary may be answered either way.",
        "guardrails": "By how much arms may be worse than the control in the dimensions beside the first, as JSON.",
        "expected": "The means of the control and of a better arm that one hopes for, as JSON.",
    }

    def __init__(
        self,
        control: int | str = 0,
        margin: float | None = None,
        lift: float | None = None,
        tolerance: float = 0.0,
        guardrails: Sequence[float] = (),
        expected: Sequence[float] | None = None,
    ) -> None:
        if isinstance(control, str) and not control.strip().isdecimal():
            raise ValueError(f"control={control!r:.200} is no arm: a name needs arms with names, else give its number")
        self.control = integer("control", int(control) if isinstance(control, str) else control, 0)
        if margin is not None and lift is not None:
            raise ValueError(f"give margin or lift, not both, got margin={margin!r:.200} and lift={lift!r:.200}")
        self.least = 0.0 if margin is None else number("margin", margin)
        self.lift = None if lift is None else number("lift", lift, -1, above=True)
        self.tolerance = number("tolerance", tolerance, 0)
        self.guardrails = array("guardrails", guardrails).reshape(-1).tolist()
        if not np.isfinite(self.guardrails).all():
            raise ValueError(f"guardrails must be finite numbers, got {guardrails!r:.200}")
        self.expected = None if expected is None else array("expected", expected).tolist()
        if self.expected is not None and (np.shape(self.expected) != (2,) or not np.isfinite(self.expected).all()):
            raise ValueError(f"expected must be two means, the control's and an arm's, got {expected!r:.200}")
        self.control_arm = self.control

    @property
    def settings(self) -> dict[str, object]:
        return super().settings | {"margin": None if self.lift is not None else self.least}

    @classmethod
    def by_names(cls, parameters: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        control = parameters.get("control")
        if not isinstance(control, str) or not names or control not in names and control.strip().isdecimal():
            return dict(parameters)
        if control not in names:
            raise ValueError(f"control must be one of the arms {', '.join(names):.200}, got {control!r:.200}")
        return {**parameters, "control": list(names).index(control)}

    def placed(self, places: Mapping[int, int]) -> dict[str, object]:
        return self.settings | {"control": places[self.control]}

    @property
    def spaces(self) -> list[tuple[float, float]]:
        """a and b of each dimension: an arm is better where its mean is above a times the control's plus b."""
        first = (1.0, self.least) if self.lift is None else (1.0 + self.lift, 0.0)
        return [first, *((1.0, -g) for g in self.guardrails)]

    @property
    def beyond(self) -> str:
        """The margin or the lift in words; "" where there is none."""
        if self.lift:
            return f"a lift of {100 * self.lift:+g} %"
        return f"a margin of {self.least:+g}" if self.least else ""

    def _gap(self, control: Any, arm: Any) -> Any:
        """By how much a mean of the first dimension is above the boundary that the control's mean makes."""
        a, b = self.spaces[0]
        return arm - (a * control + b)

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        D = 1 + len(self.guardrails)
        if task.D != D:
            raise ValueError(f"{self.name} with {D - 1} guardrails needs arms of {D} dimensions, got {task.D}")
        if not self.control < task.K:
            raise ValueError(f"control must be one of {task.K} arms, got {self.control}")
        if self.lift is not None and isinstance(source, Sampler) and not source.positive:
            raise ValueError(f"a lift needs means > 0 in every episode, got {source!r:.200}")
        low, high = task.support or (-math.inf, math.inf)
        if self.expected is not None and not low <= min(self.expected) <= max(self.expected) <= high:
            raise ValueError(f"expected must lie in the support [{low:g}, {high:g}] of the arms, got {self.expected}")
        if self.lift is not None and low < 0 and low > -math.inf:
            raise ValueError(f"a lift needs samples >= 0, got the support [{low:g}, {high:g}]")
        if self.lift is not None and isinstance(source, Instance) and source.arms.means[..., 0].min() < 0:
            raise ValueError(f"a lift needs means >= 0, got {source.arms.means[..., 0].min():g}")

    def in_words(self, which: str, nouns: str, unit: str = "", minimize: bool = False) -> str:
        word, than = ("lower", "below") if minimize else ("higher", "above")
        least, of = (self.least, unit) if self.lift is None else (100 * self.lift, " %")
        by = f"more than {least:.15g}{of} {than}" if least > 0 else than
        by = f"no more than {-least:.15g}{of} {'above' if minimize else 'below'}" if least < 0 else by
        question = f"{which} have a mean {by} that of the control?"
        if self.guardrails:
            worse = ", ".join(f"value {d} at most {g:.15g} below" for d, g in enumerate(self.guardrails, 2))
            question = f"{which} have a mean of value 1 {by} that of the control, and {worse} it?"
        near = f" Those within {self.tolerance:.15g}{unit} of that may be put on either side."
        return question + near * (self.tolerance > 0)

    def mirrored(self, pivot: float) -> dict[str, object] | None:
        hoped = None if self.expected is None else [pivot - mean for mean in self.expected]
        return None if self.lift is not None or self.guardrails else self.settings | {"expected": hoped}

    def margins(self, means: ArrayLike) -> Floats:
        """By how much each dimension of each arm is above its boundary, (..., K, D)."""
        m = np.asarray(means, np.float64)
        m = m if self.guardrails else m[..., None]
        a, b = np.array(self.spaces).T
        found: Floats = m - (a * m[..., self.control, None, :] + b)
        return found

    def margin(self, means: ArrayLike) -> Floats:
        """The least over dimensions of what an arm is above its boundary; -inf of the control, and just below 0 for 0.

        Args:
            means: (..., K), or (..., K, D) with guardrails.
        """
        least: Floats = self.margins(means).min(axis=-1)
        least[least == 0] = -5e-324
        least[..., self.control] = -np.inf
        return least

    def distances(self, pulls: ArrayLike, mean: ArrayLike, out: Floats | None = None) -> Floats:
        """See `Problem.distances`. The control's own is that from the nearest boundary of an arm, negative."""
        if (measure := self.distance_routine()) is not None:
            return measure.tell(pulls, mean, out)
        found = super().distances(pulls, mean, out)
        nearest = np.delete(np.abs(found), self.control, axis=-1).min(axis=-1)
        found[..., self.control] = -nearest / max(1.0, self.spaces[0][0])
        return found

    def distance_routine(self) -> Measure | None:
        return None if self.guardrails else Measure.of(_measure, self.control, *self.spaces[0])

    def potential(self) -> Potential | None:
        a, b = np.array(self.spaces[:1]).T
        look = Potential(CONTROL, a[:, None], b, self.tolerance, multiplicative=a[0] != 1.0, control=self.control)
        return None if self.guardrails else look

    def comparison(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        *,
        level: float = 0.05,
        rate: str = "familywise",
        variance: ArrayLike | None = None,
        finds: tuple[ArrayLike, ArrayLike] | None = None,
        **options: Any,
    ) -> dict[str, NDArray[Any]]:
        """Each arm against the control, by what has been seen of one instance, valid at any time and for any pulls.

        Args:
            pulls, mean, variance: (K,), or (K, D) of means and variances; in (K, D) the first dimension is compared.
            level: of the intervals together, and of the error rate. rate: "familywise" or "fdr", of `better`.
            finds: masks (K,) of the arms that were found to be better, and worse, in the course of the results: a find
                stays. They take the place of those that are found now.
            options: distribution, sigma, moments, support, see `certified_level`.

        Returns:
            Arrays (K,). `difference`: mean - control, with `low` and `high`; `lift`: mean / control - 1, with
            `lift_low` and `lift_high`, NaN where the control's mean is not above 0, or, of samples that may be
            negative, the arm's; both are taken to be truly above 0 then. All intervals of one kind are right together,
            at all times, with probability 1 - level. Of an arm that is found it ends at the boundary, which is right as
            long as the find is: again with probability 1 - level.
            `p`: of the hypothesis that the arm is not better by the margin, whatever the tolerance; `p_worse`: that it
            is (in all dimensions). `better`, `worse`: the arms that are found to be so, at the level each.
        """
        given = self._counts_on(**{name: x for name, x in options.items() if name != "moments"})
        strict = copy.copy(self)
        strict.tolerance = 0.0
        evidence = strict.arm_evidence(pulls, mean, variance=variance, **options)
        evidence[self.control] = -np.inf  # it is not in question
        T, m = np.asarray(pulls, np.int64), np.asarray(mean, np.float64)
        first, v = m.reshape(len(T), -1)[:, 0], np.zeros(m.shape) if variance is None else np.asarray(variance)
        certifier, higher = self.certifier(len(T), m.size // len(T), **given), options.get("moments")
        if given["distribution"] == "bounded":
            v = with_moments(v[None], None if higher is None else np.asarray(higher)[None])[0]
        if self.lift is not None and first[self.control] < 0:
            raise ValueError(f"a lift needs a control whose mean is above 0, got the mean {first[self.control]:g}")
        control, positive = first[self.control], range_of(certifier.numbers)[0] >= 0
        known, found = (T > 0) & (T[self.control] > 0), dict[str, NDArray[Any]]()
        for name, lift, ends in (("difference", False, ("low", "high")), ("lift", True, ("lift_low", "lift_high"))):
            seen = known & (not lift or ((positive | (first > 0)) & (control > 0)))
            with np.errstate(invalid="ignore", divide="ignore"):
                found[name] = np.where(seen, first / control - 1 if lift else first - control, np.nan)
            both = control_intervals(certifier, T, m, v, level, lift)
            found |= {end: np.where(seen, both[:, side], np.nan) for side, end in enumerate(ends)}
        found |= {"p": np.exp(-evidence[:, 0]), "p_worse": np.exp(-evidence[:, 1])}
        better, worse = discoveries(evidence[:, 0], level, rate), discoveries(evidence[:, 1], level)
        better, worse = (better, worse) if finds is None else (np.array(one, np.bool_) for one in finds)
        found |= {"better": better, "worse": worse}
        a, b = self.spaces[0]
        for which, low, high, edge in ((a == 1.0, "low", "high", b), (b == 0.0, "lift_low", "lift_high", a - 1.0)):
            if which and rate == "familywise":  # what is found lies on its side
                over, under = better & ~np.isnan(found[low]), worse & ~np.isnan(found[high]) & (not self.guardrails)
                found[low][over & (found[high] > edge)] = np.maximum(found[low], edge)[over & (found[high] > edge)]
                found[high][under & (found[low] < edge)] = np.minimum(found[high], edge)[under & (found[low] < edge)]
        for name in found:
            found[name][self.control] = False if name in ("better", "worse") else np.nan
        return found

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier:
        hoped = 0.0
        if self.expected is not None and numbers[DISTRIBUTION] == BERNOULLI:
            c, m = self.expected
            edge, m = np.clip([m - self._gap(c, m), m], 1e-9, 1 - 1e-9)
            hoped = math.log(m / (1 - m)) - math.log(edge / (1 - edge))
        elif self.expected is not None:
            hoped = self._gap(*self.expected) / math.sqrt(numbers[VARIANCE])
        if self.expected is not None and not hoped > 0:
            raise ValueError(f"expected must be the control's mean and one beyond the margin, got {self.expected}")
        return Certifier.of("control", K, numbers, self.control, self.tolerance, hoped, *np.ravel(self.spaces).tolist())
