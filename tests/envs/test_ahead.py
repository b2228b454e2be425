"""Processes that need a kernel compile it once; helpers compile ahead what will be needed, and do no harm.

No test looks at a clock: what one process waits for is said by another one.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import importlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
from compilations import Compilations
from processes import with_path

import bandit_envs
from bandit_envs.kernels import ahead, kept

ROOT, SUPPORT = Path(bandit_envs.__file__).parents[1], Path(__file__).parents[1] / "support"
NAMES = ["halved", "doubled", "squared", "cubed"]
SMALL = "from bandit_envs.kernels import lean\n"
SMALL += "".join(f"@lean\ndef {name}(x: float): return {{}}\n" for name in NAMES).format(
    "x / 2", "x * 2", "x * x", "x**3"
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and a module `small` of four kernels; this process knows of no jobs, and may start helpers."""
    (tmp_path / "small.py").write_text(SMALL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv(ahead.VARIABLE, raising=False)
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    for name in ("_known", "_expected", "_helpers"):
        monkeypatch.setattr(ahead, name, type(getattr(ahead, name))())
    yield tmp_path / "cache" / "bandit_envs"
    ahead._end()
    sys.modules.pop("small", None)


def small() -> ModuleType:
    """The module, whose kernels are not loaded yet."""
    sys.modules.pop("small", None)
    return importlib.import_module("small")


def process(code: str, path: Path, **more: Any) -> subprocess.Popen[str]:
    """A process with the module `small` and the cache of a test."""
    known = with_path(path, ROOT, SUPPORT, NUMBA_CACHE_DIR=str(path / "cache"))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code], env=known, stdout=subprocess.PIPE, text=True, **more
    )


class Meanwhile:
    """A watcher: while the first kernel is compiled, and its lock is held, something is done."""

    def __init__(self, what: Callable[[], None]) -> None:
        self.what, self.names = what, list[str]()

    def begins(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == 1:
            self.what()

    def ends(self) -> None:
        pass


# --- locks ------------------------------------------------------------------------------------------------------------

WAITS = """
from compilations import Compilations
counted = Compilations()
import small
from bandit_envs.kernels import WATCHERS
class Said:
    def begins(self, name): print("needs", name, flush=True)
    def ends(self): pass
WATCHERS.append(Said())
print(small.halved(3.0), *counted.of("halved"))
"""


def test_two_processes_that_need_a_kernel_compile_it_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.ExitStack() as stack:
        others = list[Any]()

        def other_needs_it() -> None:
            others.append(stack.enter_context(process(WAITS, place.parents[1])))
            assert others[0].stdout.readline() == "needs halved\n"

        monkeypatch.setattr(kept, "WATCHERS", [Meanwhile(other_needs_it)])
        counted = Compilations()
        assert small().halved(3.0) == 1.5
        assert counted.of("halved") == (0, 1)
        assert others[0].stdout.read() == "1.5 1 0\n"
    assert not list(place.glob("*.lock"))


DIES = "import os, small; from bandit_envs.kernels import WATCHERS\n"
DIES += "class Dead:\n    def begins(self, name): os._exit(9)\nWATCHERS.append(Dead())\nsmall.halved(3.0)"


def test_nobody_waits_for_a_process_that_has_died(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with process(DIES, place.parents[1]) as dead:
        assert dead.wait() == 9
    (lock,) = place.glob("*.lock")
    assert "halved" in lock.name
    monkeypatch.setattr(kept, "WATCHERS", [seen := Meanwhile(lambda: None)])
    assert small().halved(3.0) == 1.5
    assert seen.names == ["halved"]  # it is compiled, and was not waited for
    assert not lock.exists()


def test_nobody_waits_for_ever(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that holds a lock may have been stopped."""
    monkeypatch.setattr(ahead, "PATIENCE", 0.0)
    monkeypatch.setattr(kept, "WATCHERS", [seen := Meanwhile(lambda: None)])
    monkeypatch.setattr(ahead, "_taken", lambda lock: False)
    assert small().halved(3.0) == 1.5
    assert seen.names == ["halved", "halved"]  # it was waited for, and is compiled


# --- helpers ----------------------------------------------------------------------------------------------------------


def started(monkeypatch: pytest.MonkeyPatch, *command: str) -> list[Any]:
    """The helpers that are started from now on, which run this instead."""
    found, start = list[Any](), ahead._start

    def noted(slot: Any) -> Any:
        found.append(start(slot))
        return found[-1]

    monkeypatch.setattr(ahead, "_start", noted)
    if command:
        monkeypatch.setattr(ahead, "COMMAND", command)
    return found


SCRIPT = """
import small
from compilations import Compilations
from bandit_envs.kernels import ahead, expect
print("once")
ahead.cores = lambda: 2
counted = Compilations()
expect("step", small.doubled, small.squared)
first = small.halved(3.0)
expect("end", small.cubed)
(helper,) = ahead._helpers
helper.wait()
print(first, small.doubled(3.0), small.squared(3.0), small.cubed(3.0))
print([counted.of(name) for name in ("halved", "doubled", "squared", "cubed")])
"""


def test_a_helper_compiles_what_a_script_without_a_guard_will_need(place: Path) -> None:
    with process(SCRIPT, place.parents[1]) as script:
        assert script.stdout is not None
        said = script.stdout.read().splitlines()
        assert script.wait() == 0
    assert said == ["once", "1.5 6.0 9.0 27.0", "[(0, 1), (1, 0), (1, 0), (1, 0)]"]
    assert not list(place.glob("*.code.lock"))


def needed(module: ModuleType) -> list[float]:
    """What four kernels make of 3, the last three of which are expected."""
    ahead.expect("step", module.doubled, module.squared)
    ahead.expect("end", module.cubed, (numba.typeof, 1.0))
    return [getattr(module, name)(3.0) for name in NAMES]


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import os; os.close(0)", "import os; os._exit(0)"])
def test_a_helper_that_fails_does_no_harm(code: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers, counted = started(monkeypatch, "-c", code), Compilations()
    assert needed(small()) == [1.5, 6.0, 9.0, 27.0]
    assert [counted.of(name) for name in NAMES] == [(0, 1)] * 4
    assert len(helpers) == 1
    if helpers[0].wait():  # it is given up
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(place.parent / "another"))
        monkeypatch.setattr(ahead, "_known", set())
        assert needed(small()) == [1.5, 6.0, 9.0, 27.0]
        assert len(helpers) == 1


def no_process(*given: Any, **named: Any) -> None:
    raise OSError("no more processes")


NO_HELPER: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "one core": lambda monkeypatch: monkeypatch.setattr(ahead, "cores", lambda: 1),
    "switched off": lambda monkeypatch: monkeypatch.setenv(ahead.VARIABLE, "0"),
    "worker": lambda monkeypatch: monkeypatch.setattr("multiprocessing.process._parent_process", "another"),
    "no Python": lambda monkeypatch: monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi"),
    "no process": lambda monkeypatch: monkeypatch.setattr(subprocess, "Popen", no_process),
    "no locks": lambda monkeypatch: monkeypatch.setattr(ahead, "fcntl", None),
    "no folder": lambda monkeypatch: monkeypatch.setattr(kept, "_folder", lambda chosen: None),
}


@pytest.mark.parametrize("reason", NO_HELPER)
def test_where_there_is_no_helper(reason: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = started(monkeypatch, "-c", "")
    NO_HELPER[reason](monkeypatch)
    assert needed(small()) == [1.5, 6.0, 9.0, 27.0]
    assert helpers == []


def test_as_many_helpers_as_further_cores_in_all_processes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds one of the locks as long as it runs. Those of another process count."""
    monkeypatch.setattr(ahead, "cores", lambda: 64)
    place.mkdir(parents=True)
    with (place / "helper-1.lock").open("wb") as taken:
        fcntl.flock(taken, fcntl.LOCK_EX)
        helpers = started(monkeypatch, "-c", "import sys; sys.stdin.read()")
        assert needed(small()) == [1.5, 6.0, 9.0, 27.0]
    assert len(helpers) == ahead.MOST - 1 == 2
    with (place / "helper-0.lock").open("wb") as lock:
        assert not ahead._taken(lock)
        ahead._end()
        assert ahead._taken(lock)


def test_threads_do_not_wait_for_each_other(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one hands jobs over: it may wait for what this one compiles."""
    module = small()
    with ahead._LOCK:
        assert needed(module) == [1.5, 6.0, 9.0, 27.0]
    assert len(ahead._expected) == 4  # for the next kernel that is in no cache


def test_no_helper_where_the_cache_has_most_kernels(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = started(monkeypatch, "-c", "import sys; sys.stdin.read()")
    small().doubled(3.0), small().cubed(3.0)
    assert needed(small()) == [1.5, 6.0, 9.0, 27.0]
    assert helpers == []
    for path in place.glob("small.*"):  # it can fail
        path.unlink()
    monkeypatch.setattr(ahead, "_known", set())
    needed(small())
    assert len(helpers) == 1


# --- what is expected -------------------------------------------------------------------------------------------------

# What is compiled in little time, or before a helper is ready.
LEFT = re.compile(
    r"_scalars|_draws|_begin$|_fill_uniforms$|_tabulate$|_any_ends$|all_values$|index\.routine|top_k_alternatives"
)
ASKED = """
import os, sys, base64
from bandit_envs.kernels import ahead, floor, kept
asked, end = [], os._exit
class Asked(kept.File):
    def __init__(self, *given):
        super().__init__(*given)
        asked.append(self.path.name.partition(".cpython")[0])
        found.extend([asked[-1]] * (not self.path.exists()))
found, floor.File = [], Asked
"""
USE = """
import agents
agents.evaluate(sys.argv[1], sys.argv[2], episodes=4, env_kwargs={"budget": 50})
print(*asked)
print(*found)
done = len(asked)
for *_, job in ahead._expected:
    ahead.do(job)
print(*asked[done:])
print(base64.b64encode(b"".join(ahead.message(*one) for one in ahead._expected)).decode())
"""
HELP = """
def said(code):
    print(*asked, flush=True)
    end(code)
os._exit = said
ahead.help_out()
"""


@pytest.mark.parametrize(
    ("agent", "problem"), [("lsa", "Threshold"), ("lucb", "BestArm"), ("evidence", "BestArm"), ("top-two", "TopK")]
)
def test_helpers_are_asked_for_what_first_use_compiles(agent: str, problem: str) -> None:
    """Of these types, for nothing else, and for all but a few. A helper runs, on the cache that all tests have."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    known = with_path(ROOT, SUPPORT, **{ahead.VARIABLE: "0"})
    for _ in range(2):  # a process that compiles asks for parts, too
        command = [sys.executable, "-c", ASKED + USE, agent, problem]
        said = subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout.split("\n")
        if not said[1]:
            break
    needed, compiled, more, jobs = ({*line.split()} for line in said[:4])
    assert not compiled
    assert not more  # jobs are of the kernels, of the very types, that were used
    with subprocess.Popen([sys.executable, "-c", ASKED + HELP], env=known, **pipes) as helper:
        assert helper.stdin is not None
        assert helper.stdout is not None
        helper.stdin.write(base64.b64decode(*jobs))
        helper.stdin.flush()
        asked = {*helper.stdout.read().decode().split()}
    assert asked <= needed
    assert not [name for name in needed - asked if not LEFT.search(name)]
    assert len(asked) >= 3
