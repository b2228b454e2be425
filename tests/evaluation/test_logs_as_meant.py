"""Logs of evaluation harnesses are read as they are meant, and what was read is said."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_harness_logs import inspect_log, lm_eval

import agents
from agents import cli
from bandit_envs.kernels import within_ends

COMPOSED, SPLIT = "K\u00e4se", "Ka\u0308se"  # NFC and NFD of one word


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def promptfoo(path: str, rows: Any) -> str:
    """Results of promptfoo, of (provider, test case, testIdx, success)."""
    done = [
        {"provider": {"id": who}, "vars": case.get("vars", {}), "testCase": case, "success": success, "testIdx": test}
        | {"promptIdx": "xy".index(who), "score": float(success), "failureReason": 0 if success else 1}
        for who, case, test, success in rows
    ]
    lines = "\n".join(map(json.dumps, done)) if path.endswith(".jsonl") else json.dumps({"results": {"results": done}})
    Path(path).write_text(lines)
    return path


def refused(match: str, logs: Any, kind: type[Exception] = ValueError, **how: Any) -> None:
    with pytest.raises(kind, match=match):
        agents.compare_logs(logs, **how)


@pytest.mark.parametrize(("case", "path"), [("description", "r.json"), ("vars", "r.jsonl"), ("assert", "r.json")])
def test_repeats_are_no_items(case: str, path: str) -> None:
    rows = [(p, {case: [f"t{t}"]}, 10 * t + r, p == "x" or t > 2) for t in range(10) for r in range(10) for p in "xy"]
    found = agents.compare_logs([promptfoo(path, rows)])
    (row,) = found.to_dict("records")
    assert (row["a"], row["b"], row["items"], row["only_a"], row["mcnemar"]) == ("x", "y", 10, 3, 0.25)
    assert "2 logs (by provider), 10 items (by test case: " in found.attrs["read"]
    assert "180 repeats (by testIdx) are averaged; left out: nothing" in found.attrs["read"]
    assert len(agents.logs_table([path], item="testIdx")) == 100  # for who knows better


def test_repeats_that_nothing_tells_from_other_tests_are_refused() -> None:
    plain = [(p, {}, t, True) for t in range(10) for p in "xy"]
    refused("r.json, item '': each item has a name.* as 'testIdx' of promptfoo", [promptfoo("r.json", plain)])
    assert agents.compare_logs(["r.json"], item="testIdx")["items"][0] == 10
    twice = [("x", {"vars": {"q": 1}}, 0, True), ("x", {"vars": {"q": 1}}, 0, False)]  # two candidates of one name
    refused("it is there twice with the same testIdx", [promptfoo("r.json", twice)])
    refused(
        "log.json, item 's': it is there twice with the same epoch", [_inspect("log.json", ["C", "I"], epochs=[1, 1])]
    )
    refused("it is there twice with the same name", {"a": {COMPOSED: 1, SPLIT: 0}, "b": {COMPOSED: 1}})
    subjects = [{"doc_id": i, "target": "A", "acc": x} for x in (0, 1) for i in range(3)]
    Path("two.jsonl").write_text("\n".join(map(json.dumps, subjects)))
    refused("two.jsonl, item '0': it is there twice .*item= ", ["two.jsonl", lm_eval("b.jsonl", [1])], value="acc")
    assert agents.logs_table(["two.jsonl"], item="doc_id", value="acc")["two"].tolist() == [0.5] * 3
    Path("t.csv").write_text("q,right,model\n1,1,gpt\n1,0,mini\n2,1,gpt\n")
    refused("items with several 'model', which are no repeats", ["t.csv"], item="q", value="right")
    refused("no log has a field item='p'", [promptfoo("r.json", twice[:1])], item="p")


@pytest.mark.parametrize("head", ["Model", "llm_name", "prompt id", "lang", "who"])
def test_columns_that_part_each_item_are_no_repeats(head: str) -> None:
    rows = [
        {"q": i, "x": i % 2, head: cell, "out": f"{i} {cell} {i % 3}"} for i in range(12) for cell in ("a", "b", "a")
    ]
    pd.DataFrame(rows).to_csv("t.csv", index=False)
    refused(f"t.csv has items with several '{head}', which are no repeats: .* 'repeat'", ["t.csv"], item="q", value="x")
    for other in ("seed", "run", "Repeat", "round_no"):
        pd.DataFrame(rows).rename(columns={head: other}).to_csv("t.csv", index=False)
        assert "24 repeats are averaged" in agents.logs_table(["t.csv"], item="q", value="x").attrs["read"]


def test_other_questions_are_other_items() -> None:
    told = [{"id": "u7", "role": "user", "content": "q"}]
    for path, asked, more in (
        ("a", "q", {}),
        ("b", "p", {}),
        ("c", told, {}),
        ("d", [told[0] | {"id": "u8", "content": "attachment://k1"}], {"attachments": {"k1": "q"}}),
    ):
        log = json.loads(Path(_inspect(f"{path}.json", ["C", "I"], path)).read_text())
        log["samples"] = [one | {"input": asked, **more} for one in log["samples"]]
        Path(f"{path}.json").write_text(json.dumps(log))
    refused("b.json, item '0': its data are not those of this item in a.json", ["a.json", "b.json"])
    assert agents.compare_logs(["c.json", "d.json"])["items"][0] == 2
    name = "samples_{}_2026-01-02T03-04-05.6.jsonl"
    for task, folder in (("t", "x"), ("u", "y"), ("t", "z")):
        Path(folder).mkdir(exist_ok=True)
        rows = [{"doc_id": i, "target": 1, "acc": i % 2} for i in range(4)]
        (Path(folder) / name.format(task)).write_text("\n".join(map(json.dumps, rows)))
    refused("its data are not those", ["x/" + name.format("t"), "y/" + name.format("u")])
    assert agents.compare_logs(["x/" + name.format("t"), "z/" + name.format("t")])["items"][0] == 4
    Path("w.jsonl").write_text('{"doc_id": 0, "target": 1}')
    for value in (None, "target"):  # what is right is no score
        refused("w.jsonl has no row with a score", ["w.jsonl"], value=value)


def test_a_clock_tells_no_items_apart() -> None:
    cells = [(p, t, r) for t in range(3) for r in range(4) for p in "xy"]
    rows = [(p, {"vars": {"q": f"t{t}", "now": f"12:0{r}"}}, 10 * t + r, p == "x") for p, t, r in cells]
    found = agents.compare_logs([promptfoo("r.json", rows)])
    assert "9 items have the data of another: if they are repeats, they are no items." in found["sentence"][0]
    assert agents.compare_logs(["r.json"], item="q")["items"][0] == 3
    rows = [(p, {"vars": {"a": t, "b": r}}, 10 * t + r, p == "x") for p, t, r in cells]
    assert agents.compare_logs([promptfoo("r.json", rows)]).attrs["alike"] == 0


def test_other_items_with_the_same_data_are_named() -> None:
    for name in "ab":
        rows = [{"doc_id": i, "metrics": ["acc"], "acc": i % 2, "doc_hash": f"{i // 5}"} for i in range(50)]
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = agents.compare_logs(["a.jsonl", "b.jsonl"])
    assert "40 items have the data of another" in found.attrs["read"]
    assert "40 items have the data of another: if they are repeats, they are no items." in found["sentence"][0]


def _inspect(path: str, values: Any, model: str = "m", epochs: Any = None, failed: Any = (), **more: Any) -> str:
    inspect_log(path, [("s" if epochs else i, (epochs or [1] * 99)[i], x) for i, x in enumerate(values)], model)
    log = json.loads(Path(path).read_text())
    for i, sample in enumerate(log["samples"]):
        sample |= {"error": {"message": "out of memory"}, **more} if i in failed else {}
    Path(path).write_text(json.dumps(log))
    return path


def test_errors_with_a_score_count() -> None:
    """Inspect scores errors where it is told to (`score_on_error`); those that it has not scored have no score."""
    a = _inspect("a.json", ["C"] * 20 + ["I"] * 20, "a")
    b = _inspect("b.json", ["C"] * 10 + ["I"] * 30, "b", failed=range(20, 40))
    found = agents.compare_logs([a, b])
    (row,) = found.to_dict("records")
    assert (row["items"], row["difference"]) == (40, -0.25)
    assert row["sentence"].startswith("a is right 25.0 percentage points more often than b")
    assert "20 errors of b have a score, which counts." in row["sentence"]
    assert "20 errors of b have a score, which counts" in found.attrs["read"]
    gone = _inspect("c.json", ["C"] * 4, "c", failed=[1], invalidation={"reason": "wrong tool"})
    assert agents.logs_table([gone])["c"].isna().tolist() == [False, True, False, False]


def test_a_conclusion_that_depends_on_errors_says_so() -> None:
    out = RuntimeError("out of memory")
    a = inspect_log("a.json", [(i, 1, "C" if i < 20 else "I") for i in range(40)], "a")
    b = inspect_log("b.json", [(i, 1, "C" if 15 <= i < 25 else "I" if i < 20 else out) for i in range(40)], "b")
    (row,) = agents.compare_logs([a, b]).to_dict("records")
    said = "It depends on what is left out: with the score 0 for each error and empty score, a is right 25.0 percentage"
    assert "a is right" in row["sentence"]
    assert said not in row["sentence"]  # a is ahead both ways
    c = inspect_log("c.json", [(i, 1, "C" if 10 <= i < 20 else out) for i in range(40)], "c")
    d = inspect_log("d.json", [(i, 1, "C" if i < 20 and i != 12 else "I") for i in range(40)], "d")
    (row,) = agents.compare_logs([d, c]).to_dict("records")
    assert row["sentence"].startswith("c is right 10.0 percentage points more often than d")
    assert said.replace("a is right 25.0", "d is right 22.5") in row["sentence"]
    assert "Left out of c: 30 errors or empty scores." in row["sentence"]
    lost = inspect_log("lost.json", [(i, 1, out) for i in range(3)])
    refused("lost.json has no row with a score", [a, lost])


def test_equality_is_never_claimed() -> None:
    (row,) = agents.compare_logs({"old": {1: 1, 2: 0}, "new": {1: 0, 2: 1}}).to_dict("records")
    assert row["sentence"].startswith("old and new have the same mean, which does not show that they are equally good")
    assert "as good as" not in row["sentence"]
    assert "may still be chance" not in row["sentence"]


def test_one_form_of_unicode() -> None:
    logs = {}
    for word in (COMPOSED, SPLIT):
        Path(f"{word}.csv").write_text(f"{word},right\n{word},1\n", encoding="utf-8")
        logs[f"{word} {len(word)}"] = f"{word}.csv"
    assert agents.logs_table(logs, item=COMPOSED, value="right").index.tolist() == [COMPOSED]
    found = agents.compare_logs({SPLIT: {SPLIT: 1}, "b": {COMPOSED: 1}}, control=COMPOSED)
    assert (found["a"][0], found["items"][0]) == (COMPOSED, 1)
    refused("two logs have the same name", {COMPOSED: {1: 1}, SPLIT: {1: 0}})


def test_the_layout_of_lm_eval(capsys: pytest.CaptureFixture[str]) -> None:
    name = "samples_gsm8k_2026-01-02T03-04-05.678901.jsonl"
    for model in ("org__a", "org__b"):
        Path("out", model).mkdir(parents=True)
        lm_eval(f"out/{model}/{name}", [1, 0])
    paths = [f"out/{model}/{name}" for model in ("org__a", "org__b")]
    for logs in (["out"], paths, ["out/org__a", paths[1]]):
        table = agents.logs_table(logs)
        assert list(table) == ["org__a", "org__b"]
        assert "2 logs (by the folder of the model), 2 items (by doc_id)" in table.attrs["read"]
    assert list(agents.logs_table({"old": "out/org__a", "new": "out/org__b"})) == ["old", "new"]
    refused("a log is there twice", ["out", paths[0]])
    lm_eval(f"out/org__a/{name.replace('gsm8k', 'mmlu')}", [1, 0])
    refused("out has several logs of a model", ["out"])
    Path("empty").mkdir()
    refused(r"no samples_\*.jsonl and no \*.eval", ["empty"], FileNotFoundError)
    for model in "cd":
        inspect_log(f"empty/{model}.eval", [(1, 1, "C")], model)
    assert cli.main(["compare", "empty"]) == 0
    out, err = capsys.readouterr()
    assert "c and d have the same mean" in out
    assert (
        err == "note: read: 2 logs (by eval.model), 1 items (by id); scores of match; no repeats; left out: nothing\n"
    )


def test_a_path_may_have_the_mark_of_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    for path, x in (("lr=0.1.csv", 1), ("lr=0.2.csv", 0), ("a.csv", 1), ("0.1.csv", 1)):
        Path(path).write_text(f"q;x;more\n1;{x};?\n")
    more = ["--item", "q", "--value", "x"]
    assert cli.main(["compare", "./lr=0.1.csv", "lr=0.2.csv", *more]) == 0
    out, err = capsys.readouterr()
    assert "lr=0.1 is right 100.0 percentage points more often than lr=0.2" in out
    assert "scores of x; no repeats; left out: the columns more" in err
    assert cli.main(["compare", "lr=.1=a.csv", "lr=.2=lr=0.2.csv", *more]) == 0
    assert "lr=.1 is right" in capsys.readouterr().out
    for words, said in [
        (["lr=0.1.csv", "a.csv"], "may be each of ['lr=0.1.csv', '0.1.csv']: say ./lr=0.1.csv, or NAME=./PATH"),
        (["x=a.csv", "lr=0.2.csv"], "all logs have names, or none has"),
        (["x=lost.csv", "a.csv"], "all logs have names, or none has"),
        (["x=lost.csv", "y=a.csv"], "there is no file lost.csv"),
    ]:
        assert cli.main(["compare", *words, *more]) == 2
        assert said in capsys.readouterr().err
    Path("two.csv").write_text("q;a,x\n1;b,1\n")  # what is refused names an option that there is
    assert cli.main(["compare", "a.csv", "two.csv", *more]) == 2
    assert "--sep" in capsys.readouterr().err
    assert agents.logs_table(["two.csv"], item="q;a", value="x", sep=",").index.tolist() == ["1;b"]


def test_damaged_logs_have_one_error() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    Path("deep.json").write_text(deep)
    refused("deep.json is nested too deeply", ["deep.json"])
    Path("deep.jsonl").write_text(f'{{"doc_id": {deep}}}')
    refused("deep.jsonl, line 1: a row is a JSON object", ["deep.jsonl"])
    nested: Any = 1
    for _ in range(100_000):
        nested = [nested]
    refused("a is nested too deeply", {"a": {1: nested}, "b": {1: 1}})
    for metrics in (5, "acc", {"acc": 1}, [["acc"]], [5]):
        Path("m.jsonl").write_text(json.dumps({"doc_id": 0, "metrics": metrics, "acc": 1}))
        refused("m.jsonl is no log of lm-eval or promptfoo that is read: .*metrics are a list of names", ["m.jsonl"])
    Path("old.jsonl").write_text('{"doc_id": 0, "doc": {}, "acc": 1.0, "acc_norm": 0.0}')
    refused(r"has the scores \['acc', 'acc_norm'\]: say which by value=", ["old.jsonl"])
    refused("a log is a path, or a dict of scores by items, got 5", [5], TypeError)  # each kind by its own message
    refused("a log is a path, or a dict of scores by items, got None", {"a": {1: 1}, "b": None}, TypeError)
    refused("logs must be a list of paths", "a.json", TypeError)
    refused("each item has a name", {"a": {math.nan: 1}, "b": {1: 1}})


def test_a_range_has_rounding() -> None:
    logs = {"a": {1: 0.1 + 0.2, 2: -5e-17, 3: 0.3}, "b": {1: np.float32(0.3), 2: 0, 3: 0}}
    found = agents.compare_logs(logs, range=(0, 0.3))
    assert (found["mean_a"][0], found["only_a"][0], found["both"][0]) == (pytest.approx(0.2), 1, 1)
    refused(
        "item '1': a score '' is .* from 0 to 0.1 ", {"a": {1: float(np.float32(0.1))}, "b": {1: 0}}, range=(0, 0.1)
    )
    ends = within_ends(np.array([1 + 2**-51, 1 + 2**-49, -(2.0**-51), -(2.0**-49), 0.5, math.nan, math.inf]), 0.0, 1.0)
    np.testing.assert_equal(ends, [1, 1 + 2**-49, 0, -(2.0**-49), 0.5, math.nan, math.inf])
    assert within_ends(1.0000000000000002, 0, 1) == 1.0
    pd.DataFrame({"q": [1, 1, 1, 2], "x": [0.1, 0.1, 0.1, None]}).to_parquet("e.parquet")
    table = agents.logs_table(["e.parquet"], item="q", value="x", range=(0, 0.1))
    np.testing.assert_equal(table["e"].tolist(), [0.1, math.nan])  # a mean of three ends is the end


@pytest.mark.parametrize(("n", "wins", "losses"), [(60, 11, 0), (120, 22, 0), (300, 7, 0), (300, 31, 0), (200, 9, 1)])
def test_the_order_of_logs_changes_no_number(n: int, wins: int, losses: int) -> None:
    """Where one log wins all the items that differ, all differences lie on two points, and none at an end."""
    better = [True] * wins + [False] * losses + [True] * (n - wins - losses)
    worse = [False] * wins + [True] * losses + [True] * (n - wins - losses)
    for name, scores in {"a": better, "b": worse}.items():
        pd.DataFrame({"item": range(n), "value": np.float64(scores)}).to_csv(f"{name}.csv", index=False)
    one, other = (
        agents.compare_logs(logs, item="item", value="value").iloc[0]
        for logs in (["a.csv", "b.csv"], ["b.csv", "a.csv"])
    )
    assert one["p"] == pytest.approx(other["p"], rel=1e-9)
    assert [one["low"], one["high"]] == pytest.approx([-other["high"], -other["low"]])
