"""What is already certain of single arms, at the delta of the whole answer: docs/certificates-theory.md has the proof.

Claims are folded over the results in the order in which they count. They rest on the same events as the certificate of
the answer, so that all of them and the answer are right together with probability 1 - delta. Where the results refute a
claimed sigma, they are made again with the known scale, if there is one.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import Task, stopping
from bandit_envs.kernels import Bools, Floats, Ints
from bandit_envs.stopping import Certifier

from .course import Part, Result, Statistics

ALONE, PAIRS = ("threshold", "polyhedron", "margins"), ("top-k", "all-good", "control")  # kinds of certificates
MOST_NAMES = 3  # of arms in a sentence


class Claim(NamedTuple):
    """What is certain of an arm."""

    side: int = 0  # 1: in, -1: out, 0: open
    since: int | None = None  # how many results counted then
    event: str = ""  # what it rests on

    @property
    def word(self) -> str:
        """What is claimed."""
        return ("open", "in", "out")[self.side]


@dataclass
class Claimed:
    """What is claimed in a session."""

    now: Claims | None = None  # of the arms that there are, as far as it was asked for
    before: dict[int, str] = field(default_factory=dict)  # in words, of arms among those of then
    looks: set[int] = field(default_factory=set)  # how many results there were whenever anybody decided: a table is one


def numbers_of(certifier: Certifier, seen: Statistics, certain: bool) -> Floats:
    """The numbers of a certifier: a claimed scale counts where results bear it out, else the known one.

    Where none is known, and the results are too few to bear it out, it counts unless what follows is to be `certain`.
    Then it counts once enough results are repeated, but for arms with `few` results.
    """
    numbers, trial = certifier.numbers.copy(), certifier.trial(seen.pulls, seen.variance)
    waits = trial is not None and (trial.early if certain else trial.waits)
    if trial is not None and (trial.refuted or waits and (certain or numbers[stopping.DOUBT] < math.inf)):
        numbers[[stopping.VARIANCE, stopping.PRIOR]] *= min(numbers[stopping.DOUBT], 1e200)
    numbers[stopping.DOUBT] = 0.0
    return numbers


def few(certifier: Certifier, seen: Statistics) -> int:
    """How many results an arm needs before a claimed scale that counts is certain of it; 1 where none counts."""
    trial = certifier.trial(seen.pulls, seen.variance)
    return 1 if trial is None or trial.refuted or trial.early else trial.each


class Claims:
    """The claims about the arms that there are, (K,), and what they rest on: a function of the results in order."""

    def __init__(self, task: Task, certifier: Certifier, delta: float, least: int = 1) -> None:
        self.least = least  # results of an arm, see `few`
        K, self.certifier, self.numbers, self.need = task.K, certifier, certifier.numbers, math.log(task.K / delta)
        self.count, self.told, self.seen = 0, 0, Statistics.of(task)  # entries of the results, and how many they are
        self.found, known = [Claim()] * K, self.numbers[stopping.COMMON :]
        self.moves, self.needs = np.empty((0, 3)), np.array(certifier.needed(delta))
        if self.certifier.kind == "all-good":
            self.moves, self.needs = known[:6].reshape(2, 3), self.needs[:2]
            self.needs[0] = self.needs[0] if known[0] > 0 else math.inf  # so much slack that no pair says it
        elif self.certifier.kind == "top-k":
            self.moves = np.array([[1.0, -epsilon, -math.inf] for epsilon in sorted({known[1], 0.0}, reverse=True)])
            self.needs = self.needs.repeat(len(self.moves))
        self.kept = np.zeros(K, np.int64), np.zeros(K), np.zeros(3 * K), np.zeros(self.certifier.scratch)
        if self.certifier.kind == "control":
            D = self.certifier.D
            self.kept = self.kept[0], np.zeros((K, D)), np.zeros((3, K, D)), self.kept[3]
        self.first, self.look = np.zeros((len(self.moves), K, K), np.int64), 0

    def take_in(self, results: Sequence[Result], names: Sequence[str], looks: Set[int] | None = None) -> None:
        """Take in further results, of arms by their places among those that there are, named so; -1: of no such arm.

        `looks`: after how many results they may be looked at, None: any. A table may be sorted by its values, so that
        it is taken in whole, arm by arm.
        """
        arms, rows, at, new = list[int](), list[Floats](), list[int](), set[int]()
        for arm, sample in results:
            self.told += sample.n if isinstance(sample, Part) else 1
            self.count += 1
            if arm >= 0:
                self.seen.add(arm, sample)
                new.add(arm)
            if looks is not None and self.count not in looks:
                continue
            for arm in sorted(new):
                mean, variance, moments = self.seen.mean[arm], self.seen.variance[arm], self.seen.moments[arm].T.ravel()
                rows.append(np.concatenate([self.seen.pulls[arm, None], mean, variance, moments]))
                arms.append(arm)
                at.append(self.told)
            new.clear()
        if rows:
            kind = self.certifier.kind
            look = self._alone if kind in ALONE else self._against_control if kind == "control" else self._pairs
            look(np.array(arms), np.array(rows), np.array(at), names)

    def _alone(self, arms: Ints, shown: Floats, at: Ints, _: Sequence[str]) -> None:
        """Where each arm counts by itself: the certificate of an answer of this arm, at its share of delta."""
        known = shown[:, 0] >= self.least
        arms, shown, at = arms[known], shown[known], at[known]
        lead = (len(arms), 1) if self.certifier.D == 1 else (len(arms), 1, self.certifier.D)
        mean, variance, *moments = (part.reshape(lead).copy() for part in np.split(shown[:, 1:], 4, axis=1))
        pulls, inside = shown[:, :1].astype(np.int64, order="C"), np.full((len(arms), 1), -1, np.int8)
        one = self.certifier._replace(K=1)
        value = one.alternatives(pulls, mean, variance, inside, np.stack(moments, axis=-1))[:, 0]
        for n in np.flatnonzero(value >= self.need):
            self._claim(arms[n], 1 if inside[n, 0] else -1, at[n], "its own results, at its share of delta")

    def _against_control(self, arms: Ints, shown: Floats, at: Ints, names: Sequence[str]) -> None:
        """Against a control: the two tests of each arm, at its share of delta, at results of fixed numbers."""
        D, name, need = self.certifier.D, names[int(self.numbers[stopping.COMMON])], self.needs[0]
        pulls, mean, variance, _ = self.kept
        for arm, row, now in zip(arms, shown, at, strict=True):
            several = row[0] > pulls[arm] + 1  # a count
            pulls[arm], mean[arm], variance[:, arm] = row[0], row[1 : 1 + D], row[1 + D :].reshape(3, D)
            if now < self.look and not several:
                continue
            self.look = now + max(1, now // 200)
            seen = variance if self.numbers[stopping.DISTRIBUTION] == stopping.BOUNDED else variance[:1]
            found = stopping.sides(self.certifier, pulls[None], mean[None], seen.reshape(1, -1))[0]
            known = np.isfinite(found[:, 0]) & (pulls >= self.least)
            known &= pulls[int(self.numbers[stopping.COMMON])] >= self.least
            for one in np.flatnonzero((found >= need).any(axis=1) & known):
                side = 1 if found[one, 0] >= need and found[one, 0] > found[one, 1] else -1
                within = ", or within the tolerance" * bool(self.numbers[stopping.TOLERANCE_AT] > 0)
                by = " by the margin" * (tuple(self.numbers[-2:]) != (1.0, 0.0) or D > 1)
                self._claim(one, side, now, f"{'not ' * (side < 0)}better than {name}{by}{within}")

    def _pairs(self, arms: Ints, shown: Floats, at: Ints, names: Sequence[str]) -> None:
        """Where arms are compared: what follows from all pairs that have ever been certified."""
        before, first, K = self.first.max(), self.first, len(names)
        stopping.certified_pairs(self.numbers, self.moves, self.needs, arms, shown, at, *self.kept, first, self.least)
        k, epsilon, within = int(self.numbers[stopping.COMMON]), self.numbers[stopping.COMMON + 1], ""
        for now in np.unique(first[first > before]):
            over = (first > 0) & (first <= now)
            if self.certifier.kind == "all-good":
                inside, outside, within = over[0].sum(axis=1) == K - 1, over[1].any(axis=0), ", or not much worse"
            elif len(over) == 1:
                inside, outside = of_best(over[0], k)
            else:
                inside, outside = over[0].sum(axis=1) >= K - k, over[1].sum(axis=0) >= k
                inside, within = inside | (outside.sum() == K - k), f", or at most {epsilon:g} worse"
            for arm in np.flatnonzero(inside | outside):
                better, worse = (_listed(np.flatnonzero(one), names) for one in (over[-1][:, arm], over[0][arm]))
                said = f"worse than {better}" if outside[arm] else f"better{within} than {worse}"
                self._claim(arm, -1 if outside[arm] else 1, now, said)

    def _claim(self, arm: Any, side: int, since: Any, event: str) -> None:
        """Claim something of an arm, unless something is claimed of it: a claim stays."""
        if not self.found[arm].side:
            self.found[arm] = Claim(side, int(since), event)


def of_best(over: Bools, k: int) -> tuple[Bools, Bools]:
    """The arms that are certainly among the k best and certainly not, (K,) each, of the certified pairs `over` (K, K).

    All pairs of b, the last of the best k, are right, with probability 1 - delta. Nobody knows b: what holds for each
    arm that could be b is certain.
    """
    K, same = len(over), np.eye(len(over), dtype=np.bool_)
    above, below = over.sum(axis=0), over.sum(axis=1)  # certainly better arms, and worse ones
    last = (above < k) & (below <= K - k) & ~(over & over.T).any(axis=1)
    inside = over | same | ((below == K - k) & ~over.T)  # of arm i, if b is the last
    outside = over.T | ((above == k - 1) & ~over & ~same)
    return inside[:, last].all(axis=1) & last.any(), outside[:, last].all(axis=1) & last.any()


def _listed(arms: Ints, names: Sequence[str]) -> str:
    """The names of some arms."""
    more = f" and {len(arms) - MOST_NAMES} more" if len(arms) > MOST_NAMES else ""
    return (", ".join(names[arm] for arm in arms[:MOST_NAMES]) or "all that could be") + more


def known_at(state: Any, least: int) -> Bools:
    """The arms that there are which have so many results, (K,), beside a control that has."""
    pulls: Ints = state.statistics.pulls[state.active]
    control = state.run.problem.control_arm
    return np.asarray((pulls if control is None else np.minimum(pulls, pulls[control])) >= least)


def found_now(state: Any) -> list[Claim]:
    """The arms that are found at the rate of false discoveries, of all that there are, by the results of now."""
    run, seen = state.run, state.statistics.at(state.active)
    if state.strata is not None:
        raise ValueError("within days or plates a rate of false discoveries is that of comparison('fdr')")
    if run.delta is None or run.certifier is None or run.certifier.kind not in stopping.SIDED:
        raise ValueError("a rate of false discoveries needs a delta, and Threshold, AllGood or BetterThanControl")
    if run.certifier.numbers[stopping.BOUNDARY] == stopping.KAUFMANN:
        raise ValueError("a rate of false discoveries needs boundary='mixture', got boundary='kaufmann-koolen'")
    numbers, variance = numbers_of(run.certifier, seen, True), seen.variance[None]
    if numbers[stopping.DISTRIBUTION] == stopping.BOUNDED:
        variance = stopping.with_moments(variance, seen.moments[None])
    evidence = stopping.sides(run.certifier._replace(numbers=numbers), seen.pulls[None], seen.mean[None], variance)
    known = known_at(state, few(run.certifier, seen))
    over = stopping.discoveries(np.where(known, evidence[0, :, 0], -math.inf), run.delta * run.share.ratio, "fdr")
    found = [Claim(event="withdrawn") for _ in state.names]
    for place, arm in enumerate(state.active):
        found[arm] = Claim(int(over[place]), None, "of those in now, few are wrong on average" if over[place] else "")
    return found


def claimed(state: Any) -> list[Claim]:
    """The claims about all arms that there have ever been; a ValueError says why there are none."""
    run, problem, names = state.run, state.run.problem, [state.names[arm] for arm in state.active]
    if run.delta is None:
        raise ValueError("claims need a delta, and this session has none")
    found = [Claim(event="withdrawn") for _ in state.names]
    if state.strata is not None:
        for place, arm in enumerate(state.active):
            found[arm] = run.claim(place)
        return with_former(state, found)
    known = {"criterion": "", "epsilon": 0.0, **run.task.parameters}
    if known["criterion"] == "aggregate" and known["epsilon"] > 0 and problem.answer_size != 1:
        raise ValueError("criterion='aggregate' with an epsilon claims nothing of single arms; criterion='each' does")
    certainty, certifier = state.certificate, run.certifier
    if certifier is None or certainty is None or certifier.kind not in (*ALONE, *PAIRS):
        raise ValueError("nothing is claimed of single arms: of a table, or of an answer without a certificate")
    seen = state.statistics.at(state.active)
    numbers, least = numbers_of(certifier, seen, True), few(certifier, seen)
    kept: Claimed = state.claims
    if (now := kept.now) is None or now.least != least or not np.array_equal(now.numbers, numbers):
        now = kept.now = Claims(run.task, certifier._replace(numbers=numbers), run.delta * run.share.ratio, least)
    now.take_in([(state.place.get(arm, -1), x) for arm, x in state.results[now.count :]], names, kept.looks)
    over = run.over and run.final is not None and certainty >= 1.0 - run.delta * (1 + run.share.owed) - 1e-12
    for place, arm in enumerate(state.active):
        found[arm] = now.found[place]
        if over and not found[arm].side:
            side = 1 if run.answer is not None and run.answer[place] else -1
            found[arm] = Claim(side, run.told, "the whole answer is certified")
    return with_former(state, found)


def with_former(state: Any, found: list[Claim]) -> list[Claim]:
    """Claims, with what was claimed before the arms changed."""
    for arm, text in state.claims.before.items():
        found[arm] = found[arm]._replace(event="; ".join(filter(None, [found[arm].event, text])))
    return found


def note_claims(state: Any) -> None:
    """Keep in words what is certain of the arms that there are, before these change."""
    with contextlib.suppress(ValueError):  # nothing is claimed
        among = _listed(state.active, state.names)
        for arm, claim in enumerate(claimed(state)):
            if claim.side and arm not in state.claims.before:
                when = f"after {claim.since} results, among {among}"
                state.claims.before[arm] = f"{claim.word} before, {when}: {claim.event}"
