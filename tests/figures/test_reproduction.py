"""Reproductions that keep their results, verdicts corrected for their number, and what the documentation shows."""

import functools
import math
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from disks import full_disk
from scipy.stats import norm

from agents import figures
from agents.cli import main
from agents.evaluation import Evaluation
from agents.evaluation import run as making
from agents.evaluation.blocks import Block
from agents.evaluation.storage import Store
from agents.figures import (
    Claim,
    Figure,
    Level,
    Panel,
    Quote,
    Sweep,
    Values,
    pages,
    printed,
    reproduce,
    reproduce_paper,
    reproduction,
)
from agents.figures.kalyanakrishnan2010 import share
from agents.figures.katz_samuels2018 import pulled
from agents.figures.pages import OPPOSED, claims_text, overview, read_table, summary, values_text
from agents.figures.panels import Allocation, Conduct
from agents.figures.verdicts import KEYS, counted, overall, scorecard

ENV = "bandit_envs/Threshold-v0"
AGENTS = {"good": "lsa", "poor": "uniform"}
DOCS = Path(__file__).parents[2] / "docs"
PANEL = Panel("p", ENV, {"instance": "tao2019-1"}, [50, 200], AGENTS, 60, "misclassified", "regret")
SCORE = replace(PANEL, title="score of the same runs", metric="score")
SWEPT: Any = {x: {"instance": "tao2019-1", "budget": x} for x in (60, 90)}
SWEEP = Sweep("s", ENV, SWEPT, AGENTS, 60, "misclassified", "regret", "T")
QUOTES = [
    Quote("better", "good is better", [Claim("p", "good", "poor"), Claim("s", "good", "poor")]),
    Quote("worse", "it is worse", [Claim("p", "good", "poor", larger=True)], "at every point"),
]
FIGURE = Figure(
    "tiny-figure-1",
    "Nobody, NoConf 2026, Figure 1",
    [PANEL, SCORE, SWEEP],
    QUOTES,
    values=[Values({"p": (50, 200), "score of the same runs": (50, 200)}, "at"), Values({"s": (60,)}, "regret", ".1f")],
)


def run(out: Path | None = None, figure: Figure = FIGURE, **how: Any) -> figures.Reproduction:
    return reproduce(figure, out=out, progress=False, **how)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Pictures take longer than all the rest; `test_docs_are_written_by_the_command` draws them."""
    if "docs" not in request.node.name:
        monkeypatch.setattr(figures.Reproduction, "plot", lambda self, path: Path(path).write_text("drawn"))


# Keeping and going on --------------------------------------------------------------------------------------------


def test_the_same_run_again_pulls_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path / "out")
    assert first.made == 3  # of two panels together one, of the sweep two
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()}
    monkeypatch.setattr(making, "play", None)
    for name in ("verdicts.csv", "claims.md", "figure.svg"):
        (tmp_path / "out" / name).unlink()
    again = run(tmp_path / "out")
    assert again.made == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()} == files
    assert again.verdicts.equals(first.verdicts)


def test_a_killed_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = reproduction.evaluate, []

    def killed(*arguments: Any, **how: Any) -> Evaluation:
        calls.append(how["env_kwargs"])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **how)

    monkeypatch.setattr(reproduction, "evaluate", killed)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "out")
    assert run(tmp_path / "out").made == 2
    assert calls[1:] == [SWEEP.sweep[60], PANEL.env_kwargs, *SWEEP.sweep.values()]


def test_a_run_that_was_killed_within_an_evaluation_goes_on_by_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents, at two budgets, have 8 blocks each, of which 5 are kept when the kill comes."""
    put, kept = Store.put, []

    def killed(self: Store, block: Block, content: bytes) -> None:
        put(self, block, content)
        kept.append(block.number)
        if len(kept) == 5:
            raise KeyboardInterrupt

    figure = Figure("f", "here", [replace(PANEL, episodes=800)], QUOTES[1:])
    with monkeypatch.context() as while_it_runs:
        while_it_runs.setattr(Store, "put", killed)
        with pytest.raises(KeyboardInterrupt, match="5 of .* blocks are kept in .*evaluations.*the same call goes on"):
            run(tmp_path / "out", figure)
    made: list[int] = []
    monkeypatch.setattr(Store, "put", lambda own, block, *rest: (made.append(block.number), put(own, block, *rest)))
    again = run(tmp_path / "out", figure, jobs=2)
    assert again.made == 1
    assert made
    assert not set(made) & set(kept)
    assert again.verdicts.equals(run(figure=figure).verdicts)


def test_what_differs_is_kept_apart(tmp_path: Path) -> None:
    """Episodes, seed and agents are part of a name; the order of the labels, too, as it is that of the rows."""
    kept = reproduction.Store(tmp_path)
    how: dict[str, Any] = {"episodes": 5, "seed": 0, "budgets": [20], "env_kwargs": {"instance": "tao2019-1"}}
    own = {"distribution": "gaussian", "mean": np.linspace(0, 1, 5)}
    changes: list[dict[str, Any]] = [{}, {"episodes": 6}, {"seed": 1}, {"budgets": [21]}]
    changes += [{"env_kwargs": {"instance": own}}, {"env_kwargs": {"instance": own | {"mean": np.linspace(0, 2, 5)}}}]
    for change in changes:
        kept.evaluate(AGENTS, ENV, **(how | change))
    kept.evaluate({"poor": "uniform", "good": "lsa"}, ENV, **how)
    kept.evaluate(AGENTS, ENV, **how)
    assert kept.made == len(list(tmp_path.iterdir())) == 7
    again = reproduction.Store(tmp_path)
    again.evaluate(AGENTS, ENV, **(how | changes[-1]))
    assert again.made == 0


@pytest.mark.parametrize(
    ("name", "told"), [("episodes.parquet/*", "is damaged.*made again"), ("settings.json", "damaged, and is run again")]
)
def test_what_is_damaged_is_told_and_run_anew(tmp_path: Path, name: str, told: str) -> None:
    first = run(tmp_path / "out")
    folder = sorted((tmp_path / "out" / "evaluations").iterdir())[0]
    next(folder.glob(name)).write_bytes(b"not what was written")
    with pytest.warns(RuntimeWarning, match=told) as warned:
        again = run(tmp_path / "out")
    assert folder.name in str(warned[0].message)
    assert again.made == 1
    assert again.verdicts.equals(first.verdicts)
    assert run(tmp_path / "out").made == 0


def test_an_evaluation_in_a_wrong_place_is_told(tmp_path: Path) -> None:
    first = run(tmp_path / "out")
    one, other, *_ = sorted((tmp_path / "out" / "evaluations").iterdir())
    shutil.rmtree(one)
    shutil.copytree(other, one)
    with pytest.warns(RuntimeWarning, match="holds another evaluation"):
        again = run(tmp_path / "out")
    assert again.made == 1
    assert again.verdicts.equals(first.verdicts)


def test_folders_that_hold_something_else(tmp_path: Path) -> None:
    run(tmp_path / "out", episodes=20)
    for how in ({"episodes": 21}, {"episodes": 20, "seed": 1}, {}):
        with pytest.raises(ValueError, match=r"is there already, and holds .*'episodes': 20.*--force"):
            run(tmp_path / "out", **how)
    assert run(tmp_path / "out", episodes=21, force=True).made == 3
    assert run(tmp_path / "out", episodes=20, force=True).made == 0  # evaluations have stayed
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match="holds something else, not figure 'tiny-figure-1'"):
        run(tmp_path / "foreign")
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match="no folder"):
        run(tmp_path / "foreign" / "thesis.tex")
    with pytest.raises(OSError, match="cannot write to"):
        run(tmp_path / "foreign" / "thesis.tex" / "out")


def test_a_full_disk_is_no_lack_of_data(tmp_path: Path) -> None:
    run()  # kernels are cached by now
    with full_disk(3000), pytest.raises(OSError, match="cannot write .*parquet"):
        run(tmp_path / "out")


def test_a_paper_is_all_of_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = replace(FIGURE, name="tiny-figure-2", source="Nobody, NoConf 2026, Figure 2", panels=[SWEEP], values=[])
    other = replace(other, claims=[Claim("s", "good", "poor")])
    monkeypatch.setitem(figures.PAPERS, "tiny", [FIGURE, other])
    assert main(["reproduce", "tiny", "--episodes", "30", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.count("─  ─") >= 1
    assert re.search(r"Figure 1\n.*“good is better”: .*\n.*“it is worse” \(at every point\): ", out, re.DOTALL)
    assert out.index("Figure 1") < out.index("Figure 2")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("tiny-figure-1", "tiny-figure-2", "evaluations", "verdicts.csv", "claims.md", "settings.json"),
    }
    assert len(list((tmp_path / "out" / "evaluations").iterdir())) == 3  # the sweep is in both figures
    assert [one.made for one in reproduce_paper("tiny", episodes=30, out=tmp_path / "out", progress=False)] == [0, 0]
    with pytest.raises(ValueError, match="holds .*'paper': 'tiny'"):
        reproduce_paper("tiny", episodes=31, out=tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("mason2002", "did you mean 'mason2020'"),
        ("tao2019-figure-7", "did you mean 'tao2019-figure-1'"),
        ("mason2020 --panels x", "mason2020 has several figures"),
        ("tao2019-figure-1 --docs .", "is not the folder of the documentation"),
        (f"tao2019-figure-1 --docs {DOCS} --panels x", "leave out --panels"),
    ],
)
def test_bad_words(
    words: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words.split()]) == 2
    assert told in capsys.readouterr().err


# Verdicts --------------------------------------------------------------------------------------------------------


def test_intervals_are_widened_for_their_number() -> None:
    table = run().verdicts
    assert len(table) == 6
    factor = norm.ppf(1 - 0.025 / 6) / norm.ppf(0.975)
    for row in table.to_dict("records"):
        for one, wide in (("low", "low_together"), ("high", "high_together")):
            assert row[wide] - row["estimate"] == pytest.approx(factor * (row[one] - row["estimate"]))
    assert set(table["trials"]) == {60} == set(table["episodes"])


def test_a_verdict_that_does_not_outlast_the_correction() -> None:
    """A limit just above the interval: alone the claim is decided, beside another one it is not."""
    one = run(figure=Figure("f", "here", [PANEL], [Level("p", "good", 99, 50)])).verdicts.iloc[0]
    assert one["verdict"] == one["alone"] == "yes"
    assert one["high_together"] == pytest.approx(one["high"])
    close = Level("p", "good", one["high"] + 1e-6, 50)
    both = [close, Level("p", "poor", 99, 50)]
    verdicts = [run(figure=Figure("f", "here", [PANEL], both[:m])).verdicts.iloc[0] for m in (1, 2)]
    assert [one["alone"] for one in verdicts] == ["yes", "yes"]
    assert [one["verdict"] for one in verdicts] == ["yes", "open"]


def test_what_is_tested_twice_is_counted_once() -> None:
    claim = Claim("p", "good", "poor")
    twice = [Quote("a", "a", [claim]), Quote("b", "b", [claim])]
    (one, two) = (run(figure=Figure("f", "here", [PANEL], quotes)).verdicts for quotes in (twice[:1], twice))
    assert two["low_together"].tolist() == [*one["low_together"]] * 2


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ((10, 0, 0), "holds"), ((5, 5, 0), "holds"), ((4, 5, 0), "open"), ((0, 9, 0), "open"), ((9, 0, 1), "mixed"),
        ((1, 0, 9), "mixed"), ((0, 9, 1), "does not hold"), ((0, 0, 1), "does not hold"),
    ],
)  # fmt: skip
def test_what_points_add_up_to(counts: tuple[int, int, int], verdict: str) -> None:
    assert overall([counts]) == verdict


def test_a_sentence_is_worth_what_its_weakest_claim_is() -> None:
    assert overall([(10, 0, 0), (5, 0, 0)]) == "holds"
    assert overall([(90, 0, 0), (4, 5, 0)]) == "open"  # pooled, 94 of 99 points would confirm it
    assert overall([(90, 0, 0), (0, 0, 1)]) == "mixed"
    assert overall([(0, 9, 0), (0, 0, 1)]) == "does not hold"


def test_a_sentence_with_a_part_that_fails_is_mixed(tmp_path: Path) -> None:
    """Its pages say so, too, and what they would say without the correction."""
    parts = [Claim("p", "good", "poor", since=200), Claim("p", "poor", "good", since=200)]
    figure = replace(FIGURE, claims=[Quote("both", "one and the other", parts)])
    result = run(figure=figure)
    [row] = scorecard(result.verdicts, ["quote"]).itertuples()
    assert (row.yes, row.no, row.verdict, row.alone) == (1, 1, "mixed", "mixed")
    assert "| 1 / 0 / 1 | **mixed** |" in claims_text(figure, result.verdicts)
    table = result.verdicts.assign(alone=["yes", "yes"])
    assert "| 1 / 0 / 1 | **mixed**; without correction holds |" in claims_text(figure, table)


def test_a_test_of_the_paper_decides_nothing_by_chance() -> None:
    """With m intervals in the figure, p below .05 but not below .05 / m leaves a claim of no difference open."""
    claims = [Claim("p", "good", "poor", since=200, p_value=0.05), Claim("p", "good", "poor")]
    table = run(figure=replace(FIGURE, claims=claims), episodes=20).verdicts
    assert table["alone"][0] == table["verdict"][0] == "no"  # p is far below .05 / 2
    few = run(figure=replace(FIGURE, claims=claims), episodes=12).verdicts
    assert few["p_value"][0] == 1 / 32
    assert (few["alone"][0], few["verdict"][0]) == ("no", "open")


def test_counts_in_words() -> None:
    assert counted((8, 3, 1)) == "8 yes, 3 open, 1 no"
    assert counted((0, 0, 2)) == "2 no"


def test_new_claims_by_hand() -> None:
    result = PANEL.run(Conduct(progress=False))
    mean = {name: result.column(name, "misclassified", budget=200).mean() for name in AGENTS}
    gap = abs(mean["good"] - mean["poor"])
    tests: list[tuple[Any, str]] = [
        (Claim("p", "good", "poor", within=10.0, since=200), "yes"),
        (Claim("p", "good", "poor", within=1e-6, since=200), "no"),
        (Claim("p", "good", "poor", within=gap, since=200), "open"),
        (Level("p", "good", mean["good"], 200, within=5.0), "yes"),
        (Level("p", "good", mean["good"] + 9, 200, within=1.0), "no"),
        (Level("p", "good", mean["good"], 200, within=1e-9), "open"),
    ]
    for claim, verdict in tests:
        (row,) = claim.test(PANEL, result, 0.95)
        assert row["verdict"] == verdict, claim
    assert Claim("p", "a", "b", within=0.1, since=7, until=7).text == "a within 0.1 of b at 7"
    pulls = result.pulls
    number = pulls[(pulls["agent"] == "poor") & (pulls["budget"] == 200) & (pulls["arm"] == 3)]["pulls"].iloc[0]
    assert number == pytest.approx(20)  # uniform: 200 pulls of 10 arms
    rows = [pulled("p", 200, "poor", 3, value).test(PANEL, result, 0.95)[0]["verdict"] for value in (20.9, 22)]
    assert rows == ["yes", "no"]
    ranks = Allocation("r", ENV, {"instance": "tao2019-1"}, [50, 200], AGENTS, 60)
    shares = [share("r", *pair, 5, 6).test(ranks, result, 0.95)[0] for pair in (("good", "poor"), ("poor", "good"))]
    assert [row["verdict"] for row in shares] == ["yes", "no"]  # LSA turns to the arms beside the threshold
    assert shares[0]["estimate"] == pytest.approx(ranks.by_rank(result, "good")[4:6].sum() / 200 - 0.2)
    assert printed("p", "x", 2, tolerance=0.5).text == "x = 2, within 0.5"


# What the documentation shows ------------------------------------------------------------------------------------


def test_tables_of_values_by_hand(tmp_path: Path) -> None:
    result = run(tmp_path / "out")
    points = read_table(tmp_path / "out" / "points.csv")
    below, beside = values_text(FIGURE.values, points).split("\n\n")
    mean = {
        (name, T): result.results["p"].column(name, "misclassified", budget=T).mean()  # type: ignore[attr-defined]
        for name in AGENTS
        for T in (50, 200)
    }
    lines = below.splitlines()
    assert lines[0] == "| at | 50 | 200 |"
    assert lines[2] == f"| p: good | {mean['good', 50]:.3f} | {mean['good', 200]:.3f} |"
    assert [line.split(" | ")[0] for line in lines[3:]] == [
        "| p: poor", "| score of the same runs: good", "| score of the same runs: poor",
    ]  # fmt: skip
    assert beside.splitlines()[0] == "| regret | 60 |"
    assert (tmp_path / "out" / "values.md").read_text() == values_text(FIGURE.values, points)


def test_claims_of_a_page_by_hand(tmp_path: Path) -> None:
    run(tmp_path / "out", episodes=30)
    table = read_table(tmp_path / "out" / "verdicts.csv")
    text = claims_text(FIGURE, table)
    assert text.startswith("(claims-tiny-figure-1)=\n")
    card = scorecard(table, ["quote"]).set_index("quote")
    better = card.loc["better"]
    alone = "" if better["alone"] == better["verdict"] else f"; without correction {better['alone']}"
    counts = f"{better['yes']} / {better['open']} / {better['no']}"
    cell = f"| **“good is better”** | {counts} | **{better['verdict']}**{alone} |"
    assert cell in text
    assert "30 episodes (the paper: 60); 6 intervals, widened" in text
    assert (tmp_path / "out" / "claims.md").read_text() == text


SHOWN = sorted(path.parent for path in DOCS.glob("figures/*/verdicts.csv"))
kept = functools.cache(read_table)  # of files of the documentation, which nobody changes
cards: dict[tuple[int, tuple[str, ...]], pd.DataFrame] = {}


def card_of(table: pd.DataFrame, by: Sequence[str] = KEYS) -> pd.DataFrame:
    """`scorecard` of a table that is `kept`, made once."""
    if (key := (id(table), tuple(by))) not in cards:
        cards[key] = scorecard(table, by)
    return cards[key]


@pytest.fixture
def cards_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "scorecard", card_of)


def page_of(name: str) -> str:
    """The page that includes the fragments of a figure."""
    pages = [path.read_text() for path in sorted(DOCS.glob("figures/*.md"))]
    (page,) = [text for text in pages if f"{{include}} {name}/claims.md" in text]
    return page


def test_every_figure_is_shown() -> None:
    """`bandit-envs reproduce FIGURE --out FOLDER --docs docs` makes what is missing here."""
    assert {folder.name for folder in SHOWN} == set(figures.FIGURES)


@pytest.mark.usefixtures("cards_are_kept")
@pytest.mark.parametrize("folder", SHOWN, ids=lambda folder: folder.name)
def test_what_is_shown_is_what_the_tables_give(folder: Path) -> None:
    """No fragment has drifted from its tables, and no table from the declaration of its figure."""
    figure = figures.FIGURES[folder.name]
    table, points = kept(folder / "verdicts.csv"), read_table(folder / "points.csv")
    assert (folder / "claims.md").read_text() == claims_text(figure, table)
    shown = set(points["panel"])
    lacking = {panel.title for panel in figure.panels} - shown
    assert not lacking or lacking == {"Contest 690"}  # whose ratings not every machine has
    here = figure.shown([panel for panel in figure.panels if panel.title in shown])
    assert (folder / "values.md").read_text() == values_text(here.values, points)
    declared = {(quote.name, claim.panel, claim.text) for quote in here.quotes for claim in quote.claims}
    assert set(table[["quote", "panel", "claim"]].itertuples(index=False, name=None)) == declared
    text = page_of(folder.name)
    assert f"{{include}} {folder.name}/values.md" in text
    assert f"{folder.name}/figure.svg" in text


@pytest.mark.usefixtures("cards_are_kept")
def test_the_overview_is_what_the_tables_give() -> None:
    tables = {folder.name: kept(folder / "verdicts.csv") for folder in SHOWN}
    sentences = pd.read_csv(DOCS / "figures" / "sentences.csv")
    assert (DOCS / "figures" / "claims.md").read_text() == overview(tables, sentences)
    shown = (DOCS / "figures" / "sentences.md").read_text()
    assert shown == summary(tables, sentences)
    heads, _, *counts = [line.split(" | ") for line in shown.splitlines()]
    assert heads[1:] == ["sentences", "holds", "open", "mixed", "does not hold", "not testable |"]
    assert len(counts) == 5
    for row in counts:  # each sentence once
        assert int(row[1]) == sum(int(cell.split()[0]) for cell in row[2:])


def test_no_sentence_holds_of_which_a_part_is_open_or_refuted() -> None:
    for folder in SHOWN:
        table = kept(folder / "verdicts.csv")
        parts = card_of(table)
        for row in card_of(table, ["quote"]).itertuples():
            if row.verdict == "holds":
                assert set(parts[parts["quote"] == row.quote]["verdict"]) == {"holds"}, (folder.name, row.quote)


@pytest.mark.parametrize("folder", SHOWN, ids=lambda folder: folder.name)
def test_what_does_not_hold_has_a_paragraph(folder: Path) -> None:
    """At an anchor of its own, of at least a sentence or two."""
    card, text = card_of(kept(folder / "verdicts.csv"), ["quote"]), page_of(folder.name)
    for row in card[card["verdict"].isin(OPPOSED)].itertuples():
        found = re.search(
            rf"^\({re.escape(f'{folder.name}-{row.quote}')}\)=\n+(?:\(.*\)=\n+)*(.+?)\n\n", text + "\n\n", re.M | re.S
        )
        assert found is not None, f"{folder.name}-{row.quote} has no paragraph"
        assert len(found.group(1).split()) >= 25, found.group(1)


def test_docs_are_written_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figures.FIGURES, FIGURE.name, FIGURE)
    monkeypatch.setitem(figures.PAPERS, "tiny", [FIGURE])
    docs = tmp_path / "docs"
    (docs / "figures").mkdir(parents=True)
    (docs / "conf.py").touch()
    shutil.copy(DOCS / "figures" / "sentences.csv", docs / "figures")
    out = str(tmp_path / "out")
    assert main(["reproduce", FIGURE.name, "--episodes", "5", "--out", out, "--docs", str(docs)]) == 0
    made = {path.name for path in (docs / "figures" / FIGURE.name).iterdir()}
    assert made == {"verdicts.csv", "points.csv", "claims.md", "values.md", "figure.svg"}
    text = (docs / "figures" / "claims.md").read_text()
    assert "## Nobody, NoConf 2026" in text
    assert "5 / 60" in text
    for name in made:
        assert (docs / "figures" / FIGURE.name / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_numbers_of_points_are_finite_where_they_are_drawn() -> None:
    table = run().points
    assert set(table.columns) == {"panel", "agent", "x", "episodes", "mean", "low", "high", "drawn"}
    assert np.isfinite(table["mean"]).all()
    assert table["mean"].equals(table["drawn"])
    assert not math.isnan(table["x"].iloc[0])
