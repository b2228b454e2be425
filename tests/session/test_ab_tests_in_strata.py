"""A/B tests within days and other strata: rates that drift, traffic that moves, and what may be said then."""

from __future__ import annotations

import datetime as dt
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drifting import drifting, false_finds

import agents
from agents.cli import main
from agents.session.words import against

pytest.importorskip("sqlalchemy")
CLOCK = importlib.import_module("agents.session.ab_test")


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CLOCK, "today_everywhere", lambda: dt.date(2026, 11, 9))


def days(*rows: tuple[Any, str, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["day", "variant", "n", "successes"])


BETTER = days((1, "A", 990_000, 20_000), (1, "B", 10_000, 230), (2, "A", 500_000, 5000), (2, "B", 500_000, 6000))
SAME = days((1, "A", 20_000, 400), (1, "B", 2000, 40), (2, "A", 20_000, 800), (2, "B", 40_000, 1600))
DROPPED = days((1, "A", 50_000, 1000), (1, "B", 50_000, 1000), (2, "A", 50_000, 2000))
DATES = [dt.date(2026, 11, day) for day in range(1, 9)]


def week(seed: int = 0, effect: float = 1.3, drift: bool = True) -> pd.DataFrame:
    """Eight days of an A, a B that is better, and a C that is not, dropped after five."""
    random, rows = np.random.default_rng(seed), []
    for i, day in enumerate(DATES):
        base = 0.05 * (random.uniform(0.7, 1.4) if drift else 1.0)
        for name, by, share in (("A", 1.0, 1.0), ("B", effect, 0.5 + 0.2 * i), ("C", 1.0, float(i < 5))):
            n = round(2000 * share)
            rows += [(day, name, n, int(random.binomial(n, base * by)))]
    return days(*rows)


def numbers(found: pd.DataFrame) -> Any:
    return found.set_index("name").sort_index().drop(columns=["verdict", "pulls"]).to_numpy(float)


# What is found --------------------------------------------------------------------------------------------------------


def test_better_on_each_day_and_worse_in_all_together() -> None:
    found = agents.ab_test(BETTER, "A").set_index("name").loc["B"]
    said = "better on at least one day; better, if the effect is the same every day (a test of that: p 0.92)"
    assert (found["verdict"], found["better"], found["better_once"]) == (said, True, True)
    weights = [990_000 * 10_000 / 1e6, 500_000 * 500_000 / 1e6]  # n_A n_B / (n_A + n_B), of Mantel and Haenszel
    gaps = np.array([230 / 10_000 - 20_000 / 990_000, 1000 / 500_000])
    assert found["difference"] == pytest.approx(weights @ gaps / sum(weights), rel=1e-12)
    control = np.array([20_000 / 990_000, 5000 / 500_000])
    assert found["lift"] == pytest.approx(weights @ (gaps + control) / (weights @ control) - 1, rel=1e-12)
    assert found["odds_low"] < found["odds"] < found["odds_high"]
    assert found[["low", "high", "lift_low", "lift_high"]].isna().all()
    assert found["odds_low"] > 1
    assert not agents.ab_test(BETTER, "A", strata=False)["better"].any()


@pytest.mark.parametrize("table", [SAME, DROPPED, days((1, "A", 500, 5)), days((1, "B", 500, 5), (2, "A", 500, 50))])
def test_traffic_that_moves_to_better_days_finds_nothing(table: pd.DataFrame) -> None:
    full = pd.concat([table, days((3, "C", 10, 1), (4, "A", 0, 0), (4, "B", 0, 0))])
    found = agents.ab_test(full, "A").set_index("name").loc["B"]
    assert (found["verdict"], found["better_once"], found["worse_once"]) == ("", False, False)
    assert found["p"] == found["p_worse"] == 1 or table is not DROPPED


def test_an_effect_that_changes_is_not_said_of_all_days() -> None:
    rows = [(d, name, 20_000, {"A": 600, "B": 590 if d < 7 else 1100}[name]) for d in range(1, 8) for name in "AB"]
    found = agents.ab_test(days(*rows), "A").set_index("name").loc["B"]
    assert found["verdict"].startswith("better on at least one day, but the effect changes by day (p ")
    assert (found["better"], found["better_once"]) == (False, True)
    assert found["same"] < 1e-20
    turned = [(d, "AB"[name == "A"], n, x) for d, name, n, x in rows]
    assert agents.ab_test(days(*turned), "A")["verdict"][0].startswith("worse on at least one day, but the effect")
    wild = [
        (d, name, 9000, x)
        for d, a, b in ((1, 300, 600), (2, 900, 300), (3, 900, 300))
        for name, x in (("A", a), ("B", b))
    ]
    both = agents.ab_test(days(*wild), "A")["verdict"][1]
    assert both.startswith("better on at least one day and worse on at least one day, as the effect changes by day (p ")


def test_a_find_stays_within_the_table() -> None:
    rows = [(d, name, 3000, {"A": 90, "B": 200 if d < 3 else 90}[name]) for d in range(30) for name in "AB"]
    found = [agents.ab_test(days(*rows[: 2 * d]), "A").set_index("name").loc["B"] for d in (3, 30)]
    assert found[1]["better_once"]
    assert found[1]["p"] == pytest.approx(found[0]["p"])


def test_one_stratum_is_a_test_of_fisher_s_kind() -> None:
    found = agents.ab_test(days((1, "A", 3000, 90), (1, "B", 3000, 170)), "A").set_index("name").loc["B"]
    assert found["better"]
    assert found["same"] == 1


# The same in another form ---------------------------------------------------------------------------------------------


def test_the_same_in_any_order_and_by_any_names_of_days() -> None:
    table = week()
    found = agents.ab_test(table, "A")
    assert found.set_index("name")["verdict"]["B"].startswith("better on at least one day; better, if")
    at = pd.to_datetime(table["day"])
    hours = at + pd.to_timedelta(np.arange(len(table)) % 24, unit="h")
    halves = table.assign(n=table["n"] // 2, successes=table["successes"] // 2)
    rest = table.assign(n=table["n"] - halves["n"], successes=table["successes"] - halves["successes"])
    others = [
        table.iloc[::-1],
        table.sample(frac=1, random_state=1),
        table.assign(day=at),
        table.assign(day=at.dt.tz_localize("Europe/Berlin")),
        table.assign(day=at.dt.strftime("%Y/%m/%d")),
        table.assign(day=at.dt.strftime("%d.%m.%Y")).iloc[::-1],
        table.assign(day=at.dt.day.astype(float)).iloc[::-1],
        table.assign(day=hours),
        table.assign(timestamp=hours).drop(columns="day"),
        table.assign(day=[f"day {9 - day.day}" for day in table["day"]]),
        pd.concat([halves, rest]),
        table.set_index(["day", "variant"]),
        table.set_index(["variant", "day"]).sort_index(ascending=False),
    ]
    for one in others:
        again = agents.ab_test(one, "A")
        assert numbers(again) == pytest.approx(numbers(found), rel=1e-9, nan_ok=True)
        assert again.set_index("name")["verdict"].to_dict() == found.set_index("name")["verdict"].to_dict()
    single = table.loc[table.index.repeat(table["n"])].assign(converted=0)
    single["converted"] = (single.groupby(["day", "variant"]).cumcount() < single["successes"]).astype(int)
    again = agents.ab_test(single[["converted", "variant", "day"]], "A", value="converted")
    assert numbers(again) == pytest.approx(numbers(found), rel=1e-9, nan_ok=True)


def test_means_in_other_units_from_another_zero() -> None:
    random, rows = np.random.default_rng(0), []
    for day, place in enumerate(random.uniform(10, 13, 6)):
        for name, by in (("A", 0.0), ("B", 0.4)):
            x = random.normal(place + by, 2, 600 + 300 * day * (name == "B"))
            rows += [(day, name, len(x), x.mean(), x.std(ddof=1))]
    table = pd.DataFrame(rows, columns=["day", "variant", "n", "mean", "sd"])
    for sigma in (None, 2.0, "common"):
        found = agents.ab_test(table, "A", sigma=sigma).set_index("name").loc["B"]
        assert found["better"]
        assert not found["verdict"].startswith("open")
        for scale, place in ((1000.0, 0.0), (1.0, 1e6), (-1.0, 0.0)):
            other = table.assign(mean=scale * table["mean"] + place, sd=abs(scale) * table["sd"])
            known = sigma if not isinstance(sigma, float) else abs(scale) * sigma
            again = agents.ab_test(other, "A", sigma=known).set_index("name").loc["B"]
            ends = sorted(scale * found[["low", "high"]].to_numpy(float))
            assert again[["low", "high"]].to_numpy(float) == pytest.approx(ends, rel=1e-5)
            assert again["p" if scale > 0 else "p_worse"] == pytest.approx(found["p"], rel=1e-5)
            assert again["better" if scale > 0 else "worse"]
    margin = agents.ab_test(table, "A", margin=0.3).set_index("name").loc["B"]
    assert "margin" in agents.ab_test(table, "A", margin=0.01)["verdict"][1]
    assert margin["p"] > found["p"]
    unlike = table.assign(sd=np.where(table["variant"] == "A", 1.0, 3.0))
    assert "spreads of arms or strata differ" in agents.ab_test(unlike, "A", sigma="common")["verdict"][1]
    few = table.assign(n=20)
    assert agents.ab_test(few, "A").attrs["approximate"]


# What strata are ------------------------------------------------------------------------------------------------------


def test_a_day_counts_once_it_is_over_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    table = week()
    every = agents.ab_test(table, "A")
    assert every.attrs["read"].endswith("within 'day': 8 strata count")
    late = pd.concat([table, days((dt.date(2026, 11, 9), "A", 9000, 9000), (dt.date(2026, 11, 9), "B", 9000, 0))])
    assert numbers(agents.ab_test(late, "A")) == pytest.approx(numbers(every), nan_ok=True)
    assert agents.ab_test(late, "A").attrs["read"].endswith("8 strata count, 1 not over yet")
    assert agents.ab_test(late, "A", closed=True)["worse_once"].any()
    for form in ("%d.%m.%Y", "%Y/%m/%d", "%Y-%m-%d 00:00:00+02:00", "%Y-%m-%dT13:00"):
        other = late.assign(day=[f"{day:{form}}" for day in late["day"]])
        assert agents.ab_test(other, "A").attrs["read"].endswith("8 strata count, 1 not over yet"), form
    slashes = late.assign(day=[f"{day:%m/%d/%Y}" for day in late["day"]])  # of whom?
    assert "9 strata count; all are taken as over" in agents.ab_test(slashes, "A").attrs["read"]
    assert numbers(agents.ab_test(late, "A", closed=False)) == pytest.approx(numbers(every), nan_ok=True)
    monkeypatch.setattr(CLOCK, "today_everywhere", lambda: dt.date(2026, 11, 1))
    nothing = agents.ab_test(table, "A")
    assert nothing["verdict"].tolist() == ["control", "", ""]
    assert nothing["pulls"].sum() == 0
    weeks = table.assign(week=table["day"]).drop(columns="day")
    monkeypatch.setattr(CLOCK, "today_everywhere", lambda: dt.date(2026, 11, 9))
    assert "2 strata count, 6 not over yet" in agents.ab_test(weeks, "A").attrs["read"]
    named = table.assign(day=[f"d{day.day}" for day in table["day"]])
    assert "if the last still grows, say closed=False" in agents.ab_test(named, "A").attrs["read"]
    assert "1 without 'A' or with it alone" in agents.ab_test(DROPPED, "A").attrs["read"]
    assert agents.ab_test(named, "A", closed=False)["pulls"].sum() < agents.ab_test(named, "A")["pulls"].sum()


def test_a_table_in_which_nothing_counts_is_open() -> None:
    for how in ({}, {"shares": {"A": 1, "B": 1}, "lift": 0.1}, {"closed": False}):
        found = agents.ab_test(days((1, "A", 0, 0), (1, "B", 0, 0)), "A", **how)
        assert (found["verdict"].tolist(), found["pulls"].sum()) == (["control", ""], 0)


def test_the_clock_is_that_of_the_last_place_on_earth() -> None:
    importlib.reload(CLOCK)
    last = dt.datetime.now(dt.UTC) - dt.timedelta(hours=12)
    assert CLOCK.today_everywhere() in {last.date(), (last + dt.timedelta(seconds=60)).date()}


def test_other_columns_are_strata_where_they_are_named() -> None:
    table = BETTER.assign(country=["x", "x", "y", "y"]).drop(columns="day")
    pooled = agents.ab_test(table, "A")
    assert "shares of traffic change by 'country'" in pooled["verdict"][1]
    found = agents.ab_test(table, "A", strata="country")
    assert found["verdict"][1].startswith(
        "better in at least one country; better, if the effect is the same every country"
    )
    assert numbers(agents.ab_test(table.iloc[::-1], "A", strata="country")) == pytest.approx(
        numbers(found), nan_ok=True
    )
    both = week().assign(country="x")
    both = pd.concat([both, both.assign(country="y", successes=both["successes"] * 2)])
    crossed = agents.ab_test(both, "A", strata=["country", "day"])
    assert crossed["strata"].tolist() == [16, 16, 10]
    assert "at least one stratum" in crossed["verdict"][1]
    for other in (both.iloc[::-1], both.sample(frac=1, random_state=0)):
        again = agents.ab_test(other, "A", strata=["country", "day"])
        assert numbers(again) == pytest.approx(numbers(crossed), nan_ok=True)
    assert agents.ab_test(both, "A", strata=["country", "day"], closed=False)["strata"].tolist() == [14, 14, 10]


def test_another_column_is_looked_at_within_days() -> None:
    """A weekday moves with the day and misleads nobody; countries that one arm has more of in each day do."""
    table = week().assign(weekday=lambda one: [f"{day:%a}" for day in one["day"]])
    assert not agents.ab_test(table, "A").attrs["open"]
    more = lambda t: t["n"] * (1 + 2 * (t["variant"] == "B"))
    parts = [week(0).assign(country="x"), week(1).assign(country="y", n=more)]
    assert "by 'country'" in agents.ab_test(pd.concat(parts), "A").attrs["open"]["B"]
    assert not agents.ab_test(pd.concat(parts), "A", strata=["country", "day"]).attrs["open"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"strata": "land"}, "has no column 'land' for strata, only \\['day'\\]"),
        (
            {"lift": 0.1},
            "a margin or lift of rates needs the planned shares= .--shares. within strata; or say strata=False",
        ),
        ({"margin": -0.01}, "a margin or lift of rates needs the planned shares= .--shares. within strata"),
        ({"expected": [0.04, 0.03]}, "expected must be the control's mean and one beyond"),
        ({"shares": {"A": 0.5}}, "shares must be of all arms, got .* without 'B'"),
        ({"shares": {"A": 0.5, "B": 0, "C": 1}}, "shares must be"),
        ({"delta": 2}, "delta must be"),
        ({"shares": [0.5, 0.5]}, "shares are by the names of arms, as A=0.5, or one of the columns"),
        ({"control": "Z"}, "control must be one of A, B, C"),
    ],
)
def test_what_has_no_meaning_within_strata_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        agents.ab_test(week(), **{"control": "A"} | given)


def test_a_row_without_its_day_is_refused_by_its_place() -> None:
    table = week()
    table.loc[4, "day"] = None
    with pytest.raises(ValueError, match="row 4, column 'day': the name of the stratum is missing"):
        agents.ab_test(table, "A")
    agents.ab_test(table, "A", strata=False)
    means = days((1, "A", 9, 3)).rename(columns={"successes": "mean"}).assign(sd=1.0)
    with pytest.raises(ValueError, match="a lift of results that are not 0 or 1 has no test within strata"):
        agents.ab_test(pd.concat([means, means.assign(variant="B")]), "A", lift=0.1, sigma=1.0)


# Known shares ---------------------------------------------------------------------------------------------------------


def planned(seed: int = 0, effect: float = 1.3, share: float = 0.5) -> pd.DataFrame:
    random, rows = np.random.default_rng(seed), []
    for day in DATES:
        base, n = 0.05 * random.uniform(0.7, 1.4), 5000
        b = int(random.binomial(n, share))
        rows += [
            (day, name, k, int(random.binomial(k, p))) for name, k, p in (("A", n - b, base), ("B", b, base * effect))
        ]
    return days(*rows)


def test_planned_shares_bear_a_claim_on_average() -> None:
    found = agents.ab_test(planned(), "A", shares={"A": 2, "B": 2}).set_index("name").loc["B"]
    assert found["verdict"].endswith("; better on average")
    assert found["on_average"]
    assert 0 <= found["low"] < found["difference"] < found["high"]
    assert 0 <= found["lift_low"] < found["lift"] < found["lift_high"]
    table = agents.ab_test(planned(), "A", shares={"A": 2, "B": 2})
    table[["better", "better_once"]] = False
    assert against(table)[2].startswith("B is better on average, against A; B by +")
    by = agents.ab_test(planned(), "A", shares={"A": 2, "B": 2}, lift=0.05).set_index("name").loc["B"]
    assert by["verdict"] == "beyond a lift of +5 % on average"
    assert by["lift_low"] >= 0.05
    no = agents.ab_test(planned(), "A", shares={"A": 2, "B": 2}, margin=0.05).set_index("name").loc["B"]
    assert no["verdict"] == "not beyond a margin of +0.05 on average"


def test_traffic_that_is_not_split_as_planned_opens_all_verdicts(tmp_path: Path, capsys: Any) -> None:
    """Chance splits of 20 tests: one is marked at most but with probability 2e-4."""
    found = agents.ab_test(planned(share=0.45), "A", shares={"A": 1, "B": 1})
    assert found["verdict"][1].startswith("open: traffic is not split as planned (p ")
    assert not found[["better", "worse", "better_once", "on_average"]].any(axis=None)
    assert found["difference"].notna()[1]
    assert agents.ab_test(planned(share=0.45), "A", shares={"A": 0.55, "B": 0.45})["better_once"].any()
    assert (
        sum(agents.ab_test(planned(s, 1.0), "A", shares={"A": 1, "B": 1}).attrs["mismatch"] < 1e-3 for s in range(20))
        < 2
    )
    pooled = planned(share=0.45).drop(columns="day")
    assert "open: traffic is not split" in agents.ab_test(pooled, "A", shares={"A": 1, "B": 1})["verdict"][1]
    planned().to_csv(tmp_path / "t.csv", index=False)
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A", "--shares", "A=0.5", "B=0.5"]) == 0
    out = capsys.readouterr().out
    assert "lift on average" in out
    assert "; better on average" in out
    planned(share=0.45).to_csv(tmp_path / "t.csv", index=False)
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A", "--shares", "A=0.5", "B=0.5"]) == 0
    assert "open: traffic is not split as planned (p " in capsys.readouterr().out


# A/A tests ------------------------------------------------------------------------------------------------------------


def test_drifting_rates_and_moving_traffic_find_nothing() -> None:
    """20 A/A tests of the campaign `drifting`, at .05; false alarm 3e-4; an effect of 1.5 is found in each of 3."""
    assert false_finds(20) <= 5
    assert false_finds(3, effect=1.5) == 3
    assert drifting(np.random.default_rng(0), 1.5)["n"].min() >= 0


def test_the_screen_says_what_is_asked(tmp_path: Path, capsys: Any) -> None:
    week().to_csv(tmp_path / "t.csv", index=False)
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A"]) == 0
    out, err = capsys.readouterr()
    assert "within each day; p is of 'better on no day':" in out
    assert "B is better on at least one day, against A; B by odds +" in out
    assert "within 'day': 8 strata count" in err
    assert main(["ab-test", str(tmp_path / "t.csv"), "--control", "A", "--strata", "day", "--no-closed"]) == 0
    assert "7 strata count, 1 not over yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"closed": "no"}, "closed must be True or False, got 'no'"),
        ({"closed": 0}, "closed must be True or False, got 0"),
        ({"strata": True}, "strata are the names of columns, or False, got True"),
        ({"strata": 5}, "strata are the names of columns, or False, got 5"),
        ({"lower": "n"}, "lower is a list of names"),
        ({"lower": None}, "lower is a list of names"),
        ({"lower": ["successes"]}, "lower needs guardrails"),
        ({"metric": "successes", "guardrails": ["n"]}, "guardrails are by names"),
        ({"metric": "successes", "guardrails": {"successes": 0.1}}, "of other columns than metric='successes'"),
        ({"metric": ["successes"]}, "metric is the name of a column"),
    ],
)
def test_what_is_no_such_argument_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    table = pd.DataFrame({"day": [1, 1], "variant": ["A", "B"], "n": [9, 9], "successes": [1, 2]})
    with pytest.raises(ValueError, match=says):
        agents.ab_test(table, "A", **given)


@pytest.mark.parametrize("head", ["day", "country"])
def test_a_row_that_sums_up_strata_is_refused(head: str) -> None:
    rows = [(day, name, n, 1) for day, n in (("1", 9), ("2", 8), ("Total", 17)) for name in "AB"]
    table = pd.DataFrame(rows, columns=[head, "variant", "n", "successes"])
    with pytest.raises(ValueError, match=f"column '{head}': 'Total' may sum up the others"):
        agents.ab_test(table, "A", strata=head)


def test_a_sigma_that_is_refuted_within_days_opens_verdicts() -> None:
    g = np.random.default_rng(1)
    rows = [(day, name, 9 * (name == "B") + g.normal()) for day in range(3) for name in "AB" for _ in range(20)]
    table = pd.DataFrame(rows, columns=["day", "variant", "value"])
    assert agents.ab_test(table, "A", sigma=1.2)["better_once"].tolist() == [False, True]
    found = agents.ab_test(table, "A", sigma=0.1)
    assert "sigma=0.1 is refuted" in found["verdict"][1]
    assert not found["better_once"].any()


def test_a_table_without_results_finds_nothing() -> None:
    table = pd.DataFrame({"day": [1, 1], "variant": ["A", "B"], "n": [0, 0], "successes": [0, 0]})
    assert not agents.ab_test(table, "A")["better"].any()


def test_a_day_without_the_control_tells_of_the_common_spread_alone() -> None:
    g = np.random.default_rng(1)
    rows = [(day, name, 2 * (name == "B") + g.normal()) for day in range(4) for name in "ABC" for _ in range(9)]
    more = [(4, name, 50 + g.normal()) for name in "BC" for _ in range(30)]
    one, other = (
        agents.ab_test(pd.DataFrame(table, columns=["day", "variant", "value"]), "A", sigma="common", closed=True)
        for table in (rows, rows + more)
    )
    assert other["better_once"].tolist() == one["better_once"].tolist() == [False, True, False]
    np.testing.assert_allclose(other["difference"], one["difference"])
    assert (other["high"] - other["low"])[1] < (one["high"] - one["low"])[1] * 1.1


def test_a_common_spread_that_nothing_shows_is_said_and_effects_that_change_are_no_spread() -> None:
    head = ["variant", "day", "n", "mean", "sd"]
    flat = pd.DataFrame([("A", 1, 10, 5.0, 0.0), ("B", 1, 10, 5.0, 0.0), ("A", 2, 10, 5.0, 0.0)], columns=head)
    assert "nothing shows their spread" in agents.ab_test(flat, "A", sigma="common")["verdict"][1]
    rows = [("A", 1, 10, 5.0, 1.0), ("B", 1, 10, 5.0, 1.2), ("A", 2, 10, 5.0, 1.1), ("B", 2, 10, 12.0, 1.0)]
    found = agents.ab_test(pd.DataFrame(rows, columns=head), "A", sigma="common")
    assert not found.attrs["unlike"]
    assert found["same"][1] < 1e-3
    with pytest.raises(ValueError, match="expected must be"):
        agents.ab_test(BETTER, "A", expected=[-1, 0.5])
