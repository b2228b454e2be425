"""Experiments at scale: blocks on all cores and on a cluster, kept in a folder, killed and resumed, to the same bit."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from disks import full_disk
from pandas.testing import assert_frame_equal

import agents
from agents.cli import main
from agents.evaluation import blocks, making, progress, storage
from agents.evaluation.blocks import Block, Work
from agents.evaluation.execution import Call, Watch, outcomes
from agents.evaluation.moments import Histogram, Sums
from agents.evaluation.plan import Plan
from agents.evaluation.precision import level_at, looks
from agents.evaluation.result import Evaluation
from agents.evaluation.storage import Folder
from agents.evaluation.storage.block_files import name_of
from agents.evaluation.storage.places import Place

TAO = {"instance": "tao2019-1", "budget": 60}
NAMES = ["lsa", "opt-kg"]  # one in compiled code, one in lockstep
RANDOM = np.random.default_rng(17)


def evaluate(names: Any = NAMES, env_id: str = "Threshold", episodes: int = 3000, **more: Any) -> Evaluation:
    return agents.evaluate(names, env_id, episodes=episodes, **({"env_kwargs": TAO, "progress": False} | more))


def same(a: Evaluation, b: Evaluation) -> None:
    """Every row and every count, bit for bit."""
    assert_frame_equal(a.episodes, b.episodes, check_exact=True)
    assert_frame_equal(a.pulls, b.pulls, check_exact=True)
    left_out = ["pulls_per_second"]
    assert_frame_equal(a.summary().drop(columns=left_out), b.summary().drop(columns=left_out), check_exact=True)


@pytest.fixture(scope="module")
def wanted() -> Evaluation:
    return evaluate(at=[20, 60])


def files(folder: Path, inside: str = "episodes.parquet") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / inside).iterdir()}


# Blocks ---------------------------------------------------------------------------------------------------------------


def test_blocks_cover_all_episodes_once_and_depend_on_the_plan_alone() -> None:
    works = [Work(200), Work(None, 4), Work(3_000_000), Work(None, 1, 50)]
    for episodes in (1, 7, 100, 12_345, 10**5):
        for together in (False, True):
            groups = blocks.grouped(works, episodes, together=together)
            cut = blocks.cut(groups, episodes)
            assert [block.number for block in cut] == list(range(len(cut)))
            for i in range(len(works)):
                own = [block for block in cut if i in block.runs]
                assert [block.first for block in own] == [0, *np.cumsum([block.episodes for block in own])[:-1]]
                assert sum(block.episodes for block in own) == episodes
            for jobs in (1, 2, 5):
                spans = blocks.spans(cut, works, jobs)
                assert [block for span in spans for block in span] == cut
                assert all(len({block.runs for block in span}) == 1 for span in spans)


def test_blocks_are_neither_tiny_nor_huge() -> None:
    def sizes(work: Work, episodes: int) -> list[int]:
        return [block.episodes for block in blocks.cut(blocks.grouped([work], episodes), episodes)]

    assert sizes(Work(200), 50) == [50]  # 10,000 pulls are not worth being cut
    assert sizes(Work(200), 8000) == [1000] * 8
    assert sizes(Work(3_000_000), 600)[0] == 22  # some 66 million pulls
    assert sizes(Work(10**12), 3) == [1, 1, 1]
    assert max(sizes(Work(1, cells=1000), 10**6)) <= 2**21 / 1000


def test_ten_thousand_blocks_are_planned_within_a_second() -> None:
    works = [Work(2**26)]
    started = time.process_time()
    cut = blocks.cut(blocks.grouped(works, 10_000), 10_000)
    spans = blocks.spans(cut, works, 64)
    names = {name_of("root", block) for block in cut}
    assert time.process_time() - started < 1.0
    assert len(cut) == len(spans) == len(names) == 10_000


def test_gaps_end_a_span() -> None:
    works = [Work(200)]
    cut = blocks.cut(blocks.grouped(works, 8000), 8000)
    some = [block for block in cut if block.number not in (2, 5)]
    assert [[block.number for block in span] for span in blocks.spans(some, works, 1)] == [[0, 1], [3, 4], [6, 7]]


# Executors ------------------------------------------------------------------------------------------------------------


def test_results_do_not_depend_on_jobs_executors_and_batches(wanted: Evaluation) -> None:
    same(evaluate(at=[20, 60], jobs=2, batch=100), wanted)  # threads and processes
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend=backend):
            same(evaluate(at=[20, 60], jobs=2), wanted)
    for jobs in (1, 5):
        same(evaluate("lsa", jobs=jobs, batch=50), evaluate("lsa"))


def test_agents_in_compiled_code_play_in_threads_unless_a_backend_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    play = Plan.play

    def spy(self: Any, *arguments: Any) -> Any:
        threads.add(threading.current_thread().name)
        return play(self, *arguments)

    monkeypatch.setattr(Plan, "play", spy)
    evaluate("lsa", jobs=2)
    assert threads
    assert "MainThread" not in threads
    threads.clear()
    with joblib.parallel_config(backend="loky"):
        evaluate("lsa", jobs=2)
    assert not threads  # it was in other processes


def _fails(watch: Watch) -> None:
    raise ValueError("this one fails")


def _waits(watch: Watch) -> None:
    for _ in range(1000):
        watch.look()
        time.sleep(0.01)


def test_an_error_ends_all_tasks() -> None:
    watch, started = Watch(), time.monotonic()
    with pytest.raises(ValueError, match="this one fails"):
        list(outcomes([Call(_waits, True), Call(_fails, True)], 2, watch))
    assert watch.over
    assert time.monotonic() - started < 5


def test_progress_counts_the_work_of_other_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    close = progress.Progress.close
    monkeypatch.setattr(progress.Progress, "close", lambda bar: (counted.append((bar.done, bar.total)), close(bar))[1])
    for jobs in (1, 2):
        evaluate("opt-kg", jobs=jobs, progress=True)
        assert "opt-kg" in capsys.readouterr().err
    assert counted == [(3000 * 60, 3000 * 60)] * 2


@pytest.mark.slow
def test_dask_with_a_worker_that_is_killed(tmp_path: Path, wanted: Evaluation) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    how: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        distributed.LocalCluster(host="127.0.0.1", silence_logs=50, **how) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        victim = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill() -> None:
            while len(list(tmp_path.glob("episodes.parquet/*.parquet"))) < 2:
                time.sleep(0.01)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

        other = threading.Thread(target=kill, daemon=True)
        other.start()
        with joblib.parallel_config(backend="dask"):
            result = evaluate(at=[20, 60], jobs=-1, out=tmp_path)
        other.join(10)
        assert killed == [victim]
        same(result, wanted)


# Storage --------------------------------------------------------------------------------------------------------------


def test_a_folder_holds_the_same_rows_and_is_read_by_pandas_and_duckdb(tmp_path: Path, wanted: Evaluation) -> None:
    made = evaluate(at=[20, 60], out=tmp_path)
    same(made, wanted)
    opened = agents.results(tmp_path)
    same(opened, wanted)
    assert opened.settings == json.loads(json.dumps(wanted.settings))
    assert opened.compare("lsa", "opt-kg", "f1") == wanted.compare("lsa", "opt-kg", "f1")
    assert opened.summary()["pulls_per_second"].min() > 0
    rows = pd.read_parquet(tmp_path / "episodes.parquet")
    keys = ["agent", "at", "episode"]
    rows = rows.astype({"agent": str, "budget": "Int64", "at": "Int64"}).sort_values(keys, ignore_index=True)
    expected = wanted.episodes.astype({"agent": str}).sort_values(keys, ignore_index=True)
    assert_frame_equal(rows, expected, check_exact=True)
    call = json.loads(next((tmp_path / "calls").iterdir()).read_text())
    assert call["command"] == sys.argv
    assert call["ended"] is not None
    assert call["pulls"] == [3000 * 60] * 2


def test_duckdb_reads_the_files(tmp_path: Path, wanted: Evaluation) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    evaluate(at=[20, 60], out=tmp_path)
    query = f"select count(*), sum(misclassified), avg(score) from '{tmp_path}/episodes.parquet/*.parquet'"
    [(count, misclassified, score)] = duckdb.sql(query).fetchall()
    rows = wanted.episodes
    assert (count, misclassified) == (len(rows), rows["misclassified"].sum())
    assert score == pytest.approx(rows["score"].mean())


def test_columns_are_read_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate("lsa", out=tmp_path)
    read: list[Any] = []
    part = Folder.part
    monkeypatch.setattr(Folder, "part", lambda self, *some: (read.append(some[1]), part(self, *some))[1])
    opened = agents.results(tmp_path)
    assert read == []
    opened.column("lsa", "score")
    assert {name for names in read for name in names} == {"score"}


@pytest.mark.parametrize("settings", [{"budgets": [20, 60]}, {"env_kwargs": TAO | {"delta": 0.1}}, {"seed": 5}])
def test_all_kinds_of_evaluations_come_back(tmp_path: Path, settings: dict[str, Any]) -> None:
    names = {"a": "lsa", "b": "ucbe", "c": "uniform"}
    same(evaluate(names, episodes=400, out=tmp_path, **settings), evaluate(names, episodes=400, **settings))
    same(agents.results(tmp_path), evaluate(names, episodes=400, **settings))
    again = tmp_path / "saved"
    agents.results(tmp_path).save(again)
    same(agents.results(again), evaluate(names, episodes=400, **settings))  # what `save` writes is opened too


def test_again_does_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("lsa", out=tmp_path)
    before, made = files(tmp_path), []
    assert len(before) == 8
    play = making._play
    monkeypatch.setattr(making, "_play", lambda plans, span, *rest: (made.append(span), play(plans, span, *rest))[1])
    evaluate("lsa", out=tmp_path)
    assert made == []
    for name in sorted(before)[2:4]:
        (tmp_path / "episodes.parquet" / name).unlink()
    with pytest.raises(ValueError, match="is not complete: 2 of 8 blocks are missing"):
        agents.results(tmp_path)
    same(evaluate("lsa", out=tmp_path), whole)
    assert [[block.number for block in span] for span in made] == [[2, 3]]
    assert files(tmp_path) == before  # the same bytes


def test_another_configuration_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    base: dict[str, Any] = {"names": ["lsa"], "episodes": 100, "out": out}
    evaluate(**base)
    before = files(out)
    for change, said in (
        ({"names": ["apt"]}, "agents lsa is 'agents.thresholding.lsa:LSA' there, None asked for"),
        ({"names": {"lsa": "lsa(alpha=2)"}}, "LSA, alpha=2"),
        ({"names": ["lsa", "apt"]}, r"order of the agents is \['lsa'\] there, \['lsa', 'apt'\] asked for"),
        ({"episodes": 200}, "episodes is 100 there, 200 asked for"),
        ({"seed": 4}, "seed is 0 there, 4 asked for"),
        ({"at": [5]}, r"at is None there, \[5\] asked for"),
        ({"env_kwargs": TAO | {"budget": 61}}, "env_kwargs budget is 60 there, 61 asked for"),
        ({"env_id": "Feasible", "env_kwargs": {"budget": 60}}, "env_id is 'bandit_envs/Threshold-v0' there"),
    ):
        with pytest.raises(ValueError, match=f"out holds another evaluation: .*{said}"):
            evaluate(**(base | change))
    saved = tmp_path / "saved"
    evaluate("lsa", episodes=5).save(saved)
    with pytest.raises(ValueError, match="saved holds an evaluation of another form"):
        evaluate("lsa", episodes=5, out=saved)
    assert files(out) == before


@pytest.mark.parametrize("rows", ["all", "none"])
def test_a_damaged_block_is_reported_and_redone(tmp_path: Path, rows: str) -> None:
    """Whichever byte of its file has changed, and wherever it was cut."""
    whole, inside = evaluate("lsa", out=tmp_path, rows=rows), "episodes.parquet" if rows == "all" else "sums.parquet"
    before = files(tmp_path, inside)
    for trial in range(8):
        name = sorted(before)[RANDOM.integers(len(before))]
        path, content = tmp_path / inside / name, bytearray(before[name])
        if trial % 4 == 0:
            del content[RANDOM.integers(len(content)) :]
        else:
            content[RANDOM.integers(len(content))] ^= 1 << RANDOM.integers(8)
        path.write_bytes(content)
        with pytest.warns(RuntimeWarning, match=f"{name} is damaged.*made anew"):
            again = evaluate("lsa", out=tmp_path, rows=rows)
        assert_frame_equal(again.pulls, whole.pulls, check_exact=True)
        assert files(tmp_path, inside) == before
    stranger = sorted(before)
    shutil.copy(tmp_path / inside / stranger[0], tmp_path / inside / stranger[1])
    with pytest.raises(ValueError, match=f"{stranger[1]} is damaged.*it holds {stranger[0]}"):
        agents.results(tmp_path).summary()
    with pytest.warns(RuntimeWarning, match="made anew"):
        evaluate("lsa", out=tmp_path, rows=rows)
    assert files(tmp_path, inside) == before


def test_damaged_settings_are_told_and_blocks_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"evaluate Threshold --instance tao2019-1 --budget 60 --agents lsa --episodes 3000 --out {tmp_path}"
    assert main(line.split()) == 0
    before, settings = files(tmp_path), tmp_path / "settings.json"
    settings.write_text(settings.read_text()[:100])
    with pytest.raises(ValueError, match="settings.json is no JSON.*where it is removed, the same evaluation goes on"):
        evaluate("lsa", out=tmp_path)
    capsys.readouterr()
    assert main(line.split()) == 2
    assert "where it is removed, the same evaluation goes on from the blocks" in capsys.readouterr().err
    settings.unlink()
    for path in (tmp_path / "calls").iterdir():
        path.unlink()
    assert main(line.split()) == 0
    assert files(tmp_path) == before
    assert not list((tmp_path / "calls").iterdir())  # nothing was made


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    whole, out = evaluate("lsa", at=[20, 60], out=tmp_path / "warm"), tmp_path / "out"  # kernels are cached by now
    with full_disk(3000), pytest.raises(OSError, match="cannot write .*parquet.*0 of 8 blocks are kept"):
        evaluate("lsa", at=[20, 60], out=out)
    assert files(out) == {}
    same(evaluate("lsa", at=[20, 60], out=out), whole)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "_play", lambda *some: pytest.fail("an agent ran"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write .*file"):
        evaluate("lsa", out=tmp_path / "file")
    if os.geteuid():
        tmp_path.chmod(0o500)
        with pytest.raises(OSError, match="cannot write"):
            evaluate("lsa", out=tmp_path / "new")
        tmp_path.chmod(0o700)
    with pytest.raises(ValueError, match="out must be a folder, or the address of one, got 'nowhere://x'"):
        evaluate("lsa", out="nowhere://x")


def test_what_a_killed_call_left_is_removed(tmp_path: Path) -> None:
    evaluate("lsa", out=tmp_path, shard="1/2")
    name, host = next(iter(files(tmp_path))), socket.gethostname()
    parts = {
        pid: tmp_path / "episodes.parquet" / f"{name}.{host}-{pid}-0a1b2c3d.part" for pid in (2**22 + 1, os.getpid())
    }
    for part in parts.values():
        part.write_bytes(b"half")
    evaluate("lsa", out=tmp_path)
    assert [part.exists() for part in parts.values()] == [False, True]


def test_a_complete_folder_is_read_without_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("lsa", out=tmp_path)
    monkeypatch.setattr(Place, "write", lambda *some, **more: pytest.fail("something is written"))
    same(evaluate("lsa", out=tmp_path), whole)


def test_interruption_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SPAN", 1)
    put = Folder.put

    def interrupted(self: Any, block: Block, content: bytes) -> None:
        put(self, block, content)
        if block.number == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as while_it_runs:
        while_it_runs.setattr(Folder, "put", interrupted)
        with pytest.raises(KeyboardInterrupt, match="3 of 8 blocks are kept in .*the same call goes on from them"):
            evaluate("lsa", out=tmp_path)
    same(evaluate("lsa", out=tmp_path), evaluate("lsa"))


def test_other_file_systems() -> None:
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    out = f"memory://results/{RANDOM.integers(10**9)}"
    wanted = evaluate("lsa")
    same(evaluate("lsa", out=out), wanted)
    opened = agents.results(out)
    same(opened, wanted)
    with pytest.raises(ValueError, match=f"{out} holds another evaluation: seed"):
        evaluate("lsa", out=out, seed=1)
    system: Any = storage.place_of(out)
    name = next(iter(system.names("episodes.parquet")))
    system.remove(f"episodes.parquet/{name}")
    same(evaluate("lsa", out=out), wanted)


# Shards, kills, two writers -------------------------------------------------------------------------------------------


def test_shards_are_merged_in_any_order(tmp_path: Path, wanted: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in (3, 1, 2):
        made = evaluate(at=[20, 60], out=tmp_path / str(i), shard=f"{i}/3")
        with pytest.raises(ValueError, match="is not complete"):
            made.summary()
    for i in (2, 3, 1):
        shutil.copytree(tmp_path / str(i), tmp_path / "all", dirs_exist_ok=True)
    same(agents.results(tmp_path / "all"), wanted)
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "10")
    monkeypatch.setenv("SLURM_ARRAY_TASK_STEP", "5")
    for task in (20, 10, 15):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(task))
        made = evaluate(at=[20, 60], out=tmp_path / "slurm", shard="slurm")
    same(made, wanted)
    assert files(tmp_path / "slurm") == files(tmp_path / "all")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "are not set"),
        ({"ID": "abc", "COUNT": "2"}, "needs whole numbers, got SLURM_ARRAY_TASK_ID=abc"),
        ({"ID": "3", "COUNT": "2", "STEP": "0"}, "needs whole numbers"),
        ({"ID": "9", "COUNT": "3", "MIN": "1", "STEP": "1"}, "equally spaced numbers, as 1-8 or 0-30:2, got .*ID=9"),
        ({"ID": "2", "COUNT": "3", "MIN": "1", "STEP": "2"}, "equally spaced"),
    ],
)
def test_job_arrays_that_cannot_be_parted(told: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ID", "COUNT", "MIN", "STEP"):
        monkeypatch.delenv(f"SLURM_ARRAY_TASK_{name}", raising=False)
    for name, value in told.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    with pytest.raises(ValueError, match=said):
        evaluate("lsa", out="nowhere", shard="slurm")


def test_shards_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"evaluate Threshold --instance tao2019-1 --budget 60 --agents lsa --episodes 3000 --out {tmp_path}/out"
    assert main([*line.split(), "--shard", "2/2", "--jobs", "2"]) == 0
    assert capsys.readouterr().out == f"this part is done; 4 blocks of other parts are not in {tmp_path}/out yet\n"
    assert main([*line.split(), "--shard", "1/2"]) == 0
    assert capsys.readouterr().out.endswith(f"wrote {tmp_path}/out\n")
    same(agents.results(tmp_path / "out"), evaluate("lsa"))


def _evaluates(out: str) -> None:
    evaluate("lsa", episodes=20_000, out=out, env_kwargs=TAO | {"budget": 1000})


def _processes() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["agents.evaluation.run", "pandas", "pyarrow.parquet"])
    return context


def check_kills(folder: Path, kills: int) -> None:
    """Kill calls at random moments; whoever comes last finds all that was complete, and makes the rest."""
    whole, context = evaluate("lsa", episodes=20_000, env_kwargs=TAO | {"budget": 1000}), _processes()
    started, first = time.monotonic(), context.Process(target=_evaluates, args=(str(folder / "timed"),))
    first.start()
    first.join()
    took, done = time.monotonic() - started, 0
    for trial in range(kills):
        out = folder / str(trial % 5)
        process = context.Process(target=_evaluates, args=(str(out),))
        process.start()
        time.sleep(RANDOM.uniform(0, took))
        process.kill()
        process.join()
        before = files(out) if (out / "episodes.parquet").exists() else {}
        done += len(before)
        if trial % 5 == 4 or trial == kills - 1:
            for path in [path for path in folder.iterdir() if path.name != "timed"]:
                same(evaluate("lsa", episodes=20_000, env_kwargs=TAO | {"budget": 1000}, out=path), whole)
                assert files(path) == files(folder / "timed")
                shutil.rmtree(path)
    assert done > 0 or kills == 1


def test_killed_and_resumed(tmp_path: Path) -> None:
    check_kills(tmp_path, 1)


@pytest.mark.slow
def test_killed_a_hundred_times_and_resumed(tmp_path: Path) -> None:
    check_kills(tmp_path, 100)


def test_two_writers_work_together(tmp_path: Path) -> None:
    context = _processes()
    both = [context.Process(target=_evaluates, args=(str(tmp_path),)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    same(agents.results(tmp_path), evaluate("lsa", episodes=20_000, env_kwargs=TAO | {"budget": 1000}))
    assert not list(tmp_path.glob("*/*.part"))


def test_who_comes_second_begins_at_the_other_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SPAN", 1)
    order: list[int] = []
    play = making._play
    monkeypatch.setattr(
        making, "_play", lambda plans, span, *rest: (order.append(span[0].number), play(plans, span, *rest))[1]
    )
    evaluate("lsa", out=tmp_path, shard="1/2")
    note = next((tmp_path / "calls").iterdir())
    note.write_text(json.dumps(json.loads(note.read_text()) | {"ended": None}))
    evaluate("lsa", out=tmp_path)
    assert order == [0, 2, 4, 6, 7, 5, 3, 1]
    assert pq.read_table(tmp_path / "episodes.parquet").num_rows == 3000


# Without rows ---------------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "budget": (["lsa", "uniform", "random"], {"env_id": "Threshold", "at": [20, 60], "episodes": 12_000}),
    "budgets": (["lsa", "ucbe"], {"env_id": "Threshold", "budgets": [20, 60], "episodes": 900}),
    "stopping": (
        ["st2", "uniform-elimination"],
        {
            "env_id": "AllGood",
            "episodes": 150,
            "env_kwargs": {"instance": "mason2020-3a(n=10)", "delta": 0.1, "max_pulls": 3000},
        },
    ),
    "best arm": (
        ["uniform", "random"],
        {"env_id": "BestArm", "env_kwargs": {"instance": "tao2019-1", "budget": 30}, "episodes": 11_000},
    ),
}
LIMITS = ("score_low", "score_high")


@pytest.mark.parametrize("kind", KINDS)
def test_without_rows_the_numbers_are_the_same(kind: str, tmp_path: Path) -> None:
    names, how = KINDS[kind]
    rows, sums = evaluate(names, **how), evaluate(names, rows="none", **how)
    assert sums.settings["rows"] == "none"
    untold = ["pulls_per_second", "level"]  # the latter is a median, which sums do not tell
    a, b = (one.summary().drop(columns=untold, errors="ignore") for one in (rows, sums))
    loose = how["episodes"] <= 10_000  # where rows have the bootstrap
    exact = [name for name in a.columns if not (loose and name in LIMITS)]
    assert_frame_equal(a[exact], b[exact], rtol=1e-12, atol=1e-14)
    assert_frame_equal(a, b, atol=0.2 * (a["score_high"] - a["score_low"]).max(), rtol=0)
    assert_frame_equal(rows.pulls, sums.pulls, check_exact=True)
    metrics = ["score", "error_rate", "correct", "total_pulls", *rows.runs[0].names[2:]]
    for first, second in ((0, 1), (1, 0), (0, 0)):
        for metric in metrics:
            x, y = (one.compare(names[first], names[second], metric) for one in (rows, sums))
            assert y.difference == pytest.approx(x.difference, rel=1e-9, abs=1e-12)
            if x.method == y.method:
                assert (y.low, y.high, y.p_value) == pytest.approx((x.low, x.high, x.p_value), rel=1e-9, abs=1e-12)
            else:
                assert y.method == "normal test, normal interval (no rows were kept to resample)"
                assert (y.low, y.high) == pytest.approx((x.low, x.high), abs=0.2 * (x.high - x.low) + 1e-12)
    stored = evaluate(names, rows="none", out=tmp_path, jobs=2, **how)
    for other in (stored, agents.results(tmp_path), evaluate(names, rows="none", jobs=2, **how)):
        assert_frame_equal(other.summary()[list(b.columns)], b, check_exact=True)
        assert other.compare(*names[:2], "score") == sums.compare(*names[:2], "score")
    assert len(pd.read_parquet(tmp_path / "sums.parquet")) > 0


def test_what_needs_rows_says_so() -> None:
    sums = evaluate(["lsa", "uniform"], rows="none", at=[20, 60], episodes=50)
    for use in (
        lambda: sums.episodes,
        lambda: sums.column("lsa", "score"),
        lambda: sums.runs[0].columns["score"],
    ):
        with pytest.raises(ValueError, match="no rows were kept, as rows='none' asked for"):
            use()
    assert sums.plot("f1").axes
    with pytest.raises(ValueError, match="rows must be"):
        evaluate(rows="some")


def test_histograms_are_exact_or_coarse_whatever_the_order() -> None:
    values = RANDOM.geometric(1e-5, 60_000)
    parts = [Histogram.of(part) for part in np.split(values, [10, 5000, 5001, 40_000])]
    whole = Histogram.of(values)
    for order in (range(5), [4, 2, 0, 1, 3]):
        merged = parts[order[0]]
        for i in order[1:]:
            merged = merged.merged(parts[i])
        assert merged.shift == whole.shift > 0
        assert (merged.keys == whole.keys).all()
        assert (merged.counts == whole.counts).all()
    for q in (0, 0.05, 0.5, 0.95, 1):
        assert whole.quantile(q) == pytest.approx(np.quantile(values, q), abs=2**whole.shift)
        assert parts[0].quantile(q) == np.quantile(values[:10], q)
        few = values % 97
        assert Histogram.of(few).quantile(q) == np.quantile(few, q)


def test_sums_do_not_cancel() -> None:
    values = 1e9 + RANDOM.random(1000)
    merged = Sums.of(values[:1])
    for part in np.split(values[1:], [1, 500]):
        merged = merged.merged(Sums.of(part))
    assert merged.spread == pytest.approx(np.square(values - values.mean()).sum(), rel=1e-6)


# Precision ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", ["all", "none"])
def test_a_run_ends_when_it_is_precise_enough_whoever_has_run_it(tmp_path: Path, rows: str) -> None:
    how: dict[str, Any] = {"episodes": 100_000, "precision": 0.04, "rows": rows}
    names = ["lsa", "uniform"]
    one = evaluate(names, **how)
    table = one.summary()
    count, look = one.settings["episodes"], one.settings["look"]
    assert 500 < count < 5_000  # some 600 episodes at a rate of 1/2, without a look before
    assert ((table["error_high"] - table["error_low"]) / 2 <= 0.04).all()
    assert (table["episodes"] == count).all()
    columns = [name for name in table.columns if name != "pulls_per_second"]
    others = [evaluate(names, jobs=3, **how), evaluate(names, out=tmp_path, jobs=2, **how)]
    others += [agents.results(tmp_path), evaluate(names, out=tmp_path, **how)]
    for other in others:
        assert other.settings["episodes"] == count
        assert other.settings["look"] == look
        assert_frame_equal(other.summary()[columns], table[columns], check_exact=True)
    plain = evaluate(names, episodes=count)
    mean = ["error_rate", "score", "total_pulls"]
    assert_frame_equal(plain.summary()[mean], table[mean], rtol=1e-12)
    if rows == "all":
        assert_frame_equal(plain.episodes, one.episodes)
        assert_frame_equal(plain.pulls, one.pulls)
    narrow = plain.summary()
    assert (narrow["error_high"] - narrow["error_low"] < table["error_high"] - table["error_low"]).all()


def test_looks_and_their_levels() -> None:
    assert list(looks(20)) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 20]
    assert sum(1 - level_at(look, 0.9) for look in range(1, 10**5)) == pytest.approx(0.1, abs=1e-5)
    assert level_at(None, 0.9) == 0.9


def test_a_verdict_ends_a_run() -> None:
    easy: dict[str, Any] = {"law": "gaussian", "mean": [-3.0, 0.0, 3.0]}
    how: dict[str, Any] = {"env_kwargs": {"instance": easy, "epsilon": 0.5, "delta": 0.2, "max_pulls": 10_000}}
    result = evaluate("st2", "AllGood", episodes=100_000, precision="verdict", **how)
    assert result.summary()["verdict"].tolist() == ["met"]
    assert result.settings["episodes"] < 10_000
    for bad, said in (
        ("often", "precision must be a number, a dict"),
        (0, "precision must be"),
        ({}, "at least one metric"),
        ({"f7": 1}, "metric must be one of"),
    ):
        with pytest.raises(ValueError, match=said):
            evaluate("lsa", precision=bad)
    with pytest.raises(ValueError, match="needs a delta"):
        evaluate("lsa", precision="verdict")
    with pytest.raises(ValueError, match="cannot be had with shard"):
        evaluate("lsa", precision=0.1, out="nowhere", shard="1/2")


def test_all_episodes_are_run_where_they_are_too_few(tmp_path: Path) -> None:
    result = evaluate("lsa", precision={"score": 1e-9}, episodes=500, out=tmp_path)
    assert result.settings["episodes"] == 500
    assert result.summary()["episodes"].tolist() == [500]


# Evolution, and the command line --------------------------------------------------------------------------------------


def test_candidates_of_an_evolution_play_on_all_cores() -> None:
    pytest.importorskip("cmaes")
    how: dict[str, Any] = {"generations": 2, "episodes": 40, "population": 4, "every": 1, "held_out": 1}
    kwargs = {"instance": "sampler(arms=5)", "budget": 40}
    one, card = agents.evolve("Threshold", env_kwargs=kwargs, **how)
    two, other = agents.evolve("Threshold", env_kwargs=kwargs, jobs=2, **how)
    assert one == two
    assert card["result"] == other["result"]
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        agents.evolve("Threshold", generations=1, jobs=0)


def test_rows_and_precision_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = "evaluate Threshold --instance tao2019-1 --budget 60 --agents lsa uniform --episodes 20000 --rows none"
    assert main([*line.split(), "--precision", "score=0.01"]) == 0
    out = capsys.readouterr().out
    assert "no rows were kept: intervals of means are normal ones" in out
    assert "intervals allow for having looked more than once" in out
    assert "20,000 episodes" not in out
    assert main([*line.split(), "--precision", "score=x"]) == 2
    assert "--precision must be a number, NAME=number, or verdict, got 'score=x'" in capsys.readouterr().err
