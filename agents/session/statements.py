"""What a session says of its arms with certainty: intervals, claims, a certified answer, a comparison with a control.

Each of these kinds is right at all times with probability 1 - its level, as long as means stay as they are and results
do not depend on each other. So two statements of one arm that contradict each other refute that, with probability
1 - 2 level: `contradictions` says so, before anything else is said.
"""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any

import numpy as np

from bandit_envs import stopping
from bandit_envs.kernels import Bools, Floats, Ints

from .claims import Claim, claimed, few, known_at, numbers_of
from .course import Statistics
from .doubts import about_noise
from .fold import State
from .promise import shares_alone

MOST_COMPARED = 200  # arms whose intervals are held against the answer


def level_of(state: State) -> float:
    """The level of claims and of the comparison: delta, and once more what may have been spent on earlier arms."""
    return min(state.run.level * (1 + state.run.share.owed), 1.0)


def claims_of(state: State) -> list[Claim] | None:
    """The claims about all arms; None where nothing is claimed of single arms."""
    with contextlib.suppress(ValueError):  # which says why
        return claimed(state)
    return None


def is_certified(state: State) -> bool:
    """Whether the answer is right with probability 1 - `level_of`."""
    return (state.certificate or 0.0) >= 1.0 - level_of(state) - 1e-12


def intervals(state: State, single: bool = False) -> Floats:
    """The ends of the intervals of the arms' means, (K, D, 2), a higher value being better; see `Session.arms`."""
    task, run, seen = state.setup.task, state.run, state.seen if state.setup.task.items else state.statistics
    found, there, certifier = np.full((len(seen.pulls), task.D, 2), np.nan), seen.scored > 0, run.certifier
    delta, (low, high) = run.level, task.support or (-math.inf, math.inf)
    if state.blocks or state.strata is not None:  # an arm's mean has the effects of its blocks
        return found
    first, arms = len(state.setup.names), np.arange(len(state.names))[there]
    level = delta / task.D * (np.ones(len(arms)) if single else shares_alone(first, arms, state.setup.reserve))
    if task.items:
        for d, (least, most) in enumerate(task.ranges or ((low, high),) * task.D):
            scores = (seen.scores[there, :, d] - least) / (most - least)
            found[there, d] = least + (most - least) * stopping.column_intervals(scores, seen.pulls[there], level)
        known = there & (seen.pulls >= task.items)
        found[known] = state.statistics.mean[known, :, None]
    elif there.any():
        plain = "gaussian" if task.support is None or task.distribution == "gaussian" else "bounded"
        kinds = [stopping.common(plain, task.sigma, support=task.support or (0.0, 1.0))]
        if certifier is not None and certifier.numbers[stopping.DISTRIBUTION] != stopping.BERNOULLI:
            numbers = numbers_of(certifier, state.statistics.at(state.active), False)[: stopping.COMMON]
            in_doubt = plain == "bounded" and numbers[stopping.DISTRIBUTION] == stopping.GAUSSIAN  # as its sigma is
            kinds = [numbers, *kinds] if in_doubt else [numbers]
        pulls, mean, ends = np.repeat(seen.scored[there], task.D), seen.mean[there].ravel(), []
        for one in kinds:  # what both say, at half the level each
            one[stopping.D_AT], variance = 1, seen.variance[there].ravel()
            if one[stopping.DISTRIBUTION] == stopping.BOUNDED:
                variance = stopping.with_moments(variance[None], seen.moments[there].reshape(1, -1, 2))[0]
            ends.append(stopping.arm_intervals(one, pulls, mean, variance, np.repeat(level / len(kinds), task.D)))
        both = np.max(ends, axis=0)[:, 0], np.min(ends, axis=0)[:, 1]
        found[there] = np.stack(both, axis=1).reshape(-1, task.D, 2)
        found = found if task.distribution == "gaussian" else found.clip(low, high)
    found[np.abs(found) > 1e90] *= math.inf  # a scale that is refuted
    return found


def against_control(state: State) -> tuple[Bools, Bools]:
    """The arms that there are which results of now show to be better than the control, and not to be, (K,) each."""
    strict: Any = copy.copy(state.run.problem)
    strict.tolerance = 0.0
    evidence = strict.arm_evidence(**counts_on(state, state.statistics.at(state.active)))
    evidence[[strict.control, *np.flatnonzero(~known_arms(state))]] = -np.inf
    level = state.run.level * state.run.share.ratio
    better, worse = (stopping.discoveries(evidence[:, side], level) for side in (0, 1))
    better[strict.control] = worse[strict.control] = False
    return better, worse


def known_arms(state: State) -> Bools:
    """The arms that there are of which a claimed scale may be certain, (K,)."""
    assert state.run.certifier is not None
    return known_at(state, few(state.run.certifier, state.statistics.at(state.active)))


def counts_on(state: State, seen: Statistics) -> dict[str, Any]:
    """What a comparison with the control counts on, in the words of `BetterThanControl.comparison`."""
    assert state.run.certifier is not None
    numbers, task = numbers_of(state.run.certifier, seen, True), state.setup.task
    name = next(name for name, code in stopping.CODES.items() if code == numbers[stopping.DISTRIBUTION])
    shape = seen.mean.shape if task.D > 1 else seen.pulls.shape
    known = {"mean": seen.mean.reshape(shape), "variance": seen.variance.reshape(shape), "distribution": name}
    known |= {"support": task.support, "moments": seen.moments.reshape(*shape, 2)} if name == "bounded" else {}
    return {"pulls": seen.pulls, **known, "sigma": math.sqrt(min(numbers[stopping.VARIANCE], 1e199))}


def by_intervals(state: State) -> Ints:
    """Which arms that there are the intervals of all put into the answer (1), out of it (-1), or leave open, (K,)."""
    task, problem, K = state.run.task, state.run.problem, len(state.active)
    found = np.zeros(K, np.int64)
    if task.D > 1 or K > MOST_COMPARED or state.blocks or problem.control_arm is not None or state.certificate is None:
        return found
    given: Any = problem.settings
    leeway = sum(abs(float(given.get(name) or 0.0)) for name in ("tolerance", "epsilon", "slack"))
    low, high = intervals(state)[state.active, 0].T
    if not np.isfinite([low, high]).all():
        return found
    same = np.eye(K, dtype=np.bool_)
    best, worst = (problem.margin(np.where(same, one, other))[same] for one, other in ((high, low), (low, high)))
    found[best < -leeway], found[worst > leeway] = -1, 1
    return found


def contradictions(state: State) -> list[str]:
    """A sentence for each arm of which two things are said that cannot both be, or not be for long."""
    if state.contradicted[0] < state.upto and state.count and not state.setup.task.items:
        state.contradicted = state.upto, _contradictions(state)
    return [*state.contradicted[1]]


def _contradictions(state: State) -> list[str]:
    said: dict[int, list[tuple[int, str]]] = {int(arm): [] for arm in state.active}
    for arm, claim in enumerate(claims_of(state) or ()):
        if arm in said and claim.side:
            how = f"({claim.event}, after {claim.since} results)"
            said[arm].append((claim.side, f"it is {claim.word} for certain {how}"))
    for arm, side in zip(state.active.tolist(), by_intervals(state).tolist(), strict=True):
        where = "above" if side > 0 else "below"
        said[arm] += [(side, f"its interval lies {where} what the answer needs")] if side else []
    if state.control_arm is not None and state.run.certifier is not None:
        for side, mask in zip((1, -1), against_control(state), strict=True):
            word = "better" if side > 0 else "not better"
            for place in np.flatnonzero(mask):
                said[int(state.active[place])].append((side, f"all its results show it to be {word} than the control"))
    answer, certified, found = state.answer(), is_certified(state), list[str]()
    noise = about_noise(state)
    if noise is not None and noise[0] == "refuted" and (certified or any(said.values())):
        scale = noise[1].partition(":")[0]
        found.append(f"{scale}, by which it is said what is certain of the answer and of arms: nothing is promised")
    for arm, ones in said.items():
        inside = 1 if answer[arm] else -1
        kind = "the certified answer" if certified else "the answer of now"
        here = (inside, f"{kind} {'has it' if answer[arm] else 'leaves it out'}")
        sure = [*ones, here] if certified and arm != state.control_arm else ones
        against = next(((a, b) for i, a in enumerate(sure) for b in sure[i + 1 :] if a[0] != b[0]), None)
        if against is not None:
            wrong = "means have changed, or results depend on each other, and nothing is promised"
            wrong = f"with probability {1 - 2 * level_of(state):.4g} at least, {wrong}"
            found.append(f"{state.names[arm]}: {against[0][1]}, and {against[1][1]}. Both cannot be: {wrong}")
        elif ones and ones[0][0] != inside and arm != state.control_arm:
            found.append(f"{state.names[arm]}: {ones[0][1]}, and yet {here[1]}: its last results speak against it")
    return found
