"""Counts: several results of an arm at once, as daily numbers of an A/B test, equal the same results one by one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import agents
from bandit_envs import from_table

pytest.importorskip("sqlalchemy")

RATES: dict[str, Any] = {"problem": "Threshold", "threshold": 0.3, "arms": ["A", "B"], "binary": True, "delta": 0.05}
MARKS = {name: value for name, value in RATES.items() if name != "binary"} | {"threshold": 4.0, "range": (0, 10)}
COOKIES = Path("counts/cookie_cats.csv")
COUNTS = "day,variant,visitors,conversions\n2026-11-01,A,1204,41\n2026-11-01,B,1187,55\n2026-11-02,A,900,30\n"


def session(agent: str = "evidence", store: Any = ":memory:", **facts: Any) -> agents.Session:
    return agents.Session(agent, {name: x for name, x in facts.items() if x is not None}, store=store, public_seed=3)


def seen(one: agents.Session) -> dict[str, np.ndarray]:
    return {name: getattr(one._state.statistics, name) for name in ("pulls", "total", "mean", "excess", "variance")}


def moments(one: agents.Session) -> np.ndarray:
    return np.asarray(one._state.statistics.moments)


@pytest.mark.parametrize("changes", [{}, {"binary": None, "range": (0, 1)}, {"minimize": True}])
def test_successes_are_ones_and_zeros(changes):
    rng = np.random.default_rng(0)
    facts = RATES | changes
    with session(**facts) as one, session(**facts) as two, session(**facts) as three:
        for arm, p in (("A", 0.4), ("B", 0.25)):
            results = (rng.random(300) < p).astype(int)
            one.tell_all([(arm, x) for x in results.tolist()])
            for part in np.split(results, [1, 120]):  # the first one is a count of a single result
                two.tell(arm, n=len(part), successes=int(part.sum()))
            for part in np.split(results, [1, 120])[::-1]:
                three.tell(arm, n=len(part), successes=int(part.sum()))
        for name, exact in seen(one).items():
            for other in (two, three):
                if name == "variance":  # of single results a sum of rounded steps
                    np.testing.assert_allclose(seen(other)[name], exact, rtol=1e-12)
                else:
                    np.testing.assert_array_equal(seen(other)[name], exact)
        for other in (two, three):
            np.testing.assert_allclose(moments(other), moments(one), rtol=1e-10, atol=1e-14)
            assert other.certificate == pytest.approx(one.certificate, rel=1e-9)
            assert other.answer().tolist() == one.answer().tolist()
            assert len(other) == 600


def test_a_count_of_one_is_a_result_to_the_bit():
    with session(**MARKS) as one, session(**MARKS) as two:
        for value in (3.7, 9.1, 0.2, 4.4):
            one.tell("A", value)
            two.tell("A", n=1, mean=value)
        for name, exact in seen(one).items():
            np.testing.assert_array_equal(seen(two)[name], exact)
        np.testing.assert_array_equal(moments(two), moments(one))


@pytest.mark.parametrize("changes", [{}, {"range": (-20, 5)}, {"range": None, "sigma": 3.0}, {"minimize": True}])
def test_mean_and_sd_are_those_of_single_results(changes):
    facts, rng = MARKS | changes, np.random.default_rng(1)
    with session("uniform", **facts) as one, session("uniform", **facts) as two:  # who never stops
        for arm in "AB":
            results = rng.uniform(0.5, 4.5, 80)
            one.tell_all([(arm, x) for x in results])
            for part in np.split(results, [30, 31]):
                sd = part.std(ddof=1) if len(part) > 1 else None
                two.tell(arm, n=len(part), mean=part.mean(), sd=sd)
        for name, exact in seen(one).items():
            np.testing.assert_allclose(seen(two)[name], exact, rtol=1e-9, atol=1e-9)
        assert np.isnan(moments(two)).all()  # unknown
        assert one.certificate is not None
        assert two.certificate is not None
        if "sigma" in changes:
            assert two.certificate == pytest.approx(one.certificate, rel=1e-6)
        else:  # by fewer moments less is certain
            assert two.certificate <= one.certificate + 1e-9
        low, high = (two.arms()[name].to_numpy() for name in ("low", "high"))
        assert (low < high).all()


def test_a_certified_session_ends_with_the_certificate_of_single_results():
    with session(**RATES) as one, session(**RATES) as two:
        table = pd.DataFrame({"name": ["A", "B"] * 40, "value": [1, 0] * 40})
        told = one.tell_table(table)  # after which the agent decides, as after a count
        two.tell("A", n=40, successes=40)
        assert not two.done  # B is open
        two.tell("B", n=40, successes=0)
        assert one.done
        assert two.done
        assert two.certificate == pytest.approx(one.certificate, rel=1e-9)
        assert one.certificate is not None
        assert one.certificate >= 0.95
        assert two.answer().tolist() == [True, False]
        assert two.claims()["claim"].tolist() == ["in", "out"]
        assert two.claims()["since"].tolist() == [40, 80]  # a count is one step
        assert told == two.ended == 80


def test_agents_that_decide_by_moments_take_means_with_unknown_ones():
    facts = {"problem": "BestArm", "arms": ["A", "B", "C"], "range": (0, 10), "delta": 0.1}
    for agent in ("evidence", "top-two", "track-and-stop", "lucb", "uniform(stop='certificate')"):
        with session(agent, **facts) as one:
            for arm, mean in (("A", 8.0), ("B", 5.0), ("C", 2.0)):
                one.tell(arm, n=20_000, mean=mean, sd=1.0)
            assert one.done, agent
            assert one.answer().tolist() == [True, False, False]
            assert one.certificate is not None
            assert one.certificate >= 0.9


@pytest.mark.parametrize(
    ("count", "error"),
    [
        ({"n": 0, "successes": 0}, "n must be an integer in"),
        ({"n": 2.5, "successes": 1}, "n must be an integer in"),
        ({"n": True, "successes": 1}, "n must be an integer in"),
        ({"n": 10**9 + 1, "successes": 1}, "n must be an integer in"),
        ({"successes": 1}, "n must be an integer in .* got None"),
        ({"n": 5, "successes": 6}, "successes must be an integer in"),
        ({"n": 5, "successes": -1}, "successes must be an integer in"),
        ({"n": 5, "successes": 1.5}, "successes must be an integer in"),
        ({"n": 5}, "n with successes, or n with mean and sd"),
        ({"n": 5, "successes": 2, "sd": 0.1}, "n with successes, or n with mean and sd"),
        ({"n": 5, "successes": 2, "value": 1}, "a value or a count"),
        ({"n": 5, "mean": 0.4, "sd": 0.5}, "say successes"),
    ],
)
def test_impossible_counts_of_0_and_1_are_refused(count, error):
    with session(**RATES) as one:
        with pytest.raises(ValueError, match=error):
            one.tell("A", **count)
        assert one.version == 0


@pytest.mark.parametrize(
    ("count", "error"),
    [
        ({"n": 5, "successes": 2}, "say mean and sd"),
        ({"n": 5, "mean": 3.0}, "needs sd"),
        ({"n": 1, "mean": 3.0, "sd": 1.0}, "of one none"),
        ({"n": 5, "mean": 11.0, "sd": 1.0}, "mean must be a number in"),
        ({"n": 5, "mean": float("nan"), "sd": 1.0}, "mean must be a number in"),
        ({"n": 5, "mean": 3.0, "sd": -1.0}, "sd must be a number in"),
        ({"n": 5, "mean": 5.0, "sd": 5.6}, "sd is 5.59017 at most"),  # sqrt(5 * 5 * 5 / 4)
        ({"n": 5, "mean": 10.0, "sd": 0.1}, "sd is 0 at most"),
    ],
)
def test_impossible_means_are_refused(count, error):
    with session(**MARKS) as one:
        with pytest.raises(ValueError, match=error):
            one.tell("A", **count)
        assert one.version == 0
        one.tell("A", n=5, mean=5.0, sd=5.59)  # the largest spread there is


def test_arms_and_budgets_are_those_of_single_results():
    with session("uniform", **RATES | {"delta": None, "budget": 100, "arms": ["A", "B", "C"]}) as one:
        one.tell("A", n=60, successes=20)
        assert one.remaining == 40
        with pytest.raises(ValueError, match="41 results, and the budget leaves 40"):
            one.tell("B", n=41, successes=1)
        one.withdraw_arm("C")
        for arm, error in (("C", "has been withdrawn"), ("D", "there is no arm 'D'"), (7, "there is no arm 7")):
            with pytest.raises(ValueError, match=error):
                one.tell(arm, n=2, successes=1)
        assert len(one) == 60
        one.tell("B", n=40, successes=1)
        assert one.done
        assert one.remaining == 0
        with pytest.raises(ValueError, match="1 results, and the budget leaves 0"):
            one.tell("B", n=1, successes=1)


def test_a_count_leaves_questions_open_and_waits_behind_them():
    with session("uniform", **RATES) as one:
        asked = one.ask(1)[0]
        with pytest.raises(ValueError, match="a count answers no question"):
            one.tell(asked, n=10, successes=3)
        with pytest.raises(ValueError, match="a count answers no question"):
            one.tell(one.pending[0], n=10, successes=3)
        one.tell(int(asked), n=10, successes=3)
        assert [ask.number for ask in one.pending] == [asked.number]
        assert one.waiting == {asked.number: 10}
        assert len(one) == 10
        assert one.arms()["pulls"].sum() == 0  # as a result without a question
        one.tell(asked, 1)
        assert one.arms()["pulls"].tolist() == [11, 0]


@pytest.mark.parametrize(
    ("agent", "changes", "error"),
    [
        ("sar", {"delta": None, "budget": 50}, "sar goes by rounds.*take counts: .*evidence"),
        ("evidence", {"blind": True}, "counts do not go with blind"),
        ("lsa", {"plate": 12}, "counts do not go with plate"),
        ("lsa", {"raters": ["ann"]}, "counts do not go with raters"),
        ("lsa", {"repeats": 2}, "counts do not go with repeats"),
        ("lsa", {"items": 20}, "counts do not go with items or blocks"),
    ],
)
def test_sessions_that_need_single_results_say_so(agent, changes, error):
    with session(agent, **RATES | changes) as one:
        with pytest.raises(ValueError, match=error):
            one.tell("A", n=10, successes=3)
        with pytest.raises(ValueError, match=error):
            one.tell_table(pd.DataFrame({"arm": ["A"], "n": [10], "successes": [3]}))
        assert one.version == 0


def test_agents_that_read_histories_and_arms_of_two_dimensions_refuse_counts():
    class Reader:
        observation, actions = "history", "arm"

        def predict(self, observation: Any, state: Any, start: Any, deterministic: bool = True) -> Any:
            return np.zeros(1, np.int64), state

    facts = {"problem": "Feasible", "A": [[1, 0], [0, 1]], "b": [0.5, 0.5], "arms": 2, "range": (0, 1)}
    with session("lsa", **facts) as one, pytest.raises(ValueError, match="do not go with several dimensions"):
        one.tell(0, n=10, mean=0.5, sd=0.1)
    reads = pytest.raises(ValueError, match="reads histories, and takes single results")
    with agents.Session(Reader(), RATES | {"budget": 20}, store=":memory:") as one, reads:
        one.tell("A", n=10, successes=3)


def test_undo_reopen_and_two_processes(tmp_path):
    store = tmp_path / "ab.db"
    with session(store=store, **RATES) as one, session(store=store, **RATES) as two:
        one.tell("A", n=100, successes=40, who="ann")
        two.tell("A", 1)
        one.tell("B", n=50, successes=5)
        assert len(one) == len(two) == 151
        before = seen(two)
        number = one.undo()
        assert len(two) == 101
        with pytest.raises(ValueError, match="undone already"):
            two.undo(number)
        two.tell("B", n=50, successes=5)
        for name, exact in before.items():
            np.testing.assert_array_equal(seen(two)[name], exact)
    with agents.Session(store=store) as again:
        assert len(again) == 151
        assert again.history()["kind"].tolist() == ["counted", "told", "counted", "undone", "counted"]
        assert again.history(event=1)["successes"].tolist() == [40]
        assert again.history(event=1)["who"].tolist() == ["ann"]


def test_a_count_of_an_arm_that_comes_later_counts_after_a_new_beginning():
    with session("uniform", **RATES | {"delta": None}) as one:
        one.tell("A", n=100, successes=40)
        one.add_arm("C")
        one.tell("C", n=30, successes=3)
        assert one.arms()["pulls"].tolist() == [100, 0, 30]
        one.withdraw_arm("A")
        assert one._state.run.seen.pulls.tolist() == [0, 30]
        assert len(one) == 130


@pytest.mark.parametrize("facts", [RATES, MARKS], ids=["successes", "means"])
def test_an_export_is_the_session(tmp_path, facts):
    counts = [{"successes": 41}, {"successes": 30}] if facts is RATES else [{"mean": 1 / 3, "sd": 0.7}] * 2
    with session(**facts) as one, session(**facts) as two:
        one.tell("A", n=120, **counts[0])
        one.tell("B", 1)
        one.tell("B", n=90, **counts[1])
        one.ask(1)
        one.undo(3)
        one.tell("B", n=91, **counts[1])
        one.history().to_csv(tmp_path / "export.csv", index=False)
        assert two.tell_table(tmp_path / "export.csv") == len(one) == 212
        for name, exact in seen(one).items():
            np.testing.assert_array_equal(seen(two)[name], exact)
        np.testing.assert_array_equal(moments(two), moments(one))
        shown = ["kind", "name", "value", "n", "successes", "mean", "sd", "undone"]
        mine, theirs = (x.history()[shown].iloc[: one.version] for x in (one, two))
        pd.testing.assert_frame_equal(mine, theirs, check_exact=True)
        with pytest.raises(ValueError, match="would count twice"):
            two.tell_table(tmp_path / "export.csv")


def test_a_damaged_count_is_named(tmp_path):
    import sqlite3

    store = tmp_path / "ab.db"
    with session(store=store, **RATES) as one:
        one.tell("A", n=100, successes=40)
    for vector in ("[100, 140, null, null]", "[100, 40, null, null, 1]", "40", "[null]"):
        with sqlite3.connect(store) as database:
            database.execute("UPDATE event SET vector = ?", (vector,))
        with pytest.raises(ValueError, match="is damaged: its event 1"):
            agents.Session(store=store)


def test_a_file_of_daily_counts(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text(COUNTS)
    with session(**RATES) as one:
        with pytest.warns(UserWarning, match="the column 'day' is ignored"):
            assert one.tell_table(path) == 1204 + 1187 + 900
        assert one.arms()["pulls"].tolist() == [2104, 1187]
        assert one.arms()["mean"].tolist() == [71 / 2104, 55 / 1187]
        assert one.history()["text"].tolist() == ["from days.csv"] * 3
        with (
            pytest.warns(UserWarning, match="'day'"),
            pytest.raises(ValueError, match="days.csv: its results .*again=True"),
        ):
            one.tell_table(path)
        assert one.undo_table(path) == 3
        assert len(one) == 0
    frames = [pd.read_csv(path), pd.read_csv(path).rename(columns={"variant": "name", "visitors": "n"})]
    for frame in frames:
        with session(**RATES) as one, pytest.warns(UserWarning, match="'day'"):
            assert one.tell_table(frame) == 3291
    path.with_suffix(".jsonl").write_text(pd.read_csv(path).drop(columns="day").to_json(orient="records", lines=True))
    with session(**RATES) as one:
        assert one.tell_table(path.with_suffix(".jsonl")) == 3291
        named = pd.DataFrame({"who": ["A"], "seen": [9], "bought": [2], "value": [1]})
        assert one.tell_table(named, arm="who", n="seen", successes="bought") == 9


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("B,10,11", r"line 3, columns 'arm', .*|line 3, columns 'n', 'successes': successes must be an integer"),
        ("B,,11", "line 3, columns 'n', 'successes': n must be an integer"),
        ("B,10,", "line 3, columns 'n', 'successes': a count is n with successes"),
        ("B,10,2.5", "line 3, columns 'n', 'successes': successes must be an integer"),
        ("B,ten,2", "line 3, column 'n': a value is a finite number"),
        ("C,10,2", "line 3: there is no arm 'C'"),
    ],
)
def test_of_a_wrong_file_nothing_is_recorded(tmp_path, row, error):
    (tmp_path / "counts.csv").write_text(f"arm,n,successes\nA,10,2\n{row}\n")
    with session(**RATES) as one:
        with pytest.raises(ValueError, match=error):
            one.tell_table(tmp_path / "counts.csv")
        assert one.version == 0


def test_means_of_a_file_and_files_that_lack_a_column():
    table = pd.DataFrame({"arm": ["A", "B", "A"], "n": [40, 30, 1], "mean": [3.5, 4.0, 2.0], "sd": [0.5, 0.7, None]})
    with session(**MARKS) as one:
        assert one.tell_table(table) == 71
        assert one.arms()["mean"].tolist() == pytest.approx([142 / 41, 4.0])
        with pytest.raises(ValueError, match="row 0.*mean must be a number in"):
            one.tell_table(table.assign(mean=11.0))
        with pytest.raises(ValueError, match="counts are n and successes"):
            one.tell_table(table[["arm", "n"]], n="n")
        with pytest.raises(ValueError, match="has no column 'visits'"):
            one.tell_table(table, n="visits")
    with session(**RATES) as one, pytest.raises(ValueError, match="row 0: measurements are 0 or 1"):
        one.tell_table(table.assign(mean=0.5))


def test_forecasts_go_on_from_counts_and_pilots_may_be_counts():
    with session(**RATES | {"threshold": 0.04}) as one:
        one.tell("A", n=1204, successes=75)
        one.tell("B", n=1187, successes=20)
        found = one.forecast(episodes=20, seconds=2)
        assert found.spent == 2391
        assert "2391 results of 2 arms" in found.believed
        history = one.history()
    facts = RATES | {"threshold": 0.04}
    pilots = [pd.DataFrame({"arm": ["A", "B"], "n": [1204, 1187], "successes": [75, 20]}), history]
    told = [agents.rehearse(facts, "evidence", prior=pilot, episodes=20, advise=False) for pilot in pilots]
    assert all("2391 results" in one.believed for one in told)
    assert told[0].sentence() == told[1].sentence()
    marks = pd.DataFrame({"arm": ["A", "B"], "n": [40, 30], "mean": [6.0, 2.0], "sd": [1.0, 1.0]})
    assert "70 results" in agents.rehearse(MARKS, "evidence", prior=marks, episodes=20, advise=False).believed


def test_a_table_of_counts_is_an_instance(tmp_path):
    (tmp_path / "days.csv").write_text(COUNTS)
    instance = from_table(tmp_path / "days.csv")
    assert instance.arm_names == ("A", "B")
    assert instance.arms.distribution == "bernoulli"
    assert instance.arms.means.tolist() == pytest.approx([71 / 2104, 55 / 1187], rel=1e-12)
    results = agents.evaluate("evidence", "BestArm", episodes=3, env_kwargs={"instance": instance, "delta": 0.5})
    assert len(results.summary()) == 1
    rng = np.random.default_rng(2)
    values = {arm: rng.normal(5, 2, 60) for arm in "AB"}
    rows = [(arm, len(x), x.mean(), x.std(ddof=1)) for arm in "AB" for x in np.split(values[arm], [20, 25])]
    table = pd.DataFrame(rows, columns=["arm", "n", "mean", "sd"])
    pooled = from_table(table).arms  # over days, as of all values together
    assert pooled.distribution == "gaussian"
    assert pooled.means.tolist() == pytest.approx([values[arm].mean() for arm in "AB"])
    assert np.sqrt(pooled.variances).tolist() == pytest.approx([values[arm].std(ddof=1) for arm in "AB"])
    for wrong, error in (
        ({"distribution": "bernoulli"}, "needs successes"),
        ({"distribution": "resampled"}, "distribution must be"),
        ({"support": (0, 9)}, "support is of shared or resampled arms"),
        ({"shared": True}, "a shared row has one score|shared by the names in a column"),
    ):
        with pytest.raises(ValueError, match=error):
            from_table(table, **wrong)


def test_an_ab_test_of_two_gates():
    path = Path(os.environ.get("BANDIT_ENVS_DATA", "nowhere")) / COOKIES
    if not path.is_file():
        pytest.skip(f"the table {COOKIES} of a mobile game is not here")
    instance = from_table(path, successes="retention_7")
    assert instance.arm_names == ("gate_30", "gate_40")
    assert instance.arms.means.tolist() == pytest.approx([8502 / 44700, 8279 / 45489])
    facts = {"problem": "BestArm", "arms": list(instance.arm_names), "binary": True, "delta": 0.05}
    with session(**facts) as one:
        assert one.tell_table(path, successes="retention_7") == 90189
        assert one.answer().tolist() == [True, False]
        assert not one.done  # 3.2 standard errors at one look are too few at all looks
        assert one.claims()["claim"].tolist() == ["open", "open"]


def test_counts_on_the_command_line(tmp_path, monkeypatch, capsys):
    from agents.cli import main

    def run(line: str, code: int = 0) -> tuple[list[str], str]:
        assert main(line.split()) == code, capsys.readouterr()
        out, err = capsys.readouterr()
        return out.splitlines(), err

    monkeypatch.chdir(tmp_path)
    Path("days.csv").write_text(COUNTS)
    run("session new a.db --problem Threshold --threshold 0.04 --arms A B --binary --delta 0.05 --agent evidence")
    assert run("session tell a.db B --n 1204 --successes 41")[0][0].startswith("1204 measurements; answer:")
    assert run("session undo a.db")[0][0] == "undone: the count 41 of 1204 of B (event 1)"
    out, err = run("session import a.db days.csv")
    assert out[0] == "3291 results from days.csv"
    assert "the column 'day' is ignored" in err
    assert "--again" in run("session import a.db days.csv", 2)[1]
    assert run("session import a.db days.csv --again --n visitors --successes conversions")[0][0].startswith("3291")
    assert run("session undo a.db --table days.csv")[0][0] == "undone: 3 results from days.csv"
    assert "successes must be an integer" in run("session tell a.db B --n 3 --successes 4", 2)[1]
    assert "a value or a count" in run("session tell a.db B 1 --n 3 --successes 1", 2)[1]
    assert "a measurement must be" in run("session tell a.db B", 2)[1]
    assert run("session show a.db")[0][4].split()[:2] == ["A", "2104"]
    run("session new m.db --problem Threshold --threshold 4 --arms A B --range 0 10 --delta 0.05 --agent evidence")
    run("session tell m.db A --n 40 --mean 3.5 --sd 1.25")
    assert run("session undo m.db")[0][0] == "undone: the count mean 3.5 of 40 of A (event 1)"
    line = "evaluate BestArm --data days.csv --budget 40 --agents uniform --episodes 3"
    assert any("uniform" in one for one in run(line)[0])


def test_counts_on_the_page():
    import base64
    import warnings

    pytest.importorskip("starlette")
    pytest.importorskip("httpx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the test client
        from starlette.testclient import TestClient
    from agents.session.page import application

    with session(**RATES) as one:
        web = TestClient(application(one), base_url="http://localhost")
        data = base64.b64encode(COUNTS.replace("day,", "shift,").replace("-", "").encode()).decode()
        assert web.post("/table", json={"name": "days.csv", "data": data}).json() == {"done": 3291}
        state = web.get("/state").json()
        assert state["count"] == 3291
        assert [event["value"] for event in state["events"]] == [["30 of 900"], ["55 of 1187"], ["41 of 1204"]]
        assert all(event["undoable"] and event["text"] == "from days.csv" for event in state["events"])
        assert "again=True" in web.post("/table", json={"name": "days.csv", "data": data}).json()["error"]
        assert web.post("/undo", json={"table": "days.csv"}).json() == {"done": 3}
        assert "41 of 1204" not in web.get("/history.csv").text
        assert ",1204,41,," in web.get("/history.csv").text
