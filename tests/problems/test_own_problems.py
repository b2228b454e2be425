"""Problems, distributions and instances of users: registered, named by their module, or in an installed package."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from environments import agree, twins
from refusals import refused

import agents
from bandit_envs import (
    ENVIRONMENTS,
    INSTANCES,
    PROBLEMS,
    Arms,
    Bernoulli,
    Gaussian,
    Instance,
    Problem,
    PureExplorationEnv,
    Sampler,
    SetProblem,
    Task,
    Threshold,
    register_instance,
    register_problem,
)
from bandit_envs.kernels import carray
from bandit_envs.problems import Measure
from bandit_envs.testing import check_problem

HERE = __name__  # this module's name, for "module:name"


class Apart(SetProblem):
    """Arms whose mean is at least epsilon away from the threshold."""

    name, asks = "Apart", "all arms far from a threshold"
    parameters = {
        "threshold": "Where arms are unwanted.",
        "epsilon": "How far from it they must be.",
        "tolerance": "Arms nearer to the boundary may be answered either way.",
    }
    local = True

    def __init__(self, threshold: float = 0.5, epsilon: float = 0.2, tolerance: float = 0.0) -> None:
        self.threshold, self.epsilon, self.tolerance = threshold, epsilon, tolerance

    def margin(self, means: Any) -> Any:
        return np.abs(np.asarray(means) - self.threshold) - self.epsilon


class Unregistered(Apart):
    name = "Unregistered"


class Loudest(Problem):
    """The arm whose mean is farthest from the origin: answers of one arm, arms in the plane, metrics of its own."""

    name, parameters = "Loudest", {"power": "Of the coordinates."}
    metric_types = {"missed": np.int64, "loss": np.float64}
    defaults = {"budget": 50}
    sampler = {"sampler": {"distribution": "gaussian", "arms": 4, "dimensions": 2}}
    answer_size = 1

    def __init__(self, power: int = 2) -> None:
        self.power = power

    def check(self, task: Task, source: Any = None) -> None:
        if task.D != 2:
            raise ValueError(f"Loudest needs arms of 2 dimensions, got {task.D}")

    def loudness(self, means: Any) -> Any:
        return (np.abs(means) ** self.power).sum(axis=-1)

    def margin(self, means: Any) -> Any:
        x = self.loudness(np.asarray(means, float))
        best = np.sort(np.nan_to_num(x, nan=-np.inf), axis=-1)
        with np.errstate(invalid="ignore"):
            return np.where(x == best[..., -1:], x - best[..., -2:-1], x - best[..., -1:])

    def plug_in(self, means: Any) -> Any:
        x = np.nan_to_num(self.loudness(np.asarray(means, float)), nan=-np.inf)
        return np.arange(x.shape[-1]) == x.argmax(axis=-1)[..., None]

    def truth(self, means: Any) -> Any:
        return self.loudness(np.asarray(means, float))

    def verdict(self, answer: Any, truth: Any) -> dict[str, Any]:
        loss = truth.max(axis=-1) - (np.asarray(answer) * truth).sum(axis=-1)
        return {"correct": loss == 0, "score": 1 / (1 + loss), "missed": (loss > 0).astype(np.int64), "loss": loss}


@pytest.fixture
def registered() -> None:
    """The classes above are registered."""
    for kind in (Apart, Loudest):
        assert register_problem(kind) is kind


OWN = pytest.mark.parametrize(("problem", "own"), [("Apart", {"epsilon": 0.1, "threshold": 0.4}), ("Loudest", {})])


@OWN
def test_the_environments_of_a_problem_of_ones_own(registered: None, problem: str, own: dict[str, Any]) -> None:
    """They pass the kit; in all forms, slots are bit for bit single environments."""
    check_problem(problem, **own)
    for form in ({"actions": "full"}, {"observation": "features"}, {"pull_cost": 0.01, "reward": "correct"}):
        assert agree(*twins(problem, 3, budget=20, **form, **own), 25)[0] >= 3


def test_declarations_are_used(registered: None) -> None:
    env = gym.make("bandit_envs/Loudest-v0", actions="full").unwrapped
    assert (env.task.K, env.task.D, env.task.budget, env.task.distribution) == (4, 2, 50, "gaussian")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="an answer of Loudest holds 1 arms, got 2"):
        env.step({"arm": 4, "times": 1, "answer": [1, 1, 0, 0]})
    with pytest.raises(ValueError, match="Loudest needs arms of 2 dimensions, got 1"):
        gym.make("bandit_envs/Loudest-v0", instance="sampler")
    with pytest.raises(ValueError, match="Loudest needs arms of 2 dimensions, got 3"):
        Task("Loudest", {}, K=4, D=3)
    with pytest.raises(
        TypeError, match="Apart got an unexpected keyword argument 'k'; it takes threshold, epsilon, tolerance"
    ):
        gym.make("bandit_envs/Apart-v0", k=3)
    apart = Apart()
    means = np.array([[0.5, 0.75], [0.625, 0.0]])
    assert apart.hardness(means[0])["H"] == pytest.approx(0.2**-2 + 0.05**-2)
    assert apart.distances(np.array([[1, 1], [0, 1]]), means) == pytest.approx(np.array([[-0.2, 0.05], [0, 0]]))
    assert apart.arm_margin(0.75) == pytest.approx(0.05)
    assert np.isnan(apart.lower_bound(means[0], 0.1))


def test_a_task_keeps_the_class_that_it_was_made_with(registered: None) -> None:
    """Defect: an agent made for an environment of a class that was replaced later answered by the new class."""

    class Above(SetProblem):
        name, local = "Side", True
        metric_types = {**SetProblem.metric_types, "first": np.float64}

        def margin(self, means: Any) -> Any:
            return np.asarray(means) - 0.5

        def verdict(self, answer: Any, truth: Any) -> Any:
            return super().verdict(answer, truth) | {"first": np.ones(answer.shape[:-1])}

    class Below(SetProblem):
        name = "Side"

        def margin(self, means: Any) -> Any:
            return 0.5 - np.asarray(means)

    register_problem(Above)
    env = gym.make(
        "bandit_envs/Side-v0", actions="full", budget=30, instance={"distribution": "bernoulli", "mean": [0, 1, 1]}
    )
    task = env.unwrapped.task  # type: ignore[attr-defined]
    before = agents.make("lsa", env)
    register_problem(Below)
    assert type(PROBLEMS.find("Side")().plug_in([0.9]).tolist()) is list
    for same_class in (task, task.replace(budget=9), copy.copy(task), copy.deepcopy(task), Task(task.problem, {}, K=3)):
        assert type(same_class.make_problem()) is Above
        agents.make("lsa", same_class)  # Below is not local
    for agent in (before, agents.make("lsa", env), before.for_task(task.replace(budget=20))):
        env.reset(seed=0)
        observation, over = env.reset(seed=0)[0], False
        while not over:
            observation, _, over, _, info = env.step(agent.predict(observation)[0])
        assert info["correct"]
        assert info["answer"].tolist() == [0, 1, 1]
    assert task == Task.from_json(task.to_json())
    assert hash(task.problem) == hash("Side")
    assert repr(task.problem) == "'Side'"
    again = pickle.loads(pickle.dumps(task))
    assert again == task
    assert type(again.problem) is str
    assert type(again.make_problem()) is type(Task.from_json(task.to_json()).make_problem()) is Below


def test_a_class_is_named_by_its_module() -> None:
    text = f"{HERE}:Unregistered"
    env = PureExplorationEnv(text, epsilon=0.1, budget=7)
    assert type(env.problem) is Unregistered
    assert env.task.problem == text
    assert Task.from_json(env.task.to_json(), trust=True).make_problem() == env.problem
    assert env.task == Task(text, {"epsilon": 0.1}, K=10, budget=7, actions="arm")
    result = agents.make("uniform", env).predict(env.reset(seed=0)[0])
    assert result[0] == 0  # agents that solve all problems solve it
    assert agents.make("lsa", env).task is env.task  # and those that solve problems of its kind
    with pytest.raises(ValueError, match="st2 solves AllGood, not "):
        agents.make("st2", env, delta=0.1)
    with pytest.raises(ValueError, match=f"'{HERE}:Missing' cannot be imported"):
        PureExplorationEnv(f"{HERE}:Missing")
    with pytest.raises(ValueError, match="'math:pi' must be a subclass of bandit_envs.Problem, got 3.14"):
        Task("math:pi", {}, K=3)


# --- what a problem tells is checked ----------------------------------------------------------------------------------


def odd(**changes: Any) -> type[SetProblem]:
    """A problem, registered, that goes wrong in one way."""

    class Odd(SetProblem):
        name = "Odd"
        metric_types = changes.get("metric_types", SetProblem.metric_types)

        def margin(self, means: Any) -> Any:
            return np.asarray(means) - 0.5

    for attribute, value in changes.items():
        setattr(Odd, attribute, value)
    return register_problem(Odd)  # type: ignore[return-value]


def verdict_with(**parts: Any) -> Any:
    """A verdict that is right, but for some parts: functions of the number of answers; None: left out."""

    def verdict(self: Any, answer: Any, truth: Any) -> Any:
        found = SetProblem.verdict(self, answer, truth) | {
            name: None if make is None else make(len(answer)) for name, make in parts.items()
        }
        return {name: value for name, value in found.items() if value is not None}

    return verdict


ODD_PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"margin": lambda self, m: np.asarray(m) * np.nan}, "margin .* must be a number for every true mean, got NaN"),
    ({"truth": lambda self, m: np.asarray(m) * np.nan}, "truth .* must be a number for every true mean, got NaN"),
    ({"margin": lambda self, m: np.asarray(m).sum(axis=-1)}, r"margin .* numbers of shape \(., .*got shape \(.,\)"),
    ({"margin": lambda self, m: None}, "margin .* must be an array of numbers of shape .*got None"),
    ({"margin": lambda self, m: {}["mean"]}, "margin .* fails: KeyError: 'mean'"),
    ({"truth": lambda self, m: np.asarray(m)[..., 1:]}, "truth .* numbers of shape"),
    ({"arm_margin": lambda self, x: np.zeros(2), "local": True}, "arm_margin .* numbers of shape"),
    ({"plug_in": lambda self, m: self.margin(m)}, "plug_in .* must be a mask of 0 and 1 of shape"),
    ({"answer_size": 2}, "plug_in .* must answer 2 arms, got"),
    ({"verdict": verdict_with(score=None)}, "verdict .* must be a dict of correct, score, .* without score"),
    ({"verdict": lambda self, answer, truth: None}, "verdict .* must be a dict of correct, score, .*got None"),
    ({"verdict": verdict_with(score=lambda n: 1.0)}, r"'score' in the verdict .* shape \(.,\), got 1.0"),
    ({"verdict": verdict_with(score=lambda n: np.full(n, np.nan))}, "'score' in the verdict .* finite, got nan"),
    ({"verdict": verdict_with(score=lambda n: np.full(n, "1"))}, "'score' in the verdict .* must be float64"),
    ({"verdict": verdict_with(correct=lambda n: np.ones(n))}, "'correct' in the verdict .* must be bool, got float64"),
    ({"verdict": verdict_with(misclassified=lambda n: np.zeros(n))}, "'misclassified' .* must be int64, got float64"),
    ({"metric_types": {"regret": np.float64}}, "verdict .* without regret"),
    ({"margin": lambda self, m: np.asarray(m) >= 0.5}, "margin .* must be an array of numbers of shape"),
    ({"tolerance": np.nan}, "tolerance of .* must be a number in .*got nan"),
    ({"boundary": "0.5"}, "boundary of .* must be a number in .*got '0.5'"),
    ({"answer_size": 2.5}, "the problem 'Odd'.*2.5"),
    ({"check": lambda self, task, source=None: {}["K"]}, "check of .* fails: KeyError: 'K'"),
    ({"lower_bound": lambda self, means, delta: 1 / 0}, "lower_bound of .* fails: ZeroDivisionError"),
    ({"lower_bound": lambda self, means, delta: None}, "lower_bound of .* must be a number, or NaN, got None"),
    ({"local": True, "margin": lambda self, m: m - 0.9 * np.nanmax(m, axis=-1, keepdims=True)}, "not say local = True"),
    ({"local": True, "arm_margin": lambda self, x: np.asarray(x) - 0.4}, "not say local = True"),
    ({"__init__": lambda self: {}["parameter"]}, "the problem 'Odd' fails: KeyError: 'parameter'"),
    ({"certificate_names": ("sure",), "certificate": lambda self, *seen, width: {}}, "certificate .* without sure"),
]


@pytest.mark.parametrize(("changes", "said"), ODD_PROBLEMS, ids=range(len(ODD_PROBLEMS)))
def test_an_error_names_the_problem(changes: dict[str, Any], said: str) -> None:
    """Where the environment is made, whatever the instance."""
    odd(**changes)
    many = lambda env_id, **settings: gym.make_vec(env_id, 2, **settings)
    for make, instance in ((gym.make, None), (many, {"distribution": "bernoulli", "mean": [0.1, 0.6]})):
        with pytest.raises(ValueError, match=said) as caught:
            make("bandit_envs/Odd-v0", instance=instance)
        assert "the problem 'Odd'" in str(caught.value)
        assert "KeyError" not in said or isinstance(caught.value.__cause__, KeyError)


def test_a_certificate_of_ones_own_is_not_told_the_options_of_others() -> None:
    sure = {"certificate_names": ("sure",), "certificate": lambda self, *seen, width: {"sure": seen[0].sum(axis=-1)}}
    odd(**sure)
    two = {"distribution": "bernoulli", "mean": [0.1, 0.6]}
    envs: Any = gym.make_vec("bandit_envs/Odd-v0", 2, instance=two).unwrapped
    envs.reset(seed=0)
    assert envs.certify(np.arange(2), bounds="hoeffding")["sure"].tolist() == [0, 0]
    ours: Any = gym.make_vec("bandit_envs/TopK-v0", 2, instance=two, k=1).unwrapped
    with pytest.raises(ValueError, match="bounds must be one of"):
        ours.certify(np.arange(2), bounds="narrow")


def test_our_own_problems_are_asked_no_more_than_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bandit_envs.problems.own.try_out", None)
    gym.make("bandit_envs/Threshold-v0")
    odd()
    with pytest.raises(TypeError):
        gym.make("bandit_envs/Odd-v0")


class Weighted(SetProblem):
    """Parameters that are arrays."""

    name, parameters = "Weighted", {"weights": "Of the arms.", "more": "Anything."}

    def __init__(self, weights: Any = (1.0, 1.0, 1.0), more: Any = None) -> None:
        self.weights, self.more = np.asarray(weights, np.float64), more

    def margin(self, means: Any) -> Any:
        return np.asarray(means) * self.weights - 0.5


def test_parameters_that_are_arrays_have_a_json_form() -> None:
    register_problem(Weighted)
    three, more = {"sampler": {"arms": 3}}, {"of": (np.float64(0.5), [np.arange(2)]), "number": np.int64(3)}
    given = {"instance": three, "weights": np.array([0.5, 1.0, 2.0]), "more": more, "budget": 6}
    one, other = (gym.make("bandit_envs/Weighted-v0", **given).unwrapped for _ in range(2))
    assert one.task == other.task
    assert one.task.parameters == {"weights": [0.5, 1.0, 2.0], "more": {"of": (0.5, [[0, 1]]), "number": 3}}
    assert one.problem == other.problem
    plain = one.task.replace(parameters={"weights": np.array([0.5, 1.0, 2.0])})
    assert Task.from_json(plain.to_json()) == plain
    agent = agents.make("uniform", one)
    assert agent.for_task(other.task) is agent
    assert agent.for_task(other.task.replace(budget=9)).task.budget == 9
    for value, shown in (({1, 2}, r"\{1, 2\}"), (object(), "<object"), (1j, "1j")):
        with pytest.raises(
            TypeError, match=f"parameter 'more' of the problem 'Weighted' has no JSON form, got {shown}"
        ):
            one.task.replace(parameters={"more": value}).to_json()


def test_a_problem_of_another_version_has_one_environment() -> None:
    """Defect: the environment of the old version was there still, and made the new problem."""
    register_problem(Weighted)

    class Second(Weighted):
        version = 2

    for _ in range(2):
        register_problem(Second)
        assert type(gym.make("bandit_envs/Weighted-v2", instance={"sampler": {"arms": 3}}).unwrapped.problem) is Second
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(gym.error.DeprecatedEnv, match="v0 for .*Weighted. is deprecated"):
                gym.make("bandit_envs/Weighted-v0")
    for _ in range(2):
        register_problem(Weighted)
        ids = [name for name in gym.registry if "Weighted" in name]
        assert ids == ["bandit_envs/Weighted-v0", "bandit_envs/Weighted-learn-v0"]
    assert ENVIRONMENTS["Weighted"].id == "bandit_envs/Weighted-v0"


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_a_task_fills_in_the_parameters_that_are_left_out() -> None:
    task = Task("Threshold", {"threshold": np.float64(0.25)}, K=np.int64(5), budget=np.int64(7), sigma=1)  # type: ignore[arg-type]
    assert task.parameters == {"threshold": 0.25, "tolerance": 0.0}
    assert [type(x) for x in (task.K, task.budget, task.sigma)] == [int, int, float]
    assert Task.from_json(task.to_json()) == task


# --- instances --------------------------------------------------------------------------------------------------------


def steps(n: int = 4, low: float = 0.2) -> Instance:
    """Means in steps up to .8."""
    return Instance(Bernoulli(np.linspace(low, 0.8, n)), f"steps({n})", {"Threshold": {"threshold": 0.3, "budget": 11}})


def arms_alone(n: int = 3) -> Arms:
    return Gaussian(np.arange(n))


def form(distribution: str = "gaussian") -> dict[str, Any]:
    return {"distribution": distribution, "mean": [0.1, 0.9]}


def test_instances_of_ones_own(registered: None) -> None:
    register_instance("steps", steps, problem="Threshold", source="made up")
    register_instance("arms-alone", arms_alone)
    assert (INSTANCES["steps"].problem, INSTANCES["steps"].source) == ("Threshold", "made up")
    T = "bandit_envs/Threshold-v0"
    for instance, K, name in (
        ("steps", 4, "steps(4)"),
        ("steps(n=7, low=0.1)", 7, "steps(7)"),
        ({"steps": {"n": 3}}, 3, "steps(3)"),
        (f"{HERE}:steps(n=5)", 5, "steps(5)"),
        ({f"{HERE}:steps": {}}, 4, "steps(4)"),
        (steps, 4, "steps(4)"),
        ("arms-alone(n=6)", 6, "arms-alone"),
        (arms_alone, 3, "arms_alone"),
        (lambda: {"distribution": "bernoulli", "mean": [0.2, 0.3, 0.4]}, 3, "<lambda>"),
        (form, 2, "form"),
        (Sampler, 10, "sampler"),
        (f"{HERE}:form(distribution='bernoulli')", 2, f"{HERE}:form"),
    ):
        for env in (gym.make(T, instance=instance), gym.make_vec(T, 2, instance=instance)):
            inside = env.unwrapped
            assert (inside.task.K, inside.setting.source.name) == (K, name)
            assert inside.problem.threshold == (0.3 if "steps" in name else 0.5)
            env.reset(seed=0)
    assert gym.make(T, instance="steps").unwrapped.task.budget == 11
    spec = gym.make(T, instance={"steps": {"n": 3}}).spec
    assert gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json())).unwrapped.task.K == 3


def test_instances_that_are_made_of_themselves_or_of_files_that_are_not_there() -> None:
    register_instance("down", lambda n=5: {"down": {"n": n - 1}} if n > 2 else Bernoulli(np.full(n, 0.3)))
    register_instance("absent", lambda: open("/no/such/file"))  # noqa: SIM115
    with pytest.raises(FileNotFoundError) as missing:
        gym.make("bandit_envs/Threshold-v0", instance="absent")
    assert "'absent'" in missing.value.__notes__[0]
    assert gym.make("bandit_envs/Threshold-v0", instance="down").unwrapped.task.K == 2


class Crooked(Sampler):
    """Draws means of a wrong form."""

    name = "crooked"

    def __init__(self, how: str) -> None:
        super().__init__(arms=4)
        self.how = how

    def draw(self, key: Any, episode: Any) -> Any:
        means, table = super().draw(key, episode)
        return {"short": means[:, 1:], "nan": means * np.nan, "right": means}[self.how], table


@pytest.mark.parametrize(("how", "said"), [("short", r"shape \(1, 4\), got shape \(1, 3\)"), ("nan", "finite")])
def test_the_means_that_a_sampler_of_ones_own_draws_are_checked(how: str, said: str) -> None:
    gym.make("bandit_envs/Threshold-v0", instance=Crooked("right")).reset(seed=0)
    env = gym.make("bandit_envs/Threshold-v0", instance=Crooked(how))
    with pytest.raises(ValueError, match=f"means that the sampler 'crooked' .* must be .*{said}"):
        env.reset(seed=0)


class Keyless(Gaussian):
    distribution = "keyless"

    def __init__(self, mean: Any) -> None:
        super().__init__({}["mean"])


class Refusing(Gaussian):
    distribution = "refusing"

    def __init__(self, mean: Any) -> None:
        raise ValueError("too few")


@pytest.mark.parametrize(
    ("name", "said"), [("Keyless", "'{}:Keyless' fails: KeyError: 'mean'"), ("Refusing", "'{}:Refusing': too few")]
)
def test_a_distribution_of_ones_own_that_fails_is_named(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"the distribution {said.format(HERE)}"):
        gym.make("bandit_envs/Threshold-v0", instance={"distribution": f"{HERE}:{name}", "mean": 1})


# --- installed packages: what an entry point may name; tests/package/test_stranger.py installs one -------------------


class Versioned(Apart):
    name, version = "Versioned", 3


def test_what_entry_points_name_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"Other": "Apart", "Versioned": "Versioned", "nothing": "HERE", "absent": "Absent", "Apart": "Apart"}
    monkeypatch.setitem(vars(PROBLEMS), "installed", {name: f"{HERE}:{one}" for name, one in points.items()})
    assert PROBLEMS["Apart"] is Apart
    assert register_problem(Apart) is Apart  # what the entry point names already
    for name, words in {"Other": ["'Other'", "'Apart'"], "Versioned": ["version", 0], "nothing": ["'nothing'"]}.items():
        with refused(*words):
            PROBLEMS.find(name)
    with refused(f"{HERE}:Absent"):
        PROBLEMS.find("absent")
    with refused("'Apart'", f"{HERE}:Apart"):
        register_problem(type("Apart", (Apart,), {"__module__": "elsewhere"}))


# --- what a problem tells compiled code ------------------------------------------------------------------------------


def half_routine(pulls: Any, mean: Any, K: Any, numbers: Any, out: Any) -> None:
    m, told = carray(mean, K), carray(out, K)
    for k in range(K):
        told[k] = abs(m[k] - 0.5)


def right_routine(pulls: Any, mean: Any, K: Any, numbers: Any, out: Any) -> None:
    m, told = carray(mean, K), carray(out, K)
    for k in range(K):
        told[k] = abs(m[k] - 0.5) - carray(numbers, 1)[0]


class Outside(SetProblem):
    name, local, parameters, routine = "Outside", True, {}, right_routine

    def margin(self, means: Any) -> Any:
        return np.abs(np.asarray(means, np.float64) - 0.5) - 0.1

    def distance_routine(self) -> Measure:
        return Measure.of(type(self).routine, 0.1)


class WrongOutside(Outside):
    name, routine = "WrongOutside", half_routine


class Shifted(Threshold):
    name = "Shifted"

    def margin(self, means: Any) -> Any:
        return np.asarray(means, np.float64) - 0.25


def test_routines_and_boundaries_are_compared_with_margins() -> None:
    rules: dict[str, Any] = {"instance": "sampler(arms=6)", "budget": 40}
    assert agents.make("apt", PureExplorationEnv(f"{HERE}:Outside", **rules)).plays
    with pytest.raises(ValueError, match="'WrongOutside' must have a distance_routine that gives what arm_margin does"):
        PureExplorationEnv(f"{HERE}:WrongOutside", **rules)
    with pytest.raises(ValueError, match="'Shifted' has boundary = 0.5, from which margins must count"):
        PureExplorationEnv(f"{HERE}:Shifted", **rules)
