"""Index policies: pull the arm with the smallest index, where only the arm just pulled changes its index.

The algorithm is one NumPy line over the arms just pulled, one per episode; `index_kernels` have the argmin.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import errors_of, jit, numbers
from bandit_envs.problems import Measure
from bandit_envs.simulation import Playing, Quiet

from . import index_kernels
from .agent import FLOAT, INT, LOCAL_PROBLEMS, Agent, Bools, Floats, Ints, Observation, unfit
from .coordinates import decide
from .index_kernels import WIDTH, ArmRule, Board, CompiledRule, clear, find, fits, play, put, rule_of_method, scan
from .trees import levels_of

SCAN = 48  # up to so many arms a scan is quicker than a tree
MEASURED = 48  # with more episodes whose margins are measured, a step of all from Python costs less than playing each
_BLOCK = 256


@dataclass
class IndexState:
    """State of an index policy for E episodes."""

    table: Floats  # scan: indices (K, E); tree: (E, sum of levels), leaves first
    levels: Ints  # tree: where each level starts, and the end; empty for a scan
    last: Ints  # (E,) the arm chosen last
    T: Floats  # (E,) its pulls, at least 1
    x: Floats  # (E,) or (E, D) its empirical mean
    fresh: Bools  # (E,) the episode has just begun
    turn: Ints | None = None  # (E, K) the coordinate of each arm to pull next, where single coordinates are pulled


@jit
def _gather(pulls, mean, K, D, last, T, x, fresh):
    """Pulls and mean of the arm chosen last; an arm with no pulls tells that a new episode has begun (how many)."""
    uK, uD, begun = np.uint64(K), np.uint64(D), 0
    if min(len(T), len(fresh)) < len(last) or len(x) < len(last) * D or min(len(pulls), len(mean) // D) < len(last) * K:
        raise ValueError("state and observation must be of the same number of episodes")
    for i in range(len(last)):
        e = np.uint64(i)
        last[e] = min(np.uint64(last[e]), uK - np.uint64(1))  # whatever has been put there
        o = e * uK + np.uint64(last[e])
        T[e] = pulls[o]
        if D == 1:
            x[e] = mean[o]
        else:
            for d in range(uD):
                x[e * uD + d] = mean[o * uD + d]
    for i in range(len(last)):
        e = np.uint64(i)
        fresh[e] = T[e] == 0.0
        begun += T[e] == 0.0
        T[e] = max(T[e], 1.0)
    return begun


@jit
def _scan(table, last, value, fresh, begun, first):
    """Give the arm chosen last its new index, and choose the least, ties to the lowest arm. table (K, E)."""
    K, E = table.shape
    if min(len(last), len(value), len(fresh)) < E:
        raise ValueError("state must have a row for each episode")
    flat, uE = table.reshape(-1), np.uint64(E)
    least, arm = np.empty(_BLOCK), np.empty(_BLOCK, np.uint64)
    for start in range(0, E, _BLOCK):
        n, base = min(_BLOCK, E - start), np.uint64(start)
        for i in range(n):
            e = base + np.uint64(i)
            flat[np.uint64(last[e]) * uE + e] = value[e]
        if begun:
            for i in range(n):
                e = base + np.uint64(i)
                if fresh[e]:
                    for k in range(K):
                        flat[np.uint64(k) * uE + e] = first
        scan(flat, uE, base, n, K, least, arm)
        for i in range(n):
            last[base + np.uint64(i)] = np.int64(arm[i])


@jit
def _tree(table, levels, last, value, fresh, first, K):
    """As `_scan`, by the tree of each episode: table (E, S), levels from the leaves up to a root block."""
    if min(len(last), len(value), len(fresh)) < len(table) or not fits(table, levels, K):
        raise ValueError("state must have a row for each episode")
    for episode in range(len(table)):
        e = np.uint64(episode)
        if fresh[e]:
            clear(table, levels, e, K, first)
        else:
            put(table, levels, e, last[e], value[e])
        last[e] = min(find(table, levels, e), K - 1)  # there are only K leaves, whatever a NaN has led to


def _by_value(self: IndexPolicy, T: Floats, D: Floats) -> Floats:
    """The index of arms by their margins, where a class has `value` alone."""
    return self.value(T, D + (self.problem.boundary or 0.0))


class IndexPolicy(Agent):
    """Pull the arm with the smallest `index`; arms never pulled have the index `first`. Ties go to the lowest arm.

    `index` is given the margin of each arm by itself, and so the problem must be `local`; a subclass that defines
    `value` in its place, which is given the means, may solve others too and names them in `solves`.

    The state follows the agent's own actions: where another arm is pulled in its place, call `predict` with
    `state=None`, which builds the state from the observation.
    """

    solves: ClassVar[Collection[str]] = LOCAL_PROBLEMS
    coordinates: ClassVar[bool] = True  # by `core.coordinates`, where arms are judged by a polyhedron
    first: float = -math.inf  # every arm is pulled once, in order
    running: bool = False  # an arm's index never falls
    _looked_up = ("compiled",)  # of a class that no module holds

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.value is not IndexPolicy.value and cls.index is IndexPolicy.index:
            cls.index = _by_value  # type: ignore[method-assign]

    def __init__(self, task: Any) -> None:
        super().__init__(task)
        if self.task.pull == "coordinate" and self.problem.polyhedron is None:
            raise ValueError(f"{self.name} pulls single coordinates only where arms are judged by a polyhedron")
        if type(self).initial_state is IndexPolicy.initial_state:
            self._check_index()

    def _check_index(self) -> None:
        """Refuse an index of arms never pulled that is none, and margins of single arms where there are none."""
        try:
            found = isinstance(self.first, index_kernels.NUMBERS) and not math.isnan(self.first)
        except OverflowError:
            found = False
        if not found:
            name = f"first, the index of {self.name} for arms never pulled,"
            raise ValueError(f"{name} must be a number, got {self.first!r:.200}")
        if type(self).value is IndexPolicy.value and not self.problem.local:
            raise ValueError(
                f"{self.name} judges each arm by a margin of its own, and {self.task.problem} has none: index(T, D) "
                f"needs {LOCAL_PROBLEMS.needed}. For other problems define value(T, x), by the arms' means, or derive "
                "the agent from agents.Algorithm or agents.Agent"
            )

    @abstractmethod
    def index(self, T: Floats, D: Floats) -> Floats:
        """Index of arms with T pulls and margin D of their empirical mean (elementwise, T >= 1)."""

    def value(self, T: Floats, x: Floats) -> Floats:
        """Index of arms with T pulls and empirical means x, (n,) or (n, D)."""
        return self.index(T, self.problem.arm_margin(x))

    def arm_rule(self) -> ArmRule | None:
        """The index of one arm as a function for compiled code; None where there is none, and NumPy is used.

        Here: `value`, where a subclass has one, else `index`, where compiled code can find the margin of an arm.
        """
        if type(self).value is not IndexPolicy.value:
            rule = None if self.task.D > 1 else rule_of_method(self, "value", 0.0)
            return self.tried(rule, self.value)
        rule = self.by_margin(functools.partial(rule_of_method, self, "index"))
        return self.tried(rule, self.value if rule is None or rule.measure is None else self.index)

    def by_margin(self, make: Callable[[float, Measure | None], ArmRule | None]) -> ArmRule | None:
        """A rule made of what is taken off a mean for the margin, and of the problem's routine of margins, or None."""
        problem = self.problem
        if self.task.pull == "coordinate" or not problem.local:
            return None
        if self.task.D == 1 and problem.boundary is not None:
            return make(float(problem.boundary), None)
        return None if problem.measure is None else make(0.0, problem.measure)

    def tried(self, rule: ArmRule | None, plain: Callable[[Floats, Floats], Floats]) -> ArmRule | None:
        """A rule, if Numba takes it as it stands and makes the same of it as NumPy, `plain(T, x)`; else None."""
        if rule is None or self.task.pull == "coordinate":
            return None
        low, high = self.task.support or (rule.centre - 2 * self.task.sigma, rule.centre + 3 * self.task.sigma)
        low, high = (low, high) if rule.measure is None else (-(high - low), high - low)
        most = min(self.task.budget or math.inf, self.task.max_pulls or math.inf)
        return rule if index_kernels.compiles(rule, plain, low, high, most) else None

    @functools.cached_property
    def compiled(self) -> CompiledRule | None:
        """What `arm_rule` returns, compiled, once."""
        rule = self.arm_rule()
        return None if rule is None else CompiledRule(rule)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; the rule, which may read it, is looked up again."""
        vars(self).pop("compiled", None)
        super().__setattr__(name, value)

    def values(self, T: Floats, x: Floats) -> Floats:
        """`value`, by compiled code where there is any."""
        compiled = self.compiled
        if compiled is None:
            with errors_of(f"the index of {self.name}") if self._brought else nullcontext():
                out = self.value(T, x)
        else:
            out = compiled.values(T, self.problem.arm_margin(x) if compiled.measured else x)
        if self._brought:
            name = f"the index of {self.name}"
            out = numbers(name, out, T.shape)  # which kernels read without a look
            if np.isnan(out).any():
                raise ValueError(f"{name} must be a number, got NaN for {T[np.isnan(out)][0]:g} pulls")
        return out

    def initial_state(self, observation: Observation) -> IndexState:
        self._check_index()
        pulls, mean = observation["pulls"], np.asarray(observation["mean"], np.float64)
        E, K = pulls.shape[:2]
        turn: Ints | None = None
        if self.task.pull == "coordinate":
            both: Any = self._judge(pulls.reshape(E * K, -1), mean.reshape(E * K, -1))
            (values, turn), pulls = (one.reshape(E, K) for one in both), pulls.max(axis=2)
        else:
            flat = np.maximum(pulls.reshape(-1), 1).astype(np.float64)
            values = self.values(flat, mean.reshape(E * K, *mean.shape[2:])).reshape(E, K)
            values = np.where(pulls == 0, self.first, values)
        if K <= SCAN:
            table, levels = np.array(values.T, order="C"), np.zeros(0, np.int64)
        else:
            levels = levels_of(K, WIDTH)[:-1].astype(INT)
            table = np.full((E, levels[-1]), np.inf)
            table[:, :K] = values
            for low, high in zip(levels[:-2], levels[1:], strict=False):  # a node is the least of its block
                least = np.fmin.reduce(table[:, low:high].reshape(E, -1, WIDTH), axis=2, initial=np.inf)
                table[:, high : high + least.shape[1]] = least
        # The arm chosen last is unknown; any arm will do, as its index is up to date.
        last = np.argmax(pulls, axis=1)
        return IndexState(table, levels, last, np.empty(E), np.empty((E, *mean.shape[2:])), np.empty(E, np.bool_), turn)

    def _judge(self, pulls: Ints, x: Floats) -> tuple[Floats, Ints]:
        """Index and next coordinate of arms with pulls (n, D) and means (n, D) of their coordinates."""
        x = np.array(x, order="C")
        return decide(self.index, self.problem.polyhedron, pulls, x, self.first)  # type: ignore[arg-type]

    def choose(self, observation: Observation, state: IndexState) -> Ints:
        m, task = state, self.task
        pulls = np.ascontiguousarray(observation["pulls"], INT)
        mean = np.ascontiguousarray(observation["mean"], FLOAT)
        if len(m.last) != len(pulls) or not len(m.levels) and len(m.table) != task.K:
            raise unfit(pulls, mean, len(m.last))
        if m.turn is None:
            begun = _gather(pulls.reshape(-1), mean.reshape(-1), task.K, task.D, m.last, m.T, m.x.reshape(-1), m.fresh)
            value = self.values(m.T, m.x)
        else:
            slots, m.last = np.arange(len(m.last)), m.last.clip(0, task.K - 1)
            m.fresh = pulls.sum(axis=(1, 2)) == 0
            begun = int(m.fresh.sum())
            value, m.turn[slots, m.last] = self._judge(pulls[slots, m.last], mean[slots, m.last])
            m.turn[m.fresh] = 0
        if self.running:
            slots = np.arange(len(m.last))
            value = np.maximum(value, m.table[slots, m.last] if len(m.levels) else m.table[m.last, slots])
        if len(m.levels) == 0:
            _scan(m.table, m.last, value, m.fresh, begun, float(self.first))
        else:
            _tree(m.table, m.levels, m.last, value, m.fresh, float(self.first), task.K)
        return m.last.copy() if m.turn is None else m.last * task.D + m.turn[slots, m.last]

    def kernels_needed(self) -> tuple[Any, ...]:
        return (play,) if type(self).played is IndexPolicy.played and self.plays else ()

    @property
    def plays(self) -> bool:
        own = type(self).choose is IndexPolicy.choose and type(self).initial_state is IndexPolicy.initial_state
        return own and self.compiled is not None

    @property
    def most_played(self) -> float:
        compiled = self.compiled
        return MEASURED if compiled is not None and compiled.measured else math.inf

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: IndexState) -> Ints:
        m, compiled = state, self.compiled
        assert compiled is not None
        out, given = np.full(len(m.last), index_kernels.UNPLAYED), np.full(len(m.last), math.nan)
        playing = Playing(simulation, quiet)
        board = Board(m.table, m.levels, m.last, float(self.first), bool(self.running), self._brought, given)
        play(compiled.rule, board, playing, out)
        while (rows := np.flatnonzero(out == index_kernels.UNPLAYED)).size:  # margins are left to `arm_margin`
            x = simulation.mean.reshape(len(out), self.task.K, -1)[rows, m.last[rows]]
            given[rows] = self.problem.arm_margin(x if self.task.D > 1 else x[:, 0])
            play(compiled.rule, board, playing, out)
        if (out == index_kernels.NO_NUMBER).any():
            raise ValueError(f"the index of {self.name} must be a number, got NaN")
        return out
