"""Pictures and tables of evaluations: what they show is what the rows say, and they need no display."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from colours import SEEN_BY, lab
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from refusals import table

import agents
from agents.evaluation import plots, report, statistics
from agents.evaluation.plots import plot
from agents.evaluation.result import Evaluation
from agents.figures import FIGURES, reproduce
from agents.figures.catalogue import PAPERS
from agents.figures.panels import Panel

AGENTS = ["lsa", "uniform", "apt(tolerance=0.05)"]


def evaluate(names: Any = AGENTS, episodes: int = 60, **arguments: Any) -> Evaluation:
    kwargs = {"instance": "tao2019-1", "budget": 400}
    given = {"env_kwargs": kwargs, "progress": False} | arguments
    return agents.evaluate(names, "bandit_envs/Threshold-v0", episodes=episodes, **given)


@pytest.fixture(scope="module")
def checkpoints() -> Evaluation:
    return evaluate(at=[20, 100, 200, 400])


@pytest.fixture(scope="module")
def single() -> Evaluation:
    return evaluate()


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# Lines --------------------------------------------------------------------------------------------------------------


def test_lines_are_the_means_and_bands_the_intervals(checkpoints: Evaluation) -> None:
    for metric in ("error_rate", "misclassified"):
        figure = plot(checkpoints, metric)
        (ax,) = figure.axes
        assert len(ax.lines) == len(ax.collections) == 3
        assert texts(figure) == AGENTS
        assert ax.get_xlabel() == "pulls"
        assert "95 % interval" in ax.get_ylabel()
        for agent, line, band in zip(AGENTS, ax.lines, ax.collections, strict=True):
            x, y = line.get_data()
            assert list(x) == [20, 100, 200, 400]
            rows = checkpoints.episodes[checkpoints.episodes["agent"] == agent]
            edges = band.get_paths()[0].vertices
            for t, mean in zip(x, y, strict=True):
                values = rows[rows["at"] == t]
                errors = int((~values["correct"]).sum())
                if metric == "error_rate":
                    expected, limits = errors / 60, statistics.clopper_pearson(errors, 60)
                else:
                    expected = values[metric].mean()
                    limits = statistics.bootstrap_mean(values[metric])
                assert mean == pytest.approx(expected)
                at_t = edges[edges[:, 0] == t, 1]
                assert (at_t.min(), at_t.max()) == pytest.approx(limits)


def test_runs_at_several_budgets_are_lines_against_the_budget() -> None:
    result = evaluate(["ucbe", "lsa"], budgets=[20, 40, 4000], episodes=10)
    (ax,) = plot(result, "score").axes
    assert ax.get_xlabel() == "budget (pulls)"
    assert [list(line.get_xdata()) for line in ax.lines] == [[20, 40, 4000]] * 2
    assert ax.get_xscale() == "log"  # the last is more than 100 times the first


def test_a_mean_of_zero_is_drawn_hollow_at_half_an_error_on_a_logarithmic_axis() -> None:
    result = evaluate(["lsa"], at=[20, 400, 3000], episodes=20, env_kwargs={"instance": "tao2019-1", "budget": 3000})
    assert result.summary()["error_rate"].tolist()[-1] == 0
    (ax,) = plot(result, "error_rate", log=True).axes
    y = ax.lines[0].get_ydata()
    rates = result.summary()["error_rate"].tolist()
    assert y.tolist() == pytest.approx([rate or 1 / 40 for rate in rates])
    (hollow,) = [part for part in ax.collections if len(part.get_offsets()) and part.get_paths()[0].vertices.max() <= 1]
    zeros = [[x, 1 / 40] for x, rate in zip([20, 400, 3000], rates, strict=True) if not rate]
    assert hollow.get_offsets().tolist() == zeros
    assert hollow.get_facecolor().tolist() == [[1.0, 1.0, 1.0, 1.0]]
    assert [(text.get_text(), text.get_position()[1]) for text in ax.texts] == [("0 of 20", 1 / 40)]
    assert ax.get_ylim()[0] < 1 / 40
    band = ax.collections[0].get_paths()[0].vertices
    assert band[band[:, 0] == 3000, 1].max() == pytest.approx(statistics.clopper_pearson(0, 20)[1])
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[0] > 0


def test_transforms_apply_to_means_and_limits(checkpoints: Evaluation) -> None:
    (ax,) = plot(checkpoints, "misclassified", transform=lambda mean: -mean, label="minus").axes
    (plain,) = plot(checkpoints, "misclassified").axes
    for line, other in zip(ax.lines, plain.lines, strict=True):
        assert list(line.get_ydata()) == list(-other.get_ydata())
    for band, other_band in zip(ax.collections, plain.collections, strict=True):
        a, b = (one.get_paths()[0].vertices[:, 1] for one in (band, other_band))
        assert (a.min(), a.max()) == (-b.max(), -b.min())
    assert ax.get_ylabel() == "minus (95 % interval)"
    zero = evaluate(["lsa"], at=[20, 3000], episodes=20, env_kwargs={"instance": "tao2019-1", "budget": 3000})
    (logs,) = plot(zero, "error_rate", transform=np.log).axes
    assert logs.lines[0].get_ydata()[-1] == pytest.approx(np.log(1 / 40))  # no error in 20 episodes
    assert [text.get_text() for text in logs.texts] == ["0 of 20"]
    assert plot(zero, "error_rate").axes[0].lines[0].get_ydata()[-1] == 0  # which this axis can show
    assert not plot(zero, "error_rate").axes[0].texts
    end = evaluate(["lsa"], episodes=20, env_kwargs=zero.settings["env_kwargs"])
    (bar,) = plot(end, "error_rate", log=True).axes
    assert [text.get_text() for text in bar.texts] == ["0 of 20"]
    (logs,) = plot(checkpoints, "error_rate", transform=np.log).axes
    assert logs.get_ylabel() == "log(error rate) (95 % interval)"
    assert np.isfinite(logs.get_ylim()).all()


def test_styles_of_many_agents_differ() -> None:
    seen = {(style["color"], str(style["linestyle"])) for style in map(plots.style, range(40))}
    assert len(seen) == 40
    assert len({style["marker"] for style in map(plots.style, range(9))}) == 9


@pytest.mark.parametrize("who", SEEN_BY)
def test_colours_are_told_apart_by_everybody(who: str) -> None:
    """A distance of 15 is several times what can be told apart side by side; grey and green once were at 10."""
    colours = [lab(colour, SEEN_BY[who]) for colour in plots.COLOURS]
    assert len(colours) == 12  # no figure has more lines in one panel
    assert min(np.linalg.norm(a - b) for i, a in enumerate(colours) for b in colours[:i]) > 15
    assert max(colour[0] for colour in colours) < 78  # on white


def test_the_distance_of_colours_has_teeth() -> None:
    near = [np.linalg.norm(lab("#7F7F7F", seen) - lab("#009E73", seen)) for seen in SEEN_BY.values()]
    assert min(near) < 15 < max(near)


def test_an_agent_has_one_style_in_all_figures_of_a_paper() -> None:
    # Groups of figures, which have too many agents together.
    apart = {"tao2019": 2, "kalyanakrishnan2010": 2, "mason2020": 2, "fixed-confidence": 4}
    for paper, of_a_paper in PAPERS.items():
        orders = {tuple(figure.order) for figure in of_a_paper}
        assert len(orders) == apart.get(paper, 1)
        for order in orders:
            assert len(order) <= len(plots.COLOURS)  # so that each has a colour of its own
            alike = [figure for figure in of_a_paper if tuple(figure.order) == order]
            assert {label for figure in alike for panel in figure.panels for label in panel.agents} == set(order)


def test_a_panel_alone_looks_as_it_does_among_others() -> None:
    """Whatever is drawn beside them: in the figure after it, RACING has the colours of neither UNIFORM nor ADAPT."""
    looks: dict[str, set[str]] = {}
    for name, panels in (("2", ["2b: NSS"]), ("3", ["3b: RACING"]), ("3", ["10 arms, epsilon 0"]), ("1", None)):
        figure = FIGURES[f"kalyanakrishnan2010-figure-{name}"]
        few = [replace(one, budgets=[1000, 2000]) if isinstance(one, Panel) else one for one in figure.panels]
        result = reproduce(replace(figure, panels=few, claims=[]), episodes=2, panels=panels, progress=False)
        for ax in result.plot().axes:
            for line in ax.lines:
                label = ax.get_title() if name == "1" else line.get_label()
                if line.get_linestyle() != "--" or name != "1":  # but the cutoff
                    looks.setdefault(label, set()).add(line.get_color())
    assert all(len(colours) == 1 for colours in looks.values()), looks
    assert len({*map(tuple, looks.values())}) == len(looks) == 9


def test_the_axes_that_are_given_are_returned_and_only_they_are_drawn_into(checkpoints: Evaluation) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot(checkpoints, ax=left) is figure
    assert [text.get_text() for text in left.get_legend().get_texts()] == AGENTS
    left.clear()
    assert checkpoints.plot("score", ax=right, title="mine", label={"uniform": "equal shares"}) is right
    assert (left.has_data(), right.get_title()) == (False, "mine")
    assert [text.get_text() for text in right.get_legend().get_texts()] == [AGENTS[0], "equal shares", AGENTS[2]]
    assert right.get_ylabel() == "mean score (95 % interval)"


def test_agents_are_renamed_in_the_figure_alone(checkpoints: Evaluation, single: Evaluation) -> None:
    """Also where no rows are kept; the lines, and their looks, stay."""
    names = {"lsa": "LSA", "apt(tolerance=0.05)": "LSA'"}
    sums = evaluate(at=[20, 100, 200, 400], rows="none")
    for result in (checkpoints, sums):
        plain, renamed = (result.plot("misclassified", label=label) for label in (None, names))
        assert texts(renamed) == ["LSA", "uniform", "LSA'"]
        for one, other in zip(plain.axes[0].lines, renamed.axes[0].lines, strict=True):
            assert one.get_xydata().tolist() == other.get_xydata().tolist()
            assert one.get_color() == other.get_color()
        assert result.agents == AGENTS
    (bars,) = single.plot(label=names).axes
    assert [label.get_text() for label in bars.get_yticklabels()] == ["LSA", "uniform", "LSA'"]


test_bad_calls = table(
    {
        "a label that is a number": (lambda: evaluate(episodes=2).plot(label=5), "label", 5),
        "a label of nobody": (lambda: evaluate(episodes=2).plot(label={"lsaa": "x"}), "label", "lsaa", "lsa"),
        "a name of two": (lambda: evaluate(episodes=2).plot(label={"lsa": "uniform"}), "label", "'uniform'"),
        "a name that is a number": (lambda: evaluate(episodes=2).plot(label={"lsa": 5}), "label", 5),
        "a title that is a number": (lambda: evaluate(episodes=2).plot(title=5), "title", 5),
        "axes that are none": (lambda: evaluate(episodes=2).plot(ax="right"), "ax", "right"),
    }
)


# Single points --------------------------------------------------------------------------------------------------------


def test_bars_for_a_single_point(single: Evaluation) -> None:
    figure = plot(single, "misclassified")
    (ax,) = figure.axes
    means = single.summary()["misclassified"].tolist()
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(means)
    assert [label.get_text() for label in ax.get_yticklabels()] == AGENTS
    assert [float(text.get_text()) for text in ax.texts] == pytest.approx(means, rel=0.01)
    for agent, line in zip(AGENTS, ax.lines, strict=True):
        values = single.episodes[single.episodes["agent"] == agent]["misclassified"]
        assert tuple(line.get_xdata()) == pytest.approx(statistics.bootstrap_mean(values))
    assert ax.get_xlim()[0] == 0
    assert figure.legends == []
    assert ax.get_title() == "Threshold · tao2019-1 · budget 400 · 60 episodes"
    assert plot(single, title="").axes[0].get_title() == ""


@pytest.mark.parametrize("style", [{"metric": "score"}, {"metric": "f1", "log": True}, {"transform": np.log}])
def test_points_where_bars_from_zero_would_hide_the_differences(single: Evaluation, style: dict[str, Any]) -> None:
    (ax,) = plot(single, **style).axes
    assert not ax.patches
    assert len(ax.lines) == 6  # an interval and a point each


@pytest.mark.parametrize(("episodes", "at"), [(1, [20, 400]), (2, None), (1, None)])
def test_a_handful_of_episodes_can_be_drawn(episodes: int, at: list[int] | None, tmp_path: Path) -> None:
    result = evaluate(["lsa", "uniform"], episodes=episodes, at=at)
    for metric, log in (("error_rate", True), ("total_pulls", True)):
        plot(result, metric, log=log, path=tmp_path / "few.png")


# Files --------------------------------------------------------------------------------------------------------------


def test_files_are_of_the_format_of_their_suffix_reproducible_and_undated(single: Evaluation, tmp_path: Path) -> None:
    for suffix, magic in {".PNG": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}.items():
        first, second = (tmp_path / f"{name}{suffix}" for name in "ab")
        single.plot(path=first)
        single.plot(path=second)
        assert first.read_bytes().startswith(magic)
        assert first.read_bytes() == second.read_bytes()
        assert b"dc:date" not in first.read_bytes()
        assert b"CreationDate" not in first.read_bytes()


def test_bad_input_is_named(checkpoints: Evaluation, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must be \.png, \.svg, \.pdf, got .*figure\.gif"):
        plot(checkpoints, path=tmp_path / "figure.gif")
    with pytest.raises(ValueError, match=r"must be \.png"):
        checkpoints.plot(path="figure")
    with pytest.raises(ValueError, match="metric must be one of error_rate, score, misclassified.* got 'speed'"):
        plot(checkpoints, "speed")
    with pytest.raises(ValueError, match="level"):
        plot(checkpoints, level=1.5)
    assert list(tmp_path.iterdir()) == []


def test_no_window_no_global_state(tmp_path: Path) -> None:
    code = """
import sys, matplotlib, agents
def settings():  # reading "backend" would itself import pyplot
    return {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
result = agents.evaluate("uniform", "bandit_envs/Threshold-v0", episodes=3, at=[10, 20])
for suffix in ("png", "svg", "pdf"):
    result.plot(path=sys.argv[1] + "/figure." + suffix)
assert "matplotlib.pyplot" not in sys.modules
assert settings() == before
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.iterdir())) == 3


def test_panels_of_a_figure(tmp_path: Path) -> None:
    result = reproduce("tao2019-figure-1", episodes=3, panels=["Setup 1"], progress=False)
    figure = result.plot(tmp_path / "figure.svg")
    (ax,) = figure.axes
    assert ax.get_title() == "Setup 1"
    assert len(ax.lines) == len(texts(figure)) == 11
    assert ax.get_ylabel().startswith("ln(regret / K)")
    y = ax.lines[texts(figure).index("Uniform")].get_ydata()
    rows = result.results["Setup 1"].summary()
    regret = rows[rows["agent"] == "Uniform"]["misclassified"].to_numpy()
    assert y == pytest.approx(np.log(np.where(regret > 0, regret, 1 / 6) / 10))  # half an arm in 3 episodes
    assert (tmp_path / "figure.svg").is_file()


# Tables -------------------------------------------------------------------------------------------------------------


def test_report_tells_what_the_summary_holds(checkpoints: Evaluation, single: Evaluation) -> None:
    text = report.report(checkpoints, "error_rate")
    head, _, names, rule, *rows = text.splitlines()
    assert head == "Threshold(threshold=0.5, tolerance=0.0) · 10 arms of tao2019-1 · budget 400 · 60 episodes of seed 0"
    assert names.split()[:2] == ["agent", "at"]
    assert set(rule) == {"─", " "}
    for row, (_, summary) in zip(rows, checkpoints.summary().iterrows(), strict=False):
        assert row.split()[:2] == [summary["agent"], str(summary["at"])]
        assert f"{summary['error_rate']:.4f} [{summary['error_low']:.4f}, {summary['error_high']:.4f}]" in row
        assert f"{summary['score']:.4f} [{summary['score_low']:.4f}, {summary['score_high']:.4f}]" in row
    assert len({len(row) for row in rows[:12]}) == 1
    assert "  at  " not in report.report(single)
    assert "misclassified" in names
    assert "f1" in report.summary(single, "f1")


@pytest.mark.parametrize(
    ("arguments", "metric", "column"),
    [
        ({"budget": 30}, "score", False),
        ({"budget": 30, "delta": 0.2}, "error_rate", True),
        ({"delta": 0.2, "tolerance": 0.4, "max_pulls": 5000}, "total_pulls", True),
    ],
)
def test_what_tells_agents_apart_is_shown_compared_and_drawn(
    arguments: dict[str, Any], metric: str, column: bool
) -> None:
    """Defect: with 20 arms and a budget, a table and a figure of error rates of 98 % for all agents."""
    names = ["evidence", "uniform(stop='certificate')" if "delta" in arguments else "uniform"]
    result = agents.evaluate(names, "Threshold", episodes=20, env_kwargs={"instance": "tao2019-3"} | arguments)
    assert result.plot().axes[0].get_xlabel().startswith(plots.metric_label(metric))
    assert result.compare(*names) == result.compare(*names, metric)
    text = report.report(result)
    assert f"{metric.replace('_', ' ')} less that of evidence" in text
    assert ("error rate [" in text) == column
    assert "error rate [" in report.report(result, "error_rate")
    assert "misclassified" in text


def test_comparison_has_a_line_for_every_other_agent(checkpoints: Evaluation) -> None:
    text = report.comparison(checkpoints, "misclassified", "uniform")
    assert "at 400 pulls" in text
    assert "misclassified less that of uniform" in text
    for agent in ("lsa", "apt(tolerance=0.05)"):
        (line,) = [line for line in text.splitlines() if line.startswith(f"{agent} ")]
        d = checkpoints.compare(agent, "uniform", "misclassified")
        assert f"{d.difference:+.4g}" in line
        assert f"[{d.low:+.4g}, {d.high:+.4g}]" in line
        assert line.endswith("< 0.001") == (d.p_value < 1e-3)
    assert "less that of lsa" in report.comparison(checkpoints)
    assert report.comparison(evaluate("lsa", episodes=2)) == ""
    with pytest.raises(ValueError, match="agent must be one of"):
        report.comparison(checkpoints, reference="nobody")
    stopping = {"instance": {"distribution": "gaussian", "mean": [-3.0, 3.0]}, "threshold": 0.0, "delta": 0.1}
    both = agents.evaluate(["evidence", "track-and-stop"], "Threshold", episodes=3, env_kwargs=stopping)
    assert "total pulls less that of evidence" in report.report(both)
    assert "score less that of evidence" in report.report(both, "score")


def test_long_tables_are_cut_to_the_last_row_of_each_agent() -> None:
    result = evaluate(["lsa", "uniform"], at=range(10, 10 + report.MOST_ROWS), episodes=2)
    text = report.summary(result)
    assert f"the last of {report.MOST_ROWS} rows" in text
    assert len(text.splitlines()) == 7


def test_columns_come_where_they_say_something() -> None:
    kwargs = {"instance": "tao2019-1", "delta": 0.1, "max_pulls": 30}
    text = report.summary(evaluate("uniform", env_kwargs=kwargs))
    assert "truncated" in text
    assert "none stopped" in text
    assert "delta 0.1" in text
    assert "x lower bound" not in text
    result = evaluate("uniform", env_kwargs=kwargs)
    result.runs[0].lower_bound = 15.0
    assert "x lower bound" not in report.summary(result)  # no episode was ended by the agent
    result.runs[0].columns["truncated"][:], result.runs[0].stops = False, True
    assert "x lower bound" in report.summary(result)


def test_tables_are_aligned_and_wrapped() -> None:
    rows = [["a", "1", "one two three four five six seven"], ["bbb", "22", "eight"]]
    assert report.table(["x", "n", "words"], rows, right=(1,)).splitlines() == [
        "x     n  words",
        "───  ──  ─────────────────────────────────",
        "a     1  one two three four five six seven",
        "bbb  22  eight",
    ]
    assert report.table(["x", "n", "words"], rows, width=20).splitlines()[2:5] == [
        "a    1   one two three",
        "         four five six",
        "         seven",
    ]


LONG = ("lsa(alpha=2, stop='certificate')", "apt", "my_module_with_a_name:MyVeryLongClassNameOfAnAgent(alpha=2)")


@pytest.mark.parametrize(("size", "at"), [("screen", None), ("column", [20, 60]), ("column", None), ("page", [20, 60])])
def test_long_names_and_titles_are_within_the_figure(size: str, at: list[int] | None) -> None:
    """All of a text can be read, and the axes keep more than half of the width."""
    agents_of = dict(zip(LONG, ("lsa", "apt", "uniform"), strict=True))
    given = {"budget": 60, "instance": "tao2019-1"}
    evaluation = agents.evaluate(agents_of, "Threshold", episodes=20, at=at, env_kwargs=given, progress=False)
    for title in (None, "A title of many words that somebody has written by hand for the figure of a paper " * 2):
        figure = evaluation.plot("misclassified", size=size, title=title)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        whole: Any = figure.bbox
        (ax,) = figure.axes
        shown: list[Text] = [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label]
        shown += [one for legend in figure.legends for one in legend.get_texts()]
        for one in shown:
            box = one.get_window_extent(canvas.get_renderer())
            assert box.x0 >= whole.x0 - 3, one
            assert box.x1 <= whole.x1 + 3, one
            assert box.y1 <= whole.y1 + 3, one
        words = " ".join("".join(one.get_text().split()) for one in shown)
        assert all("".join(name.split()) in words for name in LONG)
        assert ax.get_position().width > 0.5
