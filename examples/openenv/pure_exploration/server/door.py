"""What lets requests in: a piece of ASGI before the server, which refuses what its JSON cannot be read back from.

Where the server itself would answer 500 or end the connection (a number too large to be one, a text that is no Unicode,
lists nested deeply, a frame that is no object), this answers 400 or 413, or a frame of an error, and the connection can
be used further. `/web` is left alone: that is the library's own page, off unless it is asked for.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

MOST_BYTES = 2**16  # of a request or a frame
MOST_DIGITS = 18  # of an integer
DEEPEST = 16  # lists and objects
Event = dict[str, Any]
Receive, Send = Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]
App = Callable[[Event, Receive, Send], Awaitable[None]]


def fault(text: str | bytes | None, of_object: bool = False) -> str | None:
    """What is wrong with a text that is to be JSON (of an object), or None."""
    if text is None:
        return "frames are text, got bytes"
    if len(text) > MOST_BYTES:
        return f"a message has at most {MOST_BYTES:,} characters, got {len(text):,}"
    try:
        found = json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_no_number)
        level = [found]
        for _ in range(DEEPEST):
            lists = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
            level = [part for one in lists for part in one]
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:  # also of an encoding
        return f"it is no JSON that can be read: {type(error).__name__ if isinstance(error, UnicodeError) else error}"
    if level:
        return f"lists and objects nest at most {DEEPEST} deep"
    if of_object and not isinstance(found, dict):
        return "a frame is an object"
    return None


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"integers have at most {MOST_DIGITS} digits, got {text[:24]}")
    return int(text)


def _float(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"numbers are finite, got {text[:24]}")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"numbers are finite, got {text}")


class Door:
    """The app behind checks of all bodies and frames."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Hand on what passes."""
        if scope["type"] == "websocket":
            there = _while_there(send)
            await self.app(scope, _checked(receive, there), there)
        elif scope["type"] == "http" and not scope["path"].startswith("/web"):
            await self._request(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _request(self, scope: Event, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            body, more = body + event.get("body", b""), event.get("more_body", False)
            if len(body) > MOST_BYTES:
                return await _answer(send, 413, f"a request has at most {MOST_BYTES:,} bytes")
        if body and (why := fault(body)) is not None:
            return await _answer(send, 400, why)
        first = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Event:
            return first.pop() if first else await receive()

        await self.app(scope, again, send)


def _checked(receive: Receive, send: Send) -> Receive:
    """The frames that pass; the others are answered."""

    async def checked() -> Event:
        while True:
            event = await receive()
            if event["type"] != "websocket.receive" or (why := fault(event.get("text"), of_object=True)) is None:
                return event
            error = {"type": "error", "data": {"message": why, "code": "INVALID_JSON"}}
            await send({"type": "websocket.send", "text": json.dumps(error)})

    return checked


def _while_there(send: Send) -> Send:
    """What is sent to a client that has gone is lost, and no error: the next `receive` says that it has gone."""

    async def sent(event: Event) -> None:
        with contextlib.suppress(OSError):
            await send(event)

    return sent


async def _answer(send: Send, status: int, why: str) -> None:
    """An answer in JSON, of the form that the server's own have."""
    body = json.dumps({"detail": why}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))  # the rest of what was sent is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
