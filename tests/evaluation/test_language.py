"""Functions from messages to text as agents: scripted players, endpoints that fail, kills, limits, what is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from players import by_rule, early, lsa, nonsense, rarest

import agents
from agents import LanguageAgent, testing
from agents.language import COUNTS, EndpointError
from bandit_envs import benchmark_tasks
from bandit_envs.text import TextView

TAO: dict[str, Any] = {"instance": "tao2019-1", "budget": 20}
GAUSS: dict[str, Any] = {
    "instance": {"sampler": {"distribution": "gaussian", "arms": 5}},
    "threshold": 0.3,
    "budget": 25,
}
SECRET = "sk-0123456789abcdef"


def run(agent: object, problem: str = "Threshold", episodes: int = 6, **how: Any) -> agents.Evaluation:
    kwargs = how.pop("env_kwargs", TAO)
    return agents.evaluate({"one": agent}, problem, episodes=episodes, env_kwargs=kwargs, progress=False, **how)


# The four players -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [TAO, GAUSS], ids=["0 or 1", "Gaussian"])
def test_lsa_by_text_scores_as_lsa_to_the_digit(kwargs: dict[str, Any]) -> None:
    both = {"text": LanguageAgent(lsa, view="raw"), "lsa": "lsa"}
    frame = agents.evaluate(both, "Threshold", episodes=6, env_kwargs=kwargs, at=[5, 10, 20], progress=False).episodes
    text, own = (frame[frame["agent"] == name].reset_index(drop=True) for name in both)
    for name in set(frame.columns) - {"agent", *COUNTS}:
        assert (text[name] == own[name]).all(), name
    last = text[text["at"] == 20]
    assert (last["calls"] >= 20).all()
    assert (last["tokens"] > last["calls"]).all()
    assert (last["unreadable"] == 0).all()
    assert own["calls"].isna().all()


def test_whoever_stops_after_one_round_errs_on_tasks_with_a_delta() -> None:
    """Its answers are judged where it stops; with the certificate all pulls count, and none of them is its own."""
    task = next(task for task in benchmark_tasks("quick-v2-text") if task.name == "text-threshold-delta")
    found = agents.benchmark({"early": LanguageAgent(early, view="history"), "uniform": "uniform"}, [task.name])
    row = found.table.set_index("agent").loc["early"]
    assert (row["own_pulls"], row["proof"]) == (5, "none")
    assert row["own_errors"] > 0.3
    assert row["value"] == found.table.set_index("agent").loc["uniform", "value"]  # arms in turn
    assert row["calls"] == 6 * task.episodes
    assert found.summary().set_index("agent").loc["early", "calls"] == 6 * task.episodes


def test_nonsense_ends_with_a_score_of_0() -> None:
    result = run(LanguageAgent(nonsense, patience=4))
    assert (result.column("one", "score") == 0).all()
    assert not result.column("one", "correct").any()
    assert (result.column("one", "total_pulls") == 0).all()
    for name, count in zip(COUNTS, (4, 0, 4, 1), strict=True):
        assert (result.column("one", name) == count).all()
    assert (
        agents.play(LanguageAgent(nonsense), "TopK", env_kwargs={"k": 3}).score == 0
    )  # not that of the plug-in answer
    size = run(LanguageAgent(nonsense), "TopK", env_kwargs={"k": 3})  # an answer has to be given
    assert (size.column("one", "score") == 0).all()


PROGRAM = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from players import Flaky
import agents
flaky = Flaky(Path({log!r}), {dies_at})
one = agents.LanguageAgent(flaky, name="flaky", view="raw", wait=1e-4, retries=40, store={store!r})
kwargs = {kwargs!r}
result = agents.evaluate({{"one": one}}, "Threshold", episodes=6, env_kwargs=kwargs, progress=False)
print(result.column("one", "score").tolist())
"""


def test_a_killed_run_loses_nothing_and_asks_nothing_twice(tmp_path: Path) -> None:
    log, store = tmp_path / "paid.log", tmp_path / "replies.db"
    given = {"path": [str(Path(__file__).parents[1] / "support")], "log": str(log), "store": str(store), "kwargs": TAO}

    def play(dies_at: int | None) -> subprocess.CompletedProcess[str]:
        text = PROGRAM.format(dies_at=dies_at, **given)
        environment = {"PYTHONHASHSEED": "0", **os.environ}
        return subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=False
        )

    assert play(97).returncode == 9
    before = log.read_text().splitlines()
    with sqlite3.connect(store) as kept:
        (count,) = kept.execute("SELECT COUNT(*) FROM replies").fetchone()
    assert 97 - 6 <= count <= len(before) <= 97  # what was on its way when it was killed cannot be kept
    done = play(None)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == run("lsa").column("one", "score").tolist()
    whole = log.read_text().splitlines()
    assert len(whole) - len(set(whole)) <= len(before) - count
    assert json.loads(play(None).stdout) == json.loads(done.stdout)  # all is kept
    assert log.read_text().splitlines() == whole


# Calls ----------------------------------------------------------------------------------------------------------------


def test_coroutines_and_functions_play_alike_for_any_batch_and_jobs() -> None:
    async def later(messages: Any) -> str:
        await asyncio.sleep(0)
        return early(messages)

    whole = run(LanguageAgent(early, view="history")).episodes
    for agent, how in ((later, {}), (early, {"batch": 4}), (early, {"batch": 1}), (early, {"jobs": 2, "batch": 2})):
        found = run(LanguageAgent(agent, view="history"), **how).episodes
        assert found.equals(whole)


def test_as_many_calls_at_once_as_may_be() -> None:
    """Each call waits for two others: with fewer at once it would fail, and with more the count is above 3."""
    lock, running, most, all_three = threading.Lock(), [0], [0], threading.Barrier(3, timeout=60)

    def meeting(messages: Any) -> str:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        all_three.wait()
        with lock:
            running[0] -= 1
        return nonsense(messages)

    run(LanguageAgent(meeting, at_once=3, retries=0), episodes=9)
    assert most[0] == 3


def test_calls_that_fail_are_tried_again_and_those_that_are_late_given_up() -> None:
    tries = [0]

    def failing(messages: Any) -> str:
        tries[0] += 1
        raise OSError("no route to host")

    with pytest.raises(
        EndpointError, match=r"called 3x for a reply, and the last call failed: OSError\('no route to host'\)"
    ):
        run(LanguageAgent(failing, retries=2, wait=0), episodes=1)
    assert tries[0] == 3
    hold = threading.Event()
    with pytest.raises(EndpointError, match=r"called 1x for a reply, and the last call took longer than 0\.05 s"):
        run(LanguageAgent(lambda messages: str(hold.wait(20)), timeout=0.05, retries=0), episodes=1)
    hold.set()

    def own_limit(messages: Any) -> str:
        raise TimeoutError("of the client")

    with pytest.raises(EndpointError, match=r"failed: TimeoutError\('of the client'\)"):
        run(LanguageAgent(own_limit, timeout=None, retries=0), episodes=1)


def test_replies_of_any_letters_are_kept(tmp_path: Path) -> None:
    asked = [0]

    def odd(messages: Any) -> str:
        asked[0] += 1
        return "\ud800 \x00 \u202e"

    for _ in range(2):
        found = run(LanguageAgent(odd, name="odd", store=tmp_path / "odd.db", wait=0), episodes=2)
        assert (found.column("one", "unreadable") == 3).all()
    assert asked[0] == 6


@pytest.mark.parametrize("reply", [5, None, b"PULL", ("PULL", "3"), ("PULL", -1), ("PULL", 2**70), ["PULL"]])
def test_replies_that_are_no_text_are_refused_at_once(reply: object) -> None:
    with pytest.raises(EndpointError, match="must return text"):
        run(LanguageAgent(lambda messages: reply, wait=60.0), episodes=1)


def test_limits_end_a_run_that_goes_on_from_there(tmp_path: Path) -> None:
    store = tmp_path / "replies.db"
    for most in ({"max_calls": 30}, {"max_tokens": 300}):
        one = LanguageAgent(lsa, name="lsa", view="raw", store=store, **most)
        with pytest.raises(
            EndpointError, match=f"{next(iter(most))}=.* of lsa is reached.*{store}.*goes on from there"
        ):
            run(one)
        calls, tokens = one.spent()
        assert calls == 30 or (most == {"max_tokens": 300} and 300 <= tokens < 300 + 8 * 20)
    again = LanguageAgent(lsa, name="lsa", view="raw", store=store, max_calls=10_000, max_tokens=10**6)
    assert (run(again).column("one", "score") == run("lsa").column("one", "score")).all()


def test_what_is_said_is_what_text_environments_say() -> None:
    for words in ({"view": "history", "story": "assays"}, {"view": "table", "tool_calls": True}):
        heard: list[Any] = []

        def listening(messages: Any, heard: Any = heard, tools: bool = "tool_calls" in words) -> str:
            heard.append(messages)
            names = messages[0]["content"].splitlines()[0].partition(": ")[2].rstrip(".").split(", ")
            call = {"name": "pull", "arguments": {"arm": names[3], "times": 2}}
            return json.dumps(call) if tools else f"PULL {names[3]} 2"

        with pytest.raises(EndpointError):
            run(LanguageAgent(listening, max_calls=3, **words), episodes=1, seed=4)
        env = TextView(gym.make("bandit_envs/Threshold-v0", actions="full", **TAO), **words)
        first, _ = env.reset(seed=4)
        said = [env.step(listening([{"content": first}]))[0] for _ in range(2)]
        if words["view"] == "history":
            assert [one["content"] for one in heard[2] if one["role"] == "user"] == [first, *said]
        else:
            assert [[one["content"] for one in messages] for messages in heard[:3]] == [
                [first],
                *([f"{first}\n\n{one}"] for one in said),
            ]


def test_after_an_unreadable_reply_the_model_sees_what_was_wrong() -> None:
    heard: list[Any] = []

    def learning(messages: Any) -> str:
        heard.append(messages)
        return "hm" if len(messages) == 2 else lsa(messages[:2])[0]

    result = run(LanguageAgent(learning, view="raw", system=f"Be brief. {SECRET}"), episodes=2)
    assert (result.column("one", "score") == run("lsa", episodes=2).column("one", "score")).all()
    assert (result.column("one", "unreadable") * 2 == result.column("one", "calls")).all()
    assert [one["role"] for one in heard[-1]] == ["system", "user", "assistant", "user"]
    assert heard[-1][3]["content"].startswith("'hm' is no command. The last line of your reply is one command:")


def test_stores_have_no_prompts_and_no_keys(tmp_path: Path) -> None:
    def model(messages: Any, key: str = SECRET) -> str:
        return by_rule("lsa", messages)

    one = LanguageAgent(
        model, name="model", view="raw", system="A prompt that is none of your business", store=tmp_path / "replies.db"
    )
    run(one, out=tmp_path / "out")
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(b"So far so good." in one for one in files) == 1
    for word in (SECRET.encode(), b"business", b"There are 10 buttons"):
        assert not [path for path in files if word in path]
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert "model: story='buttons', view='raw'" in settings["identity"]["agents"]["one"]
    again = agents.results(tmp_path / "out")
    assert again.episodes.equals(run(one).episodes)
    with pytest.raises(ValueError, match="holds another evaluation"):
        run(LanguageAgent(model, view="table", name="model"), out=tmp_path / "out")


# Wherever agents are taken --------------------------------------------------------------------------------------------


def test_it_is_an_agent_like_others() -> None:
    one = LanguageAgent(lsa, view="raw")
    small = gym.make("bandit_envs/TopK-v0", instance="sampler(arms=3)", k=1, budget=30)
    for check in ("single_is_batch", "evaluate", "repeats", "no_global_state", "pickles", "ties"):
        testing._run(LanguageAgent(rarest, view="raw"), getattr(testing, f"check_{check}"), small)
    trace = agents.play(one, "Threshold", env_kwargs=TAO, seed=3)
    assert trace.score == agents.play("lsa", "Threshold", env_kwargs=TAO, seed=3).score
    env = gym.make("bandit_envs/Threshold-v0", actions="full", **TAO)
    agent, other, state, own = agents.make(one, env), agents.make("lsa", env), None, None
    seen, _ = env.reset(seed=2)
    over = False
    while not over:
        action, state = agent.predict(seen, state)
        same, own = other.predict(seen, own)
        if seen["remaining"][0]:
            assert (action["arm"], action["times"]) == (same["arm"], same["times"])
        else:
            assert (action["answer"] == same["answer"]).all()
        seen, _, over, *_ = env.step(action)
    with pytest.raises(ValueError, match="actions='full'"):
        agents.make(one, gym.make("bandit_envs/Threshold-v0"))  # its answer would be another one


@pytest.mark.parametrize(
    "kwargs", [{"batch": 4}, {"delay": 3}, {"cost": [1.0] * 9 + [5.0]}], ids=["batch", "delay", "cost"]
)
def test_late_results_and_prices(kwargs: dict[str, Any]) -> None:
    def first_ten(messages: Any) -> str:
        names = messages[0]["content"].splitlines()[0].partition(": ")[2].rstrip(".").split(", ")
        done = sum(message["role"] == "assistant" for message in messages)
        return f"PULL {names[done]}" if done < len(names) else f"ANSWER {names[0]}"

    result = run(LanguageAgent(first_ten, view="history"), "BestArm", env_kwargs={"budget": 60, **kwargs})
    assert (result.column("one", "total_pulls") == 10).all()
    assert (result.column("one", "calls") == 11).all()


def test_a_certificate_ends_it_and_asks_no_more() -> None:
    asked: list[str] = []

    def in_turn(messages: Any) -> str:
        asked.append(messages[-1]["content"])
        names = messages[0]["content"].splitlines()[0].partition(": ")[2].rstrip(".").split(", ")
        return f"PULL {names[len([one for one in messages if one['role'] == 'assistant']) % len(names)]}"

    kwargs: dict[str, Any] = {"instance": {"distribution": "gaussian", "mean": [4.0, 0.0, 0.0]}, "delta": 0.1}
    recipe = agents.registry.Recipe(
        "in-turn", "in-turn", LanguageAgent(in_turn, view="history"), {"stop": "certificate"}
    )
    result = run(recipe, "BestArm", env_kwargs=kwargs | {"max_pulls": 500})
    assert result.column("one", "certified").all()
    # One more call may be on its way in a decision in which another episode is certified.
    assert (result.column("one", "calls") - result.column("one", "total_pulls")).max() <= 1
    assert len(asked) == result.column("one", "calls").sum()


def test_the_benchmark_plays_it_in_a_process_of_its_own(tmp_path: Path) -> None:
    """The function sees another process; replies and counts come back; what is kept is asked no more."""

    def where(messages: Any) -> tuple[str, int]:
        with (tmp_path / "calls.log").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return nonsense(messages), 2

    found = agents.benchmark(LanguageAgent(where, name="where", store=tmp_path / "replies.db"), ["text-best-delta"])
    processes = (tmp_path / "calls.log").read_text().splitlines()
    assert str(os.getpid()) not in processes
    assert len(processes) == found.table["calls"].sum() == 3 * 30  # the answers at its own stops are the same calls
    assert found.table["tokens"].sum() == 2 * len(processes)
    agents.benchmark(LanguageAgent(where, name="where", store=tmp_path / "replies.db"), ["text-best-delta"])
    assert len((tmp_path / "calls.log").read_text().splitlines()) == len(processes)


def test_bad_settings_are_refused_where_they_enter(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, but text" * 99)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ("gpt", {}, "complete"),
        (lsa, {"view": "short"}, "short"),
        (lsa, {"story": 3}, "story"),
        (lsa, {"tool_calls": 1.5}, "tool_calls"),
        (lsa, {"patience": 0}, "patience"),
        (lsa, {"name": ""}, "name"),
        (lsa, {"system": 3}, "system"),
        (lsa, {"at_once": 0}, "at_once"),
        (lsa, {"timeout": 0}, "timeout"),
        (lsa, {"retries": -1}, "retries"),
        (lsa, {"wait": -1}, "wait"),
        (lsa, {"max_calls": 1.5}, "max_calls"),
        (lsa, {"max_tokens": -2}, "max_tokens"),
        (lsa, {"store": tmp_path / "x.db"}, "name="),
        (lsa, {"name": "lsa", "store": tmp_path / "none" / "x.db"}, "none"),
        (lsa, {"name": "lsa", "store": tmp_path / "text.db"}, "text.db"),
        (lsa, {"name": "lsa", "store": tmp_path}, str(tmp_path)),
    ]
    for complete, how, said in cases:
        with pytest.raises(ValueError, match=said):
            LanguageAgent(complete, **how)


def test_text_tasks_have_sixty_turns_at_most() -> None:
    tasks = benchmark_tasks("quick-v2-text")
    assert len(tasks) == 10
    assert {task.problem for task in tasks} == {
        "Threshold",
        "AllGood",
        "TopK",
        "Feasible",
        "BestArm",
        "BetterThanControl",
    }
    assert all(max(task.kwargs.get("budget", 0), task.kwargs.get("max_pulls", 0)) < 60 for task in tasks)
    assert not {task.name for task in tasks} & {task.name for task in benchmark_tasks("v2")}
    assert all(task.ships and task.scored and not np.isnan(task.uniform) for task in tasks)


def test_whoever_has_no_answer_at_the_end_of_max_pulls_scores_0() -> None:
    def only_pulls(messages: Any) -> str:
        return f"PULL {messages[0]['content'].splitlines()[0].partition(': ')[2].split(',')[0]} 3"

    kwargs = {"delta": 0.1, "max_pulls": 20}
    result = run(LanguageAgent(only_pulls), "BestArm", env_kwargs=kwargs)
    assert (result.column("one", "forfeited") == 1).all()
    assert (result.column("one", "score") == 0).all()
    assert agents.play(LanguageAgent(only_pulls), "BestArm", env_kwargs=kwargs).score == 0


@pytest.mark.parametrize("how", [{"rows": "none"}, {"precision": 0.3}], ids=["sums", "precision"])
def test_sums_beside_other_agents(how: dict[str, Any]) -> None:
    """Defect: KeyError, once all calls were made."""
    both = {"early": LanguageAgent(early, view="history"), "uniform": "uniform"}
    result = agents.evaluate(both, "Threshold", episodes=40, env_kwargs=TAO, progress=False, **how)
    summary = result.summary().set_index("agent")
    assert summary.loc["early", "calls"] == 11
    assert np.isnan(summary.loc["uniform", "calls"])


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, StopIteration, asyncio.CancelledError])
def test_functions_that_end_the_program_are_named(error: type[BaseException]) -> None:
    """Defect: it hung for ever."""

    def leaving(messages: Any) -> str:
        raise error("no key")

    async def leaving_later(messages: Any) -> str:
        raise error("no key")

    for one in (leaving, leaving_later)[: 1 if error is StopIteration else 2]:
        with pytest.raises(EndpointError, match="no key"):
            run(LanguageAgent(one, retries=0, timeout=20), episodes=1)
    assert (run(LanguageAgent(nonsense), episodes=1).column("one", "score") == 0).all()  # the loop lives


@pytest.mark.parametrize("later", [False, True], ids=["function", "coroutine"])
def test_late_calls_count_and_their_replies_are_kept(later: bool) -> None:
    """Defect: with time limits, calls were made beyond max_calls, and what had been paid for was lost."""
    asked, hold = [0], threading.Event()

    def slow(messages: Any) -> tuple[str, int]:
        asked[0] += 1
        hold.wait(60)
        return nonsense(messages), 7

    async def slow_later(messages: Any) -> tuple[str, int]:
        asked[0] += 1
        while not hold.is_set():
            await asyncio.sleep(0.01)
        return nonsense(messages), 7

    one = LanguageAgent(slow_later if later else slow, name="slow", timeout=0.05, retries=9, wait=0, max_calls=5)
    with pytest.raises(EndpointError, match=r"max_calls=5 of slow is reached, with 5"):
        run(one, episodes=3)
    assert (asked[0], one.spent()) == (5, (5, 0))
    hold.set()
    limit = time.monotonic() + 60
    while one.spent()[1] < 5 * 7 and time.monotonic() < limit:
        time.sleep(0.01)
    assert one.spent() == (5, 5 * 7)  # of all five, though some answer the same


def test_results_of_functions_without_a_name_are_not_mixed(tmp_path: Path) -> None:
    """Defect: another function, or another setting of it, had the results of the first in the same folder."""
    first = LanguageAgent(nonsense)
    run(first, out=tmp_path / "out", episodes=2)
    run(first, out=tmp_path / "out", episodes=2)
    with pytest.raises(ValueError, match="holds another evaluation: .*unnamed"):
        run(LanguageAgent(nonsense), out=tmp_path / "out", episodes=2)
    run(LanguageAgent(nonsense, name="silly"), out=tmp_path / "named", episodes=2)
    run(LanguageAgent(nonsense, name="silly"), out=tmp_path / "named", episodes=2)


def test_the_limit_of_calls_holds_for_those_that_begin_together() -> None:
    """Defect: all calls that could begin at once had passed the check."""
    asked = [0]

    def counting(messages: Any) -> str:
        asked[0] += 1
        return nonsense(messages)

    for most in (1, 7):
        asked[0] = 0
        with pytest.raises(EndpointError, match=f"max_calls={most} of counting is reached, with {most}"):
            run(LanguageAgent(counting, max_calls=most, at_once=30), episodes=30)
        assert asked[0] == most


@pytest.mark.parametrize(
    "late", [{"batch": 4}, {"delay": 3}, {"delay": "exponential(3)"}], ids=["batch", "delay", "drawn"]
)
def test_certificates_with_late_results(late: dict[str, Any]) -> None:
    """Defect: it failed, once all calls were paid for."""
    kwargs = {"instance": {"distribution": "gaussian", "mean": [3.0, 0, 0]}, "delta": 0.1, "max_pulls": 200, **late}

    def in_turn(messages: Any) -> str:
        names = messages[0]["content"].splitlines()[0].partition(": ")[2].rstrip(".").split(", ")
        done = sum(one["role"] == "assistant" for one in messages)
        return f"PULL {names[done % 3]}" if done < 9 else f"ANSWER {names[0]}"

    recipe = agents.registry.Recipe("x", "x", LanguageAgent(in_turn, view="history"), {"stop": "certificate"})
    result = run(recipe, "BestArm", env_kwargs=kwargs)
    assert result.column("one", "certified").all()
    assert (result.column("one", "calls") <= 10).all()


def test_the_same_observation_has_the_same_decision() -> None:
    """Defect: asked twice, it ended the episode."""
    env = gym.make("bandit_envs/Threshold-v0", actions="full", **TAO)
    agent = agents.make(LanguageAgent(rarest, view="raw"), env)
    seen, _ = env.reset(seed=1)
    first, state = agent.predict(seen)
    again, state = agent.predict(seen, state)
    assert (first["arm"], first["times"]) == (again["arm"], again["times"])
    assert agent.tallied(state, np.zeros(1, np.int64))["calls"] == 1


def test_forfeits_of_tasks_with_a_delta_are_noted() -> None:
    table = agents.benchmark(LanguageAgent(nonsense), ["text-best-delta"]).table
    assert table["forfeited"].tolist() == [30]
    assert "30 episodes ended without an answer" in table["note"].item()


def test_stores_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    store = tmp_path / "replies.db"
    one = LanguageAgent(nonsense, name="silly", store=store)
    one.spent()
    with sqlite3.connect(store) as kept:
        kept.execute("DROP TABLE replies")
    with pytest.raises(EndpointError, match=f"the store {store} of silly cannot be used"):
        run(one, episodes=1)


def test_an_interrupt_leaves_an_agent_that_can_go_on() -> None:
    """Defect: calls that never end kept those after an interrupt from beginning."""
    hold, first, main = threading.Event(), [2], threading.main_thread().ident

    def stuck(messages: Any) -> str:
        first[0] -= 1
        if first[0] == 0:
            signal.pthread_kill(main, signal.SIGINT)
        if first[0] >= 0:
            hold.wait(60)
        return nonsense(messages)

    one = LanguageAgent(stuck, timeout=None, at_once=2)
    try:
        agents.language.SOON, before = 0.1, agents.language.SOON
        with pytest.raises(KeyboardInterrupt) as found:
            run(one, episodes=3)
    finally:
        agents.language.SOON = before
    assert "replies of stuck are in" in str(found.value.__notes__)
    assert (run(one, episodes=3).column("one", "unreadable") == 3).all()
    hold.set()


def test_a_wrong_function_is_not_asked_again() -> None:
    tries = [0]

    def wrong(messages: Any) -> str:
        tries[0] += 1
        return messages.content  # type: ignore[no-any-return]

    with pytest.raises(EndpointError, match="called 1x"):
        run(LanguageAgent(wrong, wait=60.0), episodes=1)
    assert tries[0] == 1
