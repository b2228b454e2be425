"""How the page of a session is reached: the sockets on which it listens, and what its server writes of errors."""

from __future__ import annotations

import errno
import logging
import select
import socket
from typing import Any

__all__ = ["LOGGING", "MOST_PORTS", "Unwaiting", "listening"]

MOST_PORTS = 65535
MOST_WRITTEN = 4000  # bytes of an error: a pipe takes so many at once, or none (PIPE_BUF)
WAITING = 2048  # connections that are not accepted yet
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listening(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on a port of all addresses that a host has on this machine.

    Args:
        host: its name, or an address.
        port: the port; 0: one that is free.

    Raises:
        OSError: naming the host and the port, where another program has them, or this machine cannot have them.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host!r:.200} is no address to listen on: {getattr(error, 'strerror', error)}") from None
    sockets: list[socket.socket] = []
    why = OSError(errno.EADDRNOTAVAIL, "it has no address")
    for family, address in dict.fromkeys((one[0], one[4][:2]) for one in found):
        try:
            sockets.append(socket.create_server((str(address[0]), port), family=family, backlog=WAITING))
        except OSError as error:
            why = error
            if error.errno in NOT_HERE:  # such as ::1 of localhost where there is no IPv6
                continue
            for one in sockets:
                one.close()
            sockets = []
            break
        port = port or sockets[0].getsockname()[1]
    if sockets:
        return sockets
    if why.errno == errno.EADDRINUSE:
        raise OSError(
            f"the port {port} of {host} is taken by another program: choose another one, or 0 for any"
        ) from why
    reason = "it is no address of this machine" if why.errno in NOT_HERE else why.strerror
    raise OSError(f"{host} with the port {port} cannot be listened on: {reason}") from why


class Unwaiting(logging.StreamHandler[Any]):
    """Writes what fits at once, and drops it otherwise.

    Whoever started a server may read its errors or not: a pipe that nobody empties must not hold it up.
    """

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


_LOGGER = {"handlers": ["unwaiting"], "level": "WARNING", "propagate": False}
# Of `logging.config`, for uvicorn.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(levelname)s: %(message)s"}},
    "handlers": {"unwaiting": {"()": Unwaiting, "formatter": "line"}},
    "loggers": {"uvicorn": _LOGGER, "asyncio": _LOGGER},
}
