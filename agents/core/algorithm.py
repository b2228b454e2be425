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

From the fields the base class makes the state of a batch of episodes, and the structs that compiled code is given: they
are attributes of the class, where caches on disk find their types.
"""

from __future__ import annotations

import dis
import functools
import inspect
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import (
    Kernel,
    certain,
    decided,
    episode_kernel,
    flag,
    fleeting,
    inlined,
    integer,
    last_fields,
    number,
    view,
)
from bandit_envs.simulation import MOST_TIMES, Playing, Quiet, player

from .agent import FLOAT, INT, Agent, Bools, Ints, Observation, unfit
from .closed import ClosedState
from .statistics import shapes_of

LEAST_ARMS = 3  # arms of a plan, where there are fewer arms
NO_ARM, NO_PULL, OVERFULL = 1, 2, 3  # what is wrong with a plan: an arm that there is not; none; more than fit
# Where an episode stands in its plan. `size`: its arms. `place`: of the next one, in the plan, or in the first passes
# over the arms while those last (`beginning`). `made`: pulls of that arm. `last`: the arm chosen last. `resumed`: the
# state was made in the middle of the episode, and no plan has been begun since.
PLAN = np.dtype(
    [(one, np.int64) for one in ("size", "place", "made", "last", "beginning", "resumed", "stopped", "wrong")],
    align=True,
)
plan_of: Any = last_fields(PLAN)  # of the record of an episode: of one type in all classes, so that one code is for all
ROWS = {  # of what an algorithm may read, how an episode is given it
    **{name: f"shown.{name}[e]" for name in ("pulls", "mean", "total", "variance", "moments")},
    "seed": "shown.public_seed[e, 0]",
    "remaining": "shown.remaining[e, 0]",
}
struct_of: Any = tuple.__new__  # quicker than to call the class
REQUIRED = inspect.Parameter.empty
RULES = ("begin", "observe", "stops", "sample")
_CASTS: Mapping[Any, Callable[[str, Any], Any]] = {
    int: integer,
    float: lambda name, value: float(value),
    bool: lambda name, value: bool(value),
}
_CHECKS: Mapping[Any, Callable[[str, Any], Any]] = {int: integer, float: number, bool: flag}  # of what users give


def as_given(name: str, value: Any) -> Any:
    """A value that needs no cast."""
    return value


class Field(NamedTuple):
    """What an algorithm declares."""

    role: str  # "setting", "per_episode", "per_arm", "scratch", or "part"
    kind: Any  # int, float, bool, a dtype, an array's type or a struct; of a part what makes it of E and K
    default: Any = REQUIRED
    rows: int = 0  # of scratch; 0: it is (K,)
    row: Any = None  # of a part, a view of its rows


def setting(kind: Any = float, default: Any = REQUIRED) -> Any:
    """A number, an array or a struct that is the same in all episodes: the attribute of the agent of this name.

    Args:
        kind: `int`, `float`, `bool`, or the class of a struct; anything else for an array.
        default: makes it a parameter of the constructor, where the class has none of its own.
    """
    return Field("setting", kind, default)


def per_episode(kind: Any = int) -> Any:
    """A number of each episode, `int`, `float` or `bool`; 0 where the episode begins."""
    return Field("per_episode", kind)


def per_arm(kind: Any = float) -> Any:
    """An array over the arms of each episode, of `int`, `float`, `bool` or records; 0 where the episode begins."""
    return Field("per_arm", kind)


def scratch(kind: Any = float, rows: int = 0) -> Any:
    """An array over the arms, (K,) or (rows, K), for a computation on one episode, which keeps nothing in it."""
    return Field("scratch", kind, rows=rows)


def parts_of(make: Callable[[int, int], Any], row: Any) -> Any:
    """A struct of a batch: `make(E, K)` is an array or a NamedTuple; `row(x, e)`, a `view`, is of episode e."""
    return Field("part", make, row=row)


@fleeting
class Times(NamedTuple):
    """How often the chosen arms are to be pulled."""

    out: Ints  # (E,) filled in
    most: int  # at most so often at once


# --- the plan of an episode -------------------------------------------------------------------------------------------


@inlined
def pull(ep, i, times=1):
    """Plan to pull arm i so many times, after the arms planned so far."""
    plan = ep.now
    if plan.size < len(ep.arms):
        ep.arms[np.uint64(plan.size)] = i | 0  # a float is an error
        ep.times[np.uint64(plan.size)] = times | 0
        plan.size += 1
    else:
        plan.wrong = OVERFULL


@view
def planned(ep):
    """The arms of the last plan, which have been pulled; none before the first."""
    return ep.arms[: ep.now.size]


@inlined
def arm_at(ep, j):
    """The arm at place j of the last plan, an int64."""
    return ep.arms[np.uint64(j)]


@inlined
def count_pulls(ep):
    """The pulls of all arms so far."""
    t = 0
    for i in range(len(ep.pulls)):
        t += ep.pulls[i]
    return t


@inlined
def clear(plan):
    """Plan nothing; the first passes over the arms are over."""
    plan.size = plan.place = plan.made = plan.beginning = 0


@inlined
def check(plan, arms, times, pulls):
    """Empty a plan with an arm that there is not, or that is to be pulled less than once; `place` tells which."""
    K = len(pulls)
    for j in range(plan.size):
        if not 0 <= arms[np.uint64(j)] < K or times[np.uint64(j)] < 1:
            plan.wrong, plan.place = NO_ARM, j
    plan.size = 0 if plan.wrong == NO_ARM else plan.size


@inlined
def watch(plan, pulls):
    """Notice where a new episode has begun: the arm chosen last has no pulls."""
    if pulls[min(np.uint64(plan.last), np.uint64(len(pulls) - 1))] == 0:
        clear(plan)
        plan.beginning, plan.resumed, plan.stopped = 1, 0, 0


@inlined
def in_passes(plan, pulls, passes):
    """The next arm of the first passes over all arms; -1 where they are over."""
    K = len(pulls)
    while plan.place < passes * K and pulls[np.uint64(plan.place % K)] > plan.place // K:
        plan.place += 1
    return plan.place % K if plan.place < passes * K else np.int64(-1)


@inlined
def rarest_first(plan, arms, times, pulls):
    """Which arms of the plan have been pulled is lost: begin with the one that has least."""
    first = np.uint64(0)
    least: Any = first
    for j in range(np.uint64(1), np.uint64(plan.size)):
        least = j if pulls[np.uint64(arms[j])] < pulls[np.uint64(arms[least])] else least
    arms[first], arms[least] = arms[least], arms[first]
    times[first], times[least] = times[least], times[first]
    plan.resumed = 0


@inlined
def following(plan, arms, times, pulls, passes, most, in_bulk):
    """The next arm, of the first passes or of the plan, and how often to pull it, at most so often at once.

    The arm is -1 where the plan is over, and K after the end.
    """
    arm, many = np.int64(-1), np.int64(1)
    if plan.stopped:
        return np.int64(len(pulls)), many
    if plan.beginning:
        arm = in_passes(plan, pulls, passes)
    elif plan.place < plan.size:
        if plan.resumed and not in_bulk:
            rarest_first(plan, arms, times, pulls)
        place = np.uint64(plan.place)
        arm, many = arms[place], min(times[place] - plan.made, np.int64(most))
        plan.made += many
        if plan.made >= times[place]:
            plan.place += 1
            plan.made = 0
    plan.last = arm if arm >= 0 else plan.last
    return arm, many


# --- its compiled form ------------------------------------------------------------------------------------------------

_NEXT_ARM = """def next_arm(e, shown: Shown, batch: Batch{times}):
    ep = Episode({episode})
    own = {own}
    plan = plan_of(ep.now)
    watch(plan, ep.pulls)
    arm, many = following(plan, ep.arms, ep.times, ep.pulls, {passes}, {most}, {bulk})
    if arm < 0:
        begins = plan.beginning != 0
        if begins:{blank}
        {prepare}
        if begins:
            {begin}
        if {passes} > 0 or not begins:
            {observe}
        clear(plan)
        if {stops}:
            plan.stopped = 1
        else:
            sample(ep, own)
            check(plan, ep.arms, ep.times, ep.pulls)
            if plan.size == 0:
                plan.stopped = 1{unplanned}
        arm, many = following(plan, ep.arms, ep.times, ep.pulls, {passes}, {most}, {bulk})
    {record}return arm
"""


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
        self.key = declared, self.rules, kind.reads, kind.bulk, kind.passes, tuple(kind.parts), kind.must_plan
        numbers = [(name, one.kind) for name, one in self.fields.items() if one.role == "per_episode"]
        taken = {"form", "task", "problem", "now", "todo", "stopping", *RULES, *kind.parts, *dir(Algorithm)}
        taken |= {*kind.taken, *(name for name, _ in numbers if name in (PLAN.names or ()))}
        if twice := sorted(taken & self.fields.keys()):
            raise TypeError(f"{kind.__name__} declares {', '.join(twice)}, which has a meaning: choose another name")
        # The plan comes last: records that begin alike are taken for one another by Numba.
        self.now = np.dtype([*((name, np.dtype(one)) for name, one in numbers), *PLAN.descr], align=True)
        self.numbers = [name for name, _ in numbers]
        self.own = [(name, one) for name, one in self.fields.items() if one.role != "per_episode"]  # what `own` has

    def make_structs(self) -> None:
        """Make the structs that Python hands over, as attributes of the class."""
        names = ["pulls", "mean", *("public_seed" if name == "seed" else name for name in self.kind.reads)]
        self.Shown = certain(self._struct("Shown", dict.fromkeys(names, Any)))
        self.shown = [(name, INT if name in ("pulls", "public_seed", "remaining") else FLOAT) for name in names]
        batch = dict.fromkeys(["now", "todo"], Any) | {"stopping": bool}
        batch |= {name: one for name, (one, _) in self.kind.parts.items() if one}
        for name, one in self.own:
            typed = one.role == "setting" and (one.kind in _CASTS or hasattr(one.kind, "_fields"))
            batch[name] = one.kind if typed else Any
        self.Batch = self._struct("Batch", batch)

    def _rule(self, name: str) -> Any:
        """The function of this name, of the class or the first base that has one; mixins may be plain classes."""
        for base in self.kind.__mro__:
            found = vars(base)["rules"] if isinstance(base, _Declared) else rules_in(vars(base), base.__name__)
            if name in found:
                return found[name]
        return None

    def _struct(self, name: str, fields: Mapping[str, Any]) -> Any:
        """A NamedTuple that is an attribute of the class, where it is found by its qualified name."""
        made: Any = NamedTuple(name, list(fields.items()))  # type: ignore[misc]
        made.__module__, made.__qualname__ = self.kind.__module__, f"{self.kind.__qualname__}.{name}"
        setattr(self.kind, name, made)
        return made

    def _blank(self) -> Iterator[str]:
        """Lines that set the fields of an episode to 0."""
        yield "ep.now.made = 0"
        for name in self.numbers:
            yield f"ep.now.{name} = 0"
        for name, one in self.own:
            if one.role == "per_arm":
                yield "for i in range(len(ep.pulls)):"
                for sub in np.dtype(one.kind).names or [""]:
                    yield f"    own.{name}[i]{'.' * bool(sub)}{sub} = 0"

    @functools.cached_property
    def kernel(self) -> Kernel:
        """The kernel of a batch: `f(shown, batch, out)`, or in bulk `f(shown, batch, times, out)`."""
        kind, rule = self.kind, self.rules["sample"]
        rows = ["e", "shown", *(ROWS[name] for name in ("pulls", "mean", *kind.reads))]
        rows += ["batch.now[e]", "batch.todo[e, 0]", "batch.todo[e, 1]"]
        rows += [row for _, row in kind.parts.values()]
        names = ["e", "shown", "pulls", "mean", *kind.reads, "now", "arms", "times", *kind.parts]
        expressions = {"per_arm": "batch.{0}[e]", "part": "{0}_of(batch.{0}, e)"}
        own = ", ".join(expressions.get(one.role, "batch.{0}").format(name) for name, one in self.own)
        rules = {name: inlined(one) for name, one in self.rules.items()}
        place: dict[str, Any] = rules | {f"{name}_of": one.row for name, one in self.own if one.role == "part"}
        place |= {"Shown": self.Shown, "Batch": self.Batch, "Times": Times, "__name__": rule.__module__}
        place["Episode"] = self._struct("Episode", dict.fromkeys(names, Any))
        place["Own"] = self._struct("Own", dict.fromkeys([name for name, _ in self.own] or ["none"], Any))
        place |= {"plan_of": plan_of, "following": following, "clear": clear, "check": check, "watch": watch}
        place |= {"prepare": kind.prepare, "NO_PULL": NO_PULL, "decided": decided}
        source = _NEXT_ARM.format(
            times=", times: Times" * kind.bulk,
            bulk=kind.bulk,
            most="times.most" if kind.bulk else "1",
            record="times.out[e] = many\n    " * kind.bulk,
            passes=kind.passes if isinstance(kind.passes, int) else f"own.{kind.passes}",
            episode=", ".join(rows),
            own=f"Own({own or 0})",
            blank="".join(f"\n            {line}" for line in self._blank()),
            prepare="prepare(ep)" if kind.prepare else "pass",
            begin="begin(ep, own)" if "begin" in rules else "pass",
            observe="observe(ep, own)" if "observe" in rules else "pass",
            stops=f"batch.stopping and {'decided' * kind._brought}(stops(ep, own))" if "stops" in rules else "False",
            unplanned="\n                plan.wrong = plan.wrong or NO_PULL" * kind.must_plan,
        )
        exec(compile(source, rule.__code__.co_filename, "exec"), place)
        function: Any = place["next_arm"]
        function.__qualname__, function.__doc__, function.made_of = rule.__qualname__, rule.__doc__, rule
        return episode_kernel(function)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        """That of the class; with all that is made where the class is pickled too, as one of a script or function."""
        apart = self.kind.__module__ == "__main__" or "<locals>" in self.kind.__qualname__
        made = {name: value for name, value in vars(self).items() if name not in ("kind", "key", "kernel")}
        return (getattr, (self.kind, "form"), made) if apart else (getattr, (self.kind, "form"))


@dataclass
class AlgorithmState(ClosedState):
    """State of E episodes: where each stands, its plan, what it has declared, and scratch."""

    arrays = "now", "todo", "own"
    now: Any  # (E,) records: of `PLAN`, and the numbers of an episode
    todo: Ints  # (E, 2, R) arms of the plan, in the order of their pulls, and how often to pull each
    own: Any = field(default_factory=dict)  # {name: arrays over arms, (E, K), and other parts}
    bound: Any = field(default=None, repr=False, init=False)  # settings, and the `Batch` of all this

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


def rules_in(space: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The functions in the namespace of a class that compiled code calls."""
    plain = ((one, getattr(value, "py_func", value)) for one, value in space.items())
    plain = ((one, getattr(value, "__func__", value)) for one, value in plain)  # of a staticmethod
    found = {one: function for one, function in plain if inspect.isfunction(function)}
    given = {one: list(inspect.signature(function).parameters) == ["ep", "own"] for one, function in found.items()}
    if other := [one for one in found if given[one] and one not in RULES]:
        raise TypeError(f"{other[0]} of {name} is called by nothing: a function of (ep, own) is one of {list(RULES)}")
    found = {one: found[one] for one in RULES if one in found}
    for one, function in found.items():
        if not given[one]:
            raise TypeError(f"{one} of {name} must be a function of (ep, own), which compiled code calls")
        if function.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise TypeError(f"{one} of {name} must be a plain function, without yield and async: pull(ep, arm) plans")
        nothing, something = returns_of(function)
        if one == "stops" and nothing:
            raise TypeError(f"stops of {name} must return whether the episode stops, and returns nothing in some case")
        if one != "stops" and something:
            how = "; a sampling rule plans its pulls by pull(ep, arm)" * (one == "sample")
            raise TypeError(f"{one} of {name} returns a value, and must not: what it returns is not read{how}")
    return found


def returns_of(function: Any) -> tuple[bool, bool]:
    """Whether a function returns None, or has no return, in some case; and whether it returns something else."""
    found, last = set[bool](), None
    for one in dis.get_instructions(function):
        if one.opname in ("RETURN_CONST", "RETURN_VALUE"):
            constant = one if one.opname == "RETURN_CONST" else last
            found.add(constant is not None and "CONST" in constant.opname and constant.argval is None)
        last = one
    return True in found, False in found


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
    # Of algorithms that certify: what a `Batch` has beside fields, {name: (its type, the row of an episode)}; what is
    # done before `begin`, if anything; whether a sampling rule must plan.
    parts: ClassVar[dict[str, tuple[Any, str]]] = {}
    prepare: ClassVar[Any] = None
    must_plan: ClassVar[bool] = False
    taken: ClassVar[frozenset[str]] = frozenset()  # names that fields cannot have
    _looked_up: ClassVar[tuple[str, ...]] = ("settings", "_blank_states")

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        made = Form(cls)
        bases = (vars(base)["form"] for base in cls.__mro__[1:] if "form" in vars(base))
        cls.form = next((form for form in bases if form.key == made.key), made)
        if cls.form is made:
            made.make_structs()
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
    def settings(self) -> tuple[Any, ...]:
        """Whether the stopping rule is asked, and the settings, as compiled code takes them."""
        found: list[Any] = [self.may_stop]
        for name, one in self.form.own:
            if one.role == "setting":
                value = getattr(self, name)
                if value is one:
                    raise TypeError(f"{type(self).__name__} must set the attribute {name!r}, which it declares")
                struct = one.kind in _CASTS or hasattr(one.kind, "_fields")
                cast = _CASTS.get(one.kind, as_given)
                found.append(cast(name, value) if struct else np.array(value, order="C"))  # its own
        return tuple(found)

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

    def plan_over(self, state: AlgorithmState, pulls: Ints | None = None) -> Bools:
        """Whether all pulls of the last plan have been chosen, (E,): the next choice takes in what they have shown.

        pulls: (E, K), those included that have no results yet. The first passes over the arms are a plan, too, and
        leave out arms that an episode without its state had pulled before: only `pulls` tells of these.
        """
        now, passes = state.now, getattr(self, self.passes) if isinstance(self.passes, str) else self.passes
        passed = now["place"] >= passes * self.task.K - 1 if pulls is None else (pulls >= passes).all(axis=-1)
        return np.where(now["beginning"] != 0, passed, now["place"] >= now["size"])

    def batch(self, state: AlgorithmState) -> Any:
        """The struct of a state, for compiled code."""
        settings = self.settings
        if state.bound is None or state.bound[0] is not settings:
            if state.kept is None and not self._brought:  # put together by a user, maybe of arrays of another state
                state.close(anew=True)
            whole = AlgorithmState(*state.parts)
            if wrong := next(misfits(whole, *self._blank_states, len(whole.now)), ""):  # kernels read it unchecked
                raise ValueError(f"state must be one that predict of {self.name} has returned, and {wrong}")
            stopping, values = settings[0], iter(settings[1:])
            own = [next(values) if one.role == "setting" else whole.own[name] for name, one in self.form.own]
            parts, kept = self.batch_parts(whole)
            state.bound = settings, self.form.Batch(whole.now, whole.todo, stopping, *parts, *own), kept
        return state.bound[1]

    @functools.cached_property
    def _blank_states(self) -> tuple[AlgorithmState, AlgorithmState]:
        """States of one episode and of two, whose shapes tell those of any number."""
        shapes = (shapes_of(self.task, E) for E in (1, 2))
        one, two = (self.initial_state({name: np.zeros(shape) for name, shape in of.items()}) for of in shapes)
        return one, two

    def batch_parts(self, state: Any) -> tuple[tuple[Any, ...], Any]:
        """The values of `parts`, and what must be kept for as long as they are used."""
        return (), None

    def shown(self, observation: Observation, episodes: int) -> Any:
        """What the episodes have shown, as compiled code takes it."""
        found: list[Any] = [np.ascontiguousarray(observation[name], kind) for name, kind in self.form.shown]
        if len(found[0]) != episodes:
            raise unfit(found[0], found[1], episodes)
        return struct_of(self.form.Shown, found)

    def choose(self, observation: Observation, state: Any) -> Any:
        return self._called(self.form.kernel.quick, observation, state)

    plays = True

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Any:
        return self._called(player(self.form.kernel), observation, state, Playing(simulation, quiet))

    def _called(self, kernel: Any, observation: Observation, state: Any, *playing: Playing) -> Any:
        """What the kernel, or its player, makes of the episodes."""
        out = np.empty(len(state.now), INT)
        batch = state.bound[1] if state.bound is not None and state.bound[0] is self.settings else self.batch(state)
        if self.bulk:
            times = struct_of(Times, (np.empty(len(out), INT), 1 if self.task.actions == "arm" else MOST_TIMES))
            kernel(self.shown(observation, len(out)), batch, times, out, *playing)
        else:
            kernel(self.shown(observation, len(out)), batch, out, *playing)
        if self._brought:
            self._refuse_plans(state)
        return (out, times.out) if self.bulk else out

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


def _constructor(base: Callable[..., None], fields: Mapping[str, Field]) -> Callable[..., None]:
    """A constructor that takes the settings that have defaults, and by name what the one of the base class takes."""

    def __init__(self: Algorithm, task: Any, *arguments: Any, **keywords: Any) -> None:
        given = signature.bind(self, task, *arguments, **keywords)
        base(self, task, **{name: value for name, value in given.arguments.items() if name in more})
        for name, declared in fields.items():
            check = _CHECKS.get(declared.kind, as_given)
            own = getattr(type(self), name)
            setattr(self, name, check(name, given.arguments.get(name, declared.default if own is declared else own)))

    one = inspect.Parameter
    named = [one("self", one.POSITIONAL_OR_KEYWORD), one("task", one.POSITIONAL_OR_KEYWORD)]
    named += [one(name, one.POSITIONAL_OR_KEYWORD, default=declared.default) for name, declared in fields.items()]
    more = {name: parameter for name, parameter in list(inspect.signature(base).parameters.items())[2:]}
    named += [parameter.replace(kind=one.KEYWORD_ONLY) for parameter in more.values()]
    signature = inspect.Signature(named)
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__
