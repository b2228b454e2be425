"""What `reset` takes from the wire: names of this package, and numbers and lists of a limited size.

Nothing that a client says is imported, and no path is read: instances are names of the package's own table, which need
no file of others, or arms in JSON form. All sizes are limited before anything is made of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from bandit_envs import ENVIRONMENTS, INSTANCES, PROBLEMS, PureExplorationEnv
from bandit_envs.instances import names_alone
from bandit_envs.kernels import parse_call
from bandit_envs.text import TextView

MOST_PULLS = 1_000_000  # of an episode
MOST_PENDING = 10_000  # results: batch, delay
MOST_NUMBER = 1000.0  # in an instance, where numbers may be sizes
MOST_DIMENSIONS = 20
MOST_CELLS = 100_000  # arms times dimensions times rows of a table
LONGEST = 2000  # characters of a text
MOST_ENTRIES, DEEPEST = 10_000, 8  # of lists and objects
FILES = ("table",)  # names that read what their parameters say
INSTANCE_NAMES = sorted(
    name for name in INSTANCES if name not in (*FILES, *INSTANCES.installed) and INSTANCES[name].ships
)
DRAWN = re.compile(r"exponential\((\d{1,9}(?:\.\d{1,9})?)\)")  # a delay
OF_TEXT = ("story", "view", "tool_calls", "patience")
COMMON = ("instance", "budget", "delta", "max_pulls", "pull_cost", "reward", "shuffle_arms", "salt")
COMMON = (*COMMON, "batch", "delay", "cost")
PROBLEM_NAMES = sorted(PROBLEMS)


class Refused(ValueError):
    """What a client asked for is not to be had; `status` is that of HTTP."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text[:1000])
        self.status = status


def opened(problem: Any, settings: Mapping[str, Any]) -> TextView:
    """The environment of a problem and its settings, those of its text among them, all as a client gave them.

    Raises:
        Refused: for a setting that is not taken, with what is allowed.
    """
    if not isinstance(problem, str) or problem not in PROBLEMS:
        raise Refused(f"problem must be one of {PROBLEM_NAMES}, got {problem!r:.80}")
    taken = (*PROBLEMS[problem].parameters, *COMMON, *OF_TEXT)
    if strange := [name for name in settings if name not in taken]:
        raise Refused(f"{problem} takes {', '.join(taken)}, got {strange[0]!r:.80}")
    _check_size(settings, "settings", MOST_PULLS)
    given = {name: value for name, value in settings.items() if name not in OF_TEXT}
    words = {name: settings[name] for name in OF_TEXT if name in settings}
    for name in ("batch", "delay"):
        _check_pending(name, given.get(name))
    if given.get("instance") is not None:
        _check_instance(given["instance"])
    with names_alone("a message of a client"):
        try:
            return TextView(_limited(problem, given), **words)
        except (ValueError, TypeError, gym.error.Error, ArithmeticError, LookupError) as error:
            raise Refused(f"{error}") from error


def _limited(problem: str, given: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """The environment; an episode without a budget that limits it has at most `MOST_PULLS` pulls."""

    def made(**more: Any) -> gym.Env[Any, Any]:
        return gym.make(ENVIRONMENTS[problem].id, actions="full", **given, **more)

    env = made()
    base = env.unwrapped
    assert isinstance(base, PureExplorationEnv)
    task = base.task
    if task.D > MOST_DIMENSIONS:
        raise Refused(f"samples have at most {MOST_DIMENSIONS} dimensions, got {task.D}")
    if (cells := task.K * task.D * (task.items or 1)) > MOST_CELLS:
        raise Refused(f"arms times dimensions times rows must be at most {MOST_CELLS:,}, got {cells:,}")
    limits = [limit for limit in (task.payable, task.max_pulls) if limit is not None]
    if limits and min(limits) <= MOST_PULLS:
        return env
    if task.max_pulls is not None:
        raise Refused(f"max_pulls must be at most {MOST_PULLS:,}, got {task.max_pulls:,}")
    return made(max_pulls=MOST_PULLS)


def _check_pending(name: str, value: Any) -> None:
    """Refuse a batch or a delay of more than `MOST_PENDING` pulls."""
    drawn = DRAWN.fullmatch(value) if isinstance(value, str) else None
    if isinstance(value, str) and drawn is None or _size(float(drawn[1]) if drawn else value) > MOST_PENDING:
        raise Refused(f"{name} must be at most {MOST_PENDING:,}, or as 'exponential(8)', got {value!r:.80}")


def _size(value: Any) -> float:
    """A number, 0 for what is none, which is refused later."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def _check_size(value: Any, of: str, most: float, depth: int = 0) -> int:
    """The number of entries of a value, whose numbers, texts and lists are within the limits."""
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, (int, float)):
        if not abs(value) <= most:
            raise Refused(f"numbers of {of} must be within {most:,.0f}, got {value!r:.80}")
        return 1
    if isinstance(value, str):
        if len(value) > LONGEST:
            raise Refused(f"texts of {of} must have at most {LONGEST:,} characters, got {len(value):,}")
        return 1
    if not isinstance(value, (list, tuple, dict)):
        raise Refused(f"{of} hold numbers, texts, lists and objects, got {value!r:.80}")
    if depth == DEEPEST:
        raise Refused(f"lists and objects of {of} must nest at most {DEEPEST} deep")
    parts = [*value, *value.values()] if isinstance(value, dict) else value
    if len(parts) > MOST_ENTRIES:
        raise Refused(f"{of} must have at most {MOST_ENTRIES:,} entries, got {len(parts):,}")
    count = 1 + sum(_check_size(part, of, most, depth + 1) for part in parts)
    if count > MOST_ENTRIES:
        raise Refused(f"{of} must have at most {MOST_ENTRIES:,} entries, got {count:,}")
    return count


def _check_instance(source: Any, depth: int = 0) -> None:
    """Refuse an instance that is no name of `INSTANCE_NAMES` and no arms in JSON form, or that is too large."""
    if depth > 3:
        raise Refused("instances must be made of at most 3 others, one in the other")
    if isinstance(source, str):
        try:
            name, parameters = parse_call(source)
        except ValueError as error:
            raise Refused(f"{error}") from error
    elif isinstance(source, Mapping) and len(source) == 1 and "distribution" not in source:
        name, parameters = next(iter(source.items()))
    elif isinstance(source, Mapping):
        _check_size(source, "an instance", MOST_NUMBER)
        if not isinstance(named := source.get("distribution"), str) or not re.fullmatch(r"[\w.-]+", named):
            raise Refused(f"arms in JSON form have a distribution, a name of this package, got {named!r:.80}")
        return
    else:
        raise Refused(f"instance must be a name or arms in JSON form, got {source!r:.80}")
    if name not in INSTANCE_NAMES:
        raise Refused(f"instance must be one of {', '.join(INSTANCE_NAMES)}, or arms in JSON form, got {name!r:.80}")
    if not isinstance(parameters, Mapping):
        raise Refused(f"{name!r} must hold the parameters of the instance, got {parameters!r:.80}")
    _check_size(parameters, f"the instance {name}", MOST_NUMBER)
    if _size(parameters.get("dimensions")) > MOST_DIMENSIONS:
        raise Refused(f"dimensions must be at most {MOST_DIMENSIONS}, got {parameters['dimensions']!r:.80}")
    takes = inspect.signature(INSTANCES[name].build).parameters
    for parameter, value in parameters.items():
        if parameter not in takes or parameter == "folder":
            known = ", ".join(one for one in takes if one != "folder")
            raise Refused(f"the instance {name} takes {known or 'no parameter'}, got {parameter!r:.80}")
        if name == "varied" and parameter == "instance":
            _check_instance(value, depth + 1)
        elif name == "pools" and parameter == "pools":
            if not isinstance(value, (list, tuple)):
                raise Refused(f"pools must be a list of pools, got {value!r:.80}")
            for one in value:
                if not isinstance(one, (list, tuple)):
                    _check_instance(one, depth + 1)
        elif isinstance(value, str) and not re.fullmatch(r"[\w.-]*", value):
            raise Refused(f"{parameter} of the instance {name} must be a word, got {value!r:.80}")
