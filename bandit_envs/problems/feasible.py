"""Feasible arms: all arms whose mean vector lies in a polyhedron. Katz-Samuels & Scott, ICML 2018."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..instances.instance import Instance, Sampler
from ..kernels.checks import Floats, array, flag, number
from ..kernels.geometry import Polyhedron, margin_of, scratch_size, unpacked
from ..kernels.routines import carray
from ..stopping import BOUNDED, DISTRIBUTION, GAUSSIAN, STUDENT, Certifier
from .base import Measure, Pointer, SetProblem, TaskLike
from .feasible_measures import hardness, hardness_2
from .potential import LOCAL, Potential


def _measure(pulls: Pointer, mean: Pointer, K: int, numbers: Pointer, out: Pointer) -> None:
    """`distances` as a routine; numbers: `Polyhedron.numbers`."""
    shape = carray(numbers, 2)
    D, M = np.int64(shape[0]), np.int64(shape[1])
    T, x, margins, given = carray(pulls, K), carray(mean, (K, D)), carray(out, K), carray(numbers, (M + 2) * (D + 2))
    scratch, unseen = np.empty(D + scratch_size(D, M)), False
    for k in range(K):
        unseen |= T[k] == 0
    polyhedron = unpacked(given)
    for k in range(K):
        margins[k] = 0.0 if unseen else margin_of(x[k], polyhedron, scratch[D:], scratch[:D])


def _limit(row: Sequence[float], end: float, unit: str) -> str:
    """A constraint of a polyhedron, row x <= end; general ones with at most four digits of each number."""
    terms = [(d, x) for d, x in enumerate(row, 1) if x]
    if len(terms) == 1:
        ((d, x),) = terms
        return f"a value {d} of {end / x + 0.0:.15g}{unit} or {'less' if x > 0 else 'more'}"
    first, *others = (f"{x:.4g}" if abs(x) < 10_000 else f"{x:.15g}" for x in (end, *(x for _, x in terms)))
    total = " + ".join(f"{x} x value {d}" for x, (d, _) in zip(others, terms, strict=True)).replace("+ -", "- ") or "0"
    about = "about " * ([*map(float, (first, *others))] != [end, *(x for _, x in terms)])
    return f"{total} of {about}{first}{unit} or less"


class Feasible(SetProblem):
    """All arms whose mean lies in {x : Ax <= b}.

    Args:
        A, b: (M, D) and (M,): the constraints.
        tolerance: arms closer than this to the boundary may be answered either way, >= 0.
        normalise: scale the rows of A to norm 1, so that margins are Euclidean distances.

    The score is 1 - misclassified / K. The paper's loss is 1 where the answer is not `correct`: where it leaves out an
    arm inside, at least the tolerance from the boundary, or holds one further than the tolerance from the polyhedron.
    """

    name, asks = "Feasible", "all arms whose mean vector lies in a polyhedron"
    source = "Katz-Samuels & Scott 2018"
    parameters = {
        "A": 'Matrix of the constraints A x <= b, as "[[1, 0], [0, 1]]".',
        "b": 'Right-hand side of the constraints, as "[0.5, 0.5]".',
        "tolerance": "Arms nearer to the boundary of the polyhedron may be answered either way.",
        "normalise": "Scale the rows of A to norm 1.",
    }
    defaults = {"budget": 200, "A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}
    sampler = {"sampler": {"dimensions": 2}}
    local, any_order = True, True
    polyhedron: Polyhedron

    def __init__(self, A: ArrayLike, b: ArrayLike, tolerance: float = 0.0, normalise: bool = True) -> None:
        self.A, self.b = array("A", A).tolist(), array("b", b).tolist()
        self.tolerance, self.normalise = number("tolerance", tolerance, 0), flag("normalise", normalise)
        self.polyhedron = Polyhedron(self.A, self.b, normalise=self.normalise)

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        wanted = len(self.A[0])
        if wanted != task.D:
            raise ValueError(f"A has {wanted} columns, so {self.name} needs arms of {wanted} dimensions, got {task.D}")

    def in_words(self, which: str, nouns: str, unit: str = "", minimize: bool = False) -> str:
        limits = ", and ".join(_limit(row, end, unit) for row, end in zip(self.A, self.b, strict=True))
        near = f" Those nearer than {self.tolerance:.15g} to a limit may be put on either side."
        return f"{which} have, on average, {limits}?" + near * (self.tolerance > 0)

    def margin(self, means: ArrayLike) -> Floats:
        """Signed distance from the boundary of the polyhedron; arms of one dimension have no last axis."""
        points = np.asarray(means, np.float64)
        return self.polyhedron.margin(points[..., None] if len(self.A[0]) == 1 else points)

    def distance_routine(self) -> Measure:
        return Measure.of(_measure, *self.polyhedron.numbers)

    def potential(self) -> Potential:
        return Potential(LOCAL, self.polyhedron.A, self.polyhedron.b, self.tolerance)

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier | None:
        D, M, distribution = len(self.A[0]), len(self.A), numbers[DISTRIBUTION]
        if search == "exact" and (distribution != GAUSSIAN and self.tolerance > 0 or distribution == STUDENT and D > 1):
            text = f"{self.name} has exact evidence for distribution='gaussian', for 'bernoulli' where tolerance=0,"
            raise ValueError(f"{text} and for 'student' in one dimension, got {self!r:.200}; certificates need none")
        if distribution == BOUNDED and (np.count_nonzero(self.A, axis=1) > 1).any():
            text = f"{self.name} has distribution='bounded' for bounds of single coordinates,"
            raise ValueError(f"{text} got {self!r:.200}")
        outer, (smaller, some) = self.polyhedron.numbers, self._moved_inwards()
        scratch = 2 * D + M + int(scratch_size(D, M))
        return Certifier.of("polyhedron", K, numbers, self.tolerance, some, *outer, *smaller.numbers, scratch=scratch)

    def _moved_inwards(self) -> tuple[Polyhedron, bool]:
        """A polyhedron that holds all means as deep in it as the tolerance, and whether there may be any.

        Where these have no volume, or next to none, it is a larger one, by which less is certified.
        """
        for part in (1.0, 1.0 - 1e-6) if self.tolerance > 0 else ():
            try:
                return Polyhedron(self.polyhedron.A, self.polyhedron.b - part * self.tolerance, normalise=False), True
            except ValueError as error:
                empty = " is empty" in str(error)
        return self.polyhedron, self.tolerance == 0 or not empty

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """`margins`, |margin| + tolerance of each arm (K,), and `H`, `H_2` of them (`problems.feasible_measures`)."""
        margins = np.abs(self.margin(means)) + self.tolerance
        return {"margins": margins, "H": hardness(margins), "H_2": hardness_2(margins)}
