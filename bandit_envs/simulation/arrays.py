"""The arrays of a simulation, as compiled code takes them: by one address."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.addresses import by_address
from ..kernels.checks import Floats, Ints

BLOCK = 64  # episodes side by side
FIRST, AHEAD = 8, 32  # samples of an arm that are drawn at once: at first, and at most
LINES = 4096  # arms, at most, of which such samples are kept
NOBODY = np.uint64(2**64 - 1)

# The status of a slot. Its episode runs; it has ended, and the slot waits for `begin`; or its budget is spent, and its
# answer is still to come.
LIVE, ENDED, SPENT = 0, 1, 2

Words = NDArray[np.uint64]


class Work(NamedTuple):
    """Scratch for the pulls of a block of episodes, (BLOCK,) each, and for bulk pulls."""

    entry: Words  # of each pull that is noted: which of the E * K arms it is of
    before: Words  # earlier pulls of it
    arm: Words
    episode: Words
    key0: Words
    key1: Words
    place: Words  # where the parameters of the arm start
    slot: Ints
    spare: Ints
    sample: Floats  # what it yields
    pulls: Floats  # of the arm, with it, of scalar arms; and so on
    mean: Floats
    variance: Floats
    excess: Floats
    least: Floats  # for what chooses arms
    rows: Annotated[Floats, 2]  # (D + 1, BLOCK) uniform numbers, then samples of several coordinates
    bulk: Annotated[Floats, 2]  # (7, D)
    counter: Words  # (6,)
    ahead: Floats  # ((lines + 1) * AHEAD,) samples that are drawn ahead, of an arm in each line; the last is scratch
    indices: Floats  # (lines * AHEAD,) of that arm, after each of these samples
    whose: Words  # (lines,) which of the E * K arms, or NOBODY
    since: Ints  # (lines,) its pulls before the first of the samples, and with the last
    until: Ints

    @classmethod
    def empty(cls, D: int, K: int) -> Work:
        """Such arrays."""
        words, ints = np.empty((7, BLOCK), np.uint64), np.empty((2, BLOCK), np.int64)
        rest = np.empty((D + 1, BLOCK)), np.empty((7, D)), np.empty(6, np.uint64)
        lines = min(2 ** (K - 1).bit_length(), LINES)
        kept = np.empty((lines + 1) * AHEAD), np.empty(lines * AHEAD), np.full(lines, NOBODY)
        return cls(*words, *ints, *np.empty((6, BLOCK)), *rest, *kept, *np.zeros((2, lines), np.int64))  # type: ignore[call-arg]  # by rows


class Rules(NamedTuple):
    """What holds in all episodes of a `Simulator`."""

    drawer: int  # addresses of the routines of samples ahead; where that is 0, of single pulls; of blocks of pulls
    sampler: int
    block: int
    plain: bool  # scalar Bernoulli arms
    K: int
    D: int
    full: bool  # an episode stays open for its answer when the budget is spent
    budget: int  # -1: none
    limit: int  # pulls after which an episode is cut, -1: none
    columns: int  # numbers that describe the distribution of an arm
    items: int  # rows of a shared table, 0: there is none
    own: bool  # each episode has arms of its own
    last: int  # the largest action: K, or K - 1 where no episode can be stopped
    salt: int  # of the public seeds, 0: none
    priced: bool  # arms have prices, in which the budget is counted
    least: float  # the lowest and the highest price; 0 and 1: it is the rows of the table that cost 1 each
    most: float
    cost: float  # of a pull
    low: float  # ends of the range of samples, 0 and inf where none is known
    high: float


@by_address
class Simulation(NamedTuple):
    """A `Simulator` as kernels take it: rules, arms, what the episodes have shown, and scratch."""

    rules: Rules
    parameters: Floats  # (K * columns,), or (E * K * columns,) where each episode has its own
    data: Floats
    price: Floats  # (K,) of a pull, 1 where arms have no prices
    key: Annotated[Words, 2]  # (2, E)
    episode: Words  # (E,)
    public: Ints  # (E,)
    pulls: Ints  # (E * K,)
    excess: Floats  # (E * K * D,) sums of what samples exceed `low` by; `total` itself where that is 0
    total: Floats
    mean: Floats
    variance: Floats
    moments: Floats  # (E * K * D * 2,) third and fourth central moments, or none
    scores: Floats  # (E * K * items * D,) what pulls have shown of a shared table, 0 where nothing yet
    spent: Ints  # (E,)
    remaining: Ints
    money: Floats  # (E,) what the pulls have cost
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
