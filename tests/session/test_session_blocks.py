"""Blocks of sessions: the effect of a plate, a day or a rater drops out of differences."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import twins_paired as twins
from refusals import refused
from scipy import stats
from twins_paired import Mutant, Null

import agents
from bandit_envs import Task

pytest.importorskip("sqlalchemy")

ARMS = ["a", "b", "c", "d"]
FACTS = {"problem": "BestArm", "arms": ARMS, "range": (0, 10), "delta": 0.2, "epsilon": 0.2, "blocks": "plate"}
ROWS, EPISODES, DELTA = 400, 1000, 0.1
LIMIT = int(stats.binom.isf(1e-6, EPISODES, DELTA))  # of errors: it is passed by chance once in a million runs
PROBLEMS = {
    "BestArm": {"epsilon": 0.02},
    "TopK": {"k": 2, "epsilon": 0.02, "criterion": "each"},
    "AllGood": {"epsilon": 0.06},
}
WITH = Mutant(nominal=True)  # m_n is -e


def opened(store: str | Path = ":memory:", **facts: Any) -> agents.Session:
    return agents.Session("paired-elimination", FACTS | facts, store=store, public_seed=4)


def task_of(problem: str, K: int = 4, delta: float = DELTA, **rules: Any) -> Task:
    told = {"distribution": "blocks", "items": ROWS} | rules
    return Task(problem, PROBLEMS[problem], K=K, delta=delta, support=(0.0, 1.0), **told)


def blocks_of(means: Any, episodes: int, seed: int, sd: float = 0.04, effect: float = 5.0) -> Any:
    """Scores (E, N, K): means, effects of blocks of `effect` times sd, up or down, noise of sd; all within [0, 1]."""
    g = np.random.default_rng(seed)
    shared = effect * sd * g.choice([-1.0, 1.0], (episodes, ROWS, 1))
    return np.asarray(means) + shared + sd * g.normal(size=(episodes, ROWS, len(means))).clip(-4, 4)


def certified(task: Task, scores: Any, rows: int = ROWS) -> tuple[Any, Any]:
    """-ln of the level after so many blocks, and the answers, of episodes (E, N, K) of scores."""
    E, _, K = scores.shape
    shown = np.ascontiguousarray(np.moveaxis(scores, 1, 2))
    shown[:, :, rows:] = 0.0
    pulls, inside = np.full((E, K), rows), np.full((E, K), -1, np.int8)
    mean = np.ascontiguousarray(np.nanmean(scores[:, :rows], axis=1))
    found = task.certifier().alternatives(pulls, mean, mean, inside, shown)
    return found[:, 0], inside != 0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_certificate_is_that_of_a_literal_twin(problem: str) -> None:
    g, ended = np.random.default_rng(1), 0
    for trial in range(30):
        means = 0.5 + 0.1 * g.normal(size=4).clip(-2, 2)
        x = blocks_of(means, 1, trial)[0].clip(0, 1)
        if trial % 3 == 0 and problem != "AllGood":
            x[g.random(x.shape) < 0.1] = math.nan  # questions that were undone
        rows, e = int(g.integers(1, ROWS // 2)), PROBLEMS[problem]["epsilon"]
        (found,), (answer,) = certified(task_of(problem, delta=0.2), x[None].copy(), rows)
        pulls = np.full(4, rows)
        if problem == "BestArm":
            kept = twins.best(x, e, 0.2, pulls, WITH)
        elif problem == "TopK":
            kept = twins.top_k(x, 2, e, 0.2, pulls, WITH)
        else:
            nulls = Null(1.0, 1.0, e), Null(1.0, 1.0, -e)
            kept = twins.all_good(x, *nulls, lambda most, e=e: most - e - 1e-12, 0.2, pulls, WITH)
        assert max(found, 0) == pytest.approx(max(kept.level, 0), abs=1e-9)
        assert answer.tolist() == (kept.answer == 1).tolist()
        ended += kept.over
    assert ended >= (5 if problem != "AllGood" else 1)


MEANS = {"BestArm": [0.521, 0.5, 0.5, 0.5], "TopK": [0.521, 0.521, 0.5, 0.5], "AllGood": [0.62, 0.62, 0.5, 0.5]}


def errors(problem: str, scores: Any, means: Any, rows: int = ROWS) -> tuple[int, int]:
    """How many episodes end with a certificate, and how many of these with an answer other than the right one."""
    level, answer = certified(task_of(problem), scores, rows)
    sure = level >= math.log(1 / DELTA)
    return int(sure.sum()), int((sure & (answer != (np.array(means) > 0.51)).any(axis=1)).sum())


@pytest.mark.parametrize("problem", PROBLEMS)
def test_errors_are_at_most_delta_where_effects_are_five_times_the_noise(problem: str) -> None:
    """In BestArm and TopK the arms of any other answer are worse by little more than epsilon."""
    ended, wrong = errors(problem, blocks_of(MEANS[problem], EPISODES, 2), MEANS[problem])
    assert ended > 0.9 * EPISODES
    assert wrong <= LIMIT


def test_the_limit_is_passed_where_an_arm_is_measured_in_later_blocks() -> None:
    """Effects that grow from day to day do no harm within blocks; an arm that is a third of all days late wins."""
    means, third = MEANS["BestArm"], ROWS // 3
    scores = blocks_of(means, EPISODES, 3, effect=0.0) + np.linspace(0, 0.15, ROWS)[:, None]
    assert errors("BestArm", scores.copy(), means, ROWS // 2)[1] <= LIMIT
    scores[:, : ROWS - third, 1] = scores[:, third:, 1]
    assert errors("BestArm", scores, means, ROWS // 2)[1] > LIMIT


def test_without_blocks_the_effects_of_days_are_taken_for_those_of_arms() -> None:
    """Each arm is measured on a day of its own, and counted as if there were no days."""
    g, means = np.random.default_rng(4), np.array(MEANS["BestArm"])
    scores = means + g.uniform(-0.3, 0.3, (300, 1, 4)) + 0.04 * g.normal(size=(300, 150, 4)).clip(-4, 4)
    mean, spread, inside = scores.mean(axis=1), scores.var(axis=1), np.full((300, 4), -1, np.int8)
    central = scores - scores.mean(axis=1, keepdims=True)
    moments = np.stack([(central**3).mean(axis=1), (central**4).mean(axis=1)], axis=-1)
    plain = task_of("BestArm", distribution="resampled", items=None).certifier()
    level = plain.alternatives(np.full((300, 4), 150), mean, spread, inside, moments)[:, 0]
    wrong = ((level >= math.log(1 / DELTA)) & (inside[:, 0] == 0)).sum()
    assert wrong > stats.binom.isf(1e-6, 300, DELTA)


def test_a_session_asks_for_whole_blocks_of_the_arms_that_still_count() -> None:
    session, g, sizes = opened(), np.random.default_rng(0), list[int]()
    while not session.done:
        block = session.ask()
        assert len({question.item for question in block}) == 1
        assert len({int(question) for question in block}) == len(block)
        sizes.append(len(block))
        effect = g.uniform(1, 7)
        for question in g.permutation(len(block)):
            one = block[question]
            session.tell(one, effect + (0, 0.7, 1, 2)[one.arm] + g.uniform(-0.1, 0.1))
    assert sizes[0] == 4
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 4
    assert session.answer().tolist() == [False, False, False, True]
    assert session.certificate == pytest.approx(0.8)
    assert np.isnan(session.arms()["low"]).all()
    assert session.tied == []
    assert len(opened().ask(11)) == 8  # two whole ones


def test_the_order_of_results_changes_nothing_and_the_session_can_be_opened_again(tmp_path: Path) -> None:
    one, other, g = opened(tmp_path / "a.db"), opened(), np.random.default_rng(1)
    orders = Counter[tuple[int, ...]]()
    for _ in range(8):
        blocks = one.ask(), other.ask()
        assert blocks[0] == blocks[1]
        orders[tuple(map(int, blocks[0]))] += 1
        values = dict(zip(blocks[0], g.uniform(0, 1, len(blocks[0])) + 1.5 * np.array(blocks[0]), strict=True))
        for question in blocks[0]:
            one.tell(question, values[question])
        for question in blocks[1][::-1]:
            other.tell(question, values[question])
    assert len(orders) > 3  # arms come in random order within a block
    assert one.certificate == other.certificate == agents.Session(store=tmp_path / "a.db").certificate > 0
    one.history().to_csv(tmp_path / "a.csv", index=False)
    copied = opened()
    copied.tell_table(tmp_path / "a.csv")
    assert copied.certificate == one.certificate
    assert copied.ask() == one.ask()


def test_a_question_that_was_undone_leaves_its_place_empty() -> None:
    session = opened()
    for block in range(10):
        asked = session.ask()
        for question in asked:
            if block != 3 or question.arm != 2:
                session.tell(question, question.arm + block % 3)
    before = session.certificate
    (failed,) = session.pending
    session.undo(failed.number)
    assert session.pending == []
    assert session.arms()["pulls"].tolist() == [10, 10, 10, 10]
    assert session.certificate >= before
    assert {question.item for question in session.ask()} == {10}


def test_a_block_that_lacks_results_holds_up_the_certificate_alone() -> None:
    session = opened()
    first = session.ask()
    for _ in range(8):
        for question in session.ask():
            session.tell(question, 2 + question.arm)
    assert session.certificate == 0
    for question in first:
        session.tell(question, 2 + question.arm)
    assert session.certificate > 0
    for _ in range(110):
        session.ask()
    assert session.ask() == []  # enough are open


def test_results_that_were_not_asked_for_are_of_whole_blocks() -> None:
    session = opened()
    session.tell_all([(arm, 3 + number, 0) for number, arm in enumerate(ARMS)])
    assert len(session) == 4
    for results in ([(arm, 3, 1) for arm in ARMS[:3]], [(arm, 3, 2) for arm in ARMS]):
        with refused("block", 1):
            session.tell_all(results)
    with refused("a", "already"):
        session.tell("a", 4, item=0)
    assert {question.item for question in session.ask()} == {1}
    with refused("a", "already"):  # an arm twice in a block
        session.tell_all([("a", 3, 1), ("a", 4, 1)])


def test_a_rater_has_so_many_blocks() -> None:
    session = opened(blocks="rater", raters=["ann", "bob"], repeats=2)
    for who in ("ann", "bob"):
        assert len(session.ask(12, who=who)) == 8
        assert session.ask(who=who) == []
    assert Counter(session.history()["who"]) == {"ann": 8, "bob": 8}


def test_a_function_is_run_until_the_end() -> None:
    session = opened(delta=0.2)
    effects = np.random.default_rng(3).uniform(0, 6, 1000)
    assert session.run(lambda arm, block: effects[block] + (3 if arm == "b" else 1), workers=3) == len(session)
    assert session.done
    assert session.answer().tolist() == [False, True, False, False]


def test_a_budget_ends_within_a_block() -> None:
    session = opened(budget=10, delta=None)
    while not session.done:
        for question in session.ask():
            session.tell(question, 3 + question.arm)
    assert len(session) == 10
    assert session.answer().tolist() == [False, False, False, True]


REFUSED: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "Threshold": ({"problem": "Threshold", "threshold": 5, "epsilon": None}, ("blocks", "Threshold")),
    "Feasible": ({"problem": "Feasible", "A": [[1]], "b": [5], "epsilon": None}, ("Feasible",)),
    "a share of the best": ({"problem": "AllGood", "multiplicative": True}, ("blocks", "AllGood")),
    "items": ({"items": 4}, ("blocks", "items")),
    "a scale": ({"sigma": 1, "range": None}, ("blocks", "sigma")),
    "a plate": ({"plate": 24}, ("plate", "blocks")),
    "weeks": ({"blocks": "week"}, ("blocks", "week")),
}


@pytest.mark.parametrize("title", REFUSED)
def test_blocks_that_cannot_be_are_refused(title: str) -> None:
    facts, words = REFUSED[title]
    with refused(*words):
        opened(**facts)


def test_other_agents_and_changes_of_arms_are_refused() -> None:
    with refused("blocks", "paired-elimination", "uniform"):
        agents.Session("uniform", FACTS, store=":memory:")
    session = opened()
    with refused("arms"):
        session.add_arm("e")
    with refused("arms"):
        session.withdraw_arm("a")


def test_a_column_of_items_is_said_to_be_ignored_without_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,value,plate\na,3,1\nb,4,1\n")
    session = agents.Session("evidence", {**FACTS, "blocks": None}, store=":memory:")
    with pytest.warns(UserWarning, match="'plate' is ignored"):
        session.tell_table(tmp_path / "a.csv", item="plate")
    assert len(session) == 2


def test_a_budget_holds_a_block_at_least() -> None:
    facts = {"problem": "BestArm", "arms": 4, "range": (0, 10), "delta": 0.1, "blocks": "day", "budget": 3}
    with pytest.raises(ValueError, match="a budget of 3 measurements holds no whole block of 4 arms"):
        agents.Session("paired-elimination", facts, store=":memory:")
