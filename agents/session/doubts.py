"""Warnings, in sentences, about facts of a session that are hardly true, by themselves or given the measurements."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bandit_envs import Task
from bandit_envs.stopping import BOUNDED, DISTRIBUTION

from .fold import State
from .log import FAILED
from .promise import SKIPPED, SKIPPED_ALONE

ENOUGH = 5  # results beyond the first of each arm, from which on it is said that they vary little
LESS = 3.0  # how many times less than the session counts on
ANOTHER = "sigma cannot change in a session: export the results, begin another session"

LEVELS = 9  # of the means that are tried
MANY = 10_000  # arms
STEPS = 40  # halvings, of the smallest difference
WIDE = 0.5  # of the range: where only larger differences can be certified, that is worth a sentence


def doubts(task: Task, delta: float | None, own: Task) -> list[str]:
    """Sentences on facts that go together badly; `own`: the task in the user's own sign."""
    found = []
    if delta is not None and delta > 0.5:
        wrong = f"delta={delta:g} lets more than half of all answers be wrong"
        found.append(f"{wrong}: it is the allowed probability of error")
    if task.budget is not None and task.cost is None and task.budget < task.K:
        found.append(f"a budget of {task.budget} measurements does not reach each of the {task.K} arms once")
    if task.support is None or task.distribution == "gaussian":
        return found
    width = task.support[1] - task.support[0]
    if task.sigma > 0.5 * width * (1.0 + 1e-9):
        known = f"on a range of {width:g}, {width / 2:g} holds for any measurements"
        found.append(f"sigma={task.sigma:g} says nothing: {known}; leave sigma out")
    if needs_no_results(task):
        settings = ", ".join(f"{name}={value}" for name, value in own.parameters.items())
        right = f"right with {settings} for all means " + "from {:g} to {:g}".format(*own.support or ())
        found.append(f"an answer is known that is {right}: nothing is to be measured")
    if task.budget is not None and delta is not None and not task.items and task.cost is None:
        least = smallest_difference(task, task.budget // task.K, delta)
        if least is not None and least > WIDE * width:
            how = f"differences of {least:.2g} or more" if least <= width else "no difference at all"
            found.append(
                f"a budget of {task.budget} is {task.budget // task.K} measurements of each of {task.K} arms: {how}, "
                f"on a range of {width:g}, can be certified with them at delta={delta:g}, however little results vary"
            )
    return found


def rounded(state: State, new: int) -> str | None:
    """A sentence where an agent counts on Gaussian samples of any variances, and one of the last `new` ones repeats."""
    if getattr(state.run.agent, "distribution", None) != "student":
        return None
    results = [(arm, *value.tolist()) for arm, value in state.results if isinstance(value, np.ndarray)]
    seen = set(results[: len(results) - new])
    for arm, *value in results[len(results) - new :]:
        if (arm, *value) in seen:
            value = state.setup.turned(np.array(value)).tolist()
            return (
                f"distribution='student' counts on Gaussian samples, which never repeat: {value} was measured twice of "
                "one arm: where samples are rounded nothing is certified. Give a range or sigma, without it"
            )
        seen.add((arm, *value))
    return None


def about_noise(state: State) -> tuple[str, str] | None:
    """Whether results vary otherwise than the session counts on: "refuted", "waits" or "quiet", and a sentence."""
    task, seen = state.run.task, state.statistics.at(state.active)
    if task.items or state.strata is not None:  # which do not count on it, or test it themselves
        return None
    spare = int(np.maximum(seen.pulls - 1, 0).sum())
    certifier, noise, sigma = state.run.certifier, state.spread, getattr(state.run.agent, "scale", None)
    sigma = sigma if isinstance(sigma, float) else task.sigma
    test = None if certifier is None else certifier.trial(seen.pulls, seen.variance)
    if test is not None:
        known = "half the range counts in its place" if task.support else "nothing is certified by it"
        if test.refuted:
            return "refuted", (
                f"sigma={sigma:g} is refuted: results of one arm vary by about {noise:.3g}; {known}. {ANOTHER} "
                "without sigma, or with one that holds for every arm, and import them there"
            )
        if spare and test.waits:
            return "waits", (
                f"a certificate counts on sigma={sigma:g} once {test.each} results of each arm, and {test.every} "
                f"repeated ones in all, bear it out ({test.fewest} and {test.repeats} so far); until then {known}"
            )
    fixed = task.distribution != "bernoulli"  # a scale that results could make smaller, as bets do by themselves
    fixed &= certifier is None or certifier.numbers[DISTRIBUTION] != BOUNDED
    if spare >= ENOUGH and task.D == 1 and fixed and 0 < noise < sigma / LESS:
        return "quiet", (
            f"results of one arm vary by about {noise:.3g}, and this session counts on {sigma:g}: where a smaller "
            "sigma is known from other measurements, not from these, a session with it is sure sooner. "
            f"{ANOTHER} with it, and import them there"
        )
    return None


def about_failures(state: State) -> list[str]:
    """Sentences on the share of each arm that failed: one where it has no score, one where it counts as a score."""
    results = state.not_undone
    of, found = Counter[int | None](), list[str]()
    for event in results:
        of[event.arm] += event.size
    failed = [(event.arm, np.atleast_1d(event.value)[0] is None) for event in results if event.kind == FAILED]
    promised = SKIPPED_ALONE if state.run.problem.local else SKIPPED
    promised = promised if state.run.takes_gaps and state.certificate else "Nothing is promised of the answer of now"
    skipped = "could not be scored" + f". {promised}" * bool(state.setup.task.items)
    for none, what in ((True, skipped), (False, "failed, and count as scores")):
        counts = Counter(arm for arm, lacks in failed if lacks is none and arm is not None)
        shares = [f"{n} of {of[k]} of {state.names[k]!r:.80} ({n / of[k]:.0%})" for k, n in counts.most_common()]
        if shares:
            found.append(f"{', '.join(shares[:8])}{', ...' * (len(shares) > 8)} {what}")
    return found


def needs_no_results(task: Task) -> bool:
    """Whether one answer, of all arms, none or the first k, is right for all means of two levels that are tried."""
    problem, K = task.make_problem(), task.K
    if task.D > 1 or task.support is None or K > MANY or not type(problem).__module__.startswith("bandit_envs."):
        return False
    tried = np.linspace(*task.support, LEVELS)
    if problem.polyhedron is not None:
        ends = np.clip(problem.polyhedron.b / problem.polyhedron.A[:, 0], *task.support)
        tried = np.unique(np.concatenate([tried, ends, 0.5 * (ends + ends.mean())]))
    high = sorted({1, K // 2, K - 1, K} - {0})  # so many arms have the first of two levels: the first ones, or the last
    first = np.arange(K) < np.array(high)[:, None]
    first = np.concatenate([first, first[:, ::-1]])[:, None]
    pairs = np.stack(np.meshgrid(tried, tried), axis=-1).reshape(-1, 2, 1)
    means = np.where(first, pairs[:, 0], pairs[:, 1]).reshape(-1, K)
    sizes = (0, K) if problem.answer_size is None else (problem.answer_size,)
    try:
        return any(problem.is_correct(np.tile(np.arange(K) < size, (len(means), 1)), means).all() for size in sizes)
    except ValueError:  # some of these means have no answer
        return False


def smallest_difference(task: Task, pulls: int, delta: float) -> float | None:
    """How far two arms, or an arm and the threshold, must be apart to be certified with so many pulls each, at best.

    It is inf where the range leaves none, and None for problems of other kinds than these two.
    """
    problem, certifier = task.make_problem(), task.level_certifier()
    size, boundary = problem.answer_size, problem.boundary
    if certifier is None or task.support is None or task.D > 1 or (size is None) == (boundary is None):
        return None
    low, high = task.support
    middle = (low + high) / 2 if boundary is None else float(boundary)
    inside = np.arange(task.K) < (size or task.K)

    def is_certified(apart: float) -> bool:
        above, counts = 0.5 if boundary is None else 1.0, np.full((1, task.K), pulls, np.int64)
        mean = np.where(inside, middle + above * apart, middle - 0.5 * apart)[None].clip(low, high)
        still, none = np.zeros(mean.shape), np.zeros((*mean.shape, 2))
        return bool(certifier.levels(counts, mean, still, inside[None].astype(np.int8), none)[0] <= delta)

    least, most = 0.0, high - low if boundary is None else high - middle
    if not is_certified(most):
        return np.inf
    for _ in range(STEPS):
        apart = 0.5 * (least + most)
        least, most = (least, apart) if is_certified(apart) else (apart, most)
    return most
