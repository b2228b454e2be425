"""Sessions at length: every agent on every problem, random moves of persons, raters that are killed.

    PYTHONPATH=tests/support python tests/campaigns/sessions.py     30,000 random sessions, a hundred kills

A session of a simulated episode makes the pulls of that episode. A random one plays questions in batches, results late,
unasked, and in blocks as of a table, undoings, arms that come and go, and books that are opened again. Whenever nothing
waits and the session is not over, there is something to ask for; and what the session has come to is what its results
alone, one by one and never asked for, come to.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import pandas as pd
from disks import Listed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agents
from agents.core.closed import ClosedState
from agents.session.fold import State, fold
from agents.session.log import ASKED, TOLD, UNDONE, Event
from agents.session.setup import Setup

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
    "BetterThanControl": {"budget": 60},
}
LONGER = {"east": 850, "st2": 850}  # they end by themselves before
# See test_session_tables.
OF_TABLES = {"paired-elimination", "sysrs", "ucb-e", "ucb-e-lrf", "agentopt-elimination", "agentopt-lucb"}
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


def check_replay(name: str, problem: str) -> None:
    """A session makes the pulls of a simulated episode, and comes to its answer."""
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


# Several who ask and tell for ever; after each call they write a line that says what was returned, or told.
RATER = """
import os
import sys
import agents

journal = next((one for one in sys.argv[3:] if not os.fork()), sys.argv[2])
session, who = agents.Session(store=sys.argv[1]), f"rater {journal}"
while True:
    asks = session.ask(1, who=who) or [ask for ask in session.pending if ask.who == who]
    for ask in asks[:1]:
        arm = ask.arm
        with open(journal, "a") as file:
            file.write(f"asked {arm}\\n")
        value = ((arm + 1) * 7919 + len(session)) % 1000 / 1000
        session.tell(ask, value, who=who)
        with open(journal, "a") as file:
            file.write(f"told {arm} {value}\\n")
"""


def killed(tmp_path: Path, store: Any, kills: int, workers: int, name: str = "lsa") -> None:
    """Let raters work, kill them at random, and look whether what they were told was kept, and asked once."""
    facts = {**FACTS, "budget": 100_000, "arms": 5}
    with agents.Session(name, facts, store=store) as session:
        notes = Notes(session._setup)
    generator, journals, done = np.random.default_rng(0), list[Path](), 0
    while done < kills:
        new = [tmp_path / f"journal-{done}-{worker}" for worker in range(workers)]
        command = [sys.executable, "-c", RATER, *map(str, (store, *new))]
        process, patience = subprocess.Popen(command, start_new_session=True), time.monotonic() + 600
        for journal in new:
            lines = generator.integers(3, 80)
            while not journal.is_file() or journal.read_text().count("\n") < lines:
                assert process.poll() is None
                assert time.monotonic() < patience
                time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        journals, done = journals + new, done + workers
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


LIKELY = ["ask", "ask", "ask", "tell", "tell", "tell", "late", "table", "undo", "undo ask", "add", "withdraw", "reopen"]
SHORT = {"dp-index": "dp-index(horizon=200)"}  # the table of the longest horizon takes seconds
PAIRS = [(SHORT.get(name, name), problem) for name, problem in ALL if name not in ("ppo", "evolved")]
MOST = 150  # results of a session


def facts_of(problem: str, delta: float | None) -> dict[str, Any]:
    rules = {name: value for name, value in RULES[problem].items() if name not in ("budget", "delta")}
    threshold = {"threshold": 0.5} if problem == "Threshold" else {}
    ends = {"delta": delta, "max_pulls": MOST} if delta is not None else {"budget": MOST}
    return {"problem": problem, "arms": 4, "binary": True, **threshold, **rules, **ends}


def session_of(
    name: str, problem: str, store: Any, with_delta: bool, reserve: float = 0.0, order: str = "asked"
) -> Any:
    """A session of the agent, with a delta or a budget, whichever it takes; None where it needs the truth."""
    for delta in (0.3, None) if with_delta else (None, 0.3):
        try:
            facts = facts_of(problem, delta) | {"reserve": reserve}
            return agents.Session(name, facts, store=store, public_seed=7, order=order)
        except ValueError as error:
            if "known only for a fixed instance" in str(error):
                return None
            if "delta" not in str(error) and "budget" not in str(error):
                raise
    raise AssertionError(f"{name} takes neither a budget nor a delta")


def value_of(generator: np.random.Generator, arm: int) -> int:
    return int(generator.random() < (0.95, 0.05, 0.9, 0.1)[arm % 4])


def move(session: Any, kind: str, generator: np.random.Generator) -> None:
    """One thing that a person may do."""
    active, pending = session.active.tolist(), session.pending
    if kind == "ask":
        session.ask(int(generator.choice([1, 1, 2, 5, 20])), who=str(generator.choice(["ann", "bob"])))
    elif kind == "tell" and pending:
        for ask in pending[: int(generator.integers(1, 21))]:
            session.tell(ask, value_of(generator, ask.arm), who=ask.who)
    elif kind == "late" and pending:
        ask = pending[int(generator.integers(len(pending)))]
        session.tell(ask, value_of(generator, ask.arm))
    elif kind == "table" and not session.done and session.remaining and not pending:
        rows = min(session.remaining, int(generator.integers(1, 40)))
        arms = generator.choice(active, rows).tolist()
        found = [(arm, value_of(generator, arm)) for arm in arms]
        if generator.random() < 0.5:
            names = [session.names[arm] for arm, _ in found]
            table = pd.DataFrame({"name": names, "value": [value for _, value in found]})
            session.tell_table(table, again=True)
        else:
            session.tell_all(found)
    elif kind == "undo" and len(session):
        with session._now() as state:
            events = [event.number for event in state.told if event.number not in state.undone]
        session.undo(events[-int(generator.integers(1, min(len(events), 6) + 1))])
    elif kind == "undo ask" and pending:
        session.undo(pending[int(generator.integers(len(pending)))].number)
    elif kind == "add" and not session.done and len(active) < 6:
        session.add_arm()
    elif kind == "withdraw" and not session.done and len(active) > 3:
        session.withdraw_arm(int(generator.choice(active)))


OF_RUN = ("seen", "told", "fresh", "arm", "left", "over", "answer", "final", "bank", "ahead", "course", "state")


def plain(one: Any) -> Any:
    """The same with the bytes of arrays, wherever they are."""
    if isinstance(one, np.ndarray):
        return str(one.dtype), one.shape, one.tobytes()
    if isinstance(one, Mapping):
        return {name: plain(part) for name, part in one.items()}
    if isinstance(one, (list, tuple)):
        return [plain(part) for part in one]
    if isinstance(one, ClosedState):
        return plain({**one.__getstate__(), "_made_by": None})
    return plain(vars(one)) if dataclasses.is_dataclass(one) else one


def all_of(state: Any) -> Any:
    """All that a state of a session has come to."""
    run = {name: plain(getattr(state.run, name)) for name in OF_RUN}
    return run, plain(state.statistics), state.asks, state.lines, state.resets[-1], state.upto, state.sum, state.mark()


def check(session: Any) -> None:
    """Something follows; and what the session has come to is what its results alone come to."""
    with session._now() as state:
        if not state.run.over and not state.asks:
            assert len(state.wanted(1)) == 1, "a session that is not over, and waits for nothing, asks for nothing"
            assert state.remaining is None or state.remaining > 0
    events = list(state.events.values())
    given_back = asks_of(events)
    kept = [one for one in events if one.kind != ASKED and not (one.kind == UNDONE and one.about in given_back)]
    alone = fold(session._setup, [one._replace(about=None) if one.kind == TOLD else one for one in kept])
    folded = session._folded()
    assert all_of(folded) == all_of(fold(session._setup, events)) == all_of(state)  # by all decisions, too
    assert (folded.wanted(2), folded.asks, folded.events) == (state.wanted(2), state.asks, state.events)
    others = [folded] + [alone] * (session._setup.order == "arrival")  # else they come in another order
    for other in others:
        assert other.run.over == state.run.over
        assert other.answer().tolist() == state.answer().tolist()
        assert other.run.seen.total.tolist() == state.run.seen.total.tolist()
        assert (other.run.arm, other.run.told) == (state.run.arm, state.run.told)
        assert not state.run.over or other.certificate == state.certificate


def asks_of(events: list[Event]) -> set[int]:
    """The questions that were given back, of which results alone know nothing."""
    kinds = {event.number: event.kind for event in events}
    return {int(event.about or 0) for event in events if event.kind == UNDONE and kinds[event.about] == ASKED}


def play(name: str, problem: str, moves: list[str], seed: int, place: Path | None, with_delta: bool) -> None:
    generator = np.random.default_rng(seed)
    reserve, order = float(generator.choice([0.0, 0.3])), str(generator.choice(["asked", "arrival"]))
    session = session_of(name, problem, place or "sqlite://", with_delta, reserve, order)
    if session is None:
        return
    for turn, kind in enumerate(moves):
        if kind == "reopen":
            session._state = session._folded()
            if place is not None:
                session = agents.Session(store=place)  # the other goes on, in its own time
        move(session, kind, generator)
        if turn % 8 == 7:
            check(session)
    for _ in range(4 * MOST):
        if session.done:
            break
        if not session.ask(int(generator.choice([1, 7]))):
            assert session.pending
        move(session, "tell", generator)
    assert session.done, f"{name} on {problem} has not ended"
    check(session)
    level, answer = session.certificate, session.answer().tolist()
    for arm in session.active.tolist() * 2:  # late results
        session.tell(arm, 1 - value_of(generator, arm))
    assert session.answer().tolist() == answer
    assert session.certificate == level
    session.close()


GIVEN = {
    "pair": st.sampled_from(PAIRS),
    "moves": st.lists(st.sampled_from(LIKELY), min_size=5, max_size=40),
    "seed": st.integers(0, 2**32 - 1),
    "with_delta": st.booleans(),
}
RULED = {"deadline": None, "database": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


def check_random(examples: int) -> None:
    """Random sessions, without a database, which takes most of the time of one."""

    @settings(max_examples=examples, **RULED)
    @given(**GIVEN)
    def played(pair: tuple[str, str], moves: list[str], seed: int, with_delta: bool) -> None:
        play(*pair, moves, seed, None, with_delta)

    with mock.patch("agents.session.session.Log", Listed):
        played()


def main() -> None:
    for name, problem in ALL:
        check_replay(name, problem)
    check_random(30_000)
    with tempfile.TemporaryDirectory() as folder:
        killed(Path(folder), Path(folder) / "a.db", kills=102, workers=3)


if __name__ == "__main__":
    main()
