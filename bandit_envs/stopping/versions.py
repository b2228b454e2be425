"""Versions of compiled functions, each for one distribution or one kind of alternatives alone.

A function that asks `the_distribution(x)`, of an x that is known when it runs, contains what all distributions need. In
its version for one of them, and in the versions of all parts that it calls, the answer is a constant: Numba leaves out
the branches that are then never taken, and compiles nothing that they alone call.
"""

from __future__ import annotations

import functools
from types import FunctionType
from typing import Any

from ..kernels.compiled import view


@view
def the_distribution(distribution):
    """The distribution, of which versions know which it is."""
    return distribution


@view
def the_kind(kind):
    """The kind of the alternatives, likewise."""
    return kind


@view
def the_search(search):
    """How the closest alternative is searched for, likewise."""
    return search


QUESTIONS = {the_distribution: "distribution", the_kind: "kind", the_search: "search"}


def version(function: Any, **known: int) -> Any:
    """The version of a function, and of all parts that it calls, in which some questions have known answers.

    Args:
        function: a plain one, or one that is decorated with `part`, `inlined` or `view`; so is the version.
        **known: the answers, such as distribution=BERNOULLI. What makes no difference to a function may be among them.
    """
    asked = _asked(function)
    return _made(function, tuple((name, known[name]) for name in sorted(known) if name in asked))


def _called(function: Any) -> dict[str, Any]:
    """The parts that a function names: {name: part}."""
    plain = getattr(function, "py_func", function)
    named = {name: plain.__globals__.get(name) for name in plain.__code__.co_names}
    return {name: one for name, one in named.items() if hasattr(one, "py_func") and one is not function}


@functools.cache
def _asked(function: Any) -> frozenset[str]:
    """The questions that a function and all parts that it calls ask."""
    called = _called(function).values()
    own = (QUESTIONS[one] for one in called if one in QUESTIONS)
    return frozenset(own).union(*map(_asked, called))


@functools.cache
def _made(function: Any, known: tuple[tuple[str, int], ...]) -> Any:
    """The version, of answers that all make a difference."""
    if not known:
        return function
    plain, answers = getattr(function, "py_func", function), dict(known)
    place = dict(plain.__globals__)
    for name, one in _called(function).items():
        answer = answers.get(QUESTIONS.get(one, ""))
        place[name] = version(one, **answers) if answer is None else _answer(answer)
    made = FunctionType(plain.__code__, place, plain.__name__, plain.__defaults__, plain.__closure__)
    made.__qualname__ = "-".join([plain.__qualname__, *(f"{name}-{value}" for name, value in known)])
    if function is plain:
        return made
    return function.decorator(made)


@functools.cache
def _answer(value: int) -> Any:
    """A question with a known answer."""
    return view(FunctionType((lambda question: ANSWER).__code__, {"__name__": __name__, "ANSWER": value}))  # type: ignore[name-defined] # noqa: F821
