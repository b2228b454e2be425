"""Calls of a function that measures: in threads, on an event loop, or in an executor; once more where one fails."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

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
