"""MD-SAR and the paper of feasible arms: by hand, against literal twins, reductions, and what the paper prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray
from plays import episode_of
from scipy import stats
from twins_feasible import sar

import agents
from agents.core.phases import phase_ends
from bandit_envs import Bernoulli, Gaussian, Instance
from bandit_envs.instances.polyhedra import cube

THRESHOLD, FEASIBLE = "bandit_envs/Threshold-v0", "bandit_envs/Feasible-v0"


def test_phase_ends() -> None:
    # K = 2: logbar = 1/2 + 1/2 = 1, n_1 = ceil(8 / 2)
    assert phase_ends(K=2, T=10) == (0, 4)
    # K = 3: logbar = 4/3, 8 / (4/3 * 3) = 2, 8 / (4/3 * 2) = 3 exactly; 2 + 3 + 3 pulls
    assert phase_ends(K=3, T=11) == (0, 2, 3)
    # K = 4: logbar = 19/12, T - K = 16: 16 * 12/19 / (4, 3, 2) = 2.53, 3.37, 5.05; 3 + 4 + 6 + 6 = 19 <= 20
    assert phase_ends(K=4, T=20) == (0, 3, 4, 6)
    # one pull more than K: each phase ends at one pull
    assert phase_ends(K=4, T=5) == (0, 1, 1, 1)
    assert len(phase_ends(K=5000, T=10**6)) == 5000


@pytest.mark.parametrize("K", [2, 3, 7, 20, 38, 200])
def test_phases_never_exceed_the_budget(K: int) -> None:
    for T in range(K + 1, 5 * K + 60):
        n = phase_ends(K, T)
        assert sum(n[1:]) + n[-1] <= T  # the arm dropped after phase k has n_k pulls, the last one n_{K-1}
        assert list(n) == sorted(n)


def random_case(g: np.random.Generator) -> dict[str, Any]:
    """K from 2 to 12, budgets from K + 1 on: scalar Bernoulli (many ties) or Gaussian arms of 1 to 4 dimensions."""
    K, D = int(g.integers(2, 13)), int(g.integers(1, 5))
    budget = int(g.integers(K + 1, g.choice([12, 12, 200]) * K))  # the large ones have phases of more than 64 pulls
    if g.random() < 0.4:
        arms = Bernoulli(g.integers(0, 11, K) / 10)
        return {"instance": Instance(arms), "A": [[-1.0]], "b": [-0.5], "budget": budget}
    M = int(g.integers(1, 7))
    A, means = g.normal(size=(M, D)), g.normal(0, 1, (K, D) if D > 1 else K)
    rules = {"A": A.tolist(), "b": g.uniform(0.3, 1.0, M).tolist(), "budget": budget}
    return {"instance": Instance(Gaussian(means, 0.7)), **rules}


@pytest.mark.parametrize("actions", ["full", "arm"])
def test_sar_is_its_twin(actions: str) -> None:
    """The same pulls and the same answer on 40 random instances, in bulk and one by one."""
    g = np.random.default_rng(1)
    for number in range(40):
        env: Any = gym.make(FEASIBLE, actions=actions, **random_case(g)).unwrapped
        K, T, full = env.task.K, env.task.budget, actions == "full"
        start: dict[str, Any] = {"seed": 2, "options": {"episode": number}}
        asked, info = episode_of(env, agents.make("sar", env), number, 2)
        mine = [(action["arm"], int(action["times"])) if full else action for action in asked]
        theirs: list[Any] = []
        observation, _ = env.reset(**start)
        twin = sar(K, T, env.problem.arm_margin)
        arm, times = next(twin)
        try:
            while True:
                for _ in range(1 if full else times):
                    act = {"arm": arm, "times": times, "answer": np.zeros(K, np.int8)} if full else arm
                    theirs.append((arm, times) if full else arm)
                    observation = env.step(act)[0]
                arm, times = twin.send(observation["mean"][arm])
        except StopIteration as stop:
            answer = stop.value
        assert mine[: len(theirs)] == theirs, number
        assert mine[len(theirs) :] in ([], [(K, 1)] if full else [K], [(0, 1)])  # stops, or answers a spent budget
        assert set(np.flatnonzero(info["answer"]).tolist()) == answer, number


def test_sar_on_a_half_line_is_thresholding() -> None:
    """{x : -x <= -theta} in one dimension: the same pulls and answers."""
    g = np.random.default_rng(3)
    for _ in range(8):
        K, theta = int(g.integers(2, 15)), float(g.uniform(0.3, 0.7))
        common = {"instance": Instance(Bernoulli(g.random(K))), "budget": int(g.integers(K + 1, 20 * K))}
        line, plain = (
            agents.evaluate("sar", env_id, episodes=20, env_kwargs=common | more)
            for env_id, more in ((FEASIBLE, {"A": [[-1.0]], "b": [-theta]}), (THRESHOLD, {"threshold": theta}))
        )
        assert line.pulls["pulls"].tolist() == plain.pulls["pulls"].tolist()
        assert line.episodes[["misclassified", "total_pulls"]].equals(plain.episodes[["misclassified", "total_pulls"]])


def test_sar_met_in_the_middle_begins_anew() -> None:
    env: Any = gym.make(FEASIBLE, instance="dose-finding", budget=100, actions="full").unwrapped
    agent = agents.make("sar", env)
    observation, _ = env.reset(seed=0)
    observation, *_ = env.step({"arm": 3, "times": 50, "answer": np.zeros(5, np.int8)})
    with pytest.raises(ValueError, match="sar goes on from its state"):
        agent.predict(observation)
    state, arms, over = agent.begin_anew(observation), [], False
    while not over:
        action, state = agent.predict(observation, state)
        arms.append(action["arm"])
        observation, _, over, _, info = env.step(action)
    assert arms[:5] == [0, 1, 2, 3, 4]
    assert info["total_pulls"] == 100


def pulls_of(name: str, episodes: int, **kwargs: Any) -> NDArray[np.int64]:
    """Pulls of each arm in each episode."""
    kwargs |= {"copy": False, "actions": "full", "autoreset_mode": "Disabled"}
    envs: Any = gym.make_vec(FEASIBLE, num_envs=episodes, **kwargs)
    agent = agents.make(name, envs)
    observation, _ = envs.reset(seed=0, options={"episode": np.arange(episodes)})
    state, over = None, np.zeros(episodes, np.bool_)
    while not over.all():
        action, state = agent.predict(observation, state)
        observation, _, terminated, _, _ = envs.step(action)
        over |= terminated
    return envs.unwrapped.pulls.copy()  # type: ignore[no-any-return]


TRIALS = 2000  # of the paper
LEVEL = stats.norm.isf(5e-5)  # of a two-sided test with false-alarm rate 1e-4


def comes_out(pulls: NDArray[np.int64], printed: float) -> bool:
    """Whether the mean pulls of arm 8 agree with a printed mean over as many trials, each with its sampling error."""
    mine = pulls[:, 8]
    return bool(abs(mine.mean() - printed) <= LEVEL * mine.std() * np.sqrt(1 / len(mine) + 1 / TRIALS))


@pytest.mark.parametrize(("name", "printed"), [("md-apt", 904.8125), ("md-sar", 317.751)])
@pytest.mark.parametrize("episodes", [60, 600])
def test_pulls_of_arm_8_in_experiment_2(name: str, printed: float, episodes: int) -> None:
    """Section 7.1: MD-APT pulls it 904.8 times on average, MD-SAR 317.8 times (T = 2000, 2000 trials)."""
    assert comes_out(pulls_of(name, episodes, instance="katz-samuels2018-2"), printed)
    near = "md-apt(tolerance=0.01)" if episodes == 600 else "md-sar"
    other = {"md-apt": near, "md-sar": "md-apt"}[name]
    assert not comes_out(pulls_of(other, episodes, instance="katz-samuels2018-2"), printed)


def failures(names: list[str], instance: str, episodes: int, **kwargs: Any) -> dict[str, int]:
    result = agents.evaluate(names, FEASIBLE, episodes=episodes, env_kwargs={"instance": instance, **kwargs})
    table = result.episodes
    return {str(name): int((~part["correct"]).sum()) for name, part in table.groupby("agent", observed=True)}


@pytest.mark.parametrize("episodes", [80, 800])
def test_crowdsourcing(data_folder: Any, monkeypatch: pytest.MonkeyPatch, episodes: int) -> None:
    """Section 7.4: "UA has a final error rate of roughly 52%, whereas MD-SAR has a final error rate of roughly 5%".

    MD-SAR's comes out, taken as 5 % +- 1/2; UA's does not: ours is below 48 %. The limits of MD-SAR have
    false-alarm rate 1e-6, that of UA 1e-4.
    """
    monkeypatch.setenv("BANDIT_ENVS_DATA", str(data_folder))
    wrong = failures(["uniform", "md-sar"], "crowdsourcing", episodes)
    highest = stats.binom.isf(1e-6, episodes, 0.055)
    assert stats.binom.ppf(1e-6, episodes, 0.045) <= wrong["md-sar"] <= highest < wrong["uniform"] < 0.48 * episodes
    assert episodes < 800 or wrong["uniform"] < stats.binom.ppf(1e-4, episodes, 0.52)


def test_experiment_4_turns_round_when_normalised() -> None:
    """With rows as written MD-APT fails less often than MD-SAR, as printed; with rows of norm 1 more often."""
    less = failures(["md-apt", "md-sar"], "katz-samuels2018-4", 1000)
    more = failures(["md-apt", "md-sar"], "katz-samuels2018-4(normalise=True)", 1000)

    def ahead(better: int, worse: int) -> bool:
        return bool(stats.binom.sf(worse - 1, better + worse, 0.5) < 1e-4)

    assert ahead(less["md-apt"], less["md-sar"])
    assert ahead(more["md-sar"], more["md-apt"])


def test_ucbe_takes_the_oracles_hardness() -> None:
    env = gym.make(FEASIBLE, instance="katz-samuels2018-2")
    # gaps .2 .2 .1 .1, sqrt 5 (.1 .1 .2 .2), .05, .05 sqrt 5, ten times .3; inverse squares sum to 891.111
    H = 2 * 25 + 2 * 100 + 2 * 20 + 2 * 5 + 400 + 80 + 10 / 0.09
    for scale in (0.1, 1, 10, 100):
        assert agents.make("md-ucbe", env, scale=scale).a == pytest.approx(scale * 25 / 36 * 1980 / H)


@pytest.mark.parametrize("name", ["md-apt", "md-sar", "md-ucbe(scale=10)"])
def test_every_algorithm_runs_on_the_cube(name: str) -> None:
    A, b = cube(3)
    kwargs = {"instance": Instance(Gaussian([[0.5] * 3, [1.2] * 3, [0.9] * 3], 0.3)), "A": A, "b": b, "budget": 60}
    table = agents.evaluate(name, FEASIBLE, episodes=50, env_kwargs=kwargs).episodes
    assert table["correct"].mean() > 0.5
    assert (table["total_pulls"] <= 60).all()


CHECKS: dict[str, Callable[[Any], bool]] = {
    "katz-samuels2018-1": lambda m: m[8] == pytest.approx(0.025),
    "katz-samuels2018-2": lambda m: m[8:10] == pytest.approx([0.05, -0.05 * 5**0.5]),
    "katz-samuels2018-3": lambda m: (
        m[[0, 1, 2, 3, 6, 7, 8, 9]]
        == pytest.approx([0.25, 0.2, 0.15, 0.1, *(-(0.25 - 0.05 * i) * 5**0.5 for i in range(4))])
    ),
    "katz-samuels2018-4": lambda m: m[[0, 5, 10, 15]] == pytest.approx([0.2, 0.15, -0.25 / 5**0.5, 0.05]),
    # gaps of the order: .2, .15, then -.05 and -.15 between two coordinates; (.4, .2, 0) -> three at .2
    "katz-samuels2018-5": lambda m: m[::4] * 2**0.5 == pytest.approx([0.2, 0.15, -0.05, -0.15, -0.4]),
    "katz-samuels2018-5(normalise=False)": lambda m: (
        m[::4] == pytest.approx([0.2, 0.15, -0.05 / 2**0.5, -0.15 / 2**0.5, -(0.08**0.5)])
    ),
    "dose-finding": lambda m: m[[0, 2]] == pytest.approx([-((0.06**2 + 0.019**2) ** 0.5), 0.035]),
}
COUNTS = {
    "katz-samuels2018-1": (14, 4, 2),
    "katz-samuels2018-2": (15, 5, 0),
    "katz-samuels2018-3": (4, 14, 2),
    "katz-samuels2018-3(tolerance=0)": (5, 15, 0),
    "katz-samuels2018-4": (10, 5, 5),
    "katz-samuels2018-4(normalise=True)": (10, 5, 5),
    "katz-samuels2018-5": (8, 8, 4),
    "katz-samuels2018-5(normalise=False)": (8, 8, 4),
    "dose-finding": (1, 4, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_instances_of_the_paper(name: str) -> None:
    """Good, bad and irrelevant arms as section 7 has them; margins by hand."""
    env: Any = gym.make(FEASIBLE, instance=name).unwrapped
    margin, tolerance = env.problem.margin(env.instance.arms.means), env.problem.tolerance
    good, bad = (margin >= 0) & (margin >= tolerance), margin < -tolerance
    assert (good.sum(), bad.sum(), (~good & ~bad).sum()) == COUNTS[name]
    assert ("(" in name and name not in CHECKS) or CHECKS[name](margin)
    assert env.task.budget == (1000 if name == "dose-finding" else 2000)
    assert name == "dose-finding" or (env.instance.arms.variances == 0.25).all()
