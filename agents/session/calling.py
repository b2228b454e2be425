"""`Session.run`: a function measures what the session asks for, in threads or as tasks of an event loop."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from bandit_envs.kernels import choice, integer, number

from .doubts import about_failures
from .fold import sample_of

__all__ = ["measured"]

PATIENCE = 1.0  # seconds that tasks have to end, once all is over
LOOK = 0.5  # seconds between two looks whether others have told what this run waits for
MOST_FAILED = 10  # measurements in a row: then nothing works, as where a key has expired
FIRST_PAUSE = 0.1  # seconds before a measurement is tried again; twice as many each time


def measured(
    session: Any,
    measure: Callable[..., Any],
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
    elif failed is not None:
        support = session.task.support
        failed = sample_of(session.task, failed if support is None else number("failed", failed, *support))
    lease = math.inf if take_over is None else number("take_over", take_over, 0, above=True)
    names, tabled, recorded = session.names, bool(session.task.items), 0
    waiting: list[Any] = [ask for ask in session.pending if ask.who == who]
    running: dict[Future[Any], Any] = {}
    lost: list[tuple[Any, str]] = []  # what has failed since the last success: recorded at the next one, or at the end
    error, idle = None, False  # what has been raised; whether it has waited for others
    row = 0  # so many failures one after another

    def record_lost() -> int:
        for one, why in lost:
            session._fail(one.number, None if failed == "skip" else failed, who, why)
        count = 0 if failed == "skip" else len(lost)
        lost.clear()
        return count

    with Caller(measure, retries, timeout) as call, ThreadPoolExecutor(workers, "measure") as pool:
        try:
            while True:
                free = workers - len(running) - len(waiting)
                if error is None and free > 0:
                    waiting += session.ask(free, who, take_over=lease)
                now = waiting[: workers - len(running)] if error is None else []
                waiting = waiting[len(now) :]
                for one in now:
                    given = (names[one.arm], one.item) if tabled else (names[one.arm],)
                    running[pool.submit(call, *given)] = one
                if not running:
                    text = _awaited(session, who)
                    if error is None and lost:
                        recorded += record_lost()  # there is nothing else to ask for
                        continue
                    if error is not None or take_over is None or session.done or not text:
                        break
                    if not idle:
                        text += f"; they are asked again if there is no sign of life for {lease:g} s"
                        warnings.warn(text, UserWarning, stacklevel=3)
                    idle = True
                    time.sleep(min(LOOK, lease))
                    continue
                ended = wait(running, None if take_over is None else lease / 3, FIRST_COMPLETED).done
                if not ended:  # a sign of life
                    session.note(f"still measuring {len(running)}", who)
                for done in ended:
                    arm, item = (one := running.pop(done)).arm, one.item
                    problem = done.exception()
                    try:
                        if problem is None:
                            session.tell(one, done.result(), who, item)
                            recorded, row = recorded + 1, 0
                            recorded += record_lost() if error is None else 0
                            continue
                    except ValueError as wrong:
                        if all(ask.number != one.number for ask in session.pending):  # it came too late
                            warnings.warn(str(wrong), UserWarning, stacklevel=3)
                            continue
                        problem = wrong
                    else:
                        if failed is not None and isinstance(problem, Exception):
                            row += 1
                            lost.append((one, type(problem).__name__))
                            if row < MOST_FAILED or error is not None:
                                continue
                            text = f"{row} measurements in a row failed, the last by {problem!r:.200}: the run ends"
                            problem, cause = RuntimeError(f"{text}, and their questions wait for another one"), problem
                            problem.__cause__ = cause
                    problem.add_note(f"measuring {names[arm]!r:.80}" + (f" on the item {item!r:.80}" if tabled else ""))
                    error = error or problem
        except BaseException:  # interrupted: what is being measured is lost, and asked for again
            call.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    with session._now() as state:
        shares = about_failures(state)
    for sentence in shares:
        warnings.warn(sentence, UserWarning, stacklevel=3)
    if error is not None:
        raise error
    if text := _awaited(session, who):
        warnings.warn(text, UserWarning, stacklevel=3)
    return recorded


def _awaited(session: Any, who: str | None) -> str:
    """Whose results are awaited, in words; "" where none are but one's own."""
    names = [ask.who or "nobody" for ask in session.pending if ask.who != who]
    of = ", ".join(dict.fromkeys(names))
    return f"results that others are asked for are awaited, {len(names)}, of {of:.200}" if names else ""


class Exit(NamedTuple):
    """What a coroutine has raised to end the program."""

    error: BaseException


class Caller:
    """Calls a function, or awaits it on an event loop of its own, and again where that fails."""

    def __init__(self, measure: Callable[..., Any], retries: int, timeout: float | None) -> None:
        self.measure, self.retries, self.timeout = measure, retries, timeout
        called = type(measure).__call__  # of an object that can be called
        self.awaited = inspect.iscoroutinefunction(measure) or inspect.iscoroutinefunction(called)
        self.stopped = threading.Event()
        self.ready, self.thread = threading.Event(), threading.Thread(target=self._serve, name="measure", daemon=True)
        self.loop: Any = None

    def _serve(self) -> None:
        """Run the event loop until it is stopped; tasks that are left are cancelled."""
        with asyncio.Runner() as runner:
            self.loop = runner.get_loop()
            self.ready.set()
            self.loop.run_forever()

    def __enter__(self) -> Caller:
        if self.awaited:
            self.thread.start()
            self.ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self.awaited:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(PATIENCE)  # a coroutine that blocks, or is not to be cancelled, is left alone

    def __call__(self, *given: Any) -> Any:
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
                time.sleep(pause)
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
            threading.Thread(target=self._into, args=(task, given), daemon=True).start()
        try:
            found = task.result(self.timeout)
            if isinstance(found, Exit):
                raise found.error
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
            return Exit(error)

    def _into(self, task: Future[Any], given: tuple[Any, ...]) -> None:
        """Measure, and put the result into a future, unless nobody waits for it any more."""
        try:
            value = self.measure(*given)
        except BaseException as error:
            if not task.cancelled():
                task.set_exception(error)
        else:
            if not task.cancelled():
                task.set_result(value)
