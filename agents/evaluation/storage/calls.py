"""Notes of the calls that work on a folder: which ones run now, and how long the pulls have taken."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import socket
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any

from ...core.files import json_form
from .places import Place

CALLS = "calls"  # the folder of the notes
NOTED = 10.0  # seconds between two notes of a call
FRESH = 60.0  # a note that is younger is of a call that goes on


class Calls:
    """The notes in a folder, of which the call of now writes one, again and again."""

    def __init__(self, place: Place, runs: int) -> None:
        self.place, self.runs = place, runs
        self._own: dict[str, Any] = {}
        self._name, self._written = "", 0.0

    def begin(self, told: Mapping[str, object]) -> bool:
        """Note that a call begins; returns whether others go on at the same time."""
        now = time.time()
        others = [at for name, at in self.place.names(CALLS).items() if now - at < FRESH and self._goes_on(name)]
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
        self._name = f"{CALLS}/{stamp}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}.json"
        self._own = {
            **told,
            "command": sys.argv,
            "machine": platform.platform(),
            "host": socket.gethostname(),
            "began": stamp,
            "ended": None,
            "pulls": [0] * self.runs,
            "seconds": [0.0] * self.runs,
        }
        self._write()
        return bool(others)

    def _goes_on(self, name: str) -> bool:
        try:
            return json.loads(self.place.read(f"{CALLS}/{name}"))["ended"] is None
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def _write(self) -> None:
        self._written = time.monotonic()
        content = (json.dumps(self._own, indent=1, default=json_form) + "\n").encode()
        self.place.write(self._name, content, settled=False)

    def alive(self) -> None:
        """Write the note again, if the last one is some time ago."""
        if time.monotonic() - self._written > NOTED:
            self._write()

    def spend(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._own["pulls"][run] += pulls
        self._own["seconds"][run] += seconds

    def end(self) -> None:
        """Note that the call has ended."""
        self._own["ended"] = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        self._write()

    def spent(self, run: int) -> tuple[int, float]:
        """Pulls of a run and the seconds that they took, of all calls that have been noted."""
        pulls, seconds = 0, 0.0
        for name in self.place.names(CALLS):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError):
                note = json.loads(self.place.read(f"{CALLS}/{name}"))
                pulls, seconds = pulls + note["pulls"][run], seconds + note["seconds"][run]
        return pulls, seconds
