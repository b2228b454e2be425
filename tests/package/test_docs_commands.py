"""Every command on the pages runs, with few episodes, or a second of training, and figures not at all."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from page_commands import ALL, MINUTE, OWN, PAGES, ROOT, Line, check_only, commands
from pages import write_files

import agents.cli.parsing as cli

# What makes a command quick; the commands themselves are those of the pages.
FEW = ["--episodes", "2"]
FRAMES = ["--frames", "3"]
TRAIN = ["--seconds", "1", "--hyperparameters", "held_out=4", "checkpoints=1"]
EVOLVE = ["--steps", "1", "--hyperparameters", "held_out=1", "episodes=10", "population=4"]
QUICK = {"evaluate": FEW, "train": TRAIN, "race": FRAMES, "watch": FRAMES, "play": ["--episodes", "2"]}
QUICK |= {"benchmark": [], "list": [], "plot": [], "report": [], "--version": [], "session": []}
QUICK |= {"ab-test": [], "ab-plan": ["--runs", "20"], "compare": [], "gate": []}


def test_commands_are_found() -> None:
    text = (
        'Lines. It takes about 2 minutes:\n\n    bandit-envs evaluate A --agents "b(c=1)" \\\n        --seed 1\n\n'
        "More:\n\n```console\n$ x/bin/bandit-envs list && pip install y  # about 30 seconds on two cores\nname\n```\n\n"
        "```bash\n# about an hour\nbandit-envs reproduce z\n```\n\n    x = 1\n\n```toml\na = 1\n```\n\n"
        "    bandit-envs list\n"
    )
    assert [(line.text, line.stated, line.installed) for line in commands(text)] == [
        ("bandit-envs evaluate A --agents 'b(c=1)' --seed 1", 120, False),
        ("bandit-envs list", 30, False),
        ("pip install y", 30, False),
        ("bandit-envs reproduce z", 3600, False),
        ("bandit-envs list", None, True),
    ]
    written = sum(len(re.findall(r"^(?:    |\$ )?(?:\S*/)?bandit-envs ", page.read_text(), re.M)) for page in PAGES)
    assert sum(line.words[0] == "bandit-envs" for lines in ALL.values() for line in lines) == written > 30


def test_what_pip_and_python_are_told_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    others = [line.words for lines in ALL.values() for line in lines if line.words[0] != "bandit-envs"]
    assert others
    for words in others:
        for named in re.findall(r"\[([\w,]+)\]", " ".join(words)):
            assert set(named.split(",")) <= set(extras), words
        if words[0].startswith("python"):
            example = words[1].startswith("examples/")  # run by `test_docs.py`
            assert example or words[1] == "-m", words
            assert example or words[2] in ("venv", "pip", "pytest"), words
        for path in words[1:]:
            assert not path.endswith(".py") or (ROOT / path).is_file(), words


def needs(line: Line, request: pytest.FixtureRequest) -> None:
    """Skip what this machine lacks."""
    if any(word.startswith("captions") for word in line.words):
        request.getfixturevalue("data_folder")
    if line.words[1] == "session":
        pytest.importorskip("sqlalchemy")
    if line.words[1] == "train" or any(word.endswith((".safetensors", ".zip")) for word in line.words):
        pytest.importorskip("stable_baselines3")


def shorter(line: Line) -> list[str]:
    """What cuts the episodes of a command, which itself comes before it."""
    long = {"--budget": 2000, "--max-pulls": 2000}
    given = {word: int(line.words[i + 1]) for i, word in enumerate(line.words) if word in long}
    cut = {word: str(long[word]) for word, number in given.items() if number > long[word]}
    if line.words[1] == "evaluate" and not given and "--budgets" not in line.words:
        cut = {"--max-pulls": "2000"}
    return [part for pair in cut.items() for part in pair]


FIRST = {  # a page for each kind of command
    "README": "evaluate train session",
    "install": "list --version",
    "pictures": "evaluate race watch report plot play",
    "benchmark": "benchmark",
    "compare-logs": "compare",
    "ab-tests": "ab-test ab-plan gate",
}


def kind(line: Line) -> tuple[str, ...]:
    return line.words[1 : 3 if line.words[1] == "session" else 2]


def test_commands_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with options of its own; and one of each kind, but for figures, is run below."""
    monkeypatch.chdir(tmp_path)
    seen = {("--version",)}
    for page, lines in OWN.items():
        write_files(page, tmp_path)
        for line in lines:
            options = *kind(line), *sorted(word for word in line.words if word.startswith("--"))
            if options not in seen and "--version" not in options:
                cli.parse(line.words[1:])
            seen.add(options)
    assert {word for kinds in FIRST.values() for word in kinds.split()} == {one[0] for one in seen} - {"reproduce"}


@pytest.mark.parametrize(
    ("which", "page"),
    [*(("first", page) for page in OWN if page.stem in FIRST), *(("all", page) for page in OWN)],
    ids=lambda one: getattr(one, "stem", one),
)
def test_commands_run(
    which: str, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any, capsys: Any
) -> None:
    """Those of a page in one folder, each with few episodes; or the first of each kind."""
    monkeypatch.chdir(tmp_path)
    write_files(page, tmp_path)
    for folder in ("races", "pictures"):
        (tmp_path / "docs" / folder).mkdir(parents=True)  # as in a checkout
    modules = set(sys.modules)
    try:
        for i, line in enumerate(OWN[page]):
            if which == "first" and (
                line.words[1] not in FIRST[page.stem].split() or kind(line) in map(kind, OWN[page][:i])
            ):
                continue
            if line.words[1] == "reproduce" or (line.stated or 0) > MINUTE:
                check_only(line)
                continue
            needs(line, request)
            evolves = line.words[1] == "train" and "evolved" in line.words
            quick = EVOLVE if evolves else QUICK[line.words[1]] + shorter(line)
            words = [word.replace('"budget": 5000', '"budget": 200') for word in line.words[1:]]  # of --mix
            assert cli.main([*words, *quick]) == 0, (line.text, capsys.readouterr().err)
    finally:
        for name in set(sys.modules) - modules:
            if name.partition(".")[0] == "stranger":
                del sys.modules[name]


def test_a_command_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (line,) = commands("\n\n    bandit-envs evaluate TopK --agents clucb --budgets 5 --at 5\n")
    assert cli.main(line.words[1:]) == 2
