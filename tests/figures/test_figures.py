"""Figures of papers: panels, claims and verdicts on data whose outcome is known."""

import copy
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contests import GOOD

from agents import figures
from agents.cli import main
from agents.evaluation.statistics import ALIKE
from agents.figures import (
    Allocation,
    Claim,
    Conduct,
    Exact,
    Figure,
    Growth,
    Level,
    Number,
    Panel,
    Sweep,
    printed,
    reproduce,
)
from agents.figures.kalyanakrishnan2010 import peaks, share
from agents.figures.katz_samuels2018 import pulled
from agents.figures.mason2020 import ratings
from bandit_envs.instances import datasets

ENV = "bandit_envs/Threshold-v0"
QUIETLY = Conduct(progress=False)
AGENTS = {"good": "lsa", "poor": "uniform"}


def sweep(xs: tuple[int, ...] = (50, 100, 200), metric: str = "misclassified") -> Sweep:
    kwargs = {x: {"instance": "tao2019-1", "budget": x} for x in xs}
    return Sweep("swept", ENV, kwargs, AGENTS, 40, metric, "regret", "T", log=True)


def alike(x: float, p_value: float = 0.05) -> Claim:
    return Claim("p", "good", "poor", since=x, until=x, p_value=p_value)


def verdicts(panel: Any, *claims: Any, episodes: int | None = None) -> Any:
    result = reproduce(Figure("f", "here", [panel], claims), episodes=episodes, progress=False)
    return result.verdicts


def test_an_order_gets_a_paired_verdict_at_every_point() -> None:
    panel = Panel("p", ENV, {"instance": "tao2019-1"}, [20, 200], AGENTS, 400, "misclassified", "regret")
    claims = [Claim("p", "good", "poor"), Claim("p", "good", "poor", larger=True)]
    rows = verdicts(panel, *claims)
    assert rows["claim"].tolist()[::2] == ["good below poor", "good above poor"]
    assert rows["x"].tolist() == [20, 200] * 2
    assert rows["verdict"].tolist()[1::2] == ["yes", "no"]
    d = panel.run(Conduct(400, progress=False)).compare("good", "poor", "misclassified", budget=200)
    assert (rows["estimate"][1], rows["low"][1], rows["high"][1]) == (d.difference, d.low, d.high)


def test_checkpoints_of_one_run_or_budgets() -> None:
    """APT does not use the budget, so both are the same; UCBE does."""
    for agent, same in (("apt", True), ("ucbe", False)):
        made = [
            Panel("p", ENV, {"instance": "tao2019-1", "budget": 200}, [50, 200], {"a": agent}, 200, "score", "", at=at)
            for at in (False, True)
        ]
        one, other = (p.values(p.run(QUIETLY), "a") for p in made)
        assert np.array_equal(one[50], other[50]) is same
        assert np.array_equal(one[200], other[200])


def test_growth_of_a_known_power() -> None:
    """Every episode spends its budget, so that pulls grow as T ** 1, without chance."""
    panel = sweep(metric="total_pulls")
    claims = [Growth("swept", "good", 0.9, 1.1), Growth("swept", "good", 1.5, 2), Growth("swept", "poor", -1, 0.5)]
    few = verdicts(panel, *claims)
    assert few["verdict"].tolist() == ["open"] * 3
    assert few[["low", "high"]].isna().all(axis=None)
    rows = verdicts(panel, *claims, episodes=ALIKE)
    assert rows["estimate"].tolist() == pytest.approx([1, 1, 1])
    assert rows["verdict"].tolist() == ["yes", "no", "no"]
    assert math.isnan(rows["x"][0])
    assert rows["claim"][1] == "good grows with an exponent of 1.5 to 2"


def test_growth_with_chance_is_open_where_its_interval_straddles() -> None:
    panel = sweep((50, 100))
    (row,) = verdicts(panel, Growth("swept", "poor", -9, 9)).to_dict("records")
    assert row["low"] < row["estimate"] < row["high"]
    (open_row,) = verdicts(panel, Growth("swept", "poor", row["estimate"], 9)).to_dict("records")
    assert open_row["verdict"] == "open"
    logs = np.log([values.mean() for values in panel.values(panel.run(QUIETLY), "poor").values()])
    assert row["estimate"] == pytest.approx((logs[1] - logs[0]) / math.log(2))


def test_leads_of_known_areas(tmp_path: Path) -> None:
    """The lead is the area between the curves, and an agent has no lead over itself."""
    kwargs = {x: {"instance": {"distribution": "bernoulli", "mean": [0.5 - x, 0.5 + x]}} for x in (0.05, 0.1, 0.4)}
    entrants, more = {"good": "lsa", "poor": "random", "same": "lsa"}, dict.fromkeys(kwargs, (10, 20, 30))
    panel = Sweep("led", ENV, kwargs, entrants, 300, "error_rate", "lead", "gap", budgets=more, rival="poor")
    claims = [Claim("led", "good", "poor", than=0.4), Claim("led", "good", "same", than=0.1)]
    rows = verdicts(panel, *claims)
    leads = [f"good leads {rival} by more than at {middle}" for rival, middle in (("poor", 0.4), ("same", 0.1))]
    assert rows["claim"].tolist() == [leads[0]] * 2 + [leads[1]] * 2
    assert rows["x"].tolist() == [0.05, 0.1, 0.05, 0.4]
    result = panel.run(Conduct(300, progress=False))
    rate = {
        (x, name, T): one.column(name, "error_rate", budget=T).mean()
        for x, one in result.evaluations.items()
        for name in ("good", "poor")
        for T in (10, 20, 30)
    }
    lead = {x: 10 * sum(rate[x, "poor", T] - rate[x, "good", T] for T in (10, 20, 30)) for x in kwargs}
    assert rows["estimate"].tolist() == pytest.approx([lead[0.05] - lead[0.4], lead[0.1] - lead[0.4], 0, 0])
    assert rows["verdict"].tolist()[2:] == ["open", "open"]
    drawn = reproduce(Figure("f", "here", [panel], claims, order=["good", "poor", "same"]), episodes=50, progress=False)
    (ax,) = drawn.plot().axes
    assert [line.get_xdata().tolist() for line in ax.lines][-2:] == [[0.05, 0.1, 0.4]] * 2
    drawn.save(tmp_path / "f")


def test_a_lead_that_is_larger_at_one_end_only() -> None:
    """Episodes with known errors: leads of 10, 20 and 0 pulls at 1, 2 and 3, without chance."""

    class Known:
        def __init__(self, pulls: int) -> None:
            self.errors = {"a": np.zeros(ALIKE), "b": np.full(ALIKE, pulls / 10)}

        def column(self, agent: str, metric: str, budget: int) -> Any:
            return self.errors[agent] if budget == 10 else np.zeros(ALIKE)

    budgets = dict.fromkeys((1.0, 2.0, 3.0), (10, 20))
    panel = Sweep("p", ENV, {}, {"a": "", "b": ""}, 8, "error_rate", "", "", budgets=budgets, rival="b")
    result: Any = type("Swept", (), {"evaluations": {1.0: Known(10), 2.0: Known(20), 3.0: Known(0)}})()
    found = {
        middle: [
            (row["x"], row["estimate"], row["verdict"])
            for row in Claim("p", "a", "b", than=middle).test(panel, result, 0.95)
        ]
        for middle in (1.0, 3.0)
    }
    assert found == {1.0: [(2.0, 10.0, "yes"), (3.0, -10.0, "no")], 3.0: [(1.0, 10.0, "yes"), (2.0, 20.0, "yes")]}


def test_one_episode_decides_nothing() -> None:
    """Whatever kind of claim it is, also where no interval is made."""
    kwargs = {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.1]}, "threshold": 0.5}
    lines = Panel("p", ENV, kwargs, [20, 40], AGENTS, 200, "total_pulls", "pulls")
    ranks = Allocation("r", ENV, kwargs, [40], AGENTS, 200)
    claims: list[Any] = [
        *(Growth("p", "good", 0.5, most) for most in (0.8, 2.0)),
        *(Level("p", "good", value, 40, within=5.0) for value in (40.0, 60.0)),
        *(Level("p", "good", value, 40) for value in (30.0, 50.0)),
        *(Claim("p", "good", "poor", within=1.0), Claim("p", "good", "poor"), alike(40)),
        *(pulled("p", 40, "poor", 0, value) for value in (20.0, 30.0)),
        *(peaks("r", "poor", 1, 2), share("r", "good", "poor", 1, 1)),
    ]
    figure = Figure("f", "here", [lines, ranks], [*claims])
    found = reproduce(figure, episodes=1, progress=False).verdicts
    assert set(found["verdict"]) == set(found["alone"]) == {"open"}
    assert found[["low", "high"]].isna().all(axis=None)
    many = reproduce(figure, episodes=ALIKE, progress=False).verdicts
    assert {"yes", "no"} <= set(many["verdict"])


def test_lines_by_hand() -> None:
    """Pulls are T itself, a line through 0; its square is 4 times as steep at 200 as at 50, and 1000 - T falls."""
    panel = sweep(metric="total_pulls")
    line = Growth("swept", "good", 1 / 2, 2, line=True)
    (row,) = line.test(panel, panel.run(QUIETLY), 0.95)
    assert (row["verdict"], math.isnan(row["low"])) == ("open", True)
    result = panel.run(Conduct(ALIKE, progress=False))
    rows = [replace(line, low=1 / bend, high=bend).test(panel, result, 0.95)[0] for bend in (1.5, 3.0)]
    assert [row["estimate"] for row in rows] == pytest.approx([1, 1])
    assert [row["verdict"] for row in rows] == ["yes", "yes"]
    for change, estimate in ((lambda pulls: pulls**2, 4.0), (lambda pulls: 1000 - pulls, math.inf)):
        changed = copy.deepcopy(result)
        for evaluation in changed.evaluations.values():
            for run in evaluation.runs:
                run.columns["total_pulls"] = change(run.columns["total_pulls"])
        (row,) = line.test(panel, changed, 0.95)
        assert row["estimate"] == pytest.approx(estimate)
        assert row["verdict"] == "no"
    two = sweep((50, 100), metric="total_pulls")
    result = two.run(QUIETLY)
    with pytest.raises(ValueError, match="a curvature needs at least 3 points, got 2"):
        line.test(two, result, 0.95)


def test_a_sweep_is_drawn_and_saved(tmp_path: Path) -> None:
    result = reproduce(Figure("f", "here", [sweep()], [Claim("swept", "good", "poor")]), episodes=60, progress=False)
    (ax,) = result.plot().axes
    assert ax.get_xlabel() == "T"
    assert ax.get_yscale() == "log"
    assert ax.lines[1].get_xdata().tolist() == [50, 100, 200]
    swept = result.results["swept"]
    assert ax.lines[1].get_ydata() == pytest.approx(
        [e.summary()["misclassified"].iloc[1] for e in swept.evaluations.values()]
    )
    result.save(tmp_path / "out")
    made = "claims.md figure.png figure.svg points.csv settings.json values.md verdicts.csv"
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(made.split())


def test_ratings_of_a_contest_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means 2, 1.75, 1: two are within 20 % of the best, three within 50 %."""
    (tmp_path / "900_summary_KLUCB.csv").write_text(GOOD, encoding="utf-8")
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))
    claims = [printed("Contest 900", "good", 2), printed("Contest 900", "good", 3)]
    assert verdicts(ratings(900), *claims)["verdict"].tolist() == ["yes", "no"]
    assert ratings(900, 0.5).run(QUIETLY).number("good") == 3


def test_panels_without_data_are_skipped_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "900_summary_KLUCB.csv").write_text(GOOD, encoding="utf-8")
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))

    def offline(file: Any) -> Path:
        raise OSError("no network")

    monkeypatch.setattr(datasets, "_download", offline)
    both = Figure("f", "here", [ratings(900), ratings(690)], [printed("Contest 690", "good", 1)])
    result = reproduce(both, progress=False)
    assert list(result.results) == ["Contest 900"]
    assert result.skipped == {"Contest 690": "no network"}
    assert len(result.verdicts) == 0
    assert result.scorecard().empty
    result.plot()
    with pytest.raises(OSError, match="Contest 690: no network"):
        reproduce(Figure("f", "here", [ratings(690)], []), progress=False)


def test_figure_1_of_mason_et_al(
    data_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(datasets.VARIABLE, str(data_folder))
    assert main(["reproduce", "mason2020-figure-1", "--panels", "Contest 627", "Contest 651"]) == 0
    out = capsys.readouterr().out
    for line in ("Contest 627 good = 27 1 0 0", "Contest 651 good = 748 1 0 0"):
        assert line in " ".join(out.split())


def test_every_claim_is_of_a_panel_and_its_agents() -> None:
    for figure in figures.FIGURES.values():
        panels: dict[str, Any] = {panel.title: panel for panel in figure.panels}
        assert len(panels) == len(figure.panels)
        assert len({quote.name for quote in figure.quotes}) == len(figure.quotes)
        for values in figure.values:
            assert set(values.at) <= set(panels)
        for claim in (claim for quote in figure.quotes for claim in quote.claims):
            panel = panels[claim.panel]
            for role in ("better", "worse", "agent"):
                assert getattr(claim, role, None) in (None, *panel.agents)
            if isinstance(claim, Number) and not isinstance(panel, Exact):
                names = {re.split(r"[\[(,:]", agent)[0].strip() for agent in panel.agents}
                assert any(name in claim.text for name in names), claim.text


def test_rows_of_a_papers_file_stand_for_panels_and_claims() -> None:
    """Of several lists the first is the outer loop; a group stands for its members, and "none" for None."""
    tao, further = (figures.FIGURES[name] for name in ("tao2019-figure-1", "kalyanakrishnan2010-further"))
    apts = ["APT(0)", "APT(.025)", "APT(.05)", "APT(.1)"]
    pairs = itertools.product(["Setup 1", "Setup 2", "Setup 3"], apts, ["UCBE(-1)", "UCBE(0)", "UCBE(4)"])
    assert tao.quotes[0].claims == list(itertools.starmap(Claim, pairs))
    panels: dict[str, Any] = {panel.title: panel for panel in (*tao.panels, *further.panels)}
    assert list(panels["Setup 1"].agents.items())[:2] == [("LSA", "lsa"), ("APT(0)", "apt(tolerance=0)")]
    draws = panels["pulls until delta^c is .15, 25 draws"].sweep
    assert list(draws) == [float(seed) for seed in range(25)]
    assert draws[3.0] == {"instance": "kalyanakrishnan2010(seed=3)", "budget": None, "max_pulls": 10**7}
    (mean,) = (p for p in figures.FIGURES["kalyanakrishnan2010-figure-2"].panels if p.title == "2b: NSS")
    assert mean.budgets == list(range(1000, 30_001, 1000))


def test_a_claim_about_a_part_of_the_points() -> None:
    panel = Panel("p", ENV, {"instance": "tao2019-1"}, [20, 100, 200], AGENTS, 300, "misclassified", "regret")
    rows = verdicts(panel, Claim("p", "good", "poor", since=100), Claim("p", "good", "poor", until=100, larger=True))
    assert rows["x"].tolist() == [100, 200, 20, 100]
    assert rows["claim"].tolist()[1:3] == ["good below poor from 100", "good above poor up to 100"]


def test_agents_that_a_test_does_not_tell_apart() -> None:
    panel = Panel("p", ENV, {"instance": "tao2019-1"}, [20, 200], AGENTS, 400, "misclassified", "regret")
    claims = [alike(200), alike(200, 0.0)]
    rows = verdicts(panel, *claims)
    assert rows["verdict"].tolist() == ["no", "yes"]
    assert rows["x"].tolist() == [200, 200]
    assert rows["p_value"][0] < 0.05
    assert rows["claim"][0] == "good not distinguishable from poor at 200"


def test_schedules_of_direct_and_halving_by_hand() -> None:
    """50 ceil(2 * 12 / .01 ln(50 / .15)) = 50 * 13942 = 697,100; without a pull, and HALVING's as it makes them."""
    panel = figures.FIGURES["kalyanakrishnan2010-figure-2"].panels[-1]
    found = panel.run(QUIETLY)
    # e = .1/4 (3/4)^l, d = .15 / 2^(l+1); sizes 50, 25 of which 15 remain: ceil(24 / e^2 ln(45 / d)) each
    halving = sum(
        n * math.ceil(24 / (0.025 * 0.75**j) ** 2 * math.log(45 / (0.15 / 2 ** (j + 1)))) for j, n in ((0, 50), (1, 25))
    )
    assert (found.number("DIRECT"), found.number("HALVING")) == (697_100, halving)
    claims = [printed(panel.title, name, 1e6, or_more=True) for name in ("DIRECT", "HALVING")]
    rows = verdicts(panel, *claims)
    assert rows["verdict"].tolist() == ["no", "yes"]
    assert rows["claim"][0] == "DIRECT at least 1e+06"


def test_delta_c_by_a_policys_own_bounds_in_little() -> None:
    """At range 1 ADAPT's bound is far below Hoeffding's late in the run; at sqrt(12) hardly."""
    panels = ["2a: delta^c", "2a: delta^c, range 1"]
    figure = figures.FIGURES["kalyanakrishnan2010-figure-2"]
    few = [replace(one, budgets=[22_000]) for one in figure.panels if one.title in panels]
    result = reproduce(replace(figure, panels=few, claims=[]), episodes=2, progress=False)
    at = {title: result.results[title].summary().set_index("agent")["delta_c"] for title in panels}
    assert at[panels[0]]["pi3"] == at[panels[1]]["pi3"]
    assert at[panels[1]]["pi4 (ADAPT)"] < 0.6 < at[panels[0]]["pi4 (ADAPT)"]


def test_feasible_arms_in_little() -> None:
    """Experiment 2 of Katz-Samuels & Scott with 200 trials: MD-SAR is far ahead of MD-APT and of uniform sampling."""
    result = reproduce("katz-samuels2018-figures-1-7", episodes=200, panels=["2: four groups"], progress=False)
    last = result.verdicts[result.verdicts["x"] == 2000].set_index("claim")["verdict"]
    assert last[["MD-SAR below MD-APT", "MD-SAR below UA", "UA below MD-UCBE[.1]"]].tolist() == ["yes"] * 3
    rates = np.array([0.0, 1.0, np.exp(-2.0)])
    assert result.figure.transform(rates, 20).tolist() == pytest.approx([np.nan, 0.0, -2.0], nan_ok=True)
    result.plot()
