"""What a session with arms that come and go spends of delta: no more than all of it, whatever comes and goes.

python tests/campaigns/shares.py     1000 courses of 60 changes for each problem; the default tests have ten
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from agents.session.promise import share_of
from agents.session.setup import task_from_facts
from bandit_envs import PROBLEMS, Task

RULES: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.5},
    "Feasible": {"A": [[1.0]], "b": [0.5]},
    "BestArm": {},
    "TopK": {"k": 2, "criterion": "each", "epsilon": 0.1},
    "AllGood": {"epsilon": 0.1},
}


def task_of(problem: str, arms: int) -> Task:
    return task_from_facts({"problem": problem, "arms": arms, "binary": True, "delta": 0.1, **RULES.get(problem, {})})[
        0
    ]


def check_shares(problem: str, reserve: float, courses: int) -> None:
    """Each arm, or pair of arms, errs at its largest share of any time with its own probability; they sum to delta.

    What a certificate gives an arm is 1 / K of the agent's delta, and a pair of arms 1 / (K - 1) at most:
    `test_a_pair_has_no_more_than_its_share` counts them for each problem.
    """
    generator, local = np.random.default_rng(0), PROBLEMS[problem].local
    for _ in range(courses):
        first = int(generator.integers(2 + (problem == "TopK"), 7))
        task, active, ever, changed = task_of(problem, first), list(range(first)), first, False
        spent: dict[Any, float] = {}
        for _ in range(60):
            K, share = len(active), share_of(task, first, np.array(active), changed, ever, reserve)
            assert 0 < share.ratio <= 1
            assert share.owed == int(reserve == 0 and (ever > first if local else changed))
            if local:
                each, alternatives = share.ratio / K, [(arm,) for arm in active]
            elif changed:
                each, alternatives = share.ratio / (K - 1), list(itertools.combinations(sorted(active), 2))
            else:  # one supermartingale for each of the pairs that the truth names, which are all that count together
                each, alternatives = share.ratio, [("first",)]
            for alternative in alternatives:
                spent[alternative] = max(spent.get(alternative, 0.0), each)
            if generator.random() < 0.5 or K <= 3:
                active, ever = [*active, ever], ever + 1
            else:
                active.remove(int(generator.choice(active)))
            changed = True
        total = sum(spent.values())
        assert total <= 1 + (reserve == 0) + 1e-9  # delta, or, where nothing was kept, delta that is owed besides
        assert total > 0.35


def main() -> None:
    for problem in RULES:
        for reserve in (0.0, 0.3):
            check_shares(problem, reserve, 1000)


if __name__ == "__main__":
    main()
