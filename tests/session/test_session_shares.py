"""Sessions whose arms come and go: delta is shared by all arms that there have ever been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.session.doubts import needs_no_results, smallest_difference
from agents.session.promise import Share, share_of
from agents.session.setup import task_from_facts
from bandit_envs import PROBLEMS, Problem

pytest.importorskip("sqlalchemy")
from shares import RULES, check_shares, task_of


def test_a_session_whose_arms_stay_has_all_of_delta() -> None:
    for problem in PROBLEMS:
        task, arms = task_of(problem, 5), np.arange(5)
        assert share_of(task, 5, arms, False, 5, 0.0) == Share(1.0, 0)
        assert share_of(task, 5, arms, False, 5, 0.25) == Share(0.75, 0)


@pytest.mark.parametrize("problem", RULES)
@pytest.mark.parametrize("reserve", [0.0, 0.3])
def test_no_more_than_delta_is_spent_on_all_that_can_be_wrong(problem: str, reserve: float) -> None:
    check_shares(problem, reserve, 10)


@pytest.mark.parametrize("problem", ["BestArm", "TopK", "AllGood"])
def test_a_pair_has_no_more_than_its_share(problem: str) -> None:
    """What `needed` gives the supermartingales that concern one pair of arms sums to delta / (K - 1) at most."""
    for K in (3, 4, 7, 20):
        task = task_of(problem, K)
        kinds = task.certifier(distribution="gaussian").needed(0.1)  # of the value of a pair, ln(1 / share) at least
        shares = np.exp(-np.array(kinds))
        if problem == "AllGood":  # in the answer, or clearly worse than all, in both directions; and one of two ordered
            each = max(shares[0], 2 * shares[2]) + 2 * shares[1]
        else:
            each = shares[0]
        assert each <= 0.1 / (K - 1) * (1 + 1e-12)


def test_what_was_owed_is_said() -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 3, "binary": True, "delta": 0.1}
    for reserve, promised in ((0.0, 0.8), (0.4, 0.9)):
        session = agents.Session("evidence", facts | {"reserve": reserve}, store=":memory:", public_seed=0)
        session.add_arm()
        for _ in range(400):
            if not session.done:
                (arm,) = session.ask()
                session.tell(arm, arm % 2)
        assert session.done
        assert promised <= session.certificate < promised + 0.1


def test_withdrawing_alone_costs_nothing_where_arms_count_by_themselves() -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 3, "binary": True, "delta": 0.1}
    session = agents.Session("evidence", facts, store=":memory:", public_seed=0)
    session.tell_all([(arm, arm % 2) for arm in (0, 1) for _ in range(12)])
    before = session.certificate
    session.withdraw_arm(2)
    level = session.task.make_problem().certified_level([12, 12], [0.0, 1.0], distribution="bernoulli")
    assert before == 0
    assert session.certificate == pytest.approx(1 - level * 3 / 2)  # as one of three arms, not of two
    if not session.done:
        session.undo(int(session.history().query("kind == 'arm withdrawn'")["event"].iloc[0]))
        assert session.certificate == 0


def test_an_undone_withdrawal_has_spent_its_share() -> None:
    facts = {"problem": "BestArm", "arms": 3, "binary": True, "delta": 0.1}
    session = agents.Session("evidence", facts, store=":memory:", public_seed=0)
    session.tell_all([(0, 1), (1, 0), (2, 0)] * 4)
    before = session.certificate
    session.withdraw_arm(1)
    session.undo(int(session.history().query("kind == 'arm withdrawn'")["event"].iloc[0]))
    assert session.active.tolist() == [0, 1, 2]
    assert session.certificate < before
    assert session._state.run.share == Share(pytest.approx(2 / 6), 1)
    assert session._folded().run.share == session._state.run.share


class Paired(Problem):
    """A problem of one's own, of which nobody knows how many alternatives it has: the arms above the first one."""

    name, asks = "above-the-first", "all arms better than the first one"

    def margin(self, means: Any) -> Any:
        m = np.asarray(means, np.float64)
        return m - m[..., :1]

    def verdict(self, answer: Any, truth: Any) -> Any:
        right = (np.asarray(answer, bool) == (truth >= 0)).all(axis=-1)
        return {"correct": right, "score": right.astype(float)}


def test_a_problem_of_unknown_alternatives_keeps_its_arms() -> None:
    name = f"{Paired.__module__}:{Paired.__name__}"
    facts = {"problem": name, "arms": 3, "binary": True}
    with pytest.raises(ValueError, match="arms cannot come or go in a session with a delta"):
        agents.Session("uniform", facts | {"delta": 0.1}, store=":memory:").add_arm()
    session = agents.Session("uniform", facts, store=":memory:")
    session.add_arm()
    assert session.certificate is None


# --- facts that go together badly -------------------------------------------------------------------------------------

CAPTIONS = {"problem": "TopK", "k": 3, "arms": 40, "range": (1, 5)}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            CAPTIONS | {"budget": 300, "delta": 0.1},
            "7 measurements of each of 40 arms: differences of 3.8 or more, on a",
        ),
        (CAPTIONS | {"budget": 30}, "a budget of 30 measurements does not reach each of the 40 arms once"),
        (CAPTIONS | {"delta": 0.1, "sigma": 2.5}, "sigma=2.5 says nothing: on a range of 4, 2 holds for any"),
        (CAPTIONS | {"delta": 0.9}, "delta=0.9 lets more than half of all answers be wrong"),
        (CAPTIONS | {"delta": 0.1, "epsilon": 5}, "an answer is known that is right"),
    ],
)
def test_facts_that_go_together_badly_are_named(facts: dict[str, Any], said: str) -> None:
    agent = "uniform" if "budget" in facts else "evidence"
    with pytest.warns(UserWarning, match=said):
        agents.Session(agent, facts, store=":memory:")


@pytest.mark.parametrize(
    ("facts", "needs_none"),
    [
        ({"problem": "Feasible", "A": [[1.0], [-1.0]], "b": [0.62, -0.61]}, False),  # both ends lie outside
        ({"problem": "Feasible", "A": [[1.0], [-1.0]], "b": [0.62, -0.61], "tolerance": 0.2}, True),  # too thin
        ({"problem": "Feasible", "A": [[1.0], [-1.0]], "b": [2.0, 1.0]}, True),  # the range lies inside
        ({"problem": "Feasible", "A": [[1.0]], "b": [0.5], "tolerance": 0.4}, False),
        ({"problem": "Feasible", "A": [[1.0]], "b": [0.5], "tolerance": 0.6}, True),
        ({"problem": "Threshold", "threshold": 0.05}, False),
        ({"problem": "Threshold", "threshold": 0.5, "tolerance": 0.6}, True),
        ({"problem": "TopK", "k": 2, "epsilon": 0.9, "criterion": "each"}, False),
        ({"problem": "TopK", "k": 2, "epsilon": 1.1, "criterion": "each"}, True),
        ({"problem": "AllGood", "epsilon": 0.9}, False),
        ({"problem": "AllGood", "epsilon": 1.1}, True),
    ],
)
def test_what_needs_no_results(facts: dict[str, Any], needs_none: bool) -> None:
    task, _ = task_from_facts({"arms": 3, "range": (0, 1), **facts})
    assert needs_no_results(task) == needs_none


def test_the_smallest_difference_is_where_the_certificate_begins_to_hold() -> None:
    task, _ = task_from_facts({"problem": "BestArm", "arms": 3, "range": (0, 10)})
    least = smallest_difference(task, 100, 0.05)
    assert least is not None
    problem, pulls = task.make_problem(), [100] * 3
    for factor, holds in ((1.001, True), (0.999, False)):
        apart = factor * least
        means = [5 + apart / 2, 5 - apart / 2, 5 - apart / 2]
        level = problem.certified_level(pulls, means, variance=np.zeros(3), moments=np.zeros((3, 2)))
        assert (level <= 0.05) == holds
    assert smallest_difference(task, 1, 0.05) == np.inf


def test_a_smaller_scale_counts_whatever_the_range() -> None:
    """Range 0 to 1 and sigma .15, or 0 to 10 and sigma 1.5, of the same data: 1,188 and 64 measurements before."""
    needed = []
    for scale in (1.0, 10.0):
        facts = {"problem": "BestArm", "arms": 2, "range": (0, scale), "sigma": 0.15 * scale, "delta": 0.05}
        session = agents.Session("evidence", facts, store=":memory:", public_seed=0)
        generator = np.random.default_rng(0)
        while not session.done:
            for arm in session.ask():
                session.tell(arm, scale * float(np.clip(generator.normal((0.6, 0.45)[arm], 0.15), 0, 1)))
        needed.append(len(session))
    assert needed[0] == needed[1] < 150


def test_a_table_beyond_the_budget_is_refused(tmp_path: Path) -> None:
    facts = {"problem": "BestArm", "arms": ["a", "b"], "binary": True, "budget": 10}
    session, table = agents.Session("uniform", facts, store=":memory:"), tmp_path / "t.csv"
    table.write_text("a,b\n" + "1,0\n" * 6)
    with pytest.raises(ValueError, match="12 results, and the budget leaves 10. Results count as part of the budget"):
        session.tell_table(table)
    assert len(session) == 0
    table.write_text("a,b\n" + "1,0\n" * 5)
    assert session.tell_table(table) == 10
    assert session.done


@pytest.mark.parametrize(
    "name", ["evidence(distribution='student')", "uniform(stop='certificate', distribution='student')"]
)
def test_rounded_samples_void_the_certificate_of_unknown_variances(name: str) -> None:
    facts = {"problem": "BestArm", "arms": 2, "sigma": 1.0, "delta": 0.1}
    session = agents.Session(name, facts, store=":memory:", public_seed=0)
    session.tell_all([(0, 1.25), (1, 1.25), (0, 1.5)])
    with pytest.warns(UserWarning, match=r"'student' counts on Gaussian samples, which never repeat: \[1.25\]"):
        session.tell(0, 1.25)
    other = agents.Session("evidence", facts, store=":memory:", public_seed=0)
    other.tell_all([(0, 1.25), (0, 1.25)])


def test_the_delta_of_an_agent_that_only_a_function_names() -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 2, "binary": True, "delta": 0.01}
    session = agents.Session(lambda task: agents.make("evidence", task, delta=0.2), facts, store=":memory:")
    assert session.delta == 0.2
    session.add_arm()
    while not session.done:
        (arm,) = session.ask()
        session.tell(arm, arm % 2)
    assert 0.6 <= session.certificate < 0.8  # 1 - 2 delta


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("evidence", "evidence(delta=0.1)"),
        ("uniform(stop='certificate')", "uniform(stop='certificate', delta=0.1)"),
    ],
)
def test_an_own_delta_of_the_agent_is_shared_as_that_of_the_task(name: str, own: str) -> None:
    """Three arms and one more, which has 1/20 of delta: the agent on four arms stops at 4/20 of its own, .1, too."""
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 3, "binary": True, "reserve": 0.1}
    needed = []
    for text, delta in ((name, 0.1), (own, 0.01)):
        session = agents.Session(text, facts | {"delta": delta}, store=":memory:", public_seed=0)
        session.add_arm()
        while not session.done:
            (arm,) = session.ask()
            session.tell(arm, arm % 2)
        assert session.delta == 0.1
        assert session.certificate >= 0.9
        needed.append(len(session))
    assert needed[0] == needed[1]


def test_what_a_change_may_have_cost_is_not_passed_over() -> None:
    facts = {"problem": "BestArm", "arms": 3, "binary": True, "budget": 60}
    for reserve, known in ((0.0, False), (0.3, True)):
        session = agents.Session("uniform", facts | {"reserve": reserve}, store=":memory:")
        session.tell_all([(0, 1), (1, 0), (2, 0)] * 12)
        assert session.certificate is not None
        session.withdraw_arm(2)
        assert (session.certificate is not None) == known
    stopping = facts | {"epsilon": 0.2, "delta": 0.2, "max_pulls": 900, "budget": None}
    rounds = agents.Session("median-elimination", stopping, store=":memory:")
    rounds.withdraw_arm(2)
    assert rounds.certificate is None


def test_a_withdrawal_cannot_be_undone_after_the_end() -> None:
    facts = {"problem": "Threshold", "threshold": 0.5, "arms": 3, "binary": True, "delta": 0.2}
    session = agents.Session("evidence", facts, store=":memory:")
    session.withdraw_arm(2)
    while not session.done:
        (arm,) = session.ask()
        session.tell(arm, arm)
    event = int(session.history().query("kind == 'arm withdrawn'")["event"].iloc[0])
    with pytest.raises(ValueError, match="the session is over, and its answer stays"):
        session.undo(event)
    assert session.done
