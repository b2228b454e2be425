"""`Algorithm`: an algorithm of a paper as a class that declares its fields and has a few compiled functions.

    class LUCB(Algorithm):
        k, epsilon = setting(int), setting(float)  # the same in all episodes: `own.k`
        t = per_episode(int)                       # a number of each episode, 0 at first: `ep.now.t += 1`
        lower = per_arm(float)                     # an array of each episode over its arms, 0 at first: `own.lower[i]`

        def begin(ep, own): ...                    # an episode begins, or goes on without its state
        def observe(ep, own): ...                  # take in what the last pulls have shown
        def stops(ep, own): ...                    # the stopping rule
        def sample(ep, own): ...                   # the sampling rule: plans pulls, by `pull(ep, arm, times)`

Every arm is pulled first, `passes` times. Whenever the planned pulls are over, the episode begins, if it does, and is
observed; then it stops, or the next pulls are planned. An episode in which none are planned stops, too. The rule of
recommendation is the plug-in answer, or the array `answer` of an algorithm that declares one, once it has stopped.

From the fields the base class makes the state of a batch of episodes, and one routine of the functions, which the
player of all algorithms (`plans`) calls by its address.
"""

from __future__ import annotations

import functools
import inspect
import math
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from bandit_envs import Simulation, kernels
from bandit_envs.kernels import StructKind, address_of, annotated, flag, integer, kind_of, number, routine
from bandit_envs.simulation import MOST_TIMES, Playing, Quiet

from .agent import INT, Agent, Bools, Ints, Observation, unfit
from .closed import ClosedState
from .declared import REQUIRED, RULES, Field, as_own, rules_in, share_of
from .plans import LEAST_ARMS, NO_PULL, OVERFULL, PLAN, SEEN, Batch, Shown, choose, decide_by, errors_of_rules, play
from .statistics import shapes_of
from .stopping import moments_of

NOT_READ: list[Any] = [np.zeros((0, 1), scalar) for scalar in SEEN.values()]
struct_of: Any = tuple.__new__  # quicker than to call the class
_CASTS: Mapping[Any, Callable[[str, Any], Any]] = {
    int: integer,
    float: lambda name, value: float(value),
    bool: lambda name, value: bool(value),
}
_CHECKS: Mapping[Any, Callable[[str, Any], Any]] = {int: integer, float: number, bool: flag}  # of what users give


class Form:
    """What is made of the fields and functions of a class, once for it and the subclasses that declare no others."""

    def __init__(self, kind: type[Algorithm]) -> None:
        self.kind, self.fields = kind, dict[str, Field]()
        for base in reversed(kind.__mro__):
            for name, value in vars(base).items():
                if isinstance(value, Field):
                    if name in self.fields:
                        raise TypeError(f"{kind.__name__} declares {name}, which a class has that it derives from")
                    self.fields[name] = value
        self.rules = {name: rule for name in RULES if (rule := self._rule(name))}
        declared = [(name, id(one)) for name, one in self.fields.items()]
        self.key = declared, self.rules, kind.reads, kind.bulk, kind.passes, kind.prepare, kind.must_plan
        numbers = [(name, one.kind) for name, one in self.fields.items() if one.role == "per_episode"]
        taken = {"form", "task", "problem", "now", "todo", *RULES, *dir(Algorithm), *kind.taken}
        taken |= {name for name, _ in numbers if name in (PLAN.names or ())}
        if twice := sorted(taken & self.fields.keys()):
            raise TypeError(f"{kind.__name__} declares {', '.join(twice)}, which has a meaning: choose another name")
        # The plan comes last: records that begin alike are taken for one another by Numba.
        self.now = np.dtype([*((name, np.dtype(one)) for name, one in numbers), *PLAN.descr], align=True)
        self.own = [(name, one) for name, one in self.fields.items() if one.role != "per_episode"]  # what `own` has
        if odd := set(kind.reads) - SEEN.keys():
            raise TypeError(f"reads of {kind.__name__} must be of {', '.join(SEEN)}, got {', '.join(sorted(odd))}")
        reads = {"pulls", "mean", *kind.reads}
        self.reads = [one for one in SEEN if one in reads]
        self.shown = [  # the place in `Shown`, the name in an observation, and the type
            (place, "public_seed" if one == "seed" else one, scalar)
            for place, (one, scalar) in enumerate(SEEN.items())
            if one in reads
        ]
        self._routines = dict[Any, Any]()

    def _rule(self, name: str) -> Any:
        """The function of this name, of the class or the first base that has one; mixins may be plain classes."""
        for base in self.kind.__mro__:
            found = vars(base)["rules"] if isinstance(base, _Declared) else rules_in(vars(base), base.__name__)
            if name in found:
                return found[name]
        return None

    def rules_for(self, *kinds: StructKind) -> Any:
        """The routine of the rules, for such fields of `ep` and `own`."""
        if kinds not in self._routines:
            one = decide_by(self.rules, self.kind.prepare)
            try:
                self._routines[kinds] = routine(one, *map(address_of, kinds), "int64", "int64", "int64", arrays=False)
            except KeyError as error:  # what Numba says of a field that a record has not
                text = f"{self.kind.__name__} has no number ep.now.{error.args[0]}: declare it by per_episode"
                raise ValueError(text) from None
        return self._routines[kinds]

    def __reduce__(self) -> Any:
        """That of the class; with all that is made where the class is pickled too, as one of a script or function."""
        apart = self.kind.__module__ == "__main__" or "<locals>" in self.kind.__qualname__
        made = {name: value for name, value in vars(self).items() if name not in ("kind", "key")} | {"_routines": {}}
        return (getattr, (self.kind, "form"), made) if apart else (getattr, (self.kind, "form"))


@dataclass
class AlgorithmState(ClosedState):
    """State of E episodes: where each stands, its plan, what it has declared, and scratch."""

    arrays = "now", "todo", "own"
    now: Any  # (E,) records: of `PLAN`, and the numbers of an episode
    todo: Ints  # (E, 2, R) arms of the plan, in the order of their pulls, and how often to pull each
    own: Any = field(default_factory=dict)  # {name: arrays over arms, (E, K), and other parts}
    bound: Any = field(default=None, repr=False, init=False)  # settings, the `Batch` of all this, and what it points to

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; arrays that are put in by hand are looked at."""
        super().__setattr__(name, value)
        vars(self)["bound"] = value if name == "bound" else None

    def __getattr__(self, name: str) -> Any:
        own = vars(self).get("own", {})
        if name in own:
            return own[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def misfits(one: Any, first: Any, second: Any, E: int, name: str = "it") -> Iterator[str]:
    """What does not fit in a part of a state of E episodes, held to the same of one episode and of two."""
    if isinstance(first, np.ndarray):
        shape = tuple(a + (E - 1) * (b - a) for a, b in zip(first.shape, second.shape, strict=True))
        if not isinstance(one, np.ndarray) or (one.dtype, one.shape, one.flags.carray) != (first.dtype, shape, True):
            yield f"{name} must be a writable array of {first.dtype} in C order, of the shape {shape}, got {one!r:.200}"
    elif isinstance(first, (tuple, dict, AlgorithmState)):
        parts, others = members(first), members(one) if type(one) is type(first) else {}
        if parts.keys() != others.keys():
            yield f"{name} must have {', '.join(map(str, parts))}, got {one!r:.200}"
            return
        for key, part in parts.items():
            yield from misfits(others[key], part, members(second)[key], E, str(key))


def members(one: Any) -> dict[Any, Any]:
    """The members of a part of a state, by name or number."""
    if isinstance(one, AlgorithmState):
        return {"now": one.now, "todo": one.todo, "own": one.own}
    return one if isinstance(one, dict) else dict(enumerate(one))


class _Declared(ABCMeta):
    """The class of algorithms: `class Own(Algorithm, certified=True)` derives from the one that certifies."""

    certifying: ClassVar[Any] = None  # which `agents.certified` puts here

    def __new__(
        mcls: type[Any], name: str, bases: tuple[type, ...], space: dict[str, Any], certified: bool = False
    ) -> Any:
        if certified:
            if mcls.certifying is None:
                raise TypeError(f"{name}: certified=True needs agents.certified, to be imported before")
            bases = tuple(mcls.certifying if base is Algorithm else base for base in bases)
        rules = rules_in(space, name)
        for one in rules:
            del space[one]
        if "stops" in rules:
            space["stops"] = True
        return super().__new__(mcls, name, bases, {**space, "rules": rules})

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        """An agent, whose settings stay from now on."""
        made = super().__call__(*arguments, **keywords)
        vars(made)["_ready"] = True
        return made

    def __setattr__(cls, name: str, value: Any) -> None:
        """Set an attribute of a class, but no function that compiled code calls."""
        if rules_in({name: value}, cls.__name__):
            raise TypeError(f"{name} of {cls.__name__} is to be defined in the class, which is put together with it")
        super().__setattr__(name, value)


class Algorithm(Agent, metaclass=_Declared):
    """An algorithm that declares its fields and has a stopping rule and a sampling rule; see the head of this file.

    Attributes:
        reads: what it reads beside pulls and means, of "total", "variance", "seed" and "remaining": `ep.total[i]`.
        bulk: whether an arm is pulled many times at once where the environment takes full actions.
        passes: how often every arm is pulled first, or the name of the setting that says so.
        answers: whether its `answer` is right at all times, not only once it has stopped.
        stops: whether the stopping rule is asked.

    Raises:
        TypeError: where the class does not set a field that it declares.
        ValueError: from `predict`, for plans with an arm that there is not, or that is pulled less than once.
    """

    form: Form  # of the class
    rules: ClassVar[dict[str, Any]] = {}
    reads: ClassVar[tuple[str, ...]] = ("total", "variance", "seed", "remaining")
    bulk: ClassVar[bool] = False
    passes: ClassVar[int | str] = 1
    answers: ClassVar[bool] = False
    # Of algorithms that certify: what is done before `begin`, a compiled function of `ep`, if anything; whether a
    # sampling rule must plan; whether what D coordinates have shown is one row.
    prepare: ClassVar[Any] = None
    must_plan: ClassVar[bool] = False
    flat: ClassVar[bool] = False
    taken: ClassVar[frozenset[str]] = frozenset()  # names that fields cannot have
    _looked_up: ClassVar[tuple[str, ...]] = ("settings", "_blank_states")

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        made = Form(cls)
        bases = (vars(base)["form"] for base in cls.__mro__[1:] if "form" in vars(base))
        cls.form = next((form for form in bases if form.key == made.key), made)
        own = {name: one for name, one in vars(cls).items() if isinstance(one, Field) and one.default is not REQUIRED}
        if own and "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls.__init__, own)  # type: ignore[method-assign]

    def __init__(self, task: Any) -> None:
        if "sample" not in self.form.rules:
            raise TypeError(f"the class {type(self).__name__} needs a sampling rule, sample(ep, own)")
        super().__init__(task)
        for name, one in self.form.fields.items():
            if one.default is not REQUIRED and getattr(type(self), name, None) is one:
                setattr(self, name, one.default)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; settings, of which it may be one, are read again.

        Those by which kernels find their places, numbers and arrays, stay as an agent of this package was made.
        """
        kind = self.form.fields[name].kind if name in self.form.fields else float
        if kind not in (float, bool) and not self._brought and vars(self).get("_ready"):
            raise ValueError(f"{name} of {self.name} stays as the agent was made, got {value!r:.200}: make another one")
        vars(self).pop("settings", None)
        super().__setattr__(name, value)

    @property
    def may_stop(self) -> bool:
        """Whether the stopping rule is asked: the attribute `stops` by another name, which may be set."""
        return bool(self.stops)

    @may_stop.setter
    def may_stop(self, value: bool) -> None:
        vars(self)["stops"] = bool(value)

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The settings, as compiled code takes them."""
        found = dict[str, Any]()
        for name, one in self.form.own:
            if one.role == "setting":
                value = getattr(self, name)
                if value is one:
                    raise TypeError(f"{type(self).__name__} must set the attribute {name!r}, which it declares")
                if one.kind in _CASTS:
                    found[name] = _CASTS[one.kind](name, value)
                else:
                    struct = hasattr(one.kind, "_fields")
                    found[name] = as_own(annotated(name, one.kind, value) if struct else np.asarray(value))
        return found

    def initial_state(self, observation: Observation) -> Any:
        pulls = observation["pulls"]
        E, K = pulls.shape[:2]
        now = np.zeros(E, self.form.now)
        now["beginning"], now["last"], now["resumed"] = 1, np.argmax(pulls, axis=1), pulls.any(axis=1)
        state = AlgorithmState(now, np.zeros((E, 2, max(K, LEAST_ARMS)), INT))
        for name, one in self.form.own:
            if one.role == "part":
                state.own[name] = one.kind(E, K)
            elif one.role != "setting":
                shape = (E, K) if one.role == "per_arm" else (one.rows, K) if one.rows else (K,)
                state.own[name] = np.zeros(shape, one.kind)
        return state

    @property
    def _passes(self) -> int:
        return getattr(self, self.passes) if isinstance(self.passes, str) else self.passes

    def plan_over(self, state: AlgorithmState, pulls: Ints | None = None) -> Bools:
        """Whether all pulls of the last plan have been chosen, (E,): the next choice takes in what they have shown.

        pulls: (E, K), those included that have no results yet. The first passes over the arms are a plan, too, and
        leave out arms that an episode without its state had pulled before: only `pulls` tells of these.
        """
        now, passes = state.now, self._passes
        passed = now["place"] >= passes * self.task.K - 1 if pulls is None else (pulls >= passes).all(axis=-1)
        return np.where(now["beginning"] != 0, passed, now["place"] >= now["size"])

    def batch(self, state: AlgorithmState) -> Batch:
        """The episodes of a state, for compiled code."""
        settings = self.settings
        if state.bound is None or state.bound[0] is not settings:
            if state.kept is None and not self._brought:  # put together by a user, maybe of arrays of another state
                state.close(anew=True)
            whole = AlgorithmState(*state.parts)
            if wrong := next(misfits(whole, *self._blank_states, len(whole.now)), ""):  # kernels read it unchecked
                raise ValueError(f"state must be one that predict of {self.name} has returned, and {wrong}")
            beside, kept = self.beside(whole)
            state.bound = settings, self._batch(whole, beside), (beside, kept, *whole.parts, dict(whole.own))
        return state.bound[1]  # type: ignore[no-any-return]

    def _some_rows(
        self, whole: AlgorithmState, beside: dict[str, Any]
    ) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], list[StructKind]]:
        """`rows_of` the first two episodes, with places for what will be shown, and the kinds of the two."""
        E, K, D = len(whole.now), self.task.K, self.task.D
        of_arms = np.zeros((K, D) if D > 1 and not self.flat else K * D)
        forms = {"pulls": np.zeros(K, INT), "moments": np.zeros(0), "seed": 0, "remaining": 0}
        shown = {name: forms.get(name, of_arms) for name in self.form.reads}
        rows = [self.rows_of(whole, beside, shown, e) for e in range(min(E, 2))]
        return rows, [StructKind(tuple((name, kind_of(one, name)) for name, one in each.items())) for each in rows[0]]

    def _batch(self, whole: AlgorithmState, beside: dict[str, Any]) -> Batch:
        E, blank = len(whole.now), list[tuple[int, int]]()
        some = whole if E else self._blank_states[0]
        rows, kinds = self._some_rows(some, beside)
        ep, own = map(address_of, kinds)
        plan, begin = some.now["size"].ctypes.data, ep.first[-1]
        words = [np.array([*ep.words(one.values()), *own.words(two.values()), plan], INT) for one, two in rows]
        words[-1][-1] += (len(words) - 1) * some.now.itemsize
        table = words[0] + np.arange(E)[:, None] * (words[-1] - words[0])  # addresses are evenly spaced
        if first := self.form.now.fields["size"][1]:  # type: ignore[index]
            blank.append((ep.first[ep.fields.index("now")], first))
        blank += [
            (begin + own.first[own.fields.index(name)], whole.own[name].itemsize * self.task.K)
            for name, one in self.form.own
            if one.role == "per_arm"
        ]
        places = [ep.first[ep.fields.index(name)] if name in ep.fields else -1 for name in SEEN]
        rules = self.form.rules_for(*kinds).address, begin, self._passes, self.may_stop, self.must_plan, self.bulk
        return Batch(table, whole.todo, np.array(places), np.array(blank, INT).reshape(-1, 2), *rules)

    def rows_of(
        self, whole: AlgorithmState, beside: dict[str, Any], shown: dict[str, Any], e: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of `ep` and of `own` of episode e, of which this is `shown`."""
        ep = {"e": e, **shown, "now": whole.now[e : e + 1].reshape(())}
        ep |= {"arms": whole.todo[e, 0], "times": whole.todo[e, 1], **beside}
        own, blank = dict(self.settings), self._blank_states
        for name, one in self.form.own:
            if one.role == "part":
                own[name] = share_of(whole.own[name], blank[0].own[name], blank[1].own[name], e)
            elif one.role != "setting":
                own[name] = whole.own[name][e] if one.role == "per_arm" else whole.own[name]
        return ep, own

    @functools.cached_property
    def _blank_states(self) -> tuple[AlgorithmState, AlgorithmState]:
        """States of one episode and of two, whose shapes tell those of any number."""
        shapes = (shapes_of(self.task, E) for E in (1, 2))
        one, two = (self.initial_state({name: np.zeros(shape) for name, shape in of.items()}) for of in shapes)
        return one, two

    def kernels_needed(self) -> tuple[Any, ...]:
        if self._brought:  # whose modules no other process is to import
            return (play,)
        _, kinds = self._some_rows(self._blank_states[0], self.form_beside())
        return play, (rules_of, type(self), *kinds)

    def form_beside(self) -> dict[str, Any]:
        """Values of the forms of those of `beside`, without what these cost."""
        return {}

    def beside(self, whole: AlgorithmState) -> tuple[dict[str, Any], Any]:
        """What else an episode has, {name: value}, the same for all; and what to keep as long as it is used."""
        return {}, None

    def shown(self, observation: Observation, episodes: int) -> Shown:
        """What the episodes have shown, as compiled code takes it."""
        if "moments" in self.form.reads:
            observation = {**observation, "moments": moments_of(observation)}
        found = NOT_READ.copy()
        for place, name, scalar in self.form.shown:
            found[place] = np.ascontiguousarray(observation[name], scalar)
        if self.task.D > 1:
            found = [one.reshape(len(one), math.prod(one.shape[1:])) for one in found]
        if len(found[0]) != episodes:
            raise unfit(found[0], found[1], episodes)
        return struct_of(Shown, found)  # type: ignore[no-any-return]

    def choose(self, observation: Observation, state: Any) -> Any:
        return self._called(choose.quick, observation, state)

    plays = True

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Any:
        return self._called(play.quick, observation, state, Playing(simulation, quiet))

    def _called(self, kernel: Any, observation: Observation, state: Any, *playing: Playing) -> Any:
        """What the chooser, or the player, makes of the episodes."""
        E = len(state.now)
        out, most = np.empty((2, E), INT), MOST_TIMES if self.bulk and self.task.actions != "arm" else 1
        batch = state.bound[1] if state.bound is not None and state.bound[0] is self.settings else self.batch(state)
        shown = self.shown(observation, E)
        if self._brought or kernels.CHECKS_BOUNDS:
            with errors_of_rules() as errors:
                kernel(batch, shown, most, out, *playing)
            if errors:
                raise errors[0]
            self._refuse_plans(state)
        else:
            kernel(batch, shown, most, out, *playing)
        return (out[0], out[1]) if self.bulk else out[0]

    def _refuse_plans(self, state: Any) -> None:
        """Refuse plans of a user's own class that none can follow."""
        if not state.now["wrong"].any():
            return
        e = int(np.flatnonzero(state.now["wrong"])[0])
        wrong, place = state.now["wrong"][e], state.now["place"][e]
        if wrong == NO_PULL:
            raise ValueError(f"the sampling rule of {self.name} has planned no pull, where the answer is not certified")
        if wrong == OVERFULL:
            raise ValueError(f"a plan of {self.name} has more arms than there are, {state.todo.shape[2]} at most")
        (arm, times), last = state.todo[e, :, place], self.task.K - 1
        text = f"the sampling rule of {self.name} has planned {times} pulls of arm {arm}:"
        raise ValueError(f"{text} arms are 0 .. {last}, and an arm is pulled once or more often")

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The plug-in answer; the algorithm's own once it has stopped, where it declares `answer`."""
        answer = super().recommend(observation, state, slots)
        if state is None or "answer" not in self.form.fields:
            return answer
        rows: Any = (0 if answer.ndim == 1 else slice(None)) if slots is None else slots
        own = self.answers | (state.now["stopped"][rows][..., None] != 0)
        return np.where(own, state.own["answer"][rows], answer)


def rules_of(kind: type[Algorithm], *kinds: StructKind) -> Any:
    """`Form.rules_for` of a class."""
    return kind.form.rules_for(*kinds)


def _constructor(base: Callable[..., None], fields: Mapping[str, Field]) -> Callable[..., None]:
    """A constructor that takes the settings that have defaults, and by name what the one of the base class takes."""

    def __init__(self: Algorithm, task: Any, *arguments: Any, **keywords: Any) -> None:
        given = signature.bind(self, task, *arguments, **keywords)
        base(self, task, **{name: value for name, value in given.arguments.items() if name in more})
        for name, declared in fields.items():
            own = getattr(type(self), name)
            value = given.arguments.get(name, declared.default if own is declared else own)
            setattr(self, name, _CHECKS[declared.kind](name, value) if declared.kind in _CHECKS else value)

    one = inspect.Parameter
    named = [one("self", one.POSITIONAL_OR_KEYWORD), one("task", one.POSITIONAL_OR_KEYWORD)]
    named += [one(name, one.POSITIONAL_OR_KEYWORD, default=declared.default) for name, declared in fields.items()]
    more = {name: parameter for name, parameter in list(inspect.signature(base).parameters.items())[2:]}
    named += [parameter.replace(kind=one.KEYWORD_ONLY) for parameter in more.values()]
    signature = inspect.Signature(named)
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__
