"""`evolve`: CMA-ES on the parameters of the index, all candidates on the same samples of fresh random instances.

The fitness of a candidate is the mean, over the environments of the training mix, of the logarithm of its loss as a
multiple of what LSA loses on the same episodes. The mean of the search distribution, averaged over some generations
since it wanders with the noise, is compared with itself at earlier ones on held-out instances, and the latest of the
best is kept.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bandit_envs
from bandit_envs import integer, number, root_number

from ..core.optional import require
from ..evaluation.statistics import latest_of_the_best
from .agent import STOPPING
from .candidates import Course
from .formula import LSA, PARAMETERS

__all__ = ["START", "evolve", "starting_point"]

Floats = NDArray[np.float64]
# Where the search starts, and how far it looks at first; a parameter of scale 0 stays: alpha, as only the order of the
# indices counts, rho, and the second bend.
START = (1.0, 1.0, 1.0, 2.0, 0.5, 0.1, 0.0, 0.5, 0.0, 1.0, 0.0, 1.0, 0.0, *[0.0] * 5)
SCALES = (0.0, 0.2, 0.0, 0.5, 0.2, 0.1, 0.1, 0.3, 0.5, 0.5, 0.2, 0.5, 0.8, *[0.0] * 5)
STOP_START, STOP_SCALES = (0.0, 0.5), (0.7, 0.15)
LEAST = 1e-12  # of a mean loss


def starting_point(stops: bool) -> tuple[list[float], list[float], list[float]]:
    """The index of LSA, to measure by; where the search starts; and its scales."""
    own = list(STOP_START) if stops else []
    return [*LSA, *own], [*START, *own], [*SCALES, *(STOP_SCALES if stops else ())]


def evolve(
    env_id: str = "bandit_envs/Threshold-v0",
    *,
    seconds: float | None = None,
    generations: int | None = None,
    seed: int = 0,
    population: int = 12,
    env_kwargs: Mapping[str, Any] | None = None,
    mix: Sequence[Mapping[str, Any]] | None = None,
    episodes: int = 1000,
    held_out: int = 4,
    every: int = 5,
    searched: Sequence[str] | None = None,
    out: str | Path | None = None,
    progress: bool | None = None,
) -> tuple[list[float], dict[str, Any]]:
    """Tune the index.

    The same `seed` and `generations` give the same genes (on one platform).

    Args:
        env_id: a registered environment. env_kwargs: its keyword arguments, without actions and observation.
        seconds: processor time of the whole call; generations: how many; at least one of the two.
        seed: of the search and of all episodes. population: candidates of a generation, >= 4.
        mix: several environments: for each the keyword arguments it adds, and `episodes` where wanted.
        episodes: of each candidate on each environment in a generation.
        held_out: looks at the mean of the search take so many times as many episodes. every: generations between looks,
            over which that mean is averaged.
        searched: the parameters to tune, by name, at least two; the others stay where the search starts. None: all but
            alpha, rho and the second bend.
        out: write the card with the genes as `<out>.json`.
        progress: a line on standard error for each look; None: if that is a terminal.

    Returns:
        The genes, and the card: how they came about, and what they reached.

    Raises:
        ValueError: naming the value and what is allowed. ImportError: without the package cmaes.
    """
    began = time.process_time()
    cmaes: Any = require("cmaes", "evolve", "training")
    if seconds is None and generations is None:
        raise ValueError("evolve needs seconds or generations")
    seconds = None if seconds is None else number("seconds", seconds, 0, above=True)
    generations = sys.maxsize if generations is None else integer("generations", generations, 1, 10**6)
    population, every = integer("population", population, 4, 1000), integer("every", every, 1, 10**6)
    held_out, kwargs = integer("held_out", held_out, 1, 1000), dict(env_kwargs or {})
    words = np.random.SeedSequence([root_number(seed), 1]).generate_state(4, np.uint64) >> np.uint64(1)
    racing, choosing, judging, search = (int(word) for word in words)
    courses = []
    for one in [{}] if mix is None else mix:
        own = {**kwargs, **one}
        count = own.pop("episodes", episodes)
        courses.append(Course(env_id, own, count))
    stops = courses[0].task.budget is None
    lsa, start, scales = starting_point(stops)
    scale, names = np.array(scales), [*PARAMETERS, *(STOPPING if stops else ())]
    moving = np.flatnonzero(scale)
    if searched is not None:
        free = [names[i] for i in moving]
        if len(set(searched)) < 2 or not set(searched) <= set(free):
            raise ValueError(f"searched must name at least two of {', '.join(free)}, got {searched!r}")
        moving = np.array([i for i in moving if names[i] in searched])
    strategy = cmaes.CMA(mean=np.zeros(len(moving)), sigma=0.7, seed=search % 2**32, population_size=population)
    show = sys.stderr.isatty() if progress is None else progress
    looks: list[dict[str, Any]] = []
    genes: list[list[float]] = []
    values: list[Floats] = []

    def there(x: Floats) -> list[float]:
        at = np.array(start)
        at[moving] += scale[moving] * x
        return [float(v) for v in at]

    def look(generation: int) -> None:
        genes.append(there(np.mean(means, axis=0)))
        means.clear()
        ratios, parts = [], []
        for course in courses:
            loss = course.losses([lsa, genes[-1]], choosing, 0, held_out * course.episodes)
            base = max(float(loss[0].mean()), LEAST)
            ratios.append(float(loss[1].mean()) / base)
            parts.append(loss[1] / base / loss.shape[1])
        # One number per episode, whose mean is that of the ratios: each environment has the same weight.
        values.append(np.concatenate(parts) * sum(map(len, parts)) / len(parts))
        spent = round(time.process_time() - began, 1)
        looks.append({"generation": generation, "cpu_seconds": spent, "ratios": [round(r, 4) for r in ratios]})
        if show:
            print(f"{spent:6.0f} s  generation {generation:4}  {looks[-1]['ratios']}", file=sys.stderr, flush=True)

    generation, means = 0, [strategy.mean.copy()]
    look(0)
    while generation < generations and (seconds is None or time.process_time() - began < 0.93 * seconds):
        asked = [strategy.ask() for _ in range(population)]
        candidates = [lsa, *map(there, asked)]
        fitness = np.zeros(population)
        for course in courses:
            loss = np.maximum(course.losses(candidates, racing, generation * course.episodes).mean(1), LEAST)
            fitness += np.log(loss[1:] / loss[0]) / len(courses)
        strategy.tell([(x, float(f)) for x, f in zip(asked, fitness, strict=True)])
        means.append(strategy.mean.copy())
        generation += 1
        if generation % every == 0:
            look(generation)
    if generation % every:
        look(generation)
    kept = latest_of_the_best(-np.stack(values))
    card: dict[str, Any] = {
        "algorithm": "evolved",
        "env_id": env_id,
        "genes": [float(f"{gene:.6g}") for gene in genes[kept]],
        "names": names,
        "kept": looks[kept]["generation"],
        "looks": looks,
        "generations": generation,
        "population": population,
        "seed": seed,
        "env_kwargs": kwargs,
        "mix": mix,
        "result": [_report(course, lsa, genes[kept], judging, held_out) for course in courses],
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cmaes": cmaes.__version__,
            "bandit-envs": bandit_envs.__version__,
        },
    }
    card["cpu_seconds"] = round(time.process_time() - began, 1)
    given = {
        "seconds": seconds,
        "generations": None if seconds else generations,
        "seed": seed,
        "population": population,
        "env_kwargs": kwargs or None,
        "mix": mix,
        "episodes": episodes,
        "held_out": held_out,
        "every": every,
        "searched": searched,
    }
    listed = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    card["call"] = f"agents.evolve({env_id!r}, {listed})"
    if out is not None:
        path = Path(str(out).removesuffix(".json") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(card, indent=1) + "\n")
    return card["genes"], card


def _report(course: Course, lsa: Sequence[float], genes: Sequence[float], root: int, times: int) -> dict[str, Any]:
    """JSON-able: the mean losses of the start and of the genes, and their ratio with its 95 % interval."""
    start, own = course.losses([lsa, genes], root, 0, times * course.episodes)
    base, ratio = max(float(start.mean()), LEAST), float(own.mean()) / max(float(start.mean()), LEAST)
    error = float((own - ratio * start).std(ddof=1)) / math.sqrt(len(own)) / base  # of a ratio, by linearisation
    return {
        "env_kwargs": course.kwargs,
        "episodes": len(own),
        "root": root,
        "loss": float(own.mean()),
        "start": float(start.mean()),
        "ratio": round(ratio, 5),
        "low": round(ratio - 1.96 * error, 5),
        "high": round(ratio + 1.96 * error, 5),
    }
