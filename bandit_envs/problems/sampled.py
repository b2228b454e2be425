"""The look-ahead potential of problems that have none of their own: by worlds drawn from the posteriors of the arms.

A world is a true mean of each arm, m + sqrt(v) z by its posterior. The z are the same in all states, so that close
states have close numbers. `margin` is asked once for all worlds; what follows rests on the margins alone.

symbols     d_i, s_i  mean and sd of the margin of arm i over the worlds; z_i = (|d_i| + tolerance) / s_i
            V_ij  the part of s_i^2 that is due to arm j: the mean square of the change of that margin where arm j moves
                  by one sd, to its mean or beyond it (of a local problem V_ii alone), over the sum of these over j
            r_i   sum_j V_ij R / (R + n_j), the share of s_i^2 that R more pulls of each arm resolve
            G     (z, r) = 1 - int_0^p exp(-z^2 / (2 cos^2 x)) dx / pi, p = arccos sqrt(r): 1 - 2 T of `potential`
phi         mean of G(z_i, r_i) over arms; one more pull of an arm is a larger share of its own wherever it counts. A
            margin that is the same in all worlds is SURE sds from 0.
departures  Where arms may change places, the order of m decides on their z, and equal arms share their numbers. Of a
            local problem all arms have the same z.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..kernels.checks import Floats, Ints
from ..kernels.compiled import lean
from ..kernels.rng import normal_quantiles, orders, root_key
from .lookahead import BELIEFS, TIED, WIDEST, Lookahead, read
from .normal import unit_points
from .own import defined
from .potential import SAMPLED, Potential

WORLDS, MOVED, MOST = 32, 8, 2**21  # worlds; how many of them move; means that `margin` is given at once
SURE, LEAST, TINY, HUGE = 3.0, 1e-9, 1e-200, 1e100  # LEAST: of the largest sd, that of a margin which varies


@lean
def _posteriors(model, scratch, pulls, total, out):
    """Fill out (3, E, K D) with m, sqrt(v) and n."""
    D = len(scratch.place)
    for e in range(len(pulls)):
        read(model, scratch, pulls[e], total[e], scratch.kept)
        for i in range(len(scratch.m)):
            out[0, e, i] = scratch.m[i] + (scratch.place[i % D] if model.shifted else 0.0)
            out[1, e, i], out[2, e, i] = math.sqrt(scratch.v[i]), scratch.n[i // D]


def _between(z: Floats, r: Floats, least: Floats) -> Floats:
    """G(z, r) - G(z, least)."""
    low, high, found = np.arccos(np.sqrt(r)), np.arccos(np.sqrt(least)), np.zeros(np.broadcast_shapes(z.shape, r.shape))
    for u, weight in unit_points(8).T:  # dense at `high`
        found += weight * (1.0 - u) * np.exp(-0.5 * (z / np.cos(high - (high - low) * (1.0 - u) ** 2)) ** 2)
    return 2.0 / math.pi * (high - low) * found


class Sampled(Lookahead):
    """The look-ahead of a task whose problem has no potential of its own; errors say what it is `asked` for."""

    def __init__(self, task: Any, asked: str = "") -> None:
        super().__init__(task, Potential(SAMPLED))
        self._given, self._problem = (task, asked), task.make_problem()  # type: ignore[assignment]
        self._last: tuple[bytes, Any] = b"", None
        self._moves = np.ones((1, task.K)) if self._problem.local else np.eye(task.K)  # (J, K): all at once, or one
        columns = np.arange(task.D * (1 if self._problem.local else task.K), dtype=np.uint64)
        dealt = orders(np.repeat(root_key(0)[:, None], len(columns), axis=1), columns, WORLDS).T
        z = normal_quantiles((dealt + 0.5) / WORLDS).reshape(WORLDS, -1, task.D) + np.zeros((task.K, 1))
        moved = z[:MOVED] - self._moves[:, None, :, None] * np.where(z[:MOVED] > 0.0, 1.0, -1.0)
        self._z = np.concatenate([z, moved.reshape(-1, task.K, task.D)])  # (WORLDS + J MOVED, K, D)
        none = np.zeros((1, task.K), np.int64), np.zeros((1, task.K, task.D)[: 2 + (task.D > 1)])
        if task.support is not None and not self._all_judged(*none)[0][..., 5].any():
            text = f"{asked} needs a problem with margins that change with the means, or with a potential of its own:"
            raise ValueError(f"{text} those of {self._problem!r:.200} are the same in all {WORLDS} worlds")

    def _all_judged(self, pulls: Ints, total: Floats, left: Floats | None = None) -> tuple[Floats, Floats]:
        """`_judged` of all episodes. What was asked last is kept: a step pays for what the one before has shown."""
        R = np.maximum(self._given[0].scale - pulls.sum(-1), 0.0) / self.K if left is None else left
        key, step = b"".join(x.tobytes() for x in (pulls, total, R)), max(MOST // self._z.size, 1)
        if key != self._last[0]:
            given: Any = *self._seen(pulls, total)[2:], R
            found = [self._judged(*(x[i : i + step] for x in given)) for i in range(0, len(pulls), step)]
            self._last = key, tuple(map(np.concatenate, zip(*found, strict=True)))
        return self._last[1]  # type: ignore[no-any-return]

    def _judged(self, pulls: Ints, total: Floats, R: Floats) -> tuple[Floats, Floats]:
        """Of each arm (E, K, 6) d, s, the sd due to itself, n, what phi gains by its next pull, whether d varies.

        And (E, K + 2): the gain of one more pull of each arm, that of stopping, and phi(R).
        """
        (E, K), D, problem = pulls.shape, self.D, self._problem
        out, order = np.empty((3, E, K, D)), np.tile(np.arange(K), (E, 1))
        _posteriors(self._model, self._scratch, pulls, total, out.reshape(3, E, -1))
        if mixed := problem.any_order and not problem.local:
            order = np.lexsort((out[2, ..., 0], *np.moveaxis(out[0], -1, 0)), axis=-1)
        m, sd, n = (np.take_along_axis(x, order[..., None], axis=1) for x in out)
        worlds = np.clip(m[:, None] + sd[:, None] * self._z, *(self._given[0].support or (-np.inf, np.inf)))
        worlds, n = worlds.reshape(-1, *(K, D)[: 1 + (D > 1)]), n[..., 0]
        x = defined(problem, "margin", (len(worlds), K), worlds, "iuf").clip(-HUGE, HUGE).reshape(E, -1, K)
        V = ((x[:, WORLDS:].reshape(E, -1, MOVED, K) - x[:, None, :MOVED]) ** 2).mean(axis=2)  # (E, J, K): V_ij at j, i
        beyond = x[:, :WORLDS] - x[:, :1]  # 0 where all are the same
        d, s, most = x[:, 0] + beyond.mean(axis=1), (s := beyond.std(axis=1)), s.max(axis=-1, keepdims=True)
        varies, most = s > LEAST * most, np.where(most > 0.0, most, 1.0)
        d, s = np.where(varies, d, np.copysign(SURE * most, d)), np.where(varies, s, most)
        V = V + TINY * self._moves  # of an arm that does not vary, its own
        V /= V.sum(axis=1, keepdims=True)
        z, R, alone = ((np.abs(d) + problem.tolerance) / s)[:, None], R[:, None, None], len(V[0]) < K
        each, later = n[:, None] if alone else n[..., None], np.maximum(R - 1.0 / K, 0.0)
        r, more = V * (later / (later + each)), V * ((later + 1.0) / (later + 1.0 + each))
        rest, now = r.sum(axis=1, keepdims=True), (V * (R / (R + each))).sum(axis=1, keepdims=True)
        gains = _between(z, rest - r + more, rest) / K
        gains, own = (gains[:, 0], V[:, 0]) if alone else (gains.sum(axis=2), np.diagonal(V, axis1=1, axis2=2))
        then, end, now = (1.0 - _between(z, 0.0 * x + 1.0, x).mean(axis=-1) for x in (rest, 0.0 * now, now))
        found = np.stack([d, s, s * np.sqrt(own), n, gains, varies], axis=-1)
        if mixed:
            near = (np.abs(m[:, None] - m[:, :, None]) <= TIED * sd[:, :, None]).all(axis=-1)
            alike = (near & (n[:, None] == n[..., None]))[..., None]
            found = (alike * found[:, None]).sum(axis=2) / alike.sum(axis=2)
        found[np.arange(E)[:, None], order] = found.copy()
        return found, np.hstack([found[..., 4] + then - now, end - now, now])

    def value(self, pulls: Ints, total: Floats, left: Floats | None = None) -> Floats:
        return self._all_judged(pulls, total, left)[1][:, -1].copy()

    def gain(self, pulls: Ints, total: Floats, arms: Ints, skipped: Any, out: Floats, kept: Any = None) -> None:
        paid = (skipped == 0) & (arms >= 0) & (arms <= self.K)
        out[:] = np.where(paid, self._all_judged(pulls, total)[1][np.arange(len(arms)), np.where(paid, arms, 0)], 0.0)

    def beliefs(self, pulls: Ints, total: Floats) -> Floats:
        """(E, K, 4): the mean d of the margin over the worlds, its sd, the part of it due to the arm itself, and n."""
        return self._all_judged(pulls, total)[0][..., :4].copy()

    def view(self, pulls: Ints, total: Floats, seen: Any = None, ranked: bool = False) -> tuple[Any, Ints]:
        d, s, own, n, g, _ = np.moveaxis(self._all_judged(pulls, total)[0], -1, 0)
        order = np.argsort(np.abs(d) / s if ranked else np.zeros_like(d), axis=-1, kind="stable")
        if self._given[0].observation not in BELIEFS:
            return self.in_order(seen, order), order
        T, left = self._given[0].scale, np.maximum(self._given[0].scale - pulls.sum(axis=-1, keepdims=True), 0.0)
        usual, u = math.log(T / self.K), np.sqrt((d * d + s * s).mean(axis=-1, keepdims=True))
        far, gain = d / s, np.log(np.maximum(g, 1e-300) / np.maximum(g.max(axis=-1, keepdims=True), 1e-300))
        soft = far / np.sqrt(1.0 + np.abs(far)), gain / np.sqrt(1.0 - gain)
        arms = np.stack([*soft, 0.5 * (np.log(n) - usual), d / u, s / u, own / s], axis=-1)
        arms = np.take_along_axis(arms, order[..., None], axis=1).reshape(len(d), -1)
        sizes = [0.5 * usual - 1.0, 0.5 * math.log(0.1 * self.K)] * np.ones_like(left)
        shown = np.hstack([arms, 2.0 * left / T - 1.0, 0.5 * np.log1p(left / self.K) - 1.0, sizes])
        return np.clip(shown, -WIDEST, WIDEST).astype(np.float32), order
