"""`evolve`: the index first, then the network that corrects it, all candidates on the same fresh random instances.

The fitness of a candidate is the mean, over the environments of the mix, of the logarithm of its mean loss as a
multiple of what the index of LSA loses on the same episodes. CMA-ES tunes the parameters of the index, a dozen. Then,
for the greater part of the time, `MirroredSearch` tunes the weights of the network, a hundred, together with them; it
begins with bends that correct nothing. The mean of either search wanders with the noise: a checkpoint, every few
generations, is the average of the means since the checkpoint before. The latest checkpoint is kept that is at most one
standard error of the paired difference worse than the best on held-out episodes; it may be an index without a network.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bandit_envs import Task
from bandit_envs.instances import names_alone
from bandit_envs.kernels import flag, integer, number, root_number, unknown

from ..core.agent import Floats, Ints, by_certificate
from ..core.compile_time import CompileTime
from ..core.confidence import refuse_guardrails
from ..core.files import reading, try_out, write_alone
from ..core.forms import Forms
from ..core.optional import require
from ..evaluation.environment import environment_id
from ..evaluation.execution import Call, Watch, cores, jobs_number, outcomes
from ..evaluation.expected_loss import losses
from ..evaluation.identity import packages
from ..evaluation.plan import make_envs
from ..evaluation.progress import compilation_noted, shown
from ..evaluation.statistics import latest_of_the_best, normal_mean
from ..models.cards import FORMAT, parameters_on, read_card
from .agent import Evolved as Tuned
from .parameters import read_parameters
from .search import MirroredSearch, SearchSpace, search_space

STEP = 0.7  # the first standard deviation of the candidates, in units of the scales
FORMULA = 0.35  # share of the search that is for the index alone, where a network follows
SPREAD, PACE = 1.0, 0.1  # of `MirroredSearch`, in units of the scales
SEARCHING = 0.93  # share of the seconds after which no generation begins: the last checkpoint and the report need time
LEAST = 1e-12  # a mean loss below this is taken for it
FORMS = Forms("arm", "statistics")


class CommonEpisodes:
    """The episodes of one environment of the mix on which candidates are compared; `elsewhere`: others' CPU seconds."""

    def __init__(self, env_id: str, kwargs: Mapping[str, Any], episodes: int, jobs: int = 1) -> None:
        self.env_id, self.kwargs, self.jobs, self.elsewhere = env_id, dict(kwargs), jobs, 0.0
        self.episodes = integer("episodes", episodes, 1, 10**7)
        self._envs = make_envs(env_id, 1, FORMS, self.kwargs)
        self.task, self.local = self._envs.task, self._envs.problem.local

    def losses(
        self, parameters: Sequence[Sequence[float]], root: int, first: int, episodes: int | None = None
    ) -> Floats:
        """What each candidate loses in each episode, (P, episodes): 1 - return, expected where the prior allows it."""
        count = self.episodes if episodes is None else episodes
        table = np.array(parameters, np.float64)
        if self.jobs == 1 or len(table) == 1:
            return self._played(table, root, first, count)
        parts = np.array_split(np.arange(len(table)), min(len(table), cores(self.jobs)))
        own = self.env_id, self.kwargs
        calls = [Call(functools.partial(_lost, own, part, table[part], root, first, count)) for part in parts]
        lost = np.empty((len(table), count))
        for (part, values, seconds), here in outcomes(calls, self.jobs, Watch()):
            lost[part] = values
            self.elsewhere += 0.0 if here else seconds
        return lost

    def _played(self, table: Floats, root: int, first: int, count: int) -> Floats:
        if self._envs.num_envs != len(table) * count:
            self._envs = make_envs(self.env_id, len(table) * count, FORMS, self.kwargs)
        player = Tuned(self._envs.task, table)  # type: ignore[arg-type]
        numbers = np.tile(np.arange(first, first + count), len(table))
        return losses(self._envs, player, root, numbers).reshape(len(table), count)


def _lost(
    own: tuple[str, Mapping[str, object]], part: Ints, table: Floats, root: int, first: int, count: int, watch: Watch
) -> tuple[Ints, Floats, float]:
    """What some candidates lose, played on their own: their numbers, losses and processor time."""
    began = time.process_time()
    lost = CommonEpisodes(*own, count).losses(table.tolist(), root, first)
    return part, lost, time.process_time() - began


@dataclass(frozen=True)
class Checkpoint:
    """Parameters on the way, and how they did on the held-out episodes."""

    generation: int
    parameters: list[float]
    cpu_seconds: float  # of the call until then
    ratios: list[float]  # for each environment, mean loss over the mean loss of the reference
    values: Floats  # one number per episode, with the same mean as `ratios`, so that environments weigh the same

    @property
    def row(self) -> dict[str, object]:
        """What the card says of it."""
        ratios = [round(ratio, 4) for ratio in self.ratios]
        return {"generation": self.generation, "cpu_seconds": self.cpu_seconds, "ratios": ratios}


@dataclass(frozen=True)
class Evolution:
    """A search, with all that it needs; see `evolve`."""

    mix: list[CommonEpisodes]
    space: SearchSpace
    every: int
    held_out: int
    roots: list[int]  # of the episodes of the generations, of the checkpoints, and of the report
    began: float  # by `time.process_time()`
    compiling: CompileTime  # does not count for the time that is given
    show: bool
    interrupts: list[KeyboardInterrupt] | None  # that have ended it; None: they leave without a file

    def spent(self) -> float:
        """Processor time so far, in seconds."""
        return time.process_time() - self.began + sum(one.elsewhere for one in self.mix)

    def fitness(self, points: Sequence[Floats], generation: int) -> Floats:
        """The mean logarithm of loss over reference of the candidates at these points, (P,); less is better."""
        candidates = [self.space.reference, *map(self.space.parameters, points)]
        fitness = np.zeros(len(points))
        for one in self.mix:
            loss = np.maximum(one.losses(candidates, self.roots[0], generation * one.episodes).mean(1), LEAST)
            fitness += np.log(loss[1:] / loss[0]) / len(self.mix)
        return fitness

    def checkpoint(self, generation: int, means: Sequence[Floats]) -> Checkpoint:
        """The average of the means of the search since the checkpoint before, compared on the held-out episodes."""
        parameters = self.space.parameters(np.mean(means, axis=0))
        ratios, parts = [], []
        for one in self.mix:
            loss = one.losses([self.space.reference, parameters], self.roots[1], 0, self.held_out * one.episodes)
            base = max(float(loss[0].mean()), LEAST)
            ratios.append(float(loss[1].mean()) / base)
            parts.append(loss[1] / base / loss.shape[1])
        values = np.concatenate(parts) * sum(map(len, parts)) / len(parts)
        made = Checkpoint(generation, parameters, round(self.spent(), 1), ratios, values)
        if self.show:
            line = f"{made.cpu_seconds:6.0f} s  generation {generation:4}  {made.row['ratios']}"
            print(line, file=sys.stderr, flush=True)
        return made

    def search(self, strategy: Any, first: int, last: int, seconds: float) -> list[Checkpoint]:
        """The checkpoints of the generations from `first`, itself one, to `last`, or for so many seconds."""
        checkpoints = [self.checkpoint(first, [strategy.mean.copy()])]
        generation, means = first, []
        while generation < last and not self.interrupts and self.spent() - self.compiling.seconds < seconds:
            points = [strategy.ask() for _ in range(strategy.population_size)]
            try:
                fitness = self.fitness(points, generation)
            except KeyboardInterrupt as error:
                if self.interrupts is None:
                    raise
                print("interrupted: the best checkpoint so far is kept; Ctrl-C again leaves at once", file=sys.stderr)
                self.interrupts.append(error)
                break
            strategy.tell([(x, float(f)) for x, f in zip(points, fitness, strict=True)])
            means.append(strategy.mean.copy())
            generation += 1
            if generation % self.every == 0:
                checkpoints.append(self.checkpoint(generation, means))
                means = []
        if means:
            checkpoints.append(self.checkpoint(generation, means))
        return checkpoints

    def report(self, parameters: Sequence[float], untrained: Sequence[float]) -> list[dict[str, object]]:
        """How parameters do on fresh episodes: mean losses, and the ratio to the reference with its 95 % interval."""
        rows = []
        for one in self.mix:
            candidates = [[*given, *[0.0] * (len(self.space.start) - len(given))] for given in (parameters, untrained)]
            candidates.insert(0, self.space.reference)
            start, own, before = one.losses(candidates, self.roots[2], 0, self.held_out * one.episodes)
            base = max(float(start.mean()), LEAST)
            ratio = float(own.mean()) / base
            apart = (own - ratio * start) / base  # of a ratio, by linearisation
            low, high = normal_mean(ratio, float(apart.var()) * len(own), len(own))
            lost = {"loss": own, "start": start, "untrained": before}
            row = {"env_kwargs": one.kwargs, "episodes": len(own), "root": self.roots[2]}
            row |= {name: float(values.mean()) for name, values in lost.items()}
            rows.append(row | {"ratio": round(ratio, 5), "low": round(float(low), 5), "high": round(float(high), 5)})
        return rows


class Evolved(tuple[list[float], dict[str, Any]]):
    """Parameters and their card, a tuple; called with a task, it makes their agent, as `evaluate` wants."""

    name, source, solves = Tuned.name, Tuned.source, Tuned.solves

    def __call__(self, task: Task) -> Tuned:
        """The agent with these parameters."""
        return Tuned(task, parameters=self[0])


def _best(checkpoints: Sequence[Checkpoint]) -> Checkpoint:
    """The latest checkpoint that is at most one standard error worse than the best."""
    return checkpoints[latest_of_the_best(-np.stack([one.values for one in checkpoints]))]


def _best_of(evolution: Evolution, call: Mapping[str, Any], path: Path | None) -> Evolved:
    """The best of several seeds, on the held-out episodes of the first."""
    space, seeds = evolution.space, range(call["seed"], call["seed"] + call["seeds"])
    judging = replace(evolution, space=space.with_network(space.start.tolist(), 0), roots=[evolution.roots[1]] * 3)
    made = [evolve(**{**call, "seed": seed, "seeds": 1}) for seed in seeds]
    ratios = [float(np.mean([row["ratio"] for row in judging.report(one[0], one[0])])) for one in made]
    best = made[int(np.argmin(ratios))]
    best[1]["seeds"] = [{"seed": x, "loss_over_reference": y} for x, y in zip(seeds, ratios, strict=True)]
    _write(best[1], path)
    return best


def _write(card: Mapping[str, Any], path: Path | None) -> None:
    """Write a card, where there is a path."""
    if path is not None:
        write_alone(path, lambda place: place.write_text(json.dumps(card, indent=1) + "\n"))


def evolve_by(env_id: str, steps: int | None = None, **given: Any) -> Evolved:
    """`evolve` by keywords of `agents.train`: steps are generations; ten minutes where nothing says how long."""
    given = {"generations": steps, "seconds": None, **given}
    if surplus := sorted(set(given) - set(known := evolve.__kwdefaults__ or {})):
        raise unknown("hyperparameter of evolved", surplus[0], list(known))
    given["seconds"] = 600.0 if given["seconds"] is given["generations"] is None else given["seconds"]
    return evolve(env_id, **given)


def evolve(
    env_id: str = "bandit_envs/Threshold-v0",
    *,
    seconds: float | None = None,
    generations: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    population: int = 12,
    env_kwargs: Mapping[str, object] | None = None,
    mix: Sequence[Mapping[str, Any]] | None = None,
    episodes: int = 1000,
    held_out: int = 4,
    every: int = 5,
    searched: Sequence[str] | None = None,
    network: bool = True,
    jobs: int = 1,
    resume: str | Path | None = None,
    trust: bool = False,
    out: str | Path | None = None,
    progress: bool | None = None,
) -> Evolved:
    """Tune the index of the agent `evolved`, and the network that corrects it.

    The same `seed` and `generations` give the same parameters (on one platform).

    Args:
        env_id: a registered environment, or the name of its problem. env_kwargs: its keywords, without the forms.
        seconds: processor time of the whole call, of all processes together, without compiling.
        generations: how many. At least one of the two is needed.
        seed: of the search and of all episodes, an integer >= 0.
        seeds: so many searches, `seed` and on, each for the time given; the best on common held-out episodes is
            returned. Its card has the mean loss of all, as a multiple of the reference, under "seeds".
        population: candidates of a generation, >= 4.
        mix: several environments: for each what it adds to `env_kwargs`, and `episodes` where wanted.
        episodes: of each candidate on each environment in a generation.
        held_out: checkpoints are compared on so many times as many episodes.
        every: generations from a checkpoint to the next.
        searched: the parameters to tune, by name, at least two; the others stay where the search starts. None: all but
            alpha and the second bend.
        network: whether a network that corrects the index is tuned too.
        jobs: processes, as for `evaluate`. The parameters do not depend on it.
        resume: go on from the parameters on this card, on fresh episodes, with those of the network from the beginning.
            What is not said of `env_kwargs` and `mix` is as on the card.
        trust: go on from a card that names "module:name", too: its maker may run any code.
        out: write the card with the parameters as `<out>.json`.
        progress: a line on standard error for each checkpoint; None: if that is a terminal.

    Returns:
        The parameters, and the card: how they came about, and what they reached; `evaluate` takes this pair.

    Raises:
        ValueError: naming the value and what is allowed. ImportError: without the package cmaes.
    """
    resume = None if resume is None else str(resume)
    call = dict(locals())
    given = {name: value for name, value in call.items() if name not in ("env_id", "jobs", "trust", "out", "progress")}
    began, show = time.process_time(), shown(progress)
    cmaes = require("cmaes", "evolve", "training")
    if seconds is None and generations is None:
        raise ValueError("evolve needs seconds or generations")
    seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
    generations = sys.maxsize if generations is None else integer("generations", generations, 1, 10**6)
    env_id = environment_id(env_id)
    trust, population = flag("trust", trust), integer("population", population, 4, 1000)
    every, held_out = integer("every", every, 1, 10**6), integer("held_out", held_out, 1, 1000)
    former = {} if resume is None else read_card(Path(resume))
    mix, kwargs = former.get("mix") if mix is None else mix, {**(former.get("env_kwargs") or {}), **(env_kwargs or {})}
    path = None if out is None else Path(str(out).removesuffix(".json") + ".json")
    if path is not None:
        try_out(path)
    with reading(Path(resume or "")):
        before = [integer("a root", row["root"], 0) for row in former.get("result", [])[:1]]
    words = np.random.SeedSequence([root_number(seed), 1, *before]).generate_state(6, np.uint64) >> np.uint64(1)
    *roots, search_seed, bends_seed, pairs_seed = (int(word) for word in words)
    environments = []
    for one in [{}] if mix is None else mix:
        if not isinstance(one, Mapping):
            raise ValueError(f"mix must be a list of dicts, got {one!r:.200} in it")
        own = {**kwargs, **one}
        count = own.pop("episodes", episodes)
        named = [call[name] for name in ("env_id", "env_kwargs", "mix")]
        with names_alone(f"the card {resume}", trust or resume is None, named):
            environments.append(CommonEpisodes(env_id, own, count, jobs_number(jobs)))
        if by_certificate(environments[-1].task):
            text = f"evolve tunes an index, which needs a budget or a pull_cost, got {own}: where a delta alone ends"
            raise ValueError(f"{text} the episodes, the agent evolved is evidence, and there is nothing to tune")
        refuse_guardrails("evolved", environments[-1].task)
    space = search_space(environments[0].task, environments[0].local, searched)
    start = space.start.tolist()
    if resume is not None:
        with reading(Path(resume)):
            if former["algorithm"] != "evolved":
                raise ValueError(f"its algorithm is {former['algorithm']!r:.80}")
            start = read_parameters(environments[0].task, parameters_on(former))
    space = replace(space, start=np.array(start[: len(space.names)]))
    zero = np.zeros(len(space.searched))
    strategy = cmaes.CMA(mean=zero, sigma=STEP, seed=search_seed % 2**32, population_size=population)
    end, interrupts = SEARCHING * (math.inf if seconds is None else seconds), None if path is None else list[Any]()
    with compilation_noted(show), CompileTime() as compiling:
        evolution = Evolution(environments, space, every, held_out, roots, began, compiling, show, interrupts)
        if integer("seeds", seeds, 1, 1000) > 1:
            return _best_of(evolution, call, path)
        if network:
            last = math.ceil(FORMULA * generations)
            checkpoints = [] if former else evolution.search(strategy, 0, last, FORMULA * end)
            index = start if former else _best(checkpoints).parameters
            evolution = replace(evolution, space=space.with_network(index, bends_seed))
            pairs = MirroredSearch(len(evolution.space.searched), SPREAD, PACE, 2 * population, pairs_seed)
            later = evolution.search(pairs, 0 if former else checkpoints[-1].generation, generations, end)
            checkpoints += later if former else later[1:]
        else:
            checkpoints = evolution.search(strategy, 0, generations, end)
    kept = _best(checkpoints)
    listed = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    card: dict[str, Any] = {
        "format": FORMAT,
        "call": f"agents.evolve({env_id!r}, {listed})",
        "algorithm": "evolved",
        "rival": "LSA's index",
        "env_id": env_id,
        "parameters": [float(f"{parameter:.6g}") for parameter in kept.parameters],
        "names": evolution.space.names[: len(kept.parameters)],
        **{"kept": kept.generation, "checkpoints": [one.row for one in checkpoints]},
        **{"generations": checkpoints[-1].generation, "population": population, "seed": seed},
        **{"env_kwargs": kwargs, "mix": mix},
        "result": evolution.report(kept.parameters, start[: len(evolution.space.names)]),
        "versions": packages(cmaes),
        "cpu_seconds": round(evolution.spent(), 1),
    }
    _write(card, path)
    if interrupts:
        raise KeyboardInterrupt(f"{path} holds the best checkpoint so far") from interrupts[0]
    return Evolved((card["parameters"], card))
