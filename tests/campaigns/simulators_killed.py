"""A study of a thousand simulated systems on Dask, killed with one worker; it goes on with two, one of which is killed.

    PYTHONPATH=examples python tests/campaigns/simulators_killed.py        with `pip install distributed`
    PYTHONPATH=examples python tests/campaigns/simulators_killed.py cpu    a simulator that computes for so long

A call of the simulator takes 50 ms; without "cpu" it sleeps for the rest of them, as for a licence, so that it does not
matter how busy the machine is. At the end each cell has one result, that of the simulator itself; calls beyond these
are those under way when something was killed. It prints the results in a second with one worker and with two.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import distributed
from simulators import lines, simulate, study

SECONDS = 0.05  # of a call
FIRST = 40.0  # seconds with one worker


def call(journal: str, computes: bool, name: str, block: int) -> float:
    """The simulator, which notes when it was called, for how long, and in which process."""
    begun, clock = time.time(), time.process_time if computes else time.perf_counter
    start = clock()
    value = simulate(name, block)
    while computes and clock() - start < SECONDS:
        simulate(name, block)
    time.sleep(max(SECONDS - (clock() - start), 0.0))
    with open(journal, "a") as file:
        file.write(json.dumps([begun, time.time() - begun, os.getpid(), name, block, value]) + "\n")
    return value


def run(store: str, journal: str, workers: int, computes: bool) -> None:
    """Go on with the study."""
    how = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(host="127.0.0.1", **how) as cluster,
        distributed.Client(cluster) as client,
        study(store) as session,
    ):
        measure = functools.partial(call, journal, computes)
        session.run(measure, workers=10 * workers, executor=client.get_executor(), who="the study")


def noted(journal: Path) -> list[list[object]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def main(computes: bool, folder: Path, most: float = 420.0) -> None:
    store, journal, rates, begun = folder / "lines.db", folder / "journal", dict[int, float](), 0
    for workers in (1, 2):
        command = [sys.executable, __file__, str(store), str(journal), str(workers), str(int(computes))]
        process, killed, until = subprocess.Popen(command, start_new_session=True), 0, time.monotonic() + most
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
            calls = noted(journal)[begun:]
            lasted = calls[-1][0] - calls[0][0] if calls else 0.0
            if workers == 1 and lasted > FIRST:
                os.killpg(process.pid, signal.SIGKILL)
            if workers == 2 and not killed and lasted > 20:
                os.kill(killed := calls[-1][2], signal.SIGKILL)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        calls = noted(journal)[begun:]
        lasted, pids = calls[-1][0] - calls[0][0], {one[2] for one in calls}
        busy = sum(one[1] for one in calls) / (workers * lasted)
        rates[workers] = len(calls) / lasted
        print(
            f"{workers}: {len(calls)} calls in {lasted:.0f} s, {rates[workers]:.1f} a second, busy {busy:.2f}",
            flush=True,
        )
        begun += len(calls)
        assert workers == 1 or len(pids) == 3, "one worker was killed, and another one came"
    with study(str(store)) as session:
        history = session.history()
        told, names = history.query("kind == 'told'"), [*lines()]
        cells = [*zip(told["name"], told["item"], strict=True)]
        print(f"{len(cells)} results, {begun} calls, {session.done=}")
        assert len({*cells}) == len(cells)  # no result twice
        values = {(name, block): value for *_, name, block, value in noted(journal)}
        assert [values[cell] for cell in cells] == told["value"].tolist()  # and each is that of the simulator
        assert begun - len(cells) <= 10 + 20 + 20  # those that were under way at the three kills
        assert session.done  # it has no budget: the answer is certified
        print(names[int(session.answer().argmax())])
    print(f"two workers do {rates[2] / rates[1]:.2f} times as many as one")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    else:
        with tempfile.TemporaryDirectory() as place:
            main(sys.argv[1:] == ["cpu"], Path(place))
