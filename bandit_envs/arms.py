"""Laws of the arms. A law is data for the simulator's kernels: a table of parameters, one row per arm.

| class       | a pull yields                                               | parameters of an arm            |
|-------------|-------------------------------------------------------------|---------------------------------|
| Bernoulli   | 1 with probability mean, else 0 (independent attributes)    | mean                            |
| Gaussian    | mean + sd Z (independent coordinates)                       | mean, sd                        |
| Uniform     | a point of [mean - width/2, mean + width/2]                 | lower end, width                |
| Categorical | one of the given values, with the arm's probabilities       | cumulative probabilities        |
| Resampled   | one of the arm's data rows, uniformly with replacement      | first row, number of rows       |

Means of shape (K,) make scalar arms (D = 1), means of shape (K, D) make D-dimensional ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import rng

__all__ = ["LAWS", "Arms", "Bernoulli", "Categorical", "Gaussian", "Resampled", "Uniform", "from_dict"]

Floats = NDArray[np.float64]

BERNOULLI, GAUSSIAN, UNIFORM, CATEGORICAL, RESAMPLED = range(5)  # kernel constants: codes of the laws
LARGEST = 1e100  # magnitude of a number that can be squared and summed without overflow


def _finite(name: str, value: ArrayLike, ndims: tuple[int, ...]) -> Floats:
    """`value` as a finite float64 array with one of the given numbers of axes."""
    try:
        given = np.asarray(value)
        array = np.array(value, np.float64) if given.dtype.kind in "iufO" else None
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None:
        raise ValueError(f"{name} must be numbers of one rectangular shape, got {value!r:.200}")
    if array.ndim not in ndims or array.size == 0:
        raise ValueError(f"{name} must have {' or '.join(map(str, ndims))} axes, none empty, got shape {array.shape}")
    if not (np.abs(array) <= LARGEST).all():
        index = np.argwhere(~(np.abs(array) <= LARGEST))[0]
        raise ValueError(
            f"{name} must be finite, at most {LARGEST:g} in size, got {array[tuple(index)]} at index {index.tolist()}"
        )
    return array


def _scalar(array: Floats) -> Floats:
    """(K,) instead of (K, 1): arms of one dimension are scalar arms."""
    return array[:, 0].copy() if array.ndim == 2 and array.shape[1] == 1 else array


class Arms:
    """K arms: their laws, and what may be known of them.

    Attributes:
        law: name of the law's family.
        means: true means, (K,) or (K, D).
        variances: true variances, same shape.
        support: (lowest, highest) value of a sample, or None.
        sigma: sub-Gaussian scale of a sample (half the width for bounded laws).
        parameters: (K, P) float64, and `data` (V, D) float64: what the kernels read.
    """

    law: ClassVar[str]
    code: ClassVar[int]
    means: Floats
    variances: Floats
    support: tuple[float, float] | None
    sigma: float
    parameters: Floats
    data: Floats

    def _set(self, means: Floats, variances: Floats, parameters: Floats, data: Floats | None = None) -> None:
        self.means, self.variances = means, np.broadcast_to(variances, means.shape).copy()
        if not 2 <= self.K <= rng.ARMS_LIMIT:
            raise ValueError(f"an instance has 2 to {rng.ARMS_LIMIT} arms, got {self.K}")
        self.parameters = np.ascontiguousarray(parameters.reshape(self.K, -1))
        self.data = np.zeros((1, self.D)) if data is None else np.ascontiguousarray(data.reshape(-1, self.D))
        for array in (self.means, self.variances, self.parameters, self.data):
            array.setflags(write=False)

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
        columns = rows.reshape(*lead, self.K, -1, D)  # each parameter of all laws but one has one number per coordinate
        return np.ascontiguousarray(np.swapaxes(columns, -1, -2)).reshape(*lead, self.K * D, -1)

    def coordinates(self) -> Arms:
        """The coordinates as scalar arms: arm * D + d has the law of coordinate d of the arm."""
        scalar: Arms = object.__new__(type(self))
        scalar.support, scalar.sigma = self.support, self.sigma
        scalar._set(self.means.reshape(-1), self.variances.reshape(-1), self.split(self.parameters), self.data.T)
        return scalar

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which `from_dict` reads."""
        raise TypeError(f"{type(self).__name__} has no JSON form")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(K={self.K}, D={self.D})"


class Bernoulli(Arms):
    """Arms whose samples are 0 or 1.

    Args:
        mean: probabilities of 1, (K,), or (K, D) for D independent attributes.
    """

    law, code = "bernoulli", BERNOULLI

    def __init__(self, mean: ArrayLike) -> None:
        p = _scalar(_finite("mean", mean, (1, 2)))
        if ((p < 0) | (p > 1)).any():
            raise ValueError(f"a Bernoulli mean lies in [0, 1], got {p[(p < 0) | (p > 1)][0]}")
        self.support, self.sigma = (0.0, 1.0), 0.5
        self._set(p, p * (1 - p), self.pack(p, 0.0))

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D)."""
        return means

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.law, "mean": self.means.tolist()}


class Gaussian(Arms):
    """Arms with normal samples, independent over coordinates.

    Args:
        mean: (K,) or (K, D).
        sd: standard deviation, > 0: a number, or an array that broadcasts to the shape of `mean`.
    """

    law, code = "gaussian", GAUSSIAN

    def __init__(self, mean: ArrayLike, sd: ArrayLike = 1.0) -> None:
        m, s = _means_and_spread(mean, "sd", sd)
        self.support, self.sigma = None, float(s.max())
        self._sd = s
        self._set(m, s**2, np.concatenate([m.reshape(len(m), -1), s.reshape(len(m), -1)], axis=1))

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D) with standard deviation `spread`."""
        return np.concatenate([means, np.full_like(means, spread)], axis=-1)

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.law, "mean": self.means.tolist(), "sd": self._sd.tolist()}


class Uniform(Arms):
    """Arms with samples uniform on an interval around the mean.

    Args:
        mean: (K,) or (K, D).
        width: length of the interval, > 0: a number, or an array that broadcasts to the shape of `mean`.

    `support` is None: the ends of the intervals would tell the means. `sigma` is half the largest width.
    """

    law, code = "uniform", UNIFORM

    def __init__(self, mean: ArrayLike, width: ArrayLike = 1.0) -> None:
        m, w = _means_and_spread(mean, "width", width)
        self.support, self.sigma = None, float(w.max()) / 2
        self._width = w
        rows = len(m)
        self._set(m, w**2 / 12, np.concatenate([(m - w / 2).reshape(rows, -1), w.reshape(rows, -1)], axis=1))

    @staticmethod
    def pack(means: Floats, spread: float) -> Floats:
        """Parameters (..., K, P) of means (..., K, D) with interval length `spread`."""
        return np.concatenate([means - spread / 2, np.full_like(means, spread)], axis=-1)

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.law, "mean": self.means.tolist(), "width": self._width.tolist()}


def _means_and_spread(mean: ArrayLike, name: str, value: ArrayLike) -> tuple[Floats, Floats]:
    """Means, and a positive scale broadcast to their shape."""
    means = _finite("mean", mean, (1, 2))
    array = _finite(name, value, tuple(range(means.ndim + 1)))
    try:
        array = np.broadcast_to(array, means.shape).copy()
    except ValueError:
        raise ValueError(f"{name} must broadcast to the shape {means.shape} of mean, got shape {array.shape}") from None
    if (array <= 0).any():
        raise ValueError(f"{name} must be > 0, got {array[array <= 0][0]}")
    return _scalar(means), _scalar(array)


class Categorical(Arms):
    """Scalar arms whose samples take finitely many values.

    Args:
        values: the values, (V,), increasing.
        probabilities: (K, V), or weights such as counts of ratings: rows are scaled to sum 1.
    """

    law, code = "categorical", CATEGORICAL

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
        self.support, self.sigma = (float(v[0]), float(v[-1])), float(v[-1] - v[0]) / 2
        self._set(mean, np.maximum(p @ v**2 - mean**2, 0.0), cumulative, v)

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.law, "values": self.data[:, 0].tolist(), "probabilities": self._weights.tolist()}


class Resampled(Arms):
    """Arms whose samples are rows of given data, drawn uniformly with replacement.

    Args:
        rows: for each arm its data, (n_i,) or (n_i, D), n_i >= 1; not all the same number.
    """

    law, code = "resampled", RESAMPLED

    def __init__(self, rows: Sequence[ArrayLike]) -> None:
        if not np.iterable(rows) or isinstance(rows, (str, bytes)) or len(rows) < 2:
            raise ValueError(f"rows must be the data of at least 2 arms, got {rows!r:.200}")
        tables = [_scalar(_finite(f"rows of arm {i}", table, (1, 2))) for i, table in enumerate(rows)]
        shapes = {table.shape[1:] for table in tables}
        if len(shapes) > 1:
            raise ValueError(f"the rows of all arms must have one dimension, got shapes {sorted(shapes)}")
        self._rows = tables
        counts = np.array([len(table) for table in tables], np.float64)
        data = np.concatenate(tables)
        self.support = (float(data.min()), float(data.max()))
        if self.support[0] == self.support[1]:
            raise ValueError(f"rows must hold at least 2 different numbers, got {self.support[0]} only")
        self.sigma = (self.support[1] - self.support[0]) / 2
        first = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        means = np.array([table.mean(axis=0) for table in tables])
        self._set(means, np.array([table.var(axis=0) for table in tables]), np.stack([first, counts], axis=1), data)

    def split(self, rows: Floats) -> Floats:
        """The data of coordinate d follow those of coordinate d - 1."""
        each = np.repeat(rows, self.D, axis=-2)
        each[..., 0] += np.tile(np.arange(self.D) * float(len(self.data)), self.K)
        return each

    def to_dict(self) -> dict[str, Any]:
        return {"law": self.law, "rows": [table.tolist() for table in self._rows]}


LAWS: dict[str, type[Arms]] = {law.law: law for law in (Bernoulli, Gaussian, Uniform, Categorical, Resampled)}


def from_dict(form: dict[str, Any]) -> Arms:
    """Arms from their JSON form, e.g. {"law": "gaussian", "mean": [0, 1], "sd": 0.5}.

    Raises:
        ValueError: for an unknown law, or parameters that the law does not take.
    """
    parameters = dict(form)
    law = parameters.pop("law", None)
    if not isinstance(law, str) or law not in LAWS:
        raise ValueError(f"'law' must be one of {sorted(LAWS)}, got {law!r}")
    try:
        return LAWS[law](**parameters)
    except TypeError as error:  # of the call
        raise ValueError(f"{law} arms: {str(error).replace('.__init__()', '')}") from None
