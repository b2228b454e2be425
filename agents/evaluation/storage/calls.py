"""Notes of the calls that make blocks: which ones run now, and how long the pulls have taken."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.files import json_form
from .places import Place

CALLS = "calls"  # the folder of the notes
NOTED = 10.0  # seconds between two notes of a call
FRESH = 60.0  # a note that is younger is of a call that goes on


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime())


class Calls:
    """The note of the call of now, written again and again beside those of others; in memory alone without a place."""

    def __init__(self, place: Place | None, runs: int) -> None:
        self.place, self._name, self._written = place, "", 0.0
        self._own: dict[str, Any] = {"pulls": [0] * runs, "seconds": [0.0] * runs}

    @contextlib.contextmanager
    def at_work(self, facts: Mapping[str, object]) -> Iterator[bool]:
        """A context for making blocks; yields whether other calls make some too. `facts`: of this call."""
        if self.place is None:
            yield False
            return
        others = any(note.get("ended", "") is None for note in self._notes(time.time() - FRESH))
        host, began = socket.gethostname(), _stamp()
        self._name = f"{CALLS}/{began}-{host}-{os.getpid()}-{uuid.uuid4().hex[:6]}.json"
        of_now = {"command": sys.argv, "machine": platform.platform(), "host": host, "began": began, "ended": None}
        self._own = {**facts, **of_now, **self._own}
        self._write(self.place)
        try:
            yield others
        finally:
            self._own["ended"] = _stamp()
            with contextlib.suppress(OSError):
                self._write(self.place)

    def _notes(self, since: float = 0.0) -> list[dict[str, Any]]:
        """Those that have been written since then; in memory that of now."""
        if self.place is None:
            return [self._own]
        found = []
        for name, at in self.place.names(CALLS).items():
            if at >= since:
                with contextlib.suppress(OSError, ValueError):
                    found.append(json.loads(self.place.read(f"{CALLS}/{name}")))
        return [note for note in found if isinstance(note, dict)]

    def _write(self, place: Place) -> None:
        self._written = time.monotonic()
        place.write(self._name, (json.dumps(self._own, indent=1, default=json_form) + "\n").encode(), durable=False)

    def alive(self) -> None:
        """Write the note again, if the last one is some time ago."""
        if self.place is not None and self._name and time.monotonic() - self._written > NOTED:
            self._write(self.place)

    def spend(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._own["pulls"][run] += pulls
        self._own["seconds"][run] += seconds

    def pace(self, run: int) -> float:
        """Seconds of one core that a pull of a run takes, by the notes of all calls; NaN where they have none."""
        pulls, seconds = 0, 0.0
        for note in self._notes():
            with contextlib.suppress(KeyError, TypeError, IndexError):
                pulls, seconds = pulls + note["pulls"][run], seconds + note["seconds"][run]
        return seconds / pulls if pulls else math.nan
