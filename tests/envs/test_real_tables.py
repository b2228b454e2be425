"""Real tables as instances: the facts of the files, what a pickle may hold, and the records that a table is made of."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from bandit_envs.instances import datasets, lookup
from bandit_envs.instances.datasets import FILES, score_table

PICKLES = ["sysrs/gsm.pkl", "sysrs/legalbench.pkl", "sysrs/musr.pkl", "sysrs/wmt_14.pkl"]
FACTS = {  # arms, rows, range, the best two means
    "models-gsm": (80, 1000, (0, 1), (0.956, 0.949)),
    "models-legalbench": (80, 2047, (0, 1), (0.7015, 0.6971)),
    "models-musr": (450, 756, (0, 1), (0.5357, 0.5119)),
    "models-wmt": (80, 5000, (0, 1), (0.2292, 0.2266)),
    "models-code": (17, 713, (0, 1), (0.7097, 0.6241)),
    "models-bfcl": (9, 200, (0, 1), (0.72, 0.71)),
    "models-json": (12, 1000, (0, 1), (0.964, 0.92)),
    "translators-ende": (10, 1418, (-25, 0), (-0.746, -0.911)),
    "translators-zhen": (10, 2000, (-25, 0), (-3.434, -3.615)),
    "maize": (55, 27, (0, 20), (9.2495, 8.7422)),
}


@pytest.fixture
def found(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """`find`, with the folder of the data."""
    monkeypatch.setenv(datasets.VARIABLE, str(data_folder))
    return lookup.find


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_the_tables(found: Callable[[Any], Any], name: str) -> None:
    K, N, support, best = FACTS[name]
    arms = found(name).arms
    assert (arms.distribution, arms.K, arms.items, arms.support) == ("shared", K, N, support)
    assert np.sort(arms.means)[:-3:-1] == pytest.approx(best, abs=6e-5 if support == (0, 1) or K == 55 else 6e-4)
    env: Any = gym.make("bandit_envs/BestArm-v0", instance=name, budget=2 * K).unwrapped
    orders = [env.reset(seed=seed) and env._core.means[0].tolist() for seed in (0, 1)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(arms.means.tolist())


def test_arms_have_the_names_of_the_table(found: Callable[[Any], Any], data_folder: Path) -> None:
    translators = found("translators-ende")
    means = dict(zip(translators.arm_names, translators.arms.means.tolist(), strict=True))
    humans = [means.pop(f"Human-{name}.0") for name in "BAP"]
    assert [*humans, max(means.values())] == pytest.approx([-0.746, -0.911, -1.410, -2.018], abs=6e-4)
    table = pd.read_csv(data_folder / "livecodebench_repair.csv", index_col=0)
    code = found("models-code")
    assert code.arm_names == tuple(table)
    assert np.array_equal(code.arms.parameters[:, :-1].T, table.to_numpy() / 100)
    assert found("maize").arm_names[:2] == ("G01", "G02")
    assert not found("models-gsm").arm_names


@pytest.mark.parametrize("name", PICKLES)
def test_models_are_sorted_and_scores_in_their_range(data_folder: Path, name: str) -> None:
    scores, names = score_table(name, data_folder)
    assert names == ()
    assert (np.diff(scores.mean(axis=0)) <= 0).all()
    assert (scores.min() >= 0) & (scores.max() == 1)
    assert ("wmt" in name) != np.isin(scores, (0, 1)).all()


def test_a_third_of_the_soybeans_keep_all_limits(found: Callable[[Any], Any], data_folder: Path) -> None:
    """By hand: five limits, in units of the file. 19 varieties are good, 4 within the tolerance of the boundary."""
    table = pd.read_csv(data_folder / "agridat/australia.soybean.csv")
    mean = table.groupby("gen").mean(numeric_only=True)
    good = (mean["yield"] >= 1.9) & (mean.height <= 0.95) & (mean.lodging <= 2.5)
    good &= (mean.protein >= 37) & (mean.oil >= 19.5)
    instance = found("soybean")
    assert instance.arm_names == tuple(table.gen.unique())
    assert instance.arms.parameters[:, 1].tolist() == [8] * 58
    env: Any = gym.make("bandit_envs/Feasible-v0", instance="soybean").unwrapped
    env.reset(seed=0)
    depth = env.problem.truth(instance.arms.means[None])[0]
    assert dict(zip(instance.arm_names, (depth > 0).tolist(), strict=True)) == good.to_dict()
    assert good.sum() == 19
    assert (np.abs(depth) < env.task.parameters["tolerance"]).sum() == 4
    assert env.setting.shuffle_arms
    columns = instance.arms.data
    assert columns.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert columns.std(axis=0) == pytest.approx(1)


def test_the_table_of_records_is_that_of_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [("q2", "b", 50.0), ("q1", "b", 0), ("q1", "a", 100.0), ("q2", "a", 20.0)]
    records = [{"question_id": row, "model": model, "pass@1": value, "date": 0} for row, model, value in cells]
    (tmp_path / "livecodebench_repair.json").write_text(json.dumps({"performances": records, "models": []}))
    monkeypatch.setitem(FILES, "livecodebench_repair.json", replace(FILES["livecodebench_repair.json"], sha256=None))
    scores, names = score_table("livecodebench_repair.json", tmp_path, index=0)
    assert scores.tolist() == [[20.0, 50.0], [100.0, 0.0]]
    assert names == ("a", "b")
    (tmp_path / "livecodebench_repair.csv").write_text("question_id,a,b\nq2,20.0,50.0\n")
    with pytest.raises(ValueError, match="truncated or altered"):  # it comes first, and its checksum is known
        score_table("livecodebench_repair.json", tmp_path, index=0)


def test_calls_have_scores_and_prices(found: Callable[[Any], Any], data_folder: Path) -> None:
    """By hand: 23 of 198 x 9 calls failed, on 6 questions; all together cost 4.13 dollars."""
    arms, table = found("calls-gpqa").arms, pd.read_csv(data_folder / "agentopt_gpqa.csv")
    whole = table.groupby("item").filter(lambda rows: len(rows) == 9)
    assert (len(table), whole["item"].nunique(), arms.items, arms.ranges) == (1759, 192, 192, ((0, 1), (0, 4)))
    mean = whole.groupby("model")[["score", "dollars"]].mean().loc[list(found("calls-gpqa").arm_names)]
    assert arms.means == pytest.approx(mean.to_numpy() * [1, 100], abs=1e-5)
    assert table.dollars.sum() == pytest.approx(4.13, abs=0.01)
    assert table.groupby("model").score.sum()[["Claude Opus 4.6", "Kimi K2.5"]].tolist() == [159, 139]


def test_models_of_json_by_stratum(found: Callable[[Any], Any], data_folder: Path) -> None:
    table = pd.read_csv(data_folder / "llm_json_outcomes.csv")
    of = dict(zip(found("models-json").arm_names, found("models-json").arms.parameters[:, :-1], strict=True))
    assert all((rows == table[model]).all() for model, rows in of.items())
    assert table.groupby("stratum")["gpt-4.1-mini"].mean().tolist() == [0.996, 0.86, 1, 1]


def test_records_of_calls_and_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two questions one has a call of each model. By hand: .25 + 2 * 1.25 dollars are 275 cents."""
    name, lines = "agentopt_gpqa_200_bf.jsonl", list[str]()
    monkeypatch.setitem(FILES, name, replace(FILES[name], sha256=None))
    for i, model in enumerate(datasets._TABLE["prices"]):
        used = {"input_tokens": {"a": 10**6}, "output_tokens": {"a": 10**6, "b": 10**6}}
        calls = [{"datapoint_index": n, "score": 1.0 * (n == i), **used} for n in range(2 if i else 1)]
        lines.append(json.dumps({"model_name": f"agent={model}", "datapoint_results": calls}))
    (tmp_path / name).write_text("\n".join(lines))
    table, names = score_table(name, tmp_path, cents=True)
    assert names[0] == "Claude 3 Haiku"
    assert table.shape == (1, 9, 2)
    assert table[0, :2].tolist() == [[1.0, 275.0], [0.0, 1100.0]]
    (tmp_path / "json").mkdir()
    for i, one in enumerate(file for file in FILES if file.startswith("json/")):
        rows = [{"id": "b", "passed": i > 0}, {"id": "a", "passed": i == 0}]
        (tmp_path / one).write_text("\n".join(map(json.dumps, rows)))
    table, names = score_table("json/unnamed.jsonl", tmp_path)
    assert names[:2] == ("unnamed", "deepseek-llm-7b")
    assert table[:, :2].tolist() == [[1, 0], [0, 1]]


# Pickles --------------------------------------------------------------------------------------------------------------


class Hostile:
    """Writes a file when it is unpickled without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def pickled(folder: Path, content: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of this pickle or these bytes, whose checksum is not known."""
    name = "table.pkl"
    (folder / name).write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, protocol=4))
    monkeypatch.setitem(FILES, name, replace(FILES[PICKLES[0]], sha256=None, alias=name))
    return name


def test_arrays_are_read_in_both_spellings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    older = [pickle.dumps(scores, protocol=n).replace(b"numpy._core", b"numpy.core") for n in (2, 3)]
    for content in (scores, scores.astype(np.int8), older[1]):
        assert np.array_equal(score_table(pickled(tmp_path, content, monkeypatch), tmp_path)[0], scores.T)
    with pytest.raises(ValueError, match=r"_codecs\.encode"):  # of the old protocol: more than an array needs
        score_table(pickled(tmp_path, older[0], monkeypatch), tmp_path)


def test_a_hostile_pickle_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "harm"
    for content in (Hostile(target), [np.eye(2), Hostile(target)], np.array([Hostile(target)], object)):
        name = pickled(tmp_path, content, monkeypatch)
        with pytest.raises(ValueError, match=r"table\.pkl is no pickle of an array.*no part of an array"):
            score_table(name, tmp_path)
        assert not target.exists()
    pickle.loads(pickle.dumps(Hostile(target)))
    assert target.exists()  # it does harm where it is run


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x04", b"no pickle", np.eye(2)[0], np.array([["a"]]), np.array([[np.inf, 1.0]])],
    ids=["empty", "cut off", "text", "one axis", "words", "infinite"],
)
def test_other_pickles_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: object) -> None:
    with pytest.raises(ValueError, match=r"table\.pkl (is no pickle|must hold)"):
        score_table(pickled(tmp_path, content, monkeypatch), tmp_path)


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sysrs").mkdir()
    (tmp_path / PICKLES[0]).write_bytes(pickle.dumps(np.eye(3)))
    with pytest.raises(ValueError, match=f"truncated or altered.*{FILES[PICKLES[0]].sha256}"):
        lookup.find({"models-gsm": {"folder": str(tmp_path)}})
    with pytest.raises(FileNotFoundError, match=r"musr\.pkl.*zifanlyu"):
        lookup.find({"models-musr": {"folder": str(tmp_path)}})
