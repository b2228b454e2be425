"""The doors for agents: names, "module:Class", classes and functions; parameters that are kept; what is refused."""

from __future__ import annotations

import copy
import dataclasses
import functools
import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from other_rules import check_other_rules
from pandas.testing import assert_frame_equal
from refusals import refused

import agents
from agents.baselines import Uniform
from agents.core import ALL_PROBLEMS, LOCAL_PROBLEMS, Problems
from agents.evaluation.result import Evaluation
from agents.registry import AGENTS, recipe_of
from agents.thresholding.lsa import LSA
from agents.thresholding.ucbe import UCBE
from bandit_envs import PROBLEMS, SetProblem, Task
from bandit_envs.kernels import episode_kernel

THRESHOLD = "bandit_envs/Threshold-v0"
TAO = {"instance": "tao2019-1", "budget": 60}
LEARNED = {"evolved", "ppo"}


class Mine(LSA):
    """LSA under another name."""

    name, source = "mine", "this test"


class Passing(LSA):
    """A constructor that hands on what it does not know, by position and by name."""

    name = "passing"

    def __init__(self, *arguments: Any, shift: float = 0.0, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.shift = shift


class More(LSA):
    """A parameter of its own, beside those of LSA."""

    name = "more"

    def __init__(self, task: Any, shift: float = 0.0, *, scale: float = 1.0, **keywords: Any) -> None:
        super().__init__(task, **keywords)
        self.shift, self.scale = shift, scale


class Model:
    """A policy like one of SB3, which pulls in turn and reads the features."""

    def __init__(self, task: Any) -> None:
        self.K, self.seen = task.K, task.observation

    def predict(self, observation: Any, state: Any = None, *rest: Any, **more: Any) -> tuple[Any, Any]:
        state = np.zeros(len(observation), np.int64) if state is None else state
        return state % self.K, state + 1


def lsa_of(task: Task) -> Any:
    """A function that makes an agent."""
    return LSA(task, alpha=2.0)


def evaluate(who: Any, env_id: str = THRESHOLD, **arguments: Any) -> Evaluation:
    return agents.evaluate(who, env_id, **({"episodes": 6, "env_kwargs": TAO, "progress": False} | arguments))


def rows(result: Evaluation, agent: str | None = None) -> Any:
    """The rows of the only agent, or of this one, without its label."""
    [label] = result.agents if agent is None else [agent]
    table = result.episodes
    return table[table["agent"] == label].drop(columns="agent").reset_index(drop=True)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The registry, which forgets afterwards what a test has added."""
    for name in ("_rows", "_found", "installed"):
        monkeypatch.setattr(AGENTS, name, copy.copy(getattr(AGENTS, name)))
    return AGENTS


# --- the face ---------------------------------------------------------------------------------------------------------


def test_importing_agents_imports_no_algorithm() -> None:
    code = "import sys, agents; print(*sorted(name for name in sys.modules if name.startswith('agents')));"
    code += "agents.make, agents.names; print('pandas' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, heavy = (line.split() for line in done.stdout.splitlines())
    assert set(loaded) <= {"agents", "agents.registry"} | {name for name in loaded if name.startswith("agents.core")}
    assert heavy == ["False", "False"]


def test_the_public_names_are_there() -> None:
    heavy = {"load": "stable_baselines3", "train": "stable_baselines3", "evolve": "cmaes"}
    for name in agents.__all__:
        if name in heavy:
            pytest.importorskip(heavy[name])
        assert getattr(agents, name) is not None
        assert name in dir(agents)
    core = importlib.import_module("agents.core")
    assert all(hasattr(core, name) for name in core.__all__)
    with refused("'evalute'", error=AttributeError):
        agents.evalute  # noqa: B018


def test_problems_that_an_agent_solves() -> None:
    assert list(ALL_PROBLEMS) == list(PROBLEMS)
    assert list(LOCAL_PROBLEMS) == ["Threshold", "Feasible"]
    assert "Threshold" in LOCAL_PROBLEMS
    assert len(LOCAL_PROBLEMS) == 2
    assert "bandit_envs.problems:Threshold" in LOCAL_PROBLEMS
    for other in ("TopK", "Treshold", "bandit_envs.problems:TopK", "no_such_module:Thing", None, 3, [], {}):
        assert other not in LOCAL_PROBLEMS
    others = ["AllGood", "TopK", "BestArm", "BetterThanControl"]
    assert list(Problems(lambda kind: kind.answer_size is None and not kind.local)) == others
    assert AGENTS["ucbe"].solves is LOCAL_PROBLEMS
    assert list(AGENTS["lsa"].solves) == [*LOCAL_PROBLEMS, "BetterThanControl"]


def test_names() -> None:
    assert agents.names() == list(AGENTS)
    for problem in PROBLEMS:
        solving = [name for name in AGENTS if problem in recipe_of(name).solves]
        ready = [name for name in solving if getattr(AGENTS[name], "ready_for", None) != ()]
        assert agents.names(problem) == ready
        assert set(ready) >= LEARNED
        assert ready[-1] == "ppo"
    assert "evolved" not in agents.names(f"{__name__}:Lonely")  # for which no parameters are stored
    assert "uniform" in agents.names(f"{__name__}:Lonely")
    task = Task(f"{__name__}:Lonely", {}, K=4, budget=20)
    assert agents.make("evolved", task, parameters=[0.1] * 18).name == "evolved"


class Lonely(SetProblem):
    """A problem for which no models are stored."""

    name = "Lonely"

    def margin(self, means: Any) -> Any:
        return np.asarray(means) - 0.5


class Sure(agents.IndexPolicy):
    """An index policy that claims to solve whatever there is."""

    name, solves = "sure", ALL_PROBLEMS

    def index(self, T: Any, D: Any) -> Any:
        return T * D**2


class Recalling(Sure):
    """The same with a state of its own."""

    def initial_state(self, observation: Any) -> Any:
        return super().initial_state(observation)


class ByMeans(Sure):
    """The arm with the largest mean, whose index does without margins."""

    def value(self, T: Any, x: Any) -> Any:
        return -x


def test_an_index_policy_needs_margins_of_single_arms() -> None:
    """Defect: on such a problem an index policy failed somewhere inside NumPy, or computed something else."""
    for name in ("lsa", "apt", "ucbe(H=3)", "sar"):
        with refused("Threshold", "Feasible", "TopK", "local"):
            agents.make(name, gym.make("bandit_envs/TopK-v0"))
    for problem in ("TopK", "AllGood"):
        env_id = f"bandit_envs/{problem}-v0"
        env = gym.make(env_id)
        with refused("sure", "margin", problem, "local"):
            agents.make(Sure, env)
        made = agents.make(Recalling, env)
        with refused(problem, "value"):
            made.predict(env.reset(seed=0)[0])
        with refused(problem, "agents.Algorithm"):
            evaluate(Recalling, env_id, env_kwargs={})
        assert len(rows(evaluate(ByMeans, env_id, env_kwargs={}))) == 6
    assert_frame_equal(rows(evaluate(Sure)), rows(evaluate("apt")), atol=0)


# --- register ---------------------------------------------------------------------------------------------------------


def test_a_registered_agent_has_a_name_like_all_others(registry: Any) -> None:
    agents.register("my-lsa", Mine)
    agents.register("late", "test_doors:Mine")
    agents.register("made", lsa_of)
    env = gym.make(THRESHOLD, **TAO)
    assert agents.make("my-lsa(alpha=3)", env).alpha == 3.0
    assert type(agents.make("late", env)) is Mine
    assert agents.make("made", env).alpha == 2.0
    assert agents.names("Threshold")[-2:] == ["my-lsa", "late"]  # the function does not tell what it solves
    assert agents.names()[-3:] == ["my-lsa", "late", "made"]
    assert "my-lsa" not in agents.names("TopK")
    result = evaluate(["lsa", "my-lsa", "late", "made", "lsa(alpha=2.0)"])
    assert result.agents == ["lsa", "my-lsa", "late", "made", "lsa(alpha=2.0)"]
    for twin in ("my-lsa", "late"):
        assert_frame_equal(rows(result, "lsa"), rows(result, twin), atol=0)
    assert_frame_equal(rows(result, "made"), rows(result, "lsa(alpha=2.0)"), atol=0)
    agents.register("steeper", functools.partial(LSA, alpha=2.0))
    assert agents.make("steeper", gym.make(THRESHOLD, budget=100, actions="full")).alpha == 2.0
    assert agents.make("steeper(alpha=3)", gym.make(THRESHOLD, budget=100, actions="full")).alpha == 3.0
    agents.register("my-lsa", Uniform)  # one's own name may be given to another agent
    assert type(agents.make("my-lsa", env)) is Uniform


def test_an_installed_agent_that_cannot_be_imported_harms_no_other(registry: Any) -> None:
    registry.installed = {"theirs": "test_doors:Mine", "broken": "no_such_module:Thing"}
    with pytest.warns(RuntimeWarning, match="the agent 'broken' is left out: .*no_such_module"):
        assert agents.names("Threshold")[-2:] == ["ppo", "theirs"]
    assert type(agents.make("theirs", gym.make(THRESHOLD))) is Mine
    with refused("'no_such_module:Thing'"):
        agents.make("broken", gym.make(THRESHOLD))


# --- text, classes, functions -----------------------------------------------------------------------------------------

FORMS: list[tuple[Any, str, str]] = [  # what stands for an agent, its label, the name of the same agent
    ("test_doors:Mine(alpha=2.0)", "test_doors:Mine(alpha=2.0)", "lsa(alpha=2.0)"),
    ("agents.thresholding.ucbe:UCBE(b=1)", "agents.thresholding.ucbe:UCBE(b=1)", "ucbe(b=1)"),
    ("test_doors:lsa_of", "test_doors:lsa_of", "lsa(alpha=2.0)"),
    (Mine, "mine", "lsa"),
    (UCBE, "ucbe", "ucbe"),
    (lsa_of, "lsa_of", "lsa(alpha=2.0)"),
    (functools.partial(LSA, alpha=2.0), "lsa", "lsa(alpha=2.0)"),
    (functools.partial(UCBE, b=1), "ucbe", "ucbe(b=1)"),
    (lambda task: agents.make("dp-index", task), "<lambda>", "dp-index"),
    (lambda task: agents.make("ucbe", task, a=3.0), "<lambda>", "ucbe(a=3.0)"),
]


@pytest.mark.parametrize(
    ("form", "label", "name"), FORMS, ids=[f"{label}-{i}" for i, (_, label, _) in enumerate(FORMS)]
)
def test_every_form_of_an_agent_decides_as_its_name(form: Any, label: str, name: str) -> None:
    for settings in ({"at": [20, 60]}, {"budgets": [20, 45]}):
        wanted = rows(evaluate(name, **settings))
        for several in (form, {"it": form}):
            result = evaluate(several, **settings)
            assert result.agents == ["it" if isinstance(several, dict) else label]
            assert_frame_equal(rows(result), wanted, atol=0)
    env = gym.make(THRESHOLD, **TAO)
    assert vars(agents.make(form, env)).keys() | {"told"} >= vars(agents.make(name, env)).keys()


def test_make_takes_parameters_beside_a_class() -> None:
    env = gym.make(THRESHOLD, **TAO)
    for who in (Mine, "test_doors:Mine(alpha=3)", functools.partial(Mine, alpha=3)):
        assert agents.make(who, env, alpha=2).alpha == 2.0
    assert agents.make(UCBE, env).a == agents.make("ucbe", env).a  # the environment tells an oracle what it needs
    more = agents.make(More, env, alpha=2, shift=1, scale=3)
    assert (more.alpha, more.shift, more.scale) == (2.0, 1, 3)


def test_a_function_may_make_a_policy_that_reads_features() -> None:
    for form in (Model, "test_doors:Model", lambda task: Model(task), functools.partial(Model)):
        result = evaluate(form)
        assert_frame_equal(rows(result), rows(evaluate("uniform")), atol=0)
    seen = []
    evaluate(lambda task: seen.append(task.observation) or Model(task))
    assert seen == ["statistics", "features"]  # once for a look
    seen.clear()
    evaluate({"two": lambda task: seen.append(task.budget) or LSA(task)}, budgets=[20, 45])
    assert seen == [45]  # anytime: one run


def test_labels() -> None:
    task = gym.make(THRESHOLD, actions="full", **TAO).unwrapped.task
    given = [LSA(task), "lsa", LSA, functools.partial(LSA, alpha=2), lsa_of, lambda task: LSA(task)]
    assert evaluate(given, episodes=2).agents == ["lsa-2", "lsa", "lsa-3", "lsa-4", "lsa_of", "<lambda>"]
    assert evaluate({1: "lsa", "2": "apt"}, episodes=2).agents == ["1", "2"]


# --- parameters -------------------------------------------------------------------------------------------------------


def test_an_agent_keeps_its_parameters_by_name() -> None:
    task = gym.make(THRESHOLD, **TAO).unwrapped.task
    made = [
        (LSA(task), {}),
        (LSA(task, 2), {"alpha": 2}),
        (LSA(task, alpha=2), {"alpha": 2}),
        (LSA(task=task, alpha=2), {"alpha": 2}),
        (Mine(task, 2), {"alpha": 2}),
        (Passing(task, 2), {"alpha": 2}),
        (Passing(task=task, alpha=2), {"alpha": 2}),
        (Passing(task, 2, shift=1), {"shift": 1, "alpha": 2}),
        (More(task, 1, alpha=2, scale=3), {"shift": 1, "alpha": 2, "scale": 3}),
        (UCBE(task, 1.0, H=7.0), {"b": 1.0, "H": 7.0}),
    ]
    for agent, parameters in made:
        assert agent.parameters == parameters
        for twin in (copy.copy(agent), copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
            assert twin.parameters == parameters
            assert vars(twin).keys() == vars(agent).keys()
        again = agent.for_task(task.replace(budget=99))
        assert again.parameters == parameters
        assert again.task.budget == 99
        assert type(again) is type(agent)
        assert agent.for_task(task.replace()) is agent
    agent.parameters["b"] = 5  # a copy
    assert agent.parameters["b"] == 1.0

    class Unnamed(LSA):
        def __init__(self, task: Any, *steps: int) -> None:
            super().__init__(task)

    with refused("Unnamed", "name", error=TypeError):
        Unnamed(task, 1, 2)
    assert Unnamed(task).parameters == {}


def test_an_oracle_that_is_made_anew_learns_the_truth_of_the_instance_that_it_meets() -> None:
    """Defect: an oracle made on one instance kept the hardness of that one on another; a choice of the user is kept."""
    means = [0.1, 0.2, 0.3, 0.4, 0.45, 0.55, 0.6, 0.7, 0.8, 0.9]
    there = TAO | {"instance": {"distribution": "bernoulli", "mean": means}}
    for name in ("ucbe", "ucbe(H=50)"):
        made = agents.make(name, gym.make(THRESHOLD, **TAO))
        assert_frame_equal(rows(evaluate(made, env_kwargs=there)), rows(evaluate(name, env_kwargs=there)), atol=0)


def test_what_an_agent_is_not_made_anew_for() -> None:
    task = gym.make(THRESHOLD, **TAO).unwrapped.task
    agent = LSA(task)
    others: dict[str, Any] = {"K": 4, "distribution": "gaussian", "sigma": 2.0, "support": None}
    for name, value in (others | {"parameters": {"threshold": 0.3, "tolerance": 0}}).items():
        with refused("lsa", name):
            agent.for_task(task.replace(**{name: value}))
    with refused("lsa", "'Threshold'", "'TopK'", "parameters"):
        evaluate(LSA(task), "bandit_envs/TopK-v0")
    for name, value in {"budget": 9, "delta": 0.2, "max_pulls": 7, "pull_cost": 0.1, "actions": "arm"}.items():
        assert getattr(agent.for_task(task.replace(**{name: value})).task, name) == value


FEW = [  # of each kind, and those that are told the truth of an instance
    *[(name, "Threshold") for name in ("lsa", "ucbe", "dp-index")],
    *[("apt-oracle", "AllGood"), ("st2", "AllGood"), ("sar", "Feasible"), ("ugape", "TopK"), ("racing", "BestArm")],
]


@pytest.mark.parametrize(("name", "problem"), FEW)
def test_an_agent_made_for_other_rules_decides_as_its_name(
    name: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: an object kept what its constructor had read from a task with another budget or delta."""
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 90)
    check_other_rules(name, problem)


# --- what a class of one's own does wrong -----------------------------------------------------------------------------


def own(**methods: Any) -> type[agents.Agent]:
    """An agent that pulls the first arm, but for some methods."""

    class Odd(agents.Agent):
        name, solves = "odd", ALL_PROBLEMS

        def choose(self, observation: Any, state: Any) -> Any:
            return np.zeros(len(observation["pulls"]), np.int64)

    return type("Odd", (Odd,), {"__module__": __name__, **methods})


CHOICES: list[tuple[Any, tuple[Any, ...]]] = [  # what choose returns of n episodes, what is said of it; nothing: right
    (lambda n: None, ("arms", "(1,)", "()", None)),
    (lambda n: np.zeros(n), ("arms", "float64")),
    (lambda n: np.zeros((n, 2), int), ("arms", "(1,)", "(1, 2)")),
    (lambda n: np.zeros(n + 1, int), ("arms", "(1,)", "(2,)")),
    (lambda n: [[0], [0, 1]], ("arms", "integers")),
    (lambda n: {"arms": np.zeros(n, int)}, ("chooses", "arms")),
    (lambda n: ([0] * n, 2), ("numbers of pulls",)),
    (lambda n: ([0] * n, [1.5] * n), ("numbers of pulls", "float64")),
    (lambda n: [0] * n, ()),
    (lambda n: np.zeros(2 * n, np.int64)[::2], ()),
    (lambda n: (np.zeros(n, np.uint8), np.ones(n, np.int32)), ()),
    (lambda n: (np.zeros(n, np.int64), None), ()),
]


@pytest.mark.parametrize(("choose", "said"), CHOICES, ids=range(len(CHOICES)))
def test_what_an_agent_chooses_is_checked(choose: Any, said: tuple[Any, ...]) -> None:
    kind = own(choose=lambda self, observation, state: choose(len(observation["pulls"])))
    for actions in ("full", "arm"):
        env = gym.make(THRESHOLD, actions=actions, **TAO)
        observation, _ = env.reset(seed=0)
        agent = kind(env)
        batch = {name: value[None] for name, value in observation.items()}
        if not said:
            env.step(agent.predict(observation)[0])
            assert np.shape(agent.predict(batch)[0]["arm"] if actions == "full" else agent.predict(batch)[0]) == (1,)
        elif actions == "full" or "numbers of pulls" not in said:
            for seen in (observation, batch):
                with refused("odd", *said):
                    agent.predict(seen)
    if not said:
        assert_frame_equal(rows(evaluate(kind, at=[7, 30])), rows(evaluate(own(), at=[7, 30])), atol=0)
    else:
        with pytest.raises(ValueError, match="odd"):
            evaluate(kind, at=[7, 30])


ANSWERS: list[tuple[Any, bool]] = [  # what recommend returns of n episodes, and whether it is right
    (lambda n: np.ones((n, 10)), False),
    (lambda n: np.full((n, 10), 256), False),
    (lambda n: np.full((n, 10), -1), False),
    (lambda n: np.ones(10, np.bool_), False),
    (lambda n: np.ones((n, 9), np.bool_), False),
    (lambda n: None, False),
    (lambda n: np.ones((n, 10), np.bool_), True),
    (lambda n: [[1] * 10] * n, True),
]


@pytest.mark.parametrize(("recommend", "right"), ANSWERS, ids=range(len(ANSWERS)))
def test_what_an_agent_recommends_is_checked(recommend: Any, right: bool) -> None:
    """Defect: answers that are no masks were cut to integers."""
    kind = own(recommend=lambda self, observation, state=None, slots=None: recommend(len(slots)))
    env = gym.make(THRESHOLD, actions="full", **TAO)
    observation, _ = env.reset(seed=0)
    over = observation | {"remaining": np.zeros(1, np.int64)}
    calls: list[Any] = [
        lambda: kind(env).predict(over)[0]["answer"].all(),
        lambda: evaluate(kind).episodes["precision"].max() < 1,
        lambda: evaluate(kind, at=[7, 60]).episodes["precision"].max() < 1,
        lambda: evaluate(kind, env_kwargs=TAO | {"budget": None, "max_pulls": 20}).episodes["precision"].max() < 1,
    ]
    for call in calls:
        if right:
            assert call()
        else:
            with refused("answer", "odd", "mask"):
                call()


@pytest.mark.parametrize(
    ("index", "said", "K"),
    [
        (lambda self, T, D: None, ["None"], 10),
        (lambda self, T, D: T[:-1], ["shape"], 10),
        (lambda self, T, D: T[:-1], ["shape"], 60),
        (lambda self, T, D: D + 1j, ["numbers"], 60),
        (lambda self, T, D: np.where(T > 1, np.nan, D), ["NaN"], 60),
        (lambda self, T, D: T.astype(np.int32), None, 60),
    ],
    ids=range(6),
)
def test_the_index_of_a_class_of_ones_own_is_checked(index: Any, said: list[str] | None, K: int) -> None:
    """Kernels read it without a look: what is too short was read beyond its end, and NaN was never found in a tree."""
    odd = type("Odd", (agents.IndexPolicy,), {"__module__": __name__, "name": "odd", "index": index})
    settings = {"instance": {"sampler": {"arms": K}}, "budget": 3 * K}
    if said is None:
        assert (evaluate(odd, env_kwargs=settings).pulls["pulls"] == 3).all()
    else:
        with refused("index", "odd", *said):
            evaluate(odd, env_kwargs=settings)


def decisions(name: Any, K: int, problem: str = "Threshold", **settings: Any) -> tuple[Any, Any, Any]:
    """An agent, an observation of its task, and its state."""
    instance = {"sampler": {"arms": K}}
    env = gym.make(f"bandit_envs/{problem}-v0", instance=instance, budget=3 * K, **settings)
    agent, (observation, _) = agents.make(name, env, **({"delta": 0.1} if name == "st2" else {})), env.reset(seed=0)
    return agent, observation, agent.predict(observation)[1]


@pytest.mark.parametrize(
    ("name", "problem"),
    [("lsa", "Threshold"), ("apt", "Threshold"), ("st2", "AllGood"), ("sar", "Threshold"), ("uniform", "Threshold")],
)
def test_a_state_belongs_to_one_algorithm_and_task(name: str, problem: str) -> None:
    """Defect: kernels read beyond arrays by the state of other arms, or of another algorithm."""
    agent, observation, own_state = decisions(name, 7, problem)
    other = "opt-kg" if name == "lsa" else "lsa" if problem == "Threshold" else "uniform"
    wrong = [decisions(other, 7, problem)[2]]
    wrong += [True, 2, 0, np.int64(1), "x"] if name == "uniform" else [1, "x", [], {}, object()]
    if name != "uniform":
        wrong.append(many := decisions(name, 30, problem)[2])
        with refused("K=7", "K=30"):
            agent.predict(observation, many)
    for state in wrong:
        for again in (state, copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
            with refused("state", "None", name):
                agent.predict(observation, again)
    action, _ = agent.predict(observation, copy.deepcopy(own_state))
    for equal in (agent, pickle.loads(pickle.dumps(agent)), copy.deepcopy(agent)):
        for again in (copy.deepcopy(own_state), pickle.loads(pickle.dumps(own_state))):
            assert equal.predict(observation, again)[0] == action
    agent.for_task(dataclasses.replace(agent.task, budget=500)).predict(observation, own_state)


@pytest.mark.parametrize("name", ["uniform", "apt"])
def test_parts_that_are_not_read_may_be_missing_and_values_are_looked_at_in_every_first_call(name: str) -> None:
    env = gym.make_vec(THRESHOLD, num_envs=2, actions="full", **TAO)
    observation, agent = env.reset(seed=0)[0], agents.make(name, env)
    observation = {part: np.array(array) for part, array in observation.items()}
    seen = {part: observation[part] for part in ("pulls", "mean")}
    answer = agent.recommend(observation)
    assert (agent.recommend(seen) == answer).all()
    assert (agent.recommend({part: array[0] for part, array in seen.items()}) == answer[0]).all()
    arms, state = agent.predict(observation)  # from now on the shapes are known
    parts = {part: array for part, array in observation.items() if part != "total"}
    assert (agent.predict({**parts, "words": [[1], [1, 2]]}, state)[0]["arm"] == arms["arm"]).all()
    with refused("without total", name):
        agent.predict(parts)
    for part in observation:
        for odd in (observation[part].astype(object), observation[part].astype(bool)):
            with refused(part, "array"):
                agent.predict({**observation, part: odd})
    none = {part: array[:0] for part, array in observation.items()}
    assert agent.predict(none)[0]["answer"].shape == (0, agent.task.K)


@pytest.mark.parametrize("first", [np.nan, "x", 1j, 10**400, Fraction(1, 2), np.array(3.0)], ids=range(6))
def test_the_index_of_arms_never_pulled_is_a_number(first: Any) -> None:
    class Odd(LSA):
        name = "odd"

    env = gym.make(THRESHOLD, **TAO)
    Odd.first = True  # a number, too
    later: Any = Odd(env)
    later.first = first
    with refused("first", "odd"):
        later.predict(env.reset(seed=0)[0])
    Odd.first = first
    with refused("first", "odd"):
        Odd(env)


@episode_kernel
def out_of_range(e: int, pulls: Any, mean: Any, arm: Any) -> Any:
    return arm if pulls[e, 0] > 3 else 0


def choosing(kernel: Any, *more: Any) -> type[agents.Agent]:
    """An agent whose arms an `episode_kernel` of pulls and means chooses."""

    class Odd(agents.Agent):
        name, solves = "odd", ALL_PROBLEMS

        def choose(self, observation: Any, state: Any) -> Any:
            out = np.zeros(len(observation["pulls"]), np.int64)
            kernel(observation["pulls"], observation["mean"], *more, out)
            return out

    return Odd


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (choosing(out_of_range, 77), ["arms", "[0, 9]", 10, 77]),
        (choosing(out_of_range, -(2**40)), ["arms", "[0, 9]"]),
    ],
    ids=range(2),
)
def test_what_kernels_of_ones_own_do_wrong(kind: Any, said: list[Any]) -> None:
    env = gym.make(THRESHOLD, **TAO)
    observation, _ = env.reset(seed=0)
    agent = kind(env)

    def go_on(observation: Any, state: Any = None) -> None:
        for _ in range(30):
            arm, state = agent.predict(observation, state)
            observation, *_ = env.step(arm)

    for call in (lambda: go_on(observation), lambda: evaluate(kind)):
        with refused("odd", *said):
            call()


class Steps(LSA):
    name = "steps"

    def __init__(self, task: Any, steps: Any = ()) -> None:
        super().__init__(task)
        self.steps = list(steps)


def test_parameters_that_can_be_read_only_once_are_refused() -> None:
    env = gym.make(THRESHOLD, **TAO)

    def policy(task: Any, steps: Any = ()) -> Any:
        return Model(task)

    for once in (iter([1, 2]), (i for i in (1, 2)), map(int, "12"), zip("ab", "cd", strict=True)):
        for call in (
            lambda once: Steps(env, once),
            lambda once: Steps(env, steps=once),
            lambda once: agents.make(Steps, env, steps=once),
            lambda once: agents.make(functools.partial(Steps, steps=once), env),
            lambda once: evaluate(functools.partial(Steps, steps=once)),
            lambda once: evaluate(functools.partial(policy, steps=once)),
            lambda once: agents.make(policy, env, steps=once),
        ):
            with refused("'steps'", "once", "list"):
                call(once)
        assert len(list(once)) == 2  # nobody has read it
    for many_times in ([1, 2], (1, 2), range(1, 3), {1: 0, 2: 0}, np.array([1, 2])):
        agent = agents.make(Steps, env, steps=many_times)
        assert agent.for_task(agent.task.replace(budget=5)).steps == agent.steps == [1, 2]


class Rest(LSA):
    """Hands on by position only."""

    name = "rest"

    def __init__(self, env: Any, *rest: Any) -> None:
        super().__init__(env, *rest)


class Late(LSA):
    name = "late"

    def __init__(self, alpha: float, task: Any) -> None:
        super().__init__(task, alpha)


class Wanting(LSA):
    name = "wanting"

    def __init__(self, task: Any, level: float) -> None:
        super().__init__(task)


def test_constructors_by_which_no_agent_can_be_made_anew() -> None:
    env = gym.make(THRESHOLD, **TAO)
    task = env.unwrapped.task
    assert Rest(task).for_task(task.replace(budget=9)).alpha == LSA(task).alpha
    with refused("Rest", "name", "**keywords", error=TypeError):
        Rest(task, 2)
    for source in (task, env, gym.make_vec(THRESHOLD, 2, **TAO)):
        for call in (lambda source: Late(2, source), lambda source: Late(alpha=2, task=source)):
            with refused("Late", "task", "'alpha'", error=TypeError):
                call(source)
        with refused("late", "task", "'alpha'"):
            agents.make(Late, source, alpha=2)
        with refused("late", "task", "'task'"):
            agents.make(Late, source)
    with refused("wanting", "'level'"):
        agents.make(Wanting, env)
    assert type(agents.make(Wanting, env, level=3)) is Wanting


def fail(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("error", [KeyError("lost words"), SystemExit("enough"), ValueError("alpha")])
def test_functions_that_fail_name_the_agent(registry: Any, error: BaseException) -> None:
    agents.register("my-agent", lambda task: fail(error))
    for call in (lambda: agents.make("my-agent", gym.make(THRESHOLD)), lambda: evaluate(["lsa", "my-agent"])):
        with pytest.raises(ValueError, match=f"my-agent.*{error.args[0]}") as caught:
            call()
        assert caught.value.__cause__ is error


def test_files_that_a_function_does_not_find_are_missing() -> None:
    def absent(task: Any) -> Any:
        return open("/no/such/file")

    with pytest.raises(FileNotFoundError) as missing:
        agents.make(absent, gym.make(THRESHOLD))
    assert missing.value.__notes__ == ["It was raised by the agent 'absent'."]
