"""Files that belong together: whenever a kill, or a full disk, comes, the old ones or the new ones are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disks import full_disk, interrupted

from agents import Evaluation, evaluate
from agents.core import files
from agents.core.files import read_together, try_out, write_alone, write_together

NAMES = ("one.txt", "two.txt")


def write(folder: Path, text: str) -> None:
    contents = {name: lambda path, name=name: path.write_text(f"{text} {name}") for name in NAMES}
    write_together(folder / "index.json", {"told": text}, contents)


def read(folder: Path) -> str:
    """The text that all files tell of."""
    told: str = read_together(folder / "index.json")["told"]
    for name in NAMES:
        assert (folder / name).read_text() == f"{told} {name}"
    return told


def test_a_kill_at_any_step_leaves_the_old_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, moment, over = set(), 0, False
    while not over:
        moment += 1
        folder = tmp_path / str(moment)
        write(folder, "old")
        over = interrupted(lambda folder=folder: write(folder, "new"), moment, monkeypatch)  # type: ignore[misc]
        seen.add(found := read(folder))
        assert not over or found == "new"
        write(folder, "newer")  # what is left of the kill is in nobody's way
        assert read(folder) == "newer"
        assert sorted(path.name for path in folder.iterdir()) == ["index.json", *NAMES]
    assert seen == {"old", "new"}
    assert moment > 8


def test_a_kill_at_any_step_of_the_first_leaves_nothing_or_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moment, over = 0, False
    while not over:
        moment += 1
        folder = tmp_path / str(moment)
        over = interrupted(lambda folder=folder: write(folder, "new"), moment, monkeypatch)  # type: ignore[misc]
        try:
            assert read(folder) == "new"
        except FileNotFoundError:
            assert not over
            assert not (folder / "index.json").exists()


def test_a_failure_leaves_the_old_and_no_rubbish(tmp_path: Path) -> None:
    write(tmp_path, "old")

    def full(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_together(tmp_path / "index.json", {}, {"one.txt": lambda path: path.write_text("new"), "two.txt": full})
    with pytest.raises(OSError, match="No space"):
        write_alone(tmp_path / "one.txt", full)
    assert read(tmp_path) == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.json", *NAMES]


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", "a")
    write(tmp_path / "b", "b")
    (tmp_path / "a" / "one.txt").write_bytes((tmp_path / "b" / "one.txt").read_bytes())
    with pytest.raises(ValueError, match=r"one.txt is not the file that was written with .*index.json"):
        read(tmp_path / "a")
    (tmp_path / "a" / "one.txt").unlink()
    with pytest.raises(ValueError, match=r"one.txt is missing, which was written with .*index.json"):
        read(tmp_path / "a")
    for text, said in (("{", "is no JSON"), ("[1]", "must hold a JSON object"), ("", "is no JSON")):
        (tmp_path / "b" / "index.json").write_text(text)
        with pytest.raises(ValueError, match=said):
            read(tmp_path / "b")


def test_a_place_is_tried_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    try_out(tmp_path / "new" / "file.txt")
    assert list((tmp_path / "new").iterdir()) == []
    for refused in (try_out, lambda path: write_alone(path, Path.touch)):  # before, the folder was made in silence
        with pytest.raises(FileNotFoundError, match=r"cannot write .*file.txt: there is no folder .*none"):
            refused(tmp_path / "none" / "file.txt")
    assert not (tmp_path / "none").exists()
    (tmp_path / "taken").write_text("")
    for path in (tmp_path / "taken" / "file.txt", tmp_path / "new", Path("/proc/file.txt")):
        with pytest.raises(OSError, match="cannot write "):
            try_out(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("settings.json", "{}"),
        ("settings.json", '{"runs": 5}'),
        ("settings.json", '{"runs": [{}]}'),
        ("settings.json", '{"runs": [{"task": {}, "episodes": 3}]}'),
        ("episodes.parquet", "no table"),
        ("pulls.parquet", ""),
    ],
)
def test_evaluations_that_are_none(name: str, content: str, tmp_path: Path) -> None:
    evaluate("uniform", "Threshold", episodes=3, env_kwargs={"budget": 30}).save(tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=r"holds no evaluation|written with"):
        Evaluation.load(tmp_path)
    if name != "settings.json":  # without digests, as older versions have written it
        settings.pop(files.DIGESTS)
        (tmp_path / "settings.json").write_text(json.dumps(settings))
        with pytest.raises(ValueError, match="holds no evaluation"):
            Evaluation.load(tmp_path)


def test_a_disk_that_is_full_at_any_byte_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    """15 limits between nothing and the size of the largest file: an evaluation saved over another."""
    kwargs: Any = {"episodes": 40, "env_kwargs": {"budget": 30}, "progress": False}
    old, new = (evaluate("lsa", "bandit_envs/Threshold-v0", seed=seed, **kwargs) for seed in (0, 1))
    old.save(tmp_path)
    whole = {path.name for path in tmp_path.iterdir()}
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    failed = 0
    for left in np.random.default_rng(0).integers(0, largest, 15).tolist():
        with full_disk(left):
            try:
                new.save(tmp_path)
            except OSError:
                failed += 1
        found = Evaluation.load(tmp_path)
        assert found.settings["seed"] == 0
        assert np.array_equal(found.runs[0].columns["score"], old.runs[0].columns["score"])
        assert {path.name for path in tmp_path.iterdir()} == whole  # no rubbish
    assert failed == 15
    new.save(tmp_path)
    assert Evaluation.load(tmp_path).settings["seed"] == 1


def test_a_folder_of_reproduced_figures_is_no_evaluation(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"reproduction": {"figure": "tiny"}, "panels": {}}))
    with pytest.raises(ValueError, match=r"no evaluation: `bandit-envs report .*` \(agents.report\) reads it"):
        Evaluation.load(tmp_path)
