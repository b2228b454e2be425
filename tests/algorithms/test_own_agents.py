"""What authors of agents meet: rules that cannot be compiled, wrong keys, models of other arms; each error says why."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from plays import episode_of
from refusals import refused
from test_doors import planning

import agents
from agents.certified import CertifiedPolicy, sampling_rule
from agents.core import ALL_PROBLEMS, RoundState, Seen, add, bulk, clear, following
from agents.core.waiting import put_rows
from agents.testing import check_agent
from bandit_envs import SetProblem, Threshold
from bandit_envs.kernels import carray, episode_kernel
from bandit_envs.problems import Measure, own

BEST = "bandit_envs/BestArm-v0"
TOLD = {"budget": 60}


def evaluated(agent: Any, **told: Any) -> agents.Evaluation:
    return agents.evaluate(agent, BEST, episodes=3, env_kwargs=TOLD | told, progress=False)


# --- rules in compiled code ------------------------------------------------------------------------------------------


@episode_kernel
def pull_the_best(e: int, sums: bulk.Sums, plans: bulk.Plans, times: bulk.Times) -> Any:
    """All arms three times; then the best one of the plan, found as one does in Python, from best = -1."""
    plan = bulk.plan_of(plans, e)
    bulk.watch(plan, sums.pulls, e)
    arm = bulk.following(plan, e, times)
    if arm < 0:
        best = -1
        if plan.book.beginning:
            bulk.begin(plan)
            bulk.clear(plan)
            for i in range(len(plan.arms)):
                bulk.add(plan, i)
        else:
            for j in range(plan.book.size):
                i = bulk.arm_at(plan, j)
                if best < 0 or sums.total[e, i] / sums.pulls[e, i] > sums.total[e, best] / sums.pulls[e, best]:
                    best = i
            bulk.clear(plan)
            bulk.add(plan, best)
        bulk.repeat(plan, 3)
        arm = bulk.following(plan, e, times)
    return arm


class PullTheBest(agents.BulkPolicy):
    name, solves = "pull-the-best", ("BestArm",)

    def rule(self, sums: Any, observation: Any, state: Any, times: Any, out: Any) -> Any:
        return pull_the_best, (*sums, *state.plans, *times, out)


def test_an_arm_of_a_plan_may_take_the_place_of_minus_one() -> None:
    """Defect: the arm was unsigned, and -1 or an unsigned integer is a float for Numba."""
    rows = evaluated(PullTheBest)
    assert rows.episodes["total_pulls"].tolist() == [60, 60, 60]
    pulls = np.sort(rows.pulls["pulls"].to_numpy())
    assert pulls[0] == 3
    assert pulls.sum() == pytest.approx(60)


@episode_kernel
def float_index(e: int, seen: Seen, plans: Any) -> Any:
    best = -1
    for i in range(seen.pulls.shape[1]):
        if best < 0 or seen.mean[e, i] > seen.mean[e, best]:
            best = 1.0 * i
    return best


@episode_kernel
def makes_arrays(e: int, seen: Seen, plans: Any) -> Any:
    arm = following(seen, e, plans[e])
    order = np.zeros(3)
    return max(arm, np.int64(order[0]))


@episode_kernel
def python_alone(e: int, seen: Seen, plans: Any) -> Any:
    with open("a file"):
        return 0


def line_of(text: str) -> int:
    """The line of this file that holds this text for the first time."""
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("kernel", "line", "said"),
    [
        (float_index, "seen.mean[e, i] > seen.mean[e, best]", "an index is a float: a name that holds integers in one"),
        (makes_arrays, "order = np.zeros(3)", "a function of one episode makes no arrays"),
        (python_alone, 'with open("a file")', "Unsupported context manager in use"),
    ],
)
def test_what_cannot_be_compiled_is_named_with_its_line(kernel: Any, line: str, said: str) -> None:
    """Defect: the error named the line of the `def` alone; and other errors of Numba named nothing."""
    with pytest.raises(ValueError, match=f"odd: Numba cannot compile {kernel.function.__name__} ") as caught:
        evaluated(planning(kernel))
    told = str(caught.value)
    assert f"test_own_agents.py, line {line_of(line)})" in told
    assert said in told
    assert len(told.splitlines()) == 1


def wrong_margins(pulls: Any, mean: Any, K: Any, numbers: Any, out: Any) -> None:
    margins = carray(out, K)
    margins[0] = carray(mean, K)["x"]


def test_a_routine_of_a_problem_that_cannot_be_compiled_is_named() -> None:
    """Defect: pages of Numba's own words, under the name of an attribute that the author has not written."""

    class Far(SetProblem):
        name, asks, local = "Far", "an example", True

        def margin(self, means: Any) -> Any:
            return np.asarray(means, np.float64)

        def distance_routine(self) -> Measure:
            return Measure.of(wrong_margins)

    with pytest.raises(ValueError, match="distance_routine of the problem 'Far' fails: Numba cannot comp") as caught:
        own.try_out(Far(), np.full((3, 2), 0.5), 1)
    assert f"line {line_of('carray(mean, K)[')}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


# --- keys ------------------------------------------------------------------------------------------------------------


class Pulling(agents.Agent):
    name, solves = "pulling", ALL_PROBLEMS

    def choose(self, observation: Any, state: Any) -> Any:
        return np.zeros(len(observation["pulls"]), np.int64)


class Looking(Pulling):
    def choose(self, observation: Any, state: Any) -> Any:
        return np.zeros(len(observation["pull"]), np.int64)


class Recommending(Pulling):
    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        return observation["means"] > 0


@pytest.mark.parametrize(("kind", "key"), [(Looking, "pull"), (Recommending, "means")])
def test_a_key_that_the_observation_does_not_have(kind: Any, key: str) -> None:
    """It is Python's own error, and the checks name the agent and its task."""
    with pytest.raises(KeyError, match=key):
        evaluated(kind)
    with pytest.raises(AssertionError, match=rf"check_\w+: {kind.__name__} on .*: KeyError: '{key}'"):
        check_agent(kind, bounds=False)


@pytest.mark.parametrize("keys", [("arm",), ("arms", "times", "answer")])
def test_the_checks_find_a_predict_that_returns_other_parts_of_an_action(keys: tuple[str, ...]) -> None:
    class Own(Pulling):
        def predict(self, observation: Any, state: Any = None, *rest: Any, **more: Any) -> Any:
            action, state = super().predict(observation, state, *rest, **more)
            right = not np.asarray(observation["pulls"]).any()
            return (action if right else {key: action.get(key, action["arm"]) for key in keys}), state

    with pytest.raises(AssertionError, match=r"check_\w+: .*Own on .*(KeyError: '(arm|times)'|refused: a full action)"):
        check_agent(Own, bounds=False)


# --- state over episodes ---------------------------------------------------------------------------------------------

K, SLOTS = 3, 3  # as many arms as episodes: which axis is that of the episodes must not be guessed by the length alone


@dataclass
class Led:
    """The plans of a plan policy, and counts of its own."""

    plans: Any
    led: Any  # (E, K)


@episode_kernel
def lead(e: int, seen: Seen, led: Any, plans: Any) -> Any:
    """The leader, and at every other time that it leads its neighbour; the counts tell when to stop."""
    arm = following(seen, e, plans[e])
    if arm < 0:
        K, best, total = seen.pulls.shape[1], 0, 0
        for i in range(K):
            best = i if seen.mean[e, i] > seen.mean[e, best] else best
            total += seen.pulls[e, i]
        led[e, best] += 1
        if total > 6 + led[e, 0] % 4:
            return K
        clear(plans[e])
        add(plans[e], (best + led[e, best] % 2) % K)
        arm = following(seen, e, plans[e])
    return arm


class Plans(agents.PlanPolicy):
    name, solves, stops = "counts-plans", ("BestArm",), True

    def initial_state(self, observation: Any) -> Any:
        return Led(self.new_plans(observation), np.zeros(observation["pulls"].shape, np.int64))

    def rule(self, seen: Any, observation: Any, state: Any, out: Any) -> Any:
        return lead, (*seen, state.led, state.plans, out)


@dataclass
class Bulk(RoundState):
    made: Any  # (E,)


@episode_kernel
def go_round(e: int, sums: bulk.Sums, made: Any, plans: bulk.Plans, times: bulk.Times) -> Any:
    """All arms but one, which the count of rounds tells; after three or four rounds the episode ends."""
    plan = bulk.plan_of(plans, e)
    bulk.watch(plan, sums.pulls, e)
    arm = bulk.following(plan, e, times)
    if arm < 0:
        bulk.begin(plan)
        bulk.clear(plan)
        made[e] += 1
        if made[e] > 2 + (sums.total[e, 1] > 0):
            return np.int64(len(plan.arms))
        for i in range(len(plan.arms)):
            if i != made[e] % len(plan.arms):
                bulk.add(plan, i)
        bulk.repeat(plan, 2)
        arm = bulk.following(plan, e, times)
    return arm


class Bulks(agents.BulkPolicy):
    name, solves, stops = "counts-bulk", ("BestArm",), True

    def initial_state(self, observation: Any) -> Any:
        return Bulk(**RoundState.of(*observation["pulls"].shape), made=np.zeros(len(observation["pulls"]), np.int64))

    def rule(self, sums: Any, observation: Any, state: Any, times: Any, out: Any) -> Any:
        return go_round, (*sums, state.made, *state.plans, *times, out)


def by_turns(arms: Any, turns: Any, observation: Any) -> Any:
    """Every other time the neighbour of the arm; the counts tell when to stop."""
    rows = np.arange(len(arms))
    turns[rows, arms] += 1
    over = observation["pulls"].sum(axis=1) > 6 + turns[:, 0] % 4
    return np.where(over, K, (arms + turns[rows, arms] % 2) % K)


class Free(agents.Agent):
    name, solves, stops = "counts-free", ("BestArm",), True

    def initial_state(self, observation: Any) -> Any:
        E = len(observation["pulls"])
        return {"turns": np.zeros((K, E), np.int64), "lists": ([[] for _ in range(E)], slots_of(E))}

    def choose(self, observation: Any, state: Any) -> Any:
        E, (lists, slotted) = len(observation["pulls"]), state["lists"]
        for e in range(E):
            lists[e].append(e)
            slotted.count[e] += 1
        assert slotted.count.tolist() == [len(one) for one in lists]
        arms = np.array([len(one) % K for one in lists])
        return by_turns(arms, state["turns"].T, observation)


@dataclass(slots=True)
class Slotted:
    count: Any  # (E,)


def slots_of(E: int) -> Slotted:
    return Slotted(np.zeros(E, np.int64))


COUNTING = (Free, Plans, Bulks)
UNLIMITED: dict[str, Any] = {"instance": f"sampler(arms={K})", "delta": 0.1, "max_pulls": 100}


SHORT = UNLIMITED | {"max_pulls": 9, "epsilon": 0.2}
OURS = ("track-and-stop", "improved-top-k", "racing", "adapt", "kl-lucb", "random")


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize(
    ("kind", "told", "limits"),
    [
        *((kind, {}, UNLIMITED) for kind in COUNTING),
        *((kind, {"stop": "certificate"}, SHORT) for kind in COUNTING),
        *((name, {}, SHORT) for name in OURS),
    ],
)
def test_state_begins_anew_with_each_episode(kind: Any, told: Any, limits: Any, mode: str) -> None:
    """Defect: counts of one's own went on in the next episode of a slot."""
    envs = gym.make_vec(BEST, SLOTS, autoreset_mode=mode, **limits)
    agent = agents.make(kind, envs, **told)
    observation, _ = envs.reset(seed=5)
    state, over, played = None, np.zeros(SLOTS, np.bool_), [[[]] for _ in range(SLOTS)]
    for _ in range(60):
        action, state = agent.predict(observation, state)
        for e in range(SLOTS):
            if over[e]:
                played[e].append([])
            if not over[e] or mode == "SameStep":  # else the action is not read
                played[e][-1].append(int(action[e]))
        observation, _, terminated, truncated, _ = envs.step(action)
        over = terminated | truncated
    for e, episodes in enumerate(played):
        assert len(episodes) > 2
        for number, arms in enumerate(episodes):
            fresh = agents.make(kind, gym.make(BEST, **limits), **told)
            assert arms == alone(fresh, limits, 5 + e, number)[: len(arms)]


def named(kind: Any, *hooks: str) -> tuple[Any, list[str]]:
    """A subclass with a subclass for each further name of the hook, and the names of those that are called."""
    called: list[str] = []
    for hook in hooks:

        def own(self: Any, observation: Any, hook: str = hook, of: Any = kind) -> Any:
            called.append(hook)
            return getattr(super(of.made, self), hook)(observation)

        of = type("Of", (), {})
        own.__defaults__ = (hook, of)
        kind = of.made = type("Own", (kind,), {hook: own, "__module__": __name__})  # type: ignore[attr-defined]
    return kind, called


@pytest.mark.parametrize("kind", COUNTING)
def test_the_hook_for_the_state_has_two_spellings(kind: Any) -> None:
    new, old = "initial_state", "remember"
    limits, wanted = UNLIMITED, alone(agents.make(kind, gym.make(BEST, **UNLIMITED)), UNLIMITED, 5, 0)
    for hooks in ((new,), (old,), (old, new), (new, old)):
        made, called = named(kind, *hooks)
        agent: Any = agents.make(made, gym.make(BEST, **limits))
        assert alone(agent, limits, 5, 0) == wanted
        assert called[: len(hooks)] == [*reversed(hooks)]
        envs = gym.make_vec(BEST, SLOTS, **limits)
        observation, _ = envs.reset(seed=5)
        for hook in (new, old):
            called.clear()
            assert type(getattr(agent, hook)(observation)) is type(agent.begin_anew(observation))
            assert called == [*reversed(hooks)] * 2

    class Mixin:
        def remember(self, observation: Any) -> Any:
            self.asked = True
            return super().remember(observation)  # type: ignore[misc]

    agent = agents.make(type("Mixed", (Mixin, kind), {"__module__": __name__}), gym.make(BEST, **limits))
    assert alone(agent, limits, 5, 0) == wanted
    assert agent.asked


def test_a_class_defines_the_hook_once() -> None:
    def hook(self: Any, observation: Any) -> Any:
        return 1

    with pytest.raises(ValueError, match=r"class Own defines both initial_state and remember"):
        type("Own", (Free,), {"remember": hook, "initial_state": lambda self, observation: 2})
    type("Own", (Free,), {"remember": hook, "initial_state": hook})  # as a class has them that is made anew


def alone(agent: Any, limits: Any, seed: int, number: int) -> list[int]:
    """The arms that an agent pulls in an episode by itself."""
    return episode_of(gym.make(BEST, **limits), agent, number, seed)[0]


@pytest.mark.parametrize("kind", COUNTING)
def test_evaluations_of_few_slots_are_those_of_many(kind: Any) -> None:
    """In compiled play too, where the slots of a batch take one episode after another."""
    few, many = (agents.evaluate(kind, BEST, episodes=16, batch=n, env_kwargs=UNLIMITED) for n in (2, 16))
    pd.testing.assert_frame_equal(few.episodes, many.episodes, check_exact=True)


# --- sampling rules ---------------------------------------------------------------------------------------------------


class Own(NamedTuple):
    """What the rules below are to know."""

    least: int


@sampling_rule(Own)
def plans_nothing(ep: Any, own: Any) -> None:
    """Forgets to plan."""


def planned_again(ep: Any, own: Any) -> None:
    """A plain function: `sampling_rule` compiles it."""
    ep.round.draws = own.least - 1


@sampling_rule(Own, planned_again)
def rarest(ep: Any, own: Any) -> None:
    """Pull the arm with the fewest pulls, the lowest one."""
    arm = 0
    for i in range(len(ep.pulls)):
        arm = i if ep.pulls[i] < ep.pulls[arm] else arm
    add(ep.plan, arm, own.least)


class Planned(NamedTuple):
    arm: int
    times: int


@sampling_rule(Planned)
def plans_anything(ep: Any, own: Planned) -> None:
    """Plans what it is told to."""
    add(ep.plan, own.arm, own.times)


@sampling_rule(Own)
def plans_half(ep: Any, own: Own) -> None:
    """Plans half an arm."""
    add(ep.plan, own.least * 0.5)


class Forgets(CertifiedPolicy):
    name, source, sampling = "forgets", "an example", plans_nothing

    def own(self, state: Any) -> Own:
        return Own(1)


class Rarest(Forgets):
    name, sampling = "rarest", rarest


def looped(agent: Any, envs: Any, steps: int = 12) -> tuple[Any, Any]:
    """So many steps by `predict`; the observation and the state after them."""
    observation, state = envs.reset(seed=0)[0], None
    for _ in range(steps):
        action, state = agent.predict(observation, state)
        observation = envs.step(action)[0]
    return observation, state


LIMITS = {"delta": 0.1, "max_pulls": 99}


class Anything(CertifiedPolicy):
    name, source, sampling = "anything", "an example", plans_anything

    def __init__(self, task: Any, arm: int = 0, times: int = 1) -> None:
        super().__init__(task)
        self.planned = Planned(arm, times)

    def own(self, state: Any) -> Planned:
        return self.planned


class Half(Forgets):
    name, sampling = "half", plans_half


class Wrong(Forgets):
    name = "wrong"

    def own(self, state: Any) -> Any:
        return Own(0.5)  # type: ignore[arg-type]


class Bare(Forgets):
    name, sampling = "bare", None


@pytest.mark.parametrize(("arm", "times"), [(-1, 1), (10, 1), (0, 0), (3, -5)])
def test_arms_that_there_are_not_and_no_pulls_are_refused_before_they_are_read(arm: int, times: int) -> None:
    kind = functools.partial(Anything, arm=arm, times=times)
    envs = gym.make_vec(BEST, num_envs=2, **LIMITS)
    agent = kind(envs)
    observation, state = looped(agent, envs, 10)
    told = rf"anything has planned {times} pulls of arm {arm}: arms are 0 .. 9"
    for _ in range(3):
        with pytest.raises(ValueError, match=told):
            agent.predict(observation, state)
    with pytest.raises(ValueError, match=told):
        agents.evaluate([kind], BEST, episodes=3, env_kwargs=LIMITS)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Half, r"plans_half \(.*an arm, or how often it is pulled, is a float; at `add\(ep.plan, own.least \* 0.5\)`"),
        (Forgets, "forgets has planned no pull"),
        (Wrong, "given.least .*0.5"),
    ],
)
def test_faults_of_sampling_rules_are_named(kind: Any, named: str) -> None:
    with pytest.raises((ValueError, TypeError), match=named):
        agents.evaluate([kind], BEST, episodes=3, env_kwargs=LIMITS)


def test_an_own_rule_is_uniform_sampling_with_a_certificate() -> None:
    """As `uniform(stop='certificate')`, which pulls in turn too, but for the looks: both stop about as late."""
    kwargs = {"instance": {"distribution": "bernoulli", "mean": [0.8, 0.4, 0.3]}, "delta": 0.1, "max_pulls": 10**5}
    rows = agents.evaluate([Rarest, "uniform(stop='certificate')"], BEST, episodes=60, env_kwargs=kwargs).summary()
    own, uniform = rows["total_pulls"]
    assert 0.8 < own / uniform < 1.25
    assert (rows["error_rate"] < 0.2).all()


def test_a_struct_and_a_rule_are_needed() -> None:
    with pytest.raises(TypeError, match="sampling_rule takes the class of a struct"):
        sampling_rule(lambda ep, own: None)
    env = gym.make(BEST, **LIMITS)
    with pytest.raises((ValueError, TypeError), match="Bare.*sampling"):
        looped(agents.make(Bare, env), env)


# --- the forms of before ----------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
FLAT, FORMER, TODAY = (
    re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    for page in (HERE / "own_agents_flat.md", HERE / "own_agents_020.md", HERE.parents[1] / "docs" / "own-agent.md")
)


def placed(text: str, file: Path, place: dict[str, Any] | None = None) -> dict[str, Any]:
    """The names that a block of a page defines."""
    file.write_text(text)
    place = {"__name__": file.stem} if place is None else place
    exec(compile(text, file, "exec"), place)
    return place


def pulled(kind: Any, instance: str = "tao2019-1", budget: int = 400) -> Any:
    kind.solves = ("Threshold",)
    kwargs = {"instance": instance, "budget": budget}
    found = agents.evaluate({"it": kind}, "Threshold", episodes=20, env_kwargs=kwargs, progress=False)
    return found.episodes[["total_pulls", "score"]]


@pytest.mark.filterwarnings("ignore:bandit_envs:DeprecationWarning")  # the page of then imports from where names were
@pytest.mark.parametrize(("name", "block"), [("BothSides", 0), ("Nearer", 1)])
def test_agents_decide_in_all_forms_alike(
    name: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page on own agents as it was when kernels were given the fields of structs, with structs, and as it is."""
    monkeypatch.setattr(Threshold, "epsilon", 0.1, raising=False)
    texts = {"flat": FLAT[block], "former": next(one for one in FORMER if f"class {name}" in one)}
    found = [pulled(placed(text, tmp_path / f"{key}_{name}.py")[name]) for key, text in texts.items()]
    assert found[0].equals(found[1])
    today = [one for one in TODAY if f"class {name}" in one]
    if today:
        assert found[0].equals(pulled(placed(today[0], tmp_path / f"today_{name}.py")[name]))


@pytest.mark.filterwarnings("default:.*a form of 0.2.0:DeprecationWarning")
def test_every_block_of_the_page_of_020_runs_and_warns(tmp_path: Path) -> None:
    """In order, as a reader would run them; each class in a form that goes says so, once."""
    place: dict[str, Any] = {"__name__": "page_of_020"}

    def run() -> None:
        for number, text in enumerate(FORMER):
            if "parametrize_with_checks" not in text:
                placed(text, tmp_path / f"block_{number}.py", place)

    with pytest.warns(DeprecationWarning, match="a form of 0.2.0") as caught:
        run()
    said = [str(one.message).split()[0] for one in caught if "a form of 0.2.0" in str(one.message)]
    assert said == ["BothSides", "Nearer", "Fewer", "Coin", "Halves"]


# --- states of one's own ----------------------------------------------------------------------------------------------


class Counts:
    """A state without slots, which takes the mark of its agent."""

    def __init__(self, n: int) -> None:
        self.n = n


class Counting(agents.Agent):
    name, solves = "counting", ALL_PROBLEMS

    def __init__(self, task: Any, step: int = 1) -> None:
        super().__init__(task)
        self.step = step

    def initial_state(self, observation: Any) -> Counts:
        return Counts(len(observation["pulls"]))

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


def test_a_state_of_ones_own_type_is_of_the_agent_that_made_it() -> None:
    env = gym.make("bandit_envs/BestArm-v0", instance="sampler(arms=3)", budget=9)
    observation, _ = env.reset(seed=0)
    one, other = Counting(env), Counting(env, step=2)
    _, state = one.predict(observation)
    other.predict(observation)  # it knows of which type its states are
    one.predict(observation, state)
    other.predict(observation, Counts(1))  # without a mark the type is all there is
    with refused("state", "Counts", "Counting(step=2)", "Counting()"):
        other.predict(observation, state)


@pytest.mark.parametrize("alone", [True, False])
def test_episodes_are_put_into_a_state(alone: bool) -> None:
    old: Any = {"rows": np.zeros((2, 3)), "lists": [[0], [0], [0]], "shared": np.zeros(2), "parts": (np.zeros(3),)}
    new: Any = {"rows": np.ones((2, 3)), "lists": [[1], [2], [3]], "shared": np.ones(2), "parts": (np.ones(3),)}
    if alone:
        new = {"rows": np.ones((2, 1)), "lists": [[3]], "shared": np.ones(2), "parts": (np.ones(1),)}
    put_rows(old, new, np.array([2]), 3, alone)
    assert old["rows"].tolist() == [[0, 0, 1]] * 2
    assert old["lists"] == [[0], [0], [3]]
    assert old["parts"][0].tolist() == [0, 0, 1]
    assert not old["shared"].any()
