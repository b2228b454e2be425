"""`Session.run` in executors: threads, processes, workers of Dask; and what it does where one breaks."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import threading
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from graders import deadly, elsewhere, score

import agents
from agents.session.course import Run
from agents.session.running import Call, Calls

pytest.importorskip("sqlalchemy")

FACTS = {"problem": "BestArm", "arms": ["a", "b", "c", "d"], "items": 40, "range": (0, 1), "budget": 48}


def begun(**facts: Any) -> agents.Session:
    return agents.Session("uniform", FACTS | facts, store=":memory:", public_seed=0)


def processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, get_context("forkserver"))


def all_measured(session: agents.Session) -> bool:
    """Whether the budget is spent, each cell once, on the scores themselves."""
    told = session.history().query("kind == 'told'")
    right = [score(row.name, row.item) for row in told[["name", "item"]].itertuples(index=False, name="Row")]
    once = len(set(zip(told["name"], told["item"], strict=True))) == len(told) == FACTS["budget"]
    return once and told["value"].tolist() == pytest.approx(right) and session.done and not session.pending


def test_processes_measure_as_many_at_a_time_as_there_are() -> None:
    with processes(2) as pool, begun() as session:
        submit, under_way = pool.submit, list[int]()
        pool.submit = lambda *given: (under_way.append(len(session.pending)), submit(*given))[1]  # type: ignore[method-assign]
        assert session.run(functools.partial(elsewhere, os.getpid()), executor=pool) == 48
        assert all_measured(session)
        assert session.answer().tolist() == [False, False, False, True]
        assert max(under_way) == 2
        assert pool.submit(abs, -1).result() == 1  # it is not shut down


def test_of_threads_what_fails_is_tried_again_and_then_skipped() -> None:
    tries = list[tuple[str, int]]()

    def flaky(arm: str, item: int) -> float:
        assert threading.current_thread().name.startswith("pool")
        tries.append((arm, item))
        if arm == "b" and item % 4 == 0 or tries.count((arm, item)) == 1 and item % 4 == 1:
            raise ConnectionError("busy")
        return score(arm, item)

    with ThreadPoolExecutor(8, "pool") as pool, begun() as session:
        with pytest.warns(UserWarning, match="of 'b' .* could not be scored"):
            session.run(flaky, 6, executor=pool, retries=1, failed="skip")
        failed = session.history().query("kind == 'failed'")
        assert set(failed["name"]) == {"b"}
        assert set(failed["item"] % 4) == {0}
        assert set(failed["text"]) == {"ConnectionError"}
        assert {tries.count(("b", item)) for item in failed["item"]} == {2}
        assert session.done


def test_what_takes_too_long_in_an_executor_is_measured_by_another_worker() -> None:
    go, first = threading.Event(), threading.Lock()

    def hangs(arm: str, item: int) -> float:
        if first.acquire(blocking=False):
            go.wait(60)
            return 1.0
        return score(arm, item)

    with ThreadPoolExecutor(3) as pool, begun() as session:
        session.run(hangs, 2, executor=pool, retries=1, timeout=0.2)
        assert all_measured(session)
        go.set()


def test_a_coroutine_that_takes_too_long_is_cancelled() -> None:
    given_up = threading.Event()

    async def hangs_first(arm: str, item: int) -> float:
        if not given_up.is_set():
            try:
                await asyncio.Event().wait()
            finally:
                given_up.set()
        return score(arm, item)

    with begun() as session:
        session.run(hangs_first, retries=1, timeout=0.05)
        assert all_measured(session)


def test_pauses_double_and_what_fails_is_given_up_at_the_end() -> None:
    def fails(arm: str) -> float:
        raise ConnectionError(arm)

    with ThreadPoolExecutor(1) as pool:
        calls, call, pauses = Calls(pool, fails, None), Call(None, ("a",), 3), list[float]()
        calls.begin(call)
        while not (ended := [*calls.ended(1.0)]):
            if call.waits:
                pauses.append(call.pause)
                call.due = 0.0
        assert (call.left, pauses) == (0, [0.2, 0.4, 0.8])
        [(_, _, problem)] = ended
        assert repr(problem) == "ConnectionError('a')"
        calls.over, again = True, Call(None, ("b",), 3)
        calls.begin(again)
        assert [one for one, _, _ in calls.ended(1.0)] == [again]


def test_a_run_in_which_nothing_works_ends_and_marks_nothing_as_failed() -> None:
    def fails(arm: str, item: int) -> float:
        raise ConnectionError("the key has expired")

    with begun() as session:
        with pytest.raises(RuntimeError, match="10 measurements in a row failed, the last by ConnectionError.*expired"):
            session.run(fails, 2, retries=0, failed=0.0)
        assert set(session.history()["kind"]) == {"asked"}
        assert 10 <= len(session.pending) <= 11


@pytest.mark.parametrize("failed", [None, "skip"])
def test_a_process_that_dies_breaks_its_pool_and_another_one_goes_on(failed: Any, tmp_path: Path) -> None:
    measure = functools.partial(deadly, tmp_path / "killed")
    with begun() as session:
        with processes(2) as pool, pytest.raises(BrokenExecutor, match="terminated abruptly") as raised:
            session.run(measure, executor=pool, failed=failed)
        assert raised.value.__notes__ == ["the executor is broken: its questions wait for a run with another one"]
        assert 0 < len(session.pending) <= 2
        assert "failed" not in set(session.history()["kind"])
        with pytest.raises(BrokenExecutor, match="not usable anymore"):
            session.run(measure, executor=pool)
        with processes(2) as pool:
            session.run(measure, executor=pool, failed=failed)
        assert all_measured(session)


@pytest.mark.parametrize("given", [{}, {"executor": ThreadPoolExecutor}], ids=["own", "pool"])
def test_an_interrupt_leaves_no_open_question(given: Any, capsys: pytest.CaptureFixture[str]) -> None:
    together, usual = threading.Barrier(3), signal.signal(signal.SIGINT, signal.default_int_handler)

    def measure(arm: str, item: int) -> float:
        if together.wait(60) == 0:
            signal.raise_signal(signal.SIGINT)
        together.wait(60)
        return score(arm, item)

    try:
        with begun() as session, pytest.raises(KeyboardInterrupt):
            session.run(measure, 3, **{name: kind(3) for name, kind in given.items()})
    finally:
        signal.signal(signal.SIGINT, usual)
    assert "interrupted: no more is asked for" in capsys.readouterr().err
    assert (len(session), session.pending, session.done) == (3, [], False)


def test_a_study_over_two_workers_of_dask_of_which_one_is_killed(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    how = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(host="127.0.0.1", **how) as cluster,
        distributed.Client(cluster) as client,
        begun() as session,
    ):
        client.wait_for_workers(2)
        before = set(client.run(os.getpid).values())
        session.run(functools.partial(deadly, tmp_path / "killed"), workers=4, executor=client.get_executor())
        assert (tmp_path / "killed").exists()
        assert before - set(client.run(os.getpid).values())
        assert all_measured(session)


class AtOnce(Executor):
    """An executor whose calls have ended when they begin."""

    def submit(self, fn: Any, /, *given: Any, **_: Any) -> Future[Any]:
        task = Future[Any]()
        task.set_result(fn(*given))
        return task


def test_what_has_come_is_recorded_at_once_and_a_state_is_copied_once_for_all_questions() -> None:
    with begun() as session:
        with (
            mock.patch.object(
                type(session._log), "append", autospec=True, side_effect=type(session._log).append
            ) as append,
            mock.patch.object(Run, "copy", autospec=True, side_effect=Run.copy) as copy,
        ):
            assert session.run(score, 12, executor=AtOnce()) == 48
        assert append.call_count < 12
        assert copy.call_count < 12
        assert all_measured(session)


class Sizeless(Executor):
    """An executor that does not tell how many workers it has, and cancels what it is given."""

    given = 0

    def submit(self, fn: Any, /, *given: Any, **_: Any) -> Future[Any]:
        task, self.given = Future[Any](), self.given + 1
        task.cancel()
        return task


def test_bad_executors_are_named() -> None:
    async def waits(arm: str, item: int) -> float:
        return 0.5

    with begun() as session:
        with pytest.raises(ValueError, match=r"must be a concurrent.futures.Executor .*, got 3 and"):
            session.run(score, executor=3)  # type: ignore[arg-type]
        with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="measure a plain function then"):
            session.run(waits, executor=pool)
        with pytest.raises(ValueError, match="say workers=, how many measurements at a time: <.*Sizeless"):
            session.run(score, executor=Sizeless())
        assert session.pending == []
        with pytest.raises(BrokenExecutor, match="it has cancelled a call"):
            session.run(score, 2, executor=(sizeless := Sizeless()), failed="skip")
        assert sizeless.given == 2  # it is not tried again
        assert len(session.pending) == 2
        assert len(session) == 0
