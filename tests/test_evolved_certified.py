"""Learned habits of `evidence`: nothing learned is evidence, the guarantee, the formula by hand, the training."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
from agents.certified.evidence import Evidence
from agents.certified.leaning import GENES, HIDDEN, INPUTS, LAYERS, PLAIN, WEIGHTS, Habits, lean
from agents.certified.ways import ALL_GOOD, TOP_K, Book, Way, book_of
from agents.evolved.agent import Evolved, EvolvedEvidence
from agents.evolved.candidates import CommonEpisodes
from agents.evolved.evolution import evolve
from agents.evolved.genes import read_genes

TASKS = {
    "BestArm": {"epsilon": 0.2},
    "TopK": {"k": 2, "epsilon": 0.2},
    "AllGood": {"epsilon": 0.3, "slack": 0.3},
    "Threshold": {"tolerance": 0.15},
}


def task_kwargs(problem: str, arms: int = 5, **more: Any) -> dict[str, Any]:
    return {"instance": f"sampler(arms={arms})", "delta": 0.1, **TASKS[problem], **more}


def wild(seed: int) -> list[float]:
    """Habits far from those of `evidence`, with a network."""
    draw = np.random.default_rng(seed)
    return [0.3, 0.5, 0.2, 0.4, *(0.8 * draw.standard_normal(len(WEIGHTS))).tolist()]


def pulls_of(agents_by_name: dict[str, Any], problem: str, episodes: int, kwargs: Any) -> dict[str, np.ndarray]:
    result = agents.evaluate(agents_by_name, problem, episodes=episodes, env_kwargs=kwargs, progress=False)
    return {name: run.pulls for name, run in zip(result.agents, result.runs, strict=True)}


@pytest.mark.parametrize("problem", TASKS)
def test_with_nothing_learned_it_is_evidence(problem: str) -> None:
    """Arm by arm, whole episodes; and a network with bends that correct nothing changes nothing."""
    kwargs = task_kwargs(problem)
    env = gym.make(f"bandit_envs/{problem}-v0", actions="full", **kwargs)
    dead = [*PLAIN[: len(GENES)], *[0.7] * (len(WEIGHTS) - HIDDEN), *[0.0] * HIDDEN]
    played = {"evidence": Evidence(env), "plain": Evolved(env, PLAIN[: len(GENES)]), "dead": Evolved(env, dead)}
    found = pulls_of(played | {"wild": Evolved(env, wild(0))}, problem, 60, kwargs)
    assert np.array_equal(found["evidence"], found["plain"])
    assert np.array_equal(found["evidence"], found["dead"])
    assert not np.array_equal(found["evidence"], found["wild"])


@pytest.mark.parametrize("problem", TASKS)
def test_errors_stay_within_delta_whatever_the_habits(problem: str) -> None:
    """delta = .3, 500 episodes: a rule with errors at delta exceeds 200 with probability 2e-6; these have far fewer.

    Means are close, so that answers taken before the certificate holds would be wrong in more than 200.
    """
    close = {"sampler": {"arms": 4, "mean": {"uniform": [0.4, 0.6]}}}
    kwargs = task_kwargs(problem, delta=0.3) | {"instance": close}
    if problem != "Threshold":
        kwargs["epsilon"] = 0.1
    kwargs |= {"tolerance": 0.04} if problem == "Threshold" else {}
    env = gym.make(f"bandit_envs/{problem}-v0", actions="full", **kwargs)
    result = agents.evaluate({"wild": Evolved(env, wild(1))}, problem, episodes=500, env_kwargs=kwargs, progress=False)
    assert (~result.episodes["correct"]).sum() <= 200
    assert result.episodes["level"].max() <= 0.3
    assert not result.episodes["truncated"].any()


def test_where_arms_stand_alone_no_rule_of_pulls_needs_fewer() -> None:
    """Threshold: an arm is pulled until it is excluded, and no more; episode by episode no other agent does better."""
    kwargs = task_kwargs("Threshold", arms=6)
    env = gym.make("bandit_envs/Threshold-v0", actions="full", **kwargs)
    rivals = {name: name for name in ("evidence", "track-and-stop", "top-two")}
    found = pulls_of(rivals | {"evolved": Evolved(env, [0.0] * 4)}, "Threshold", 100, kwargs)
    least = found.pop("evolved").sum(axis=1)
    for name, pulls in found.items():
        assert (pulls.sum(axis=1) >= least).all(), name
        assert pulls.sum() > 1.01 * least.sum(), name


@pytest.mark.parametrize("kind", [TOP_K, ALL_GOOD])
@pytest.mark.parametrize("lowered", [0, 1])
def test_the_lean_by_hand(kind: int, lowered: int) -> None:
    """Arms 0 and 3 in the answer, 1 and 2 outside; the way of arm 0's row, with arm 1."""
    pulls, need, t = np.array([9, 4, 2, 5]), 7.0, 20
    env = gym.make("bandit_envs/TopK-v0", actions="full", **task_kwargs("TopK", arms=4, k=2))
    sides = Evidence(env).sides._replace(kind=kind, need_in=need)
    books = Book.empty(1, 4)
    books.inside[0], books.value[0, 0], books.partner[0, 0] = [1, 0, 0, 1], -2.8, 1
    genes = wild(2)
    way = Way(lowered, 1 - lowered, 0.1, 0.2)
    n, m = float(pulls[lowered]), float(pulls[1 - lowered])
    if kind == TOP_K:  # 4^2 + 2^2 outside, 9^2 + 5^2 inside
        crowd = math.log(20 / m**2) - math.log(106 / n**2)
    else:  # arm 1 is shared: 9^2 + 2^2 + 5^2 of all others
        crowd = (1 if lowered == 1 else -1) * math.log(110 / 81)
    inputs = [1, -0.4, 1 / 3, math.log(n / m) / 2, math.log(m * 4 / t) / 2, crowd / 2, 1 if lowered == 0 else -1]
    assert len(inputs) == len(INPUTS) == LAYERS - 1
    net = np.array(genes[len(GENES) :]).reshape(LAYERS, HIDDEN)
    x = np.array(inputs) @ net[:-1]
    wanted = genes[2] + genes[3] * crowd + float((net[-1] * x / (1 + abs(x))).sum())
    found = lean(way, 0, pulls, t, sides, book_of(books, 0), Habits.of(genes, 1), 0)
    assert found == pytest.approx(wanted, rel=1e-9)


TINY: dict[str, Any] = {
    "env_id": "BestArm",
    "env_kwargs": {"instance": "sampler(arms=4)", "epsilon": 0.3},
    "mix": [{"delta": 0.1}, {"delta": 0.01}],
    "generations": 5,
    "population": 6,
    "every": 2,
    "episodes": 20,
    "progress": False,
}


def test_one_seed_one_set_of_habits(tmp_path: Any) -> None:
    """The training repeats bit for bit, its card tells habits and rival, and the agent of the card plays as it does."""
    genes, card = evolve(**TINY, out=tmp_path / "habits")
    assert evolve(**TINY)[0] == genes == eval(card["call"])[0]
    assert evolve(**TINY, seed=1)[0] != genes
    assert card["rival"] == "evidence"
    assert card["names"] == [*GENES, *WEIGHTS][: len(genes)]
    assert card["checkpoints"][0]["ratios"] == [1.0, 1.0]  # it begins as evidence
    kwargs = TINY["env_kwargs"] | {"delta": 0.05}
    env = gym.make("bandit_envs/BestArm-v0", actions="full", **kwargs)
    both = {"card": agents.make(str(tmp_path / "habits.json"), env), "genes": Evolved(env, genes)}
    found = pulls_of(both, "BestArm", 20, kwargs)
    assert np.array_equal(found["card"], found["genes"])


def test_candidates_side_by_side_pull_as_each_alone() -> None:
    common = CommonEpisodes("bandit_envs/TopK-v0", task_kwargs("TopK"), 20)
    table = [list(PLAIN), wild(3)]
    both = common.losses(table, 5, 7)
    assert np.array_equal(both, np.concatenate([common.losses([one], 5, 7) for one in table]))
    assert not np.array_equal(both[0], both[1])


def test_training_needs_fewer_pulls() -> None:
    """At least 5 % fewer than evidence, on 800 held-out episodes."""
    genes, _ = evolve(**TINY | {"generations": 8, "population": 8, "episodes": 80, "network": False})
    kwargs = TINY["env_kwargs"] | {"delta": 0.1}
    common = CommonEpisodes("bandit_envs/BestArm-v0", kwargs, 800)
    plain, mine = common.losses([PLAIN, [*genes, *[0.0] * len(WEIGHTS)]], 99, 0).mean(1)
    assert mine < 0.95 * plain


def test_which_tasks_it_is_for() -> None:
    def made(**kwargs: Any) -> Any:
        env = gym.make("bandit_envs/BestArm-v0", actions="full", instance="sampler(arms=4)", epsilon=0.1, **kwargs)
        return Evolved(env, [0.5] * 4 if "budget" not in kwargs and "pull_cost" not in kwargs else None)

    assert type(made(delta=0.1)) is EvolvedEvidence
    assert type(made(delta=0.1, budget=40)) is Evolved
    task = made(delta=0.1).task
    with pytest.raises(ValueError, match="for tasks that end otherwise, and lack force"):
        read_genes(task, {"alpha": 1.0})
    with pytest.raises(ValueError, match="for tasks that end otherwise, and lack alpha"):
        read_genes(task.replace(budget=40), {"force": 1.0})
    with pytest.raises(ValueError, match="takes 4 finite genes here, or 68"):
        Evolved(task, [1.0, 2.0])
