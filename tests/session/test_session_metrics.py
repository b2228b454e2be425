"""Sessions about a table with several metrics in a cell."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from bandit_envs import Shared

G = np.random.default_rng(3)
N, NAMES = 40, ["a", "b", "c"]
CELLS = np.stack([(G.random((N, 3)) < [0.4, 0.8, 0.95]) * 1.0, G.uniform(50, [200, 300, 700], (N, 3)).round()], axis=2)
RANGE = [(0, 1), (0, 1000)]
FACTS: dict[str, Any] = {"problem": "Feasible", "arms": NAMES, "items": N, "range": RANGE, "delta": 0.1}
FACTS |= {"A": [[-1, 0], [0, 1]], "b": [-0.6, 250]}
TRUTH = (CELLS.mean(axis=0)[:, 0] >= 0.6) & (CELLS.mean(axis=0)[:, 1] <= 250)


def grade(name: str, item: int) -> list[float]:
    return list(CELLS[item, NAMES.index(name)])


def played(**changed: Any) -> Any:
    session = agents.Session("paired-elimination", FACTS | changed, store=":memory:", public_seed=5)
    session.run(grade)
    return session


def test_a_session_is_an_episode_of_the_environment() -> None:
    """The same pulls and the same answer on the same order of rows; ranges are the task's."""
    session = played()
    assert session.done
    assert session.answer().tolist() == TRUTH.tolist()
    assert session.certificate >= 0.9
    order = session._state.order
    env = gym.make(
        "bandit_envs/Feasible-v0",
        instance=Shared(CELLS, RANGE),
        delta=0.1,
        A=FACTS["A"],
        b=FACTS["b"],
        shuffle_arms=False,
    )
    agent = agents.make("paired-elimination", env)
    scores, pulls = CELLS[order].swapaxes(0, 1), np.zeros(3, np.int64)
    state, none = None, np.zeros((1, 1), np.int64)
    while True:
        shown = np.where((np.arange(N) < pulls[:, None])[..., None], scores, 0.0)
        mean = np.array([scores[k, :n].mean(axis=0) if n else np.zeros(2) for k, n in enumerate(pulls)])
        seen = {
            "pulls": pulls[None],
            "mean": mean[None],
            "total": (mean * pulls[:, None])[None],
            "variance": 0 * mean[None],
        }
        action, state = agent.predict(
            {**seen, "scores": shown[None], "remaining": none - 1, "public_seed": none}, state
        )
        if (arm := int(np.ravel(action)[0])) == 3:
            break
        pulls[arm] += 1
    assert session.arms()["pulls"].tolist() == pulls.tolist()


def test_intervals_are_of_each_metric_in_its_range() -> None:
    found = played().arms()
    for d in range(2):
        low, high, mean = (found[f"{name}_{d}"] for name in ("low", "high", "mean"))
        assert ((low <= CELLS.mean(axis=0)[:, d] + 1e-9) & (CELLS.mean(axis=0)[:, d] <= high + 1e-9)).all()
        assert ((low <= mean + 1e-9) & (mean <= high + 1e-9)).all()
        assert (RANGE[d][0] <= low).all()
        assert (high <= RANGE[d][1]).all()


def test_units_and_a_store_decide_nothing(tmp_path: Any) -> None:
    one = played()
    seconds = agents.Session(
        "paired-elimination", FACTS | {"range": [(0, 1), (0, 1)], "b": [-0.6, 0.25]}, store=":memory:", public_seed=5
    )
    seconds.run(lambda name, item: [grade(name, item)[0], grade(name, item)[1] / 1000])
    assert seconds.arms()["pulls"].tolist() == one.arms()["pulls"].tolist()
    assert seconds.answer().tolist() == one.answer().tolist()
    store = tmp_path / "kept.jsonl"
    for _ in range(3):  # closed and opened again
        kept = agents.Session("paired-elimination", FACTS, public_seed=5, store=store)
        for asked in kept.ask(4):
            kept.tell(asked, grade(NAMES[asked.arm], asked.item))
        kept.close()
    again = agents.Session("paired-elimination", FACTS, public_seed=5, store=store)
    again.run(grade)
    assert again.arms().equals(one.arms())
    again.history().to_csv(tmp_path / "history.csv", index=False)
    copy = agents.Session("paired-elimination", FACTS, store=":memory:", public_seed=5)
    copy.tell_table(tmp_path / "history.csv")
    assert copy.arms().equals(one.arms())
    copy.tell_table(tmp_path / "history.csv")  # what is known is left out
    assert copy.arms().equals(one.arms())


def test_results_by_hand_and_cells_that_failed() -> None:
    session = agents.Session("paired-elimination", FACTS, store=":memory:", public_seed=5)
    session.tell("a", [1, 300], item=3)
    with pytest.raises(ValueError, match="has the result 1, 300 already"):
        session.tell("a", [0, 300], item=3)
    for value in ([1, 1001], [2, 300], [1], 1, [1, 2, 3]):
        with pytest.raises(ValueError, match="a measurement"):
            session.tell("b", value, item=4)

    def failing(name: str, item: int) -> list[float]:
        if item % 5 == 0:
            raise TimeoutError
        return grade(name, item)

    other = agents.Session("paired-elimination", FACTS, store=":memory:", public_seed=5)
    with pytest.warns(UserWarning, match="could not be scored. The mean of an arm is that of the rows"):
        other.run(failing, failed="skip", retries=0)
    assert other.done
    history = other.history()
    failed = history[history["kind"] == "failed"]
    assert len(failed) > 0
    assert failed[["value_0", "value_1"]].isna().all(axis=None)


def test_facts_that_do_not_go_together() -> None:
    for changed, words in (
        ({"range": [(0, 1)]}, "ranges"),
        ({"range": [(0, 1), (3, 2)]}, "range"),
        ({"items": None}, "ranges"),
        ({"sigma": 1.0, "range": None}, "with items"),
        ({"minimize": True}, "minimize"),
    ):
        with pytest.raises(ValueError, match=words):
            agents.Session("paired-elimination", FACTS | changed, store=":memory:")
