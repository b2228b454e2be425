"""The game on a page: its pulls are those of the environment, its scores those of the problem; by keys and by touch."""

from __future__ import annotations

import base64
import functools
import re
import shlex
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from browsing import LOADED, SCREENS, data_of, opened, shortened, shot
from browsing import browser as browser

import agents
from agents.cli import main
from agents.pictures.play_page import RIVALS
from bandit_envs import PROBLEMS

GAUSSIAN: dict[str, Any] = {"instance": {"sampler": {"arms": 4, "distribution": "gaussian"}}, "threshold": 0.3}
LISTED: dict[str, Any] = {"instance": "tao2019-1"}  # places are not those of the instance's list
GAMES: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in sorted({*RIVALS} & {*PROBLEMS})}
GAMES |= {"BestArm": ("BestArm", {}), "gaussian": ("Threshold", GAUSSIAN), "listed": ("Threshold", LISTED)}
GAMES |= {"plane": ("Feasible", {"instance": "polyhedra(arms=5, dimensions=2, rows=4)"})}
GAMES |= {"k": ("TopK", {"k": 5, "instance": {"sampler": {"arms": 12}}})}
HOW: dict[str, Any] = {"seed": 3, "episode": 5}


@functools.cache
def page(name: str, episodes: int = 2) -> str:
    problem, kwargs = GAMES[name]
    return agents.game(problem, env_kwargs={"budget": 40, **kwargs}, episodes=episodes, **HOW)


def decoded(coded: dict[str, Any]) -> np.ndarray:
    """Rows of values, as the page reads them."""
    kind = "u1" if len(coded["values"]) <= 256 else "<u2"
    return np.array(coded["values"])[np.frombuffer(base64.b64decode(coded["at"]), kind)]


def environment(name: str, episode: int) -> Any:
    problem, kwargs = GAMES[name]
    given = {"budget": 40, "shuffle_arms": True, **kwargs}
    env = gym.make(f"bandit_envs/{problem}-v0", actions="full", disable_env_checker=True, **given)
    env.reset(seed=HOW["seed"], options={"episode": HOW["episode"] + episode})
    return env


def masks_of(data: Any) -> list[int]:
    """The answers in the order of their verdicts."""
    return [mask for mask in range(2 ** data["K"]) if data["answer_size"] in (None, mask.bit_count())]


def as_mask(number: int, K: int) -> np.ndarray:
    return np.array([number >> k & 1 for k in range(K)], np.int8)


def true_means(game: Any) -> np.ndarray:
    means = np.array(game["means"])
    return means[:, 0] if means.shape[1] == 1 else means


# What the page holds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GAMES)
def test_pulls_and_verdicts_are_those_of_the_environment(name: str) -> None:
    data, rng = data_of(page(name)), np.random.default_rng(1)
    K, D = data["K"], data["D"]
    assert len(data["games"]) == 2
    for i, game in enumerate(data["games"]):
        samples, counts, env = decoded(game["samples"]).reshape(40, K, D), np.zeros(K, int), environment(name, i)
        for arm in [0] * 9 + rng.integers(K, size=31).tolist():
            *_, info = env.step({"arm": arm, "times": 1, "answer": np.zeros(K, np.int8)})
            assert np.atleast_1d(info["sample"]).tolist() == samples[counts[arm], arm].tolist()
            counts[arm] += 1
        masks, verdicts = masks_of(data), decoded(game["verdicts"])
        assert len(masks) == len(verdicts)
        at = int(rng.integers(len(masks)))
        *_, terminated, _, info = env.step({"arm": K, "times": 1, "answer": as_mask(masks[at], K)})
        assert terminated
        assert verdicts[at].tolist() == [pytest.approx(info["score"], abs=1e-6), info["correct"]]
        problem, means = env.unwrapped.problem, true_means(game)
        answers = np.array([as_mask(mask, K) for mask in masks], bool)
        assert verdicts[:, 0] == pytest.approx(problem.score(answers, means), abs=1e-6)
        assert verdicts[:, 1].astype(bool).tolist() == problem.is_correct(answers, means).tolist()
        assert as_mask(game["right"], K).tolist() == problem.right_answer(means).astype(int).tolist()
        assert verdicts[masks.index(game["right"])].tolist() == [1, 1]
        env.close()


@pytest.mark.parametrize("name", GAMES)
def test_agents_meet_the_same_results(name: str) -> None:
    """Pulls in the order of the episode, each the next result of its arm; and the score of `evaluate`."""
    data, (problem, kwargs) = data_of(page(name)), GAMES[name]
    assert data["agents"] == [RIVALS.get(PROBLEMS[problem].family or problem), "uniform"]
    for i, game in enumerate(data["games"]):
        samples = decoded(game["samples"]).reshape(40, data["K"], data["D"])
        for which, agent in enumerate(data["agents"]):
            given = {"budget": 40, "shuffle_arms": True, **kwargs}
            trace = agents.play(agent, problem, env_kwargs=given, seed=3, episode=5 + i)
            place = {tuple(np.atleast_1d(mean)): k for k, mean in enumerate(map(tuple, game["means"]))}
            arms = [place[tuple(np.atleast_1d(trace.means[arm]))] for arm in trace.arms]
            counts = np.zeros(data["K"], int)
            for arm, sample in zip(arms, trace.samples, strict=True):
                assert np.atleast_1d(sample).tolist() == samples[counts[arm], arm].tolist()
                counts[arm] += 1
            assert counts.tolist() == game["pulls"][which]
            score = decoded(game["verdicts"])[masks_of(data).index(game["answers"][which])][0]
            assert score == pytest.approx(trace.score, abs=1e-6)


def test_some_places_are_not_those_of_the_list() -> None:
    """Of the case above that is to show it."""
    listed = agents.play("uniform", "Threshold", env_kwargs=LISTED | {"budget": 40}, seed=3, episode=5).means
    assert listed.tolist() != [mean for (mean,) in data_of(page("listed"))["games"][0]["means"]]


def test_a_page_says_the_task_in_words_and_loads_nothing() -> None:
    assert "<strong>Which 3 of the 10 buttons are the best?</strong>" in page("TopK")
    assert "The control is A; it is in no answer." in page("BetterThanControl")
    assert "buttons have, on average, a value 1 of 0.5 or more, and a value 2 of 0.5 or less?" in page("Feasible")
    assert "scored from 0 to 1: 1 for the best 3, 0 for the worst 3, and between" in page("TopK")
    assert "You have 40 presses." in page("AllGood")
    corners = np.array(data_of(page("Feasible"))["plane"]["corners"])
    assert corners.min(axis=0)[0] == pytest.approx(0.5)
    assert corners.max(axis=0)[1] == pytest.approx(0.5)
    for name in GAMES:
        assert not LOADED.search(page(name))
        assert "innerHTML" not in page(name)
        assert not re.search("https?://", page(name))


def test_labels_are_text(monkeypatch: Any) -> None:
    made = agents.game("Threshold", agent="apt(tolerance=0.05)", env_kwargs={"budget": 5}, episodes=1)
    assert "results: apt(tolerance=0.05) and uniform, which presses" in made
    assert data_of(made)["agents"] == ["apt(tolerance=0.05)", "uniform"]


def test_large_games_stay_below_two_megabytes() -> None:
    kwargs = {"instance": {"sampler": {"arms": 12, "distribution": "gaussian"}}, "budget": 2000}
    made = agents.game("Threshold", env_kwargs=kwargs)
    assert len(data_of(made)["games"]) in range(1, 20)
    assert 500_000 < len(made.encode()) < 2_000_000


def test_a_person_who_presses_as_uniform_does_has_its_score() -> None:
    """The plug-in answer by the page's own numbers is the answer of `uniform`, of whom there are the same results."""
    for game in (data := data_of(page("Threshold")))["games"]:
        means = decoded(game["samples"]).reshape(40, data["K"])[:4].mean(axis=0)
        assert as_mask(game["answers"][1], data["K"]).tolist() == (means >= 0.5).astype(int).tolist()


def test_what_cannot_be_played_is_refused_by_name(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "letter.html").write_text("<p>dear all</p>")
    for more, text in (
        ("--budget 2001", "budget must be an integer in [1, 2000], got 2001"),
        ("--instance sampler(arms=13)", "a game has at most 12 arms, pulled as a whole, got 13"),
        ("--agent nobody", "nobody"),
        ("--k 11", "k must be an integer in [1, 9]"),
        ("--instance sampler(arms=2)", "k must be an integer in [1, 1], got 3: of 2 arms, give k"),
        ("--episodes 0", "episodes must be"),
        (f"--html {tmp_path / 'a.txt'}", "must be .html"),
        (f"--html {tmp_path / 'letter.html'}", "and no page of bandit-envs: give another file, or --force"),
    ):
        line = f"play --problem TopK --html {tmp_path / 'a.html'} {more}"
        assert main([word.replace("@", " ") for word in line.split()]) == 2, more
        assert text in (err := capsys.readouterr().err), err
        assert len(err.splitlines()) == 1
    assert not (tmp_path / "a.html").exists()
    for kwargs, text in (
        ({"batch": 2}, "a game has no batches, delays, prices, delta and max_pulls, got batch=2"),
        ({"delay": "exponential(2)"}, "got delay='exponential"),
        ({"cost": np.ones(10)}, "got cost=(1.0, 1.0"),
        ({"pull_cost": 0.1}, "got pull_cost=0.1"),
        ({"delta": 0.1}, "got delta=0.1"),
        ({"max_pulls": 9}, "got max_pulls=9"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            agents.game("TopK", env_kwargs=kwargs)
    main(["play", "--help"])
    shown = capsys.readouterr().out
    assert "--instance" in shown
    for name in ("--delay", "--delta", "--cost", "--results-batch", "--max-pulls", "--pull-cost", "--stop", "--pull "):
        assert name not in shown
    with pytest.raises(ValueError, match="budget must be"):
        agents.game("TopK", env_kwargs={"budget": None})
    with pytest.raises(ValueError, match="pull='coordinate'"):
        agents.game("Feasible", env_kwargs={"pull": "coordinate"})
    out = tmp_path / "b.html"
    line = f"play --problem TopK --k 2 --budget 9 --episodes 1 --seed 3 --episode 5 --agent lucb --html {out}"
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    kwargs = {"k": 2, "budget": 9}
    assert out.read_text() == agents.game("TopK", agent="lucb", env_kwargs=kwargs, episodes=1, seed=3, episode=5)


def test_a_fixed_instance_is_not_the_same_game_each_time() -> None:
    """Its arms change places, and the page says so; a control keeps its place."""
    listed = page("listed", 4)
    games = data_of(listed)["games"]
    assert len({str(game["means"]) for game in games}) == 4
    assert len({str(sorted(game["means"])) for game in games}) == 1
    assert "the same buttons in each game, in another order." in listed
    assert "the same buttons" not in page("Threshold")
    as_given = {"instance": "tao2019-1", "budget": 9, "shuffle_arms": False}
    made = agents.game("Threshold", env_kwargs=as_given, episodes=2)
    assert "the same buttons in each game." in made
    assert data_of(made)["games"][0]["means"] == data_of(made)["games"][1]["means"]
    instance = {"distribution": "bernoulli", "mean": [0.1, 0.2, 0.3, 0.4, 0.5]}
    controlled = agents.game(
        "BetterThanControl", env_kwargs={"instance": instance, "budget": 9, "control": 1}, episodes=6
    )
    means = [game["means"] for game in data_of(controlled)["games"]]
    assert {one[1][0] for one in means} == {0.2}
    assert len({str(one) for one in means}) > 1
    assert "The control is B" in controlled


def test_numbers_are_drawn_on_the_scale_of_their_means() -> None:
    data = data_of(page("gaussian"))
    means = np.array([game["means"] for game in data["games"]])
    assert data["range"] == pytest.approx([means.min() - 1, means.max() + 1])
    assert data_of(page("Threshold"))["range"] == [0, 1]
    assert data_of(page("Feasible"))["parts"] == [pytest.approx([0.5])] * 2


# The documentation ----------------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = re.findall(r"^bandit-envs (play .*)$", (DOCS / "pictures.md").read_text(), re.MULTILINE)
PAGES = {Path(shlex.split(line)[-1]).stem: shlex.split(line) for line in COMMANDS}


@pytest.mark.parametrize("name", PAGES)
def test_the_games_of_the_documentation_are_written_by_its_commands(name: str, tmp_path: Path) -> None:
    """To the letter but for the last digits; if not, run the command again."""
    kept, words = DOCS / "races" / f"{name}.html", PAGES[name]
    assert main([*words[:-1], str(tmp_path / "a.html")]) == 0
    made, there = (tmp_path / "a.html").read_text(), kept.read_text()
    assert shortened(data_of(made)) == shortened(data_of(there))
    assert made.partition('id="data">')[0] == there.partition('id="data">')[0]
    assert made.rpartition("<script>")[2] == there.rpartition("<script>")[2]
    assert len(there.encode()) < 120_000
    problem = words[words.index("--problem") + 1]
    assert (DOCS / "problems" / f"{problem}.md").read_text().count(f"../{name}.html") == 2


def test_each_problem_has_a_game() -> None:
    assert sorted(PAGES) == sorted(path.stem for path in (DOCS / "races").glob("play-*"))
    assert sorted(PAGES) == sorted(f"play-{path.stem.lower()}" for path in (DOCS / "problems").iterdir())


# In a browser ---------------------------------------------------------------------------------------------------------


def expected(data: Any, played: list[int], i: int) -> list[float]:
    """The scores of the player with this answer, the rival and `uniform`, in game i, by the problem itself."""
    name = next(name for name in GAMES if data_of(page(name)) == data)
    env, game = environment(name, i), data["games"][i]
    answers = [as_mask(sum(1 << k for k in played), data["K"]), *(as_mask(one, data["K"]) for one in game["answers"])]
    means = true_means(game)
    return [float(score) for score in env.unwrapped.problem.score(np.array(answers, bool), means)]


def row(view: Any, label: str) -> list[str]:
    """The cells of a row of the table at the end."""
    found = view.locator("#rows tr").filter(has=view.get_by_role("rowheader", name=label, exact=True))
    return [text.strip() for text in found.locator("td").all_inner_texts()]


def said(values: list[Any]) -> str:
    """Results as the page says them."""
    return " ".join(f"{x:g}" for row in values for x in row)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_game_by_keys_alone(width: int, scheme: str, browser: Any, tmp_path: Path) -> None:
    (path := tmp_path / "a.html").write_text(page("TopK"))
    data, averages = data_of(page("TopK")), np.zeros(3)
    for view in opened(browser, path, width, scheme):
        keys = view.keyboard

        def focused(view: Any = view) -> str:
            return str(view.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.id"))

        for i in range(2):
            samples = decoded(data["games"][i]["samples"]).reshape(40, 10, 1).tolist()
            assert view.inner_text("#answer") == "Choose 3 buttons"
            keys.press("b")
            assert view.inner_text("#said") == f"B: {said([samples[0][1]])}. 39 presses left."
            keys.press("Shift+B")
            assert view.inner_text("#said") == f"B: {said([samples[n][1] for n in range(1, 6)])}. 34 presses left."
            for _ in range(33):
                keys.press("j")
            keys.press("Shift+A")  # one is left
            assert "No presses left" in view.inner_text("#said")
            keys.press("c")
            assert view.locator(".arm p").nth(2).inner_text() == "0 presses"
            assert view.locator(".arm p").nth(1).inner_text().startswith("6 presses, mean ")
            assert focused() == "press C"
            for _ in range(2):
                keys.press("ArrowUp")
            assert focused() == "press A"
            keys.press("ArrowDown")
            keys.press("ArrowRight")
            assert focused() == "choose B"
            assert view.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            keys.press("Enter")
            assert view.inner_text("#said").startswith("B is in your answer.")
            assert view.inner_text("#answer") == "Choose 2 more buttons"
            for _ in range(2):
                keys.press("ArrowDown")
                keys.press(".")
            keys.press("ArrowDown")
            keys.press("Enter")
            assert view.inner_text("#answer") == "Take out 1 button"
            keys.press("Control+Enter")
            assert view.inner_text("#said").startswith("Take out 1 button, then answer.")
            keys.press("Enter")
            shot(view, f"play-keys-{i}-{width}-{scheme}")
            assert view.inner_text("#answer") == "Answer: B, C, D"
            keys.press("Control+Enter")
            scores = expected(data, [1, 2, 3], i)
            averages += scores
            assert view.inner_text("#result") == f"Your score is {scores[0]:.3f}, with B, C, D"
            assert row(view, "score") == ["", "1.000", *(f"{score:.3f}" for score in scores)]
            assert row(view, "average") == ["", "", *(f"{total / (i + 1):.3f}" for total in averages)]
            assert row(view, "B")[2] == "6\u00a0✓"
            assert focused() == "end"
            shot(view, f"play-end-{i}-{width}-{scheme}")
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            keys.press("Tab")
            assert focused() == "next"
            keys.press("Enter")
            assert view.evaluate("location.hash") == "#2"
        assert view.inner_text("#next") == "That was the last game"
        assert view.is_visible("#end")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("name", ["Threshold", "Feasible", "AllGood", "BetterThanControl", "gaussian"])
def test_a_game_by_touch_and_by_mouse(name: str, width: int, scheme: str, browser: Any, tmp_path: Path) -> None:
    (path := tmp_path / "a.html").write_text(page(name))
    data = data_of(page(name))
    for view in opened(browser, path, width, scheme, has_touch=True):

        def press(what: Any) -> None:
            what.tap() if width < 400 else what.click()

        for box in view.locator("button:visible, select:visible").all():
            size = box.bounding_box()
            assert min(size["width"], size["height"]) >= 44
        pulls, takes = view.locator(".arm .go"), view.locator(".take")
        assert view.inner_text("#answer") == ("Choose buttons" if name == "AllGood" else "Answer: none")
        view.select_option("#times", "5")
        for k in range(times := min(7, data["K"])):
            press(pulls.nth(k % 3))
        left = 40 - 5 * times
        assert view.inner_text("#said").endswith(f" {left} presses left.")
        played = [k for k in (0, 2, 3) if k != data["control_arm"]]  # whose button cannot be pressed
        for k in played:
            press(takes.nth(k))
        letters = ", ".join("ABCD"[k] for k in played)
        assert view.inner_text("#answer") == f"Answer: {letters}"
        shot(view, f"play-{name}-{width}-{scheme}")
        press(view.locator("#answer"))
        scores = expected(data, played, 0)
        assert view.inner_text("#result") == f"Your score is {scores[0]:.3f}, with {letters}"
        assert row(view, "score") == ["", "1.000", *(f"{score:.3f}" for score in scores)]
        counts = [int(row(view, "ABCDEFGHIJ"[k])[2].split("\u00a0")[0]) for k in range(data["K"])]
        assert sum(counts) == 40 - left
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        shot(view, f"play-end-{name}-{width}-{scheme}")
        press(view.locator("#next"))
        assert view.inner_text("#said").strip() == "40 presses left."


ROWS = "[...document.querySelectorAll('.arm, #answer, #times')].map(one => JSON.stringify(one.getBoundingClientRect()))"
CUT = "[...document.querySelectorAll('.arm p, #said')].filter(one => one.scrollHeight > one.clientHeight).length"


@pytest.mark.parametrize("name", ["Threshold", "gaussian", "Feasible", "plane"])
def test_rows_stay_where_they_are(name: str, browser: Any, tmp_path: Path) -> None:
    """Through three games at 390 pixels, with 1, 5 and 10 presses at a time: no press can meet another button."""
    (path := tmp_path / "a.html").write_text(page(name, 3))
    arms = data_of(page(name, 3))["K"]
    for view in opened(browser, path, 390, "light"):
        before = view.evaluate(ROWS)
        for i, times in enumerate((1, 5, 10)):
            view.select_option("#times", str(times))
            view.evaluate("scrollTo(0, 0)")
            for n in range(40 // times):
                for button in (view.locator(".arm .go").nth(n // 3 % arms), view.locator(".take").nth(n % arms)):
                    button.dispatch_event("click")
                    assert view.evaluate(ROWS) == before
                    assert view.evaluate(CUT) == 0
            assert "No presses left" in view.inner_text("#said")
            shot(view, f"play-still-{name}-{times}")
            view.keyboard.press("Control+Enter")
            view.keyboard.press("Control+Enter")  # where the answer is none
            if i < 2:
                view.locator("#next").click()


def test_a_page_that_is_loaded_again_goes_on(browser: Any, tmp_path: Path) -> None:
    (path := tmp_path / "a.html").write_text(page("TopK"))
    for view in opened(browser, path, 390, "light"):
        view.keyboard.press("Shift+B")
        view.keyboard.press(".")
        view.reload()
        assert view.inner_text("#answer") == "Choose 2 more buttons"
        assert view.inner_text("#said").strip() == "35 presses left."
        assert view.locator(".arm p").nth(1).inner_text().startswith("5 presses, mean ")
        for key in "cd":
            view.keyboard.press(key)
            view.keyboard.press(".")
        view.keyboard.press("Control+Enter")
        first = row(view, "average")
        view.reload()
        assert view.url.endswith("#1")
        assert row(view, "average") == first  # a game that is over is not played again
        view.locator("#next").click()
        assert view.url.endswith("#2")
        for key in "abc":
            view.keyboard.press(key)
            view.keyboard.press(".")
        view.keyboard.press("Control+Enter")
        scores = [expected(data_of(page("TopK")), *one) for one in (([1, 2, 3], 0), ([0, 1, 2], 1))]
        assert row(view, "average")[2:] == [f"{mean:.3f}" for mean in np.mean(scores, axis=0)]
        view.go_back()
        assert view.inner_text("#result").endswith("with B, C, D")
        view.go_forward()
        assert view.inner_text("#result").endswith("with A, B, C")
    for view in opened(browser, path, 390, "light"):  # another tab, at the second game
        view.goto(path.as_uri() + "#2")
        view.reload()
        for key in "abc":
            view.keyboard.press(key)
            view.keyboard.press(".")
        view.keyboard.press("Control+Enter")
        assert view.inner_text("#next") == "That was the last game"


def test_a_browser_that_keeps_nothing_plays_too(browser: Any, tmp_path: Path) -> None:
    (path := tmp_path / "a.html").write_text(page("TopK"))
    for view in opened(browser, path, 390, "light"):
        view.add_init_script(
            "Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('refused'); } })"
        )
        view.keyboard.press("b")
        view.reload()
        assert view.inner_text("#said").strip() == "40 presses left."
        for key in "abc":
            view.keyboard.press(key)
            view.keyboard.press(".")
        view.keyboard.press("Control+Enter")
        assert view.inner_text("#next") == "Next game (2 of 2)"


def test_a_held_key_presses_once(browser: Any, tmp_path: Path) -> None:
    (path := tmp_path / "a.html").write_text(page("Threshold"))
    for view in opened(browser, path, 390, "light"):
        for key, left in (("b", 39), ("Enter", 38), (" ", 37)):
            for _ in range(4):
                view.keyboard.down(key)
            view.keyboard.up(key)
            assert view.inner_text("#said").endswith(f" {left} presses left.")
        view.select_option("#times", "5")
        view.focus("#times")
        view.keyboard.press("j")
        assert view.inner_text("#said").endswith(" 32 presses left.")
        assert view.locator(".arm").last.evaluate("one => one.getBoundingClientRect().bottom <= innerHeight")
        assert view.locator(".take").last.get_attribute("aria-label") == "choose J"
        view.focus("#answer")
        for _ in range(4):  # none, which takes a second press
            view.keyboard.down("Enter")
        view.keyboard.up("Enter")
        assert view.inner_text("#answer") == "Once more: none"
        assert view.get_attribute("#answer", "class") == ""
        view.keyboard.press("a")
        assert view.inner_text("#answer") == "Answer: none"
        for _ in range(2):
            view.locator("#answer").click()
        assert view.inner_text("#result").endswith("with none")


def test_what_else_a_page_shows(browser: Any, tmp_path: Path) -> None:
    """Names of a table in the end; of more than two dimensions, which means lie inside; text alone without scripts."""
    table = tmp_path / "dyes.csv"
    table.write_text("name,value\n" + "".join(f"{'long ' * n}name,{x}\n" for n in (0, 5) for x in (1, 2, 4)))
    kwargs: dict[str, Any] = {"instance": {"table": {"path": str(table)}}, "threshold": 2, "budget": 9}
    (path := tmp_path / "a.html").write_text(agents.game("Threshold", env_kwargs=kwargs, episodes=1))
    for view in opened(browser, path, 320, "light"):
        view.keyboard.press("Control+Enter")
        view.keyboard.press("Control+Enter")
        shown = view.locator("#rows th").all_inner_texts()[:2]
        assert sorted(text[2:] for text in shown) == ["long long l…", "name"]
        assert view.locator("th[title]:not([title=''])").count() == 2
        assert view.evaluate("document.documentElement.scrollWidth") <= 320
    kwargs = {"instance": {"sampler": {"dimensions": 3}}, "A": [[1, 0, 0], [0, -1, 1]], "b": [0.5, 0.2], "budget": 40}
    (path := tmp_path / "b.html").write_text(agents.game("Feasible", env_kwargs=kwargs, episodes=1))
    for view in opened(browser, path, 390, "light"):
        for key in "abcdefgh":
            view.keyboard.press(f"Shift+{key}")
        for text in view.locator(".arm p").all_inner_texts()[:8]:
            one, two, three = (float(x) for x in re.findall(r"[\d.]+", text)[1:])
            assert text.endswith(", inside") == (one <= 0.5 and three - two <= 0.2)
        shot(view, "play-inside")
    context = browser.new_context(java_script_enabled=False)
    view = context.new_page()
    view.goto(path.as_uri())
    assert view.inner_text("body").strip() == "This game needs JavaScript; nothing is loaded from elsewhere."
    context.close()
