"""What every agent is: a `predict` like that of a Stable-Baselines3 model, over a batch of episodes.

An agent holds settings only. What moves is its `state`, whose arrays have a leading episode axis and which
`predict` may update in place. An algorithm says which arms to pull (`choose`) and which set to answer (`recommend`);
this class turns that into actions of the form that the environment takes.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self, TypeVar, cast

import numpy as np
from numba import errors
from numpy.typing import NDArray

from bandit_envs import PROBLEMS, Problem, PureExplorationEnv, PureExplorationVectorEnv, Simulation, Task
from bandit_envs.envs import tally
from bandit_envs.kernels import choice, integers, jit, mask
from bandit_envs.simulation import Quiet

from . import parameters
from .closed import ClosedState
from .statistics import READ, checked, fitted, shapes_of
from .waiting import PENDING, first_of, predicted, put_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Observation = Mapping[str, NDArray[Any]]
Method = TypeVar("Method", bound=Callable[..., Any])
# What kernels read. NumPy takes a dtype at once, but looks up the type np.int64 at each call.
INT, FLOAT = np.dtype(np.int64), np.dtype(np.float64)
_SHAPE = operator.attrgetter("shape")
PARTS = frozenset({"arm", "times", "answer"})  # of a full action
# What a function that Numba cannot compile brings about.
UNCOMPILED = (errors.NumbaError, errors.UnsupportedBytecodeError)
# What numbers, arrays and states that do not fit bring about: of kernels, of NumPy, and of networks.
OF_INPUT = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RuntimeError, *UNCOMPILED)

# What an agent's task must have in common with another for which the agent is made again.
QUESTION = ("problem", "parameters", "K", "D", "distribution", "support", "sigma", "pull")


class Problems(Collection[str]):
    """The names of all problems of which something holds, users' own included: what an agent may say that it solves.

    The problem of a package that cannot be imported is not among them; "module:Class" is, where it holds of the class.

    Args:
        holds: whether it holds of a problem's class.
        needed: what such a problem is, for the error that an agent raises for another one: "a problem in which ...".
    """

    def __init__(self, holds: Callable[[type[Problem]], bool], needed: str = "") -> None:
        self._holds, self.needed = holds, needed

    def __contains__(self, name: object) -> bool:
        try:
            return bool(self._holds(PROBLEMS.find(name)))  # type: ignore[arg-type]
        except ValueError:
            return False

    def __iter__(self) -> Iterator[str]:
        return (name for name in PROBLEMS if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


ALL_PROBLEMS = Problems(lambda kind: True)
LOCAL_PROBLEMS = Problems(
    lambda kind: kind.local,
    "a problem in which an arm's margin depends on that arm alone, as the class of the problem says by local = True",
)


def asked(source: Any, name: str) -> Any:
    """An attribute of the environment that a source is or wraps, or of its first one; any other source itself."""
    layers: tuple[Any, ...] = (source, getattr(source, "unwrapped", None))
    for envs in layers:
        if isinstance(envs, (PureExplorationEnv, PureExplorationVectorEnv)):
            return getattr(envs, name)
    for envs in layers:
        if not isinstance(source, Task) and hasattr(envs, "get_attr"):  # SB3's VecEnv; Sync- and AsyncVectorEnv
            return asked(envs.get_attr("unwrapped" if hasattr(envs, "env_is_wrapped") else name)[0], name)
    return source


def task_of(source: Any) -> Task:
    """The task of an environment: single or vector, wrapped or not, an SB3 VecEnv, or a task itself."""
    found = source if isinstance(source, Task) else getattr(getattr(source, "unwrapped", source), "task", None)
    if isinstance(found, Task) or isinstance(found := asked(source, "task"), Task):
        return found
    raise ValueError(f"an agent needs a task or an environment of bandit_envs, got {source!r:.200}")


def by_certificate(task: Task) -> bool:
    """Whether the episodes of a task end by a certificate alone: it has a delta, and neither a budget nor a price."""
    return task.delta is not None and task.budget is None and task.pull_cost == 0


def seen_means(observation: Observation, slots: Ints | None = None) -> Floats:
    """Empirical means, NaN for arms never pulled, of the given rows of an observation (None: all)."""
    rows: Any = ... if slots is None else slots
    means = np.array(np.asarray(observation["mean"])[rows], np.float64)
    means[np.asarray(observation["pulls"])[rows] == 0] = np.nan
    return means


def shown_to(agent: Any, method: str, observation: Any) -> Any:
    """An observation as a method of an agent is given it: a user's own method gets copies, and may write to them."""
    if str(getattr(type(agent), method).__module__).startswith(("agents.", "stable_baselines3.", "sb3_contrib.")):
        return observation
    if isinstance(observation, Mapping):
        return {name: shown_to(agent, method, array) for name, array in observation.items()}
    return np.array(observation)


def unfit(pulls: NDArray[Any], mean: NDArray[Any], episodes: int) -> ValueError:
    """The error for pulls and means, or others, that do not fit a state of so many episodes."""
    return ValueError(f"pulls {pulls.shape} and mean {mean.shape} do not fit a state of {episodes} episodes")


@functools.lru_cache(maxsize=64)
def _constants(E: int, K: int) -> tuple[Ints, NDArray[np.int8]]:
    """A single pull for each of E episodes, and an answer that is not read."""
    return np.ones(E, np.int64), np.broadcast_to(np.int8(0), (E, K))


@jit
def _any_ends(arms, remaining, stop):
    """Whether any episode ends with this action: it stops, or has no budget left."""
    ends = False
    for e in range(len(arms)):
        ends |= (arms[e] == stop) | (remaining[e, 0] == 0)
    return ends


def _explaining(method: Method) -> Method:
    """A method of an observation, and maybe a state and slots, whose errors say what is wrong with these."""

    @functools.wraps(method)
    def explained(self: Any, observation: Any, state: Any = None, *slots: Any, **named: Any) -> Any:
        try:
            self._batched(observation)
            return method(self, observation, *((state, *slots) if state is not None or slots else ()), **named)
        except Exception as error:
            self._explain(error, observation, state)

    return cast(Method, explained)


class Agent(ABC):
    """A handcrafted policy.

    Args:
        task: a `Task`, or an environment, from which it is read.
        **parameters: the algorithm's own. These mean the same in all that have them: `delta`, the error probability,
            in (0, 1), `sigma`, the sub-Gaussian scale of a sample, and `width`, the range of a sample, of which None
            takes the task's; `c`, the constant of the width of an interval, > 0; `seed`, the agent's own, an integer
            in 0 .. 2^32 - 1.

    Attributes:
        name: of the algorithm. source: where it was published.
        solves: names of the problems that it solves: a tuple, `ALL_PROBLEMS`, `LOCAL_PROBLEMS` or other `Problems`.
        anytime: whether its rule does without the budget.
        needs: what it must be given where that is not the budget alone: "delta", say. Tables show it.
        observation: the form of observations that it reads, "statistics" or "history".
        stops: whether it stops by itself where the task names a delta.
        coordinates: whether it can pull single coordinates of arms.
        promises: of an algorithm for the k best arms that stops by itself, criteria by which its answer is right with
            probability 1 - delta at the problem's epsilon; see `core.confidence.tolerance_of` for the others.
        proven: whether it says that where it stops it errs with probability delta at most; `benchmark` lists it so.
        resumes: whether it goes on from an observation of running episodes where its state has been lost.
        oracles: {parameter that holds truth: function of the problem and the true means that returns it, or None}.
        own_bounds: of an algorithm with running bounds of its own, options of the problem's `certificate` that make
            it show what the algorithm itself knows; evaluations of the agent take them.
        earlier: {parameter: its name in earlier versions, by which folders of results and states know it}.
        by_place: whether this truth is of single arms, so that it needs arms that keep their order.
        prices: whether its rule copes with a budget that is money, because the task has a `cost`.
        sees_pending: whether it decides with pending results in sight, and not twice, as `waiting` has it.
        pays: whether a decision costs something outside, so that none is made for a check alone.
        counts: names of what `tallied` counts in each episode, and tables of results show.

    Raises:
        ValueError: if the algorithm does not solve the task's problem, or cannot read its observations.
    """

    name: ClassVar[str]
    source: ClassVar[str] = ""
    solves: ClassVar[Collection[str]]
    anytime: ClassVar[bool] = True
    needs: ClassVar[str] = ""
    observation: ClassVar[str] = "statistics"
    stops: bool = False
    coordinates: ClassVar[bool] = False
    promises: ClassVar[tuple[str, ...]] = ()
    proven: ClassVar[bool] = False
    resumes: ClassVar[bool] = True
    oracles: ClassVar[dict[str, Callable[[Problem, Floats], Any]]] = {}
    own_bounds: Mapping[str, Any] = MappingProxyType({})
    earlier: ClassVar[Mapping[str, str]] = MappingProxyType({})
    by_place: ClassVar[bool] = False
    prices: ClassVar[bool] = False
    sees_pending: ClassVar[bool] = False
    pays: ClassVar[bool] = False
    counts: ClassVar[tuple[str, ...]] = ()
    _parameters: dict[str, Any]
    # Shapes that were right, whether they were of a single episode, and what takes the parts out of an observation.
    _known: tuple[list[Any], bool, Any] = [], False, len
    told: frozenset[str] = frozenset()  # the oracle's parameters that `agents.make` has filled in from an instance
    _kind: type | None = None  # of what `initial_state` has returned last
    _made_by_class: ClassVar[Any] = None  # what makes an agent of this name, where that is another class
    _brought: ClassVar[bool] = False  # whether the class is a user's own
    _looked_up: ClassVar[tuple[str, ...]] = ("_kind",)  # attributes of a class that copies and pickles do not keep

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "remember" in vars(cls):
            raise TypeError(f"the class {cls.__name__} defines remember, which is initial_state since 0.3.0")
        cls._brought = not cls.__module__.startswith("agents.")
        if "recommend" in vars(cls) and not cls._brought:
            cls.recommend = _explaining(cls.recommend)  # type: ignore[method-assign]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        agent = super().__new__(cls)
        agent._parameters = parameters.copied(parameters.given(cls, arguments, keywords))
        return agent

    def __init__(self, task: Any) -> None:
        for attribute in ("name", "solves"):
            if not hasattr(self, attribute):
                raise TypeError(f"the class {type(self).__name__} needs the attribute {attribute!r}, see agents.Agent")
        self.task = task_of(task)
        self.problem = self.task.make_problem()
        if self.task.problem not in self.solves:
            needed = getattr(self.solves, "needed", "")
            why = f": it needs {needed}" if needed else ""
            solved = ", ".join(map(str, self.solves)) or "no problem, as its attribute solves is empty"
            raise ValueError(f"{self.name} solves {solved}, not {self.task.problem}{why}")
        if self.task.pull == "coordinate" and not self.coordinates:
            raise ValueError(f"{self.name} pulls whole arms, not single coordinates (pull='coordinate')")
        if self.task.cost is not None and self.task.budget is not None and not self.prices:
            able = "agents with prices = True, as uniform, random, lsa, evidence and top-two, take money"
            raise ValueError(f"{self.name} counts the pulls of a budget, which is money with cost: {able}")
        choice(f"the attribute observation of {self.name}", self.observation, tuple(READ))
        if self.task.observation != self.observation:
            raise ValueError(f"{self.name} reads observation={self.observation!r}, not {self.task.observation!r}")
        if self._brought and self.observation == "history":
            ours: Any = next(kind for kind in type(self).__mro__ if not getattr(kind, "_brought", True))
            if type(self).choose is ours.choose:
                raise TypeError(f"{self.name} reads observation='history', and must define choose(observation, state)")

    @functools.cached_property
    def _mark(self) -> str:
        """What is written on the states that this agent makes, and on those of every agent that can read them."""
        task = self.task
        question = f"{task.problem}({', '.join(f'{name}={value!r}' for name, value in task.parameters.items())})"
        own = ", ".join(f"{self.earlier.get(name, name)}={value!r}" for name, value in sorted(self._parameters.items()))
        of = f"{type(self).__module__}.{type(self).__qualname__}({own})"
        rows = f", {task.items} rows" if task.items else ""
        return f"{of} for {question}, K={task.K}, D={task.D}, {task.pull}s{rows}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the agent was made with, by name: `type(agent)(agent.task, **agent.parameters)` is equal.

        Those that were left out, and have their defaults, are not among them.
        """
        return parameters.copied(self._parameters)

    def idle(self) -> dict[str, str]:
        """Parameters that change nothing for this task, {name: why}: `agents.make` warns where they are given."""
        return {}

    def cautions(self) -> Iterator[str]:
        """What `agents.make` warns of: parameters that were given and are `idle`."""
        for name, why in self.idle().items():
            value = None if name in self.told else self._parameters.get(name)
            if value is not None:
                yield f"{self.name}: {name}={value!r:.80} has no effect, {why}"

    def for_task(self, task: Task, **changed: Any) -> Agent:
        """This agent, made again with its parameters for a task that differs in the rules of an episode.

        Args:
            task: with another budget, delta, max_pulls, pull_cost, or forms of actions and observations.
            **changed: parameters with other values.

        Raises:
            ValueError: if the task asks something else or has other arms; and as the constructor.
        """
        known = self._parameters
        if task == self.task and all(name in known and known[name] == value for name, value in changed.items()):
            return self
        differ = [name for name in QUESTION if getattr(task, name) != getattr(self.task, name)]
        if differ:
            apart = "; ".join(f"{name} {getattr(self.task, name)!r}, not {getattr(task, name)!r}" for name in differ)
            raise ValueError(f"{self.name} was made for another task: {apart}")
        return (self._made_by_class or type(self))(task, **self.parameters | changed)

    # --- what an algorithm is ---------------------------------------------------------------------------------------

    @functools.cached_property
    def _leading(self) -> tuple[str, tuple[int, ...]]:
        """A part of the observation that tells how many episodes it is of, and its shape for one of them."""
        return ("arms", (self.task.entries,)) if self.observation == "history" else ("pulls", self.task.shape)

    def initial_state(self, observation: Observation) -> Any:
        """The state of a batch of episodes, made from whatever they have seen so far."""
        return len(observation[self._leading[0]])

    @abstractmethod
    def choose(self, observation: Observation, state: Any) -> Ints | tuple[Ints, Ints]:
        """The arms to pull next, (E,), K to stop; or the pair of arms and how many times to pull each, (E,).

        Where coordinates are pulled: arm * D + coordinate, and `self.task.stop` to stop. May update `state` in place.
        With `actions="arm"` an arm is pulled once, whatever the times.
        """

    @_explaining
    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The answer as of now: a mask (E, K), or (K,) for an un-batched observation. Here: the plug-in answer.

        Args:
            observation, state: as for `predict`. slots: only these rows of the batch.
        """
        single = False
        if self.observation == "statistics":
            means = seen_means(observation, slots)
        else:
            batch, single = self._batched(observation)
            rows = batch if slots is None else {part: array[slots] for part, array in batch.items()}
            means = tally(self.task, rows)[1]
        answer = self.problem.plug_in(means)
        return answer[0] if single else answer

    def tallied(self, state: Any, slots: Ints) -> dict[str, Any]:
        """Of these episodes the `counts`, int64 (n,) each; where that of `forfeited` is 1, the score is 0."""
        return {}

    # --- what an environment, SB3 or the evaluation call --------------------------------------------------------------

    def predict(
        self,
        observation: Observation,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
        *,
        playing: tuple[Simulation, Quiet] | None = None,
    ) -> tuple[Any, Any]:
        """The next action of each episode, and the state; for results that are `pending` see `waiting`.

        An observation with no pulls starts an episode, whatever `episode_start` says; one with pulls never does. A
        randomised algorithm stays random whatever `deterministic` says.

        Args:
            observation: arrays with a leading episode axis, or without (recognised by the axes of `pulls`, or of the
                `arms` of a history).
            state: what the last call returned; None builds the state from the observation.
            episode_start, deterministic: not read.
            playing: what `play` hands on.

        Returns:
            `actions="arm"`: arms (E,); `actions="full"`: a dict of `arm` (E,), `times` (E,), `answer` (E, K) int8,
            filled where the episode ends with this action. Without the axis for an un-batched observation.

        Raises:
            ValueError: if the observation is not the statistics of the task's K arms, or a history of it. Their values
                are looked at where `state` is None: pulls are integers >= 0, means lie in the support, and there are
                none yet unless the agent `resumes`. Also for a state of another agent, and for decisions of a class of
                one's own that are none.
        """
        given, chosen = state, cast(Any, None)
        if isinstance(observation, dict) and PENDING in observation and not self.sees_pending:
            return predicted(self, observation, state)
        try:
            observation, single = self._batched(observation)
            if state is None:
                state = self._first_state(observation)
            elif getattr(state, "_made_by", None) != self._mark:
                self._check_state(observation, state)
            if self._brought and given is not None:
                state = self._begun(observation, state)
            if playing is not None:
                chosen = self.played(*playing, observation, state)
            else:
                chosen = self.choose(shown_to(self, "choose", observation) if self._brought else observation, state)
            if self._brought:
                chosen = self._decided(chosen, observation[self._leading[0]].shape[:1])
            arms, times = chosen if isinstance(chosen, tuple) else (chosen, None)
            action: Any = arms if self.task.actions == "arm" else self._full(observation, arms, times, state)
        except Exception as error:
            self._explain(error, observation, given)
        return first_of(action) if single else action, state

    def _explain(self, error: Exception, observation: Any, state: Any) -> NoReturn:
        """Raise what is wrong with an observation, if that can be found, else the error that has come up."""
        words = " ".join(f"{type(error).__name__}: {error}".split())
        try:
            if isinstance(error, OF_INPUT) and not len(checked(self.name, self.task, observation)["remaining"]):
                raise ValueError(f"{self.name} reads observations of at least one episode, got none")
        except Exception as wrong:
            clear = type(wrong) in (ValueError, TypeError)
            raise wrong if clear else ValueError(f"{self.name} cannot read the observation: {wrong!r:.300}") from error
        if self._brought and isinstance(error, UNCOMPILED):
            why = getattr(error, "summary", f"Numba cannot compile a function that it calls: {words:.300}")
            raise ValueError(f"{self.name}: {why}") from error
        clear = isinstance(error, ValueError) and (state is None or str(error).startswith(("state ", "pulls ")))
        if self._brought or clear or not isinstance(error, OF_INPUT):
            raise error
        what = "the observation, state and slots must be as predict takes them, of int64 and float64"
        raise ValueError(f"{self.name}: {what}: {words:.300}") from error

    def _decided(self, chosen: Any, shape: tuple[int, ...]) -> tuple[Ints, Ints | None]:
        """What `choose` of a user's own class has returned, checked: the arms, and the pulls of each or None."""
        arms, times = chosen if isinstance(chosen, tuple) and len(chosen) == 2 else (chosen, None)
        arms, stop = integers(f"the arms that {self.name} chooses", arms, shape), self.task.stop
        if len(wrong := np.flatnonzero((arms < 0) | (arms > stop))):
            text = f"the arms that {self.name} chooses must be integers in [0, {stop - 1}], or {stop} to stop,"
            raise ValueError(f"{text} got {arms[wrong[0]]} for episode {wrong[0]} of the batch")
        if times is not None:
            times = integers(f"the numbers of pulls that {self.name} chooses", times, shape)
        return arms, times

    def _full(self, observation: Observation, arms: Ints, times: Ints | None, state: Any) -> dict[str, NDArray[Any]]:
        """Arms as full actions, each pulled once where `times` is None, with answers where the episode ends."""
        E, K = len(arms), self.task.K
        once, answer = _constants(E, K)
        if _any_ends(arms, observation["remaining"], self.task.stop):
            slots = np.flatnonzero((arms == self.task.stop) | (observation["remaining"][:, 0] == 0))
            answer = np.zeros((E, K), np.int8)
            answer[slots] = self.recommended(observation, state, slots)
        return {"arm": arms, "times": once.copy() if times is None else times, "answer": answer}

    def kernels_needed(self) -> tuple[Any, ...]:
        """Kernels that it needs to decide and to play, for `expect`."""
        return ()

    @property
    def plays(self) -> bool:
        """Whether the agent can play whole episodes in compiled code, see `play`."""
        return False

    @property
    def most_played(self) -> float:
        """`evaluate` plays so many episodes side by side at most; with more, it calls `predict` at every step."""
        return math.inf

    @_explaining
    def begin_anew(self, observation: Observation) -> Any:
        """A state for episodes that have begun, made from what they have shown; `predict` takes it as `state`.

        Only where the state is lost: an algorithm that goes in rounds begins its first round again.
        """
        return self._made(checked(self.name, self.task, observation))

    def _batched(self, observation: Observation) -> tuple[Observation, bool]:
        """An observation with a leading episode axis, and whether it had none. All its shapes are right."""
        shapes, single, read = self._known
        try:
            parts = read(observation)
            if [*map(_SHAPE, parts)] == shapes and parts[0].dtype is INT is parts[-1].dtype:  # as in the last call
                return ({name: array[None] for name, array in observation.items()} if single else observation), single
        except (TypeError, LookupError, AttributeError):  # it is no dict, or has no arrays
            pass
        batch, single = fitted(self.name, self.task, observation)
        names = [*shapes_of(self.task, 1)]
        if batch.keys() >= {*names}:
            vars(self)["_known"] = [batch[name].shape[single:] for name in names], single, operator.itemgetter(*names)
        return batch, single

    def play(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> tuple[Any, Any]:
        """As `predict`, after the pulls that `quiet` allows; the next actions are not taken.

        Args:
            simulation: of the environment that the observation is a live view of. quiet: how far each episode may go.
            observation, state: as for `predict`; they move on with the episodes.
        """
        return self.predict(observation, state, playing=(simulation, quiet))

    def played(
        self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any
    ) -> Ints | tuple[Ints, Ints]:
        """As `choose`, after the pulls that `play` may make. To be defined by agents whose `plays` is true."""
        raise TypeError(f"{self.name} cannot play whole episodes in compiled code: see its attribute plays")

    def recommended(self, observation: Observation, state: Any, slots: Ints) -> Bools:
        """What `recommend` returns for these rows of a batch, checked: a mask, (n, K)."""
        if PENDING in observation and not self.sees_pending:
            observation, state = {name: x for name, x in observation.items() if name != PENDING}, state.state
        answer = self.recommend(shown_to(self, "recommend", observation), state, slots)
        return mask(f"the answer that {self.name} recommends", answer, (len(slots), self.task.K))

    def _made(self, observation: Observation) -> Any:
        """What `initial_state` makes of the observation, marked where its type allows: kernels read it unchecked."""
        state = self.initial_state(shown_to(self, "initial_state", observation))
        vars(self)["_kind"] = type(state)
        with contextlib.suppress(AttributeError, TypeError):  # of a number, an array, a tuple
            object.__setattr__(state, "_made_by", self._mark)
        if isinstance(state, ClosedState) and not type(self)._brought:
            state.close()
        return state

    def _first_state(self, observation: Observation) -> Any:
        """The state of a batch of which there is none yet, whose values are looked at."""
        observation = checked(self.name, self.task, observation)
        if not self.resumes and observation["pulls" if self.observation == "statistics" else "length"].any():
            raise ValueError(
                f"{self.name} goes on from its state, which statistics do not hold: hand predict the state that it "
                "returned last (pickle keeps it exactly); or, once, begin_anew(observation) to begin from what was seen"
            )
        return self._made(observation)

    def _begun(self, observation: Observation, state: Any) -> Any:
        """The state of a user's own class, made again for the episodes without a pull; our classes see to theirs."""
        if not self._brought or type(state) is int or type(state).__module__.startswith("agents."):
            return state
        seen = observation["pulls" if self.observation == "statistics" else "length"]
        slots = np.flatnonzero(~seen.reshape(len(seen), -1).any(axis=1))
        if len(slots) == len(seen):
            return self._made(observation)
        if len(slots):
            new = self.initial_state({name: array[slots] for name, array in observation.items()})
            put_rows(state, new, slots, len(seen), alone=True)
        return state

    def _check_state(self, observation: Observation, state: Any) -> None:
        """Refuse a state without the mark of this agent, unless it is of a type that bears none."""
        E, mark = len(observation[self._leading[0]]), getattr(state, "_made_by", None)
        if type(self).initial_state is Agent.initial_state:
            fits, needed = type(state) is int and state == E, f"the type int for {E} episodes"
        else:  # a user's own type may lose its mark where it is copied by its own rule: then the type is all there is
            kind: type = self._kind or type(self._made(checked(self.name, self.task, observation)))
            fits = mark is None and not type(state).__module__.startswith("agents.") and isinstance(state, kind)
            needed = f"the type {kind.__name__}, made by {self._mark:.400}"
        if not fits:
            said = f"state must be None or the state that predict of {self.name} has returned, of {needed}"
            raise ValueError(f"{said}; got {state!r:.200}" + f" of {mark!s:.400}" * (mark is not None))

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: all but what classes list as `_looked_up`, which is looked up again."""
        left = {name for kind in type(self).__mro__ for name in vars(kind).get("_looked_up", ())}
        return {name: value for name, value in vars(self).items() if name not in left}

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r:.80}" for name, value in self._parameters.items())
        return f"{type(self).__name__}({self.task.problem}, K={self.task.K}{given})"
