"""What is believed of the arms of a study before it is made, or before it goes on: a sampler of arms for rehearsals.

guess   means between a low and a high end, uniform; or normal around a mean, with a spread. One noise for all arms.
pilot   results so far. Of each episode the noise, the spread of the arms and their centre are drawn from what the
        results leave open, then each arm's mean, drawn towards the centre as few results of it say little. Arms without
        results are drawn as others of their kind.

Results of a range have beta distributions of these means and this noise, results of 0 and 1 are Bernoulli, all others
normal. The noise is the same for all arms, as far as the range lets it.

symbols     J arms with results, n results of each, y their means; s2 variance of the noise, tau spread of the arms
model       y_j ~ N(mu_j, s2 / n_j), mu_j ~ N(mu, tau^2), flat in mu and log s2, tau half Cauchy (Gelman 2006); of 0 and
            1: hits ~ Binomial(n_j, p_j), p_j ~ Beta(m c, (1 - m) c), flat in m and in 1 / (1 + c)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Sampler, Task
from bandit_envs.instances import Arms, Bernoulli, Gaussian, Tabulated
from bandit_envs.kernels import interval, number

from ..core.optional import require

Floats = NDArray[np.float64]
FEWEST = 3  # arms with results, from which on these say where the others lie
HYPER = 4  # uniforms for an episode, beside those of its arms
LEVELS, QUANTILES, STEP = 65, 129, 1.1  # beta distributions in a table: means, quantiles, factor between variances
NOISE, REACH = 0.1, 2.0  # of the width of a range, where nothing is said of the noise; spread of the arms, in noises
SPREADS = np.geomspace(0.02, 50.0, 60)  # tried for tau
CONCENTRATIONS = 1.0 / np.linspace(0.002, 0.998, 48) - 1.0  # tried for c
EDGE, LEAST = 1e-6, 1e-3
MOST_NOISE = 0.98  # of the largest variance that a range leaves
ALIKE = 10.0  # results of other arms that count for the variance of an arm's own


@dataclass(frozen=True)
class Seen:
    """Results of J arms of D dimensions: how many (J,), their means and sums of squared deviations (J, D)."""

    n: Floats
    mean: Floats
    squares: Floats

    def at(self, rows: NDArray[np.int64]) -> Seen:
        """Of some arms; a row of -1 is an arm without results."""
        known = (rows >= 0).astype(np.float64)
        return Seen(self.n[rows] * known, self.mean[rows] * known[:, None], self.squares[rows] * known[:, None])


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
        normal = {"mean", "spread"} & set(given) and {"mean", "spread"}
        pair = {"low", "high"} if {"low", "high"} & set(given) else normal
        if set(given) not in (pair or set(), (pair or set()) | ({"noise"} if not binary else set())):
            forms = "low and high, or mean and spread" + ", and noise" * (not binary)
            raise ValueError(f"a prior has {forms}, got {', '.join(map(str, given))}")
        known = np.isinf(high) or task.sigma < 0.499 * (high - low)
        noise = number("noise", given.get("noise", task.sigma if known else NOISE * (high - low)), 0, above=True)
        if "low" in given:
            ends = interval("low and high", (given["low"], given["high"]))
            low, high = number("low", ends[0], low, high), number("high", ends[1], low, high)
        elif "mean" in given:
            mean = number("mean", given["mean"], low, high)
            return cls(mean, number("spread", given["spread"], 0, above=True), noise, False)
        elif np.isinf(high):
            boundary = task.make_problem().boundary
            return cls(0.0 if boundary is None else boundary, REACH * noise, noise, False)
        elif not binary:  # results reach beyond the means
            edge = min(noise, 0.25 * (high - low))
            low, high = low + edge, high - edge
        return cls((low + high) / 2, (high - low) / 2, noise)

    def words(self, task: Task, sign: float = 1.0) -> str:
        """What is believed, in words; sign: -1 where all is mirrored."""
        centre, spread = sign * self.centre, self.spread
        means = f"from {centre - spread:.4g} to {centre + spread:.4g}"
        means = means if self.uniform else f"around {centre:.4g}, by {spread:.4g}"
        noise = "" if task.distribution == "bernoulli" else f", results of one arm that vary by {self.noise:.3g}"
        return f"means {means}{noise}"


class Prior(Sampler):
    """Fresh arms in each episode, drawn from a guess and from results so far.

    Args:
        task: of the study, with K arms of D dimensions.
        guess: counts where fewer than three arms have results.
        seen: results of J arms; None: none. which: (K,), which of them each arm of the study is, -1: none.
    """

    name = "prior"

    def __init__(
        self, task: Task, guess: Guess, seen: Seen | None = None, which: NDArray[np.int64] | None = None
    ) -> None:
        self.task, self.guess, self.K, self.D = task, guess, task.K, task.D
        empty = Seen(np.zeros(1), np.zeros((1, task.D)), np.zeros((1, task.D)))
        self.seen, self.which = seen or empty, np.full(task.K, -1) if which is None else which
        self.support, self.binary = range_of(task), task.distribution == "bernoulli"
        shape = (self.K, self.D) if self.D > 1 else (self.K,)
        if self.binary:
            self.arms: Arms = Bernoulli(np.full(shape, 0.5))
        elif self.support is None:
            self.arms = Gaussian(np.zeros(shape), task.sigma)
        else:
            self.arms = Arms()
            self.arms.distribution, self.arms.code = Tabulated.distribution, Tabulated.code  # type: ignore[misc]
            table = np.repeat(np.linspace(*self.support, QUANTILES), self.D)[None].repeat(self.K, axis=0)
            self.arms.fill(np.full(shape, sum(self.support) / 2), 0.0, table, support=self.support, sigma=task.sigma)
        self.distribution = self.arms.distribution
        self._drawn: dict[bytes, tuple[Floats, Floats]] = {}

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        mark = key.tobytes() + episode.tobytes()
        if mark not in self._drawn:
            draws = np.random.Generator(np.random.Philox(key=key[:, 0]))
            u = draws.random((int(episode.max()) + 1, HYPER + self.K, self.D))[episode.astype(np.int64)]
            drawn = [self._both(u[..., d], d) for d in range(self.D)]
            means, noise = (np.stack(x, axis=-1) for x in zip(*drawn, strict=True))
            self._drawn = {mark: (means[..., 0] if self.D == 1 else means, self._table(means, noise))}
        return self._drawn[mark]

    @property
    def positive(self) -> bool:
        return self.support is not None and self.support[0] >= 0

    @property
    def ends(self) -> tuple[float, float]:
        """Between which means lie."""
        if self.support is None:
            return -np.inf, np.inf
        margin = EDGE * (self.support[1] - self.support[0])
        return self.support[0] + margin, self.support[1] - margin

    def noise(self) -> float:
        """The standard deviation of results of one arm, about."""
        spare = np.maximum(self.seen.n - 1, 0).sum()
        squares = float(self.seen.squares.sum(axis=0).max())
        return float(np.sqrt(squares / spare)) if spare and squares > 0 else self.guess.noise

    def _guessed(self, u: Floats) -> Floats:
        """Means of arms of which nothing is known, of uniforms."""
        guess, ends = self.guess, self.ends
        if guess.uniform:
            return np.clip(guess.centre + guess.spread * (2.0 * u - 1.0), *ends)
        return _normal(u, np.full(u.shape, guess.centre), guess.spread, ends)

    def _both(self, u: Floats, d: int) -> tuple[Floats, Floats]:
        """Means and noise (E, K) of a dimension, of uniforms (E, HYPER + K)."""
        if self.binary:
            return (means := self._rates(u, d)), means
        special = require("scipy.special", "forecasts", "session")
        own, there = self.seen.at(self.which), self.seen.n > 0
        n, y, squares = self.seen.n[there], self.seen.mean[there, d], self.seen.squares[there, d]
        base = spare = np.maximum(n - 1, 0)
        if self.support is not None:  # (n - 1) m (1 - m) of the true means, without bias
            base = spare * self._shape(y) + squares / n
        s2 = np.full(len(u), self.guess.noise**2 if self.support is None else self.guess.noise**2 / self._most)
        if squares.sum() > 0:
            ratio, freedom = squares.sum() / base.sum(), spare.sum()
            if (others := base.sum() - base).min() > 0:  # what is left without one arm says how sure it is
                without = (squares.sum() - squares) / others
                spread = max(((len(n) - 1) / len(n) * (without - without.mean()) ** 2).sum(), 1e-300)
                freedom = min(freedom, 2.0 * ratio**2 / spread)
            s2 = ratio * freedom / (2.0 * special.gammaincinv(freedom / 2, np.clip(u[:, 0], EDGE, 1 - EDGE)))
        if self.support is None:
            means = self._normal_means(u, d, s2)
        else:
            s2 = np.minimum(s2, MOST_NOISE)
            means = self._rates(u, d, 1.0 / s2[:, None])
        noise2 = s2[:, None] * self._shape(means)
        noise2 = (ALIKE * noise2 + own.squares[:, d]) / (ALIKE + np.maximum(own.n - 1, 0))
        return means, np.sqrt(noise2)

    def _normal_means(self, u: Floats, d: int, s2: Floats) -> Floats:
        """Means (E, K) of arms without a range, whose noise has the variances (E,)."""
        own, guess, E = self.seen.at(self.which), self.guess, len(u)
        y, n = self.seen.mean[self.seen.n > 0, d], self.seen.n[self.seen.n > 0]
        if len(y) >= FEWEST:
            v = s2[:, None] / n  # (E, J)
            scale = np.sqrt(np.maximum(y.var(ddof=1), v.mean()))
            tau = scale * SPREADS
            variance = tau[None, :, None] ** 2 + v[:, None]  # (E, taus, J)
            w = 1.0 / variance
            centres = (w * y).sum(axis=2) / w.sum(axis=2)
            log = -0.5 * (np.log(variance).sum(axis=2) + np.log(w.sum(axis=2)))
            log -= 0.5 * (w * (y - centres[..., None]) ** 2).sum(axis=2)
            log += np.log(tau / (1.0 + (SPREADS / 5.0) ** 2))  # half Cauchy, on a grid of logarithms
            at, rows = _chosen(log, u[:, 1]), np.arange(E)
            tau2 = tau[at] ** 2
            mu = _normal(u[:, 2], centres[rows, at], np.sqrt(1.0 / w[rows, at].sum(axis=1)), self.ends)
        elif own.n.any():
            tau2 = np.full(E, guess.spread**2 / (3.0 if guess.uniform else 1.0))
            mu = np.full(E, guess.centre)
        else:
            return self._guessed(u[:, HYPER:])
        precision = own.n / s2[:, None] + 1.0 / tau2[:, None]
        centre = (own.n * own.mean[:, d] / s2[:, None] + (mu / tau2)[:, None]) / precision
        return _normal(u[:, HYPER:], centre, np.sqrt(1.0 / precision), self.ends)

    def _shape(self, means: Floats) -> Floats:
        """The largest variance of results with these means; 1 without a range."""
        if self.support is None:
            return np.ones_like(means)
        return np.maximum((means - self.support[0]) * (self.support[1] - means), 0.0)

    @property
    def _most(self) -> float:
        """The largest variance of any results, or of those with the mean that is guessed."""
        return float(self._shape(np.array(self.guess.centre)))

    def _rates(self, u: Floats, d: int, trials: Floats | float = 1.0) -> Floats:
        """Means (E, K) of results that say as much as so many `trials` (E, 1) of 0 and 1, the ends of the range."""
        special, (low, high) = require("scipy.special", "forecasts", "session"), self.support or (0.0, 1.0)
        own, n = self.seen.at(self.which), self.seen.n[self.seen.n > 0]
        hits = n * (self.seen.mean[self.seen.n > 0, d] - low) / (high - low)
        m, c = np.full(len(u), 0.5), np.full(len(u), 2.0)
        if len(n) >= FEWEST:
            each = np.median(trials)
            middle, sums = (x.ravel() for x in np.meshgrid(np.linspace(0.005, 0.995, 100), CONCENTRATIONS))
            a, b = middle * sums, (1.0 - middle) * sums
            log = special.betaln(a[:, None] + each * hits, b[:, None] + each * (n - hits)).sum(axis=1)
            at = _chosen(np.tile(log - len(n) * special.betaln(a, b), (len(u), 1)), u[:, 1])
            m, c = middle[at], sums[at]
        elif not own.n.any():
            return self._guessed(u[:, HYPER:])
        sums, hits = trials * own.n, trials * own.n * (own.mean[:, d] - low) / (high - low)
        a, b = (m * c)[:, None] + hits, ((1.0 - m) * c)[:, None] + sums - hits
        found = special.betaincinv(np.maximum(a, LEAST), np.maximum(b, LEAST), u[:, HYPER:])
        means: Floats = np.clip(low + (high - low) * found, *self.ends)
        return means

    def _table(self, means: Floats, noise: Floats) -> Floats:
        """Kernel parameters (E, K, P) of means and noise (E, K, D)."""
        if self.binary:
            return means
        if self.support is None:
            return np.concatenate([means, noise], axis=-1)
        low, high = self.support
        unit = (means - low) / (high - low)
        levels = np.rint(np.log(np.minimum(noise**2 / self._shape(means), MOST_NOISE)) / np.log(STEP)).astype(int)
        table = np.empty((*unit.shape, QUANTILES))
        for level in np.unique(levels):
            quantiles, of = _betas(max(STEP ** -float(level), 1.0 / MOST_NOISE) - 1.0)
            rows = levels == level
            i = np.clip(np.searchsorted(of, unit[rows], "right") - 1, 0, LEVELS - 2)
            share = ((unit[rows] - of[i]) / (of[i + 1] - of[i]))[:, None]
            table[rows] = (1.0 - share) * quantiles[i] + share * quantiles[i + 1]
        table = np.swapaxes(table, -1, -2).reshape(*unit.shape[:2], -1)
        return np.clip(low + (high - low) * table, low, high)


def _betas(c: float) -> tuple[Floats, Floats]:
    """Quantiles (LEVELS, QUANTILES) of beta distributions on [0, 1], whose parameters sum to c, and their means."""
    special = require("scipy.special", "forecasts", "session")
    m = np.sin(np.linspace(0.0, np.pi / 2, LEVELS))[1:-1, None] ** 2
    u = np.linspace(0.0, 1.0, QUANTILES)
    u[[0, -1]] = 0.2 * u[1], 1.0 - 0.2 * u[1]  # pieces between quantiles are uniform: tails are cut
    inner = np.maximum.accumulate(special.betaincinv(m * c, (1.0 - m) * c, u), axis=1)  # but for rounding they rise
    quantiles = np.concatenate([np.zeros((1, QUANTILES)), inner, np.ones((1, QUANTILES))])
    return quantiles, ((quantiles[:, 1:] + quantiles[:, :-1]) / 2).mean(axis=1)


def _normal(u: Floats, mean: Floats, sd: Any, ends: tuple[float, float]) -> Floats:
    """Normal numbers of uniforms, between two ends."""
    special = require("scipy.special", "forecasts", "session")
    low, high = (special.ndtr((end - mean) / sd) for end in ends)
    found: Floats = mean + sd * special.ndtri(np.clip(low + u * (high - low), 1e-15, 1.0 - 1e-15))
    return np.clip(found, *ends)


def _chosen(log: Floats, u: Floats) -> NDArray[np.intp]:
    """Of each row of logarithms of weights (E, T), the entry that a uniform (E,) draws."""
    weights = np.exp(log - log.max(axis=1, keepdims=True)).cumsum(axis=1)
    found: NDArray[np.intp] = (weights < (u * weights[:, -1])[:, None]).sum(axis=1)
    return found


def range_of(task: Task) -> tuple[float, float] | None:
    """The range of results; None where they have none."""
    return None if task.distribution == "gaussian" else task.support
