"""E episodes side by side: pulls of their arms, the samples that these yield, and the statistics of the samples.

`Simulator.advance` makes all pulls: those of the single environment (E = 1), of the vector environment and of the
evaluation. It works in blocks of 64 episodes, in four loops: gather the counters, make the random words (in a loop of
its own, which LLVM vectorises), turn them into samples by the distribution of the arms, update the statistics.

What an arm's samples exceed the low end of their range by (0 where there is none) is summed up: its mean is low +
excess / pulls. Arms with the same sum and number of samples have the same mean, so that ties are recognised. `total` is
what is shown of the sum. The variance (divisor N) follows Welford's update.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..instances.arms import CATEGORICAL, GAUSSIAN, RESAMPLED, Arms, check_table, ends_of
from ..kernels import rng
from ..kernels.compiled import inlined, part
from ..kernels.rng import arm_word, block_of_quantiles, philox, to_uniform
from ..kernels.routines import call_routine
from ..kernels.structs import kernel
from .sampling import NEXT_BLOCK, block_of_samples, bulk_pulls, enter, from_uniform, sampler_of

__all__ = ["ENDED", "LIVE", "SPENT", "UNCHECKED", "Simulation", "Simulator", "by_routine"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 64
_32, _PUBLIC = np.uint64(32), np.uint64(rng.PUBLIC)

# The status of a slot. Its episode runs; it has ended, and the slot waits for `begin`; or its budget is spent, and its
# answer is still to come.
LIVE, ENDED, SPENT = 0, 1, 2
UNLOADED = -(2**61)  # `_advance` returns this before the first bulk pull of all
UNCHECKED = -(2**62)  # `advance` returns this if an episode would end by an answer that has not been checked
PULLED, STOPPED, SKIPPED = 0, 1, 2  # what an episode did in a step; skipped are slots whose episode had ended before
MOST_TIMES = 2**31 - 1  # pulls of one action


class Work(NamedTuple):
    """Memory for the pulls of a block of episodes, and for bulk pulls."""

    words: NDArray[np.uint64]  # (7, _BLOCK)
    places: Ints  # (3, _BLOCK)
    numbers: Floats  # (D + 3, _BLOCK)
    scratch: Floats  # (7, D)
    counter: NDArray[np.uint64]  # (6,)

    @classmethod
    def empty(cls, D: int) -> Work:
        """Such arrays."""
        words, places = np.empty((7, _BLOCK), np.uint64), np.empty((3, _BLOCK), np.int64)
        return cls(words, places, np.empty((D + 3, _BLOCK)), np.empty((7, D)), np.empty(6, np.uint64))


class Rules(NamedTuple):
    """What holds in all episodes of a `Simulator`."""

    distribution: int  # its code, see `arms`
    sampler: int  # see `sampler_of`
    K: int
    D: int
    full: bool  # an episode stays open for its answer when the budget is spent
    budget: int  # -1: none
    limit: int  # pulls after which an episode is cut, -1: none
    columns: int  # numbers that describe the distribution of an arm
    items: int  # rows of a shared table, 0: there is none
    own: bool  # each episode has arms of its own
    last: int  # the largest action: K, or K - 1 where no episode can be stopped
    cost: float  # of a pull
    low: float  # ends of the range of samples, 0 and inf where none is known
    high: float


class Simulation(NamedTuple):
    """A `Simulator` as kernels take it: rules, arms, what the episodes have shown, and memory to work in."""

    rules: Rules
    parameters: Floats  # (K * columns,), or (E * K * columns,) where each episode has its own
    data: Floats
    key: NDArray[np.uint64]  # (2, E)
    episode: NDArray[np.uint64]  # (E,)
    public: Ints  # (E,)
    pulls: Ints  # (E * K,)
    excess: Floats  # (E * K * D,) sums of what samples exceed `low` by; `total` itself where that is 0
    total: Floats
    mean: Floats
    variance: Floats
    moments: Floats  # (E * K * D * 2,) third and fourth central moments, or none
    scores: Floats  # (E * K * items,) what pulls have shown of a shared table, 0 where nothing yet
    spent: Ints  # (E,)
    remaining: Ints
    ended: Ints
    status: NDArray[np.uint8]  # (E,)
    did: NDArray[np.uint8]
    terminated: NDArray[np.uint8]
    truncated: NDArray[np.uint8]
    reward: Floats  # (E,)
    sample: Floats  # (E * D,)
    bulk: Ints  # (1,) address of the routine of bulk pulls, 0 until it is loaded
    work: Work
    arms: Ints  # (T,) arms of the first T pulls of each episode, and samples (T * D,): recorded where T > 0
    samples: Floats


@part
def _refusal(sim, arms, times, answers_checked):
    """0, or why nothing can be done, as `_advance` returns it; and whether no episode stops or pulls more than once."""
    K, last, status = sim.rules.K, sim.rules.last, sim.status
    lowest, highest, least, most = np.int64(0), np.int64(0), np.int64(1), np.int64(1)
    for i in range(len(status)):
        lowest, highest = min(lowest, arms[i]), max(highest, arms[i])
    for i in range(len(status)):
        least, most = min(least, times[i]), max(most, times[i])
    answering = False
    if not answers_checked:
        for i in range(len(status)):
            answering |= (status[i] == SPENT) | ((arms[i] == K) & (status[i] != ENDED))
    if lowest < 0 or highest > last or least < 1 or most > MOST_TIMES:
        for e in range(len(status)):
            if status[e] != ENDED and (arms[e] < 0 or arms[e] > last):
                return np.int64(-1 - e), False
            if status[e] == LIVE and arms[e] < K and (times[e] < 1 or times[e] > MOST_TIMES):
                return np.int64(-1 - e), False
    if answering:
        return np.int64(UNCHECKED), False
    if most > 1 and sim.bulk[0] == 0:
        return np.int64(UNLOADED), False
    return np.int64(0), highest < K and most == 1


@inlined
def by_routine(address, sim, e, a, o, m, times):
    """Pull arm a of episode e, whose entry is o and which has m pulls, by a routine: of bulks, rows or a table."""
    rules, work = sim.rules, sim.work
    call_routine(
        address,
        rules.distribution,
        sim.key[0, e],
        sim.key[1, e],
        sim.episode[e],
        a,
        m,
        times,
        np.int64(o),
        np.int64((o if rules.own else a) * np.uint64(rules.columns)),
        rules.columns,
        sim.parameters,
        sim.data,
        sim.excess,
        sim.total,
        sim.mean,
        sim.variance,
        sim.scores if rules.items > 0 else sim.moments,
        sim.sample,
        np.int64(e),
        rules.D,
        np.int64(len(sim.moments) > 0),
        work.scratch,
        work.counter,
        rules.low,
        rules.high,
    )


@part
def _stop_and_count(sim, arms, times, start, stop, finished):
    """End the episodes of a block that stop, make pulls by a routine, and count the others, whose places are noted.

    Returns how many pulls are still to be made, and how many episodes have ended.
    """
    rules, work = sim.rules, sim.work
    K, D, budget, limit = rules.K, rules.D, rules.budget, rules.limit
    slot, words, n = work.places[0], work.words, 0
    for e in range(start, stop):
        sim.did[e] = SKIPPED
        for d in range(D):
            sim.sample[e * D + d] = 0.0
        if sim.status[e] == ENDED:
            sim.reward[e] = 0.0
            continue
        a = arms[e]
        if a == K or sim.status[e] == SPENT:
            sim.reward[e], sim.did[e], sim.status[e], sim.terminated[e] = 0.0, STOPPED, ENDED, 1
            sim.ended[finished] = e
            finished += 1
            continue
        o = np.uint64(e) * np.uint64(K) + np.uint64(a)
        m, count = sim.pulls[o], times[e]
        sim.did[e] = PULLED
        if budget >= 0:
            count = min(count, sim.remaining[e])
        if limit >= 0:
            count = min(count, limit - sim.spent[e])
        sim.reward[e] = 0.0 - rules.cost * count
        sim.spent[e] += count
        sim.pulls[o] = m + count
        if count > 1 or rules.items > 0:
            by_routine(sim.bulk[0], sim, np.uint64(e), np.uint64(a), o, m, count)
            continue
        slot[n], words[0, n], words[1, n], words[2, n] = e, o, m, a
        words[3, n], words[4, n], words[5, n] = sim.episode[e], sim.key[0, e], sim.key[1, e]
        n += 1
    return n, finished


@part
def _end(sim, start, stop, finished):
    """Count what remains in a block, and end the episodes that have spent it. Returns how many have ended."""
    budget, limit, over = sim.rules.budget, sim.rules.limit, False
    if budget >= 0:
        least = np.int64(1)
        for i in range(start, stop):
            sim.remaining[np.uint64(i)] = budget - sim.spent[np.uint64(i)]
        for i in range(start, stop):
            least = min(least, sim.remaining[np.uint64(i)])
        over = least == 0
    if limit >= 0:
        for i in range(start, stop):
            over |= sim.spent[np.uint64(i)] >= limit
    if over:
        for e in range(start, stop):
            if sim.did[e] != PULLED:
                continue
            if sim.remaining[e] == 0 and sim.rules.full:
                sim.status[e] = SPENT
            elif sim.remaining[e] == 0 or (limit >= 0 and sim.spent[e] >= limit):
                sim.status[e] = ENDED
                sim.terminated[e] = sim.remaining[e] == 0
                sim.truncated[e] = sim.remaining[e] != 0
                sim.ended[finished] = e
                finished += 1
    return finished


@kernel
def _advance(sim: Simulation, arms, times, answers_checked: bool):
    """One step of every live episode, of scalar arms. Returns how many ended; their slots are in `sim.ended`.

    It changes nothing and returns -1 - e where the action of a live episode e is out of range, UNCHECKED where an
    episode ends by an answer of its own although the answers have not been checked, and UNLOADED where arms may be
    pulled in bulk and the routine for it is not loaded.
    """
    rules, words, numbers = sim.rules, sim.work.words, sim.work.numbers
    pulls, low, high = sim.pulls, rules.low, rules.high
    excess, total, mean, variance, moments = sim.excess, sim.total, sim.mean, sim.variance, sim.moments
    key0, key1, episode, sample = sim.key[0], sim.key[1], sim.episode, sim.sample
    offset, c0, c1, c2, q0, q1 = words[0], words[1], words[2], words[3], words[4], words[5]
    at = words[6]  # where the parameters of an arm start
    slot, u, x = sim.work.places[0], numbers[0], numbers[1]
    uK, ucolumns, finished = np.uint64(rules.K), np.uint64(rules.columns), 0
    code, pulls_once = _refusal(sim, arms, times, answers_checked)
    if code < 0:
        return code
    for start in range(0, len(episode), _BLOCK):
        stop = min(start + _BLOCK, len(episode))
        n, base = stop - start, np.uint64(start)
        other = np.uint8(0)  # than LIVE: the statuses of the block, combined
        for i in range(n):
            other |= sim.status[base + np.uint64(i)]
        plain = pulls_once and other == LIVE and rules.items == 0
        if plain:  # every episode of the block is live and pulls once, which needs no branches
            for i in range(n):
                sim.reward[base + np.uint64(i)] = 0.0 - rules.cost  # not -0.0
            for i in range(n):
                a = np.uint64(arms[base + np.uint64(i)])
                o = (base + np.uint64(i)) * uK + a
                m = pulls[o]
                pulls[o] = m + 1
                offset[i], c0[i], c1[i] = o, m, a
            for i in range(n):
                sim.did[base + np.uint64(i)] = PULLED
            for i in range(n):
                c2[i], q0[i], q1[i] = episode[base + np.uint64(i)], key0[base + np.uint64(i)], key1[base + np.uint64(i)]
            for i in range(n):
                sim.spent[base + np.uint64(i)] += 1
        else:
            n, finished = _stop_and_count(sim, arms, times, start, stop, finished)
        for i in range(n):
            w0, w1, _, _ = philox(c0[i], arm_word(c1[i], c0[i]), c2[i], np.uint64(0), q0[i], q1[i])
            u[i] = to_uniform(w0, w1)
        for i in range(n):
            at[i] = (offset[i] if rules.own else c1[i]) * ucolumns
        block_of_samples(sim, u, n, at, x)
        for i in range(n):
            enter(float(np.int64(c0[i])), low, high, x[i], offset[i], excess, total, mean, variance, moments)
        if plain:
            for i in range(n):
                sample[base + np.uint64(i)] = x[i]
        else:
            for i in range(n):
                sample[np.uint64(slot[i])] = x[i]
        finished = _end(sim, start, stop, finished)
    return np.int64(finished)


@kernel
def _advance_rows(sim: Simulation, arms, times, answers_checked: bool):
    """`_advance` of arms of several dimensions."""
    rules, words, places = sim.rules, sim.work.words, sim.work.places
    distribution, D, parameters, finished = rules.distribution, rules.D, sim.parameters, 0
    offset, c0, c1, c2, q0, q1 = words[0], words[1], words[2], words[3], words[4], words[5]
    known = sim.excess, sim.total, sim.mean, sim.variance, sim.moments
    slot, place, spare, x, samples = places[0], places[1], places[2], sim.work.numbers[1], sim.work.numbers[2:]
    row = distribution == RESAMPLED or distribution == CATEGORICAL  # one uniform number picks all coordinates
    code, _ = _refusal(sim, arms, times, answers_checked)
    if code < 0:
        return code
    for start in range(0, len(sim.episode), _BLOCK):
        stop = min(start + _BLOCK, len(sim.episode))
        n, finished = _stop_and_count(sim, arms, times, start, stop, finished)
        for i in range(n):
            place[i] = np.int64((offset[i] if rules.own else c1[i]) * np.uint64(rules.columns))
            c1[i] = arm_word(c1[i], c0[i])
        for pair in range(1 if row else (D + 1) // 2):
            c3, even, odd = np.uint64(pair) * NEXT_BLOCK, samples[2 * pair], samples[2 * pair + 1]
            for i in range(n):
                w0, w1, w2, w3 = philox(c0[i], c1[i], c2[i], c3, q0[i], q1[i])
                even[i], odd[i] = to_uniform(w0, w1), to_uniform(w2, w3)
        if distribution == GAUSSIAN:
            for d in range(D):
                y = samples[d]
                block_of_quantiles(y, n, spare, x)
                for i in range(n):
                    y[i] = parameters[place[i] + d] + parameters[place[i] + D + d] * x[i]
        else:
            for i in range(n):
                w = samples[0, i]
                for d in range(D):
                    w = w if row else samples[d, i]
                    samples[d, i] = from_uniform(distribution, w, parameters, place[i], rules.columns, sim.data, d, D)
        for i in range(n):
            before = float(np.int64(c0[i]))
            for d in range(D):
                o, y_d = offset[i] * np.uint64(D) + np.uint64(d), samples[d, i]
                enter(before, rules.low, rules.high, y_d, o, *known)
                sim.sample[slot[i] * D + d] = y_d
        finished = _end(sim, start, stop, finished)
    return np.int64(finished)


@kernel
def _begin(sim: Simulation, rows, key, episode):
    """Clear the statistics of the given slots, and set their keys and episodes."""
    K, width, items = np.uint64(sim.rules.K), np.uint64(sim.rules.K * sim.rules.D), sim.rules.items
    zero = np.uint64(0)
    for i in range(len(rows)):
        e = np.uint64(rows[i])
        for k in range(K if items > 0 else zero):
            for n in range(min(sim.pulls[e * K + k], items)):
                sim.scores[np.int64(e * K + k) * items + n] = 0.0
        for k in range(K):
            sim.pulls[e * K + k] = 0
        for k in range(width):
            sim.excess[e * width + k] = sim.total[e * width + k] = 0.0
            sim.mean[e * width + k] = 0.0
            sim.variance[e * width + k] = 0.0
        if len(sim.moments) > 0:
            for k in range(np.uint64(2) * width):
                sim.moments[np.uint64(2) * e * width + k] = 0.0
        sim.key[0, e], sim.key[1, e], sim.episode[e] = key[0, e], key[1, e], episode[e]
        sim.spent[e], sim.remaining[e] = 0, sim.rules.budget
        sim.status[e], sim.did[e], sim.terminated[e], sim.truncated[e] = LIVE, SKIPPED, 0, 0
        w0, w1, _, _ = philox(zero, zero, episode[e], _PUBLIC, key[0, e], key[1, e])
        sim.public[e] = np.int64((w0 << _32 | w1) >> np.uint64(1))


class Simulator:
    """The statistics of E episodes, and the pulls that they come from.

    Args:
        arms: the distributions of the arms.
        episodes: E, the number of slots.
        rows: (E, K, P), the parameters of each episode's own arms; None: `arms.parameters` are those of all.
        budget: pulls after which an episode ends, or None. max_pulls: pulls after which it is truncated, or None
            (without a budget it is truncated after 2^40 - 1 pulls all the same).
        full: whether an episode stays open for one more action, its answer, when the budget is spent.
        pull_cost: what a pull takes off the reward. can_stop: whether K is an action, which stops.
        keeps_moments: whether the third and fourth central moments are kept.

    Raises:
        ValueError: for arms or rows that the kernels cannot read.

    Attributes:
        pulls: (E, K) int64; total, mean, variance: (E, K) or (E, K, D) float64, 0 where never pulled.
        moments: the same with 2 behind it, third and fourth central moments with divisor N; without any: None.
        scores: (E, K, N), what pulls have shown of a shared table, 0 where nothing yet; without a table: None.
        remaining: (E, 1) int64, -1 without a budget; public_seed: (E, 1) int64; spent: (E,) int64, total pulls.
        status: (E,) uint8, LIVE, SPENT, or ENDED until `begin`; terminated, truncated: (E,) bool.
        reward: (E,), sample: (E,) or (E, D), did: (E,) uint8, of the last step.
        ended: (E,): its first entries are the slots that ended in the last step.
        arrays: all of these, as kernels take them.
    """

    def __init__(
        self,
        arms: Arms,
        episodes: int,
        rows: Floats | None = None,
        *,
        budget: int | None,
        max_pulls: int | None,
        full: bool,
        pull_cost: float,
        can_stop: bool = True,
        keeps_moments: bool = False,
    ) -> None:
        E, K, D = episodes, arms.K, arms.D
        shape = (E, K) if D == 1 else (E, K, D)
        self.E, self.K, self.D, self.pulled = E, K, D, "an arm"
        self.budget, limit = -1 if budget is None else budget, -1 if max_pulls is None else max_pulls
        if budget is None and max_pulls is None:  # beyond these pulls the random numbers of an arm would come again
            limit = rng.PULLS_LIMIT - 1
        if rows is not None and rows.shape != (E, K, arms.parameters.shape[1]):
            raise ValueError(f"rows must have shape {(E, K, arms.parameters.shape[1])}, got {rows.shape}")
        check_table(arms, arms.parameters)
        # The arms' own arrays are read-only, for which the kernel would be compiled a second time: copies are not.
        table, sampler = arms.parameters.copy() if rows is None else rows, sampler_of(arms.code, D)
        (low, high), total = ends_of(arms), np.zeros(E * K * D)
        self.arrays = sim = Simulation(
            rules=Rules(
                distribution=arms.code,
                sampler=sampler,
                K=K,
                D=D,
                full=full,
                budget=self.budget,
                limit=limit,
                columns=arms.parameters.shape[1],
                items=arms.items or 0,
                own=rows is not None,
                last=K if can_stop else K - 1,
                cost=float(pull_cost),
                low=low,
                high=high,
            ),
            parameters=table.reshape(-1),
            data=arms.data.copy().reshape(-1),
            key=np.zeros((2, E), np.uint64),
            episode=np.zeros(E, np.uint64),
            public=np.zeros(E, np.int64),
            pulls=np.zeros(E * K, np.int64),
            excess=total if low == 0.0 else np.zeros(E * K * D),
            total=total,
            mean=np.zeros(E * K * D),
            variance=np.zeros(E * K * D),
            moments=np.zeros(2 * E * K * D if keeps_moments else 0),
            scores=np.zeros(E * K * (arms.items or 0)),
            spent=np.zeros(E, np.int64),
            remaining=np.full(E, self.budget, np.int64),
            ended=np.zeros(E, np.int64),
            status=np.full(E, ENDED, np.uint8),
            did=np.zeros(E, np.uint8),
            terminated=np.zeros(E, np.uint8),
            truncated=np.zeros(E, np.uint8),
            reward=np.zeros(E),
            sample=np.zeros(E * D),
            bulk=np.full(1, sampler if arms.items else 0, np.int64),
            work=Work.empty(D),
            arms=np.empty(0, np.int64),
            samples=np.empty(0),
        )
        self._step = _advance if D == 1 else _advance_rows
        self.pulls = sim.pulls.reshape(E, K)
        self.total, self.mean, self.variance = (table.reshape(shape) for table in (sim.total, sim.mean, sim.variance))
        self.moments = sim.moments.reshape(*shape, 2) if keeps_moments else None
        self.scores = sim.scores.reshape(E, K, arms.items) if arms.items else None
        self.spent, self.remaining, self.public_seed = sim.spent, sim.remaining.reshape(E, 1), sim.public.reshape(E, 1)
        self.status, self.did, self.ended, self.reward = sim.status, sim.did, sim.ended, sim.reward
        self.terminated, self.truncated = sim.terminated.view(np.bool_), sim.truncated.view(np.bool_)
        self.sample = sim.sample if D == 1 else sim.sample.reshape(E, D)

    def begin(self, rows: Ints, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> None:
        """Start the slots `rows` (n,) afresh, as their `episode` (E,) of the root with their `key` (2, E)."""
        _begin(self.arrays, rows, key, episode)

    def state(self) -> list[NDArray[Any]]:
        """The arrays that hold all attributes; no copies."""
        sim = self.arrays
        return [
            *(sim.key, sim.episode, sim.public, sim.pulls, sim.excess, sim.total, sim.mean, sim.variance, sim.moments),
            *(sim.scores, sim.spent, sim.remaining),
            *(sim.ended, sim.status, sim.did, sim.terminated, sim.truncated, sim.reward, sim.sample),
        ]

    def bind(self, arms: Ints, times: Ints) -> Callable[[], int]:
        """`advance` on these two arrays, which the caller fills before each call with actions that it has checked."""
        return self._step.bound(self.arrays, arms, times, True)  # type: ignore[no-any-return]

    def no_action(self, action: Any) -> str:
        """What is wrong with an action that is out of range."""
        stop = f"or {self.K} to stop" if self.arrays.rules.last == self.K else "and none stops (stop=False)"
        return f"an action is {self.pulled} 0 .. {self.K - 1}, {stop}, got {action}"

    def advance(self, arms: Ints, times: Ints, answers_checked: bool = True) -> int:
        """One step of all live episodes: pull arms[e] times[e] times, or stop where arms[e] == K.

        `terminated` and `truncated` of slots whose episode had ended before stay as they are.

        Args:
            arms, times: (E,) int64, in one piece.
            answers_checked: whether the caller has checked the answers of episodes that end by an
                answer of their own.

        Returns:
            How many episodes ended; their slots are the first entries of `ended`. Or UNCHECKED, where an episode ends
            by an answer of its own and the answers have not been checked; no episode has then been touched.

        Raises:
            ValueError: naming the first action that is out of range; no episode has then been touched.
        """
        count: int = self._step.quick(self.arrays, arms, times, answers_checked)
        if count >= 0 or count == UNCHECKED:
            return count
        if count == UNLOADED:
            self.arrays.bulk[0] = bulk_pulls()
            return self.advance(arms, times, answers_checked)
        e = -1 - count
        if not 0 <= arms[e] <= self.arrays.rules.last:
            raise ValueError(f"{self.no_action(arms[e])} (slot {e})")
        raise ValueError(f"times must be in 1 .. {MOST_TIMES}, got {times[e]} (slot {e})")
