"""Every agent with `stop='certificate'`: the same episodes in all forms, which end with a right answer.

python tests/campaigns/certified_agents.py     all agents on all their problems; the default tests have some
"""

from __future__ import annotations

import functools
from typing import Any
from unittest import mock

from pandas.testing import assert_frame_equal

import agents
from agents.evaluation import lockstep, plan
from bandit_envs import PROBLEMS


def bernoulli(*means: float) -> dict[str, Any]:
    return {"distribution": "bernoulli", "mean": list(means)}


def gaussian(*means: Any, sd: float = 1.0) -> dict[str, Any]:
    return {"distribution": "gaussian", "mean": list(means), "sd": sd}


HALF_PLANES = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}
SETTINGS: dict[str, dict[str, Any]] = {  # with an answer that some hundred pulls certify
    "Threshold": {"instance": bernoulli(0.1, 0.3, 0.75, 0.9)},
    "Feasible": {"instance": gaussian([0.9, 0.1], [0.1, 0.2], [0.2, 0.9], sd=0.3), **HALF_PLANES},
    "AllGood": {"instance": bernoulli(0.1, 0.3, 0.88, 0.9), "epsilon": 0.3},
    "TopK": {"instance": bernoulli(0.1, 0.3, 0.7, 0.9), "k": 2, "epsilon": 0.1, "criterion": "each"},
    "BestArm": {"instance": bernoulli(0.1, 0.3, 0.5, 0.9), "epsilon": 0.1},
}
CERTIFIED = "(stop='certificate')"
# Agents that need a budget, or whose stored models do; those whose stored models need a price; and those that are not
# certified by then.
BUDGET = {"evolved", "ppo", "ucbe", "sar", "opt-mai", "successive-rejects", "sequential-halving"}
PRICED = {("AllGood", "evolved")}
LATE = {"fareast", "incremental", "halving", "median-elimination", "direct", "ucb", "adaptive-top-k", "improved-top-k"}
LATE |= {"two-step", "ppo"}


def rows(result: Any) -> Any:
    return result.episodes.drop(columns=["agent"])


def ends_of(problem: str, name: str) -> dict[str, Any]:
    """How the episodes of an agent end at last."""
    if (problem, name) in PRICED:
        return {"delta": 0.1, "max_pulls": 900, "pull_cost": 1e-4}
    if name == "ppo":
        return {"delta": 0.1, "budget": 200}
    return {"delta": 0.1} | ({"budget": 900} if name in BUDGET else {"max_pulls": 900})


CASES = [(problem, name) for problem in PROBLEMS if problem in SETTINGS for name in agents.names(problem)]


def check(problem: str, name: str) -> None:
    """The same episodes in compiled code, by `predict`, and in batches of any size; and the answer is the plug-in."""
    kwargs = SETTINGS[problem] | ends_of(problem, name)
    evaluate = functools.partial(
        agents.evaluate, f"{name}{CERTIFIED}", problem, episodes=3, env_kwargs=kwargs, progress=False
    )
    whole, checked = evaluate(), evaluate(at=[7, 60])
    assert_frame_equal(rows(evaluate(batch=2)), rows(whole), atol=0)
    stepped = (mock.patch.object(module, "plays", return_value=False) for module in (lockstep, plan))
    with next(stepped), next(stepped):
        assert_frame_equal(rows(evaluate(batch=2)), rows(whole), atol=0)
        assert_frame_equal(rows(evaluate(at=[7, 60])), rows(checked), atol=0)  # no pull is made beyond a checkpoint
    if name not in LATE:
        assert (whole.episodes["total_pulls"] < 900).all()  # all have been certified
        assert whole.episodes["correct"].all()
    assert whole.agents == [f"{name}{CERTIFIED}"]


if __name__ == "__main__":
    for case in CASES:
        check(*case)
        print(*case, flush=True)
