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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..instances.arms import BERNOULLI, Arms, check_table, ends_of
from ..kernels import Floats, Ints, rng
from ..kernels.ahead import expect
from ..kernels.compiled import inlined, part
from ..kernels.rng import philox
from ..kernels.routines import call_routine
from ..kernels.structs import kernel
from .arrays import BLOCK, ENDED, LIVE, NOBODY, SPENT, Rules, Simulation, Work
from .playing import allowed, block_of_pulls, open_block, pay
from .sampling import blocks_of_pulls, bulk_pulls, samples_ahead, single_pulls

_0, _1, _2, _32, _BLOCK, _PUBLIC = (np.uint64(x) for x in (0, 1, 2, 32, BLOCK, rng.PUBLIC))

UNLOADED = -(2**61)  # `_advance` returns this before the first bulk pull of all
UNCHECKED = -(2**62)  # `advance` returns this if an episode would end by an answer that has not been checked
PULLED, STOPPED, SKIPPED = 0, 1, 2  # what an episode did in a step; skipped are slots whose episode had ended before
MOST_TIMES = 2**31 - 1  # pulls of one action


@part
def _refusal(sim, arms, times, answers_checked):
    """0, or why nothing can be done; and whether no episode stops or pulls more than once.

    -1 - e: the action of a live episode e is out of range. UNCHECKED: answers should have been checked. UNLOADED: arms
    may be pulled in bulk, and the routine for it is not loaded.
    """
    K, last, status, slots = sim.rules.K, sim.rules.last, sim.status, np.uint64(len(sim.status))
    wrong, answering, once = False, False, True
    for e in range(slots):
        wrong |= (arms[e] < 0) | (arms[e] > last) | (times[e] < 1) | (times[e] > MOST_TIMES)
        once &= (arms[e] != K) & (times[e] == 1)
    if wrong or not (once and answers_checked):
        for e in range(slots):
            a, n, state = arms[e], times[e], status[e]
            if state != ENDED and (a < 0 or a > last) or state == LIVE and a < K and (n < 1 or n > MOST_TIMES):
                return -1 - np.int64(e), False
            answering |= state == SPENT or a == K and state != ENDED
        if answering and not answers_checked:
            return UNCHECKED, False
        if sim.bulk[0] == 0:
            for e in range(slots):
                if times[e] > 1:
                    return UNLOADED, False
    return 0, once


@inlined
def stop(sim, e, finished):
    """End episode e, whose agent stops; returns how many have ended with it."""
    sim.did[e], sim.status[e], sim.terminated[e] = STOPPED, ENDED, 1
    sim.ended[finished] = np.int64(e)
    return finished + 1


@part
def _stop_and_note(sim, arms, times, start, until, finished):
    """End the episodes of a block that stop, make bulk pulls, and note the others.

    Returns how many pulls are still to be made, and how many episodes have ended.
    """
    rules, work, status, sample, n = sim.rules, sim.work, sim.status, sim.sample, _0
    K, D = rules.K, np.uint64(rules.D)
    for e in range(start, until):
        sim.did[e], sim.reward[e] = SKIPPED, 0.0
        for d in range(D):
            sample[e * D + d] = 0.0
        if status[e] == ENDED:
            continue
        a, count = arms[e], times[e]
        if a != K and status[e] == LIVE:
            count = allowed(sim, e, a, count)
        if a == K or status[e] == SPENT or count == 0 and not rules.full:
            finished = stop(sim, e, finished)
            continue
        if count == 0:
            sim.did[e], status[e] = STOPPED, SPENT
            for d in range(D):
                sample[e * D + d] = np.nan
            continue
        o, spent = e * np.uint64(K) + np.uint64(a), sim.spent[e]
        m = sim.pulls[o]
        sim.did[e], sim.reward[e] = PULLED, 0.0 - rules.cost * count
        sim.spent[e], sim.pulls[o] = spent + count, m + count
        if rules.priced:
            pay(sim, e, a, count)
        if count > 1:
            call_routine(sim.bulk[0], sim, e, np.uint64(a), o, m, count)
            continue
        work.slot[n], work.entry[n], work.before[n], work.arm[n] = e, o, m, a
        work.episode[n], work.key0[n], work.key1[n] = sim.episode[e], sim.key[0, e], sim.key[1, e]
        n += _1
    return n, finished


@part
def end(sim, start, stop, finished):
    """Count what remains from slot to slot, and end the episodes that have spent it. Returns how many have ended."""
    budget, limit, spent, remaining, over = sim.rules.budget, sim.rules.limit, sim.spent, sim.remaining, False
    if budget >= 0:
        if not sim.rules.priced:
            for e in range(start, stop):
                remaining[e] = budget - spent[e]
        for e in range(start, stop):
            over |= remaining[e] == 0
    if limit >= 0:
        for e in range(start, stop):
            over |= spent[e] >= limit
    if over:
        for e in range(start, stop):
            left, cut = remaining[e] != 0, limit >= 0 and spent[e] >= limit
            if sim.did[e] != PULLED or left and not cut:
                continue
            if not left and sim.rules.full:
                sim.status[e] = SPENT
            else:
                sim.status[e], sim.terminated[e], sim.truncated[e] = ENDED, not left, left
                sim.ended[finished] = np.int64(e)
                finished += 1
    return finished


@kernel
def _advance(sim: Simulation, arms: Ints, times: Ints, answers_checked: bool):
    """One step of every live episode, see `Simulator.advance`; nothing where the code of `_refusal` is negative."""
    scalar, cost, status, priced = sim.rules.D == 1, sim.rules.cost, sim.status, sim.rules.priced
    reward, did, spent = sim.reward, sim.did, sim.spent
    chosen, slot, x, sample = sim.work.arm, sim.work.slot, sim.work.sample, sim.sample
    slots, finished = np.uint64(len(status)), 0
    code, once = _refusal(sim, arms, times, answers_checked)
    if code < 0:
        return code
    for start in range(_0, slots, _BLOCK):
        n, stop = slots - start, slots
        if n > _BLOCK:
            n, stop = _BLOCK, start + _BLOCK
        other = np.uint8(0)  # than LIVE: the statuses of the block, combined
        for i in range(n):
            other |= status[start + i]
        plain = once and other == LIVE and not priced
        if plain:  # every episode of the block is live and pulls once, which needs no branches
            for i in range(n):
                chosen[i] = np.uint64(arms[start + i])
            for i in range(n):
                reward[start + i] = 0.0 - cost  # not -0.0
            for i in range(n):
                slot[i] = np.int64(start + i)
            for i in range(n):
                did[start + i] = PULLED
            for i in range(n):
                spent[start + i] += 1
            open_block(sim, start, n)
            block_of_pulls(sim, start, n)
        else:
            n, finished = _stop_and_note(sim, arms, times, start, stop, finished)
            call_routine(sim.rules.block, sim, n)
        if scalar and plain:
            for i in range(n):
                sample[start + i] = x[i]
        elif scalar:
            for i in range(n):
                sample[np.uint64(slot[i])] = x[i]
        finished = end(sim, start, stop, finished)
    return finished


@kernel
def _begin(sim: Simulation, rows, key, episode):
    """Clear the statistics of the given slots, and set their keys and episodes."""
    K, items, mean, variance = np.uint64(sim.rules.K), sim.rules.items, sim.mean, sim.variance
    sim.work.whose[:] = NOBODY  # samples that are drawn ahead are of the episodes before
    width, moments, excess, total = K * np.uint64(sim.rules.D), sim.moments, sim.excess, sim.total
    for i in range(np.uint64(len(rows))):
        e = np.uint64(rows[i])
        for o in range(e * K, (e + _1) * K):
            shown = sim.pulls[o] if items > 0 else 0
            for n in range((shown if shown < items else items) * sim.rules.D):
                sim.scores[np.int64(o) * items * sim.rules.D + n] = 0.0
            sim.pulls[o] = 0
        for o in range(e * width, (e + _1) * width):
            excess[o] = total[o] = mean[o] = variance[o] = 0.0
        if len(moments) > 0:
            for o in range(_2 * e * width, _2 * (e + _1) * width):
                moments[o] = 0.0
        key0, key1, episodes, salt = key[0, e], key[1, e], episode[e], np.uint64(sim.rules.salt)
        sim.key[0, e], sim.key[1, e], sim.episode[e] = key0, key1, episodes
        sim.spent[e], sim.remaining[e], sim.money[e] = 0, sim.rules.budget, 0.0
        sim.status[e], sim.did[e], sim.terminated[e], sim.truncated[e] = LIVE, SKIPPED, 0, 0
        w0, w1, _, _ = philox(salt, salt >> _32, episodes, _PUBLIC, key0, key1)
        sim.public[e] = np.int64((w0 << _32 | w1) >> _1)


class Simulator:
    """The statistics of E episodes, and the pulls that they come from.

    Args:
        arms: the distributions of the arms.
        episodes: E, the number of slots.
        rows: (E, K, P), the parameters of each episode's own arms; None: `arms.parameters` are those of all.
        budget, max_pulls, pull_cost, can_stop, keeps_moments, cost: see `Task`. Without budget and `max_pulls`, an
            episode is truncated after 2^40 - 1 pulls. salt: of the public seeds alone.
        full: whether an episode stays open for one more action, its answer, when the budget is spent.

    Raises:
        ValueError: for arms or rows that the kernels cannot read.

    Attributes:
        arrays: the arrays, as kernels take them. Views of them by episode are `pulls` (E, K), `total`, `mean`,
            `variance` (E, K) or (E, K, D), 0 where never pulled, `moments` with 2 behind it (without any: None),
            `scores` (E, K, N) or (E, K, N, D) (without a table: None), `remaining`, `public_seed` (E, 1), `spent`,
            `status`, `money`, `terminated`, `truncated` (E,), of the last step `reward`, `did` (E,), `sample` (E,) or
            (E, D).
        ended: (E,): its first entries are the slots that ended in the last step.
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
        salt: int = 0,
        cost: tuple[float, ...] | str | None = None,
    ) -> None:
        E, K, D = episodes, arms.K, arms.D
        shape = (E, K) if D == 1 else (E, K, D)
        self.E, self.K, self.D, self.pulled = E, K, D, "an arm"
        self.budget, limit = -1 if budget is None else budget, -1 if max_pulls is None else max_pulls
        price = np.repeat(cost, K // len(cost)) if isinstance(cost, tuple) else np.ones(K)
        if (budget is None or cost is not None) and max_pulls is None:  # beyond these pulls random numbers come again
            limit = rng.PULLS_LIMIT - 1
        if rows is not None and rows.shape != (E, K, arms.parameters.shape[1]):
            raise ValueError(f"rows must have shape {(E, K, arms.parameters.shape[1])}, got {rows.shape}")
        check_table(arms, arms.parameters)
        # The arms' own arrays are read-only, for which the kernel would be compiled a second time: copies are not.
        table = arms.parameters.copy() if rows is None else rows
        (low, high), numbers = ends_of(arms), E * K * D
        sizes: dict[str, Any] = {"pulls": E * K, "key": (2, E), "sample": E * D, "bulk": 1, "arms": 0, "samples": 0}
        sizes |= dict.fromkeys(("excess", "total", "mean", "variance"), numbers)
        sizes |= {"moments": 2 * numbers * keeps_moments, "scores": numbers * (arms.items or 0)}
        record: Any = Simulation.numba_type  # type: ignore[attr-defined]  # by `by_address`
        kinds = zip(record.fields, record.kinds, strict=True)
        arrays = {name: np.zeros(sizes.get(name, E), one.dtype) for name, one in kinds if hasattr(one, "dtype")}
        arrays["excess"] = arrays["total"] if low == 0.0 else arrays["excess"]
        arrays |= {"parameters": table.reshape(-1), "data": arms.data.copy().reshape(-1), "price": price}
        self._kind = kind = arms.code, D, keeps_moments  # of the routines, each compiled when it is first asked for
        expect("step", _advance)
        of: dict[str, Any] = {"sampler": single_pulls(*kind), "block": blocks_of_pulls(*kind), "K": K, "D": D}
        of |= {"drawer": samples_ahead(arms.code, D), "plain": (arms.code, D) == (BERNOULLI, 1)}
        of |= {"columns": arms.parameters.shape[1], "items": arms.items or 0, "own": rows is not None, "salt": salt}
        of |= {"full": full, "budget": self.budget, "limit": limit, "last": K if can_stop else K - 1}
        of |= {"priced": cost is not None, "most": float(price.max()), "cost": float(pull_cost)}
        of |= {"least": 0.0 if isinstance(cost, str) else float(price.min()), "low": low, "high": high}
        self.arrays = sim = Simulation(rules=Rules(**of), work=Work.empty(D, K), **arrays)
        sim.remaining[:], sim.status[:], sim.bulk[:] = self.budget, ENDED, bulk_pulls(*kind) if arms.items else 0
        self.pulls = sim.pulls.reshape(E, K)
        self.total, self.mean, self.variance = (table.reshape(shape) for table in (sim.total, sim.mean, sim.variance))
        self.moments = sim.moments.reshape(*shape, 2) if keeps_moments else None
        self.scores = sim.scores.reshape(*shape[:2], arms.items, *shape[2:]) if arms.items else None
        self.spent, self.remaining, self.public_seed = sim.spent, sim.remaining.reshape(E, 1), sim.public.reshape(E, 1)
        self.status, self.did, self.ended = sim.status, sim.did, sim.ended
        self.reward, self.money = sim.reward, sim.money
        self.terminated, self.truncated = sim.terminated.view(np.bool_), sim.truncated.view(np.bool_)
        self.sample = sim.sample if D == 1 else sim.sample.reshape(E, D)

    def begin(self, rows: Ints, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> None:
        """Start the slots `rows` (n,) afresh, as their `episode` (E,) of the root with their `key` (2, E)."""
        _begin(self.arrays, rows, key, episode)

    def state(self) -> list[NDArray[Any]]:
        """The arrays that hold all attributes; no copies."""
        self.arrays.work.whose[:] = NOBODY  # other episodes may be written to them
        first, last = (Simulation._fields.index(name) for name in ("key", "sample"))
        return list[Any](self.arrays[first : last + 1])

    def bind(self, arms: Ints, times: Ints) -> Callable[[], int]:
        """`advance` on these two arrays, which the caller fills before each call with actions that it has checked."""
        return _advance.bound(self.arrays, arms, times, True)  # type: ignore[no-any-return]

    def no_action(self, action: Any) -> str:
        """What is wrong with an action that is out of range."""
        stop = f"or {self.K} to stop" if self.arrays.rules.last == self.K else "and none stops (stop=False)"
        return f"an action is {self.pulled} 0 .. {self.K - 1}, {stop}, got {action}"

    def advance(self, arms: Ints, times: Ints, answers_checked: bool = True) -> int:
        """One step of all live episodes: pull arms[e] times[e] times, or stop where arms[e] == K.

        `terminated` and `truncated` of slots whose episode had ended before stay as they are.

        Args:
            arms, times: (E,) int64, in one piece.
            answers_checked: whether the caller has checked the answers of episodes that end by one of their own.

        Returns:
            How many episodes ended; their slots are the first entries of `ended`. Or UNCHECKED, where answers should
            have been checked; no episode has then been touched.

        Raises:
            ValueError: naming the first action that is out of range; no episode has then been touched.
        """
        count: int = _advance.quick(self.arrays, arms, times, answers_checked)
        if count >= 0 or count == UNCHECKED:
            return count
        if count == UNLOADED:
            self.arrays.bulk[0] = bulk_pulls(*self._kind)
            return self.advance(arms, times, answers_checked)
        raise self.refused(-1 - count, arms, times)

    def refused(self, e: int, arms: Ints, times: Ints, fewest: int = 1) -> ValueError:
        """The error for the action of slot e, whose times are from the `fewest` on."""
        if not 0 <= arms[e] <= self.arrays.rules.last:
            return ValueError(f"{self.no_action(arms[e])} (slot {e})")
        if times[e] == fewest == 0:
            return ValueError(f"times=0 waits for a result, and no result is pending (slot {e})")
        return ValueError(f"times must be in {fewest} .. {MOST_TIMES}, got {times[e]} (slot {e})")
