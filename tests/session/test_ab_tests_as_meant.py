"""A/B tests of other people's tables: no verdict where days, spreads or names do not bear it out, and it says so."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from unlike_laws import SAME, UNLIKE, finds, looked_at

import agents
from agents.cli import main
from bandit_envs import measurements
from bandit_envs.instances import uneven

pytest.importorskip("sqlalchemy")
MOVED = "shares of traffic change by '{}', pooled rates are not comparable"
FACTS: dict[str, Any] = {
    "problem": "BetterThanControl",
    "arms": ["A", "B"],
    "control": "A",
    "binary": True,
    "delta": 0.05,
}


def days(rows: list[tuple[str, str, int, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["Day", "variant", "n", "successes"])


MOVING = {
    "better": [("1", "A", 99_000, 2000), ("1", "B", 1000, 23), ("2", "A", 50_000, 500), ("2", "B", 50_000, 600)],
    "same": [("1", "A", 50_000, 1000), ("1", "B", 5000, 100), ("2", "A", 50_000, 2000), ("2", "B", 95_000, 3800)],
    "dropped": [("1", "A", 50_000, 1000), ("1", "B", 50_000, 1000), ("2", "A", 50_000, 2000)],
}  # fmt: skip


@pytest.mark.parametrize("title", MOVING)
def test_no_verdict_where_shares_of_traffic_change_by_day(
    title: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = "' (dropped, or begun later: no result on 1 of 2 days)" * (title == "dropped")
    moved = MOVED.format(f"Day{gone}").replace(")'", ")")
    steady = [(day, "C", n, int(0.3 * n)) for day, name, n, _ in MOVING[title] if name == "A"]
    table = days(MOVING[title] + steady)
    table.to_csv(tmp_path / "t.csv", index=False)
    for one in (table, table.iloc[::-1], tmp_path / "t.csv", table.groupby(["variant", "Day"]).sum()):
        found = agents.ab_test(one, "A", strata=False).set_index("name")
        assert found.attrs["open"] == {"B": moved}
        assert "days in 'Day'" in found.attrs["read"]
        assert found["verdict"][["B", "C"]].tolist() == [f"open: {moved}", "better"]
        assert not found.loc["B", ["better", "worse"]].any()
        assert found.loc["B", ["difference", "low", "lift", "p"]].isna().all()
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A", "--pooled"]) == 0
    out, err = capsys.readouterr()
    assert f"open: {moved}" in out
    assert found.attrs["read"].partition(": ")[2] in err
    with agents.Session("uniform", FACTS | {"arms": ["A", "B", "C"]}, store=":memory:") as session:
        with (
            pytest.warns(UserWarning, match="'Day' is ignored"),
            pytest.raises(ValueError, match="of B shares of traffic change by 'Day'"),
        ):
            session.tell_table(table)
        assert not len(session)


def test_traffic_that_chance_has_split_is_not_marked() -> None:
    """60 tests of thirty days, some small or empty, at a fixed share; results one by one; false alarm 2e-5."""
    marked = 0
    for seed in range(60):
        random, rows = np.random.default_rng(seed), [("2026-12-01", "A", 0, 0)]
        for day, visitors in enumerate(random.integers(0, 5000, 30) // random.choice([1, 100], 30)):
            b = int(random.binomial(visitors, 0.2 if seed % 2 else 0.5))
            rows += [(f"2026-11-{day + 1:02}", name, n, 0) for name, n in (("A", int(visitors) - b), ("B", b))]
        marked += bool(uneven(measurements(days(rows)), "A"))
    assert marked <= 1
    random = np.random.default_rng(0)
    at = pd.Timestamp("2026-11-01") + pd.to_timedelta(np.sort(random.random(3000) * 20), unit="D")
    raw = pd.DataFrame(
        {"variant": random.choice(["A", "B"], 3000), "value": random.integers(0, 2, 3000), "timestamp": at}
    )
    assert not agents.ab_test(raw, "A", strata=False).attrs["open"]
    moved = agents.ab_test(raw.sort_values("variant").assign(timestamp=at), "A", strata=False).attrs["open"]
    assert "by 'timestamp' (dropped, or begun later: no result on 9 of 20 days), pooled" in moved["B"]


@pytest.mark.parametrize("head", ["country", "weekday", "period", "dt", None])
def test_any_column_by_which_shares_of_traffic_change_is_named(head: str | None) -> None:
    cells = {"dt": ["2026-11-01 13:00", "2026-11-02"], None: ["2026-11-01", "2026-11-02"]}.get(head, ["x", "y"])
    table = days(MOVING["better"])
    table[head or "t"] = [cells[int(day) - 1] for day in table.pop("Day")]
    halves = table.assign(n=table["n"] // 2, successes=table["successes"] // 2, date="1")
    tables = [table, table.set_index(head or "t").rename_axis(head), pd.concat([halves, halves])]
    for one in tables[1 if head is None else 0 :]:
        found = agents.ab_test(one, "A", strata=False)
        why = found.attrs["open"]["B"]
        assert why.startswith(MOVED.format(head or ("t" if "t" in one else "the index")))
        assert ("columns of results" in why) == (head not in ("dt", None))
        assert ("days in" in found.attrs["read"]) == (head in ("dt", None) or "date" in one)


def test_columns_that_say_nothing_of_traffic_leave_the_verdict() -> None:
    random, n = np.random.default_rng(0), 4000
    raw = pd.DataFrame({"variant": random.choice(["A", "B"], n), "hour": random.integers(0, 24, n)})
    raw["converted"] = (random.random(n) < np.where(raw["variant"] == "A", 0.2, 0.4)).astype(int)
    raw["revenue"] = raw["converted"] * random.choice([5, 9], n)  # tells the result
    raw["paid"] = np.where(random.random(n) < 0.5, raw["revenue"], 0) + random.integers(0, 50, n) / 7
    raw["text"], raw["family"] = [f"t{i}" for i in range(n)], raw["variant"].map({"A": "old", "B": "new"})
    found = agents.ab_test(raw, "A")
    assert (sorted(found["verdict"]), found.attrs["open"]) == (["better", "control"], {})
    assert "values in 'converted'" in found.attrs["read"]
    with pytest.warns(UserWarning, match="several rows of an arm have the same 'userId'"):
        agents.ab_test(raw.assign(userId=np.arange(n) // 3), "A")
    agents.ab_test(raw.assign(user_id=np.arange(n), country_id=np.arange(n) % 9), "A")  # warnings are errors here


@pytest.mark.parametrize(("names", "control"), [((1, 0), 0), ((0.0, 1.0), 0), ((True, False), False)])
def test_a_control_is_the_name_that_it_writes(names: tuple[Any, Any], control: Any) -> None:
    table = pd.DataFrame({"variant": names, "n": [500, 600], "successes": [50, 60]})
    found = agents.ab_test(table, control).set_index("name")
    assert found["verdict"][str(names[names.index(0)])] == "control"
    with pytest.raises(ValueError, match="control must be one of .*, got 7"):
        agents.ab_test(table, 7)
    with pytest.raises(ValueError, match="margin is a difference of rates, above -1 and below 1, as 0.01, got 5"):
        agents.ab_test(table, control, margin=5)


def test_unlike_spreads_are_borne_out_before_a_verdict() -> None:
    """Few looks of the campaign `unlike_laws`: 24 tests of a pair, at .05; false alarm 1e-4."""
    pair, looks = UNLIKE[".5 % for 200, 20 % for 5"], np.array([100, 400, 800, 1600, 4000])
    wrong, marked, _ = finds(pair, 24, single=False, looks=looks, every=8)
    assert wrong <= 7
    assert marked >= 0.2
    for law in SAME.values():
        for seed in range(2):
            random = np.random.default_rng(seed)
            same = {"A": law(random, 1500), "B": law(random, 1500)}
            assert not looked_at(same, single=seed == 0).attrs["approximate"]


def test_spreads_and_sums_hold_far_from_zero_and_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    for offset, scale in ((0.0, 1.0), (1e9, 1.0), (-1e9, 1e-3), (5.0, 1e30)):
        x = offset + scale * random.normal(size=2000)
        found = agents.ab_test(pd.DataFrame({"name": ["A", "B"] * 1000, "value": x}), "A")
        assert found.attrs["sigma"] == pytest.approx(scale, rel=0.1)
        assert not found.attrs["approximate"]
    raw = pd.DataFrame({"name": random.choice(["A", "B"], 100_000), "value": random.normal(10, 4, 100_000)})
    recorded, record = list[int](), agents.Session.tell_all
    monkeypatch.setattr(agents.Session, "tell_all", lambda *x: recorded.append(len(x[1])) or record(*x))
    one = agents.ab_test(raw, "A")
    assert one.attrs["sigma"] == pytest.approx(raw.groupby("name")["value"].std().max(), rel=1e-12)
    assert recorded == [2]  # a session of 10^5 single results takes half a minute
    other = agents.ab_test(raw.groupby("name")["value"].agg(["count", "mean", "std"]), "A").iloc[::-1]
    for name in ("difference", "low", "high", "lift_low"):
        assert one.set_index("name").loc["B", name] == pytest.approx(other.set_index("name").loc["B", name], rel=1e-6)


def test_words_of_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("variant,n,successes\nA,50000,2000\nB,50000,3000\nC,50000,2210\nD,50000,1500\n")
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A", "--lift", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "worse" not in out
    assert out.count("not beyond a lift of +90 % (p ") == 3
    p = {row.split()[0]: row.split("  ")[-2:] for row in out.splitlines() if " (p " in row}
    assert p["B"][0].strip() == "1"
    assert float(p["B"][1].split()[-1][:-1]) < 1e-9
    pd.DataFrame({"variant": list("AB") * 600, "bought": [0, 1] * 600}).to_csv(tmp_path / "r.csv", index=False)
    assert main(["ab-test", str(tmp_path / "r.csv"), "--control", "A", "--value", "bought"]) == 0
    assert "values in 'bought'; 1200 rows" in capsys.readouterr().err
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A"]) == 0
    out = capsys.readouterr().out
    assert "C has p 0.019" in out
    assert "for itself alone: among 3 a find takes 0.017" in out
    names = [unicodedata.normalize(form, "Café") for form in ("NFC", "NFD")]
    table = pd.DataFrame({"variant": [names[1], "B", "C"], "n": [500, 600, 0], "successes": [50, 60, 0]})
    for name in names:
        found = agents.ab_test(table, name)
        assert found["pulls"].tolist() == [500, 600, 0]
        with agents.Session("uniform", FACTS | {"arms": [name, "B"], "control": name}, store=":memory:") as session:
            session.tell(names[0], 1)
            session.tell(names[1], True)
            assert session.tell_table(table.iloc[:2]) == 1100


def test_a_session_reads_what_python_has() -> None:
    with agents.Session(
        "uniform", {"problem": "BestArm", "arms": 2, "range": (0, 1), "delta": 0.1}, store=":memory:"
    ) as one:
        one.tell(0, True)
        one.tell(0, 1.0000000000000002)
        one.tell(1, n=5.0, mean=0.5, sd=0.1)
        with pytest.raises(ValueError, match=r"got 1.1 of '1' on 'q'"):
            one.tell_table(pd.DataFrame({"name": ["0", "1"], "value": [1.0000000000000002, 1.1], "item": ["p", "q"]}))
        assert len(one) == 7
        assert one.history()["value"].tolist()[:2] == [1, 1]
