"""The page of a session: what to measure next, fields for the results, the arms, and the answer as results come in.

It is one HTML file without a build step, `page.html`, and takes nothing from other machines. A browser learns of news
by server-sent events, and asks for the state then. All who can reach the page may write; so it listens on this machine
alone, or else wants a token in the address.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import logging
import math
import re
import secrets
import select
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np

from bandit_envs.kernels import integer

from ..core.optional import require
from .session import Ask, Session

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")  # of a request, its port with it
# Addresses to listen on that are none to open, and one for examples that is reached by the same network.
REACHES = {"0.0.0.0": "192.0.2.1", "::": "2001:db8::1"}
MOST_ARMS = 60  # shown at once: of more arms those that wait, and those nearest to the boundary
MOST_BYTES = 100_000  # of what a browser sends
MOST_EVENTS = 15  # of the history
MOST_NAMES = 24  # of the arms of the answer
MOST_PORTS = 65535
MOST_WRITTEN = 4000  # bytes of an error: a pipe takes so many at once, or none (PIPE_BUF)
PAUSE = 0.5  # seconds between two looks for news
QUIET = 20  # looks without news after which something is sent all the same, so that connections stay open
WAITING = 2048  # connections that are not accepted yet


def state(session: Session, find: str = "") -> dict[str, Any]:
    """What the page shows, JSON-able: of the arms, those whose names hold the text `find`."""
    table, task = session.arms(), session.task
    columns = {name: table[name].to_numpy() for name in table.columns}
    ahead, done = session.next(), session.done
    pending = [{"event": ask.number, "arm": ask.arm, "item": ask.item, "who": ask.who} for ask in session.pending]
    boundary, unsure = session.boundary, session.unsure()
    near = np.where(columns["withdrawn"], np.inf, unsure)
    near[columns["pending"] > 0] = -2
    if ahead is not None:
        near[ahead] = -3
    order = np.argsort(near, kind="stable")
    if find:
        order = np.array([arm for arm in order if find.lower() in str(columns["name"][arm]).lower()], np.int64)
    shown = np.sort(order[:MOST_ARMS])
    arms = []
    for arm in shown.tolist():
        row = {name: _plain(column[arm]) for name, column in columns.items()}
        arms.append({"arm": arm, "unsure": _plain(unsure[arm]), **row})
    waiting, events = {ask["event"] for ask in pending}, []
    records: list[dict[Any, Any]] = session.history(MOST_EVENTS).iloc[::-1].to_dict("records")
    for one in records:
        undoable = not one["undone"] and (one["kind"] in ("told", "arm withdrawn") or one["event"] in waiting)
        value = [one[name] for name in one if str(name).startswith("value") and not np.isnan(one[name])]
        names = ("event", "kind", "name", *(["item"] if task.items else []), "about", "who", "text", "undone")
        events.append({name: _plain(one[name]) for name in names} | {"value": value, "undoable": undoable})
    sure = np.flatnonzero((columns["pulls"] > 0) & ~columns["withdrawn"] & np.isfinite(unsure))
    least = None if not len(sure) else int(sure[np.argmin(unsure[sure])])
    answer = [str(name) for name in columns["name"][columns["answer"].astype(bool)]]
    return {
        "version": session.version,
        "question": session.asks,
        "problem": task.problem,
        "parameters": dict(task.parameters),
        "agent": session.label,
        "count": len(session),
        "budget": task.budget,
        "remaining": session.remaining,
        "delta": task.delta,
        "certificate": session.certificate,
        "doubts": session.doubts,
        "done": done,
        "dimensions": task.D,
        "items": task.items,
        "support": None if task.distribution == "gaussian" else task.support,
        "next": None if ahead is None else {"arm": ahead, "name": str(columns["name"][ahead])},
        "pending": [{**ask, "name": str(columns["name"][ask["arm"]])} for ask in pending],
        "waiting": session.waiting,
        "owed": session.owed,
        "boundary": boundary,
        "least": None if least is None else {"name": str(columns["name"][least]), "errors": float(unsure[least])},
        "answer": answer[:MOST_NAMES],
        "answers": len(answer),
        "tied": [str(columns["name"][arm]) for arm in session.tied[:MOST_NAMES]],
        "arms": arms,
        "of": len(columns["name"]),
        "events": events,
        "names": [str(name) for name in columns["name"][~columns["withdrawn"].astype(bool)][:1000]],
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
    purpose = "the page of a session", "session"
    web, responses = require("starlette.applications", *purpose), require("starlette.responses", *purpose)
    requests = require("starlette.requests", *purpose)
    routing, pool = require("starlette.routing", *purpose), require("starlette.concurrency", *purpose)
    html = Path(__file__).with_name("page.html").read_text(encoding="utf-8")

    def guarded(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(handler)
        async def guard(request: Any) -> Any:
            # Without a token, a page elsewhere must not reach this one under a name of its own that leads here.
            if token is None and not HOST.fullmatch(request.headers.get("host", "")):
                return responses.PlainTextResponse("this page is asked for by the name of its machine", 400)
            given = request.query_params.get("token", "")
            if token is not None and not secrets.compare_digest(given.encode(), token.encode()):
                return responses.PlainTextResponse("this address needs its token: copy all of it", 403)
            return await handler(request)

        return guard

    def changing(change: Callable[[dict[str, object]], object]) -> Callable[[Any], Any]:
        """A handler of what changes the session: JSON in, so that pages of others cannot send it; JSON out."""

        async def handler(request: Any) -> Any:
            kind, body = request.headers.get("content-type", "").partition(";")[0].strip(), bytearray()
            if kind != "application/json":
                return responses.JSONResponse({"error": "send JSON"}, 415)
            try:
                async for part in request.stream():
                    body += part
                    if len(body) > MOST_BYTES:
                        return responses.JSONResponse({"error": f"send at most {MOST_BYTES} bytes"}, 413)
                if not isinstance(asked := json.loads(body), dict):
                    raise ValueError("send a JSON object")
                done = await pool.run_in_threadpool(change, asked)
            except requests.ClientDisconnect:  # there is no reader
                return responses.JSONResponse({"error": "the request was not sent to its end"}, 400)
            except (ValueError, TypeError, RecursionError, FileNotFoundError) as error:
                return responses.JSONResponse({"error": " ".join(str(error).split())}, 400)
            return responses.JSONResponse({"done": done})

        return guarded(handler)

    async def page(request: object) -> object:
        policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        policy += "; frame-ancestors 'none'; base-uri 'none'"
        headers = {"content-security-policy": policy, "referrer-policy": "no-referrer", "cache-control": "no-store"}
        headers["x-frame-options"] = "DENY"  # so that no other page is laid over it
        return responses.HTMLResponse(html, headers=headers)

    async def look(request: Any) -> Any:
        try:
            found = await pool.run_in_threadpool(state, session, request.query_params.get("find", ""))
        except (ValueError, FileNotFoundError) as error:  # the store has been lost meanwhile
            return responses.JSONResponse({"error": str(error)}, 503)
        return responses.JSONResponse(found)

    async def listen(request: Any) -> Any:
        async def gone() -> bool:
            return bool(getattr(request.app.state, "closing", bool)() or await request.is_disconnected())

        headers = {"cache-control": "no-store", "content-type": "text/event-stream"}
        return responses.StreamingResponse(news(session, gone), headers=headers)

    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "ask": lambda asked: [
            int(arm) if arm.item is None else {"arm": int(arm), "item": arm.item}
            for arm in session.ask(integer("n", asked.get("n", 1), 1, 1000), asked.get("who"))
        ],
        "tell": lambda asked: session.tell(
            Ask(asked["question"], asked.get("arm", 0), None) if "question" in asked else asked.get("arm", ""),
            *(asked.get(name) for name in ("value", "who", "item")),
        ),
        "undo": lambda asked: session.undo(asked.get("event")),
        "note": lambda asked: session.note(asked.get("text", ""), asked.get("who")),
    }
    routes = [
        routing.Route("/", guarded(page)),
        routing.Route("/state", guarded(look)),
        routing.Route("/news", guarded(listen)),
        *(routing.Route(f"/{name}", changing(change), methods=["POST"]) for name, change in changes.items()),
    ]
    return web.Starlette(routes=routes)


def serve(session: Session, host: str = "127.0.0.1", port: int = 8765, tell: Callable[[str], None] = print) -> None:
    """Serve the page until the process is interrupted.

    Args:
        session: what it shows.
        host: address to listen on; beyond this machine the page wants a token. port: 0: any that is free.
        tell: is called with the address of the page, once no other program can have it.

    Raises:
        ValueError: for what is no port. OSError: where the port is taken, or the address is not one of this machine.
        ImportError: without Starlette or uvicorn.
    """
    integer("port", port, 0, MOST_PORTS)
    uvicorn = require("uvicorn", "the page of a session", "session")
    token = None if host in LOCAL_HOSTS else secrets.token_urlsafe(16)
    app = application(session, token)
    _log_little()
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
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


def _log_little() -> None:
    """Write warnings and errors of the server, and nothing that waits."""
    handler = Unwaiting()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
