"""Rehearsals: how many measurements a study will take, from a guess, a pilot, and a session's own results."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import forecasts
import numpy as np
import pytest

import agents
from agents.session.course import Statistics
from agents.session.guesses import Guess, Prior, range_of
from agents.session.rehearsal import CompilesError, Outcome, _believed, _Clock, _played, rehearse, studies_of
from bandit_envs import Task
from bandit_envs.instances import Instance, Resampled

pytest.importorskip("sqlalchemy")

GUESS = {"low": 10.0, "high": 90.0, "noise": 8.0}
FACTS: dict[str, Any] = {"problem": "Threshold", "threshold": 50.0, "tolerance": 5.0, "arms": 6, "range": (-20, 130)}
FACTS |= {"delta": 0.05}
PAIRED = {"problem": "BestArm", "threshold": None, "tolerance": None}


def totals(facts: Any, agent: Any = "evidence", **how: Any) -> list[int]:
    """Measurements of each rehearsal of an agent."""
    found = rehearse(facts, agent, **({"episodes": 20, "advise": False} | how))
    return next(iter(found.outcomes.values())).pulls.tolist()  # type: ignore[no-any-return]


def outcome(pulls: list[int], ended: list[bool]) -> Outcome:
    yes = np.ones(len(pulls), np.bool_)
    return Outcome(np.array(pulls), np.array(ended), yes, yes, np.ones(len(pulls)), np.array(pulls, np.float64), ~yes)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_quantiles_count_what_was_cut() -> None:
    """1/4 has ended by 10, then a third of the others by 20; of the last two one is cut at 30, the other ends at 40."""
    one = outcome([10, 40, 20, 30], [True, True, True, False])
    at, share, _ = one.curve()
    assert at.tolist() == [10, 20, 40]
    np.testing.assert_allclose(share, [0.25, 0.5, 1.0])
    assert [one.quantile(level) for level in (0.25, 0.26, 0.5, 0.9)] == [10, 20, 20, 40]
    assert outcome([30, 40], [False, False]).quantile(0.1) == math.inf


def test_a_budget_without_delta_is_spent() -> None:
    facts = {"problem": "TopK", "k": 2, "arms": ["tea", "coffee", "milk", "juice"], "binary": True, "budget": 40}
    with pytest.warns(UserWarning, match="the forecast rests on a guess: means from 0 to 1"):
        found = rehearse(facts, "uniform", episodes=30, hours=0.5, at=12)
    (row,) = found.table().to_dict("records")
    assert [row[name] for name in ("measurements_10", "measurements_90", "hours_50", "ended")] == [40, 40, 20, 0]
    assert found.sentence() == "40 measurements"
    assert rehearse(facts, "uniform", episodes=30, prior={"low": 0, "high": 1}).table()["error"][0] < row["error"]


def test_a_session_goes_on_as_its_rehearsal_does() -> None:
    """On arms that always yield the same, from noisy results on: measurement by measurement."""
    for agent in ("evidence", "uniform(stop='certificate')"):
        session = agents.Session(agent, {**FACTS, "arms": ["a", "b", "c"]}, store=":memory:", public_seed=1)
        session.tell_all([(arm, value) for arm in "abc" for value in (30.0, 55.0, 70.0)])
        values = [20.0, 45.0, 80.0]
        (study,) = session._look(studies_of)
        source: Any = Instance(Resampled([[value] for value in values], (-20, 130)))
        found = _played(study, source, 2, _Clock())
        count = 0
        while not session.done:
            (arm,) = session.ask()
            session.tell(arm, values[arm])
            count += 1
        assert found.pulls.tolist() == [count, count]
        assert count > 10


# --- what is believed -------------------------------------------------------------------------------------------------


def believed(facts: Any, n: Any, mean: Any, squares: Any, which: Any, episodes: int = 400) -> tuple[Any, Any]:
    task: Task = studies_of(facts, "evidence")[0].task
    pulls, y, squares = (np.array(x).reshape(len(n), -1) for x in (n, mean, squares))
    seen = Statistics.of(task, len(n))._replace(pulls=pulls[:, 0], mean=y, variance=squares / pulls)
    prior = Prior(task, Guess.of(task, {}), seen, np.array(which))
    means, noise = prior.both(np.random.default_rng(0), episodes, 0)
    return prior.low + prior.width * means, prior.width * noise


@pytest.mark.parametrize(
    "noise", [{"binary": True}, {"range": (0, 1)}, {"sigma": 0.3}], ids=["binary", "range", "gaussian"]
)
def test_means_lie_where_they_are_believed_to_lie(noise: dict[str, Any]) -> None:
    """Arms from a population, three results of each: the 90 % of each of 12 arms in 100 studies, and of unseen ones."""
    random, inside, K = np.random.default_rng(3), [], 12
    facts = {"problem": "BestArm", "arms": K, "delta": 0.1, **noise}
    for _ in range(100):
        centre = random.uniform(0.3, 0.7)
        means = np.clip(random.normal(centre, 0.12, K), 0.02, 0.98)
        if "binary" in noise:
            results = (random.random((K, 3)) < means[:, None]).astype(float)
        elif "sigma" in noise:
            results = random.normal(means[:, None], 0.3, (K, 3))
        else:
            results = random.beta(4 * means[:, None], 4 * (1 - means[:, None]), (K, 3))
        which = np.where(np.arange(K) < 10, np.arange(K), -1)
        drawn, _ = believed(facts, np.full(10, 3), results[:10].mean(1), 3 * results[:10].var(1), which, 100)
        low, high = np.quantile(drawn, [0.05, 0.95], axis=0)
        inside.append((low <= means) & (means <= high))
    assert 0.86 <= np.mean(inside) <= 0.95
    most = 1.0 if "binary" in noise else 0.97  # three results of 0 and 1 say little of where arms lie
    assert 0.83 <= np.mean([one[10:] for one in inside]) <= most


def test_noise_follows_from_a_pilot() -> None:
    """Of many results, that of each arm; means are theirs."""
    n, mean, sd = [4000, 4000, 4000], [30.0, 50.0, 80.0], [5.0, 8.0, 12.0]
    means, noise = believed({**FACTS, "arms": 3}, n, mean, [4000 * x * x for x in sd], [0, 1, 2])
    np.testing.assert_allclose(means.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(noise.mean(axis=0), sd, rtol=0.02)


@pytest.mark.parametrize("means", [[0.03, 0.2, 0.5], [0.5, 0.8, 0.99]])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_simulated_results_have_the_means_and_noise_that_were_drawn(means: list[float], noise: float) -> None:
    task = studies_of({"problem": "BestArm", "arms": 3, "delta": 0.1, "range": (0, 1)}, "evidence")[0].task
    m, prior = np.array(means)[None, :, None], Prior(task, Guess(0.5, 0.5, noise))
    sd = np.sqrt(np.minimum(noise**2, 0.9 * m * (1 - m)))
    table = prior.table(m, sd)[0]
    middles, widths = (table[:, 1:] + table[:, :-1]) / 2, np.diff(table, axis=1)
    np.testing.assert_allclose(middles.mean(axis=1), means, rtol=1e-6)
    spread = np.sqrt((middles**2 + widths**2 / 12).mean(axis=1) - middles.mean(axis=1) ** 2)
    np.testing.assert_allclose(spread, sd[0, :, 0], rtol=0.1)


def test_a_pilot_in_any_form_is_the_same(tmp_path: Path) -> None:
    rows = [(arm, value) for arm, values in {"a": [30, 41, 35], "b": [60, 52, 71]}.items() for value in values]
    facts = {**FACTS, "arms": ["b", "a", "new"]}
    with agents.Session("evidence", {**facts, "arms": ["a", "b"]}, store=tmp_path / "pilot.db") as pilot:
        pilot.tell_all(rows)
        found = totals(facts, prior=pilot)
    (tmp_path / "pilot.csv").write_text("name,value\n" + "".join(f"{arm},{value}\n" for arm, value in rows))
    assert found == totals(facts, prior=tmp_path / "pilot.db") == totals(facts, prior=tmp_path / "pilot.csv")
    assert found == totals(facts, prior={"a": [30, 41, 35], "b": [60, 52, 71]})


def test_arms_go_by_their_names() -> None:
    """Of a pilot of other arms too, in another order: each has its own mean, the one without results that of none."""
    pilot = {"a": [30, 31, 32], "z": [45, 46, 47], "b": [60, 61, 62]}
    (study,) = studies_of({**FACTS, "arms": ["b", "new", "a"]}, "evidence")
    with pytest.warns(UserWarning, match="1 arms of the prior are none of the study's, as 'z'"):
        source, words = _believed(study, pilot)
    means, _ = source.draw(np.zeros((2, 400), np.uint64), np.arange(400, dtype=np.uint64))
    np.testing.assert_allclose(means.mean(axis=0)[[0, 2]], [61, 31], atol=1)
    assert means[:, 1].std() > 5 * means[:, 0].std()
    assert words == "what 9 results of 3 arms leave open"


# --- units, order, ties -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranged", [True, False])
@pytest.mark.parametrize("with_pilot", [True, False])
def test_units_change_nothing(ranged: bool, with_pilot: bool) -> None:
    found = []
    for scale, off in ((1.0, 0.0), (1000.0, 7.0)):
        facts = {**FACTS, "threshold": 50 * scale + off, "tolerance": 5 * scale}
        facts |= {"range": (-20 * scale + off, 130 * scale + off)} if ranged else {"range": None, "sigma": 8 * scale}
        prior: Any = {"low": 10 * scale + off, "high": 90 * scale + off, "noise": 8 * scale}
        if with_pilot:
            results = np.random.default_rng(1).normal([[20], [35], [44], [52], [60], [75]], 8, (6, 3))
            prior = {str(k): row * scale + off for k, row in enumerate(results)}
        found.append(totals(facts, prior=prior))
    assert np.mean(np.array(found[0]) == np.array(found[1])) > 0.8  # but for rounding
    np.testing.assert_allclose(*np.quantile(found, [0.1, 0.5, 0.9], axis=1).T, rtol=0.02)


def test_order_and_equal_arms() -> None:
    """The same arms in another order take about as long; arms with the same results are drawn apart."""
    pilot = {"a": [20, 31, 25], "b": [60, 52, 71], "c": [60, 52, 71], "d": [44, 61, 47]}
    facts = {"problem": "BestArm", "epsilon": 10.0, "range": (-20, 130), "delta": 0.1, "arms": list(pilot)}
    one, other = (totals({**facts, "arms": arms}, prior=pilot, episodes=300) for arms in (list("abcd"), list("dcba")))
    np.testing.assert_allclose(np.median(one), np.median(other), rtol=0.15)
    assert len(set(one)) > 85  # 98 to 118, of eight seeds


def test_the_same_seed_gives_the_same_numbers() -> None:
    assert totals(FACTS, prior=GUESS, seed=4) == totals(FACTS, prior=GUESS, seed=4) != totals(FACTS, prior=GUESS)


# --- forecasts of sessions --------------------------------------------------------------------------------------------


def test_a_running_session_takes_fewer_and_fewer() -> None:
    random, means, medians = np.random.default_rng(5), [20, 35, 46, 58, 66, 80], []
    session = agents.Session("evidence", FACTS, store=":memory:", public_seed=2)
    session.tell_all([(k, random.normal(mean, 8)) for _ in range(3) for k, mean in enumerate(means)])
    for n in (0, 60, 60):
        for _ in range(n):
            (arm,) = session.ask()
            session.tell(arm, random.normal(means[arm], 8))
        found = session.forecast(episodes=60)
        assert session.forecast(episodes=60) is found
        medians.append(found.outcomes["evidence"].quantile(0.5))
    assert " more measurements (" in found.sentence()
    assert str(found).endswith("results of 6 arms leave open")
    assert medians[0] > medians[1] > medians[2]
    while not session.done:
        (arm,) = session.ask()
        session.tell(arm, random.normal(means[arm], 8))
    with pytest.raises(ValueError, match="the session is over"):
        session.forecast()


def test_rounds_begin_again_and_what_has_not_happened_is_left_out() -> None:
    facts = {"problem": "BestArm", "arms": 4, "binary": True, "budget": 60}
    session = agents.Session("sequential-halving", facts, store=":memory:")
    for _ in range(10):
        session.tell(session.ask()[0], 1.0)
    assert session.forecast(episodes=20).outcomes["sequential-halving"].pulls.max() <= 50


@pytest.mark.parametrize("late", [{"batch": 12}, {"workers": 3}])
def test_batches_take_more_measurements_and_less_time(late: dict[str, int]) -> None:
    alone, more = (
        rehearse(FACTS, "evidence", prior=GUESS, episodes=30, hours=1, advise=False, **how) for how in ({}, late)
    )
    one, other = (found.table().to_dict("records")[0] for found in (alone, more))
    assert alone.outcomes["evidence"].pulls.tolist() != more.outcomes["evidence"].pulls.tolist()
    assert other["measurements_50"] >= 0.95 * one["measurements_50"]
    assert other["hours_50"] < one["hours_50"] / 2


@pytest.mark.parametrize("studies", [3, 12])
def test_studies_end_within_their_intervals(studies: int) -> None:
    """Where 90 % do; of 3 studies 1 at least, of 12 studies 7: fails once in 1,000 times, or in 1,900."""
    found = [forecasts.study(number, ["captions", "samplers"]) for number in range(studies)]
    inside = [row["inside"] for row in found if row["inside"] is not None]
    assert len(inside) == studies
    assert sum(inside) >= {3: 1, 12: 7}[studies]


def test_advice_names_what_saves_most() -> None:
    found = rehearse({**FACTS, "arms": 12}, "evidence", prior=GUESS, episodes=60)
    assert " with sigma=10 (if " in found.advice
    assert found.advice.startswith("what saves measurements: about ")
    assert 300 < found.outcomes["evidence"].quantile(0.5) < 500
    assert (
        rehearse({**FACTS, "arms": 12, "range": None, "sigma": 10}, "evidence", prior=GUESS, advise=False)
        .outcomes["evidence"]
        .quantile(0.5)
        < 250
    )


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "how", "said"),
    [
        ({"delta": None}, {}, "needs delta"),
        ({}, {"prior": {"low": 3}}, "a prior has low and high, or mean and spread, and noise, got low"),
        ({}, {"prior": {"low": 3, "high": 200}}, "high must be"),
        ({}, {"prior": {"low": 3, "high": 9, "noise": 0}}, "noise must be"),
        (
            {"range": None, "binary": True, "threshold": 0.5},
            {"prior": {"low": 0, "high": 1, "noise": 1}},
            "got low, hi",
        ),
        ({}, {"prior": {"0": [200.0, 3.0]}}, "the prior, results of the arm '0': a measurement must be"),
        ({}, {"prior": {"0": ["a"]}}, "the prior, results of the arm '0': a measurement must be"),
        ({}, {"batch": 0}, "batch must be"),
        ({}, {"workers": 1.5}, "workers must be"),
        ({}, {"episodes": 1}, "episodes must be"),
        ({}, {"hours": -1}, "hours must be"),
        ({"items": 30, "tolerance": 0.0}, {}, "with items cannot be rehearsed: .* results of one item are"),
        (PAIRED | {"blocks": "day"}, {}, "with blocks cannot be rehearsed: .* results of one block are"),
        ({}, {"prior": {"0": []}}, "the prior has no results"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], how: dict[str, Any], said: str) -> None:
    agent = "paired-elimination" if {"items", "blocks"} & set(change) else "evidence"
    with pytest.raises(ValueError, match=said):
        rehearse({**FACTS, **change}, agent, **({"prior": GUESS} | how))


def test_where_nothing_may_be_compiled_nothing_is() -> None:
    """A problem of its own needs kernels that are in no cache."""
    from agents.session import rehearsal

    refusing = rehearsal._Refusing()
    with pytest.raises(CompilesError):
        refusing.begins("kernel")
    assert range_of(studies_of(FACTS, "evidence")[0].task) == (-20, 130)


def test_a_figure(tmp_path: Path) -> None:
    found = rehearse(FACTS, ["evidence", "uniform(stop='certificate')"], prior=GUESS, episodes=20)
    figure = found.plot(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 1000
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == list(found.outcomes)


def test_a_lower_value_that_is_better_is_a_higher_one_mirrored() -> None:
    pilot = {"a": [20.0, 31.0, 25.0], "b": [60.0, 52.0, 71.0], "c": [44.0, 61.0, 47.0]}
    facts = {"problem": "BestArm", "epsilon": 10.0, "range": (-20, 130), "delta": 0.1, "arms": list(pilot)}
    turned = {**facts, "range": (-130, 20), "minimize": True}
    mirrored = {arm: [-value for value in values] for arm, values in pilot.items()}
    assert totals(facts, prior=pilot) == totals(turned, prior=mirrored)
    assert totals(facts, prior=GUESS) == totals(turned, prior={"low": -90.0, "high": -10.0, "noise": 8.0})


def test_rates_of_which_lower_ones_are_better_are_mirrored_at_a_half() -> None:
    """On [0, 1] a value y is reckoned with as 1 - y; a guess and results are in the user's own terms."""
    pilot, low = {"a": [0, 0, 1, 0], "b": [1, 0, 1, 1], "c": [0, 1, 1, 0]}, {"low": 0.1, "high": 0.3}
    facts = {"problem": "BestArm", "epsilon": 0.2, "binary": True, "delta": 0.1, "arms": list(pilot)}
    turned, mirrored = facts | {"minimize": True}, {arm: [1 - x for x in values] for arm, values in pilot.items()}
    assert totals(facts, prior=pilot) == totals(turned, prior=mirrored)
    assert rehearse(turned, "evidence", prior=low, episodes=20, advise=False).believed == "means from 0.1 to 0.3"
    one, other = totals(turned, prior=low, episodes=200), totals(facts, prior={"low": 0.7, "high": 0.9}, episodes=200)
    np.testing.assert_allclose(np.median(one), np.median(other), rtol=0.1)


def test_a_session_with_plates_is_forecast_by_the_plate() -> None:
    """Of a plate of 12 with a control, 11 at a time, as of its facts."""
    facts = {**FACTS, "arms": ["a", "b", "c"], "plate": 12, "controls": {"a": 1}}
    session = agents.Session("evidence", facts, store=":memory:")
    session.tell_all([(arm, value) for arm in "abc" for value in (30.0, 55.0, 70.0)])
    assert session.forecast(episodes=20).batch == rehearse(facts, "evidence", prior=GUESS, episodes=20).batch == 11


# --- on the command line and on the page ------------------------------------------------------------------------------


def test_a_plan_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from agents.cli import main

    facts = "--problem Threshold --threshold 50 --tolerance 5 --arms a b c --range -20 130 --delta 0.05"
    guess = "--low 10 --high 90 --noise 8 --episodes 20 --batch 5"
    store, figure = tmp_path / "a.db", tmp_path / "plan.png"
    main(["session", "plan", *facts.split(), *guess.split()])
    said = capsys.readouterr().out
    assert said.startswith("about ")
    assert "means from 10 to 90, results of one arm that vary by 8" in said
    main(["session", "new", str(store), *facts.split()])
    assert "measurements" in capsys.readouterr().err
    with agents.Session(store=store) as session:
        session.tell_all([(arm, value) for arm in "abc" for value in (30.0, 55.0, 70.0)])
    main(["session", "show", str(store)])
    assert " more measurements (" in capsys.readouterr().out
    main(["session", "plan", str(store), "--episodes", "20", "--plot", str(figure)])
    assert " more measurements (" in capsys.readouterr().out
    assert figure.is_file()


def test_the_page_says_how_many_more() -> None:
    testing = pytest.importorskip("starlette.testclient")
    from agents.session.page import application

    session = agents.Session("evidence", {**FACTS, "arms": 3}, store=":memory:")
    session.tell_all([(arm, value) for arm in range(3) for value in (30.0, 55.0, 70.0)])
    with testing.TestClient(application(session), base_url="http://localhost") as client:
        assert " more measurements (" in client.get("/forecast").json()["forecast"]
    free = agents.Session("uniform", {**FACTS, "delta": None}, store=":memory:")
    with testing.TestClient(application(free), base_url="http://localhost") as client:
        assert client.get("/forecast").json() == {"forecast": ""}
