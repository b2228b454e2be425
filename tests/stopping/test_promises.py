"""What agents that stop by themselves promise: each criterion of TopK and BestArm is obeyed, or refused by its name.

On AllGood there is one criterion, with the slack in both forms.

False-alarm rate: an agent that errs at a rate of exactly delta breaks its limit with probability 1e-6.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import agents
from agents.evaluation.statistics import verdict
from agents.registry import AGENTS
from bandit_envs import Task
from bandit_envs.stopping.distributions import CODES

TOP_K, BEST_ARM = "bandit_envs/TopK-v0", "bandit_envs/BestArm-v0"
CRITERIA = ("aggregate", "each", "exact")

# Instances on which what is right by one criterion is wrong by another, with k and epsilon.
INSTANCES: dict[str, tuple[list[float], int, float]] = {
    "two close arms": ([0.5, 0.48], 1, 0.5),  # only "exact" tells them apart
    "two arms apart": ([0.4, 0.6], 1, 0.15),  # every criterion does
    "one worse arm among good ones": ([0.9, 0.9, 0.9, 0.7, 0.5, 0.5, 0.5, 0.5], 4, 0.15),  # wrong by "each" alone
    "one better arm among equals": ([0.95, 0.5, 0.5, 0.45, 0.4, 0.4], 3, 0.12),  # without it, wrong by "aggregate"
}

# Stopping on TopK or BestArm, as they are. The fixed-budget ones among them make no promise.
STOPPING = [name for name, row in AGENTS.items() if getattr(row, "promises", ()) and name != "paired-elimination"]


CERTIFIED = {"evidence", "track-and-stop", "top-two"}
OF_TABLES = {"paired-elimination"}  # whose errors test_paired counts


def test_who_promises() -> None:
    wanted = {"lucb", "kl-lucb", "clucb", "lil-ucb", "racing", "direct", "halving", "incremental", "median-elimination"}
    assert (
        set(STOPPING)
        == wanted | {"adaptive-top-k", "improved-top-k", "adapt", "pi1", "pi2", "pi3", "ugape"} | CERTIFIED
    )
    for name, row in AGENTS.items():
        stops = getattr(row, "stops", False) and {"TopK", "BestArm"} & set(row.solves)
        assert bool(stops) == (name in {*STOPPING, *OF_TABLES}), name


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
    from agents.core.confidence import tolerance_of

    def told(name: str, criterion: str) -> float:
        task = Task("TopK", {"k": 4, "epsilon": 0.2, "criterion": criterion}, K=10, delta=0.1, max_pulls=10)
        return tolerance_of(agents.make(name, task))  # type: ignore[arg-type]

    assert [told("lucb", criterion) for criterion in CRITERIA] == [0.2, 0.2, 0.0]
    assert [told("adaptive-top-k", criterion) for criterion in CRITERIA] == [0.2, 0.05, 0.0]
    assert [told("racing", criterion) for criterion in CRITERIA] == [0.2, 0.2, 0.2]
    for name in ("direct", "halving", "incremental", "improved-top-k"):
        with pytest.raises(ValueError, match=f"{name} needs a tolerance > 0, which criterion='exact' of TopK"):
            told(name, "exact")


def errors(name: str, where: str, criterion: str, delta: float, episodes: int, most: int = 20_000) -> int | None:
    """Wrong answers by stopping; None where the pair is refused, which names the criterion."""
    mean, k, epsilon = INSTANCES[where]
    best = "TopK" not in AGENTS[name.partition("(")[0]].solves
    kwargs: dict[str, Any] = {
        "instance": {"distribution": "bernoulli", "mean": mean},
        "epsilon": epsilon,
        "delta": delta,
    }
    kwargs |= {"criterion": criterion, "max_pulls": most} | ({} if best else {"k": k})
    try:
        rows = agents.evaluate(name, BEST_ARM if best else TOP_K, episodes=episodes, env_kwargs=kwargs).episodes
    except ValueError as error:
        if "criterion" not in str(error):
            raise
        return None
    return int((~rows["correct"] & ~rows["truncated"]).sum())


MATTERS = [  # each criterion where it is the one that matters
    *[
        ("two close arms", "exact"),
        ("one worse arm among good ones", "each"),
        ("one better arm among equals", "aggregate"),
    ]
]
LONG = itertools.product(STOPPING, INSTANCES, CRITERIA, [0.1, 0.3], [2000], [20_000])


@pytest.mark.parametrize(
    ("name", "where", "criterion", "delta", "episodes", "most"),
    [
        *[(name, *row, 0.3, 60, 600) for name in STOPPING for row in MATTERS],
        *[pytest.param(*row, marks=pytest.mark.slow) for row in LONG],
    ],
)
def test_errors_are_at_most_delta(
    name: str, where: str, criterion: str, delta: float, episodes: int, most: int
) -> None:
    """Of 60 answers at most 36 are wrong."""
    wrong = errors(name, where, criterion, delta, episodes, most)
    assert wrong is None or wrong <= stats.binom.isf(1e-6, episodes, delta)


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
    assert wrong > stats.binom.isf(1e-6, 200, 0.1)


# --- all good arms ---------------------------------------------------------------------------------------------------

# Without slack two means are .1 from the boundary; with slack one lies in it. The best arm is unique.
NEAR = {"distribution": "gaussian", "mean": [1.0, 0.6, 0.4, 0.85], "sd": 0.25}
FORMS: dict[str, dict[str, Any]] = {
    "additive": {"epsilon": 0.5},
    "multiplicative": {"epsilon": 0.5, "multiplicative": True},
    "slack": {"epsilon": 0.35, "slack": 0.15},
    "multiplicative slack": {"epsilon": 0.35, "slack": 0.15, "multiplicative": True},
}
ALL_GOOD = [
    name
    for name, row in AGENTS.items()
    if getattr(row, "stops", False) and "AllGood" in row.solves and name not in OF_TABLES
]


def check_all_good(name: str, form: str, delta: float, episodes: int, most: int) -> tuple[int, int]:
    """Wrong answers by stopping, and how many answers there were."""
    kwargs = {"instance": NEAR, "delta": delta, "max_pulls": most, **FORMS[form]}
    rows = agents.evaluate(name, "bandit_envs/AllGood-v0", episodes=episodes, env_kwargs=kwargs).episodes
    return int((~rows["correct"] & ~rows["truncated"]).sum()), int((~rows["truncated"]).sum())


def test_who_stops_on_all_good() -> None:
    """LUCB does on other problems; here it is an oracle that runs on."""
    wanted = {"st2", "two-step", "fareast", "east", "uniform-elimination", "lucb", "evidence", "track-and-stop"}
    wanted |= {"top-two"}
    assert set(ALL_GOOD) == wanted


@pytest.mark.parametrize(
    ("episodes", "delta"),
    [(60, 0.3), *[pytest.param(2000, delta, marks=pytest.mark.slow) for delta in (0.1, 0.3)]],
)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in ALL_GOOD if name != "lucb"])
def test_errors_on_all_good_are_at_most_delta(name: str, form: str, episodes: int, delta: float) -> None:
    wrong, stopped = check_all_good(name, form, delta, episodes, 200_000)
    assert wrong <= stats.binom.isf(1e-6, episodes, delta)
    assert stopped == episodes or delta < 0.3


@pytest.mark.parametrize("name", ["st2(c=0.1)", "two-step(c=0.1)", "east(c=0.1)", "uniform-elimination(c=0.1)"])
@pytest.mark.parametrize("form", ["additive", "multiplicative"])
def test_limits_on_all_good_have_teeth(name: str, form: str) -> None:
    """Widths a sixth of what they should be."""
    assert check_all_good(name, form, 0.1, 400, 200_000)[0] > stats.binom.isf(1e-6, 400, 0.1)


# --- verdicts --------------------------------------------------------------------------------------------------------


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
    found = agents.evaluate(name, TOP_K, episodes=100, env_kwargs=kwargs)
    assert found.summary()["verdict"].tolist() == [wanted]
    if wanted == "met":  # at a checkpoint that no episode has left behind, none has stopped
        found = agents.evaluate(name, TOP_K, episodes=100, at=[10, 10**6], env_kwargs=kwargs)
        assert found.summary()["verdict"].tolist() == ["none stopped", "met"]
