"""What all tests of sessions share."""

from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def _no_rehearsal_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seconds that a rehearsal may take do not go by, however busy the machine is."""
    monkeypatch.setattr("agents.session.rehearsal.time", SimpleNamespace(monotonic=lambda: 0.0))
