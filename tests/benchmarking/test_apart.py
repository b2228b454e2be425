"""Agents in a process of their own: the same numbers, no truth in reach, and whatever may go wrong there."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import threading
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import agents
from agents.benchmarking import apart as module
from agents.benchmarking import run
from agents.benchmarking.apart import apart
from agents.core import ALL_PROBLEMS
from agents.evaluation.identity import described, digest
from agents.registry import recipe_of
from bandit_envs import BenchmarkTask

pytest.importorskip("pandas")

BUDGET = BenchmarkTask("a", "Threshold", {"budget": 60}, 40, 3, 4, "", 0.8, 0.9, "lsa")
DELTA = BenchmarkTask("b", "Threshold", {"delta": 0.1, "max_pulls": 400}, 20, 3, 4, "", 800.0, 200.0, "evidence")
TASK = (
    BenchmarkTask("c", "BestArm", {"instance": "sampler(arms=3)", "budget": 9}, 9, 3, 4, "", 0, 1, "lsa")
    .env(actions="full")
    .unwrapped.task
)
SEEN = {name: np.zeros((1, 3), kind) for name, kind in {"pulls": int, "total": float, "variance": float}.items()}
SEEN |= {"mean": np.array([[0, 0, 1.0]]), "remaining": np.array([[9]]), "public_seed": np.array([[1]], np.uint64)}
COLUMNS = ("score", "correct", "total_pulls", "truncated")


class Fewest(agents.Agent):
    """The arm with the fewest pulls."""

    name, solves = "fewest", ALL_PROBLEMS

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)


class Bulk(Fewest):
    """Three pulls at once."""

    name = "bulk"

    def choose(self, observation: Any, state: Any) -> Any:
        return super().choose(observation, state), np.full(len(observation["pulls"]), 3)


class Turns(Fewest):
    """An arm in turn, each `step`-th time the one with the largest mean; it counts in its state."""

    name = "turns"

    def __init__(self, task: Any, step: int = 3) -> None:
        super().__init__(task)
        self.step = step

    def initial_state(self, observation: Any) -> Any:
        return {"turn": np.zeros(len(observation["pulls"]), np.int64)}

    def choose(self, observation: Any, state: Any) -> Any:
        state["turn"] += 1
        turn = state["turn"]
        return np.where(turn % self.step == 0, observation["mean"].argmax(axis=1), turn % self.task.K)

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        return self.problem.plug_in(observation["mean"][slots] + 0.01 * (state["turn"][slots, None] % 2))


class Past(Fewest):
    """It reads histories."""

    name, observation = "past", "history"

    def choose(self, observation: Any, state: Any) -> Any:
        return 7 * observation["length"][:, 0] % self.task.K


class Own:
    """An object with `predict`, whose state is another one at each call."""

    observation = "statistics"

    def predict(self, observation: Any, state: Any = None, begins: Any = None, deterministic: bool = False) -> Any:
        steps = np.where(begins, 0, 0 if state is None else state[0] + 1)
        return (observation["pulls"].argmin(axis=1) + steps) % observation["pulls"].shape[1], (steps,)


class Spy(Fewest):
    """It answers with the truth where that is in reach, else with the first arm."""

    name = "spy"

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        frame, found = sys._getframe(), [one for one in gc.get_objects() if hasattr(type(one), "true_means")]
        while frame is not None:
            found, frame = [*found, *frame.f_locals.values()], frame.f_back  # type: ignore[assignment]
        envs = [one for one in found if hasattr(type(one), "true_means")]
        truth = [one.true_means(slots) for one in envs if one.num_envs == len(observation["pulls"])]
        return self.problem.plug_in(truth[-1] if truth else np.tile(np.arange(self.task.K) == 0, (len(slots), 1)))


class Faulty(Fewest):
    """It does what the parameter says, at its fifth decision, or where it is made."""

    name = "faulty"

    def __init__(self, task: Any, how: str = "nothing") -> None:
        super().__init__(task)
        self.how, self.left = how, 5
        if how == "broken":
            raise TypeError("broken")
        if how == "refuses":
            raise ValueError("refuses")
        if how == "warns":
            warnings.warn("beware", RuntimeWarning, stacklevel=2)

    def choose(self, observation: Any, state: Any) -> Any:
        self.left -= 1
        if self.left == 0 and self.how == "boom":
            raise RuntimeError("boom")
        if self.left == 0 and self.how == "key":
            raise KeyError("key")
        if self.left == 0 and self.how == "algebra":
            raise np.linalg.LinAlgError("singular")
        if self.left == 0 and self.how == "dies":
            os._exit(7)
        if self.how == "prints":
            print("printed")
            os.write(1, b"written\n")
        if self.how == "root":
            raise ValueError(f"root {os.environ.get('MY_ROOT')} {os.environ.get('MY_FOLDER_ROOT')}")
        return super().choose(observation, state)


class Liar(Fewest):
    """It would choose its own description, and never stops to say that it plays in compiled code."""

    name = "liar"

    def description(self, alike: bool) -> str:
        return "lsa"


def by_function(task: Any) -> Any:
    return Turns(task, step=4)


def played(recipe: Any, problem: str = "BestArm", episodes: int = 30, **how: Any) -> Any:
    how = {"env_kwargs": {"budget": 40}} | how
    return agents.evaluate({"x": recipe}, problem, episodes=episodes, seed=5, progress=False, **how)


def same(agent: Any, *where: Any, **how: Any) -> Any:
    """The evaluation apart, after a comparison with that in this process."""
    here, there = (played(one, *where, **how) for one in (recipe_of(agent), apart(recipe_of(agent))))
    for name in COLUMNS:
        np.testing.assert_array_equal(here.column("x", name), there.column("x", name))
    return there


@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        (Fewest, "BestArm"),
        (Turns, "Threshold"),
        (Bulk, "Feasible"),
        (by_function, "BetterThanControl"),
        (Past, "BestArm"),
        (Own(), "Threshold"),
    ],
    ids=lambda one: one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__),
)
def test_episodes_are_the_same(agent: Any, problem: str) -> None:
    same(agent, problem)


def test_agents_with_parameters_and_a_certificate_are_the_same() -> None:
    how = {"instance": "sampler(arms=3)", "delta": 0.3, "max_pulls": 900}
    there = same(f"{__name__}:Turns(step=2, stop='certificate')", "Threshold", env_kwargs=how)
    assert not there.column("x", "truncated").all()


def test_workers_have_processes_of_their_own() -> None:
    same(Turns, episodes=40, jobs=2, batch=10)


def test_no_truth_is_in_reach() -> None:
    """In the process of the benchmark it is, so that all answers are right there."""
    here, there = (played(one, episodes=100) for one in (recipe_of(Spy), apart(recipe_of(Spy))))
    assert here.column("x", "correct").all()
    # One of 10 arms at random: binom.isf(1e-9, n=100, p=0.1) = 32.
    assert there.column("x", "correct").sum() <= 32


def test_what_comes_with_the_package_stays() -> None:
    class Compiled(agents.Algorithm):
        name, solves = "compiled", ALL_PROBLEMS

        def sample(ep, own):  # type: ignore[no-untyped-def]
            agents.pull(ep, 0)

    class Half(Compiled):
        def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
            return super().recommend(observation, state, slots)

    for agent in ("lsa", "apt(tolerance=0.05)", "uniform", "ppo", "evolved", Compiled):
        recipe = recipe_of(agent)
        assert apart(recipe) is recipe, agent
    for other in (Half, Fewest, by_function, Own(), Fewest(TASK)):
        recipe = apart(recipe_of(other))
        assert recipe.target is not other
        assert apart(recipe) is recipe


@pytest.mark.parametrize("agent", [Liar, by_function], ids=["class", "function"])
def test_an_agent_is_described_as_itself(agent: Any) -> None:
    here, there = (one.make(TASK) for one in (recipe_of(agent), apart(recipe_of(agent))))
    assert (digest(here), described(here)) == (digest(there), described(there))
    assert "lsa" not in described(there)


def test_other_parameters_are_refused() -> None:
    for carried in (lambda recipe: recipe, apart):
        with pytest.raises(ValueError, match="has no parameter 'other'; it takes none"):
            carried(replace(recipe_of(Liar), parameters={"other": 1})).make(TASK)


def test_proxies_are_copied_and_pickled() -> None:
    task = TASK
    agent = apart(recipe_of(f"{__name__}:Turns(step=1)")).make(task)
    for each in (agent, copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert repr(each) == repr(Turns(task, 1))
        action, state = each.predict(SEEN)
        assert action["arm"].tolist() == [2]
        assert each.recommend(SEEN, state, np.array([0])).tolist() == [[False, False, True]]


@pytest.fixture(scope="module")
def faulty() -> Any:
    """Evaluations of `Faulty`, all in one process."""
    recipe = apart(recipe_of(Faulty))
    return lambda how: played(replace(recipe, parameters={"how": how}), episodes=3)


@pytest.mark.parametrize(
    ("how", "kind", "text"),
    [
        ("boom", RuntimeError, "boom"),
        ("key", KeyError, "'key'"),
        ("algebra", RuntimeError, "LinAlgError: singular"),
        ("refuses", ValueError, "the agent 'faulty': refuses"),
        ("broken", ValueError, "the agent 'faulty' fails: TypeError: broken"),
    ],
)
def test_errors_come_back(faulty: Any, how: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        faulty(how)
    assert str(caught.value) == text
    if how == "boom":
        assert "in choose" in caught.value.__notes__[0]
    if how == "broken":
        assert isinstance(caught.value.__cause__, TypeError)


def test_a_process_that_has_died_stays_so() -> None:
    agent = apart(recipe_of(f"{__name__}:Faulty(how='dies')")).make(TASK)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the process of the agent '.*Faulty' has ended, with the exit code 7"):
            _ = [agent.predict(SEEN) for _ in range(5)]


def test_warnings_come_back_and_prints_go_to_standard_error(faulty: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.warns(RuntimeWarning, match="^beware$"):
        faulty("warns")
    played(apart(recipe_of(f"{__name__}:Faulty(how='prints')")), episodes=3)
    said = capfd.readouterr()
    assert "printed" in said.err
    assert "written" in said.err


def test_the_environment_names_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_ROOT", "123")
    monkeypatch.setenv("MY_FOLDER_ROOT", "/folder")
    with pytest.raises(ValueError, match="root None /folder"):
        played(apart(recipe_of(f"{__name__}:Faulty(how='root')")))


def test_what_cannot_be_pickled_is_refused() -> None:
    locked = Own()
    locked.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="the agent 'own' cannot be carried .* name it 'module:Class'"):
        apart(recipe_of(locked))


def test_objects_are_not_read() -> None:
    """A reply that would run code where it is unpickled."""
    head = b'[{}, [["x", "|O", [1]]]]'
    with pytest.raises(ValueError, match="cannot create an OBJECT array"):
        module._get(io.BytesIO(np.array([len(head), len(head) + 8]).tobytes() + head + bytes(8)))


def test_a_process_ends_with_its_agent() -> None:
    recipe = apart(recipe_of(Own()))
    process = recipe.target.child.process
    assert process.poll() is None
    del recipe
    gc.collect()
    assert process.poll() == 0


class Counting:
    """Its action is the number of states that there are."""

    observation, there = "statistics", 0

    def __init__(self) -> None:
        type(self).there += 1

    def __del__(self) -> None:
        type(self).there -= 1

    def predict(self, observation: Any, state: Any = None, begins: Any = None, deterministic: bool = False) -> Any:
        made = type(self)()
        return np.full(len(observation["pulls"]), self.there), made


def test_states_are_dropped() -> None:
    """The process holds a state and the next one."""
    agent = apart(recipe_of(Counting())).target
    seen, state = {"pulls": np.zeros((2, 3), np.int64)}, None
    for _ in range(9):
        action, state = agent.predict(seen, state, np.zeros(2, np.bool_))
    assert action.tolist() == [2, 2]


SCRIPT = """
import agents, gymnasium as gym
from agents.benchmarking.apart import apart
from agents.evaluation.identity import digest
from agents.registry import recipe_of

class Mine(agents.Agent):
    name, solves = "mine", ("BestArm",)
    def choose(self, observation, state):
        return helper(observation)

def helper(observation):
    return observation["pulls"].argmin(axis=1)

recipe, task = recipe_of(Mine), gym.make("bandit_envs/BestArm-v0", budget=30).unwrapped.task
assert digest(apart(recipe).make(task)) == digest(recipe.make(task))
print(agents.evaluate({"x": apart(recipe)}, "BestArm", episodes=5, env_kwargs={"budget": 30}).runs[0].episodes)
"""


def test_classes_of_a_script(tmp_path: Any) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("5\n", "")


@pytest.mark.parametrize("agent", [Turns, Bulk, Own()], ids=["arms", "bulk", "policy"])
def test_a_benchmark_is_the_same(agent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for carried in (lambda recipe: recipe, apart):
        with monkeypatch.context() as patch:
            patch.setattr(run, "benchmark_tasks", lambda name: (BUDGET, DELTA))
            patch.setattr(run, "apart", carried)
            found.append(agents.benchmark({"mine": agent}).table.drop(columns=["seconds_a_pull", "note"]))
    assert found[0].equals(found[1])
    assert found[0]["value"].notna().any()


class Forger(Fewest):
    """Certifies all answers, in its own process."""

    stops = True

    def choose(self, observation: Any, state: Any) -> Any:
        from agents.core import certified

        vars(certified)["is_certified"] = lambda *given: True
        certified._resolve.quick = lambda books, spent, rule, chosen, out: out.arms.fill(self.task.K)
        return np.full(len(observation["pulls"]), self.task.stop)


def test_certificates_are_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that forges them where it plays has the pulls of `uniform`, whose arms come in turn too."""
    monkeypatch.setattr(run, "benchmark_tasks", lambda name: (DELTA,))
    forged, uniform = (cell for [cell] in agents.benchmark({"forger": Forger, "u": "uniform"}).cells.values())
    assert forged.values.tolist() == uniform.values.tolist()
    assert forged.own.pulls == 0


def test_busy_processes_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=-1, stdout=-1)
    assert module._end(busy) == "the exit code -9"
