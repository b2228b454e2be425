"""Logs of evaluation harnesses: what is read of them, what is refused, and what a comparison promises."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import logs as campaign
import numpy as np
import pytest
from scipy.stats import binom, binomtest

import agents
from agents import cli
from bandit_envs import from_table

EACH = 1e-6  # how often a statistical test fails where all is right


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lm_eval(path: str, scores: Any, filters: Any = ("none",), marks: str = "h", **more: Any) -> str:
    """Samples as lm-evaluation-harness 0.4.9 writes them."""
    rows = [
        {"doc_id": i, "doc": {"question": f"q{i}"}, "target": "1", "arguments": {"gen_args_0": {"arg_0": "q"}}}
        | {"resps": [["1"]], "filtered_resps": ["1"], "filter": name, "metrics": ["exact_match", *more]}
        | {"doc_hash": f"{marks}{i}", "prompt_hash": path, "target_hash": "t", "exact_match": x, **more}
        for i, x in enumerate(scores)
        for name in filters
    ]
    Path(path).write_text("\n".join(map(json.dumps, rows)))
    return path


def inspect_log(path: str, samples: Any, model: str = "mockllm/a", scorer: str = "match") -> str:
    """A log as Inspect 0.3 writes it, of (id, epoch, value or an error)."""
    head = {"version": 2, "status": "success", "eval": {"task": "sums", "model": model}, "results": None}
    done = []
    for name, epoch, value in samples:
        sample: dict[str, Any] = {"id": name, "epoch": epoch, "input": "1+1", "target": f"t{name}", "messages": []}
        failed = isinstance(value, RuntimeError)
        sample |= {"error": {"message": str(value)}} if failed else {}
        done.append(sample | {"scores": {} if failed else {scorer: {"value": value, "answer": "2", "history": []}}})
    if path.endswith(".json"):
        Path(path).write_text(json.dumps({**head, "samples": done}))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(head))
        archive.writestr("header.json", json.dumps(head))
        for one in done:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
    return path


def promptfoo(path: str, results: Any) -> str:
    """Results as promptfoo writes them, of (provider, number of the prompt, variables, success, score, reason)."""
    rows = [
        {"provider": {"id": who, "label": ""}, "prompt": {"raw": "p", "label": "p"}, "promptIdx": prompt, "testIdx": n}
        | {"vars": given, "success": success, "score": score, "failureReason": reason, "namedScores": {"tone": 0.5}}
        for n, (who, prompt, given, success, score, reason) in enumerate(results)
    ]
    found = {"evalId": "eval-1", "results": {"version": 3, "results": rows, "stats": {}}, "config": {}}
    Path(path).write_text(json.dumps(found))
    return path


def columns(table: Any) -> dict[str, Any]:
    return {name: {item: x for item, x in table[name].items() if x == x} for name in table}


# --- what is read -----------------------------------------------------------------------------------------------------


def test_samples_of_lm_eval() -> None:
    paths = [lm_eval("samples_a.jsonl", [1.0, 0.0, 1.0]), lm_eval("samples_b.jsonl", [0.0, True, None])]
    table = agents.logs_table(paths)
    assert columns(table) == {"samples_a": {"0": 1, "1": 0, "2": 1}, "samples_b": {"0": 0, "1": 1}}
    assert table.attrs["skipped"] == {"samples_a": 0, "samples_b": 1}
    lm_eval("samples_c.jsonl", [0.2, 0.4], ("strict", "loose"), acc_norm=1.0)
    table = agents.logs_table(["samples_c.jsonl"], value="exact_match", filter="loose")
    assert columns(table) == {"samples_c": {"0": 0.2, "1": 0.4}}
    without = [{"doc_id": 4, "doc": {}, "acc": 1.0, "doc_hash": "x"}]  # versions that list no metrics
    Path("old.jsonl").write_text("\n".join(map(json.dumps, without)))
    assert columns(agents.logs_table(["old.jsonl"], value="acc")) == {"old": {"4": 1}}


@pytest.mark.parametrize("ending", ["json", "eval"])
def test_logs_of_inspect(ending: str) -> None:
    values = ["C", "I", "P", "N", 0.25, True, RuntimeError("no answer"), math.nan]
    path = inspect_log(f"log.{ending}", [(f"s{i}", 1, x) for i, x in enumerate(values)] + [("s0", 2, "I")])
    table = agents.logs_table([path])
    assert columns(table) == {"mockllm/a": {"s0": 0.5, "s1": 0, "s2": 0.5, "s3": 0, "s4": 0.25, "s5": 1}}
    assert list(table.index) == [f"s{i}" for i in range(8)]
    assert table.attrs["skipped"] == {"mockllm/a": 2}
    other = inspect_log(f"other.{ending}", [("s0", 1, "C")])
    assert list(agents.logs_table([path, other])) == [f"mockllm/a {path}", f"mockllm/a {other}"]  # the same model
    third = inspect_log(f"third.{ending}", [("s0", 1, "C")], model="mockllm/b")
    assert list(agents.logs_table([path, third])) == ["mockllm/a", "mockllm/b"]
    assert list(agents.logs_table({"before": path, "after": third})) == ["before", "after"]


INSPECT = """
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import solver

@solver
def answer():
    async def solve(state, generate):
        state.output.completion = "right" if state.epoch == 1 else "wrong"
        return state
    return solve

samples = [Sample(id=f"s{i}", input="?", target="right" if i else "neither") for i in range(3)]
for kind in ("eval", "json"):
    task = Task(dataset=MemoryDataset(samples), solver=answer(), scorer=includes(), name=kind)
    (log,) = eval(task, model="mockllm/model", epochs=2, log_dir=kind, log_format=kind, display="none")
    assert log.status == "success", log.error
"""


@pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed")
def test_logs_that_inspect_writes() -> None:
    subprocess.run([sys.executable, "-c", INSPECT], check=True, timeout=300)
    for kind in ("eval", "json"):
        (path,) = Path(kind).iterdir()
        assert columns(agents.logs_table([path])) == {"mockllm/model": {"s0": 0, "s1": 0.5, "s2": 0.5}}


def test_results_of_promptfoo() -> None:
    rows = [
        ("gpt", 0, {"q": "a"}, True, 1.0, 0),
        ("gpt", 0, {"q": "b"}, False, 0.4, 1),
        ("gpt", 0, {"q": "c"}, False, 0, 2),
    ]
    path = promptfoo("one.json", [*rows, ("mini", 0, {"q": "a"}, False, 0.2, 1), ("mini", 0, {"q": "a"}, True, 1, 0)])
    table = agents.logs_table([path])
    assert columns(table) == {"gpt": {'{"q": "a"}': 1, '{"q": "b"}': 0}, "mini": {'{"q": "a"}': 0.5}}
    assert table.attrs["skipped"] == {"gpt": 1, "mini": 0}
    assert columns(agents.logs_table([path], value="score"))["mini"] == {'{"q": "a"}': 0.6}
    assert columns(agents.logs_table([path], value="tone"))["mini"] == {'{"q": "a"}': 0.5}
    two = promptfoo("two.json", [("gpt", 0, {}, True, 1, 0), ("gpt", 1, {}, True, 1, 0)])
    assert columns(agents.logs_table([two], item="testIdx")) == {"gpt prompt 1": {"0": 1}, "gpt prompt 2": {"1": 1}}


def test_tables_and_dicts() -> None:
    Path("a.csv").write_text("question;right\n1;yes\n2;no\n3;\n2;yes\n")
    Path("b.jsonl").write_text('{"question": "1", "right": "correct"}\n{"question": 2.0, "right": 1}\n')
    table = agents.logs_table(["a.csv", "b.jsonl"], item="question", value="right")
    assert columns(table) == {"a": {"1": 1, "2": 0.5}, "b": {"1": 1, "2": 1}}
    assert table.attrs["skipped"] == {"a": 1, "b": 0}
    table = agents.logs_table({"file": "a.csv", "given": {1: 0.0, 2: 1.0}}, item="question", value="right")
    assert columns(table)["given"] == {"1": 0, "2": 1}


def test_the_table_is_an_instance() -> None:
    paths = [lm_eval(f"samples_{name}.jsonl", x) for name, x in (("a", [1, 0, 1, 1]), ("b", [1, 0, 0, 0]))]
    instance = from_table(agents.logs_table(paths), shared=True)
    assert instance.arm_names == ("samples_a", "samples_b")
    assert instance.arms.means.tolist() == [0.75, 0.25]
    agents.logs_table(paths).to_csv("wide.csv")
    assert from_table("wide.csv", shared=True).arms.means.tolist() == instance.arms.means.tolist()  # a file for --data


# --- what is refused --------------------------------------------------------------------------------------------------


def test_bad_logs_are_refused() -> None:
    def refused(match: str, logs: Any, kind: type[Exception] = ValueError, **how: Any) -> None:
        with pytest.raises(kind, match=match):
            agents.compare_logs(logs, **how)

    a, b = lm_eval("a.jsonl", [1, 0]), lm_eval("b.jsonl", [0, 1])
    refused("there is no file lost.jsonl", [a, "lost.jsonl"], FileNotFoundError)
    refused("a log is there twice: .*a.jsonl", [a, "./a.jsonl"])
    refused(r"two logs or more are needed.*\['a'\]", [a])
    refused("a control is one of them.*'c'", [a, b], control="c")
    refused("delta", [a, b], delta=1.0)
    refused("range", [a, b], range=(1, 0))
    refused(r"no item has a score in all logs, a, b: there are \['0', '1', 'x'\]", {"a": a, "b": {"x": 1}})
    refused("item '1': its data are not those of this item in a.jsonl", [a, _other_data()])
    three = {"given": {0: 1, 1: 1}, "a": a, "b": _other_data()}
    refused("d.jsonl, item '1': its data are not those of this item in a.jsonl", three, value="exact_match")
    refused("'7': each item has a name, and no two are a number and a text", {"a": {7: 1, "7": 0}, "b": {7: 1}})
    refused("each item has a name", {"a": {"": 1}, "b": {7: 1}})
    refused(r"a.jsonl has the scores \['exact_match'\]: say which by value= .*'acc'", [a, b], value="acc")
    refused(r"a.jsonl has the filters \['none'\]: .*got 'strict'", [a, b], filter="strict")
    refused(r"filters \['loose', 'strict'\]", [a, lm_eval("e.jsonl", [1, 0], ("strict", "loose"))])
    refused("item '1': a score 'exact_match' is true, false, .* got 'maybe'", [a, lm_eval("f.jsonl", [1, "maybe"])])
    for wrong in (1.5, -0.1, math.inf, [1, 0], {"x": 1}):
        refused("item '0': a score .* from 0 to 1", {"a": {0: wrong}, "b": {0: 1}})
    two = inspect_log("two.json", [(0, 1, {"x": 1})])
    refused(r"two.json, item '0': a score 'match' is .* got \{'x': 1\}", [two, a])
    for name, text in (("no.json", "{"), ("list.json", "[1]"), ("other.json", '{"results": {"acc": 1}}')):
        Path(name).write_text(text)
        refused(f"{name} is no log of Inspect or promptfoo", [name, a])
    Path("torn.eval").write_bytes(Path(inspect_log("whole.eval", [(0, 1, 1)])).read_bytes()[:200])
    refused("torn.eval is no log of Inspect", ["torn.eval", a])
    Path("t.csv").write_text("q,x\n1,1\n")
    refused("t.csv: a table needs .*item= and value=", ["t.csv", a])
    refused(r"of \['q', 'x'\], got 'q' and 'y'", ["t.csv", a], item="q", value="y")


def _other_data() -> str:
    """A log whose second item has other data."""
    rows = [
        {"doc_id": i, "metrics": ["exact_match"], "exact_match": 1, "doc_hash": x} for i, x in enumerate(("h0", "?"))
    ]
    Path("d.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "d.jsonl"


# --- what a comparison says -------------------------------------------------------------------------------------------

A = [1] * 120 + [0] * 78 + [0] * 17 + [1] * 5
B = [1] * 120 + [0] * 78 + [1] * 17 + [0] * 5


def test_a_sentence() -> None:
    logs = [lm_eval("a.jsonl", A), lm_eval("b.jsonl", B)]
    (row,) = agents.compare_logs(logs).to_dict("records")
    assert (row["both"], row["only_a"], row["only_b"], row["items"]) == (120, 5, 17, 220)
    assert row["difference"] == pytest.approx(12 / 220)
    assert row["low"] < 0 < row["high"]
    assert row["mcnemar"] == pytest.approx(binomtest(5, 22).pvalue)
    assert row["mcnemar"] < row["p"] < 0.3  # what it costs to hold at any time
    assert row["sentence"].startswith(
        "b is right 5.5 percentage points more often than a (95 % interval -1.3 to 13.2, "
    )
    assert (
        "valid at any time; p 0.209), of 220 items that both have scored. This may still be chance." in row["sentence"]
    )
    assert row["sentence"].endswith("McNemar's exact test says p 0.017, if the number of items was fixed beforehand.")


def test_what_is_left_out_is_said() -> None:
    (row,) = agents.compare_logs({"a": {1: 1, 2: None, 3: 0, 4: "nan"}, "b": {1: 1, 3: 1, 5: 1}}).to_dict("records")
    assert row["items"] == 2
    assert "Left out of a: 2 errors or empty scores." in row["sentence"]
    assert "Left out of b: 1 items that another log has not scored." in row["sentence"]


def test_other_scores_have_no_exact_test() -> None:
    rng = np.random.default_rng(0)
    low, gain = rng.random(300) * 0.8, 0.1 + 0.05 * rng.random(300)
    logs = {"a": dict(enumerate(low)), "b": dict(enumerate(low + gain))}
    found = agents.compare_logs(logs)
    (row,) = found.to_dict("records")
    assert math.isnan(row["mcnemar"])
    assert "McNemar" not in row["sentence"]
    assert row["p"] < 1e-3
    assert "b scores 0.126 more than a" in row["sentence"]
    wide = {name: {i: 10 * x - 3 for i, x in log.items()} for name, log in logs.items()}
    other = agents.compare_logs(wide, range=(-3, 7))
    for name, scale in (("p", 1), ("low", 10), ("high", 10), ("difference", 10)):  # other units
        assert other[name][0] == pytest.approx(scale * found[name][0], rel=1e-6)
    assert other["mean_a"][0] == pytest.approx(10 * found["mean_a"][0] - 3)


def test_neither_order_nor_names_nor_sides_count() -> None:
    rng, items = np.random.default_rng(1), list(range(220))
    logs = {"a": dict(enumerate(A)), "b": dict(enumerate(B))}
    (row,) = agents.compare_logs(logs).to_dict("records")
    rng.shuffle(items)
    mixed = {name: {f"q{i}": log[i] for i in items} for name, log in logs.items()}
    (same,) = agents.compare_logs(mixed).to_dict("records")
    assert same == row
    (turned,) = agents.compare_logs({"b": logs["b"], "a": logs["a"]}).to_dict("records")
    assert turned["p"] == row["p"]
    assert turned["mcnemar"] == row["mcnemar"]
    assert (turned["low"], turned["high"]) == pytest.approx((-row["high"], -row["low"]), abs=1e-11)
    assert turned["sentence"] == row["sentence"]
    (equal,) = agents.compare_logs({"a": logs["a"], "b": logs["a"]}).to_dict("records")
    assert equal["p"] == equal["mcnemar"] == 1
    assert "a and b have the same mean, which does not show that they are equally good (" in equal["sentence"]
    assert equal["low"] == pytest.approx(-equal["high"])


def test_several_logs_share_delta() -> None:
    logs = {"a": dict(enumerate(A)), "b": dict(enumerate(B)), "c": dict(enumerate(reversed(A)))}
    best = agents.compare_logs(logs)
    assert best.attrs["comparisons"] == 3
    assert list(best["a"]) == ["b", "b"]
    assert list(best["b"]) == ["a", "c"]
    against = agents.compare_logs(logs, control="a")
    assert against.attrs["comparisons"] == 2
    assert list(against["b"]) == ["b", "c"]
    (alone,) = agents.compare_logs({"a": logs["a"], "b": logs["b"]}, delta=0.025).to_dict("records")
    for name in ("low", "high"):
        assert against[name][0] == pytest.approx(alone[name])
    assert against["p"][0] == pytest.approx(2 * alone["p"])
    assert best["p"][0] == pytest.approx(3 * alone["p"])
    assert against["mcnemar"][0] == pytest.approx(2 * alone["mcnemar"])
    assert "for 3 comparisons together" in best["sentence"][0]
    assert "that all have scored" in best["sentence"][0]


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    lm_eval("a.jsonl", A), lm_eval("b.jsonl", B)
    assert cli.main(["compare", "old=a.jsonl", "new=b.jsonl", "--delta", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "new is right 5.5 percentage points more often than old (90 % interval" in out
    assert "only_b" in out
    for words, said in [
        (["a.jsonl"], "two logs or more"),
        (["x=a.jsonl", "x=b.jsonl"], "two logs have the same name"),
        (["a.jsonl", "lost.jsonl"], "there is no file lost.jsonl"),
    ]:
        assert cli.main(["compare", *words]) == 2
        assert said in capsys.readouterr().err


# --- what it promises -------------------------------------------------------------------------------------------------


def test_the_campaign_has_the_same_statistic() -> None:
    rng = np.random.default_rng(2)
    for d in (campaign.differences(rng, 150, 0.1, 0.2), rng.uniform(-1, 1, 150)):
        p = campaign.p_values(d)
        for n in (1, 2, 10, 80, 150):
            logs = {
                "a": {i: max(-x, 0.0) for i, x in enumerate(d[:n])},
                "b": {i: max(x, 0.0) for i, x in enumerate(d[:n])},
            }
            (row,) = agents.compare_logs(logs).to_dict("records")
            assert row["p"] == pytest.approx(p[n - 1], rel=1e-4)
            for end in (row["low"], row["high"]):  # the interval holds what is not rejected
                if abs(end) < 1:
                    assert campaign.p_values(d[:n], end)[-1] == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize(("only_a", "only_b"), [(0.05, 0.05), (0.3, 0.3), (0.02, 0.1)])
def test_a_look_after_each_item_is_allowed(only_a: float, only_b: float) -> None:
    """The true difference is excluded at some time with probability .05 at most; fails by chance once in 1e6."""
    runs = 600
    wrong = campaign.ever_below(runs, 400, only_a, only_b, only_b - only_a)
    assert wrong <= binom.isf(EACH, runs, campaign.DELTA)
    assert wrong > 0  # it is not idle: some 2 % are expected, and 600 without any have a chance below 1e-4


@pytest.mark.parametrize(("only_a", "only_b"), [(0.25, 0.25), (0.1, 0.4), (0.0, 0.2), (0.02, 0.02)])
def test_exactly_with_all_orders_of_few_items(only_a: float, only_b: float) -> None:
    """The probability that the true difference is excluded after some of 24 items, over all 3^24 orders."""
    open_, wrong = np.zeros((26, 26)), 0.0  # the probability of each number of items that a alone has right, and b
    open_[0, 0] = 1.0
    for n in range(1, 25):
        moved = (1 - only_a - only_b) * open_
        moved[1:] += only_a * open_[:-1]
        moved[:, 1:] += only_b * open_[:, :-1]
        open_ = moved
        for a, b in np.argwhere(open_ > 0):
            if campaign.p_values(np.repeat([-1.0, 1.0, 0.0], [a, b, n - a - b]), only_b - only_a)[-1] <= 0.05:
                wrong += open_[a, b]
                open_[a, b] = 0.0
    assert 0.001 < wrong <= 0.05 if only_a + only_b >= 0.2 else wrong <= 0.05


@pytest.mark.parametrize("cell", campaign.FEW, ids=["2-8", "5-15", "10-14", "30-40"])
def test_few_discordant_items_take_as_many_as_they_need(cell: tuple[float, float, int]) -> None:
    """At most 1.1 of the better of two statistics, on average, exactly: bets as in certificates, and Beta(1/2, 1/2)."""
    ways = [partial(campaign.by_bets, bets=bets) for bets in (campaign.BETS, campaign.CERTIFICATES)]
    found = [campaign.until(*cell[:2], way, cell[2]) for way in (*ways, campaign.by_beta)]
    assert min(share for _, share in found) >= 0.999
    items = [items for items, _ in found]
    assert items[0] <= 1.1 * min(items[1:]) < 1.21 * items[0]
    assert max(items[1:]) > 1.05 * min(items[1:])


def test_equal_logs_differ_exactly_as_seldom_as_promised() -> None:
    """At a look after each of 1,000 items that one log alone has right; with twice the evidence it would be more."""
    share = campaign.until(0.05, 0.05, campaign_bets := partial(campaign.by_bets, bets=campaign.BETS), 1000)[1]
    assert 0.02 < share <= campaign.DELTA
    assert campaign.until(0.05, 0.05, lambda up, down: 2 * campaign_bets(up, down), 1000)[1] > campaign.DELTA


def test_a_difference_is_found() -> None:
    """Some .44 of such logs of 220 items are decided, McNemar's test at the end decides .84; fails once in 1e6."""
    runs = 300
    found = campaign.ever_below(runs, 220, 0.02, 0.08, 0.0, seed=3)
    assert binom.ppf(EACH, runs, 0.40) <= found <= binom.isf(EACH, runs, 0.5)
