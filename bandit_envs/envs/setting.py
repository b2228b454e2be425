"""The setting of an environment: its keyword arguments are checked, and made into a problem, arms and rules."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import logger, spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ..instances.arms import RESAMPLED
from ..instances.instance import Instance, Sampler, drawn
from ..instances.lookup import EXAMPLE, find
from ..kernels import rng
from ..kernels.checks import choice, flag, integer, ours
from ..problems import BELIEFS, Problem, own
from ..problems.registry import PROBLEMS
from ..problems.task import Task, observation_form, prices_of
from ..simulation.simulator import MOST_TIMES
from .catalogue import LEARN, id_of
from .history import check_size
from .observations import NUMBERS, box_of

REWARDS = ("score", "correct", "gain")
# Modules that make or reset single environments for learners; SB3's `evaluate_policy`, for any agent, is in another.
SB3 = ("stable_baselines3.common.base_class", "stable_baselines3.common.vec_env.subproc_vec_env")
TRAINERS = (*SB3, "gymnasium.vector.", "ray.rllib.", "skrl.", "tianshou.", "torchrl.")
_INT_MAX = np.iinfo(np.int64).max - 1  # Gymnasium's `sample` adds 1
ROUNDING = 1e-9  # of the width of a range: samples of one's own arms may leave it by so much


class LearnerWarning(UserWarning):
    """A learner has begun where it would end behind random play. It is given once a process."""

    given = False


@dataclass(frozen=True, eq=False)
class Setting:
    """What an environment is made of."""

    problem: Problem  # what is asked
    source: Instance | Sampler  # where the arms come from
    task: Task  # what agents may know
    reward: str  # "score", "correct" or "gain"
    shuffle_arms: bool  # whether the arms come in a random order in every episode
    ranked: bool = False  # whether arms are shown, and named by actions, in the order of certainty
    salt: int = 0  # of the public seeds

    @property
    def fixed(self) -> Instance | None:
        """The instance, where it is the same in every episode; else None."""
        return self.source if isinstance(self.source, Instance) else None

    @functools.cached_property
    def is_bare(self) -> bool:
        """Whether a learner would end behind random play: no beliefs, a score at the end, and free to stop."""
        task, score = self.task, self.reward != "gain"
        bare = score and task.observation in ("statistics", "features") and task.can_stop
        free = task.budget is not None and task.delta is None and task.pull_cost == 0
        return bare and free and task.actions == task.pull == "arm" and ours(self.problem)

    def advise(self, trains: bool, below: tuple[str, ...] = TRAINERS) -> None:
        """Warn, once a process, of a learner that begins here: if it is known, or if a module `below` has called."""
        if not self.is_bare or LearnerWarning.given:
            return
        frame = None if trains else sys._getframe(2)
        while frame is not None and not (trains := str(frame.f_globals.get("__name__")).startswith(below)):
            frame = frame.f_back
        if trains:
            LearnerWarning.given = True
            text = f"learners end behind random play in this environment: {for_learners(self.problem)}"
            warnings.warn(text, LearnerWarning, stacklevel=4)

    def observation_space(self, count: int = 1) -> spaces.Space[Any]:
        """The space of the observations of one episode."""
        task = self.task
        if task.observation in NUMBERS:
            return box_of(task.stop, task.observation, task.waits)
        shape = (task.K,) if task.D == 1 else (task.K, task.D)
        low, high = (-np.inf, np.inf) if task.support is None else task.support
        data = self.source.arms.data
        if task.support is not None and (data != np.rint(data)).any():
            low, high = low - ROUNDING * (high - low), high + ROUNDING * (high - low)
        low, high = min(low, 0.0), max(high, 0.0)
        most = _INT_MAX if task.payable is None else task.payable
        rest: dict[str, Any] = {
            "remaining": spaces.Box(-1, _INT_MAX if task.budget is None else task.budget, (1,), np.int64),
            "public_seed": spaces.Box(0, _INT_MAX, (1,), np.int64),
        }
        if task.waits:
            rest["pending"] = spaces.Box(0, most, task.shape, np.int64)
        if task.observation == "history":
            check_size(task, count)
            H, each = task.entries, shape[1:] if task.pull == "arm" else ()
            return spaces.Dict(
                arms=spaces.Box(-1, task.stop - 1, (H,), np.int64),
                samples=spaces.Box(low, high, (H, *each), np.float64),
                times=spaces.Box(0, H, (H,), np.int64),
                length=spaces.Box(0, H, (1,), np.int64),
                **rest,
            )
        if task.keeps_moments:
            rest["moments"] = spaces.Box(-np.inf, np.inf, (*shape, 2), np.float64)
        if task.items:
            check_size(task, count)
            rest["scores"] = spaces.Box(low, high, (task.K, task.items, *shape[1:]), np.float64)
        return spaces.Dict(
            pulls=spaces.Box(0, most, task.shape, np.int64),
            total=spaces.Box(-np.inf, np.inf, shape, np.float64),
            mean=spaces.Box(low, high, shape, np.float64),
            variance=spaces.Box(0.0, np.inf, shape, np.float64),
            **rest,
        )

    def action_space(self) -> spaces.Space[Any]:
        """The space of the actions of one episode."""
        which = spaces.Discrete(self.task.last + 1)
        if self.task.actions == "arm":
            return which
        K, size, least = self.task.K, self.problem.answer_size, 0 if self.task.waits else 1  # pulls of an action
        answer = spaces.MultiBinary(K) if size is None else Answers(K, size)
        return spaces.Dict(arm=which, times=spaces.Box(least, MOST_TIMES, (), np.int64), answer=answer)


class Answers(spaces.MultiBinary):
    """Answers of problems that want so many arms: a sample holds `size` ones in each row of the shape n.

    An action that ends nothing may hold any mask, and so `contains` is that of MultiBinary.
    """

    def __init__(self, n: int | Sequence[int], size: int, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(n, seed)
        self.size = size

    def sample(self, mask: NDArray[Any] | None = None, probability: NDArray[Any] | None = None) -> NDArray[np.int8]:
        """A mask of `size` ones, each as likely; with `mask` or `probability`, what MultiBinary draws."""
        if mask is not None or probability is not None:
            return super().sample(mask, probability)
        rank = self.np_random.random(self.shape).argsort(axis=-1).argsort(axis=-1)
        return (rank < self.size).astype(np.int8)

    def __repr__(self) -> str:
        return f"Answers({self.n}, {self.size})"


@batch_space.register(Answers)
def _batch_of_answers(space: Answers, n: int = 1) -> Answers:
    """The space of n answers, one per slot of a vector environment."""
    return Answers((n, *space.shape), space.size, deepcopy(space.np_random))


def for_learners(problem: Problem) -> str:
    """What is to be done to train an agent."""
    name, keywords = id_of(f"{problem.name}-learn", problem.version), (f"{key}={LEARN[key]!r}" for key in LEARN)
    how = "with the settings of docs/training.md, as those of SB3 pull few arms"
    return f"to train, make {name}, which has {', '.join(keywords)}, {how}; or call agents.train"


def check_id(spec: Any) -> None:
    """Refuse an environment of another problem than the one whose id was given."""
    known = None if spec is None else gym.registry.get(spec.id)
    named, given = ({} if one is None else one.kwargs for one in (known, spec))
    if named.get("problem", given.get("problem")) != given.get("problem"):
        text = f"the problem of {spec.id} is {named['problem']}:"
        raise ValueError(f"{text} take out problem={given['problem']!r:.200}, or give the id of its environment")


def _check_beliefs(task: Task, reward: str, ranked: bool) -> None:
    """Refuse what needs the look-ahead, where there is none, or beside what it does not go with."""
    forms = {"reward='gain'": reward == "gain", "ranked=True": ranked}
    forms |= {f"observation={task.observation!r}": task.observation in BELIEFS}
    asked = [name for name, given in forms.items() if given]
    look = task.lookahead(asked[0]) if asked else None
    for one in asked:
        if one in ("reward='gain'", "ranked=True") and task.actions != "arm":
            raise ValueError(f"{one} needs actions='arm', got actions={task.actions!r:.200}")
        if one == "reward='gain'" and look is not None and math.isnan(look.horizon):
            raise ValueError(f"{one} needs a budget or max_pulls, got neither: gains are up to a horizon")
        if one == "ranked=True" and task.observation == "history":
            raise ValueError(f"{one} ranks arms again at each step, which observation='history' cannot show")


def _meant(name: str, given: Any, known: list[str]) -> str:
    """What is to be said of a keyword that an environment does not take."""
    of_arms = {"K": "arms", "n_arms": "arms", "num_arms": "arms", "k_arms": "arms", "D": "dimensions"}
    sampled = of_arms.get(name, name)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]!r}?);" if near else ";"
    if sampled in ("arms", "dimensions"):
        hint = f", which the instance has: instance='sampler({sampled}={given!r:.80})';"
    elif name in ("mean", "means", "distribution", "spread", "sd", "probs"):
        hint = f", which the instance has: instance={EXAMPLE};"
    return f"{hint} it takes {', '.join(known)}"


def resolve(
    problem: str,
    *,
    instance: Any = None,
    budget: int | None = None,
    delta: float | None = None,
    max_pulls: int | None = None,
    pull_cost: float = 0.0,
    reward: str = "score",
    actions: str = "arm",
    observation: str = "statistics",
    shuffle_arms: bool | None = None,
    pull: str = "arm",
    stop: bool = True,
    ranked: bool = False,
    salt: int = 0,
    batch: int = 1,
    delay: float | str = 0,
    cost: Any = None,
    **parameters: Any,
) -> Setting:
    """The setting of an environment; see `PureExplorationEnv` for the arguments.

    What is not given comes from the instance's source, as far as it names it for this problem; its budget only where
    neither `budget` nor `delta` is given. Of what is given and has no effect, a warning says so.
    """
    kind = PROBLEMS.find(problem)
    if surplus := sorted(set(parameters) - set(kind.parameters)):
        common = [name for name in inspect.signature(resolve).parameters if name not in ("problem", "parameters")]
        said = _meant(surplus[0], parameters[surplus[0]], [*kind.parameters, *common])
        raise TypeError(f"{kind.name} got an unexpected keyword argument {surplus[0]!r}{said}")
    source = find(kind.sampler if instance is None else instance)
    brought = {**source.defaults.get("", {}), **source.defaults.get(kind.name, {})}
    defaults = kind.defaults if instance is None else brought
    if budget is None and delta is None:
        budget = defaults.get("budget")
    delta = defaults.get("delta") if delta is None else delta
    if shuffle_arms is None:
        shuffle_arms = (defaults if instance is None else source.defaults.get(kind.name, {})).get("shuffle_arms")
    if shuffle_arms is None:  # ties go to the lowest index; the samplers of this package draw all arms alike
        compared = not kind.local and not (isinstance(source, Sampler) and ours(source))
        shuffle_arms = kind.any_order and source.defaults.get("", {}).get("shuffle_arms", compared)
    names = source.arm_names if isinstance(source, Instance) else ()
    chosen = kind.by_names({k: v for k, v in defaults.items() if k in kind.parameters} | parameters, names)
    arms, same = source.arms, ("distribution", "support", "sigma", "items", "ranges")
    known: dict[str, Any] = {name: getattr(arms, name) for name in same}
    known |= {"dependent": source.D > 1 and arms.code == RESAMPLED, "can_stop": flag("stop", stop)}
    known |= {"budget": budget, "delta": delta, "max_pulls": max_pulls, "pull_cost": pull_cost, "pull": pull}
    known |= {"actions": actions, "observation": observation_form(observation), "batch": batch, "delay": delay}
    known["cost"] = None if cost is None else prices_of(cost, source.K, names)
    task = Task(problem=problem, parameters=chosen, K=source.K, D=source.D, **known)
    _check_beliefs(task, choice("reward", reward, REWARDS), flag("ranked", ranked))
    if budget is None and delta is None and max_pulls is None and pull_cost == 0:
        lacks = "it has neither budget, delta, max_pulls nor pull_cost, and its instance names none"
        logger.warn(f"no episode of this {kind.name} ever ends: {lacks}")
    question = task.make_problem()
    for name, why in question.idle().items():
        if name in parameters:  # not those that come from the source
            logger.warn(f"{kind.name}: {name}={parameters[name]!r:.80} has no effect, {why}")
    if type(source) is Sampler and source.distribution == "bernoulli" and source.spread != 1.0:
        why = "as Bernoulli arms have none: leave it out"
        logger.warn(f"{kind.name}: spread={source.spread!r} of the sampler has no effect, {why}")
    own.check(question, task, source)
    if not ours(question):
        n = 2 if source.K != 2 else 3  # episodes; not K, so that no shape fits by chance
        means, _ = drawn(source, np.repeat(rng.root_key(0)[:, None], n, axis=1), np.arange(n, dtype=np.uint64))
        own.try_out(question, np.array(means, np.float64), task.D, task.delta or 0.1)
    elif isinstance(source, Instance):
        question.truth(source.arms.means)  # refuses an instance on which the question has no answer
    shuffle_arms, salt = flag("shuffle_arms", shuffle_arms), integer("salt", salt, 0, 2**63 - 1)
    return Setting(question, source, task, reward, shuffle_arms, ranked, salt)
