"""No array of another type, order or number of axes reaches machine code: an error, or the right answer, no crash."""

from __future__ import annotations

import subprocess
import sys

import guard
from processes import with_path


def test_no_array_of_another_kind_ends_the_process() -> None:
    command = [sys.executable, "-W", "ignore", guard.__file__, "Threshold", "uniform"]
    done = subprocess.run(command, env=with_path(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    name, tried = done.stdout.split()
    assert name == "uniform"
    assert int(tried) > 40
