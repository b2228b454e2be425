"""`Trace`: one episode in full, with the arm and the sample of each pull, and the answers on the way."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.kernels import EPISODES_LIMIT, integer, root_number
from bandit_envs.simulation import Quiet

from ..core.agent import shown_to
from ..core.optional import pandas
from ..registry import recipe_of
from .environment import environment_id
from .lockstep import NEVER
from .plan import check_end, keywords, make_envs, most_pulls, plays, pull_numbers
from .progress import compilation_noted, shown

if TYPE_CHECKING:
    from pandas import DataFrame

CAPACITY = 2**16  # pulls that the arrays hold at first
STEPS = 2**21  # actions between two looks at what the user has typed


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
        agent: as one of the agents of `evaluate`. env_id, env_kwargs, seed, trust: as for `evaluate`.
        episode: its number.
        at: numbers of pulls at which the answer is asked for too.

    Raises:
        ValueError, FileNotFoundError, gymnasium.error.Error: as `evaluate`.
    """
    recipe, kwargs, env_id = recipe_of(agent, trust), keywords(env_kwargs), environment_id(env_id)
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
    while len(answers) < len(checks):
        answers.append(final)
        seen.append(_seen(envs))
    masks = np.array(answers, np.bool_).reshape(len(checks), task.K)
    parts = dict(zip(("pulls", "mean", "variance"), map(np.array, zip(*seen, strict=True)), strict=False))

    def listed(values: NDArray[np.generic]) -> NDArray[Any]:  # by the arms of the instance's list, not by their places
        return envs.as_listed(np.zeros(len(values), np.int64), values)  # type: ignore[no-any-return]

    which, each = np.argsort(listed(np.arange(task.K)[None])[0]), task.stop // task.K
    shape = (after,) if width == 1 else (after, width)
    return Trace(
        task,
        which[arms[:after] // each] * each + arms[:after] % each,
        samples[: after * width].reshape(shape).copy(),
        checks,
        listed(masks),
        envs.assess(np.zeros(len(checks), np.int64), masks),
        {name: listed(part) for name, part in parts.items()},
        listed(envs.true_means())[0],
        listed(np.array(final, np.bool_)[None])[0],
        bool(verdict["correct"]),
        float(verdict["score"]),
        bool(truncated[0]),
    )


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
