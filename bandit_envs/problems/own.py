"""Checks of a user's own problem. They run once, when an environment of the problem is made.

Its methods must return values of the right shape and type. An error that its code raises names the problem.
`bandit_envs.testing.check_problem` tries more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instances.instance import Instance, Sampler
from ..kernels.checks import LARGEST, errors_of, integer, mask, number, numbers, ours
from ..kernels.geometry import UNDECIDED
from ..kernels.rng import ARMS_LIMIT
from .base import Bools, Floats, Measure, Problem, TaskLike


def check(problem: Problem, task: TaskLike, source: Instance | Sampler | None = None) -> None:
    """`Problem.check` of a task, or of arms."""
    if ours(problem):
        problem.check(task, source)
    else:
        _ask(problem, "check", task, source)


def try_out(problem: Problem, means: Floats, D: int, delta: float = 0.1) -> None:
    """Ask a problem all that the environments and the agents will, of true means (n, K) or (n, K, D), n not K."""
    shape = means.shape[:2]
    _check_attributes(problem)
    margins = _defined(problem, "margin", shape, means, "iuf")
    found = _defined(problem, "truth", shape, means)
    if problem.local:
        single = means.reshape(-1, D) if D > 1 else means.reshape(-1)
        _check_local(problem, means, margins, _defined(problem, "arm_margin", (len(single),), single, "iuf"))
    _check_boundary(problem, means, margins)
    _check_measures(problem, means, margins)
    bound = _ask(problem, "lower_bound", means[0], delta)
    if not isinstance(bound, (float, int, np.floating, np.integer)) or isinstance(bound, bool):
        raise ValueError(f"lower_bound of {_named(problem)} must be a number, or NaN, got {bound!r:.200}")
    answer = _answer(problem, means)
    _verdict(problem, answer, found)
    _verdict(problem, np.tile(answer[:1], (len(means), 1)), found[:1])  # all episodes may have the same arms
    unseen = means.copy()
    unseen[:, -1] = np.nan
    _answer(problem, unseen)
    numbers(f"margin of {_named(problem)}", _ask(problem, "margin", unseen), shape, "iuf")
    if problem.certificate_names:
        certificate = _ask(problem, "certificate", np.full(shape, 2), means, np.ones_like(means), width=1.0)
        _check_parts(
            problem, "certificate", certificate, dict.fromkeys(problem.certificate_names, np.float64), shape[:1]
        )


def _answer(problem: Problem, means: Floats) -> Bools:
    """The plug-in answer, a mask (n, K) with as many arms as an answer has."""
    name, size = f"plug_in of {_named(problem)}", problem.answer_size
    answer = mask(name, _ask(problem, "plug_in", means), means.shape[:2])
    sizes = answer.sum(axis=-1)
    if size is not None and (sizes != size).any():
        raise ValueError(f"{name} must answer {size} arms, got {sizes[sizes != size][0]}")
    return answer


def _verdict(problem: Problem, answer: NDArray[np.generic], truth: Floats) -> None:
    """Check the verdict on answers (n, K): `correct`, `score` and the metrics, (n,) each."""
    parts: dict[str, type[np.generic]] = {"correct": np.bool_, "score": np.float64, **problem.metric_types}
    _check_parts(problem, "verdict", _ask(problem, "verdict", answer, truth), parts, answer.shape[:-1])


def _check_attributes(problem: Problem) -> None:
    """Refuse attributes that are not numbers, where numbers they must be."""
    of = f"of {_named(problem)}"
    number(f"tolerance {of}", problem.tolerance, 0, LARGEST)
    if problem.boundary is not None:
        number(f"boundary {of}", problem.boundary, -LARGEST, LARGEST)
    if problem.answer_size is not None:
        integer(f"answer_size {of}", problem.answer_size, 1, ARMS_LIMIT)


def _first_apart(one: Floats, other: Floats) -> tuple[int, ...] | None:
    """The first place where two arrays differ by more than rounding; None where there is none."""
    places = np.argwhere(~np.isclose(one, other, rtol=1e-6, atol=1e-9))
    return tuple(places[0]) if len(places) else None


def _check_boundary(problem: Problem, means: Floats, margins: Floats) -> None:
    """Refuse a boundary that margins (n, K) are not counted from: compiled code takes mean - boundary for them."""
    if problem.boundary is None or means.ndim > 2:
        return
    if (i := _first_apart(margins, means - problem.boundary)) is not None:
        raise ValueError(
            f"{_named(problem)} has the boundary {problem.boundary}, so that the margin of the mean {means[i]} must be "
            f"{means[i] - problem.boundary}, got {margins[i]}: say boundary = None, or define both alike"
        )


def _check_measures(problem: Problem, means: Floats, margins: Floats) -> None:
    """Refuse a `distance_routine` that gives other distances than `distances`, or than `arm_margin` of single arms."""
    rows = means.reshape(-1, 1, *means.shape[2:]) if problem.local else means
    pulls, name = np.ones(rows.shape[:2], np.int64), f"distance_routine of {_named(problem)}"
    with errors_of(name):
        measure: object = problem.measure
    if measure is None:
        return
    if not isinstance(measure, Measure):
        raise ValueError(f"{name} must return a Measure or None, got {measure!r:.200}")
    with errors_of(name):
        found = measure.tell(pulls, rows)
    if problem.local:
        method, wanted = "arm_margin", _ask(problem, "arm_margin", rows[:, 0])[:, None]
        found = np.where(found == UNDECIDED, wanted, found)
    else:
        method, wanted = "distances", _ask(problem, "distances", pulls, rows.copy(), np.empty(found.shape))
    if (i := _first_apart(found, wanted)) is not None:
        raise ValueError(f"{name} must tell what {method} does, {wanted[i]} for the mean {rows[i]}, got {found[i]}")


def _check_local(problem: Problem, means: Floats, margins: Floats, single: Floats) -> None:
    """Refuse a problem that calls itself local where margins (n, K) depend on other arms; single (n * K,): one by one.

    Each of a few arms must have the same margin alone and among arms that all are like it.
    """
    K, pairs = means.shape[1], [(single.reshape(margins.shape), margins)]
    for k in {0, K - 1, int(margins[0].argmin()), int(margins[0].argmax())}:
        alike = _defined(problem, "margin", margins.shape, np.repeat(means[:, k : k + 1], K, axis=1), "iuf")
        pairs.append((alike[:, k], margins[:, k]))
    for one, other in pairs:
        if (i := _first_apart(one, other)) is not None:
            raise ValueError(
                f"{_named(problem)} must not say local = True: the margin of an arm depends on the other arms, "
                f"{other[i]} among some and {one[i]} without them"
            )


def _named(problem: Problem) -> str:
    return f"the problem {problem.name!r}"


def _ask(problem: Problem, method: str, *arguments: object, **keywords: object) -> Any:
    """What a method returns; its errors name the problem."""
    with errors_of(f"{method} of {_named(problem)}"):
        return getattr(problem, method)(*arguments, **keywords)


def _defined(problem: Problem, method: str, shape: tuple[int, ...], means: Floats, kinds: str = "biuf") -> Floats:
    """What a method returns for true means, where every arm must have a number."""
    name = f"{method} of {_named(problem)}"
    found = numbers(name, _ask(problem, method, means), shape, kinds)
    if np.isnan(found).any():
        where = means[np.isnan(found)]
        raise ValueError(f"{name} must be a number for every true mean, got NaN for the mean {where[0]}")
    return found


def _check_parts(
    problem: Problem, method: str, value: object, parts: Mapping[str, type[np.generic]], shape: tuple[int, ...]
) -> None:
    """Refuse a verdict or a certificate whose named parts are not arrays of their types and of the given shape."""
    name, wanted = f"{method} of {_named(problem)}", ", ".join(parts)
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a dict of {wanted}, got {value!r:.200}")
    if missing := [part for part in parts if part not in value]:
        raise ValueError(f"{name} must be a dict of {wanted}, got one without {', '.join(missing)}")
    for part, kind in parts.items():
        x = value[part]
        if not isinstance(x, np.ndarray) or x.shape != shape:
            got = f"shape {x.shape}" if isinstance(x, np.ndarray) else repr(x)
            raise ValueError(f"{part!r} in the {name} must be an array of shape {shape}, got {got:.200}")
        if x.dtype.kind not in "biuf" or not np.can_cast(x.dtype, kind, "same_kind"):
            raise ValueError(f"{part!r} in the {name} must be {np.dtype(kind).name}, got {x.dtype.name}")
        if part == "score" and not np.isfinite(x).all():
            raise ValueError(f"{part!r} in the {name} must be finite, got {x[~np.isfinite(x)][0]}")
