"""An `Instance` or a `Sampler` from any form that the keyword `instance` of an environment takes, as a name."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import LARGEST, Floats, array, called, errors_of, integer, number
from ..kernels.naming import parse_call
from ..kernels.spellings import spelled
from .ab_tests import ABTests
from .arms import Arms, Bernoulli, Form, Gaussian, Shared, Uniform, ends_of, from_dict
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


def _questions(source: Instance) -> dict[str, dict[str, Any]]:
    """The defaults of an instance for each problem, without budget and delta, and without the order of its arms."""
    own = {"budget", "delta", "shuffle_arms"}
    return {problem: {k: v for k, v in x.items() if k not in own} for problem, x in source.defaults.items()}


class Pools(Sampler):
    """Real arms in each episode: K of those of a pool, none twice, in random order. All pools are equally likely.

    Args:
        pools: of each the means of Bernoulli arms, or arms as the keyword `instance` takes them: "captions-651", a JSON
            form, `Arms`. Or a dataframe, or the path of a CSV or Parquet file: a column has the means of a pool.
        arms: K, at most as many as the smallest pool has.
        rows: of shared tables, so many of their rows, others in each episode, none twice. Their mean is what is true.

    Raises:
        ValueError: naming the pool that is no such thing, has too few arms, or arms of another kind than pool 0 has.
    """

    name, positive = "pools", False

    def __init__(self, pools: Any, arms: int = 10, rows: int | None = None) -> None:
        if isinstance(pools, (str, Path)) or hasattr(pools, "columns"):
            pools = rows_of(measurements(pools, wide=True))
        if isinstance(pools, Mapping) or not np.iterable(pools) or not (pools := list(pools)):
            raise ValueError(f"pools must be a list of pools, a dataframe or the path of a table, got {pools!r:.200}")
        self.K, self._pools = integer("arms", arms, 1, rng.ARMS_LIMIT), list[Arms]()
        for i, pool in enumerate(pools):
            with errors_of(f"pool {i}"):
                listed = np.iterable(pool) and not isinstance(pool, (str, Mapping))
                source = find(Bernoulli(pool) if listed else pool)
                if isinstance(source, Sampler) or source.K < self.K:
                    raise ValueError(f"it must have arms={self.K} arms or more, in all episodes, got {source!r:.200}")
                self._pools.append(source.arms)
                self.defaults = _questions(source) if len(pools) == 1 else {}
                both = self._pools[:: i or 1]
                kinds = [(x.distribution, x.D, x.support, x.data.tolist(), x.parameters.shape[1]) for x in both]
                if kinds[-1] != kinds[0]:
                    text = "it must be like pool 0 in distribution, range,"
                    raise ValueError(f"{text} values and numbers of them, got {kinds!s:.200}")
        first = self._pools[0]
        most = (first.items or 0) if first.D == 1 else 0
        self._rows = None if rows is None else integer("rows, of shared tables of one score a cell,", rows, 1, most)
        if self._rows is not None:
            first = Shared(first.parameters[:, : self._rows].T, first.support)
        self.arms, self.D, self.distribution = copy.copy(first), first.D, first.distribution
        some = (first.means[: self.K], first.variances[: self.K], first.parameters[: self.K], first.data)
        self.arms.fill(*some, support=first.support, sigma=max(one.sigma for one in self._pools))
        least = [one.means if rows is None else one.parameters.min(axis=1) for one in self._pools]
        self.positive = all((one <= 0).sum() < self.K for one in least)
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
        if self._rows is None:
            return self._means[rows], self._table[rows]
        others = np.ones(len(episode), np.uint64)  # the uniforms of rows are others than those of arms
        v = rng.uniforms(key, episode, self._table.shape[1] - 1, stream=rng.INSTANCE, index=others)[..., 0]
        some = np.argsort(v, axis=1)[:, None, : self._rows]
        return Shared.scored(self._table[rows[:, :, None], some], ends_of(self.arms))

    def to_dict(self) -> Form:
        form: Form = {"pools": [one.to_dict() for one in self._pools], "arms": self.K}
        return {self.name: form if self._rows is None else form | {"rows": self._rows}}


class Varied(Sampler):
    """A fixed instance, varied in each episode: its arms in random order, some of them copied, its means scaled.

    Means m become centre + f (m - centre) + s, with f and s of the episode; deviations and widths stay what they are.

    Args:
        instance: any fixed one of Bernoulli, Gaussian or Uniform arms. Its defaults stay, but for budget and delta.
        centre: a number, or one for each coordinate; None: the mean of the arms' means.
        scale: [lowest, highest] factor, > 0; its logarithm is uniform. [.5, .5] halves all gaps.
        shift: s is uniform on [-shift, shift], the same for all coordinates.
        exchange: so many arms, drawn at random, become copies (mean, and standard deviation or width) of others.
        fixed: of scalar arms, the so many best ones neither become copies nor are copied.

    Raises:
        ValueError: for other arms, and for Bernoulli arms whose means could leave [0, 1].
    """

    name, positive = "varied", False

    def __init__(
        self,
        instance: Any,
        centre: Any = None,
        scale: Sequence[float] = (0.8, 1.25),
        shift: float = 0.0,
        exchange: int = 1,
        fixed: int = 0,
    ) -> None:
        base = find(instance)
        if isinstance(base, Sampler) or type(base.arms) not in (Bernoulli, Gaussian, Uniform):
            raise ValueError(f"instance must be a fixed one of Bernoulli, Gaussian or Uniform arms, got {base!r:.200}")
        self._given = instance if isinstance(instance, (str, Mapping)) else base.to_dict()
        self.arms, self.K, self.D, self.distribution = base.arms, base.K, base.D, base.arms.distribution
        self._spread: Any = list((base.arms._given or {}).values())[-1].reshape(self.K, self.D)
        self.defaults, means = _questions(base), base.arms.means.reshape(self.K, self.D)
        self._centre = means.mean(axis=0) if centre is None else array("centre", centre)
        if self._centre.shape not in ((), (self.D,)) or not (np.abs(self._centre) <= LARGEST).all():
            raise ValueError(f"centre must be a number, or {self.D} finite numbers, got {centre!r:.200}")
        low, high = self._scale = array("scale", scale).tolist() if np.shape(scale) == (2,) else [0.0, 0.0]
        if not 0 < low <= high <= LARGEST:
            raise ValueError(f"scale must be the lowest and the highest factor, 0 < low <= high, got {scale!r:.200}")
        self._off, self._shift = means - self._centre, number("shift", shift, 0, LARGEST)
        self._fixed = integer("fixed", fixed, 0, self.K if self.D == 1 else 0)
        self._exchange = integer("exchange", exchange, 0, max(self.K - max(self._fixed, 1) - 1, 0))
        self._free = np.sort(np.argsort(-means[:, 0], kind="stable")[self._fixed :])
        ends = np.array([self._centre + f * self._off + s for f in self._scale for s in (-self._shift, self._shift)])
        if self.distribution == "bernoulli" and not -1e-12 <= ends.min() <= ends.max() <= 1 + 1e-12:
            said = f"with scale={self._scale}, shift={shift} and centre={self._centre.tolist()}"
            raise ValueError(f"{said} Bernoulli means of {base.name} would reach {ends.min():g} and {ends.max():g}")
        least = ends.min(axis=(0, 2))  # of each arm; all that become copies may be the best ones
        self.positive = bool((least > 0).sum() > (0 if self._fixed else self._exchange))

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u = rng.uniforms(key, episode, self.K, 5, stream=rng.INSTANCE)
        which, n = np.tile(np.arange(self.K), (len(episode), 1)), len(self._free)
        if self._exchange:
            lost = np.argsort(u[:, :n, 1], axis=1)[:, : self._exchange]
            others = (lost + 1 + (u[:, : self._exchange, 2] * (n - 1)).astype(np.intp)) % n
            np.put_along_axis(which, self._free[lost], self._free[others], axis=1)
        which = np.take_along_axis(which, np.argsort(u[:, :, 0], axis=1), axis=1)
        low, high = self._scale
        factor = np.clip(low * (high / low) ** u[:, :1, 3:4], low, high)
        means = self._centre + factor * self._off[which] + self._shift * (2 * u[:, :1, 4:] - 1)
        means = np.clip(means, *self.arms.mean_range)  # but for rounding they are within
        return (means[..., 0] if self.D == 1 else means), self.arms.pack(means, self._spread[which])

    def to_dict(self) -> Form:
        form: Form = {"instance": self._given, "centre": self._centre.tolist(), "scale": self._scale}
        return {self.name: form | {"shift": self._shift, "exchange": self._exchange, "fixed": self._fixed}}


INSTANCES = _Instances(
    "instance",
    "bandit_envs.instances",
    _check,
    {
        "sampler": _sampler(Sampler),
        "polyhedra": _sampler(Polyhedra, "Feasible"),
        "prompt-selection": _sampler(PromptSelection, "BestArm"),
        "score-tables": _sampler(ScoreTables, "BestArm"),
        "ab-tests": _sampler(ABTests, "BetterThanControl"),
        "pools": _sampler(Pools),
        "varied": _sampler(Varied),
        "table": NamedInstance(
            from_table,
            "",
            "a table of measurements, as CSV or Excel: parameters path, arm, value, index, distribution, name, wide, "
            "shared, support, missing, item, sep, decimal, sheet, layout, n, successes, values, weights",
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


EXAMPLE = '{"distribution": "bernoulli", "mean": [0.1, 0.5]}'  # of arms, in JSON form


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
    forms = f"a name, as 'sampler(arms=20)', a dict, as {EXAMPLE}, Arms, an Instance, a Sampler or a function of these"
    raise ValueError(f"instance must be {forms}, got {source!r:.200}")


def ships(source: Any) -> bool:
    """Whether the form `source` of an instance names none that reads files which do not come with this package."""
    return all(PAPERS[word].ships for word in re.findall(r"[\w.-]+", str(source)) if word in PAPERS)


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
