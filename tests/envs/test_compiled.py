"""Importing is light, compiled kernels are cached, never stale, of one signature, and need no place to write to."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import types
from processes import with_path

import bandit_envs
from bandit_envs.kernels import kept
from bandit_envs.kernels.kept import compiling

PACKAGE = Path(bandit_envs.__file__).parent
SUPPORT = Path(__file__).parents[1] / "support"
HEAVY = {"torch", "stable_baselines3", "pandas", "scipy.stats", "scipy.optimize", "agents", "matplotlib", "pyarrow"}
SHOWN = {"bandit_envs.stopping.intervals"}  # of sessions of people
MADE, OTHERS, CALLS = 40, 3, 75_000  # dispatchers of Numba, modules of others, and calls: 38, 2 and 50,000 in 0.2.0
LIGHT = 1.6  # times what `import numba` adds to `import gymnasium`, `import bandit_envs`, which needs it, may add


def run(code: str, python: Path | str = sys.executable, package: Path = PACKAGE, **environment: str | None) -> str:
    """What a fresh process prints, with the package at this place and warnings as errors."""
    known: dict[str, str | None] = {**with_path(package.parent, SUPPORT), **environment}
    variables = {name: value for name, value in known.items() if value is not None}
    command = [python, "-W", "error", "-c", code]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=1800, cwd=package.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- importing --------------------------------------------------------------------------------------------------------

COUNTS = f"""
import sys, gymnasium, numba
from numba.core.dispatcher import Dispatcher
before, calls, made = set(sys.modules), 0, 0
def count(frame, event, _):
    global calls, made
    calls += event == "call" and not frame.f_code.co_filename.startswith("<frozen")
    made += event == "call" and frame.f_code is Dispatcher.__init__.__code__
sys.setprofile(count)
import bandit_envs
sys.setprofile(None)
others = [name for name in sys.modules.keys() - before if name.partition(".")[0] not in sys.stdlib_module_names]
print(calls, made, len([name for name in others if not name.startswith("bandit_envs")]))
sys.setprofile(count)
numba.njit(lambda x: x)
sys.setprofile(None)
print(made, *[name for name in {sorted(HEAVY)!r} if name in sys.modules])
"""


def test_importing_is_light() -> None:
    """Defect: a dispatcher was made of each of 192 functions, for kernels that are on disk."""
    (calls, made, others), (more, *heavy) = (line.split() for line in run(COUNTS).splitlines())
    assert heavy == []
    assert int(made) <= MADE
    assert int(more) == int(made) + 1  # it can fail
    assert int(others) <= OTHERS
    assert int(calls) <= CALLS


COSTS = """
import time, gymnasium
def cost(name):
    start = time.process_time()
    __import__(name)
    return time.process_time() - start
print(cost("numba"), cost("bandit_envs"))
"""


def test_importing_takes_little_time() -> None:
    """The least processor time of seven processes, with bytecode kept, as it is where a package is installed."""
    rounds = [run(COSTS, PYTHONDONTWRITEBYTECODE=None).split() for _ in range(7)]
    unit, own = (min(float(found[i]) for found in rounds) for i in range(2))
    assert own <= (LIGHT - 1) * unit  # numba is there already


def test_disabled_compilation_is_told() -> None:
    command, variables = [sys.executable, "-c", "import bandit_envs"], {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    told = subprocess.run(command, env=variables, capture_output=True, text=True, check=False).stderr
    assert "ImportError" in told
    assert "NUMBA_DISABLE_JIT=1" in told


# --- the cache --------------------------------------------------------------------------------------------------------

SESSION = """
import json, session
session.everything()
print(json.dumps(session.report()))
from bandit_envs.kernels.rng import normal_quantile
normal_quantile(0.5), normal_quantile(1)
print(json.dumps(session.report()))
"""


def session() -> list[dict[str, list[int]]]:
    """{module.kernel: [signatures, read, compiled]} after a session that uses everything.

    And once more after a call with a number of another type, which must be found out.
    """
    return [json.loads(line) for line in run(SESSION).splitlines()[-2:]]


def faults(report: dict[str, list[int]]) -> list[str]:
    """Kernels that a second process compiles, or that have more than one signature."""
    return [name for name, (signatures, _, misses) in report.items() if misses or signatures > 1]


def test_a_second_process_compiles_nothing_and_no_kernel_has_two_signatures() -> None:
    report, strange = session()
    if faults(report):  # the first process on this machine, or since a kernel changed
        report, strange = session()
    assert faults(report) == []
    assert "bandit_envs.kernels.rng.normal_quantile" in faults(strange)  # it can fail
    # What is called from Python; parts of it may be compiled for each kind of problem, by arguments that are known.
    assert all(signatures <= 1 for signatures, hits, _ in report.values() if hits)
    with_kernels = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if "\n@jit\n" in path.read_text() or "\n@kernel\n" in path.read_text()
    }
    used = {name.rpartition(".")[0] for name, (_, hits, _) in report.items() if hits}
    # The session reached every module that has kernels; those of these are compiled into the kernels of others.
    assert used >= with_kernels - {"bandit_envs.kernels.belief"} - SHOWN


WORD = """
from compilations import Compilations
counted = Compilations()
from bandit_envs.kernels import kept, rng
print(rng.normal_quantile(0.99), *counted.of("rng.normal_quantile"), kept.folder_of(rng.normal_quantile.py_func))
"""


def word(package: Path, python: Path | str = sys.executable, **environment: str | None) -> list[str]:
    """A number by a kernel; how often it was read and compiled; the folder of its cache."""
    return run(WORD, python, package, **environment).split()


def copied(to: Path) -> Path:
    """A copy of the package."""
    return Path(shutil.copytree(PACKAGE, to / "bandit_envs", ignore=shutil.ignore_patterns("*.pyc.*")))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


class Broken:
    """A watcher that fails."""

    def begins(self, name: str) -> None:
        raise OSError(name)

    def ends(self) -> None:
        """Nothing."""


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_as_before_once_a_function_is_compiled(
    enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after errors, and as another thread has it that enables or disables it meanwhile."""
    before, thresholds = gc.isenabled(), gc.get_threshold()
    switch = {True: gc.enable, False: gc.disable}
    try:
        for meanwhile in (enabled, not enabled):
            switch[enabled]()
            with contextlib.suppress(ZeroDivisionError), compiling(run), compiling(run):
                assert gc.get_threshold()[0] == 0
                switch[meanwhile]()
                raise ZeroDivisionError
            assert (gc.isenabled(), gc.get_threshold()) == (meanwhile, thresholds)
        monkeypatch.setattr(kept, "WATCHERS", [Broken()])
        with contextlib.suppress(OSError), compiling(run):
            pytest.fail("the watcher has failed")
        assert gc.get_threshold() == thresholds
    finally:
        switch[before]()


# --- places of the cache ---------------------------------------------------------------------------------------------

VENV = """
import sys, venv
venv.create(sys.argv[1])
from pathlib import Path
(place,) = Path(sys.argv[1]).rglob("site-packages")
(place / "other.pth").write_text("\\n".join(path for path in sys.path if path.endswith("-packages")))
"""


def test_another_checkout_and_another_environment_compile_nothing(tmp_path: Path) -> None:
    """Kernels are found whatever the folder of their source, in the cache directory of the user."""
    given: dict[str, str | None] = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": None}
    subprocess.run([sys.executable, "-c", VENV, str(tmp_path / "venv")], check=True)
    (python,) = (tmp_path / "venv" / "bin").glob("python")
    number, *counts, place = word(copied(tmp_path / "one"), **given)
    assert counts == ["0", "1"]
    assert Path(place).is_relative_to(tmp_path / "cache")
    assert word(copied(tmp_path / "two"), python, **given) == [number, "1", "0", place]


NOWHERE: dict[str, Any] = {"HOME": os.devnull, "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None, "LOCALAPPDATA": None}


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "TMPDIR", "nowhere"])
def test_processes_share_a_place_that_a_variable_names(variable: str, tmp_path: Path) -> None:
    """Where there is none, each compiles."""
    (place := tmp_path / "place").mkdir()
    if variable == "nowhere":
        (place / f"bandit_envs-{os.getuid()}").write_text("")
    package, given = copied(tmp_path), {**NOWHERE, variable.replace("nowhere", "TMPDIR"): str(place)}
    number, *counts, folder = word(package, **given)
    assert counts == ["0", "1"]
    assert Path(folder).is_relative_to(place) or (variable, folder) == ("nowhere", "None")
    found = ["0", "1"] if variable == "nowhere" else ["1", "0"]
    assert word(package, **given) == [number, *found, folder]
    edit(package / "kernels" / "rng.py", "r -= 1.6", "r -= 1.5")
    assert word(package, **given)[0] != number  # never stale there either


@pytest.mark.parametrize("obstacle", ["", "a file", "others may write", "another's", "a link"])
def test_a_folder_that_others_may_write_to_is_not_trusted(
    obstacle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read from a cache runs as code: its folder is this user's, who alone writes to it, or nothing is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place, kind = tmp_path / f"bandit_envs-{os.getuid()}", types.int64
    if obstacle == "a file":
        place.write_text("")
    elif obstacle == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif obstacle == "others may write":
        place.mkdir()
        place.chmod(0o777)
    elif obstacle == "another's":
        place.mkdir(mode=0o700)
        if os.getuid():
            pytest.skip("only root gives folders away")
        os.chown(place, 12345, -1)
    found = kept._folder.__wrapped__("")
    assert found == (None if obstacle else place)
    assert obstacle or stat.S_IMODE(place.stat().st_mode) == 0o700
    monkeypatch.setattr(kept, "_folder", lambda chosen: found)
    file = kept.File(run, kind, "")
    file.write("code")
    assert file.read(str) == (None if obstacle else "code")
    assert place.is_file() or bool(list(place.iterdir())) == (not obstacle)


def test_files_that_nobody_reads_go_and_the_oldest_of_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ages = {"old": kept.UNREAD + 60, "new": 0.0, "third": 20.0, "second": 10.0, "plain/deep": kept.UNREAD + 60}
    for name, age in ages.items():
        (path := tmp_path / name).parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (when := time.time() - age, when))
    monkeypatch.setattr(kept, "MOST", 200)
    kept.thin_out(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["new", "second"]


FORKED = """
import json, os, sys, traceback, warnings
import numba
from compilations import Compilations
import bandit_envs
numba.njit(lambda x: x / 2)(1.0)  # what the first of all compilations takes
sys.dont_write_bytecode = True  # sources change within a second
warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
while line := sys.stdin.readline():
    reads, writes = os.pipe()
    if not (child := os.fork()):
        os.dup2(writes, 1)
        try:
            exec(json.loads(line), {"__name__": "__main__"})
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(writes)
    said = open(reads).read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said]), flush=True)
"""


@pytest.fixture(scope="module")
def parent() -> Iterator[Callable[[str], tuple[int, str]]]:
    """Runs code in forks of one process that has imported the package: how each ends, and what it prints."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-W", "error", "-c", FORKED]
    with subprocess.Popen(command, env=with_path(PACKAGE.parent, SUPPORT), **pipes) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        to, back = one.stdin, one.stdout

        def said(code: str) -> tuple[int, str]:
            print(json.dumps(code), file=to, flush=True)
            ended, text = json.loads(back.readline())
            return ended, text.strip()

        yield said
        to.close()


@pytest.fixture
def forked(tmp_path: Path, parent: Callable[[str], tuple[int, str]]) -> Callable[..., str]:
    """Runs code in processes whose cache is `tmp_path / "mine"`."""
    where = f"import os, numba; os.chdir({str(tmp_path)!r}); numba.config.CACHE_DIR = {str(tmp_path / 'mine')!r}\n"

    def said(code: str, ends: int = 0) -> str:
        ended, text = parent(where + code)
        assert ended == ends
        return text

    return said


SMALL = """
from typing import NamedTuple
from bandit_envs.kernels import lean
from parts import twice

class Pair(NamedTuple):
    a: float
    b: float

@lean
def total(pair):
    return twice(pair.a + pair.b)

@lean
def halved(x):
    return x / 2

@lean
def doubled(x):
    return x * 2

@lean
def squared(x):
    return x * x
"""
PARTS = """
from bandit_envs.kernels import part

@part
def twice(x):
    return x * 2
"""
USE = """
from compilations import Compilations
counted = Compilations()
import small
found = small.total(small.{kind}(1.0, 2.0)), small.halved(3.0), small.doubled(3.0), small.squared(3.0)
print(*found, *(counted.of(f"small.{{name}}")[0] for name in ("total", "halved", "doubled", "squared")))
"""


def damaged(content: bytes, kind: int, random: np.random.Generator) -> bytes:
    """With one bit flipped, with a page of zeros, cut short, or empty."""
    place, spoiled = int(random.integers(len(content))), bytearray(content)
    if kind == 0:
        spoiled[place] ^= 1 << int(random.integers(8))
    elif kind == 1:
        spoiled[place : place + 4096] = bytes(len(spoiled[place : place + 4096]))
    return bytes(spoiled[: (None, None, place, 0)[kind]])


def test_damaged_caches_and_those_of_types_that_are_gone_are_written_again(
    tmp_path: Path, forked: Callable[..., str]
) -> None:
    """The same numbers come out, and the next process finds what it needs. The caches are where a variable says.

    An edited line compiles what depends on it, in another file too, and nothing else. Files of both versions stay. The
    pickles of damaged files may still load; without the checksum another kernel is taken for this one.
    """
    module, place = tmp_path / "small.py", tmp_path / "mine"
    (tmp_path / "agents").mkdir()

    def found(kind: str, before: str = "") -> list[float]:
        return [float(one) for one in forked(before + USE.format(kind=kind)).split()]

    def files(name: str) -> list[Path]:
        return sorted(place.rglob(f"{name}.*"))

    def doubled_for_halved() -> None:
        (one,), (other,) = files("small.halved"), files("small.doubled")
        one.write_bytes(other.read_bytes())

    (tmp_path / "parts.py").write_text(PARTS)
    module.write_text(SMALL)
    assert found("Pair") == [6.0, 1.5, 6.0, 9.0, 0, 0, 0, 0]
    assert found("Pair") == [6.0, 1.5, 6.0, 9.0, 1, 1, 1, 1]
    for kind, name in enumerate(("small.doubled", "small.halved", "small.squared", "small.total")):
        (path,) = files(name)
        path.write_bytes(damaged(path.read_bytes(), kind, np.random.default_rng(1)))
    assert found("Pair") == [6.0, 1.5, 6.0, 9.0, 0, 0, 0, 0]
    for swapped in ("b: float\n    a: float", "a: float\n    c: float", "a: float\n    b: float"):
        module.write_text(
            SMALL.replace("a: float\n    b: float", swapped).replace("pair.a + pair.b", "pair[0] + pair[1]")
        )
        assert found("Pair")[4:] == [0, 1, 1, 1], swapped  # by whose places the fields are read
    module.write_text(SMALL.replace("Pair", "Both"))
    assert found("Both") == [6.0, 1.5, 6.0, 9.0, 0, 1, 1, 1]
    edit(tmp_path / "parts.py", "x * 2", "x * 4")
    doubled_for_halved()
    assert found("Both") == [12.0, 1.5, 6.0, 9.0, 0, 0, 1, 1]
    edit(tmp_path / "parts.py", "x * 4", "x * 2")
    assert found("Both") == [6.0, 1.5, 6.0, 9.0, 1, 1, 1, 1]  # what was compiled before the edit is still there
    edit(tmp_path / "parts.py", "x * 2", "x * 4")
    doubled_for_halved()
    blind = "from bandit_envs.kernels import kept; read = kept.Path.read_bytes; "
    blind += "kept.File._seal = lambda self, content: read(self.path)[:16]\n"
    assert found("Both", blind) == [12.0, 6.0, 6.0, 9.0, 1, 1, 1, 1]


FAILING = """
import os, small
from bandit_envs.kernels import kept
def fails(*given):
    {how}
kept.os.replace = fails
print(small.halved(3.0), *[os.listdir(kept.folder_of(small.halved.py_func))])
"""


def test_a_full_disk_and_a_process_that_is_killed_leave_nothing_half_written(
    tmp_path: Path, forked: Callable[..., str]
) -> None:
    (tmp_path / "parts.py").write_text(PARTS)
    (tmp_path / "small.py").write_text(SMALL)
    full = FAILING.format(how="raise OSError('no space left on device')")
    assert forked(full) == "1.5 []"
    assert forked(FAILING.format(how="os._exit(9)"), 9) == ""
    use = USE.format(kind="Pair")
    assert forked(use).split()[:4] == ["6.0", "1.5", "6.0", "9.0"]
    assert forked(use).split()[4:] == ["1"] * 4


DYNAMIC = """
import ctypes, math
from compilations import Compilations
counted = Compilations()
from bandit_envs.kernels import jit
cosine = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(("cos", ctypes.CDLL(None)))
@jit
def by_address(x):
    return cosine(x)
print(by_address(0.0))
"""


def test_code_with_addresses_of_a_process_is_not_kept(tmp_path: Path, forked: Callable[..., str]) -> None:
    (tmp_path / "dynamic.py").write_text(DYNAMIC)
    for _ in range(2):
        said = forked("import dynamic; print(*dynamic.counted.of('by_address'))")
        assert said.split() == ["1.0", "0", "1"]
    assert not list((tmp_path / "mine").rglob("dynamic*"))
