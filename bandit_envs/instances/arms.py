"""Distributions of arms. A distribution is data for the simulator's kernels: a table of parameters, one row per arm.

| class       | a pull yields                                               | parameters of an arm            |
|-------------|-------------------------------------------------------------|---------------------------------|
| Bernoulli   | 1 with probability mean, else 0 (independent attributes)    | mean                            |
| Gaussian    | mean + sd Z (independent coordinates)                       | mean, sd                        |
| Uniform     | a point of [mean - width/2, mean + width/2]                 | lower end, width                |
| Categorical | one of the given values, with the arm's probabilities       | cumulative probabilities        |
| Resampled   | one of the arm's data rows, uniformly with replacement      | first row, number of rows       |
| Tabulated   | a point of any continuous distribution, by a table of its quantiles  | quantiles at equal steps        |
| Shared      | the arm's score in the next row of a table, the same for all arms    | scores, and their mean          |

Means of shape (K,) make scalar arms (D = 1), means of shape (K, D) make D-dimensional ones. `register_distribution`
gives a distribution of one's own a name.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import rng
from ..kernels.checks import LARGEST, array, errors_of, interval, number
from ..kernels.spellings import Distributed, spelled
from .registry import Registry

Floats = NDArray[np.float64]
Form = dict[str, Any]  # of arms and samplers, JSON-able

BERNOULLI, GAUSSIAN, UNIFORM, CATEGORICAL, RESAMPLED, TABULATED, SHARED = range(7)  # codes of the distributions


def _finite(name: str, value: ArrayLike, ndims: tuple[int, ...]) -> Floats:
    """`value` as a finite float64 array with one of the given numbers of axes."""
    x = array(name, value)
    if x.ndim not in ndims or x.size == 0:
        raise ValueError(f"{name} must have {' or '.join(map(str, ndims))} axes, none empty, got shape {x.shape}")
    if not (np.abs(x) <= LARGEST).all():
        index = np.argwhere(~(np.abs(x) <= LARGEST))[0]
        raise ValueError(
            f"{name} must be finite, at most {LARGEST:g} in size, got {x[tuple(index)]} at index {index.tolist()}"
        )
    return x


def _scalar(x: Floats) -> Floats:
    """(K,) instead of (K, 1): arms of one dimension are scalar arms."""
    return x[:, 0].copy() if x.ndim == 2 and x.shape[1] == 1 else x


def ends_of(arms: Any) -> tuple[float, float]:
    """The range in which the samples of `Arms`, or of a `Task`, lie: (0, inf) stands for none that is known."""
    return (0.0, math.inf) if arms.support is None or arms.distribution == "gaussian" else arms.support


class Arms(Distributed):
    """K arms: their distributions, and what may be known of them.

    A distribution of one's own is a subclass. It has a name, `distribution`, and the `code` of the class below that
    reads a table of the same form; its constructor ends in a call of `fill` with that table. `to_dict` makes it
    JSON-able, and `pack` makes it a distribution for samplers. For instance, triangular arms on [0, 1],
    by their modes c:

        class Triangular(Arms):
            distribution, code = "triangular", Tabulated.code

            def __init__(self, mode):
                c, u = np.asarray(mode, float)[:, None], np.linspace(0, 1, 513)
                quantiles = np.where(u < c, np.sqrt(u * c), 1 - np.sqrt((1 - u) * (1 - c)))
                means, variances = (1 + c[:, 0]) / 3, (1 - c[:, 0] + c[:, 0] ** 2) / 18
                self.fill(means, variances, quantiles, support=(0.0, 1.0), sigma=0.5)

    What the table holds for each arm of D coordinates, by the class whose code it is:

    - Bernoulli: D means.
    - Gaussian: D means, then D standard deviations.
    - Uniform: D lower ends, then D widths.
    - Categorical, for D = 1: the cumulative probabilities of the V values in `data`.
    - Resampled: the number of its first row in `data`, and how many rows it has.
    - Tabulated: Q times D quantiles, those of all coordinates at the first level, then at the second, and so on.
    - Shared, for D = 1: its score in each of the N rows, then the mean of these.

    Attributes:
        distribution: name of the distribution's family. code: of the kernels' distribution that reads the table.
        mean_range: (lowest, highest) mean that an arm of this distribution can have.
        means: true means, (K,) or (K, D).
        variances: true variances, same shape.
        support: (lowest, highest) value of a sample, or None.
        sigma: sub-Gaussian scale of a sample (half the width for bounded distributions).
        parameters: (K, P) float64, and `data` (V, D) float64: what the kernels read.
    """

    distribution: ClassVar[str]
    code: ClassVar[int]
    mean_range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    means: Floats
    variances: Floats
    support: tuple[float, float] | None
    sigma: float
    parameters: Floats
    data: Floats
    items: int | None = None  # of a shared table, its number of rows N

    def fill(
        self,
        means: ArrayLike,
        variances: ArrayLike,
        parameters: ArrayLike,
        data: ArrayLike | None = None,
        *,
        support: tuple[float, float] | None,
        sigma: float,
    ) -> None:
        """Set what there is to know of the arms; the last call of a distribution's constructor.

        Args:
            means: (K,) or (K, D).
            variances: of a shape that broadcasts to theirs.
            parameters: (K, P), and data (V, D): as the kernels read them for the distribution's `code`.
            support: (lowest, highest) sample of any arm, or None where that is unknown to agents or infinite.
            sigma: sub-Gaussian scale of a sample, > 0: half the width of what is bounded.
        """
        m, v, P = _finite("means", means, (1, 2)), array("variances", variances), array("parameters", parameters)
        try:
            v = np.broadcast_to(v, m.shape).copy()
        except ValueError:
            raise ValueError(f"variances must be of the shape {m.shape} of means, got {variances!r:.200}") from None
        self.means, self.variances = _scalar(m), _scalar(v)
        if not ((self.variances >= 0) & (self.variances < np.inf)).all():
            raise ValueError(f"variances must be >= 0 and finite, got {self.variances!r:.200}")
        if not 2 <= self.K <= rng.ARMS_LIMIT:
            raise ValueError(f"an instance has 2 to {rng.ARMS_LIMIT} arms, got {self.K}")
        self.support = None if support is None else interval("support", support)
        self.sigma = number("sigma", sigma, 0, LARGEST, above=True)
        rows = np.zeros(self.D) if data is None else array("data", data)
        if P.size == 0 or P.size % self.K or rows.size == 0 or rows.size % self.D:
            wanted = f"parameters (K, P) with K = {self.K} and data (V, D) with D = {self.D}"
            raise ValueError(f"{self.distribution} arms need {wanted}, got shapes {P.shape} and {rows.shape}")
        self.parameters, self.data = P.reshape(self.K, -1), rows.reshape(-1, self.D)
        for one in (self.means, self.variances, self.parameters, self.data):
            one.setflags(write=False)
        check_table(self, self.parameters)

    @property
    def K(self) -> int:
        """Number of arms."""
        return len(self.means)

    @property
    def D(self) -> int:
        """Number of coordinates of a sample."""
        return 1 if self.means.ndim == 1 else self.means.shape[1]

    def split(self, rows: Floats) -> Floats:
        """Parameters (..., K * D, P') of the coordinates, as scalar arms, from those (..., K, P) of the arms."""
        lead, D = rows.shape[:-2], self.D
        columns = rows.reshape(*lead, self.K, -1, D)  # one number per coordinate for each parameter
        return np.ascontiguousarray(np.swapaxes(columns, -1, -2)).reshape(*lead, self.K * D, -1)

    def coordinates(self) -> Arms:
        """The coordinates as scalar arms, without a JSON form: arm * D + d is coordinate d of the arm."""
        scalar = Arms()
        scalar.distribution, scalar.code = self.distribution, self.code  # type: ignore[misc]
        table, data = self.split(self.parameters), self.data.T
        scalar.fill(
            self.means.reshape(-1), self.variances.reshape(-1), table, data, support=self.support, sigma=self.sigma
        )
        return scalar

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D); samplers take the distributions that define it.

        A sampler calls it whenever episodes begin, with their means (E, K, D) and its own `spread`; a row is what the
        constructor makes of an arm with that mean. Support and sigma of the arms, and P, must be the same whatever
        their means.
        """
        raise TypeError("samplers cannot have this distribution")

    @classmethod
    def with_means(cls, means: Floats, spread: float) -> Arms:
        """Arms of these means (K,) or (K, D), for samplers. Here: `cls(means, spread)`."""
        return cls(means, spread)  # type: ignore[call-arg]

    def to_dict(self) -> Form:
        """The JSON form, which `from_dict` reads."""
        raise TypeError(f"{type(self).__name__} has no JSON form")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.K}, D={self.D})"


class Bernoulli(Arms):
    """Arms whose samples are 0 or 1.

    Args:
        mean: probabilities of 1, (K,), or (K, D) for D independent attributes.
    """

    distribution, code, mean_range = "bernoulli", BERNOULLI, (0.0, 1.0)

    def __init__(self, mean: ArrayLike) -> None:
        p = _scalar(_finite("mean", mean, (1, 2)))
        if ((p < 0) | (p > 1)).any():
            raise ValueError(f"a Bernoulli mean lies in [0, 1], got {p[(p < 0) | (p > 1)][0]}")
        self.fill(p, p * (1 - p), p, support=(0.0, 1.0), sigma=0.5)

    @classmethod
    def with_means(cls, means: Floats, spread: float) -> Bernoulli:
        return cls(means)

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D)."""
        return means

    def to_dict(self) -> Form:
        return {"distribution": self.distribution, "mean": self.means.tolist()}


class Gaussian(Arms):
    """Arms with normal samples, independent over coordinates.

    Agents are given one scale, the largest `sd`, as `sigma` of all arms: which arm has which is truth. Where the scales
    differ much, agents take more pulls than they need; distribution="student", of `evidence` and of certificates,
    estimates the scale of each arm.

    Args:
        mean: (K,) or (K, D).
        sd: standard deviation, > 0: a number, or an array that broadcasts to the shape of `mean`.
    """

    distribution, code = "gaussian", GAUSSIAN

    def __init__(self, mean: ArrayLike, sd: ArrayLike = 1.0) -> None:
        m, s = _means_and_spread(mean, "sd", sd)
        self._sd = s
        table = np.concatenate([m.reshape(len(m), -1), s.reshape(len(m), -1)], axis=1)
        self.fill(m, s**2, table, support=None, sigma=s.max())

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D) with standard deviation `spread`."""
        return np.concatenate([means, np.full_like(means, spread)], axis=-1)

    def to_dict(self) -> Form:
        return {"distribution": self.distribution, "mean": self.means.tolist(), "sd": self._sd.tolist()}


class Uniform(Arms):
    """Arms with samples uniform on an interval around the mean.

    Args:
        mean: (K,) or (K, D).
        width: length of the interval, > 0: a number, or an array that broadcasts to the shape of `mean`.

    `support` is None: the ends of the intervals would reveal the means. `sigma` is half the largest width.
    """

    distribution, code = "uniform", UNIFORM

    def __init__(self, mean: ArrayLike, width: ArrayLike = 1.0) -> None:
        m, w = _means_and_spread(mean, "width", width)
        self._width = w
        table = np.concatenate([(m - w / 2).reshape(len(m), -1), w.reshape(len(m), -1)], axis=1)
        self.fill(m, w**2 / 12, table, support=None, sigma=w.max() / 2)

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D) with interval length `spread`."""
        return np.concatenate([means - spread / 2, np.full_like(means, spread)], axis=-1)

    def to_dict(self) -> Form:
        return {"distribution": self.distribution, "mean": self.means.tolist(), "width": self._width.tolist()}


def _means_and_spread(mean: ArrayLike, name: str, value: ArrayLike) -> tuple[Floats, Floats]:
    """Means, and a positive scale broadcast to their shape."""
    means = _finite("mean", mean, (1, 2))
    spread = _finite(name, value, tuple(range(means.ndim + 1)))
    try:
        spread = np.broadcast_to(spread, means.shape).copy()
    except ValueError:
        raise ValueError(
            f"{name} must broadcast to the shape {means.shape} of mean, got shape {spread.shape}"
        ) from None
    if (spread <= 0).any():
        raise ValueError(f"{name} must be > 0, got {spread[spread <= 0][0]}")
    return _scalar(means), _scalar(spread)


class Categorical(Arms):
    """Scalar arms whose samples take finitely many values.

    Args:
        values: the values, (V,), increasing.
        probabilities: (K, V), or weights such as counts of ratings: rows are scaled to sum 1.
    """

    distribution, code = "categorical", CATEGORICAL

    def __init__(self, values: ArrayLike, probabilities: ArrayLike) -> None:
        v, weights = _finite("values", values, (1,)), _finite("probabilities", probabilities, (2,))
        if len(v) < 2 or (np.diff(v) <= 0).any():
            raise ValueError(f"values must be at least 2 numbers in increasing order, got {v.tolist()}")
        if weights.shape[1] != len(v):
            raise ValueError(f"probabilities must have one column per value ({len(v)}), got shape {weights.shape}")
        if (weights < 0).any():
            raise ValueError(f"probabilities must be >= 0, got {weights[weights < 0][0]}")
        total = weights.sum(axis=1)
        if (total <= 0).any():
            raise ValueError(f"arm {int(np.argmax(total <= 0))} has probabilities that sum to 0")
        mean = (weights @ v) / total  # rounded once for integer counts and values
        p = weights / total[:, None]
        cumulative = np.cumsum(p, axis=1)
        cumulative[:, -1] = 2.0  # the last value takes whatever rounding left
        self._weights = weights
        variance = np.maximum(p @ (v - v[0]) ** 2 - (mean - v[0]) ** 2, 0.0)
        self.fill(mean, variance, cumulative, v, support=(float(v[0]), float(v[-1])), sigma=(v[-1] - v[0]) / 2)

    def to_dict(self) -> Form:
        values, weights = self.data[:, 0].tolist(), self._weights.tolist()
        return {"distribution": self.distribution, "values": values, "probabilities": weights}


class Resampled(Arms):
    """Arms whose samples are rows of given data, drawn uniformly with replacement.

    Args:
        rows: for each arm its data, (n_i,) or (n_i, D), n_i >= 1; not all the same number.
        support: the lowest and the highest sample that are possible; None: those of the data.
    """

    distribution, code = "resampled", RESAMPLED

    def __init__(self, rows: Sequence[ArrayLike], support: Sequence[float] | None = None) -> None:
        if not np.iterable(rows) or isinstance(rows, (str, bytes)) or len(rows) < 2:
            raise ValueError(f"rows must be the data of at least 2 arms, got {rows!r:.200}")
        tables = [_scalar(_finite(f"rows of arm {i}", table, (1, 2))) for i, table in enumerate(rows)]
        shapes = {table.shape[1:] for table in tables}
        if len(shapes) > 1:
            raise ValueError(f"the rows of all arms must have one dimension, got shapes {sorted(shapes)}")
        self._rows = tables
        counts = np.array([len(table) for table in tables], np.float64)
        data = np.concatenate(tables)
        low, high = float(data.min()), float(data.max())
        if low == high:
            raise ValueError(f"rows must hold at least 2 different numbers, got {low} only")
        first = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        means = np.array([np.minimum(low + np.mean(table - low, axis=0), high) for table in tables])
        variances = np.array([np.var(table - low, axis=0) for table in tables])
        table = np.stack([first, counts], axis=1)
        lowest, highest = (low, high) if support is None else interval("support", support)
        if low < lowest or high > highest:
            raise ValueError(f"data must lie in support={[lowest, highest]}, got {low if low < lowest else high}")
        self.fill(means, variances, table, data, support=(lowest, highest), sigma=(highest - lowest) / 2)

    def split(self, rows: Floats) -> Floats:
        """The data of coordinate d follow those of coordinate d - 1."""
        each = np.repeat(rows, self.D, axis=-2)
        each[..., 0] += np.tile(np.arange(self.D) * float(len(self.data)), self.K)
        return each

    def to_dict(self) -> Form:
        wider = self.support != (float(self.data.min()), float(self.data.max()))
        given = {"support": list(self.support or ())} if wider else {}
        return {"distribution": self.distribution, "rows": [table.tolist() for table in self._rows]} | given


class Tabulated(Arms):
    """Arms of any continuous distribution, by a table of its quantiles: between two of them a sample is uniform.

    Args:
        quantiles: (K, Q), or (K, Q, D) for D independent coordinates, Q >= 2: of each arm the quantiles at the levels
            0, 1 / (Q - 1), 2 / (Q - 1), ..., 1, none less than the one before. They are finite, so that a distribution
            with tails must be cut off somewhere.

    Means and variances are those of the piecewise linear distribution itself.
    """

    distribution, code = "tabulated", TABULATED

    def __init__(self, quantiles: ArrayLike) -> None:
        q = _finite("quantiles", quantiles, (2, 3))
        q = q[..., 0].copy() if q.ndim == 3 and q.shape[2] == 1 else q
        if q.shape[1] < 2:
            raise ValueError(f"quantiles must be at least 2 for each arm, got shape {q.shape}")
        falls = np.diff(q, axis=1) < 0
        if falls.any():
            raise ValueError(f"the quantiles of arm {int(np.argwhere(falls)[0][0])} must not decrease")
        base = q.min()
        low, high = q[:, :-1] - base, q[:, 1:] - base
        means = ((low + high) / 2).mean(axis=1)
        a, b = low - means[:, None], high - means[:, None]
        reach = q[:, -1] - q[:, 0]
        if reach.max() == 0:
            raise ValueError("the quantiles must differ in at least one arm")
        self._quantiles = q
        self.fill(
            base + means,
            ((a * a + a * b + b * b) / 3).mean(axis=1),
            q.reshape(len(q), -1),
            support=(float(q[:, 0].min()), float(q[:, -1].max())),
            sigma=reach.max() / 2,
        )

    def to_dict(self) -> Form:
        return {"distribution": Tabulated.distribution, "quantiles": self._quantiles.tolist()}  # also of a subclass


class Shared(Arms):
    """Scalar arms that are the columns of one table: the n-th pull of every arm is its score in the n-th row.

    The rows come in an order that is drawn anew in each episode, all orders equally likely. An arm is known exactly
    once it has been pulled in all N rows: further pulls yield its mean.

    Args:
        scores: (N, K), N >= 1 rows.
        support: (lowest, highest) possible score. None: (0, 1) where it holds all scores, else those of the table.

    Means are those of the columns, to 12 digits of the width of the support, so that ties are recognised.
    """

    distribution, code = "shared", SHARED

    def __init__(self, scores: ArrayLike, support: Sequence[float] | None = None) -> None:
        x = _finite("scores", scores, (2,))
        low, high = float(x.min()), float(x.max())
        if support is None and low == high and not 0 <= low <= 1:
            raise ValueError(f"all scores are {low:g}: say by support=(lowest, highest) what they can be")
        if support is None:
            support = (0.0, 1.0) if 0 <= low <= high <= 1 else (low, high)
        ends = interval("support", support)
        if low < ends[0] or high > ends[1]:
            raise ValueError(f"scores must lie in support={list(ends)}, got {low if low < ends[0] else high}")
        means = np.array([self.mean_of(column, ends) for column in x.T])
        self.items = len(x)
        self.fill(means, x.var(axis=0), self.packed(x.T, means), ends, support=ends, sigma=(ends[1] - ends[0]) / 2)

    @staticmethod
    def rounded(means: Any, width: float) -> Any:
        """How much means exceed the low end of a range, to 12 digits of its width: those of equal columns are equal."""
        return np.round(means, 12 - math.ceil(math.log10(width)))

    @classmethod
    def mean_of(cls, column: Floats, support: tuple[float, float]) -> float:
        """The mean of all N scores of an arm."""
        low, high = support
        return min(low + float(cls.rounded(math.fsum(column - low) / len(column), high - low)), high)

    @staticmethod
    def packed(columns: Floats, means: Floats) -> Floats:
        """Parameters (..., K, N + 1) of columns (..., K, N) with these means (..., K)."""
        return np.concatenate([columns, means[..., None]], axis=-1)

    def to_dict(self) -> Form:
        scores = self.parameters[:, :-1].T.tolist()
        return {"distribution": self.distribution, "scores": scores, "support": list(self.support or ())}


def check_table(arms: Arms, table: Floats) -> None:
    """Refuse a table (..., K, P) that the kernels cannot read for the code of these arms."""
    K, D, V, P = arms.K, arms.D, len(arms.data), table.shape[-1]
    columns = {
        BERNOULLI: D,
        GAUSSIAN: 2 * D,
        UNIFORM: 2 * D,
        CATEGORICAL: V,
        RESAMPLED: 2,
        TABULATED: max(P // D, 2) * D,
        SHARED: (arms.items or 0) + 1,
    }
    code = arms.code if isinstance(arms.code, int) and not isinstance(arms.code, bool) else None
    if code not in columns:
        raise ValueError(
            f"the code of {arms.distribution!r} arms must be in 0 .. {len(columns) - 1}, got {arms.code!r:.200}"
        )
    if table.shape[-2:] != (K, columns[code]):
        raise ValueError(
            f"{arms.distribution} arms need parameters of shape {(K, columns[code])} for D = {D} and {V} rows of data, "
            f"got {table.shape}"
        )
    if code == BERNOULLI and not ((table >= 0) & (table <= 1)).all():
        raise ValueError(f"probabilities of {arms.distribution} arms must lie in [0, 1]")
    if code in (GAUSSIAN, UNIFORM) and (table[..., D:] < 0).any():
        what = "standard deviations" if code == GAUSSIAN else "widths"
        raise ValueError(f"the {what} of {arms.distribution} arms must be >= 0, got {table[..., D:].min()}")
    if code == CATEGORICAL and not (D == 1 and (table[..., -1] >= 1).all()):
        raise ValueError(f"{arms.distribution} arms are scalar, and their cumulative probabilities end in 1 or more")
    if code == CATEGORICAL:
        before = table[..., :-1]
        if not ((before >= 0).all() and (before <= 1 + 1e-9).all() and (np.diff(table, axis=-1) >= 0).all()):
            raise ValueError(
                f"the cumulative probabilities of {arms.distribution} arms must rise, within [0, 1] before the last"
            )
    if code == TABULATED and (np.diff(table.reshape(*table.shape[:-1], -1, D), axis=-2) < 0).any():
        raise ValueError(f"the quantiles of {arms.distribution} arms must not fall")
    if code == SHARED and (D > 1 or not arms.items):
        raise ValueError(f"{arms.distribution} arms are scalar, and `items` is their number of rows")
    if code == RESAMPLED:
        first, count = table[..., 0], table[..., 1]
        whole = (table == np.rint(table)).all()
        if not (whole and (first >= 0).all() and (count >= 1).all() and (first + count <= V).all()):
            raise ValueError(f"the rows of {arms.distribution} arms must be among the {V} rows of data")
    _check_support(arms, table)
    for what, numbers in (("parameters", table), ("data", arms.data)):
        if len(odd := numbers[~np.isfinite(numbers)]):
            raise ValueError(f"the {what} of {arms.distribution} arms must be finite, got {odd[0]}")


def _check_support(arms: Arms, table: Floats) -> None:
    """Refuse samples beyond the support, in a table (..., K, P) of a distribution whose samples are bounded."""
    if arms.support is None or arms.code == GAUSSIAN:
        return
    D = arms.D
    if arms.code == BERNOULLI:
        low, high = 0.0, 1.0
    elif arms.code == UNIFORM:
        low, high = table[..., :D].min(), (table[..., :D] + table[..., D:]).max()
    else:
        samples = table if arms.code in (TABULATED, SHARED) else arms.data
        low, high = samples.min(), samples.max()
    lowest, highest = arms.support
    rounding = 1e-9 * (highest - lowest) + 4 * np.spacing(max(abs(lowest), abs(highest)))
    if low < lowest - rounding or high > highest + rounding:
        raise ValueError(
            f"the samples of {arms.distribution} arms must lie in their support, [{lowest}, {highest}], "
            f"got some in [{low}, {high}]"
        )


def _check_distribution(name: str, kind: Any) -> None:
    """Refuse what is no distribution."""
    if not isinstance(kind, type) or not issubclass(kind, Arms):
        raise ValueError(f"the distribution {name!r} must be a subclass of bandit_envs.Arms, got {kind!r:.200}")
    own = getattr(kind, "distribution", None)
    if not isinstance(own, str) or own != name and ":" not in name:
        raise ValueError(f"{kind.__name__}.distribution must be its name, {name!r}, got {own!r:.200}")
    if not isinstance(getattr(kind, "code", None), int):
        raise ValueError(f"{kind.__name__}.code must be the code of a distribution of bandit_envs, as Tabulated.code")


DISTRIBUTIONS: Registry[type[Arms]] = Registry(
    "distribution",
    "bandit_envs.distributions",
    _check_distribution,
    {kind.distribution: kind for kind in (Bernoulli, Gaussian, Uniform, Categorical, Resampled, Tabulated, Shared)},
    before="bandit_envs.laws",
)


def register_distribution(kind: type[Arms]) -> type[Arms]:
    """Add a distribution of one's own: instances in JSON form, and samplers where it has `pack`, take its name.

    Args:
        kind: a subclass of `Arms`; the name is its attribute `distribution`.

    Returns:
        The class, so that this may be its decorator.

    Raises:
        ValueError: for what is no distribution, and for the name of a distribution of this package or of an installed
            one.
    """
    DISTRIBUTIONS.register(getattr(kind, "distribution", None), kind)  # type: ignore[arg-type]
    return kind


register_law = register_distribution  # the old name


def from_dict(form: Form) -> Arms:
    """Arms from their JSON form, e.g. {"distribution": "gaussian", "mean": [0, 1], "sd": 0.5}.

    The distribution may also be "module:Class", a subclass of `Arms` that nobody has registered.
    """
    parameters = spelled(form)
    distribution = parameters.pop("distribution", None)
    if not isinstance(distribution, str) or ":" not in distribution and distribution not in DISTRIBUTIONS:
        raise ValueError(f"'distribution' must be one of {sorted(DISTRIBUTIONS)}, got {distribution!r:.200}")
    kind = DISTRIBUTIONS.find(distribution)
    with errors_of(f"the distribution {distribution!r}", kind):
        try:
            inspect.signature(kind).bind_partial(**parameters)  # unknown names first
            inspect.signature(kind).bind(**parameters)
        except TypeError as error:
            raise ValueError(
                f"{distribution} arms: {error}; they take {', '.join(inspect.signature(kind).parameters)}"
            ) from None
        try:
            return kind(**parameters)
        except TypeError as error:  # of the call
            raise ValueError(f"{distribution} arms: {str(error).replace('.__init__()', '')}") from error
