"""What is believed of the arms of a study: a sampler of arms for rehearsals.

Of each episode the noise is drawn, and where the arms lie, from what results leave open; else a guess has both. Then
each arm's mean is drawn, the nearer to the others the fewer results it has; by the guess where hardly any arm has some.
Results of 0 and 1 are Bernoulli, those without a range normal. Others are m + w (U^k - m), U uniform and k = 1 / m - 1,
or mirrored; some more are at the ends of the range where w = 1 is too quiet.

symbols     n results of an arm, y their mean, s2 the variance of the noise (of a range: its part of p (1 - p))
model       y ~ N(mean, s2 / n), mean ~ N(m, 1 / c), flat in m and log s2, c^-1/2 half Cauchy (Gelman 2006); of a range
            n y / s2 ~ Binomial(n / s2, mean), mean ~ Beta(m c, (1 - m) c), flat in m and in 1 / (1 + c)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Sampler, Task
from bandit_envs.instances import Arms, Bernoulli, Gaussian, Tabulated
from bandit_envs.kernels import Floats, interval, number

from ..core.optional import require
from .course import Statistics

FEWEST = 3  # arms with results, from which on these say where the others lie
QUANTILES = 129  # of a distribution
NOISE, REACH = 0.1, 2.0  # of the width of a range, where nothing is said of the noise; spread of the arms, in noises
SPREADS = np.geomspace(0.02, 50.0, 60)  # tried for c^-1/2
CENTRES, WEIGHTS = np.meshgrid(np.linspace(0.005, 0.995, 100), 1.0 / np.linspace(0.002, 0.998, 48) - 1.0)  # of a range
EDGE, LEAST = 1e-6, 1e-3
MOST_NOISE = 0.98  # of the largest variance that a range leaves
ALIKE = 10.0  # results of other arms that count for the variance of an arm's own


@dataclass(frozen=True)
class Guess:
    """Where means are believed to lie, and the standard deviation of the results of one arm."""

    centre: float
    spread: float  # half the width of a uniform distribution, or the standard deviation of a normal one
    noise: float
    uniform: bool = True

    @classmethod
    def of(cls, task: Task, given: Mapping[str, Any]) -> Guess:
        """A guess of a user; what is not given fits the facts: a range, a noise, a boundary."""
        binary, (low, high) = task.distribution == "bernoulli", range_of(task) or (-np.inf, np.inf)
        if set(given) - (set() if binary else {"noise"}) not in ({"low", "high"}, {"mean", "spread"}, set()):
            forms = "low and high, or mean and spread" + ", and noise" * (not binary)
            raise ValueError(f"a prior has {forms}, got {', '.join(map(str, given))}")
        known = np.isinf(high) or task.sigma < 0.499 * (high - low)
        noise = number("noise", given.get("noise", task.sigma if known else NOISE * (high - low)), 0, above=True)
        if "mean" in given:
            spread = number("spread", given["spread"], 0, above=True)
            return cls(number("mean", given["mean"], low, high), spread, noise, False)
        if "low" in given:
            ends = interval("low and high", (given["low"], given["high"]))
            low, high = number("low", ends[0], low, high), number("high", ends[1], low, high)
        elif np.isinf(high):
            return cls(task.make_problem().boundary or 0.0, REACH * noise, noise, False)
        elif not binary:  # results reach beyond the means
            edge = min(noise, 0.25 * (high - low))
            low, high = low + edge, high - edge
        return cls((low + high) / 2, (high - low) / 2, noise)

    def words(self, task: Task) -> str:
        """What is believed, in words."""
        ends = f"from {self.centre - self.spread:.4g} to {self.centre + self.spread:.4g}"
        means = ends if self.uniform else f"around {self.centre:.4g}, by {self.spread:.4g}"
        noise = "" if task.distribution == "bernoulli" else f", results of one arm that vary by {self.noise:.3g}"
        return f"means {means}{noise}"


class Prior(Sampler):
    """Fresh arms in each episode, drawn from a guess and from results so far.

    Args:
        task: of the study, with K arms of D dimensions. guess: counts where fewer than three arms have results.
        seen: results of J arms; None: none. which: (K,), which of them each arm of the study is, -1: none.
    """

    name = "prior"

    def __init__(self, task: Task, guess: Guess, seen: Statistics | None = None, which: Any = None) -> None:
        self.task, self.guess, self.K, self.D = task, guess, task.K, task.D
        self.support, self.binary = range_of(task), task.distribution == "bernoulli"
        low, high = self.support or (0.0, 1.0)  # all is reckoned with as parts of a range
        self.low, self.width, self.special = low, high - low, require("scipy.special", "forecasts", "session")
        seen = Statistics.of(task, 1) if seen is None else seen.with_one_more()  # the last one has no results
        self.which = np.full(task.K, -1) if which is None else which
        self.n, self.mean = seen.scored.astype(np.float64), (seen.mean - low) / self.width
        self.squares = seen.variance * self.n[:, None] / self.width**2
        shape = (self.K, self.D) if self.D > 1 else (self.K,)
        self.arms: Arms = Bernoulli(np.full(shape, 0.5)) if self.binary else Gaussian(np.zeros(shape), task.sigma)
        if not self.binary and self.support is not None:
            self.arms = Tabulated(np.tile(np.linspace(low, high, QUANTILES)[:, None], (self.K, 1, self.D)))
            self.arms.sigma = task.sigma
        self.distribution = self.arms.distribution
        self._key, self._drawn = b"", (np.empty(0), np.empty(0))

    @property
    def positive(self) -> bool:
        return self.support is not None and self.support[0] >= 0

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        E, mark = int(episode.max()) + 1, key[:, 0].tobytes()
        if mark != self._key or len(self._drawn[0]) < E:  # fewer episodes are the first of more
            rng = np.random.default_rng(key[:, 0])
            drawn: Any = [self.both(rng, E, d) for d in range(self.D)]
            means, noise = np.moveaxis(drawn, 0, -1)
            table = np.clip(self.low + self.width * self.table(means, noise), *(self.support or (-np.inf, np.inf)))
            self._key, self._drawn = mark, (self.low + self.width * (means[..., 0] if self.D == 1 else means), table)
        return self._drawn[0][episode], self._drawn[1][episode]

    def noise(self) -> float:
        """The standard deviation of results of one arm, about."""
        spare, squares = np.maximum(self.n - 1, 0).sum(), float(self.squares.sum(axis=0).max())
        return self.width * float(np.sqrt(squares / spare)) if spare and squares > 0 else self.guess.noise

    def both(self, rng: np.random.Generator, E: int, d: int) -> tuple[Floats, Floats]:
        """Means and standard deviations of the results (E, K) of a dimension, as parts of the range."""
        s2, n = self._variances(rng, E, d), self.n[self.which]
        m, c = self._place(rng, E, d, float(np.median(s2)))
        weight = c[:, None] + n / s2[:, None]
        centre = ((c * m)[:, None] + n * self.mean[self.which, d] / s2[:, None]) / weight
        if self.support is None:
            means = rng.normal(centre, weight**-0.5)
        else:
            means = rng.beta(np.maximum(centre * weight, LEAST), np.maximum((1.0 - centre) * weight, LEAST))
        if (self.n > 0).sum() < FEWEST:
            guess, shape = self.guess, means.shape
            low, high = self.special.ndtr((np.array(self.support or (-np.inf, np.inf)) - guess.centre) / guess.spread)
            u = rng.uniform(-1.0, 1.0, shape) if guess.uniform else self.special.ndtri(rng.uniform(low, high, shape))
            means = np.where(n > 0, means, (guess.centre + guess.spread * u - self.low) / self.width)
        means = means if self.support is None else np.clip(means, EDGE, 1.0 - EDGE)
        own = ALIKE * s2[:, None] * self._most(means) + self.squares[self.which, d]
        return means, np.sqrt(own / (ALIKE + np.maximum(n - 1, 0)))

    def _most(self, means: Any) -> Any:
        """The largest variance of results with these means; 1 without a range."""
        return np.ones_like(means) if self.support is None else means * (1.0 - means)

    def _variances(self, rng: np.random.Generator, E: int, d: int) -> Any:
        """Of the noise, (E,): s2."""
        there = self.n > 1
        n, squares, base = self.n[there], self.squares[there, d], self.n[there] - 1
        if self.binary:
            return np.ones(E)
        if squares.sum() > 0:
            freedom = base.sum()
            if self.support is not None:  # (n - 1) p (1 - p) of the true means, without bias
                base = base * self._most(self.mean[there, d]) + squares / n
            ratio = squares.sum() / base.sum()
            if (others := base.sum() - base).min() > 0:  # what is left without one arm says how sure it is
                without = (squares.sum() - squares) / others
                freedom = min(freedom, 2.0 * ratio**2 / max((len(n) - 1) * without.var(), 1e-300))
            s2 = ratio * max(freedom, 1.0) / rng.chisquare(max(freedom, 1.0), E)
        else:
            centre = np.clip((self.guess.centre - self.low) / self.width, EDGE, 1.0 - EDGE)
            s2 = np.full(E, (self.guess.noise / self.width) ** 2 / self._most(centre))
        return s2 if self.support is None else np.minimum(s2, MOST_NOISE)

    def _place(self, rng: np.random.Generator, E: int, d: int, s2: float) -> Any:
        """Where arms lie, (E,) each: m and c."""
        n, y = self.n[self.n > 0] / s2, self.mean[self.n > 0, d]
        if len(n) < FEWEST:
            spread2 = self.guess.spread**2 / (3.0 if self.guess.uniform else 1.0)
            return np.full((E, 2), (self.guess.centre, 1.0 / spread2) if self.support is None else (0.5, 2.0)).T
        if self.support is None:
            tau2 = (np.sqrt(np.maximum(y.var(ddof=1), (1.0 / n).mean())) * SPREADS) ** 2
            w = 1.0 / (tau2[:, None] + 1.0 / n)
            total = w.sum(axis=1)
            m, c, sd = (w * y).sum(axis=1) / total, 1.0 / tau2, total**-0.5
            log = 0.5 * (np.log(w).sum(axis=1) - np.log(total) - (w * (y - m[:, None]) ** 2).sum(axis=1))
            log += np.log(SPREADS / (1.0 + (SPREADS / 5.0) ** 2))  # half Cauchy, on a grid of logarithms
        else:
            m, c, sd = CENTRES.ravel(), WEIGHTS.ravel(), 0.0 * CENTRES.ravel()
            a, b = m * c, (1.0 - m) * c
            log = self.special.betaln(a[:, None] + n * y, b[:, None] + n * (1.0 - y)).sum(axis=1)
            log -= len(n) * self.special.betaln(a, b)
        at = rng.choice(len(log), E, p=self.special.softmax(log))
        return rng.normal(m[at], sd[at]), c[at]

    def table(self, means: Floats, noise: Floats) -> Any:
        """Kernel parameters (E, K, P) of means and noise (E, K, D), in the unit of the range."""
        if self.binary:
            return means
        if self.support is None:
            return np.concatenate([means, noise], axis=-1)
        a, most = np.minimum(means, 1.0 - means)[..., None], self._most(means)
        s2 = np.minimum(noise**2 / most, MOST_NOISE)[..., None]
        power = (1.0 - a) / (2.0 - a)  # of u^((1 - a) / a), which has the mean a: its variance, as a part of a (1 - a)
        ends = np.maximum(s2 - power, 0.0) / (1.0 - power)  # the share of 0 and 1 among results
        u = np.clip((np.linspace(0.0, 1.0, QUANTILES) - ends * (1.0 - a)) / (1.0 - ends), 0.0, 1.0)
        table = a + np.sqrt(np.minimum(s2 / power, 1.0)) * (u ** ((1.0 - a) / a) - a)
        mean = ((table[..., 1:] + table[..., :-1]) / 2).mean(axis=-1, keepdims=True)
        table = np.where(mean > a, table * a / mean, 1.0 - (1.0 - table) * (1.0 - a) / (1.0 - mean))
        table = np.where(means[..., None] > 0.5, 1.0 - table[..., ::-1], table)
        return np.swapaxes(table, -1, -2).reshape(*means.shape[:2], -1)


def range_of(task: Task) -> tuple[float, float] | None:
    """The range of results; None where they have none."""
    return None if task.distribution == "gaussian" else task.support
