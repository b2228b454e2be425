"""Options are the parameters of the functions behind: what these document is written there alone."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import agents
from agents.cli import COMMANDS, main
from agents.cli.environment import EnvironmentOptions
from agents.cli.session import Import, New, Plan, Tell
from agents.cli.signatures import SOURCES, Documented, documented, parameters

FILES = sorted(Path(agents.__file__).with_name("cli").glob("*.py"))
FUNCTIONS = sorted(name for name in SOURCES if name[0].islower())
METHODS = [f"Session.{name}" for name in ("ask", "tell", "tell_table", "undo")] + ["Rehearsal.plot"]
KINDS = [*COMMANDS.values(), EnvironmentOptions, New, Plan, Tell, Import]


def help_of(kind: Any) -> dict[str, str]:
    """The help of the options of a class that comes from elsewhere."""
    marks = {
        name: getattr(hint, "__metadata__", ()) for name, hint in get_type_hints(kind, include_extras=True).items()
    }
    texts = {name: [one.help for one in own if getattr(one, "help", None)] for name, own in marks.items()}
    return {name: found[-1] for name, found in texts.items() if found}


def written(sources: list[str]) -> Iterator[str]:
    """Options with a help of their own, in classes of options, that a function behind documents."""
    classes = {one.name: one for text in sources for one in ast.walk(ast.parse(text)) if isinstance(one, ast.ClassDef)}

    def line(kind: ast.ClassDef) -> Iterator[ast.ClassDef]:
        yield kind
        for base in kind.bases:
            name = getattr(base, "id", None) or getattr(getattr(base, "value", None), "id", None)
            if name in classes:
                yield from line(classes[name])

    for kind in classes.values():
        given = [{one.arg: one.value for one in each.keywords} for each in line(kind)]
        behind = [
            name for one in given for key in ("of", "also") if key in one for name in ast.literal_eval(one[key]).split()
        ]
        named = {
            name: other for one in given if "named" in one for name, other in ast.literal_eval(one["named"]).items()
        }
        known = {name for one in behind for name in documented(one)}
        for one, after in zip(kind.body, kind.body[1:], strict=False):
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                text = isinstance(after, ast.Expr) or "help=" in ast.unparse(one)
                if text and named.get(one.target.id, one.target.id) in known:
                    yield f"{kind.name}.{one.target.id}"


def test_no_help_of_a_parameter_is_written_in_the_command_line() -> None:
    assert list(written([path.read_text() for path in FILES])) == []
    wrong = '''
class Base(Command, of="results"):
    """Help."""

class Own(Base[Options], also="plot", named={"figure": "path"}):
    """Help."""
    figure: str = ""
    """A file."""
    trust: Annotated[bool, arg(help="Own code runs.")] = False
    force: bool = False
    """Nothing documents it."""
    level: float = 0.95
'''
    assert list(written([wrong])) == ["Own.figure", "Own.trust"]


def test_no_sentence_of_a_docstring_is_written_again() -> None:
    def plain(text: str) -> str:
        return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()

    names = [*SOURCES, *METHODS]
    told = {plain(one) for name in names for text in documented(name).values() for one in re.split(r"[.;:] ", text)}
    told = {one for one in told if one.count(" ") >= 6}
    assert len(told) > 100
    texts = [
        plain(node.value)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [one for one in told if any(one in text for text in texts)] == []


def function(name: str) -> Any:
    """The function of a name, or the method."""
    if name == "train":
        pytest.importorskip("stable_baselines3")
    first, *rest = name.split(".")
    found = getattr(importlib.import_module(SOURCES[first]), first)
    for one in rest:
        found = getattr(found, one)
    return found


@pytest.mark.parametrize("name", [*FUNCTIONS, *METHODS])
def test_a_source_is_read_as_python_reads_it(name: str) -> None:
    own = inspect.signature(function(name)).parameters.values()
    known = {
        one.name: one for one in own if one.name != "self" and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    read = parameters(name)
    assert list(read)[: len(known)] == list(known)
    assert len(read) == len(known) or name == "task_from_facts"
    for one in known:
        annotation, default = read[one]
        assert annotation == known[one].annotation
        if default is None:
            assert known[one].default is inspect.Parameter.empty
        elif not isinstance(default, (ast.Name, ast.Attribute)):
            assert ast.literal_eval(default) == known[one].default


def test_help_and_defaults_are_those_of_the_functions() -> None:
    found = {kind.__name__: help_of(kind) for kind in KINDS}
    assert sum(map(len, found.values())) > 150
    assert found["Evaluate"]["at"].startswith("Numbers of pulls. Each episode has a row for each of them")
    assert found["Evaluate"]["budgets"].startswith("One run per budget, in place of --at.")
    assert found["Plot"]["figure"] == found["Evaluate"]["figure"] == documented("plot")["path"]
    assert found["Race"]["trust"] == found["Watch"]["trust"] == documented("evaluate")["trust"]  # by way of `play`
    assert found["Benchmark"]["set"] == documented("benchmark_tasks")["set"]
    assert found["ABTest"]["lift"] == documented("BetterThanControl")["lift"]
    assert found["Tell"]["n"] != found["Tell"]["successes"]
    assert found["EnvironmentOptions"]["budget"] == "Pulls per episode."
    assert found["Import"]["arm"].startswith("Of a long table, the column of the arms' names. Left out: ")
    assert {one.default for one in dataclasses.fields(EnvironmentOptions)} == {None, ()}
    fields: Any = {one.name: one.default for one in dataclasses.fields(Plan)}
    assert (fields["episodes"], fields["workers"], fields["batch"]) == (200, 1, None)


def test_facts_are_documented() -> None:
    """All but that a session shows its own: the help of each option of `session new` is in a docstring."""
    assert set(help_of(New)) == {one.name for one in dataclasses.fields(New)} - {"parameters"}


def test_options_of_a_class() -> None:
    class Small(Documented, of="results ab_test", without="table control", named={"folder": "out"}, optional=True):
        folder: str
        rate: int = 3

    made: Any = Small(folder="here", margin=2.0)
    assert made.handed("results") == {"out": "here", "trust": None}
    assert (made.rate, made.delta, made.margin) == (3, None, 2.0)
    assert "table" not in vars(made)
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.rate = 4


def test_the_help_shows_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["session", "tell", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, text in help_of(Tell).items():
        assert text in shown, name
