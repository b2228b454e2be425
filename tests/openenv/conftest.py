"""A server of `examples/openenv` in a process of its own, and its parts that need no OpenEnv."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "openenv" / "pure_exploration"
VERSION = "0.10.0"  # of OpenEnv, as in the workflow


def _installed() -> str | None:
    try:
        return importlib.metadata.version("openenv")
    except importlib.metadata.PackageNotFoundError:
        return None


@pytest.fixture(scope="session")
def openenv() -> None:
    """Skip where OpenEnv is not installed."""
    if _installed() is None:
        pytest.skip(f"OpenEnv is not installed: pip install openenv=={VERSION}")


@pytest.fixture(scope="session")
def part() -> Callable[[str], ModuleType]:
    """A module of the server by its name, without the package, whose import needs OpenEnv."""
    found = dict[str, ModuleType]()

    def load(name: str) -> ModuleType:
        if name not in found:
            spec: Any = importlib.util.spec_from_file_location(f"served_{name}", PACKAGE / "server" / f"{name}.py")
            found[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(found[name])
        return found[name]

    return load


@pytest.fixture(scope="session")
def known() -> dict[str, str]:
    """The variables of processes that find the package and this checkout."""
    return {**os.environ, "PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{ROOT}"}


@pytest.fixture(scope="session")
def server(openenv: None, known: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server, which must have answered no request with 5xx, and no traceback, when all is over."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "pure_exploration.server.app", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with log.open("w") as writing:
        process = subprocess.Popen(command, env=known, cwd=log.parent, stdout=writing, stderr=writing)
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"{url}/health", timeout=5).close()
                    break
                except OSError:
                    assert process.poll() is None, log.read_text()
                    time.sleep(0.1)
            yield url
            assert process.poll() is None, log.read_text()[-3000:]
        finally:
            process.terminate()
            process.wait(30)
    text = log.read_text()
    assert "Traceback" not in text, text[-3000:]
    assert '" 5' not in text, text[-3000:]


@pytest.fixture(scope="session")
def http(server: str) -> Iterator[httpx.Client]:
    """Requests to the server."""
    with httpx.Client(base_url=server, timeout=60) as client:
        yield client
