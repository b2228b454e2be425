"""Do tests notice small mistakes in the code? A mutation run, for developers.

    python tests/campaigns/mutation.py --list                    what would be changed
    python tests/campaigns/mutation.py --work DIR                30 changes, one by one; goes on where it was
    python tests/campaigns/mutation.py --work DIR --rev COMMIT   the same changes, tried on the tests of that commit
    python tests/campaigns/mutation.py --work DIR --only nearest those in files whose path holds this text
    python tests/campaigns/mutation.py --work DIR --report       the table of what has been tried, in Markdown

Each mutant is the code with one change: another number, comparison or operator, min for max, `and` for `or`, a `not` or
a sign left out, branches exchanged, a statement removed. They are drawn by a seed from all code of the package, each
with the same chance. Of each, the tests of its area (`AREAS`) are run, quickest first, in a copy of this folder, until
one fails. The table of DIR, `mutants.csv`, says which. A mutant that no test catches is a hole in the tests, or it
changes nothing that anybody can see: such ones are named, with the reason, in `mutation_equivalent.csv` beside it, and
not tried any more.

Why not a public tool: mutmut switches between mutants at run time, by functions in the place of those of the module,
which Numba does not compile; cosmic-ray rewrites files, as this does, but runs one command for all of them, removes no
statements, and most of its comparisons (`is not` for `<`) are no code that Numba takes, which flatters the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fnmatch
import itertools
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from mutants import PACKAGES, ROOT, Mutant, is_python, mutants_of, mutated

EQUIVALENT = Path(__file__).with_name("mutation_equivalent.csv")
WIDEST = 70  # characters of a change in a report
COLUMNS = ("id", "file", "line", "change", "code", "verdict", "by", "seconds")

BOUNDS = "test_constants.py test_mixtures.py test_limits.py test_constants_agents.py"
EVIDENCE = [BOUNDS, "test_evidence.py test_certified.py test_own_evidence.py test_dependent.py test_scale.py"]
CONTRACT = "test_conformance.py test_agents_bad_calls.py test_doors.py"
GOLDEN = "test_golden.py"
ROUNDS = "test_top_k_rounds.py test_adaptive_top_k.py test_classics.py test_elimination_agents.py"
AREAS: dict[str, list[str]] = {  # files: their tests, quickest first; each entry is one call of pytest
    "bandit_envs/stopping/*.py": [*EVIDENCE, "test_own_problems.py", "test_certified_agents.py test_promises.py"],
    "bandit_envs/problems/certificates.py": ["test_constants_agents.py", "test_adaptive_top_k.py"],
    "bandit_envs/problems/lookahead.py": ["test_gains.py test_lookahead.py test_look_ahead.py"],
    "bandit_envs/problems/potential.py": ["test_gains.py test_lookahead.py test_look_ahead.py"],
    "bandit_envs/problems/*.py": ["tests/problems", "test_constants.py test_evidence.py"],
    "bandit_envs/kernels/geometry.py": ["test_geometry.py", "test_feasible_measures.py test_feasible_agents.py"],
    "bandit_envs/testing.py": ["test_conformance.py test_own_problems.py"],
    "bandit_envs/*.py": ["tests/envs", "tests/problems", "test_conformance.py"],
    "agents/all_good/*.py": ["test_all_good_agents.py test_elimination_agents.py", CONTRACT, GOLDEN],
    "agents/certified/*.py": [
        "test_certified_agents.py test_constants_agents.py",
        "test_certified.py test_promises.py",
        GOLDEN,
    ],
    "agents/cli/*.py": ["tests/cli", "test_session_cli.py test_docs_commands.py", "test_pages.py test_plots.py"],
    "agents/core/*.py": [
        "test_conformance.py test_player.py test_kernels.py test_trees.py",
        "test_certified.py test_certified_agents.py test_constants_agents.py",
        f"{ROUNDS} test_all_good_agents.py test_thresholding_agents.py test_feasible_agents.py",
        "test_agents_bad_calls.py test_own_agents.py test_coordinates.py test_doors.py test_bad_input.py",
        GOLDEN,
    ],
    "agents/evaluation/*": ["tests/evaluation", "test_cli.py test_figures.py"],
    "agents/evolved/*.py": ["tests/evolved"],
    "agents/figures/*.py": ["tests/figures"],
    "agents/learned/*.py": ["tests/learned"],
    "agents/models/*.py": ["tests/learned", "tests/evolved"],
    "agents/pictures/*.py": ["tests/pictures", "test_cli.py"],
    "agents/session/*.py": ["tests/session"],
    "agents/thresholding/*.py": ["test_thresholding_agents.py test_classics.py test_dp_index.py", CONTRACT, GOLDEN],
    "agents/top_k/*.py": [f"{ROUNDS} test_feasible_agents.py", CONTRACT, GOLDEN],
    "agents/*.py": ["test_conformance.py test_own_agents.py test_look_ahead.py", "test_doors.py test_evaluation.py"],
}

# --- which mutants ----------------------------------------------------------------------------------------------------


def tests_of(file: str, root: Path) -> list[list[str]]:
    """The calls of pytest for a mutant of a file, of the tests that lie in a folder."""
    calls = next(calls for pattern, calls in AREAS.items() if fnmatch.fnmatch(file, pattern))
    return [found for call in calls if (found := [path for one in call.split() for path in paths_of(one, root)])]


def paths_of(name: str, root: Path) -> list[str]:
    """The files of tests of a name, or of a folder; where tests lie in one folder, those that now lie in that one."""
    if name.startswith("test_"):
        found = (root / "tests").rglob(name)
    elif (root / name).is_dir():
        found = (root / name).glob("test_*.py")
    else:
        found = (path for one in (ROOT / name).glob("test_*.py") for path in (root / "tests").rglob(one.name))
    return sorted(str(path.relative_to(root)) for path in found)


def of_all_files(only: str) -> list[Mutant]:
    """The mutants of each file whose path holds a text."""
    files = sorted(path.relative_to(ROOT).as_posix() for top in PACKAGES for path in (ROOT / top).rglob("*.py"))
    return [one for file in files if only in file for one in mutants_of(file)]


def drawn(count: int, seed: int, only: str) -> list[Mutant]:
    """So many mutants, each with the same chance."""
    order = sorted(of_all_files(only), key=lambda one: one.id)
    random.Random(seed).shuffle(order)
    return list(itertools.islice(filter(is_python, order), count))


# --- a copy to change -------------------------------------------------------------------------------------------------


class Copy:
    """A copy of this folder, whose kernels are kept beside it.

    Args:
        work: folder of the copy, its caches and the table. limit: seconds that a call of pytest may take.
        rev: the commit whose tests are run; those of this folder where it is empty.
    """

    def __init__(self, work: Path, limit: float, rev: str) -> None:
        self.work, self.limit, self.place = work, limit, work / "copy"
        self.broken: list[str] = []  # tests that fail without any change: they are left out
        for left in ("cache-of-mutant", "kept"):
            shutil.rmtree(work / left, ignore_errors=True)
        (work / "cache").mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.place, ignore_errors=True)
        ignored = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "*.egg-info")
        shutil.copytree(ROOT, self.place, ignore=ignored)
        if rev:
            shutil.rmtree(self.place / "tests")
            archive = subprocess.run(
                ["git", "archive", rev, "tests", "pyproject.toml"], cwd=ROOT, stdout=-1, check=True
            )
            subprocess.run(["tar", "-x", "-C", self.place], input=archive.stdout, check=True)

    def run(self, call: Sequence[str]) -> tuple[str, str, float]:
        """Run tests: "passed", "failed" or "no end"; the first test that failed; seconds."""
        env = os.environ | {
            "NUMBA_CACHE_DIR": str(self.work / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=line", *(f"--deselect={one}" for one in self.broken)]
        command = [sys.executable, "-m", "pytest", *options, *call]
        begin, log = time.perf_counter(), self.work / "log.txt"
        with log.open("w") as output:
            made = subprocess.Popen(
                command, cwd=self.place, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = made.wait(self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(made.pid, signal.SIGKILL)
                made.wait()
                return "no end", call[0], time.perf_counter() - begin
        told = log.read_text()
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told, re.MULTILINE)
        where = failed.group(1) if failed else " ".join(call)
        return "passed" if code == 0 else "failed", where, time.perf_counter() - begin

    def verdict(self, mutant: Mutant) -> tuple[str, str, float]:
        """Whether the tests of its area catch a mutant: "caught", "no end" or "survived"; by which; seconds."""
        waiting, whole = tests_of(mutant.file, self.place), 0.0
        while waiting:
            with self.changed(mutant):
                result, shown, seconds = self.run(waiting[0])
            whole += seconds
            if result == "no end" or result == "failed" and self.run(shlex.split(shown))[0] == "passed":
                return ("caught" if result == "failed" else result), shown, whole
            if result == "passed":
                waiting.pop(0)
            elif shown in self.broken:
                raise RuntimeError(f"{shown} fails without any change, and cannot be left out")
            else:
                print(f"fails without any change: {shown}", flush=True)
                self.broken.append(shown)
        return "survived", "", whole

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """The copy with the change. Kernels that it concerns are compiled anew, by their stamps."""
        target, kept, own = self.place / mutant.file, self.work / "cache", self.work / "cache-of-mutant"
        original = target.read_text()
        shutil.copytree(kept, own, copy_function=os.link)  # Numba replaces files, and changes none
        kept.rename(self.work / "kept")
        own.rename(kept)
        try:
            target.write_text(mutated((ROOT / mutant.file).read_text(), mutant))
            yield
        finally:
            target.write_text(original)
            kept.rename(own)
            (self.work / "kept").rename(kept)
            for path in own.rglob("*"):  # what nobody had asked for before
                if path.is_file() and not (known := kept / path.relative_to(own)).exists():
                    known.parent.mkdir(parents=True, exist_ok=True)
                    path.rename(known)
            shutil.rmtree(own)


# --- the table --------------------------------------------------------------------------------------------------------


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def reasons() -> dict[str, str]:
    """{id of a mutant that nobody can tell from the code: why}."""
    return {row["id"]: row["because"] for row in _read(EQUIVALENT)}


def report(rows: Sequence[dict[str, str]]) -> str:
    """The table of what has been tried, in Markdown, and the share that tests have caught."""
    known, lines, counts = reasons(), list[str](), defaultdict[str, int](int)
    for row in sorted(rows, key=lambda row: (row["file"], int(row["line"]))):
        is_known = row["verdict"] == "survived" and row["id"] in known
        verdict = "equivalent" if is_known else row["verdict"]
        counts[verdict] += 1
        by = known[row["id"]] if is_known else row["by"].removeprefix("tests/")
        change = row["change"] if len(row["change"]) <= WIDEST else f"{row['change'][:WIDEST]} ..."
        cells = f"{row['file']}:{row['line']}", f"`{change}`", verdict, by
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    whole, survived = len(rows), counts["survived"]
    told = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    share = f"{whole} mutants: {told}; {(whole - survived) / max(whole, 1):.1%} caught or equivalent\n"
    return "\n".join([share, "| place | change | verdict | by, or why |", "|---|---|---|---|", *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder of the copy and of the table")
    parser.add_argument("--count", type=int, default=30, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rev", default="", help="the commit whose tests are run, in place of those of this folder")
    parser.add_argument("--only", default="", help="files whose path holds this text")
    parser.add_argument("--ids", nargs="*", help="these mutants, of all that there are")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument("--limit", type=float, default=400, help="seconds that a call of pytest may take")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    parser.add_argument("--report", action="store_true", help="print the table, and try none")
    given = parser.parse_args()
    if given.ids:
        mutants = [one for one in of_all_files(given.only) if one.id in given.ids]
    else:
        mutants = drawn(given.count, given.seed, given.only)
    if given.list:
        for one in sorted(mutants):
            print(f"{one.id} {one.file}:{one.line}  {one.change}    {one.code}")
        print(len(mutants))
        return 0
    if given.work is None:
        parser.error("--work is needed")
    table = given.work.absolute() / "mutants.csv"
    rows = {row["id"]: row for row in _read(table)}
    if given.report:
        print(report(list(rows.values())))
        return 0
    copy = Copy(given.work.absolute(), given.limit, given.rev)
    for place, mutant in enumerate(mutants, 1):
        known = rows.get(mutant.id)
        if known is not None and not (given.again and known["verdict"] == "survived"):
            continue
        verdict, by, seconds = ("survived", "", 0.0) if mutant.id in reasons() else copy.verdict(mutant)
        told = mutant.id, mutant.file, str(mutant.line), mutant.change, mutant.code, verdict, by, f"{seconds:.0f}"
        rows[mutant.id] = dict(zip(COLUMNS, told, strict=True))
        with table.with_suffix(".new").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows.values())
        table.with_suffix(".new").replace(table)
        print(f"{place}/{len(mutants)} {verdict:9} {seconds:4.0f} s  {mutant.id} {mutant.file}:{mutant.line}  "
              f"{mutant.change}  {by}", flush=True)  # fmt: skip
    print(report([rows[one.id] for one in mutants]).splitlines()[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
