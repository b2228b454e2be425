"""Distance to, and projection on, a polyhedron {x : Ax <= b}: the geometry of the feasible-arms problem.

Half-spaces, boxes and the simplex {x >= 0, sum x <= s} have closed forms. Any other polyhedron is projected on by the
dual active-set method of Goldfarb & Idnani (Mathematical Programming 27, 1983), specialised to the identity Hessian:
from y = x, the most violated row joins the active ones, y staying the projection of x on the intersection of their
half-spaces; rows whose multiplier would turn negative leave.

symbols     a_p unit normal of the joining row, z its part orthogonal to the active rows, w its coordinates in them
departures  D1 the active rows are kept as Q'R, Q orthonormal: their Gram matrix would square the condition number
            D2 a row with |z| <= TINY is dependent on the active ones: one of them leaves before y moves
            D3 a row violated by no more than the rounding error of y counts as satisfied
            D4 ties go to the lowest index; a point undecided after STEPS (M + D) steps, which rounding alone could
               bring about, is left to SciPy's non-negative least squares
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .checks import Bools, Floats, array, flag, require
from .compiled import inlined, part, view
from .structs import kernel

GENERAL, HALF_SPACE, BOX, UNIT_BOX, SIMPLEX = range(5)  # UNIT_BOX: a box whose rows have norm 1
TINY = 1e-12  # a length that is rounding error beside unit normals
ROUNDING = 4 * 2.0**-52  # relative error allowed to y
UNDECIDED = -np.inf  # in place of a margin
STEPS = 20  # step limit of the active-set method, per row and dimension
THIN = 1e-9  # inscribed radius, relative to max |b|, below which a volume counts as zero


class Shape(NamedTuple):
    """A polyhedron as kernels take it."""

    rows: Floats  # (D, M)
    b: Floats  # (M,)
    unit: Floats  # (M,)
    bounds: Floats  # (2, D)
    kind: int
    limit: int  # steps


@inlined
def _slacks(x: Floats, rows: Floats, b: Floats, slack: Floats):
    """Fill slack (M,) with b - A x; the smallest, NaN where x is not finite. `rows` is A transposed, (D, M)."""
    D, M = rows.shape
    least, nothing = np.inf, 0.0
    for j in range(M):
        slack[j] = 0.0
    for d in range(D):
        nothing += 0.0 * x[d]
        for j in range(M):
            slack[j] += rows[d, j] * x[d]
    for j in range(M):
        slack[j] = b[j] - slack[j]
        least = min(least, slack[j])
    return least + nothing


@inlined
def _box_slack(x: Floats, bounds: Floats):
    """The smallest of b - A x for a box whose rows have norm 1, NaN where x is not finite."""
    least, nothing = np.inf, 0.0
    for d in range(len(x)):
        nothing += 0.0 * x[d]
        least = min(least, bounds[1, d] - x[d], x[d] - bounds[0, d])
    return least + nothing


@inlined
def _drop(i: int, n: int, multiplier: Floats, R: Floats, Q: Floats):
    """Take row i out of the n active ones; column n of R moves along, and the freed direction is left in Q[n - 1]."""
    for k in range(i, n - 1):
        multiplier[k] = multiplier[k + 1]
    for k in range(n):
        for j in range(i, n):
            R[k, j] = R[k, j + 1]
    for k in range(i, n - 1):  # rotate rows k and k + 1, so that R is triangular again
        length = np.hypot(R[k, k], R[k + 1, k])
        c, s = R[k, k] / length, R[k + 1, k] / length
        for j in range(k, n):
            R[k, j], R[k + 1, j] = c * R[k, j] + s * R[k + 1, j], c * R[k + 1, j] - s * R[k, j]
        for d in range(Q.shape[1]):
            Q[k, d], Q[k + 1, d] = c * Q[k, d] + s * Q[k + 1, d], c * Q[k + 1, d] - s * Q[k, d]


@inlined
def _active_set(x: Floats, shape: Shape, y: Floats, slack: Floats, work: tuple[Floats, Floats, Floats, Floats]):
    """Project x, slack being b - A x, onto y; False if undecided after `limit` steps. [Goldfarb & Idnani 1983, sec. 3]

    Of the n active rows, Q[:n] is an orthonormal basis and R[:n, :n] the coordinates in it; z is in Q[n], its norm
    squared in zz, and a_p - z in R[:n, n].
    """
    (rows, b, unit, _, _, limit), (multiplier, w, R, Q) = shape, work
    D, M = rows.shape
    n, solved = 0, False
    for d in range(D):
        y[d] = x[d]
    for _ in range(limit):
        worst, p, size = 0.0, -1, 0.0  # step 1: the most violated row
        for j in range(M):
            if -slack[j] * unit[j] > worst:
                worst, p = -slack[j] * unit[j], j
        for d in range(D):
            size += abs(x[d]) + abs(y[d])
        if worst <= ROUNDING * size:  # D3
            solved = True
            break

        for d in range(D):  # step 2a: z and w
            Q[n, d] = rows[d, p] * unit[p]
        for i in range(n):
            R[i, n] = 0.0
        before, zz = 4.0, 1.0
        while n > 0 and TINY * TINY < zz < 0.5 * before:  # Gram-Schmidt, again where much has cancelled
            before, zz = zz, 0.0
            for i in range(n):
                dot = 0.0
                for d in range(D):
                    dot += Q[i, d] * Q[n, d]
                R[i, n] += dot
                for d in range(D):
                    Q[n, d] -= dot * Q[i, d]
            for d in range(D):
                zz += Q[n, d] * Q[n, d]

        joining, leaving, t = 0.0, 0, 0.0  # the multiplier of row p
        while leaving >= 0:
            for i in range(n - 1, -1, -1):
                dot = R[i, n]
                for k in range(i + 1, n):
                    dot -= R[i, k] * w[k]
                w[i] = dot / R[i, i]
            independent = n < D and zz > TINY * TINY  # D2
            t, leaving = worst / zz if independent else np.inf, -1  # step 2b: the length of the step
            for i in range(n):
                if w[i] > TINY and multiplier[i] < t * w[i]:
                    t, leaving = multiplier[i] / w[i], i
            if t == np.inf:
                break
            joining += t  # step 2c: take it
            for i in range(n):
                multiplier[i] = max(0.0, multiplier[i] - t * w[i])
            if independent:
                worst -= t * zz
                for d in range(D):
                    y[d] -= t * Q[n, d]
            if leaving >= 0:
                _drop(leaving, n, multiplier, R, Q)
                n -= 1
                zz += R[n, n] * R[n, n]
                for d in range(D):
                    Q[n, d] = Q[n + 1, d] + R[n, n] * Q[n, d]
        if t == np.inf:
            break
        multiplier[n], R[n, n] = joining, np.sqrt(zz)
        for d in range(D):
            Q[n, d] /= R[n, n]
        n += 1
        _slacks(y, rows, b, slack)
    return solved


@inlined
def scratch_size(D, M):
    """How many floats `margin_of` needs as scratch, in D dimensions and with M rows."""
    return M + 2 * (D + 1) + (D + 1) * (D + 1) + (D + 1) * D


@part
def margin_of(x: Floats, shape: Shape, scratch: Floats, y: Floats):
    """The margin of x (D,), and its projection in y; UNDECIDED where the active-set method has come to no end."""
    rows, b, unit, bounds, kind, _ = shape
    D, M = rows.shape
    slack, used = scratch[:M], M
    margin = _box_slack(x, bounds) if kind == UNIT_BOX else _slacks(x, rows, b, slack)
    if not margin < 0.0:
        for d in range(D):
            y[d] = x[d] if margin >= 0.0 else np.nan
        return margin
    distance, square = 0.0, 0.0  # never less than the largest violation, so never lost in rounding
    if kind == UNIT_BOX:
        distance = -margin
    else:
        for j in range(M):
            distance = max(distance, -slack[j] * unit[j])
    if kind == GENERAL:
        multiplier, w, used = scratch[used : used + D + 1], scratch[used + D + 1 : used + 2 * D + 2], used + 2 * D + 2
        R, used = scratch[used : used + (D + 1) * (D + 1)].reshape(D + 1, D + 1), used + (D + 1) * (D + 1)
        Q = scratch[used : used + (D + 1) * D].reshape(D + 1, D)
        if not _active_set(x, shape, y, slack, (multiplier, w, R, Q)):
            return UNDECIDED
    elif kind == HALF_SPACE:
        for d in range(D):
            y[d] = x[d] - distance * (rows[d, 0] * unit[0])
    else:
        shift, total = 0.0, 0.0
        if kind == SIMPLEX:  # y = max(x - shift, 0) of sum s; each pass leaves out coordinates that turn 0
            for d in range(D):
                total += max(x[d], 0.0)
            before, count = -1, 0
            while total > bounds[1, 0] and count != before:
                before, count, total = count, 0, 0.0
                for d in range(D):
                    if x[d] >= shift:
                        total += x[d]
                        count += 1
                shift = (total - bounds[1, 0]) / count
        for d in range(D):
            y[d] = min(max(x[d] - shift, bounds[0, d]), bounds[1, d])
    for d in range(D):
        square += (x[d] - y[d]) * (x[d] - y[d])
    return -max(distance, np.sqrt(square))


@kernel(arrays=True)
def _measure(points: Floats, start: int, shape: Shape, margins: Floats, nearest: Floats):
    """Margins (N,) and projections of points[start:]; the first point left undecided, -1 if there is none.

    `nearest` may be shorter than `points`: its last row is then overwritten by point after point.
    """
    scratch = np.empty(scratch_size(*shape.rows.shape))
    for i in range(start, len(points)):
        y = nearest[min(i, len(nearest) - 1)]
        margins[i] = margin_of(points[i], shape, scratch, y)
        if margins[i] == UNDECIDED:
            return i
    return -1


@view
def unpacked(numbers):
    """The `Shape` of the numbers (n,) of `Polyhedron.numbers`."""
    D, M = np.int64(numbers[0]), np.int64(numbers[1])
    b, bounds = numbers[4 + D * M :], numbers[4 + (D + 2) * M :]
    rows = numbers[4 : 4 + D * M].reshape(D, M)
    return Shape(rows, b[:M], b[M : 2 * M], bounds.reshape(2, D), int(numbers[2]), int(numbers[3]))


@dataclass(frozen=True, init=False, eq=False)
class Polyhedron:
    """The polyhedron {x : Ax <= b}, of positive volume, with distances and projections for batches of points.

    Points are arrays (..., D) with any leading axes. A point with a NaN or infinite coordinate is in no polyhedron; its
    margin and its projection are NaN.

    Attributes:
        A: rows, (M, D) float64, read-only; of Euclidean norm 1 if `normalise`.
        b: right-hand sides, (M,) float64, read-only; scaled with the rows.
        normalise: whether A and b were scaled, as in section 3 of Katz-Samuels & Scott (2018).
    """

    A: Floats
    b: Floats
    normalise: bool
    _kernel: Shape = field(repr=False)

    def __init__(self, A: ArrayLike, b: ArrayLike, normalise: bool = True) -> None:
        """Rows A (M, D) and right-hand sides b (M,).

        Raises:
            ValueError: for other shapes, values that are not finite, zero rows, an empty polyhedron, zero volume.
            ImportError: if the volume needs a linear program and SciPy is not installed.
        """
        rows, ends = array("A", A), array("b", b)
        if rows.ndim != 2 or rows.size == 0:
            raise ValueError(f"A must have shape (M, D) with M >= 1 and D >= 1, got {rows.shape}: {A!r:.80}")
        if ends.shape != rows.shape[:1]:
            raise ValueError(f"b must have one value per row of A, shape {rows.shape[:1]}, got {ends.shape}")
        for name, x in (("A", rows), ("b", ends)):
            for index in np.argwhere(~np.isfinite(x)).tolist():
                raise ValueError(f"{name} must be finite, got {x[tuple(index)]} at index {index}")
        for j in np.flatnonzero(~rows.any(1)):
            raise ValueError(f"rows of A must not be zero, got {rows[j].tolist()} as row {j}")
        norms = _norms(rows)
        with np.errstate(over="ignore"):
            distances = ends / norms  # of the hyperplanes from the origin
        for j in np.flatnonzero(~np.isfinite(distances)):
            raise ValueError(f"b must not overflow, divided by the norm of its row, got {ends[j]}, {rows[j].tolist()}")
        if normalise:
            rows, ends = rows / norms[:, None], distances
        self.__setstate__((rows, ends, flag("normalise", normalise)))
        self._check_volume()

    def __getstate__(self) -> tuple[Floats, Floats, bool]:
        return self.A, self.b, self.normalise

    def __setstate__(self, state: tuple[Floats, Floats, bool]) -> None:
        A, b, normalise = state
        unit = np.ones(len(b)) if normalise else 1.0 / _norms(A)
        kind, bounds = _closed_form(A, b)
        shape = Shape(np.array(A.T, order="C"), b.copy(), unit, bounds, kind, STEPS * sum(A.shape))
        for x in (A, b):
            x.setflags(write=False)  # not the kernel's copies: it would be compiled a second time for read-only ones
        for name, value in zip(("A", "b", "normalise", "_kernel"), (A, b, normalise, shape), strict=True):
            object.__setattr__(self, name, value)

    def _check_volume(self) -> None:
        """Raise ValueError unless the volume is positive; a linear program decides only where nothing simpler does."""
        unit, (low, high), kind = self._kernel[2:5]
        rows, ends, (M, D) = self.A * unit[:, None], self.b * unit, self.A.shape
        if kind in (BOX, UNIT_BOX, SIMPLEX):
            for d in np.flatnonzero(~(low < high)):
                what = "empty" if low[d] > high[d] else "of zero volume"
                raise ValueError(f"the polyhedron must have positive volume, {low[d]} <= x[{d}] <= {high[d]} is {what}")
        elif not ((ends > 0).all() or (M <= D and np.linalg.matrix_rank(rows) == M)):
            scale = np.abs(ends).max() or 1.0  # find centre and radius <= scale of a ball inside, the largest
            cost, table = np.append(np.zeros(D), -1.0), np.column_stack([rows, np.ones(M)])
            bounds = [(None, None)] * D + [(None, 1.0)]
            close = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
            optimize = require("scipy.optimize", "this polyhedron")
            found = optimize.linprog(cost, table, ends / scale, bounds=bounds, options=close)
            if found.status != 0:
                raise ArithmeticError(f"the linear program for the inscribed ball failed: {found.message}")
            radius = (ends / scale - rows @ found.x[:-1]).min()
            if radius <= THIN:
                what = "empty" if radius < -THIN else "of zero volume"
                text = f"the polyhedron must have positive volume, it is {what}: the largest ball inside"
                raise ValueError(f"{text} has radius {radius * scale:.3g}, which must exceed {THIN} max |b|")

    @property
    def numbers(self) -> Floats:
        """The polyhedron as numbers, for kernels: D, M, the kind, the step limit, then the arrays; see `unpacked`."""
        rows, b, unit, bounds, kind, limit = self._kernel
        return np.concatenate([[*rows.shape, kind, limit], *(part.reshape(-1) for part in (rows, b, unit, bounds))])

    def contains(self, x: ArrayLike) -> Bools:
        """Whether Ax <= b, (..., D) -> (...) bool; the same as margin(x) >= 0."""
        return self.margin(x) >= 0.0

    def margin(self, x: ArrayLike) -> Floats:
        """Signed distance to the boundary, (..., D) -> (...): equations (1)-(2) of Katz-Samuels & Scott (2018).

        Inside min_j (b_j - a_j'x), on the rows of `A` (the distance to the boundary if `normalise`); outside minus the
        Euclidean distance to the polyhedron. The paper's margin adds the tolerance to the absolute value.
        """
        points, shape = self._points(x)
        return self._measure(points, np.empty((1, shape[-1]))).reshape(shape[:-1])

    def project(self, x: ArrayLike) -> Floats:
        """The nearest points of the polyhedron, (..., D) -> (..., D); a point inside is its own projection."""
        points, shape = self._points(x)
        nearest = np.empty(points.shape)
        self._measure(points, nearest)
        return nearest.reshape(shape)

    def _points(self, x: ArrayLike) -> tuple[Floats, tuple[int, ...]]:
        """`x` as an array (N, D) of the one type the kernels are compiled for, and its shape."""
        points = np.asarray(x, np.float64)
        shape, D = points.shape, self.A.shape[1]
        if not shape or shape[-1] != D:
            raise ValueError(f"points must have shape (..., {D}), got {shape}")
        if not points.flags.carray:  # contiguous, aligned and writable
            points = points.copy()
        return points.reshape(-1, D), shape

    def _measure(self, points: Floats, nearest: Floats) -> Floats:
        margins = np.empty(len(points))
        i = _measure.quick(points, 0, self._kernel, margins, nearest)
        while i >= 0:  # D4
            y = nearest[min(i, len(nearest) - 1)] = self._least_distance(points[i])
            margins[i] = -np.linalg.norm(points[i] - y)
            i = _measure.quick(points, i + 1, self._kernel, margins, nearest)
        return margins

    def _least_distance(self, x: Floats) -> Floats:
        """Project x, outside, by non-negative least squares. [Lawson & Hanson 1974, chapter 23, problem LDP]"""
        unit = self._kernel[2]
        rows, excess = self.A * unit[:, None], (self.A @ x - self.b) * unit
        scale = excess.max()
        E, f = np.vstack([-rows.T, excess / scale]), np.append(np.zeros(len(x)), 1.0)
        weights, _ = require("scipy.optimize", "this polyhedron").nnls(E, f)
        r = E @ weights - f  # y - x is the shortest u with -rows u >= excess
        y: Floats = x - scale * r[:-1] / r[-1]
        if not ((self.A @ y - self.b) * unit <= 1e-9 * (np.abs(x).sum() + np.abs(y).sum())).all():
            raise ArithmeticError(f"no projection of {x.tolist()} found: the rows are too close to dependent ones")
        return y


def _norms(rows: Floats) -> Floats:
    """Euclidean norms of the rows, (M,), without overflow."""
    largest = np.abs(rows).max(1)
    norms: Floats = largest * np.sqrt(np.square(rows / largest[:, None]).sum(1))
    return norms


def _closed_form(A: Floats, b: Floats) -> tuple[int, Floats]:
    """The kind of polyhedron, and for boxes and simplices the lowest and highest x, (2, D)."""
    M, D = A.shape
    axis = np.count_nonzero(A, 1) == 1
    bounds = np.tile([[-np.inf], [np.inf]], D)
    for row, end in zip(A[axis], b[axis], strict=True):
        d = int(np.flatnonzero(row)[0])
        side, tighter = (1, min) if row[d] > 0 else (0, max)
        bounds[side, d] = tighter(bounds[side, d], end / row[d])
    if axis.all():
        return UNIT_BOX if (np.abs(A).max(axis=1) == 1.0).all() else BOX, bounds
    if M == 1:
        return HALF_SPACE, bounds
    total, value = A[~axis][0], A[~axis].max()
    if M == D + 1 and axis.sum() == D and value > 0 and (total == value).all() and (bounds[0] == 0).all():
        return SIMPLEX, np.array([np.zeros(D), np.full(D, b[~axis][0] / value)])
    return GENERAL, bounds
