"""Every command on the pages runs as printed: within a minute on two cores, unless its page says beforehand how long.

The default run takes each command with few episodes, or a second of training, and figures not at all; `-m slow` takes
them as printed. A command
that takes longer than a minute says so, in a comment or in the paragraph before it: "about 20 minutes on two cores".
Such a one is only read and checked here, but for those of at most `LONGEST` minutes, which `-m slow` runs too.
Commands after the entry points of an installed package need it to be there: tests/test_stranger.py runs them.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pages import write_files
from processes import with_path

import agents.cli.parsing as cli
from agents import figures

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / ".github" / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^```(?:bash|console|sh|shell|text)\n(.*?)^```|(?<=\n\n)((?:^ {4}[^\n]*\n)+)", re.MULTILINE | re.DOTALL
)
PROGRAMS = ("bandit-envs", "python", "python3", "pip", "pytest", "pre-commit")
ACTIVATE = ". .venv/bin/activate"
STATED = re.compile(r"about (\d+|an?) (second|minute|hour)s?")
SECONDS = {"second": 1, "minute": 60, "hour": 3600}
MINUTE, LONGEST = 60, 10
# What makes a command quick; the commands themselves are those of the pages.
FEW = ["--episodes", "2"]
FRAMES = ["--frames", "3"]
TRAIN = ["--seconds", "1", "--hyperparameters", "held_out=50", "checkpoints=1"]
EVOLVE = ["--steps", "1", "--hyperparameters", "held_out=1", "episodes=10", "population=4"]
QUICK = {"evaluate": FEW, "train": TRAIN, "race": FRAMES, "watch": FRAMES}
QUICK |= {"benchmark": [], "list": [], "plot": [], "report": [], "--version": [], "session": []}


@dataclass(frozen=True)
class Line:
    """A command of a page.

    Attributes:
        words: as a shell reads them, the program without its folder first. stated: seconds that it takes by the text
            just before it, if that says so. installed: whether it comes after the entry points of a package.
    """

    words: tuple[str, ...]
    stated: int | None
    installed: bool

    @property
    def text(self) -> str:
        return shlex.join(self.words)


def stated(text: str) -> int | None:
    """Seconds that a comment or a paragraph says something takes."""
    found = STATED.findall(" ".join(text.split()))
    return max((int(n) if n.isdigit() else 1) * SECONDS[unit] for n, unit in found) if found else None


def commands(page: str) -> Iterator[Line]:
    """The commands of a page, one after another."""
    for block in BLOCK.finditer(page):
        fenced, body = block[1] is not None, block[1] or re.sub("^ {4}", "", block[2], flags=re.MULTILINE)
        before = page[: block.start()].rstrip().rpartition("\n\n")[2]
        told, session = stated(before), "\n$ " in f"\n{body}"
        for line in body.replace("\\\n", " ").splitlines():
            if session and not line.startswith("$ "):
                continue  # what a command prints
            line = line.removeprefix("$ ")
            code, _, comment = line.partition("# ") if "# " in line else (line, "", "")
            if not code.strip():
                told = stated(comment) or told
                continue
            for one in re.split(r"&&", code):
                name = Path(one.split()[0]).name
                if name in PROGRAMS:
                    words = (name, *shlex.split(one)[1:])
                    yield Line(words, stated(comment) or told, "```toml" in page[: block.start()])
                elif fenced and one.strip() != ACTIVATE:
                    raise AssertionError(f"no command that this test knows: {one!r}")


ALL = {page: list(commands(page.read_text())) for page in PAGES}
OWN = {
    page: [line for line in lines if line.words[0] == "bandit-envs" and not line.installed]
    for page, lines in ALL.items()
}
OWN = {page: lines for page, lines in OWN.items() if lines}


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
    if line.words[1] == "train" or any(word.endswith(".zip") for word in line.words):
        pytest.importorskip("stable_baselines3")


def check_only(line: Line) -> None:
    """Read a command that takes long, and look whether what it names is there."""
    command: Any = cli.parse(line.words[1:])
    if line.words[1] == "train":
        assert command.algorithm == "evolved"  # the others are made quick, see TRAIN
        return
    assert line.words[1] == "reproduce", f"{line.text}: nothing here checks it without running it"
    if command.figure in figures.PAPERS:
        return
    figure = figures.FIGURES[command.figure]
    assert set(command.panels or []) <= {panel.title for panel in figure.panels}


def shorter(line: Line) -> list[str]:
    """What cuts the episodes of a command, which itself comes before it."""
    long = {"--budget": 2000, "--max-pulls": 2000}
    given = {word: int(line.words[i + 1]) for i, word in enumerate(line.words) if word in long}
    cut = {word: str(long[word]) for word, number in given.items() if number > long[word]}
    if line.words[1] == "evaluate" and not given and "--budgets" not in line.words:
        cut = {"--max-pulls": "2000"}
    return [part for pair in cut.items() for part in pair]


@pytest.mark.parametrize("page", OWN, ids=lambda page: page.stem)
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: Any, capsys: Any) -> None:
    """All of a page in one folder, each with few episodes."""
    monkeypatch.chdir(tmp_path)
    write_files(page, tmp_path)
    for folder in ("races", "pictures"):
        (tmp_path / "docs" / folder).mkdir(parents=True)  # as in a checkout
    modules = set(sys.modules)
    try:
        for line in OWN[page]:
            if line.words[1] == "reproduce" or (line.stated or 0) > MINUTE:
                check_only(line)
                continue
            needs(line, request)
            evolves = line.words[1] == "train" and "evolved" in line.words
            quick = EVOLVE if evolves else QUICK[line.words[1]] + shorter(line)
            assert cli.main([*line.words[1:], *quick]) == 0, (line.text, capsys.readouterr().err)
    finally:
        for name in set(sys.modules) - modules:
            if name.partition(".")[0] == "stranger":
                del sys.modules[name]


def test_a_command_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (line,) = commands("\n\n    bandit-envs evaluate TopK --agents clucb --budgets 5 --at 5\n")
    assert cli.main(line.words[1:]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("page", OWN, ids=lambda page: page.stem)
def test_commands_run_as_printed(page: Path, tmp_path: Path, request: Any) -> None:
    write_files(page, tmp_path)
    environment = with_path(ROOT)
    for line in OWN[page]:
        needs(line, request)
        most = line.stated or MINUTE
        if most > LONGEST * 60:
            check_only(line)
            continue
        words = [sys.executable, "-m", "agents", *line.words[1:]]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1.5 * most)
        assert done.returncode == 0, (line.text, done.stderr)
