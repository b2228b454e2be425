"""Importing is light, compiled kernels are cached, never stale, of one signature, and need no place to write to."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bandit_envs

PACKAGE = Path(bandit_envs.__file__).parent
HERE = Path(__file__).parent
HEAVY = {"torch", "stable_baselines3", "pandas", "scipy.stats", "agents", "matplotlib", "pyarrow"}
LIGHT = 1.6  # times what `import numba` adds to `import gymnasium`, `import bandit_envs`, which needs it, may add


def run(code: str, *arguments: str, package: Path = PACKAGE, **environment: str | None) -> str:
    """What a fresh process prints, with the package at this place and warnings as errors."""
    known = {**os.environ, "PYTHONPATH": f"{package.parent}{os.pathsep}{HERE}", **environment}
    variables = {name: value for name, value in known.items() if value is not None}
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, cwd=package.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- importing --------------------------------------------------------------------------------------------------------


def heavy(modules: str) -> set[str]:
    return set(run(f"import sys, {modules}; print(*[m for m in {sorted(HEAVY)!r} if m in sys.modules])").split())


def test_importing_leaves_heavy_packages_alone() -> None:
    assert heavy("bandit_envs") == set()
    assert heavy("bandit_envs, scipy.stats") == {"scipy.stats"}  # it can fail


def seconds(place: Path, *modules: str, times: int = 7) -> list[float]:
    """The least processor time that importing each takes once Gymnasium is there, of several processes by turns.

    Bytecode is kept in a place, as it is where a package is installed.
    """
    code = "import time, gymnasium; start = time.process_time(); import {}; print(time.process_time() - start)"
    kept = {"PYTHONPYCACHEPREFIX": str(place), "PYTHONDONTWRITEBYTECODE": None}
    rounds = [[float(run(code.format(name), **kept)) for name in modules] for _ in range(times)]
    return [min(each) for each in zip(*rounds, strict=True)]


def test_importing_is_light(tmp_path: Path) -> None:
    unit, own = seconds(tmp_path, "numba", "bandit_envs")
    assert own <= LIGHT * unit
    assert seconds(tmp_path, "bandit_envs, torch", times=1)[0] > LIGHT * unit  # it can fail


# --- the cache --------------------------------------------------------------------------------------------------------

SESSION = "import session, json; session.everything(); print(json.dumps(session.report()))"


def session(code: str = SESSION) -> dict[str, list[int]]:
    """{module.kernel: [signatures, cache hits, cache misses]} after a session that uses everything."""
    found: dict[str, list[int]] = json.loads(run(code).splitlines()[-1])
    return found


def faults(report: dict[str, list[int]]) -> list[str]:
    """Kernels that a second process compiles, or that have more than one signature."""
    return [name for name, (signatures, _, misses) in report.items() if misses or signatures > 1]


def test_a_second_process_compiles_nothing_and_no_kernel_has_two_signatures() -> None:
    first = report = session()
    if faults(first):  # the first process on this machine, or since a kernel changed
        report = session()
    assert faults(report) == []
    # What is called from Python; parts of it may be compiled for each kind of problem, by arguments that are known.
    assert all(first[name][0] <= 1 for name, (_, hits, _) in report.items() if hits)
    with_kernels = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if "\n@jit\n" in path.read_text() or "\n@kernel\n" in path.read_text()
    }
    used = {name.rpartition(".")[0] for name, (_, hits, _) in report.items() if hits}
    # The session reached every module that has kernels; those of `sampling` are compiled into the simulator's.
    assert used == with_kernels - {"bandit_envs.sampling"}


def test_the_signature_test_has_teeth() -> None:
    strange = "from bandit_envs.rng import normal_quantile as q; q(0.5); q(1)"
    assert faults(session(f"{strange}; import session, json; print(json.dumps(session.report()))")) == [
        "bandit_envs.rng.normal_quantile"
    ]


WORD = """
import numpy as np
from bandit_envs import Bernoulli, rng, simulator
sim = simulator.Simulator(Bernoulli([0.1, 0.9]), 1, budget=None, max_pulls=None, full=True, pull_cost=0.0)
sim.begin(np.zeros(1, np.int64), rng.root_key(5)[:, None], np.zeros(1, np.uint64))
stats = simulator._begin.compiled.stats
print(sim.public_seed.item(), sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""


def word(package: Path, **environment: str | None) -> tuple[int, int, int, str]:
    """A random word by the kernel `_begin` of simulator.py, whose callee `philox` is in rng.py; hits, misses, cache."""
    number, hits, misses, *where = run(WORD, package=package, **environment).split(" ", 3)
    return int(number), int(hits), int(misses), *where  # type: ignore[return-value]


def copied(to: Path) -> Path:
    """A copy of the package, without compiled files."""
    return Path(shutil.copytree(PACKAGE, to / "bandit_envs", ignore=shutil.ignore_patterns("__pycache__")))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_a_change_in_a_callee_of_another_file_is_seen(tmp_path: Path) -> None:
    package = copied(tmp_path)
    first = word(package)
    assert first[1:3] == (0, 1)
    assert word(package)[:3] == (first[0], 1, 0)
    edit(package / "rng.py", "for _ in range(10):", "for _ in range(9):")
    changed = word(package)
    assert changed[0] != first[0]
    assert changed[1:3] == (0, 1)
    edit(package / "rng.py", "for _ in range(9):", "for _ in range(10):")
    assert word(package)[0] == first[0]


TYPED = """
from typing import NamedTuple
from bandit_envs import lean

class Pair(NamedTuple):
    a: float
    b: float

@lean
def total(pair):
    return pair.a + pair.b
"""
USE = "import typed; print(typed.total(typed.{kind}(1.0, 2.0)), sum(typed.total.stats.cache_hits.values()))"


def test_a_type_that_is_gone_does_not_spoil_the_cache(tmp_path: Path) -> None:
    package, module = copied(tmp_path), tmp_path / "typed.py"
    (tmp_path / "agents").mkdir()
    module.write_text(TYPED)
    assert [run(USE.format(kind="Pair"), package=package) for _ in range(2)] == ["3.0 0", "3.0 1"]
    module.write_text(TYPED.replace("Pair", "Both"))
    assert run(USE.format(kind="Both"), package=package) == "3.0 0"


@pytest.mark.slow
def test_without_the_stamp_the_change_would_be_missed(tmp_path: Path) -> None:
    package = copied(tmp_path)
    edit(
        package / "compiled.py",
        "        return stamp_of(self._function)",
        '        return "always fresh"',
    )
    first = word(package)
    edit(package / "rng.py", "for _ in range(10):", "for _ in range(9):")
    assert word(package)[:3] == (first[0], 1, 0)


# --- nowhere to write -------------------------------------------------------------------------------------------------

NOWHERE: dict[str, Any] = {"HOME": os.devnull, "XDG_CACHE_HOME": None, "NUMBA_CACHE_DIR": None, "LOCALAPPDATA": None}


def sealed(to: Path) -> Path:
    """A copy of the package in which no cache can be written, not even by root: __pycache__ is a file."""
    package = copied(to)
    for folder in (package, package / "problems"):
        (folder / "__pycache__").write_text("")
    return package


def test_an_installation_that_cannot_be_written_to_caches_in_the_temporary_directory(tmp_path: Path) -> None:
    package, temporary = sealed(tmp_path), tmp_path / "tmp"
    temporary.mkdir()
    first = word(package, TMPDIR=str(temporary), **NOWHERE)
    assert first[1:3] == (0, 1)
    again = word(package, TMPDIR=str(temporary), **NOWHERE)
    assert again[:3] == (first[0], 1, 0)
    assert Path(again[3]).is_relative_to(temporary)
    (own,) = temporary.iterdir()
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    edit(package / "rng.py", "for _ in range(10):", "for _ in range(9):")
    assert word(package, TMPDIR=str(temporary), **NOWHERE)[0] != first[0]  # never stale there either


@pytest.mark.parametrize("obstacle", ["a file", "others may write"])
def test_without_any_place_kernels_are_compiled_in_every_process(tmp_path: Path, obstacle: str) -> None:
    package, temporary = sealed(tmp_path), tmp_path / "tmp"
    temporary.mkdir()
    place = temporary / f"bandit_envs-{os.getuid()}"
    if obstacle == "a file":
        place.write_text("")
    else:  # what is loaded from a cache runs as code: such a directory is not trusted
        place.mkdir()
        place.chmod(0o777)
    assert word(package, TMPDIR=str(temporary), **NOWHERE) == (word(PACKAGE)[0], 0, 1, "None")
    assert place.is_file() or not any(place.iterdir())


def test_another_place_can_be_named(tmp_path: Path) -> None:
    found = word(sealed(tmp_path), **NOWHERE | {"NUMBA_CACHE_DIR": str(tmp_path / "mine")})
    assert Path(found[3]).is_relative_to(tmp_path / "mine")


@pytest.mark.parametrize("damage", ["empty .nbc", "half .nbc", "half .nbi"])
def test_damaged_caches_are_written_anew(damage: str, tmp_path: Path) -> None:
    """The same words come out, and the next process finds what it needs."""
    script = (
        "import logging, sys; logging.basicConfig(level=20, stream=sys.stdout, format='%(message)s');"
        "import numpy as np; from bandit_envs.rng import normal_quantiles as q; print(q(np.array([0.3, 0.99])))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run() -> str:
        return subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout

    told = run()
    how, suffix = damage.split()
    for path in tmp_path.rglob(f"*{suffix}"):
        path.write_bytes(path.read_bytes()[: 0 if how == "empty" else path.stat().st_size // 2])
    again, last = run(), run()
    assert "compiling" in told
    assert "compiling" in again
    assert last == told.splitlines()[-1] + "\n"


def test_disabled_compilation_is_told() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import bandit_envs"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ImportError: bandit_envs is compiled by Numba, which NUMBA_DISABLE_JIT=1 forbids" in run.stderr
