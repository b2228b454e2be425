"""Index rules in compiled code: the index of one arm is compiled as it stands, and whole episodes are played by it.

For few arms the indices are kept arm-major, (K, E), and scanned. Episodes that are far from whatever must be looked at
are played 64 side by side: each stage of a step is a loop over these 64, which LLVM vectorises. For many arms each
episode has a tree of blocks of 16 arms that keeps the least index of each block.
"""

from __future__ import annotations

import dis
import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import errors

from bandit_envs import kernels, simulation
from bandit_envs.kernels import address_of, assemble, call_routine, carray, inlined, jit, kernel, kind_of, part, routine
from bandit_envs.problems import Measure
from bandit_envs.simulation import AHEAD, BLOCK, ENDED, LIVE, Playing

from .agent import Floats, Ints

FEW = 8  # so many episodes, or more, are played side by side
WIDTH = 16  # children of a node of a tree
VARIADIC = 0x0C  # flags of code that takes *args or **kwargs
RAISING = ("RAISE_VARARGS", "RERAISE")  # what code does that may raise an error of its own
REDUCTIONS = {"all", "any", "argmax", "argmin", "cumsum", "len", "max", "mean", "median", "min", "nanmax", "nanmin"}
REDUCTIONS |= {"prod", "size", "sort", "std", "sum", "var"}
# In place of the next arm: an index that is no number; an episode that is still to be played, for which `Board.given`
# must be filled in where a kernel leaves it so.
NO_NUMBER, UNPLAYED = -1, -2
UNDECIDED = -np.inf  # in place of a margin, by `Problem.distance_routine`
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


class Rule(NamedTuple):
    """A rule as kernels take it: the addresses of a routine of `call_rule` and of what it reads, and margins."""

    address: int
    own: int
    centre: float  # what is taken off a mean
    spread: bool  # whether it reads variances
    measure: int  # the address of the problem's routine of distances, which finds margins; 0: mean - centre is one
    numbers: Floats  # (m,) of the problem, for that routine


class Board(NamedTuple):
    """The indices of all arms in all episodes."""

    table: Annotated[Floats, 2]  # scan: (K, E); tree: (E, sum of levels), leaves first
    levels: Ints  # tree: where each level starts, and the end; empty for a scan
    last: Ints  # (E,) the arm chosen last
    first: float  # the index of an arm never pulled
    running: bool  # an arm's index never falls
    doubted: bool  # an index may be NaN
    given: Floats  # (E,) the margin of the arm chosen last where the caller has filled it in, else NaN


# --- scans ------------------------------------------------------------------------------------------------------------


@inlined
def scan(flat, uE, start, n, K, least, arm):
    """Fill in `least` and `arm` (n,): of episodes from `start` on the least index, its lowest arm; `flat`: (K, E)."""
    for i in range(n):
        least[i], arm[i] = flat[start + i], np.uint64(0)
    for k in range(1, K - 2, 3):  # three arms at a time: `least` and `arm` are read and written less often
        a, one_row = np.uint64(k), np.uint64(k) * uE + start
        b, two_row = np.uint64(k + 1), one_row + uE
        c, three_row = np.uint64(k + 2), two_row + uE
        for i in range(n):
            v, which = least[i], arm[i]
            w = flat[one_row + i]
            v, which = (w, a) if w < v else (v, which)
            w = flat[two_row + i]
            v, which = (w, b) if w < v else (v, which)
            w = flat[three_row + i]
            v, which = (w, c) if w < v else (v, which)
            least[i], arm[i] = v, which
    for k in range(K - (K - 1) % 3, K):
        a, row = np.uint64(k), np.uint64(k) * uE + start
        for i in range(n):
            w = flat[row + i]
            least[i], arm[i] = (w, a) if w < least[i] else (least[i], arm[i])


@inlined
def least_of(flat, uE, e, K, a, v):
    """Give arm a of episode e the index v; returns the arm with the least index, the lowest of those.

    The least index of the others is found in two chains, neither of which waits for v.
    """
    flat[a * uE + e] = first = second = np.inf
    for k in range(K // np.uint64(2)):
        at = np.uint64(2) * k * uE + e
        first, second = min(first, flat[at]), min(second, flat[at + uE])
    least = min(min(first, second), flat[(K - np.uint64(1)) * uE + e])
    flat[a * uE + e] = v
    if v < least:
        return a
    for k in range(K):
        if flat[k * uE + e] == least:
            return k
    return a


# --- trees ------------------------------------------------------------------------------------------------------------


@part
def fits(table, levels, K):
    """Whether a table holds trees over K arms, and their levels begin where those of `levels_of` do."""
    at, count, level = 0, K, 0
    while level + 1 < len(levels) and levels[level] == at and count > (1 if level else 0):
        count = (count + WIDTH - 1) // WIDTH
        at += count * WIDTH
        level += 1
    return 0 < level == len(levels) - 1 and levels[level] == at <= table.shape[1] and count == 1


@inlined
def put(table, levels, e, i, v):
    """Give arm i of episode e the index v, and bring the nodes above it up to date."""
    j = np.int64(i)
    for level in range(len(levels) - 1):
        table[e, np.uint64(levels[level] + j)] = v
        j //= WIDTH
        block = np.uint64(levels[level] + j * WIDTH)
        v = table[e, block]
        for child in range(1, WIDTH):
            v = min(v, table[e, block + np.uint64(child)])


@inlined
def find(table, levels, e):
    """The arm of episode e with the least index, the lowest of those."""
    j = np.int64(0)
    for level in range(len(levels) - 2, -1, -1):
        block = np.uint64(levels[level] + j * WIDTH)
        v = table[e, block]
        for child in range(1, WIDTH):
            v = min(v, table[e, block + np.uint64(child)])
        i = np.int64(0)
        while i < WIDTH - 1 and table[e, block + np.uint64(i)] != v:  # a NaN equals nothing
            i += 1
        j = j * WIDTH + i
    return j


@part
def clear(table, levels, e, K, first):
    """All arms of episode e have the index `first`."""
    for j in range(table.shape[1]):
        table[e, j] = np.inf
    count = K
    for level in range(len(levels) - 1):
        for j in range(count):
            table[e, levels[level] + j] = first
        count = (count + WIDTH - 1) // WIDTH


# --- whole episodes ---------------------------------------------------------------------------------------------------


@inlined
def call_rule(rule, T, x, v, n):
    """Replace the means x (n,) of arms by their indices; T, v: (n,) floats, their pulls and variances."""
    call_routine(rule.address, rule.own, rule.centre, T, x, v, n)


@jit
def all_values(address, own, centre, T, x, v):
    """`call_rule` for callers in Python."""
    if len(T) != len(x) or len(T) != len(v):
        raise ValueError("state must have a number of pulls and a mean for each episode")
    call_routine(address, own, centre, T, x, v, len(T))


@inlined
def play_block(rule, board, sim, begin, n, steps):
    """Make so many steps of n <= 64 quiet episodes from `begin` on. Returns whether doubted indices were numbers."""
    K, E = board.table.shape
    flat, start, uE, n = board.table.reshape(-1), np.uint64(begin), np.uint64(E), np.uint64(n)
    work, sound = sim.work, True
    arm, T, mean, v, least = work.arm, work.pulls, work.mean, work.variance, work.least
    simulation.open_block(sim, start, n)
    for _ in range(steps):
        scan(flat, uE, start, n, K, least, arm)
        simulation.block_of_pulls(sim, start, n)
        call_rule(rule, T, mean, v, np.int64(n))
        if board.doubted:
            for i in range(n):
                sound &= mean[i] == mean[i]
        if board.running:
            for i in range(n):
                mean[i] = max(mean[i], least[i])
        for i in range(n):
            flat[arm[i] * uE + start + i] = mean[i]
    for i in range(n):
        board.last[start + i] = np.int64(arm[i])
    return sound


@part
def foresee(rule, board, sim, e, a, v):
    """Draw samples of arm a of episode e ahead, and find its index, now v, after each of them."""
    work, o, at = sim.work, e * np.uint64(sim.rules.K) + a, a * np.uint64(AHEAD)
    m, excess, low, high = sim.pulls[o], sim.excess[o], sim.rules.low, sim.rules.high
    simulation.draw_ahead(sim, e, a, m)
    n, x, T, indices = np.uint64(work.until[a] - m), work.ahead[at:], work.pulls, work.indices[at:]
    for i in range(n):
        excess += x[i] - low
        indices[i] = excess
    for i in range(n):
        T[i] = float(m) + float(i) + 1.0
        mean = low + indices[i] / T[i]
        indices[i] = high if high < mean else mean
    call_rule(rule, T, indices, work.variance, np.int64(n))
    for i in range(n if board.running else np.uint64(0)):
        v = indices[i] = max(indices[i], v)


@inlined
def play_ahead(rule, board, sim, e, steps):
    """Make so many steps of episode e, which is quiet. Returns whether doubted indices were numbers."""
    K, uE, flat, work = np.uint64(sim.rules.K), np.uint64(board.table.shape[1]), board.table.reshape(-1), sim.work
    pulls, since, until, indices, samples = sim.pulls, work.since, work.until, work.indices, work.ahead
    ends, known, sound, y = (sim.rules.low, sim.rules.high), simulation.statistics(sim), True, 0.0
    for k in range(K):
        work.whose[k], since[k] = e * K + k, pulls[e * K + k]
        until[k] = since[k]
    arm = last = np.uint64(choose(board, e))
    for _ in range(steps):
        o = e * K + arm
        m = pulls[o]
        if m == until[arm]:
            foresee(rule, board, sim, e, arm, flat[arm * uE + e])
        at = arm * np.uint64(AHEAD) + np.uint64(m - since[arm])
        v, y = indices[at], samples[at]
        sound &= v == v
        pulls[o] = m + 1
        simulation.enter(float(m), ends, y, o, known)
        last, arm = arm, least_of(flat, uE, e, K, arm, v)
    board.last[e], sim.sample[e] = np.int64(last), y
    return sound


@inlined
def look(rule, board, sim, e):
    """Take in what the arm chosen last has shown in episode e; returns 0, or what stands in place of the next arm."""
    K, D = np.uint64(sim.rules.K), np.uint64(sim.rules.D)
    a = min(np.uint64(board.last[e]), K - np.uint64(1))  # whatever has been put there
    o, scan = e * K + a, len(board.levels) == 0
    pulls = sim.pulls[o]
    if pulls == 0 and scan:  # the episode has just begun
        for k in range(K):
            board.table[k, e] = board.first
    elif pulls == 0:
        clear(board.table, board.levels, e, np.int64(K), board.first)
    else:
        T, x, variance = sim.work.pulls, sim.work.mean, sim.work.variance
        T[0], variance[0] = float(pulls), 0.0
        for d in range(D):
            variance[0] += sim.variance[o * D + d] / D
        if rule.measure == 0:
            x[0] = sim.mean[o]
        elif np.isnan(board.given[e]):
            call_routine(rule.measure, sim.pulls[o:], sim.mean[o * D :], 1, rule.numbers, x)
            if x[0] == UNDECIDED:
                return UNPLAYED
        else:
            x[0], board.given[e] = board.given[e], np.nan
        call_rule(rule, T, x, variance, 1)
        v = x[0]
        if board.running:
            v = max(v, board.table[a, e] if scan else board.table[e, a])
        if np.isnan(v):
            return NO_NUMBER
        if scan:
            board.table[a, e] = v
        else:
            put(board.table, board.levels, e, a, v)
    return 0


@inlined
def choose(board, e):
    """The arm of episode e with the least index."""
    if len(board.levels) == 0:
        flat, uE, K = board.table.reshape(-1), np.uint64(board.table.shape[1]), np.uint64(len(board.table))
        arm = np.int64(least_of(flat, uE, e, K, np.uint64(0), flat[e]))
    else:
        arm = find(board.table, board.levels, e)
    board.last[e] = arm
    return arm


@kernel(nogil=True)
def play(rule: Rule, board: Board, playing: Playing, out: Ints):
    """Play every episode whose `out` is UNPLAYED, as `player` does.

    Where no margin is measured, all episodes are to be played: blocks side by side as far as all are quiet, then each
    on its own. An index that is no number is shown by an action NO_NUMBER; an episode whose next margin the problem's
    routine leaves undecided stays UNPLAYED.
    """
    sim, quiet = playing.sim, playing.quiet
    E, K, sound = len(out), sim.rules.K, True
    tree = len(board.levels) > 0
    if len(board.last) < E or (board.table.shape[0] if tree else board.table.shape[1]) < E:
        raise ValueError("state must have a row for each episode")
    if not (fits(board.table, board.levels, K) if tree else board.table.shape[0] == K):
        raise ValueError("state must have an index for each arm")
    ahead = not tree and rule.measure == 0 and not rule.spread and sim.rules.drawer != 0
    ahead &= not sim.rules.priced and len(sim.arms) == 0
    for begin in range(0, E, BLOCK):
        end = min(begin + BLOCK, E)
        steps, live = quiet.steps, len(board.levels) == 0 and end - begin >= FEW and rule.measure == 0
        live &= not sim.rules.priced
        for episode in range(begin, end):
            live &= sim.status[episode] == LIVE
            steps = min(steps, quiet.most[episode] - sim.spent[episode])
        steps = steps if live else 0
        if steps > 0:
            for episode in range(begin, end):
                sound &= look(rule, board, sim, np.uint64(episode)) == 0
            sound &= play_block(rule, board, sim, begin, end - begin, steps)
            for episode in range(begin, end):
                simulation.spend(sim, np.uint64(episode), 0, steps)
        for episode in range(begin, end):
            e, left = np.uint64(episode), quiet.steps - steps
            if out[e] != UNPLAYED:
                continue
            out[e] = K
            many = min(left, quiet.most[e] - sim.spent[e])
            if ahead and sim.status[e] == LIVE and many >= 32 * K:
                sound &= look(rule, board, sim, e) == 0
                sound &= play_ahead(rule, board, sim, e, many)
                simulation.spend(sim, e, 0, many)
                left -= many
            while sim.status[e] != ENDED:
                found = look(rule, board, sim, e)
                if found < 0:
                    out[e] = found
                    break
                arm = choose(board, e)
                if left == 0 or sim.status[e] != LIVE or sim.spent[e] >= quiet.most[e]:
                    out[e] = arm
                    break
                simulation.pull_once(sim, e, arm)
                left -= 1
    if not sound:
        out[0] = NO_NUMBER


# --- rules ------------------------------------------------------------------------------------------------------------


class ArmRule(NamedTuple):
    """The index of one arm, for compiled code: `function(own, T, x - centre)`, T its pulls and x its mean.

    A function of four arguments is given its variance too, of several coordinates the mean of theirs.
    """

    function: Callable[..., Any]
    own: Any  # a NamedTuple of numbers and contiguous arrays of numbers
    centre: float = 0.0
    measure: Measure | None = None  # what finds margins, which then stand in the place of x - centre


class CompiledRule:
    """A rule whose routine can be called as long as this is kept; `measured`: a problem's routine finds margins."""

    def __init__(self, rule: ArmRule) -> None:
        kind = kind_of(rule.own)
        self._own, self._record = rule.own, np.array(address_of(kind).words(rule.own), np.int64)
        self._measure, self._routine = rule.measure, _routine(rule.function, kind)
        self._called = self._routine.address, self._record.ctypes.data, rule.centre
        spread = rule.function.__code__.co_argcount == 4
        self.measured, by = rule.measure is not None, rule.measure
        self.rule = Rule(*self._called, spread, *((0, np.zeros(1)) if by is None else (by.routine.address, by.numbers)))

    def values(self, T: Floats, x: Floats, v: Floats | None = None) -> Floats:
        """The indices (n,) of arms with T pulls, means x, or margins where those are read, and variances v, (n,)."""
        out, T = np.array(x, np.float64, order="C"), np.ascontiguousarray(T, np.float64)  # read by their addresses
        all_values(*self._called, T, out, T if v is None else np.ascontiguousarray(v, np.float64))
        return out


@functools.cache
def _routine(function: Callable[..., Any], own: kernels.StructKind) -> Any:
    """The routine of `call_rule` for such a rule."""
    more = ", v[i]" if function.__code__.co_argcount == 4 else ""
    body = f"""    T, x, v = carray(T, n), carray(x, n), carray(v, n)
    for i in range(n):
        x[i] = one(own, T[i], x[i] - centre{more})
"""
    made = assemble(function, "routine", dict.fromkeys(("own", "centre", "T", "x", "v", "n")), body, carray=carray)
    return routine(made, address_of(own), "float64", "float64*", "float64*", "float64*", "int64")


@functools.cache
def _own(names: tuple[str, ...]) -> type[Any]:
    """A NamedTuple of these fields, always the same class for the same names."""
    return namedtuple("Own", names)


def rule_of_method(agent: Any, name: str, centre: float, measure: Measure | None = None) -> ArmRule | None:
    """The method `index` or `value` of an agent as it stands; None where it reads what kernels cannot.

    Its `self` becomes a NamedTuple of those of the agent's attributes that it reads: numbers. Not taken is what a
    routine would do otherwise than NumPy: looking into arrays, where no end is checked; raising errors, which get lost;
    and functions of all arms together. The method's second argument is a mean less `centre`, or a margin by `measure`.
    """
    method = getattr(type(agent), name)
    code = getattr(method, "__code__", None)
    if code is None or code.co_freevars or code.co_argcount != 3 or code.co_flags & VARIADIC:
        return None
    if REDUCTIONS.intersection(code.co_names) or any(step.opname in RAISING for step in dis.get_instructions(code)):
        return None
    around = [method.__globals__.get(one) for one in code.co_names]
    known = {one: vars(agent).get(one, getattr(type(agent), one, None)) for one in code.co_names}
    if any(isinstance(value, (np.ndarray, list, dict, set)) for value in (*around, *known.values())):
        return None
    read = {one: value for one, value in known.items() if isinstance(value, NUMBERS)} or {"nothing": 0.0}
    if any(one.startswith("_") for one in read):
        return None
    return ArmRule(method, _own(tuple(read))(**read), centre, measure)


_REFUSED: set[Any] = set()  # functions, and what they read, that Numba does not take: it takes long to say so


def compiles(
    rule: ArmRule, plain: Callable[[Floats, Floats], Floats], low: float, high: float, most: float = 1e6
) -> bool:
    """Whether Numba takes a rule, and makes the same of means low .. high, pulls to `most`, as NumPy, `plain`(T, x)."""
    if (rule.function, type(rule.own)) in _REFUSED:
        return False
    pulls = [n for n in (1.0, 2.0, 3.0, 10.0, 317.0, 1e6) if n <= most]
    T, x = (part.reshape(-1) for part in np.meshgrid(pulls, np.linspace(low, high, 7)))
    try:
        with np.errstate(all="ignore"):
            value = plain(T.copy(), x.copy())
    except Exception:  # a user's function may raise anything; it is called again where the error can be raised
        return False
    try:
        out = CompiledRule(rule).values(T, x)
    except errors.NumbaError:
        _REFUSED.add((rule.function, type(rule.own)))
        return False
    except (TypeError, OverflowError):
        return False
    if np.shape(value) != out.shape or np.asarray(value).dtype.kind not in "biuf":
        return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(out, value, rtol=1e-9, atol=0.0, equal_nan=True))
