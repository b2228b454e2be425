"""`LanguageAgent`: a function from messages to text, as a language model behind an endpoint, is an agent.

It is asked in the words of `TextView`, and its commands are its decisions. Episodes that are played side by side are
asked at the same time. Every reply is kept as soon as it has come, by a digest of what it answers, so that a run that
was killed asks nothing twice.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import hashlib
import inspect
import json
import math
import os
import sqlite3
import tempfile
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.kernels import integer, number
from bandit_envs.text import Narrator, Unreadable

from .core.agent import ALL_PROBLEMS, Agent, Bools, Ints, Observation, seen_means

SHOWN = ("pulls", "remaining", "pending")  # by which a decision is seen to be made
COUNTS = ("calls", "tokens", "unreadable", "forfeited")  # of an episode: replies, their tokens, ..; 1 without an answer
SOON = 10.0  # seconds that an interrupt waits for calls
OWN_ERRORS = (NameError, AttributeError, TypeError, ImportError)  # of a function that is wrong: tried once
KEPT = "agents.LanguageAgent 1"  # what a store is of
TABLES = (
    "replies (digest TEXT PRIMARY KEY, name TEXT, reply TEXT, tokens INTEGER)",
    "calls (name TEXT, tokens INTEGER)",
)
Messages = list[dict[str, str]]


class EndpointError(Exception):
    """A model that does not answer, or is not to be asked any more."""


class LanguageAgent:
    """A function from messages to text as an agent, wherever an agent's name is taken.

    In the views "table" and "raw" it is asked with the task and the last observation alone, in "history" with all that
    was said. Where it has answered `patience` times in a row what cannot be read, or has no answer at `max_pulls`, the
    episode is forfeited. It scores 0, but under certificates, where arms are then pulled in turn, and in loops of one's
    own, where the plug-in answer is given. Tables of results have the columns `calls`, `tokens`, `unreadable` (replies)
    and `forfeited`.

    Args:
        complete: a function, or a coroutine function, from messages, a list of {"role": .., "content": ..} with the
            roles system, user and assistant, to the reply: its text, or the pair (text, tokens). Functions are called
            in threads.
        name: of the model and its settings, by which results and the store know it: another model under the same name
            gets the replies of the first. None: that of the function; a store needs one, and so do results that another
            process is to go on with.
        view, story, tool_calls, patience: as for `bandit_envs.text.TextView`.
        system: a text of one's own in front of all.
        at_once: how many calls may run at the same time, without those that are late.
        timeout: seconds that a call may take; None: any. retries: further tries of a call that fails or is late; errors
            of the function itself, as a NameError, are not tried again.
        wait: seconds before the first of these; before each other one twice as long, at most a minute.
        max_calls, max_tokens: calls that the store has counted, failed and late ones too, and tokens of the replies
            that have come, at which an error ends the run in place of another call.
        store: a file in which replies are kept, with digests in place of what was said to the model; None: one that
            goes with this object.

    Raises:
        ValueError: for other values. EndpointError: while it plays, where a call has failed too often, at a limit, and
            for a reply that is no text.
    """

    solves, source, needs, observation = ALL_PROBLEMS, "", "a language model", "statistics"

    def __init__(
        self,
        complete: Callable[[Messages], Any],
        *,
        name: str | None = None,
        view: str = "table",
        story: str = "buttons",
        tool_calls: bool = False,
        patience: int = 3,
        system: str | None = None,
        at_once: int = 8,
        timeout: float | None = 120.0,
        retries: int = 3,
        wait: float = 1.0,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        store: str | Path | None = None,
    ) -> None:
        if not callable(complete):
            raise ValueError(f"complete must be a function from messages to text, got {complete!r:.200}")
        self.complete = complete
        self.name = getattr(complete, "__name__", type(complete).__name__).strip("<>") if name is None else name
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be text, or None, got {name!r:.200}")
        if store is not None and name is None:
            raise ValueError("a store needs a name=, of the model and its settings, by which it knows the replies")
        self.mark = "" if name else f", unnamed {uuid.uuid4().hex[:8]}"  # nothing else is known of the function
        self.words: dict[str, Any] = {"story": story, "view": view, "tool_calls": tool_calls}
        if system is not None and not isinstance(system, str):
            raise ValueError(f"system must be text, or None, got {system!r:.200}")
        self.system, self.patience = system, integer("patience", patience, 1)
        Narrator(Task("Threshold", {}, K=2, budget=1), **self.words)  # refuses other words
        self.at_once, self.retries = integer("at_once", at_once, 1), integer("retries", retries, 0)
        self.timeout = None if timeout is None else number("timeout", timeout, 0, above=True)
        self.wait = number("wait", wait, 0)
        limits = {"max_calls": max_calls, "max_tokens": max_tokens}
        self.most = {x: math.inf if most is None else integer(x, most, 0) for x, most in limits.items()}
        self.lasts = store is not None
        if store is None:
            opened, store = tempfile.mkstemp(suffix=".replies")
            os.close(opened)
            atexit.register(Path(store).unlink, missing_ok=True)
        self.store = Path(store).absolute()
        with closing(self._opened()):
            pass

    def __call__(self, task: Any) -> Speaker:
        """The agent for a task, or an environment."""
        return Speaker(task, self)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"LanguageAgent({self.name}, {', '.join(f'{key}={value!r}' for key, value in self.words.items())})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_mine"}

    def described(self) -> str:
        """All that the replies depend on, as far as it is known here: no word of what is said to the model."""
        said = {**self.words, "patience": self.patience, "system": self.system and _digest(self.system)}
        return f"{self.name}: {', '.join(f'{key}={value!r}' for key, value in said.items())}"

    # Replies, in the thread of the event loop

    def _opened(self) -> sqlite3.Connection:
        """The store, made where there is none."""
        if not self.store.parent.is_dir():
            raise ValueError(f"store must be a file in a folder that is there, got {str(self.store)!r}")
        try:
            kept = sqlite3.connect(self.store, timeout=60.0, check_same_thread=False, isolation_level=None)
            kept.execute("PRAGMA synchronous = OFF")  # what is written outlives the process, if not the machine
            for table in TABLES:
                kept.execute(f"CREATE TABLE IF NOT EXISTS {table}")
            kept.execute("DELETE FROM calls WHERE name IS NULL")  # whether it can be written to
            kept.execute("SELECT digest, name, reply, tokens FROM replies LIMIT 1")
        except sqlite3.DatabaseError as error:
            text = f"store must be a new file that can be written to, or one of replies, got {str(self.store)!r}:"
            raise ValueError(f"{text} {error}") from error
        return kept

    @property
    def _here(self) -> tuple[int, sqlite3.Connection, asyncio.Semaphore]:
        """Of this process: its number, the store, and the calls that may run."""
        if vars(self).get("_mine", (0,))[0] != os.getpid():
            self._mine = os.getpid(), self._opened(), asyncio.Semaphore(self.at_once)
        return self._mine

    def _do(self, query: str, *values: Any) -> sqlite3.Cursor:
        """Read from the store, or write to it."""
        try:
            return self._here[1].execute(query, values)
        except sqlite3.Error as error:
            raise EndpointError(f"the store {self.store} of {self.name} cannot be used: {error}") from error

    def spent(self) -> tuple[int, int]:
        """The calls under this name that the store has counted, and the tokens of their replies."""
        calls, tokens = self._do("SELECT COUNT(*), TOTAL(tokens) FROM calls WHERE name = ?", self.name).fetchone()
        return calls, int(tokens)

    async def reply(self, seed: int, messages: Messages, gate: Gate) -> tuple[str, int]:
        """The text that answers messages in the episode of a public seed, and its tokens: kept, or asked for."""
        digest = _digest([KEPT, self.name, seed, messages])
        for tried in range(self.retries + 1):
            async with self._here[2]:
                if (found := self._known(digest)) is not None:
                    return found
                if gate.lost:
                    raise EndpointError("another call has failed")
                call = asyncio.ensure_future(self._call(digest, messages, self._counted()))
                await asyncio.wait([call], timeout=self.timeout)
            error = None
            if not call.done():
                call.add_done_callback(lambda call: call.cancelled() or call.exception())  # it is kept, should it come
                why = f"took longer than {self.timeout} s"
            elif (error := call.exception()) is None:
                return call.result()
            else:
                why = f"failed: {error!r:.300}"
            if isinstance(error, EndpointError):
                raise error
            if isinstance(error, OWN_ERRORS):
                break
            if tried < self.retries:
                await asyncio.sleep(min(self.wait * 2.0**tried, 60.0))
        raise EndpointError(f"{self.name} was called {tried + 1}x for a reply, and the last call {why}") from error

    def _known(self, digest: str) -> tuple[str, int] | None:
        """The reply in the store, and its tokens."""
        found: Any = self._do("SELECT reply, tokens FROM replies WHERE digest = ?", digest).fetchone()
        return found  # type: ignore[no-any-return]

    def _counted(self) -> Any:
        """The number of a call that begins, unless a limit is reached."""
        for name, count in zip(self.most, self.spent() if min(self.most.values()) < math.inf else (), strict=False):
            if count >= self.most[name]:
                kept = f"; replies are kept in {self.store}" if self.lasts else ""
                text = f"{name}={self.most[name]} of {self.name} is reached, with {count:,}{kept}"
                raise EndpointError(f"{text}. With a larger {name} the same run goes on from there")
        return self._do("INSERT INTO calls VALUES (?, 0)", self.name).lastrowid

    async def _call(self, digest: str, messages: Messages, number: Any) -> tuple[str, int]:
        """Ask, and keep the reply."""
        made = self._checked(await self._asked([dict(message) for message in messages]))
        self._do("UPDATE calls SET tokens = ? WHERE rowid = ?", made[1], number)
        self._do("INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?)", digest, self.name, *made)
        return self._known(digest) or made  # of two replies to the same the first one counts

    async def _asked(self, messages: Messages) -> Any:
        if inspect.iscoroutinefunction(self.complete):
            found = self.complete(messages)
        else:
            made: Future[Any] = Future()
            made.set_running_or_notify_cancel()

            def work() -> None:
                try:
                    made.set_result(self.complete(messages))
                except BaseException as error:  # some would end the thread of the loop
                    harmless = isinstance(error, Exception) and not isinstance(error, StopIteration)
                    made.set_exception(error if harmless else RuntimeError(repr(error)))

            threading.Thread(target=work, daemon=True).start()  # a call that never returns does not hold up the end
            found = await asyncio.wrap_future(made)
        try:
            return await found if inspect.isawaitable(found) else found
        except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            raise RuntimeError(repr(error)) from error

    def _checked(self, made: Any) -> tuple[str, int]:
        text, tokens = made if isinstance(made, tuple) and len(made) == 2 else (made, 0)
        if not isinstance(text, str) or not isinstance(tokens, (int, np.integer)) or not 0 <= tokens < 2**53:
            raise EndpointError(f"complete of {self.name} must return text, or (text, tokens), got {made!r:.200}")
        return text.encode("utf-8", "replace").decode(), int(tokens)


@dataclass
class Gate:
    """The calls of one decision."""

    lost: BaseException | None = None  # after which no call is begun


@functools.cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """An event loop in a thread of this process, in which clients may keep their connections."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


@dataclass(eq=False)
class Talk:
    """What was said in an episode, and what came of it."""

    seed: int  # the public one
    names: list[str]
    opening: Messages
    said: Messages
    seen: dict[str, NDArray[Any]] | None = None  # at the last decision
    unread: int = 0  # replies in a row
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    answer: tuple[int, ...] | None = None
    command: tuple[int, int] | None = None  # the last decision: arm and times; None: to stop


@dataclass(eq=False)
class Talks:
    """State of E episodes."""

    each: NDArray[Any]  # (E,), a `Talk` each, or None


class Speaker(Agent):
    """A `LanguageAgent` that plays a task."""

    name = "language-agent"
    language: LanguageAgent
    solves, counts = ALL_PROBLEMS, COUNTS
    anytime, resumes, stops, bulk, prices, sees_pending, pays = False, False, True, True, True, True, True

    def __new__(cls, *arguments: Any, **keywords: Any) -> Speaker:
        made: Speaker = object.__new__(cls)
        made._parameters = {}  # no copy of what is asked
        return made

    def __init__(self, task: Any, language: LanguageAgent) -> None:
        vars(self).update(name=language.name, language=language, complete=language.complete)
        super().__init__(task)
        if self.task.actions != "full":
            text = "names its own answer, and pulls in bulk: it needs actions='full',"
            raise ValueError(f"{self.name} {text} got {self.task.actions!r}")
        self.narrator = Narrator(self.task, **language.words)

    def for_task(self, task: Task, **changed: Any) -> Agent:
        return self if task == self.task and not changed else type(self)(task, self.language, **changed)

    def description(self, alike: bool) -> str:
        """What results depend on."""
        return f"agents.language:LanguageAgent{self.language.mark * (not alike)}, {self.language.described()}"

    def initial_state(self, observation: Observation) -> Talks:
        return Talks(np.full(len(observation["pulls"]), None))

    def choose(self, observation: Observation, state: Talks) -> tuple[Ints, Ints]:
        rows = [{name: array[e].copy() for name, array in observation.items()} for e in range(len(state.each))]
        asked = [(state.each[e], row) for e, row in enumerate(rows) if self._goes_on(state, e, row)]
        for (talk, _), command in zip(asked, self._decide(asked), strict=True):
            talk.command = command
        decided = np.array([talk.command or (self.task.K, 1) for talk in state.each], np.int64)
        return decided[:, 0].copy(), decided[:, 1].copy()

    def _goes_on(self, state: Talks, e: int, row: dict[str, NDArray[Any]]) -> bool:
        """Whether the model is to be asked in an episode, whose talk is begun where it is new."""
        talk, seed, asked = state.each[e], int(row["public_seed"][0]), self.narrator.asked(row)
        if talk is None or talk.seed != seed or (talk.seen is not None and (asked < talk.seen["pulls"]).any()):
            names, system = self.narrator.names(seed), self.language.system
            opening = [{"role": "system", "content": system}] if system is not None else []
            opening.append({"role": "user", "content": self.narrator.opening(names, row)})
            talk = state.each[e] = Talk(seed, names, opening, [*opening])
        elif talk.seen is not None and all((row[x] == talk.seen[x]).all() for x in row if x in SHOWN):
            return False  # the episode has ended, another rule has decided, or the same is asked again
        return talk.answer is None and not talk.counts["forfeited"] and asked.sum() < (self.task.max_pulls or math.inf)

    def _decide(self, asked: list[tuple[Talk, dict[str, Any]]]) -> list[tuple[int, int] | None]:
        """What the model decides in several episodes: arm and times, or None at the end."""
        if not asked:
            return []

        gate = Gate()

        async def together() -> list[Any]:
            tasks = [asyncio.ensure_future(self._answered(*one, gate)) for one in asked]
            try:
                _, open = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                if open:  # one has failed: what was asked already is kept, if it comes soon
                    await asyncio.wait(open, timeout=SOON)
            finally:
                for task in tasks:
                    task.cancel()  # what still runs outlives it in its own thread
            if gate.lost is not None:
                raise gate.lost
            return [task.result() for task in tasks]

        running = asyncio.run_coroutine_threadsafe(together(), _loop(os.getpid()))
        try:
            return running.result()
        except EndpointError:
            raise
        except BaseException as error:
            gate.lost = error
            with contextlib.suppress(Exception):
                running.result(SOON)
            running.cancel()
            error.add_note(f"replies of {self.name} are in {self.language.store}: the same run goes on from there")
            raise

    async def _answered(self, talk: Talk, row: dict[str, Any], gate: Gate) -> tuple[int, int] | None:
        """What the model decides in one episode, where this has been seen."""
        try:
            if talk.seen is not None:
                shown = self.narrator.shown(talk.names, talk.seen, row)
                if self.narrator.view != "history":
                    *first, last = talk.opening
                    talk.said, shown = first, f"{last['content']}\n\n{shown}"
                talk.said.append({"role": "user", "content": shown})
            talk.seen = row
            while True:
                text, tokens = await self.language.reply(talk.seed, talk.said, gate)
                talk.said.append({"role": "assistant", "content": text})
                talk.counts["calls"] += 1
                talk.counts["tokens"] += tokens
                try:
                    command = self.narrator.read(text, talk.names, row)
                except Unreadable as error:
                    talk.counts["unreadable"] += 1
                    talk.unread += 1
                    if talk.unread >= self.language.patience:
                        talk.counts["forfeited"] = 1
                        return None
                    talk.said.append({"role": "user", "content": f"{error} {self.narrator.allowed(talk.names, row)}"})
                    continue
                talk.unread = 0
                if command.arm < self.task.K:
                    return command.arm, command.times
                talk.answer = command.answer
                return None
        except BaseException as error:
            gate.lost = gate.lost or error
            raise

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The answer that was given; until then, and where the episode is forfeited, the plug-in one."""
        batch, single = self._batched(observation)
        answer = self.problem.plug_in(seen_means(batch, slots))
        talks = [] if state is None else state.each if slots is None else state.each[slots]
        for row, talk in zip(answer, talks, strict=False):
            if talk is not None and talk.answer is not None:
                row[:] = False
                row[[*talk.answer]] = True
        return answer[0] if single else answer

    def tallied(self, state: Talks, slots: Ints) -> dict[str, NDArray[Any]]:
        counts = [(one or Talk(0, [], [], [])).counts for one in state.each[slots]]
        return {name: np.array([one[name] for one in counts], np.int64) for name in COUNTS}
