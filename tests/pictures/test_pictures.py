"""Pictures of episodes: what they show is what the statistics are; they move in windows, terminals, GIFs and films."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import agents
from agents.cli import main
from agents.pictures.watching import films, lines, moments, watch
from bandit_envs import Polyhedron, Task, Threshold, TopK
from bandit_envs.envs import Viewer, boundary_of, drawing, limits_of, outline
from bandit_envs.instances.polyhedra import simplex

TAO: dict[str, Any] = {"instance": "tao2019-1", "budget": 200}
PLANE: dict[str, Any] = {"budget": 200}  # ten arms of two dimensions


# Views ----------------------------------------------------------------------------------------------------------------


def test_the_boundary_is_the_mean_that_parts_the_answer_from_the_rest() -> None:
    means = np.array([0.1, 0.8, 0.5, 0.6])
    assert boundary_of(Threshold(threshold=0.3), means) == 0.3
    assert boundary_of(TopK(k=2), means) == pytest.approx(0.55)  # halfway between 0.5 and 0.6
    assert boundary_of(TopK(k=1), np.array([np.nan, 0.8, 0.4, np.nan])) == pytest.approx(0.6)
    assert boundary_of(TopK(k=2), np.full(4, np.nan)) is None


class Band(Threshold):
    """All arms with a mean near 1/2: no single mean parts them from the others."""

    name, boundary = "Band", None  # type: ignore[assignment]

    def margin(self, means: Any) -> Any:
        return 0.1 - np.abs(np.asarray(means) - 0.5)


def test_where_no_mean_parts_the_arms_their_margins_are_shown() -> None:
    means = np.array([0.1, 0.45, 0.55, 0.9])
    problem = Band(threshold=0.5)
    problem.boundary = None
    assert boundary_of(problem, means) is None
    viewer = Viewer(Task("Threshold", {"threshold": 0.5}, 4), problem)
    view = viewer.view(np.full(4, 9), means, np.full(4, 0.09))
    assert viewer.value == "margin"
    assert view.boundary == 0
    assert view.value.tolist() == pytest.approx([-0.3, 0.05, 0.05, -0.3])
    assert view.reach.tolist() == pytest.approx([0.2] * 4)  # 2 sqrt(0.09 / 9)
    assert Viewer(Task("Threshold", {"threshold": 0.5}, 4)).value == "mean"


def test_a_view_tells_what_was_seen() -> None:
    view = Viewer(Task("TopK", {"k": 1}, 3)).view([4, 0, 1], [0.75, 0.0, 0.0], [0.16, 0.0, 0.0])
    assert view.pulls.tolist() == [4, 0, 1]
    assert np.isnan(view.value[1])
    assert view.reach.tolist() == pytest.approx([0.4, 1.0, 1.0])  # one sample, or none: by sigma, 1/2
    assert view.told.tolist() == [True, False, False]
    assert view.answer.tolist() == [True, False, False]
    other = np.array([False, False, True])
    assert Viewer(Task("TopK", {"k": 1}, 3)).view([4, 0, 1], [0.75, 0, 0], [0.16, 0, 0], other).answer is other


def area(corners: np.ndarray) -> float:
    x, y = corners.T
    return float(abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2)


def test_the_outline_of_a_polyhedron_is_its_part_in_the_box() -> None:
    box = np.zeros(2), np.ones(2)
    corners = outline(Polyhedron([[1.0, 1.0]], [0.5]), *box)  # a triangle
    assert sorted(map(tuple, corners.round(12).tolist())) == [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0)]
    assert area(outline(Polyhedron(*simplex(2, 1.0)), np.full(2, -1.0), np.full(2, 2.0))) == pytest.approx(0.5)
    assert area(outline(Polyhedron([[1.0, 0.0]], [7.0]), *box)) == 1
    assert len(outline(Polyhedron([[1.0, 0.0]], [-1.0]), *box)) == 0
    inside = Polyhedron([[1.0, 2.0], [-1.0, 0.3]], [1.2, -0.1])
    grid = np.random.default_rng(0).random((20_000, 2))
    assert area(outline(inside, *box)) == pytest.approx((inside.margin(grid) >= 0).mean(), abs=0.02)


# Pictures -------------------------------------------------------------------------------------------------------------


def view_of(K: int, D: int = 1) -> tuple[Viewer, Any]:
    """Arms of which a tenth have not been pulled."""
    rng = np.random.default_rng(K)
    shape = (K,) if D == 1 else (K, D)
    scalar, plane = ("Threshold", {"threshold": 0.5}), ("Feasible", {"A": [[1.0, 1.0]], "b": [1.0]})
    viewer = Viewer(Task(*(scalar if D == 1 else plane), K, D))
    pulls = np.where(rng.random(K) < 0.1, 0, rng.integers(1, 90, K))
    return viewer, viewer.view(pulls, rng.random(shape), rng.random(shape) / 4)


@pytest.mark.parametrize(("K", "D"), [(2, 1), (10, 2), (drawing.MANY, 1), (drawing.MANY + 1, 2), (9250, 1)])
def test_pictures_show_all_arms(K: int, D: int) -> None:
    viewer, view = view_of(K, D)
    figure = Figure(figsize=drawing.SIZE)
    drawing.draw(figure, viewer, view, "title")
    top, bottom = figure.axes
    places = [np.asarray(part.get_offsets()) for part in top.collections]
    (shown,) = [one for one in places if len(one) == (view.pulls > 0).sum() and one.any()]
    seen = np.sort(view.value[view.pulls > 0]) if D == 1 else np.sort(view.points[view.pulls > 0], axis=0)
    assert np.allclose(np.sort(shown[:, 1]) if D == 1 else np.sort(shown, axis=0), seen, atol=0)
    assert len(bottom.patches) <= drawing.BARS
    total = sum(bar.get_height() * round(bar.get_width() if K > drawing.MANY else 1) for bar in bottom.patches)
    assert total == pytest.approx(view.pulls.sum())
    texts = [text.get_text() for text in figure.texts]
    assert texts[:2] == ["title", f"{view.answer.sum():,} of {K:,} arms in the answer"]
    assert drawing.image(viewer, view, "title").shape == (480, 640, 3)


@pytest.mark.parametrize(("K", "D"), [(10, 2), (200, 1)])
def test_a_picture_does_not_depend_on_the_one_before(K: int, D: int) -> None:
    viewer, view = view_of(K, D)
    rng = np.random.default_rng(1)
    shape = (K,) if D == 1 else (K, D)
    other = viewer.view(rng.integers(0, 5000, K), rng.random(shape) / 3, rng.random(shape))
    first, second = drawing.image(viewer, view, "one"), drawing.image(viewer, other, "another")
    assert (first != second).any()
    assert (drawing.image(viewer, view, "one") == first).all()
    assert (drawing.image(Viewer(viewer.task), other, "another") == second).all()


def test_limits_show_all_intervals_that_can_be() -> None:
    _, view = view_of(10)
    low, high = limits_of([view], None)
    assert low < np.nanmin(view.value - view.reach)
    assert high > np.nanmax(view.value + view.reach)
    assert limits_of([view], (0.0, 1.0)) == pytest.approx((-0.04, 1.04), abs=0.04)


def test_a_window_is_drawn_by_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Window:
        def show(self, viewer: Any, view: Any, title: str) -> None:
            shown.append((view.pulls.sum(), title))

        def close(self) -> None:
            shown.append("closed")

    monkeypatch.setattr("bandit_envs.envs.env.Window", Window)
    env = gym.make("bandit_envs/Threshold-v0", budget=3, render_mode="human")
    env.reset(seed=0)
    for arm in range(3):
        env.step(arm)
    env.close()
    assert [pulls for pulls, _ in shown[:-1]] == [0, 1, 2, 3]
    assert shown[-2][1] == "Threshold: 3 of 3 pulls, ended"
    assert shown[-1] == "closed"


def test_the_window_shows_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window itself, on a backend that only pretends to have one."""
    import matplotlib.pyplot as plt
    from matplotlib.backends import backend_registry

    paused: list[float] = []
    plt.close("all")  # figures that other tests have left
    plt.switch_backend("agg")
    monkeypatch.setattr(backend_registry, "list_builtin", lambda kind: [])
    monkeypatch.setattr(plt, "pause", paused.append)
    viewer, view = view_of(10)
    window = drawing.Window()
    for _ in range(2):
        window.show(viewer, view, "title")
    (figure,) = map(plt.figure, plt.get_fignums())
    assert len(paused) == len(figure.axes) == 2  # the second picture has taken the place of the first
    window.close()
    assert plt.get_fignums() == []


def test_without_a_display_a_note_tells_what_to_do(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The episode goes on, so that the checkers of Gymnasium, which make all modes, pass there too."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    env = gym.make("bandit_envs/Threshold-v0", budget=3, render_mode="human")
    env.reset(seed=0)
    env.step(0)
    env.close()
    told = capsys.readouterr().err
    assert told.count("needs a window") == 1
    assert "rgb_array" in told


def test_gymnasium_records_films(tmp_path: Path) -> None:
    pytest.importorskip("moviepy")
    env = gym.make("bandit_envs/Threshold-v0", budget=4, render_mode="rgb_array")
    how: dict[str, Any] = {"episode_trigger": lambda episode: True, "disable_logger": True}
    film = gym.wrappers.RecordVideo(env, str(tmp_path / "films"), **how)
    film.reset(seed=0)
    for arm in range(4):
        film.step(arm)
    film.close()
    (made,) = (tmp_path / "films").glob("*.mp4")
    assert made.stat().st_size > 1000


# One episode ----------------------------------------------------------------------------------------------------------


def test_moments_are_spread_evenly_and_reach_the_end() -> None:
    assert moments(3, 240) == [1, 2, 3]
    assert moments(1000, 4) == [250, 500, 750, 1000]
    assert len(moments(10**6, 240)) == 240


@pytest.mark.parametrize(
    ("agent", "env_id", "kwargs"),
    [
        ("lsa", "Threshold", TAO),
        ("ppo", "Threshold", TAO),  # reads beliefs
        ("md-apt", "Feasible", PLANE),
        ("sequential-halving", "BestArm", {"budget": 300}),  # pulls in bulk
        ("lucb", "TopK", {"delta": 0.1, "epsilon": 0.3, "max_pulls": 4000, "k": 2}),  # stops by itself
    ],
)
def test_frames_are_those_of_the_episode(agent: str, env_id: str, kwargs: Any) -> None:
    if agent == "ppo":
        kwargs = kwargs | {"budget": 20}
    (shown,) = films({agent: agent}, env_id, env_kwargs=kwargs, seed=5, episode=2, frames=25)
    trace, pulls = shown.trace, np.array([view.pulls.sum() for view in shown.views])
    assert pulls[0] == 0
    assert (np.diff(pulls) >= 0).all()
    assert pulls[-1] == shown.end == len(trace.arms)
    for t, view, answer in zip(pulls[1:], shown.views[1:], trace.answers, strict=True):
        assert view.answer.tolist() == answer.tolist()
        assert view.pulls.tolist() == np.bincount(trace.arms[:t], minlength=trace.task.K).tolist()
        for k in np.flatnonzero(view.pulls)[:3]:
            mean = trace.samples[:t][trace.arms[:t] == k].mean(axis=0)
            value = mean if shown.viewer.value == "mean" else shown.viewer.problem.margin(mean[None])[0]
            assert view.value[k] == pytest.approx(value)
    result = agents.evaluate(agent, env_id, episodes=3, seed=5, env_kwargs=kwargs).episodes.iloc[2]
    assert (result["total_pulls"], result["score"]) == (shown.end, pytest.approx(trace.score))
    assert trace.verdicts["score"][-1] == pytest.approx(result["score"])
    assert trace.verdicts["correct"][-1] == result["correct"] == trace.correct
    problem = shown.viewer.problem
    assert trace.score == pytest.approx(float(problem.score(trace.answer, trace.means)))


def test_agents_meet_the_same_samples() -> None:
    one, other = films({"a": "lsa", "b": "uniform"}, "Threshold", env_kwargs=TAO, seed=3, frames=10)
    assert one.trace.at.tolist() == other.trace.at.tolist()
    assert one.trace.means.tolist() == other.trace.means.tolist()
    for arm in range(10):
        first, second = (shown.trace.samples[shown.trace.arms == arm] for shown in (one, other))
        n = min(len(first), len(second))
        assert n > 0
        assert first[:n].tolist() == second[:n].tolist()


# The terminal ---------------------------------------------------------------------------------------------------------

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_plain_lines() -> None:
    out = io.StringIO()
    watch("lsa", "Threshold", env_kwargs=TAO, frames=4, out=out)
    text = out.getvalue().splitlines()
    assert "\x1b" not in out.getvalue()
    heads = [f"lsa on Threshold: {n} of 200" for n in (0, 50, 100, 150, 200)]
    assert [line.partition(" pulls")[0] for line in text[:5]] == heads
    assert text[4].endswith("ended")
    assert sum(re.match(r" +\d [* ] ", line) is not None for line in text) == 10


def test_on_a_terminal_it_moves_and_ends_tidily(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    for color, seen in ((None, True), (False, False)):
        out = Terminal()
        shown = watch("lsa", "Threshold", env_kwargs=TAO, frames=5, speed=1000, color=color, out=out)
        text = out.getvalue()
        assert text.startswith("\x1b[?25l")
        assert text.endswith("\x1b[?25h")  # the cursor is there again
        assert text.count("\x1b[H") == 1 + len(shown.views)
        assert ("\x1b[94m" in text) == seen
        assert max(len(line) for line in ESCAPE.sub("", text).splitlines()) <= 80
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    watch("lsa", "Threshold", env_kwargs=TAO, frames=2, speed=1000, out=out)
    assert "\x1b[94m" not in out.getvalue()


def test_the_cursor_comes_back_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agents.pictures.watching.time.sleep", stop)
    out = Terminal()
    with pytest.raises(KeyboardInterrupt):
        watch("lsa", "Threshold", env_kwargs=TAO, frames=5, out=out)
    assert out.getvalue().endswith("\x1b[?25h")


def test_of_many_arms_the_terminal_shows_those_that_matter() -> None:
    kwargs = {"instance": "sampler(arms=300)", "budget": 900}
    (shown,) = films({"lsa": "lsa"}, "Threshold", env_kwargs=kwargs, frames=3)
    text = lines(shown, 3, 80, False, 12)
    assert len(text) == 3 + 12 + 1
    assert text[-1] == "288 of 300 arms are not shown"


def test_a_gif_holds_all_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.gif"
    shown = watch("lsa", "Threshold", env_kwargs=TAO, frames=6, gif=path, speed=20)
    with Image.open(path) as picture:
        assert (picture.size, picture.n_frames, picture.info["duration"]) == ((640, 480), len(shown.views), 50)
    with pytest.raises(ValueError, match=r"must be \.gif, got"):
        watch("lsa", "Threshold", env_kwargs=TAO, gif=tmp_path / "b.png")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("watch tao2019-1 nobody", "nobody"),
        ("watch tao2019-9 lsa", "tao2019-9"),
        ("watch tao2019-1 lsa --instance tao2019-2", "with --instance, or the instance 'tao2019-1' alone"),
        ("watch sampler lsa", "'sampler' was made for no problem"),
        ("watch tao2019-1 st2", "st2 solves"),
        ("watch tao2019-1 lsa --frames 0", "frames must be an integer in [2, "),
        ("watch tao2019-1 lsa --speed 0", "speed must be a number in [0.1, 1000], got 0"),
        ("watch tao2019-1 lsa --gif a.mp4", "must be .gif"),
        ("race tao2019-1 --agents lsa --out a.gif", "must be .html"),
    ],
)
def test_what_is_wrong_is_told(line: str, told: str, capsys: Any) -> None:
    assert main(line.split()) == 2
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1


def test_the_command_shows_the_episode(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split("watch tao2019-1 'apt(tolerance=0.05)' --budget 60 --seed 4 --frames 3")) == 0
    out = capsys.readouterr().out
    assert out.startswith("apt(tolerance=0.05) on Threshold: 0 of 60 pulls")
    assert main(shlex.split("watch Threshold lsa --instance 'sampler(arms=5)' --budget 20 --gif a.gif --frames 2")) == 0
    assert capsys.readouterr().out == "wrote a.gif\n"
    assert (tmp_path / "a.gif").is_file()
