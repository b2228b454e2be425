"""Checks of a user's own problem. They run once, when an environment of the problem is made.

Its methods must return values of the right shape and type. An error that its code raises names the problem.
`bandit_envs.testing.check_problem` tries more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..instances.instance import Instance, Sampler
from ..kernels.checks import LARGEST, Bools, Floats, errors_of, integer, mask, number, numbers
from ..kernels.geometry import UNDECIDED
from ..kernels.rng import ARMS_LIMIT
from .base import Measure, Problem, TaskLike
from .potential import ALL_GOOD, CONTROL, LOCAL, TOP_K, Potential


def check(problem: Problem, task: TaskLike, source: Instance | Sampler | None = None) -> None:
    """`Problem.check` of a task, or of arms."""
    _ask(problem, "check", task, source)
    if task.K < 2 and not problem.local:
        raise ValueError(f"{problem!r:.200} needs 2 arms or more, got {task.K}")


def try_out(problem: Problem, means: Floats, D: int, delta: float = 0.1) -> None:
    """Ask a problem all that the environments and the agents will, of true means (n, K) or (n, K, D), n not K."""
    n, K = shape = means.shape[:2]
    of = f"of {_named(problem)}"
    number(f"tolerance {of}", problem.tolerance, 0, LARGEST)
    if problem.boundary is not None:
        number(f"boundary {of}", problem.boundary, -LARGEST, LARGEST)
    if problem.answer_size is not None:
        integer(f"answer_size {of}", problem.answer_size, 1, ARMS_LIMIT)
    margins = defined(problem, "margin", shape, means, "iuf")
    found = defined(problem, "truth", shape, means)
    if problem.local:
        _check_local(problem, means, margins)
    if problem.boundary is not None and means.ndim == 2:  # compiled code takes mean - boundary for margins
        rule = f"has boundary = {problem.boundary}, from which margins must count; say None, or define both alike"
        _refuse_apart(problem, rule, margins, means - problem.boundary, means)
    _check_measures(problem, means)
    _check_potential(problem, means, margins)
    bound = _ask(problem, "lower_bound", means[0], delta)
    if not isinstance(bound, (float, int, np.floating, np.integer)) or isinstance(bound, bool):
        raise ValueError(f"lower_bound {of} must be a number, or NaN, got {bound!r:.200}")
    answer = _answer(problem, means)
    parts: dict[str, type[np.generic]] = {"correct": np.bool_, "score": np.float64, **problem.metric_types}
    for answers, truth in ((answer, found), (np.tile(answer[:1], (n, 1)), found[:1])):  # or the same arms in all
        _check_parts(problem, "verdict", _ask(problem, "verdict", answers, truth), parts, (n,))
    unseen = means.copy()
    unseen[:, -1] = np.nan
    _answer(problem, unseen)
    numbers(f"margin {of}", _ask(problem, "margin", unseen), shape, "iuf")
    if problem.certificate_names:
        certificate = _ask(problem, "certificate", np.full(shape, 2), means, np.ones_like(means), width=1.0)
        _check_parts(problem, "certificate", certificate, dict.fromkeys(problem.certificate_names, np.float64), (n,))


def _answer(problem: Problem, means: Floats) -> Bools:
    """The plug-in answer, a mask (n, K) with as many arms as an answer has."""
    name, size = f"plug_in of {_named(problem)}", problem.answer_size
    answer = mask(name, _ask(problem, "plug_in", means), means.shape[:2])
    sizes = answer.sum(axis=-1)
    if size is not None and (sizes != size).any():
        raise ValueError(f"{name} must answer {size} arms, got {sizes[sizes != size][0]}")
    return answer


def _refuse_apart(problem: Problem, rule: str, found: Floats, wanted: Floats, means: Floats) -> None:
    """Refuse numbers that differ from the wanted ones by more than rounding, at the same places in the means."""
    if len(places := np.argwhere(~np.isclose(found, wanted, rtol=1e-6, atol=1e-9))):
        i = tuple(places[0])
        raise ValueError(f"{_named(problem)} {rule}: {wanted[i]} of the mean {means[i]}, got {found[i]}")


def _check_measures(problem: Problem, means: Floats) -> None:
    """Refuse a `distance_routine` that gives other distances than `distances`, or than `arm_margin` of single arms."""
    rows = means.reshape(-1, 1, *means.shape[2:]) if problem.local else means
    pulls, name = np.ones(rows.shape[:2], np.int64), f"distance_routine of {_named(problem)}"
    with errors_of(name):
        measure: object = problem.measure
        if not isinstance(measure, Measure | None):
            raise ValueError(f"{name} must return a Measure or None, got {measure!r:.200}")
        found = None if measure is None else measure.tell(pulls, rows)
    if found is None:
        return
    method = "arm_margin" if problem.local else "distances"
    if problem.local:
        wanted = _ask(problem, method, rows[:, 0])[:, None]
        found = np.where(found == UNDECIDED, wanted, found)
    else:
        wanted = _ask(problem, method, pulls, rows.copy(), np.empty(found.shape))
    _refuse_apart(problem, f"must have a distance_routine that gives what {method} does", found, wanted, rows)


def _check_potential(problem: Problem, means: Floats, margins: Floats) -> None:
    """Refuse a potential that is none, or that is of another question than `margin`."""
    x = means[..., None] if means.ndim == 2 else means
    look = potential_of(problem, *x.shape[1:])
    with errors_of(f"potential of {_named(problem)}"):
        inside = margins >= 0 if look is None else _wanted(look, x, x[..., 0])
    inside = np.where(np.abs(margins) > 1e-9, inside, margins >= 0)
    rule = "must have a potential of the arms with margin >= 0 (1: it is one of them)"
    if look is not None and look.kind == CONTROL:  # which is in no answer
        inside[:, look.control] = margins[:, look.control] >= 0
    _refuse_apart(problem, rule, inside.astype(np.float64), (margins >= 0).astype(np.float64), means)


def potential_of(problem: Problem, K: int, D: int) -> Potential | None:
    """The potential of a problem for K arms of D dimensions, or None; a ValueError names what is wrong with it."""
    name = f"potential of {_named(problem)}"
    with errors_of(name):
        look: object = problem.own_potential
    if look is None:
        return None
    if not isinstance(look, Potential) or look.kind not in (LOCAL, TOP_K, ALL_GOOD, CONTROL):
        raise ValueError(f"{name} must return a Potential of a known kind, or None, got {look!r:.200}")
    with errors_of(f"A and b of the {name}"):
        A, b = np.asarray(look.A, np.float64), np.asarray(look.b, np.float64)
    rows = {LOCAL: (max(len(A), 1), D), CONTROL: (1, 1)}.get(look.kind, A.shape)
    if A.shape != rows or look.kind in (LOCAL, CONTROL) and (b.shape != rows[:1] or not A.any(axis=1).all()):
        raise ValueError(
            f"A of the {name} must have the shape {rows}, b {rows[:1]}, no row all 0, got {A!r}, {b!r:.200}"
        )
    if not (np.isfinite(A).all() and np.isfinite(b).all()) or look.exact and A.shape != (1, 1):
        raise ValueError(
            f"{name} must have finite A and b, and exact=True for one row of one dimension, got {look!r:.200}"
        )
    number(f"tolerance of the {name}", look.tolerance, 0, LARGEST)
    if look.kind == TOP_K:
        integer(f"k of the {name}", look.k, 1, K - 1)
    if look.kind == CONTROL:
        integer(f"control of the {name}", look.control, 0, K - 1)
    if look.kind == ALL_GOOD:
        number(f"epsilon of the {name}", look.epsilon, 0, 1 if look.multiplicative else LARGEST, below=True)
    return look._replace(A=A, b=b)


def _wanted(look: Potential, x: Floats, means: Floats) -> Any:
    """The arms (n, K) that a potential wants, of means x (n, K, D)."""
    if look.kind == LOCAL:
        return np.all(x @ look.A.T <= look.b, axis=-1)
    if look.kind == TOP_K:
        return (-means).argsort(axis=1).argsort(axis=1) < look.k
    if look.kind == CONTROL:
        return means >= means[:, [look.control]] * look.A[0, 0] + look.b[0]
    best = means.max(axis=1, keepdims=True)
    return means >= (best * (1.0 - look.epsilon) if look.multiplicative else best - look.epsilon)


def _check_local(problem: Problem, means: Floats, margins: Floats) -> None:
    """Refuse a problem that calls itself local where the margin of an arm is another alone, or among arms like it."""
    K, rule = means.shape[1], "must not say local = True: the margin of an arm depends on the other arms"
    single = means.reshape(-1, *means.shape[2:])
    alone = defined(problem, "arm_margin", (len(single),), single, "iuf")
    _refuse_apart(problem, rule, margins, alone.reshape(margins.shape), means)
    for k in {0, K - 1, int(margins[0].argmin()), int(margins[0].argmax())}:
        alike = defined(problem, "margin", margins.shape, np.repeat(means[:, k : k + 1], K, axis=1), "iuf")
        _refuse_apart(problem, rule, margins[:, k], alike[:, k], means[:, k])


def _named(problem: Problem) -> str:
    return f"the problem {problem.name!r}"


def _ask(problem: Problem, method: str, *arguments: object, **keywords: object) -> Any:
    """What a method returns; its errors name the problem."""
    with errors_of(f"{method} of {_named(problem)}", problem):
        return getattr(problem, method)(*arguments, **keywords)


def defined(problem: Problem, method: str, shape: tuple[int, ...], means: Floats, kinds: str = "biuf") -> Floats:
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
    missing = parts.keys() - value if isinstance(value, Mapping) else parts
    if missing or not isinstance(value, Mapping):
        got = f"one without {', '.join(missing)}" if isinstance(value, Mapping) else repr(value)
        raise ValueError(f"{name} must be a dict of {wanted}, got {got:.200}")
    for part, kind in parts.items():
        x = value[part]
        if not isinstance(x, np.ndarray) or x.shape != shape:
            got = f"shape {x.shape}" if isinstance(x, np.ndarray) else repr(x)
            raise ValueError(f"{part!r} in the {name} must be an array of shape {shape}, got {got:.200}")
        if x.dtype.kind not in "biuf" or not np.can_cast(x.dtype, kind, "same_kind"):
            raise ValueError(f"{part!r} in the {name} must be {np.dtype(kind).name}, got {x.dtype.name}")
        if part == "score" and not np.isfinite(x).all():
            raise ValueError(f"{part!r} in the {name} must be finite, got {x[~np.isfinite(x)][0]}")
