"""Pages that are one file: the race of agents, and the report of an evaluation; what they hold, and how they look."""

from __future__ import annotations

import base64
import functools
import html
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import LOADED, SCREENS, data_of, opened, shortened, shot
from browsing import browser as browser

import agents
from agents.cli import main, parse
from agents.evaluation.plots import plot
from agents.evaluation.report import escaped
from agents.figures import FIGURES, PAPERS, Claim, Figure, Panel, Quote
from agents.figures.pages import read_table
from agents.figures.verdicts import scorecard
from agents.pictures.race_page import COLUMNS, MISSING
from agents.pictures.report_page import command_of

TAO: dict[str, Any] = {"instance": "tao2019-1", "budget": 200}
MANY: dict[str, Any] = {"instance": "sampler(arms=9250)", "budget": 15_000}
PLANE: dict[str, Any] = {"budget": 200}  # ten arms of two dimensions
RACERS = {"LSA": "lsa", "round <robin>": "uniform"}


def numbers(text: str, kind: str, shape: Any) -> Any:
    return np.frombuffer(base64.b64decode(text), np.dtype(kind).newbyteorder("<")).reshape(shape)


@pytest.fixture(scope="module")
def race() -> str:
    return agents.race(RACERS, "Threshold", env_kwargs=TAO, seed=3, episode=1)


# The race -------------------------------------------------------------------------------------------------------------


def test_a_race_is_the_episode_that_is_evaluated(race: str) -> None:
    data = data_of(race)
    result = agents.evaluate(RACERS, "Threshold", episodes=2, seed=3, at=data["at"][1:], env_kwargs=TAO)
    assert data["at"] == list(range(201))
    rows = result.episodes[result.episodes["episode"] == 1]
    for one in data["agents"]:
        mine = rows[rows["agent"] == one["label"]]
        assert one["pulls"][1:] == mine["total_pulls"].tolist() == data["at"][1:]
        assert one["score"][1:] == pytest.approx(mine["score"].tolist(), abs=1e-6)
        assert one["correct"][1:] == mine["correct"].tolist()


def test_frames_hold_the_statistics_of_the_samples(race: str) -> None:
    data, (low, high) = data_of(race), data_of(race)["limits"]
    how: dict[str, Any] = {"env_kwargs": TAO, "seed": 3, "episode": 1, "at": [50, 200]}
    traces = [agents.play(agent, "Threshold", **how) for agent in RACERS.values()]
    step = (high - low) / MISSING
    truth = low + (high - low) * numbers(data["truth"], "u2", 10) / (MISSING - 1)
    assert np.allclose(truth, traces[0].means, atol=step)
    for one, trace in zip(data["agents"], traces, strict=True):
        counts, values = (numbers(one[name], kind, (201, 10)) for name, kind in (("counts", "u4"), ("values", "u2")))
        shares = numbers(one["shares"], "u1", (201, 10))
        assert (np.diff(counts.astype(np.int64), axis=0) >= 0).all()
        assert counts.sum(axis=1).tolist() == data["at"]
        for t, answer in ((50, trace.answers[0]), (200, trace.answer)):
            assert counts[t].tolist() == np.bincount(trace.arms[:t], minlength=10).tolist()
            assert shares[t].tolist() == (255 * answer).tolist()
            assert one["inside"][t] == answer.sum()
            for k in range(10):
                seen = trace.samples[:t][trace.arms[:t] == k]
                assert (values[t, k] == MISSING) == (len(seen) == 0)
                if len(seen):
                    assert low + (high - low) * values[t, k] / (MISSING - 1) == pytest.approx(seen.mean(), abs=step)


def test_of_many_arms_neighbours_share_a_column() -> None:
    page = agents.race(["lsa", "uniform"], "Threshold", env_kwargs=MANY)
    data = data_of(page)
    assert len(page.encode()) < 2_000_000
    assert len(data["columns"]) == COLUMNS
    assert sum(data["columns"]) == data["arms"] == 9250
    frames = len(data["at"])
    assert frames > 100
    truth = numbers(data["truth"], "u2", COLUMNS).astype(int)
    assert (np.diff(truth) <= 0).all()
    for one in data["agents"]:
        counts = numbers(one["counts"], "u4", (frames, COLUMNS))
        assert counts.sum(axis=1).tolist() == one["pulls"]
        inside = numbers(one["shares"], "u1", (frames, COLUMNS))[-1] / 255 @ np.array(data["columns"])
        assert inside == pytest.approx(one["inside"][-1], rel=0.01)


def test_eight_agents_and_the_most_columns_stay_below_two_megabytes() -> None:
    kwargs = {"instance": "sampler(arms=120)", "budget": 600}
    page = agents.race({str(i): "uniform" for i in range(8)}, "Threshold", env_kwargs=kwargs)
    assert 500_000 < len(page.encode()) < 2_000_000
    with pytest.raises(ValueError, match="at most 8 agents, got 9"):
        agents.race({str(i): "uniform" for i in range(9)}, "Threshold", env_kwargs=kwargs)


def test_arms_of_a_polyhedron_are_points() -> None:
    data = data_of(agents.race(["md-apt", "uniform"], "Feasible", env_kwargs=PLANE, frames=5))
    plane, trace = data["plane"], agents.play("md-apt", "Feasible", env_kwargs=PLANE)
    for d in range(2):
        low, high = plane["low"][d], plane["high"][d]
        found = low + (high - low) * numbers(data["agents"][0]["points"][d], "u2", (6, 10))[-1] / (MISSING - 1)
        for k in range(10):
            assert found[k] == pytest.approx(trace.samples[trace.arms == k][:, d].mean(), abs=1e-3)
    corners = np.array(plane["corners"])
    assert (corners[:, 0] >= 0.5 - 1e-9).all()
    assert (corners[:, 1] <= 0.5 + 1e-9).all()


def test_pages_load_nothing_and_labels_are_text(race: str, tmp_path: Path) -> None:
    result = agents.evaluate(RACERS, "Threshold", episodes=20, env_kwargs=TAO)
    report = agents.report(result.save(tmp_path / "a")).read_text()
    for page in (race, report):
        names = {found for found in re.findall(r"https?://[^\"' <)]+", page)}
        assert names <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, which nobody fetches
        assert not LOADED.search(page)
        assert "round <robin>" not in page
        assert "innerHTML" not in page
        assert html.escape("round <robin>") in page
    assert LOADED.search('<img src="a.png">')
    assert data_of(race)["agents"][1]["label"] == "round <robin>"


def test_the_end_of_a_race_is_told_without_its_script(race: str) -> None:
    rows = re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>', race)
    racers = data_of(race)["agents"]
    final = [(a["label"], f"{a['end']}", f"{a['inside'][-1]}", f"{a['score'][-1]:.4f}") for a in racers]
    assert [tuple(map(html.unescape, row)) for row in rows] == final


# The report -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Evaluations in all forms in which a folder may hold one."""
    root = tmp_path_factory.mktemp("evaluations")
    how: dict[str, Any] = {"episodes": 60, "at": [50, 200], "env_kwargs": TAO}
    agents.evaluate(["lsa", "uniform"], "Threshold", **how).save(root / "saved")
    agents.evaluate(["lsa", "uniform"], "Threshold", out=root / "blocks", **how)
    agents.evaluate(["lsa", "uniform"], "Threshold", out=root / "sums", rows="none", **how)
    return {name: root / name for name in ("saved", "blocks", "sums")}


def cells(page: str, section: str) -> tuple[list[str], list[list[str]]]:
    """The heads of the last table of a section, and what its cells are sorted by."""
    part = page.partition(f'<section id="{section}">')[2].partition("</section>")[0].rpartition("<table")[2]
    heads = [html.unescape(text) for text in re.findall(r"<th [^>]*>(.*?)</th>", part)]
    rows = re.findall(r"<tr>(<td.*?)</tr>", part)
    return heads, [[html.unescape(x) for x in re.findall(r'data-value="(.*?)"', row)] for row in rows]


@pytest.fixture(scope="module")
def reports(folders: dict[str, Path]) -> dict[str, str]:
    return {name: agents.report(folder).read_text() for name, folder in folders.items()}


@pytest.mark.parametrize("kind", ["saved", "blocks", "sums"])
def test_the_numbers_of_a_report_are_those_of_the_summary(
    kind: str, folders: dict[str, Path], reports: dict[str, str]
) -> None:
    page = reports[kind]
    summary = agents.results(folders[kind]).summary()
    heads, rows = cells(page, "all-numbers")
    assert heads == list(summary.columns)
    assert len(rows) == len(summary) == 4
    for row, (_, expected) in zip(rows, summary.iterrows(), strict=True):
        for text, value in zip(row, expected, strict=True):
            if text == "":
                assert value is None or str(value) in ("<NA>", "nan")
            elif isinstance(value, float):
                assert float(text) == value
            else:
                assert text == str(value)
    heads, rows = cells(page, "comparison")
    difference = agents.results(folders[kind]).compare("uniform", "lsa")
    assert [row[0] for row in rows] == ["uniform"]
    assert float(rows[0][1]) == pytest.approx(difference.difference, rel=1e-3)
    assert page.count("<svg") == 2
    assert len(set(re.findall(r'\bid="(.*?)"', page))) == len(re.findall(r'\bid="(.*?)"', page))
    for name in re.findall(r'href="#(.*?)"', page):
        assert f'id="{name}"' in page


def test_the_command_of_a_report_makes_the_same_rows(
    folders: dict[str, Path], reports: dict[str, str], capsys: Any, tmp_path: Path
) -> None:
    for kind, folder in folders.items():
        told = re.search(r"<pre><code>(bandit-envs .*?)</code></pre>", reports[kind])
        assert told is not None
        words = shlex.split(html.unescape(told[1]))
        assert words == shlex.split(command_of(agents.results(folder), folder))
        assert words[-1] == str(folder)
        assert main([*words[1:-1], str(tmp_path / kind), "--no-progress"]) == 0
        again = agents.results(tmp_path / kind).summary().drop(columns="pulls_per_second")
        assert again.equals(agents.results(folder).summary().drop(columns="pulls_per_second"))
    capsys.readouterr()


def test_the_command_of_keywords_that_are_no_words(tmp_path: Path) -> None:
    kwargs = {"instance": {"distribution": "bernoulli", "mean": [0.2, 0.7]}, "budget": 9, "shuffle_arms": True}
    result = agents.evaluate(["apt(tolerance=0.05)"], "Threshold", episodes=2, env_kwargs=kwargs)
    command = parse(shlex.split(command_of(result, tmp_path))[1:])
    assert command.env_kwargs() == kwargs  # type: ignore[attr-defined]


def test_the_report_of_a_reproduction_shows_its_claims(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    entrants = {"good": "lsa", "poor": "uniform"}
    panel = Panel("p", "bandit_envs/Threshold-v0", TAO, [50, 200], entrants, 60, "misclassified", "regret")
    better, worse = Claim("p", "good", "poor"), Claim("p", "good", "poor", larger=True)
    quotes = [Quote("better", "good is better", [better]), Quote("worse", "it is worse", [worse])]
    figure = Figure("tiny-figure-1", "Nobody, NoConf 2026, Figure 1", [panel], quotes)
    monkeypatch.setitem(FIGURES, figure.name, figure)
    monkeypatch.setitem(PAPERS, "tiny", [figure])
    folder = tmp_path / "figure"
    assert main(shlex.split(f"reproduce tiny-figure-1 --episodes 4 --out {folder} --no-progress")) == 0
    page = agents.report(folder).read_text()
    card = scorecard(read_table(folder / "verdicts.csv"), ["quote"])
    assert re.findall(r'<span class="verdict" data-verdict="(.*?)"', page) == card["verdict"].tolist()
    heads, rows = cells(page, "all-points")
    points = read_table(folder / "points.csv")
    assert heads == list(points.columns)
    assert [float(row[heads.index("mean")]) for row in rows] == points["mean"].tolist()[: len(rows)]
    assert "bandit-envs reproduce tiny-figure-1 --episodes 4 --seed 0" in page
    assert "Made with bandit-envs" in page
    (folder / "points.csv").unlink()
    assert main(["report", str(folder)]) == 2
    assert "holds no complete reproduction: points.csv missing" in capsys.readouterr().err


def test_what_is_wrong_with_a_report_is_told(folders: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "letter.html").write_text("<p>dear all</p>")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    good = folders["saved"]
    for line, told in (
        (f"report {tmp_path / 'nowhere'}", "nowhere is no folder"),
        (f"report {tmp_path / 'file'}", "file is no folder"),
        (f"report {tmp_path / 'empty'}", "empty holds no evaluation"),
        (f"report {good} --out {tmp_path / 'a.pdf'}", "must be .html"),
        (f"report {good} --out {tmp_path / 'letter.html'}", "is there already, and no page of bandit-envs"),
        (f"report {good} --out {tmp_path / 'file' / 'a.html'}", "there is no folder"),
        (f"race tao2019-1 --agents lsa --budget 20 --out {tmp_path / 'letter.html'}", "is there already, and no page"),
        (f"plot {good} --size huge", "size must be one of"),
    ):
        assert main(shlex.split(line)) == 2, line
        err = capsys.readouterr().err
        assert told in err
        assert len(err.splitlines()) == 1
    assert (tmp_path / "letter.html").read_text() == "<p>dear all</p>"
    assert main(["report", str(good), "--out", str(tmp_path / "letter.html"), "--force"]) == 0
    assert main(["report", str(good), "--out", str(tmp_path / "letter.html")]) == 0  # a page of ours by now
    assert main(["report", str(good), "--out", str(tmp_path / "a.html")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"wrote {tmp_path / 'a.html'}"


# For papers -----------------------------------------------------------------------------------------------------------


def test_latex_is_escaped_and_has_the_numbers_of_the_summary(tmp_path: Path) -> None:
    labels = {"a_b & 50 %": "lsa", "[x]": "uniform"}
    result = agents.evaluate(labels, "Threshold", episodes=50, at=[50, 200], env_kwargs=TAO)
    text = result.to_latex(caption="50 % of #1", label="tab:a_b")
    lines = text.splitlines()
    assert lines[0] == r"\begin{table}"
    assert lines[2].startswith(r"\begin{tabular}{lr")
    assert [line for line in lines if line.endswith("rule")] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"\caption{50 \% of \#1}" in lines
    assert r"\label{tab:a_b}" in lines
    rows = [line.removesuffix(r" \\").split(" & ") for line in lines if line.endswith(r"\\")]
    assert len({len(re.split(r"(?<!\\)&", line)) for line in lines if line.endswith(r"\\")}) == 1
    summary = result.summary()
    assert len(rows) == 1 + len(summary)
    for line, (_, row) in zip([line for line in lines if line.endswith(r"\\")][1:], summary.iterrows(), strict=True):
        assert line.startswith({"a_b & 50 %": r"a\_b \& 50 \% &", "[x]": "{[}x{]} &"}[row["agent"]])
        assert f"{row['score']:.4f} {{[}}{row['score_low']:.4f}, {row['score_high']:.4f}{{]}}" in line
    assert result.to_latex().splitlines()[0].startswith(r"\begin{tabular}")
    signs = r"\textbackslash{}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}\{\}\$"
    assert escaped("\\~^<>|{}$") == signs
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("no LaTeX: the table was not set")
    page = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{text}\end{{document}}"
    (tmp_path / "a.tex").write_text(page)
    done = subprocess.run([program, "-interaction=nonstopmode", "a.tex"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


SIZES = [("column", 3.3, 8, [50, 100, 200]), ("page", 6.8, 9, None), ("screen", 7.2, 10, [50, 200])]


@pytest.mark.parametrize(("size", "width", "points", "at"), SIZES)
def test_figures_fit_and_hold_their_fonts(size: str, width: float, points: int, at: Any, tmp_path: Path) -> None:
    result = agents.evaluate(["lsa", "uniform"], "Threshold", episodes=30, at=at, env_kwargs=TAO)
    figure = result.plot("misclassified", path=tmp_path / "a.pdf", size=size)
    assert figure.get_figwidth() == width
    (ax,) = figure.axes
    assert ax.xaxis.label.get_fontsize() == points
    assert {text.get_fontsize() for legend in figure.legends for text in legend.get_texts()} <= {points}
    data = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in data  # TrueType
    assert b"/Type3" not in data
    figure.canvas.draw()
    box, inside = figure.bbox, ax.get_tightbbox()
    box = box.padded(1)  # to a pixel
    assert box.x0 <= inside.x0
    assert inside.x1 <= box.x1
    assert box.y0 <= inside.y0
    assert inside.y1 <= box.y1
    with pytest.raises(ValueError, match="size must be one of"):
        plot(result, size="huge")


# In a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A file with a page, made where it is first asked for."""
    root = tmp_path_factory.mktemp("pages")

    @functools.cache
    def page(name: str) -> Path:
        out = root / f"{name}.html"
        if name == "few":
            agents.race(RACERS, "Threshold", env_kwargs=TAO, seed=3, out=out)
        elif name == "many":
            agents.race(["lsa", "uniform", "apt"], "Threshold", env_kwargs=MANY, out=out, frames=30)
        elif name == "plane":
            agents.race(["md-apt", "uniform"], "Feasible", env_kwargs=PLANE, out=out)
        else:
            how: dict[str, Any] = {"episodes": 60, "at": [20, 50, 100, 200], "env_kwargs": TAO}
            result = agents.evaluate(["lsa", "uniform", "apt"], "Threshold", **how)
            agents.report(result.save(root / "evaluation"), out)
        return out

    return page


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
@pytest.mark.parametrize("name", ["few", "many", "plane"])
def test_a_race_in_the_browser(name: str, width: int, scheme: str, browser: Any, pages: Callable[[str], Path]) -> None:
    data = data_of(pages(name).read_text())
    last = len(data["at"]) - 1
    for view in opened(browser, pages(name), width, scheme):

        def told(view: Any = view) -> list[str]:
            return [canvas.get_attribute("aria-label") for canvas in view.query_selector_all("#agents canvas")]

        assert len(told()) == len(data["agents"])
        assert view.get_attribute("#slider", "max") == str(last)
        assert view.input_value("#slider") == "0"
        view.keyboard.press("ArrowRight")
        assert view.input_value("#slider") == "1"
        assert view.inner_text("#count").startswith(f"{data['at'][1]:,} of")
        view.keyboard.press("End")
        assert view.input_value("#slider") == str(last)
        for label, one in zip(told(), data["agents"], strict=True):
            assert label.startswith(f"arms of {one['label']}: {one['end']:,} pulls")
            assert label.endswith("ended")
        view.fill("#slider", str(last // 2))
        assert view.inner_text("#count").startswith(f"{data['at'][last // 2]:,} of")
        shot(view, f"race-{name}-{width}-{scheme}")
        view.keyboard.press("Home")
        view.select_option("#speed", "4")
        view.focus("main")
        view.click("#play")
        assert view.inner_text("#play") == "Pause"
        view.wait_for_function(f"document.getElementById('slider').value === '{last}'")
        view.wait_for_function("document.getElementById('play').textContent === 'Play'")
        view.evaluate(f"location.hash = '{data['at'][last // 2]}'")
        view.wait_for_function(f"document.getElementById('slider').value === '{last // 2}'")
        before = view.evaluate("document.querySelector('#agents canvas').toDataURL()")
        view.uncheck("#truth")
        assert view.evaluate("document.querySelector('#agents canvas').toDataURL()") != before
        small = "() => [...document.querySelectorAll('button, select')].filter(one => one.clientHeight < 40).length"
        assert view.evaluate(small) == 0


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_report_in_the_browser(width: int, scheme: str, browser: Any, pages: Callable[[str], Path]) -> None:
    for view in opened(browser, pages("report"), width, scheme):
        shot(view, f"report-{width}-{scheme}")
        table = view.locator("#results table")
        column = table.locator("th").all_inner_texts().index("misclassified")

        def values(table: Any = table, column: int = column) -> list[float]:
            return [
                float(text.replace(",", "")) for text in table.locator(f"td:nth-child({column + 1})").all_inner_texts()
            ]

        first = values()
        table.locator("th button").nth(column).click()
        assert values() == sorted(first)
        table.locator("th button").nth(column).click()
        assert values() == sorted(first, reverse=True)
        assert table.locator("th").nth(column).get_attribute("aria-sort") == "descending"


# The documentation ----------------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"


def test_the_races_of_the_documentation_are_written_by_its_commands(tmp_path: Path, data_folder: Path) -> None:
    text = (DOCS / "pictures.md").read_text().replace("\\\n", " ")
    lines = re.findall(r"^(?:    )?bandit-envs (race .*)$", text, re.MULTILINE)
    names = {shlex.split(line)[-1] for line in lines}
    assert names == {f"docs/races/{path.name}" for path in (DOCS / "races").glob("race-*")}
    assert {Path(name).name for name in names} == set(re.findall(r'(?:href|src)="(race-[\w-]+\.html)', text))
    for line in lines:
        words = shlex.split(line)
        kept = DOCS.parent / words[-1]
        assert kept.stat().st_size < 2_000_000
        words[-1] = str(tmp_path / kept.name)
        assert main(words) == 0
        assert shortened(data_of(Path(words[-1]).read_text())) == shortened(data_of(kept.read_text()))
