"""What tests of algorithms share."""

from __future__ import annotations

import pytest

from agents import testing


@pytest.fixture(autouse=True)
def _bounds_where_a_test_asks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check_bounds` compiles in a process of its own, for seconds: tests of indices have it, others do not."""
    if "index_beyond" not in request.node.name:
        others = tuple(one for one in testing.CHECKS if one is not testing.check_bounds)
        monkeypatch.setattr(testing, "CHECKS", others)
