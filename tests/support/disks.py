"""Disks that are full."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def full_disk(left: int) -> Iterator[None]:
    """A disk on which no file grows beyond so many bytes: a write that would raises OSError, as on a full one."""
    resource = pytest.importorskip("resource", reason="limits on files are those of Unix")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
