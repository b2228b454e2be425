"""What all tests of sessions share."""

import itertools
from types import SimpleNamespace

import pytest
from disks import Listed

from agents.session.log import Log


@pytest.fixture(autouse=True)
def _rehearsals_are_cut_by_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of rehearsals goes on by a millisecond with each look, however busy the machine is."""
    clock = itertools.count(0.0, 0.001)
    monkeypatch.setattr("agents.session.rehearsal.time", SimpleNamespace(monotonic=clock.__next__))


@pytest.fixture(autouse=True)
def _stores_in_memory_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that are called sqlite://, and those of files: a database takes most of the time of a session."""
    monkeypatch.setattr("agents.session.session.Log", lambda place: (Listed if place == ":memory:" else Log)(place))
