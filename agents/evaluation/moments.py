"""Moments of episodes, kept in place of rows: counts, sums and histograms that can be merged, in little memory.

Blocks are merged in their order, so that sums of fractions are the same to the last bit, whoever has made the blocks.

Means and rates are those of the rows but for rounding, and so are intervals of rates, verdicts, paired counts and the
test of McNemar. Quantiles of the pulls are exact as long as at most `KEYS` different numbers of pulls have come up;
beyond, they are exact to within the width of a bin. Intervals of means are normal ones, cut to the range of what they
are of, also below the 10,000 episodes up to which rows have the bootstrap.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import statistics
from .rows import Estimate, KeptRun, Run, within

Floats = NDArray[np.float64]
KEYS = 2**14  # bins of a histogram, at most
CHUNK = 2**13  # episodes that are looked at together, so that they stay in the cache


@dataclass(frozen=True)
class Sums:
    """How often, and the first two moments, of several columns of numbers at once, any shape (...)."""

    n: int  # how many numbers
    mean: Floats
    spread: Floats  # the sum of the squares of their distances from the mean
    up: NDArray[np.int64]  # how many are above 0
    down: NDArray[np.int64]  # and below
    binary: NDArray[np.bool_]  # whether all are -1, 0 or 1

    @classmethod
    def of(cls, values: NDArray[np.generic]) -> Sums:
        """Of numbers (..., n)."""
        x = values.astype(np.float64, copy=False)
        n = x.shape[-1]
        mean = x.sum(axis=-1) / n
        ahead = x - mean[..., None]
        spread = np.einsum("...i,...i->...", ahead, ahead)
        up, down = np.count_nonzero(x > 0, axis=-1), np.count_nonzero(x < 0, axis=-1)
        whole = np.count_nonzero(np.abs(x) == 1, axis=-1)
        return cls(n, mean, spread, np.asarray(up), np.asarray(down), np.asarray(whole == up + down))

    def merged(self, other: Sums) -> Sums:
        """With the numbers of another one, which come after these. [Chan, Golub & LeVeque 1979]"""
        n = self.n + other.n
        ahead = other.mean - self.mean
        mean = self.mean + ahead * (other.n / n)
        spread = self.spread + other.spread + ahead * ahead * (self.n * other.n / n)
        up, down = self.up + other.up, self.down + other.down
        return Sums(n, mean, spread, up, down, self.binary & other.binary)


@dataclass(frozen=True)
class Histogram:
    """How often whole numbers came up, in at most `KEYS` bins of a width of a power of 2.

    The width is the least at which there are no more, in any order of merging.
    """

    shift: int  # the width is 2^shift
    keys: NDArray[np.int64]  # numbers of bins, ascending
    counts: NDArray[np.int64]
    low: int  # the least number, and the largest
    high: int

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Histogram:
        """Of numbers >= 0, (n,)."""
        if (values == values[0]).all():
            return cls(0, values[:1].copy(), np.array([len(values)]), int(values[0]), int(values[0]))
        keys, counts = np.unique(values, return_counts=True)
        return cls._fitted(0, keys, counts.astype(np.int64), int(keys[0]), int(keys[-1]))

    @classmethod
    def _fitted(cls, shift: int, keys: NDArray[np.int64], counts: NDArray[np.int64], low: int, high: int) -> Histogram:
        while True:
            first = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))  # keys are sorted
            keys, counts = keys[first], np.add.reduceat(counts, first)
            if len(keys) <= KEYS:
                return cls(shift, keys, counts, low, high)
            keys, shift = keys >> 1, shift + 1

    def merged(self, other: Histogram) -> Histogram:
        """With the numbers of another one."""
        shift = max(self.shift, other.shift)
        keys = np.concatenate([one.keys >> (shift - one.shift) for one in (self, other)])
        order = np.argsort(keys, kind="stable")
        counts = np.concatenate([self.counts, other.counts])[order]
        low, high = min(self.low, other.low), max(self.high, other.high)
        return self._fitted(shift, keys[order], counts, low, high)

    def quantile(self, q: float) -> float:
        """As NumPy's, between neighbours; where bins are wider than 1, of the middles of bins."""
        ends = np.cumsum(self.counts)
        place = (int(ends[-1]) - 1) * q
        below = math.floor(place)

        def ranked(rank: int) -> float:
            key = int(self.keys[np.searchsorted(ends, rank, side="right")])
            middle = (key << self.shift) + ((1 << self.shift) - 1) / 2
            return min(max(middle, self.low), self.high)

        a, b, t = ranked(below), ranked(min(below + 1, int(ends[-1]) - 1)), place - below
        return b - (b - a) * (1 - t) if t >= 0.5 else a + (b - a) * t


def shared(one: Run, other: Run) -> list[tuple[int, int]]:
    """The cells of two runs that have the same delta, budget and number of pulls, by their numbers in both."""
    if one.task.delta != other.task.delta:
        return []
    places = {cell: d for d, cell in enumerate(other.cells)}
    return [(c, places[cell]) for c, cell in enumerate(one.cells) if cell in places]


def _table(run: Run, names: Sequence[str], first: int, last: int) -> Floats:
    """The columns of some episodes, (C, M, last - first)."""
    table = np.empty((len(run.cells), len(names), last - first))
    for m, name in enumerate(names):
        table[:, m] = run.columns[name][first:last].T if name in run.columns else np.nan
    return table


@dataclass(frozen=True)
class Moments:
    """What is kept of consecutive episodes of several runs."""

    names: tuple[str, ...]  # of the columns
    runs: tuple[Sums, ...]  # for each run its columns, (C, M)
    pulls: tuple[Floats, ...]  # for each run the sums by arm, (C, K)
    times: tuple[tuple[Histogram, ...], ...]  # of the pulls, for each run and cell
    stopped: tuple[NDArray[np.int64], ...]  # for each run what `Run.stopped` returns of each cell, (C, 2)
    pairs: Mapping[tuple[int, int], Sums]  # differences of two runs in their common cells, (S, M)

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Moments:
        """Of the rows of several runs over the same episodes."""
        names, total = tuple(dict.fromkeys(name for run in runs for name in run.columns)), runs[0].episodes
        sums: list[Sums] = []
        pairs: dict[tuple[int, int], Sums] = {}
        couples = [(a, b, shared(runs[a], runs[b])) for a, b in combinations(range(len(runs)), 2)]
        for first in range(0, total, CHUNK):
            last = min(first + CHUNK, total)
            tables = [_table(run, names, first, last) for run in runs]
            some = list(map(Sums.of, tables))
            sums = [one.merged(more) for one, more in zip(sums, some, strict=True)] if sums else some
            for a, b, cells in couples:
                if not cells:
                    continue
                left, right = map(list, zip(*cells, strict=True))
                more = Sums.of(tables[a][left] - tables[b][right])
                pairs[a, b] = pairs[a, b].merged(more) if first else more
        return cls(
            names,
            tuple(sums),
            tuple(run.pulls.copy() for run in runs),
            tuple(tuple(map(Histogram.of, run.columns["total_pulls"].T)) for run in runs),
            tuple(np.array([run.stopped(c) for c in range(len(run.cells))]) for run in runs),
            pairs,
        )

    def merged(self, other: Moments) -> Moments:
        """With those of the episodes that follow."""
        return Moments(
            self.names,
            tuple(a.merged(b) for a, b in zip(self.runs, other.runs, strict=True)),
            tuple(a + b for a, b in zip(self.pulls, other.pulls, strict=True)),
            tuple(
                tuple(a.merged(b) for a, b in zip(one, two, strict=True))
                for one, two in zip(self.times, other.times, strict=True)
            ),
            tuple(a + b for a, b in zip(self.stopped, other.stopped, strict=True)),
            {pair: sums.merged(other.pairs[pair]) for pair, sums in self.pairs.items()},
        )

    def to_json(self) -> str:
        """As text, to the last bit."""
        pairs = [(*pair, sums) for pair, sums in self.pairs.items()]
        return json.dumps({**vars(self), "pairs": pairs}, default=_packed, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Moments:
        """The moments of a text that `to_json` has returned."""
        read = json.loads(text)
        return cls(
            tuple(read["names"]),
            tuple(Sums(**_unpacked(one)) for one in read["runs"]),
            tuple(map(_array, read["pulls"])),
            tuple(tuple(Histogram(**_unpacked(one)) for one in own) for own in read["times"]),
            tuple(map(_array, read["stopped"])),
            {(a, b): Sums(**_unpacked(one)) for a, b, one in read["pairs"]},
        )


def _packed(value: object) -> object:
    if isinstance(value, np.ndarray):
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 1)).decode()
        return value.dtype.str, value.shape, packed
    return vars(value)


def _array(array: Sequence[Any]) -> NDArray[Any]:
    kind, shape, packed = array
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.dtype(kind)).reshape(shape)


def _unpacked(read: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _array(part) if isinstance(part, list) else part for name, part in read.items()}


class _NoRows(dict[str, NDArray[np.generic]]):
    """The columns of what has none."""

    def __missing__(self, name: str) -> NDArray[np.generic]:
        raise ValueError("no rows were kept, as rows='none' asked for: there are summary, compare, plot and pulls")


class SummedRun(KeptRun):
    """What is kept of one agent at one budget, without rows."""

    def __init__(self, empty: Run, place: int, store: Any) -> None:
        super().__init__(empty, place, store)
        self.columns = _NoRows()
        self._kinds = {name: values.dtype for name, values in empty.columns.items()}

    @functools.cached_property
    def moments(self) -> Moments:
        """Of all runs."""
        found: Moments = self._store.merged()
        return found

    @property
    def sums(self) -> Sums:
        """Of this run."""
        return self.moments.runs[self.place]

    @property
    def pulls(self) -> NDArray[np.float64]:  # type: ignore[override]
        return self.moments.pulls[self.place]

    @property
    def episodes(self) -> int:
        return self.sums.n

    @property
    def total(self) -> float:
        return self.mean("total_pulls", -1) * self.episodes

    def _number(self, metric: str) -> int:
        return self.moments.names.index(metric)

    def values(self, metric: str) -> NDArray[Any]:
        return self.columns[metric]

    def estimate(self, metric: str, level: float = 0.95) -> Estimate:
        """Means, and their confidence limits, (C,) each: exact for rates, else normal ones."""
        self.check(metric)
        wrong = metric in ("error_rate", "error")
        m, n = self._number("correct" if wrong else metric), self.episodes
        mean = self.sums.mean[:, m]
        if wrong or self._kinds[metric] == np.bool_:
            hits = self.sums.up[:, m]
            hits = n - hits if wrong else hits
            return hits / n, *statistics.clopper_pearson(hits, n, level)
        low, high = statistics.normal_mean(mean, self.sums.spread[:, m], n, level)
        return mean, *within(metric, low, high)

    def mean(self, name: str, c: int) -> float:
        return float(self.sums.mean[c, self._number(name)])

    def quantile(self, q: float, c: int) -> float:
        return self.moments.times[self.place][c].quantile(q)

    def median(self, name: str, c: int) -> float:
        """NaN: sums do not give it."""
        return math.nan

    def stopped(self, c: int) -> tuple[int, int]:
        stopped, wrong = self.moments.stopped[self.place][c]
        return int(stopped), int(wrong)

    def compared(self, c: int, other: SummedRun, d: int, metric: str, level: float) -> statistics.PairedDifference:
        """The paired difference from another run, in a cell of each: the mean of this one's values less the other's."""
        self.check(metric)
        metric, sign = ("correct", -1) if metric in ("error_rate", "error") else (metric, 1)
        m, n = self._number(metric), self.episodes
        binary = self._binary(c, m) and other._binary(d, m)
        if self.place == other.place and c == d:
            return statistics.paired_sums(0.0, 0.0, 0, 0, n, binary, level)
        one, two, cell = self, other, (c, d)
        if (one.place, two.place) not in self.moments.pairs:  # they are kept the other way round
            one, two, cell, sign = other, self, (d, c), -sign
        if cell not in (cells := shared(one, two)):
            text = "no rows were kept, as rows='none' asked for:"
            raise ValueError(f"{text} only equal deltas, budgets and numbers of pulls compare")
        found, i = self.moments.pairs[one.place, two.place], cells.index(cell)
        more, less = (int(part[i, m]) for part in (found.up, found.down)[::sign])
        mean, spread = sign * float(found.mean[i, m]) + 0.0, float(found.spread[i, m])
        return statistics.paired_sums(mean, spread, more, less, n, binary, level)

    def _binary(self, c: int, m: int) -> bool:
        """Whether all values of a column are 0 or 1."""
        return bool(self.sums.binary[c, m]) and not self.sums.down[c, m]
