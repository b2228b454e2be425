"""CPU seconds of a test run by folder of tests, beside the record of `tests/spent.toml`; a plugin of pytest.

Compiling in the test's own process is not counted, as it depends on the cache. A folder is compared if it ran nearly as
many tests as the record has. Machines differ, so growth is over the median of all folders that are compared.
"""

from __future__ import annotations

import os
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.core.compile_time import CompileTime

RECORD = Path(__file__).parents[1] / "spent.toml"
GROWTH = 1.1  # over which a folder is named
Rows = dict[str, list[float]]  # folder: CPU seconds without those of compiling, of compiling, tests
SPENT: Rows = defaultdict(lambda: [0.0, 0.0, 0])
COMPILING = CompileTime()


def cpu_seconds() -> float:
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def grown(rows: Rows, record: Mapping[str, Mapping[str, float]]) -> list[str]:
    """A line for each folder that takes over a tenth more than the record, in the unit of this machine."""
    known = {name: one for name, one in record.items() if name in rows and rows[name][2] >= 0.9 * one["tests"]}
    ratios = {name: rows[name][0] / one["seconds"] for name, one in known.items()}
    unit = statistics.median(ratios.values()) if len(ratios) > 2 else 1.0
    return [
        f"{name} grew by {ratio / unit - 1:.0%}: mend it, or renew its row of {RECORD.name} with the reason"
        for name, ratio in ratios.items()
        if ratio > GROWTH * unit
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count a test, with its fixtures."""
    row, before, compiled = SPENT[item.path.parent.name], cpu_seconds(), COMPILING.seconds
    with COMPILING:
        result = yield
    compiled = COMPILING.seconds - compiled
    for i, more in enumerate((cpu_seconds() - before - compiled, compiled, 1)):
        row[i] += more
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["spent"] = dict(SPENT)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of a process that has ended."""
    for name, row in getattr(node, "workeroutput", {}).get("spent", {}).items():
        SPENT[name] = [a + b for a, b in zip(SPENT[name], row, strict=True)]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The table of a run over more than one folder."""
    if len(SPENT) > 1:
        terminalreporter.section("CPU seconds by folder: tests, compiling; record")
        record = tomllib.loads(RECORD.read_text())
        for name, (seconds, compiling, tests) in sorted(SPENT.items()):
            said = f"{record[name]['seconds']:8.0f} s of {record[name]['tests']}" if name in record else "none"
            terminalreporter.line(f"  {name:<14} {tests:5.0f} tests {seconds:7.0f} s {compiling:7.0f} s {said}")
        for line in grown(SPENT, record):
            terminalreporter.line(line, yellow=True)
