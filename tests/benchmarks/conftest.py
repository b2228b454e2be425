"""Races against a named reference, and the table of their ratios at the end of the run.

A race runs the reference before each round of ours, so that both meet the same state of the machine; its ratio is the
median over the rounds. Times are those of this process, so that other processes disturb less. Nothing is asserted about
time: the table shows what was measured beside the target.
"""

from __future__ import annotations

from typing import Any

import pytest
from race import Race


@pytest.fixture
def race(benchmark: Any) -> Race:
    """A race whose ratio appears in the table at the end."""
    return Race(benchmark)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of ratios."""
    session = getattr(config, "_benchmarksession", None)
    rows = [row for row in getattr(session, "benchmarks", []) if "ratio" in row.extra_info]
    if not rows:
        return
    terminalreporter.section("ratios: median (quartiles) of CPU time, target")
    group = None
    for row in rows:
        if row.group != group:
            group = row.group
            terminalreporter.line(str(group))
        info = row.extra_info
        low, high = info["quartiles"]
        mark = "" if not info["target"] else "met" if info["met"] else "MISSED"
        text = f"  {row.name:<46} {info['ratio']:6.2f} ({low:5.2f} .. {high:5.2f})  {info['target']:<7} {mark:<6}"
        terminalreporter.line(f"{text}  against {info['against']}")
