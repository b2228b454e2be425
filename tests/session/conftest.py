"""What all tests of sessions share."""

import itertools
from types import SimpleNamespace

import pytest


@pytest.fixture(autouse=True)
def _rehearsals_are_cut_by_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of rehearsals goes on by a millisecond with each look, however busy the machine is."""
    clock = itertools.count(0.0, 0.001)
    monkeypatch.setattr("agents.session.rehearsal.time", SimpleNamespace(monotonic=clock.__next__))
