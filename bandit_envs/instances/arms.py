"""Distributions of arms. A distribution is data for the simulator's kernels: a table of parameters, one row per arm.

Means of shape (K,) make scalar arms (D = 1), means of shape (K, D) make D-dimensional ones. `register_distribution`
gives a distribution of one's own a name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..kernels import rng
from ..kernels.checks import LARGEST, Bools, Floats, array, called, integer, interval, number
from ..kernels.spellings import spelled
from .registry import Registry

Form = dict[str, Any]  # of arms and samplers, JSON-able

BERNOULLI, GAUSSIAN, UNIFORM, CATEGORICAL, RESAMPLED, TABULATED, SHARED, LINE = range(8)  # codes of the distributions
WARM_UP = 200  # departures of a line


def _finite(name: str, value: ArrayLike, ndims: tuple[int, ...]) -> Floats:
    """`value` as a finite float64 array with one of the given numbers of axes."""
    x = array(name, value)
    if x.ndim not in ndims or x.size == 0:
        raise ValueError(f"{name} must have {' or '.join(map(str, ndims))} axes, none empty, got shape {x.shape}")
    if not (np.abs(x) <= LARGEST).all():
        index = np.argwhere(~(np.abs(x) <= LARGEST))[0]
        where = f"{x[tuple(index)]} at index {index.tolist()}"
        raise ValueError(f"{name} must be finite, at most {LARGEST:g} in size, got {where}")
    return x


def _scalar(x: Floats) -> Floats:
    """(K,) instead of (K, 1): arms of one dimension are scalar arms."""
    return x[:, 0].copy() if x.ndim == 2 and x.shape[1] == 1 else x


def ends_of(arms: Any) -> tuple[float, float]:
    """The range in which the samples of `Arms`, or of a `Task`, lie; (0, inf) where no range is known."""
    return (0.0, math.inf) if arms.support is None or arms.distribution == "gaussian" else arms.support


class Arms:
    """K arms: their distributions, and what agents may know of them.

    A distribution of one's own is a subclass. It has a name, `distribution`, and the `code` of a class below whose
    table has the same form; its constructor ends in a call of `fill` with that table. `to_dict` makes it JSON-able, and
    `pack` makes it a distribution for samplers. For instance, triangular arms on [0, 1] with the modes c:

        class Triangular(Arms):
            distribution, code = "triangular", Tabulated.code

            def __init__(self, mode):
                c, u = np.asarray(mode, float)[:, None], np.linspace(0, 1, 513)
                quantiles = np.where(u < c, np.sqrt(u * c), 1 - np.sqrt((1 - u) * (1 - c)))
                means, variances = (1 + c[:, 0]) / 3, (1 - c[:, 0] + c[:, 0] ** 2) / 18
                self.fill(means, variances, quantiles, support=(0.0, 1.0), sigma=0.5)

    A row of the table has, for an arm of D coordinates, by the class of the code:

    - Bernoulli: D means.
    - Gaussian: D means, then D standard deviations.
    - Uniform: D lower ends, then D widths.
    - Categorical, for D = 1: the cumulative probabilities of the V values in `data`.
    - Resampled: the number of its first row in `data`, and how many rows it has.
    - Tabulated: Q times D quantiles, those of all coordinates at the first level, then at the second, and so on.
    - Shared: the D scores in each of N rows, then the means of these.
    - FlowLine, for D = 1: the rates of three servers, and the places of the stages of the second and the third.

    Attributes:
        distribution: name of the family of distributions. code: how the kernels read the table.
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
    ranges: tuple[tuple[float, float], ...] | None = None  # of one with several metrics, the support of each
    _given: Mapping[str, Floats] | None = None  # by the constructor's arguments

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
        """Set all attributes of the arms; the last call of a distribution's constructor.

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
        _refuse(
            ~((self.variances >= 0) & (self.variances < np.inf)), self.variances, "variances must be >= 0 and finite"
        )
        if not 1 <= self.K <= rng.ARMS_LIMIT:
            raise ValueError(f"an instance has 1 to {rng.ARMS_LIMIT} arms, got {self.K}")
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
        """Parameters (..., K, P) of means (..., K, D). Samplers need it: they call it when episodes begin.

        `spread` is the sampler's own. A row is what the constructor makes of an arm with that mean. Support, sigma and
        P must not depend on the means.
        """
        raise TypeError("samplers cannot have this distribution")

    @classmethod
    def with_means(cls, means: Floats, spread: float) -> Arms:
        """Arms of these means (K,) or (K, D), for samplers. Here: `cls(means, spread)`."""
        return cls(means, spread)  # type: ignore[call-arg]

    def to_dict(self) -> Form:
        """The JSON form, which `from_dict` reads."""
        if self._given is None:
            raise TypeError(f"{type(self).__name__} has no JSON form")
        return {"distribution": self.distribution} | {name: value.tolist() for name, value in self._given.items()}

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
        _refuse((p < 0) | (p > 1), p, "a Bernoulli mean lies in [0, 1]")
        self._given = {"mean": p}
        self.fill(p, p * (1 - p), p, support=(0.0, 1.0), sigma=0.5)

    @classmethod
    def with_means(cls, means: Floats, spread: float) -> Bernoulli:
        return cls(means)

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        return means


class Gaussian(Arms):
    """Arms with normal samples, independent over coordinates.

    Agents know one scale, the largest `sd`, as `sigma` of all arms; the scale of each arm is hidden. Where the scales
    differ much, agents take more pulls than they need; distribution="student", of `evidence` and of certificates,
    estimates the scale of each arm.

    Args:
        mean: (K,) or (K, D).
        sd: standard deviation, > 0: a number, or an array that broadcasts to the shape of `mean`.
    """

    distribution, code = "gaussian", GAUSSIAN

    def __init__(self, mean: ArrayLike, sd: ArrayLike = 1.0) -> None:
        m, s, table = _means_and_spread(mean, "sd", sd)
        self._given = {"mean": m, "sd": s}
        self.fill(m, s**2, table, support=None, sigma=s.max())

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        return np.concatenate([means, np.full_like(means, spread)], axis=-1)


class Uniform(Arms):
    """Arms with samples uniform on an interval around the mean.

    Args:
        mean: (K,) or (K, D).
        width: length of the interval, > 0: a number, or an array that broadcasts to the shape of `mean`.

    `support` is None: the ends of the intervals would reveal the means. `sigma` is half the largest width.
    """

    distribution, code = "uniform", UNIFORM

    def __init__(self, mean: ArrayLike, width: ArrayLike = 1.0) -> None:
        m, w, table = _means_and_spread(mean, "width", width, 0.5)
        self._given = {"mean": m, "width": w}
        self.fill(m, w**2 / 12, table, support=None, sigma=w.max() / 2)

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        return np.concatenate([means - spread / 2, np.full_like(means, spread)], axis=-1)


def _means_and_spread(
    mean: ArrayLike, name: str, value: ArrayLike, below: float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Means, a positive scale broadcast to their shape, and a table: means less `below` scales, then scales."""
    means = _finite("mean", mean, (1, 2))
    spread = _finite(name, value, tuple(range(means.ndim + 1)))
    try:
        spread = np.broadcast_to(spread, means.shape).copy()
    except ValueError:
        raise ValueError(f"{name} must broadcast to the shape {means.shape} of mean, got {spread.shape}") from None
    _refuse(spread <= 0, spread, f"{name} must be > 0")
    table = np.concatenate([(means - below * spread).reshape(len(means), -1), spread.reshape(len(means), -1)], axis=1)
    return _scalar(means), _scalar(spread), table


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
        _refuse(weights < 0, weights, "probabilities must be >= 0")
        total = weights.sum(axis=1)
        if (total <= 0).any():
            raise ValueError(f"arm {int(np.argmax(total <= 0))} has probabilities that sum to 0")
        mean = (weights @ v) / total  # rounded once for integer counts and values
        p = weights / total[:, None]
        cumulative = np.cumsum(p, axis=1)
        cumulative[:, -1] = 2.0  # the last value takes whatever rounding left
        self._given = {"values": v, "probabilities": weights}
        variance = np.maximum(p @ (v - v[0]) ** 2 - (mean - v[0]) ** 2, 0.0)
        self.fill(mean, variance, cumulative, v, support=(float(v[0]), float(v[-1])), sigma=(v[-1] - v[0]) / 2)


class Resampled(Arms):
    """Arms whose samples are rows of given data, drawn uniformly with replacement.

    Args:
        rows: for each arm its data, (n_i,) or (n_i, D), n_i >= 1; not all the same number.
        support: the lowest and the highest possible sample; None: those of the data.
    """

    distribution, code = "resampled", RESAMPLED

    def __init__(self, rows: Sequence[ArrayLike], support: Sequence[float] | None = None) -> None:
        if not np.iterable(rows) or isinstance(rows, (str, bytes)) or len(rows) < 1:
            raise ValueError(f"rows must be the data of at least one arm, got {rows!r:.200}")
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
        lowest, highest = ends = (low, high) if support is None else interval("support", support)
        self.fill(means, variances, table, data, support=ends, sigma=(highest - lowest) / 2)

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
            0, 1 / (Q - 1), 2 / (Q - 1), ..., 1, none less than the one before. They are finite: cut the tails of a
            distribution off.

    Means and variances are those of the piecewise linear distribution itself.
    """

    distribution, code = "tabulated", TABULATED

    def __init__(self, quantiles: ArrayLike) -> None:
        q = _finite("quantiles", quantiles, (2, 3))
        q = q[..., 0].copy() if q.ndim == 3 and q.shape[2] == 1 else q
        if q.shape[1] < 2:
            raise ValueError(f"quantiles must be at least 2 for each arm, got shape {q.shape}")
        base = q.min()
        low, high = q[:, :-1] - base, q[:, 1:] - base
        means = ((low + high) / 2).mean(axis=1)
        a, b = low - means[:, None], high - means[:, None]
        reach = q[:, -1] - q[:, 0]
        if reach.max() == 0:
            raise ValueError("the quantiles must differ in at least one arm")
        self._quantiles = q
        variances, ends = ((a * a + a * b + b * b) / 3).mean(axis=1), (float(q[:, 0].min()), float(q[:, -1].max()))
        self.fill(base + means, variances, q.reshape(len(q), -1), support=ends, sigma=reach.max() / 2)

    def to_dict(self) -> Form:
        return {"distribution": Tabulated.distribution, "quantiles": self._quantiles.tolist()}  # also of a subclass


class Shared(Arms):
    """Arms that are the columns of one table: the n-th pull of every arm is its score in the n-th row.

    Each episode draws the order of the rows, uniformly. An arm is known exactly once it has been pulled in all N rows:
    further pulls yield its mean.

    Args:
        scores: (N, K), N >= 1 rows; or (N, K, D), of D metrics.
        support: (lowest, highest) possible score, or such a pair for each metric. None: those of the table; of a single
            metric (0, 1) where it holds all scores.

    Means are those of the columns, to 12 digits of the width of the support, so that ties are recognised.
    """

    distribution, code = "shared", SHARED

    def __init__(self, scores: ArrayLike, support: Sequence[float] | None = None) -> None:
        x = np.atleast_3d(_finite("scores", scores, (2, 3)))
        N, K, D = x.shape
        each = list(support) if support is not None and np.ndim(support) == 2 else [support] * D
        if len(each) != D:
            raise ValueError(f"support must be a pair, or one for each of the {D} metrics, got {support!r:.200}")
        ranges = tuple(self.range_of(x[..., d], one, D == 1) for d, one in enumerate(each))
        means = np.array([[self.mean_of(x[:, k, d], ranges[d]) for d in range(D)] for k in range(K)])
        self.items, self.ranges = N, ranges if D > 1 else None
        low, high = ends = min(one[0] for one in ranges), max(one[1] for one in ranges)
        table = np.concatenate([x, means[None]]).swapaxes(0, 1).reshape(K, -1)
        self.fill(means, x.var(axis=0), table, np.transpose(ranges), support=ends, sigma=(high - low) / 2)

    @staticmethod
    def range_of(scores: Floats, support: Any, single: bool) -> tuple[float, float]:
        """The range of one metric; `single`: there is no other."""
        low, high = float(scores.min()), float(scores.max())
        if support is None and low == high and not 0 <= low <= 1:
            raise ValueError(f"all scores are {low:g}: say by support=(lowest, highest) what they can be")
        if support is None:
            support = (0.0, 1.0) if low == high or single and 0 <= low <= high <= 1 else (low, high)
        return interval("support", support)

    @staticmethod
    def rounded(means: Any, width: float) -> Any:
        """Means less the low end of a range, to 12 digits of its width, so that those of equal columns are equal."""
        return np.round(means, 12 - math.ceil(math.log10(width)))

    @classmethod
    def mean_of(cls, column: Floats, support: tuple[float, float]) -> float:
        """The mean of all N scores of an arm."""
        low, high = support
        return min(low + float(cls.rounded(math.fsum(column - low) / len(column), high - low)), high)

    @classmethod
    def scored(cls, columns: Floats, support: tuple[float, float] = (0.0, 1.0)) -> tuple[Floats, Floats]:
        """Means (..., K) and parameters (..., K, N + 1) of columns (..., K, N): equal means of equal columns."""
        (low, high), above = support, np.ascontiguousarray(columns) - support[0]
        means = np.minimum(low + cls.rounded(above.sum(axis=-1) / columns.shape[-1], high - low), high)
        return means, np.concatenate([columns, means[..., None]], axis=-1)

    def to_dict(self) -> Form:
        x = self.parameters.reshape(self.K, -1, self.D)[:, :-1].swapaxes(0, 1)
        scores, ends = (x if self.D > 1 else x[..., 0]).tolist(), self.ranges or self.support or ()
        return {"distribution": self.distribution, "scores": scores, "support": np.array(ends).tolist()}


class FlowLine(Arms):
    """Lines of three exponential servers, simulated: a sample is minus the mean time of 50 departures, after others.

    A job that is done waits in its server while the next stage is full. Lines begin empty, which leaves a bias: below
    .1 % with some 20 places, 1.2 % with 50 of them, where 2000 departures leave below .1 %.

    Args:
        lines: (K, 6), > 0: three rates; the places of stages 2 and 3, with that in service; the exact throughput,
            which is taken as it is. Variances are those of Poisson departures, which are up to twice too large.
        warm_up: departures before those that count.
    """

    distribution, code = "flow-line", LINE

    def __init__(self, lines: ArrayLike, warm_up: int = WARM_UP) -> None:
        x, warm_up = _finite("lines", lines, (2,)), integer("warm_up", warm_up, 0, 10**9)
        _refuse(x <= 0, x, "the numbers of a line must be > 0")
        _refuse(x[:, 3:5] != np.floor(x[:, 3:5]), x[:, 3:5], "the places of a stage must be whole numbers")
        self._given = {"lines": x} | ({} if warm_up == WARM_UP else {"warm_up": np.array(warm_up)})
        mean, table = 1 / x[:, -1], np.concatenate([x[:, :-1], np.full((len(x), 1), warm_up)], axis=1)
        self.fill(-mean, mean**2 / 50, table, support=None, sigma=mean.max() / math.sqrt(50))


def _refuse(wrong: Bools, values: Floats, text: str) -> None:
    """An error that names the first of the values that are wrong."""
    if wrong.any():
        raise ValueError(f"{text}, got {values[wrong][0]}")


def check_table(arms: Arms, table: Floats) -> None:
    """Refuse a table (..., K, P) that the kernels cannot read by the code of these arms, and samples off support."""
    K, D, V, P, of = arms.K, arms.D, len(arms.data), table.shape[-1], f"{arms.distribution} arms"
    columns = D, 2 * D, 2 * D, V, 2, max(P // D, 2) * D, ((arms.items or 0) + 1) * D, 6  # by the codes
    code = arms.code if isinstance(arms.code, int) and not isinstance(arms.code, bool) else -1
    if not 0 <= code < len(columns):
        known = f"in 0 .. {len(columns) - 1}"
        raise ValueError(f"the code of {arms.distribution!r} arms must be {known}, got {arms.code!r:.200}")
    if table.shape[-2:] != (K, columns[code]):
        wanted = f"parameters of shape {(K, columns[code])} for D = {D} and {V} rows of data"
        raise ValueError(f"{of} need {wanted}, got {table.shape}")
    if code in (CATEGORICAL, LINE) and D > 1 or code == SHARED and not arms.items:
        raise ValueError(f"{of} " + ("need `items`, their number of rows" if code == SHARED else "are scalar"))
    front, back = table[..., :D], table[..., D:]
    samples = [table] if code in (TABULATED, SHARED) else [arms.data]  # their lowest and highest are in these
    if code == BERNOULLI:
        _refuse(~((table >= 0) & (table <= 1)), table, f"the probabilities of {of} must lie in [0, 1]")
        samples = [np.array([0.0, 1.0])]
    elif code in (GAUSSIAN, UNIFORM):
        what = "standard deviations" if code == GAUSSIAN else "widths"
        _refuse(back < 0, back, f"the {what} of {of} must be >= 0")
        samples = [front, front + back] if code == UNIFORM else []
    elif code == CATEGORICAL:
        falls, before = ~(np.diff(table, axis=-1, prepend=0.0) >= 0), table[..., :-1]
        _refuse(falls, table, f"the cumulative probabilities of {of} must rise from 0")
        _refuse(before > 1 + 1e-9, before, f"the cumulative probabilities of {of} before the last must be <= 1")
        _refuse(table[..., -1] < 1, table[..., -1], f"the cumulative probabilities of {of} must end in 1 or more")
    elif code == TABULATED:
        levels = table.reshape(*table.shape[:-1], -1, D)
        _refuse(np.diff(levels, axis=-2) < 0, levels[..., 1:, :], f"the quantiles of {of} must not fall")
    elif code == RESAMPLED:
        first, count = table[..., :1], table[..., 1:]
        wrong = (table != np.rint(table)) | (first < 0) | (count < 1) | (first + count > V)
        _refuse(wrong, table, f"the rows of {of} must be among the {V} rows of data")
    ranges = arms.ranges or (() if arms.support is None or not samples else (arms.support,))
    for d, (lowest, highest) in enumerate(ranges):
        some = [x[..., d :: len(ranges)] for x in samples]
        low, high = min(x.min() for x in some), max(x.max() for x in some)
        rounding = 1e-9 * (highest - lowest) + 4 * np.spacing(max(abs(lowest), abs(highest)))
        if low < lowest - rounding or high > highest + rounding:
            said = f"must lie in their support, [{lowest:g}, {highest:g}], got some in [{low:g}, {high:g}]"
            raise ValueError(f"the samples of {of} {said}")
    for what, numbers in (("parameters", table), ("data", arms.data)):
        _refuse(~np.isfinite(numbers), numbers, f"the {what} of {of} must be finite")


def _check_distribution(name: str, kind: Any) -> None:
    """Refuse a class that is no distribution, or lacks its name or code."""
    if not isinstance(kind, type) or not issubclass(kind, Arms):
        raise ValueError(f"the distribution {name!r} must be a subclass of bandit_envs.Arms, got {kind!r:.200}")
    own = getattr(kind, "distribution", None)
    if not isinstance(own, str) or own != name and ":" not in name:
        raise ValueError(f"{kind.__name__}.distribution must be its name, {name!r}, got {own!r:.200}")
    if not isinstance(getattr(kind, "code", None), int):
        raise ValueError(f"{kind.__name__}.code must be the code of a distribution of bandit_envs, as Tabulated.code")


KINDS = Bernoulli, Gaussian, Uniform, Categorical, Resampled, Tabulated, Shared, FlowLine
DISTRIBUTIONS: Registry[type[Arms]] = Registry(
    "distribution", "bandit_envs.distributions", _check_distribution, {kind.distribution: kind for kind in KINDS}
)


def register_distribution(kind: type[Arms]) -> type[Arms]:
    """Add a distribution of one's own: instances in JSON form, and samplers where it has `pack`, take its name.

    Args:
        kind: a subclass of `Arms`; the name is its attribute `distribution`. It is returned, as by a decorator.

    Raises:
        ValueError: for what is no distribution, and for a name that this package or an installed one has taken.
    """
    DISTRIBUTIONS.register(getattr(kind, "distribution", None), kind)  # type: ignore[arg-type]
    return kind


def from_dict(form: Form) -> Arms:
    """Arms from their JSON form, e.g. {"distribution": "gaussian", "mean": [0, 1], "sd": 0.5}.

    The distribution may also be "module:Class", a subclass of `Arms` that is not registered.
    """
    parameters = spelled(form)
    distribution = parameters.pop("distribution", None)
    if not isinstance(distribution, str) or ":" not in distribution and distribution not in DISTRIBUTIONS:
        raise ValueError(f"'distribution' must be one of {sorted(DISTRIBUTIONS)}, got {distribution!r:.200}")
    arms: Arms = called(f"the distribution {distribution!r}", DISTRIBUTIONS.find(distribution), parameters)
    return arms
