"""Golden episodes: plays of every agent on every problem that it solves, recorded as digests in `golden.json`.

A refactoring must not change a single decision. Each row is an agent with its parameters and a setting; its digest is
over every arm and number of pulls chosen at every step of every episode, every answer, and the recommendations on the
way. Everything goes through the public interface, so that modules may move.

    python tests/campaigns/golden.py              play all rows and compare them with the record
    python tests/campaigns/golden.py --only st2   only rows whose key holds this text
    python tests/campaigns/golden.py --trace KEY  print what goes into the digest of one row, to be compared by `diff`
    python tests/campaigns/golden.py --write      record: only where a change of decisions is wanted
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

import agents
import bandit_envs  # noqa: F401  registers the environments

__all__ = ["NETWORKS", "SETTINGS", "VARIANTS", "bare", "digest", "incomparable", "make", "play", "read", "split"]

RECORD = Path(__file__).with_name("golden.json")
NETWORKS = ("ppo",)  # they read beliefs, and need PyTorch
EPISODES = 10  # side by side
LIVES = 3  # episodes of each slot, one after the other, unless the steps end first
LOOKS = (2, 9, 40, 150, 450)  # steps at which recommendations are recorded, and decisions without a memory
Show = Callable[[str, "NDArray[np.int64]"], None]


# --- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """What is played on.

    Attributes:
        problem, kwargs: of the environment. name: in words.
        steps: of the batch, at most.
        forget: the step at which the state is dropped, and built anew from what has been seen; 0: never.
        autoreset: "Disabled": slots that have ended are restarted together every few steps; or "NextStep".
        only: names of the agents that play, without parameters; empty: all that can.
    """

    problem: str
    name: str
    kwargs: dict[str, Any]
    steps: int
    forget: int
    autoreset: str
    only: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.problem} {self.name}{', memory dropped' if self.forget else ''}"


def _setting(
    problem: str,
    name: str,
    arms: dict[str, Any],
    steps: int = 600,
    *,
    forget: int = 0,
    autoreset: str = "Disabled",
    only: tuple[str, ...] = (),
    **rules: Any,
) -> Setting:
    return Setting(problem, name, {**arms, **rules}, steps, forget, autoreset, only)


def gaussian(arms: int, spread: float) -> dict[str, Any]:
    """Random Gaussian arms with means on [0, 1]."""
    return {"instance": {"sampler": {"distribution": "gaussian", "arms": arms, "spread": spread}}}


def bernoulli(arms: int) -> dict[str, Any]:
    """Random Bernoulli arms."""
    return {"instance": {"sampler": {"arms": arms}}}


def fixed(distribution: str, *levels: tuple[int, float, float], **more: Any) -> dict[str, Any]:
    """Groups of so many arms with means from .. to; given in a random order in every episode."""
    mean = np.concatenate([np.linspace(low, high, count) for count, low, high in levels])
    return {"instance": {"distribution": distribution, "mean": mean.round(6).tolist(), **more}, "shuffle_arms": True}


Rules = dict[str, Any]
DELTA: Rules = {"delta": 0.1, "actions": "full"}
DELTA_ARMS: Rules = {"delta": 0.1, "actions": "arm"}
BUDGET: Rules = {"actions": "full"}
BUDGET_ARMS: Rules = {"actions": "arm"}
IN_ROUNDS = ("direct", "halving", "incremental", "adaptive-top-k", "improved-top-k", "median-elimination")
UNEQUAL = {
    "instance": {
        "distribution": "gaussian",
        "mean": [0.0, 0.2, 0.4, 0.45, 0.55, 0.6, 0.8, 1.0],
        "sd": [0.3, 0.02, 0.02, 0.05, 0.02, 0.3, 0.05, 0.05],
    },
    "shuffle_arms": True,
}
GRADES = {
    "distribution": "categorical",
    "values": [1, 2, 4],
    "probabilities": [[6, 1, 1], [1, 1, 6], [1, 3, 1], [1, 1, 1], [3, 1, 0]],
}
NEAR_HALF = fixed("bernoulli", (4, 0.2, 0.35), (1, 0.45, 0.45), (1, 0.55, 0.55), (4, 0.65, 0.8))

_TABLE = [
    # the k best arms
    _setting("TopK", "k=3 gaussian K=12 delta", gaussian(12, 0.2), 1000, k=3, epsilon=0.3, **DELTA),
    _setting(
        "TopK",
        "k=2 bernoulli K=6 delta, arms",
        bernoulli(6),
        800,
        forget=75,
        k=2,
        epsilon=0.7,
        max_pulls=450,
        **DELTA_ARMS,
    ),
    _setting(
        "TopK",
        "k=3 bernoulli K=12 budget",
        bernoulli(12),
        450,
        autoreset="NextStep",
        k=3,
        epsilon=0.1,
        budget=200,
        **DELTA,
    ),
    _setting(
        "TopK",
        "k=6 gaussian K=9 budget, arms",
        gaussian(9, 0.1),
        400,
        forget=60,
        k=6,
        epsilon=0.2,
        budget=160,
        **DELTA_ARMS,
    ),
    _setting("TopK", "k=8 gaussian K=64 budget", gaussian(64, 0.1), 1100, k=8, epsilon=0.3, budget=1000, **DELTA),
    _setting(
        "TopK",
        "k=5 gaussian K=120 delta, arms",
        gaussian(120, 0.1),
        700,
        autoreset="NextStep",
        k=5,
        epsilon=0.4,
        max_pulls=600,
        **DELTA_ARMS,
    ),
    _setting(
        "TopK",
        "k=3 ties 0 and 1 delta",
        fixed("bernoulli", (2, 0.0, 0.0), (1, 0.5, 0.5), (2, 0.9, 0.9), (2, 1.0, 1.0)),
        700,
        k=3,
        epsilon=0.4,
        max_pulls=600,
        **DELTA,
    ),
    _setting(
        "TopK", "k=2 grades 1 to 4 delta", {"instance": GRADES, "shuffle_arms": False}, 700, k=2, epsilon=0.9, **DELTA
    ),
    _setting(
        "TopK",
        "k=2 quiet gaussian K=7 delta, arms",
        gaussian(7, 0.02),
        1200,
        forget=40,
        k=2,
        epsilon=0.1,
        max_pulls=900,
        **DELTA_ARMS,
    ),
    _setting(
        "TopK",
        "k=2 zeros and ones K=5 delta",
        fixed("bernoulli", (3, 0.0, 0.0), (2, 1.0, 1.0)),
        k=2,
        epsilon=0.4,
        **DELTA,
    ),
    _setting("TopK", "k=3 unequal gaussian K=8 delta", UNEQUAL, 1500, k=3, epsilon=0.2, **DELTA),
    _setting(
        "TopK",
        "k=5 quiet gaussian K=120 delta, arms",
        gaussian(120, 0.02),
        1100,
        only=IN_ROUNDS,
        k=5,
        epsilon=0.3,
        max_pulls=1000,
        **DELTA_ARMS,
    ),
    _setting(
        "TopK",
        "k=3 gaussian K=12 delta, bulk",
        gaussian(12, 0.5),
        only=IN_ROUNDS,
        k=3,
        epsilon=0.1,
        autoreset="NextStep",
        **DELTA,
    ),
    _setting("TopK", "k=15 bernoulli K=100 delta, bulk", bernoulli(100), only=IN_ROUNDS, k=15, epsilon=0.2, **DELTA),
    *(
        _setting(
            "TopK",
            f"k=2 criterion={criterion} gaussian K=8 delta, arms",
            gaussian(8, 0.1),
            only=("clucb",),
            k=2,
            epsilon=0.1,
            criterion=criterion,
            max_pulls=300,
            **DELTA_ARMS,
        )
        for criterion in ("aggregate", "each", "exact")
    ),
    # the best arm
    _setting("BestArm", "gaussian K=12 delta", gaussian(12, 0.2), 800, epsilon=0.4, **DELTA),
    _setting(
        "BestArm", "bernoulli K=5 delta, arms", bernoulli(5), 700, forget=50, epsilon=0.8, max_pulls=400, **DELTA_ARMS
    ),
    _setting(
        "BestArm",
        "bernoulli K=10 budget",
        bernoulli(10),
        350,
        autoreset="NextStep",
        epsilon=0.1,
        budget=150,
        criterion="each",
        **DELTA,
    ),
    _setting(
        "BestArm",
        "gaussian K=60 budget, arms",
        gaussian(60, 0.1),
        700,
        forget=150,
        epsilon=0.2,
        budget=600,
        **DELTA_ARMS,
    ),
    _setting("BestArm", "quiet gaussian K=100 delta", gaussian(100, 0.02), 700, epsilon=0.1, **DELTA),
    _setting(
        "BestArm",
        "quiet gaussian K=6 delta, arms",
        gaussian(6, 0.05),
        900,
        autoreset="NextStep",
        epsilon=0.3,
        max_pulls=600,
        **DELTA_ARMS,
    ),
    _setting("BestArm", "bernoulli K=11 delta, bulk", bernoulli(11), only=IN_ROUNDS, epsilon=0.2, **DELTA),
    _setting("BestArm", "bernoulli K=2 delta", bernoulli(2), 300, epsilon=0.5, max_pulls=200, **DELTA),
    # all good arms
    _setting(
        "AllGood",
        "epsilon=.4 gaussian K=12 delta",
        fixed("gaussian", (5, 0.9, 1.0), (7, 0.0, 0.2), sd=0.15),
        1000,
        epsilon=0.4,
        max_pulls=5000,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "epsilon=.3 bernoulli K=8 delta, arms",
        fixed("bernoulli", (3, 0.85, 0.95), (5, 0.05, 0.5)),
        700,
        forget=90,
        epsilon=0.3,
        max_pulls=350,
        **DELTA_ARMS,
    ),
    _setting(
        "AllGood",
        "epsilon=.28 gaussian K=10 delta, arms",
        fixed("gaussian", (10, 0.0, 1.0), sd=0.15),
        1800,
        epsilon=0.28,
        max_pulls=1500,
        **DELTA_ARMS,
    ),
    _setting(
        "AllGood",
        "epsilon=.3 slack=.3 gaussian K=10 delta",
        fixed("gaussian", (10, 0.0, 1.0), sd=0.15),
        1000,
        autoreset="NextStep",
        epsilon=0.3,
        slack=0.3,
        max_pulls=5000,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "multiplicative epsilon=.4 gaussian K=12 delta",
        fixed("gaussian", (4, 0.9, 1.0), (8, 0.0, 0.3), sd=0.1),
        800,
        epsilon=0.4,
        multiplicative=True,
        max_pulls=5000,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "multiplicative epsilon=.3 slack=.3 uniform K=9 delta, arms",
        fixed("uniform", (9, 0.1, 1.0), width=0.3),
        900,
        forget=120,
        epsilon=0.3,
        multiplicative=True,
        slack=0.3,
        max_pulls=700,
        **DELTA_ARMS,
    ),
    _setting(
        "AllGood",
        "multiplicative epsilon=.2 slack=.1 bernoulli K=7 delta",
        fixed("bernoulli", (7, 0.1, 0.9)),
        epsilon=0.2,
        multiplicative=True,
        slack=0.1,
        max_pulls=5000,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "multiplicative epsilon=.5 means near 0 gaussian K=6 delta",
        fixed("gaussian", (6, 0.02, 0.2), sd=1.0),
        500,
        epsilon=0.5,
        multiplicative=True,
        max_pulls=200,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "epsilon=.4 gaussian K=100 delta, arms",
        fixed("gaussian", (30, 0.9, 1.0), (70, 0.0, 0.2), sd=0.06),
        1100,
        epsilon=0.4,
        max_pulls=1000,
        **DELTA_ARMS,
    ),
    _setting(
        "AllGood",
        "epsilon=.3 slack=.3 gaussian K=60 delta",
        fixed("gaussian", (60, 0.0, 1.0), sd=0.05),
        900,
        epsilon=0.3,
        slack=0.3,
        max_pulls=5000,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "epsilon=.5 zeros and ones K=5 delta",
        fixed("bernoulli", (3, 0.0, 0.0), (2, 1.0, 1.0)),
        500,
        epsilon=0.5,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "epsilon=.25 gaussian K=10 budget",
        fixed("gaussian", (10, 0.1, 0.9), sd=0.1),
        700,
        forget=70,
        epsilon=0.25,
        budget=300,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "epsilon=.25 random gaussian K=9 delta, arms",
        gaussian(9, 0.03),
        autoreset="NextStep",
        epsilon=0.25,
        max_pulls=400,
        **DELTA_ARMS,
    ),
    _setting(
        "AllGood",
        "epsilon=.3 bad arms last gaussian K=5 delta",
        {"instance": {"distribution": "gaussian", "mean": [1.0, 0.9, 0.3, 0.2, 0.1], "sd": 0.1}, "shuffle_arms": False},
        2000,
        only=("fareast",),
        epsilon=0.3,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "epsilon=.75 gaussian K=10 price",
        {"instance": {"sampler": {"distribution": "gaussian", "mean": {"uniform": [0.0, 2.4]}}}},
        500,
        only=("evolved", "st2"),
        epsilon=0.75,
        pull_cost=0.001,
        max_pulls=300,
        **DELTA,
    ),
    _setting(
        "AllGood",
        "multiplicative epsilon=.3 bernoulli K=60 price, arms",
        bernoulli(60),
        400,
        only=("evolved", "st2"),
        epsilon=0.3,
        multiplicative=True,
        pull_cost=0.001,
        max_pulls=250,
        **DELTA_ARMS,
    ),
    # thresholding
    _setting("Threshold", "bernoulli K=10 budget", NEAR_HALF, 450, budget=200, **BUDGET),
    _setting(
        "Threshold", "random bernoulli K=10 budget, arms", bernoulli(10), 400, forget=60, budget=150, **BUDGET_ARMS
    ),
    _setting(
        "Threshold",
        "threshold=.4 tolerance=.05 gaussian K=12 budget",
        fixed("gaussian", (12, 0.0, 1.0), sd=0.5),
        400,
        autoreset="NextStep",
        threshold=0.4,
        tolerance=0.05,
        budget=180,
        **BUDGET,
    ),
    _setting("Threshold", "gaussian K=9 delta, arms", gaussian(9, 0.3), 350, max_pulls=150, **DELTA_ARMS),
    _setting(
        "Threshold",
        "threshold=.3 bernoulli K=60 budget",
        fixed("bernoulli", (60, 0.05, 0.95)),
        500,
        forget=120,
        threshold=0.3,
        budget=300,
        **BUDGET,
    ),
    _setting("Threshold", "gaussian K=300 budget, arms", gaussian(300, 0.3), 1000, budget=900, **BUDGET_ARMS),
    _setting(
        "Threshold",
        "gaussian K=8 price",
        gaussian(8, 0.3),
        400,
        only=("evolved",),
        pull_cost=0.001,
        max_pulls=150,
        **DELTA,
    ),
    _setting(
        "Threshold",
        "in order K=10 budget",
        {"instance": "tao2019-1"},
        250,
        only=("static", "offline"),
        budget=90,
        **BUDGET,
    ),
    # feasible arms
    _setting(
        "Feasible",
        "in order K=20 budget, arms",
        {"instance": "katz-samuels2018-1"},
        350,
        forget=60,
        only=("static",),
        budget=150,
        **BUDGET_ARMS,
    ),
    _setting("Feasible", "square bernoulli K=10 budget, arms", {}, 350, forget=60, budget=150, **BUDGET_ARMS),
    _setting(
        "Feasible",
        "polyhedron gaussian D=3 K=10 budget",
        {"instance": "polyhedra"},
        350,
        autoreset="NextStep",
        budget=150,
        **BUDGET,
    ),
    _setting(
        "Feasible",
        "cube gaussian D=5 K=20 budget",
        {"instance": "katz-samuels2018-1", "shuffle_arms": True},
        450,
        budget=200,
        **BUDGET,
    ),
    _setting(
        "Feasible",
        "polyhedron bernoulli D=4 K=60 delta, arms",
        {"instance": {"polyhedra": {"distribution": "bernoulli", "arms": 60, "dimensions": 4}}},
        400,
        max_pulls=250,
        **DELTA_ARMS,
    ),
    _setting(
        "Feasible",
        "simplex gaussian D=5 K=20 budget, coordinates",
        {"instance": "katz-samuels2018-4", "shuffle_arms": True},
        500,
        forget=140,
        budget=250,
        pull="coordinate",
        **BUDGET,
    ),
    _setting(
        "Feasible",
        "polyhedron gaussian D=2 K=60 budget, coordinates, arms",
        {"instance": {"polyhedra": {"arms": 60, "dimensions": 2}}},
        500,
        budget=250,
        pull="coordinate",
        **BUDGET_ARMS,
    ),
]
SETTINGS: dict[str, Setting] = {setting.key: setting for setting in _TABLE}

# Agents with parameters that lead to other code, on the settings of these problems (all that they run on).
VARIANTS: dict[str, tuple[str, ...]] = {
    "apt(tolerance=0.1)": ("Threshold",),
    "dp-index(prior=(2.0, 1.0), horizon=10)": ("Threshold",),
    "evolved(genes=(1,1,1,2,0,0,0,0,0,1,0,1,0,0,0,0,0,0,0,1))": ("Threshold",),  # with stopping
    "opt-kg(prior=(0.5, 2.0))": ("Threshold",),
    "ucbe(b=1.0)": ("Threshold", "Feasible"),
    "ucbe(scale=2.0)": ("Threshold", "Feasible"),
    "ucbe(a=3.0)": ("Threshold", "Feasible"),
    "st2(bounds='running', c=2.08)": ("AllGood",),
    "st2(c=0.3)": ("AllGood",),
    "st2(c=0.3, bounds='running')": ("AllGood",),
    "two-step(bounds='running', c=0.1)": ("AllGood",),
    "fareast(finder='lucb')": ("AllGood",),
    "fareast(finder='lucb', c=0.3, kappa=0.3)": ("AllGood",),
    "fareast(finder='lucb', c=15.0)": ("AllGood",),
    "fareast(c=0.3, sigma=0.1)": ("AllGood",),
    "east(c=0.5)": ("AllGood",),
    "uniform-elimination(c=0.1)": ("AllGood",),
    "ucb(bounds='current', c=0.02)": ("AllGood", "BestArm"),
    "lucb(widths='lil')": ("AllGood", "TopK", "BestArm"),
    "lucb(widths='hoeffding', epsilon=0.05, sigma=0.1)": ("TopK",),
    "kl-lucb(threshold='lil')": ("TopK", "BestArm"),
    "kl-lucb(sigma=0.3)": ("TopK",),
    "kl-lucb(threshold='lil', sigma=0.3)": ("TopK",),
    "clucb(sigma=0.1)": ("TopK",),
    "pi2(cap=True)": ("TopK", "BestArm"),
    "pi3(cap=True)": ("TopK",),
    "adapt(cap=True)": ("TopK", "BestArm"),
    "adapt(width=0.5, seed=3)": ("TopK",),
    "ocba-m(Delta=5, n0=5)": ("TopK", "BestArm"),
    "ocba-m(n0=2)": ("TopK", "BestArm"),
    "ocba-m(n0=3, Delta=20, seed=1)": ("TopK",),
    "racing(widths='hoeffding')": ("TopK", "BestArm"),
    "racing(widths='bernstein')": ("TopK",),
    "racing(rounds=20)": ("TopK",),
    "racing(rounds=8, beyond=False)": ("TopK", "BestArm"),
    "racing(widths='hoeffding', rounds=15, beyond=False, width=0.4)": ("TopK",),
    "adaptive-top-k(constants='practical')": ("TopK", "BestArm"),
    "opt-mai(reuse=True)": ("TopK", "BestArm"),
    "improved-top-k(reuse=True)": ("TopK", "BestArm"),
    "median-elimination(sigma=0.1)": ("BestArm",),
    "lil-ucb(constants='heuristic')": ("BestArm",),
    "hdoc(sampling='lucb-g')": ("Threshold",),
    "hdoc(sampling='apt-g')": ("Threshold",),
    "sequential-halving(reuse=True)": ("BestArm",),
    "batched-elimination(batches=7, growth=1.2, first=3)": ("TopK", "BestArm"),
    "tri-bbai(alpha=4.0)": ("BestArm",),
    "opt-bbai(precision=2.0, repeats=0)": ("BestArm",),
    "ugape(a=2.0)": ("TopK", "BestArm"),
    "ugape(sigma=0.1)": ("TopK",),
    "random(seed=7)": ("TopK",),
    "evidence(distribution='student')": ("TopK", "AllGood"),
    "evidence(distribution='gaussian', boundary='kaufmann-koolen')": ("BestArm", "Threshold"),
    "track-and-stop(tracking='C')": ("BestArm", "AllGood", "Feasible"),
    "top-two(rule='ttts')": ("BestArm", "TopK", "Threshold"),
    "top-two(rule='eb-tc', proportions='fixed', boundary='nominal')": ("BestArm", "TopK"),
}


def rows() -> Iterator[str]:
    """The keys of all pairs of an agent and a setting of a problem that it solves, also where `make` refuses."""
    for setting in SETTINGS.values():
        variants = [name for name, problems in VARIANTS.items() if setting.problem in problems]
        for name in [*agents.names(setting.problem), *variants]:
            if not setting.only or bare(name) in setting.only:
                yield f"{name} | {setting.key}"


def split(key: str) -> tuple[str, str]:
    """The agent, with its parameters, and the key of the setting."""
    name, _, setting = key.partition(" | ")
    return name, setting


def bare(name: str) -> str:
    """An agent's name without parameters; also of a row's key."""
    return name.partition(" | ")[0].partition("(")[0]


# --- plays ------------------------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What a play came to."""

    steps: int = 0
    pulls: int = 0
    ended: int = 0  # episodes
    stopped: int = 0  # of these, by the agent
    begun_anew: int = 0  # restarts that the agent's state has met


class _Digest:
    """A digest over labelled integers, shown on the way if wanted."""

    def __init__(self, show: Show | None = None) -> None:
        self._hash, self._show = hashlib.blake2b(digest_size=16), show

    def add(self, what: str, values: ArrayLike) -> None:
        array = np.ascontiguousarray(values, np.int64)
        self._hash.update(f"{what}{array.shape}".encode())
        self._hash.update(array.tobytes())
        if self._show is not None:
            self._show(what, array)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def make(name: str, setting: Setting) -> tuple[Any, Any]:
    """The environments of a setting and the agent on them.

    Raises:
        ValueError: if the agent does not run on this setting.
    """
    kwargs = dict(setting.kwargs)
    if name in NETWORKS:
        kwargs |= {
            "observation": agents.make(name, gym.make(f"bandit_envs/{setting.problem}-v0", **kwargs)).observation
        }
        kwargs |= {"actions": "arm"}
    live_views = setting.autoreset == "Disabled"  # copies of the observations in the other form, so that both are met
    envs: Any = gym.make_vec(
        f"bandit_envs/{setting.problem}-v0", EPISODES, autoreset_mode=setting.autoreset, copy=not live_views, **kwargs
    )
    return envs, agents.make(name, envs)


def play(envs: Any, agent: Any, setting: Setting, show: Show | None = None) -> tuple[str, Tally]:
    """Let an agent play, and the digest of all that it decides.

    Recorded are, of episodes that are going on: slots, arms and times at every step; where one stops, the agent's own
    recommendation, and where one ends, the answer, its pulls and whether it was correct; at some steps the
    recommendations and what the agent would do if it had no state, where it goes on without one.
    """
    full, recommends = envs.unwrapped.task.actions == "full", hasattr(agent, "recommend")
    record, tally, resumes = _Digest(show), Tally(), getattr(agent, "resumes", True)
    stop = envs.unwrapped.task.stop
    slots, once = np.arange(EPISODES), np.ones(EPISODES, np.int64)
    observation, _ = envs.reset(seed=11)
    state, waiting, lives = None, np.zeros(EPISODES, np.bool_), np.zeros(EPISODES, np.int64)
    for step in range(setting.steps):
        if step == setting.forget > 0 and resumes:
            state = None
        action, state = agent.predict(observation, state)
        arms, times = (action["arm"], action["times"]) if full else (action, once)
        live = slots[~waiting]
        record.add(f"{step} slots, arms, times", [live, arms[live], times[live]])
        stopping = live[arms[live] == stop]
        if len(stopping) and recommends:
            record.add(f"{step} recommended at the stop", agent.recommend(observation, state, stopping))
        if step in LOOKS:
            if resumes:
                alone, _ = agent.predict(observation, None)
                record.add(f"{step} arms without a memory", (alone["arm"] if full else alone)[live])
            if recommends:
                record.add(f"{step} recommended", agent.recommend(observation, state)[live])
                record.add(f"{step} recommended of some", agent.recommend(observation, state, live[::2]))
                record.add(f"{step} recommended without a memory", agent.recommend(observation)[live])
        observation, _, terminated, truncated, info = envs.step(action)
        ended = np.flatnonzero((terminated | truncated) & ~waiting)
        tally.steps += 1
        tally.stopped += len(stopping)
        if setting.autoreset == "NextStep":
            tally.begun_anew += int(waiting.sum())
            waiting[:] = False
        if len(ended):
            record.add(f"{step} ended", ended)
            for what in ("answer", "total_pulls", "correct"):
                record.add(f"{step} {what}", info[what][ended])
            waiting[ended] = True
            lives[ended] += 1
            tally.ended += len(ended)
            tally.pulls += int(info["total_pulls"][ended].sum())
            if lives.min() >= LIVES:
                break
        if setting.autoreset == "Disabled" and waiting.any() and (step % 5 == 4 or waiting.all()):
            tally.begun_anew += int(waiting.sum())
            observation, _ = envs.reset(options={"reset_mask": waiting.copy()})
            waiting[:] = False
    envs.close()
    return record.hexdigest(), tally


def digest(key: str, show: Show | None = None) -> str:
    """Play the row of this key: its digest."""
    name, setting = split(key)
    return play(*make(name, SETTINGS[setting]), SETTINGS[setting], show)[0]


# --- the record -------------------------------------------------------------------------------------------------------


def _last_bits() -> str:
    """A digest of logarithms, powers and roots as they come out here: libraries and processors round differently."""
    x = np.concatenate([np.linspace(0.001, 3.0, 1009), np.geomspace(1.0, 1e6, 1009)])
    alone = [f(v) for f in (math.log, math.log2, math.log1p, math.sqrt, math.lgamma) for v in x.tolist()]
    alone += [f(-v) for f in (math.exp, math.expm1, math.erf) for v in x.tolist()]
    together = [np.log(x), np.log2(x), np.log1p(x), np.sqrt(x), np.exp(-x), x**1.7]
    return hashlib.blake2b(np.concatenate([alone, *together]).tobytes(), digest_size=16).hexdigest()


def header() -> dict[str, str]:
    """What decisions may depend on, beside the code."""
    return {
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": platform.machine(),
        "last_bits": _last_bits(),
    }


def read() -> tuple[dict[str, str], dict[str, str]]:
    """Header and digests of the record."""
    content = json.loads(RECORD.read_text())
    return content["header"], content["digests"]


def incomparable(recorded: dict[str, str]) -> str | None:
    """Why digests made here cannot be compared with a record of this header; None if they can."""
    here = header()
    minor = {name: ".".join(one["numpy"].split(".")[:2]) for name, one in (("here", here), ("there", recorded))}
    if minor["here"] != minor["there"]:
        return f"the record is of numpy {minor['there']}, here is {minor['here']}"
    if here["machine"] != recorded["machine"]:
        return f"the record is of a machine {recorded['machine']}, here is {here['machine']}"
    if here["last_bits"] != recorded["last_bits"]:
        return "the last bits of logarithms differ here from those of the record"
    return None


def _write(only: str) -> int:
    """Play, and record what was played."""
    digests = {} if not only else read()[1]
    for key in rows():
        if only not in key:
            continue
        name, setting = split(key)
        begin = time.perf_counter()
        try:
            envs, agent = make(name, SETTINGS[setting])
        except ValueError as error:
            digests.pop(key, None)
            print(f"{'refused':>52}  {key}: {error}")
            continue
        digests[key], tally = play(envs, agent, SETTINGS[setting])
        seconds = time.perf_counter() - begin
        print(
            f"{seconds:6.3f} s {tally.steps:5} steps {tally.ended:3} ended {tally.stopped:3} stopped"
            f" {tally.begun_anew:3} anew  {key}"
        )
    RECORD.write_text(json.dumps({"header": header(), "digests": dict(sorted(digests.items()))}, indent=0) + "\n")
    print(f"{len(digests)} rows in {RECORD}")
    return 0


def _compare(only: str) -> int:
    """Play, and tell what differs from the record."""
    recorded, digests = read()
    if reason := incomparable(recorded):
        print(f"note: {reason}")
    keys = [key for key in digests if only in key]
    if importlib.util.find_spec("torch") is None:
        keys = [key for key in keys if bare(key) not in NETWORKS]
    differ = 0
    for key in keys:
        try:
            found, problem = digest(key), "differs"
        except Exception as error:
            found, problem = "", f"{type(error).__name__}: {error}"
        if found != digests[key]:
            differ += 1
            print(f"{key}: {problem}")
    print(f"{len(keys) - differ} of {len(keys)} rows are as recorded")
    return int(differ > 0 or not keys)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record what is played")
    parser.add_argument("--only", default="", help="only rows whose key holds this text")
    parser.add_argument("--trace", metavar="KEY", help="print what goes into the digest of this row")
    given = parser.parse_args()
    if given.trace:
        print(digest(given.trace, lambda what, values: print(what, values.tolist())))
        return 0
    return _write(given.only) if given.write else _compare(given.only)


if __name__ == "__main__":
    sys.exit(main())
