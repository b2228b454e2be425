"""`Session.run`: a function measures what the session asks for, in threads or as tasks of an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import math
import os
import platform
import queue
import secrets
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import UTC, datetime
from typing import Any

from bandit_envs.kernels import choice, integer, number

from .doubts import about_failures
from .fold import State, run_of, sample_of
from .log import ASKED, Event

PATIENCE = 1.0  # seconds that tasks have to end, once all is over
LOOK = 0.5  # seconds between two looks whether others have recorded what this run waits for
MOST_FAILED = 10  # measurements in a row: then nothing works, as where a key has expired
MOST_FAULTS = 7  # of the store in a row: then the run ends
FIRST_PAUSE = 0.1  # seconds before a measurement, or the store, is tried again; twice as many each time
SIGNS = 600  # seconds, in which a run gives three signs of life at least
LEAVE = 2  # interrupts after which calls that still run are left alone
LIVING = set[str]()  # the runs of this process


def measured(
    session: Any,
    measure: Callable[..., object],
    workers: int,
    retries: int,
    timeout: float | None,
    failed: float | str | None,
    take_over: float | None,
    who: str | None,
) -> int:
    """See `Session.run`."""
    if not callable(measure):
        raise ValueError(f"measure must be a function of an arm (and an item), got {measure!r:.200}")
    workers, retries = integer("workers", workers, 1, 10_000), integer("retries", retries, 0, 1000)
    timeout = None if timeout is None else number("timeout", timeout, 0, above=True)
    if isinstance(failed, str):
        choice("failed", failed, ["skip"])
        session._setup.refuse_gaps()
    elif failed is not None:
        support = session.task.support
        failed = sample_of(session.task, failed if support is None else number("failed", failed, *support))
    lease = math.inf if take_over is None else number("take_over", take_over, 0, above=True)
    beat, who = min(lease, SIGNS) / 3, who or None
    me = f"{platform.node() or 'a machine'} {os.getpid()} {secrets.token_hex(4)} {3 * beat:g}"
    tabled, recorded, first = bool(session.task.items), 0, math.inf
    running: dict[Future[Any], Any] = {}
    came: list[tuple[Any, Any]] = []  # questions and their results, until the store has them
    lost: list[tuple[Any, str]] = []  # what has failed since the last success: recorded at the next one, or at the end
    silent = set[str | None]()  # of whom it was said
    error: BaseException | None = None
    idle, row, faults, next_try, signed = False, 0, 0, 0.0, time.monotonic()  # row: of failures; faults: of the store

    def settle() -> None:
        """Record what has come; where the store fails, what is left stays."""
        nonlocal recorded, signed
        while came:
            kept = _kept(session, *came[0], who)
            one, value = came.pop(0)
            if not kept:
                text = f"the question {one.number} was asked again, undone, or is of an arm that was withdrawn"
                warnings.warn(f"{text}: its result {value!r:.80} came too late", UserWarning, stacklevel=4)
            recorded, signed = recorded + kept, time.monotonic()
        while lost and not row and error is None and not stop.count:
            session._fail(lost[0][0].number, None if failed == "skip" else failed, who, lost[0][1])
            del lost[0]
            recorded += failed != "skip"

    def collect(ended: Iterable[Future[object]]) -> None:
        """Take the results of calls."""
        nonlocal row, error
        for done in ended:
            one, problem = running.pop(done), done.exception()
            try:
                if problem is None:
                    sample_of(session.task, done.result())
                    came.append((one, done.result()))
                    row = 0
                    continue
            except ValueError as wrong:
                problem = wrong
            else:
                if failed is not None and isinstance(problem, Exception):
                    row += 1
                    lost.append((one, type(problem).__name__))
                    if row < MOST_FAILED or error is not None or stop.count:
                        continue
                    text = f"{row} measurements in a row failed, the last by {problem!r:.200}: the run ends"
                    problem, cause = RuntimeError(f"{text}, and their questions wait for another one"), problem
                    problem.__cause__ = cause
            what = f"measuring {session.names[one.arm]!r:.80}"
            problem.add_note(what + (f" on the item {one.item!r:.80}" if tabled else ""))
            error = error or problem

    def unheld() -> list[Any]:
        """The open questions of this run that no call has, and whose results have not come."""
        held = {one.number for one in [*running.values(), *(one for one, _ in [*came, *lost])]}
        return [one for one in _open(session, who, me, first) if one.number not in held]

    with Caller(measure, workers, retries, timeout) as call, counted() as stop:
        LIVING.add(me)
        try:
            while stop.count < LEAVE:
                ending, version = error is not None or stop.count > 0, None
                if time.monotonic() >= next_try:
                    try:
                        settle()
                        if running and time.monotonic() - signed >= beat:
                            session.note(f"still measuring {len(running)}", who)
                            signed = time.monotonic()
                        _say_who_is_silent(session, who, lease, silent)
                        if not ending and (free := workers - len(running)) > 0:
                            version = session.version
                            waiting = unheld()
                            if len(waiting) < free:
                                new = session.ask(free - len(waiting), who, take_over=lease, run=me)
                                signed = time.monotonic() if new else signed
                                first = min([first, *(one.number for one in new if one.number)])
                                waiting = unheld()
                            for one in waiting[:free]:
                                name = session.names[one.arm]
                                running[call.submit(*((name, one.item) if tabled else (name,)))] = one
                        faults = 0
                    except (Taken, Warning) as taken:  # warnings may be errors
                        error = error or taken
                        continue
                    except Exception as problem:
                        faults += 1
                        next_try = time.monotonic() + FIRST_PAUSE * 2**faults
                        if faults >= MOST_FAULTS:
                            error, next_try = error or problem, math.inf
                if stop.count and not stop.said:
                    stop.said = True
                    call.stopped.set()
                    text = f"no more is asked for; {len(running)} measurements still run, and will be recorded"
                    print(f"interrupted: {text}. Once more leaves at once", file=sys.stderr, flush=True)
                if running:
                    collect(wait(running, min(LOOK, beat), FIRST_COMPLETED).done)
                    continue
                if faults and next_try < math.inf:
                    time.sleep(min(LOOK, FIRST_PAUSE))
                    continue
                if error is not None or stop.count:
                    break
                if lost:  # there is nothing else to ask for
                    row = 0
                    continue
                text = _awaited(session, who, me)
                if take_over is None or session.done or not text:
                    if session.version != version and not session.done:  # something has come meanwhile
                        continue
                    break
                if not idle:
                    text += f"; they are asked again if there is no sign of life for {lease:g} s"
                    warnings.warn(text, UserWarning, stacklevel=3)
                idle = True
                time.sleep(min(LOOK, lease))
        except BaseException as problem:
            error = problem
        call.stopped.set()
        LIVING.discard(me)
        collect([done for done in running if done.done()])
        try:
            settle()
        except Exception as problem:
            error = error or problem
            found = [(session._state.names[one.arm], value, *([one.item] if tabled else [])) for one, value in came]
            error.add_note(f"these results are not recorded, for `tell_all`: {found}")
    if stop.count:
        raise SystemExit(128 + stop.last) if stop.last == signal.SIGTERM else KeyboardInterrupt from error
    if isinstance(error, (KeyboardInterrupt, SystemExit)) or next_try == math.inf:
        raise error or KeyboardInterrupt
    with session._now() as state:
        shares = about_failures(state)
    for sentence in shares:
        warnings.warn(sentence, UserWarning, stacklevel=3)
    if error is not None:
        raise error
    if text := _awaited(session, who, me):
        warnings.warn(text, UserWarning, stacklevel=3)
    return recorded


def _kept(session: Any, one: Any, value: Any, who: str | None) -> bool:
    """Record a result, unless the store has it, as where it has failed afterwards; False where it is not asked for."""
    with session._now() as state:
        if one.number not in state.asks:
            return any(event.about == one.number for event in state.told)
    session.tell(one, value, who, one.item)
    return True


def _open(session: Any, who: str | None, me: str, first: float) -> list[Any]:
    """The open questions of this person, but not of a later run of this name; `Taken` where an earlier one lives."""
    with session._now() as state:
        asked = {number: state.events[number] for number, (_, one) in state.asks.items() if one == who}
    others = _of_others(state, who, me)
    if others and min(others) < first:
        session._append(lambda state: _given_back(state, me))
        host, pid, _ = run_of(asked[min(others)])
        text = f"another run with who={who!r:.80} still runs, in the process {pid} on {host}"
        raise Taken(f"{text}: give each run a name of its own, who=..., or wait until that one has ended")
    return [one for one in session.pending if one.number in asked and one.number not in others]


def _of_others(state: State, who: str | None, me: str) -> set[int]:
    """The open questions of this name that another run, which lives, has asked."""
    asked = {number: state.events[number] for number, (_, one) in state.asks.items() if one == who}
    return {n for n, event in asked.items() if event.text != me and _lives(event, state.signs.get(who))}


def _given_back(state: State, me: str) -> list[Event]:
    """The questions of this run, asked again in their places by no run: any other one of its name takes them."""
    mine = [(number, *ask) for number, ask in state.asks.items() if state.events[number].text == me]
    return [Event(0, ASKED, arm, state.row_asked.get(number), number, who) for number, arm, who in mine]


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


def _say_who_is_silent(session: Any, who: str | None, lease: float, said: set[str | None]) -> None:
    """Warn, once for each silence, of those whose results are awaited and who give no sign of life."""
    silent = {one["who"]: one for one in session.owed if one["silent"] > min(lease, SIGNS) / 2 and one["who"] != who}
    for name in silent.keys() - said:
        text = f"{name or 'a person without a name'} has given no sign of life for {silent[name]['silent']:.3g} s: "
        text += f"{silent[name]['questions']} questions are open, {silent[name]['results']} results wait for them"
        again = f"asked again after {lease:g} s" if lease < math.inf else "not asked again: take_over=None"
        warnings.warn(f"{text}; they are {again}", UserWarning, stacklevel=4)
    said.clear()
    said.update(silent)


def _awaited(session: Any, who: str | None, me: str) -> str:
    """Whose results are awaited, in words; "" where none are but one's own."""
    with session._now() as state:
        others = _of_others(state, who, me)
    pending = [ask for ask in session.pending if ask.who != who or ask.number in others]
    names = [ask.who or "a person without a name" for ask in pending]
    of = ", ".join(dict.fromkeys(names))
    return f"results that others are asked for are awaited, {len(names)}, of {of:.200}" if names else ""


class Taken(ValueError):
    """Another run of this name still runs."""


class Interrupts:
    """How many interrupts have come (Ctrl-C, SIGTERM), the last one, and whether that was said."""

    count, last, said = 0, 0, False


@contextlib.contextmanager
def counted() -> Iterator[Interrupts]:
    """Count them, in the main thread of a program without handlers of its own; from the third on they interrupt."""
    found = Interrupts()

    def count(sign: int, _: object) -> None:
        found.count, found.last = found.count + 1, sign
        if found.count > LEAVE:
            raise KeyboardInterrupt

    with contextlib.ExitStack() as stack:
        for sign, usual in {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}.items():
            if threading.current_thread() is threading.main_thread() and signal.getsignal(sign) == usual:
                stack.callback(signal.signal, sign, usual)
                signal.signal(sign, count)
        yield found


class Caller:
    """Calls a function in threads, or awaits it on an event loop of its own, and again where that fails.

    A thread that hangs does not keep the interpreter from ending.
    """

    def __init__(self, measure: Callable[..., Any], workers: int, retries: int, timeout: float | None) -> None:
        self.measure, self.retries, self.timeout = measure, retries, timeout
        self.workers, self.threads = workers, 0
        self.jobs: queue.SimpleQueue[tuple[Future[object], tuple[object, ...]] | None] = queue.SimpleQueue()
        called = type(measure).__call__  # of an object that can be called
        self.awaited = inspect.iscoroutinefunction(measure) or inspect.iscoroutinefunction(called)
        self.stopped = threading.Event()
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self.thread = threading.Thread(target=self._serve, name="measure", daemon=True)

    def _serve(self) -> None:
        """Run the event loop until it is stopped; tasks that are left are cancelled."""
        with self.runner:
            self.loop.run_forever()

    def __enter__(self) -> Caller:
        if self.awaited:
            self.loop = self.runner.get_loop()
            self.thread.start()
        return self

    def submit(self, *given: object) -> Future[Any]:
        """Measure in a thread that is free; there are at most as many as workers."""
        task = Future[Any]()
        self.jobs.put((task, given))
        if self.threads < self.workers:
            self.threads += 1
            threading.Thread(target=self._work, name="measure", daemon=True).start()
        return task

    def _work(self) -> None:
        while (job := self.jobs.get()) is not None:
            self._into(job[0], self, job[1])

    def __exit__(self, *_: object) -> None:
        for _worker in range(self.threads):
            self.jobs.put(None)
        if self.awaited:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(PATIENCE)  # a coroutine that blocks, or is not to be cancelled, is left alone

    def __call__(self, *given: object) -> object:
        pause = FIRST_PAUSE
        for left in range(self.retries, -1, -1):
            try:
                found = self._once(given)
                if found is None or isinstance(found, float) and math.isnan(found):
                    raise ValueError(f"there is no score, got {found}")
                return found
            except Exception:
                if not left or self.stopped.is_set():
                    raise
                self.stopped.wait(pause)
                pause *= 2
        return None

    def _once(self, given: tuple[Any, ...]) -> Any:
        """One try."""
        if self.awaited:
            task = asyncio.run_coroutine_threadsafe(self._guarded(given), self.loop)
        elif self.timeout is None:
            return self.measure(*given)
        else:
            task = Future()
            threading.Thread(target=self._into, args=(task, self.measure, given), daemon=True).start()
        try:
            found = task.result(self.timeout)
            if isinstance(found, (SystemExit, KeyboardInterrupt)):
                raise found
            return found
        except TimeoutError:
            if task.done():
                raise
            task.cancel()
            raise TimeoutError(f"a measurement has taken more than {self.timeout:g} s") from None

    async def _guarded(self, given: tuple[Any, ...]) -> Any:
        """Await a measurement; what would end the event loop is handed on."""
        try:
            return await self.measure(*given)
        except (SystemExit, KeyboardInterrupt) as error:
            return error

    def _into(self, task: Future[Any], measure: Callable[..., Any], given: tuple[Any, ...]) -> None:
        """Measure, and put the result into a future, unless it was cancelled."""
        try:
            value = measure(*given)
        except BaseException as error:
            if not task.cancelled():
                task.set_exception(error)
        else:
            if not task.cancelled():
                task.set_result(value)
