"""The source of an episode's arms: an `Instance` has the same arms in each, a `Sampler` draws new ones."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import LARGEST, Floats, choice, errors_of, flag, integer, number, numbers, ours
from .arms import DISTRIBUTIONS, Arms, Bernoulli, Form, Gaussian, Resampled, Shared, check_table
from .tables import Count, Measurements, measurements, rows_of, shared_scores, within

MEANS_OFF = 0.05  # how far off the means of a table may be, in units of sigma: tables of quantiles are approximate
# The priors of the means that a sampler may have, and how many numbers each takes; 0: any number of them.
KINDS = {"uniform": 2, "normal": 2, "choice": 0, "around": 3}


@dataclass(frozen=True, eq=False)
class Instance:
    """Arms that are the same in every episode.

    Attributes:
        arms: their distributions.
        name: for reports.
        defaults: {problem name: values of its parameters, `budget` and `delta`} that the source uses; "" stands for all
            problems. `shuffle_arms` may be among them: True where the arms are listed in an order that shows which are
            best.
        arm_names: of the arms, in their order; empty where they have none.
        read: of a table, what was read, see `Measurements`.
    """

    arms: Arms
    name: str = "instance"
    defaults: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    arm_names: tuple[str, ...] = ()
    read: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.arms, Arms):
            raise ValueError(f"arms must be Arms, got {self.arms!r:.200}")
        if not hasattr(self.arms, "parameters"):
            raise ValueError(f"the constructor of {type(self.arms).__name__} must call `fill`")
        if not isinstance(self.name, str):
            raise ValueError(f"the name of an instance must be a text, got {self.name!r:.200}")
        if not isinstance(self.defaults, Mapping) or not all(isinstance(x, Mapping) for x in self.defaults.values()):
            raise ValueError(f"defaults must be {{problem: {{parameter: value}}}}, got {self.defaults!r:.200}")
        names: Any = self.arm_names
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"arm_names must be a tuple of texts, got {names!r:.200}")
        if names and len(names) != self.arms.K:
            raise ValueError(f"arm_names must be the names of {self.arms.K} arms, got {len(names)}")

    @property
    def K(self) -> int:
        """Number of arms."""
        return self.arms.K

    @property
    def D(self) -> int:
        """Number of coordinates of a sample."""
        return self.arms.D

    def to_dict(self) -> Form:
        """The JSON form that `find` reads."""
        return self.arms.to_dict()


# Tables are often sorted, so that the order of their arms shows which are best.
OF_TABLES = {"": {"shuffle_arms": True}}


def from_table(
    path: Any,
    arm: str | None = None,
    value: str | Sequence[str] | None = None,
    index: str | int | None = None,
    distribution: str | None = None,
    name: str = "table",
    wide: bool | None = None,
    shared: bool = False,
    support: Sequence[Any] | None = None,
    missing: float | Sequence[float] | None = None,
    item: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    layout: str | None = None,
    n: str | None = None,
    successes: str | None = None,
    values: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Instance:
    """An instance whose arms are those of a table of measurements.

    Tables are often sorted: the arms come in a random order in each episode, unless `shuffle_arms=False` is asked for.

    Args:
        path, arm, value, index, wide, item, sep, decimal, sheet, layout, n, successes: the table and its columns, see
            `measurements`. Of a table of counts an arm has the mean, and the standard deviation, of all its rows.
        distribution: of the samples: "resampled", drawn from an arm's own measurements with replacement; "bernoulli",
            of the mean of its measurements, which lie in [0, 1]; "gaussian", with their mean and standard deviation
            (divisor n - 1). None: "bernoulli" where all measurements are single numbers 0 or 1, else "resampled"; of
            counts "bernoulli" where all have successes, else "gaussian".
        name: of the instance.
        shared: whether all arms meet the same rows, each once, see `Shared`: in each episode the rows come in one
            random order, the n-th pull of every arm is its score in the n-th row, and what is true is the mean of the
            column. Rows that lack a cell are left out. The table is wide, or long with a column that names the row.
        support: the lowest and the highest possible value, of arms that are shared or resampled; None: see `Shared`
            and `Resampled`. It decides how many pulls a certificate takes, as the range of a session does.
            Of a shared table with several metrics, a pair for each.
        missing: what an empty cell of a shared table counts, in place of leaving its row out, one number or one for
            each metric. A warning says how many.
        values: of a long table, the columns of several metrics, or that of the value: value= by another name.
        weights: of a shared table with several metrics, by their columns: each cell has one score, the sum of each
            metric times its weight, 0 where it has none.

    Raises:
        ValueError: for less than 2 arms, an arm without a measurement, measurements that are all the same, and those
            that do not go with the distribution or the support, naming the arm. Else see `measurements`.
    """
    if value is not None and values is not None:
        raise ValueError(f"value={value!r:.80} and values={values!r:.80} are two names of one thing: give one of them")
    value = values if value is None else value
    if values is not None and (
        isinstance(values, Mapping) or not isinstance(values, Sequence) or len({*values}) < len(values)
    ):
        raise ValueError(f"values must be the names of different columns, got {values!r:.200}")
    columns: dict[str, Any] = {"arm": arm, "value": value, "index": index, "wide": wide, "item": item, "n": n}
    table = measurements(path, **columns, sep=sep, decimal=decimal, sheet=sheet, layout=layout, successes=successes)
    if not table.rows:
        raise ValueError(f"{table.of} has no measurement: each arm must have one")
    if flag("shared", shared):
        if distribution not in (None, Shared.distribution):
            raise ValueError(f"shared=True is a distribution of its own, got distribution={distribution!r:.80} with it")
        scores = shared_scores(within(table, support), missing)
        if weights is not None:
            metrics = [] if isinstance(value, str) else list(value or ())
            if not isinstance(weights, Mapping) or not weights or not {*metrics} >= {*weights}:
                raise ValueError(f"weights must be a dict by the columns in values={metrics}, got {weights!r:.200}")
            scores = (scores * [number("a weight", weights.get(one, 0.0)) for one in metrics]).sum(axis=2)
        return Instance(Shared(scores, support), name, OF_TABLES, tuple(table.arms), table.read)
    for of, one in (("missing", missing), ("weights", weights)):
        if one is not None:
            raise ValueError(f"{of} is for shared=True, got {of}={one!r:.200}")
    if any(one.several is not None for one in table.rows):
        if support is not None:
            raise ValueError(f"support is of shared or resampled arms, got support={support!r} of counts")
        return Instance(_counted(table, distribution), name, OF_TABLES, tuple(table.arms), table.read)
    rows = rows_of(within(table, (0, 1) if distribution == "bernoulli" else support))
    all_values = np.concatenate(rows)
    low, high = all_values.min(), all_values.max()
    if low == high:
        raise ValueError(f"all values of {table.of} are {low:g}: no arm differs from another")
    scalar = all_values.ndim == 1
    if distribution is None:
        distribution = "bernoulli" if scalar and np.isin(all_values, (0, 1)).all() else "resampled"
    choice("distribution", distribution, ("bernoulli", "gaussian", "resampled"))
    if support is not None and distribution != "resampled":
        raise ValueError(f"support is of shared or resampled arms, got support={support!r} of {distribution} ones")
    means = [x.mean(axis=0) for x in rows]
    arms: Arms
    if distribution == "bernoulli":
        arms = Bernoulli(means)
    elif distribution == "gaussian":
        for arm_name, x in zip(table.arms, rows, strict=True):
            if len(x) < 2 or (x.min(axis=0) == x.max(axis=0)).any():
                few = f"arm {arm_name!r} of {table.of} has {x.tolist()!s:.80}"
                raise ValueError(f"distribution='gaussian' needs at least 2 different values of each arm, {few}")
        arms = Gaussian(means, np.array([x.std(axis=0, ddof=1) for x in rows]))
    else:
        arms = Resampled(rows, support)
    return Instance(arms, name, OF_TABLES, tuple(table.arms), table.read)


def _counted(table: Measurements, distribution: str | None) -> Arms:
    """The arms of a table of counts, among which there may be single values: what all rows of an arm are together."""
    if empty := [name for name in table.arms if name not in {one.arm for one in table.rows}]:
        raise ValueError(f"{table.of} has no result of the arm {empty[0]!r}")
    rows = list[tuple[float, ...]]()  # arm, how many, their mean, squares around it
    for arm, count in ((one.arm, one.several or Count(1, None, float(*one.value))) for one in table.rows):
        n, ones, mean, sd = count
        x = ones / n if mean is None else mean
        rows.append((table.arms.index(arm), n, x, n * x * (1 - x) if mean is None else (n - 1) * (sd or 0) ** 2))
    binary = all(one.several.mean is None if one.several else one.value[0] in (0, 1) for one in table.rows)
    kind = choice("distribution", distribution or ("bernoulli" if binary else "gaussian"), ("bernoulli", "gaussian"))
    if kind == "bernoulli" and not binary:
        raise ValueError(f"distribution='bernoulli' needs successes, and {table.of} has means")
    of, ns, xs, squares = np.array(rows).T
    k, pulls = of.astype(np.int64), np.bincount(of.astype(np.int64), ns)
    means = np.bincount(k, ns * xs) / pulls
    variances = np.bincount(k, squares + ns * (xs - means[k]) ** 2) / np.maximum(pulls - 1, 1)
    return Bernoulli(means) if kind == "bernoulli" else Gaussian(means, np.sqrt(variances))


class Sampler:
    """A fresh instance for each episode: independent arms, whose means are drawn from one prior.

    A sampler of one's own is a subclass with its own `name`, constructor, `draw` and `to_dict`.

    Args:
        distribution: "bernoulli", "gaussian", "uniform", or a distribution of one's own that has `pack`, see `Arms`.
        arms: K.
        mean: prior of the means, one of {"uniform": [low, high]}, {"normal": [mean, sd]}, {"choice": [values ...]},
            {"around": [centre, least, most]}: at a distance from the centre, on either side, uniform on [least, most].
        dimensions: D.
        spread: standard deviation ("gaussian") or width ("uniform") of the arms, or what `pack` takes it for.
    """

    name = "sampler"
    defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def __init__(
        self,
        distribution: str = "bernoulli",
        arms: int = 10,
        mean: Mapping[str, Any] | None = None,
        dimensions: int = 1,
        spread: float = 1.0,
    ) -> None:
        if not isinstance(distribution, str) or ":" not in distribution and distribution not in _samplable():
            known = f"a sampler's distribution must be one of {_samplable()}, got {distribution!r:.200}"
            raise ValueError(f"{known} (a distribution of a module is named 'module:Class')")
        kind = DISTRIBUTIONS.find(distribution)
        if kind.pack is Arms.pack:
            raise ValueError(f"a sampler's distribution must have the method `pack`, got {distribution!r:.200}")
        self.distribution, self.K = distribution, integer("arms", arms, 1, rng.ARMS_LIMIT)
        self.D = integer("dimensions", dimensions, 1, 4096)
        self.spread = number("spread", spread, 0, LARGEST, above=True)
        mean = {"uniform": [0.0, 1.0]} if mean is None else mean
        if not isinstance(mean, Mapping) or len(mean) != 1 or next(iter(mean)) not in KINDS:
            forms = ", ".join(f'{{"{kind}": ..}}' for kind in KINDS)
            raise ValueError(f"mean must be one of {forms}, got {mean!r:.200}")
        self._kind, values = next(iter(mean.items()))
        if isinstance(values, (str, bytes)) or not np.iterable(values):
            raise ValueError(f"the prior {self._kind!r} of the means takes a list of numbers, got {values!r}")
        self._values = [number(self._kind, value, -LARGEST, LARGEST) for value in values]
        count = KINDS[self._kind]
        if len(self._values) != count if count else not self._values:
            wanted = f"{count} numbers" if count else "at least one number"
            raise ValueError(f"the prior {self._kind!r} of the means takes {wanted}, got {self._values}")
        if self._kind == "uniform" and not self._values[0] <= self._values[1]:
            raise ValueError(f"uniform means need low <= high, got {self._values}")
        lowest, highest = _mean_range(kind)
        if self._kind == "normal" and (self._values[1] <= 0 or lowest > -np.inf or highest < np.inf):
            got = f"{self._values}, {distribution!r:.200}"
            raise ValueError(f"normal means need sd > 0, and no Bernoulli arms, got {got}")
        if self._kind == "around":
            centre, least, most = self._values
            if not 0 <= least <= most:
                raise ValueError(f"means around a centre need 0 <= least <= most, got {self._values}")
            self._range = centre - most, centre + most
        else:
            self._range = min(self._values), max(self._values)
        if not lowest <= self._range[0] <= self._range[1] <= highest:
            raise ValueError(f"the means of {kind.__name__} arms lie in [{lowest:g}, {highest:g}], got {self._values}")
        # Arms of this distribution, for what all instances share: kernel code, support, scale, number of parameters.
        alike = np.full((self.K, self.D) if self.D > 1 else self.K, self._values[0])
        self.arms = _arms_with_means(kind, alike, self.spread)

    @property
    def positive(self) -> bool:
        """Whether every instance has a best mean > 0."""
        low, high = self._range
        return low >= 0 and high > 0 if self._kind == "uniform" else self._kind != "normal" and low > 0

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        """Means (E, K) or (E, K, D), and kernel parameters (E, K, P), of the episodes (E,) with keys (2, E)."""
        u = rng.uniforms(key, episode, self.K, self.D, stream=rng.INSTANCE)
        if self._kind == "uniform":
            low, high = self._values
            means = low + (high - low) * u
        elif self._kind == "around":
            centre, least, most = self._values
            side = 2.0 * u - 1.0
            means = centre + np.copysign(least + (most - least) * np.abs(side), side)
        elif self._kind == "normal":
            means = self._values[0] + self._values[1] * rng.normal_quantiles(u)
        else:
            means = np.array(self._values)[np.minimum((u * len(self._values)).astype(np.intp), len(self._values) - 1)]
        return (means[..., 0] if self.D == 1 else means), self.pack(means)

    def pack(self, means: Floats) -> Floats:
        """Kernel parameters (E, K, P) of means (E, K, D)."""
        kind = type(self.arms)
        with errors_of(f"pack of the distribution {kind.distribution!r}", kind):
            return kind.pack(means, self.spread)

    def to_dict(self) -> Form:
        """The JSON form that `find` reads."""
        form = {"distribution": self.distribution, "arms": self.K, "mean": {self._kind: self._values}}
        return {self.name: form | {"dimensions": self.D, "spread": self.spread}}

    def __repr__(self) -> str:
        (form,) = self.to_dict().values()
        return f"{type(self).__name__}({form!s:.400})"


def drawn(source: Instance | Sampler, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    """Means and tables of episodes, see `Sampler.draw`; they are checked where a user's own code has drawn them."""
    arms = source.arms
    if isinstance(source, Instance):
        of_all = np.broadcast_to(arms.means, (len(episode), *arms.means.shape))
        return of_all, np.broadcast_to(arms.parameters, (len(episode), *arms.parameters.shape))
    if ours(source) and ours(arms):
        return source.draw(key, episode)
    of = f"the sampler {source.name!r} of {arms.distribution!r} arms"
    with errors_of(of, source):
        found: Any = source.draw(key, episode)
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(f"{of} must draw a pair of means and tables, got {found!r:.200}")
    means, table = found
    shape = (len(episode), *arms.means.shape)
    numbers(f"means that {of} draws,", means, shape, "iuf")
    if not np.isfinite(means).all():
        raise ValueError(f"means that {of} draws must be finite, got {means!r:.200}")
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "biuf" or table.shape[:-2] != shape[:1]:
        got = f"shape {table.shape}" if isinstance(table, np.ndarray) else f"{table!r:.200}"
        raise ValueError(f"{of} must draw tables (E, K, P) of numbers with (E, K) = {shape[:2]}, got {got}")
    check_table(arms, table)
    return means, table


def _mean_range(kind: type[Arms]) -> tuple[float, float]:
    """The lowest and the highest mean that arms of a distribution can have, possibly infinite."""
    given: Any = kind.mean_range
    try:
        low, high = (math.nan if isinstance(end, (str, bool)) else float(end) for end in given)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high:
        wanted = "must be a pair of numbers, the lower first"
        raise ValueError(f"mean_range of {kind.distribution!r} arms {wanted}, got {given!r:.200}")
    return low, high


def _arms_with_means(kind: type[Arms], means: Floats, spread: float) -> Arms:
    """`Arms.with_means`, checked where the distribution is a user's own: such arms, with these means, or nearly so."""
    of = f"with_means of the distribution {kind.distribution!r}"
    with errors_of(of, kind):
        arms: Any = kind.with_means(means, spread)
    if not isinstance(arms, kind) or not hasattr(arms, "parameters"):
        raise ValueError(f"{of} must make {kind.__name__} arms, got {arms!r:.200}")
    if arms.means.shape != means.shape or np.abs(arms.means - means).max() > MEANS_OFF * arms.sigma:
        raise ValueError(f"{of} must make arms of the means {means!r:.200}, got {arms.means!r:.200}")
    return arms


def _samplable() -> list[str]:
    """The names of the distributions that samplers take; those of packages that cannot be imported are left out."""
    found = []
    for name in DISTRIBUTIONS:
        with contextlib.suppress(ValueError):
            if DISTRIBUTIONS[name].pack is not Arms.pack:
                found.append(name)
    return sorted(found)


@dataclass(frozen=True)
class NamedInstance:
    """What a name of the `instance` keyword stands for."""

    build: Callable[..., Any]  # makes the instance or the sampler; its parameters are those of the name
    problem: str = ""  # the name of the problem that it was made for; "" for any
    source: str = ""  # where it comes from
    data: bool = False  # whether it reads a file
    ships: bool = True  # whether the public files that it reads come with this package
