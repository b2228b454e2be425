"""Every command on the pages, as printed: within a minute on two cores, unless its page says beforehand how long.

    PYTHONPATH=tests/support python tests/campaigns/page_commands.py     in tests each with few episodes

A command that takes longer than a minute says so, in a comment or in the paragraph before it: "about 20 minutes on two
cores". Of more than `LONGEST` minutes it is only read and checked. Commands after the entry points of an installed
package need it to be there: tests/package/test_stranger.py runs them.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def check_page(page: Path, folder: Path) -> None:
    """Run the commands of a page in a folder."""
    write_files(page, folder)
    for line in OWN[page]:
        most = line.stated or MINUTE
        if most > LONGEST * 60:
            check_only(line)
            continue
        words = [sys.executable, "-m", "agents", *line.words[1:]]
        done = subprocess.run(
            words, cwd=folder, env=with_path(ROOT), capture_output=True, text=True, timeout=1.5 * most
        )
        assert done.returncode == 0, (line.text, done.stderr)


def main() -> None:
    for page in OWN:
        with tempfile.TemporaryDirectory() as folder:
            check_page(page, Path(folder))
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
