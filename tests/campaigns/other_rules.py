"""An agent that was made for other rules, another budget or delta, decides as the one that its name makes.

python tests/campaigns/other_rules.py     all agents on all their problems; the default tests have one of each kind
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest
from pandas.testing import assert_frame_equal

import agents
from agents.evaluation.result import Evaluation
from agents.registry import LEARNED

SETTINGS: dict[str, dict[str, Any]] = {  # fixed instances, from which oracles learn what they need
    "Threshold": {"instance": "tao2019-1"},
    "Feasible": {"instance": "dose-finding"},
    "AllGood": {"instance": {"distribution": "gaussian", "mean": [1.0, 0.9, 0.3, 0.1], "sd": 0.2}, "epsilon": 0.3},
    "TopK": {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.7, 0.3, 0.1]}, "k": 2, "epsilon": 0.4},
    "BestArm": {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.5, 0.3, 0.1]}, "epsilon": 0.4},
}
RULES: list[dict[str, Any]] = [
    {"budget": 80},
    {"delta": 0.05, "max_pulls": 90},
    {"budget": 35},
    {"delta": 0.4, "max_pulls": 60},
    {"delta": 0.2, "pull_cost": 0.01, "max_pulls": 70},
    {"delta": 0.2, "budget": 50},
]


def evaluate(who: Any, env_id: str, **arguments: Any) -> Evaluation:
    return agents.evaluate(who, env_id, progress=False, **arguments)


def rows(result: Evaluation) -> Any:
    """The rows of the only agent, without its label."""
    return result.episodes.drop(columns="agent").reset_index(drop=True)


def check_other_rules(name: str, problem: str) -> None:
    env_id = f"bandit_envs/{problem}-v0"
    made: list[Any] = []
    named: list[Evaluation | None] = []  # None: it does not run under these rules
    settings = [SETTINGS[problem] | {"budget": None, "delta": None} | rules for rules in RULES]
    for kwargs in settings:
        try:
            made.append(agents.make(name, gym.make(env_id, actions="full", **kwargs)))
            named.append(evaluate(name, env_id, env_kwargs=kwargs, episodes=2))
        except ValueError:
            made, named = made[: len(named)] + [None], [*named, None]
    crossed = 0
    for i, agent in enumerate(made):
        for j in ((i + 1) % len(RULES), (i + 2) % len(RULES)):
            wanted = named[j]
            if agent is None:
                continue
            if wanted is None:
                with pytest.raises(ValueError, match="needs|no stored model"):
                    evaluate(agent, env_id, env_kwargs=settings[j], episodes=2)
                continue
            found = evaluate(agent, env_id, env_kwargs=settings[j], episodes=2)
            assert_frame_equal(rows(found), rows(wanted), atol=0)
            assert found.pulls["pulls"].tolist() == wanted.pulls["pulls"].tolist()
            crossed += 1
    assert crossed >= 1


def main() -> None:
    for problem in SETTINGS:
        for name in agents.names(problem):
            if name not in LEARNED:
                check_other_rules(name, problem)


if __name__ == "__main__":
    main()
