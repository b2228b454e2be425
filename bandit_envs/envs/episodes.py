"""E episodes of one setting: pulls, observations, and the verdict at the end. Both environments use it."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from ..instances.instance import Instance, drawn
from ..kernels import rng
from ..kernels.ahead import expect
from ..kernels.checks import as_array, integer, integers
from ..kernels.compiled import jit
from ..kernels.naming import unknown
from ..problems import BELIEFS, KEPT, Lookahead, Problem
from ..problems.task import Task
from ..simulation.arrays import ENDED, SPENT
from ..simulation.simulator import UNCHECKED, Simulator
from ..stopping import Certifier
from .history import History
from .observations import FeatureTable, box_of, with_pending
from .setting import Setting, check_id
from .waiting import Waiting

Array = NDArray[Any]
Table = Annotated[NDArray[np.float64], 2]
Info = dict[str, Any]


@jit
def _seen(rows: NDArray[np.int64], pulls: Annotated[NDArray[np.int64], 2], mean: Table, out: Table):
    """Fill `out` with the means of the episodes `rows`, NaN for arms never pulled."""
    K, D = np.uint64(pulls.shape[1]), np.uint64(mean.shape[1] // pulls.shape[1])
    for i in range(len(rows)):
        e = np.uint64(rows[i])
        for k in range(K):
            for d in range(D):
                m = mean[e, k * D + d]
                out[np.uint64(i), k * D + d] = m if pulls[e, k] != 0 else np.nan


@jit
def _in_order(out, slots, table, order):
    """Put tables (n, K, (N + 1) D), or one, into out[slots], their first N groups of D in the orders (n, N)."""
    N = order.shape[1]
    D = out.shape[2] // (N + 1)
    for i in range(len(slots)):
        one, to = table[i if len(table) > 1 else 0], out[slots[i]]
        for k in range(len(one)):
            for n in range(N + 1):
                for d in range(D):
                    to[k, n * D + d] = one[k, (order[i, n] if n < N else N) * D + d]


def _shown(action: Any) -> str:
    """An action that is none, for messages: of a dict its keys, as its arrays may be long."""
    if not isinstance(action, Mapping):
        return f"{action!r:.200}"
    keys = ", ".join(map(str, action))
    return f"a dict with the keys {keys:.200}" if keys else "an empty dict"


def fresh_root() -> int:
    """A root seed from the system's entropy."""
    return int(np.random.SeedSequence().generate_state(2, np.uint64)[0] >> np.uint64(1))


def read_options(options: Any, known: Sequence[str]) -> Mapping[str, Any]:
    """The `options` of a reset, checked."""
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict or None, got {options!r:.200}")
    for name in options or {}:
        if name not in known:
            raise unknown("option of reset", name, known)
    return options or {}


class Episodes:
    """Slots 0 .. E - 1, each of which runs one episode at a time."""

    def __init__(self, setting: Setting, count: int) -> None:
        task = setting.task
        self.setting, self.problem, self.E, self.K = setting, setting.problem, count, task.K
        self.full, self.stop = task.actions == "full", task.stop
        arms, fixed = setting.source.arms, setting.fixed
        self._split = arms.split if task.pull == "coordinate" else None
        pulled = arms if self._split is None else arms.coordinates()  # for the simulator each coordinate is an arm
        self._items = task.items or 0  # rows of a table
        self.once, self.slots = np.ones(count, np.int64), np.arange(count)
        self._answers_shape = (count, task.K)
        # One row of truth, means and parameters for all episodes, or a row for each.
        self.shared = fixed is not None and not setting.shuffle_arms and not task.items
        if self.shared:
            self.means, self.truth = arms.means[None], self.problem.truth(arms.means)[None]
            self._rows = None
        else:
            self.means, self.truth = np.zeros((count, *arms.means.shape)), np.zeros((count, task.K))
            self._rows = np.zeros((count, *pulled.parameters.shape))
        same = "budget", "max_pulls", "pull_cost", "can_stop", "keeps_moments", "cost"
        rules: dict[str, Any] = {name: getattr(task, name) for name in same}
        expect("end", _seen, *self.problem.kernels_needed)
        self.simulator = sim = Simulator(pulled, count, self._rows, full=self.full, salt=setting.salt, **rules)
        sim.pulled = "an arm" if self._split is None else "arm * D + coordinate"
        self.pulls = sim.pulls.reshape(count, *task.shape)
        total, mean, variance = (x.reshape(count, *arms.means.shape) for x in (sim.total, sim.mean, sim.variance))
        self.mean, self.variance = mean, variance
        self._history = History(task, count) if task.observation == "history" else None
        believes = setting.reward == "gain" or setting.ranked or task.observation in BELIEFS
        self._lookahead = task.lookahead() if believes else None
        # The arms in the order in which they were shown last, (E, K).
        self.order = np.tile(np.arange(task.K), (count, 1))
        # Where the arms of the instance's list are in the episode, (E, K), if they come in a random order.
        self.places = self.order.copy() if setting.shuffle_arms else None
        prices = np.array(task.cost if isinstance(task.cost, tuple) else [1.0] * task.K)
        if self.problem.control_arm is not None:
            prices[self.problem.control_arm] = 0.0
        self._alike = [np.flatnonzero(prices == price) for price in np.unique(prices)]  # arms that may change places
        self._gain = np.zeros(count) if setting.reward == "gain" else None
        self.waiting = Waiting(task, sim, self.problem.local or bool(task.items)) if task.waits else None
        self.choose_advance()
        statistics = {"pulls": self.pulls, "total": total, "mean": mean, "variance": variance}
        beside = {"moments": sim.moments, "scores": sim.scores}
        statistics |= {name: array for name, array in beside.items() if array is not None}
        shown = statistics if self._history is None else self._history.shown()
        if self.waiting is not None:
            shown["pending"] = self.waiting.pending
        self._live = {**shown, "remaining": sim.remaining, "public_seed": sim.public_seed}
        self._kept, self._view = np.full((count * believes, task.K, KEPT), np.nan), None
        if type(self._lookahead) is Lookahead and task.observation in BELIEFS:
            out = self._believed = np.empty((count, *box_of(task.K, task.observation).shape), np.float32)
            self._view = self._lookahead.viewer(sim.pulls, sim.total, self._kept, setting.ranked, self.order, out)
        self._features = FeatureTable(task, self.problem, count) if task.observation == "features" else None

    def plain_arms(self, action: Any, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """The arms of an action of the arm form, of the given shape."""
        try:
            return integers("an action", action, shape)
        except ValueError:
            if not isinstance(action, Mapping):
                raise
            one = "an arm, an integer" if shape == () else f"an array of arms of shape {shape}"
            text = f"with actions='arm' an action is {one}, got {_shown(action)};"
            raise ValueError(f"{text} full actions need actions='full'") from None

    def begin(self, rows: NDArray[np.int64], key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> None:
        """Start episodes in the slots `rows` (n,): number episode[e] of the root whose key is key[:, e] in slot e."""
        self.simulator.begin(rows, key, episode)
        if self.waiting is not None:
            self.waiting.clear(rows)
        if self._history is not None:
            self._history.clear(rows)
        if self._rows is None:
            return
        if len(rows) < self.E:
            key, episode = key[:, rows], episode[rows]
        means, table = drawn(self.setting.source, key, episode)
        if self._items and self.setting.fixed is not None:
            table = table[:1]  # one for all
        if self.places is not None:
            shuffled = rng.uniforms(key, episode, self.K, stream=rng.SHUFFLE)[..., 0]
            order = np.empty(shuffled.shape, np.int64)
            for group in self._alike:
                order[:, group] = group[np.argsort(shuffled[:, group], axis=1)]
            table = np.take_along_axis(table, order[:, :, None], axis=1)
            means = np.take_along_axis(means, order if means.ndim == 2 else order[:, :, None], axis=1)
            self.places[rows] = np.argsort(order, axis=1)
        if self._items:
            _in_order(self._rows, rows, table.copy(), rng.orders(key, episode, self._items))
        else:
            self._rows[rows] = table if self._split is None else self._split(table)
        self.means[rows] = means
        self.truth[rows] = self.problem.truth(means)

    def state(self) -> list[Array]:
        """The arrays that change from step to step, for `restore` on other slots of the same setting."""
        moving = [self.means, self.truth] if self._rows is None else [self.means, self.truth, self._rows]
        moving += [self.order] if self.setting.ranked else []
        moving += [] if self.places is None else [self.places]
        moving += [] if self.waiting is None else self.waiting.state()
        seen = self._history if self.setting.task.observation == "history" else None  # not one that is only kept
        return moving + self.simulator.state() + ([] if seen is None else seen.state())

    def restore(self, state: list[Array]) -> None:
        """Continue from a `state`."""
        for mine, theirs in zip(self.state(), state, strict=True):
            mine[...] = theirs

    def observe(self, copy: bool) -> Any:
        """The observations of all slots: a dict of arrays, features (E, K F) or beliefs; live views unless `copy`."""
        sim, task = self.simulator, self.setting.task
        seen: Any = None
        if self._features is not None:
            seen = self._features.fill(sim.pulls, self.seen(), sim.variance, sim.remaining)
        elif task.observation not in BELIEFS:
            seen = self._live.copy()
        if self._view is not None:
            self._view()
            seen = self._believed.copy() if copy else self._believed
        elif self._lookahead is not None and (self.setting.ranked or task.observation in BELIEFS):
            seen, self.order[...] = self._lookahead.view(sim.pulls, sim.total, seen, self.setting.ranked)
        elif copy:
            seen = {name: array.copy() for name, array in seen.items()} if isinstance(seen, dict) else seen.copy()
        if self.waiting is not None and not isinstance(seen, dict):
            counts: Any = sim.pulls, self.waiting.pending.reshape(sim.pulls.shape)
            if self.setting.ranked:
                counts = tuple(np.take_along_axis(one, self.order, axis=1) for one in counts)
            seen = with_pending(task.observation, seen, *counts)
        return seen

    def seen(self, rows: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Empirical means of the given slots (None: all), NaN for arms never pulled."""
        sim = self.simulator
        rows = self.slots if rows is None else rows
        out = np.empty((len(rows), *self.mean.shape[1:]))
        _seen(rows, sim.pulls, sim.mean.reshape(self.E, -1), out.reshape(len(rows), -1))
        return out

    def check_answers(self, arms: NDArray[np.int64], answers: Array) -> None:
        """Check the answers of the slots that stop with this action: masks, of a size that the problem allows."""
        status = self.simulator.status
        given = answers[(status == SPENT) | ((arms == self.stop) & (status != ENDED))]
        if not 0 <= given.min() <= given.max() <= 1:
            raise ValueError(f"an answer is a mask of 0 and 1, got values {given.min()} .. {given.max()}")
        size, sizes = self.problem.answer_size, given.sum(axis=1)
        if size is not None and (sizes != size).any():
            raise ValueError(f"an answer of {self.problem.name} holds {size} arms, got {sizes[sizes != size][0]}")

    def assess(
        self, rows: NDArray[np.int64], answers: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.bool_], dict[str, Array]]:
        """The answers (n, K) of slots (n,), None: the plug-in ones; and what the problem's `verdict` says of them."""
        answer = self.problem.plug_in(self.seen(rows)) if answers is None else answers
        return answer, self.problem.verdict(answer, self.truth if self.shared else self.truth[rows])

    def finish(self, rows: NDArray[np.int64], answers: Array | None) -> dict[str, Array]:
        """Score the slots `rows` (n,) that have just ended, pay for it, and return the info of the end.

        Answers (E, K) are read for slots that answered by themselves; None: plug-in answers.
        """
        sim = self.simulator
        given = None if answers is None else answers[rows] != 0
        if given is not None and (cut := sim.truncated[rows]).any():
            given[cut] = self.problem.plug_in(self.seen(rows[cut]))
        answer, verdict = self.assess(rows, given)
        if self._gain is None:
            prize = verdict["score"] if self.setting.reward == "score" else verdict["correct"]
            sim.reward[rows] += np.where(sim.truncated[rows], 0.0, prize)
        end = {"answer": answer, "correct": verdict["correct"], "is_success": verdict["correct"]}
        end |= {"score": verdict["score"], "total_pulls": sim.spent[rows]}
        if self.setting.task.cost is not None:
            end["money"] = sim.money[rows]
        if self.certifier is not None:
            end["level"] = self.level(rows, answer)
        return end | {name: verdict[name] for name in self.problem.metric_names}

    @functools.cached_property
    def certifier(self) -> Certifier | None:
        """The certifier of the level at the end of episodes: the default one with a delta, or one that was set here."""
        task = self.setting.task
        return task.level_certifier() if task.delta is not None else None

    def level(self, rows: NDArray[np.int64], answers: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """The smallest delta at which plug-in answers, or `answers` of columns, are certified (n,), at most 1."""
        if self.certifier is None:
            return np.ones(len(rows))
        sim, inside = self.simulator, np.full((len(rows), self.K), -1, np.int8)
        moments = None if sim.moments is None else sim.moments[rows]
        if sim.scores is not None:
            moments = sim.scores[rows]
            inside[...] = self.problem.plug_in(self.seen(rows)) if answers is None else answers
        return self.certifier.levels(sim.pulls[rows], self.mean[rows], self.variance[rows], inside, moments)

    def masks(self) -> NDArray[np.bool_]:
        """Allowed actions, (E, last + 1), see `Environment.action_masks`."""
        task = self.setting.task
        mask = np.ones((self.E, task.last + 1), np.bool_)
        if task.cost is not None:
            asked = self.pulls if self.waiting is None else self.pulls + self.waiting.pending
            each = [task.affords(pulls) for pulls in asked.reshape(self.E, self.K, -1).sum(axis=2)]
            able = np.repeat(each, self.stop // self.K, axis=1)
            able |= ~able.any(axis=1, keepdims=True)  # of an episode that has ended
            mask[:, : self.stop] = np.take_along_axis(able, self.order, axis=1) if self.setting.ranked else able
        mask[:, self.stop :] = task.delta is not None or task.pull_cost > 0
        return mask

    def advance(self, action: Any) -> tuple[int, Any]:
        """One step of all slots by an action, or a batch of them: how many ended, and the answers (E, K) or None."""
        if not self.full:
            arms = self.plain_arms(action, self.once.shape)
            if self.setting.ranked and self._lookahead is not None:
                arms = self._lookahead.arms(self.order, arms)
            return self._advance(arms, self.once), None
        try:
            arms, times, answers = action["arm"], action["times"], action["answer"]
        except (TypeError, KeyError, IndexError):
            raise ValueError(f"a full action is a dict of arm, times and answer, got {_shown(action)}") from None
        shape = self.once.shape
        arms, times = integers("arm", arms, shape), integers("times", times, shape)
        given, answers = answers, as_array(answers)
        if answers.shape != self._answers_shape or answers.dtype.kind not in "biu":
            raise ValueError(f"an answer is a mask of 0 and 1 of shape {self._answers_shape}, got {given!r:.200}")
        count = self._advance(arms, times, answers_checked=False)
        if count != UNCHECKED:
            return count, None
        self.check_answers(arms, answers)
        return self._advance(arms, times), answers

    def choose_advance(self) -> None:
        """Let steps do what observations, rewards and histories need, and no more."""
        plain = self._history is None and self._gain is None
        alone: Callable[..., int] = self.simulator.advance if plain else self._advance_and_more
        self._advance = alone if self.waiting is None else self._ask

    def _ask(self, arms: NDArray[np.int64], times: NDArray[np.int64], answers_checked: bool = True) -> int:
        """`Waiting.advance`; the gain of a pull is paid when its result is shown, at what was shown just before."""
        sim, waiting, look, gain = self.simulator, self.waiting, self._lookahead, self._gain
        if waiting is None or look is None or gain is None:
            return waiting.advance(arms, times, answers_checked, self._history) if waiting is not None else 0
        look.gain(sim.pulls, sim.total, np.where(arms == self.stop, arms, -1), sim.status, gain, self._kept)
        count = waiting.advance(arms, times, answers_checked, self._history, at_once=False)
        following, none = arms.copy(), np.zeros_like(sim.did)
        sim.reward += gain
        while waiting.follow(following, self._history, shows=False):
            look.gain(sim.pulls, sim.total, following, none, gain, self._kept)
            sim.reward += gain
            waiting.follow(following, self._history, shows=True)
        return count

    def _advance_and_more(self, arms: NDArray[np.int64], times: NDArray[np.int64], answers_checked: bool = True) -> int:
        """`Simulator.advance`, whose pulls go into the histories, and whose gains are paid."""
        return self._more(arms, functools.partial(self.simulator.advance, arms, times, answers_checked))

    def _more(self, arms: NDArray[np.int64], pull: Callable[[], int]) -> int:
        """A step of arms (E,) that `pull` makes, and what goes with it."""
        sim = self.simulator
        if self._lookahead is not None and self._gain is not None:  # of the state before the step
            self._lookahead.gain(sim.pulls, sim.total, arms, sim.status, self._gain, self._kept)
        count = pull()
        if count == UNCHECKED:
            return count
        if self._history is not None:
            self._history.record(sim, arms)
        if self._gain is not None:
            sim.reward += self._gain
        return count

    def bind(self, arms: NDArray[np.int64]) -> Callable[[], int]:
        """A step of single pulls of the arms that this array (E,) holds when it is called; they are not checked."""
        if self.waiting is not None:
            return functools.partial(self._ask, arms, self.once)
        pull = self.simulator.bind(arms, self.once)
        return pull if self._advance == self.simulator.advance else functools.partial(self._more, arms, pull)

    @staticmethod
    def need_reset() -> ResetNeeded:
        """The error for a step of an episode that has ended or not begun."""
        return ResetNeeded("the episode has ended (or not begun): call reset() before step()")


class Environment(ABC):
    """What the single and the vector environment have in common: a setting, episodes, and how they are copied.

    Attributes named in `bound`, which `_bind` makes, share arrays: a copy makes them itself, and takes over the state.
    """

    setting: Setting
    bound: ClassVar[tuple[str, ...]]
    _core: Episodes
    _spec: Any = None
    _roots: list[int] | None = None  # of the slots

    def _open(self, count: int) -> None:
        """Make the slots, in which no episode has begun."""
        self._key, self._episode = np.zeros((2, count), np.uint64), np.full(count, -1, np.int64)
        self._bind()

    def _start(self, rows: Array, seeds: Sequence[int | None] | None, numbers: Any = None) -> None:
        """Start episodes in the slots `rows` (n,), of new roots where `seeds` (E,) has some; `numbers` (n,): which.

        None: 0 of a new root, else the next one.
        """
        given = {} if seeds is None else {int(i): root for i in rows if (root := seeds[i]) is not None}
        if numbers is None:
            numbers = self._episode[rows] + 1
            if given:
                numbers[[int(i) in given for i in rows]] = 0
            if (last := max(numbers.tolist()) - 1) == rng.EPISODES_LIMIT - 1:
                raise ValueError(f"episode {last} is the last of its root: reset with another seed")
        else:
            for number in (min(numbers), max(numbers)):
                integer("options['episode']", number, 0, rng.EPISODES_LIMIT - 1)
        if self._roots is None:
            self._roots = [0] * len(self._episode)
            given = {i: given[i] if i in given else fresh_root() for i in range(len(self._episode))}
        if given:
            keys = {root: rng.root_key(root) for root in set(given.values())}
            for i, root in given.items():
                self._key[:, i], self._roots[i] = keys[root], root
        self._episode[rows] = numbers
        self._core.begin(rows, self._key, self._episode.view(np.uint64))

    def action_masks(self) -> NDArray[np.bool_]:
        """Allowed actions of the arm form: pulls that can be paid, and stop only where `delta` or `pull_cost` is set.

        Of shape (K + 1,), or (K,) where no action stops; of a vector environment with an axis (N,) in front.
        """
        return self._core.masks()

    @property
    def spec(self) -> Any:
        """What Gymnasium says of the environment that it has made by its id; None where it was made otherwise."""
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        check_id(spec)
        self._spec = spec

    @abstractmethod
    def _bind(self) -> None:
        """Make the attributes named in `bound`."""

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in self.bound}
        return kept | {"_state": self._core.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        episodes = state.pop("_state")
        vars(self).update(state)
        self._bind()
        self._core.restore(episodes)

    @property
    def task(self) -> Task:
        """What an agent may know."""
        return self.setting.task

    @property
    def problem(self) -> Problem:
        """What is asked: scores, margins, hardness."""
        return self.setting.problem

    @property
    def instance(self) -> Instance | None:
        """The true instance where it is the same in every episode (for oracles and reports), else None."""
        return self.setting.fixed
