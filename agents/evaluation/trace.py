"""`Trace`: one episode in full, with each pull and the answers on the way. `record`: the pulls of many."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.kernels import EPISODES_LIMIT, flag, integer, root_number
from bandit_envs.simulation import Quiet

from ..core.agent import shown_to
from ..core.files import write_alone
from ..core.optional import pandas, require
from ..registry import recipe_of
from .environment import plain
from .execution import Watch
from .lockstep import NEVER, Lockstep, forfeited
from .plan import check_end, keywords, make_envs, most_pulls, plans_of, plays, pull_numbers
from .progress import compilation_noted, shown

if TYPE_CHECKING:
    from pandas import DataFrame

CAPACITY = 2**16  # pulls that the arrays hold at first
STEPS = 2**21  # actions between two looks at what the user has typed
MOST, BATCH = 2**31, 2**28  # bytes of what is recorded, and of histories side by side
NARROW = {"arms": np.int32, "times": np.int32, "length": np.int32, "samples": np.float32}
MINARI = "minari:"


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """One episode of an agent.

    Attributes:
        task: what the agent could know.
        arms: (T,) the arms pulled, or arm * D + coordinate where single coordinates are pulled.
        samples: (T,) or (T, D) what they yielded; in the place of each pull of a bulk pull the mean of them all.
        at: (C,) numbers of pulls at which the answer was asked for, without altering the episode.
        answers: (C, K) bool, the answers then: at the last decision with no more pulls than that, or the final one.
        verdicts: of these answers, (C,) each: `correct`, `score` and the problem's metrics.
        seen: the statistics of the arms then, `pulls`, `mean` and `variance`, (C, K) or (C, K, D) each.
        means: (K,) or (K, D), the true means of the episode.
        answer: (K,) bool, the final answer.
        correct, score: of the final answer. truncated: whether the episode was cut off by `max_pulls`.
    """

    task: Task
    arms: NDArray[np.int64]
    samples: NDArray[np.float64]
    at: NDArray[np.int64]
    answers: NDArray[np.bool_]
    verdicts: Mapping[str, NDArray[Any]]
    seen: Mapping[str, NDArray[Any]]
    means: NDArray[np.float64]
    answer: NDArray[np.bool_]
    correct: bool
    score: float
    truncated: bool

    @property
    def pulls(self) -> NDArray[np.int64]:
        """Pulls of each arm in the whole episode, (K,), or (K * D,) where single coordinates are pulled."""
        return np.bincount(self.arms, minlength=self.task.stop)

    def to_frame(self) -> DataFrame:
        """A table with a row per pull: `arm`, and `sample`, or `sample_0`, `sample_1`, ... of its coordinates."""
        columns: dict[str, object] = {"arm": self.arms}
        if self.samples.ndim == 1:
            columns["sample"] = self.samples
        else:
            columns |= {f"sample_{d}": column for d, column in enumerate(self.samples.T)}
        table: DataFrame = pandas().DataFrame(columns)
        return table

    def __repr__(self) -> str:
        return f"Trace({len(self.arms)} pulls of {self.task.problem}, score {self.score:.4g})"


def play(
    agent: object,
    env_id: str,
    *,
    env_kwargs: Mapping[str, object] | None = None,
    seed: int = 0,
    episode: int = 0,
    at: Sequence[int] | None = None,
    trust: bool = False,
) -> Trace:
    """Play one episode and keep all of it, for pictures and for looking into what an agent does.

    It is the episode that `evaluate` would play: number `episode` of the root `seed`. A pull takes 16 bytes.

    Args:
        agent: its name, "module:Class(alpha=2)", the path of a saved model (.zip, .json), or another of `evaluate`.
        env_id, env_kwargs, seed, trust: as for `evaluate`. episode: its number.
        at: numbers of pulls at which the answer is asked for too.

    Raises:
        ValueError, FileNotFoundError, gymnasium.error.Error: as `evaluate`.
    """
    recipe, (env_id, kwargs) = recipe_of(agent, trust), plain(env_id, keywords(env_kwargs))
    root, number = root_number(seed), integer("episode", episode, 0, EPISODES_LIMIT - 1)
    checks = np.array(pull_numbers("at", at) or [], np.int64)
    with compilation_noted(shown(None)):
        policy, envs, _ = recipe.paired(functools.partial(make_envs, env_id, 1, kwargs=kwargs), kwargs)
        try:
            check_end(recipe.label, policy, envs.task)
            return _played(policy, envs, root, number, checks)
        finally:
            envs.close()


def _played(policy: Any, envs: Any, root: int, number: int, checks: NDArray[np.int64]) -> Trace:
    task, handcrafted, first = envs.task, envs.task.actions == "full", np.zeros(1, np.int64)
    if task.waits or task.cost is not None:
        given = f"batch={task.batch}, delay={task.delay!r}, cost={task.cost!r:.80}"
        raise ValueError(f"episodes are traced without batch, delay and cost, got {given}")
    most = most_pulls(task)
    width = envs.simulation.rules.D
    arms, samples = np.empty(CAPACITY, np.int64), np.empty(CAPACITY * width)
    observation, info = envs.reset(seed=root, options={"episode": np.array([number])})
    state, begins, answers, over = None, np.ones(1, np.bool_), list[object](), False
    seen: list[tuple[NDArray[np.generic], ...]] = []
    while not over:
        before = int(envs.total_pulls[0])
        if plays(policy, ranked=envs.setting.ranked):
            limit = checks[len(answers)] if len(answers) < len(checks) else NEVER
            if before + 1 >= len(arms):
                arms, samples = np.resize(arms, 2 * len(arms)), np.resize(samples, 2 * len(samples))
            quiet = Quiet(np.array([min(limit, most - 1, len(arms) - 1)]), STEPS)
            simulation = envs.simulation._replace(arms=arms, samples=samples)
            action, state = policy.play(simulation, quiet, observation, state)
            before = int(envs.total_pulls[0])
        else:
            action, state = policy.predict(shown_to(policy, "predict", observation), state, begins, deterministic=True)
        arm, times = (action["arm"], action["times"]) if handcrafted else (action, np.ones(1, np.int64))
        if envs.setting.ranked and arm[0] != task.stop:
            arm = info["order"][0, arm]
        count = 0 if arm[0] == task.stop else min(int(times[0]), most - before)
        while len(answers) < len(checks) and before + count > checks[len(answers)]:
            answers.append(_answer(policy, envs, observation, state, handcrafted))
            seen.append(_seen(envs))
        observation, _, terminated, truncated, info = envs.step(action)
        after, begins, over = int(envs.total_pulls[0]), np.zeros(1, np.bool_), "answer" in info
        if after > len(arms):
            arms, samples = np.resize(arms, 2 * after), np.resize(samples, 2 * after * width)
        arms[before:after] = arm[0]
        samples[before * width : after * width] = np.tile(info["sample"][0], after - before) if after > before else 0
    final, verdict = info["answer"][0], {name: info[name][0] for name in ("correct", "score")}
    if handcrafted and truncated[0]:
        final = _answer(policy, envs, observation, state, True)
        verdict = {name: value[0] for name, value in envs.assess(first, final[None]).items()}
    found = forfeited(policy, state, first, {name: np.array([x]) for name, x in verdict.items()}, truncated)
    verdict |= {name: x[0] for name, x in found.items()}
    while len(answers) < len(checks):
        answers.append(final)
        seen.append(_seen(envs))
    masks = np.array(answers, np.bool_).reshape(len(checks), task.K)
    parts = dict(zip(("pulls", "mean", "variance"), map(np.array, zip(*seen, strict=True)), strict=False))

    def listed(values: NDArray[np.generic]) -> NDArray[Any]:  # by the arms of the instance's list, not by their places
        return envs.as_listed(np.zeros(len(values), np.int64), values)  # type: ignore[no-any-return]

    which, each = np.argsort(listed(np.arange(task.K)[None])[0]), task.stop // task.K
    shape = (after,) if width == 1 else (after, width)
    pulled = which[arms[:after] // each] * each + arms[:after] % each
    results = samples[: after * width].reshape(shape).copy()
    scores = envs.assess(np.zeros(len(checks), np.int64), masks)
    shown = listed(masks), scores, {name: listed(part) for name, part in parts.items()}
    means, answer = listed(envs.true_means())[0], listed(np.array(final, np.bool_)[None])[0]
    end = bool(verdict["correct"]), float(verdict["score"]), bool(truncated[0])
    return Trace(task, pulled, results, checks, *shown, means, answer, *end)


def _answer(policy: Any, envs: Any, observation: object, state: object, handcrafted: bool) -> NDArray[np.bool_]:
    """The answer of now, (K,): the agent's own, or the plug-in one."""
    answer: NDArray[np.bool_]
    if handcrafted:
        answer = policy.recommended(observation, state, np.zeros(1, np.int64))[0]
    else:
        answer = envs.problem.plug_in(envs.means())[0]
    return np.array(answer, np.bool_)


def _seen(envs: Any) -> tuple[NDArray[np.generic], ...]:
    """The statistics of now: pulls, mean, variance, as an observation has them."""
    shape = envs.true_means()[0].shape
    mean, variance = (one.reshape(shape) for one in (envs.simulation.mean, envs.simulation.variance))
    return envs.pulls[0].copy(), mean.copy(), variance.copy()


class _Recorder(Lockstep):
    """A pass over episodes that keeps their histories, means and answers, (N, ..) each."""

    kept: dict[str, NDArray[Any]]

    def _record(self, over: Any, info: Any, truncated: Any, observation: Any, state: Any) -> None:
        super()._record(over, info, truncated, observation, state)
        found = {name: values[over] for name, values in self.envs.keep_history().shown().items()}
        found |= {"means": self.envs.true_means(over), "answer": info["answer"][over]}
        if self.handcrafted and (cut := truncated[over]).any():
            found["answer"][cut] = self.policy.recommended(observation, state, over[cut])
        for name, values in found.items():
            if name not in self.kept:
                self.kept[name] = np.empty((self.episodes, *values.shape[1:]), NARROW.get(name, values.dtype))
            self.kept[name][self.episode[over]] = values


def record(
    agent: object,
    problem: str,
    *,
    episodes: int,
    seed: int = 0,
    env_kwargs: Mapping[str, object] | None = None,
    out: str | Path | None = None,
    deterministic: bool = True,
    trust: bool = False,
) -> dict[str, NDArray[Any]]:
    """Play the first N episodes of `evaluate`, and keep every pull, the truth and the answers, for learners.

    Args:
        agent: as for `play`. problem, and others: as for `evaluate`. There must be a budget or `max_pulls`.
        out: a file .npz, to be read by `numpy.load` without pickles; or "minari:NAME", as "minari:lsa-v0": a dataset of
            Minari with the observations and rewards of `env_kwargs`, and the truth in the metadata of its episodes.

    Returns:
        What the file holds, with arms as the episode numbers them. As observations "history": arms and times (N, H)
        int32, samples (N, H) or (N, H, D) float32, length (N, 1). Then means (N, K) or (N, K, D), right_answer and
        answer (N, K) bool; score, correct, total_pulls, truncated, metrics and number (`episode`) of each episode (N,);
        and seed, agent and task, which `Task.from_json` reads.

    Raises:
        ValueError: for more than 2 GiB, and as `evaluate`. ImportError: for "minari:NAME" without `minari[create]`.
    """
    N, seed = integer("episodes", episodes, 1, EPISODES_LIMIT), integer("seed", seed, 0, 2**63 - 1)
    recipe, (env_id, kwargs) = recipe_of(agent, flag("trust", trust)), plain(problem, keywords(env_kwargs))
    name = out[len(MINARI) :] if isinstance(out, str) and out.startswith(MINARI) else None
    if name is None and out is not None and (not isinstance(out, (str, Path)) or Path(out).suffix != ".npz"):
        raise ValueError(f"out must be a file .npz, 'minari:NAME', or None, got {out!r:.200}")
    collector = None if name is None else require("minari", "a dataset of Minari").DataCollector
    deterministic = flag("deterministic", deterministic)
    with compilation_noted(shown(None)):
        (plan,) = plans_of({recipe.label: recipe}, env_id, kwargs, N, deterministic)
        task, entry = plan.task, 8 + 4 * plan.task.D  # bytes
        if (size := N * (task.entries * entry + task.K * (8 * task.D + 2))) > MOST:
            raise ValueError(f"{N:,} episodes of {task.entries:,} pulls take {size:,} bytes, and may take {MOST:,}")
        slots = min(plan.slots, max(1, BATCH // (6 * entry * (task.entries + 1))))
        with closing(make_envs(env_id, slots, plan.forms, kwargs)) as envs:
            envs.keep_history()
            recorder = _Recorder(plan, envs, 0, N, seed, N, Watch())
            recorder.plays, recorder.kept = False, {}  # players write no histories
            (run,), right = recorder.run(), envs.problem.right_answer(recorder.kept["means"])
    kept = recorder.kept | {one: column[:, 0] for one, column in run.columns.items()} | {"right_answer": right}
    facts = {"episode": np.arange(N), "seed": seed, "agent": recipe.label, "task": task.to_json()}
    kept |= {one: np.array(fact) for one, fact in facts.items()}
    if name is not None:
        _collect(collector, name, kept, gym.make(env_id, disable_env_checker=True, **kwargs | {"ranked": False}))
    elif out is not None:
        write_alone(Path(out), lambda path: np.savez(path, **kept))  # type: ignore[arg-type]
    return kept


def _collect(collector: Any, name: str, kept: Mapping[str, NDArray[Any]], env: Any) -> None:
    """Make a dataset of Minari, by a replay of recorded pulls."""
    if (kept["times"] > 1).any():
        raise ValueError(f"{kept['agent']} pulls in bulk, which a dataset of Minari cannot hold: write a file .npz")
    with closing(collector(env)) as collected:
        for i, length in enumerate(kept["length"][:, 0]):
            collected.reset(seed=int(kept["seed"]), options={"episode": i})
            for action in (*kept["arms"][i, :length].tolist(), env.unwrapped.task.stop):
                *_, terminated, truncated, _ = collected.step(action)
                if terminated or truncated:
                    break
        made = collected.create_dataset(name, algorithm_name=str(kept["agent"]))
    truth = ("episode", "means", "right_answer", "answer", "score")
    made.storage.update_episode_metadata({one: kept[one][i] for one in truth} for i in range(made.total_episodes))
