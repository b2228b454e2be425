"""An `Instance` or a `Sampler` from any form that the keyword `instance` of an environment takes, as a name."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import called, errors_of, integer
from ..kernels.naming import parse_call
from ..kernels.spellings import spelled
from .arms import Arms, Bernoulli, Floats, Form, from_dict
from .instance import Instance, NamedInstance, Sampler, from_table
from .papers import PAPERS
from .polyhedra import Polyhedra
from .prompts import PromptSelection, ScoreTables
from .registry import Registry
from .tables import measurements, rows_of

DEEPEST = 16  # instances that are being made, each by the function of the one before
_BEING_MADE: ContextVar[tuple[str, ...]] = ContextVar("names of instances that are being made", default=())


def _check(name: str, found: Any) -> None:
    """Refuse what makes no instance."""
    if not isinstance(found, NamedInstance) and not callable(found):
        raise ValueError(f"the instance {name!r} must be a function that makes one, got {found!r:.200}")


def _sampler(kind: type[Sampler], problem: str = "") -> NamedInstance:
    """The row of a sampler."""
    first, _, _ = (inspect.getdoc(kind) or "").partition(".\n")
    return NamedInstance(kind, problem, f"{first}; parameters {', '.join(inspect.signature(kind).parameters)}")


class _Instances(Registry[NamedInstance]):
    """The names of instances and samplers. A package's entry point is a function that makes one."""

    def accept(self, name: str, found: Any) -> NamedInstance:
        super().accept(name, found)
        if isinstance(found, NamedInstance):
            return found
        return NamedInstance(found, source=(inspect.getdoc(found) or "").partition("\n")[0])

    def origin(self, target: NamedInstance | str) -> Any:
        return target.build if isinstance(target, NamedInstance) else target


class Pools(Sampler):
    """Real arms in each episode: K of those of a pool, none twice, in random order. All pools are equally likely.

    Args:
        pools: of each the means of Bernoulli arms, or arms as the keyword `instance` takes them: "captions-651", a JSON
            form, `Arms`. Or a dataframe, or the path of a CSV or Parquet file: a column has the means of a pool.
        arms: K, at most as many as the smallest pool has.

    Raises:
        ValueError: naming the pool that is no such thing, has too few arms, or arms of another kind than pool 0 has.
    """

    name, positive = "pools", False

    def __init__(self, pools: Any, arms: int = 10) -> None:
        if isinstance(pools, (str, Path)) or hasattr(pools, "columns"):
            pools = rows_of(measurements(pools, wide=True))
        if isinstance(pools, Mapping) or not np.iterable(pools) or not (pools := list(pools)):
            raise ValueError(f"pools must be a list of pools, a dataframe or the path of a table, got {pools!r:.200}")
        self.K, self._pools = integer("arms", arms, 2, rng.ARMS_LIMIT), list[Arms]()
        for i, pool in enumerate(pools):
            with errors_of(f"pool {i}"):
                listed = np.iterable(pool) and not isinstance(pool, (str, Mapping))
                source = find(Bernoulli(pool) if listed else pool)
                if isinstance(source, Sampler) or source.K < self.K:
                    raise ValueError(f"it must have arms={self.K} arms or more, in all episodes, got {source!r:.200}")
                self._pools.append(source.arms)
                both = self._pools[:: i or 1]
                kinds = [(x.distribution, x.D, x.support, x.data.tolist(), x.parameters.shape[1]) for x in both]
                if kinds[-1] != kinds[0]:
                    raise ValueError(
                        f"it must be like pool 0 in distribution, range, values and numbers of them, got {kinds!s:.200}"
                    )
        first = self._pools[0]
        self.arms, self.D, self.distribution = copy.copy(first), first.D, first.distribution
        some = (first.means[: self.K], first.variances[: self.K], first.parameters[: self.K], first.data)
        self.arms.fill(*some, support=first.support, sigma=max(one.sigma for one in self._pools))
        self.positive = all((one.means <= 0).sum() < self.K for one in self._pools)
        self._means = np.concatenate([one.means for one in self._pools])
        self._table = np.concatenate([one.parameters for one in self._pools])

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u, sizes = rng.uniforms(key, episode, self.K, 2, stream=rng.INSTANCE), np.array([one.K for one in self._pools])
        pool, step = (u[:, 0, 1] * len(sizes)).astype(np.intp), np.arange(self.K)
        places = step + (u[:, :, 0] * (sizes[pool, None] - step)).astype(np.intp)
        rows = places.copy()
        for i in step[::-1]:  # Fisher and Yates: in step i the arms at i and at places[:, i] have changed places
            rows[:, i + 1 :][rows[:, i + 1 :] == places[:, i, None]] = i
        rows += (np.cumsum(sizes) - sizes)[pool, None]
        return self._means[rows], self._table[rows]

    def to_dict(self) -> Form:
        return {self.name: {"pools": [one.to_dict() for one in self._pools], "arms": self.K}}


INSTANCES = _Instances(
    "instance",
    "bandit_envs.instances",
    _check,
    {
        "sampler": _sampler(Sampler),
        "polyhedra": _sampler(Polyhedra, "Feasible"),
        "prompt-selection": _sampler(PromptSelection, "BestArm"),
        "score-tables": _sampler(ScoreTables, "BestArm"),
        "pools": _sampler(Pools),
        "table": NamedInstance(
            from_table,
            "",
            "a table of measurements, CSV or Parquet: parameters path, arm, value, index, distribution, name, wide, "
            "shared, support, missing, item, sep, decimal",
            True,
        ),
        **PAPERS,
    },
)


def register_instance(name: str, factory: Callable[..., Any], *, problem: str = "", source: str = "") -> None:
    """Give an instance of one's own a name that the keyword `instance` takes.

    Args:
        name: a word of letters, digits, "-", "_" and ".".
        factory: returns an `Instance`, a `Sampler`, `Arms`, or the JSON form of one. The name takes its parameters, as
            in "my-arms(n=20)".
        problem: the problem that it was made for.
        source: where it comes from. Both are for `bandit-envs list`.

    Raises:
        ValueError: for a name that is no such word or belongs to an instance of this package or of an installed one.
    """
    _check(name, factory)
    INSTANCES.register(name, NamedInstance(factory, problem, source))


def find(source: Any) -> Instance | Sampler:
    """The instance or sampler behind `source`.

    Args:
        source: None (the default sampler); a name of `INSTANCES` or "module:factory", possibly with parameters
            ("sampler(arms=20)"); a dict in JSON form: that of arms ({"distribution": "bernoulli", "mean": [.2, .7]}),
            or a name with its parameters ({"sampler": {"arms": 20}}); `Arms`, an `Instance` or a `Sampler`; or a
            function without arguments that returns any of these.
    """
    if source is None:
        return Sampler()
    if isinstance(source, (Instance, Sampler)):
        return source
    if isinstance(source, Arms):
        return Instance(source)
    if isinstance(source, str):
        word, given = parse_call(source)
        return _made(word, INSTANCES.find(word).build, given)
    if isinstance(source, Mapping):
        name, parameters = next(iter(source.items())) if len(source) == 1 else (None, None)
        if isinstance(name, str) and (isinstance(parameters, Mapping) or name in INSTANCES):
            return _made(name, INSTANCES.find(name).build, parameters)
        return Instance(from_dict(dict(source)))
    if callable(source):
        return _made(getattr(source, "__name__", type(source).__name__), source, {})
    forms = "a name, a dict, Arms, an Instance, a Sampler or a function of these"
    raise ValueError(f"instance must be {forms}, got {source!r:.200}")


def _made(name: str, build: Callable[..., Any], parameters: Any) -> Instance | Sampler:
    """What a function makes of parameters, as an instance or a sampler; arms take the function's name."""
    if not isinstance(parameters, Mapping):
        raise ValueError(f"{name!r} must hold the parameters of the instance, got {parameters!r:.200}")
    names = (*_BEING_MADE.get(), name)
    if len(names) > DEEPEST:
        raise ValueError(f"the instance {name!r} is made of itself: {', which needs '.join(names[-3:])}")
    token = _BEING_MADE.set(names)
    try:
        made = called(f"the instance {name!r}", build, copy.deepcopy(dict(parameters)))
        if isinstance(made, Mapping) and "distribution" in spelled(made):
            made = from_dict(dict(made))
        elif isinstance(made, Mapping) and made:
            made = find(made)
    finally:
        _BEING_MADE.reset(token)
    if isinstance(made, Arms):
        made = Instance(made, name)
    if not isinstance(made, (Instance, Sampler)):
        raise ValueError(f"instance {name!r} must be an Instance, a Sampler, Arms or a dict, got {made!r:.200}")
    return made
