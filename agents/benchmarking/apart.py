"""Agents of others in a process of their own, which is given tasks and observations alone.

No truth is in the frames above an agent there, nor among all objects: environments, roots and the numbers of episodes
stay with the benchmark. Replies are JSON and plain arrays, which run no code where they are read.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import inspect
import json
import math
import os
import pickle
import subprocess
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import FunctionType
from typing import Any, cast

import cloudpickle
import numpy as np

from ..core.agent import Agent
from ..core.certified import OPTIONS
from ..core.declared import RULES
from ..core.files import json_form
from ..core.forms import forms_of
from ..core.parameters import taken
from ..core.wrapped import behind, wrappers_of
from ..evaluation.identity import comes_with, described
from ..language import EndpointError
from ..registry import Recipe

PROGRAM = "import sys; sys.path[:] = {}; from agents.benchmarking import apart; apart._serve()"
WITHIN = ("agent", "policy", "complete")  # where agents of this package hold what others have made
PATIENCE = 2.0  # seconds in which a process is to end by itself
LIBRARIES = ("agents.", "gymnasium.", "stable_baselines3.", "sb3_contrib.", "torch.", "types.SimpleNamespace")
BASES = ("agents.", "abc.", "builtins.", "typing.")
SAID = ("name", "source", "anytime", "observation", "needs")  # of an agent, and of what makes it
FACTS = (
    *SAID,
    "stops",
    "coordinates",
    "promises",
    "resumes",
    "own_bounds",
    "by_place",
    "prices",
    "delta",
    "proven",
    "sees_pending",
    "pays",
    "counts",
)


def apart(recipe: Recipe) -> Recipe:
    """The same recipe, whose agents play in a process of their own; of this package's agents the recipe itself.

    So is that of a class whose compiled rules play in the simulation, and of a model without code of a user's own.

    Raises:
        ValueError: for what cannot be pickled, naming the agent.
    """
    target: Any = recipe.target
    if _stays(target):
        return recipe
    own = replace(recipe, parameters={}, made=None)
    child = _Child(own.name, _pickled(own.name, (getattr(sys.modules["__main__"], "__file__", None), own)))
    if own._is_model:
        return replace(recipe, target=child.make(None, {}), made=None)

    made: Any = lambda task, **given: child.make(task, given)
    kinds, known = inspect.Parameter, taken(own._maker())  # a certificate is looked at here
    names = [x for x in recipe.parameters if x not in ("stop", *OPTIONS)] if known is None else known
    takes = [kinds(name, kinds.KEYWORD_ONLY) for name in names]  # which are checked there
    vars(made).update({x: getattr(target, x) for x in (*SAID, "solves") if hasattr(target, x)})
    vars(made)["__signature__"] = inspect.Signature([kinds("task", kinds.POSITIONAL_ONLY), *takes])
    return replace(recipe, target=made, made=None)


def _stays(target: Any) -> bool:
    """Whether what a target makes runs no code of a user's own, or compiled code alone."""
    if isinstance(target, FunctionType):
        home = sys.modules.get(target.__module__)
        return str(target.__module__).startswith("agents.") and target.__globals__ is getattr(home, "__dict__", None)
    kind: Any = target if isinstance(target, type) else type(target)
    if issubclass(kind, Agent) and kind.plays is True:
        own = {x: y for one in kind.__mro__ if not comes_with(one, *BASES) for x, y in vars(one).items()}
        code = {x for x, y in own.items() if callable(y) or hasattr(y, "__get__")}
        return "played" in code or code <= {*RULES}
    if isinstance(target, (Agent, ApartPolicy)) or not hasattr(kind, "predict"):
        return comes_with(kind) and all(_stays(vars(target)[x]) for x in WITHIN if x in vars(target))
    parts, model = [kind], getattr(target, "model", target)
    if not isinstance(target, type):
        policy = getattr(model, "policy", None)
        with suppress(AttributeError, ValueError):
            parts += map(type, wrappers_of(model.get_env()))
        layers: list[Any] = [*getattr(policy, "modules", list)()]
        parts += map(type, [model, policy, getattr(target, "agent", policy), *layers])
        parts += [type(one) for x in layers for one in (*x._forward_hooks.values(), *x._forward_pre_hooks.values())]
        patched = [getattr(one, "__dict__", {}).get("predict") for one in (target, model)]
        parts += [type(one) for one in patched if one not in (None, getattr(policy, "predict", None))]
    return all(comes_with(part, *LIBRARIES) for part in parts)


def _pickled(name: str, value: object) -> Any:
    """A value as an array of bytes."""
    try:
        return np.frombuffer(cloudpickle.dumps(value), np.uint8)
    except Exception as error:
        said = f"the agent {name!r} cannot be carried into the process of its own in which it plays: {error!s:.300}"
        raise ValueError(f"{said}; put the class into a module of its own, and name it 'module:Class'") from error


def _put(pipe: Any, words: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a message."""
    found = [(name, np.asarray(one, order="C")) for name, one in arrays.items() if one is not None]
    found.sort(key=lambda each: -each[1].itemsize)  # so that all are aligned
    head = json.dumps([words, [(name, one.dtype.str, one.shape) for name, one in found]], default=json_form).encode()
    head += b" " * (-len(head) % 64)
    size = len(head) + sum(one.nbytes for _, one in found)
    pipe.write(b"".join([np.array([len(head), size]).data, head, *(one.data for _, one in found)]))
    pipe.flush()


def _get(pipe: Any) -> tuple[Any, dict[str, Any]]:
    """Read a message; a number is in the place of an array without axes. An EOFError where the other has ended."""
    sizes, found = np.zeros(2, np.int64), dict[str, Any]()
    pipe.readinto(sizes)
    at, size = sizes.tolist()
    if not at or pipe.readinto(body := np.empty(size, np.uint8)) < size:
        raise EOFError
    words, heads = json.loads(body[:at].tobytes())
    for name, kind, shape in heads:
        array = np.frombuffer(body, kind, math.prod(shape), at).reshape(shape)  # NumPy refuses objects
        at, found[name] = at + array.nbytes, array if shape else array.item()
    return words, found


def _written(error: BaseException) -> list[Any]:
    """An error, and its cause, in JSON form."""
    text = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    trace = "".join(traceback.format_exception(error, chain=False))
    return [type(error).__name__, text, trace, error.__cause__ and _written(error.__cause__)]


def _read(kind: str, text: str, trace: str, cause: Any) -> Exception:
    """An error of Python's own kinds, or a RuntimeError in the place of another."""
    known: Any = EndpointError if kind == EndpointError.__name__ else getattr(builtins, kind, None)
    error: Exception = RuntimeError(f"{kind}: {text}")
    with suppress(TypeError):
        error = known(text) if issubclass(known, Exception) else error
    error.add_note(f"In the process of the agent:\n{trace}")
    error.__cause__ = cause and _read(*cause)
    return error


class _Child:
    """The process of a recipe, from the first question on."""

    def __init__(self, name: str, payload: Any) -> None:
        self.name, self.payload, self.lock, self.process = name, payload, threading.Lock(), None
        self.dropped: list[int] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _child_of, (self.name, self.payload.tobytes())

    def __deepcopy__(self, known: object) -> _Child:
        return self

    def ask(self, do: str, arrays: Any, of: Any = None, state: Any = None) -> tuple[Any, dict[str, Any]]:
        """What the process answers: words, and arrays. Of an agent and a state that it holds."""
        words = {"do": do, "of": of and of.number, "state": state and state.number}
        with self.lock:
            process = self.process = self.process or self._started()
            self.dropped, words["dropped"] = [], self.dropped
            try:
                _put(process.stdin, words, arrays)
                words, found = _get(process.stdout)
            except BaseException as error:
                _child_of.cache_clear()  # so that a worker begins another one
                said = f"the process of the agent {self.name!r} has ended, with {_end(process)}"
                if isinstance(error, (OSError, EOFError, ValueError, TypeError)):
                    raise RuntimeError(said) from error
                raise
        for kind, text in words["warnings"]:
            warnings.warn(text, getattr(builtins, kind, UserWarning), stacklevel=5)
        if words["error"]:
            raise _read(*words["error"])
        if words["held"] is not None:
            words["held"] = state if state and words["held"] == state.number else _Held(self, words["held"])
        return words, found

    def make(self, task: Any, given: dict[str, Any]) -> Any:
        """The agent for a task, or the policy for any (None), as it plays there."""
        facts, _ = self.ask("make", {"": _pickled(self.name, (self.payload.tobytes(), task, given))})
        held, kind = facts.pop("held"), ApartAgent if facts["agent"] else ApartPolicy
        if facts["said"].get("pays"):
            vars(self.process)["patience"] = 6 * PATIENCE  # calls are kept, if they end soon
        made = kind(task, self, given, facts)
        vars(made)["_held"] = held
        return made

    def _started(self) -> Any:
        rootless = {x: y for x, y in os.environ.items() if not (x.upper().endswith("ROOT") and y.isdecimal())}
        how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": rootless, "start_new_session": True}
        process = subprocess.Popen([sys.executable, "-c", PROGRAM.format(sys.path)], **how)
        weakref.finalize(self, _end, process)
        return process


@functools.lru_cache(maxsize=8)
def _child_of(name: str, payload: bytes) -> _Child:
    """The process in a worker, where one block comes after another."""
    return _Child(name, np.frombuffer(payload, np.uint8))


def _end(process: Any) -> str:
    """End a process, and say how it has ended."""
    for limit in (getattr(process, "patience", PATIENCE), None):
        with suppress(subprocess.TimeoutExpired, ValueError):  # of pipes that are closed
            process.communicate(timeout=limit)
        process.kill()
    return f"the exit code {process.returncode}"


class _Held:
    """The number of what a process holds: an agent, or the state of a batch."""

    def __init__(self, child: _Child, number: int) -> None:
        self.child, self.number = child, number

    def __del__(self) -> None:
        self.child.dropped.append(self.number)


class ApartPolicy:
    """An object with `predict` that plays in a process of its own."""

    def __init__(self, task: Any, child: _Child, given: dict[str, Any], facts: dict[str, Any]) -> None:
        vars(self).update(facts["said"])
        self.made_for, self.child, self.given, self.facts = task, child, given, facts

    @functools.cached_property
    def _held(self) -> Any:
        return self.child.make(self.made_for, self.given)._held

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_held"}

    def __repr__(self) -> str:
        return str(self.facts["text"])

    def for_task(self, task: Any, **changed: Any) -> Any:
        """The same for another task."""
        return self.child.make(task, self.given | changed)

    def description(self, alike: bool) -> str:
        """What `described` says of the agent itself."""
        return str(self.facts["described"][alike])

    def predict(self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: Any = True) -> Any:
        """The next actions, and the state."""
        named = observation if isinstance(observation, Mapping) else {"": observation}
        words, found = self.child.ask("predict", {**named, "*": episode_start}, self._held, state)
        return found.get("", found), words["held"]


class ApartAgent(ApartPolicy, Agent):
    """An `Agent` that plays in a process of its own."""

    bulk: bool = True  # it may be
    predict: Any = ApartPolicy.predict

    def __init__(self, task: Any, child: _Child, given: dict[str, Any], facts: dict[str, Any]) -> None:
        ApartPolicy.__init__(self, task, child, given, facts)
        vars(self).update(solves=(task.problem,))
        Agent.__init__(self, task)
        vars(self).update(_brought=True, _parameters=given)

    def initial_state(self, observation: Any) -> Any:
        """The number of a state."""
        return self.child.ask("begin", observation, self._held)[0]["held"]

    def choose(self, observation: Any, state: Any) -> Any:
        """The arms, and how often to pull each, where a certificate is looked at here."""
        _, found = self.child.ask("choose", observation, self._held, state)
        return (found[""], found["times"]) if "times" in found else found[""]

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        """The answer."""
        return self.child.ask("recommend", {**observation, "*": slots}, self._held, state)[1][""]

    def tallied(self, state: Any, slots: Any) -> dict[str, Any]:
        """What it counts in episodes."""
        return self.child.ask("tallied", {"*": slots}, self._held, state)[1]


def _serve() -> None:
    """Answer, in the process of an agent, until the benchmark has gone."""
    source, sink, held = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"), dict[Any, Any]()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what the agent prints
    threading.Thread(target=_follow, args=[os.getppid()], daemon=True).start()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with suppress(EOFError):
        while True:
            asked, arrays = _get(source)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try:
                    words, found = _answered(held, asked, arrays)
                except BaseException as error:
                    words, found = {"error": _written(error)}, {}
            heard = [(one.category.__name__, str(one.message)) for one in said]
            _put(sink, {"error": None, "held": None, "warnings": heard} | words, found)


def _follow(parent: int) -> None:
    """End with the benchmark, also where the agent never answers."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _answered(held: dict[Any, Any], asked: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The answer to a question: words, and arrays by name."""
    for number in asked["dropped"]:
        del held[number]
    agent, new, more = cast(Any, held.get(asked["of"])), held.get(asked["state"]), arrays.pop("*", None)
    seen, words, out = arrays.get("", arrays), dict[str, Any](), cast(Any, None)
    if asked["do"] == "make":
        payload, task, given = pickle.loads(seen)
        sys.modules["__main__"].__file__, recipe = pickle.loads(payload)
        new = behind(recipe.target) if task is None else recipe.make(task, **given)
        words = _facts(new)
    elif asked["do"] == "recommend":
        out = agent.recommend(seen, new, more)
    elif asked["do"] == "tallied":
        out = agent.tallied(new, more)
    elif asked["do"] == "begin":
        new = agent._made(seen)
    elif asked["do"] == "choose":
        new = held[asked["state"]] = agent._begun(seen, new)
        out = agent.choose(seen, new)
        out = {"": out[0], "times": out[1]} if isinstance(out, tuple) and len(out) == 2 else out
    else:
        out, new = agent.predict(seen, new, more, deterministic=True)
    if new is not None and (asked["state"] is None or new is not held[asked["state"]]):
        words["held"] = 1 + max(held, default=0)
        held[words["held"]] = new
    else:
        words["held"] = None if new is None else asked["state"]
    return words, out if isinstance(out, Mapping) else {"": out}


def _facts(agent: Any) -> dict[str, Any]:
    """What is to be said of an agent where it does not play."""
    said = {name: getattr(agent, name) for name in FACTS if hasattr(agent, name)}
    if not (ours := isinstance(agent, Agent)):
        forms = [forms_of(agent, dict.fromkeys(("stop", "ranked"), known)) for known in (False, True)]
        said |= {"observation": forms[0].observation}
        said |= {"card": {"env_kwargs": forms[0]._asdict()}} if forms[0] == forms[1] else {}
    with suppress(Exception):  # by which its source is found
        importlib.import_module(type(agent).__module__)
    plain = {name: dict(one) if isinstance(one, Mapping) else one for name, one in said.items()}
    texts = [described(agent), described(agent, alike=True)]
    return {"agent": ours, "said": plain, "described": texts, "text": repr(agent)}
