"""Processes that evaluate or save, killed at random moments: what was complete is read, and gone on with.

PYTHONPATH=tests/support python tests/campaigns/kills.py     a hundred kills; the default tests make two
"""

from __future__ import annotations

import multiprocessing
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
from scale import TAO, evaluate, files, same

from agents import Evaluation

RANDOM = np.random.default_rng(17)
LONG: dict[str, Any] = {"episodes": 20_000, "env_kwargs": TAO | {"budget": 1000}}
SUMS: dict[str, Any] = {"rows": "none"}
PRECISE: dict[str, Any] = {"precision": 0.012, "episodes": 4000}  # it ends after about half of them


def evaluates(out: str, how: dict[str, Any]) -> None:
    evaluate("lsa", out=out, **(LONG | how))


def processes() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["agents.evaluation.run", "pandas", "pyarrow.parquet"])
    return context


def begun(process: Any, out: Path) -> float:
    """Start a call, and return the time when it has begun to make blocks, or has ended."""
    before = len(list(out.glob("calls/*.json")))
    process.start()
    while process.is_alive() and len(list(out.glob("calls/*.json"))) == before:
        time.sleep(0.001)
    return time.monotonic()


def check_kills(folder: Path, kills: int, how: dict[str, Any]) -> None:
    """Kill calls at random moments; whoever comes last finds all that was complete, and makes the rest."""
    whole, context = evaluate("lsa", **(LONG | how)), processes()
    inside = "sums.parquet" if "rows" in how else "episodes.parquet"
    first = context.Process(target=evaluates, args=(str(folder / "timed"), how))
    begins = begun(first, folder / "timed")
    first.join()
    took, done = time.monotonic() - begins, 0
    for trial in range(kills):
        out = folder / str(trial % 5)
        process = context.Process(target=evaluates, args=(str(out), how))
        if trial % 4 == 0:  # at any time; else while it makes blocks, as the time until then varies most
            process.start()
        else:
            begun(process, out)
        time.sleep(RANDOM.uniform(0, took))
        process.kill()
        process.join()
        before = files(out, inside) if (out / inside).exists() else {}
        done += len(before)
        if trial % 5 == 4 or trial == kills - 1:
            for path in [path for path in folder.iterdir() if path.name != "timed"]:
                same(evaluate("lsa", out=path, **(LONG | how)), whole)
                assert files(path, inside) == files(folder / "timed", inside)
                shutil.rmtree(path)
    assert done > 0 or kills == 1


def check_saves(folder: Path) -> None:
    """An evaluation that is saved over and over, killed 50 times: one of its two forms is read, never a mixture."""
    script = """
        import sys
        from agents import evaluate
        made = [evaluate("uniform", "Threshold", episodes=500, seed=s, env_kwargs={"budget": 30}) for s in (0, 1)]
        made[0].save(sys.argv[1])
        print("ready", flush=True)
        while True:
            for one in made:
                one.save(sys.argv[1])
    """
    made = [evaluate("uniform", episodes=500, seed=s, env_kwargs={"budget": 30}) for s in (0, 1)]
    made[0].save(folder)
    scores = [one.runs[0].columns["score"] for one in made]
    moments, seen = np.random.default_rng(0).uniform(0.0, 0.3, 50), set()
    for moment in moments:
        run = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(0.1 + moment)
        assert run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.communicate()
        found = Evaluation.load(folder)
        alike = [np.array_equal(found.runs[0].columns["score"], score) for score in scores]
        assert sum(alike) == 1
        assert found.settings["seed"] == alike.index(True)
        seen.add(found.settings["seed"])
    assert seen == {0, 1}


def main() -> None:
    for kills, how in ((100, {}), (20, SUMS), (20, PRECISE), (20, SUMS | PRECISE)):
        with tempfile.TemporaryDirectory() as folder:
            check_kills(Path(folder), kills, how)
    with tempfile.TemporaryDirectory() as folder:
        check_saves(Path(folder))


if __name__ == "__main__":
    main()
