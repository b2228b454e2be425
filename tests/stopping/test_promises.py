"""What agents that stop by themselves promise, see `kept_promises`: who does, tolerances, errors, verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kept_promises import ALL_GOOD, CRITERIA, FORMS, NOMINAL, OF_TABLES, STOPPING, errors, most, of_all_good

import agents
from agents.core.confidence import tolerance_of
from agents.evaluation.statistics import verdict
from agents.registry import AGENTS
from bandit_envs import Task
from bandit_envs.stopping.distributions import CODES

CERTIFIED = {"evidence", "track-and-stop", "top-two", "tri-bbai"}


def test_who_promises() -> None:
    wanted = {"lucb", "kl-lucb", "clucb", "lil-ucb", "racing", "direct", "halving", "incremental", "median-elimination"}
    assert set(STOPPING) == wanted | {
        "adaptive-top-k",
        "improved-top-k",
        "adapt",
        "pi1",
        "pi2",
        "pi3",
        "ugape",
    } | CERTIFIED | {"opt-bbai", "batched-elimination", "kt", "gsp", "pass"}
    for name, row in AGENTS.items():
        stops = getattr(row, "stops", False) and {"TopK", "BestArm"} & set(row.solves)
        assert bool(stops) == (name in {*STOPPING, *OF_TABLES, *NOMINAL}), name


def test_every_agent_that_stops_stands_in_one_row_of_the_table_of_promises() -> None:
    page = (Path(agents.__file__).parent / "promises.md").read_text()
    certificates, promising = (
        [row.split(" | ")[0].strip("| ") for row in part.splitlines()[2:]] for part in page.split("\n\n")[2:]
    )
    rows = [name.strip("`") for who in promising for name in who.split(", ")]
    stopping = {name for name, row in AGENTS.items() if getattr(row, "stops", False)}
    assert sorted(rows) == sorted({*stopping, "any agent with stop='certificate'"})
    assert {*promising[0].replace("`", "").split(", ")} == CERTIFIED | OF_TABLES
    assert {who.strip("`") for who in certificates if "," not in who} == {*CODES, "paired"}


def test_tolerances() -> None:
    """By hand: the problem's epsilon, epsilon / k where the aggregate alone is promised, 0 for the exact set."""

    def told(name: str, criterion: str) -> float:
        task = Task("TopK", {"k": 4, "epsilon": 0.2, "criterion": criterion}, K=10, delta=0.1, max_pulls=10)
        return tolerance_of(agents.make(name, task))  # type: ignore[arg-type]

    assert [told("lucb", criterion) for criterion in CRITERIA] == [0.2, 0.2, 0.0]
    assert [told("adaptive-top-k", criterion) for criterion in CRITERIA] == [0.2, 0.05, 0.0]
    assert [told("racing", criterion) for criterion in CRITERIA] == [0.2, 0.2, 0.2]
    for name in ("direct", "halving", "incremental", "improved-top-k"):
        with pytest.raises(ValueError, match=f"{name} needs a tolerance > 0, which criterion='exact' of TopK"):
            told(name, "exact")


MATTERS = [  # each criterion where it is the one that matters
    ("two close arms", "exact"),
    ("one worse arm among good ones", "each"),
    ("one better arm among equals", "aggregate"),
]


@pytest.mark.parametrize(("where", "criterion"), MATTERS)
@pytest.mark.parametrize("name", STOPPING)
def test_errors_are_at_most_delta(name: str, where: str, criterion: str) -> None:
    """Of 60 answers at most 36 are wrong."""
    wrong = errors(name, where, criterion, 0.3, 60, 600)
    assert wrong is None or wrong <= most(60, 0.3)


@pytest.mark.parametrize(
    ("name", "where", "criterion"),
    [
        ("lucb(epsilon=0.5)", "two close arms", "exact"),  # its tolerance before the criterion was obeyed
        ("median-elimination(sigma=0.005)", "two arms apart", "each"),
        ("kl-lucb(sigma=0.05)", "one worse arm among good ones", "each"),
        ("direct(sigma=0.05)", "one worse arm among good ones", "each"),
    ],
)
def test_limits_have_teeth(name: str, where: str, criterion: str) -> None:
    wrong = errors(name, where, criterion, 0.1, 200)
    assert wrong is not None
    assert wrong > most(200, 0.1)


def test_who_stops_on_all_good() -> None:
    """LUCB does on other problems; here it is an oracle that runs on."""
    wanted = {"st2", "two-step", "fareast", "east", "uniform-elimination", "lucb", "evidence", "track-and-stop"}
    wanted |= {"top-two"}
    assert set(ALL_GOOD) == wanted


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in ALL_GOOD if name != "lucb"])
def test_errors_on_all_good_are_at_most_delta(name: str, form: str) -> None:
    wrong, stopped = of_all_good(name, form, 0.3, 60)
    assert wrong <= most(60, 0.3)
    assert stopped == 60


@pytest.mark.parametrize("name", ["st2(c=0.1)", "two-step(c=0.1)", "east(c=0.1)", "uniform-elimination(c=0.1)"])
@pytest.mark.parametrize("form", ["additive", "multiplicative"])
def test_limits_on_all_good_have_teeth(name: str, form: str) -> None:
    """Widths a sixth of what they should be."""
    assert of_all_good(name, form, 0.1, 400)[0] > most(400, 0.1)


def test_verdicts_by_hand() -> None:
    assert verdict(0, 36, 0.1) == "met"
    assert verdict(0, 35, 0.1) == "undecided"
    assert verdict(30, 100, 0.1) == "not met"
    assert verdict(0, 100, 0.1, open=100) == "none stopped"
    assert verdict(0, 100, 0.1, open=3) == "met"  # the three may have been wrong
    assert verdict(0, 100, 0.1, open=20) == "undecided"
    assert verdict(30, 100, 0.1, open=20) == "not met"


@pytest.mark.parametrize(
    ("name", "more", "wanted"),
    [
        ("uniform", {"max_pulls": 300}, "none stopped"),
        ("uniform", {"budget": 300}, "none stopped"),
        ("lucb", {"max_pulls": 10**6}, "met"),
        ("lucb", {"max_pulls": 100}, "none stopped"),
        ("lucb(sigma=0.01)", {"max_pulls": 10**6}, "not met"),
    ],
)
def test_verdicts_are_about_runs_that_stopped(name: str, more: dict[str, Any], wanted: str) -> None:
    instance = {"distribution": "bernoulli", "mean": [0.6, 0.5, 0.5, 0.5]}
    kwargs: dict[str, Any] = {"instance": instance, "k": 1, "epsilon": 0.05, "delta": 0.1, **more}
    found = agents.evaluate(name, "TopK", episodes=100, env_kwargs=kwargs)
    assert found.summary()["verdict"].tolist() == [wanted]
    if wanted == "met":  # at a checkpoint that no episode has left behind, none has stopped
        found = agents.evaluate(name, "TopK", episodes=100, at=[10, 10**6], env_kwargs=kwargs)
        assert found.summary()["verdict"].tolist() == ["none stopped", "met"]
