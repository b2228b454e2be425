"""Do tests notice small mistakes in the code that guarantees rest on? A mutation run, for developers.

    python tests/campaigns/mutation.py --list                      what would be changed
    python tests/campaigns/mutation.py --work DIR                  220 changes, one by one; goes on where it was
    python tests/campaigns/mutation.py --work DIR --only nearest   those in files whose path holds this text
    python tests/campaigns/mutation.py --work DIR --report         the table of what has been tried, in Markdown

Each mutant is the code with one change: another number, comparison or operator, min for max, `and` for `or`, a `not` or
a sign left out, branches exchanged, a statement removed. They are drawn by a fixed seed, from all files of `AREAS` by
their size. Of each, the tests of its area are run, quickest first, in a copy of this folder, until one fails. The table
of DIR, `mutants.csv`, says which. A mutant that no test catches is a hole in the tests, or it changes nothing that
anybody can see: such ones are named, with the reason, in `mutation_equivalent.csv` beside it, and not tried any more.

Kernels that cannot contain the change are not compiled anew: in the copy, those of a file are stale where one of its
functions uses what has been changed, over any number of steps.

Why not a public tool: mutmut switches between mutants at run time, by functions in the place of those of the module,
which Numba does not compile; cosmic-ray rewrites files, as this does, but runs one command for all of them, removes no
statements, and most of its comparisons (`is not` for `<`) are no code that Numba takes, which flatters the tests.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import itertools
import json
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
from collections.abc import Sequence
from pathlib import Path

from mutants import ROOT, Mutant, is_python, mutants_of, mutated, stale

EQUIVALENT = Path(__file__).with_name("mutation_equivalent.csv")
WIDEST = 70  # characters of a change in a report
COLUMNS = ("id", "file", "line", "change", "code", "verdict", "by", "seconds")

NUMBERS, EXACTLY = "test_constants.py test_mixtures.py", "test_evidence.py"
AGENTS = "test_constants_agents.py"
SESSIONS = ["test_session_constants.py", "test_session_shares.py", "test_session_faults.py", "test_session.py"]
CERTIFIED = [
    f"{AGENTS} -k 'certificate or nominal'",
    "test_certified_agents.py test_dependent.py",
    "test_golden.py -k 'evidence or top-two or track-and-stop'",
]
AREAS: dict[str, list[str]] = {  # files: their tests, quickest first; each entry is one call of pytest
    "bandit_envs/evidence/asking.py": ["test_own_problems.py", EXACTLY],
    "bandit_envs/evidence/authors.py": ["test_own_problems.py test_own_evidence.py", EXACTLY],
    "bandit_envs/evidence/boundaries.py": [NUMBERS, EXACTLY],
    "bandit_envs/evidence/certifier.py": [NUMBERS, f"{AGENTS} -k certificate", "test_certified.py", EXACTLY],
    "bandit_envs/evidence/bounds.py": [EXACTLY, "test_certified_agents.py"],
    "bandit_envs/evidence/crossing.py": [EXACTLY],
    "bandit_envs/evidence/decided.py": [f"{AGENTS} -k certificate", "test_certified.py"],
    "bandit_envs/evidence/game*.py": [EXACTLY],
    "bandit_envs/evidence/levels.py": [EXACTLY],
    "bandit_envs/evidence/polyhedral.py": [NUMBERS, "test_dependent.py", "test_limits.py", EXACTLY],
    "bandit_envs/evidence/[!_]*.py": [NUMBERS, "test_limits.py", EXACTLY],
    "bandit_envs/problems/all_good.py": ["test_problems.py", "test_constants.py", EXACTLY],
    "bandit_envs/problems/certificates.py": [f"{AGENTS} -k adapt", "test_adaptive_top_k.py"],
    "bandit_envs/problems/feasible_measures.py": ["test_feasible_measures.py"],
    "bandit_envs/problems/own.py": ["test_own_problems.py"],
    "bandit_envs/problems/threshold_measures.py": ["test_threshold_measures.py"],
    "bandit_envs/problems/[!_]*.py": ["test_problems.py", "test_constants.py", "test_own_problems.py", EXACTLY],
    "agents/core/certified.py": [f"{AGENTS} -k certificate", "test_certified.py"],
    "agents/core/confidence.py": [AGENTS, "test_all_good_agents.py"],
    "agents/certified/[!_]*.py": CERTIFIED,
    "agents/session/fold.py": SESSIONS,
    "agents/session/log.py": SESSIONS,
    "agents/session/promise.py": SESSIONS,
    "agents/session/run.py": [*SESSIONS[:2], "test_session_ends.py", *SESSIONS[2:]],
    "agents/session/session.py": SESSIONS,
    "agents/session/tables.py": SESSIONS,
    "agents/evaluation/statistics.py": ["test_statistics.py test_comparisons.py", "test_checkpoints.py"],
}

# --- which mutants ----------------------------------------------------------------------------------------------------


def found(name: str) -> str:
    """The path of a file of tests."""
    return str(next((ROOT / "tests").rglob(name)).relative_to(ROOT))


def tests_of(file: str) -> list[list[str]]:
    """The calls of pytest for a mutant of a file."""
    calls = next(calls for pattern, calls in AREAS.items() if fnmatch.fnmatch(file, pattern))
    return [[found(one) if one.startswith("test_") else one for one in shlex.split(call)] for call in calls]


def of_all_areas(only: str) -> dict[str, list[Mutant]]:
    """The mutants of each file of `AREAS` whose path holds a text."""
    files = {path.relative_to(ROOT).as_posix() for pattern in AREAS for path in ROOT.glob(pattern)}
    return {file: mutants_of(file) for file in sorted(files) if only in file}


def drawn(count: int, seed: int, only: str) -> list[Mutant]:
    """So many mutants: of each file in proportion to how many it has, two at least; spread over all files."""
    all_of = of_all_areas(only)
    whole, found = sum(map(len, all_of.values())), list[Mutant]()
    for file, mutants in all_of.items():
        order = sorted(mutants, key=lambda one: one.id)
        random.Random(f"{seed} {file}").shuffle(order)
        found += itertools.islice(filter(is_python, order), max(2, round(count * len(mutants) / whole)))
    random.Random(seed).shuffle(found)
    return found


# --- a copy to change -------------------------------------------------------------------------------------------------

STAMP = """
    def get_source_stamp(self) -> str:  # in the copy: by what has been changed
        told = Path(os.environ["MUTATION_STALE"]).read_text().splitlines()
        own = Path(self._py_file).resolve()
        return "changed" if any(own == Path(one) for one in told) else "base"
"""


class Copy:
    """A copy of this folder, whose kernels are kept beside it.

    Args:
        work: folder of the copy, its caches and the table. limit: seconds that tests may take beyond thrice their own.
    """

    def __init__(self, work: Path, limit: float) -> None:
        self.work, self.limit, self.place = work, limit, work / "copy"
        self.usual: dict[str, float] = {}
        self.broken: list[str] = []  # tests that fail without any change: they are left out
        work.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.place, ignore_errors=True)
        ignored = shutil.ignore_patterns(".git", "__pycache__", ".*_cache", "*.egg-info")
        shutil.copytree(ROOT, self.place, ignore=ignored)
        compiled = self.place / "bandit_envs" / "compiled.py"
        text = compiled.read_text()
        head = "class _Stamped:"
        assert head in text
        compiled.write_text(
            text.replace("    def get_source_stamp(", "    def _whole_stamp(", 1).replace(
                "    _py_file: str\n", f"    _py_file: str\n{STAMP}", 1
            )
        )
        (work / "stale").write_text("")

    def run(self, call: Sequence[str], cache: str, limit: float | None) -> tuple[str, str, float]:
        """Run tests: "passed", "failed" or "no end"; the first test that failed; seconds."""
        env = os.environ | {
            "NUMBA_CACHE_DIR": str(self.work / cache),
            "MUTATION_STALE": str(self.work / "stale"),
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
                code = made.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(made.pid, signal.SIGKILL)
                made.wait()
                return "no end", call[0], time.perf_counter() - begin
        told = log.read_text()
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told, re.MULTILINE)
        where = failed.group(1) if failed else f"{call[0]} (exit {code})"
        return "passed" if code == 0 else "failed", where, time.perf_counter() - begin

    def warm(self, calls: Sequence[Sequence[str]]) -> None:
        """Compile what tests need, measure them, and leave out those that fail without any change."""
        known = self.work / "usual.json"
        if known.is_file() and (self.work / "cache").is_dir():
            self.usual, self.broken = json.loads(known.read_text())
        for call in calls:
            if (key := " ".join(call)) in self.usual:
                continue
            passes = 0
            while passes < 2:  # the second time without compiling
                result, where, seconds = self.run(call, "cache", None)
                passes += result == "passed"
                if result != "passed":
                    print(f"fails without any change: {where}", flush=True)
                    self.broken.append(where)
            self.usual[key] = seconds
            print(f"{seconds:6.1f} s  {key}", flush=True)
            known.write_text(json.dumps([self.usual, self.broken]))

    def verdict(self, mutant: Mutant) -> tuple[str, str, float]:
        """Whether the tests of its area catch a mutant: "caught", "no end" or "survived"; by which; seconds."""
        target, shown, whole = self.place / mutant.file, "", 0.0
        original, cache = target.read_text(), self.work / "cache-of-mutant"
        stale_here = [str((self.place / one).resolve()) for one in stale(mutant)]
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(self.work / "cache", cache, copy_function=os.link)  # Numba replaces files, and changes none
        try:
            target.write_text(mutated((ROOT / mutant.file).read_text(), mutant))
            (self.work / "stale").write_text("\n".join(stale_here))
            for call in tests_of(mutant.file):
                result, shown, seconds = self.run(call, cache.name, 3 * self.usual[" ".join(call)] + self.limit)
                whole += seconds
                if result != "passed":
                    return ("caught" if result == "failed" else result), shown, whole
        finally:
            target.write_text(original)
            (self.work / "stale").write_text("")
        return "survived", "", whole


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
    parser.add_argument("--count", type=int, default=220, help="mutants, about")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help="only so many of them")
    parser.add_argument("--only", default="", help="files whose path holds this text")
    parser.add_argument("--ids", nargs="*", help="these mutants, of all that there are")
    parser.add_argument("--again", action="store_true", help="try survivors once more")
    parser.add_argument("--limit", type=float, default=60, help="seconds beyond thrice the usual time")
    parser.add_argument("--list", action="store_true", help="print the mutants, and try none")
    parser.add_argument("--report", action="store_true", help="print the table, and try none")
    given = parser.parse_args()
    if given.ids:
        mutants = [one for many in of_all_areas(given.only).values() for one in many if one.id in given.ids]
    else:
        mutants = drawn(given.count, given.seed, given.only)[: given.first]
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
    copy = Copy(given.work.absolute(), given.limit)
    copy.warm([call for file in dict.fromkeys(one.file for one in mutants) for call in tests_of(file)])
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
