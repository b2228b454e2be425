"""Parts of an evaluation that several jobs make."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scale import evaluate, files, same

import agents
from agents.cli import main


def test_shards_are_merged_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in (3, 1, 2):
        made = evaluate("lsa", at=[20, 60], out=tmp_path / str(i), shard=f"{i}/3")
        with pytest.raises(ValueError, match="is not complete"):
            made.summary()
    expected = evaluate("lsa", at=[20, 60])
    for i in (2, 3, 1):
        shutil.copytree(tmp_path / str(i), tmp_path / "all", dirs_exist_ok=True)
    same(agents.results(tmp_path / "all"), expected)
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "3")
    monkeypatch.setenv("SLURM_ARRAY_TASK_MIN", "10")
    monkeypatch.setenv("SLURM_ARRAY_TASK_STEP", "5")
    for task in (20, 10, 15):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(task))
        made = evaluate("lsa", at=[20, 60], out=tmp_path / "slurm", shard="slurm")
    same(made, expected)
    assert files(tmp_path / "slurm") == files(tmp_path / "all")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "are not set"),
        ({"ID": "", "COUNT": "2"}, "needs whole numbers, got SLURM_ARRAY_TASK_ID="),
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
