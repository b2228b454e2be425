"""Folders of blocks: what is written comes back, and only what is missing is made."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from scale import TAO, evaluate, files, reference, same

import agents
from agents.evaluation import blocks, storage
from agents.evaluation import run as making
from agents.evaluation.identity import versions
from agents.evaluation.moments import Moments
from agents.evaluation.report import report
from agents.evaluation.storage import Store
from agents.evaluation.storage.places import Place

RANDOM = np.random.default_rng(17)


def test_a_folder_holds_the_same_rows_and_is_read_by_pandas_and_duckdb(tmp_path: Path) -> None:
    made = evaluate(at=[20, 60], out=tmp_path)
    same(made, reference())
    opened = agents.results(tmp_path)
    same(opened, reference())
    assert opened.settings == json.loads(json.dumps(reference().settings))
    assert opened.compare("lsa", "opt-kg", "f1") == reference().compare("lsa", "opt-kg", "f1")
    assert opened.summary()["pulls_per_second"].min() > 0
    rows = pd.read_parquet(tmp_path / "episodes.parquet")
    keys = ["agent", "at", "episode"]
    rows = rows.astype({"agent": str, "budget": "Int64", "at": "Int64"}).sort_values(keys, ignore_index=True)
    expected = reference().episodes.astype({"agent": str}).sort_values(keys, ignore_index=True)
    assert_frame_equal(rows, expected, check_exact=True)
    call = json.loads(next((tmp_path / "calls").iterdir()).read_text())
    assert call["command"] == sys.argv
    assert call["ended"] is not None
    assert call["pulls"] == [3000 * 60] * 2


def test_duckdb_reads_the_files(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    evaluate(at=[20, 60], out=tmp_path)
    query = f"select count(*), sum(misclassified), avg(score) from '{tmp_path}/episodes.parquet/*.parquet'"
    [(count, misclassified, score)] = duckdb.sql(query).fetchall()
    rows = reference().episodes
    assert (count, misclassified) == (len(rows), rows["misclassified"].sum())
    assert score == pytest.approx(rows["score"].mean())


def test_columns_are_read_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate("lsa", out=tmp_path)
    read: list[Any] = []
    part = Store.part
    monkeypatch.setattr(Store, "part", lambda self, *some: (read.append(some[1]), part(self, *some))[1])
    opened = agents.results(tmp_path)
    assert read == []
    opened.column("lsa", "score")
    assert {name for names in read for name in names} == {"score"}


@pytest.mark.parametrize("settings", [{"budgets": [20, 60]}, {"env_kwargs": TAO | {"delta": 0.1}}, {"seed": 5}])
def test_all_kinds_of_evaluations_come_back(tmp_path: Path, settings: dict[str, Any]) -> None:
    names = {"a": "lsa", "b": "ucbe", "c": "uniform"}
    expected = evaluate(names, episodes=80, **settings)
    same(evaluate(names, episodes=80, out=tmp_path, **settings), expected)
    again = tmp_path / "saved"
    agents.results(tmp_path).save(again)
    same(agents.results(again), expected)  # what `save` writes is opened too


def test_again_does_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("lsa", out=tmp_path)
    before, made = files(tmp_path), []
    assert len(before) == 8
    play = making.play
    monkeypatch.setattr(making, "play", lambda plans, span, *rest: (made.append(span), play(plans, span, *rest))[1])
    evaluate("lsa", out=tmp_path)
    assert made == []
    for name in sorted(before)[2:4]:
        (tmp_path / "episodes.parquet" / name).unlink()
    monkeypatch.setattr(blocks, "LEAST_PARTS", 3)  # a folder keeps the blocks that it began with
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
        ({"names": ["apt"]}, "agents lsa is 'agents.thresholding.lsa:LSA' there, missing asked for"),
        ({"names": {"lsa": "lsa(alpha=2)"}}, "LSA, alpha=2"),
        ({"names": ["lsa", "apt"]}, r"order of the agents is \['lsa'\] there, \['lsa', 'apt'\] asked for"),
        ({"episodes": 200}, "episodes is 100 there, 200 asked for"),
        ({"seed": 4}, "seed is 0 there, 4 asked for"),
        ({"at": [5]}, r"at is None there, \[5\] asked for"),
        ({"env_kwargs": TAO | {"budget": 61}}, "env_kwargs budget is 60 there, 61 asked for"),
        ({"env_kwargs": TAO | {"salt": 7}}, "env_kwargs salt is missing there, 7 asked for"),
        ({"env_id": "Feasible", "env_kwargs": {"budget": 60}}, "env_id is 'bandit_envs/Threshold-v0' there"),
    ):
        with pytest.raises(ValueError, match=f"out holds another evaluation: .*{said}"):
            evaluate(**(base | change))
    saved = tmp_path / "saved"
    evaluate("lsa", episodes=5).save(saved)
    with pytest.raises(ValueError, match="saved holds an evaluation of another form"):
        evaluate("lsa", episodes=5, out=saved)
    assert files(out) == before
    (foreign := tmp_path / "foreign").mkdir()
    (foreign / "settings.json").write_text('{"a": 1}')
    said = "foreign holds settings.json, but not that of an evaluation.*give another out"
    with pytest.raises(ValueError, match=said):
        evaluate("lsa", episodes=5, out=foreign)
    assert [path.read_text() for path in foreign.iterdir()] == ['{"a": 1}']


@pytest.mark.parametrize("rows", ["all", "none"])
def test_blocks_of_another_evaluation_do_not_count(tmp_path: Path, rows: str) -> None:
    """A block that is copied from the folder of another seed fills no gap: its name says of what it is."""
    one, other = tmp_path / "one", tmp_path / "other"
    whole = evaluate("lsa", out=one, rows=rows)
    evaluate("lsa", out=other, rows=rows, seed=1)
    inside = "episodes.parquet" if rows == "all" else "sums.parquet"
    lost, foreign = (min((folder / inside).iterdir()) for folder in (one, other))
    lost.unlink()
    (one / inside / foreign.name).write_bytes(foreign.read_bytes())
    with pytest.raises(ValueError, match="is not complete: 1 of 8 blocks"):
        agents.results(one)
    same(evaluate("lsa", out=one, rows=rows), whole)


def test_a_complete_folder_is_read_without_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = evaluate("lsa", out=tmp_path)
    monkeypatch.setattr(Place, "write", lambda *some, **more: pytest.fail("something is written"))
    same(evaluate("lsa", out=tmp_path), whole)


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


def test_memory_and_folders_hold_the_same_of_each_block(tmp_path: Path) -> None:
    """One class for both: what is known of a block, and of all, by their text to the last bit."""
    runs = evaluate(episodes=40, at=[20, 60]).runs
    group, settings = [blocks.Group((0, 1), 16, 8)], {"rows": "none"}
    stores = [storage.Store(runs, group, 40, settings, place, "x") for place in (None, storage.place_of(tmp_path))]
    for store in stores:
        contents = [store.form(block, [_rows_of(run, block) for run in runs]) for block in store.blocks]
        assert store.missing() == store.blocks
        for block, content in zip(store.blocks[:-1], contents, strict=False):
            store.put(block, content)
        assert store.missing() == store.blocks[-1:]
        with pytest.raises(ValueError, match="1 of 5 blocks are missing"):
            store.merged()
        store.put(store.blocks[-1], contents[-1])
    one, other = (store.merged().to_json() for store in stores)
    assert one == other == Moments.from_json(other).to_json()


def _rows_of(run: Any, block: blocks.Block) -> Any:
    rows = slice(block.first, block.first + block.episodes)
    return dataclasses.replace(run, columns={name: x[rows] for name, x in run.columns.items()})


@pytest.mark.parametrize("rows", ["all", "none"])
def test_a_speed_that_no_call_has_noted_is_not_known(tmp_path: Path, rows: str) -> None:
    evaluate("lsa", episodes=200, out=tmp_path, rows=rows)
    assert (agents.results(tmp_path).summary()["pulls_per_second"] > 0).all()
    for note in (tmp_path / "calls").iterdir():
        note.unlink()
    result = agents.results(tmp_path)
    assert result.summary()["pulls_per_second"].isna().all()
    assert "nan" not in report(result)


OLD = Path(__file__).parent / "folders" / "47cb50b"  # what the commit of this name has written
THEN: dict[str, Any] = {
    "agents": ["uniform", "lsa"],
    "env_id": "bandit_envs/Threshold-v0",
    "episodes": 24,
    "env_kwargs": {
        "instance": {"distribution": "bernoulli", "mean": [0.2, 0.4, 0.6, 0.8]},
        "threshold": 0.5,
        "budget": 2000,
    },
}


@pytest.mark.parametrize("kind", ["rows", "saved", "sums"])
def test_folders_of_old_versions_are_read_and_gone_on_with(tmp_path: Path, kind: str) -> None:
    how = THEN | ({"rows": "none"} if kind == "sums" else {"at": [500, 2000]})
    now = agents.evaluate(**how)
    old = agents.results(OLD / kind)
    assert_frame_equal(old.pulls, now.pulls, check_exact=True)
    told = [name for name in now.summary().columns if name != "pulls_per_second"]
    assert_frame_equal(old.summary(columns=told), now.summary(columns=told), check_exact=True)
    if kind != "sums":
        assert_frame_equal(old.episodes, now.episodes, check_exact=True)
    identity = json.loads((OLD / kind / "settings.json").read_text()).get("identity", {})
    if identity.get("version") != versions():  # with another version nothing is added
        return
    shutil.copytree(OLD / kind, tmp_path / kind)
    before = {path.name: path.read_bytes() for path in sorted((tmp_path / kind).glob("*.parquet/*"))}
    assert len(before) >= 5
    lost = list(before)[::2]
    for name in lost:
        next((tmp_path / kind).rglob(name)).unlink()
    assert_frame_equal(agents.evaluate(**how, out=tmp_path / kind).pulls, now.pulls, check_exact=True)
    assert {path.name: path.read_bytes() for path in sorted((tmp_path / kind).glob("*.parquet/*"))} == before
