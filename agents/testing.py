"""Checks of an agent, for the tests of your own agent. All agents of this package pass them.

    from agents.testing import parametrize_with_checks

    @parametrize_with_checks(["stranger.agents:NearestFirst", "stranger.agents:BothSides"])
    def test_agents(agent, check):
        check(agent)

`check_agent` makes all checks at once. An agent may be anything that `agents.make` takes.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import itertools
import linecache
import os
import pickle
import random
import subprocess
import sys
import time
import traceback
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import cloudpickle
import gymnasium as gym
import numba
import numpy as np
from gymnasium.vector import AutoresetMode

import bandit_envs
from bandit_envs import PROBLEMS, Instance, Task
from bandit_envs.kernels import flag

from .core import plans
from .core.agent import Agent
from .core.algorithm import Algorithm
from .core.optional import require
from .core.plans import pull
from .evaluation.run import evaluate
from .registry import make, recipe_of

ROOT, EPISODES = 7, 4  # the episodes that are played
LARGEST = 50  # number of arms that are relabelled
LONGEST = 5000  # actions of an episode, after which it is given up
MOST = 300  # pulls of an episode without a budget
RULES: tuple[dict[str, object], ...] = ({"budget": 60}, {"delta": 0.1, "max_pulls": MOST})
# Oracles need a fixed instance.
ARMS: Any = ({"sampler": {"arms": 5}}, {"distribution": "bernoulli", "mean": [0.1, 0.3, 0.45, 0.6, 0.9]})
# Of an agent that is right with probability .9, more than 40 of 200 answers are wrong with probability 7e-6.
MANY, DELTA, MOST_WRONG = 200, 0.1, 40
FEW = 20  # episodes at a tenth of delta
# Other questions: parameters, where the problem has them; the number of arms, the range of their means, their form.
OTHERS: tuple[tuple[dict[str, object], int, float, float, dict[str, object]], ...] = (
    ({"threshold": 0.35, "k": 2}, 12, 0.05, 0.95, {"distribution": "bernoulli"}),
    ({"threshold": -3.2, "k": 4}, 7, -4.0, -2.0, {"distribution": "gaussian", "sd": 1.0}),
)
# Of an agent that is wrong with probability .1, more than 20 of 60 answers are wrong with probability 4e-7.
CLEAR, CLEAR_WRONG = 60, 20
SHIFTED = 0.35  # share of all pulls that may go to other arms where the arms change places; the most of ours is .27
BEYOND = "beyond the end:"  # of what is printed in another process
UNSAFE = list[object]()  # agents with an index beyond the end, which may end the interpreter: no other check plays them
HUGE = 3 * 10**8  # times so many, small counts become more than a 32-bit integer holds


class Case(NamedTuple):
    """A task of an agent."""

    agent: object  # what `agents.make` takes
    env_id: str
    kwargs: dict[str, Any]  # of the environment, but for `actions` and `observation`
    observation: str  # the form that the agent reads

    def __str__(self) -> str:
        return f"{_named(self.agent)} on {self.env_id} with {self.kwargs}"

    @property
    def task(self) -> Task:
        """Of the environment."""
        try:
            return _task_of(self.env_id, self.observation, repr(self.kwargs))  # type: ignore[no-any-return]
        except (ValueError, SyntaxError):  # keyword arguments that are no literals
            return self.envs(1).unwrapped.task  # type: ignore[no-any-return]

    def envs(self, slots: int, **changed: object) -> Any:
        """A vector environment."""
        forms: dict[str, Any] = {"actions": "full", "observation": self.observation}
        forms |= {"autoreset_mode": AutoresetMode.DISABLED} | self.kwargs | changed
        return gym.make_vec(self.env_id, slots, **forms)

    def env(self, **changed: object) -> Any:
        """A single environment."""
        return gym.make(self.env_id, **{"actions": "full", "observation": self.observation} | self.kwargs | changed)

    def replaced(self, **changed: object) -> Iterator[Case]:
        """The same with other keyword arguments, unless the agent refuses that task."""
        other = self._replace(kwargs=self.kwargs | changed)
        with contextlib.suppress(ValueError, TypeError):
            made(other)
            yield other


class Steps(NamedTuple):
    """An episode: its actions (arm, times) but the last where that only answers, and its answer."""

    actions: list[tuple[int, int]]
    answer: list[int]
    score: float

    @property
    def arms(self) -> list[int]:
        """The arms, each as often as it was pulled."""
        return [arm for arm, times in self.actions for _ in range(times)]


def _named(agent: object) -> str:
    return agent if isinstance(agent, str) else getattr(agent, "__qualname__", repr(agent))


@functools.lru_cache(maxsize=256)
def _task_of(env_id: str, observation: str, kwargs: str) -> Any:
    """The task of an environment, which takes long to make."""
    forms: dict[str, Any] = {"actions": "full", "observation": observation, **ast.literal_eval(kwargs)}
    made: Any = gym.make_vec(env_id, 1, **forms)
    return made.unwrapped.task


def made(case: Case, env: object = None) -> Any:
    """The agent, without warnings of parameters that have no effect; an oracle is given the truth by an environment."""
    if env is None:
        instance = case.kwargs.get("instance")
        has_truth = isinstance(instance, Instance) or (isinstance(instance, Mapping) and "mean" in instance)
        env = case.envs(1) if has_truth else case.task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(case.agent, env)


def cases_of(agent: object, env: Any = None) -> list[Case]:
    """Tasks that the agent takes: that of an environment, or of each problem with five arms, by budget and delta."""
    found, refusals = list[Case](), list[str]()

    def take(env_id: str, rules: Mapping[str, Any]) -> bool:
        for observation in ("statistics", "history"):
            case = Case(agent, env_id, dict(rules), observation)
            try:
                policy = made(case)
            except (ValueError, TypeError) as error:
                refusals.append(f"{env_id} with {rules}: {error}")
                continue
            if not isinstance(policy, Agent):
                raise AssertionError(f"{_named(agent)} is no agents.Agent: a model is tried by agents.evaluate")
            found.append(case)
            return True
        return False

    if env is None:
        for name, kind in PROBLEMS.items():
            tolerance = {"epsilon": 0.1} if "epsilon" in kind.parameters else {}
            for rules in RULES:
                arms = ({"instance": instance} for instance in ARMS) if kind.sampler is None else ({},)
                any(take(f"bandit_envs/{name}-v0", one | tolerance | rules) for one in arms)
    else:
        spec = _spec_of(env)
        rules = {name: value for name, value in spec.kwargs.items() if name not in _FORMS}
        if env.unwrapped.task.budget is None:  # an agent without a tolerance never tells equal arms apart
            rules["max_pulls"] = min(env.unwrapped.task.max_pulls or MOST, MOST)
        take(spec.id, rules)
    if not found:
        reason = next((one for one in refusals if " solves " not in one), refusals[0])
        raise AssertionError(f"{_named(agent)} takes no task: {reason}")
    return found


def _spec_of(env: object) -> Any:
    """How an environment was made."""
    unwrapped = getattr(env, "unwrapped", None)
    spec = getattr(env, "spec", None) or getattr(unwrapped, "spec", None)
    if spec is None or not isinstance(getattr(unwrapped, "task", None), Task):
        text = "env must be an environment of bandit_envs,"
        raise ValueError(f"{text} made by gym.make or gym.make_vec, got {env!r:.200}")
    return spec


_FORMS = ("actions", "observation", "render_mode", "num_envs", "vectorization_mode", "autoreset_mode", "copy")


def _part(action: object, e: Any = ()) -> tuple[int, int]:
    """The arm and the number of pulls of episode e of a batch; or of an action that is of one episode."""
    arm, times = (action["arm"], action["times"]) if isinstance(action, dict) else (action, None)
    return int(np.asarray(arm)[e]), 1 if times is None else int(np.asarray(times)[e])


def _left(task: Any, observation: Any) -> Any:
    """How many pulls are left, (E,)."""
    counts = observation["pulls"] if "pulls" in observation else observation["length"]
    spent = counts.reshape(len(counts), -1).sum(axis=1) // (task.D if task.pull == "coordinate" else 1)
    limits = [one for one in (task.budget, task.max_pulls) if one is not None]
    return np.maximum(min(limits, default=LONGEST**2) - spent, 0)


def _pulled(task: Any, action: tuple[int, int], left: int) -> list[tuple[int, int]]:
    """The action as it is counted: with no more pulls than are left, and not at all where it only answers."""
    arm, times = action
    return [(arm, min(times, int(left)))] if arm != task.stop and left > 0 else []


def _ended(one: Steps, info: Mapping[str, Any], truncated: bool) -> Steps:
    """An episode with its end. One that was cut has the plug-in answer, and not that of the agent."""
    return one._replace(
        answer=[] if truncated else np.asarray(info["answer"]).astype(int).tolist(),
        score=0.0 if truncated else float(info["score"]),
    )


def steps(case: Case, agent: Any, envs: Any, episodes: Sequence[int]) -> list[Steps]:
    """Play episodes side by side through `predict`, one in each slot."""
    n, task = len(episodes), envs.unwrapped.task
    observation, _ = envs.reset(seed=ROOT, options={"episode": np.array(episodes)})
    state, live, made = None, np.ones(n, bool), [Steps([], [], 0.0) for _ in range(n)]
    for count in range(LONGEST):
        shown = pickle.dumps(observation)
        action, state = agent.predict(observation, state)
        if pickle.dumps(observation) != shown:
            raise AssertionError(f"{case}: action {count} writes into the observation, as into ep.mean or ep.pulls")
        left = _left(task, observation)
        try:
            observation, _, terminated, truncated, info = envs.step(action)
        except Exception as error:
            raise AssertionError(f"{case}: action {count} of episodes {list(episodes)} is refused: {error}") from error
        over = terminated | truncated
        for e in np.flatnonzero(live):
            made[e].actions.extend(_pulled(task, _part(action, e), left[e]))
            if over[e]:
                made[e] = _ended(made[e], {name: info[name][e] for name in ("answer", "score")}, truncated[e])
        live &= ~over
        if not live.any():
            return made
    raise AssertionError(f"{case}: episode {episodes[int(np.argmax(live))]} has not ended after {LONGEST} actions")


def played(case: Case, episodes: Sequence[int] = range(EPISODES), **changed: object) -> list[Steps]:
    """Episodes of a fresh agent in a fresh vector environment."""
    envs = case.envs(len(episodes), **changed)
    return steps(case, made(case, envs), envs, episodes)


def same(case: Case, found: Sequence[Steps], wanted: Sequence[Steps], ways: str) -> None:
    """Compare episodes that were played in two ways."""
    for e, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one == other:
            continue
        at = next((t for t, pair in enumerate(zip(one.actions, other.actions, strict=False)) if pair[0] != pair[1]), -1)
        if at < 0:
            at = min(len(one.actions), len(other.actions))
        texts = [f"action {at} is {x.actions[at : at + 1] or 'the end'}, the answer {x.answer}" for x in (one, other)]
        raise AssertionError(
            f"{case}: episode {e} is not the same {ways}: {texts[0]}, and {texts[1]} (arm and times). To see it: "
            f"env = gym.make({case.env_id!r}, actions='full', observation={case.observation!r}, **{case.kwargs}); "
            f"env.reset(seed={ROOT}, options={{'episode': {e}}})"
        )


# --- checks -----------------------------------------------------------------------------------------------------------


def check_bounds(*cases: Case) -> None:
    """No index is beyond the end of an array: compiled code does not look, and writes there, or ends the interpreter.

    For an agent of one's own, all other checks are made in a process of its own before, whose kernels are compiled with
    checks (NUMBA_BOUNDSCHECK=1).
    """
    agent = made(cases[0])
    if not getattr(agent, "_brought", False):
        return
    source = getattr(sys.modules.get(type(agent).__module__), "__file__", "")  # which pickled functions do not know
    program = f"import sys; sys.path[:] = {sys.path}; from agents import testing; testing._play_within_bounds()"
    how: dict[str, Any] = {"capture_output": True, "env": os.environ | {"NUMBA_BOUNDSCHECK": "1"}}
    child = subprocess.run([sys.executable, "-c", program], input=cloudpickle.dumps((cases, source)), **how)
    said = child.stdout.decode(errors="replace").partition(BEYOND)[2].strip()
    if not said and child.returncode < 0:
        said = f"{cases[0]}: the process that played it was ended by the signal {-child.returncode}"
    if said:
        UNSAFE.append(cases[0].agent)
        raise AssertionError(f"{said}. To see it: set NUMBA_BOUNDSCHECK=1 in the environment, and play it")


def _play_within_bounds() -> None:
    """In the process of `check_bounds`: print where another check goes beyond the end; other faults are left to it."""
    cases, source = pickle.loads(sys.stdin.buffer.read())
    predict = Agent.predict

    def looked_at(agent: Any, observation: Any, state: Any = None, *more: Any, **given: Any) -> Any:
        kept = copy.deepcopy(state)
        try:
            return predict(agent, observation, state, *more, **given)
        except IndexError as error:
            raise IndexError(_place_of(source, agent, observation, kept, error)) from error

    with mock.patch.object(Agent, "predict", looked_at):
        for check, case in itertools.product(CHECKS[1:], cases):
            with contextlib.suppress(Exception):
                try:
                    check(case)
                except IndexError as error:
                    print(BEYOND, f"{case}, in {check.__name__}: {error}", flush=True)
                    sys.exit()


def _place_of(source: str, agent: Any, observation: Any, state: Any, error: Exception) -> str:
    """Where an index is beyond the end: in compiled code that is found by calling its functions once more in Python."""
    if isinstance(agent, Algorithm):
        parts: Any = type(pull)  # of what compiled code calls
        parts.__call__ = lambda self, *given: self.py_func(*given)
        state = agent.initial_state(observation) if state is None else state
        try:
            for e in range(len(state.now)):
                _decide_in_python(agent, observation, state, e)
        except Exception as found:
            error = found if isinstance(found, IndexError) else error
    ours = tuple(f"{Path(str(one.__file__)).parent}{os.sep}" for one in (sys.modules[__package__], bandit_envs, numba))
    frames = [one for one in traceback.extract_tb(error.__traceback__) if not one.filename.startswith(ours)]
    if not frames:
        return f"an index of {agent.name} is beyond the end of its array: {error}"
    file = frames[-1].filename if Path(frames[-1].filename).exists() else source
    line = linecache.getline(file, frames[-1].lineno or 0).strip()
    return f"in {frames[-1].name} of {agent.name} an index is beyond the end of its array, `{line}`: {error}"


def _decide_in_python(agent: Algorithm, observation: Any, state: Any, e: int) -> None:
    """Call the rules of an algorithm in an episode whose plan is over, as `plans.decide` does."""
    batch, seen = agent.batch(state), agent.shown(observation, len(state.now))
    plan, pulls = state.parts[0].view(np.recarray)[e], seen.pulls[e]
    if plan.stopped or (plan.size > plan.place and not plan.beginning) or not (pulls >= batch.passes).all():
        return
    reads = {name: getattr(seen, name)[e] for name in agent.form.reads}
    reads |= {name: reads[name][0] for name in ("seed", "remaining") if name in reads}
    rows = agent.rows_of(type(state)(*state.parts), state.bound[2][0], reads, e)
    rows[0]["now"] = plan
    for each in rows:
        each |= {name: one.reshape(1)[0] for name, one in each.items() if isinstance(one, np.ndarray) and not one.ndim}
    ep, own = (namedtuple("Row", each)(**each) for each in rows)
    begins = bool(plan.beginning)
    with mock.patch.object(plans, "decided", bool):
        plans.decide_by(agent.form.rules, agent.prepare)(ep, own, begins, batch.passes > 0 or not begins, batch.asked)


def check_single_is_batch(case: Case) -> None:
    """An episode alone, in a single environment, is as beside others; from read-only arrays in any order of keys."""
    env = case.env()
    agent, task, alone = made(case, env), env.unwrapped.task, []
    for e in range(EPISODES):
        observation, _ = env.reset(seed=ROOT, options={"episode": e})
        state, one, over = None, Steps([], [], 0.0), False
        while not over:
            shown = {name: np.broadcast_to(array, np.shape(array)) for name, array in reversed(observation.items())}
            action, state = agent.predict(shown, state)
            batch = {name: np.asarray(array)[None] for name, array in observation.items()}
            one.actions.extend(_pulled(task, _part(action), _left(task, batch)[0]))
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        alone.append(_ended(one, info, truncated))
    same(case, alone, played(case), "alone, from observations with their keys in another order, and beside others")


def check_order_of_the_batch(case: Case) -> None:
    """The place of an episode in a batch, and the size of the batch, change nothing."""
    order, few = list(reversed(range(EPISODES))), played(case)
    same(case, played(case, order)[::-1], few, "in another order of the batch (is something kept in the agent?)")
    same(case, played(case, range(1)), few[:1], "in a batch of one and of four")
    same(case, played(case, range(40))[:EPISODES], few, "in a batch of 40 and of four")


def check_evaluate(case: Case) -> None:
    """`evaluate`, which plays agents in compiled code, makes the same pulls and gives the same answers."""
    wanted, result, K = played(case), _rows(case, EPISODES), case.task.K
    rows = result.episodes.sort_values("episode")
    scores = np.where(rows["truncated"], 0.0, rows["score"]).tolist()
    found = list(zip(rows["total_pulls"].astype(int).tolist(), scores, strict=True))
    counts = [(len(one.arms), one.score) for one in wanted]
    pulls = np.sum([np.bincount(one.arms, minlength=K) for one in wanted], axis=0)
    hint = "if the agent has `played`, it must decide as `choose` does"
    if found != counts:
        e = next(e for e in range(EPISODES) if found[e] != counts[e])
        text = f"{case}: by evaluate episode {e} has {found[e][0]} pulls and the score {found[e][1]},"
        raise AssertionError(f"{text} by predict {counts[e][0]} and {counts[e][1]}: {hint}")
    in_place = case.task.pull == "arm" and not case.envs(1).setting.shuffle_arms  # else `pulls` are by the list
    if in_place and not np.array_equal(result.runs[0].pulls.ravel(), pulls):
        text = f"{case}: by evaluate the arms are pulled {result.runs[0].pulls.ravel().tolist()} times in all,"
        raise AssertionError(f"{text} by predict {pulls.tolist()} times: {hint}")


def check_actions_arm(case: Case) -> None:
    """With actions="arm" the same arms are pulled, unless bulk pulls, which become repetitions, have other samples."""
    found, wanted = played(case, actions="arm"), played(case)
    if all(times == 1 for one in wanted for _, times in one.actions):
        here, there = ([one._replace(answer=[], score=0.0) for one in way] for way in (found, wanted))
        same(case, here, there, "with actions='arm' and with actions='full'")


def _held(agent: object) -> dict[str, object]:
    """What a user's own agent and its classes hold, but for caches."""
    kinds = [vars(kind) for kind in type(agent).__mro__ if getattr(kind, "_brought", False)]
    names = {name for name in vars(agent) if kinds and name[0] != "_"}.union(*kinds) - {"task", "problem", *dir(Agent)}
    found = dict[str, object]()
    for name in names:
        with contextlib.suppress(Exception):  # what cannot be pickled
            if not callable(value := getattr(agent, name)):  # as an index, which is compiled meanwhile
                found[name] = pickle.dumps(value)
    return found


def check_repeats(case: Case) -> None:
    """A second run is the same: no random numbers but those of `public_seed`, nothing kept in the agent."""
    envs = case.envs(EPISODES)
    agent = made(case, envs)
    before = _held(agent)
    first = steps(case, agent, envs, range(EPISODES))
    if changed := [name for name, value in _held(agent).items() if value != before.get(name, value)]:
        raise AssertionError(f"{case}: {', '.join(changed)} has changed while it played: keep what moves in the state")
    again = "when it is played again by the same agent (does it keep something in itself, and not in the state?)"
    same(case, steps(case, agent, envs, range(EPISODES)), first, again)
    same(case, played(case), first, "when it is played by a new agent")


def check_no_global_state(case: Case) -> None:
    """The global generators of `random` and NumPy are left as they are; neither they nor the clock change anything."""
    before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    first = played(case)
    if before != (random.getstate(), pickle.dumps(np.random.get_state())):  # noqa: NPY002
        raise AssertionError(f"{case}: it draws from the global generator of random or of numpy.random")
    try:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        same(case, played(case), first, "under another seed of the global generators")
        with mock.patch.multiple(time, time=lambda: 1e9, perf_counter=lambda: 1e9, monotonic=lambda: 1e9):
            same(case, played(case), first, "at another time of the clock")
    finally:
        random.setstate(before[0])
        np.random.set_state(pickle.loads(before[1]))  # noqa: NPY002


def check_pickles(case: Case) -> None:
    """Copies and pickles of the agent and its state, in the middle of an episode, go on as it does."""
    envs = case.envs(EPISODES)
    agent = made(case, envs)
    observation, _ = envs.reset(seed=ROOT)
    state = None
    for _ in range(12):
        action, state = agent.predict(observation, state)
        observation, *_ = envs.step(action)
    try:
        copies = [pickle.loads(pickle.dumps((agent, state))), copy.deepcopy((agent, state))]
    except Exception as error:
        raise AssertionError(f"{case}: the agent or its state cannot be pickled or copied: {error}") from error
    wanted, _ = agent.predict(observation, copy.deepcopy(state))
    for kind, (other, kept) in zip(("a pickle", "a deep copy"), copies, strict=True):
        found, _ = other.predict(observation, kept)
        if not all(np.array_equal(found[part], wanted[part]) for part in ("arm", "times", "answer")):
            raise AssertionError(f"{case}: {kind} of the agent and its state chooses {found}, and the agent {wanted}")


def check_ties(case: Case) -> None:
    """Arms that all yield the same number: every action is possible, and episodes end."""
    for alike in case.replaced(instance={"distribution": "bernoulli", "mean": [1.0] * 5}):
        played(alike)


def _others(case: Case) -> Iterator[Case]:
    """Other questions of the problem that the agent takes, with arms far from the boundary and 1,000 pulls."""
    task, rng = case.task, np.random.default_rng(5)
    rules = {"budget": 1000} if "budget" in case.kwargs else {"delta": 0.03, "max_pulls": 1000}
    for values, K, low, high, arms in OTHERS if task.D == 1 else ():
        asked = {name: value for name, value in values.items() if name in task.parameters}
        draws = rng.uniform(low, high, (500, K)).round(3)
        margins = np.abs(type(task.make_problem())(**{**task.parameters, **asked}).margin(draws)).min(axis=1)
        instance = arms | {"mean": draws[int(np.argmax(margins))].tolist()}
        yield from case.replaced(**asked, **rules, instance=instance, shuffle_arms=False)


def _rows(case: Case, n: int = CLEAR, **changed: object) -> Any:
    """Episodes by `evaluate`."""
    kwargs = case.kwargs | changed
    return evaluate({"agent": case.agent}, case.env_id, episodes=n, seed=ROOT, env_kwargs=kwargs, progress=False)


def _few_wrong(case: Case, n: int, most: int, where: str) -> Any:
    """The episodes; refuse too many wrong answers, of episodes that were not cut."""
    rows = _rows(case, n).episodes
    if (wrong := int((~rows["correct"] & ~rows["truncated"]).sum())) > most:
        raise AssertionError(f"{case}: {wrong} of {n} answers are wrong {where}")
    return rows


def check_other_questions(case: Case) -> None:
    """Other parameters, 12 arms, and Gaussian means around -3: after 1,000 pulls, as by `evaluate`, with few errors."""
    for other in _others(case):
        check_evaluate(other)
        _few_wrong(other, CLEAR, CLEAR_WRONG, "though no mean is near the boundary: does it count on other parameters?")


def check_places(case: Case) -> None:
    """Arms in the reverse order, and means that move along with the threshold, get as many pulls as before."""
    for other in _others(case) if "budget" in case.kwargs and case.task.make_problem().any_order else ():
        arms, at = other.kwargs["instance"], other.task.make_problem().boundary
        means = np.linspace(min(arms["mean"]), max(arms["mean"]), len(arms["mean"])).round(3)
        plans: list[tuple[str, Any, dict[str, Any]]] = [("", means, {}), ("in the reverse order", means[::-1], {})]
        named = {name: at + 4.0 for name, one in other.task.parameters.items() if isinstance(one, float) and one == at}
        if arms["distribution"] == "gaussian" and named:
            plans.append((f"with all means and {', '.join(named)} moved by 4", means + 4.0, named))
        shares = list[Any]()
        for how, mean, values in plans:
            moved = {"budget": 16 * len(mean), "instance": arms | {"mean": mean.tolist()}} | values
            pulls = _rows(other, **moved).runs[0].pulls.ravel()
            shares.append(pulls[np.argsort(mean)] / pulls.sum())
            if np.abs(apart := shares[-1] - shares[0]).sum() > 2 * SHIFTED:
                i = int(np.abs(apart).argmax())
                gets = f"arm {i} gets {shares[0][i]:.0%} of all pulls, and {shares[-1][i]:.0%} {how}"
                raise AssertionError(f"{other} and the means {means}: {gets}")


def check_two_arms(case: Case) -> None:
    """Two arms."""
    for two in case.replaced(instance={"sampler": {"arms": 2}}):
        check_single_is_batch(two)


def check_short_budget(case: Case) -> None:
    """A budget of fewer pulls than there are arms, and of one."""
    for budget in (1, 3):
        high = {"threshold": 0.9} if "threshold" in case.task.parameters else {}  # no prior takes arms in
        for short in case.replaced(budget=budget, **high) if "budget" in case.kwargs else ():
            check_single_is_batch(short)
            free = short.task.make_problem().answer_size is None and short.task.pull == "arm"
            if free and any(set(np.flatnonzero(one.answer)) - set(one.arms) for one in played(short)):
                raise AssertionError(f"{short}: an answer holds an arm that has not been pulled")


def check_relabelled_arms(case: Case) -> None:
    """The answer goes along with the arms when they change their places, where the problem allows it."""
    envs, K = case.envs(EPISODES), case.task.K
    if case.observation != "statistics" or case.task.D > 1 or K > LARGEST or not case.task.make_problem().any_order:
        return
    agent = made(case, envs)
    observation, _ = envs.reset(seed=ROOT)
    pull = {"times": np.ones(EPISODES, np.int64), "answer": np.zeros((EPISODES, K), np.int8)}
    for arm in range(K):
        for _ in range(5 + arm):  # no ties
            observation, *_ = envs.step(pull | {"arm": np.full(EPISODES, arm)})
    observation = {name: array.copy() for name, array in observation.items()}
    observation["mean"] += np.linspace(0.0, 0.01, K)
    observation["total"] = observation["mean"] * observation["pulls"]
    order = np.random.default_rng(0).permutation(K)
    moved = {name: array[:, order] if array.shape[1:] == (K,) else array for name, array in observation.items()}
    found, wanted = agent.recommend(moved), agent.recommend(observation)[:, order]
    many, more = (agent.recommend(moved | {x: moved[x] * n for x in ("pulls", "total")}) for n in (1000, HUGE))
    if not np.array_equal(many, more):
        raise AssertionError(f"{case}: answers change from thousands of pulls to billions: are counts of 32 bits?")
    if not np.array_equal(found, wanted):
        e = int(np.argmax((found != wanted).any(axis=1)))
        text = f"{case}: the means {moved['mean'][e]} are answered by {found[e].astype(int)},"
        raise AssertionError(f"{text} and the same in another order by {wanted[e].astype(int)}")


def check_errors_within_delta(case: Case) -> None:
    """An agent that stops by itself: of 200 answers at most 40 are wrong at delta = .1, and .01 costs more pulls."""
    if "delta" not in case.kwargs or "budget" in case.kwargs:
        return
    gaps = {"distribution": "bernoulli", "mean": [0.9, 0.7, 0.3, 0.2, 0.1]}
    easy = next(case.replaced(instance=gaps, delta=DELTA, max_pulls=20000), case)
    if not getattr(made(easy, easy.envs(1)), "stops", False):
        return
    rows = _few_wrong(easy, MANY, MOST_WRONG, f"at delta = {DELTA}, and it stops by itself")
    pulls = _rows(easy, FEW, delta=DELTA / 10).episodes["total_pulls"].mean()
    if rows["total_pulls"][:FEW].mean() >= pulls and not rows["truncated"].all():
        raise AssertionError(f"{easy}: its mean of {pulls:g} pulls at delta = {DELTA / 10} is no more than at {DELTA}")
    at, tilt = case.task.make_problem().boundary, np.linspace(0.03, -0.03, 5)
    kwargs = {"epsilon": 0.01} if "epsilon" in case.task.parameters else {}
    for form in ({"distribution": "bernoulli"}, {"distribution": "gaussian", "sd": 10.0}):
        arms = form | {"mean": ((0.5 if at is None else at) + tilt).round(4).tolist()}
        for hard in case.replaced(instance=arms, delta=DELTA, max_pulls=3000, **kwargs):
            _few_wrong(hard, MANY, MOST_WRONG, f"at delta = {DELTA}, where arms hardly differ: does it stop too soon?")


CHECKS: tuple[Callable[..., None], ...] = (
    *(check_bounds, check_no_global_state, check_repeats, check_single_is_batch, check_order_of_the_batch),
    *(check_evaluate, check_actions_arm, check_pickles, check_ties, check_two_arms, check_short_budget),
    *(check_relabelled_arms, check_places, check_other_questions, check_errors_within_delta),
)


def _run(agent: object, check: Callable[..., None], env: object = None) -> None:
    """One check, on all tasks of the agent."""
    if agent in UNSAFE and check is not check_bounds:
        raise AssertionError(f"{check.__name__} is not made, as check_bounds of {_named(agent)} fails")
    cases = cases_of(agent, env)
    for some in [cases] if check is check_bounds else [[case] for case in cases]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                check(*some)
            except Exception as error:
                text = error if isinstance(error, AssertionError) else f"{some[0]}: {type(error).__name__}: {error}"
                raise AssertionError(f"{check.__name__}: {text}") from error


def check_agent(agent: object, env: object = None, *, bounds: bool = True) -> None:
    """Make all checks of an agent.

    Args:
        agent: a name, a class, a function of a task, as `agents.make` takes it.
        env: an environment, whose task is the only one; None: each problem with five random arms, with a budget of 60
            and with a delta of .1, as far as the agent takes it.
        bounds: make `check_bounds` too, which compiles the agent once more, for seconds.

    Raises:
        AssertionError: naming the first check that fails, what is wrong, and how to see it.
        ValueError: if `env` is no environment of this package, or `agents.make` does not know the agent.
    """
    recipe_of(agent)
    for check in CHECKS if flag("bounds", bounds) else CHECKS[1:]:
        _run(agent, check, env)


def parametrize_with_checks(
    agents: Sequence[object], *, expected_failed_checks: Mapping[str, str] | None = None, env: object = None
) -> object:
    """A decorator for a pytest function of `agent` and `check`: it is called with each agent and each check.

    Args:
        agents: names, classes or functions, as `agents.make` takes them.
        expected_failed_checks: {name of a check: why it fails}: these are marked as expected failures, strictly.
        env: as for `check_agent`.

    Raises:
        ValueError: for no agents, one that `agents.make` does not know, a check that does not exist, and `env` that is
            no environment. ImportError: without pytest.
    """
    pytest = require("pytest", "parametrize_with_checks", "tests")
    if isinstance(agents, (str, bytes, Mapping)) or not isinstance(agents, Iterable) or not (agents := list(agents)):
        raise ValueError(f"agents must be a list of agents, one at least, got {agents!r:.200}")
    for agent in agents:
        if not isinstance(agent, str) or ":" not in agent:  # modules are imported when the tests run
            recipe_of(agent)
    if env is not None:
        _spec_of(env)
    known, failing = [check.__name__ for check in CHECKS], expected_failed_checks
    failing = {} if failing is None else failing
    fits = isinstance(failing, Mapping) and all(name in known and isinstance(failing[name], str) for name in failing)
    if not fits:
        names = ", ".join(known)
        raise ValueError(f"expected_failed_checks must be a dict of reasons by names of {names}, got {failing!r:.200}")
    rows = []
    for agent in agents:
        for check in CHECKS:
            name, call = check.__name__, functools.partial(_run, check=check, env=env)
            marks = [pytest.mark.xfail(reason=failing[name], strict=True)] if name in failing else []
            rows.append(pytest.param(agent, call, id=f"{_named(agent)}-{name}", marks=marks))
    return pytest.mark.parametrize(("agent", "check"), rows)
