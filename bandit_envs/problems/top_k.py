"""The k best arms, and the best arm.

Criteria: aggregate regret (Chen, Chen, Zhang & Zhou, ICML 2017), every arm (epsilon, k)-optimal (Kalyanakrishnan &
Stone, ICML 2010), exactly the best k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..instances.instance import Instance, Sampler
from ..kernels.checks import Bools, Floats, choice, integer, number
from ..kernels.routines import carray
from ..stopping import BOUNDED, DISTRIBUTION, LEVELS_SCRATCH, STUDENT, Certifier
from .base import Arrays, Measure, Pointer, Problem, TaskLike
from .certificates import BOUNDS, CUTOFFS, Deviation, Samples, certify
from .potential import TOP_K, Potential, largest

CRITERIA = ("aggregate", "each", "exact")


def _measure(pulls: Pointer, mean: Pointer, K: int, numbers: Pointer, out: Pointer) -> None:
    """The distances of one episode as a routine, which are the margins once all arms were pulled; numbers: k."""
    n, m, found, k = carray(pulls, K), carray(mean, K), carray(out, K), np.int64(carray(numbers, 1)[0])
    for i in range(K):
        if n[i] == 0:
            found[:] = 0.0
            return
    largest(m, K, k + 1, -1, found)
    last, first = found[k - 1], found[k]  # the k-th largest mean, and the one after it
    for i in range(K):  # where the two are equal, arms with this mean are on the boundary, whatever their side
        found[i] = m[i] - (first if m[i] >= last else last)


class TopK(Problem):
    """k arms with the largest means.

    Args:
        k: size of the answer, in 1 .. K - 1.
        epsilon: tolerance of the criterion, >= 0; without effect by "exact", where environments warn of it.
        criterion: "aggregate": mean of the best k minus mean of the selected <= epsilon; "each": every selected mean
            >= k-th best - epsilon; "exact": the selected means are the k largest.

    The score is the normalised sum of the selected means: 1 for the best k, 0 for the worst k.
    """

    name, asks = "TopK", "the k best arms"
    source = "Kalyanakrishnan & Stone 2010; Chen, Chen, Zhang & Zhou 2017"
    parameters = {
        "k": "Number of arms in the answer.",
        "epsilon": "Tolerance of the criterion; by exact there is none.",
        "criterion": "What a correct answer is: aggregate, each or exact.",
    }
    metric_types = {"aggregate_regret": np.float64, "normalised_sum": np.float64, "misidentified": np.int64}
    certificate_names, kernels_needed = ("delta_c",), (certify,)
    any_order, scored = True, "1 for the best {k}, 0 for the worst {k}, and between the two by the true means"

    def __init__(self, k: int = 3, epsilon: float = 0.0, criterion: str = "aggregate") -> None:
        try:
            self.k = self.answer_size = integer("k", k, 1, 2**62)
        except ValueError:
            raise ValueError(f"k must be an integer in [1, K - 1], K the number of arms, got {k!r:.200}") from None
        self.epsilon = number("epsilon", epsilon, 0)
        self.criterion = choice("criterion", criterion, CRITERIA)

    def idle(self) -> dict[str, str]:
        if self.criterion != "exact" or self.epsilon == 0:
            return {}
        others = " or ".join(repr(one) for one in CRITERIA if one != "exact")
        return {"epsilon": f"as criterion='exact' has no tolerance: say criterion={others}, or leave epsilon out"}

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        if task.K < 2:
            raise ValueError(f"{task.K} arms are too few for {self!r:.200}, which leaves one out at least")
        if self.k >= task.K:
            raise ValueError(f"k must be an integer in [1, {task.K - 1}], got {self.k}: of {task.K:,} arms, give k")
        super().check(task, source)

    def in_words(self, which: str, nouns: str, unit: str = "", minimize: bool = False) -> str:
        k, off, near = self.k, f"{self.epsilon:.15g}{unit}", "Those in it may be {0} worse than the best {1}."
        if k == 1:
            near = "One that is at most {0} worse is right, too."
        elif self.criterion == "aggregate":
            near = "The mean of those in the answer may be {0} worse than that of the best {1}."
        question = f"{which} is the best?" if k == 1 else f"Which {k} of the {nouns} are the best?"
        allowed = self.epsilon > 0 and self.criterion != "exact"
        return f"{question} {near.format(off, k)}" if allowed else question

    def mirrored(self, pivot: float) -> dict[str, object] | None:
        return self.settings

    def plug_in(self, means: ArrayLike) -> Bools:
        """The k largest means; ties go to the lowest index, and arms never pulled rank last, lowest index first."""
        m = np.asarray(means, np.float64)
        order = np.argsort(-np.where(np.isnan(m), -np.inf, m), axis=-1, kind="stable")
        mask = np.zeros(m.shape, np.bool_)
        np.put_along_axis(mask, order[..., : self.k], True, axis=-1)
        return mask

    def margin(self, means: ArrayLike) -> Floats:
        """Distance from the best arm on the other side: mean - (k+1)-th largest, or mean - k-th largest."""
        m = np.asarray(means, np.float64)
        ranked = -np.sort(-m, axis=-1)  # NaN last
        inside = self.plug_in(m)
        return np.where(inside, m - ranked[..., self.k, None], m - ranked[..., self.k - 1, None])

    def distances(self, pulls: ArrayLike, mean: ArrayLike, out: Floats | None = None) -> Floats:
        return self.distance_routine().tell(pulls, mean, out)

    def distance_routine(self) -> Measure:
        return Measure.of(_measure, self.k)

    def potential(self) -> Potential:
        return Potential(TOP_K, k=self.k)

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier:
        k, epsilon, kind, scratch = self.k, self.epsilon, "top-k", 0
        some, student = min(k, K - k) > 1, numbers[DISTRIBUTION] in (STUDENT, BOUNDED)
        if self.criterion == "exact" or epsilon == 0:  # a set that is better holds an arm that is better
            epsilon = 0.0
        elif self.criterion == "each":
            if search == "exact" and k > 1 and epsilon > 0:
                kind, scratch = "each", 2 * K + LEVELS_SCRATCH
        elif not some:
            epsilon *= k
        elif search == "exact" and student:
            raise ValueError(f"distribution='student' with criterion='aggregate' needs k = 1, got {self!r}")
        elif search != "pairs" and not student:
            kind, scratch = "swaps" if search == "exact" else "sets", 6 * K
        return Certifier.of(kind, K, numbers, k, epsilon, scratch=scratch)

    def quick_bound(self, K: int) -> bool:
        pairs = self.criterion == "exact" or self.epsilon == 0 or self.k == 1
        return pairs and super().quick_bound(K)

    def truth(self, means: ArrayLike) -> Floats:
        return np.asarray(means, np.float64)

    def verdict(self, answer: ArrayLike, truth: Floats) -> Arrays:
        mask = np.asarray(answer, np.bool_)
        if mask.shape[-1:] != truth.shape[-1:]:
            raise ValueError(f"an answer is a mask of {truth.shape[-1]} arms, got shape {mask.shape}")
        sizes = mask.sum(axis=-1)
        if (sizes != self.k).any():
            raise ValueError(f"an answer of TopK holds k = {self.k} arms, got {sizes[sizes != self.k].flat[0]}")
        k, ranked = self.k, np.sort(truth, axis=-1)
        best, worst = ranked[..., -k:].sum(axis=-1), ranked[..., :k].sum(axis=-1)
        kth = ranked[..., -k]
        low = np.where(mask, truth, np.inf).min(axis=-1)
        hits = (mask & (truth > kth[..., None])).sum(axis=-1)
        ties = (mask & (truth == kth[..., None])).sum(axis=-1)
        owed = k - (truth > kth[..., None]).sum(axis=-1)  # places for arms equal to the k-th
        misidentified = k - hits - np.minimum(ties, owed)
        # The sum of a set depends on its order of summation: the best k, selected, have regret 0 exactly.
        chosen = np.where(misidentified == 0, best, (mask * truth).sum(axis=-1))
        regret = np.maximum(best - chosen, 0.0) / k
        flat = best <= worst
        nss = np.where(flat, 1.0, (chosen - worst) / np.where(flat, 1.0, best - worst))
        correct = {
            "aggregate": (misidentified == 0) | (regret <= self.epsilon),
            "each": (misidentified == 0) | (low >= kth - self.epsilon),
            "exact": misidentified == 0,
        }[self.criterion]
        return {
            "correct": correct,
            "score": np.clip(nss, 0.0, 1.0),
            "aggregate_regret": regret,
            "normalised_sum": nss,
            "misidentified": misidentified,
        }

    def certificate(
        self,
        pulls: ArrayLike,
        mean: ArrayLike,
        variance: ArrayLike,
        *,
        width: float = 1.0,
        bounds: str = "tightest",
        bernstein_range: float | None = None,
        cutoff: str = "standard-error",
    ) -> Arrays:
        """`delta_c`: ADAPT's running bound on the probability that an answered arm is below the k-th best - epsilon.

        For whatever policy pulled the arms (Kalyanakrishnan & Stone 2010, section 4); 1 where an arm has never been
        pulled. Nominal: see `certificates`.

        Args:
            pulls, mean, variance (divisor N): of the arms.
            width: the range of a sample (`Task.width`).
            bounds: "tightest": the smaller of Hoeffding's and the empirical Bernstein bound of each arm; "hoeffding":
                Hoeffding's alone.
            bernstein_range: the range in the empirical Bernstein bound; None: `width`. A smaller one is no bound.
            cutoff: "standard-error": as in the paper's experiments; "best": c*, where Hoeffding's delta^c is smallest.
        """
        W = number("width", width, 0, above=True)
        R = W if bernstein_range is None else number("bernstein_range", bernstein_range, 0, above=True)
        tightest = choice("bounds", bounds, BOUNDS) == "tightest"
        if bernstein_range is not None and not tightest:
            raise ValueError(f"bernstein_range belongs to bounds='tightest', got {bernstein_range!r} with {bounds!r}")
        best = choice("cutoff", cutoff, CUTOFFS) == "best"
        T, m, v = (np.asarray(x) for x in (pulls, mean, variance))
        if not T.shape == m.shape == v.shape or T.ndim == 0 or T.shape[-1] <= self.k:
            shapes = T.shape, m.shape, v.shape
            raise ValueError(f"pulls, mean and variance are of K > {self.k} arms, got shapes {shapes}")
        rows = -1, T.shape[-1]
        mean, variance = (np.array(x, np.float64).reshape(rows) for x in (m, v))
        seen = Samples(np.array(T, np.int64).reshape(rows), mean, variance)
        answer, delta_c = self.plug_in(np.where(seen.pulls > 0, mean, np.nan)), np.empty(len(mean))
        certify(seen, answer, Deviation(self.epsilon, W, R, tightest, best, 60.0), np.empty(T.shape[-1]), delta_c)
        return {"delta_c": delta_c.reshape(np.shape(pulls)[:-1])}

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """The measures of Chen et al. 2017, section 1.1, of one instance, means (K,).

        `H` = sum of gap^-2 over all arms; `H_epsilon` = H^(0, epsilon), with gaps raised to epsilon;
        `t` = t(epsilon, k), how many of the k best arms may be exchanged for the best of the others [(3)]; `Psi`, the
        smaller gap of the arms k - t and k + t + 1, counted from the best [(4)]; `H_t_epsilon` = H^(t, epsilon), with
        gaps raised to max(epsilon, Psi) [(5), (6)]. H_t_epsilon <= H_epsilon <= H, infinite where they divide by 0.
        """
        gap, order = np.abs(self.margin(means)), np.argsort(-np.asarray(means, np.float64), kind="stable")
        inside, outside = gap[order[: self.k]][::-1], gap[order[self.k :]]  # from the boundary outwards
        most = min(len(inside), len(outside))
        loss = np.arange(most) * np.maximum(inside[:most], outside[:most])
        t = int(np.flatnonzero(loss <= self.k * self.epsilon).max())
        Psi = float(min(inside[t], outside[t]))
        with np.errstate(divide="ignore", over="ignore"):
            H, H_epsilon, H_t_epsilon = (
                float((np.maximum(gap, least) ** -2.0).sum()) for least in (0.0, self.epsilon, max(self.epsilon, Psi))
            )
        return {"H": H, "H_epsilon": H_epsilon, "H_t_epsilon": H_t_epsilon, "t": t, "Psi": Psi}


class BestArm(TopK):
    """The arm with the largest mean: TopK with k = 1."""

    name, asks, source = "BestArm", "the best arm", "Even-Dar, Mannor & Mansour 2006"
    parameters = {name: text for name, text in TopK.parameters.items() if name != "k"}
    family, scored = "TopK", "1 for the best, 0 for the worst, and between the two by the true mean"

    def __init__(self, epsilon: float = 0.0, criterion: str = "aggregate") -> None:
        super().__init__(1, epsilon, criterion)
