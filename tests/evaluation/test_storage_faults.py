"""Folders of blocks on bad days: damaged files, full disks, kills, two writers. Nothing that is complete is lost."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from disks import full_disk
from kills import LONG, PRECISE, SUMS, check_kills, evaluates, processes
from pandas.testing import assert_frame_equal
from scale import evaluate, files, same

import agents
from agents.cli import main
from agents.evaluation import blocks
from agents.evaluation import run as making
from agents.evaluation.blocks import Block
from agents.evaluation.storage import Store
from agents.evaluation.storage.places import Place

RANDOM = np.random.default_rng(17)


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
        with pytest.warns(RuntimeWarning, match=f"{name} is damaged.*made again"):
            again = evaluate("lsa", out=tmp_path, rows=rows)
        assert_frame_equal(again.pulls, whole.pulls, check_exact=True)
        assert files(tmp_path, inside) == before
    stranger = sorted(before)
    shutil.copy(tmp_path / inside / stranger[0], tmp_path / inside / stranger[1])
    with pytest.raises(ValueError, match=f"{stranger[1]} is damaged.*it holds {stranger[0]}"):
        agents.results(tmp_path).summary()
    with pytest.warns(RuntimeWarning, match="made again"):
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


def test_settings_that_were_changed_are_told(tmp_path: Path) -> None:
    evaluate("lsa", out=tmp_path)
    before, settings = files(tmp_path), tmp_path / "settings.json"
    written = settings.read_text()
    for part, other in (('"size": 375', '"size": 374'), ('"agent": "lsa"', '"agent": "lsb"'), ('"seal"', '"sea"')):
        assert part in written
        settings.write_text(written.replace(part, other))
        for look in (agents.results, lambda out: evaluate("lsa", out=out)):
            with pytest.raises(ValueError, match="is not what was written; where it is removed, the same evaluation"):
                look(tmp_path)
    settings.write_text(written.replace("blocks 3", "blocks 2"))
    with pytest.raises(ValueError, match="was written by another version: its form is 'blocks 2'"):
        agents.results(tmp_path)
    settings.unlink()
    with pytest.raises(FileNotFoundError, match="the same call with this out goes on"):
        agents.results(tmp_path)
    same(evaluate("lsa", out=tmp_path), evaluate("lsa"))
    assert files(tmp_path) == before


def test_places_that_cannot_be(tmp_path: Path) -> None:
    for out, said in (
        ("a\0b", "out must be a folder, or the address of one, got 'a"),
        (tmp_path / ("x" * 300), "cannot be reached|cannot write"),
    ):
        with pytest.raises((ValueError, OSError), match=said):
            evaluate("lsa", out=out)
    evaluate("lsa", out=tmp_path / "out")
    block = next((tmp_path / "out" / "episodes.parquet").iterdir())
    block.unlink()
    block.mkdir()
    with pytest.warns(RuntimeWarning, match="is damaged"), pytest.raises(OSError, match="cannot remove .*parquet"):
        evaluate("lsa", out=tmp_path / "out")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    whole, out = evaluate("lsa", at=[20, 60], out=tmp_path / "warm"), tmp_path / "out"  # kernels are cached by now
    with full_disk(3000), pytest.raises(OSError, match="cannot write .*parquet.*0 of 8 blocks are kept"):
        evaluate("lsa", at=[20, 60], out=out)
    assert files(out) == {}
    same(evaluate("lsa", at=[20, 60], out=out), whole)


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "play", lambda *some: pytest.fail("an agent ran"))
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(OSError, match="cannot write .*settings.json: .*file is a file, not a folder"):
            evaluate("lsa", out=out)
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


def test_interruption_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SPAN", 1)
    put = Store.put

    def interrupted(self: Any, block: Block, content: bytes) -> None:
        put(self, block, content)
        if block.number == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as while_it_runs:
        while_it_runs.setattr(Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt, match="3 of 8 blocks are kept in .*the same call goes on from them"):
            evaluate("lsa", out=tmp_path)
    same(evaluate("lsa", out=tmp_path), evaluate("lsa"))


@pytest.mark.parametrize("how", [{}, SUMS | PRECISE], ids=["rows", "sums of a precise run"])
def test_killed_and_resumed(tmp_path: Path, how: dict[str, Any]) -> None:
    check_kills(tmp_path, 1, how)


def test_a_kill_at_the_end_of_a_precise_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes, no block beyond the end stays."""
    evaluate("lsa", out=tmp_path / "whole", precision=0.05)
    for number, (kind, name) in enumerate([(Store, "discard"), (Place, "write")]):
        out, real = tmp_path / str(number), getattr(kind, name)

        def killed(self: Any, *some: Any, real: Any = real, **more: Any) -> Any:
            if some[0] == "ended.json" or isinstance(some[0], Block):
                raise KeyboardInterrupt
            return real(self, *some, **more)

        with monkeypatch.context() as while_it_runs:
            while_it_runs.setattr(kind, name, killed)
            with pytest.raises(KeyboardInterrupt):
                evaluate("lsa", out=out, precision=0.05)
        evaluate("lsa", out=out, precision=0.05)
        assert files(out) == files(tmp_path / "whole")


def test_blocks_of_others_end_a_precise_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is needed comes from another call, while the first block is played."""
    whole = evaluate("lsa", out=tmp_path / "other", precision=0.05)
    monkeypatch.setattr(blocks, "SPAN", 1)
    played: list[int] = []
    play = making.play

    def spy(plans: Any, span: Any, *rest: Any) -> Any:
        played.extend(block.number for block in span)
        shutil.copytree(tmp_path / "other" / "episodes.parquet", tmp_path / "own" / "episodes.parquet")
        return play(plans, span, *rest)

    monkeypatch.setattr(making, "play", spy)
    same(evaluate("lsa", out=tmp_path / "own", precision=0.05), whole)
    assert played == [0]
    assert files(tmp_path / "own") == files(tmp_path / "other")


@pytest.mark.parametrize("how", [{}, PRECISE], ids=["rows", "precision"])
def test_two_writers_work_together(tmp_path: Path, how: dict[str, Any]) -> None:
    context = processes()
    both = [context.Process(target=evaluates, args=(str(tmp_path), how)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    same(agents.results(tmp_path), evaluate("lsa", **(LONG | how)))
    assert not list(tmp_path.glob("*/*.part"))


def test_who_comes_second_begins_at_the_other_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SPAN", 1)
    order: list[int] = []
    play = making.play
    monkeypatch.setattr(
        making, "play", lambda plans, span, *rest: (order.append(span[0].number), play(plans, span, *rest))[1]
    )
    evaluate("lsa", out=tmp_path, shard="1/2")
    note = next((tmp_path / "calls").iterdir())
    note.write_text(json.dumps(json.loads(note.read_text()) | {"ended": None}))
    evaluate("lsa", out=tmp_path)
    assert order == [0, 2, 4, 6, 7, 5, 3, 1]
    assert pq.read_table(tmp_path / "episodes.parquet").num_rows == 3000
