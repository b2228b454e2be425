"""Batches and delays: a queue in Python over an environment without delays is compared with those that have them."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from environments import SETTINGS, agree, twins
from gymnasium.utils.env_checker import check_env
from rollouts import same
from test_gains import settings_of
from test_vector import DISABLED, NEXT, SAME

from bandit_envs import PureExplorationEnv, PureExplorationVectorEnv, Task
from bandit_envs.envs import NUMBERS, box_of, shown_by, shows_pending
from bandit_envs.kernels import rng
from bandit_envs.testing import check_problem

ALL = ["Threshold", "BestArm", "TopK", "AllGood", "Feasible"]
WAITS: dict[str, dict[str, Any]] = {
    "batch": {"batch": 3},
    "delay": {"delay": 2},
    "fraction": {"delay": 2.5},
    "drawn": {"delay": "exponential(4)"},
    "both": {"batch": 4, "delay": 3},
    "all": {"batch": 3, "delay": "exponential(6)"},
}
waits = pytest.mark.parametrize("wait", WAITS)


def pairs(first: Iterable[str], second: Iterable[str]) -> Any:
    """Of both lists each one once or more; ids of all other pairs begin with "more"."""
    rows, columns = list(enumerate(first)), list(enumerate(second))
    most = max(len(rows), len(columns))
    kept = {(i % len(rows), i % len(columns)) for i in range(most)}
    return [
        pytest.param(one, other, id=f"{'' if (i, j) in kept else 'more-'}{one}-{other}")
        for i, one in rows
        for j, other in columns
    ]


IGNORED = ("remaining",)  # of observations without delays


class Queue:
    """One episode, by the words of the documentation: `shown` is an environment that makes each pull when it is shown.

    A result is held back as long as an earlier one of its line is pending.
    """

    def __init__(self, settings: dict[str, Any], wait: dict[str, Any], root: int, number: int) -> None:
        self.batch, self.delay = wait.get("batch", 1), wait.get("delay", 0)
        self.shown = PureExplorationEnv(**settings)
        self.seen, _ = self.shown.reset(seed=root, options={"episode": number})
        task = self.shown.task
        self.limit = min(x for x in (task.budget, task.max_pulls) if x is not None)
        self.apart = self.shown.problem.local or bool(task.items)
        self.each = task.stop // task.K  # actions of an arm
        self.key, self.number = rng.root_key(root)[:, None], np.array([number], np.uint64)
        self.line: list[dict[str, Any]] = []
        self.clock, self.asked, self.over = 0.0, 0, False

    def late(self, t: int) -> float:
        if not isinstance(self.delay, str):
            return float(self.delay)
        u = rng.uniforms(self.key, self.number, 1, stream=rng.DELAY, index=np.array([t], np.uint64)).item()
        return -math.log1p(-u) * float(self.delay[12:-1])

    def close(self) -> None:
        for one in self.line:
            if one["due"] is None:
                one["due"] = self.clock + self.late(one["t"])

    def ready(self, now: float) -> list[dict[str, Any]]:
        found, held = [], set()
        for one in self.line:
            lane = one["arm"] // self.each if self.apart else None
            if lane not in held and one["due"] is not None and one["due"] <= now:
                found.append(one)
            else:
                held.add(lane)
        return found

    def show(self, ready: list[dict[str, Any]]) -> None:
        for one in ready:
            self.line.remove(one)
            self.seen = self.shown.step(one["arm"])[0]

    def ask(self, arm: int, times: int) -> None:
        for _ in range(min(times, self.limit - self.asked)):
            self.line.append({"arm": arm, "t": self.asked, "due": None})
            self.asked, self.clock = self.asked + 1, self.clock + 1
            if sum(one["due"] is None for one in self.line) == self.batch:
                self.close()
            self.show(self.ready(self.clock))
        if self.asked == self.limit:
            for one in self.line:
                one["due"] = 0.0
            self.show(self.ready(0.0))

    def wait(self) -> None:
        self.close()
        self.clock = max(self.clock, min(one["due"] for one in self.line if self.ready(one["due"])))
        self.show(self.ready(self.clock))

    def pending(self) -> Any:
        counts = np.zeros(self.shown.task.stop, np.int64)
        np.add.at(counts, [one["arm"] for one in self.line], 1)
        return counts.reshape(self.shown.task.shape)

    def check(self, seen: dict[str, Any]) -> None:
        assert seen["pending"].tolist() == self.pending().tolist()
        for name, value in self.seen.items():
            if name not in IGNORED:
                assert np.array_equal(value, seen[name]), name
        if "length" in seen:
            assert seen["times"].sum() == seen["length"][0] == self.asked - len(self.line)


@pytest.mark.parametrize(("title", "wait"), pairs(SETTINGS, WAITS))
def test_a_queue_shows_the_same(title: str, wait: str) -> None:
    """Bulk pulls across batches, waits, stops, and the ends by budget and max_pulls, of three slots side by side."""
    form = ("statistics", "history")[len(wait) % 2]
    # A pull of a table shows rows of its own order, whatever is asked of other arms; the longest budget is 25.
    settings = SETTINGS[title] | {"observation": form}
    given = settings | WAITS[wait] | {"actions": "full"}
    envs = PureExplorationVectorEnv(3, autoreset_mode=DISABLED, **given)
    alone = PureExplorationEnv(**given)
    random, waited, ends, cut = np.random.default_rng(0), 0, 0, 0
    for number in range(4):
        seen, _ = envs.reset(seed=11, options={"episode": number})
        single, _ = alone.reset(seed=11, options={"episode": number})
        queues = [Queue(settings, WAITS[wait], 11, number) for _ in range(3)]
        live = np.ones(3, np.bool_)
        while live.any():
            actions = [alone.action_space.sample() | {"times": int(random.integers(1, 9))} for _ in queues]
            for queue, action in zip(queues, actions, strict=True):
                action["arm"] = int(random.integers(queue.shown.task.stop + (random.random() < 0.1)))
                if queue.line and random.random() < 0.4:
                    action["times"], waited = 0, waited + 1
            spent = [queue.asked == queue.limit for queue in queues]
            seen, reward, terminated, truncated, info = envs.step(
                {name: np.array([action[name] for action in actions]) for name in actions[0]}
            )
            if live[0]:
                single, paid, *_, told = alone.step(actions[0])
                assert same(single, {name: array[0] for name, array in seen.items()})
                assert paid == reward[0]
                assert "sample" not in told
            assert "sample" not in info
            for e in np.flatnonzero(live):
                queue, stops = queues[e], spent[e] or actions[e]["arm"] == queues[e].shown.task.stop
                before = queue.asked
                if not stops and actions[e]["times"] == 0:
                    queue.wait()
                elif not stops:
                    queue.ask(actions[e]["arm"], actions[e]["times"])
                queue.check({name: array[e] for name, array in seen.items()})
                assert envs.asked[e].sum() == envs.total_pulls[e] == queue.asked
                assert terminated[e] == stops
                most = queue.shown.task.budget
                assert seen["remaining"][e, 0] == (-1 if most is None else most - queue.asked)
                if not stops:
                    assert reward[e] == 0.0 - queue.shown.task.pull_cost * (queue.asked - before)
                    assert truncated[e] == (queue.asked == queue.limit != most)
                else:
                    assert info["total_pulls"][e] == queue.asked
                    ends += 1
                cut += truncated[e]
            live &= ~(terminated | truncated)
    assert waited > 4
    assert cut > 0 if "max_pulls" in settings else ends > 4


@pytest.mark.parametrize(("problem", "wait"), pairs(ALL, WAITS))
def test_single_and_vector_environments_agree(problem: str, wait: str) -> None:
    mode = (NEXT, SAME, DISABLED)[ALL.index(problem) % 3]
    forms: list[dict[str, Any]] = [
        *({"observation": form, "ranked": form != "history"} for form in (*NUMBERS, "history", "statistics")),
        {"actions": "full", "observation": "history"},
        {"reward": "gain", "observation": "relative", "stop": False},
    ]
    for form in forms:
        settings = settings_of(problem) | WAITS[wait] | form
        if settings.get("actions") == "full":  # with bulk pulls alone: a wait needs something pending
            settings["budget"] = 30
        ended, _ = agree(*twins(problem, 3, mode, **settings), 40)
        assert ended >= 3


@pytest.mark.parametrize("problem", ALL)
def test_neither_is_an_environment_as_before(problem: str) -> None:
    settings = settings_of(problem)
    plain, given = PureExplorationEnv(problem, **settings), PureExplorationEnv(problem, **settings, batch=1, delay=0.0)
    assert plain.task == given.task
    assert not given.task.waits
    assert "batch" not in given.task.to_json()
    assert "delay" not in given.task.to_json()
    assert "pending" not in given.observation_space.spaces
    assert same(plain.reset(seed=3), given.reset(seed=3))
    for t in range(12):
        assert same(plain.step(t % 4), given.step(t % 4))
    full = PureExplorationEnv(problem, **settings, actions="full")
    full.reset(seed=0)
    with pytest.raises(ValueError, match=r"times must be in 1 \.\."):
        full.step({"arm": 0, "times": 0, "answer": np.zeros(4, np.int8)})


@pytest.mark.parametrize(("problem", "wait"), pairs(ALL, WAITS))
def test_gains_are_those_of_what_is_shown(problem: str, wait: str) -> None:
    """Of a whole episode they are those of an environment without delays that pulls arms in the order shown."""
    settings = settings_of(problem, budget=20) | {"reward": "gain", "observation": "history", "pull_cost": 0.001}
    late, plain = PureExplorationEnv(problem, **settings, **WAITS[wait]), PureExplorationEnv(problem, **settings)
    random = np.random.default_rng(4)
    for episode in range(3):
        seen, _ = late.reset(seed=2, options={"episode": episode})
        total, over = 0.0, False
        while not over:
            seen, paid, over, _, info = late.step(int(random.integers(4)))
            total += paid
        assert seen["pending"].sum() == 0
        plain.reset(seed=2, options={"episode": episode})
        steps = [plain.step(int(arm)) for arm in seen["arms"]]
        assert total == pytest.approx(sum(step[1] for step in steps), abs=1e-12)
        assert info["score"] == steps[-1][-1]["score"]


def test_pending_pulls_are_lost_by_a_stop_and_have_cost() -> None:
    env = PureExplorationEnv("BestArm", instance="tao2019-1", delta=0.1, pull_cost=0.5, batch=10)
    env.reset(seed=0)
    for arm in range(3):
        assert env.step(arm)[1] == -0.5
    seen, reward, terminated, _, info = env.step(env.task.stop)
    assert terminated
    assert seen["pending"][:4].tolist() == [1, 1, 1, 0]
    assert not seen["pulls"].any()
    assert (info["total_pulls"], reward) == (3, info["score"])
    assert info["answer"].tolist() == [True] + [False] * 9  # of arms never pulled
    assert info["level"] == 1.0


@waits
def test_copies_go_on_alike(wait: str) -> None:
    """With results pending; rendering shows what is shown; a new episode begins with nothing pending."""
    env: Any = PureExplorationEnv("TopK", **settings_of("TopK", budget=30), **WAITS[wait], render_mode="ansi")
    env.reset(seed=1)
    for t in range(10):
        env.step(t % 4)
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env))]
    for t in range(10):
        one, *rest = [any_.step(t % 3) for any_ in (env, *others)]
        assert all(same(one, other) for other in rest)
    assert "remaining 10" in env.render()
    seen, _ = env.reset()
    assert not seen["pending"].any()
    assert not seen["pulls"].any()


@waits
@pytest.mark.parametrize("form", NUMBERS)
def test_a_box_shows_the_share_of_pending_pulls(form: str, wait: str) -> None:
    both = [
        PureExplorationEnv("Threshold", budget=40, instance="sampler(arms=3)", observation=one, **WAITS[wait])
        for one in (form, "statistics")
    ]
    each, more, _ = NUMBERS[form]
    assert shows_pending(both[0].observation_space)
    assert shown_by(len(both[0].reset(seed=3)[0]), 4, True) == (form, True, True)
    both[1].reset(seed=3)
    for t in range(30):
        box, known = (env.step(t * t % 3)[0] for env in both)
        assert both[0].observation_space.contains(box)
        share = known["pending"] / np.maximum(known["pulls"] + known["pending"], 1)
        assert box[each : (each + 1) * 3 : each + 1].tolist() == share.astype(np.float32).tolist()
        assert len(box) == (each + 1) * 3 + more


@pytest.mark.parametrize("form", NUMBERS)
def test_boxes_say_what_they_show(form: str) -> None:
    for K in range(2, 40):
        for pending in (False, True):
            box = box_of(K, form, pending)
            assert shows_pending(box) == pending
            for stop in (False, True):
                found = shown_by(box.shape[0], K + stop, pending)
                assert found is not None
                assert found[2] == pending
                assert box_of(K + stop - found[1], found[0], pending).shape == box.shape


def test_settings_that_are_refused() -> None:
    for value in (0, 2.5, True, "three", None):
        with pytest.raises(ValueError, match="batch must be an integer in"):
            PureExplorationEnv("Threshold", batch=value)
    for delay in (-1, math.nan, math.inf, True, None, "3", "exponential()", "exponential(0)", "normal(3)", [3]):
        with pytest.raises(ValueError, match=r"delay must be a number of pulls in .* got"):
            PureExplorationEnv("Threshold", delay=delay)
    with pytest.raises(ValueError, match="may be pending.*smaller batch, delay"):
        PureExplorationEnv("Threshold", delta=0.1, batch=10**9)
    envs = PureExplorationVectorEnv(2, problem="Threshold", actions="full", budget=9, batch=3)
    envs.reset(seed=0)
    answer = np.zeros((2, 10), np.int8)
    envs.step({"arm": np.array([0, 0]), "times": np.array([3, 2]), "answer": answer})
    with pytest.raises(ValueError, match=r"no result is pending \(slot 0\)"):
        envs.step({"arm": np.array([0, 0]), "times": np.array([0, 0]), "answer": answer})
    with pytest.raises(ValueError, match=r"times must be in 0 \.\..*got -1 \(slot 1\)"):
        envs.step({"arm": np.array([0, 0]), "times": np.array([1, -1]), "answer": answer})
    with pytest.raises(ValueError, match=r"got 11 \(slot 1\)"):
        envs.step({"arm": np.array([0, 11]), "times": np.array([1, 0]), "answer": answer})
    assert envs.pending.sum() == 2  # nothing was asked
    with pytest.raises(ValueError, match="players know no pending results"):
        _ = envs.simulation


def test_tasks_are_written_and_read() -> None:
    for wait in WAITS.values():
        task = PureExplorationEnv("Threshold", **wait).task
        assert Task.from_json(task.to_json()) == task
        assert task.waits
        assert not task.replace(batch=1, delay=0).waits
    assert PureExplorationEnv("Threshold", delay=" exponential( 8.0 ) ").task.delay == "exponential(8)"
    assert PureExplorationEnv("Threshold", delay=np.float64(2)).task.delay == 2


@pytest.mark.parametrize("count", [4_000, 20_000])
def test_drawn_delays_have_their_mean(count: int) -> None:
    """Delays of single pulls of one arm; 6 standard errors, 2e-9 false alarms. One pull too many is found of 4,000."""
    envs = PureExplorationVectorEnv(
        count, problem="Threshold", max_pulls=200, instance="sampler(arms=2)", delay="exponential(8)"
    )
    envs.reset(seed=0)
    arms, left = np.zeros(count, np.int64), np.zeros(count)
    envs.step(arms)
    for _ in range(199):
        left += envs.pulls[:, 0] == 0
        envs.step(arms + 1)
    mean = 1 / (1 - math.exp(-1 / 8))  # of an exponential delay, rounded up to whole pulls
    assert abs(left.mean() - mean) < 6 * 8 / math.sqrt(count)


@pytest.mark.parametrize(("problem", "wait"), pairs(ALL, ["batch", "delay", "drawn"]))
def test_checkers_pass(problem: str, wait: str) -> None:
    settings = settings_of(problem, budget=20) | WAITS[wait]
    check_problem(problem, **settings)
    checked: Any = pytest.importorskip("stable_baselines3.common.env_checker")
    for form in (*NUMBERS, "history", "statistics"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            env = PureExplorationEnv(problem, observation=form, **settings)
            check_env(env, skip_render_check=True)
            checked.check_env(env)
