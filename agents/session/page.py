"""The page of a session: what to measure next, fields for the results, the arms, and the answer as results come in.

It is one HTML file without a build step, `page.html`, and takes nothing from other machines. A browser learns of news
by server-sent events, and asks for the state then. All who can reach the page may write; so it listens on this machine
alone, or else wants a token in the address.

An address with `who=ann` is a rater's: it shows and takes what is ann's, and of an arm its code alone, until the end.
Its token is made of the name and the page's own token, and opens nothing else.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import functools
import hashlib
import hmac
import logging
import math
import os
import re
import secrets
import select
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from bandit_envs import PROBLEMS
from bandit_envs.instances import Count
from bandit_envs.kernels import choice, integer, json_of

from ..core.optional import require
from .questions import Ask
from .session import Session
from .tables import for_spreadsheets
from .words import against, leeway, meaning, plural, said

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")  # of a request, its port with it
# Addresses to listen on that are none to open, and one for examples that is reached by the same network.
REACHES = {"0.0.0.0": "192.0.2.1", "::": "2001:db8::1"}
# What the page is given of a session, as it is there; of its task, wishes and questions.
OF_SESSION = ("remaining", "money", "delta", "certificate", "doubts", "read", "done", "ended", "waiting", "owed")
ASKED = ("arm", "item", "who", "code", "plate", "well")
OF_TASK, OF_WISHES = ("budget", "items"), ("title", "unit", "plate")
SHOWN = ("event", "kind", "name", "code", "item", "plate", "well", "about", "who", "text", "undone")  # and of an event
MOST_ARMS = 60  # shown at once: of more arms those that wait, the strongest, and those nearest to the boundary
STRONGEST = 10
MOST_BYTES = 100_000  # of what a browser sends
MOST_EVENTS = 15  # of the history, where more are not asked for
MOST_LETTERS = 100  # of the name of a file
MOST_NAMES = 24  # of the arms of the answer
MOST_NOTES, MOST_OF_A_NOTE = 100, 2000  # remarks of a rater, and letters of one
MOST_PORTS = 65535
MOST_WRITTEN = 4000  # bytes of an error: a pipe takes so many at once, or none (PIPE_BUF)
PAUSE = 0.5  # seconds between two looks for news
OWNERS = ("add", "withdraw", "table", "tell")  # what a rater cannot do
CHANGES = ("ask", "tell", "tell_all", "table", "undo", "note", "add", "withdraw")
QUIET = 20  # looks without news after which something is sent all the same, so that connections stay open
# What a rater sees of the state, besides own questions and results.
RATERS = ("title", "unit", "noun", "nouns", "question", "binary", "dimensions", "items", "support", "done")
WAITING = 2048  # connections that are not accepted yet


def state(session: Session, find: str = "", last: int = MOST_EVENTS, every: bool = False) -> dict[str, Any]:
    """What the page shows, JSON-able: `last` events, and arms whose names hold `find`, `every` one or the charted."""
    table, task = session.arms(), session.task
    columns = {name: table[name].to_numpy() for name in table.columns}
    ahead, unsure, pending = session.next(), session.unsure(), list[dict[str, Any]]()
    for ask in session.pending:
        own = {name: getattr(ask, name) for name in ASKED}
        pending.append({"event": ask.number, "name": str(columns["name"][ask.arm]), **own})
    near = np.where(columns["withdrawn"], np.inf, np.nan_to_num(unsure, nan=-1.0))  # a control is always shown
    means = columns.get("mean", np.zeros(len(near))) * (-1 if session.minimize else 1)
    near[np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")[:STRONGEST]] = -1
    near[columns["pending"] > 0] = -2
    if ahead is not None:
        near[ahead] = -3
    order = np.argsort(near, kind="stable")
    if find:
        order = np.array([arm for arm in order if find.lower() in str(columns["name"][arm]).lower()], np.int64)
    charted = {*order[:MOST_ARMS].tolist()}
    compared = against(session.comparison()) if session.compares and len(session) else None
    arms = []
    for arm in sorted(order.tolist() if every else charted):
        row = {name: _plain(column[arm]) for name, column in columns.items()}
        if compared and row["name"] in compared[1]:
            row |= dict(zip((compared[0], "its interval", "p", "against"), compared[1][row["name"]], strict=True))
        arms.append({"arm": arm, "unsure": _plain(unsure[arm]), "charted": arm in charted, **row})
    sure = np.flatnonzero((columns["pulls"] > 0) & ~columns["withdrawn"] & np.isfinite(unsure))
    least = None if not len(sure) else int(sure[np.argmin(unsure[sure])])
    answer = [str(name) for name in columns["name"][columns["answer"].astype(bool)]]
    wishes, claims = session.wishes, columns.get("claim")
    noun = wishes.get("noun", "option")
    return {
        **{name: getattr(session, name) for name in OF_SESSION},
        **{name: getattr(task, name) for name in OF_TASK},
        **{name: wishes.get(name) for name in OF_WISHES},
        "who": None,
        "noun": noun,
        "nouns": plural(noun),
        "question": meaning(session),
        "local": PROBLEMS.find(task.problem).local,
        "binary": task.distribution == "bernoulli",
        "settled": None if claims is None or "" in claims else int(np.isin(claims, ["in", "out"]).sum()),
        "parameters": dict(task.parameters),
        "agent": session.label,
        "count": len(session),
        "leeway": leeway(session).rstrip(","),
        "dimensions": task.D,
        "support": None if task.distribution == "gaussian" else task.support,
        "next": None if ahead is None else {"arm": ahead, "name": str(columns["name"][ahead])},
        "boundary": session.boundary,
        "pending": pending,
        "least": None if least is None else {"name": str(columns["name"][least]), "errors": float(unsure[least])},
        "answer": answer[:MOST_NAMES],
        "answers": len(answer),
        "tied": [str(columns["name"][arm]) for arm in session.tied[:MOST_NAMES]],
        "arms": arms,
        "of": len(columns["name"]),
        "events": events(session.history(2 * last), pending)[:last],
        "raters": wishes.get("raters", []),
        "names": [str(name) for name in columns["name"][~columns["withdrawn"].astype(bool)][:1000]],
    }


def events(history: Any, pending: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a history, the last one first, JSON-able, without questions whose results are there."""
    found, asked = list[dict[str, Any]](), {ask["event"] for ask in pending}
    for one in history.iloc[::-1].to_dict("records"):
        undoable = not one["undone"] and (one["kind"] in ("told", "counted", "arm withdrawn") or one["event"] in asked)
        if undoable or one["undone"] or one["kind"] != "asked":
            value = [one[name] for name in one if name.startswith("value") and not np.isnan(one[name])] or said(one)
            shown = {name: _plain(one[name]) for name in SHOWN if name in one}
            found.append({**shown, "value": value, "undoable": undoable, "at": one["at"].isoformat()})
    return found


def rated(session: Session, who: str) -> dict[str, Any]:
    """What the page shows a rater, JSON-able: own questions and results, by codes, and the answer once it is over."""
    whole, history, blind = state(session), session.history(), session.wishes.get("blind")
    asks = [ask for ask in whole["pending"] if ask["who"] == who]
    mine = history[(history["who"] == who) & history["kind"].isin(["asked", "told"])]
    shown = events(mine.tail(2 * MOST_EVENTS), asks)[:MOST_EVENTS]
    for one in (*asks, *shown):
        one["name"] = (one.pop("code", None) or "") if blind else one["name"]
        one.pop("arm", None)
    return {name: whole[name] for name in RATERS} | {
        "who": who,
        "next": whole["next"] and True,
        "pending": asks,
        "events": shown,
        "count": int(((mine["kind"] == "told") & ~mine["undone"].astype(bool)).sum()),
        "answer": whole["answer"] if whole["done"] else [],
        "answers": whole["answers"] if whole["done"] else 0,
    }


def _plain(value: object) -> object:
    """A value of a table for JSON: no NaN, no NumPy."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (str, int)) or isinstance(value, float) and math.isfinite(value) else None


async def news(session: Session, gone: Callable[[], Any], pause: float = PAUSE) -> AsyncIterator[str]:
    """Server-sent events: the number of the last event, whenever there is a new one, until the listener is `gone`."""
    known, quiet = -1, 0
    while not await gone():
        try:
            version = await asyncio.to_thread(lambda: session.version)
        except (ValueError, FileNotFoundError):  # a browser asks for the state, and is given the reason
            return
        quiet += 1
        if version != known:
            known, quiet = version, 0
            yield f"data: {version}\n\n"
        elif quiet >= QUIET:
            quiet = 0
            yield ": still there\n\n"
        await asyncio.sleep(pause)


def application(session: Session, token: str | None = None) -> Any:
    """The Starlette application of a session; ImportError without Starlette.

    `token`: what the address must have as `token=...`; None: the address must have the name of this machine.
    """
    web, routing = _starlette("applications"), _starlette("routing")
    asked, changes = _Requests(session, token), _Changes(session)
    shown = {"": asked.page, "state": asked.look, "news": asked.listen}
    owned = {"forecast": asked.foretell, "link": asked.link}
    owned |= dict.fromkeys(("history.csv", "results.csv", "plate.csv"), asked.export)
    routes = [routing.Route(f"/{name}", asked.guarded(one, name in owned)) for name, one in (shown | owned).items()]
    for name in CHANGES:
        change = asked.guarded(asked.changing(getattr(changes, name)), name in OWNERS)
        routes.append(routing.Route(f"/{name}", change, methods=["POST"]))
    return web.Starlette(routes=routes)


def _starlette(module: str) -> Any:
    return require(f"starlette.{module}", "the page of a session", "session")


class _Requests:
    """What a browser may ask for."""

    def __init__(self, session: Session, token: str | None) -> None:
        self.session, self.token = session, token
        self.responses, self.errors, self.pool = map(_starlette, ("responses", "requests", "concurrency"))
        self.html = Path(__file__).with_name("page.html").read_text(encoding="utf-8")

    def refusal(self, error: object, status: int) -> Any:
        return self.responses.JSONResponse({"error": " ".join(str(error).split())}, status)

    def guarded(self, handler: Callable[[Any], Any], owner: bool = False) -> Callable[[Any], Any]:
        @functools.wraps(handler)
        async def guard(request: Any) -> Any:
            # Without a token, a page elsewhere must not reach this one under a name of its own that leads here.
            if self.token is None and not HOST.fullmatch(request.headers.get("host", "")):
                return self.responses.PlainTextResponse("this page is asked for by the name of its machine", 400)
            given, who = request.query_params.get("token", ""), request.query_params.get("who") or None
            keys = [] if self.token is None else [self.token, *([] if who is None else [rater_token(self.token, who)])]
            if keys and not any(secrets.compare_digest(given.encode(), key.encode()) for key in keys):
                return self.responses.PlainTextResponse("this address needs its token: copy all of it", 403)
            if owner and who is not None:
                return self.refusal("the address of a rater cannot do this", 403)
            request.state.who = who
            return await handler(request)

        return guard

    def changing(self, change: Callable[[dict[str, Any], str | None], object]) -> Callable[[Any], Any]:
        """A handler of what changes the session: JSON in, so that pages of others cannot send it; JSON out."""

        async def handler(request: Any) -> Any:
            kind, body = request.headers.get("content-type", "").partition(";")[0].strip(), bytearray()
            if kind != "application/json":
                return self.refusal("send JSON", 415)
            try:
                async for part in request.stream():
                    body += part
                    if len(body) > MOST_BYTES:
                        return self.refusal(f"send at most {MOST_BYTES} bytes", 413)
                if not isinstance(asked := json_of(bytes(body)), dict):
                    raise ValueError("send a JSON object")
                asked["who"] = request.state.who or asked.get("who")
                done = await self.pool.run_in_threadpool(change, asked, request.state.who)
            except self.errors.ClientDisconnect:  # there is no reader
                return self.refusal("the request was not sent to its end", 400)
            except (ValueError, TypeError, KeyError, FileNotFoundError) as error:
                return self.refusal(error, 400)
            return self.responses.JSONResponse({"done": done})

        return handler

    async def page(self, request: object) -> object:
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        policy += "; frame-ancestors 'none'; base-uri 'none'"
        headers = {"content-security-policy": policy, "referrer-policy": "no-referrer", "cache-control": "no-store"}
        headers["x-frame-options"] = "DENY"  # so that no other page is laid over it
        return self.responses.HTMLResponse(self.html, headers=headers)

    async def look(self, request: Any) -> Any:
        try:
            if request.state.who is not None:
                found = await self.pool.run_in_threadpool(rated, self.session, request.state.who)
            else:
                last = integer("events", int(request.query_params.get("events", MOST_EVENTS)), 1)
                find, every = request.query_params.get("find", ""), "every" in request.query_params
                found = await self.pool.run_in_threadpool(state, self.session, find, last, every)
        except (ValueError, FileNotFoundError) as error:  # the store has been lost meanwhile
            return self.refusal(error, 503)
        return self.responses.JSONResponse(found)

    async def foretell(self, request: object) -> Any:
        """How many more measurements it takes; a request of its own, as it takes seconds."""
        session = self.session
        try:
            said = (await self.pool.run_in_threadpool(session.forecast)).until()
        except (ValueError, FileNotFoundError) as error:
            said = session.progress if session.task.items and isinstance(error, ValueError) else ""
        return self.responses.JSONResponse({"forecast": said})

    async def listen(self, request: Any) -> Any:
        async def gone() -> bool:
            return bool(getattr(request.app.state, "closing", bool)() or await request.is_disconnected())

        headers = {"cache-control": "no-store", "content-type": "text/event-stream"}
        return self.responses.StreamingResponse(news(self.session, gone), headers=headers)

    async def export(self, request: Any) -> object:
        name, plate = request.url.path[1:], request.query_params.get("plate", "")
        made = {"history.csv": self.session.history, "results.csv": self.session.results}
        mapped = functools.partial(self.session.plate_map, int(plate) if plate.isdecimal() else plate)
        try:
            table = for_spreadsheets(await self.pool.run_in_threadpool(made.get(name, mapped)))
        except ValueError as error:
            return self.refusal(error, 400)
        headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
        return self.responses.Response(table.to_csv(index=name not in made), media_type="text/csv", headers=headers)

    async def link(self, request: Any) -> object:
        query = {"who": request.query_params.get("name", "")}
        query |= {} if self.token is None else {"token": rater_token(self.token, query["who"])}
        return self.responses.JSONResponse({"link": "?" + urlencode(query)})


class _Changes:
    """What a browser may change: by what it sends, and the rater whose address it has."""

    def __init__(self, session: Session) -> None:
        self.session, self.lock = session, threading.Lock()  # of two who answer one question, the second is refused

    def ask(self, asked: dict[str, Any], rater: str | None) -> list[Any]:
        new = self.session.ask(integer("n", asked.get("n", 1), 1, 1000), asked["who"])
        arms: list[Any] = [int(arm) if arm.item is None else {"arm": int(arm), "item": arm.item} for arm in new]
        return [arm.number for arm in new] if rater else arms

    def tell(self, asked: dict[str, Any], _: str | None) -> None:
        arm = Ask(asked["question"], asked.get("arm", 0), None) if "question" in asked else asked.get("arm", "")
        count = {name: asked[name] for name in Count._fields if asked.get(name) is not None}
        self.session.tell(arm, asked.get("value"), asked.get("who"), asked.get("item"), **count)

    def tell_all(self, asked: dict[str, Any], rater: str | None) -> int:
        """Record results of open questions, or none; an error names the first row that is wrong, from 1."""
        with self.lock:
            open_ = {ask.number: ask for ask in self.session.pending if rater in (None, ask.who)}
            results = list[tuple[Ask, object]]()
            for i, row in enumerate(asked["results"], 1):
                if (ask := open_.pop(row["question"], None)) is None:
                    raise ValueError(f"row {i}: no question is open for this value")
                results.append((ask, row["value"]))
            return self.session.tell_all(results, asked["who"])

    def table(self, asked: dict[str, Any], _: str | None) -> int:
        """Record the results in a file, {"name": .., "data": in base64}: all of them or none."""
        name, data = Path(str(asked.get("name"))).name, base64.b64decode(str(asked.get("data")), validate=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / (name.strip(". ")[-MOST_LETTERS:] or "table.csv")
            path.write_bytes(data)
            try:
                return self.session.tell_table(path, who=asked["who"], again=asked.get("again", False))
            except (ValueError, ImportError) as error:
                raise ValueError(str(error).replace(f"{folder}{os.sep}", "")) from None

    def note(self, asked: dict[str, Any], rater: str | None) -> None:
        text = asked.get("text", "")
        if rater is not None:
            history = self.session.history()
            many = int(((history["who"] == rater) & (history["kind"] == "note")).sum())
            if many >= MOST_NOTES or len(str(text)) > MOST_OF_A_NOTE:
                most = f"{MOST_NOTES} remarks of {MOST_OF_A_NOTE} letters at most"
                raise ValueError(f"a rater may write {most}, got {len(str(text))} letters after {many} remarks")
        self.session.note(text, asked["who"])

    def undo(self, asked: dict[str, Any], rater: str | None) -> int:
        """Undo an event; of the owner also a table, a plate, or a batch: {"event": .., "batch": "all" or "open"}."""
        session, event = self.session, asked.get("event")
        if rater is None and asked.get("table") is not None:
            return session.undo_table(str(asked["table"]))
        if rater is None and asked.get("plate") is not None:
            return session.undo(plate=asked["plate"])
        if rater is None and asked.get("batch") is not None:
            return session.undo_batch(event, results=choice("batch", asked["batch"], ["all", "open"]) == "all")
        if rater is not None and rater not in session.history(event=integer("event", event, 1))["who"].tolist():
            raise ValueError("this is no result or question of yours")
        if rater is not None and session.done:
            raise ValueError("the session is over, and its answer stays: the address of a rater cannot undo any more")
        return session.undo(event)

    def add(self, asked: dict[str, Any], _: str | None) -> int:
        return self.session.add_arm(asked.get("arm", ""))

    def withdraw(self, asked: dict[str, Any], _: str | None) -> None:
        self.session.withdraw_arm(asked.get("arm", ""))


def rater_token(token: str, who: str) -> str:
    """The token of a rater's address."""
    return hmac.new(_stretched(token), who.encode(), "sha256").hexdigest()[:32]


@functools.lru_cache(maxsize=8)
def _stretched(token: str) -> bytes:
    """A key from the page's own token, slowly: who has a rater's address may try words, and each costs some 50 ms."""
    return hashlib.scrypt(token.encode(), salt=b"a rater of bandit-envs", n=2**14, r=8, p=1)


def serve(
    session: Session,
    host: str = "127.0.0.1",
    port: int = 8765,
    tell: Callable[[str], None] = print,
    token: str | None = None,
) -> None:
    """Serve the page until the process is interrupted.

    Args:
        session: what it shows.
        host: address to listen on, as 0.0.0.0 for other machines, for which the page wants a token.
        port: to listen on; 0: any that is free.
        tell: is called with the address of the page, once no other program can have it.
        token: of the address beyond this machine, so that links stay; None: a fresh one.

    Raises:
        ValueError: for what is no port, or no token. OSError: where the port is taken, or the address is not one of
            this machine. ImportError: without Starlette or uvicorn.
    """
    integer("port", port, 0, MOST_PORTS)
    uvicorn = require("uvicorn", "the page of a session", "session")
    if token is not None and not re.fullmatch(r"[\w-]{12,100}", token, re.ASCII):
        raise ValueError(f"a token has 12 to 100 letters, digits, - or _, got {token!r:.120}")
    token = None if host in LOCAL_HOSTS else token or secrets.token_urlsafe(16)
    app = application(session, token)
    handler = Unwaiting()  # of warnings and errors of the server
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))
    app.state.closing = lambda: server.should_exit  # browsers that listen for news are let go
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in listening(host, port)]
        own = own_address(host) if host in REACHES else host
        shown = f"[{own}]" if ":" in own else own
        tell(f"http://{shown}:{sockets[0].getsockname()[1]}/" + ("" if token is None else f"?token={token}"))
        server.run(sockets)


def own_address(host: str) -> str:
    """Where others reach this machine if it listens on all of its addresses; its name, if none is found."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as line:
        line.connect((REACHES[host], 9))  # nothing is sent: it only shows from which address it would be
        return str(line.getsockname()[0])
    return socket.gethostname()


def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on a port of all addresses of a host; OSError where this machine cannot have them."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host!r:.200} is no address to listen on: {getattr(error, 'strerror', error)}") from None
    sockets: list[socket.socket] = []
    for family, address in dict.fromkeys((one[0], str(one[4][0])) for one in found):
        try:
            sockets.append(socket.create_server((address, port), family=family, backlog=WAITING))
        except OSError as error:
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):  # as ::1 of localhost without IPv6
                continue
            for one in sockets:
                one.close()
            taken = error.errno == errno.EADDRINUSE
            why = "is taken by another program: choose another one, or 0 for any" if taken else error.strerror
            raise OSError(f"the port {port} of {host} {why}") from error
        port = port or sockets[0].getsockname()[1]
    if not sockets:
        raise OSError(f"{host} is no address of this machine")
    return sockets


class Unwaiting(logging.StreamHandler[Any]):
    """Writes what fits at once, and drops it otherwise: a pipe that is full must not hold up a server."""

    def format(self, record: logging.LogRecord) -> str:
        """The end of the text, where it is long: the last lines of a traceback name the error."""
        return super().format(record).encode(errors="replace")[-MOST_WRITTEN:].decode(errors="ignore")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless that would have to wait."""
        try:
            free = bool(select.select([], [self.stream], [], 0)[1])
        except (OSError, ValueError, TypeError, AttributeError):  # no stream of the system, which never waits
            free = True
        if free:
            super().emit(record)
