"""Registries: rows of our own, of users, and of installed packages, found when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from bandit_envs import Registry
from bandit_envs.instances.registry import imported

GROUP = "bandit_envs.tests"


def whole(name: str, value: Any) -> None:
    if not isinstance(value, int):
        raise ValueError(f"{name} must be whole, got {value!r}")


def registry(reserved: Any = (), **rows: Any) -> Registry[int]:
    return Registry("number", GROUP, whole, {"one": 1, "max": "sys:maxsize", **rows}, reserved)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs a package with these entry points; its modules are kept out of later tests."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def install(name: str, source: str, **points: str) -> None:
        (tmp_path / f"{name}.py").write_text(source)
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "".join(f"{point} = {value}\n" for point, value in points.items())
        (about / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")

    yield install
    for module in set(sys.modules) - before:
        del sys.modules[module]


def test_rows_are_found_and_imported_when_asked_for() -> None:
    numbers = registry()
    assert (numbers["one"], numbers.find("max"), numbers.find("sys:hexversion")) == (1, sys.maxsize, sys.hexversion)
    assert list(numbers) == ["one", "max"]
    assert len(numbers) == 2
    assert dict(numbers) == {"one": 1, "max": sys.maxsize}


def test_what_is_unknown_is_named_with_what_is_near() -> None:
    numbers = registry()
    for name in ("onne", 1, [1], None, {}, float("nan")):
        with pytest.raises(ValueError, match="unknown number .*Known: max, one"):
            numbers.find(name)  # type: ignore[arg-type]
        assert name not in numbers
    with pytest.raises(ValueError, match="did you mean 'one'"):
        numbers.find("onne")
    with pytest.raises(KeyError):
        numbers["onne"]


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:x", "'no_such_module:x' cannot be imported: ModuleNotFoundError"),
        ("sys:no_such_name", "'sys:no_such_name' cannot be imported: AttributeError"),
        (":x", "':x' cannot be imported"),
        ("sys:", "'sys:' cannot be imported"),
        ("sys:path", "sys:path must be whole, got"),
    ],
)
def test_targets_that_are_none(target: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        registry().find(target)
    numbers = registry(bad=target)
    assert "bad" in numbers
    with pytest.raises(ValueError, match=said.replace("sys:path", "bad") if "must" in said else said):
        numbers["bad"]
    assert imported("os.path:join").__name__ == "join"


def test_registering() -> None:
    numbers = registry()
    numbers.register("two", 2)
    numbers.register("two", 22)  # a cell of a notebook that runs again
    numbers.register("my-number_3.0", "sys:maxsize")
    numbers.register("one", 1)  # the same object again
    assert (numbers["two"], numbers["my-number_3.0"]) == (22, sys.maxsize)
    assert list(numbers) == ["one", "max", "two", "my-number_3.0"]
    with pytest.raises(ValueError, match="'one' comes with this package"):
        numbers.register("one", 11)
    for name in ("", "two words", "a:b", "a(b)", "-", 1, None, "\n"):
        with pytest.raises(ValueError, match="the name of the number must be a word"):
            numbers.register(name, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="half must be whole, got 0.5"):
        numbers.register("half", 0.5)  # type: ignore[arg-type]
    for text in ("sys", ":", "sys:", ":maxsize", " : ", "sys:path:x"):
        with pytest.raises(ValueError, match=f"'text' must be an object or 'module:name', got '{text}'"):
            numbers.register("text", text)
    assert numbers["one"] == 1
    assert "half" not in numbers


def test_names_that_are_refused(packages: Any) -> None:
    """By what the registry says of them: `register` refuses them, entry points of such names are left out."""
    packages("theirs", "n = 4\n", **{"four.zip": "theirs:n", "four": "theirs:n"})
    numbers = Registry("number", GROUP, whole, {}, refused=lambda name: "is odd" if name.endswith(".zip") else None)
    with pytest.warns(RuntimeWarning, match="number 'four.zip' of the package 'theirs' is left out: its name is odd"):
        assert list(numbers) == ["four"]
    with pytest.raises(ValueError, match="the name of the number is odd, got 'two.zip'"):
        numbers.register("two.zip", 2)
    assert list(numbers) == ["four"]


def test_installed_packages(packages: Any) -> None:
    four = "brings_numbers:four"
    packages("brings_numbers", "four = 4\nhalf = 0.5", four=four, one=four, half="brings_numbers:half")
    packages("broken_at_import", "1 / 0", wrong="broken_at_import:x")
    packages("not_there", "", **{"gone": "not_there:x", "odd": "not_there", "two words": "not_there:x"})
    numbers = registry()
    assert set(numbers) == {"one", "max", "four", "half", "wrong", "gone", "odd"}
    assert list(numbers)[:2] == ["one", "max"]  # ours first
    assert "brings_numbers" not in sys.modules  # names only
    assert numbers.find("four") == numbers["four"] == 4
    assert numbers["one"] == 1  # ours cannot be replaced
    assert len(numbers) == 7
    with pytest.raises(ValueError, match=r"'four' comes with an installed package \(brings_numbers:four\): choose"):
        numbers.register("four", 44)  # nor can theirs
    with pytest.raises(ValueError, match="'four' comes with an installed package"):
        numbers.register("four", "brings_numbers:half")
    assert numbers["four"] == 4
    numbers.register("four", four)  # what the entry point names already
    assert (numbers["four"], len(numbers)) == (4, 7)
    for name, said in {
        "half": "half must be whole, got 0.5",
        "wrong": "'broken_at_import:x' cannot be imported: ZeroDivisionError",
        "gone": "'not_there:x' cannot be imported: AttributeError",
        "odd": "'not_there' cannot be imported",
    }.items():
        with pytest.raises(ValueError, match=said):
            numbers.find(name)


def test_entry_points_that_fail_name_their_package(packages: Any) -> None:
    packages("fine", "five = 5", five="fine:five [fast,slow]", six=" fine : five ", alias="fine:five")
    packages("keyless", "{}['lost words']", keyless="keyless:x")
    packages("leaving", "raise SystemExit('enough')", leaving="leaving:x [extra]")
    packages("stopping", "class Stop(BaseException): pass\nraise Stop('now')", stopping="stopping:x")
    numbers = registry(reserved=("alias",))
    assert (numbers["five"], numbers["six"], numbers.installed["five"]) == (5, 5, "fine:five")
    assert "alias" not in numbers
    with pytest.raises(ValueError, match="the number 'alias' comes with this package"):
        numbers.register("alias", 3)
    for name, error, said in (
        ("keyless", KeyError, "KeyError: 'lost words'"),
        ("leaving", SystemExit, "SystemExit: enough"),
        ("stopping", BaseException, "Stop: now"),
    ):
        said = f"the entry point '{name}' of the package '{name}' in {GROUP}: .*{said}"
        with pytest.raises(ValueError, match=said) as e:
            numbers.find(name)
        cause = e.value.__cause__
        assert cause is not None
        assert isinstance(cause.__cause__, error)
    assert numbers["five"] == 5


def test_a_check_that_fails_in_an_odd_way_names_the_package(packages: Any) -> None:
    packages("oddly", "x = {}", odd="oddly:x")

    def check(name: str, value: Any) -> None:
        value["missing"]

    numbers: Registry[Any] = Registry("number", GROUP, check, {})
    with pytest.raises(ValueError, match="the entry point 'odd' of the package 'oddly' .* fails: KeyError: 'missing'"):
        numbers["odd"]


@pytest.mark.parametrize("line", ["only-a-name", "[unfinished\nonly-a-name"])
def test_entry_points_that_cannot_be_read_harm_no_other(packages: Any, tmp_path: Path, line: str) -> None:
    packages("fine", "five = 5", five="fine:five")
    packages("unreadable", "")
    points = tmp_path / "unreadable-1.0.dist-info" / "entry_points.txt"
    points.write_text(f"[{GROUP}]\n{line}\n")
    with pytest.warns(RuntimeWarning, match="the entry points of 'unreadable' cannot be read: TypeError"):
        assert set(registry()) == {"one", "max", "five"}


def test_a_package_registers_what_its_entry_point_names(packages: Any, tmp_path: Path) -> None:
    """Say by a decorator, which runs while the module of the entry point is still being imported."""
    things: Registry[Any] = Registry("thing", GROUP, lambda name, found: None, {})
    packages("decorates", "class Thing: ...\nclass Other: ...", Thing="decorates:Thing")
    (tmp_path / "another.py").write_text("class Thing: ...")
    decorates, another = importlib.import_module("decorates"), importlib.import_module("another")
    first = decorates.Thing
    things.register("Thing", first)
    assert things["Thing"] is first
    again = importlib.reload(decorates).Thing  # as a notebook does it
    things.register("Thing", again)
    assert things["Thing"] is again is not first
    for other in (decorates.Other, another.Thing, 3, None):
        with pytest.raises(ValueError, match=r"the thing 'Thing' comes with an installed package \(decorates:Thing\)"):
            things.register("Thing", other)
    assert things["Thing"] is again
