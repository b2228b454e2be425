"""`Session.run`: ask, have a function measure, and record each result as it comes, until the session is done.

The function is called in threads, on an event loop, or in an executor; once more where it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import os
import platform
import secrets
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bandit_envs.kernels import choice, integer, number

from .design import plated
from .doubts import about_failures
from .fold import State, run_of, sample_of
from .log import Event
from .questions import Ask, Row

FIRST_PAUSE = 0.1  # seconds before a measurement is tried again; twice as many each time
PATIENCE = 1.0  # seconds that tasks have to end, once all is over


class Threads(Executor):
    """A thread for each call, which does not keep the interpreter from ending."""

    def submit(self, fn: Callable[..., Any], /, *given: Any, **_: Any) -> Future[Any]:
        """Call a function."""
        task = Future[Any]()
        task.set_running_or_notify_cancel()  # it is not to be cancelled

        def call() -> None:
            try:
                task.set_result(fn(*given))
            except BaseException as error:
                task.set_exception(error)

        threading.Thread(target=call, name="measure", daemon=True).start()
        return task


class Loop(Executor):
    """An event loop, in a thread of its own, that awaits what coroutine functions return."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.loop = self.runner.get_loop()
        self.thread = threading.Thread(target=self._serve, name="measure", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        with self.runner:  # which cancels the tasks that are left
            self.loop.run_forever()

    def submit(self, fn: Callable[..., Any], /, *given: Any, **_: Any) -> Future[Any]:
        """Await a call; what would end the event loop is returned."""

        async def guarded() -> Any:
            try:
                return await fn(*given)
            except (SystemExit, KeyboardInterrupt) as error:
                return error

        return asyncio.run_coroutine_threadsafe(guarded(), self.loop)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End; a coroutine that blocks, or is not to be cancelled, is left alone."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)


@dataclass(eq=False)
class Call:
    """A question that is being measured, or is to be measured again after a pause."""

    question: Any
    given: tuple[Any, ...]  # the arm's name, and the item
    left: int  # further tries
    pause: float = FIRST_PAUSE  # before the next one
    due: float = math.inf  # when it is given up or, in a pause, tried again
    waits: bool = False  # whether it is in a pause


class Calls(dict[Future[Any], Call]):
    """The calls that run in an executor, or pause; `over`: what fails is not tried again."""

    def __init__(self, executor: Executor, measure: Callable[..., Any], timeout: float | None) -> None:
        super().__init__()
        self.executor, self.measure, self.timeout, self.over = executor, measure, timeout, False

    def begin(self, call: Call) -> None:
        """Measure; an executor that takes no more is a broken one."""
        call.due, call.waits = time.monotonic() + (self.timeout or math.inf), False
        try:
            task = self.executor.submit(self.measure, *call.given)
        except Exception as error:
            task = Future()
            task.set_exception(BrokenExecutor(str(error)))
        self[task] = call

    def ended(self, seconds: float) -> Iterator[tuple[Call, Any, BaseException | None]]:
        """What has ended, after so many seconds at the latest: the value of each, or what is wrong."""
        wait(self, max(min(seconds, min(call.due for call in self.values()) - time.monotonic()), 0.0), FIRST_COMPLETED)
        now = time.monotonic()
        for task in [task for task, call in self.items() if task.done() or call.due <= now or call.waits and self.over]:
            if (call := self.pop(task)).waits:
                self.begin(call)
                continue
            value, problem = self._outcome(task)
            lasting = isinstance(problem, BrokenExecutor) or not isinstance(problem, Exception)
            if lasting or self.over or not call.left:
                yield call, value, problem
            else:
                call.left, call.due, call.pause, call.waits = call.left - 1, now + call.pause, 2 * call.pause, True
                self[Future()] = call

    def _outcome(self, task: Future[Any]) -> tuple[Any, BaseException | None]:
        if not task.done():
            task.cancel()
            return None, TimeoutError(f"a measurement has taken more than {self.timeout:g} s")
        if task.cancelled():
            return None, BrokenExecutor("it has cancelled a call")
        value = task.exception() or task.result()
        if isinstance(value, BaseException):
            return None, value
        empty = value is None or isinstance(value, float) and math.isnan(value)
        return value, ValueError(f"there is no score, got {value}") if empty else None


LOOK = 0.5  # seconds between two looks whether others have recorded what this run waits for
MOST_FAILED = 10  # measurements in a row: then nothing works, as where a key has expired
MOST_FAULTS = 7  # of the store in a row: then the run ends
SIGNS = 600  # seconds, in which a run gives three signs of life at least
LEAVE = 2  # interrupts after which calls that still run are left alone
NOBODY = "a person without a name"
LIVING = set[str]()  # the runs of this process


@dataclass
class Running:
    """A run of a session; see `Session.run`. What has come in, and is not in the store yet, is in `came` and `lost`."""

    session: Any
    measure: Callable[..., object]
    workers: Any
    executor: Executor | None
    retries: int
    timeout: float | None
    failed: Any
    lease: Any
    who: str | None
    recorded: int = 0  # results
    came: list[tuple[Call, Any]] = field(default_factory=list)  # what has been measured
    lost: list[tuple[Call, str]] = field(default_factory=list)  # what has failed since the last success, and how
    row: int = 0  # failures, one after another
    error: BaseException | None = None  # by which the run ends
    faults: int = 0  # of the store, one after another
    next_try: float = 0.0  # when the store is tried again; inf: it is given up
    signed: float = 0.0  # when the last sign of life was given
    first: float = math.inf  # the number of the first question
    version: int = 0  # of the session, when more was last asked for
    idle: bool = False  # whether it was said that others are waited for
    silent: set[str | None] = field(default_factory=set)  # of whom it was said

    def __post_init__(self) -> None:
        measure, executor, failed, task = self.measure, self.executor, self.failed, self.session.task
        if not callable(measure):
            raise ValueError(f"measure must be a function of an arm (and an item), got {measure!r:.200}")
        self.awaited = any(map(inspect.iscoroutinefunction, (measure, type(measure).__call__)))  # or of an object
        if executor is not None and (self.awaited or not isinstance(executor, Executor)):
            text = "executor must be a concurrent.futures.Executor (Dask: client.get_executor()), and measure a plain"
            raise ValueError(f"{text} function then, got {executor!r:.200} and {measure!r:.200}")
        known = 1 if executor is None else getattr(executor, "_max_workers", None)
        if (workers := known if self.workers is None else self.workers) is None:
            text = "say workers=, how many measurements at a time"
            raise ValueError(f"{text}: {executor!r:.200} does not tell its number")
        self.workers, self.retries = integer("workers", workers, 1, 10_000), integer("retries", self.retries, 0, 1000)
        self.timeout = None if self.timeout is None else number("timeout", self.timeout, 0, above=True)
        if isinstance(failed, str):
            choice("failed", failed, ["skip"])
            self.session._setup.refuse_gaps()
        elif failed is not None:
            failed = failed if task.support is None else number("failed", failed, *task.support)
            self.failed = sample_of(task, failed)
        self.lease = math.inf if self.lease is None else number("take_over", self.lease, 0, above=True)
        self.beat, self.who = min(self.lease, SIGNS) / 3, self.who or None
        self.me = f"{platform.node() or 'a machine'} {os.getpid()} {secrets.token_hex(4)} {3 * self.beat:g}"
        self.signed = time.monotonic()

    def run(self) -> int:
        """Measure, and return how many results were recorded."""
        own = contextlib.nullcontext(self.executor) if self.executor else Loop() if self.awaited else Threads()
        with own as executor, interrupts() as self.stops:
            self.calls = Calls(executor, self.measure, self.timeout)
            LIVING.add(self.me)
            try:
                while len(self.stops) < LEAVE and self._goes_on():
                    pass
            except BaseException as problem:
                self.error = problem
            LIVING.discard(self.me)
            self._leave()
        if self.stops:
            ended = SystemExit(128 + signal.SIGTERM) if self.stops[-1] == signal.SIGTERM else KeyboardInterrupt()
            raise ended from self.error
        if isinstance(self.error, (KeyboardInterrupt, SystemExit)) or self.next_try == math.inf:
            raise self.error or KeyboardInterrupt
        sentences = [*self.session._look(about_failures), "" if self.error else self._awaited()]
        for sentence in filter(None, sentences):
            warnings.warn(sentence, UserWarning, stacklevel=3)
        if self.error is not None:
            raise self.error
        return self.recorded

    def _goes_on(self) -> bool:
        """Record, ask, and wait a while for calls, the store, or others; False where there is nothing to wait for."""
        for call in self._with_store() if time.monotonic() >= self.next_try else ():
            self.calls.begin(call)
        if self.stops and not self.calls.over:
            self.calls.over = True
            text = f"no more is asked for; {len(self.calls)} measurements still run, and will be recorded"
            print(f"interrupted: {text}. Once more leaves at once", file=sys.stderr, flush=True)
        if self.calls:
            self._collect(min(LOOK, self.beat))
        elif self.faults and self.next_try < math.inf:
            time.sleep(min(LOOK, FIRST_PAUSE))
        elif self.error is not None or self.stops:
            return False
        elif self.lost:  # there is nothing else to ask for
            self.row = 0
        else:
            return self._waits_for_others()
        return True

    def _leave(self) -> None:
        """Record what has come, and leave alone what still runs."""
        self.calls.over = True
        for task in [task for task in self.calls if not task.done()]:
            task.cancel()
            del self.calls[task]
        self._collect(0.0)
        try:
            self._settle()
        except Exception as problem:
            self.error = self.error or problem
            found = [(call.given[0], value, *call.given[1:]) for call, value in self.came]
            self.error.add_note(f"these results are not recorded, for `tell_all`: {found}")

    def _with_store(self) -> list[Call]:
        """Record what has come, and ask for more; a store that fails is tried again."""
        try:
            self._settle()
            if self.calls and time.monotonic() - self.signed >= self.beat:
                self.session.note(f"still measuring {len(self.calls)}", self.who)
                self.signed = time.monotonic()
            self._say_who_is_silent()
            free = 0 if self.error or self.stops else self.workers - len(self.calls)
            found = self._asked(free) if free > 0 else []
            self.faults = 0
            return found
        except (Taken, Warning) as taken:  # warnings may be errors
            self.error = self.error or taken
        except Exception as problem:
            self.faults += 1
            self.next_try = time.monotonic() + FIRST_PAUSE * 2**self.faults
            if self.faults >= MOST_FAULTS:
                self.error, self.next_try = self.error or problem, math.inf
        return []

    def _settle(self) -> None:
        """Record what has come; where the store fails, what is left stays."""
        if self.came:
            self._record([("", call.question, value, call.question.item) for call, value in self.came])
        while self.lost and not self.row and self.error is None and not self.stops:
            (call, why), value = self.lost[0], None if self.failed == "skip" else self.failed
            self.session._fail(call.question.number, value, self.who, why)
            del self.lost[0]
            self.recorded += value is not None

    def _record(self, rows: Sequence[Row]) -> None:
        """Record results, in one transaction: a store that is slow takes more of them at once."""
        with self.session._now() as state:
            told = {event.about for event in state.told}  # as questions that have failed
            waits = [row for row in rows if row[1].number in state.asks]
            late = [row for row in rows if row[1].number not in state.asks and row[1].number not in told]
        if waits:
            self.session._record(waits, self.who)
        self.came.clear()
        self.recorded, self.signed = self.recorded + len(rows) - len(late), time.monotonic()
        for _, one, value, _ in late:
            text = f"the question {one.number} was asked again, undone, or is of an arm that was withdrawn"
            warnings.warn(f"{text}: its result {value!r:.80} came too late", UserWarning, stacklevel=8)

    def _asked(self, free: int) -> list[Call]:
        """Calls for so many open questions of this run, new ones where there are too few."""
        session, tabled, self.version = self.session, bool(self.session.task.items), self.session.version
        held = [*self.calls.values(), *(call for call, _ in [*self.came, *self.lost])]
        if len(waiting := self._open(held, free)) < free:
            if new := session.ask(free - len(waiting), self.who, take_over=self.lease, run=self.me):
                self.signed = time.monotonic()
                self.first = min([self.first, *(one.number for one in new)])
            waiting = self._open(held, free)
        names = session.names
        return [Call(one, (names[one.arm], *([one.item] if tabled else [])), self.retries) for one in waiting]

    def _open(self, held: Sequence[Call], most: int) -> list[Any]:
        """Open questions of this name that are not held, nor of a later run; `Taken` where an earlier one lives."""
        session = self.session
        with session._now() as state:
            others = self._of_others(state)
            taken = others | {call.question.number for call in held}
            mine = [n for n, (_, who) in state.asks.items() if who == self.who and n not in taken][:most]
            found, wells = [Ask(n, *state.asks[n]) for n in mine], plated(state)
            found = [session._filled(one, state.events[one.number], wells) for one in found]
        if others and min(others) < self.first:
            own = {number for number in state.asks if state.events[number].text == self.me}
            session._append(lambda state: state.asked_again(own & state.asks.keys(), self.who))  # by no run: for any
            host, pid, _ = run_of(state.events[min(others)])
            text = f"another run with who={self.who!r:.80} still runs, in the process {pid} on {host}"
            raise Taken(f"{text}: give each run a name of its own, who=..., or wait until that one has ended")
        return found

    def _collect(self, seconds: float) -> None:
        """Take what calls have measured, waiting so long for the first of them, and note what is wrong."""
        for call, value, problem in self.calls.ended(seconds) if self.calls else ():
            what = f"measuring {call.given[0]!r:.80}" + "".join(f" on the item {one!r:.80}" for one in call.given[1:])
            if problem is None:
                try:
                    sample_of(self.session.task, value)
                    self.came.append((call, value))
                    self.row = 0
                    continue
                except ValueError as wrong:
                    problem, what = ValueError(f"{what}: {wrong}"), ""
            if isinstance(problem, BrokenExecutor):
                what = "the executor is broken: its questions wait for a run with another one"
            elif self.failed is not None and isinstance(problem, Exception):
                self.row += 1
                self.lost.append((call, type(problem).__name__))
                if self.row < MOST_FAILED or self.error or self.stops:
                    continue
                text = f"{self.row} measurements in a row failed, the last by {problem!r:.200}: the run ends, and their"
                problem = RuntimeError(f"{text} questions wait for another one").with_traceback(problem.__traceback__)
            if self.error is None and what:
                problem.add_note(what)
            self.error = self.error or problem

    # --- others -------------------------------------------------------------------------------------------------------

    def _waits_for_others(self) -> bool:
        """Wait a while for results that others owe; False where this run does not, or there are none."""
        text = self._awaited()
        if self.lease == math.inf or self.session.done or not text:
            return self.session.version != self.version and not self.session.done  # something has come meanwhile
        if not self.idle:
            text += f"; they are asked again if there is no sign of life for {self.lease:g} s"
            warnings.warn(text, UserWarning, stacklevel=5)
        self.idle = True
        time.sleep(min(LOOK, self.lease))
        return True

    def _awaited(self) -> str:
        """Whose results are awaited, in words; "" where none are but one's own."""
        with self.session._now() as state:
            others = self._of_others(state)
        pending = [ask for ask in self.session.pending if ask.who != self.who or ask.number in others]
        of = ", ".join(dict.fromkeys(ask.who or NOBODY for ask in pending))
        return f"results that others are asked for are awaited, {len(pending)}, of {of:.200}" if pending else ""

    def _of_others(self, state: State) -> set[int]:
        """The open questions of this name that another run, which lives, has asked."""
        asked = [state.events[n] for n, (_, who) in state.asks.items() if who == self.who]
        return {one.number for one in asked if one.text != self.me and _lives(one, state.signs.get(self.who))}

    def _say_who_is_silent(self) -> None:
        """Warn, once for each silence, of those whose results are awaited and who give no sign of life."""
        lease, owed = self.lease, self.session.owed
        silent = {one["who"]: one for one in owed if one["silent"] > min(lease, SIGNS) / 2 and one["who"] != self.who}
        for name in silent.keys() - self.silent:
            text = "{} has given no sign of life for {silent:.3g} s: {questions} questions are open, {results} results "
            text = text.format(name or NOBODY, **silent[name]) + "wait for them"
            again = f"asked again after {lease:g} s" if lease < math.inf else "not asked again: take_over=None"
            warnings.warn(f"{text}; they are {again}", UserWarning, stacklevel=6)
        self.silent = set(silent)


def _lives(question: Event, sign: datetime | None) -> bool:
    """Whether the run that has asked a question still runs: of another machine, if it has given a sign."""
    host, pid, lease = run_of(question)
    if not host or sign is None or (datetime.now(UTC) - sign).total_seconds() > lease:
        return False
    if host != (platform.node() or "a machine") or os.name != "posix":
        return True
    if pid == os.getpid():
        return question.text in LIVING
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


class Taken(ValueError):
    """Another run of this name still runs."""


@contextlib.contextmanager
def interrupts() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM as they come, in a main thread without handlers of its own; the third one interrupts."""
    found = list[int]()

    def count(sign: int, _: object) -> None:
        found.append(sign)
        if len(found) > LEAVE:
            raise KeyboardInterrupt

    with contextlib.ExitStack() as stack:
        for sign, usual in {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}.items():
            if threading.current_thread() is threading.main_thread() and signal.getsignal(sign) == usual:
                stack.callback(signal.signal, sign, usual)
                signal.signal(sign, count)
        yield found
