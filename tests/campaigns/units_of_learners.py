"""Scores of learned agents and of look-ahead where all Gaussian arms are shifted, or in other units.

    python tests/campaigns/units_of_learners.py [EPISODES] [CASE ...]

The fresh PPO is trained where it is judged, from the same seed; the one of "learn" in the environment of that id.
Printed is how far each score lies from that in place. The exit code is 1 if one is further than LIMIT.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import gymnasium as gym

import agents

LIMIT = 0.001
PLACES = [(0.0, 1.0), (1.0, 1.0), (5.0, 1.0), (1000.0, 1.0), (0.0, 0.01), (0.0, 64.0)]
RULES: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.5},
    "BestArm": {},
    "TopK": {"k": 3},
    "AllGood": {"epsilon": 0.2},
    "AllGood, multiplicative": {"epsilon": 0.2, "multiplicative": True},  # scale alone
    "Feasible": {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]},
    "BetterThanControl": {"control": 2, "margin": 0.1},
    "BetterThanControl, lift": {"control": 2, "lift": 0.3},  # scale alone
}


def moved(case: str, shift: float, scale: float) -> dict[str, Any]:
    """The keywords of the environment with all lengths moved along."""
    rules = dict(RULES[case])
    if "threshold" in rules:
        rules["threshold"] = (rules["threshold"] + shift) * scale
    if "b" in rules:
        rules["b"] = [(b + sum(row) * shift) * scale for row, b in zip(rules["A"], rules["b"], strict=True)]
    for name in ("epsilon", "margin") if "," not in case else ():
        rules |= {name: rules[name] * scale} if name in rules else {}
    mean = {"uniform": [shift * scale, (1 + shift) * scale]}
    form = {"distribution": "gaussian", "arms": 10, "mean": mean, "spread": 0.3 * scale}
    return {**rules, "instance": {"sampler": form | ({"dimensions": 2} if "b" in rules else {})}, "budget": 100}


def main(episodes: int = 2000, *cases: str) -> float:
    """Print a row for each problem and agent; returns the largest distance."""
    warnings.simplefilter("ignore")
    most = 0.0
    for case in cases or RULES:
        scores: dict[str, list[float]] = {}
        for shift, scale in PLACES if "," not in case else [one for one in PLACES if one[0] == 0]:
            problem, kwargs = case.partition(",")[0], moved(case, shift, scale)
            stored = ("look-ahead", "ppo", "evolved")
            players: dict[str, Any] = {one: one for one in stored if one in agents.names(problem)}
            for name, where in {"fresh": f"{problem}-v0", "learn": f"{problem}-learn-v0"}.items():
                if (where := f"bandit_envs/{where}") in gym.registry:
                    settings: dict[str, Any] = {"steps": 30_000, "held_out": 100, "checkpoints": 1}
                    players[name] = agents.train("ppo", where, env_kwargs=kwargs, **settings)
            found = agents.evaluate(players, problem, episodes=episodes, seed=9, env_kwargs=kwargs, progress=False)
            for label, score in found.episodes.groupby("agent")["score"].mean().items():
                scores.setdefault(str(label), []).append(float(score))
        for name, row in scores.items():
            apart = max(abs(score - row[0]) for score in row)
            most = max(most, apart)
            places = "" if apart <= LIMIT else " ".join(f"{score:.4f}" for score in row)
            print(f"{case:26s}{name:12s}{row[0]:.4f}  {apart:.5f}  {places}", flush=True)
    return most


if __name__ == "__main__":
    largest = main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, *sys.argv[2:])
    print(f"largest distance {largest:.5f}")
    sys.exit(int(largest > LIMIT))
